"""The command `karat`: one module per command, imported when the command is called.

Exit codes: 0 ok, 1 a gate failed, 2 a usage or data error, 3 incomplete.
"""

import logging
import os
import sys
from importlib import import_module

import click

from karat.errors import KaratError
from karat.version import __version__

__all__ = ["main"]

_USAGE = 2
_INTERRUPTED = 130

# The command, and what `karat --help` says of it without importing its module.
COMMANDS = {
    "evaluate": "Score one or more runs against gold.",
    "trec-eval": "Score like the trec_eval binary, line for line.",
    "metrics": "List the metrics, or explain one.",
    "validate": "Check files and say what is wrong, and where.",
    "convert": "Turn a run or gold of any format into any other.",
    "demo": "Score two retrievers on a small bundled help centre.",
}
ALIASES = {"eval": "evaluate"}


class Commands(click.Group):
    """Finds a command by its name and imports only that one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of their use."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None, which click turns into a usage error."""
        del ctx
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = import_module(f"karat.cli.{name.replace('-', '_')}")
        command: click.Command = module.command
        return command

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
@click.option("-v", "--verbose", is_flag=True, help="Say what is done, and why.")
def karat(*, verbose: bool) -> None:
    """Measure how good a retriever is."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="karat: %(message)s",
        stream=sys.stderr,
    )


def main() -> None:
    """Run the command line; a user's mistake is a sentence, never a traceback."""
    try:
        karat(prog_name="karat", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(_USAGE)
    except KaratError as error:
        print(f"karat: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(_USAGE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        # The reader has seen enough; writing more must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
