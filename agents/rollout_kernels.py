"""The playouts behind the ``rollout`` agent: all those of a batch of positions in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from deck_of_spies_env.compiled import entry_point, kernel
from deck_of_spies_env.random_streams import begin_episode
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.futures import key_of
from deck_of_spies_env.solitaire.games import SNAPSHOT, judge_games, play_action
from deck_of_spies_env.solitaire.rollouts import play_out_greedily

WIN_BONUS = 3
"""What a won playout is worth beside its Key Spies, each of which is worth 1."""

_AT_ONCE = 64
"""Playouts side by side: few, so that they stay in the processor's first cache."""

_ONE = np.uint64(1)


@kernel
def _score(
    position: Any, rules: Any, legal: Any, action: int, first: int, playouts: Any
) -> tuple[int, int]:
    """Score and Key Spies of an action, summed over some playouts.

    Args:
        position: record of dtype SNAPSHOT.
        rules: shape (1,), dtype RULES.
        legal: uint64 (num_words,), overwritten.
        action: a legal one.
        first: the number of the first playout. Number k is episode k of the position's streams,
            whatever the action, so that all actions meet the same chance.
        playouts: shape (P,), dtype SNAPSHOT, overwritten.
    """
    count = playouts.shape[0]
    for i in range(count):
        playouts[i] = position
        playouts[i].streams.episode = first + i - 1
        begin_episode(playouts[i].streams)
        play_action(playouts[i], rules[0], action)
    numbers = np.empty((3, count), np.int64)
    outcomes = np.empty(count, np.int8)
    play_out_greedily(playouts, rules, legal, numbers[0], 0, count)
    judge_games(playouts, outcomes, numbers[1], numbers[2])
    key_spies = numbers[1].sum()
    return WIN_BONUS * (outcomes == game.WIN).sum() + key_spies, key_spies


@entry_point
def choose_by_playouts(positions: Any, rules: Any, legal: Any, budget: int, actions: Any) -> None:
    """Choose the action of the highest mean score, the lowest one among equals.

    Args:
        positions: shape (N,), dtype SNAPSHOT, none over. Their streams are the agent's, the same
            for all; overwritten.
        rules: shape (1,), dtype RULES.
        legal: uint64 (2, num_words), overwritten.
        budget: playouts of each action, at least 1.
        actions: int64 (N,), overwritten.
    """
    playouts = np.empty(min(budget, _AT_ONCE), SNAPSHOT)
    for i in range(positions.shape[0]):
        state, streams = positions[i].state, positions[i].streams
        table.write_legal_bits(state, rules[0], legal[0])
        actions[i] = table.nth_legal(legal[0], np.uint64(0))
        if table.num_legal(legal[0]) <= _ONE:
            continue
        streams.key = key_of(state, streams.key)
        best_score = best_key_spies = -1
        for number in range(table.num_legal(legal[0])):
            action = table.nth_legal(legal[0], np.uint64(number))
            score = key_spies = 0
            for first in range(0, budget, _AT_ONCE):
                some = playouts[: min(budget - first, _AT_ONCE)]
                more = _score(positions[i], rules, legal[1], action, first, some)
                score += more[0]
                key_spies += more[1]
            if score > best_score or (score == best_score and key_spies > best_key_spies):
                actions[i], best_score, best_key_spies = action, score, key_spies
