"""The HTML report: one file that needs no server and asks for nothing outside of it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from karat.comparison.comparison import Comparison
from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset, Query
from karat.data.runs import Document
from karat.data.tables import DASH, Table, counted, number
from karat.reports.charts import draw_intervals
from karat.reports.details import Details, Notes
from karat.reports.figures import all_charts, board_of, changes_of
from karat.reports.markup import Markup, grid, page, page_file, pictures, section, tag
from karat.results.evaluation import UNTAGGED, Evaluation, slice_table, tagged
from karat.results.leaderboard import Leaderboard

_GOOD = {"better": "good", "worse": "bad"}
# Of so many candidates it is drawn in what way they differ.
_SHOWN = 2
_DRAWN = "drawn at random"


def as_html(
    results: Evaluation | Leaderboard,
    tables: Sequence[Table] = (),
    *,
    comparison: Comparison | None = None,
    notes: Notes | None = None,
    causes: Mapping[str, Sequence[str]] | None = None,
    more: Mapping[str, Sequence[Table]] | None = None,
) -> str:
    """A page about runs: verdict, changes, every query with its documents, provenance.

    `notes` are sentences on gold items by query and item, `causes` say by query why any
    was missed, and `more` are tables by the heading that they stand under.
    """
    del tables
    board = board_of(results)
    details = Details(board, notes, causes)
    first = next(iter(board.values()))
    title = first.title
    if comparison is not None:
        names = ", ".join(comparison.candidates)
        title = f"{names} compared with {comparison.baseline}"
    elif len(board) > 1:
        title = f"{len(board)} runs against {first.gold}"
    drawn = all_charts(board, compared=comparison is not None)
    charts = section("charts", "In pictures", *pictures(drawn))
    before = [_verdict(board, comparison)]
    before += [] if comparison is None else _compared(board, comparison)
    for n, (heading, found) in enumerate((more or {}).items()):
        parts = map(partial(grid, linked=True), found)
        before.append(section(f"more-{n}", heading, *parts))
    before += [charts] if comparison is None else []
    after = [
        _slices(board, comparison),
        *([] if comparison is None else [charts]),
        section("labels", "Label health", *_label_health(board)),
        section("method", "Rules and provenance", *_method(board)),
    ]
    facts = {
        "gold": first.gold,
        "fingerprints": dict(zip(first.queries, first.digests, strict=True)),
    }
    return _page(title, details, facts, before=before, after=after)


def _page(
    title: str,
    details: Details,
    facts: Mapping[str, Any],
    *,
    before: Sequence[Markup] = (),
    lead: Sequence[Markup] = (),
    after: Sequence[Markup] = (),
) -> str:
    """A page with the table of queries between other sections."""
    packed = details.packed()
    data = {**details.table(), "starts": packed.starts, **facts}
    note = [tag("p", packed.note, _class="note")] if packed.note else []
    heading = counted(len({*data["queries"]}), "query")
    table = Markup(page_file("queries.html"))
    queries = section("queries", heading, *lead, table, *note)
    blocks = {"block": packed.rows, "texts": packed.texts}
    return page(title, [*before, queries, *after], data, blocks)


def labelling_page(title: str, rows: Sequence[Mapping[str, str | None]]) -> str:
    """A page on which people grade documents that nobody has labelled.

    Each row has a query, its question, a document and its text. They stay in their
    order, and the page does not say which run found what, or where.
    """
    parts = [[*own] for _, own in groupby(rows, key=itemgetter("query"))]
    # Single documents of a query may be drawn far apart: so each part has a name.
    names = [*map(str, range(len(parts)))]
    named = [*zip(names, parts, strict=True)]
    documents = _unscored(
        "documents",
        {
            name: [Document(row["document"], row["text"]) for row in own]
            for name, own in named
        },
        {name: Query(name, own[0]["question"]) for name, own in named},
    )
    listed = [(row["query"], row["document"] or row["text"]) for row in rows]
    facts = {
        "queries": [own[0]["query"] for own in parts],
        "gold": sha256(json.dumps(listed).encode()).hexdigest()[:16],
        "fingerprints": {},
        "blind": True,
    }
    how = (
        "Open the first query, give each document a grade from 0 (not relevant) to 3 "
        "(perfect), and go on in this order. Then download the labels; "
        "karat label apply makes gold of them."
    )
    return _page(title, Details(board_of(documents)), facts, lead=[tag("p", how)])


def question_page(title: str, questions: Dataset, drawn: Sequence[str]) -> str:
    """A page on which people keep, fix or drop questions, those drawn before others."""
    gold, queries = questions.gold or Gold(), dict(questions.queries)
    for query in drawn:
        fact = queries[query]
        queries[query] = replace(fact, tags=(_DRAWN, *fact.tags))
    order = [*dict.fromkeys([*drawn, *queries])]
    passages = {
        query: [
            Document(span.document, span.text) for span in gold.spans.get(query, ())
        ]
        for query in order
    }
    facts = {
        "gold": gold.name,
        "fingerprints": dict(zip(order, gold.fingerprints(order), strict=True)),
        "blind": True,
        "grades": ["keep", "fix", "drop"],
        "drafts": [
            {
                "reference": gold.references.get(query, ""),
                "claims": [claim.text for claim in gold.claims.get(query, ())],
                "checks": queries[query].metadata.get("checks", {}),
            }
            for query in order
        ],
    }
    how = "Download the decisions; karat label apply makes a file of what is left."
    if drawn:
        how = (
            f"The first {counted(len(drawn), 'question')} were drawn at random: check "
            "all of them, and the share of good ones holds for the whole file. What "
            f"you decide on others is applied, and counts in no share. {how}"
        )
    details = Details(board_of(_unscored("passages", passages, queries)))
    return _page(title, details, facts, lead=[tag("p", how)])


def side_by_side_page(
    title: str,
    tables: Sequence[Table],
    runs: Mapping[str, Mapping[str, Sequence[Document]]],
    facts: Mapping[str, Query],
    alike: Sequence[float],
) -> str:
    """A page that shows what runs retrieved side by side, where there is no gold.

    The runs have the same queries; `alike` says of each how alike they are.
    """
    board = Leaderboard({n: _unscored(n, run, facts) for n, run in runs.items()})
    details = Details(board)
    listed = json.dumps([title, details.queries])
    told = {
        "gold": sha256(listed.encode()).hexdigest()[:16],
        "fingerprints": {},
        "alike": [None if math.isnan(one) else one for one in alike],
    }
    before = [section("verdict", "Result", *map(grid, tables))]
    return _page(title, details, told, before=before)


def _unscored(
    run: str, documents: Mapping[str, Sequence[Document]], facts: Mapping[str, Query]
) -> Evaluation:
    """What was retrieved, where nothing says what should have been."""
    return Evaluation(
        run=run,
        gold="",
        queries=[*documents],
        columns={},
        missing=np.zeros(len(documents), bool),
        policies=Policies(),
        facts=facts,
        kept={query: tuple(row) for query, row in documents.items()},
    )


def _verdict(board: Leaderboard, comparison: Comparison | None) -> Markup:
    """What it comes down to, and the means."""
    said: list[str] = []
    if comparison is not None and comparison.differences:
        several = len(comparison.candidates) > 1
        for candidate in comparison.candidates:
            own = [d for d in comparison.differences if d.candidate == candidate]
            alone = replace(comparison, candidates=(candidate,), differences=tuple(own))
            decided = {one.verdict for one in own} & _GOOD.keys()
            colour = _GOOD[decided.pop()] if len(decided) == 1 else "open"
            lead = tag("strong", alone.headline, _class=colour)
            more = f" {candidate}" if several else ""
            more = f" {own[0].sentence()}" if len(own) == 1 else more
            said.append(tag("p", lead, more, _class="lead"))
    elif len(board) > 1 and board.metrics:
        metric = board.leading
        best = board.ranked()[0]
        between = _between(best, metric)
        mean = number(best[metric].mean) + (f" ({between})" if between else "")
        said.append(
            tag(
                "p",
                tag("strong", best.run),
                f" has the highest {metric}, {mean}. Whether that is more than chance "
                "is what karat compare tells.",
                _class="lead",
            )
        )
    (only, *others) = board.values()
    if not others:
        cards = []
        for name, column in only.columns.items():
            between = _between(only, name) or "no interval"
            cards.append(_card(only, name, number(column.mean), between, column.n))
        if only.latency is not None:
            for name, time in only.latency.in_words().items():
                cards.append(_card(only, name, time, "", only.latency.n))
        said.append(tag("dl", *cards, _class="cards"))
        notes: Sequence[str] = only.notes()
    else:
        table = board.summary(None)
        notes = table.notes
        said.append(grid(replace(table, notes=())))
    return section("verdict", "Result", *said, _folded(notes))


def _folded(notes: Sequence[str]) -> Markup:
    """Notes that are there for whoever opens them."""
    if not notes:
        return Markup("")
    listed = tag("ul", *(tag("li", note) for note in notes))
    return tag("details", tag("summary", counted(len(notes), "note")), listed)


def _compared(board: Leaderboard, comparison: Comparison) -> list[Markup]:
    """The differences with p, and in what way the runs differ."""
    table = comparison.summary()
    several = len(comparison.candidates) > 1
    rows = [
        (
            f"{d.metric} {d.candidate}" if several else d.metric,
            d.difference,
            None if d.interval is None else (d.interval[0], d.interval[1]),
            d.verdict,
        )
        for d in comparison.differences
        if d.n
    ]
    title = f"difference from {comparison.baseline}, with 95% interval"
    drawn = [draw_intervals(rows, title=title, zero=True)] if rows else []
    said = [
        tag("p", f"{name}: {change.sentence}" if several else change.sentence)
        for name, change in comparison.changes.items()
    ]
    depth = next((change.k for change in comparison.changes.values()), None)
    table_of_movers = replace(comparison.movers_table(), title="Changed most")
    movers = [grid(table_of_movers, linked=True)] if comparison.movers else []
    baseline, *others = board.values()
    return [
        section(
            "comparison",
            "Differences",
            grid(replace(table, notes=()), titled=False),
            *pictures(drawn),
            _folded(table.notes),
        ),
        section(
            "change",
            "Kind of change",
            *said,
            *pictures(changes_of(baseline, others[:_SHOWN], board.leading, depth)),
            *movers,
        ),
    ]


def _between(evaluation: Evaluation, metric: str) -> str:
    limits = evaluation[metric].interval
    return "" if limits is None else f"{limits[0]:.3f} to {limits[1]:.3f}"


def _card(only: Evaluation, name: str, value: str, between: str, n: int) -> Markup:
    return tag(
        "div",
        tag("dt", name),
        tag("dd", value, _class="big"),
        tag("dd", between),
        tag("dd", f"{n} of {len(only.queries)} queries", _class="soft"),
    )


def _slices(board: Leaderboard, comparison: Comparison | None) -> Markup:
    """Means by tag, where there are tags: of each metric, or of the runs by one."""
    first, *others = board.values()
    tags = tagged(first)
    if not tags.keys() - {UNTAGGED} or not board.metrics:
        return Markup("")
    metric = board.leading
    columns, title = first.columns, ""
    if others:
        title = f"mean {metric} of each run"
        columns = {name: one[metric] for name, one in board.items() if metric in one}
    alike = all(one.queries == first.queries for one in others)
    table = slice_table(columns, tags, title=title)
    parts = [grid(table, linked=True)] if alike else []
    compared = None if comparison is None else comparison.slice_table()
    parts = [grid(compared), *parts] if compared else parts
    return section("slices", "By tag", *parts)


def _label_health(board: Leaderboard) -> list[Markup]:
    """How much is labelled, by whom, and what has no score."""
    rows = []
    for evaluation in board.values():
        judged, undefined, failed = [], 0, 0
        for name, column in evaluation.columns.items():
            undefined = max(undefined, column.undefined)
            failed = max(failed, column.failed)
            if name.startswith("judged@"):
                judged.append(f"{name} {number(column.mean)}")
        by = evaluation.labelled_by
        labels = ", ".join(map("{} {}".format, by, by.values()))
        rows.append(
            [
                evaluation.run,
                ", ".join(judged) or DASH,
                str(int(evaluation.missing.sum())),
                str(undefined),
                str(failed),
                labels or DASH,
            ]
        )
    names = ["run", "judged", "missing", "undefined", "failed", "labels by"]
    notes = []
    if {*map(itemgetter(1), rows)} == {DASH}:
        notes.append(
            "How many of the retrieved documents are judged is shown where gold also "
            "holds documents judged non-relevant."
        )
    return [grid(Table(names, rows, notes=notes, texts=(0, 1, 5)))]


def _method(board: Leaderboard) -> list[Markup]:
    """The rules applied and where the numbers come from."""
    first = next(iter(board.values()))
    changed = first.policies.changes()
    rules = []
    for name, value in asdict(first.policies).items():
        if value is not None:
            rules.append([name, str(value), "changed" if name in changed else "native"])
    facts: dict[str, str] = {}
    for evaluation in board.values():
        for name, value in evaluation.provenance.items():
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            alike = len(board) == 1 or name in ("karat", "command")
            facts[name if alike else f"{evaluation.run}: {name}"] = text
        digest = sha256("".join(evaluation.digests).encode()).hexdigest()[:16]
        facts[f"fingerprint of {evaluation.gold}"] = digest
        matchers = ", ".join(dict.fromkeys(evaluation.matchers.values()))
        facts["matched by"] = matchers or DASH
    return [
        grid(
            Table(["from", "value"], [*facts.items()], title="Provenance", texts=(0, 1))
        ),
        grid(Table(["rule", "value", ""], rules, title="Rules", texts=(0, 1, 2))),
    ]
