"""What the environments of both games share as adapters of ``Games`` to Gymnasium."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from deck_of_spies_env.checks import check_flag, check_options, check_seed
from deck_of_spies_env.errors import IllegalActionError

RENDER_MODES = ["ansi", "rgb_array", "human"]
VECTOR_RENDER_MODES = RENDER_MODES[:2]
"""A vector environment has no window."""
RENDER_FPS = 2

_MORE_THAN_ANY_ACTION = 1 << 32

Actions = npt.NDArray[np.int64]
Infos = dict[str, Any]
Observations = TypeVar("Observations")


class RenderModeError(ValueError):
    """A render mode that does not exist."""


def check_render_mode(render_mode: str | None, modes: Sequence[str] = RENDER_MODES) -> None:
    """Raise RenderModeError for a render mode that is not among some."""
    if render_mode is not None and render_mode not in modes:
        raise RenderModeError(
            f"render_mode must be None or one of {', '.join(modes)}, got {render_mode!r}"
        )


def without_window(render_mode: str | None) -> str | None:
    """The render mode of a copy to plan with, which must not draw in the window of its original."""
    return "rgb_array" if render_mode == "human" else render_mode


def single_action(action: Any) -> int:
    """One action as an int.

    Raises:
        IllegalActionError: not a whole number.
    """
    if type(action) is int or isinstance(action, np.integer):
        number = int(action)
        if abs(number) < _MORE_THAN_ANY_ACTION:
            return number
    return int(action_array(action, 1)[0])


def action_array(actions: Any, num_games: int) -> Actions:
    """Actions as int64 of shape (N,).

    Raises:
        IllegalActionError: not N whole numbers.
    """
    array = np.asarray(actions)
    if array.size != num_games or array.dtype.kind not in "iu":
        raise IllegalActionError(f"expected {num_games} whole number(s) as action, got {actions!r}")
    return array.reshape(num_games).astype(np.int64, copy=False)


def joint_actions(actions: Any, num_games: int, num_players: int) -> Actions:
    """Actions of all seats of N tables as int64 of shape (N, n).

    Raises:
        IllegalActionError: not N times n whole numbers, or of another shape.
    """
    array = np.asarray(actions)
    if array.shape != (num_games, num_players) or array.dtype.kind not in "iu":
        raise IllegalActionError(
            f"expected {prod((num_games, num_players))} whole numbers of shape "
            f"({num_games}, {num_players}) as actions, got {actions!r}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(known.value) for known in AutoresetMode)
        raise ValueError(f"autoreset_mode must be one of {known}, got {mode!r}") from None


class GamesVectorEnv(VectorEnv[Observations, Actions, npt.NDArray[Any]]):
    """N games under Gymnasium's vector interface: seeds, autoresets and the layout of infos.

    A subclass tells how a start is read and dealt, and writes ``step`` with :meth:`_resetting` and
    :meth:`_step_infos`.

    Args:
        games: N games of either engine.
        single_observation_space, single_action_space: of one game.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``.
        autoreset_mode: NEXT_STEP, SAME_STEP or DISABLED, as enum or by value.
        copy: hand out new arrays at every step.

    Raises:
        ValueError: an argument out of what is allowed; the message names it.
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "render_modes": VECTOR_RENDER_MODES,
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        games: Any,
        single_observation_space: gym.Space[Any],
        single_action_space: gym.Space[Any],
        *,
        render_mode: str | None,
        autoreset_mode: AutoresetMode | str,
        copy: bool,
    ) -> None:
        check_render_mode(render_mode, VECTOR_RENDER_MODES)
        self.games = games
        self.num_envs = len(games)
        self._copy = check_flag("copy", copy)
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}  # pyright: ignore[reportIncompatibleVariableOverride, reportAttributeAccessIssue]
        self.render_mode = render_mode
        self.single_observation_space = single_observation_space
        self.single_action_space = single_action_space
        self.observation_space = batch_space(single_observation_space, self.num_envs)
        self.action_space = batch_space(single_action_space, self.num_envs)
        self._seeded = np.zeros(self.num_envs, dtype=np.bool_)
        self._awaiting_reset = np.zeros(self.num_envs, dtype=np.bool_)
        self._everyone = np.ones(self.num_envs, dtype=np.bool_)
        self._forget_steps(self._everyone)

    def reset(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Infos]:
        """Begin the next episode in all games, or in those of ``options["reset_mask"]``.

        Args:
            seed: s for seeds s, s + 1, ..., a list with one seed or None per game, or None.
            options: ``reset_mask`` (bool (N,)), and a position as in the single environment.

        Raises:
            ValueError, TypeError: a bad position, list of seeds or mask; nothing changes.
        """
        options = check_options(options)
        chosen = self._reset_mask(options)
        start = self._start_of(options)
        self._seed(seed, chosen)
        if self._copy:
            self.games.renew()
        self._deal(chosen, start)
        if not chosen.all():
            self.games.show(~chosen)
        self._awaiting_reset &= ~chosen
        self._forget_steps(chosen)
        return self.games.observations, self._mask_infos(chosen)

    def render(self) -> tuple[Any, ...] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Every game as text in render mode ``"ansi"``, as picture in ``"rgb_array"``, else None.

        Raises:
            DependencyNotInstalled: a picture without pygame.
        """
        if self.render_mode is None:
            modes = ", ".join(VECTOR_RENDER_MODES)
            gym.logger.warn(f"render() without a render mode: pass render_mode, one of {modes}")
            return None
        return self._rendered(self.render_mode)

    # --- What the games differ in ---

    @abstractmethod
    def _rendered(self, render_mode: str) -> tuple[Any, ...]:
        """Every game in a render mode."""

    @abstractmethod
    def _start_of(self, options: Mapping[str, Any]) -> Any:
        """The start that reset options ask for; a ValueError if it is bad."""

    @abstractmethod
    def _deal(self, chosen: npt.NDArray[np.bool_], start: Any) -> None:
        """Begin the next episode of the chosen games, from a start of _start_of."""

    # --- Helpers ---

    def _positions(self) -> npt.NDArray[Any] | None:
        """The positions before a step, for renderings of it; None where nothing is rendered."""
        return None if self.render_mode is None else self.games.states.copy()

    def _keep_step(
        self,
        before: npt.NDArray[Any] | None,
        actions: Actions,
        resetting: npt.NDArray[np.bool_] | None,
        over: npt.NDArray[np.bool_],
    ) -> None:
        """Keep a step for renderings of the games that it has not dealt anew.

        Args:
            before: of _positions().
            actions: of the step.
            resetting: of _resetting(), before the step.
            over: which games have ended by the step.
        """
        if before is None:
            return
        dealt = over if self.autoreset_mode is AutoresetMode.SAME_STEP else resetting
        moved = ~dealt if dealt is not None else self._everyone.copy()
        self._last_steps = before, actions.copy(), moved

    def _forget_steps(self, chosen: npt.NDArray[np.bool_]) -> None:
        if chosen.all():
            self._last_steps: tuple[npt.NDArray[Any], Actions, npt.NDArray[np.bool_]] | None = None
        elif self._last_steps is not None:
            self._last_steps[2][chosen] = False

    def _last_step(self, index: int) -> tuple[Any, Any] | None:
        """The position and the action (or actions) that led to a game's present position."""
        if self._last_steps is None or not self._last_steps[2][index]:
            return None
        return self._last_steps[0][index], self._last_steps[1][index]

    def _resetting(self) -> npt.NDArray[np.bool_] | None:
        """Which games this step deals anew instead of moving them; None for none."""
        return self._awaiting_reset if self.autoreset_mode is AutoresetMode.NEXT_STEP else None

    def _step_infos(self, over: npt.NDArray[np.bool_], endings: Mapping[str, Any] | None) -> Infos:
        """The infos of a step, after what the autoreset mode asks for.

        Args:
            over: which games are over.
            endings: how they ended, None if none is over.
        """
        infos: Infos = {}
        in_same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        if in_same_step:
            if endings is not None:
                infos = self._finish_in_place(over, endings)
        else:
            self._awaiting_reset = over.copy()
        infos["action_mask"], infos["_action_mask"] = self.games.masks, self._everyone.copy()
        if endings is not None and not in_same_step:
            infos |= _ending_infos(over, endings)
        return infos

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
            super().reset(seed=check_seed(seed))
            seeds = [int(seed) + i for i in range(self.num_envs)]
        elif isinstance(seed, str) or not isinstance(seed, Sequence | np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"seed must be a whole number or one per env, got {seed!r}")
        else:
            seeds = [None if one is None else check_seed(one) for one in seed]
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
            masks = masks.copy()
            masks[~shown] = 0
        return {"action_mask": masks, "_action_mask": shown.copy()}

    def _finish_in_place(self, ended: npt.NDArray[np.bool_], endings: Mapping[str, Any]) -> Infos:
        """SAME_STEP: keep the final observations and infos of ended games and deal them anew."""
        final_obs = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            final_obs[i] = self.games.observations[i].copy()
        final_info = {
            "action_mask": np.zeros_like(self.games.masks),
            "_action_mask": ended.copy(),
            **_ending_infos(ended, endings),
        }
        self.games.deal(ended)
        return {
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": final_info,
            "_final_info": ended.copy(),
        }


def _ending_infos(ended: npt.NDArray[np.bool_], endings: Mapping[str, Any]) -> Infos:
    """How games ended, one array per key with zeros (None for text) where they go on."""
    infos: Infos = {}
    for key, column in endings.items():
        infos[key] = column
        infos[f"_{key}"] = ended.copy()
    return infos
