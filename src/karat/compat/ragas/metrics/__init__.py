"""The metrics that `ragas.metrics` has for retrieval, called with a sample."""

from karat.compat.ragas.metrics.llm import (
    LLMContextPrecisionWithoutReference,
    LLMContextPrecisionWithReference,
    LLMContextRecall,
)
from karat.compat.ragas.metrics.non_llm import (
    DistanceMeasure,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
)
from karat.compat.ragas.metrics.scoring import MetricResult

__all__ = [
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
]
