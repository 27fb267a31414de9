"""Random streams for N games: splittable, vectorised, kept outside the game state.

Each game owns two streams, one for the order of the spies and one for drawn cards, so that the
spies met do not depend on how many cards were drawn: a *deal* is (seed, episode number) and nothing
else. The generator is SplitMix64 with a gamma (stride) of its own per seed (Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", OOPSLA 2014), seeded through
:class:`numpy.random.SeedSequence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.compiled import deposit_bits, entry_point, kernel, popcount

STREAMS = np.dtype(
    [
        ("key", np.uint64),  # from the seed
        ("gamma", np.uint64),  # odd stride, from the seed
        ("episode", np.int64),  # the number of the episode being played; -1 before the first
        ("spies", np.uint64),  # position of the stream that orders the spies
        ("draws", np.uint64),  # position of the stream that draws cards
    ]
)
"""One record per game. ``streams.episode`` counts the deals made from this seed."""

_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_27 = np.uint64(27)
_SHIFT_30 = np.uint64(30)
_SHIFT_31 = np.uint64(31)
_SHIFT_32 = np.uint64(32)
_LOW_32 = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_RANGE_32 = np.uint64(1 << 32)
_CHOICES = np.uint64(0xD1B54A32D192ED03)  # any odd constant that is used for nothing else
_EPISODE_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_TRANSITIONS_WANTED = 24
_FORKS = (1,)
_MANY_FORKS = (2,)
_ALTERNATING = np.uint64(0xAAAAAAAAAAAAAAAA)


def seed_streams(
    seeds: Sequence[int], *, forks: bool = False, dtype: np.dtype[Any] = STREAMS
) -> npt.NDArray[Any]:
    """Streams for the given seeds, before their first episode.

    Args:
        seeds: non-negative integers of any size, one per game.
        dtype: of the records, with the fields ``key``, ``gamma`` and ``episode`` at least.
        forks: streams for copies made to plan with. They share nothing with those of games, so that
            a planner that happens on a game's own seed does not see the future.

    Returns:
        Array of shape ``(len(seeds),)`` and that dtype.

    Raises:
        ValueError: a seed is negative.
    """
    streams = np.zeros(len(seeds), dtype=dtype)
    for record, seed in zip(streams, seeds, strict=True):
        if seed < 0:
            raise ValueError(f"seed must be a non-negative integer, got {seed}")
        sequence = np.random.SeedSequence(seed, spawn_key=_FORKS if forks else ())
        record["key"], record["gamma"] = sequence.generate_state(2, np.uint64)
    streams["gamma"] = _well_mixed_gammas(streams["gamma"])
    streams["episode"] = -1
    return streams


def fork_streams(seed: int, count: int) -> npt.NDArray[Any]:
    """Many streams from one seed, in the middle of an episode, for copies made to plan with.

    They share nothing with those of games, nor with those of seed_streams.

    Args:
        seed: non-negative integer of any size.
        count: of streams.

    Returns:
        Array of shape ``(count,)`` and dtype :data:`STREAMS`.

    Raises:
        ValueError: the seed is negative.
    """
    if seed < 0:
        raise ValueError(f"seed must be a non-negative integer, got {seed}")
    words = np.random.SeedSequence(seed, spawn_key=_MANY_FORKS).generate_state(4 * count, np.uint64)
    words = words.reshape(count, 4)
    streams = np.zeros(count, dtype=STREAMS)
    streams["key"], streams["spies"], streams["draws"] = words[:, 0], words[:, 2], words[:, 3]
    streams["gamma"] = _well_mixed_gammas(words[:, 1])
    return streams


def check_streams(streams: npt.NDArray[Any], going_on: npt.NDArray[np.bool_]) -> None:
    """Check streams that somebody hands over.

    Args:
        streams: shape (N,), with the fields ``gamma`` and ``episode`` at least.
        going_on: bool (N,), which of their games need them to go on.

    Raises:
        ValueError: the first that are none; the message says which if there are several.
    """
    index = _first_bad(streams, going_on)
    if index >= 0:
        where = f"state {index}" if len(streams) > 1 else "state"
        raise ValueError(f"{where}: it has no random streams")


@entry_point
def _first_bad(streams: Any, going_on: Any) -> int:
    for i in range(streams.shape[0]):
        if (going_on[i] and streams[i].gamma & _ONE == 0) or streams[i].episode < -1:
            return i
    return -1


def _well_mixed_gammas(words: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Odd strides with enough bit transitions (Steele et al., section 5, ``mixGamma``)."""
    gammas = words | _ONE
    transitions = np.bitwise_count(gammas ^ (gammas >> _ONE))
    return np.where(transitions >= _TRANSITIONS_WANTED, gammas, gammas ^ _ALTERNATING)


@kernel
def mix(word: np.uint64) -> np.uint64:
    """SplitMix64's finaliser: a bijection of 64-bit words without visible structure."""
    word = (word ^ (word >> _SHIFT_30)) * _MULTIPLIER_1
    word = (word ^ (word >> _SHIFT_27)) * _MULTIPLIER_2
    return word ^ (word >> _SHIFT_31)


@kernel
def stream_start(streams: Any, number: np.uint64) -> np.uint64:
    """Where the stream of a number begins: each stream of each episode has its own."""
    return mix(streams.key ^ mix((number + _ONE) * _EPISODE_STRIDE))


@kernel
def begin_episode(streams: Any) -> None:
    """Move on to the next episode: both streams start anew, whatever was played before."""
    streams.episode += 1
    number = np.uint64(streams.episode) * _TWO
    streams.spies = stream_start(streams, number)
    streams.draws = stream_start(streams, number + _ONE)


@kernel
def choice_stream(streams: Any) -> np.uint64:
    """Where a policy's own random words begin: a third stream, which no card depends on."""
    return mix(streams.key ^ mix(streams.draws + _CHOICES))


@kernel
def uniform_below(
    position: np.uint64, gamma: np.uint64, bound: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """A uniform integer in [0, bound) and the stream's new position; 1 <= bound < 2**32.

    Multiply and shift with rejection (Lemire, "Fast random integer generation in an interval",
    2019), hence exactly uniform.
    """
    position += gamma
    product = (mix(position) >> _SHIFT_32) * bound
    if (product & _LOW_32) < bound:
        threshold = _RANGE_32 % bound
        while (product & _LOW_32) < threshold:
            position += gamma
            product = (mix(position) >> _SHIFT_32) * bound
    return product >> _SHIFT_32, position


@kernel
def pick_bit(bits: np.uint64, index: np.uint64) -> np.uint64:
    """The set bit of ``bits`` that has ``index`` set bits below it, as a mask."""
    return deposit_bits(_ONE << index, bits)


@kernel
def pick_uniform(
    bits: np.uint64, position: np.uint64, gamma: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """One set bit of a non-zero ``bits``, chosen uniformly, and the stream's new position."""
    index, position = uniform_below(position, gamma, popcount(bits))
    return pick_bit(bits, index), position
