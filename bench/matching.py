"""Text matching: how right, and how fast: `python bench/matching.py [--quick]`.

Right: gold passages whose offsets are known are looked for in chunks of their texts,
cut in eight ways and spoilt in seven, picked or found by BM25, with headers and
without; and in tables, code and eight scripts. Which share of a passage was really
retrieved is known. The mean absolute error of `coverage` must not exceed 0.012 on prose
and 0.03 on any other row, and `complete(tau=0.95)` must not be wrong for more than 1 %
of the passages of clean text. Rules that other tools use are shown beside it, on every
sixth passage.

Fast: 1,000 queries with 20 documents of 1,000 characters in three scripts; `span` on
the pairs of texts that `fuzzy` is timed on; and texts made to be slow.
"""

import argparse
import gc
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from statistics import fmean
from typing import NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

import fuzzy
import karat
from karat import Gold
from karat.data.memory_runs import DocumentRun
from karat.extend import Document, Item
from rechunking import (
    CHUNKERS,
    CORRUPTIONS,
    SCRIPTS,
    Case,
    Corpora,
    made_corpora,
    make_cases,
    read_corpora,
)
from timing import Bar, Row, clock, in_process, show

_PROSE, _OTHER = 0.012, 0.03
_WRONG = 0.01
_EVERY = 6
_COMPLETE = 0.95
_SECONDS = {"english": 1.5, "chinese": 4.0, "thai": 4.0}

Rule = Callable[[str, list[str]], float]
PEERS: dict[str, Rule] = {
    "ragas": lambda gold, texts: float(
        any(1 - Levenshtein.normalized_distance(gold, text) > 0.5 for text in texts)
    ),
    "substring": lambda gold, texts: float(any(gold in text for text in texts)),
    "partial": lambda gold, texts: max(
        (fuzz.partial_ratio(gold, text) / 100 for text in texts), default=0.0
    ),
    "token_set": lambda gold, texts: max(
        (fuzz.token_set_ratio(gold, text) / 100 for text in texts), default=0.0
    ),
}


def accuracy(*, quick: bool) -> int:
    """Print how far off each rule is; how many bars span missed."""
    corpora = read_corpora()
    if corpora is None:
        print("\nthe corpora of chunking_eval are not there: see KARAT_SHARED")
        return 1
    print(
        f"\nmean absolute error of coverage (bars: {_PROSE} on prose, {_OTHER} on the "
        f"rest); complete: wrong decisions at {_COMPLETE} (bar: {_WRONG:.0%})\n"
    )
    print(
        f"  {'texts':<12}{'chunks':<11}{'spoilt':<12}{'span':>8}{'complete':>10}",
        end="",
    )
    print("".join(f"{name:>11}" for name in PEERS))
    missed = 0
    for setting in settings(corpora):
        cases = [
            *make_cases(
                setting.corpora,
                CHUNKERS[setting.chunker],
                CORRUPTIONS[setting.corruption],
                header=setting.header,
                retrieve=setting.retrieve,
            )
        ]
        error, wrong = span_errors(cases)
        bad = error > setting.bar or (setting.clean and wrong > _WRONG)
        missed += bad
        few = [] if quick else cases[::_EVERY]
        others = "".join(f"{rule_error(rule, few):>11.3f}" for rule in PEERS.values())
        text = f"  {setting.name:<12}{setting.chunker:<11}{setting.corruption:<12}"
        text += f"{error:>8.4f}{wrong:>9.2%} {others}"
        print(f"{text}{'  MISSED' if bad else ''}", flush=True)
    return missed


class Setting(NamedTuple):
    """A row of the table: which texts, cut and spoilt how, and how right to be."""

    name: str
    corpora: Corpora
    chunker: str
    corruption: str = "none"
    bar: float = _PROSE
    header: bool = False
    retrieve: bool = False

    @property
    def clean(self) -> bool:
        """Whether no letter was changed."""
        return not self.corruption.startswith("scanned")


def settings(corpora: Corpora) -> Iterator[Setting]:
    """All rows."""
    for chunker in CHUNKERS:
        yield Setting("prose", corpora, chunker)
    for chunker in ("800/25%", "300/0"):
        for corruption in CORRUPTIONS:
            bar = _OTHER if corruption.startswith("scanned") else _PROSE
            if corruption != "none":
                yield Setting("prose", corpora, chunker, corruption, bar)
    for chunker in ("300/0", "800/25%", "recursive"):
        yield Setting("BM25", corpora, chunker, bar=_OTHER, retrieve=True)
        yield Setting("headers", corpora, chunker, bar=_OTHER, header=True)
    for kind in ("tables", "code", *SCRIPTS):
        lines = "recursive" if kind in {"tables", "code"} else "sentence"
        for chunker in ("300/0", "800/25%", lines):
            yield Setting(kind, made_corpora(kind), chunker, bar=_OTHER)


def span_errors(cases: list[Case]) -> tuple[float, float]:
    """The mean error of coverage, and the share of wrong decisions."""
    samples = [
        {"id": f"q{n}", "passages": [case.gold], "retrieved_texts": case.retrieved}
        for n, case in enumerate(cases)
    ]
    complete = f"complete(tau={_COMPLETE})"
    result = karat.evaluate(samples, metrics=["coverage", complete])
    truth = [case.covered for case in cases]
    covered, decided = result["coverage"].scores, result[complete].scores
    error = fmean(abs(a - b) for a, b in zip(covered, truth, strict=True))
    wrong = sum(
        (a > 0) != (b >= _COMPLETE) for a, b in zip(decided, truth, strict=True)
    )
    return error, wrong / len(cases)


def rule_error(rule: Rule, cases: list[Case]) -> float:
    """The mean error of a peer's rule; NaN where it was not tried."""
    if not cases:
        return float("nan")
    return fmean(abs(rule(case.gold, case.retrieved) - case.covered) for case in cases)


def throughput(*, quick: bool) -> Iterator[Row]:
    """Seconds of CPU for 1,000 queries with 20 documents of 1,000 characters."""
    queries = 100 if quick else 1000
    for script, seconds in _SECONDS.items():
        text = "".join(made_corpora(script).texts.values())
        chance = random.Random(0)
        samples = []
        for number in range(queries):
            at = [chance.randrange(len(text) - 2000) for _ in range(19)]
            documents = [text[start : start + 1000] for start in (at[0] + 300, *at)]
            gold = text[at[0] + 200 : at[0] + 700]
            samples.append(
                {"id": f"q{number}", "passages": [gold], "retrieved_texts": documents}
            )
        started = time.process_time()
        karat.evaluate(samples, metrics=["coverage", "complete", "recall[span]"])
        took = (time.process_time() - started) * 1000 / queries
        yield Row(script, clock(took), "", "", took, "s", Bar(seconds, at_most=True))


def speed(*, quick: bool) -> Iterator[Row]:
    """Span beside fuzzy, on the same pairs of texts."""
    texts = fuzzy.make_texts(200 if quick else 1000)
    samples = [
        {"id": query, "passages": gold, "retrieved_texts": retrieved}
        for query, (gold, retrieved) in texts.items()
    ]

    def evaluate(match: str) -> object:
        return karat.evaluate(samples, metrics=["recall"], match=match)["recall"].scores

    matchers = ("span", "fuzzy(0.5)", "fuzzy(0.8)")
    took = in_process({m: partial(evaluate, m) for m in matchers}, rounds=5)
    span = took["span"].seconds
    for other, bar in (("fuzzy(0.5)", Bar(2, at_most=True)), ("fuzzy(0.8)", None)):
        theirs = took[other].seconds
        yield Row("span", clock(span), other, clock(theirs), span / theirs, bar=bar)


def pathological() -> Iterator[Row]:
    """Texts made to be slow."""
    chance = random.Random(0)
    words = ["".join(chance.choices("etaoinshrdlu", k=6)) for _ in range(5000)]
    long = " ".join(chance.choices(words, k=1_430_000))
    cases = {
        "1 MB letter": ("a" * 1_000_000, ["a" * 1_000_000]),
        "100k repeats": ("word " * 100_000, ["word " * 100_000]),
        "10 MB gold": (long, [long[1_000_000:3_000_000], long[:2000]]),
        "10 MB both": (long, [long]),
    }
    for name, (gold, retrieved) in cases.items():
        sample = {"id": "q", "passages": [gold], "retrieved_texts": retrieved}
        started = time.perf_counter()
        karat.evaluate([sample], metrics=["coverage", "iou", "recall[span]"])
        took = time.perf_counter() - started
        yield Row(name, clock(took), "", "", took, "s", Bar(10, at_most=True))


class _Endless(DocumentRun):
    """Makes up documents when they are asked for, and forgets them."""

    def __init__(self, queries: int) -> None:
        super().__init__({f"q{n}": () for n in range(queries)})

    def rankings(self, policies: object) -> Iterator[tuple[str, list[Document]]]:
        del policies
        chance = random.Random(1)
        for query in self.queries():
            texts = (" ".join(chance.choices(fuzzy_words, k=80)) for _ in range(20))
            yield query, [Document(f"d{n}", text) for n, text in enumerate(texts)]


fuzzy_words = [f"w{n}x" for n in range(3000)]


def memory() -> Iterator[Row]:
    """Peak memory for few and for many queries, beside what their result keeps."""
    peaks = []
    for queries in (200, 800):
        item = (Item("p", " ".join(fuzzy_words[:80])),)
        gold = Gold(passages={f"q{n}": item for n in range(queries)})
        gc.collect()
        tracemalloc.start()
        run = _Endless(queries)
        result = karat.evaluate(run, gold=gold, metrics=["coverage"], force=True)
        kept, peak = tracemalloc.get_traced_memory()
        peaks.append(peak - kept)
        tracemalloc.stop()
        del result
    few, many = (f"{peak / 2**20:.1f} MB" for peak in peaks)
    bar = Bar(1.5, at_most=True)
    yield Row("800 queries", many, "200 queries", few, peaks[1] / peaks[0], bar=bar)


def main() -> int:
    """Print all tables; the exit code is 1 when a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the peers")
    quick = parser.parse_args().quick
    missed = accuracy(quick=quick)
    missed += show("1,000 queries x 20 x 1,000 letters", throughput(quick=quick))
    missed += show("span beside fuzzy, 100,000 pairs of texts", speed(quick=quick))
    missed += show("texts made to be slow", pathological())
    missed += show("peak memory while matching", memory())
    if not quick:
        missed += show(fuzzy.TITLE, fuzzy.measure([]))
    print(f"\n{missed} bars missed" if missed else "\nall bars reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
