"""Ids compared in bulk: words as 64-bit keys, verified byte by byte."""
