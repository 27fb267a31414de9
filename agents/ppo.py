"""``ppo``: a network trained by MaskablePPO, played deterministically.

``ppo`` is the shipped model, ``ppo=PATH`` that of a run directory or a model file. Other models
that are shipped were trained for Key Spies, ``ppo:objective=keys``, and for all twelve of them,
``ppo:objective=perfect``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import MODELS, AgentError
from agents.model_files import PPO_SUFFIX, model_file, widths_of
from agents.objectives import utility_of, write_counts
from agents.training.models import load_policy
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.solitaire.games import recall_of_states
from deck_of_spies_env.solitaire.rules import OVER, Rules

SHIPPED = {
    "win": MODELS / f"ppo{PPO_SUFFIX}",
    "keys": MODELS / f"ppo_keys{PPO_SUFFIX}",
    "perfect": MODELS / f"ppo_perfect{PPO_SUFFIX}",
}
"""The models that come with the project, by objective."""
_CHUNK = 4096


class PPOAgent(BatchAgent):
    """The likeliest action under a trained policy, from ``recall`` observations.

    Args:
        policy: an sb3-contrib policy with action masks.
        rules: the rule set that it was trained for, None if that is not known.
    """

    def __init__(self, policy: MaskableActorCriticPolicy, rules: Rules | None = None) -> None:
        self.policy, self.rules = policy, rules
        self.widths = widths_of(policy)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The action of largest probability, in chunks that fit the processor's cache."""
        return self._by_chunks(
            lambda distribution: distribution.get_actions(deterministic=True),
            observations,
            action_masks,
        )

    def probabilities(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float32]:
        """The policy of which the likeliest action is played: float32 (N, n)."""
        return self._by_chunks(
            lambda distribution: distribution.distribution.probs, observations, action_masks
        )

    def _by_chunks(
        self,
        read: Callable[[Any], th.Tensor],
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
    ) -> npt.NDArray[Any]:
        """What is read off the policy's distributions of actions."""
        chunks: list[npt.NDArray[Any]] = []
        with th.inference_mode():
            for i in range(0, len(observations), _CHUNK):
                tensor = th.as_tensor(observations[i : i + _CHUNK], device=self.policy.device)
                masks = action_masks[i : i + _CHUNK]
                distribution = self.policy.get_distribution(tensor, masks)
                chunks.append(read(distribution).cpu().numpy())
        return np.concatenate(chunks)


class PPOValue:
    """A trained policy's opinions for the ``search`` agent: its logits and its critic.

    The critic predicts the rewards of the objective that the policy was trained for.

    Args:
        policy: an sb3-contrib policy with action masks.
        rules: the rule set.
        utility: float32 (13,), what each final count of Key Spies was worth in training.
    """

    def __init__(
        self,
        policy: MaskableActorCriticPolicy,
        rules: Rules,
        utility: npt.NDArray[np.float32],
    ) -> None:
        self._policy, self._rules, self._utility = policy, rules, utility

    def play_values(
        self, states: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Logarithms of probabilities, float32 (N, n), -inf if illegal; and the likeliest ones."""
        observations, masks = recall_of_states(states, self._rules)
        with th.inference_mode():
            tensor = th.as_tensor(observations, device=self._policy.device)
            distribution = self._policy.get_distribution(tensor, masks.astype(np.bool_))
            logits = cast(Any, distribution.distribution).logits.cpu().numpy()
        logits = np.where(masks, logits, np.float32(-np.inf))
        return logits, logits.argmax(axis=1)

    def position_values(self, states: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The critic's value, float32 (N,); of games that are over what they came to."""
        values = np.empty(len(states), np.float32)
        over = states["phase"] == OVER
        counts = np.zeros(len(states), np.int64)
        write_counts(states, counts)
        values[over] = self._utility[counts[over]]
        observations, _ = recall_of_states(states[~over], self._rules)
        with th.inference_mode():
            tensor = th.as_tensor(observations, device=self._policy.device)
            values[~over] = self._policy.predict_values(tensor).cpu().numpy()[:, 0]
        return values


def make(rules: Rules, path: Path | None, objective: str | None = None) -> PPOAgent:
    """The agent from a path, or the one shipped for an objective, a win by default.

    Raises:
        AgentError: no model there, one of another version or rule set, or an objective with a path.
    """
    return PPOAgent(_load(rules, path, objective)[0], rules)


def value_function(rules: Rules, path: Path | None, objective: str | None = None) -> PPOValue:
    """What the agent thinks of plays and positions; arguments and errors as of :func:`make`."""
    policy, description = _load(rules, path, objective)
    return PPOValue(policy, rules, utility_of(description["objective"] or "win", rules))


def _load(
    rules: Rules, path: Path | None, objective: str | None
) -> tuple[MaskableActorCriticPolicy, dict[str, Any]]:
    if path is not None and objective is not None:
        raise AgentError(f"the objective of {path} is that of its training: give path or objective")
    chosen = objective or "win"
    if path is None and chosen not in SHIPPED:
        raise AgentError(f"no ppo is shipped for {chosen}; there are {', '.join(SHIPPED)}")
    file = model_file(path or SHIPPED[chosen], PPO_SUFFIX, SHIPPED.values())
    return load_policy(file, rules)
