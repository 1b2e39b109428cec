"""Many outside calls: concurrency, limits, retries, a journal, and resuming from it."""

from karat.errors import IncompleteError, InvalidReply, Refused, Transient
from karat.llm.awaiting import awaited
from karat.llm.budget import Prices, tokens_of
from karat.llm.estimation import Estimate, estimate
from karat.llm.journal import Journal
from karat.llm.progress import Progress, Stage
from karat.llm.protocol import Client
from karat.llm.run_jobs import Job, Results, run_jobs, run_jobs_sync
from karat.llm.settings import JOURNAL, Settings

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
    "awaited",
    "estimate",
    "run_jobs",
    "run_jobs_sync",
    "tokens_of",
]
