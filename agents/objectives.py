"""What each final number of Key Spies is worth under an objective, as the engine judges it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import entry_point
from deck_of_spies_env.solitaire import games
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.afterstates import NUM_COUNTS
from deck_of_spies_env.solitaire.games import scoring_of
from deck_of_spies_env.solitaire.rules import STATE, Rules

GOES_ON = -1
"""Stands for the count of a game that is not over."""

_ONE = np.uint64(1)
_FIRST_KEY_SPY = np.uint64((cards.KEY_SPIES & -cards.KEY_SPIES).bit_length() - 1)


@entry_point
def _write_payments(states: Any, scoring: Any, rules: Any, payments: Any) -> None:
    state = states[0]
    state.spy, state.phase = game.NO_SPY, game.OVER
    for held in range(NUM_COUNTS):
        state.hand = ((_ONE << np.uint64(held)) - _ONE) << _FIRST_KEY_SPY
        won = held >= rules[0].key_spies_to_win
        state.outcome = game.WIN if won else game.LOSS
        payments[held] = games.score(state, scoring[0])


@entry_point
def write_counts(states: Any, counts: Any) -> None:
    """Write the Key Spies that count, int64 (N,), of N states that are over; else GOES_ON."""
    for i in range(states.shape[0]):
        over = states[i].phase == game.OVER
        counts[i] = games.final_key_spies(states[i]) if over else GOES_ON


def payments_of(objective: str | Mapping[str, float], rules: Rules) -> npt.NDArray[np.float64]:
    """What each final count of Key Spies pays: float64 (13,).

    A loss by D8 counts none, so it pays what a game with none pays: nothing.

    Args:
        objective: ``win``, ``keys``, ``perfect``, or weights by these names.
        rules: the rule set, for the count that wins.

    Raises:
        ValueError: another objective.
    """
    payments = np.zeros(NUM_COUNTS)
    _write_payments(np.zeros(1, STATE), scoring_of(objective, None), rules.record, payments)
    return payments


def utility_of(objective: str | Mapping[str, float], rules: Rules) -> npt.NDArray[np.float32]:
    """The same for the networks: float32 (13,)."""
    return payments_of(objective, rules).astype(np.float32)
