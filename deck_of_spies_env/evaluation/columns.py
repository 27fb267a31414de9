"""What a match came to as named arrays: the form in which workers send it and files keep it.

The arrays of one chunk of deals can be put after those of the chunk before, along their first axis,
which is that of the deals, or has length 1 for what is summed up over a chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = dict[str, npt.NDArray[Any]]


def joined(parts: Sequence[Columns]) -> Columns:
    """The columns of several chunks, one after the other.

    Args:
        parts: at least one, all of the same names.
    """
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def to_bytes(columns: Columns) -> bytes:
    """The columns as a compressed ``.npz`` archive."""
    archive = BytesIO()
    np.savez_compressed(archive, allow_pickle=False, **columns)
    return archive.getvalue()


def from_bytes(content: bytes) -> Columns:
    """The columns of such an archive."""
    with np.load(BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)
