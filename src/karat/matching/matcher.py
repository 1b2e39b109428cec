"""What a matcher is: it says which retrieved document satisfies which gold item."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

from karat.data.arrays import Bools
from karat.data.evidence import Evidence
from karat.data.gold import Gold
from karat.data.hits import Hits
from karat.data.judgements import Usage
from karat.data.parameters import plain_numbers, require_choices
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Notice, Run
from karat.data.spelling import Spelling
from karat.data.verdicts import Verdict

__all__ = ["FirstRanks", "Matched", "Matcher"]


class FirstRanks(NamedTuple):
    """First rank of each gold item of one query, None where it was not found."""

    ranks: dict[str, int | None]
    retrieved: int


@dataclass(frozen=True, eq=False)
class Matched:
    """What a matcher found.

    Attributes:
        hits: the rows every metric reads, one block per query of the gold, in order.
        missing: which queries the run does not have at all.
        extra: how many queries of the run have no gold.
        notices: what was seen on the way.
        failures: query index -> reason, for queries that could not be matched.
        verdicts: query index -> what a judge said of each of its items, and why.
        first_ranks: where each item was first found, when looking again would cost.
        usage: query index -> tokens that a judge took for it.
        provenance: what it takes to match the same again.
    """

    hits: Hits
    missing: Bools
    extra: int = 0
    notices: tuple[Notice, ...] = ()
    failures: Mapping[int, str] = field(default_factory=dict)
    verdicts: Mapping[int, tuple[Verdict, ...]] = field(default_factory=dict)
    first_ranks: Sequence[FirstRanks] | None = None
    usage: Mapping[int, Usage] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Matcher(ABC):
    """Lays out which gold items a run found, and where, as hits.

    A subclass is a frozen dataclass: its fields are the parameters of its spelling. Its
    docstring's first line is its row in the catalogue.

    Attributes:
        name: the spelling without parameters.
        reads: the kinds of gold it can read, best first.
        choices: for parameters with a fixed set of values, that set.
        costly: whether looking at a document costs money, so that none is looked at
            below the deepest cutoff asked for.
    """

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    costly: ClassVar[bool] = False

    def __post_init__(self) -> None:
        plain_numbers(self)
        require_choices(self, self.choices)

    def informed(self, queries: Mapping[str, Query]) -> "Matcher":
        """The matcher, knowing what the queries ask; most need not know."""
        del queries
        return self

    @abstractmethod
    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matched:
        """Match every query of the gold.

        Args:
            run: what was retrieved.
            gold: what should have been.
            judged: also lay out rows of judged non-relevant items.
            policies: how ties, duplicates and the like are treated.
        """

    @abstractmethod
    def first_ranks(
        self, run: Run, gold: Gold, policies: Policies
    ) -> Sequence[FirstRanks]:
        """Where each gold item was first found, query by query, in the gold's order."""

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

    @property
    def spelling(self) -> Spelling:
        """The canonical spelling; parameters at their defaults are left out."""
        params = tuple(
            (field.name, getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return Spelling(self.name, params)

    def __str__(self) -> str:
        return str(self.spelling)
