"""What can follow a play: positions at the next decision, or the end, drawn or listed.

All plays of a position meet the same chance (common random numbers), from streams that depend on
the asker's key and on the position alone, never on the game's own.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.compiled import compiling, entry_point, kernel
from deck_of_spies_env.random_streams import begin_episode, mix
from deck_of_spies_env.solitaire.chance import num_outcomes, write_afterstate, write_outcomes
from deck_of_spies_env.solitaire.games import SNAPSHOT, play_action
from deck_of_spies_env.solitaire.observations import PACKED_WORDS, write_packed
from deck_of_spies_env.solitaire.rules import STATE, Rules

LISTED = 4
"""Futures of a play are listed if there are no more than this many times those that are drawn."""

_NUM_WORDS = len(PACKED_WORDS)


@kernel
def key_of(state: Any, key: np.uint64) -> np.uint64:
    """Where the streams of a position's futures come from: the asker's key and the position."""
    words = np.empty(_NUM_WORDS, np.uint64)
    write_packed(state, words)
    for word in words:
        key = mix(key ^ word)
    return key


@entry_point
def write_keys(states: Any, keys: Any) -> None:
    """Turn the asker's keys, uint64 (N,), into those of the positions, in place: see key_of."""
    for i in range(states.shape[0]):
        keys[i] = key_of(states[i], keys[i])


@entry_point
def sample_futures(
    states: Any,
    keys: Any,
    rows: Any,
    actions: Any,
    rules: Any,
    first: int,
    records: Any,
    futures: Any,
) -> None:
    """Take each of P plays K times, with other chance each time, up to the next decision.

    Number k meets the same chance whatever the play of a position: common random numbers.

    Args:
        states: shape (N,), dtype STATE, none over.
        keys: uint64 (N,), of write_keys.
        rows, actions: int64 (P,), the position of each play, and a legal action of it.
        rules: shape (1,), dtype RULES.
        first: number of the first future.
        records: shape (1,), dtype SNAPSHOT, with the asker's streams; the rest is overwritten.
        futures: shape (P, K), dtype STATE, overwritten; some of them may be over.
    """
    record = records[0]
    for play in range(rows.shape[0]):
        row = rows[play]
        for k in range(futures.shape[1]):
            record.state = states[row]
            record.streams.key = keys[row]
            record.streams.episode = first + k - 1
            begin_episode(record.streams)
            play_action(record, rules[0], actions[play])
            futures[play, k] = record.state


@entry_point
def count_futures(states: Any, rows: Any, actions: Any, rules: Any, work: Any, counts: Any) -> None:
    """Write how many different futures each play has, int64 (P,), all of them as likely.

    Args:
        states, rows, actions, rules: as in sample_futures.
        work: shape (2,), dtype STATE, overwritten.
        counts: overwritten.
    """
    for play in range(rows.shape[0]):
        kind = write_afterstate(states[rows[play]], rules[0], actions[play], work[0])
        counts[play] = num_outcomes(work[0], kind, rules[0], work[1])


@entry_point
def list_futures(
    states: Any,
    rows: Any,
    actions: Any,
    rules: Any,
    counts: Any,
    records: Any,
    work: Any,
    futures: Any,
) -> None:
    """Write all futures of each play, one play after the other.

    Args:
        states, rows, actions, rules, work: as in count_futures.
        counts: int64 (P,), of count_futures.
        records: as in sample_futures; nothing is drawn from its streams.
        futures: shape (the sum of counts,), dtype STATE, overwritten.
    """
    place = 0
    for play in range(rows.shape[0]):
        kind = write_afterstate(states[rows[play]], rules[0], actions[play], work[0])
        some = futures[place : place + counts[play]]
        write_outcomes(work[0], kind, rules[0], records[0].streams, work[1], some)
        place += counts[play]


@cache
def compile_futures() -> None:
    """Compile or load these entry points once, safe among processes."""
    rules, states, record = Rules().record, np.zeros(0, STATE), np.zeros(1, SNAPSHOT)
    keys, rows = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    with compiling():
        write_keys(states, keys)
        sample_futures(states, keys, rows, rows, rules, 0, record, np.zeros((0, 1), STATE))
        count_futures(states, rows, rows, rules, np.zeros(2, STATE), rows)
        list_futures(states, rows, rows, rules, rows, record, np.zeros(2, STATE), states)


class Futures(NamedTuple):
    """What can follow each of P plays.

    Attributes:
        states: shape (the sum of counts,), dtype STATE, one play after the other.
        counts: int64 (P,), how many are given, at least 1.
        listed: bool (P,): they are all there are, all as likely; else they are drawn.
    """

    states: npt.NDArray[Any]
    counts: npt.NDArray[np.int64]
    listed: npt.NDArray[np.bool_]

    def means(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Mean of each play's values, float64 (P, ...) of those of all futures, (M, ...)."""
        counts = self.counts.reshape(-1, *[1] * (values.ndim - 1))
        return np.add.reduceat(values, np.cumsum(self.counts) - self.counts) / counts


def look_ahead(
    states: npt.NDArray[Any],
    rows: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint64],
    streams: npt.NDArray[Any],
    samples: int,
    rules: Rules,
) -> Futures:
    """What can follow some plays: all of it where it is little, else a sample.

    Args:
        states: shape (N,), dtype STATE, none over.
        rows, actions: int64 (P,), at least one: the position of each play, and a legal action of
            it.
        keys: uint64 (N,), the asker's for each position; where key and position are equal, so is
            the chance that is met.
        streams: shape (1,), dtype STREAMS, the asker's.
        samples: how many are drawn, at least 1; up to LISTED times as many are listed.
        rules: the rule set.
    """
    compile_futures()
    record, work = np.zeros(1, SNAPSHOT), np.zeros(2, STATE)
    record["streams"] = streams
    counts = np.zeros(len(rows), np.int64)
    count_futures(states, rows, actions, rules.record, work, counts)
    listed = counts <= LISTED * samples
    counts[~listed] = samples
    futures = np.empty(counts.sum(), STATE)
    of_listed = np.repeat(listed, counts)
    some = np.empty(counts[listed].sum(), STATE)
    list_futures(
        *(states, rows[listed], actions[listed], rules.record),
        *(counts[listed], record, work, some),
    )
    futures[of_listed] = some
    keys = keys.copy()
    write_keys(states, keys)
    drawn = np.empty((int((~listed).sum()), samples), STATE)
    sample_futures(states, keys, rows[~listed], actions[~listed], rules.record, 0, record, drawn)
    futures[~of_listed] = drawn.reshape(-1)
    return Futures(futures, counts, listed)
