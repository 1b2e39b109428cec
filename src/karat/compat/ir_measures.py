"""A provider for ir_measures, so that its users, PyTerrier among them, run on karat.

    import karat.compat.ir_measures
    karat.compat.ir_measures.register()     # from now on karat is asked first

Measures that karat spells are computed by its formulas, under the policies of
trec_eval 9, as ir_measures' own default does; others go to the other providers.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import karat
from karat.extend import UsageError, read_metric

__all__ = ["provider", "register"]

_NAME = "karat"


def provider() -> Any:
    """The provider: an object with `calc_aggregate(measures, qrels, run)` and more."""
    ir_measures: Any = import_module("ir_measures")

    class Evaluator(ir_measures.providers.Evaluator):  # type: ignore[misc]
        """Scores runs against one set of qrels."""

        def __init__(self, measures: Iterable[Any], qrels: dict[str, Any]) -> None:
            super().__init__([*measures], set(qrels))
            self._qrels = qrels

        def _iter_calc(self, run: Any) -> Iterator[Any]:
            found = ir_measures.util.RunConverter(run).as_dict_of_dict()
            names = {str(measure): measure for measure in self.measures}
            result = karat.evaluate(
                {query: row for query, row in found.items() if query in self._qrels},
                gold=self._qrels,
                metrics=[*names],
                profile="trec_eval-9",
                force=True,
            )
            for spelling, measure in names.items():
                column = result[spelling]
                for query, score in zip(result.queries, column.scores, strict=True):
                    # ir_measures itself fills in what is not there.
                    if query in found and score == score:  # noqa: PLR0124
                        yield ir_measures.Metric(query, measure, float(score))

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
            labels = ir_measures.util.QrelsConverter(qrels).as_dict_of_dict()
            return Evaluator(measures, labels)

    return Provider()


def register() -> Any:
    """Have ir_measures ask karat before its other providers; returns the provider."""
    ir_measures: Any = import_module("ir_measures")

    providers = ir_measures.DefaultPipeline.providers
    known = [one for one in providers if one.NAME == _NAME]
    if not known:
        providers.insert(0, provider())
        ir_measures.providers.registry[_NAME] = providers[0]
    return providers[0]
