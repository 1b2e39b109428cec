"""Every command: where its settings come from, and what it says beside its tables.

A flag beats `KARAT_*` in the environment, which beats the default; `-v` prints each
value with its origin. The names are those of the long options: `--fail-under` is
`KARAT_FAIL_UNDER`. What is about a model may also stand in `karat.yaml` of the current
folder, under `judging:`, which the environment beats.
"""

import logging
import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from karat.errors import FormatError, UnknownNameError

SETTINGS = "karat.yaml"
SUITES = "suites"
"""The section of evaluations that are written down, which `karat suite` reads."""
JUDGING = "judging"
"""The section for all commands that ask a model: its names are their options."""
_ORIGINS = {
    ParameterSource.COMMANDLINE: "flag",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: SETTINGS,
    ParameterSource.DEFAULT: "default",
}
# What options are about, by their names; where they are few, help is one list.
_HEADINGS = {
    "Files": "gold queries mapping format by parts output keep json no_text",
    "Metrics": "metrics k match slice explain",
    "Policies": "profile threshold depth judged_only order undefined missing extra "
    "duplicates identical ties force",
    "Gates": "baseline gate_tags allow_noise require_noninferior strict fail_under "
    "fail_under_low max_drop",
    "Options": "",
}
_MANY = 20
COUNT = click.IntRange(min=1)
"""A whole number of one or more."""
log = logging.getLogger("karat")
# What PyYAML raises of a value that is not what its tag or its look promises.
_UNREADABLE = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
    RecursionError,
)
_UNSET: tuple[Any, ...] = (None, (), {}, False)

flag = partial(click.option, is_flag=True)
PATH = click.Path(readable=False)
"""A path, which shells complete; whoever reads it says what is wrong with it."""
file_option = partial(click.option, metavar="FILE", type=PATH)
file_argument = partial(click.argument, type=PATH)


class GroupedOption(click.Option):
    """An option that help shows under a heading of its own."""

    def __init__(self, *args: Any, heading: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.heading = heading


class Command(click.Command):
    """A command whose options may also be set in the environment and in a file."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        verbose = click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=lambda _, __, value: speak(logging.INFO) if value else None,
            help="Show what karat does, and why.",
        )
        self.params.append(verbose)
        self._options = [one for one in self.params if isinstance(one, click.Option)]
        self._judging: dict[str, click.Option] = {}
        for option in self._options:
            names = _names(option)
            option.envvar = [f"KARAT_{name.upper()}" for name in names]
            if getattr(option, "heading", "").lower() == JUDGING:
                self._judging |= dict.fromkeys(names, option)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take what the file says about a model where no flag and no variable does."""
        settings: dict[str, Any] = {}
        for name, value in (_read_file() if self._judging else {}).items():
            option = self._judging.get(str(name).replace("-", "_"))
            if option is None:
                kind = f"setting of {JUDGING}"
                unknown = UnknownNameError(kind, str(name), self._judging)
                raise FormatError(str(unknown), path=SETTINGS)
            settings[str(option.name)] = _as_typed(option, value)
        ctx.default_map = settings
        return super().parse_args(ctx, args)

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """The options, those of one matter under its heading."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in _HEADINGS}
        headings = {n: title for title, own in _HEADINGS.items() for n in own.split()}
        if len(self.params) < _MANY:
            headings = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                own = headings.get(str(option.name), "Options")
                heading = getattr(option, "heading", own)
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Carry the command out, saying first where its settings come from."""
        in_file = []
        for option in self._options:
            name = str(option.name)
            value, origin = ctx.params.get(name), ctx.get_parameter_source(name)
            if origin is ParameterSource.DEFAULT_MAP:
                in_file.append(name)
            is_set = value not in _UNSET or type(value) in (int, float)
            if origin and is_set and log.isEnabledFor(logging.INFO):
                log.info("%s = %s (%s)", name, _shown(value), _ORIGINS[origin])
        if in_file and not log.isEnabledFor(logging.INFO):
            # A file that lies around must never act unseen; -v tells more anyway.
            remark(f"from {SETTINGS}: {', '.join(in_file)}")
        return super().invoke(ctx)


def _names(option: click.Option) -> list[str]:
    """What a file and the environment may call an option: each of its long names."""
    long = [name[2:].replace("-", "_") for name in option.opts if name[:2] == "--"]
    return list(dict.fromkeys([str(option.name), *long]))


def by_flag(name: str) -> bool:
    """Whether a setting was typed for this call; others stand for all commands."""
    origin = click.get_current_context().get_parameter_source(name)
    return origin is ParameterSource.COMMANDLINE


def remark(text: str, *, alarm: bool = False) -> None:
    """Say something beside the results, on stderr."""
    say(f"karat: {text}", err=True, alarm=alarm)


def say(line: str, *, err: bool = False, alarm: bool = False) -> None:
    """Print a line, an alarm in red; nothing in it plays tricks on the terminal."""
    text = line
    if not line.isprintable():
        text = "".join(mark if mark.isprintable() else "?" for mark in line)
    if alarm and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        text = click.style(text, fg="red", bold=True)
    # As it is now: a bar that is shown takes its place, and keeps lines above itself.
    click.echo(text, file=sys.stderr if err else None)


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # Looked up anew each time: tests and notebooks replace it.
        remark(self.format(record))


_STDERR = _Stderr()


def speak(level: int) -> None:
    """Print what karat logs at this level and above, on stderr."""
    log.setLevel(level)
    log.addHandler(_STDERR)


def _read_file() -> Mapping[str, Any]:
    """The settings of judging in the current folder."""
    if not os.path.isfile(SETTINGS):  # noqa: PTH113  pathlib takes long to import
        return {}
    # Only who has such a file pays for importing its reader.
    import yaml  # noqa: PLC0415

    try:
        with open(SETTINGS, encoding="utf-8") as stream:  # noqa: PTH123
            sections = yaml.safe_load(stream) or {}
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


def _as_typed(option: click.Option, value: Any) -> str | list[str]:
    """A value of the file as it would be typed: `a=b` for the pairs of a mapping."""
    if option.multiple and isinstance(value, Mapping):
        value = [f"{name}={_as_text(entry)}" for name, entry in value.items()]
    entries = value if option.multiple and isinstance(value, list) else [value]
    for entry in entries:
        if not isinstance(entry, str | int | float | bool):
            raise FormatError(
                f"{option.name} must be a text, a number or yes/no, "
                f"got {type(entry).__name__}",
                path=SETTINGS,
            )
    texts = [*map(_as_text, entries)]
    return texts if option.multiple else texts[0]


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    import json  # noqa: PLC0415  many a command needs none

    try:
        return json.dumps(value, default=str)
    except (ValueError, TypeError, RecursionError) as error:
        raise FormatError(f"cannot be read: {error}", path=SETTINGS) from None


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{ours}={theirs}" for ours, theirs in value.items())
    return str(value)
