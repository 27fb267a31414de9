"""N games in play: the arrays that both environments adapt, and the kernels over them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import compiling, entry_point, kernel, popcount
from deck_of_spies_env.random_streams import STREAMS, seed_streams
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import observations
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import IllegalActionError, action_table
from deck_of_spies_env.solitaire.explanations import why_illegal
from deck_of_spies_env.solitaire.positions import (
    Start,
    check_states,
    start_from_argument,
    undealt_states,
)
from deck_of_spies_env.solitaire.rules import STATE, Rules

SNAPSHOT = np.dtype([("state", STATE), ("streams", STREAMS)], align=True)
"""A game with its random streams: what ``get_state`` gives and ``set_state`` takes."""

OBJECTIVES = ("win", "keys", "perfect")
SHAPINGS = ("key_spies",)
ILLEGAL_ACTION_MODES = ("raise", "lose")

SCORING = np.dtype([(name, np.float64) for name in (*OBJECTIVES, *SHAPINGS)])
"""Weights of the parts of the reward."""

_MOST_LISTED = 20


@kernel
def _potential(state: Any, scoring: Any) -> float:
    """Potential for shaping (Ng, Harada and Russell, 1999): Key Spies held, 0 at the end."""
    if state.phase == game.OVER:
        return 0.0
    return scoring.key_spies * game.key_spies_held(state) / cards.NUM_KEY_SPIES


@kernel
def _final_key_spies(state: Any) -> np.int64:
    """Key Spies that count: none unless the game was played to its end (D8)."""
    if state.outcome == game.WIN or state.outcome == game.LOSS:
        return game.key_spies_held(state)
    return np.int64(0)


@kernel
def _score(state: Any, scoring: Any) -> float:
    """The objective's payment, due at the end and 0 before."""
    held = _final_key_spies(state)
    reward = scoring.keys * held / cards.NUM_KEY_SPIES
    if state.outcome == game.WIN:
        reward += scoring.win
    if held == cards.NUM_KEY_SPIES:
        reward += scoring.perfect
    return reward


@entry_point
def step_games(
    states: Any,
    streams: Any,
    rules: Any,
    retire_subsets: Any,
    scoring: Any,
    observation: int,
    illegal_loses: bool,
    actions: Any,
    moving: Any,
    observation_rows: Any,
    masks: Any,
    rewards: Any,
) -> bool:
    """One action in each game that moves; False, and nothing changed, if one of them may not.

    Args:
        states, streams: shape (N,), dtypes STATE and STREAMS; changed in place.
        rules, scoring: shape (1,), dtypes RULES and SCORING.
        retire_subsets: of the action table.
        observation: RECALL or TABLE.
        illegal_loses: end a game on an illegal action instead of refusing the batch.
        actions: int64 (N,); those of games that do not move are not looked at.
        moving: bool (N,).
        observation_rows, masks, rewards: int8 (N, d), int8 (N, n), float64 (N,); the rows of games
            that move are overwritten.
    """
    for i in range(states.shape[0]):
        refusable = moving[i] and (not illegal_loses or states[i].phase == game.OVER)
        if refusable and not table.is_legal(states[i], rules[0], retire_subsets, actions[i]):
            return False
    num_subsets = (1 << rules[0].hand_size) - 1
    for i in range(states.shape[0]):
        if not moving[i]:
            continue
        state = states[i]
        potential = _potential(state, scoring[0])
        if not illegal_loses or table.is_legal(state, rules[0], retire_subsets, actions[i]):
            kind = table.action_kind(actions[i], num_subsets, retire_subsets.shape[0])
            chosen = table.action_cards(actions[i], kind, state.hand, num_subsets, retire_subsets)
            game.play(state, streams[i], rules[0], kind, chosen)
        else:
            state.phase = game.OVER
            state.outcome = game.ILLEGAL_ACTION
        rewards[i] = _score(state, scoring[0]) + _potential(state, scoring[0]) - potential
        observations.write_observation(state, rules[0], observation, observation_rows[i])
        table.write_action_mask(state, rules[0], retire_subsets, masks[i])
    return True


@entry_point
def deal_games(
    states: Any,
    streams: Any,
    rules: Any,
    retire_subsets: Any,
    start: Any,
    deal_hand: bool,
    observation: int,
    chosen: Any,
    observation_rows: Any,
    masks: Any,
) -> None:
    """Begin the next episode of each chosen game; arguments as in step_games and rules.deal."""
    for i in range(states.shape[0]):
        if chosen[i]:
            game.deal(states[i], start[0], deal_hand, streams[i], rules[0])
            observations.write_observation(states[i], rules[0], observation, observation_rows[i])
            table.write_action_mask(states[i], rules[0], retire_subsets, masks[i])


@entry_point
def show_games(
    states: Any,
    rules: Any,
    retire_subsets: Any,
    observation: int,
    observation_rows: Any,
    masks: Any,
) -> None:
    """Write observations and masks of all games; arguments as in step_games."""
    for i in range(states.shape[0]):
        observations.write_observation(states[i], rules[0], observation, observation_rows[i])
        table.write_action_mask(states[i], rules[0], retire_subsets, masks[i])


@entry_point
def mask_games(states: Any, rules: Any, retire_subsets: Any, masks: Any) -> None:
    """Write the masks of all games; arguments as in step_games."""
    for i in range(states.shape[0]):
        table.write_action_mask(states[i], rules[0], retire_subsets, masks[i])


@entry_point
def judge_games(states: Any, key_spies: Any, turns: Any) -> None:
    """Write the Key Spies that count and the spies dealt with; int64 arrays of shape (N,)."""
    for i in range(states.shape[0]):
        state = states[i]
        key_spies[i] = _final_key_spies(state)
        unseen = np.int64(popcount(state.spy_deck)) + (state.spy != game.NO_SPY)
        turns[i] = cards.NUM_SPIES - unseen


@entry_point
def apply_plays(states: Any, kinds: Any, chosen: Any) -> None:
    """Make each play up to the first chance: rules.apply_play over arrays of shape (N,)."""
    for i in range(states.shape[0]):
        game.apply_play(states[i], kinds[i], chosen[i])


@entry_point
def read_recalls(rows: Any, states: Any) -> None:
    """Rebuild N positions from int8 ``recall`` observations of shape (N, d), any hand size."""
    for i in range(states.shape[0]):
        observations.read_recall(rows[i], states[i])


def states_from_recall(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The positions that ``recall`` observations hold.

    Args:
        rows: shape (N, d), any numeric dtype.

    Returns:
        Shape (N,), dtype STATE.
    """
    states = np.zeros(len(rows), dtype=STATE)
    read_recalls(np.ascontiguousarray(rows, dtype=np.int8), states)
    return states


@cache
def compile_engine() -> None:
    """Compile or load all entry points, once per process and safe among processes."""
    with compiling():
        games = Games(1)
        games.seed([0], [0])
        games.deal()
        games.step(np.flatnonzero(games.masks[0])[:1])
        games.show()
        games.current_masks()
        games.endings(np.array([0]))
        apply_plays(games.states.copy(), np.full(1, game.KIND_PASS), np.zeros(1, dtype=np.uint64))
        states_from_recall(games.observations)


class Games:
    """N games with their streams, observations and masks.

    Args:
        num_games: N.
        objective: ``"win"``, ``"keys"``, ``"perfect"``, or weights by these names.
        observation: ``"recall"`` or ``"table"``.
        rules: a rule set, a mapping of its fields, or None.
        illegal_action: ``"raise"`` or ``"lose"``.
        start: a mapping of zones where every episode begins, or None.
        shaping: None, or ``"key_spies"`` to add potential-based shaping.

    Attributes:
        states, streams: shape (N,), dtypes STATE and STREAMS.
        observations: int8 (N, d), written to in place unless renewed.
        masks: int8 (N, n), likewise.
        rewards: float64 (N,) of the last step.

    Raises:
        ValueError: any argument out of what is allowed; the message names it.
    """

    def __init__(
        self,
        num_games: int,
        *,
        objective: str | Mapping[str, float] = "win",
        observation: str = "recall",
        rules: Rules | Mapping[str, Any] | None = None,
        illegal_action: str = "raise",
        start: Mapping[str, Any] | None = None,
        shaping: str | None = None,
    ) -> None:
        check_count("num_games", num_games)
        if illegal_action not in ILLEGAL_ACTION_MODES:
            raise ValueError(
                f"illegal_action must be one of {', '.join(ILLEGAL_ACTION_MODES)}, "
                f"got {illegal_action!r}"
            )
        self.rules = Rules.of(rules)
        self.table = action_table(self.rules.hand_size)
        self.start: Start = start_from_argument(start, self.rules)
        self.scoring = scoring_of(objective, shaping)
        self.illegal_loses = illegal_action == "lose"
        self.observation_high = observations.observation_high(observation, self.rules.hand_size)
        self._observation = observations.OBSERVATIONS.index(observation)
        self.states: npt.NDArray[Any] = undealt_states(num_games)
        self.streams: npt.NDArray[Any] = np.zeros(num_games, dtype=STREAMS)
        self.observations = np.zeros((num_games, len(self.observation_high)), dtype=np.int8)
        self.masks = np.zeros((num_games, self.table.num_actions), dtype=np.int8)
        self.rewards = np.zeros(num_games, dtype=np.float64)
        self._all = np.ones(num_games, dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """bool (N,): which games have ended."""
        return self.states["phase"] == game.OVER

    def seed(self, indices: Sequence[int], seeds: Sequence[int], *, forks: bool = False) -> None:
        """Give games fresh streams, see seed_streams; their next deal is episode 0 of the seed."""
        self.streams[list(indices)] = seed_streams(seeds, forks=forks)

    def deal(self, chosen: npt.NDArray[np.bool_] | None = None, start: Start | None = None) -> None:
        """Begin the next episode of the chosen games (all by default)."""
        start = self.start if start is None else start
        deal_games(
            self.states,
            self.streams,
            self.rules.record,
            self.table.retire_subsets,
            start.record,
            start.deal_hand,
            self._observation,
            self._all if chosen is None else chosen,
            self.observations,
            self.masks,
        )

    def renew(self) -> None:
        """Take new arrays for observations and masks, not yet written, so the old may be kept."""
        self.observations = np.empty_like(self.observations)
        self.masks = np.empty_like(self.masks)

    def step(
        self,
        actions: npt.NDArray[np.int64],
        moving: npt.NDArray[np.bool_] | None = None,
        *,
        renew: bool = False,
    ) -> None:
        """One action in each moving game (all by default); ``rewards`` and the rest follow.

        Args:
            actions: int64 (N,).
            moving: bool (N,).
            renew: write into new arrays for observations and masks, for those who hand them out;
                the rows of games that do not move are then for the caller to write.

        Raises:
            IllegalActionError: with the game indices if there are several games; nothing changed.
        """
        moving = self._all if moving is None else moving
        kept = self.observations, self.masks
        if renew:
            self.renew()
        done = step_games(
            self.states,
            self.streams,
            self.rules.record,
            self.table.retire_subsets,
            self.scoring,
            self._observation,
            self.illegal_loses,
            actions,
            moving,
            self.observations,
            self.masks,
            self.rewards,
        )
        if not done:
            self.observations, self.masks = kept
            raise self._illegal_action_error(actions, moving)

    def show(self) -> None:
        """Bring observations and masks up to date after ``states`` was written to."""
        show_games(
            self.states,
            self.rules.record,
            self.table.retire_subsets,
            self._observation,
            self.observations,
            self.masks,
        )

    def current_masks(self) -> npt.NDArray[np.int8]:
        """Masks made anew from the states, int8 (N, n), whatever has happened to ``masks``."""
        masks = np.empty_like(self.masks)
        mask_games(self.states, self.rules.record, self.table.retire_subsets, masks)
        return masks

    def endings(self, indices: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
        """How the given games ended: the keys of the final info, one entry per game.

        Returns:
            ``outcome`` (object: str), ``is_success`` (bool), ``key_spies`` and ``turns`` (int64).
        """
        states = self.states[indices]
        key_spies = np.zeros(len(states), dtype=np.int64)
        turns = np.zeros(len(states), dtype=np.int64)
        judge_games(states, key_spies, turns)
        return {
            "outcome": _OUTCOME_NAMES[states["outcome"]],
            "is_success": states["outcome"] == game.WIN,
            "key_spies": key_spies,
            "turns": turns,
        }

    def snapshots(self) -> npt.NDArray[Any]:
        """All games with their streams: a copy of shape (N,) and dtype SNAPSHOT."""
        snapshots = np.zeros(len(self), dtype=SNAPSHOT)
        snapshots["state"] = self.states
        snapshots["streams"] = self.streams
        return snapshots

    def snapshots_of(self, index: int) -> npt.NDArray[Any]:
        """One game with its streams: a copy of shape () and dtype SNAPSHOT."""
        snapshot = np.zeros((), dtype=SNAPSHOT)
        snapshot["state"] = self.states[index]
        snapshot["streams"] = self.streams[index]
        return snapshot

    def restore(self, snapshots: npt.NDArray[Any]) -> None:
        """Put all games back to snapshots of shape (N,).

        Raises:
            ValueError: wrong dtype or shape, or not a position of these rules; nothing changed.
        """
        # Users may hand over any object.
        if getattr(snapshots, "dtype", None) != SNAPSHOT or snapshots.shape != (len(self),):
            raise ValueError(
                f"a state must come from get_state() of an environment of {len(self)} games"
            )
        check_states(snapshots["state"], self.rules)
        self.states[:] = snapshots["state"]
        self.streams[:] = snapshots["streams"]
        self.renew()
        self.show()

    def _illegal_action_error(
        self, actions: npt.NDArray[np.int64], moving: npt.NDArray[np.bool_]
    ) -> IllegalActionError:
        in_range = (actions >= 0) & (actions < self.table.num_actions)
        legal = in_range & (
            self.current_masks()[np.arange(len(self)), np.where(in_range, actions, 0)] != 0
        )
        illegal = np.flatnonzero(moving & ~legal & (self.over | (not self.illegal_loses)))
        first = int(illegal[0])
        why = why_illegal(self.states[first], self.rules, int(actions[first]))
        if len(self) == 1:
            return IllegalActionError(why)
        listed = ", ".join(str(index) for index in illegal[:_MOST_LISTED])
        more = f" and {len(illegal) - _MOST_LISTED} more" if len(illegal) > _MOST_LISTED else ""
        return IllegalActionError(f"illegal actions in envs {listed}{more}; env {first}: {why}")


_OUTCOME_NAMES = np.array(game.OUTCOMES, dtype=object)


def check_count(name: str, number: object) -> None:
    """Raise ValueError unless a number of games is a whole number of at least 1."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}")


def scoring_of(objective: str | Mapping[str, float], shaping: str | None) -> npt.NDArray[Any]:
    """Weights of the parts of the reward.

    Args:
        objective: a name of OBJECTIVES, or weights by these names.
        shaping: a name of SHAPINGS, or None.

    Returns:
        Shape (1,), dtype SCORING.

    Raises:
        ValueError: an unknown name, or a weight that is no number.
    """
    weights = {objective: 1.0} if isinstance(objective, str) else objective
    # Config files can hold anything here.
    if not isinstance(weights, Mapping) or not weights:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(
            f"objective must be one of {', '.join(OBJECTIVES)} or a mapping of weights over them, "
            f"got {objective!r}"
        )
    scoring = np.zeros(1, dtype=SCORING)
    for name, weight in weights.items():
        if name not in OBJECTIVES:
            raise ValueError(f"unknown objective {name!r}; there are {', '.join(OBJECTIVES)}")
        number: Any = weight
        if isinstance(number, bool) or not isinstance(number, int | float | np.number):
            raise ValueError(f"objective: the weight of {name} must be a number, got {number!r}")
        if not math.isfinite(float(number)):
            raise ValueError(f"objective: the weight of {name} must be a number, got {weight!r}")
        scoring[name] = weight
    if shaping is not None:
        if shaping not in SHAPINGS:
            raise ValueError(f"unknown shaping {shaping!r}; there are {', '.join(SHAPINGS)}")
        scoring[shaping] = 1.0
    return scoring
