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
_MORE_THAN_ANY_TOTAL = 1 << 8
_MORE_THAN_ANY_CARDS = 1 << 12
_HIGHEST_RETIRED = np.uint64(10)
"""Greedy play retires pairs up to the 10s: every pair that is not of Key Spies, and no Aces."""


@kernel
def random_action(state: Any, rules: Any, legal: Any, word: np.uint64) -> int:
    """Uniform over the legal actions, but for a bias below 2^-25 (32 random bits are scaled)."""
    return table.nth_legal(legal, ((word >> _SHIFT_32) * table.num_legal(legal)) >> _SHIFT_32)


@kernel
def _cheapest(
    values: np.uint64, num_aces: np.uint64, legal: Any, first: int, count: int, keep_aces: bool
) -> int:
    """The legal play that spends the fewest Aces, then cards, then points; -1 if there is none.

    Among equals the last one is taken, which leaves the lower slots, so the weaker cards, unused.
    """
    aces = (_ONE << num_aces) - _ONE  # Aces lie in the first slots
    best = -1
    best_price = np.int64(0)
    for subset in range(1, count + 1):
        if table.allows(legal, first + subset - 1):
            slots = np.uint64(subset)
            price = np.int64(game.subset_total(values, slots))
            price += _MORE_THAN_ANY_TOTAL * np.int64(popcount(slots))
            if keep_aces:
                price += _MORE_THAN_ANY_CARDS * np.int64(popcount(slots & aces))
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
    """Greedy play: recruit if possible, as cheaply as possible, keep Aces, retire low pairs.

    A recruit costs, in this order, the Aces it spends, its cards and its total; a counter its cards
    and its total. Of the variants measured (docs/training.md) this one wins most. Nothing is left
    to chance.
    """
    values = game.pack_values(state.hand)
    if state.phase == game.RETIRE:
        best = _largest_low_retire(values, legal, rules)
        return best if best >= 0 else table.pass_action(rules)
    num_aces = popcount(state.hand & _ACES)
    num_subsets = table.num_subsets_of(rules)
    best = _cheapest(values, num_aces, legal, num_subsets, num_subsets, True)
    if best < 0:
        best = _cheapest(values, num_aces, legal, 0, num_subsets, False)
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
