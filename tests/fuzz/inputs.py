"""Odd inputs, each made from a number: files, mappings, spellings and settings.

Half of an input is as it should be, so that it is read far enough for the other half
to matter. The same number always gives the same input.
"""

import bz2
import gzip
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa
import yaml
from pyarrow import parquet

from karat import evaluate, history, plan_labels
from karat.extend import workbench
from tests.fuzz.material import (
    ADDRESSES,
    ANSWERS,
    ASKED,
    CORPUS,
    DECISIONS,
    FIELDS,
    FILE_NAMES,
    HEADERS,
    LABELS,
    LETTERS,
    METRICS,
    NAMES,
    ODD,
    PAPERS,
    PARAMETERS,
    PIECES,
    QUESTIONS,
    RUN,
    SAMPLES,
    SETTINGS,
    SHAPES,
    STORE_USES,
    TABLES,
    TEXTS,
    TOKENS,
    VALUES,
    VERDICT,
    typed_columns,
)

__all__ = ["Case", "make_case"]

Files = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """An input.

    Attributes:
        kind: who reads it.
        files: what is in the folder; the first is what is read.
        role: what it is read as.
        mapping: what the user says of names.
        value: an object, a spelling or a list of arguments.
    """

    kind: str
    files: Files = field(default_factory=dict)
    role: str = "run"
    mapping: dict[str, str] = field(default_factory=dict)
    value: Any = None


def make_case(seed: int, number: int, only: str | None = None) -> Case:
    """The input of that number; `only` names a maker to take all of them from."""
    chance = Random(f"{seed}:{number}")
    makers: tuple[Callable[[Random], Case], ...] = (
        *(_text_file, _value_file, _value_file, _columns, _columns, _object),
        *(_saved, _saved, _settings, _spelling, _packed, _folder, _written),
        *(_store, _request, _request, _decisions, _plan, _address),
    )
    maker = chance.choice([m for m in makers if only in {None, m.__name__[1:]}])
    return maker(chance)


def _case(
    chance: Random, kind: str, files: Files, role: str, value: Any = None
) -> Case:
    mapping = {}
    if chance.random() < 0.1:
        for _ in range(chance.randint(1, 2)):
            theirs = chance.choice(
                (*FIELDS, "retrieved.id", "a.b.c", "1", "2", "", ".")
            )
            mapping[chance.choice(FIELDS)] = theirs
    if chance.random() < 0.25:
        role = chance.choice(("run", "gold", "samples", "corpus", "validate"))
    return Case(kind, files, role, mapping, value)


def _damaged(chance: Random, data: bytes, most: int = 4) -> bytes:
    """The bytes with some of them changed, cut out, repeated or put in."""
    result = bytearray(data)
    for _ in range(chance.randint(1, most)):
        at = chance.randrange(len(result) + 1)
        end = min(len(result), at + chance.choice((1, 1, 2, 4, 8, 64)))
        match chance.randrange(6):
            case 0:
                result[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
            case 1:
                del result[at:end]
            case 2:
                result[at:at] = chance.choice(TOKENS)
            case 3:
                result[at:at] = result[at:end] * chance.choice((1, 2, 50))
            case 4:
                result[at:end] = chance.choice((b"\xff", b"\0", b"\x7f")) * (end - at)
            case _ if chance.random() < 0.3:
                del result[at:]
    return bytes(result)


def changed(chance: Random, value: Any, most: int = 3) -> Any:
    """The value with some of its parts odd, missing or repeated."""
    result = [_copied(value)]
    for _ in range(chance.randint(1, most)):
        places: list[tuple[Any, Any]] = []
        _gather(result, places)
        holder, key = chance.choice(places)
        deed = chance.randrange(8)
        if deed == 0 and holder is not result:
            del holder[key]
        elif deed == 1 and isinstance(holder, list) and holder is not result:
            holder.append(_copied(holder[key]))
        elif deed == 2 and isinstance(holder, dict):
            name = chance.choice((*FIELDS, *(o for o in ODD if isinstance(o, str))))
            holder[name] = holder.pop(key)
        else:
            holder[key] = _odd(chance)
    return result[0]


def _odd(chance: Random) -> Any:
    if chance.random() < 0.3:
        return "".join(chance.choices(LETTERS, k=chance.randint(1, 8)))
    return _copied(chance.choice(ODD))


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    return [*map(_copied, value)] if isinstance(value, list | tuple) else value


def _gather(value: Any, places: list[tuple[Any, Any]]) -> None:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in pairs:
        places.append((value, key))
        if isinstance(entry, dict | list):
            _gather(entry, places)


def _text_file(chance: Random) -> Case:
    name, data = chance.choice(TEXTS)
    other = chance.choice(TEXTS)[0] if chance.random() < 0.1 else name
    return _case(chance, "file", {other: _damaged(chance, data, 2)}, _role(name))


def _role(name: str) -> str:
    return {"qrels": "gold", "queries": "corpus"}.get(
        role := name.partition(".")[0], role
    )


def _value_file(chance: Random) -> Case:
    role, shape = chance.choice(SHAPES)
    kind = chance.choice(("json", "jsonl", "yaml"))
    data = _dumped(changed(chance, shape), kind)
    return _case(chance, "file", {f"data.{kind}": data}, role)


def _dumped(value: Any, kind: str) -> bytes:
    if kind == "yaml":
        return yaml.dump(value, allow_unicode=False).encode("utf-8", "replace")
    rows = value if kind == "jsonl" and isinstance(value, list) else [value]
    return "\n".join(json.dumps(row, default=str) for row in rows).encode()


def _object(chance: Random) -> Case:
    role, shape = chance.choice(SHAPES)
    return _case(chance, "object", {}, role, changed(chance, shape))


def _columns(chance: Random) -> Case:
    kind = chance.choice(("parquet", "arrow", "stream"))
    if chance.random() < 0.5:
        number = chance.randrange(len(TABLES))
        data = _damaged(chance, _tables(kind)[number], 2)
        role = ("run", "run", "gold", "samples", "samples")[number]
        return _case(chance, "file", {FILE_NAMES[kind]: data}, role)
    role, table = chance.choice((("run", 0), ("gold", 2), ("samples", 3)))
    columns = {
        name: pa.array(["q1", "q1", "q2"]) for name in TABLES[table]().schema.names
    }
    for name in chance.choices([*columns], k=2):
        columns[name] = chance.choice(typed_columns())
    try:
        data = _stored(pa.table(columns), kind)
    except pa.ArrowException:  # a type that Parquet does not know
        data = _stored(pa.table(columns), "arrow")
    return _case(chance, "file", {FILE_NAMES[kind]: data}, role)


@cache
def _tables(kind: str) -> list[bytes]:
    return [_stored(make(), kind) for make in TABLES]


def _stored(table: Any, kind: str) -> bytes:
    sink = io.BytesIO()
    if kind == "parquet":
        # Uncompressed, so that damage reaches the values.
        parquet.write_table(table, sink, compression="NONE")
        return sink.getvalue()
    opened = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
    with opened(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@cache
def _evaluations() -> list[Any]:
    """Evaluations of several kinds in their saved form."""
    metrics = ["recall@5", "ndcg@k", "rr"]
    spans = ["recall[span]@5", "coverage@5"]
    one = evaluate(SAMPLES, metrics=metrics, keep=2).to_dict()
    judged = _copied(one)
    for matches in judged["evaluation"]["matches"].values():
        matches |= {"verdicts": {"0": [VERDICT]}, "usage": {"0": {}}}
    return [one, judged, evaluate(SAMPLES, metrics=spans).to_dict(), [one]]


def _saved(chance: Random) -> Case:
    saved = chance.choice(_evaluations())
    data = _dumped(changed(chance, saved, 1), "json")
    if chance.random() < 0.1:
        data = _damaged(chance, data)
    return Case("saved", {"saved.json": data})


def _settings(chance: Random) -> Case:
    """A command with odd options, and with odd settings of judging in a file."""
    command = chance.choice(("evaluate", "evaluate", *SETTINGS))
    section = SETTINGS[command]
    names = chance.sample([*section], min(len(section), chance.randint(1, 3)))
    settings: Any = {command: {name: _copied(section[name]) for name in names}}
    if chance.random() < 0.8:
        settings[command][chance.choice(names)] = _copied(chance.choice(ODD))
    else:
        settings = changed(chance, settings, 2)
    data = _dumped(settings, "yaml")
    if chance.random() < 0.2:
        data = _damaged(chance, data, 2)
    gold = {"q1": {"d1": 1}, "q2": {"d3": 1}}
    files = {"karat.yaml": data} | {
        name: _dumped(value, "json")
        for name, value in (
            ("run.json", RUN),
            ("other.json", {"q1": ["d2", "d1"], "q2": ["d3"]}),
            ("gold.json", gold),
            ("corpus.json", CORPUS),
            ("saved.json", _evaluations()[0]),
        )
    }
    command = "evaluate" if command == "judging" else command
    arguments = [command, "run.json"]
    if command in {"compare", "fuse", "convert"}:
        arguments.append("other.json")
    if command == "evaluate":
        arguments += ["--gold", "gold.json"]
    own = settings.get(command) if isinstance(settings, dict) else None
    if isinstance(own, dict):
        flags = ((str(name).replace("_", "-"), str(own[name])) for name in own)
        arguments += [f"--{name}={text}".replace("\0", "") for name, text in flags]
        files["karat.yaml"] = b"suites: {}"
    if chance.random() < 0.3:
        odd = chance.choice((*FIELDS, *METRICS, *PIECES, "id=", "=x", "x" * 300))
        arguments += ["--map", f"{chance.choice(FIELDS)}={odd}".replace("\0", "")]
    return Case("settings", files, value=arguments)


def _spelling(chance: Random) -> Case:
    """A metric with odd parameters, matcher and cutoff, or some letters changed."""
    name = chance.choice(METRICS)
    params = ", ".join(
        f"{chance.choice(PARAMETERS)}={chance.choice(VALUES)}"
        for _ in range(chance.choice((0, 0, 1, 1, 2)))
    )
    matcher = chance.choice(
        ("", "", "", "[id]", "[span]", "[exact]", "[fuzzy]", "[id()]")
    )
    cutoff = chance.choice(("", "@k", f"@{chance.choice(VALUES)}", "@5", "@10"))
    text = (
        f"{name}({params}){matcher}{cutoff}" if params else f"{name}{matcher}{cutoff}"
    )
    if chance.random() < 0.3:
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice((*PIECES, "")) + text[at + 1 :]
    return Case("spelling", value=text)


def _packed(chance: Random) -> Case:
    name, data = chance.choice(TEXTS)
    pack = chance.choice((gzip.compress, bz2.compress))
    ending = "gz" if pack is gzip.compress else "bz2"
    files = {f"{name}.{ending}": _damaged(chance, pack(data), 1)}
    return _case(chance, "file", files, _role(name))


def _folder(chance: Random) -> Case:
    """A BEIR folder, one of its files damaged."""
    files = {
        "beir/corpus.jsonl": _dumped(PAPERS, "jsonl"),
        "beir/queries.jsonl": b'{"_id": "q1", "text": "Which grain?"}\n',
        "beir/qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\n",
    }
    name = chance.choice([*files])
    files[name] = _damaged(chance, files[name], 2)
    return _case(chance, "folder", files, chance.choice(("gold", "corpus")))


def _written(chance: Random) -> Case:
    """Ids and texts that are written as tables and read again."""
    letters = LETTERS.replace("\0", "")
    texts = ["".join(chance.choices(letters, k=chance.randint(1, 6))) for _ in range(6)]
    return Case("written", value=[*dict.fromkeys(t.strip() or "x" for t in texts)])


@cache
def _history() -> bytes:
    """A store with two runs of two projects, labels, and two versions of gold."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        with history.open(path) as store:
            for project in ("help", "other"):
                for name in ("old", "new"):
                    rows = SAMPLES if name == "old" else SAMPLES[::-1]
                    metrics = ["rr", "ndcg@5"]
                    result = evaluate(rows, metrics=metrics, keep=5, name=name)
                    store.push(result, project=project, branch="main", at="2026-01-01")
                store.label(LABELS, project=project, at="2026-01-02")
        return path.read_bytes()


def _store(chance: Random) -> Case:
    """A history store that is damaged, or whose rows say something else."""
    data = _history()
    # Pages of all runs, the last of the uses, take as long as thirty of the others.
    uses = chance.sample(range(STORE_USES - 1), 5)
    uses += [STORE_USES - 1] * (chance.random() < 0.08)
    if chance.random() < 0.3:
        return Case("store", {"store.db": _damaged(chance, data, 2)}, value=uses)
    db = sqlite3.connect(":memory:")
    # A database in memory has no log beside it.
    db.deserialize(data[:18] + b"\1\1" + data[20:])
    tables = db.execute("select name from sqlite_master where type='table'").fetchall()
    for _ in range(chance.randint(1, 2)):
        (table,) = chance.choice(tables)
        columns = db.execute(f"select name from pragma_table_info('{table}')")
        (column,) = chance.choice(columns.fetchall())
        cells = db.execute(f"select {column} from {table}").fetchall()
        if not cells:
            continue
        (cell,) = chance.choice(cells)
        odd = _odd_cell(chance, cell)
        try:
            change = f"update or ignore {table} set {column}=? where {column} is ?"
            db.execute(change, (odd, cell))
        except (sqlite3.Error, OverflowError, UnicodeError):
            db.rollback()  # not a value of this column
    db.commit()
    data = db.serialize()
    db.close()
    return Case("store", {"store.db": data[:18] + b"\2\2" + data[20:]}, value=uses)


def _odd_cell(chance: Random, cell: Any) -> Any:
    """Another value for a cell: of any kind, damaged, or odd inside."""
    if isinstance(cell, bytes) and chance.random() < 0.6:
        return _damaged(chance, cell, 1)
    if isinstance(cell, str) and cell[:1] in ("{", "[") and chance.random() < 0.7:
        with suppress(ValueError):  # it may be odd already
            return _dumped(changed(chance, json.loads(cell), 1), "json").decode()
    odd = chance.choice(ODD)
    return odd if isinstance(odd, bytes | int | float | str | None) else str(odd)


@cache
def _routes() -> list[tuple[str, str]]:
    routes: Any = workbench("none.db").routes
    ways = [(m, one.path) for one in routes for m in sorted(one.methods or ["GET"])]
    # What makes the demo takes nothing, and half a second.
    return [*(way for way in ways if way[1] != "/demo"), ("GET", "/demo")]


def _text(chance: Random, good: tuple[str, ...]) -> str:
    """One of the texts that are as they should be, or an odd one."""
    return chance.choice(good) if chance.random() < 0.7 else str(_odd(chance))


_REQUESTS = 20


def _request(chance: Random) -> Case:
    """Some requests to a server: method, address, headers and body."""
    sent = []
    for _ in range(_REQUESTS):
        method, path = chance.choice(_routes())
        project = _text(chance, ("help", "other"))
        for part in [p for p in path.split("/") if p.startswith("{")]:
            own = project if part == "{project}" else _text(chance, NAMES)
            quoted = quote(own, safe="", errors="surrogatepass")
            path = path.replace(part, quoted if chance.random() < 0.95 else own)
        pairs = [
            (chance.choice((*ASKED, *FIELDS)), _text(chance, NAMES))
            for _ in range(chance.choice((0, 1, 2, 2, 3, 4)))
        ]
        asked = urlencode(pairs, errors="surrogatepass").encode()
        address = path.encode("utf-8", "surrogatepass")
        if chance.random() < 0.1:
            # No server hands on an address with a space or a line break in it.
            address = b"".join(_damaged(chance, address, 1).split())
        if chance.random() < 0.1:
            asked = _damaged(chance, asked, 1)
        body = b"" if method in {"GET", "HEAD"} else _body(chance, path, asked)
        headers = {"host": "127.0.0.1"}
        if chance.random() < 0.3:
            name = chance.choice([*HEADERS])
            headers[name] = _text(chance, HEADERS[name])
            if headers.get("content-encoding") == "gzip":
                body = gzip.compress(body, mtime=0)
                body = _damaged(chance, body, 1) if chance.random() < 0.5 else body
        sent.append((method, address, asked, headers, body))
    return Case("request", {"store.db": _history()}, value=sent)


def _body(chance: Random, path: str, asked: bytes) -> bytes:
    value: Any = chance.choice(_evaluations()) if "runs" in path else LABELS
    if chance.random() < 0.7:
        value = changed(chance, value, 2)
    data = asked if path.startswith(("/settings", "/demo")) else _dumped(value, "json")
    return _damaged(chance, data, 2) if chance.random() < 0.15 else data


def _rows(chance: Random, good: Any, *, odd: bool) -> bytes:
    data = _dumped(changed(chance, good) if odd else good, "jsonl")
    return _damaged(chance, data, 2) if odd and chance.random() < 0.2 else data


def _decisions(chance: Random) -> Case:
    """Generated questions, and what people decide on them; one of both is odd."""
    which = chance.random() < 0.5
    files = {
        "questions.jsonl": _rows(chance, QUESTIONS, odd=which),
        "decisions.jsonl": _rows(chance, DECISIONS, odd=not which),
    }
    arguments = ["label", "apply", *files, "-o", "kept.jsonl"]
    if which and chance.random() < 0.4:
        arguments = ["label", "questions.jsonl", "-o", "check.html"]
    return Case("decisions", files, value=arguments)


@cache
def _plans() -> list[Any]:
    judged = {f"q{n}": {"d1": n % 2, "d2": 1, "d3": 0} for n in range(12)}
    run = {query: ["d2", "d1"] for query in judged}
    plans = [
        plan_labels(judged, [run], budget=30, pairs=pairs) for pairs in (False, True)
    ]
    people = {
        "q0": {"d1": 0, "d2": 1, "d3": 0},
        **{f"q{n}": {"d1": 1, "d2": 0, "d3": 0} for n in range(1, 12)},
    }
    return [judged, people, run, *(plan.rows() for plan in plans)]


def _plan(chance: Random) -> Case:
    """Labels of a judge and of people, a run and a plan; one of them is odd."""
    judged, people, run, *plans = _plans()
    goods = (judged, people, run, chance.choice(plans))
    names = ("judged.json", "people.json", "run.json", "todo.jsonl")
    odd = chance.choice((0, 1, 2, 3, 3, 3))
    files = {
        name: _rows(chance, good if name == "todo.jsonl" else [good], odd=number == odd)
        for number, (name, good) in enumerate(zip(names, goods, strict=True))
    }
    budget = _text(chance, ("30", "12", "1000"))
    metric = chance.choice(("precision@2", "rr", "ndcg@2", "dcg@2"))
    three = [f"--{name.partition('.')[0]}={name}" for name in names[:2]]
    value = chance.choice(
        (
            ["plan", *names[:1], *names[2:3], "--budget", budget, "-o", "new.jsonl"],
            ["plan", *names[:1], *names[2:3], "--budget=30", "--pairs", "-o", "n.csv"],
            ["new", "todo.jsonl", "-o", "label.html"],
            ["apply", "todo.jsonl", "-o", "gold.json"],
            *[["run.json", *three, "--plan", "todo.jsonl", "-m", metric]] * 4,
        )
    )
    start = "evaluate" if value[0] == "run.json" else "label"
    return Case("plan", files, value=[start, *(v.replace("\0", "") for v in value)])


def _address(chance: Random) -> Case:
    """The address of a retriever, put together of odd parts."""
    parts = [good[0] for good in ADDRESSES]
    for place in chance.choices(range(len(parts)), k=chance.choice((1, 1, 2))):
        parts[place] = chance.choice(ADDRESSES[place])
    if chance.random() < 0.2:
        parts[chance.randrange(len(parts))] = str(chance.choice(ODD))
    text = "".join(parts)
    if chance.random() < 0.2:
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice((*PIECES, "{", "%", "#", "\u2028")) + text[at:]
    arguments = [
        "retrieve",
        f"--http={text}",
        "--queries=queries.jsonl",
        "--output=run.jsonl",
    ]
    if chance.random() < 0.3:
        body: Any = {"q": "{query}", "n": ["{k}"]}
        body = changed(chance, body) if chance.random() < 0.3 else body
        arguments.append(f"--body={_dumped(body, 'json').decode()}")
    if chance.random() < 0.2:
        arguments.append(f"--header={_text(chance, ('X-Key', 'Host'))}:{text[:40]}")
    arguments += ["--max-attempts=1", "--timeout=1", "-k2"]
    asked = ("rye", str(chance.choice(ODD)).strip() or "oats")
    queries = [{"id": f"q{n}", "query": text} for n, text in enumerate(asked)]
    answer = _dumped(changed(chance, chance.choice(ANSWERS)), "json")
    if chance.random() < 0.2:
        answer = _damaged(chance, answer, 2)
    status = chance.choice((200, 200, 200, 200, 204, 301, 404, 429, 500, 999))
    files = {
        "queries.jsonl": _dumped(queries, "jsonl"),
        "answer": f"{status} ".encode() + answer,
    }
    return Case("address", files, value=[a.replace("\0", "") for a in arguments])
