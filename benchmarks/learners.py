"""MaskablePPO, end to end: the same agent on this project's VecEnv and on SB3's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

import deck_of_spies_env  # noqa: F401 - registers the ids
from agents.training.config import EnvConfig, TrainConfig, read_command_line
from agents.training.ppo import make_envs, make_model
from benchmarks.plain_loop import iterate
from benchmarks.players import Player
from deck_of_spies_env.evaluation.seeds import deal_seeds

RECIPE = Path(__file__).parents[1] / "configs" / "deck_of_spies.yaml"
METHODS_OF_ENVS = ("reset", "step", "step_async", "step_wait", "action_masks", "env_method")
"""All that MaskablePPO may call while it learns."""


def ppo(vec_env: str, num_envs: int, policy: str = "candidate") -> Player:
    """MaskablePPO with the project's recipe on one torch thread. A call is an iteration.

    A step is a decision that was played and learnt from.

    Args:
        vec_env: ``"native"``, ``"dummy"``, ``"monitored"`` or ``"subproc"``.
        num_envs: games at a time, which the recipe's rollouts grow with.
        policy: ``"candidate"``, the recipe's own, or ``"MlpPolicy"``, sb3-contrib's.
    """
    torch.set_num_threads(1)
    arguments = ["--config", str(RECIPE), "--env.num_envs", str(num_envs)]
    config, _, _ = read_command_line(arguments)
    envs = _VEC_ENVS[vec_env](config)
    model = _model(config, envs, policy)
    model.set_logger(configure(None, []))
    clock = _timed(envs)
    decisions = config.ppo.n_steps * num_envs

    def play(calls: int) -> float:
        clock.seconds = 0.0
        model.learn(calls * decisions, reset_num_timesteps=False)
        return calls * decisions

    return Player(play, of_last_slice=lambda: {"env_cpu": clock.seconds})


def plain(num_envs: int) -> Player:
    """The recipe as a plain loop, on one torch thread; as ppo."""
    torch.set_num_threads(1)
    arguments = ["--config", str(RECIPE), "--env.num_envs", str(num_envs)]
    config, _, _ = read_command_line(arguments)
    envs = make_envs(config)
    policy = make_model(config, envs, torch.device("cpu")).policy
    decisions = config.ppo.n_steps * num_envs
    seen = envs.reset()

    def play(calls: int) -> float:
        nonlocal seen
        for _ in range(calls):
            seen = iterate(policy, envs, seen, config.ppo)
        return calls * decisions

    return Player(play)


def _model(config: TrainConfig, envs: Any, policy: str) -> MaskablePPO:
    """The recipe's agent, or one with sb3-contrib's network and the recipe's other settings."""
    if policy == "candidate":
        return make_model(config, envs, torch.device("cpu"))
    envs.seed(deal_seeds("train", config.seed, 1)[0])
    settings = ("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range")
    more = ("learning_rate", "ent_coef", "vf_coef", "max_grad_norm", "normalize_advantage")
    arguments = {name: getattr(config.ppo, name) for name in (*settings, *more)}
    return MaskablePPO(policy, envs, seed=config.seed, device="cpu", **arguments)


def _one_env(config: EnvConfig) -> gym.Env[Any, Any]:
    """The single environment without Gymnasium's wrappers and SB3's Monitor, which take time."""
    return gym.make(config.id, **config.arguments()).unwrapped


def _dummy(config: TrainConfig) -> VecEnv:
    return DummyVecEnv([partial(_one_env, config.env)] * config.env.num_envs)


def _monitored(config: TrainConfig) -> VecEnv:
    """DummyVecEnv as SB3's own function makes it: with Monitor, over Gymnasium's wrappers."""
    return sb3_make_vec_env(
        config.env.id, n_envs=config.env.num_envs, env_kwargs=config.env.arguments()
    )


def _subproc(config: TrainConfig) -> VecEnv:
    return SubprocVecEnv([partial(_one_env, config.env)] * config.env.num_envs)


_VEC_ENVS: dict[str, Callable[[TrainConfig], VecEnv]] = {
    "native": make_envs,
    "dummy": _dummy,
    "monitored": _monitored,
    "subproc": _subproc,
}


class _Clock:
    """CPU seconds of this process within an environment's methods."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._inside:  # one method of the environment called by another
                return method(*args, **kwargs)
            self._inside = True
            started = time.process_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - started
                self._inside = False

        return timed


def _timed(envs: VecEnv) -> _Clock:
    """Measure from now on what goes into an environment's methods."""
    clock = _Clock()
    for name in METHODS_OF_ENVS:
        if hasattr(envs, name):
            setattr(envs, name, clock.around(getattr(envs, name)))
    return clock
