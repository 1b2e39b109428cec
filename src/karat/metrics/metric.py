"""What a metric is: a frozen value with a spelling and one formula over hits."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from karat.data.arrays import Floats, Ints
from karat.data.hits import Hits
from karat.data.spelling import LETTER, Cutoff, Spelled
from karat.errors import ParameterError

# How many terms of a sum `workings` shows.
_SHOWN = 8


@dataclass(frozen=True)
class Metric(Spelled, ABC):
    """One number per query, computed from hits and nothing else.

    A subclass with parameters of its own is a frozen dataclass: its fields are the
    parameters of its spelling, in order. The first line of its docstring is its row in
    the catalogue.

    Attributes:
        name: the spelling without parameters.
        formula: the rule in one line, for `karat metrics` and `--explain`.
        matcher: the matcher it takes when the caller names none, if it needs its own.
        binary: whether a query's score can only be 0 or 1.
        reads_judged: whether it needs rows of judged non-relevant documents.
        bounds: the smallest and largest score.
        average: how queries become one number: `mean`, `geometric` (mean) or `sum`.
        higher_is_better: which of two scores is the better one; None: neither.
        choices: for parameters with a fixed set of values, that set.
        limits: for parameters that are numbers, the interval, as in `(0, 1]`.

    Example:
        >>> from dataclasses import dataclass
        >>> import karat
        >>> @dataclass(frozen=True)
        ... class Labelled(Metric):
        ...     name = "labelled"
        ...     def score(self, hits):
        ...         return hits.gold_count.astype(float)
        >>> karat.evaluate({"q": ["a"]}, {"q": ["a", "b"]}, metrics=Labelled()).means
        {'labelled': 2.0}
    """

    formula: ClassVar[str] = ""
    matcher: ClassVar[str | None] = None
    binary: ClassVar[bool] = False
    reads_judged: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    average: ClassVar[str] = "mean"
    higher_is_better: ClassVar[bool | None] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        threshold = getattr(self, "threshold", None)
        if threshold is not None and (
            isinstance(threshold, bool) or not isinstance(threshold, int | float)
        ):
            raise ParameterError(self.name, "threshold", "a number", threshold)
        k = getattr(self, LETTER, None)
        if k not in (None, LETTER) and (type(k) is not int or k < 1):
            raise ParameterError(self.name, LETTER, "an integer >= 1", k)

    @abstractmethod
    def score(self, hits: Hits) -> Floats:
        """The score of every query; NaN where it is undefined."""

    @property
    def needs_judged(self) -> bool:
        """Whether rows of items with a grade <= 0 can change the score."""
        threshold = getattr(self, "threshold", None)
        return self.reads_judged or (threshold is not None and threshold <= 0)

    @classmethod
    def summary(cls) -> str:
        """What the number says, in one line."""
        return (cls.__doc__ or cls.name).strip().splitlines()[0]

    def workings(self, hits: Hits) -> str:
        """The arithmetic behind the score of the only query of the hits."""
        del hits
        return self.formula


def add_up(terms: Floats | list[str]) -> str:
    """The first terms of a sum, for `workings`."""
    shown = [t if isinstance(t, str) else f"{t:.4f}" for t in terms[:_SHOWN]]
    return " + ".join(shown + ["..."] * (len(terms) > _SHOWN)) or "0"


@dataclass(frozen=True)
class CutoffMetric(Metric):
    """A metric that may look at the top k only.

    Attributes:
        k: the last rank that counts, the letter for each query's own, or None for all.

    Example:
        >>> from karat.extend import make_metric
        >>> metric = make_metric("ndcg", k=10)
        >>> isinstance(metric, CutoffMetric), metric.k, str(metric)
        (True, 10, 'ndcg@10')
    """

    k: Cutoff = None

    def within(self, hits: Hits, query: Ints, rank: Ints) -> Ints | slice:
        """Selects the rows that the cutoff lets count."""
        cutoff = hits.cutoff(self.k, query)
        # Several columns are read by these: by number that is faster than by mask.
        return slice(None) if cutoff is None else (rank <= cutoff).nonzero()[0]

    def paid_within(self, hits: Hits) -> tuple[Ints, Ints, Floats]:
        """Query, slot and grade of the relevant items paid within the cutoff."""
        query, _, slot, _, grade, *_ = hits.credits(getattr(self, "threshold", None))
        rows = self.within(hits, query, slot)
        return query[rows], slot[rows], grade[rows]

    def positions_within(self, hits: Hits) -> tuple[Ints, Ints]:
        """Query and rank of the positions within the cutoff that match."""
        query, rank = hits.positions(getattr(self, "threshold", None))
        rows = self.within(hits, query, rank)
        return query[rows], rank[rows]


@dataclass(frozen=True)
class BinaryMetric(CutoffMetric):
    """A metric that only asks whether a gold item is relevant.

    Attributes:
        threshold: the smallest grade that counts as relevant; None: any positive one.

    Example:
        >>> from karat.extend import make_metric
        >>> isinstance(make_metric("recall"), BinaryMetric)
        True
        >>> str(make_metric("recall", threshold=2))
        'recall(threshold=2)'
    """

    threshold: float | None = None
