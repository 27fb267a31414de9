"""``DeckOfSpies-v0``: the solitaire as a Gymnasium environment, a thin adapter over the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
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
from deck_of_spies_env.cards import mask_of
from deck_of_spies_env.checks import check_options, check_seed
from deck_of_spies_env.drawing import Picture, Screen
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import Action, IllegalActionError
from deck_of_spies_env.solitaire.explanations import why_illegal
from deck_of_spies_env.solitaire.games import Games, apply_plays, compile_engine
from deck_of_spies_env.solitaire.positions import Start, start_from_options, zones_of
from deck_of_spies_env.solitaire.rendering import LastStep, render_ansi, render_picture
from deck_of_spies_env.solitaire.rules import Rules

Observation = npt.NDArray[np.int8]


def spaces_of(games: Games) -> tuple[gym.spaces.Box[np.int8], gym.spaces.Discrete]:
    """Observation and action space of one game."""
    high = games.observation_high
    return (
        gym.spaces.Box[np.int8](np.zeros_like(high), high, dtype=np.int8),
        gym.spaces.Discrete(games.table.num_actions),
    )


class DeckOfSpiesEnv(gym.Env[Observation, np.int64]):
    """Deck of Spies for one player.

    Observation: int8 vector of named fields, see ``solitaire.observations``. Action: an index into
    the table of ``solitaire.actions``; ``info["action_mask"]`` (int8, shape (n,)) tells which are
    legal. Reward: the objective, paid at the end.

    Args:
        objective: ``"win"`` (1 for a win), ``"keys"`` (Key Spies held / 12), ``"perfect"`` (1 for
            12 of 12), or a mapping of weights over these, summed.
        observation: ``"recall"`` (all that perfect memory knows) or ``"table"`` (what is in sight).
        rules: a :class:`Rules`, a mapping of its fields, or None for the default.
        render_mode: None, ``"ansi"`` (text), ``"rgb_array"`` (a picture, uint8 (H, W, 3)) or
            ``"human"`` (a window, drawn at every reset and step).
        illegal_action: ``"raise"`` (IllegalActionError, nothing changes) or ``"lose"`` (the episode
            ends as a loss with outcome ``"illegal_action"``).
        start: zones where every episode begins, as in ``options["zones"]``; with ``hand`` left out
            it is dealt from the Draw Deck, with ``spy`` left out too it is turned up.
        shaping: ``"key_spies"`` adds the change of (Key Spies held / 12), a potential that is 0 at
            the end, to each reward; with gamma 1 that leaves the best policy as it is.

    Raises:
        ValueError: an argument out of what is allowed; the message names it.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        objective: str | Mapping[str, float] = "win",
        observation: str = "recall",
        rules: Rules | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        illegal_action: str = "raise",
        start: Mapping[str, Any] | None = None,
        shaping: str | None = None,
    ) -> None:
        check_render_mode(render_mode)
        self._arguments: dict[str, Any] = deepcopy(
            {
                "objective": objective,
                "observation": observation,
                "rules": rules,
                "illegal_action": illegal_action,
                "start": start,
                "shaping": shaping,
            }
        )
        self._games = Games(1, **self._arguments)
        self._seeded = False
        self._last_step: LastStep | None = None  # kept where there is a render mode
        self._screen = Screen("Deck of Spies")
        self.render_mode = render_mode
        self.observation_space, self.action_space = spaces_of(self._games)
        compile_engine()

    # --- Gymnasium ---

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode: episode 0 of a given seed, else one more of the current one.

        Args:
            seed: non-negative integer, or None to go on.
            options: ``zones`` (zone name -> cards) starts from a position exactly as given,
                ``phase`` (``"act"`` or ``"retire"``) goes with it; other keys are ignored.

        Raises:
            ValueError: a position that is no position; nothing changes.
        """
        start = self.start_of(options)
        seed = None if seed is None else check_seed(seed)
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            drawn = int(self.np_random.integers(1 << 63)) if seed is None else seed
            self._games.seed([0], [drawn])
            self._seeded = True
        self._games.renew()
        self._games.deal(start=start)
        self._last_step = None
        self._show()
        return self._games.observations[0], {"action_mask": self._games.masks[0]}

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one action.

        Raises:
            IllegalActionError: an action that is not legal, or any after the end.
        """
        action = single_action(action)
        before = self._games.states[0].copy() if self.render_mode else None
        observation, mask, reward, terminated = self._games.step_single(action)
        if before is not None:
            self._last_step = before, action
            self._show()
        info: dict[str, Any] = {"action_mask": mask}
        if terminated:
            info |= {key: values.tolist()[0] for key, values in self._games.endings().items()}
        return observation, reward, terminated, False, info

    def render(self) -> str | Picture | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The table: text in render mode ``"ansi"``, a picture in ``"rgb_array"``, else None.

        Raises:
            DependencyNotInstalled: a picture or a window without pygame.
        """
        if self.render_mode == "ansi":
            return render_ansi(self._games.states[0], self.rules, self._last_step)
        return self._screen.show(self.render_mode, self._picture)

    def close(self) -> None:
        """Close the window of render mode ``"human"``."""
        self._screen.close()

    # --- The game ---

    @property
    def rules(self) -> Rules:
        """The rule set being played."""
        return self._games.rules

    @property
    def phase(self) -> str:
        """``"act"``, ``"retire"`` or ``"over"`` (also before the first reset)."""
        return game.PHASES[int(self._games.states["phase"][0])]

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Legal actions as bool of shape (n,); all False once the game is over."""
        return self._games.current_masks()[0].view(np.bool_)

    def decode(self, action: int) -> Action:
        """The action in the game's terms, with the present hand; legal or not.

        Raises:
            IllegalActionError: no such index, or slots that the hand lacks.
        """
        return self._games.table.decode(single_action(action), self._hand())

    def encode(self, kind: str, cards: Iterable[str] = ()) -> int:
        """The index of an action named by kind and cards (in any order), with the present hand.

        Raises:
            ValueError: the table has no such action.
        """
        return self._games.table.encode(kind, cards, self._hand())

    def zones(self) -> dict[str, tuple[str, ...]]:
        """The cards of each zone, sorted, by zone name (see ``solitaire.positions``)."""
        return zones_of(self._games.states[0])

    def afterstate(self, action: int) -> dict[str, tuple[str, ...]]:
        """The zones after a legal action, before anything is turned up, reshuffled or drawn.

        In the act phase the spy is dealt with, ``spy`` is empty and the next spy still among
        ``spy_deck``; in the retire phase the next spy is in sight already.

        Raises:
            IllegalActionError: the action is not legal.
        """
        states = self._games.states.copy()
        action = single_action(action)
        if not self._is_legal(action):
            raise IllegalActionError(why_illegal(states[0], self.rules, action))
        kind, named = self.decode(action)
        chosen = np.array([mask_of(named)], dtype=np.uint64)
        apply_plays(states, np.array([game.KINDS.index(kind)]), chosen)
        return zones_of(states[0])

    def start_of(self, options: Mapping[str, Any] | None) -> Start | None:
        """The start that reset options ask for, None if for none (see reset).

        Raises:
            ValueError: a position that is no position.
        """
        return start_from_options(check_options(options), self.rules)

    def get_state(self) -> npt.NDArray[Any]:
        """The game with its random streams: a copy, shape () and dtype SNAPSHOT."""
        return self._games.snapshots_of(0)

    def set_state(self, state: npt.NDArray[Any]) -> None:
        """Go back to a state from get_state(), streams included.

        Raises:
            ValueError: not such a state, or not one of these rules; nothing changes.
        """
        self._games.restore(np.asarray(state).reshape(1), show=False)
        self._seeded = bool(self._games.seeded[0])  # a game not yet dealt may have no seed yet
        self._last_step = None

    def fork(self, seed: int) -> DeckOfSpiesEnv:
        """An independent copy of the position with fresh streams, for planning.

        No seed gives the streams of a game, not even the game's own. The fork of an environment
        with a window has none: its render mode is ``"rgb_array"``.
        """
        twin = DeckOfSpiesEnv(render_mode=without_window(self.render_mode), **self._arguments)
        twin.spec = self.spec
        twin.reset(seed=seed)
        twin._games.seed([0], [check_seed(seed)], forks=True)
        twin._games.deal()
        twin._games.states[:] = self._games.states
        twin._games.show()
        return twin

    # --- Helpers ---

    def _hand(self) -> int:
        return int(self._games.states["hand"][0])

    def _is_legal(self, action: int) -> bool:
        return 0 <= action < self._games.table.num_actions and bool(self.action_masks()[action])

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _picture(self) -> Picture:
        mask = self._games.current_masks()[0]
        return render_picture(self._games.states[0], self.rules, mask, self._last_step)
