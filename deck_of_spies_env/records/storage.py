"""Files of records in JSON Lines: written whole, or appended to game by game."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from deck_of_spies_env.files import replacing
from deck_of_spies_env.records.format import (
    OPENING,
    GameRecord,
    RecordError,
    Write,
    from_line,
    parsed,
    to_line,
)

LONGEST_LINE = 1 << 24
"""Bytes, many times what the longest game takes: what is longer is no file of records."""


class RecordWarning(UserWarning):
    """A line that was cut off has been dropped."""


def read_records(path: str | Path) -> Iterator[GameRecord]:
    """The records of a file, read as they are asked for; an empty file has none.

    A last line that was cut off in writing is dropped with a RecordWarning. Records are not
    replayed here, see :func:`replay`.

    Raises:
        OSError: the file can't be read.
        RecordError: a line that is no record of this format; the message names file and line.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
            source = f"{path}, line {number}"
            if _is_torn(line):
                warnings.warn(f"{source}: cut off, dropped", RecordWarning, stacklevel=2)
                return
            yield from_line(line, source)


def write_records(path: str | Path, records: Iterable[GameRecord], *, append: bool = False) -> None:
    """Write records, see record_writer."""
    with record_writer(path, append=append) as write:
        for record in records:
            write(record)


@contextmanager
def record_writer(path: str | Path, *, append: bool = False) -> Generator[Write]:
    """Write records one by one.

    Args:
        path: of the file.
        append: add to what is there, each record being safe from the death of the process as soon
            as it is written; a line that an earlier run was killed in is dropped with a
            RecordWarning. Else the file is written whole when the block ends, or, if that is by an
            exception, left as it was.

    Yields:
        The function that writes a record.

    Raises:
        OSError: the file can't be written.
        RecordError: what is to be appended to is no file of records of this format.
    """
    if not append:
        with replacing(path) as file:
            yield lambda record: _write_all(file, record)
        return
    if Path(path).is_file():
        _mend(Path(path))
    with open(path, "ab") as file:

        def write(record: GameRecord) -> None:
            _write_all(file, record)
            file.flush()

        yield write
        if Path(path).is_file():
            os.fsync(file.fileno())


def _write_all(file: BinaryIO, record: GameRecord) -> None:
    file.write(to_line(record))


def _is_torn(line: bytes) -> bool:
    """Whether a line is the beginning of a record's line."""
    if line.endswith(b"\n") or len(line) >= LONGEST_LINE:
        return False
    if not (line.startswith(OPENING) or OPENING.startswith(line)):
        return False
    try:
        parsed(line)
    except RecordError:
        return True
    return False


def _mend(path: Path) -> None:
    """Make sure that a file can be appended to: that it holds records and ends with a whole line.

    Raises:
        RecordError: the first or the last line is no record.
    """
    with path.open("r+b") as file:
        first = file.readline(LONGEST_LINE)
        if not first:
            return
        if not _is_torn(first):
            from_line(first, f"{path}, line 1")
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - LONGEST_LINE))
        last = file.read().rpartition(b"\n")[2]
        if not last:
            return
        if _is_torn(last):
            warnings.warn(f"{path}: last line cut off, dropped", RecordWarning, stacklevel=4)
            file.truncate(end - len(last))
        else:  # all but its end was written
            from_line(last, f"{path}, last line")
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
