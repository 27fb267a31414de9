"""Compiled policies: plain rules of play as kernels over state records."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import compiling, entry_point, kernel, popcount
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import action_table

_ONE = np.uint64(1)
_ACES = np.uint64(cards.ACES)
_MORE_THAN_ANY_TOTAL = 1 << 8
_MORE_THAN_ANY_CARDS = 1 << 12
_HIGHEST_RETIRED = np.uint64(10)
"""Greedy play retires pairs up to the 10s: every pair that is not of Key Spies, and no Aces."""


@kernel
def _cheapest(
    values: np.uint64, num_aces: np.uint64, mask: Any, first: int, count: int, keep_aces: bool
) -> int:
    """The legal play that spends the fewest Aces, then cards, then points; -1 if there is none.

    Among equals the last one is taken, which leaves the lower slots, so the weaker cards, unused.
    """
    aces = (_ONE << num_aces) - _ONE  # Aces lie in the first slots
    best = -1
    best_price = np.int64(0)
    for subset in range(1, count + 1):
        if mask[first + subset - 1]:
            slots = np.uint64(subset)
            price = np.int64(game.subset_total(values, slots))
            price += _MORE_THAN_ANY_TOTAL * np.int64(popcount(slots))
            if keep_aces:
                price += _MORE_THAN_ANY_CARDS * np.int64(popcount(slots & aces))
            if best < 0 or price <= best_price:
                best, best_price = first + subset - 1, price
    return best


@kernel
def _largest_low_retire(values: np.uint64, mask: Any, first: int, retire_subsets: Any) -> int:
    """The legal retirement of most cards among the low ranks but Aces, or -1."""
    best = -1
    best_count = np.int64(0)
    for offset in range(retire_subsets.shape[0]):
        if mask[first + offset]:
            subset = retire_subsets[offset].subset
            value = game.lowest_value(values, subset)
            count = np.int64(popcount(subset))
            if _ONE < value <= _HIGHEST_RETIRED and count > best_count:
                best, best_count = first + offset, count
    return best


@kernel
def greedy_action(state: Any, mask: Any, num_subsets: int, retire_subsets: Any) -> int:
    """Greedy play: recruit if possible, as cheaply as possible, keep Aces, retire low pairs.

    A recruit costs, in this order, the Aces it spends, its cards and its total; a counter its cards
    and its total. Of the variants measured (docs/training.md) this one wins most.

    Args:
        state: record of dtype STATE, not over.
        mask: legal actions, shape (n,).
        num_subsets, retire_subsets: of the action table.
    """
    values = game.pack_values(state.hand)
    first_retire = 2 * num_subsets + cards.NUM_SUITS
    if state.phase == game.RETIRE:
        best = _largest_low_retire(values, mask, first_retire, retire_subsets)
        return best if best >= 0 else mask.shape[0] - 1  # else pass
    num_aces = popcount(state.hand & _ACES)
    best = _cheapest(values, num_aces, mask, num_subsets, num_subsets, True)
    if best < 0:
        best = _cheapest(values, num_aces, mask, 0, num_subsets, False)
    if best < 0:
        best = 2 * num_subsets
        while not mask[best]:  # the first Ace that is left
            best += 1
    return best


@entry_point
def _greedy_actions(
    states: Any, masks: Any, num_subsets: int, retire_subsets: Any, actions: Any
) -> None:
    for i in range(states.shape[0]):
        actions[i] = greedy_action(states[i], masks[i], num_subsets, retire_subsets)


def greedy_actions(
    states: npt.NDArray[Any], masks: npt.NDArray[np.bool_], hand_size: int
) -> npt.NDArray[np.int64]:
    """Greedy play for a batch.

    Args:
        states: shape (N,), dtype STATE, none over.
        masks: bool (N, n), legal actions.
        hand_size: of the rule set.

    Returns:
        int64 (N,).
    """
    table = action_table(hand_size)
    actions = np.zeros(len(states), dtype=np.int64)
    _compile_greedy()
    _greedy_actions(states, masks, table.num_subsets, table.retire_subsets, actions)
    return actions


@cache
def _compile_greedy() -> None:
    table = action_table(game.Rules().hand_size)
    none = np.zeros((0, table.num_actions), dtype=np.bool_)
    with compiling():
        _greedy_actions(
            np.zeros(0, dtype=game.STATE),
            none,
            table.num_subsets,
            table.retire_subsets,
            np.zeros(0, dtype=np.int64),
        )
