"""The futures behind the ``search`` agent: what follows plays of a batch of positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.chance_kernels import num_outcomes, write_afterstate, write_outcomes
from agents.rollout_kernels import key_of
from deck_of_spies_env.compiled import entry_point
from deck_of_spies_env.random_streams import begin_episode
from deck_of_spies_env.solitaire.games import play_action


@entry_point
def write_keys(states: Any, key: np.uint64, keys: Any) -> None:
    """Write where the streams of each position's futures come from, uint64 (N,)."""
    for i in range(states.shape[0]):
        keys[i] = key_of(states[i], key)


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
        records: shape (1,), dtype SNAPSHOT, with the agent's streams; the rest is overwritten.
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
