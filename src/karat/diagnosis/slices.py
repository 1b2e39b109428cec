"""Slices: kinds of queries that fare worse than the others, by tags and by features."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from karat.data.arrays import Floats
from karat.data.queries import Query
from karat.matching.coverage.contradictions import negates
from karat.stats.distributions import t_below
from karat.stats.multiple_tests import benjamini_hochberg

_FALSE_FINDINGS = 0.1
# Of fewer queries, or with fewer others, nothing is said.
_LEAST = 20
_SHORT, _LONG = 5, 15
_WORD: Final = re.compile(r"\w+")
_DATE: Final = re.compile(
    r"\b(?:1[0-9]|20)\d\d\b|\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b"
    r"|\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|june|july|aug(?:ust)?|sept(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|yesterday|today|tomorrow|monday"
    r"|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
    re.IGNORECASE,
)
_OPENINGS: Final = re.compile(
    r"(?:what|wh(?:om?|ose|en|ere|y|ich)|how|is|are|was|were|do|does|did|can|could|"
    r"should|will|would|ha[sd]|have)"
)


@dataclass(frozen=True)
class Slice:
    """Queries that have something in common, and how they fare.

    Attributes:
        name: what they have in common, such as `length: long` or a tag.
        queries: how many.
        recall: their mean recall.
        others: the mean recall of all other queries.
        p: how likely such a difference is by chance.
        adjusted_p: the same, corrected for the number of slices looked at.
        failing: whether they are worse, with false findings kept at one in ten.
    """

    name: str
    queries: int
    recall: float
    others: float
    p: float
    adjusted_p: float
    failing: bool


def features_of(text: str) -> Iterator[str]:
    """What can be seen of a query at a glance.

    Example:
        >>> [*features_of("Who was not paid in 1999?")]
        ['length: medium', 'numbers', 'date', 'negation', 'begins with: who']
    """
    words = _WORD.findall(text.casefold())
    size = len(words)
    length = "short" if size <= _SHORT else "long" if size >= _LONG else "medium"
    yield f"length: {length}"
    if any(char.isdigit() for char in text):
        yield "numbers"
    if _DATE.search(text):
        yield "date"
    if negates(text):
        yield "negation"
    if words and _OPENINGS.fullmatch(words[0]):
        yield f"begins with: {words[0]}"
    scripts = Counter(
        unicodedata.name(char, "?").partition(" ")[0] for char in text if char.isalpha()
    )
    if scripts and (script := scripts.most_common(1)[0][0]) != "LATIN":
        yield f"script: {script.title()}"


def failing_slices(
    recalls: Floats,
    relevant: Sequence[int],
    queries: Sequence[str],
    facts: Mapping[str, Query],
) -> tuple[Slice, ...]:
    """The slices that are large enough to say something of, the worst first.

    Args:
        recalls: of each query; NaN where it has no relevant gold.
        relevant: how many relevant gold items each query has.
        queries: their ids.
        facts: what is known of them.
    """
    rows: dict[str, list[int]] = {}
    for place in np.flatnonzero(~np.isnan(recalls)).tolist():
        fact = facts.get(queries[place])
        names = [f"tag: {tag}" for tag in fact.tags] if fact else []
        names += features_of(fact.text) if fact and fact.text else ()
        count = relevant[place]
        names.append(f"gold items: {count}" if count <= 2 else "gold items: 3 or more")  # noqa: PLR2004
        for name in names:
            rows.setdefault(name, []).append(place)
    known = recalls[~np.isnan(recalls)]
    whole, size = known.sum(), len(known)
    spread = float(((known - known.mean()) ** 2).sum()) if size else 0.0
    kept, p = [], []
    for name, own in rows.items():
        count = len(own)
        if count < _LEAST or size - count < _LEAST:
            continue
        inside = recalls[own].sum()
        recall, others = inside / count, (whole - inside) / (size - count)
        kept.append((name, count, float(recall), float(others)))
        p.append(_chance(recall - others, count, size, spread))
    adjusted = benjamini_hochberg(np.array(p, np.float64)).tolist()
    found = []
    for one, chance, corrected in zip(kept, p, adjusted, strict=True):
        failing = one[2] < one[3] and corrected <= _FALSE_FINDINGS
        found.append(Slice(*one, chance, corrected, failing))
    return tuple(sorted(found, key=lambda one: (one.p, one.recall, one.name)))


def _chance(difference: float, count: int, size: int, spread: float) -> float:
    """The p-value of a difference of means, if a slice were any such queries.

    Student's t of two samples with one variance, which a permutation of the queries
    would give, too.
    """
    other = size - count
    between = difference**2 * count * other / size
    within = spread - between
    if within <= 1e-12 * max(spread, 1.0):
        return 1.0 if between <= 0 else 0.0
    return 2 * t_below(-((between / within * (size - 2)) ** 0.5), size - 2)
