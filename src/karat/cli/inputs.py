"""The files `karat evaluate` is called with."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from karat.cli.options import mapping_of
from karat.data.queries import Loaded
from karat.errors import DataError, MissingFieldError, UsageError
from karat.formats.loading import load, load_by
from karat.formats.streams import STDIN

__all__ = ["fitting", "read_gold", "read_runs", "shared_names"]

T = TypeVar("T")


def read_gold(options: Mapping[str, Any], paths: Sequence[str]) -> Loaded | None:
    """The gold, if it has a file of its own."""
    if options["gold"] is None:
        return None
    if options["gold"] == "-" and "-" in paths:
        raise UsageError("standard input can be read once only: one - at most")
    path, mapping = options["gold"], mapping_of("gold", options["map"])
    shared = shared_names(options["map"])
    return fitting(partial(load, path, role="gold"), path, mapping, shared)


def read_runs(
    paths: Sequence[str], options: Mapping[str, Any], gold: Loaded | None
) -> Iterator[tuple[str, Loaded]]:
    """Each run with its name, read when it is its turn."""
    role = "samples" if gold is None else "run"
    mapping = mapping_of(role, options["map"])
    shared = shared_names(options["map"], gold) if gold is not None else frozenset()
    chosen = {"role": role, "format": options["format"]}
    several = {Path(path).name for path in paths}
    for path in paths:
        if options["by"] is not None:
            split = partial(load_by, path, options["by"], **chosen)
            systems = fitting(split, path, mapping, shared)
            prefix = f"{Path(path).name}:" if len(paths) > 1 else ""
            yield from ((prefix + name, part) for name, part in systems.items())
        else:
            read = partial(_read_run, path, chosen)
            loaded = fitting(read, path, mapping, shared)
            # Files of one name in several folders are told apart by their paths.
            own = loaded.run.name if loaded.run is not None else path
            yield (own if len(several) == len(paths) else path), loaded


def shared_names(
    mapping: Mapping[str, str], gold: Loaded | None = None
) -> AbstractSet[str]:
    """Our names in a mapping that may be about the other file of run and gold only.

    Args:
        mapping: our field name -> a file's, as the user wrote it.
        gold: the gold once it is read: a run must have all that it does not have.
    """
    if gold is not None:
        known = gold.mapping.values()
        return {ours for ours, theirs in mapping.items() if theirs in known}
    return mapping_of("run", mapping).keys() & mapping_of("gold", mapping).keys()


def fitting(
    read: Callable[..., T],
    path: str,
    mapping: Mapping[str, str],
    shared: AbstractSet[str],
) -> T:
    """What `read` makes of a file, without those names of the mapping it does not have.

    Args:
        read: reads the file with the `mapping` it is given.
        path: the file; standard input cannot be read again.
        mapping: our field name -> the file's.
        shared: our names that may be about another file only.
    """
    try:
        return read(mapping=mapping)
    except MissingFieldError as error:
        told = mapping.items()
        fits = {o: t for o, t in told if t != error.field or o not in shared}
        if path == STDIN or len(fits) == len(mapping):
            raise
        return fitting(read, path, fits, shared)


def _read_run(
    path: str, chosen: Mapping[str, Any], mapping: Mapping[str, str]
) -> Loaded:
    chosen = {**chosen, "mapping": mapping}
    try:
        return load(path, **chosen)
    except DataError:
        if chosen["role"] == "run" or path == "-":
            raise
        # A run alone is the likeliest mistake, and a sentence about samples no help.
        with suppress(DataError):
            if load(path, **{**chosen, "role": "run"}).gold is None:
                raise UsageError(
                    f"{path} holds a run but no gold: add --gold"
                ) from None
        raise
