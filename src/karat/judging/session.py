"""The bench: a model, how it is asked, and a rehearsal that asks nobody."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from karat.data.gold import JUDGES
from karat.data.judgements import Conversation, Failure, Prompt, Usage
from karat.errors import IncompleteError, OfflineMissError
from karat.llm import (
    Client,
    Estimate,
    Progress,
    Results,
    Settings,
    Stage,
    awaited,
    estimate,
    run_jobs,
)
from karat.llm.budget import Budget
from karat.llm.client import as_client
from karat.llm.estimation import unanswered

__all__ = ["DryRun", "JudgeSession"]

T = TypeVar("T")
_ROWS = Stage()


@dataclass(frozen=True, eq=False)
class JudgeSession:
    """A model and how it is asked.

    Attributes:
        client: who answers prompts.
        settings: how fast, how long and for how much.
        failed: in which ways judgements have failed so far.
    """

    client: Client
    settings: Settings = field(default_factory=Settings)
    failed: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        told = self.settings
        if told.budget is None:
            # Splitting and judging are two hearings, and their limits are one.
            budget = Budget(told.prices, told.max_calls, told.max_cost)
            object.__setattr__(self, "settings", replace(told, budget=budget))

    @staticmethod
    def of(judge: Any, settings: Settings | None = None) -> "JudgeSession":
        """A bench from one, a client, the name of a model, or a function.

        A function is given the prompt's text and returns the reply's.
        """
        if isinstance(judge, JudgeSession):
            return judge
        return JudgeSession(as_client(judge), settings or Settings())

    @property
    def source(self) -> str:
        """How labels name this judge: by its model, or by the function that it is.

        Spaces would end the column of a qrels file.
        """
        name: str = getattr(self.client, "label", self.client.model)
        return JUDGES + "_".join(name.split())

    @property
    def forgetful(self) -> bool:
        """Whether replies are to be kept, but nobody could find them again."""
        lasting = getattr(self.client, "lasting", True)
        return self.settings.journal is not None and not lasting

    def run_jobs(
        self,
        jobs: Sequence[Callable[[], Conversation[T]]],
        stage: Stage = _ROWS,
        queries: Sequence[str] = (),
    ) -> Results[T]:
        """The verdict of each judge, in order; a failure is a value with a reason.

        Args:
            jobs: the judges.
            stage: what they do, for whoever waits for it.
            queries: the query of each, for whoever looks for what is missing.
        """
        return awaited(lambda: self.ahear(jobs, stage, queries))

    async def ahear(
        self,
        jobs: Sequence[Callable[[], Conversation[T]]],
        stage: Stage = _ROWS,
        queries: Sequence[str] = (),
    ) -> Results[T]:
        """The same, to be awaited where an event loop runs already."""
        if not jobs:
            return Results()
        settings = self.settings
        if (tell := settings.progress) is not None:
            settings = replace(
                settings, progress=lambda now: tell(replace(now, stage=stage))
            )
            # The first reply may take long, and nobody likes to wait in the dark.
            tell(Progress(0, len(jobs), stage=stage))
        try:
            heard = await run_jobs(jobs, self.client, settings)
        except IncompleteError as error:
            told = (error.reason, error.done, error.total, error.failed)
            raise IncompleteError(
                *told, kept=error.kept, during=str(stage)
            ) from error.__cause__
        except OfflineMissError:
            raise self._missed(jobs, stage, queries) from None
        self.failed.update(row.kind for row in heard if isinstance(row, Failure))
        return heard

    def _missed(
        self, jobs: Sequence[Any], stage: Stage, queries: Sequence[str]
    ) -> OfflineMissError:
        """How many judges lack a reply that may not be asked for, and which first."""
        missing = unanswered(jobs, self.client, self.settings)
        asked = [queries[place] for place in missing[:1] if queries]
        first = f", the first for query {asked[0]!r}" if asked else ""
        return OfflineMissError(
            f"offline, but {stage.of(len(jobs), len(missing))} takes replies of "
            f"{self.client.model!r} at {self.client.endpoint} that are not in "
            f"{self.settings.journal}{first}; run once without offline to get them"
        )


@dataclass(frozen=True, eq=False)
class DryRun(JudgeSession):
    """A bench that asks nobody and counts what asking would take.

    Replies in the journal are used. Beyond them a reference is taken for one claim per
    sentence, and nothing is found to be supported or relevant.

    Attributes:
        parts: what each round of questions would take.
    """

    parts: list[Estimate] = field(default_factory=list)

    async def ahear(
        self,
        jobs: Sequence[Callable[[], Conversation[T]]],
        stage: Stage = _ROWS,
        queries: Sequence[str] = (),
    ) -> Results[T]:
        """Carry every deliberation through with kept or made-up replies."""
        del queries
        heard: list[T | Failure] = [Failure("not asked")] * len(jobs)

        def follow(place: int) -> Conversation[None]:
            heard[place] = yield from jobs[place]()

        walks = [partial(follow, place) for place in range(len(jobs))]
        taken = estimate(walks, self.client, self.settings, _assume)
        if jobs:
            self.parts.append(replace(taken, stages=((stage, len(jobs)),)))
        return Results(heard, [Usage()] * len(jobs))

    @property
    def total(self) -> Estimate:
        """What all rounds together would take."""
        costs = [part.cost for part in self.parts if part.cost is not None]
        return Estimate(
            rows=sum(part.rows for part in self.parts),
            calls=sum(part.calls for part in self.parts),
            cached=sum(part.cached for part in self.parts),
            prompt_tokens=sum(part.prompt_tokens for part in self.parts),
            completion_tokens=sum(part.completion_tokens for part in self.parts),
            cost=sum(costs) if costs else None,
            unseen=sum(part.unseen for part in self.parts),
            stages=tuple(stage for part in self.parts for stage in part.stages),
        )


_ANSWER = re.compile(r"\[begin answer \| \w+\]\n(.*)\n\[end answer", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s*")
_REASON = "The context says in other words about what the claim says, or it does not."


def _split(prompt: Prompt) -> str:
    found = _ANSWER.search(prompt.user)
    sentences = _SENTENCE.split(found[1] if found else "")
    return json.dumps({"claims": [s for s in sentences if s.strip()]})


def _support(prompt: Prompt) -> str:
    verdicts: Any = (prompt.schema or {})["properties"]["verdicts"]
    numbers = verdicts["items"]["properties"]["claim"]["enum"]
    blank = {"alone": [], "parts": [], "complete": False, "reason": _REASON}
    return json.dumps({"verdicts": [{"claim": n, **blank} for n in numbers]})


def _grade(prompt: Prompt) -> str:
    del prompt
    return json.dumps({"reason": _REASON, "grade": 0})


_REPLIES: Mapping[str, Callable[[Prompt], str]] = {
    "split": _split,
    "support": _support,
    "grade": _grade,
}


def _assume(prompt: Prompt) -> str:
    return _REPLIES[prompt.name](prompt)
