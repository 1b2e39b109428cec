"""Rows as columns: ids, numbers, and rankings of them."""
