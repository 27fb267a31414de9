"""Luck in matches of Deck of Spies, and estimates with it taken out.

Whenever chance decides, its luck is what the position that came is worth, less what the positions
are worth on the average that could have come: their mean where they are few, else that of a sample
drawn from the same position and action under fresh chance. Given these two, what came and what is
drawn are independent and alike, so luck is 0 in the mean, whatever the agent and whatever the value
function. So what is left of an outcome without its luck has the outcome's own mean, and a smaller
variance if the values are good. This is AIVAT (Burch, Schmid, Moravcik, Morrill and Bowling,
"AIVAT: a new variance reduction technique for agent evaluation in imperfect information games",
AAAI 2018) for one player, without its terms for the player's own choices, and with means over
samples where the sums are too long.

How much of the luck is taken out is learnt from the deals themselves, each tenth of them from the
other nine, so that the estimate stays unbiased and bad values do little harm (control variates with
cross-fitting: Avramidis and Wilson, "A splitting scheme for control variates", Operations Research
Letters 14, 1993).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.checks import check_count
from deck_of_spies_env.evaluation.matches import Watcher
from deck_of_spies_env.evaluation.statistics import Interval, paired_mean_difference
from deck_of_spies_env.evaluation.values import position_values
from deck_of_spies_env.random_streams import fork_streams
from deck_of_spies_env.solitaire.futures import look_ahead
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.solitaire.rules import Rules

DEFAULT_SAMPLES = 16
DEAL_SAMPLES = 64
"""Deals that an opening is compared with; there is one opening for some sixty plays."""

Floats = npt.NDArray[np.float64]
ValueFunction = Callable[[npt.NDArray[Any], Rules], Floats]
"""What positions are worth: states (N,) and rules to float64 (N, m), for any m."""

_FOLDS = 10
_PRIOR_DEALS = 200
"""Taking out all of an outcome's own luck counts as if so many deals had shown it to be best."""

_APART_FROM_AGENTS = 1 << 64
"""Added to the seed: agents that plan draw from streams of their own seeds, which are smaller."""


class LuckWatcher(Watcher):
    """Adds up the luck of each deal of a match.

    The luck of a deal depends on the seed, its number and how it is played. What is played beside
    it changes it by rounding alone.

    Args:
        num_deals: D, how many the match has.
        rules: the rule set of the match, None for the default.
        seed: of the positions that could have come.
        samples: how many of them are drawn where they are many.
        value_function: what positions are worth; games that are over should be worth what they came
            to.

    Attributes:
        luck: float64 (D, m), a column for each of the value function's; whole for the deals that
            have ended.

    Raises:
        ValueError: a negative seed, or a count below 1.
    """

    def __init__(
        self,
        num_deals: int,
        rules: Rules | None = None,
        seed: int = 0,
        samples: int = DEFAULT_SAMPLES,
        value_function: ValueFunction = position_values,
    ) -> None:
        self._rules = Rules.of(rules)
        self._samples = check_count("samples", samples)
        self._values = value_function
        if seed < 0:
            raise ValueError(f"seed must be a non-negative integer, got {seed}")
        self._streams = fork_streams(seed + _APART_FROM_AGENTS, check_count("num_deals", num_deals))
        self.luck: Floats = np.zeros((num_deals, 0))
        self._expected: Floats = np.zeros((0, 0))
        self._decided: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def dealt(
        self, games: Games, slots: npt.NDArray[np.int64], deals: npt.NDArray[np.int64]
    ) -> None:
        """Count the luck of openings."""
        values = self._values(games.states[slots], self._rules)
        if not self.luck.shape[1]:
            self.luck = np.zeros((len(self.luck), values.shape[1]))
        openings = self._values(self._openings(games, deals), self._rules)
        expected = openings.reshape(len(deals), DEAL_SAMPLES, -1).mean(axis=1)
        self.luck[deals] = values - expected

    def _openings(self, games: Games, deals: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Openings that could have come: shape (k * DEAL_SAMPLES,), dtype STATE."""
        others = Games(len(deals) * DEAL_SAMPLES, rules=self._rules)
        others.streams[:] = np.repeat(self._streams[deals], DEAL_SAMPLES)
        others.streams["episode"] = np.tile(np.arange(DEAL_SAMPLES), len(deals)) - 1
        others.deal(start=games.start)
        return others.states

    def chosen(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> None:
        """Find out what can be expected after each action."""
        states = np.ascontiguousarray(games.states[slots])
        futures = look_ahead(
            *(states, np.arange(len(slots)), actions, self._streams["key"][deals]),
            *(self._streams[:1], self._samples, self._rules),
        )
        self._expected = futures.means(self._values(futures.states, self._rules))
        self._decided = futures.listed & (futures.counts == 1)

    def stepped(
        self, games: Games, slots: npt.NDArray[np.int64], deals: npt.NDArray[np.int64]
    ) -> None:
        """Count the luck of what has come."""
        by_chance = ~self._decided
        values = self._values(games.states[slots[by_chance]], self._rules)
        self.luck[deals[by_chance]] += values - self._expected[by_chance]


class Adjusted(NamedTuple):
    """A mean with luck taken out.

    Attributes:
        mean: of the adjusted outcomes.
        interval: Student's t interval of it.
        factor: how many times as many deals would have made the plain mean as precise: the
            variance of the outcomes, divided by that of the adjusted ones; 1 if neither varies.
    """

    mean: float
    interval: Interval
    factor: float


def adjusted_outcomes(outcomes: npt.NDArray[Any], luck: Floats, column: int) -> Floats:
    """Outcomes with luck taken out, float64 (D,).

    The coefficients of the luck are found by least squares, drawn towards 1 for the outcome's own
    luck and 0 for the other as if some hundred deals had shown that, and each tenth of the deals is
    adjusted by those of the other nine. With few deals they are about 1 and 0, which holds the
    coverage of intervals up where wins or losses are rare, but does harm to an agent that the
    values do not fit; with a thousand or more they are what serves best.

    Args:
        outcomes: (D,), numbers or bool, D at least 2.
        luck: float64 (D, m) of the same deals, from a LuckWatcher.
        column: of the outcome's own luck, as ``QUANTITIES.index("wins")``.

    Raises:
        ValueError: arrays of other shapes, numbers that are not finite, or no such column.
    """
    values, luck = np.asarray(outcomes, np.float64), np.asarray(luck, np.float64)
    if values.ndim != 1 or len(values) < 2 or luck.ndim != 2 or len(luck) != len(values):
        raise ValueError(
            f"outcomes (D,) and luck (D, m) must be of the same deals, two at least, "
            f"got shapes {values.shape} and {luck.shape}"
        )
    if not 0 <= column < luck.shape[1]:
        raise ValueError(f"column must be 0 to {luck.shape[1] - 1}, got {column}")
    if not (np.isfinite(values).all() and np.isfinite(luck).all()):
        raise ValueError("outcomes and luck must be finite")
    own = np.eye(luck.shape[1])[column]
    folds = np.arange(len(values)) % _FOLDS
    adjusted = np.empty(len(values))
    for fold in range(min(_FOLDS, len(values))):
        within = folds == fold
        coefficients = own + _correction(values[~within] - luck[~within] @ own, luck[~within])
        adjusted[within] = values[within] - luck[within] @ coefficients
    return adjusted


def _correction(outcomes: Floats, luck: Floats) -> Floats:
    """Coefficients of luck that make outcomes vary least, drawn towards 0: float64 (m,)."""
    centred = luck - luck.mean(axis=0)
    products = centred.T @ centred
    ridge = np.diag(np.diag(products)) * (_PRIOR_DEALS / len(outcomes))
    return np.linalg.lstsq(products + ridge, centred.T @ (outcomes - outcomes.mean()))[0]


def adjusted_mean(
    outcomes: npt.NDArray[Any],
    luck: Floats,
    column: int,
    *,
    confidence: float = 0.95,
    bounds: Interval | None = None,
) -> Adjusted:
    """The mean of outcomes with luck taken out.

    Args:
        outcomes, luck, column: as in :func:`adjusted_outcomes`.
        confidence: coverage aimed at, in (0, 1).
        bounds: what a mean can be at all, (0, 1) for a win rate: an adjusted mean and its interval
            can come to lie outside, and are cut off there. None for no bounds.

    Raises:
        ValueError: as in adjusted_outcomes, or a confidence out of range.
    """
    adjusted = adjusted_outcomes(outcomes, luck, column)
    mean, (low, high) = paired_mean_difference(adjusted, np.zeros(len(adjusted)), confidence)
    least, most = bounds or (-np.inf, np.inf)
    mean, low, high = (float(np.clip(number, least, most)) for number in (mean, low, high))
    plain, left = float(np.var(outcomes)), float(adjusted.var())
    return Adjusted(mean, Interval(low, high), plain / left if left else 1.0)


def adjusted_difference(
    first: npt.NDArray[Any],
    first_luck: Floats,
    second: npt.NDArray[Any],
    second_luck: Floats,
    column: int,
    *,
    confidence: float = 0.95,
) -> Adjusted:
    """The mean of ``first - second`` on the same deals, with the luck of both taken out.

    Args:
        first, first_luck: of one agent, as in :func:`adjusted_outcomes`.
        second, second_luck: of another, in the same order of deals.
        column, confidence: as in :func:`adjusted_mean`.

    Returns:
        Its ``factor`` is in comparison to the paired difference of the plain outcomes.

    Raises:
        ValueError: as in adjusted_outcomes, other deals, or a confidence out of range.
    """
    ours = adjusted_outcomes(first, first_luck, column)
    theirs = adjusted_outcomes(second, second_luck, column)
    mean, interval = paired_mean_difference(ours, theirs, confidence)
    plain = float((np.asarray(first, np.float64) - np.asarray(second, np.float64)).var())
    left = float((ours - theirs).var())
    return Adjusted(mean, interval, plain / left if left else 1.0)
