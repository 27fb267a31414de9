"""Checks of plain arguments that both games take."""

from __future__ import annotations

import numpy as np


def check_flag(name: str, flag: object) -> bool:
    """A flag as a bool.

    Raises:
        ValueError: neither True nor False.
    """
    if not isinstance(flag, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {flag!r}")
    return bool(flag)


def check_count(name: str, number: object) -> int:
    """A number of games or threads as an int.

    Raises:
        ValueError: not a whole number of at least 1.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}")
    return int(number)
