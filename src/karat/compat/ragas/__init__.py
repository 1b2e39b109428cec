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

It differs from the original in these points:

- `llm` may also be any callable from prompt to reply, the name of a model, or a client
  or `JudgeSession` of karat's; the client of `llm_factory` may be sync or async;
- the prompts are our own: what was retrieved is fenced and declared to be data, and a
  verdict that stands in a text under judgement, reason and all, or repeats the form it
  was asked for, is not believed;
- equal questions are put once, and a context that comes twice has one verdict;
- replies are kept in `.karat/journal.sqlite`: a run that was stopped goes on from
  there, and the same run again makes no call; only a client without a `base_url`, or a
  function that hangs on what cannot be seen from outside, is asked anew each time;
- `llm_factory(..., settings=karat.extend.Settings(...))` says how fast, how long and
  for how much the model is asked, and where replies are kept (`journal=None`: nowhere);
- a call that fails in passing (429, 5xx, a lost connection, an `OSError`) is tried up
  to six times, and not before `Retry-After`;
- `result.reason` lists claims or contexts with their verdicts, where ragas has None;
- an `attributed` outside 0 and 1 is a failure, where ragas adds it up or takes it as 1;
  a verdict of `ContextPrecision` is any integer, as there;
- an error has one of karat's classes, with what a function raised as its cause; a
  reply that was cut off is not asked for again, by any metric;
- a batch asks at most 16 questions at once, or one at a time of a function or client
  that is not async, unless settings say otherwise; what failed is a result with its
  `error` and NaN, and the others keep theirs, even where all calls come to an end;
- `evaluate()` warns of rows that failed, which a printed mean does not show;
- `score()` and the like work inside a running event loop too, and none is patched; an
  async client that is being used there cannot serve them as well, and they say so;
- the same name for two metrics of `evaluate()` is an error, where the later one wins;
- `distance_measure` may be given to the constructor of both metrics, as an enum, its
  name or a metric of your own;
- a field that `SingleTurnSample` does not have is an error, and passed over only in
  `EvaluationDataset.from_list`;
- a model of LangChain or LlamaIndex is asked by its `ainvoke`, `acomplete`, `invoke`
  or `complete`, bare or in `LangchainLLMWrapper`; `RunConfig` sets limits; embeddings
  and what else old calls bring along is taken, and decides nothing;
- entity recall, relevance, noise sensitivity and the metrics of answers are not here:
  in a list for `evaluate()` each is NaN, with a warning that says what to use.
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
