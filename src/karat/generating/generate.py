"""Generating questions: rounds of writing, checking and completing, until enough."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from karat.data.judgements import Failure
from karat.data.policies import Policies
from karat.data.queries import Corpus
from karat.errors import DataError, ParameterError, UsageError
from karat.generating.conversations import STYLES, certify, confirm, write_question
from karat.generating.question_set import Candidate, QuestionSet, question_set
from karat.generating.rules import EarlierQuestions, check_rules
from karat.generating.sampling import PassageSearch
from karat.judging.grading import grade_pool
from karat.judging.session import DryRun, JudgeSession
from karat.llm.limits import Settings, Stage
from karat.llm.run_jobs import Job
from karat.reading.files import decode_text, open_binary
from karat.reading.readers import read_corpus, read_queries
from karat.retrieving.retrieve import retrieve

T = TypeVar("T")
_HOPS = (1, 2)
# So many queries show the style of a log.
_EXAMPLES = 10
# At most so many are written for one that is wanted: a writer may never succeed.
_ATTEMPTS = 5
# Files of one query in a line.
_PLAIN = ("", ".txt", ".log")
# A question that more passages answer is too vague.
_MOST_RELEVANT = 30
# How deep rankings are read, so that a vague question is found out.
_DEPTH = 2 * _MOST_RELEVANT


def generate(  # noqa: PLR0913
    corpus: Any,
    n: int = 200,
    *,
    model: Any,
    judge: Any = None,
    second_judge: Any = None,
    retrievers: Sequence[Any] = (),
    hops: Collection[int] = _HOPS,
    style: Any = None,
    seed: int = 0,
    k: int = 5,
    settings: Settings | None = None,
) -> QuestionSet:
    """Questions that a corpus answers, each checked, with gold for retrievers.

    A model writes a question, a reference answer and its claims from one passage, or
    from two that share a rare word. The first check that fails drops it: it is in the
    passages' language, is understood alone, does not repeat a passage's words (four in
    a row, or more than .75 of its content words) or another question; the judge finds
    every claim in the passages, cannot answer by heart, needs both of two passages, and
    says so when asked again. Then the top of BM25 and of the retrievers is graded:
    grades 2 and 3 join the gold, and a question that more than 30 passages answer is
    dropped. Every reply is kept: a run that was stopped goes on where it was.

    Args:
        corpus: texts by id, records, or a file.
        n: how many questions; fewer come out where passages or attempts run out.
        model: writes: a name, a client, a session or a function from prompt to reply.
        judge: certifies and grades; by default the model that writes, which a notice
            says, since models like their own questions.
        second_judge: must find every claim supported, too.
        retrievers: find passages to grade, as `retrieve` takes them; they return ids of
            the corpus.
        hops: how many passages a question needs: 1, 2, or both.
        style: queries of real people to word questions like: a list, or a file of
            lines or records; no question repeats one of them.
        seed: another one draws other passages.
        k: how many of each ranking are graded; more as long as most are relevant.
        settings: concurrency, limits and the journal.

    Raises:
        MissingExtraError: bm25s is not installed.
        IncompleteError: a limit was reached; the same call goes on from there.
    """
    for name, value in (("n", n), ("k", k)):
        if value < 1:
            raise ParameterError("generate", name, "an integer >= 1", value)
    if not {*hops} or not {*hops} <= {*_HOPS}:
        raise ParameterError("generate", "hops", "1, 2 or both", hops)
    writer = JudgeSession.of(model, settings)
    # A judge has the writer's settings and budget.
    judges = [
        one if isinstance(one, JudgeSession) else replace(writer, client=one)
        for one in (judge, second_judge)
        if one is not None
    ]
    judges = judges if judge is not None else [writer, *judges]
    examples = [] if style is None else _read_style(style)
    chance, earlier = Random(seed), EarlierQuestions(examples)  # noqa: S311
    search = PassageSearch(
        corpus if isinstance(corpus, Corpus) else read_corpus(corpus)
    )
    seeds = search.seeds(hops, ["log"] if examples else [*STYLES], seed)
    is_dry = isinstance(writer, DryRun)
    limit = n if is_dry else _ATTEMPTS * max(n, _EXAMPLES)
    kept: list[Candidate] = []
    dropped: list[Candidate] = []
    # Never more than are missing: nothing is paid for that nobody needs.
    while missing := min(n - len(kept), limit - len(kept) - len(dropped)):
        batch = [
            Candidate(names, [*map(search.text, names)], name)
            for names, name in islice(seeds, missing)
        ]
        if not batch:
            break
        jobs = [
            partial(
                write_question,
                one.texts,
                one.style,
                chance.sample(examples, min(_EXAMPLES, len(examples))),
            )
            for one in batch
        ]
        for one, written in _replies(writer, jobs, batch, "writing"):
            one.written = written
            if not is_dry:
                check_rules(one, earlier)
        _certify(batch, judges, whole=is_dry)
        # No retriever is asked for what a dry run assumes.
        _complete(batch, search, () if is_dry else retrievers, judges[0], k)
        kept += [one for one in batch if not one.failed]
        dropped += [one for one in batch if one.failed]
    signatures = (writer.source, judges[0].source)
    return question_set(kept, dropped, search.passages, signatures, n, chance)


def _read_style(style: Any) -> list[str]:
    if isinstance(style, str | os.PathLike) and Path(style).suffix in _PLAIN:
        with open_binary(os.fspath(style)) as stream:
            lines = decode_text(stream.read()).splitlines()
    else:
        lines = [query.text or "" for query in read_queries(style).values()]
    examples = [line.strip() for line in lines if line.strip()]
    if not examples:
        raise UsageError("style has no query to word questions like")
    return examples


def _certify(
    batch: Sequence[Candidate], judges: Sequence[JudgeSession], *, whole: bool
) -> None:
    """Have judges check questions; as a whole, if nothing is to end them."""
    checks: Any = {"certifying": partial(certify, whole=whole), "confirming": confirm}
    for judge, (doing, check) in zip(judges, checks.items(), strict=False):
        passing = [one for one in batch if not one.failed]
        jobs = [
            partial(check, one.written, one.texts, judge.prompts) for one in passing
        ]
        for one, found in _replies(judge, jobs, passing, doing):
            for name, reason, passes in found:
                one.check(name, reason, passes=passes or whole)


def _replies(
    session: JudgeSession,
    jobs: Sequence[Job[T]],
    batch: Sequence[Candidate],
    doing: str,
) -> Iterator[tuple[Candidate, T]]:
    """Each question with what became of its job, unless that failed."""
    results = session.run_jobs(jobs, Stage(doing, "question"))
    for one, result in zip(batch, results, strict=True):
        if isinstance(result, Failure):
            one.check("reply", result.reason, passes=False)
        else:
            yield one, result


def _complete(
    batch: Sequence[Candidate],
    search: PassageSearch,
    retrievers: Iterable[Any],
    judge: JudgeSession,
    k: int,
) -> None:
    """Grade the top k of every ranking, and the next k as long as most are relevant."""
    todo = {str(n): one for n, one in enumerate(batch) if not one.failed}
    texts = {name: one.written.question for name, one in todo.items()}
    rankings = {name: [search.words.top(texts[name], _DEPTH)] for name in todo}
    for retriever in retrievers if todo else ():
        for name, ranking in _retrieved(retriever, texts, search):
            rankings[name].append(ranking)
    for start in range(0, _DEPTH, k):
        pooled = {
            name: {
                passage: search.text(passage)
                for ranking in rankings[name]
                for passage in ranking[start : start + k]
                if passage not in one.grades
            }
            for name, one in todo.items()
        }
        graded = grade_pool(pooled, texts, judge).grades
        for name, layer in pooled.items():
            one = todo[name]
            one.grades |= {passage: g.grade for passage, g in graded[name].items()}
            count = len(one.relevant)
            reason = f"{count} of {len(one.grades)} passages answer it"
            one.check("vague", reason, passes=count <= _MOST_RELEVANT)
            fresh = sum(passage in layer for passage in one.relevant)
            if one.failed or 2 * fresh <= len(layer):
                del todo[name]


def _retrieved(
    retriever: Any, questions: Mapping[str, str], search: PassageSearch
) -> Iterator[tuple[str, list[str]]]:
    """The passages that a retriever finds for each question."""
    run = retrieve(retriever, questions, _DEPTH)
    for name, documents in run.rankings(Policies()):
        passages: dict[str, None] = {}
        for one in documents:
            ids = (one.id, one.source, one.text)
            places = (search.passage_of(each, questions[name]) for each in ids)
            if (passage := next(filter(None, places), None)) is None:
                raise DataError(
                    f"{run.name} returns {one.id or one.text!r:.60}, which the corpus "
                    "does not have",
                    hint="it must return ids of the corpus, or have them as source",
                )
            passages[passage] = None
        yield name, [*passages]
