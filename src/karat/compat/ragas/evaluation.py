"""Many samples under several metrics: `evaluate()`."""

import asyncio
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from karat.compat.ragas.dataset_schema import (
    EvaluationDataset,
    SingleTurnSample,
    frame_of,
)
from karat.compat.ragas.llms import Model, RunConfig
from karat.compat.ragas.metrics.llm import context_precision, context_recall
from karat.compat.ragas.metrics.scoring import (
    ComparingMetric,
    Elsewhere,
    JudgedMetric,
    MetricResult,
)
from karat.extend import MetricScores, UnknownNameError, UsageError, run_sync

__all__ = ["EvaluationResult", "aevaluate", "evaluate"]

Chosen: TypeAlias = dict[str, ComparingMetric | JudgedMetric]
Results: TypeAlias = dict[str, list[MetricResult]]
Rows: TypeAlias = EvaluationDataset | Iterable[SingleTurnSample | Mapping[str, Any]]
Metrics: TypeAlias = Iterable[ComparingMetric | JudgedMetric]

_USUAL = (context_precision, context_recall)
# Taken for the sake of old calls; each decides nothing here.
_UNUSED = (
    *("experiment_name", "callbacks", "token_usage_parser", "show_progress"),
    *("batch_size", "allow_nest_asyncio"),
)


@dataclass(frozen=True)
class EvaluationResult:
    """What every sample scored; printed, the mean of each metric.

    Attributes:
        dataset: the samples.
        results: for each metric, the result of every sample, in order.
    """

    dataset: EvaluationDataset
    results: Mapping[str, Sequence[MetricResult]]

    def __getitem__(self, metric: str) -> list[float]:
        if metric not in self.results:
            raise UnknownNameError("metric", metric, self.results)
        return [result.value for result in self.results[metric]]

    @property
    def scores(self) -> list[dict[str, float]]:
        """The scores of each sample; NaN where there is none."""
        columns = {name: self[name] for name in self.results}
        rows = range(len(self.dataset))
        return [{name: column[row] for name, column in columns.items()} for row in rows]

    @property
    def columns(self) -> dict[str, MetricScores]:
        """Each metric as karat has it: mean, how many are in it, what failed."""
        return {name: _column(name, rows) for name, rows in self.results.items()}

    def to_pandas(self) -> Any:
        """Samples and scores as a pandas DataFrame, one row each."""
        pairs = zip(self.dataset.to_list(), self.scores, strict=True)
        return frame_of([{**sample, **scores} for sample, scores in pairs])

    def __repr__(self) -> str:
        # As in the original, NaN is left out of the mean; `columns` says how often.
        means = (f"{name!r}: {c.mean:.4f}" for name, c in self.columns.items())
        return f"{{{', '.join(means)}}}"


def evaluate(
    dataset: Rows,
    metrics: Metrics | None = None,
    llm: Model | None = None,
    embeddings: object = None,
    *,
    run_config: RunConfig | None = None,
    raise_exceptions: bool = False,
    column_map: Mapping[str, str] | None = None,
    **unused: object,
) -> EvaluationResult:
    """Score every sample by every metric.

    Args:
        dataset: an `EvaluationDataset`, or samples or dictionaries.
        metrics: metrics of either kind; by default `context_precision` and
            `context_recall`.
        llm: the model for metrics that have none of their own; by default gpt-4o-mini,
            where the environment holds a key.
        embeddings: taken for the sake of old calls.
        run_config: how long, how often and how many at once.
        raise_exceptions: stop at a sample that cannot be scored; else its score is NaN,
            a warning counts it, and `results` and `columns` say why.
        column_map: the name of a field here -> its name in the dictionaries.
        unused: what else the original takes, such as `show_progress`.

    Example:
        >>> from karat.compat.ragas.metrics import IDBasedContextRecall
        >>> rows = [{"retrieved_context_ids": [1, 2], "reference_context_ids": [2, 3]}]
        >>> evaluate(rows, [IDBasedContextRecall()])
        {'id_based_context_recall': 0.5000}
    """
    del embeddings
    _check(unused)
    samples, chosen = _read(dataset, metrics, column_map or {})
    results = _compare(samples, chosen)
    if judged := _judged(chosen):
        results |= run_sync(lambda: _judge(samples, judged, llm, run_config))
    return _finish(samples, chosen, results, raise_exceptions=raise_exceptions)


async def aevaluate(
    dataset: Rows,
    metrics: Metrics | None = None,
    llm: Model | None = None,
    embeddings: object = None,
    *,
    run_config: RunConfig | None = None,
    raise_exceptions: bool = False,
    column_map: Mapping[str, str] | None = None,
    **unused: object,
) -> EvaluationResult:
    """The same as `evaluate`, to be awaited where an event loop runs already."""
    del embeddings
    _check(unused)
    samples, chosen = _read(dataset, metrics, column_map or {})
    results = await asyncio.to_thread(_compare, samples, chosen)
    results |= await _judge(samples, _judged(chosen), llm, run_config)
    return _finish(samples, chosen, results, raise_exceptions=raise_exceptions)


def _check(unused: Mapping[str, object]) -> None:
    for name in unused:
        if name not in _UNUSED:
            raise UnknownNameError("argument", name, _UNUSED)


def _read(
    dataset: Rows, metrics: Metrics | None, column_map: Mapping[str, str]
) -> tuple[EvaluationDataset, Chosen]:
    rows = [
        {ours: row[theirs] for ours, theirs in column_map.items() if theirs in row}
        | {k: v for k, v in row.items() if k not in column_map.values()}
        if column_map and isinstance(row, Mapping)
        else row
        for row in dataset
    ]
    samples = [row for row in rows if isinstance(row, SingleTurnSample)]
    if len(samples) < len(rows):
        samples = EvaluationDataset.from_list(
            row.to_dict() if isinstance(row, SingleTurnSample) else row for row in rows
        ).samples
    chosen: Chosen = {}
    for metric in _USUAL if metrics is None else metrics:
        if not isinstance(metric, ComparingMetric | JudgedMetric):
            raise UsageError(
                f"metrics must be instances such as LLMContextRecall(), got {metric!r}"
            )
        if metric.name in chosen:
            raise UsageError(
                f"two metrics are called {metric.name!r}; give one another name=..."
            )
        chosen[metric.name] = metric
    if not chosen:
        raise UsageError("no metrics: name at least one, as in [LLMContextRecall()]")
    return EvaluationDataset(samples), chosen


def _judged(chosen: Chosen) -> dict[str, JudgedMetric]:
    return {name: m for name, m in chosen.items() if isinstance(m, JudgedMetric)}


def _compare(samples: EvaluationDataset, chosen: Chosen) -> Results:
    return {
        name: [metric.attempt(sample) for sample in samples]
        for name, metric in chosen.items()
        if isinstance(metric, ComparingMetric)
    }


async def _judge(
    samples: EvaluationDataset,
    chosen: Mapping[str, JudgedMetric],
    llm: Model | None,
    run_config: RunConfig | None,
) -> Results:
    return {
        name: await metric.results(samples, llm, run_config)
        for name, metric in chosen.items()
    }


def _finish(
    samples: EvaluationDataset,
    chosen: Chosen,
    results: Results,
    *,
    raise_exceptions: bool,
) -> EvaluationResult:
    in_order = {name: results[name] for name in chosen}
    here = {n: m for n, m in chosen.items() if not isinstance(m, Elsewhere)}
    errors = (row.error for name in here for row in results[name] if row.error)
    if raise_exceptions and (error := next(errors, None)):
        raise error
    result = EvaluationResult(samples, in_order)
    for metric in chosen.values():
        if isinstance(metric, Elsewhere):
            warnings.warn(metric.sentence, stacklevel=3)
    for name, column in result.columns.items():
        if column.failed and name in here:
            # The original prints a mean without them, and does not say so.
            warnings.warn(
                f"{name}: {column.failed} of {len(samples)} rows failed, and the mean "
                "is of the others; .columns says why",
                stacklevel=3,
            )
    return result


def _column(name: str, rows: Sequence[MetricResult]) -> MetricScores:
    scores = np.array([row.value for row in rows], np.float64)
    failures = {place: str(row.error) for place, row in enumerate(rows) if row.error}
    without = int(np.isnan(scores).sum())
    undefined = without - len(failures)
    return MetricScores(name, scores, undefined=undefined, failures=failures)
