"""What the commands share: their exit statuses, and complaints of one line."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
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
    """Fields of a rule set from ``key=value`` pairs, or from one JSON object.

    A value is a number, true, false or any text; numbers in quotes are texts.

    Raises:
        ValueError: neither of them.
    """
    if len(written) == 1 and "=" not in written[0]:
        return _json_object(written[0])
    fields: dict[str, Any] = {}
    for text in written:
        name, sign, value = text.partition("=")
        if not sign:
            raise _unreadable(text)
        if name in fields:
            raise ValueError(f"rules: {name} is given twice")
        fields[name] = value
        with suppress(ValueError, RecursionError):
            fields[name] = json.loads(value)
    return fields


def _json_object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(text) from error


def _unreadable(text: str) -> ValueError:
    return ValueError(
        f"rules: can't read {text!r}: write KEY=VALUE with a number, true, false or a text, or one "
        "JSON object"
    )
