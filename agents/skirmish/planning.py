"""What the planners of Skirmish share: forced moves cost nothing, others are drawn from a strategy.

A strategy and the number by which a move is drawn from it depend on the agent's seed and on the
observation alone. So a deal is played equally whatever is played beside it and whenever, and where
a seat knows the same it plays the same. The chance that a planner meets has nothing in common with
the streams of any game: hidden cards are guessed and never seen.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from agents.skirmish.judgement import Floats, planning_streams, worths_of
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.skirmish.observations import observation_high
from deck_of_spies_env.skirmish.rules import Rules, check_num_players


class Planner(BatchAgent):
    """Base of the planners.

    Args:
        num_players: n, 2-4.
        rules: the rule set to be played, None for the default.
        worth: ``fitted`` or ``points``, by which positions are judged, see ``judgement.py``.
        greedy: play the most likely action of the strategy instead of drawing one.

    Raises:
        ValueError: an argument out of its range.
    """

    def __init__(self, num_players: int, rules: Rules | None, worth: str, greedy: bool) -> None:
        self._num_players = check_num_players(num_players)
        rules = Rules.of(rules)
        self._rules = rules.record(num_players)
        self._worths = worths_of(worth, num_players, rules)
        self._width = len(observation_high(num_players))
        self._greedy = greedy
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start anew with a seed for the planner's chance; it is 0 for an agent just made.

        Raises:
            ValueError: the seed is negative.
        """
        self._streams = planning_streams(seed)

    @abstractmethod
    def _plan(
        self,
        rows: npt.NDArray[np.int8],
        masks: npt.NDArray[np.bool_],
        strategies: Floats,
        numbers: Floats,
    ) -> None:
        """Write strategies, float64 (N, 15), and numbers in [0, 1), (N,), for seats with a choice.

        Args:
            rows: int8 (N, d), contiguous.
            masks: bool (N, 15), each with two legal actions at least.
            strategies, numbers: overwritten.
        """

    def _planned(
        self, observations: npt.NDArray[np.int8], masks: npt.NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        if observations.shape[1] != self._width:
            raise ValueError(
                f"observations of {self._num_players} players have {self._width} entries, "
                f"got {observations.shape[1]}"
            )
        strategies, numbers = masks.astype(np.float64), np.zeros(len(masks))
        free = np.flatnonzero(masks.sum(axis=1) > 1)
        if free.size:
            written, drawn = np.zeros((free.size, masks.shape[1])), np.zeros(free.size)
            self._plan(observations[free], masks[free], written, drawn)
            strategies[free], numbers[free] = written, drawn
        return strategies, numbers

    def strategies(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Floats:
        """How likely each action is before one is drawn: float64 (N, 15), from a batch as in act.

        Raises:
            ValueError: observations of another number of players.
        """
        return self._planned(observations, action_masks)[0]

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """One action each, see BatchAgent.

        Raises:
            ValueError: observations of another number of players.
        """
        strategies, numbers = self._planned(observations, action_masks)
        return strategies.argmax(axis=1) if self._greedy else drawn_from(strategies, numbers)


def drawn_from(strategies: Floats, numbers: Floats) -> Actions:
    """The action of each row of chances, float64 (N, n), that a number in [0, 1) falls on."""
    reached = strategies.cumsum(axis=1)
    # Sums may miss 1 by rounding; then the last action that is possible is meant.
    limits = np.minimum(numbers, np.nextafter(reached[:, -1], 0.0))
    return (reached > limits[:, None]).argmax(axis=1)
