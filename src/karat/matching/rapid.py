"""RapidFuzz, on all cores; imported when first used, as most evaluations need none."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import numpy as np

from karat.data.arrays import Floats

__all__ = ["SLACK", "compare", "scorer"]

# RapidFuzz keeps cutoffs in single precision, which would lose scores that equal the
# threshold: it has to cut a little below, and what reaches it is decided here.
SLACK: Final = 1e-5
"""How far below a threshold a similarity must be to be ruled out."""


@cache
def _scorers() -> dict[str, tuple[Callable[..., float], int]]:
    """Scorers, each with the score it gives to equal texts."""
    from rapidfuzz import fuzz  # noqa: PLC0415  slow to import
    from rapidfuzz.distance import (  # noqa: PLC0415
        Hamming,
        Jaro,
        JaroWinkler,
        LCSseq,
        Levenshtein,
    )

    return {
        "levenshtein": (Levenshtein.normalized_similarity, 1),
        "hamming": (Hamming.normalized_similarity, 1),
        # In [0, 1] as they are; normalised again, batches and loops differ in a bit.
        "jaro": (Jaro.similarity, 1),
        "jaro_winkler": (JaroWinkler.similarity, 1),
        "token_set": (fuzz.token_set_ratio, 100),
        "partial": (fuzz.partial_ratio, 100),
        "ratio": (fuzz.ratio, 100),
        "subsequence": (LCSseq.normalized_similarity, 1),
        "subsequence_length": (LCSseq.similarity, 1),
    }


def scorer(name: str) -> Callable[..., float]:
    """The function that scores one pair of texts."""
    return _scorers()[name][0]


def compare(
    name: str, golds: Sequence[str], documents: Sequence[str], threshold: float = 0.0
) -> Floats:
    """The similarity of each pair, in [0, 1]; 0 where it is below the threshold.

    Example:
        >>> compare("levenshtein", ["day", "day"], ["days", "week"], 0.5).tolist()
        [0.75, 0.0]
    """
    from rapidfuzz import process  # noqa: PLC0415  slow to import

    function, top = _scorers()[name]
    scores: Floats = process.cpdist(
        golds,
        documents,
        scorer=function,
        score_cutoff=max(0.0, (threshold - SLACK) * top),
        dtype=np.float64,
        workers=-1,
    )
    return scores / top
