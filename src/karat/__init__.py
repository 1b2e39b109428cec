"""karat measures how good a retriever is.

    gold items x ranked documents --matcher--> matches --metric--> score

Names are loaded when first used, so that `import karat` costs next to nothing. Editors
and type checkers read them in the stub beside this file, which `make docs` writes.
"""

import logging
from importlib import import_module

from karat.version import __version__ as __version__

_HOMES = {
    "karat.combined_labels": "CombinedScores combine_labels",
    "karat.comparison.compare": "compare",
    "karat.comparison.comparison": "Comparison",
    "karat.data.gold": "Gold",
    "karat.data.queries": "Corpus Dataset",
    "karat.data.runs": "Run",
    "karat.diagnosis.diagnose": "diagnose",
    "karat.diagnosis.diagnosis": "Diagnosis",
    "karat.diagnosis.doctor": "GoldFindings doctor",
    "karat.errors": "KaratError",
    "karat.evaluation": "Evaluator aevaluate evaluate row_scorer",
    "karat.explanation": "explain",
    "karat.fusion": "RunAgreement agree complementarity fuse rbo search_weights",
    "karat.generating": "QuestionSet generate",
    "karat.label_plans": "LabelPlan plan_labels",
    "karat.leaderboards": "leaderboard rank_correlation",
    "karat.reading.labels": "apply_labels",
    "karat.reading.readers": "read_corpus read_gold read_run read_samples",
    "karat.reports.files": "flat_metrics",
    "karat.results.evaluation": "Evaluation",
    "karat.results.leaderboard": "Leaderboard",
    "karat.results.loading": "load",
    "karat.retrieving.retrieve": "aretrieve retrieve",
    "karat.suites.run": "SuiteResult run_suite",
    "karat.sweeps": "Sweep sweep",
}
"""The public names, by the module that each is loaded from."""

_MODULES = {name: module for module, row in _HOMES.items() for name in row.split()}
__all__ = sorted(["__version__", *_MODULES])  # noqa: PLE0605

# A library is silent until its user asks: `karat -v` does, and so may any program.
logging.getLogger("karat").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    if name in {"history", "scale"}:
        return import_module(f"karat.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
