"""Many outside calls: concurrency, limits, retries, a journal, and resuming from it."""

from karat.dispatch.awaiting import awaited
from karat.dispatch.budget import Prices, tokens_of
from karat.dispatch.driver import Heard, Job, hear, hear_all
from karat.dispatch.estimation import Estimate, estimate
from karat.dispatch.journal import Journal
from karat.dispatch.progress import Progress, Stage
from karat.dispatch.protocol import Client
from karat.dispatch.settings import JOURNAL, Settings
from karat.errors import IncompleteError, InvalidReply, Refused, Transient

__all__ = [
    "JOURNAL",
    "Client",
    "Estimate",
    "Heard",
    "IncompleteError",
    "InvalidReply",
    "Job",
    "Journal",
    "Prices",
    "Progress",
    "Refused",
    "Settings",
    "Stage",
    "Transient",
    "awaited",
    "estimate",
    "hear",
    "hear_all",
    "tokens_of",
]
