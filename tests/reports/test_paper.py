"""Tables for papers: sound LaTeX, marks that follow verdicts, rows to compute with."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.reports.files import as_latex, paper_table

GOLD = {f"q{n}": {"a": 1, "b": 0} for n in range(30)}
GOOD = {query: ["a", "b", "y"] for query in GOLD}
FAIR = {query: ["x", "a", "y"] for query in GOLD}
POOR = {query: ["x", "y", "a"] for query in GOLD}
METRICS = ["rr", "unjudged@2"]


def grid(latex: str) -> list[list[str]]:
    """The cells of a table that is sound: braces match, rows have all columns."""
    assert latex.count("{") == latex.count("}")
    assert re.findall(r"\\(begin|end)\{(\w+)\}", latex) == [
        ("begin", "table"),
        ("begin", "tabular"),
        ("end", "tabular"),
        ("end", "table"),
    ]
    rules = [latex.index(rf"\{rule}rule") for rule in ("top", "mid", "bottom")]
    assert rules == sorted(rules)
    (shape,) = re.findall(r"\\begin\{tabular\}\{(\w+)\}", latex)
    rows = [
        re.split(r"(?<!\\)&", line.removesuffix(r" \\"))
        for line in latex.splitlines()
        if line.endswith(r"\\")
    ]
    assert {len(row) for row in rows} == {len(shape)}
    return [[cell.strip() for cell in row] for row in rows]


def test_marks_against_a_baseline_follow_verdict_and_direction() -> None:
    """Of what is not judged less is better: the good run is better by both."""
    runs = {"poor": POOR, "good": GOOD}
    found = karat.compare(FAIR, runs, gold=GOLD, metrics=METRICS)
    assert grid(found.to_latex()) == [
        ["run", "rr", r"unjudged@2"],
        ["good", r"\textbf{1.0000}$^{\uparrow}$", r"\textbf{0.0000}$^{\uparrow}$"],
        ["baseline", "0.5000", "0.5000"],
        ["poor", r"0.3333$^{\downarrow}$", r"1.0000$^{\downarrow}$"],
    ]
    (caption,) = re.findall(r"\\caption\{(.*)\}\n", found.to_latex())
    assert caption == (
        r"Mean rr, unjudged@2 of 3 runs, the best in bold. $\uparrow$ better, "
        r"$\downarrow$ worse than baseline. Paired sign-flip test of the mean "
        "difference, level 0.05; p and intervals corrected for 2 comparisons (MaxT); "
        "n = 30; gold: gold."
    )
    assert "| good | **1.0000 ↑** | **0.0000 ↑** |" in found.write("md")


def test_the_first_metric_orders_runs_smaller_first_where_less_is_better() -> None:
    found = karat.compare(POOR, GOOD, FAIR, gold=GOLD, metrics=["unjudged@2"])
    assert [row[1] for row in paper_table(found).rows] == [
        "0.0000 ↑",
        "0.5000 ↑",
        "1.0000",
    ]


def test_letters_name_the_runs_that_a_run_is_better_than() -> None:
    runs = {"poor": POOR, "good": GOOD, "same": FAIR}
    found = karat.compare(FAIR, runs, gold=GOLD, metrics=METRICS, all_pairs=True)
    assert grid(found.to_latex())[1:] == [
        [
            "good (a)",
            r"\textbf{1.0000}$^{\mathrm{bcd}}$",
            r"\textbf{0.0000}$^{\mathrm{bcd}}$",
        ],
        ["baseline (b)", r"0.5000$^{\mathrm{d}}$", r"0.5000$^{\mathrm{d}}$"],
        ["same (c)", r"0.5000$^{\mathrm{d}}$", r"0.5000$^{\mathrm{d}}$"],
        ["poor (d)", "0.3333", "1.0000"],
    ]
    assert "Letters name the runs" in found.to_latex()
    assert "(Holm), intervals not adjusted" in found.to_latex()


def test_what_is_undecided_has_no_mark() -> None:
    one_lost = {**GOOD, "q0": ["x", "a"]}
    found = karat.compare(GOOD, one_lost, gold=GOLD, metrics=["rr"])
    assert found["rr"].verdict == "undecided"
    assert "$^{" not in found.to_latex().partition(r"\toprule")[2]


def test_runs_are_called_by_tags_unless_somebody_named_them(tmp_path: Path) -> None:
    for name, run in (("one", GOOD), ("two", POOR)):
        lines = [
            f"{query} Q0 {document} {rank} {-rank} tag_{name}\n"
            for query, row in run.items()
            for rank, document in enumerate(row, 1)
        ]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    paths: Any = [tmp_path / "one.run", tmp_path / "two.run"]
    tagged = karat.compare(*paths, gold=GOLD, metrics=["rr"])
    assert [row[0] for row in paper_table(tagged).rows] == ["tag_one", "tag_two"]
    assert r"tag\_one" in tagged.to_latex()
    board = karat.leaderboard({p.name: p for p in paths}, gold=GOLD, metrics=["rr"])
    assert [row[0] for row in paper_table(board).rows] == ["tag_one", "tag_two"]
    named = karat.leaderboard({"A": paths[0], "B": paths[1]}, gold=GOLD, metrics=["rr"])
    assert [row[0] for row in paper_table(named).rows] == ["A", "B"]
    # Two runs of one tag have the names of their files.
    (tmp_path / "two.run").write_text((tmp_path / "one.run").read_text())
    alike = karat.compare(*paths, gold=GOLD, metrics=["rr"])
    assert [row[0] for row in paper_table(alike).rows] == ["one", "two"]


def test_a_board_is_sorted_and_says_that_nothing_was_tested() -> None:
    runs = {r"50% of a_b & \c": POOR, "best": GOOD}
    board = karat.leaderboard(runs, gold=GOLD, metrics=["rr"])
    latex = as_latex(board)
    assert "judged" not in latex
    assert grid(latex)[1:] == [
        ["best", r"\textbf{1.0000}"],
        [r"50\% of a\_b \& \textbackslash{}c", "0.3333"],
    ]
    assert "No test was made; n = 30; gold: gold." in latex


def test_rows_to_compute_with_have_every_pair_and_metric() -> None:
    runs = {"poor": POOR, "good": GOOD}
    found = karat.compare(FAIR, runs, gold=GOLD, metrics=METRICS, all_pairs=True)
    rows = [*csv.DictReader(io.StringIO(found.write("csv")))]
    assert [*rows[0]] == [
        *("metric", "baseline", "candidate", "n", "baseline_mean", "candidate_mean"),
        *("difference", "low", "high", "p", "adjusted_p", "verdict"),
        *("wins", "ties", "losses"),
    ]
    frame = found.to_frame()
    assert len(rows) == len(frame) == 6
    for row, one in zip(rows, found.differences, strict=True):
        assert one.interval is not None
        assert (row["metric"], row["baseline"], row["candidate"]) == (
            one.metric,
            one.baseline,
            one.candidate,
        )
        assert float(row["low"]) == one.interval.low
        assert float(row["high"]) == one.interval.high
        assert float(row["adjusted_p"]) == one.adjusted_p
        assert (row["verdict"], int(row["losses"])) == (one.verdict, one.losses)
    assert frame["difference"].tolist() == [d.difference for d in found.differences]


def test_a_test_without_an_interval_leaves_its_cells_empty() -> None:
    found = karat.compare(GOOD, POOR, gold=GOLD, metrics=["rr"], test="wilcoxon")
    (row,) = csv.DictReader(io.StringIO(found.write("csv")))
    assert (row["low"], row["high"]) == ("", "")
    assert "Wilcoxon" in found.to_latex()


@pytest.mark.parametrize("count", [26, 27])
def test_many_runs_have_numbers_for_letters(count: int) -> None:
    runs = {f"run{n}": GOOD for n in range(count - 1)}
    found = karat.compare(POOR, runs, gold=GOLD, metrics=["rr"], all_pairs=True)
    last = "z" if count == 26 else "27"
    assert grid(found.to_latex())[1][1].endswith(rf"$^{{\mathrm{{{last}}}}}$")
