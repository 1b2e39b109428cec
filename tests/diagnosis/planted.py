"""Runs with planted faults: for every miss, the cause that a diagnosis must find."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

K = 5
DEPTH = 20


@dataclass
class Planted:
    """A run in which every query has one fault, and what was planted where.

    Attributes:
        run: query -> ids; the texts are in the corpus.
        gold: query -> ids, or query -> texts.
        corpus: id -> text.
        candidates: what a reranker was given.
        queries: query -> what it asks.
        causes: (query, item) -> the planted cause.
        fixed: the same run after what the cause asks for was done.
        fixed_gold: the gold after that.
        restored: texts that are in the corpus after that.
        scores: query -> scores of what was retrieved; falling by default.
    """

    run: dict[str, list[str]] = field(default_factory=dict)
    gold: dict[str, list[str]] = field(default_factory=dict)
    corpus: dict[str, str] = field(default_factory=dict)
    candidates: dict[str, list[str]] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    causes: dict[tuple[str, str], str] = field(default_factory=dict)
    fixed: dict[str, list[str]] = field(default_factory=dict)
    fixed_gold: dict[str, list[str]] = field(default_factory=dict)
    restored: dict[str, str] = field(default_factory=dict)
    scores: dict[str, list[float]] = field(default_factory=dict)


def self_made(dice: random.Random, size: int = 1500) -> dict[str, str]:
    """A corpus of short notes, each about things of its own."""
    syllables = [
        a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar")
    ]
    names = ["".join(dice.choices(syllables, k=3)).title() for _ in range(3 * size)]
    verbs = ["opened", "closed", "bought", "sold", "visited", "painted", "measured"]
    things = ["bridge", "mill", "harbour", "school", "library", "garden", "tower"]
    corpus = {}
    for number in range(size):
        one, two, three = names[3 * number : 3 * number + 3]
        did, what = dice.choices(verbs, k=3), dice.choices(things, k=3)
        sentences = [
            f"{one} {did[0]} the {what[0]} of {two} in {dice.randint(1700, 2020)}.",
            f"It took {dice.randint(2, 400)} days to see why {three} {did[1]} it.",
            f"The {what[1]} near {two} is {dice.randint(5, 90)} metres high.",
            f"{three} told {one} of the {what[2]}, which {two} {did[2]} later.",
        ]
        corpus[f"note-{number}"] = " ".join(sentences)
    return corpus


def paragraphs(folder: Path) -> dict[str, str]:
    """Paragraphs of an encyclopedia."""
    lines = (folder / "musique100" / "corpus.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["doc_id"]: row["text"] for row in rows if len(row["text"]) > 120}


def prose(folder: Path, name: str, size: int = 420) -> dict[str, str]:
    """Consecutive chunks of a long text, but for those that it repeats elsewhere."""
    text = (folder / "chunking_eval" / name).read_text("utf-8")
    cut = [text[at : at + size] for at in range(0, len(text), size)]
    seen = Counter(text[at : at + 60] for at in range(len(text) - 60))
    once = [
        chunk
        for chunk in cut
        if all(seen[chunk[at : at + 60]] == 1 for at in range(0, len(chunk) - 60, 5))
    ]
    return {f"c{number}": chunk for number, chunk in enumerate(once) if chunk.strip()}


def _edited(text: str, dice: random.Random, share: float) -> str:
    """The text with some of its words exchanged for others."""
    words = text.split()
    for place in dice.sample(range(len(words)), max(1, int(share * len(words)))):
        words[place] = "".join(
            dice.choices("abcdefghijklmnoprstuvwz", k=dice.randint(3, 9))
        )
    return " ".join(words)


def _copied(text: str, dice: random.Random) -> str:
    """A near-duplicate: other spaces and case, or a few words more."""
    kind = dice.randrange(4)
    if kind == 0:
        return text.upper()
    if kind == 1:
        return text.replace(" ", "  ") + "\n"
    if kind == 2:
        return f"{text} (updated copy)"
    return f"Page: {text}"


_RARE = re.compile(r"[A-Za-z]{5,}")
_NUMBER = re.compile(r"(?<![\d.,$])\d{2,4}(?![\d.,%])")
_NAMES = ["zor", "vel", "quin", "tha", "mex", "dril", "ost", "ulk", "fey", "wix", "jor"]
_GREEK = str.maketrans(
    "abdefgiklmnoprstuvz",
    "\u03b1\u03b2\u03b4\u03b5\u03c6\u03b3\u03b9\u03ba\u03bb\u03bc\u03bd\u03bf\u03c0\u03c1\u03c3\u03c4\u03c5\u03b2\u03b6",
)
_CYRILLIC = str.maketrans(
    "aceopxyi", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456"
)
_GERMAN = (
    "Der Hafen wurde im Jahr darauf erweitert und mit neuen Kranen versehen. "
    "Viele Familien zogen damals aus dem Umland zu, weil es dort Arbeit gab. "
    "Heute erinnert nur noch eine kleine Tafel am Ufer an diese Zeit."
)
_FRENCH = (
    "La ville fut reconstruite apres la guerre par des ouvriers venus du sud. "
    "Ses ponts sont encore visibles, mais personne ne sait qui les a payes. "
    "On y trouve aussi un marche couvert, ouvert chaque matin sauf le lundi."
)


def look_alike(text: str, dice: random.Random) -> str:
    """The text with some letters of another script that look the same."""
    words = text.split()
    for place in dice.sample(range(len(words)), max(4, len(words) // 2)):
        words[place] = words[place].translate(_CYRILLIC)
    return " ".join(words)


def foreign(_: str, dice: random.Random) -> str:
    return dice.choice([_GERMAN, _FRENCH])


def cyrillic(text: str, _: random.Random) -> str:
    return text.translate(_GREEK)


def empty(_: str, dice: random.Random) -> str:
    return dice.choice(["", "  \n"])


def cut(text: str, dice: random.Random) -> str:
    """The beginning of a text, to the middle of a word."""
    size = int(len(text) * dice.uniform(0.18, 0.24))
    words = text[:size].split()
    return " ".join([*words[:-1], words[-1][:2]])


class Planter:
    """Plants faults, each in a query of its own.

    Args:
        pool: id -> text of documents.
        dice: where chance comes from.
        texts: whether gold is texts, and not ids.
    """

    def __init__(
        self, pool: dict[str, str], dice: random.Random, *, texts: bool
    ) -> None:
        self.dice, self.texts, self.pool = dice, texts, [*pool]
        self.planted = Planted(corpus=dict(pool))
        self.used: set[str] = set()
        self.count: dict[str, int] = {}
        for text in pool.values():
            for word in {*map(str.casefold, _RARE.findall(text))}:
                self.count[word] = self.count.get(word, 0) + 1
        self.faults: dict[str, Callable[[], None]] = {
            "below k": self.below,
            "displaced by near-duplicates": self.displaced,
            "dropped by the reranker": self.dropped,
            "not in the corpus": self.absent,
            "embedding miss": self.embedding,
            "lexical gap": self.lexical,
            "partial multi-hop": self.multi_hop,
            "damaged text": self.damaged,
            "label in doubt": self.wrong_label,
            "fewer than k retrieved": self.too_few,
            "tied at the cut": self.tied,
        }
        more: dict[str, Callable[[], None]] = {
            "unlabelled twin retrieved": self.twin,
            "contradicting copy retrieved": self.contradiction,
            "wrong id form": self.wrong_id,
        }
        if texts:
            more = {
                "split over chunks": self.split,
                "near miss in text": self.near_miss,
            }
        self.faults |= more

    def plant(self, cause: str, times: int) -> Planted:
        """Plant a fault so many times."""
        for _ in range(times):
            self.faults[cause]()
        return self.planted

    def fresh(self) -> str:
        """A document that no other fault uses."""
        while True:
            name = self.dice.choice(self.pool)
            if name not in self.used and len(self.planted.corpus.get(name, "")) > 100:
                self.used.add(name)
                return name

    def others(self, count: int) -> list[str]:
        names = [
            n for n in self.dice.sample(self.pool, 3 * count) if n not in self.used
        ]
        return [n for n in names if n in self.planted.corpus][:count]

    def asking(self, name: str) -> str:
        """A question in words that few documents have besides."""
        words = [*{*_RARE.findall(self.planted.corpus[name])}]
        words.sort(key=lambda word: (self.count.get(word.casefold(), 0), word))
        return f"What is known of {' and '.join(words[:4])}?"

    def add(  # noqa: PLR0913
        self,
        cause: str,
        name: str,
        ranking: Sequence[str],
        *,
        fixed: Sequence[str],
        text: str | None = None,
        query: str | None = None,
        found: Sequence[str] = (),
        candidates: Sequence[str] = (),
        fixed_gold: Sequence[str] = (),
    ) -> None:
        """A query with a fault.

        Args:
            cause: what was planted.
            name: the document that is missed.
            ranking: what was retrieved.
            fixed: what is retrieved when the cause is gone.
            text: what the gold says, where it is not the document.
            query: what is asked.
            found: gold documents that were found.
            candidates: what the reranker was given.
            fixed_gold: the gold when the cause is gone.
        """
        data = self.planted
        number = f"f{len(data.run)}"
        corpus = data.corpus
        item = (text or corpus[name]) if self.texts else name
        rest = [corpus[one] for one in found] if self.texts else [*found]
        data.run[number] = [*ranking]
        data.gold[number] = [item, *rest]
        data.candidates[number] = [*(candidates or ranking)]
        data.queries[number] = query or "Which one of these says more about it?"
        data.causes[number, item] = cause
        data.fixed[number] = [*fixed]
        data.fixed_gold[number] = [*(fixed_gold or data.gold[number])]

    def below(self) -> None:
        name, rest = self.fresh(), self.others(DEPTH)
        rank = self.dice.randint(K + 1, DEPTH)
        ranking = [*rest[: rank - 1], name, *rest[rank - 1 :]]
        self.add("below k", name, ranking, fixed=[name, *rest])

    def displaced(self) -> None:
        name, source, rest = self.fresh(), self.fresh(), self.others(DEPTH)
        extra = self.dice.randint(1, 4)
        copies = []
        for number in range(extra):
            copy = f"{source}~{number}"
            self.planted.corpus[copy] = _copied(self.planted.corpus[source], self.dice)
            copies.append(copy)
        kept = self.dice.randint(max(0, K - extra - 1), K - 2)
        above = [source, *copies, *rest[:kept]]
        top = above[:1] + self.dice.sample(above[1:], len(above) - 1)
        self.add(
            "displaced by near-duplicates",
            name,
            [*top, name, *rest[kept:10]],
            fixed=[source, *rest[:kept], name],
        )

    def dropped(self) -> None:
        name, rest = self.fresh(), self.others(DEPTH)
        before = [*rest[: self.dice.randrange(K)], name]
        before += [one for one in rest if one not in before]
        after = [*rest[: K + 3]]
        if self.dice.random() < 0.5:
            after.append(name)
        self.add(
            "dropped by the reranker", name, after, fixed=before, candidates=before
        )

    def absent(self) -> None:
        name, rest = self.fresh(), self.others(10)
        text = self.planted.corpus[name]
        query = self.asking(name)
        self.planted.restored[name] = text
        item = ""
        if self.texts:
            self.planted.corpus[name] = _edited(text, self.dice, 0.8)
            item = text
        else:
            del self.planted.corpus[name]
        self.add(
            "not in the corpus",
            name,
            rest,
            fixed=[name, *rest],
            text=item or "-",
            query=query,
        )

    def embedding(self) -> None:
        name, rest = self.fresh(), self.others(DEPTH)
        query = self.asking(name)
        self.add("embedding miss", name, rest, fixed=[name, *rest], query=query)

    def lexical(self) -> None:
        name, rest = self.fresh(), self.others(DEPTH)
        words = ("".join(self.dice.choices("xqjwyzk", k=7)) for _ in range(4))
        query = f"{' '.join(words)}?"
        self.add("lexical gap", name, rest, fixed=[name, *rest], query=query)

    def multi_hop(self) -> None:
        """What is found names something, and the question does not."""
        name, first, rest = self.fresh(), self.fresh(), self.others(DEPTH)
        query = self.asking(first)
        bridge = " ".join("".join(self.dice.choices(_NAMES, k=3)).title() for _ in "ab")
        corpus = self.planted.corpus
        corpus[first] = f"{corpus[first].strip()} It was the work of {bridge}."
        corpus[name] = f"{bridge} is told of here. {corpus[name].strip()}"
        ranking = [first, *rest]
        self.add(
            "partial multi-hop",
            name,
            ranking,
            fixed=[name, *ranking],
            query=query,
            found=[first],
        )

    def contradiction(self) -> None:
        """An older version of it is on top."""
        while True:
            name = self.fresh()
            text = self.planted.corpus[name]
            numbers = [m for m in _NUMBER.finditer(text) if m.start() > 20]
            if numbers:
                break
        number = self.dice.choice(numbers)
        other = str(int(number[0]) + self.dice.choice([-1, 1, 2, 7]))
        self.planted.corpus[f"{name}~old"] = (
            text[: number.start()] + other + text[number.end() :]
        )
        rest = self.others(DEPTH)
        place = self.dice.randrange(K)
        ranking = [*rest[:place], f"{name}~old", *rest[place:]]
        if self.dice.random() < 0.5:
            ranking.append(name)
        query = self.asking(name)
        cause = "contradicting copy retrieved"
        self.add(cause, name, ranking, fixed=[name, *rest], query=query)

    def damaged(self) -> None:
        """Its text was cut off, or is in other words or letters."""
        name, rest = self.fresh(), self.others(DEPTH)
        text = self.planted.corpus[name].strip()
        # What is asked stands in the part that a cut takes away.
        self.planted.corpus[name] = text[len(text) // 3 :]
        query = self.asking(name)
        self.planted.restored[name] = text
        kinds = [look_alike] if self.texts else [look_alike, foreign, cyrillic, empty]
        kind = self.dice.choice([*kinds, cut])
        self.planted.corpus[name] = kind(text, self.dice)
        self.add(
            "damaged text",
            name,
            rest,
            fixed=[name, *rest],
            text=text,
            query=query,
        )

    def wrong_label(self) -> None:
        """The answer is on top, and something else is labelled."""
        name, answer, rest = self.fresh(), self.fresh(), self.others(DEPTH)
        alone = self.dice.random() < 0.5
        self.add(
            "label in doubt",
            name,
            [answer, *rest],
            fixed=[answer],
            query=self.asking(answer),
            found=() if alone else [answer],
            fixed_gold=[self.planted.corpus[answer] if self.texts else answer],
        )

    def too_few(self) -> None:
        name, rest = self.fresh(), self.others(self.dice.randint(1, K - 1))
        query = self.asking(name)
        cause = "fewer than k retrieved"
        self.add(cause, name, rest, fixed=[name, *rest], query=query)

    def tied(self) -> None:
        name, rest = self.fresh(), self.others(DEPTH)
        rank = self.dice.randint(K + 1, 9)
        ranking = [*rest[: rank - 1], name, *rest[rank - 1 :]]
        self.add("tied at the cut", name, ranking, fixed=[name, *rest])
        query = [*self.planted.run][-1]
        scores = [1 / n for n in range(1, len(ranking) + 1)]
        first = self.dice.randint(1, K)
        scores[first - 1 : rank] = [scores[first - 1]] * (rank - first + 1)
        self.planted.scores[query] = scores

    def twin(self) -> None:
        name, rest = self.fresh(), self.others(DEPTH)
        twin = f"{name}~twin"
        self.planted.corpus[twin] = _copied(self.planted.corpus[name], self.dice)
        place = self.dice.randrange(K)
        ranking = [*rest[:place], twin, *rest[place:]]
        if self.dice.random() < 0.5:
            ranking.append(name)
        self.add(
            "unlabelled twin retrieved", name, ranking, fixed=ranking, fixed_gold=[twin]
        )

    def wrong_id(self) -> None:
        name, rest = self.fresh(), self.others(DEPTH)
        forms = (name.upper(), f"docs/{name}", f"{name}#3", f" {name} ")
        form = self.dice.choice(forms)
        place = self.dice.randrange(K)
        corpus = self.planted.corpus
        corpus[form] = corpus.pop(name)
        ranking = [*rest[:place], form, *rest[place:]]
        self.add("wrong id form", name, ranking, fixed=ranking, fixed_gold=[form])

    def split(self) -> None:
        name, other, rest = self.fresh(), self.fresh(), self.others(DEPTH)
        corpus = self.planted.corpus
        one, two = corpus[name].strip(), corpus[other].strip()
        share = self.dice.uniform(0.3, 0.7)
        low, high = int(len(one) * share), int(len(two) * (1 - share))
        text = f"{one[low:]} {two[:high]}"
        corpus[name], corpus[other] = one, two
        ranking = [*rest]
        ranking.insert(self.dice.randrange(K), self.dice.choice([name, other]))
        self.add("split over chunks", name, ranking, fixed=[name, other], text=text)

    def near_miss(self) -> None:
        name, rest = self.fresh(), self.others(DEPTH)
        corpus = self.planted.corpus
        text = corpus[name]
        corpus[name] = _edited(text, self.dice, self.dice.uniform(0.18, 0.26))
        ranking = [*rest]
        ranking.insert(self.dice.randrange(K), name)
        good = f"{name}~good"
        self.planted.restored[good] = text
        self.add("near miss in text", name, ranking, fixed=[good], text=text)


def f1_by_cause(
    planted: dict[tuple[str, str], str], found: dict[tuple[str, str], str]
) -> dict[str, float]:
    """The F1 of each planted cause."""
    scores = {}
    for cause in {*planted.values()}:
        hits = sum(found.get(key) == cause == own for key, own in planted.items())
        told = sum(value == cause for value in found.values())
        there = sum(value == cause for value in planted.values())
        scores[cause] = 2 * hits / (told + there)
    return scores
