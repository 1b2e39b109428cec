"""Sweeps: settings of a retriever tried one after the other, and the best of them."""

from karat.sweeps.result import Sweep, Trial
from karat.sweeps.run import sweep

__all__ = ["Sweep", "Trial", "sweep"]
