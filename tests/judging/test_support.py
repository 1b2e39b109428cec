"""Long lists are asked in several questions, and what they say is put together."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from karat.data.gold import Item
from karat.data.judgements import Failure, Prompt
from karat.data.verdicts import Verdict
from karat.judging.support import majority, pack, pieces, support
from karat.llm import tokens_of
from tests.judging.models import Model, claims_in, contexts_in, session_of, verdicts

CLAIMS = [Item("c1", "First."), Item("c2", "Second.")]


def run_jobs(
    model: Model, contexts: Sequence[tuple[int, str]], budget: int, **options: Any
) -> tuple[Verdict, ...]:
    claims = options.pop("claims", CLAIMS)
    job = lambda: support(claims, contexts, budget=budget, **options)  # noqa: E731
    (heard,) = session_of(model).run_jobs([job])
    assert not isinstance(heard, Failure), heard
    return heard


def by_truth(truth: Mapping[int, Mapping[str, Sequence[int]]]) -> Model:
    """Knows all that supports a claim, and tells what it is shown of it."""

    def answer(prompt: Prompt) -> str:
        shown = {*contexts_in(prompt)}
        said: dict[int, dict[str, Any]] = {}
        for number in claims_in(prompt):
            known = truth.get(number, {})
            parts = {*known.get("parts", ())}
            said[number] = {
                "alone": sorted(shown & {*known.get("alone", ())}),
                "parts": sorted(shown & parts),
                "complete": bool(parts) and parts <= shown,
            }
        return verdicts(said)

    return Model(answer)


TEXTS = [(rank, f"{rank} " * 20) for rank in range(1, 9)]


@given(
    alone=st.sets(st.integers(1, 8)),
    parts=st.sets(st.integers(1, 8), min_size=2, max_size=3),
    budget=st.integers(1, 200),
)
def test_a_budget_never_changes_the_verdicts_of_a_judge_that_knows(
    alone: set[int], parts: set[int], budget: int
) -> None:
    truth = {1: {"alone": sorted(alone)}, 2: {"parts": sorted(parts)}}
    first, second = run_jobs(by_truth(truth), TEXTS, budget)
    assert set(first.alone) == alone
    assert first.together == ()
    assert second.together == tuple(sorted(parts))
    assert second.rank == max(parts)


def test_parts_that_no_question_showed_together_are_asked_side_by_side() -> None:
    model = by_truth({2: {"parts": [1, 8]}})
    _, second = run_jobs(model, TEXTS, budget=25)
    assert second.rank == 8
    assert contexts_in(model.asked[-1]) == [1, 8]
    assert claims_in(model.asked[-1]) == [2]
    assert len(model.asked) == 5


def test_parts_that_could_not_come_first_cost_no_further_question() -> None:
    model = by_truth({2: {"parts": [1, 8], "alone": [2]}})
    _, second = run_jobs(model, TEXTS, budget=25)
    assert second.rank == 2
    assert len(model.asked) == 4


def test_many_claims_are_asked_in_batches() -> None:
    claims = [Item(f"c{n}", f"Claim {n}.") for n in range(45)]
    model = by_truth({1: {"alone": [3]}})
    heard = run_jobs(model, TEXTS, 10_000, claims=claims)
    assert [len(claims_in(prompt)) for prompt in model.asked] == [20, 20, 5]
    assert [v.claim for v in heard if v.supported] == ["c0", "c20", "c40"]


def test_a_context_of_a_megabyte_is_read_piece_by_piece() -> None:
    long = " ".join(map(str, range(170_000))) + " needle"

    def answer(prompt: Prompt) -> str:
        found = [1] if "needle" in prompt.user else []
        return verdicts({n: {"alone": found} for n in claims_in(prompt)})

    model = Model(answer)
    heard = run_jobs(model, [(1, long)], budget=6000)
    assert all(verdict.rank == 1 for verdict in heard)
    assert len(long) > 1_000_000
    assert 40 < len(model.asked) < 60
    assert all(tokens_of(prompt.user) < 6500 for prompt in model.asked)


@given(st.text(), st.integers(1, 50))
def test_pieces_hold_the_whole_text_and_fit(text: str, budget: int) -> None:
    parts = pieces(text, budget)
    covered = 0
    for part in parts:
        # The furthest it can stand without leaving a gap: texts repeat themselves.
        covered = text.rindex(part, 0, covered + len(part)) + len(part)
    assert covered == len(text)
    if text.isascii():
        assert all(tokens_of(part) <= budget for part in parts)


@given(st.lists(st.text(max_size=80)), st.integers(1, 30))
def test_packs_keep_the_order_and_lose_nothing(texts: list[str], budget: int) -> None:
    contexts = [*enumerate(texts, 1)]
    packs = pack(contexts, budget)
    ranks = [rank for group in packs for rank, _ in group]
    assert ranks == sorted(ranks)
    assert {*ranks} == {rank for rank, _ in contexts}
    assert all(packs)


def test_further_assessors_see_the_contexts_in_another_order() -> None:
    model = by_truth({})
    for assessor in (1, 2):
        run_jobs(model, TEXTS[:3], 1000, assessor=assessor)
    first, second = (prompt.user for prompt in model.asked)
    assert first.index("context 1") < first.index("context 2")
    assert second.index("context 2") < second.index("context 1")


def verdict(*alone: int, failure: str | None = None) -> tuple[Verdict]:
    return (Verdict("c", alone=alone, failure=failure),)


@pytest.mark.parametrize(
    ("votes", "rank", "disagreement"),
    [
        ([verdict(1)], 1, 0.0),
        ([verdict(1), verdict()], None, 0.5),
        ([verdict(1), verdict(3), verdict(2)], 2, 0.0),
        ([verdict(5), verdict(), verdict(4), verdict(), verdict(9)], 5, 0.4),
        ([verdict(failure="no"), verdict(2)], 2, 0.0),
    ],
)
def test_the_majority_decides(
    votes: list[tuple[Verdict]], rank: int | None, disagreement: float
) -> None:
    (elected,) = majority(votes)
    assert elected.rank == rank
    assert elected.disagreement == pytest.approx(disagreement)


def test_votes_that_all_failed_stay_a_failure() -> None:
    (elected,) = majority([verdict(failure="one"), verdict(failure="two")])
    assert elected.failure == "one"
