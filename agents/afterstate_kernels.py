"""Learning the value of afterstates, compiled: self-play, its targets, and a sparse gradient.

The network and what it reads stand in ``deck_of_spies_env.solitaire.afterstates``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deck_of_spies_env.compiled import entry_point, kernel
from deck_of_spies_env.random_streams import choice_stream, mix
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import games
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.afterstates import NUM_COUNTS, read_entries, write_play_values
from deck_of_spies_env.solitaire.chance import copy_state, write_afterstate
from deck_of_spies_env.solitaire.policies import random_action

_SHIFT_40 = np.uint64(40)


@entry_point
def list_entries(states: Any, entries: Any, starts: Any) -> int:
    """Entries of M afterstates, one list after the other.

    Args:
        states: shape (M,), dtype STATE.
        entries: int64 (M * MOST_ENTRIES,), overwritten.
        starts: int64 (M + 1,), overwritten with where each list starts.

    Returns:
        The number of entries in all.
    """
    count = 0
    for i in range(states.shape[0]):
        starts[i] = count
        count += read_entries(states[i], entries[count:])
    starts[states.shape[0]] = count
    return count


@kernel
def _unit(word: np.uint64) -> float:
    """A number in [0, 1) from 64 random bits."""
    return np.float64(word >> _SHIFT_40) / (1 << 24)


@entry_point
def self_play(
    records: Any,
    rules: Any,
    start: Any,
    network: Any,
    utility: Any,
    scratch: Any,
    exploration: float,
    afterstates: Any,
    counts: Any,
    explored: Any,
    finals: Any,
) -> None:
    """Play N games for T decisions each by the network's best plays; ended games are dealt anew.

    Args:
        records: shape (N,), dtype SNAPSHOT, none over; changed in place.
        rules, network, utility, scratch: as in value_plays.
        start: shape (1,), dtype STATE, where games begin.
        exploration: probability of a random legal action instead.
        afterstates: shape (T, N), dtype STATE, overwritten with those of the actions taken.
        counts: float32 (T, N, NUM_COUNTS), overwritten with the distributions of the best plays,
            taken or not.
        explored: bool (T, N), overwritten: where the action was a random one.
        finals: int8 (T, N), overwritten: the final count where the action ended the game, else -1.
    """
    num_steps = afterstates.shape[0]
    values = np.empty(table.pass_action(rules[0]) + 1, np.float32)
    for i in range(records.shape[0]):
        record = records[i]
        position = choice_stream(record.streams)
        for t in range(num_steps):
            action = write_play_values(record.state, rules[0], network, utility, scratch, values)
            position += record.streams.gamma
            explored[t, i] = _unit(mix(position)) < exploration
            if explored[t, i]:
                position += record.streams.gamma
                action = random_action(record.state, rules[0], scratch.legal, mix(position))
                write_afterstate(record.state, rules[0], action, afterstates[t, i])
            else:
                copy_state(scratch.states[1], afterstates[t, i])
            counts[t, i] = scratch.best_counts[:NUM_COUNTS]
            games.play_action(record, rules[0], action)
            finals[t, i] = -1
            if record.state.phase == game.OVER:
                finals[t, i] = games.final_key_spies(record.state)
                game.deal(record.state, start[0], True, record.streams, rules[0])
                position = choice_stream(record.streams)


@entry_point
def write_targets(counts: Any, explored: Any, finals: Any, decay: float, targets: Any) -> None:
    """TD(lambda) targets of all decisions but the last: what is learnt of their afterstates.

    A trace ends where the next action was a random one (Watkins, 1989), as what follows is not the
    outcome of the policy.

    Args:
        counts, explored, finals: of self_play.
        decay: lambda, 0 to 1.
        targets: float32 (T - 1, N, NUM_COUNTS), overwritten.
    """
    num_steps = targets.shape[0]
    for i in range(targets.shape[1]):
        for t in range(num_steps - 1, -1, -1):
            if finals[t, i] >= 0:
                targets[t, i] = np.float32(0)
                targets[t, i, finals[t, i]] = np.float32(1)
                continue
            cut = t + 1 == num_steps or explored[t + 1, i]
            keep = np.float32(0.0 if cut else decay)
            for k in range(NUM_COUNTS):
                value = counts[t + 1, i, k]
                if keep > 0:
                    value += keep * (targets[t + 1, i, k] - value)
                targets[t, i, k] = value


@entry_point
def add_entry_gradients(gradient: Any, entries: Any, starts: Any, first: Any) -> None:
    """Add to the gradient of ``Network.first``, given that of M first layers, float32 (M, H)."""
    for i in range(gradient.shape[0]):
        row = gradient[i]
        for place in range(starts[i], starts[i + 1]):
            target = first[entries[place]]
            for j in range(row.shape[0]):
                target[j] += row[j]
