"""What a format is, which formats there are, and which of them a file is in.

A file's extension chooses among the formats that claim it. The first bytes decide only
between formats that claim the same extension, or where none claims it.
"""

import io
import logging
import os
import re
from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from glob import has_magic, iglob
from itertools import chain
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    cast,
)

from karat.catalogue import Catalogue, call_plugin
from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.errors import DataError, FormatError, ParameterError, UsageError
from karat.reading.files import STDIN, Pieces, blocks, foreign_kind, open_binary
from karat.reading.meaning.shapes import interpret, interpret_by
from karat.reading.source import HEAD, Notes, Role, Source

if TYPE_CHECKING:
    from pathlib import Path

IR_DATASETS = "ir_datasets:"
"""What the id of a public collection begins with."""

Layout: TypeAlias = Literal["nested", "records", "rows"]
"""One value; one record for each query; a header and rows."""

_log = logging.getLogger("karat")
_PACKED = (".gz", ".zst", ".zstd", ".bz2")
_ROLES = ("run", "gold", "samples", "queries")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s]+")
_BLANK = b"\xef\xbb\xbf \t\r\n"


class Shipped(NamedTuple):
    """A format that karat brings, and what is known of it before it is loaded."""

    home: str
    extensions: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    start: re.Pattern[bytes] = re.compile(b"")


_BRACKET = re.compile(rb"(\xef\xbb\xbf)?\s*[\[{]")
_SPAN = re.compile(
    rb'(?s)\s*[\[{].*?("resource_?[sS]pans"|retrieval\.documents|gen_ai\.retrieval'
    rb'|mlflow\.spanType|"openinference\.span\.kind"|"run_type": ?"retriever"'
    rb'|"(type|span_?[kK]ind)": ?"RETRIEVER")'
)
_COLUMNS = re.compile(rb"PAR1|ARROW1|\xff\xff\xff\xff")
# Endings that say what a text file holds, if anything, but not in which syntax.
_LOOSE = (".txt", ".run", ".trec", ".qrels", ".qrel")
_LINES = (".jsonl", ".ndjson")
_TABS = (".tsv", ".tab")

SHIPPED: Final[Mapping[str, Shipped]] = {
    # A folder of it may hold Parquet files.
    "beir": Shipped("karat.reading.public_data:BEIR"),
    "parquet": Shipped(
        "karat.reading.tables:PARQUET",
        (".parquet", ".pq", ".arrow", ".feather"),
        start=_COLUMNS,
    ),
    "traces": Shipped(
        "karat.reading.traces:TRACES", shares=(".json", *_LINES), start=_SPAN
    ),
    "jsonl": Shipped(
        "karat.reading.json_text:JSON_LINES", _LINES, (".json", *_LOOSE), _BRACKET
    ),
    "json": Shipped(
        "karat.reading.json_text:JSON", (".json",), (*_LINES, *_LOOSE), _BRACKET
    ),
    "trec_run": Shipped(
        "karat.reading.trec:TREC_RUN", (".run", ".trec"), (*_TABS, *_LOOSE)
    ),
    "trec_qrels": Shipped(
        "karat.reading.trec:TREC_QRELS", (".qrels", ".qrel"), (*_TABS, *_LOOSE)
    ),
    "tsv": Shipped("karat.reading.delimited:TSV", _TABS, (".csv", *_LOOSE)),
    "csv": Shipped("karat.reading.delimited:CSV", (".csv",), (*_TABS, *_LOOSE)),
    "yaml": Shipped("karat.reading.yaml_text:YAML", (".yaml", ".yml"), _LOOSE),
    "ir_datasets": Shipped("karat.reading.public_data:IR_DATASETS"),
}
"""The formats karat ships, in the order in which a file is held against them."""


class Format(ABC):
    """One way to write runs, gold, samples or a corpus down.

    A format that turns bytes into records and back overrides `records` and `write`;
    what records mean is the same for all. One with a meaning of its own, such as
    TREC's, overrides `read` and `write_run` or `write_gold`.

    Attributes:
        name: how `--format` calls it.
        extensions: file endings it is known by, lower case, with the dot.
        shares: endings of other formats in which it is met, if the content says so.
        binary: whether its files are not text.
        layout: what `write` takes: `nested`, one value; `records`, one for each query;
            `rows`, a header and rows. None if it cannot be written, or not like this.
        holds_sources: whether it says who labelled a document, if it has no samples.

    Example:
        >>> from karat.extend import Format
        >>> class Words(Format):
        ...     name = "words"
        ...     extensions = (".words",)
        ...     def records(self, source):
        ...         query, *documents = source.read().decode().split()
        ...         return [{"id": query, "retrieved": documents}]
        >>> Words().sniff(b"q1 d7 d3", "my.words")
        True
    """

    name: str
    extensions: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    binary: bool = False
    layout: Layout | None = None
    holds_sources: bool = False

    @property
    def holds(self) -> frozenset[str]:
        """What can be written in it: run, gold, samples with both."""
        if self.layout is not None:
            return frozenset({"run", "gold", "samples"})
        return frozenset(
            role
            for role in ("run", "gold")
            if getattr(type(self), f"write_{role}")
            is not getattr(Format, f"write_{role}")
        )

    def sniff(self, head: bytes, name: str) -> bool:
        """Whether the first bytes of a file look like this format.

        Args:
            head: the first 64 KiB, decompressed.
            name: the file's name without any ending of a compression, lower case.
        """
        row = SHIPPED.get(self.name)
        if row is not None and row.start.pattern:
            return row.start.match(head) is not None
        return name.endswith(self.extensions)

    def sniff_folder(self, folder: "Path") -> bool:
        """Whether a folder is laid out as this format."""
        del folder
        return False

    def records(self, source: Source) -> Any:
        """What the input says: an iterator of (line, record), or one nested value."""
        wanted = "texts of documents" if source.role == "corpus" else "records"
        raise source.error(f"is in the format {self.name}, which holds no {wanted}")

    def read(self, source: Source) -> Dataset:
        """What the input means: a run, gold, or both."""
        return interpret(self.records(source), source, self.name)

    def check(self, source: Source) -> None:
        """Note the problems of all lines, where `read` stops at the first."""
        del source

    def read_by(self, source: Source, column: str) -> dict[str, Dataset]:
        """The input split into one part per value of a column, such as the system."""
        if type(self).records is Format.records:
            raise source.error(f"{self.name} has no column {column!r} to split by")
        return interpret_by(self.records(source), column, source, self.name)

    def write(self, value: Any, stream: BinaryIO) -> None:  # noqa: ARG002
        """Write what is laid out as `layout` says."""
        raise FormatError(f"{self.name} cannot hold what was read")

    def write_run(self, run: Run, stream: BinaryIO) -> None:  # noqa: ARG002
        """Write the rankings, where there is no layout for them."""
        raise FormatError(f"{self.name} cannot hold a run")

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:  # noqa: ARG002
        """Write the gold, where there is no layout for it."""
        raise FormatError(f"{self.name} cannot hold gold")


FORMATS: Catalogue[Format] = Catalogue(
    "format",
    {name: row.home for name, row in SHIPPED.items()},
    "karat.formats",
    lambda thing: thing() if isinstance(thing, type) else thing,
)


def choose_format(head: bytes, path: str) -> Format:
    """The format of a file, by its extension and its first bytes."""
    name = os.path.basename(path).lower()  # noqa: PTH119  pathlib takes long to load
    for ending in _PACKED:
        name = name.removesuffix(ending)
    if SHIPPED["parquet"].start.match(head):
        return FORMATS["parquet"]
    chosen = _shipped(head, name)
    if os.path.splitext(name)[1] and (  # noqa: PTH122
        chosen is None or not chosen.sniff(head, name)
    ):
        # Only now: to ask all installed packages takes longer than to read most files.
        plugins = FORMATS.usable(shipped=False)
        claims = [f for f in plugins if name.endswith((*f.extensions, *f.shares))]
        owners = (f for f in claims if name.endswith(f.extensions))
        chosen = _plugin(claims, head, name) or next(owners, chosen)
    if chosen is None or not chosen.binary:
        if (kind := foreign_kind(head)) is not None:
            raise FormatError(f"looks like {kind}", path=path)
        if not head.strip(_BLANK):
            raise FormatError("is empty: there is nothing to read", path=path)
    if chosen is None:
        fit = (FORMATS[key] for key, row in SHIPPED.items() if row.start.match(head))
        chosen = next((f for f in fit if f.sniff(head, name)), None)
        chosen = chosen or _plugin(FORMATS.usable(shipped=False), head, name)
    if chosen is not None:
        return chosen
    line = head.strip().partition(b"\n")[0][:60].decode("utf-8", "replace")
    raise FormatError(
        f"cannot tell what it is; it starts with {line!r}",
        path=path,
        hint=f"--format names one of {', '.join(FORMATS)}",
    )


def _shipped(head: bytes, name: str) -> Format | None:
    """The first that knows the content, else the first that owns the extension."""
    owner = None
    for key, row in SHIPPED.items():
        owns = name.endswith(row.extensions)
        if owns or (name.endswith(row.shares) and row.start.match(head)):
            if FORMATS[key].sniff(head, name):
                return FORMATS[key]
            owner = FORMATS[key] if owns and owner is None else owner
    return owner


def _plugin(formats: Iterable[Format], head: bytes, name: str) -> Format | None:
    """The first that knows the content; one that fails at it does not."""
    for each in formats:
        try:
            problem = f"the format {each.name!r} cannot tell"
            if call_plugin(partial(each.sniff, head, name), problem):
                return each
        except UsageError as error:
            _log.warning("%s", error)
    return None


def _folder_format(path: str) -> Format:
    """The format that a folder is laid out in."""
    from pathlib import Path  # noqa: PLC0415

    for each in FORMATS.usable():
        if each.sniff_folder(Path(path)):
            return each
    raise FormatError(
        "is a folder that holds no data set karat knows",
        path=path,
        hint="a BEIR folder has qrels/test.tsv, a Parquet folder *.parquet files",
    )


def open_source(
    source: str | os.PathLike[str],
    notes: Notes,
    role: Role | None,
    mapping: Mapping[str, str] | None,
    format: str | None,
    optional: frozenset[str] = frozenset(),
) -> tuple[Format, Source]:
    """The format of an input and the input itself, ready to be read."""
    if role not in {None, "corpus", *_ROLES}:
        raise ParameterError("load", "role", f"one of {', '.join(_ROLES)}", role)
    path = os.fspath(source)
    where = Source(path, role, dict(mapping or {}), notes, optional=optional)
    named = None if format is None else FORMATS[format]
    if path.startswith(IR_DATASETS):
        return FORMATS["ir_datasets"], where
    # Not by Path, which raises where a text is longer than a file's name may be.
    once = path == STDIN or not os.path.isfile(path)  # noqa: PTH113
    if once and path != STDIN:
        if os.path.isdir(path):  # noqa: PTH112
            return named or _folder_format(path), where
        pattern = has_magic(path) and len(path) < HEAD and "\n" not in path
        files = iglob(path, recursive=True) if pattern else ()  # noqa: PTH207
        if _ADDRESS.match(path) or any(True for _ in files):
            return named or FORMATS["parquet"], where
    stream = open_binary(path)
    try:
        head = stream.read(HEAD)
        chosen = named or choose_format(head, path)
    except DataError:
        stream.close()
        raise
    if not once:
        stream.close()
        return chosen, replace(where, head=head)
    # What cannot be opened twice is read on from behind its head.
    again = io.BufferedReader(Pieces(chain([head], blocks(stream)), stream))
    return chosen, replace(where, head=head, replay=cast("BinaryIO", again))


def name_format(path: str | None) -> Format:
    """The format that the ending of a path means, for writing."""
    name = (path or "").lower().removesuffix(".gz")
    for key, row in SHIPPED.items():
        if name.endswith(row.extensions):
            return FORMATS[key]
    for plugin in FORMATS.usable(shipped=False):
        if name.endswith(plugin.extensions):
            return plugin
    can = {one.name: one.extensions for one in FORMATS.usable() if one.holds}
    endings = ", ".join(e for extensions in can.values() for e in extensions)
    raise UsageError(
        f"cannot tell the format to write from {path!r}; end it in one of {endings}, "
        f"or name the format (--to): one of {', '.join(can)}"
    )
