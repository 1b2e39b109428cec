"""Narrowing: reading only a part of each ranking, as `-M` and `-J` of trec_eval do."""

from dataclasses import replace

import numpy as np

from karat.data.arrays import Bools, Ints, count_by, place_by
from karat.data.policies import Policies
from karat.data.runs import Located

__all__ = ["narrow"]


def narrow(located: Located, policies: Policies) -> Located:
    """What is left when only the top `depth` or only judged documents are read.

    The depth is applied first. Then, with `judged_only`, documents without a judgement
    leave the ranking and the others move up; as in trec_eval, a negative grade marks a
    document that was pooled but not judged. That needs rows of all labelled documents,
    so the run must have been asked for them (`judged=True`).
    """
    if policies.depth is not None:
        # No ranking is longer than what counts its documents can count.
        depth = min(policies.depth, np.iinfo(np.int64).max)
        located = _keep(
            located,
            located.rank <= depth,
            located.rank,
            np.minimum(located.retrieved, depth),
        )
    if policies.judged_only:
        rows = located.grade >= 0
        size = len(located.retrieved)
        query, rank = located.query[rows], located.rank.copy()
        # Several rows may lie at one rank: one document with several gold texts.
        new = np.ones(len(query), np.bool_)
        new[1:] = (np.diff(query) != 0) | (np.diff(rank[rows]) != 0)
        left = count_by(query[new], size)
        rank[rows] = place_by(query[new], size)[new.cumsum() - 1]
        located = _keep(located, rows, rank, np.minimum(located.retrieved, left))
    return located


def _keep(located: Located, rows: Bools, rank: Ints, retrieved: Ints) -> Located:
    return replace(
        located,
        query=located.query[rows],
        rank=rank[rows],
        grade=located.grade[rows],
        item=None if located.item is None else located.item[rows],
        retrieved=retrieved,
    )
