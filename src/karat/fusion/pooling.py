"""Pools: which documents of several runs people should label first."""

from collections.abc import Iterable, Mapping
from typing import Literal

from karat.data.policies import Policies
from karat.data.runs import Run, ranks_of
from karat.errors import ParameterError

_RRF = 60


def choose_pool(
    runs: Iterable[Run],
    *,
    k: int = 20,
    by: Literal["rank", "rrf"] = "rank",
    budget: int | None = None,
    labelled: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, dict[str, str | None]]:
    """The top k documents of every run, each once, the most promising first.

    Best by any run's rank, or by reciprocal rank fusion; labelled documents are left
    out. A budget is spent evenly: the first document of every query, then the second,
    until it is used up. Documents have the text that a run has of them.
    """
    for name, value in (("k", k), ("budget", budget)):
        if value is not None and value < 1:
            raise ParameterError("pool", name, "an integer >= 1", value)
    ranks: dict[str, dict[str, list[int]]] = {}
    texts: dict[str, dict[str, str | None]] = {}
    for run in runs:
        for query, documents in run.rankings(Policies()):
            own, by_name = ranks.setdefault(query, {}), texts.setdefault(query, {})
            for rank, document in zip(ranks_of(documents), documents, strict=True):
                if rank <= k:
                    name = document.id or document.text or ""
                    own.setdefault(name, []).append(rank)
                    by_name[name] = by_name.get(name) or document.text
    done = labelled or {}
    chosen = []
    for number, (query, own) in enumerate(ranks.items()):
        names = [name for name in own if name not in done.get(query, {})]
        # Sorting keeps documents of the same worth in the order of runs and ranks.
        names.sort(key=lambda name: _worth(own[name], by))
        chosen += [(place, number, query, name) for place, name in enumerate(names)]
    pool: dict[str, dict[str, str | None]] = {query: {} for query in ranks}
    for *_, query, name in sorted(chosen)[:budget]:
        pool[query][name] = texts[query][name]
    return {query: row for query, row in pool.items() if row}


def _worth(ranks: list[int], by: str) -> float:
    """The smaller, the more promising."""
    return min(ranks) if by == "rank" else -sum(1 / (_RRF + rank) for rank in ranks)
