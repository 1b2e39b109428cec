"""Asking a retriever every query: the run, how long it took, and what failed."""

import hashlib
import json
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial, wraps
from importlib import import_module, reload
from numbers import Integral
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeAlias, TypedDict, TypeVar
from weakref import WeakValueDictionary

from karat.data.judgements import Failure, Prompt, Reply
from karat.data.queries import Query
from karat.data.runs import Latency, Retrieval, Run
from karat.data.tables import counted
from karat.errors import DataError, ParameterError, UnknownNameError, UsageError
from karat.llm.callables import CallQueue, ErrorGuard, is_async, place_of, run_sync
from karat.llm.limits import Settings, Stage
from karat.llm.run_jobs import Results, run_jobs
from karat.reading.files import gc_paused
from karat.reading.meaning.ambiguity import note_ascending, run_of
from karat.reading.meaning.records import read_ranking
from karat.reading.readers import read_queries
from karat.reading.source import Notes
from karat.retrieving.client import (
    HttpRetriever,
    RetrieverClient,
    check_mapping,
    documents_from,
)
from karat.retrieving.retrievers import Question, as_function

P = ParamSpec("P")
T = TypeVar("T")
_Facts: TypeAlias = dict[str, Any]

CACHE = Path(".karat") / "retrieved.sqlite"
"""The default file for answers."""

ATTEMPTS = 10
"""Calls for a query: where three of ten calls fail, none of 10,000 queries is lost."""

_STAGE = Stage("retrieving", "query", tokens=False)
_DEEPEST = 10**6
_AT_ONCE = 8
# What has answers under which key, as long as it is there.
_OWNERS: "WeakValueDictionary[str, Any]" = WeakValueDictionary()
# Where `retrieve` waits to make the calls of a plain function itself.
_CALLER: ContextVar[CallQueue | None] = ContextVar("caller", default=None)


class RetrieveOptions(TypedDict, total=False):
    """How a retriever is asked: what `evaluate` hands on to `retrieve`."""

    concurrency: int | None
    version: str | None
    output: str | None
    ids: Sequence[Any] | None
    encode: Callable[[str], Any] | None
    options: Mapping[str, Any] | None
    headers: Mapping[str, str] | None
    timeout: float
    cache: str | Path | None
    settings: Settings | None


async def aretrieve(  # noqa: PLR0913
    retriever: Any,
    queries: Any,
    k: int = 20,
    *,
    concurrency: int | None = None,
    name: str | None = None,
    version: str | None = None,
    mapping: Mapping[str, str] | None = None,
    output: str | None = None,
    ids: Sequence[Any] | None = None,
    encode: Callable[[str], Any] | None = None,
    options: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,  # noqa: ASYNC109  of each call
    cache: str | Path | None = CACHE,
    settings: Settings | None = None,
) -> Run:
    """What a retriever finds for each query, how long it takes, and what fails.

    The run has `latency` (percentiles, and the time of each query) and `failures`
    (query -> reason); a failed query is in no mean of an evaluation. Equal queries are
    asked once. A plain function is asked one query at a time, in the thread that calls
    this. With a `version` answers are kept and used again, so that a run that was
    stopped goes on where it was; without one nothing is kept.

    Args:
        retriever: a function from query to documents, plain or async; an object of
            LangChain, LlamaIndex, Haystack, DSPy, txtai, bm25s, FAISS, Qdrant, Chroma,
            LanceDB, Elasticsearch, OpenSearch or Vespa; or an address that answers
            with JSON.
        queries: texts by id, a list of texts or of records, or a file.
        k: how many documents are asked for; more are cut off.
        concurrency: calls under way at once, of a plain function in as many threads;
            natively one, and eight for an async function or an address.
        name: how reports call the run.
        version: of the index and all else that decides the answers; they are used again
            until it changes.
        mapping: our name -> theirs, as in `{"document": "metadata.source"}`: a path
            through objects and mappings; `retrieved` leads to the documents.
        output: where a Haystack pipeline puts the documents: `"retriever.documents"`.
        ids: the documents' ids, for an index that answers with their places.
        encode: makes of a query what the retriever takes: a vector, or tokens.
        options: further arguments of every call, such as a filter, or the body posted
            to an address; `{query}`, `{k}` and `{vector}` in them are filled in.
        headers: sent to an address; a value `$NAME` is read from the environment.
        timeout: seconds after which a call is given up and tried again; a plain
            function that is asked one query at a time is waited for.
        cache: the file for answers that have a version; None keeps none.
        settings: retries, limits, `offline` and the like.

    Raises:
        IncompleteError: the retriever seems to be down; with a version, the same call
            goes on from there.
        DataError: it failed for every query, or returns no ranking of documents.

    Example:
        >>> def search(query, k):
        ...     return ["d1", "d2", "d3"][:k]
        >>> run = retrieve(search, {"q1": "What is rye?"}, k=2)
        >>> run.by_query, run.failures
        ({'q1': ['d1', 'd2']}, {})
    """
    if not isinstance(k, Integral) or isinstance(k, bool) or not 0 < k <= _DEEPEST:
        raise ParameterError("retrieve", "k", f"an integer from 1 to {_DEEPEST}", k)
    check_mapping(mapping or {})
    texts = _texts(read_queries(queries))
    question = Question(int(k), options or {}, encode, output)
    paths = dict(mapping or {}) | ({"retrieved": output} if output else {})
    key = _key(question, version, paths, ids)
    if isinstance(retriever, str):
        ask: Any = HttpRetriever(retriever, question, headers)
        endpoint = short = ask.address
        key["query"] = ask.parameters
    else:
        ask, endpoint = as_function(retriever, question), place_of(retriever)
        short = endpoint.rpartition(".")[2]
    usual = _AT_ONCE if _is_parallel(retriever) else 1
    limits = replace(
        settings or Settings(max_attempts=ATTEMPTS),
        concurrency=usual if concurrency is None else concurrency,
        timeout=timeout,
        journal=Path(cache) if cache and version is not None else None,
    )
    if limits.offline and limits.journal is None:
        raise UsageError(
            "offline takes every answer from the journal, where only answers that have "
            "a version are: version= (--index-version) names it"
        )
    if limits.journal is not None:
        _check_alone(retriever, json.dumps([endpoint, name, key], sort_keys=True))
    threads = limits.concurrency > 1 and not _is_parallel(retriever)
    calls = CallQueue() if threads else _CALLER.get()
    client = RetrieverClient(
        ask,
        endpoint=endpoint,
        model=name or short,
        parameters=key,
        k=question.k,
        mapping=paths,
        ids=ids,
        timeout=timeout,
        calls=calls,
    )
    jobs = [partial(_job, text) for text in texts.values()]
    results = await run_jobs(jobs, client, limits, _STAGE, [*texts])
    at_once = min(limits.concurrency, len({*texts.values()}))
    return _to_run(texts, results, client, at_once)


def _check_alone(retriever: Any, key: str) -> None:
    """Refuse another retriever under the key of one that is still there.

    Objects of one class, and functions that one function made, have the same place.
    """
    owner = getattr(retriever, "__self__", retriever)
    unique = "<" not in getattr(owner, "__qualname__", "<")
    if unique or isinstance(owner, str | ModuleType):
        return
    if _OWNERS.get(key, owner) is not owner:
        raise UsageError(
            f"another {place_of(retriever)} has this version, and its answers would be "
            "served: name= tells the two apart"
        )
    # Some objects of libraries in C cannot be remembered without being kept alive.
    with suppress(TypeError):
        _OWNERS[key] = owner


def _is_parallel(retriever: Any) -> bool:
    """Whether a retriever bears several calls at once by nature."""
    return isinstance(retriever, str) or is_async(retriever)


def _sync(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same function for code that does not await.

    Its event loop runs in another thread, so that this one can make the calls of a
    plain function: as if its user had called it here.
    """

    @wraps(function)
    def twin(*args: P.args, **named: P.kwargs) -> T:
        if _is_parallel(args[0] if args else named.get("retriever")):
            return run_sync(lambda: function(*args, **named))
        calls = CallQueue(threads=False)

        async def work() -> T:
            _CALLER.set(calls)
            try:
                return await function(*args, **named)
            finally:
                calls.close()

        return run_sync(work, calls.serve)

    return twin


retrieve = _sync(aretrieve)


def _texts(queries: Mapping[str, Query]) -> dict[str, str]:
    if not queries:
        raise DataError("no queries to ask", hint="pass texts by id, a list, or a file")
    for name, query in queries.items():
        if not (query.text or "").strip():
            raise DataError("has no text to ask", query=name)
    return {name: str(query.text) for name, query in queries.items()}


def _key(
    question: Question,
    version: str | None,
    paths: Mapping[str, str],
    ids: Sequence[Any] | None,
) -> dict[str, Any]:
    """All that decides an answer besides the query and the retriever's name."""
    key: dict[str, Any] = {"k": question.k, "version": version, "mapping": {**paths}}
    # With an address in memory in its looks, another process asks anew.
    key["options"] = json.loads(json.dumps(dict(question.options), default=repr))
    if question.encode is not None:
        key["encode"] = place_of(question.encode)
    if ids is not None:
        digest = hashlib.sha256("\0".join(map(str, ids)).encode("utf-8", "replace"))
        key["ids"] = digest.hexdigest()[:16]
    return {name: value for name, value in key.items() if value not in (None, {})}


def _job(text: str) -> Generator[Prompt, Reply, _Facts]:
    """What was kept of an answer, and whether that is from an earlier run."""
    reply = yield Prompt("", text, name="retrieve")
    return {**json.loads(reply.text), "cached": reply.cached}


def _to_run(
    queries: Mapping[str, str],
    results: Results[_Facts],
    client: RetrieverClient,
    concurrency: int,
) -> Run:
    pairs = [*zip(queries, results, strict=True)]
    failures = {query: r.reason for query, r in pairs if isinstance(r, Failure)}
    answers = {query: r for query, r in pairs if not isinstance(r, Failure)}
    if not answers:
        first = next(iter(failures))
        raise DataError(
            f"the retriever failed for all of {counted(len(queries), 'query')}; "
            f"{first!r}: {failures[first]}"
        )
    notes = Notes()
    rankings = {}
    with gc_paused():
        for query, facts in answers.items():
            documents = documents_from(facts["documents"])
            rankings[query] = read_ranking(query, {"retrieved": documents}, notes)
            _note(query, facts["returned"], documents, client.k, notes)
        run, _ = run_of(rankings, client.model, notes)
    assert run is not None  # noqa: S101
    if all("rising" in facts for facts in answers.values()):
        counts = (range(facts["returned"]) for facts in answers.values())
        note_ascending(answers, counts, notes)
    # Equal queries were one call.
    calls = {*{queries[query]: query for query in reversed(answers)}.values()}
    latency = Latency(
        {query: answers[query]["ms"] for query in answers if query in calls},
        frozenset(query for query in calls if answers[query]["cached"]),
        frozenset(query for query in calls if "first" in answers[query]),
        concurrency,
    )
    version = client.parameters.get("version")
    for _ in latency.earlier:
        notes.notice(
            "cached",
            "{answer is|answers are} from an earlier call under version "
            f"{version!r}, with its latency; another version asks again",
        )
    run.retrieval = Retrieval(latency, failures, client.k, notes.notices(), queries)
    return run


def _note(
    query: str, returned: int, documents: Sequence[Any], k: int, notes: Notes
) -> None:
    if returned != len(documents):
        text = f"held more than k = {k} documents, and the rest was cut off"
        notes.notice("cut", "{answer|answers} " + text, query)
    elif not returned:
        notes.notice("none", "{query|queries} got no documents", query)
    elif returned < k:
        text = f"held fewer than k = {k} documents"
        notes.notice("fewer", "{answer|answers} " + text, query)
    names = [d if isinstance(d, str) else d.id or d.text for d in documents]
    if len({*names}) < len(names):
        notes.notice("twice", "{answer|answers} held a document more than once", query)


def load_object(spelling: str, folder: Path) -> Any:
    """The object that `module:name` spells, of a folder as it is now, or installed."""
    if "://" in spelling:
        raise UsageError(f"an address is asked with --http {spelling}")
    module, _, name = spelling.partition(":")
    if not module or not name:
        raise UsageError(
            "a retriever is spelled MODULE:NAME, as in my.module:search; "
            f"got {spelling!r}"
        )
    target: Any = None
    guard = ErrorGuard()
    with guard:
        # Here, and in no other thread: what a module opens belongs to its thread.
        target = _module(module, folder)
    error = guard.error
    if error is not None and module.endswith(".py"):
        dotted = module.removesuffix(".py").replace("/", ".")
        raise UsageError(
            f"a module is named without .py: did you mean {dotted}:{name}?"
        )
    if error is not None:
        problem = f"{type(error).__name__}: {error}"
        raise UsageError(f"{spelling}: cannot import {module}: {problem}")
    for part in name.split("."):
        if not hasattr(target, part):
            names = [other for other in vars(target) if not other.startswith("_")]
            raise UnknownNameError(f"function of {module}", part, names)
        target = getattr(target, part)
    return target


def _module(name: str, folder: Path) -> ModuleType:
    is_loaded = name in sys.modules
    sys.path.insert(0, str(folder))
    try:
        module = import_module(name)
        own = Path(module.__file__ or "").is_relative_to(folder)
        return reload(module) if is_loaded and own else module
    finally:
        sys.path.remove(str(folder))
