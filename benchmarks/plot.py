"""The measured speeds as bars, from the contents of the JSON file."""

from __future__ import annotations

import io
from typing import Any

from benchmarks.measuring import Record, speeds, spread

INCHES_OF_A_BAR = 0.24
INCHES_OF_A_TITLE = 0.75
WIDTH = 11.0
OURS, OTHERS = "#1f6f8b", "#b8b8b8"


def draw(results: Record) -> bytes | None:
    """A PNG with one panel for each group, on a logarithmic axis; None if there is nothing to show.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = [
        (group["title"], shown)
        for group in results["groups"].values()
        if (shown := [one for one in group["contenders"] if one["plotted"]])
    ]
    if not panels:
        return None
    heights = [INCHES_OF_A_BAR * len(shown) + INCHES_OF_A_TITLE for _, shown in panels]
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axis, (title, shown) in zip(axes[:, 0], panels, strict=True):
        _panel(axis, title, shown)
    axes[-1, 0].set_xlabel("steps per CPU second (bars: medians; lines: lowest to highest)")
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=110)
    return png.getvalue()


def _panel(axis: Any, title: str, shown: list[Record]) -> None:
    measured = [spread(speeds(contender, "cpu")) for contender in shown]
    names = [contender["name"] for contender in shown]
    medians = [one.median for one in measured]
    errors = [
        [one.median - one.low for one in measured],
        [one.high - one.median for one in measured],
    ]
    colours = [OURS if contender["ours"] else OTHERS for contender in shown]
    axis.barh(range(len(names)), medians, xerr=errors, color=colours, log=True, ecolor="#555555")
    axis.xaxis.set_minor_formatter("")  # the labels would overlap
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(min(medians) / 3, 3 * max(one.high for one in measured))
    axis.margins(y=0.01)
    axis.set_title(title, loc="left", fontsize=10)
    axis.grid(axis="x", alpha=0.3)
    for position, one in enumerate(measured):
        axis.text(one.high * 1.05, position, f"{one.median:,.0f}", va="center", fontsize=7)
