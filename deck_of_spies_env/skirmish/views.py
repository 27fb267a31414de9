"""What a seat may know (S11), and the deals that agree with it.

A *view* of a seat is a game of dtype STATE in which nothing is left of what that seat can't know:
the cards that lie hidden from it are sorted into their piles in the order of their indices, pool by
pool. So views are equal exactly if the seat knows the same. A *pool* is a set of hidden cards that
can be told apart by nothing: those dealt at the start and not yet revealed, whoever holds them, and
for each owner those of the last batch recycled and of the one before (older ones are in hand for
certain, see ``rules.py``). A *redeal* shuffles each pool over the same places, which is a uniform
draw from the deals consistent with the view.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deck_of_spies_env.compiled import deposit_bits, entry_point, kernel, popcount
from deck_of_spies_env.random_streams import pick_uniform

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@kernel
def hidden_of(state: Any, seat: int, owner: int) -> np.uint64:
    """A seat's cards that another seat can't see, or that it can't see itself."""
    hand = _ZERO if owner == seat else state.hand[owner]
    return hand | state.supply[owner] | state.stakes[owner]


@kernel
def _some(pool: np.uint64, count: np.uint64, streams: Any) -> np.uint64:
    """So many cards of a pool: the lowest, or with streams any."""
    if streams is None:
        return deposit_bits((_ONE << count) - _ONE, pool)
    chosen, position = _ZERO, streams.deal
    for _ in range(count):
        card, position = pick_uniform(pool, position, streams.gamma)
        pool ^= card
        chosen |= card
    streams.deal = position
    return chosen


@kernel
def _exchange(
    pile: np.uint64, pool: np.uint64, left: np.uint64, streams: Any
) -> tuple[np.uint64, np.uint64]:
    """A pile with other cards of a pool in place of its own, and what is left of the pool."""
    own = pile & pool
    chosen = _some(left, popcount(own), streams)
    return pile ^ own ^ chosen, left ^ chosen


@kernel
def _reassign_of(
    state: Any, seat: int, owner: int, pool: np.uint64, left: np.uint64, streams: Any
) -> np.uint64:
    """Hand the cards of a pool out anew to one owner's places; what is left of them."""
    if owner != seat:
        pile, left = _exchange(state.hand[owner], pool, left, streams)
        state.hand[owner] = pile
    pile, left = _exchange(state.stakes[owner], pool, left, streams)
    state.stakes[owner] = pile
    pile, left = _exchange(state.supply[owner], pool, left, streams)
    state.supply[owner] = pile
    return left


@kernel
def unseen_of(dealt: Any, hand: Any) -> Any:
    """The cards dealt at the start that a hand's owner has not seen, whoever holds them.

    Args:
        dealt: the hidden cards that were dealt, a mask or Lanes.
        hand: of the owner, or of all seats, likewise.
    """
    return dealt & ~hand


@kernel
def reassign(state: Any, rules: Any, seat: int, streams: Any) -> None:
    """Hand out the cards of every pool of a seat anew: sorted, or with streams at random.

    Args:
        state: record of dtype STATE, changed in place.
        rules: record of dtype RULES.
        seat: who looks.
        streams: record of dtype STREAMS, whose position ``deal`` moves on, or None.
    """
    pool = left = unseen_of(state.dealt, state.hand[seat])
    for owner in range(rules.num_players):
        left = _reassign_of(state, seat, owner, pool, left, streams)
    state.burned = left
    for owner in range(rules.num_players):
        hidden = hidden_of(state, seat, owner)
        for pool in (state.latest[owner] & hidden, state.previous[owner] & hidden):
            _reassign_of(state, seat, owner, pool, pool, streams)


@entry_point
def write_views(states: Any, rules: Any, seats: Any) -> None:
    """Turn states, shape (N,), into the views of seats, int64 (N,), in place."""
    for i in range(states.shape[0]):
        reassign(states[i], rules[0], seats[i], None)


@entry_point
def redeal_views(states: Any, rules: Any, seats: Any, streams: Any) -> None:
    """Turn views of seats, or states, into redeals in place.

    Args:
        states: shape (N,), dtype STATE.
        rules: shape (1,), dtype RULES.
        seats: int64 (N,).
        streams: shape (1,), dtype STREAMS, moved on.
    """
    for i in range(states.shape[0]):
        reassign(states[i], rules[0], seats[i], streams[0])
