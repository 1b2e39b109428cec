"""Question sets: certified questions with their gold, and what was dropped and why."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from karat.data.gold import Gold, Span
from karat.data.queries import Dataset, Query
from karat.data.runs import Notice
from karat.generating.writing import VERSION, Written
from karat.judging.grading import LAST, RELEVANT
from karat.reading.write import write

CHECKS: Mapping[str, str] = {
    "reply": "no usable reply",
    "empty": "nothing to ask",
    "language": "another language",
    "alone": "not clear alone",
    "leak": "leak",
    "unique": "duplicate",
    "answerable": "not answerable",
    "closed book": "known by heart",
    "one passage": "one passage enough",
    "firm": "not firm",
    "vague": "too vague",
}
"""What a question may fail by, in this order, and how that is counted in words."""

# So many questions, checked by a person, say within a tenth or so how many are good.
_CHECKED = 30


@dataclass(eq=False)
class Candidate:
    """A question on its way through the checks.

    The passages that it was written from have their grades before any judge's: one
    alone answers it fully, several in part.
    """

    passages: tuple[str, ...]
    texts: Sequence[str]
    style: str
    written: Written = field(default_factory=lambda: Written(""))
    checks: dict[str, str] = field(default_factory=dict)
    failed: str | None = None
    grades: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        alone = len(self.passages) == 1
        self.grades = dict.fromkeys(self.passages, LAST if alone else RELEVANT)

    def check(self, name: str, reason: str, *, passes: bool) -> None:
        """Note the outcome of a check."""
        self.checks[name] = reason
        self.failed = self.failed if passes else name

    @property
    def relevant(self) -> list[str]:
        """The passages that answer the question, fully or in part."""
        return [name for name, grade in self.grades.items() if grade >= RELEVANT]


@dataclass(frozen=True, eq=False)
class QuestionSet:
    """Questions from a corpus, each certified, with gold that `evaluate` takes.

    Attributes:
        gold: relevant documents with grades (0: judged, and not relevant), spans of
            their sources, reference answers, and claims.
        queries: the questions, each with its hops and style as tags and its checks,
            with reasons, as metadata.
        dropped: question, check and reason of each that failed a check.
        notices: what to know before relying on it.

    Example:
        >>> print(QuestionSet(Gold(), {}, [("Who is he?", "alone", "who?")]))
        asked 1, kept 0: 1 not clear alone
    """

    gold: Gold
    queries: Mapping[str, Query]
    dropped: Sequence[tuple[str, str, str]] = ()
    notices: Sequence[Notice] = ()

    def __str__(self) -> str:
        kept = len(self.queries)
        text = f"asked {kept + len(self.dropped)}, kept {kept}"
        reasons = [f"{count} {CHECKS[check]}" for check, count in self.counts.items()]
        return f"{text}: {', '.join(reasons)}" if reasons else text

    @property
    def counts(self) -> dict[str, int]:
        """How many questions each check dropped; most first."""
        return dict(Counter(check for _, check, _ in self.dropped).most_common())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `gold=` and `--gold` read, such as questions.jsonl."""
        write(Dataset(gold=self.gold, queries=self.queries), path, role="gold")

    def to_dict(self) -> dict[str, Any]:
        """What became of every question, in plain values."""
        facts = {q.id: {"query": q.text, **q.metadata} for q in self.queries.values()}
        names = ("query", "check", "reason")
        dropped = [dict(zip(names, row, strict=True)) for row in self.dropped]
        return {"counts": self.counts, "questions": facts, "dropped": dropped}


def question_set(
    kept: Sequence[Candidate],
    dropped: Sequence[Candidate],
    passages: Mapping[str, Span],
    signatures: tuple[str, str],
    wanted: int,
    chance: Random,
) -> QuestionSet:
    """The questions that passed every check with their gold, signed by its makers.

    Some are drawn at random for people to check: those wait for a mark.
    """
    writer, judge = signatures
    kinds = ("documents", "sources", "references", "claims", "spans")
    parts: Any = {kind: {} for kind in kinds}
    queries = {}
    drawn = chance.sample(range(len(kept)), min(_CHECKED, len(kept)))
    for number, one in enumerate(kept, 1):
        query, written = f"q{number}", one.written
        labels: dict[str, float] = {}
        for name, grade in one.grades.items():
            # Grade 1 does not help to answer, and any positive grade is relevant.
            label = float(grade) if grade >= RELEVANT else 0.0
            document = passages[name].id
            labels[document] = max(label, labels.get(document, 0.0))
        parts["documents"][query] = labels
        parts["sources"][query] = dict.fromkeys(labels, judge)
        parts["references"][query] = written.answer
        parts["claims"][query] = tuple(
            replace(c, source=writer) for c in written.claims
        )
        parts["spans"][query] = tuple(
            replace(
                passages[name],
                id=f"span-{place}",
                grade=float(one.grades[name]),
                source=judge,
            )
            for place, name in enumerate(one.relevant, 1)
        )
        metadata: dict[str, object] = {
            "checks": one.checks,
            "claim_spans": [[*numbers] for numbers in written.named],
            "prompts": VERSION,
        }
        metadata |= {"checked": ""} if number - 1 in drawn else {}
        tags = (f"hops-{len(one.passages)}", one.style)
        queries[query] = Query(query, written.question, None, tags, metadata)
    failures = [
        (one.written.question, one.failed, one.checks[one.failed])
        for one in dropped
        if one.failed
    ]
    notices = []
    if writer == judge:
        text = "{} written and judged by one model, which is kind to its own"
        notices.append(_notice("same model", len(kept), text, "was", "were"))
    if missing := wanted - len(kept):
        text = "{} missing: passages, or attempts at questions, ran out"
        notices.append(_notice("missing", missing, text, "is", "are"))
    return QuestionSet(Gold(**parts, name="questions"), queries, failures, notices)


def _notice(kind: str, count: int, text: str, one: str, many: str) -> Notice:
    several, single = f"questions {many}", f"question {one}"
    return Notice(kind, count, text.format(several), one=text.format(single))
