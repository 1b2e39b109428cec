"""Matchers: which retrieved document satisfies which gold item, and which karat ships.

To add one: a frozen dataclass in a module of this room, and its row in `SHIPPED`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import ClassVar

from karat.catalogue import Catalogue, subclass_of
from karat.data.gold import Gold
from karat.data.hits import Evidence
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Run
from karat.data.spelling import Spelled, Spelling, build, parse
from karat.errors import DataError, ParameterError, SpellingError, UsageError


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

    Example:
        >>> from karat.extend import read_matcher
        >>> matcher = read_matcher("span(tau=0.8)")
        >>> matcher.name, matcher.reads, str(matcher)
        ('span', ('spans', 'passages'), 'span(tau=0.8)')
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


SHIPPED: dict[str, str] = {
    "id": "karat.matching.ids:Id",
    "exact": "karat.matching.contains:Exact",
    "normalized": "karat.matching.contains:Normalized",
    "chunk": "karat.matching.contains:Chunk",
    "contains": "karat.matching.contains:Contains",
    "fuzzy": "karat.matching.similarity:Fuzzy",
    "span": "karat.matching.span:SpanMatcher",
}

MATCHERS: Catalogue[type[Matcher]] = Catalogue(
    "matcher", SHIPPED, "karat.matchers", subclass_of(Matcher)
)

AUTO = "auto"
"""Stands for the matcher that fits the data, see `choose`."""

# What reads a kind of gold that is not ids, best first.
_BY_KIND = {
    "spans": ("span",),
    "passages": ("span", "chunk"),
    "answers": ("contains",),
}

JUDGED = "claims"
"""The matcher that asks a model: it lives in a room above, and is passed in."""


def read_matcher(text: str | Spelling | Matcher) -> Matcher:
    """The matcher a spelling names.

    Example:
        >>> str(read_matcher("fuzzy(0.9)"))
        'fuzzy(threshold=0.9)'
        >>> read_matcher("fuzy")
        Traceback (most recent call last):
            ...
        karat.errors.UnknownNameError: unknown matcher 'fuzy'; did you mean 'fuzzy'?
    """
    if isinstance(text, Matcher):
        return text
    if not isinstance(text, str | Spelling):
        raise ParameterError("evaluate", "match", "a spelling or a matcher", text)
    spelling = parse(text) if isinstance(text, str) else text
    if spelling.name == JUDGED and spelling.params:
        problem = "claims takes no values here; --votes or Claims(votes=...) sets them"
        raise SpellingError(str(spelling), problem)
    if spelling.name == JUDGED:
        raise UsageError(
            "claims need a judge, and no language model was named: "
            "judge=karat.extend.Claims(client) in Python, or "
            "karat evaluate FILE -m context_recall@5 --model NAME"
        )
    if spelling.name == "semantic":
        raise UsageError(
            "semantic needs embeddings, and karat ships no model: bring a function "
            "from texts to vectors, match=karat.extend.Semantic(embed, threshold=0.8)"
        )
    return build(MATCHERS[spelling.name], spelling, "matcher")


@lru_cache
def _plain(name: str) -> Matcher:
    return MATCHERS[name]()


def choose(gold: Gold, run: Run) -> Matcher:
    """The matcher that fits the data: by ids where any occurs, else by texts."""
    kinds = gold.kinds()
    if kinds == ("documents",):
        return _plain("id")
    if "documents" in kinds and run.holds_any({*chain(*gold.documents.values())}):
        return _plain("id")
    for kind, names in _BY_KIND.items():
        if kind == "answers" and "documents" in kinds:
            break
        if kind in kinds and (name := next(filter(MATCHERS.__contains__, names), None)):
            return _plain(name)
    if "documents" in kinds:
        return _plain("id")
    raise DataError(
        "the gold holds no labels: no relevant ids, passages or answers", path=gold.name
    )
