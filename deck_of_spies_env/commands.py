"""What the commands share: their exit statuses, and complaints of one line."""

from __future__ import annotations

import argparse
from typing import NoReturn

USER_ERROR = 2
INTERRUPTED = 130


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong on stderr and exit."""
        self.exit(USER_ERROR, f"{self.prog}: error: {' '.join(message.split())}\n")


def at_least_one(text: str) -> int:
    """The type of an option that is a number of something.

    Raises:
        ArgumentTypeError: not a whole number of at least 1.
    """
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number
