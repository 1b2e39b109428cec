"""Many calls to a model: concurrency, limits, retries, and a journal to resume from."""
