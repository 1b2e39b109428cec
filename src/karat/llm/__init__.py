"""Many calls to a model: concurrency, limits, retries, and a journal to resume from."""

from karat.errors import IncompleteError, InvalidReply, Refused, Transient
from karat.llm.callables import run_sync
from karat.llm.dry_run import Estimate, estimate
from karat.llm.journal import Journal
from karat.llm.limits import Prices, tokens_of
from karat.llm.run_jobs import Job, Results, run_jobs
from karat.llm.settings import JOURNAL, Client, Progress, Settings, Stage

__all__ = [
    "JOURNAL",
    "Client",
    "Estimate",
    "IncompleteError",
    "InvalidReply",
    "Job",
    "Journal",
    "Prices",
    "Progress",
    "Refused",
    "Results",
    "Settings",
    "Stage",
    "Transient",
    "estimate",
    "run_jobs",
    "run_sync",
    "tokens_of",
]
