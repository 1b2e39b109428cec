"""The retrievers of frameworks, search engines and vector stores, as one function.

Each is recognised by its methods, so that nothing of any library is imported here, and
is asked with the arguments that its own documentation gives.
"""

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from karat.errors import UsageError
from karat.reading.meaning.values import value_at

Ask: TypeAlias = Callable[[str], Any]

DEPTHS: Final = (
    *("k", "top_k", "limit", "n_results", "size", "n", "num_results", "max_results"),
)
"""What functions call the number of documents to return."""


@dataclass(frozen=True)
class Question:
    """How a retriever is asked, besides the query."""

    k: int
    options: Mapping[str, Any] = field(default_factory=dict)
    encode: Callable[[str], Any] | None = None
    output: str | None = None

    def arguments(self, query: str) -> dict[str, Any]:
        """The options for one query."""
        filled: dict[str, Any] = fill(dict(self.options), self, query)
        return filled

    def encoded(self, query: str, who: str) -> Any:
        """What `encode` makes of a query, for an index that takes no texts."""
        if self.encode is None:
            raise UsageError(
                f"{who} takes no texts: encode=FUNCTION makes a vector of a query"
            )
        return self.encode(query)


def fill(value: Any, question: Question, query: str) -> Any:
    """The same with `{query}`, `{k}` and `{vector}` filled in, at any depth."""
    if isinstance(value, Mapping):
        return {name: fill(inner, question, query) for name, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, question, query) for inner in value]
    if value == "{k}":
        return question.k
    if value == "{vector}":
        vector = question.encoded(query, "{vector}")
        return vector.tolist() if hasattr(vector, "tolist") else vector
    if isinstance(value, str):
        # Not one after the other: a query may hold the other mark itself.
        parts = value.split("{query}")
        return query.join(part.replace("{k}", str(question.k)) for part in parts)
    return value


def as_function(retriever: Any, question: Question) -> Ask:
    """A function from query to whatever the retriever answers, also awaitable."""
    if inspect.isclass(retriever):
        name = retriever.__name__
        raise UsageError(f"{name} is a class; pass an instance of it: {name}(...)")
    for is_kind, adapt in _KINDS:
        if is_kind(retriever):
            return adapt(retriever, question)
    if callable(retriever):
        return _function(retriever, question)
    raise UsageError(
        "a retriever is a function from query to documents, an address, or an object "
        "of LangChain, LlamaIndex, Haystack, DSPy, txtai, bm25s, FAISS, Qdrant, "
        "Chroma, LanceDB, Elasticsearch, OpenSearch or Vespa; "
        f"got {type(retriever).__name__}"
    )


def _has(*methods: str) -> Callable[[Any], bool]:
    return lambda r: all(callable(getattr(r, name, None)) for name in methods)


def _from(library: str, method: str) -> Callable[[Any], bool]:
    """Whether a class of its line is of a library, and has a method."""

    def is_from(retriever: Any) -> bool:
        line = type(retriever).__mro__
        ours = any(kind.__module__.partition(".")[0] == library for kind in line)
        return ours and callable(getattr(retriever, method, None))

    return is_from


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _function(function: Any, question: Question) -> Ask:
    parameters = [*_parameters(function).values()]
    depth = next((p.name for p in parameters[1:] if p.name in DEPTHS), None)
    extra = {} if depth is None or depth in question.options else {depth: question.k}
    passed = {*extra, *question.options}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for parameter in parameters[1:]:
        needed = parameter.default is parameter.empty and parameter.kind in named
        if needed and parameter.name not in passed:
            who = getattr(function, "__qualname__", type(function).__qualname__)
            raise UsageError(
                f"{who} needs {parameter.name!r} besides the query: "
                f"options={{{parameter.name!r}: ...}}"
            )
    encode = question.encode or (lambda query: query)
    return lambda query: function(
        encode(query), **{**extra, **question.arguments(query)}
    )


def _with_depth(retriever: Any, k: int) -> Any:
    """A retriever that returns as many, whatever it was built with."""
    names = ("k", "top_k", "similarity_top_k")
    own = {n: getattr(retriever, n, None) for n in names}
    depths: dict[str, Any] = {n: k for n, v in own.items() if isinstance(v, int)}
    if isinstance(options := getattr(retriever, "search_kwargs", None), dict):
        depths["search_kwargs"] = {**options, "k": k}
    if depths:
        # A copy: the retriever is the caller's.
        retriever = copy.copy(retriever)
    for name, depth in depths.items():
        setattr(retriever, name, depth)
    return retriever


def _langchain(retriever: Any, question: Question) -> Ask:
    parameters = _parameters(
        getattr(retriever, "_get_relevant_documents", None)
    ).values()
    takes = any(p.name == "k" or p.kind is p.VAR_KEYWORD for p in parameters)
    depth = {"k": question.k} if takes else {}
    retriever = _with_depth(retriever, question.k)
    return lambda query: retriever.invoke(
        query, **{**depth, **question.arguments(query)}
    )


def _store(store: Any, _: Question) -> Ask:
    kind = type(store).__name__
    raise UsageError(f"{kind} is no retriever, but makes one: pass .as_retriever()")


def _model(model: Any, _: Question) -> Ask:
    kind = type(model).__name__
    raise UsageError(
        f"{kind} is a model, and searches nothing: pass what searches with it, such as "
        "a function from query to documents; for an index of vectors, encode= takes "
        "the function that makes a vector of a query"
    )


def _bm25s(index: Any, question: Question) -> Ask:
    library = sys.modules["bm25s"]
    size = index.scores["num_docs"]

    def ask(query: str) -> Any:
        if question.encode is None:
            tokens = library.tokenize([query], show_progress=False)
        else:
            tokens = [question.encode(query)]
        depth = min(question.k, size)
        return index.retrieve(tokens, k=depth, show_progress=False, **question.options)

    return ask


def _haystack(component: Any, question: Question) -> Ask:
    parameters = _parameters(component.run)
    depth = {"top_k": question.k} if "top_k" in parameters else {}

    def ask(query: str) -> Any:
        if "query" in parameters or "query_embedding" not in parameters:
            inputs = {"query": query}
        else:
            inputs = {"query_embedding": question.encoded(query, "the component")}
        return component.run(**{**inputs, **depth, **question.arguments(query)})

    return ask


def _haystack_pipeline(pipeline: Any, question: Question) -> Ask:
    inputs = pipeline.inputs()
    names = ("query", "text", "question", "prompt", "messages")
    targets = [
        (component, name)
        for component, fields in inputs.items()
        for name in names
        if name in fields and fields[name]["is_mandatory"]
    ]
    if not targets:
        raise UsageError(f"no input of the pipeline takes a query; it has {inputs}")
    where = (question.output or "").partition(".")[0]
    depth = {c: {"top_k": question.k} for c, f in inputs.items() if "top_k" in f}

    def ask(query: str) -> Any:
        data: dict[str, dict[str, Any]] = {
            c: dict(arguments) for c, arguments in depth.items()
        }
        for component, name in targets:
            data.setdefault(component, {})[name] = query
        for component, arguments in question.arguments(query).items():
            data.setdefault(component, {}).update(arguments)
        answer = pipeline.run(data, include_outputs_from={where} if where else None)
        return answer if question.output else _documents(answer)

    return ask


def _documents(answer: Mapping[str, Any]) -> Any:
    """The one list of documents that a pipeline puts out."""
    names = [p for p in answer if value_at(answer, f"{p}.documents") is not None]
    if len(names) != 1:
        outputs = ", ".join(f"{name}.documents" for name in names) or ", ".join(answer)
        raise UsageError(
            f"the pipeline puts out {outputs or 'nothing'}: output='NAME.documents' "
            "names the documents"
        )
    return answer[names[0]]["documents"]


def _qdrant(client: Any, question: Question) -> Ask:
    options = dict(question.options)
    if "collection_name" not in options:
        listed = client.get_collections()
        names = [c.name for c in getattr(listed, "collections", ())]
        if len(names) != 1:
            raise UsageError(
                "which collection? options={'collection_name': ...} names one of "
                f"{', '.join(names) or 'them'}"
            )
        options["collection_name"] = names[0]

    def ask(query: str) -> Any:
        arguments = fill(options, question, query)
        if "query" not in arguments:
            vector = question.encoded(query, "Qdrant")
            arguments["query"] = (
                vector.tolist() if hasattr(vector, "tolist") else vector
            )
        return client.query_points(**{"limit": question.k, **arguments})

    return ask


def _each(
    ask: Callable[[Any, Question, str], Any],
) -> Callable[[Any, Question], Ask]:
    """What adapts a retriever that needs nothing before it is asked."""
    return lambda retriever, question: partial(ask, retriever, question)


def _chroma(collection: Any, question: Question, query: str) -> Any:
    queries: dict[str, Any] = {"query_texts": [query]}
    if question.encode is not None:
        queries = {"query_embeddings": [question.encode(query)]}
    arguments = {"n_results": question.k, **queries, **question.arguments(query)}
    return collection.query(**arguments)


def _lancedb(table: Any, question: Question, query: str) -> Any:
    wanted = query if question.encode is None else question.encode(query)
    search = table.search(wanted, **question.arguments(query))
    return search.limit(question.k).to_list()


def _faiss(index: Any, question: Question, query: str) -> Any:
    vector = np.asarray(question.encoded(query, "FAISS"), np.float32)
    return index.search(vector.reshape(1, -1), question.k, **question.options)


def _txtai(index: Any, question: Question, query: str) -> Any:
    return index.search(query, question.k, **question.arguments(query))


def _vespa(app: Any, question: Question, query: str) -> Any:
    body = {"query": query, "hits": question.k, **question.arguments(query)}
    return app.query(body=body)


def _search_engine(client: Any, question: Question) -> Ask:
    if not question.options:
        raise UsageError(
            "what is searched? options={'index': 'docs', 'query': {'match': {'text': "
            "'{query}'}}} says it as the client takes it; {query} is filled in"
        )
    return lambda query: client.search(
        **{"size": question.k, **question.arguments(query)}
    )


_OF_MODELS = ("encode", "embed_query", "chat")
_Kind: TypeAlias = tuple[Callable[[Any], bool], Callable[[Any, Question], Ask]]
_KINDS: Final[tuple[_Kind, ...]] = (
    (_has("invoke", "get_num_tokens"), _model),
    (_has("invoke", "ainvoke"), _langchain),
    (_has("retrieve", "aretrieve"), lambda r, q: _with_depth(r, q.k).retrieve),
    (_has("as_retriever"), _store),
    (_from("bm25s", "retrieve"), _bm25s),
    (_has("run", "inputs", "add_component"), _haystack_pipeline),
    (lambda r: hasattr(r, "__haystack_input__"), _haystack),
    (_has("query_points", "get_collections"), _qdrant),
    (_from("chromadb", "query"), _each(_chroma)),
    (_from("lancedb", "search"), _each(_lancedb)),
    (lambda r: hasattr(r, "ntotal") and _has("search")(r), _each(_faiss)),
    (_from("txtai", "search"), _each(_txtai)),
    (_has("search", "msearch"), _search_engine),
    (_from("vespa", "query"), _each(_vespa)),
    (_has("encode", "similarity"), _model),
    (
        # What can be called may be a retriever that encodes its queries itself.
        lambda r: not callable(r) and any(hasattr(r, name) for name in _OF_MODELS),
        _model,
    ),
)
