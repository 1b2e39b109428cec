"""`karat demo`: the main job, on a small help centre that comes with karat."""

import sys
from filecmp import cmp
from importlib.resources import as_file, files
from pathlib import Path

import click

from karat.cli.command import Command
from karat.errors import FormatError, ParameterError
from karat.leaderboards import leaderboard
from karat.reports.terminal import show_table, width_of
from karat.results.evaluation import slice_table, tagged
from karat.writing import write_file

_EXAMPLE = files("karat") / "examples" / "help_centre"
_METRICS = ("ndcg@10", "rr", "recall@5", "judged@10")
_NEXT = """\
What to type next:
  karat demo --copy larkspur                                get these files
  cd larkspur
  karat metrics                                             list all metrics
  karat evaluate dense.run --gold gold.qrels --explain q02  one query, by rank
  karat evaluate samples.jsonl --slice tag --fail-under recall@5=0.8
  karat compare keyword.run dense.run --gold gold.qrels     is it better?
  karat diagnose dense.run --gold gold.qrels                why is gold missed?
  karat evaluate *.run --gold gold.qrels --queries queries.jsonl -o report.html"""


@click.command("demo", cls=Command)
@click.option("--copy", metavar="FOLDER", help="Only copy the example files.")
def command(copy: str | None) -> None:
    """Score two retrievers of a small help centre: 40 questions, 62 articles.

    The data comes with karat: articles, questions, graded gold, and what a keyword and
    a dense retriever returned.
    """
    with as_file(_EXAMPLE) as folder:
        if copy is not None:
            # An empty path is the current folder, which a dot names on purpose.
            if not copy.strip():
                raise ParameterError("--copy", "folder", "a name", copy)
            _copy(folder, Path(copy))
        else:
            _score(folder)


def _copy(folder: Path, target: Path) -> None:
    taken = [
        file.name
        for file in folder.iterdir()
        if (other := target / file.name).exists()
        and not (other.is_file() and cmp(file, other, shallow=False))
    ]
    if taken:
        raise FormatError(f"already holds another {min(taken)}", path=target)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"cannot be written: {error.strerror}", path=target) from None
    for file in folder.iterdir():
        write_file(target / file.name, file.read_bytes())
    for file in sorted(folder.iterdir()):
        click.echo(target / file.name)


def _score(folder: Path) -> None:
    names = ("keyword.run", "dense.run")
    board = leaderboard(
        {name: folder / name for name in names},
        gold=folder / "gold.qrels",
        queries=folder / "queries.jsonl",
        metrics=_METRICS,
        judged=False,
    )
    show_table(board.summary(width_of(sys.stdout)))
    click.echo()
    dense = board["dense.run"]
    show_table(dense.summary())
    click.echo()
    columns = {result.run: result["ndcg@10"] for result in board.ranked()}
    show_table(slice_table(columns, tagged(dense), title="ndcg@10 by tag"))
    click.echo(f"\n{_NEXT}")
