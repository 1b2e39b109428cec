"""The journal: every reply that was paid for, kept in SQLite and found again."""

from karat.llm.journal.journal import Contents, Entry, Journal, PromptKeys, storable
from karat.llm.journal.process_lock import ProcessLock
from karat.llm.journal.writer import JournalWriter

__all__ = [
    "Contents",
    "Entry",
    "Journal",
    "JournalWriter",
    "ProcessLock",
    "PromptKeys",
    "storable",
]
