"""The files `karat evaluate` is called with."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from karat.cli.options import mapping_of
from karat.data.queries import Loaded
from karat.errors import DataError, UsageError
from karat.formats.loading import load, load_by

__all__ = ["read_gold", "read_runs"]


def read_gold(options: Mapping[str, Any], paths: Sequence[str]) -> Loaded | None:
    """The gold, if it has a file of its own."""
    if options["gold"] is None:
        return None
    if options["gold"] == "-" and "-" in paths:
        raise UsageError("standard input can be read once only: one - at most")
    mapping = mapping_of("gold", options["map"])
    return load(options["gold"], role="gold", mapping=mapping)


def read_runs(
    paths: Sequence[str], options: Mapping[str, Any], gold: Loaded | None
) -> Iterator[tuple[str, Loaded]]:
    """Each run with its name, read when it is its turn."""
    role = "samples" if gold is None else "run"
    chosen = {
        "role": role,
        "mapping": mapping_of(role, options["map"]),
        "format": options["format"],
    }
    several = {Path(path).name for path in paths}
    for path in paths:
        if options["by"] is not None:
            systems = load_by(path, options["by"], **chosen)
            prefix = f"{Path(path).name}:" if len(paths) > 1 else ""
            yield from ((prefix + name, part) for name, part in systems.items())
        else:
            loaded = _read_run(path, chosen)
            # Files of one name in several folders are told apart by their paths.
            own = loaded.run.name if loaded.run is not None else path
            yield (own if len(several) == len(paths) else path), loaded


def _read_run(path: str, chosen: Mapping[str, Any]) -> Loaded:
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
