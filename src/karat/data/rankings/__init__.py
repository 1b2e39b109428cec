"""Runs held in memory as Python objects: scored dictionaries, lists of ids, documents.

Only labelled ids are ever looked up, so most of a ranking is never touched by Python
code; the rest is one copy of the scores or one set intersection per query, both in C.
"""

from karat.data.rankings.documents import DocumentRun
from karat.data.rankings.ranked import RankedRun
from karat.data.rankings.scored import ScoredRun

__all__ = ["DocumentRun", "RankedRun", "ScoredRun"]
