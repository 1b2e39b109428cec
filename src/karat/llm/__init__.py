"""Many calls to a model: concurrency, limits, retries, and a journal to resume from."""

from karat.errors import IncompleteError, InvalidReply, Refused, Transient
from karat.llm.budget import Prices, tokens_of
from karat.llm.dry_run import Estimate, estimate
from karat.llm.journal import Journal
from karat.llm.progress import Progress, Stage
from karat.llm.protocol import Client
from karat.llm.run_jobs import Job, Results, run_jobs, run_sync
from karat.llm.run_options import JOURNAL, Settings

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
