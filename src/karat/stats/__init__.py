"""How sure a number is: arrays in, numbers out."""

from karat.stats.intervals import mean_interval, moments_interval

__all__ = ["mean_interval", "moments_interval"]
