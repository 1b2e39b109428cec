"""Mistakes that once gave a wrong number without a word."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import karat
from karat import Evaluation
from karat.errors import MissingFieldError
from karat.extend import DataError, FormatError, MismatchError, UsageError
from karat.reading.meaning.values import unpack
from tests.reading.conftest import Save

Record = dict[str, Any]


def said(result: Evaluation, kind: str) -> str:
    """The one notice of a kind."""
    (notice,) = (notice for notice in result.warnings if notice.kind == kind)
    return str(notice)


@pytest.mark.parametrize("field", ["answer", "response", "actual_output"])
def test_a_generated_answer_is_never_gold(field: str) -> None:
    sample = {"id": "q1", "contexts": ["Shipping is free.", "Refunds in 30 days."]}
    generated = {field: "Shipping is free."}
    with pytest.raises(MismatchError, match="no gold id occurs"):
        karat.evaluate([{**sample, **generated, "relevant": ["refunds.md"]}])
    with pytest.raises(DataError, match=f"--map answers={field}"):
        karat.evaluate([{**sample, **generated}])
    mapping = {"answers": field}
    result = karat.evaluate([{**sample, **generated}], mapping=mapping, metrics=["rr"])
    assert result.means == {"rr": 1.0}


def test_labels_beat_answers_even_where_no_id_matches() -> None:
    sample = {"retrieved": [{"id": "a", "text": "It is Paris."}], "answers": ["Paris"]}
    with pytest.raises(MismatchError, match="no gold id occurs"):
        karat.evaluate([{**sample, "relevant": ["other-7"]}], metrics=["rr"])


@pytest.mark.parametrize(
    "column", ["is_relevant", "human_score", "relevant", "Relevance-Label"]
)
@pytest.mark.parametrize("labels", [("0", "1"), ("False", "True"), ("no", "yes")])
def test_grade_0_is_not_relevant_in_a_table(
    save: Save, column: str, labels: tuple[str, str]
) -> None:
    no, yes = labels
    gold = save("gold.csv", f"query_id,doc_id,{column}\nq1,a,{no}\nq1,b,{yes}\n")
    result = karat.evaluate({"q1": ["a", "b"]}, gold=gold, metrics=["rr"])
    assert result.means == {"rr": 0.5}


@pytest.mark.parametrize("field", ["rating", "is_relevant", "humanScore", "label"])
def test_grade_0_is_not_relevant_inside_a_list(field: str) -> None:
    wanted = [{"id": "a", field: 0}, {"id": "b", field: 3}]
    sample = {"id": "q1", "retrieved": ["a", "b"], "relevant": wanted}
    assert karat.evaluate([sample], metrics=["rr"]).means == {"rr": 0.5}


def test_grades_may_be_listed_beside_the_ids() -> None:
    sample = {"id": "q1", "retrieved": ["a", "b"], "relevant_ids": ["a", "b"]}
    result = karat.evaluate([{**sample, "relevance_scores": [0, 3]}], metrics=["rr"])
    assert result.means == {"rr": 0.5}
    with pytest.raises(FormatError, match="as long as that of the relevant documents"):
        karat.evaluate([{**sample, "relevance_scores": [0]}])


def test_numbers_that_may_be_grades_are_named(save: Save) -> None:
    csv = save("gold.csv", "query_id,doc_id,verdict\nq1,a,0\nq1,b,1\n")
    rows = [
        {"query_id": "q1", "doc_id": "a", "verdict": 0},
        {"query_id": "q1", "doc_id": "b", "verdict": 1},
    ]
    nested = {"q1": [{"id": "a", "verdict": 0}, {"id": "b", "verdict": 1}]}
    pandas = pytest.importorskip("pandas")
    for gold in (csv, rows, nested, pandas.DataFrame(rows)):
        result = karat.evaluate({"q1": ["a", "b"]}, gold=gold, metrics=["rr"])
        assert said(result, "unread") == (
            "2 values of 'verdict' are not read as a grade, every gold id counts as "
            "relevant; --map grade=verdict reads them (for example 0, 1)"
        )
        mapping = {"grade": "verdict"}
        result = karat.evaluate(
            {"q1": ["a", "b"]}, gold=gold, metrics=["rr"], mapping=mapping
        )
        assert result.means == {"rr": 0.5}
        assert not result.warnings


def test_a_list_of_numbers_beside_a_list_of_ids_is_named() -> None:
    sample = {"id": "q", "retrieved": ["a"], "relevant": ["a", "b"], "stars": [0, 3]}
    result = karat.evaluate([sample], metrics=["rr"])
    assert "--map relevant_grades=stars" in said(result, "unread")
    mapping = {"relevant_grades": "stars"}
    assert karat.evaluate([sample], metrics=["rr"], mapping=mapping).means["rr"] == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['d3' 'd1']", ["d3", "d1"]),
        ("['d3'\n 'd1']", ["d3", "d1"]),
        ("[\"it's\" 'd 1']", ["it's", "d 1"]),
        ("[3 1]", [3, 1]),
        ("[0.5  0.  ]", [0.5, 0.0]),
    ],
)
def test_arrays_are_read_as_pandas_writes_them(text: str, value: list[Any]) -> None:
    assert unpack(text) == value


def test_an_array_that_was_shortened_is_refused() -> None:
    with pytest.raises(FormatError, match="shortened by NumPy"):
        unpack("['d1' 'd2' ... 'd998' 'd999']")


@pytest.mark.parametrize("cell", ["d3 d1", "d3;d1"])
def test_ids_joined_by_anything_are_noticed(save: Save, cell: str) -> None:
    run = save("run.csv", f"id,retrieved\nq1,{cell}\n")
    result = karat.evaluate(run, gold={"q1": ["d1"]}, metrics=["rr"], force=True)
    assert "read as one id" in said(result, "joined")


GOLD = {"q": ["a"]}
TABLE = "query_id,doc_id,score,rank\nq,a,0.12,1\nq,b,0.5,2\n"
LINES = "q Q0 a 1 0.12 x\nq Q0 b 2 0.5 x\n"


def test_scores_that_rise_may_be_distances(save: Save) -> None:
    scores = {"q": {"a": 0.12, "b": 0.55}}
    rows = "query_id,doc_id,score\nq,a,0.12\nq,b,0.55\n"
    for run in (scores, save("run.csv", rows)):
        result = karat.evaluate(run, gold=GOLD, metrics=["rr"])
        assert "order='ascending' (--order ascending)" in said(result, "order")
        assert result.means == {"rr": 0.5}
        result = karat.evaluate(run, gold=GOLD, metrics=["rr"], order="ascending")
        assert result.means == {"rr": 1.0}
        assert said(result, "order") == "1 ranking is ordered by score, smaller first"


def test_scores_that_rise_for_some_queries_only_are_scores() -> None:
    run = {"q": {"a": 0.1, "b": 0.5}, "r": {"a": 0.5, "b": 0.1}}
    assert not karat.evaluate(run, gold={"q": ["a"], "r": ["a"]}).warnings


def table_of(
    rows: list[tuple[str, str, float]], save: Save, name: str = "distance"
) -> list[Any]:
    pandas = pytest.importorskip("pandas")
    columns = dict(
        zip(("query_id", "doc_id", name), zip(*rows, strict=True), strict=True)
    )
    lines = [f"query_id,doc_id,{name}", *(",".join(map(str, row)) for row in rows)]
    csv = save("run.csv", "\n".join(lines) + "\n")
    return [csv, pandas.DataFrame(columns), {n: [*c] for n, c in columns.items()}]


def test_distances_are_ranked_from_the_smallest_and_that_is_said(save: Save) -> None:
    unsorted = [("q", "b", 0.55), ("q", "a", 0.12), ("q", "c", 0.9)]
    for run in table_of(unsorted, save):
        result = karat.evaluate(run, gold=GOLD, metrics=["rr"])
        assert result.means == {"rr": 1.0}
        ranked = "1 query is ranked by 'distance', smaller first (for example q)"
        assert said(result, "distance") == ranked
        for order, mean in (("ascending", 1.0), ("descending", 1 / 3)):
            result = karat.evaluate(run, gold=GOLD, metrics=["rr"], order=order)
            assert result.means == {"rr": pytest.approx(mean)}
            assert [notice.kind for notice in result.warnings] == ["order"]


@pytest.mark.parametrize(
    ("name", "rows", "why"),
    [
        (
            "distance",
            [("q", "a", 0.9), ("q", "b", 0.2), ("r", "c", 0.8), ("r", "d", 0.8)],
            "larger ones come first in the order given",
        ),
        (
            "cosine_distance",
            [("q", "b", -0.4), ("q", "a", 0.9)],
            "a distance of that name is not -0.4",
        ),
        ("L2 distance", [("q", "b", 3.0), ("q", "a", -3.0), ("q", "c", 5.0)], "not -3"),
    ],
)
def test_values_that_are_no_distances_are_an_error_that_names_order(
    name: str, rows: list[tuple[str, str, float]], why: str, save: Save
) -> None:
    gold = {"q": ["a"], "r": ["c"]}
    for run in table_of(rows, save, name):
        mapping = {"distance": name}
        with pytest.raises(FormatError) as caught:
            karat.evaluate(run, gold=gold, metrics=["rr"], mapping=mapping)
        assert why in str(caught.value)
        assert f"ranked by {name!r}, smaller first" in str(caught.value)
        assert "order='descending' (--order descending)" in str(caught.value)
        for order in ("ascending", "descending"):
            karat.evaluate(run, gold=gold, metrics=["rr"], mapping=mapping, order=order)


def test_a_list_against_its_distances_is_noticed() -> None:
    ranking = [{"id": "b", "distance": 0.55}, {"id": "a", "distance": 0.12}]
    result = karat.evaluate({"q": ranking}, gold=GOLD, metrics=["rr"])
    assert said(result, "order").startswith(
        "1 list is ranked in the order given, the larger 'distance' first (karat "
        "evaluate --order descending puts the smaller first)"
    )
    result = karat.evaluate(
        {"q": ranking}, gold=GOLD, metrics=["rr"], order="descending"
    )
    assert result.means == {"rr": 1.0}
    result = karat.evaluate({"q": ranking[::-1]}, gold=GOLD, metrics=["rr"])
    assert not result.warnings


def test_ranks_against_scores_are_noticed(save: Save) -> None:
    pandas = pytest.importorskip("pandas")
    rows = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [0.12, 0.5]}
    frame = pandas.DataFrame({**rows, "rank": [1, 2]})
    for run in (save("run.csv", TABLE), frame, save("run.trec", LINES)):
        result = karat.evaluate(run, gold=GOLD, metrics=["rr"])
        assert result.means == {"rr": 0.5}
        assert "1 query has ranks that are not what its scores say" in said(
            result, "order"
        )
        result = karat.evaluate(run, gold=GOLD, metrics=["rr"], order="ascending")
        assert result.means == {"rr": 1.0}
    for run in (save("run.csv", TABLE), frame):
        mapping = {"rank": "rank"}
        result = karat.evaluate(run, gold=GOLD, metrics=["rr"], mapping=mapping)
        assert (result.means, result.warnings) == ({"rr": 1.0}, ())


def test_order_needs_scores() -> None:
    with pytest.raises(UsageError, match="ranked as given"):
        karat.evaluate({"q": ["a"]}, gold=GOLD, order="ascending")
    with pytest.raises(UsageError, match="one of descending, ascending"):
        karat.evaluate({"q": {"a": 1.0}}, gold=GOLD, order="up")


class Row(NamedTuple):
    """A row as ir_datasets has it."""

    query_id: str
    doc_id: str
    score: float


def test_rows_may_be_tuples() -> None:
    gold = [("q", "a", 1), ("q", "b", 0)]
    run = [("q", "b", 0.5), ("q", "a", 0.3)]
    named = [Row(*row) for row in run]
    for rows in (run, iter(run), named, [list(row) for row in run]):
        result = karat.evaluate(rows, gold=gold, metrics=["rr"])
        assert (result.means, result.warnings) == ({"rr": 0.5}, ())


def test_columns_in_a_mapping_are_not_queries() -> None:
    run = {"qid": ["q", "q"], "docno": ["b", "a"], "score": [0.5, 0.3]}
    assert karat.evaluate(run, gold=GOLD, metrics=["rr"]).means == {"rr": 0.5}


def test_docno_is_the_id_of_pyterriers_frames() -> None:
    pandas = pytest.importorskip("pandas")
    rows = {"qid": ["q", "q"], "docid": [3, 4], "docno": ["b", "a"], "rank": [0, 1]}
    frame = pandas.DataFrame({**rows, "score": [0.5, 0.3], "query": ["rye"] * 2})
    assert karat.evaluate(frame, gold=GOLD, metrics=["rr"]).means == {"rr": 0.5}


def test_texts_are_texts_as_dictionaries_and_as_files(save: Save) -> None:
    gold = {"q": ["The cat sat on the mat today", "Dogs bark at night in town"]}
    run = {"q": ["Dogs bark at night in town.", "The cat sat on the mat today, too."]}
    files = [save(f"{i}.json", json.dumps(data)) for i, data in enumerate([run, gold])]
    for match in ("auto", "chunk"):
        result = karat.evaluate(run, gold=gold, metrics=["recall"], match=match)
        assert result.means == {"recall": 1.0}
        other = karat.evaluate(files[0], gold=files[1], metrics=["recall"], match=match)
        assert (other.means, other.matchers) == (result.means, result.matchers)


def test_titles_are_ids_where_the_run_has_ids() -> None:
    title = "History of the rye bread"
    run = [{"id": "q", "retrieved_ids": ["Rye", title]}]
    result = karat.evaluate(run, gold={"q": [title]}, metrics=["rr"])
    assert (result.means, result.matchers) == ({"rr": 0.5}, {"rr": "id"})


@pytest.mark.parametrize(
    ("wanted", "retrieved"),
    [
        ("A.md", "a.md"),
        ("d 1 ", "d 1"),
        ("007", "7"),
        ("1.0", "1"),
        ("./docs/a.md", "docs/a.md"),
        ("docs/a.md", "a.md"),
        ("a.md", "docs/a.md"),
        ("a.md", "a.md#3"),
        ("a.md_chunk_3", "a.md"),
        ("caf\u00e9", "cafe\u0301"),
        ("https://karat.example/a/", "https://karat.example/a"),
        ("a b.md", "a%20b.md"),
        ("docs/a.md", "docs\\a.md"),
        ("d1", "d1.txt"),
        ("a.md", "a"),
        ("1", "doc_1"),
        ("doc-01", "1"),
        ("doc_1", "doc-1"),
        ("d1", "'d1'"),
        ("120000", "1.2E+05"),
    ],
)
def test_ids_in_another_form_are_noticed(wanted: str, retrieved: str) -> None:
    run, gold = {"q": [retrieved], "r": ["b"]}, {"q": [wanted], "r": ["b"]}
    result = karat.evaluate(run, gold=gold, metrics=["rr"])
    notice = said(result, "near misses")
    assert notice.startswith("1 gold id is not in the run as written, but ")
    assert notice.endswith(f"(for example {wanted!r} and {retrieved!r})"), notice
    with pytest.raises(MismatchError, match="is there as"):
        karat.evaluate({"q": [retrieved]}, gold={"q": [wanted]})


@pytest.mark.parametrize("rows", [3, 30_000])
def test_ids_in_another_form_are_noticed_in_files_and_tables(
    rows: int, tmp_path: Path
) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    queries = [f"q{number % 50}" for number in range(rows)]
    documents = ["DOC-A" if number < 2 else f"d{number}" for number in range(rows)]
    gold = {"q0": ["doc-a"], "q1": ["doc-a"], "q2": ["d2"]}
    lines = zip(queries, documents, range(rows), strict=True)
    trec = tmp_path / "system.run"
    trec.write_text("".join(f"{q} Q0 {d} 1 {-n} t\n" for q, d, n in lines))
    frame = pd.DataFrame({"qid": queries, "docno": documents, "score": range(rows)})
    parquet = tmp_path / "system.parquet"
    frame.to_parquet(parquet)
    for run in (trec, parquet, frame):
        result = karat.evaluate(run, gold=gold, metrics=["rr"])
        assert said(result, "near misses") == (
            "2 gold ids are not in the run as written, but in another case, "
            "spacing or number form (for example 'doc-a' and 'DOC-A', 'doc-a' and "
            "'DOC-A')"
        )
    with pytest.raises(MismatchError, match="'doc-a' is there as 'DOC-A'"):
        karat.evaluate(trec, gold={"q0": ["doc-a"]})


def test_other_ids_are_no_near_misses() -> None:
    run, gold = {"q": ["doc-5", "b"]}, {"q": ["doc-3", "b"]}
    assert not karat.evaluate(run, gold=gold).warnings


def test_ids_in_another_field_name_the_option() -> None:
    document = {"id": "u1", "text": "Rye.", "metadata": {"source": "a.md"}}
    gold = {"q": ["a.md"], "r": ["b"]}
    run = {"q": [document], "r": [{"id": "b", "text": "Oats."}]}
    result = karat.evaluate(run, gold=gold, metrics=["rr"])
    assert "--map document=metadata.source" in said(result, "near misses")
    with pytest.raises(MismatchError, match=r"--map document=metadata\.source"):
        karat.evaluate({"q": [document]}, gold={"q": ["a.md"]})
    mapping = {"document": "metadata.source"}
    for one in (document, Retrieved()):
        result = karat.evaluate(
            {"q": [one]}, gold={"q": ["a.md"]}, metrics=["rr"], mapping=mapping
        )
        assert result.means == {"rr": 1.0}
        with pytest.raises(MissingFieldError, match=r"metadata\.nonsense"):
            karat.evaluate(
                {"q": [one]},
                gold={"q": ["a.md"]},
                mapping={"document": "metadata.nonsense"},
            )


class Retrieved:
    """A document as LangChain has it."""

    page_content = "Rye."

    def __init__(self) -> None:
        self.metadata = {"source": "a.md"}


def test_all_samples_in_one_line_of_json_lines(save: Save) -> None:
    samples = [
        {"id": "q", "retrieved": ["b", "a"], "relevant": ["a"]},
        {"id": "r", "retrieved": ["a"], "relevant": ["a"]},
    ]
    path = save("samples.jsonl", json.dumps(samples))
    assert karat.evaluate(path, metrics=["rr"]).means == {"rr": 0.75}


def test_retrieved_ids_have_the_texts_of_a_corpus() -> None:
    corpus = {"a": "Oats.", "b": "Rye is a grain of the north."}
    sample = {"id": "q", "retrieved": ["a", "b"], "passages": [corpus["b"]]}
    result = karat.evaluate([sample], corpus=corpus, metrics=["coverage", "rr"])
    assert result.means == {"coverage": 1.0, "rr": 0.5}


def test_gold_that_is_in_no_corpus_is_reported() -> None:
    corpus = iter([{"id": "a", "text": "Rye."}])
    result = karat.evaluate({"q": ["a"]}, gold={"q": ["a", "z"]}, corpus=corpus)
    text = "1 relevant document is not in the corpus (for example z)"
    assert said(result, "corpus") == text


def test_answers_are_whole_words() -> None:
    sample = {"id": "q", "contexts": ["I know it."], "answers": ["no"]}
    assert karat.evaluate([sample], metrics=["containment@5"]).means == {
        "containment@5": 0.0
    }
    asked = "hit[contains(boundary=none)]@5"
    assert karat.evaluate([sample], metrics=[asked]).means == {asked: 1.0}


def test_a_text_in_place_of_a_path_is_not_printed_back() -> None:
    text = '{"schema_version": 2}\n' * 400
    for read in (karat.load, karat.read_run):
        with pytest.raises(FormatError, match="is a text of 8800 characters") as caught:
            read(text)
        assert len(str(caught.value)) < 200


def test_a_board_says_how_many_queries_each_mean_holds() -> None:
    gold = {"q": {"a": 1}, "r": {"b": 0}}
    runs = {"x": {"q": ["a"], "r": ["b"]}, "y": {"q": ["b"], "r": ["a"]}}
    metrics = ["rr", "ap", "ndcg_any@5"]
    board = karat.leaderboard(runs, gold=gold, metrics=metrics)
    table = board.summary(None)
    assert ": 1 of 2 queries (1 undefined)" in table.title
    cells = [[*row] for row in table.rows]
    assert [", n " in cell for cell in cells[0][1:4]] == [False, False, True]
    assert cells[0][3].endswith(", n 2")


def test_stars_are_not_all_good() -> None:
    run, stars = {"q": ["x", "a"]}, {"q": {"a": 5, "x": 1}}
    said_of = said(karat.evaluate(run, gold=stars, metrics=["rr"]), "grades")
    assert said_of.startswith("2 gold items have grades from 1 to 5 and none is 0")
    result = karat.evaluate(run, gold=stars, metrics=["rr"], threshold=4)
    assert (result.means, result.warnings) == ({"rr": 0.5}, ())
    for plain in ({"a": 3, "x": 1}, {"a": 5, "x": 0}):
        assert not karat.evaluate(run, gold={"q": plain}, metrics=["rr"]).warnings


def test_the_page_of_a_document_is_no_other_document() -> None:
    run = {"q": ["report.pdf#page=3"], "r": ["b"]}
    result = karat.evaluate(run, gold={"q": ["report.pdf"], "r": ["b"]}, metrics=["rr"])
    assert "with a chunk's number behind it" in said(result, "near misses")


@pytest.mark.parametrize(
    "gold",
    [
        [("q1", "0", "a", 1), ("q1", "0", "x", 0), ("q2", "0", "b", 2)],
        [("q1", "a", 1, "0"), ("q1", "x", 0, "0"), ("q2", "b", 2, "0")],
        [["q1", 0, "a", 1], ["q1", 0, "x", 0], ["q2", 0, "b", 2]],
    ],
)
def test_rows_as_in_trec_files_are_rows(gold: list[Any]) -> None:
    run = [
        ("q1", "Q0", "x", 1, 9.0, "tag"),
        ("q1", "Q0", "a", 2, 8.0, "tag"),
        ("q2", "Q0", "b", 1, 9.0, "tag"),
    ]
    result = karat.evaluate(run, gold=gold, metrics=["rr"])
    assert result.means == {"rr": 0.75}


def test_ranks_and_distances_beside_a_list_are_heeded() -> None:
    ranked = [{"id": "a", "rank": 2}, {"id": "x", "rank": 1}]
    result = karat.evaluate({"q": ranked}, gold={"q": ["a"]}, metrics=["rr"])
    assert "its ranks say otherwise" in said(result, "order")
    sample = {"id": "q", "retrieved": ["x", "a"], "relevant": ["a"]}
    for beside in ({"distances": [0.9, 0.1]}, {"scores": [0.1, 0.9]}):
        result = karat.evaluate([sample | beside], metrics=["rr"])
        assert "its scores say otherwise" in said(result, "order")
        result = karat.evaluate([sample | beside], metrics=["rr"], order="descending")
        assert result.means == {"rr": 1.0}


@pytest.mark.parametrize("name", ["dist_l2", "bm25"])
def test_numbers_that_may_be_scores_are_named(name: str, save: Save) -> None:
    rows = [{"qid": "q", "docno": "a", name: 0.1}, {"qid": "q", "docno": "x", name: 2}]
    table = save("run.csv", f"qid,docno,{name}\nq,a,0.1\nq,x,2\n")
    for run in (rows, table, pytest.importorskip("pandas").DataFrame(rows)):
        result = karat.evaluate(run, gold={"q": ["a"]}, metrics=["rr"])
        assert f"--map score= or distance={name} reads" in said(result, "unread")
        mapped = karat.evaluate(
            run, gold={"q": ["a"]}, metrics=["rr"], mapping={"score": name}
        )
        assert (mapped.means, result.means) == ({"rr": 0.5}, {"rr": 1.0})


def test_words_are_grades_or_named(save: Save) -> None:
    rows = "\nq,a,{}\nq,x,{}\n"
    for good, bad in (("up", "down"), ("relevant", "not relevant"), ("Good", "bad")):
        gold = save("gold.csv", "qid,docno,label" + rows.format(good, bad))
        assert karat.evaluate({"q": ["x", "a"]}, gold=gold, metrics=["rr"]).means == {
            "rr": 0.5
        }
        gold = save("gold.csv", "qid,docno,vote" + rows.format(good, bad))
        result = karat.evaluate({"q": ["x", "a"]}, gold=gold, metrics=["rr"])
        assert "--map grade=vote reads them" in said(result, "unread")


def test_grades_under_a_misspelt_name_are_refused_where_0_would_count(
    save: Save,
) -> None:
    rows = "\nq,a,1\nq,x,0\n"
    gold = save("gold.csv", "qid,docno,relevence" + rows)
    for given in (gold, [{"qid": "q", "docno": "x", "relevence": 0}]):
        with pytest.raises(FormatError, match="--map grade=relevence"):
            karat.evaluate({"q": ["x", "a"]}, given)
    mapped = karat.evaluate(
        {"q": ["x", "a"]}, gold, metrics="rr", mapping={"grade": "relevence"}
    )
    assert mapped.means == {"rr": 0.5}


def _depths(*sizes: int) -> tuple[dict[str, list[str]], ...]:
    """A run of 30 queries for each depth."""
    return tuple(
        {f"q{n}": [f"d{n}_{place}" for place in range(size)] for n in range(30)}
        for size in sizes
    )


def test_a_cutoff_below_which_nothing_was_retrieved_is_noticed() -> None:
    short, long = _depths(10, 50)
    gold = {f"q{n}": [f"d{n}_3", f"d{n}_40"] for n in range(30)}
    result = karat.evaluate(short, gold, metrics="recall@10,recall@50")
    assert said(result, "depth") == (
        "30 queries hold fewer documents than recall@50 reads, nearly all 10 or less"
    )
    assert not karat.evaluate(short, gold, metrics="recall@10").warnings
    assert not karat.evaluate(long, gold, metrics="recall@50").warnings
    # Some queries have little to find; most tell how deep the run is.
    mixed = {**long, **{f"q{n}": [f"d{n}_3"] for n in range(10)}}
    assert not karat.evaluate(mixed, gold, metrics="recall@50").warnings
    letter = karat.evaluate(short, gold, metrics="recall@k", k=20)
    assert "than recall@k reads" in said(letter, "depth")
    compared = karat.compare(short, long, gold=gold, metrics="recall@50")
    assert "depth: queries hold fewer documents than recall@50 reads" in str(compared)


def test_repeated_documents_among_the_first_are_noticed() -> None:
    """They push out what might be relevant, though none is."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    run = {"q": ["x"] * 5 + ["a"], "r": ["b"]}
    gold = {"q": ["a"], "r": ["b"]}
    rows = [
        {"query": q, "document": d, "score": -place}
        for q, ranking in run.items()
        for place, d in enumerate(ranking)
    ]
    for data in (run, rows, pd.DataFrame(rows)):
        result = karat.evaluate(data, gold, metrics="hit@5")
        assert result.means == {"hit@5": 0.5}
        assert "1 query repeats documents among" in said(result, "repeats")
        collapsed = karat.evaluate(data, gold, metrics="hit@5", duplicates="collapse")
        assert (collapsed.means, collapsed.warnings) == ({"hit@5": 1.0}, ())
    late = {"q": ["a", *(f"d{n}" for n in range(10)), "d3"]}
    assert not karat.evaluate(late, {"q": ["a"]}, metrics="rr").warnings


@pytest.mark.parametrize("grades", [(0.05, 0.95), (5, 95), (0.2, 1.0)])
def test_grades_that_may_mean_no_are_noticed(grades: tuple[float, float]) -> None:
    gold = {"q": dict(zip(("a", "x"), grades, strict=True))}
    result = karat.evaluate({"q": ["a", "x"]}, gold, metrics="rr")
    assert "--threshold" in said(result, "grades")
    sure = {"q": {"a": 0.5, "x": 1.0}}
    assert not karat.evaluate({"q": ["a", "x"]}, sure, metrics="rr").warnings


def test_one_document_has_no_order() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    run = {"q1": {"a": 0.1, "b": 0.2}, **{f"r{n}": {"a": 0.5} for n in range(9)}}
    rows = [
        {"query": q, "document": d, "score": s}
        for q, row in run.items()
        for d, s in row.items()
    ]
    gold = {query: ["a"] for query in run}
    for data in (run, rows, pd.DataFrame(rows)):
        result = karat.evaluate(data, gold, metrics="rr")
        assert said(result, "order").startswith("1 query has scores that rise")
