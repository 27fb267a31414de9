"""``afterstate``: the play that promises most, by a value network over afterstates.

The network (``deck_of_spies_env/solitaire/afterstates.py``) gives the distribution of the final
number of Key Spies after each legal play. What is best of it depends on the objective: that of its
training, or another one given as an option. ``afterstate`` is the shipped network,
``afterstate=PATH`` that of a run directory or a file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from agents import MODELS
from agents.afterstate_network import load_network
from agents.model_files import AFTERSTATE_SUFFIX, model_file
from agents.objectives import utility_of
from agents.positions import PositionAgent
from deck_of_spies_env.agent import Actions
from deck_of_spies_env.solitaire.afterstates import AfterstateValue
from deck_of_spies_env.solitaire.rules import Rules

SHIPPED = MODELS / f"afterstate{AFTERSTATE_SUFFIX}"


class AfterstateAgent(PositionAgent):
    """The legal play of largest expected utility, from ``recall`` observations.

    Args:
        value: the network with a rule set and an objective.
    """

    def __init__(self, value: AfterstateValue) -> None:
        super().__init__(value.rules)
        self.value = value

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The best action of each position; ties go to the lower index."""
        return self.value.play_values(self.positions(observations))[1]

    def values(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float32]:
        """Expected utility of each play: float32 (N, n), NaN if illegal, see ValuingAgent."""
        values = self.value.play_values(self.positions(observations))[0]
        return np.where(action_masks, values, np.float32(np.nan))


def make(rules: Rules, path: Path | None, objective: str | None = None) -> AfterstateAgent:
    """The agent from a path, or the shipped one, for the objective given or that of its training.

    Raises:
        AgentError: no model there, or one of another version or rule set.
    """
    return AfterstateAgent(value_function(rules, path, objective))


def value_function(
    rules: Rules, path: Path | None, objective: str | None = None
) -> AfterstateValue:
    """What the agent thinks of plays and positions; arguments and errors as of :func:`make`."""
    network, made = load_network(model_file(path or SHIPPED, AFTERSTATE_SUFFIX, [SHIPPED]), rules)
    utility = utility_of(made["objective"] if objective is None else objective, rules)
    return AfterstateValue(network, rules, utility)
