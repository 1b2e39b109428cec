"""Documents as frameworks hand them out: what they are asked for, and what they say."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from karat.extend import Document, FormatError
from karat.reading.meaning.documents import read_document
from karat.reading.source import Notes
from tests.reading.records import load_records


@dataclass
class PageDocument:
    """Shaped like LangChain's document."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


class TextNode:
    """Shaped like LlamaIndex's node: the text is behind a property and a method."""

    def __init__(self, id_: str, text: str) -> None:
        self.id_ = id_
        self._text = text

    @property
    def node_id(self) -> str:
        return self.id_

    @property
    def text(self) -> str:
        return self._text

    def get_content(self) -> str:
        return self._text


SHAPES = [
    (PageDocument("Paris."), Document(text="Paris.")),
    (
        PageDocument("Paris.", {"source": "a.txt"}, "7"),
        Document("7", "Paris.", source="a.txt", metadata={"source": "a.txt"}),
    ),
    (
        PageDocument("Paris.", {"chunk_id": 3}),
        Document("3", "Paris.", metadata={"chunk_id": 3}),
    ),
    ((PageDocument("Paris.", id="7"), 0.25), Document("7", "Paris.", 0.25)),
    (
        SimpleNamespace(node=TextNode("n1", "Paris."), score=0.5),
        Document("n1", "Paris.", 0.5),
    ),
    (
        SimpleNamespace(node=TextNode("n1", "Paris."), score=None),
        Document("n1", "Paris."),
    ),
    (TextNode("n1", "Paris."), Document("n1", "Paris.")),
    (
        SimpleNamespace(id="h", content="Paris.", score=0.5, meta={"a": 1}),
        Document("h", "Paris.", 0.5, metadata={"a": 1}),
    ),
    (SimpleNamespace(doc_id=4, text="Paris."), Document("4", "Paris.")),
    (
        {"_id": "e", "_score": 2.0, "_source": {"text": "Paris."}},
        Document("e", "Paris.", 2.0),
    ),
    (
        SimpleNamespace(id=5, score=0.5, payload={"text": "Paris."}),
        Document("5", "Paris.", 0.5, metadata={"text": "Paris."}),
    ),
    (
        {"document": {"id": "d", "content": "Paris."}, "score": 1},
        Document("d", "Paris.", 1),
    ),
    ({"doc": "d1", "score": 0.5}, Document("d1", score=0.5)),
    ({"doc_id": "000", "text": "Paris."}, Document("000", "Paris.")),
    ({"id": "c", "source": "s.md", "text": ""}, Document("c", "", source="s.md")),
    (
        {"doc": "a.md", "start": 4, "end": 9},
        Document(source="a.md", start=4, end=9),
    ),
    ({"document": "The sky is blue."}, Document(text="The sky is blue.")),
    (("d1", np.float64(0.5)), Document("d1", score=0.5)),
    (np.int64(7), Document("7")),
    ("d1", Document("d1")),
    (Document("as it is"), Document("as it is")),
]


@pytest.mark.parametrize(("given", "expected"), SHAPES)
def test_a_document_is_read_by_what_it_has(given: object, expected: Document) -> None:
    assert read_document(given, Notes()) == expected


@pytest.mark.parametrize(
    "given", [None, True, 1.5, b"d1", {}, object(), {"title": "t"}]
)
def test_what_is_no_document_is_refused(given: object) -> None:
    with pytest.raises(FormatError, match="document"):
        read_document(given, Notes())


def test_objects_make_a_run_with_their_texts() -> None:
    found = [PageDocument("Paris is in France.", id="a"), PageDocument("No.", id="b")]
    loaded = load_records([{"id": "q", "source_documents": found, "relevant": ["a"]}])
    assert loaded.run is not None
    assert loaded.run.holds_any({"b"})


def test_arrays_are_lists() -> None:
    loaded = load_records(
        [{"id": np.int64(3), "retrieved_ids": np.array(["a", "b"]), "k": np.int64(2)}]
    )
    assert loaded.queries["3"].k == 2
    assert loaded.run is not None
    assert loaded.run.queries() == ["3"]
