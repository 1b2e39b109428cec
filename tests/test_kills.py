"""What karat writes survives a kill at any moment.

`KARAT_KILLS=250 pytest tests/test_kills.py` is what `make soak` runs.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

KILLS = os.environ.get("KARAT_KILLS", "10")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["journal", "saved", "history", "cache"])
def test_no_kill_loses_what_was_done(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.killed", kind, KILLS],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) > int(KILLS) / 2
