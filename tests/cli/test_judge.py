"""The commands that ask a model, with a model whose replies are written down."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat.cli.judge_session
from karat.extend import Prompt
from tests.cli.conftest import Karat
from tests.judging.models import Model, claims_in, support, verdicts

Teach = Callable[[Callable[[Prompt], str]], Model]

SAMPLES = [
    {
        "id": "q1",
        "query": "How is bread made?",
        "contexts": ["Dough rises.", "Ovens are hot.", "Rye is a grain."],
        "reference": "Dough rises. Salt comes last.",
    },
    {
        "id": "q2",
        "query": "What is rye?",
        "contexts": ["Cats sleep.", "Rye is a grain."],
        "reference": "Rye is a grain.",
    },
]
RUN_OPTIONS = ("--queries", "queries.jsonl", "--corpus", "corpus.jsonl", "--model", "m")


@pytest.fixture
def teach(monkeypatch: pytest.MonkeyPatch) -> Teach:
    """Puts a scripted model where the endpoint would be."""

    def put(answer: Callable[[Prompt], str]) -> Model:
        model = Model(answer)

        def connect(name: str, **_: object) -> Model:
            model.model = name
            return model

        monkeypatch.setattr(karat.cli.judge_session, "OpenAIClient", connect)
        return model

    return put


@pytest.fixture
def samples(folder: Path) -> str:
    lines = (json.dumps(sample) + "\n" for sample in SAMPLES)
    (folder / "bread.jsonl").write_text("".join(lines), "utf-8")
    return "bread.jsonl"


KNOWS = support({"Dough rises": [1], "Rye is a grain": [2]})
JUDGED = ("-m", "context_recall,context_recall@1", "--model", "m")


def test_context_recall_from_references_alone(
    karat: Karat, samples: str, teach: Teach
) -> None:
    model = teach(KNOWS)
    done = karat("evaluate", samples, *JUDGED)
    assert done.code == 0
    assert "context_recall    0.7500" in done.out
    assert "context_recall@1  0.2500" in done.out
    assert "uncalibrated: 3 claims were judged by judge:m alone" in done.out
    calls = len(model.asked)
    assert calls == 4
    again = karat("evaluate", samples, *JUDGED)
    assert again.out == done.out
    assert len(model.asked) == calls
    assert karat("evaluate", samples, *JUDGED, "--offline").out == done.out


def test_offline_without_kept_replies_is_an_error(
    karat: Karat, samples: str, teach: Teach
) -> None:
    teach(KNOWS)
    done = karat("evaluate", samples, *JUDGED, "--offline")
    assert done.code == 2
    assert "journal" in done.err


def test_a_dry_run_says_what_it_would_take_and_asks_nobody(
    karat: Karat, samples: str, teach: Teach
) -> None:
    model = teach(KNOWS)
    done = karat("evaluate", samples, *JUDGED, "--dry-run", "--prices", "1,2")
    assert done.code == 0
    assert done.out.startswith("this would take: 4 calls (0 replies")
    assert model.asked == []
    karat("evaluate", samples, *JUDGED)
    spent = karat("evaluate", samples, *JUDGED, "--dry-run")
    assert "0 calls (4 replies kept already) for splitting 2 references" in spent.out


def test_explaining_shows_each_claim_with_ranks_and_reason(
    karat: Karat, samples: str, teach: Teach
) -> None:
    teach(KNOWS)
    done = karat("evaluate", samples, *JUDGED, "--explain", "q1")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["Dough", "rises", "yes", "1", "so", "it", "is"] in lines
    assert ["Salt", "comes", "last", "no", "\N{EN DASH}", "so", "it", "is"] in lines
    silent = karat("evaluate", samples, *JUDGED, "--explain", "q1", "--no-text")
    assert "Salt" not in silent.out
    assert "Dough" not in silent.out
    assert "so it is" not in silent.out


def test_reasons_are_in_the_json_unless_texts_must_stay_out(
    karat: Karat, samples: str, teach: Teach, folder: Path
) -> None:
    teach(KNOWS)
    saved = json.loads(karat("evaluate", samples, *JUDGED, "--json").out)
    assert saved["evaluation"]["matches"]["claims"]["verdicts"]["0"][0] == {
        "claim": "claim-1",
        "text": "Dough rises",
        "alone": [1],
        "reason": "so it is",
        "disagreement": 0.0,
    }
    out = str(folder / "out.json")
    done = karat("evaluate", samples, *JUDGED, "--json", "--no-text", "-o", out)
    for text in (done.out, Path(out).read_text("utf-8")):
        assert "Dough" not in text
        assert "so it is" not in text


def test_failed_queries_exit_with_3_unless_so_many_may_fail(
    karat: Karat, samples: str, teach: Teach
) -> None:
    def answer(prompt: Prompt) -> str:
        if prompt.name == "support" and len(claims_in(prompt)) == 1:
            return verdicts({1: {"alone": [77]}})
        return KNOWS(prompt)

    teach(answer)
    done = karat("evaluate", samples, *JUDGED)
    assert done.code == 3
    assert "1 query could not be judged, 'q2': claim 1 names context 77" in done.err
    assert "0.5000" in done.out
    assert karat("evaluate", samples, *JUDGED, "--max-failures", "1").code == 0
    model = teach(KNOWS)
    done = karat("evaluate", samples, *JUDGED, "--retry-errors")
    assert done.code == 0
    assert len(model.asked) == 1


def test_a_limit_of_calls_stops_cleanly_and_the_next_run_goes_on(
    karat: Karat, samples: str, teach: Teach
) -> None:
    model = teach(KNOWS)
    done = karat("evaluate", samples, *JUDGED, "--max-calls", "3")
    assert done.code == 3
    assert "limit of 3 calls" in done.err
    assert len(model.asked) == 3
    assert karat("evaluate", samples, *JUDGED).code == 0
    assert len(model.asked) == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-m", "context_recall"), "--model NAME"),
        (("--dry-run",), "no model to ask: add --model NAME"),
        ((*JUDGED, "--prices", "cheap"), "as in 0.15,0.6"),
        ((*JUDGED, "--max-cost", "1"), "needs --prices"),
        ((*JUDGED, "--prices", "nan,1"), "as in 0.15,0.6"),
        ((*JUDGED, "--votes", "0"), "votes must be an integer >= 1"),
        ((*JUDGED, "--rpm", "0"), "--rpm: requests_per_minute must be more than 0"),
        ((*JUDGED, "--timeout", "nan"), "--timeout: timeout must be more than 0"),
        ((*JUDGED, "--max-attempts", "0"), "--max-attempts: max_attempts must be 1"),
        ((*JUDGED, "--max-tokens", "0"), "--max-tokens: tokens must be an integer"),
        ((*JUDGED, "--parameter", "low"), "expected NAME=VALUE, got 'low'"),
        ((*JUDGED, "--journal", "."), "cannot keep a journal at ."),
        ((*JUDGED, "--dry-run", "--explain", "q1"), "nothing to --explain"),
        ((*JUDGED, "--corpus", "none.jsonl"), "none.jsonl"),
    ],
)
def test_what_is_missing_is_said(
    karat: Karat, samples: str, teach: Teach, arguments: tuple[str, ...], sentence: str
) -> None:
    teach(KNOWS)
    done = karat("evaluate", samples, *arguments)
    assert done.code == 2
    assert sentence in done.err


def test_a_model_that_no_metric_needs_is_said_to_do_nothing(
    karat: Karat, folder: Path, teach: Teach
) -> None:
    model = teach(KNOWS)
    scored = ("evaluate", "dense.run", "-g", "gold.qrels", "-m", "rr")
    done = karat(*scored, "--model", "m")
    assert (done.code, done.out) == (0, karat(*scored).out)
    assert done.err.startswith("karat: --model does nothing here: ")
    assert "-m context_recall" in done.err
    (folder / "karat.yaml").write_text("judging: {model: m}", "utf-8")
    assert karat(*scored).err == "karat: from karat.yaml: model\n"
    assert model.asked == []


def test_samples_without_references_say_what_is_missing(
    karat: Karat, folder: Path, teach: Teach
) -> None:
    teach(KNOWS)
    record = {"id": "q", "query": "What is rye?", "contexts": ["Rye is a grain."]}
    (folder / "bare.jsonl").write_text(json.dumps(record), "utf-8")
    done = karat("evaluate", "bare.jsonl", *JUDGED)
    assert done.code == 2
    assert "add --gold, or a reference answer to each sample" in done.err


def grades(prompt: Prompt) -> str:
    """Two passages answer anything; the rest is graded by its length."""
    text = prompt.user.split("[begin passage |")[1]
    grade = 3 if "refund" in text.lower() else len(text) % 2
    return json.dumps({"grade": grade, "reason": "by script"})


def test_runs_are_pooled_graded_and_written_as_gold(
    karat: Karat, folder: Path, teach: Teach
) -> None:
    teach(grades)
    runs = ("keyword.run", "dense.run")
    done = karat("judge", *runs, *RUN_OPTIONS, "-k", "3", "-o", "judged.qrels")
    assert done.code == 0, done.err
    assert "uncalibrated" in done.out
    lines = [line.split() for line in (folder / "judged.qrels").read_text().split("\n")]
    assert all(words[1] == "judge:m" for words in lines if words)
    scored = karat("evaluate", *runs, "--gold", "judged.qrels", "-m", "ndcg@3")
    assert scored.code == 0
    assert "uncalibrated" in scored.out
    mixed = (folder / "judged.qrels").read_text() + "q01 0 a-new-document 1\n"
    (folder / "mixed.qrels").write_text(mixed)
    assert "mixed" in karat("evaluate", "dense.run", "-g", "mixed.qrels").out


def test_names_that_a_format_cannot_hold_are_refused_before_a_judge_is_paid(
    karat: Karat, samples: str, teach: Teach
) -> None:
    model = teach(grades)
    done = karat("judge", samples, "--model", "m", "-o", "gold.qrels")
    assert done.code == 2
    assert "gold.qrels: query" in done.err
    assert "a TREC file cannot hold the id" in done.err
    assert model.asked == []


def test_agreement_with_people_is_measured(karat: Karat, teach: Teach) -> None:
    model = teach(grades)
    asked = ("judge", "keyword.run", "dense.run", *RUN_OPTIONS, "-k", "2")
    done = karat(*asked, "--agreement", "gold.qrels", "--retest")
    assert done.code == 0, done.err
    for word in ("Cohen's kappa", "quadratic", "Krippendorff's alpha", "tau"):
        assert word in done.out
    (line,) = [row for row in done.out.splitlines() if row.startswith("changed when")]
    assert line.split()[4:7] == ["0.0000", "0.0000", ".."]
    assert line.split()[-1] == "114"
    assert "uncalibrated" not in done.out
    calls = len(model.asked)
    facts: dict[str, Any] = json.loads(
        karat(*asked, "--agreement", "gold.qrels", "--json").out
    )
    assert len(model.asked) == calls
    assert (facts["compared"], facts["schema_version"]) == (True, 1)
    assert facts["flips"] is None
    order = facts["agreement"]["order"]
    assert (order["metric"], order["systems"]) == ("ndcg@10", 2)
    assert set(order["people"]) == set(order["judge"]) == {"keyword.run", "dense.run"}
    assert {grade["reason"] for grade in facts["grades"]} == {"by script"}


def test_a_judge_may_be_asked_again(karat: Karat, teach: Teach) -> None:
    teach(grades)
    asked = ("judge", "keyword.run", *RUN_OPTIONS, "-k", "2")
    done = karat(*asked, "--retest")
    assert done.code == 0, done.err
    assert "changed when asked again" in done.out


def test_what_fails_when_asked_again_is_shown_and_told_by_the_exit_code(
    karat: Karat, teach: Teach
) -> None:
    def answer(prompt: Prompt) -> str:
        fresh = "You are assessor" in prompt.user
        return "hm" if fresh else grades(prompt)

    teach(answer)
    asked = ("judge", "keyword.run", *RUN_OPTIONS, "-k", "1", "--retest")
    done = karat(*asked)
    assert done.code == 3
    assert "asked again: 40 documents without a grade" in done.out
    assert "40 judgements failed when asked again, first for q01" in done.err
    done = karat(*asked, "--json", "--max-failures", "39")
    assert (done.code, json.loads(done.out)["flips"]["failed"]) == (3, 40)
    assert karat(*asked, "--max-failures", "40").code == 0


def test_votes_that_fail_are_counted(karat: Karat, teach: Teach) -> None:
    def answer(prompt: Prompt) -> str:
        return "hm" if "You are assessor" in prompt.user else grades(prompt)

    teach(answer)
    asked = ("judge", "keyword.run", *RUN_OPTIONS, "-k", "1", "--votes", "3")
    done = karat(*asked, "-o", "x.qrels", "--max-failures", "80")
    assert done.code == 0, done.err
    rest = "on 40 documents whose grade rests on the others"
    assert f"votes: 80 votes without a valid answer, {rest}" in done.out
    facts = json.loads(karat(*asked, "--json", "--max-failures", "80").out)
    assert {grade["failed_votes"] for grade in facts["grades"]} == {2}


def test_gold_is_written_to_every_file_that_is_named(
    karat: Karat, teach: Teach
) -> None:
    teach(grades)
    asked = ("judge", "keyword.run", *RUN_OPTIONS, "-k", "2")
    done = karat(*asked, "-o", "a.qrels", "-o", "b.jsonl")
    assert done.code == 0, done.err
    assert "score with --threshold 2" in done.out
    scored = [
        karat("evaluate", "dense.run", "-g", name, "-m", "rr", "--threshold", "2").out
        for name in ("a.qrels", "b.jsonl")
    ]
    assert scored[0].replace("a.qrels", "b.jsonl") == scored[1]


def test_references_are_split_once_and_saved_to_be_corrected(
    karat: Karat, samples: str, folder: Path, teach: Teach
) -> None:
    model = teach(KNOWS)
    done = karat("judge", samples, "--claims", "--model", "m", "-o", "claims.jsonl")
    assert done.code == 0, done.err
    lines = (folder / "claims.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert done.out.strip() == "3 claims from 2 references"
    assert [claim["text"] for claim in rows[0]["claims"]] == [
        "Dough rises",
        "Salt comes last",
    ]
    calls = len(model.asked)
    scored = karat("evaluate", "claims.jsonl", *JUDGED)
    assert "context_recall    0.7500" in scored.out
    assert {prompt.name for prompt in model.asked[calls:]} == {"support"}


def test_samples_without_a_reference_are_counted(
    karat: Karat, samples: str, folder: Path, teach: Teach
) -> None:
    teach(KNOWS)
    bare = {"id": "q3", "query": "What is tea?", "contexts": ["Tea is a drink."]}
    own = {**bare, "id": "q4", "claims": ["Tea is a drink.", "Tea is hot."]}
    with (folder / samples).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in (bare, own))
    done = karat("judge", samples, "--claims", "--model", "m", "-o", "claims.jsonl")
    counts = "3 claims from 2 references, 2 claims brought by samples, 1 sample without"
    assert done.out.strip() == counts


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("keyword.run", "--model", "m", "-o", "x"), ".qrels, .tsv, .csv"),
        (("keyword.run", "--model", "m", "-o", "x.foo"), "end the name in one of"),
        (("keyword.run", "--model", "m"), "say where to write with -o FILE"),
        (("keyword.run", "-o", "x.qrels"), "no model to ask"),
        (("keyword.run", "-o", "x.qrels", "--model", "m", "-k", "0"), "integer >= 1"),
        (("keyword.run", "-o", "x.qrels", "--model", "m"), "--corpus FILE"),
        (("gold.qrels", "-o", "x.qrels", "--model", "m"), "nothing retrieved"),
        (
            ("keyword.run", "-o", "x.tsv", "--model", "m", "--corpus", "corpus.jsonl"),
            "--queries FILE",
        ),
        (("samples.jsonl", "--claims", "--model", "m"), "-o FILE"),
        (("plain.jsonl", "--claims", "--model", "m", "-o", "x.csv"), "no sample has"),
        (("samples.jsonl", "--claims", "--model", "m", "-o", "x"), "name in one of"),
        (("samples.jsonl", "--claims", "--model", "m", "-o", "x.qrels"), "no samples"),
        (("keyword.run", "--model", "m", "-o", "x.run"), "trec_run holds no gold"),
    ],
)
def test_judging_without_what_it_needs_is_a_sentence(
    karat: Karat,
    teach: Teach,
    folder: Path,
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    model = teach(grades)
    record = {"id": "q", "retrieved": ["d1"], "relevant": ["d1"]}
    (folder / "plain.jsonl").write_text(json.dumps(record), "utf-8")
    done = karat("judge", *arguments)
    assert model.asked == []
    assert done.code == 2
    assert sentence in done.err


def test_a_missing_key_is_a_sentence_that_says_what_to_set(
    karat: Karat, samples: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for more in ((), ("--dry-run",)):
        done = karat("evaluate", samples, *JUDGED, *more)
        assert done.code == 2
        assert "no API key: set OPENAI_API_KEY" in done.err
    assert done.out.startswith("this would take: ")


@pytest.mark.parametrize(
    ("variables", "arguments", "sentence"),
    [
        ({"KARAT_ALLOWED_ENDPOINTS": "a.b"}, (), "texts may not be sent to"),
        ({}, ("--offline",), "offline, but splitting 2 references takes replies"),
        ({}, ("--max-drop", "rr=0.1"), "--max-drop rr needs a baseline"),
    ],
)
def test_a_rehearsal_fails_as_the_run_would(
    karat: Karat,
    samples: str,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-nobody")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = karat("evaluate", samples, *JUDGED, *arguments, "--dry-run")
    assert done.code == 2
    assert sentence in done.err


def test_votes_are_asked_for_on_the_command_line(
    karat: Karat, samples: str, teach: Teach
) -> None:
    model = teach(KNOWS)
    done = karat("evaluate", samples, *JUDGED, "--votes", "3")
    assert done.code == 0
    assert "votes: 0 claims divided the 3 votes; 0.0% of votes differ" in done.out
    assert len(model.asked) == 2 + 2 * 3


def test_claims_are_made_of_relevant_documents_where_there_is_no_reference(
    karat: Karat, teach: Teach, folder: Path
) -> None:
    texts = {"d1": "Dough rises.", "d2": "Ovens are hot.", "d3": "Cats sleep."}
    records = [
        {"id": "q1", "query": "How is bread made?", "relevant": {"d1": 3, "d2": 2}},
        {"id": "q2", "query": "Is rye a grain?", "reference": "Rye is a grain."},
        {"id": "q3", "query": "Do cats fly?", "relevant": {"d3": 1}},
    ]
    (folder / "gold.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    corpus = "\n".join(json.dumps({"id": d, "text": t}) for d, t in texts.items())
    (folder / "texts.jsonl").write_text(corpus, "utf-8")

    def answer(prompt: Prompt) -> str:
        if prompt.name == "split":
            return '{"claims": [{"text": "Rye is a grain.", "importance": "vital"}]}'
        assert prompt.name == "gather"
        # The best first, and nothing that does not help to answer.
        assert prompt.user.index("Dough rises.") < prompt.user.index("Ovens are hot.")
        claims = {"Dough rises.": "vital", "Ovens are hot.": "okay"}
        rows = [{"text": t, "importance": i} for t, i in claims.items()]
        return json.dumps({"claims": rows})

    model = teach(answer)
    command = ("judge", "gold.jsonl", "--claims", "--model", "m", "-o", "claims.jsonl")
    done = karat(*command, "--corpus", "texts.jsonl")
    assert done.code == 0, done.err
    assert len(model.asked) == 2
    wanted = "1 claim from 1 reference, 2 claims from relevant documents, 1 sample"
    assert done.out.startswith(wanted)
    lines = (folder / "claims.jsonl").read_text("utf-8").splitlines()
    written = [json.loads(line) for line in lines]
    claims = {row["id"]: row.get("claims", []) for row in written}
    assert [(c["text"], c["grade"]) for c in claims["q1"]] == [
        ("Dough rises.", 1),
        ("Ovens are hot.", 0.5),
    ]
    assert {c["labelled_by"] for c in claims["q1"]} == {"judge:m"}
    assert not claims["q3"]
    # Claims that are there are kept, and cost nothing.
    (folder / "gold.jsonl").write_text("\n".join(lines), "utf-8")
    again = karat(*command, "--corpus", "texts.jsonl")
    assert again.code == 0, again.err
    assert len(model.asked) == 2
