"""What a suite keeps so that the same is not scored twice, and what it depends on."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Karat
from tests.cli.test_suite import SUITE

AGAIN = "not scored again, since nothing changed: "


def kept(folder: Path) -> dict[str, float]:
    """The results that are kept, and when each was used last."""
    files = (folder / ".karat").glob("result-*.json")
    return {path.name: path.stat().st_mtime for path in files}


def test_of_many_results_those_used_last_stay(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text(SUITE)
    (folder / ".karat").mkdir()
    for number in range(499):
        path = folder / ".karat" / f"result-{number:03}.json"
        path.write_text("{}")
        os.utime(path, (number, number))
    karat("suite")
    # 499 and two more: one had to go, and nobody had used it for longest.
    assert len(kept(folder)) == 500
    assert {"result-000.json", "result-001.json"} & {*kept(folder)} == {
        "result-001.json"
    }
    own = [name for name, used in kept(folder).items() if used > 499]
    assert len(own) == 2
    for name in own:
        os.utime(folder / ".karat" / name, (0, 0))
    assert AGAIN in karat("suite").err
    assert all(kept(folder)[name] > 499 for name in own)
    assert len(kept(folder)) == 500


def test_two_that_make_room_at_once_do_not_stumble(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def again(path: Path, **how: bool) -> None:
        unlink(path)
        unlink(path, **how)

    (folder / "karat.yaml").write_text(SUITE)
    (folder / ".karat").mkdir()
    for number in range(500):
        (folder / ".karat" / f"result-{number:03}.json").write_text("{}")
    monkeypatch.setattr(Path, "unlink", again)
    assert karat("suite").code == 0
    assert len(kept(folder)) == 500


def test_what_lies_in_a_folder_counts_by_name_and_content(
    karat: Karat, folder: Path
) -> None:
    (folder / "set" / "qrels").mkdir(parents=True)
    text = (folder / "gold.qrels").read_text()
    rows = (line.split() for line in text.splitlines())
    lines = ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t{g}" for q, _, d, g in rows)]
    gold = folder / "set" / "qrels" / "test.tsv"
    gold.write_text("\n".join(lines) + "\n")
    (folder / "set" / "corpus.jsonl").write_text('{"_id": "d", "text": "t"}\n')
    (folder / "set" / "queries.jsonl").write_text('{"_id": "q01", "text": "t"}\n')
    (folder / "karat.yaml").write_text(SUITE.replace("gold.qrels", "set"))
    assert karat("suite").code == 0
    assert AGAIN + "keyword, dense" in karat("suite").err
    gold.write_text("\n".join(lines[:-1]) + "\n")
    assert AGAIN not in karat("suite").err
    assert AGAIN in karat("suite").err
    note = folder / "set" / "note.txt"
    note.write_text("A note.")
    assert AGAIN not in karat("suite").err
    note.rename(folder / "set" / "other.txt")
    assert AGAIN not in karat("suite").err
    assert AGAIN in karat("suite").err
