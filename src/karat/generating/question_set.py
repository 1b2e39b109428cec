"""Question sets: certified questions with their gold, and what people keep of them.

A person's decision is a JSON line that a page saved: `query`, `decision`, for a fix the
new `question` and `reference`, and `who` took it, `when` and `why`.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from karat.data.gold import Gold, Span
from karat.data.queries import Dataset, Query
from karat.data.runs import Notice
from karat.errors import FormatError
from karat.generating.conversations import VERSION, Written
from karat.judging.grading import LAST, RELEVANT
from karat.reading.labels import first_row, parse_rows, signature
from karat.reading.meaning.values import read_id
from karat.reading.readers import read
from karat.reading.source import Source
from karat.reading.write import write
from karat.results.notices import good_questions

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
        text = "written and judged by one model, which is kind to its own"
        was, were = f"question was {text}", f"questions were {text}"
        notices.append(Notice("same model", len(kept), were, one=was))
    if missing := wanted - len(kept):
        text = "missing: passages, or attempts at questions, ran out"
        verbs = f"question is {text}", f"questions are {text}"
        notices.append(Notice("missing", missing, verbs[1], one=verbs[0]))
    return QuestionSet(Gold(**parts, name="questions"), queries, failures, notices)


def read_questions(path: str) -> Dataset:
    """A file that `generate` wrote, or that decisions made of one."""
    try:
        questions = read(path)
    except FormatError as error:
        if error.line is not None or not first_row(path):
            raise
        # Its rows are fine, but of another kind: no field that is named would help.
        questions = Dataset()
    if not any("prompts" in one.metadata for one in questions.queries.values()):
        raise FormatError(
            "is no file of generated questions",
            path=path,
            hint="karat generate writes one; what runs retrieved is labelled with "
            "karat label new RUN -o label.html",
        )
    return questions


def drawn_questions(questions: Dataset) -> list[str]:
    """The questions drawn for people to check that wait for it, in random order.

    Whoever stops halfway has looked at a random half of them.
    """
    facts = questions.queries.items()
    drawn = [query for query, fact in facts if fact.metadata.get("checked") == ""]
    return Random(0).sample(drawn, len(drawn))  # noqa: S311


def apply_decisions(
    questions: Dataset, files: Sequence[str]
) -> tuple[Dataset, Counter[str]]:
    """What decisions leave of questions, and how many there were of each kind.

    Of several on one question the last counts. How many of the questions drawn were
    good as they were written stands with each that is left.
    """
    gold = questions.gold or Gold()
    parse = partial(_read_decision, questions)
    last = {row["query"]: row for path in files for row in parse_rows(path, parse)}
    references, claims = dict(gold.references), dict(gold.claims)
    good, size = good_questions(questions.queries.values())
    left: dict[str, Query] = {}
    for query, fact in questions.queries.items():
        row, metadata = last.get(query, {}), dict(fact.metadata)
        decision, text = row.get("decision"), row.get("question", fact.text)
        if decision:
            why = {"why": row["why"]} if row.get("why") else {}
            metadata["decision"] = {"is": decision, "by": signature(row), **why}
        if decision and metadata.get("checked") == "":
            metadata["checked"] = "good" if decision == "keep" else "bad"
            good, size = good + (decision == "keep"), size + 1
        if text != fact.text:
            # Checks are of the words that there were, and so are claims of the answer.
            metadata.pop("checks", None)
        if row.get("reference", references.get(query)) != references.get(query):
            references[query] = row["reference"]
            claims.pop(query, None)
            metadata.pop("claim_spans", None)
        if decision != "drop":
            left[query] = replace(fact, text=text, metadata=metadata)
    if size:
        share = {"checked_good": good, "checked_size": size}
        for query, fact in left.items():
            left[query] = replace(fact, metadata={**fact.metadata, **share})
    gold = replace(gold, references=references, claims=claims, order=tuple(left))
    counts = Counter(row["decision"] for row in last.values())
    return replace(questions, gold=gold, queries=left), counts


def _read_decision(questions: Dataset, row: Any, where: Source) -> dict[str, Any]:
    if not isinstance(row, Mapping) or not {"query", "decision"} <= row.keys():
        raise FormatError("a decision needs a query, and is keep, fix or drop")
    query, gold = read_id(row["query"], "query", where.notes), questions.gold or Gold()
    known = query in questions.queries
    if not known or row.get("gold_fingerprint") not in (None, gold.fingerprint(query)):
        what = f"another question than {query!r} of" if known else f"{query!r}, not in"
        raise FormatError(
            f"decides on {what} {gold.name}",
            hint="is it the file that the page was made of?",
        )
    if row["decision"] not in ("keep", "fix", "drop"):
        got = repr(row["decision"])
        raise FormatError(f"a decision is keep, fix or drop, got {got}")
    changes = {
        name: row[name]
        for name in ("question", "reference")
        if row["decision"] == "fix" and name in row
    }
    if any(not isinstance(text, str) or not text.strip() for text in changes.values()):
        raise FormatError(f"leaves {query!r} without a question, or without its answer")
    facts = {name: row.get(name) for name in ("decision", "who", "when", "why")}
    return {**facts, **changes, "query": query}
