"""``rollout``: flat Monte Carlo, every legal action tried by playouts of greedy play.

The position is rebuilt from the observation. Each legal action is taken ``budget`` times, and play
goes on from there to the end as ``greedy`` would; the action with the best mean score is chosen. A
playout scores its Key Spies, and three more if it is won. Ties go to the action with more Key
Spies, then to the lowest index. A forced action takes no playouts.

The k-th playout of each action of a position meets the same chance (common random numbers), from
streams that depend on the agent's seed and on the position alone. So a deal is played equally
whatever is played beside it and whenever, and equal positions are judged equally. They have
nothing in common with the streams of any game: the future is guessed and never seen.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.positions import PositionAgent
from agents.rollout_kernels import choose_by_playouts
from deck_of_spies_env.agent import Actions
from deck_of_spies_env.checks import check_count
from deck_of_spies_env.compiled import compiling
from deck_of_spies_env.random_streams import fork_streams
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.games import SNAPSHOT
from deck_of_spies_env.solitaire.rules import Rules

DEFAULT_BUDGET = 64


class RolloutAgent(PositionAgent):
    """Flat Monte Carlo from ``recall`` observations.

    Args:
        rules: the rule set to be played.
        budget: playouts of each legal action.

    Raises:
        ValueError: a budget that is no whole number of at least 1.
    """

    def __init__(self, rules: Rules, budget: int = DEFAULT_BUDGET) -> None:
        super().__init__(rules)
        self._budget = check_count("budget", budget)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start anew with a seed for the playouts; it is 0 for an agent just made.

        Raises:
            ValueError: the seed is negative.
        """
        self._streams = fork_streams(seed, 1)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The action of each position that did best in its playouts."""
        positions = np.zeros(len(observations), dtype=SNAPSHOT)
        positions["state"] = self.positions(observations)
        positions["streams"] = self._streams
        _compile()
        return _chosen(positions, self.rules, self._budget)


def _chosen(positions: npt.NDArray[Any], rules: Rules, budget: int) -> Actions:
    actions = np.zeros(len(positions), dtype=np.int64)
    legal = np.zeros((2, action_table(rules.hand_size).num_words), dtype=np.uint64)
    choose_by_playouts(positions, rules.record, legal, budget, actions)
    return actions


@cache
def _compile() -> None:
    with compiling():
        _chosen(np.zeros(0, dtype=SNAPSHOT), Rules(), 1)


def make(rules: Rules, path: Path | None, budget: int = DEFAULT_BUDGET) -> RolloutAgent:
    """The agent for a rule set."""
    return RolloutAgent(rules, budget)
