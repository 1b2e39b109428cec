"""`karat trec-eval`: the command line of trec_eval, and its output, line for line."""

import sys
from collections.abc import Callable
from typing import Any

import click

from karat.cli.command import COUNT, flag
from karat.compat.trec_eval import Options, trec_eval_pages
from karat.errors import UsageError
from karat.reading.trec import TrecRun, read_qrels

_PROFILES = {"trec_eval-9": "9", "trec_eval-10": "10"}
_NATURAL = click.IntRange(min=0)

_LIMITED = (
    ("-R", "--Rel_info_format", "qrels", "judgements are read as qrels only"),
    ("-T", "--Results_format", "trec_results", "runs are read as trec_results only"),
    ("-Z", "--Zscore", "", "no z-scores; karat compare says how two runs differ"),
    ("-D", "--Debug_level", "0", "no traces; karat evaluate --explain QUERY has them"),
    ("-o", "--output_old_results_format", "", "lines are printed in one form only"),
)
"""Options of trec_eval that take one value here, or none; and what is said then."""


def _limited(command: Callable[..., None]) -> Callable[..., None]:
    for short, long, known, why in _LIMITED:

        def refuse(
            _: click.Context, option: click.Parameter, value: Any, why: str = why
        ) -> None:
            if value and value != option.metavar:
                raise UsageError(f"{option.opts[0]}: {why}")

        command = click.option(
            *(short, long),
            is_flag=short == "-o",
            metavar=known or "VALUE",
            expose_value=False,
            callback=refuse,
            help=why[0].upper() + why[1:] + ".",
        )(command)
    return command


def _version(context: click.Context, _: click.Parameter, value: object) -> None:
    if value:
        click.echo("trec_eval version 10.0 (9.0.8 with --profile trec_eval-9)")
        context.exit()


@click.command("trec-eval", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--profile",
    type=click.Choice([*_PROFILES]),
    default="trec_eval-10",
    show_default=True,
    help="Which trec_eval: 9.0.8 or 10.0.",
)
@flag(
    *("-q", "--per-query", "--query_eval_wanted", "per_query"),
    help="Also print lines for each topic.",
)
@click.option(
    *("-m", "--measure", "measures"),
    metavar="MEASURE",
    multiple=True,
    help="As in -m map, -m P.5,10, -m all_trec; repeatable. Default: official.",
)
@flag(
    *("-c", "--complete", "--complete_rel_info_wanted", "complete"),
    help="Average over all judged topics; those missing from the run count 0.",
)
@click.option(
    *("-l", "--level", "--level_for_rel", "level"),
    type=_NATURAL,
    default=1,
    show_default=True,
    help="The smallest grade that counts as relevant.",
)
@flag(
    *("-J", "--judged-only", "--Judged_docs_only", "judged_only"),
    help="Remove unjudged documents from the rankings.",
)
@click.option(
    *("-M", "--depth", "--Max_retrieved_per_topic", "depth"),
    type=COUNT,
    help="Read only this many documents of each topic.",
)
@click.option(
    *("-N", "--collection", "--Number_docs_in_coll", "collection"),
    type=_NATURAL,
    default=0,
    help="Documents in the collection (for utility).",
)
@flag(
    *("-n", "--no-summary", "--nosummary", "no_summary"),
    help="Omit the lines over all topics.",
)
@flag(
    *("-v", "--version"),
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Which trec_eval is imitated.",
)
@_limited
@click.argument("qrels")
@click.argument("run")
def command(
    qrels: str, run: str, *, profile: str, no_summary: bool, **options: Any
) -> None:
    """Score RUN against QRELS as the trec_eval binary does, line for line.

    Both are TREC files, gz, bz2 and zst included; - is standard input.

    \b
    karat trec-eval -q -m ndcg_cut.10 -m map qrels.txt run.txt
    """
    if qrels == run == "-":
        raise UsageError("standard input can be read once only: one - at most")
    asked = Options(version=_PROFILES[profile], summary=not no_summary, **options)
    pages = trec_eval_pages(read_qrels(qrels), TrecRun(run), asked)
    # Ids are passed on byte for byte, whatever the terminal's encoding.
    output = sys.stdout.buffer
    for page in pages:
        output.write(page.encode("utf-8", "surrogateescape"))
    output.flush()
