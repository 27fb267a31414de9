"""``greedy``: recruit spies of 9 and more, counter the others, retire pairs.

The definition stands in ``deck_of_spies_env.solitaire.policies.greedy_action``; it looks one play
ahead and at nothing but the hand and the spy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from agents.positions import PositionAgent
from deck_of_spies_env.agent import Actions
from deck_of_spies_env.solitaire.policies import greedy_actions
from deck_of_spies_env.solitaire.rules import Rules


class GreedyAgent(PositionAgent):
    """Greedy play from ``recall`` observations.

    Args:
        rules: the rule set to be played.
    """

    compiled_policy = "greedy"

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The greedy action of each position."""
        return greedy_actions(self.positions(observations), self.rules)


def make(rules: Rules, path: Path | None) -> GreedyAgent:
    """The agent for a rule set."""
    return GreedyAgent(rules)
