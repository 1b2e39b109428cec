"""`karat compare` and `karat baseline`: what they print, write and refuse."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Karat


def test_the_command_line_compares_and_gates(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    done = karat(
        *("compare", "keyword.run", "dense.run", "-g", "gold.qrels"),
        *("-m", "ndcg@10", "--queries", "queries.jsonl", "--by-tag"),
        *("--max-drop", "ndcg@10=0.05", "-o", "out.json", "-o", "out.tex"),
        *("-o", "gates.junit.xml", "-o", "out.md", "-o", "out.csv"),
    )
    assert done.code == 0
    assert "dense.run compared with keyword.run: 39 queries" in done.out
    assert done.err.splitlines()[-1].startswith("RESULT: pass")
    assert json.loads((folder / "out.json").read_text())["kind"] == "comparison"
    assert (
        r"dense & \textbf{0.7526}$^{\uparrow}$ \\" in (folder / "out.tex").read_text()
    )
    suite = ET.fromstring((folder / "gates.junit.xml").read_text())
    assert suite.attrib["tests"] == "1"
    headline = "better on 1 (ndcg@10)"
    assert f"39 queries; {headline}" in done.out
    assert f'value="{headline}"' in (folder / "gates.junit.xml").read_text()
    assert f"karat: pass; {headline}" in (folder / "summary.md").read_text()
    back = karat(
        *("compare", "dense.run", "keyword.run", "-g", "gold.qrels", "-m", "ndcg@10"),
        *("--max-drop", "ndcg@10=0.01"),
    )
    assert back.code == 1
    assert "::error title=karat::keyword.run: ndcg@10 dropped by 0.1364 on" in back.out


def test_noise_is_allowed_where_asked_for(karat: Karat, folder: Path) -> None:
    lines = (folder / "dense.run").read_text().splitlines()
    (folder / "less.run").write_text("\n".join(lines[10:]))
    given = ("compare", "dense.run", "less.run", "-g", "gold.qrels", "-m", "rr")
    plain = karat(*given, "--max-drop", "rr=0.01")
    noisy = karat(*given, "--max-drop", "rr=0.01", "--allow-noise")
    strict = karat(*given, "--max-drop", "rr=0.01", "--allow-noise", "--strict")
    assert (plain.code, noisy.code, strict.code) == (1, 0, 3)
    why = "less.run: rr dropped by 0.0256 on 39 queries, more than 0.01: it may be"
    assert f"karat: gate failed: {why} chance (p = 1.0000); 1 query lost" in plain.err
    assert f"karat: gate inconclusive: {why}" in noisy.err
    allowed = karat(*given, "--max-drop", "rr=0.03", "--strict")
    assert (allowed.code, allowed.err) == (0, "RESULT: pass (1 of 1 gates passed)\n")
    proof = karat(*given, "--max-drop", "rr=0.03", "--require-noninferior")
    assert proof.code == 1
    assert "a drop of more than 0.03 is not ruled out (95% interval" in proof.err
    same = karat(
        *("compare", "dense.run", "dense.run", "-g", "gold.qrels", "-m", "rr"),
        *("--max-drop", "rr=0.03", "--require-noninferior"),
    )
    assert same.code == 1
    why = (
        "rr has the same score on each of 39 queries; a drop of more than 0.03 on other"
    )
    assert f"{why} queries is not ruled out (95% interval" in same.err
    tags = ("--gate-tags", "--queries", "queries.jsonl")
    tagged = karat(*given, "--max-drop", "rr=0.03", *tags)
    assert tagged.code == 1
    assert "RESULT: fail (14 of 15 gates passed)" in tagged.err


def test_tests_corrections_and_plans_are_chosen_and_named(karat: Karat) -> None:
    given = ("compare", "keyword.run", "dense.run", "-g", "gold.qrels", "-m", "rr")
    plain = karat(*given).out
    assert "paired sign-flip test of the mean difference, level 0.05; n = 39" in plain
    assert "gold: gold.qrels" in plain
    t = karat(*given, "--test", "t").out
    assert "paired t test, level 0.05; n = 39; gold: gold.qrels" in t
    ranks = karat(*given, "dense.run", "--test", "wilcoxon", "--correction", "bh").out
    assert "2 comparisons (false discovery rate), intervals not adjusted" in (
        " ".join(ranks.split())
    )
    for extra, size in ((("--plan",), "0.02"), (("--plan", "0.1"), "0.1")):
        planned = karat(*given, *extra).out
        assert planned.startswith(f"queries that would show a difference of {size}\n")
    assert karat(*given, "--test", "f").code == 2
    wrong = karat(*given, "--test", "t", "--correction", "maxt")
    assert (wrong.code, wrong.err) == (
        2,
        "karat: MaxT flips signs: use holm with the t test\n",
    )


def test_a_baseline_is_pinned(karat: Karat) -> None:
    assert karat("baseline", "show").code == 2
    karat("evaluate", "dense.run", "-g", "gold.qrels", "-m", "rr", "-o", "main.json")
    done = karat("baseline", "set", "main.json")
    assert (done.code, done.out) == (
        0,
        "pinned dense.run (40 queries) as .karat/baseline.json\n",
    )
    assert "dense.run" in karat("baseline", "show").out
    again = karat(
        *("evaluate", "dense.run", "-g", "gold.qrels", "-m", "rr"),
        *("--max-drop", "rr=0.01", "--strict"),
    )
    assert again.err.splitlines()[-1].startswith("RESULT: pass")
    assert again.code == 0


def test_a_gate_on_fewer_queries_says_so(karat: Karat, folder: Path) -> None:
    line = '{{"id": "q{}", "retrieved": ["a"], "relevant": ["a"]}}\n'
    lines = [line.format(number) for number in range(4)]
    (folder / "all.jsonl").write_text("".join(lines))
    (folder / "few.jsonl").write_text("".join(lines[:2]))
    karat("evaluate", "all.jsonl", "-m", "rr", "-o", "main.json")
    gates = (
        "--max-drop",
        "rr=0.01",
        "--max-drop",
        "rr=0.02",
        "--baseline",
        "main.json",
    )
    done = karat("evaluate", "few.jsonl", "-m", "rr", *gates)
    assert (done.code, done.err.splitlines()) == (
        0,
        [
            "karat: few.jsonl and its baseline: 2 queries only in the baseline: q2, q3",
            "RESULT: pass (2 of 2 gates passed)",
        ],
    )


@pytest.mark.parametrize(
    "option",
    [
        ["--gate-tags"],
        ["--require-noninferior"],
        ["--allow-noise"],
        ["--baseline", "main.json"],
    ],
)
def test_an_option_of_drops_needs_a_drop(karat: Karat, option: list[str]) -> None:
    run = ("evaluate", "dense.run", "-g", "gold.qrels", "--fail-under", "rr=0.1")
    done = karat(*run, *option)
    why = f"karat: {option[0]} is for --max-drop, and none was given\n"
    assert (done.code, done.out, done.err) == (2, "", why)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--strict", "--strict is for gates, and none was given"),
        ("--parts", "--parts is for a glob, in quotes, and RUN is none"),
    ],
)
def test_an_option_that_does_nothing_is_refused(
    karat: Karat, option: str, why: str
) -> None:
    done = karat("evaluate", "dense.run", "-g", "gold.qrels", option)
    assert (done.code, done.out, done.err) == (2, "", f"karat: {why}\n")


def test_a_baseline_of_other_queries_is_inconclusive(
    karat: Karat, folder: Path
) -> None:
    (folder / "other.jsonl").write_text(
        '{"id": "z", "retrieved": ["a"], "relevant": ["a"]}\n'
    )
    karat("evaluate", "other.jsonl", "-m", "rr", "-o", "main.json")
    given = ("evaluate", "dense.run", "-g", "gold.qrels", "--baseline", "main.json")
    done = karat(*given, "--max-drop", "rr=0.01")
    assert done.code == 0
    assert "karat: gate inconclusive: dense.run: " in done.err
    assert "have no query in common" in done.err
    assert karat(*given, "--max-drop", "rr=0.01", "--strict").code == 3


def test_runs_of_one_system_are_replicates(karat: Karat, folder: Path) -> None:
    for seed in ("1", "2"):
        (folder / f"dense-{seed}.run").write_text((folder / "dense.run").read_text())
    done = karat(
        *("compare", "keyword.run", "dense-1.run", "dense-2.run", "-g", "gold.qrels"),
        *("-m", "ndcg@10", "--replicates", "dense"),
    )
    assert done.code == 0
    assert "dense compared with keyword.run" in done.out
    wrong = karat("compare", "keyword.run", "dense.run", "--replicates", "x")
    assert wrong.code == 2


def test_replicates_are_averaged_query_by_query(karat: Karat, folder: Path) -> None:
    """Over the runs that have a score; a query that none has is left out."""
    first, second = "{0} Q0 a 1 2 t\n", "{0} Q0 x 1 2 t\n{0} Q0 a 2 1 t\n"
    queries = ["q1", "q2", "q3", "q4"]
    rows = {
        "old": [second.format(query) for query in queries],
        "new-1": [first.format("q1"), second.format("q2")],
        "new-2": [second.format("q1"), first.format("q2"), first.format("q3")],
        "new-3": [first.format(query) for query in queries],
    }
    for name, lines in rows.items():
        (folder / f"{name}.run").write_text("".join(lines))
    gold = "".join(f"{query} 0 a 1\n" for query in queries)
    (folder / "a.qrels").write_text(gold)
    given = ("-g", "a.qrels", "-m", "rr", "--missing", "skip")
    runs = ("old.run", "new-1.run", "new-2.run")
    done = karat(
        *("compare", *runs, *given, "--replicates", "new", "-o", "out.json"),
    )
    assert done.code == 0
    saved = json.loads((folder / "out.json").read_text())
    (one,) = saved["differences"]
    assert (saved["candidates"], one["n"], one["left_out"]) == (["new"], 3, 1)
    assert (one["baseline_mean"], one["candidate_mean"]) == (0.5, 2.5 / 3)
    assert (one["wins"], one["ties"], one["losses"]) == (3, 0, 0)
    # Runs of one system were scored alike, and for the same queries in one order.
    turned = "".join(f"{query} 0 a 1\n" for query in reversed(queries))
    (folder / "turned.qrels").write_text(turned)
    for name, how in (
        ("new-1", given),
        ("new-2", ("-g", "turned.qrels", *given[2:])),
        ("new-3", (*given[:-1], "zero")),
    ):
        karat("evaluate", f"{name}.run", *how, "-o", f"{name}.json")
    for other, said in (
        ("new-2", "are not runs of one system: they have other queries"),
        ("new-3", "were not scored in the same way: missing: skip and zero"),
    ):
        done = karat(
            *("compare", "new-1.json", "new-1.json", f"{other}.json"),
            *("--replicates", "new"),
        )
        assert done.code == 2
        assert f"new-1.json and {other}.json {said}" in done.err


def test_options_beside_saved_evaluations_are_refused_but_settings_are_not(
    karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dense", "keyword"):
        karat("evaluate", f"{name}.run", "-g", "gold.qrels", "-o", f"{name}.json")
    done = karat("compare", "dense.json", "keyword.json", "--threshold", "2")
    assert done.code == 2
    assert done.err.startswith("karat: threshold would change nothing")
    monkeypatch.setenv("KARAT_THRESHOLD", "2")
    assert karat("compare", "dense.json", "keyword.json").code == 0


def test_what_evaluate_says_of_a_run_is_said_when_it_is_compared(
    karat: Karat, folder: Path
) -> None:
    lines = (folder / "dense.run").read_text().splitlines()
    rows = [line.split() for line in lines]
    for row in rows[::2]:
        row[2] = row[2].upper()
    (folder / "half.run").write_text("\n".join(map(" ".join, rows)))
    (folder / "cut.run").write_text("\n".join(lines[:40]))
    done = karat(
        *("compare", "dense.run", "half.run", "cut.run", "-g", "gold.qrels"),
        *("-m", "rr", "-o", "out.md"),
    )
    for shown in (done.out, (folder / "out.md").read_text()):
        assert "near misses: gold ids are not in the run" in shown
        assert "in the run and score 0: cut.run 38" in " ".join(shown.split())
    assert "near misses: " in karat("diagnose", "half.run", "-g", "gold.qrels").out


def test_equal_runs_are_called_equal(karat: Karat, folder: Path) -> None:
    (folder / "same.run").write_text((folder / "dense.run").read_text())
    done = karat("compare", "dense.run", "same.run", "-g", "gold.qrels", "-m", "rr")
    assert "39 queries; equal on 1" in done.out
    assert "not enough data" not in done.out


def test_a_run_that_is_named_twice_has_a_page_too(karat: Karat, folder: Path) -> None:
    runs = ("keyword.run", "keyword.run", "dense.run")
    done = karat("compare", *runs, "-g", "gold.qrels", "-m", "rr", "-o", "out.html")
    assert done.code == 0
    assert "keyword.run (2)" in (folder / "out.html").read_text()
    assert "rr keyword.run (2)  equal" in done.out


def test_the_page_of_a_comparison_has_one_cutoff_and_says_what_is_judged(
    karat: Karat, folder: Path
) -> None:
    done = karat(
        *("compare", "keyword.run", "dense.run", "-g", "gold.qrels", "-o", "out.html")
    )
    assert done.code == 0
    page = (folder / "out.html").read_text()
    assert "judged@10 0." in page
    assert "nDCG@10" in page
    assert "nDCG@5" not in page
    assert "better on 4 (ndcg@10, recall@5, precision@5, hit@5)" in page


def test_tags_are_asked_for_as_everywhere_else(karat: Karat) -> None:
    given = ("compare", "keyword.run", "dense.run", "-g", "gold.qrels", "-m", "rr")
    plain = karat(*given, "--queries", "queries.jsonl")
    sliced = karat(*given, "--queries", "queries.jsonl", "--slice", "tag")
    before = karat(*given, "--queries", "queries.jsonl", "--by-tag")
    assert sliced.out == before.out != plain.out


@pytest.mark.parametrize("command", ["compare", "plot"])
def test_every_switch_that_changes_scores_counts(
    karat: Karat, folder: Path, command: str
) -> None:
    more = ("-o", "p.svg", "--kind", "means") if command == "plot" else ()
    given = (command, "keyword.run", "dense.run", "-g", "gold.qrels", "-m", "rr", *more)

    def seen(*switches: str) -> str:
        done = karat(*given, *switches)
        assert done.code == 0
        return (folder / "p.svg").read_text() if more else done.out

    assert len({seen(), seen("--depth", "1"), seen("--judged-only")}) == 3


@pytest.mark.parametrize("margin", ["0.01", "=0.01", "rr", "rr=much"])
def test_a_margin_names_its_metric(karat: Karat, margin: str) -> None:
    given = ("compare", "keyword.run", "dense.run", "-g", "gold.qrels")
    done = karat(*given, "--margin", margin)
    assert done.code == 2
    assert f"--margin takes METRIC=VALUE, got {margin!r}" in done.err
