"""Fit the worths by which the planners of Skirmish judge positions.

usage: python -m agents.training.fit_skirmish_worths PLAYERS [GAMES]

``intrigue`` plays itself, one move in ten at random, on deals that nothing else uses. In a quarter
of its rounds the holdings of all seats are counted by rank, and a multinomial logit model of who
wins (McFadden, "Conditional logit analysis of qualitative choice behavior", 1974) is fitted to
them. It prints the worth of each rank, Ace to Joker, as ``agents/skirmish/judgement.py`` has them.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from deck_of_spies_env.skirmish.actions import WAIT
from deck_of_spies_env.skirmish.bots import make_bot
from deck_of_spies_env.skirmish.cards import NUM_RANKS
from deck_of_spies_env.skirmish.games import Games
from deck_of_spies_env.skirmish.rules import SKIRMISH

_FIRST_SEED = 10_000_000
_RANDOM_MOVES, _ROUNDS_TAKEN = 0.1, 0.25
_RIDGE = 1e-6

Floats = npt.NDArray[np.float64]


def count_holdings(games: Games, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
    """Cards of each rank that the seats of chosen tables hold anywhere: float32 (M, n, 14)."""
    states = games.states[chosen]
    held = (states["hand"] | states["supply"] | states["capture"])[:, : games.num_players]
    ranks = [held >> np.uint64(4 * rank) & np.uint64(15) for rank in range(NUM_RANKS)]
    return np.stack([np.bitwise_count(rank) for rank in ranks], axis=-1).astype(np.float32)


def collect(
    num_players: int, num_games: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], Floats]:
    """Holdings, float32 (M, n, 14), the game of each, int64 (M,), and payoffs, float64 (G, n)."""
    games = Games(num_games, num_players)
    games.seed(range(num_games), range(_FIRST_SEED, _FIRST_SEED + num_games))
    games.deal()
    bot, rng = make_bot("intrigue", num_players), np.random.default_rng(1)
    going_on, payoffs = np.ones(num_games, np.bool_), np.zeros((num_games, num_players))
    holdings: list[npt.NDArray[np.float32]] = []
    numbers: list[npt.NDArray[np.int64]] = []
    while going_on.any():
        chosen = going_on & (games.states["phase"] == SKIRMISH)
        found = count_holdings(games, chosen)
        taken = rng.random(len(found)) < _ROUNDS_TAKEN
        holdings.append(found[taken])
        numbers.append(np.flatnonzero(chosen)[taken])
        deciding = going_on[:, None] & (games.masks[:, :, WAIT] == 0)
        masks = games.masks[deciding]
        best = bot.act(games.observations[deciding], masks)
        random = (rng.random(masks.shape) * masks).argmax(axis=1)
        actions = np.full((num_games, num_players), WAIT, dtype=np.int64)
        actions[deciding] = np.where(rng.random(len(masks)) < _RANDOM_MOVES, random, best)
        games.step(actions, going_on)
        ended = going_on & games.over
        payoffs[ended] = games.rewards[ended]
        going_on &= ~ended
    return np.concatenate(holdings), np.concatenate(numbers), payoffs


def fit(
    holdings: npt.NDArray[np.float32], numbers: npt.NDArray[np.int64], payoffs: Floats
) -> Floats:
    """Worths of the ranks, float64 (14,), from what collect returns."""
    n = payoffs.shape[1]
    shares = ((payoffs * (n - 1) + 1.0) / n)[numbers]  # of the win

    def loss(worths: Floats) -> tuple[float, Floats]:
        logits = holdings @ worths
        logits -= logits.max(axis=1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(axis=1, keepdims=True)
        missed = -(shares * np.log(chances + 1e-12)).sum(axis=1).mean()
        slope = np.einsum("ij,ijk->k", chances - shares, holdings) / len(holdings)
        return float(missed + _RIDGE * (worths**2).sum()), slope + 2.0 * _RIDGE * worths

    return minimize(loss, np.zeros(NUM_RANKS), jac=True, method="L-BFGS-B").x


def main() -> None:
    """Fit and print, see the module."""
    num_players, *more = (int(argument) for argument in sys.argv[1:])
    worths = fit(*collect(num_players, more[0] if more else 1500))
    print(num_players, np.round(worths, 3).tolist())


if __name__ == "__main__":
    main()
