"""The value of afterstates, compiled: from a state record to a distribution of final Key Spies.

An *afterstate* is the position after a play's certain consequences, before a card is turned or
drawn (Sutton and Barto, 2018, section 6.8). The network reads which card lies in which zone, some
forty entries of 230 that are 1, through two hidden layers, and gives the probability of each final
number of Key Spies. Entries and units that are 0 are never touched.

Suits are sorted first, the spy's before the others: the 24 relabellings are an exact symmetry of
the game, so positions that differ by them alone are one position to the network.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.chance_kernels import copy_state, write_afterstate
from agents.objectives import NUM_COUNTS
from agents.vectors import add_rows, exponentials
from deck_of_spies_env import cards
from deck_of_spies_env.compiled import entry_point, extract_bits, kernel, lowest_bit_index
from deck_of_spies_env.random_streams import choice_stream, mix
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import games
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.policies import random_action

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
_SHIFT_40 = np.uint64(40)
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
    """Write which entries of an afterstate are 1, and return how many there are."""
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


@entry_point
def list_entries(states: Any, entries: Any, starts: Any) -> int:
    """Entries of M afterstates, one list after the other.

    Args:
        states: shape (M,), dtype STATE.
        entries: int64 (M * MOST_ENTRIES,), overwritten.
        starts: int64 (M + 1,), overwritten with where each list starts.

    Returns:
        The number of entries in all.
    """
    count = 0
    for i in range(states.shape[0]):
        starts[i] = count
        count += read_entries(states[i], entries[count:])
    starts[states.shape[0]] = count
    return count


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


# --- Learning by self-play ---


@kernel
def _unit(word: np.uint64) -> float:
    """A number in [0, 1) from 64 random bits."""
    return np.float64(word >> _SHIFT_40) / (1 << 24)


@entry_point
def self_play(
    records: Any,
    rules: Any,
    start: Any,
    network: Any,
    utility: Any,
    scratch: Any,
    exploration: float,
    afterstates: Any,
    counts: Any,
    explored: Any,
    finals: Any,
) -> None:
    """Play N games for T decisions each by the network's best plays; ended games are dealt anew.

    Args:
        records: shape (N,), dtype SNAPSHOT, none over; changed in place.
        rules, network, utility, scratch: as in value_plays.
        start: shape (1,), dtype STATE, where games begin.
        exploration: probability of a random legal action instead.
        afterstates: shape (T, N), dtype STATE, overwritten with those of the actions taken.
        counts: float32 (T, N, NUM_COUNTS), overwritten with the distributions of the best plays,
            taken or not.
        explored: bool (T, N), overwritten: where the action was a random one.
        finals: int8 (T, N), overwritten: the final count where the action ended the game, else -1.
    """
    num_steps = afterstates.shape[0]
    values = np.empty(table.pass_action(rules[0]) + 1, np.float32)
    for i in range(records.shape[0]):
        record = records[i]
        position = choice_stream(record.streams)
        for t in range(num_steps):
            action = write_play_values(record.state, rules[0], network, utility, scratch, values)
            position += record.streams.gamma
            explored[t, i] = _unit(mix(position)) < exploration
            if explored[t, i]:
                position += record.streams.gamma
                action = random_action(record.state, rules[0], scratch.legal, mix(position))
                write_afterstate(record.state, rules[0], action, afterstates[t, i])
            else:
                copy_state(scratch.states[1], afterstates[t, i])
            counts[t, i] = scratch.best_counts[:NUM_COUNTS]
            games.play_action(record, rules[0], action)
            finals[t, i] = -1
            if record.state.phase == game.OVER:
                finals[t, i] = games.final_key_spies(record.state)
                game.deal(record.state, start[0], True, record.streams, rules[0])
                position = choice_stream(record.streams)


@entry_point
def write_targets(counts: Any, explored: Any, finals: Any, decay: float, targets: Any) -> None:
    """TD(lambda) targets of all decisions but the last: what is learnt of their afterstates.

    A trace ends where the next action was a random one (Watkins, 1989), as what follows is not the
    outcome of the policy.

    Args:
        counts, explored, finals: of self_play.
        decay: lambda, 0 to 1.
        targets: float32 (T - 1, N, NUM_COUNTS), overwritten.
    """
    num_steps = targets.shape[0]
    for i in range(targets.shape[1]):
        for t in range(num_steps - 1, -1, -1):
            if finals[t, i] >= 0:
                targets[t, i] = np.float32(0)
                targets[t, i, finals[t, i]] = np.float32(1)
                continue
            cut = t + 1 == num_steps or explored[t + 1, i]
            keep = np.float32(0.0 if cut else decay)
            for k in range(NUM_COUNTS):
                value = counts[t + 1, i, k]
                if keep > 0:
                    value += keep * (targets[t + 1, i, k] - value)
                targets[t, i, k] = value


@entry_point
def add_entry_gradients(gradient: Any, entries: Any, starts: Any, first: Any) -> None:
    """Add to the gradient of ``Network.first``, given that of M first layers, float32 (M, H)."""
    for i in range(gradient.shape[0]):
        row = gradient[i]
        for place in range(starts[i], starts[i + 1]):
            target = first[entries[place]]
            for j in range(row.shape[0]):
                target[j] += row[j]
