"""The pages of the workbench, each made on the server of the reports' own parts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from operator import attrgetter
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse, Response

from karat.comparison.compare import compare
from karat.data.tables import DASH, Table, counted, number
from karat.errors import UsageError
from karat.evaluation import evaluate
from karat.history.gold import StoredLabel
from karat.history.labelling import agreements, last_words
from karat.history.store import StoredRun
from karat.history.tokens import ROLES
from karat.reading.labels import UNDECIDED
from karat.reports.markup import Markup, grid, section, tag
from karat.results.leaderboard import leading
from karat.web import api
from karat.web.call import Call
from karat.web.frame import framed
from karat.web.guard import may, segment
from karat.web.queue import K, next_facts
from karat.web.timeline import means_over_time
from karat.web.views import (
    SHOWN,
    Links,
    curve,
    link,
    pair_view,
    run_names,
    run_table,
    run_view,
    timeline_chart,
)

_DEMO = "demo"
_GRADES = (0, 1, 2, 3)
_QUEUE = 20
# With so many queries two runs are compared by their hits without a wait.
_WHOLE = 300


def projects_page(call: Call) -> Response:
    """All projects, or where to begin."""
    rows = []
    for name in call.store.projects():
        if may(call.caller, "read", name):
            runs = call.store.runs(name)
            means = runs[-1].means if runs else {}
            shown = ", ".join(f"{m} {number(mean)}" for m, mean in means.items())
            last = runs[-1].at[:10] if runs else DASH
            rows.append(
                [link(f"/p/{segment(name)}", name), str(len(runs)), last, shown]
            )
    table = Table(
        ["project", "runs", "last", "means of the last run"], rows, texts=(0, 3)
    )
    parts = [section("projects", "Projects", grid(table))]
    if not rows:
        told = "There is nothing here yet. Push a run (karat push result.json), or "
        button = tag("button", "Load the demo data")
        form = tag("form", button, method="post", action="/demo")
        parts = [tag("p", told, "look around with a small help centre:"), form]
    return framed("karat workbench", parts, way=[("/settings", "settings")])


def add_demo(call: Call) -> Response:
    """Push the two runs that come with karat."""
    with as_file(files("karat") / "examples" / "help_centre") as folder:
        for name in ("keyword", "dense"):
            result = evaluate(
                folder / f"{name}.run",
                gold=folder / "gold.qrels",
                queries=folder / "queries.jsonl",
                corpus=folder / "corpus.jsonl",
                metrics=("ndcg@10", "recall@5", "rr@10"),
                keep=10,
                name=name,
            )
            call.store.push(result, project=_DEMO, branch="main")
    return RedirectResponse(f"/p/{_DEMO}", 303)


def history_page(call: Call) -> Response:
    """Runs over time: chart, filters, and a table to choose two from."""
    every, runs = call.store.runs(call.project), call.runs()
    metrics = [*dict.fromkeys(metric for run in every for metric in run.means)]
    metric = call.asked.get("metric") or next(iter(metrics), "")
    if metrics and metric not in metrics:
        raise UsageError(f"no run has {metric!r:.80}; there are {', '.join(metrics)}")
    page = call.whole("page", 1)
    last = max(0, len(runs) - (page - 1) * SHOWN)
    first = max(0, last - SHOWN)
    shown = runs[first:last]
    branches = [*dict.fromkeys(run.branch for run in every if run.branch)]
    choices = tag(
        "form",
        _choice("metric", metrics, metric),
        _choice("branch", ["", *branches], call.asked.get("branch", "")),
        _field("tag", call.asked.get("tag", "")),
        _field("since", call.asked.get("since", ""), kind="date"),
        tag("button", "Show"),
        _class="tools",
    )
    tagged = call.asked.get("tag")
    queries = call.store.tagged(tagged, call.project) if tagged else None
    timeline = means_over_time(call.store, call.project, shown, metric, queries)
    table = run_table(timeline, _links(call), _tick)
    button = tag("button", "Compare the two ticked")
    form = tag("form", table, tag("p", button), action=_address(call, "compare"))
    parts = [
        section("filters", "Filters", choices),
        timeline_chart(timeline),
        section("runs", counted(len(runs), "run"), form),
    ]
    if first:
        more = urlencode({**call.asked, "page": str(page + 1)})
        parts.append(tag("p", link(f"?{more}", "Older runs")))
    return _framed(call, call.project, parts)


def _tick(run: StoredRun) -> Markup:
    box = _field("run", str(run.id), kind="checkbox", said=f"compare {run.name}")
    return Markup(f"{box} {run.id}")


def run_page(call: Call) -> Response:
    """One run: its means, and its queries, the lowest scores first."""
    run = call.run(call.names["run"])
    result = call.store.scores(run.id)
    told = " ".join(filter(None, (run.commit, run.branch, run.at)))
    download = link(_address(call, f"runs/{run.id}", api=True), "evaluation.json")
    parts = run_view(run, result, leading(result.columns), _links(call))
    about = tag("p", f"{told} ", download, _class="soft")
    return _framed(call, run.name, [about, *parts])


def comparison_page(call: Call) -> Response:
    """Two runs: verdict, differences, and the queries that moved most."""
    ticked = call.asked.getlist("run")
    if len(ticked) != 2:  # noqa: PLR2004
        raise UsageError(f"tick two runs to compare them, not {len(ticked)}")
    old, new = sorted((call.run(text) for text in ticked), key=attrgetter("id"))
    names = run_names(call.store.runs(call.project))
    results = [call.store.scores(run.id) for run in (old, new)]
    is_whole = (
        "whole" in call.asked or max(len(one.queries) for one in results) <= _WHOLE
    )
    if is_whole:
        results = [call.store.evaluation(run.id) for run in (old, new)]
    pairs = zip((old, new), results, strict=True)
    compared = compare(*(replace(one, run=names[run.id]) for run, one in pairs))
    parts = pair_view(compared, _links(call), old.id, new.id)
    if not is_whole:
        address = f"{_links(call).pair(old.id, new.id)}&whole=yes"
        more = link(address, "Show ranks, headroom and the kind of change")
        parts.insert(1, tag("p", more, ", which takes a moment with so many queries"))
    return _framed(call, f"{names[new.id]} compared with {names[old.id]}", parts)


def query_page(call: Call) -> Response:
    """One query in all runs, with texts, evidence and labels in place."""
    facts = api.query_facts(call)
    scored = facts["scores"]
    metrics = [*facts["runs"][0]["scores"]]
    names = run_names(call.store.runs(call.project))
    rows = [
        [names[run["run"]], *(number(run["scores"].get(metric)) for metric in metrics)]
        for run in facts["runs"]
    ]
    parts = [tag("p", f"query {facts['query']} ", *map(_chip, facts["tags"]))]
    parts.append(section("scores", "Scores", grid(Table(["run", *metrics], rows))))
    values = [own.get(metrics[0]) for own in scored.values()]
    parts.append(curve("This query in all runs", metrics[0], values))
    wanted = [
        tag(
            "li",
            _chip(f"grade {item['grade']:g}"),
            f" {item['item']}",
            tag("p", _text(item["text"] or ""), _class="soft", dir="auto"),
        )
        for item in facts["gold"]
        if item["grade"] > 0
    ]
    gold = tag("ul", *wanted, _class="gold")
    if not wanted:
        gold = tag("p", "No document is known to be relevant.", _class="soft")
    parts.append(section("gold", "What should be found", gold))
    lists = [
        tag("div", tag("h3", names[run["run"]]), *_ranking(call, facts, run))
        for run in facts["runs"]
    ]
    side = tag(
        "div", *lists, _class="side", tabindex="0", role="region", aria_label="rankings"
    )
    parts.append(section("rankings", "What was retrieved", _keys(call), side))
    said = [StoredLabel(**label) for label in facts["labels"]]
    if said:
        parts.append(section("labels", "Who said what", grid(_label_table(call, said))))
    return _framed(call, facts["question"] or facts["query"], parts)


def _ranking(
    call: Call, facts: Mapping[str, Any], run: Mapping[str, Any]
) -> list[Markup]:
    cards = []
    for rank, one in enumerate(run["ranking"], 1):
        score = "" if one["score"] is None else f"{one['score']:.5g}"
        grade = one["grade"]
        head = [
            tag("b", str(rank)),
            " ",
            one["document"] or "",
            tag("span", score, _class="soft"),
            _chip("not judged" if grade is None else f"grade {grade:g}"),
        ]
        place = f"run-{run['run']}-{rank}"
        relevant = " relevant" if grade else ""
        text = _marked(one["text"] or "", one["evidence"])
        said = {**one, "query": facts["query"]}
        cards.append(_card(call, place, head, text, said, grade, relevant))
    empty = [] if cards else [tag("p", "nothing was retrieved", _class="soft")]
    return [*empty, tag("ol", *cards, _class="ranking")]


def _card(
    call: Call,
    place: str,
    head: Sequence[str],
    text: Markup,
    label: Mapping[str, Any],
    grade: float | None,
    kind: str = "",
) -> Markup:
    """A document with the buttons that label it."""
    buttons: list[Markup] = []
    if may(call.caller, "label", call.project):
        for choice, name in (*((g, str(g)) for g in _GRADES), (UNDECIDED, "?")):
            pressed = str(choice == grade).lower()
            said = f"grade {choice}"
            buttons.append(
                tag(
                    *("button", name),
                    type="button",
                    _class="grade",
                    data_grade=str(choice),
                    aria_pressed=pressed,
                    aria_label=said,
                )
            )
        why = _field("why", "", said="why", bare=True)
        buttons = [tag("p", *buttons, why, role="group", aria_label="grade")]
    by_text = label["document"] is None
    return tag(
        "li",
        tag("p", *head, _class="document-head"),
        tag("p", text, _class="document-text", dir="auto"),
        *buttons,
        id=place,
        _class=f"document{kind}",
        tabindex="0",
        data_query=label["query"],
        data_document="" if by_text else label["document"],
        data_text=label["text"] or "" if by_text else "",
        data_url=_address(call, "labels", api=True),
    )


def queue_page(call: Call) -> Response:
    """What to label next: blind and shuffled; then what people disagree on."""
    facts = next_facts(call, _QUEUE)
    told = (
        f"{counted(facts['waiting'], 'document')} in the top {K} of the newest run "
        f"have no grade. One label can move its mean ndcg@{K} by up to "
        f"{facts['move']:.4f}; here are those that can move it most, in random order."
    )
    waiting = _pool(call, "next", facts["next"])
    parts = [section("next", "Label next", tag("p", told), _keys(call), waiting)]
    if disputed := facts["disagreements"]:
        heading = f"People disagree on {counted(facts['disputed'], 'document')}"
        listed = _pool(call, "disputed", disputed)
        parts.append(section("disputed", heading, listed))
    return _framed(call, f"Label {call.project}", parts)


def _pool(call: Call, kind: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Documents to be labelled, without their ranks, and what people said of them."""
    if not rows:
        return tag("p", "Nothing is left to label.")
    cards = []
    for place, one in enumerate(rows):
        said = [
            _chip(f"{word['who']} {_grade(word['grade'])} {word['why']}")
            for word in one.get("said", ())
        ]
        head = [one["question"] or one["query"], *said]
        text = _text(one["text"] or one["document"] or "")
        cards.append(_card(call, f"{kind}-{place}", head, text, one, None))
    return tag("ol", *cards, _class="ranking pool")


def gold_page(call: Call) -> Response:
    """Versions of the gold: who said what, and how far people agree."""
    labels = call.store.labels(call.project)
    found = agreements(last_words(labels))
    rows = [
        [", ".join(people), str(documents), *map(number, figures)]
        for people, documents, *figures in found
    ]
    columns = ["people", "documents", "equal", "weighted kappa", "alpha"]
    links = [
        link(_address(call, f"gold/latest.{form}", api=True), f"gold.{form}")
        for form in ("qrels", "jsonl")
    ]
    parts = [section("files", "Download", tag("p", links[0], " ", links[1]))]
    parts.append(section("changes", "What changed", *_gold_changes(call)))
    if rows:
        agreed = grid(Table(columns, rows, texts=(0,)))
        parts.append(section("agreement", "Agreement", agreed))
    page = call.whole("page", 1)
    end = len(labels) - (page - 1) * SHOWN
    shown = labels[max(0, end - SHOWN) : max(0, end)]
    heading = counted(len(labels), "label")
    parts.append(section("labels", heading, grid(_label_table(call, shown))))
    if end > SHOWN:
        parts.append(tag("p", link(f"?page={page + 1}", "Older labels")))
    return _framed(call, f"Gold of {call.project}", parts)


def _gold_changes(call: Call) -> Iterator[Markup]:
    """The grades that differ between two versions: by default the last two."""
    version = call.store.gold_version(call.project)
    later = call.whole("later", version)
    earlier = call.whole("earlier", max(0, later - 1))
    changes = call.store.gold_changes(earlier, later, call.project)
    yield tag(
        "form",
        _field("earlier", str(earlier), kind="number"),
        _field("later", str(later), kind="number"),
        tag("button", "Show"),
        _class="tools",
    )
    rows = [
        [
            _query_link(call, one.query),
            one.item[:80],
            *(DASH if g is None else f"{g:g}" for g in (one.before, one.after)),
            ", ".join(one.who) or "gold file",
        ]
        for one in changes[:SHOWN]
    ]
    told = f"From version {earlier} to {later}: {counted(len(changes), 'grade')}"
    yield tag(
        "p", f"{told}, of which {len(rows)} are here" if changes[SHOWN:] else told
    )
    if rows:
        columns = ["query", "document", "before", "after", "by"]
        yield grid(Table(columns, rows, texts=(0, 1, 4)))


def _label_table(call: Call, labels: Iterable[StoredLabel]) -> Table:
    rows = []
    for one in reversed([*labels]):
        file = _address(call, f"gold/{one.version}.jsonl", api=True)
        verdict = one.verdict if one.grade is None else _grade(one.grade)
        item = one.document or (one.text or "")[:80]
        at = one.at[:16].replace("T", " ")
        version, query = link(file, str(one.version)), _query_link(call, one.query)
        rows.append([version, at, one.who, query, item, verdict, one.why])
    columns = ["version", "when", "who", "query", "document", "grade", "why"]
    return Table(columns, rows, texts=(0, 1, 2, 3, 4, 6))


def settings_page(call: Call, secret: str = "") -> Response:
    """Tokens: who may do what."""
    rows = []
    for token in call.store.tokens.every():
        form = tag(
            "form",
            _field("remove", token.name, kind="hidden", bare=True),
            tag("button", "Remove", aria_label=f"remove {token.name}"),
            method="post",
        )
        rows.append([token.name, token.role, token.project or "all", token.at, form])
    columns = ["name", "role", "project", "since", ""]
    new = tag(
        "form",
        _field("name", ""),
        _choice("role", [*ROLES], "label"),
        _choice("project", ["", *call.store.projects()], ""),
        tag("button", "Make a token"),
        method="post",
        _class="tools",
    )
    told = tag("p", "Copy it now; it is not shown again: ", tag("code", secret))
    table = grid(Table(columns, rows, texts=(0, 1, 2, 3, 4)))
    parts = [told] if secret else []
    parts.append(section("tokens", "Tokens", table))
    parts.append(section("new", "A new token", new))
    return framed("Settings", parts, way=[("/", "projects")])


def change_tokens(call: Call) -> Response:
    """Make or remove a token."""
    try:
        said = dict(parse_qsl(call.body.decode("utf-8", "replace"), max_num_fields=10))
    except ValueError:
        raise UsageError("a form of at most 10 fields is read here") from None
    if "remove" in said:
        call.store.tokens.remove(said["remove"])
        return RedirectResponse("/settings", 303)
    name, role = said.get("name", ""), said.get("role", "")
    if role not in ROLES:
        raise UsageError(f"the role is one of {', '.join(ROLES)}, got {role!r:.80}")
    secret = call.store.tokens.add(name, role, said.get("project") or None)
    return settings_page(call, secret)


def _framed(call: Call, title: str, parts: Sequence[str]) -> Response:
    way = [("/", "projects"), (_address(call, ""), call.project)]
    if may(call.caller, "label", call.project):
        way.append((_address(call, "label"), "label"))
    return framed(title, parts, way=[*way, (_address(call, "gold"), "gold")])


def _address(call: Call, rest: str, *, api: bool = False) -> str:
    return f"{'/api' if api else ''}/p/{segment(call.project)}/{rest}".removesuffix("/")


def _links(call: Call) -> Links:
    home = _address(call, "")

    def query(name: str, *runs: int) -> str:
        chosen = f"?runs={','.join(map(str, runs))}" if runs else ""
        return f"{home}/q/{segment(name)}{chosen}"

    return Links(
        lambda run: f"{home}/runs/{run}",
        lambda old, new: f"{home}/compare?run={old}&run={new}",
        query,
    )


def _query_link(call: Call, query: str) -> Markup:
    return link(_address(call, f"q/{segment(query)}"), query)


def _chip(text: str) -> Markup:
    return tag("span", text, _class="chip")


def _grade(grade: float | None) -> str:
    return UNDECIDED if grade is None else f"{grade:g}"


def _keys(call: Call) -> Markup:
    keys = (
        "Keys 0 to 3 grade the document in focus and go on, ? says you can't tell; up "
        "and down move, u takes the last label back."
    )
    able = may(call.caller, "label", call.project)
    return tag("p", keys, _class="note") if able else Markup("")


def _field(
    name: str, value: str, *, kind: str = "text", said: str = "", bare: bool = False
) -> Markup:
    label = {"aria_label": said, "placeholder": said} if said else {}
    shown = tag("input", type=kind, _name=name, value=value, **label)
    field = Markup(shown.removesuffix("</input>"))
    return field if bare or said else tag("label", f"{name} ", field)


def _choice(name: str, values: Sequence[str], chosen: str) -> Markup:
    options = [
        tag("option", value or "all", value=value, selected=value == chosen)
        for value in values
    ]
    return tag("label", f"{name} ", tag("select", *options, _name=name))


def _marked(text: str, spans: Iterable[Sequence[int]]) -> Markup:
    """A text with the characters of evidence marked."""
    parts, at = [], 0
    for start, end in spans:
        low = max(start, at)
        if end > low:
            parts += [_text(text[at:low]), tag("mark", text[low:end])]
            at = end
    return Markup("".join([*parts, _text(text[at:])]))


def _text(text: str) -> Markup:
    """A text that keeps its lines."""
    return Markup("\n".join(tag("i", line)[3:-4] for line in text.split("\n")))
