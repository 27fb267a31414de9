"""Simple opponents that need nothing but the engine: observations and masks in, ranks out.

``random``  any legal action.
``high``    the card of the highest value.
``rank``    the lowest card that is expected to win by its value alone, else the lowest; a Joker,
            which has none, only if there is nothing else.
``intrigue`` the card that is expected to gain most points, by all that the rules say of Aces,
            Jacks, Royalty and Jokers, if opponents commit any of the cards that they may hold.

What an opponent may hold is known up to chance: of the cards dealt at the start those that have not
been seen, and the cards of its own Capture pile that it has recycled (S8, S11).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.compiled import compiling, entry_point, kernel, popcount
from deck_of_spies_env.skirmish import cards
from deck_of_spies_env.skirmish import observations as fields
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS, WAIT

_NUM_RANKS = cards.NUM_RANKS
_JOKER = cards.JOKER


@kernel
def value_of(rank: int) -> int:
    """Points of a rank: Ace 1 to King 13, Joker 0."""
    return 0 if rank == _JOKER else rank + 1


@kernel
def _add_share(row: Any, first: int, count: float, out: Any) -> None:
    """Spread so many cards over the ranks of a field, in proportion."""
    total = 0.0
    for rank in range(_NUM_RANKS):
        total += row[first + rank]
    if total > 0.0:
        for rank in range(_NUM_RANKS):
            out[rank] += count * row[first + rank] / total


@kernel
def write_committed_chances(row: Any, player: int, out: Any) -> None:
    """How likely a player is to commit each rank if it commits any of the cards that it may hold.

    Args:
        row: int8 (d,), an observation.
        player: 1 and up, relative to the observer.
        out: float64 (14,), overwritten; all 0 for a player without a hand.
    """
    first = fields.PLAYER + player * fields.PLAYER_WIDTH
    out[:] = 0.0
    hidden = first + fields.HIDDEN_NUMBERS
    hand = row[hidden + fields.IN_HAND]
    dealt, recycled = row[hidden + fields.HAND_DEALT], row[hidden + fields.HAND_RECYCLED]
    if hand == 0:
        return
    known = 0
    for rank in range(_NUM_RANKS):
        out[rank] += row[first + fields.KNOWN + rank]
        known += row[first + fields.KNOWN + rank]
    _add_share(row, fields.UNSEEN, float(dealt), out)
    _add_share(row, first + fields.RECYCLED, float(recycled), out)
    _add_share(row, first + fields.PREVIOUS, float(hand - dealt - recycled - known), out)
    for rank in range(_NUM_RANKS):
        out[rank] /= hand


@kernel
def _share_by_value(mine: int, theirs: Any, num_players: int) -> float:
    """The chance that one's card has the highest value of all; half of a tie is one's own."""
    share = 1.0
    for player in range(1, num_players):
        below = level = 0.0
        for rank in range(_NUM_RANKS):
            if value_of(rank) < value_of(mine):
                below += theirs[player, rank]
            elif value_of(rank) == value_of(mine):
                level += theirs[player, rank]
        share *= below + 0.5 * level
    return share


@kernel
def _share_of_pot(committed: Any, num_players: int) -> float:
    """The observer's share of the pot, given all cards; Wars are won by any of those in them."""
    fighting = game.contenders(committed, num_players)
    if fighting & np.uint64(1) == 0:
        return 0.0
    return 1.0 / popcount(np.uint64(fighting))


@kernel
def _expected_gain(mine: int, theirs: Any, num_players: int, committed: Any) -> float:
    """Points that the observer can expect to gain by a rank, over what others may commit."""
    gain = 0.0
    committed[0] = mine << 2  # any card of the rank
    combinations = _NUM_RANKS ** (num_players - 1)
    for combination in range(combinations):
        chance, rest, pot = 1.0, combination, value_of(mine)
        for player in range(1, num_players):
            rank = rest % _NUM_RANKS
            rest //= _NUM_RANKS
            chance *= theirs[player, rank]
            committed[player] = rank << 2
            pot += value_of(rank)
        if chance > 0.0:
            gain += chance * (_share_of_pot(committed, num_players) * pot - value_of(mine))
    return gain


@entry_point
def choose_by_rank(rows: Any, masks: Any, actions: Any) -> None:
    """``rank``: write an action for each of N observations.

    Args:
        rows: int8 (N, d).
        masks: bool (N, 15).
        actions: int64 (N,), overwritten.
    """
    num_players = fields.num_players_of(rows.shape[1])
    theirs = np.zeros((game.MAX_PLAYERS, _NUM_RANKS))
    for i in range(rows.shape[0]):
        if masks[i, WAIT]:
            actions[i] = WAIT
            continue
        for player in range(1, num_players):
            write_committed_chances(rows[i], player, theirs[player])
        winner = lowest = -1
        for rank in range(_NUM_RANKS):
            if not masks[i, rank]:  # ranks ascend, and the Joker comes last
                continue
            lowest = rank if lowest < 0 else lowest
            if winner < 0 and _share_by_value(rank, theirs, num_players) > 0.5:
                winner = rank
        actions[i] = winner if winner >= 0 else lowest


@entry_point
def choose_by_intrigue(rows: Any, masks: Any, actions: Any) -> None:
    """``intrigue``: as choose_by_rank. In a War, where sums count, it commits by value."""
    num_players = fields.num_players_of(rows.shape[1])
    theirs = np.zeros((game.MAX_PLAYERS, _NUM_RANKS))
    committed = np.zeros(game.MAX_PLAYERS, np.int64)
    for i in range(rows.shape[0]):
        if masks[i, WAIT]:
            actions[i] = WAIT
            continue
        in_war = rows[i, fields.PHASE + game.WAR] != 0
        for player in range(1, num_players):
            write_committed_chances(rows[i], player, theirs[player])
        best, chosen = -np.inf, -1
        for rank in range(_NUM_RANKS):
            if masks[i, rank]:
                if in_war:
                    gain = float(value_of(rank))
                else:
                    gain = _expected_gain(rank, theirs, num_players, committed)
                if gain > best:
                    best, chosen = gain, rank
        actions[i] = chosen


class RandomBot(BatchAgent):
    """``random``."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start anew with a seed; it is 0 for a bot just made."""
        self._random = np.random.default_rng(seed)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """A uniform legal action each."""
        return (self._random.random(action_masks.shape) * action_masks).argmax(axis=1)


_PREFERENCE = np.array(
    [0 if rank == _JOKER else rank + 2 for rank in range(_NUM_RANKS)] + [1], dtype=np.int64
)
"""int64 (15,): the value of each rank, and 1 for *wait*, so that anything legal counts."""


class HighBot(BatchAgent):
    """``high``."""

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The legal card of the highest value each; a Joker only if there is nothing else."""
        return np.where(action_masks, _PREFERENCE, -1).argmax(axis=1)


class CompiledBot(BatchAgent):
    """A bot whose choices are made in a kernel.

    Args:
        kernel: as choose_by_rank.
    """

    def __init__(self, kernel: Callable[..., None]) -> None:
        compile_bots()
        self._kernel = kernel

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """One action each."""
        actions = np.empty(len(observations), dtype=np.int64)
        rows, masks = np.ascontiguousarray(observations), np.ascontiguousarray(action_masks)
        self._kernel(rows, masks, actions)
        return actions


_MAKERS: dict[str, Callable[[], BatchAgent]] = {
    "random": RandomBot,
    "high": HighBot,
    "rank": lambda: CompiledBot(choose_by_rank),
    "intrigue": lambda: CompiledBot(choose_by_intrigue),
}

BOTS: tuple[str, ...] = tuple(_MAKERS)
"""Names of the bots, weakest first."""


def make_bot(name: str, num_players: int) -> BatchAgent:
    """A bot by name.

    Args:
        name: one of :data:`BOTS`.
        num_players: 2-4; the bots play at any table.

    Raises:
        ValueError: no such bot; the message lists what there is.
    """
    game.check_num_players(num_players)
    if name not in _MAKERS:
        raise ValueError(f"unknown bot {name!r}; there are {', '.join(BOTS)}")
    return _MAKERS[name]()


@cache
def compile_bots() -> None:
    """Compile or load the kernels of the bots, once and safe among processes."""
    with compiling():
        width = len(fields.observation_high(game.MIN_PLAYERS))
        rows, masks = np.zeros((0, width), np.int8), np.zeros((0, NUM_ACTIONS), np.bool_)
        for kernel_of_bot in (choose_by_rank, choose_by_intrigue):
            kernel_of_bot(rows, masks, np.zeros(0, np.int64))
