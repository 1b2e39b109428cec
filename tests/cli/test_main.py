"""The command as a process: exit codes, streams, colours, and the last defence."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from karat import KaratError
from karat.cli import COMMANDS, karat as group
from tests.cli.conftest import Karat


def process(
    *arguments: str, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "karat", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        check=False,
    )


def terminal(*arguments: str, cwd: Path, **environment: str) -> str:
    """What a command prints to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment}
    command = [sys.executable, "-m", "karat", *arguments]
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=env
    )
    os.close(theirs)
    printed = b""
    try:
        while more := os.read(ours, 65536):
            printed += more
    except OSError:
        pass  # the terminal is closed when the child is done
    finally:
        os.close(ours)
        child.wait()
    return printed.decode().replace("\r\n", "\n")


SCORE = ("evaluate", "dense.run", "-g", "gold.qrels")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((*SCORE, "--fail-under", "recall@5=0.5"), 0),
        ((*SCORE, "--fail-under", "recall@5=0.9"), 1),
        ((*SCORE, "-m", "ndgc@10"), 2),
        (("evaluate", "none.run", "-g", "gold.qrels"), 2),
        (("evalute",), 2),
        ((), 2),
        (("--help",), 0),
        (("--version",), 0),
    ],
)
def test_exit_codes(folder: Path, arguments: tuple[str, ...], code: int) -> None:
    done = process(*arguments, cwd=folder)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (code < 2)


def test_every_command_explains_itself(karat: Karat) -> None:
    for command in COMMANDS:
        done = karat(command, "--help")
        assert done.code == 0
        assert done.out.startswith(f"Usage: karat {command}")


def test_help_imports_nothing_heavy(folder: Path) -> None:
    code = (
        "import sys; from karat.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'rich', 'yaml', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    assert done.stdout.endswith("[]\n")


def test_a_mistyped_command_gets_a_suggestion(karat: Karat) -> None:
    assert "did you mean 'evaluate'?" in karat("evalute").err
    assert "did you mean 'trec-eval'?" in karat("trec_eval").err
    assert karat("fly").err == "karat: no such command 'fly' (karat --help)\n"
    assert "-o report.html writes a page" in karat("report").err
    assert "--explain QUERY explains a query" in karat("explain").err
    assert "karat suite runs the sweep" in karat("sweep").err


def test_usage_errors_have_the_voice_of_all_others(karat: Karat) -> None:
    for words, sentence in (
        ("evaluate", "missing argument 'RUN...' (karat evaluate --help)"),
        ("evaluate a --gold", "option '--gold' requires an argument"),
        ("evaluate a --goldd b", "no such option '--goldd'; did you mean '--gold'?"),
        ("evaluate a --ties x", "'--ties': 'x' is not one of 'trec', 'input'"),
    ):
        done = karat(*words.split())
        assert done.err.startswith(f"karat: {sentence}")
        assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("karat evaluate a.run -m recall@5,nd", "plain,recall@5,ndcg\n"),
        ("karat compare a b --match fu", "plain,fuzzy\n"),
        ("karat diagnose a --profile trec", "plain,trec_eval-9\n"),
        ("karat metrics alpha_n", "plain,alpha_ndcg\n"),
        ("karat evaluate de", "file,de\n"),
        ("karat fuse a b --gold go", "file,go\n"),
    ],
)
def test_a_shell_completes_metrics_matchers_profiles_and_files(
    words: str, offered: str
) -> None:
    asked = {"_KARAT_COMPLETE": "bash_complete", "COMP_WORDS": words}
    asked["COMP_CWORD"] = str(words.count(" "))
    done = subprocess.run(
        [sys.executable, "-m", "karat"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert offered in done.stdout


@pytest.mark.slow
def test_colour_is_for_terminals(folder: Path) -> None:
    assert "\x1b[" not in process(*SCORE, cwd=folder).stdout
    coloured = terminal(*SCORE, cwd=folder)
    assert "\x1b[1m" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [*map(str.rstrip, plain.splitlines())] == process(
        *SCORE, cwd=folder, COLUMNS="80"
    ).stdout.splitlines()


@pytest.mark.slow
def test_no_color_is_honoured(folder: Path) -> None:
    assert not re.search(
        r"\x1b\[[0-9;]*3[0-7]", terminal(*SCORE, cwd=folder, NO_COLOR="1")
    )
    assert "\x1b" not in terminal(*SCORE, cwd=folder, TERM="dumb")


def test_a_narrow_encoding_is_no_reason_to_stop(folder: Path) -> None:
    done = process(
        "evaluate", "*.run", "-g", "gold.qrels", cwd=folder, PYTHONIOENCODING="ascii"
    )
    assert done.returncode == 0
    assert "0.7526 (.668?.838)" in done.stdout


def test_a_reader_that_leaves_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m karat metrics | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=folder, check=True
    )
    assert done.stderr == ""


def test_a_bug_of_ours_is_one_sentence(
    karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by\nzero")

    monkeypatch.setattr(group, "invoke", explode)
    done = karat("metrics")
    assert done.code == 2
    assert done.err == (
        "karat: unexpected ZeroDivisionError: division by zero; this is a bug in "
        "karat, please report it (karat -v shows the traceback)\n"
    )


def test_verbose_shows_the_traceback_of_a_bug(
    karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    karat("metrics")

    def explode(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sys.modules["karat.cli.metrics"], "show_all", explode)
    done = karat("metrics", "-v")
    assert done.code == 2
    assert "Traceback" in done.err
    assert "unexpected ZeroDivisionError" in done.err


def test_verbose_lasts_for_one_call(
    karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "karat: " in karat(*SCORE, "-v").err

    def explode(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(group, "invoke", explode)
    assert "Traceback" not in karat("metrics").err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "\n"),
        (KaratError("a sentence"), 2, "karat: a sentence\n"),
        (
            OSError(28, "No space left on device", "x"),
            2,
            "karat: x: No space left on device\n",
        ),
    ],
)
def test_what_can_happen_has_its_own_end(
    karat: Karat,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    text: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(group, "invoke", fail)
    assert karat("metrics") == (code, "", text)


def test_the_demo_says_what_to_type_next(karat: Karat) -> None:
    done = karat("demo")
    assert (done.code, done.err) == (0, "")
    assert "2 runs against gold.qrels: 39 of 40 queries (1 undefined)" in done.out
    assert "ndcg@10 by tag" in done.out
    assert "karat evaluate dense.run --gold gold.qrels --explain q02" in done.out


def test_every_command_the_demo_suggests_works(karat: Karat, folder: Path) -> None:
    suggested = karat("demo").out.partition("What to type next:\n")[2]
    lines = [re.split(r"\s{2,}", line.strip())[0] for line in suggested.splitlines()]
    ran = 0
    for line in lines:
        if line.startswith("karat demo"):
            assert karat(*line.split()[1:]).code == 0
        elif line.startswith("karat "):
            done = karat(*line.split()[1:])
            assert done.code == 0, (line, done.err)
            ran += 1
    assert ran == 6
    assert (folder / "larkspur" / "gold.qrels").exists()


def test_the_demo_never_overwrites(karat: Karat, folder: Path) -> None:
    assert karat("demo", "--copy", "here").code == 0
    assert karat("demo", "--copy", "here").code == 0
    (folder / "here" / "README.md").write_text("mine")
    again = karat("demo", "--copy", "here")
    assert again.code == 2
    assert "here: already holds another README.md" in again.err
    assert (folder / "here" / "README.md").read_text() == "mine"


@pytest.mark.parametrize("target", ["", " "])
def test_the_demo_copies_nowhere_if_no_folder_is_named(
    target: str, karat: Karat, folder: Path
) -> None:
    before = sorted(folder.iterdir())
    done = karat("demo", "--copy", target)
    assert done.code == 2
    assert (
        done.err == "karat: --copy: folder must be a name, got " + repr(target) + "\n"
    )
    assert sorted(folder.iterdir()) == before
    assert karat("demo", "--copy", ".").code == 0


def test_the_catalogue_has_a_line_for_each_metric(karat: Karat) -> None:
    done = karat("metrics", "--all")
    assert "recall_all      Whether the top k holds every gold item" in done.out
    everyday, _, families = karat("metrics").out.partition("by family")
    assert "ndcg            How close" in everyday
    assert "alpha_ndcg" not in everyday
    assert "alpha_ndcg" in families
    rows = json.loads(karat("metrics", "--json").out)
    assert {row["metric"]: row["family"] for row in rows}["ap"] == "ranking"
    one = karat("metrics", "P_10")
    assert one.out.startswith(
        "precision@10\n\nThe share of the top k that matches gold."
    )
    assert "formula: matched positions in top k / k" in one.out
    assert "did you mean 'ndcg'?" in karat("metrics", "ndgc").err


def test_the_matchers_are_listed_and_explained(karat: Karat) -> None:
    listed = karat("matchers").out
    assert "contains    answers          A document satisfies" in listed
    rows = json.loads(karat("matchers", "--json").out)
    assert {row["matcher"] for row in rows} >= {"id", "claims", "semantic"}
    one = karat("matchers", "span(tau=0.5)").out
    assert one.startswith("span\n\nA document satisfies a gold passage once")
    assert "parameter: tau=0.9: the smallest covered share" in one
    assert karat("matchers", "semantic").out.count("Example") == 0
    assert karat("matchers", "spam") == (
        *(2, ""),
        "karat: unknown matcher 'spam'; did you mean 'span'?\n",
    )


@pytest.mark.parametrize("about", [("metrics", "ndcg"), ("matchers", "span")])
def test_all_about_one_thing_fits_the_terminal(
    karat: Karat, monkeypatch: pytest.MonkeyPatch, about: tuple[str, str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wide = karat(*about).out
    monkeypatch.setenv("COLUMNS", "80")
    narrow = karat(*about).out
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines()))
    assert narrow.split() == wide.split()
