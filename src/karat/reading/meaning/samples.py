"""Samples: records that carry a query with its ranking, its gold, or both."""

from collections.abc import Mapping, Set as AbstractSet
from dataclasses import replace
from typing import Any, NamedTuple

from karat.data.queries import Dataset, Query
from karat.data.runs import Latency, Retrieval
from karat.errors import DataError, FormatError, MissingFieldError
from karat.reading.meaning.aliases import (
    FIELDS,
    GOLD,
    LABELLED,
    RETRIEVED,
    WORDINGS,
    closest,
    generated,
    infer,
    known_as,
    told,
)
from karat.reading.meaning.documents import read_question
from karat.reading.meaning.gathering import Gathered
from karat.reading.meaning.gold import note_numbers, with_grades
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
    read_cutoff,
    read_id,
    read_number,
    read_tags,
    show,
    unpack,
)
from karat.reading.source import Source, placed

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
        """Read one query that is not a record, such as an entry of a mapping.

        Args:
            query: its id.
            value: its gold or its ranking.
            gold: which of them.
            text: what was asked.
        """
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
            error = FormatError(
                f"sample {self._count}: {error.problem}", hint=error.hint
            )
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
            used = {t.partition(".")[0] for t in kept.values()} | {*kept.values()}
            facts = [(f, t) for f, t in kept.items() if f not in _RANKING | _LABELS]
            places = [kept["metadata"]] if "metadata" in kept else []
            places += [name for name in names if name in _SETTINGS]
            facts += [(f, f"{place}.{f}") for place in places for f in _NESTED]
            self._plans[keys] = _Plan(
                identity=kept.get("id"),
                ranking=[field for field in kept.items() if field[0] in _RANKING],
                gold=[field for field in kept.items() if field[0] in GOLD],
                grades=kept.get("relevant_grades"),
                facts=[fact for fact in facts if fact[0] != "id"],
                rest=[name for name in names if name not in used],
            )
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
_LABELS = GOLD | {"relevant_grades"}
_SAMPLE = FIELDS.keys() - {"document", "score", "rank", "grade", "text"}
