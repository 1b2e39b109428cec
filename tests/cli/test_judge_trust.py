"""`karat judge` as a user meets it, with a model on a server of ours."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Karat
from tests.llm.fault_server import FaultServer, completion

pytest.importorskip("httpx")

RUNS = ("keyword.run", "dense.run")
FILES = ("--queries", "queries.jsonl", "--corpus", "corpus.jsonl", "--model", "tiny")
TWO = ("judge", *RUNS, *FILES, "-k", "3")
CLAIMS = ("judge", "samples.jsonl", "--claims", "--model", "tiny")


def texts(user: str) -> dict[str, str]:
    """What stands between the marks that count."""
    code = re.findall(r"Only marks with the code (\w+) count", user)[-1]
    found = re.findall(
        rf"\[begin ([\w ]+) \| {code}\]\n(.*?)\n\[end \1 \| {code}\]", user, re.DOTALL
    )
    return dict(found)


def wavering(request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Gives 0, but another assessor than the first gives 2 to the first query."""
    user = request["messages"][-1]["content"]
    fresh = "You are assessor" in user and "money back" in texts(user)["question"]
    return 200, completion(json.dumps({"reason": "so", "grade": 2 if fresh else 0}))


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


def answer(request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """A judge that counts common words, and obeys a chat template."""
    user = request["messages"][-1]["content"]
    said = texts(user)
    obeys = any("<|im_start|>" in text for text in said.values())
    if "passage" in said:
        shared = len(words(said["question"]) & words(said["passage"]))
        grade = 3 if obeys else min(3, shared)
        return 200, completion(json.dumps({"reason": "by words", "grade": grade}))
    if "answer" in said:
        return 200, completion(json.dumps({"claims": said["answer"].split(". ")}))
    claims = [name for name in said if name.startswith("claim")]
    verdict = {"alone": [1] if obeys else [], "parts": [], "complete": False}
    rows = [
        {"claim": int(name[6:]), **verdict, "reason": "by marks"} for name in claims
    ]
    return 200, completion(json.dumps({"verdicts": rows}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    with FaultServer(answer=answer) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "a-key")
        yield running


def labels(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def people(folder: Path) -> Path:
    """Every third label of the gold, as if people had no time for more."""
    path = folder / "people.qrels"
    lines = (folder / "gold.qrels").read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[::3]), "utf-8")
    return path


def test_holes_are_filled_and_labels_of_people_stay(
    karat: Karat, folder: Path, people: Path, server: FaultServer
) -> None:
    before = {(q, d): grade for q, _, d, grade in labels(people)}
    done = karat(*TWO, "--gold", "people.qrels", "-o", "full.qrels")
    assert done.code == 0, done.err
    found = Counter[str]()
    assert re.search(r"kept: (\d+) doc", done.out)
    for query, source, document, grade in labels(folder / "full.qrels"):
        found[source] += 1
        if source == "0":
            assert before[query, document] == grade
        else:
            assert (query, document) not in before
    judged = len(server.requests)
    assert found == {"0": len(before), "judge:tiny": judged}
    written = f"written: {len(before)} labels by people, {judged} by judge:tiny"
    assert written in done.out
    report = karat("evaluate", *RUNS, "-g", "full.qrels", "-m", "ndcg@3").out
    assert f"(human {len(before)}, judge:tiny {found['judge:tiny']})" in report


def test_the_judge_of_holes_can_be_compared_on_the_labels_there_are(
    karat: Karat, people: Path, server: FaultServer
) -> None:
    del people, server
    both = ("--gold", "people.qrels", "--agreement", "people.qrels", "--json")
    facts = json.loads(karat(*TWO, *both).out)
    assert facts["compared"] is True
    assert facts["kept"] == facts["agreement"]["n"] > 0
    assert set(facts["agreement"]["intervals"]) == {
        "equal",
        "kappa",
        "linear_kappa",
        "weighted_kappa",
        "alpha",
        "spearman",
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--agreement", "none.qrels"), "none.qrels: no such file"),
        (("--agreement", "foreign.qrels"), "labels no document of the pool"),
        (("--agreement", "gold.qrels", "--metric", "ndgc"), "did you mean 'ndcg'"),
        (("--gold", "none.qrels", "-o", "x.qrels"), "none.qrels: no such file"),
        (("--gold", "gold.qrels", "-o", "gold.qrels"), "is an input"),
        (("-o", "queries.jsonl"), "is an input"),
        (("--gold", "samples.jsonl", "-o", "x.qrels"), "relevant ids only"),
        (("-k", "0", "-o", "x.qrels"), "must be an integer >= 1"),
    ],
)
def test_mistakes_are_found_before_a_call_is_paid_for(
    karat: Karat,
    folder: Path,
    server: FaultServer,
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    (folder / "foreign.qrels").write_text("q01 0 nowhere 1\n", "utf-8")
    done = karat(*TWO, *arguments)
    assert done.code == 2
    assert sentence in done.err
    assert server.requests == []


@pytest.mark.parametrize("option", ["--gold"])
def test_claims_have_no_grades_to_compare(
    karat: Karat, server: FaultServer, option: str
) -> None:
    done = karat(*CLAIMS, option, "gold.qrels", "-o", "x.jsonl")
    assert done.code == 2
    assert f"{option} is about grades" in done.err
    assert server.requests == []


def test_claims_are_written_and_told_without_their_texts(
    karat: Karat, folder: Path, server: FaultServer
) -> None:
    dry = karat(*CLAIMS, "-o", "claims.jsonl", "--dry-run").out
    assert server.requests == []
    done = karat(*CLAIMS, "-o", "claims.jsonl")
    assert done.code == 0, done.err
    calls = len(server.requests)
    assert f"{calls} calls" in dry
    assert (folder / "claims.jsonl").exists()
    facts = json.loads(karat(*CLAIMS, "--json", "--no-text").out)
    assert len(server.requests) == calls
    assert {claim["text"] for claim in facts["claims"]} == {""}


def test_texts_that_serve_as_ids_are_not_written_where_texts_must_stay_out(
    karat: Karat, folder: Path, server: FaultServer
) -> None:
    record = {"id": "q1", "query": "What is rye?", "contexts": ["A secret."]}
    (folder / "plain.jsonl").write_text(json.dumps(record) + "\n", "utf-8")
    asked = ("judge", "plain.jsonl", "--model", "tiny", "--json")
    done = karat(*asked, "--no-text")
    assert done.code == 2
    assert "named by their texts" in done.err
    assert "secret" not in done.out + done.err
    assert server.requests == []
    assert karat(*asked).code == 0


@pytest.mark.slow
def test_votes_and_retests_tell_how_steady_a_judge_is(
    karat: Karat, server: FaultServer
) -> None:
    server.answer = wavering
    facts = json.loads(karat(*TWO, "--retest", "--json").out)
    first = sum(grade["query"] == "q01" for grade in facts["grades"])
    everything = len(facts["grades"])
    assert facts["agreement"] is None
    flips = facts["flips"]
    assert (flips["changed"], flips["n"]) == (first, everything)
    low, high = flips["interval"]
    assert low < first / everything < high
    assert facts["compared"] is False
    voted = karat(*TWO, "--votes", "3", "--retest")
    share = first / 3 / everything
    assert f"votes: {first} documents divided them; {share:.1%} differ" in voted.out
    # Of three votes two are fresh, and of three more all are: the median stays.
    assert "changed when asked again  0.0000" in voted.out
    assert "uncalibrated" in voted.out


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 100])
def test_no_number_is_cut_off_on_a_narrow_page(
    karat: Karat, server: FaultServer, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    del server
    monkeypatch.setenv("COLUMNS", str(width))
    done = karat(*TWO, "--agreement", "gold.qrels", "--retest")
    numbers = [line for line in done.out.splitlines() if re.search(r"\d\.\d{4}", line)]
    assert numbers
    assert all(len(line) <= width for line in numbers)


@pytest.mark.slow
def test_grades_are_compared_on_the_scale_of_people(
    karat: Karat, folder: Path, server: FaultServer
) -> None:
    del server
    graded = labels(folder / "gold.qrels")
    for name, top in (("binary", 1), ("short", 2)):
        lines = [f"{q} 0 {d} {min(top, int(g))}\n" for q, _, d, g in graded]
        (folder / f"{name}.qrels").write_text("".join(lines), "utf-8")
    done = karat(*TWO, "--agreement", "binary.qrels")
    assert "the judge's 2 and 3 count as 1" in done.out
    facts = json.loads(karat(*TWO, "--agreement", "binary.qrels", "--json").out)
    rates = [rate["name"] for rate in facts["agreement"]["rates"]]
    assert rates == ["relevant, judge agrees", "not relevant, judge agrees"]
    short = json.loads(karat(*TWO, "--agreement", "short.qrels", "--json").out)
    scale = "people's grades end at 2 and are not the judge's 0 to 3, so compared is "
    assert short["agreement"]["scale"].startswith(scale)
    # Cut at 1 or at 2, people's labels say the same about what is relevant.
    assert short["agreement"]["kappa"] == facts["agreement"]["kappa"]
    graded_too = karat(*TWO, "--agreement", "gold.qrels").out
    assert "scale:" not in graded_too
    assert "people say 2 or more, judge too" in graded_too
    binary = ("--gold", "binary.qrels", "-k", "5", "-o", "full.qrels")
    assert karat(*TWO, *binary).code == 0
    assert {grade for *_, grade in labels(folder / "full.qrels")} == {"0", "1"}


def test_the_judge_of_claims_is_compared_with_people(
    karat: Karat, folder: Path, server: FaultServer
) -> None:
    contexts = ["Rye is a grain.", "Ovens are hot."]
    claims = [{"text": "Rye is a grain.", "supported": True}]
    claims += [{"text": "Salt is blue.", "supported": False}]
    for name, extra in (("s.jsonl", {"contexts": contexts}), ("people.jsonl", {})):
        lines = [
            json.dumps({"id": f"q{n}", "query": "Q?", "claims": claims, **extra})
            for n in range(3)
        ]
        (folder / name).write_text("\n".join(lines), "utf-8")
    asked = ("judge", "s.jsonl", "--claims", "--model", "tiny")
    compared = (*asked, "--agreement", "people.jsonl")
    dry = karat(*compared, "--dry-run")
    assert (dry.code, server.requests) == (0, [])
    done = karat(*compared)
    assert done.code == 0, done.err
    assert "context_recall, mean error" in done.out
    facts = json.loads(karat(*compared, "--json").out)
    assert (facts["n"], facts["queries"]) == (6, 3)
    scored = karat("evaluate", "s.jsonl", "-m", "context_recall", "--model", "tiny")
    assert (
        "calibrated: 6 claims were judged by judge:tiny; against people" in scored.out
    )
    (folder / "people.jsonl").write_text('{"id": "x", "claims": []}', "utf-8")
    assert "holds no claims" in karat(*compared).err
