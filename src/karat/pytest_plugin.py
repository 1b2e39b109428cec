"""The pytest plug-in: retrieval held to expectations, with the worst queries shown.

def test_retrieval(karat):
karat.assert_retrieval(run, "recall@5 >= 0.8", gold=gold)
"""

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_LEVEL = re.compile(
    r"\s*(?P<metric>\S.*?)\s*(?P<low>lower limit\s*)?>=\s*(?P<value>\S+)\s*"
)
_BASELINE = re.compile(
    r"\s*(?P<metric>\S+)\s+no worse than baseline(?:\s+by\s+(?P<value>\S+))?\s*"
)
_WORST = 5


class RetrievalChecks:
    """What the fixture `karat` gives: checks runs, and remembers them for a report."""

    def __init__(self) -> None:
        self.evaluations: dict[str, Any] = {}

    def assert_retrieval(self, run: Any, *expectations: str, **options: Any) -> Any:
        """As the function of that name; the evaluation is in the session's report."""
        __tracebackhide__ = True
        return assert_retrieval(run, *expectations, **options, scored=self._remember)

    def _remember(self, result: Any) -> None:
        name = result.run if result.run not in self.evaluations else ""
        self.evaluations[name or f"{result.run} {len(self.evaluations) + 1}"] = result


def assert_retrieval(
    run: Any,
    *expectations: str,
    gold: Any = None,
    baseline: Any = None,
    allow_noise: bool = False,
    max_failures: int = 0,
    scored: Callable[[Any], None] = lambda _: None,
    **options: Any,
) -> Any:
    """Fail unless a run meets all expectations; show its worst queries if not.

    Args:
        run: what was retrieved, in any form that `karat.evaluate` takes.
        expectations: `"recall@5 >= 0.8"` on the mean, `"recall@5 lower limit >= 0.7"`
            on the lower limit of its interval, `"ndcg@10 no worse than baseline"`, with
            `by 0.02` for the largest drop allowed.
        gold: what should have been retrieved; None when samples carry their own.
        baseline: a saved evaluation, its path, or a run, for the last kind.
        allow_noise: only warn of a drop that may be chance.
        max_failures: how many queries may fail.
        scored: is told the evaluation, before it is held to anything.
        options: the other options of `karat.evaluate`.

    Returns:
        The evaluation.

    Raises:
        AssertionError: an expectation is not met, or queries failed.
        UsageError: an expectation that cannot be read.
    """
    # A session without retrieval tests does not pay for loading these.
    from karat.evaluation import check_options  # noqa: PLC0415
    from karat.gates import check_failures, check_gates  # noqa: PLC0415
    from karat.leaderboards import evaluation_of  # noqa: PLC0415
    from karat.metrics import split_metrics  # noqa: PLC0415

    __tracebackhide__ = True
    gates = [_gate(text) for text in expectations]
    asked = list(dict.fromkeys(gate.metric for gate in gates))
    own = [str(metric) for metric in split_metrics(options.pop("metrics", ()))]
    name = options.pop("name", None) or "run"
    check_options("assert_retrieval", options, refused=("judged",))
    scoring = {**options, "metrics": [*own, *asked]}
    result = evaluation_of(name, run, gold, scoring)
    scored(result)
    base = None
    if baseline is not None:
        base = evaluation_of("baseline", baseline, gold, scoring)
    checked = check_gates(gates, [result], baseline=base, allow_noise=allow_noise)
    checked += check_failures([result], max_failures)
    if broken := [one for one in checked if one.status == "fail"]:
        lines = [one.sentence for one in broken]
        metrics = [one.gate.metric for one in broken if one.gate.kind != "failures"]
        lines += [line for metric in metrics[:1] for line in _worst(result, metric)]
        raise AssertionError("\n".join(lines))
    for one in checked:
        if one.status == "inconclusive":
            warnings.warn(f"inconclusive: {one.sentence}", stacklevel=2)
        if one.left_out:
            warnings.warn(f"not compared: {one.left_out}", stacklevel=2)
    return result


def _gate(text: str) -> Any:
    from karat.errors import UsageError  # noqa: PLC0415
    from karat.gates import read_gate  # noqa: PLC0415

    if found := _BASELINE.fullmatch(text):
        return read_gate(f"{found['metric']}={found['value'] or 0}", "drop")
    if found := _LEVEL.fullmatch(text):
        kind: Any = "low" if found["low"] else "mean"
        return read_gate(f"{found['metric'].strip()}={found['value']}", kind)
    raise UsageError(
        f"an expectation reads 'recall@5 >= 0.8' or 'ndcg@10 no worse than baseline', "
        f"got {text!r}"
    )


def _worst(result: Any, metric: str) -> Iterator[str]:
    """The queries with the lowest scores, with what they ask."""
    column = result[metric]
    scored = [
        (score, query)
        for query, score in zip(result.queries, column.scores.tolist(), strict=True)
        if score == score  # noqa: PLR0124
    ]
    yield f"worst queries by {metric}:"
    worst_is_large = column.higher_is_better is False
    for score, query in sorted(scored, reverse=worst_is_large)[:_WORST]:
        fact = result.facts.get(query)
        text = f"  {fact.text[:80]}" if fact and fact.text else ""
        yield f"  {score:.4f}  {query}{text}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--karat-report`."""
    parser.getgroup("karat").addoption(
        "--karat-report",
        metavar="FILE",
        help="Write what assert_retrieval scored, by extension: json, md, csv, ...",
    )


@pytest.fixture(scope="session")
def _karat_session(request: pytest.FixtureRequest) -> Iterator[RetrievalChecks]:
    session = RetrievalChecks()
    yield session
    target = request.config.getoption("--karat-report")
    if target and session.evaluations:
        from karat.reports import REPORTS  # noqa: PLC0415
        from karat.results.leaderboard import Leaderboard  # noqa: PLC0415
        from karat.writing import write_file  # noqa: PLC0415

        board = Leaderboard(session.evaluations)
        report = REPORTS[Path(target).suffix.removeprefix(".")]
        write_file(target, report(board, [board.summary()]))


@pytest.fixture
def karat(_karat_session: RetrievalChecks) -> RetrievalChecks:
    """Holds retrieval to expectations: `karat.assert_retrieval(run, ...)`."""
    return _karat_session
