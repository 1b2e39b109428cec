"""What an engine is: where the work is done. The plan says what."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from karat.data.arrays import Bools, Floats, Ints
from karat.data.gold import Gold
from karat.data.judgements import Usage
from karat.data.policies import Policies
from karat.data.runs import Notice, Run
from karat.data.spelling import LETTER
from karat.data.verdicts import Verdict
from karat.matching.matcher import FirstRanks, Matcher
from karat.metrics import Metric

__all__ = ["Engine", "Measure", "Outcome", "Plan", "Stage"]


@dataclass(frozen=True)
class Measure:
    """One column of the result: a metric over a matcher.

    Attributes:
        label: the canonical spelling.
        metric: the formula, with the evaluation's threshold filled in.
        matcher: which document satisfies which gold item.
    """

    label: str
    metric: Metric
    matcher: Matcher


@dataclass(frozen=True)
class Stage:
    """One matcher's work: the measures that read its hits.

    Attributes:
        matcher: which document satisfies which gold item.
        rows: indices of its measures in the plan.
        judged: whether any of them reads rows of judged non-relevant items.
    """

    matcher: Matcher
    rows: tuple[int, ...]
    judged: bool


@dataclass(frozen=True)
class Plan:
    """What to compute: small, frozen, the same for every engine.

    Attributes:
        measures: the columns of the result, in order.
        policies: the rules applied.
        asked: (spelling as the caller wrote it, canonical spelling) of each metric.
    """

    measures: tuple[Measure, ...]
    policies: Policies
    asked: tuple[tuple[str, str], ...] = ()

    @cached_property
    def matchers(self) -> dict[str, str]:
        """Label of each measure -> spelling of its matcher."""
        return {measure.label: str(measure.matcher) for measure in self.measures}

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The measures grouped by matcher, so that each matcher works once."""
        groups: dict[Matcher, list[int]] = {}
        for index, measure in enumerate(self.measures):
            groups.setdefault(measure.matcher, []).append(index)
        return tuple(
            Stage(
                matcher,
                tuple(rows),
                judged=any(self.measures[row].metric.needs_judged for row in rows),
            )
            for matcher, rows in groups.items()
        )

    def policies_of(self, stage: Stage, own_k: Ints | None) -> Policies:
        """The rules of a stage: a costly matcher reads no deeper than is asked for."""
        if not stage.matcher.costly:
            return self.policies
        own = 1 if own_k is None else int(own_k.max(initial=1))
        metrics = (self.measures[row].metric for row in stage.rows)
        cutoffs = [getattr(metric, LETTER, None) for metric in metrics]
        if None in cutoffs:
            return self.policies
        deepest = max(own if k == LETTER else int(k or 1) for k in cutoffs)
        return replace(
            self.policies, depth=min(deepest, self.policies.depth or deepest)
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a plan.

    Attributes:
        scores: a row per measure, a column per query of the gold; NaN where undefined.
        missing: which queries the run does not have.
        extra: how many queries of the run have no gold.
        notices: what was seen on the way.
        failures: row of the measure -> query index -> why it has no score.
        verdicts: query index -> what a judge said of its items, and why.
        first_ranks: by matcher, where each item was found, when it was told.
        usage: query index -> tokens that judges took for it.
        provenance: what it takes to match the same again.
    """

    scores: Floats
    missing: Bools
    extra: int = 0
    notices: tuple[Notice, ...] = ()
    failures: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    verdicts: Mapping[int, tuple[Verdict, ...]] = field(default_factory=dict)
    first_ranks: Mapping[Matcher, Sequence[FirstRanks]] = field(default_factory=dict)
    usage: Mapping[int, Usage] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


class Engine(ABC):
    """Carries out a plan on a run and gold."""

    name: ClassVar[str]

    @abstractmethod
    def run(self, plan: Plan, run: Run, gold: Gold, own_k: Ints | None) -> Outcome:
        """Match once per matcher, then score every measure.

        Args:
            plan: what to compute.
            run: what was retrieved.
            gold: what should have been.
            own_k: each query's cutoff for metrics spelled with the letter k.
        """
