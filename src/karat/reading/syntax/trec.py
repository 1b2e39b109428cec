"""TREC's two formats as karat's formats: runs, and qrels as their gold."""

from typing import BinaryIO

from karat.data.gold import Gold
from karat.data.memory_runs import RankedRun
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.reading.columnar.trec_files import (
    TrecRun,
    read_qrels,
    read_sources,
    write_qrels,
    write_run,
)
from karat.reading.format import Format, Source
from karat.reading.meaning.fields import known_as
from karat.reading.meaning.native import scores_say_the_order

__all__ = ["TrecQrels", "TrecRuns"]

_LOOK = 5
_RUN_WORDS = 6
_QRELS_WORDS = 4


class TrecRuns(Format):
    """A TREC run: query, Q0, document, rank, score and tag on each line."""

    name = "trec_run"
    extensions = (".run", ".trec")

    def sniff(self, head: bytes, name: str) -> bool:
        """Six words a line, the fifth a number."""
        del name
        return _lines_have(head, _RUN_WORDS, number=4)

    def read(self, source: Source) -> Dataset:
        """A run that is read when it is scored."""
        if source.role in {"gold", "samples"}:
            raise source.mistaken("is a TREC run")
        data = source.path if source.replay is None else source.read()
        run = TrecRun(data, source.name, path=source.path)
        return Dataset(run=run, format=self.name)

    def write_run(self, run: Run, stream: BinaryIO) -> None:
        """The rankings; where scores do not say the order, falling ones are written."""
        rankings = dict(run.rankings(Policies()))
        if not all(map(scores_say_the_order, rankings.values())):
            ids = {query: [str(d.id) for d in r] for query, r in rankings.items()}
            run = RankedRun(ids, run.name)
        write_run(run, stream)


class TrecQrels(Format):
    """TREC qrels: query, iteration, document and grade on each line."""

    name = "trec_qrels"
    holds_sources = True
    extensions = (".qrels", ".qrel")

    def sniff(self, head: bytes, name: str) -> bool:
        """Four words a line, the fourth a number."""
        del name
        return _lines_have(head, _QRELS_WORDS, number=3)

    def read(self, source: Source) -> Dataset:
        """The grades."""
        if source.role in {"run", "samples"}:
            raise source.mistaken("holds TREC qrels")
        with source.open() as stream:
            data = stream.read()
        labels = read_qrels(data, source.path)
        gold = Gold(labels, sources=read_sources(data), name=source.name)
        return Dataset(gold=gold, format=self.name)

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:
        """The grades."""
        write_qrels(gold.documents, stream, gold.sources)


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
