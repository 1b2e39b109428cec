"""The matcher by coverage: a passage is found when enough of its text was retrieved."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.coverage import Coverage, Evidence
from karat.data.gold import Gold
from karat.data.hits import GoldGrades
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Located, Notice, Run, note_examples
from karat.data.tables import counted
from karat.errors import DataError, ParameterError, UsageError
from karat.matching.coverage.evidence import gather
from karat.matching.coverage.measure import Measurer
from karat.matching.coverage.targets import QueryTexts, Target, read_targets
from karat.matching.matcher import Matcher
from karat.matching.texts import Rankings
from karat.matching.to_hits import lay_out

__all__ = ["Span"]

_SLACK = 1e-9
_UNIT = 1 << 40


@dataclass(frozen=True)
class Span(Matcher):
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

    tau: float = 0.9
    gain: str = "binary"
    strict: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        tau: Any = self.tau
        if type(tau) not in (int, float) or not 0 < tau <= 1:
            raise ParameterError(self.name, "tau", "a number in (0, 1]", tau)

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
        count = np.fromiter(map(len, targets), np.int64, len(targets))
        grade = np.array([t.grade for row in targets for t in row], np.float64)
        rankings = Rankings(self.name, gold, policies)
        reader = _Reader(queries, targets, rankings)
        measurer = Measurer()
        for texts in reader.read(run):
            measurer.add(texts)
        coverage = measurer.finish(len(queries))
        changed = self._changed(coverage)
        if self.strict:
            coverage = _only_sound(coverage)
        item, rank, worth = self._rows(coverage, grade)
        found = len(item) > 0
        reader.refuse_unplaced(run)
        rankings.refuse_without_text(run, found=found)
        owner = np.repeat(np.arange(len(queries)), count)
        notices = rankings.notices()
        notices += _notice(changed, [queries[number] for number in owner[changed]])
        query_of = owner[item]
        order = np.lexsort((item, rank, query_of))
        located = Located(
            query=query_of[order],
            rank=rank[order],
            grade=worth[order],
            retrieved=reader.retrieved,
            extra=reader.extra,
            item=item[order],
            distinct=self.gain == "share",
            notices=notices,
        )
        names = [target.name for row in targets for target in row]
        graded = GoldGrades(count, grade)
        matched = lay_out(
            run, queries, located, names, graded, judged=True, policies=policies
        )
        return replace(matched, hits=replace(matched.hits, coverage=coverage))

    def evidence(
        self, run: Run, gold: Gold, query: str, policies: Policies | None = None
    ) -> list[Evidence]:
        """Which characters of which documents speak for the gold items of a query."""
        policies = Policies() if policies is None else policies
        targets = read_targets(gold, query)
        reader = _Reader([query], [targets], Rankings(self.name, gold, policies))
        return [
            found
            for texts in reader.read(run)
            if texts.targets
            for found in gather(texts, self.tau, strict=self.strict)
        ]

    def _changed(self, coverage: Coverage) -> Ints:
        """The items that are covered enough, with something that differs."""
        enough = coverage.share >= self.tau - _SLACK
        item = coverage.item[enough & ~coverage.sound]
        return np.setdiff1d(item, coverage.item[enough & coverage.sound])

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


def _only_sound(coverage: Coverage) -> Coverage:
    """Coverage in which an item is covered no further while something differs."""
    rows = coverage.sound
    return replace(
        coverage,
        item=coverage.item[rows],
        item_rank=coverage.item_rank[rows],
        share=coverage.share[rows],
        sound=coverage.sound[rows],
    )


def _notice(changed: Ints, queries: list[str]) -> tuple[Notice, ...]:
    if not len(changed):
        return ()
    what = "covered with a number, sign, negation or name that differs"
    return (
        Notice(
            "changed",
            len(changed),
            f"gold items are {what}",
            note_examples(Counter(queries)),
            f"gold item is {what}",
        ),
    )


class _Reader:
    """Reads the run query by query, with the gold items of each."""

    def __init__(
        self, queries: list[str], targets: list[list[Target]], rankings: Rankings
    ) -> None:
        self.retrieved: Ints = np.full(len(queries), -1)
        self.extra = 0
        self.unplaced: dict[str, int] = {}
        self._queries, self._targets, self._rankings = queries, targets, rankings

    def read(self, run: Run) -> Iterator[QueryTexts]:
        """Each query once; those that the run does not have come last, empty."""
        places = {query: place for place, query in enumerate(self._queries)}
        count = [len(row) for row in self._targets]
        first = (np.cumsum(count) - count).tolist() if count else []
        for query, documents in run.rankings(self._rankings.policies):
            place = places.get(query)
            if place is None:
                self.extra += 1
                continue
            kept, self.retrieved[place] = self._rankings.keep(query, documents)
            ranks, found = (
                [rank for rank, _ in kept],
                [document for _, document in kept],
            )
            texts = QueryTexts(place, first[place], self._targets[place], ranks, found)
            self._note_unreadable(query, texts)
            yield texts
        for place in np.flatnonzero(self.retrieved < 0).tolist():
            yield QueryTexts(place, first[place], self._targets[place], [], [])

    def _note_unreadable(self, query: str, texts: QueryTexts) -> None:
        if not texts.targets or not texts.documents or texts.by_offsets:
            return
        if any(text is None for target in texts.targets for text in target.texts):
            self.unplaced[query] = len(texts.documents)
            return
        without = sum(document.text is None for document in texts.documents)
        if without:
            self._rankings.without_text[query] = without

    def refuse_unplaced(self, run: Run) -> None:
        """Where nothing can be compared, zeros would mislead."""
        if self.unplaced and not self._rankings.policies.force:
            queries = ", ".join(note_examples(self.unplaced))
            raise DataError(
                "the gold spans have no text, and the retrieved documents of "
                f"{counted(len(self.unplaced), 'query')} do not say where in their "
                f"source they lie: {queries}",
                path=run.name,
                hint="give each retrieved document doc, start and end, or each span "
                "its text",
            )
