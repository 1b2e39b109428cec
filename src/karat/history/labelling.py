"""Labelling by several people: what each says last, and how far they agree."""

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from karat.history.gold import WITHDRAWN, StoredLabel
from karat.stats.agreement import agreement_figures, krippendorff_alpha

Words: TypeAlias = dict["Labelled", dict[str, StoredLabel]]
"""Each person's last word on each document."""


class Labelled(NamedTuple):
    """A document of a query: by its id, or by its text where it has none."""

    query: str
    document: str | None
    text: str | None


class RaterAgreement(NamedTuple):
    """How far two people agree, or all: then without `equal` and `kappa`."""

    people: tuple[str, ...]
    documents: int
    equal: float | None
    kappa: float | None
    alpha: float


def last_words(labels: Iterable[StoredLabel]) -> Words:
    """What each person says of each document today, the withdrawn left out."""
    words: Words = {}
    for label in labels:
        key = Labelled(label.query, label.document, label.text)
        words.setdefault(key, {})[label.who] = label
    for said in words.values():
        for who in [w for w, label in said.items() if label.verdict == WITHDRAWN]:
            del said[who]
    return words


def disagreements(words: Words) -> Words:
    """The documents to which people give different grades."""
    return {
        key: said
        for key, said in words.items()
        if len({label.grade for label in said.values() if label.grade is not None}) > 1
    }


def agreements(words: Words) -> list[RaterAgreement]:
    """How far every two people agree, and all of them together."""
    people = sorted({who for said in words.values() for who in said})
    grades = {who: np.full(len(words), np.nan) for who in people}
    for place, said in enumerate(words.values()):
        for who, label in said.items():
            grades[who][place] = np.nan if label.grade is None else label.grade
    queries = np.unique([key.query for key in words], return_inverse=True)[1]
    found = []
    for pair in combinations(people, 2):
        both = ~np.isnan(grades[pair[0]] + grades[pair[1]])
        if both.any():
            one, other = (grades[who][both] for who in pair)
            clusters = np.unique(queries[both], return_inverse=True)[1]
            all_figures = agreement_figures(one, other, clusters)
            chosen = (all_figures.equal, all_figures.weighted_kappa, all_figures.alpha)
            values = (figure.value for figure in chosen)
            found.append(RaterAgreement(pair, int(both.sum()), *values))
    if len(people) > 2:  # noqa: PLR2004
        every = np.array([*grades.values()])
        common = int((~np.isnan(every)).all(axis=0).sum())
        alpha = krippendorff_alpha(*every)
        found.append(RaterAgreement(tuple(people), common, None, None, alpha))
    return found
