"""What every chart is made of: SVG text, a frame with axes, a legend, colours.

A chart is text, without scripts and without a library. Colours are classes: the
style follows light and dark, a page that shows many charts brings `STYLE` once, and a
screen reader is given the title and the numbers in words.
"""

import html
import math
import os
import string
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

from karat.data.tables import clean
from karat.errors import FormatError, MissingExtraError
from karat.writing import write_file

COLOURS = (
    ("#2f6fde", "#7aa7ff"),
    ("#c2571a", "#f0955c"),
    ("#17806d", "#4fc3ab"),
    ("#8a4bc9", "#c39af0"),
    ("#a8324a", "#f08a9d"),
    ("#6b6f2a", "#c3c76a"),
    ("#38708a", "#86c2dc"),
    ("#6a6a6a", "#b0b0b0"),
)
"""The colour of each series in light and in dark; more series begin again."""


def _rules(shade: int, ink: str, soft: str, rule: str, paper: str) -> str:
    lines = [
        f".k-chart text{{fill:{soft}}}.k-chart .k-ink{{fill:{ink}}}",
        f".k-chart .k-axis{{stroke:{rule}}}.k-chart .k-rest{{fill:{rule}}}",
        f".k-chart .k-on{{fill:{paper}}}",
    ]
    for place, pair in enumerate(COLOURS):
        lines.append(
            f".k-chart .k-l{place}{{stroke:{pair[shade]}}}"
            f".k-chart .k-f{place}{{fill:{pair[shade]}}}"
        )
    return "".join(lines)


STYLE = (
    ".k-chart{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',"
    "sans-serif;max-width:100%;height:auto}"
    ".k-chart .k-title{font-weight:600;font-size:13px}"
    ".k-chart .k-line{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".k-chart .k-band{opacity:.14;stroke:none}.k-chart .k-axis{stroke-width:1}"
    ".k-chart .k-bar{stroke:none}.k-chart .k-mark{stroke-width:1;fill-rule:evenodd}"
    ".k-chart .k-dot{opacity:.75}.k-chart .k-name{font-weight:600}"
    ".k-chart .k-front{stroke-dasharray:4 4}"
    + _rules(0, "#1d2430", "#566072", "#d5dae3", "#ffffff")
    + "@media (prefers-color-scheme:dark){"
    + _rules(1, "#e8ebf1", "#a3adbd", "#3a4352", "#10151d")
    + "}"
)
"""The rules that colour a chart; a page that shows many needs them once."""

WIDTH = 480.0
LEFT, RIGHT = 46.0, 14.0
LETTER = 7.6
_LONGEST = 34
_SHARED = 8
_SPREAD = 12.0
_WIDE = 1000


@dataclass(frozen=True)
class Chart:
    """A picture of some numbers: a notebook shows it, and `save` writes it."""

    title: str  # what it shows
    description: str  # the same in words, for whoever cannot see it
    body: str  # the marks, as SVG
    height: float  # in pixels; the width is the same for all

    def svg(self, *, style: bool = True) -> str:
        """The chart as SVG; without its style, for a page that brings `STYLE`."""
        name = sha256((self.title + self.body).encode("utf-8", "replace")).hexdigest()
        name = f"k{name[:10]}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="k-chart" role="img" '
            f'viewBox="0 0 {WIDTH:g} {self.height:g}" width="{WIDTH:g}" '
            f'height="{self.height:g}" aria-labelledby="{name}t {name}d">'
            f'<title id="{name}t">{escaped(self.title)}</title>'
            f'<desc id="{name}d">{escaped(self.description)}</desc>'
            f"{f'<style>{STYLE}</style>' if style else ''}{self.body}</svg>"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: `.svg`, or `.png` with the extra `png`."""
        form = Path(path).suffix.lower()
        if form == ".svg":
            write_file(path, self.svg() + "\n")
        elif form == ".png":
            write_file(path, self._png())
        else:
            raise FormatError("a chart is written as .svg or .png", path=path)

    def _png(self) -> bytes:
        try:
            import resvg_py  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError("a chart as PNG", "png") from None
        # Twice as large, for screens that show two pixels where one was asked for.
        return bytes(
            resvg_py.svg_to_bytes(svg_string=self.svg(), zoom=2, background="#ffffff")
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.svg()


@dataclass(frozen=True)
class Frame:
    """Where numbers lie on paper."""

    left: float
    right: float
    low: float
    high: float
    top: float
    bottom: float
    powers: bool
    margin: float = RIGHT

    @classmethod
    def around(
        cls,
        xs: Sequence[float],
        bounds: tuple[float, float],
        top: float,
        *,
        room: float = 0.0,
        straight: bool = False,
        margin: float = RIGHT,
    ) -> "Frame":
        """A frame that holds these numbers, below what stands on top."""
        first, last = min(xs, default=0.0), max(xs, default=1.0)
        if first == last:
            first, last = first - 0.5, last + 0.5
        spare = (last - first) * room
        powers = not straight and not room and first > 0 and last / first > _SPREAD
        low, high = bounds
        high = high if high > low else low + 1.0
        ends = first - spare, last + spare
        return cls(*ends, low, high, top, top + 190, powers, margin)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a pair of numbers lies, in pixels from the upper left."""
        first, last = self.left, self.right
        if self.powers:
            x, first, last = math.log(x), math.log(first), math.log(last)
        across = (x - first) / (last - first) * (WIDTH - LEFT - self.margin)
        up = (y - self.low) / (self.high - self.low) * (self.bottom - self.top)
        return round(LEFT + across, 1), round(self.bottom - up, 1)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """A line through pairs of numbers."""
        return "M" + "L".join(["{} {}".format(*self.at(*point)) for point in points])

    def axes(
        self, across: Sequence[float], up: Sequence[float], x: str, y: str = ""
    ) -> str:
        """Lines and numbers beside the chart, and what they are numbers of."""
        marks = []
        for tick in up:
            _, down = self.at(self.left, tick)
            marks.append(
                f'<path class="k-axis" d="M{LEFT} {down}H{WIDTH - self.margin}"/>'
                + text_at(LEFT - 7, down + 4, short_number(tick), "end")
            )
        for tick in across:
            left, _ = self.at(tick, self.low)
            marks.append(text_at(left, self.bottom + 17, short_number(tick), "middle"))
        middle = (LEFT + WIDTH - self.margin) / 2
        marks.append(text_at(middle, self.bottom + 34, x, "middle"))
        if y:
            marks.append(text_at(LEFT - 38, self.top - 10, y, "start"))
        return "".join(marks)


def chart_of(
    title: str, description: str, marks: Sequence[str], height: float
) -> Chart:
    """A chart with its title on top."""
    head = text_at(2, 15, title, "start")
    head = head.replace("<text ", '<text class="k-title k-ink" ')
    return Chart(title, description, head + "".join(marks), height)


def legend_of(names: Sequence[str], marks: Sequence[str]) -> tuple[str, float]:
    """What each mark (14 x 12, at the origin) stands for; where the chart begins."""
    if len(names) < 2:  # noqa: PLR2004
        return "", 34.0
    drawn, left, down = [], 2.0, 36.0
    for name, mark in zip(names, marks, strict=True):
        shown = short_name(name)
        need = 36 + len(shown) * LETTER
        if left + need - 10 > WIDTH and left > 2.0:  # noqa: PLR2004
            left, down = 2.0, down + 18
        drawn.append(
            f'<g transform="translate({left:g} {down - 10:g})">{mark}</g>'
            + text_at(left + 19, down, shown, "start", "k-ink")
        )
        left += need
    return "".join(drawn), down + 18


def text_at(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    """A text on the chart, escaped."""
    own = f'class="{kind}" ' if kind else ""
    return (
        f'<text {own}x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escaped(text)}</text>'
    )


def escaped(text: str) -> str:
    """A text that is no markup."""
    return html.escape(clean(text))


def short_name(name: str, longest: int = _LONGEST) -> str:
    """A name as long as there is room for: what tells names apart is at either end."""
    name, half = clean(name), (longest - 1) // 2
    return name if len(name) <= longest else f"{name[:half]}\u2026{name[-half:]}"


def short_names(names: Sequence[str], longest: int = _LONGEST) -> list[str]:
    """Names without a long beginning that all of them share."""
    pairs = takewhile(lambda letters: len({*letters}) == 1, zip(*names, strict=False))
    shared = names[0][: len([*pairs])] if len(names) > 1 else ""
    # A word that all begin alike is not cut in two.
    cut = len(shared.rstrip(string.ascii_letters + string.digits))
    cut = cut if cut > _SHARED else 0
    more = "\u2026" if cut else ""
    return [short_name(f"{more}{name[cut:]}", longest) for name in names]


def short_number(value: float) -> str:
    """A number as short as it can be told from its neighbours."""
    if abs(value) >= _WIDE:
        return f"{value:,.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def signed(value: float, *, zero: bool) -> str:
    """Three decimals; of a difference with its sign."""
    return f"{value:+.3f}" if zero else f"{value:.3f}"


def ticks_between(low: float, high: float) -> list[float]:
    """Round numbers from low to high, about five."""
    rough = (high - low) / 5 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    for round_one in (1, 2, 2.5, 5, 10):
        step = round_one * power
        if step >= rough * 0.999:
            break
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(place * step, 10) for place in range(first, last + 1)]


def limits_around(values: Sequence[float]) -> tuple[float, float]:
    """Limits with a little room on both sides."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * 0.1 or 0.1
    return low - room, high + room
