"""A provider for ir_measures, so that its users, PyTerrier among them, run on karat.

    import karat.compat.ir_measures
    karat.compat.ir_measures.register()     # from now on karat is asked first

Measures that karat spells are computed by its formulas, under the policies of
trec_eval 9, as ir_measures' own default does; others go to the other providers. The
iteration of a qrel is the subtopic that the measures of diversity ask for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from math import isnan
from typing import Any

import karat
from karat.extend import UsageError, read_metric

__all__ = ["provider", "register"]

_NAME = "karat"
_DIVERSE = (
    *("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP"),
    *("AP_IA", "P_IA", "StRecall"),
)


def provider() -> Any:
    """The provider: an object with `calc_aggregate(measures, qrels, run)` and more."""
    ir_measures: Any = import_module("ir_measures")

    class Evaluator(ir_measures.providers.Evaluator):  # type: ignore[misc]
        """Scores runs against one set of qrels."""

        def __init__(self, measures: Iterable[Any], qrels: Iterable[Any]) -> None:
            self._golds = _golds(qrels)
            super().__init__([*measures], {*self._golds[False].documents})

        def _iter_calc(self, run: Any) -> Iterator[Any]:
            rankings = ir_measures.util.RunConverter(run).as_dict_of_dict()
            for diverse, gold in self._golds.items():
                own = [m for m in self.measures if (m.NAME in _DIVERSE) == diverse]
                for row in _scores(rankings, gold, own) if own else ():
                    yield ir_measures.Metric(*row)

    class Provider(ir_measures.providers.Provider):  # type: ignore[misc]
        """karat's formulas under ir_measures' names."""

        NAME = _NAME

        def supports(self, measure: Any) -> bool:
            measure.validate_params()
            try:
                read_metric(str(measure))
            except UsageError:
                return False
            return True

        def _evaluator(self, measures: Iterable[Any], qrels: Any) -> Evaluator:
            rows = ir_measures.util.QrelsConverter(qrels).as_namedtuple_iter()
            return Evaluator(measures, rows)

    return Provider()


def _golds(qrels: Iterable[Any]) -> dict[bool, karat.Gold]:
    """The gold of plain measures, and that of measures that ask for subtopics."""
    labels: dict[str, dict[str, float]] = {}
    subtopics: dict[str, dict[str, dict[str, float]]] = {}
    for row in qrels:
        # Of a document that is judged twice, ir_measures takes the last grade.
        labels.setdefault(row.query_id, {})[row.doc_id] = row.relevance
        served = subtopics.setdefault(row.query_id, {}).setdefault(row.doc_id, {})
        served[str(row.iteration)] = row.relevance
    best = {
        query: {document: max(served.values()) for document, served in row.items()}
        for query, row in subtopics.items()
    }
    return {False: karat.Gold(labels), True: karat.Gold(best, subtopics=subtopics)}


def _scores(
    run: Mapping[str, Mapping[str, float]], gold: karat.Gold, measures: Sequence[Any]
) -> Iterator[tuple[str, Any, float]]:
    """Query, measure and score; ir_measures itself fills in what is not there."""
    result = karat.evaluate(
        {query: row for query, row in run.items() if query in gold.documents},
        gold=gold,
        metrics=[*map(str, measures)],
        profile="trec_eval-9",
        force=True,
    )
    for measure in measures:
        for query, score in zip(
            result.queries, result[str(measure)].scores, strict=True
        ):
            if query in run and not isnan(score):
                yield query, measure, float(score)


def register() -> Any:
    """Have ir_measures ask karat before its other providers; returns the provider."""
    ir_measures: Any = import_module("ir_measures")

    providers = ir_measures.DefaultPipeline.providers
    own = [one for one in providers if one.NAME == _NAME]
    if not own:
        providers.insert(0, provider())
        ir_measures.providers.registry[_NAME] = providers[0]
    return providers[0]
