"""N tables in play: the arrays that all environments adapt, and the kernels over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.checks import check_count
from deck_of_spies_env.compiled import compiling, entry_point, kernel
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.random_streams import check_streams, seed_streams
from deck_of_spies_env.skirmish import actions as table
from deck_of_spies_env.skirmish import observations
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS, WAIT, why_illegal
from deck_of_spies_env.skirmish.positions import check_states, undealt_states
from deck_of_spies_env.skirmish.rules import RULES, STATE, STREAMS, Rules
from deck_of_spies_env.threads import parts_of, share_out

SNAPSHOT = np.dtype([("state", STATE), ("streams", STREAMS)], align=True)
"""A game with its random streams: what ``get_state`` gives and ``set_state`` takes."""

ILLEGAL_ACTION_MODES = ("raise", "lose")

NO_OUTCOME, WIN, SHARED, LOSS, ILLEGAL_ACTION = 0, 1, 2, 3, 4
OUTCOMES = ("", "win", "shared", "loss", "illegal_action")
"""Names of the outcome codes; the first stands for a game that goes on."""

_OUTCOME_NAMES = np.array([name or None for name in OUTCOMES], dtype=object)

SETUP = np.dtype(
    [
        ("rules", RULES),
        ("illegal_loses", np.bool_),  # end a game on an illegal action instead of refusing it
    ],
    align=True,
)
"""What stays the same while games are played."""

MOVE, DEAL, REST = 0, 1, 2
"""What a step does with a table: the actions of all seats, the next episode, or nothing."""

_MOST_LISTED = 20


@kernel
def offending(state: Any, rules: Any, actions: Any) -> np.uint8:
    """Bit mask of the seats whose actions are illegal."""
    seats = np.uint8(0)
    for seat in range(rules.num_players):
        illegal = not table.is_legal(state, seat, np.int64(actions[seat]))
        seats |= np.uint8(illegal) << np.uint8(seat)
    return seats


@entry_point
def may_step(
    records: Any, setup: Any, seats: Any, orders: Any, actions: Any, first: int, stop: int
) -> bool:
    """Whether the tables that are to move may; arguments as in step_games."""
    rules = game.values_of(setup[0].rules, len(seats))
    for i in range(first, stop):
        if orders[i] == MOVE:
            state = records[i].state
            lenient = setup[0].illegal_loses and state.phase != game.OVER
            if not lenient and offending(state, rules, actions[i]) != 0:
                return False
    return True


@entry_point
def step_games(
    records: Any,
    setup: Any,
    seats: Any,
    orders: Any,
    actions: Any,
    rewards: Any,
    over: Any,
    first: int,
    stop: int,
) -> int:
    """Do to each table what its order says, after may_step has agreed; returns how many are over.

    Args:
        records: shape (N,), dtype SNAPSHOT; changed in place.
        setup: shape (1,), dtype SETUP.
        seats: all n of them as a tuple: of its length, the compiler makes code for just that many.
        orders: int8 (N,) of MOVE, DEAL and REST.
        actions: int64 (N, n); only those of tables that move are looked at.
        rewards, over: float64 (N, n) and bool (N,), overwritten; rewards are the payoffs (S12) of
            tables whose game ends by this step, and 0 elsewhere.
        first, stop: the tables of this call.
    """
    rules = game.values_of(setup[0].rules, len(seats))
    num_over = 0
    for i in range(first, stop):
        record = records[i]
        state = record.state
        rewards[i, :] = 0.0
        if orders[i] == MOVE:
            offenders = np.uint8(0)
            if setup[0].illegal_loses:
                offenders = offending(state, rules, actions[i])
            if offenders != 0:
                game.forfeit(state, offenders)
            else:
                game.play(state, record.streams, rules, actions[i])
            if state.phase == game.OVER:
                game.write_payoffs(state, rules, rewards[i])
        elif orders[i] == DEAL:
            game.deal(state, record.streams, rules)
        over[i] = state.phase == game.OVER
        num_over += over[i]
    return num_over


@entry_point
def deal_games(records: Any, setup: Any, chosen: Any) -> None:
    """Begin the next episode of each chosen table, bool (N,)."""
    for i in range(records.shape[0]):
        if chosen[i]:
            game.deal(records[i].state, records[i].streams, setup[0].rules)


@entry_point
def show_games(
    records: Any,
    setup: Any,
    seats: Any,
    chosen: Any,
    rows: Any,
    masks: Any,
    first: int,
    stop: int,
) -> None:
    """Write observations, int8 (N, n, d), and masks, int8 (N, n, 15), of chosen tables.

    Args:
        records, setup, seats, first, stop: as in step_games.
        chosen: bool (N,).
        rows, masks: their rows are overwritten.
    """
    rules = game.values_of(setup[0].rules, len(seats))
    for i in range(first, stop):
        if chosen[i]:
            state = records[i].state
            observations.write_observations(state, rules, rows[i])
            for seat in range(rules.num_players):
                table.write_action_mask(state, seat, masks[i, seat])


@kernel
def _margin(totals: Any, seat: int) -> np.int64:
    """A seat's total less the best of the others', int64 (n,)."""
    best = np.int64(-1)
    for other in range(len(totals)):
        if other != seat:
            best = max(best, totals[other])
    return totals[seat] - best


@entry_point
def judge_games(
    records: Any,
    setup: Any,
    ended: Any,
    outcomes: Any,
    totals: Any,
    margins: Any,
    rounds: Any,
    truncated: Any,
) -> int:
    """Write how games ended; rows of those that go on are left as they are.

    Args:
        records: shape (N,), dtype SNAPSHOT.
        setup: shape (1,), dtype SETUP.
        ended: int64 (N,), for the indices of the games that are over.
        outcomes: int8 (N, n), codes of OUTCOMES.
        totals: int64 (N, n), what each seat holds; 0 for seats that do not count (S9).
        margins: int64 (N, n), points more than the best of the others.
        rounds: int64 (N, n), played.
        truncated: bool (N,), which games the round limit cut off (S10).

    Returns:
        How many games are over.
    """
    rules = setup[0].rules
    num_ended = 0
    for i in range(records.shape[0]):
        state = records[i].state
        if state.phase != game.OVER:
            continue
        ended[num_ended] = i
        num_ended += 1
        truncated[i] = state.offenders == 0 and game.eliminated(state, rules) == 0
        counting, best = game.scored(state, rules), game.winners(state, rules)
        winning = WIN if game.is_single(best) else SHARED
        for seat in range(rules.num_players):
            bit = np.uint8(1 << seat)
            if counting & bit:
                totals[i, seat] = game.holdings(state, seat)
            outcomes[i, seat] = winning if best & bit else LOSS
            if state.offenders & bit:
                outcomes[i, seat] = ILLEGAL_ACTION
            rounds[i, seat] = state.rounds
        for seat in range(rules.num_players):
            margins[i, seat] = _margin(totals[i], seat)
    return num_ended


@entry_point
def write_margins(records: Any, rules: Any, margins: Any) -> None:
    """Write the points that each seat holds, less the mean of the others'.

    Args:
        records: shape (N,), dtype SNAPSHOT.
        rules: shape (1,), dtype RULES.
        margins: float64 (N, n), overwritten; 0 where the game is over.
    """
    n = rules[0].num_players
    for i in range(records.shape[0]):
        state = records[i].state
        margins[i, :] = 0.0
        if state.phase == game.OVER:
            continue
        total = 0
        for seat in range(n):
            margins[i, seat] = game.holdings(state, seat)
            total += game.holdings(state, seat)
        for seat in range(n):
            margins[i, seat] -= (total - margins[i, seat]) / (n - 1)


@entry_point
def write_war_sums(piles: Any, sums: Any) -> None:
    """Write what War piles count, int64 (N,), from card masks, uint64 (N,) (S6)."""
    for i in range(piles.shape[0]):
        sums[i] = game.war_sum(piles[i])


@entry_point
def write_payoffs_of(states: Any, rules: Any, payoffs: Any) -> None:
    """Write the payoffs, float64 (N, n), of N games that are over."""
    for i in range(states.shape[0]):
        game.write_payoffs(states[i], rules[0], payoffs[i])


@entry_point
def read_observations(rows: Any, rules: Any, states: Any) -> None:
    """Rebuild N views from observations, int8 (N, d), see observations.read_observation."""
    for i in range(states.shape[0]):
        observations.read_observation(rows[i], rules[0], states[i])


@entry_point
def show_states(states: Any, rules: Any, seats: Any, rows: Any, masks: Any) -> None:
    """Write observations, int8 (N, d), and masks, int8 (N, 15), of N positions for seats (N,)."""
    for i in range(states.shape[0]):
        observations.write_observation(states[i], rules[0], seats[i], rows[i])
        table.write_action_mask(states[i], seats[i], masks[i])


@cache
def compile_engine(num_players: int) -> None:
    """Compile or load the entry points of every environment, once and safe among processes.

    Args:
        num_players: 2-4; the kernels of a step are made for each number of players.
    """
    with compiling():
        games = Games(1, num_players)
        games.seed([0], [0])
        games.deal()
        games.step(games.masks.argmax(axis=2))
        games.endings()
        games.restore(games.snapshots())
        write_war_sums(np.zeros(1, np.uint64), np.zeros(1, np.int64))


class Games:
    """N tables with their streams, and the observations and masks of all seats.

    Args:
        num_games: N.
        num_players: n, 2-4.
        rules: a rule set, a mapping of its fields, or None.
        illegal_action: ``"raise"`` or ``"lose"``.
        num_threads: threads that share the tables; results are the same for any number.

    Attributes:
        records: shape (N,), dtype SNAPSHOT.
        observations: int8 (N, n, d); written to in place unless renewed.
        masks: int8 (N, n, 15), likewise.
        rewards: float64 (N, n) of the last step, likewise.
        over: bool (N,), which games are over after the last step, likewise.

    Raises:
        ValueError: any argument out of what is allowed; the message names it.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int = 2,
        *,
        rules: Rules | Mapping[str, Any] | None = None,
        illegal_action: str = "raise",
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
        self.num_players = game.check_num_players(num_players)
        self.observation_high = observations.observation_high(num_players)
        self._setup: npt.NDArray[Any] = np.zeros(1, dtype=SETUP)
        self._setup["rules"] = self.rules.record(num_players)
        self._seats = tuple(range(self.num_players))
        self._setup["illegal_loses"] = illegal_action == "lose"
        self.records: npt.NDArray[Any] = np.zeros(num_games, dtype=SNAPSHOT)
        self.records["state"] = undealt_states(num_games)
        self.renew()
        self.observations[:] = 0
        self.masks[:] = 0
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
    def seeded(self) -> npt.NDArray[np.bool_]:
        """bool (N,): which games have random streams."""
        return self.streams["gamma"] != 0

    @property
    def rules_record(self) -> npt.NDArray[Any]:
        """The rule set for kernels: shape (1,), dtype RULES."""
        return self._setup["rules"]

    def seed(self, indices: Sequence[int], seeds: Sequence[int], *, forks: bool = False) -> None:
        """Give games fresh streams; their next deal is episode 0 of the seed."""
        self.streams[list(indices)] = seed_streams(seeds, forks=forks, dtype=STREAMS)

    def deal(self, chosen: npt.NDArray[np.bool_] | None = None) -> None:
        """Begin the next episode of the chosen games (all by default)."""
        chosen = self._everyone if chosen is None else chosen
        deal_games(self.records, self._setup, chosen)
        self.show(chosen)

    def renew(self) -> None:
        """Take new arrays for all that a step writes, so that the old ones may be kept."""
        num_games, num_players = len(self.records), self.num_players
        width = len(self.observation_high)
        self.observations = np.empty((num_games, num_players, width), dtype=np.int8)
        self.masks = np.empty((num_games, num_players, NUM_ACTIONS), dtype=np.int8)
        self.rewards = np.empty((num_games, num_players), dtype=np.float64)
        self.over = np.empty(num_games, dtype=np.bool_)

    def step(
        self,
        actions: npt.NDArray[np.int64],
        moving: npt.NDArray[np.bool_] | None = None,
        *,
        dealing: npt.NDArray[np.bool_] | None = None,
        renew: bool = False,
    ) -> int:
        """One action of every seat; ``observations``, ``masks``, ``rewards``, ``over`` follow.

        Args:
            actions: int64 (N, n).
            moving: bool (N,), which tables move, the others rest; all by default.
            dealing: bool (N,), which tables begin their next episode instead.
            renew: write into new arrays, for those who hand them out.

        Returns:
            The number of games that are over now.

        Raises:
            IllegalActionError: with the tables' indices if there are several; nothing changed.
        """
        orders = self._all_move
        if dealing is not None:
            orders = dealing.view(np.int8)  # True is DEAL
        elif moving is not None:
            orders = np.where(moving, np.int8(MOVE), np.int8(REST))
        records, setup, seats = self.records, self._setup, self._seats

        def may(first: int, stop: int) -> bool:
            return may_step(records, setup, seats, orders, actions, first, stop)

        if not all(share_out(may, self._parts)):
            raise self._illegal_action_error(actions, orders == MOVE)
        if renew:
            self.renew()

        def step(first: int, stop: int) -> int:
            written = self.rewards, self.over
            return step_games(records, setup, seats, orders, actions, *written, first, stop)

        num_over = sum(share_out(step, self._parts))
        self.show()
        return num_over

    def show(self, chosen: npt.NDArray[np.bool_] | None = None) -> None:
        """Bring observations and masks (all by default) up to date with ``records``."""
        everyone = self._everyone if chosen is None else chosen
        arrays = self.observations, self.masks

        def show(first: int, stop: int) -> None:
            show_games(self.records, self._setup, self._seats, everyone, *arrays, first, stop)

        share_out(show, self._parts)

    def current_masks(self) -> npt.NDArray[np.int8]:
        """The masks as int8 (N, n, 15), whatever has happened to ``masks``."""
        rows, masks = np.empty_like(self.observations), np.empty_like(self.masks)
        arrays = self._everyone, rows, masks
        show_games(self.records, self._setup, self._seats, *arrays, 0, len(self))
        return masks

    def endings(self) -> dict[str, npt.NDArray[Any]]:
        """How the games ended, with 0 or None for games that go on.

        Returns:
            ``outcome`` (object: str, (N, n)): ``"win"``, ``"shared"``, ``"loss"`` or
            ``"illegal_action"``; ``is_success`` (bool, (N, n)): a win of one's own; ``total``
            (int64 (N, n)): points held, 0 for those eliminated; ``margin`` (int64 (N, n)): points
            more than the best of the others; ``rounds`` (int64 (N, n)); ``truncated`` (bool (N,)).
        """
        shape = len(self), self.num_players
        outcomes = np.full(shape, NO_OUTCOME, np.int8)
        totals, margins, rounds = (np.zeros(shape, np.int64) for _ in range(3))
        truncated, ended = np.zeros(len(self), np.bool_), np.empty(len(self), np.int64)
        columns = outcomes, totals, margins, rounds, truncated
        ended = ended[: judge_games(self.records, self._setup, ended, *columns)]
        names = np.empty(shape, object)
        names[ended] = _OUTCOME_NAMES[outcomes[ended]]  # of few games, mostly
        return {
            "outcome": names,
            "is_success": outcomes == WIN,
            "total": totals,
            "margin": margins,
            "rounds": rounds,
            "truncated": truncated,
        }

    def snapshots(self) -> npt.NDArray[Any]:
        """All games with their streams: a copy of shape (N,) and dtype SNAPSHOT."""
        return self.records.copy()

    def restore(self, snapshots: npt.NDArray[Any]) -> None:
        """Put all games back to snapshots of shape (N,).

        Raises:
            ValueError: wrong dtype or shape, or not a position of this game; nothing changed.
        """
        # Users may hand over any object.
        if getattr(snapshots, "dtype", None) != SNAPSHOT or snapshots.shape != (len(self),):
            raise ValueError(
                f"a state must come from get_state() of an environment of {len(self)} games"
            )
        check_states(snapshots["state"], self.num_players, self.rules)
        check_streams(snapshots["streams"], snapshots["state"]["phase"] != game.OVER)
        self.records[:] = snapshots
        self.renew()
        self.show()

    def _illegal_action_error(
        self, actions: npt.NDArray[np.int64], moving: npt.NDArray[np.bool_]
    ) -> IllegalActionError:
        in_range = (actions >= 0) & (actions < NUM_ACTIONS)
        fits = np.where(in_range, actions, WAIT)
        masks = self.current_masks()
        legal = in_range & (np.take_along_axis(masks, fits[:, :, None], axis=2)[:, :, 0] != 0)
        over = self.states["phase"] == game.OVER
        loses = bool(self._setup["illegal_loses"][0])
        refused = moving & ~legal.all(axis=1) & (over | (not loses))
        tables = np.flatnonzero(refused)
        first = int(tables[0])
        seat = int(np.flatnonzero(~legal[first])[0])
        why = f"seat {seat}: {why_illegal(self.states[first], seat, int(actions[first, seat]))}"
        if len(self) == 1:
            return IllegalActionError(why)
        listed = ", ".join(str(index) for index in tables[:_MOST_LISTED])
        more = f" and {len(tables) - _MOST_LISTED} more" if len(tables) > _MOST_LISTED else ""
        return IllegalActionError(f"illegal actions in envs {listed}{more}; env {first}, {why}")
