"""Files that are either written whole or left as they were."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write UTF-8 text, see :func:`write_bytes_atomically`; line ends stay as they are."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: str | Path, content: bytes) -> None:
    """Write a file in one go, see :func:`replacing`."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: str | Path) -> Generator[BinaryIO]:
    """Write a file so that a reader, or a crash at any moment, finds the old file or the new one.

    The content is written and flushed beside the target, then renamed over it when the block ends
    without an exception. A link is followed, an existing file's permissions are kept, and what is
    no file at all (``/dev/stdout``, a named pipe) is written to as it is.

    Yields:
        What to write the new content to.

    Raises:
        OSError: the file can't be written; the old one, if any, is as it was.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    target = target.resolve()
    beside = _name_beside(target)
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o7777)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _flush_directory(target.parent)


def check_writable(path: str | Path) -> None:
    """Find out now whether a file can be written later; nothing stays behind.

    Raises:
        OSError: it can't; ``strerror`` says why.
    """
    target = Path(path)
    if target.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if target.exists() and not target.is_file():
        if not os.access(target, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(target))
        return
    beside = _name_beside(target.resolve())
    try:
        beside.touch(exist_ok=False)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error
    beside.unlink()


def _name_beside(target: Path) -> Path:
    """A name in the target's directory that nothing else uses."""
    return target.with_name(f".{secrets.token_hex(8)}.tmp")


def _flush_directory(directory: Path) -> None:
    """Make the rename itself last; only POSIX systems can open a directory."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
