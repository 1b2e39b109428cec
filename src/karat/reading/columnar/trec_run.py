"""A TREC run as a `Run`: looked through when asked, and never kept."""

import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NoReturn, TypeAlias, TypeVar

import numpy as np

from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Located, Notice, Run, run_notices
from karat.data.score_ranks import rank_order
from karat.errors import FormatError
from karat.reading.columnar.trec_chunks import Chunk, Malformed, chunks
from karat.reading.columnar.trec_lines import RUN, checked_lines, columns, nothing_in
from karat.reading.columnar.trec_scan import Repeated, Survey, in_order, survey
from karat.reading.columnar.words import Keys, Words, number
from karat.reading.streams import BLOCK, STDIN, open_binary, path_of

__all__ = ["TrecRun"]

Input: TypeAlias = str | os.PathLike[str] | bytes | Callable[[], BinaryIO]
Result = TypeVar("Result")


class TrecRun(Run):
    r"""A run in a TREC file, which is read when asked and never kept.

    Documents are ordered by score and then by id, both descending, whatever the order
    and the ranks in the file. Scores and ids are compared as trec_eval does.

    Attributes:
        name: how reports call the system.
        tag: the tag in the last line, once documents have been located.

    Example:
        >>> run = TrecRun(b"q1 Q0 d7 1 0.9 mine\nq1 Q0 d3 2 0.8 mine\n")
        >>> run.locate({"q1": {"d3": 1}}, judged=False, policies=Policies()).rank
        array([2])
    """

    def __init__(
        self,
        source: Input,
        name: str | None = None,
        *,
        path: str | None = None,
        block: int = BLOCK,
    ) -> None:
        """Say where the run is; nothing is read yet.

        Args:
            source: a path, the bytes themselves, or a function that opens the file from
                the start each time it is called.
            name: how reports call the system; the file's name if not given.
            path: how errors call the file; its path if not given.
            block: how many bytes to read at a time.
        """
        self._source = source
        self._path = path or path_of(source)
        self.name = name or ("stdin" if self._path == STDIN else Path(self._path).name)
        self.tag = ""
        self._block = block

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        names: dict[bytes, None] = {}
        for query in self._each(_queries_in):
            names.update(dict.fromkeys(query))
        return [name.decode() for name in names]

    def sample_ids(self) -> list[str]:
        """The first few document ids, to show what they look like."""
        with self._open() as stream:
            lines = islice(checked_lines(stream, RUN, self._path), 3)
            return [words[2].decode() for _, words in lines]

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        words = Words.of([*documents])
        look = partial(_holds_any, {*words.to_list()}, np.unique(words.keys()))
        return any(self._each(look))

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents in one pass over the file."""
        try:
            found = survey(
                self._open, labels, judged=judged, policies=policies, size=self._block
            )
        except Malformed as problem:
            self._explain(problem)
        except Repeated as problem:
            raise self._twice(problem) from None
        if not found.queries:
            with self._open() as stream:
                raise nothing_in(stream.read(BLOCK), self._path)
        self.tag = found.tag
        return Located(
            query=found.query,
            rank=found.rank,
            grade=found.grade,
            retrieved=found.retrieved,
            extra=len(found.extra),
            item=found.item,
            distinct=policies.duplicates != "keep",
            notices=_notices(found, policies),
        )

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in rank order, queries in input order."""
        lists: dict[bytes, list[tuple[float, bytes]]] = {}
        with self._open() as stream:
            for _, words in checked_lines(stream, RUN, self._path):
                pair = number(words[4]), words[2]
                lists.setdefault(words[0], []).append(pair)
        for query, pairs in lists.items():
            ordered = _ranked(pairs, policies)
            yield (
                query.decode(),
                [Document(id=name.decode(), score=score) for score, name in ordered],
            )

    def notices(self, labels: Labels, policies: Policies) -> tuple[Notice, ...]:
        """None: `locate` has seen and told everything on its way."""
        del labels, policies
        return ()

    def _open(self) -> BinaryIO:
        """The file from the start; what can be read only once is kept."""
        if callable(self._source):
            return self._source()
        if not isinstance(self._source, bytes) and _is_pipe(self._source):
            with open_binary(self._source) as stream:
                self._source = stream.read()
        return open_binary(self._source)

    def _each(self, work: Callable[[Chunk], Result]) -> Iterator[Result]:
        try:
            with self._open() as stream:
                yield from in_order(work, chunks(stream, self._block))
        except Malformed as problem:
            self._explain(problem)

    def _explain(self, problem: Malformed) -> NoReturn:
        with self._open() as stream:
            deque(checked_lines(stream, RUN, self._path, problem.offset), maxlen=0)
        raise FormatError("a line is malformed", path=self._path)

    def _twice(self, problem: Repeated) -> FormatError:
        pair = [problem.query, problem.document]
        with self._open() as stream:
            lines = checked_lines(stream, RUN, self._path, problem.offset)
            found = (line for line, words in lines if words[0:3:2] == pair)
            first, second = islice(found, 2)
        return FormatError(
            f"document {problem.document.decode()!r} is listed twice, "
            f"first in line {first}",
            path=self._path,
            line=second,
            query=problem.query.decode(),
        )


def _queries_in(chunk: Chunk) -> list[bytes]:
    (query,), _ = columns(chunk, RUN, (0,))
    return query[query.first_of_each()].to_list()


def _holds_any(names: set[bytes], keys: Keys, chunk: Chunk) -> bool:
    (documents,), _ = columns(chunk, RUN, (2,))
    rows = np.isin(documents.keys(), keys)
    return not names.isdisjoint(documents[rows].to_list())


def _ranked(
    pairs: list[tuple[float, bytes]], policies: Policies
) -> list[tuple[float, bytes]]:
    scores, names = [score for score, _ in pairs], [name for _, name in pairs]
    ordered = [pairs[place] for place in rank_order(scores, names, policies)]
    if policies.duplicates == "collapse":
        best: dict[bytes, tuple[float, bytes]] = {}
        for pair in ordered:
            best.setdefault(pair[1], pair)
        return [*best.values()]
    return ordered


def _notices(found: Survey, policies: Policies) -> tuple[Notice, ...]:
    notices = run_notices(
        policies, ties=found.tied, duplicates=found.repeated, extra=found.extra
    )
    if not found.remarks:
        return notices
    what = "more than six columns; what follows the tag was ignored"
    text, one = f"lines have {what}", f"line has {what}"
    return (*notices, Notice("columns", found.remarks, text, one=one))


def _is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether the path can be read only once."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  a str stays as it was written
    except (OSError, ValueError):
        return path == STDIN
    return path == STDIN or stat.S_ISFIFO(mode)
