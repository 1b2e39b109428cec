"""The less common measures of trec_eval 10.0, as exact as the others."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

from tests.oracles.exact import (
    DIGITS,
    Case,
    Grade,
    Score,
    credited,
    f1,
    found,
    is_relevant,
    log2,
    number_relevant,
    precision,
    recall,
    within,
)

_INFAP_EPSILON = Fraction(1, 100_000)


def r_precision(case: Case, threshold: float | None = None, mult: float = 1.0) -> Score:
    """Precision at R; at a multiple of R, the cutoff rounds up from one tenth on."""
    total = number_relevant(case, threshold)
    if not total:
        return None
    cutoff = int(mult * total + 0.9)
    paid = within((credit.slot for credit in credited(case, threshold)), cutoff)
    return Fraction(paid, cutoff) if cutoff else Fraction(0)


def bpref(case: Case, threshold: float | None = None) -> Score:
    """Share of judged non-relevant documents that stand below each relevant one.

    As in trec_eval, a negative grade is pooled but not judged.
    """
    total = number_relevant(case, threshold)
    if not total:
        return None
    against = sum(
        grade >= 0 and not is_relevant(grade, threshold)
        for grade in case.grades.values()
    )
    below = _ranks(case, _nonrelevant(threshold))
    value = Fraction(0)
    for credit in credited(case, threshold):
        above = sum(rank < credit.rank for rank in below)
        if above:
            value += 1 - Fraction(min(above, total), min(against, total))
        else:
            value += 1
    return value / total


def infap(case: Case, threshold: float | None = None) -> Score:
    """Expected precision at each relevant document when only a sample is judged."""
    total = number_relevant(case, threshold)
    if not total:
        return None
    rest = _ranks(case, _nonrelevant(threshold))
    sampled_out = _ranks(case, lambda grade: grade < 0)
    value = Fraction(0)
    for credit in credited(case, threshold):
        rank, relevant = credit.rank, credit.order - 1
        if rank == 1:
            value += 1
            continue
        nonrelevant = sum(other < rank for other in rest)
        pooled = relevant + nonrelevant + sum(other < rank for other in sampled_out)
        precise = (relevant + _INFAP_EPSILON) / (
            relevant + nonrelevant + 2 * _INFAP_EPSILON
        )
        above = rank - 1
        value += Fraction(1, rank) + Fraction(above, rank) * (
            Fraction(pooled, above) * precise
        )
    return value / total


def iprec(case: Case, level: float, threshold: float | None = None) -> Score:
    """The best precision at or below the rank where this share of R is reached.

    The share is rounded to a number of items, half up, from the product in double.
    """
    total = number_relevant(case, threshold)
    if not total:
        return None
    needed = int(Fraction(level * total) + Fraction(1, 2))
    ranks = [credit.slot for credit in credited(case, threshold)]
    if needed > len(ranks) or not ranks:
        return Fraction(0)
    places = enumerate(ranks, start=1)
    return max(Fraction(place, rank) for place, rank in places if place >= needed)


def iprec_avg(case: Case, threshold: float | None = None) -> Score:
    """Interpolated precision averaged over recall 0, 0.1, ... 1."""
    if not number_relevant(case, threshold):
        return None
    values = [iprec(case, tenth / 10, threshold) for tenth in range(11)]
    return sum((Fraction(v) for v in values if v is not None), Fraction(0)) / 11


def set_precision(case: Case, threshold: float | None = None) -> Score:
    return precision(case, None, threshold)


def set_recall(case: Case, threshold: float | None = None) -> Score:
    return recall(case, None, threshold)


def set_f(case: Case, threshold: float | None = None) -> Score:
    return f1(case, None, threshold)


def set_ap(case: Case, threshold: float | None = None) -> Score:
    share, ratio = set_recall(case, threshold), set_precision(case, threshold)
    if share is None or ratio is None:
        return None
    return Fraction(share) * Fraction(ratio)


def set_relative_precision(case: Case, threshold: float | None = None) -> Score:
    total = number_relevant(case, threshold)
    if not total:
        return None
    most = min(total, case.retrieved)
    paid = within((c.slot for c in credited(case, threshold)), case.retrieved)
    return Fraction(paid, most) if most else Fraction(0)


def unjudged(case: Case, k: int) -> Score:
    """Share of k that is retrieved without a label; a negative grade is no label."""
    if not case.grades:
        return None
    labelled = {rank for rank, item in case.matches if case.grades[item] >= 0}
    return Fraction(min(k, case.retrieved) - within(labelled, k), k)


def bing(case: Case, threshold: float | None = None) -> Score:
    """Each relevant document pays 1 / log2(2 + non-relevant ones before it)."""
    total = number_relevant(case, threshold)
    if not total:
        return None
    with localcontext(DIGITS):
        paid = (1 / log2(2 + c.slot - c.order) for c in credited(case, threshold))
        return sum(paid, Decimal(0)) / total


def num_ret(case: Case) -> Score:
    return Fraction(case.retrieved)


def num_rel(case: Case, threshold: float | None = None) -> Score:
    return Fraction(number_relevant(case, threshold))


def num_rel_ret(case: Case, threshold: float | None = None) -> Score:
    return Fraction(found(case, None, threshold))


def num_nonrel_judged_ret(case: Case, threshold: float | None = None) -> Score:
    return Fraction(len(_ranks(case, _nonrelevant(threshold))))


def _nonrelevant(threshold: float | None) -> Callable[[Grade], bool]:
    return lambda grade: grade >= 0 and not is_relevant(grade, threshold)


def _ranks(case: Case, wanted: Callable[[Grade], bool]) -> list[int]:
    return [rank for rank, item in case.matches if wanted(case.grades[item])]
