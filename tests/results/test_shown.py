"""What a result shows of its queries, its tags and its files, to the letter."""

import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest

import karat
from karat import Evaluation
from karat.extend import (
    DataError,
    Document,
    FormatError,
    MetricScores,
    MissingExtraError,
    Query,
    Reply,
)

RUN: dict[str, Any] = {
    "q1": [Document("a", "Rye."), Document("b", "Oats.")],
    "q2": [Document("c"), Document("a", "Rye.")],
    "q4": ["z"],
}
GOLD = {"q1": {"a": 2, "c": 1}, "q2": {"a": 1}, "q3": {"a": 1}, "q5": {"x": 0}}
FACTS = {
    "q1": Query("q1", "What is rye?", tags=("grain",)),
    "q2": Query("q2", tags=("grain", "short")),
    "q5": Query("q5"),
}

DASH = "\N{EN DASH}"


def example(**options: Any) -> Evaluation:
    options = {"metrics": ["rr", "recall@1"], "queries": FACTS, "keep": 2, **options}
    return karat.evaluate(RUN, gold=GOLD, name="bm25", **options)


def test_a_row_per_query_has_all_that_is_known() -> None:
    names = ("question", "tags", "missing", "rr", "recall@1", "documents", "texts")
    rows: dict[str, tuple[Any, ...]] = {
        "q1": ("What is rye?", ["grain"], False, 1, 0.5, ["a", "b"], ["Rye.", "Oats."]),
        "q2": (None, ["grain", "short"], False, 0.5, 0, ["c", "a"], ["", "Rye."]),
        "q3": (None, [], True, 0.0, 0.0, [], []),
        "q5": (None, [], True, None, None, [], []),
    }
    assert example().per_query == [
        {"query": query, **dict(zip(names, row, strict=True))}
        for query, row in rows.items()
    ]
    plain = karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics="rr")
    assert plain.per_query == [{"query": "q", "missing": False, "rr": 1.0}]
    asked = replace(plain, facts={"q": Query("q", "Why?")})
    assert asked.per_query == [
        {"query": "q", "question": "Why?", "missing": False, "rr": 1.0}
    ]
    tags = replace(plain, facts={"q": Query("q", tags=("t",))})
    assert tags.per_query == [
        {"query": "q", "tags": ["t"], "missing": False, "rr": 1.0}
    ]


def test_means_by_tag() -> None:
    table = example().by_tag()
    assert (table.title, table.notes) == ("bm25 by tag", [])
    assert [table.columns, *table.rows] == [
        ["tag", "rr", "recall@1", "queries"],
        ["(untagged)", "0.0000", "0.0000", "2"],
        ["grain", "0.7500", "0.2500", "2"],
        ["short", "0.5000", "0.0000", "1"],
    ]
    bare = example(queries=None).by_tag()
    assert bare.rows == [["(untagged)", "0.5000", "0.1667", "4"]]
    assert bare.notes == ["no query has a tag; --queries FILE adds them"]


def test_every_score_has_a_status() -> None:
    gold = {**GOLD, "q4": {"y": 0}}
    found = karat.evaluate(RUN, gold=gold, metrics="rr")
    column = replace(found["rr"], failures={1: "no reply"})
    found = replace(found, columns={"rr": column})
    assert [found.status("rr", row) for row in range(5)] == [
        *("ok", "failed", "missing", "missing", "undefined")
    ]


def test_the_table_of_a_run_counts_what_is_left_out() -> None:
    table = example(metrics=["rr", "judged@2"]).summary()
    assert table.title == "bm25 against gold: 4 queries (2 missing), matched by id"
    assert [table.columns, *table.rows] == [
        ["metric", "mean", "95% interval", "n", "undefined"],
        ["rr", "0.5000", "0.0662 .. 0.9338", "3/4", "1"],
        ["judged@2", "0.5000", "0.0779 .. 0.9221", "2/4", "2"],
    ]
    assert table.notes == [
        "extra: 1 query of the run has no gold and was ignored (for example q4)",
        "missing: 2 gold queries are not in the run and score 0 (for example q3, q5)",
    ]
    skipped = example(metrics="rr", missing="skip")
    assert skipped.summary().title == (
        "bm25 against gold: 2 of 4 queries (2 missing), matched by id"
    )
    _, missing, policies = skipped.summary().notes
    assert missing.startswith("missing: 2 gold queries are not in the run and are left")
    assert policies == "policies: missing=skip"
    assert repr(example(metrics="rr")) == (
        "<Evaluation bm25 against gold, 4 queries: rr=0.5000>"
    )
    assert repr(skipped["rr"]) == "<MetricScores rr: mean=0.7500, n=2, undefined=0>"


def test_a_board_has_a_row_per_run_or_per_metric() -> None:
    other = {"q1": ["b", "a"], "q2": ["a"], "q3": ["a"], "q5": ["x"]}
    runs = {"one": RUN, "two": other}
    board = karat.leaderboard(runs, gold=GOLD, metrics=["hit@1", "rr"])
    table = board.summary()
    assert table.title == (
        "2 runs against gold: 3 of 4 queries (1 undefined), mean (95% interval)"
    )
    assert [row[0] for row in table.rows] == ["two", "one"]
    assert table.columns == ["run", "hit@1", "rr", "judged@1", "missing"]
    assert [row[-1] for row in table.rows] == ["0", "2"]
    assert table.rows[1][1] == "0.3333 (.056\u2013.792)"
    assert table.notes == [
        "extra: queries of the run have no gold and were ignored: one 1",
        "missing: gold queries are not in the run and score 0: one 2",
    ]
    narrow = board.summary(table.width - 1)
    assert narrow.columns == ["metric", "two", "one"]
    assert [row[0] for row in narrow.rows] == ["hit@1", "rr", "judged@1", "missing"]
    assert board.summary(10) == table == board.summary(None)
    assert repr(board) == "<Leaderboard of one, two>"
    many = karat.Leaderboard({str(n): board["one"] for n in range(11)})
    assert repr(many) == "<Leaderboard of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...>"


def test_a_mean_over_fewer_queries_says_so_on_a_board() -> None:
    gold = {f"q{n}": {"a": 1} if n else {"a": 0} for n in range(3)}
    runs = {name: {query: ["a", "b"] for query in gold} for name in ("x", "y")}
    metrics = ["rr", "precision@1", "ap", "judged@1"]
    table = karat.leaderboard(runs, gold=gold, metrics=metrics).summary(None)
    for row in table.rows:
        assert ["n" in cell for cell in row[1:5]] == [False, True, False, False]
        assert row[2].endswith(", n 3")


def test_parts_are_merged_in_their_order() -> None:
    def part(*names: str, **options: Any) -> Evaluation:
        samples = [
            {"id": q, "k": k, "retrieved": ["b", "a"], "relevant": ["a"], "answers": a}
            for q, k, a in (("q1", 1, ["x"]), ("q2", 2, ["y"]), ("q3", 2, ["z"]))
            if q in names
        ]
        return karat.evaluate(samples, metrics="recall@k", keep=1, **options)

    whole, parts = part("q1", "q2", "q3"), [part("q1", "q2"), part("q3")]
    merged = Evaluation.merge(parts)
    assert merged == whole
    assert merged["recall@k"].cutoffs == (1, 2)
    assert merged.digests == whole.digests
    assert merged.score("recall@k").scores.tolist() == [0, 1, 1]
    columns = [
        replace(one["recall@k"], failures={0: why})
        for one, why in zip(parts, ("first", "second"), strict=True)
    ]
    failed = Evaluation.merge(
        replace(one, columns={"recall@k": column})
        for one, column in zip(parts, columns, strict=True)
    )
    assert failed["recall@k"].failures == {0: "first", 2: "second"}


def test_scores_have_defaults_that_say_nothing() -> None:
    column = MetricScores("rr", np.array([1.0, 0.5]))
    assert (column.undefined, column.failed, column.n, column.mean) == (0, 0, 2, 0.75)
    assert (column.bounds, column.binary, column.depth) == ((0.0, 1.0), False, None)


def test_an_undefined_score_is_refused_where_asked() -> None:
    with pytest.raises(DataError, match="rr is undefined: nothing relevant to find"):
        example(metrics="rr", undefined="error")
    zero = example(metrics="rr", undefined="zero")
    assert zero["rr"].scores.tolist() == [1, 0.5, 0, 0]
    assert zero["rr"].undefined == 1


@pytest.mark.parametrize("end", ["json", "md", "txt"])
def test_a_diagnosis_is_written_as_its_name_says(end: str, tmp_path: Path) -> None:
    found = karat.diagnose({"q": ["b", "a"]}, gold={"q": ["a"]}, k=1)
    found.save(tmp_path / "found.json")
    assert karat.Diagnosis.load(tmp_path / "found.json") == found
    with pytest.raises(FormatError, match="not a saved comparison"):
        karat.Comparison.load(tmp_path / "found.json")
    text = found.write(end)
    assert text.endswith("\n")
    if end == "json":
        assert text == (tmp_path / "found.json").read_text("utf-8")
    elif end == "md":
        assert text.startswith("| ") or "| ---" in text
    else:
        assert text == f"{found}\n"


def test_the_first_of_few_grades_may_mean_no() -> None:
    def kinds(grades: dict[str, float], **options: Any) -> set[str]:
        result = karat.evaluate({"q": ["a"]}, gold={"q": grades}, **options)
        return {notice.kind for notice in result.warnings}

    assert "grades" in kinds({"a": 1, "b": 4})
    assert "grades" in kinds({"a": 0.4, "b": 0.6})
    assert "grades" not in kinds({"a": 1, "b": 3})
    assert "grades" not in kinds({"a": 0, "b": 4})
    assert "grades" not in kinds({"a": 0.5, "b": 0.6})
    assert "grades" not in kinds({"a": 0.4, "b": 0.5})
    assert "grades" not in kinds({"a": 1, "b": 4}, threshold=2)


def test_lists_that_are_shorter_than_a_metric_reads_are_told() -> None:
    def depths(short: int, deep: int, metric: str = "rr@5") -> list[str]:
        sizes = [3] * short + [5] * deep
        run = {f"q{n}": [*"axyzw"][:size] for n, size in enumerate(sizes)}
        result = karat.evaluate(run, gold={q: ["a"] for q in run}, metrics=metric)
        return [str(one) for one in result.warnings if one.kind == "depth"]

    text = "queries hold fewer documents than rr@5 reads, nearly all 3 or less"
    assert depths(20, 0) == [f"20 {text}"]
    assert depths(19, 1) == [f"19 {text}"]
    assert depths(19, 0) == depths(18, 2) == depths(20, 0, "rr@3") == []


def test_little_that_is_found_is_told() -> None:
    def found(relevant: int, hits: int) -> list[str]:
        gold = {f"q{n}": [f"d{n}"] for n in range(relevant)}
        run = {q: row if n < hits else ["x"] for n, (q, row) in enumerate(gold.items())}
        result = karat.evaluate(run, gold=gold, metrics="rr", force=True)
        return [str(one) for one in result.warnings if one.kind == "found"]

    (told,) = found(20, 1)
    assert told.startswith("1 relevant item found, of 20 in all; do run and gold use")
    assert found(19, 1) == found(20, 2) == []
    texts = [{"id": "q", "retrieved": ["Rye."], "passages": ["Oats."]}]
    (notice,) = karat.evaluate(texts, metrics="rr", match="exact").warnings
    assert str(notice) == ("1 gold item, and exact did not find it in the whole run")


def test_the_share_of_good_questions_is_told() -> None:
    def checked(**metadata: Any) -> list[str]:
        facts = {"q": Query("q", metadata=metadata)}
        gold = {"q": ["a"]}
        result = karat.evaluate({"q": ["a"]}, gold=gold, metrics="rr", queries=facts)
        return [str(one) for one in result.warnings if one.kind == "checked"]

    said = "checked by people: 80% are good, 95% interval"
    (notice,) = checked(checked_good=8, checked_size=10)
    assert notice == f"10 questions were {said} 44% to 97%"
    assert checked(checked_good=11, checked_size=10) == []
    assert checked(checked_good=0, checked_size=10)[0].startswith("10 questions were")
    (one,) = checked(checked="bad")
    assert one.startswith("1 question was checked by people: 0% are good")


def test_a_profile_has_its_own_defaults_where_none_is_spelled() -> None:
    run, gold = {"q": ["a", "b", "c"]}, {"q": {"c": 1}}
    names = ["rbp", "rbp(p=0.8)", "rbp(0.8)", "rbp(p=0.5)"]
    theirs = karat.evaluate(run, gold=gold, metrics=names, profile="trec_eval-10")
    assert [*theirs] == ["rbp", "rbp(p=0.8)", "rbp(p=0.5)"]
    assert [*theirs.means.values()] == pytest.approx([0.081, 0.128, 0.125])
    plain = karat.evaluate(run, gold=gold, metrics="rbp")
    assert plain.means == {"rbp": pytest.approx(0.128)}


def test_boards_say_how_many_queries_and_which_gold() -> None:
    def scored(name: str, gold: str, size: int) -> Evaluation:
        labels = {f"q{n}": ["a"] for n in range(size)}
        result = karat.evaluate(labels, gold=labels, metrics="rr", name=name)
        return replace(result, gold=gold)

    def title(*runs: tuple[str, str, int]) -> str:
        board = karat.Leaderboard({run[0]: scored(*run) for run in runs})
        return board.summary().title

    mean = "mean (95% interval)"
    same = title(("a", "gold", 2), ("b", "gold", 2))
    assert same == f"2 runs against gold: 2 queries, {mean}"
    assert title(("a", "gold", 1), ("b", "gold", 1)) == (
        f"2 runs against gold: 1 query, {mean}"
    )
    # Each against its own: then nothing is to be said of gold.
    apart = title(("a", "x", 3), ("b", "y", 2))
    assert apart == f"2 runs: 2{DASH}3 queries, {mean}"
    shared = title(("a", "x", 2), ("b", "y", 2), ("c", "y", 2))
    assert shared.startswith("3 runs against x, y: ")


def test_runs_without_a_mean_stand_last() -> None:
    gold = {"q1": ["a"], "q2": ["b"]}
    runs: dict[str, Any] = {"low": {"q1": ["x", "a"], "q2": ["b"]}, "top": gold}
    scored = {
        name: karat.evaluate(run, gold=gold, metrics=["rr", "ap"], name=name)
        for name, run in runs.items()
    }
    undefined = {"q1": {"a": 0}}
    none = karat.evaluate({"q1": ["a"]}, gold=undefined, metrics="rr", name="none")
    board = karat.Leaderboard({"none": none, **scored})
    assert [one.run for one in board.ranked()] == ["top", "low", "none"]
    # A run that was not scored by a metric has no mean either.
    assert [one.run for one in board.ranked("ap")] == ["top", "low", "none"]
    assert board.metrics == ["rr", "ap"]
    assert [row[2] for row in board.summary(None).rows][-1] == DASH
    assert board.leading == "rr"


def test_a_board_of_one_run_is_its_table_and_its_json() -> None:
    board = karat.leaderboard({"bm25": RUN}, gold=GOLD, metrics="rr")
    noted = karat.Leaderboard(dict(board), notes=["mind the gap"])
    table = board["bm25"].summary()
    assert noted.summary() == replace(table, notes=[*table.notes, "mind the gap"])
    assert board.to_json() == board["bm25"].to_json()
    two = karat.Leaderboard({"a": board["bm25"], "b": board["bm25"]}, notes=["both"])
    assert two.to_json() == f"[{board.to_json()},\n{board.to_json()}]"
    assert two.summary().notes[-1] == "both"


def test_texts_can_be_left_out() -> None:
    samples = [
        {
            "id": "q",
            "query": "Who bakes?",
            "tags": ["bread"],
            "metadata": {"page": "secret"},
            "retrieved": [{"id": "a", "text": "The baker.", "metadata": {"x": "y"}}],
            "relevant": ["a"],
        }
    ]
    result = karat.evaluate(samples, metrics="rr", keep=1)
    for bare in (
        result.without_texts(),
        karat.Leaderboard({"a": result}).without_texts()["a"],
    ):
        assert bare.facts["q"] == Query("q", tags=("bread",))
        assert bare.kept["q"] == (Document("a"),)
        assert bare.digests == result.digests
        assert bare.means == result.means


def test_tables_of_pandas_have_a_row_per_query_run_or_difference() -> None:
    pytest.importorskip("pandas")
    result = example()
    assert result.to_frame().loc["q2", "rr"] == 0.5
    board = karat.leaderboard({"bm25": RUN, "other": RUN}, gold=GOLD, metrics="rr")
    assert board.to_frame().to_dict("index") == {
        name: board[name].means for name in board
    }
    compared = karat.compare(RUN, RUN, gold=GOLD, metrics=["rr", "ap"])
    assert [*compared.to_frame()["metric"]] == ["rr", "ap"]


def test_pandas_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"to_frame\(\) needs"):
        example().to_frame()


def test_a_page_opens_in_a_notebook_or_in_the_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    result = example()
    shell = SimpleNamespace()
    modules: dict[str, SimpleNamespace] = {
        "IPython": SimpleNamespace(get_ipython=lambda: shell),
        "marimo": SimpleNamespace(running_in_notebook=lambda: False),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    # Neither a terminal nor a script is a notebook.
    assert result.show() is None
    (place,) = opened
    path = Path(url2pathname(urlsplit(place).path))
    assert path.read_text("utf-8") == result.to_html()
    path.unlink()
    shell.kernel = object()
    below = result.show()
    assert below is not None
    assert below._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    del shell.kernel
    modules["marimo"].running_in_notebook = lambda: True
    assert result.show() is not None
    assert len(opened) == 1


def test_what_a_result_rests_on_is_told() -> None:
    samples = [{"id": "q", "k": 1, "retrieved": ["b", "a"], "gold_docs": ["a"]}]
    mapping = {"relevant": "gold_docs"}
    result = karat.evaluate(samples, metrics="recall@k", mapping=mapping)
    assert result.remarks() == [
        "recall@k used k = 1",
        "fields read as: relevant=gold_docs",
    ]
    usage = replace(Reply("").usage, prompt_tokens=10, replies=1)
    judged = replace(result.matches["id"], usage={0: usage})
    result = replace(result, matches={"id": judged})
    assert result.traces[0].usage == result.usage == usage
    assert "judged with 1 reply of 10 tokens, paid now or earlier" in result.remarks()
