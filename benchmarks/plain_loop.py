"""PPO as a plain loop, without Stable-Baselines3: the same mathematics with nothing around it.

What the library costs is the ratio of the two. Network, hyperparameters, games and compiled steps
are those of the recipe; there is no callback, log, schedule or checkpoint.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agents.training.config import PPOConfig
from deck_of_spies_env.integrations.sb3 import DeckOfSpiesVecEnv


class Rollout(NamedTuple):
    """T decisions in each of N games: arrays of shape (T, N, ...)."""

    observations: npt.NDArray[np.int8]
    masks: npt.NDArray[np.bool_]
    actions: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]
    log_probs: npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    dones: npt.NDArray[np.bool_]


def rollout(policy: Any, envs: DeckOfSpiesVecEnv, seen: Any, num_steps: int) -> tuple[Rollout, Any]:
    """Play, and give what happened and the observations after it."""
    rows = []
    for _ in range(num_steps):
        masks = envs.action_masks()
        with torch.inference_mode():
            actions, values, log_probs = policy(torch.from_numpy(seen), action_masks=masks)
        chosen = actions.numpy()
        after, rewards, dones, _ = envs.step(chosen)
        rows.append((seen, masks, chosen, values[:, 0].numpy(), log_probs.numpy(), rewards, dones))
        seen = after
    return Rollout(*(np.stack(column) for column in zip(*rows, strict=True))), seen


def advantages_of(part: Rollout, last_values: Any, ppo: PPOConfig) -> npt.NDArray[np.float32]:
    """Generalised advantage estimates (Schulman et al., 2016), (T, N)."""
    advantages = np.empty_like(part.values)
    advantage, next_values = np.zeros_like(last_values), last_values
    for t in reversed(range(len(part.rewards))):
        goes_on = 1.0 - part.dones[t].astype(np.float32)
        error = part.rewards[t] + ppo.gamma * next_values * goes_on - part.values[t]
        advantage = error + ppo.gamma * ppo.gae_lambda * goes_on * advantage
        advantages[t], next_values = advantage, part.values[t]
    return advantages


def learn(policy: Any, part: Rollout, advantages: Any, ppo: PPOConfig) -> None:
    """The update: clipped policy gradient, value loss and entropy, over shuffled minibatches."""
    flat = [field.reshape(-1, *field.shape[2:]) for field in part[:5]]
    observations, masks, actions, values, log_probs = (torch.from_numpy(field) for field in flat)
    gains = torch.from_numpy(advantages.reshape(-1))
    returns = gains + values
    for _ in range(ppo.n_epochs):
        for rows in torch.randperm(len(gains)).split(ppo.batch_size):
            gain = gains[rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            value, log_prob, entropy = policy.evaluate_actions(
                observations.index_select(0, rows), actions[rows], masks.index_select(0, rows)
            )
            ratio = (log_prob - log_probs[rows]).exp()
            clipped = ratio.clamp(1 - ppo.clip_range, 1 + ppo.clip_range)
            policy_loss = -torch.min(gain * ratio, gain * clipped).mean()
            value_loss = (value[:, 0] - returns[rows]).square().mean()
            loss = policy_loss + ppo.vf_coef * value_loss - ppo.ent_coef * entropy.mean()
            policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), ppo.max_grad_norm)
            policy.optimizer.step()


def iterate(policy: Any, envs: DeckOfSpiesVecEnv, seen: Any, ppo: PPOConfig) -> Any:
    """One iteration, from the observations seen to those after it."""
    part, seen = rollout(policy, envs, seen, ppo.n_steps)
    with torch.inference_mode():
        last_values = policy.predict_values(torch.from_numpy(seen))[:, 0].numpy()
    learn(policy, part, advantages_of(part, last_values, ppo), ppo)
    return seen
