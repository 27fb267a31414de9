"""Stable-Baselines3: Skirmish as a ``VecEnv`` for self-play.

Each row is a seat that learns. At an *open* table all seats do, so every game is one of the policy
against itself and gives n rows; at a *pool* table one seat does, and the others are played by
members of a pool: past selves, bots, any agents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices

from deck_of_spies_env.adapters import action_array
from deck_of_spies_env.agent import Agent, check_agent
from deck_of_spies_env.checks import check_count, check_options, check_seed
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS, WAIT
from deck_of_spies_env.skirmish.games import Games, compile_engine, write_margins
from deck_of_spies_env.skirmish.positions import zones_of
from deck_of_spies_env.skirmish.rules import PHASES, Rules
from deck_of_spies_env.skirmish.tables import deal_or_start, start_from_options

SHAPINGS = ("points",)
POINTS_IN_THE_DECK = 364
_LEARNER = -1


@dataclass
class Member:
    """One of a pool.

    Attributes:
        name: for the log.
        agent: follows the agent protocol; decides for many seats at once.
        weight: how often it is drawn, beside the others; at least 0.

    Raises:
        ValueError: no agent, or no such weight.
    """

    name: str
    agent: Agent
    weight: float

    def __post_init__(self) -> None:
        try:
            check_agent(self.agent, None)
        except ValueError as error:
            raise ValueError(f"member {self.name}: {error}") from None
        weight: Any = self.weight  # callers hand over what a user wrote
        number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not number or not 0 <= weight < np.inf:
            raise ValueError(
                f"member {self.name}: weight must be a number of at least 0, got {weight!r}"
            )


def _as_members(pool: Any, rules: Rules) -> list[Member]:
    """A pool as a list.

    Raises:
        ValueError: anything in it is no Member, or made for other rules, or no weight is above 0.
    """
    members = list(pool) if isinstance(pool, Iterable) else [pool]
    for one in members:
        if not isinstance(one, Member):
            raise ValueError(f"the pool must hold Member objects, got {one!r}")
        check_agent(one.agent, rules)
    if members and not any(member.weight > 0 for member in members):
        raise ValueError("the pool must hold a member of a weight above 0")
    return members


class SkirmishVecEnv(VecEnv):
    """Tables of Skirmish under SB3's interface; ended games are dealt anew in the same step.

    Observations int8 (R, d), actions int64 (R,), rewards float32 (R,), dones bool (R,), where R is
    the number of rows: ``num_players`` for each open table, one for each pool table. Rows that have
    no decision wait: their mask allows nothing else. The info of a row whose game has ended holds
    ``terminal_observation``, ``TimeLimit.truncated``, ``episode`` (r, l, t as Monitor writes them)
    and the environment's own final keys; the others are empty.

    Args:
        open_tables: how many tables have learners in all seats.
        pool_tables: how many have one, in a seat that rotates from game to game.
        num_players: 2-4.
        pool: who may play at the pool tables; drawn anew for each seat of each game. It may be set
            later, by set_pool.
        rules: a rule set, a mapping of its fields, or None.
        shaping: ``"points"`` adds the change of (points held less the mean of the others') / 364 to
            each reward, a potential that is 0 at the end (Ng, Harada and Russell, 1999); or None.
            Cards committed or staked count for nobody.

    Raises:
        ValueError: an argument out of what is allowed; the message names it.
    """

    def __init__(
        self,
        open_tables: int,
        pool_tables: int = 0,
        num_players: int = 2,
        *,
        pool: Sequence[Member] = (),
        rules: Rules | Mapping[str, Any] | None = None,
        shaping: str | None = None,
    ) -> None:
        open_tables = check_count("open_tables", open_tables, least=0)
        pool_tables = check_count("pool_tables", pool_tables, least=0)
        num_tables = check_count("the number of tables", open_tables + pool_tables)
        if shaping is not None and shaping not in SHAPINGS:
            raise ValueError(f"unknown shaping {shaping!r}; there are {', '.join(SHAPINGS)}")
        self.games = Games(num_tables, num_players, rules=rules)
        n = self.num_players = self.games.num_players
        self.pool = _as_members(pool, self.games.rules)
        self.shaping = shaping
        self._open_tables, self._pool_tables = open_tables, pool_tables
        self._members = np.full((num_tables, n), _LEARNER, dtype=np.int64)
        self._random = np.random.default_rng(0)
        self._tables = np.concatenate(
            (np.repeat(np.arange(open_tables), n), np.arange(open_tables, num_tables))
        )
        self._seats = np.concatenate(
            (np.tile(np.arange(n), open_tables), np.zeros(pool_tables, dtype=np.int64))
        )
        num_rows = len(self._tables)
        self._actions = np.zeros(num_rows, dtype=np.int64)
        self._returns, self._lengths = np.zeros(num_rows), np.zeros(num_rows, dtype=np.int64)
        self._potentials = np.zeros((num_tables, n))
        self._seeded = False
        self._started = time.time()
        compile_engine(n)
        high = self.games.observation_high
        observations = gym.spaces.Box[np.int8](np.zeros_like(high), high, dtype=np.int8)
        super().__init__(num_rows, observations, gym.spaces.Discrete(NUM_ACTIONS))

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds s, s + 1, ... of the tables at the next reset, and what opponents are drawn by.

        Raises:
            ValueError: not a whole number, or negative.
        """
        if seed is not None:
            seed = check_seed(seed)
            seeds = [seed + table for table in range(len(self.games))]
            self.games.seed(range(len(self.games)), seeds)
            self._random = np.random.default_rng(np.random.SeedSequence(seed))
            self._seeded = True
        return [seed] * self.num_envs

    def reset(self) -> npt.NDArray[np.int8]:
        """Begin the next episode at all tables, at the position of set_options() if it has one.

        Raises:
            ValueError: options that differ between rows, a bad position, or pool tables without
                a pool.
        """
        if any(options != self._options[0] for options in self._options):
            raise ValueError("reset options must be the same for all rows")
        options = check_options(self._options[0])
        start = start_from_options(options, self.num_players, self.games.rules)
        if not self._seeded:
            self.seed(int(np.random.default_rng().integers(1 << 62)))
        self.games.renew()
        self._deal(np.ones(len(self.games), dtype=np.bool_), start)
        self._reset_options()
        self._returns[:] = 0.0
        self._lengths[:] = 0
        return self._observations()

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions for step_wait: whole numbers of shape (R,).

        Raises:
            IllegalActionError: other numbers, or of another shape.
        """
        self._actions = action_array(actions, self.num_envs)

    def step_wait(
        self,
    ) -> tuple[
        npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]
    ]:
        """One action of every seat at every table.

        Raises:
            IllegalActionError: names the tables with an illegal action, or the member of the pool
                that gave none; no table has moved.
        """
        games = self.games
        actions = np.full(self._members.shape, WAIT, dtype=np.int64)
        actions[self._tables, self._seats] = self._actions
        self._ask_the_pool(actions)
        num_over = games.step(actions, renew=True)
        rewards = games.rewards
        if self.shaping is not None:
            before = self._potentials
            self._potentials = self._potentials_now()
            rewards = rewards + self._potentials - before
        rewards = rewards[self._tables, self._seats]
        dones = games.over[self._tables]
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if num_over:
            self._finish(dones, infos)
        return self._observations(), rewards.astype(np.float32), dones, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Legal actions as bool of shape (R, 15)."""
        return self.games.masks[self._tables, self._seats].astype(np.bool_)

    def shares_of_the_pool(self) -> dict[str, float]:
        """How likely each opponent is, over all seats but those of the learner, by name.

        ``self`` stands for the learner's own policy, at the open tables.
        """
        n = self.num_players
        seats = self._open_tables * n + self._pool_tables * (n - 1)
        shares = {"self": self._open_tables * n / seats}
        total = sum(member.weight for member in self.pool) or 1.0
        for member in self.pool:
            drawn = self._pool_tables * (n - 1) / seats * member.weight / total
            shares[member.name] = shares.get(member.name, 0.0) + drawn
        return shares

    def set_pool(self, pool: Sequence[Member]) -> None:
        """Change who may play from the next deal on.

        Members that sit at tables now must stay in their places; add at the end.

        Raises:
            ValueError: not members, made for other rules, or too few for those that sit at tables.
        """
        members = _as_members(pool, self.games.rules)
        self._check_seated(self._members, members)
        self.pool = members

    def zones_of_row(self, row: int) -> dict[str, Any]:
        """What the seat of a row may know, by card names; see ``skirmish.positions.zones_of``."""
        table, seat = int(self._tables[row]), int(self._seats[row])
        return zones_of(self.games.states[table], self.num_players, seat)

    # --- What happens at the tables ---

    def _observations(self) -> npt.NDArray[np.int8]:
        return self.games.observations[self._tables, self._seats]

    def _ask_the_pool(self, actions: npt.NDArray[np.int64]) -> None:
        """Fill in what the members of the pool do."""
        if not self._pool_tables:
            return
        deciding = (self._members != _LEARNER) & (self.games.masks[:, :, WAIT] == 0)
        for number in np.unique(self._members[deciding]).tolist():
            chosen = deciding & (self._members == number)
            agent = self.pool[number].agent
            given = agent.act(self.games.observations[chosen], self.games.masks[chosen])
            try:
                actions[chosen] = action_array(given, int(chosen.sum()))
            except IllegalActionError as error:
                name = self.pool[number].name
                raise IllegalActionError(f"member {name} of the pool: {error}") from None

    def _deal(self, chosen: npt.NDArray[np.bool_], start: npt.NDArray[Any] | None = None) -> None:
        """Begin the next episode at tables, at a start if there is one, with opponents anew."""
        deal_or_start(self.games, chosen, start)
        tables = np.flatnonzero(chosen[self._open_tables :]) + self._open_tables
        if tables.size:
            if not self.pool:
                raise ValueError("pool tables need a pool of at least one member")
            weights = np.array([member.weight for member in self.pool])
            shape = len(tables), self.num_players
            drawn = self._random.choice(len(self.pool), size=shape, p=weights / weights.sum())
            seats = self.games.streams["episode"][tables] % self.num_players
            drawn[np.arange(len(tables)), seats] = _LEARNER
            self._members[tables] = drawn
            first_row = self._open_tables * self.num_players
            self._seats[first_row + tables - self._open_tables] = seats
        if self.shaping is not None:
            self._potentials[chosen] = self._potentials_now()[chosen]

    def _potentials_now(self) -> npt.NDArray[np.float64]:
        """float64 (tables, n): points held less the mean of the others', 0 once a game is over."""
        margins = np.empty(self._members.shape)
        write_margins(self.games.records, self.games.rules_record, margins)
        return margins / POINTS_IN_THE_DECK

    def _finish(self, dones: npt.NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """Write the infos of rows whose games have ended, and deal these anew."""
        endings = self.games.endings()
        truncated = endings.pop("truncated")
        observations, elapsed = self._observations(), round(time.time() - self._started, 6)
        for row in np.flatnonzero(dones).tolist():
            table, seat = int(self._tables[row]), int(self._seats[row])
            infos[row] = {
                "terminal_observation": observations[row].copy(),
                "TimeLimit.truncated": bool(truncated[table]),
                "episode": {
                    "r": round(float(self._returns[row]), 6),
                    "l": int(self._lengths[row]),
                    "t": elapsed,
                },
                "payoff": float(self.games.rewards[table, seat]),
                "opponents": self._opponents_of(table, seat),
                **{
                    key: values[table, seat].item()
                    if hasattr(values[table, seat], "item")
                    else values[table, seat]
                    for key, values in endings.items()
                },
            }
        self._returns[dones] = 0.0
        self._lengths[dones] = 0
        self._deal(self.games.over.copy())

    def _opponents_of(self, table: int, seat: int) -> tuple[str, ...]:
        others = [int(m) for place, m in enumerate(self._members[table]) if place != seat]
        return tuple("self" if m == _LEARNER else self.pool[m].name for m in others)

    # --- Saving ---

    def get_state(self) -> dict[str, Any]:
        """All that play depends on but for the agents of the pool, for set_state."""
        return {
            "games": self.games.snapshots(),
            "members": self._members.copy(),
            "seats": self._seats.copy(),
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
            "random": self._random.bit_generator.state,
        }

    def set_state(self, state: Mapping[str, Any]) -> npt.NDArray[np.int8]:
        """Go back to a state from get_state(), with a pool of at least as many members.

        Returns:
            The observations, int8 (R, d).

        Raises:
            ValueError: not such a state, one of other tables or rules, or too small a pool;
                nothing changes.
        """
        self._check_state(state)
        self.games.restore(state["games"])
        self._members[:] = state["members"]
        self._seats[:] = state["seats"]
        self._returns[:], self._lengths[:] = state["returns"], state["lengths"]
        self._random.bit_generator.state = state["random"]
        self._potentials = self._potentials_now()
        self._seeded = True
        return self._observations()

    def _check_state(self, state: Any) -> None:
        """Refuse what is no state of these tables; the games themselves are left to restore()."""
        present = self.get_state()
        if not isinstance(state, Mapping) or state.keys() != present.keys():
            raise ValueError("a state must come from get_state() of such an environment")
        for name, array in present.items():
            if isinstance(array, np.ndarray):
                given = state[name]
                kind = (given.shape, given.dtype) if isinstance(given, np.ndarray) else None
                if kind != (array.shape, array.dtype):
                    raise ValueError(
                        "a state must come from get_state() of an environment of as many tables"
                    )
        self._check_seated(state["members"], self.pool)
        try:
            np.random.default_rng().bit_generator.state = state["random"]
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError("state: it has no random stream") from error

    def _check_seated(self, members: npt.NDArray[np.int64], pool: Sequence[Member]) -> None:
        """Refuse a pool without those who sit at the tables, by their number in it."""
        seated = int(members.max(initial=_LEARNER))
        if seated >= len(pool):
            raise ValueError(
                f"member {seated} of the pool sits at a table, so there must be {seated + 1} or "
                f"more, got {len(pool)}"
            )

    # --- The rest of SB3's interface ---

    def close(self) -> None:
        """Nothing to release."""

    def has_attr(self, attr_name: str) -> bool:
        """Whether rows have such an attribute, see :meth:`get_attr`."""
        return attr_name in _OF_ROWS

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """What the rows' seats have of ``SkirmishEnv``.

        That is ``rules``, ``num_players``, ``seat``, ``phase``, ``render_mode`` (None), and the
        methods ``action_masks`` and ``zones``, which come bound to their row.

        Raises:
            AttributeError: anything else.
        """
        if attr_name not in _OF_ROWS:
            known = ", ".join(_OF_ROWS)
            raise AttributeError(f"the rows have no attribute {attr_name!r}; there are {known}")
        return [_OF_ROWS[attr_name](self, row) for row in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Not supported.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(f"can't set {attr_name!r}: pass it to the constructor")

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of :meth:`get_attr` for rows.

        Raises:
            AttributeError: there is none.
        """
        return [
            method(*method_args, **method_kwargs) for method in self.get_attr(method_name, indices)
        ]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """No row is wrapped."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """No pictures: one None per row."""
        return [None] * self.num_envs


_OF_ROWS: dict[str, Callable[[SkirmishVecEnv, int], Any]] = {
    "rules": lambda envs, _: envs.games.rules,
    "num_players": lambda envs, _: envs.num_players,
    "seat": lambda envs, row: int(envs._seats[row]),
    "phase": lambda envs, row: PHASES[int(envs.games.states["phase"][envs._tables[row]])],
    "render_mode": lambda _envs, _row: None,
    "action_masks": lambda envs, row: lambda: envs.action_masks()[row],
    "zones": lambda envs, row: partial(envs.zones_of_row, row),
}
