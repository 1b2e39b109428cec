"""The matcher by coverage: a passage is found when enough of its text was retrieved."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints, sum_by
from karat.data.gold import Gold
from karat.data.hits import Coverage, Evidence, Range
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Document, Notice, Run
from karat.errors import UsageError
from karat.matching import Matcher
from karat.matching.contradictions import Mismatch, find_differences
from karat.matching.cover import (
    LEAST,
    GoldLetters,
    Part,
    cover,
    cover_brief,
    first_covered,
)
from karat.matching.letters import Letters, seeds
from karat.matching.similarity import scorer
from karat.matching.texts import Stretch, TextRankings, Wanted, wanted_items

_NOTHING: Final[Ints] = np.zeros(0, np.int64)
# From this share on a passage is looked at for contradictions.
_HALF = 0.5
_LONGEST_HEADER = 200
_SHORTEST_HEADER = 8
# So many documents with the same header are compared with each other.
_COMPARED = 8
# So many places where one document may go on with another are tried.
_TRIED = 64


def stretch_of(document: Document) -> Stretch | None:
    """Where in its source a document lies, if it says so."""
    source = document.source if document.source is not None else document.id
    if source is None or document.start is None or document.end is None:
        return None
    return Stretch(source, document.start, document.end)


def read_targets(gold: Gold, query: str) -> list[Wanted]:
    """The gold items of a query: its spans, or else its passages."""
    spans = gold.spans.get(query)
    if not spans:
        return wanted_items(gold.passages.get(query, ()))
    grouped: dict[object, list[tuple[str, float, str, Stretch]]] = {}
    for span in spans:
        place = Stretch(span.document, span.start, span.end)
        member = (span.group or span.id, span.grade, span.text or "", place)
        grouped.setdefault(span.group or place, []).append(member)
    return [
        Wanted(names[0], max(grades), texts, places)
        for names, grades, texts, places in (
            tuple(zip(*members, strict=True)) for members in grouped.values()
        )
    ]


class QueryTexts(NamedTuple):
    """The gold items and the documents of one query, with their ranks."""

    targets: list[Wanted]
    ranks: list[int]
    documents: list[Document]

    @property
    def by_offsets(self) -> bool:
        """Whether places decide, and not texts: where documents say where they are."""
        if not any(target.places for target in self.targets):
            return False
        placed = [stretch_of(document) is not None for document in self.documents]
        if all(placed) or not any(placed):
            return all(placed)
        # Some are known: texts are better, where all gold has one, and any document.
        lacking = any("" in target.texts for target in self.targets)
        return lacking or all(document.text is None for document in self.documents)


@dataclass(frozen=True)
class Passage:
    """A gold text, what each document covers of it, and since when each letter is."""

    gold: Letters
    documents: Sequence[Letters]
    parts: list[Part]
    since: Ints

    @cached_property
    def differences(self) -> list[tuple[int, int, Mismatch]]:
        """What differs: from which document on, and from which on no longer."""
        never, last = len(self.documents), len(self.gold.letters)
        differences = [
            (part, find_differences(self.gold, self.documents[part.document], part))
            for part in self.parts
        ]
        rows = []
        for part, own in differences:
            for one in own:
                low, high = max(0, one.start - 1), min(last, one.end + 1)
                until = (
                    other.document
                    for other, others in differences
                    if any(run.start <= low and run.end >= high for run in other.runs)
                    and not any(o.start <= high and o.end >= low for o in others)
                )
                rows.append((part.document, min(until, default=never), one))
        return rows


Rise = tuple[int, int, float, bool]
"""An item, a document, the share covered from then on, and whether nothing differs."""


class Measured(NamedTuple):
    """What the documents of a query cover, in characters of gold and of their own."""

    size: float
    gold: Floats
    length: list[int]
    fresh: list[int]
    rises: list[Rise]
    passages: list[Passage]


def measure_query(texts: QueryTexts) -> Measured:
    """Measure what the documents of one query cover of its gold."""
    count = len(texts.documents)
    passages: list[Passage] = []
    if texts.by_offsets:
        spans = [place for target in texts.targets for place in target.places]
        documents = [stretch_of(document) for document in texts.documents]
        since, weight, pieces = _cut(spans, documents)
        length = [place.end - place.start if place else 0 for place in documents]
        fresh = sum_by(since, weight, count + 1)[:count].astype(np.int64).tolist()
    else:
        golds = [text for target in texts.targets for text in target.texts]
        sources = Letters.read([document.text or "" for document in texts.documents])
        passages, fresh = compare_letters(golds, sources)
        length = [len(source.letters) for source in sources]
        since = np.concatenate((_NOTHING, *(passage.since for passage in passages)))
        weight = np.ones(len(since), np.int64)
        ends = accumulate((len(passage.since) for passage in passages), initial=0)
        pieces = [slice(*edges) for edges in pairwise(ends)]
    gained = [sum_by(since[p], weight[p], count + 1)[:count] for p in pieces]
    shares = [
        own.cumsum() / max(1, weight[piece].sum())
        for own, piece in zip(gained, pieces, strict=True)
    ]
    relevant = np.zeros(len(since), np.bool_)
    rises = []
    members = iter(range(len(pieces)))
    for item, target in enumerate(texts.targets):
        own = [*islice(members, len(target.texts))]
        if target.grade > 0:
            # Of alternatives the one that is covered best.
            best = max(own, key=lambda member: float(shares[member][-1:].sum()))
            relevant[pieces[best]] = True
        for member in own:
            passage = passages[member] if passages else None
            rows = _rises(gained[member], shares[member], passage)
            rises += [(item, *row) for row in rows]
    gold = sum_by(since[relevant], weight[relevant], count + 1)[:count]
    size = float(weight[relevant].sum())
    return Measured(size, gold, length, fresh, rises, passages)


def _rises(
    gained: Floats, share: Floats, passage: Passage | None
) -> list[tuple[int, float, bool]]:
    """Document by document: the share covered, and whether nothing differs."""
    rising = {*np.flatnonzero(gained).tolist()}
    rows: list[tuple[int, int, Mismatch]] = []
    if passage and rising and share[-1] >= _HALF:
        rows = passage.differences
        rising |= {until for first, until, _ in rows if first < until < len(share)}
    return [
        (n, float(share[n]), not any(first <= n < until for first, until, _ in rows))
        for n in sorted(rising)
    ]


def _cut(
    gold: Sequence[Stretch], documents: Sequence[Stretch | None]
) -> tuple[Ints, Ints, list[slice]]:
    """Sources cut where gold or a document begins: who has each piece, and its size."""
    places = [place for place in (*gold, *documents) if place]
    points = sorted({(place.source, at) for place in places for at in place[1:]})
    number = {point: n for n, point in enumerate(points)}
    pieces = {
        place: slice(number[place.source, place.start], number[place.source, place.end])
        for place in places
    }
    # What lies between two sources belongs to none.
    weight = np.array([0, *(max(0, b[1] - a[1]) for a, b in pairwise(points))])[1:]
    since: Ints = np.full(len(weight), len(documents))
    # The first document to cover a piece is written last, and stays.
    for n in range(len(documents) - 1, -1, -1):
        if place := documents[n]:
            since[pieces[place]] = n
    return since, weight, [pieces[place] for place in gold]


def compare_letters(
    golds: Sequence[str], documents: Sequence[Letters]
) -> tuple[list[Passage], list[int]]:
    """A passage for each gold text, and the number of new letters of each document."""
    sources = Letters.read(golds)
    sought = [GoldLetters(gold.letters) for gold in sources]
    least = min((gold.least for gold in sought), default=LEAST)
    letters = [document.letters for document in documents]
    heads = [text[:least] if len(text) >= least else "" for text in letters]
    shared = seeds([*(gold.letters for gold in sources), *heads], letters, least)
    begins = _headers(letters)
    passages = []
    for gold, passage, own in zip(sources, sought, shared, strict=False):
        if passage.weigh(0, len(gold.letters)) < LEAST:
            parts = [*cover_brief(gold, documents)]
        else:
            parts = [*cover(passage, letters, begins, own)]
        since = first_covered(passage, letters, begins, parts)
        passages.append(Passage(gold, documents, parts, since))
    return passages, _count_fresh(letters, shared[len(golds) :], least)


def _headers(documents: Sequence[str]) -> list[dict[int, int]]:
    """Where each document begins, also after a header, and from which one on."""
    begins = [{0: number} for number in range(len(documents))]
    alike: dict[str, list[int]] = {}
    for number, document in enumerate(documents):
        head = document[:_LONGEST_HEADER]
        others = alike.setdefault(head[:_SHORTEST_HEADER], [])
        for other in others[:_COMPARED]:
            size = int(scorer("prefix")(head, documents[other]))
            if size < min(len(head), len(documents[other])):
                begins[number].setdefault(size, number)
                begins[other].setdefault(size, number)
        others.append(number)
    return begins


def _count_fresh(
    documents: Sequence[str], heads: Sequence[Iterable[int]], least: int
) -> list[int]:
    """How many letters of each document none before it has, as they may overlap."""
    overlaps: dict[int, list[tuple[int, int]]] = {}
    for number, others in enumerate(heads):
        one = documents[number]
        for other in others:
            text = documents[other]
            place = _overlap(one, text, least) if other != number else -1
            if place >= 0:
                start = place if other > number else 0
                end = start + min(len(one), len(text) - place)
                overlaps.setdefault(max(number, other), []).append((start, end))
    fresh = [*map(len, documents)]
    for number, ranges in overlaps.items():
        left = np.ones(fresh[number], np.bool_)
        for start, end in ranges:
            left[start:end] = False
        fresh[number] = int(left.sum())
    return fresh


def _overlap(one: str, text: str, least: int) -> int:
    """From where on a text holds what another begins with, to the end of either."""
    place = -1
    for _ in range(_TRIED):
        place = text.find(one[:least], place + 1)
        if place < 0 or one.startswith(text[place : place + len(one)]):
            return place
    return -1


_SLACK = 1e-9
_UNIT = 1 << 40
_BYTES_OF_A_TOKEN = 4

Ranges = tuple[tuple[Range, ...], tuple[Range, ...]]


@dataclass(frozen=True)
class SpanMatcher(Matcher):
    """A document satisfies a gold passage once it and those before it cover the text.

    Where the gold spans and the retrieved documents both say where in a source they
    lie, characters are counted by offsets, and no text is needed. Else letters are
    compared: a document covers the runs of letters that it shares with the passage,
    where they are long, lie at its edge, or lie beside one that counts; short gaps
    between them are covered, too. Coverage is a union over the documents so far, so a
    passage may be found in parts. A number, sign, negation or name that differs in
    covered text is reported; the text still counts as covered.

    Attributes:
        tau: the smallest covered share of a passage's characters that finds it.
        gain: `binary` finds a passage or does not; `share` pays each document the share
            of a passage it is first to cover, for nDCG only.
        strict: a passage is not found while a number, sign, negation or name differs.
    """

    name: ClassVar[str] = "span"
    reads: ClassVar[tuple[str, ...]] = ("spans", "passages")
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"gain": ("binary", "share")}
    limits: ClassVar[dict[str, str]] = {"tau": "(0, 1]"}

    tau: float = 0.9
    gain: str = "binary"
    strict: bool = False

    def check(self, metric: str) -> None:
        """Shares can be paid, but not counted."""
        if self.gain == "share" and metric != "ndcg":
            raise UsageError(
                f"{self} pays shares of a passage, which ndcg can add up but {metric} "
                f"cannot count: say {metric}[span]"
            )

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matches:
        """Measure what every query of the gold has covered."""
        del judged  # judged non-relevant items cost no more than the others
        queries = gold.queries
        targets = [read_targets(gold, query) for query in queries]
        rankings = TextRankings(self.name, gold, policies, queries, targets)
        coverage = _gather(_read(run, rankings), rankings.first_item)
        enough = coverage.share >= self.tau - _SLACK
        changed = np.setdiff1d(
            coverage.item[enough & ~coverage.sound],
            coverage.item[enough & coverage.sound],
        )
        if self.strict:
            # An item is covered no further while something differs.
            rows = ("item", "item_rank", "share", "sound")
            sound = {name: getattr(coverage, name)[coverage.sound] for name in rows}
            coverage = replace(coverage, **sound)
        notices: tuple[Notice, ...] = ()
        if len(changed):
            owner = rankings.grades.query
            what = "covered with a number, sign, negation or name that differs"
            examples = tuple(Counter(queries[n] for n in owner[changed]))[:3]
            several, one = f"gold items are {what}", f"gold item is {what}"
            notices = (Notice("changed", len(changed), several, examples, one),)
        matches = rankings.matches(
            run,
            *self._rows(coverage, rankings.grades.grade),
            judged=True,
            distinct=self.gain == "share",
            notices=notices,
        )
        return replace(matches, hits=replace(matches.hits, coverage=coverage))

    def evidence(
        self, run: Run, gold: Gold, query: str, policies: Policies | None = None
    ) -> list[Evidence]:
        """Which characters of which documents speak for the gold items of a query."""
        targets = [read_targets(gold, query)]
        rankings = TextRankings(
            self.name, gold, policies or Policies(), [query], targets
        )
        return [
            self._evidence(texts, measured, rise)
            for _, texts in _read(run, rankings)
            for measured in [measure_query(texts)]
            for rise in measured.rises
        ]

    def _evidence(self, texts: QueryTexts, measured: Measured, rise: Rise) -> Evidence:
        """What a document adds to a gold item."""
        item, number, share, sound = rise
        target, document = texts.targets[item], texts.documents[number]
        first = sum(len(other.texts) for other in texts.targets[:item])
        own = measured.passages[first : first + len(target.texts)]
        gold, text = _text_ranges(own, number) if own else _ranges(target, document)
        differs = tuple(
            str(difference)
            for passage in own
            for start, until, difference in passage.differences
            if start <= number < until
        )
        enough = share >= self.tau - _SLACK
        reason = f"{share:.0%} covered" + ("" if enough else ", not enough yet")
        return Evidence(
            item=target.name,
            rank=texts.ranks[number],
            document=document.id,
            gold=gold,
            text=text,
            share=share,
            satisfied=enough and (sound or not self.strict),
            reason=reason + (f"; differs: {', '.join(differs)}" if differs else ""),
            differs=differs,
        )

    def _rows(self, coverage: Coverage, grade: Floats) -> tuple[Ints, Ints, Floats]:
        """Item, rank and gain of each hit."""
        item, rank = coverage.item, coverage.item_rank
        if self.gain == "binary":
            rows = np.flatnonzero(coverage.share >= self.tau - _SLACK)
            rows = rows[np.unique(item[rows], return_index=True)[1]]
            return item[rows], rank[rows], grade[item[rows]]
        # Whole numbers, so that the best share so far of each item can be followed.
        share = (coverage.share * _UNIT).astype(np.int64) + item * (2 * _UNIT)
        best = np.maximum.accumulate(share)
        before = np.maximum(np.concatenate(([0], best[:-1])), item * (2 * _UNIT))
        new = (best - before) / _UNIT
        rows = np.flatnonzero(new > 0)
        return item[rows], rank[rows], new[rows] * np.maximum(grade[item[rows]], 0)


def _gather(queries: Iterable[tuple[int, QueryTexts]], first: list[int]) -> Coverage:
    """What all queries have covered, given the index of the first gold item of each."""
    size = np.zeros(len(first))
    documents, rises = [np.zeros((6, 0))], [np.zeros((4, 0))]
    for query, texts in queries:
        own = measure_query(texts)
        size[query], ranks = own.size, texts.ranks
        costs = [*map(_tokens, texts.documents, own.length)]
        place = [query] * len(ranks)
        columns = place, ranks, own.gold, own.length, own.fresh, costs
        documents.append(np.array(columns))
        rows = [(first[query] + i, ranks[n], *more) for i, n, *more in own.rises]
        rises.append(np.array(rows, np.float64).reshape(-1, 4).T)
    tables = [np.concatenate(blocks, axis=1) for blocks in (documents, rises)]
    one, two = (table[:, np.lexsort((table[1], table[0]))] for table in tables)
    (query_of, rank), (item, item_rank) = (t[:2].astype(np.int64) for t in (one, two))
    gold, length, fresh, tokens = one[2:]
    share, sound = two[2], two[3] > 0
    return Coverage(
        size, query_of, rank, gold, length, fresh, tokens, item, item_rank, share, sound
    )


def _tokens(document: Document, length: int) -> float:
    """The tokens of a document: its own count, else a quarter of its bytes."""
    own = document.metadata.get("tokens") if document.metadata else None
    if isinstance(own, int | float) and own >= 0:
        return float(own)
    if (text := document.text) is not None:
        length = len(text if text.isascii() else text.encode("utf-8", "surrogatepass"))
    return length / _BYTES_OF_A_TOKEN


def _ranges(target: Wanted, document: Document) -> Ranges:
    """What a gold span and a document share, from where each begins."""
    ours, theirs = target.places[0], stretch_of(document)
    if theirs and ours.source == theirs.source:
        low, high = max(ours.start, theirs.start), min(ours.end, theirs.end)
        if low < high:
            shared = (((low - at, high - at),) for at in (ours.start, theirs.start))
            return next(shared), next(shared)
    return (), ()


def _text_ranges(passages: Sequence[Passage], number: int) -> Ranges:
    """What a document is the first to cover of a passage, run by run."""
    gold, text = [], []
    for passage in passages:
        ours, theirs = passage.gold.places, passage.documents[number].places
        for part in passage.parts:
            for run in part.runs if part.since == part.document == number else ():
                fresh = run.start + np.flatnonzero(
                    passage.since[run.start : run.end] == number
                )
                if len(fresh):
                    low, high, shift = fresh[0], fresh[-1], run.place - run.start
                    gold.append((ours[low], ours[high] + 1))
                    text.append((theirs[low + shift], theirs[high + shift] + 1))
    return tuple(gold), tuple(text)


def _read(run: Run, rankings: TextRankings) -> Iterator[tuple[int, QueryTexts]]:
    """Each query once, with its place; those not in the run come last, empty."""
    for place, query, documents, ranks in rankings.read(run):
        texts = QueryTexts([*rankings.items[place]], ranks, documents)
        if texts.targets and documents and not texts.by_offsets:
            without = sum(document.text is None for document in documents)
            if any(t.places and "" in t.texts for t in texts.targets):
                rankings.unplaced[query] = len(documents)
            elif without:
                rankings.without_text[query] = without
        yield place, texts
    for place in np.flatnonzero(rankings.retrieved < 0).tolist():
        yield place, QueryTexts([*rankings.items[place]], [], [])
