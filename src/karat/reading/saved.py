"""Reading saved evaluations: what `karat evaluate -o result.json` wrote."""

import os
from pathlib import Path
from typing import Any

from karat.data.evaluations import Evaluation
from karat.data.saved import from_dict
from karat.errors import DataError, FormatError, UnknownNameError, UsageError
from karat.reading.decoding import decode_json, decode_text
from karat.reading.doors import load as load_input
from karat.reading.problems import placed
from karat.reading.streams import open_binary

__all__ = ["load"]


def load(path: str | os.PathLike[str], run: str | None = None) -> Evaluation:
    """The evaluation saved in a file, with the same numbers to the last bit.

    Args:
        path: a JSON file that karat wrote, possibly compressed; `-` is standard input.
        run: which one, when the file holds several runs.

    Raises:
        FormatError: the file cannot be read, or was saved by a newer karat.
        UsageError: it holds several runs and none, or an unknown one, was named.
    """
    saved = None
    try:
        with open_binary(path) as stream:
            saved = decode_json(decode_text(stream.read()))
        return from_dict(_choose(saved, path, run))
    except DataError as error:
        first = saved[0] if isinstance(saved, list) and saved else saved
        known = isinstance(first, dict) and "schema_version" in first
        mistaken = None if known else _mistaken(path)
        raise mistaken or placed(error, path=os.fspath(path)) from None


def _mistaken(path: str | os.PathLike[str]) -> FormatError | None:
    """That the file is a run, gold or samples, if it is, and what reads it."""
    if not Path(path).is_file():
        return None
    try:
        found = load_input(path)
    except DataError:
        return None
    what, reader = "a run", "read_run"
    if found.run is None:
        what, reader = "gold", "read_gold"
    elif found.gold is not None:
        what, reader = "a file of samples", "read_samples"
    return FormatError(
        f"is {what}, not a saved evaluation",
        path=os.fspath(path),
        hint=f"karat.{reader} reads it",
    )


def _choose(saved: Any, path: str | os.PathLike[str], run: str | None) -> Any:
    every = saved if isinstance(saved, list) else [saved]
    names = [str(one.get("run")) for one in every if isinstance(one, dict)]
    if len(names) < len(every) or not every:
        return {}
    if run is None and len(every) == 1:
        return every[0]
    if run is None:
        raise UsageError(
            f"{os.fspath(path)} holds {len(every)} runs; name one with run=: "
            f"{', '.join(names)}"
        )
    if run not in names:
        raise UnknownNameError("run", run, names)
    return every[names.index(run)]
