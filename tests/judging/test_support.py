"""Long lists are asked in several questions, and what they say is put together."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from karat.data.judgements import Failure, Verdict
from karat.extend import Item, JudgeSession, Prompt, Reply, Settings
from karat.judging.contexts import excerpts, pack, pieces
from karat.judging.support import majority, support
from karat.llm.limits import tokens_of
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


@pytest.mark.slow
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


FILLER = "Nothing here has to do with it at all, and more of the same follows. "


def by_words(*words: str) -> Model:
    """Finds a claim where all words stand, and parts of it where some do."""

    def answer(prompt: Prompt) -> str:
        alone, parts, seen = [], [], set()
        for rank in contexts_in(prompt):
            shown = prompt.user.split(f"[begin context {rank} |")[1:]
            text = " ".join(part.split("[end context")[0] for part in shown)
            found = {word for word in words if word in text}
            seen |= found
            if found == {*words}:
                alone.append(rank)
            elif found:
                parts.append(rank)
        return verdicts(
            {
                number: {
                    "alone": alone,
                    "parts": parts,
                    "complete": bool(parts) and seen == {*words},
                }
                for number in claims_in(prompt)
            }
        )

    return Model(answer)


CLAIM = [Item("c1", "The zymurgist Quill was born at Yxby.")]


def test_evidence_in_two_pieces_of_one_long_document_is_found() -> None:
    text = FILLER * 60 + "Quill is a zymurgist. " + FILLER * 300 + "Yxby is her town. "
    model = by_words("zymurgist", "Yxby")
    contexts = [(1, FILLER), (2, text + FILLER * 40)]
    (found,) = run_jobs(model, contexts, budget=1500, claims=CLAIM)
    assert (found.alone, found.rank) == ((2,), 2)
    assert contexts_in(model.asked[-1]) == [2]
    assert tokens_of(model.asked[-1].user) < 2000


def test_parts_late_in_their_documents_are_found() -> None:
    model = by_words("zymurgist", "Yxby")
    contexts = [
        (1, FILLER * 75 + "Quill is a zymurgist. "),
        (2, FILLER * 20 + "Yxby is her town. " + FILLER * 60),
    ]
    (found,) = run_jobs(model, contexts, budget=1500, claims=CLAIM)
    assert (found.together, found.rank) == ((1, 2), 2)
    assert "Quill is a zymurgist" in model.asked[-1].user
    assert f"{FILLER}Yxby is her town. {FILLER}" in model.asked[-1].user


def test_only_claims_without_a_verdict_are_asked_again() -> None:
    claims = [Item(f"c{n}", f"Claim {n}.") for n in range(1, 21)]

    def answer(prompt: Prompt) -> str:
        numbers = claims_in(prompt)
        return verdicts(
            {n: {"alone": [2]} for n in numbers if n != 7 or numbers == [7]}
        )

    model = Model(answer)
    found = run_jobs(model, TEXTS[:3], 10_000, claims=claims)
    assert [claims_in(prompt) for prompt in model.asked] == [[*range(1, 21)], [7]]
    assert "claim 7 has no verdict" in model.asked[1].user
    assert "[begin claim 6 |" not in model.asked[1].user
    assert all(verdict.rank == 2 for verdict in found)


def test_one_claim_without_a_verdict_costs_that_claim_alone() -> None:
    def answer(prompt: Prompt) -> str:
        return verdicts({n: {"alone": [2]} for n in claims_in(prompt) if n != 2})

    first, second = run_jobs(Model(answer), TEXTS[:3], 10_000)
    assert (first.rank, first.failure) == (2, None)
    assert (second.rank, second.failure) == (None, "claim 2 has no verdict")


def test_the_questions_of_one_sample_are_asked_side_by_side() -> None:
    at_once = most = 0

    class Slow(Model):
        async def complete(self, prompt: Prompt) -> Reply:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.01)
            at_once -= 1
            return await super().complete(prompt)

    model = Slow(by_truth({1: {"alone": [8]}})._answer)
    session = JudgeSession(model, Settings(journal=None, concurrency=3))
    (found,) = session.run_jobs([lambda: support(CLAIMS, TEXTS, budget=12)])
    assert not isinstance(found, Failure)
    assert found[0].rank == 8
    assert (len(model.asked), most) == (8, 3)


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
        ([verdict(failure="no"), verdict(2)], 2, 0.5),
        ([verdict(failure="no"), verdict(2), verdict(failure="no")], 2, 2 / 3),
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


@pytest.mark.parametrize("name", ["{}", "claim {}", "#{}"])
def test_verdicts_by_the_name_of_their_claim_are_read(name: str) -> None:
    entry = {"alone": ["context 2"], "parts": [], "complete": "no", "reason": "So."}
    named = {name.format(number): entry for number in (1, 2)}
    model = Model(lambda _: json.dumps({"verdicts": named}))
    first, second = run_jobs(model, TEXTS, budget=10_000)
    assert (first.rank, second.rank) == (2, 2)
    assert len(model.asked) == 1


@pytest.mark.parametrize("where", [0, 1, 2, 50, 99, 100])
@pytest.mark.parametrize("words", [4, 12, 30])
def test_an_excerpt_holds_every_letter_that_is_found_only_there(
    where: int, words: int
) -> None:
    names = [f"{chr(97 + n % 26) * 3}{n}" for n in range(words)]
    claim = f"Bridge {' '.join(names)} was opened in 1932"
    filler = "It was in the river that the boats were. " * 100
    at = len(filler) * where // 100
    text = f"{filler[:at]}{claim}{filler[at:]}"
    for budget in (len(claim) // 4 + 1, len(claim) // 3, 300):
        ((_, excerpt),) = excerpts([(1, text)], claim, budget)
        assert claim in excerpt
