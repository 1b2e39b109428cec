"""What pages and calls say of a store, and that labels there do what they say."""

import gzip
import html
import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import karat
from tests.web.conftest import NEW, OLD, Served, result_of

LABEL = {"query": "q1", "document": "b", "grade": 3, "why": "it says so"}


def test_a_label_scores_every_run_again(serve: Callable[[], Served]) -> None:
    served = serve()
    done = served.ask("label", "POST", "/api/p/help/labels", json=LABEL).json()
    gold = {query: {"a": 1} for query in OLD} | {"q1": {"a": 1, "b": 3}}
    for number, rankings in enumerate((OLD, NEW), 1):
        fresh = karat.evaluate(rankings, gold, metrics=["ndcg@10", "rr@10"])
        back = served.ask("read", "GET", f"/api/p/help/runs/{number}").json()
        means = {name: one["mean"] for name, one in back["metrics"].items()}
        assert means == fresh.means
        moved = [c for c in done["changes"] if c["run"] == number]
        assert {c["metric"]: c["after"] for c in moved}.items() <= fresh.means.items()
    assert "ndcg@10 of 2 runs changed, new 0." in done["message"]
    said = served.ask("read", "GET", "/p/help/q/q1").text
    assert "it says so" in said
    address = f"/api/p/help/labels/{done['labels'][0]}"
    assert served.ask("bo", "DELETE", address).status_code == 404
    assert served.ask("label", "DELETE", address).status_code == 200
    listed = served.ask("read", "GET", "/api/p/help/runs").json()["runs"]
    before = karat.evaluate(NEW, {q: ["a"] for q in NEW}, metrics=["ndcg@10", "rr@10"])
    assert listed[1]["means"] == before.means


def test_labels_are_given_in_the_name_of_the_token(
    serve: Callable[[], Served],
) -> None:
    served = serve()
    forged = {**LABEL, "who": "ann"}
    for role in ("label", "admin"):
        served.ask(role, "POST", "/api/p/help/labels", json=forged)
    facts = served.ask("read", "GET", "/api/p/help/queries/q1").json()
    assert [label["who"] for label in facts["labels"]] == ["label", "ann"]


def test_the_same_run_is_stored_once(serve: Callable[[], Served]) -> None:
    served = serve()
    body = result_of("third", NEW).to_json().encode()
    address = "/api/p/fresh/runs?commit=a1&branch=main"
    first = served.ask("push", "POST", address, content=body)
    packed = {"content-encoding": "gzip"}
    again = served.ask(
        "push", "POST", address, content=gzip.compress(body), headers=packed
    )
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["run"] == again.json()["run"]
    assert first.json()["means"] == result_of("third", NEW).means
    (run,) = served.ask("read", "GET", "/api/p/fresh/runs?branch=main").json()["runs"]
    assert (run["commit"], run["branch"]) == ("a1", "main")
    assert served.ask("read", "GET", first.json()["page"]).status_code == 200


def test_two_people_disagree_and_settle(serve: Callable[[], Served]) -> None:
    served = serve()

    def grade(who: str, document: str, grade: object) -> None:
        label = {"query": "q1", "document": document, "grade": grade}
        done = served.ask(who, "POST", "/api/p/help/labels", json=label)
        assert done.status_code == 200

    for document, one, other in (("b", 3, 0), ("c", 1, 1), ("a", 2, 2)):
        grade("label", document, one)
        grade("bo", document, other)
    queue = served.ask("bo", "GET", "/api/p/help/labels/next").json()
    (disputed,) = queue["disagreements"]
    assert (disputed["document"], disputed["text"]) == ("b", "text of b")
    assert [(one["who"], one["grade"]) for one in disputed["said"]] == [
        ("label", 3),
        ("bo", 0),
    ]
    assert (
        "People disagree on 1 document" in served.ask("bo", "GET", "/p/help/label").text
    )
    page = served.ask("read", "GET", "/p/help/gold").text
    # By hand: with grades 3 1 2 against 0 1 2, observed weighted disagreement is 9 and
    # expected 20/3 by the margins.
    assert f"{1 - 9 / ((9 + 4 + 1 + 1 + 0 + 1 + 4 + 1 + 0) / 3):.4f}" in page
    grade("bo", "b", 3)
    settled = served.ask("bo", "GET", "/api/p/help/labels/next").json()
    assert settled["disagreements"] == []
    assert served.ask("read", "GET", "/p/help/gold").text.count("1.0000") >= 2


def test_the_queue_is_blind_and_another_for_each_person(
    serve: Callable[[], Served],
) -> None:
    served = serve()
    queues = {
        who: served.ask(who, "GET", "/api/p/help/labels/next").json()
        for who in ("label", "bo", "admin")
    }
    waiting = {("q1", "b"), ("q1", "c"), ("q2", "b"), ("q3", "d")}
    orders = set()
    for queue in queues.values():
        listed = tuple((one["query"], one["document"]) for one in queue["next"])
        assert {*listed} == waiting
        assert queue["waiting"] == 4
        orders.add(listed)
        for one in queue["next"]:
            assert one.keys() == {"query", "document", "text", "question"}
            assert one["text"] == f"text of {one['document']}"
    assert len(orders) > 1
    unsure = {"query": "q1", "document": "b", "grade": "can't tell"}
    served.ask("bo", "POST", "/api/p/help/labels", json=unsure)
    left = {
        who: served.ask(who, "GET", "/api/p/help/labels/next").json() for who in queues
    }
    assert [left[who]["waiting"] for who in ("label", "bo")] == [4, 3]
    short = served.ask("bo", "GET", "/api/p/help/labels/next?n=1").json()
    assert len(short["next"]) == 1


def test_any_version_of_the_gold_can_be_had(
    serve: Callable[[], Served], tmp_path: Path
) -> None:
    served = serve()
    for grade in (1, 2):
        label = {**LABEL, "grade": grade}
        served.ask("label", "POST", "/api/p/help/labels", json=label)
    for version, grades in (("1", {"a": 1}), ("2", {"a": 1, "b": 1})):
        for form in ("qrels", "jsonl"):
            answer = served.ask("read", "GET", f"/api/p/help/gold/{version}.{form}")
            path = tmp_path / f"gold.{form}"
            path.write_bytes(answer.content)
            assert karat.read_gold(path).documents["q1"] == grades
    latest = served.ask("read", "GET", "/api/p/help/gold/latest.qrels").text
    assert "q1 human:label b 2" in latest


def test_versions_of_the_gold_are_compared(serve: Callable[[], Served]) -> None:
    served = serve()
    for who, grade in (("label", 3), ("bo", 1)):
        served.ask(who, "POST", "/api/p/help/labels", json={**LABEL, "grade": grade})
    said = served.ask("read", "GET", "/api/p/help/gold/1/3").json()
    change = {"query": "q1", "item": "b", "before": None, "after": 2.0}
    assert said == {"changes": [{**change, "who": ["label", "bo"]}]}
    page = served.ask("read", "GET", "/p/help/gold").text
    assert "From version 2 to 3: 1 grade" in page
    assert "From version 0 to 3: 4 grades" in (
        served.ask("read", "GET", "/p/help/gold?earlier=0").text
    )
    for address in ("/api/p/help/gold/3/1", "/api/p/help/gold/1/x"):
        assert served.ask("read", "GET", address).status_code == 422


def test_any_two_runs_can_be_compared(serve: Callable[[], Served]) -> None:
    served = serve()
    said = served.ask("read", "GET", "/api/p/help/compare/1/2").json()
    fresh = karat.compare(result_of("old", OLD), result_of("new", NEW))
    for stored, difference in zip(said["differences"], fresh.differences, strict=True):
        assert stored["difference"] == difference.difference
        assert stored["verdict"] == difference.verdict
    page = served.ask("read", "GET", "/p/help/compare?run=2&run=1").text
    assert "new compared with old" in page
    assert 'href="/p/help/q/q3?runs=1,2"' in page


def test_a_run_that_is_named_twice_is_shown_once(serve: Callable[[], Served]) -> None:
    answer = serve().ask("read", "GET", "/api/p/help/queries/q1?runs=2,1,2")
    assert [run["run"] for run in answer.json()["runs"]] == [2, 1]


def test_each_run_stands_on_one_page(
    serve: Callable[[], Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve()
    monkeypatch.setattr("karat.web.pages.SHOWN", 1)
    for page, runs in ((0, []), (1, ["2"]), (2, ["1"]), (3, []), (9, [])):
        shown = served.ask("read", "GET", f"/p/help?page={page}").text
        assert re.findall(r'href="/p/help/runs/(\d)"', shown) == runs


def test_history_can_be_filtered(serve: Callable[[], Served]) -> None:
    served = serve()
    body = result_of("side", OLD).to_json().encode()
    served.ask("push", "POST", "/api/p/help/runs?branch=side", content=body)
    page = served.ask("read", "GET", "/p/help?branch=side&metric=rr@10").text
    assert ">side</a>" in page
    assert ">old</a>" not in page
    assert "rr@10 over 1 run, with 95% intervals" in page
    every = served.ask("read", "GET", "/p/help").text
    assert 'class="k-band' in every
    assert 'href="/p/help/compare?run=1&amp;run=2">' in every
    none = served.ask("read", "GET", "/p/help?since=2999-01-01").text
    assert "0 runs" in none
    wrong = served.ask("read", "GET", "/p/help?since=foo")
    assert wrong.status_code == 422
    assert "since takes a date, as in 2026-01-31" in wrong.text


def test_a_comparison_tells_the_kind_of_change(serve: Callable[[], Served]) -> None:
    served = serve()
    address = "/p/help/compare?run=1&run=2"
    page = served.ask("read", "GET", address).text
    assert "was not examined" not in page
    assert "Headroom" in page
    one = served.ask("read", "GET", "/p/help/compare?run=1").text
    assert "tick two runs to compare them, not 1" in one
    # With many queries it is a link away, as it takes long.
    gold = {f"q{n}": ["a"] for n in range(301)}
    for top in (["b", "a"], ["a", "b"]):
        many = karat.evaluate(dict.fromkeys(gold, top), gold, metrics="rr@5", keep=5)
        body = many.to_json().encode()
        served.ask("push", "POST", "/api/p/many/runs", content=body)
    runs = served.ask("read", "GET", "/api/p/many/runs").json()["runs"]
    old, new = (run["id"] for run in runs)
    address = f"/p/many/compare?run={old}&run={new}"
    quick = served.ask("read", "GET", address).text
    assert "was not examined" in quick
    assert f'href="{html.escape(address)}&amp;whole=yes"' in quick
    whole = served.ask("read", "GET", f"{address}&whole=yes").text
    assert "was not examined" not in whole


def test_runs_of_one_name_are_told_apart(serve: Callable[[], Served]) -> None:
    served = serve()
    body = result_of("new", OLD).to_json().encode()
    served.ask("push", "POST", "/api/p/help/runs?branch=side", content=body)
    last = served.ask("read", "GET", "/api/p/help/runs").json()["runs"][-1]["id"]
    page = served.ask("read", "GET", f"/p/help/compare?run=2&run={last}").text
    assert f'<h1 dir="auto">new (run {last}) compared with new (run 2)</h1>' in page
    query = served.ask("read", "GET", f"/p/help/q/q1?runs=1,2,{last}").text
    for name in ("old", "new (run 2)", f"new (run {last})"):
        assert f"<h3>{name}</h3>" in query


def test_only_relevant_documents_should_be_found(serve: Callable[[], Served]) -> None:
    served = serve()
    for document, grade in (("b", 0), ("c", 2)):
        label = {"query": "q1", "document": document, "grade": grade}
        served.ask("label", "POST", "/api/p/help/labels", json=label)
    page = served.ask("read", "GET", "/p/help/q/q1").text
    wanted = page.partition('id="gold"')[2].partition("</section>")[0]
    assert re.findall(r"grade \d", wanted) == ["grade 2", "grade 1"]


def test_a_query_shows_where_its_gold_stands_in_texts(tmp_path: Path) -> None:
    sample = {
        "id": "q",
        "query": "when?",
        "retrieved": [{"text": "It opens\nat nine o'clock <b>sharp</b>."}],
        "relevant": [{"text": "at nine o'clock"}],
    }
    result = karat.evaluate([sample], metrics=["recall@5"], match="span", keep=5)
    path = tmp_path / "store.db"
    with karat.history.open(path) as store:
        store.push(result)
        tokens = {"admin": store.tokens.add("admin", "admin")}
    served = Served(path, tokens)
    with served.client:
        page = served.ask("admin", "GET", "/p/default/q/q").text
    assert "It opens\n<mark>at nine o&#x27;clock</mark> &lt;b&gt;sharp" in page


def test_text_without_ids_is_labelled_by_its_text(tmp_path: Path) -> None:
    sample = {
        "id": "q",
        "query": "when?",
        "retrieved": [{"text": "at noon"}, {"text": "at nine"}],
        "relevant": [{"text": "at nine"}],
    }
    result = karat.evaluate(
        [sample], metrics=["recall@5", "rr@5"], match="span", keep=5
    )
    path = tmp_path / "store.db"
    with karat.history.open(path) as store:
        store.push(result)
        tokens = {"admin": store.tokens.add("admin", "admin")}
    served = Served(path, tokens)
    with served.client:
        queue = served.ask("admin", "GET", "/api/p/default/labels/next").json()
        assert [one["text"] for one in queue["next"]] == ["at noon"]
        label = {"query": "q", "text": "at noon", "grade": 1}
        done = served.ask("admin", "POST", "/api/p/default/labels", json=label).json()
        assert {c["metric"]: c["after"] for c in done["changes"]} == {"rr@5": 1.0}
        queue = served.ask("admin", "GET", "/api/p/default/labels/next").json()
        assert queue["next"] == []


def _karat(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "karat", "serve", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_other_addresses_take_tokens(tmp_path: Path) -> None:
    refused = _karat("s.db", "--host", "0.0.0.0", folder=tmp_path)
    assert refused.returncode == 2
    assert "no token is set: karat serve s.db --add-token NAME=ROLE" in refused.stderr
    wrong = _karat("s.db", "--add-token", "ann=lable", folder=tmp_path)
    assert (wrong.returncode, "did you mean 'label'" in wrong.stderr) == (2, True)
    assert (
        "needs a name"
        in _karat("s.db", "--add-token", "=label", folder=tmp_path).stderr
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen" in _karat("s.db", "--port", port, folder=tmp_path).stderr
    # What fails leaves no store behind.
    assert not [*tmp_path.iterdir()]
    made = _karat("s.db", "--add-token", "ann=label", folder=tmp_path)
    with karat.history.open(tmp_path / "s.db") as store:
        holder = store.tokens.find(made.stdout.strip())
    assert holder is not None
    assert (holder.name, holder.role) == ("ann", "label")


def test_an_empty_machine_is_served_with_one_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "karat", "serve", "--port", "0", "--name", "ann"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            address = server.stdout.readline().strip()
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with opener.open(address, timeout=30) as page:
                assert "Load the demo data" in page.read().decode()
                home = page.url
            assert "token" not in home
            origin = {"origin": home.rstrip("/")}
            demo = urllib.request.Request(f"{home}demo", b"", origin, method="POST")
            with opener.open(demo, timeout=30) as page:
                assert page.url == f"{home}p/demo"
                assert "ndcg@10 over 2 runs" in page.read().decode()
        finally:
            server.terminate()
        assert "is empty: the page offers the demo data" in (server.communicate()[1])


def test_runs_are_pushed_to_a_server_by_the_command(
    serve: Callable[[], Served], tmp_path: Path
) -> None:
    served = serve()
    result_of("third", NEW).save(tmp_path / "r.json")
    karat_command = [sys.executable, "-m", "karat"]
    command = [*karat_command, "serve", str(served.path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        home = server.stdout.readline().partition("/?")[0]
        push = [*karat_command, "push", "r.json", "--project", "a/b", "--to", home]
        done = subprocess.run(
            push,
            cwd=tmp_path,
            env={**os.environ, "KARAT_TOKEN": served.tokens["push"]},
            capture_output=True,
            text=True,
            check=False,
        )
        taken = _karat("s.db", "--port", home.rpartition(":")[2], folder=tmp_path)
        server.terminate()
    assert "is run 4 of a/b" in done.stdout, done.stderr
    assert taken.returncode == 2
    assert "--port 0 takes a free one" in taken.stderr
    with karat.history.open(served.path) as store:
        assert [run.name for run in store.runs("a/b")] == ["third"]


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ImportError")
    code = "import sys; sys.path[:0] = ['.']; import karat.cli as c; c.main(['serve'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'karat[web]'" in done.stderr


def test_the_queue_goes_by_how_far_a_label_moves_the_score(tmp_path: Path) -> None:
    gold = {"rich": dict.fromkeys("abcdefgh", 2), "poor": {"a": 2}, "none": {"z": 0}}
    rankings = {"rich": [*"xabc"], "poor": [*"abxy"], "none": [*"xy"]}
    metrics = ["ndcg@10"]

    def evaluated(labels: Mapping[str, Any]) -> karat.Evaluation:
        return karat.evaluate(
            rankings, labels, metrics=metrics, keep=10, undefined="zero"
        )

    before = evaluated(gold)["ndcg@10"].scores
    moves = {
        (query, document): abs(
            evaluated({**gold, query: {**labels, document: 2}})["ndcg@10"].scores
            - before
        ).sum()
        for query, labels in gold.items()
        for document in rankings[query]
        if document not in labels
    }
    path = tmp_path / "store.db"
    with karat.history.open(path) as store:
        store.push(evaluated(gold))
        tokens = {"ann": store.tokens.add("ann", "label")}
    served = Served(path, tokens)
    with served.client:
        for most in range(1, len(moves) + 1):
            address = f"/api/p/default/labels/next?n={most}"
            said = served.ask("ann", "GET", address).json()
            listed = {(one["query"], one["document"]) for one in said["next"]}
            best = sorted(moves, key=lambda key: -moves[key])[:most]
            assert listed == {*best}
            assert said["waiting"] == len(moves)
            assert said["move"] == pytest.approx(max(moves.values()) / len(gold))


def test_a_project_without_runs_has_pages(serve: Callable[[], Served]) -> None:
    served = serve()
    with karat.history.open(served.path) as store:
        served.tokens["new"] = store.tokens.add("new", "admin", "empty")
    for page, said in (("", "0 runs"), ("/label", "Nothing is left"), ("/gold", "0")):
        answer = served.ask("new", "GET", f"/p/empty{page}")
        assert answer.status_code == 200
        assert said in answer.text
