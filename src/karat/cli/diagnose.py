"""`karat diagnose`: why gold was missed, and what would find it."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import click

from karat.cli import options
from karat.cli.command import Command, file_argument, file_option
from karat.cli.options import Scoring, existing
from karat.cli.outputs import Outputs, with_command
from karat.diagnosis.diagnose import diagnose

_FORMATS = ("html", "json", "md", "txt")


@click.command("diagnose", cls=Command)
@file_argument("run")
@options.scoring
@file_option("--corpus", help="Texts of all documents, by id.")
@file_option("--candidates", help="Input of the reranker.")
@options.outputs(
    help=f"Write the diagnosis, by extension: {', '.join(_FORMATS)}; repeatable."
)
@options.json
@options.no_text
def command(
    *,
    run: str,
    scoring: Scoring,
    corpus: str | None,
    candidates: str | None,
    output: Sequence[str],
    json: bool,
    no_text: bool,
) -> None:
    """Find out why relevant gold is not in the top k of RUN, and what would help.

    RUN is a run of any format (with --gold), a file of samples that carry their gold,
    or an evaluation saved by karat evaluate -o FILE.json.

    \b
    karat diagnose samples.jsonl -k 5
    karat diagnose dense.run --gold gold.qrels --corpus corpus.jsonl
    karat diagnose reranked.run --gold gold.qrels --candidates first.run
    """
    (path,) = existing([run])
    inputs = [path, scoring.gold, corpus, candidates, scoring.queries]
    outputs = Outputs.plan(output, inputs, _FORMATS, json=json)
    how = asdict(scoring) | {"corpus": corpus, "candidates": candidates}
    result = diagnose(
        path, **{n: value for n, value in how.items() if value is not None}
    )
    if no_text:
        result = result.without_texts()
    if (one := result.evaluation) is not None:
        result = replace(result, evaluation=with_command(one))
    outputs.deliver(result.write, result.tables())
