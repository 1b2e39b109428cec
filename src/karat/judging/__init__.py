"""Judging: a language model as a matcher of claims, or as a grader that writes gold.

A judge is a generator: it yields prompts, receives replies and returns its verdict. How
and how often a model is asked is the business of `karat.dispatch`.
"""

from karat.judging.bench import Bench, Rehearsal
from karat.judging.claims import Claims
from karat.judging.client import FunctionClient, OpenAIClient
from karat.judging.relevance import grade_pool, pool
from karat.judging.splitting import split_references

__all__ = [
    "Bench",
    "Claims",
    "FunctionClient",
    "OpenAIClient",
    "Rehearsal",
    "grade_pool",
    "pool",
    "split_references",
]
