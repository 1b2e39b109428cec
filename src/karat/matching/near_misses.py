"""Gold ids that the run has in another form: other case, a path, a chunk's number."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.gold import ColumnLabels
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.runs import Document, Labels, Notice, Run

# To see whether there is anything to count, the first ids of some rankings do.
_FIRST = 25
_PROBE = 500
_FEW = 50
_IN_MEMORY = (DocumentRun, RankedRun, ScoredRun)
_MOST = 200_000
_CHUNK = re.compile(
    r"(?:[#?]+[a-z]*=?|[:@|]+|[-_]{1,2}(?:chunk|part|p|passage)[-_]?)\d+$"
)
# What only ids with several forms have: folders, numbers of chunks, blanks, zeros. To
# look for the marks first is many times quicker than to look for the forms.
_MARKS = (*"/\\ \t\r#:@|?%'\".+", "\n0")
_WORDS = {"k": ("chunk",), "p": ("part", "passage", "-p", "_p")}
_ODD = re.compile(
    r"[/\\\\ \t\r]|[:@|]\d|[#?][a-z]*=?\d|(?:chunk|part|passage|[-_]p)[-_]?\d"
    r"|^0\d|^\d+\.0|%[0-9A-Fa-f]{2}|\d[eE]\+\d|['\"]|\.[a-z]\w{0,3}$",
    re.MULTILINE,
)
_PARTS = re.compile(r"[^\W\d_]+|\d+")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,3}$")
_WORDED = re.compile(r"[A-Za-z]{2,}[-_:/ ]?0*(\d+)")
_DIGITS = re.compile(r"^\d+$", re.MULTILINE)
# Written now so, now so.
_ALIKE = str.maketrans("\\_", "/-")
# What spreadsheets make of long numbers.
_POWERS = re.compile(r"\d(?:\.\d+)?e\+\d{1,2}")
_ZEROS = re.compile(r"0*(\d+)(?:\.0+)?")


class OtherForm(NamedTuple):
    """A gold id, the same id as it was found, and how the two differ."""

    wanted: str
    found: str
    how: str

    def __str__(self) -> str:
        return f"{self.wanted!r:.60} is there as {self.found!r:.60}, {self.how}"


def near_miss_notices(
    run: Run, labels: ColumnLabels, missed: Bools
) -> tuple[Notice, ...]:
    """What is to be said of gold ids that only another form of id would find.

    Args:
        run: what was retrieved.
        labels: what was looked for.
        missed: which of the labels are relevant and were not found.
    """
    every = missed.nonzero()[0]
    if not len(every):
        return ()
    queries, names, query_of = labels.ids, labels.names, labels.grades.query

    def pairs(rows: Ints) -> tuple[list[str], list[str]]:
        number = query_of[rows].tolist()
        return [queries[n] for n in number], [names[row] for row in rows.tolist()]

    if isinstance(run, _IN_MEMORY):
        some, head = pairs(every[:_FEW]), run
    else:
        # Of a file, what comes first is looked at, whichever queries that are.
        head = RankedRun(run.ids_of(_All(), first=_FIRST))
        here = np.array([query in head.by_query for query in queries], np.bool_)
        some = pairs(every[here[query_of[every]]])
    if not _may_differ(head, *some):
        return ()
    if next(_misses(head, _by_query(*some), _PROBE, _FIRST), None) is None:
        return ()
    by_form: dict[str, list[OtherForm]] = {}
    for miss in _misses(run, _by_query(*pairs(every[:_MOST])), _MOST):
        by_form.setdefault(miss.how, []).append(miss)
    return tuple(
        Notice(
            "near misses",
            len(misses),
            f"gold ids are not in the run as they are written, but {how}",
            tuple(f"{m.wanted!r:.40} and {m.found!r:.40}" for m in misses[:3]),
            f"gold id is not in the run as it is written, but {how}",
        )
        for how, misses in by_form.items()
    )


class _All:
    """Holds every id."""

    def __contains__(self, name: object) -> bool:
        return True


def near_miss_hint(run: Run, labels: Labels) -> str | None:
    """How run and gold name documents differently, if that can be seen."""
    wanted = {query: {*row} for query, row in labels.items()}
    miss = next(_misses(run, wanted, _MOST), None)
    return None if miss is None else str(miss)


def _misses(
    run: Run, wanted: Mapping[str, set[str]], most: int, first: int = _MOST
) -> Iterator[OtherForm]:
    rankings: Mapping[str, Any]
    rankings = run.by_query if isinstance(run, _IN_MEMORY) else run.ids_of(wanted)
    for query, ids in wanted.items():
        if not ids or most <= 0:
            continue
        ranking = rankings.get(query, ())
        some = [*islice(iter(ranking), min(most, first))]
        yield from other_forms(ids, some)
        most -= len(some)


def _by_query(queries: list[str], wanted: list[str]) -> dict[str, set[str]]:
    ids: dict[str, set[str]] = {}
    for query, name in zip(queries, wanted, strict=True):
        ids.setdefault(query, set()).add(name)
    return ids


def _may_differ(run: Any, queries: list[str], wanted: list[str]) -> bool:
    """Whether ids are such that another form of them could match, seen at a glance.

    Most runs miss some of their gold, and most ids have one form: all that is looked at
    is looked at in one piece, without a step per id.
    """
    rankings = map(run.by_query.get, dict.fromkeys(queries), repeat(()))
    some = chain.from_iterable(map(islice, rankings, repeat(_FIRST)))
    try:
        retrieved = "\n".join(islice(some, _PROBE))
        gold = "\n".join(wanted)
    except TypeError:
        # Documents have more than an id.
        return True
    both = f"\n{gold}\n{retrieved}"
    if (
        not both.isascii()
        or (_is_marked(both) and _ODD.search(both))
        or (_DIGITS.search(gold) is None) != (_DIGITS.search(retrieved) is None)
    ):
        return True
    if both == both.lower() and "_" not in both:
        return False
    folded = {*gold.lower().translate(_ALIKE).split("\n")}
    return not folded.isdisjoint(retrieved.lower().translate(_ALIKE).split("\n"))


def _is_marked(ids: str) -> bool:
    return any(map(ids.__contains__, _MARKS)) or any(
        letter in ids and any(map(ids.__contains__, words))
        for letter, words in _WORDS.items()
    )


def other_forms(wanted: set[str], ranking: Iterable[Any]) -> Iterator[OtherForm]:
    """The gold ids that are there in another form.

    Args:
        wanted: gold ids.
        ranking: ids, or documents.
    """
    plain = {_plain(name): name for name in wanted}
    parts = {_parts(name): name for name in wanted}
    longer = [
        ({form(name): name for name in wanted if form(name) != name}, form, less, more)
        for form, less, more in _FORMS
    ]
    rest = {*wanted}
    for entry in ranking:
        name = entry.id if isinstance(entry, Document) else entry
        if isinstance(name, str):
            found = [
                (plain.get(_plain(name)), "in another case, spacing or number form"),
                (parts.get(_parts(name)), "with other marks between its parts"),
            ]
            for golds, form, less, more in longer:
                found.append((golds.get(name), less))
                found.append((_among(form(name), wanted, name), more))
            for gold, how in found:
                if gold in rest:
                    rest.discard(gold)
                    yield OtherForm(gold, name, how)
        if isinstance(entry, Document):
            for field, value in _fields(entry):
                if value in rest:
                    rest.discard(value)
                    how = f"in another field (--map document={field})"
                    yield OtherForm(value, name or str(entry.text), how)


def _fields(document: Document) -> Iterator[tuple[str, str]]:
    for name, value in document.metadata.items():
        if isinstance(value, str):
            yield f"metadata.{name}", value
    if document.source is not None and document.source not in (
        document.metadata.values()
    ):
        yield "source", document.source


def _among(form: str, wanted: set[str], name: str) -> str | None:
    return form if form != name and form in wanted else None


def _plain(name: str) -> str:
    name = name if name.isascii() else unicodedata.normalize("NFKC", name)
    if "%" in name:
        from urllib.parse import unquote  # noqa: PLC0415  few ids need it

        name = unquote(name)
    name = " ".join(name.casefold().translate(_ALIKE).split()).strip("\"'")
    name = name.removeprefix("./").strip("/")
    if "e+" in name and _POWERS.fullmatch(name):
        name = f"{float(name):.0f}"
    number = _ZEROS.fullmatch(name) if name[:1].isdigit() else None
    return number[1] if number else name


def _parts(name: str) -> tuple[str, ...]:
    """The words and numbers of an id.

    Example:
        >>> _parts("Doc-007"), _parts("doc_7")
        (('doc', '7'), ('doc', '7'))
    """
    return tuple(word.lstrip("0") or "0" for word in _PARTS.findall(name.casefold()))


def _last(name: str) -> str:
    if "/" not in name and "\\" not in name:
        return name
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _whole(name: str) -> str:
    return _CHUNK.sub("", name) if name[-1:].isdigit() else name


def _stem(name: str) -> str:
    return _EXTENSION.sub("", name) if "." in name else name


def _file(name: str) -> str:
    return _stem(_last(name))


def _digits(name: str) -> str:
    found = _WORDED.fullmatch(name)
    return found[1] if found else name


_FORMS: tuple[tuple[Callable[[str], str], str, str], ...] = (
    (_last, "without its folder", "with a folder before it"),
    (_whole, "without its chunk's number", "with a chunk's number behind it"),
    (_stem, "without its file's ending", "with a file's ending behind it"),
    (_file, "without its folder and ending", "as the name of a file"),
    (_digits, "without the word before it", "with a word before it"),
)
"""What an id may have besides, and what is said if the run's lacks or has it."""
