"""The nouns: queries, runs, gold, hits, evaluations. Values, without opinions."""
