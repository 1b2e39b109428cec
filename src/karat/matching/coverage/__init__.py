"""The matcher by coverage: how much of a gold text the retrieved documents hold."""
