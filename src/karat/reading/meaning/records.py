"""Records: what each query retrieved and should have, gathered from samples."""

from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.queries import Dataset, Query
from karat.data.runs import LAST_RANK, Document, Latency, Retrieval, Run
from karat.errors import DataError, FormatError, MissingFieldError
from karat.reading.meaning.aliases import (
    FIELDS,
    GOLD,
    IDS,
    LABELLED,
    RANKS,
    RETRIEVED,
    TEXTS,
    WORDINGS,
    ask,
    closest,
    generated,
    infer,
    known_as,
    told,
)
from karat.reading.meaning.ambiguity import (
    Strings,
    Undecided,
    are_prose,
    decided,
    note_ascending,
    settle,
)
from karat.reading.meaning.documents import (
    read_columns,
    read_document,
    read_question,
    read_scored,
)
from karat.reading.meaning.gold import note_numbers, read_gold, with_grades
from karat.reading.meaning.mapping import (
    INSIDE,
    list_with,
    names_inside,
    paths_to,
    rename_inside,
    value_at,
)
from karat.reading.meaning.values import (
    is_list,
    is_scores,
    note_joined,
    read_cutoff,
    read_id,
    read_ids,
    read_number,
    read_tags,
    show,
    unpack,
)
from karat.reading.source import Notes, Source, placed

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
        """The run and the gold, where there are any."""
        strings = [*self._undecided.values()]
        gold, undecided = None, None
        if self._gold or strings:
            kinds: dict[str, Any] = self._gold
            gold = Gold(**kinds, order=tuple(order), name=name)
        if gold is not None and strings:
            undecided = (gold, strings)
            gold, found = decided(gold, strings)
            self.mapping = {**self.mapping, **found, **self.mapping}
        run, bare = self._run(name)
        loaded = Undecided(
            run, gold, mapping=self.mapping, bare=bare, strings=undecided
        )
        return loaded if run is None or gold is None else settle(loaded, loaded)[0]

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


_NESTED = ("k", "tags")
_SETTINGS = ("eval_config", "evalConfig")
_SHOWN = 12
# What is suggested to whoever has none: the names for what most have.
_RETRIEVED = ("retrieved", "retrieved_ids")
_GOLD = ("relevant", "passages", "answers", "reference")


class _Plan(NamedTuple):
    """How records with one set of fields are read: pairs of our name and theirs."""

    identity: str | None
    ranking: list[tuple[str, str]]
    gold: list[tuple[str, str]]
    grades: str | None
    facts: list[tuple[str, str]]
    rest: list[str]


class Samples:
    """Reads records one after the other.

    Records need not have the same fields; how a set of fields is read is worked out
    once.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._gathered = Gathered(source.notes)
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._places: dict[str, tuple[int, int | None]] = {}
        self._queries: dict[str, Query] = {}
        self._times: dict[str, float] = {}
        self._failures: dict[str, str] = {}
        self._names: dict[str, None] = {}
        self._inner_names: dict[str, None] = {}
        self._told: set[str] = set()
        told = source.mapping.items()
        self._inside = {ours: theirs for ours, theirs in told if ours in INSIDE}
        self._count = 0
        self._first: object = None

    def take(self, record: object, line: int | None = None) -> None:
        """Read one record; a problem goes to the source's notes."""
        self._count += 1
        self._first = record if self._count == 1 else self._first
        try:
            if not isinstance(record, Mapping):
                raise FormatError(f"must be an object with fields, got {show(record)}")
            plan = self._plan(record)
            query = self._name(record, plan, line)
        except DataError as error:
            self._problem(error, line, None)
            return
        try:
            self._read(query, record, plan)
        except DataError as error:
            self._problem(error, line, query)

    def add(
        self, query: object, value: Any, *, gold: bool, text: object = None
    ) -> None:
        """Read one query that is not a record, such as an entry of a mapping."""
        name: str | None = None
        self._count += 1
        try:
            name = read_id(query, "query id", self._source.notes)
            self._claim(name, None)
            value = self._our_names_inside(value)
            if not gold and isinstance(unpack(value), str):
                raise FormatError(
                    f"the ranking must be a list of documents, got {show(value)}",
                    hint="one query? write [['a', 'b']]; one document? write it in a "
                    "list",
                )
            # Arrays of NumPy, Arrow and pandas are lists too.
            value = value if isinstance(value, str | AbstractSet) else unpack(value)
            if not isinstance(value, str | Mapping | AbstractSet) and not is_list(
                value
            ):
                raise FormatError(
                    "must have a list of documents, or an object of document and "
                    f"number, got {show(value)}"
                )
            if gold:
                self._gathered.add_gold(name, "gold", "", value)
            else:
                self._gathered.add_ranking(name, {"retrieved": value})
        except DataError as error:
            self._problem(error, None, name)
        if name is not None and isinstance(text, str):
            self._queries[name] = Query(name, text)

    def finish(self, format: str) -> Dataset:
        """Everything that was read, as one."""
        source = self._source
        loaded = self._gathered.finish(source.name, list(self._places))
        run, gold = loaded.run, loaded.gold
        if self._count and (lacking := self._lacking(source.mapping)):
            source.notes.problem(lacking)
        if run is not None and (self._times or self._failures):
            latency = Latency(self._times) if self._times else None
            run.retrieval = Retrieval(latency, self._failures)
        if source.role == "queries":
            run = gold = None
        elif run is None and source.role != "gold":
            if gold is None or source.role is not None:
                self._miss("retrieved documents", RETRIEVED, _RETRIEVED)
        elif gold is None and source.role in {"gold", "samples"}:
            self._miss("gold", GOLD, _GOLD)
        return replace(
            loaded,
            run=run,
            gold=gold,
            queries=self._queries,
            format=format,
            notices=source.notes.notices(),
        )

    def _lacking(self, names: Mapping[str, str]) -> MissingFieldError | None:
        """A field that the user named and no record has, if there is one."""
        for ours, theirs in names.items():
            if theirs not in self._told and ours not in self._source.optional:
                problem = f"no record has the field {theirs!r}; {self._found()}"
                return self._source.lacks(theirs, problem)
        return None

    def _miss(self, what: str, ours: frozenset[str], usual: tuple[str, ...]) -> None:
        """Say that nothing of a kind was found, unless it is known why already."""
        source = self._source
        if source.notes.problems:
            return
        there = infer(self._names, source.role, source.mapping)
        empty = next((theirs for f, theirs in there.items() if f in ours), None)
        hint = None
        if self._count == 0:
            problem = "holds no samples: it is empty"
        elif empty is not None:
            problem = f"no {what}: {empty!r} is empty in every sample"
        else:
            problem = f"no field holds {what}"
            problem += f"; {self._found()}" if self._names else ""
            rows = {"score", "rank", "grade"} & {*map(known_as, self._names)}
            hint = closest(("document",) if rows else usual, self._names)
            if inside := next(paths_to(self._first, ours), None):
                hint = told(usual[0], inside)
            if ours == GOLD and "response" in there:
                hint = generated(there["response"])
        source.notes.problem(source.error(problem, hint=hint))

    def _found(self) -> str:
        names = [str(name)[:40] for name in (*self._names, *self._inner_names)]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"fields found: {', '.join(names[:_SHOWN]) or 'none'}{more}"

    def _problem(self, error: DataError, line: int | None, query: str | None) -> None:
        if self._inner_names and (lacking := self._lacking(self._inside)):
            # What is wrong with the documents is that they are called otherwise.
            raise lacking
        if line is None and query is None:
            error.problem = f"sample {self._count}: {error.problem}"
        self._source.notes.problem(
            placed(error, path=self._source.path, line=line, query=query)
        )

    def _name(self, record: Mapping[Any, Any], plan: _Plan, line: int | None) -> str:
        value = None if plan.identity is None else self._at(record, plan.identity)
        if value is not None:
            query = read_id(value, f"{plan.identity}", self._source.notes)
            self._gathered.mapping.setdefault("id", str(plan.identity))
        elif plan.identity is not None:
            raise FormatError(f"{plan.identity} is empty")
        elif "id" in self._gathered.mapping:
            theirs = self._gathered.mapping["id"]
            raise FormatError(f"has no {theirs!r}, which earlier samples have")
        else:
            query = str(self._count - 1)
            what = "{sample|samples} without an id, numbered from 0"
            self._source.notes.notice("numbered", what)
        self._claim(query, line)
        return query

    def _claim(self, query: str, line: int | None) -> None:
        if query in self._places:
            number, first = self._places[query]
            place = f"sample {number}" if first is None else f"line {first}"
            raise FormatError(
                f"query id {query[:60]!r} occurs twice, first in {place}",
                hint="a sample is one query: --by FIELD splits several systems in one "
                "file, --map id=FIELD names ids that are each there once",
            )
        self._places[query] = (self._count, line)

    def _plan(self, record: Mapping[Any, Any]) -> _Plan:
        keys = tuple(record)
        if keys not in self._plans:
            names = [str(key) for key in keys]
            self._names.update(dict.fromkeys(names))
            mapping = self._source.mapping_for(names)
            fields = infer(names, self._source.role, mapping)
            for ours, theirs in mapping.items():
                if theirs in names:
                    self._told.add(theirs)
                elif theirs.partition(".")[0] not in names:
                    fields.pop(ours, None)
            if not RETRIEVED & fields.keys() and "document" in self._inside:
                holder = list_with(record, self._inside["document"])
                fields |= {"retrieved": holder} if holder else {}
            kept = {f: t for f, t in fields.items() if f in _SAMPLE}
            self._plans[keys] = _plan_of(kept, names)
        return self._plans[keys]

    def _read(self, query: str, record: Mapping[Any, Any], plan: _Plan) -> None:
        gathered = self._gathered
        columns: dict[str, Any] = {}
        for ours, theirs in plan.ranking:
            value = self._our_names_inside(self._at(record, theirs))
            if value is not None:
                columns[ours] = value
                known = "retrieved" if ours == "output" else ours
                gathered.mapping.setdefault(known, theirs)
        if columns:
            gathered.add_ranking(query, columns)
        grades = None if plan.grades is None else self._at(record, plan.grades)
        for ours, theirs in plan.gold:
            value = self._our_names_inside(self._at(record, theirs))
            if theirs in WORDINGS and is_list(wordings := unpack(value)):
                value = next(iter(wordings), None)
            if value is not None and ours in LABELLED:
                if grades is not None:
                    value = with_grades(value, grades)
                others = ((name, record.get(name)) for name in plan.rest)
                note_numbers(value, others, self._source.notes)
            if value is not None:
                gathered.add_gold(query, ours, theirs, value)
        if plan.facts or plan.rest:
            self._queries[query] = self._facts(query, plan, record)

    def _at(self, record: Mapping[Any, Any], theirs: str) -> Any:
        """What a field holds, or what lies at the end of a path."""
        value = record.get(theirs)
        if value is None and "." in theirs:
            value = value_at(record, theirs)
            self._told |= {theirs} if value is not None else set()
        return value

    def _our_names_inside(self, value: Any) -> Any:
        """A ranking or gold, with fields of its documents under our names."""
        if not self._inside or value is None:
            return value
        self._inner_names.update(dict.fromkeys(names_inside(value)))
        value, found = rename_inside(value, self._inside)
        self._told |= {*found.values()}
        self._gathered.mapping.update(found)
        return value

    def _facts(self, query: str, plan: _Plan, record: Mapping[Any, Any]) -> Query:
        facts: dict[str, Any] = {}
        for ours, theirs in plan.facts:
            value = self._at(record, theirs)
            if value is not None and ours not in facts:
                facts[ours] = value
                if ours != "metadata":
                    self._gathered.mapping.setdefault(ours, theirs)
        if "latency_ms" in facts:
            self._times[query] = read_number(facts["latency_ms"], "latency_ms")
        if "failure" in facts:
            self._failures[query] = str(facts["failure"])
        given = unpack(facts.get("metadata", {}))
        metadata = given if isinstance(given, Mapping) else {"metadata": given}
        metadata = {name: v for name, v in metadata.items() if name not in _NESTED}
        metadata |= {name: record.get(name) for name in plan.rest}
        if "response" in facts:
            metadata["response"] = facts["response"]
        return Query(
            query,
            text=read_question(facts.get("query")),
            k=read_cutoff(facts["k"]) if "k" in facts else None,
            tags=read_tags(facts["tags"]) if "tags" in facts else (),
            metadata=metadata,
        )


_RANKING = RETRIEVED | {"retrieved_scores", "retrieved_distances"}
_SAMPLE = FIELDS.keys() - {"document", "score", "rank", "grade", "text"}


def _plan_of(fields: Mapping[str, str], names: Sequence[str]) -> _Plan:
    """How records are read: each of their fields by what it is."""
    used = {t.partition(".")[0] for t in fields.values()} | {*fields.values()}
    rest = [name for name in names if name not in used]
    plan = _Plan(fields.get("id"), [], [], fields.get("relevant_grades"), [], rest)
    for field in fields.items():
        if field[0] in _RANKING:
            plan.ranking.append(field)
        elif field[0] in GOLD:
            plan.gold.append(field)
        elif field[0] not in {"id", "relevant_grades"}:
            plan.facts.append(field)
    places = [fields["metadata"]] if "metadata" in fields else []
    for place in (*places, *filter(_SETTINGS.__contains__, names)):
        plan.facts.extend((f, f"{place}.{f}") for f in _NESTED)
    return plan
