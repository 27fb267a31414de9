"""``DeckOfSpies-v0`` over N games at once: a native Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from deck_of_spies_env import cards
from deck_of_spies_env.adapters import Actions, GamesVectorEnv, Infos, action_array
from deck_of_spies_env.checks import check_count
from deck_of_spies_env.solitaire.env import spaces_of
from deck_of_spies_env.solitaire.games import Games, compile_engine, compile_packing
from deck_of_spies_env.solitaire.observations import PACKED_ACT, PACKED_RETIRE, PACKED_WORDS
from deck_of_spies_env.solitaire.positions import Start, start_from_options
from deck_of_spies_env.solitaire.rendering import render_ansi, render_picture
from deck_of_spies_env.solitaire.rules import Rules

Observations = npt.NDArray[np.int8] | npt.NDArray[np.uint64]


def packed_space() -> gym.spaces.Box[np.uint64]:
    """The space of one packed observation."""
    high = np.full(len(PACKED_WORDS), cards.ALL_CARDS, dtype=np.uint64)
    high[PACKED_WORDS.index("spy")] |= np.uint64(1 << PACKED_ACT | 1 << PACKED_RETIRE)
    return gym.spaces.Box[np.uint64](np.zeros_like(high), high, dtype=np.uint64)


class DeckOfSpiesVectorEnv(GamesVectorEnv[Observations]):
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
        others: as in ``DeckOfSpiesEnv``, but for render mode ``"human"``.

    Raises:
        ValueError: an argument out of what is allowed; the message names it.
    """

    games: Games

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
        games = Games(
            check_count("num_envs", num_envs),
            objective=objective,
            observation=observation,
            rules=rules,
            illegal_action=illegal_action,
            start=start,
            shaping=shaping,
            packed=packed,
            num_threads=num_threads,
        )
        observation_space, action_space = spaces_of(games)
        super().__init__(
            games,
            packed_space() if packed else observation_space,
            action_space,
            render_mode=render_mode,
            autoreset_mode=autoreset_mode,
            copy=copy,
        )
        if packed:
            compile_packing()
        compile_engine()

    # --- Gymnasium ---

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
        before, resetting = self._positions(), self._resetting()
        num_over = games.step(given, dealing=resetting, renew=self._copy)
        self._keep_step(before, given, resetting, games.terminated)
        infos = self._step_infos(games.terminated, games.endings() if num_over else None)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        return games.observations, games.rewards, games.terminated, truncated, infos

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
        self._forget_steps(self._everyone)

    # --- Helpers ---

    def _rendered(self, render_mode: str) -> tuple[Any, ...]:
        games, rules = self.games, repeat(self.games.rules)
        last_steps = map(self._last_step, range(self.num_envs))
        if render_mode == "ansi":
            return tuple(map(render_ansi, games.states, rules, last_steps))
        masks = games.current_masks()
        return tuple(map(render_picture, games.states, rules, masks, last_steps))

    def _start_of(self, options: Mapping[str, Any]) -> Start | None:
        return start_from_options(options, self.games.rules)

    def _deal(self, chosen: npt.NDArray[np.bool_], start: Start | None) -> None:
        self.games.deal(chosen, start)
