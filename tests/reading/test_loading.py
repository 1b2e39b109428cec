"""The door: any file by its content, packed or piped; others refused in a sentence."""

import bz2
import gzip
import io
import os
import sqlite3
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat import Run
from karat.extend import FormatError, ParameterError, UnknownNameError
from karat.reading.format import FORMATS, SHIPPED
from karat.reading.readers import read

Save = Callable[[str, str | bytes], str]
Ids = Callable[[Run | None], dict[str, list[Any]]]

FILES = {
    "json": b'{"q1": {"d1": 0.5, "d2": 0.75}}',
    "jsonl": b'{"qid": "q1", "docs": ["d2", "d1"]}\n{"qid": "q2", "docs": []}\n',
    "yaml": b"q1:\n- d2\n- d1\n",
    "csv": b"qid,docid,score\nq1,d1,0.5\nq1,d2,0.75\n",
    "tsv": b"qid\tdocid\trank\nq1\td1\t2\nq1\td2\t1\n",
    "trec_run": b"q1 Q0 d1 2 0.5 tag\nq1 Q0 d2 1 0.75 tag\n",
}
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}


def _pack_zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    packed: bytes = zstandard.compress(data)
    return packed


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("ending", [*PACK, ".zst"])
@pytest.mark.parametrize("name", ["run", "run.txt"])
def test_the_format_is_found_by_content_through_compression(
    format: str, ending: str, name: str, save: Save, ids: Ids
) -> None:
    pack = PACK.get(ending, _pack_zstd)
    loaded = read(save(name + ending, pack(FILES[format])), role="run")
    assert loaded.format == format
    assert ids(loaded.run)["q1"] == ["d2", "d1"]


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_read_once(
    format: str,
    pack: Callable[[bytes], bytes],
    monkeypatch: pytest.MonkeyPatch,
    ids: Ids,
) -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(pack(FILES[format]))))
    monkeypatch.setattr(sys, "stdin", stdin)
    loaded = read("-", role="run")
    assert loaded.format == format
    assert ids(loaded.run)["q1"] == ["d2", "d1"]
    assert loaded.run is not None
    assert loaded.run.name == "stdin"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
@pytest.mark.parametrize("format", FILES)
def test_a_named_pipe_is_read_once(format: str, tmp_path: Path, ids: Ids) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(FILES[format],))
    writer.start()
    loaded = read(pipe, role="run")
    assert ids(loaded.run)["q1"] == ["d2", "d1"]
    writer.join()


def test_qrels_are_gold(save: Save) -> None:
    loaded = read(save("qrels.txt", "q1 0 d1 2\nq1 0 d2 -1\n"))
    assert loaded.format == "trec_qrels"
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"d1": 2.0, "d2": -1.0}}


def test_swapped_files_are_noticed(save: Save) -> None:
    run, qrels = save("run", FILES["trec_run"]), save("qrels", "q1 0 d1 2\n")
    with pytest.raises(FormatError, match="is a TREC run, but gold was asked for"):
        read(run, role="gold")
    with pytest.raises(FormatError, match="holds TREC qrels, but a run was asked for"):
        read(qrels, role="run")


def _sqlite(path: Path) -> bytes:
    connection = sqlite3.connect(path)
    connection.execute("create table t (x)")
    connection.commit()
    connection.close()
    return path.read_bytes()


def _zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("a", "b")
    return data.getvalue()


FOREIGN = [
    (b"%PDF-1.7\n%\xe2\xe3\n1 0 obj", "looks like a PDF file"),
    (_zip(), "looks like a zip archive"),
    (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "looks like a PNG image"),
    (b"\xff\xd8\xff\xe0\x00\x10JFIF", "looks like a JPEG image"),
    (b"\x80\x04\x95\x05\x00\x00\x00", "looks like a Python pickle"),
    (b"<!doctype html><html>", "looks like a web page"),
    (b'\n<?xml version="1.0"?>', "looks like an XML file"),
    ("qid,docid".encode("utf-16"), "looks like UTF-16 text; save it as UTF-8"),
    ("qid,docid,score".encode("utf-16-le"), "looks like UTF-16 text"),
    ('{"a": ["b"]}'.encode("utf-16-be"), "looks like UTF-16 text"),
    (b"qid,\x00\x01\x02", "looks like a binary file"),
    (b"", "is empty"),
    (b" \n\t\r\n", "is empty"),
    (b"\xef\xbb\xbf", "is empty"),
    (gzip.compress(b"", mtime=0), "is empty"),
    (b"hello", "cannot tell what it is; it starts with 'hello'"),
    (b"one two three\nfour", "cannot tell what it is"),
]


@pytest.mark.parametrize(("data", "problem"), FOREIGN)
@pytest.mark.parametrize("name", ["a", "a.txt"])
def test_other_files_are_named(
    data: bytes, problem: str, name: str, save: Save
) -> None:
    path = save(name, data)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert problem in str(caught.value)


def test_a_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    _sqlite(path)
    with pytest.raises(FormatError, match="looks like an SQLite database"):
        read(path)


def test_broken_compression_is_named(save: Save) -> None:
    packed = gzip.compress(FILES["jsonl"] * 1000)
    path = save("a.jsonl.gz", packed[: len(packed) // 2])
    with pytest.raises(FormatError, match=r"a\.jsonl\.gz"):
        read(path)


def test_a_path_that_is_not_there_and_a_format_that_is_not(save: Save) -> None:
    with pytest.raises(FormatError, match="no such file"):
        read("nowhere.json")
    with pytest.raises(UnknownNameError, match="did you mean 'jsonl'"):
        read(save("a", "{}"), format="jsnl")
    with pytest.raises(ParameterError, match="role must be one of run, gold, samples"):
        read(save("a", "{}"), role="qrels")  # type: ignore[arg-type]


def test_a_named_format_is_not_sniffed(save: Save, ids: Ids) -> None:
    path = save("a.txt", "q1: [d1]")
    assert ids(read(path, role="run", format="yaml").run) == {"q1": ["d1"]}
    with pytest.raises(FormatError, match="broken JSON at column 1"):
        read(path, format="json")


def test_every_shipped_format_has_a_name_and_says_what_it_holds() -> None:
    shipped = [FORMATS[name] for name in SHIPPED]
    assert [format.name for format in shipped] == list(SHIPPED)
    # What production writes, and what others publish, is only read.
    only_read = [format.name for format in shipped if not format.holds]
    assert only_read == ["traces", "ir_datasets"]
    endings = [ending for format in shipped for ending in format.extensions]
    assert len(endings) == len(set(endings))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "[" * 100_000),
        ("a.json", '{"a":' * 100_000 + "1"),
        ("a.yaml", "- " * 100_000 + "a"),
        ("a.yaml", "[" * 1_000_000),
        ("a.yaml", "a: &a [x]\n" + "b: [" + "*a, " * 200_000 + "]"),
        ("a.csv", ",".join(f"c{n}" for n in range(1_000_000)) + "\n1"),
        ("a.csv", "qid,docid,score\n" + "x," * 1_000_000),
        ("a.csv", 'qid,docid,score\n"' + "x\n" * 300_000),
        ("a.jsonl", '{"id": ' + "9" * 300_000 + "}"),
        ("a.json", "{" + ", ".join(f'"k{n}": 1' for n in range(200_000)) + "}"),
        ("a.json", '{"a": 1, ' * 2 + '"a": 2' + "}" * 2),
        ("a.txt", "x" * 5_000_000),
        ("a.txt", "a b c d\n" * 500_000),
    ],
)
def test_hostile_input_is_refused(name: str, text: str, save: Save) -> None:
    path = save(name, text)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert len(str(caught.value)) < 600
