"""The matrix game behind the ``matrix`` planner: rounds of sampled deals, played by the rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.skirmish.judgement import begin_streams, highest_rank, judge
from deck_of_spies_env.compiled import entry_point, kernel, lowest_bit_index, popcount
from deck_of_spies_env.random_streams import pick_bit
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.observations import read_observation
from deck_of_spies_env.skirmish.rules import HAND_SIZE, MAX_PLAYERS, STATE, STREAMS
from deck_of_spies_env.skirmish.views import reassign

_ONE = np.uint64(1)


@kernel
def _list_choices(state: Any, rules: Any, ranks: Any, chances: Any, counts: Any) -> None:
    """Write the ranks of each seat's hand, and how likely each is if any card is committed.

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        ranks: int64 (n, 3), overwritten.
        chances: float64 (n, 3), overwritten.
        counts: int64 (n,), overwritten: the number of ranks. A seat without a decision has one
            choice, which is not looked at.
    """
    for seat in range(rules.num_players):
        ranks[seat, 0], chances[seat, 0], counts[seat] = 0, 1.0, 1
        if not game.decides(state, seat):
            continue
        hand = state.hand[seat]
        held = game.ranks_of(hand)
        counts[seat] = np.int64(popcount(held))
        for slot in range(counts[seat]):
            rank = np.int64(lowest_bit_index(pick_bit(held, np.uint64(slot))))
            ranks[seat, slot] = rank
            same = np.float64(popcount(game.of_rank(hand, rank)))
            chances[seat, slot] = same / np.float64(popcount(hand))


@kernel
def _play_round(state: Any, streams: Any, rules: Any, ranks: Any) -> bool:
    """Play to the end of the round, the highest cards in a War that it brings; whether it did.

    Args:
        state, streams, rules: as in game.play.
        ranks: int64 (4,), as in game.play; not changed.
    """
    game.play(state, streams, rules, ranks)
    if state.phase != game.WAR:
        return False
    highest = np.empty(MAX_PLAYERS, np.int64)
    for seat in range(rules.num_players):
        highest[seat] = highest_rank(state.hand[seat])
    game.play(state, streams, rules, highest)
    return True


@kernel
def _expect(
    deal: Any, work: Any, streams: Any, rules: Any, worths: Any, wars: int, ranks: Any, payoffs: Any
) -> float:
    """The observer's payoff to be expected after a round in which seats commit given ranks.

    Args:
        deal: record of dtype STATE.
        work: shape (1,), dtype STATE, overwritten.
        streams: shape (2,), dtype STREAMS, of which the second is overwritten by the first, so that
            all choices in a deal meet the same chance.
        rules: record of dtype RULES.
        worths: float64 (14,).
        wars: how often the round is played if it brings a War, at least 1.
        ranks: int64 (4,), as in game.play.
        payoffs: float64 (n,), overwritten.
    """
    streams[1] = streams[0]
    total, played, repeats = 0.0, 0, 1
    while played < repeats:
        work[0] = deal
        if _play_round(work[0], streams[1], rules, ranks):
            repeats = wars
        judge(work[0], rules, worths, payoffs)
        total += payoffs[0]
        played += 1
    return total / repeats


@kernel
def _fill(
    deal: Any,
    work: Any,
    streams: Any,
    rules: Any,
    worths: Any,
    wars: int,
    choices: Any,
    chances: Any,
    counts: Any,
    payoffs: Any,
    gains: Any,
) -> None:
    """Write the matrices of one deal, one against each opponent.

    Args:
        deal, work, streams, rules, worths, wars, payoffs: as in _expect.
        choices, chances, counts: as written by _list_choices.
        gains: float64 (n - 1, 3, 3), overwritten.
    """
    num_players = rules.num_players
    gains[:] = 0.0
    joint = 1
    for seat in range(num_players):
        joint *= counts[seat]
    ranks = np.empty(MAX_PLAYERS, np.int64)
    slots = np.empty(MAX_PLAYERS, np.int64)
    for number in range(joint):
        rest, chance = number, 1.0
        for seat in range(num_players):
            slots[seat] = rest % counts[seat]
            rest //= counts[seat]
            ranks[seat] = choices[seat, slots[seat]]
            if seat > 0:
                chance *= chances[seat, slots[seat]]
        gain = _expect(deal, work, streams, rules, worths, wars, ranks, payoffs)
        for seat in range(1, num_players):  # the others' chances: this one answers as it likes
            alone = chance / chances[seat, slots[seat]]
            gains[seat - 1, slots[0], slots[seat]] += alone * gain


@kernel
def _leave_out_idle(state: Any, rules: Any, counts: Any) -> None:
    """Set the counts of opponents without a decision to 0, if another has one."""
    deciding = 0
    for seat in range(1, rules.num_players):
        deciding += game.decides(state, seat)
    if deciding > 0:
        for seat in range(1, rules.num_players):
            if not game.decides(state, seat):
                counts[seat] = 0


@entry_point
def write_games(
    rows: Any,
    rules: Any,
    worths: Any,
    planner: Any,
    wars: int,
    gains: Any,
    counts: Any,
    numbers: Any,
) -> None:
    """Write the matrix games of N observations.

    Args:
        rows: int8 (N, d).
        rules: shape (1,), dtype RULES.
        worths: float64 (14,).
        planner: shape (1,), dtype STREAMS, the agent's.
        wars: times that each War is played.
        gains: float64 (N, H, n - 1, 3, 3), overwritten: the observer's expected payoff in each of H
            deals and against each opponent, by the place of the observer's rank among those it
            holds and by that of the opponent's.
        counts: int64 (N, H, n), overwritten: how many ranks each seat may commit there; 0 for an
            opponent without a decision, 1 if none of them has one.
        numbers: float64 (N,), overwritten: in [0, 1), to draw the move by.
    """
    view, work, streams = np.empty(2, STATE), np.empty(1, STATE), np.empty(2, STREAMS)
    choices = np.zeros((MAX_PLAYERS, HAND_SIZE), np.int64)
    chances = np.zeros((MAX_PLAYERS, HAND_SIZE))
    payoffs = np.zeros(rules[0].num_players)
    for i in range(rows.shape[0]):
        streams[0] = planner[0]
        numbers[i] = begin_streams(streams[0], rows[i])
        read_observation(rows[i], rules[0], view[0])
        for sample in range(gains.shape[1]):
            view[1] = view[0]
            reassign(view[1], rules[0], 0, streams[0])
            for seat in range(rules[0].num_players):
                streams[0].draws[seat] += _ONE
            number = counts[i, sample]
            _list_choices(view[1], rules[0], choices, chances, number)
            _fill(
                view[1],
                work,
                streams,
                rules[0],
                worths,
                wars,
                choices,
                chances,
                number,
                payoffs,
                gains[i, sample],
            )
            _leave_out_idle(view[1], rules[0], number)
