"""The example scripts run, and print what they should."""

import ast
import io
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import karat

NOTEBOOK = "notebook.py"
SCRIPTS = Path(__file__).parents[2] / "examples"

# By hand: ndcg@10 of "refund window" is (3/log2(3) + 1/log2(5)) / (3 + 1/log2(3)).
FIRST_SCORE = """\
recall@3   0.7500
rr         0.5000
ndcg@10    0.6354
refund window: first relevant document at rank 2
reset password: first relevant document at rank 2
"""

# Means and gaps as pytrec_eval gives them, without q38, which has nothing relevant.
TREC_FILES = """\
            keyword    dense
hit@5        0.7949   1.0000
recall@5     0.5556   0.7714
ndcg@10      0.6161   0.7526
undefined         1        1
keyword is better on q08, q25, q22
dense is better on q39, q37, q29
"""

# By hand: q1 reaches grades 1, 2, 3 of 3, and q2 finds its only document at rank 3.
OWN_METRIC = """\
best@1   0.1667
best@2   0.3333
best@3   1.0000
rr       0.6667
"""

PRINTED = {
    "first_score.py": FIRST_SCORE,
    "own_metric.py": OWN_METRIC,
    "trec_files.py": TREC_FILES,
}


def test_every_script_is_tested() -> None:
    tested = [*PRINTED, NOTEBOOK]
    assert sorted(tested) == sorted(script.name for script in SCRIPTS.glob("*.py"))


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_a_script_prints_its_numbers(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(SCRIPTS / name))
    assert capsys.readouterr().out == PRINTED[name]


def cells(text: str) -> list[Any]:
    """What each cell of a notebook in percent format shows: its last expression."""
    names: dict[str, Any] = {}
    shown = []
    for cell in text.split("# %%\n")[1:]:
        *body, last = ast.parse(cell).body
        value = None
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(body, []), NOTEBOOK, "exec"), names)
            value = eval(compile(ast.Expression(last.value), NOTEBOOK, "eval"), names)
        else:
            exec(compile(cell, NOTEBOOK, "exec"), names)
        shown += [] if value is None else [value]
    return shown


def test_every_cell_of_the_notebook_shows_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell = SimpleNamespace(kernel=True)
    jupyter = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", jupyter)
    shown = cells((SCRIPTS / NOTEBOOK).read_text("utf-8"))
    assert len(shown) == 6
    board, chart, comparison, movers, diagnosis, page = shown
    assert "0.7526" in board._repr_html_()
    assert chart._repr_html_().startswith("<svg")
    assert "better on 4" in comparison._repr_html_()
    assert "billing-08 1\u21924" in movers._repr_html_()
    assert "what would help most" in diagnosis._repr_html_()
    frame = page._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    # Without allow-same-origin: what a page shows cannot reach the notebook.
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    for value in (board, comparison, diagnosis):
        assert len(repr(value)) < 400
        out = io.StringIO()
        Console(file=out, width=120).print(value)
        assert "ndcg@10" in out.getvalue() or "recall@5" in out.getvalue()


def test_a_page_opens_in_the_browser_outside_of_notebooks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    result = karat.evaluate({"q": ["a"]}, gold={"q": ["a"]})
    result.show()
    (address,) = opened
    path = Path(address.removeprefix("file://"))
    assert path.read_text("utf-8") == result.to_html()
    path.unlink()
