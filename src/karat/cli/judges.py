"""The model that a command asks: from its options to a bench."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from karat.cli.settings import log
from karat.dispatch import Prices, Progress, Settings
from karat.errors import ParameterError, UsageError
from karat.judging import Bench, Claims, Rehearsal
from karat.judging.endpoint import OpenAIClient

__all__ = ["bench_of", "judge_of", "votes_of"]

_TWO = 2
_EIGHT = 8


class Meter:
    """Shows how far a hearing is on a terminal, and says at the end what it took."""

    def __init__(self) -> None:
        self._shown = 0

    def __call__(self, progress: Progress) -> None:
        """Show it; the last one stays, in the log."""
        text = f"judging: {progress}"
        if sys.stderr.isatty():
            blank = " " * max(0, self._shown - len(text))
            click.echo(f"\r{text}{blank}", nl=False, err=True)
            self._shown = len(text)
        if progress.done == progress.total:
            if self._shown:
                click.echo("\r" + " " * self._shown + "\r", nl=False, err=True)
                self._shown = 0
            log.info("%s", text)


def bench_of(options: Mapping[str, Any]) -> Bench:
    """The model that the options name, and how it is asked."""
    if options["model"] is None:
        raise UsageError(
            "no model to ask: add --model NAME, and OPENAI_API_KEY or --base-url for "
            "a server of your own"
        )
    client = OpenAIClient(options["model"], base_url=options["base_url"])
    settings = Settings(
        concurrency=_EIGHT
        if options["concurrency"] is None
        else options["concurrency"],
        max_calls=options["max_calls"],
        max_cost=options["max_cost"],
        prices=_prices(options["prices"]),
        max_failures=options["max_failures"],
        offline=options["offline"],
        retry_errors=options["retry_errors"],
        no_text=options["no_text"],
        progress=Meter(),
    )
    return (Rehearsal if options["dry_run"] else Bench)(client, settings)


def votes_of(options: Mapping[str, Any]) -> int:
    """How many assessors decide."""
    votes: int = 1 if options["votes"] is None else options["votes"]
    if votes < 1:
        raise ParameterError("--votes", "votes", "an integer >= 1", votes)
    return votes


def judge_of(options: Mapping[str, Any]) -> Claims:
    """The judge of claims that the options name."""
    bench = bench_of(options)
    return Claims(bench, votes=votes_of(options), texts=not options["no_text"])


def _prices(text: str | None) -> Prices | None:
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != _TWO:
        raise ParameterError(
            "--prices", "prices", "two numbers per million tokens, as in 0.15,0.6", text
        )
    return Prices(*numbers)
