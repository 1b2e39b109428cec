"""Several runs made one, and what each of them adds to the others."""

from karat.fusion.complementarity import Complementarity, complementarity, rbo
from karat.fusion.fuse import METHODS, NORMS, fuse
from karat.fusion.weights import WeightSearch, search_weights

__all__ = [
    "METHODS",
    "NORMS",
    "Complementarity",
    "WeightSearch",
    "complementarity",
    "fuse",
    "rbo",
    "search_weights",
]
