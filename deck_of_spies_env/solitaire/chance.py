"""Chance moves, listed instead of drawn: which spy is turned up, which cards come off the deck.

The rules are the engine's own kernels; only chance is replaced here. Each chance move is uniform
and its outcomes are all different, so no probability needs to be kept: a mean does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import deposit_bits, kernel, lowest_bit_index, popcount
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import rules as game

_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_TIER_1, _TIER_2 = np.uint64(cards.SPY_TIERS[0]), np.uint64(cards.SPY_TIERS[1])


@kernel
def copy_state(source: Any, target: Any) -> None:
    """Copy a record of dtype STATE."""
    target.hand = source.hand
    target.draw_deck = source.draw_deck
    target.draw_discard = source.draw_discard
    target.spy_deck = source.spy_deck
    target.spy_discard = source.spy_discard
    target.spy = source.spy
    target.phase = source.phase
    target.outcome = source.outcome


@kernel
def write_afterstate(state: Any, rules: Any, action: int, after: Any) -> int:
    """Write what a legal action makes of a position before any chance, and return its kind.

    Args:
        state, rules: records.
        action: index of the table.
        after: record of dtype STATE, overwritten.
    """
    copy_state(state, after)
    kind = table.action_kind(action, rules)
    game.apply_play(after, kind, table.action_cards(action, kind, state.hand, rules))
    return kind


@kernel
def spies_to_come(state: Any) -> np.uint64:
    """The spies of which one is turned up next, each as likely: the first tier that is left."""
    if state.spy_deck & _TIER_1 != _ZERO:
        return state.spy_deck & _TIER_1
    if state.spy_deck & _TIER_2 != _ZERO:
        return state.spy_deck & _TIER_2
    return state.spy_deck


@kernel
def begin_draw(state: Any, rules: Any) -> np.uint64:
    """Draw the cards that are certain (D10), and return how many more come off the Draw Deck.

    Where the Draw Deck is too small all of it is drawn and the rest comes from the reshuffled
    discard; so one uniform set from one pile is all that chance decides.
    """
    missing = np.uint64(rules.hand_size) - popcount(state.hand)
    if popcount(state.draw_deck) < missing:
        missing -= popcount(state.draw_deck)
        state.hand |= state.draw_deck
        game.reshuffle(state)
    return min(missing, popcount(state.draw_deck))


@kernel
def end_draw(state: Any, drawn: np.uint64, rules: Any) -> None:
    """Draw a set of cards off the Draw Deck and begin the turn, which may be a loss (D8)."""
    state.draw_deck ^= drawn
    state.hand |= drawn
    if rules.eager_reshuffle and state.draw_deck == _ZERO:
        game.reshuffle(state)
    game.begin_turn(state)


@kernel
def next_subset(subset: np.uint64) -> np.uint64:
    """The next larger word with as many set bits (Gosper's hack), for a non-zero word."""
    lowest = subset & (~subset + _ONE)
    ripple = subset + lowest
    return ripple | (((subset ^ ripple) >> _TWO) // lowest)


@kernel
def num_sets(size: np.uint64, number: np.uint64) -> int:
    """Binomial coefficient."""
    count = 1
    for k in range(int(number)):
        count = count * (int(size) - k) // (k + 1)
    return count


# --- From a play to the next decision ---


@kernel
def _draws(kind: int, after: Any, last_spy: bool) -> bool:
    """Whether cards are drawn before the next decision, or the end, comes."""
    to_retire = kind <= game.KIND_RECRUIT and game.has_pair(after.hand)
    return not (to_retire or last_spy)


@kernel
def num_outcomes(after: Any, kind: int, rules: Any, work: Any) -> int:
    """How many different positions chance can make of an afterstate, all of them as likely.

    Args:
        after, kind: of write_afterstate.
        rules: record of dtype RULES.
        work: record of dtype STATE, overwritten.
    """
    spies, count = _ZERO, 1
    if kind <= game.KIND_ASSASSINATE:
        spies = spies_to_come(after)
        count = max(int(popcount(spies)), 1)
    if _draws(kind, after, after.spy == game.NO_SPY and spies == _ZERO):
        copy_state(after, work)
        number = begin_draw(work, rules)
        count *= num_sets(popcount(work.draw_deck), number)
    return count


@kernel
def write_outcomes(
    after: Any, kind: int, rules: Any, streams: Any, work: Any, outcomes: Any
) -> None:
    """Write all that num_outcomes counts.

    Args:
        after, kind: of write_afterstate.
        rules: record of dtype RULES.
        streams: record of dtype STREAMS, not used up: nothing is drawn from it.
        work: record of dtype STATE, overwritten.
        outcomes: shape (num_outcomes,), dtype STATE, overwritten: next decisions, or games over.
    """
    spies = spies_to_come(after) if kind <= game.KIND_ASSASSINATE else _ZERO
    draws = _draws(kind, after, after.spy == game.NO_SPY and spies == _ZERO)
    place = 0
    while place == 0 or spies != _ZERO:
        copy_state(after, work)
        if spies != _ZERO:
            work.spy = np.int8(lowest_bit_index(spies))
            work.spy_deck ^= spies & (~spies + _ONE)
            spies &= spies - _ONE
        if draws:
            place = write_draws(work, rules, outcomes, place)
            continue
        if kind <= game.KIND_RECRUIT and game.has_pair(work.hand):
            work.phase = game.RETIRE
        else:
            game.end_turn(work, streams, rules)  # no spy is left: nothing is drawn
        copy_state(work, outcomes[place])
        place += 1


@kernel
def write_draws(work: Any, rules: Any, outcomes: Any, place: int) -> int:
    """Write what each set of drawn cards makes of a position, and return the place after them.

    Args:
        work: record of dtype STATE before the draw, overwritten.
        rules: record of dtype RULES.
        outcomes: dtype STATE, overwritten from ``place`` on.
        place: index.
    """
    number = begin_draw(work, rules)
    deck = work.draw_deck
    subset = (_ONE << number) - _ONE
    for _ in range(num_sets(popcount(deck), number)):
        copy_state(work, outcomes[place])
        end_draw(outcomes[place], deposit_bits(subset, deck), rules)
        place += 1
        if number != _ZERO:
            subset = next_subset(subset)
    return place
