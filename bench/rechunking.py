"""Corpora with known gold spans, cut into chunks and spoilt in known ways.

Beside the corpora of chunking_evaluation there are some that are made here: tables, the
source code of Python's library, and texts in eight scripts.
"""

import argparse
import csv
import json
import math
import os
import random
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

__all__ = [
    "CHUNKERS",
    "CORRUPTIONS",
    "SCRIPTS",
    "Case",
    "Corpora",
    "made_corpora",
    "make_cases",
    "read_corpora",
]

Range = tuple[int, int]

_SHARED = Path(os.environ.get("KARAT_SHARED", Path(__file__).parents[2] / "shared"))
_KEPT = 0.7
_RETRIEVED = 5
# So many characters that stand elsewhere, too, are retrieved with either.
_COPIED = 40


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


# Ranges of letters, how many make a word, and what stands between words.
SCRIPTS: dict[str, tuple[str, tuple[int, int], str]] = {
    "english": ("etaoinshrdlucmfwypvbgk", (2, 9), " "),
    "latin": ("abcdefghilmnoprstuvzäöüßéèñç", (2, 9), " "),
    "cyrillic": ("абвгдежзийклмнопрстуфхцчшщыьэюя", (2, 9), " "),
    "greek": ("αβγδεζηθικλμνξοπρστυφχψως", (2, 9), " "),
    "arabic": ("ابتثجحخدذرزسشصضطظعغفقكلمنهوي", (2, 7), " "),
    "devanagari": ("कखगघचछजटडतथदनपबभमयरलवशसहािीुूेैो", (2, 8), " "),
    "thai": ("กขคงจชซญดตถทนบปผพมยรลวสหอะาิีึืุูเแโใไ่้", (2, 7), ""),
    "chinese": ("".join(map(chr, range(0x4E00, 0x4E00 + 2400))), (1, 2), ""),
    "korean": ("".join(map(chr, range(0xAC00, 0xAC00 + 2400, 2))), (2, 4), " "),
}


def made_corpora(kind: str) -> Corpora:
    """A corpus that is made here, and passages of it: `tables`, `code` or a script."""
    chance = random.Random(kind)
    if kind == "code":
        modules = (argparse, csv, json, random, re, textwrap)
        files = [Path(str(module.__file__)) for module in modules]
        texts = {
            file.stem + file.parent.name: file.read_text("utf-8") for file in files
        }
    elif kind == "tables":
        texts = {f"table{n}": _table(chance) for n in range(6)}
    else:
        texts = {f"{kind}{n}": _prose(kind, chance) for n in range(6)}
    spans = []
    for _ in range(400):
        name = chance.choice(sorted(texts))
        size = min(len(texts[name]) // 2, chance.randint(60, 700))
        start = chance.randrange(len(texts[name]) - size)
        spans.append((name, start, start + size))
    return Corpora(texts, spans)


def _table(chance: random.Random) -> str:
    regions = ("north", "south", "east", "west", "central")
    rows = (
        f"{n},{chance.choice(regions)},{chance.randint(1, 10**7)},"
        f"{chance.uniform(-99, 99):.2f},20{chance.randint(10, 24)}-"
        f"{chance.randint(1, 12):02}-{chance.randint(1, 28):02},"
        f"{chance.choice(('open', 'closed', 'pending'))}"
        for n in range(400)
    )
    return "\n".join(("id,region,amount,change,day,state", *rows))


def _prose(script: str, chance: random.Random) -> str:
    """Words of a script, few of them frequent and many rare, as in real texts."""
    letters, (least, most), between = SCRIPTS[script]
    words = [
        "".join(chance.choices(letters, k=chance.randint(least, most)))
        for _ in range(4000)
    ]
    weights = [1 / (place + 3) for place in range(len(words))]
    sentences = (
        between.join(chance.choices(words, weights, k=chance.randint(6, 25)))
        for _ in range(250)
    )
    stop = "。" if not between else ". "
    return stop.join(sentences)


class BM25:
    """Ranks chunks by the words they share with a question, as search engines do."""

    def __init__(self, texts: list[str], k1: float = 1.2, b: float = 0.75) -> None:
        self._counts = [Counter(_terms(text)) for text in texts]
        sizes = [counts.total() for counts in self._counts]
        mean = sum(sizes) / max(1, len(sizes))
        self._norms = [k1 * (1 - b + b * size / max(1, mean)) for size in sizes]
        self._factor = k1 + 1
        held = Counter(term for counts in self._counts for term in counts)
        self._weights = {
            term: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
            for term, n in held.items()
        }

    def best(self, question: str, count: int) -> list[int]:
        """The numbers of the best chunks."""
        terms = {*_terms(question)} & {*self._weights}
        scores = [
            sum(
                self._weights[term]
                * counts[term]
                * self._factor
                / (counts[term] + norm)
                for term in terms
                if term in counts
            )
            for counts, norm in zip(self._counts, self._norms, strict=True)
        ]
        return sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:count]


def _terms(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def make_cases(
    corpora: Corpora,
    chunker: Callable[[str], list[Range]],
    corrupt: Callable[[str, random.Random], str],
    *,
    header: bool = False,
    retrieve: bool = False,
) -> Iterator[Case]:
    """For each gold span most of the chunks that touch it, and others, in any order.

    Args:
        corpora: texts and gold spans.
        chunker: cuts a text into chunks.
        corrupt: spoils a chunk.
        header: whether each chunk is led by the name of its text.
        retrieve: whether chunks are found by BM25 and not picked.
    """
    chance = random.Random(11)
    chunks = {name: chunker(text) for name, text in corpora.texts.items()}
    search = {
        name: BM25([text[a:b] for a, b in chunks[name]])
        for name, text in corpora.texts.items()
        if retrieve
    }
    for name, start, end in corpora.spans:
        text = corpora.texts[name]
        touching = [c for c in chunks[name] if c[0] < end and c[1] > start]
        kept = [chunk for chunk in touching if chance.random() < _KEPT]
        others = max(0, _RETRIEVED - len(kept))
        kept += chance.sample(chunks[name], min(others, len(chunks[name])))
        chance.shuffle(kept)
        if retrieve:
            terms = _terms(text[start:end])
            question = " ".join(chance.sample(terms, min(len(terms), 8)))
            best = search[name].best(question, _RETRIEVED)
            kept = [chunks[name][number] for number in best]
        there = {at for a, b in kept for at in range(max(a, start), min(b, end))}
        for a, b in kept:
            if not (a < end and b > start):
                there |= _copies(text[start:end], text[a:b], start)
        lead = (
            f"Document: {name.replace('_', ' ').title()} (2024)\n\n" if header else ""
        )
        retrieved = [lead + corrupt(text[a:b], chance) for a, b in kept]
        yield Case(text[start:end], retrieved, len(there) / (end - start))


def _copies(gold: str, chunk: str, start: int) -> set[int]:
    """Where in the text the passage stands that a chunk from elsewhere repeats."""
    return {
        start + at
        for low in range(len(gold) - _COPIED + 1)
        if gold[low : low + _COPIED] in chunk
        for at in range(low, low + _COPIED)
    }


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


def _scanned(share: float) -> Callable[[str, random.Random], str]:
    """Letters misread, lost or doubled, as when a page is scanned."""

    def misread(text: str, chance: random.Random) -> str:
        letters = [char for char in text if char.isalnum()] or ["e"]
        return "".join(
            chance.choice((chance.choice(letters), "", char * 2))
            if char.isalnum() and chance.random() < share
            else char
            for char in text
        )

    return misread


CORRUPTIONS: dict[str, Callable[[str, random.Random], str]] = {
    "none": lambda text, _: text,
    "whitespace": _whitespace,
    "quotes": _quotes,
    "markdown": lambda text, chance: _stripped(_markdown(text, chance), chance),
    "case": _case,
    "hyphens": _hyphens,
    "accents": _accents,
    "scanned 1%": _scanned(0.01),
}
