"""What plug-ins are built on: the only import path for code that extends karat.

What is exported here and from `karat` is public: it is documented, and it changes only
with the major version. Every other module may change at any time.

- A metric derives from `Metric`, `CutoffMetric` or `BinaryMetric`; its `score` turns
  `Hits` into one float per query, with the array helpers.
- A matcher derives from `TextMatcher` and compares pairs of texts, or from `Matcher`
  and lays out `Hits` itself.
- `Semantic` is the matcher that compares embeddings, made by a function of yours.
- A format derives from `Format` and turns a `Source` into records, or a `Dataset`.
- A report is a function of the type `Report`.
- `Claims` is the matcher that asks a model; `ChatClient` and `FunctionClient` make one
  of what you bring, `Settings` and `Prices` say how it is asked and for how much.
- A judge of your own is a generator that yields a `Prompt`, receives a `Reply` and
  returns what came of it: a `Conversation`. A `JudgeSession` runs many at once.
- Errors derive from `karat.KaratError`, and say what, where and what to do about it.

Installed packages add theirs through the entry points `karat.metrics`,
`karat.matchers`, `karat.formats` and `karat.reports`. Names are loaded when first used.

Example:
    >>> from karat.extend import make_metric
    >>> str(make_metric("recall", k=5))
    'recall@5'
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.catalogue import call_plugin
    from karat.data.arrays import (
        Bools,
        Floats,
        Ints,
        count_by,
        place_by,
        ratio,
        running_sum,
        sum_by,
    )
    from karat.data.gold import Item, Span
    from karat.data.hits import Credits, Hits
    from karat.data.judgements import Conversation, Prompt, Reply
    from karat.data.matches import Matches
    from karat.data.policies import (
        Duplicates,
        Extra,
        Missing,
        Policies,
        Precision,
        Ties,
        Undefined,
        policies_for,
    )
    from karat.data.queries import Dataset, Query
    from karat.data.runs import Document, Labels, Notice
    from karat.errors import (
        CallError,
        DataError,
        FormatError,
        IncompleteError,
        InvalidReply,
        MismatchError,
        MissingExtraError,
        OfflineMissError,
        ParameterError,
        UnknownNameError,
        UsageError,
    )
    from karat.judging import (
        ChatClient,
        Claims,
        DryRun,
        FunctionClient,
        JudgeSession,
        Prices,
        grade_pool,
    )
    from karat.judging.prompts import (
        DATA as TEXTS_ARE_DATA,
        JSON as ANSWER_IN_JSON,
        fenced,
        object_schema,
        repair,
    )
    from karat.judging.replies import NOT_FILLED_IN, is_blank, read_object
    from karat.llm import JOURNAL, Client, Settings, run_sync
    from karat.matching.fuzzy import Fuzzy
    from karat.matching.matcher import Matcher
    from karat.matching.normaliser import fold
    from karat.matching.pairwise import TextMatcher
    from karat.matching.semantic import Semantic
    from karat.matching.shipped import read_matcher
    from karat.metrics import make_metric, read_metric
    from karat.metrics.gains import NDCG
    from karat.metrics.metric import BinaryMetric, CutoffMetric, Metric
    from karat.metrics.ranking import NDCGAny
    from karat.metrics.recall_points import InterpolatedAverage, InterpolatedPrecision
    from karat.reading.decoding import decode_text
    from karat.reading.format import Format
    from karat.reading.streams import Source, open_binary
    from karat.reading.syntax.yaml_text import decode_yaml
    from karat.reports import Report
    from karat.results.scores import MetricScores
    from karat.writing import write_file

__all__ = [
    "ANSWER_IN_JSON",
    "JOURNAL",
    "NDCG",
    "NOT_FILLED_IN",
    "TEXTS_ARE_DATA",
    "BinaryMetric",
    "Bools",
    "CallError",
    "ChatClient",
    "Claims",
    "Client",
    "Conversation",
    "Credits",
    "CutoffMetric",
    "DataError",
    "Dataset",
    "Document",
    "DryRun",
    "Duplicates",
    "Extra",
    "Floats",
    "Format",
    "FormatError",
    "FunctionClient",
    "Fuzzy",
    "Hits",
    "IncompleteError",
    "InterpolatedAverage",
    "InterpolatedPrecision",
    "Ints",
    "InvalidReply",
    "Item",
    "JudgeSession",
    "Labels",
    "Matcher",
    "Matches",
    "Metric",
    "MetricScores",
    "MismatchError",
    "Missing",
    "MissingExtraError",
    "NDCGAny",
    "Notice",
    "OfflineMissError",
    "ParameterError",
    "Policies",
    "Precision",
    "Prices",
    "Prompt",
    "Query",
    "Reply",
    "Report",
    "Semantic",
    "Settings",
    "Source",
    "Span",
    "TextMatcher",
    "Ties",
    "Undefined",
    "UnknownNameError",
    "UsageError",
    "call_plugin",
    "count_by",
    "decode_text",
    "decode_yaml",
    "fenced",
    "fold",
    "grade_pool",
    "is_blank",
    "make_metric",
    "object_schema",
    "open_binary",
    "place_by",
    "policies_for",
    "ratio",
    "read_matcher",
    "read_metric",
    "read_object",
    "repair",
    "run_sync",
    "running_sum",
    "sum_by",
    "write_file",
]

_HOMES = {
    "karat.catalogue": "call_plugin",
    "karat.data.arrays": "Bools Floats Ints count_by place_by ratio running_sum sum_by",
    "karat.data.gold": "Item Span",
    "karat.data.hits": "Credits Hits",
    "karat.data.judgements": "Conversation Prompt Reply",
    "karat.data.matches": "Matches",
    "karat.data.policies": "Duplicates Extra Missing Policies Precision Ties Undefined "
    "policies_for",
    "karat.data.queries": "Dataset Query",
    "karat.data.runs": "Document Labels Notice",
    "karat.errors": "CallError DataError FormatError IncompleteError InvalidReply "
    "MismatchError MissingExtraError OfflineMissError ParameterError UnknownNameError "
    "UsageError",
    "karat.judging": "ChatClient Claims DryRun FunctionClient JudgeSession Prices "
    "grade_pool",
    "karat.judging.prompts": "TEXTS_ARE_DATA=DATA ANSWER_IN_JSON=JSON fenced "
    "object_schema repair",
    "karat.judging.replies": "NOT_FILLED_IN is_blank read_object",
    "karat.llm": "JOURNAL Client Settings run_sync",
    "karat.matching.fuzzy": "Fuzzy",
    "karat.matching.matcher": "Matcher",
    "karat.matching.normaliser": "fold",
    "karat.matching.pairwise": "TextMatcher",
    "karat.matching.semantic": "Semantic",
    "karat.matching.shipped": "read_matcher",
    "karat.metrics": "make_metric read_metric",
    "karat.metrics.gains": "NDCG",
    "karat.metrics.metric": "BinaryMetric CutoffMetric Metric",
    "karat.metrics.ranking": "NDCGAny",
    "karat.metrics.recall_points": "InterpolatedAverage InterpolatedPrecision",
    "karat.reading.decoding": "decode_text",
    "karat.reading.format": "Format",
    "karat.reading.streams": "Source open_binary",
    "karat.reading.syntax.yaml_text": "decode_yaml",
    "karat.reports": "Report",
    "karat.results.scores": "MetricScores",
    "karat.writing": "write_file",
}
"""Where names come from; `public=name` where they are called otherwise there."""

_SOURCES = {
    public: (module, name or public)
    for module, names in _HOMES.items()
    for public, _, name in (text.partition("=") for text in names.split())
}

if not TYPE_CHECKING:  # so that a name which is not there is an error of types, too

    def __getattr__(name: str) -> object:
        if name not in _SOURCES:
            raise AttributeError(f"module 'karat.extend' has no attribute {name!r}")
        module, original = _SOURCES[name]
        value = getattr(import_module(module), original)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
