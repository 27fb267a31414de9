"""Play random legal games: the plain Gymnasium loop, with action masks.

Run it with ``python examples/masked_loop.py --episodes 5 --seed 7``.
"""

from __future__ import annotations

import argparse

import gymnasium as gym

import deck_of_spies_env  # noqa: F401 - registers the ids


def main() -> None:
    """Play and print one line for each game."""
    parser = argparse.ArgumentParser(description="Random legal play of Deck of Spies.")
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    env = gym.make("DeckOfSpies-v0")
    env.action_space.seed(args.seed)  # the random player's own seed
    _, info = env.reset(seed=args.seed)  # the deals' seed, given once
    for episode in range(args.episodes):
        if episode > 0:
            _, info = env.reset()  # the next deal of the seed
        episode_return, decisions, over = 0.0, 0, False
        while not over:
            action = env.action_space.sample(info["action_mask"])
            _, reward, terminated, truncated, info = env.step(action)
            episode_return += float(reward)
            decisions += 1
            over = terminated or truncated
        print(
            f"game {episode}: {info['outcome']} after {info['turns']} spies and {decisions} "
            f"decisions, Key Spies {info['key_spies']}, return {episode_return:g}"
        )
    env.close()


if __name__ == "__main__":
    main()
