"""The local engine: this process, one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.gold import Gold
from karat.data.judgements import Usage
from karat.data.runs import Notice, Run
from karat.data.verdicts import Verdict
from karat.engines.engine import Engine, Outcome, Plan
from karat.matching.matcher import FirstRanks, Matched, Matcher

__all__ = ["Local"]

_NONE: Floats = np.empty(0)
_FEW = 0.1
_ENOUGH = 20


class Local(Engine):
    """Matches and scores in this process."""

    name: ClassVar[str] = "local"

    def run(self, plan: Plan, run: Run, gold: Gold, own_k: Ints | None) -> Outcome:
        """Match once per matcher, then score every measure."""
        scores: list[Floats] = [_NONE] * len(plan.measures)
        notices: list[Notice] = []
        failures: dict[int, Mapping[int, str]] = {}
        verdicts: dict[int, tuple[Verdict, ...]] = {}
        first: dict[Matcher, Sequence[FirstRanks]] = {}
        usage: dict[int, Usage] = {}
        provenance: dict[str, Any] = {}
        for stage in plan.stages:
            policies = plan.policies_of(stage, own_k)
            matched = stage.matcher.match(
                run, gold, judged=stage.judged, policies=policies
            )
            hits = matched.hits
            if own_k is not None:
                hits = replace(hits, own_k=own_k)
            for row in stage.rows:
                scores[row] = plan.measures[row].metric.score(hits)
                failures[row] = matched.failures
            notices += matched.notices
            # A judge says itself what it could not judge, and reads texts, not names.
            if not stage.matcher.costly:
                notices += _hardly_any(matched)
                notices += _without_gold(stage.matcher, matched)
            verdicts |= matched.verdicts
            usage |= matched.usage
            provenance |= matched.provenance
            if matched.first_ranks is not None:
                first[stage.matcher] = matched.first_ranks
        return Outcome(
            np.array(scores),
            matched.missing,
            matched.extra,
            tuple(notices),
            {row: whys for row, whys in failures.items() if whys},
            verdicts,
            first,
            usage,
            provenance,
        )


def _hardly_any(matched: Matched) -> tuple[Notice, ...]:
    """A notice where so little is found that ids may be written in two ways."""
    hits = matched.hits
    if len(hits.query) >= _FEW * len(hits.gold_grade):
        return ()
    credits = hits.credits()
    found, total = len(credits.query), int(credits.relevant[~matched.missing].sum())
    if total < _ENOUGH or found >= _FEW * total:
        return ()
    of, why = f"of {total} relevant items", "found; do run and gold name them alike?"
    return (Notice("found", found, f"{of} are {why}", one=f"{of} is {why}"),)


def _without_gold(matcher: Matcher, matched: Matched) -> tuple[Notice, ...]:
    """A notice where a matcher has nothing to match: why its metrics say nothing."""
    count = matched.hits.size - int(np.count_nonzero(matched.hits.gold_count))
    if not count:
        return ()
    kinds = " or ".join(matcher.reads)
    why = f"no {kinds} in gold: no score by {matcher.name}"
    text, one = f"queries have {why}", f"query has {why}"
    return (Notice(f"no {kinds}", count, text, one=one),)
