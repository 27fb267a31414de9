"""Skirmish for PettingZoo: all seats at one table, at once or in turn.

The one module that needs PettingZoo: ``pip install 'deck_of_spies_env[pettingzoo]'``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt

try:
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.conversions import parallel_to_aec_wrapper
    from pettingzoo.utils.wrappers import OrderEnforcingWrapper
except ImportError as error:
    raise ImportError(
        "Skirmish for several agents needs PettingZoo: pip install 'deck_of_spies_env[pettingzoo]'"
    ) from error

from deck_of_spies_env.adapters import (
    RENDER_FPS,
    RENDER_MODES,
    check_render_mode,
    single_action,
    without_window,
)
from deck_of_spies_env.checks import check_seed
from deck_of_spies_env.drawing import Picture, Screen
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS, WAIT, why_illegal
from deck_of_spies_env.skirmish.rendering import render_ansi, render_picture
from deck_of_spies_env.skirmish.rules import Rules
from deck_of_spies_env.skirmish.tables import Table

Observation = dict[str, npt.NDArray[np.int8]]
Infos = dict[str, dict[str, Any]]


def parallel_env(
    num_players: int = 2,
    rules: Rules | Mapping[str, Any] | None = None,
    render_mode: str | None = None,
    illegal_action: str = "raise",
) -> SkirmishParallelEnv:
    """A table at which all seats act at once, see SkirmishParallelEnv."""
    return SkirmishParallelEnv(num_players, rules, render_mode, illegal_action)


def env(
    num_players: int = 2,
    rules: Rules | Mapping[str, Any] | None = None,
    render_mode: str | None = None,
    illegal_action: str = "raise",
) -> AECEnv[str, Observation, int | None]:
    """The same table with the seats asked in turn; cards are committed when all have answered.

    An illegal action raises at once, in its seat's turn, which then is still to come; with
    ``illegal_action="lose"`` it counts when all have answered.
    """
    table = parallel_env(num_players, rules, render_mode, illegal_action)
    return OrderEnforcingWrapper(_SeatsInTurn(table))


class _SeatsInTurn(parallel_to_aec_wrapper[str, Observation, int | None]):
    """PettingZoo's conversion, which would keep an illegal action and be stuck on it."""

    def __init__(self, table: SkirmishParallelEnv) -> None:
        super().__init__(table)
        self._table = table

    def step(self, action: int | None) -> None:
        """One action of the agent whose turn it is."""
        agent = self.agent_selection
        if not self.terminations[agent] and not self.truncations[agent]:
            self._table.check_action(agent, action)
        super().step(action)


class SkirmishParallelEnv(ParallelEnv[str, Observation, int | None]):
    """Skirmish for the agents ``player_0`` to ``player_3``, by seat.

    A step is one decision of everybody who has one; the others wait. Observation: a dict of
    ``observation``, int8 (d,), all that the seat may know (see ``skirmish.observations``), and
    ``action_mask``, int8 (15,), which the agent's info holds too. Action: a rank or *wait*, see
    ``skirmish.actions``. Rewards: the payoffs (S12), paid at the end and adding up to 0. The last
    infos also hold ``outcome``, ``is_success``, ``total``, ``margin`` and ``rounds`` of each seat.
    The round limit (S10) truncates. All agents stay until the end.

    Args:
        num_players: n, 2-4.
        rules: a :class:`Rules`, a mapping of its fields, or None for the default.
        render_mode: None, ``"ansi"`` (text), ``"rgb_array"`` (a picture, uint8 (H, W, 3)) or
            ``"human"`` (a window, drawn at every reset and step); all of them show all cards.
        illegal_action: ``"raise"`` (IllegalActionError, nothing changes) or ``"lose"`` (whoever
            takes one loses, the others share the win).

    Attributes:
        state_space: Box of int8 (n * d,), that of ``state()``.

    Raises:
        ValueError: an argument out of what is allowed; the message names it.
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "name": "skirmish_v0",
        "render_modes": RENDER_MODES,
        "render_fps": RENDER_FPS,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        num_players: int = 2,
        rules: Rules | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        illegal_action: str = "raise",
    ) -> None:
        check_render_mode(render_mode)
        self._table = Table(num_players, rules=rules, illegal_action=illegal_action)
        self._screen = Screen("Skirmish")
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(num_players)]
        self.agents: list[str] = []
        high = self._table.games.observation_high
        # Each agent has spaces of its own, as they are seeded one by one.
        self._observation_spaces = {
            agent: gym.spaces.Dict(
                {
                    "observation": gym.spaces.Box(np.zeros_like(high), high, dtype=np.int8),
                    "action_mask": gym.spaces.Box(0, 1, (NUM_ACTIONS,), dtype=np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self._action_spaces = {
            agent: gym.spaces.Discrete(NUM_ACTIONS) for agent in self.possible_agents
        }
        all_high = np.tile(high, num_players)
        self.state_space = gym.spaces.Box(np.zeros_like(all_high), all_high, dtype=np.int8)

    # --- PettingZoo ---

    def observation_space(self, agent: str) -> gym.spaces.Dict:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The space of an agent's observations."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> gym.spaces.Discrete:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The space of an agent's actions."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Observation], Infos]:
        """Begin the next episode: episode 0 of a given seed, else one more of the current one.

        Args:
            seed: non-negative integer, or None to go on.
            options: ``table`` starts from a position exactly as given, see
                ``skirmish.positions.state_from_table``; other keys are ignored.

        Raises:
            ValueError: a negative seed, or a position that is no position; nothing changes.
        """
        start = self._table.start_of(options)
        if seed is not None:
            seed = check_seed(seed)
        elif not self._table.seeded:
            seed = int(np.random.default_rng().integers(1 << 63))
        self._table.deal(seed, start)
        self.agents = self.possible_agents[:]
        self._show()
        return self._observations(), self._mask_infos()

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """One action of every agent.

        Raises:
            IllegalActionError: an agent without an action, an unknown one, an action that is not
                legal, or any after the end. The message names the agent; nothing has changed.
        """
        games, joint = self._table.games, self._joint_action(actions)
        try:
            self._table.step(joint, keep=self.render_mode is not None)
        except IllegalActionError:
            for agent in self.possible_agents:
                self.check_action(agent, actions[agent])
            raise
        self._show()
        over, truncated = bool(games.over[0]), False
        infos = self._mask_infos()
        if over:
            endings, truncated = self._table.endings()
            for agent, ending in zip(self.possible_agents, endings, strict=True):
                infos[agent] |= ending
            self.agents = []
        rewards = dict(zip(self.possible_agents, games.rewards[0].tolist(), strict=True))
        return (
            self._observations(),
            rewards,
            dict.fromkeys(self.possible_agents, over and not truncated),
            dict.fromkeys(self.possible_agents, truncated),
            infos,
        )

    def render(self) -> str | Picture | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The whole table: text for ``"ansi"``, a picture for ``"rgb_array"``, else None.

        Raises:
            DependencyNotInstalled: a picture or a window without pygame.
        """
        if self.render_mode == "ansi":
            return render_ansi(self._table.state, self.num_players)
        return self._screen.show(self.render_mode, self._picture)

    def close(self) -> None:
        """Close the window of render mode ``"human"``."""
        self._screen.close()

    def state(self) -> npt.NDArray[np.int8]:
        """What all seats together may know, for central critics: their observations in a row."""
        return self._table.games.observations[0].reshape(-1).copy()

    # --- The game ---

    @property
    def rules(self) -> Rules:
        """The rule set being played."""
        return self._table.rules

    @property
    def num_players(self) -> int:
        """The number of seats, 2-4."""
        return self._table.num_players

    @property
    def phase(self) -> str:
        """``"skirmish"``, ``"war"`` or ``"over"`` (also before the first reset)."""
        return self._table.phase

    def observe(self, agent: str) -> Observation:
        """An agent's present observation and mask, as after a step; for forks and restored games.

        Raises:
            ValueError: no such agent.
        """
        if agent not in self.possible_agents:
            raise ValueError(f"no agent {agent!r}; there are {', '.join(self.possible_agents)}")
        return self._observation(self.possible_agents.index(agent))

    def check_action(self, agent: str, action: Any) -> None:
        """Check an agent's action before all are taken together.

        Raises:
            IllegalActionError: it is no action, or one that ``step`` would refuse.
        """
        seat, number = self.possible_agents.index(agent), self._action(agent, action)
        legal = 0 <= number < NUM_ACTIONS and bool(self._table.mask(seat)[number])
        if not legal and (self._table.is_over or self._table.illegal_action == "raise"):
            raise IllegalActionError(f"{agent}: {why_illegal(self._table.state, seat, number)}")

    def zones(self, seat: int) -> dict[str, Any]:
        """What a seat may know, by card names; see ``skirmish.positions.zones_of``.

        Raises:
            ValueError: no such seat.
        """
        return self._table.zones(seat)

    def table(self) -> dict[str, Any]:
        """All cards, for checks and spectators; see ``skirmish.positions.table_of``."""
        return self._table.all_zones()

    def get_state(self) -> npt.NDArray[Any]:
        """The game with its random streams: a copy, shape () and dtype SNAPSHOT."""
        return self._table.snapshot()

    def set_state(self, state: npt.NDArray[Any]) -> None:
        """Go back to a state from get_state(), streams included.

        Raises:
            ValueError: not such a state, or not one of these rules; nothing changes.
        """
        self._table.restore(state)
        self._call_agents()

    def fork(self, seed: int) -> SkirmishParallelEnv:
        """An independent copy of the position with fresh streams, for planning.

        All hidden cards stay where they are. No seed gives the streams of a game, not even the
        game's own.
        """
        return self._at(self._table.fork(seed))

    def redeal(self, seat: int, seed: int) -> SkirmishParallelEnv:
        """A fork in which all cards that a seat can't know are dealt anew.

        The position is drawn uniformly from those consistent with what the seat may know: its own
        observation stays as it is.

        Raises:
            ValueError: no such seat, or a negative seed.
        """
        return self._at(self._table.redeal(seat, seed))

    # --- Helpers ---

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _picture(self) -> Picture:
        table, (endings, _) = self._table, self._table.endings()
        return render_picture(table.state, endings, None, table.last_step)

    def _at(self, table: Table) -> SkirmishParallelEnv:
        twin = SkirmishParallelEnv(self.num_players, self.rules, without_window(self.render_mode))
        twin._table = table
        twin._call_agents()
        return twin

    def _call_agents(self) -> None:
        """All agents are at the table of a game that goes on, and none after its end."""
        self.agents = [] if self._table.is_over else self.possible_agents[:]

    def _joint_action(self, actions: Mapping[str, Any]) -> npt.NDArray[np.int64]:
        """The actions of all seats, int64 (n,)."""
        if not self.agents:
            raise IllegalActionError("the game is over, reset first")
        if not isinstance(actions, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise IllegalActionError(f"actions must be a mapping of agents to actions: {actions!r}")
        missing = [agent for agent in self.possible_agents if agent not in actions]
        if missing:
            raise IllegalActionError(
                f"no action for {', '.join(missing)}: agents without a decision wait ({WAIT})"
            )
        unknown = [agent for agent in actions if agent not in self.possible_agents]
        if unknown:
            raise IllegalActionError(
                f"no agent {unknown[0]!r}; there are {', '.join(self.possible_agents)}"
            )
        return np.array([self._action(agent, actions[agent]) for agent in self.possible_agents])

    def _action(self, agent: str, action: Any) -> int:
        try:
            return single_action(action)
        except IllegalActionError as error:
            raise IllegalActionError(f"{agent}: {error}") from None

    def _observation(self, seat: int) -> Observation:
        return {
            "observation": self._table.observation(seat),
            "action_mask": self._table.mask(seat),
        }

    def _observations(self) -> dict[str, Observation]:
        return {agent: self._observation(seat) for seat, agent in enumerate(self.possible_agents)}

    def _mask_infos(self) -> Infos:
        return {
            agent: {"action_mask": self._table.mask(seat)}
            for seat, agent in enumerate(self.possible_agents)
        }
