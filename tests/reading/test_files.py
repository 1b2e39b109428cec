"""Opening input: by name, from standard input, compressed or not."""

import bz2
import gzip
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, strategies as st

import karat
from karat.extend import FormatError, MissingExtraError, open_binary
from karat.reading import files
from karat.reading.files import blocks, lines_in
from karat.reading.readers import read

DATA = os.urandom(5000) + b"some text\n" * 100_000
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@pytest.mark.parametrize("kind", PACK)
def test_compressed_data_is_recognised_by_its_first_bytes(kind: str) -> None:
    assert open_binary(PACK[kind](DATA)).read() == DATA


@pytest.mark.parametrize("kind", PACK)
def test_parts_one_after_the_other_are_one_file(kind: str) -> None:
    packed = PACK[kind](DATA) + PACK[kind](b"") + PACK[kind](b"more")
    assert open_binary(packed).read() == DATA + b"more"
    assert open_binary(packed + bytes(300_000)).read() == DATA + b"more"


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("damage", ["cut", "half", "garbage", "flip"])
def test_broken_data_is_refused_with_the_name_of_the_file(
    kind: str, damage: str, tmp_path: Path
) -> None:
    packed = PACK[kind](DATA)
    middle = len(packed) // 2
    broken = {
        "cut": packed[:-1],
        "half": packed[:middle],
        "garbage": packed + b"garbage",
        "flip": packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :],
    }
    path = tmp_path / "file.dat"
    path.write_bytes(broken[damage])
    with open_binary(path) as stream, pytest.raises(FormatError) as caught:
        stream.read()
    assert caught.value.path == str(path)
    assert f"broken {kind} file" in str(caught.value)


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_blocks_have_one_size_but_for_the_last(size: int) -> None:
    data = DATA[:3000]
    parts = list(blocks(open_binary(gzip.compress(data)), size))
    assert b"".join(parts) == data
    assert {len(part) for part in parts[:-1]} <= {size}


def test_standard_input_is_read_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(DATA)))
    monkeypatch.setattr(sys, "stdin", stdin)
    with open_binary("-") as stream:
        assert stream.read() == DATA
    assert not stdin.buffer.closed


def test_a_closed_stream_closes_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(DATA))
    open_binary(path).close()
    path.unlink()


def test_a_missing_file_is_refused_with_a_likely_one(tmp_path: Path) -> None:
    (tmp_path / "results.txt").touch()
    with pytest.raises(FormatError, match=r"no such file; did you mean .*results\.txt"):
        open_binary(tmp_path / "result.txt")
    with pytest.raises(FormatError, match=r"no such file; looked in"):
        open_binary(tmp_path / "other")
    with pytest.raises(FormatError, match="there is no folder"):
        open_binary(tmp_path / "nowhere" / "x")


def test_folders_and_impossible_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is a folder, not a file"):
        open_binary(tmp_path)
    with pytest.raises(FormatError, match="cannot be opened"):
        open_binary("a\0b")


def test_a_file_one_may_not_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr("builtins.open", forbidden)
    with pytest.raises(FormatError, match="permission denied; check who may read it"):
        open_binary(tmp_path / "secret")


def test_zstd_without_its_extra_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = PACK["zstd"](DATA)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"reading \.zst files .*karat\[zstd\]"):
        open_binary(packed)


ENDLESS = {
    "a.jsonl": b'{"id": "q", "retrieved": ["',
    "a.csv": b"query_id,doc_id,score\nq,",
    "a.tsv": b"query_id\tdoc_id\tscore\nq\t",
    "a.run": b"q Q0 d 1 2.0 t\nq Q0 ",
    "a.qrels": b"q 0 d 1\nq 0 ",
    "a.yaml": b'q: ["',
    "quoted.csv": b'query_id,doc_id,score\nq,"',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("packed", ["gz", "zst"])
def test_a_line_without_an_end_is_refused(
    name: str, packed: str, tmp_path: Path
) -> None:
    """A few kilobytes that unpack to gigabytes take no more than one line may."""
    unit = b"a" * 99 + (b"\n" if "quoted" in name else b"a")
    text = ENDLESS[name] + unit * 700_000
    pack = {"gz": lambda data: gzip.compress(data, 1), "zst": zstandard.compress}
    path = tmp_path / f"{name}.{packed}"
    path.write_bytes(pack[packed](text))
    other = {"q": ["d"]}
    with pytest.raises(FormatError, match=r"does not end|MiB of YAML|larger than"):
        karat.evaluate(*((other, path) if name == "a.qrels" else (path, other)))


def test_a_value_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_VALUE", 1 << 10)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"q": ["d" * 2000]}))
    with pytest.raises(FormatError, match="use JSON Lines"):
        read(path)


@given(st.binary(max_size=60).map(lambda data: data.replace(b"0", b"\n")))
def test_lines_are_those_of_the_file(data: bytes) -> None:
    for size in (1, 3, 100):
        cut = [line for some in lines_in(io.BytesIO(data), size) for line in some]
        assert cut == io.BytesIO(data).readlines()
