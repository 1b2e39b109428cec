"""The order of scored rows: by score, then as the policy on ties says."""

from collections.abc import Sequence

import numpy as np

from karat.data.policies import Policies

__all__ = ["rank_order"]


def rank_order(
    scores: Sequence[float], documents: Sequence[str | bytes], policies: Policies
) -> list[int]:
    """The places of the rows, best first; rows that are alike stay as they came.

    Example:
        >>> rank_order([1.0, 2.0, 1.0], ["a", "b", "c"], Policies())
        [1, 2, 0]
    """
    compared = np.array(scores, np.float64)
    if policies.precision == "single":
        with np.errstate(over="ignore"):
            compared = compared.astype(np.float32).astype(np.float64)
    if policies.ties == "input":
        return [int(place) for place in np.argsort(-compared, kind="stable")]
    keys = list(zip(compared.tolist(), documents, strict=True))
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
