"""``ppo``: a network trained by MaskablePPO, played deterministically.

``ppo`` is the shipped model, ``ppo=PATH`` that of a run directory or a model file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import MODELS
from agents.model_files import model_file
from agents.training.models import load_policy
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.solitaire.rules import Rules

SHIPPED = MODELS / "ppo.zip"
SUFFIX = ".zip"
_CHUNK = 4096


class PPOAgent(BatchAgent):
    """The likeliest action under a trained policy, from ``recall`` observations.

    Args:
        policy: an sb3-contrib policy with action masks.
    """

    def __init__(self, policy: MaskableActorCriticPolicy) -> None:
        self.policy = policy

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The action of largest probability, in chunks that fit the processor's cache."""
        with th.inference_mode():
            chunks = [
                self._choose_chunk(observations[i : i + _CHUNK], action_masks[i : i + _CHUNK])
                for i in range(0, len(observations), _CHUNK)
            ]
        return np.concatenate(chunks)

    def _choose_chunk(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        tensor = th.as_tensor(observations, device=self.policy.device)
        distribution = self.policy.get_distribution(tensor, action_masks)
        return distribution.get_actions(deterministic=True).cpu().numpy()


def make(rules: Rules, path: Path | None) -> PPOAgent:
    """The agent from a path, or the shipped one.

    Raises:
        AgentError: no model there, or one of another version or rule set.
    """
    return PPOAgent(load_policy(model_file(path or SHIPPED, SUFFIX), rules))
