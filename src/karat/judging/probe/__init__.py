"""Probing a judge: insert attack prompts into texts, and count their effect."""
