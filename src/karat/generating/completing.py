"""Completing: what else answers a question, found by retrievers and graded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from karat.data.policies import Policies
from karat.errors import DataError
from karat.generating.question_set import Candidate
from karat.generating.sampling import PassageSearch
from karat.judging.grading import grade_pool
from karat.judging.session import JudgeSession
from karat.retrieving.retrieve import retrieve

# A question that more passages answer is too vague.
_MOST_RELEVANT = 30
# How deep rankings are read, so that a vague question is found out.
_DEPTH = 2 * _MOST_RELEVANT


def complete(
    candidates: Sequence[Candidate],
    search: PassageSearch,
    retrievers: Iterable[Any],
    judge: JudgeSession,
    k: int,
) -> None:
    """Grade the top k of every ranking, and the next k as long as most are relevant."""
    todo = {str(number): one for number, one in enumerate(candidates)}
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
