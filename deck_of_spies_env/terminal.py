"""Tables in colour, for people at a terminal."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

_RESET = "\x1b[0m"
_COLOURS = {"♣": "\x1b[32m", "♦": "\x1b[34m", "♥": "\x1b[31m", "♠": "\x1b[1m"}
_CARD = re.compile(r"(?:10|[A2-9TJQK])([♣♦♥♠])")
_LABEL = re.compile(r"^( *[A-Z][a-z]+(?: [A-Z][a-z]+| \d)?)(?=  |\[|$)", re.MULTILINE)


def coloured(text: str) -> str:
    """A table of render mode ``"ansi"`` with control codes: cards by suit, names of areas faint."""
    text = _LABEL.sub(lambda found: f"\x1b[2m{found[0]}{_RESET}", text)
    return _CARD.sub(lambda found: _COLOURS[found[1]] + found[0] + _RESET, text)


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can show colours, and ``NO_COLOR`` is not set."""
    forbidden = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not forbidden and stream.isatty()


def print_table(text: str, stream: TextIO | None = None) -> None:
    """Print a table of render mode ``"ansi"``, in colour where that is wanted.

    Args:
        text: what ``render()`` returned.
        stream: standard output by default.
    """
    target: TextIO = stream or sys.stdout
    target.write(coloured(text) if wants_colour(target) else text)
    target.flush()
