# Written by `make docs` from the module of the same name.
# fmt: off
from karat.combined_labels import CombinedScores as CombinedScores
from karat.combined_labels import combine_labels as combine_labels
from karat.comparison.compare import compare as compare
from karat.comparison.comparison import Comparison as Comparison
from karat.data.gold import Gold as Gold
from karat.data.queries import Corpus as Corpus
from karat.data.queries import Dataset as Dataset
from karat.data.runs import Run as Run
from karat.diagnosis.diagnose import diagnose as diagnose
from karat.diagnosis.diagnosis import Diagnosis as Diagnosis
from karat.diagnosis.doctor import GoldFindings as GoldFindings
from karat.diagnosis.doctor import doctor as doctor
from karat.errors import KaratError as KaratError
from karat.evaluation import Evaluator as Evaluator
from karat.evaluation import aevaluate as aevaluate
from karat.evaluation import evaluate as evaluate
from karat.evaluation import row_scorer as row_scorer
from karat.explanation import explain as explain
from karat.fusion import complementarity as complementarity
from karat.fusion import fuse as fuse
from karat.fusion import rbo as rbo
from karat.fusion import search_weights as search_weights
from karat.label_plans import LabelPlan as LabelPlan
from karat.label_plans import plan_labels as plan_labels
from karat.leaderboards import leaderboard as leaderboard
from karat.leaderboards import rank_correlation as rank_correlation
from karat.reading.labels import apply_labels as apply_labels
from karat.reading.readers import read_corpus as read_corpus
from karat.reading.readers import read_gold as read_gold
from karat.reading.readers import read_run as read_run
from karat.reading.readers import read_samples as read_samples
from karat.reports.files import flat_metrics as flat_metrics
from karat.results.evaluation import Evaluation as Evaluation
from karat.results.leaderboard import Leaderboard as Leaderboard
from karat.results.loading import load as load
from karat.retrieving.retrieve import aretrieve as aretrieve
from karat.retrieving.retrieve import retrieve as retrieve
from karat.suites import SuiteResult as SuiteResult
from karat.suites import run_suite as run_suite
from karat.sweeps import Sweep as Sweep
from karat.sweeps import sweep as sweep
from karat import history as history
from karat import scale as scale
__version__: str
__all__ = ["CombinedScores", "Comparison", "Corpus", "Dataset", "Diagnosis", "Evaluation", "Evaluator", "Gold", "GoldFindings", "KaratError", "LabelPlan", "Leaderboard", "Run", "SuiteResult", "Sweep", "__version__", "aevaluate", "apply_labels", "aretrieve", "combine_labels", "compare", "complementarity", "diagnose", "doctor", "evaluate", "explain", "flat_metrics", "fuse", "leaderboard", "load", "plan_labels", "rank_correlation", "rbo", "read_corpus", "read_gold", "read_run", "read_samples", "retrieve", "row_scorer", "run_suite", "search_weights", "sweep"]
