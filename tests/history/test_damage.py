"""Stores that are old, damaged or not karat's, and what a caller gets wrong."""

import sqlite3
import zlib
from pathlib import Path
from typing import Any

import pytest

from karat import evaluate
from karat.extend import DataError, UnknownNameError
from karat.history import Store
from tests.history.test_store import DOCUMENTS, METRICS, QUERIES, label, result


def test_a_store_of_0_2_0_opens(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    db = sqlite3.connect(path)
    db.executescript((Path(__file__).parent / "store-0.2.0.sql").read_text("utf-8"))
    db.execute("pragma application_id=1801548385")
    db.execute("pragma user_version=1")
    db.close()
    with Store(path) as store:
        (run,) = store.runs()
        assert run.means == {"rr": 0.75, "ndcg@5": 0.8154648767857288}
        assert store.evaluation(run.id).means == run.means
        assert store.evaluation(run.id).kept["q0"][0].text == "Rye is a grain."
        store.undo(1, who="ann")
        assert store.runs()[0].means["rr"] == 0.5


def use_all(path: Path) -> None:
    """Read every table of a store, and write to it."""
    with Store(path) as store:
        store.evaluation(store.runs()[0].id)
        store.label([label("q0", "d7", 3)])
        store.tokens.find("secret")
        store.push(result(dict.fromkeys(QUERIES, DOCUMENTS[:4])))


@pytest.mark.parametrize(
    "change",
    [
        "text set body=x'00'",
        "text set body='Rye.'",
        "document set place='['",
        "query set tags='[[1]]'",
        "query set gold='{'",
        "query set name='other'",
        "query_set set ids='{\"q0\": 1}'",
        "run set documents=x'00'",
        "run set depth=2147483648",
        "run set head='[]'",
        "run set name=x'ff'",
        "score set value=x'00'",
        "score set mean='high'",
        "project set version='new'",
        "document set id=2147483648 where id=8",
        "run set scores=x''",
        "run set query_set=7",
        'query_set set ids=\'["q0", "q0", "q1", "q2"]\'',
        'query set gold=\'{"documents": "x"}\'',
        "score set metric='rr@5' where metric='rr'",
    ],
)
def test_rows_that_karat_did_not_write_are_a_sentence(
    tmp_path: Path, change: str
) -> None:
    path = tmp_path / "history.db"
    documents = [{"id": d, "text": d, "source": "s", "start": 1} for d in DOCUMENTS]
    samples = [{"id": q, "retrieved": documents, "relevant": ["d1"]} for q in QUERIES]
    with Store(path) as store:
        store.push(evaluate(samples, metrics=METRICS, keep=20))
    db = sqlite3.connect(path)
    db.execute(f"update or ignore {change}")
    db.commit()
    db.close()
    with pytest.raises(DataError, match=r"history\.db: "):
        use_all(path)


def test_gold_of_a_query_says_nothing_of_others(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Store(path) as store:
        store.push(result(dict.fromkeys(QUERIES, DOCUMENTS)))
    db = sqlite3.connect(path)
    db.execute('update query set gold=replace(gold, \'["q0"]\', \'["q0", "other"]\')')
    db.commit()
    db.close()
    with Store(path) as store:
        assert [*store.evaluation(1).facts] == store.evaluation(1).queries == QUERIES


def test_a_text_is_unpacked_no_further_than_it_may_be_long(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    sample = {"id": "q", "retrieved": [{"id": "a", "text": "A."}], "relevant": ["a"]}
    with Store(path) as store:
        store.push(evaluate([sample], metrics=["rr"], keep=5))
    db = sqlite3.connect(path)
    for size in (2**26, 2**26 + 1):
        db.execute("update text set body=?", (zlib.compress(bytes(size)),))
        db.commit()
        with Store(path) as store:
            if size == 2**26:
                assert len(store.texts(["a"])["a"]) == size
                continue
            with pytest.raises(DataError, match="more than 67,108,864"):
                store.evaluation(1)
    db.close()
    sample["retrieved"] = [{"id": "a", "text": "a" * (2**26 + 1)}]
    with Store(path) as store, pytest.raises(DataError, match="may have 67,108,864"):
        store.push(evaluate([sample], metrics=["rr"], keep=5))


def test_a_token_of_a_project_that_is_not_there_opens_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Store(path) as store:
        secret = store.tokens.add("ann", "read", "help")
    db = sqlite3.connect(path)
    db.execute("update token set project=7")
    db.commit()
    db.close()
    with Store(path) as store:
        assert (store.tokens.find(secret), store.tokens.every()) == (None, [])


def test_a_view_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    Store(path).close()
    db = sqlite3.connect(path)
    db.execute("alter table score rename to old")
    db.execute("create view score as select * from old")
    db.close()
    with pytest.raises(DataError, match=r"history\.db: its table 'sqlite_master'"):
        Store(path)


@pytest.mark.parametrize(
    "odd",
    [
        {"document": {"id": "d1"}},
        {"document": 5},
        {"document": "", "text": ""},
        {"query": ""},
        {"grade": 10**400},
        {"grade": float("inf")},
        {"grade": float("nan")},
        {"grade": True},
        {"who": " "},
        {"why": "\ud800"},
    ],
)
def test_a_label_that_is_none_does_not_blame_the_store(
    store: Store, odd: dict[str, Any]
) -> None:
    store.push(result({"q0": ["d0"]}))
    with pytest.raises(DataError) as caught:
        store.label([{**label("q0", "d0", 1), **odd}])
    assert "damaged" not in str(caught.value)
    assert store.labels() == []


@pytest.mark.parametrize(
    "odd", [{"id": "q\0"}, {"tags": ["\0"]}, {"retrieved": [{"id": "a\0b"}]}]
)
def test_no_name_ends_early(store: Store, odd: dict[str, Any]) -> None:
    sample = {"id": "q", "retrieved": [{"id": "a"}], "relevant": ["a"]}
    with pytest.raises(DataError, match="holds a NUL, which no store takes"):
        store.push(evaluate([{**sample, **odd}], metrics=["rr"], keep=5, force=True))


def test_what_a_run_lacks_is_named(store: Store) -> None:
    store.push(result({"q0": ["d0"]}))
    with pytest.raises(UnknownNameError, match="unknown query 'x'"):
        store.evaluation(1, "x")
    with pytest.raises(DataError, match="half a character"):
        store.runs("\ud800")


def test_a_damaged_file_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Store(path) as store:
        store.push(result(dict.fromkeys(QUERIES, DOCUMENTS)))
        store.tokens.add("ann", "read")
    data = path.read_bytes()
    size = 4096
    for page in range(1, len(data) // size):
        path.write_bytes(data[: page * size] + b"\xff" * size + data[-size:])
        with pytest.raises(DataError, match=r"history\.db: "):
            use_all(path)
