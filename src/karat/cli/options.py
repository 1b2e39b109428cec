"""Options and arguments that several commands share."""

import glob
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from karat.data.policies import CHOICES, PROFILES
from karat.errors import FormatError, UnknownNameError, UsageError
from karat.reading.meaning.aliases import FIELDS
from karat.reading.meaning.order import ORDERS

__all__ = [
    "SCORING",
    "existing",
    "gate_options",
    "header_option",
    "judge_options",
    "mapping_option",
    "metric_option",
    "policy_options",
    "writable",
]

SCORING = (
    *("match", "k", "profile", "undefined", "missing", "extra", "duplicates"),
    *("ties", "order", "threshold", "queries", "corpus"),
)
"""The options that change scores, by the names that Python has for them."""

F = TypeVar("F", bound=Callable[..., Any])

_PROFILES = [str(policies.profile) for policies in PROFILES.values()]

_ABOUT = {
    "undefined": "scores without a value",
    "missing": "gold queries that the run lacks",
    "extra": "run queries without gold",
    "duplicates": "documents retrieved twice",
    "identical": "documents named like their query",
    "ties": "equal scores",
}


def policy_options(command: F) -> F:
    """Add a switch for every policy that can change a number."""
    for name, about in reversed(_ABOUT.items()):
        choice = click.Choice(CHOICES[name])
        text = f"What to do about {about}; {CHOICES[name][0]} unless told."
        command = click.option(f"--{name}", type=choice, help=text)(command)
    text = "Rank small scores first, such as distances, or large ones, also in lists."
    command = click.option("--order", type=click.Choice(ORDERS), help=text)(command)
    command = click.option(
        "--judged-only",
        is_flag=True,
        default=None,
        help="Remove documents without any label from the rankings.",
    )(command)
    command = click.option(
        "--depth",
        type=click.IntRange(min=1),
        metavar="N",
        help="Read only so many documents of each ranking.",
    )(command)
    command = click.option(
        "--threshold", type=float, help="Smallest grade that counts as relevant."
    )(command)
    return click.option(
        "--profile",
        metavar="PROFILE",
        help=f"Policies by name, {', '.join(_PROFILES)}; single switches beat it.",
    )(command)


def metric_option(command: F) -> F:
    """Add the option that names metrics."""
    return click.option(
        "-m",
        "--metric",
        "--metrics",
        "metrics",
        multiple=True,
        metavar="METRIC",
        help="A metric such as ndcg@10; repeat it, or join several with commas.",
    )(command)


def gate_options(command: F) -> F:
    """Add the options that decide whether a build fails."""
    described = (
        ("--fail-under", "Exit 1 when a mean is below the value"),
        ("--fail-under-low", "Exit 1 when the lower limit of its interval is"),
        ("--max-drop", "Exit 1 when a larger drop from the baseline is demonstrated"),
    )
    for name, text in reversed(described):
        command = click.option(
            name, multiple=True, metavar="METRIC=VALUE", help=f"{text}; repeatable."
        )(command)
    for name, text in (
        ("--strict", "Exit 3 when a gate is inconclusive."),
        ("--require-noninferior", "Fail --max-drop unless a smaller drop is shown."),
        ("--gate-tags", "Check --max-drop on the queries of each tag, too."),
    ):
        command = click.option(name, is_flag=True, help=text)(command)
    return command


def _read_parameters(
    context: click.Context, parameter: click.Parameter, pairs: Sequence[str]
) -> Mapping[str, Any]:
    del context
    return {name: _value(text) for name, text in _pairs(parameter, pairs).items()}


class _Header(NamedTuple):
    """A header, whose value may be a key and is not shown."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}: ***"


def _read_headers(
    context: click.Context, parameter: click.Parameter, lines: Sequence[str]
) -> tuple[_Header, ...]:
    del context
    headers = []
    for line in lines:
        # A pair of karat.yaml arrives with = in place of the colon.
        parts = [part.strip() for part in re.split("[:=]", line, maxsplit=1)]
        if len(parts) < len(_Header._fields) or not all(parts):
            # Not shown: it may be a key.
            raise click.BadParameter(f"expected {parameter.metavar}", param=parameter)
        headers.append(_Header(*parts))
    return tuple(headers)


def header_option(command: F) -> F:
    """Add the option for headers of requests to a service."""
    return click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="NAME:VALUE",
        callback=_read_headers,
        help="Sent too; a value $NAME is read from the environment.",
    )(command)


def _value(text: str) -> Any:
    """What JSON makes of it, else the text itself.

    Example:
        >>> _value("0.5"), _value("low"), _value("null"), _value('{"a": true}')
        (0.5, 'low', None, {'a': True})
    """
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def _no_number(name: str) -> None:
    # JSON that servers read has no NaN.
    raise ValueError(name)


def _pairs(parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    read = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (equals and name and value):
            raise click.BadParameter(
                f"expected {parameter.metavar}, got {pair!r}", param=parameter
            )
        read[name] = value
    return read


class _OfJudging(click.Option):
    """An option about the model that is asked, shown under its own heading."""

    heading = "Judging"


_JUDGE: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("--model", {"metavar": "NAME", "help": "The model that judges."}),
    (
        "--base-url",
        {"metavar": "URL", "help": "Its OpenAI-compatible server, if not by env."},
    ),
    ("--votes", {"type": int, "help": "Ask so often; most win, of grades the median."}),
    (
        "--max-tokens",
        {
            "type": int,
            "metavar": "N",
            "help": "The most tokens of a reply (default: 4096).",
        },
    ),
    (
        "--parameter parameters",
        {
            "multiple": True,
            "metavar": "NAME=VALUE",
            "callback": _read_parameters,
            "help": "Sent too, as in reasoning_effort=low; may be repeated.",
        },
    ),
    (
        "--header headers",
        {
            "multiple": True,
            "metavar": "NAME:VALUE",
            "callback": _read_headers,
            "help": "Sent too, as the key of a gateway; may be repeated.",
        },
    ),
    (
        "--prompts",
        {
            "metavar": "FILE",
            "help": "Instructions of your own by name (split, support, grade), or "
            "umbrela.",
        },
    ),
    ("--concurrency", {"type": int, "help": "Calls at once (default: 8)."}),
    ("--rpm", {"type": float, "metavar": "N", "help": "Calls per minute at most."}),
    (
        "--timeout",
        {
            "type": float,
            "metavar": "SECONDS",
            "help": "The longest a call may take (default: 120).",
        },
    ),
    (
        "--max-attempts",
        {
            "type": int,
            "metavar": "N",
            "help": "Calls for one question at most (default: 6).",
        },
    ),
    ("--corpus", {"metavar": "FILE", "help": "Texts of documents, for runs of ids."}),
    (
        "--prices",
        {"metavar": "IN,OUT", "help": "What a million tokens cost, as in 0.15,0.6."},
    ),
    ("--max-calls", {"type": int, "help": "Stop before more calls; resumable."}),
    ("--max-cost", {"type": float, "help": "Stop before it costs more; resumable."}),
    (
        "--max-failures",
        {
            "type": int,
            "help": "Failed judgements allowed before exit 3 (default: 0).",
        },
    ),
    ("--dry-run", {"is_flag": True, "help": "Only say what judging would take."}),
    ("--offline", {"is_flag": True, "help": "Make no call: use kept replies only."}),
    (
        "--journal",
        {"metavar": "FILE", "help": "Where replies are kept, if not under .karat."},
    ),
    ("--retry-errors", {"is_flag": True, "help": "Ask again what failed before."}),
    (
        "--no-text",
        {
            "is_flag": True,
            "help": "Keep prompts out of the journal and texts out of reports; replies "
            "are kept.",
        },
    ),
)


def judge_options(command: F) -> F:
    """Add everything about the model that is asked, and what it may cost."""
    for names, about in reversed(_JUDGE):
        command = click.option(*names.split(), cls=_OfJudging, **about)(command)
    return command


def mapping_option(command: F) -> F:
    """Add `--map ours=theirs`."""
    return click.option(
        "--map",
        multiple=True,
        metavar="OURS=THEIRS",
        callback=_read_mapping,
        help="Which field of the input is which of ours, as in --map query=question.",
    )(command)


def existing(patterns: Sequence[str], *, expand: bool = True) -> list[str]:
    """The paths that the patterns name; a pattern without any file is an error.

    Args:
        patterns: as the user wrote them.
        expand: whether each file is a run of its own; addresses are never expanded.
    """
    if not expand and len(patterns) > 1:
        raise UsageError(
            f"--parts takes one RUN, got {len(patterns)}: a pattern in quotes, as in "
            "'runs/*.parquet', or their folder"
        )
    paths: list[str] = []
    for pattern in patterns:
        plain = pattern == "-" or "://" in pattern or Path(pattern).exists()
        if plain or not expand or not glob.has_magic(pattern):
            paths.append(pattern)
            continue
        found = sorted(glob.glob(pattern))  # noqa: PTH207
        if not found:
            raise UsageError(f"no file matches {pattern!r}")
        paths += found
    if paths.count("-") > 1:
        raise UsageError("standard input can be read once only: one - at most")
    return paths


def writable(target: str, inputs: Sequence[str | None] = ()) -> Path:
    """The path of a file to write; the reasons why it cannot be are errors.

    Args:
        target: as the user wrote it.
        inputs: files that must not be overwritten.
    """
    if not target:
        raise UsageError("the path of the file to write is empty")
    path = Path(target)
    if path.is_dir():
        raise FormatError("is a folder; name a file to write", path=target)
    if not path.parent.is_dir():
        raise FormatError(
            f"cannot be written: there is no folder {str(path.parent)!r}", path=target
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise FormatError("cannot be written: permission denied", path=target)
    if not path.exists() and not os.access(path.parent, os.W_OK):
        raise FormatError(
            f"cannot be written: no permission in {str(path.parent)!r}", path=target
        )
    present = [name for name in inputs if name is not None and Path(name).exists()]
    if path.exists() and any(map(path.samefile, present)):
        raise UsageError(f"{target} is an input, and would be overwritten")
    return path


def _read_mapping(
    context: click.Context, parameter: click.Parameter, pairs: Sequence[str]
) -> Mapping[str, str]:
    del context
    mapping = _pairs(parameter, pairs)
    for ours in mapping:
        if ours not in FIELDS:
            raise UnknownNameError("field", ours, FIELDS)
    return mapping
