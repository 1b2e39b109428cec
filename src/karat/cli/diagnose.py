"""`karat diagnose`: why gold was missed, and what would find it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from karat.cli.options import existing, mapping_option, policy_options, writable
from karat.cli.outputs import KEPT, PAGE, with_command
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.data.queries import DEFAULT_K
from karat.data.tables import Table
from karat.diagnosis.diagnose import diagnose
from karat.errors import UsageError
from karat.leaderboards import evaluation_of
from karat.reports.terminal import show
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.results.saved_form import LONE_SURROGATES, write_text

__all__ = ["command", "outputs_of", "print_result", "write_results"]

_SCORING = (
    *("match", "profile", "undefined", "missing", "extra", "duplicates", "identical"),
    *("ties", "order", "threshold", "depth", "judged_only", "queries", "corpus"),
)


@click.command("diagnose", cls=Command)
@click.argument("run")
@click.option("-g", "--gold", "--qrels", metavar="FILE", help="What should be found.")
@click.option("-k", type=int, default=DEFAULT_K, show_default=True, help="The cutoff.")
@click.option("--corpus", metavar="FILE", help="Texts of all documents, by id.")
@click.option("--candidates", metavar="FILE", help="What the reranker was given.")
@click.option("--queries", metavar="FILE", help="Texts and tags of queries.")
@click.option("--match", default="auto", show_default=True, metavar="MATCHER")
@policy_options
@mapping_option
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="FILE",
    help="Write the diagnosis, by extension: html, json, md, txt; repeatable.",
)
@click.option("--json", is_flag=True, help="Print everything as JSON.")
@click.option("--no-text", is_flag=True, help="Keep texts out of what is written.")
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
    found = diagnose(
        path,
        gold=options["gold"],
        k=options["k"],
        candidates=options["candidates"],
        mapping=options["map"],
        **{name: options[name] for name in _SCORING},
    )
    if options["no_text"]:
        found = found.without_texts()
    print_result(found, found.tables(), options)
    write_results(found, [path for path in outputs if path.suffix != PAGE])
    for target in outputs:
        if target.suffix == PAGE:
            write_text(target, found.to_html(_shown(path, options)))
            say(f"karat: wrote {target}", err=True)


def _shown(path: str, options: Mapping[str, Any]) -> Evaluation:
    """What the run scores, with the documents that a page shows."""
    k = options["k"]
    scoring = {name: options[name] for name in _SCORING}
    scoring |= {"mapping": options["map"], "keep": max(k, KEPT)}
    scoring["metrics"] = [f"recall@{k}", f"ndcg@{k}", "rr"]
    one = evaluation_of(Path(path).name, path, options["gold"], scoring)
    signed = with_command(Leaderboard({one.run: one}))[one.run]
    return signed.without_texts() if options["no_text"] else signed


def outputs_of(
    targets: Sequence[str], inputs: Sequence[str | None], formats: Sequence[str]
) -> list[Path]:
    """Where to write, found out before any work is done."""
    for target in targets:
        if Path(target).suffix.removeprefix(".") not in formats:
            raise UsageError(
                f"-o {target}: the extension chooses the format, one of "
                f"{', '.join('.' + name for name in formats)}"
            )
    return [writable(target, inputs) for target in targets]


def print_result(
    found: Any, tables: Sequence[Table], options: Mapping[str, Any]
) -> None:
    """Show a result, as JSON if asked to."""
    if options["json"]:
        # Bytes, because JSON is UTF-8 whatever the terminal is.
        text = found.to_json() + "\n"
        click.echo(text.encode("utf-8", LONE_SURROGATES), nl=False)
        return
    for place, table in enumerate(tables):
        if place:
            click.echo()
        show(table)


def write_results(found: Any, outputs: Sequence[Path]) -> None:
    """Write a result to files, in the format that each extension names."""
    for path in outputs:
        write_text(path, found.write(path.suffix.removeprefix(".")))
        say(f"karat: wrote {path}", err=True)
