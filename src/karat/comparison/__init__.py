"""Comparison: whether one run is better than another, by how much, and in what way."""
