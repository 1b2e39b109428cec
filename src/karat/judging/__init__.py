"""Judging: a language model as a matcher of claims, or as a grader that writes gold.

A judge is a generator: it yields prompts, receives replies and returns its verdict.
`karat.llm` decides how and how often a model is asked.
"""
