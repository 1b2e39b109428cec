"""`karat generate`: questions that a corpus answers, with gold, when there is none."""

import json as json_text
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from karat.cli import options
from karat.cli.command import COUNT, Command, file_option, remark
from karat.cli.judge_session import open_client, open_session
from karat.cli.options import Judging, require_texts, writable
from karat.cli.outputs import INCOMPLETE, rehearse
from karat.errors import UsageError
from karat.generating import generate
from karat.judging.session import DryRun
from karat.retrieving.retrieve import load_object


@click.command("generate", cls=Command)
@click.argument("documents", metavar="CORPUS")
@click.option("-n", type=COUNT, default=200, help="Number of questions; default: 200.")
@file_option("-o", "--output", help="The questions with their gold (.jsonl).")
@click.option(
    "--judge",
    metavar="NAME",
    help="The model that checks and grades; default: --model.",
)
@click.option(
    "--second-judge", metavar="NAME", help="Another model to confirm every claim."
)
@click.option(
    "--hops",
    type=click.Choice(["1", "2", "1,2"]),
    default="1,2",
    help="How many passages a question needs; default: 1,2.",
)
@file_option("--style", help="Real queries, one per line, whose wording is imitated.")
@click.option(
    "--retriever",
    metavar="MODULE:NAME",
    multiple=True,
    help="Finds passages to grade, in addition to BM25; repeatable.",
)
@click.option(
    "-k",
    type=COUNT,
    default=5,
    help="Documents to grade per ranking; default: 5.",
)
@click.option("--seed", default=0, help="Another seed draws other passages.")
@options.json
@options.judging
def command(
    *,
    documents: str,
    n: int,
    output: str | None,
    judge: str | None,
    second_judge: str | None,
    hops: str,
    style: str | None,
    retriever: Sequence[str],
    k: int,
    seed: int,
    json: bool,
    judging: Judging,
) -> None:
    """Let a model write questions about passages of CORPUS, and check each of them.

    A question is dropped at the first check that it fails: it must be in the language
    of its passages, be clear without them, not repeat their words, differ from the
    others, and need its passages: all of them, and more than what the model knows. BM25
    and the retrievers find other passages that answer it, which are graded; a question
    that more than 30 passages answer is too vague. Use the file as gold: karat evaluate
    RUN --gold questions.jsonl. A command that was stopped resumes where it was.

    \b
    karat generate corpus.jsonl --model WRITER --judge NAME -n 200 -o questions.jsonl
    karat generate corpus.jsonl --model WRITER --judge NAME --dry-run
    """
    if output is None and not (json or judging.dry_run):
        raise UsageError("say where to write with -o FILE, such as -o questions.jsonl")
    if output is not None:
        require_texts(writable(output, [documents, style]))
    session = open_session(judging)
    # As Python does for a script: modules of the current folder are found.
    sys.path.insert(0, "")
    questions = generate(
        documents,
        n,
        model=session,
        judge=judge and open_client(judging, judge),
        second_judge=second_judge and open_client(judging, second_judge),
        retrievers=[load_object(name, Path.cwd()) for name in retriever],
        hops=[*map(int, hops.split(","))],
        style=style,
        seed=seed,
        k=k,
    )
    if isinstance(session, DryRun):
        rehearse(session, as_json=json)
        return
    if output is not None:
        questions.save(output)
        remark(f"wrote {output}")
    text = json_text.dumps(questions.to_dict(), indent=2) if json else str(questions)
    click.echo(text)
    for notice in questions.notices:
        remark(str(notice))
    if len(questions.queries) < n:
        sys.exit(INCOMPLETE)
