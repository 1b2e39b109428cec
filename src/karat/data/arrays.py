"""The few array words every formula uses, typed once."""

import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
"""An array of floats, such as one score per query."""
Ints: TypeAlias = npt.NDArray[np.int64]
"""An array of integers, such as ranks."""
Bools: TypeAlias = npt.NDArray[np.bool_]
"""An array of truth values, such as which rows count."""
INEXACT = 2.0**53
"""From here on, different whole numbers may be equal as floats."""


def as_floats(numbers: Iterable[object]) -> Floats:
    """Python's numbers side by side; what is none is a `struct.error`.

    NumPy's own way would take several times as long, and text for numbers.
    """
    values = [*numbers]
    if values and type(values[0]) is int:
        # Whole numbers, if all are, go three times as fast.
        with suppress(struct.error):
            whole = struct.pack(f"{len(values)}q", *values)
            return np.frombuffer(whole, np.int64).astype(np.float64)
    return np.frombuffer(struct.pack(f"{len(values)}d", *values))


def sum_by(query: Ints, weights: npt.NDArray[Any], size: int) -> Floats:
    """Add up the weights of each query's rows, in row order.

    `bincount` adds one row after the other, as trec_eval does; pairwise summation
    would differ in the last bit and could flip a printed decimal.

    Example:
        >>> sum_by(np.array([0, 0, 2]), np.array([1.0, 0.5, 2.0]), size=3).tolist()
        [1.5, 0.0, 2.0]
    """
    # Without any rows bincount counts, in integers, even if there are weights.
    total = np.bincount(query, weights, size)
    return cast("Floats", total if len(query) else np.zeros(len(total)))


def running_sum(query: Ints, values: Floats) -> Floats:
    """Add up each query's rows so far, the row itself included.

    Example:
        >>> running_sum(np.array([0, 0, 2]), np.array([1.0, 0.5, 2.0])).tolist()
        [1.0, 1.5, 2.0]
    """
    # Extended precision, where there is any, keeps a query's sums clear of all before.
    total = np.cumsum(values, dtype=np.longdouble)
    first = np.add.accumulate(np.concatenate(([0], np.bincount(query))))
    before = np.concatenate(([0], total))[first][query]
    return (total - before).astype(np.float64)


def count_by(query: Ints, size: int) -> Ints:
    """Count each query's rows.

    Example:
        >>> count_by(np.array([0, 0, 2]), size=3).tolist()
        [2, 0, 1]
    """
    return np.bincount(query, minlength=size)


def place_by(query: Ints, size: int) -> Ints:
    """Number each query's rows from 1; rows of a query stand together.

    Example:
        >>> place_by(np.array([0, 0, 2]), size=3).tolist()
        [1, 2, 1]
    """
    count = np.bincount(query, minlength=size)
    first = np.add.accumulate(count) - count
    return cast("Ints", np.arange(1, len(query) + 1) - first[query])


def defined(score: Floats, count: Ints) -> Floats:
    """The scores, made undefined (NaN) in place where there is nothing to count."""
    if np.count_nonzero(count) < len(count):
        score[count == 0] = np.nan
    return score


def ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> Floats:
    """Divide element by element; where the whole is 0 the result is undefined (NaN).

    Example:
        >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
        [0.5, nan]
    """
    if np.count_nonzero(whole) == np.size(whole):
        return cast("Floats", part / whole)
    result = np.full(part.shape, np.nan)
    return cast("Floats", np.divide(part, whole, out=result, where=whole != 0))
