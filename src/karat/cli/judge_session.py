"""The options of a command that asks a model, as a session with that model."""

import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from karat.cli.command import say
from karat.data.tables import amount, counted
from karat.errors import KaratError, ParameterError, UsageError
from karat.judging.claims import Claims
from karat.judging.session import DryRun, JudgeSession
from karat.llm import Prices, Progress, Settings
from karat.llm.limits import Budget
from karat.llm.openai_client import OpenAIClient
from karat.llm.settings import JOURNAL
from karat.reports.terminal import RunBar, can_show_bar

_INTERRUPTED = 130
_TERMINATED = 143
_SECONDS_BETWEEN_LINES = 60


class JudgingProgress:
    """Shows how far runs are, one after the other, and sums up what they took.

    On a terminal there is a bar; elsewhere a line each minute.

    Args:
        budget: counts the calls, the tokens and the cost.
        journal: where replies are kept, to be named after an interrupt.
    """

    def __init__(self, budget: Budget, journal: Path) -> None:
        self._budget = budget
        self._journal = journal
        self._runs: list[Progress] = []
        self._bar = RunBar()
        self._said = time.monotonic()
        self._exit_code = _INTERRUPTED

    def attach(self, context: click.Context) -> None:
        """Sum up at the end of a command, however it ends."""
        context.call_on_close(self.close)
        # Where interrupts are ignored, as in the background of a script, SIGTERM must
        # not be turned into one.
        handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if handled and threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, self._terminate)
            context.call_on_close(lambda: signal.signal(signal.SIGTERM, before))

    def __call__(self, progress: Progress) -> None:
        """Show the progress; each run begins with nothing done."""
        if progress.done == 0 or not self._runs:
            self._bar.close()
            self._runs.append(progress)
        self._runs[-1] = progress
        self._bar(progress)
        now = time.monotonic()
        if now - self._said >= _SECONDS_BETWEEN_LINES and not can_show_bar():
            self._said = now
            say(f"karat: {progress}", err=True)

    def close(self) -> None:
        """Say what was paid; after an interrupt also how to continue."""
        self._bar.close()
        if self._runs and isinstance(sys.exception(), KeyboardInterrupt):
            say(
                f"karat: interrupted; {self._summary()}, and all replies are kept in "
                f"{self._journal}: run the same command again to go on",
                err=True,
            )
            sys.exit(self._exit_code)
        cached = sum(run.cached for run in self._runs)
        done = any(run.done for run in self._runs)
        # After an error without a call, the error says it all.
        replayed = cached and not isinstance(sys.exception(), KaratError)
        if done and (self._budget.calls or replayed):
            replies = f"{counted(cached, 'reply')} {'was' if cached == 1 else 'were'}"
            say(f"karat: {self._summary()}; {replies} kept already", err=True)

    def _summary(self) -> str:
        parts = []
        for stage in dict.fromkeys(run.stage for run in self._runs):
            runs = [run for run in self._runs if run.stage == stage]
            total, done, failed = (
                sum(getattr(run, name) for run in runs)
                for name in ("total", "done", "failed")
            )
            # As in "judging 3 of 5 samples (1 failed)".
            text = stage.of(total, done)
            parts.append(f"{text} ({failed} failed)" if failed else text)
        stages = " and ".join(parts)
        if not self._budget.calls:
            return f"{stages} took no call"
        tokens = self._budget.prompt_tokens + self._budget.completion_tokens
        calls = counted(self._budget.calls, "call")
        text = f"{stages} took {calls}, {tokens:,} tokens"
        cost = self._budget.cost
        return text if cost is None else f"{text}, cost {amount(cost)}"

    def _terminate(self, *_: Any) -> None:
        """End like an interrupt, after which replies on their way are still kept."""
        self._exit_code = _TERMINATED
        signal.raise_signal(signal.SIGINT)


# The options that are fields of Settings; one has another name there.
_SETTINGS = (
    *("concurrency", "rpm", "timeout", "max_attempts", "max_calls", "max_cost"),
    *("max_failures", "offline", "retry_errors", "no_text"),
)
_RATE = "requests_per_minute"


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
    limits = {
        _RATE if name == "rpm" else name: options[name]
        for name in _SETTINGS
        if options[name] is not None
    }
    try:
        settings = Settings(
            journal=journal, prices=prices, budget=budget, progress=progress, **limits
        )
    except ParameterError as error:
        flag = error.parameter.replace(_RATE, "rpm").replace("_", "-")
        raise ParameterError(
            f"--{flag}", error.parameter, error.must_be, error.value
        ) from None
    progress.attach(click.get_current_context())
    session = DryRun if options["dry_run"] else JudgeSession
    return session(client, settings, prompts=options["prompts"])


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
