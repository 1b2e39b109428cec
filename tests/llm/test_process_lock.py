"""One asks and the others wait, wherever there are locks; elsewhere all may ask."""

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from karat.extend import Settings
from karat.llm.journal import ProcessLock
from tests.llm.judges import Scripted, jobs, right, run_jobs_sync

ONE, OTHER = bytes(32), b"\1" * 32

if sys.platform != "linux":
    pytest.skip("only Linux has locks of open files", allow_module_level=True)


def test_two_runs_in_one_process_wait_for_each_other(tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    with ProcessLock(journal) as first, ProcessLock(journal) as second:
        assert first.acquire(ONE)
        assert not second.acquire(ONE)
        assert second.acquire(OTHER)
        first.release(ONE)
        assert second.acquire(ONE)


def test_the_end_of_a_run_releases_its_locks_and_no_others(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal.sqlite"
    with ProcessLock(journal) as second:
        with ProcessLock(journal) as first:
            assert first.acquire(ONE)
            assert second.acquire(OTHER)
        assert second.acquire(ONE)
        with ProcessLock(journal) as third:
            assert not third.acquire(OTHER)


def test_a_journal_by_another_name_is_the_same_journal(tmp_path: Path) -> None:
    journal, link = tmp_path / "journal.sqlite", tmp_path / "link.sqlite"
    link.symlink_to(journal)
    with ProcessLock(journal) as first, ProcessLock(link) as second:
        assert first.acquire(ONE)
        assert not second.acquire(ONE)


def test_the_file_of_turns_is_private_and_empty(tmp_path: Path) -> None:
    with ProcessLock(tmp_path / "journal.sqlite") as own:
        own.acquire(ONE)
    (file,) = tmp_path.iterdir()
    assert (file.stat().st_mode & 0o777, file.stat().st_size) == (0o600, 0)


@pytest.mark.parametrize("broken", ["fcntl", "open"])
def test_without_locks_everyone_may_ask(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if broken == "fcntl":
        monkeypatch.setattr("fcntl.fcntl", refuse)
    else:
        opened = os.open
        monkeypatch.setattr(
            "os.open",
            lambda path, *a: (
                refuse() if str(path).endswith("-lock") else opened(path, *a)
            ),
        )
    settings = Settings(journal=tmp_path / "journal.sqlite")
    assert run_jobs_sync(jobs(3), Scripted(), settings) == right(3)
