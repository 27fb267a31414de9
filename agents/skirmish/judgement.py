"""How the planners of Skirmish judge a position, and where their chance comes from.

A position at the start of a round is judged by what each seat holds, wherever it lies: the worths
of the cards are added up, and a softmax of the sums is each seat's chance to win. With that the
expected payoffs (S12) are those of a multinomial logit model. Its worths were fitted to games, see
:data:`FITTED`; with captures that never return (S8), or a small deck, points are what counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.skirmish.uniforms import hash_of, unit
from deck_of_spies_env.compiled import kernel, lowest_bit_index, popcount
from deck_of_spies_env.random_streams import seed_streams, stream_start
from deck_of_spies_env.skirmish import cards
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.rules import STREAMS, Rules

Floats = npt.NDArray[np.float64]

POINTS_OF_A_UNIT = 30.0
"""Points that are worth e-fold odds where points are all that counts."""

# fmt: off
FITTED: dict[int, Sequence[float]] = {
    2: (0.058, -0.06, -0.026, -0.013, 0.005, -0.001, 0.066,
        0.059, 0.076, 0.086, 0.08, 0.195, 0.428, 0.092),
    3: (0.112, -0.072, -0.071, -0.04, -0.051, 0.033, 0.074,
        0.102, 0.117, 0.157, 0.337, 0.386, 0.599, 0.173),
    4: (0.154, -0.011, -0.115, -0.083, -0.067, 0.049, 0.076,
        0.122, 0.21, 0.296, 0.462, 0.388, 0.668, 0.212),
}
# fmt: on
"""Worths of the ranks, Ace to Joker, by the number of players, as printed by
``agents/training/fit_skirmish_worths.py``. Without captures that return the fit would not hold:
then all run out of cards together and points decide."""

WORTHS = ("fitted", "points")


def worths_of(name: str, num_players: int, rules: Rules) -> Floats:
    """The worth of each rank, Ace to Joker, in units of e-fold odds: float64 (14,).

    Args:
        name: ``fitted``, or ``points`` for the values of the cards. The fit is used only where it
            was made, on the whole deck with captures that return; elsewhere points are.
        num_players: 2-4.
        rules: the rule set.

    Raises:
        ValueError: neither name.
    """
    if name not in WORTHS:
        raise ValueError(f"worth must be one of {', '.join(WORTHS)}, got {name!r}")
    if name == "fitted" and rules.recycle_captures and rules.deck == cards.ALL_CARDS:
        return np.array(FITTED[num_players])
    return np.append(np.arange(1.0, cards.NUM_RANKS), 0.0) / POINTS_OF_A_UNIT


# --- Judgement ---

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_RANK_SHIFT = np.uint64(2)
_RANK = np.uint64(0b1111)


@kernel
def _worth_of(held: np.uint64, worths: Any) -> float:
    total = 0.0
    for rank in range(cards.NUM_RANKS):
        total += worths[rank] * np.float64(popcount(held & _RANK))
        held >>= _RANK_SHIFT
    return total


@kernel
def judge(state: Any, rules: Any, worths: Any, payoffs: Any) -> None:
    """Write the payoffs of a game that is over, or those to be expected.

    Args:
        state: record of dtype STATE, over or at the start of a round.
        rules: record of dtype RULES.
        worths: float64 (14,), see worths_of.
        payoffs: float64 (n,), overwritten; they add up to 0.
    """
    if state.phase == game.OVER:
        game.write_payoffs(state, rules, payoffs)
        return
    num_players = rules.num_players
    highest = -np.inf
    for seat in range(num_players):
        held = state.hand[seat] | state.supply[seat] | state.capture[seat]
        payoffs[seat] = _worth_of(held, worths)
        highest = max(highest, payoffs[seat])
    total = 0.0
    for seat in range(num_players):
        payoffs[seat] = np.exp(payoffs[seat] - highest)
        total += payoffs[seat]
    for seat in range(num_players):  # a chance c pays c - (1 - c) / (n - 1)
        payoffs[seat] = (num_players * payoffs[seat] / total - 1.0) / (num_players - 1)


# --- A choice for playouts ---

_JOKER_IN_WAR = 10  # about the highest of two stakes, which it copies (S6)


@kernel
def highest_rank(hand: np.uint64) -> int:
    """The rank of a hand that adds most to a War pile; a Joker counts as a 10."""
    best, chosen = 0, 0
    while hand != _ZERO:
        rank = np.int64(lowest_bit_index(hand) >> _RANK_SHIFT)
        value = _JOKER_IN_WAR if rank == cards.JOKER else rank + 1
        if value > best:
            best, chosen = value, rank
        hand &= hand - _ONE
    return int(chosen)


# --- Chance ---

_DEAL, _DRAWS, _PICKS, _CHOICES, _MOVE = 0, 1, 5, 9, 10


def planning_streams(seed: int) -> npt.NDArray[Any]:
    """An agent's streams, of which those of each position are made: shape (1,), dtype STREAMS.

    Raises:
        ValueError: the seed is negative.
    """
    return seed_streams([seed], forks=True, dtype=STREAMS)


@kernel
def begin_streams(streams: Any, row: Any) -> float:
    """Make an agent's streams those of a position.

    Args:
        streams: record of dtype STREAMS, as of planning_streams; overwritten. ``key`` is then the
            position of a stream for choices while planning.
        row: int8 (d,), the observation.

    Returns:
        The number in [0, 1) by which the position's move is drawn.
    """
    streams.key = hash_of(row, streams.key)
    streams.deal = stream_start(streams, np.uint64(_DEAL))
    for seat in range(game.MAX_PLAYERS):
        streams.draws[seat] = stream_start(streams, np.uint64(_DRAWS + seat))
        streams.picks[seat] = stream_start(streams, np.uint64(_PICKS + seat))
    number = unit(stream_start(streams, np.uint64(_MOVE)))
    streams.key = stream_start(streams, np.uint64(_CHOICES))
    return number
