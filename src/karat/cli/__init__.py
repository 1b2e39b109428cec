"""The command `karat`: one module per command, imported when the command is called.

Exit codes: 0 ok, 1 a gate failed, 2 a usage or data error, 3 incomplete.
"""

import gc
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

import click

from karat.catalogue import PLUGINS
from karat.cli.command import log, remark, speak
from karat.errors import IncompleteError, KaratError
from karat.version import __version__

__all__ = ["ALIASES", "COMMANDS", "karat", "main"]

_USAGE = 2
_INCOMPLETE = 3
_INTERRUPTED = 130
_STDOUT, _STDERR = 1, 2

# Reading makes many objects and no cycles: to look for those after every few hundred
# takes a twentieth of the time of a large run.
_OBJECTS = 100_000

# The command, and what `karat --help` says of it without importing its module.
COMMANDS = {
    "evaluate": "Score one or more runs against gold.",
    "retrieve": "Run every query through a retriever and save the results.",
    "compare": "Compare runs: is one better than another, and how?",
    "diagnose": "Find out why gold was missed, and what would help.",
    "plot": "Draw curves, means, distributions and headroom as SVG or PNG.",
    "init": "Write a suite for the files of this folder.",
    "suite": "Run an evaluation defined in karat.yaml.",
    "baseline": "Pin the evaluation that drops are measured from.",
    "push": "Add an evaluation to a history of runs.",
    "history": "Show runs over commits, scored by today's gold.",
    "fuse": "Combine several runs into one, and show what each adds.",
    "agree": "Show how similar two runs are, without any gold.",
    "pool": "Choose documents of several runs for people to label.",
    "judge": "Have a language model label what runs retrieved.",
    "generate": "Have a language model write questions that a corpus answers.",
    "label": "Let people label: make a page or a plan, and gold from labels.",
    "serve": "Show a history store in a browser, and label there.",
    "trec-eval": "Score like the trec_eval binary, line for line.",
    "metrics": "List the metrics, or explain one.",
    "matchers": "List the matchers, or explain one.",
    "doctor": "Find problems in gold, and fix those that are safe to fix.",
    "validate": "Check files, and show what is wrong and where.",
    "convert": "Convert a run or gold to another format.",
    "cache": "Show or clear the kept replies of language models.",
    "demo": "Score two retrievers on a small bundled help centre.",
}
ALIASES = {"eval": "evaluate"}
# What people type for what another command does.
_ELSEWHERE = {
    "report": "karat evaluate RUN --gold GOLD -o report.html writes a page",
    "explain": "karat evaluate RUN --gold GOLD --explain QUERY explains a query",
    "sweep": "karat suite runs the sweep in karat.yaml; in Python, use karat.sweep",
}
# Commands that multiply matrices, for which NumPy's threads pay.
_MATRICES = ("compare", "suite", "history")


class _Stream(FileIO):
    """Standard output or error: a reader that leaves, as `head` does, changes nothing.

    Whoever has seen enough gets no more. Errors are said as long as anybody listens;
    output that a full disk cannot take is an error.
    """

    def write(self, data: Any) -> int:
        """Write, or drop what nobody reads."""
        try:
            # Nothing, by which click sees what a stream takes, finds no disk full.
            return super().write(data) if len(data) else 0
        except OSError as error:
            # What is printed from now on must not complain again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if not isinstance(error, BrokenPipeError) and self.fileno() == _STDOUT:
                error.filename = "standard output"
                raise
            return len(data)


class Commands(click.Group):
    """Finds a command by its name and imports only that one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of their use."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None, which click turns into a usage error."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name in COMMANDS:
            if name not in _MATRICES:
                # NumPy starts threads for products of large matrices: a sixth of all
                # the time that a small file takes.
                os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            module = import_module(f"karat.cli.{name.replace('-', '_')}")
            command: click.Command = module.command
            return command
        from difflib import get_close_matches  # noqa: PLC0415  for mistakes only

        names = [*COMMANDS, *ALIASES]
        hint = _ELSEWHERE.get(cmd_name)
        if close := get_close_matches(cmd_name.lower().replace("_", "-"), names, n=1):
            hint = hint or f"did you mean {close[0]!r}?"
        return ctx.fail(f"No such command {cmd_name!r}; {hint}") if hint else None

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """The list of commands, without importing any of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: karat demo",
)
@click.version_option(__version__, "-V", "--version", message="karat %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Show what karat does, and why.")
def karat(*, verbose: bool) -> None:
    """Measure how good a retriever is."""
    speak(logging.INFO if verbose else logging.WARNING)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's mistake is a sentence, never a traceback."""
    gc.set_threshold(_OBJECTS)
    _prepare_streams()
    log.setLevel(logging.WARNING)
    try:
        try:
            karat(arguments, prog_name="karat", standalone_mode=False)
        finally:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as mistake:
        _complain_of_usage(mistake)
    except IncompleteError as error:
        _complain(str(error), _INCOMPLETE)
    except KaratError as error:
        _complain(str(error))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_INTERRUPTED)
    except OSError as error:
        _complain(
            ": ".join(filter(None, [error.filename, error.strerror])) or str(error)
        )
    except (Exception, SystemExit) as error:
        plugin = _plugin_of(error)
        if plugin is None and isinstance(error, SystemExit):
            raise
        # The last line of defence: a bug of ours, said in one sentence.
        if log.isEnabledFor(logging.INFO):
            traceback.print_exc()
        whose = "in karat, please report it" if plugin is None else f"of {plugin}"
        text = " ".join(str(error).split())[:300]
        _complain(
            f"unexpected {type(error).__name__}: {text}; this is a bug {whose} "
            "(karat -v shows the traceback)"
        )


def _complain_of_usage(mistake: click.ClickException) -> None:
    """Say what click found wrong as karat says it: what, and where help is."""
    # Of click 8.2 on; before, help without arguments is no error.
    if isinstance(mistake, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        mistake.show()
        sys.exit(_USAGE)
    text = mistake.format_message().removeprefix("Invalid value for ").rstrip(".")
    text = text[:1].lower() + text[1:]
    if isinstance(mistake, click.NoSuchOption):  # each version words it in its own way
        text = f"no such option {mistake.option_name!r}"
        if mistake.possibilities:
            text += f"; did you mean {mistake.possibilities[0]!r}?"
    context = getattr(mistake, "ctx", None)
    _complain(f"{text} ({context.command_path} --help)" if context else text)


def _plugin_of(error: BaseException) -> str | None:
    """The plug-in whose code an error comes from, if it does."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        for plugin, what in PLUGINS.items():
            if f"{module}.".startswith(f"{plugin}."):
                return what
    return None


def _prepare_streams() -> None:
    """A stream may be closed, lose its reader, or lack a character, which is a `?`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
            raw = getattr(stream.buffer, "raw", stream.buffer)
            if type(raw) is FileIO and raw.fileno() in (_STDOUT, _STDERR):
                own = _Stream(raw.fileno(), "w", closefd=False)
                stream = TextIOWrapper(
                    own if raw is stream.buffer else BufferedWriter(own),
                    stream.encoding,
                    "replace",
                    line_buffering=stream.line_buffering,
                    write_through=stream.write_through,
                )
        setattr(sys, name, stream)


def _complain(sentence: str, code: int = _USAGE) -> None:
    remark(sentence)
    sys.exit(code)
