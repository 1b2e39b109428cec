"""`make walk`: the way of ordinary calls through the rooms of karat.

Each call is made twice on tiny inputs; the second is followed, when all imports are
done. A room is a folder of `src/karat`, or a module that lies beside them.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import karat
from karat.cli import karat as command
from karat.extend import Claims, FunctionClient, JudgeSession, Settings

SOURCE = str(Path(karat.__file__).parent)
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
BEGIN, END = "<!-- written by make walk -->", "<!-- end -->"
RUN = {f"q{q}": {f"d{d}": 1.0 / (d + 1) for d in range(5)} for q in range(30)}
GOLD = {f"q{q}": {f"d{q % 7}": 1} for q in range(30)}
SAMPLE = {
    "id": "q1",
    "query": "How are rolls baked?",
    "retrieved": [{"id": "d1", "text": "Rolls are baked hot."}],
    "reference": "Rolls are baked hot.",
    "claims": ["Rolls are baked hot."],
}


@dataclass(frozen=True)
class Walk:
    """What a call went through.

    Attributes:
        rooms: in the order in which they are first entered.
        functions: how many of karat's functions ran.
        modules: in how many modules they are.
        depth: how many of them waited for each other at most.
    """

    rooms: tuple[str, ...]
    functions: int
    modules: int
    depth: int


def follow(call: Callable[[], object]) -> Walk:
    """What the second of two calls goes through."""
    call()
    seen: dict[tuple[str, str, int], None] = {}
    now = deepest = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal now, deepest
        code = frame.f_code
        if not code.co_filename.startswith(SOURCE) or event not in {"call", "return"}:
            return
        now += 1 if event == "call" else -1
        deepest = max(deepest, now)
        seen.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = dict.fromkeys(file for file, _, _ in seen)
    rooms = (Path(file).relative_to(SOURCE).parts[0] for file in files)
    names = tuple(dict.fromkeys(name.removesuffix(".py") for name in rooms))
    return Walk(names, len(seen), len(files), deepest)


def write_inputs() -> None:
    """The files that the calls read, in the working folder."""
    lines = [f"{q} Q0 {d} 0 {s} a" for q, row in RUN.items() for d, s in row.items()]
    Path("a.run").write_text("\n".join(lines) + "\n", "utf-8")
    other = [line.replace(" d1 ", " d6 ") for line in lines]
    Path("b.run").write_text("\n".join(other) + "\n", "utf-8")
    labels = [f"{q} 0 {d} 1" for q, row in GOLD.items() for d in row]
    Path("gold.qrels").write_text("\n".join(labels) + "\n", "utf-8")
    samples = [
        {"id": q, "retrieved": [*row], "relevant": [*GOLD[q]]} for q, row in RUN.items()
    ]
    Path("samples.jsonl").write_text("\n".join(map(json.dumps, samples)), "utf-8")


def _command(*words: str) -> None:
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        command(words, standalone_mode=False)


def _judged() -> object:
    verdict = {"claim": 1, "alone": [1], "parts": [], "complete": False, "reason": "so"}
    reply = json.dumps({"verdicts": [verdict]})
    client = FunctionClient(lambda _: reply)
    session = JudgeSession(client, Settings(journal=None))
    return karat.evaluate([SAMPLE], metrics=["context_recall"], judge=Claims(session))


CALLS: dict[str, Callable[[], object]] = {
    "evaluate(dicts)": lambda: karat.evaluate(RUN, gold=GOLD),
    "evaluate(a.run)": lambda: karat.evaluate("a.run", gold="gold.qrels"),
    "evaluate(samples.jsonl)": lambda: karat.evaluate("samples.jsonl"),
    "karat compare": lambda: _command(
        "compare", "a.run", "b.run", "--gold", "gold.qrels"
    ),
    "karat diagnose": lambda: _command(
        "diagnose", "a.run", "--gold", "gold.qrels", "-o", "page.html"
    ),
    "a judged claim": _judged,
}


def walks() -> Iterator[tuple[str, Walk]]:
    """Each call and what it goes through."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_inputs()
        for name, call in CALLS.items():
            yield name, follow(call)


def section(ways: dict[str, Walk]) -> str:
    """What docs/architecture.md says of the way of each call."""
    lines = [f"- {name}: {', '.join(walk.rooms)}" for name, walk in ways.items()]
    return "\n".join([BEGIN, *lines, END])


def main() -> None:
    """Print all walks, and write their rooms into docs/architecture.md."""
    ways = dict(walks())
    for name, walk in ways.items():
        count = f"{walk.functions} functions in {walk.modules} modules"
        way = " > ".join(walk.rooms)
        sys.stdout.write(f"{name}: {count}, {walk.depth} deep\n    {way}\n")
    text = PAGE.read_text("utf-8")
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    PAGE.write_text(before + section(ways) + after, "utf-8")


if __name__ == "__main__":
    main()
