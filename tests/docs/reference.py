"""`python -m tests.docs.reference`: write the reference pages from the catalogues."""

import ast
import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import fields
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import click

import karat as package
from karat import compat, evaluate, extend, history, scale
from karat.cli import COMMANDS, karat, matchers as cli_matchers
from karat.cli.metrics import about, described
from karat.data.policies import CHOICES, PROFILES
from karat.extend import Policies
from karat.metrics import METRICS, NAMES
from karat.reading.format import FORMATS
from karat.reading.meaning.aliases import ALIASES, FIELDS
from karat.reports import REPORTS
from karat.results.plain_values import SCHEMA_VERSION
from tests.docs.in_hand import IN_HAND
from tests.docs.saved_schema import attributes, evaluation_schema

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
SCHEMA = FOLDER.parent / "schema" / f"evaluation-{SCHEMA_VERSION}.schema.json"
WRITTEN = "<!-- Written by `make docs` from the code; change it there. -->\n"
WIDTH = 88
FRONTS = (module.name for module in iter_modules(compat.__path__))
LAYERS: dict[str, ModuleType] = {
    layer.__name__: layer
    for layer in (
        *(package, extend, history, scale),
        *(import_module(f"karat.compat.{name}") for name in FRONTS),
    )
    if hasattr(layer, "__all__")
}
"""The modules whose names are public, by name."""

SPELLING = """
A metric is written `name(params)[matcher]@k`, as in `ndcg(gain=exp)@10` or
`recall[exact]@5`. Upper case, `-` and `_` are forgiven. `recall@5` looks at the top 5,
`recall` at the whole ranking, and `recall@k`, with the letter, at as many documents as
the sample says, else `-k`, else 5.

In the formulas, R is the number of relevant gold items, and a slot is the rank at which
an item is paid (see the [glossary](../glossary.md)). A score that is undefined is shown
as a dash and counted.
"""
MATCHING = """
A matcher says which retrieved document satisfies which gold item. It stands in
brackets, as in `recall[span]@5` or `recall[fuzzy(0.9)]@5`, or is the one for all
metrics: `--match span`, in Python `match="span"`. `auto` takes the first that fits the
gold: `id`, `span` or `contains`. `semantic` and `claims` need a function or a model of
yours and are made in Python (`karat.extend.Semantic`, `karat.extend.Claims`); for
`claims` the command line has `--model`. `karat matchers` prints this list.
[What they cannot tell](../concepts/matchers.md).
"""
ELSEWHERE = """
Also understood: `ndcg_cut_10`, `P.10` and the like as trec_eval writes them,
`AP(rel=2)` as ir_measures does, `recall_at_k` and `retrieval-recall-at-k`.
"""
STREAMS = """
Results go to stdout, everything else to stderr. `-` is standard input or output.
`NO_COLOR` turns colours off; a pipe never has any. `--json` prints what a table shows
as JSON. `-k` is how many documents of a ranking count: the cutoff, or how deep a run is
read or asked for.

| exit code | meaning |
| --- | --- |
| 0 | fine |
| 1 | a gate failed: a mean is below its `--fail-under` |
| 2 | a mistake in the call or in the data; a sentence says which and where |
| 3 | incomplete: a limit was reached, or some scores could not be computed |
| 130 | interrupted (143: terminated); replies of a model are kept |
"""
SETTINGS = """
Every option can be set in three places. A flag beats the environment, which beats the
default; `-v` prints each value and where it comes from. The name is that of the long
option: `--fail-under` is `KARAT_FAIL_UNDER`. Several values are separated by spaces in
the environment. What is about a model may also stand in `karat.yaml` of the current
folder, under `judging`, for `evaluate` and `judge` alike; the environment beats it.
What is measured for good is a [suite](../suites.md) there. `karat trec-eval` listens to
its arguments only.
"""
COMPLETION = r"""
Shells complete commands, options, files, metrics, matchers and profiles. One line in
the file that your shell reads at its start switches it on:

| shell | file | line |
| --- | --- | --- |
| bash | `~/.bashrc` | `eval "$(_KARAT_COMPLETE=bash_source karat)"` |
| zsh | `~/.zshrc` | `eval "$(_KARAT_COMPLETE=zsh_source karat)"` |
| fish | `~/.config/fish/config.fish` | `_KARAT_COMPLETE=fish_source karat \| source` |
"""
CONTENT = """
A file's extension chooses its format. Content decides between formats that are met
under one extension, and where no format claims it; `--format` overrides both. gzip,
bzip2 and (with the extra `zstd`) zstandard are unpacked on the way. Parquet needs the
extra `parquet`. In Python, `karat.read_run`, `read_gold`, `read_samples` and
`read_corpus` read the same, and also Python objects, arrays and DataFrames.

Texts may have files of their own: those of queries with `--queries`, those of documents
with `--corpus`. Both may be in any format with records, with an id and a text, as in
BEIR, or two columns without a header, id and text, as in MS MARCO.
"""
FIELD_NAMES = """
Names are compared without case, `-` and `_`. Where one could mean two things, what
stands beside it decides. karat prints how it read them, and `--map ours=theirs`, in
Python `mapping={"ours": "theirs"}`, overrides it. `theirs` may be a path with dots,
through objects and lists: `search.top.id`. `document`, `score`, `text` and `grade` may
also name what stands inside the documents of a list.

A cell of a table holds a list as JSON, `["d1", "d2"]`, or as Python prints it; `d1;d2`
is one id.
"""
HANDED = """
Everything below is scored as it is: no client is imported, nothing is converted,
and each line is run by a test. `gold` may be any gold, such as `{query: [id, ...]}`; in
`{query: answer, ...}` an answer is what the client returned. Where ids lie inside the
documents under names of your own, `mapping={"document": "metadata.my_id"}` names them.

A list is ranked as it is given. A table with a column of distances is ranked by it,
smaller first, and karat says so; where the values say otherwise it stops, and
`order="descending"` (`--order descending`) or `"ascending"` decides.
"""
DECISIONS = """
What happens where a formula does not decide. The first choice is the native rule; a
profile is a named set of choices. A switch in parentheses is no option of its own: a
profile or `karat trec-eval` sets it.
"""
PUBLIC = """
What is exported from `karat`, `karat.extend`, `karat.history` and `karat.scale` is
public: it is documented here, and it changes only with the major version, as the
changelog says. So are the fronts in
`karat.compat`, under the names of their originals. Every other module may change at any
time. A plug-in imports from these and from nothing else.
"""
ENTRY_POINTS = """
A package adds what it brings by name, in its `pyproject.toml`; the groups are
`karat.metrics`, `karat.matchers`, `karat.formats` and `karat.reports`:

```toml
[project.entry-points."karat.metrics"]
best = "my_package:Best"
```
"""


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "python").mkdir(exist_ok=True)
    for name, text in {**pages(), **python_pages()}.items():
        (FOLDER / name).write_text(text, "utf-8")
    for path, text in stubs().items():
        path.write_text(text, "utf-8")
    SCHEMA.write_text(evaluation_schema(), "utf-8")


def stubs() -> dict[Path, str]:
    """What type checkers and editors read of modules whose names are loaded late."""
    own = {name: (module, name) for name, module in vars(package)["_MODULES"].items()}
    homes: dict[ModuleType, dict[str, tuple[str, str]]] = {
        package: {**own, "history": ("karat", "history"), "scale": ("karat", "scale")},
        extend: vars(extend)["_SOURCES"],
    }
    return {
        Path(str(layer.__file__)).with_suffix(".pyi"): "\n".join(
            [
                "# Written by `make docs` from the module of the same name.",
                "# fmt: off",
                *(f"from {m} import {old} as {new}" for new, (m, old) in names.items()),
                *(["__version__: str"] if layer is package else []),
                f"__all__ = {json.dumps(layer.__all__)}",
                "",
            ]
        )
        for layer, names in homes.items()
    }


def pages() -> dict[str, str]:
    """The text of every page, by file name."""
    parts = {
        "metrics.md": metrics(),
        "matchers.md": matchers(),
        "cli.md": commands(),
        "formats.md": formats(),
        "inputs.md": inputs(),
    }
    return {name: joined(page) for name, page in parts.items()}


def joined(page: Iterable[str]) -> str:
    return "\n".join([WRITTEN, *(part.strip("\n") + "\n" for part in page)])


def metrics() -> Iterator[str]:
    yield "# Metrics"
    yield SPELLING
    rows = [(f"[`{n}`](#{n})", m.summary(), m.formula) for n, m in METRICS.items()]
    yield table(("metric", "what it says", "formula"), rows)
    for name, metric in METRICS.items():
        yield f"## {name}"
        yield described(metric)[0]
        yield "\n".join(f"- {what}: {code(text)}" for what, text in about(metric))
    yield "## Names of other tools"
    yield ELSEWHERE
    yield table(
        ("elsewhere", "here"), [(f"`{t}`", f"`{o}`") for t, o in sorted(NAMES.items())]
    )


def matchers() -> Iterator[str]:
    yield "# Matchers"
    yield MATCHING
    kinds = cli_matchers.catalogue()
    rows = [
        (f"[`{name}`](#{name})", ", ".join(kind.reads), cli_matchers.first(kind))
        for name, kind in kinds.items()
    ]
    yield table(("matcher", "reads", "what it does"), rows)
    for name, kind in kinds.items():
        yield f"## {name}"
        yield described(kind)[0]
        known = cli_matchers.about(kind)
        yield "\n".join(f"- {what}: {code(text)}" for what, text in known)


def commands() -> Iterator[str]:
    yield "# Command line"
    yield STREAMS
    yield "## Settings"
    yield SETTINGS
    yield "## Completion"
    yield COMPLETION
    yield f"Reports are written by extension: {listed(REPORTS)}."
    context = click.Context(karat, info_name="karat", terminal_width=WIDTH)
    for name in COMMANDS:
        command = copy(karat.get_command(context, name))
        assert command is not None
        # Made once and kept: another test may have asked for it under other names.
        command._help_option = None
        inner = click.Context(command, context, name, **command.context_settings)
        inner.help_option_names = ["-h", "--help"]
        yield f"## karat {name}"
        yield f"```text\n{command.get_help(inner)}\n```"
        for action, part in getattr(command, "commands", {}).items():
            own = click.Context(part, inner, action)
            own.help_option_names = ["-h", "--help"]
            yield f"### karat {name} {action}"
            yield f"```text\n{part.get_help(own)}\n```"


def formats() -> Iterator[str]:
    yield "# Formats"
    yield CONTENT
    rows = [
        (
            f"`{name}`",
            listed(known.extensions),
            ", ".join(sorted(known.holds)),
            first_line(type(known)),
        )
        for name, known in FORMATS.items()
    ]
    yield table(("format", "extensions", "can be written", "what it is"), rows)
    yield "## Fields of samples and tables"
    yield FIELD_NAMES
    named = [
        (f"`{ours}`", what, listed(ALIASES.get(ours, "").split()))
        for ours, what in FIELDS.items()
    ]
    yield table(("field", "what it holds", "names understood"), named)
    yield "## Policies"
    yield DECISIONS
    rules = dict(part.split(": ", 1) for part in attributes(Policies))
    yield table(
        ("switch", "choices", "meaning"),
        [
            (switch(f.name), listed(CHOICES.get(f.name, ())), rules[f.name])
            for f in fields(Policies)
        ],
    )
    yield table(
        ("profile", "sets"),
        [
            (
                f"`{p.profile}`",
                listed(f"{k}={v}" for k, v in p.changes().items() if k != "profile"),
            )
            for p in PROFILES.values()
        ],
    )


def inputs() -> Iterator[str]:
    yield "# What do you have?"
    yield HANDED
    for title, rows in IN_HAND.items():
        yield f"## {title}"
        lines = [(hand.what, f"`{hand.line}`") for hand in rows]
        yield table(("what you have", "the line that scores it"), lines)


def python_pages() -> dict[str, str]:
    """The index of public names, and a page for each module that exports them."""
    api = {f"python/{name}.md": joined(module_page(name)) for name in LAYERS}
    return {"python.md": joined(layers()), **api}


def layers() -> Iterator[str]:
    yield "# Python"
    yield PUBLIC
    for title, layer in LAYERS.items():
        yield f"## {title}"
        rows = [
            (f"[`{name}`](python/{title}.md#{title}.{name})", says(layer, name))
            for name in public_names(layer)
        ]
        yield table(("name", "what it is"), rows)
    yield "## Plug-ins"
    yield ENTRY_POINTS


def module_page(title: str) -> Iterator[str]:
    """The names of a module; the site puts in what their docstrings say."""
    yield f"# {title}"
    yield first_line(LAYERS[title])
    yield "`make site` makes of this page what the docstrings say."
    for name in public_names(LAYERS[title]):
        yield f"::: {title}.{name}"


def public_names(layer: ModuleType) -> list[str]:
    return [name for name in layer.__all__ if name[0] != "_"]


def says(layer: ModuleType, name: str) -> str:
    """The first line of what a public name says of itself, where it is defined."""
    thing = getattr(layer, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return first_line(thing)
    if layer is extend:
        return constant(*vars(extend)["_SOURCES"][name])
    return constant(layer.__name__, name)


def constant(module: str, name: str) -> str:
    """The text below an assignment, in the module or where that imports it from."""
    body = ast.parse(inspect.getsource(import_module(module))).body
    for node, text in pairwise(body):
        if isinstance(node, ast.ImportFrom) and name in (a.name for a in node.names):
            assert node.module is not None
            return constant(node.module, name)
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if name in (getattr(target, "id", None) for target in targets):
            assert isinstance(text, ast.Expr), f"{name} lacks a docstring"
            return str(ast.literal_eval(text.value)).partition("\n")[0]
    raise AssertionError(name)


def switch(name: str) -> str:
    """A policy as a caller may set it."""
    settable = name in inspect.signature(evaluate).parameters
    return f"`{name}`" if settable else f"(`{name}`)"


def first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in row] for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def code(text: str) -> str:
    return text.replace("*", "\\*").replace("_", "\\_")


if __name__ == "__main__":
    main()
