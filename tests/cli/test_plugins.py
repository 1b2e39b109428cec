"""Plug-ins that fail, in any way and at any time: they are named, all others work."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from karat import catalogue
from karat.matching import MATCHERS
from karat.metrics import METRICS
from karat.reading.format import FORMATS
from karat.reports import REPORTS
from tests.cli.conftest import Karat

SCORE = ("evaluate", "dense.run", "-g", "gold.qrels")

GOOD = """
from dataclasses import dataclass
import numpy as np
from karat.extend import Format, Metric, TextMatcher

@dataclass(frozen=True)
class Ones(Metric):
    '''One, always.'''
    name = "ones"
    def score(self, hits):
        return np.ones(hits.size)

@dataclass(frozen=True)
class Leaves(Ones):
    name = "leaves"
    def score(self, hits):
        raise SystemExit(0)

@dataclass(frozen=True)
class Divides(Ones):
    name = "divides"
    def score(self, hits):
        return 1 / 0

class Lines(Format):
    name = "lines"
    extensions = (".lines",)
    holds = ("run",)
    def sniff(self, head, name):
        return head.startswith(b"LINES")
    def records(self, source):
        rows = source.read().decode().split()[1:]
        return [{"id": rows[0], "retrieved": rows[1:]}]

class NoSniff(Lines):
    name = "no_sniff"
    extensions = (".odd",)
    def sniff(self, head, name):
        raise SystemExit(0)

class NoObject(Lines):
    def __init__(self):
        raise KeyError("no")

@dataclass(frozen=True)
class Short(Ones):
    name = "short"
    def score(self, hits):
        return np.ones(1)

@dataclass(frozen=True)
class Listed(Ones):
    name = "listed"
    def score(self, hits):
        return [1.0] * hits.size

@dataclass(frozen=True)
class Words(Ones):
    name = "words"
    def score(self, hits):
        return ["good"] * hits.size

def plain(hits):
    return 1.0

class Nothing(Lines):
    name = "nothing"
    extensions = (".nothing",)
    def records(self, source):
        return None

class Midway(Lines):
    name = "midway"
    extensions = (".midway",)
    def records(self, source):
        yield {"id": "q01", "retrieved": ["account-01"]}
        raise SystemExit(0)

def none(board, tables):
    return None

def numbers(board, tables):
    return 5

def loud(board, tables):
    print("LOUD")
    return "quiet"

def shout(board, tables):
    return "LOUD"

def leave(board, tables):
    raise SystemExit(0)
"""
BROKEN = {
    "exits": "raise SystemExit(0)",
    "exits_with_words": "import sys; sys.exit('bye')",
    "divides": "1 / 0",
    "imports": "import no_such_module",
    "syntax": "def",
    "interrupts": "raise RuntimeError('a\\nb')",
    "lacks": "",
    "stops": "raise StopIteration",
    "memory": "raise MemoryError",
    "recursion": "f = lambda: f()\nf()",
    "generator": "raise GeneratorExit",
}


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, dict[str, str]]]:
    """Entry points by group, as packages that are installed would have them."""
    groups: dict[str, dict[str, str]] = {}

    def entry_points(group: str) -> list[EntryPoint]:
        found = groups.get(group, {})
        return [EntryPoint(name, value, group) for name, value in found.items()]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    monkeypatch.setattr(catalogue, "PLUGINS", catalogue.PLUGINS)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "good_plugin.py").write_text(GOOD)
    for name, code in BROKEN.items():
        (tmp_path / "site" / f"plugin_that_{name}.py").write_text(code)
    for kind in (METRICS, MATCHERS, FORMATS, REPORTS):
        monkeypatch.setattr(kind, "_plugins", None)
        monkeypatch.setattr(kind, "_broken", set())
        monkeypatch.setattr(kind, "_things", {**kind._things})
    yield groups
    for name in [n for n in sys.modules if n.startswith(("good_pl", "plugin_that"))]:
        del sys.modules[name]


@pytest.mark.parametrize("name", BROKEN)
def test_a_metric_that_cannot_be_loaded_is_named(
    name: str, installed: dict[str, dict[str, str]], karat: Karat
) -> None:
    value = f"plugin_that_{name}:Metric"
    installed["karat.metrics"] = {"broken": value, "ones": "good_plugin:Ones"}
    done = karat(*SCORE, "-m", "broken")
    assert done.code == 2
    sentence = f"the metric 'broken' of a plug-in cannot be loaded from {value}: "
    assert done.err.startswith(f"karat: {sentence}")
    assert done.err.count("\n") == 1
    assert karat(*SCORE, "-m", "ones,recall@5").code == 0
    listed = karat("metrics", "--all")
    assert listed.code == 0
    assert sentence in listed.err
    assert {"ndcg", "ones"} <= {
        line.split()[0] for line in listed.out.splitlines()[2:] if line
    }


@pytest.mark.parametrize(
    ("name", "why"),
    [("leaves", "SystemExit: 0"), ("divides", "ZeroDivisionError: div")],
)
def test_a_metric_that_fails_at_work_is_named(
    name: str, why: str, installed: dict[str, dict[str, str]], karat: Karat
) -> None:
    installed["karat.metrics"] = {name: f"good_plugin:{name.title()}"}
    done = karat(*SCORE, "-m", f"recall@5,{name}")
    assert done.code == 2
    assert f"unexpected {why}" in done.err
    assert f"this is a bug of the metric {name!r} of a plug-in" in done.err


@pytest.mark.parametrize(
    "value",
    [
        *(f"plugin_that_{name}:FORMAT" for name in BROKEN),
        "good_plugin:NoObject",
        "good_plugin:NoSniff",
    ],
)
def test_a_format_that_fails_leaves_the_others(
    value: str, installed: dict[str, dict[str, str]], karat: Karat, folder: Path
) -> None:
    installed["karat.formats"] = {"broken": value, "lines": "good_plugin:Lines"}
    (folder / "mine.lines").write_text("LINES q01 account-01")
    (folder / "mine.odd").write_text("LINES q01 account-01")
    (folder / "bare").write_bytes((folder / "dense.run").read_bytes())
    assert karat(*SCORE).err == ""
    for run in ("mine.lines", "mine.odd", "bare"):
        done = karat("evaluate", run, "-g", "gold.qrels", "-m", "recall@5")
        assert done.code == 0, done.err
    assert karat("convert", "mine.lines", "mine.jsonl").code == 0
    assert karat("init", "-o", "new.yaml").code == 0
    if "NoSniff" not in value:
        done = karat(*SCORE, "--format", "broken")
        assert done.code == 2
        assert "the format 'broken' of a plug-in cannot be loaded" in done.err


@pytest.mark.parametrize("name", BROKEN)
def test_a_report_that_fails_is_named_and_the_others_are_written(
    name: str, installed: dict[str, dict[str, str]], karat: Karat, folder: Path
) -> None:
    installed["karat.reports"] = {
        "bad": f"plugin_that_{name}:report",
        "gone": "good_plugin:leave",
        "loud": "good_plugin:shout",
    }
    assert karat(*SCORE, "-o", "a.loud", "-o", "a.json").code == 0
    assert (folder / "a.loud").read_text() == "LOUD"
    done = karat(*SCORE, "-o", "b.json", "-o", "b.bad")
    assert done.code == 2
    assert "the report format 'bad' of a plug-in cannot be loaded" in done.err
    done = karat(*SCORE, "-o", "c.json", "-o", "c.gone")
    assert done.code == 2
    assert "bug of the report format" in done.err
    assert (folder / "c.json").exists()
    assert not (folder / "c.gone").exists()


@pytest.mark.parametrize("name", BROKEN)
def test_a_matcher_that_cannot_be_loaded_is_named(
    name: str, installed: dict[str, dict[str, str]], karat: Karat
) -> None:
    installed["karat.matchers"] = {"broken": f"plugin_that_{name}:Matcher"}
    done = karat(*SCORE, "--match", "broken")
    assert done.code == 2
    assert "the matcher 'broken' of a plug-in cannot be loaded" in done.err
    assert karat(*SCORE).code == 0


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("Short", 2, "the metric 'short'"),
        ("Listed", 0, "listed"),
        ("Words", 2, "the metric 'words'"),
        ("plain", 2, "the metric 'plain'"),
    ],
)
def test_a_metric_that_returns_something_else_is_named(
    name: str,
    code: int,
    says: str,
    installed: dict[str, dict[str, str]],
    karat: Karat,
) -> None:
    installed["karat.metrics"] = {name.lower(): f"good_plugin:{name}"}
    done = karat(*SCORE, "-m", f"recall@5,{name.lower()}")
    assert done.code == code, done.err
    assert says in done.out + done.err
    assert "bug in karat" not in done.err


@pytest.mark.parametrize("ending", ["nothing", "midway"])
def test_a_format_that_returns_something_else_is_named(
    ending: str,
    installed: dict[str, dict[str, str]],
    karat: Karat,
    folder: Path,
) -> None:
    installed["karat.formats"] = {ending: f"good_plugin:{ending.title()}"}
    (folder / f"a.{ending}").write_text("LINES q01 account-01")
    done = karat("evaluate", f"a.{ending}", "-g", "gold.qrels", "-m", "recall@5")
    assert done.code == 2, done.out
    assert ending in done.err
    assert "bug in karat" not in done.err


@pytest.mark.parametrize("name", ["none", "numbers"])
def test_a_report_that_returns_no_text_is_named(
    name: str,
    installed: dict[str, dict[str, str]],
    karat: Karat,
    folder: Path,
) -> None:
    installed["karat.reports"] = {"odd": f"good_plugin:{name}"}
    (folder / "a.odd").write_text("old")
    done = karat(*SCORE, "-o", "a.odd")
    assert done.code == 2
    assert "a.odd" in done.err
    assert "bug in karat" not in done.err
    assert (folder / "a.odd").read_text() == "old"


def test_a_report_may_print(
    installed: dict[str, dict[str, str]], karat: Karat, folder: Path
) -> None:
    installed["karat.reports"] = {"loud": "good_plugin:loud"}
    assert karat(*SCORE, "-o", "a.loud").code == 0
    assert (folder / "a.loud").read_text() == "quiet"


def test_two_plug_ins_of_one_name_are_both_named(
    installed: dict[str, dict[str, str]],
    karat: Karat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [
        EntryPoint("mine", value, "karat.metrics")
        for value in ("good_plugin:Ones", "good_plugin:Listed")
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: points)
    del installed
    assert karat(*SCORE).code == karat("metrics").code == 0
    done = karat(*SCORE, "-m", "mine")
    assert done.code == 2
    assert "good_plugin:Ones" in done.err
    assert "good_plugin:Listed" in done.err


@pytest.mark.parametrize("value", ["good_plugin", "good_plugin:", "no way : at all"])
def test_an_entry_point_that_names_nothing_is_named(
    value: str, installed: dict[str, dict[str, str]], karat: Karat
) -> None:
    installed["karat.metrics"] = {"broken": value}
    done = karat(*SCORE, "-m", "broken")
    assert done.code == 2
    assert "the metric 'broken' of a plug-in" in done.err
    assert "bug in karat" not in done.err
    assert karat("metrics").code == 0


def test_a_plug_in_does_not_take_the_place_of_what_karat_ships(
    installed: dict[str, dict[str, str]], karat: Karat
) -> None:
    before = karat(*SCORE, "-m", "recall@5").out
    installed["karat.metrics"] = {"recall": "good_plugin:Ones"}
    assert karat(*SCORE, "-m", "recall@5").out == before
