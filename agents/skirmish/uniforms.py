"""Random numbers that depend on a seed and on what is seen, and on nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.compiled import compiling, entry_point, kernel
from deck_of_spies_env.random_streams import mix

_WIDEST = 512
_FACTORS = np.random.default_rng(14).integers(0, 1 << 64, _WIDEST, dtype=np.uint64) | np.uint64(1)
_TO_UNIT = 2.0**-53
_SHIFT = np.uint64(11)
_ZERO = np.uint64(0)


@kernel
def hash_of(row: Any, key: np.uint64) -> np.uint64:
    """A hash of an observation, int8 (d,): a sum with random factors, mixed with a key."""
    total = _ZERO
    for place in range(row.shape[0]):
        total += np.uint64(row[place]) * _FACTORS[place]
    return mix(key ^ mix(total))


@kernel
def unit(position: np.uint64) -> float:
    """A number in [0, 1) from a stream's position."""
    return np.float64(mix(position) >> _SHIFT) * _TO_UNIT


@entry_point
def _write_uniforms(rows: Any, key: np.uint64, out: Any) -> None:
    for i in range(rows.shape[0]):
        out[i] = unit(hash_of(rows[i], key))


def uniforms_of(rows: npt.NDArray[np.int8], seed: int) -> npt.NDArray[np.float64]:
    """One uniform number in [0, 1) for each row, float64 (N,): equal for equal rows.

    Args:
        rows: int8 (N, d), at most 512 wide.
        seed: non-negative integer.
    """
    _compile()
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    out = np.empty(len(rows))
    _write_uniforms(np.ascontiguousarray(rows), key, out)
    return out


@cache
def _compile() -> None:
    with compiling():
        _write_uniforms(np.zeros((0, 1), np.int8), _ZERO, np.zeros(0))
