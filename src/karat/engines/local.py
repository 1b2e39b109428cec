"""The local engine: this process, one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.gold import Gold
from karat.data.runs import Notice, Run
from karat.data.verdicts import Verdict
from karat.engines.engine import Engine, Outcome, Plan
from karat.matching import Matcher
from karat.matching.matcher import FirstRanks

__all__ = ["Local"]

_NONE: Floats = np.empty(0)


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
            verdicts |= matched.verdicts
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
        )
