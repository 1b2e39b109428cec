"""Bad input: one clear sentence with its place, exit code 2, within a second."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import Karat

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, here in pairwise("abcdefghij")
)
LINE = b"q01 Q0 refunds-01 1 2.5 x\n"
SAMPLE = b'{"id": "q1", "retrieved": ["a"], "relevant": ["a"]}\n'

RUNS = {
    "nan.run": (LINE + b"q01 Q0 orders-01 2 nan x\n", "nan.run:2: "),
    "inf.run": (LINE + b"q01 Q0 orders-01 2 inf x\n", "inf.run:2: "),
    "text.run": (LINE + b"q01 Q0 orders-01 2 high x\n", "text.run:2: "),
    "short.run": (LINE * 2 + b"q01 Q0 orders-01\n", "short.run:3: "),
    "wide.run": (LINE + b"q " * 1_000_000 + b"\n", "wide.run:2: "),
    "latin.run": (LINE + b"q01 Q0 caf\xe9 2 1.0 x\n", "latin.run:2: "),
    "empty.run": (b"", "empty.run: is empty"),
    "blank.run": (b"\n \n", "blank.run: is empty"),
    "packed.run.gz": (gzip.compress(LINE * 500)[:-20], "packed.run.gz: "),
    "picture.run": (b"\x89PNG\r\n\x1a\n" + b"\0" * 64, "PNG"),
    "pickle.run": (b"\x80\x04\x95" + b"\0" * 64, "pickle"),
    "columns.csv": (b"colour,size\nred,3\n", "columns.csv: "),
    "number.json": (b'{"q01": {"a": "high"}}', "number.json: "),
    "nan.json": (b'{"q01": {"a": NaN}}', "nan.json:1: "),
    "broken.json": (b'{"q01": {"a": 1.5}', "broken.json:1: "),
}
SAMPLES = {
    "deep.json": (b"[" * 200_000, "deep.json:1: "),
    "bomb.yaml": (BOMB.encode(), "bomb.yaml"),
    "twice.jsonl": (SAMPLE * 2, "twice.jsonl:2: query id 'q1' occurs twice"),
    "torn.jsonl": (SAMPLE + b'{"id": "q2", "retr', "torn.jsonl:2: broken JSON"),
    "zero.jsonl": (SAMPLE.replace(b"}", b', "k": 0}'), "k must be an integer >= 1"),
    "latin.jsonl": (SAMPLE + b'{"id": "caf\xe9"}\n', "latin.jsonl:2: "),
    "none.jsonl": (b'{"id": "q1"}\n', "none.jsonl: no field holds"),
}


def check(karat: Karat, folder: Path, name: str, data: bytes, *more: str) -> str:
    (folder / name).write_bytes(data)
    done = karat("evaluate", name, *more)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert len(done.err) < 800
    assert "unexpected" not in done.err
    return done.err


@pytest.mark.parametrize("name", RUNS)
def test_a_bad_run_is_named_with_its_line(
    karat: Karat, folder: Path, name: str
) -> None:
    data, sentence = RUNS[name]
    assert sentence in check(karat, folder, name, data, "--gold", "gold.qrels")


@pytest.mark.parametrize("name", SAMPLES)
def test_bad_samples_are_named_with_their_line(
    karat: Karat, folder: Path, name: str
) -> None:
    data, sentence = SAMPLES[name]
    assert sentence in check(karat, folder, name, data)


def test_a_byte_order_mark_is_no_problem(karat: Karat, folder: Path) -> None:
    mark = b"\xef\xbb\xbf"
    (folder / "marked.run").write_bytes(mark + (folder / "dense.run").read_bytes())
    (folder / "marked.jsonl").write_bytes(mark + SAMPLE)
    plain = karat("evaluate", "dense.run", "-g", "gold.qrels").out
    marked = karat("evaluate", "marked.run", "-g", "gold.qrels").out
    assert marked == plain.replace("dense.run", "marked.run")
    assert karat("evaluate", "marked.jsonl").code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("", "--gold", "gold.qrels"), "karat: the path is empty"),
        (("dense.run", "--gold", ""), "karat: the path is empty"),
        (("dense.run", "--gold", "dense.run"), "is a TREC run, but gold was asked for"),
        (("gold.qrels",), "gold.qrels: holds TREC qrels, but samples were asked for"),
        (
            ("dense.run", "--gold", "gold.qrels", "--queries", "gold.qrels"),
            "gold.qrels: holds no texts or tags of queries",
        ),
        (("dense.run", "--gold", "gold.qrels", "-o", ".json/"), "-o .json/: "),
        (
            ("dense.run", "--gold", "gold.qrels", "--threshold", "nan"),
            "threshold must be a finite number, got nan",
        ),
        (
            ("dense.run", "--gold", "gold.qrels", "--by", "system"),
            "dense.run: trec_run has no column 'system' to split by",
        ),
    ],
)
def test_files_in_the_wrong_place_are_named(
    arguments: tuple[str, ...], sentence: str, karat: Karat
) -> None:
    done = karat("evaluate", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_a_table_of_ranks_is_no_gold(
    karat: Karat, folder: Path, extension: str
) -> None:
    (folder / "lists.json").write_text('{"q01": ["b", "a"], "q02": ["c"]}')
    assert karat("convert", "lists.json", f"run.{extension}", "--role", "run").code == 0
    done = karat("evaluate", f"run.{extension}", "--gold", f"run.{extension}")
    assert (done.code, done.out) == (2, "")
    assert f"run.{extension}: ranks documents (rank) and has no grades" in done.err


@pytest.mark.slow
def test_settings_nested_too_deep_are_no_bug(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text("[" * 3000)
    done = karat("evaluate", "dense.run", "--gold", "gold.qrels")
    assert (done.code, done.out) == (2, "")
    assert "karat.yaml: not readable as YAML" in done.err


def test_texts_are_not_compared_with_trec_eval(karat: Karat) -> None:
    done = karat("evaluate", "dense.run", "-g", "gold.qrels", "-m", "recall[exact]@5")
    assert "without relevant gold" not in done.out
