"""Comparisons as LaTeX tables, with significance marked as papers print it."""

from typing import TYPE_CHECKING

from karat.comparison.differences import Difference
from karat.data.tables import clean

if TYPE_CHECKING:
    from karat.comparison.comparison import Comparison

__all__ = ["as_latex"]


def as_latex(comparison: "Comparison") -> str:
    """The means as a LaTeX table; † and ‡ mark p < 0.05 and p < 0.01."""
    metrics = list(dict.fromkeys(one.metric for one in comparison.differences))
    lines = [
        r"\begin{tabular}{l" + "r" * len(metrics) + "}",
        r"\hline",
        " & ".join(["run", *map(_latex, metrics)]) + r" \\",
        r"\hline",
    ]
    against = [d for d in comparison.differences if d.baseline == comparison.baseline]
    base = {d.metric: d.baseline_mean for d in against}
    cells = [_latex(comparison.baseline), *(f"{base[m]:.4f}" for m in metrics)]
    lines.append(" & ".join(cells) + r" \\")
    for name in comparison.candidates:
        found = {d.metric: d for d in against if d.candidate == name}
        cells = [_latex(name)]
        cells += [_latex_cell(found[m]) if m in found else "--" for m in metrics]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    text = clean(text)
    for mark in "\\&%$#_{}":
        text = text.replace(mark, f"\\{mark}" if mark != "\\" else r"\textbackslash ")
    return text.replace("~", r"\textasciitilde ").replace("^", r"\textasciicircum ")


def _latex_cell(one: Difference) -> str:
    mark = ""
    if one.adjusted_p < 0.01:  # noqa: PLR2004
        mark = r"$^{\ddagger}$"
    elif one.adjusted_p < 0.05:  # noqa: PLR2004
        mark = r"$^{\dagger}$"
    return f"{one.candidate_mean:.4f}{mark}"
