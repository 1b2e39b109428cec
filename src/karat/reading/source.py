"""An input as formats see it: where it lies, what is said of it, what it brings up.

Notices are counted; problems are raised, or kept by who checks.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import has_magic
from itertools import islice
from typing import Any, BinaryIO, Literal, TypeAlias

from karat.data.runs import Notice
from karat.errors import DataError, FormatError, MissingFieldError
from karat.reading.files import STDIN, open_binary

_EXAMPLES = 3
_BATCH = 256
HEAD = 1 << 16
"""So many of the first bytes say what a file is."""

Role: TypeAlias = Literal["run", "gold", "samples", "queries", "corpus"]
"""What a file is taken for, where its contents could be either."""

Records: TypeAlias = Iterator[tuple[int | None, Any]]
"""Records with the line each stands on, where lines are known."""

Batches: TypeAlias = Iterator[tuple[Sequence[int | None], list[Any]]]
"""Some lines at a time, and the record on each of them."""


class Notes:
    """The one place where reading code says what it met.

    By default the first problem is raised. A checker keeps a number of them instead,
    and reading goes on with the next row; one more than it keeps is raised after all.
    """

    def __init__(self, keep: int = 0) -> None:
        self.problems: list[DataError] = []
        self._keep = keep
        self._examples: dict[tuple[str, str], list[str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def problem(self, error: DataError) -> None:
        """Raise the problem, or keep it and let reading go on."""
        if len(self.problems) >= self._keep:
            raise error
        self.problems.append(error)

    def notice(self, kind: str, text: str, example: object = None) -> None:
        """Count something the user should know, as `Notice.of` writes it."""
        self._counts[kind, text] += 1
        examples = self._examples.setdefault((kind, text), [])
        if example is not None and len(examples) < _EXAMPLES:
            examples.append(str(example)[:80])

    def notices(self) -> tuple[Notice, ...]:
        """All notices so far, each with its count and up to three examples."""
        return tuple(
            Notice.of(kind, self._counts[kind, text], text, examples)
            for (kind, text), examples in self._examples.items()
        )


def placed(
    error: DataError,
    *,
    path: object = None,
    line: int | None = None,
    query: object = None,
) -> FormatError:
    """The same problem with its place, where it does not say one itself."""
    return FormatError(
        error.problem,
        path=error.path or path,
        line=error.line or line,
        query=query if error.query is None else error.query,
        hint=error.hint,
        finding=error.finding,
    )


@dataclass(frozen=True, eq=False)
class Source:
    """An input as a format sees it: where it lies, and what the user said of it.

    Attributes:
        path: as the user wrote it; messages show it.
        role: what the file is taken for, if the user said.
        mapping: our field name -> the input's field name, where the user said.
        notes: where problems and notices go.
        replay: the bytes from the start, when the path cannot be opened twice.
        optional: our names in the mapping that may be about another input only.
        head: the first bytes, if it is a file.
        ids: the documents of a corpus that are wanted, if not all are.

    Example:
        >>> from karat.extend import Source
        >>> Source("runs/bm25.run", role="run").path
        'runs/bm25.run'
    """

    path: str
    role: Role | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    replay: BinaryIO | None = None
    optional: frozenset[str] = frozenset()
    head: bytes = b""
    ids: Collection[str] | None = None

    @property
    def name(self) -> str:
        """How reports call what is read from here."""
        if self.path == STDIN:
            return "stdin"
        from pathlib import Path  # noqa: PLC0415  each of these takes long to load

        path = Path(self.path)
        while has_magic(path.name):
            path = path.parent
        return path.name or path.resolve().name

    def mapping_for(self, names: Iterable[str]) -> dict[str, str]:
        """The mapping for a table or record with these fields.

        A field that may be another input's is left to the inference where it is not
        there.
        """
        if not self.optional:
            return dict(self.mapping)
        there = {*names}
        return {
            ours: theirs
            for ours, theirs in self.mapping.items()
            if ours not in self.optional
            or theirs in there
            or theirs.partition(".")[0] in there
        }

    def apart(self) -> "Source":
        """The same input for one of its parts, which keeps its notices to itself."""
        return replace(self, notes=Notes())

    def open(self) -> BinaryIO:
        """The bytes from the start, decompressed. Only once for a pipe."""
        return open_binary(self.path) if self.replay is None else self.replay

    def read(self, most: int = -1) -> bytes:
        """All bytes, or so many of them."""
        with self.open() as stream:
            return stream.read(most)

    def error(
        self,
        problem: str,
        *,
        line: int | None = None,
        query: object = None,
        hint: str | None = None,
    ) -> FormatError:
        """A problem of this input, with its place."""
        return FormatError(problem, path=self.path, line=line, query=query, hint=hint)

    def mistaken(self, what: str, usage: str) -> FormatError:
        """An input that is something else than asked for, and how that is used."""
        subjects = {"run": "a run was", "gold": "gold was", "samples": "samples were"}
        wanted = subjects.get(self.role or "", "something else was")
        if self.role == "samples":
            return self.error(f"{what}, but {wanted} asked for", hint=f"try {usage}")
        return self.error(f"{what}, but {wanted} asked for: swapped files?")

    def lacks(self, field: str, problem: str) -> MissingFieldError:
        """A field that the user named and this input does not have."""
        return MissingFieldError(problem, field, path=self.path)


class Batched(Iterator[tuple[int | None, Any]]):
    """Records that come many at a time; under a header, each is a list of cells."""

    def __init__(self, batches: Batches, header: list[str] | None = None) -> None:
        self.batches = batches
        self.header = header
        self._each = (
            pair for some in batches for pair in zip(*self.named(*some), strict=True)
        )

    def __next__(self) -> tuple[int | None, Any]:
        return next(self._each)

    def named(
        self, lines: Sequence[int | None], rows: list[Any]
    ) -> tuple[Sequence[int | None], list[Any]]:
        """The same lines with their cells under the names of the columns."""
        if self.header is None:
            return lines, rows
        cells = ([cell or None for cell in row] for row in rows)
        return lines, [dict(zip(self.header, row, strict=True)) for row in cells]


def in_batches(records: Records) -> Batches:
    """Records that come one by one; a problem with one comes up behind those before."""
    wrong: DataError | None = None
    while wrong is None:
        some: list[tuple[int | None, Any]] = []
        try:
            some.extend(islice(records, _BATCH))
        except DataError as error:
            wrong = error
        if not some and wrong is None:
            return
        if some:
            yield [line for line, _ in some], [record for _, record in some]
    raise wrong
