"""Random legal play, compiled: one and the same choice for every batch of games that is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from deck_of_spies_env.compiled import popcount
from deck_of_spies_env.random_streams import uniform_below

Masks = npt.NDArray[Any]
Choose = Callable[[Masks, npt.NDArray[np.uint64], npt.NDArray[Any]], None]

WORD_BITS = 64
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)

compiled = numba.njit(error_model="numpy", nogil=True)
inlined = numba.njit(error_model="numpy", nogil=True, forceinline=True)


def new_stream(seed: int) -> npt.NDArray[np.uint64]:
    """The position of a random stream, shape (1,), for the choosers to move on."""
    return np.array([seed], dtype=np.uint64)


@inlined
def _below(stream: Any, bound: Any) -> Any:
    """A uniform integer in [0, bound), from a SplitMix64 stream."""
    number, stream[0] = uniform_below(stream[0], _GAMMA, np.uint64(bound))
    return np.int64(number)


@inlined
def _nth_bit(word: Any, n: Any) -> Any:
    """Index of the set bit that has n set bits below it; without branches to mispredict."""
    index = np.uint64(0)
    left = np.uint64(n)
    for width in (32, 16, 8, 4, 2):
        low_bits = (_ONE << np.uint64(width)) - _ONE
        low = np.uint64(popcount((word >> index) & low_bits))
        beyond = np.uint64(left >= low)
        left -= beyond * low
        index += beyond * np.uint64(width)
    pair = word >> index
    return np.int64(index + (left if pair & _ONE else _ONE))


@compiled
def choose_one(mask: Any, stream: Any) -> int:
    """A random legal action of one game; mask of shape (n,), 0 if nothing is legal."""
    num_legal = 0
    for action in range(mask.shape[0]):
        num_legal += mask[action] != 0
    if num_legal == 0:
        return 0
    left = _below(stream, num_legal)
    for action in range(mask.shape[0]):
        if mask[action]:
            if left == 0:
                return action
            left -= 1
    return 0


@compiled
def choose_each(masks: Any, stream: Any, actions: Any) -> None:
    """A random legal action of each game, 0 where nothing is legal.

    Args:
        masks: shape (N, n), not 0 where an action is legal.
        stream: see new_stream.
        actions: integers of any kind (N,), overwritten.
    """
    num_actions = masks.shape[1]
    legal = np.zeros(num_actions + 1, dtype=np.int64)
    for i in range(masks.shape[0]):
        num_legal = 0
        for action in range(num_actions):  # every action is written, but only legal ones stay
            legal[num_legal] = action
            num_legal += masks[i, action] != 0
        actions[i] = legal[_below(stream, num_legal)] if num_legal else 0


@compiled
def choose_each_packed(words: Any, stream: Any, actions: Any) -> None:
    """As choose_each, from bits.

    Args:
        words: uint64 (N, ceil(n / 64)); bit a % 64 of word a // 64 is action a.
        stream, actions: as in choose_each.
    """
    for i in range(words.shape[0]):
        num_legal = 0
        for word in range(words.shape[1]):
            num_legal += np.int64(popcount(words[i, word]))
        if num_legal == 0:
            actions[i] = 0
            continue
        left = _below(stream, num_legal)
        word = 0
        here = np.int64(popcount(words[i, 0]))
        while left >= here:
            left -= here
            word += 1
            here = np.int64(popcount(words[i, word]))
        actions[i] = WORD_BITS * word + _nth_bit(words[i, word], left)


def chooser_for(masks: Masks) -> Choose:
    """The chooser that reads such masks: bits if they are uint64, else bytes."""
    return choose_each_packed if masks.dtype == np.uint64 else choose_each
