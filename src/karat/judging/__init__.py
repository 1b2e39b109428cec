"""Judging: a language model as a matcher of claims, or as a grader that writes gold.

A judge is a generator: it yields prompts, receives replies and returns its verdict.
`karat.llm` decides how and how often a model is asked.
"""

from karat.judging.calibration import read_claim_labels
from karat.judging.claims import Claims
from karat.judging.grading import (
    complete_gold,
    grade_pool,
    pool,
    retest,
    unlabelled,
)
from karat.judging.session import DryRun, JudgeSession
from karat.judging.splitting import split_references
from karat.llm import Prices, Settings
from karat.llm.callables import FunctionClient
from karat.llm.chat_client import ChatClient
from karat.llm.openai_client import OpenAIClient

__all__ = [
    "ChatClient",
    "Claims",
    "DryRun",
    "FunctionClient",
    "JudgeSession",
    "OpenAIClient",
    "Prices",
    "Settings",
    "complete_gold",
    "grade_pool",
    "pool",
    "read_claim_labels",
    "retest",
    "split_references",
    "unlabelled",
]
