"""Files are written whole or not at all, and stay what they were otherwise."""

import ast
import os
import stat
from pathlib import Path

import pytest

from karat.extend import FormatError, write_file

SOURCES = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))


def test_mode_and_links_are_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("real.json")
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [link, target]


def test_a_link_to_nothing_makes_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_a_new_file_has_the_mode_that_any_file_gets(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_file(tmp_path / "own", "")
    modes = {name: (tmp_path / name).stat().st_mode for name in ("plain", "own")}
    assert modes["own"] == modes["plain"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
def test_the_owner_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "theirs"
    target.write_text("old")
    os.chown(target, 1234, 1235)
    target.chmod(0o4755)
    write_file(target, "new")
    facts = target.stat()
    assert (facts.st_uid, facts.st_gid) == (1234, 1235)
    assert stat.S_IMODE(facts.st_mode) == 0o4755


def test_where_the_owner_cannot_be_kept_the_file_itself_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    target = tmp_path / "theirs"
    target.write_text("old")
    before = target.stat().st_ino
    monkeypatch.setattr(Path, "replace", refuse)
    write_file(target, "new")
    assert (target.read_text(), target.stat().st_ino) == ("new", before)
    assert list(tmp_path.iterdir()) == [target]


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "new")
    assert os.read(read, 10) == b"new"
    os.close(read)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    target = tmp_path / ("\u00e9" * 127)
    write_file(target, "new")
    assert target.read_text() == "new"


@pytest.mark.parametrize("name", ["", "missing/a.txt"])
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="cannot be written"):
        write_file(tmp_path / name, "new")


def writes(node: ast.AST) -> bool:
    """Whether a call opens a file to write, or writes one."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = getattr(called, "attr", getattr(called, "id", ""))
    if name in ("write_text", "write_bytes", "copyfile", "copytree", "copy", "move"):
        owner = getattr(called, "value", None)
        return name[:5] == "write" or getattr(owner, "id", "") == "shutil"
    texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
    modes = [t for t in texts if isinstance(t, str) and {*t} <= {*"rwxabt+"}]
    return name == "open" and any({*mode} & {*"wxa+"} for mode in modes)


def test_one_function_writes_all_files() -> None:
    count: dict[str, int] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if writes(node):
                count[path.name] = count.get(path.name, 0) + 1
    # Besides: a file that GitHub makes for all steps of a job, and `os.devnull`.
    assert count == {"writing.py": 3, "outputs.py": 1, "__init__.py": 1}
