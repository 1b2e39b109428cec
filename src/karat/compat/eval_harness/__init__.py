"""eval-harness in Python: its aliases, contract, datasets, engine and report.

The numbers are those of karat's metrics under the rules of padosoft/eval-harness 1.3:
k is the sample's, else the constructor's, else the configured, else 5; an id retrieved
twice keeps its first rank and is dropped afterwards, before the cut; every id with a
gain is relevant, also with a gain of 0; MRR reads the whole ranking.

docs/coming-from/eval-harness.md says where it differs from the original.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from karat.compat.eval_harness.dataset import (
    Dataset,
    DatasetSample,
    DatasetSchemaException,
    EvalHarnessException,
    EvalRunException,
    GoldenDataset,
    MetricException,
    PathLike,
    RankedRetrieval,
    load_dataset,
    load_outputs,
    raising,
    read_samples,
    read_text,
)
from karat.compat.eval_harness.metrics import (
    ALIASES,
    AnswerContainmentAtKMetric,
    Metric,
    MetricScore,
    RetrievalHitAtKMetric,
    RetrievalMrrMetric,
    RetrievalNdcgAtKMetric,
    RetrievalRecallAtKMetric,
    find_metric,
    score,
)
from karat.compat.eval_harness.report import EvalReport, SampleFailure, SampleResult
from karat.extend import UsageError, call_plugin

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

System: TypeAlias = Callable[[Mapping[str, Any]], str]
"""A system under test: from a sample's input to the JSON text of its ranking."""


class EvalEngine:
    """Holds datasets and runs them.

    Args:
        config: as in the original, nested: `{"metrics": {"retrieval": {"default_k":
            10}}}` is the k of retrieval metrics that neither sample nor metric sets.

    Example:
        >>> engine = EvalEngine()
        >>> sample = DatasetSample("q-1", {"question": "..."}, ["doc-3"])
        >>> builder = engine.dataset("d").with_samples([sample])
        >>> _ = builder.with_metrics(["retrieval-mrr"]).register()
        >>> report = engine.run("d", lambda question: '["x", "doc-3"]')
        >>> report.mean_score("retrieval-mrr")
        0.5
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self._config = config or {}
        self._datasets: dict[str, GoldenDataset] = {}
        self._metrics: dict[str, Metric | Callable[[], Metric]] = {}

    def dataset(self, name: str) -> "DatasetBuilder":
        """Begin a dataset of that name."""
        return DatasetBuilder(self, name)

    def register_metric(
        self, alias: str, metric: Metric | Callable[[], Metric]
    ) -> None:
        """Let an alias stand for a metric of yours: an instance, a class or a function.

        An alias of the five that come with it is overridden, as a binding in the
        original's container would.
        """
        self._metrics[alias] = metric

    def register_dataset(self, dataset: GoldenDataset) -> None:
        """Keep a dataset under its name."""
        self._datasets[dataset.name] = dataset

    def registered_dataset_names(self) -> list[str]:
        """The datasets there are."""
        return list(self._datasets)

    def get_dataset(self, name: str) -> GoldenDataset:
        """The dataset registered under a name."""
        if name not in self._datasets:
            raise EvalRunException(
                f"no dataset {name!r} is registered",
                hint=f"dataset({name!r}) begins one, register() ends it",
            )
        return self._datasets[name]

    def resolve_metric(self, spec: str | Metric) -> Metric:
        """The metric that an alias stands for; an instance stands for itself."""
        named: Any = self._metrics.get(spec, spec) if isinstance(spec, str) else spec
        if isinstance(named, str):
            return find_metric(named)(default_k=self._default_k())
        if isinstance(named, type) or (callable(named) and not hasattr(named, "score")):
            named = named()
        if not callable(getattr(named, "score", None)) or not hasattr(named, "name"):
            raise MetricException(
                f"a metric needs name() and score(), {type(named).__name__} has not",
                hint=f"aliases: {', '.join([*ALIASES, *self._metrics])}",
            )
        metric: Metric = named
        return metric

    def run(self, name: str, system: System | PathLike) -> EvalReport:
        """Score every sample of a dataset with every metric of it.

        Args:
            name: of the dataset.
            system: called with each sample's input, gives the JSON text of a ranking;
                or the path of a file of saved outputs.

        Raises:
            EvalRunException: no such dataset; an output that is no text; saved outputs
                that do not fit the samples. What the system itself raises ends the run.
        """
        started = time.time()
        dataset = self.get_dataset(name)
        if isinstance(system, str | os.PathLike):
            with raising(EvalRunException, system):
                outputs = load_outputs(read_text(system), os.fspath(system))
            return self.score_outputs(name, outputs)
        texts = [system(sample.input) for sample in dataset.samples]
        return _scored(dataset, texts, started)

    def score_outputs(self, name: str, outputs: Mapping[str, str]) -> EvalReport:
        """Score outputs saved by sample id, without a system under test."""
        started = time.time()
        dataset = self.get_dataset(name)
        ids = [sample.id for sample in dataset.samples]
        if missing := [identity for identity in ids if identity not in outputs]:
            raise EvalRunException(
                f"no saved output of {name!r} for: {', '.join(missing)}"
            )
        if unknown := outputs.keys() - set(ids):
            raise EvalRunException(
                f"saved outputs for samples that {name!r} does not have: "
                f"{', '.join(sorted(map(str, unknown)))}"
            )
        return _scored(dataset, [outputs[identity] for identity in ids], started)

    def _default_k(self) -> object:
        # Settings files may write the path as one key.
        dotted = "metrics.retrieval.default_k"
        value: Any = self._config
        whole = isinstance(value, Mapping) and dotted in value
        for key in [dotted] if whole else dotted.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


class DatasetBuilder:
    """Puts a dataset together; `register()` comes last."""

    def __init__(self, engine: EvalEngine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._loaded: GoldenDataset | None = None
        self._samples: tuple[DatasetSample, ...] = ()
        self._metrics: tuple[str | Metric, ...] = ()

    def load_from_yaml(self, path: PathLike) -> "DatasetBuilder":
        """Take the samples from a YAML file."""
        with raising(DatasetSchemaException, path):
            return self.load_from_yaml_string(read_text(path))

    def load_from_yaml_string(self, yaml_text: str) -> "DatasetBuilder":
        """Take the samples from YAML."""
        self._loaded = load_dataset(yaml_text)
        return self

    def with_samples(
        self, samples: Iterable[DatasetSample | Mapping[str, Any]]
    ) -> "DatasetBuilder":
        """Take these samples: `DatasetSample`s, or mappings with the same fields."""
        self._samples = read_samples(samples)
        if not self._samples:
            raise DatasetSchemaException("with_samples() needs at least one sample")
        return self

    def with_metrics(self, metrics: Iterable[str | Metric]) -> "DatasetBuilder":
        """Score with these metrics: aliases or instances."""
        self._metrics = tuple(metrics)
        if not self._metrics:
            raise DatasetSchemaException("with_metrics() needs at least one metric")
        return self

    def register(self) -> GoldenDataset:
        """Check that nothing is missing and hand the dataset to the engine."""
        loaded, problem = self._loaded, ""
        if not loaded and not self._samples:
            problem = "has no samples: load_from_yaml() or with_samples() adds them"
        elif loaded and self._samples:
            problem = "has samples both from YAML and from code: keep one of them"
        elif not self._metrics:
            problem = "has no metrics: with_metrics() adds them"
        elif loaded and loaded.name != self._name:
            problem = f"is called {loaded.name!r} in its YAML: use the same name twice"
        if problem:
            raise DatasetSchemaException(f"dataset {self._name!r} {problem}")
        dataset = GoldenDataset(
            self._name,
            loaded.samples if loaded else self._samples,
            tuple(self._engine.resolve_metric(spec) for spec in self._metrics),
        )
        self._engine.register_dataset(dataset)
        return dataset


def _scored(dataset: GoldenDataset, outputs: list[str], started: float) -> EvalReport:
    results: list[SampleResult] = []
    failures: list[SampleFailure] = []
    for sample, output in zip(dataset.samples, outputs, strict=True):
        if not isinstance(output, str):
            raise EvalRunException(
                f"the system must return a string, got {type(output).__name__}",
                query=sample.id,
            )
        # EvalEngine keys scores by name(): of two metrics of one name the last holds.
        scores: dict[str, MetricScore] = {}
        for metric in dataset.metrics:
            outcome = _score(metric, sample, output)
            if isinstance(outcome, MetricScore):
                scores[_name(metric)] = outcome
            else:
                failures.append(SampleFailure(sample.id, _name(metric), outcome))
        results.append(SampleResult(sample, output, scores))
    return EvalReport(
        dataset.name, results, failures, started, time.time(), dataset.schema_version
    )


def _score(metric: Metric, sample: DatasetSample, output: str) -> MetricScore | str:
    """The score, or what went wrong: a failure of one pair must not end the run."""
    try:
        outcome: object = call_plugin(lambda: metric.score(sample, output), "score()")
    except UsageError as error:
        return str(error.__cause__) or type(error.__cause__).__name__
    if isinstance(outcome, MetricScore):
        return outcome
    return f"score() must return a MetricScore, got {type(outcome).__name__}"


def _name(metric: Metric) -> str:
    name: Any = metric.name
    return str(name() if callable(name) else name)
