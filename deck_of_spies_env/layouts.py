"""Named fields of flat observations: where they lie, how large they get, and a table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Field:
    """One named field of an observation.

    Attributes:
        name: key of the layout.
        width: number of entries.
        high: largest value of an entry; the lowest is 0.
        meaning: one line for the documentation.
    """

    name: str
    width: int
    high: int
    meaning: str


def layout_of(fields: Sequence[Field]) -> dict[str, slice]:
    """Name -> slice of the observation vector, for fields one after the other."""
    layout: dict[str, slice] = {}
    start = 0
    for field in fields:
        layout[field.name] = slice(start, start + field.width)
        start += field.width
    return layout


def high_of(fields: Sequence[Field]) -> npt.NDArray[np.int8]:
    """Largest value of each entry, int8 of shape (d,)."""
    return np.repeat(
        np.array([field.high for field in fields], dtype=np.int8),
        [field.width for field in fields],
    )


def table_of(fields: Sequence[Field]) -> str:
    """The layout as a markdown table, for the documentation."""
    layout = layout_of(fields)
    lines = ["| field | slice | width | values | meaning |", "|---|---|---|---|---|"]
    for field in fields:
        place = layout[field.name]
        lines.append(
            f"| `{field.name}` | {place.start}:{place.stop} | {field.width} | 0-{field.high} "
            f"| {field.meaning} |"
        )
    return "\n".join(lines) + "\n"
