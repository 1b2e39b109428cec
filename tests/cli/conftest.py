"""The command line in a folder with copies of the help centre."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from karat.cli import main

EXAMPLE = Path(__file__).parents[2] / "src" / "karat" / "examples" / "help_centre"


class Done(NamedTuple):
    """What a command left behind."""

    code: int | str | None
    out: str
    err: str


Karat: TypeAlias = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: the files of the help centre."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith("KARAT_") or n == "COLUMNS"]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def karat(folder: Path, capsys: pytest.CaptureFixture[str]) -> Karat:
    """Runs a command in this process, as a user would in that folder."""
    del folder

    def run(*arguments: str) -> Done:
        code: int | str | None = 0
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code
        return Done(code, *capsys.readouterr())

    return run
