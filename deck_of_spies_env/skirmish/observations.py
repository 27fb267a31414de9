"""Observations: a named layout, and the kernels that write and read it.

An observation is all that a seat may know (S11), as a flat int8 vector of named fields. Suits do
not matter to play, so cards are counted by rank: 14 entries, Ace to Joker. Players come in the
order of play relative to the observer: ``_0`` is the observer, ``_1`` the next seat, and so on.

A view of the game can be rebuilt from it, up to suits: which pool of cards each hidden card belongs
to is told by the numbers of ``hidden`` (see ``views.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.compiled import deposit_bits, kernel, lowest_bit_index, popcount
from deck_of_spies_env.skirmish import cards
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.views import dealt_pool, of_batch

MOST_ROUNDS_SHOWN = 127
_CARDS_OF_A_RANK = 4


@dataclass(frozen=True)
class Field:
    """One named field of an observation.

    Attributes:
        name: key of the layout.
        width: number of entries.
        high: largest value of an entry; the lowest is 0.
        meaning: one line for the documentation.
    """

    name: str
    width: int
    high: int
    meaning: str


_OF_THE_TABLE = (
    Field("hand", cards.NUM_RANKS, game.HAND_SIZE, "the observer's hand"),
    Field("unseen", cards.NUM_RANKS, _CARDS_OF_A_RANK, "dealt at the start and not yet seen"),
    Field("graveyard", cards.NUM_RANKS, _CARDS_OF_A_RANK, "cards in the Graveyard"),
    Field("phase", 2, 1, "skirmish, war; both 0 when over"),
    Field("rounds_left", 1, MOST_ROUNDS_SHOWN, "rounds until the limit, 127 for all above"),
)
_OF_A_PLAYER = (
    Field("committed", cards.NUM_RANKS, 1, "card committed to the skirmish, during a War"),
    Field("capture", cards.NUM_RANKS, _CARDS_OF_A_RANK, "cards in the Capture pile"),
    Field("known", cards.NUM_RANKS, _CARDS_OF_A_RANK, "recycled cards that must be in hand"),
    Field("previous", cards.NUM_RANKS, _CARDS_OF_A_RANK, "unseen of the last batch but one"),
    Field("recycled", cards.NUM_RANKS, _CARDS_OF_A_RANK, "unseen of the batch recycled last"),
    Field("hidden", 8, cards.NUM_CARDS, "numbers of cards: see HIDDEN"),
    Field("participant", 1, 1, "fights in the War"),
)

HIDDEN = (
    "hand",
    "hand_dealt",
    "hand_recycled",
    "supply",
    "stakes",
    "stakes_dealt",
    "stakes_recycled",
    "recycles",
)
"""Entries of ``hidden``: the sizes of the hand, the Supply and the face-down stakes; how many of
hand and stakes were dealt at the start and how many are of the batch recycled last; and the number
of recycles, 2 for all above. A Supply is of one batch, as it is made anew only when it is empty."""

_MOST_RECYCLES_SHOWN = 2


@cache
def observation_fields(num_players: int = 2) -> tuple[Field, ...]:
    """The fields of an observation in their order.

    Raises:
        ValueError: a number of players other than 2, 3 or 4.
    """
    num_players = game.check_num_players(num_players)
    return _OF_THE_TABLE + tuple(
        Field(f"{field.name}_{player}", field.width, field.high, field.meaning)
        for player in range(num_players)
        for field in _OF_A_PLAYER
    )


def observation_layout(num_players: int = 2) -> dict[str, slice]:
    """Name -> slice of the observation vector."""
    layout: dict[str, slice] = {}
    start = 0
    for field in observation_fields(num_players):
        layout[field.name] = slice(start, start + field.width)
        start += field.width
    return layout


def observation_high(num_players: int = 2) -> npt.NDArray[np.int8]:
    """Largest value of each entry, int8 of shape (d,); the lowest is 0 throughout."""
    fields = observation_fields(num_players)
    return np.repeat(
        np.array([field.high for field in fields], dtype=np.int8),
        [field.width for field in fields],
    )


def layout_table(num_players: int = 2) -> str:
    """The layout as a markdown table, as in ``docs/skirmish.md``."""
    layout = observation_layout(num_players)
    lines = ["| field | slice | width | values | meaning |", "|---|---|---|---|---|"]
    for field in observation_fields(num_players):
        place = layout[field.name]
        lines.append(
            f"| `{field.name}` | {place.start}:{place.stop} | {field.width} | 0-{field.high} "
            f"| {field.meaning} |"
        )
    return "\n".join(lines) + "\n"


LAYOUT = observation_layout(2)
"""Layout for two players: ``obs[LAYOUT["hand"]]``. With more players, more fields follow."""

# Offsets for the kernels, which can't read a dict: taken from the layout, never written by hand.
_HAND = LAYOUT["hand"].start
UNSEEN = LAYOUT["unseen"].start
_GRAVEYARD = LAYOUT["graveyard"].start
PHASE = LAYOUT["phase"].start
_ROUNDS_LEFT = LAYOUT["rounds_left"].start
PLAYER = LAYOUT["committed_0"].start
PLAYER_WIDTH = LAYOUT["committed_1"].start - PLAYER
_COMMITTED = 0
_CAPTURE = LAYOUT["capture_0"].start - PLAYER
KNOWN = LAYOUT["known_0"].start - PLAYER
PREVIOUS = LAYOUT["previous_0"].start - PLAYER
RECYCLED = LAYOUT["recycled_0"].start - PLAYER
HIDDEN_NUMBERS = LAYOUT["hidden_0"].start - PLAYER
_PARTICIPANT = LAYOUT["participant_0"].start - PLAYER


@kernel
def num_players_of(width: int) -> int:
    """The number of players at the table of an observation of so many entries."""
    return (width - PLAYER) // PLAYER_WIDTH


_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_RANK_SHIFT = np.uint64(2)
_RANK = np.uint64(0b1111)


@kernel
def _count_ranks(held: np.uint64, out: Any, first: int) -> None:
    """Write how many cards of each rank there are; the entries are 0 before."""
    while held != _ZERO:
        out[first + np.int64(lowest_bit_index(held) >> _RANK_SHIFT)] += 1
        held &= held - _ONE


@kernel
def _write_player(state: Any, seat: int, player: int, out: Any, first: int) -> None:
    """Write the fields of one player as another seat, or the same, may know them."""
    if state.committed[player] != game.NO_CARD:
        out[first + _COMMITTED + (np.int64(state.committed[player]) >> 2)] = 1
    hand, stakes = state.hand[player], state.stakes[player]
    latest = int(state.recycles[player])
    hand_dealt, stakes_dealt = of_batch(state, hand, 0), of_batch(state, stakes, 0)
    hand_recycled = stakes_recycled = _ZERO
    if latest > 0:
        hand_recycled = of_batch(state, hand, latest)
        stakes_recycled = of_batch(state, stakes, latest)
        hidden = stakes_recycled | state.supply[player]
        if player != seat:
            hidden |= hand_recycled
        _count_ranks(hidden, out, first + RECYCLED)
    # Older cards are in hand, as all that is in the Supply is of the latest batch; unless some of
    # them have just been staked, when they may be here or there.
    staked_before = stakes & ~stakes_dealt & ~stakes_recycled
    held_before = hand & ~hand_dealt & ~hand_recycled
    mixed = _ZERO
    if staked_before != _ZERO:
        mixed = of_batch(state, held_before, latest - 1)
        hidden = staked_before if player == seat else staked_before | mixed
        _count_ranks(hidden, out, first + PREVIOUS)
    _count_ranks(held_before & ~mixed, out, first + KNOWN)
    _count_ranks(state.capture[player], out, first + _CAPTURE)
    out[first + HIDDEN_NUMBERS] = np.int8(popcount(hand))
    out[first + HIDDEN_NUMBERS + 1] = np.int8(popcount(hand_dealt))
    out[first + HIDDEN_NUMBERS + 2] = np.int8(popcount(hand_recycled))
    out[first + HIDDEN_NUMBERS + 3] = np.int8(popcount(state.supply[player]))
    out[first + HIDDEN_NUMBERS + 4] = np.int8(popcount(stakes))
    out[first + HIDDEN_NUMBERS + 5] = np.int8(popcount(stakes_dealt))
    out[first + HIDDEN_NUMBERS + 6] = np.int8(popcount(stakes_recycled))
    out[first + HIDDEN_NUMBERS + 7] = np.int8(min(latest, _MOST_RECYCLES_SHOWN))
    out[first + _PARTICIPANT] = np.int8((state.participants >> np.uint8(player)) & np.uint8(1))


@kernel
def write_observation(state: Any, rules: Any, seat: int, out: Any) -> None:
    """Write the observation of a seat.

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        seat: who looks.
        out: int8 array of shape (d,), overwritten.
    """
    out[:] = 0
    _count_ranks(state.hand[seat], out, _HAND)
    _count_ranks(dealt_pool(state, rules, seat), out, UNSEEN)
    _count_ranks(state.graveyard, out, _GRAVEYARD)
    if state.phase != game.OVER:
        out[PHASE + np.int64(state.phase)] = 1
    left = rules.max_rounds - np.int64(state.rounds)
    out[_ROUNDS_LEFT] = np.int8(min(left, MOST_ROUNDS_SHOWN))
    for relative in range(rules.num_players):
        player = seat + relative
        if player >= rules.num_players:
            player -= rules.num_players
        _write_player(state, seat, player, out, PLAYER + relative * PLAYER_WIDTH)


@kernel
def _take(row: Any, first: int, free: np.uint64) -> np.uint64:
    """Cards of the ranks counted in a field, of those that are free: the lowest suits."""
    taken = _ZERO
    for rank in range(cards.NUM_RANKS):
        count = np.uint64(row[first + rank])
        if count:
            shift = np.uint64(rank) << _RANK_SHIFT
            taken |= deposit_bits((_ONE << count) - _ONE, free & (_RANK << shift))
    return taken


@kernel
def _lowest(pool: np.uint64, count: np.int64) -> np.uint64:
    return deposit_bits((_ONE << np.uint64(count)) - _ONE, pool)


@kernel
def _set_batch(state: Any, pool: np.uint64, batch: int) -> None:
    while pool != _ZERO:
        state.batch[np.int64(lowest_bit_index(pool))] = np.int16(batch)
        pool &= pool - _ONE


@kernel
def _read_player(row: Any, first: int, player: int, free: np.uint64, state: Any) -> np.uint64:
    """Rebuild what is known of a player's cards but for those dealt; the cards still free.

    The hand of player 0, the observer, is there already.
    """
    state.capture[player] = _take(row, first + _CAPTURE, free)
    free ^= state.capture[player]
    committed = _take(row, first + _COMMITTED, free)
    free ^= committed
    if committed != _ZERO:
        state.committed[player] = np.int8(lowest_bit_index(committed))
    sizes = row[first + HIDDEN_NUMBERS : first + HIDDEN_NUMBERS + 8]
    hand_recycled = np.int64(sizes[2])
    stakes, stakes_dealt = np.int64(sizes[4]), np.int64(sizes[5])
    stakes_recycled = np.int64(sizes[6])
    if player != 0:
        known = _take(row, first + KNOWN, free)
        free ^= known
        _set_batch(state, known, 1)
        state.hand[player] |= known
    previous = _take(row, first + PREVIOUS, free)
    free ^= previous
    _set_batch(state, previous, 2)
    staked = _lowest(previous, stakes - stakes_dealt - stakes_recycled)
    recycled = _take(row, first + RECYCLED, free)
    free ^= recycled
    _set_batch(state, recycled, 3)
    if player != 0:
        state.hand[player] |= previous ^ staked
        held = _lowest(recycled, hand_recycled)
        state.hand[player] |= held
        recycled ^= held
    state.stakes[player] = staked | _lowest(recycled, stakes_recycled)
    state.supply[player] = recycled & ~state.stakes[player]
    state.recycles[player] = 3 if sizes[7] else 0
    if row[first + _PARTICIPANT]:
        state.participants |= np.uint8(1) << np.uint8(player)
    return free


@kernel
def read_observation(row: Any, rules: Any, state: Any) -> None:
    """Rebuild a view from an observation, up to suits: the observer has seat 0 in it.

    The batches are numbered anew: 1 and 2 for older ones, 3 for the latest. Which batch the
    observer's own cards came from makes no difference to it, and is lost.

    Args:
        row: int8 array of shape (d,).
        rules: record of dtype RULES.
        state: record of dtype STATE, overwritten.
    """
    state.batch[:] = game.NO_DECK
    for seat in range(game.MAX_PLAYERS):
        state.hand[seat] = state.supply[seat] = state.capture[seat] = state.stakes[seat] = _ZERO
        state.committed[seat] = game.NO_CARD
        state.recycles[seat] = 0
    state.participants = state.offenders = 0
    free = rules.deck
    state.hand[0] = _take(row, _HAND, free)
    free ^= state.hand[0]
    _set_batch(state, state.hand[0], 0)
    state.graveyard = _take(row, _GRAVEYARD, free)
    free ^= state.graveyard
    for player in range(rules.num_players):
        first = PLAYER + player * PLAYER_WIDTH
        free = _read_player(row, first, player, free, state)
    _set_batch(state, free, 0)  # what was dealt and has not been seen
    for player in range(rules.num_players):
        sizes = PLAYER + player * PLAYER_WIDTH + HIDDEN_NUMBERS
        if player != 0:
            held = _lowest(free, np.int64(row[sizes + 1]))
            state.hand[player] |= held
            free ^= held
        staked = _lowest(free, np.int64(row[sizes + 5]))
        state.stakes[player] |= staked
        free ^= staked
        if row[sizes + 7] == 0:
            state.supply[player] = _lowest(free, np.int64(row[sizes + 3]))
            free ^= state.supply[player]
    state.burned = free
    state.rounds = np.int16(rules.max_rounds - np.int64(row[_ROUNDS_LEFT]))
    state.phase = game.OVER
    if row[PHASE]:
        state.phase = game.SKIRMISH
    elif row[PHASE + 1]:
        state.phase = game.WAR
