"""What the commands share: their exit statuses, and complaints of one line."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from deck_of_spies_env.files import check_writable

USER_ERROR = 2
INTERRUPTED = 130


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong on stderr and exit."""
        self.exit(USER_ERROR, f"{self.prog}: error: {' '.join(message.split())}\n")


def whole_number(least: int) -> Callable[[str], int]:
    """The type of an option that is a whole number of at least some."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return number

    return read


at_least_one = whole_number(1)
"""The type of an option that is a number of something."""


def positive_number(text: str) -> float:
    """The type of an option that is a time or another positive measure.

    Raises:
        ArgumentTypeError: not a finite number above 0.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def writable_file(text: str) -> Path:
    """The type of an option that names a file to write.

    Raises:
        ArgumentTypeError: nothing can be written there.
    """
    try:
        check_writable(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"can't write {text!r}: {error.strerror}") from error
    return Path(text)


def rules_from(written: Sequence[str]) -> Any:
    """Fields of a rule set from ``key=value`` pairs with values in JSON, or from one JSON object.

    Raises:
        ValueError: neither of them.
    """
    if len(written) == 1 and "=" not in written[0]:
        return _parsed_json(written[0])
    fields: dict[str, Any] = {}
    for text in written:
        name, _, value = text.partition("=")
        if name in fields:
            raise ValueError(f"rules: {name} is given twice")
        fields[name] = _parsed_json(value)
    return fields


def _parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"rules: can't read {text!r}: write KEY=VALUE with a number, true, false or a text in "
            "quotes"
        ) from error
