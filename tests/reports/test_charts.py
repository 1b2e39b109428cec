"""Charts: right places, safe text, the same picture everywhere."""

import struct
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

import karat
from karat import Leaderboard
from karat.data.runs import Latency
from karat.extend import FormatError, UnknownNameError, UsageError
from karat.reports.charts import (
    Line,
    Point,
    draw_bars,
    draw_histogram,
    draw_intervals,
    draw_lines,
    draw_matrix,
    draw_pairs,
    draw_scatter,
    pareto_front,
)
from karat.reports.drawing import Chart, Frame, ticks_between

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert(1)</script>"&\x1b[31m'
ONE = {"q1": ["a", "b", "c"], "q2": ["x", "b", "a"]}
TWO = {"q1": ["c", "a", "b"], "q2": ["b", "x", "a"]}
GOLD = {"q1": {"a": 2, "c": 1}, "q2": {"b": 1}}


def every_kind(name: str) -> list[Chart]:
    return [
        draw_lines(
            [Line(name, [1, 50], [0.1, 0.9], [0, 0.8], [0.2, 1.0])],
            title=name,
            x=name,
            bounds=(0, 1),
        ),
        draw_scatter(
            [Point(name, 1, 0.5), Point("b", 2, 0.4)], title=name, x="s", y=""
        ),
        draw_histogram({name: [0.0, 1.0], "b": [0.5]}, title=name, bounds=(0, 1)),
        draw_bars({name: {name: 0.7, "rest": 0.3}}, title=name),
        draw_intervals(
            [(name, 0.5, (0.1, 0.9), "better"), ("b", 0.2, None, "")], title=name
        ),
        draw_pairs([(name, 0.1, 0.9)], title=name, x=name, y=name, bounds=(0, 1)),
        draw_matrix(["1", "2"], [[1, 0], [2, 3]], title=name, rows=name, columns="b"),
    ]


@pytest.mark.parametrize("chart", every_kind(HOSTILE), ids=lambda c: c.body[:20])
def test_a_chart_is_xml_that_shows_any_name_as_text(chart: Chart) -> None:
    root = ET.fromstring(chart.svg())
    assert "alert(1)" in (root.findtext(f"{SVG}title") or "")
    assert root.findtext(f"{SVG}desc")
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert "\x1b" not in chart.svg()
    # The page's policy knows no style attributes.
    assert " style=" not in chart.svg(style=False)
    assert "<style>" not in chart.svg(style=False)


def test_a_frame_puts_numbers_where_they_belong() -> None:
    frame = Frame.around([0, 10], (0.0, 1.0), 34)
    assert frame.at(0, 0.0) == (46.0, 224.0)
    assert frame.at(10, 1.0) == (466.0, 34.0)
    assert frame.at(5, 0.5) == (256.0, 129.0)
    powers = Frame.around([1, 100], (0.0, 1.0), 34)
    assert powers.at(10, 0.0) == (256.0, 224.0)


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 7, [0, 2, 4, 6]),
        (-0.1, 0.33, [-0.1, 0, 0.1, 0.2, 0.3]),
        (0, 25_000, [0, 5000, 10_000, 15_000, 20_000, 25_000]),
    ],
)
def test_ticks_are_round(low: float, high: float, wanted: list[float]) -> None:
    assert ticks_between(low, high) == pytest.approx(wanted)


def test_every_score_falls_into_one_bin() -> None:
    scores = [0.0, 0.05, 0.1, 0.3, 0.7, 0.999, 1.0]
    told = draw_histogram({"a": scores}, title="", bounds=(0, 1)).description
    assert told == "a: 2 from 0, 1 from 0.1, 1 from 0.3, 1 from 0.7, 2 from 0.9."


def test_the_front_holds_what_no_other_beats() -> None:
    points = [Point("a", 1, 0.2), Point("b", 2, 0.5), Point("c", 3, 0.4)]
    points += [Point("d", 4, 0.6), Point("e", 2, 0.1)]
    assert [point.name for point in pareto_front(points)] == ["a", "b", "d"]


def test_a_curve_has_the_numbers_of_the_evaluation() -> None:
    result = karat.evaluate(ONE, gold=GOLD, metrics=["recall@2", "rr"], name="one")
    ks = [1, 2, 3]
    told = ", ".join(
        f"{result.score(f'recall@{k}').mean:.3f}".rstrip("0").rstrip(".") + f" at {k}"
        for k in ks
    )
    assert result.plot().description == f"one: {told}."
    assert "<svg" in result.plot()._repr_svg_()
    assert result.plot()._repr_html_() == result.plot()._repr_svg_()


def test_queries_of_two_runs_are_dots_on_either_side_of_the_diagonal() -> None:
    pairs = [("q1", 0.2, 0.9), ("q2", 0.5, 0.5), ("q3", 0.5, 0.5), ("q4", 0.5, 0.499)]
    chart = draw_pairs(pairs, title="t", x="a", y="b", bounds=(0, 1))
    told = "a across, b up; of the queries 1 better, 1 worse, 2 the same."
    assert chart.description == told
    dots = [e for e in ET.fromstring(chart.svg()).iter() if "data-q" in e.attrib]
    # Two queries lie upon each other; the one that lost a little stands apart.
    found = {e.get("data-q"): (e.get("class") or "").split()[0] for e in dots}
    assert found == {"q1": "k-f2", "q2": "k-f7", "q4": "k-f4"}
    lower = draw_pairs(pairs, title="t", x="a", y="b", bounds=(0, 1), sign=-1)
    assert "1 better, 1 worse" in lower.description
    assert lower.body.count("k-f4") == chart.body.count("k-f4")


def test_verdicts_differ_by_colour_and_by_shape() -> None:
    verdicts = ["better", "worse", "undecided", "no different", "different"]
    rows = [(v, 0.1, (0.0, 0.2), v) for v in verdicts]
    chart = draw_intervals(rows, title="t", zero=True)
    marks = [e for e in ET.fromstring(chart.svg()).iter() if e.get("d")]
    drawn = [e for e in marks if "k-mark" in (e.get("class") or "")]
    # Each once in the legend and once in its row.
    assert len({e.get("d") for e in drawn}) == len({e.get("class") for e in drawn}) == 5
    assert len(drawn) == 10
    assert "worse: +0.100 (0.000 to 0.200), worse" in chart.description


def test_of_many_runs_some_have_colours_and_names_stand_at_the_lines() -> None:
    lines = [
        Line(f"retriever-with-a-long-name-{n:02}", [1, 10], [0.1, n / 12])
        for n in range(12)
    ]
    chart = draw_lines(lines, title="t", x="k", bounds=(0, 1))
    root = ET.fromstring(chart.svg())
    classes = (e.get("class") or "" for e in root.iter())
    drawn = [name for name in classes if "k-line" in name]
    assert sorted(drawn) == sorted([f"k-line k-l{n}" for n in (0, 1, 2, 3, *[7] * 8)])
    words = [e.text or "" for e in root.iter(f"{SVG}text")]
    # What all names share is left out, so that what tells them apart is read.
    assert {"\u202600", "\u202601", "\u202602", "\u202603"} <= {*words}
    # A word is not cut in two.
    named = [Line(f"the-retriever-v{n:02}", [1, 10], [0.1, n / 12]) for n in range(5)]
    assert "\u2026v04" in draw_lines(named, title="", x="", bounds=(0, 1)).body


def test_names_are_cut_in_the_middle() -> None:
    name = "a-very-long-name-of-a-retriever-with-its-version-at-the-end-v07"
    chart = draw_bars({name: {"x": 0.7, "rest": 0.3}, "b": {}}, title="t")
    assert "a-very-lon\u2026he-end-v07" in chart.body


def test_every_part_of_a_bar_has_its_number() -> None:
    row = {"nDCG@5": 0.95, "order of the top": 0.02, "not retrieved": 0.03}
    body = draw_bars({"run": row}, title="t").body
    assert ">0.950<" in body
    assert "order of the top 0.020, not retrieved 0.030" in body


def test_headroom_adds_up_to_one() -> None:
    board = karat.leaderboard({"one": ONE, "two": TWO}, gold=GOLD, metrics="ndcg@2")
    for run in board.plot("headroom").description.rstrip(".").split("; "):
        parts = [float(part.split()[-1]) for part in run.split(": ")[1].split(", ")]
        assert sum(parts) == pytest.approx(1, abs=0.002)


@pytest.mark.parametrize(
    ("kind", "metric", "error", "sentence"),
    [
        ("pie", None, UnknownNameError, "unknown kind of chart 'pie'; known: curve"),
        ("means", "ndgc@10", UnknownNameError, "ndgc@10"),
        ("curve", "rr", UsageError, "nothing to draw: rr has no cutoff"),
    ],
)
def test_what_cannot_be_drawn_says_why(
    kind: str, metric: str | None, error: type[Exception], sentence: str
) -> None:
    result = karat.evaluate({"q1": ["a"]}, gold={"q1": {"a": 1}}, metrics=["rr"])
    with pytest.raises(error, match=sentence):
        result.plot(kind, metric)


def test_a_chart_is_saved_as_its_ending_says(tmp_path: Path) -> None:
    chart = karat.evaluate(ONE, gold=GOLD).plot()
    chart.save(tmp_path / "c.svg")
    assert (tmp_path / "c.svg").read_text("utf-8") == chart.svg() + "\n"
    with pytest.raises(FormatError, match="a chart is written as"):
        chart.save(tmp_path / "c.gif")
    with pytest.raises(FormatError, match="cannot be written"):
        chart.save(tmp_path / "no" / "c.svg")


def test_a_png_is_twice_as_wide_as_the_chart(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="needs the extra png")
    karat.evaluate(ONE, gold=GOLD).plot("means").save(tmp_path / "c.png")
    data = (tmp_path / "c.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", data[16:20]) == (960,)


def test_quality_is_drawn_by_latency_where_times_are_known() -> None:
    board = karat.leaderboard({"one": ONE, "two": TWO}, gold=GOLD, metrics="rr")
    with pytest.raises(UsageError, match="no run was timed"):
        board.plot("latency")
    timed = {
        name: replace(one, latency=Latency(dict.fromkeys(one.queries, 7.0 + n)))
        for n, (name, one) in enumerate(board.items())
    }
    told = Leaderboard(timed).plot("latency").description
    assert [one.means["rr"] for one in board.values()] == [0.75, 1.0]
    assert told.startswith("rr by p95 (ms). one: 0.75 at 7; two: 1 at 8.")
