"""``matrix``: the round at hand as a matrix game over sampled deals, solved as a linear program.

Hidden cards are dealt anew ``samples`` times from what the seat may know. In each deal, every pair
of a rank of one's own and one of an opponent's is played by the rules to the end of the round, a
War included, and judged by ``judgement.py``. That gives one matrix per deal and opponent; further
opponents commit any of their cards in it. The strategy x over one's own ranks maximises the mean
over the matrices A of

    caution * min_j (x A)_j + (1 - caution) * mean_j (x A)_j

With ``caution`` 1 each opponent knows its own hand and x, and answers best: a Bayesian game in
which one side's hand is open. With 0 opponents commit anything. The first is the maximin of von
Neumann's theorem as a linear program (Dantzig, "A proof of the equivalence of the programming
problem and the game problem", 1951), with one variable for the value of each matrix.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from agents.skirmish.judgement import WORTHS, Floats, planning_streams, worths_of
from agents.skirmish.matrix_kernels import write_games
from agents.skirmish.planning import Planner
from deck_of_spies_env.checks import check_count
from deck_of_spies_env.compiled import compiling
from deck_of_spies_env.skirmish.observations import observation_high
from deck_of_spies_env.skirmish.rules import HAND_SIZE, MIN_PLAYERS, Rules

Counts = npt.NDArray[np.int64]

DEFAULT_SAMPLES, DEFAULT_WARS, DEFAULT_CAUTION = 16, 4, 1.0


class MatrixAgent(Planner):
    """One round ahead of sampled deals, by linear programming.

    Args:
        num_players: 2-4.
        rules: the rule set to be played, None for the default.
        samples: deals that are sampled, at least 1.
        wars: times that a War of the skirmish phase is played in each deal, at least 1.
        caution: 0 to 1, see the module.
        worth: ``fitted`` or ``points``, see ``judgement.py``.

    Raises:
        ValueError: an argument out of its range; the message names it.
    """

    def __init__(
        self,
        num_players: int,
        rules: Rules | None = None,
        samples: int = DEFAULT_SAMPLES,
        *,
        wars: int = DEFAULT_WARS,
        caution: float = DEFAULT_CAUTION,
        worth: str = WORTHS[0],
    ) -> None:
        self._samples, self._wars = check_count("samples", samples), check_count("wars", wars)
        if not 0.0 <= caution <= 1.0:
            raise ValueError(f"caution must be in 0-1, got {caution!r}")
        self._caution = float(caution)
        _compile()
        super().__init__(num_players, rules, worth, greedy=False)

    def _plan(
        self,
        rows: npt.NDArray[np.int8],
        masks: npt.NDArray[np.bool_],
        strategies: Floats,
        numbers: Floats,
    ) -> None:
        n = self._num_players
        gains = np.empty((len(rows), self._samples, n - 1, HAND_SIZE, HAND_SIZE))
        counts = np.empty((len(rows), self._samples, n), np.int64)
        write_games(
            rows, self._rules, self._worths, self._streams, self._wars, gains, counts, numbers
        )
        for row, mask in enumerate(masks):
            own = gains[row, :, :, : int(mask.sum())]
            strategies[row, mask] = solve(own, counts[row, :, 1:], self._caution)


def solve(gains: Floats, counts: Counts, caution: float = 1.0) -> Floats:
    """The strategy that is best against answers to it in several matrix games at once.

    Args:
        gains: float64 (H, K, m, 3), one's gain by one's own choice and that of the opponent.
        counts: int64 (H, K), how many choices the opponent has in each game, the first of the 3; a
            game with none is left out, but there must be one that has.
        caution: 0 to 1, see the module.

    Returns:
        float64 (m,), which adds up to 1.

    Raises:
        RuntimeError: the program could not be solved; no finite gains are known to do that.
    """
    there = counts > 0
    games = gains[there].transpose(0, 2, 1)  # (G, 3, m)
    possible = np.arange(games.shape[1]) < counts[there][:, None]  # (G, 3)
    even = np.einsum("gj,gjm->m", possible / counts[there][:, None], games) / len(games)
    pure = _best_pure(games, possible, even, caution)
    return _by_program(games, possible, even, caution) if pure is None else pure


def _best_pure(
    games: Floats, possible: npt.NDArray[np.bool_], even: Floats, caution: float
) -> Floats | None:
    """A choice that is proved to be best on its own, which spares the program; else None.

    The function to be maximised is concave, and the answers to a choice give a slope of it there: a
    bound on all of it. If the bound is nowhere above the choice itself, nothing is.
    """
    size = games.shape[2]
    filled = np.where(possible[:, :, None], games, np.inf)
    answers = filled.argmin(axis=1)  # (G, m)
    numbers = np.arange(len(games))
    for choice in range(size):
        slope = games[numbers, answers[:, choice]].mean(axis=0)
        slope = caution * slope + (1.0 - caution) * even
        if slope[choice] >= slope.max():
            return np.eye(size)[choice]
    return None


def _by_program(
    games: Floats, possible: npt.NDArray[np.bool_], even: Floats, caution: float
) -> Floats:
    """The program over x and the value of each game, which no answer may bring below."""
    num_games, size = len(games), games.shape[2]
    game, answer = np.nonzero(possible)
    above = np.zeros((len(game), size + num_games))
    above[:, :size] = -games[game, answer]
    above[np.arange(len(game)), size + game] = 1.0
    values = np.full(num_games, -caution / num_games)
    sums_to_one = np.append(np.ones(size), np.zeros(num_games))[None, :]
    solution = linprog(
        np.append(-(1.0 - caution) * even, values),
        A_ub=above,
        b_ub=np.zeros(len(game)),
        A_eq=sums_to_one,
        b_eq=[1.0],
        bounds=[(0.0, None)] * size + [(None, None)] * num_games,
        method="highs",
    )
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    strategy = np.maximum(solution.x[:size], 0.0)  # which may miss 0 and 1 by rounding
    return strategy / strategy.sum()


def make(
    rules: Rules, path: Path | None, num_players: int, samples: int = DEFAULT_SAMPLES
) -> MatrixAgent:
    """The agent for a table."""
    return MatrixAgent(num_players, rules, samples)


@cache
def _compile() -> None:
    """Compile or load the kernel once, safe among processes."""
    n, rules = MIN_PLAYERS, Rules()
    rows = np.zeros((0, len(observation_high(n))), np.int8)
    gains = np.zeros((0, 1, n - 1, HAND_SIZE, HAND_SIZE))
    counts, worths = np.zeros((0, 1, n), np.int64), worths_of("points", n, rules)
    with compiling():
        write_games(
            rows, rules.record(n), worths, planning_streams(0), 1, gains, counts, np.zeros(0)
        )
