"""The options of a command that asks a model, as a session with that model."""

import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click

from karat.cli.command import remark
from karat.cli.options import Judging
from karat.data.tables import amount, counted
from karat.errors import KaratError, ParameterError, UsageError
from karat.judging.claims import Claims
from karat.judging.session import DryRun, JudgeSession
from karat.llm.limits import JOURNAL, Budget, Prices, Progress, Settings
from karat.llm.openai_client import OpenAIClient
from karat.reports.terminal import RunBar, is_plain

_INTERRUPTED = 130
_TERMINATED = 143
_SECONDS_BETWEEN_LINES = 60


class JudgingProgress:
    """Shows how far runs are, one after the other, and sums up what they took.

    On a terminal there is a bar; elsewhere a line each minute.
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
        if now - self._said >= _SECONDS_BETWEEN_LINES and is_plain(sys.stderr):
            self._said = now
            remark(str(progress))

    def close(self) -> None:
        """Say what was paid; after an interrupt also how to continue."""
        self._bar.close()
        if self._runs and isinstance(sys.exception(), KeyboardInterrupt):
            remark(
                f"interrupted; {self._summary()}, and all replies are kept in "
                f"{self._journal}: run the same command again to go on"
            )
            sys.exit(self._exit_code)
        cached = sum(run.cached for run in self._runs)
        done = any(run.done for run in self._runs)
        # After an error without a call, the error says it all.
        replayed = cached and not isinstance(sys.exception(), KaratError)
        if done and (self._budget.calls or replayed):
            replies = f"{counted(cached, 'reply')} {'was' if cached == 1 else 'were'}"
            remark(f"{self._summary()}; {replies} kept already")

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


def open_session(judging: Judging) -> JudgeSession:
    """The model that the options name, with its settings."""
    if judging.model is None:
        raise UsageError(
            "no model to ask: add --model NAME, and OPENAI_API_KEY or --base-url for "
            "a server of your own"
        )
    client = open_client(judging, judging.model)
    prices = None if judging.prices is None else Prices.read(judging.prices)
    if judging.max_cost is not None and prices is None:
        raise UsageError(
            "--max-cost needs --prices IN,OUT: what a million tokens cost, as in "
            "--prices 0.15,0.6"
        )
    budget = Budget(prices, judging.max_calls, judging.max_cost)
    journal = Path(judging.journal) if judging.journal else JOURNAL
    progress = JudgingProgress(budget, journal)
    limits = {
        _RATE if name == "rpm" else name: value
        for name in _SETTINGS
        if (value := getattr(judging, name)) is not None
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
    session = DryRun if judging.dry_run else JudgeSession
    return session(client, settings, prompts=judging.prompts)


def open_client(judging: Judging, model: str) -> OpenAIClient:
    """A model at the server that the options name."""
    # A parameter by name beats the option for it.
    limit = {"max_tokens": judging.max_tokens} if judging.max_tokens else {}
    return OpenAIClient(
        model,
        base_url=judging.base_url,
        parameters={**limit, **judging.parameters},
        headers=dict(judging.headers),
    )


def claims_judge(judging: Judging) -> Claims:
    """The judge of claims that the options name."""
    session = open_session(judging)
    return Claims(session, votes=judging.votes or 1, texts=not judging.no_text)
