"""`karat retrieve`: ask a retriever every query, and write down what it finds."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli.command import Command, option, say
from karat.cli.options import (
    STDOUT,
    format_name,
    header_option,
    mapping_option,
    writable,
    write_dataset,
)
from karat.cli.outputs import INCOMPLETE
from karat.data.queries import Dataset
from karat.data.tables import counted
from karat.errors import FormatError, UsageError
from karat.llm import Settings
from karat.reading.files import decode_json
from karat.reading.format import name_format
from karat.reading.readers import read_queries
from karat.reports.terminal import RunBar
from karat.retrieving.retrieve import ATTEMPTS, CACHE, load_object, retrieve

_SHOWN = 3


@click.command("retrieve", cls=Command)
@click.argument("retriever", required=False, metavar="MODULE:NAME")
@option("--queries FILE", "What to ask.", required=True)
@option("-o --output FILE", "The run; - is stdout.", required=True)
@option("--to FORMAT", "Its format, if not by extension.")
@option("-k INTEGER", "Documents to ask for; default: 20.", default=20)
@option("--http URL", "Ask a service in place of a function.")
@option(
    "--body JSON",
    """What to post there, as in '{"q": "{query}", "size": "{k}"}'.""",
)
@header_option
@option("--pipeline-output PATH", "As in retriever.documents.")
@mapping_option
@option("--name TEXT", "The run's name.")
@option("--index-version version TEXT", "Keep answers; another one is asked anew.")
@option(
    "--concurrency INTEGER", "Calls at once; default: 1, and 8 for async and --http."
)
@option("--timeout FLOAT", "Seconds for a call.", default=60)
@option("--max-attempts INTEGER", "Calls for one query.", default=ATTEMPTS)
@option("--max-failures INTEGER", "Failed queries allowed.", default=0)
@option("--journal FILE", "Where answers are kept.", default=str(CACHE))
@option("--cache FILE", hidden=True)
@option("--offline", "Take every answer from the journal.")
@option("--retry-errors", "Ask again what failed for good.")
def command(**options: Any) -> None:
    """Ask a retriever every query; write the run with its latency and failures.

    MODULE:NAME is a function from query to documents, or an object of a framework, in
    a module of the current folder or an installed one.

    \b
    karat retrieve my.module:search --queries queries.jsonl -k 20 -o run.jsonl
    karat retrieve --http http://127.0.0.1:9200/docs/_search --queries q.tsv
        --body '{"query": {"match": {"text": "{query}"}}}' -o run.jsonl
    """  # noqa: D301
    target = options["output"]
    to = format_name(target, options["to"])
    if target != STDOUT and to is None:
        # Before anything is asked: what cannot be written would be lost.
        to = name_format(str(writable(target, [options["queries"]]))).name
    if (options["retriever"] is None) == (options["http"] is None):
        raise UsageError("name one retriever: MODULE:NAME, or --http URL")
    retriever = options["http"]
    if retriever is None:
        # As Python does for a script: modules of the current folder are found.
        if "" not in sys.path:
            sys.path.insert(0, "")
        retriever = load_object(options["retriever"], Path.cwd())
    queries = read_queries(options["queries"])
    bar = RunBar()
    click.get_current_context().call_on_close(bar.close)
    run = retrieve(
        retriever,
        queries,
        options["k"],
        concurrency=options["concurrency"],
        name=options["name"],
        version=options["version"],
        mapping=options["map"],
        output=options["pipeline_output"],
        options=_body(options["body"]),
        headers=dict(options["headers"]),
        timeout=options["timeout"],
        cache=Path(options["cache"] or options["journal"]),
        settings=Settings(
            max_attempts=options["max_attempts"],
            offline=options["offline"],
            retry_errors=options["retry_errors"],
            progress=bar,
        ),
    )
    facts = {query: replace(fact, k=None) for query, fact in queries.items()}
    dataset = Dataset(run=run, queries=facts)
    write_dataset(dataset, target, to, "run", [options["queries"]])
    for line in (f"latency: {run.latency}", *map(str, run.retrieval.notices)):
        say(f"karat: {line}", err=True)
    if options["version"] is None:
        why = "no answer is kept for the next time; --index-version TEXT keeps them"
        say(f"karat: {why}", err=True)
    if run.failures:
        say(f"karat: {counted(len(run.failures), 'query')} failed", err=True)
        for query, why in [*run.failures.items()][:_SHOWN]:
            say(f"  {query}: {why}", err=True)
    if len(run.failures) > options["max_failures"]:
        sys.exit(INCOMPLETE)


def _body(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        body = decode_json(text)
    except FormatError as error:
        raise UsageError(f"--body must be JSON: {error}") from None
    if not isinstance(body, dict):
        raise UsageError("--body must be a JSON object")
    return body
