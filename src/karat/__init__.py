"""karat measures how good a retriever is.

    gold items x ranked documents --matcher--> matches --metric--> score

Names are loaded when first used, so that `import karat` costs next to nothing.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from karat.version import __version__

if TYPE_CHECKING:
    from karat.comparison.compare import compare
    from karat.comparison.comparison import Comparison
    from karat.data.gold import Gold
    from karat.data.queries import Corpus, Dataset
    from karat.data.runs import Run
    from karat.diagnosis.diagnose import diagnose
    from karat.diagnosis.diagnosis import Diagnosis
    from karat.diagnosis.doctor import doctor
    from karat.diagnosis.gold_findings import GoldFindings
    from karat.errors import KaratError
    from karat.evaluation import Evaluator, aevaluate, evaluate
    from karat.explanation import explain
    from karat.fusion import complementarity, fuse, rbo, search_weights
    from karat.leaderboards import leaderboard
    from karat.reading.label_patch import apply_labels
    from karat.reading.readers import read_corpus, read_gold, read_run, read_samples
    from karat.reports.files import flat_metrics
    from karat.results.evaluation import Evaluation
    from karat.results.leaderboard import Leaderboard
    from karat.results.loading import load
    from karat.retrieving.retrieve import aretrieve, retrieve
    from karat.suites import SuiteResult, run_suite
    from karat.sweeps import Sweep, sweep

__all__ = [
    "Comparison",
    "Corpus",
    "Dataset",
    "Diagnosis",
    "Evaluation",
    "Evaluator",
    "Gold",
    "GoldFindings",
    "KaratError",
    "Leaderboard",
    "Run",
    "SuiteResult",
    "Sweep",
    "__version__",
    "aevaluate",
    "apply_labels",
    "aretrieve",
    "compare",
    "complementarity",
    "diagnose",
    "doctor",
    "evaluate",
    "explain",
    "flat_metrics",
    "fuse",
    "leaderboard",
    "load",
    "rbo",
    "read_corpus",
    "read_gold",
    "read_run",
    "read_samples",
    "retrieve",
    "run_suite",
    "search_weights",
    "sweep",
]

_HOMES = {
    "Comparison": "karat.comparison.comparison",
    "Corpus": "karat.data.queries",
    "Dataset": "karat.data.queries",
    "Diagnosis": "karat.diagnosis.diagnosis",
    "Evaluation": "karat.results.evaluation",
    "Evaluator": "karat.evaluation",
    "Gold": "karat.data.gold",
    "GoldFindings": "karat.diagnosis.gold_findings",
    "KaratError": "karat.errors",
    "Leaderboard": "karat.results.leaderboard",
    "Run": "karat.data.runs",
    "SuiteResult": "karat.suites",
    "Sweep": "karat.sweeps",
    "aevaluate": "karat.evaluation",
    "aretrieve": "karat.retrieving.retrieve",
    "apply_labels": "karat.reading.label_patch",
    "compare": "karat.comparison.compare",
    "complementarity": "karat.fusion",
    "diagnose": "karat.diagnosis.diagnose",
    "doctor": "karat.diagnosis.doctor",
    "evaluate": "karat.evaluation",
    "explain": "karat.explanation",
    "flat_metrics": "karat.reports.files",
    "fuse": "karat.fusion",
    "leaderboard": "karat.leaderboards",
    "load": "karat.results.loading",
    "rbo": "karat.fusion",
    "read_corpus": "karat.reading.readers",
    "read_gold": "karat.reading.readers",
    "read_run": "karat.reading.readers",
    "read_samples": "karat.reading.readers",
    "retrieve": "karat.retrieving.retrieve",
    "run_suite": "karat.suites",
    "search_weights": "karat.fusion",
    "sweep": "karat.sweeps",
}

# A library is silent until its user asks: `karat -v` does, and so may any program.
logging.getLogger("karat").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    if name == "scale":
        return import_module("karat.scale")
    if name not in _HOMES:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
