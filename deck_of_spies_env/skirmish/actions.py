"""The actions of a seat: a rank to commit, ``A 2 ... K *``, or *wait* where there is no decision.

Suits do not matter, so an action names a rank, 0 for the Ace to 13 for the Joker; which of several
cards of that rank is taken is left to chance. *Wait*, 14, is the only action of a seat that has no
decision, and legal nowhere else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deck_of_spies_env.compiled import kernel, store_8_flags
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.cards import NUM_RANKS, RANKS, rank_of

WAIT = NUM_RANKS
WAIT_TEXT = "wait"
NUM_ACTIONS = NUM_RANKS + 1

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_WAIT_BIT = np.uint64(1 << WAIT)


def decode(action: int) -> str:
    """The action's text: a rank, or ``wait``.

    Raises:
        ValueError: the action is no whole number in 0-14.
    """
    whole = isinstance(action, int | np.integer) and not isinstance(action, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not whole or not 0 <= action < NUM_ACTIONS:
        raise ValueError(f"action must be a whole number in 0-{NUM_ACTIONS - 1}, got {action!r}")
    return WAIT_TEXT if action == WAIT else RANKS[action]


def encode(text: str) -> int:
    """The action of a rank (``A``, ``10``, ``*``) or of ``wait``.

    Raises:
        ValueError: neither; the message names it.
    """
    if isinstance(text, str) and text.strip().lower() == WAIT_TEXT:  # pyright: ignore[reportUnnecessaryIsInstance]
        return WAIT
    return rank_of(text)


@kernel
def legal_actions(state: Any, seat: int) -> np.uint64:
    """The legal actions of a seat as bits; none once the game is over."""
    if state.phase == game.OVER:
        return _ZERO
    if game.decides(state, seat):
        return game.ranks_of(state.hand[seat])
    return _WAIT_BIT


@kernel
def is_legal(state: Any, seat: int, action: np.int64) -> bool:
    """Whether a seat may take an action, which may be any integer."""
    # Bit by bit, without branches: at every step all seats of all tables pass here.
    held = game.of_rank(state.hand[seat], action & 15) != _ZERO  # none of a rank past the Joker
    fits = held if game.decides(state, seat) else action == WAIT
    return (0 <= action < NUM_ACTIONS) & (state.phase != game.OVER) & fits


@kernel
def write_action_mask(state: Any, seat: int, mask: Any) -> None:
    """Write the legal actions of a seat as contiguous int8 (15,)."""
    legal = legal_actions(state, seat)
    store_8_flags(mask, 0, legal)
    store_8_flags(mask, NUM_ACTIONS - 8, legal >> np.uint64(NUM_ACTIONS - 8))  # one entry twice


def why_illegal(state: Any, seat: int, action: int) -> str:
    """One sentence on why a seat may not take an action.

    Args:
        state: record of dtype STATE.
        seat: who would act.
        action: an illegal one, any integer.
    """
    if state["phase"] == game.OVER:
        return f"action {action} is illegal: the game is over, reset first"
    if not 0 <= action < NUM_ACTIONS:
        return f"action {action} is not in 0-{NUM_ACTIONS - 1}"
    hand = int(state["hand"][seat])
    fights = state["phase"] == game.SKIRMISH or int(state["participants"]) >> seat & 1
    if not fights or not hand:
        why = "it has no card to commit" if fights else "it takes no part in the War"
        return f"action {action} ({decode(action)}) is illegal: {why}, so it must wait ({WAIT})"
    held = ", ".join(RANKS[rank] for rank in range(NUM_RANKS) if hand >> (4 * rank) & 0b1111)
    if action == WAIT:
        return f"action {WAIT} (wait) is illegal: it must commit one of {held}"
    return f"action {action} is illegal: no {decode(action)} in hand, there are {held}"
