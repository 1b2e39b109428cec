"""Files, whole processes: the commands of karat beside scripts with pytrec_eval."""

import sys
from collections.abc import Iterator
from pathlib import Path

from datasets import MILLION, prepare, prepare_layouts, prepare_rows
from measures import METRICS, TREC_NAMES, TREC_REQUEST
from timing import Bar, Process, Row, clock, faster, whole_process

__all__ = [
    "measure_layouts",
    "measure_parquet",
    "measure_rows",
    "measure_startup",
    "measure_trec",
]

_RIVAL = str(Path(__file__).with_name("rival.py"))
_LAST_DIGIT = 1.01e-4

_TREC_BARS = {"marco": 6.0, "large": 5.0}
_TREC_PEAKS = {"marco": Bar(120, at_most=True)}
_PACKED_BARS = {"marco": Bar(1.6, at_most=True)}
_WALL_BARS = {"small": Bar(250, at_most=True)}
_PARQUET_BARS = {"marco": 12.0}
_PARQUET_PEAKS = {"marco": Bar(500, at_most=True)}
_IMPORT_BAR = Bar(150, at_most=True)
_START_BAR = Bar(150, at_most=True)
_LAYOUT_BARS = {"exponents": 1.3, "softmax": 1.3, "19 digits": 1.3}
_DICTS = "import karat; karat.evaluate({'q': {'a': 1.0}}, gold={'q': {'a': 1}})"
# Reading larger ones takes both sides a minute, and says nothing more.
_ROWS = ("small", "beir", "dl", "million")


def measure_startup(sizes: list[str]) -> Iterator[Row]:
    """What `import karat` adds to Python's start, and the CPU of short commands."""
    del sizes
    folder = prepare("small")
    qrels, run = str(folder / "qrels.txt"), str(folder / "run.txt")
    took = whole_process(
        {
            "python": [sys.executable, "-c", "pass"],
            "import": [sys.executable, "-c", "import karat"],
            "numpy": [sys.executable, "-c", "import numpy"],
            "dicts": [sys.executable, "-c", _DICTS],
            "--help": [sys.executable, "-m", "karat", "--help"],
            "trec-eval": _trec_eval(qrels, run),
        }
    )
    alone, ours = took["python"].seconds, took["import"].seconds
    added = (ours - alone) * 1e3
    yield Row("import", clock(ours), "Python", clock(alone), added, "ms", _IMPORT_BAR)
    numpy = clock(took["numpy"].cpu)
    for name in ("dicts", "--help", "trec-eval"):
        cpu = took[name].cpu
        yield Row(
            f"{name} cpu",
            clock(cpu),
            "import numpy",
            numpy,
            cpu * 1e3,
            "ms",
            _START_BAR,
        )


def measure_trec(sizes: list[str]) -> Iterator[Row]:
    """Rows for each size: speed and memory beside pytrec_eval, and gz beside plain."""
    for size in sizes:
        folder = prepare(size)
        qrels, run = str(folder / "qrels.txt"), str(folder / "run.txt")
        took = whole_process(
            {
                "karat": _trec_eval(qrels, run),
                "gz": _trec_eval(qrels, f"{run}.gz"),
                "pytrec_eval": [sys.executable, _RIVAL, qrels, run],
            }
        )
        ours, packed, theirs = took.values()
        expected = _trec_means(theirs.output)
        _agree(_trec_means(ours.output), expected)
        _agree(_trec_means(packed.output), expected)
        bar = _TREC_BARS.get(size)
        yield faster(size, ours.seconds, "pytrec_eval", theirs.seconds, bar)
        yield _memory(size, ours, theirs, _TREC_PEAKS.get(size))
        wall, packed_wall = clock(ours.seconds), clock(packed.seconds)
        ratio, limit = packed.seconds / ours.seconds, _PACKED_BARS.get(size)
        yield Row(f"{size} gz", packed_wall, "plain file", wall, ratio, bar=limit)
        if wall_bar := _WALL_BARS.get(size):
            yield Row(size, wall, "wall clock", "", ours.seconds * 1e3, "ms", wall_bar)


def measure_layouts(sizes: list[str]) -> Iterator[Row]:
    """CPU of a million lines whose scores or order are unusual, beside usual ones."""
    if len(sizes) == 1:
        return
    folder = prepare_layouts()
    qrels = str(folder / "qrels.txt")
    names = [file.stem for file in sorted(folder.glob("*.run"))]
    runs = {name: str(folder / f"{name}.run") for name in names}
    script = [sys.executable, _RIVAL, qrels]
    peers = {f"{name} peer": [*script, run] for name, run in runs.items()}
    took = whole_process({n: _trec_eval(qrels, run) for n, run in runs.items()} | peers)
    plain = took["plain"].cpu
    for name in names:
        ours, theirs = took[name], took[f"{name} peer"]
        if name != "tied":  # pytrec_eval reads scores as float32, which ties others too
            _agree(_trec_means(ours.output), _trec_means(theirs.output))
        yield faster(name, ours.cpu, "pytrec_eval", theirs.cpu, 1.0)
        bar = Bar(_LAYOUT_BARS[name], at_most=True) if name in _LAYOUT_BARS else None
        cpu, ratio = clock(ours.cpu), ours.cpu / plain
        yield Row(name, cpu, "plain decimals", clock(plain), ratio, bar=bar)


def measure_parquet(sizes: list[str]) -> Iterator[Row]:
    """Rows for each size: speed beside two ways of calling pytrec_eval, and memory."""
    folders = {size: prepare(size) for size in sizes}
    if len(sizes) > 1:
        folders["million, whole numbers"] = prepare_layouts()
    for size, folder in folders.items():
        qrels, run = str(folder / "qrels.parquet"), str(folder / "run.parquet")
        took = whole_process(
            {
                "karat": _evaluate(run, qrels),
                "pytrec_eval": [sys.executable, _RIVAL, qrels, run],
                "by lists": [sys.executable, _RIVAL, qrels, run, "lists"],
            }
        )
        ours, theirs, quicker = took.values()
        _agree_with_table(ours, theirs)
        bar = _PARQUET_BARS.get(size)
        yield faster(size, ours.seconds, "pytrec_eval", theirs.seconds, bar)
        yield faster(size, ours.seconds, "... by lists", quicker.seconds)
        yield _memory(size, ours, theirs, _PARQUET_PEAKS.get(size))


def measure_rows(sizes: list[str]) -> Iterator[Row]:
    """For each size: rows as CSV and as JSONL, and samples whose documents have scores.

    The script reads them as most would: with `csv` and `json` of the standard library.
    CPU seconds of whole processes are compared, the start of Python among them.
    """
    for size in (s for s in _ROWS if s in sizes or (s in MILLION and len(sizes) > 1)):
        folder = prepare_rows(size)
        qrels = str(folder / "qrels.txt")
        for name in ("run.csv", "run.jsonl", "samples.jsonl"):
            run = str(folder / name)
            gold = () if name == "samples.jsonl" else (qrels,)
            took = whole_process(
                {
                    "karat": _evaluate(run, *gold),
                    "pytrec_eval": [sys.executable, _RIVAL, qrels, run],
                }
            )
            ours, theirs = took.values()
            _agree_with_table(ours, theirs)
            work = f"{size} {name.removeprefix('run.').removesuffix('.jsonl')}"
            yield faster(work, ours.cpu, "pytrec_eval", theirs.cpu, 1.0)


def _trec_eval(qrels: str, run: str) -> list[str]:
    measures = [word for measure in TREC_REQUEST for word in ("-m", measure)]
    return [sys.executable, "-m", "karat", "trec-eval", *measures, qrels, run]


def _evaluate(run: str, *gold: str) -> list[str]:
    metrics = [word for name in METRICS for word in ("-m", name)]
    golds = [word for path in gold for word in ("--gold", path)]
    return [sys.executable, "-m", "karat", "evaluate", run, *golds, *metrics]


def _memory(size: str, ours: Process, theirs: Process, bar: Bar | None) -> Row:
    """A row about peak memory; the bar is about ours alone."""
    here, there = ours.peak / 1e6, theirs.peak / 1e6
    peak = f"{here:.0f} MB"
    return Row(size, peak, "pytrec_eval", f"{there:.0f} MB", here, "MB", bar)


def _trec_means(output: str) -> dict[str, float]:
    """The means in what trec_eval, or an imitation of it, prints."""
    lines = (line.split() for line in output.splitlines())
    return {words[0]: float(words[2]) for words in lines if words[1:2] == ["all"]}


def _agree_with_table(ours: Process, theirs: Process) -> None:
    """Stop when a mean of karat's table is not the script's."""
    lines = (line.split() for line in ours.output.splitlines())
    rows = {words[0]: words[1] for words in lines if len(words) > 1}
    means = {trec: float(rows[name]) for name, trec in TREC_NAMES.items()}
    expected = _trec_means(theirs.output)
    expected.pop("recip_rank")  # ours is cut at 10
    _agree(means, expected)


def _agree(ours: dict[str, float], theirs: dict[str, float]) -> None:
    """Stop when a printed mean differs by more than its last decimal."""
    for name, mean in theirs.items():
        if abs(ours[name] - mean) > _LAST_DIGIT:
            raise SystemExit(f"{name}: karat {ours[name]}, pytrec_eval {mean}")
