"""``random``: uniform over the legal actions, the foot of the ladder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.solitaire.rules import Rules


class RandomAgent(BatchAgent):
    """Every legal action with the same probability."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng()

    def reset(self, seed: int) -> None:
        """Start anew with a seed."""
        self._rng = np.random.default_rng(seed)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The legal action with the largest of independent uniform keys."""
        keys = self._rng.random(action_masks.shape)
        return np.where(action_masks, keys, -1.0).argmax(axis=1)

    def probabilities(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """The same for all legal actions: float64 (N, n), see ProbabilisticAgent."""
        return action_masks / action_masks.sum(axis=1, keepdims=True)


def make(rules: Rules, path: Path | None) -> RandomAgent:
    """The agent; rules and path do not matter."""
    return RandomAgent()
