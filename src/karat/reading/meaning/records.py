"""Records: what each query retrieved and should have, gathered from samples."""

from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from numbers import Number, Real
from typing import Any, Final, NamedTuple

from karat.data.gold import Gold
from karat.data.queries import Dataset, Query
from karat.data.runs import LAST_RANK, Document, Latency, Retrieval
from karat.errors import DataError, FormatError, MissingFieldError
from karat.reading.meaning.aliases import (
    DISTANCES,
    FIELDS,
    GOLD,
    IDS,
    LABELLED,
    QUERY_IDS,
    RANKS,
    RETRIEVED,
    TEXTS,
    WORDINGS,
    ask,
    closest,
    generated,
    how_to_map,
    infer,
    known_as,
)
from karat.reading.meaning.ambiguity import (
    QueryRanking,
    Strings,
    Undecided,
    run_of,
    settle,
)
from karat.reading.meaning.answers import (
    PARTIAL,
    answer_field,
    hits_of,
    hits_path,
    is_answer,
    is_partial,
)
from karat.reading.meaning.documents import (
    INSIDE,
    list_with,
    names_inside,
    note_numbers,
    read_document,
    read_gold_field,
    read_plain_documents,
    read_question,
    read_scored,
    rename_inside,
    with_grades,
)
from karat.reading.meaning.values import (
    as_row,
    is_list,
    is_scores,
    note_joined,
    paths_in,
    read_cutoff,
    read_id,
    read_ids,
    read_number,
    read_tags,
    show,
    unpack,
    value_at,
)
from karat.reading.source import Notes, Source, placed

# What runs beside a ranking, and whether more or less of it is better.
_NUMBERS: Final = {"retrieved_scores": 1, "retrieved_distances": -1}
_OTHERWISE = "{list is|lists are} ranked in the order given; {its|their}"
_RANKS = f"{_OTHERWISE} ranks say otherwise"
_ORDER = (
    f"{_OTHERWISE} scores say otherwise (karat evaluate --order descending goes by "
    "them)"
)
_FALLING = "{list is|lists are} ranked in the order given, the larger "
_NEAR = "first (karat evaluate --order descending puts the smaller first)"
_ALONE = (
    "{sample has|samples have} one text where a list is expected: ranks mean little"
)
_CALLED = {"documents": "relevant", "references": "reference"}
_BESIDE = {"sources", "groups", "subtopics"}
_NESTED = ("k", "tags")
_SETTINGS = ("eval_config", "evalConfig")
_SHOWN = 12
# What is suggested to whoever has none: the names for what most have.
_RETRIEVED = ("retrieved", "retrieved_ids")
_GOLD = ("relevant", "passages", "answers", "reference")
_RANKING = RETRIEVED | _NUMBERS.keys()
_SAMPLE = FIELDS.keys() - {"document", "score", "rank", "grade", "text"}


def read_ranking(query: str, columns: Mapping[str, Any], notes: Notes) -> QueryRanking:
    """One query's ranking, from one field or from several that run in parallel."""
    if len(columns) > 1:
        return _read_parallel(query, columns, notes)
    ((ours, value),) = columns.items()
    if ours in _NUMBERS:
        raise FormatError("scores need retrieved documents to go with")
    value = unpack(value)
    if isinstance(value, Mapping):
        scored = is_scores(value)
        inside = {} if scored or is_answer(value) else infer(map(str, value))
        inner = next((ours for ours in inside if ours in RETRIEVED), None)
        if inner is not None:
            return read_ranking(query, {inner: value[inside[inner]]}, notes)
        flat = all(v is None or isinstance(v, str | Number) for v in value.values())
        if scored or (flat and ask(value, (*IDS, *TEXTS)) is None):
            return QueryRanking(read_scored(value, "score", notes))
    if isinstance(value, str) and ours != "output":
        if ours == "retrieved_texts":
            notes.notice("one text", _ALONE, query)
        else:
            note_joined(value, "ranking", notes)
        value = [value]
    if not is_list(value) or (len(value) == 1 and is_list(value[0])):
        value = hits_of(value)
    return _read_list(query, ours, value, notes)


def _read_list(
    query: str, ours: str, value: Sequence[Any], notes: Notes
) -> QueryRanking:
    kinds = {*map(type, value)}
    plain = read_plain_documents(value) if kinds == {dict} else None
    if plain is not None:
        _note_order(query, plain[1], notes)
        return QueryRanking(*plain)
    if ours != "retrieved_texts" and kinds <= {str, int}:
        bare = ours != "retrieved_ids" and int not in kinds
        return QueryRanking(read_ids(value, "document id", notes), bare=bare)
    documents = _read_documents(ours, value, notes)
    _note_order(query, [d.score for d in documents], notes, value[0] if value else None)
    return QueryRanking(documents)


def _read_parallel(
    query: str, columns: Mapping[str, Any], notes: Notes
) -> QueryRanking:
    """A ranking of which several fields say something, as lists of equal length."""
    lists = [
        _read_documents(f, v, notes) for f, v in columns.items() if f not in _NUMBERS
    ]
    for ours, sign in _NUMBERS.items():
        scores = unpack(columns.get(ours))
        if is_list(scores):
            numbers = [sign * read_number(score, "score") for score in scores]
            lists.append([Document(score=number) for number in numbers])
            break
    if len({len(documents) for documents in lists}) > 1:
        sizes = ", ".join(str(len(documents)) for documents in lists)
        raise FormatError(f"{', '.join(columns)} must be equally long, got {sizes}")
    documents = [_merged(parts) for parts in zip(*lists, strict=True)]
    _note_order(query, [d.score for d in documents], notes)
    return QueryRanking(documents)


def _merged(parts: Sequence[Document]) -> Document:
    """One document from what several fields say of it."""
    known: dict[str, Any] = {}
    for part in parts[::-1]:
        values = {name: getattr(part, name) for name in Document.__slots__}
        known |= {name: v for name, v in values.items() if v is not None and v != {}}
    return Document(**known)


def _read_documents(ours: str, value: Any, notes: Notes) -> list[Document]:
    value = unpack(value)
    if not is_list(value):
        value = [value]
    documents = [
        Document(text=entry)
        if ours == "retrieved_texts" and isinstance(entry, str)
        else read_document(entry, notes)
        for entry in value
    ]
    if value and isinstance(value[0], Mapping) and ask(value[0], RANKS) is not None:
        ranks = [ask(e, RANKS) for e in value if isinstance(e, Mapping)]
        return _with_ranks(documents, ranks, notes)
    return documents


def _with_ranks(
    documents: list[Document], ranks: list[Any], notes: Notes
) -> list[Document]:
    """Documents that say their ranks: gaps are kept, another order is told."""
    numbers = (rank for rank in ranks if isinstance(rank, int | float))
    known = [*filter(isfinite, numbers)]
    if known != sorted(known):
        notes.notice("order", _RANKS)
    elif len(known) == len(ranks) == len({*map(int, known)}):
        shift = int(known[0] == 0)
        if len(known) < known[-1] + shift <= LAST_RANK:
            pairs = zip(documents, known, strict=True)
            return [replace(d, rank=int(rank) + shift) for d, rank in pairs]
    return documents


def _note_order(
    query: str, given: Sequence[float | None], notes: Notes, first: object = None
) -> None:
    scores = [score for score in given if score is not None]
    if scores != sorted(scores, reverse=True):
        column = next((n for n in DISTANCES if ask(first, (n,)) is not None), None)
        falls = column is not None and scores == sorted(scores)
        notes.notice(
            "order", f"{_FALLING}{column!r} {_NEAR}" if falls else _ORDER, query
        )


class _Plan(NamedTuple):
    """How records with one set of fields are read: pairs of our name and theirs."""

    identity: str | None
    ranking: list[tuple[str, str]]
    gold: list[tuple[str, str]]
    grades: str | None
    facts: list[tuple[str, str]]
    rest: list[str]


@lru_cache(maxsize=256)
def _plan_of(
    names: tuple[str, ...],
    role: str | None,
    told: tuple[tuple[str, str], ...],
    holder: str | None,
) -> _Plan:
    """How records are read: each of their fields by what it is."""
    fields = {
        ours: theirs
        for ours, theirs in infer(names, role, dict(told)).items()
        if ours in _SAMPLE and (theirs in names or theirs.partition(".")[0] in names)
    }
    if holder is not None and not RETRIEVED & fields.keys():
        if fields.get("response") == holder:
            del fields["response"]
        fields["retrieved"] = holder
    used = {t.partition(".")[0] for t in fields.values()} | {*fields.values()}
    rest = [name for name in names if name not in used]
    identity, grades = (fields.pop(ours, None) for ours in ("id", "relevant_grades"))
    plan = _Plan(identity, [], [], grades, [], rest)
    for ours, theirs in fields.items():
        beside = plan.gold if ours in GOLD else plan.facts
        part = plan.ranking if ours in _RANKING else beside
        part.append((ours, theirs))
    places = [fields["metadata"]] if "metadata" in fields else []
    for place in (*places, *filter(_SETTINGS.__contains__, names)):
        plan.facts.extend((f, f"{place}.{f}") for f in _NESTED)
    return plan


def _path_to(record: object, ours: AbstractSet[str]) -> str | None:
    """The path to a field inside others that may hold what is looked for."""
    for path, value in paths_in(record):
        before, _, name = path.rpartition(".")
        listed = is_list(value) and value and isinstance(value[0], str | Mapping)
        if before and (known_as(name) in ours or (listed and ours == RETRIEVED)):
            return path
    return None


class Samples:
    """Gathers what records, or documents by query, say of each query.

    Records need not have the same fields; how a set of fields is read is worked out
    once.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._notes = source.notes
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        told = source.mapping
        self._inside = {o: told[o] for o in INSIDE if o in told} if told else {}
        # Fields inside others: those there are, and those of the user that were met.
        self._inner_names: dict[str, None] = {}
        self._met: set[str] = set()
        self._count = 0
        self._first: object = None
        self._mapping: dict[str, str] = {}
        self._places: dict[str, tuple[int, int | None]] = {}
        self._rankings: dict[str, QueryRanking] = {}
        self._gold: dict[str, dict[str, Any]] = {}
        self._undecided: dict[str, Strings] = {}
        self._queries: dict[str, Query] = {}
        self._times: dict[str, float] = {}
        self._failures: dict[str, str] = {}

    def take(self, record: object, line: int | None = None) -> None:
        """Read one record; a problem goes to the source's notes."""
        self._count += 1
        self._first = record if self._count == 1 else self._first
        query = None
        try:
            if not isinstance(record, Mapping):
                raise FormatError(f"must be an object with fields, got {show(record)}")
            if "timed_out" in record and is_partial(record):
                raise FormatError(PARTIAL)
            plan = self._plan(record)
            query = self._name(record, plan, line)
            self._read(query, record, plan)
        except DataError as error:
            self._problem(error, line, query)

    def add(self, query: object, value: Any, *, gold: bool) -> None:
        """Read one query that is not a record, such as an entry of a mapping."""
        name: str | None = None
        self._count += 1
        try:
            name = read_id(query, "query id", self._notes)
            self._claim(name, None)
            value = self._our_names_inside(value) if self._inside else value
            value = value if isinstance(value, AbstractSet) else unpack(value)
            single = isinstance(value, str) and not gold
            if single or value is None or isinstance(value, bytes | Real):
                hint = "one query? write [['a', 'b']]; one document? write it in a list"
                raise FormatError(
                    "must have a list of documents, or an object of document and "
                    f"number, got {show(value)}",
                    hint=hint if single else None,
                )
            if gold:
                self._add_gold(name, "gold", "", value)
            else:
                columns = {"retrieved": value}
                self._rankings[name] = read_ranking(name, columns, self._notes)
        except DataError as error:
            self._problem(error, None, name)

    def finish(self, format: str) -> Dataset:
        """Everything that was read, as one."""
        source = self._source
        run, bare = run_of(self._rankings, source.name, self._notes)
        gold = None
        if self._gold or self._undecided:
            kinds: dict[str, Any] = self._gold
            gold = Gold(**kinds, order=tuple(self._places), name=source.name)
        lacking = self._lacking(source.mapping) if source.mapping else None
        if lacking is not None and self._count:
            self._notes.problem(lacking)
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
        whole = Undecided(
            run,
            gold,
            self._queries,
            format,
            self._mapping,
            self._notes.notices(),
            bare,
            [*self._undecided.values()],
            Dataset(gold=gold, mapping=self._mapping),
        )
        whole = whole.decided() if self._undecided else whole
        retrieved, labelled = settle(whole, whole)
        return replace(labelled, run=retrieved.run)

    def _names(self) -> dict[str, None]:
        return dict.fromkeys(str(key) for keys in self._plans for key in keys)

    def _lacking(self, names: Mapping[str, str]) -> MissingFieldError | None:
        """A field that the user named and no record has, if there is one."""
        there = {*self._names(), *self._met}
        for ours, theirs in names.items():
            if theirs not in there and ours not in self._source.optional:
                problem = f"no record has the field {theirs!r}; {self._found()}"
                return self._source.lacks(theirs, problem)
        return None

    def _miss(self, what: str, ours: frozenset[str], usual: tuple[str, ...]) -> None:
        """Say that nothing of a kind was found, unless it is known why already."""
        source, names = self._source, self._names()
        if self._notes.problems:
            return
        there = infer(names, source.role, source.mapping)
        empty = next((theirs for f, theirs in there.items() if f in ours), None)
        hint = None
        if self._count == 0:
            problem = "holds no samples: it is empty"
        elif empty is not None:
            problem = f"no {what}: {empty!r} is empty in every sample"
        else:
            problem = f"no field holds {what}"
            problem += f"; {self._found()}" if names else ""
            rows = {"score", "rank", "grade"} & {*map(known_as, names)}
            hint = closest(("document",) if rows else usual, names)
            if inside := _path_to(self._first, ours):
                hint = how_to_map({usual[0]: inside})
            hint = self._as_rows() or hint
            if ours == GOLD and "response" in there:
                hint = generated(there["response"])
        self._notes.problem(source.error(problem, hint=hint))

    def _as_rows(self) -> str | None:
        row = as_row(self._first, self._source.role)
        return f"is it one row per document? then {how_to_map(row)}" if row else None

    def _found(self) -> str:
        names = [str(name)[:40] for name in (*self._names(), *self._inner_names)]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"fields found: {', '.join(names[:_SHOWN]) or 'none'}{more}"

    def _problem(self, error: DataError, line: int | None, query: str | None) -> None:
        if self._inner_names and (lacking := self._lacking(self._inside)):
            # What is wrong with the documents is that they are called otherwise.
            raise lacking
        if line is None and query is None:
            error.problem = f"sample {self._count}: {error.problem}"
        path = self._source.path
        self._notes.problem(placed(error, path=path, line=line, query=query))

    def _name(self, record: Mapping[Any, Any], plan: _Plan, line: int | None) -> str:
        value = None if plan.identity is None else self._at(record, plan.identity)
        if value is not None:
            query = read_id(value, f"{plan.identity}", self._notes)
            self._mapping.setdefault("id", str(plan.identity))
        elif plan.identity is not None:
            raise FormatError(f"{plan.identity} is empty")
        elif "id" in self._mapping:
            theirs = self._mapping["id"]
            raise FormatError(f"has no {theirs!r}, which earlier samples have")
        else:
            query = str(self._count - 1)
            what = "{sample|samples} without an id, numbered from 0"
            self._notes.notice("numbered", what)
        self._claim(query, line)
        return query

    def _claim(self, query: str, line: int | None) -> None:
        if query in self._places:
            number, first = self._places[query]
            place = f"sample {number}" if first is None else f"line {first}"
            raise FormatError(
                f"query id {query[:60]!r} occurs twice, first in {place}",
                hint=self._as_rows()
                or "a sample is one query: --by FIELD splits several systems in one "
                "file, --map id=FIELD names ids that are each there once",
            )
        self._places[query] = (self._count, line)

    def _plan(self, record: Mapping[Any, Any]) -> _Plan:
        keys = tuple(record)
        plan = self._plans.get(keys)
        if plan is None:
            names, source = tuple(map(str, keys)), self._source
            path = self._inside.get("document")
            holder = None if path is None else list_with(record, path)
            told = tuple((source.mapping and source.mapping_for(names)).items())
            plan = _plan_of(names, source.role, told, holder)
            if not plan.ranking and source.role in {None, "run", "samples"}:
                plan = _plan_of(names, source.role, told, answer_field(record))
            if plan.identity is None:
                # The id may stand inside the query, as in TREC RAG.
                theirs = dict(plan.facts).get("query", "")
                asked = record.get(theirs)
                inner = (n for n in QUERY_IDS if ask(asked, (n,)) is not None)
                path = next((f"{theirs}.{name}" for name in inner), None)
                plan = plan._replace(identity=path)
            self._plans[keys] = plan
        return plan

    def _read(self, query: str, record: Mapping[Any, Any], plan: _Plan) -> None:
        columns: dict[str, Any] = {}
        for ours, theirs in plan.ranking:
            value = self._at(record, theirs)
            if value is not None:
                columns[ours] = self._our_names_inside(value) if self._inside else value
                known = "retrieved" if ours == "output" else ours
                self._mapping.setdefault(known, theirs)
        if columns:
            self._rankings[query] = read_ranking(query, columns, self._notes)
        grades = None if plan.grades is None else self._at(record, plan.grades)
        for ours, theirs in plan.gold:
            value = self._at(record, theirs)
            if value is None:
                continue
            if self._inside:
                value = self._our_names_inside(value)
            if ours in LABELLED and grades is not None:
                value = with_grades(value, grades)
            elif ours in LABELLED and plan.rest:
                others = {name: record.get(name) for name in plan.rest}
                note_numbers(value, others, self._notes)
            self._add_gold(query, ours, theirs, value)
        if plan.facts or plan.rest:
            self._queries[query] = self._facts(query, plan, record)

    def _add_gold(self, query: str, ours: str, theirs: str, value: object) -> None:
        """One field of one query's gold."""
        if theirs in WORDINGS and is_list(wordings := unpack(value)):
            if not wordings:
                return
            value = wordings[0]
        for kind, part in read_gold_field(ours, value, self._notes).items():
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
                self._mapping.setdefault(_CALLED.get(kind, kind), theirs)

    def _at(self, record: Mapping[Any, Any], theirs: str) -> Any:
        """What a field holds, or what lies at the end of a path."""
        value = record.get(theirs)
        if value is None and "." in theirs:
            value = value_at(record, theirs)
            self._met |= {theirs} if value is not None else set()
        return value

    def _our_names_inside(self, value: Any) -> Any:
        """A ranking or gold, with fields of its documents under our names."""
        value = unpack(value)
        listed = isinstance(value, str | AbstractSet) or is_list(value)
        if not listed and (not isinstance(value, Mapping) or hits_path(value)):
            value = hits_of(value)
        self._inner_names.update(dict.fromkeys(names_inside(value)))
        value, found = rename_inside(value, self._inside)
        self._met |= {*found.values()}
        self._mapping.update(found)
        return value

    def _facts(self, query: str, plan: _Plan, record: Mapping[Any, Any]) -> Query:
        facts: dict[str, Any] = {}
        for ours, theirs in plan.facts:
            value = self._at(record, theirs)
            if value is not None and ours not in facts:
                facts[ours] = value
                if ours != "metadata":
                    self._mapping.setdefault(ours, theirs)
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
