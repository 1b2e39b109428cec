"""What the project says of itself beside the docs is true."""

import re
from pathlib import Path

import pytest

import karat
from karat.extend import decode_yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = [
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
    *sorted((ROOT / ".github").rglob("*.yml")),
]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_files_for_services_are_yaml(path: Path) -> None:
    assert decode_yaml(path.read_text("utf-8"))


def test_the_citation_names_the_newest_release() -> None:
    citation = decode_yaml((ROOT / "CITATION.cff").read_text("utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = re.findall(r"^## \[([\d.]+)\]", changes, re.MULTILINE)[0]
    assert citation["version"] == newest
    # The sources are that release, or on the way to the next.
    ours = [int(part) for part in karat.__version__.partition(".dev")[0].split(".")]
    released = [int(part) for part in newest.split(".")]
    assert ours > released if ".dev" in karat.__version__ else ours == released


def test_workflows_run_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = {*re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)}
    for path in WORKFLOWS:
        called = re.findall(r"run: make ([a-z -]+)", path.read_text("utf-8"))
        assert {name for line in called for name in line.split()} <= targets


def test_licences_of_all_that_is_installed_by_default_are_listed() -> None:
    listed = (ROOT / "docs" / "reference" / "licences.md").read_text("utf-8")
    pinned = (ROOT / "requirements" / "base.txt").read_text("utf-8")
    for name in re.findall(r"^([\w.-]+)==", pinned, re.MULTILINE):
        assert f"| {name} |" in listed


def test_tests_that_hold_a_promise_exist() -> None:
    promises = (ROOT / "SECURITY.md").read_text("utf-8")
    named = re.findall(r"`(tests/[^`:]+)(?:::(\w+))?`", promises)
    assert len(named) >= 20
    for path, function in named:
        assert f"def {function}" in (ROOT / path).read_text("utf-8")
