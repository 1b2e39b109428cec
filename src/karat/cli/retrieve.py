"""`karat retrieve`: ask a retriever every query, and write down what it finds."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.command import Command, file_option, flag, remark, say
from karat.cli.options import STDOUT, format_name, writable, write_dataset
from karat.cli.outputs import INCOMPLETE
from karat.data.queries import Dataset
from karat.data.tables import counted
from karat.errors import FormatError, UsageError
from karat.llm.limits import Settings
from karat.reading.files import decode_json
from karat.reading.format import name_format
from karat.reading.readers import read_queries
from karat.reports.terminal import RunBar
from karat.retrieving.retrieve import ATTEMPTS, CACHE, load_object, retrieve

_SHOWN = 3


@click.command("retrieve", cls=Command)
@click.argument("retriever", required=False, metavar="MODULE:NAME")
@file_option("--queries", required=True, help="The queries to run.")
@file_option("-o", "--output", required=True, help="The run to write; - is stdout.")
@click.option("--to", metavar="FORMAT", help="Output format; default: by extension.")
@click.option("-k", default=20, help="Documents to ask for; default: 20.")
@click.option("--http", metavar="URL", help="Call a service, not a function.")
@click.option(
    "--body",
    metavar="JSON",
    help='JSON to post to URL, as in \'{"q": "{query}", "size": "{k}"}\'.',
)
@options.headers(help="HTTP header; a value $NAME is read from the environment.")
@click.option(
    "--pipeline-output",
    metavar="PATH",
    help="Where a pipeline returns the documents, as in retriever.documents.",
)
@options.mapping
@click.option("--name", help="The run's name.")
@click.option(
    "--index-version",
    "version",
    help="Reuse answers kept for the same version.",
)
@click.option(
    "--concurrency",
    type=int,
    help="Concurrent calls; default: 1, or 8 for async and --http.",
)
@click.option("--timeout", type=float, default=60, help="Maximum seconds for a call.")
@click.option("--max-attempts", default=ATTEMPTS, help="Maximum calls per query.")
@click.option("--max-failures", default=0, help="Failed queries allowed.")
@file_option("--journal", default=str(CACHE), help="Where answers are kept.")
@file_option("--cache", hidden=True)
@flag("--offline", help="Make no calls: use only kept answers.")
@flag("--retry-errors", help="Repeat calls that failed before.")
def command(
    *,
    retriever: str | None,
    queries: str,
    output: str,
    to: str | None,
    k: int,
    http: str | None,
    body: str | None,
    headers: Sequence[tuple[str, str]],
    pipeline_output: str | None,
    mapping: Mapping[str, str],
    name: str | None,
    version: str | None,
    concurrency: int | None,
    timeout: float,
    max_attempts: int,
    max_failures: int,
    journal: str,
    cache: str | None,
    offline: bool,
    retry_errors: bool,
) -> None:
    """Run every query through a retriever; write the run with latency and failures.

    MODULE:NAME is a function from query to documents, or an object of a framework, in
    a module of the current folder or an installed one.

    \b
    karat retrieve my.module:search --queries queries.jsonl -k 20 -o run.jsonl
    karat retrieve --http http://127.0.0.1:9200/docs/_search --queries q.tsv
        --body '{"query": {"match": {"text": "{query}"}}}' -o run.jsonl
    """
    to = format_name(output, to)
    if output != STDOUT and to is None:
        # Before anything is asked: what cannot be written would be lost.
        to = name_format(str(writable(output, [queries]))).name
    if (retriever is None) == (http is None):
        raise UsageError("name one retriever: MODULE:NAME, or --http URL")
    # As Python does for a script: modules of the current folder are found.
    if "" not in sys.path:
        sys.path.insert(0, "")
    facts = read_queries(queries)
    bar = RunBar()
    click.get_current_context().call_on_close(bar.close)
    run = retrieve(
        load_object(retriever, Path.cwd()) if retriever else http,
        facts,
        k,
        concurrency=concurrency,
        name=name,
        version=version,
        mapping=mapping,
        output=pipeline_output,
        options=_body(body),
        headers=dict(headers),
        timeout=timeout,
        cache=Path(cache or journal),
        settings=Settings(
            max_attempts=max_attempts,
            offline=offline,
            retry_errors=retry_errors,
            progress=bar,
        ),
    )
    without_k = {query: replace(fact, k=None) for query, fact in facts.items()}
    dataset = Dataset(run=run, queries=without_k)
    write_dataset(dataset, output, to, "run", [queries])
    for line in (f"latency: {run.latency}", *map(str, run.retrieval.notices)):
        remark(line)
    if version is None:
        remark("no answer is kept for the next time; --index-version TEXT keeps them")
    if run.failures:
        remark(f"{counted(len(run.failures), 'query')} failed")
        for query, why in [*run.failures.items()][:_SHOWN]:
            say(f"  {query}: {why}", err=True)
    if len(run.failures) > max_failures:
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
