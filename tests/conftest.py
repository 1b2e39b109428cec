"""What holds for every test: no network beyond this machine, no skips in CI."""

import os
import socket
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The same examples on every machine in CI; new ones each time for whoever works here.
# How long one takes is no law: a busy machine must not fail a test.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# ranx and ir_datasets, oracles, write there when they are imported.
if not os.access(Path.home(), os.W_OK):
    os.environ["HOME"] = tempfile.gettempdir()

# numba would compile ranx, an oracle, for a minute; its numbers are the same without.
os.environ["NUMBA_DISABLE_JIT"] = "1"

# The site reads it, in an environment of its own.
collect_ignore = ["docs/griffe_examples.py"]

ROOT = Path(__file__).parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if host is not None and host not in _LOOPBACK:
            pytest.fail(f"a test tried to reach {host}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def shared_data() -> Path:
    """The third-party data sets, for tests marked `shared_data`."""
    return SHARED_DATA


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where third-party data is not beside the project, tests on it skip once each."""
    if SHARED_DATA.is_dir() or os.environ.get("KARAT_NO_SKIPS"):
        return
    skip = pytest.mark.skip(reason="needs ../shared/data, which is not there")
    without: list[pytest.Item] = []
    skipped: set[str] = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if "shared_data" not in item.keywords:
            without.append(item)
        elif test not in skipped:
            skipped.add(test)
            item.add_marker(skip)
            without.append(item)
    items[:] = without


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """With KARAT_NO_SKIPS a skipped test is a failed one."""
    report = yield
    if os.environ.get("KARAT_NO_SKIPS") and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, but CI has every part"
    return report
