"""TREC files: qrels and runs, scanned in blocks without keeping the run."""
