"""The interval of a mean: how far the mean of other such queries may lie from it."""

from typing import NamedTuple, Self


class _Limits(NamedTuple):
    low: float
    high: float


class Interval(_Limits):
    """A confidence interval of a mean: its two limits, and how it was computed.

    Attributes:
        low: the lower limit.
        high: the upper limit.
        level: the share of such intervals that hold the true mean.
        method: how it was computed.

    Example:
        >>> low, high = Interval(0.25, 0.75, method="t")
        >>> low, high
        (0.25, 0.75)
    """

    level: float
    method: str

    def __new__(
        cls, low: float, high: float, level: float = 0.95, method: str = ""
    ) -> Self:
        """An interval of these limits."""
        interval = super().__new__(cls, low, high)
        interval.level, interval.method = level, method
        return interval

    def to_dict(self) -> dict[str, float | str]:
        """The limits, the level and the method, in plain values."""
        return {**self._asdict(), "level": self.level, "method": self.method}
