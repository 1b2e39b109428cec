"""`karat convert`: the same scores in any format, and a word about what has no room."""

import gzip
import json
import sys
from pathlib import Path

import pytest

import karat as package
from tests.cli.conftest import Karat

METRICS = ["recall@5", "ndcg@10", "rr"]


@pytest.mark.parametrize("extension", ["json", "jsonl", "csv", "tsv", "yaml", "run"])
def test_a_converted_run_scores_the_same(karat: Karat, extension: str) -> None:
    target = f"copy.{extension}"
    assert karat("convert", "dense.run", target) == (0, "", f"karat: wrote {target}\n")
    before = package.evaluate("dense.run", gold="gold.qrels", metrics=METRICS)
    after = package.evaluate(target, gold="gold.qrels", metrics=METRICS)
    assert after.means == before.means


@pytest.mark.parametrize("extension", ["json", "jsonl", "csv", "tsv", "yaml", "qrels"])
def test_converted_gold_scores_the_same(karat: Karat, extension: str) -> None:
    target = f"copy.{extension}"
    assert karat("convert", "gold.qrels", target, "--role", "gold").code == 0
    before = package.evaluate("dense.run", gold="gold.qrels", metrics=METRICS)
    after = package.evaluate("dense.run", gold=target, metrics=METRICS)
    assert after.means == before.means


def test_samples_are_split_into_run_and_gold(karat: Karat, folder: Path) -> None:
    karat("convert", "samples.jsonl", "run.json", "--role", "run")
    karat("convert", "samples.jsonl", "gold.json", "--role", "gold")
    whole = package.evaluate("samples.jsonl", metrics=METRICS)
    apart = package.evaluate(folder / "run.json", gold="gold.json", metrics=METRICS)
    assert apart.means == whole.means


def test_standard_input_and_output_are_dashes(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "dense.run").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        done = karat("convert", "-", "-", "--to", "jsonl")
    assert done.code == 0
    assert json.loads(done.out.splitlines()[0])["id"] == "q01"


def test_a_target_may_be_compressed(karat: Karat, folder: Path) -> None:
    assert karat("convert", "dense.run", "copy.json.gz").code == 0
    assert "q01" in json.loads(gzip.decompress((folder / "copy.json.gz").read_bytes()))


def test_a_source_may_be_read_as_another_format(karat: Karat, folder: Path) -> None:
    (folder / "table").write_text("query_id,doc_id,grade\nq1,d1,2\n")
    assert karat("convert", "table", "g.qrels", "--from", "csv").code == 0
    assert (folder / "g.qrels").read_text().split() == ["q1", "0", "d1", "2"]


def test_a_field_may_be_named(karat: Karat, folder: Path) -> None:
    (folder / "log.jsonl").write_text('{"id": "q1", "found": ["d1"]}\n')
    done = karat("convert", "log.jsonl", "run.json", "--map", "retrieved=found")
    assert done.code == 0
    assert json.loads((folder / "run.json").read_text()) == {"q1": ["d1"]}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["samples.jsonl", "g.qrels", "--role", "gold"], "holds relevant ids only"),
        (["samples.jsonl", "x.run"], "cannot hold run and gold in one file"),
        (["dense.run", "x.foo"], "from 'x.foo'; end it in one of .parquet,"),
        (["dense.run", "-"], "--to names the format of -"),
        (["dense.run", "x.json", "--to", "jsn"], "unknown format 'jsn'; did you mean"),
        (["dense.run", "no/x.json"], "there is no folder 'no'"),
        (["dense.run", "dense.run", "--to", "json"], "would be overwritten"),
        (["none.run", "x.json"], "none.run: no such file"),
        (["dense.run", "x.json", "--role", "gold"], "swapped"),
    ],
)
def test_what_cannot_be_written_is_said(
    karat: Karat, folder: Path, arguments: list[str], sentence: str
) -> None:
    before = sorted(folder.iterdir())
    done = karat("convert", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert sorted(folder.iterdir()) == before
