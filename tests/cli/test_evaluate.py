"""`karat evaluate`: what it prints, what it writes, and what it refuses."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pytrec_eval import RelevanceEvaluator, parse_qrel, parse_run

import karat as package
from karat.data.tables import DASH
from karat.reading.format import open_source
from tests.cli.conftest import Karat


def rows(text: str) -> dict[str, list[str]]:
    """The lines of a printed table, by their first word."""
    table: dict[str, list[str]] = {}
    for cells in map(str.split, text.splitlines()):
        if cells:
            table.setdefault(cells[0], cells[1:])
    return table


def oracle(run: str, measure: str) -> float:
    """The mean that pytrec_eval gives, over the queries with something relevant."""
    with Path("gold.qrels").open() as gold, Path(run).open() as ranked:
        qrels, rankings = parse_qrel(gold), parse_run(ranked)
    scores = RelevanceEvaluator(qrels, {measure}).evaluate(rankings)
    able = [q for q, labels in qrels.items() if any(g > 0 for g in labels.values())]
    name = measure.replace(".", "_")
    return sum(scores[query][name] for query in able) / len(able)


def test_one_run_gives_a_row_per_metric(karat: Karat) -> None:
    done = karat("evaluate", "dense.run", "--gold", "gold.qrels")
    assert done.code == 0
    assert done.err == ""
    table = rows(done.out)
    assert done.out.startswith(
        "dense.run against gold.qrels: 40 queries, matched by id"
    )
    assert table["metric"] == ["mean", "95%", "interval", "n", "undefined"]
    assert table["recall@5"][0] == f"{oracle('dense.run', 'recall.5'):.4f}"
    assert table["ndcg@10"][0] == f"{oracle('dense.run', 'ndcg_cut.10'):.4f}"
    assert table["rr"][-2:] == ["39/40", "1"]
    assert "judged@10" in table


@pytest.mark.parametrize("name", ["-g", "--gold", "--qrels"])
@pytest.mark.parametrize("verb", ["evaluate", "eval"])
def test_the_gold_has_three_names_and_the_verb_two(
    karat: Karat, name: str, verb: str
) -> None:
    assert karat(verb, "dense.run", name, "gold.qrels", "-m", "rr").code == 0


def test_samples_carry_their_own_gold(karat: Karat) -> None:
    done = karat("evaluate", "samples.yaml", "-m", "recall@k")
    assert done.code == 0
    assert "recall@k used k = 3, 5" in done.out
    assert "fields read as: retrieved=actual_output, query=input" in done.out


def test_metrics_are_repeated_or_joined_with_commas(karat: Karat) -> None:
    done = karat(
        *("evaluate", "dense.run", "-g", "gold.qrels", "-m", "ndcg(gain=exp)@10,rr"),
        *("--metrics", "rbp(p=0.5, threshold=2), ap"),
    )
    asked = ["ndcg(gain=exp)@10", "rr", "rbp(p=0.5,", "ap", "judged@10"]
    assert [name for name in rows(done.out) if name in asked] == asked


def test_judged_is_shown_at_the_deepest_cutoff(karat: Karat) -> None:
    done = karat(
        "evaluate", "dense.run", "-g", "gold.qrels", "-m", "recall@5,recall@20"
    )
    assert "judged@20" in rows(done.out)


def test_judged_is_left_out_where_gold_has_relevant_items_only(karat: Karat) -> None:
    assert "judged" not in karat("evaluate", "samples.jsonl").out


def test_several_runs_give_one_leaderboard_best_first(karat: Karat) -> None:
    done = karat("evaluate", "*.run", "--gold", "gold.qrels", "-m", "recall@5,ndcg@10")
    assert done.out.startswith("2 runs against gold.qrels: 39 of 40 queries")
    table = rows(done.out)
    assert [name for name in table if name.endswith(".run")] == [
        "dense.run",
        "keyword.run",
    ]
    assert table["keyword.run"][0] == f"{oracle('keyword.run', 'recall.5'):.4f}"
    assert "(1 undefined)" in done.out
    assert table["run"] == ["recall@5", "ndcg@10", "judged@10"]


def test_a_leaderboard_with_many_metrics_has_a_row_for_each(karat: Karat) -> None:
    metrics = "hit@1,hit@3,hit@5,recall@1,recall@3,recall@5,ndcg@5,ndcg@10,ap,rr"
    done = karat("evaluate", "*.run", "--gold", "gold.qrels", "-m", metrics)
    table = rows(done.out)
    assert table["metric"] == ["dense.run", "keyword.run"]
    assert [*table][:2] == ["2", "metric"]
    assert all(len(line) <= 100 for line in done.out.splitlines())


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_gold_is_read_once_for_several_runs(
    command: str, karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def counted(path: str, *options: Any) -> Any:
        opened.append(path)
        return open_source(path, *options)

    monkeypatch.setattr("karat.reading.readers.open_source", counted)
    karat(command, "dense.run", "keyword.run", "-g", "gold.qrels", "-m", "rr")
    assert opened == ["gold.qrels", "dense.run", "keyword.run"]


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_gold_among_the_runs_is_pointed_at(command: str, karat: Karat) -> None:
    done = karat(command, "dense.run", "gold.qrels", "-m", "rr")
    said = "dense.run holds a run but no gold: is gold.qrels the gold?"
    assert (done.code, said in done.err) == (2, True)


def test_files_of_one_name_are_told_apart_by_their_folders(
    karat: Karat, folder: Path
) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "x.run").write_bytes((folder / "dense.run").read_bytes())
    done = karat("evaluate", "a/x.run", "b/x.run", "-g", "gold.qrels", "-m", "rr")
    assert {"a/x.run", "b/x.run"} <= rows(done.out).keys()


def test_a_column_splits_a_table_into_systems(karat: Karat, folder: Path) -> None:
    lines = ["system,query_id,doc_id,score"]
    for name in ("keyword", "dense"):
        text = (folder / f"{name}.run").read_text()
        cells = map(str.split, text.splitlines())
        lines += [f"{name},{c[0]},{c[2]},{c[4]}" for c in cells]
    (folder / "both.csv").write_text("\n".join(lines) + "\n")
    done = karat(
        "evaluate", "both.csv", "-g", "gold.qrels", "--by", "system", "-m", "rr"
    )
    assert rows(done.out)["dense"][0] == f"{oracle('dense.run', 'recip_rank'):.4f}"
    assert rows(done.out)["keyword"][0] == f"{oracle('keyword.run', 'recip_rank'):.4f}"
    wrong = karat("evaluate", "both.csv", "-g", "gold.qrels", "--by", "colour")
    assert wrong.code == 2
    assert "colour" in wrong.err


def test_slices_by_tag_need_the_tags(karat: Karat) -> None:
    options = ("-g", "gold.qrels", "-m", "ndcg@10", "--slice", "tag")
    done = karat("evaluate", "dense.run", *options, "--queries", "queries.jsonl")
    table = rows(done.out)
    assert table["exact"] == ["0.8510", "0.5875", "8"]
    bare = karat("evaluate", "dense.run", *options)
    assert rows(bare.out)["(untagged)"][-1] == "40"


def test_explain_works_one_query_out(karat: Karat) -> None:
    done = karat("evaluate", "dense.run", "-g", "gold.qrels", "--explain", "q02")
    assert done.out.startswith("dense.run, query q02: 20 retrieved, 2 relevant in gold")
    assert "recall@5     1.0000  2 found / 2 relevant" in done.out
    wrong = karat("evaluate", "dense.run", "-g", "gold.qrels", "--explain", "q99")
    assert (wrong.code, wrong.out) == (2, "")
    assert "unknown query 'q99'; did you mean" in wrong.err
    both = karat(
        "evaluate", "dense.run", "-g", "gold.qrels", "--explain", "q02", "--json"
    )
    assert both.code == 2


def test_explain_shows_what_was_missed_and_why_there_is_no_score(
    karat: Karat, folder: Path
) -> None:
    (folder / "x.jsonl").write_text(
        json.dumps(
            {
                "id": "q1",
                "question": "How do I return gloves?",
                "retrieved": [f"d{n}" for n in range(30)],
                "relevant": {"d3": 1, "d25": 2, "gone": 3, "bad": 0, "lost": 1},
            }
        )
    )
    done = karat("evaluate", "x.jsonl", "--explain", "q1", "-m", "recall@5,rr")
    assert done.out.startswith(
        'x.jsonl, query q1 "How do I return gloves?": 30 retrieved, 4 relevant in gold'
    )
    table = rows(done.out)
    assert table["gone"] == [DASH, "3"]
    assert table["lost"] == [DASH, "1"]
    assert "bad" not in table
    assert "... 9 more retrieved documents without a label below rank 20" in done.out
    strict = karat(
        *("evaluate", "x.jsonl", "--explain", "q1", "-m", "recall@5"),
        *("--threshold", "2"),
    )
    assert "2 relevant in gold (grade 2 or more)" in strict.out
    none = karat(
        *("evaluate", "x.jsonl", "--explain", "q1", "-m", "recall@5"),
        *("--threshold", "9"),
    )
    assert "undefined: nothing relevant in gold: no grade is 9 or more" in none.out


def test_explain_shows_the_text_of_queries_from_their_file(karat: Karat) -> None:
    options = ("-g", "gold.qrels", "--queries", "queries.jsonl", "--explain", "q02")
    done = karat("evaluate", "dense.run", *options)
    assert 'query q02 "error E-17 when signing in": 20 retrieved' in done.out


def test_json_has_no_infinity(karat: Karat) -> None:
    done = karat(
        *("evaluate", "dense.run", "-g", "gold.qrels", "-m", "num_ret"), "--json"
    )

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    saved = json.loads(done.out, parse_constant=refuse)
    assert saved["metrics"]["num_ret"]["interval"] is None
    shown = karat("evaluate", "dense.run", "-g", "gold.qrels", "-m", "num_ret")
    assert rows(shown.out)["num_ret"][:2] == ["20.0000", DASH]


def test_a_run_may_come_from_standard_input(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "dense.run").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        done = karat("evaluate", "-", "-g", "gold.qrels", "-m", "rr")
    assert done.code == 0
    assert done.out.startswith("stdin against gold.qrels")
    assert "one - at most" in karat("evaluate", "-", "-g", "-").err
    assert "one - at most" in karat("evaluate", "-", "-", "-g", "gold.qrels").err


def test_json_is_all_that_stands_on_stdout(karat: Karat) -> None:
    done = karat("evaluate", "dense.run", "-g", "gold.qrels", "--json", "-m", "rr")
    saved = json.loads(done.out)
    assert saved["schema_version"] == 3
    assert saved["metrics"]["rr"]["undefined"] == 1
    assert [q["id"] for q in saved["queries"]][:2] == ["q01", "q02"]
    several = karat("evaluate", "*.run", "-g", "gold.qrels", "--json", "-m", "rr")
    assert [s["run"] for s in json.loads(several.out)] == ["dense.run", "keyword.run"]


def test_a_saved_file_keeps_the_top_documents(karat: Karat, folder: Path) -> None:
    base = ("evaluate", "dense.run", "-g", "gold.qrels", "-m", "rr")
    counts = {}
    for name, options in {
        "all": (),
        "two": ("--keep", "2"),
        "no": ("--keep", "0"),
    }.items():
        karat(*base, *options, "-o", f"{name}.json")
        kept = package.load(folder / f"{name}.json").kept
        counts[name] = max(map(len, kept.values()), default=0)
    assert counts == {"all": 20, "two": 2, "no": 0}


def test_an_output_has_the_format_of_its_extension(karat: Karat, folder: Path) -> None:
    names = ["out.json", "out.jsonl", "out.csv", "out.md", "out.TXT"]
    options = [part for name in names for part in ("-o", name)]
    done = karat("evaluate", "*.run", "-g", "gold.qrels", "-m", "rr,recall@5", *options)
    assert done.code == 0
    assert done.err.splitlines() == [f"karat: wrote {name}" for name in names]
    dense = package.load(folder / "out.json", run="dense.run")
    assert f"{dense.means['rr']:.4f}" == f"{oracle('dense.run', 'recip_rank'):.4f}"
    lines = (folder / "out.jsonl").read_text().splitlines()
    assert len(lines) == 80
    first = {"run": "dense.run", "query": "q01", "missing": False, "rr": 1.0}
    assert json.loads(lines[0]).items() >= first.items()
    table = [*csv.DictReader((folder / "out.csv").read_text().splitlines())]
    assert (table[37]["query"], table[37]["rr"]) == ("q38", "")
    page = (folder / "out.md").read_text()
    assert "| run | rr | recall@5 | judged@5 |" in page
    assert (folder / "out.TXT").read_text() in done.out


def test_slices_are_in_written_tables_too(karat: Karat, folder: Path) -> None:
    karat("evaluate", "samples.jsonl", "-m", "rr", "--slice", "tag", "-o", "out.md")
    assert "| tag | rr | queries |" in (folder / "out.md").read_text()


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (
            "out.xlsx",
            "unknown report format 'xlsx'; known: csv, html, json, jsonl, md, tex, txt",
        ),
        ("out.jsn", "unknown report format 'jsn'; did you mean 'json'?"),
        ("out", "the extension chooses the format, one of .json"),
        ("nowhere/out.json", "nowhere/out.json: cannot be written: there is no folder"),
        ("dense.json", "dense.json: is a folder"),
        ("same.json", "same.json is an input, and would be overwritten"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_any_work(
    karat: Karat, folder: Path, target: str, sentence: str
) -> None:
    (folder / "dense.json").mkdir()
    (folder / "same.json").write_text("[]")
    runs = ("same.json",) if target == "same.json" else ("dense.run",)
    done = karat("evaluate", *runs, "-g", "gold.qrels", "-o", target)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


def test_a_passed_gate_is_said_and_a_failed_one_exits_with_1(karat: Karat) -> None:
    base = ("evaluate", "*.run", "-g", "gold.qrels", "-m", "rr")
    done = karat(*base, "--fail-under", "recall@5=0.5", "--fail-under", "rr=.6")
    assert (done.code, done.err) == (0, "RESULT: pass (4 of 4 gates passed)\n")
    done = karat(*base, "--fail-under", "recall@5=0.6", "--fail-under", "rr=0.75")
    assert done.code == 1
    assert "recall@5" in rows(done.out)["run"]
    assert done.err.splitlines() == [
        "karat: gate failed: keyword.run: recall@5 is 0.5556, below 0.6",
        "karat: gate failed: keyword.run: rr is 0.7118, below 0.75",
        "RESULT: fail (2 of 4 gates passed)",
    ]


def test_a_gate_on_a_metric_without_any_score_fails(karat: Karat, folder: Path) -> None:
    (folder / "none.qrels").write_text("q01 0 refunds-01 0\n")
    done = karat(*("evaluate", "dense.run", "-g", "none.qrels"), "--fail-under", "rr=0")
    assert done.code == 1
    assert "gate failed: dense.run: rr has no value\n" in done.err
    assert "0 of 1 gates passed" in done.out
    assert "0 of 1 gates passed" in done.err


FAILED = """\
{"id": "a", "retrieved": ["x"], "relevant": ["x"]}
{"id": "b", "failure": "no reply", "relevant": ["x"]}
"""


def test_scores_that_could_not_be_computed_exit_with_3(
    karat: Karat, folder: Path
) -> None:
    (folder / "failed.jsonl").write_text(FAILED)
    words = ("evaluate", "failed.jsonl", "-m", "rr")
    assert karat(*words).code == 3
    assert karat(*words, "--fail-under", "rr=1").code == 3
    (folder / "failed.jsonl").write_text(FAILED.replace('["x"]', '["y", "x"]', 1))
    assert karat(*words, "--fail-under", "rr=1").code == 1


def test_failed_queries_fail_beside_gates_that_pass(karat: Karat, folder: Path) -> None:
    (folder / "failed.jsonl").write_text(FAILED)
    words = ("evaluate", "failed.jsonl", "--fail-under", "rr=0.5", "-o", "g.junit.xml")
    done = karat(*words)
    assert done.code == 3
    assert done.err.splitlines() == [
        "karat: wrote g.junit.xml",
        "karat: 1 query failed, 'b': no reply",
        "RESULT: fail (1 of 2 gates passed)",
    ]
    counts = 'tests="2" failures="1" skipped="0"'
    assert counts in (folder / "g.junit.xml").read_text("utf-8")
    # As many may fail: nothing is said, and nothing fails.
    done = karat(*words, "--max-failures", "1")
    assert (done.code, "failed" in done.err) == (0, False)
    assert done.err.endswith("RESULT: pass (1 of 1 gates passed)\n")


def test_a_baseline_in_the_environment_is_for_calls_that_measure_drops(
    karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("evaluate", "dense.run", "-g", "gold.qrels")
    assert karat(*words, "-o", "main.json").code == 0
    monkeypatch.setenv("KARAT_BASELINE", "main.json")
    assert karat(*words).code == 0
    assert "1 of 1 gates" in karat(*words, "--max-drop", "rr=0").err
    assert "is for --max-drop" in karat(*words, "--baseline", "main.json").err


def test_a_baseline_of_several_runs_says_how_to_save_one(karat: Karat) -> None:
    words = ("evaluate", "dense.run", "keyword.run", "-g", "gold.qrels")
    assert karat(*words, "-o", "board.json").code == 0
    drop = ("--max-drop", "rr=0", "--baseline", "board.json")
    done = karat("evaluate", "dense.run", "-g", "gold.qrels", *drop)
    assert (done.code, "run=" in done.err) == (2, False)
    assert "board.json holds several runs" in done.err


def test_half_a_character_is_written_as_json_writes_it(
    karat: Karat, folder: Path
) -> None:
    sample = '{"id": "q\\ud800", "retrieved": ["a"], "relevant": ["a"]}'
    (folder / "odd.jsonl").write_text(sample + "\n")
    done = karat("evaluate", "odd.jsonl", "--json", "-m", "rr", "-o", "out.json")
    assert json.loads(done.out)["queries"][0]["id"] == "q\ud800"
    assert package.load("out.json").queries == ["q\ud800"]


def test_a_mapping_reaches_the_file_it_is_about(karat: Karat, folder: Path) -> None:
    (folder / "r.jsonl").write_text('{"nr": 1, "found": ["a", "b"]}\n')
    (folder / "g.jsonl").write_text('{"nr": 1, "wanted": ["b"]}\n')
    names = ("id=nr", "retrieved=found", "relevant=wanted")
    options = [part for name in names for part in ("--map", name)]
    done = karat("evaluate", "r.jsonl", "-g", "g.jsonl", "-m", "rr", *options)
    assert rows(done.out)["rr"][0] == "0.5000"
    misnamed = ("--map", "retrieved=fund", "--map", "relevant=wanted")
    wrong = karat("evaluate", "r.jsonl", "-g", "g.jsonl", *misnamed)
    assert "no record has the field 'fund'" in wrong.err
    assert karat("validate", "r.jsonl", "-g", "g.jsonl", *options).code == 0
    typo = karat("validate", "r.jsonl", "--map", "retrived=found")
    assert "unknown field 'retrived'; did you mean 'retrieved'?" in typo.err


def test_a_name_that_one_file_lacks_is_about_the_other(
    karat: Karat, folder: Path
) -> None:
    (folder / "r.jsonl").write_text('{"nr": 1, "top": ["a", "b"]}\n')
    (folder / "g.csv").write_text("query_id,doc_id,grade\n1,b,1\n")
    files = ("r.jsonl", "--gold", "g.csv")
    done = karat(
        "evaluate", *files, "--map", "id=nr", "--map", "retrieved=top", "-m", "rr"
    )
    assert rows(done.out)["rr"][0] == "0.5000"
    checked = karat("validate", *files, "--map", "id=nr", "--map", "retrieved=top")
    assert "1 of 1 relevant item is found" in checked.out
    for verb in ("evaluate", "validate"):
        wrong = karat(verb, *files, "--map", "id=number", "--map", "retrieved=top")
        assert wrong.code == 2
        assert "r.jsonl: no record has the field 'number'" in wrong.err
        alone = karat(verb, "g.csv", "--map", "id=number")
        assert alone.code == 2
        assert "number" in alone.err


def test_judged_does_not_say_how_many_queries_a_board_holds(
    karat: Karat, folder: Path
) -> None:
    run = (folder / "dense.run").read_text().splitlines(keepends=True)
    (folder / "half.run").write_text("".join(r for r in run if r < "q20"))
    options = ("-g", "gold.qrels", "-m", "recall@5")
    done = karat("evaluate", "half.run", "dense.run", *options)
    assert "39 of 40 queries (1 undefined)" in done.out
    assert rows(done.out)["run"][-1] == "missing"
    assert rows(done.out)["half.run"][-1] == "21"


def test_policies_change_the_mean_and_are_printed(karat: Karat) -> None:
    base = ("evaluate", "dense.run", "-g", "gold.qrels", "-m", "rr")
    native = float(rows(karat(*base).out)["rr"][0])
    zero = karat(*base, "--undefined", "zero")
    assert float(rows(zero.out)["rr"][0]) == pytest.approx(native * 39 / 40, abs=1e-4)
    assert "policies: undefined=zero" in zero.out
    assert "trec_eval would differ" in karat(*base).out
    profile = karat(*base, "--profile", "trec_eval-10")
    assert "profile=trec_eval-10" in profile.out
    assert "trec_eval would differ" not in profile.out


def test_what_trec_eval_would_do_otherwise_is_said(karat: Karat, folder: Path) -> None:
    (folder / "odd.run").write_text(
        "q1 Q0 a 1 2 t\nq1 Q0 b 2 2 t\nq1 Q0 a 3 1 t\nq2 Q0 c 1 1 t\n"
    )
    (folder / "odd.qrels").write_text("q1 0 a 1\nq2 0 c 0\nq3 0 d 1\nq4 0 d 1\n")
    given = ("evaluate", "odd.run", "-g", "odd.qrels", "-m", "rr", "-m", "judged@1")

    def told(*options: str) -> list[str]:
        start, lines = "trec_eval would differ: ", karat(*given, *options).out
        joined = " ".join(lines.split()).split(start)[1:]
        return [line.split()[0] + " " + line.split()[1] for line in joined]

    undefined, missing = "queries without", "queries missing"
    twice, ties = "documents retrieved", "equal scores"
    assert told() == [undefined, missing, twice]
    assert told("--ties", "input") == [undefined, missing, twice, ties]
    assert told("--undefined", "zero") == [missing, twice]
    assert told("--profile", "trec_eval-9") == []
    out = " ".join(karat(*given).out.split())
    # Of the two that are missing nothing is judged: that is no matter of gold.
    assert "relevant gold (1 of 4) count 0 there (here: --undefined zero)" in out
    assert "missing from the run (2) are refused by version 10" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-m", "ndgc@10"], "unknown metric 'ndgc'; did you mean 'ndcg'?"),
        (["-m", "recall@0"], "k must be an integer >= 1, got '0'"),
        (["-m", "ngcd@10"], "unknown metric 'ngcd'; did you mean 'ndcg'?"),
        (["-m", "recall@-1"], "k must be an integer >= 1"),
        (["-m", "recall@@5"], "cannot read 'recall@@5'"),
        (["-m", "ndcg(gain=cubic)@5"], "gain must be one of 'linear', 'exp'"),
        (["-k", "0"], "k must be an integer >= 1, got 0"),
        (["-k", "five"], "'five' is not a valid integer"),
        (["--match", "idd"], "unknown matcher 'idd'; did you mean 'id'?"),
        (["--profile", "trec_eval-11"], "unknown profile 'trec_eval-11'"),
        (["--missing", "ignore"], "'ignore' is not one of 'zero', 'skip', 'error'"),
        (["--fail-under", "recall@5"], "--fail-under takes METRIC=VALUE"),
        (["--fail-under", "recal@5=0.5"], "did you mean 'recall'?"),
        (["--map", "query"], "expected OURS=THEIRS, got 'query'"),
        (["--glod", "x"], "'--gold'"),
        (["--slice", "colour"], "--slice knows only 'tag'; put 'colour' into tags"),
        (["--slice", "tags"], "--slice knows only 'tag'; did you mean 'tag'?"),
        (["--format", "trek"], "unknown format 'trek'"),
    ],
)
def test_a_mistake_is_one_clear_sentence(
    karat: Karat, arguments: list[str], sentence: str
) -> None:
    done = karat("evaluate", "dense.run", "-g", "gold.qrels", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        (["none.run", "-g", "gold.qrels"], "none.run: no such file; did you mean"),
        (["dense.run", "-g", "gold.qrel"], "gold.qrel: no such file; did you mean"),
        (["x*.run", "-g", "gold.qrels"], "no file matches 'x*.run'"),
        (["dense.run"], "dense.run holds a run but no gold: add --gold"),
        (["dense.run"], "no labels yet? karat label new makes a page for people"),
        (["dense.run"], "karat judge lets a model label, karat generate lets"),
        (["gold.qrels", "-g", "dense.run"], "swapped"),
        (["gold.qrels", "dense.run"], "try karat evaluate RUN --gold gold.qrels"),
        (["empty.run", "-g", "gold.qrels"], "empty.run: is empty"),
        (["dense.run", "-g", "alien.qrels"], "no gold id occurs anywhere in the run"),
        (["dense.run", "-g", "other.qrels"], "run and gold have no query in common"),
        (["dense.run", "-g", "upper.qrels"], "'Q01' is there as 'q01', in another"),
    ],
)
def test_files_that_do_not_go_are_named(
    karat: Karat, folder: Path, runs: list[str], sentence: str
) -> None:
    gold = (folder / "gold.qrels").read_text()
    (folder / "empty.run").touch()
    (folder / "alien.qrels").write_text(gold.replace(" 0 ", " 0 chunk-"))
    (folder / "upper.qrels").write_text(gold.replace("q", "Q"))
    (folder / "other.qrels").write_text(gold.replace("q", "topic"))
    done = karat("evaluate", *runs)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_files_without_common_ids_are_scored_when_forced(
    karat: Karat, folder: Path
) -> None:
    gold = (folder / "gold.qrels").read_text()
    (folder / "alien.qrels").write_text(gold.replace(" 0 ", " 0 chunk-"))
    done = karat("evaluate", "dense.run", "-g", "alien.qrels", "--force", "-m", "rr")
    assert rows(done.out)["rr"][0] == "0.0000"
