"""What a run came to: aggregates by metric and by tag, as Markdown and as JSON."""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from statistics import fmean
from typing import Any

import numpy as np

from karat.compat.eval_harness.dataset import BLANK, SCHEMA_VERSION, DatasetSample
from karat.compat.eval_harness.metrics import MetricScore

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
