"""Results that are kept: a JSON file for each run, in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deck_of_spies_env.files import write_text_atomically


def keep(path: Path, result: dict[str, Any]) -> None:
    """Write the result of a run, into a folder that may have yet to be made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, json.dumps(result, indent=1) + "\n")


def kept(folder: Path) -> list[dict[str, Any]]:
    """The results in a folder, by name.

    Raises:
        ValueError: none there, or a file that is no result.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise ValueError(f"no results in {folder}")
    return [_read(path) for path in paths]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"can't read {path}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is not the result of a run")
    return found
