"""The tree search behind ``smmcts``: all iterations of a batch of decisions in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.skirmish.judgement import (
    begin_streams,
    hash_of,
    highest_rank,
    judge,
    unit,
)
from deck_of_spies_env.compiled import entry_point, kernel, lowest_bit_index, popcount
from deck_of_spies_env.random_streams import pick_bit, pick_uniform
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.observations import read_observation, write_observation
from deck_of_spies_env.skirmish.rules import HAND_SIZE, STATE, STREAMS
from deck_of_spies_env.skirmish.views import reassign

NODE = np.dtype(
    [
        ("key", np.uint64),  # hash of what the seat may know
        ("owner", np.int64),  # number of the decision, from 1 on, that made the node; 0 for nobody
        ("regret", np.float64, (HAND_SIZE,)),  # by the place of a rank among those in hand
        ("average", np.float64, (HAND_SIZE,)),  # sum of the strategies played
        ("value", np.float64, (HAND_SIZE,)),  # mean payoff of each rank
        ("count", np.int64, (HAND_SIZE,)),  # times that each rank was tried
    ]
)
"""What a seat has learned where it knows the same: a node of its tree."""

STEP = np.dtype(
    [
        ("node", np.int64),
        ("seat", np.int64),
        ("slot", np.int64),  # the place of the rank tried
        ("size", np.int64),  # how many ranks there were
        ("chance", np.float64),  # with which it was tried
    ]
)
"""A choice on the way down the trees."""

SEARCH = np.dtype(
    [
        ("budget", np.int64),
        ("explore", np.float64),
        ("cut", np.int64),
        ("plus", np.bool_),
    ],
    align=True,
)
"""Settings: see SMMCTSAgent."""

MOST_STEPS = 256
"""Choices on the way down that are remembered; beyond them an iteration plays out."""

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_RANK_SHIFT = np.uint64(2)


@kernel
def _find(nodes: Any, key: np.uint64, owner: int) -> tuple[int, bool]:
    """The place of a node and whether it has been made just now; nodes of others are free."""
    last = nodes.shape[0] - 1
    place = np.int64(key & np.uint64(last))
    while nodes[place].owner == owner:
        if nodes[place].key == key:
            return int(place), False
        place = (place + 1) & last
    node = nodes[place]
    node.key, node.owner = key, owner
    for slot in range(HAND_SIZE):
        node.regret[slot] = node.average[slot] = node.value[slot] = 0.0
        node.count[slot] = 0
    return int(place), True


@kernel
def _share(node: Any, slot: int, size: int) -> float:
    """The chance of a choice by regret matching: its positive regret, or even if there is none."""
    total = 0.0
    for other in range(size):
        total += max(node.regret[other], 0.0)
    return max(node.regret[slot], 0.0) / total if total > 0.0 else 1.0 / size


@kernel
def _try(node: Any, step: Any, explore: float, number: float) -> None:
    """Choose by regret matching with exploration, and add to the average strategy.

    Args:
        node: record of dtype NODE.
        step: record of dtype STEP with its ``size``; ``slot`` and ``chance`` are written.
        explore: share of uniform choice.
        number: in [0, 1).
    """
    step.slot = -1
    for slot in range(step.size):
        share = _share(node, slot, step.size)
        node.average[slot] += share
        chance = explore / step.size + (1.0 - explore) * share
        if step.slot < 0 and (number < chance or slot == step.size - 1):
            step.slot, step.chance = slot, chance
        number -= chance


@kernel
def _learn(node: Any, step: Any, payoff: float, plus: bool) -> None:
    """Update regrets by an importance-weighted payoff, and the mean payoffs.

    What a choice would have paid is guessed by its mean so far; the guess of the one that was tried
    is corrected, in proportion to how seldom it is tried, so that guesses are unbiased.
    """
    tried = step.slot
    correction = (payoff - node.value[tried]) / step.chance
    expected = correction * _share(node, tried, step.size)
    for slot in range(step.size):
        expected += node.value[slot] * _share(node, slot, step.size)
    for slot in range(step.size):
        node.regret[slot] += node.value[slot] - expected
    node.regret[tried] += correction
    if plus:
        for slot in range(step.size):
            node.regret[slot] = max(node.regret[slot], 0.0)
    node.count[tried] += 1
    node.value[tried] += (payoff - node.value[tried]) / node.count[tried]


@kernel
def _playout_rank(state: Any, streams: Any, seat: int) -> int:
    """A rank for a playout: any card of the hand; in a War, the highest."""
    if state.phase == game.WAR:
        return highest_rank(state.hand[seat])
    card, position = pick_uniform(state.hand[seat], streams.picks[seat], streams.gamma)
    streams.picks[seat] = position
    return int(lowest_bit_index(card) >> _RANK_SHIFT)


@kernel
def _choose(
    state: Any,
    streams: Any,
    seat: int,
    rules: Any,
    search: Any,
    nodes: Any,
    owner: int,
    step: Any,
    row: Any,
) -> tuple[int, bool]:
    """Try a rank in the node of a seat that has several; the rank, and whether the node is new.

    Args:
        state, streams, rules, search, nodes, owner, row: as in _iterate.
        seat: who chooses.
        step: record of dtype STEP, overwritten.
    """
    write_observation(state, rules, seat, row)
    place, is_new = _find(nodes, hash_of(row, np.uint64(seat)), owner)
    held = game.ranks_of(state.hand[seat])
    step.node, step.seat, step.size = place, seat, np.int64(popcount(held))
    streams.key += streams.gamma
    _try(nodes[place], step, search.explore, unit(streams.key))
    return int(lowest_bit_index(pick_bit(held, np.uint64(step.slot)))), is_new


@kernel
def _iterate(
    state: Any,
    streams: Any,
    rules: Any,
    search: Any,
    worths: Any,
    nodes: Any,
    owner: int,
    steps: Any,
    row: Any,
    payoffs: Any,
    ranks: Any,
) -> None:
    """One walk down the trees and a playout, from which all seats on the way learn.

    Args:
        state: record of dtype STATE, a redeal; overwritten.
        streams: record of dtype STREAMS, moved on; ``key`` is the position of the choices.
        rules: record of dtype RULES.
        search: record of dtype SEARCH.
        worths: float64 (14,).
        nodes: of dtype NODE, a power of two of them, at most half of them taken.
        owner: number of the decision.
        steps: (MOST_STEPS,), dtype STEP, overwritten.
        row: int8 (d,), overwritten.
        payoffs: float64 (n,), overwritten.
        ranks: int64 (4,), overwritten.
    """
    num_steps, last_round, walking = 0, np.int64(0), True
    while state.phase != game.OVER:
        if not walking and state.rounds >= last_round and state.phase == game.SKIRMISH:
            break
        stops = num_steps + 2 * rules.num_players > MOST_STEPS
        for seat in range(rules.num_players):
            if not game.decides(state, seat):
                continue
            held = game.ranks_of(state.hand[seat])
            if held & (held - _ONE) == _ZERO:  # no choice
                ranks[seat] = np.int64(lowest_bit_index(held))
            elif walking:
                ranks[seat], is_new = _choose(
                    state, streams, seat, rules, search, nodes, owner, steps[num_steps], row
                )
                num_steps += 1
                stops = stops or is_new
            else:
                ranks[seat] = _playout_rank(state, streams, seat)
        if walking and stops:
            walking, last_round = False, np.int64(state.rounds) + 1 + search.cut
        game.play(state, streams, rules, ranks)
    judge(state, rules, worths, payoffs)
    for number in range(num_steps):
        step = steps[number]
        _learn(nodes[step.node], step, payoffs[step.seat], search.plus)


@entry_point
def search_trees(
    rows: Any,
    rules: Any,
    worths: Any,
    planner: Any,
    search: Any,
    deals: Any,
    nodes: Any,
    strategies: Any,
    numbers: Any,
) -> None:
    """Write the average strategies of N observations' roots.

    Args:
        rows: int8 (N, d), of seats that have a choice.
        rules: shape (1,), dtype RULES.
        worths: float64 (14,).
        planner: shape (1,), dtype STREAMS, the agent's.
        search: shape (1,), dtype SEARCH.
        deals: shape (D,), dtype STATE, overwritten: the redeals, which the iterations take in turn.
        nodes: dtype NODE, a power of two and more than twice those that may be made; all without
            owners, overwritten.
        strategies: float64 (N, 15), overwritten.
        numbers: float64 (N,), overwritten: in [0, 1), to draw the move by.
    """
    work, streams = np.empty(1, STATE), np.empty(1, STREAMS)
    steps, row = np.empty(MOST_STEPS, STEP), np.empty(rows.shape[1], np.int8)
    payoffs = np.zeros(rules[0].num_players)
    ranks = np.zeros(game.MAX_PLAYERS, np.int64)
    for i in range(rows.shape[0]):
        streams[0] = planner[0]
        numbers[i] = begin_streams(streams[0], rows[i])
        read_observation(rows[i], rules[0], work[0])
        held = game.ranks_of(work[0].hand[0])
        write_observation(work[0], rules[0], 0, row)
        root = hash_of(row, _ZERO)
        for number in range(deals.shape[0]):
            deals[number] = work[0]
            reassign(deals[number], rules[0], 0, streams[0])
        for iteration in range(search[0].budget):
            work[0] = deals[iteration % deals.shape[0]]
            _iterate(
                work[0],
                streams[0],
                rules[0],
                search[0],
                worths,
                nodes,
                i + 1,
                steps,
                row,
                payoffs,
                ranks,
            )
        _write_strategy(nodes[_find(nodes, root, i + 1)[0]], held, strategies[i])


@kernel
def _write_strategy(node: Any, held: np.uint64, strategy: Any) -> None:
    """Write the average strategy of a node, float64 (15,), over the ranks of a hand."""
    strategy[:] = 0.0
    size = np.int64(popcount(held))
    total = 0.0
    for slot in range(size):
        total += node.average[slot]
    for slot in range(size):
        rank = np.int64(lowest_bit_index(pick_bit(held, np.uint64(slot))))
        strategy[rank] = node.average[slot] / total
