"""The matcher by coverage: a passage is found when enough of its text was retrieved."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.coverage import Coverage, Evidence, Range
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Document, Notice, Run, note_examples
from karat.errors import UsageError
from karat.matching.coverage.measure import (
    Measured,
    Passage,
    QueryTexts,
    Rise,
    measure_query,
    read_targets,
    stretch_of,
)
from karat.matching.matcher import Matcher
from karat.matching.texts import TextRankings, Wanted

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
    covered text is told, and makes nothing uncovered.

    Attributes:
        tau: the share of a passage's characters from which on it is found.
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
            examples = note_examples(Counter(queries[n] for n in owner[changed]))
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
