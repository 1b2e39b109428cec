"""Samples and rows as dictionaries, whatever their fields are called."""
