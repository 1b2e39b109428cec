"""Runs the user's retriever over queries: what comes back, how fast, what fails."""
