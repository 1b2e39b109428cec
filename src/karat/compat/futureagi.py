"""Future AGI's retrieval evals: the same call, computed here, without keys or network.

    result = Evaluator().evaluate(
        eval_templates="recall_at_k",
        inputs={"hypothesis": '["a", "b"]', "reference": '["a", "c"]'},
        eval_config={"k": 2},
    )
    result.eval_results[0].output  # 0.5

Templates are `recall_at_k`, `precision_at_k`, `ndcg_at_k`, `mrr` and `hit_rate`, with
the numbers of the functions that their documentation describes: values are compared as
Python does it, so `1` is `1.0` but not `"1"`; duplicates use up ranks; without k the
whole list counts, for the ideal of nDCG too; precision divides by k.

docs/coming-from/future-agi.md says where it differs from the original.
"""

import ast
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from karat.compat.exact_matching import hits_of_ids
from karat.extend import (
    DataError,
    MismatchError,
    UnknownNameError,
    UsageError,
    read_metric,
)

__all__ = ["TEMPLATES", "BatchRunResult", "EvalResult", "Evaluator"]

TEMPLATES: Mapping[str, str] = {
    "recall_at_k": "Recall",
    "precision_at_k": "Precision",
    "ndcg_at_k": "NDCG",
    "mrr": "MRR",
    "hit_rate": "Hit Rate",
}
"""The evals, which karat spells the same, and what their reasons call them."""

# fi.evals renames these before it sends them.
_ALSO = {
    "hypothesis": ("hypothesis", "output", "response"),
    "reference": ("reference", "expected_output", "expected_response", "ground_truth"),
}
_CUT = "_at_k"
# NumPy has no larger integers, and no score would change by more than 1e-18.
_LARGEST_K = 2**62


@dataclass(frozen=True)
class EvalResult:
    """What one eval says of one query.

    Attributes:
        name: the template.
        output: the score; None where there is none.
        reason: the score in words, or why there is none.
        runtime: seconds, as a share of those of the batch.
        error: why there is no score; None where there is one.
    """

    name: str
    output: float | None
    reason: str
    runtime: float = 0.0
    error: str | None = None
    output_type: str = "score"
    eval_id: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class BatchRunResult:
    """The results: every query of the first template, then every one of the next."""

    eval_results: list[EvalResult]


@dataclass(frozen=True)
class _Item:
    """One item of a batch: a query, or several at once for `mrr` and `hit_rate`."""

    queries: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    k: int
    several: bool = False


class Evaluator:
    """Scores what was retrieved against what is relevant.

    Takes and ignores what the original's constructor takes: there is nobody to show
    keys to.

    Example:
        >>> inputs = {"hypothesis": '["a", "b", "c"]', "reference": '["c", "d"]'}
        >>> result = Evaluator().evaluate("recall_at_k", inputs, eval_config={"k": 3})
        >>> result.eval_results[0].reason
        'Recall@3: 0.5'
    """

    def __init__(self, *keys: Any, **options: Any) -> None:
        del keys, options

    def evaluate(
        self,
        eval_templates: str | Sequence[str],
        inputs: Mapping[str, Any],
        *,
        eval_config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> BatchRunResult:
        """Run one template or several over one query or a batch of them.

        Args:
            eval_templates: names of `TEMPLATES`.
            inputs: `hypothesis`, what was retrieved, best first, and `reference`, what
                is relevant: each the JSON text of a list, or a list of such texts or of
                lists, which is a batch.
            eval_config: `{"k": 3}` cuts the ranking; without it all of it counts.
            options: what only the service has a use for.

        Raises:
            UsageError: the call as a whole cannot be carried out.
        """
        del options
        names = [eval_templates] if isinstance(eval_templates, str) else eval_templates
        for name in names:
            if name not in TEMPLATES:
                raise UnknownNameError("eval template", str(name), TEMPLATES)
        config = eval_config or {}
        if unknown := [key for key in config if key != "k"]:
            raise UnknownNameError("eval_config key", str(unknown[0]), ["k"])
        hypotheses, references = (_column(inputs, field) for field in _ALSO)
        if len(hypotheses) != len(references):
            raise MismatchError(
                f"hypothesis has {len(hypotheses)} items, reference {len(references)}",
                hint="a batch needs as many of one as of the other",
            )
        pairs = list(zip(hypotheses, references, strict=True))
        results = [_run(name, pairs, config.get("k")) for name in names]
        return BatchRunResult([result for batch in results for result in batch])


def _column(inputs: Mapping[str, Any], field: str) -> list[Any]:
    name = next((name for name in _ALSO[field] if name in inputs), None)
    if name is None:
        raise UsageError(
            f"inputs must hold {field!r}, got {', '.join(inputs) or 'none'}"
        )
    value = inputs[name]
    # fi.evals takes a list of texts or of lists for a batch, any other for one query.
    if isinstance(value, list) and all(isinstance(part, str | list) for part in value):
        return value
    return [value]


def _run(name: str, pairs: Sequence[tuple[Any, Any]], k: Any) -> list[EvalResult]:
    started = time.perf_counter()
    items: list[_Item | DataError] = []
    for pair in pairs:
        try:
            items.append(_read(name, *pair, k))
        except DataError as error:
            # A failure is a value of its own.
            items.append(error)
    scores = iter(_scores(name, [item for item in items if isinstance(item, _Item)]))
    runtime = (time.perf_counter() - started) / max(len(items), 1)
    return [
        EvalResult(name, None, str(item), runtime, str(item))
        if isinstance(item, DataError)
        else _result(name, item, list(islice(scores, len(item.queries))), runtime)
        for item in items
    ]


def _scores(name: str, items: Sequence[_Item]) -> list[float]:
    """The scores of all queries of all items, at once."""
    pairs = [pair for item in items for pair in item.queries]
    hits = hits_of_ids([gold for _, gold in pairs], [ranking for ranking, _ in pairs])
    ks = [min(item.k, _LARGEST_K) for item in items for _ in item.queries]
    # A value that was retrieved twice uses up a rank and earns nothing.
    first = hits.first
    once = replace(
        hits,
        query=hits.query[first],
        rank=hits.rank[first],
        grade=hits.grade[first],
        item=None,
        own_k=np.array(ks, np.int64),
    )
    scores: list[float] = read_metric(name).score(once).tolist()
    return scores


def _result(
    name: str, item: _Item, scores: Sequence[float], runtime: float
) -> EvalResult:
    output = sum(scores) / len(scores)
    label = f"{TEMPLATES[name]}@{item.k}" if name.endswith(_CUT) else TEMPLATES[name]
    many = f" across {len(scores)} queries" if item.several else ""
    return EvalResult(name, output, f"{label}: {output}{many}", runtime)


def _read(name: str, hypothesis: Any, reference: Any, k: Any) -> _Item:
    """The item, once it is clear that its values can be compared."""
    relevant = _read_list(reference, "reference")
    retrieved = _read_list(hypothesis, "hypothesis")
    nested = {_is_nested(relevant), _is_nested(retrieved)}
    several = True in nested and not name.endswith(_CUT)
    pairs = [(retrieved, relevant)]
    if several:
        if False in nested:
            raise DataError(
                "reference and hypothesis must both be lists of lists, or neither"
            )
        if len(relevant) != len(retrieved):
            raise DataError(
                f"reference has {len(relevant)} queries, hypothesis {len(retrieved)}"
            )
        pairs = list(zip(retrieved, relevant, strict=True))
    for ranking, wanted in pairs:
        _check(ranking, wanted, flat=not several)
    # _parse_k: without a usable k, that of the whole ranking; 1 if it is empty.
    return _Item(pairs, 1 if several else _read_k(k) or len(retrieved) or 1, several)


def _check(retrieved: Sequence[Any], relevant: Sequence[Any], *, flat: bool) -> None:
    for field, values in (("reference", relevant), ("hypothesis", retrieved)):
        if flat and any(isinstance(value, list | dict) for value in values):
            raise DataError(
                f"{field} must be a flat list",
                hint="mrr and hit_rate take a list of lists on both sides",
            )
    if not relevant:
        raise DataError("reference must hold at least one relevant item")
    try:
        hash((*relevant, *retrieved))
    except TypeError as error:
        raise DataError(f"values must be plain, such as strings: {error}") from None


def _read_list(value: Any, field: str) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            value = _read_literal(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list):
        raise DataError(f"{field} must be a list, or the JSON text of one")
    return value


def _read_literal(text: str) -> Any:
    # functions.py reads what is no JSON as Python, and else as a list of one text.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return [text]


def _is_nested(values: list[Any]) -> bool:
    return bool(values) and all(
        isinstance(value, list | tuple | set) for value in values
    )


def _read_k(k: Any) -> int:
    """The cutoff; 0 for anything that the original takes for none."""
    try:
        return max(int(k), 0)
    except OverflowError:
        raise DataError(f"k must be finite, got {k!r}") from None
    except (TypeError, ValueError):
        return 0
