"""The matchers karat ships, and which of them fits the data."""

from functools import lru_cache
from itertools import chain

from karat.catalogue import Catalogue, subclass_of
from karat.data.gold import Gold
from karat.data.runs import Run
from karat.data.spelling import Spelling, build, parse
from karat.errors import DataError, ParameterError, SpellingError, UsageError
from karat.matching.matcher import Matcher

SHIPPED: dict[str, str] = {
    "id": "karat.matching.ids:Id",
    "exact": "karat.matching.contains:Exact",
    "normalized": "karat.matching.contains:Normalized",
    "chunk": "karat.matching.contains:Chunk",
    "contains": "karat.matching.contains:Contains",
    "fuzzy": "karat.matching.fuzzy:Fuzzy",
    "span": "karat.matching.coverage.matcher:SpanMatcher",
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
    """The matcher a spelling names."""
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
    """The matcher that fits the data.

    Ids where any gold id occurs in the run; else whatever reads the spans or the
    passages of the gold; answers only where nothing else is labelled.
    """
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
