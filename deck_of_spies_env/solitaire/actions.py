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
from deck_of_spies_env.compiled import kernel, store_word
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.rules import KINDS

_RETIRE_SIZES = (2, 3, 4)

RETIRE_SUBSET = np.dtype([("subset", np.uint64), ("lowest", np.uint64), ("highest", np.uint64)])
"""A retire action: its slot mask, and the indices of its first and last slot."""


class Action(NamedTuple):
    """An action in the game's own terms.

    Attributes:
        kind: ``counter``, ``recruit``, ``assassinate``, ``retire`` or ``pass``.
        cards: the hand cards used, sorted by (rank, suit); the Ace given up; or none for a pass.
    """

    kind: str
    cards: tuple[str, ...]


class IllegalActionError(ValueError):
    """An action that the rules do not allow now; nothing has changed."""


class ActionTable:
    """The action table for one hand size.

    Args:
        hand_size: 3-8.

    Attributes:
        num_actions: n, 78 for a hand of 5.
        num_subsets: 2^h - 1, the number of counters, and of recruits.
        retire_subsets: array of dtype RETIRE_SUBSET, in the order of the retire actions.
    """

    def __init__(self, hand_size: int) -> None:
        self.hand_size = hand_size
        self.num_subsets = (1 << hand_size) - 1
        subsets = [
            subset for subset in range(1 << (hand_size - 1)) if subset.bit_count() in _RETIRE_SIZES
        ]
        self.retire_subsets: npt.NDArray[Any] = np.zeros(len(subsets), dtype=RETIRE_SUBSET)
        self.retire_subsets["subset"] = subsets
        self.retire_subsets["lowest"] = [(s & -s).bit_length() - 1 for s in subsets]
        self.retire_subsets["highest"] = [s.bit_length() - 1 for s in subsets]
        sizes = (self.num_subsets, self.num_subsets, cards.NUM_SUITS, len(subsets), 1)
        starts = [0, *np.cumsum(sizes).tolist()]
        self.num_actions = int(starts[-1])
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
            return int(self.retire_subsets["subset"][offset])
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
        found = np.flatnonzero(self.retire_subsets["subset"] == subset)
        if not found.size:
            raise ValueError(
                f"retiring takes 2 to 4 of up to {self.hand_size - 1} cards, got {_listed(chosen)}"
            )
        return int(found[0])


@cache
def action_table(hand_size: int) -> ActionTable:
    """The one table for a hand size (shared, so treat it as read-only)."""
    return ActionTable(hand_size)


def _listed(mask: int) -> str:
    return ", ".join(cards.cards_in(mask)) or "no cards"


@kernel
def action_kind(action: int, num_subsets: int, num_retires: int) -> int:
    """Kind code of an existing action index."""
    if action < num_subsets:
        return game.KIND_COUNTER
    if action < 2 * num_subsets:
        return game.KIND_RECRUIT
    if action < 2 * num_subsets + cards.NUM_SUITS:
        return game.KIND_ASSASSINATE
    if action < 2 * num_subsets + cards.NUM_SUITS + num_retires:
        return game.KIND_RETIRE
    return game.KIND_PASS


@kernel
def action_cards(
    action: int, kind: int, hand: np.uint64, num_subsets: int, retire_subsets: Any
) -> np.uint64:
    """The cards of an action as a mask: hand cards, the Ace given up, or none for a pass."""
    if kind == game.KIND_COUNTER:
        return game.cards_at(hand, np.uint64(action + 1))
    if kind == game.KIND_RECRUIT:
        return game.cards_at(hand, np.uint64(action - num_subsets + 1))
    if kind == game.KIND_ASSASSINATE:
        return np.uint64(1) << np.uint64(action - 2 * num_subsets)
    if kind == game.KIND_RETIRE:
        offset = action - 2 * num_subsets - cards.NUM_SUITS
        return game.cards_at(hand, retire_subsets[offset].subset)
    return np.uint64(0)


_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_EIGHT, _FORTY_EIGHT = np.uint64(8), np.uint64(48)
_SECOND_BYTE = np.uint64(0xFF00)


@kernel
def _write_plays(state: Any, rules: Any, num_subsets: int, mask: Any) -> None:
    """Write the mask of counters and recruits, eight subsets at a time."""
    terms = game.play_terms(state)
    for word in range(game.num_play_words(state)):
        counters, recruits = game.legal_plays(terms, rules, word)
        # Subset 8j has its place one before offset 8j. The empty subset, which has none, is never
        # legal: its byte of 0 falls on the last counter, which is written after the recruits.
        store_word(mask, num_subsets - 1 + 8 * word, recruits)
        if word == 0:
            # The byte beyond subset 7 is that of subset 8, which comes next, or with a hand size of
            # 3 the first recruit, which has been written.
            beyond = (recruits & _SECOND_BYTE) << _FORTY_EIGHT if num_subsets < 8 else _ZERO
            store_word(mask, 0, (counters >> _EIGHT) | beyond)
        else:
            store_word(mask, 8 * word - 1, counters)


@kernel
def write_action_mask(state: Any, rules: Any, retire_subsets: Any, mask: Any) -> None:
    """Write which actions are legal now.

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        retire_subsets: the table's, dtype RETIRE_SUBSET.
        mask: contiguous int8 array of shape (n,), overwritten with 0 and 1; all 0 when the game is
            over.
    """
    mask[:] = 0
    num_subsets = (1 << rules.hand_size) - 1
    values = game.pack_values(state.hand)
    if state.phase == game.RETIRE:
        first = 2 * num_subsets + cards.NUM_SUITS
        for offset in range(retire_subsets.shape[0]):
            entry = retire_subsets[offset]
            mask[first + offset] = game.retire_is_legal(values, entry.lowest, entry.highest)
        mask[first + retire_subsets.shape[0]] = 1
    elif state.phase == game.ACT:
        if game.must_assassinate(state):
            left = game.double_agents_left(state)
            for suit in range(cards.NUM_SUITS):
                mask[2 * num_subsets + suit] = (left >> np.uint64(suit)) & np.uint64(1)
        else:
            _write_plays(state, rules, num_subsets, mask)


@kernel
def is_legal(state: Any, rules: Any, retire_subsets: Any, action: int) -> bool:
    """Whether one action is legal now; any integer may be asked about.

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        retire_subsets: the table's, dtype RETIRE_SUBSET.
        action: an index, or not.
    """
    num_subsets = (1 << rules.hand_size) - 1
    num_retires = retire_subsets.shape[0]
    num_actions = 2 * num_subsets + cards.NUM_SUITS + num_retires + 1
    if not 0 <= action < num_actions or state.phase == game.OVER:
        return False
    kind = action_kind(action, num_subsets, num_retires)
    if (state.phase == game.RETIRE) != (kind >= game.KIND_RETIRE):
        return False
    if kind == game.KIND_PASS:
        return True
    if kind == game.KIND_RETIRE:
        entry = retire_subsets[action - 2 * num_subsets - cards.NUM_SUITS]
        values = game.pack_values(state.hand)
        return bool(game.retire_is_legal(values, entry.lowest, entry.highest))
    if kind == game.KIND_ASSASSINATE:
        ace = _ONE << np.uint64(action - 2 * num_subsets)
        return (
            bool(game.must_assassinate(state)) and (game.double_agents_left(state) & ace) != _ZERO
        )
    return _is_legal_play(state, rules, kind, action % num_subsets + 1)


@kernel
def _is_legal_play(state: Any, rules: Any, kind: int, subset: int) -> bool:
    word, byte = subset // 8, subset % 8
    if word >= game.num_play_words(state):
        return False
    counters, recruits = game.legal_plays(game.play_terms(state), rules, word)
    chosen = counters if kind == game.KIND_COUNTER else recruits
    return ((chosen >> np.uint64(8 * byte)) & _ONE) != _ZERO
