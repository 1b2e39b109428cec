"""Whether gold is good: what is wrong with its labels, and gold without that."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import DEFAULT_K
from karat.data.runs import Document, Run
from karat.data.tables import Table, counted
from karat.diagnosis.corpus_texts import LexicalRanks, group_alike
from karat.diagnosis.diagnosis import unexamined_notes
from karat.diagnosis.evidence import (
    ENOUGH,
    Shares,
    check_corpus,
    corpus_shares,
    corpus_texts,
    item_texts,
)
from karat.errors import UsageError
from karat.matching.id_forms import other_forms
from karat.matching.letters import Letters
from karat.reading.readers import read, read_queries
from karat.reading.source import Notes
from karat.results.plain_values import PlainResult

_SHOWN = 20
_MOST_PROBLEMS = 1000
_TEXTS = "passages", "answers", "claims"
# Of a text with fewer words, words say nothing.
_FEW_WORDS = 6
# A document that a run has so high, or so near to other gold, is no accident.
_DEPTH, _SHARE, _NEAR = 20, 0.02, 3


TWO_RUNS = "two runs, or one with a corpus and texts of queries"
KINDS = {
    "unreadable": "",
    "empty text": "",
    "dangling id": "--corpus",
    "other id form": "--corpus",
    "not covered": "--corpus",
    "near-duplicate items": "",
    "unlabelled duplicate": "--corpus",
    "conflicting grades": "",
    "conflicting queries": "texts of queries",
    "duplicate query": "texts of queries",
    "unwinnable": "",
    "no relevant gold": "",
    "suspicious label": TWO_RUNS,
}
"""What can be found, and what must be given to find it."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with the gold of a query."""

    kind: str  # one of `KINDS`
    query: str  # id of the query
    item: str  # name of the gold item; empty when it is about all of them
    sentence: str  # what is wrong
    other: str = ""  # what it is at odds with, such as the id that is right
    fix: str = ""  # what `fix_gold` does: remove, rename, alternatives, or nothing


@dataclass(frozen=True, repr=False)
class GoldFindings(PlainResult):
    """What is wrong with gold: a plain value that saves and loads.

    Attributes:
        gold: name of the gold.
        queries: how many queries it has.
        items: how many gold items.
        findings: what was found, by kind.
        not_examined: kind -> what must be given to look for it.
    """

    saved_as: ClassVar[str] = "findings"

    gold: str
    queries: int
    items: int
    findings: tuple[Finding, ...] = ()
    not_examined: Mapping[str, str] = field(default_factory=dict)

    def summary(self) -> Table:
        """A row per kind: how often, in how many queries, and an example."""
        rows = []
        for kind in KINDS:
            own = [finding for finding in self.findings if finding.kind == kind]
            if own:
                queries = str(len({finding.query for finding in own}))
                fixed = str(sum(bool(finding.fix) for finding in own))
                rows.append([kind, str(len(own)), queries, fixed, own[0].sentence])
        title = (
            f"{self.gold}: {counted(self.queries, 'query')}, "
            f"{counted(self.items, 'gold item')}, "
            f"{counted(len(self.findings), 'finding')}"
        )
        notes = [] if self.findings else ["nothing was found to be wrong"]
        notes += unexamined_notes(self.not_examined)
        columns = ["finding", "n", "queries", "fixable", "for example"]
        return Table(columns, rows, title=title, notes=notes, texts=(0, 4))

    def finding_table(self, most: int = _SHOWN) -> Table:
        """The findings one by one, the first ones."""
        rows = [[one.query, one.kind, one.sentence] for one in self.findings[:most]]
        title = f"findings: {len(rows)} of {len(self.findings)}"
        return Table(["query", "finding", "what"], rows, title=title, texts=range(3))

    def tables(self) -> list[Table]:
        """All that a person is shown."""
        return [self.summary(), *([self.finding_table()] if self.findings else [])]


def doctor(
    gold: Any,
    *,
    corpus: Any = None,
    runs: Sequence[Any] = (),
    queries: Any = None,
    k: int = DEFAULT_K,
    mapping: Mapping[str, str] | None = None,
) -> GoldFindings:
    """Find what is wrong with gold, before it is blamed on a retriever.

    Args:
        gold: what should be retrieved, in any form that `evaluate` takes.
        corpus: texts of all documents by id, a mapping or a file.
        runs: what several systems retrieved, in any form of a run.
        queries: texts of the queries, where they have a file of their own.
        k: the cutoff that a query must be winnable at.
        mapping: our field name -> theirs, where the inference should not decide.

    Example:
        >>> found = doctor({"q": {"d1": 1, "d9": 1}}, corpus={"d1": "Rye is a grain."})
        >>> [(one.kind, one.item) for one in found.findings]
        [('dangling id', 'd9')]
    """
    if not isinstance(runs, list | tuple):
        raise UsageError("doctor: runs must be a list of runs, as in runs=[run]")
    notes = Notes(keep=_MOST_PROBLEMS)
    data = read(gold, "gold", mapping=mapping, shared=True, notes=notes)
    own = data.gold or Gold()
    texts = corpus_texts(corpus)
    facts = {**data.queries, **(read_queries(queries) if queries is not None else {})}
    questions = {
        query: text
        for query in own.queries
        if query in facts and (text := facts[query].text) is not None
    }
    loaded = [read(run, "run", mapping=mapping, shared=data).run for run in runs]
    ranked = [run for run in loaded if run is not None]
    if texts and not any(run.holds_any({*texts}) for run in ranked):
        check_corpus({name for row in own.documents.values() for name in row}, texts)
    check = _Check(own, texts, questions, ranked, k)
    both = texts is not None and bool(questions)
    present = {
        "": True,
        "--corpus": texts is not None,
        "texts of queries": bool(questions),
        TWO_RUNS: len(ranked) > 1 or (both and bool(ranked)),
    }
    unread = []
    for problem in notes.problems:
        where = "" if problem.line is None else f" (line {problem.line})"
        kind, query = problem.finding or "unreadable", str(problem.query or "")
        unread.append(Finding(kind, query, "", f"{problem.problem}{where}"))
    every = dict.fromkeys([*unread, *check.all()])
    findings = sorted(every, key=lambda one: [*KINDS].index(one.kind))
    return GoldFindings(
        gold=own.name,
        queries=len(own.queries),
        items=sum(map(len, (*own.documents.values(), *check.texts.values()))),
        findings=tuple(findings),
        not_examined={n: needs for n, needs in KINDS.items() if not present[needs]},
    )


@dataclass
class _Check:
    """The checks, one method each."""

    gold: Gold
    corpus: Mapping[str, str] | None
    questions: Mapping[str, str]
    runs: Sequence[Run]
    k: int

    @cached_property
    def texts(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Query -> item -> its texts."""
        gold = self.gold
        return {query: item_texts(gold, query, self.corpus) for query in gold.queries}

    def all(self) -> Iterator[Finding]:
        """Everything that is found."""
        for query in self.gold.queries:
            yield from self._empty(query)
            yield from self._counts(query)
            yield from self._alike_documents(query)
            yield from self._alike_passages(query)
        if self.corpus is not None:
            yield from self._ids(self.corpus)
            yield from self._covered(self.corpus)
        yield from self._queries()
        if self.runs:
            yield from self._suspicious()

    def _empty(self, query: str) -> Iterator[Finding]:
        if query in self.questions and not self.questions[query].strip():
            yield Finding("empty text", query, "", "the query asks nothing")
        for kind in _TEXTS:
            for item in getattr(self.gold, kind).get(query, ()):
                if not Letters(item.text).letters:
                    text = f"{item.id!r:.60} has no text"
                    yield Finding("empty text", query, item.id, text, fix="remove")
        for name, grade in self.gold.documents.get(query, {}).items():
            content = (self.corpus or {}).get(name)
            if grade > 0 and content is not None and not Letters(content).letters:
                text = f"{name!r:.60} has no text in the corpus"
                yield Finding("empty text", query, name, text)

    def _counts(self, query: str) -> Iterator[Finding]:
        groups = self.gold.groups.get(query, {})
        row = self.gold.documents.get(query, {})
        relevant = {groups.get(name, name) for name, grade in row.items() if grade > 0}
        has_texts = any(self.texts[query].values()) or query in self.gold.references
        if not relevant and not has_texts:
            yield Finding("no relevant gold", query, "", "nothing is relevant")
        elif len(relevant) > self.k:
            many = counted(len(relevant), "relevant document")
            text = f"{many} do not fit in the top {self.k}"
            yield Finding("unwinnable", query, "", text)

    def _ids(self, corpus: Mapping[str, str]) -> Iterator[Finding]:
        rows = self.gold.documents.items()
        dangling = [(query, n) for query, row in rows for n in row if n not in corpus]
        names = {name for _, name in dangling}
        forms = {form.wanted: form for form in other_forms(names, corpus)}
        for query, name in dangling:
            if name not in forms:
                text = f"{name!r:.60} is not in the corpus"
                yield Finding("dangling id", query, name, text)
                continue
            form = forms[name]
            text = f"{name!r:.60} is {form.found!r:.60} in the corpus, {form.how}"
            yield Finding("other id form", query, name, text, form.found, "rename")

    def _covered(self, corpus: Mapping[str, str]) -> Iterator[Finding]:
        pairs = [
            (query, name, texts)
            for query, row in self.texts.items()
            for name, texts in row.items()
            if any(Letters(text).letters for text in texts)
            and name not in {item.id for item in self.gold.claims.get(query, ())}
        ]
        every_share = corpus_shares([texts for *_, texts in pairs], corpus)
        for (query, name, texts), shares in zip(pairs, every_share, strict=True):
            if shares is not None and (share := shares.union()) < ENOUGH:
                text = f"the corpus has {share:.0%} of {texts[0]!r:.60}"
                yield Finding("not covered", query, name, text)

    @cached_property
    def _twins(self) -> dict[str, list[str]]:
        """Document of the corpus -> its near-duplicates, itself among them."""
        corpus = {n: text for n, text in (self.corpus or {}).items() if text.strip()}
        groups: dict[int, list[str]] = {}
        twins = {}
        for name, group in zip(corpus, group_alike([*corpus.values()]), strict=True):
            twins[name] = groups.setdefault(group, [])
            twins[name].append(name)
        return twins

    def _alike_documents(self, query: str) -> Iterator[Finding]:
        """Documents that say the same as a relevant one, and are not labelled so."""
        labels = self.gold.documents.get(query, {})
        groups = self.gold.groups.get(query, {})
        for name, grade in labels.items():
            for other in self._twins.get(name, ()) if grade > 0 else ():
                texts = self.corpus or {}
                if other == name or _differ(texts[name], texts[other]):
                    continue
                what = f"{other!r:.60} says the same as {name!r:.60}"
                label, first = labels.get(other), name < other
                same = groups.get(name, name) == groups.get(other, other)
                kind, fix = "", ""
                if label is None:
                    kind, fix = "unlabelled duplicate", "alternatives"
                    what += ", and is not labelled"
                elif label <= 0 or (label != grade and first):
                    kind = "conflicting grades"
                    what += f", with grade {label:g} instead of {grade:g}"
                elif label == grade and first and not same:
                    kind, fix = "near-duplicate items", "alternatives"
                if kind:
                    yield Finding(kind, query, name, what, other, fix)

    def _alike_passages(self, query: str) -> Iterator[Finding]:
        """Passages of a query that say the same."""
        items = [*self.gold.passages.get(query, ())]
        alike = group_alike([item.text for item in items])
        for place, (item, first) in enumerate(zip(items, alike, strict=True)):
            one = items[first]
            if place == first or (item.group and item.group == one.group):
                continue
            if _differ(one.text, item.text):
                continue
            what = f"{one.id!r:.60} and {item.id!r:.60} say the same"
            if (one.grade > 0) != (item.grade > 0):
                what += f", with grades {one.grade:g} and {item.grade:g}"
                yield Finding("conflicting grades", query, one.id, what, item.id)
            else:
                yield Finding(
                    "near-duplicate items", query, item.id, what, one.id, "remove"
                )

    def _queries(self) -> Iterator[Finding]:
        first: dict[str, str] = {}
        for query in self.gold.queries:
            letters = Letters(self.questions.get(query, "")).letters
            other = first.setdefault(letters, query) if letters else query
            if other == query:
                continue
            same = self.gold.fingerprint(query) == self.gold.fingerprint(other)
            kind = "duplicate query" if same else "conflicting queries"
            gold = "the same gold" if same else "other gold"
            text = f"asks the same as {other!r:.60}, with {gold}"
            yield Finding(kind, query, "", text, other)

    def _suspicious(self) -> Iterator[Finding]:
        """Labels that nothing speaks for, while something speaks for others."""
        rankings = [dict(run.rankings(Policies())) for run in self.runs]
        words = None
        if self.corpus is not None and self.questions:
            words = LexicalRanks.of(self.corpus)
        for query, labels in self.gold.documents.items():
            rows = [[d.id for d in row.get(query, ())] for row in rankings]
            relevant = [name for name, grade in labels.items() if grade > 0]
            search = words if self.questions.get(query) else None
            missed = not any({*row[: self.k]} & {*relevant} for row in rows)
            if missed and relevant and len(rows) > 1:
                yield from self._outvoted(query, relevant, rows, search)
            elif search is not None:
                yield from self._unsupported(query, relevant, rows, search)

    def _outvoted(
        self,
        query: str,
        relevant: Sequence[str],
        rows: Sequence[Sequence[str | None]],
        words: LexicalRanks | None,
    ) -> Iterator[Finding]:
        """The label, if no run finds any, and most agree on another document."""
        firsts = (name for row in rows for name in row[:1] if name is not None)
        tops = Counter(n for n in firsts if n not in self.gold.documents[query])
        if not tops:
            return
        ((name, count),) = tops.most_common(1)
        if count < max(2, (len(rows) + 1) // 2):
            return
        if words is not None:
            question = self.questions[query]
            ours, theirs = words.rank(question, relevant), words.rank(question, [name])
            if theirs is None or (ours is not None and ours <= theirs):
                return
        text = (
            f"no run finds {relevant[0]!r:.60}, and {count} of {len(rows)} have "
            f"{name!r:.60} on top"
        )
        yield Finding("suspicious label", query, relevant[0], text, name)

    def _unsupported(
        self,
        query: str,
        relevant: Sequence[str],
        rows: Sequence[Sequence[str | None]],
        words: LexicalRanks,
    ) -> Iterator[Finding]:
        """Labels that no run retrieves and to which no words lead, beside an answer."""
        corpus, question = self.corpus or {}, self.questions[query]
        depth = max(self.k, _DEPTH, int(_SHARE * len(corpus)))
        retrieved = {name for row in rows for name in row[:depth]}
        here = [name for name in relevant if name in corpus]
        led = {n for n in here if n in retrieved or words.leads(question, (), [n])}
        firsts = {row[0] for row in rows if row} - {*self.gold.documents[query], None}
        tops = [name for name in firsts if name and words.answers(question, name)]
        answer = min(led or tops, default=None)
        for name in here if answer else ():
            others = [other for other in here if other != name]
            # Neighbours in the corpus are parts of one document.
            near = any(words.distance(name, other) <= _NEAR for other in others)
            if name in led or near or len(corpus[name].split()) < _FEW_WORDS:
                continue
            if not words.leads(question, [corpus[other] for other in others], [name]):
                text = (
                    f"no run retrieves {name!r:.60}, and no words lead to it from the "
                    f"question or other gold, as they do to {answer!r:.60}"
                )
                yield Finding("suspicious label", query, name, text, answer or "")


def _differ(one: str, other: str) -> bool:
    """Whether two texts that are much alike differ in a number, negation or name."""
    if Letters(one).letters == Letters(other).letters:
        return False
    return bool(Shares.of(one, [Document(text=other)]).differs(0))


def fix_gold(gold: Gold, findings: Sequence[Finding]) -> Gold:
    """The gold with what can safely be corrected; the rest is as it was.

    Empty and repeated texts go, ids get the form that the corpus has, and documents
    that say the same become alternatives, of which any one will do.
    """
    tables: Any = (gold.documents, gold.groups, gold.subtopics)
    tables = [{query: dict(row) for query, row in one.items()} for one in tables]
    documents, groups, subtopics = tables
    removed = {(f.query, f.item) for f in findings if f.fix == "remove"}
    for one in findings:
        row = documents.get(one.query, {})
        if one.fix == "rename" and one.item in row:
            # Labelled in both forms, it has the better grade.
            grade = max(row[one.item], row.get(one.other, row[one.item]))
            for table in tables:
                own = table.get(one.query, {})
                if one.item in own:
                    own.setdefault(one.other, own.pop(one.item))
            row[one.other] = grade
        elif one.fix == "alternatives" and one.item in row:
            row.setdefault(one.other, row[one.item])
            row_groups = groups.setdefault(one.query, {})
            group = row_groups.get(one.item) or row_groups.get(one.other) or one.item
            row_groups[one.item] = row_groups[one.other] = group
    texts: dict[str, Any] = {
        kind: {
            query: tuple(item for item in items if (query, item.id) not in removed)
            for query, items in getattr(gold, kind).items()
        }
        for kind in _TEXTS
    }
    rows = {"documents": documents, "groups": groups, "subtopics": subtopics}
    return replace(gold, **rows, **texts)
