"""The oracle against arithmetic done by hand, so that it may judge."""

from decimal import Decimal
from fractions import Fraction
from math import log2

import pytest

from tests.oracles import exact, exact_trec
from tests.oracles.exact import Case, by_id

# Relevant b, d and the never retrieved g; c judged not relevant; e sampled out.
LABELS = {"b": 2, "d": 1, "g": 3, "c": 0, "e": -1}
RANKED = by_id(["a", "b", "c", "d", "e"], LABELS)

# One text satisfies x and y, the next one y again, a third one z.
SHARED = Case(4, ((2, "x"), (2, "y"), (3, "y"), (4, "z")), {"x": 1, "y": 2, "z": 1})

NOTHING_RELEVANT = by_id(["a", "c"], {"c": 0})
NOTHING_RETRIEVED = by_id([], {"b": 1})


def test_found_items_are_counted_up_to_the_cutoff() -> None:
    assert exact.hit(RANKED, 1) == 0
    assert exact.hit(RANKED, 2) == 1
    assert exact.recall(RANKED, 3) == Fraction(1, 3)
    assert exact.recall(RANKED) == Fraction(2, 3)
    assert exact.recall_all(RANKED) == 0
    assert exact.recall_all(by_id(["b"], {"b": 1, "c": 0}), 1) == 1
    assert exact.recall_capped(RANKED, 2) == Fraction(1, 2)


def test_precision_divides_by_k_or_by_what_was_retrieved() -> None:
    assert exact.precision(RANKED, 10) == Fraction(2, 10)
    assert exact.precision(RANKED, 10, of="retrieved") == Fraction(2, 5)
    assert exact.precision(RANKED, 2, of="retrieved") == Fraction(1, 2)
    assert exact.f1(RANKED, 5) == Fraction(1, 2)


def test_ranks_pay_as_in_the_textbook() -> None:
    assert exact.rr(RANKED) == Fraction(1, 2)
    assert exact.rr(RANKED, 1) == 0
    assert exact.ap(RANKED) == (Fraction(1, 2) + Fraction(2, 4)) / 3
    assert exact.ap(RANKED, 3) == Fraction(1, 6)
    assert exact.context_precision(RANKED) == Fraction(1, 2)


def test_ndcg_takes_its_ideal_from_all_gold_and_cuts_it() -> None:
    dcg = 2 / log2(3) + 1 / log2(5)
    ideal = 3 + 2 / log2(3) + 1 / 2
    assert float(exact.ndcg(RANKED) or 0) == pytest.approx(dcg / ideal, abs=1e-15)
    cut = 2 / log2(3) / (3 + 2 / log2(3))
    assert float(exact.ndcg(RANKED, 2) or 0) == pytest.approx(cut, abs=1e-15)
    steep = (3 / log2(3) + 1 / log2(5)) / (7 + 3 / log2(3) + 1 / 2)
    assert float(exact.ndcg(RANKED, None, "exp") or 0) == pytest.approx(
        steep, abs=1e-15
    )


def test_ndcg_any_does_not_discount_rank_two_and_reorders_only_what_is_there() -> None:
    assert exact.ndcg_any(by_id(["a", "b"], {"b": 1, "z": 1}), 5) == 1
    expected = (1 + 1 / log2(4)) / 2
    assert float(exact.ndcg_any(RANKED, 5) or 0) == pytest.approx(expected, abs=1e-15)
    assert exact.ndcg_any(RANKED, 1) == 0
    assert exact.ndcg_any(NOTHING_RELEVANT, 5) == 0


def test_items_found_in_one_document_are_paid_in_consecutive_slots() -> None:
    paid = [(c.rank, c.slot, c.order, c.grade) for c in exact.credited(SHARED)]
    assert paid == [(2, 2, 1, 2), (2, 2, 2, 1), (4, 4, 3, 1)]
    at_once = Case(1, ((1, "x"), (1, "y"), (1, "z")), SHARED.grades)
    assert [c.slot for c in exact.credited(at_once)] == [1, 2, 3]
    assert exact.ap(at_once) == exact.ndcg(at_once) == exact.recall(at_once, 1) == 1
    assert exact.ap(at_once, 2) == Fraction(2, 3)
    assert exact.recall_capped(at_once, 1) == 1
    assert exact.precision(at_once, 1) == 1


def test_positions_count_every_match_but_items_only_their_first() -> None:
    assert exact.positions(SHARED) == [2, 3, 4]
    assert exact.precision(SHARED, 4) == Fraction(3, 4)
    assert exact.recall(SHARED, 3) == Fraction(2, 3)
    shares = Fraction(1, 2) + Fraction(2, 3) + Fraction(3, 4)
    assert exact.context_precision(SHARED) == shares / 3
    assert exact.ap(SHARED) == (Fraction(1, 2) + Fraction(2, 2) + Fraction(3, 4)) / 3


def test_a_repeated_document_keeps_its_rank_and_earns_nothing_again() -> None:
    twice = by_id(["a", "a", "b"], {"a": 1, "b": 1})
    assert twice.matches == ((1, "a"), (3, "b"))
    assert exact.precision(twice, 3) == Fraction(2, 3)


def test_judged_counts_any_label_and_unjudged_no_negative_one() -> None:
    assert exact.judged(RANKED, 2) == Fraction(1, 2)
    assert exact.judged(RANKED, 10) == Fraction(4, 5)
    assert exact.judged(NOTHING_RETRIEVED, 5) is None
    assert exact_trec.unjudged(RANKED, 10) == Fraction(2, 10)
    assert exact_trec.unjudged(RANKED, 1) == 1


def test_models_of_a_reader_stop_where_they_say() -> None:
    half = Fraction(1, 2)
    assert exact.rbp(RANKED, half) == half * (half + half**3)
    stop_at_two, stop_at_four = Decimal(3) / 16, Decimal(1) / 16
    expected = stop_at_two / 2 + (1 - stop_at_two) * stop_at_four / 4
    assert exact.err(RANKED, None, 4) == expected
    assert exact.err(RANKED, 3, 4) == stop_at_two / 2


def test_preference_and_sampling_measures_as_trec_eval_defines_them() -> None:
    # b stands above every judged non-relevant document, d below the only one.
    assert exact_trec.bpref(RANKED) == Fraction(1, 3)
    tiny = Fraction(1, 100_000)
    at_two = Fraction(1, 2)
    at_four = Fraction(1, 4) + Fraction(3, 4) * Fraction(2, 3) * (1 + tiny) / (
        2 + 2 * tiny
    )
    assert exact_trec.infap(RANKED) == (at_two + at_four) / 3
    assert exact_trec.r_precision(RANKED) == Fraction(1, 3)
    assert exact_trec.r_precision(RANKED, mult=2.0) == Fraction(2, 6)


def test_interpolated_precision_is_the_best_from_there_on() -> None:
    case = by_id(["x", "a", "b", "y", "c"], dict.fromkeys("abcd", 1))
    assert exact_trec.iprec(case, 0.0) == Fraction(2, 3)
    assert exact_trec.iprec(case, 0.5) == Fraction(2, 3)
    assert exact_trec.iprec(case, 0.75) == Fraction(3, 5)
    assert exact_trec.iprec(case, 1.0) == 0
    # Of four items, up to 0.6 rounds to 2 or fewer, 0.7 and 0.8 to 3, more to 4.
    assert exact_trec.iprec_avg(case) == (7 * Fraction(2, 3) + 2 * Fraction(3, 5)) / 11


def test_set_measures_ignore_the_order() -> None:
    assert exact_trec.set_precision(RANKED) == Fraction(2, 5)
    assert exact_trec.set_recall(RANKED) == Fraction(2, 3)
    assert exact_trec.set_f(RANKED) == Fraction(1, 2)
    assert exact_trec.set_ap(RANKED) == Fraction(4, 15)
    assert exact_trec.set_relative_precision(RANKED) == Fraction(2, 3)
    assert exact_trec.num_nonrel_judged_ret(RANKED) == 1


def test_undefined_is_none_and_retrieving_nothing_is_zero() -> None:
    for metric in (exact.hit, exact.recall, exact.rr, exact.ap, exact.ndcg):
        assert metric(NOTHING_RELEVANT) is None
        assert metric(NOTHING_RETRIEVED) == 0
    assert exact.precision(NOTHING_RELEVANT, 5) == 0
    assert exact.precision(by_id(["a"], {}), 5) is None


def test_a_threshold_moves_relevance_but_not_gains() -> None:
    assert exact.recall(RANKED, threshold=2) == Fraction(1, 2)
    assert exact.ap(RANKED, threshold=2) == Fraction(1, 4)


def test_equal_scores_are_ordered_by_id_descending() -> None:
    assert exact.trec_order({"a": 1.0, "c": 1.0, "b": 2.0}) == ["b", "c", "a"]
