"""Results: what a run scored, as plain values that save, load, merge and compare."""
