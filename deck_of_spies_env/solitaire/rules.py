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
from deck_of_spies_env.checks import as_rule_set
from deck_of_spies_env.compiled import (
    deposit_bits,
    extract_bits,
    kernel,
    lowest_bit_index,
    popcount,
)
from deck_of_spies_env.random_streams import begin_episode, pick_uniform
from deck_of_spies_env.subset_totals import NUM_SLOTS, NUM_SUBSETS, rests_reach, totals_reach

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
        return as_rule_set(cls, rules)

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
_THREE = np.uint64(3)
_SLOT_BITS = np.uint64(8)
_SLOT_MASK = np.uint64(0xFF)
_SUM_SLOTS = np.uint64(0x0101010101010101)
_TOP_BITS = np.uint64(0x8080808080808080)
_JUST_BELOW_TOP_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_SEVEN = np.uint64(7)
_GATHER = np.uint64(0x0102040810204080)  # times bytes of 0 or 1: their bits in the top byte
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
_WITH_VALUE_BIT_0, _WITH_VALUE_BIT_1, _WITH_VALUE_BIT_2, _WITH_VALUE_BIT_3 = (
    np.uint64(sum(1 << c for c in range(cards.NUM_CARDS) if cards.card_value(c) >> bit & 1))
    for bit in range(4)
)

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
    return deposit_bits(subset, hand)


@kernel
def slots_of(hand: np.uint64, chosen: np.uint64) -> np.uint64:
    """The slot subset of those hand cards that are in ``chosen``: the inverse of cards_at."""
    return extract_bits(chosen, hand)


@kernel
def total_value(hand: np.uint64) -> np.uint64:
    """Total value of cards: how many have each bit of a value, times that bit."""
    total = popcount(hand & _WITH_VALUE_BIT_0)
    total += popcount(hand & _WITH_VALUE_BIT_1) << _ONE
    total += popcount(hand & _WITH_VALUE_BIT_2) << _TWO
    return total + (popcount(hand & _WITH_VALUE_BIT_3) << _THREE)


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


# Plays are judged 32 slot subsets at a time: bit k of chunk j stands for the subset 32j + k. So the
# part of slots 0-4 is the same in every chunk, and j is that of the slots beyond.
_NUM_LOW_SLOTS = np.uint64(NUM_SLOTS)
_LOW_SLOTS = np.uint64(NUM_SUBSETS - 1)
_EVERY_SUBSET = np.uint64((1 << NUM_SUBSETS) - 1)

_WITH_ANY = np.array(
    [
        sum(1 << subset for subset in range(NUM_SUBSETS) if subset & slots)
        for slots in range(NUM_SUBSETS)
    ],
    dtype=np.uint64,
)
"""Shape (32,): for each set of slots 0-4, the subsets that hold any of them."""


@kernel
def num_play_chunks(state: Any) -> int:
    """Number of chunks that the subsets of the hand fill, for legal_plays."""
    return 1 << max(int(popcount(state.hand)) - NUM_SLOTS, 0)


@kernel
def _with_any(slots: np.uint64, high: np.uint64) -> np.uint64:
    """The subsets, of slots 0-4 and all of ``high``, that hold any of ``slots``."""
    return _EVERY_SUBSET if slots & high else _WITH_ANY[slots & _LOW_SLOTS]


@kernel
def _lowest_value_or_0(values: np.uint64, subset: np.uint64) -> np.uint64:
    return lowest_value(values, subset) if subset else _ZERO


@kernel
def legal_plays(state: Any, rules: Any, chunk: int) -> tuple[np.uint64, np.uint64]:
    """Which of 32 slot subsets counter the spy (D1), and which recruit it (D2-D5).

    Args:
        state: record of dtype STATE, in phase ACT.
        rules: record of dtype RULES.
        chunk: j, for the subsets 32j to 32j + 31; below num_play_chunks.

    Returns:
        Two words with a bit for each subset: counters, recruits.
    """
    hand = state.hand
    values, target = pack_values(hand), spy_value(state)
    off_suit_slots = ~slots_of(hand, _SUIT << spy_suit(state))
    double_agent = slots_of(hand, _ONE << spy_suit(state))  # the slot of its suit's Ace, or none
    high = np.uint64(chunk) << _NUM_LOW_SLOTS
    base = subset_total(values, high)
    enough = totals_reach(values, base, target)
    # D1: without its cheapest card, so without any, the rest must fall short.
    cheapest = _lowest_value_or_0(values, high)
    counters = enough & ~rests_reach(values, base, cheapest, _ZERO, target)
    # D3: the Ace of the spy's suit counts in the total but need not be missed itself. It is among
    # slots 0-3, as there are four Aces.
    led = enough & ~rests_reach(values, base, cheapest, SLOT_MASKS[double_agent], target)
    off_suit = _with_any(off_suit_slots, high)
    if not rules.idle_ace:  # D4: it converts a card, or is needed for its one point
        led &= off_suit | ~totals_reach(values, base, target + _ONE)
    leads = _with_any(double_agent, high)
    recruits = (counters & ~off_suit & ~leads) | (led & leads)
    held = _EVERY_SUBSET
    if popcount(hand) < _NUM_LOW_SLOTS:
        held = (_ONE << (_ONE << popcount(hand))) - _ONE
    return counters & held, recruits & held


@kernel
def equal_neighbours(hand: np.uint64) -> np.uint64:
    """Bit k: the cards in slots k and k + 1 share a rank. Cards can be retired together (D9) if
    that holds from the first to the last of them.
    """
    values = pack_values(hand)
    different = (values ^ (values >> _SLOT_BITS)) + _JUST_BELOW_TOP_BITS
    equal = (~different & _TOP_BITS) >> _SEVEN
    neighbours = ((_ONE << popcount(hand)) - _ONE) >> _ONE  # one less than there are cards
    return ((equal * _GATHER) >> _TOP_SLOT_SHIFT) & neighbours


@kernel
def must_assassinate(state: Any) -> np.bool_:
    """D7: the whole hand falls short of the spy."""
    return total_value(state.hand) < spy_value(state)


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
