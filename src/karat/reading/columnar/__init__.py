"""Runs, gold and samples in columns: Parquet, Arrow and DataFrames."""
