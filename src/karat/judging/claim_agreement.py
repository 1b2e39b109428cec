"""Agreement on claims: how far a judge's verdicts are those of people.

What people say is a mapping from query to claim to whether the contexts support it; a
file of it can be read, and the outcome is kept beside the journal, so that later
evaluations by the same judge are called calibrated.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.judgements import Verdict
from karat.data.tables import Table, counted, number
from karat.errors import DataError, FormatError
from karat.judging.agreement import middle, rater_alphas
from karat.judging.agreement_figures import Rate, figure_facts, plain, rate_of
from karat.reading.decoding import decode_json, decode_text
from karat.reading.streams import open_binary
from karat.stats.agreement import AgreementFigures, agreement_figures
from karat.writing import write_file

ClaimLabels = Mapping[str, Mapping[str, bool]]
"""What people say: query -> text of a claim -> whether the contexts support it."""

_COLUMNS = ("claims", "value", "95% interval", "n")
_FILE = "calibration.json"
_IDS = ("id", "query_id", "qid")
# Ranks that are told apart: the first, the next two, and the rest.
_RANKS = (("1", 1, 1), ("2 to 3", 2, 3), ("4+", 4, np.inf))


@dataclass(frozen=True)
class ClaimAgreement:
    """How far a judge of claims agrees with people.

    Attributes:
        n: number of claims both gave a verdict on.
        queries: number of queries they belong to.
        failed: number of claims that people labelled and the judge has no verdict on.
        figures: share of equal verdicts, kappa and alpha, with intervals over queries.
        rates: how often the judge agrees where people say supported, and where not.
        recall: context_recall by people, by the judge, the mean of the differences
            (judge minus people), and the mean of their absolute values.
        bias: the mean difference for shorter and longer claims, and how often people
            agree with support that the judge finds at which rank.
        raters: alpha of several people alone, and of them and the judge.
    """

    n: int
    queries: int
    failed: int
    figures: AgreementFigures
    rates: Sequence[Rate]
    recall: Sequence[Rate]
    bias: Sequence[Rate]
    raters: Sequence[Rate] = ()

    def table(self) -> Table:
        """Every figure with its interval."""
        names = ("equal verdicts", "Cohen's kappa", "Krippendorff's alpha")
        figures = (self.figures.equal, self.figures.kappa, self.figures.alpha)
        rows = [
            Rate(name, figure.value, self.n, figure.interval)
            for name, figure in zip(names, figures, strict=True)
        ]
        rows += [*self.raters, *self.rates, *self.recall, *self.bias]
        notes = [f"intervals are over {counted(self.queries, 'query')}"]
        if self.failed:
            notes.append(f"failed: {counted(self.failed, 'claim')} without a verdict")
        return Table(_COLUMNS, [row.row() for row in rows], notes=notes)

    def to_dict(self) -> Any:
        """The figures in plain values; null is one that does not exist."""
        named = ("n", "queries", "failed", "rates", "recall", "bias", "raters")
        facts = {name: getattr(self, name) for name in named}
        return plain({**facts, **figure_facts(self.figures)})


def claim_agreement(
    judged: Mapping[str, Sequence[Verdict]],
    people: ClaimLabels | Sequence[ClaimLabels],
) -> ClaimAgreement:
    """Compare a judge's verdicts with people's, on the claims that both judged.

    Args:
        judged: the judge's verdicts by query.
        people: what people say of the same claims; of several, most decide.

    Example:
        >>> judged = {"q": [Verdict("1", "Rye.", alone=(1,)), Verdict("2", "Salt.")]}
        >>> people = {"q": {"Rye.": True, "Salt.": True}}
        >>> claim_agreement(judged, people).figures.equal.value
        0.5
    """
    raters = [people] if isinstance(people, Mapping) else [*people]
    together = middle(raters)
    both = [
        (query, verdict, together[query][verdict.text])
        for query, verdicts in judged.items()
        for verdict in verdicts
        if verdict.text in together.get(query, {})
    ]
    valid = [row for row in both if row[1].failure is None]
    if not valid:
        raise DataError(
            "people and judge have no claim in common",
            hint="label claims of these samples, word for word",
        )
    said: dict[str, dict[str, float]] = {}
    for name, verdict, _ in valid:
        said.setdefault(name, {})[verdict.text] = float(verdict.supported)
    _, query = np.unique([name for name, *_ in valid], return_inverse=True)
    verdicts = [verdict for _, verdict, _ in valid]
    judge = np.array([verdict.supported for verdict in verdicts])
    human = np.array([bool(label) for *_, label in valid])
    rates = [
        rate_of("people say supported, judge too", judge[human], query[human]),
        rate_of("people say not supported, judge too", ~judge[~human], query[~human]),
    ]
    return ClaimAgreement(
        n=len(valid),
        queries=int(query.max()) + 1,
        failed=len(both) - len(valid),
        figures=agreement_figures(human.astype(float), judge.astype(float), query),
        rates=[row for row in rates if row.n],
        recall=_recall(human, judge, query),
        bias=_bias(verdicts, human, judge, query),
        raters=rater_alphas(raters, said),
    )


def _recall(human: Bools, judge: Bools, query: Ints) -> list[Rate]:
    count = np.bincount(query)
    one, other = (np.bincount(query, weights=by) / count for by in (human, judge))
    return [
        rate_of("context_recall by people", one, bounds=(0.0, 1.0)),
        rate_of("context_recall by the judge", other, bounds=(0.0, 1.0)),
        rate_of("context_recall, judge - people", other - one, bounds=(-1.0, 1.0)),
        rate_of("context_recall, mean error", np.abs(other - one), bounds=(0.0, 1.0)),
    ]


def _bias(
    verdicts: Sequence[Verdict], human: Bools, judge: Bools, query: Ints
) -> list[Rate]:
    """Where the judge says supported too often, or too seldom."""
    words = np.array([len(verdict.text.split()) for verdict in verdicts])
    ranks = np.array([verdict.rank or 0 for verdict in verdicts])
    cut = int(np.median(words))
    off = judge.astype(float) - human
    rows = [
        rate_of(f"judge - people, claims {name} words", off[of], query[of], (-1.0, 1.0))
        for name, of in ((f"up to {cut}", words <= cut), (f"over {cut}", words > cut))
        if of.any()
    ]
    return rows + [
        rate_of(f"found at rank {name}, people agree", human[of], query[of])
        for name, low, high in _RANKS
        if (of := (ranks >= low) & (ranks <= high)).any()
    ]


def read_claim_labels(path: str | os.PathLike[str]) -> dict[str, dict[str, bool]]:
    """What people say of claims, from JSON Lines.

    A line is a sample: its id, and `claims` of which each has a `text` and `supported`.

    Raises:
        FormatError: the file cannot be read, or a claim lacks its text or label.
    """
    name = os.fspath(path)
    with open_binary(path) as stream:
        lines = stream.read().split(b"\n")
    labels: dict[str, dict[str, bool]] = {}
    for line, data in enumerate(lines, 1):
        if not data.strip():
            continue
        record = decode_json(decode_text(data, line), line)
        known = record if isinstance(record, Mapping) else {}
        query = next((known[key] for key in _IDS if key in known), None)
        claims = known.get("claims")
        if query is None or not isinstance(claims, list):
            raise FormatError(
                "a line must be an object with an id and claims", path=name, line=line
            )
        for claim in claims:
            facts = claim if isinstance(claim, Mapping) else {}
            text, supported = facts.get("text"), facts.get("supported")
            if not isinstance(text, str) or not isinstance(supported, bool):
                raise FormatError(
                    "a claim must have a text, and supported: true or false",
                    path=name,
                    line=line,
                )
            labels.setdefault(str(query), {})[text] = supported
    if not labels:
        raise FormatError("holds no claims", path=name)
    return labels


def save_calibration(
    found: ClaimAgreement, judge: Mapping[str, Any], journal: Path
) -> None:
    """Keep how far a judge agrees with people, beside the journal of its replies.

    Args:
        found: the agreement.
        judge: what names the judge: model, endpoint, parameters, prompts and votes.
        journal: where its replies are kept.
    """
    path = journal.with_name(_FILE)
    judge = json.loads(json.dumps(judge))
    kept = [entry for entry in _read_calibrations(path) if entry["judge"] != judge]
    kept.append({"judge": judge, "agreement": found.to_dict()})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(kept, indent=2) + "\n")


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
    entries = decode_json(decode_text(path.read_bytes()))
    return entries if isinstance(entries, list) else []
