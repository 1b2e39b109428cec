"""Reference answers become claims, claims become hits, and failures are never zeros."""

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import karat
from karat import Dataset, Evaluation, Gold
from karat.extend import (
    Claims,
    DataError,
    DryRun,
    IncompleteError,
    Item,
    JudgeSession,
    Policies,
    Prompt,
    Settings,
    UsageError,
)
from karat.judging.splitting import split_references
from karat.reading.readers import read, with_texts
from karat.reading.write import write
from karat.results.loading import from_dict
from tests.judging.models import (
    Model,
    contexts_in,
    session_of,
    support,
    verdicts,
)
from tests.reading.records import load_records

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "evaluation-3.schema.json"
TEXTS = ["Bread rises in an hour.", "Ovens are hot.", "Rye is a grain."]
SAMPLE = {
    "id": "q1",
    "query": "How is bread made?",
    "retrieved_contexts": TEXTS,
    "reference": "Dough rises. Rye is a grain. Salt comes last.",
}


def judged(model: Model, samples: Any = None, **options: Any) -> Evaluation:
    options.setdefault("metrics", ["context_recall", "context_recall@1", "rr", "ndcg"])
    claims = Claims(session_of(model), **options.pop("claims", {}))
    return karat.evaluate(samples or [SAMPLE], judge=claims, **options)


def test_every_rank_metric_reads_the_first_rank_of_each_claim() -> None:
    model = Model(support({"Dough rises": [1, 3], "Rye is a grain": [3]}))
    result = judged(model)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert result.means == pytest.approx(
        {
            "context_recall": 2 / 3,
            "context_recall@1": 1 / 3,
            "rr": 1.0,
            "ndcg": (1 + 1 / math.log2(4)) / ideal,
        }
    )
    assert result.matchers["context_recall"] == "claims"
    assert result.traces[0].first_ranks == {
        "claim-1": 1,
        "claim-2": 3,
        "claim-3": None,
    }
    assert [prompt.name for prompt in model.asked] == ["split", "support"]


def test_support_by_two_documents_together_counts_at_the_rank_that_completes_them() -> (
    None
):
    reply = verdicts({1: {"parts": [1, 3], "complete": True}, 2: {"parts": [1, 2]}})
    sample = {**SAMPLE, "claims": ["Bread and rye", "Bread and salt"]}
    result = judged(
        Model(lambda _: reply), [sample], metrics=["recall@2", "recall@3", "rr"]
    )
    assert result.means == {"recall@2": 0.0, "recall@3": 0.5, "rr": 1 / 3}
    assert [v.together for v in result.traces[0].verdicts] == [(1, 3), ()]


def test_claims_that_the_user_brings_are_not_split_again() -> None:
    model = Model(support({"Ovens are hot": [2]}))
    sample = {**SAMPLE, "claims": ["Ovens are hot"]}
    assert judged(model, [sample]).means["context_recall"] == 1.0
    assert [prompt.name for prompt in model.asked] == ["support"]


def test_split_claims_are_saved_with_the_data_and_can_be_edited(tmp_path: Path) -> None:
    loaded = load_records([SAMPLE])
    assert loaded.gold is not None
    done = split_references(loaded.gold, session_of(support({})))
    gold, failures = done.gold, done.failures
    assert failures == {}
    path = tmp_path / "claims.jsonl"
    write(Dataset(loaded.run, gold, loaded.queries), path)
    path.write_text(path.read_text("utf-8").replace("Dough", "Bread dough"), "utf-8")
    again = read(path, role="samples")
    assert again.gold is not None
    assert [item.text for item in again.gold.claims["q1"]] == [
        "Bread dough rises",
        "Rye is a grain",
        "Salt comes last",
    ]
    assert {item.source for item in again.gold.claims["q1"]} == {"judge:scripted"}
    model = Model(support({"Bread dough rises": [1]}))
    assert judged(model, again).means["context_recall"] == pytest.approx(1 / 3)
    assert [prompt.name for prompt in model.asked] == ["support"]


def test_no_document_below_the_deepest_cutoff_is_paid_for() -> None:
    model = Model(support({"Dough rises": [1]}))
    result = judged(model, metrics=["context_recall@2", "rr@1", "ndcg[claims]@k"], k=1)
    assert contexts_in(model.asked[-1]) == [1, 2]
    assert result.means["context_recall@2"] == pytest.approx(1 / 3)
    judged(model, metrics=["context_recall@2", "rr"])
    assert contexts_in(model.asked[-1]) == [1, 2, 3]
    judged(model, metrics=["recall[claims]@k"], k=1)
    assert contexts_in(model.asked[-1]) == [1]


def test_the_mean_never_takes_a_failure_for_zero_even_where_undefined_is_zero() -> None:
    model = Model(lambda _: "no")
    result = judged(model, [{**SAMPLE, "claims": ["One"]}], undefined="zero")
    assert math.isnan(result["context_recall"].mean)


def test_one_repair_round_says_what_was_wrong() -> None:
    replies = iter([verdicts({1: {"alone": [7]}}), verdicts({1: {"alone": [2]}})])
    model = Model(lambda _: next(replies))
    result = judged(model, [{**SAMPLE, "claims": ["One"]}], metrics=["rr"])
    assert result.means == {"rr": 0.5}
    assert "claim 1 names context 7, which was not shown" in model.asked[1].user
    assert model.asked[1].user.startswith(model.asked[0].user)


def test_valid_verdicts_of_the_first_reply_are_kept_when_the_repair_forgets_them() -> (
    None
):
    replies = iter([verdicts({1: {"alone": [1]}}), verdicts({2: {"alone": [3]}})])
    model = Model(lambda _: next(replies))
    sample = {**SAMPLE, "claims": ["One", "Two"]}
    assert judged(model, [sample], metrics=["recall"]).means == {"recall": 1.0}


def test_a_reference_that_cannot_be_split_is_a_failure() -> None:
    result = judged(Model(lambda _: '{"claims": "none"}'))
    reason = result["context_recall"].failures[0]
    assert reason == "the reference could not be split: it has no list of claims"


def test_a_reference_without_claims_is_undefined_and_said() -> None:
    samples = [
        SAMPLE,
        {**SAMPLE, "id": "q2", "reference": "   "},
        {**SAMPLE, "id": "q3", "reference": "..."},
    ]
    result = judged(Model(support({"Dough rises": [1]})), samples)
    assert result["context_recall"].undefined == 2
    notes = {notice.kind: notice for notice in result.warnings}
    assert notes["claims"].count == 2
    assert notes["claims"].examples == ("q2", "q3")


def test_nothing_retrieved_scores_zero_and_asks_nothing_about_support() -> None:
    model = Model(support({}))
    result = judged(
        model, [{**SAMPLE, "retrieved_contexts": []}, {**SAMPLE, "id": "b"}]
    )
    assert result["context_recall"].scores[0] == 0.0
    assert [prompt.name for prompt in model.asked].count("support") == 1


def test_nothing_to_judge_is_a_sentence() -> None:
    with pytest.raises(DataError, match="no query has claims or a reference answer"):
        judged(Model(support({})), [{**SAMPLE, "reference": ""}])
    samples = [{"id": "a", "retrieved_contexts": ["x"], "passages": ["y"]}]
    with pytest.raises(DataError, match="a field such as reference"):
        judged(Model(support({})), samples)


def test_documents_without_texts_are_a_sentence() -> None:
    gold = Gold(references={"q": "It is so."})
    with pytest.raises(DataError, match="looks like ids, such as 'd1'"):
        karat.evaluate(
            {"q": ["d1"]},
            gold=gold,
            metrics="context_recall",
            judge=Claims(session_of(support({}))),
        )


@pytest.mark.parametrize("metric", ["context_recall@5", "recall[claims]", "rr"])
def test_without_a_judge_the_sentence_says_how_to_name_one(metric: str) -> None:
    with pytest.raises(UsageError, match=r"judge=karat\.extend\.Claims.*--model"):
        karat.evaluate([SAMPLE], metrics=metric)


class OpenAI:
    chat = None


@pytest.mark.parametrize(
    ("judge", "sentence"),
    [
        (3, "a judge is the name of a model, a client, or a function"),
        (OpenAI(), "an OpenAI does not say which model answers"),
        ("  ", "a model has no name"),
    ],
)
def test_a_judge_that_is_none_is_refused(judge: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        karat.evaluate([SAMPLE], metrics="context_recall", judge=judge)


def test_a_client_or_a_function_is_a_judge_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = Model(support({"Rye is a grain": [2]}))
    result = karat.evaluate([SAMPLE], metrics="context_recall", judge=model)
    assert result.means == {"context_recall": pytest.approx(1 / 3)}
    sample = {**SAMPLE, "claims": ["One"]}
    reply = verdicts({1: {"alone": [1]}})
    result = karat.evaluate([sample], metrics="rr", judge=lambda _: reply)
    assert result.means == {"rr": 1.0}


def test_a_judge_handed_over_as_the_matcher_is_asked_itself() -> None:
    finds, misses = (
        Claims(session_of(support({"Rye is a grain": found}))) for found in ([1], [])
    )
    result = karat.evaluate(
        [SAMPLE], metrics=["hit@1", "context_recall"], match=misses, judge=finds
    )
    assert result.means == {"hit@1": 0.0, "context_recall": pytest.approx(1 / 3)}


def test_limits_begin_anew_with_each_evaluation_unless_a_bench_was_given(
    tmp_path: Path,
) -> None:
    samples = [{**SAMPLE, "id": str(n), "query": f"{n}?"} for n in range(3)]
    settings = Settings(journal=tmp_path / "journal.sqlite", max_calls=3)
    claims = Claims(Model(support({})), settings)
    with pytest.raises(IncompleteError, match="limit of 3 calls"):
        karat.evaluate(samples, metrics="context_recall", judge=claims)
    # The same call goes on, as the error says.
    result = karat.evaluate(samples, metrics="context_recall", judge=claims)
    assert result["context_recall"].n == 3
    shared = Claims(
        JudgeSession(Model(support({})), Settings(journal=None, max_calls=3))
    )
    for _ in range(2):
        with pytest.raises(IncompleteError, match="limit of 3 calls"):
            karat.evaluate(samples, metrics="context_recall", judge=shared)
    with pytest.raises(UsageError, match="a JudgeSession has settings and prompts"):
        Claims(shared.session, settings)


def test_ids_are_not_read_as_texts() -> None:
    model = Model(support({"Rye": [1]}))
    sample = {"id": "q1", "retrieved": ["doc_17", "doc_18"], "claims": ["Rye"]}
    with pytest.raises(DataError, match=r"looks like ids, such as 'doc_17'.*--corpus"):
        judged(model, [sample])
    assert model.asked == []
    assert judged(model, [sample], metrics=["recall"], force=True).means["recall"] == 1
    run = load_records([sample]).run
    assert run is not None
    texts = with_texts(run, {"doc_17": "Rye is a grain."})
    ((_, documents),) = texts.rankings(Policies())
    assert [(d.id, d.text) for d in documents] == [
        ("doc_17", "Rye is a grain."),
        ("doc_18", None),
    ]
    with pytest.raises(DataError, match="'doc_18' has no text"):
        karat.evaluate(
            texts,
            gold=Gold(claims={"q1": (Item("1", "Rye"),)}),
            metrics="recall",
            match=Claims(session_of(model)),
        )


def test_missing_texts_are_noticed_before_anything_is_paid() -> None:
    model = Model(support({}))
    samples = {"q1": ["d1"], "q2": ["d2"]}
    gold = Gold(references={"q1": "Rye.", "q2": "Salt."})
    with pytest.raises(DataError, match="looks like ids, such as 'd1'"):
        karat.evaluate(
            samples,
            gold=gold,
            metrics="context_recall",
            judge=Claims(session_of(model)),
        )
    assert model.asked == []


@pytest.mark.parametrize(
    "reply",
    [
        '{"claims": ["...", "..."]}',
        verdicts({1: {"reason": "..."}, 2: {"reason": " ... "}, 3: {"reason": "..."}}),
    ],
)
def test_a_model_that_repeats_the_form_has_judged_nothing(reply: str) -> None:
    def answer(prompt: Prompt) -> str:
        asked = "claims" if prompt.name == "split" else "verdicts"
        return reply if asked in reply else support({})(prompt)

    result = judged(Model(answer), metrics="context_recall")
    assert result["context_recall"].failed == 1
    (failure,) = result["context_recall"].failures.values()
    assert "repeats the form it was shown" in failure


def test_a_judge_may_be_given_as_the_matcher_of_all_metrics() -> None:
    claims = Claims(session_of(support({"Rye is a grain": [2]})))
    result = karat.evaluate([SAMPLE], metrics=["hit@2", "context_recall"], match=claims)
    assert result.means == {"hit@2": 1.0, "context_recall": pytest.approx(1 / 3)}
    assert claims != Claims(claims.client)


def test_labels_and_claims_live_side_by_side() -> None:
    sample = {
        **SAMPLE,
        "relevant": ["d2"],
        "retrieved": [{"id": f"d{n}", "text": text} for n, text in enumerate(TEXTS, 1)],
    }
    del sample["retrieved_contexts"]
    model = Model(support({"Dough rises": [1]}))
    result = judged(model, [sample], metrics=["rr", "rr[claims]", "context_recall"])
    assert result.means == pytest.approx(
        {"rr": 0.5, "rr[claims]": 1.0, "context_recall": 1 / 3}
    )


def test_a_text_retrieved_twice_is_shown_and_paid_once() -> None:
    sample = {**SAMPLE, "retrieved_contexts": [TEXTS[0], TEXTS[0], " ", TEXTS[1]]}
    model = Model(support({"Dough rises": [1]}))
    judged(model, [sample])
    assert contexts_in(model.asked[-1]) == [1, 4]
    judged(model, [sample], duplicates="keep")
    assert contexts_in(model.asked[-1]) == [1, 2, 4]
    judged(model, [sample], duplicates="collapse")
    assert contexts_in(model.asked[-1]) == [1, 3]
    with pytest.raises(DataError, match="rank 2 repeats"):
        judged(model, [sample], duplicates="error")


def test_votes_decide_by_majority_and_tell_how_far_they_differ() -> None:
    def answer(prompt: Prompt) -> str:
        second = "assessor 2;" in prompt.user
        return verdicts({1: {"alone": [2]}, 2: {"alone": [] if second else [1]}})

    model = Model(answer)
    sample = {**SAMPLE, "claims": ["One", "Two"]}
    result = judged(model, [sample], claims={"votes": 3}, metrics=["context_recall"])
    assert result.means["context_recall"] == 1.0
    assert len({prompt.user for prompt in model.asked}) == 3
    assert [v.disagreement for v in result.traces[0].verdicts] == [
        0.0,
        pytest.approx(1 / 3),
    ]
    notes = {notice.kind: str(notice) for notice in result.warnings}
    assert notes["votes"] == "1 claim divided the 3 votes; 16.7% of votes differ"


def test_a_judge_alone_is_marked_uncalibrated() -> None:
    result = judged(Model(support({})))
    note = next(n for n in result.warnings if n.kind == "uncalibrated")
    assert str(note).startswith("3 claims were judged by judge:scripted alone")
    assert "uncalibrated" in str(result)


def test_reasons_are_in_the_saved_evaluation_unless_texts_are_kept_out() -> None:
    model = Model(support({"Dough rises": [1]}))
    result = judged(model)
    saved = json.loads(result.to_json())
    jsonschema.validate(saved, json.loads(SCHEMA.read_text("utf-8")))
    again = from_dict(saved)
    assert again.traces[0].verdicts == result.traces[0].verdicts
    assert result.traces[0].verdicts[0].reason == "so it is"
    silent = judged(model, claims={"texts": False}).to_json()
    assert "so it is" not in silent
    assert "Dough" not in silent
    assert '"alone": [' in silent


def test_a_rehearsal_counts_calls_and_asks_nobody() -> None:
    model = Model(support({}))
    rehearsal = DryRun(session_of(model).client, session_of(model).settings)
    karat.evaluate([SAMPLE], metrics="context_recall", judge=Claims(rehearsal))
    assert model.asked == []
    assert rehearsal.total.calls == 2
    assert rehearsal.total.prompt_tokens > 300


def test_items_of_one_claim_file_keep_their_grades() -> None:
    gold = Gold(claims={"q1": (Item("a", "Dough rises", 3.0), Item("b", "Two", 1.0))})
    run = load_records([SAMPLE]).run
    claims = Claims(session_of(support({"Dough rises": [1]})))
    result = karat.evaluate(
        run, gold=gold, metrics=["ndcg", "recall(threshold=2)"], match=claims
    )
    assert result.means["recall(threshold=2)"] == 1.0
    assert result.means["ndcg"] == pytest.approx(3 / (3 + 1 / math.log2(3)))


def test_context_precision_with_a_reference_reads_every_supporting_position() -> None:
    model = Model(support({"Dough rises": [1, 3], "Rye is a grain": [3]}))
    result = judged(model, metrics=["context_precision", "context_precision[claims]"])
    expected = (1 / 1 + 2 / 3) / 2
    assert result.means["context_precision"] == pytest.approx(expected)
    assert result.means["context_precision[claims]"] == pytest.approx(expected)


def test_a_query_that_the_run_lacks_scores_zero_and_one_without_gold_is_told() -> None:
    gold = Gold(claims={"a": (Item("1", "One"),), "b": (Item("1", "Two"),)})
    run = [{"id": "b", "retrieved_contexts": ["X."]}, {"id": "c", "contexts": ["Y."]}]
    claims = Claims(session_of(support({"Two": [1]})))
    result = karat.evaluate(run, gold=gold, metrics="recall", match=claims)
    assert result["recall"].scores.tolist() == [0.0, 1.0]
    assert result.missing.tolist() == [True, False]
    assert "extra" in {notice.kind for notice in result.warnings}


def test_judging_works_where_an_event_loop_is_running() -> None:
    async def notebook() -> Evaluation:
        return judged(Model(support({"Dough rises": [1]})))

    assert asyncio.run(notebook()).means["context_recall"] == pytest.approx(1 / 3)
    claims = Claims(session_of(support({"Dough rises": [1]})))
    awaited = karat.aevaluate([SAMPLE], metrics="context_recall", judge=claims)

    async def script() -> Evaluation:
        return await awaited

    assert asyncio.run(script()).means["context_recall"] == pytest.approx(1 / 3)


def test_a_group_named_like_a_claim_is_another_item() -> None:
    claims = (Item("x", "One", group="y"), Item("y", "Two"))
    gold = Gold(claims={"q1": claims}, order=("q1",))
    model = Model(support({"One": [1]}))
    result = karat.evaluate(
        load_records([{"id": "q1", "contexts": TEXTS}]),
        gold=gold,
        metrics="context_recall",
        judge=Claims(session_of(model)),
    )
    assert result.means == {"context_recall": 0.5}


def test_claims_of_one_group_are_alternatives_and_count_as_one() -> None:
    items = (
        Item("a", "Dough rises", group="start"),
        Item("b", "Yeast works", group="start"),
        Item("c", "Salt comes last"),
    )
    run = load_records([SAMPLE]).run
    claims = Claims(session_of(support({"Dough rises": [3], "Yeast works": [1, 3]})))
    gold = Gold(claims={"q1": items})
    result = karat.evaluate(run, gold=gold, metrics=["recall", "rr"], match=claims)
    assert result.means == {"recall": 0.5, "rr": 1.0}


def test_a_document_that_is_read_in_pieces_is_told() -> None:
    long = "".join(f"{n} " for n in range(1000))
    sample = {**SAMPLE, "claims": ["One"], "retrieved_contexts": [long, "short"]}
    model = Model(support({}))
    result = judged(model, [sample], claims={"budget": 300})
    note = next(n for n in result.warnings if n.kind == "long")
    assert str(note).startswith("1 document is longer than 300 tokens")
    assert len(model.asked) == 4
