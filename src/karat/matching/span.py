"""The matcher by coverage: a passage is found when enough of its text was retrieved."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.coverage import Coverage
from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.runs import Located, Run, note_examples
from karat.errors import DataError, ParameterError
from karat.matching.layout import lay_out
from karat.matching.matcher import FirstRanks, Matched, Matcher
from karat.matching.measuring import Lane, Measurer, Target, read_targets
from karat.matching.texts import Rankings

__all__ = ["Span"]

_SLACK = 1e-9


@dataclass(frozen=True)
class Span(Matcher):
    """Documents satisfy a gold passage once they cover enough of its text together.

    Where the gold spans and the retrieved documents both say where in a source they
    lie, characters are counted by offsets, and no text is needed. Else texts are
    compared: a document covers the stretches of four words or more that it shares with
    the passage, fewer where it was cut inside the passage. Coverage is a union over the
    documents so far, so a passage may be found in parts, and it makes no difference how
    the same text was cut into chunks. A passage of which a number or a negation is not
    covered is not found, however much else is.

    Attributes:
        tau: the share of a passage's characters from which on it is found.
        gain: `binary` finds a passage or does not; `share` pays each document the share
            of a passage it is first to cover, for nDCG only.
    """

    name: ClassVar[str] = "span"
    reads: ClassVar[tuple[str, ...]] = ("spans", "passages")
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"gain": ("binary", "share")}

    tau: float = 0.9
    gain: str = "binary"

    def __post_init__(self) -> None:
        super().__post_init__()
        tau: Any = self.tau
        if type(tau) not in (int, float) or not 0 < tau <= 1:
            raise ParameterError(self.name, "tau", "a number in (0, 1]", tau)

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matched:
        """Measure what every query of the gold has covered."""
        del judged  # judged non-relevant items cost no more than the others
        queries = gold.queries
        targets = [read_targets(gold, query) for query in queries]
        count = np.fromiter(map(len, targets), np.int64, len(targets))
        grade = np.array([target.grade for row in targets for target in row], np.float64)
        places = {query: place for place, query in enumerate(queries)}
        first_item = (count.cumsum() - count).tolist()
        retrieved = np.full(len(queries), -1)
        rankings = Rankings(self.name, gold, policies)
        measurer = Measurer()
        extra = 0
        for query, documents in run.rankings(policies):
            place = places.get(query)
            if place is None:
                extra += 1
                continue
            kept, retrieved[place] = rankings.keep(query, documents)
            if targets[place]:
                ranks, found = zip(*kept, strict=True) if kept else ((), ())
                lane = Lane(
                    place, first_item[place], targets[place], [*ranks], [*found]
                )
                _check(lane, query, rankings)
                measurer.add(lane)
        _refuse(rankings, run)
        coverage = measurer.finish(len(queries))
        _count_missing(coverage, targets)
        item, rank, worth = self._rows(coverage, grade)
        query_of = np.repeat(np.arange(len(queries)), count)[item]
        order = np.lexsort((item, rank, query_of))
        located = Located(
            query=query_of[order],
            rank=rank[order],
            grade=worth[order],
            retrieved=retrieved,
            extra=extra,
            item=item[order] if self.gain == "binary" else None,
            notices=rankings.notices(),
        )
        matched = lay_out(
            run, queries, located, (count, grade), judged=True, policies=policies
        )
        return replace(matched, hits=replace(matched.hits, coverage=coverage))
