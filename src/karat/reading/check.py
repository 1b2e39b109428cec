"""Checking a file: every problem in it with its place, instead of only the first."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Notice
from karat.errors import DataError
from karat.reading.files import open_binary
from karat.reading.format import choose_format
from karat.reading.readers import read
from karat.reading.source import Notes, Role
from karat.reading.trec import QRELS, RUN, split_lines_slowly

LIMIT = 20
_HEAD = 1 << 16
_LAYOUTS = {"trec_run": RUN, "trec_qrels": QRELS}


@dataclass(frozen=True, eq=False)
class Checked:
    """What a check found.

    Attributes:
        problems: what is wrong, with file and line or query; at most the limit.
        more: whether there are further problems.
        notices: what is not wrong but worth knowing.
        loaded: what the file holds, if nothing is wrong with it.
    """

    problems: tuple[DataError, ...] = ()
    more: bool = False
    notices: tuple[Notice, ...] = ()
    loaded: Dataset | None = None


def validate(
    source: str | os.PathLike[str],
    role: Role | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    shared: Dataset | bool = False,
    format: str | None = None,
    limit: int = LIMIT,
) -> Checked:
    """Read a file to its end and collect what is wrong with it."""
    notes = Notes(keep=limit)
    try:
        loaded = read(
            source, role, mapping=mapping, format=format, shared=shared, notes=notes
        )
        if loaded.run is not None:
            # Some runs are read only when scored: look for nothing, but at every row.
            loaded.run.locate({}, judged=False, policies=Policies())
    except DataError as error:
        if not notes.problems and error.line is not None:
            return _check_lines(source, error, notes, format)
        more = len(notes.problems) >= limit
        problems = notes.problems if more else (*notes.problems, error)
        return Checked(tuple(problems), more=more, notices=notes.notices())
    if notes.problems:
        return Checked(tuple(notes.problems), notices=notes.notices())
    return Checked(notices=loaded.notices, loaded=loaded)


def _check_lines(
    source: str | os.PathLike[str], first: DataError, notes: Notes, format: str | None
) -> Checked:
    """A TREC file is read fast, up to its first problem: now line by line."""
    path = os.fspath(source)
    if not Path(path).is_file():
        # A pipe cannot be read twice.
        return Checked((first,))
    with open_binary(path) as stream:
        name = format or choose_format(stream.read(_HEAD), path).name
    more = False
    if name in _LAYOUTS:
        try:
            with open_binary(path) as stream:
                for _ in split_lines_slowly(
                    stream, _LAYOUTS[name], path, tell=notes.problem
                ):
                    pass
        except DataError:
            more = True
    return Checked(tuple(notes.problems) or (first,), more=more)
