"""Ratings from matches between pairs: the model of Bradley and Terry (1952), on Elo's scale.

Agent i beats agent j with probability 1 / (1 + 10^((R_j - R_i) / 400)). The likelihood takes shares
of wins, so shared wins count; half a game against an average agent is added for each, so that an
agent that has won or lost everything gets a finite rating too.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy import optimize, special  # pyright: ignore[reportMissingTypeStubs]

ELO = 400 / np.log(10)
_PRIOR_GAMES = 0.5
_RESAMPLES = 400


class Rating(NamedTuple):
    """A rating in Elo points, the mean of all rated being 0, with its interval."""

    rating: float
    low: float
    high: float


def bradley_terry(wins: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ratings of k agents, float64 (k,), mean 0.

    Args:
        wins: float64 (k, k), how often the agent of the row has beaten that of the column.

    Raises:
        ValueError: wins of another shape, or negative ones.
    """
    if wins.ndim != 2 or wins.shape[0] != wins.shape[1] or (wins < 0).any():
        raise ValueError(f"wins must be a square table of numbers from 0 up, got {wins.shape}")
    size = len(wins)

    def loss(strengths: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        differences = strengths[:, None] - strengths[None, :]
        total = -(wins * np.logaddexp(0, -differences)).sum()
        total -= _PRIOR_GAMES / 2 * np.logaddexp(0, np.stack((strengths, -strengths))).sum()
        pull = wins * special.expit(-differences)
        prior = _PRIOR_GAMES / 2 * (1 - 2 * special.expit(strengths))
        gradient = pull.sum(axis=1) - pull.sum(axis=0) + prior
        return -float(total), -gradient

    found: Any = optimize.minimize(loss, np.zeros(size), jac=True, method="BFGS")  # pyright: ignore[reportUnknownMemberType]
    strengths = cast(npt.NDArray[np.float64], found.x)
    return (strengths - strengths.mean()) * ELO


def rate(
    shares: dict[tuple[int, int], npt.NDArray[np.float64]],
    size: int,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[Rating]:
    """Ratings with intervals by the bootstrap over deals (Efron, 1979).

    Args:
        shares: for pairs i < j, the share of wins of i against j in each deal, float64 (D,); all
            pairs on the same D deals, which are resampled together.
        size: number of agents, k.
        confidence: of the percentile intervals.
        seed: of the resampling.

    Raises:
        ValueError: no pairs, or pairs of different numbers of deals.
    """
    if len({len(of_deals) for of_deals in shares.values()}) != 1:
        raise ValueError("ratings need pairs that all played the same deals")
    num_deals = len(next(iter(shares.values())))
    random = np.random.default_rng(seed)
    ratings = bradley_terry(_wins(shares, size, np.ones(num_deals)))
    drawn = np.empty((_RESAMPLES, size))
    for row in range(_RESAMPLES):
        counts = random.multinomial(num_deals, np.full(num_deals, 1 / num_deals))
        drawn[row] = bradley_terry(_wins(shares, size, counts.astype(np.float64)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return [Rating(*map(float, row)) for row in zip(ratings, low, high, strict=True)]


def _wins(
    shares: dict[tuple[int, int], npt.NDArray[np.float64]],
    size: int,
    weights: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    wins = np.zeros((size, size))
    for (first, second), of_deals in shares.items():
        won = float(of_deals @ weights)
        wins[first, second] += won
        wins[second, first] += float(weights.sum()) - won
    return wins
