"""What a report says of results with luck taken out, see ``luck``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy.typing as npt
from rich.table import Table
from rich.text import Text

from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.evaluation.luck import (
    Adjusted,
    LuckWatcher,
    adjusted_difference,
    adjusted_mean,
)
from deck_of_spies_env.evaluation.matches import Collector
from deck_of_spies_env.evaluation.printing import new_table, with_interval
from deck_of_spies_env.evaluation.statistics import MAX_KEY_SPIES, Interval
from deck_of_spies_env.evaluation.values import QUANTITIES

LUCK = "luck"
"""The column of luck, float64 (D, m)."""

_HEADINGS = {"wins": ("wins, %", 100), "key_spies": ("Key Spies", 1)}
_BOUNDS = {"wins": Interval(0, 1), "key_spies": Interval(0, MAX_KEY_SPIES)}
_LEAST_RARE = 10
"""Games of the rarer kind, below which intervals of wins cover too seldom (docs/evaluation.md)."""


class LuckCollector(LuckWatcher, Collector):
    """Collects the luck of each deal, in the column LUCK."""

    @property
    def columns(self) -> Columns:
        """The luck."""
        return {LUCK: self.luck}


class WithoutLuck(TypedDict):
    """A mean or a difference with luck taken out.

    ``factor`` says how many times as many deals would have made the plain figure as precise. It and
    the interval are None for wins of which there are too few, or too few losses: then the plain
    interval is the honest one.
    """

    mean: float
    ci: list[float] | None
    factor: float | None


def luck_means(columns: Columns) -> dict[str, WithoutLuck]:
    """``wins``, a fraction, and ``key_spies`` of a match with a LuckCollector."""
    figures: dict[str, WithoutLuck] = {}
    for column, quantity in enumerate(QUANTITIES):
        outcomes = columns[quantity]
        adjusted = adjusted_mean(outcomes, columns[LUCK], column, bounds=_BOUNDS[quantity])
        figures[quantity] = _figure(adjusted, quantity, outcomes)
    return figures


def luck_differences(first: Columns, second: Columns) -> dict[str, WithoutLuck]:
    """Likewise the differences of two matches on the same deals."""
    figures: dict[str, WithoutLuck] = {}
    for column, quantity in enumerate(QUANTITIES):
        ours, theirs = first[quantity], second[quantity]
        adjusted = adjusted_difference(ours, first[LUCK], theirs, second[LUCK], column)
        figures[quantity] = _figure(adjusted, quantity, ours != theirs)
    return figures


def _figure(adjusted: Adjusted, quantity: str, wins: npt.NDArray[Any]) -> WithoutLuck:
    """A figure for a report.

    Args:
        adjusted: what was estimated.
        quantity: of what.
        wins: of how many games, or of a difference which deals only one of the two has won.
    """
    if quantity == "wins" and min(wins.sum(), (~wins).sum()) < _LEAST_RARE:
        return {"mean": adjusted.mean, "ci": None, "factor": None}
    return {"mean": adjusted.mean, "ci": list(adjusted.interval), "factor": adjusted.factor}


def factor_text(factor: float | None) -> str:
    """A factor to one place."""
    return "-" if factor is None else f"{factor:.1f}"


def luck_table(
    heading: str, rows: Sequence[tuple[str, Mapping[str, WithoutLuck]]], sign: str = ""
) -> Table:
    """A table of such figures.

    Args:
        heading: of the first column.
        rows: name and figures.
        sign: ``"+"`` for differences.
    """
    points = " points" if sign else ""
    headings = [
        text
        for name, scale in _HEADINGS.values()
        for text in (name + (points if scale == 100 else ""), "factor")
    ]
    table = new_table(f"{heading}, luck taken out", *headings)
    for name, figures in rows:
        row: list[Text] = []
        for quantity, (_, scale) in _HEADINGS.items():
            it = figures[quantity]
            row += [
                with_interval(it["mean"], it["ci"], scale, sign),
                Text(factor_text(it["factor"])),
            ]
        table.add_row(Text(name), *row)
    return table
