"""The rules of Deck of Spies: switches, game state, and the kernels that deal, judge and move.

This is the only authority on the rules; every environment, bot and search calls these kernels.
Numbers such as D3 refer to the rulings in ``docs/rules.md``.

A game is one record of dtype :data:`STATE`, N games are an array of N records, and saving or
cloning a game is copying it. A face-down pile is a *set*: which card comes off it is decided when
it is drawn, from random streams that are not part of the state. For all anyone at the table can
tell that is a shuffled pile, and a copied state holds nothing that a player could not know (D14).

Within a hand, cards have *slots* 0, 1, ... in the order of (rank, suit); subsets of a hand are slot
masks. The values of a hand are packed eight bits to a slot into one word, so that the total of a
subset is one mask, one multiplication and one shift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import kernel, lowest_bit_index, popcount
from deck_of_spies_env.random_streams import begin_episode, pick_uniform

MIN_HAND_SIZE = 3
MAX_HAND_SIZE = 8

RULES = np.dtype(
    [
        ("hand_size", np.int64),
        ("key_spies_to_win", np.int64),
        ("idle_ace", np.bool_),
        ("eager_reshuffle", np.bool_),
    ]
)
"""The compiled form of :class:`Rules`."""


@dataclass(frozen=True)
class Rules:
    """A rule set: the default is the game as written, each field one other reading of it.

    Args:
        idle_ace: the Ace of the spy's suit may join a recruit that does not need it (D4).
        eager_reshuffle: a Draw Deck left empty by the draw is refilled at once, not only when the
            next card is needed (D10).
        hand_size: cards drawn up to, 3-8.
        key_spies_to_win: Key Spies held at the end that make a win, 1-12 (D12).

    Raises:
        ValueError: a field is of the wrong type or out of range; the message names it.
    """

    idle_ace: bool = True
    eager_reshuffle: bool = False
    hand_size: int = 5
    key_spies_to_win: int = 7

    def __post_init__(self) -> None:
        for name in ("idle_ace", "eager_reshuffle"):
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"rules: {name} must be true or false, got {value!r}")
            object.__setattr__(self, name, bool(value))
        for name, low, high in (
            ("hand_size", MIN_HAND_SIZE, MAX_HAND_SIZE),
            ("key_spies_to_win", 1, cards.NUM_KEY_SPIES),
        ):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or not low <= value <= high:
                raise ValueError(
                    f"rules: {name} must be a whole number {low}-{high}, got {value!r}"
                )
            object.__setattr__(self, name, int(value))

    @classmethod
    def of(cls, rules: Rules | Mapping[str, Any] | None) -> Rules:
        """A rule set from itself, from a mapping of its fields, or the default for None.

        Raises:
            ValueError: an unknown or ill-typed field, or no mapping at all.
        """
        if rules is None:
            return cls()
        if isinstance(rules, Rules):
            return rules
        # Callers hand over what a user wrote in a config file.
        if not isinstance(rules, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"rules must be a Rules or a mapping of its fields, got {rules!r}")
        known = [field.name for field in fields(cls)]
        for name in rules:
            if name not in known:
                raise ValueError(f"rules: unknown field {name!r}; there are {', '.join(known)}")
        return cls(**rules)

    @cached_property
    def record(self) -> npt.NDArray[Any]:
        """The rule set for kernels: an array of shape ``(1,)`` and dtype :data:`RULES`."""
        record = np.zeros(1, dtype=RULES)
        for field in fields(self):
            record[field.name] = getattr(self, field.name)
        return record


ACT, RETIRE, OVER = 0, 1, 2
"""Phases of :data:`STATE`: choose a play against the spy, then perhaps retire, and the end."""
PHASES = ("act", "retire", "over")

NO_OUTCOME, WIN, LOSS, NO_DOUBLE_AGENT, ILLEGAL_ACTION = 0, 1, 2, 3, 4
OUTCOMES = ("", "win", "loss", "no_double_agent", "illegal_action")
"""Names of the outcome codes; the first stands for a game that goes on."""

KIND_COUNTER, KIND_RECRUIT, KIND_ASSASSINATE, KIND_RETIRE, KIND_PASS = 0, 1, 2, 3, 4
KINDS = ("counter", "recruit", "assassinate", "retire", "pass")

NO_SPY = -1

STATE = np.dtype(
    [
        ("hand", np.uint64),  # card masks, see cards.py
        ("draw_deck", np.uint64),  # face down: a set, no order
        ("draw_discard", np.uint64),
        ("spy_deck", np.uint64),  # the spies not yet seen, without the top one
        ("spy_discard", np.uint64),
        ("spy", np.int8),  # card index of the spy on top of the Spy Deck, NO_SPY for none
        ("phase", np.int8),  # ACT, RETIRE or OVER
        ("outcome", np.int8),  # NO_OUTCOME while the game goes on
    ],
    align=True,
)
"""A game. A card in none of the zones has left the game (D7)."""

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_SLOT_BITS = np.uint64(8)
_SLOT_MASK = np.uint64(0xFF)
_SUM_SLOTS = np.uint64(0x0101010101010101)
_TOP_SLOT_SHIFT = np.uint64(56)
_ACES = np.uint64(cards.ACES)
_SUIT = np.uint64(0x1111111111111)
_SUIT_BITS = np.uint64(3)
_RANK_SHIFT = np.uint64(2)
_KEY_SPIES = np.uint64(cards.KEY_SPIES)
_TIER_1 = np.uint64(cards.SPY_TIERS[0])
_TIER_2 = np.uint64(cards.SPY_TIERS[1])
_PAIRS_1 = np.uint64(0x5555555555555)
_PAIRS_2 = np.uint64(0x3333333333333)
_TWO_OR_MORE = np.uint64(0x6666666666666)

SLOT_MASKS = np.array(
    [
        sum(0xFF << (8 * slot) for slot in range(MAX_HAND_SIZE) if subset >> slot & 1)
        for subset in range(1 << MAX_HAND_SIZE)
    ],
    dtype=np.uint64,
)
"""Shape (256,): for each slot subset the bytes of its slots, all ones."""


# --- Cards in hand ---


@kernel
def pack_values(hand: np.uint64) -> np.uint64:
    """Values of the hand's cards, eight bits each, slot 0 lowest; empty slots are 0."""
    packed = _ZERO
    shift = _ZERO
    while hand != _ZERO:
        value = (lowest_bit_index(hand) >> _RANK_SHIFT) + _ONE
        packed |= value << shift
        shift += _SLOT_BITS
        hand &= hand - _ONE
    return packed


@kernel
def total_of(values: np.uint64) -> np.uint64:
    """Total of packed values (at most 8 x 13, so it fits the eight bits of the top slot)."""
    return (values * _SUM_SLOTS) >> _TOP_SLOT_SHIFT


@kernel
def subset_total(values: np.uint64, subset: np.uint64) -> np.uint64:
    """Total value of a slot subset."""
    return total_of(values & SLOT_MASKS[subset])


@kernel
def lowest_value(values: np.uint64, subset: np.uint64) -> np.uint64:
    """Lowest value in a non-empty slot subset: that of its first slot, slots being sorted."""
    return (values >> (lowest_bit_index(subset) * _SLOT_BITS)) & _SLOT_MASK


@kernel
def cards_at(hand: np.uint64, subset: np.uint64) -> np.uint64:
    """The cards of a hand at the slots of a subset; slots beyond the hand name nothing."""
    chosen = _ZERO
    while hand != _ZERO and subset != _ZERO:
        lowest = hand & (~hand + _ONE)
        if subset & _ONE:
            chosen |= lowest
        subset >>= _ONE
        hand ^= lowest
    return chosen


@kernel
def slots_of(hand: np.uint64, chosen: np.uint64) -> np.uint64:
    """The slot subset of those hand cards that are in ``chosen``: the inverse of cards_at."""
    subset = _ZERO
    slot = _ONE
    while hand != _ZERO:
        lowest = hand & (~hand + _ONE)
        if chosen & lowest:
            subset |= slot
        slot <<= _ONE
        hand ^= lowest
    return subset


@kernel
def has_pair(hand: np.uint64) -> np.bool_:
    """Whether two cards of the hand share a rank: each nibble of the mask is a rank."""
    counts = hand - ((hand >> _ONE) & _PAIRS_1)
    counts = (counts & _PAIRS_2) + ((counts >> _TWO) & _PAIRS_2)
    return (counts & _TWO_OR_MORE) != _ZERO


# --- What is legal ---


@kernel
def spy_value(state: Any) -> np.uint64:
    """Value 5-13 of the spy on top; call only while there is one."""
    return (np.uint64(state.spy) >> _RANK_SHIFT) + _ONE


@kernel
def spy_suit(state: Any) -> np.uint64:
    """Suit 0-3 of the spy on top; call only while there is one."""
    return np.uint64(state.spy) & _SUIT_BITS


# Plays are judged eight subsets at a time: byte l of word j stands for the slot subset 8j + l. So
# slots 0-2 have the same byte pattern in every word, slots 3 and up are the bits of j. Totals stay
# below 128, which leaves the top bit of each byte to hold a comparison's result.
_BYTES = np.uint64(0x0101010101010101)
_TOP_BITS = np.uint64(0x8080808080808080)
_TOP_BIT = np.uint64(0x80)
_EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)
_SLOT_0, _SLOT_1, _SLOT_2 = np.uint64(1), np.uint64(2), np.uint64(4)
_WITH_SLOT_0 = np.uint64(0xFF00FF00FF00FF00)
_WITH_SLOT_1 = np.uint64(0xFFFF0000FFFF0000)
_WITH_SLOT_2 = np.uint64(0xFFFFFFFF00000000)
_LOW_SLOTS = 3
_NUM_LOW_SLOTS = np.uint64(_LOW_SLOTS)
_SEVEN = np.uint64(7)


@kernel
def _with_any(slots: np.uint64, high: np.uint64) -> np.uint64:
    """Full bytes where a subset, of slots 0-2 and all of ``high``, holds any of ``slots``."""
    if slots & high:
        return _EVERY
    pattern = _ZERO
    if slots & _SLOT_0:
        pattern |= _WITH_SLOT_0
    if slots & _SLOT_1:
        pattern |= _WITH_SLOT_1
    if slots & _SLOT_2:
        pattern |= _WITH_SLOT_2
    return pattern


@kernel
def _totals(values: np.uint64, high: np.uint64) -> np.uint64:
    """Bytes: the total of each subset of slots 0-2 together with all of ``high``."""
    total = subset_total(values, high) * _BYTES
    total += subset_total(values, _SLOT_0) * (_WITH_SLOT_0 & _BYTES)
    total += subset_total(values, _SLOT_1) * (_WITH_SLOT_1 & _BYTES)
    return total + subset_total(values, _SLOT_2) * (_WITH_SLOT_2 & _BYTES)


@kernel
def _cheapest(values: np.uint64, high: np.uint64, exempt: np.uint64) -> np.uint64:
    """Bytes: the lowest value in each subset but for the exempt slot; 0 where nothing else is."""
    cheapest = _ZERO
    if high & ~exempt:
        cheapest = lowest_value(values, high & ~exempt) * _BYTES
    if exempt != _SLOT_2:  # slots are sorted, so the lowest slot has the last word
        value = subset_total(values, _SLOT_2) * _BYTES
        cheapest = (cheapest & ~_WITH_SLOT_2) | (value & _WITH_SLOT_2)
    if exempt != _SLOT_1:
        value = subset_total(values, _SLOT_1) * _BYTES
        cheapest = (cheapest & ~_WITH_SLOT_1) | (value & _WITH_SLOT_1)
    if exempt != _SLOT_0:
        value = subset_total(values, _SLOT_0) * _BYTES
        cheapest = (cheapest & ~_WITH_SLOT_0) | (value & _WITH_SLOT_0)
    return cheapest


@kernel
def _at_least(totals: np.uint64, target: np.uint64) -> np.uint64:
    """Top bit of each byte: whether the total reaches the target."""
    return totals + (_TOP_BIT - target) * _BYTES


@kernel
def num_play_words(state: Any) -> int:
    """Number of words that the subsets of the hand fill, for legal_plays."""
    return 1 << max(int(popcount(state.hand)) - _LOW_SLOTS, 0)


@kernel
def play_terms(state: Any) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """What legal_plays needs to know of a state in phase ACT, made once for all its words.

    Returns:
        The packed values, the spy's value, the slots off its suit, the slot of its suit's Ace, and
        the top bits of those subsets of slots 0-2 that the hand has.
    """
    num_held = popcount(state.hand)
    held = _TOP_BITS
    if num_held < _NUM_LOW_SLOTS:
        held &= (_ONE << (_SLOT_BITS << num_held)) - _ONE
    return (
        pack_values(state.hand),
        spy_value(state),
        ~slots_of(state.hand, _SUIT << spy_suit(state)),
        slots_of(state.hand, _ONE << spy_suit(state)),
        held,
    )


@kernel
def legal_plays(
    terms: tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64], rules: Any, word: int
) -> tuple[np.uint64, np.uint64]:
    """Which of eight slot subsets counter the spy (D1), and which recruit it (D2-D5).

    Args:
        terms: of play_terms.
        rules: record of dtype RULES.
        word: j, for the subsets 8j to 8j + 7; below num_play_words.

    Returns:
        Two words of eight bytes, 1 where the subset is legal: counters, recruits.
    """
    values, target, off_suit_slots, double_agent, held = terms
    high = np.uint64(word << _LOW_SLOTS)
    totals = _totals(values, high)
    enough = _at_least(totals, target)
    # D1: without its cheapest card, so without any, the rest must fall short.
    counters = enough & ~_at_least(totals - _cheapest(values, high, _ZERO), target)
    off_suit = _with_any(off_suit_slots, high)
    recruits = counters & ~off_suit
    if double_agent != _ZERO:
        # D3: the Ace of the spy's suit counts in the total but need not be missed itself.
        led = enough & ~_at_least(totals - _cheapest(values, high, double_agent), target)
        if not rules.idle_ace:  # D4: it converts a card, or is needed for its one point
            led &= off_suit | ~_at_least(totals, target + _ONE)
        leads = _with_any(double_agent, high)
        recruits = (recruits & ~leads) | (led & leads)
    return (counters & held) >> _SEVEN, (recruits & held) >> _SEVEN


@kernel
def retire_is_legal(values: np.uint64, lowest: np.uint64, highest: np.uint64) -> np.bool_:
    """D9: the cards at both ends of the subset, so all between, share a rank.

    Args:
        lowest, highest: first and last slot (indices) of a subset of two to four slots.
    """
    first = (values >> (lowest * _SLOT_BITS)) & _SLOT_MASK
    last = (values >> (highest * _SLOT_BITS)) & _SLOT_MASK
    return first == last and first != _ZERO


@kernel
def must_assassinate(state: Any) -> np.bool_:
    """D7: the whole hand falls short of the spy."""
    return total_of(pack_values(state.hand)) < spy_value(state)


@kernel
def double_agents_left(state: Any) -> np.uint64:
    """The Aces that an assassination can cost (D7), as a card mask."""
    return (state.hand | state.draw_deck | state.draw_discard) & _ACES


# --- What happens ---


@kernel
def apply_play(state: Any, kind: int, chosen: np.uint64) -> None:
    """Move the cards of a legal play: all that is certain before any card is turned or drawn.

    Args:
        state: record in the phase of the play; changed in place. Afterwards ``spy`` is NO_SPY if
            the spy was dealt with.
        kind: KIND_COUNTER ... KIND_PASS.
        chosen: card mask of the cards played, retired, or the one Ace that is given up.
    """
    if kind == KIND_PASS:
        return
    if kind == KIND_RETIRE:
        state.hand &= ~chosen
        state.spy_discard |= chosen
        return
    spy = _ONE << np.uint64(state.spy)
    state.spy = NO_SPY
    if kind == KIND_ASSASSINATE:
        state.draw_deck &= ~chosen
        state.draw_discard = (state.draw_discard | state.hand) & ~chosen
        state.hand = _ZERO
        state.spy_discard |= spy
        return
    state.hand &= ~chosen
    state.draw_discard |= chosen
    if kind == KIND_RECRUIT:
        state.draw_discard |= spy
    else:
        state.spy_discard |= spy


@kernel
def turn_up_spy(state: Any, streams: Any) -> None:
    """Turn up the next spy, if any is left: a uniform one of the first tier that has some."""
    candidates = state.spy_deck & _TIER_1
    if candidates == _ZERO:
        candidates = state.spy_deck & _TIER_2
    if candidates == _ZERO:
        candidates = state.spy_deck
    if candidates == _ZERO:
        return
    spy, position = pick_uniform(candidates, streams.spies, streams.gamma)
    streams.spies = position
    state.spy_deck ^= spy
    state.spy = np.int8(lowest_bit_index(spy))


@kernel
def reshuffle(state: Any) -> None:
    """The Draw Discard becomes the Draw Deck (D10); as sets, no shuffle is needed."""
    state.draw_deck = state.draw_discard
    state.draw_discard = _ZERO


@kernel
def draw_cards(state: Any, streams: Any, rules: Any) -> None:
    """Draw up to the hand size, reshuffling as D10 says; stop short if both piles are empty."""
    missing = rules.hand_size - np.int64(popcount(state.hand))
    position = streams.draws
    for _ in range(missing):
        if state.draw_deck == _ZERO:
            reshuffle(state)
            if state.draw_deck == _ZERO:
                break
        card, position = pick_uniform(state.draw_deck, position, streams.gamma)
        state.draw_deck ^= card
        state.hand |= card
    streams.draws = position
    if rules.eager_reshuffle and state.draw_deck == _ZERO:
        reshuffle(state)


@kernel
def begin_turn(state: Any) -> None:
    """Enter the act phase, or lose at once if the spy can't be dealt with at all (D8)."""
    state.phase = ACT
    if must_assassinate(state) and double_agents_left(state) == _ZERO:
        state.phase = OVER
        state.outcome = NO_DOUBLE_AGENT


@kernel
def key_spies_held(state: Any) -> np.int64:
    """Key Spies in hand, Draw Deck and Draw Discard, 0-12."""
    return np.int64(popcount((state.hand | state.draw_deck | state.draw_discard) & _KEY_SPIES))


@kernel
def end_turn(state: Any, streams: Any, rules: Any) -> None:
    """Draw and go on, or judge the game once no spy is left (D12: nothing is drawn then)."""
    if state.spy == NO_SPY:
        state.phase = OVER
        state.outcome = WIN if key_spies_held(state) >= rules.key_spies_to_win else LOSS
        return
    draw_cards(state, streams, rules)
    begin_turn(state)


@kernel
def play(state: Any, streams: Any, rules: Any, kind: int, chosen: np.uint64) -> None:
    """One legal action with all its consequences, up to the next decision or the end.

    Args:
        state: record of dtype STATE, not over; changed in place.
        streams: record of dtype STREAMS; the positions used move on.
        rules: record of dtype RULES.
        kind, chosen: as in apply_play.
    """
    apply_play(state, kind, chosen)
    if kind <= KIND_ASSASSINATE:
        turn_up_spy(state, streams)  # before the retire decision (D9)
    if kind <= KIND_RECRUIT and has_pair(state.hand):
        state.phase = RETIRE
        return
    end_turn(state, streams, rules)


@kernel
def deal(state: Any, start: Any, deal_hand: bool, streams: Any, rules: Any) -> None:
    """Begin the next episode from a starting position.

    Args:
        state: record to overwrite.
        start: record of the position to begin with; a missing spy is turned up from its Spy Deck.
        deal_hand: whether the opening hand is drawn, or taken as it is in ``start``.
        streams, rules: as in play.
    """
    state.hand = start.hand
    state.draw_deck = start.draw_deck
    state.draw_discard = start.draw_discard
    state.spy_deck = start.spy_deck
    state.spy_discard = start.spy_discard
    state.spy = start.spy
    state.phase = start.phase
    state.outcome = NO_OUTCOME
    begin_episode(streams)
    if state.spy == NO_SPY:
        turn_up_spy(state, streams)
    if deal_hand:
        draw_cards(state, streams, rules)


def standard_start() -> npt.NDArray[Any]:
    """The position before the first deal: shape ``(1,)``, dtype STATE, no hand and no spy yet."""
    start = np.zeros(1, dtype=STATE)
    start["draw_deck"] = cards.ALL_CARDS & ~cards.SPIES
    start["spy_deck"] = cards.SPIES
    start["spy"] = NO_SPY
    return start
