"""Random numbers that depend on a seed and on what is seen, and on nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.compiled import compiling, entry_point
from deck_of_spies_env.random_streams import mix

_START = np.uint64(0x243F6A8885A308D3)  # any constant will do
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_TO_UNIT = 2.0**-53
_LOW_BITS = np.uint64(11)


@entry_point
def _write_uniforms(rows: Any, key: np.uint64, out: Any) -> None:
    for i in range(rows.shape[0]):
        word = key
        for k in range(rows.shape[1]):
            word = mix(word + np.uint64(np.uint8(rows[i, k])) * _STRIDE + np.uint64(k))
        out[i] = (mix(word) >> _LOW_BITS) * _TO_UNIT


def uniforms_of(rows: npt.NDArray[np.int8], seed: int) -> npt.NDArray[np.float64]:
    """One uniform number in [0, 1) for each row, float64 (N,): equal for equal rows.

    Args:
        rows: int8 (N, d).
        seed: non-negative integer.
    """
    _compile()
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] ^ _START
    out = np.empty(len(rows))
    _write_uniforms(np.ascontiguousarray(rows), key, out)
    return out


@cache
def _compile() -> None:
    with compiling():
        _write_uniforms(np.zeros((0, 1), np.int8), np.uint64(0), np.zeros(0))
