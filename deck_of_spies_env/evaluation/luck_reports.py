"""What a report says of results with luck taken out, see ``luck``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

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


class LuckCollector(LuckWatcher, Collector):
    """Collects the luck of each deal, in the column LUCK."""

    @property
    def columns(self) -> Columns:
        """The luck."""
        return {LUCK: self.luck}


class WithoutLuck(TypedDict):
    """A mean or a difference with luck taken out.

    ``factor`` says how many times as many deals would have made the plain figure as precise.
    """

    mean: float
    ci: list[float]
    factor: float


def luck_means(columns: Columns) -> dict[str, WithoutLuck]:
    """``wins``, a fraction, and ``key_spies`` of a match with a LuckCollector."""
    return {
        quantity: _figure(
            adjusted_mean(columns[quantity], columns[LUCK], column, bounds=_BOUNDS[quantity])
        )
        for column, quantity in enumerate(QUANTITIES)
    }


def luck_differences(first: Columns, second: Columns) -> dict[str, WithoutLuck]:
    """Likewise the differences of two matches on the same deals."""
    return {
        quantity: _figure(
            adjusted_difference(
                first[quantity], first[LUCK], second[quantity], second[LUCK], column
            )
        )
        for column, quantity in enumerate(QUANTITIES)
    }


def _figure(adjusted: Adjusted) -> WithoutLuck:
    return {"mean": adjusted.mean, "ci": list(adjusted.interval), "factor": adjusted.factor}


def luck_table(
    heading: str, rows: Sequence[tuple[str, Mapping[str, WithoutLuck]]], sign: str = ""
) -> Table:
    """A table of such figures.

    Args:
        heading: of the first column.
        rows: name and figures.
        sign: ``"+"`` for differences.
    """
    headings = [text for name, _ in _HEADINGS.values() for text in (name, "factor")]
    table = new_table(f"{heading}, luck taken out", *headings)
    for name, figures in rows:
        row: list[Text] = []
        for quantity, (_, scale) in _HEADINGS.items():
            it = figures[quantity]
            row += [with_interval(it["mean"], it["ci"], scale, sign), Text(f"{it['factor']:.1f}")]
        table.add_row(Text(name), *row)
    return table
