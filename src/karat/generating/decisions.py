"""Decisions: which of the generated questions people keep, fix or drop.

A decision is a JSON line that a page saved: `query`, `decision`, for a fix the new
`question` and `reference`, and `who` took it, `when` and `why`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from karat.data.gold import Gold
from karat.data.queries import Dataset, Query
from karat.errors import FormatError
from karat.reading.labels import parse_rows, signature
from karat.reading.meaning.values import read_id
from karat.reading.readers import read
from karat.reading.source import Source
from karat.results.notices import good_questions


def read_questions(path: str) -> Dataset:
    """A file that `generate` wrote, or that decisions made of one."""
    questions = read(path, "gold")
    if not any("prompts" in one.metadata for one in questions.queries.values()):
        raise FormatError(
            "is no file of generated questions",
            path=path,
            hint="karat generate corpus.jsonl -o questions.jsonl writes one",
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
