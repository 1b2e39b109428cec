"""`karat metrics`: the catalogue, with one line each."""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from json import dumps
from math import isinf
from typing import TypeAlias

import click

from karat.cli import options
from karat.cli.command import Command, flag
from karat.cli.outputs import show_all
from karat.data.spelling import LETTER, Spelled, write_value
from karat.data.tables import Table
from karat.metrics import METRICS, NAMES, Metric, read_metric
from karat.reports.terminal import width_of

Families: TypeAlias = Mapping[str, Sequence[type[Metric]]]
_EVERYDAY = (
    *("ndcg", "rr", "ap", "recall", "precision", "f1", "hit", "context_recall"),
)
_NOTES = (
    "A metric is written name(params)[matcher]@k: recall@5, ndcg(gain=exp)@10.",
    "karat metrics ndcg says all about one; karat metrics --all has a line for each.",
)


@click.command("metrics", cls=Command)
@click.argument("name", required=False, shell_complete=options.complete_metrics)
@flag("--all", "every", help="A line for every metric, by family.")
@options.json
def command(name: str | None, *, every: bool, json: bool) -> None:
    """List the metrics by family, or describe the one called NAME."""
    if name is None:
        families: dict[str, list[type[Metric]]] = {}
        for kind in METRICS.usable():
            families.setdefault(family_of(kind), []).append(kind)
        if json:
            click.echo(dumps([*_rows(families)], indent=2))
        else:
            show_all(_tables(families, every=every))
        return
    metric = read_metric(name)
    show_about(str(metric), type(metric), metric_facts(type(metric)))


def show_about(
    title: str, kind: type[Spelled], facts: Iterable[tuple[str, str]]
) -> None:
    """Print all about a thing; a paragraph that is too wide is wrapped anew."""
    width = width_of(sys.stdout)
    wrap = partial(textwrap.fill, width=width, break_on_hyphens=False)
    click.echo(f"{title}\n")
    for paragraph in described(kind)[0].split("\n\n"):
        wide = max(map(len, paragraph.splitlines())) > width
        click.echo(f"{wrap(paragraph) if wide else paragraph}\n")
    for what, text in facts:
        fact = wrap(f"{what}: {text}", subsequent_indent="  ")
        click.echo(fact)


def family_of(metric: type[Metric]) -> str:
    """What its module is about; of what others bring, that they do."""
    room, _, module = metric.__module__.rpartition(".")
    return module.replace("_", " ") if room == METRICS.group else "plug-ins"


def _rows(families: Families) -> Iterator[dict[str, str]]:
    for family, metrics in families.items():
        for metric in metrics:
            yield {"metric": metric.name, "family": family, "says": metric.summary()}


def _tables(families: Families, *, every: bool) -> Iterator[Table]:
    """The everyday metrics and the names of all; or a table for each family."""
    columns = ["metric", "what it says"]
    if every:
        for family, metrics in families.items():
            rows = [[metric.name, metric.summary()] for metric in metrics]
            yield Table(columns, rows, title=family, texts=(0, 1))
        return
    rows = [[name, METRICS[name].summary()] for name in _EVERYDAY]
    yield Table(columns, rows, title="everyday", texts=(0, 1))
    names = [[f, ", ".join(one.name for one in own)] for f, own in families.items()]
    title = f"all {sum(map(len, families.values()))}, by family"
    yield Table(["family", "metrics"], names, title=title, notes=_NOTES, texts=(0, 1))


def described(kind: type[Spelled]) -> tuple[str, dict[str, str]]:
    """What the docstring says of a thing, and of each parameter, its parents' too.

    Example:
        >>> described(METRICS["recall"])[1]["threshold"]
        'the smallest grade that counts as relevant; None: any positive one.'
    """
    meanings: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        name = ""
        for line in _sections(parent).get("Attributes", "").splitlines():
            if line.startswith(" "):
                meanings[name] += f" {line.strip()}"
            elif ": " in line:
                name, _, meanings[name] = line.partition(": ")
    return _sections(kind)[""], meanings


def _sections(kind: type) -> dict[str, str]:
    """The parts of a docstring by their titles, the text before them under none."""
    text, *rest = re.split(r"\n\n(?=[A-Z]\w+:\n)", inspect.cleandoc(kind.__doc__ or ""))
    titled = (part.partition(":\n") for part in rest)
    return {"": text, **{title: inspect.cleandoc(part) for title, _, part in titled}}


def metric_facts(metric: type[Metric]) -> Iterator[tuple[str, str]]:
    """What there is to know about a metric besides its docstring."""
    if metric.formula:
        yield "formula", metric.formula
    yield "range", "0 or 1" if metric.binary else _range(metric.bounds)
    if metric.matcher is not None:
        yield "matcher", metric.matcher
    yield from parameters(metric)
    if any(field.name == LETTER for field in fields(metric)):
        yield "cutoff", f"{metric.name}@5, or {metric.name} for the whole ranking"
    others = [name for name, ours in NAMES.items() if ours == metric.name]
    if others:
        yield "also understood", ", ".join(others)


def parameters(kind: type[Spelled]) -> Iterator[tuple[str, str]]:
    """What may stand in the parentheses of a spelling, and what it means."""
    meanings = described(kind)[1]
    for field in fields(kind):
        if field.name == LETTER:
            continue
        written = field.name
        if field.default is not MISSING and field.default is not None:
            written += f"={write_value(field.default)}"
        meaning = meanings.get(field.name, "").rstrip(".")
        yield "parameter", f"{written}: {meaning}" if meaning else written


def _range(bounds: tuple[float, float]) -> str:
    low, high = bounds
    if isinf(low):
        return "any number"
    return f"{low:g} or more" if isinf(high) else f"{low:g} to {high:g}"
