"""Slow and exact twins of metrics over gains, counts and overlaps."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

from tests.oracles import exact
from tests.oracles.exact import DIGITS, Case, Grade, Score


def regraded(case: Case, gains: Mapping[int, int]) -> Case:
    """The case with other grades in place of some."""
    grades: dict[object, Grade] = {
        item: gains.get(int(grade), grade) if grade == int(grade) else grade
        for item, grade in case.grades.items()
    }
    return replace(case, grades=grades)


def best_gains(case: Case, gain: str = "linear") -> list[Decimal]:
    """What every relevant item is worth, best first."""
    worths = [exact.gain_of(g, gain) for g in case.grades.values() if g > 0]
    return sorted(worths, reverse=True)


def dcg(case: Case, k: int | None = None) -> Score:
    return exact.dcg(case, k) if best_gains(case) else None


def ideal_dcg(case: Case, k: int | None = None) -> Score:
    best = best_gains(case)[:k]
    if not best:
        return None
    return exact.discounted(zip(best, range(1, len(best) + 1), strict=True))


def ndcg_with_gains(
    case: Case, gains: Mapping[int, int], k: int | None = None
) -> Score:
    return exact.ndcg(regraded(case, gains), k)


def ncg(case: Case, k: int | None = None, gain: str = "linear") -> Score:
    best = best_gains(case, gain)[:k]
    if not best:
        return None
    with localcontext(DIGITS):
        paid = [
            exact.gain_of(c.grade, gain)
            for c in exact.credited(case)
            if k is None or c.slot <= k
        ]
        return sum(paid, Decimal(0)) / sum(best, Decimal(0))


def hits(case: Case, k: int | None = None, threshold: float | None = None) -> Score:
    if not exact.number_relevant(case, threshold):
        return None
    return Fraction(exact.found(case, k, threshold))


def q_measure(case: Case, beta: int = 1) -> Score:
    """Sakai's blend of precision and gain, at each relevant item found."""
    ideal = sorted((Fraction(g) for g in case.grades.values() if g > 0), reverse=True)
    if not ideal:
        return None
    gained = total = Fraction(0)
    for credit in exact.credited(case):
        gained += Fraction(credit.grade)
        best = sum(ideal[: credit.slot], Fraction(0))
        total += (credit.order + beta * gained) / (credit.slot + beta * best)
    return total / len(ideal)


def yaap(case: Case) -> Score:
    mean = exact.ap(case)
    if mean is None:
        return None
    total = exact.number_relevant(case)
    found = Fraction(mean) * total
    odds = (1 + found) / (1 + total - found)
    with localcontext(DIGITS):
        return (Decimal(odds.numerator) / Decimal(odds.denominator)).ln()


def accuracy(case: Case, k: int | None = None, threshold: float | None = None) -> Score:
    """Pairs of a relevant and another document, by which of them comes first."""
    depth = case.retrieved if k is None else min(k, case.retrieved)
    ranks = [rank for rank in exact.positions(case, threshold) if rank <= depth]
    if not ranks:
        return None
    others = [rank for rank in range(1, depth + 1) if rank not in ranks]
    if not others:
        return Fraction(1)
    right = sum(rank < other for rank in ranks for other in others)
    return Fraction(right, len(ranks) * len(others))


def compat(case: Case, p: Fraction, *, normalize: bool = True) -> Score:
    """Overlap at every depth, of sets that are built anew at each."""
    first = {item: rank for rank, item in reversed(case.matches)}
    relevant = [item for item, grade in case.grades.items() if grade > 0]
    if not relevant:
        return None
    last = case.retrieved + 1
    ideal = sorted(relevant, key=lambda i: (-case.grades[i], first.get(i, last)))
    depth = max(case.retrieved, len(ideal))

    def overlap(found: Mapping[object, int]) -> Fraction:
        total = Fraction(0)
        for d in range(1, depth + 1):
            both = sum(found.get(item, depth + 1) <= d for item in ideal[:d])
            total += p ** (d - 1) * Fraction(both, d)
        return total

    if normalize:
        own = {item: place for place, item in enumerate(ideal, start=1)}
        return overlap(first) / overlap(own)
    return overlap(first) / sum(
        (p ** (d - 1) for d in range(1, depth + 1)), Fraction(0)
    )
