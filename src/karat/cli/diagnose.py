"""`karat diagnose`: why gold was missed, and what would find it."""

from dataclasses import replace
from typing import Any

import click

from karat.cli.command import Command, option
from karat.cli.options import (
    existing,
    gold_option,
    json_option,
    mapping_option,
    policy_options,
    queries_option,
    scoring_of,
)
from karat.cli.outputs import (
    PAGE,
    deliver,
    outputs_of,
    with_command,
)
from karat.data.queries import DEFAULT_K
from karat.diagnosis.diagnose import diagnose
from karat.results.leaderboard import Leaderboard


@click.command("diagnose", cls=Command)
@click.argument("run")
@gold_option
@option("-k INTEGER", "The cutoff.", default=DEFAULT_K, show_default=True)
@option("--corpus FILE", "Texts of all documents, by id.")
@option("--candidates FILE", "What the reranker was given.")
@queries_option
@option("--match MATCHER", default="auto", show_default=True)
@policy_options
@mapping_option
@option(
    "-o --output FILE*",
    "Write the diagnosis, by extension: html, json, md, txt; repeatable.",
)
@json_option
@option("--no-text", "Keep texts out of what is written.")
def command(**options: Any) -> None:
    """Say why relevant gold is not in the top k of RUN, and what would find it.

    RUN is a run of any format (with --gold), a file of samples that carry their gold,
    or an evaluation saved by karat evaluate -o FILE.json.

    \b
    karat diagnose samples.jsonl -k 5
    karat diagnose dense.run --gold gold.qrels --corpus corpus.jsonl
    karat diagnose reranked.run --gold gold.qrels --candidates first.run
    """  # noqa: D301
    (path,) = existing([options["run"]])
    inputs = [path, *(options[n] for n in ("gold", "corpus", "candidates", "queries"))]
    outputs = outputs_of(options["output"], inputs, ("html", "json", "md", "txt"))
    gold, candidates = options["gold"], options["candidates"]
    result = diagnose(path, gold=gold, candidates=candidates, **scoring_of(options))
    if options["no_text"]:
        result = result.without_texts()
    if (one := result.evaluation) is not None:
        signed = with_command(Leaderboard({one.run: one}))[one.run]
        result = replace(result, evaluation=signed)

    def text(form: str) -> str:
        return result.to_html() if f".{form}" == PAGE else result.write(form)

    deliver(text, result.tables(), options, outputs)
