"""Rankings and gold gathered query by query."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from typing import Any

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.queries import Dataset, Strings
from karat.data.runs import LAST_RANK, Document, Run
from karat.errors import FormatError
from karat.reading.meaning.aliases import IDS, RANKS, RETRIEVED, TEXTS, ask, infer
from karat.reading.meaning.documents import read_columns, read_document, read_scored
from karat.reading.meaning.gold import read_gold
from karat.reading.meaning.ids_or_texts import are_prose, decided, settle
from karat.reading.meaning.order import note_ascending
from karat.reading.meaning.values import (
    is_list,
    is_scores,
    note_joined,
    read_ids,
    read_number,
    show,
    unpack,
)
from karat.reading.source import Notes

# What runs beside a ranking, and whether more or less of it is better.
_NUMBERS = {"retrieved_scores": 1, "retrieved_distances": -1}
_CALLED = {"documents": "relevant", "references": "reference"}
_BESIDE = {"sources", "groups", "subtopics"}
_AS_GIVEN = "ranked in the order given"
_RANKS = (
    f"{{list is {_AS_GIVEN}; its|lists are {_AS_GIVEN}; their}} ranks say otherwise"
)
_ORDER = (
    _RANKS.replace("ranks say", "scores say")
    + " (karat evaluate --order descending goes by them)"
)
_ALONE = (
    "{sample has|samples have} one text where a list is expected: ranks mean little"
)


class Gathered:
    """What has been read so far, by query.

    Attributes:
        mapping: our field name -> theirs, as found.
    """

    def __init__(self, notes: Notes) -> None:
        self.mapping: dict[str, str] = {}
        self._notes = notes
        self._rankings: dict[str, Sequence[str] | list[Document]] = {}
        self._scored: dict[str, dict[str, float]] = {}
        # Of lists of ids, where each has one.
        self._scores: dict[str, list[float]] = {}
        self._bare: list[str] = []
        self._gold: dict[str, dict[str, Any]] = {}
        self._undecided: dict[str, Strings] = {}

    def add_ranking(self, query: str, columns: Mapping[str, Any]) -> None:
        """One query's ranking, from one field or from several that run in parallel."""
        if len(columns) == 1:
            (ours,) = columns
            if ours in _NUMBERS:
                raise FormatError("scores need retrieved documents to go with")
            self._add_column(query, ours, columns[ours])
            return
        lists = [self._listed(f, v) for f, v in columns.items() if f not in _NUMBERS]
        for ours, sign in _NUMBERS.items():
            scores = unpack(columns.get(ours))
            if scores is not None and is_list(scores):
                numbers = [sign * read_number(score, "score") for score in scores]
                lists.append([Document(score=number) for number in numbers])
                break
        if len({len(documents) for documents in lists}) > 1:
            sizes = ", ".join(str(len(documents)) for documents in lists)
            raise FormatError(f"{', '.join(columns)} must be equally long, got {sizes}")
        ranking = [_merged(parts) for parts in zip(*lists, strict=True)]
        self._put(query, ranking)

    def _add_column(self, query: str, ours: str, value: Any) -> None:
        value = unpack(value)
        if isinstance(value, Mapping):
            if is_scores(value):
                self._add_scores(query, value)
            elif (inner := _ranked_field(tuple(value))) is not None:
                self._add_column(query, inner[0], value[inner[1]])
            elif ask(value, IDS) is not None or ask(value, TEXTS) is not None:
                self._put(query, [read_document(value, self._notes)])
            else:
                self._add_scores(query, value)
            return
        if not is_list(value):
            if ours == "output" or not isinstance(value, str):
                raise FormatError(
                    "the ranking must be a list, or an object with a list 'retrieved', "
                    f"got {show(value)}"
                )
            if ours != "retrieved_texts":
                note_joined(value, "ranking", self._notes)
            else:
                self._notes.notice("one text", _ALONE, query)
            value = [value]
        self._add_list(query, ours, value)

    def _add_list(self, query: str, ours: str, value: Sequence[Any]) -> None:
        kinds = {*map(type, value)}
        columns = read_columns(value) if kinds == {dict} else None
        if columns is not None:
            self._rankings[query], self._scores[query] = columns
            self._note_order(query, columns[1])
        elif ours != "retrieved_texts" and kinds <= {str, int}:
            self._rankings[query] = read_ids(value, "document id", self._notes)
            if ours != "retrieved_ids" and int not in kinds:
                self._bare.append(query)
        elif kinds == {str}:
            self._rankings[query] = [Document(None, text) for text in value]
        else:
            self._put(query, self._listed(ours, value))

    def _add_scores(self, query: str, scores: Mapping[Any, Any]) -> None:
        self._scored[query] = read_scored(scores, "score", self._notes)
        self._rankings[query] = ()

    def _listed(self, ours: str, value: Any) -> list[Document]:
        value = unpack(value)
        if not is_list(value):
            value = [value]
        documents = [
            Document(text=entry)
            if ours == "retrieved_texts" and isinstance(entry, str)
            else read_document(entry, self._notes)
            for entry in value
        ]
        if value and isinstance(value[0], Mapping) and ask(value[0], RANKS) is not None:
            ranks = [ask(e, RANKS) for e in value if isinstance(e, Mapping)]
            return self._ranked(documents, ranks)
        return documents

    def _ranked(self, documents: list[Document], ranks: list[Any]) -> list[Document]:
        """Documents that say their ranks: gaps are kept, another order is told."""
        numbers = (rank for rank in ranks if isinstance(rank, int | float))
        known = [*filter(isfinite, numbers)]
        if known != sorted(known):
            self._notes.notice("order", _RANKS)
        elif len(known) == len(ranks) == len({*map(int, known)}):
            shift = int(known[0] == 0)
            if len(known) < known[-1] + shift <= LAST_RANK:
                pairs = zip(documents, known, strict=True)
                return [replace(d, rank=int(rank) + shift) for d, rank in pairs]
        return documents

    def _put(self, query: str, ranking: list[Document]) -> None:
        self._rankings[query] = ranking
        self._note_order(query, [d.score for d in ranking if d.score is not None])

    def _note_order(self, query: str, scores: list[float]) -> None:
        if scores != sorted(scores, reverse=True):
            self._notes.notice("order", _ORDER, query)

    def add_gold(self, query: str, ours: str, theirs: str, value: object) -> None:
        """One field of one query's gold."""
        for kind, part in read_gold(ours, value, self._notes).items():
            if kind == "strings":
                texts = "answers" if ours == "ground_truth" else "passages"
                strings = self._undecided.setdefault(theirs, Strings(texts, theirs, {}))
                strings.by_query[query] = part
                continue
            rows = self._gold.setdefault(kind, {})
            if isinstance(part, dict):
                rows.setdefault(query, {}).update(part)
            elif isinstance(part, tuple):
                rows[query] = rows.get(query, ()) + part
            else:
                rows[query] = part
            if theirs and kind not in _BESIDE:
                self.mapping.setdefault(_CALLED.get(kind, kind), theirs)

    def finish(self, name: str, order: Sequence[str]) -> Dataset:
        """The run and the gold, where there are any.

        Args:
            name: how reports call them.
            order: all queries, in input order.
        """
        strings = [*self._undecided.values()]
        gold, kept = None, None
        if self._gold or strings:
            gold = Gold(**self._gold, order=tuple(order), name=name)
        if gold is not None and strings:
            kept = (gold, strings)
            gold, found = decided(gold, strings)
            self.mapping = {**self.mapping, **found, **self.mapping}
        run, bare = self._run(name)
        loaded = Dataset(run, gold, mapping=self.mapping, bare=bare, strings=kept)
        if run is None or gold is None:
            return loaded
        return settle(loaded, loaded)[0]

    def _run(self, name: str) -> tuple[Run | None, bool]:
        """The run, and whether nothing but strings says what it holds."""
        if not self._rankings:
            return None, False
        if len(self._scored) == len(self._rankings):
            numbers = map(dict.values, self._scored.values())
            note_ascending(self._scored, numbers, self._notes)
            return ScoredRun(self._scored, name), False
        rankings = dict(self._rankings)
        for query, scores in self._scored.items():
            # Where some rankings are lists, all are: best score first, as ties go.
            pairs = sorted(((s, d) for d, s in scores.items()), reverse=True)
            rankings[query] = [Document(id=d, score=s) for s, d in pairs]
        bare = len(self._bare) == len(rankings)
        if self._bare and are_prose(rankings[query] for query in self._bare):
            for query in self._bare:
                rankings[query] = [Document(text=str(text)) for text in rankings[query]]
        ids: dict[str, Any] = {
            query: ranking
            for query, ranking in rankings.items()
            if not ranking or not isinstance(ranking[0], Document)
        }
        ranked = RankedRun(ids, name, self._scores)
        if len(ids) == len(rankings):
            return ranked, bare
        listed: dict[str, Any] = {**rankings, **dict(ranked.rankings(Policies()))}
        return DocumentRun(listed, name), bare


@lru_cache(maxsize=256)
def _ranked_field(names: tuple[str, ...]) -> tuple[str, str] | None:
    """The field of an output that holds the ranking."""
    found = infer(map(str, names)).items()
    return next((field for field in found if field[0] in RETRIEVED), None)


def _merged(parts: Sequence[Document]) -> Document:
    """One document from what several fields say of it."""
    known: dict[str, Any] = {}
    for part in parts[::-1]:
        values = {name: getattr(part, name) for name in Document.__slots__}
        known |= {name: v for name, v in values.items() if v is not None and v != {}}
    return Document(**known)
