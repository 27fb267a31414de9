"""``DeckOfSpies-v0`` over N games at once: a native Gymnasium vector environment."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from deck_of_spies_env import cards
from deck_of_spies_env.solitaire.env import (
    RENDER_FPS,
    RENDER_MODES,
    action_array,
    check_render_mode,
    spaces_of,
)
from deck_of_spies_env.solitaire.games import (
    Games,
    check_count,
    check_flag,
    compile_engine,
    compile_packing,
)
from deck_of_spies_env.solitaire.observations import PACKED_ACT, PACKED_RETIRE, PACKED_WORDS
from deck_of_spies_env.solitaire.positions import start_from_options
from deck_of_spies_env.solitaire.rendering import render_ansi
from deck_of_spies_env.solitaire.rules import Rules

Observations = npt.NDArray[np.int8] | npt.NDArray[np.uint64]
Actions = npt.NDArray[np.int64]
Infos = dict[str, Any]


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(known.value) for known in AutoresetMode)
        raise ValueError(f"autoreset_mode must be one of {known}, got {mode!r}") from None


def packed_space() -> gym.spaces.Box[np.uint64]:
    """The space of one packed observation."""
    high = np.full(len(PACKED_WORDS), cards.ALL_CARDS, dtype=np.uint64)
    high[PACKED_WORDS.index("spy")] |= np.uint64(1 << PACKED_ACT | 1 << PACKED_RETIRE)
    return gym.spaces.Box[np.uint64](np.zeros_like(high), high, dtype=np.uint64)


class DeckOfSpiesVectorEnv(VectorEnv[Observations, Actions, npt.NDArray[Any]]):
    """N games of Deck of Spies, stepped by the same kernels as the single environment.

    It replays ``SyncVectorEnv`` of N single environments exactly for the same seed and actions, in
    all three autoreset modes and with Gymnasium's layout of infos.

    Args:
        num_envs: N, at least 1.
        autoreset_mode: NEXT_STEP (default), SAME_STEP or DISABLED, as enum or by value.
        packed: observations uint64 (N, 6) and masks uint64 (N, w), see ``solitaire.observations``,
            for those who unpack on their own device (``unpack_observations``, ``unpack_masks``).
        copy: hand out new arrays at every step. If False, observations, masks, rewards and
            terminations are the same arrays each time, and the next call overwrites them (but for
            the masks in the infos of a partial reset).
        num_threads: threads that share the games, of use for ten thousand of them and more; the
            results are the same for any number.
        others: as in ``DeckOfSpiesEnv``.

    Raises:
        ValueError: an argument out of what is allowed; the message names it.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        num_envs: int = 1,
        objective: str | Mapping[str, float] = "win",
        observation: str = "recall",
        rules: Rules | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        illegal_action: str = "raise",
        start: Mapping[str, Any] | None = None,
        shaping: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        packed: bool = False,
        copy: bool = True,
        num_threads: int = 1,
    ) -> None:
        check_render_mode(render_mode)
        num_envs = check_count("num_envs", num_envs)
        self.games = Games(
            num_envs,
            objective=objective,
            observation=observation,
            rules=rules,
            illegal_action=illegal_action,
            start=start,
            shaping=shaping,
            packed=packed,
            num_threads=num_threads,
        )
        self.num_envs = num_envs
        self._copy = check_flag("copy", copy)
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}  # pyright: ignore[reportIncompatibleVariableOverride, reportAttributeAccessIssue]
        self.render_mode = render_mode
        self.single_observation_space, self.single_action_space = spaces_of(self.games)
        if packed:
            self.single_observation_space = packed_space()
            compile_packing()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeded = np.zeros(num_envs, dtype=np.bool_)
        self._awaiting_reset = np.zeros(num_envs, dtype=np.bool_)
        self._everyone = np.ones(num_envs, dtype=np.bool_)
        compile_engine()

    # --- Gymnasium ---

    def reset(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Observations, Infos]:
        """Begin the next episode in all games, or in those of ``options["reset_mask"]``.

        Args:
            seed: s for seeds s, s + 1, ..., a list with one seed or None per game, or None.
            options: ``reset_mask`` (bool (N,)), and ``zones`` and ``phase`` as in the single env.

        Raises:
            ValueError, TypeError: a bad position, list of seeds or mask; nothing changes.
        """
        options = options or {}
        chosen = self._reset_mask(options)
        start = start_from_options(options, self.games.rules)
        self._seed(seed, chosen)
        if self._copy:
            self.games.renew()
        self.games.deal(chosen, start)
        if not chosen.all():
            self.games.show(~chosen)
        self._awaiting_reset &= ~chosen
        return self.games.observations, self._mask_infos(chosen)

    def step(
        self, actions: Actions
    ) -> tuple[
        Observations, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Infos
    ]:
        """One action in every game.

        Args:
            actions: whole numbers of shape (N,). Under NEXT_STEP the entries of games that are
                reset by this step are not looked at.

        Raises:
            IllegalActionError: names the games whose action is illegal; none has moved.
        """
        games = self.games
        given = action_array(actions, self.num_envs)
        in_same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        in_next_step = self.autoreset_mode is AutoresetMode.NEXT_STEP
        resetting = self._awaiting_reset if in_next_step else None
        num_over = games.step(given, dealing=resetting, renew=self._copy)
        terminated = games.terminated
        infos: Infos = {}
        if in_same_step:
            if num_over:
                infos = self._finish_in_place(terminated)
        else:
            self._awaiting_reset = terminated.copy()
        infos["action_mask"], infos["_action_mask"] = games.masks, self._everyone.copy()
        if num_over and not in_same_step:
            infos |= self._ending_infos(terminated)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        return games.observations, games.rewards, terminated, truncated, infos

    def render(self) -> tuple[str, ...] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The tables as text in render mode ``"ansi"``, else None."""
        if self.render_mode is None:
            gym.logger.warn('render() without a render mode: pass render_mode="ansi"')
            return None
        return tuple(render_ansi(state, self.games.rules) for state in self.games.states)

    # --- The games ---

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Legal actions as bool of shape (N, n); a row is all False where the game is over."""
        return self.games.current_masks().view(np.bool_)

    def get_state(self) -> npt.NDArray[Any]:
        """All games with their random streams: a copy, shape (N,), dtype SNAPSHOT."""
        return self.games.snapshots()

    def set_state(self, state: npt.NDArray[Any]) -> None:
        """Go back to a state from get_state(), streams included.

        Raises:
            ValueError: not such a state, or not one of these rules; nothing changes.
        """
        self.games.restore(state, show=False)
        self._seeded = self.games.seeded
        self._awaiting_reset = self.games.over

    # --- Helpers ---

    def _reset_mask(self, options: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        if "reset_mask" not in options:
            return self._everyone
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"options['reset_mask'] must be a bool array, got {mask!r}")
        if mask.shape != (self.num_envs,):
            raise ValueError(
                f"options['reset_mask'] must have shape ({self.num_envs},), got {mask.shape}"
            )
        if not mask.any():
            raise ValueError("options['reset_mask'] must name at least one environment")
        return mask

    def _seed(self, seed: int | Sequence[int | None] | None, chosen: npt.NDArray[np.bool_]) -> None:
        """Fresh streams where a seed is given, and where there are none yet."""
        if seed is None:
            seeds: Sequence[int | None] = [None] * self.num_envs
        elif isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
            seeds = [int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = [None if one is None else operator.index(one) for one in seed]
        if len(seeds) != self.num_envs:
            raise ValueError(f"expected {self.num_envs} seeds, one per env, got {len(seeds)}")
        fresh = {i: seeds[i] for i in np.flatnonzero(chosen).tolist() if seeds[i] is not None}
        for i in np.flatnonzero(chosen & ~self._seeded).tolist():
            fresh.setdefault(i, int(self.np_random.integers(1 << 63)))
        if fresh:
            self.games.seed(
                list(fresh), [int(value) for value in fresh.values() if value is not None]
            )
            self._seeded[list(fresh)] = True

    def _mask_infos(self, shown: npt.NDArray[np.bool_]) -> Infos:
        masks = self.games.masks
        if not shown.all():
            masks = np.where(shown[:, None], masks, np.zeros_like(masks))
        return {"action_mask": masks, "_action_mask": shown.copy()}

    def _ending_infos(self, ended: npt.NDArray[np.bool_]) -> Infos:
        """How games ended, one array per key with zeros (None for text) where they go on."""
        infos: Infos = {}
        for key, column in self.games.endings().items():
            infos[key] = column
            infos[f"_{key}"] = ended.copy()
        return infos

    def _finish_in_place(self, ended: npt.NDArray[np.bool_]) -> Infos:
        """SAME_STEP: keep the final observations and infos of ended games and deal them anew."""
        final_obs = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            final_obs[i] = self.games.observations[i].copy()
        final_info = {
            "action_mask": np.zeros_like(self.games.masks),
            "_action_mask": ended.copy(),
            **self._ending_infos(ended),
        }
        self.games.deal(ended)
        return {
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": final_info,
            "_final_info": ended.copy(),
        }
