"""Random legal play, compiled: one and the same choice for every batch of games that is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from deck_of_spies_env.compiled import lowest_bit_index, popcount
from deck_of_spies_env.random_streams import pick_bit, uniform_below

Masks = npt.NDArray[Any]
Choose = Callable[[Masks, npt.NDArray[np.uint64], npt.NDArray[Any]], None]

WORD_BITS = 64
_WINDOW = 8  # bytes, and bits of a byte
_GAMMA = np.uint64(0x9E3779B97F4A7C15)

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


if TYPE_CHECKING:

    def _eight_flags(masks: Any, offset: int) -> np.uint64:
        """Which of eight bytes are not 0, as bits; of a contiguous array, from a flat index on."""
        ...

else:

    @intrinsic
    def _eight_flags(typing_context, masks, offset):
        if masks.layout != "C" or masks.dtype.bitwidth != _WINDOW:
            raise numba.TypingError(f"masks must be contiguous bytes, got {masks}")
        eight = ir.VectorType(ir.IntType(_WINDOW), _WINDOW)

        def generate(context, builder, signature, arguments):
            masks, offset = arguments
            data = context.make_array(signature.args[0])(context, builder, masks).data
            source = builder.bitcast(builder.gep(data, [offset]), eight.as_pointer())
            zeros = ir.Constant(eight, [0] * _WINDOW)
            flags = builder.icmp_unsigned("!=", builder.load(source, align=1), zeros)
            return builder.zext(builder.bitcast(flags, ir.IntType(_WINDOW)), ir.IntType(64))

        return types.uint64(masks, types.int64), generate


@inlined
def _flags(masks: Any, i: Any, first: Any, count: Any) -> Any:
    """Which of up to 64 actions of row i are legal, from the first on, as bits."""
    word = np.uint64(0)
    if count < _WINDOW:
        for place in range(count):
            word |= np.uint64(masks[i, first + place] != 0) << np.uint64(place)
        return word
    start = i * masks.shape[1] + first
    for place in range(0, count - _WINDOW, _WINDOW):
        word |= _eight_flags(masks, start + place) << np.uint64(place)
    last = count - _WINDOW  # some bits come twice
    return word | _eight_flags(masks, start + last) << np.uint64(last)


@inlined
def _nth_bit(word: Any, n: Any) -> Any:
    """Index of the set bit that has n set bits below it."""
    return np.int64(lowest_bit_index(pick_bit(word, np.uint64(n))))


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
        masks: contiguous bytes of shape (N, n), not 0 where an action is legal.
        stream: see new_stream.
        actions: integers of any kind (N,), overwritten.
    """
    num_actions = masks.shape[1]
    later = np.zeros(num_actions // WORD_BITS, dtype=np.uint64)  # words of flags after the first
    for i in range(masks.shape[0]):
        word = _flags(masks, i, 0, min(num_actions, WORD_BITS))
        here = num_legal = np.int64(popcount(word))
        for place in range(len(later)):
            first = WORD_BITS * (place + 1)
            later[place] = _flags(masks, i, first, min(num_actions - first, WORD_BITS))
            num_legal += np.int64(popcount(later[place]))
        if num_legal == 0:
            actions[i] = 0
            continue
        left, place = _below(stream, num_legal), 0
        while left >= here:
            left -= here
            word = later[place]
            here = np.int64(popcount(word))
            place += 1
        actions[i] = WORD_BITS * place + _nth_bit(word, left)


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
