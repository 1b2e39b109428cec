"""`karat judge --claims`: split reference answers into claims, and test the judge."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli.judge_session import read_votes
from karat.cli.options import write_dataset
from karat.cli.outputs import deliver
from karat.data.gold import Gold, Item
from karat.data.queries import Dataset, Query
from karat.data.runs import Run
from karat.errors import DataError, UsageError
from karat.evaluation import evaluate
from karat.judging import (
    Claims,
    DryRun,
    JudgeSession,
    read_claim_labels,
    split_references,
)
from karat.judging.agreement import middle
from karat.judging.claim_agreement import ClaimAgreement, save_calibration
from karat.reading.readers import load, with_texts
from karat.reading.streams import Role
from karat.trust import REPORT_VERSION, compare_claims


def split_claims(
    loaded: Sequence[Dataset],
    session: JudgeSession,
    targets: Sequence[Path],
    options: Mapping[str, Any],
) -> Mapping[str, str]:
    """Split the references of samples, and test the judge of claims if asked to.

    Returns:
        The queries whose references could not be split, with the reason.
    """
    if len(loaded) > 1:
        raise UsageError("--claims takes one file of samples at a time")
    (samples,) = loaded
    if options["corpus"] is not None and samples.run is not None:
        samples = replace(samples, run=with_texts(samples.run, options["corpus"]))
    agreement = _agreement(samples.run, session, options)
    if agreement is not None and not targets:
        # Whoever only compares has claims by people, and nothing to split.
        if options["json"] or not isinstance(session, DryRun):
            text = json.dumps(agreement.to_dict(), indent=2) + "\n"
            deliver(lambda _: text, [agreement.table()], options)
        return {}
    if samples.gold is None or not (samples.gold.references or samples.gold.claims):
        raise DataError(
            "no sample has a reference answer to split",
            hint="--map reference=FIELD names the field that holds it",
        )
    split = split_references(samples.gold, session, questions_of(loaded, None))
    role: Role | None = "gold" if samples.run is None else None
    # What was paid for is written, whatever becomes of the rest.
    for target in () if isinstance(session, DryRun) else targets:
        write_dataset(replace(samples, gold=split.gold), target, role=role)
    if isinstance(session, DryRun):
        return {}
    facts = {
        "schema_version": REPORT_VERSION,
        "source": session.source,
        **split.to_dict(texts=not options["no_text"]),
        "agreement": None if agreement is None else agreement.to_dict(),
    }
    tables = [] if agreement is None else [agreement.table()]
    if not options["json"]:
        click.echo(split.summary(samples.queries))
    deliver(lambda _: json.dumps(facts, indent=2) + "\n", tables, options)
    return split.failures


def _agreement(
    run: Run | None, session: JudgeSession, options: Mapping[str, Any]
) -> ClaimAgreement | None:
    """Judge the claims that people labelled, compare, and keep the outcome."""
    if not options["agreement"]:
        return None
    people = {path: read_claim_labels(path) for path in options["agreement"]}
    queries = [] if run is None else [*run.queries()]
    for path, labels in people.items():
        if run is None or not {*labels} & {*queries}:
            raise DataError(
                "labels no claims of these samples",
                path=path,
                hint="the ids of its lines must be those of the samples",
            )
    together = middle([*people.values()])
    known = {query: together[query] for query in queries if query in together}
    claims = {
        query: tuple(Item(f"claim-{n}", text) for n, text in enumerate(row, 1))
        for query, row in known.items()
    }
    judge = Claims(session, votes=read_votes(options))
    result = evaluate(
        run, gold=Gold(claims=claims), metrics="context_recall", judge=judge
    )
    found = compare_claims(result, [*people.values()])
    if not isinstance(session, DryRun) and session.settings.journal is not None:
        save_calibration(found, judge.facts, session.settings.journal)
    return found


def questions_of(loaded: Iterable[Dataset], path: str | None) -> dict[str, str]:
    """What each query asks, by the samples themselves or by a file."""
    facts: dict[str, Query] = {}
    for part in loaded:
        facts |= part.queries
    if path is not None:
        facts |= load(path, role="queries").queries
    return {name: query.text for name, query in facts.items() if query.text}
