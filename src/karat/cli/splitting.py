"""`karat judge --claims`: reference answers become claims, and their judge is tried."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli.judges import votes_of
from karat.cli.saying import say
from karat.data.evaluations import SCHEMA_VERSION
from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.tables import Table, counted
from karat.errors import DataError, UsageError
from karat.judging import DryRun, JudgeSession, split_references
from karat.judging.contexts import contexts_of
from karat.judging.injection import PASSAGES, probe_claims
from karat.judging.resistance import Probed
from karat.reading.doors import with_texts
from karat.reading.streams import Role
from karat.reading.write import write
from karat.reports.terminal import show

__all__ = ["show_all", "split", "write_out"]


def split(
    loaded: Sequence[Dataset],
    bench: JudgeSession,
    targets: Sequence[Path],
    options: Mapping[str, Any],
) -> Mapping[str, str]:
    """Split the references of samples, and try the judge of claims if asked to.

    Returns:
        The queries whose references could not be split, with the reason.
    """
    if len(loaded) > 1:
        raise UsageError("--claims takes one file of samples at a time")
    (samples,) = loaded
    if samples.gold is None or not (samples.gold.references or samples.gold.claims):
        raise DataError(
            "no sample has a reference answer to split",
            hint="--map reference=FIELD names the field that holds it",
        )
    texts = {q.id: q.text for q in samples.queries.values() if q.text}
    done = split_references(samples.gold, bench, texts)
    gold, failures = done.gold, done.failures
    # What was paid for is written, whatever becomes of the rest.
    for target in () if isinstance(bench, DryRun) else targets:
        write_out(replace(samples, gold=gold), target)
    probed: Probed | None = None
    if options["probe"]:
        probed = _probe_claims(replace(samples, gold=gold), bench, options)
    if isinstance(bench, DryRun):
        return {}
    if options["json"]:
        facts = _claims(gold, failures, probed, bench, texts=not options["no_text"])
        click.echo(json.dumps(facts, indent=2))
    else:
        click.echo(_counts(samples, gold))
        show_all([] if probed is None else probed.tables())
    return failures


def _counts(samples: Dataset, gold: Gold) -> str:
    """How many claims there are, where they are from, and what has none."""
    claims = {query: len(row) for query, row in gold.claims.items() if row}
    split_up = [query for query in claims if query in gold.references]
    total = sum(claims[query] for query in split_up)
    parts = [f"{counted(total, 'claim')} from {counted(len(split_up), 'reference')}"]
    if brought := sum(claims.values()) - total:
        parts.append(f"{counted(brought, 'claim')} brought by samples")
    if rest := len({*samples.queries, *gold.queries} - claims.keys()):
        parts.append(f"{counted(rest, 'sample')} without")
    return ", ".join(parts)


def _probe_claims(
    samples: Dataset, bench: JudgeSession, options: Mapping[str, Any]
) -> Probed:
    run = samples.run
    if run is None:
        raise DataError("there are no contexts to plant tricks in")
    if options["corpus"] is not None:
        run = with_texts(run, options["corpus"])
    policies = Policies(depth=options["k"])
    probed = probe_claims(
        samples.gold.claims if samples.gold is not None else {},
        {
            query: contexts_of(documents, query, policies)
            for query, documents in run.rankings(policies)
        },
        bench,
        passages=options["probe_passages"] or PASSAGES,
        votes=votes_of(options),
    )
    return probed.without_texts() if options["no_text"] else probed


def _claims(
    gold: Gold,
    failures: Mapping[str, str],
    probed: Probed | None,
    bench: JudgeSession,
    *,
    texts: bool,
) -> dict[str, Any]:
    """Everything about claims in plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "source": bench.source,
        "claims": [
            {
                "query": query,
                "claim": item.id,
                "text": item.text if texts else "",
                "labelled_by": item.source,
            }
            for query, row in gold.claims.items()
            for item in row
        ],
        "failures": [
            {"query": query, "reason": reason} for query, reason in failures.items()
        ],
        "probe": None if probed is None else probed.to_dict(),
    }


def show_all(tables: Sequence[Table]) -> None:
    """Show the tables, one below the other."""
    for table in tables:
        show(table)
        click.echo()


def write_out(loaded: Dataset, target: Path) -> None:
    """Write it, and say so and what was lost."""
    role: Role | None = "gold" if loaded.run is None else None
    for notice in write(loaded, target, role=role):
        say(f"karat: {notice.kind}: {notice.text} ({notice.count})", err=True)
    say(f"karat: wrote {target}", err=True)
