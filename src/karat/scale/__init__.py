"""Scale: runs of any size, in parts, on any engine, with the numbers of a single pass.

`scan` looks at a part of a run wherever it lies and returns a small `Partial`; `merge`
makes of all partials the `Evaluation` that one pass over the whole run would give.
"""

from karat.reading.columnar.scanning import Partial
from karat.scale.partials import merge, scan, torn
from karat.scale.spark import score
from karat.scale.totals import MetricTotal, Totals, add_totals, total_of

__all__ = [
    "MetricTotal",
    "Partial",
    "Totals",
    "add_totals",
    "merge",
    "scan",
    "score",
    "torn",
    "total_of",
]
