"""The metrics that `ragas.metrics` has for retrieval, called with a sample."""

from karat.compat.ragas.metrics.llm import (
    ContextPrecision,
    ContextRecall,
    ContextUtilization,
    LLMContextPrecisionWithoutReference,
    LLMContextPrecisionWithReference,
    LLMContextRecall,
    context_precision,
    context_recall,
    context_utilization,
)
from karat.compat.ragas.metrics.non_llm import (
    DistanceMeasure,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
)
from karat.compat.ragas.metrics.scoring import MetricResult, elsewhere

__all__ = [
    "ContextPrecision",
    "ContextRecall",
    "ContextUtilization",
    "DistanceMeasure",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "LLMContextPrecisionWithReference",
    "LLMContextPrecisionWithoutReference",
    "LLMContextRecall",
    "MetricResult",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "NonLLMStringSimilarity",
    "context_precision",
    "context_recall",
    "context_utilization",
]

__getattr__ = elsewhere
