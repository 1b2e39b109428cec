"""What the key of a kept result depends on: the code, and the plug-ins."""

from pathlib import Path

import pytest

from karat.results import result_cache


def key() -> str:
    """As the next process has it: this one reads the code once."""
    result_cache._code.cache_clear()
    return result_cache.digest_of("x")


def test_a_plug_in_that_changed_may_score_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a file, one of a folder, and one that is gone."""
    bare = key()
    made = tmp_path / "made-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: made\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text(
        "[karat.metrics]\nfile = one_file:Metric\nfolder = one_folder.inner:Metric\n"
        "gone = not_there:Metric\n[other.plugins]\nx = unrelated:X\n"
    )
    (tmp_path / "one_folder" / "deeper").mkdir(parents=True)
    (tmp_path / "one_folder" / "__init__.py").write_text("")
    parts = ["one_file.py", "one_folder/inner.py", "one_folder/deeper/part.py"]
    for part in (*parts, "unrelated.py"):
        (tmp_path / part).write_text("A = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    keys = [bare, key()]
    assert key() == keys[-1]
    for part in parts:
        (tmp_path / part).write_text("A = 2\n")
        keys.append(key())
    assert len({*keys}) == 5
    (tmp_path / "unrelated.py").write_text("A = 2\n")
    assert key() == keys[-1]
    monkeypatch.undo()
    assert key() == bare


def test_parts_that_are_no_plain_values_have_no_key() -> None:
    with pytest.raises(TypeError, match="no digest of object"):
        result_cache.digest_of(object())
    assert result_cache.digest_of({"a": 1, "b": 2}) == result_cache.digest_of(
        {"b": 2, "a": 1}
    )
