"""Documentation pages as programs: what their blocks print is what they must show.

- A `python` block is executed; the `text` block that follows is what it prints. The
  blocks of a page share their names. As in a notebook, `await` may stand anywhere, and
  the value of a last line that is an expression is shown.
- In a `console` block, lines that start with `$ ` are commands, run by the shell in the
  folder of the page; the lines below are what they print, errors included.
- A block with `title="NAME"` is a file of that name in that folder.

A line `...` in expected output stands for any lines.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"^```(?P<language>\w+)(?P<info>[^\n]*)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(r'title="([^"]+)"')
_ANYTHING = "..."


@dataclass(frozen=True)
class Block:
    """A fenced block and where it stands in the text of its page."""

    language: str
    file: str | None
    body: str
    start: int
    end: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            found["language"],
            file.group(1) if (file := _FILE.search(found["info"])) else None,
            found["body"],
            found.start(),
            found.end(),
        )
        for found in _BLOCK.finditer(text)
    ]


def executed(text: str, folder: Path) -> str:
    """The page with what its blocks print now; the same text if nothing changed."""
    parts = []
    names: dict[str, Any] = {"__name__": "page"}
    position = 0
    every = blocks(text)
    for place, block in enumerate(every):
        if block.file is not None:
            (folder / block.file).write_text(block.body, "utf-8")
        elif block.language == "python":
            printed = _run_python(block.body, names, folder)
            shown = every[place + 1] if place + 1 < len(every) else None
            if shown and shown.language == "text" and not shown.file:
                gap = text[block.end : shown.start]
            else:
                shown, gap = None, ""
            if shown is None or gap.strip():
                parts.append(text[position : block.end])
                position = block.end
                if printed:
                    parts.append(f"\n\n```text\n{printed}```")
            else:
                parts.append(text[position : shown.start])
                parts.append(f"```text\n{_kept(shown.body, printed)}```")
                position = shown.end
        elif block.language == "console":
            parts.append(text[position : block.start])
            parts.append(f"```console\n{''.join(_run_console(block.body, folder))}```")
            position = block.end
    return "".join([*parts, text[position:]])


def _run_python(code: str, names: dict[str, Any], folder: Path) -> str:
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        awaited = eval(_cell(code), names)
        if inspect.iscoroutine(awaited):
            asyncio.run(awaited)
    return printed.getvalue()


def _cell(code: str) -> CodeType:
    """The code as a notebook would run it."""
    tree = ast.parse(code)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        show = ast.parse("__import__('sys').displayhook", mode="eval").body
        last.value = ast.Call(show, [last.value], [])
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    cell: CodeType = compile(ast.fix_missing_locations(tree), "page", "exec", flags)
    return cell


def _run_console(body: str, folder: Path) -> Iterator[str]:
    for session in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
        if not session.startswith("$ "):
            yield session
            continue
        lines = session.splitlines(keepends=True)
        size = next(n for n, line in enumerate(lines, 1) if not line.endswith("\\\n"))
        command = "".join(lines[:size]).removeprefix("$ ")
        printed = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        ).stdout
        yield f"$ {command}{_kept(''.join(lines[size:]), printed)}"


def _environment() -> dict[str, str]:
    """This process' environment, with the installed `karat` found first."""
    ours = ("KARAT_", "OPENAI_")
    quiet = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    quiet.pop("COLUMNS", None)
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    key = {"OPENAI_API_KEY": "of-nobody"}
    return {**quiet, **key, "PATH": path, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


def _kept(expected: str, printed: str) -> str:
    """What is expected, if it says the same with `...` for some lines."""
    if f"{_ANYTHING}\n" not in expected.splitlines(keepends=True):
        return printed
    pattern = "".join(
        "(?:.*\n)*?" if line.rstrip() == _ANYTHING else re.escape(line)
        for line in expected.splitlines(keepends=True)
    )
    return expected if re.fullmatch(pattern, printed) else printed
