"""The files `karat evaluate` is called with."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from karat.data.queries import Dataset
from karat.errors import DataError, UsageError
from karat.metrics import read_metric
from karat.reading.doors import load, load_by
from karat.reading.meaning.aliases import generated
from karat.reading.meaning.mapping import mapping_of, shared_names
from karat.reading.streams import STDIN

__all__ = ["check_references", "read_gold", "read_runs"]

_SHOWN = 12


def read_gold(options: Mapping[str, Any], paths: Sequence[str]) -> Dataset | None:
    """The gold, if it has a file of its own."""
    if options["gold"] is None:
        return None
    if options["gold"] == "-" and "-" in paths:
        raise UsageError("standard input can be read once only: one - at most")
    return load(
        options["gold"],
        role="gold",
        mapping=mapping_of("gold", options["map"]),
        optional=shared_names(options["map"]),
    )


def read_runs(
    paths: Sequence[str], options: Mapping[str, Any], gold: Dataset | None
) -> Iterator[tuple[str, Dataset]]:
    """Each run with its name, read when it is its turn."""
    role = "samples" if gold is None else "run"
    chosen = {
        "role": role,
        "format": options["format"],
        "mapping": mapping_of(role, options["map"]),
        "optional": frozenset() if gold is None else shared_names(options["map"], gold),
    }
    several = {Path(path).name for path in paths}
    for path in paths:
        if options["by"] is not None:
            systems = load_by(path, options["by"], **chosen)
            prefix = f"{Path(path).name}:" if len(paths) > 1 else ""
            yield from ((prefix + name, part) for name, part in systems.items())
        else:
            others = [other for other in paths if other != path]
            loaded = _read_run(path, chosen, others)
            # Files of one name in several folders are told apart by their paths.
            own = loaded.run.name if loaded.run is not None else path
            yield (own if len(several) == len(paths) else path), loaded


def check_references(truth: Dataset, metrics: Sequence[str]) -> None:
    """Refuse answers where a judge needs a reference, and say how to make them one."""
    gold = truth.gold
    if gold is None or gold.references or gold.claims or not gold.answers:
        return
    if all(read_metric(m).matcher != "claims" and "[claims]" not in m for m in metrics):
        return
    theirs = truth.mapping.get("answers", "answers")
    raise DataError(
        "there is nothing to judge: no query has claims or a reference answer",
        path=gold.name,
        hint=f"the file has {theirs} (read as answers); --map reference={theirs} takes "
        f"a text as the reference, --map claims={theirs} a list as claims",
    )


def _read_run(path: str, chosen: Mapping[str, Any], others: Sequence[str]) -> Dataset:
    try:
        return load(path, **chosen)
    except DataError:
        if chosen["role"] == "run" or path == "-":
            raise
        # A run alone is the likeliest mistake, and a sentence about samples no help.
        with suppress(DataError):
            loaded = load(path, **{**chosen, "role": "run"})
            if loaded.gold is None:
                hint = _where_gold_may_be(loaded, others)
                raise UsageError(f"{path} holds a run but no gold: {hint}") from None
        raise


def _where_gold_may_be(run: Dataset, others: Sequence[str]) -> str:
    for path in others:
        with suppress(DataError):
            if path != STDIN and load(path).gold is not None:
                return f"is {path} the gold? then --gold {path}"
    if "response" in run.mapping:
        return f"add --gold; {generated(run.mapping['response'])}"
    unread = next((query.metadata for query in run.queries.values()), {})
    if not unread and any(query.text for query in run.queries.values()):
        return "add --gold, or a reference answer to each sample and --model NAME"
    if not unread:
        return "add --gold"
    names = ", ".join(str(name)[:40] for name in [*unread][:_SHOWN])
    return (
        f"add --gold, or say which field is the gold, as in --map relevant=...: {names}"
    )
