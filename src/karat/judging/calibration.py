"""Calibration: what people say of claims, and what is kept of how a judge compares.

The outcome is kept beside the journal, so that later evaluations by the same judge are
called calibrated.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karat.data.tables import counted, number
from karat.errors import FormatError
from karat.judging.agreement import Agreement
from karat.reading.files import decode_json, decode_text, open_binary
from karat.reading.source import placed
from karat.writing import write_file

_FILE = "calibration.json"
_IDS = ("id", "query_id", "qid")


def read_claim_labels(path: str | os.PathLike[str]) -> dict[str, dict[str, bool]]:
    """What people say of claims, from JSON Lines.

    A line is a sample: its id, and `claims` of which each has a `text` and `supported`.
    """
    with open_binary(path) as stream:
        lines = stream.read().split(b"\n")
    labels: dict[str, dict[str, bool]] = {}
    for line, data in enumerate(lines, 1):
        if not data.strip():
            continue
        try:
            query, claims = _read_sample(decode_json(decode_text(data, line), line))
        except FormatError as error:
            raise placed(error, path=os.fspath(path), line=line) from None
        labels.setdefault(query, {}).update(claims)
    if not any(labels.values()):
        raise FormatError("holds no claims", path=os.fspath(path))
    return labels


def _read_sample(record: Any) -> tuple[str, dict[str, bool]]:
    sample = record if isinstance(record, Mapping) else {}
    query = next((sample[key] for key in _IDS if key in sample), None)
    entries = sample.get("claims")
    if query is None or not isinstance(entries, list):
        raise FormatError("a line must be an object with an id and claims")
    claims = {}
    for entry in entries:
        facts = entry if isinstance(entry, Mapping) else {}
        text, supported = facts.get("text"), facts.get("supported")
        if not isinstance(text, str) or not isinstance(supported, bool):
            raise FormatError("a claim must have a text, and supported: true or false")
        claims[text] = supported
    return str(query), claims


def save_calibration(
    agreement: Agreement, judge: Mapping[str, Any], journal: Path
) -> None:
    """Keep how far a judge agrees with people, beside the journal of its replies."""
    path = journal.with_name(_FILE)
    judge = json.loads(json.dumps(judge))
    others = [entry for entry in _read_calibrations(path) if entry["judge"] != judge]
    others.append({"judge": judge, "agreement": agreement.to_dict()})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(others, indent=2) + "\n")


def calibration_of(judge: Mapping[str, Any], journal: Path | None) -> str | None:
    """In a sentence how far a judge agrees with people; None where it is not known."""
    if journal is None:
        return None
    for entry in _read_calibrations(journal.with_name(_FILE)):
        if entry["judge"] == json.loads(json.dumps(judge)):
            facts = entry["agreement"]
            kappa, (*_, error) = facts["kappa"], facts["recall"]
            return (
                f"against people on {counted(facts['n'], 'claim')}: kappa "
                f"{number(kappa)}, context_recall off by {number(error['rate'])} "
                "on average"
            )
    return None


def _read_calibrations(path: Path) -> list[Any]:
    if not path.exists():
        return []
    entries: list[Any] = decode_json(decode_text(path.read_bytes()))
    return entries
