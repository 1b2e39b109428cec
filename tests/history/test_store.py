"""The history store: whatever is pushed, labelled and undone, scores are as fresh."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import karat
import karat.history
from karat import Evaluation, compare, evaluate, load
from karat.extend import Claims, DataError, Semantic, UnknownNameError, UsageError
from karat.history import Store, schema
from tests.judging.models import session_of, support

METRICS = ["ndcg@10", "recall@3", "rr", "ap", "judged@5", "gm_ap"]
QUERIES = [f"q{n}" for n in range(4)]
DOCUMENTS = [f"d{n}" for n in range(8)]
GOLD = {q: {DOCUMENTS[n]: 1 + n % 2, "far": 1} for n, q in enumerate(QUERIES)}


def result(
    run: Mapping[str, Sequence[str]], gold: Mapping[str, Any] = GOLD, **options: Any
) -> Evaluation:
    options = {"metrics": METRICS, "keep": 20, "force": True, **options}
    return evaluate(dict(run), gold=dict(gold), **options)


def label(query: str, document: str, grade: Any, who: str = "ann") -> dict[str, Any]:
    return {"query": query, "document": document, "grade": grade, "who": who}


rankings = st.dictionaries(
    st.sampled_from(QUERIES),
    st.lists(st.sampled_from(DOCUMENTS), unique=True),
    min_size=1,
)
steps = st.one_of(
    st.tuples(st.just("push"), rankings, st.sampled_from(["skip", "zero"])),
    st.tuples(
        st.just("label"),
        st.sampled_from(QUERIES),
        st.sampled_from([*DOCUMENTS, "far"]),
        st.sampled_from([0, 1, 2, 3, "can't tell"]),
        st.sampled_from(["ann", "bo", "cy"]),
    ),
    st.tuples(st.just("undo"), st.integers(0, 20)),
    st.tuples(st.just("gold"), st.sampled_from(QUERIES), st.integers(0, 3)),
)


@settings(max_examples=60)
@given(first=rankings, sequence=st.lists(steps, max_size=12))
def test_every_column_is_that_of_a_fresh_evaluation(
    first: dict[str, list[str]], sequence: list[tuple[Any, ...]]
) -> None:
    pushed: dict[int, tuple[dict[str, list[str]], str]] = {}
    given_labels: list[tuple[int, str]] = []
    with Store(":memory:") as store:
        for step in [("push", first, "skip"), *sequence]:
            if step[0] == "push":
                own = result(step[1], undefined=step[2])
                pushed[store.push(own).run] = step[1], step[2]
            elif step[0] == "label":
                (number,) = store.label([label(*step[1:])]).labels
                given_labels.append((number, step[4]))
            elif step[0] == "undo" and given_labels:
                number, who = given_labels[step[1] % len(given_labels)]
                store.undo(number, who=who)
            elif step[0] == "gold":
                corrected = {**GOLD, step[1]: {"d0": step[2], "d5": 1}}
                store.replace_gold(karat.read_gold(corrected))
        gold = store.gold()
        for run, (ranked, undefined) in pushed.items():
            fresh = evaluate(
                dict(ranked),
                gold=gold,
                metrics=METRICS,
                undefined=undefined,
                force=True,
            )
            stored = store.scores(run)
            for metric in METRICS:
                expected = {q: fresh[metric][q] for q in fresh.queries}
                scores = {q: stored[metric][q] for q in stored[metric].queries}
                assert (
                    np.array(list(scores.values())).tobytes()
                    == np.array([expected[q] for q in scores]).tobytes()
                )
                assert stored[metric].mean == pytest.approx(
                    fresh[metric].mean, nan_ok=True
                )
            assert store.evaluation(run).means == pytest.approx(
                fresh.means, nan_ok=True
            )


def test_a_label_tells_which_means_it_moved(store: Store) -> None:
    a = store.push(result({"q0": ["d3", "d0"]}, metrics=["rr"])).run
    b = store.push(result({"q0": ["d0", "d3"]}, metrics=["rr"])).run
    done = store.label([label("q0", "d3", 2)])
    assert done.changes == ((a, "rr", 0.125, 0.25),)
    assert store.undo(done.labels[0], who="ann").changes == ((a, "rr", 0.25, 0.125),)
    assert [run.means for run in store.runs()] == [{"rr": 0.125}, {"rr": 0.25}]
    assert b == 2


def test_of_several_people_the_median_counts(store: Store) -> None:
    store.push(result({"q0": ["d3"]}))
    for who, grade in (("ann", 0), ("bo", 3), ("cy", 2), ("bo", 1)):
        store.label([label("q0", "d3", grade, who)])
    assert store.gold().documents["q0"]["d3"] == 1.0
    assert store.gold(version=3).documents["q0"]["d3"] == 1.5
    assert "d3" not in store.gold(version=1).documents["q0"]
    assert [one.who for one in store.labels(query="q0")] == ["ann", "bo", "cy", "bo"]


def test_versions_of_the_gold_differ_by_what_people_and_files_said(
    store: Store,
) -> None:
    store.push(result({"q0": ["d1", "d5"], "q1": ["d1"]}))
    store.label([label("q0", "d5", 3), label("q0", "d0", 1)])
    store.label([label("q0", "d5", 1, "bo")])
    (dropped,) = store.label([label("q1", "d1", 0)]).labels
    store.undo(dropped, who="ann")
    store.replace_gold(karat.read_gold({"q1": {"d7": 2}}))
    changes = store.gold_changes(1, 6)
    assert [tuple(one) for one in changes] == [
        ("q0", "d5", None, 2.0, ("ann", "bo")),
        ("q1", "d1", 2.0, None, ("ann",)),
        ("q1", "far", 1.0, None, ()),
        ("q1", "d7", None, 2.0, ()),
    ]
    # By hand or by the whole gold of both versions, the same.
    for first, second in ((0, 6), (1, 2), (2, 4), (3, 3), (4, 5)):
        old, new = (store.gold(version=v).documents for v in (first, second))
        slow = {
            (query, item, old.get(query, {}).get(item), new.get(query, {}).get(item))
            for query in {**old, **new}
            for item in {**old.get(query, {}), **new.get(query, {})}
        }
        quick = {tuple(one[:4]) for one in store.gold_changes(first, second)}
        assert quick == {one for one in slow if one[2] != one[3]}
    for wrong in ((2, 1), (0, 9), (-1, 2)):
        with pytest.raises(UsageError, match="gold versions 0 to 6, the earlier"):
            store.gold_changes(*wrong)


def test_the_same_result_is_stored_once(store: Store) -> None:
    same = result({"q0": ["d0"]})
    assert store.push(same, commit="c1").is_new
    assert not store.push(same, commit="c1").is_new
    assert store.push(same, commit="c2").is_new
    assert [run.commit for run in store.runs()] == ["c1", "c2"]


def test_the_gold_of_the_store_counts_and_the_push_says_so(store: Store) -> None:
    store.push(result({"q0": ["d0"]}))
    other = {**GOLD, "q0": {"d1": 1}}
    pushed = store.push(result({"q0": ["d1"]}, other, metrics=["rr"]))
    assert pushed.differing == ("q0",)
    assert store.scores(pushed.run)["rr"]["q0"] == 0.0
    done = store.replace_gold(karat.read_gold(other))
    assert store.scores(pushed.run)["rr"]["q0"] == 1.0
    assert {change.run for change in done.changes} >= {pushed.run}


def test_texts_are_matched_again(store: Store, tmp_path: Path) -> None:
    samples = [
        {
            "id": "q",
            "query": "When is it open?",
            "retrieved": ["We are closed on Sundays.", "Open from nine to five."],
            "passages": ["Open from nine to five."],
        }
    ]
    own = evaluate(samples, metrics=["recall[exact]@1", "rr[exact]"])
    own.save(tmp_path / "saved.json")
    run = store.push(load(tmp_path / "saved.json")).run
    text = {"query": "q", "text": "We are closed on Sundays.", "grade": 1, "who": "bo"}
    store.label([text])
    assert store.scores(run)["rr[exact]"]["q"] == 1.0
    assert store.scores(run)["recall[exact]@1"]["q"] == 0.5


def test_what_cannot_be_scored_again_keeps_its_version_and_says_why(
    store: Store,
) -> None:
    ranked = dict.fromkeys(QUERIES, DOCUMENTS)
    shallow = result(ranked, metrics=["recall@3", "recall@8", "rr"], keep=4)
    run = store.push(shallow).run
    store.label([label("q0", "d7", 3)])
    (row,) = store.runs()
    reason = "reads deeper than the 4 documents that are stored"
    reason += "; scored by gold version 1"
    assert row.frozen == dict.fromkeys(("recall@8", "rr"), reason)
    before, after = shallow["recall@8"].scores, store.scores(run)["recall@8"].scores
    assert before.tobytes() == after.tobytes()
    assert store.scores(run)["recall@3"]["q0"] < shallow["recall@3"]["q0"]


def test_gaps_of_ranks_and_own_cutoffs_are_stored(store: Store) -> None:
    rows = [
        {"query": "q", "document": "a", "rank": 1},
        {"query": "q", "document": "b", "rank": 4},
    ]
    run = store.push(evaluate(rows, gold={"q": ["b"]}, metrics=["rr"], keep=9)).run
    store.label([label("q", "c", 0)])
    assert store.scores(run)["rr"]["q"] == 0.25
    sample = {"id": "s", "retrieved": ["a", "b", "c"], "relevant": ["c"], "k": 2}
    own = store.push(evaluate([sample], metrics=["recall@k"], keep=9)).run
    store.label([label("s", "b", 1)])
    assert store.scores(own)["recall@k"]["s"] == 0.5


def test_intervals_are_those_of_a_fresh_evaluation(store: Store) -> None:
    rankings = {q: [DOCUMENTS[n], "far", *DOCUMENTS[5:]] for n, q in enumerate(QUERIES)}
    runs = [store.push(result(dict([*rankings.items()][:n]))).run for n in (2, 3, 4)]
    store.label([label("q0", "d5", 3), label("q1", "d6", 2, "bo")])
    for queries in (None, {"q0", "q2"}, {"none"}):
        for metric in METRICS:
            shown = store.intervals(metric, [*runs, 99], queries)
            columns = {run: store.evaluation(run)[metric] for run in runs}
            assert shown == {
                run: _interval(column, queries) for run, column in columns.items()
            }
    assert store.intervals("unknown", runs) == {}


def _interval(column: Any, queries: set[str] | None) -> Any:
    some = [n for n, q in enumerate(column.queries) if queries is None or q in queries]
    part = replace(column, scores=column.scores[some])
    return part.interval if part.n else None


def test_runs_are_chosen_by_branch_time_and_tag(store: Store) -> None:
    sample = {"retrieved": ["a"], "relevant": ["a"]}
    samples = [
        {"id": "x", "tags": ["hard"], **sample},
        {"id": "y", "tags": ["easy"], **sample, "relevant": ["b"]},
    ]
    own = evaluate(samples, metrics=["rr"], keep=5)
    store.push(own, branch="main", commit="1", at="2026-01-01T00:00:00+00:00")
    store.push(own, branch="dev", commit="2", at="2026-02-01T00:00:00+00:00")
    assert [run.commit for run in store.runs(branch="dev")] == ["2"]
    assert [run.commit for run in store.runs(since="2026-01-15")] == ["2"]
    assert [run.means["rr"] for run in store.runs(tag="hard")] == [1.0, 1.0]


def test_mistakes_are_sentences(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="keeps no documents"):
        store.push(evaluate({"q": ["a"]}, {"q": ["a"]}))
    store.push(result({"q0": ["d0"]}))
    for wrong, problem in (
        (label("nope", "d0", 1), "query 'nope', which no run has"),
        (label("q0", "d0", 1, ""), "needs who gave it"),
        (label("q0", "d0", "good"), "a number or"),
        ({"query": "q0", "grade": 1, "who": "a"}, "a document or a text"),
    ):
        with pytest.raises(DataError, match=problem):
            store.label([wrong])
    (number,) = store.label([label("q0", "d0", 1)]).labels
    with pytest.raises(UsageError, match="bo gave no label"):
        store.undo(number, who="bo")
    with pytest.raises(DataError, match="holds half a character"):
        store.label([label("q0", "\ud800", 1)])
    with pytest.raises(UnknownNameError, match="project"):
        store.runs("other")
    with pytest.raises(UsageError, match="gold versions 0 to"):
        store.gold(version=99)
    (tmp_path / "no.db").write_text("no database, but long enough to be one" * 50)
    with pytest.raises(DataError, match="cannot be opened as a history store"):
        Store(tmp_path / "no.db")
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("create table a(b)")
    foreign.close()
    with pytest.raises(DataError, match="another program"):
        Store(tmp_path / "foreign.db")


def test_layouts_move_forward_with_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.db"
    with Store(path) as store:
        store.push(result({"q0": ["d0"]}))
    more = (*schema.MIGRATIONS, "create table extra(a integer)")
    monkeypatch.setattr(schema, "MIGRATIONS", more)
    with Store(path) as store:
        assert len(store.runs()) == 1
    assert (tmp_path / "history.db.layout-1").is_file()
    monkeypatch.setattr(schema, "MIGRATIONS", more[:1])
    with pytest.raises(DataError, match="has layout 2, and this karat reads up to 1"):
        Store(path)


WRITER = """
import sys
from karat.history import Store
who, path, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Store(path) as store:
    for n in range(times):
        document = f"d{n % 8}"
        label = {"query": f"q{n % 4}", "document": document, "grade": n % 3, "who": who}
        store.label([label])
        print(n, flush=True)
"""


def fresh_and_stored(store: Store, run: dict[str, list[str]]) -> None:
    """Whether every column is that of a fresh evaluation."""
    fresh = evaluate(dict(run), gold=store.gold(), metrics=METRICS, force=True)
    columns = store.scores(store.runs()[0].id)
    for metric in METRICS:
        for query in columns[metric].queries:
            one, other = columns[metric][query], fresh[metric][query]
            assert np.array(one).tobytes() == np.array(other).tobytes()


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path, run = tmp_path / "history.db", dict.fromkeys(QUERIES, DOCUMENTS)
    with Store(path) as store:
        store.push(result(run))
    code = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen([*code, who, str(path), "25"], stdout=subprocess.DEVNULL)
        for who in ("ann", "bo")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    with Store(path) as store:
        assert len(store.labels()) == 50
        fresh_and_stored(store, run)


def test_a_killed_writer_leaves_old_or_new(tmp_path: Path) -> None:
    path, run = tmp_path / "history.db", dict.fromkeys(QUERIES, DOCUMENTS)
    with Store(path) as store:
        store.push(result(run))
    for lines in (1, 2, 4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, "ann", str(path), "1000"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        seen = [writer.stdout.readline() for _ in range(lines)]
        writer.kill()
        rest = writer.stdout.read().splitlines()
        writer.wait()
        writer.stdout.close()
        with Store(path) as store:
            done = len(store.labels())
            assert done >= len(seen) + len(rest)
            fresh_and_stored(store, run)


def test_an_evaluation_comes_back_as_it_would_be_made(store: Store) -> None:
    samples = [
        {
            "id": "x",
            "query": "Why?",
            "tags": ["hard"],
            "retrieved": [{"id": "a", "text": "A.", "score": 2.5}, {"id": "b"}],
            "relevant": ["b"],
        }
    ]
    own = evaluate(samples, metrics=["rr", "ndcg@5"], keep=5, name="dense")
    back = store.evaluation(store.push(own).run)
    assert back.means == own.means
    assert back.run == "dense"
    assert back.facts["x"].text == "Why?"
    assert back.facts["x"].tags == ("hard",)
    assert back.policies == own.policies
    (first, second) = back.kept["x"]
    assert (first.id, first.text, first.score, second.id) == ("a", "A.", 2.5, "b")
    assert json.loads(back.to_json())["run"] == "dense"


def test_a_run_that_cannot_be_scored_again_shows_what_is_stored(store: Store) -> None:
    ranked = dict.fromkeys(QUERIES, DOCUMENTS)
    run = store.push(result(ranked, metrics=["recall@8"], keep=4)).run
    store.label([label("q0", "d7", 3)])
    back = store.evaluation(run)
    assert back.means == pytest.approx({"recall@8": 0.5})
    assert [one.id for one in back.kept["q0"]] == DOCUMENTS[:4]


def test_a_run_matched_by_a_function_holds_nobody_up(store: Store) -> None:
    samples = [
        {"id": q, "retrieved": [{"id": d, "text": d}], "passages": [{"text": d}]}
        for q, d in zip(QUERIES, DOCUMENTS, strict=False)
    ]
    matcher = Semantic(lambda texts: np.ones((len(texts), 2)), 0.5)
    metrics = ["recall@5", "rr[exact]"]
    run = store.push(evaluate(samples, metrics=metrics, match=matcher, keep=5)).run
    why = "matched by semantic(threshold=0.5), which is not stored; scored by gold"
    assert store.runs()[0].frozen == {"recall@5": f"{why} version 1"}
    store.label([{"query": "q0", "text": "d9", "grade": 1, "who": "ann"}])
    assert store.evaluation(run).means == {"recall@5": 1.0, "rr[exact]": 1.0}


@pytest.mark.parametrize("matcher", ["zzz", "span", "fuzzy(", "claims"])
def test_a_result_that_contradicts_itself_is_not_stored(
    store: Store, matcher: str
) -> None:
    wrong = replace(result({"q0": ["d0"]}), default_matcher=matcher)
    with pytest.raises(DataError, match="lacks the matches of"):
        store.push(wrong)
    assert store.projects() == []


def test_scores_of_some_queries_compare_like_evaluations(store: Store) -> None:
    a = store.push(result(dict.fromkeys(QUERIES, DOCUMENTS), metrics=["rr"])).run
    b = store.push(result(dict.fromkeys(QUERIES, DOCUMENTS[::-1]), metrics=["rr"])).run
    whole = compare(store.evaluation(a), store.evaluation(b))["rr"]
    light = compare(store.scores(a), store.scores(b))["rr"]
    assert (light.difference, light.p) == (whole.difference, whole.p)
    part = store.scores(a, ["q1", "q3"])
    assert part.queries == ["q1", "q3"]
    assert part["rr"].scores.tolist() == [0.5, 0.25]
    assert store.evaluation(a, "q1")["rr"].scores.tolist() == [0.5]


def test_what_a_model_judged_stays_while_the_rest_is_scored_again(
    store: Store,
) -> None:
    texts = ["One is here.", "Two is here."]
    gold = {"claims": ["Bread rises", "Salt is white"], "passages": [texts[1]]}
    samples = [{"id": "q1", "retrieved": texts, **gold}]
    judge = Claims(session_of(support({"Bread rises": [1]})))
    for metrics in (["context_recall"], ["context_recall", "rr[exact]"]):
        own = evaluate(samples, metrics=metrics, judge=judge, keep=5)
        store.push(own)
    store.label([{"query": "q1", "text": texts[0], "grade": 1, "who": "ann"}])
    first, second = store.runs()
    reason = "judged by a model; scored by gold version 1"
    assert first.frozen == second.frozen == {"context_recall": reason}
    means = [store.evaluation(run.id).means for run in (first, second)]
    assert means == [
        {"context_recall": 0.5},
        {"context_recall": 0.5, "rr[exact]": 1.0},
    ]
