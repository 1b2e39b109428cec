"""`karat diagnose`: why gold was missed, and what would find it."""

from pathlib import Path
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
    KEPT,
    PAGE,
    deliver,
    outputs_of,
    with_command,
)
from karat.data.queries import DEFAULT_K
from karat.diagnosis.diagnose import diagnose
from karat.leaderboards import evaluation_of
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
    gold, k, candidates = options["gold"], options["k"], options["candidates"]
    scoring = scoring_of(options)
    found = diagnose(path, gold=gold, candidates=candidates, **scoring)
    if options["no_text"]:
        found = found.without_texts()

    def text(form: str) -> str:
        if f".{form}" != PAGE:
            return found.write(form)
        # What the run scores, with the documents that a page shows.
        metrics = [f"recall@{k}", f"ndcg@{k}", "rr"]
        how = {**scoring, "k": None, "keep": max(k, KEPT), "metrics": metrics}
        one = evaluation_of(Path(path).name, path, gold, how)
        signed = with_command(Leaderboard({one.run: one}))[one.run]
        return found.to_html(signed.without_texts() if options["no_text"] else signed)

    deliver(text, found.tables(), options, outputs)
