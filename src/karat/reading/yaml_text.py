"""YAML, built event by event: no tags, no bombs, no surprises in ids.

PyYAML's composer recurses in C and dies on deep input, and its YAML 1.1 rules read `no`
as false and `007` as seven. So only its parser is used, which yields plain events, and
scalars are typed by the core rules of YAML 1.2; dates and zero-led numbers stay text.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from karat.errors import FormatError
from karat.reading.files import decode_text
from karat.reading.format import SHIPPED, Format
from karat.reading.source import Source

_DEPTH = 100
_BYTES = 64 << 20
_REPEATED = 100_000
# No wider than YAML 1.1, or what other writers leave without quotes would be a number.
_TYPED: Final[tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...]] = (
    (re.compile(r"~|null|Null|NULL|"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"[-+]?(?:0|[1-9][0-9]{0,999})"), int),
    (
        re.compile(r"(?:[-+]?[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?"),
        float,
    ),
    (
        re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"),
        lambda text: float(text.replace(".", "")),
    ),
)
_LOOKS = re.compile(
    rb"(?:---|%YAML|#.*\n|\s)*+"
    rb"(?:- |-\n|[^\s\[\]{},\"'][^:\n\t,]*:(?:\s|$)|\"[^\"\n]+\":)"
)
_PLAIN_TAGS = {"!", *("tag:yaml.org,2002:" + name for name in ("map", "seq", "str"))}


class _Merge(str):
    """The key that merges mappings; in quotes it is an ordinary one."""

    __slots__ = ()


_MERGE = _Merge("<<")


class Yaml(Format):
    """YAML: samples, or documents by query."""

    name = "yaml"
    extensions, shares = SHIPPED["yaml"][1:3]
    layout = "nested"

    def sniff(self, head: bytes, name: str) -> bool:
        """The name says so, or the first line is a key or a list entry."""
        start = head.removeprefix(b"\xef\xbb\xbf")
        return name.endswith(self.extensions) or _LOOKS.match(start) is not None

    def records(self, source: Source) -> Any:
        """The value of the whole document."""
        data = source.read(_BYTES + 1)
        if len(data) > _BYTES:
            problem = f"more than {_BYTES >> 20} MiB of YAML"
            raise source.error(problem, hint="use JSON Lines")
        return decode_yaml(decode_text(data))

    def write(self, value: Any, stream: BinaryIO) -> None:
        """One document."""
        import yaml  # noqa: PLC0415

        writer = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        # What occurs twice is written twice: aliases are for machines.
        dumper = type("Dumper", (writer,), {"ignore_aliases": lambda *_: True})
        text = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True)
        stream.write(text.encode())


def decode_yaml(text: str) -> Any:
    r"""The value of a YAML text. Tags, keys given twice and great depth are errors.

    Example:
        >>> decode_yaml("answer: no\nids: [007, 8]")
        {'answer': 'no', 'ids': ['007', 8]}
    """
    import yaml  # noqa: PLC0415

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(yaml.parse(text, Loader=loader)).document()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        column = error.problem_mark.column + 1 if error.problem_mark else 1
        raise FormatError(
            f"broken YAML at column {column}: {error.problem}", line=line
        ) from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise FormatError(f"broken YAML: {reason[:200]}") from None


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Where each key and each entry of a list stands, for text that can be decoded."""
    import yaml  # noqa: PLC0415

    lines: dict[tuple[str, ...], int] = {}
    # Nodes are not values yet: composing makes no object of any tag.
    nodes: list[tuple[tuple[str, ...], Any]] = [
        ((), yaml.compose(text, Loader=yaml.SafeLoader))
    ]
    for path, node in nodes:
        entries: list[tuple[str, Any, Any]] = []
        if isinstance(node, yaml.MappingNode):
            entries = [(str(key.value), key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            entries = [(str(n), value, value) for n, value in enumerate(node.value)]
        for name, start, value in entries:
            lines[*path, name] = _line(start)
            nodes.append(((*path, name), value))
    return lines


class _Builder:
    """Builds a value from events, and counts what aliases repeat."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        # The value behind each anchor, and how many values that is.
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0
        self._repeated = 0

    def document(self) -> Any:
        """The one document."""
        values = [
            self._build(event, 1) for event in self._events if hasattr(event, "anchor")
        ]
        if len(values) > 1:
            raise FormatError("several YAML documents in one file", hint="give one")
        return values[0] if values else None

    def _build(self, event: Any, depth: int) -> Any:
        """The value that begins with an event."""
        kind = type(event).__name__
        if kind == "AliasEvent":
            return self._repeat(event)
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            raise FormatError(f"YAML tag {event.tag!r} is not read", line=_line(event))
        before = self._size
        self._size += 1
        if kind == "ScalarEvent":
            value = _scalar(event)
        elif depth > _DEPTH:
            raise FormatError(f"YAML nested more than {_DEPTH} deep", line=_line(event))
        elif kind == "SequenceStartEvent":
            value = [inner for inner, _ in self._inner(depth)]
        else:
            value = self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._size - before
        return value

    def _inner(self, depth: int) -> Iterator[tuple[Any, int]]:
        """The values up to the end of a list or mapping, and the line of each."""
        for event in self._events:
            if not hasattr(event, "anchor"):
                return
            yield self._build(event, depth + 1), _line(event)

    def _mapping(self, depth: int) -> dict[Any, Any]:
        pairs: dict[Any, Any] = {}
        merged: list[Any] = []
        inner = self._inner(depth)
        for key, line in inner:
            if isinstance(key, list | dict):
                raise FormatError("a key must be a text or a number", line=line)
            value, line = next(inner)  # noqa: PLW2901
            if key is _MERGE and isinstance(value, dict | list):
                merged += [value] if isinstance(value, dict) else value
            elif key in pairs:
                raise FormatError(f"key {key!r} occurs twice in one mapping", line=line)
            else:
                pairs[key] = value
        for part in merged:
            pairs = {**part, **pairs} if isinstance(part, dict) else pairs
        return pairs

    def _repeat(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            problem = f"alias *{event.anchor} has no anchor before it"
            raise FormatError(problem, line=_line(event))
        value, size = self._anchors[event.anchor]
        self._size += size
        self._repeated += size
        if self._repeated > _REPEATED:
            problem = f"aliases repeat more than {_REPEATED} values"
            raise FormatError(problem, line=_line(event))
        return value


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0] or event.tag is not None:
        return text
    if text == _MERGE:
        return _MERGE
    for pattern, read in _TYPED:
        if pattern.fullmatch(text):
            return read(text)
    return text


YAML = Yaml()
