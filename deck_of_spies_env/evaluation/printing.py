"""Tables on stdout: how figures with intervals are set."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import cast

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

_WIDTH_OF_FILES = 200
_NARROWEST_NAMES = 8
_SMALLEST_P_SHOWN = 1e-4


def print_parts(parts: Sequence[RenderableType]) -> None:
    """Print on stdout: as wide as a terminal is, or as tables in a file need."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_OF_FILES)
    for part in parts:
        console.print(part)


def as_text(parts: Sequence[RenderableType]) -> str:
    """What would be printed into a file, without an end of line after the last."""
    console = Console(width=_WIDTH_OF_FILES, file=StringIO())
    for part in parts:
        console.print(part)
    return cast(StringIO, console.file).getvalue().rstrip()


def new_table(first: str, *others: str) -> Table:
    """A table without lines, whose first column is for names."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold", min_width=_NARROWEST_NAMES)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def with_interval(
    value: float, interval: Sequence[float] | None, scale: float = 1, sign: str = ""
) -> Text:
    """A figure with its interval, None for none, all times a scale."""
    form = f"{sign}.2f"
    ends = [f"{end * scale:{form}}" for end in interval or ()]
    return Text(f"{value * scale:{form}} [{', '.join(ends) or 'none'}]")


def p_value_text(p: float | None) -> str:
    """A p-value to four places, a dash for none."""
    if p is None:
        return "-"
    return f"{p:.4f}" if p >= _SMALLEST_P_SHOWN else f"< {_SMALLEST_P_SHOWN:.4f}"
