"""Runs one command again and again, and stops it at every place where it writes.

Called as `python interrupted.py FOLDER WORK ARGUMENT...`, it prints a line of JSON for
each way in which the command was disturbed: how it ended, what it left in which file.
"""

import contextlib
import io
import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

# A process with threads must not be forked.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from karat.cli import main

CHANGES = ("os.rename", "os.remove", "os.chmod", "os.chown", "os.mkdir")
BYTES = (0, 1, 60, 500)


def kill_at(number: int) -> None:
    """Kill this process before its change of that number to the folder."""
    seen, here = count(), Path.cwd()

    def hook(event: str, details: tuple[object, ...]) -> None:
        writes = event == "open" and int(str(details[2] or 0)) & os.O_ACCMODE
        changes = (writes or event in CHANGES) and isinstance(details[0], str | Path)
        inside = changes and Path(str(details[0])).absolute().is_relative_to(here)
        if inside and next(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def limit(size: int, *, kill: bool) -> None:
    """Let no file grow beyond a size: an error, as of a full disk, or a kill."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if kill else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def broken(*streams: int) -> None:
    """Make streams pipes that nobody reads."""
    for stream in streams:
        read, write = os.pipe()
        os.dup2(write, stream)
        os.close(read)


def full(stream: int) -> None:
    """Make a stream a device that has no space."""
    os.dup2(os.open("/dev/full", os.O_WRONLY), stream)


def disturbed(
    folder: Path, work: Path, arguments: list[str], how: Callable[[], object]
) -> dict[str, Any]:
    """How a command ends in a copy of the folder, and what its files hold then."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder, work, symlinks=True)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        code = 99
        try:
            os.chdir(work)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(write, 2)
            how()
            # What they were at the start of this process, they no longer are.
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", 1, closefd=False)  # noqa: SIM115
            main(arguments)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            with contextlib.suppress(OSError):
                sys.stderr.flush()
            os._exit(code)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as stream:
        said = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    files = {
        str(path.relative_to(work)): path.read_bytes().decode("latin-1")
        for path in sorted(work.rglob("*"))
        if path.is_file() and not path.name.endswith(".part")
    }
    return {"code": status, "files": files, "err": said}


def all_ways(
    folder: Path, work: Path, arguments: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The command undisturbed, and then disturbed in every way."""
    ways: dict[str, Callable[[], object]] = {
        "whole": lambda: None,
        "no reader": lambda: broken(1),
        "no listener": lambda: broken(2),
        "neither": lambda: broken(1, 2),
        "full output": lambda: full(1),
        "full error": lambda: full(2),
    }
    for size in BYTES:
        ways[f"full disk at {size}"] = partial(limit, size, kill=False)
        ways[f"killed in byte {size}"] = partial(limit, size, kill=True)
    # What is imported once need not be imported by each child.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        shutil.copytree(folder, work, symlinks=True)
        os.chdir(work)
        main(arguments)
    os.chdir(folder)
    for name, how in ways.items():
        yield name, disturbed(folder, work, arguments, how)
    for number in count():
        done = disturbed(folder, work, arguments, partial(kill_at, number))
        if done["code"] != -signal.SIGKILL:
            return
        yield f"killed at change {number}", done


if __name__ == "__main__":
    for way in all_ways(
        Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]
    ):
        sys.stdout.write(json.dumps(way) + "\n")
        sys.stdout.flush()
