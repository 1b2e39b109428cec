"""History: every run ever made, scored by the gold of today.

with karat.history.open("history.db") as store:
    store.push(result, commit="a1b2c3", branch="main")
"""

from karat.history.gold import GoldChange, StoredLabel
from karat.history.scoring import Change
from karat.history.store import Pushed, Rescored, Store, StoredRun
from karat.history.tokens import Token

open = Store

__all__ = [
    "Change",
    "GoldChange",
    "Pushed",
    "Rescored",
    "Store",
    "StoredLabel",
    "StoredRun",
    "Token",
    "open",
]
