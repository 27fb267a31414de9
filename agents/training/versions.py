"""What a run or a measurement was made with: versions of libraries, and the project's commit."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def versions_of(libraries: Iterable[str]) -> dict[str, str]:
    """Versions by name: Python's, and those of the libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def git_commit() -> str:
    """The full hash of the project's commit, with ``-dirty`` if files differ, or ``unknown``.

    As it is at the first call of a process, whose code does not change either.
    """
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return described.stdout.strip()
