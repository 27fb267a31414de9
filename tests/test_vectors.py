"""The vector instructions of small networks against NumPy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from deck_of_spies_env.vectors import LANES, add_rows, exponentials

NUM_ROWS = 64
UNIT_ROUNDOFF = float(np.finfo(np.float32).eps) / 2


@numba.njit
def add(out: Any, matrix: Any, rows: Any, scales: Any, count: int) -> None:
    add_rows(out, matrix, rows, scales, count)


@numba.njit
def exponentiate(array: Any, shift: Any) -> None:
    exponentials(array, shift)


@pytest.mark.parametrize("width", [16, 48, 64, 128, 192, 272])
def test_rows_are_added_up(width: int) -> None:
    """Within the error that sums of single precision can have, in whatever order and fused or not.

    A sum of n terms and products is within (n + 1) units of roundoff of the sum of magnitudes.
    """
    rng = np.random.default_rng(width)
    matrix = rng.normal(size=(NUM_ROWS, width)).astype(np.float32)
    for count in range(61):
        rows = rng.integers(NUM_ROWS, size=60)
        scales = rng.normal(size=60).astype(np.float32)
        before = rng.normal(size=width).astype(np.float32)
        out = before.copy()
        add(out, matrix, rows, scales, count)
        products = scales[:count, None].astype(np.float64) * matrix[rows[:count]]
        bound = np.abs(before) + np.abs(products).sum(axis=0)
        error = np.abs(out - (before + products.sum(axis=0)))
        assert (error <= (count + 2) * UNIT_ROUNDOFF * bound).all()
        if count == 0:
            np.testing.assert_array_equal(out, before)


def test_what_is_not_named_is_not_touched() -> None:
    """The neighbours of the sums in memory, and rows beyond the count, out of range."""
    room = np.full(3 * 48, 7, np.float32)
    matrix = np.ones((2, 48), np.float32)
    rows = np.array([1, 1, 10**12, -(10**12)])
    add(room[48:96], matrix, rows, np.full(4, 0.5, np.float32), 2)
    np.testing.assert_array_equal(room, np.repeat(np.float32([7, 8, 7]), 48))


def test_exponentials_have_six_digits() -> None:
    """From about 1e-36 to about 1e38; the shift is taken off in single precision."""
    for shift in np.float32([0, -3.25, 60.5]):
        for x in np.linspace(-82, 87, 8_000, dtype=np.float32).reshape(-1, LANES) + shift:
            array = x.copy()
            exponentiate(array, shift)
            np.testing.assert_allclose(array, np.exp((x - shift).astype(float)), rtol=1e-6)


def test_exponentials_of_zero_and_far_below() -> None:
    array = np.zeros(LANES, np.float32)
    exponentiate(array, np.float32(0))
    np.testing.assert_array_equal(array, np.ones(LANES))
    array[:] = np.float32([-86, -87, -88, -90, -100, -103, -104, -150] * 2)
    array[8:] *= np.float32(1e6)
    exponentiate(array, np.float32(0))
    np.testing.assert_array_equal(array, np.zeros(LANES))


def test_only_the_first_sixteen_are_replaced() -> None:
    array = np.full(2 * LANES, 1.0, np.float32)
    exponentiate(array, np.float32(1))
    np.testing.assert_array_equal(array, np.ones(2 * LANES))
    array[LANES - 1] = 0.0
    exponentiate(array, np.float32(0))
    assert (array[LANES:] == 1).all()
    assert array[0] == pytest.approx(np.e)
