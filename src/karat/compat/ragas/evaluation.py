"""Many samples under several metrics: `evaluate()`."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from karat.compat.ragas.dataset_schema import (
    EvaluationDataset,
    EvaluationResult,
    SingleTurnSample,
)
from karat.compat.ragas.judging import MetricResult, Scorer
from karat.compat.ragas.llms import Model, RunConfig
from karat.compat.ragas.metrics import (
    ComparingMetric,
    Elsewhere,
    context_precision,
    context_recall,
)
from karat.extend import UnknownNameError, UsageError, run_sync

__all__ = ["EvaluationResult", "Result", "aevaluate", "evaluate"]

Result = EvaluationResult
"""As version 0.1 called it."""

Results: TypeAlias = dict[str, list[MetricResult]]
Rows: TypeAlias = EvaluationDataset | Iterable[SingleTurnSample | Mapping[str, Any]]

_USUAL = (context_precision, context_recall)
# Taken for the sake of old calls; each decides nothing here.
_UNUSED = (
    *("experiment_name", "callbacks", "token_usage_parser", "show_progress"),
    *("batch_size", "allow_nest_asyncio"),
)


def evaluate(
    dataset: Rows,
    metrics: Iterable[Scorer] | None = None,
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
    samples, chosen = _read(dataset, metrics, column_map or {}, unused)
    # Not in a loop, which would hold up Ctrl-C.
    kinds = [m for m in chosen if isinstance(m, ComparingMetric)]
    compared = {m.name: [*map(m.attempt, samples)] for m in kinds}
    results = run_sync(lambda: _judge(samples, chosen, compared, llm, run_config))
    return _finish(samples, chosen, results, raise_exceptions=raise_exceptions)


async def aevaluate(
    dataset: Rows,
    metrics: Iterable[Scorer] | None = None,
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
    samples, chosen = _read(dataset, metrics, column_map or {}, unused)
    results = await _judge(samples, chosen, {}, llm, run_config)
    return _finish(samples, chosen, results, raise_exceptions=raise_exceptions)


def _read(
    dataset: Rows,
    metrics: Iterable[Scorer] | None,
    column_map: Mapping[str, str],
    unused: Iterable[str],
) -> tuple[EvaluationDataset, list[Scorer]]:
    """The samples and the metrics, once everything that was given can be."""
    for name in unused:
        if name not in _UNUSED:
            raise UnknownNameError("argument", name, _UNUSED)
    rows = []
    for row in dataset:
        fields: Any = row.to_dict() if isinstance(row, SingleTurnSample) else row
        if column_map and isinstance(row, Mapping):
            renamed = {o: row[t] for o, t in column_map.items() if t in row}
            rest = {k: v for k, v in row.items() if k not in column_map.values()}
            fields = renamed | rest
        rows.append(fields)
    chosen: dict[str, Scorer] = {}
    for metric in _USUAL if metrics is None else metrics:
        if not isinstance(metric, Scorer):
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
    return EvaluationDataset.from_list(rows), [*chosen.values()]


async def _judge(
    samples: EvaluationDataset,
    metrics: Iterable[Scorer],
    compared: Results,
    llm: Model | None,
    run_config: RunConfig | None,
) -> Results:
    """The results of all metrics, in order, where they are not known yet."""
    return {
        m.name: compared.get(m.name) or await m.results(samples, llm, run_config)
        for m in metrics
    }


def _finish(
    samples: EvaluationDataset,
    metrics: Iterable[Scorer],
    results: Results,
    *,
    raise_exceptions: bool,
) -> EvaluationResult:
    """The result, and warnings of what its means do not show."""
    result = EvaluationResult(samples, results)
    warned = []
    for metric in metrics:
        errors = [row.error for row in results[metric.name] if row.error]
        if isinstance(metric, Elsewhere):
            warned.append(metric.sentence)
        elif errors and raise_exceptions:
            raise errors[0]
        elif errors:
            # The original prints a mean without them, and does not say so.
            warned.append(
                f"{metric.name}: {len(errors)} of {len(samples)} rows failed, and the "
                "mean is of the others; .columns says why"
            )
    for sentence in warned:
        warnings.warn(sentence, stacklevel=3)
    return result
