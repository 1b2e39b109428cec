"""TREC's two formats as karat's formats: runs, and qrels as their gold."""

from collections.abc import Mapping
from typing import BinaryIO

from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Labels, Notice, Run
from karat.errors import FormatError
from karat.reading.columnar.trec import (
    TrecRun,
    read_qrels,
    read_sources,
    read_subtopics,
)
from karat.reading.format import LOOSE, Format
from karat.reading.meaning.aliases import known_as
from karat.reading.meaning.order import note_contradictions
from karat.reading.meaning.output_records import scores_say_the_order
from karat.reading.streams import Source, open_binary, read_lines

_LOOK = 5
_HEAD = 1 << 16
_RUN_WORDS = 6
_QRELS_WORDS = 4


class TrecRuns(Format):
    """A TREC run: query, Q0, document, rank, score and tag on each line."""

    name = "trec_run"
    extensions = (".run", ".trec")
    shares = (".tsv", ".tab", *LOOSE)

    def sniff(self, head: bytes, name: str) -> bool:
        """Six words a line, the fifth a number."""
        del name
        return _lines_have(head, _RUN_WORDS, number=4)

    def read(self, source: Source) -> Dataset:
        """A run that is read when it is scored."""
        if source.role in {"gold", "samples"}:
            raise source.mistaken(
                "is a TREC run", f"karat evaluate {source.path} --gold GOLD"
            )
        data: str | bytes = source.path
        if source.replay is not None:
            data = read_lines(source.replay)
        run = TrecRun(data, source.name, path=source.path)
        with open_binary(data) as stream:
            _note_ranks(stream.read(_HEAD), source)
        return Dataset(run=run, format=self.name, notices=source.notes.notices())

    def write_run(self, run: Run, stream: BinaryIO) -> None:
        """The rankings."""
        write_run(run, stream)


class TrecQrels(Format):
    """TREC qrels: query, iteration, document and grade on each line."""

    name = "trec_qrels"
    holds_sources = True
    extensions = (".qrels", ".qrel")
    shares = (".tsv", ".tab", *LOOSE)

    def sniff(self, head: bytes, name: str) -> bool:
        """Four words a line, the fourth a number."""
        del name
        return _lines_have(head, _QRELS_WORDS, number=3)

    def read(self, source: Source) -> Dataset:
        """The grades."""
        if source.role in {"run", "samples"}:
            raise source.mistaken(
                "holds TREC qrels", f"karat evaluate RUN --gold {source.path}"
            )
        with source.open() as stream:
            data = read_lines(stream)
        if topics := read_subtopics(data, source.path):
            return _diverse(topics, source.name, self.name)
        labels = read_qrels(data, source.path, source.notes)
        gold = Gold(labels, sources=read_sources(data), name=source.name)
        return Dataset(gold=gold, format=self.name)

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:
        """The grades."""
        write_qrels(gold.documents, stream, gold.sources, gold.subtopics)


def _diverse(
    topics: Mapping[str, Mapping[str, Mapping[str, float]]], name: str, kind: str
) -> Dataset:
    """Gold by subtopic: of each document the best grade counts for the whole query."""
    labels = {
        query: {document: max(grades.values()) for document, grades in row.items()}
        for query, row in topics.items()
    }
    best = "labelled by subtopic; elsewhere the best grade of a document counts"
    notice = Notice(
        "subtopics", len(labels), f"queries are {best}", one=f"query is {best}"
    )
    return Dataset(
        gold=Gold(labels, subtopics=topics, name=name), format=kind, notices=(notice,)
    )


def write_run(run: Run, stream: BinaryIO) -> None:
    """Write a run as a TREC file.

    Where scores do not say the order, falling ones are written, so that it is kept.

    Raises:
        FormatError: an id is missing, or such that a TREC file cannot hold it.
    """
    tag = "_".join(run.name.split()).encode(errors="replace") or b"run"
    rankings = dict(run.rankings(Policies()))
    scored = all(map(scores_say_the_order, rankings.values()))
    for query, documents in rankings.items():
        for rank, document in enumerate(documents, 1):
            score = document.score if scored else float(len(documents) - rank + 1)
            ids = _word(query, query), _word(document.id, query)
            stream.write(b"%b Q0 %b %d %a %b\n" % (*ids, rank, score, tag))


def write_qrels(
    labels: Labels,
    stream: BinaryIO,
    sources: Mapping[str, Mapping[str, str]] | None = None,
    subtopics: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
) -> None:
    """Write judgements as qrels; a judge signs in the column called iteration.

    The same column names the subtopic of judgements that are made for one.

    Raises:
        FormatError: an id is such that a TREC file cannot hold it.
    """
    for query, grades in labels.items():
        for document, grade in grades.items():
            ids = _word(query, query), _word(document, query)
            who = (sources or {}).get(query, {}).get(document, "0")
            grades_of = (subtopics or {}).get(query, {}).get(document, {who: grade})
            for name, worth in grades_of.items():
                value = int(worth) if float(worth).is_integer() else float(worth)
                line = (ids[0], _word(name, query), ids[1], value)
                stream.write(b"%b %b %b %a\n" % line)


def _note_ranks(head: bytes, source: Source) -> None:
    """Say so if the ranks on the first lines contradict the scores."""
    ranks: dict[str, list[tuple[float, float]]] = {}
    lines = head.splitlines()
    for line in lines[:-1] if len(head) == _HEAD else lines:
        words = line.split()
        if len(words) == _RUN_WORDS and all(map(_is_number, words[3:5])):
            query = words[0].decode("utf-8", "replace")
            ranks.setdefault(query, []).append((float(words[3]), float(words[4])))
    note_contradictions(ranks, source.notes)


def _word(name: str | None, query: str) -> bytes:
    """The id in bytes, if it can stand in a line and be read again."""
    word = b"" if name is None else name.encode("utf-8", "replace")
    comment = name == query and word.startswith(b"#")
    if word.split() != [word] or b"\0" in word or word.decode() != name or comment:
        problem = f"a TREC file cannot hold the id {name!r}"
        hint = "ids must have no white space, and queries not begin with '#'"
        raise FormatError(problem, query=query, hint=hint)
    return word


def _lines_have(head: bytes, words: int, number: int) -> bool:
    """Whether most of the first lines have so many words, one of them a number."""
    lines = head.removeprefix(b"\xef\xbb\xbf").splitlines()[:_LOOK]
    # Ids with spaces make as many words of a table, but it names its columns first.
    names = lines[0].decode("utf-8", "replace").split("\t") if lines else []
    if sum(known_as(name) is not None for name in names) > 1:
        return False
    split = [found for line in lines if (found := line.split())]
    fit = [
        found for found in split if len(found) == words and _is_number(found[number])
    ]
    return bool(fit) and len(fit) * 2 >= len(split)


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


RUNS = TrecRuns()
QRELS = TrecQrels()
