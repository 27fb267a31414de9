"""Observations: a named layout, and the kernels that write and read it.

Both kinds are flat int8 vectors made of named fields. ``recall`` is all that a player with perfect
memory knows (D14), hence Markov: every card's zone. ``table`` is what lies in sight: the hand, the
top spy, the face-up Draw Discard and the sizes of the face-down piles.

A field of cards has one 0/1 entry per card, in the order of card indices; fields of spies leave the
sixteen low cards out. ``slots`` tells for each hand slot the rank (13 entries) and suit (4 entries)
of its card, one-hot, all zero for an empty slot: the same cards as ``hand``, in the order in which
actions name them.

Packed, a ``recall`` observation is the six 64-bit words that it takes: one of the cards of each
zone (bit i for card index i), and one of the top spy's card with the phases above it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import kernel, lowest_bit_index, popcount, store_64_flags
from deck_of_spies_env.layouts import Field, high_of, layout_of, table_of
from deck_of_spies_env.solitaire import rules as game

RECALL, TABLE = 0, 1
OBSERVATIONS = ("recall", "table")

SLOT_WIDTH = cards.NUM_RANKS + cards.NUM_SUITS

PACKED_WORDS = ("hand", "draw_discard", "draw_deck", "spy_deck", "spy_discard", "spy")
"""Names of the words of a packed observation; beside its card, ``spy`` holds the phase."""

PACKED_ACT, PACKED_RETIRE = cards.NUM_CARDS, cards.NUM_CARDS + 1
"""Bits of the word ``spy`` that are set in the phases act and retire."""

_SEEN_BY_ALL = (
    Field("hand", cards.NUM_CARDS, 1, "cards in hand"),
    Field("spy", cards.NUM_SPIES, 1, "the spy on top, one-hot; all 0 after the last"),
    Field("phase", 2, 1, "act, retire; both 0 when over"),
    Field("draw_discard", cards.NUM_CARDS, 1, "cards in the Draw Discard"),
)
_RECALLED = (
    Field("draw_deck", cards.NUM_CARDS, 1, "cards in the Draw Deck, without their order"),
    Field("spy_deck", cards.NUM_SPIES, 1, "spies not yet seen, without their order"),
    Field("spy_discard", cards.NUM_CARDS, 1, "cards in the Spy Discard"),
)
_SIZES = (
    Field("draw_deck_size", 1, cards.NUM_CARDS, "number of cards in the Draw Deck"),
    Field("spy_deck_size", 1, cards.NUM_SPIES, "number of spies not yet seen"),
    Field("spy_discard_size", 1, cards.NUM_CARDS, "number of cards in the Spy Discard"),
)


def observation_fields(observation: str = "recall", hand_size: int = 5) -> tuple[Field, ...]:
    """The fields of an observation in their order.

    Args:
        observation: ``"recall"`` or ``"table"``.
        hand_size: 3-8; only the last field, ``slots``, depends on it.

    Raises:
        ValueError: unknown kind of observation.
    """
    if observation not in OBSERVATIONS:
        raise ValueError(
            f"observation must be one of {', '.join(OBSERVATIONS)}, got {observation!r}"
        )
    hidden = _RECALLED if observation == "recall" else _SIZES
    slots = Field("slots", hand_size * SLOT_WIDTH, 1, "rank and suit of each slot's card, one-hot")
    return (*_SEEN_BY_ALL, *hidden, slots)


def observation_layout(observation: str = "recall", hand_size: int = 5) -> dict[str, slice]:
    """Name -> slice of the observation vector, for any kind and hand size (see the fields)."""
    return layout_of(observation_fields(observation, hand_size))


def observation_high(observation: str = "recall", hand_size: int = 5) -> npt.NDArray[np.int8]:
    """Largest value of each entry, int8 of shape (d,); the lowest is 0 throughout."""
    return high_of(observation_fields(observation, hand_size))


def layout_table(observation: str = "recall", hand_size: int = 5) -> str:
    """The layout as a markdown table, as in ``docs/environment.md``."""
    return table_of(observation_fields(observation, hand_size))


LAYOUT = observation_layout("recall")
"""Layout of the default observation: ``obs[LAYOUT["hand"]]``."""
TABLE_LAYOUT = observation_layout("table")
"""Layout of the ``table`` observation with a hand of 5."""

# Offsets for the kernels, which can't read a dict: taken from the layouts, never written by hand.
_HAND = LAYOUT["hand"].start
_SPY = LAYOUT["spy"].start
_PHASE = LAYOUT["phase"].start
_DRAW_DISCARD = LAYOUT["draw_discard"].start
_DRAW_DECK = LAYOUT["draw_deck"].start
_SPY_DECK = LAYOUT["spy_deck"].start
_SPY_DISCARD = LAYOUT["spy_discard"].start
_RECALL_SLOTS = LAYOUT["slots"].start
_DRAW_DECK_SIZE = TABLE_LAYOUT["draw_deck_size"].start
_SPY_DECK_SIZE = TABLE_LAYOUT["spy_deck_size"].start
_SPY_DISCARD_SIZE = TABLE_LAYOUT["spy_discard_size"].start
_TABLE_SLOTS = TABLE_LAYOUT["slots"].start

_ONE = np.uint64(1)
_ACT_BIT = np.uint64(1 << PACKED_ACT)
_RETIRE_BIT = np.uint64(1 << PACKED_RETIRE)
_ZERO = np.uint64(0)
_NUM_RANKS = np.uint64(cards.NUM_RANKS)
_RANK_SHIFT, _SUIT_BITS = np.uint64(2), np.uint64(3)
_SLOTS_AT_ONCE = 3  # their entries fit a word
_WINDOW = 64
_RECALL_WINDOWS, _TABLE_WINDOWS = (
    -(-(observation_layout(kind, game.MIN_HAND_SIZE)["slots"].stop - _WINDOW) // _WINDOW)
    for kind in OBSERVATIONS
)
"""Windows before the last one, for the smallest hand."""
_FIRST_SPY = np.uint64(cards.FIRST_SPY)


@kernel
def _read_cards(row: Any, first: int, count: int) -> np.uint64:
    mask = _ZERO
    for index in range(count):
        mask |= np.uint64(row[first + index] != 0) << np.uint64(index)
    return mask


class _Fields(NamedTuple):
    """An observation's fields as bits, uint64 each; ``slots`` comes in three groups of three."""

    hand: np.uint64
    spy: np.uint64
    phase: np.uint64
    draw_discard: np.uint64
    draw_deck: np.uint64
    spy_deck: np.uint64
    spy_discard: np.uint64
    slots: tuple[np.uint64, np.uint64, np.uint64]


@kernel
def _next_slots(hand: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The entries of the next three slots, and the hand without their cards."""
    bits = _ZERO
    for slot in range(_SLOTS_AT_ONCE):
        if hand != _ZERO:
            card = lowest_bit_index(hand)
            entry = _ONE << (card >> _RANK_SHIFT)
            entry |= _ONE << (_NUM_RANKS + (card & _SUIT_BITS))
            bits |= entry << np.uint64(SLOT_WIDTH * slot)
            hand &= hand - _ONE
    return bits, hand


@kernel
def _spy_bit(state: Any) -> np.uint64:
    """The spy on top as a card mask."""
    return _ZERO if state.spy == game.NO_SPY else _ONE << np.uint64(state.spy)


@kernel
def _fields(state: Any) -> _Fields:
    act, retire = np.uint64(state.phase == game.ACT), np.uint64(state.phase == game.RETIRE)
    first_slots, hand = _next_slots(state.hand)
    more_slots, hand = _next_slots(hand)
    last_slots, hand = _next_slots(hand)
    return _Fields(
        state.hand,
        _spy_bit(state) >> _FIRST_SPY,
        act | (retire << _ONE),
        state.draw_discard,
        state.draw_deck,
        state.spy_deck >> _FIRST_SPY,
        state.spy_discard,
        (first_slots, more_slots, last_slots),
    )


@kernel
def _placed(bits: np.uint64, shift: int) -> np.uint64:
    """A field in a window that begins ``shift`` entries before the field."""
    if shift <= -_WINDOW or shift >= _WINDOW:
        return _ZERO
    if shift < 0:
        return bits >> np.uint64(-shift)
    return bits << np.uint64(shift)


@kernel
def _window(fields: _Fields, observation: int, begin: int) -> np.uint64:
    """64 entries of an observation from entry ``begin`` on, as bits; sizes are left at 0."""
    bits = _placed(fields.hand, _HAND - begin)
    bits |= _placed(fields.spy, _SPY - begin)
    bits |= _placed(fields.phase, _PHASE - begin)
    bits |= _placed(fields.draw_discard, _DRAW_DISCARD - begin)
    slots = _TABLE_SLOTS
    if observation == RECALL:
        bits |= _placed(fields.draw_deck, _DRAW_DECK - begin)
        bits |= _placed(fields.spy_deck, _SPY_DECK - begin)
        bits |= _placed(fields.spy_discard, _SPY_DISCARD - begin)
        slots = _RECALL_SLOTS
    bits |= _placed(fields.slots[0], slots - begin)
    bits |= _placed(fields.slots[1], slots + _SLOTS_AT_ONCE * SLOT_WIDTH - begin)
    return bits | _placed(fields.slots[2], slots + 2 * _SLOTS_AT_ONCE * SLOT_WIDTH - begin)


@kernel
def write_observation(state: Any, observation: int, out: Any) -> None:
    """Write an observation.

    Args:
        state: record of dtype STATE.
        observation: RECALL or TABLE.
        out: contiguous int8 array of shape (d,), overwritten.
    """
    # All is read before anything is written: the compiler can't know that they don't overlap.
    sizes = popcount(state.draw_deck), popcount(state.spy_deck), popcount(state.spy_discard)
    fields = _fields(state)
    last = out.shape[0] - _WINDOW
    store_64_flags(out, last, _window(fields, observation, last))
    # Windows that there are for any hand size begin at places known to the compiler, which so drops
    # what is not in them. No condition for each: conditional wide writes are slow.
    if observation == RECALL:
        for window in range(_RECALL_WINDOWS):
            store_64_flags(out, window * _WINDOW, _window(fields, RECALL, window * _WINDOW))
    else:
        for window in range(_TABLE_WINDOWS):
            store_64_flags(out, window * _WINDOW, _window(fields, TABLE, window * _WINDOW))
    done = _RECALL_WINDOWS if observation == RECALL else _TABLE_WINDOWS
    for begin in range(done * _WINDOW, last, _WINDOW):
        store_64_flags(out, begin, _window(fields, observation, begin))
    if observation == TABLE:
        out[_DRAW_DECK_SIZE] = sizes[0]
        out[_SPY_DECK_SIZE] = sizes[1]
        out[_SPY_DISCARD_SIZE] = sizes[2]


@kernel
def read_recall(row: Any, state: Any) -> None:
    """Rebuild a position from a ``recall`` observation, the inverse of write_observation.

    Args:
        row: array of shape (d,).
        state: record of dtype STATE, overwritten; the outcome of a game that is over can't be seen
            and is left at NO_OUTCOME.
    """
    state.hand = _read_cards(row, _HAND, cards.NUM_CARDS)
    state.draw_discard = _read_cards(row, _DRAW_DISCARD, cards.NUM_CARDS)
    state.draw_deck = _read_cards(row, _DRAW_DECK, cards.NUM_CARDS)
    state.spy_deck = _read_cards(row, _SPY_DECK, cards.NUM_SPIES) << _FIRST_SPY
    state.spy_discard = _read_cards(row, _SPY_DISCARD, cards.NUM_CARDS)
    spy = _read_cards(row, _SPY, cards.NUM_SPIES)
    state.spy = game.NO_SPY
    if spy != _ZERO:
        state.spy = np.int8(lowest_bit_index(spy) + _FIRST_SPY)
    state.phase = game.OVER
    if row[_PHASE]:
        state.phase = game.ACT
    elif row[_PHASE + 1]:
        state.phase = game.RETIRE
    state.outcome = game.NO_OUTCOME


@kernel
def write_packed(state: Any, words: Any) -> None:
    """Write a packed ``recall`` observation.

    Args:
        state: record of dtype STATE.
        words: uint64 array of shape (6,), overwritten.
    """
    words[0] = state.hand
    words[1] = state.draw_discard
    words[2] = state.draw_deck
    words[3] = state.spy_deck
    words[4] = state.spy_discard
    spy = _spy_bit(state)
    if state.phase == game.ACT:
        spy |= _ACT_BIT
    elif state.phase == game.RETIRE:
        spy |= _RETIRE_BIT
    words[5] = spy


@kernel
def read_packed(words: Any, state: Any) -> None:
    """Rebuild a position from a packed observation; as read_recall.

    Args:
        words: uint64 array of shape (6,).
        state: record of dtype STATE, overwritten.
    """
    state.hand = words[0]
    state.draw_discard = words[1]
    state.draw_deck = words[2]
    state.spy_deck = words[3]
    state.spy_discard = words[4]
    spy = words[5] & (_ACT_BIT - _ONE)
    state.spy = game.NO_SPY
    if spy != _ZERO:
        state.spy = np.int8(lowest_bit_index(spy))
    state.phase = game.OVER
    if words[5] & _ACT_BIT:
        state.phase = game.ACT
    elif words[5] & _RETIRE_BIT:
        state.phase = game.RETIRE
    state.outcome = game.NO_OUTCOME
