"""A server that judges as it is taught, for commands that run as a user's would."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from karat.extend import Prompt
from tests.cli.conftest import Done
from tests.llm.fault_server import FaultServer, completion

__all__ = ["answering", "carried_out", "started", "written"]

Answer = tuple[Any, ...]
# A shell's jobs in the background ignore interrupts, and so would their children.
_KARAT = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("karat", run_name="__main__")
"""


def _prompt_of(request: Mapping[str, Any]) -> Prompt:
    """The prompt that a request carries."""
    system, user = (message["content"] for message in request["messages"])
    form = request["response_format"]["json_schema"]
    return Prompt(system, user, form["schema"], form["name"])


def answering(
    answer: Callable[[Prompt], str],
    before: Callable[[dict[str, Any]], Answer | None] = lambda _: None,
) -> FaultServer:
    """A server that replies by a function, unless `before` has an answer already."""

    def respond(request: dict[str, Any]) -> Answer:
        return before(request) or (200, completion(answer(_prompt_of(request))))

    return FaultServer(answer=respond)


def _environment(**more: str) -> dict[str, str]:
    """A user's environment: nothing of ours is set in it."""
    ours = ("KARAT_", "OPENAI_", "COLUMNS")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    path = os.pathsep.join(filter(None, sys.path))
    return {**kept, "PYTHONPATH": path, **more}


def started(
    arguments: Sequence[str], folder: Path, **more: str
) -> "subprocess.Popen[str]":
    """The command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", _KARAT, *arguments],
        cwd=folder,
        env=_environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def carried_out(arguments: Sequence[str], folder: Path, **more: str) -> Done:
    """What the command left behind as a process of its own."""
    process = started(arguments, folder, **more)
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def written(folder: Path, samples: Sequence[Mapping[str, Any]]) -> str:
    """The name of a file with these samples."""
    lines = (json.dumps(sample) + "\n" for sample in samples)
    (folder / "samples_of_bread.jsonl").write_text("".join(lines), "utf-8")
    return "samples_of_bread.jsonl"
