"""What the command says when a file is not quite what it needs."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from pyarrow import Table
from pyarrow.parquet import write_table as write_parquet

from karat.cli import karat as group
from tests.cli.conftest import Karat

OPTIONS = ("-g", "gold.qrels")


def test_a_run_without_gold_says_where_the_gold_may_be(
    karat: Karat, folder: Path
) -> None:
    both = karat("evaluate", "dense.run", "gold.qrels")
    assert "is gold.qrels the gold? then --gold gold.qrels" in both.err
    sample = {"id": "q1", "retrieved": ["a"], "wanted": ["a"], "why": "x"}
    (folder / "s.jsonl").write_text(json.dumps(sample))
    alone = karat("evaluate", "s.jsonl")
    assert alone.code == 2
    assert "--map relevant=...: wanted, why" in alone.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-k", "3", "-m", "rr"), "k = 3 changes nothing: no metric is spelled with"),
        (("--map", "retreived=x"), "unknown field 'retreived'; did you mean"),
        (("-m", "zzzzzz"), "unknown metric 'zzzzzz'; `karat metrics` lists them"),
        (("-m", "recall5"), "unknown metric 'recall5'; did you mean 'recall@5'?"),
        (("--fail-under", "recall@5=80"), "recall@5 lies between 0 and 1; 0.8?"),
        (("--fail-under", "rr=1.5"), "rr lies between 0 and 1"),
        (("--profile", "trec_eval9"), "did you mean 'trec_eval-9'?"),
        (("--explain", "q1"), "unknown query 'q1'; did you mean 'q01'?"),
    ],
)
def test_a_near_miss_is_told(
    karat: Karat, arguments: tuple[str, ...], sentence: str
) -> None:
    done = karat("evaluate", "dense.run", *OPTIONS, *arguments)
    assert done.code == 2
    assert sentence in done.err


def test_a_gate_on_an_unbounded_metric_may_be_any_number(karat: Karat) -> None:
    done = karat("evaluate", "dense.run", *OPTIONS, "--fail-under", "num_ret=20")
    assert done.code == 0


def test_slices_without_any_tag_are_noticed(karat: Karat) -> None:
    done = karat("evaluate", "dense.run", *OPTIONS, "-m", "rr", "--slice", "tag")
    assert "no query has a tag; --queries FILE adds them" in done.out


def test_a_metric_is_explained_without_the_words_of_its_code(karat: Karat) -> None:
    done = karat("metrics", "recall")
    assert "Attributes:" not in done.out
    assert "formula: " in done.out
    assert (
        "parameter: threshold: the smallest grade that counts as relevant" in done.out
    )


def test_a_number_alone_is_another_cutoff(karat: Karat) -> None:
    done = karat("evaluate", "dense.run", *OPTIONS, "-m", "P.5,10", "-m", "recall@5,20")
    names = [line.split(" ")[0] for line in done.out.splitlines()]
    asked = ["precision@5", "precision@10", "recall@5", "recall@20"]
    assert [name for name in names if name in asked] == asked


@pytest.mark.parametrize("number", ["0.5", "3"])
def test_a_table_without_header_is_told_how_to_name_its_columns(
    karat: Karat, folder: Path, number: str
) -> None:
    (folder / "r.csv").write_text(f"q01,refunds-01,{number}\n")
    done = karat("evaluate", "r.csv", *OPTIONS)
    assert "--map id=1 --map document=2 and --map score=3 or rank=3" in done.err


def test_a_row_per_document_is_asked_for_its_document(
    karat: Karat, folder: Path
) -> None:
    (folder / "r.jsonl").write_text('{"qid": "1", "passage_nr": "d1", "score": 1.0}\n')
    done = karat("evaluate", "r.jsonl", *OPTIONS)
    assert "--map document=" in done.err


def test_swapped_trec_files_are_told(karat: Karat) -> None:
    done = karat("trec-eval", "dense.run", "gold.qrels")
    assert "is it a run? then the files are swapped" in done.err


def write_table(folder: Path, records: list[dict[str, Any]]) -> tuple[str, ...]:
    """The records in every format that holds tables; the names of the files."""
    lines = [",".join(map(str, record.values())) for record in records]
    (folder / "r.csv").write_text("\n".join([",".join(records[0]), *lines]) + "\n")
    (folder / "r.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in records))
    write_parquet(Table.from_pylist(records), folder / "r.parquet")
    return "r.csv", "r.jsonl", "r.parquet"


def test_two_systems_in_one_table_are_noticed(karat: Karat, folder: Path) -> None:
    records: list[dict[str, Any]] = [
        {"system": name, "query_id": "q01", "doc_id": document, "score": score}
        for name, document, score in (
            ("keyword", "refunds-01", 2),
            ("dense", "refunds-02", 1),
        )
    ]
    for name in write_table(folder, records):
        done = karat("evaluate", name, *OPTIONS, "-m", "rr", "--force")
        said = " ".join(done.out.split())
        assert (
            "systems: 2 values of 'system' were read as one system; --by splits them "
            "(for example dense, keyword)"
        ) in said
        split = karat(
            "evaluate", name, *OPTIONS, "-m", "rr", "--by", "system", "--force"
        )
        assert "were read as one" not in split.out
    nested = Table.from_pylist([r | {"system": [r["system"]]} for r in records])
    write_parquet(nested, folder / "nested.parquet")
    done = karat("evaluate", "nested.parquet", *OPTIONS, "-m", "rr", "--force")
    assert done.code == 0
    one = [record | {"system": "keyword"} for record in records]
    for name in write_table(folder, one):
        done = karat("evaluate", name, *OPTIONS, "-m", "rr", "--force")
        assert "were read as one" not in done.out


def test_a_system_that_cannot_be_scored_is_named(karat: Karat, folder: Path) -> None:
    records: list[dict[str, Any]] = [
        {"system": "good", "query_id": "q01", "doc_id": "refunds-01", "score": 2},
        {"system": "odd", "query_id": "q01", "doc_id": "chunk-7", "score": 1},
    ]
    for name in write_table(folder, records):
        asked = ("evaluate", name, *OPTIONS, "-m", "rr", "--by", "system")
        done = karat(*asked)
        assert done.code == 2
        assert done.err.startswith(f"karat: {name}:odd: no gold id occurs anywhere")
        shown = karat(*asked, "--force").out
        assert "\nodd " in shown
        assert f"{name}:odd" not in shown


def test_ids_that_hardly_ever_meet_are_noticed(karat: Karat, folder: Path) -> None:
    lines = (folder / "gold.qrels").read_text().splitlines(keepends=True)
    other = [line.replace(" 0 ", " 0 chunk-") for line in lines[5:]]
    (folder / "alien.qrels").write_text("".join([*lines[:5], *other]))
    done = karat("evaluate", "dense.run", "-g", "alien.qrels", "-m", "rr")
    said = " ".join(done.out.split())
    assert "found, of 90 in all; do run and gold use the same ids and texts?" in said
    usual = karat("evaluate", "dense.run", *OPTIONS, "-m", "rr")
    assert "use the same ids" not in usual.out


def test_ids_joined_in_one_cell_are_noticed(karat: Karat, folder: Path) -> None:
    (folder / "s.csv").write_text("id,retrieved_ids,relevant_ids\n1,a;b;c,b\n")
    done = karat("evaluate", "s.csv", "-m", "rr", "--force")
    said = " ".join(done.out.split())
    assert 'joined: 1 ranking read as one id; a list is JSON: ["a", "b"]' in said
    (folder / "t.csv").write_text('id,retrieved_ids,relevant_ids\n1,"[""b""]",b\n')
    assert "joined" not in karat("evaluate", "t.csv", "-m", "rr").out


@pytest.mark.parametrize(
    ("field", "value"),
    [("expected_answer", "Yes."), ("ground_truths", ["Yes.", "We do."])],
)
def test_answers_are_told_how_to_become_references(
    karat: Karat, folder: Path, field: str, value: object
) -> None:
    sample = {"question": "Do you ship?", "contexts": ["We ship."], field: value}
    (folder / "log.jsonl").write_text(json.dumps(sample))
    words = ["evaluate", "log.jsonl", "-m", "context_recall", "--model", "tiny"]
    words += ["--base-url", "http://127.0.0.1:9/v1"]
    done = karat(*words, "--dry-run")
    assert done.code == 2
    assert f"the file has {field} (read as answers)" in done.err
    ours = "claims" if isinstance(value, list) else "reference"
    assert f"--map {ours}={field} " in done.err
    assert karat(*words, "--dry-run", "--map", f"{ours}={field}").code == 0


@pytest.mark.parametrize("field", ["expected_output", "expected"])
def test_an_expected_output_is_the_reference_of_a_judge(
    karat: Karat, folder: Path, field: str
) -> None:
    sample = {"input": "Ship?", "retrieval_context": ["We ship."], field: "We ship."}
    (folder / "log.jsonl").write_text(json.dumps(sample))
    words = ["evaluate", "log.jsonl", "-m", "context_recall", "--model", "tiny"]
    words += ["--base-url", "http://127.0.0.1:9/v1"]
    assert karat(*words, "--dry-run").code == 0
    # Without a judge it is the answer that documents may contain.
    assert karat("evaluate", "log.jsonl", "-m", "recall[contains]@1").code == 0


def test_one_text_where_contexts_should_be_a_list_is_noticed(
    karat: Karat, folder: Path
) -> None:
    sample = {"question": "Do you ship?", "contexts": "We ship.", "answers": "We ship"}
    (folder / "log.jsonl").write_text(json.dumps(sample))
    done = karat("evaluate", "log.jsonl", "-m", "recall@5")
    assert "one text: 1 sample has one text where a list is expected" in done.out


def test_every_command_takes_gold_by_the_same_names() -> None:
    for name in ("evaluate", "compare", "diagnose", "plot", "fuse", "judge", "label"):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            command = command.commands["apply"]
        (option,) = (one for one in command.params if one.name == "gold")
        assert option.opts == ["-g", "--gold", "--qrels"]
