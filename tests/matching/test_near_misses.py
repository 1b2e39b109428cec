"""Ids in another form, of documents and of queries; and what joins chunks."""

from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import MismatchError

UUID = "6f1b9c1e-0d6e-4c1f-9a51-0f0c8c2d7e11"
FORMS = [
    ("q1", "q1 "),
    ("q1", "Q1"),
    ("a b", "a%20b"),
    ("1", "001"),
    ("https://a.example/x", "https://a.example/x?utm_source=mail"),
    ("https://a.example/x", "https://a.example/x?utm=1"),
    ("https://a.example/x?utm_source=mail", "https://a.example/x?utm_source=web"),
    ("https://a.example/x", "https://a.example/x#top"),
    ("https://a.example/x", "https://a.example/x?page=next"),
    ("http://a.example/x", "https://a.example/x"),
    ("a.example/x", "https://a.example/x"),
    ("https://a.example/x", "https://www.a.example/x"),
    ("www.a.example/x", "a.example/x"),
    ("https://a.example/x/", "http://www.a.example/x"),
    (UUID, UUID.replace("-", "")),
    (UUID, UUID.upper()),
    (UUID, f"urn:uuid:{UUID}"),
    ("guide/install.md", "guide/install.html"),
    ("caf\u00e9", "caf\u00c3\u00a9"),
    ("na\u00efve", "nai\u0308ve"),
    ("na\u00efve-1", "naive-1"),
    ("\uff44\uff11", "d1"),
    ("stra\u00dfe", "STRASSE"),
]
# A document, and a chunk of it.
CHUNKS = [
    ("doc17", "doc17_0"),
    ("doc17", "doc17-3"),
    ("doc17", "doc17:12-40"),
    ("doc17", "doc17#chunk=3"),
    ("doc17", "doc17__chunk_3"),
    ("doc17", "doc17/4"),
    ("doc_17", "doc_17_0"),
    ("file.pdf", "file.pdf_page_3"),
    ("file.pdf", "file.pdf#page=3"),
    ("a/b/file.pdf", "a/b/file.pdf:7"),
    ("https://a.example/x", "https://a.example/x#chunk-2"),
    (UUID, f"{UUID}_2"),
]


# Two ids, how the second differs from the first, and the first from the second.
DIFFERENCES = [
    ("q1", "Q1", "in another case, spacing or number form", ""),
    ("caf\u00e9", "caf\u00c3\u00a9", "in another encoding", ""),
    ("ab-12", "ab.12", "with other marks between its parts", ""),
    ("http://a.eu/x", "https://a.eu/x", "with another scheme, www. or tracking", ""),
    ("a.md", "docs/a.md", "with a folder or prefix", "without its folder or prefix"),
    ("d17", "d17_0", "with a chunk's number", "without its chunk's number"),
    ("a.eu/x", "a.eu/x?p=z", "with a query or an anchor", "without what follows ?"),
    ("a.md", "a.html", "with another file's ending", ""),
    ("ab", "ab.md", "with a file's ending behind it", "without its file's ending"),
    ("ab", "docs/ab.md", "as the name of a file", "without its folder and ending"),
    ("7", "doc7", "with a word before it", "without the word before it"),
]


def said(result: Any) -> str:
    return "".join(str(n) for n in result.warnings if n.kind == "near misses")


@pytest.mark.parametrize(("one", "other"), [*FORMS, *CHUNKS])
def test_documents_in_another_form_are_noticed(one: str, other: str) -> None:
    for wanted, there in ((one, other), (other, one)):
        run, gold = {"q": [there], "r": ["b"]}, {"q": [wanted], "r": ["b"]}
        told = said(karat.evaluate(run, gold, metrics="rr"))
        assert f"{wanted!r:.40} and {there!r:.40}" in told
        with pytest.raises(MismatchError, match="is there as"):
            karat.evaluate({"q": [there]}, {"q": [wanted]})


@pytest.mark.parametrize(("one", "other", "there", "back"), DIFFERENCES)
def test_how_two_ids_differ_is_told(
    one: str, other: str, there: str, back: str
) -> None:
    for wanted, found, how in ((one, other, there), (other, one, back or there)):
        run, gold = {"q": [found], "r": ["b"]}, {"q": [wanted], "r": ["b"]}
        assert f"but {how}" in said(karat.evaluate(run, gold, metrics="rr"))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"source": "a.md"}, "source"),
        ({"metadata": {"path": "a.md"}}, "metadata.path"),
        ({"source": "a.md", "metadata": {"path": "a.md"}}, "metadata.path"),
    ],
)
def test_ids_in_another_field_are_noticed(fields: dict[str, Any], where: str) -> None:
    run = {"q": [{"id": "x", **fields}], "r": ["b"]}
    told = said(karat.evaluate(run, {"q": ["a.md"], "r": ["b"]}, metrics="rr"))
    assert f"but in another field (--map document={where})" in told


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_queries_in_another_form_are_noticed(one: str, other: str) -> None:
    for wanted, there in ((one, other), (other, one)):
        run, gold = {there: ["d"], "r": ["b"]}, {wanted: ["d"], "r": ["b"]}
        told = said(karat.evaluate(run, gold, metrics="rr"))
        assert "gold query is not in the run as written, but " in told
        assert f"{wanted!r:.40} and {there!r:.40}" in told
        with pytest.raises(MismatchError, match="is there as"):
            karat.evaluate({there: ["d"]}, {wanted: ["d"]})


def test_queries_are_looked_at_where_texts_are_matched() -> None:
    texts = ["Rye is a grain.", "Oats are eaten by horses."]
    run, gold = {"Q1": texts[:1], "r": texts[1:]}, {"q1": texts[:1], "r": texts[1:]}
    result = karat.evaluate(run, gold, match="chunk", metrics="rr")
    assert "'q1' and 'Q1'" in said(result)


def test_a_query_that_both_have_is_no_near_miss_of_another() -> None:
    run, gold = {"q1": ["d"]}, {"q1": ["d"], "Q1": ["d"]}
    assert not said(karat.evaluate(run, gold, metrics="rr"))


@pytest.mark.parametrize(("document", "chunk"), CHUNKS)
@pytest.mark.parametrize("chunked", ["run", "gold"])
def test_the_level_that_is_named_joins_chunks_with_documents(
    document: str, chunk: str, chunked: str
) -> None:
    sides = (chunk, document) if chunked == "run" else (document, chunk)
    run, gold = {"q": ["other", sides[0]]}, {"q": [sides[1]]}
    with pytest.raises(MismatchError) as error:
        karat.evaluate(run, gold)
    assert "match='id(level=document)'" in str(error.value)
    joined = karat.evaluate(run, gold, match="id(level=document)", metrics="rr")
    assert joined.means == {"rr": 0.5}


def test_a_document_is_found_at_its_first_chunk() -> None:
    run = {"q": ["d1_4", "d17_2", "d17_0", "d2_1"]}
    gold = {"q": {"d17": 1, "d2": 1, "d1_9": 1}}
    match = "id(level=document)"
    result = karat.evaluate(run, gold, match=match, metrics="recall@2,recall@4")
    # d1_9 is another chunk of d1, which neither side names.
    assert result.means == {"recall@2": 1 / 3, "recall@4": 2 / 3}
    collapsed = karat.evaluate(
        run, gold, match=match, metrics="recall@3", duplicates="collapse"
    )
    assert collapsed.means == {"recall@3": 2 / 3}


def test_a_cure_is_named_only_where_it_works() -> None:
    """Case differs too: the level compares ids as they are."""
    result = karat.evaluate(
        {"q": ["DOC17_0"], "r": ["b"]}, {"q": ["doc17"], "r": ["b"]}, metrics="rr"
    )
    assert "with a chunk's number" in said(result)
    assert "level=document" not in said(result)


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("doc_17", "doc_18"),
        ("doc_17", "doc_170"),
        ("d1", "d10"),
        ("https://a.example/x?id=1", "https://a.example/x?id=2"),
        ("https://a.example/x", "https://b.example/x"),
        ("a/index.md", "b/index.md"),
        ("doc#3", "doc#4"),
        (UUID, UUID.replace("6", "7")),
    ],
)
def test_other_ids_are_no_near_misses(wanted: str, there: str) -> None:
    run, gold = {"q": [there], "r": ["b"]}, {"q": [wanted], "r": ["b"]}
    assert not said(karat.evaluate(run, gold, metrics="rr"))
    queries = {there: ["b"], "r": ["b"]}, {wanted: ["b"], "r": ["b"]}
    assert not said(karat.evaluate(*queries, metrics="rr"))


def test_ids_of_a_file_in_another_form_are_noticed(tmp_path: Path) -> None:
    """Whichever queries come first in it."""
    run, gold = tmp_path / "a.run", tmp_path / "gold.qrels"
    rows = [(f"q{n}", f"D{n}" if n % 2 else f"d{n}") for n in range(8)]
    run.write_text("".join(f"{q} Q0 {d} 1 0.5 tag\n" for q, d in rows[::-1]))
    gold.write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(8)))
    result = karat.evaluate(run, gold, metrics="rr")
    assert result.means == {"rr": 0.5}
    assert said(result).startswith("4 gold ids are not in the run as written, but in ")
