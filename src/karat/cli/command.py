"""Every command: where its settings come from, and what it says beside its tables.

A flag beats `KARAT_*` in the environment, which beats the default; `-v` prints each
value with its origin. The names are those of the long options: `--fail-under` is
`KARAT_FAIL_UNDER`. What is about a model may also stand in `karat.yaml` of the current
folder, under `judging:`, which the environment beats.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from karat.errors import FormatError, UnknownNameError

F = TypeVar("F", bound=Callable[..., Any])
PREFIX = "KARAT"
SETTINGS = "karat.yaml"
SUITES = "suites"
"""The section of evaluations that are written down, which `karat suite` reads."""
JUDGING = "judging"
"""The section for all commands that ask a model."""
ORIGINS = {
    ParameterSource.COMMANDLINE: "flag",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: SETTINGS,
    ParameterSource.DEFAULT: "default",
}
COUNT = click.IntRange(min=1)
"""A whole number of one or more."""
log = logging.getLogger("karat")
# What PyYAML raises of a value that is not what its tag or its look promises.
_UNREADABLE = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
    RecursionError,
)
_TYPES = {"INTEGER": int, "FLOAT": float}
_UNSET: tuple[Any, ...] = (None, (), {}, False)


def option(spelling: str, about: str | None = None, **more: Any) -> Callable[[F], F]:
    """An option, spelled as its help shows it, as in `-o --output FILE`.

    What it takes stands last, with a star if the option may be repeated; without that
    and without a type it is a flag. A word in lower case is its name in Python, and a
    list as type says all that it may be.
    """
    words = spelling.split()
    names = [word for word in words if word[0] == "-" or word.islower()]
    takes = "".join(word for word in words if word not in names)
    if takes in _TYPES:
        more["type"] = _TYPES[takes]
    elif takes:
        more |= {"metavar": takes.rstrip("*"), "multiple": takes[-1] == "*"}
    elif "type" not in more:
        more["is_flag"] = True
    elif isinstance(more["type"], list):
        more["type"] = click.Choice(more["type"])
    return click.option(*names, help=about, **more)


class Command(click.Command):
    """A command whose options may also be set in the environment and in a file."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        verbose = click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=lambda _, __, value: speak(logging.INFO) if value else None,
            help="Say what is done, and why.",
        )
        self.params.append(verbose)
        for option in self.params:
            if isinstance(option, click.Option) and len(names := _names(option)) > 1:
                option.envvar = [f"{PREFIX}_{name.upper()}" for name in names]

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """The context, with what the environment and the file say."""
        extra.setdefault("auto_envvar_prefix", PREFIX)
        extra.setdefault("default_map", self._settings())
        return super().make_context(info_name, args, parent, **extra)

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """The options, those of one matter under its heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                heading = getattr(option, "heading", "Options")
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Carry the command out, saying first where its settings come from."""
        origins = {name: ctx.get_parameter_source(name) for name in ctx.params}
        in_file = [n for n, o in origins.items() if o is ParameterSource.DEFAULT_MAP]
        if in_file and not log.isEnabledFor(logging.INFO):
            # A file that lies around must never act unseen; -v tells more anyway.
            click.echo(f"karat: from {SETTINGS}: {', '.join(in_file)}", err=True)
        for option in self.get_params(ctx):
            name = option.name or ""
            origin, value = origins.get(name), ctx.params.get(name)
            is_set = value not in _UNSET or type(value) in (int, float)
            if isinstance(option, click.Option) and is_set and origin:
                log.info("%s = %s (%s)", name, _shown(value), ORIGINS[origin])
        return super().invoke(ctx)

    def _settings(self) -> dict[str, Any]:
        """What the file says about the model that is asked, if one may be asked."""
        options = {
            name: option
            for option in self.params
            if isinstance(option, click.Option)
            and getattr(option, "heading", "").lower() == JUDGING
            for name in _names(option)
        }
        settings = {}
        for name, value in (_read_file() if options else {}).items():
            if (option := options.get(str(name).replace("-", "_"))) is None:
                unknown = UnknownNameError(f"setting of {JUDGING}", str(name), options)
                raise FormatError(str(unknown), path=SETTINGS)
            settings[str(option.name)] = _as_click_takes_it(option, value)
        return settings


def _names(option: click.Option) -> list[str]:
    """What a file and the environment may call an option: each of its long names."""
    long = [name[2:].replace("-", "_") for name in option.opts if name[:2] == "--"]
    return list(dict.fromkeys([str(option.name), *long]))


def say(line: str, *, err: bool = False, alarm: bool = False) -> None:
    """Print a line; ids and file names in it cannot play tricks on the terminal.

    Args:
        line: what to say.
        err: on stderr.
        alarm: in red, on a terminal where colours are welcome.
    """
    text = harmless(line)
    if alarm and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        text = click.style(text, fg="red", bold=True)
    # As it is now: a bar that is shown takes its place, and keeps lines above itself.
    click.echo(text, file=sys.stderr if err else None)


def harmless(line: str) -> str:
    r"""The line with a `?` for all that would move the cursor, or hide or colour text.

    Example:
        >>> harmless("q1\x1b[2J\rall is well")
        'q1?[2J?all is well'
    """
    if line.isprintable():
        return line
    return "".join(mark if mark.isprintable() else "?" for mark in line)


def speak(level: int) -> None:
    """Print what karat logs at this level and above, on stderr."""
    log.setLevel(level)
    if not any(isinstance(handler, _Stderr) for handler in log.handlers):
        handler = _Stderr()
        handler.setFormatter(logging.Formatter("karat: %(message)s"))
        log.addHandler(handler)


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # Looked up anew each time: tests and notebooks replace it.
        say(self.format(record), err=True)


def _read_file() -> Mapping[str, Any]:
    """The settings of judging in the current folder."""
    if not os.path.isfile(SETTINGS):  # noqa: PTH113  pathlib takes long to import
        return {}
    # Only who has such a file pays for importing its reader.
    import yaml  # noqa: PLC0415

    try:
        with open(SETTINGS, encoding="utf-8") as file:  # noqa: PTH123
            sections = yaml.safe_load(file) or {}
    except (yaml.YAMLError, *_UNREADABLE) as error:
        problem = " ".join(str(error).split())
        raise FormatError(f"not readable as YAML: {problem}", path=SETTINGS) from None
    whole = isinstance(sections, dict) and {*sections} <= {JUDGING, SUITES}
    judging = (sections.get(JUDGING) or {}) if whole else None
    if not isinstance(judging, dict):
        raise FormatError(
            f"must hold the sections {SUITES} and {JUDGING}, of names and values",
            path=SETTINGS,
            hint="a suite says what is measured, and by which gates: karat init",
        )
    return judging


def _as_click_takes_it(option: click.Option, value: Any) -> Any:
    """A list for an option that may be repeated, `a=b` for the pairs of a mapping."""
    if option.multiple and isinstance(value, Mapping):
        value = [f"{_scalar(option, k)}={_written(v)}" for k, v in value.items()]
    entries = value if option.multiple and isinstance(value, list) else [value]
    # A text is checked like one of the command line, whatever type YAML gave it.
    written = [_written(_scalar(option, entry)) for entry in entries]
    return written if option.multiple else written[0]


def _written(value: Any) -> str:
    """A value as it stands after `=` on the command line."""
    if isinstance(value, str):
        return value
    import json  # noqa: PLC0415  many a command needs none

    try:
        return json.dumps(value, default=str)
    except (ValueError, TypeError, RecursionError) as error:
        raise FormatError(f"cannot be read: {error}", path=SETTINGS) from None


def _scalar(option: click.Option, value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return value
    raise FormatError(
        f"{option.name} must be a text, a number or yes/no, got {type(value).__name__}",
        path=SETTINGS,
    )


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{ours}={theirs}" for ours, theirs in value.items())
    return str(value)
