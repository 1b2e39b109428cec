"""Engines: where an evaluation is computed. Any metric runs on any of them."""

from karat.catalogue import Catalogue
from karat.engines.engine import Engine, Measure, Outcome, Plan
from karat.engines.local import Local

__all__ = ["ENGINES", "SHIPPED", "Engine", "Measure", "Outcome", "Plan"]

SHIPPED: tuple[type[Engine], ...] = (Local,)

ENGINES: Catalogue[type[Engine]] = Catalogue(
    "engine", {engine.name: engine for engine in SHIPPED}, group="karat.engines"
)
