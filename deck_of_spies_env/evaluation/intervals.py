"""Which intervals a report gives: those for a fixed number of deals, or those valid at every stop.

All are of 95%, one by one.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.evaluation import statistics
from deck_of_spies_env.evaluation.sequential import MeanSequence, WinRateSequence
from deck_of_spies_env.evaluation.statistics import MAX_KEY_SPIES, Interval

_MIN_FOR_T_INTERVAL = 2


class Intervals(Protocol):
    """Intervals of figures over deals."""

    def rate(self, won: npt.NDArray[np.bool_]) -> Interval:
        """Of the share of deals for which something holds, bool (D,)."""
        ...

    def mean(self, values: npt.NDArray[Any], low: float, high: float) -> Interval:
        """Of the mean of values (D,) that lie in a range."""
        ...

    def mean_difference(self, differences: npt.NDArray[Any], spread: float) -> Interval | None:
        """Of the mean of differences (D,) between -spread and spread, None if there is none."""
        ...

    def win_difference(
        self, first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]
    ) -> Interval:
        """Of the first win rate less the second, on the same deals, bool (D,)."""
        ...

    def band(self, key_spies: npt.NDArray[np.int64]) -> dict[int, Interval]:
        """Of P(at least k Key Spies), k = 1-12, all at once."""
        ...


class FixedIntervals:
    """For a number of deals that was fixed beforehand."""

    def rate(self, won: npt.NDArray[np.bool_]) -> Interval:
        """Wilson's interval."""
        return statistics.wilson_interval(int(np.count_nonzero(won)), len(won))

    def mean(self, values: npt.NDArray[Any], low: float, high: float) -> Interval:
        """That of ``statistics.bounded_mean_interval``."""
        return statistics.bounded_mean_interval(values, low, high)

    def mean_difference(self, differences: npt.NDArray[Any], spread: float) -> Interval | None:
        """Student's t interval, None after one deal."""
        if len(differences) < _MIN_FOR_T_INTERVAL:
            return None
        return statistics.mean_interval(differences)

    def win_difference(
        self, first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]
    ) -> Interval:
        """Newcombe's interval for paired proportions."""
        return statistics.paired_win_rate_difference(first, second).interval

    def band(self, key_spies: npt.NDArray[np.int64]) -> dict[int, Interval]:
        """The band of Dvoretzky, Kiefer, Wolfowitz and Massart."""
        return statistics.survival_band(key_spies)


class AnytimeIntervals:
    """For a number of deals that depends on what was seen: confidence sequences."""

    def rate(self, won: npt.NDArray[np.bool_]) -> Interval:
        """Of the beta-binomial mixture."""
        sequence = WinRateSequence()
        sequence.update(won)
        return sequence.interval

    def mean(self, values: npt.NDArray[Any], low: float, high: float) -> Interval:
        """By betting."""
        sequence = MeanSequence(low, high)
        sequence.update(values)
        return sequence.interval

    def mean_difference(self, differences: npt.NDArray[Any], spread: float) -> Interval | None:
        """By betting."""
        return self.mean(differences, -spread, spread)

    def win_difference(
        self, first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]
    ) -> Interval:
        """By betting."""
        return self.mean(first.astype(np.float64) - second, -1, 1)

    def band(self, key_spies: npt.NDArray[np.int64]) -> dict[int, Interval]:
        """One confidence sequence for each number, at a level that covers all of them."""
        band: dict[int, Interval] = {}
        for number in range(1, MAX_KEY_SPIES + 1):
            sequence = WinRateSequence(1 - 0.05 / MAX_KEY_SPIES)
            sequence.update(key_spies >= number)
            band[number] = sequence.interval
        return band
