"""Scale: tables of Spark, scored where they lie."""

from karat.scale.spark import score
from karat.scale.totals import MetricTotal, Totals, add_totals, total_of

__all__ = ["MetricTotal", "Totals", "add_totals", "score", "total_of"]
