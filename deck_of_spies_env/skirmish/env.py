"""``Skirmish-v0``: one seat of Skirmish against agents, as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt

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
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS, decode, encode, why_illegal
from deck_of_spies_env.skirmish.opponents import Opponents, OpponentsArgument
from deck_of_spies_env.skirmish.rendering import render_ansi, render_picture
from deck_of_spies_env.skirmish.rules import Rules
from deck_of_spies_env.skirmish.tables import Table, check_seat

Observation = npt.NDArray[np.int8]


class SkirmishEnv(gym.Env[Observation, np.int64]):
    """Skirmish for one learner; agents play the other seats.

    A step is one decision of everybody who has one: the learner acts, and waits where it has none.
    Observation: int8 vector of named fields, see ``skirmish.observations``, all that the seat may
    know. Action: a rank or *wait*, see ``skirmish.actions``; ``info["action_mask"]`` (int8, shape
    (15,)) tells which are legal. Reward: the payoff (S12) of the seat, paid at the end, -1 to 1.
    The last info also holds ``outcome`` (``"win"``, ``"shared"``, ``"loss"`` or
    ``"illegal_action"``), ``is_success``, ``total``, ``margin`` and ``rounds`` of the seat. The
    round limit (S10) truncates.

    Args:
        num_players: n, 2-4.
        opponents: a bot's name (``skirmish.bots.BOTS``), an agent (see ``agent.Agent``), or a list
            of n - 1 of these, the first of them for the seat after the learner's. They see the
            observation and mask of their own seat, nothing else, and are asked only where they
            have a decision. An agent in several seats is asked for each of them.
        seat: the learner's, 0 to n - 1; None for seat e % n in episode e.
        rules: a :class:`Rules`, a mapping of its fields, or None for the default.
        render_mode: None, ``"ansi"`` (text), ``"rgb_array"`` (a picture, uint8 (H, W, 3)) or
            ``"human"`` (a window, drawn at every reset and step); all of them show what the
            learner may know.
        illegal_action: ``"raise"`` (IllegalActionError, nothing changes) or ``"lose"`` (whoever
            takes one loses, the others share the win).

    Raises:
        ValueError: an argument out of what is allowed; the message names it.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        num_players: int = 2,
        opponents: OpponentsArgument = "rank",
        seat: int | None = None,
        rules: Rules | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        illegal_action: str = "raise",
    ) -> None:
        check_render_mode(render_mode)
        self._table = Table(num_players, rules=rules, illegal_action=illegal_action)
        self._opponents = Opponents(opponents, num_players)
        self._fixed_seat = None if seat is None else check_seat(seat, num_players)
        self._screen = Screen("Skirmish")
        self.render_mode = render_mode
        high = self._table.games.observation_high
        self.observation_space = gym.spaces.Box[np.int8](np.zeros_like(high), high, dtype=np.int8)
        self.action_space = gym.spaces.Discrete(NUM_ACTIONS)

    # --- Gymnasium ---

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode: episode 0 of a given seed, else one more of the current one.

        Args:
            seed: non-negative integer, or None to go on.
            options: ``table`` starts from a position exactly as given, see
                ``skirmish.positions.state_from_table``; other keys are ignored.

        Raises:
            ValueError: a position that is no position; nothing changes.
        """
        start = self._table.start_of(options)
        seed = None if seed is None else check_seed(seed)
        super().reset(seed=seed)
        if seed is None and not self._table.seeded:
            seed = int(self.np_random.integers(1 << 63))
        self._table.deal(seed, start)
        self._opponents.begin(self._table)
        self._show()
        return self._table.observation(self.seat), {"action_mask": self._table.mask(self.seat)}

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one action, beside those of the opponents.

        Raises:
            IllegalActionError: an action that is not legal, the learner's or an opponent's, or any
                after the end. The message names the seat; nothing has changed in the game.
        """
        table, seat = self._table, self.seat
        games = table.games
        joint = self._joint_action(seat, single_action(action))
        table.step(joint, keep=self.render_mode is not None)
        self._show()
        over, truncated = bool(games.over[0]), False
        info: dict[str, Any] = {"action_mask": table.mask(seat)}
        if over:
            endings, truncated = table.endings()
            info |= endings[seat]
        reward = float(games.rewards[0, seat])
        return table.observation(seat), reward, over and not truncated, truncated, info

    def render(self) -> str | Picture | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What the learner may know: text for ``"ansi"``, a picture for ``"rgb_array"``, else None.

        Raises:
            DependencyNotInstalled: a picture or a window without pygame.
        """
        if self.render_mode == "ansi":
            return render_ansi(self._table.state, self._table.num_players, self.seat)
        return self._screen.show(self.render_mode, self._picture)

    def close(self) -> None:
        """Close the window of render mode ``"human"``."""
        self._screen.close()

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
    def seat(self) -> int:
        """The learner's seat in this episode."""
        if self._fixed_seat is not None:
            return self._fixed_seat
        return max(0, int(self._table.streams["episode"])) % self.num_players

    @property
    def phase(self) -> str:
        """``"skirmish"``, ``"war"`` or ``"over"`` (also before the first reset)."""
        return self._table.phase

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Legal actions as bool of shape (15,); all False once the game is over."""
        return self._table.mask(self.seat).view(np.bool_)

    def decode(self, action: int) -> str:
        """The action's text: a rank, or ``wait``.

        Raises:
            ValueError: no such action.
        """
        return decode(action)

    def encode(self, text: str) -> int:
        """The action of a rank (``A``, ``10``, ``*``) or of ``wait``.

        Raises:
            ValueError: neither.
        """
        return encode(text)

    def zones(self, seat: int | None = None) -> dict[str, Any]:
        """What a seat, the learner's by default, may know; see ``skirmish.positions.zones_of``.

        Raises:
            ValueError: no such seat.
        """
        return self._table.zones(self.seat if seat is None else seat)

    def table(self) -> dict[str, Any]:
        """All cards, for checks and spectators; see ``skirmish.positions.table_of``."""
        return self._table.all_zones()

    def get_state(self) -> npt.NDArray[Any]:
        """The game with its random streams: a copy, shape () and dtype SNAPSHOT.

        It tells what bots made from their names will do, as their random numbers follow from the
        game's streams; it holds nothing of what agent objects remember.
        """
        return self._table.snapshot()

    def set_state(self, state: npt.NDArray[Any]) -> None:
        """Go back to a state from get_state(), streams included; agent objects stay as they are.

        Raises:
            ValueError: not such a state, or not one of these rules; nothing changes.
        """
        self._table.restore(state)

    def fork(self, seed: int) -> SkirmishEnv:
        """An independent copy of the position with fresh streams.

        All hidden cards stay where they are, so it tells more than the learner may know: planners
        take :meth:`redeal`. No seed gives the streams of a game, not even the game's own. Agent
        objects are copied, and the copies reset.
        """
        return self._at(self._table.fork(seed))

    def redeal(self, seed: int) -> SkirmishEnv:
        """A fork in which all cards that the learner can't know are dealt anew, for planning.

        The position is drawn uniformly from those consistent with what the learner may know: its
        observation stays as it is.
        """
        return self._at(self._table.redeal(self.seat, seed))

    # --- Helpers ---

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _picture(self) -> Picture:
        table, (endings, _) = self._table, self._table.endings()
        return render_picture(table.state, endings, self.seat, table.last_step)

    def _joint_action(self, seat: int, action: int) -> npt.NDArray[np.int64]:
        """The actions of all seats, int64 (n,); bots are not asked if the learner's is illegal."""
        table = self._table
        masks = table.games.masks[0]
        actions = masks.argmax(axis=1)  # right for those that wait
        actions[seat] = action
        if 0 <= action < NUM_ACTIONS and masks[seat, action]:
            self._opponents.choose(table, seat, actions)
        elif table.is_over or table.illegal_action == "raise":
            raise IllegalActionError(f"seat {seat}: {why_illegal(table.state, seat, action)}")
        return actions

    def _at(self, table: Table) -> SkirmishEnv:
        seat, render_mode = self._fixed_seat, without_window(self.render_mode)
        twin = SkirmishEnv(self.num_players, "high", seat, self.rules, render_mode)
        twin.spec = self.spec
        twin._table = table
        twin._opponents = self._opponents.copy()
        twin._opponents.begin(table)
        return twin
