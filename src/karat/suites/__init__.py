"""Suites: evaluations that are written down in a file and run by their name."""
