"""CSV and TSV: rows of one document, samples with JSON in cells, and broken tables."""

import csv
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from karat import Run, evaluate
from karat.data.memory_runs import DocumentRun, ScoredRun
from karat.data.policies import CHOICES
from karat.extend import DataError, Document, FormatError, Policies
from karat.reading.delimited import LONG_CELLS
from karat.reading.readers import read, read_by
from karat.reading.trec import TrecRun

Save = Callable[[str, str | bytes], str]
Ids = Callable[[Run | None], dict[str, list[Any]]]


@pytest.mark.parametrize("between", [",", ";", "|", "\t"])
@pytest.mark.parametrize("name", ["run.csv", "run.tsv", "run.txt", "run"])
@pytest.mark.parametrize(
    "header",
    [
        ("qid", "docid", "score"),
        ("query_id", "doc_id", "Score"),
        ("Query-ID", "DocNo", "similarity"),
    ],
)
def test_scored_runs_are_known_by_their_header(
    between: str, name: str, header: tuple[str, ...], save: Save, ids: Ids
) -> None:
    rows = [header, ("q1", "d1", "0.5"), ("q1", "d2", "1e1"), ("q2", "d1", "-3")]
    loaded = read(save(name, "\n".join(map(between.join, rows))))
    assert isinstance(loaded.run, ScoredRun)
    assert ids(loaded.run) == {"q1": ["d2", "d1"], "q2": ["d1"]}
    assert loaded.format == ("tsv" if between == "\t" else "csv")
    assert loaded.mapping == dict(zip(("id", "document", "score"), header, strict=True))


def test_ranks_decide_where_there_is_no_score(save: Save, ids: Ids) -> None:
    loaded = read(save("a.csv", "qid,docid,rank\nq,a,3\nq,b,1\nq,c,2\n"))
    assert loaded.run is not None
    assert ids(loaded.run) == {"q": ["b", "c", "a"]}
    loaded = read(save("b.csv", "qid,docid,rank\nq,a,1\nq,b,1\nq,c,0\n"))
    assert ids(loaded.run) == {"q": ["c", "a", "b"]}
    assert loaded.run is not None
    assert [n.kind for n in loaded.run.notices({"q": {"a": 1.0}}, Policies())] == [
        "ties"
    ]


def test_rows_without_numbers_are_in_order(save: Save, ids: Ids) -> None:
    loaded = read(save("a.csv", "qid,docid\nq,b\nq,a\n"), role="run")
    assert ids(loaded.run) == {"q": ["b", "a"]}
    loaded = read(save("a.csv", "qid,docid\nq,b\nq,a\n"), role="gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q": {"b": 1.0, "a": 1.0}}
    with pytest.raises(FormatError, match="say whether run or gold"):
        read(save("a.csv", "qid,docid\nq,b\nq,a\n"))


def test_texts_of_documents_and_queries_are_kept(save: Save) -> None:
    text = 'qid,query,docid,score,text\nq,why?,a,1,"one, ""two"""\nq,why?,b,2,"x\ny"\n'
    loaded = read(save("a.csv", text))
    assert loaded.run is not None
    assert loaded.queries["q"].text == "why?"
    ((_, ranking),) = loaded.run.rankings(Policies())
    assert list(ranking) == [
        Document("b", "x\ny", 2.0),
        Document("a", 'one, "two"', 1.0),
    ]


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("query-id\tcorpus-id\tscore", None),
        ("query-id\tcorpus-id\tscore", "gold"),
        ("qid\tdocid\tgrade", None),
        ("qid\tdocid\trelevance", None),
        ("topic\tdocno\trel", None),
        ("qid\tdocid\tscore", "gold"),
    ],
)
def test_gold_tables(header: str, role: Any, save: Save) -> None:
    loaded = read(save("a.tsv", f"{header}\nq1\td1\t2\nq1\td2\t0\n"), role=role)
    assert loaded.run is None
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"d1": 2.0, "d2": 0.0}}
    assert loaded.mapping["grade"] == header.split("\t")[2]


def test_three_columns_without_a_header(save: Save, ids: Ids) -> None:
    path = save("a.tsv", "q1\td1\t2\nq1\td2\t1\n")
    loaded = read(path, role="gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"d1": 2.0, "d2": 1.0}}
    with pytest.raises(FormatError, match=r"no header.*--map id=1 .*rank=3"):
        read(path, role="run")
    for number, expected in (("score", ["d1", "d2"]), ("rank", ["d2", "d1"])):
        mapping = {"id": "1", "document": "2", number: "3"}
        assert ids(read(path, role="run", mapping=mapping).run) == {"q1": expected}


def test_samples_in_rows_with_json_in_cells(save: Save) -> None:
    path = save("a.csv", "")
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["id", "question", "retrieved", "relevant", "k", "tags", "note"]
        )
        found = json.dumps([{"id": "d1", "text": "a, b"}])
        writer.writerow(["q1", "why?", found, '{"d1": 2}', "3", "x;y", "n"])
        writer.writerow(["q2", "", "['d1', 'd2']", "d2", "", "", ""])
    loaded = read(path)
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"d1": 2.0}, "q2": {"d2": 1.0}}
    assert loaded.queries["q1"].k == 3
    assert loaded.queries["q1"].tags == ("x", "y")
    assert loaded.queries["q2"].text is None
    assert isinstance(loaded.run, DocumentRun)


def test_a_cell_may_be_long_and_the_module_s_limit_stays(save: Save) -> None:
    before = csv.field_size_limit()
    contexts = json.dumps(["word " * 100_000]).replace('"', '""')
    loaded = read(save("a.csv", f'id,contexts\nq,"{contexts}"\n'))
    assert isinstance(loaded.run, DocumentRun)
    assert csv.field_size_limit() == before


def test_a_table_of_systems_is_split_by_a_column(save: Save, ids: Ids) -> None:
    text = "qid,docid,score,system\nq,a,1,x\nq,b,2,x\nq,a,3,y\n"
    parts = read_by(save("a.csv", text), "system", role="run")
    assert {name: ids(part.run) for name, part in parts.items()} == {
        "x": {"q": ["b", "a"]},
        "y": {"q": ["a"]},
    }
    with pytest.raises(FormatError, match=r":4: .*'a' occurs twice.*--by COLUMN"):
        read(save("a.csv", text), role="run")
    with pytest.raises(FormatError, match=r"no field 'team' to split by; fields found"):
        read_by(save("a.csv", text), "team")


def test_each_part_of_a_table_tells_of_itself_alone(save: Save) -> None:
    text = "qid,docid,rank,system\nq,a,1,x\nq,b,1,x\nq,a,1,y\nq,b,1,y\nq,c,1,z\n"
    parts = read_by(save("a.csv", text), "system", role="run")
    told = {
        name: [n.count for n in part.run.notices({"q": {"a": 1.0}}, Policies())]
        for name, part in parts.items()
        if part.run is not None
    }
    assert told == {"x": [1], "y": [1], "z": []}


def test_the_mapping_names_columns(save: Save, ids: Ids) -> None:
    text = "frage,treffer,punkte\nq,a,1\nq,b,2\n"
    mapping = {"id": "frage", "document": "treffer", "score": "punkte"}
    assert ids(read(save("a.csv", text), mapping=mapping).run) == {"q": ["b", "a"]}
    with pytest.raises(
        FormatError, match=r"no column is called 'x'; columns found: fr"
    ):
        read(save("a.csv", text), mapping=mapping | {"score": "x"})


@pytest.mark.parametrize("column", ["score", "rank", "grade"])
def test_only_a_run_may_list_a_document_twice(column: str, save: Save) -> None:
    path = save("a.csv", f"qid,docid,{column}\nq,a,1\n\nq,a,2\n")
    gold = column == "grade"
    if gold:
        with pytest.raises(FormatError, match=r":4: .*'a' occurs twice, .* line 2$"):
            read(path, role="gold")
        return
    run, labels = read(path, role="run"), {"q": ["a"]}
    assert evaluate(run, gold=labels, metrics=["recall"]).means == {"recall": 1.0}
    with pytest.raises(DataError, match=r"'a' (is listed twice|was retr)"):
        evaluate(run, gold=labels, duplicates="error")


def test_a_refused_copy_is_named_by_its_line(save: Save) -> None:
    path = save("a.csv", "qid,docid,score\nq,a,1\nq,b,3\nq,a,2\n")
    with pytest.raises(FormatError, match=r":4: query 'q': .*'a' is listed .* line 2"):
        evaluate(path, gold={"q": ["b"]}, duplicates="error")


ROWS = st.lists(
    st.tuples(st.sampled_from("pq"), st.sampled_from("abcd"), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.sampled_from(CHOICES["duplicates"]), st.sampled_from(CHOICES["ties"]))
def test_repeated_documents_count_as_in_trec_files(
    rows: list[tuple[str, str, int]], duplicates: str, ties: str
) -> None:
    table = [{"qid": query, "docid": name, "score": n} for query, name, n in rows]
    trec = "".join(f"{query} Q0 {name} 0 {n} t\n" for query, name, n in rows)
    gold = {"p": {"a": 2, "b": 1}, "q": {"c": 1, "d": 0}}
    metrics = ["recall@2", "precision@3", "rr", "ap", "ndcg", "judged@3"]
    options: dict[str, Any] = {"duplicates": duplicates, "ties": ties, "force": True}

    def outcome(run: Any) -> Any:
        try:
            result = evaluate(run, gold=gold, metrics=metrics, **options)
        except FormatError:
            return "refused"
        return {n: repr(c.scores.tolist()) for n, c in result.columns.items()}

    assert outcome(table) == outcome(TrecRun(trec.encode()))


def test_copies_and_ties_of_a_table_are_counted(save: Save) -> None:
    rows = "q,a,3\nq,b,3\nq,a,1\nr,c,1\n"
    run = read(save("a.csv", f"qid,docid,score\n{rows}"), role="run")
    result = evaluate(run, gold={"q": ["b", "a"]}, metrics=["rr"])
    counts = {notice.kind: notice.count for notice in result.warnings}
    assert counts == {"ties": 2, "duplicates": 1, "extra": 1}
    result = evaluate(run, gold={"q": ["b"]}, metrics=["rr"])
    kinds = {notice.kind for notice in result.warnings}
    assert kinds == {"ties", "extra", "repeats"}
    assert result.means == {"rr": 1.0}
    assert evaluate(run, gold={"q": ["b"]}, metrics=["rr"], ties="input").means == {
        "rr": 0.5
    }


HEADER = "qid,docid,score\nq,a,1\n"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (HEADER + "q,b", 3, "has 2 cells, but there are 3 columns"),
        (HEADER + "q,b,1,", 3, "has 4 cells"),
        (HEADER + ",b,1", 3, "qid must be a string or an integer, got nothing"),
        (HEADER + "q,,1", 3, "docid must be a string"),
        (HEADER + "q,b,", 3, "score is empty; it must be a number"),
        (HEADER + "q,b,x", 3, "score must be a number, got str 'x'"),
        (HEADER + "q,b,1_0", 3, "score must be a number"),
        (HEADER + "q,b,nan", 3, "score must be a finite number"),
        (HEADER + "q,b,-inf", 3, "score must be a finite number"),
        (HEADER + "q,b,1e999", 3, "score must be a finite number"),
        (HEADER + 'q,"b,1\nq,c,2\n', 3, "broken row"),
        (HEADER + 'q,"b"x,1\n', 3, "broken row"),
        ("qid,docid,rank\nq,a,1.5", 2, "rank must be a whole number"),
        ("qid,docid,rank\nq,a,-1", 2, "rank must be a whole number"),
        ("qid,docid,score,score\nq,a,1,2", 1, "two columns are called 'score'"),
        (HEADER + "q,b," + "1," * 1_000_000, 3, "has 1000003 cells"),
        (",".join(f"c{n}" for n in range(1_000_000)), 1, "has 1000000 columns"),
        ('id,retrieved\nq,"[""a"""', 2, "query 'q': looks like a list"),
        ('id,retrieved\nq,"[""a"" ""b""]"', 2, "query 'q': looks like a list"),
    ],
)
def test_a_bad_row_is_named_by_its_line(
    text: str, line: int, problem: str, save: Save
) -> None:
    path = save("a.csv", text)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 500


def test_invalid_utf_8_names_its_line(save: Save) -> None:
    path = save("a.csv", HEADER.encode() + b"q,\xe9,1\n")
    with pytest.raises(FormatError, match=r"a\.csv:3: not valid UTF-8: byte 0xe9"):
        read(path)


@pytest.mark.parametrize(
    ("text", "role", "problem"),
    [
        ("qid,docid,score\n", None, "has a header but no rows"),
        ("qid,name,score\nq,a,1\n", "run", "no field holds retrieved documents"),
        ("docid,score\na,1\n", "run", "no column holds the query id; columns"),
        ("qid,docid,score,grade\nq,a,1,1\n", None, "holds both score and grade"),
        (
            "qid,docid,grade\nq,a,1\n",
            "run",
            "holds grades (grade), but no score or rank",
        ),
        ("qid,docid,score\nq,a,1\n", "samples", "holds a run or gold, not both"),
        ("a,b,c\nx,y,z\n", "gold", "no field holds gold; fields found: a, b, c"),
    ],
)
def test_a_table_that_does_not_fit_says_what_it_has(
    text: str, role: Any, problem: str, save: Save
) -> None:
    with pytest.raises(FormatError) as caught:
        read(save("a.csv", text), role=role)
    assert problem in str(caught.value)


def test_a_run_and_its_gold_may_be_one_table(save: Save) -> None:
    path = save("a.csv", "qid,docid,score,grade\nq,a,1,0\nq,b,2,1\n")
    assert read(path, role="run").run is not None
    gold = read(path, role="gold").gold
    assert gold is not None
    assert gold.documents == {"q": {"a": 0.0, "b": 1.0}}


def test_who_is_done_first_leaves_long_cells_to_the_others() -> None:
    before = csv.field_size_limit()
    first, second = ExitStack(), ExitStack()
    first.enter_context(LONG_CELLS)
    second.enter_context(LONG_CELLS)
    first.close()
    assert csv.field_size_limit() > before
    second.close()
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("name", ["queries.tsv", "queries.csv"])
def test_queries_need_no_header(name: str, save: Save) -> None:
    comma = "\t" if name.endswith("tsv") else ","
    rows = [("q01", "how to bake rye"), ("text", 'what is "rye"')]
    lines = (f"{query}{comma}{text}\n" for query, text in rows)
    loaded = read(save(name, "".join(lines)), role="queries")
    assert [(q.id, q.text) for q in loaded.queries.values()] == rows
    named = save(name, f"qid{comma}question\nq01{comma}how?\n")
    assert read(named, role="queries").queries["q01"].text == "how?"


def test_texts_between_tabs_may_begin_with_a_quote(save: Save) -> None:
    loaded = read(save("queries.tsv", '1\t"rye" meaning\n2\twhy\n'), role="queries")
    assert [q.text for q in loaded.queries.values()] == ['"rye" meaning', "why"]
