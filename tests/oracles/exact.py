"""Every rank metric once more: slow, exact, and sharing no line with karat.

Each function is its sentence in the definition of the metric, over plain Python values.
Rational scores are `Fraction`, those with logarithms or powers are `Decimal` with fifty
digits, so that a comparison in double precision has nothing to forgive but its own last
bits. `None` is undefined.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

Number = Fraction | Decimal
Score = Number | None
Grade = int | float | Fraction

DIGITS = Context(prec=50)


@dataclass(frozen=True)
class Case:
    """One query: how much was retrieved, which item each rank matches, and all labels.

    A rank may match several items and an item may be matched at several ranks.
    """

    retrieved: int
    matches: tuple[tuple[int, Hashable], ...]
    grades: Mapping[Hashable, Grade]


@dataclass(frozen=True)
class Credit:
    """One relevant item that was found, paid once."""

    rank: int
    slot: int
    order: int
    grade: Grade


def by_id(ranking: Sequence[str], labels: Mapping[str, Grade]) -> Case:
    """Equal ids match; a document met again keeps its rank and earns nothing."""
    matches: list[tuple[int, Hashable]] = []
    seen: set[str] = set()
    for rank, document in enumerate(ranking, start=1):
        if document in labels and document not in seen:
            matches.append((rank, document))
        seen.add(document)
    return Case(len(ranking), tuple(matches), dict(labels.items()))


def trec_order(scores: Mapping[str, float]) -> list[str]:
    """Score descending, then document id descending by its UTF-8 bytes."""
    by_name = sorted(scores, key=lambda name: name.encode(), reverse=True)
    return sorted(by_name, key=lambda name: scores[name], reverse=True)


def is_relevant(grade: Grade, threshold: float | None) -> bool:
    """Any positive grade; with a threshold, that grade or more."""
    return grade > 0 if threshold is None else grade >= threshold


def number_relevant(case: Case, threshold: float | None = None) -> int:
    """R."""
    return sum(is_relevant(grade, threshold) for grade in case.grades.values())


def credited(case: Case, threshold: float | None = None) -> list[Credit]:
    """The credit rule: each relevant item once, at its first rank, in its slot."""
    first: dict[Hashable, int] = {}
    for rank, item in case.matches:
        if is_relevant(case.grades[item], threshold):
            first[item] = min(rank, first.get(item, rank))
    found = sorted((rank, -case.grades[item]) for item, rank in first.items())
    return [
        Credit(rank, max(rank, order), order, -negated)
        for order, (rank, negated) in enumerate(found, start=1)
    ]


def positions(case: Case, threshold: float | None = None) -> list[int]:
    """Ranks that match any relevant item, ascending."""
    return sorted(
        {
            rank
            for rank, item in case.matches
            if is_relevant(case.grades[item], threshold)
        }
    )


def within(ranks: Iterable[int], k: int | None) -> int:
    """How many of the ranks are at most k."""
    return sum(k is None or rank <= k for rank in ranks)


def found(case: Case, k: int | None = None, threshold: float | None = None) -> int:
    """How many relevant items the first k documents match."""
    return within((credit.rank for credit in credited(case, threshold)), k)


def hit(case: Case, k: int | None = None, threshold: float | None = None) -> Score:
    if not number_relevant(case, threshold):
        return None
    return Fraction(found(case, k, threshold) > 0)


def recall(case: Case, k: int | None = None, threshold: float | None = None) -> Score:
    total = number_relevant(case, threshold)
    return Fraction(found(case, k, threshold), total) if total else None


def recall_all(
    case: Case, k: int | None = None, threshold: float | None = None
) -> Score:
    total = number_relevant(case, threshold)
    return Fraction(found(case, k, threshold) == total) if total else None


def recall_capped(case: Case, k: int, threshold: float | None = None) -> Score:
    """No more than k items are paid within k, however many one rank holds."""
    total = number_relevant(case, threshold)
    if not total:
        return None
    paid = within((credit.slot for credit in credited(case, threshold)), k)
    return Fraction(paid, min(total, k))


def precision(
    case: Case, k: int | None, threshold: float | None = None, *, of: str = "k"
) -> Score:
    if not case.grades:
        return None
    if k is None or of == "retrieved":
        depth = case.retrieved if k is None else min(k, case.retrieved)
    else:
        depth = k
    matched = within(positions(case, threshold), k)
    return Fraction(matched, depth) if depth else Fraction(0)


def f1(case: Case, k: int | None, threshold: float | None = None) -> Score:
    share, ratio = recall(case, k, threshold), precision(case, k, threshold)
    if share is None or ratio is None:
        return None
    both = Fraction(share) + Fraction(ratio)
    return 2 * Fraction(share) * Fraction(ratio) / both if both else Fraction(0)


def rr(case: Case, k: int | None = None, threshold: float | None = None) -> Score:
    if not number_relevant(case, threshold):
        return None
    ranks = positions(case, threshold)
    return Fraction(1, ranks[0]) if within(ranks[:1], k) else Fraction(0)


def ap(
    case: Case,
    k: int | None = None,
    threshold: float | None = None,
    *,
    capped: bool = False,
) -> Score:
    total = number_relevant(case, threshold)
    if not total:
        return None
    total = min(total, k) if capped and k else total
    paid = [c for c in credited(case, threshold) if k is None or c.slot <= k]
    return sum((Fraction(c.order, c.slot) for c in paid), Fraction(0)) / total


def ndcg(case: Case, k: int | None = None, gain: str = "linear") -> Score:
    gains = sorted((gain_of(g, gain) for g in case.grades.values()), reverse=True)
    ideal = [value for value in gains if value > 0][:k]
    if not ideal:
        return None
    paid = [
        (gain_of(c.grade, gain), c.slot)
        for c in credited(case)
        if k is None or c.slot <= k
    ]
    best = zip(ideal, range(1, len(ideal) + 1), strict=True)
    with localcontext(DIGITS):
        return discounted(paid) / discounted(best)


def dcg(case: Case, k: int | None = None) -> Decimal:
    """What nDCG divides."""
    paid = [(gain_of(c.grade, "linear"), c.slot) for c in credited(case)]
    return discounted((g, slot) for g, slot in paid if k is None or slot <= k)


def ndcg_any(case: Case, k: int | None, threshold: float | None = None) -> Score:
    """Binary; ranks 1 and 2 weigh the same; the ideal is the retrieved list, sorted."""
    ranks = positions(case, threshold)
    depth = case.retrieved if k is None else min(k, case.retrieved)
    with localcontext(DIGITS):
        weights = [1 / log2(max(rank, 2)) for rank in range(1, depth + 1)]
        best = sum(weights[: len(ranks)], Decimal(0))
        gained = sum((weights[r - 1] for r in ranks if r <= depth), Decimal(0))
        return gained / best if best else Decimal(0)


def context_precision(
    case: Case, k: int | None = None, threshold: float | None = None
) -> Score:
    """Mean over the matched positions of the share of matched positions so far."""
    if not number_relevant(case, threshold):
        return None
    ranks = [r for r in positions(case, threshold) if k is None or r <= k]
    if not ranks:
        return Fraction(0)
    shares = (Fraction(place, rank) for place, rank in enumerate(ranks, start=1))
    return sum(shares, Fraction(0)) / len(ranks)


def rbp(case: Case, p: Fraction, threshold: float | None = None) -> Score:
    """What a reader sees who goes on to the next document with probability p."""
    if not number_relevant(case, threshold):
        return None
    weights = (p ** (credit.slot - 1) for credit in credited(case, threshold))
    return (1 - p) * sum(weights, Fraction(0))


def err(case: Case, k: int | None, max_grade: int) -> Score:
    """Expected reciprocal rank at which a reader, stopped by good documents, stops."""
    if not number_relevant(case):
        return None
    with localcontext(DIGITS):
        going_on, value = Decimal(1), Decimal(0)
        for credit in credited(case):
            if k is None or credit.slot <= k:
                stops = gain_of(credit.grade, "exp") / 2**max_grade
                value += going_on * stops / credit.slot
                going_on *= 1 - stops
        return value


def judged(case: Case, k: int | None) -> Score:
    """Share of the documents in the top k that carry a label, whatever it says."""
    depth = case.retrieved if k is None else min(k, case.retrieved)
    if not case.grades or not depth:
        return None
    return Fraction(within({rank for rank, _ in case.matches}, k), depth)


def gain_of(grade: Grade, kind: str) -> Decimal:
    with localcontext(DIGITS):
        exact = Fraction(grade)
        value = Decimal(exact.numerator) / Decimal(exact.denominator)
        if value <= 0:
            return Decimal(0)
        return 2**value - 1 if kind == "exp" else value


def discounted(paid: Iterable[tuple[Decimal, int]]) -> Decimal:
    with localcontext(DIGITS):
        return sum((gain / log2(slot + 1) for gain, slot in paid), Decimal(0))


@lru_cache(maxsize=256)
def log2(number: int) -> Decimal:
    with localcontext(DIGITS):
        return Decimal(number).ln() / Decimal(2).ln()
