"""Checks of plain arguments that both games take."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

import numpy as np

Options = Mapping[str, Any]
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


def check_count(name: str, number: object, least: int = 1) -> int:
    """A number of games or threads as an int.

    Raises:
        ValueError: not a whole number of at least ``least``.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {number!r}")
    return int(number)


def check_seed(seed: Any) -> int:
    """The seed of a deal, of a copy to plan with or of random numbers, as an int.

    Raises:
        ValueError: not a whole number, or negative.
    """
    try:
        number = -1 if isinstance(seed, bool | np.bool_) else operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise ValueError(f"seed must be a non-negative integer, got {seed!r}")
    return number


def check_options(options: object) -> Options:
    """Reset options as a mapping, empty for None.

    Raises:
        ValueError: neither.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ValueError(f"options must be a mapping or None, got {options!r}")
    return cast(Options, options)
