"""What PPO trains on: the two games, with all that differs between them in one place."""

from __future__ import annotations

from typing import Any, Protocol, cast

from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from agents.masked_ppo import MaskedPPO
from agents.ppo import PPOAgent
from agents.skirmish.ppo import SkirmishPPOAgent
from agents.training.config import TrainConfig
from agents.training.self_play import Pool
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.integrations.sb3 import make_vec_env
from deck_of_spies_env.integrations.sb3_skirmish import SkirmishVecEnv


class Task(Protocol):
    """A game to train on.

    Attributes:
        figures: what of the infos of ended games is logged, and how it is called.
    """

    figures: dict[str, str]

    def make_envs(self) -> VecEnv:
        """The training games."""
        ...

    def begin(self, model: MaskedPPO) -> None:
        """Make ready for a fresh model."""
        ...

    def on_update(self, model: MaskedPPO) -> dict[str, float]:
        """After an update of the policy; what is to be logged."""
        ...

    def agent(self, policy: MaskableActorCriticPolicy) -> Agent:
        """The agent that is judged."""
        ...

    def state(self) -> Any:
        """What a checkpoint keeps beside model and games."""
        ...

    def restore(self, state: Any, model: MaskedPPO) -> None:
        """Go back to what a checkpoint kept, before the games do."""
        ...


class SolitaireTask:
    """Deck of Spies.

    Args:
        config: of the run.
    """

    figures: dict[str, str] = {"is_success": "win_rate", "key_spies": "key_spies"}  # noqa: RUF012

    def __init__(self, config: TrainConfig) -> None:
        self._env = config.env

    def make_envs(self) -> VecEnv:
        """The training games."""
        return make_vec_env(self._env.id, self._env.num_envs, **self._env.arguments())

    def begin(self, model: MaskedPPO) -> None:
        """Nothing to do."""

    def on_update(self, model: MaskedPPO) -> dict[str, float]:
        """Nothing to log."""
        return {}

    def agent(self, policy: MaskableActorCriticPolicy) -> Agent:
        """Plays the likeliest action."""
        return PPOAgent(policy)

    def state(self) -> Any:
        """Nothing."""

    def restore(self, state: Any, model: MaskedPPO) -> None:
        """Nothing to do."""


class SkirmishTask:
    """Skirmish, by self-play.

    Args:
        config: of the run.
    """

    figures: dict[str, str] = {"payoff": "payoff"}  # noqa: RUF012

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._next_addition = config.self_play.every
        self._pool = Pool(config)

    def make_envs(self) -> SkirmishVecEnv:
        """The training tables."""
        config = self._config
        self._envs = SkirmishVecEnv(
            config.env.num_envs - config.pool_tables,
            config.pool_tables,
            config.env.num_players,
            pool=self._pool.members(),
            rules=cast(Any, config.env.rules),
            shaping=config.env.shaping,
        )
        return self._envs

    def begin(self, model: MaskedPPO) -> None:
        """Put the fresh policy into the pool."""
        self._pool.add(model.policy)
        self._envs.set_pool(self._pool.members())

    def on_update(self, model: MaskedPPO) -> dict[str, float]:
        """Add the policy to the pool when that is due; how likely each opponent is."""
        if model.num_timesteps >= self._next_addition:
            self._pool.add(model.policy)
            self._next_addition = model.num_timesteps + self._config.self_play.every
            self._envs.set_pool(self._pool.members())
        shares = self._envs.shares_of_the_pool()
        return {f"opponents/{name}": share for name, share in shares.items()}

    def agent(self, policy: MaskableActorCriticPolicy) -> Agent:
        """Draws from the policy."""
        return SkirmishPPOAgent(policy)

    def state(self) -> Any:
        """The pool."""
        return {"pool": self._pool.state(), "next_addition": self._next_addition}

    def restore(self, state: Any, model: MaskedPPO) -> None:
        """Go back to what a checkpoint kept, before the games do."""
        self._pool.restore(state["pool"], model.policy)
        self._next_addition = state["next_addition"]
        self._envs.set_pool(self._pool.members())


def task_of(config: TrainConfig) -> Task:
    """The task that a configuration names."""
    return SkirmishTask(config) if config.env.is_skirmish else SolitaireTask(config)
