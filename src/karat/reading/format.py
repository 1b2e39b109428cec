"""What a format is: it recognises its files, reads them, writes what it can hold."""

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.errors import FormatError, MissingFieldError
from karat.reading.problems import Notes
from karat.reading.streams import STDIN, open_binary

__all__ = ["Format", "Role", "Source"]

Role: TypeAlias = Literal["run", "gold", "samples", "queries"]
"""What a file is taken for, where its contents could be either."""


@dataclass(frozen=True, eq=False)
class Source:
    """An input as a format sees it: where it lies, and what the user said of it.

    Attributes:
        path: as the user wrote it; messages show it.
        role: what the file is taken for, if the user said.
        mapping: our field name -> the input's field name, where the user said.
        notes: where problems and notices go.
        replay: the bytes from the start, when the path cannot be opened twice.
    """

    path: str
    role: Role | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    replay: BinaryIO | None = None

    @property
    def name(self) -> str:
        """How reports call what is read from here."""
        if self.path == STDIN:
            return "stdin"
        return Path(self.path).name or Path(self.path).resolve().name

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

    def mistaken(self, what: str) -> FormatError:
        """An input that is something else than what was asked for."""
        asked = {"run": "a run was", "gold": "gold was", "samples": "samples were"}
        wanted = asked.get(self.role or "", "something else was")
        return self.error(f"{what}, but {wanted} asked for: swapped files?")

    def lacks(self, field: str, problem: str) -> MissingFieldError:
        """A field that the user named and this input does not have."""
        return MissingFieldError(problem, field, path=self.path)


class Format(ABC):
    """One way to write runs, gold or samples down.

    A subclass overrides what it can do; everything else says that it cannot.

    Attributes:
        name: how `--format` calls it.
        extensions: file endings it is known by, lower case, with the dot.
        binary: whether its files are not text.
        holds_sources: whether it says who labelled a document, if it has no samples.
    """

    name: str
    extensions: tuple[str, ...] = ()
    binary: bool = False
    holds_sources: bool = False

    @property
    def holds(self) -> frozenset[str]:
        """What can be written in it: run, gold, samples with both."""
        return frozenset(
            role
            for role in ("run", "gold", "samples")
            if getattr(type(self), f"write_{role}")
            is not getattr(Format, f"write_{role}")
        )

    def sniff(self, head: bytes, name: str) -> bool:
        """Whether the first bytes of a file look like this format.

        Args:
            head: the first 64 KiB, decompressed.
            name: the file's name without any ending of a compression, lower case.
        """
        del head
        return name.endswith(self.extensions)

    def sniff_folder(self, folder: Path) -> bool:
        """Whether a folder is laid out as this format."""
        del folder
        return False

    def read(self, source: Source) -> Dataset:
        """What the input holds."""
        raise source.error(f"{self.name} can be written, but not read")

    def read_by(self, source: Source, column: str) -> dict[str, Dataset]:
        """The input split into one part per value of a column, such as the system."""
        raise source.error(f"{self.name} has no column {column!r} to split by")

    def write_run(self, run: Run, stream: BinaryIO) -> None:  # noqa: ARG002
        """Write the rankings, and the texts if the format has room for them."""
        raise self._cannot_hold("a run")

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:  # noqa: ARG002
        """Write the gold."""
        raise self._cannot_hold("gold")

    def write_samples(self, loaded: Dataset, stream: BinaryIO) -> None:  # noqa: ARG002
        """Write run, gold and what is known of the queries, together."""
        raise self._cannot_hold("run and gold in one file")

    def _cannot_hold(self, what: str) -> FormatError:
        return FormatError(f"{self.name} cannot hold {what}")
