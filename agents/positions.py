"""What the agents of Deck of Spies share that read positions: they were made for one rule set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import BatchAgent
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.games import states_from_recall
from deck_of_spies_env.solitaire.observations import observation_high
from deck_of_spies_env.solitaire.positions import check_states
from deck_of_spies_env.solitaire.rules import OVER, Rules


class PositionAgent(BatchAgent):
    """Base of agents that rebuild the position from a ``recall`` observation.

    Args:
        rules: the rule set to be played.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        high = observation_high("recall", rules.hand_size)
        self.widths = len(high), action_table(rules.hand_size).num_actions

    def positions(self, observations: npt.NDArray[np.int8]) -> npt.NDArray[Any]:
        """The positions that observations hold: shape (N,), dtype STATE.

        Kernels go through them without looking back, so they are checked here.

        Raises:
            ValueError: observations that hold no position of these rules.
        """
        states = states_from_recall(observations)
        try:
            check_states(states, self.rules)
        except ValueError as error:
            raise ValueError(f"no recall observation of a game: {error}") from None
        if (states["phase"] == OVER).any():
            raise ValueError("no recall observation of a game: there is nothing to decide")
        return states
