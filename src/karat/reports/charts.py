"""Charts of the kinds that reports show: lines, bars, histograms, points, moves.

They know numbers and names, and nothing of evaluations: whoever has numbers of
another kind draws them with the same functions.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from karat.reports.drawing import (
    COLOURS,
    LETTER,
    RIGHT,
    WIDTH,
    Chart,
    Frame,
    chart_of,
    legend_of,
    limits_around,
    short_name,
    short_number,
    signed,
    text_at,
    ticks_between,
)

_BINS = 10
_KEY = '<rect class="k-bar {}" opacity="{:.2f}" width="12" height="12" rx="2"/>'


def _dash(place: int) -> str:
    """Every second line is dashed, so that colour is not all that tells them apart."""
    return ' stroke-dasharray="6 3"' if place % 2 else ""


@dataclass(frozen=True)
class Line:
    """A series of points; `low` and `high` are a band around it, if given."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    low: Sequence[float] = field(default=())
    high: Sequence[float] = field(default=())


@dataclass(frozen=True)
class Point:
    """One system between two numbers, such as its latency and its quality."""

    name: str
    x: float
    y: float


def draw_lines(
    lines: Sequence[Line], *, title: str, x: str, y: str, bounds: tuple[float, float]
) -> Chart:
    """Lines with bands over a common axis; a wide range of x is shown by powers."""
    xs = sorted({float(one) for line in lines for one in line.xs}) or [1.0]
    keys = [
        f'<path class="k-line k-l{n % len(COLOURS)}" d="M0 6h14"{_dash(n)}/>'
        for n in range(len(lines))
    ]
    legend, top = legend_of([line.name for line in lines], keys)
    frame = Frame.around(xs, bounds, top)
    # About ten of the numbers have room to be written out.
    some = xs[:: -(-len(xs) // 10)]
    marks = [legend, frame.axes(some, ticks_between(*bounds), x, y)]
    for place, line in enumerate(lines):
        colour = place % len(COLOURS)
        points = [*zip(line.xs, line.ys, strict=True)]
        if len(line.low) == len(line.high) == len(points) > 1:
            there = [*zip(line.xs, line.high, strict=True)]
            back = [*zip(line.xs, line.low, strict=True)][::-1]
            path = frame.path([*there, *back])
            marks.append(f'<path class="k-band k-f{colour}" d="{path}Z"/>')
        path = frame.path(points)
        marks.append(f'<path class="k-line k-l{colour}" d="{path}"{_dash(place)}/>')
        for at in points:
            left, down = frame.at(*at)
            marks.append(
                f'<circle class="k-f{colour}" cx="{left}" cy="{down}" r="2.5"/>'
            )
    told = (
        f"{line.name}: "
        + ", ".join(
            f"{short_number(b)} at {short_number(a)}"
            for a, b in zip(line.xs, line.ys, strict=True)
        )
        + "."
        for line in lines
    )
    return chart_of(title, " ".join(told), marks, frame.bottom + 40)


def draw_scatter(points: Sequence[Point], *, title: str, x: str, y: str) -> Chart:
    """Points between two numbers: small x and large y are good."""
    ys = [point.y for point in points]
    low, high = limits_around(ys)
    frame = Frame.around([point.x for point in points], (low, high), 48, room=0.08)
    marks = [
        frame.axes(
            ticks_between(frame.left, frame.right), ticks_between(low, high), x, y
        )
    ]
    best = pareto_front(points)
    if len(best) > 1:
        path = frame.path([(point.x, point.y) for point in best])
        marks.append(f'<path class="k-line k-l0 k-front" d="{path}"/>')
    named: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda p: (p not in best, -p.y)):
        left, down = frame.at(point.x, point.y)
        marks.append(
            f'<circle class="k-f{0 if point in best else 7}" cx="{left}" cy="{down}" '
            'r="4.5"/>'
        )
        # A name that would lie upon another is left to the description.
        close = (
            abs(x - left) < WIDTH / 3 and abs(y - down) < 2 * LETTER for x, y in named
        )
        if any(close):
            continue
        named.append((left, down))
        late = left > WIDTH * 0.7
        side = "end" if late else "start"
        name = short_name(point.name)
        marks.append(text_at(left + (-8 if late else 8), down - 7, name, side, "k-ink"))
    told = (f"{p.name}: {short_number(p.y)} at {short_number(p.x)}" for p in points)
    unbeaten = ", ".join(point.name for point in best)
    description = f"{y} by {x}. {'; '.join(told)}. Not beaten in both: {unbeaten}."
    return chart_of(title, description, marks, frame.bottom + 40)


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in both numbers, from small x to large."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.x, -p.y)):
        if not best or point.y > best[-1].y:
            best.append(point)
    return best


def draw_histogram(
    scores: Mapping[str, Sequence[float]],
    *,
    title: str,
    bounds: tuple[float, float],
) -> Chart:
    """How many queries score how much, each series beside the others."""
    low, high = bounds
    counts = {}
    for name, values in scores.items():
        own = counts[name] = [0] * _BINS
        for value in values:
            share = (value - low) / (high - low)
            own[min(max(int(share * _BINS + 1e-9), 0), _BINS - 1)] += 1
    most = max((max(own) for own in counts.values()), default=0) or 1
    keys = [_KEY.format(f"k-f{n % len(COLOURS)}", 1) for n in range(len(counts))]
    legend, top = legend_of([*counts], keys)
    edges = [low + (high - low) * place / _BINS for place in range(_BINS + 1)]
    frame = Frame.around([low, high], (0.0, float(most)), top, straight=True)
    marks = [
        legend,
        frame.axes(edges[:: _BINS // 5], ticks_between(0, most), "score", ""),
    ]
    room = (frame.at(edges[1], 0)[0] - frame.at(low, 0)[0]) * 0.88
    for place, own in enumerate(counts.values()):
        wide = room / len(counts)
        for edge, count in zip(edges, own, strict=False):
            left, up = frame.at(edge, count)
            left += room * 0.06 + wide * place
            marks.append(
                f'<rect class="k-bar k-f{place % len(COLOURS)}" x="{left:.1f}" '
                f'y="{up}" width="{max(wide - 1, 1):.1f}" '
                f'height="{max(frame.bottom - up, 0):.1f}"/>'
            )
    told = (
        f"{name}: "
        + ", ".join(
            f"{count} from {short_number(edge)}"
            for edge, count in zip(edges, own, strict=False)
            if count
        )
        for name, own in counts.items()
    )
    return chart_of(title, f"{'; '.join(told)}.", marks, frame.bottom + 40)


def draw_bars(rows: Mapping[str, Mapping[str, float]], *, title: str) -> Chart:
    """A bar of length 1 for each row, cut into its parts: what each part takes of it.

    The first part is what was reached, and the others are what it lacks, each with
    its number where there is room for it.
    """
    parts = [*dict.fromkeys(part for row in rows.values() for part in row)]
    fills = [("k-f0", 1.0 - 0.65 * n / len(parts)) for n in range(len(parts))]
    fills[1:] = [(name, shade - 0.2) for name, shade in fills[1:-1]] + [("k-rest", 1.0)]
    legend, top = legend_of(parts, [_KEY.format(*fill) for fill in fills])
    wide = (
        min(max((len(short_name(name)) for name in rows), default=0) * LETTER, 150) + 10
    )
    marks = [legend]
    for line, (name, row) in enumerate(rows.items()):
        up, left = top + line * 34, wide
        marks.append(text_at(wide - 8, up + 16, short_name(name), "end", "k-ink"))
        for place, part in enumerate(parts):
            share = max(row.get(part, 0.0), 0.0)
            long = share * (WIDTH - wide - RIGHT)
            colour, shade = fills[place]
            marks.append(
                f'<rect class="k-bar {colour}" opacity="{shade:.2f}" x="{left:.1f}" '
                f'y="{up:.1f}" width="{max(long - 1, 0):.1f}" height="22" rx="2"/>'
            )
            if long > LETTER * 5 + 4:
                on = "k-ink" if place else "k-on"
                marks.append(
                    text_at(left + long / 2, up + 15, f"{share:.3f}", "middle", on)
                )
            left += long
    told = (
        f"{name}: " + ", ".join(f"{part} {share:.3f}" for part, share in row.items())
        for name, row in rows.items()
    )
    return chart_of(title, f"{'; '.join(told)}.", marks, top + len(rows) * 34 + 6)


def draw_intervals(
    rows: Sequence[tuple[str, float, tuple[float, float] | None]],
    *,
    title: str,
    zero: bool = False,
) -> Chart:
    """A mark for each number, and a line for what it may be by chance."""
    values = [v for _, mean, pair in rows for v in (mean, *(pair or ()))]
    low, high = limits_around([*values, *([0.0] if zero else [])])
    wide = (
        min(max((len(short_name(row[0])) for row in rows), default=0) * LETTER, 170)
        + 12
    )
    scale = (WIDTH - wide - 62) / (high - low)
    top = 34.0
    bottom = top + len(rows) * 26

    def along(value: float) -> str:
        return f"{wide + (value - low) * scale:.1f}"

    marks = [
        f'<path class="k-axis" d="M{along(tick)} {top}V{bottom}"/>'
        + text_at(float(along(tick)), bottom + 16, short_number(tick), "middle")
        for tick in ticks_between(low, high)
    ]
    if zero:
        marks.append(
            f'<path class="k-line k-l7" d="M{along(0.0)} {top - 4}V{bottom}"/>'
        )
    for place, (name, mean, pair) in enumerate(rows):
        down = top + place * 26 + 13
        marks.append(text_at(wide - 10, down + 4, short_name(name), "end", "k-ink"))
        if pair is not None:
            path = f"M{along(pair[0])} {down}H{along(pair[1])}"
            marks.append(f'<path class="k-line k-l0" d="{path}"/>')
        marks.append(
            f'<circle class="k-f0" cx="{along(mean)}" cy="{down}" r="4.5"/>'
            + text_at(WIDTH - 2, down + 4, signed(mean, zero=zero), "end", "k-ink")
        )
    told = (
        f"{name}: {signed(mean, zero=zero)}"
        + (f" ({pair[0]:.3f} to {pair[1]:.3f})" if pair else "")
        for name, mean, pair in rows
    )
    return chart_of(title, f"{'; '.join(told)}.", marks, bottom + 24)


def draw_matrix(
    names: Sequence[str],
    counts: Sequence[Sequence[int]],
    *,
    title: str,
    rows: str,
    columns: str,
) -> Chart:
    """How many moved from where (rows) to where (columns)."""
    most = max((max(row) for row in counts), default=0) or 1
    left, top, wide, tall = 110.0, 76.0, 58.0, 30.0
    marks = [
        text_at(left - 12, top - 12, f"{rows} \N{DOWNWARDS ARROW}", "end"),
        text_at(left, 42, f"{columns} \N{RIGHTWARDS ARROW}", "start"),
    ]
    for place, name in enumerate(names):
        middle = left + place * wide + wide / 2
        marks.append(text_at(middle, top - 12, name, "middle", "k-ink"))
        marks.append(text_at(left - 12, top + place * tall + 19, name, "end", "k-ink"))
    for down, row in enumerate(counts):
        for across, count in enumerate(row):
            colour = "k-f2" if across < down else "k-f1" if across > down else "k-f7"
            faint = 0.12 + 0.6 * (count / most) if count else 0.04
            x, y = left + across * wide, top + down * tall
            marks.append(
                f'<rect class="{colour}" opacity="{faint:.2f}" x="{x + 1:g}" '
                f'y="{y + 1:g}" width="{wide - 2:g}" height="{tall - 2:g}" rx="3"/>'
                + (text_at(x + wide / 2, y + 19, str(count), "middle", "k-ink"))
                * bool(count)
            )
    told = (
        f"{count} from {names[down]} to {names[across]}"
        for down, row in enumerate(counts)
        for across, count in enumerate(row)
        if count
    )
    return chart_of(title, f"{', '.join(told)}.", marks, top + len(names) * tall + 8)
