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
from karat.cli.metrics import described, metric_facts
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
`recall[exact]@5`. Case, `-` and `_` do not matter. `recall@5` looks at the top 5,
`recall` at the whole ranking, and `recall@k`, with the letter k, at the sample's own
`k`, or else `-k`, or else 5.

In the formulas, R is the number of relevant gold items, and a slot is the rank at which
an item is credited (see the [glossary](../glossary.md)). An undefined score is shown as
a dash and counted.
"""
MATCHING = """
A matcher says which retrieved document satisfies which gold item. Write it
in brackets, as in `recall[span]@5` or `recall[fuzzy(0.9)]@5`, or set it for all
metrics: `--match span`, in Python `match="span"`. `auto` takes the first that fits the
gold: `id`, `span` or `contains`. `semantic` and `claims` need your function or model
and are created in Python (`karat.extend.Semantic`, `karat.extend.Claims`); for
`claims` the command line has `--model`. `karat matchers` prints this list. See also
[what matchers cannot detect](../concepts/matchers.md).
"""
ELSEWHERE = """
Also understood: `ndcg_cut_10`, `P.10` and the like as trec_eval writes them,
`AP(rel=2)` as ir_measures does, `recall_at_k` and `retrieval-recall-at-k`.
"""
STREAMS = """
Results go to stdout, everything else to stderr. `-` is standard input or output.
`NO_COLOR` turns colours off; a pipe never has any. `--json` prints the contents of a
table as JSON. `-k` is the number of documents of a ranking that count: the cutoff, or
the depth to which a run is read or retrieved.

| exit code | meaning |
| --- | --- |
| 0 | success |
| 1 | a gate failed: a mean is below its `--fail-under` |
| 2 | a mistake in the call or in the data; the message says what and where |
| 3 | incomplete: a limit was reached, or some scores could not be computed |
| 130 | interrupted (143: terminated); replies of a model are kept |
"""
SETTINGS = """
A flag overrides the environment, which overrides the default; `-v` prints each value
and where it comes from. Environment variables are named after the long option:
`--fail-under` is `KARAT_FAIL_UNDER`. Separate several values by spaces in the
environment. Settings of models can also be in `karat.yaml` of the current folder, under
`judging`, for both `evaluate` and `judge`; the environment overrides them. For an
evaluation that you run regularly, define a [suite](../suites.md) there. `karat
trec-eval` uses only its arguments.
"""
COMPLETION = r"""
Your shell can complete commands, options, files, metrics, matchers and profiles. Add
one line to its startup file:

| shell | file | line |
| --- | --- | --- |
| bash | `~/.bashrc` | `eval "$(_KARAT_COMPLETE=bash_source karat)"` |
| zsh | `~/.zshrc` | `eval "$(_KARAT_COMPLETE=zsh_source karat)"` |
| fish | `~/.config/fish/config.fish` | `_KARAT_COMPLETE=fish_source karat \| source` |
"""
CONTENT = """
A file's extension chooses its format. Content decides if several formats, or none,
use an extension; `--format` overrides both. gzip, bzip2 and (with the extra `zstd`)
zstandard files are decompressed. Parquet needs the extra `parquet`. In Python,
`karat.read_run`, `read_gold`, `read_samples` and `read_corpus` read the same, and also
Python objects, arrays and DataFrames.

Texts may be in separate files: `--queries` for queries, `--corpus` for documents. Both
may be in any format with records, with an id and a text, as in BEIR, or two columns
without a header, id and text, as in MS MARCO.
"""
FIELD_NAMES = """
Names are compared without case, `-` and `_`. If a name could mean two things, the other
fields decide. karat prints how it read them, and `--map ours=theirs`, in
Python `mapping={"ours": "theirs"}`, overrides this. `theirs` may be a path with dots,
through objects and lists: `search.top.id`. `document`, `score`, `text` and `grade` may
also name fields inside the documents of a list.

A cell of a table can hold a list as JSON, `["d1", "d2"]`, or as Python prints it;
`d1;d2` is one id.
"""
HANDED = """
karat reads everything below directly: you import no client and convert nothing,
and a test runs each line. `gold` may be any gold, such as `{query: [id, ...]}`; in
`{query: answer, ...}` an answer is what the client returned. If ids are inside the
documents under your own names, use `mapping={"document": "metadata.my_id"}`.

A list is ranked in its own order. A table with a column of distances is ranked by it,
smaller first, with a notice; if the values contradict that, karat stops, and you
decide with `order="descending"` (`--order descending`) or `"ascending"`.
"""
DECISIONS = """
Policies for cases that a formula does not decide. The first choice is karat's default;
a profile is a named set of choices. A policy in parentheses has no option: a profile or
`karat trec-eval` sets it.
"""
PUBLIC = """
The names exported from `karat`, `karat.extend`, `karat.history` and `karat.scale` are
public: they are documented here, and change only with the major version, as the
changelog says. So are the modules in `karat.compat`, with the names of their originals.
Every other module may change at any time. Plug-ins should import only from these.
"""
ENTRY_POINTS = """
A package registers its plug-ins by name in its `pyproject.toml`; the groups are
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
        yield "\n".join(
            f"- {what}: {code(text)}" for what, text in metric_facts(metric)
        )
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
        known = cli_matchers.matcher_facts(kind)
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
