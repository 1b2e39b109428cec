"""How a command says what it takes: options, those that several share, and files."""

import glob
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from karat.cli.command import COUNT, option, say
from karat.data.policies import CHOICES, PROFILES
from karat.data.queries import Dataset
from karat.errors import FormatError, UsageError
from karat.reading.files import decode_json
from karat.reading.format import FORMATS
from karat.reading.meaning.aliases import check_names
from karat.reading.meaning.ambiguity import ORDERS
from karat.reading.source import Role
from karat.reading.write import write

F = TypeVar("F", bound=Callable[..., Any])
STDOUT = "-"
PINNED = (Path("karat-baseline.json"), Path(".karat/baseline.json"))
"""Where a baseline is pinned: in the repository, else in a private folder."""


def _several(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for one in reversed(options):
            command = one(command)
        return command

    return add


class _Header(NamedTuple):
    """A header, whose value may be a key and is not shown."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}: ***"


def _read_headers(
    _: click.Context, parameter: click.Parameter, lines: Sequence[str]
) -> tuple[_Header, ...]:
    headers = []
    for line in lines:
        # A pair of karat.yaml arrives with = in place of the colon.
        parts = [part.strip() for part in re.split("[:=]", line, maxsplit=1)]
        if len(parts) < len(_Header._fields) or not all(parts):
            # Not shown: it may be a key.
            raise click.BadParameter(f"expected {parameter.metavar}", param=parameter)
        headers.append(_Header(*parts))
    return tuple(headers)


def _read_parameters(
    _: click.Context, parameter: click.Parameter, pairs: Sequence[str]
) -> Mapping[str, Any]:
    return {name: _value(text) for name, text in _pairs(parameter, pairs).items()}


def _value(text: str) -> Any:
    """What JSON makes of it, else the text itself.

    Example:
        >>> _value("0.5"), _value("low"), _value("null"), _value('{"a": true}')
        (0.5, 'low', None, {'a': True})
    """
    try:
        return decode_json(text)
    except FormatError:
        return text


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


def _read_mapping(
    _: click.Context, parameter: click.Parameter, pairs: Sequence[str]
) -> Mapping[str, str]:
    mapping = _pairs(parameter, pairs)
    check_names(mapping)
    return mapping


gold_option = option("-g --gold --qrels FILE", "What should be found.")
queries_option = option("--queries FILE", "Texts and tags of queries.")
json_option = option("--json", "Print everything as JSON.")
metric_option = option(
    "-m --metric --metrics metrics METRIC*",
    "A metric such as ndcg@10; repeat it, or join several with commas.",
)
mapping_option = option(
    "--map OURS=THEIRS*",
    "Which field of the input is which of ours, as in --map query=question.",
    callback=_read_mapping,
)
header_option = option(
    "--header headers NAME:VALUE*",
    "Sent too; a value $NAME is read from the environment.",
    callback=_read_headers,
)

_PROFILES = ", ".join(str(policies.profile) for policies in PROFILES.values())
_ABOUT = {
    "undefined": "scores without a value",
    "missing": "gold queries that the run lacks",
    "extra": "run queries without gold",
    "duplicates": "documents retrieved twice",
    "identical": "documents named like their query",
    "ties": "equal scores",
}

policy_options = _several(
    option(
        "--profile PROFILE",
        f"Policies by name, {_PROFILES}; single switches beat it.",
    ),
    option("--threshold FLOAT", "Smallest grade that counts as relevant."),
    option("--depth N", "Read only so many documents of each ranking.", type=COUNT),
    option(
        "--judged-only",
        "Remove documents without any label from the rankings.",
        default=None,
    ),
    option(
        "--order",
        "Rank small scores first, such as distances, or large ones, also in lists.",
        type=[*ORDERS],
    ),
    *(
        option(
            f"--{name}",
            f"What to do about {about}; default: {CHOICES[name][0]}.",
            type=[*CHOICES[name]],
        )
        for name, about in _ABOUT.items()
    ),
)
"""A switch for every policy that can change a number."""

scoring_options = _several(
    option("-k INTEGER", "What the letter in recall@k means."),
    option("--match MATCHER", default="auto", show_default=True),
    policy_options,
    mapping_option,
    queries_option,
    option("--corpus FILE", "Texts of documents, by id."),
)
"""All that changes scores, besides the metrics."""

SCORING = (
    *("match", "k", "profile", *_ABOUT, "order", "threshold", "depth", "judged_only"),
    *("queries", "corpus"),
)
"""The options that change scores, by the names that Python has for them."""


def scoring_of(options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """What `evaluate` is told by the options of a command."""
    scoring = {name: options[name] for name in SCORING if name in options}
    return {**scoring, "mapping": options["map"], **more}


gate_options = _several(
    option("--gate-tags", "Check --max-drop on the queries of each tag, too."),
    option("--allow-noise", "A drop that may be chance (p > 0.05) only warns."),
    option(
        "--require-noninferior", "Fail --max-drop unless a larger one is ruled out."
    ),
    option("--strict", "Exit 3 when a gate is inconclusive."),
    *(
        option(f"{name} METRIC=VALUE*", f"{about}; repeatable.")
        for name, about in (
            ("--fail-under", "Exit 1 when a mean is below the value"),
            ("--fail-under-low", "Exit 1 when the lower limit of its interval is"),
            (
                "--max-drop",
                "Exit 1 when a mean is lower than the baseline's by more",
            ),
        )
    ),
)
"""What decides whether a build fails."""


class _OfJudging(click.Option):
    """An option about the model that is asked, shown under its own heading."""

    heading = "Judging"


_judging = partial(option, cls=_OfJudging)

judge_options = _several(
    _judging("--model NAME", "The model that judges."),
    _judging("--base-url URL", "Its OpenAI-compatible server, if not by env."),
    _judging("--votes INTEGER", "Ask so often; most win, of grades the median."),
    _judging("--max-tokens N", "The most tokens of a reply (default: 4096).", type=int),
    _judging(
        "--parameter parameters NAME=VALUE*",
        "Sent too, as in reasoning_effort=low; may be repeated.",
        callback=_read_parameters,
    ),
    _judging(
        "--header headers NAME:VALUE*",
        "Sent too, as the key of a gateway; may be repeated.",
        callback=_read_headers,
    ),
    _judging(
        "--prompts FILE",
        "Instructions of your own by name (split, support, grade), or umbrela.",
    ),
    _judging("--concurrency INTEGER", "Calls at once (default: 8)."),
    _judging("--rpm N", "Calls per minute at most.", type=float),
    _judging(
        "--timeout SECONDS", "The longest a call may take (default: 120).", type=float
    ),
    _judging(
        "--max-attempts N", "Calls for one question at most (default: 6).", type=int
    ),
    _judging("--corpus FILE", "Texts of documents, for runs of ids."),
    _judging("--prices IN,OUT", "What a million tokens cost, as in 0.15,0.6."),
    _judging("--max-calls INTEGER", "Stop before more calls; resumable."),
    _judging("--max-cost FLOAT", "Stop before it costs more; resumable."),
    _judging(
        "--max-failures INTEGER",
        "Failed judgements allowed before exit 3 (default: 0).",
    ),
    _judging("--dry-run", "Only say what judging would take."),
    _judging("--offline", "Make no call: use kept replies only."),
    _judging("--journal FILE", "Where replies are kept, if not under .karat."),
    _judging("--retry-errors", "Ask again what failed before."),
    _judging(
        "--no-text",
        "Keep prompts out of the journal and texts out of reports; replies are kept.",
    ),
)
"""Everything about the model that is asked, and what it may cost."""


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


def format_name(target: str, to: str | None) -> str | None:
    """The name of the format to write, if the path does not say it; else an error."""
    if target == STDOUT and to is None:
        raise UsageError(f"--to names the format of -: one of {', '.join(FORMATS)}")
    return None if to is None else FORMATS[to].name


def write_dataset(
    dataset: Dataset,
    target: str | Path,
    to: str | None = None,
    role: Role | None = None,
    inputs: Sequence[str | None] = (),
) -> None:
    """Write to a file or standard output, and say what there was no room for.

    Args:
        dataset: what to write.
        target: a path, or `-`.
        to: name of the format, if the extension does not say it.
        role: the part to write.
        inputs: files that must not be overwritten.
    """
    if target == STDOUT:
        notices = write(dataset, sys.stdout.buffer, to, role)
    else:
        notices = write(dataset, writable(str(target), inputs), to, role)
        say(f"karat: wrote {target}", err=True)
    for notice in notices:
        say(f"karat: {notice.kind}: {notice.text} ({notice.count})", err=True)
