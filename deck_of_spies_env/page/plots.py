"""Plots as SVG that fits any width: places are percentages, texts and marks keep their size.

Series are told apart by colour, by the shape of their marks and by the dashes of their lines. All
plots are named by the figures that hold them, which give the same numbers as tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.etree.ElementTree import Element

from deck_of_spies_env.page.markup import tag

_MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-4-4h8v8h-8z",
    "M0-5L5 4H-5z",
    "M0-6L5 0L0 6L-5 0z",
    "M0 5L5-4H-5z",
    "M-1.5-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
)
"""Paths around their centres, in pixels."""

_NUM_COLOURS = 8
_WANTED_TICKS = 5


@dataclass(frozen=True)
class Point:
    """A measured value.

    Attributes:
        x, y: where it lies.
        low, high: its interval.
        text: what it says, for those who point at it.
    """

    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True)
class Axis:
    """The part of the numbers that a plot shows, and its marks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def around(cls, values: Sequence[float], *, within: tuple[float, float]) -> Axis:
        """An axis of round numbers about some values, which stays within limits."""
        low, high = min(values), max(values)
        step = _round_step((high - low) or abs(high) or 1.0)
        first, last = floor(low / step), ceil(high / step)
        if first == last:
            first, last = first - 1, last + 1
        numbers = [number * step for number in range(first, last + 1)]
        kept = [number for number in numbers if within[0] <= number <= within[1]]
        return cls(kept[0], kept[-1], tuple(kept))

    def percent(self, value: float) -> str:
        """Where a value lies, from the low end."""
        return f"{100 * (value - self.low) / (self.high - self.low):.3f}%"

    def percent_down(self, value: float) -> str:
        """Where a value lies, from the high end."""
        return f"{100 * (self.high - value) / (self.high - self.low):.3f}%"


def _round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that a few of them cover a span."""
    power = 10 ** floor(log10(span / _WANTED_TICKS))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power * 5 >= span)


def number_text(value: float) -> str:
    """A number of an axis, without needless digits."""
    return f"{value:.6g}"


def series_class(number: int) -> str:
    """The class of a series, which gives its colour."""
    return f"series s{number % _NUM_COLOURS}"


def swatch(number: int) -> Element:
    """A series as a legend shows it: its line and its mark."""
    return tag(
        "svg",
        tag("line", x1=0, x2=28, y1=8, y2=8, class_=_line_class(number)),
        tag("path", d=_MARKS[number % len(_MARKS)], transform="translate(14 8)"),
        class_=f"swatch {series_class(number)}",
        width=28,
        height=16,
        aria_hidden="true",
    )


def interval_row(point: Point, number: int, axis: Axis) -> Element:
    """A value with its interval along a horizontal axis."""
    middle, low, high = axis.percent(point.x), axis.percent(point.low), axis.percent(point.high)
    lines = [tag("line", x1=axis.percent(x), x2=axis.percent(x), y1=0, y2="100%", class_="grid")
             for x in axis.ticks]  # fmt: skip
    return tag(
        "svg",
        *lines,
        tag("line", x1=low, x2=high, y1="50%", y2="50%", class_="whisker"),
        *(tag("line", x1=x, x2=x, y1="30%", y2="70%", class_="whisker") for x in (low, high)),
        _mark(middle, "50%", number, point.text),
        class_=f"row {series_class(number)}",
        aria_hidden="true",
    )


def axis_row(axis: Axis) -> Element:
    """The numbers of a horizontal axis."""
    texts = [
        tag("text", number_text(x), x=axis.percent(x), y=14, text_anchor="middle", class_="tick")
        for x in axis.ticks
    ]
    return tag("svg", *texts, class_="row", aria_hidden="true")


def line_plot(
    series: Mapping[int, Sequence[Point]], x: Axis, y: Axis, labels: tuple[str, str]
) -> Element:
    """Lines through points, with bands of their intervals.

    Args:
        series: by their numbers, points from left to right, at least one each.
        x, y: the axes.
        labels: of the two axes.
    """
    frame = [
        *(_grid_line(x.percent(at), vertical=True) for at in x.ticks),
        *(_grid_line(y.percent_down(at), vertical=False) for at in y.ticks),
        *(_x_tick(x, at) for at in x.ticks),
        *(_y_tick(y, at) for at in y.ticks),
        tag("text", labels[0], x="50%", y="100%", dy=40, text_anchor="middle", class_="tick"),
        tag("text", labels[1], x=0, y=-12, text_anchor="start", dx=-36, class_="tick"),
    ]
    curves = [_curve(points, number, x, y) for number, points in series.items()]
    drawn = tag(
        "svg", *frame, *curves, class_="plot", role="img", aria_label=f"{labels[1]} by {labels[0]}"
    )
    return tag("div", drawn, class_="plot-frame")


def _grid_line(at: str, *, vertical: bool) -> Element:
    if vertical:
        return tag("line", x1=at, x2=at, y1=0, y2="100%", class_="grid")
    return tag("line", x1=0, x2="100%", y1=at, y2=at, class_="grid")


def _x_tick(axis: Axis, at: float) -> Element:
    place = axis.percent(at)
    return tag(
        "text", number_text(at), x=place, y="100%", dy=18, text_anchor="middle", class_="tick"
    )


def _y_tick(axis: Axis, at: float) -> Element:
    place = axis.percent_down(at)
    return tag("text", number_text(at), x=0, y=place, dx=-6, dy=4, text_anchor="end", class_="tick")


def _curve(points: Sequence[Point], number: int, x: Axis, y: Axis) -> Element:
    across = [x.percent(point.x) for point in points]
    band = [
        *((place, y.percent_down(point.high)) for place, point in zip(across, points, strict=True)),
        *reversed(
            [
                (place, y.percent_down(point.low))
                for place, point in zip(across, points, strict=True)
            ]
        ),
    ]
    line = [(place, y.percent_down(point.y)) for place, point in zip(across, points, strict=True)]
    stretched = tag(
        "svg",
        tag("polygon", points=_path(band), class_="band"),
        tag("polyline", points=_path(line), class_=_line_class(number)),
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
    )
    marks = [
        _mark(place, height, number, point.text)
        for (place, height), point in zip(line, points, strict=True)
    ]
    return tag("g", stretched, *marks, class_=series_class(number))


def _path(places: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{across},{down}" for across, down in places).replace("%", "")


def _line_class(number: int) -> str:
    return f"line d{number % len(_MARKS)}"


def _mark(x: str, y: str, number: int, text: str) -> Element:
    shape = tag("path", tag("title", text), d=_MARKS[number % len(_MARKS)])
    return tag("svg", shape, x=x, y=y, class_="mark")
