"""The options of a command that asks a model, as a session with that model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from karat.cli.judging_progress import JudgingProgress
from karat.errors import ParameterError, UsageError
from karat.judging import Claims, DryRun, JudgeSession
from karat.llm import Prices, Settings
from karat.llm.budget import Budget
from karat.llm.openai_client import OpenAIClient
from karat.llm.settings import JOURNAL

__all__ = ["claims_judge", "open_session", "read_votes"]

# The field of Settings for each option.
_SETTINGS = {
    "concurrency": "concurrency",
    "rpm": "requests_per_minute",
    "timeout": "timeout",
    "max_attempts": "max_attempts",
    "max_calls": "max_calls",
    "max_cost": "max_cost",
    "max_failures": "max_failures",
    "offline": "offline",
    "retry_errors": "retry_errors",
    "no_text": "no_text",
}


def open_session(options: Mapping[str, Any]) -> JudgeSession:
    """The model that the options name, with its settings."""
    if options["model"] is None:
        raise UsageError(
            "no model to ask: add --model NAME, and OPENAI_API_KEY or --base-url for "
            "a server of your own"
        )
    client = OpenAIClient(
        options["model"],
        base_url=options["base_url"],
        parameters=_parameters(options),
        headers=dict(options["headers"]),
    )
    prices = None if options["prices"] is None else Prices.read(options["prices"])
    if options["max_cost"] is not None and prices is None:
        raise UsageError(
            "--max-cost needs --prices IN,OUT: what a million tokens cost, as in "
            "--prices 0.15,0.6"
        )
    budget = Budget(prices, options["max_calls"], options["max_cost"])
    journal = Path(options["journal"]) if options["journal"] else JOURNAL
    progress = JudgingProgress(budget, journal)
    given = {
        name: options[option]
        for option, name in _SETTINGS.items()
        if options[option] is not None
    }
    try:
        settings = Settings(
            journal=journal, prices=prices, budget=budget, progress=progress, **given
        )
    except ParameterError as error:
        flags = {name: option for option, name in _SETTINGS.items()}
        flag = f"--{flags[error.parameter].replace('_', '-')}"
        raise ParameterError(
            flag, error.parameter, error.must_be, error.value
        ) from None
    progress.attach(click.get_current_context())
    return (DryRun if options["dry_run"] else JudgeSession)(client, settings)


def _parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Sent with every prompt; a parameter by name beats the option for it."""
    limit = options["max_tokens"]
    if limit is None:
        return dict(options["parameters"])
    if limit < 1:
        raise ParameterError("--max-tokens", "tokens", "an integer >= 1", limit)
    return {"max_tokens": limit, **options["parameters"]}


def read_votes(options: Mapping[str, Any]) -> int:
    """How many votes decide."""
    votes: int = 1 if options["votes"] is None else options["votes"]
    if votes < 1:
        raise ParameterError("--votes", "votes", "an integer >= 1", votes)
    return votes


def claims_judge(options: Mapping[str, Any]) -> Claims:
    """The judge of claims that the options name."""
    session = open_session(options)
    return Claims(session, votes=read_votes(options), texts=not options["no_text"])
