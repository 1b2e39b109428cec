"""`karat matchers`: what decides which document satisfies which gold item."""

from json import dumps

import click

from karat.cli import options
from karat.cli.command import Command
from karat.cli.metrics import described, parameters, show_about
from karat.cli.outputs import show_all
from karat.data.spelling import parse
from karat.data.tables import Table
from karat.errors import UnknownNameError
from karat.judging.claims import Claims
from karat.matching import MATCHERS, Matcher
from karat.matching.similarity import Semantic

_NOTES = (
    "Write a matcher in brackets, as in recall[span]@5, or in --match.",
    "Without one, the first that fits the gold is taken: id, span or contains.",
    "karat matchers span says all about one.",
)


@click.command("matchers", cls=Command)
@click.argument("name", required=False)
@options.json
def command(name: str | None, *, json: bool) -> None:
    """List the matchers, or describe the one called NAME."""
    matchers = catalogue()
    if name is not None:
        called = parse(name).name
        if called not in matchers:
            see = "`karat matchers` lists them"
            raise UnknownNameError("matcher", called, [*matchers], see=see)
        kind = matchers[called]
        show_about(kind.name, kind, matcher_facts(kind))
        return
    columns = ["matcher", "reads", "what it does"]
    rows = [[one.name, ", ".join(one.reads), first(one)] for one in matchers.values()]
    if json:
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        click.echo(dumps(listed, indent=2))
    else:
        show_all([Table(columns, rows, notes=_NOTES, texts=(0, 1, 2))])


def catalogue() -> dict[str, type[Matcher]]:
    """Every matcher by name: those of spellings, and those that Python alone makes."""
    kinds: list[type[Matcher]] = [*MATCHERS.usable(), Semantic, Claims]
    return {kind.name: kind for kind in kinds}


def first(kind: type[Matcher]) -> str:
    """The line of a matcher in the catalogue."""
    return described(kind)[0].partition("\n")[0]


def matcher_facts(kind: type[Matcher]) -> list[tuple[str, str]]:
    """What there is to know about a matcher besides its docstring."""
    return [("reads", ", ".join(kind.reads)), *parameters(kind)]
