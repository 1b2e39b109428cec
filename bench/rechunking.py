"""Corpora with known gold spans, cut into chunks and spoilt in known ways."""

import csv
import json
import os
import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

__all__ = ["CHUNKERS", "CORRUPTIONS", "Case", "Corpora", "make_cases", "read_corpora"]

Range = tuple[int, int]

_SHARED = Path(os.environ.get("KARAT_SHARED", Path(__file__).parents[2] / "shared"))
_KEPT = 0.7
_RETRIEVED = 5


@dataclass(frozen=True)
class Corpora:
    """Texts by name, and gold spans in them: (corpus, start, end)."""

    texts: dict[str, str]
    spans: list[tuple[str, int, int]]


@dataclass(frozen=True)
class Case:
    """A gold passage, what was retrieved for it, and the share that really is there."""

    gold: str
    retrieved: list[str]
    covered: float


def read_corpora() -> Corpora | None:
    """The corpora of chunking_evaluation; None where they are not."""
    folder = _SHARED / "data" / "chunking_eval"
    if not folder.is_dir():
        return None
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    names = sorted({row["corpus_id"] for row in rows})
    texts = {name: (folder / f"{name}.md").read_bytes().decode() for name in names}
    spans = [
        (row["corpus_id"], span["start_index"], span["end_index"])
        for row in rows
        for span in json.loads(row["references"])
    ]
    return Corpora(texts, spans)


def make_cases(
    corpora: Corpora,
    chunker: Callable[[str], list[Range]],
    corrupt: Callable[[str, random.Random], str],
) -> Iterator[Case]:
    """For each gold span most of the chunks that touch it, and others, in any order."""
    chance = random.Random(11)
    chunks = {name: chunker(text) for name, text in corpora.texts.items()}
    for name, start, end in corpora.spans:
        text = corpora.texts[name]
        touching = [c for c in chunks[name] if c[0] < end and c[1] > start]
        kept = [chunk for chunk in touching if chance.random() < _KEPT]
        others = max(0, _RETRIEVED - len(kept))
        kept += chance.sample(chunks[name], min(others, len(chunks[name])))
        chance.shuffle(kept)
        there = {at for a, b in kept for at in range(max(a, start), min(b, end))}
        retrieved = [corrupt(text[a:b], chance) for a, b in kept]
        yield Case(text[start:end], retrieved, len(there) / (end - start))


def _windows(size: int, overlap: float) -> Callable[[str], list[Range]]:
    step = size - int(size * overlap)

    def cut(text: str) -> list[Range]:
        return [(at, min(at + size, len(text))) for at in range(0, len(text), step)]

    return cut


def _sentences(text: str) -> list[Range]:
    edges = [
        found.end() for found in re.finditer(r"[.!?]['\"\u201d\u2019)]?\s+|\n+", text)
    ]
    pairs = zip([0, *edges], [*edges, len(text)], strict=True)
    return [(a, b) for a, b in pairs if text[a:b].strip()]


def _recursive(text: str, size: int = 500) -> list[Range]:
    """Paragraphs, else lines, else sentences, else words, of at most so much."""

    def split(start: int, end: int, separators: tuple[str, ...]) -> list[Range]:
        if end - start <= size or not separators:
            return [(start, end)]
        found = re.finditer(re.escape(separators[0]), text[start:end])
        edges = [start, *(start + match.end() for match in found), end]
        pieces: list[Range] = []
        for a, b in pairwise(edges):
            if pieces and b - pieces[-1][0] <= size:
                pieces[-1] = (pieces[-1][0], b)
            elif b > a:
                pieces.append((a, b))
        return [p for a, b in pieces for p in split(a, b, separators[1:])]

    return split(0, len(text), ("\n\n", "\n", ". ", " "))


def _token_windows(text: str, size: int = 128, step: int = 96) -> list[Range]:
    words = [found.span() for found in re.finditer(r"\S+", text)]
    return [
        (words[at][0], words[min(at + size, len(words)) - 1][1])
        for at in range(0, len(words), step)
    ]


CHUNKERS: dict[str, Callable[[str], list[Range]]] = {
    "300/0": _windows(300, 0),
    "300/25%": _windows(300, 0.25),
    "800/0": _windows(800, 0),
    "800/25%": _windows(800, 0.25),
    "2000/0": _windows(2000, 0),
    "sentence": _sentences,
    "recursive": _recursive,
    "tokens": _token_windows,
}


def _whitespace(text: str, chance: random.Random) -> str:
    if chance.random() < 0.5:
        return " ".join(text.split())
    return re.sub(
        r"\s+", lambda _: chance.choice((" ", "\n", "  ", "\u00a0", "\t\n")), text
    )


def _quotes(text: str, chance: random.Random) -> str:
    if chance.random() < 0.5:
        plain = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-"}  # noqa: RUF001
        return text.translate(str.maketrans(plain))
    return text.translate(str.maketrans({"'": "’", '"': "”", "-": "–"}))  # noqa: RUF001


def _markdown(text: str, chance: random.Random) -> str:
    dress = ("**{}**", "*{}*", "_{}_", "`{}`", "[{}](https://example.org/x_1)", "{} |")
    words = re.split(r"(\s+)", text)
    dressed = [
        chance.choice(dress).format(word)
        if word.isalnum() and chance.random() < 0.1
        else word
        for word in words
    ]
    lines = "".join(dressed).split("\n")
    marks = ("", "", "# ", "> ", "- ", "* ")
    return "\n".join(chance.choice(marks) + line for line in lines)


def _stripped(text: str, chance: random.Random) -> str:
    return re.sub(r"[*_`#>|]+", "", text) if chance.random() < 0.5 else text


def _case(text: str, chance: random.Random) -> str:
    return chance.choice((str.upper, str.lower, str.title))(text)


def _hyphens(text: str, chance: random.Random) -> str:
    def broken(word: re.Match[str]) -> str:
        return f"{word[1]}-\n{word[2]}" if chance.random() < 0.15 else word[0]

    return re.sub(r"([^\W\d_]{3,})([^\W\d_]{3,})", broken, text)


def _accents(text: str, chance: random.Random) -> str:
    del chance
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if not unicodedata.combining(char))


CORRUPTIONS: dict[str, Callable[[str, random.Random], str]] = {
    "none": lambda text, _: text,
    "whitespace": _whitespace,
    "quotes": _quotes,
    "markdown": lambda text, chance: _stripped(_markdown(text, chance), chance),
    "case": _case,
    "hyphens": _hyphens,
    "accents": _accents,
}
