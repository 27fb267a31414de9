"""The value of afterstates: a small network, from a position to a distribution of final Key Spies.

An *afterstate* is the position after a play's certain consequences, before a card is turned or
drawn (Sutton and Barto, 2018, section 6.8). The network reads which card lies in which zone, some
forty entries of 230 that are 1, through two hidden layers, and gives the probability of each final
number of Key Spies. Entries and units that are 0 are never touched.

Suits are sorted first, the spy's before the others: the 24 relabellings are an exact symmetry of
the game, so positions that differ by them alone are one position to the network.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import (
    compiling,
    entry_point,
    extract_bits,
    kernel,
    lowest_bit_index,
)
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import games
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.chance import copy_state, write_afterstate
from deck_of_spies_env.solitaire.rules import STATE, Rules
from deck_of_spies_env.vectors import LANES, add_rows, exponentials

NUM_COUNTS = cards.NUM_KEY_SPIES + 1
"""Final numbers of Key Spies, 0-12; a loss by D8 counts as 0."""

_HAND, _DRAW_DECK, _DRAW_DISCARD, _SPY_DECK = (place * cards.NUM_CARDS for place in range(4))
_SPY = _SPY_DECK + cards.NUM_SPIES
_PHASE = _SPY + cards.NUM_SPIES
NUM_ENTRIES = _PHASE + 2
"""Hand, Draw Deck, Draw Discard, unseen spies, the top spy if it is known, the phase."""
MOST_ENTRIES = cards.NUM_CARDS + 2
"""A card lies in one zone; the phase is one more."""

_ZERO, _ONE, _TWO, _THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_SUIT = np.uint64(0x1111111111111)
_NUM_RANKS = np.uint64(cards.NUM_RANKS)
_FIRST_SPY = np.uint64(cards.FIRST_SPY)
_ABOVE_ANY_KEY = _ONE << np.uint64(4 * cards.NUM_RANKS)
_WORD_BITS = table.WORD_BITS


class Network(NamedTuple):
    """Weights, float32; H and K are the widths of the hidden layers, multiples of LANES."""

    first: npt.NDArray[np.float32]  # (NUM_ENTRIES, H)
    first_bias: npt.NDArray[np.float32]  # (H,)
    second: npt.NDArray[np.float32]  # (H, K)
    second_bias: npt.NDArray[np.float32]  # (K,)
    last: npt.NDArray[np.float32]  # (K, LANES), the columns from NUM_COUNTS on unused
    last_bias: npt.NDArray[np.float32]  # (LANES,)


class Scratch(NamedTuple):
    """Room for one evaluation."""

    entries: npt.NDArray[np.int64]  # (MOST_ENTRIES,)
    ones: npt.NDArray[np.float32]  # (MOST_ENTRIES,)
    active: npt.NDArray[np.int64]  # (max(H, K),)
    hidden: npt.NDArray[np.float32]  # (H,)
    head: npt.NDArray[np.float32]  # (K,)
    counts: npt.NDArray[np.float32]  # (LANES,), the distribution
    best_counts: npt.NDArray[np.float32]  # (LANES,), that of the best play so far
    legal: npt.NDArray[np.uint64]  # (num_words,)
    states: npt.NDArray[Any]  # (2,), dtype STATE: a play's afterstate, and the best one so far


# --- What the network reads ---


@kernel
def _suit_key(state: Any, suit: np.uint64) -> np.uint64:
    """Where the cards of a suit lie: two suits with one key are alike."""
    mask = _SUIT << suit
    key = extract_bits(state.hand, mask)
    key = (key << _NUM_RANKS) | extract_bits(state.draw_deck, mask)
    key = (key << _NUM_RANKS) | extract_bits(state.draw_discard, mask)
    key = (key << _NUM_RANKS) | extract_bits(state.spy_deck, mask)
    if state.spy != game.NO_SPY and (np.uint64(state.spy) & _THREE) == suit:
        key |= _ABOVE_ANY_KEY
    return key


@kernel
def _places(state: Any) -> np.uint64:
    """The place of each suit in the order of descending keys, two bits a suit."""
    a, b = _suit_key(state, _ZERO), _suit_key(state, _ONE)
    c, d = _suit_key(state, _TWO), _suit_key(state, _THREE)
    first = np.uint64(b > a) + np.uint64(c > a) + np.uint64(d > a)
    second = np.uint64(a >= b) + np.uint64(c > b) + np.uint64(d > b)
    third = np.uint64(a >= c) + np.uint64(b >= c) + np.uint64(d > c)
    fourth = np.uint64(a >= d) + np.uint64(b >= d) + np.uint64(c >= d)
    return first | (second << np.uint64(2)) | (third << np.uint64(4)) | (fourth << np.uint64(6))


@kernel
def _add_zone(zone: np.uint64, base: int, places: np.uint64, entries: Any, count: int) -> int:
    while zone != _ZERO:
        card = lowest_bit_index(zone)
        place = (places >> ((card & _THREE) << _ONE)) & _THREE
        entries[count] = base + np.int64((card & ~_THREE) | place)
        count += 1
        zone &= zone - _ONE
    return count


@kernel
def read_entries(state: Any, entries: Any) -> int:
    """Write which entries of a position are 1, and return how many there are."""
    places = _places(state)
    count = _add_zone(state.hand, _HAND, places, entries, 0)
    count = _add_zone(state.draw_deck, _DRAW_DECK, places, entries, count)
    count = _add_zone(state.draw_discard, _DRAW_DISCARD, places, entries, count)
    count = _add_zone(state.spy_deck >> _FIRST_SPY, _SPY_DECK, places, entries, count)
    if state.spy != game.NO_SPY:
        rank = (np.uint64(state.spy) - _FIRST_SPY) & ~_THREE
        entries[count] = _SPY + np.int64(rank)  # its suit is the first
        count += 1
    entries[count] = _PHASE + np.int64(state.phase == game.RETIRE)
    return count + 1


# --- What it gives ---


@kernel
def _is_decided(state: Any) -> bool:
    """Whether no spy is left: what is held counts, as retiring can't add to it."""
    return state.spy == game.NO_SPY and state.spy_deck == _ZERO


@kernel
def _compact(values: Any, active: Any) -> int:
    """Move the positive values to the front, write where they were, and return how many."""
    count = 0
    for i in range(values.shape[0]):
        value = values[i]
        values[count] = value  # never beyond i
        active[count] = i
        count += value > 0
    return count


@kernel
def write_counts(state: Any, network: Any, scratch: Any) -> None:
    """Write the distribution of the final count of an afterstate into ``scratch.counts``."""
    counts = scratch.counts
    if _is_decided(state):
        counts[:] = np.float32(0)
        counts[game.key_spies_held(state)] = np.float32(1)
        return
    entries, active, hidden, head = scratch.entries, scratch.active, scratch.hidden, scratch.head
    hidden[:] = network.first_bias
    add_rows(hidden, network.first, entries, scratch.ones, read_entries(state, entries))
    head[:] = network.second_bias
    add_rows(head, network.second, active, hidden, _compact(hidden, active))
    counts[:] = network.last_bias
    add_rows(counts, network.last, active, head, _compact(head, active))
    top = counts[0]
    for k in range(1, NUM_COUNTS):
        top = max(top, counts[k])
    exponentials(counts, top)
    total = np.float32(0)
    for k in range(NUM_COUNTS):
        total += counts[k]
    for k in range(NUM_COUNTS):
        counts[k] /= total


@kernel
def _expected(counts: Any, utility: Any) -> np.float32:
    value = np.float32(0)
    for k in range(NUM_COUNTS):
        value += counts[k] * utility[k]
    return value


@kernel
def write_play_values(
    state: Any, rules: Any, network: Any, utility: Any, scratch: Any, values: Any
) -> int:
    """Write the expected utility of each legal action, and return the best action.

    ``scratch`` then holds its afterstate and distribution, and the legal actions.

    Args:
        state: record of dtype STATE, not over.
        rules: record of dtype RULES.
        network, utility, scratch: as in the functions below.
        values: float32 (n,); entries of illegal actions are left as they are.
    """
    legal, after, best_after = scratch.legal, scratch.states[0], scratch.states[1]
    table.write_legal_bits(state, rules, legal)
    best = -1
    for word in range(legal.shape[0]):
        bits = legal[word]
        while bits != _ZERO:
            action = _WORD_BITS * word + int(lowest_bit_index(bits))
            bits &= bits - _ONE
            write_afterstate(state, rules, action, after)
            write_counts(after, network, scratch)
            values[action] = _expected(scratch.counts, utility)
            if best < 0 or values[action] > values[best]:
                best = action
                copy_state(after, best_after)
                scratch.best_counts[:] = scratch.counts
    return best


@entry_point
def value_plays(
    states: Any, rules: Any, network: Any, utility: Any, scratch: Any, values: Any, best: Any
) -> None:
    """The expected utility of each legal action of N positions, and the best action of each.

    Args:
        states: shape (N,), dtype STATE, none over.
        rules: shape (1,), dtype RULES.
        network: the weights.
        utility: float32 (NUM_COUNTS,), what each final count is worth.
        scratch: overwritten.
        values: float32 (N, n); entries of illegal actions are left as they are.
        best: int64 (N,), overwritten; ties go to the lower index.
    """
    for i in range(states.shape[0]):
        best[i] = write_play_values(states[i], rules[0], network, utility, scratch, values[i])


@entry_point
def value_positions(
    states: Any, rules: Any, network: Any, utility: Any, scratch: Any, values: Any
) -> None:
    """The expected utility of N positions under best play, or what they came to if over.

    Args:
        states, rules, network, utility, scratch: as in value_plays, but games may be over.
        values: float32 (N,), overwritten.
    """
    of_plays = np.empty(table.pass_action(rules[0]) + 1, np.float32)
    for i in range(states.shape[0]):
        state = states[i]
        if state.phase == game.OVER:
            values[i] = utility[games.final_key_spies(state)]
        else:
            best = write_play_values(state, rules[0], network, utility, scratch, of_plays)
            values[i] = of_plays[best]


@entry_point
def predict_counts(
    states: Any, rules: Any, network: Any, utility: Any, scratch: Any, counts: Any
) -> None:
    """The distribution of the final count of N positions under best play, or what it came to.

    Args:
        states, rules, network, utility, scratch: as in value_positions.
        counts: float32 (N, NUM_COUNTS), overwritten.
    """
    of_plays = np.empty(table.pass_action(rules[0]) + 1, np.float32)
    for i in range(states.shape[0]):
        state = states[i]
        if state.phase == game.OVER:
            counts[i] = np.float32(0)
            counts[i, games.final_key_spies(state)] = np.float32(1)
        else:
            write_play_values(state, rules[0], network, utility, scratch, of_plays)
            counts[i] = scratch.best_counts[:NUM_COUNTS]


# --- As an object ---


def check_network(network: Network) -> None:
    """Check that weights fit together, as the kernels check nothing.

    Raises:
        ValueError: they do not, or they are not all finite float32 numbers.
    """
    hidden, head = network.first_bias.size, network.second_bias.size
    shapes = ((NUM_ENTRIES, hidden), (hidden,), (hidden, head), (head,), (head, LANES), (LANES,))
    widths_fit = hidden > 0 and head > 0 and hidden % LANES == 0 and head % LANES == 0
    found = tuple(weights.shape for weights in network)
    if found != shapes or not widths_fit:
        raise ValueError(f"weights of shapes {found}")
    if any(weights.dtype != np.float32 or not np.isfinite(weights).all() for weights in network):
        raise ValueError("its weights are not all finite float32 numbers")


def scratch_for(network: Network, rules: Rules) -> Scratch:
    """Room for the evaluations of one thread."""
    hidden, head = network.second.shape
    return Scratch(
        entries=np.zeros(MOST_ENTRIES, np.int64),
        ones=np.ones(MOST_ENTRIES, np.float32),
        active=np.zeros(max(hidden, head), np.int64),
        hidden=np.zeros(hidden, np.float32),
        head=np.zeros(head, np.float32),
        counts=np.zeros(LANES, np.float32),
        best_counts=np.zeros(LANES, np.float32),
        legal=np.zeros(action_table(rules.hand_size).num_words, np.uint64),
        states=np.zeros(2, STATE),
    )


class AfterstateValue:
    """A network's opinion of positions under a rule set and an objective.

    Args:
        network: the weights.
        rules: the rule set.
        utility: float32 (13,), what each final count is worth.
    """

    def __init__(self, network: Network, rules: Rules, utility: npt.NDArray[np.float32]) -> None:
        self.network, self.rules, self.utility = network, rules, utility
        self._scratch = scratch_for(network, rules)
        _compile()

    def play_values(
        self, states: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Expected utility of each legal action, and the best action.

        Args:
            states: shape (N,), dtype STATE, none over.

        Returns:
            float32 (N, n) with -inf where an action is illegal, and int64 (N,).
        """
        num_actions = action_table(self.rules.hand_size).num_actions
        values = np.full((len(states), num_actions), -np.inf, np.float32)
        best = np.zeros(len(states), np.int64)
        value_plays(
            states, self.rules.record, self.network, self.utility, self._scratch, values, best
        )
        return values, best

    def position_values(self, states: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Expected utility under best play, float32 (N,), of positions that may be over."""
        values = np.zeros(len(states), np.float32)
        value_positions(
            states, self.rules.record, self.network, self.utility, self._scratch, values
        )
        return values

    def final_counts(self, states: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Distribution of the final count under best play, float32 (N, 13); some may be over."""
        counts = np.zeros((len(states), NUM_COUNTS), np.float32)
        predict_counts(states, self.rules.record, self.network, self.utility, self._scratch, counts)
        return counts


@cache
def _compile() -> None:
    """Compile or load the kernels once, safe among processes."""
    rules = Rules().record
    widths = (NUM_ENTRIES, LANES), (LANES,), (LANES, LANES), (LANES,), (LANES, LANES), (LANES,)
    network = Network(*(np.zeros(shape, np.float32) for shape in widths))
    scratch, utility = scratch_for(network, Rules()), np.zeros(NUM_COUNTS, np.float32)
    states, values, best = np.zeros(0, STATE), np.zeros((0, 1), np.float32), np.zeros(0, np.int64)
    with compiling():
        value_plays(states, rules, network, utility, scratch, values, best)
        value_positions(states, rules, network, utility, scratch, values[:, 0].copy())
        predict_counts(states, rules, network, utility, scratch, values)
