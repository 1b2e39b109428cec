"""eval-harness in Python: its aliases, contract, datasets, engine and report.

The numbers are those of karat's metrics under the rules of padosoft/eval-harness 1.3:
k is the sample's, else the constructor's, else the configured, else 5; an id retrieved
twice keeps its first rank and is dropped afterwards, before the cut; every id with a
gain is relevant, also with a gain of 0; MRR reads the whole ranking.

It differs from the original in these points:

- methods are named as Python names them, and what PHP's `toJson()` returns is
  `to_dict()`; `to_json()` is the text;
- messages are karat's, each with the sample's id; the exceptions have the same names;
- where PHP ends in a TypeError there is a named exception: an output that is no text, a
  constructor's k that is no integer, `samples` given as a mapping of names;
- among the gains of one sample, NaN is the best, so that the ideal gain is NaN; PHP
  puts it anywhere, which is the same unless there are more gains than k;
- dates in YAML stay text, where symfony/yaml makes numbers of them;
- values that JSON cannot write, such as an infinite DCG, are null in `to_json()`, where
  PHP writes no report;
- the environment is not read: the `config` of `EvalEngine` takes the place of
  EVAL_HARNESS_RETRIEVAL_DEFAULT_K;
- the ten aliases that have nothing to do with retrieval, repetitions, baselines and the
  command line are not here.
"""

from karat.compat.eval_harness.contract import (
    DatasetSample,
    DatasetSchemaException,
    EvalHarnessException,
    EvalRunException,
    Metric,
    MetricException,
    MetricScore,
    RankedRetrieval,
)
from karat.compat.eval_harness.dataset import Dataset, load_dataset, load_outputs
from karat.compat.eval_harness.engine import DatasetBuilder, EvalEngine, GoldenDataset
from karat.compat.eval_harness.metrics import (
    ALIASES,
    AnswerContainmentAtKMetric,
    RetrievalHitAtKMetric,
    RetrievalMrrMetric,
    RetrievalNdcgAtKMetric,
    RetrievalRecallAtKMetric,
    score,
)
from karat.compat.eval_harness.report import EvalReport, SampleFailure, SampleResult

__all__ = [
    "ALIASES",
    "AnswerContainmentAtKMetric",
    "Dataset",
    "DatasetBuilder",
    "DatasetSample",
    "DatasetSchemaException",
    "EvalEngine",
    "EvalHarnessException",
    "EvalReport",
    "EvalRunException",
    "GoldenDataset",
    "Metric",
    "MetricException",
    "MetricScore",
    "RankedRetrieval",
    "RetrievalHitAtKMetric",
    "RetrievalMrrMetric",
    "RetrievalNdcgAtKMetric",
    "RetrievalRecallAtKMetric",
    "SampleFailure",
    "SampleResult",
    "load_dataset",
    "load_outputs",
    "score",
]
