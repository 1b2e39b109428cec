"""The local engine: this process, one pass."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.gold import Gold
from karat.data.runs import Notice, Run
from karat.engines.engine import Engine, Outcome, Plan

__all__ = ["Local"]

_NONE: Floats = np.empty(0)


class Local(Engine):
    """Matches and scores in this process."""

    name: ClassVar[str] = "local"

    def run(self, plan: Plan, run: Run, gold: Gold, own_k: Ints | None) -> Outcome:
        """Match once per matcher, then score every measure."""
        scores: list[Floats] = [_NONE] * len(plan.measures)
        notices: list[Notice] = []
        for stage in plan.stages:
            matched = stage.matcher.match(
                run, gold, judged=stage.judged, policies=plan.policies
            )
            hits = matched.hits
            if own_k is not None:
                hits = replace(hits, own_k=own_k)
            for row in stage.rows:
                scores[row] = plan.measures[row].metric.score(hits)
            notices += matched.notices
        table = np.array(scores)
        return Outcome(table, matched.missing, matched.extra, tuple(notices))
