"""The version of karat; the wheel is named after it."""

__version__ = "0.3.0.dev0"
