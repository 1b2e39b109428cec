"""`karat metrics`: the catalogue, with one line each."""

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from math import isinf

import click

from karat.cli.command import Command
from karat.data.spelling import LETTER, write_value
from karat.data.tables import Table
from karat.metrics import METRICS, Metric, read_metric
from karat.metrics.aliases import NAMES
from karat.reports.terminal import show

_NOTES = (
    "A metric is written name(params)[matcher]@k: recall@5, ndcg(gain=exp)@10.",
    "karat metrics NAME says more, as in karat metrics ndcg.",
)


@click.command("metrics", cls=Command)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List every metric with one line, or say all about the one called NAME."""
    if name is None:
        rows = [[metric.name, metric.summary()] for metric in METRICS.usable()]
        show(Table(["metric", "what it says"], rows, notes=_NOTES, texts=(0, 1)))
        return
    metric = read_metric(name)
    click.echo(f"{metric}\n\n{described(type(metric))[0]}\n")
    for what, text in about(type(metric)):
        click.echo(f"{what}: {text}")


def described(metric: type[Metric]) -> tuple[str, dict[str, str]]:
    """What the docstring says of a metric, and of each parameter, its parents' too.

    Example:
        >>> described(METRICS["recall"])[1]["threshold"]
        'the smallest grade that counts as relevant; None: any positive one.'
    """
    meanings: dict[str, str] = {}
    for kind in reversed(metric.__mro__):
        section = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
        name = ""
        for line in inspect.cleandoc(section).splitlines():
            if line.startswith(" "):
                meanings[name] += f" {line.strip()}"
            elif ": " in line:
                name, _, meanings[name] = line.partition(": ")
    text = (inspect.getdoc(metric) or "").partition("Attributes:\n")[0]
    return text.rstrip(), meanings


def about(metric: type[Metric]) -> Iterator[tuple[str, str]]:
    """What there is to know about a metric besides its docstring."""
    if metric.formula:
        yield "formula", metric.formula
    yield "range", "0 or 1" if metric.binary else _range(metric.bounds)
    if metric.matcher is not None:
        yield "matcher", metric.matcher
    meanings = described(metric)[1]
    for field in fields(metric):
        if field.name == LETTER:
            continue
        written = field.name
        if field.default is not MISSING and field.default is not None:
            written += f"={write_value(field.default)}"
        meaning = meanings.get(field.name, "").rstrip(".")
        yield "parameter", f"{written}: {meaning}" if meaning else written
    if any(field.name == LETTER for field in fields(metric)):
        yield "cutoff", f"{metric.name}@5, or {metric.name} for the whole ranking"
    others = [name for name, ours in NAMES.items() if ours == metric.name]
    if others:
        yield "also understood", ", ".join(others)


def _range(bounds: tuple[float, float]) -> str:
    low, high = bounds
    if isinf(low):
        return "any number"
    return f"{low:g} or more" if isinf(high) else f"{low:g} to {high:g}"
