"""A TREC run read line by line with nothing but Python: slow, short, and the judge."""

import struct
from collections import Counter
from typing import NamedTuple

from karat.extend import Labels, Policies


class Reference(NamedTuple):
    rows: list[tuple[int, int, float]]
    retrieved: list[int]
    extra: set[str]
    ties: dict[str, int]
    duplicates: dict[str, int]
    tag: str


def single(score: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", score))[0])
    except OverflowError:
        return float("inf") if score > 0 else float("-inf")


def ranking(text: bytes, policies: Policies) -> dict[str, list[tuple[float, str]]]:
    """Each query's (score, document), best first."""
    lists: dict[str, list[tuple[float, str]]] = {}
    for words in lines(text):
        score = float(words[4])
        if policies.precision == "single":
            score = single(score)
        lists.setdefault(words[0].decode(), []).append((score, words[2].decode()))
    for pairs in lists.values():
        if policies.ties == "trec":
            pairs.sort(key=lambda pair: pair[1].encode(), reverse=True)
        pairs.sort(key=lambda pair: -pair[0])
    return lists


def lines(text: bytes) -> list[list[bytes]]:
    split = [line.split() for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    return [words for words in split if words and words[0][:1] != b"#"]


def reference(
    text: bytes, labels: Labels, *, judged: bool, policies: Policies
) -> Reference:
    lists = ranking(text, policies)
    rows, retrieved, ties, duplicates = [], [], {}, {}
    for number, (query, wanted) in enumerate(labels.items()):
        if query not in lists:
            retrieved.append(-1)
            continue
        pairs = lists[query]
        counts = Counter(document for _, document in pairs)
        twice = [d for d, n in counts.items() if n > 1 and wanted.get(d, 0) > 0]
        if twice:
            duplicates[query] = len(twice)
        if policies.duplicates == "collapse":
            firsts = dict.fromkeys(document for _, document in pairs)
            best = {document: score for score, document in reversed(pairs)}
            pairs = [(best[document], document) for document in firsts]
        retrieved.append(len(pairs))
        best = {document: score for score, document in reversed(pairs)}
        counted = Counter(best.values())
        tied = [d for d, s in best.items() if counted[s] > 1 and wanted.get(d, 0) > 0]
        if tied:
            ties[query] = len(tied)
        seen = set()
        for rank, (_, document) in enumerate(pairs, 1):
            grade = wanted.get(document)
            if grade is None or not (judged or grade > 0):
                continue
            if document not in seen or policies.duplicates == "keep":
                rows.append((number, rank, grade))
            seen.add(document)
    tag = lines(text)[-1][5].decode()
    return Reference(rows, retrieved, set(lists) - set(labels), ties, duplicates, tag)
