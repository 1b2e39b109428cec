"""Evaluations in parts."""
