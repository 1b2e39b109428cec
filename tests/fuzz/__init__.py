"""Damaged and odd inputs by the thousand: karat says what is wrong, and goes on."""
