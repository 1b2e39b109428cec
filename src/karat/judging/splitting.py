"""Splitting: a reference answer becomes claims, which people may correct."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ulp
from typing import Any

from karat.data.gold import IMPORTANCE, JUDGES, Gold, Item
from karat.data.judgements import Conversation, Failure, Usage
from karat.data.tables import counted
from karat.judging import prompts
from karat.judging.contexts import CONTEXT_TOKENS, pack
from karat.judging.grading import RELEVANT, is_graded
from karat.judging.replies import NOT_FILLED_IN, ask_again, is_blank, read_object
from karat.judging.session import JudgeSession
from karat.llm.limits import Stage
from karat.llm.run_jobs import Job

_SPLITTING = Stage("splitting", "reference")
_GATHERING = Stage("listing claims of", "query")


@dataclass(frozen=True, eq=False)
class Split:
    """Gold with claims for every reference that could be split, and why others not."""

    gold: Gold
    failures: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    models: frozenset[str] = frozenset()

    def summary(self, samples: Iterable[str] = ()) -> str:
        """How many claims there are and where they are from."""
        gold = self.gold
        claims = {query: len(row) for query, row in gold.claims.items() if row}
        references = [query for query in claims if query in gold.references]
        total = sum(claims[query] for query in references)
        source = counted(len(references), "reference")
        parts = [f"{counted(total, 'claim')} from {source}"]
        others = (row for q, row in gold.claims.items() if q not in gold.references)
        made = sum(item.source.startswith(JUDGES) for row in others for item in row)
        if made:
            parts.append(f"{counted(made, 'claim')} from relevant documents")
        if brought := sum(claims.values()) - total - made:
            parts.append(f"{counted(brought, 'claim')} brought by samples")
        if rest := len({*gold.queries, *samples} - claims.keys()):
            parts.append(f"{counted(rest, 'sample')} without")
        return ", ".join(parts)

    def to_dict(self, *, texts: bool = True) -> dict[str, Any]:
        """Claims and failures in plain values; texts may be left out."""
        return {
            "claims": [
                {
                    "query": query,
                    "claim": item.id,
                    "text": item.text if texts else "",
                    "grade": item.grade,
                    "labelled_by": item.source,
                }
                for query, row in self.gold.claims.items()
                for item in row
            ],
            "failures": [
                {"query": query, "reason": reason}
                for query, reason in self.failures.items()
            ],
        }


def split(
    question: str | None, reference: str, wording: prompts.Prompts = prompts.STANDARD
) -> Conversation[dict[str, float]]:
    """The claims of a reference answer, each with the grade of its importance."""
    prompt = prompts.split_prompt(question, reference, wording)
    return (yield from ask_again(prompt, _read_claims))


def gather(question: str, documents: Sequence[str]) -> Conversation[dict[str, float]]:
    """The claims that documents make in answer to a question, with their grades."""
    packed = pack([*enumerate(documents)], CONTEXT_TOKENS)[0]
    prompt = prompts.gather_prompt(question, [text for _, text in packed])
    return (yield from ask_again(prompt, partial(_read_claims, shown=documents)))


def split_references(
    gold: Gold,
    judge: Any,
    questions: Mapping[str, str] | None = None,
    corpus: Mapping[str, str] | None = None,
) -> Split:
    """Have every reference answer split into claims.

    Claims that the gold brings are kept as they are and cost no call. New ones name
    their source, so that a saved and corrected file still says who wrote what. With a
    corpus, a question without a reference gets the claims of its relevant documents.
    """
    session = JudgeSession.of(judge)
    questions = questions or {}
    jobs: dict[str, Job[dict[str, float]]] = {}
    for query, text in gold.references.items():
        if text.strip() and not gold.claims.get(query):
            jobs[query] = partial(split, questions.get(query), text, session.prompts)
    todo = {*jobs}
    jobs |= _gathering(gold, questions, corpus) if corpus else {}
    claims = dict(gold.claims)
    failures: dict[str, str] = {}
    stage = _SPLITTING if len(jobs) == len(todo) else _GATHERING
    results = session.run_jobs([*jobs.values()], stage, [*jobs])
    for query, result in zip(jobs, results, strict=True):
        if isinstance(result, Failure):
            what = "the reference" if query in todo else "what is relevant"
            failures[query] = f"{what} could not be split: {result.reason}"
            continue
        claims[query] = tuple(
            Item(f"claim-{number}", text, grade, session.source)
            for number, (text, grade) in enumerate(result.items(), 1)
        )
    return Split(
        replace(gold, claims=claims, order=tuple(gold.queries)),
        failures,
        dict(zip(jobs, results.usage, strict=True)),
        results.models,
    )


def _gathering(
    gold: Gold, questions: Mapping[str, str], corpus: Mapping[str, str]
) -> dict[str, Job[dict[str, float]]]:
    """What to ask of each question that has relevant documents and nothing else."""
    jobs: dict[str, Job[dict[str, float]]] = {}
    least = RELEVANT if is_graded(gold.documents) else ulp(0.0)
    for query, labels in gold.documents.items():
        best = sorted(labels, key=lambda name: -labels[name])
        texts = [corpus[n] for n in best if labels[n] >= least and n in corpus]
        has_more = gold.claims.get(query) or gold.references.get(query, "").strip()
        if texts and questions.get(query) and not has_more:
            jobs[query] = partial(gather, questions[query], texts)
    return jobs


def _read_claims(text: str, shown: Sequence[str] = ()) -> dict[str, float] | str:
    reply = read_object(text, shown)
    if isinstance(reply, str):
        return reply
    claims = reply.get("claims")
    if not isinstance(claims, list):
        return "it has no list of claims"
    grades: dict[str, float] = {}
    for claim in claims:
        # Models that follow no schema often leave out what is usual.
        entry = claim if isinstance(claim, dict) else {"text": claim}
        statement = entry.get("text")
        importance = str(entry.get("importance") or "vital").strip().lower()
        if not isinstance(statement, str) or importance not in IMPORTANCE:
            return "a claim must have a text, and be vital or okay"
        if is_blank(statement):
            return NOT_FILLED_IN
        if statement := " ".join(statement.split()):
            grades.setdefault(statement, IMPORTANCE[importance])
    return grades
