"""Observations: a named layout, and the kernels that write and read it.

Both kinds are flat int8 vectors made of named fields. ``recall`` is all that a player with perfect
memory knows (D14), hence Markov: every card's zone. ``table`` is what lies in sight: the hand, the
top spy, the face-up Draw Discard and the sizes of the face-down piles.

A field of cards has one 0/1 entry per card, in the order of card indices; fields of spies leave the
sixteen low cards out. ``slots`` tells for each hand slot the rank (13 entries) and suit (4 entries)
of its card, one-hot, all zero for an empty slot: the same cards as ``hand``, in the order in which
actions name them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import kernel, lowest_bit_index, popcount
from deck_of_spies_env.solitaire import rules as game

RECALL, TABLE = 0, 1
OBSERVATIONS = ("recall", "table")

SLOT_WIDTH = cards.NUM_RANKS + cards.NUM_SUITS


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
    layout: dict[str, slice] = {}
    start = 0
    for field in observation_fields(observation, hand_size):
        layout[field.name] = slice(start, start + field.width)
        start += field.width
    return layout


def observation_high(observation: str = "recall", hand_size: int = 5) -> npt.NDArray[np.int8]:
    """Largest value of each entry, int8 of shape (d,); the lowest is 0 throughout."""
    fields = observation_fields(observation, hand_size)
    return np.repeat(
        np.array([field.high for field in fields], dtype=np.int8),
        [field.width for field in fields],
    )


def layout_table(observation: str = "recall", hand_size: int = 5) -> str:
    """The layout as a markdown table, as in ``docs/environment.md``."""
    layout = observation_layout(observation, hand_size)
    lines = ["| field | slice | width | values | meaning |", "|---|---|---|---|---|"]
    for field in observation_fields(observation, hand_size):
        place = layout[field.name]
        lines.append(
            f"| `{field.name}` | {place.start}:{place.stop} | {field.width} | 0-{field.high} "
            f"| {field.meaning} |"
        )
    return "\n".join(lines) + "\n"


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
_ZERO = np.uint64(0)
_FIRST_SPY = np.uint64(cards.FIRST_SPY)


@kernel
def _write_cards(mask: np.uint64, first: int, count: int, out: Any) -> None:
    for index in range(count):
        out[first + index] = (mask >> np.uint64(index)) & _ONE


@kernel
def _read_cards(row: Any, first: int, count: int) -> np.uint64:
    mask = _ZERO
    for index in range(count):
        mask |= np.uint64(row[first + index] != 0) << np.uint64(index)
    return mask


@kernel
def _write_slots(hand: np.uint64, first: int, hand_size: int, out: Any) -> None:
    out[first : first + hand_size * SLOT_WIDTH] = 0
    while hand != _ZERO:
        card = np.int64(lowest_bit_index(hand))
        out[first + card // cards.NUM_SUITS] = 1
        out[first + cards.NUM_RANKS + card % cards.NUM_SUITS] = 1
        first += SLOT_WIDTH
        hand &= hand - _ONE


@kernel
def write_observation(state: Any, rules: Any, observation: int, out: Any) -> None:
    """Write an observation.

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        observation: RECALL or TABLE.
        out: int8 array of shape (d,), overwritten.
    """
    _write_cards(state.hand, _HAND, cards.NUM_CARDS, out)
    out[_SPY : _SPY + cards.NUM_SPIES] = 0
    if state.spy != game.NO_SPY:
        out[_SPY + state.spy - cards.FIRST_SPY] = 1
    out[_PHASE] = state.phase == game.ACT
    out[_PHASE + 1] = state.phase == game.RETIRE
    _write_cards(state.draw_discard, _DRAW_DISCARD, cards.NUM_CARDS, out)
    if observation == RECALL:
        _write_cards(state.draw_deck, _DRAW_DECK, cards.NUM_CARDS, out)
        _write_cards(state.spy_deck >> _FIRST_SPY, _SPY_DECK, cards.NUM_SPIES, out)
        _write_cards(state.spy_discard, _SPY_DISCARD, cards.NUM_CARDS, out)
        _write_slots(state.hand, _RECALL_SLOTS, rules.hand_size, out)
    else:
        out[_DRAW_DECK_SIZE] = popcount(state.draw_deck)
        out[_SPY_DECK_SIZE] = popcount(state.spy_deck)
        out[_SPY_DISCARD_SIZE] = popcount(state.spy_discard)
        _write_slots(state.hand, _TABLE_SLOTS, rules.hand_size, out)


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
