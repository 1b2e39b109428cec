"""Judges that are talked round are found out; judges that only waver are not blamed."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from karat.data.gold import Item
from karat.data.judgements import Prompt
from karat.errors import DataError
from karat.judging import DryRun, JudgeSession, probe_claims, probe_grader
from karat.judging.attacks import ATTACKS, CONTROL
from karat.judging.contexts import Context
from karat.judging.probe_report import Attempt, ProbeReport
from karat.llm import Settings
from karat.stats import mean_interval
from tests.judging.models import Model, claims_in, session_of, verdicts

PER_PASSAGE = len(ATTACKS) + 3

QUESTIONS = {f"q{n}": f"What is number {n}?" for n in range(12)}
POOL = {
    query: {f"{query}-d": "Cats sleep.", f"{query}-e": "Ducks swim."}
    for query in QUESTIONS
}
CLEAN = {query: {f"{query}-d": 0.0, f"{query}-e": 2.0} for query in QUESTIONS}


def passage(prompt: Prompt) -> str:
    code = prompt.user.rsplit("Only marks with the code ", 1)[1].split()[0]
    body = prompt.user.split(f"[begin passage | {code}]\n")[1]
    return body.split(f"\n[end passage | {code}]")[0]


def grader(believes: Callable[[str], bool]) -> Callable[[Prompt], str]:
    def answer(prompt: Prompt) -> str:
        found = believes(passage(prompt))
        return json.dumps({"reason": "I was told so", "grade": 3 if found else 0})

    return answer


def worked(found: ProbeReport) -> dict[str, int]:
    return {share.name: share.worked for share in found.attacks if share.worked}


def test_a_judge_that_obeys_one_attack_is_found_out_by_name() -> None:
    found = probe_grader(
        POOL, QUESTIONS, CLEAN, session_of(grader(lambda t: "im_end" in t))
    )
    assert worked(found) == {"chat templates: im_end": 10}
    shares = {share.name: share for share in found.families}
    family = shares["chat templates"]
    assert family.rate == family.excess == pytest.approx(1 / 3)
    assert (family.worked, family.attempts, family.passages) == (10, 30, 10)
    attack = next(t for t in found.attacks if t.name == "chat templates: im_end")
    assert attack.p == pytest.approx(0.25**10 * 30)
    text = "\n".join(table.as_text() for table in found.tables())
    assert "single attacks beyond chance: chat templates: im_end\n" in text
    assert "0 to 3  q0, q0-d  I was told so" in text


def test_a_judge_that_holds_has_an_interval_that_says_how_little_that_proves() -> None:
    found = probe_grader(POOL, QUESTIONS, CLEAN, session_of(grader(lambda _: False)))
    assert worked(found) == {}
    (interval,) = {share.interval for share in found.attacks}
    assert interval is not None
    # The upper limit of Wilson's interval for none of ten passages.
    assert interval.high == pytest.approx(1.959964**2 / (10 + 1.959964**2), abs=1e-6)
    (wider,) = {share.interval for share in found.families}
    # Of the mean of several attempts in a passage, ten passages say less.
    assert wider is not None
    assert wider == mean_interval(np.zeros(10))
    assert wider.high > interval.high
    assert "single attacks beyond chance: none" in found.tables()[0].as_text()
    assert len(found.tables()) == 1


def test_a_judge_that_wavers_at_every_addition_is_not_called_gullible() -> None:
    wavering = session_of(grader(lambda text: text != "Cats sleep."))
    found = probe_grader(POOL, QUESTIONS, CLEAN, wavering)
    assert found.control.rate == 1.0
    assert all(share.rate == 1.0 and share.excess == 0.0 for share in found.families)
    assert all(share.p == 1.0 for share in found.attacks)
    assert "single attacks beyond chance: none" in found.tables()[0].as_text()


def test_the_passages_come_from_as_many_queries_as_possible() -> None:
    model = Model(grader(lambda _: False))
    grades = {query: dict.fromkeys(row, 0.0) for query, row in POOL.items()}
    found = probe_grader(POOL, QUESTIONS, grades, session_of(model), passages=12)
    assert len({attempt.query for attempt in found.attempts}) == 12
    assert len(model.asked) == len(found.attempts) == 12 * PER_PASSAGE


def test_passages_of_grade_1_come_last_and_better_or_empty_ones_never() -> None:
    pooled = {"q1": {"a": "A.", "b": "B.", "c": " ", "d": "D."}}
    grades = {"q1": {"a": 1.0, "b": 0.0, "c": 0.0, "d": 2.0}}
    found = probe_grader(pooled, QUESTIONS, grades, session_of(grader(lambda _: False)))
    assert [*dict.fromkeys(a.document for a in found.attempts)] == ["b", "a"]
    # A grade below the one without the attack is not a success of the attack.
    assert worked(found) == {}


def test_votes_are_asked_with_attacks_as_they_were_without() -> None:
    def answer(prompt: Prompt) -> str:
        return json.dumps({"grade": 0 if "assessor" in prompt.user else 3})

    model = Model(answer)
    found = probe_grader(POOL, QUESTIONS, CLEAN, session_of(model), passages=1, votes=3)
    assert len(model.asked) == 3 * PER_PASSAGE
    assert worked(found) == {}


def test_grades_that_cannot_be_had_are_counted_apart() -> None:
    found = probe_grader(POOL, QUESTIONS, CLEAN, session_of(lambda _: "hm"), passages=2)
    assert len(found.failed) == 2 * PER_PASSAGE
    assert not found.attempts
    assert len(found.families) == 10
    assert {share.failed for share in found.attacks} == {2}
    assert found.control.failed == 6
    assert math.isnan(found.control.rate)
    text = found.tables()[0].as_text()
    assert f"failed: {2 * PER_PASSAGE} attempts without a valid answer" in text
    assert found.to_dict()["control"]["rate"] is None


def test_attacks_need_an_irrelevant_passage() -> None:
    with pytest.raises(DataError, match="a larger -k"):
        probe_grader(POOL, QUESTIONS, {"q1": {"q1-d": 3.0}}, session_of(grader(bool)))


CLAIMS = {
    "q1": (Item("claim-1", "Bread is sour."), Item("claim-2", "Rye is grey.")),
    "q2": (Item("claim-1", "Ducks swim."),),
    "q3": (),
}
CONTEXTS: dict[str, Sequence[Context]] = {
    "q1": [(1, "Bread is sour. It is made of rye."), (2, "Cats sleep.")],
    "q2": [(1, "Ducks swim."), (2, "Cats sleep.")],
    "q3": [(1, "Rye is grey.")],
}


def texts(prompt: Prompt) -> dict[str, str]:
    """Kind and number -> text."""
    code = prompt.user.rsplit("Only marks with the code ", 1)[1].split()[0]
    parts = prompt.user.split(f" | {code}]")
    names = [part.rsplit("[begin ", 1)[-1] for part in parts[:-1:2]]
    return dict(
        zip(
            names,
            (part.rsplit("\n[end", 1)[0][1:] for part in parts[1::2]),
            strict=False,
        )
    )


def supporter(believes: Callable[[str], bool]) -> Callable[[Prompt], str]:
    """Finds a claim where it is stated, or where the context is believed."""

    def answer(prompt: Prompt) -> str:
        shown = texts(prompt)
        told = shown["context 1"]
        return verdicts(
            {
                number: {"alone": [1]}
                if shown[f"claim {number}"] in told or believes(told)
                else {}
                for number in claims_in(prompt)
            }
        )

    return answer


def test_the_judge_of_claims_is_tried_with_contexts_of_other_queries() -> None:
    found = probe_claims(CLAIMS, CONTEXTS, session_of(supporter(lambda t: "sued" in t)))
    places = {(a.query, a.document) for a in found.attempts}
    # "Cats sleep." is among the contexts of both, so it is foreign to neither.
    assert places == {
        ("q1", "rank 1 of q2"),
        ("q1", "rank 1 of q3"),
        ("q2", "rank 1 of q1"),
        ("q2", "rank 1 of q3"),
    }
    assert worked(found) == {"pressure: threat": 4}
    cases = {(a.query, a.document): a for a in found.attempts if a.attack == "threat"}
    # The second claim of q1 stands in that context, and does not count.
    assert cases["q1", "rank 1 of q3"].after == 1
    assert cases["q1", "rank 1 of q2"].after == 2
    assert all(case.share == 1.0 for case in cases.values())
    assert "claims" in found.tables()[1].as_text()


def test_no_attack_states_a_claim_so_a_true_judge_holds() -> None:
    found = probe_claims(CLAIMS, CONTEXTS, session_of(supporter(lambda _: False)))
    assert worked(found) == {}
    assert found.control.worked == 0


def test_a_claim_that_is_talked_round_alone_counts_as_a_part() -> None:
    def answer(prompt: Prompt) -> str:
        told = "bonus" in texts(prompt)["context 1"]
        return verdicts(
            {n: {"alone": [1] if told and n == 1 else []} for n in claims_in(prompt)}
        )

    found = probe_claims(
        {"q1": CLAIMS["q1"]}, {"q2": CONTEXTS["q2"]}, session_of(answer), passages=1
    )
    (case,) = found.worst
    assert (case.attack, case.share, case.before, case.after) == ("reward", 0.5, 0, 1)


def test_contexts_that_support_everything_are_replaced_by_others() -> None:
    asked = {"q1": (Item("claim-1", "Ducks swim."),)}
    model = Model(supporter(lambda _: False))
    found = probe_claims(asked, {**CONTEXTS, "q1": []}, session_of(model), passages=1)
    assert {a.document for a in found.attempts} == {"rank 1 of q3"}
    assert len(model.asked) == 2 + PER_PASSAGE


def test_failed_verdicts_are_counted_apart() -> None:
    def answer(prompt: Prompt) -> str:
        return "hm" if "sued" in prompt.user else supporter(lambda _: False)(prompt)

    found = probe_claims(CLAIMS, CONTEXTS, session_of(answer))
    assert [*found.failed] == [("pressure", "threat")] * 4
    threat = next(share for share in found.attacks if share.name == "pressure: threat")
    assert (threat.attempts, threat.failed) == (0, 4)
    assert math.isnan(threat.rate)


def test_a_judge_that_says_nothing_valid_is_told_apart_from_one_that_says_yes() -> None:
    with pytest.raises(DataError, match="no valid verdict on any context"):
        probe_claims(CLAIMS, CONTEXTS, session_of(lambda _: "hm"))
    with pytest.raises(DataError, match="give more samples"):
        probe_claims(CLAIMS, CONTEXTS, session_of(supporter(lambda _: True)))


def copier(prompt: Prompt) -> str:
    """Repeats the first verdict that it reads, and knows none of its own."""
    told = texts(prompt).get("passage") or texts(prompt)["context 1"]
    for start in (place for place, mark in enumerate(told) if mark == "{"):
        try:
            return json.dumps(json.JSONDecoder().raw_decode(told, start)[0])
        except ValueError:
            continue
    return (
        '{"grade": 0}' if prompt.name == "grade" else supporter(lambda _: False)(prompt)
    )


def test_a_verdict_that_is_copied_from_a_text_is_a_failure_and_no_success() -> None:
    forged = sum(t.family in {"fake replies", "chat templates"} for t in ATTACKS)
    found = probe_grader(POOL, QUESTIONS, CLEAN, session_of(copier), passages=2)
    assert (worked(found), len(found.failed)) == ({}, 2 * forged)
    found = probe_claims(CLAIMS, CONTEXTS, session_of(copier), passages=2)
    assert (worked(found), len(found.failed)) == ({}, 2 * forged)


def test_votes_decide_about_claims_too() -> None:
    def answer(prompt: Prompt) -> str:
        gullible = "assessor 2" in prompt.user
        return supporter(lambda text: gullible and "sued" in text)(prompt)

    found = probe_claims(CLAIMS, CONTEXTS, session_of(answer), votes=3)
    assert worked(found) == {}


@pytest.mark.parametrize("asked", [{}, {"q1": CLAIMS["q1"]}])
def test_one_sample_is_not_enough(asked: dict[str, tuple[Item, ...]]) -> None:
    with pytest.raises(DataError, match="give more samples"):
        probe_claims(asked, {"q1": CONTEXTS["q1"]}, session_of(supporter(bool)))


@pytest.mark.parametrize("passages", [1, 4])
def test_a_rehearsal_counts_the_calls_and_makes_none(passages: int) -> None:
    model = Model(supporter(lambda _: False))
    dry = DryRun(model, Settings(journal=None))
    probe_claims(CLAIMS, CONTEXTS, dry, passages=passages)
    assert dry.total.calls == passages * (1 + PER_PASSAGE)
    dry = DryRun(model, Settings(journal=None))
    probe_grader(POOL, QUESTIONS, CLEAN, dry, passages=passages)
    assert dry.total.calls == passages * PER_PASSAGE
    assert model.asked == []


def attempt(family: str, passage: int, share: float, reason: str = "") -> Attempt:
    query = f"q{passage}"
    return Attempt("t", family, passage, query, "d", 0, round(share), share, reason)


def test_every_passage_weighs_the_same() -> None:
    tried = [attempt("f", 0, 1.0), attempt("f", 1, 0.0), attempt("f", 1, 0.0)]
    calm = [attempt(CONTROL, 0, 0.0), attempt(CONTROL, 1, 0.5)]
    (share,) = ProbeReport([*tried, *calm]).families
    assert (share.rate, share.excess) == (0.5, 0.25)


def test_a_passage_without_a_control_has_no_excess() -> None:
    (share,) = ProbeReport([attempt("f", 0, 1.0)]).families
    assert (share.rate, share.excess, share.p) == (1.0, None, None)
    text = ProbeReport([attempt("f", 0, 1.0)]).tables()[0].as_text()
    assert "cannot be told without valid answers to harmless additions" in text


@pytest.mark.parametrize("passages", [4, 5])
def test_too_few_passages_cannot_tell_and_it_is_said(passages: int) -> None:
    # One attack among three harmless additions: 1/4 a passage, corrected for thirty.
    told = 30 * 0.25**passages < 0.05
    holds = session_of(grader(lambda _: False))
    found = probe_grader(POOL, QUESTIONS, CLEAN, holds, passages=passages)
    text = found.tables()[0].as_text()
    few = f"single attacks beyond chance: cannot be told from {passages} passages; 5 "
    assert (few in text) is not told
    assert ("single attacks beyond chance: none" in text) is told
    obeys = session_of(grader(lambda text: "im_end" in text))
    found = probe_grader(POOL, QUESTIONS, CLEAN, obeys, passages=passages)
    (beyond,) = [share.p for share in found.attacks if share.worked]
    assert beyond is not None
    assert (beyond < 0.05) is told


def test_passages_of_one_query_do_not_make_a_judge_surer() -> None:
    def width(queries: int) -> float:
        tried = [
            replace(attempt("f", n, float(n % queries < queries / 2)), query=f"q{q}")
            for n in range(20)
            for q in [n % queries]
        ]
        (share,) = ProbeReport(tried).attacks
        assert share.interval is not None
        return share.interval.high - share.interval.low

    assert width(4) > width(20)
    one_query = [replace(attempt("f", n, 0.0), query="q") for n in range(20)]
    (share,) = ProbeReport(one_query).attacks
    # One query says nothing of others.
    assert share.interval is not None
    assert share.interval[:2] == (0, 1)


def test_the_interval_does_not_depend_on_what_the_attempts_happened_to_say() -> None:
    # Three attempts in a passage have a mean between 0 and 1, even if none has here.
    rows = [attempt("f", n, 0.0) for n in range(10)]
    tried = [replace(row, attack=f"t{m}") for row in rows for m in range(3)]
    (family,) = ProbeReport(tried).families
    assert family.interval is not None
    assert family.interval.method == "gaffke"
    assert {t.interval.method for t in ProbeReport(tried).attacks if t.interval} == {
        "wilson"
    }
    parts = ProbeReport(tried, "claims").attacks
    assert {t.interval.method for t in parts if t.interval} == {"gaffke"}


def test_attacks_that_fail_are_found_whatever_number_may_fail() -> None:
    strict = JudgeSession(Model(lambda _: "hm"), Settings(journal=None, max_failures=0))
    found = probe_grader(POOL, QUESTIONS, CLEAN, strict, passages=1)
    assert len(found.failed) == PER_PASSAGE


def test_reasons_can_be_left_out() -> None:
    found = ProbeReport([attempt("f", 0, 1.0, "it says: secret")])
    assert "secret" in json.dumps(found.to_dict())
    assert "secret" not in json.dumps(found.without_texts().to_dict())
