"""Reports: one suite over all of them, with undefined, failed and hostile cells."""

import csv
import io
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from karat import Evaluation, Leaderboard
from karat.data.intervals import Interval
from karat.data.tables import DASH, Table
from karat.extend import MetricScores, Policies, Query, UnknownNameError
from karat.reports import REPORTS
from karat.reports.terminal import track
from karat.results.evaluation import slice_table, tagged
from karat.results.leaderboard import WIDTH

Columns = dict[str, list[float | None]]
HOSTILE = "=HYPERLINK(1)|<b>\r\x1b[31m"


def evaluation(run: str = "run", **scores: list[float | None]) -> Evaluation:
    columns = {
        name: MetricScores(
            name,
            array := np.array(column, float),
            undefined=int(np.isnan(array).sum()),
        )
        for name, column in scores.items()
    }
    size = max(map(len, scores.values()), default=0)
    return Evaluation(
        run=run,
        gold="gold",
        queries=[f"q{n}" for n in range(size)],
        columns=columns,
        missing=np.zeros(size, bool),
        policies=Policies(),
        facts={"q0": Query("q0", tags=("a", "b")), "q1": Query("q1", tags=("b",))},
    )


def board(evaluations: list[Evaluation]) -> Leaderboard:
    return Leaderboard({evaluation.run: evaluation for evaluation in evaluations})


def leaderboard(evaluations: list[Evaluation], width: int | None = WIDTH) -> Table:
    return board(evaluations).summary(width)


CASES = {
    "one run": [evaluation(rr=[1.0, 0.5])],
    "several runs": [evaluation("x", rr=[1.0, 0.5]), evaluation("y", rr=[1.0, 1.0])],
    "undefined": [evaluation(rr=[None, 0.5]), evaluation("y", rr=[None, None])],
    "no queries": [evaluation(rr=[])],
    "no metrics": [evaluation()],
    "different metrics": [evaluation("x", rr=[1.0]), evaluation("y", ap=[1.0])],
    "hostile": [evaluation(HOSTILE, rr=[0.0]), evaluation("y", rr=[0.0])],
}


@pytest.mark.parametrize("name", list(REPORTS))
@pytest.mark.parametrize("case", CASES)
def test_every_report_shows_every_case(name: str, case: str) -> None:
    evaluations = CASES[case]
    tables = [leaderboard(evaluations), evaluations[0].by_tag()]
    text = REPORTS[name](board(evaluations), tables)
    assert text.endswith("\n") or (name == "jsonl" and not evaluations[0].queries)
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    assert "\x1b" not in text or name == "csv"
    assert REPORTS[name](board(evaluations), tables) == text


def test_an_unknown_report_names_the_known() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'json'"):
        REPORTS["jsn"]


def test_json_holds_one_run_or_a_list() -> None:
    assert json.loads(REPORTS["json"](board(CASES["one run"]), ()))["run"] == "run"
    several = json.loads(REPORTS["json"](board(CASES["several runs"]), ()))
    assert [saved["run"] for saved in several] == ["x", "y"]


def test_undefined_is_null_in_lines_and_empty_in_cells() -> None:
    lines = REPORTS["jsonl"](board(CASES["undefined"]), ()).splitlines()
    assert json.loads(lines[0]) == {
        "run": "run",
        "query": "q0",
        "tags": ["a", "b"],
        "missing": False,
        "status": "undefined",
        "rr": None,
    }
    table = REPORTS["csv"](board(CASES["undefined"]), ())
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["rr"] for row in rows] == ["", "0.5", "", ""]


def test_rows_say_what_was_asked_and_tell_failed_from_undefined() -> None:
    found = evaluation("run", rr=[None, None, 0.5], ap=[1.0, None, 1.0])
    column = found.columns["rr"]
    failed = {**found.columns, "rr": replace(column, failures={1: "no reply"})}
    asked = replace(found, columns=failed, facts={"q2": Query("q2", "why?")})
    rows = [*map(json.loads, REPORTS["jsonl"](board([asked]), ()).splitlines())]
    assert [row["status"] for row in rows] == ["undefined", "failed", "ok"]
    assert [row["question"] for row in rows] == [None, None, "why?"]
    assert [*rows[0]][:5] == ["run", "query", "question", "missing", "status"]


def test_a_cell_is_never_a_formula() -> None:
    text = REPORTS["csv"](board(CASES["hostile"]), ())
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["run"] for row in rows] == [f"'{HOSTILE}", "y"]


def test_the_best_run_comes_first_and_one_without_a_mean_last() -> None:
    runs: Columns = {"b": [0.5], "none": [None], "a": [0.9], "zero": [0.0]}
    table = leaderboard([evaluation(name, rr=scores) for name, scores in runs.items()])
    assert [row[0] for row in table.rows] == ["a", "b", "zero", "none"]
    assert table.columns[2:] == ["n", "undefined"]
    assert table.rows[-1][1:] == [DASH, "0/1", "1"]


def test_a_board_too_wide_is_turned() -> None:
    metrics: Columns = {f"recall@{k}": [0.5, 1.0] for k in range(1, 12)}
    runs = [evaluation(name, **metrics) for name in ("x", "y")]
    assert leaderboard(runs).columns == ["metric", "x", "y"]
    assert leaderboard(runs, None).columns[:3] == ["run", "recall@1", "recall@2"]
    turned = {row[0]: row[1:] for row in leaderboard(runs).rows}
    assert [*turned["recall@7"]] == [f"0.7500 (.110{DASH}.994)"] * 2
    assert "n" not in turned
    assert leaderboard(runs).title.startswith("2 runs against gold: 2 queries")


def test_a_board_shows_both_ends_of_an_interval() -> None:
    runs = [evaluation(name, rr=[1.0, 1.0, 0.5]) for name in ("x", "y")]
    for run in runs:
        column = run["rr"]
        object.__setattr__(column, "interval", Interval(-0.25, 1.0))
    table = leaderboard(runs)
    assert table.title.endswith("3 queries, mean (95% interval)")
    assert table.rows[0][1] == f"0.8333 (-0.250{DASH}1.000)"


def test_a_result_shows_itself_in_one_line() -> None:
    result = evaluation("x", rr=[1.0, None])
    assert repr(result) == "<Evaluation x against gold, 2 queries: rr=1.0000>"
    assert repr(result["rr"]) == "<MetricScores rr: mean=1.0000, n=1, undefined=1>"


def test_notes_common_to_all_runs_are_said_once() -> None:
    runs = CASES["several runs"]
    policies = Policies(undefined="zero")
    both = [
        Evaluation(e.run, e.gold, e.queries, e.columns, e.missing, policies)
        for e in runs
    ]
    assert leaderboard(both).notes == ["policies: undefined=zero"]
    assert leaderboard([both[0], runs[1]]).notes == ["x: policies: undefined=zero"]


def test_a_query_counts_in_each_of_its_slices() -> None:
    table = evaluation(rr=[1.0, 0.5, 0.0], ap=[None, None, 0.25]).by_tag()
    assert table.rows == [
        ["(untagged)", "0.0000", "0.2500", "1"],
        ["a", "1.0000", DASH, "1"],
        ["b", "0.7500", DASH, "2"],
    ]


def test_slices_put_runs_beside_each_other() -> None:
    one, two = evaluation("x", rr=[1.0, 0.0]), evaluation("y", rr=[0.0, 0.5])
    table = slice_table({e.run: e["rr"] for e in (one, two)}, tagged(one), title="rr")
    assert table.columns == ["tag", "x", "y", "queries"]
    assert table.rows[1] == ["b", "0.5000", "0.2500", "2"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals_and_long_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    assert list(track("abc", 3, "scoring")) == ["a", "b", "c"]
    assert stream.getvalue() == ""


def test_progress_counts_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("karat.reports.terminal._SHOW_AFTER_SECONDS", 0.0)
    for _ in track("abc", 3, "scoring"):
        while "scoring" not in stream.getvalue():
            pass
    assert "0/3" in stream.getvalue()


def test_progress_is_silent_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("karat.reports.terminal._SHOW_AFTER_SECONDS", 0.0)
    assert list(track("abc", 3, "scoring")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""
