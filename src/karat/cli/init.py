"""`karat init`: write a suite for the files of a folder."""

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from karat.cli.command import Command, file_option, remark, say
from karat.cli.validate import contents
from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.errors import WITHOUT_LABELS, DataError, KaratError, UsageError
from karat.evaluation import evaluate
from karat.planning import DEFAULT_METRICS
from karat.reading.format import FORMATS
from karat.reading.readers import read_corpus, read_queries, validate
from karat.reading.yaml_text import decode_yaml
from karat.suites.definition import FILE, read_suites
from karat.writing import write_file

_PACKED = (".gz", ".bz2", ".zst")
_LEFT_OUT = {"karat-results", "node_modules", "venv", "__pycache__"}
_MOST_BYTES = 500 << 20
_GATED = ("ndcg@10", "recall@5")
# What needs no quotes in YAML, whoever reads it.
_PLAIN = re.compile(r"[A-Za-z_./][\w./:-]*")


@click.command("init", cls=Command)
@file_option(
    "-o", "--output", default=FILE, show_default=True, help="The file to write."
)
def command(output: str) -> None:
    """Write a suite for the files of this folder, to be run by karat suite.

    It looks at every file of a format that karat reads, also in subfolders: runs, gold,
    samples, texts of queries, or a corpus.
    """
    target = Path(output)
    before = target.read_text("utf-8") if target.is_file() else ""
    if re.search(r"^suites:", before, re.MULTILINE):
        names = ", ".join(read_suites(target))
        raise UsageError(f"{output} has suites already ({names}): karat suite runs one")
    seen: list[str] = []
    data, runs, tagged = _look(seen)
    root = target.parent
    moved = {role: os.path.relpath(path, root) for role, path in data.items()}
    gates = _gates(data.get("gold"), runs)
    paths = [os.path.relpath(path, root) for path in runs]
    text = _written(moved, paths, gates, tagged=tagged)
    gap = "\n" if before else ""
    write_file(target, f"{before}{gap}{text}")
    read_suites(target)
    for line in seen:
        say(line)
    where = "" if output == FILE else f" -f {output}"
    remark(f"wrote {output}; next: karat suite{where}")


def _look(seen: list[str]) -> tuple[dict[str, str], list[str], bool]:
    """The files of gold and texts by role, the runs, and whether queries have tags.

    What is seen gets a line about each file.
    """
    held: dict[str, Dataset] = {}
    others = []
    for path in _candidates(seen):
        loaded = validate(path).loaded
        if loaded is None:
            others.append(path)
            continue
        held[path] = loaded
        seen.append(f"{path}: {', '.join(contents(loaded))}")
    golds = [p for p, h in held.items() if h.gold is not None and h.run is None]
    runs = [p for p, h in held.items() if h.run is not None and h.gold is None]
    samples = [p for p, h in held.items() if h.run is not None and h.gold is not None]
    common = {p: sum(_common(held[p], held[run]) for run in runs) for p in golds}
    gold = max(golds, key=common.__getitem__, default="")
    own = [p for p in runs if gold and _common(held[gold], held[p])]
    if own or (gold and not runs and not samples):
        texts = _texts(held[gold], others)
        seen += [f"{path}: {role}" for role, path in texts.items()]
        facts = read_queries(texts["queries"]) if "queries" in texts else {}
        facts = {**held[gold].queries, **facts}
        return {"gold": gold, **texts}, own, any(f.tags for f in facts.values())
    if samples:
        tagged = any(f.tags for p in samples for f in held[p].queries.values())
        return {}, samples, tagged
    raise UsageError(
        "found neither samples nor a run and its gold here; karat validate FILE says "
        "what is wrong with a file, and karat demo --copy FOLDER shows some; "
        f"{WITHOUT_LABELS}"
    )


def _candidates(seen: list[str]) -> Iterator[str]:
    """Files that may be read, by their endings."""
    endings = tuple(e for one in FORMATS.usable() for e in one.extensions)
    for folder, folders, files in os.walk("."):
        here = folder == "."
        folders[:] = sorted(
            f for f in folders if here and f[0] != "." and f not in _LEFT_OUT
        )
        for name in sorted(files):
            path = Path(folder, name)
            bare = path.stem if path.suffix in _PACKED else name
            if not bare.endswith(endings) or name == FILE or name[0] == ".":
                continue
            if path.stat().st_size <= _MOST_BYTES:
                yield path.as_posix()
            else:
                seen.append(f"{path}: not looked at, over {_MOST_BYTES >> 20} MiB")


def _common(truth: Dataset, held: Dataset) -> int:
    """How many queries gold and a run have in common."""
    if truth.gold is None or held.run is None:
        return 0
    return len({*truth.gold.queries} & {*held.run.queries()})


def _texts(held: Dataset, others: Sequence[str]) -> dict[str, str]:
    """Files of texts, told apart by whether their ids are of queries or documents."""
    gold = held.gold or Gold()
    roles: dict[str, tuple[set[str], Callable[[str], Mapping[str, Any]]]] = {
        "queries": ({*gold.queries}, read_queries),
        "corpus": ({d for row in gold.documents.values() for d in row}, read_corpus),
    }
    found: dict[str, str] = {}
    for path in others:
        for role, (ids, read) in roles.items():
            with suppress(DataError):
                if role not in found and ids & {*read(path)}:
                    found[role] = path
                    break
    return found


def _gates(gold: str | None, runs: Sequence[str]) -> list[str]:
    """What holds today: the lowest mean of every gated metric, rounded down."""
    try:
        boards = [evaluate(run, gold=gold, metrics=_GATED).means for run in runs]
    except KaratError as error:
        remark(f"not scored yet, so no gate is on: {error}")
        boards = []
    lowest = {one: min((b[one] for b in boards), default=math.nan) for one in _GATED}
    on = ", ".join(
        f"{metric}: {math.floor(mean * 100) / 100:g}"
        for metric, mean in lowest.items()
        if mean > 0
    )
    return [
        "    # What must hold, or karat suite exits with 1:",
        f"    {'' if on else '# '}gates:",
        f"    {'  ' if on else '#   '}fail_under: {{{on or 'recall@5: 0.8'}}}"
        + ("  # today's lowest" if on else ""),
        "    #   max_drop: {ndcg@10: 0.02}  # with a baseline",
    ]


def _written(
    data: Mapping[str, str], runs: Sequence[str], gates: list[str], *, tagged: bool
) -> str:
    """The suite, with what else it could say as comments."""
    lines = ["# Written by karat init; run it with: karat suite", "suites:", "  main:"]
    for role, path in data.items():
        # Runs of ids are matched without their texts, and faster.
        mark, why = ("# ", "  # texts, to match by") if role == "corpus" else ("", "")
        lines.append(f"    {mark}{role}: {_quoted(path)}{why}")
    lines.append("    retrievers:  # a name of your choice: a file, function or URL")
    # Those of the files, as short as they are distinct.
    for short in (lambda p: p.name.partition(".")[0], lambda p: p.name, Path.as_posix):
        names = {short(Path(path)): path for path in runs}
        if len(names) == len(runs):
            break
    if not names:
        names = {"mine": "my.module:search"}
        lines.append("      # Put your own function or URL here:")
    lines += [f"      {_quoted(n)}: {_quoted(p)}" for n, p in names.items()]
    lines += [
        "    # The first one sorts the runs; karat metrics lists all metrics.",
        f"    metrics: [{', '.join(DEFAULT_METRICS)}]",
        "    # match: auto  # how a document satisfies a gold item",
        f"    {'' if tagged else '# '}slices: tag  # also means by tag",
        "    # What to compare with: a retriever, or a saved evaluation.json:",
        f"    # baseline: {_quoted(next(iter(names)))}",
    ]
    return "\n".join([*lines, *gates, ""])


def _quoted(text: str) -> str:
    plain = _PLAIN.fullmatch(text) and decode_yaml(text) == text
    return text if plain else json.dumps(text, ensure_ascii=False)
