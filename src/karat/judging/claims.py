"""Claims: a judge is the matcher of the claims that a reference answer makes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from karat.data.gold import Gold, Item
from karat.data.hits import Hits
from karat.data.judgements import Failure, Usage, Verdict
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Document, Notice, Run
from karat.data.spelling import Spelling
from karat.data.tables import counted
from karat.errors import DataError, ParameterError, UsageError
from karat.judging.agreement import calibration_of
from karat.judging.contexts import CONTEXT_TOKENS, Context, contexts_of, require_texts
from karat.judging.prompts import Prompts
from karat.judging.session import JudgeSession, as_client
from karat.judging.splitting import split_references
from karat.judging.support import majority, support
from karat.llm.limits import Settings, Stage, tokens_of
from karat.llm.run_jobs import Job
from karat.matching import Matcher
from karat.matching.texts import wanted_items

T = TypeVar("T")

_JUDGING = (Stage("judging", "sample"), Stage("taking", "vote"))

_Verdicts = tuple[Verdict, ...]

_SINGULAR = {"are": "is", "were": "was", "have": "has"}
_LABELS = {
    "contradict": "contradicted by what was retrieved, and not supported",
    "partial": "supported in part, which is not enough",
}


@dataclass(frozen=True, eq=False)
class Claims(Matcher):
    """A document satisfies a claim when a judge says that it supports it.

    Support by several documents together counts at the rank that completes them.
    Claims are those of the gold, else the judge splits the reference answer.

    Attributes:
        client: who answers: a client, the name of a model, a function from prompt to
            reply, or a session, whose limits hold for all it is used for.
        settings: how fast, how long and for how much it is asked, in each evaluation.
        votes: how many independent assessors decide, by majority.
        budget: tokens of contexts in one question.
        texts: whether claims and reasons may be shown in results.
        questions: what the queries ask, which helps to split references.
        prompts: other instructions: texts by name (`split`, `support`), or a file.

    Example:
        >>> import karat
        >>> def model(prompt):
        ...     return (
        ...         '{"verdicts": [{"claim": 1, "alone": [1], "parts": [],'
        ...         ' "complete": false, "against": [], "reason": "It says so."}]}'
        ...     )
        >>> samples = [{"contexts": ["It takes 2 days"], "claims": ["It takes 2 days"]}]
        >>> karat.evaluate(samples, metrics="context_recall", judge=Claims(model)).means
        {'context_recall': 1.0}
    """

    name: ClassVar[str] = "claims"
    reads: ClassVar[tuple[str, ...]] = ("claims",)
    costly: ClassVar[bool] = True

    client: Any
    settings: Settings | None = None
    votes: int = 1
    budget: int = CONTEXT_TOKENS
    texts: bool = True
    questions: Mapping[str, str] = field(default_factory=dict)
    prompts: Any = None

    # Two judges are never the same: each has its own client.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        if not isinstance(self.client, JudgeSession):
            object.__setattr__(self, "client", as_client(self.client))
        elif self.settings is not None or self.prompts is not None:
            raise UsageError(
                "a JudgeSession has settings and prompts of its own; give them to it"
            )
        if self.prompts is not None:
            object.__setattr__(self, "prompts", Prompts.read(self.prompts))
        for name in ("votes", "budget"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ParameterError(self.name, name, "an integer >= 1", value)

    @property
    def session(self) -> JudgeSession:
        """The model and its settings; limits start anew unless a session was given."""
        return JudgeSession.of(self.client, self.settings, self.prompts)

    @property
    def spelling(self) -> Spelling:
        """The name alone: model and parameters are in the provenance."""
        return Spelling(self.name)

    def informed(self, queries: Mapping[str, Query]) -> "Claims":
        """The judge, knowing what the queries ask."""
        texts = {name: query.text for name, query in queries.items() if query.text}
        return replace(self, questions={**texts, **self.questions})

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matches:
        """Have every claim of every query judged."""
        del judged
        _require_claims(gold)
        queries, session = gold.queries, self.session
        rankings = dict(run.rankings(policies))
        require_texts(rankings, run.name, policies)
        # Before anything is paid for: a document without a text is an error.
        contexts = {
            query: contexts_of(rankings.get(query, ()), query, run.name, policies)
            for query in queries
        }
        split = split_references(gold, session, self.questions)
        gold, failures, usage = split.gold, dict(split.failures), dict(split.usage)
        claims: dict[str, list[Item]] = {}
        voters: list[str] = []
        jobs: list[Job[_Verdicts]] = []
        for query in queries:
            if not (row := gold.claims.get(query)):
                continue
            # A claim that is stated twice is asked about once.
            once = {item.text: item for item in reversed(row)}
            claims[query] = [*once.values()][::-1]
            for assessor in range(1, self.votes + 1):
                voters.append(query)
                job = partial(
                    support,
                    claims[query],
                    contexts[query],
                    budget=self.budget,
                    assessor=assessor,
                    question=self.questions.get(query),
                    wording=session.prompts,
                )
                jobs.append(job)
        results = session.run_jobs(jobs, _JUDGING[self.votes > 1], voters)
        votes: dict[str, list[_Verdicts]] = {}
        rows = zip(voters, results, results.usage, strict=True)
        for query, vote, tokens in rows:
            votes.setdefault(query, []).append(
                tuple(Verdict(i.id, i.text, failure=vote.reason) for i in claims[query])
                if isinstance(vote, Failure)
                else vote
            )
            # The tokens that each query took: its split, and every vote on its claims.
            usage[query] = usage.get(query, Usage()) + tokens
        verdicts: dict[str, _Verdicts] = {}
        for query, ballots in votes.items():
            verdicts[query] = majority(ballots)
            reasons = [verdict.failure for verdict in verdicts[query]]
            if reasons[0] is not None and None not in reasons:
                failures[query] = reasons[0]
        hits, items = _hits(gold, rankings, verdicts, failures, policies)
        notices = (
            *self._notices(gold, verdicts, failures, contexts),
            *(self._vote_notices(votes) if self.votes > 1 else ()),
        )
        if not self.texts:
            verdicts = {
                query: tuple(replace(verdict, text="", reason="") for verdict in row)
                for query, row in verdicts.items()
            }
        models = sorted(split.models | results.models)
        return Matches(
            hits,
            items,
            missing=np.array([query not in rankings for query in queries], bool),
            extra=len(rankings.keys() - {*queries}),
            notices=notices,
            failures=_by_place(queries, failures),
            verdicts=_by_place(queries, verdicts),
            usage=_by_place(queries, usage),
            provenance={"judge": {**self.facts, "answered_by": models}},
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What it takes to get the same judgements again."""
        session = self.session
        client = session.client
        return {
            "model": client.model,
            "endpoint": client.endpoint,
            "parameters": dict(client.parameters),
            "prompts": session.prompts.version("split", "support"),
            "votes": self.votes,
        }

    def _notices(
        self,
        gold: Gold,
        verdicts: Mapping[str, Sequence[Verdict]],
        failures: Collection[str],
        contexts: Mapping[str, Sequence[Context]],
    ) -> Iterator[Notice]:
        pairs = [(query, verdict) for query, row in verdicts.items() for verdict in row]
        failed = [(query, one.failure) for query, one in pairs if one.failure]
        session, valid = self.session, len(pairs) - len(failed)
        if calibration := calibration_of(self.facts, session.settings.journal):
            kind, how = "calibrated", f"judged by {session.source}; {calibration}"
        else:
            kind = "uncalibrated"
            how = (
                f"judged by {session.source} alone; read its reasons (--explain "
                "QUERY), and compare it with people: karat judge --claims --agreement "
                "FILE"
            )
        if valid:
            yield _notice(kind, valid, "claim", "were", how)
        for label, what in _LABELS.items():
            if of := [query for query, verdict in pairs if verdict.label == label]:
                yield _notice(label, len(of), "claim", "are", what, of)
        known = {*filter(gold.claims.get, gold.claims), *failures}
        if without := [query for query in gold.queries if query not in known]:
            why = "no claims: no reference, an empty one, or no statement"
            yield _notice("claims", len(without), "query", "have", why, without)
        if session.loses_replies:
            why = (
                "judged by a function that only this process knows: "
                "karat.extend.FunctionClient(function, version=...) keeps its replies"
            )
            yield _notice("passing", valid, "claim", "were", why)
        if rest := [pair for pair in failed if pair[0] not in failures]:
            count = "counts" if len(rest) == 1 else "count"
            why = f"no valid verdict and {count} neither way: {rest[0][1]}"
            yield _notice("unjudged", len(rest), "claim", "have", why, [*dict(rest)])
        long = [
            query
            for query, row in contexts.items()
            for _, text in row
            if len(text) > self.budget and tokens_of(text) > self.budget
        ]
        if long:
            why = "read piece by piece, a call for each; cut into chunks they cost less"
            text = f"longer than {self.budget} tokens: {why}"
            yield _notice("long", len(long), "document", "are", text, long)

    def _vote_notices(self, votes: Mapping[str, Sequence[_Verdicts]]) -> list[Notice]:
        """Where votes differ, are tied or have failed."""
        ballots = [b for row in votes.values() for b in zip(*row, strict=True)]
        failed = [sum(v.failure is not None for v in row) for row in ballots]
        yes = [sum(v.supported for v in row) for row in ballots]
        no = [self.votes - y - f for y, f in zip(yes, failed, strict=True)]
        fewer = [*map(min, yes, no)]
        share = sum(fewer) / max(1, sum(yes) + sum(no))
        text = f"divided the {self.votes} votes; {share:.1%} of votes differ"
        if ties := sum(y == n > 0 for y, n in zip(yes, no, strict=True)):
            verb = "counts" if ties == 1 else "count"
            text += f"; {counted(ties, 'tie')} {verb} as not supported"
        if any(failed):
            short = counted(sum(map(bool, failed)), "claim")
            text += f"; {counted(sum(failed), 'vote')} failed, on {short}"
        divided = sum(map(bool, fewer))
        return [Notice("votes", divided, f"claims {text}", one=f"claim {text}")]


def _by_place(queries: Sequence[str], values: Mapping[str, T]) -> dict[int, T]:
    """What is said of queries, by their place instead of their name."""
    places = enumerate(queries)
    return {place: values[query] for place, query in places if query in values}


def _notice(
    kind: str, count: int, noun: str, verb: str, text: str, queries: Sequence[str] = ()
) -> Notice:
    """A notice in the plural and in the singular, with the first few queries."""
    many, examples = counted(0, noun)[2:], tuple(dict.fromkeys(queries))[:3]
    one = f"{noun} {_SINGULAR[verb]} {text}"
    return Notice(kind, count, f"{many} {verb} {text}", examples, one)


def _require_claims(gold: Gold) -> None:
    if any(gold.claims.values()) or any(map(str.strip, gold.references.values())):
        return
    empty = " (all are empty)" if gold.references else ""
    raise DataError(
        f"there is nothing to judge: no query has claims or a reference answer{empty}",
        path=gold.name,
        hint="a sample needs a field such as reference or claims; --map names another",
    )


def _hits(
    gold: Gold,
    rankings: Mapping[str, Sequence[Document]],
    verdicts: Mapping[str, Sequence[Verdict]],
    failures: Collection[str],
    policies: Policies,
) -> tuple[Hits, list[str]]:
    """A row for each rank that supports a claim, and the names of the claims.

    A claim without a verdict is neither found nor missed: it is no item.
    """
    rows: list[tuple[int, int, float, int, bool]] = []
    grades: list[float] = []
    counts: list[int] = []
    names: list[str] = []
    retrieved: list[int] = []
    for place, query in enumerate(gold.queries):
        by_text = {verdict.text: verdict for verdict in verdicts.get(query, ())}
        before = len(names)
        for item in wanted_items(gold.claims.get(query, ())):
            alone, together, against = set[int](), set[int](), set[int]()
            failed = False
            for text in item.texts:
                verdict = by_text[text]
                alone.update(verdict.alone, verdict.together[-1:])
                together.update(verdict.together)
                against.update(verdict.against)
                failed |= verdict.failure is not None
            if failed and not alone and query not in failures:
                continue
            for rank in alone | together:
                joint = rank not in alone
                rows.append((place, rank, item.grade, len(names), joint))
            grades.append(item.grade)
            names.append(item.name)
            # What contradicts the claim is judged, and not relevant.
            if against:
                rows += [(place, r, -item.grade, len(names), False) for r in against]
                grades.append(-item.grade)
                names.append(f"{item.name} (contradicted)")
        counts.append(len(names) - before)
        documents = rankings.get(query, ())
        collapse = policies.duplicates == "collapse"
        count = len({d.text for d in documents}) if collapse else len(documents)
        depth = count if policies.depth is None else policies.depth
        retrieved.append(min(count, depth))
    rows.sort()
    columns = [*zip(*rows, strict=True)] or [()] * 5
    hits = Hits(
        query=np.array(columns[0], np.int64),
        rank=np.array(columns[1], np.int64),
        grade=np.array(columns[2], np.float64),
        gold_count=np.array(counts, np.int64),
        gold_grade=np.array(grades, np.float64),
        retrieved=np.array(retrieved, np.int64),
        item=np.array(columns[3], np.int64),
        joint=np.array(columns[4], bool) if any(columns[4]) else None,
    )
    return hits, names
