"""Suites: evaluations that are written down in a file and run by their name."""

from karat.suites.run import SuiteResult, run_suite

__all__ = ["SuiteResult", "run_suite"]
