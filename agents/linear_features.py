"""What ``linear`` looks at: sixteen numbers of the position after a play, and what is best by them.

The position after a play is that after its certain consequences (``rules.apply_play``), before a
card is turned up or drawn. *Own* cards are those in hand, Draw Deck and Draw Discard, *kept* ones
those still in hand. All features are scaled so that plays differ by about 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import entry_point, kernel, lowest_bit_index, popcount
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.chance import write_afterstate
from deck_of_spies_env.solitaire.games import play_action
from deck_of_spies_env.solitaire.rules import STATE

FEATURES: Mapping[str, str] = {
    "key_spies": "own Key Spies",
    "high_cards": "own 8s to 10s",
    "middle_cards": "own 5s to 7s",
    "low_cards": "own 2s to 4s",
    "aces": "own Aces",
    "early_middle_cards": "own 5s to 7s, times the share of the 36 spies that is unseen",
    "early_low_cards": "own 2s to 4s, times that share",
    "mean_value": "mean value of the own cards",
    "early_mean_value": "mean value of the own cards, times that share",
    "ace_suits": "Key Spies to come whose suit is that of an own Ace, divided by 3",
    "next_hand": "expected total of the next hand, divided by 10",
    "low_pairs": "kept 2s to 4s that share their rank with another kept card",
    "higher_pairs": "kept 5s to 10s that do",
    "pair_hopes": "share of Draw Deck cards of a rank from 2 to 10 that is kept, times 3",
    "weak_hand": "expected shortfall of the next hand from twice the next spy, as a share",
    "danger": "0 to 1: how likely the next hand is to fall short of the next spy, by a rough rule",
}
"""Name -> meaning, in the order of the weights. The next spy's value is that of the spy in view, or
the middle one of the tier to come."""

NUM_FEATURES = len(FEATURES)

_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_NUM_SUITS = np.uint64(cards.NUM_SUITS)
_ACES, _KEY_SPIES = np.uint64(cards.ACES), np.uint64(cards.KEY_SPIES)
_MIDDLE, _HIGH = np.uint64(cards.SPY_TIERS[0]), np.uint64(cards.SPY_TIERS[1])
_LOW = np.uint64(cards.ALL_CARDS & ~cards.SPIES & ~cards.ACES)
_SUIT = np.uint64(sum(1 << rank * cards.NUM_SUITS for rank in range(cards.NUM_RANKS)))
_ONE_RANK = np.uint64((1 << cards.NUM_SUITS) - 1)
_TWOS, _FIVES, _JACKS = 1, 4, 10  # places of ranks, the Aces being 0
_TIER_MIDDLES = (6.0, 9.0, 12.0)


@kernel
def _count(chosen: np.uint64) -> float:
    return float(popcount(chosen))


@kernel
def _total(chosen: np.uint64) -> float:
    return float(game.total_value(chosen))


@kernel
def _mean(chosen: np.uint64) -> float:
    """Mean value, 0 for no cards."""
    return _total(chosen) / max(_count(chosen), 1.0)


@kernel
def _variance(chosen: np.uint64) -> float:
    """Variance of the values, 0 for no cards."""
    mean, squares, left = _mean(chosen), 0.0, chosen
    while left != _ZERO:
        deviation = float((lowest_bit_index(left) >> _TWO) + _ONE) - mean
        squares += deviation * deviation
        left &= left - _ONE
    return squares / max(_count(chosen), 1.0)


@kernel
def _of_rank(chosen: np.uint64, rank: int) -> float:
    """How many of the cards have a rank, given by its place."""
    return _count((chosen >> (np.uint64(rank) * _NUM_SUITS)) & _ONE_RANK)


@kernel
def _paired(hand: np.uint64, first: int, stop: int) -> float:
    """How many cards of the ranks from ``first`` to ``stop`` share theirs with another."""
    paired = 0.0
    for rank in range(first, stop):
        count = _of_rank(hand, rank)
        if count >= 2.0:
            paired += count
    return paired


@kernel
def _pair_hopes(hand: np.uint64, draw_deck: np.uint64) -> float:
    hopes = 0.0
    for rank in range(_TWOS, _JACKS):
        if _of_rank(hand, rank) > 0.0:
            hopes += _of_rank(draw_deck, rank)
    return 3.0 * hopes / max(_count(draw_deck), 1.0)


@kernel
def _ace_suits(aces: np.uint64, to_come: np.uint64) -> float:
    met = 0.0
    left = aces
    while left != _ZERO:
        met += _count(to_come & _KEY_SPIES & (_SUIT << lowest_bit_index(left)))
        left &= left - _ONE
    return met / 3.0


@kernel
def _next_hand(state: Any, missing: float) -> float:
    """Expected total after the draw, which goes on into the Draw Discard if it must."""
    drawn = min(missing, _count(state.draw_deck))
    later = min(missing - drawn, _count(state.draw_discard))
    return _total(state.hand) + drawn * _mean(state.draw_deck) + later * _mean(state.draw_discard)


@kernel
def _next_value(state: Any) -> float:
    """Value of the spy in view, or the middle one of the tier that comes next."""
    if state.spy != game.NO_SPY:
        return float(game.spy_value(state))
    if state.spy_deck & _MIDDLE != _ZERO:
        return _TIER_MIDDLES[0]
    return _TIER_MIDDLES[1] if state.spy_deck & _HIGH != _ZERO else _TIER_MIDDLES[2]


@kernel
def _danger(surplus: float, variance: float) -> float:
    """A curve from 1 to 0, one half where surplus is 0; roots are rounded alike everywhere."""
    return 0.5 - 0.5 * surplus / np.sqrt(surplus * surplus + variance)


@kernel
def write_features(state: Any, rules: Any, features: Any) -> None:
    """The features of a position after a play.

    Args:
        state: record of dtype STATE.
        rules: record of dtype RULES.
        features: float64 (NUM_FEATURES,), overwritten; in the order of FEATURES.
    """
    own = state.hand | state.draw_deck | state.draw_discard
    to_come = state.spy_deck
    if state.spy != game.NO_SPY:
        to_come |= _ONE << np.uint64(state.spy)
    unseen = _count(state.spy_deck) / cards.NUM_SPIES
    missing = float(rules.hand_size) - _count(state.hand)
    next_hand, next_value = _next_hand(state, missing), _next_value(state)
    features[0] = _count(own & _KEY_SPIES)
    features[1] = _count(own & _HIGH)
    features[2] = _count(own & _MIDDLE)
    features[3] = _count(own & _LOW)
    features[4] = _count(own & _ACES)
    features[5] = features[2] * unseen
    features[6] = features[3] * unseen
    features[7] = _mean(own)
    features[8] = features[7] * unseen
    features[9] = _ace_suits(own & _ACES, to_come)
    features[10] = next_hand / 10.0
    features[11] = _paired(state.hand, _TWOS, _FIVES)
    features[12] = _paired(state.hand, _FIVES, _JACKS)
    features[13] = _pair_hopes(state.hand, state.draw_deck)
    features[14] = max(0.0, 1.0 - next_hand / (2.0 * next_value))
    # One more than the variance of the draw: a hand that is known is still short or not by a point.
    variance = 1.0 + missing * _variance(state.draw_deck)
    features[15] = _danger(next_hand - next_value + 0.5, variance)


@kernel
def _score(state: Any, rules: Any, action: int, weights: Any, after: Any, features: Any) -> float:
    """The score of the position after an action; ``after`` and ``features`` are overwritten."""
    write_afterstate(state, rules, action, after)
    write_features(after, rules, features)
    score = 0.0
    for i in range(NUM_FEATURES):
        score += weights[i] * features[i]
    return score


@kernel
def best_action(state: Any, rules: Any, legal: Any, weights: Any) -> int:
    """The legal action whose position after it scores highest, the first of equals.

    Args:
        state: record of dtype STATE, not over.
        rules: record of dtype RULES.
        legal: its legal actions as bits, uint64 (num_words,).
        weights: float64 (NUM_FEATURES,).
    """
    after = np.empty(1, dtype=STATE)
    features = np.empty(NUM_FEATURES, dtype=np.float64)
    best = -1
    best_score = -np.inf
    for word in range(legal.shape[0]):
        left = legal[word]
        while left != _ZERO:
            action = table.WORD_BITS * word + int(lowest_bit_index(left))
            left &= left - _ONE
            score = _score(state, rules, action, weights, after[0], features)
            if best < 0 or score > best_score:
                best, best_score = action, score
    return best


@entry_point
def choose_all(states: Any, rules: Any, legal: Any, weights: Any, actions: Any) -> None:
    """The best action of each of N states, into int64 (N,); other arguments as in best_action."""
    for i in range(states.shape[0]):
        table.write_legal_bits(states[i], rules[0], legal)
        actions[i] = best_action(states[i], rules[0], legal, weights)


@entry_point
def score_all(states: Any, rules: Any, weights: Any, scores: Any) -> None:
    """The score of each action of N states that is legal, all others being NaN.

    Args:
        states: shape (N,), dtype STATE, none over.
        rules: shape (1,), dtype RULES.
        weights: float64 (NUM_FEATURES,).
        scores: float64 (N, n), 0 where an action is legal, NaN elsewhere; overwritten.
    """
    after = np.empty(1, dtype=STATE)
    features = np.empty(NUM_FEATURES, dtype=np.float64)
    for i in range(states.shape[0]):
        for action in range(scores.shape[1]):
            if scores[i, action] == 0.0:
                scores[i, action] = _score(states[i], rules[0], action, weights, after[0], features)


@entry_point
def play_all_out(records: Any, rules: Any, legal: Any, weights: Any) -> None:
    """Play games to the end by the best actions.

    As ``play_out`` does, but for weights that change from call to call.

    Args:
        records: shape (N,), dtype SNAPSHOT; changed in place.
        rules, legal, weights: as in choose_all.
    """
    for i in range(records.shape[0]):
        while records[i].state.phase != game.OVER:
            table.write_legal_bits(records[i].state, rules[0], legal)
            play_action(
                records[i], rules[0], best_action(records[i].state, rules[0], legal, weights)
            )


@entry_point
def _features_of(states: Any, rules: Any, features: Any) -> None:
    for i in range(states.shape[0]):
        write_features(states[i], rules[0], features[i])


def features_of(states: npt.NDArray[Any], rules: game.Rules) -> npt.NDArray[np.float64]:
    """The features of N positions after a play: states of shape (N,) in, float64 (N, 16) out."""
    features = np.zeros((len(states), NUM_FEATURES))
    _features_of(states, rules.record, features)
    return features
