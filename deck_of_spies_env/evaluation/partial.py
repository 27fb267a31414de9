"""A file that keeps the finished chunks of a run, so that the run can go on after its death.

One line of JSON each: first the settings of the run, then every chunk as it was finished, its
columns as a compressed archive in base64 beside their digest. A line is written in one go, so death
at any moment leaves whole lines and at most one that is cut off, which is dropped.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

from deck_of_spies_env.evaluation.columns import Columns, from_bytes, to_bytes

FORMAT = "deck_of_spies_env partial run 1"

_MISSING = "nothing"


class Unit(NamedTuple):
    """What is played and kept at a time: numbers of a match and of a chunk, and its deals."""

    match: int
    chunk: int
    deals: int


class PartialFileError(ValueError):
    """A file that can't be gone on with; the message is one line for the user."""


class PartialFile:
    """The chunks of a run that are kept.

    Attributes:
        kept: unit -> columns, of what was in the file when it was opened.
    """

    def __init__(self, file: BinaryIO, kept: Mapping[Unit, Columns]) -> None:
        self.kept = kept
        self._file = file

    def keep(self, unit: Unit, columns: Columns) -> None:
        """Add a finished chunk; it's safe from the death of this process when this returns."""
        content = to_bytes(columns)
        line = {
            **unit._asdict(),
            "sha256": sha256(content).hexdigest(),
            "npz": b64encode(content).decode(),
        }
        _write_line(self._file, line)


@contextmanager
def partial_file(path: str | Path, settings: Mapping[str, Any]) -> Generator[PartialFile]:
    """Open the file of a run, or begin it.

    Args:
        path: of the file; one that is empty or not there is begun.
        settings: all that decides what a chunk comes to, to be written as JSON. Another run's file
            is not gone on with.

    Raises:
        OSError: the file can't be read or written.
        PartialFileError: it's no such file, it's damaged, it's of a run with other settings, or
            another process has it open.
    """
    if Path(path).exists() and not Path(path).is_file():
        raise PartialFileError(f"{path} is no plain file: a run can't be kept there")
    with open(path, "a+b") as file:
        _lock(path, file)
        file.seek(0)
        header = {"format": FORMAT, "settings": settings}
        lines = _whole_lines(file)
        if lines:
            _check_header(path, lines[0], json.loads(json.dumps(header)))
        kept = dict(_read_chunk(path, number, line) for number, line in enumerate(lines[1:], 2))
        if not lines:
            _write_line(file, header)
        yield PartialFile(file, kept)


def _lock(path: str | Path, file: BinaryIO) -> None:
    """Keep the file from other processes until it is closed, or this one dies, where that can be.

    Raises:
        PartialFileError: another process has it.
    """
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise PartialFileError(f"{path} is being written by another run") from None


def _write_line(file: BinaryIO, content: Mapping[str, Any]) -> None:
    file.write(json.dumps(content).encode() + b"\n")
    file.flush()


def _whole_lines(file: BinaryIO) -> list[bytes]:
    """The lines of a file; the end of a last one that was cut off is cut away."""
    content = file.read()
    whole = content.rpartition(b"\n")[0]
    size = len(whole) + 1 if whole else 0
    if size < len(content) and (whole or _is_start_of_header(content)):
        file.truncate(size)
    elif size < len(content):
        return [content]
    return whole.split(b"\n") if whole else []


def _is_start_of_header(content: bytes) -> bool:
    opening = json.dumps({"format": FORMAT})[:-1].encode()
    return content.startswith(opening) or opening.startswith(content)


def _check_header(path: str | Path, line: bytes, expected: Mapping[str, Any]) -> None:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise PartialFileError(f"{path} is not the file of a run of this version")
    difference = _first_difference(found.get("settings"), expected["settings"])
    if difference:
        raise PartialFileError(f"{path} is of another run: {difference}")


def _first_difference(found: Any, expected: Any, name: str = "settings") -> str:
    """The first difference of two documents in words, empty if there is none."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = {**expected, **found}
        pairs = [(f"{key}", found.get(key), expected.get(key)) for key in names]
        return next(filter(None, (_first_difference(a, b, key) for key, a, b in pairs)), "")
    if found == expected:
        return ""
    there, here = (_MISSING if it is None else json.dumps(it) for it in (found, expected))
    return f"it has {name} {there}, this one {here}"


def _read_chunk(path: str | Path, number: int, line: bytes) -> tuple[Unit, Columns]:
    try:
        chunk = json.loads(line)
        content = b64decode(chunk["npz"], validate=True)
        if sha256(content).hexdigest() != chunk["sha256"]:
            raise ValueError("not what was written")
        return Unit(*(int(chunk[field]) for field in Unit._fields)), from_bytes(content)
    except (ValueError, KeyError, TypeError) as error:
        raise PartialFileError(f"{path}, line {number}: damaged, can't go on from it") from error
