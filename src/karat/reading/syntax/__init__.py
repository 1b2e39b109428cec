"""Bytes to records and back: a module for each syntax, whatever they mean."""
