"""Several runs made one, and what each of them adds to the others."""

from karat.fusion.fuse import METHODS, NORMS, fuse
from karat.fusion.overlap import (
    Complementarity,
    RunAgreement,
    agree,
    complementarity,
    rbo,
)
from karat.fusion.weights import WeightSearch, search_weights

__all__ = [
    "METHODS",
    "NORMS",
    "Complementarity",
    "RunAgreement",
    "WeightSearch",
    "agree",
    "complementarity",
    "fuse",
    "rbo",
    "search_weights",
]
