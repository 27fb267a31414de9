"""The action table: index <-> (kind, slot subset), one table per hand size.

With a hand of h cards the n = 2(2^h - 1) + 4 + C(h-1,2) + C(h-1,3) + C(h-1,4) + 1 actions are::

    counter x (2^h - 1) | recruit x (2^h - 1) | assassinate x 4 | retire x subsets of 2-4 | pass

Counter and recruit run over the non-empty slot subsets in the order of their masks (subset 1 is
slot 0 alone, 3 is slots 0 and 1). Assassinate runs over the suits of the Ace given up, c d h s.
Retire runs over the subsets of two to four of the h - 1 slots that a play can leave, again by mask;
the hand is sorted into slots anew for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import (
    deposit_bits,
    kernel,
    lowest_bit_index,
    popcount,
    store_16_flags,
    store_64_flags,
)
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.rules import KINDS, MAX_HAND_SIZE
from deck_of_spies_env.subset_totals import NUM_SUBSETS

_RETIRE_SIZES = (2, 3, 4)

WORD_BITS = 64


def _retire_subsets(hand_size: int) -> list[int]:
    """Slot masks of the retire actions, in their order: two to four of the slots left by a play."""
    return [subset for subset in range(1 << (hand_size - 1)) if subset.bit_count() in _RETIRE_SIZES]


NUM_RETIRES: npt.NDArray[Any] = np.array(
    [0] + [len(_retire_subsets(hand_size)) for hand_size in range(1, MAX_HAND_SIZE + 1)]
)
"""int64 (9,): the number of retire actions by hand size."""

# Those of a smaller hand are the first ones of a larger hand's.
_SUBSETS = _retire_subsets(MAX_HAND_SIZE)
RETIRE_SUBSETS = np.array(_SUBSETS, dtype=np.uint64)
"""uint64 (91,): slot masks of the retire actions, for the largest hand."""


def _legal_retires(equal_neighbours: int) -> list[int]:
    """Which retire actions D9 allows, as two words of bits."""
    bits = 0
    for place, subset in enumerate(_SUBSETS):
        lowest, highest = (subset & -subset).bit_length() - 1, subset.bit_length() - 1
        between = (1 << highest) - (1 << lowest)
        bits |= (between & ~equal_neighbours == 0) << place
    return [bits & ((1 << WORD_BITS) - 1), bits >> WORD_BITS]


_LEGAL_RETIRES = np.array(
    [_legal_retires(equal) for equal in range(1 << (MAX_HAND_SIZE - 1))], dtype=np.uint64
)
"""uint64 (128, 2): the legal retire actions as bits, by rules.equal_neighbours."""


class Action(NamedTuple):
    """An action in the game's own terms.

    Attributes:
        kind: ``counter``, ``recruit``, ``assassinate``, ``retire`` or ``pass``.
        cards: the hand cards used, sorted by (rank, suit); the Ace given up; or none for a pass.
    """

    kind: str
    cards: tuple[str, ...]


class ActionTable:
    """The action table for one hand size.

    Args:
        hand_size: 3-8.

    Attributes:
        num_actions: n, 78 for a hand of 5.
        num_subsets: 2^h - 1, the number of counters, and of recruits.
        num_words: 64-bit words that a mask of n bits takes.
    """

    def __init__(self, hand_size: int) -> None:
        self.hand_size = hand_size
        self.num_subsets = (1 << hand_size) - 1
        self._retire_subsets = _retire_subsets(hand_size)
        sizes = (
            *(self.num_subsets, self.num_subsets),
            *(cards.NUM_SUITS, len(self._retire_subsets), 1),
        )
        starts = [0, *np.cumsum(sizes).tolist()]
        self.num_actions = int(starts[-1])
        self.num_words = -(-self.num_actions // WORD_BITS)
        self._ranges = {
            kind: range(start, stop)
            for kind, start, stop in zip(KINDS, starts, starts[1:], strict=False)
        }

    def actions_of(self, kind: str) -> range:
        """The indices of all actions of a kind.

        Raises:
            ValueError: no such kind.
        """
        if kind not in self._ranges:
            raise ValueError(f"unknown kind of action {kind!r}; there are {', '.join(KINDS)}")
        return self._ranges[kind]

    def kind_of(self, action: int) -> str:
        """The kind of an action index.

        Raises:
            IllegalActionError: the index is not in 0 ... n - 1.
        """
        for kind, indices in self._ranges.items():
            if action in indices:
                return kind
        raise IllegalActionError(
            f"action {action} does not exist: there are 0 to {self.num_actions - 1}"
        )

    def slots_of(self, action: int) -> int:
        """The slot subset of an action: of a counter, recruit or retire; 0 for the others."""
        kind = self.kind_of(action)
        offset = action - self._ranges[kind].start
        if kind in ("counter", "recruit"):
            return offset + 1
        if kind == "retire":
            return self._retire_subsets[offset]
        return 0

    def decode(self, action: int, hand: int) -> Action:
        """The action in the game's terms, for a hand given as card mask.

        Raises:
            IllegalActionError: the index does not exist, or names slots that the hand lacks.
        """
        kind = self.kind_of(action)
        if kind == "assassinate":
            return Action(kind, (cards.card_text(action - self._ranges[kind].start),))
        held = cards.cards_in(hand)
        slots = [slot for slot in range(self.hand_size) if self.slots_of(action) >> slot & 1]
        if slots and slots[-1] >= len(held):
            raise IllegalActionError(
                f"action {action} ({kind}) uses slot {slots[-1]}, the hand has {len(held)} cards"
            )
        return Action(kind, tuple(held[slot] for slot in slots))

    def encode(self, kind: str, named: Iterable[str], hand: int) -> int:
        """The index of an action named by kind and cards, for a hand given as card mask.

        The cards may come in any order. Legality is not judged here, only that the table has it.

        Raises:
            ValueError: unknown kind, bad card, a card that is not in hand, no Ace for an
                assassination, or a number of cards that the kind can't have.
        """
        indices = self.actions_of(kind)
        chosen = cards.mask_of(named)
        if kind == "pass":
            if chosen:
                raise ValueError(f"a pass names no cards, got {_listed(chosen)}")
            return indices.start
        if kind == "assassinate":
            if chosen.bit_count() != 1 or chosen & ~cards.ACES:
                raise ValueError(f"an assassination names one Ace, got {_listed(chosen)}")
            return indices.start + chosen.bit_length() - 1
        if chosen & ~hand:
            raise ValueError(f"{_listed(chosen & ~hand)} is not in hand ({_listed(hand)})")
        held = cards.indices_in(hand)
        subset = sum(1 << slot for slot, card in enumerate(held) if chosen >> card & 1)
        if kind == "retire":
            return indices.start + self._retire_offset(subset, chosen)
        if not subset:
            raise ValueError(f"a {kind} names at least one card")
        return indices.start + subset - 1

    def _retire_offset(self, subset: int, chosen: int) -> int:
        if subset not in self._retire_subsets:
            raise ValueError(
                f"retiring takes 2 to 4 of up to {self.hand_size - 1} cards, got {_listed(chosen)}"
            )
        return self._retire_subsets.index(subset)


@cache
def action_table(hand_size: int) -> ActionTable:
    """The one table for a hand size (shared, so treat it as read-only)."""
    return ActionTable(hand_size)


def _listed(mask: int) -> str:
    return ", ".join(cards.cards_in(mask)) or "no cards"


# --- Kernels: the same table by arithmetic ---

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_WORD_BITS = np.uint64(WORD_BITS)
_WORD_SHIFT, _PLACE_MASK = np.uint64(6), np.uint64(63)


@kernel
def num_subsets_of(rules: Any) -> int:
    """Number of counters, and of recruits."""
    return (1 << rules.hand_size) - 1


@kernel
def num_retires_of(rules: Any) -> int:
    """Number of retire actions."""
    return int(NUM_RETIRES[rules.hand_size])


@kernel
def first_assassination(rules: Any) -> int:
    """Index of the first assassination; counters, then recruits, come before."""
    return 2 * num_subsets_of(rules)


@kernel
def first_retire(rules: Any) -> int:
    """Index of the first retire action."""
    return first_assassination(rules) + cards.NUM_SUITS


@kernel
def pass_action(rules: Any) -> int:
    """Index of the pass, the last action."""
    return first_retire(rules) + num_retires_of(rules)


@kernel
def action_kind(action: int, rules: Any) -> int:
    """Kind code of an existing action index."""
    if action < num_subsets_of(rules):
        return game.KIND_COUNTER
    if action < first_assassination(rules):
        return game.KIND_RECRUIT
    if action < first_retire(rules):
        return game.KIND_ASSASSINATE
    if action < pass_action(rules):
        return game.KIND_RETIRE
    return game.KIND_PASS


@kernel
def action_cards(action: int, kind: int, hand: np.uint64, rules: Any) -> np.uint64:
    """The cards of an action as a mask: hand cards, the Ace given up, or none for a pass."""
    if kind == game.KIND_COUNTER:
        return game.cards_at(hand, np.uint64(action + 1))
    if kind == game.KIND_RECRUIT:
        return game.cards_at(hand, np.uint64(action - num_subsets_of(rules) + 1))
    if kind == game.KIND_ASSASSINATE:
        return _ONE << np.uint64(action - first_assassination(rules))
    if kind == game.KIND_RETIRE:
        return game.cards_at(hand, RETIRE_SUBSETS[action - first_retire(rules)])
    return _ZERO


# --- Masks ---


@kernel
def add_bits(legal: Any, place: np.uint64, bits: np.uint64) -> None:
    """Set up to 64 bits from a place on; those beyond the array must be 0."""
    word, shift = place >> _WORD_SHIFT, place & _PLACE_MASK
    legal[word] |= bits << shift
    if shift != _ZERO:
        beyond = bits >> (_WORD_BITS - shift)
        if beyond != _ZERO:
            legal[word + _ONE] |= beyond


@kernel
def _add_plays(state: Any, rules: Any, legal: Any) -> None:
    """Set the bits of counters and recruits."""
    recruits_from = np.uint64(num_subsets_of(rules))
    counters, recruits = game.legal_plays(state, rules, 0)
    # Subset k has the place k - 1; the empty one has none and is never legal.
    add_bits(legal, _ZERO, counters >> _ONE)
    add_bits(legal, recruits_from, recruits >> _ONE)
    for chunk in range(1, game.num_play_chunks(state)):
        counters, recruits = game.legal_plays(state, rules, chunk)
        place = np.uint64(NUM_SUBSETS * chunk - 1)
        add_bits(legal, place, counters)
        add_bits(legal, place + recruits_from, recruits)


@kernel
def write_legal_bits(state: Any, rules: Any, legal: Any) -> None:
    """Write which actions are legal now, one bit an action.

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        legal: uint64 array of shape (num_words,), overwritten; action a is bit a % 64 of word
            a // 64. All 0 when the game is over.
    """
    for word in range(legal.shape[0]):
        legal[word] = _ZERO
    if state.phase == game.RETIRE:
        retires = _LEGAL_RETIRES[game.equal_neighbours(state.hand)]
        first = np.uint64(first_retire(rules))
        add_bits(legal, first, retires[0])
        if retires[1] != _ZERO:
            add_bits(legal, first + _WORD_BITS, retires[1])
        add_bits(legal, np.uint64(pass_action(rules)), _ONE)
    elif state.phase == game.ACT:
        if game.must_assassinate(state):
            left = game.double_agents_left(state)  # Aces are the first four cards, c d h s
            add_bits(legal, np.uint64(first_assassination(rules)), left)
        else:
            _add_plays(state, rules, legal)


@kernel
def write_action_mask(legal: Any, mask: Any) -> None:
    """Write a mask of bits as one of bytes.

    In windows of 64, or of 16 for few actions. The last one overlaps the one before and goes first,
    as all that is needed as a rule is better read before anything is written.

    Args:
        legal: uint64 array of shape (num_words,), of write_legal_bits.
        mask: contiguous int8 array of shape (n,), overwritten with 0 and 1.
    """
    num_actions = mask.shape[0]
    first = legal[0]
    if num_actions < WORD_BITS:  # 20 or 39, for a hand of 3 or 4
        store_16_flags(mask, num_actions - 16, first >> np.uint64(num_actions - 16))
        store_16_flags(mask, 0, first)
        if num_actions > 32:
            store_16_flags(mask, 16, first >> np.uint64(16))
    else:
        last = num_actions - WORD_BITS
        word, shift = np.uint64(last) >> _WORD_SHIFT, np.uint64(last) & _PLACE_MASK
        # In two steps, as a shift by 64 is undefined.
        beyond = (legal[word + _ONE] << (_PLACE_MASK - shift)) << _ONE
        store_64_flags(mask, last, (legal[word] >> shift) | beyond)
        store_64_flags(mask, 0, first)
        for window in range(1, legal.shape[0] - 1):
            store_64_flags(mask, window * WORD_BITS, legal[window])


@kernel
def num_legal(legal: Any) -> np.uint64:
    """Number of legal actions in a mask of bits."""
    count = _ZERO
    for word in range(legal.shape[0]):
        count += popcount(legal[word])
    return count


@kernel
def nth_legal(legal: Any, number: np.uint64) -> int:
    """The legal action that has ``number`` legal ones before it; there must be one."""
    for word in range(legal.shape[0]):
        here = popcount(legal[word])
        if number < here:
            chosen = deposit_bits(_ONE << number, legal[word])
            return WORD_BITS * word + int(lowest_bit_index(chosen))
        number -= here
    return -1


@kernel
def allows(legal: Any, action: int) -> bool:
    """Whether a mask of bits allows an existing action."""
    place = np.uint64(action)
    return (legal[place >> _WORD_SHIFT] >> (place & _PLACE_MASK)) & _ONE != _ZERO


@kernel
def is_among(legal: Any, rules: Any, action: int) -> bool:
    """Whether an action is legal; any integer may be asked about.

    Args:
        legal: uint64 array of shape (num_words,), of write_legal_bits.
        rules: record of dtype RULES.
        action: an index, or not.
    """
    return 0 <= action <= pass_action(rules) and allows(legal, action)
