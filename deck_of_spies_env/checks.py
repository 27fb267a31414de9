"""Checks of plain arguments that both games take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

RuleSet = TypeVar("RuleSet")


def as_rule_set(kind: type[RuleSet], rules: RuleSet | Mapping[str, Any] | None) -> RuleSet:
    """A rule set from itself, from a mapping of its fields, or the default for None.

    Raises:
        ValueError: an unknown or ill-typed field, or no mapping at all.
    """
    if rules is None:
        return kind()
    if isinstance(rules, kind):
        return rules
    # Callers hand over what a user wrote in a config file.
    if not isinstance(rules, Mapping):
        raise ValueError(f"rules must be a Rules or a mapping of its fields, got {rules!r}")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in rules:
        if name not in known:
            raise ValueError(f"rules: unknown field {name!r}; there are {', '.join(known)}")
    return kind(**rules)


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
