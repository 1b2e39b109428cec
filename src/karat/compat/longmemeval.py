"""LongMemEval's retrieval scores: session or turn level, for one question at a time.

    recall_any, recall_all, ndcg_any = evaluate_retrieval(
        rankings, correct_docs, corpus_ids, k=5
    )

`rankings` are places in `corpus_ids`, best first, as `numpy.argsort` gives them. The
numbers are karat's `hit`, `recall_all` and the two halves of `ndcg_any`, under the
original's rules: the ideal reorders the whole corpus, k cuts as a Python slice does,
and a question without correct documents has `recall_all` 1.0 and the others 0.0.

It differs from the original in one point: a place outside the corpus, ids that cannot
be hashed and a k that is no integer are errors that say so.
"""

from collections.abc import Hashable, Iterable, Sequence
from operator import index
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from karat.compat.exact_matching import hits_of_ids, score_of
from karat.extend import DataError, NDCGAny, ParameterError

__all__ = ["evaluate_retrieval", "evaluate_retrieval_turn2session", "read_cutoff"]

Places: TypeAlias = Sequence[int] | npt.NDArray[np.signedinteger[Any]]


def evaluate_retrieval(
    rankings: Places,
    correct_docs: Iterable[Hashable],
    corpus_ids: Iterable[Hashable],
    k: int = 10,
) -> tuple[float, float, float]:
    """Whether any and whether all correct documents are in the top k, and the nDCG.

    Example:
        >>> evaluate_retrieval([2, 0, 1], ["a", "b"], ["a", "b", "c"], k=2)
        (1.0, 0.0, 0.5)
    """
    k = read_cutoff(k)
    correct, corpus = list(correct_docs), list(corpus_ids)
    top = _top(rankings, corpus, k)
    best = sorted(corpus, key=correct.__contains__, reverse=True)
    # ndcg() cuts the ranking and dcg() cuts it again, which tells for a negative k.
    hits = hits_of_ids([correct] * 3, [top, top[:k], best[:k]])
    recall_any = score_of("hit", hits) if correct else 0.0
    # all() of no correct document is true.
    recall_all = score_of("recall_all", hits) if correct else 1.0
    _, gain, ideal = NDCGAny().dcg(hits).tolist()
    return recall_any, recall_all, gain / ideal if ideal else 0.0


def evaluate_retrieval_turn2session(
    rankings: Places,
    correct_docs: Iterable[str],
    corpus_ids: Iterable[str],
    k: int = 10,
) -> tuple[float, float, float]:
    """The same for sessions, from a ranking of turns: k grows until k are covered.

    The session of a turn is its id without what follows the last underscore.

    Example:
        >>> turns = ["s1_1", "s1_2", "s2_1", "s3_1"]
        >>> evaluate_retrieval_turn2session([0, 1, 2, 3], ["s2_1"], turns, k=2)
        (1.0, 1.0, 0.6309297535714575)
    """
    k = read_cutoff(k)
    correct = list(dict.fromkeys(map(_session, correct_docs)))
    corpus = [_session(turn) for turn in corpus_ids]
    depth = k
    while depth <= len(corpus) and len(set(_top(rankings, corpus, depth))) < k:
        depth += 1
    return evaluate_retrieval(rankings, correct, corpus, depth)


def _top(rankings: Places, corpus: Sequence[Any], k: int) -> list[Any]:
    try:
        return [corpus[place] for place in rankings[:k]]
    except IndexError:
        raise DataError(
            f"rankings must be places in corpus_ids, which has {len(corpus)}"
        ) from None


def _session(turn: str) -> str:
    # strip_turn_id() leaves nothing of an id without an underscore.
    return turn.rpartition("_")[0]


def read_cutoff(k: int, owner: str = "evaluate_retrieval") -> int:
    """A cutoff, which is any integer."""
    try:
        return index(k)
    except TypeError:
        raise ParameterError(owner, "k", "an integer", k) from None
