"""Probing a judge: insert attack prompts into texts, and count their effect."""

from karat.judging.probe.report import Attempt, ProbeReport
from karat.judging.probe.run import PASSAGES, probe_claims, probe_grader

__all__ = ["PASSAGES", "Attempt", "ProbeReport", "probe_claims", "probe_grader"]
