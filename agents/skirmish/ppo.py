"""``ppo``: a network trained by self-play with MaskablePPO.

Skirmish is played at the same time by all, so good play is mixed: the agent draws its action from
the policy, by a number that depends on its seed and on what it sees. Whoever knows neither the seed
nor the hand can't foresee it, and a match can be repeated whatever else is played beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import MODELS, AgentError
from agents.model_files import PPO_SUFFIX, model_file, widths_of
from agents.skirmish.planning import drawn_from
from agents.skirmish.uniforms import uniforms_of
from agents.training.models import load_skirmish_policy
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.skirmish.rules import Rules

SHIPPED = {
    num_players: MODELS / f"skirmish_{num_players}p{PPO_SUFFIX}" for num_players in (2, 3, 4)
}
"""The models that come with the project, by number of players."""
_CHUNK = 4096


class SkirmishPPOAgent(BatchAgent):
    """A trained policy at tables of Skirmish.

    Args:
        policy: an sb3-contrib policy with action masks.
        rules: the rule set that it was trained for, None if that is not known.
        greedy: take the likeliest action instead of drawing one.
    """

    def __init__(
        self,
        policy: MaskableActorCriticPolicy,
        rules: Rules | None = None,
        *,
        greedy: bool = False,
    ) -> None:
        self.policy, self.rules = policy, rules
        self.widths = widths_of(policy)
        self._greedy = greedy
        self._seed = 0

    def reset(self, seed: int) -> None:
        """Start anew with a seed for the draws; it is 0 for an agent just made."""
        self._seed = seed

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """One action each, in chunks that fit the processor's cache."""
        uniforms = uniforms_of(observations, self._seed)
        chunks = [
            self._choose_chunk(
                observations[i : i + _CHUNK], action_masks[i : i + _CHUNK], uniforms[i : i + _CHUNK]
            )
            for i in range(0, len(observations), _CHUNK)
        ]
        return np.concatenate(chunks)

    def probabilities(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float32]:
        """The policy: float32 (N, 15), 0 for illegal actions."""
        with th.inference_mode():
            tensor = th.as_tensor(observations, device=self.policy.device)
            distribution = self.policy.get_distribution(tensor, action_masks)
            return cast(Any, distribution.distribution).probs.cpu().numpy()

    def _choose_chunk(
        self,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        uniforms: npt.NDArray[np.float64],
    ) -> Actions:
        probabilities = np.where(action_masks, self.probabilities(observations, action_masks), 0)
        if self._greedy:
            return probabilities.argmax(axis=1)
        chances = probabilities.astype(np.float64)
        return drawn_from(chances / chances.sum(axis=1, keepdims=True), uniforms)


def make(rules: Rules, path: Path | None, num_players: int, mode: bool = False) -> SkirmishPPOAgent:
    """The agent from a path, or the one shipped for a number of players.

    Args:
        rules: the rule set to be played.
        path: of a run directory or a model file, or None.
        num_players: at the table.
        mode: whether to take the likeliest action instead of drawing one.

    Raises:
        AgentError: no model there, or one of another version, table or rule set.
    """
    if path is None and not SHIPPED[num_players].is_file():
        raise AgentError(f"no ppo is shipped for {num_players} players of Skirmish: give a path")
    file = model_file(path or SHIPPED[num_players], PPO_SUFFIX, SHIPPED.values())
    policy, _ = load_skirmish_policy(file, num_players, rules)
    return SkirmishPPOAgent(policy, rules, greedy=mode)
