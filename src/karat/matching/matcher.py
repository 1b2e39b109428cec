"""What a matcher is: it says which retrieved document satisfies which gold item."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from karat.data.coverage import Evidence
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Run
from karat.data.spelling import Spelled


@dataclass(frozen=True)
class Matcher(Spelled, ABC):
    """Lays out which gold items a run found, and where, as hits.

    A subclass is a frozen dataclass: its fields are the parameters of its spelling. Its
    docstring's first line is its row in the catalogue.

    Attributes:
        name: the spelling without parameters.
        reads: the kinds of gold it can read, best first.
        choices: for parameters with a fixed set of values, that set.
        limits: for parameters that are numbers, the interval, as in `(0, 1]`.
        costly: whether looking at a document costs money, so that none is looked at
            below the deepest cutoff asked for.
    """

    reads: ClassVar[tuple[str, ...]]
    costly: ClassVar[bool] = False

    def informed(self, queries: Mapping[str, Query]) -> "Matcher":
        """The matcher, knowing what the queries ask; most need not know."""
        del queries
        return self

    @abstractmethod
    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matches:
        """Match every query of the gold.

        Args:
            run: what was retrieved.
            gold: what should have been.
            judged: also lay out rows of judged non-relevant items.
            policies: how ties, duplicates and the like are treated.
        """

    def check(self, metric: str) -> None:
        """Refuse a metric that says nothing over this matcher's hits."""
        del metric

    def evidence(
        self, run: Run, gold: Gold, query: str, policies: Policies | None = None
    ) -> list[Evidence]:
        """Which characters of which documents speak for the gold items of a query.

        Empty for a matcher that does not look at characters.
        """
        del run, gold, query, policies
        return []
