"""ragas' context recall and its siblings: the same classes, calls and numbers.

    llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI())
    result = await ContextRecall(llm=llm).ascore(
        user_input=..., retrieved_contexts=[...], reference=...
    )
    result.value, result.reason

All names can be imported from here, or from the modules they have in ragas: `llms`,
`embeddings`, `run_config`, `dataset_schema`, `evaluation`, `metrics` and what is below.
The numbers are those of ragas 0.4.3, by karat's formulas; `NonLLM...` and `IDBased...`
need no model.

docs/coming-from/ragas.md lists every point in which it differs from the original.
"""

from sys import modules as _modules

from karat.compat.ragas import judging, llms, metrics
from karat.compat.ragas.dataset_schema import (
    EvaluationDataset,
    EvaluationResult,
    SingleTurnSample,
)
from karat.compat.ragas.evaluation import aevaluate, evaluate
from karat.compat.ragas.llms import (
    LangchainEmbeddingsWrapper,
    LangchainLLMWrapper,
    LlamaIndexEmbeddingsWrapper,
    LlamaIndexLLMWrapper,
    RunConfig,
    llm_factory,
)
from karat.compat.ragas.metrics import (
    DistanceMeasure,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    LLMContextPrecisionWithoutReference,
    LLMContextPrecisionWithReference,
    LLMContextRecall,
    MetricResult,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
)
from karat.compat.ragas.metrics.collections import (
    ContextPrecision,
    ContextPrecisionWithoutReference,
    ContextPrecisionWithReference,
    ContextRecall,
    ContextUtilization,
)

__all__ = [
    "ContextPrecision",
    "ContextPrecisionWithReference",
    "ContextPrecisionWithoutReference",
    "ContextRecall",
    "ContextUtilization",
    "DistanceMeasure",
    "EvaluationDataset",
    "EvaluationResult",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "LLMContextPrecisionWithReference",
    "LLMContextPrecisionWithoutReference",
    "LLMContextRecall",
    "LangchainEmbeddingsWrapper",
    "LangchainLLMWrapper",
    "LlamaIndexEmbeddingsWrapper",
    "LlamaIndexLLMWrapper",
    "MetricResult",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "NonLLMStringSimilarity",
    "RunConfig",
    "SingleTurnSample",
    "aevaluate",
    "evaluate",
    "llm_factory",
]

# Modules that ragas has, and code imports from; here others hold their names.
_ALSO = {
    **dict.fromkeys(("embeddings", "embeddings.base"), llms),
    **dict.fromkeys(("run_config", "llms.base"), llms),
    "metrics.result": judging,
    **{f"metrics._{n}": metrics for n in ("context_recall", "context_precision")},
    **{f"metrics._{n}": metrics for n in ("faithfulness", "answer_relevance")},
}
for _name, _module in _ALSO.items():
    _modules[f"{__name__}.{_name}"] = _module
embeddings = run_config = llms
