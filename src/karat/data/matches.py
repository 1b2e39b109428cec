"""Matches: what a matcher found of the gold in a run, query by query."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from karat.data.arrays import Bools
from karat.data.hits import Hits, concatenate_hits
from karat.data.judgements import Usage, Verdict
from karat.data.runs import Notice

T = TypeVar("T")
_EXAMPLES = 3


@dataclass(frozen=True, eq=False)
class Matches:
    """The hits of one matcher, the names of the items they hit, and what else is known.

    Attributes:
        hits: the rows every metric reads, one block per query of the gold, in order.
        items: names of the gold items, in the order of `hits.gold_grade`.
        missing: which queries the run does not have at all.
        extra: how many queries of the run have no gold.
        notices: what the matcher has to say.
        run_notices: ties, duplicates and the like in the run, if the matcher counted
            them on the way; None when it did not.
        failures: query index -> reason, for queries that could not be matched.
        verdicts: query index -> what a judge said of each of its items, and why.
        usage: query index -> tokens that a judge took for it.
        provenance: what it takes to match the same again.

    Example:
        >>> import karat
        >>> result = karat.evaluate({"q": ["a", "b"]}, gold={"q": {"b": 2}})
        >>> result.matches["id"].items, result.matches["id"].missing.tolist()
        (['b'], [False])
    """

    hits: Hits
    items: Sequence[str]
    missing: Bools
    extra: int = 0
    notices: tuple[Notice, ...] = field(default=(), metadata={"saved": False})
    run_notices: tuple[Notice, ...] | None = field(
        default=None, metadata={"saved": False}
    )
    failures: Mapping[int, str] = field(default_factory=dict)
    verdicts: Mapping[int, tuple[Verdict, ...]] = field(default_factory=dict)
    usage: Mapping[int, Usage] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(
        default_factory=dict, metadata={"saved": False}
    )

    def first_ranks(
        self, places: Iterable[int] | None = None
    ) -> list[dict[str, int | None]]:
        """The first rank of each gold item by name; None: not found.

        Query by query, or at these places. Items judged non-relevant are left out where
        nobody looked for them.
        """
        hits = self.hits
        ranks, known = hits.first_rank.tolist(), [True] * len(hits.gold_grade)
        if not hits.judged:
            known = (hits.gold_grade > 0).tolist()
        starts, rows = [0, *hits.gold_count.cumsum().tolist()], []
        for place in range(hits.size) if places is None else places:
            own = slice(*starts[place : place + 2])
            items = zip(self.items[own], ranks[own], known[own], strict=True)
            rows.append({name: rank or None for name, rank, looked in items if looked})
        return rows

    def labels(self) -> list[dict[str, float]]:
        """The grade of each gold item by name, query by query."""
        rows = zip(self.items, self.hits.gold_grade.tolist(), strict=True)
        return [dict(islice(rows, count)) for count in self.hits.gold_count.tolist()]


def merge_by_query(
    sizes: Iterable[int], parts: Iterable[Mapping[int, T]]
) -> dict[int, T]:
    """What parts of so many queries know of each, by its index in the whole."""
    return {
        start + place: value
        for start, values in zip([0, *accumulate(sizes)], parts, strict=False)
        for place, value in values.items()
    }


def merge_matches(parts: Sequence[Matches]) -> Matches:
    """The matches of all queries, from those of disjoint parts in the same order."""
    sizes = [part.hits.size for part in parts]
    seen = [part.run_notices for part in parts if part.run_notices is not None]
    return replace(
        parts[0],
        hits=concatenate_hits([part.hits for part in parts]),
        items=[name for part in parts for name in part.items],
        missing=np.concatenate([part.missing for part in parts]),
        extra=sum(part.extra for part in parts),
        notices=merge_notices(part.notices for part in parts),
        run_notices=merge_notices(seen) if seen else None,
        failures=merge_by_query(sizes, (part.failures for part in parts)),
        verdicts=merge_by_query(sizes, (part.verdicts for part in parts)),
        usage=merge_by_query(sizes, (part.usage for part in parts)),
        provenance={k: v for part in parts for k, v in part.provenance.items()},
    )


def merge_notices(parts: Iterable[tuple[Notice, ...]]) -> tuple[Notice, ...]:
    """Each notice once, with the counts of all parts and the first examples."""
    merged: dict[tuple[str, str], Notice] = {}
    for notice in (notice for part in parts for notice in part):
        key = (notice.kind, notice.text)
        before = merged.get(key, replace(notice, count=0, examples=()))
        merged[key] = replace(
            before,
            count=before.count + notice.count,
            examples=(*before.examples, *notice.examples)[:_EXAMPLES],
        )
    return in_order(merged.values())


def in_order(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Each notice once, in an order that does not depend on who spoke first."""
    return tuple(sorted({*notices}, key=attrgetter("kind", "text", "count")))
