"""Mistakes with files, pipes, full disks and plug-ins; outcomes were fixed first.

Each is right, or ends in a sentence that names the thing; none is silently wrong.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from karat.extend import write_file
from tests.cli.conftest import EXAMPLE, Done, Karat

SCORE = "evaluate dense.run -g gold.qrels -m ndcg@10"
GATE = f"{SCORE} --fail-under ndcg@10=0.99"
OLD = "what was there before"


class Mistake(NamedTuple):
    """What is typed after a folder was prepared, and what must come of it.

    Attributes:
        words: the command.
        code: how it must end.
        says: what must be said, on either stream.
        prepare: what the user did to the folder before.
        holds: what must be true of the folder afterwards.
    """

    words: str
    code: int
    says: str = ""
    prepare: Callable[[Path], object] = lambda _: None
    holds: Callable[[Path], object] = lambda _: True


def old(*names: str, mode: int = 0o644) -> Callable[[Path], None]:
    """Files that are there already."""

    def prepare(folder: Path) -> None:
        for name in names:
            (folder / name).write_text(OLD)
            (folder / name).chmod(mode)

    return prepare


def both(*steps: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [step(folder) for step in steps]


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(target)


def loop(folder: Path) -> None:
    (folder / "a.json").symlink_to("b.json")
    (folder / "b.json").symlink_to("a.json")


def is_json(name: str) -> Callable[[Path], object]:
    return lambda folder: json.loads((folder / name).read_text())


def absent(*names: str) -> Callable[[Path], object]:
    return lambda folder: not any((folder / name).exists() for name in names)


def suite_file(folder: Path) -> None:
    text = "gold: gold.qrels\nretrievers: {dense: dense.run}\nmetrics: [ndcg@10]\n"
    (folder / "s.yaml").write_text(text)


def saved_file(folder: Path) -> None:
    words = [sys.executable, "-m", "karat", *SCORE.split(), "-o", "o.json"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)


TYPED: dict[str, Mistake] = {
    "no such folder": Mistake(f"{SCORE} -o no/o.json", 2, "there is no folder 'no'"),
    "a folder": Mistake(
        f"{SCORE} -o out.json", 2, "is a folder", lambda f: (f / "out.json").mkdir()
    ),
    "the input itself": Mistake(
        "convert samples.jsonl samples.jsonl", 2, "is an input"
    ),
    "a link to the input": Mistake(
        f"{SCORE} -o o.json",
        2,
        "is an input",
        link("o.json", "dense.run"),
        lambda f: (
            (f / "dense.run").read_bytes() == (EXAMPLE / "dense.run").read_bytes()
        ),
    ),
    "another name of the input": Mistake(
        "convert dense.run other.run",
        2,
        "is an input",
        lambda f: os.link(f / "dense.run", f / "other.run"),
    ),
    "a private file stays private": Mistake(
        f"{SCORE} -o o.json",
        0,
        "wrote o.json",
        old("o.json", mode=0o600),
        lambda f: (f / "o.json").stat().st_mode & 0o777 == 0o600 and is_json("o.json"),
    ),
    "a link to nothing": Mistake(
        f"{SCORE} -o o.json", 0, "", link("o.json", "real.json"), is_json("real.json")
    ),
    "links in a circle": Mistake(f"{SCORE} -o a.json", 2, "a.json", loop),
    "a name too long": Mistake(f"{SCORE} -o {'n' * 300}.json", 2, "too long"),
    "no such format": Mistake(f"{SCORE} -o o.xls", 2, "report format 'xls'"),
    "no ending": Mistake(f"{SCORE} -o result", 2, "the extension chooses the format"),
    "one file twice": Mistake(
        f"{SCORE} -o o.json -o o.json", 0, "", holds=is_json("o.json")
    ),
    "an ending in capitals": Mistake(
        f"{SCORE} -o O.JSON", 0, "", holds=is_json("O.JSON")
    ),
    "an empty name": Mistake(f"{SCORE} -o ''", 2, "the extension chooses"),
    "the second cannot be written": Mistake(
        f"{SCORE} -o o.json -o no/o.html", 2, "no folder", holds=absent("o.json")
    ),
    "gates in a file, and none given": Mistake(
        f"{SCORE} -o o.json -o o.junit.xml", 2, "none was given", holds=absent("o.json")
    ),
    "a device": Mistake(
        "convert dense.run /dev/null --to jsonl",
        0,
        "",
        holds=lambda _: Path("/dev/null").is_char_device(),
    ),
    "results are a file": Mistake(
        "suite -f s.yaml",
        2,
        "karat-results",
        both(old("karat-results"), suite_file),
    ),
    "kept results have no folder": Mistake(
        "suite -f s.yaml", 2, ".karat", both(old(".karat"), suite_file)
    ),
    "a baseline has no folder": Mistake(
        "baseline set o.json", 2, ".karat", both(old(".karat"), saved_file)
    ),
    "a baseline that is none": Mistake(
        "baseline set dense.run", 2, "dense.run", holds=absent(".karat/baseline.json")
    ),
    "parts of a killed process": Mistake(
        "init",
        0,
        "dense.run",
        old(".o.json.1234.part", ".gold.qrels.99.part"),
        lambda f: ".part" not in (f / "karat.yaml").read_text(),
    ),
    "init beside a broken file": Mistake(
        "init", 0, "", lambda f: (f / "broken.json").write_text("{")
    ),
    "labels into the gold itself": Mistake(
        "label apply p.json -g gold.qrels -o gold.qrels",
        2,
        "is an input",
        lambda f: (f / "p.json").write_text("{}"),
    ),
    "fuse over an input": Mistake(
        "fuse dense.run keyword.run -o dense.run", 2, "is an input"
    ),
    "a chart as text": Mistake("plot dense.run -g gold.qrels -o c.txt", 2, ".svg"),
    "a page of a diagnosis nowhere": Mistake(
        "diagnose samples.jsonl -o no/d.html", 2, "no folder"
    ),
    "retrieve over the queries": Mistake(
        "retrieve mine:search --queries queries.jsonl -o queries.jsonl",
        2,
        "is an input",
        lambda f: (f / "mine.py").write_text("def search(q): return ['a']"),
    ),
    "standard input twice": Mistake("evaluate - --gold -", 2, "once only"),
    "a copy over other files": Mistake(
        "demo --copy .", 2, "already holds another gold.qrels", old("gold.qrels")
    ),
    "a section for a command": Mistake(
        SCORE,
        2,
        "karat init",
        lambda f: (f / "karat.yaml").write_text("evaluate: {k: 3}"),
    ),
}


@pytest.mark.parametrize("title", TYPED)
def test_a_mistake_with_a_file_is_right_or_said(
    title: str, karat: Karat, folder: Path
) -> None:
    mistake = TYPED[title]
    mistake.prepare(folder)
    words = [word.replace("''", "") for word in mistake.words.split()]
    done = karat(*words)
    said = " ".join((done.out + done.err).split())
    assert done.code == mistake.code, said
    assert mistake.says in said
    assert "bug in karat" not in said
    assert mistake.holds(folder)


def shell(line: str, folder: Path) -> Done:
    """A line of a shell, in which `karat` is the command."""
    line = f'karat() {{ {sys.executable} -m karat "$@"; }}; {line}'
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


PIPED: dict[str, Mistake] = {
    "a reader that leaves a failed gate": Mistake(
        f"{{ karat {GATE} -o o.json; echo $? >&2; }} | true",
        0,
        "RESULT: fail (0 of 1 gates passed) 1",
        holds=is_json("o.json"),
    ),
    "both streams to a reader that leaves": Mistake(
        f"karat {GATE} -o o.json 2>&1 | true; exit ${{PIPESTATUS[0]}}",
        1,
        holds=is_json("o.json"),
    ),
    "no output at all": Mistake(
        f"karat {GATE} -o o.json >&-", 1, "RESULT: fail", holds=is_json("o.json")
    ),
    "no place for errors": Mistake(
        f"karat {GATE} -o o.json 2>&-", 1, holds=is_json("o.json")
    ),
    "nothing open": Mistake(
        f"karat {GATE} -o o.json <&- >&- 2>&-", 1, holds=is_json("o.json")
    ),
    "a reader of one line": Mistake(
        "set -o pipefail; karat convert dense.run - --to jsonl | head -1",
        0,
        '"q01"',
    ),
    "a full disk behind the tables": Mistake(
        f"karat {SCORE} -o o.json > /dev/full",
        2,
        "standard output: No space left on device",
        holds=is_json("o.json"),
    ),
    "a full disk behind JSON and a failed gate": Mistake(
        f"karat {GATE} --json > /dev/full", 2, "standard output: No space left"
    ),
    "a full disk behind trec_eval": Mistake(
        "karat trec-eval gold.qrels dense.run > /dev/full", 2, "No space left"
    ),
    "a full disk behind a list": Mistake("karat metrics > /dev/full", 2, "No space"),
    "a full disk behind a run": Mistake(
        "karat convert dense.run - --to jsonl > /dev/full", 2, "No space left"
    ),
    "a full disk behind help": Mistake("karat --help > /dev/full", 2, "No space left"),
    "a full disk for the file, not for the tables": Mistake(
        f"ulimit -f 1; karat {SCORE} -o o.json",
        2,
        "0.7526",
        old("o.json"),
        lambda f: (f / "o.json").read_text() == OLD,
    ),
    "a run from a pipe": Mistake(
        "karat evaluate <(cat dense.run) -g gold.qrels -m ndcg@10", 0, "0.7526"
    ),
    "a result into a pipe": Mistake(
        "karat convert dense.run >(cat > copy.jsonl) --to jsonl; sleep 0.5",
        0,
        "",
        holds=lambda f: "q01" in (f / "copy.jsonl").read_text(),
    ),
    "an empty pipe": Mistake("true | karat evaluate - -g gold.qrels", 2, "is empty"),
    "a summary that cannot be written": Mistake(
        f"GITHUB_STEP_SUMMARY=/no/such karat {GATE}", 1, "cannot write /no/such"
    ),
    "a summary that is a folder": Mistake(
        f"GITHUB_STEP_SUMMARY=. karat {GATE}", 1, "cannot write .: Is a directory"
    ),
}


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/dev/full").exists() or shutil.which("bash") is None,
    reason="needs bash and /dev/full",
)
@pytest.mark.parametrize("title", PIPED)
def test_a_mistake_with_a_pipe_is_right_or_said(title: str, folder: Path) -> None:
    mistake = PIPED[title]
    mistake.prepare(folder)
    done = shell(mistake.words, folder)
    said = " ".join((done.out + done.err).split())
    assert done.code == mistake.code, said
    assert mistake.says in said
    assert "bug in karat" not in said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert mistake.holds(folder)


def test_an_interrupt_while_a_file_is_written_leaves_the_old_one(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    (folder / "o.json").write_text(OLD)
    monkeypatch.setattr("os.fsync", interrupt)
    assert karat(*SCORE.split(), "-o", "o.json").code == 130
    assert (folder / "o.json").read_text() == OLD
    assert not [*folder.glob(".*.part")]


def test_many_writers_of_one_file_leave_one_whole(tmp_path: Path) -> None:
    texts = [str(n) * 50_000 for n in range(8)]
    threads = [
        threading.Thread(target=write_file, args=(tmp_path / "o.txt", text))
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "o.txt").read_text() in texts
    assert [path.name for path in tmp_path.iterdir()] == ["o.txt"]
