"""eval-harness in Python: its aliases, contract, datasets, engine and report.

The numbers are those of karat's metrics under the rules of padosoft/eval-harness 1.3:
k is the sample's, else the constructor's, else the configured, else 5; an id retrieved
twice keeps its first rank and is dropped afterwards, before the cut; every id with a
gain is relevant, also with a gain of 0; MRR reads the whole ranking.

docs/coming-from/eval-harness.md says where it differs from the original.
"""

import html
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from karat.compat.eval_harness.dataset import (
    BLANK,
    SCHEMA_VERSION,
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

_SPACE = re.compile(r"[ \t-\r]+")
_BUCKETS = 10
_PASSED = 0.5
_COLUMNS = ("mean", "p50", "p95", "pass-rate (>= 0.5)")


@dataclass(frozen=True)
class SampleResult:
    """What the system under test gave for a sample, and the scores of that."""

    sample: DatasetSample
    actual_output: str
    metric_scores: Mapping[str, MetricScore]


@dataclass(frozen=True)
class SampleFailure:
    """A metric that could not score a sample, and why."""

    sample_id: str
    metric: str
    error: str


@dataclass(frozen=True)
class EvalReport:
    """The outcome of a run.

    A failed pair of sample and metric is left out of that metric's aggregates and
    listed; a metric that failed everywhere shows zeros, as in the original. Times are
    seconds since 1970.
    """

    dataset: str
    sample_results: Sequence[SampleResult]
    failures: Sequence[SampleFailure] = ()
    started_at: float = 0.0
    finished_at: float = 0.0
    dataset_schema_version: str = SCHEMA_VERSION

    @property
    def duration_seconds(self) -> float:
        """How long the run took."""
        return max(0.0, self.finished_at - self.started_at)

    @property
    def total_samples(self) -> int:
        """How many samples were run."""
        return len(self.sample_results)

    @property
    def total_failures(self) -> int:
        """How many pairs of sample and metric could not be scored."""
        return len(self.failures)

    @cached_property
    def metric_names(self) -> list[str]:
        """Every metric of the run, also one that failed on every sample."""
        scored = (
            name for result in self.sample_results for name in result.metric_scores
        )
        failed = (failure.metric for failure in self.failures)
        return list(dict.fromkeys([*scored, *failed]))

    def mean_score(self, metric: str) -> float:
        """The mean of what was scored."""
        return _mean(_scores(self.sample_results, metric))

    def percentile(self, metric: str, share: float) -> float:
        """The score that a share of the samples, in percent, does not exceed."""
        return _percentile(_scores(self.sample_results, metric), share)

    def macro_f1(self, metric: str = "") -> float:
        """The share of scores of 0.5 and above, averaged over metrics; not an F1."""
        # EvalReport::macroF1 leaves out metrics that failed everywhere.
        names = [metric] if metric else self.metric_names
        scores = (_scores(self.sample_results, name) for name in names)
        return _mean([_aggregate(some)["pass_rate"] for some in scores if some])

    def metric_aggregate(self, metric: str) -> dict[str, float]:
        """Mean, p50, p95 and pass rate of a metric; zeros where nothing was scored."""
        return _aggregate(_scores(self.sample_results, metric))

    def histogram_for_metric(
        self, metric: str, buckets: int = _BUCKETS
    ) -> list[dict[str, Any]]:
        """How many scores lie in each bucket; only the last includes its maximum."""
        size = max(1, buckets)
        # EvalReport::scoreBoundary rounds edges and scores, or 0.3 would lie below
        # 3 x 0.1.
        edges = [round(place / size, 10) for place in range(size + 1)]
        scores = [round(score, 10) for score in _scores(self.sample_results, metric)]
        counts = np.histogram(scores, edges)[0].tolist()
        return [
            {"min": low, "max": high, "count": count}
            for (low, high), count in zip(pairwise(edges), counts, strict=True)
        ]

    def metric_distributions(
        self, buckets: int = _BUCKETS
    ) -> dict[str, list[dict[str, Any]]]:
        """The histogram of every metric."""
        return {
            name: self.histogram_for_metric(name, buckets) for name in self.metric_names
        }

    def cohort_summaries(self) -> list[dict[str, Any]]:
        """The aggregates of each tag in alphabetical order; the untagged come last."""
        cohorts: dict[str | None, list[SampleResult]] = {}
        for result in self.sample_results:
            for tag in _tags(result.sample) or (None,):
                cohorts.setdefault(tag, []).append(result)
        return [
            {
                "name": tag,
                "label": "(untagged)" if tag is None else tag,
                "is_untagged": tag is None,
                "sample_count": len(cohorts[tag]),
                "metrics": {
                    name: _aggregate(_scores(cohorts[tag], name))
                    for name in self.metric_names
                },
            }
            for tag in sorted(cohorts, key=lambda tag: (tag is None, tag or ""))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain values, under the names of the original's JSON."""
        return {
            "schema_version": "eval-harness.report.v1",
            "dataset_schema_version": self.dataset_schema_version,
            "dataset": self.dataset,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "duration_seconds": self.duration_seconds,
            "total_samples": self.total_samples,
            "total_failures": self.total_failures,
            "metrics": {
                name: self.metric_aggregate(name) for name in self.metric_names
            },
            "metric_distributions": self.metric_distributions(),
            "cohorts": self.cohort_summaries(),
            "macro_f1": self.macro_f1(),
            "samples": [
                {
                    "id": result.sample.id,
                    "tags": _tags(result.sample),
                    "actual_output": result.actual_output,
                    "scores": {
                        name: {"score": score.score, "details": dict(score.details)}
                        for name, score in result.metric_scores.items()
                    },
                }
                for result in self.sample_results
            ],
            "failures": [asdict(failure) for failure in self.failures],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The report as JSON; numbers that JSON cannot write are null."""
        value = _writable(self.to_dict())
        return json.dumps(value, ensure_ascii=False, indent=indent, default=str)

    def to_markdown(self) -> str:
        """The report for people, its sections always in the same order."""
        return "\n".join(_markdown(self)) + "\n"


def _scores(results: Iterable[SampleResult], metric: str) -> list[float]:
    scores = (result.metric_scores.get(metric) for result in results)
    return [score.score for score in scores if score is not None]


def _mean(scores: Sequence[float]) -> float:
    """The mean; 0.0 for nothing, as EvalReport shows it."""
    return fmean(scores) if scores else 0.0


def _percentile(scores: Sequence[float], share: float) -> float:
    """The score that a share of them, in percent, does not exceed; interpolated."""
    if not scores or not 0 <= share <= 100:  # noqa: PLR2004
        return 0.0
    return float(np.percentile(scores, share))


def _aggregate(scores: Sequence[float]) -> dict[str, float]:
    return {
        "mean": _mean(scores),
        "p50": _percentile(scores, 50),
        "p95": _percentile(scores, 95),
        "pass_rate": _mean([float(score >= _PASSED) for score in scores]),
    }


def _tags(sample: DatasetSample) -> list[str]:
    """The tags of a sample, each once; what is not text is passed over."""
    tags = sample.metadata.get("tags")
    if isinstance(tags, Mapping):
        tags = list(tags.values())
    texts = tags if isinstance(tags, list | tuple) else [tags]
    trimmed = (text.strip(BLANK) for text in texts if isinstance(text, str))
    return list(dict.fromkeys(filter(None, trimmed)))


def _writable(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _writable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(part) for part in value]
    return value


def _markdown(report: EvalReport) -> Iterator[str]:
    names, seconds = report.metric_names, f"{report.duration_seconds:.2f}"
    samples, failures = report.total_samples, report.total_failures
    yield from (f"# Eval report \N{EM DASH} {_text(report.dataset)}", "")
    counts = f"{samples} samples ({failures} failures captured)"
    yield from (f"_Run completed in {seconds}s over {counts}._", "")
    summary = ("total samples", "total failures", "duration seconds")
    yield from _table("## Summary", summary, [(samples, failures, seconds)])
    rows = ((_cell(name), *_numbers(report.metric_aggregate(name))) for name in names)
    yield from _table("## Per-metric aggregates", ("metric", *_COLUMNS), rows)
    average = f"{report.macro_f1():.4f}"
    yield from (f"## Macro-F1 (avg pass-rate across all metrics): {average}", "")
    if cohorts := report.cohort_summaries():
        rows = (
            (_cell(c["label"]), c["sample_count"], _cell(name), *_numbers(aggregate))
            for c in cohorts
            for name, aggregate in c["metrics"].items()
        )
        columns = ("cohort", "samples", "metric", *_COLUMNS)
        yield from _table("## Cohorts by metadata.tags", columns, rows)
    if names:
        yield from ("## Score histograms", "")
    for name, buckets in report.metric_distributions().items():
        rows = (
            (
                f"{b['min']:.1f}-{b['max']:.1f}{' inclusive' * (b['max'] >= 1)}",
                b["count"],
            )
            for b in buckets
        )
        yield from _table(f"### {_text(name)}", ("score range", "count"), rows)
    if report.failures:
        yield from ("## Failures", "", *map(_failure, report.failures), "")


def _table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> Iterator[str]:
    yield from (title, "")
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(map(str, row))} |"
    yield ""


def _numbers(aggregate: Mapping[str, float]) -> list[str]:
    return [f"{value:.4f}" for value in aggregate.values()]


def _failure(failure: SampleFailure) -> str:
    sample, metric = _escaped(failure.sample_id), _escaped(failure.metric)
    where = f"**sample <code>{sample}</code> / metric <code>{metric}</code>**"
    return f"- {where} - {_text(failure.error)}"


def _escaped(text: str) -> str:
    # htmlspecialchars() writes an apostrophe as &#039;.
    line = _SPACE.sub(" ", text).strip(BLANK)
    return html.escape(line).replace("&#x27;", "&#039;")


def _text(text: str) -> str:
    return _escaped(text).replace("\\", "\\\\").replace("`", "\\`")


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


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
