"""``ppo``: a network trained by MaskablePPO, played deterministically.

``ppo`` is the shipped model, ``ppo=PATH`` that of a run directory or a model file. Of a run the
last model is taken once there is one: the learning rate has come down to its end by then, while the
best of many evaluations is in part the luckiest.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import MODELS, AgentError
from agents.training.models import load_policy
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.solitaire.rules import Rules

SHIPPED = MODELS / "ppo.zip"
BEST_MODEL, LAST_MODEL = "best_model.zip", "last_model.zip"
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


def model_file(path: Path) -> Path:
    """The model file that a path means: itself, or a run directory's last or best model.

    Raises:
        AgentError: nothing there.
    """
    if path.is_file():
        return path
    if not path.exists():
        raise AgentError(f"no model at {path}; {_shipped()}")
    for name in (LAST_MODEL, BEST_MODEL):
        if (path / name).is_file():
            return path / name
    raise AgentError(f"no model in {path}: expected {LAST_MODEL} or {BEST_MODEL}; {_shipped()}")


def _shipped() -> str:
    names = sorted(path.stem for path in MODELS.glob("*.zip"))
    return f"shipped models: {', '.join(names) or 'none'}"


def make(rules: Rules, path: Path | None) -> PPOAgent:
    """The agent from a path, or the shipped one.

    Raises:
        AgentError: no model there, or one of another version or rule set.
    """
    return PPOAgent(load_policy(model_file(path or SHIPPED), rules))
