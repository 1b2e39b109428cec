"""From located rows to hits, for every matcher; and the refusals on the way."""

from collections.abc import Iterable, Sequence

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.hits import Hits
from karat.data.matches import Matches
from karat.data.narrowing import narrow
from karat.data.policies import Policies
from karat.data.runs import Located, Run
from karat.errors import MismatchError

__all__ = ["examples", "lay_out"]


def lay_out(
    run: Run,
    queries: Iterable[str],
    located: Located,
    items: Sequence[str],
    gold: tuple[Ints, Floats],
    *,
    judged: bool,
    policies: Policies,
) -> Matches:
    """Hits from rows, with the narrowing the policies ask for.

    Args:
        run: what was retrieved, to name it in a message.
        queries: ids of the queries that the rows count.
        located: the rows.
        items: the names of all gold items, query after query.
        gold: number of gold items of each query, and the grades of all of them.
        judged: whether rows of judged non-relevant items are among the rows.
        policies: how much of each ranking is read.
    """
    missing = located.retrieved < 0
    absent = np.count_nonzero(missing)
    if absent and absent == len(missing):
        raise MismatchError(
            "run and gold have no query in common: the run has "
            f"{examples(run.queries())}, the gold {examples(queries)}",
            path=run.name,
            hint="check that both use the same query ids",
        )
    if policies.depth is not None or policies.judged_only:
        located = narrow(located, policies)
    count, grade = gold
    hits = Hits(
        query=located.query,
        rank=located.rank,
        grade=located.grade,
        gold_count=count,
        gold_grade=grade,
        retrieved=np.maximum(located.retrieved, 0) if absent else located.retrieved,
        item=located.item,
        distinct=located.distinct,
        judged=judged,
    )
    return Matches(hits, items, missing, located.extra, located.notices)


def examples(ids: Iterable[str]) -> str:
    """Three of the ids, quoted, for a message."""
    return ", ".join(repr(name[:60]) for name in sorted(ids)[:3]) or "none"
