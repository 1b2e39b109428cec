"""The one table of field names: ours, what others call them, and how that is inferred.

A name decides before a value does: `*_ids` are ids, `*_contexts` are texts. Where a
name is used for several things elsewhere, what stands beside it decides (`_UNLESS`), or
the role the file was given (`_NEUTRAL`). `--map ours=theirs` beats all of it.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Final

from karat.errors import UnknownNameError, UsageError

FIELDS: Final[Mapping[str, str]] = {
    "id": "names the query",
    "query": "what was asked",
    "retrieved": "the ranking, best first: ids, texts, documents, or id -> score",
    "retrieved_ids": "the ranking as ids",
    "retrieved_texts": "the ranking as texts",
    "retrieved_scores": "the scores that go with the ranking",
    "retrieved_distances": "the same as distances: smaller is better",
    "output": "the ranking as a system printed it, also as a JSON string",
    "relevant": "relevant documents: ids, id -> grade, or id, grade and group; lists "
    "in a list are groups",
    "relevant_grades": "the grades that go with a list of relevant documents",
    "passages": "gold texts",
    "spans": "gold stretches of source documents: doc, start, end",
    "answers": "acceptable answers: a text or a list",
    "claims": "statements the retrieved documents should support",
    "reference": "the reference answer in prose; a list is gold texts",
    "expected": "relevant ids, id -> grade, or an answer",
    "gold": "gold documents: ids or texts; which it is shows in their form",
    "ground_truth": "a reference answer, or a list of ids or answers",
    "response": "the generated answer; kept, not scored",
    "latency_ms": "milliseconds that retrieving took",
    "failure": "why nothing could be retrieved",
    "k": "the query's own cutoff",
    "tags": "slices the query belongs to",
    "metadata": "anything else about the query",
    "document": "a document's id, in a table with one row per document",
    "score": "its score",
    "distance": "its distance: smaller is better",
    "rank": "its rank",
    "grade": "its label",
    "text": "its text",
}

RETRIEVED: Final = frozenset(
    {"retrieved", "retrieved_ids", "retrieved_texts", "output"}
)
GOLD: Final = frozenset(
    {"relevant", "passages", "spans", "answers", "claims", "reference"}
    | {"expected", "gold", "ground_truth"}
)

WRAPPERS: Final = (
    *("samples", "data", "records", "rows", "examples", "results", "items", "queries"),
    *("questions", "outputs", "test_cases", "goldens", "requests", "run", "gold"),
    *("qrels", "judgmentRatings"),
)
"""What an object calls the list or mapping it only wraps."""

ALIASES: Final[Mapping[str, str]] = {
    "id": "query_id qid question_id sample_id example_id topic_id topic id",
    "query": "query question user_input query_text input inputs prompt search_query",
    "retrieved": "retrieved retrieved_docs retrieved_documents retrieved_results "
    "retrieved_nodes ranking ranked results search_results hits documents docs "
    "source_documents source_nodes nodes candidates predictions",
    "retrieved_ids": "retrieved_ids retrieved_context_ids retrieved_doc_ids "
    "retrieved_document_ids retrieved_chunk_ids ranked_ids result_ids predicted_ids "
    "context_ids chunk_ids doc_ids document_ids",
    "retrieved_texts": "retrieved_texts retrieved_contexts retrieved_context "
    "retrieval_context retrieved_chunks retrieved_passages retrieved_contents contexts "
    "ctxs hypothesis chunks",
    "retrieved_scores": "retrieved_scores retrieve_scores scores",
    "retrieved_distances": "retrieved_distances distances",
    "relevant": "relevant relevant_ids relevant_doc_ids relevant_document_ids "
    "relevant_chunk_ids reference_context_ids reference_ids gold_ids gold_doc_ids "
    "gold_document_ids ground_truth_ids expected_ids expected_doc_ids "
    "expected_document_ids positive_ids qrels ratings judgments judgements gains "
    "grades retrieval_gt",
    "passages": "passages reference_contexts reference_texts gold_passages "
    "gold_contexts gold_texts gold_chunks relevant_passages relevant_contexts "
    "relevant_texts relevant_chunks positive_passages expected_contexts "
    "ground_truth_contexts expected_texts evidence retrieval_gt_contents",
    "spans": "spans gold_spans relevant_spans evidence_spans",
    "relevant_grades": "relevant_grades relevance_scores relevance_grades "
    "relevance_labels relevances relevant_scores gold_grades gold_scores",
    "answers": "answers expected_answers expected_answer gold_answers gold_answer "
    "golden_answers golden_answer ground_truth_answer reference_answers correct_answer "
    "correct_answers acceptable_answers",
    "claims": "claims reference_claims gold_claims",
    "reference": "reference references reference_answer ideal_answer gt_answer "
    "generation_gt",
    "expected": "expected_output expected reference_outputs",
    "gold": "gold_docs gold_documents gold relevant_docs relevant_documents "
    "expected_docs expected_documents ground_truth_docs",
    "ground_truth": "ground_truth ground_truths",
    "response": "response answer generated_answer prediction model_answer output_text "
    "generated_text model_output",
    "latency_ms": "latency_ms retrieval_ms",
    "failure": "failure retrieval_error",
    "k": "k",
    "tags": "tags tag slices slice",
    "metadata": "metadata meta",
    "document": "docno doc_id document_id corpus_id passage_id pid chunk_id node_id "
    "uid uuid doc document",
    "score": "score similarity relevance_score",
    "distance": "distance dist vector_distance cosine_distance l2_distance",
    "rank": "rank position",
    "grade": "grade relevance rel label relevance_label rating judgment judgement gain "
    "is_relevant relevance_grade relevancy human_score human_rating human_label",
    "text": "text page_content content contents body passage chunk long_text",
}
"""What others call our fields. The first of several that are found is taken; the others
are kept as metadata. Case, `-`, `_` and spaces do not matter."""

# Within one document or gold item, `id` is its own, and some names mean its source.
_OF_SOURCES: Final = frozenset({"doc", "document", "corpus_id"})
_OWN_IDS: Final = (a for a in ALIASES["document"].split() if a not in _OF_SOURCES)
IDS: Final = ("id", "_id", *_OWN_IDS, "id_", "docid")
TEXTS: Final = tuple(ALIASES["text"].split())
SCORES: Final = ("score", "_score", *ALIASES["score"].split()[1:])
RANKS: Final = tuple(ALIASES["rank"].split())
DISTANCES: Final = ("_distance", *ALIASES["distance"].split())
GRADES: Final = (*ALIASES["grade"].split(), "score")
QUERY_IDS: Final = tuple(ALIASES["id"].split())
QUESTIONS: Final = (*ALIASES["query"].split(), "text", "content")
METADATA: Final = ("metadata", "meta", "payload", "properties", "entity", "_additional")
NAMED: Final = ("doc", "document", "corpus_id")
"""What may name a document that has no id of its own."""
WRAPPED: Final = ("node", "document", "doc", "_source")
SOURCES: Final = ("source", "doc", "document", "file", "path", "url")
SPAN_SOURCES: Final = ("doc", "document", "doc_id", "source", "corpus_id", "file")
STARTS: Final = ("start", "start_index", "start_char", "start_offset", "begin")
ENDS: Final = ("end", "end_index", "end_char", "end_offset", "stop")

_MOST_FIELDS: Final = 10_000
_MOST_KEYS: Final = 40
WORDINGS: Final = frozenset({"generation_gt"})
"""Lists of several wordings of one thing, of which the first is read."""
LABELLED: Final = frozenset({"relevant", "expected", "gold", "ground_truth"})

# Their name -> (what it is, unless one of these is there too, what it is then).
_UNLESS: Final = {
    "context": ("retrieved_texts", RETRIEVED, "passages"),
    "actualoutput": ("output", RETRIEVED, "response"),
    "output": ("output", RETRIEVED, "response"),
    "outputs": ("output", RETRIEVED, "response"),
}

# Columns of an exported experiment, `outputs.documents`: what is read from them.
_EXPORTED: Final = {"inputs": {"query"}, "outputs": RETRIEVED, "reference": GOLD}

# Names that say nothing of retrieved or gold: the role of the file decides.
_NEUTRAL: Final = {
    ("gold", "retrieved"): ("gold", {"documents", "docs", "results"}),
    ("gold", "retrieved_ids"): ("relevant", {"documentids", "docids", "chunkids"}),
    ("gold", "retrieved_texts"): ("passages", {"contexts", "chunks"}),
    ("gold", "output"): ("expected", {"outputs"}),
    ("run", "passages"): ("retrieved_texts", {"passages"}),
    ("queries", "text"): ("query", {"text"}),
}


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    """The form names are compared in: letters and digits only, lower case."""
    return "".join(filter(str.isalnum, name.casefold()))


_NAMES: Final = (*IDS, *TEXTS, *SCORES, *DISTANCES, *GRADES)
_EXACT: Final = frozenset((*_NAMES, *METADATA, *WRAPPED))
_ASKED: Final = {_plain(name): name for name in _NAMES[::-1]}
_ROW: Final = frozenset(map(_plain, ALIASES["document"].split())) - _OF_SOURCES
_KNOWN: Final[Mapping[str, tuple[str, int]]] = {
    _plain(alias): (ours, order)
    for ours, aliases in ALIASES.items()
    for order, alias in enumerate(aliases.split())
}

_FIELDS: Final = frozenset((*_KNOWN, *_UNLESS))


def ask(value: Any, names: Iterable[str]) -> Any:
    """The first of these keys or attributes that is there and not None."""
    # The first is quicker to see.
    is_mapping = type(value) is dict or isinstance(value, Mapping)
    get = value.get if is_mapping else partial(getattr, value)
    for name in names:
        found = get(name, None)
        if found is not None and not callable(found):
            return found
    return None


def attributes(thing: object) -> dict[str, Any]:
    """What an object says of itself under the names that `ask` asks for."""
    found = {name: ask(thing, (name,)) for name in _EXACT}
    return {name: value for name, value in found.items() if value is not None}


def respell(value: Any) -> Any:
    """A document or gold item with its fields spelled as `ask` asks for them."""
    if not isinstance(value, Mapping) or len(value) > _MOST_KEYS:
        return value
    other = _other_spellings(tuple(value))
    return {**value, **{n: value[key] for key, n in other}} if other else value


@lru_cache(maxsize=4096)
def _other_spellings(keys: tuple[Any, ...]) -> tuple[tuple[Any, str], ...]:
    found = ((key, _ASKED.get(_plain(str(key)))) for key in keys if key not in _EXACT)
    return tuple((key, name) for key, name in found if name and name not in keys)


def known_as(name: str) -> str | None:
    """Our name for a field of theirs, looking at nothing but the name."""
    if _plain(name) in _UNLESS:
        return _UNLESS[_plain(name)][0]
    return _KNOWN[_plain(name)][0] if _plain(name) in _KNOWN else None


def infer(
    names: Iterable[str],
    role: str | None = None,
    mapping: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Which of their fields is which of ours."""
    # A mapping by query may have any number of names; a record has not.
    some = filter(may_be_field, islice(names, _MOST_FIELDS))
    return dict(_infer(tuple(some), role, tuple(mapping.items()) if mapping else ()))


@lru_cache(maxsize=4096)
def may_be_field(name: str) -> bool:
    """Whether any field has this name."""
    return _plain(name) in _FIELDS or name.partition(".")[0] in _EXPORTED


@lru_cache(maxsize=256)
def _infer(
    names: tuple[str, ...], role: str | None, mapping: tuple[tuple[str, str], ...]
) -> dict[str, str]:
    fields = dict(mapping)
    check_names(fields)
    told = frozenset(fields)
    taken = {*fields.values()} | {t.partition(".")[0] for t in fields.values()}
    free = [name for name in names if name not in taken]
    best: dict[str, tuple[int, str]] = {}
    for name in free:
        ours, order = _KNOWN.get(_plain(name), ("", 0))
        if ours and ours not in told and (ours not in best or order < best[ours][0]):
            best[ours] = (order, name)
    fields |= {ours: name for ours, (_, name) in best.items()}
    for group in (RETRIEVED, LABELLED):
        if group & told:
            for ours in group & fields.keys() - told:
                del fields[ours]
    for name in free:
        before, _, rest = name.partition(".")
        role_of = "gold" if before == "reference" else None
        for ours in infer([rest], role_of) if rest and before in _EXPORTED else ():
            if ours in _EXPORTED[before]:
                fields.setdefault(ours, name)
    _settle_by_company(fields, free)
    _settle_by_role(fields, role, told)
    _settle_row(fields, free)
    if role == "queries" and "id" not in fields and "document" in fields:
        # There are no documents in a file of queries: the id is the query's.
        fields["id"] = fields.pop("document")
    return fields


def check_names(mapping: Mapping[str, str]) -> None:
    """Refuse a mapping whose names are not ours, or that is the wrong way round."""
    for ours, theirs in mapping.items():
        if ours not in FIELDS:
            if theirs in FIELDS:
                right = how_to_map({theirs: ours})
                raise UsageError(f"a mapping names our field, then theirs: {right}")
            raise UnknownNameError("field", ours, FIELDS)


def is_row(fields: Mapping[str, str]) -> bool:
    """Whether records with these fields are rows of one document each."""
    return "document" in fields and not (RETRIEVED | GOLD) & fields.keys()


def is_record(fields: Mapping[str, str]) -> bool:
    """Whether these are fields of a record, rather than ids that look like some."""
    content = RETRIEVED | GOLD | {"document"}
    return len(fields) > 1 and not content.isdisjoint(fields)


def closest(missing: Iterable[str], names: Iterable[str]) -> str:
    """A hint naming the `--map` that would help: a misspelt field if there is one."""
    from difflib import get_close_matches  # noqa: PLC0415  for mistakes only

    ours = list(missing)
    aliases = {_plain(a): f for f in ours for a in ALIASES.get(f, f).split()}
    for name in names:
        for alias in get_close_matches(_plain(name), aliases, n=1, cutoff=0.8):
            return f"is it {name!r}? then {how_to_map({aliases[alias]: name})}"
    return f"name it with {how_to_map({ours[0]: 'THEIRS'})}"


@lru_cache(64)
def is_misspelt(ours: str, name: str) -> bool:
    """Whether a name may be a misspelt one of a field of ours."""
    return repr(name) in closest([ours], [name])


def generated(theirs: str) -> str:
    """A hint for whoever has a generated answer, but no gold."""
    return (
        f"{theirs!r} is read as what the system generated; is it the gold answer? then "
        + how_to_map({"answers": theirs})
    )


def how_to_map(names: Mapping[str, str]) -> str:
    """How to name fields, on the command line and in Python."""
    options = " ".join(f"--map {ours}={theirs}" for ours, theirs in names.items())
    return f"{options} (mapping={dict(names)} in Python)"


def _settle_by_company(fields: dict[str, str], free: list[str]) -> None:
    for name in free:
        if _plain(name) not in _UNLESS:
            continue
        ours, rivals, otherwise = _UNLESS[_plain(name)]
        field = otherwise if rivals & fields.keys() else ours
        fields.setdefault(field, name)


def _settle_by_role(
    fields: dict[str, str], role: str | None, told: frozenset[str]
) -> None:
    for (when, ours), (other, names) in _NEUTRAL.items():
        sought = GOLD if when == "gold" else RETRIEVED
        if (
            role == when
            and not sought & fields.keys()
            and ours not in told
            and _plain(fields.get(ours, "")) in names
        ):
            fields[other] = fields.pop(ours)


def _settle_row(fields: dict[str, str], free: list[str]) -> None:
    """In a row of one document, `id` may be the document's and `query` the query's.

    Beside the id of one document, `relevant` is its grade.
    """
    labels = (RETRIEVED | GOLD) & fields.keys()
    graded = _plain(fields.get("relevant", "")) == "relevant"
    one = fields.get("document", "")
    if labels == {"relevant"} and graded and one in free and _plain(one) in _ROW:
        fields.setdefault("grade", fields.pop("relevant"))
    elif labels:
        return
    numbered = {"score", "rank", "grade", "distance"} & fields.keys()
    own = next((name for name in free if _plain(name) == "id"), None)
    if numbered and "document" not in fields and own and fields.get("id") != own:
        fields["document"] = own
    if numbered and "document" not in fields and own and "query" in fields:
        fields["id"], fields["document"] = fields.pop("query"), own
    if "document" in fields and "id" not in fields and "query" in fields:
        fields["id"] = fields.pop("query")
