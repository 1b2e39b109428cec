"""The REST interface, as openapi.json describes it; pages show what it answers."""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from karat.comparison.compare import compare
from karat.data.queries import Dataset
from karat.data.tables import counted, number
from karat.errors import FormatError, UnknownNameError
from karat.history.scoring import Change
from karat.history.store import Rescored
from karat.reading.files import decode_json, decode_text
from karat.reading.write import write
from karat.reports.details import Details, Text
from karat.results.leaderboard import Leaderboard
from karat.results.loading import from_bytes
from karat.version import __version__
from karat.web.call import Call
from karat.web.frame import json_answer
from karat.web.guard import segment
from karat.web.queue import next_facts
from karat.web.views import run_names

_FORMS = {"qrels": "trec_qrels", "jsonl": "jsonl", "json": "json"}
_LATEST = "latest"
_NEXT = 20


def health() -> Response:
    """That the server is up."""
    return json_answer({"status": "ok", "karat": __version__})


def push_run(call: Call) -> Response:
    """Store a run: 201, or 200 where it had been stored before."""
    call.desk.count_upload(call.caller.name)
    result = from_bytes(call.body, "the upload")
    call.desk.limits.check(result)
    commit, branch = (call.asked.get(name, "") for name in ("commit", "branch"))
    pushed = call.store.push(result, project=call.project, commit=commit, branch=branch)
    (run,) = (r for r in call.store.runs(call.project) if r.id == pushed.run)
    address = f"/p/{segment(call.project)}/runs/{run.id}"
    facts = {**pushed._asdict(), "means": run.means, "page": address}
    return json_answer(facts, 201 if pushed.is_new else 200)


def list_runs(call: Call) -> Response:
    """The runs, the oldest first."""
    return json_answer({"runs": [asdict(run) for run in call.runs()]})


def get_run(call: Call) -> Response:
    """One run as it would be evaluated today."""
    number = call.run(call.names["run"]).id
    content = call.store.evaluation(number).to_json()
    return Response(content, media_type="application/json")


def get_comparison(call: Call) -> Response:
    """The second run against the first."""
    runs = (call.run(call.names[name]) for name in ("first", "second"))
    compared = compare(*(call.store.scores(run.id) for run in runs))
    return json_answer(compared.to_dict())


def get_query(call: Call) -> Response:
    """One query in the runs `?runs=1,2`: by default in the last two."""
    return json_answer(query_facts(call))


def add_labels(call: Call) -> Response:
    """Add a label, or a list of them."""
    sent = decode_json(decode_text(call.body))
    rows = sent if isinstance(sent, list) else [sent]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise FormatError("labels are an object, or a list of objects")
    for row in rows:
        for name in ("query", "document", "text", "why", "who"):
            if not isinstance(row.get(name) or "", str):
                raise FormatError(f"{name} must be a text, got {row[name]!r:.80}")
            if len(row.get(name) or "") > call.desk.limits.text:
                longest = f"{call.desk.limits.text:,} characters"
                raise FormatError(f"{name} may have {longest}")
        # Only who may do everything may hand in the labels of others.
        if call.caller.role != "admin" or "who" not in row:
            row["who"] = call.caller.name
    return _rescored(call, call.store.label(rows, project=call.project))


def undo_label(call: Call) -> Response:
    """Take one's own label back."""
    label, who = call.whole("label", 0), call.caller.name
    return _rescored(call, call.store.undo(label, who=who, project=call.project))


def get_next(call: Call) -> Response:
    """What to label next, and on what people disagree."""
    return json_answer(next_facts(call, call.whole("n", _NEXT)))


def get_gold(call: Call) -> Response:
    """The gold of a version, as `7.qrels` or `latest.jsonl`."""
    name, _, form = call.names["file"].rpartition(".")
    if form not in _FORMS or not (
        name == _LATEST or (name.isdigit() and name.isascii())
    ):
        known = [f"{_LATEST}.{form}" for form in _FORMS]
        raise UnknownNameError("file of gold", call.names["file"], known)
    version = None if name == _LATEST else int(name[:9])
    data = io.BytesIO()
    write(
        Dataset(gold=call.store.gold(call.project, version)), data, _FORMS[form], "gold"
    )
    disposition = f'attachment; filename="gold-{name}.{form}"'
    headers = {"content-disposition": disposition}
    return Response(data.getvalue(), headers=headers, media_type="text/plain")


def get_gold_changes(call: Call) -> Response:
    """The grades that differ between two versions of the gold."""
    earlier, later = (call.whole(name, 0) for name in ("earlier", "later"))
    changes = call.store.gold_changes(earlier, later, call.project)
    return json_answer({"changes": [one._asdict() for one in changes]})


def query_facts(call: Call) -> dict[str, Any]:
    """A query with its gold, labels, and what runs retrieved for it."""
    name = call.names["query"]
    scores = call.store.query_scores(name, call.project)
    if not scores:
        raise UnknownNameError("query", name, call.store.questions(call.project))
    every = call.asked.get("runs", "").split(",")
    chosen = [text for text in dict.fromkeys(every) if text]
    known = {str(number): number for number in scores}
    if unknown := [text for text in chosen if text not in known]:
        raise UnknownNameError("run", unknown[0], known)
    numbers = [known[text] for text in chosen[:6]] or [*scores][-2:]
    named = {run.id: run for run in call.store.runs(call.project)}
    details = Details(
        Leaderboard({str(n): call.store.evaluation(n, name) for n in numbers})
    )
    row, said = details.query(name)
    items = [item for item, _, number in row["gold"] if number is None]
    texts = call.store.texts(items, call.project)
    fact = details.facts.get(name)
    return {
        "query": name,
        "question": fact.text if fact else None,
        "tags": [*fact.tags] if fact else [],
        "gold": [
            {
                "item": item,
                "grade": grade,
                "text": texts.get(item) if number is None else said[number][1],
            }
            for item, grade, number in sorted(row["gold"], key=lambda item: -item[1])
        ],
        "runs": [
            {
                "run": number,
                "name": named[number].name,
                "scores": scores[number],
                "ranking": _ranking(system, said, row["gold"]),
            }
            for number, system in zip(numbers, row["systems"], strict=True)
        ],
        "scores": scores,
        "labels": [label._asdict() for label in call.store.labels(call.project, name)],
    }


def _ranking(
    system: Mapping[str, Any], said: Sequence[Text], gold: Sequence[tuple[Any, ...]]
) -> list[dict[str, Any]]:
    ranking: list[dict[str, Any]] = []
    grades = {item: grade for item, grade, _ in gold}
    found: dict[int, float] = {}
    for rank, item in system["found"]:
        found[rank] = max(found.get(rank, gold[item][1]), gold[item][1])
    scores = system.get("scores") or [None] * len(system["ranking"])
    pairs = zip(system["ranking"], scores, strict=True)
    for rank, (place, score) in enumerate(pairs, 1):
        document, text = said[place]
        grade = found.get(rank, grades.get(document or ""))
        own = (e for e in system.get("evidence", ()) if e[0] == rank)
        spans = sorted(span for _, _, ranges, *_ in own for span in ranges)
        facts = {"document": document, "text": text, "score": score, "grade": grade}
        ranking.append({**facts, "evidence": spans})
    return ranking


def _rescored(call: Call, done: Rescored) -> Response:
    facts = {**done._asdict(), "changes": [one._asdict() for one in done.changes]}
    return json_answer({**facts, "message": _message(call, done.changes)})


def _message(call: Call, changes: Iterable[Change]) -> str:
    """What a label came to, in a sentence for each metric."""
    by_metric: dict[str, list[Change]] = {}
    for change in changes:
        by_metric.setdefault(change.metric, []).append(change)
    names = run_names(call.store.runs(call.project))
    said = []
    for metric, own in by_metric.items():
        last = max(own)
        moved = f"{names[last.run]} {number(last.before)} -> {number(last.after)}"
        said.append(f"{metric} of {counted(len(own), 'run')} changed, {moved}")
    return "; ".join(said) or "no mean changed"
