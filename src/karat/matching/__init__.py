"""Matchers: which retrieved document satisfies which gold item.

To add one: a frozen dataclass in a module of this room, and its name in `SHIPPED`.
"""

from karat.catalogue import Catalogue
from karat.data.gold import Gold
from karat.data.parameters import build
from karat.data.spelling import Spelling, parse
from karat.errors import DataError, SpellingError, UsageError
from karat.matching.equality import Exact, Id
from karat.matching.matcher import Matched, Matcher

__all__ = [
    "AUTO",
    "JUDGED",
    "MATCHERS",
    "SHIPPED",
    "Matched",
    "Matcher",
    "choose",
    "read_matcher",
]

SHIPPED: tuple[type[Matcher], ...] = (Id, Exact)

MATCHERS: Catalogue[type[Matcher]] = Catalogue(
    "matcher", {matcher.name: matcher for matcher in SHIPPED}, group="karat.matchers"
)

AUTO = "auto"
"""Stands for the matcher that fits the data: ids where gold has ids, else texts."""

JUDGED = "claims"
"""The matcher that asks a model: it lives in a room above, and is passed in."""


def read_matcher(text: str | Spelling | Matcher) -> Matcher:
    """The matcher a spelling names."""
    if isinstance(text, Matcher):
        return text
    spelling = parse(text) if isinstance(text, str) else text
    if spelling.name == JUDGED and spelling.params:
        problem = "claims takes no values here; --votes or Claims(votes=...) sets them"
        raise SpellingError(str(spelling), problem)
    if spelling.name == JUDGED:
        raise UsageError(
            "claims are matched by a language model, and none was named: add "
            "--model NAME, or judge=karat.judging.Claims(client) in Python"
        )
    return build(MATCHERS[spelling.name], spelling, "matcher")


def choose(gold: Gold) -> Matcher:
    """The first shipped matcher that reads a kind of label the gold holds."""
    kinds = gold.kinds()
    for matcher in SHIPPED:
        if any(kind in kinds for kind in matcher.reads):
            return matcher()
    if not kinds:
        raise DataError(
            "the gold holds no labels: no relevant ids, passages or answers",
            path=gold.name,
        )
    raise DataError(
        f"no matcher reads {', '.join(kinds)} yet; ids or passages are needed",
        path=gold.name,
    )
