"""Slices: kinds of queries, and of documents, that fare worse than the others."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from karat.data.arrays import Floats
from karat.data.queries import Query
from karat.diagnosis.corpus_texts import script_of
from karat.matching.contradictions import negates
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
# A folder, or what stands before the first mark or number.
_PREFIX: Final = re.compile(r".+/|[^\W\d_]+[-_:#|.]?|\d+[-_:#|.]")
_OPENINGS: Final = re.compile(
    r"(?:what|wh(?:om?|ose|en|ere|y|ich)|how|is|are|was|were|do|does|did|can|could|"
    r"should|will|would|ha[sd]|have)"
)


@dataclass(frozen=True)
class Slice:
    """Queries, or gold items, that have something in common, and how they fare."""

    name: str  # what they have in common, such as `length: long` or a tag
    queries: int  # how many queries, or gold items
    recall: float  # their mean recall
    others: float  # the mean recall of all others
    p: float  # how likely such a difference is by chance
    adjusted_p: float  # the same, corrected for the number of slices looked at
    failing: bool  # whether they are worse, with false findings kept at one in ten


def query_features(query: Query | None, relevant: int) -> Iterator[str]:
    """What can be seen of a query at a glance."""
    for tag in query.tags if query else ():
        yield f"tag: {tag}"
    text = (query.text if query else None) or ""
    words = _WORD.findall(text.casefold())
    if words:
        size = len(words)
        length = "short" if size <= _SHORT else "long" if size >= _LONG else "medium"
        yield f"length: {length}"
    if any(map(str.isdigit, text)):
        yield "numbers"
    if _DATE.search(text):
        yield "date"
    if text and negates(text):
        yield "negation"
    if words and _OPENINGS.fullmatch(words[0]):
        yield f"begins with: {words[0]}"
    if text and (script := script_of(text)) not in ("", "Latin"):
        yield f"script: {script}"
    yield f"gold items: {relevant}" if relevant <= 2 else "gold items: 3 or more"  # noqa: PLR2004


def document_features(
    names: Iterable[str], corpus: Mapping[str, str], sources: Mapping[str, str]
) -> Iterator[list[str]]:
    """What can be seen of documents at a glance, beside the others of their corpus."""
    places = {name: place for place, name in enumerate(corpus)}
    size = median(map(len, corpus.values())) if corpus else 0.0
    for name in names:
        features = []
        prefix = _PREFIX.match(name)
        if prefix and prefix[0] != name:
            features.append(f"document id: {prefix[0]}...")
        if name in sources:
            features.append(f"document source: {sources[name]}")
        if name in corpus:
            text = corpus[name]
            length = "long" if len(text) > 2 * size else "medium"
            length = "short" if 2 * len(text) < size else length
            features.append(f"document length: {length}")
            if (script := script_of(text)) not in ("", "Latin"):
                features.append(f"document script: {script}")
            features.append(
                f"corpus part: {10 * places[name] // len(corpus) + 1} of 10"
            )
        yield features


def find_slices(
    recalls: Floats, features: Iterable[Iterable[str]]
) -> tuple[Slice, ...]:
    """The slices that are large enough to say something of, the worst first."""
    rows: dict[str, list[int]] = {}
    for place, names in enumerate(features):
        for name in names if not np.isnan(recalls[place]) else ():
            rows.setdefault(name, []).append(place)
    defined = recalls[~np.isnan(recalls)]
    whole, size = defined.sum(), len(defined)
    spread = float(((defined - defined.mean()) ** 2).sum()) if size else 0.0
    large, p = [], []
    for name, own in rows.items():
        count = len(own)
        if count < _LEAST or size - count < _LEAST:
            continue
        inside = recalls[own].sum()
        recall, others = inside / count, (whole - inside) / (size - count)
        large.append((name, count, float(recall), float(others)))
        p.append(_chance(recall - others, count, size, spread))
    adjusted = benjamini_hochberg(np.array(p, np.float64)).tolist()
    slices = []
    for one, chance, corrected in zip(large, p, adjusted, strict=True):
        failing = one[2] < one[3] and corrected <= _FALSE_FINDINGS
        slices.append(Slice(*one, chance, corrected, failing))
    return tuple(sorted(slices, key=lambda one: (one.p, one.recall, one.name)))


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
