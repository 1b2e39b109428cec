"""What judging takes: a bar while it lasts, and a line on what was paid at its end."""

import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli.saying import say
from karat.cli.settings import log
from karat.data.tables import amount, counted
from karat.errors import KaratError
from karat.llm import Progress, Stage
from karat.llm.budget import Budget
from karat.reports.progress import Bar, has_room

__all__ = ["Meter"]

_INTERRUPTED = 130
_TERMINATED = 143
_TENTHS = 10


class Meter:
    """Shows how far hearings are, one after the other, and says what they took.

    On a terminal there is a bar; elsewhere the log says it at every tenth of the way.

    Args:
        budget: counts the calls, the tokens and the cost.
        journal: where replies are kept, for who wants to go on later.
    """

    def __init__(self, budget: Budget, journal: Path) -> None:
        self._budget = budget
        self._journal = journal
        self._hearings: list[Progress] = []
        self._bar: Bar | None = None
        self._logged = 0
        self._stop_code = _INTERRUPTED

    def attend(self, context: click.Context) -> None:
        """Watch over a command: sum up at its end, however it ends."""
        context.call_on_close(self.close)
        # Where an interrupt is not heard, as in the background of a script, being
        # terminated must not become one.
        heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if heard and threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, self._terminate)
            context.call_on_close(lambda: signal.signal(signal.SIGTERM, before))

    def __call__(self, progress: Progress) -> None:
        """Show it; a hearing begins with nothing done."""
        if progress.done == 0 or not self._hearings:
            self._take_off()
            self._logged = 0
            self._hearings.append(progress)
            if has_room():
                self._bar = Bar(str(progress.stage), progress.total)
        self._hearings[-1] = progress
        if self._bar is not None:
            self._bar.show(progress.done, _told(progress))
        elif (tenth := _TENTHS * progress.done // progress.total) > self._logged:
            self._logged = tenth
            log.info("%s", progress)
        if progress.done == progress.total:
            self._take_off()

    def close(self) -> None:
        """Say what was paid; after an interrupt also how to go on."""
        self._take_off()
        if self._hearings and isinstance(sys.exception(), KeyboardInterrupt):
            say(
                f"karat: interrupted; {self._paid()}, and all replies are kept in "
                f"{self._journal}: run the same command again to go on",
                err=True,
            )
            sys.exit(self._stop_code)
        cached = sum(hearing.cached for hearing in self._hearings)
        done = any(hearing.done for hearing in self._hearings)
        # What ended early and took nothing has an error to tell, and nothing else.
        kept = cached and not isinstance(sys.exception(), KaratError)
        if done and (self._budget.calls or kept):
            replies = f"{counted(cached, 'reply')} {'was' if cached == 1 else 'were'}"
            say(f"karat: {self._paid()}; {replies} kept already", err=True)

    def _paid(self) -> str:
        heard = " and ".join(map(_heard, self._together()))
        if not self._budget.calls:
            return f"{heard} took no call"
        tokens = self._budget.prompt_tokens + self._budget.completion_tokens
        calls = counted(self._budget.calls, "call")
        text = f"{heard} took {calls}, {tokens:,} tokens"
        cost = self._budget.cost
        return text if cost is None else f"{text}, cost {amount(cost)}"

    def _together(self) -> list[Progress]:
        """The hearings, those of one kind as one: several runs are one judging."""
        kinds: dict[Stage, Progress] = {}
        for hearing in self._hearings:
            before = kinds.get(hearing.stage, Progress(0, 0, stage=hearing.stage))
            kinds[hearing.stage] = replace(
                before,
                done=before.done + hearing.done,
                total=before.total + hearing.total,
                failed=before.failed + hearing.failed,
            )
        return [*kinds.values()]

    def _take_off(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _terminate(self, *_: Any) -> None:
        """End as an interrupt does, which lets replies on their way be kept."""
        self._stop_code = _TERMINATED
        signal.raise_signal(signal.SIGINT)


def _heard(progress: Progress) -> str:
    """What was done, as in `judging 3 of 5 samples (1 failed)`."""
    text = progress.stage.of(progress.total, progress.done)
    return f"{text} ({progress.failed} failed)" if progress.failed else text


def _told(progress: Progress) -> str:
    """What the bar does not show."""
    return str(progress).partition(", ")[2]
