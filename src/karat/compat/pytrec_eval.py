"""pytrec_eval's evaluator, number for number, on karat's own formulas.

    evaluator = RelevanceEvaluator(qrels, {"map", "ndcg_cut.10"})
    evaluator.evaluate(run)["q1"]["map"]

The numbers are those of trec_eval 9, which pytrec_eval embeds, topic by topic; `gm_map`
and `gm_bpref` are logarithms, as there, and `compute_aggregated_measure` undoes that.

docs/coming-from/trec_eval.md says where it differs from the original.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from karat import read_gold, read_run
from karat.compat.trec_eval import Options, nicknames, trec_eval_values
from karat.extend import FormatError, ParameterError, UnknownNameError

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

N = TypeVar("N", int, float)
_CUT = ("P", "recall", "ndcg_cut", "map_cut", "relative_P", "success")
_AT = ("iprec_at_recall", "Rprec_mult")

supported_nicknames: dict[str, set[str]] = {
    name: {*measures} for name, measures in nicknames("9").items()
}
"""Names that stand for several measures."""

supported_measures: set[str] = {*supported_nicknames["all_trec"]}
"""Names of measures, without their parameters."""


class RelevanceEvaluator:
    """Scores runs against judgements, query by query.

    Example:
        >>> evaluator = RelevanceEvaluator({"q1": {"b": 1}}, {"map", "P_5"})
        >>> evaluator.evaluate({"q1": {"a": 0.9, "b": 0.8}})
        {'q1': {'map': 0.5, 'P_5': 0.2}}
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """An evaluator of these judgements.

        Args:
            query_relevance: query -> document -> grade; queries without any are left
                out.
            measures: as trec_eval names them: `map`, `P_5`, `P.5,10`, `official`.
            relevance_level: the smallest grade that is relevant.
            judged_docs_only_flag: remove documents without judgement first.

        Raises:
            ValueError: a measure that does not exist, or a level below 1.
        """
        if relevance_level < 1:
            name, must_be = "relevance_level", "an integer >= 1"
            raise ParameterError(type(self).__name__, name, must_be, relevance_level)
        judged = {query: row for query, row in query_relevance.items() if row}
        self._qrels = read_gold(judged).documents if judged else {}
        for query, row in self._qrels.items():
            for document, grade in row.items():
                if grade % 1:
                    why = f"grade of {document!r} must be an integer, got {grade!r}"
                    raise FormatError(why, query=query)
        self._parameters = _by_measure(measures)
        self._options = Options(
            [f"{m}.{p}" if p else m for m, p in self._parameters.items()],
            version="9",
            level=relevance_level,
            judged_only=judged_docs_only_flag,
        )

    def evaluate(
        self, scores: Mapping[str, Mapping[str, float]]
    ) -> dict[str, dict[str, float]]:
        """Query -> measure -> value, for queries that both sides have."""
        run = {str(q): row for q, row in scores.items() if str(q) in self._qrels}
        if not run or not self._parameters:
            return {query: {} for query in run}
        qrels = {query: self._qrels[query] for query in run}
        topics, values = trec_eval_values(qrels, read_run(run), self._options)
        columns: dict[str, list[float]] = {
            _plain(name, self._parameters): column.tolist()
            for name, column in values.items()
        }
        columns |= {
            name: [constant] * len(topics)
            for name, constant in (("num_q", 1.0), ("runid", 0.0), ("relstring", 0.0))
            if name in self._parameters
        }
        return {
            topic: {name: column[place] for name, column in columns.items()}
            for place, topic in enumerate(topics)
        }


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """One number for all queries: a sum of counts, a geometric mean, or the mean.

    Example:
        >>> compute_aggregated_measure("num_ret", [2.0, 3.0])
        5.0
    """
    total = math.fsum(values)
    if measure.startswith("num_"):
        return total
    mean = total / len(values)
    return math.exp(mean) if measure.startswith("gm_") else mean


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Query -> document -> score, from lines of `query Q0 document rank score tag`.

    Example:
        >>> parse_run(["q1 Q0 b 1 0.9 mine"])["q1"]
        {'b': 0.9}
    """
    return _parse(f_run, 6, 4, float)


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Query -> document -> grade, from lines of `query 0 document grade`.

    Example:
        >>> parse_qrel(["q1 0 b 2"])["q1"]
        {'b': 2}
    """
    return _parse(f_qrel, 4, 3, int)


def _parse(
    lines: Iterable[str], width: int, place: int, read: Callable[[str], N]
) -> dict[str, dict[str, N]]:
    rows: dict[str, dict[str, N]] = defaultdict(dict)
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) != width:
            why = f"{len(fields)} columns, expected {width}"
            raise FormatError(why, line=number)
        query, _, document = fields[:3]
        if document in rows[query]:
            raise FormatError(f"{document!r} twice", line=number, query=query)
        try:
            rows[query][document] = read(fields[place])
        except ValueError as error:
            raise FormatError(str(error), line=number) from None
    return rows


def _by_measure(measures: Iterable[str]) -> dict[str, str]:
    """Measure -> its parameters, joined by commas, of `P_5`, `P.5,10` and the like."""
    by_measure: dict[str, dict[str, None]] = {}
    for text in measures:
        name, values = _split(text)
        for measure in supported_nicknames.get(name, {name}):
            if measure not in supported_measures:
                raise UnknownNameError("trec_eval measure", text, supported_measures)
            parameters = by_measure.setdefault(measure, {})
            parameters.update(dict.fromkeys(filter(None, values.split(","))))
    return {measure: ",".join(parameters) for measure, parameters in by_measure.items()}


def _split(text: str) -> tuple[str, str]:
    if text in supported_measures or text in supported_nicknames:
        return text, ""
    parts = re.fullmatch(r"(\w+?)[._]([0-9][0-9.,=]*)", text)
    return (parts[1], parts[2]) if parts else (text, "")


def _plain(name: str, parameters: Mapping[str, str]) -> str:
    """The name of a value; that of a measure with one value has no parameters."""
    for measure, text in parameters.items():
        one_value = measure not in (*_CUT, *_AT)
        if one_value and text and name == f"{measure}_{text}":
            return measure
    return name
