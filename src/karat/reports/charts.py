"""Charts of the kinds that reports show: lines, bars, histograms, points, moves.

They know numbers and names, and nothing of evaluations: whoever has numbers of
another kind draws them with the same functions.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from karat.reports.drawing import (
    COLOURS,
    LETTER,
    RIGHT,
    WIDTH,
    Chart,
    Frame,
    chart_of,
    escaped,
    legend_of,
    limits_around,
    short_name,
    short_names,
    short_number,
    signed,
    text_at,
    ticks_between,
)

FOREGROUND = 4
"""So many series have a colour of their own; of more, the others are grey."""

_BINS, _CELLS = 10, 40
_GOOD, _BAD, _GREY = 2, 4, 7
_NAMES, _ROW_NAME = 120.0, 22
_BAR = 44
_PARTS = ("k-f0", "k-f1", "k-f3")
_CIRCLE = "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z"
# Colour and shape of a verdict's mark: which way it points says the same as its colour.
_VERDICTS = {
    "better": (_GOOD, "M0 -6l6 11h-12z"),
    "worse": (_BAD, "M0 6l6 -11h-12z"),
    "no different": (0, "M-4.5 -4.5h9v9h-9z"),
    "different": (3, "M0 -6l6 6l-6 6l-6 -6z"),
    "undecided": (_GREY, f"{_CIRCLE}M-2.5 0a2.5 2.5 0 1 1 5 0a2.5 2.5 0 1 1 -5 0z"),
    "": (0, _CIRCLE),
}
_KEY = '<rect class="k-bar {}" opacity="1.00" width="12" height="12" rx="2"/>'


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
    lines: Sequence[Line], *, title: str, x: str, bounds: tuple[float, float]
) -> Chart:
    """Lines with bands over a common axis; a wide range of x is shown by powers.

    Of more lines than colours tell apart only the first have one, and names stand at
    their ends.
    """
    many = len(lines) > FOREGROUND
    names, keys, told, every = [], [], [], set()
    for place, line in enumerate(lines):
        names.append(line.name)
        style = f"k-line k-l{place % len(COLOURS)}"
        keys.append(f'<path class="{style}" d="M0 6h14"{_dash(place)}/>')
        pairs = ", ".join(
            f"{short_number(y)} at {short_number(x)}"
            for x, y in zip(line.xs, line.ys, strict=True)
        )
        told.append(f"{line.name}: {pairs}.")
        every |= {*map(float, line.xs)}
    xs = sorted(every) or [1.0]
    legend, top = ("", 40.0) if many else legend_of(names, keys)
    frame = Frame.around(xs, bounds, top, margin=_NAMES if many else RIGHT)
    # About ten of the numbers have room to be written out.
    some = xs[:: -(-len(xs) // 10)]
    marks = [legend, frame.axes(some, ticks_between(*bounds), x)]
    for place, line in reversed([*enumerate(lines)]):
        plain = many and place >= FOREGROUND
        colour = _GREY if plain else place
        points = [*zip(line.xs, line.ys, strict=True)]
        if len(line.low) == len(line.high) == len(points) > 1 and not plain:
            there = [*zip(line.xs, line.high, strict=True)]
            back = [*zip(line.xs, line.low, strict=True)][::-1]
            path = frame.path([*there, *back])
            marks.append(f'<path class="k-band k-f{colour}" d="{path}Z"/>')
        path, dash = frame.path(points), "" if plain else _dash(place)
        thin = ' opacity="0.45"' if plain else ""
        marks.append(f'<path class="k-line k-l{colour}" d="{path}"{dash}{thin}/>')
        for at in () if plain else points:
            left, down = frame.at(*at)
            marks.append(
                f'<circle class="k-f{colour}" cx="{left}" cy="{down}" r="2.5"/>'
            )
    if many:
        marks += _names_at_ends(frame, lines)
    return chart_of(title, " ".join(told), marks, frame.bottom + 40)


def _names_at_ends(frame: Frame, lines: Sequence[Line]) -> list[str]:
    """The names of lines where they end, those with a colour first, none upon another.

    A name for which there is no room is left to the description.
    """
    names = short_names([line.name for line in lines], int(_NAMES / LETTER) - 1)
    taken: list[float] = []
    marks = []
    for place, (line, name) in enumerate(zip(lines, names, strict=True)):
        left, down = frame.at(line.xs[-1], line.ys[-1])
        # The next free line above or below, no further than three away.
        tries = (down + step * LETTER * 1.5 for step in (0, 1, -1, 2, -2, 3, -3))
        free = (at for at in tries if all(abs(at - o) >= LETTER * 1.5 for o in taken))
        if (at := next(free, None)) is None:
            continue
        taken.append(at)
        plain = place >= FOREGROUND
        kind = "" if plain else f"k-name k-f{place}"
        marks.append(text_at(left + 7, at + 4, name, "start", kind))
    return marks


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


def draw_pairs(
    pairs: Sequence[tuple[str, float, float]],
    *,
    title: str,
    x: str,
    y: str,
    bounds: tuple[float, float],
    sign: int = 1,
) -> Chart:
    """What each query scores before and after: a dot, larger where many lie upon it."""
    dots: dict[tuple[float, float], list[str]] = {}
    low, high = bounds
    step = (high - low) / _CELLS
    for query, before, after in pairs:
        cell = (
            low + round((before - low) / step) * step,
            low + round((after - low) / step) * step,
        )
        # The two sides of the diagonal are different verdicts, however close.
        if before != after and cell[0] == cell[1]:
            cell = (cell[0], cell[1] + (step if after > before else -step) / 2)
        dots.setdefault(cell, []).append(query)
    kinds = {"better": _GOOD, "worse": _BAD, "the same": _GREY}
    counts = dict.fromkeys(kinds, 0)
    drawn = []
    frame = Frame.around([low, high], bounds, 74, room=0.03)
    for (before, after), queries in sorted(dots.items(), key=lambda d: -len(d[1])):
        change = sign * (after - before)
        kind = "better" if change > 0 else "worse" if change < 0 else "the same"
        counts[kind] += len(queries)
        left, down = frame.at(before, after)
        size = min(3 + 1.5 * math.log2(len(queries)), 12)
        more = f" and {len(queries) - 1} more" if len(queries) > 1 else ""
        drawn.append(
            f'<circle class="k-f{kinds[kind]} k-dot" cx="{left}" cy="{down}" '
            f'r="{size:.1f}" data-q="{escaped(queries[0])}"><title>'
            f"{escaped(queries[0])}{more}</title></circle>"
        )
    told = [f"{count} {kind}" for kind, count in counts.items() if count]
    keys = [_KEY.format(f"k-f{kinds[kind]}") for kind in counts if counts[kind]]
    legend, _ = legend_of(told, keys) if len(told) > 1 else ("", 0)
    ticks = ticks_between(low, high)
    ends = frame.path([(low, low), (high, high)])
    marks = [legend, frame.axes(ticks, ticks, x, y), *drawn]
    marks.insert(2, f'<path class="k-axis k-front" d="{ends}"/>')
    description = f"{x} across, {y} up; of the queries {', '.join(told)}."
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
    counts, keys = {}, []
    for place, (name, values) in enumerate(scores.items()):
        keys.append(_KEY.format(f"k-f{place % len(COLOURS)}"))
        own = counts[name] = [0] * _BINS
        for value in values:
            share = (value - low) / (high - low)
            own[min(max(int(share * _BINS + 1e-9), 0), _BINS - 1)] += 1
    most = max(map(max, counts.values()), default=0) or 1
    legend, top = legend_of([*counts], keys)
    edges = [low + (high - low) * place / _BINS for place in range(_BINS + 1)]
    frame = Frame.around([low, high], (0.0, float(most)), top, straight=True)
    marks = [
        legend,
        frame.axes(edges[:: _BINS // 5], ticks_between(0, most), "score"),
    ]
    room = (frame.at(edges[1], 0)[0] - frame.at(low, 0)[0]) * 0.88
    told = []
    for place, (name, own) in enumerate(counts.items()):
        wide, some = room / len(counts), []
        for edge, count in zip(edges, own, strict=False):
            some += [f"{count} from {short_number(edge)}"] if count else []
            left, up = frame.at(edge, count)
            left += room * 0.06 + wide * place
            marks.append(
                f'<rect class="k-bar k-f{place % len(COLOURS)}" x="{left:.1f}" '
                f'y="{up}" width="{max(wide - 1, 1):.1f}" '
                f'height="{max(frame.bottom - up, 0):.1f}"/>'
            )
        told.append(f"{name}: {', '.join(some)}")
    return chart_of(title, f"{'; '.join(told)}.", marks, frame.bottom + 40)


def draw_bars(rows: Mapping[str, Mapping[str, float]], *, title: str) -> Chart:
    """A bar of length 1 for each row, cut into its parts: what each part takes of it.

    The first part is what was reached, and the others are what it lacks, each with
    its number: below the bar where there is no room for it.
    """
    parts = [*dict.fromkeys(chain.from_iterable(rows.values()))]
    fills = [*_PARTS[: len(parts) - 1], "k-rest"]
    legend, top = legend_of(parts, [*map(_KEY.format, fills)])
    names = short_names([*rows], _ROW_NAME)
    wide = max(map(len, names), default=0) * LETTER + 10
    marks, told = [legend], []
    for line, ((run, row), name) in enumerate(zip(rows.items(), names, strict=True)):
        up, left = top + line * _BAR, wide
        narrow = []
        shares = ", ".join(map("{} {:.3f}".format, row, row.values()))
        told.append(f"{run}: {shares}")
        marks.append(text_at(wide - 8, up + 16, name, "end", "k-ink"))
        for place, part in enumerate(parts):
            share = max(row.get(part, 0.0), 0.0)
            long = share * (WIDTH - wide - RIGHT)
            marks.append(
                f'<rect class="k-bar {fills[place]}" x="{left:.1f}" y="{up:.1f}" '
                f'width="{max(long - 1, 0):.1f}" height="22" rx="2"/>'
            )
            if long > LETTER * 5 + 4:
                on = "k-ink" if fills[place] == "k-rest" else "k-on"
                marks.append(
                    text_at(left + long / 2, up + 15, f"{share:.3f}", "middle", on)
                )
            else:
                narrow.append(f"{part} {share:.3f}")
            left += long
        marks.append(text_at(WIDTH - RIGHT, up + 36, ", ".join(narrow), "end"))
    return chart_of(title, f"{'; '.join(told)}.", marks, top + len(rows) * _BAR + 6)


def draw_intervals(
    rows: Sequence[tuple[str, float, tuple[float, float] | None, str]],
    *,
    title: str,
    zero: bool = False,
) -> Chart:
    """A mark for each number, and a line for what it may be by chance.

    Colour and shape of a mark follow the verdict, where rows bring one.
    """
    values = [v for _, mean, pair, _ in rows for v in (mean, *(pair or ()))]
    low, high = limits_around([*values, *([0.0] if zero else [])])
    names = short_names([row[0] for row in rows], _ROW_NAME)
    wide = max(map(len, names), default=0) * LETTER + 12
    scale = (WIDTH - wide - 62) / (high - low)
    kinds = [*dict.fromkeys(row[3] for row in rows)]
    keys = [f'<g transform="translate(7 6)">{_mark(kind)}</g>' for kind in kinds]
    legend, top = legend_of(kinds, keys)
    bottom = top + len(rows) * 26

    def along(value: float) -> str:
        return f"{wide + (value - low) * scale:.1f}"

    marks = [legend]
    marks += [
        f'<path class="k-axis" d="M{along(tick)} {top}V{bottom}"/>'
        + text_at(float(along(tick)), bottom + 16, short_number(tick), "middle")
        for tick in ticks_between(low, high)
    ]
    if zero:
        marks.append(
            f'<path class="k-line k-l7" d="M{along(0.0)} {top - 4}V{bottom}"/>'
        )
    for place, (name, row) in enumerate(zip(names, rows, strict=True)):
        _, mean, pair, verdict = row
        down = top + place * 26 + 13
        colour = _VERDICTS.get(verdict, _VERDICTS[""])[0]
        marks.append(text_at(wide - 10, down + 4, name, "end", "k-ink"))
        if pair is not None:
            path = f"M{along(pair[0])} {down}H{along(pair[1])}"
            marks.append(f'<path class="k-line k-l{colour}" d="{path}"/>')
        marks.append(
            f'<g transform="translate({along(mean)} {down})">{_mark(verdict)}</g>'
            + text_at(WIDTH - 2, down + 4, signed(mean, zero=zero), "end", "k-ink")
        )
    told = (
        f"{name}: {signed(mean, zero=zero)}"
        + (f" ({pair[0]:.3f} to {pair[1]:.3f})" if pair else "")
        + (f", {verdict}" if verdict else "")
        for name, mean, pair, verdict in rows
    )
    return chart_of(title, f"{'; '.join(told)}.", marks, bottom + 24)


def _mark(verdict: str) -> str:
    """The mark of a verdict, around the origin."""
    colour, shape = _VERDICTS.get(verdict, _VERDICTS[""])
    return f'<path class="k-f{colour} k-mark k-l{colour}" d="{shape}"/>'


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
