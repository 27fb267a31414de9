"""N tables of Skirmish at once, all seats of them acting: a native vector environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from deck_of_spies_env.adapters import Actions, GamesVectorEnv, Infos, joint_actions
from deck_of_spies_env.checks import check_count
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS
from deck_of_spies_env.skirmish.games import Games, compile_engine
from deck_of_spies_env.skirmish.rendering import render_ansi, render_picture
from deck_of_spies_env.skirmish.rules import Rules
from deck_of_spies_env.skirmish.tables import deal_or_start, ending_rows, start_from_options


class SkirmishVectorEnv(GamesVectorEnv[npt.NDArray[np.int8]]):
    """N tables of Skirmish; all n seats of each act in every step.

    It follows Gymnasium's vector interface, its autoreset modes and its layout of infos, with a
    dimension more: observations int8 (N, n, d), actions whole numbers (N, n), rewards float64
    (N, n), terminated and truncated bool (N,), ``infos["action_mask"]`` int8 (N, n, 15), and at
    the end ``outcome``, ``is_success``, ``total``, ``margin`` and ``rounds``, each (N, n). Table i
    replays a ``parallel_env`` of seed s + i exactly.

    Args:
        num_envs: N, at least 1.
        num_players: n, 2-4.
        rules: a :class:`Rules`, a mapping of its fields, or None for the default.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``; both show all cards.
        illegal_action: ``"raise"`` (IllegalActionError, nothing changes) or ``"lose"`` (whoever
            takes one loses, the others at that table share the win).
        autoreset_mode: NEXT_STEP (default), SAME_STEP or DISABLED, as enum or by value.
        copy: hand out new arrays at every step. If False, observations, masks and rewards are the
            same arrays each time, and the next call overwrites them (but for the masks in the
            infos of a partial reset, and after set_state).
        num_threads: threads that share the tables; the results are the same for any number.

    Raises:
        ValueError: an argument out of what is allowed; the message names it.
    """

    games: Games

    def __init__(
        self,
        num_envs: int = 1,
        num_players: int = 2,
        rules: Rules | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        illegal_action: str = "raise",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        num_threads: int = 1,
    ) -> None:
        games = Games(
            check_count("num_envs", num_envs),
            num_players,
            rules=rules,
            illegal_action=illegal_action,
            num_threads=num_threads,
        )
        high = np.tile(games.observation_high, (games.num_players, 1))
        super().__init__(
            games,
            gym.spaces.Box[np.int8](np.zeros_like(high), high, dtype=np.int8),
            gym.spaces.MultiDiscrete([NUM_ACTIONS] * games.num_players),
            render_mode=render_mode,
            autoreset_mode=autoreset_mode,
            copy=copy,
        )
        compile_engine(self.num_players)

    # --- Gymnasium ---

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, actions: Actions
    ) -> tuple[
        npt.NDArray[np.int8],
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        Infos,
    ]:
        """One action of every seat at every table.

        Args:
            actions: whole numbers of shape (N, n); seats without a decision wait. Under NEXT_STEP
                the entries of tables that are reset by this step are not looked at.

        Raises:
            IllegalActionError: names the tables with an illegal action, and the first such seat;
                nothing has moved.
        """
        games = self.games
        given = joint_actions(actions, self.num_envs, self.num_players)
        before, resetting = self._positions(), self._resetting()
        num_over = games.step(given, dealing=resetting, renew=self._copy)
        self._keep_step(before, given, resetting, games.over)
        over, endings = games.over.copy(), None
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        if num_over:
            endings = games.endings()
            truncated = endings.pop("truncated")
        infos = self._step_infos(over, endings)
        return games.observations, games.rewards, over & ~truncated, truncated, infos

    # --- The games ---

    @property
    def rules(self) -> Rules:
        """The rule set being played."""
        return self.games.rules

    @property
    def num_players(self) -> int:
        """The number of seats at each table, 2-4."""
        return self.games.num_players

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Legal actions as bool of shape (N, n, 15); all False where the game is over."""
        return self.games.current_masks().view(np.bool_)

    def get_state(self) -> npt.NDArray[Any]:
        """All games with their random streams: a copy, shape (N,), dtype SNAPSHOT."""
        return self.games.snapshots()

    def set_state(self, state: npt.NDArray[Any]) -> None:
        """Go back to a state from get_state(), streams included.

        Raises:
            ValueError: not such a state, or not one of these rules; nothing changes.
        """
        self.games.restore(state)
        self._seeded = self.games.seeded
        self._awaiting_reset = self.games.states["phase"] == game.OVER
        self._forget_steps(self._everyone)

    # --- Helpers ---

    def _rendered(self, render_mode: str) -> tuple[Any, ...]:
        states, num_players = self.games.states, self.num_players
        if render_mode == "ansi":
            return tuple(render_ansi(state, num_players) for state in states)
        endings = self.games.endings()
        del endings["truncated"]
        return tuple(
            render_picture(state, ending_rows(endings, i), None, self._last_step(i))
            for i, state in enumerate(states)
        )

    def _start_of(self, options: Mapping[str, Any]) -> npt.NDArray[Any] | None:
        return start_from_options(options, self.num_players, self.rules)

    def _deal(self, chosen: npt.NDArray[np.bool_], start: npt.NDArray[Any] | None) -> None:
        deal_or_start(self.games, chosen, start)
