"""Observations: a named layout, and the kernels that write and read it.

An observation is all that a seat may know (S11), as a flat int8 vector of named fields. Suits do
not matter to play, so cards are counted by rank: 14 entries, Ace to Joker. Players come in the
order of play relative to the observer: ``_0`` is the observer, ``_1`` the next seat, and so on.

A view of the game can be rebuilt from it, up to suits: which pool of cards each hidden card belongs
to is told by the numbers of ``hidden`` (see ``views.py``).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.compiled import (
    deposit_bits,
    kernel,
    lowest_bit_index,
)
from deck_of_spies_env.lanes import (
    Lanes,
    bytes_of_groups,
    count_lanes,
    in_all_lanes,
    lanes,
    lanes_of_bits,
    lanes_of_flags,
    store_counts,
    store_words,
    where_any,
)
from deck_of_spies_env.layouts import Field, high_of, layout_of, table_of
from deck_of_spies_env.skirmish import cards
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.views import unseen_of

MOST_ROUNDS_SHOWN = 127
_CARDS_OF_A_RANK = 4
_NUM_HIDDEN = 8  # the bytes of a word; they are named by HIDDEN

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
    Field("previous", cards.NUM_RANKS, _CARDS_OF_A_RANK, "older ones, if some have been staked"),
    Field("recycled", cards.NUM_RANKS, _CARDS_OF_A_RANK, "unseen of those recycled last"),
    Field("hidden", _NUM_HIDDEN, cards.NUM_CARDS, "numbers of cards: see HIDDEN"),
    Field("participant", 1, 1, "fights in the War"),
)

HIDDEN = (
    "hand",
    "hand_dealt",
    "hand_recycled",
    "supply",
    "supply_dealt",
    "stakes",
    "stakes_dealt",
    "stakes_recycled",
)
"""Entries of ``hidden``: the sizes of the hand, the Supply and the face-down stakes; how many of
each were dealt at the start, and how many of hand and stakes are of the batch recycled last. A
Supply is all dealt or all of that batch, as it is made anew only when it is empty."""


IN_HAND, HAND_DEALT = HIDDEN.index("hand"), HIDDEN.index("hand_dealt")
HAND_RECYCLED = HIDDEN.index("hand_recycled")
_SUPPLY, _SUPPLY_DEALT = HIDDEN.index("supply"), HIDDEN.index("supply_dealt")
_STAKES, _STAKES_DEALT = HIDDEN.index("stakes"), HIDDEN.index("stakes_dealt")
_STAKES_RECYCLED = HIDDEN.index("stakes_recycled")


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
    return layout_of(observation_fields(num_players))


def observation_high(num_players: int = 2) -> npt.NDArray[np.int8]:
    """Largest value of each entry, int8 of shape (d,); the lowest is 0 throughout."""
    return high_of(observation_fields(num_players))


def layout_table(num_players: int = 2) -> str:
    """The layout as a markdown table, as in ``docs/skirmish.md``."""
    return table_of(observation_fields(num_players))


LAYOUT = observation_layout(2)
"""Layout for two players: ``obs[LAYOUT["hand"]]``. With more players, more fields follow."""

# Offsets for kernels, which can't read a dict: taken from the layout, never written by hand.
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
_BYTE = np.uint64(8)


# Where fields lie in the pieces of _Rows, in bits.
_WORD = 64
_FIELD = 4 * cards.NUM_RANKS  # a field of counts
_END = 16  # entries of the last pieces: two words of bytes
_END_OF_TABLE, _END_OF_PLAYER = PLAYER - _END, PLAYER_WIDTH - _END
_GRAVEYARD_LEFT = 4 * (_END_OF_TABLE - _GRAVEYARD)  # what is stored before the end
_RECYCLED_LEFT = 4 * (_END_OF_PLAYER - RECYCLED)
_PHASE_AT, _ROUNDS_LEFT_AT = (
    np.uint64(8 * (place - _END_OF_TABLE) - _WORD) for place in (PHASE, _ROUNDS_LEFT)
)
_HIDDEN_AT = 8 * (HIDDEN_NUMBERS - _END_OF_PLAYER)
_PARTICIPANT_AT = 8 * (_PARTICIPANT - _END_OF_PLAYER) - _WORD


class _Rows(NamedTuple):
    """The observations of all seats in pieces, each of words by seat.

    A field of counts is a set of cards, four bits a rank: 56 bits for 14 entries. Fields that
    follow one another are put together bit by bit, and words of them, 16 entries each, are turned
    into counts as they are stored. The last 16 entries are words of bytes.
    """

    table: tuple[Lanes, Lanes]  # 32 counts from the first entry on
    table_end: tuple[Lanes, Lanes]  # the last 16 entries before the players
    own: tuple[Lanes, Lanes, Lanes, Lanes]  # 64 counts of a player, as it sees them itself
    own_end: tuple[Lanes, Lanes]  # the last 16 entries of that
    others: tuple[Lanes, Lanes, Lanes, Lanes]  # and as others see them
    others_end: tuple[Lanes, Lanes]


@kernel
def _table(hand: Lanes, unseen: Lanes, graveyard: Lanes) -> tuple[Lanes, Lanes]:
    """The first 32 of three fields of counts."""
    return (
        hand | unseen << _FIELD,
        unseen >> _WORD - _FIELD | graveyard << 2 * _FIELD - _WORD,
    )


@kernel
def _table_end(state: Any, rules: Any, graveyard: Lanes) -> tuple[Lanes, Lanes]:
    """The last counts of the Graveyard, the phase and the rounds left."""
    rounds_left = min(rules.max_rounds - np.int64(state.rounds), MOST_ROUNDS_SHOWN)
    last = np.uint64(state.phase == game.SKIRMISH) << _PHASE_AT
    last |= np.uint64(state.phase == game.WAR) << _PHASE_AT + _BYTE
    last |= np.uint64(rounds_left) << _ROUNDS_LEFT_AT
    counts = graveyard >> _GRAVEYARD_LEFT
    return bytes_of_groups(counts), bytes_of_groups(counts >> 32) | in_all_lanes(last)


@kernel
def _player(
    committed: Lanes, capture: Lanes, known: Lanes, previous: Lanes, recycled: Lanes
) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """The first 64 of five fields of counts."""
    return (
        committed | capture << _FIELD,
        capture >> _WORD - _FIELD | known << 2 * _FIELD - _WORD,
        known >> 2 * _WORD - 2 * _FIELD | previous << 3 * _FIELD - 2 * _WORD,
        previous >> 3 * _WORD - 3 * _FIELD | recycled << 4 * _FIELD - 3 * _WORD,
    )


@kernel
def _player_end(recycled: Lanes, hidden: Lanes, participant: Lanes) -> tuple[Lanes, Lanes]:
    """The last counts of the fifth, the eight numbers of HIDDEN and whether it fights."""
    return (
        bytes_of_groups(recycled >> _RECYCLED_LEFT) | hidden << _HIDDEN_AT,
        hidden >> _WORD - _HIDDEN_AT | participant << _PARTICIPANT_AT,
    )


@kernel
def _hidden(hand: Lanes, supply: Lanes, stakes: Lanes, dealt: Lanes, latest: Lanes) -> Lanes:
    """The numbers of HIDDEN, a byte each."""
    numbers = count_lanes(hand) << 8 * IN_HAND | count_lanes(supply) << 8 * _SUPPLY
    numbers = numbers | count_lanes(hand & dealt) << 8 * HAND_DEALT
    numbers = numbers | count_lanes(hand & latest) << 8 * HAND_RECYCLED
    numbers = numbers | count_lanes(supply & dealt) << 8 * _SUPPLY_DEALT
    numbers = numbers | count_lanes(stakes) << 8 * _STAKES
    numbers = numbers | count_lanes(stakes & dealt) << 8 * _STAKES_DEALT
    return numbers | count_lanes(stakes & latest) << 8 * _STAKES_RECYCLED


@kernel
def _rows(state: Any, rules: Any) -> _Rows:
    """All before any of it is written: for all the compiler knows, writing changes the state."""
    hand, supply, stakes = lanes(state.hand), lanes(state.supply), lanes(state.stakes)
    dealt, latest, previous = in_all_lanes(state.dealt), lanes(state.latest), lanes(state.previous)
    graveyard = in_all_lanes(state.graveyard)
    committed, capture = lanes_of_bits(state.committed), lanes(state.capture)
    # Cards older than the latest batch are in hand, unless some of them have just been staked.
    mixed = where_any(previous & stakes, previous)
    known = hand & ~(dealt | latest | mixed)
    hidden = _hidden(hand, supply, stakes, dealt, latest)
    participant = lanes_of_flags(state.participants)
    return _Rows(
        _table(hand, unseen_of(dealt, hand), graveyard),
        _table_end(state, rules, graveyard),
        _player(committed, capture, known, mixed & ~hand, latest & ~hand),
        _player_end(latest & ~hand, hidden, participant),
        _player(committed, capture, known, mixed, latest),
        _player_end(latest, hidden, participant),
    )


@kernel
def _write_row(rows: _Rows, num_players: int, seat: int, out: Any) -> None:
    """Write what a seat is shown. Two pieces overlap, as 45 and 79 entries are no whole words."""
    store_counts(out, 0, rows.table, seat)
    store_words(out, _END_OF_TABLE, rows.table_end, seat)
    for player in range(num_players):
        place = player - seat if player >= seat else player - seat + num_players
        first = PLAYER + place * PLAYER_WIDTH
        if player == seat:
            store_counts(out, first, rows.own, player)
            store_words(out, first + _END_OF_PLAYER, rows.own_end, player)
        else:
            store_counts(out, first, rows.others, player)
            store_words(out, first + _END_OF_PLAYER, rows.others_end, player)


@kernel
def write_observation(state: Any, rules: Any, seat: int, out: Any) -> None:
    """Write the observation of a seat.

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        seat: who looks.
        out: contiguous int8 array of shape (d,), overwritten.
    """
    _write_row(_rows(state, rules), rules.num_players, seat, out)


@kernel
def write_observations(state: Any, rules: Any, rows: Any) -> None:
    """Write the observations of all seats, contiguous int8 (n, d).

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        rows: overwritten.
    """
    pieces = _rows(state, rules)
    for seat in range(rules.num_players):
        _write_row(pieces, rules.num_players, seat, rows[seat])


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
    numbers = row[first + HIDDEN_NUMBERS : first + _PARTICIPANT]
    stakes, stakes_dealt = np.int64(numbers[_STAKES]), np.int64(numbers[_STAKES_DEALT])
    stakes_recycled = np.int64(numbers[_STAKES_RECYCLED])
    if player != 0:
        known = _take(row, first + KNOWN, free)
        free ^= known
        state.hand[player] |= known
    previous = _take(row, first + PREVIOUS, free)
    free ^= previous
    state.previous[player] = previous
    staked = _lowest(previous, stakes - stakes_dealt - stakes_recycled)
    latest = _take(row, first + RECYCLED, free)
    free ^= latest
    state.latest[player] = latest
    if player != 0:
        held = _lowest(latest, np.int64(numbers[HAND_RECYCLED]))
        state.hand[player] |= (previous ^ staked) | held
        latest ^= held
    state.stakes[player] = staked | _lowest(latest, stakes_recycled)
    state.supply[player] = latest & ~state.stakes[player]
    if row[first + _PARTICIPANT]:
        state.participants |= np.uint8(1) << np.uint8(player)
    return free


@kernel
def read_observation(row: Any, rules: Any, state: Any) -> None:
    """Rebuild a view from an observation, up to suits: the observer has seat 0 in it.

    Where the observer's own cards came from makes no difference to it, and is lost: they count as
    dealt.

    Args:
        row: int8 array of shape (d,).
        rules: record of dtype RULES.
        state: record of dtype STATE, overwritten.
    """
    for seat in range(game.MAX_PLAYERS):
        state.hand[seat] = state.supply[seat] = state.capture[seat] = state.stakes[seat] = _ZERO
        state.latest[seat] = state.previous[seat] = _ZERO
        state.committed[seat] = game.NO_CARD
    state.participants = state.offenders = 0
    free = rules.deck
    state.hand[0] = _take(row, _HAND, free)
    free ^= state.hand[0]
    state.graveyard = _take(row, _GRAVEYARD, free)
    free ^= state.graveyard
    for player in range(rules.num_players):
        first = PLAYER + player * PLAYER_WIDTH
        free = _read_player(row, first, player, free, state)
    state.dealt = free | state.hand[0]
    for player in range(rules.num_players):
        numbers = PLAYER + player * PLAYER_WIDTH + HIDDEN_NUMBERS
        if player != 0:
            held = _lowest(free, np.int64(row[numbers + HAND_DEALT]))
            state.hand[player] |= held
            free ^= held
        staked = _lowest(free, np.int64(row[numbers + _STAKES_DEALT]))
        state.stakes[player] |= staked
        free ^= staked
        supply = _lowest(free, np.int64(row[numbers + _SUPPLY_DEALT]))
        state.supply[player] |= supply
        free ^= supply
    state.burned = free
    state.rounds = np.int16(rules.max_rounds - np.int64(row[_ROUNDS_LEFT]))
    state.phase = game.OVER
    if row[PHASE]:
        state.phase = game.SKIRMISH
    elif row[PHASE + 1]:
        state.phase = game.WAR
