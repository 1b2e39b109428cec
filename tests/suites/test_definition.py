"""What a suite may say: one definition, for editors and for the reader."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from karat.extend import FormatError, UsageError, decode_yaml
from karat.suites.definition import SCHEMA, read_suite, read_suites

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "schema" / "suite-1.schema.json"

WHOLE = """\
suites:
  main:
    gold: gold.qrels
    queries: queries.jsonl
    retrievers: {bm25: bm25.run}
    metrics: [ndcg@10, recall@5]
    match: id
    k: 3
    map: {retrieved: hits}
    policies: {missing: skip, threshold: 2, depth: 10, judged_only: true}
    slices: tag
    baseline: bm25
    gates: {fail_under: {recall@5: 0.8}, max_drop: {ndcg@10: 0.02}, strict: true}
    sweep: {factory: "a:build", grid: {size: [1, 2.5], how: [x, true]}, concurrency: 2}
"""

# What is changed in it, and what is said of that.
WRONG = [
    ("gold: gold.qrels", "glod: gold.qrels", "suites.yaml:3: unknown setting of suite"),
    ("retrievers: ", "runs: ", ":5: .*'runs'; did you mean 'retrievers'"),
    ("metrics: [", "metrcs: [", "suites.yaml:6: .*did you mean 'metrics'"),
    ("k: 3", "k: three", "suites.yaml:8: k must be a whole number, got 'three'"),
    ("k: 3", "k: 0", "suites.yaml:8: k must be 1 or more, got 0"),
    ("k: 3", "k: true", "suites.yaml:8: k must be a whole number, got True"),
    ("missing: skip", "missing: drop", ":10: missing must be zero or skip or error"),
    ("missing: skip", "mising: skip", ":10: .*did you mean 'missing'"),
    ("threshold: 2", "threshold: high", ":10: threshold must be a number"),
    ("slices: tag", "slices: [tag]", ":11: slices must be tag, got a list"),
    ("{bm25: bm25.run}", "bm25.run", ":5: retrievers must be a mapping, got 'bm25"),
    ("bm25: bm25.run", "bm25: 5", ":5: bm25 must be a text or a mapping, got 5"),
    ("bm25: bm25.run", "bm25: {k: 5}", ":5: bm25 lacks retriever: A function such as"),
    (
        "bm25: bm25.run",
        "bm25: {retriever: 'a:b', vresion: '1'}",
        ":5: unknown setting of bm25 'vresion'; did you mean 'version'",
    ),
    ("grid: {size: [1, 2.5],", "grid: {size: 1,", ":14: size must be a list, got 1"),
    ("grid: {size: [1, 2.5],", "grid: {size: [[1]],", ":14: size must be a text or a"),
    ("factory: ", "factroy: ", ":14: unknown setting of sweep 'factroy'; did you mean"),
    ('factory: "a:build", ', "", ":14: sweep lacks factory: A function such as"),
    ("{bm25: bm25.run}", "{}", ":5: retrievers must be one or more"),
    ("[ndcg@10, recall@5]", "[]", ":6: metrics must be one or more"),
    ("[ndcg@10, recall@5]", "[ndcg@10, 5]", ":6: metrics must be a text, got 5"),
    (
        "[ndcg@10, recall@5]",
        "{a: b}",
        ":6: metrics must be a text or a list, got a map",
    ),
    ("{recall@5: 0.8}", "0.8", ":13: fail_under must be a mapping, got 0.8"),
    ("{retrieved: hits}", "{retrieved: 5}", ":9: retrieved must be a text, got 5"),
    (
        WHOLE,
        "suites: {main: {gold: a}}",
        ":1: suite main lacks retrievers or sweep: What is scored",
    ),
    (WHOLE, "suites: []", ":1: suites must be a mapping from names to suites"),
    (WHOLE, "suites:\n  main:\n", ":2: suite main must be a mapping, got nothing"),
]


def accepts(value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(value))


def test_the_published_schema_is_the_one_that_files_are_read_by() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    text = json.dumps(SCHEMA, indent=2) + "\n"
    assert PUBLISHED.read_text("utf-8") == text, "write it again, with this text"


def test_a_whole_suite_is_read_and_follows_the_schema(tmp_path: Path) -> None:
    file = tmp_path / "suites.yaml"
    file.write_text(WHOLE)
    assert accepts(decode_yaml(WHOLE))
    suite = read_suite(file=file)
    assert suite.name == "main"
    assert suite.settings["policies"]["threshold"] == 2
    assert str(suite.error("no", "gates", "max_drop", "ap")).startswith(f"{file}:13: ")


@pytest.mark.parametrize(("old", "new", "sentence"), WRONG)
def test_reader_and_schema_refuse_the_same(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    text = WHOLE.replace(old, new)
    assert text != WHOLE
    assert not accepts(decode_yaml(text))
    file = tmp_path / "suites.yaml"
    file.write_text(text)
    with pytest.raises(FormatError, match=sentence):
        read_suites(file)


def test_a_file_of_its_own_holds_one_suite_named_after_it(tmp_path: Path) -> None:
    file = tmp_path / "nightly.yaml"
    file.write_text("retrievers: {bm25: bm25.run}\n")
    assert accepts(decode_yaml(file.read_text()))
    assert read_suite(file=file).name == "nightly"


def test_which_suite_must_be_clear(tmp_path: Path) -> None:
    file = tmp_path / "karat.yaml"
    with pytest.raises(FormatError, match="no such file; karat init writes one"):
        read_suite(file=file)
    file.write_text("evaluate: {k: 3}\n")
    with pytest.raises(FormatError, match=r"no such file; did you mean '.*yaml'"):
        read_suite(file=file.with_suffix(".yml"))
    with pytest.raises(FormatError, match="has no section suites; karat init"):
        read_suite(file=file)
    one = "{retrievers: {a: b}}"
    file.write_text(f"suites:\n  main: {one}\n  other: {one}\n")
    with pytest.raises(UsageError, match="several suites, name one: main, other"):
        read_suite(file=file)
    with pytest.raises(UsageError, match="unknown suite 'mian'; did you mean 'main'"):
        read_suite("mian", file)
    file.write_text("suites: {main: *none}\n")
    with pytest.raises(FormatError, match=r"karat.yaml:1: alias"):
        read_suite(file=file)
