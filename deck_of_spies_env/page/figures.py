"""Figures of a report and of training runs, each with a table of the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from deck_of_spies_env.evaluation.printing import with_interval
from deck_of_spies_env.evaluation.reports import AgentReport, Report
from deck_of_spies_env.evaluation.statistics import MAX_KEY_SPIES
from deck_of_spies_env.evaluation.table_reports import TableReport
from deck_of_spies_env.page.markup import Child, tag
from deck_of_spies_env.page.plots import Axis, Point, axis_row, interval_row, line_plot, swatch
from deck_of_spies_env.page.tables import data_table

_PERCENT = (0.0, 100.0)


@dataclass(frozen=True)
class CurvePoint:
    """An evaluation during training.

    Attributes:
        timesteps: decisions trained for.
        rate: win rate, or share of wins in Skirmish, a fraction.
        low, high: its 95 % interval.
    """

    timesteps: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """How an agent learnt.

    Attributes:
        name: of the agent.
        points: evaluations in the order of training, at least one.
    """

    name: str
    points: tuple[CurvePoint, ...]


def forest(report: Report | TableReport, what: str) -> Element:
    """Win rates with their intervals, one below the other; the table of agents has the numbers."""
    points = [
        _rate_point(agent["name"], agent["win_rate"], agent["win_rate_ci"])
        for agent in report["agents"]
    ]
    axis = Axis.around([x for one in points for x in (one.low, one.high)], within=_PERCENT)
    rows = [
        tag(
            "div",
            tag("span", agent["name"], class_="label"),
            interval_row(point, number, axis),
            class_="forest-row",
        )
        for number, (agent, point) in enumerate(zip(report["agents"], points, strict=True))
    ]
    rows.append(tag("div", tag("span", what, class_="label"), axis_row(axis), class_="forest-row"))
    drawn = tag(
        "div", *rows, class_="forest", role="img", aria_label=_forest_in_words(points, what)
    )
    caption = f"{what}, with the intervals of the first table."
    return tag("figure", drawn, tag("figcaption", caption))


def _forest_in_words(points: Sequence[Point], what: str) -> str:
    return f"{what}: " + "; ".join(point.text for point in points)


def _rate_point(name: str, rate: float, interval: Sequence[float]) -> Point:
    low, high = interval
    text = f"{name} {with_interval(rate, interval, 100).plain}"
    return Point(100 * rate, 0, 100 * low, 100 * high, text)


def _profile_points(agent: AgentReport) -> list[Point]:
    """The share of games with at least so many Key Spies, in %, with its band."""
    points: list[Point] = []
    for number, share in agent["key_spies_at_least"].items():
        low, high = agent["key_spies_at_least_band"][number]
        text = f"{agent['name']}, {number} or more: {with_interval(share, [low, high], 100).plain}%"
        points.append(Point(int(number), 100 * share, 100 * low, 100 * high, text))
    return points


def profile(report: Report) -> Element:
    """How many Key Spies the agents reach, as lines and as a table."""
    names = [agent["name"] for agent in report["agents"]]
    series = dict(enumerate(map(_profile_points, report["agents"])))
    numbers = range(1, MAX_KEY_SPIES + 1)
    x, y = Axis(1, MAX_KEY_SPIES, tuple(numbers)), Axis(0, 100, (0, 25, 50, 75, 100))
    rows: list[list[Child]] = [
        [str(number), *(_with_ends(points[number - 1]) for points in series.values())]
        for number in numbers
    ]
    return _figure(
        "Games with at least so many Key Spies, in %; each band covers its whole line with 95%.",
        dict(enumerate(names)),
        line_plot(series, x, y, ("Key Spies", "games with at least so many, %")),
        data_table("Games with at least so many Key Spies, %", ["Key Spies", *names], rows),
    )


def learning_curves(report: Report | TableReport, curves: Sequence[Curve], what: str) -> Element:
    """How agents learnt, as lines and as a table.

    Args:
        report: whose agents they are; each is drawn as in the other figures.
        curves: of some of the agents, at least one.
        what: is measured, in words.
    """
    order = [agent["name"] for agent in report["agents"]]
    series = {order.index(curve.name): _curve_points(curve) for curve in curves}
    every = [point for points in series.values() for point in points]
    x = Axis.around([0, *(point.x for point in every)], within=(0, float("inf")))
    y = Axis.around([end for one in every for end in (one.low, one.high)], within=_PERCENT)
    rows: list[list[Child]] = [
        [order[number], f"{point.x:.2f}", _with_ends(point)]
        for number, points in series.items()
        for point in points
    ]
    return _figure(
        f"Learning: {what} on deals held out, while agents were trained; bands: 95% intervals.",
        {number: order[number] for number in series},
        line_plot(series, x, y, ("million decisions of training", what)),
        data_table(f"Learning: {what}", ["agent", "million decisions", what], rows),
    )


def _curve_points(curve: Curve) -> list[Point]:
    return [
        Point(
            point.timesteps / 1e6,
            100 * point.rate,
            100 * point.low,
            100 * point.high,
            f"{curve.name} after {point.timesteps / 1e6:.1f} million: {100 * point.rate:.2f}%",
        )
        for point in curve.points
    ]


def _with_ends(point: Point) -> str:
    return with_interval(point.y, [point.low, point.high]).plain


def _figure(caption: str, names: Mapping[int, str], plot: Element, table: Element) -> Element:
    """A plot with its legend, the names of the numbered series, and the table that equals it."""
    legend = [tag("li", swatch(number), name) for number, name in names.items()]
    return tag(
        "figure",
        tag("ul", *legend, class_="legend"),
        plot,
        tag("figcaption", caption),
        tag("details", tag("summary", "The same as a table"), table),
    )
