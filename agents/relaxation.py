"""Upper bounds on the best play by information relaxation, on small decks where it is known.

Let all chance be revealed before the first decision. Whoever knows the future does at least as well
as whoever does not, so the mean payment of best play in hindsight is an upper bound on the optimum.
It is loose, as foresight is worth a lot, and made tighter by a penalty for using it: at each chance
move the value of what came less what was to be expected, under any guess V of the values,

    sum over chance moves of V(position after) - E[V(position after)],

which is 0 in the mean for whoever does not look ahead, so the bound holds for every V. With the
true values it is the optimum itself in every scenario (Brown, Smith and Sun, "Information
relaxations and duality in stochastic dynamic programs", Operations Research 58, 2010).

A *scenario* gives each spy a rank and each card a rank for each turn, all independent. The spy
turned up is the highest of its tier, the cards drawn are the highest of the pile. So one scenario
fixes every draw of every course of play. Ranks of one turn know nothing of those before, so that
whatever was played the spy is uniform in its tier, and the cards drawn are a uniform set.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents import exact_kernels as kernels
from agents.exact import Solution, States, Values, clean_decisions
from agents.exact_kernels import words_of
from agents.objectives import GOES_ON
from deck_of_spies_env import cards
from deck_of_spies_env.compiled import entry_point, kernel, lowest_bit_index, popcount
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.chance import begin_draw, end_draw

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Bound(NamedTuple):
    """Payments of best play in hindsight, less the penalties.

    Attributes:
        by_scenario: float64 (S,). Their mean estimates the upper bound without bias.
    """

    by_scenario: Values

    @property
    def mean(self) -> float:
        """The estimate of the upper bound."""
        return float(self.by_scenario.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        return float(self.by_scenario.std(ddof=1) / np.sqrt(len(self.by_scenario)))


def scenarios(count: int, seed: int) -> npt.NDArray[np.float64]:
    """Ranks that settle all chance.

    Returns:
        float64 (count, NUM_SPIES + 1, NUM_CARDS): of each scenario in row 0 those of the spies, in
        row t those of the cards in the draw with t spies left.
    """
    shape = (count, cards.NUM_SPIES + 1, cards.NUM_CARDS)
    return np.random.default_rng(seed).random(shape)


@kernel
def _highest(among: np.uint64, ranks: Any) -> np.uint64:
    """The card of the highest rank in a non-empty set, as a mask."""
    best = among & (~among + _ONE)
    left = among ^ best
    while left != _ZERO:
        card = left & (~left + _ONE)
        if ranks[lowest_bit_index(card)] > ranks[lowest_bit_index(best)]:
            best = card
        left ^= card
    return best


@entry_point
def draw_in_scenario(listing: Any, words: Any, row: int, rules: Any, ranks: Any) -> None:
    """Bring what a draw state leads to in a scenario into ``work[0]``."""
    for word in range(kernels.WORDS):
        listing.work_words[0, word] = words[row, word]
    state = listing.work[0]
    turn_ranks = ranks[int(popcount(state.spy_deck)) + 1]
    number = begin_draw(state, rules)
    left, drawn = state.draw_deck, _ZERO
    for _ in range(number):
        card = _highest(left, turn_ranks)
        left ^= card
        drawn |= card
    end_draw(state, drawn, rules)


@kernel
def _outcome_that_comes(listing: Any, play: int, ranks: Any) -> int:
    """The outcome of a play in a scenario: that with the spy of the highest rank."""
    best = listing.first_outcome[play]
    for outcome in range(best + 1, listing.first_outcome[play + 1]):
        if ranks[0, listing.outcomes[outcome].spy] > ranks[0, listing.outcomes[best].spy]:
            best = outcome
    return best


@kernel
def _list(listing: Any, store: Any, rules: Any) -> int:
    """List and look up all that can follow the decision in ``work[0]``."""
    num_plays = kernels.list_plays(listing, rules, kernels.BEST)
    kernels.look_up(listing, num_plays, store)
    return num_plays


@kernel
def _note_reached(
    listing: Any, num_plays: int, ranks: Any, reached: Any, count: int, known: Any
) -> int:
    """Note the draw states that listed plays lead to in a scenario; returns the new count."""
    for play in range(num_plays):
        outcome = _outcome_that_comes(listing, play, ranks)
        for option in range(listing.first_option[outcome], listing.first_option[outcome + 1]):
            index = listing.found[option]
            if listing.leaves[option] == GOES_ON and np.isnan(known[index]):
                known[index] = 0.0
                reached[count] = index
                count += 1
    return count


@kernel
def _in_hindsight(
    listing: Any, num_plays: int, ranks: Any, known: Any, guess: Any, scale: float, payments: Any
) -> float:
    """The best of listed plays in a scenario, less the penalty for knowing the next spy."""
    best = -np.inf
    for play in range(num_plays):
        came = _outcome_that_comes(listing, play, ranks)
        penalty = kernels.outcome_value(listing, came, guess, payments, 0)
        penalty -= kernels.play_value(listing, play, guess, payments, 0)
        for option in range(listing.first_option[came], listing.first_option[came + 1]):
            value = kernels.option_value(listing, option, known, payments, 0)
            best = max(best, value - scale * penalty)
    return best


@entry_point
def _solve_scenario(
    start_words: Any,
    store: Any,
    ranks: Any,
    guess: Any,
    expected: Any,
    scale: float,
    payments: Any,
    rules: Any,
    listing: Any,
    reached: Any,
    known: Any,
) -> float:
    """The best play from a start in one scenario, less the penalties.

    Args:
        start_words: uint64 (1, WORDS), the decision to begin with.
        store: of all draw states.
        ranks: float64 (NUM_SPIES + 1, NUM_CARDS), see scenarios.
        guess: float64 (N, 1), what V makes of each draw state.
        expected: float64 (N, 1), the mean of V over what can be drawn there.
        scale: of the penalties.
        payments, rules, listing: as in exact_kernels.back_up.
        reached: int64 (N,), overwritten.
        known: float64 (N, 1), NaN, and so again in the end.
    """
    row = known[:, 0]
    for word in range(kernels.WORDS):
        listing.work_words[0, word] = start_words[0, word]
    count = _note_reached(listing, _list(listing, store, rules[0]), ranks, reached, 0, row)
    done = 0
    while done < count:
        draw_in_scenario(listing, store.words, reached[done], rules[0], ranks)
        if listing.work[0].phase != game.OVER:
            num_plays = _list(listing, store, rules[0])
            count = _note_reached(listing, num_plays, ranks, reached, count, row)
        done += 1
    for place in range(count - 1, -1, -1):  # a turn's draws come after those of the turn before
        index = reached[place]
        draw_in_scenario(listing, store.words, index, rules[0], ranks)
        if listing.work[0].phase == game.OVER:
            value = guessed = payments[0, 0]  # D8
        else:
            num_plays = _list(listing, store, rules[0])
            value = _in_hindsight(listing, num_plays, ranks, known, guess, scale, payments)
            guessed = kernels.decision_value(listing, num_plays, guess, payments, 0)
        row[index] = value - scale * (guessed - expected[index, 0])
    for word in range(kernels.WORDS):
        listing.work_words[0, word] = start_words[0, word]
    num_plays = _list(listing, store, rules[0])
    value = _in_hindsight(listing, num_plays, ranks, known, guess, scale, payments)
    for place in range(count):
        row[reached[place]] = np.nan
    return value


def upper_bound(
    solution: Solution,
    start: States,
    objective: int,
    guess: Values | None,
    ranks: npt.NDArray[np.float64],
) -> Bound:
    """An upper bound on the optimal value of a start, whatever the guess.

    The guess is of draw states; in between V follows from it by one look ahead: of what can be
    retired the best, of plays the best mean. The means of V that the penalties take away are
    computed exactly.

    Args:
        solution: of the start; only its list of draw states is used.
        start: shape (1,), dtype STATE.
        objective: index into the solution's objectives.
        guess: float64 (N,), the guessed value of each draw state; None for no penalties.
        ranks: of scenarios.

    Raises:
        ValueError: no single decision, or no guess for each draw state.
    """
    graph, payments = solution.graph, solution.payments[:, [objective]]
    if len(start) != 1:
        raise ValueError(f"start must be one position, got {len(start)}")
    if guess is not None and guess.shape != (graph.count,):
        raise ValueError(f"guess must be of shape ({graph.count},), got {guess.shape}")
    scale = 0.0 if guess is None else 1.0
    column = np.zeros((graph.count, 1)) if guess is None else guess[:, None].copy()
    expected = column if guess is None else graph.backed_up(column, payments, kernels.BEST)
    known = np.full((graph.count, 1), np.nan)
    reached = np.empty(graph.count, dtype=np.int64)
    words = words_of(clean_decisions(start, solution.rules))
    found = np.array(
        [
            _solve_scenario(
                *(words, graph.store, rank, column, expected, scale, payments),
                *(solution.rules.record, graph.listing, reached, known),
            )
            for rank in ranks
        ]
    )
    return Bound(found)
