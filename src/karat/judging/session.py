"""A model with its settings, and a dry run that makes no call."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from karat.data.gold import JUDGES
from karat.data.judgements import Failure, Prompt, Usage
from karat.errors import UsageError
from karat.judging.prompts import Prompts
from karat.llm.callables import FunctionClient, run_sync
from karat.llm.dry_run import Estimate, rehearse
from karat.llm.http import check_endpoint
from karat.llm.limits import Budget, Client, Settings, Stage
from karat.llm.openai_client import OpenAIClient
from karat.llm.run_jobs import Job, Results, run_jobs

T = TypeVar("T")
_ROWS = Stage()


def as_client(answerer: Any) -> Client:
    """A client: as it is, by the name of a model, or around a function."""
    if isinstance(answerer, str):
        return OpenAIClient(answerer)
    if isinstance(answerer, Client):
        return answerer
    if hasattr(answerer, "chat"):
        raise UsageError(
            f"an {type(answerer).__name__} does not say which model answers: give the "
            "model's name alone, or karat.extend.ChatClient(NAME, client=client)"
        )
    if callable(answerer):
        return FunctionClient(answerer)
    raise UsageError(
        "a judge is the name of a model, a client, or a function from prompt to reply; "
        f"got {type(answerer).__name__}"
    )


@dataclass(frozen=True, eq=False)
class JudgeSession:
    """A model and the settings of its runs, which share one budget.

    Attributes:
        client: answers prompts; given as a client, the name of a model, or a function.
        settings: speed, limits and the journal.
        failed: the kinds of failures so far.
        prompts: the instructions: texts by name (`split`, `support`, `grade`), a file
            of them, or `umbrela` for the grades of that name.

    Example:
        >>> from karat.extend import JudgeSession, Settings
        >>> session = JudgeSession(lambda prompt: "{}", Settings(max_calls=10))
        >>> session.settings.max_calls
        10
    """

    client: Client
    settings: Settings = field(default_factory=Settings)
    failed: set[str] = field(default_factory=set, repr=False)
    prompts: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "client", as_client(self.client))
        object.__setattr__(self, "prompts", Prompts.read(self.prompts))
        settings = self.settings
        if settings.budget is None:
            budget = Budget(settings.prices, settings.max_calls, settings.max_cost)
            object.__setattr__(self, "settings", replace(settings, budget=budget))

    @staticmethod
    def of(
        judge: Any, settings: Settings | None = None, prompts: Any = None
    ) -> "JudgeSession":
        """A session from one, a client, the name of a model, or a function."""
        if isinstance(judge, JudgeSession):
            return judge
        return JudgeSession(judge, settings or Settings(), prompts=prompts)

    @property
    def source(self) -> str:
        """The name of this judge in labels, from its model or its function.

        It holds no spaces, which would end the column of a qrels file.
        """
        name: str = getattr(self.client, "label", self.client.model)
        return JUDGES + "_".join(name.split())

    @property
    def loses_replies(self) -> bool:
        """Whether there is a journal, but other processes cannot use these replies."""
        persistent = getattr(self.client, "persistent", True)
        return self.settings.journal is not None and not persistent

    def run_jobs(
        self, jobs: Sequence[Job[T]], stage: Stage = _ROWS, queries: Sequence[str] = ()
    ) -> Results[T]:
        """The result of each conversation, in order; a failure has a reason.

        The stage is shown as progress; of the queries, one whose reply is missing.
        """
        return run_sync(partial(self.arun_jobs, jobs, stage, queries))

    async def arun_jobs(
        self, jobs: Sequence[Job[T]], stage: Stage = _ROWS, queries: Sequence[str] = ()
    ) -> Results[T]:
        """The same, to be awaited where an event loop is running."""
        if not jobs:
            return Results()
        results = await run_jobs(jobs, self.client, self.settings, stage, queries)
        self.failed.update(row.kind for row in results if isinstance(row, Failure))
        return results


@dataclass(frozen=True, eq=False)
class DryRun(JudgeSession):
    """A session that makes no call and estimates what the calls would take.

    Replies in the journal are used. Beyond them a reference is assumed to have one
    claim per sentence, no document to be relevant or to support a claim, and a question
    that is to be written to have the words its passage begins with, and one more.

    Attributes:
        parts: the estimate of each run.

    Example:
        >>> import karat
        >>> from karat.extend import Claims, DryRun
        >>> session = DryRun(lambda prompt: "{}")
        >>> samples = [{"contexts": ["It takes 2 days"], "claims": ["It takes 2 days"]}]
        >>> _ = karat.evaluate(samples, metrics="context_recall", judge=Claims(session))
        >>> sum(part.calls for part in session.parts)
        1
    """

    parts: list[Estimate] = field(default_factory=list)

    async def arun_jobs(
        self, jobs: Sequence[Job[T]], stage: Stage = _ROWS, queries: Sequence[str] = ()
    ) -> Results[T]:
        """Carry every job through with replies of the journal or assumed ones."""
        part, results = await rehearse(jobs, self.client, self.settings, _assume)
        if part.calls and self.settings.offline:
            # It says which replies are missing.
            return await super().arun_jobs(jobs, stage, queries)
        if jobs:
            self.parts.append(replace(part, stages=((stage, len(jobs)),)))
        rows = (Failure("not asked") if row is None else row for row in results)
        return Results(rows, [Usage()] * len(jobs))

    def check(self) -> None:
        """Refuse what the run itself would be refused for, before its first call."""
        check_endpoint(self.client.endpoint)
        prepare = getattr(self.client, "prepare", None)
        if prepare is not None and self.total.calls:
            prepare()

    @property
    def total(self) -> Estimate:
        """The estimate of all runs together."""
        costs = [part.cost for part in self.parts if part.cost is not None]
        stages = tuple(stage for part in self.parts for stage in part.stages)
        counts = {n: sum(getattr(part, n) for part in self.parts) for n in _COUNTS}
        return Estimate(**counts, cost=sum(costs) if costs else None, stages=stages)


_COUNTS = ("rows", "calls", "cached", "prompt_tokens", "completion_tokens", "unseen")
_ANSWER = re.compile(r"\[begin answer \| \w+\]\n(.*)\n\[end answer", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s*")
_REASON = "The context says in other words about what the claim says, or it does not."


def _assume(prompt: Prompt) -> str:
    """A reply of the usual length: claims are sentences, and nothing is supported."""
    reply: dict[str, Any] = {"reason": _REASON, "grade": 0}
    if prompt.name == "write":
        numbers = [*range(1, prompt.user.count("[begin passage") + 1)]
        claim = {"text": _REASON, "importance": "vital", "passages": numbers}
        passage = prompt.user.split("\n", 1)[1][: len(_REASON)]
        # As a model does, it writes another question in another style.
        own = sha256(f"{prompt.system}{prompt.user}".encode()).hexdigest()[:8]
        reply = {"question": f"{passage} {own}", "answer": _REASON, "claims": [claim]}
    elif prompt.name == "alone":
        reply = {"reason": _REASON, "clear": True, "answer": _REASON}
    elif prompt.name in ("split", "gather"):
        answer = _ANSWER.search(prompt.user)
        sentences = _SENTENCE.split(answer[1] if answer else "")
        claims = [{"text": s, "importance": "vital"} for s in sentences if s.strip()]
        reply = {"claims": claims}
    elif prompt.name == "support":
        verdicts: Any = (prompt.schema or {})["properties"]["verdicts"]
        numbers = verdicts["items"]["properties"]["claim"]["enum"]
        blank = {"alone": [], "parts": [], "complete": False, "against": []}
        entries = [{"claim": n, "reason": _REASON, **blank} for n in numbers]
        reply = {"verdicts": entries}
    return json.dumps(reply)
