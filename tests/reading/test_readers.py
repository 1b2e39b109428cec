"""Runs, gold and samples read from files and from objects of any shape."""

import importlib.metadata
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import karat
from karat import Run
from karat.catalogue import Catalogue
from karat.errors import MissingFieldError
from karat.extend import DataError, Format, FormatError, Policies, Source
from karat.reading import format as formats
from karat.reading.format import choose_format

Save = Callable[[str, str | bytes], str]
Ids = Callable[[Run | None], dict[str, list[Any]]]

RANKING = {"q1": ["b", "a"]}
SAMPLES = [{"id": "q1", "retrieved": ["b", "a"], "relevant": ["a"]}]


@pytest.mark.parametrize(
    "run",
    [
        RANKING,
        {"q1": np.array(["b", "a"])},
        {"q1": (name for name in ("b", "a"))},
        ({"id": q, "retrieved": iter(names)} for q, names in RANKING.items()),
        {"q1": {"a": np.float32(0.25), "b": np.float64(0.5)}},
        {"q1": [SimpleNamespace(id="b"), SimpleNamespace(id="a")]},
        pd.DataFrame({"qid": ["q1", "q1"], "uid": ["a", "b"], "score": [1.0, 2.0]}),
        SAMPLES,
    ],
)
def test_runs_come_in_many_shapes(run: Any, ids: Ids) -> None:
    assert ids(karat.read_run(run)) == RANKING


def test_arrays_without_ids_are_rankings_by_position(ids: Ids) -> None:
    run = karat.read_run(np.array([["b", "a"], ["c", "d"]]))
    assert ids(run) == {"0": ["b", "a"], "1": ["c", "d"]}
    result = karat.evaluate(np.array([["b", "a"]]), gold=[["a"]], metrics="rr")
    assert result.means == {"rr": 0.5}


def test_files_are_read_alike(save: Save, ids: Ids) -> None:
    run = save("a.run", "q1 Q0 b 1 2 t\nq1 Q0 a 2 1 t\n")
    gold = save("a.qrels", "q1 0 a 1\n")
    samples = save("a.yaml", "- {id: q1, retrieved: [b, a], relevant: [a]}\n")
    assert ids(karat.read_run(run)) == RANKING
    assert karat.read_gold(gold).documents == {"q1": {"a": 1.0}}
    data = karat.read_samples(samples)
    assert isinstance(data, karat.Dataset)
    assert ids(data.run) == RANKING
    assert data.gold is not None
    for wrong in (gold, {"q1": 5}, open):
        with pytest.raises(DataError):
            karat.read_run(wrong)
    with pytest.raises(FormatError, match="is a TREC run, but gold was asked for"):
        karat.read_gold(run)


def test_several_systems_are_told_apart(save: Save, ids: Ids) -> None:
    rows = [
        {"qid": "q1", "doc_id": name, "score": 1.0, "system": system}
        for system, name in (("x", "a"), ("y", "b"))
    ]
    path = save("a.csv", "qid,doc_id,score,system\nq1,a,1,x\nq1,b,1,y\n")
    for source in (path, rows, pd.DataFrame(rows)):
        runs = karat.read_run(source, by="system")
        assert {name: ids(run)["q1"] for name, run in runs.items()} == {
            "x": ["a"],
            "y": ["b"],
        }


def test_a_run_is_no_saved_evaluation(save: Save) -> None:
    for name, text, what in (
        ("a.trec", "q1 Q0 b 1 2 t\n", r"is a run, not a saved .*karat\.read_run"),
        ("a.json", '{"q1": {"d1": 0.5}}', r"is a run, not a saved .*read_run"),
        ("a.qrels", "q1 0 a 1\n", r"is gold, not a saved evaluation.*read_gold"),
        ("a.jsonl", '{"retrieved": ["a"], "relevant": ["a"]}\n', "read_samples"),
    ):
        with pytest.raises(FormatError, match=what):
            karat.load(save(name, text))


class Toml(Format):
    """Samples in TOML, as somebody else may write it."""

    name = "toml"
    extensions = (".toml",)

    def records(self, source: Source) -> Any:
        """The tables called sample."""
        return tomllib.loads(source.read().decode())["sample"]


@pytest.mark.parametrize("plugin", [Toml, Toml()])
def test_a_plug_in_is_known_by_its_extension(
    plugin: Any, save: Save, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = SimpleNamespace(name="toml", module="m", value="m:t", load=lambda: plugin)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: [point])
    fresh: Catalogue[Format] = Catalogue(
        "format",
        {name: known.home for name, known in formats.SHIPPED.items()},
        "karat.formats",
        formats.FORMATS.make,
    )
    monkeypatch.setattr(formats, "FORMATS", fresh)
    text = "[[sample]]\nid = 'q1'\nretrieved = ['b', 'a']\nrelevant = ['a']\n"
    data = karat.read_samples(save("s.toml", text))
    assert data.format == "toml"
    assert ids(data.run) == RANKING
    assert ids(karat.read_run(save("s.txt", text), format="toml")) == RANKING


@pytest.mark.parametrize(
    ("name", "text", "module"),
    [
        ("two.jsonl", '{"id": 1, "retrieved": ["a"]}\n' * 2, "json_text"),
        ("a.run", "q1 Q0 a 1 0.5 t\n", "trec"),
        ("a.csv", "query_id,doc_id,score\nq1,a,1\n", "delimited"),
    ],
)
def test_choosing_a_format_loads_no_other(
    save: Save, name: str, text: str, module: str
) -> None:
    homes = {known.home.partition(":")[0] for known in formats.SHIPPED.values()}
    code = (
        "import sys; from karat.reading.format import choose_format; "
        f"choose_format({text.encode()!r}, {str(save(name, text))!r}); "
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert homes & {*done.stdout.split()} == {f"karat.reading.{module}"}


def test_an_entry_point_is_what_plug_ins_name() -> None:
    point = EntryPoint("toml", f"{__name__}:Toml", "karat.formats")
    assert point.load() is Toml


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("a.json", b"a: b\n", "json"),
        ("a.jsonl", b"a,b\n", "jsonl"),
        ("a.csv", b"hello\n", "csv"),
        ("a.csv", b"qid\tdoc_id\tscore\n", "tsv"),
        ("a.tsv.gz", b"q1\tQ0\td1\t1\t0.5\tt\n", "trec_run"),
        ("a.tsv", b"q1\t0\td1\t1\n", "trec_qrels"),
        ("a.json", b'{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("a.jsonl", b'{\n"a": 1}\n', "json"),
        ("a.yaml", b'{"a": 1}\n', "yaml"),
        ("a.run", b'{"q1": {"d1": 1.0}}', "json"),
        ("a.run", b"whatever it is\n", "trec_run"),
        ("a.unheard", b"q1 0 d1 1\n", "trec_qrels"),
    ],
)
def test_the_extension_chooses_and_content_decides_between_claims(
    name: str, head: bytes, format: str
) -> None:
    assert choose_format(head, name).name == format


HITS = {"q1": [{"key": {"uid2": "b"}, "sim": 0.9}, {"key": {"uid2": "a"}, "sim": 0.1}]}
OBJECTS = {
    query: [SimpleNamespace(key=hit["key"], sim=hit["sim"]) for hit in hits]
    for query, hits in HITS.items()
}
PAIRS = {query: [(hit, hit.sim) for hit in hits] for query, hits in OBJECTS.items()}


@pytest.mark.parametrize(
    "run",
    [
        HITS,
        OBJECTS,
        PAIRS,
        [*HITS.values()],
        [{"id": "q1", "top": HITS["q1"]}],
        [{"id": "q1", "top": OBJECTS["q1"]}],
        pd.DataFrame({"id": ["q1"], "top": [HITS["q1"]]}),
        pa.table({"id": ["q1"], "top": [HITS["q1"]]}),
    ],
)
def test_names_reach_into_documents_of_every_shape(run: Any) -> None:
    mapping = {"document": "key.uid2", "score": "sim"}
    read = karat.read_run(run, mapping=mapping)
    ((_, documents),) = read.rankings(Policies())
    assert [(d.id, d.score) for d in documents] == [("b", 0.9), ("a", 0.1)]
    with pytest.raises(MissingFieldError, match=r"'key\.no'; fields found: (key|id), "):
        karat.read_run(run, mapping={**mapping, "document": "key.no"})


@pytest.mark.parametrize(
    "run", [RANKING, {"q1": {"a": 1.0}}, [["a"]], [{"id": "q1", "retrieved": ["a"]}]]
)
def test_a_name_that_nothing_has_is_an_error_in_every_shape(run: Any) -> None:
    with pytest.raises(MissingFieldError, match="field 'nr'"):
        karat.read_run(run, mapping={"document": "nr"})


def test_a_path_that_ends_nowhere_is_an_error(save: Save) -> None:
    records = [{"id": "q1", "out": {"hits": ["a"]}, "relevant": ["a"]}]
    with pytest.raises(MissingFieldError, match=r"'out\.his'; fields found: id, out"):
        karat.evaluate(records, mapping={"retrieved": "out.his"})
    run = save("a.run", "q1 Q0 b 1 2 t\n")
    with pytest.raises(MissingFieldError, match="there is no field 'nr'"):
        karat.read_run(run, mapping={"id": "nr"})
    gold = [{"nr": "q1", "relevant": ["b"]}]
    result = karat.evaluate(run, gold=gold, metrics="rr", mapping={"id": "nr"})
    assert result.means == {"rr": 1.0}


@pytest.mark.parametrize("name", ["passage_id", "node_id", "uid", "docId"])
def test_ids_have_the_same_names_everywhere(name: str, save: Save) -> None:
    rows = [{"query_id": "q1", name: "b", "score": 2.0}]
    nested = [{"id": "q1", "retrieved": [{name: "b"}]}]
    gold = [{"id": "q1", "relevant": [{name: "b", "grade": 2}]}]
    table = save("a.csv", f"query_id,{name},grade\nq1,b,2\n")
    for run in (rows, nested, pd.DataFrame(rows)):
        for truth in (gold, table):
            assert karat.evaluate(run, gold=truth, metrics="rr").means == {"rr": 1.0}


def test_warnings_do_not_depend_on_the_format(save: Save) -> None:
    table = "qid,doc_id,rank\nq1,a,1\nq1,b,1\nq2,a,1\n"
    text = "qid,doc_id,score,text\nq1,a,1,x\nq1,b,1,y\nq2,a,1,z\n"
    frame = pd.read_csv(save("a.csv", table))
    gold = {"q1": ["a"]}
    warnings = [
        [str(w) for w in karat.evaluate(run, gold=gold, metrics="rr").warnings]
        for run in (save("a.csv", table), frame, frame.to_dict("records"))
    ]
    assert warnings[0] == warnings[1] == warnings[2]
    assert any(w.startswith("1 relevant document shares its") for w in warnings[0])
    scored = karat.evaluate(save("b.csv", text), gold=gold, metrics="rr")
    assert {w.kind for w in scored.warnings} == {"ties", "extra"}
