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
- `workbench` is what `karat serve` serves, within `Limits`, for a server of your own.
- `training_evaluator` is an evaluator for training with sentence-transformers.
- Errors derive from `karat.KaratError`, and say what, where and what to do about it.

Installed packages add theirs through the entry points `karat.metrics`,
`karat.matchers`, `karat.formats` and `karat.reports`. Names are loaded when first used;
the stub beside this file, which `make docs` writes, has them for type checkers.

Example:
    >>> from karat.extend import make_metric
    >>> str(make_metric("recall", k=5))
    'recall@5'
"""

from importlib import import_module

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
    "karat.judging.claims": "Claims",
    "karat.judging.grading": "grade_pool",
    "karat.judging.prompts": "TEXTS_ARE_DATA ANSWER_IN_JSON fenced "
    "object_schema repair",
    "karat.judging.replies": "NOT_FILLED_IN is_blank read_object",
    "karat.judging.session": "DryRun JudgeSession",
    "karat.llm.callables": "FunctionClient run_sync",
    "karat.llm.chat_client": "ChatClient",
    "karat.llm.limits": "JOURNAL Client Prices Settings",
    "karat.matching": "Matcher read_matcher",
    "karat.matching.normaliser": "fold",
    "karat.matching.similarity": "Fuzzy Semantic",
    "karat.matching.texts": "TextMatcher",
    "karat.metrics": "BinaryMetric CutoffMetric Metric make_metric read_metric",
    "karat.metrics.gains": "NDCG",
    "karat.metrics.ranking": "NDCGAny",
    "karat.metrics.recall_points": "InterpolatedAverage InterpolatedPrecision",
    "karat.reading.files": "decode_text open_binary",
    "karat.reading.format": "Format",
    "karat.reading.source": "Source",
    "karat.reading.yaml_text": "decode_yaml",
    "karat.reports": "Report",
    "karat.results.scores": "MetricScores",
    "karat.training": "training_evaluator",
    "karat.web.app": "workbench",
    "karat.web.guard": "Limits",
    "karat.writing": "write_file",
}
"""Where names come from; `public=name` where they are called otherwise there."""

_SOURCES = {
    public: (module, name or public)
    for module, names in _HOMES.items()
    for public, _, name in (text.partition("=") for text in names.split())
}
__all__ = sorted(_SOURCES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _SOURCES:
        raise AttributeError(f"module 'karat.extend' has no attribute {name!r}")
    module, original = _SOURCES[name]
    value = globals()[name] = getattr(import_module(module), original)
    return value


def __dir__() -> list[str]:
    return __all__
