"""Learn Deck of Spies with PyTorch alone: an advantage actor-critic in one file.

Run it with ``python examples/train_without_sb3.py --steps 1000000 --seed 0``.

Many games are played side by side on the native vector environment. Masks are applied to the
logits, so illegal actions have probability zero and no gradient. Every few steps the network is
updated once, with returns that end in its own value of the position reached. The file reads top to
bottom.
"""

from __future__ import annotations

import argparse
from collections import deque

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import nn

import deck_of_spies_env  # noqa: F401 - registers the ids
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds

NUM_ENVS = 128
ROLLOUT = 8  # steps of every game between two updates
HIDDEN = 128
LEARNING_RATE = 1e-3  # falls linearly to 0
ENTROPY_WEIGHT = 0.01
VALUE_WEIGHT = 0.5
MAX_GRAD_NORM = 0.5
RECENT_GAMES = 1000
TEST_DEALS = 2000


class ActorCritic(nn.Module):
    """Logits of the legal actions, and the value of the position."""

    def __init__(self, num_inputs: int, num_actions: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(num_inputs, HIDDEN), nn.ReLU())
        self.actor = nn.Linear(HIDDEN, num_actions)
        self.critic = nn.Linear(HIDDEN, 1)
        nn.init.normal_(self.actor.weight, std=0.01)

    def forward(
        self, observations: torch.Tensor, masks: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probabilities (N, n), hugely negative where illegal, and values (N,)."""
        features = self.body(observations.float())
        logits = self.actor(features).masked_fill(~masks, -1e9)
        return logits.log_softmax(dim=1), self.critic(features).squeeze(1)


class LearnedAgent(BatchAgent):
    """Plays the likeliest action, as the package's matches want it."""

    def __init__(self, network: ActorCritic) -> None:
        self.network = network

    def choose(self, observations: np.ndarray, action_masks: np.ndarray) -> Actions:
        """The action of each game of a batch."""
        with torch.inference_mode():
            log_probs, _ = self.network(
                torch.from_numpy(observations), torch.from_numpy(action_masks)
            )
        return log_probs.argmax(dim=1).numpy()


def sample_actions(
    network: ActorCritic, observations: torch.Tensor, masks: torch.Tensor
) -> torch.Tensor:
    """Draw from the masked policy, int64 (N,), by the Gumbel trick."""
    with torch.inference_mode():
        log_probs, _ = network(observations, masks)
        gumbel = -torch.empty_like(log_probs).exponential_().log()
        return (log_probs + gumbel).argmax(dim=1)


def returns_of(
    rewards: torch.Tensor, going_on: torch.Tensor, last_values: torch.Tensor
) -> torch.Tensor:
    """Undiscounted returns (T, N), with the value of the last position for what comes after."""
    returns = torch.zeros_like(rewards)
    following = last_values
    for t in reversed(range(len(rewards))):
        following = rewards[t] + going_on[t] * following
        returns[t] = following
    return returns


def train(steps: int, seed: int) -> ActorCritic:
    """Train for that many decisions, over all games together."""
    torch.set_num_threads(1)  # one is fastest for so small a network
    torch.manual_seed(seed)
    envs = gym.make_vec(
        "DeckOfSpies-v0",
        num_envs=NUM_ENVS,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        objective={"keys": 1.0, "win": 1.0},
        shaping="key_spies",
    )
    num_inputs = envs.single_observation_space.shape[0]
    num_actions = int(envs.single_action_space.n)
    network = ActorCritic(num_inputs, num_actions)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)

    observations = torch.zeros((ROLLOUT + 1, NUM_ENVS, num_inputs), dtype=torch.int8)
    masks = torch.zeros((ROLLOUT + 1, NUM_ENVS, num_actions), dtype=torch.bool)
    actions = torch.zeros((ROLLOUT, NUM_ENVS), dtype=torch.int64)
    rewards = torch.zeros((ROLLOUT, NUM_ENVS))
    going_on = torch.zeros((ROLLOUT, NUM_ENVS))
    key_spies: deque[int] = deque(maxlen=RECENT_GAMES)
    wins: deque[bool] = deque(maxlen=RECENT_GAMES)

    # Training deals come from a bank of their own, apart from those of the final test.
    observation, info = envs.reset(seed=deal_seeds("train", seed, 1)[0])
    num_updates = max(1, steps // (ROLLOUT * NUM_ENVS))
    for update in range(num_updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - update / num_updates)

        # Play: sample from the masked policy.
        for t in range(ROLLOUT):
            observations[t] = torch.from_numpy(observation)
            masks[t] = torch.from_numpy(info["action_mask"] != 0)
            actions[t] = sample_actions(network, observations[t], masks[t])
            observation, reward, terminated, _, info = envs.step(actions[t].numpy())
            rewards[t] = torch.from_numpy(reward)
            going_on[t] = torch.from_numpy(~terminated)
            if terminated.any():
                key_spies.extend(info["final_info"]["key_spies"][terminated].tolist())
                wins.extend(info["final_info"]["is_success"][terminated].tolist())
        observations[ROLLOUT] = torch.from_numpy(observation)
        masks[ROLLOUT] = torch.from_numpy(info["action_mask"] != 0)

        # Learn: how much better than expected did it go? Then one gradient step.
        log_probs, values = network(observations.flatten(0, 1), masks.flatten(0, 1))
        values = values.reshape(ROLLOUT + 1, NUM_ENVS)
        errors = returns_of(rewards, going_on, values[ROLLOUT].detach()) - values[:ROLLOUT]
        advantages = errors.detach().flatten()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)

        log_probs = log_probs[: ROLLOUT * NUM_ENVS]  # without the last, unplayed step
        taken = log_probs.gather(1, actions.reshape(-1, 1)).squeeze(1)
        policy_loss = -(advantages * taken).mean()
        entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
        optimizer.zero_grad()
        value_loss = errors.square().mean()
        (policy_loss + VALUE_WEIGHT * value_loss - ENTROPY_WEIGHT * entropy).backward()
        nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
        optimizer.step()

        if (update + 1) % max(1, num_updates // 10) == 0:
            print(
                f"{(update + 1) * ROLLOUT * NUM_ENVS:9,} decisions: last {len(wins)} games: "
                f"Key Spies {np.mean(key_spies):.2f}, wins {np.mean(wins):.1%}"
            )
    envs.close()
    return network


def main() -> None:
    """Train, then play held-out deals without sampling."""
    parser = argparse.ArgumentParser(description="Actor-critic on Deck of Spies, PyTorch only.")
    parser.add_argument("--steps", type=int, default=1_000_000, help="decisions to train for")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    network = train(args.steps, args.seed)
    result = play_deals(LearnedAgent(network), deal_seeds("test", args.seed, TEST_DEALS))
    print(
        f"{TEST_DEALS} held-out deals: mean Key Spies {result.key_spies.mean():.2f}, "
        f"win rate {result.wins.mean():.1%}"
    )


if __name__ == "__main__":
    main()
