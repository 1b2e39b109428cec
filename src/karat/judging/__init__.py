"""Judging: a language model as a matcher of claims, or as a grader that writes gold.

A judge is a generator: it yields prompts, receives replies and returns its verdict. How
and how often a model is asked is the business of `karat.dispatch`.
"""

from karat.dispatch import Prices, Settings
from karat.judging.bench import Bench, Rehearsal
from karat.judging.chat import ChatClient
from karat.judging.claims import Claims
from karat.judging.client import FunctionClient, OpenAIClient
from karat.judging.injection import probe_claims, probe_grader
from karat.judging.relevance import completed, grade_pool, pool, unlabelled
from karat.judging.splitting import split_references

__all__ = [
    "Bench",
    "ChatClient",
    "Claims",
    "FunctionClient",
    "OpenAIClient",
    "Prices",
    "Rehearsal",
    "Settings",
    "completed",
    "grade_pool",
    "pool",
    "probe_claims",
    "probe_grader",
    "split_references",
    "unlabelled",
]
