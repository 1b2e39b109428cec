"""The options that commands share, each declared once, and the files they name.

A group of options reaches a command as one frozen value, such as `judging`.
"""

import glob
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple

import click

from karat.cli.command import COUNT, GroupedOption, file_option, flag, remark
from karat.data.policies import CHOICES, PROFILES
from karat.data.queries import Dataset
from karat.errors import FormatError, ParameterError, UsageError
from karat.matching import MATCHERS
from karat.metrics import METRICS
from karat.reading.files import decode_json
from karat.reading.format import FORMATS, name_format
from karat.reading.meaning.aliases import check_names
from karat.reading.meaning.ambiguity import ORDERS
from karat.reading.source import Role
from karat.reading.write import write

Decorator = Callable[[Callable[..., None]], Callable[..., None]]
STDIN = STDOUT = "-"


def collect(name: str, kind: type[Any], *options: Decorator) -> Decorator:
    """Give a command these options as one value; without any, those it has."""
    names = [field.name for field in fields(kind)]

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def collected(**values: Any) -> None:
            own = kind(*map(values.pop, names))
            command(**values, **{name: own})

        for option in reversed(options):
            option(collected)
        return collected

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


def _check_slice(
    _: click.Context, parameter: click.Parameter, field: str | None
) -> str | None:
    if field is not None and field != "tag":
        hint = f"put {field!r} into tags, or --map tags={field}"
        if field.lower() in ("tag", "tags"):
            hint = "did you mean 'tag'?"
        raise UsageError(f"{parameter.opts[0]} knows only 'tag'; {hint}")
    return field


def _complete(*names: str) -> Callable[..., list[str]]:
    """What a shell offers in place of a word that begins so."""
    return lambda _, __, begun: [name for name in names if name.startswith(begun)]


def complete_metrics(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The metrics that a word may become, or the last of several with commas."""
    before, comma, last = begun.rpartition(",")
    return [before + comma + n for n in METRICS.shipped if n.startswith(last)]


gold = partial(file_option, "-g", "--gold", "--qrels", help="What should be found.")
outputs = partial(file_option, "-o", "--output", multiple=True)
queries = file_option("--queries", help="Texts and tags of queries.")
slice = click.option(
    "--slice",
    metavar="tag",
    callback=_check_slice,
    help="Also show the means of each tag.",
)
json = flag("--json", help="Print everything as JSON.")
no_text = flag("--no-text", help="Leave texts out of the output.")
metrics = click.option(
    *("-m", "--metric", "--metrics", "metrics"),
    metavar="METRIC",
    multiple=True,
    shell_complete=complete_metrics,
    help="A metric such as ndcg@10; repeat it, or join several with commas.",
)
mapping = click.option(
    *("--map", "mapping"),
    metavar="OURS=THEIRS",
    multiple=True,
    callback=_read_mapping,
    help="Name of a karat field in your input, as in --map query=question; repeatable.",
)
headers = partial(
    click.option,
    *("--header", "headers"),
    metavar="NAME:VALUE",
    multiple=True,
    callback=_read_headers,
)

_PROFILES = [str(policies.profile) for policies in PROFILES.values()]
_ABOUT = {
    "undefined": "scores without a value",
    "missing": "gold queries that are not in the run",
    "extra": "run queries without gold",
    "duplicates": "documents retrieved twice",
    "identical": "documents with the id of their query",
    "ties": "equal scores",
}


@dataclass(frozen=True)
class Scoring:
    """How runs are scored, in the words of `evaluate`; None where nothing is said."""

    k: int | None
    match: str
    profile: str | None
    undefined: str | None
    missing: str | None
    extra: str | None
    duplicates: str | None
    identical: str | None
    ties: str | None
    order: str | None
    threshold: float | None
    depth: int | None
    judged_only: bool | None
    mapping: Mapping[str, str]
    gold: str | None
    queries: str | None


corpus = file_option("--corpus", help="Texts of documents, by id.")
scoring = collect(
    "scoring",
    Scoring,
    gold(help="What should have been retrieved: a file of any format."),
    queries,
    click.option(
        "-k",
        type=int,
        help="The k of metrics like recall@k, and of diagnose; default: 5.",
    ),
    click.option(
        "--match",
        metavar="MATCHER",
        default="auto",
        shell_complete=_complete("auto", *MATCHERS.shipped),
        show_default=True,
        help="How a document satisfies a gold item: "
        f"auto, {', '.join(MATCHERS.shipped)}.",
    ),
    click.option(
        "--profile",
        metavar="PROFILE",
        shell_complete=_complete(*_PROFILES),
        help=f"A set of policies: {', '.join(_PROFILES)}; single options override it.",
    ),
    click.option(
        "--threshold", type=float, help="The smallest grade that counts as relevant."
    ),
    click.option(
        "--depth",
        metavar="N",
        type=COUNT,
        help="Read only the first N documents of each ranking.",
    ),
    flag(
        "--judged-only",
        default=None,
        help="Remove documents without any label from the rankings.",
    ),
    click.option(
        "--order",
        type=click.Choice([*ORDERS]),
        help="Rank large scores first, or small ones such as distances; also in lists.",
    ),
    *(
        click.option(
            f"--{name}",
            type=click.Choice([*CHOICES[name]]),
            help=f"What to do with {about}; default: {CHOICES[name][0]}.",
        )
        for name, about in _ABOUT.items()
    ),
    mapping,
)
"""A switch for all that can change a number, besides the metrics."""


@dataclass(frozen=True)
class Combining:
    """A judge's labels of all queries, and people's of those that a plan drew."""

    judged: str | None
    people: str | None
    plan: str | None
    width: float | None


people = partial(
    collect,
    "combining",
    Combining,
    file_option("--judged", help="A judge's labels of all queries, instead of gold."),
    file_option("--people", help="With --judged: people's labels of the sample."),
    click.option(
        "--width",
        type=click.FloatRange(min=0, min_open=True),
        help="With --judged: show how many labels give this width.",
    ),
)
"""Scores by people and a judge combined; the command brings --plan."""


@dataclass(frozen=True)
class Gating:
    """What decides whether a build fails."""

    fail_under: Sequence[str]
    fail_under_low: Sequence[str]
    max_drop: Sequence[str]
    strict: bool
    allow_noise: bool
    require_noninferior: bool
    gate_tags: bool


_limit = partial(click.option, metavar="METRIC=VALUE", multiple=True)

gating = collect(
    "gating",
    Gating,
    flag("--gate-tags", help="Also check --max-drop on the queries of each tag."),
    flag("--allow-noise", help="Only warn about a drop that may be chance (p > 0.05)."),
    flag(
        "--require-noninferior",
        help="Fail --max-drop unless a larger drop is unlikely.",
    ),
    flag("--strict", help="Exit 3 when a gate is inconclusive."),
    _limit("--fail-under", help="Exit 1 when a mean is below the value; repeatable."),
    _limit(
        "--fail-under-low",
        help="Exit 1 when an interval begins below the value; repeatable.",
    ),
    _limit(
        "--max-drop",
        help="Exit 1 when a mean drops by more than the value; repeatable.",
    ),
)


@dataclass(frozen=True)
class Judging:
    """The model that is asked, and what it may cost; None where nothing is said."""

    model: str | None
    base_url: str | None
    votes: int | None
    max_tokens: int | None
    parameters: Mapping[str, Any]
    headers: Sequence[tuple[str, str]]
    prompts: str | None
    concurrency: int | None
    rpm: float | None
    timeout: float | None
    max_attempts: int | None
    corpus: str | None
    prices: str | None
    max_calls: int | None
    max_cost: float | None
    max_failures: int | None
    dry_run: bool
    offline: bool
    journal: str | None
    retry_errors: bool
    no_text: bool

    def __post_init__(self) -> None:
        for name, what in (("votes", "votes"), ("max_tokens", "tokens")):
            if (value := getattr(self, name)) is not None and value < 1:
                option = f"--{name.replace('_', '-')}"
                raise ParameterError(option, what, "an integer >= 1", value)


_of_judging: dict[str, Any] = {"cls": GroupedOption, "heading": "Judging"}
_judging = partial(click.option, **_of_judging)
_number = partial(_judging, type=int)

judging = collect(
    "judging",
    Judging,
    _judging("--model", metavar="NAME", help="The model that judges."),
    _judging(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible server; default: OPENAI_BASE_URL.",
    ),
    _number(
        "--votes",
        help="Ask this many times and take the majority, or the median of grades.",
    ),
    _number(
        "--max-tokens",
        metavar="N",
        help="Maximum tokens of a reply (default: 4096).",
    ),
    _judging(
        *("--parameter", "parameters"),
        metavar="NAME=VALUE",
        multiple=True,
        callback=_read_parameters,
        help="Parameter of the model, as in reasoning_effort=low; repeatable.",
    ),
    headers(help="HTTP header, as for a gateway; repeatable.", **_of_judging),
    _judging(
        "--prompts",
        metavar="FILE",
        help="Your own instructions by name (split, support, grade), or umbrela.",
    ),
    _number("--concurrency", help="Concurrent calls (default: 8)."),
    _judging("--rpm", metavar="N", type=float, help="Maximum calls per minute."),
    _judging(
        "--timeout",
        metavar="SECONDS",
        type=float,
        help="Maximum time for a call (default: 120).",
    ),
    _number(
        "--max-attempts",
        metavar="N",
        help="Maximum calls per question (default: 6).",
    ),
    _judging("--corpus", metavar="FILE", help="Texts of documents, for runs of ids."),
    _judging(
        "--prices", metavar="IN,OUT", help="Prices per million tokens, as in 0.15,0.6."
    ),
    _number("--max-calls", help="Stop after this many calls; resumable."),
    _judging("--max-cost", type=float, help="Stop at this cost; resumable."),
    _number(
        "--max-failures", help="Failed judgements allowed before exit 3 (default: 0)."
    ),
    _judging("--dry-run", is_flag=True, help="Only show calls, tokens and cost."),
    _judging("--offline", is_flag=True, help="Make no calls: use only kept replies."),
    _judging(
        "--journal",
        metavar="FILE",
        help="Where to keep replies; default: .karat.",
    ),
    _judging("--retry-errors", is_flag=True, help="Repeat calls that failed before."),
    _judging(
        "--no-text",
        is_flag=True,
        help="Keep prompts out of the journal and texts out of reports; replies are "
        "kept.",
    ),
)


def existing(
    patterns: Sequence[str], gold: str | None = None, *, expand: bool = True
) -> list[str]:
    """The paths that the patterns name; a pattern without any file is an error."""
    if not expand and len(patterns) > 1:
        raise UsageError(
            f"--parts takes one RUN, got {len(patterns)}: a pattern in quotes, as in "
            "'runs/*.parquet', or their folder"
        )
    paths: list[str] = []
    for pattern in patterns:
        plain = pattern == STDIN or "://" in pattern or Path(pattern).exists()
        if plain or not expand or not glob.has_magic(pattern):
            paths.append(pattern)
            continue
        found = sorted(glob.glob(pattern))  # noqa: PTH207
        if not found:
            raise UsageError(f"no file matches {pattern!r}")
        paths += found
    if [*paths, gold].count(STDIN) > 1:
        raise UsageError("standard input can be read once only: one - at most")
    return paths


def named_paths(paths: Sequence[str]) -> list[tuple[str, str]]:
    """The paths with their names; files of one name are told apart by their paths."""
    names = [Path(path).name for path in paths]
    return [*zip(names if len({*names}) == len(names) else paths, paths, strict=True)]


def writable(target: str, inputs: Sequence[str | None] = ()) -> Path:
    """The path of a file to write; an input must not be overwritten."""
    if not target:
        raise UsageError("the path of the file to write is empty")
    path = Path(target)
    if path.is_dir():
        raise FormatError("is a folder; name a file to write", path=target)
    if not path.parent.is_dir():
        raise FormatError(
            f"cannot be written: there is no folder {str(path.parent)!r}", path=target
        )
    exists = path.exists()
    if not os.access(path if exists else path.parent, os.W_OK):
        why = (
            "permission denied" if exists else f"no permission in {str(path.parent)!r}"
        )
        raise FormatError(f"cannot be written: {why}", path=target)
    for name in filter(None, inputs if exists else ()):
        if Path(name).exists() and path.samefile(name):
            raise UsageError(f"{target} is an input, and would be overwritten")
    return path


def require_texts(target: Path) -> None:
    """Refuse a format that has no room for what questions and answers say."""
    format = name_format(str(target))
    if format.layout is None:
        raise UsageError(f"-o {target}: {format.name} holds no texts; name a .jsonl")


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
    """Write to a file or standard output, and say what there was no room for."""
    if target == STDOUT:
        notices = write(dataset, sys.stdout.buffer, to, role)
    else:
        notices = write(dataset, writable(str(target), inputs), to, role)
        remark(f"wrote {target}")
    for notice in notices:
        remark(f"{notice.kind}: {notice.text} ({notice.count})")
