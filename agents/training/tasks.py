"""What PPO trains on: the two games, with all that differs between them in one place."""

from __future__ import annotations

from typing import Any, Protocol, cast

from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from agents.masked_ppo import MaskedPPO
from agents.ppo import PPOAgent
from agents.skirmish.ppo import SkirmishPPOAgent
from agents.training.averaging import AveragePolicy
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

    def on_rollout(self, model: MaskedPPO) -> dict[str, float]:
        """After a rollout, before the policy learns from it; what is to be logged."""
        ...

    def policy(self, model: MaskedPPO) -> MaskableActorCriticPolicy:
        """What is judged and kept."""
        ...

    def agent(self, policy: MaskableActorCriticPolicy) -> Agent:
        """The agent that plays by a policy."""
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

    def on_rollout(self, model: MaskedPPO) -> dict[str, float]:
        """Nothing to log."""
        return {}

    def policy(self, model: MaskedPPO) -> MaskableActorCriticPolicy:
        """The model's own."""
        return model.policy

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
        self._average: AveragePolicy | None = None

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
        """Put the fresh policy into the pool, and let the average begin with it."""
        self._pool.add(model.policy)
        self._envs.set_pool(self._pool.members())
        if self._config.self_play.average:
            memory = self._config.self_play.memory
            self._average = AveragePolicy(model.policy, memory, self._config.seed)

    def on_rollout(self, model: MaskedPPO) -> dict[str, float]:
        """Average, and add the policy to the pool when that is due; how likely each opponent is."""
        if self._average is not None:
            buffer: Any = model.rollout_buffer
            rows = buffer.observations, buffer.action_masks
            self._average.add(model.policy, *(array.reshape(-1, array.shape[-1]) for array in rows))
        if model.num_timesteps >= self._next_addition:
            self._pool.add(model.policy)
            self._next_addition = model.num_timesteps + self._config.self_play.every
            self._envs.set_pool(self._pool.members())
        shares = self._envs.shares_of_the_pool()
        return {f"opponents/{name}": share for name, share in shares.items()}

    def policy(self, model: MaskedPPO) -> MaskableActorCriticPolicy:
        """The average of all policies, or the last one."""
        return model.policy if self._average is None else self._average.policy

    def agent(self, policy: MaskableActorCriticPolicy) -> Agent:
        """Draws from the policy."""
        return SkirmishPPOAgent(policy)

    def state(self) -> Any:
        """The pool and the average."""
        average = None if self._average is None else self._average.state()
        return {
            "pool": self._pool.state(),
            "next_addition": self._next_addition,
            "average": average,
        }

    def restore(self, state: Any, model: MaskedPPO) -> None:
        """Go back to what a checkpoint kept, before the games do."""
        self._pool.restore(state["pool"], model.policy)
        self._next_addition = state["next_addition"]
        if self._average is not None:
            self._average.restore(state["average"])
        self._envs.set_pool(self._pool.members())


def task_of(config: TrainConfig) -> Task:
    """The task that a configuration names."""
    return SkirmishTask(config) if config.env.is_skirmish else SolitaireTask(config)
