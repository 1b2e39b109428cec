"""What to label next: what moves the score most, then what people disagree on."""

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from karat.data.gold import Gold
from karat.data.runs import Document
from karat.diagnosis.headroom import label_moves
from karat.history.labelling import Labelled, Words, disagreements, last_words
from karat.web.call import Call

K = 10
"""So many documents at the top of the newest run are looked at."""


def next_facts(call: Call, most: int) -> dict[str, Any]:
    """What nobody graded yet and matters most, and what is in dispute."""
    words = last_words(call.store.labels(call.project))
    newest = call.store.newest(call.project)
    ranked: list[tuple[float, Labelled]] = []
    if newest is not None:
        tops = call.store.rankings(newest, K)
        ranked = _by_move(tops, call.store.gold(call.project), words, call.caller.name)
    # The order says nothing of ranks, and is another for each person.
    mixed = partial(_place, call.caller.name)
    waiting = sorted((key for _, key in ranked[:most]), key=mixed)
    disputed = disagreements(words)
    every = [*waiting, *[*disputed][:most]]
    texts = call.store.texts((k.document for k in every if k.document), call.project)
    questions = call.store.questions(call.project)

    def shown(key: Labelled) -> dict[str, Any]:
        text = texts.get(key.document or "") or key.text
        return {**key._asdict(), "text": text, "question": questions.get(key.query)}

    return {
        "waiting": len(ranked),
        "move": ranked[0][0] if ranked else 0.0,
        "disputed": len(disputed),
        "next": [shown(key) for key in waiting],
        "disagreements": [
            {
                **shown(key),
                "said": [
                    {"who": who, "grade": one.grade, "why": one.why}
                    for who, one in disputed[key].items()
                ],
            }
            for key in [*disputed][:most]
        ],
    }


def _by_move(
    tops: Mapping[str, Sequence[Document]], gold: Gold, words: Words, who: str
) -> list[tuple[float, Labelled]]:
    """What nobody graded and `who` has not seen, by how far a label moves the mean."""
    labels = {query: {**gold.documents.get(query, {})} for query in tops}
    for query in gold.passages.keys() & tops:
        grades = {item.text: item.grade for item in gold.passages[query]}
        for document in tops[query]:
            if document.text in grades:
                labels[query][document.id or document.text] = grades[document.text]
        labels[query].update(grades)
    ranked = []
    for move, query, document in label_moves(labels, tops, K):
        text = None if document.id is not None else document.text
        key = Labelled(query, document.id, text)
        if who not in words.get(key, ()):
            ranked.append((move / len(tops), key))
    return sorted(ranked, key=lambda pair: -pair[0])


def _place(who: str, key: Labelled) -> bytes:
    return sha256(repr((who, key)).encode("utf-8", "replace")).digest()
