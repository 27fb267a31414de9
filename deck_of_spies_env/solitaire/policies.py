"""Compiled policies: plain rules of play as kernels over state records.

A policy is a function ``(state, rules, legal, word) -> action``: the position (a record of dtype
STATE, not over), the rule set (a record of dtype RULES), the legal actions as bits (see
``actions.write_legal_bits``), and 64 random bits, fresh for each decision, for policies that play
by chance.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import compiling, entry_point, kernel, popcount
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.rules import Rules

_ONE = np.uint64(1)
_SHIFT_32 = np.uint64(32)
_ACES = np.uint64(cards.ACES)
_LOWEST_RECRUITED = np.uint64(9)
"""Greedy play recruits spies of this value and more."""
_PRICE_OF_A_CARD = 5
_PRICE_OF_AN_ACE = 1 << 12  # more than anything else that a hand can cost
_HIGHEST_RETIRED = np.uint64(10)
"""Greedy play retires pairs up to the 10s: every pair that is not of Key Spies, and no Aces."""


@kernel
def random_action(state: Any, rules: Any, legal: Any, word: np.uint64) -> int:
    """Uniform over the legal actions, but for a bias below 2^-25 (32 random bits are scaled)."""
    return table.nth_legal(legal, ((word >> _SHIFT_32) * table.num_legal(legal)) >> _SHIFT_32)


@kernel
def _cheapest(
    values: np.uint64, num_aces: np.uint64, legal: Any, first: int, count: int, ace_price: int
) -> int:
    """The legal play of the lowest price; -1 if there is none.

    Each card costs _PRICE_OF_A_CARD less its value: high cards come back from the Draw Discard, and
    low ones left in hand become pairs, which can be retired. An Ace costs ``ace_price`` less its
    value. Among equals the last play is taken, which leaves the lower slots, so the weaker cards.
    """
    aces = (_ONE << num_aces) - _ONE  # Aces lie in the first slots
    best = -1
    best_price = np.int64(0)
    for subset in range(1, count + 1):
        if table.allows(legal, first + subset - 1):
            slots = np.uint64(subset)
            price = _PRICE_OF_A_CARD * np.int64(popcount(slots & ~aces))
            price += ace_price * np.int64(popcount(slots & aces))
            price -= np.int64(game.subset_total(values, slots))
            if best < 0 or price <= best_price:
                best, best_price = first + subset - 1, price
    return best


@kernel
def _largest_low_retire(values: np.uint64, legal: Any, rules: Any) -> int:
    """The legal retirement of most cards among the low ranks but Aces, or -1."""
    best = -1
    best_count = np.int64(0)
    first = table.first_retire(rules)
    for offset in range(table.num_retires_of(rules)):
        if table.allows(legal, first + offset):
            subset = table.RETIRE_SUBSETS[offset]
            value = game.lowest_value(values, subset)
            count = np.int64(popcount(subset))
            if _ONE < value <= _HIGHEST_RETIRED and count > best_count:
                best, best_count = first + offset, count
    return best


@kernel
def greedy_action(state: Any, rules: Any, legal: Any, word: np.uint64) -> int:
    """Greedy play: recruit spies of 9 and more if possible, counter the others, retire pairs.

    A recruit is made with the fewest Aces; beyond that it takes, like a counter, the cards whose
    values total the most after 5 off for each (an Ace in a counter is free). Of the cards kept, it
    retires as many as it can of one rank from 2 to 10. Of the variants measured
    (docs/training.md) this one is among the best and the simplest. Nothing is left to chance.
    """
    values = game.pack_values(state.hand)
    if state.phase == game.RETIRE:
        best = _largest_low_retire(values, legal, rules)
        return best if best >= 0 else table.pass_action(rules)
    num_aces = popcount(state.hand & _ACES)
    num_subsets = table.num_subsets_of(rules)
    best = -1
    if game.spy_value(state) >= _LOWEST_RECRUITED:
        best = _cheapest(values, num_aces, legal, num_subsets, num_subsets, _PRICE_OF_AN_ACE)
    if best < 0:
        best = _cheapest(values, num_aces, legal, 0, num_subsets, 0)
    if best < 0:
        best = table.first_assassination(rules)
        while not table.allows(legal, best):  # the first Ace that is left
            best += 1
    return best


@entry_point
def _greedy_actions(states: Any, rules: Any, legal: Any, actions: Any) -> None:
    for i in range(states.shape[0]):
        table.write_legal_bits(states[i], rules[0], legal)
        actions[i] = greedy_action(states[i], rules[0], legal, _ONE)


def greedy_actions(states: npt.NDArray[Any], rules: Rules) -> npt.NDArray[np.int64]:
    """Greedy play for a batch.

    Args:
        states: shape (N,), dtype STATE, none over.
        rules: the rule set.

    Returns:
        int64 (N,).
    """
    actions = np.zeros(len(states), dtype=np.int64)
    _compile_greedy()
    _greedy_actions(states, rules.record, legal_words(rules), actions)
    return actions


def legal_words(rules: Rules) -> npt.NDArray[np.uint64]:
    """Room for the legal actions of one position as bits, uint64 (num_words,)."""
    return np.zeros(table.action_table(rules.hand_size).num_words, dtype=np.uint64)


@cache
def _compile_greedy() -> None:
    rules = Rules()
    with compiling():
        states, actions = np.zeros(0, dtype=game.STATE), np.zeros(0, dtype=np.int64)
        _greedy_actions(states, rules.record, legal_words(rules), actions)
