"""N games in play: the arrays that all environments adapt, and the kernels over them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.checks import check_count, check_flag
from deck_of_spies_env.compiled import compiling, entry_point, kernel, popcount
from deck_of_spies_env.random_streams import STREAMS, check_streams, seed_streams
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import observations
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import IllegalActionError, action_table
from deck_of_spies_env.solitaire.explanations import why_illegal
from deck_of_spies_env.solitaire.observations import PACKED_WORDS
from deck_of_spies_env.solitaire.positions import (
    Start,
    check_states,
    start_from_argument,
    undealt_states,
)
from deck_of_spies_env.solitaire.rules import RULES, STATE, Rules
from deck_of_spies_env.threads import parts_of, share_out

SNAPSHOT = np.dtype([("state", STATE), ("streams", STREAMS)], align=True)
"""A game with its random streams: what ``get_state`` gives and ``set_state`` takes."""

OBJECTIVES = ("win", "keys", "perfect")
SHAPINGS = ("key_spies",)
ILLEGAL_ACTION_MODES = ("raise", "lose")

SCORING = np.dtype([(name, np.float64) for name in (*OBJECTIVES, *SHAPINGS)])
"""Weights of the parts of the reward."""

SETUP = np.dtype(
    [
        ("rules", RULES),
        ("scoring", SCORING),
        ("observation", np.int64),  # RECALL or TABLE
        ("illegal_loses", np.bool_),  # end a game on an illegal action instead of refusing it
    ],
    align=True,
)
"""What stays the same while games are played."""

MOVE, DEAL, REST = 0, 1, 2
"""What a step does with a game: one action, the next episode, or nothing."""

_MOST_LISTED = 20


@kernel
def _potential(state: Any, scoring: Any) -> float:
    """Potential for shaping (Ng, Harada and Russell, 1999): Key Spies held, 0 at the end."""
    if state.phase == game.OVER:
        return 0.0
    return scoring.key_spies * game.key_spies_held(state) / cards.NUM_KEY_SPIES


@kernel
def final_key_spies(state: Any) -> np.int64:
    """Key Spies that count: none unless the game was played to its end (D8)."""
    if state.outcome == game.WIN or state.outcome == game.LOSS:
        return game.key_spies_held(state)
    return np.int64(0)


@kernel
def _num_turns(state: Any) -> np.int64:
    """Spies dealt with, 0-36."""
    unseen = np.int64(popcount(state.spy_deck)) + (state.spy != game.NO_SPY)
    return cards.NUM_SPIES - unseen


@kernel
def score(state: Any, scoring: Any) -> float:
    """The objective's payment, due at the end and 0 before."""
    if state.phase != game.OVER:
        return 0.0
    held = final_key_spies(state)
    reward = scoring.keys * held / cards.NUM_KEY_SPIES
    if state.outcome == game.WIN:
        reward += scoring.win
    if held == cards.NUM_KEY_SPIES:
        reward += scoring.perfect
    return reward


@kernel
def play_action(record: Any, rules: Any, action: int) -> None:
    """One legal action, named by its index, with all its consequences.

    Args:
        record: of dtype SNAPSHOT, not over; changed in place.
        rules: record of dtype RULES.
        action: index of the table.
    """
    kind = table.action_kind(action, rules)
    chosen = table.action_cards(action, kind, record.state.hand, rules)
    game.play(record.state, record.streams, rules, kind, chosen)


@kernel
def _may(state: Any, setup: Any, legal: Any, action: int) -> bool:
    """Whether an action is taken: it is legal, or its illegality is a loss."""
    if setup.illegal_loses and state.phase != game.OVER:
        return True
    return table.is_among(legal, setup.rules, action)


@kernel
def _take(record: Any, setup: Any, legal: Any, action: int) -> float:
    """Take an action that _may be taken, and give the reward."""
    state = record.state
    before = _potential(state, setup.scoring)
    if setup.illegal_loses and not table.is_among(legal, setup.rules, action):
        state.phase = game.OVER
        state.outcome = game.ILLEGAL_ACTION
    else:
        play_action(record, setup.rules, action)
    return score(state, setup.scoring) + _potential(state, setup.scoring) - before


@entry_point
def step_game(
    records: Any, setup: Any, legal: Any, action: int, observation: Any, mask: Any
) -> tuple[bool, float]:
    """One action in a single game: whether it was taken, and the reward.

    Args:
        records, setup, legal: as in step_games, for one game.
        action: any integer.
        observation, mask: int8 (d,) and (n,), overwritten if the action is taken.
    """
    state, rules = records[0].state, setup[0].rules
    if not _may(state, setup[0], legal[0], action):
        return False, 0.0
    reward = _take(records[0], setup[0], legal[0], action)
    table.write_legal_bits(state, rules, legal[0])
    table.write_action_mask(legal[0], mask)
    observations.write_observation(state, setup[0].observation, observation)
    return True, reward


@entry_point
def may_step(
    records: Any, setup: Any, legal: Any, orders: Any, actions: Any, first: int, stop: int
) -> bool:
    """Whether the games that are to move may take their actions; arguments as in step_games."""
    for i in range(first, stop):
        if orders[i] == MOVE and not _may(records[i].state, setup[0], legal[i], actions[i]):
            return False
    return True


@entry_point
def step_games(
    records: Any,
    setup: Any,
    start: Any,
    deal_hand: bool,
    orders: Any,
    actions: Any,
    legal: Any,
    rewards: Any,
    over: Any,
    first: int,
    stop: int,
) -> int:
    """Do to each game what its order says, after may_step has agreed; returns how many are over.

    Args:
        records: shape (N,), dtype SNAPSHOT; changed in place.
        setup: shape (1,), dtype SETUP.
        start, deal_hand: as in rules.deal.
        orders: int8 (N,) of MOVE, DEAL and REST.
        actions: int64 (N,); only those of games that move are looked at.
        legal: uint64 (N, w), the legal actions as bits; brought up to date.
        rewards, over: float64 and bool (N,), overwritten; the reward is 0 where nothing moved.
        first, stop: the games of this call.
    """
    num_over = 0
    for i in range(first, stop):
        record = records[i]
        rewards[i] = 0.0
        if orders[i] == MOVE:
            rewards[i] = _take(record, setup[0], legal[i], actions[i])
        elif orders[i] == DEAL:
            game.deal(record.state, start[0], deal_hand, record.streams, setup[0].rules)
        over[i] = record.state.phase == game.OVER
        num_over += over[i]
        table.write_legal_bits(record.state, setup[0].rules, legal[i])
    return num_over


@entry_point
def deal_games(records: Any, setup: Any, start: Any, deal_hand: bool, chosen: Any) -> None:
    """Begin the next episode of each chosen game; arguments as in step_games and rules.deal."""
    for i in range(records.shape[0]):
        if chosen[i]:
            record = records[i]
            game.deal(record.state, start[0], deal_hand, record.streams, setup[0].rules)


@entry_point
def judge_actions(records: Any, setup: Any, chosen: Any, legal: Any) -> None:
    """Write the legal actions, uint64 (N, w), of each chosen game."""
    for i in range(records.shape[0]):
        if chosen[i]:
            table.write_legal_bits(records[i].state, setup[0].rules, legal[i])


@entry_point
def show_games(
    records: Any,
    setup: Any,
    legal: Any,
    chosen: Any,
    observation_rows: Any,
    masks: Any,
    first: int,
    stop: int,
) -> None:
    """Write observations, int8 (N, d), and masks, int8 (N, n), of chosen games.

    Args:
        records, setup, legal, first, stop: as in step_games.
        chosen: bool (N,).
        observation_rows, masks: their rows are overwritten.
    """
    # Two loops, as each of them reads nothing that the other may have written to.
    for i in range(first, stop):
        if chosen[i]:
            table.write_action_mask(legal[i], masks[i])
    for i in range(first, stop):
        if chosen[i]:
            observations.write_observation(
                records[i].state, setup[0].observation, observation_rows[i]
            )


@entry_point
def show_packed(
    records: Any,
    setup: Any,
    legal: Any,
    chosen: Any,
    words: Any,
    masks: Any,
    first: int,
    stop: int,
) -> None:
    """Write packed observations and masks, uint64 (N, 6) and (N, w); as show_games."""
    for i in range(first, stop):
        if chosen[i]:
            observations.write_packed(records[i].state, words[i])
            for word in range(legal.shape[1]):
                masks[i, word] = legal[i, word]


@entry_point
def judge_games(records: Any, outcomes: Any, key_spies: Any, turns: Any) -> None:
    """Write how games ended, 0 for those that go on.

    Args:
        records: shape (N,), dtype SNAPSHOT.
        outcomes: int8 (N,), outcome codes.
        key_spies: int64 (N,), those that count.
        turns: int64 (N,), spies dealt with.
    """
    for i in range(records.shape[0]):
        state = records[i].state
        outcomes[i] = state.outcome
        over = state.phase == game.OVER
        key_spies[i] = final_key_spies(state) if over else 0
        turns[i] = _num_turns(state) if over else 0


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


@entry_point
def show_states(states: Any, rules: Any, legal: Any, rows: Any, masks: Any) -> None:
    """Write ``recall`` observations, int8 (N, d), and masks, int8 (N, n), of N positions.

    Args:
        states: shape (N,), dtype STATE.
        rules: shape (1,), dtype RULES.
        legal: uint64 (w,), overwritten.
        rows, masks: overwritten.
    """
    for i in range(states.shape[0]):
        observations.write_observation(states[i], observations.RECALL, rows[i])
        table.write_legal_bits(states[i], rules[0], legal)
        table.write_action_mask(legal, masks[i])


@entry_point
def unpack_words(words: Any, rows: Any) -> None:
    """Packed observations, uint64 (N, 6), to int8 (N, d)."""
    state = np.zeros(1, STATE)[0]
    for i in range(words.shape[0]):
        observations.read_packed(words[i], state)
        observations.write_observation(state, observations.RECALL, rows[i])


@entry_point
def unpack_legal(legal: Any, masks: Any) -> None:
    """Masks of bits, uint64 (N, w), to masks of bytes, int8 (N, n)."""
    for i in range(legal.shape[0]):
        table.write_action_mask(legal[i], masks[i])


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


def recall_of_states(
    states: npt.NDArray[Any], rules: Rules
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """What a player with perfect memory sees in given positions: the inverse of states_from_recall.

    Args:
        states: shape (N,), dtype STATE.
        rules: the rule set.

    Returns:
        ``recall`` observations, int8 (N, d), and action masks, int8 (N, n).
    """
    actions = action_table(rules.hand_size)
    width = len(observations.observation_high("recall", rules.hand_size))
    rows = np.empty((len(states), width), dtype=np.int8)
    masks = np.empty((len(states), actions.num_actions), dtype=np.int8)
    legal = np.empty(actions.num_words, dtype=np.uint64)
    show_states(np.ascontiguousarray(states), rules.record, legal, rows, masks)
    return rows, masks


def unpack_observations(words: npt.NDArray[np.uint64], hand_size: int = 5) -> npt.NDArray[np.int8]:
    """``recall`` observations from packed ones.

    Args:
        words: uint64 (N, 6).
        hand_size: of the rule set.

    Returns:
        int8 (N, d).

    Raises:
        ValueError: words of another shape or dtype, or a hand size out of range.
    """
    hand_size = Rules(hand_size=hand_size).hand_size
    _check_words(words, len(PACKED_WORDS))
    width = len(observations.observation_high("recall", hand_size))
    rows = np.empty((len(words), width), dtype=np.int8)
    unpack_words(np.ascontiguousarray(words), rows)
    return rows


def unpack_masks(words: npt.NDArray[np.uint64], hand_size: int = 5) -> npt.NDArray[np.int8]:
    """Action masks from packed ones: action a is bit a % 64 of word a // 64.

    Args:
        words: uint64 (N, w), 2 words for a hand of 5.
        hand_size: of the rule set.

    Returns:
        int8 (N, n).

    Raises:
        ValueError: words of another shape or dtype, or a hand size out of range.
    """
    actions = action_table(Rules(hand_size=hand_size).hand_size)
    _check_words(words, actions.num_words)
    masks = np.empty((len(words), actions.num_actions), dtype=np.int8)
    unpack_legal(np.ascontiguousarray(words), masks)
    return masks


def _check_words(words: npt.NDArray[Any], width: int) -> None:
    if not isinstance(words, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"expected uint64 words of shape (N, {width}), got {words!r}")
    if words.dtype != np.uint64 or words.shape[1:] != (width,):
        raise ValueError(
            f"expected uint64 words of shape (N, {width}), got {words.dtype} of {words.shape}"
        )


@cache
def compile_engine() -> None:
    """Compile or load the entry points of every environment, once and safe among processes."""
    with compiling():
        games = Games(1)
        games.seed([0], [0])
        games.deal()
        games.step(games.current_masks().argmax(axis=1))
        games.endings()
        games.restore(games.snapshots())
        recall_of_states(states_from_recall(games.observations), games.rules)
        games.deal()
        games.step_single(int(games.masks[0].argmax()))
        apply_plays(games.states.copy(), np.full(1, game.KIND_PASS), np.zeros(1, dtype=np.uint64))


@cache
def compile_packing() -> None:
    """Likewise for packed observations."""
    with compiling():
        games = Games(1, packed=True)
        games.show()
        unpack_observations(games.observations)


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
        packed: observations and masks as 64-bit words, for ``"recall"`` only.
        num_threads: threads that share the games; results are the same for any number.

    Attributes:
        records: shape (N,), dtype SNAPSHOT.
        observations: int8 (N, d), or packed uint64 (N, 6); written to in place unless renewed.
        masks: int8 (N, n), or packed uint64 (N, w), likewise.
        rewards: float64 (N,) of the last step, likewise.
        terminated: bool (N,), which games are over after the last step, likewise.

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
        packed: bool = False,
        num_threads: int = 1,
    ) -> None:
        num_games = check_count("num_games", num_games)
        num_threads = check_count("num_threads", num_threads)
        if illegal_action not in ILLEGAL_ACTION_MODES:
            raise ValueError(
                f"illegal_action must be one of {', '.join(ILLEGAL_ACTION_MODES)}, "
                f"got {illegal_action!r}"
            )
        self.rules = Rules.of(rules)
        self.table = action_table(self.rules.hand_size)
        self.start: Start = start_from_argument(start, self.rules)
        self.observation_high = observations.observation_high(observation, self.rules.hand_size)
        packed = check_flag("packed", packed)
        if packed and observation != "recall":
            raise ValueError(f"only recall observations come packed, not {observation!r}")
        self.packed = packed
        self._setup: npt.NDArray[Any] = np.zeros(1, dtype=SETUP)
        self._setup["rules"] = self.rules.record
        self._setup["scoring"] = scoring_of(objective, shaping)
        self._setup["observation"] = observations.OBSERVATIONS.index(observation)
        self._setup["illegal_loses"] = illegal_action == "lose"
        self.records: npt.NDArray[Any] = np.zeros(num_games, dtype=SNAPSHOT)
        self.records["state"] = undealt_states(num_games)
        self._widths = len(self.observation_high), self.table.num_actions
        self._dtype: Any = np.int8
        if packed:
            self._widths = len(PACKED_WORDS), self.table.num_words
            self._dtype = np.uint64
        self.renew()
        self.observations[:] = 0
        self.masks[:] = 0
        # The legal actions as bits, kept apart from the masks that users get and may write to.
        self._legal = np.zeros((num_games, self.table.num_words), dtype=np.uint64)
        self._stale = False  # whether they have yet to be found for games that were restored
        self._all_move = np.full(num_games, MOVE, dtype=np.int8)
        self._everyone = np.ones(num_games, dtype=np.bool_)
        self._parts = parts_of(num_games, num_threads)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def states(self) -> npt.NDArray[Any]:
        """The games without their streams: a view of shape (N,) and dtype STATE."""
        return self.records["state"]

    @property
    def streams(self) -> npt.NDArray[Any]:
        """The games' random streams: a view of shape (N,) and dtype STREAMS."""
        return self.records["streams"]

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
        chosen = self._everyone if chosen is None else chosen
        deal_games(self.records, self._setup, start.record, start.deal_hand, chosen)
        self.show(chosen)

    def renew(self) -> None:
        """Take new arrays for all that a step writes, so that the old ones may be kept."""
        num_games, (width, mask_width) = len(self.records), self._widths
        self.observations: npt.NDArray[Any] = np.empty((num_games, width), dtype=self._dtype)
        self.masks: npt.NDArray[Any] = np.empty((num_games, mask_width), dtype=self._dtype)
        self.rewards = np.empty(num_games, dtype=np.float64)
        self.terminated = np.empty(num_games, dtype=np.bool_)

    def step(
        self,
        actions: npt.NDArray[np.int64],
        moving: npt.NDArray[np.bool_] | None = None,
        *,
        dealing: npt.NDArray[np.bool_] | None = None,
        renew: bool = False,
    ) -> int:
        """One action in each game; ``observations``, ``masks``, ``rewards``, ``terminated`` follow.

        Args:
            actions: int64 (N,).
            moving: bool (N,), which games move, the others rest; all by default.
            dealing: bool (N,), which games begin their next episode instead.
            renew: write into new arrays, for those who hand them out.

        Returns:
            The number of games that are over now.

        Raises:
            IllegalActionError: with the game indices if there are several games; nothing changed.
        """
        orders = self._all_move
        if dealing is not None:
            orders = dealing.view(np.int8)  # True is DEAL
        elif moving is not None:
            orders = np.where(moving, np.int8(MOVE), np.int8(REST))
        self._refresh()
        records, setup, start, legal = self.records, self._setup, self.start, self._legal

        def may(first: int, stop: int) -> bool:
            return may_step(records, setup, legal, orders, actions, first, stop)

        if not all(share_out(may, self._parts)):
            raise self._illegal_action_error(actions, orders == MOVE)
        if renew:
            self.renew()

        def step(first: int, stop: int) -> int:
            num_over = step_games(
                records,
                setup,
                start.record,
                start.deal_hand,
                orders,
                actions,
                legal,
                self.rewards,
                self.terminated,
                first,
                stop,
            )
            self._show(self._everyone, first, stop)
            return num_over

        return sum(share_out(step, self._parts))

    def step_single(
        self, action: int
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], float, bool]:
        """One action in the only game, written into new arrays.

        Returns:
            Observation int8 (d,), mask int8 (n,), the reward, and whether the game is over.

        Raises:
            IllegalActionError: nothing changed.
        """
        observation = np.empty(len(self.observation_high), np.int8)
        mask = np.empty(self.table.num_actions, np.int8)
        self._refresh()
        records = self.records
        taken, reward = step_game(records, self._setup, self._legal, action, observation, mask)
        if not taken:
            raise IllegalActionError(why_illegal(self.states[0], self.rules, action))
        return observation, mask, reward, bool(records["state"]["phase"][0] == game.OVER)

    @property
    def seeded(self) -> npt.NDArray[np.bool_]:
        """bool (N,): which games have random streams."""
        return self.streams["gamma"] != 0

    def show(self, chosen: npt.NDArray[np.bool_] | None = None) -> None:
        """Bring observations and masks (all by default) up to date after ``records`` has changed.

        Whoever writes to ``records``, ``states`` or ``streams`` must call this before the next
        step.
        """
        if chosen is None:
            chosen, self._stale = self._everyone, True
        elif not self._stale:
            judge_actions(self.records, self._setup, chosen, self._legal)
        self._refresh()
        self._show(chosen, 0, len(self))

    def _refresh(self) -> None:
        """Find the legal actions of all games if they are not known."""
        if self._stale:
            judge_actions(self.records, self._setup, self._everyone, self._legal)
            self._stale = False

    def _show(self, chosen: npt.NDArray[np.bool_], first: int, stop: int) -> None:
        show = show_packed if self.packed else show_games
        arrays = self.observations, self.masks
        show(self.records, self._setup, self._legal, chosen, *arrays, first, stop)

    def current_masks(self) -> npt.NDArray[np.int8]:
        """The masks as int8 (N, n), whatever has happened to ``masks``."""
        self._refresh()
        return unpack_masks(self._legal, self.rules.hand_size)

    def endings(self) -> dict[str, npt.NDArray[Any]]:
        """How the games ended: the keys of the final info, with 0 or None for games that go on.

        Returns:
            ``outcome`` (object: str), ``is_success`` (bool), ``key_spies`` and ``turns`` (int64),
            each of shape (N,).
        """
        num_games = len(self.records)
        outcomes = np.empty(num_games, dtype=np.int8)
        key_spies = np.empty(num_games, dtype=np.int64)
        turns = np.empty(num_games, dtype=np.int64)
        judge_games(self.records, outcomes, key_spies, turns)
        return {
            "outcome": _OUTCOME_NAMES[outcomes],
            "is_success": outcomes == game.WIN,
            "key_spies": key_spies,
            "turns": turns,
        }

    def snapshots(self) -> npt.NDArray[Any]:
        """All games with their streams: a copy of shape (N,) and dtype SNAPSHOT."""
        return _words(self.records).copy().view(SNAPSHOT)

    def snapshots_of(self, index: int) -> npt.NDArray[Any]:
        """One game with its streams: a copy of shape () and dtype SNAPSHOT."""
        return self.records[index : index + 1].copy().reshape(())

    def restore(self, snapshots: npt.NDArray[Any], *, show: bool = True) -> None:
        """Put all games back to snapshots of shape (N,).

        Args:
            snapshots: of snapshots().
            show: bring observations and masks up to date.

        Raises:
            ValueError: wrong dtype or shape, or not a position of these rules; nothing changed.
        """
        # Users may hand over any object.
        if getattr(snapshots, "dtype", None) != SNAPSHOT or snapshots.shape != (len(self),):
            raise ValueError(
                f"a state must come from get_state() of an environment of {len(self)} games"
            )
        snapshots = np.ascontiguousarray(snapshots)
        check_snapshots(snapshots, self.rules)
        _words(self.records)[:] = _words(snapshots)
        self._stale = True
        if show:
            self.renew()
            self.show()

    def _illegal_action_error(
        self, actions: npt.NDArray[np.int64], moving: npt.NDArray[np.bool_]
    ) -> IllegalActionError:
        in_range = (actions >= 0) & (actions < self.table.num_actions)
        legal = in_range & (
            self.current_masks()[np.arange(len(self)), np.where(in_range, actions, 0)] != 0
        )
        loses = bool(self._setup["illegal_loses"][0])
        illegal = np.flatnonzero(moving & ~legal & (self.over | (not loses)))
        first = int(illegal[0])
        why = why_illegal(self.states[first], self.rules, int(actions[first]))
        if len(self) == 1:
            return IllegalActionError(why)
        listed = ", ".join(str(index) for index in illegal[:_MOST_LISTED])
        more = f" and {len(illegal) - _MOST_LISTED} more" if len(illegal) > _MOST_LISTED else ""
        return IllegalActionError(f"illegal actions in envs {listed}{more}; env {first}: {why}")


def check_snapshots(snapshots: npt.NDArray[Any], rules: Rules) -> None:
    """Check games with their streams; see check_states.

    Raises:
        ValueError: a state that is no position, or one that has no random streams to go on with.
    """
    check_states(snapshots["state"], rules)
    check_streams(snapshots["streams"], snapshots["state"]["phase"] != game.OVER)


def _words(records: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Records of dtype SNAPSHOT as 64-bit words: NumPy copies these ten times as fast as fields."""
    return records.view(np.uint64)


_OUTCOME_NAMES = np.array([name or None for name in game.OUTCOMES], dtype=object)


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
