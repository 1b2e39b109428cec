"""Claims: a reference answer becomes gold items, and a judge their matcher."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from karat.data.gold import Gold
from karat.data.judgements import Conversation, Failure, Usage
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Notice, Run
from karat.data.spelling import Spelling
from karat.data.verdicts import Verdict
from karat.errors import DataError, ParameterError, UsageError
from karat.judging import prompts
from karat.judging.contexts import contexts_of, long_contexts
from karat.judging.layout import lay_out
from karat.judging.packing import Context
from karat.judging.session import JudgeSession
from karat.judging.splitting import Split, split_references
from karat.judging.support import BUDGET, MOST_VOTES, majority, support
from karat.llm import Results, Settings, Stage
from karat.llm.callables import as_client
from karat.matching.matcher import FirstRanks, Matched, Matcher

__all__ = ["Claims"]

_JUDGING = (Stage("judging", "sample"), Stage("taking", "vote"))


@dataclass(frozen=True, eq=False)
class Claims(Matcher):
    """A document satisfies a claim when a judge says that it supports it.

    Support by several documents together counts at the rank that completes them.
    Claims are those of the gold, else the judge splits the reference answer.

    Attributes:
        client: who answers: a client, the name of a model, a function from prompt to
            reply, or a bench, whose limits hold for all it is used for.
        settings: how fast, how long and for how much it is asked, in each evaluation.
        votes: how many independent assessors decide, by majority.
        budget: tokens of contexts in one question.
        texts: whether claims and reasons may be shown in results.
        questions: what the queries ask, which helps to split references.
    """

    name: ClassVar[str] = "claims"
    reads: ClassVar[tuple[str, ...]] = ("claims",)
    costly: ClassVar[bool] = True

    client: Any
    settings: Settings | None = None
    votes: int = 1
    budget: int = BUDGET
    texts: bool = True
    questions: Mapping[str, str] = field(default_factory=dict)

    # Two judges are never the same: each has its own client.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        if not isinstance(self.client, JudgeSession):
            object.__setattr__(self, "client", as_client(self.client))
        elif self.settings is not None:
            raise UsageError("a bench has settings of its own; give them to it instead")
        for name in ("votes", "budget"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ParameterError(self.name, name, "an integer >= 1", value)
        if self.votes > MOST_VOTES:
            wanted = f"{MOST_VOTES} at most"
            raise ParameterError(self.name, "votes", wanted, self.votes)

    @property
    def bench(self) -> JudgeSession:
        """The model and how it is asked; limits begin anew unless a bench was given."""
        return JudgeSession.of(self.client, self.settings)

    @property
    def spelling(self) -> Spelling:
        """The name alone: what the judge is made of is told in the notes."""
        return Spelling(self.name)

    def informed(self, queries: Mapping[str, Query]) -> "Claims":
        """The judge, knowing what was asked."""
        texts = {name: query.text for name, query in queries.items() if query.text}
        return replace(self, questions={**texts, **self.questions})

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matched:
        """Have every claim of every query judged."""
        del judged
        _refuse_nothing_to_judge(gold)
        queries, bench = gold.queries, self.bench
        rankings = dict(run.rankings(policies))
        # Before anything is paid for: a document without a text is an error.
        contexts = {
            query: contexts_of(rankings.get(query, []), query, policies)
            for query in queries
        }
        done = split_references(gold, bench, self.questions)
        gold = done.gold
        heard, verdicts = self._verdicts(gold, contexts, bench)
        usage = self._usage(done, heard, verdicts)
        failures: dict[int, str] = {}
        for place, query in enumerate(queries):
            said = (verdict.failure for verdict in verdicts.get(query, ()))
            whys = (done.failures.get(query), *said)
            if reasons := [why for why in whys if why is not None]:
                failures[place] = reasons[0]
        return Matched(
            hits=lay_out(gold, rankings, verdicts, policies),
            missing=np.array([query not in rankings for query in queries], bool),
            extra=len(rankings.keys() - {*queries}),
            notices=(
                *self._notices(gold, verdicts, done.failures),
                *long_contexts(contexts, self.budget),
            ),
            failures=failures,
            verdicts={
                place: self._shown(verdicts[query])
                for place, query in enumerate(queries)
                if query in verdicts
            },
            first_ranks=[
                FirstRanks(
                    {v.claim: v.rank for v in verdicts.get(query, ())},
                    len(rankings.get(query, ())),
                )
                for query in queries
            ],
            usage={
                place: usage[query]
                for place, query in enumerate(queries)
                if query in usage
            },
            provenance={"judge": self._facts(done.models | heard.models)},
        )

    def first_ranks(
        self, run: Run, gold: Gold, policies: Policies
    ) -> Sequence[FirstRanks]:
        """Where each claim was first supported."""
        return self.match(run, gold, judged=False, policies=policies).first_ranks or ()

    def _verdicts(
        self, gold: Gold, contexts: Mapping[str, Sequence[Context]], bench: JudgeSession
    ) -> tuple[Results[tuple[Verdict, ...]], dict[str, tuple[Verdict, ...]]]:
        todo = [query for query in gold.queries if gold.claims.get(query)]
        jobs: list[Callable[[], Conversation[tuple[Verdict, ...]]]] = [
            partial(
                support,
                gold.claims[query],
                contexts[query],
                budget=self.budget,
                assessor=assessor,
            )
            for query in todo
            for assessor in range(1, self.votes + 1)
        ]
        voters = [query for query in todo for _ in range(self.votes)]
        heard = bench.run_jobs(jobs, _JUDGING[self.votes > 1], voters)
        verdicts = {}
        for place, query in enumerate(todo):
            said = heard[place * self.votes : (place + 1) * self.votes]
            votes = [
                tuple(
                    Verdict(item.id, item.text, failure=vote.reason)
                    for item in gold.claims[query]
                )
                if isinstance(vote, Failure)
                else vote
                for vote in said
            ]
            verdicts[query] = majority(votes)
        return heard, verdicts

    def _usage(
        self,
        done: Split,
        heard: Results[tuple[Verdict, ...]],
        verdicts: Mapping[str, Sequence[Verdict]],
    ) -> dict[str, Usage]:
        """The tokens that each query took: its split, and every vote on its claims."""
        usage = dict(done.usage)
        for place, query in enumerate(verdicts):
            votes = heard.usage[place * self.votes : (place + 1) * self.votes]
            usage[query] = sum(votes, usage.get(query, Usage()))
        return usage

    def _facts(self, models: Collection[str]) -> dict[str, Any]:
        """What it takes to have the same judgements again, and who made them."""
        client = self.bench.client
        return {
            "model": client.model,
            "endpoint": client.endpoint,
            "parameters": dict(client.parameters),
            "prompts": prompts.VERSION,
            "votes": self.votes,
            "answered_by": sorted(models),
        }

    def _shown(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        if self.texts:
            return tuple(verdicts)
        return tuple(replace(verdict, text="", reason="") for verdict in verdicts)

    def _notices(
        self,
        gold: Gold,
        verdicts: Mapping[str, Sequence[Verdict]],
        unsplit: Mapping[str, str],
    ) -> tuple[Notice, ...]:
        said = [v for row in verdicts.values() for v in row if v.failure is None]
        alone = (
            f"judged by {self.bench.source} alone; read its reasons (--explain QUERY), "
            "and try it with karat judge --claims --probe"
        )
        were, was = f"claims were {alone}", f"claim was {alone}"
        notices = [Notice("uncalibrated", len(said), were, one=was)] if said else []
        silent = [
            query
            for query in gold.queries
            if not gold.claims.get(query) and query not in unsplit
        ]
        if silent:
            why = "no claims: no reference, an empty one, or no statement"
            text, one = f"queries have {why}", f"query has {why}"
            notices.append(Notice("claims", len(silent), text, tuple(silent[:3]), one))
        if self.bench.loses_replies:
            why = (
                "judged by a function that only this process knows: "
                "karat.judging.FunctionClient(function, model=NAME) keeps its replies"
            )
            text, one = f"claims were {why}", f"claim was {why}"
            notices.append(Notice("passing", len(said), text, one=one))
        if self.votes > 1:
            split_votes = [verdict for verdict in said if verdict.disagreement]
            share = sum(v.disagreement for v in said) / max(1, len(said))
            text = f"divided the {self.votes} votes; {share:.1%} of votes differ"
            told = (f"claims {text}", f"claim {text}")
            notices.append(Notice("votes", len(split_votes), told[0], one=told[1]))
        return tuple(notices)


def _refuse_nothing_to_judge(gold: Gold) -> None:
    if any(gold.claims.values()) or any(map(str.strip, gold.references.values())):
        return
    empty = " (all are empty)" if gold.references else ""
    raise DataError(
        f"there is nothing to judge: no query has claims or a reference answer{empty}",
        path=gold.name,
        hint="a sample needs a field such as reference or claims; --map names another",
    )
