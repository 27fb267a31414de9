"""What exact study of small decks computes, compiled: successors, chance moves, backward induction.

The rules are the engine's own kernels (``rules.apply_play``, ``actions.write_legal_bits`` and so
on). Only chance is listed here instead of being drawn at random: the spies that may be turned up,
and the sets of cards that may be drawn. Each chance move is uniform, and its outcomes are all
different, so no probability needs to be kept: a mean does.

A turn ends in a *draw state*: all is decided but which cards are drawn. It is a record of dtype
STATE in the phase DRAW, which exists here alone. Draw states with their values are all that is
stored; what lies between two of them is listed anew when it is needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.objectives import GOES_ON
from deck_of_spies_env import cards
from deck_of_spies_env.compiled import (
    deposit_bits,
    entry_point,
    kernel,
    lowest_bit_index,
    popcount,
)
from deck_of_spies_env.random_streams import STREAMS, mix
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import games
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.chance import (
    begin_draw,
    end_draw,
    next_subset,
    num_sets,
    spies_to_come,
    write_afterstate,
    write_draws,
)
from deck_of_spies_env.solitaire.policies import greedy_action
from deck_of_spies_env.solitaire.rules import STATE, Rules

DRAW = len(game.PHASES)
"""The phase of a draw state."""
WORDS = STATE.itemsize // 8
"""64-bit words of a record."""
MOST_OUTCOMES = cards.NUM_KEY_SPIES
"""No tier of spies is larger, so no decision has more outcomes."""

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_ACES = np.uint64(cards.ACES)
_KEY_SPIES = np.uint64(cards.KEY_SPIES)
_NO_SLOT = -1
_SMALL_FIELDS = ("spy", "phase", "outcome")  # a byte each, at the beginning of the last word
_LAST_WORD = np.uint64((1 << (8 * len(_SMALL_FIELDS))) - 1)
_FULL = -1


def words_of(states: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Records as a view of 64-bit words, uint64 (N, WORDS)."""
    return states.view(np.uint64).reshape(len(states), WORDS)


class Listing(NamedTuple):
    """Room for all that can follow a decision, up to the next draw or the end.

    A play leads to outcomes (which spy is turned up, uniform), an outcome to options (what is
    retired, a choice), an option to a draw state or to a leaf.

    Attributes:
        legal: uint64 (2, w), legal actions as bits: of the decision, and of a retire after it.
        streams: shape (1,), dtype STREAMS; none of it is used up.
        work: STATE (3,), with ``work_words`` as a view: the decision, the play, the draw state.
        actions: int64, the action of each play.
        first_outcome: int64, of each play; one more at the end.
        outcomes: STATE, with ``outcome_words`` as a view.
        first_option: int64, of each outcome; one more at the end.
        options: STATE, with ``option_words`` as a view.
        leaves: int64, of each option: the Key Spies that count, or GOES_ON.
        found: int64, of each option that goes on: the index of its draw state (see look_up).
    """

    legal: npt.NDArray[np.uint64]
    streams: npt.NDArray[Any]
    work: npt.NDArray[Any]
    work_words: npt.NDArray[np.uint64]
    actions: npt.NDArray[np.int64]
    first_outcome: npt.NDArray[np.int64]
    outcomes: npt.NDArray[Any]
    outcome_words: npt.NDArray[np.uint64]
    first_option: npt.NDArray[np.int64]
    options: npt.NDArray[Any]
    option_words: npt.NDArray[np.uint64]
    leaves: npt.NDArray[np.int64]
    found: npt.NDArray[np.int64]


def new_listing(rules: Rules) -> Listing:
    """Room for the largest list that a rule set allows."""
    actions = table.action_table(rules.hand_size)
    most_plays = actions.num_actions
    most_outcomes = most_plays * MOST_OUTCOMES
    most_options = most_outcomes * (len(actions.actions_of("retire")) + 1)
    work, outcomes, options = (
        np.zeros(size, dtype=STATE) for size in (3, most_outcomes, most_options)
    )
    return Listing(
        np.zeros((2, actions.num_words), dtype=np.uint64),
        np.zeros(1, dtype=STREAMS),
        *(work, words_of(work)),
        np.zeros(most_plays, dtype=np.int64),
        np.zeros(most_plays + 1, dtype=np.int64),
        *(outcomes, words_of(outcomes)),
        np.zeros(most_outcomes + 1, dtype=np.int64),
        *(options, words_of(options)),
        np.zeros(most_options, dtype=np.int64),
        np.zeros(most_options, dtype=np.int64),
    )


class Store(NamedTuple):
    """Different states in the order in which they came, and a hash table that finds them.

    Attributes:
        states: STATE (capacity,), with ``words`` as a view.
        slots: int64 (a power of two, at least 2 * capacity), the state that hangs there, or -1.
    """

    states: npt.NDArray[Any]
    words: npt.NDArray[np.uint64]
    slots: npt.NDArray[np.int64]


def new_store(capacity: int) -> Store:
    """An empty store; capacity is a power of two."""
    states = np.zeros(capacity, dtype=STATE)
    return Store(states, words_of(states), np.full(2 * capacity, _NO_SLOT, dtype=np.int64))


# --- Finding states ---


@kernel
def _copy(target: Any, to: int, source: Any, row: int) -> None:
    for word in range(WORDS):
        target[to, word] = source[row, word]


@kernel
def _word(words: Any, row: int, word: int) -> np.uint64:
    """A word of a state without its padding: NumPy need not copy that along."""
    return words[row, word] & _LAST_WORD if word == WORDS - 1 else words[row, word]


@kernel
def _slot_of(store: Any, words: Any, row: int) -> np.uint64:
    """The slot that holds a state, or the empty one where it belongs."""
    hashed = _ZERO
    for word in range(WORDS):
        hashed = mix(hashed ^ _word(words, row, word))
    last = np.uint64(store.slots.shape[0] - 1)
    slot = hashed & last
    while store.slots[slot] != _NO_SLOT:
        index = store.slots[slot]
        equal = True
        for word in range(WORDS):
            equal &= _word(store.words, index, word) == _word(words, row, word)
        if equal:
            break
        slot = (slot + _ONE) & last
    return slot


@kernel
def find(store: Any, words: Any, row: int) -> int:
    """The index of a state in a store, -1 if it is not there."""
    return store.slots[_slot_of(store, words, row)]


@kernel
def intern(store: Any, count: int, words: Any, row: int) -> int:
    """The index of a state in a store; it is ``count`` if it has just been added, -1 if full."""
    slot = _slot_of(store, words, row)
    if store.slots[slot] == _NO_SLOT:
        if count == store.words.shape[0]:
            return _FULL
        _copy(store.words, count, words, row)
        store.slots[slot] = count
    return store.slots[slot]


@entry_point
def hang_up(store: Any, count: int) -> None:
    """Fill the hash table of a store whose first states have been copied into it."""
    for i in range(count):
        store.slots[_slot_of(store, store.words, i)] = i


@entry_point
def intern_all(store: Any, words: Any, inverse: Any) -> int:
    """Store all states of uint64 (N, WORDS), write int64 (N,) where, and return how many differ."""
    count = 0
    for i in range(words.shape[0]):
        inverse[i] = intern(store, count, words, i)
        count = max(count, inverse[i] + 1)
    return count


# --- Chance ---


@entry_point
def count_draws(words: Any, rules: Any, listing: Any, counts: Any) -> None:
    """Write int64 (N,), how many sets of cards can be drawn in each draw state."""
    for i in range(words.shape[0]):
        _copy(listing.work_words, 2, words, i)
        number = begin_draw(listing.work[2], rules[0])
        counts[i] = num_sets(popcount(listing.work[2].draw_deck), number)


@entry_point
def draw_all(words: Any, rules: Any, listing: Any, drawn: Any) -> None:
    """Write what follows each draw state, one after the other, as many as count_draws says."""
    place = 0
    for i in range(words.shape[0]):
        _copy(listing.work_words, 2, words, i)
        place = write_draws(listing.work[2], rules[0], drawn, place)


# --- What can follow a decision ---

# What is compiled and not inlined here is called in several places and takes long to compile.


@entry_point
def write_legal_bits(state: Any, rules: Any, legal: Any) -> None:
    """Write the legal actions of a position; see the table's kernel."""
    table.write_legal_bits(state, rules, legal)


@kernel
def _end_turn(state: Any, listing: Any, rules: Any) -> None:
    """Judge the game after the last spy, else come to the draw."""
    if state.spy == game.NO_SPY:
        game.end_turn(state, listing.streams[0], rules)
    else:
        state.phase = DRAW
        state.spy_discard &= ~_ACES  # whether an Ace was retired or given up matters no more


@entry_point
def list_outcomes(listing: Any, place: int, action: int, rules: Any) -> int:
    """List what an action can lead to before anything else is decided.

    Args:
        listing: with the decision in ``work[0]``; its outcomes are written from ``place`` on, in
            the phases RETIRE, DRAW and OVER.
        place: index.
        action: a legal action.
        rules: record of dtype RULES.

    Returns:
        One more than the index of the last outcome.
    """
    after = listing.work[1]
    kind = write_afterstate(listing.work[0], rules, action, after)
    spies = spies_to_come(after)
    if kind > game.KIND_ASSASSINATE or spies == _ZERO:
        _copy(listing.outcome_words, place, listing.work_words, 1)
        _settle(listing.outcomes[place], kind, listing, rules)
        return place + 1
    while spies != _ZERO:
        _copy(listing.outcome_words, place, listing.work_words, 1)
        outcome = listing.outcomes[place]
        outcome.spy = np.int8(lowest_bit_index(spies))
        outcome.spy_deck ^= spies & (~spies + _ONE)
        _settle(outcome, kind, listing, rules)
        spies &= spies - _ONE
        place += 1
    return place


@kernel
def _settle(outcome: Any, kind: int, listing: Any, rules: Any) -> None:
    if kind <= game.KIND_RECRUIT and game.has_pair(outcome.hand):
        outcome.phase = game.RETIRE
    else:
        _end_turn(outcome, listing, rules)


@kernel
def _leaf_of(state: Any) -> int:
    return int(games.final_key_spies(state)) if state.phase == game.OVER else GOES_ON


BEST, GREEDY, MOST = 0, 1, 2
"""Which plays count: all, that of ``greedy`` alone, or all where no end pays less than one with
fewer Key Spies, so that the last turn takes one step."""


@kernel
def _narrow(state: Any, rules: Any, legal: Any, narrowing: int) -> None:
    """Take away legal actions that are not to be looked at."""
    if narrowing == GREEDY:
        action = greedy_action(state, rules, legal, _ONE)
        legal[:] = _ZERO
        table.add_bits(legal, np.uint64(action), _ONE)


@kernel
def _list_options(listing: Any, outcome: int, place: int, rules: Any, narrowing: int) -> int:
    """List what can be retired after an outcome; like list_outcomes."""
    state = listing.outcomes[outcome]
    if state.phase != game.RETIRE:
        _copy(listing.option_words, place, listing.outcome_words, outcome)
        listing.leaves[place] = _leaf_of(state)
        return place + 1
    legal = listing.legal[1]
    write_legal_bits(state, rules, legal)
    _narrow(state, rules, legal, narrowing)
    for number in range(int(table.num_legal(legal))):
        action = table.nth_legal(legal, np.uint64(number))
        kind = table.action_kind(action, rules)
        _copy(listing.option_words, place, listing.outcome_words, outcome)
        option = listing.options[place]
        game.apply_play(option, kind, table.action_cards(action, kind, option.hand, rules))
        _end_turn(option, listing, rules)
        listing.leaves[place] = _leaf_of(option)
        place += 1
    return place


@entry_point
def list_plays(listing: Any, rules: Any, narrowing: int) -> int:
    """List all that can follow a decision.

    Args:
        listing: with the decision in ``work[0]``, in the phase ACT or RETIRE.
        rules: record of dtype RULES.
        narrowing: BEST or GREEDY.

    Returns:
        The number of plays.
    """
    legal = listing.legal[0]
    write_legal_bits(listing.work[0], rules, legal)
    _narrow(listing.work[0], rules, legal, narrowing)
    outcomes, options = 0, 0
    num_plays = int(table.num_legal(legal))
    for play in range(num_plays):
        listing.actions[play] = table.nth_legal(legal, np.uint64(play))
        listing.first_outcome[play] = outcomes
        stop = list_outcomes(listing, outcomes, listing.actions[play], rules)
        while outcomes < stop:
            listing.first_option[outcomes] = options
            options = _list_options(listing, outcomes, options, rules, narrowing)
            outcomes += 1
    listing.first_outcome[num_plays] = outcomes
    listing.first_option[outcomes] = options
    return num_plays


# --- Induction ---


@kernel
def intern_options(store: Any, count: int, listing: Any, num_plays: int) -> int:
    """Store the draw states among the options; returns the new count, -1 if the store is full."""
    for option in range(listing.first_option[listing.first_outcome[num_plays]]):
        if listing.leaves[option] == GOES_ON:
            index = intern(store, count, listing.option_words, option)
            if index == _FULL:
                return _FULL
            count = max(count, index + 1)
    return count


@entry_point
def expand_decisions(words: Any, first: int, store: Any, count: int, rules: Any, listing: Any):
    """Store all draw states that follow decisions, uint64 (N, WORDS), from the ``first`` on.

    Returns:
        The decision at which the store was full, or N, and the number of states stored.
    """
    for i in range(first, words.shape[0]):
        _copy(listing.work_words, 0, words, i)
        found = intern_options(store, count, listing, list_plays(listing, rules[0], BEST))
        if found == _FULL:
            return i, count
        count = found
    return words.shape[0], count


@entry_point
def expand_draws(first: int, stop: int, store: Any, count: int, rules: Any, listing: Any):
    """Store all draw states that follow those of indices ``first`` to ``stop``.

    What was stored for a draw state before the store was full stays there, so the caller can make
    room and begin with that state again.

    Returns:
        The draw state at which the store was full, or ``stop``, and the number of states stored.
    """
    for i in range(first, stop):
        _copy(listing.work_words, 2, store.words, i)
        if listing.work[2].spy_deck == _ZERO:
            continue  # the last spy: no draw follows
        number = begin_draw(listing.work[2], rules[0])
        deck = listing.work[2].draw_deck
        subset = (_ONE << number) - _ONE
        for _ in range(num_sets(popcount(deck), number)):
            _copy(listing.work_words, 0, listing.work_words, 2)
            end_draw(listing.work[0], deposit_bits(subset, deck), rules[0])
            if listing.work[0].phase == game.ACT:
                num_plays = list_plays(listing, rules[0], BEST)
                found = intern_options(store, count, listing, num_plays)
                if found == _FULL:
                    return i, count
                count = found
            if number != _ZERO:
                subset = next_subset(subset)
    return stop, count


@kernel
def look_up(listing: Any, num_plays: int, store: Any) -> None:
    """Find the draw states among the options; -1 for those that are not stored."""
    for option in range(listing.first_option[listing.first_outcome[num_plays]]):
        if listing.leaves[option] == GOES_ON:
            listing.found[option] = find(store, listing.option_words, option)


@kernel
def option_value(listing: Any, option: int, values: Any, payments: Any, k: int) -> float:
    """The value of an option under objective ``k``; NaN if its draw state is not stored."""
    if listing.leaves[option] != GOES_ON:
        return payments[listing.leaves[option], k]
    index = listing.found[option]
    return values[index, k] if index >= 0 else np.nan


@kernel
def outcome_value(listing: Any, outcome: int, values: Any, payments: Any, k: int) -> float:
    """The value of an outcome: of its best option."""
    best = -np.inf
    for option in range(listing.first_option[outcome], listing.first_option[outcome + 1]):
        value = option_value(listing, option, values, payments, k)
        if not value <= best:  # NaN wins
            best = value
    return best


@kernel
def play_value(listing: Any, play: int, values: Any, payments: Any, k: int) -> float:
    """The value of a play: the mean of its outcomes."""
    first, stop = listing.first_outcome[play], listing.first_outcome[play + 1]
    total = 0.0
    for outcome in range(first, stop):
        total += outcome_value(listing, outcome, values, payments, k)
    return total / (stop - first)


@kernel
def decision_value(listing: Any, num_plays: int, values: Any, payments: Any, k: int) -> float:
    """The value of a decision whose plays are listed and looked up: of its best play."""
    best = -np.inf
    for play in range(num_plays):
        value = play_value(listing, play, values, payments, k)
        if not value <= best:
            best = value
    return best


@kernel
def best_last_turn(state: Any, rules: Any) -> np.int64:
    """The most Key Spies that the last turn can end with.

    Retiring can only lose some, and no play but the recruit of a Key Spy wins one.
    """
    held = game.key_spies_held(state)
    if (_ONE << np.uint64(state.spy)) & _KEY_SPIES == _ZERO or game.must_assassinate(state):
        return held
    for chunk in range(game.num_play_chunks(state)):
        if game.legal_plays(state, rules, chunk)[1] != _ZERO:
            return np.int64(held + 1)
    return held


@entry_point
def back_up(
    first: int,
    stop: int,
    store: Any,
    values: Any,
    payments: Any,
    rules: Any,
    listing: Any,
    backed_up: Any,
    narrowing: int,
) -> None:
    """Write the means over all draws into rows ``first`` to ``stop``.

    Args:
        first, stop: the draw states.
        store: of all draw states.
        values: float64 (N, m), of the draw states that follow.
        payments: float64 (NUM_COUNTS, m).
        rules, listing: as in list_plays.
        backed_up: float64 (N, m), may be ``values``.
        narrowing: BEST, GREEDY or MOST.
    """
    totals = np.zeros(values.shape[1])
    for i in range(first, stop):
        _copy(listing.work_words, 2, store.words, i)
        number = begin_draw(listing.work[2], rules[0])
        deck = listing.work[2].draw_deck
        subset = (_ONE << number) - _ONE
        count = num_sets(popcount(deck), number)
        totals[:] = 0.0
        for _ in range(count):
            _copy(listing.work_words, 0, listing.work_words, 2)
            end_draw(listing.work[0], deposit_bits(subset, deck), rules[0])
            state = listing.work[0]
            if state.phase == game.OVER:
                totals += payments[_leaf_of(state)]
            elif narrowing == MOST and state.spy_deck == _ZERO:
                totals += payments[best_last_turn(state, rules[0])]
            else:
                plays = list_plays(listing, rules[0], narrowing)
                look_up(listing, plays, store)
                for k in range(totals.shape[0]):
                    totals[k] += decision_value(listing, plays, values, payments, k)
            if number != _ZERO:
                subset = next_subset(subset)
        backed_up[i] = totals / count


@entry_point
def write_action_values(
    words: Any, store: Any, values: Any, payments: Any, rules: Any, listing: Any, action_values: Any
) -> None:
    """Write the value of each legal action of decisions, uint64 (N, WORDS).

    Args:
        words: in the phases ACT and RETIRE.
        store, values, payments, rules, listing: as in back_up.
        action_values: float64 (N, n, m), NaN beforehand; stays so for illegal actions.
    """
    for i in range(words.shape[0]):
        _copy(listing.work_words, 0, words, i)
        plays = list_plays(listing, rules[0], BEST)
        look_up(listing, plays, store)
        for play in range(plays):
            for k in range(values.shape[1]):
                value = play_value(listing, play, values, payments, k)
                action_values[i, listing.actions[play], k] = value


# --- One policy ---


@entry_point
def write_outcomes(
    words: Any, actions: Any, rules: Any, listing: Any, offsets: Any, outcome_words: Any
) -> None:
    """Write what each decision's action can lead to.

    Args:
        words: uint64 (N, WORDS), decisions.
        actions: int64 (N,), legal.
        rules, listing: as in list_plays.
        offsets: int64 (N + 1,), overwritten: where the outcomes of each begin.
        outcome_words: uint64 (at least MOST_OUTCOMES * N, WORDS), overwritten.
    """
    place = 0
    for i in range(words.shape[0]):
        offsets[i] = place
        _copy(listing.work_words, 0, words, i)
        num_outcomes = list_outcomes(listing, 0, actions[i], rules[0])
        for outcome in range(num_outcomes):
            _copy(outcome_words, place, listing.outcome_words, outcome)
            place += 1
    offsets[words.shape[0]] = place
