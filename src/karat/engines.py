"""Engines: where an evaluation is computed. Any metric runs on any of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from karat.catalogue import Catalogue
from karat.data.arrays import Ints
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Notice, Run
from karat.data.spelling import LETTER
from karat.matching.matcher import Matcher
from karat.results.measures import Measure

__all__ = ["ENGINES", "SHIPPED", "Engine", "Local", "Plan"]


@dataclass(frozen=True)
class Plan:
    """What to compute: small, frozen, the same for every engine.

    Attributes:
        measures: the columns of the result, in order.
        matchers: the matchers that they read, by spelling.
        default_matcher: spelling of the matcher of metrics that bring none.
        policies: the rules applied.
    """

    measures: tuple[Measure, ...]
    matchers: Mapping[str, Matcher]
    default_matcher: str
    policies: Policies

    @cached_property
    def judged(self) -> dict[str, bool]:
        """Whether any measure of a matcher reads judged non-relevant items."""
        return {
            name: any(
                measure.metric.needs_judged
                for measure in self.measures
                if measure.matcher == name
            )
            for name in self.matchers
        }

    def policies_of(self, matcher: str, own_k: Ints | None) -> Policies:
        """The rules for a matcher: a costly one reads no deeper than is asked for."""
        if not self.matchers[matcher].costly:
            return self.policies
        own = 1 if own_k is None else int(own_k.max(initial=1))
        metrics = (m.metric for m in self.measures if m.matcher == matcher)
        cutoffs = [getattr(metric, LETTER, None) for metric in metrics]
        if None in cutoffs:
            return self.policies
        deepest = max(own if k == LETTER else int(k or 1) for k in cutoffs)
        return replace(
            self.policies, depth=min(deepest, self.policies.depth or deepest)
        )


class Engine(ABC):
    """Carries out a plan on a run and gold."""

    name: ClassVar[str]

    @abstractmethod
    def run(
        self, plan: Plan, run: Run, gold: Gold, own_k: Ints | None
    ) -> dict[str, Matches]:
        """What each matcher of the plan found, by its spelling.

        Args:
            plan: what to compute.
            run: what was retrieved.
            gold: what should have been.
            own_k: each query's cutoff for metrics spelled with the letter k.
        """


class Local(Engine):
    """Matches in this process, in one pass per matcher."""

    name: ClassVar[str] = "local"

    def run(
        self, plan: Plan, run: Run, gold: Gold, own_k: Ints | None
    ) -> dict[str, Matches]:
        """What each matcher of the plan found, by its spelling."""
        found = {}
        for name, matcher in plan.matchers.items():
            policies = plan.policies_of(name, own_k)
            judged = plan.judged[name]
            matches = matcher.match(run, gold, judged=judged, policies=policies)
            # A judge says itself what it could not judge.
            if not matcher.costly and (lacking := _without_gold(matcher, matches)):
                matches = replace(matches, notices=(*matches.notices, lacking))
            found[name] = matches
        return found


def _without_gold(matcher: Matcher, matches: Matches) -> Notice | None:
    """A notice where a matcher has nothing to match: why its metrics say nothing."""
    count = matches.hits.size - int(np.count_nonzero(matches.hits.gold_count))
    if not count:
        return None
    kinds = " or ".join(matcher.reads)
    needs = f"{matcher.name} needs {kinds}"
    text, one = f"queries have no {kinds} in gold; {needs}", f"query has no {kinds}"
    one += f" in gold; {needs}"
    return Notice(f"no {kinds}", count, text, one=one)


SHIPPED: tuple[type[Engine], ...] = (Local,)

ENGINES: Catalogue[type[Engine]] = Catalogue(
    "engine", {engine.name: engine for engine in SHIPPED}, group="karat.engines"
)
