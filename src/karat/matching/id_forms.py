"""The forms that an id may have: other case, a path, an address, a chunk's number.

Ids of documents and of queries alike. What forms there are is a table, `_FORMS`. Where
ids do not join, those of the run are looked at for other forms of the gold's.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, filterfalse, islice, repeat
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.gold import ColumnLabels
from karat.data.runs import Document, Labels, Notice, Run

_PARTS = re.compile(r"[^\W\d_]+|\d+")
_UUID = re.compile(
    r"(?:urn:uuid:)?\{?([0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12})\}?"
)
_EXTENSION = re.compile(r"\.[a-z]\w{0,3}$")
_SITE = re.compile(r"^[a-z][a-z0-9+.]*://|^www\.|(?<=://)www\.|/index\.\w+$")
_TRACKING = re.compile(r"[?&](?:utm(?:-[a-z]+)?|gclid|fbclid|ref)=[^&#]*")
_BEHIND = re.compile(r"(?<=[^\W_])[\W_]")
_CHUNK = re.compile(r"[\W_]+(?:[a-z]{1,9}[\W_]*)?\d[\d\W_]*")
_WORDED = re.compile(r"[a-z]+[-:/ ]?0*(\d+)")
# Written now so, now so.
ALIKE = str.maketrans("\\_", "/-")
# What spreadsheets make of long numbers.
_POWERS = re.compile(r"\d(?:\.\d+)?e\+\d{1,2}")
_ZEROS = re.compile(r"0*(\d+)(?:\.0+)?")


class OtherForm(NamedTuple):
    """A gold id, the same id as it was found, and how the two differ."""

    wanted: str
    found: str
    how: str
    cure: str = ""

    def __str__(self) -> str:
        pair = f"{self.wanted!r:.60} is there as {self.found!r:.60}, {self.how}"
        return pair + self.cure


def other_forms(wanted: set[str], ranking: Iterable[Any]) -> Iterator[OtherForm]:
    """The gold ids that are there in another form, among ids or documents."""
    ids = _Forms(wanted)
    rest = {*wanted}
    for entry in ranking:
        name = entry.id if isinstance(entry, Document) else entry
        forms = ids.like(name) if isinstance(name, str) else iter(())
        if isinstance(entry, Document) and (entry.metadata or entry.source):
            forms = chain(forms, _fields(entry, name or str(entry.text)))
        for form in forms:
            if form.wanted in rest and form.wanted != name:
                rest.discard(form.wanted)
                yield form


class _Forms:
    """Gold ids by their forms."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._plain = {_plain(name): name for name in wanted}
        self._mended = {_plain(_mended(name)): name for name in self._plain.values()}
        self._shorter: list[dict[str, str]] = [{} for _ in _FORMS]
        for base, name in self._plain.items():
            for form, shorter in zip(_FORMS, self._shorter, strict=True):
                shorter.update(dict.fromkeys(form.keys(base), name))

    def like(self, name: str) -> Iterator[OtherForm]:
        """The gold ids that an id may stand for, those most like it first."""
        base = _plain(name)
        if gold := self._plain.get(base):
            yield OtherForm(gold, name, _CASE)
        if gold := self._mended.get(base if name.isascii() else _plain(_mended(name))):
            yield OtherForm(gold, name, _ENCODING)
        for form, golds in zip(_FORMS, self._shorter, strict=True):
            keys = form.keys(base)
            if gold := golds.get(base):
                yield form.between(gold, name, form.less or form.both)
            for key in keys:
                if gold := self._plain.get(key):
                    yield form.between(gold, name, form.more or form.both)
                if form.both and (gold := golds.get(key)):
                    yield form.between(gold, name, form.both)


def _fields(document: Document, name: str) -> Iterator[OtherForm]:
    fields = {f"metadata.{key}": value for key, value in document.metadata.items()}
    fields["source"] = document.source
    for field, value in fields.items():
        if isinstance(value, str):
            yield OtherForm(value, name, f"in another field (--map document={field})")


def _plain(name: str) -> str:
    name = name if name.isascii() else unicodedata.normalize("NFKC", name)
    if "%" in name:
        from urllib.parse import unquote  # noqa: PLC0415  few ids need it

        name = unquote(name)
    name = " ".join(name.casefold().translate(ALIKE).split()).strip("\"'[](),;")
    name = name.removeprefix("./").strip("/")
    if "e+" in name and _POWERS.fullmatch(name):
        name = f"{float(name):.0f}"
    number = _ZEROS.fullmatch(name) if name[:1].isdigit() else None
    return number[1] if number else name


def _mended(name: str) -> str:
    """The name, had its UTF-8 not been read as Latin-1 or Windows-1252."""
    for encoding in () if name.isascii() else ("cp1252", "latin-1"):
        try:
            return name.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return name


def _parts(name: str) -> str:
    """The words and numbers of an id."""
    if uuid := _UUID.fullmatch(name):
        return uuid[1].replace("-", "")
    if not name.isascii():
        apart = unicodedata.normalize("NFKD", name)
        name = "".join(filterfalse(unicodedata.combining, apart))
    return " ".join(word.lstrip("0") or "0" for word in _PARTS.findall(name))


def _address(name: str) -> str:
    if ":" not in name and "." not in name and "?" not in name:
        return name
    tracked = _TRACKING.sub("", name)
    return _SITE.sub("", _SITE.sub("", tracked)).strip("/")


def _page(name: str) -> str:
    return re.split(r"[?#]", name, maxsplit=1)[0].rstrip("/")


def _last(name: str) -> str:
    return re.split(r"[/:]", name)[-1] if "/" in name or ":" in name else name


def _stem(name: str) -> str:
    return _EXTENSION.sub("", name) if "." in name else name


def _file(name: str) -> str:
    return _stem(_last(name))


def _digits(name: str) -> str:
    worded = _WORDED.fullmatch(name)
    return worded[1] if worded else name


def parents(name: str) -> Iterator[str]:
    """What a chunk's document may be called, longest first: all before a mark."""
    for mark in reversed([*_BEHIND.finditer(name)]):
        yield name[: mark.start()]


class _Form(NamedTuple):
    """What an id may have besides, or one of two must lack where `both` is empty."""

    shorten: Callable[[str], str] | None
    both: str = ""
    less: str = ""
    more: str = ""
    cure: str = ""

    def keys(self, name: str) -> list[str]:
        """The shorter forms of an id, without itself."""
        if self.shorten is None:
            if not name[-1:].isdigit():
                return []
            above = parents(name)
            return [key for key in above if _CHUNK.fullmatch(name, len(key))]
        key = self.shorten(name)
        return [] if key in {name, ""} else [key]

    def between(self, gold: str, name: str, how: str) -> OtherForm:
        """What is said of two ids; a cure only where it works."""
        works = gold in parents(name) or name in parents(gold)
        return OtherForm(gold, name, how, self.cure if works else "")


LEVEL = "id(level=document)"
"""The matcher that joins chunks with the documents they are of."""

_CASE = "in another case, spacing or number form"
_ENCODING = "in another encoding"
_FORMS = (
    _Form(_parts, both="with other marks between its parts"),
    _Form(_address, both="with another scheme, www. or tracking in its address"),
    _Form(
        _last,
        less="without its folder or prefix",
        more="with a folder or prefix before it",
    ),
    _Form(
        None,
        less="without its chunk's number",
        more="with a chunk's number behind it",
        cure=f"; match='{LEVEL}' (--match '{LEVEL}') joins them",
    ),
    _Form(
        _page,
        less="without what follows ? or #",
        more="with a query or an anchor behind it",
    ),
    _Form(
        _stem,
        both="with another file's ending",
        less="without its file's ending",
        more="with a file's ending behind it",
    ),
    _Form(
        _file,
        less="without its folder and ending",
        more="as the name of a file",
    ),
    _Form(_digits, less="without the word before it", more="with a word before it"),
)


# To see whether there is anything to count, the first ids of some rankings do.
_FIRST = 25
_PROBE = 500
_FEW = 50
_MOST = 200_000
_MARKS = "/\\ #:@|?%'\".+-_=&,;[]()"
# What ids with several forms have, where all have as many marks.
_ODD = re.compile(r"[/\\ \t\r%'\"]|^\d+\.0|\d[eE]\+\d|\.[a-z]\w{0,3}$", re.MULTILINE)
_DIGITS = re.compile(r"^\d+$", re.MULTILINE)


def near_miss_notices(
    run: Run, labels: ColumnLabels, missed: Bools
) -> tuple[Notice, ...]:
    """What is to be said of relevant ids that only another form of id would find."""
    every = missed.nonzero()[0]
    if not len(every):
        return ()
    head, some = getattr(run, "by_query", None), every[:_FEW]
    if head is None:
        # Of a file, what comes first is looked at, whichever queries that are.
        head = run.ids_of(first=_FIRST)
        here = np.array([query in head for query in labels.ids], np.bool_)
        some = every[here[labels.grades.query[every]]]
    wanted = _by_query(labels, some)
    if not _may_differ(head, wanted):
        return ()
    if next(_misses(head, wanted, _PROBE, _FIRST), None) is None:
        return ()
    wanted = _by_query(labels, every[:_MOST])
    return _notices(_misses(run.ids_of(wanted), wanted, _MOST), "ids are", "id is")


def near_queries(queries: Iterable[str], run: Run) -> tuple[Notice, ...]:
    """What is to be said of missing queries that the run has in another form."""
    return _notices(other_forms({*queries}, run.queries()), "queries are", "query is")


def _notices(forms: Iterable[OtherForm], several: str, one: str) -> tuple[Notice, ...]:
    by_form: dict[str, list[OtherForm]] = {}
    for miss in forms:
        cure = miss.cure if several == "ids are" else ""
        by_form.setdefault(miss.how + cure, []).append(miss)
    return tuple(
        Notice(
            "near misses",
            len(misses),
            f"gold {several} not in the run as written, but {how}",
            tuple(f"{m.wanted!r:.40} and {m.found!r:.40}" for m in misses[:3]),
            f"gold {one} not in the run as written, but {how}",
        )
        for how, misses in by_form.items()
    )


def near_miss_hint(run: Run, labels: Labels) -> str | None:
    """How run and gold name documents differently, if that can be seen."""
    wanted = {query: {*row} for query, row in labels.items()}
    miss = next(_misses(run.ids_of(wanted), wanted, _MOST), None)
    return None if miss is None else str(miss)


def _misses(
    rankings: Mapping[str, Iterable[Any]],
    wanted: Mapping[str, set[str]],
    most: int,
    first: int = _MOST,
) -> Iterator[OtherForm]:
    for query, ids in wanted.items():
        if some := [*islice(rankings.get(query, ()), min(most, first))]:
            yield from other_forms(ids, some)
            most -= len(some)


def _by_query(labels: ColumnLabels, rows: Ints) -> dict[str, set[str]]:
    """The names of some labels, by the ids of their queries."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    queries, names = labels.ids, labels.names
    numbers = labels.grades.query[rows].tolist()
    for number, row in zip(numbers, rows.tolist(), strict=True):
        wanted[queries[number]].add(names[row])
    return wanted


def _may_differ(
    rankings: Mapping[str, Iterable[Any]], wanted: Mapping[str, set[str]]
) -> bool:
    """Whether other forms of ids could match, seen without a step for each id."""
    tops = map(islice, map(rankings.get, wanted, repeat(())), repeat(_FIRST))
    names = [*islice(chain.from_iterable(tops), _PROBE)]
    ids = [*chain.from_iterable(wanted.values())]
    try:
        retrieved = "\n".join(names)
        gold = "\n".join(ids)
    except TypeError:
        # Documents have more than an id.
        return True
    both = f"\n{gold}\n{retrieved}"
    if not both.isascii() or "\n0" in both:
        return True
    # Where ids are written in one way, each has as many marks as the others.
    if any(
        gold.count(mark) * len(names) != retrieved.count(mark) * len(ids)
        for mark in filter(both.__contains__, _MARKS)
    ):
        return True
    odd = any(map(both.__contains__, "/\\ \t\r%'\".+"))
    if (odd and _ODD.search(both)) or (
        (_DIGITS.search(gold) is None) != (_DIGITS.search(retrieved) is None)
    ):
        return True
    if (folded := both.lower()) == both and "_" not in both:
        return False
    # Whether any two ids differ in nothing else.
    alike = {*folded.translate(ALIKE).split("\n")}
    return len(alike) < len({*both.split("\n")})
