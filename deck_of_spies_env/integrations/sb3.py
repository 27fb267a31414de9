"""Stable-Baselines3: a ``VecEnv`` on the native engine, fit for ``MaskablePPO``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices

from deck_of_spies_env.adapters import action_array
from deck_of_spies_env.checks import check_count
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv, spaces_of
from deck_of_spies_env.solitaire.games import Games, compile_engine

_CHANGING_METHODS = ("reset", "step", "set_state")
_ENTRY_POINT = "deck_of_spies_env.solitaire.env:DeckOfSpiesEnv"


def make_vec_env(
    env_id: str, num_envs: int = 1, seed: int | None = None, **env_kwargs: Any
) -> DeckOfSpiesVecEnv:
    """A native SB3 vector environment.

    Args:
        env_id: a registered id of this package, such as ``"DeckOfSpies-v0"``.
        num_envs: N, at least 1.
        seed: s, for seeds s, s + 1, ... of the games at the first reset; None for random ones.
        env_kwargs: arguments of ``DeckOfSpiesEnv``; they override those of the id.

    Raises:
        ValueError: an id of another package, or a bad argument.
        gymnasium.error.Error: an unknown id.
    """
    spec = gym.spec(env_id)
    if spec.entry_point != _ENTRY_POINT:
        raise ValueError(f"{env_id} is not an environment of deck_of_spies_env")
    env = DeckOfSpiesVecEnv(num_envs, **{**spec.kwargs, **env_kwargs})
    if seed is not None:
        env.seed(seed)
    return env


class DeckOfSpiesVecEnv(VecEnv):
    """N games of Deck of Spies under SB3's interface; ended games are dealt anew in the same step.

    Observations int8 (N, d), actions int64 (N,), rewards float32 (N,), dones bool (N,). The info of
    a game that has ended holds ``terminal_observation``, ``TimeLimit.truncated``, ``episode`` (r,
    l, t as Monitor writes them) and the environment's own final keys; the others are empty.

    Args:
        num_envs: N, at least 1.
        env_kwargs: arguments of ``DeckOfSpiesEnv``.
    """

    def __init__(self, num_envs: int, **env_kwargs: Any) -> None:
        num_envs = check_count("num_envs", num_envs)
        # One single environment answers questions about any of the games, see _borrowed.
        self._single = DeckOfSpiesEnv(**env_kwargs)
        env_kwargs.pop("render_mode", None)
        self.games = Games(num_envs, **env_kwargs)
        self._actions = np.zeros(num_envs, dtype=np.int64)
        self._returns = np.zeros(num_envs, dtype=np.float64)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._seeded = False
        self._started = time.time()
        compile_engine()
        super().__init__(num_envs, *spaces_of(self.games))

    def reset(self) -> npt.NDArray[np.int8]:
        """Begin the next episode in all games, with the seeds of seed() if it was called.

        Raises:
            ValueError: options of set_options() that differ between games, or a bad position.
        """
        if any(options != self._options[0] for options in self._options):
            raise ValueError("reset options must be the same for all games of the native VecEnv")
        if any(seed is not None for seed in self._seeds) or not self._seeded:
            seeds = [
                int.from_bytes(np.random.default_rng().bytes(7), "little") if seed is None else seed
                for seed in self._seeds
            ]
            self.games.seed(range(self.num_envs), seeds)
            self._seeded = True
        start = self._single.start_of(self._options[0])
        self.games.renew()
        self.games.deal(start=start)
        self._returns[:] = 0.0
        self._lengths[:] = 0
        self._reset_seeds()
        self._reset_options()
        return self.games.observations

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions for step_wait: whole numbers of shape (N,).

        Raises:
            IllegalActionError: anything else.
        """
        self._actions = action_array(actions, self.num_envs)

    def step_wait(
        self,
    ) -> tuple[
        npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]
    ]:
        """One action in every game.

        Raises:
            IllegalActionError: names the games whose action is illegal; none has moved.
        """
        games = self.games
        num_over = games.step(self._actions, renew=True)
        self._returns += games.rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if num_over:
            self._finish(games.terminated, infos)
        return games.observations, games.rewards.astype(np.float32), games.terminated, infos

    def _finish(self, dones: npt.NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """Write the infos of ended games and deal them anew."""
        ended = np.flatnonzero(dones)
        endings = {key: values[ended].tolist() for key, values in self.games.endings().items()}
        elapsed = round(time.time() - self._started, 6)
        for row, i in enumerate(ended.tolist()):
            infos[i] = {
                "terminal_observation": self.games.observations[i].copy(),
                "TimeLimit.truncated": False,
                "episode": {
                    "r": round(float(self._returns[i]), 6),
                    "l": int(self._lengths[i]),
                    "t": elapsed,
                },
                "action_mask": self.games.masks[i].copy(),
                **{key: values[row] for key, values in endings.items()},
            }
        self.games.deal(dones)
        self._returns[ended] = 0.0
        self._lengths[ended] = 0

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Legal actions as bool of shape (N, n)."""
        return self.games.masks.astype(np.bool_)

    def has_attr(self, attr_name: str) -> bool:
        """Whether a game has an attribute or method of that name."""
        return hasattr(self._single, attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute of each game, as the single environment has it.

        Methods come bound to their game.
        """
        chosen = list(self._get_indices(indices))
        if callable(getattr(self._single, attr_name)):
            return [partial(self._call, attr_name, i) for i in chosen]
        return [getattr(self._borrowed(i), attr_name) for i in chosen]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Not supported: games have no attributes of their own.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            f"can't set {attr_name!r}: pass it to make_vec_env, or use env_method('set_state')"
        )

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of the single environment on each game."""
        chosen = list(self._get_indices(indices))
        if method_name == "action_masks":
            masks = self.action_masks()
            return list(masks if indices is None else masks[chosen])
        return [self._call(method_name, i, *method_args, **method_kwargs) for i in chosen]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """No game is wrapped."""
        return [False for _ in self._get_indices(indices)]

    def get_state(self) -> npt.NDArray[Any]:
        """All games with their random streams: a copy, shape (N,), dtype SNAPSHOT."""
        return self.games.snapshots()

    def set_state(self, state: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
        """Go back to a state from get_state(), and give the observations, int8 (N, d).

        Raises:
            ValueError: not such a state, or not one of these rules; nothing changes.
        """
        self.games.restore(state)
        self._seeded = bool(self.games.seeded.all())
        return self.games.observations

    def close(self) -> None:
        """Nothing to release."""

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """No pictures: one None per game."""
        return [None] * self.num_envs

    def _call(self, name: str, index: int, *args: Any, **kwargs: Any) -> Any:
        """Call a method on one game, and keep what it did to the game."""
        single = self._borrowed(index)
        result = getattr(single, name)(*args, **kwargs)
        if name in _CHANGING_METHODS:
            snapshots = self.games.snapshots()
            snapshots[index] = single.get_state()
            self.games.restore(snapshots)
        return result

    def _borrowed(self, index: int) -> DeckOfSpiesEnv:
        """The single environment, set to the state of one game until the next call."""
        self._single.set_state(self.games.snapshots_of(index))
        return self._single
