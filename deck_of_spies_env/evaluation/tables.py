"""Agents at tables of Skirmish: every deal is played once for each rotation of the seats.

As all of them play each deal from each seat, the luck of the deal falls on all alike; what is left
of it is taken as one observation per deal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Agent, check_agent
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS, WAIT, decode, why_illegal
from deck_of_spies_env.skirmish.games import Games, compile_engine
from deck_of_spies_env.skirmish.rules import Rules
from deck_of_spies_env.skirmish.tables import deal_or_start, start_from_options

_BY_DEAL = ("payoffs", "shares", "margins", "rounds", "truncated")
_BY_AGENT = ("decisions", "seconds")


@dataclass(frozen=True, eq=False)
class TableResult:
    """How agents fared at one table; in the order of the seeds, the rotations and the agents.

    Attributes:
        payoffs: float64 (D, n, n), of each deal, rotation and agent (S12).
        shares: float64 (D, n, n), 1 for a win, 1/k for one shared by k, 0 for a loss.
        margins: int64 (D, n, n), points more than the best of the others.
        rounds: int64 (D, n).
        truncated: bool (D, n), which games the round limit cut off.
        decisions: int64 (n,), of each agent, those to wait left out.
        seconds: float64 (n,), time that each agent took to decide.
    """

    payoffs: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]
    margins: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    truncated: npt.NDArray[np.bool_]
    decisions: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]

    @property
    def columns(self) -> Columns:
        """The result as columns."""
        by_deal = {name: getattr(self, name) for name in _BY_DEAL}
        return by_deal | {name: getattr(self, name)[None] for name in _BY_AGENT}

    @classmethod
    def of(cls, columns: Columns) -> TableResult:
        """The result that columns hold, among others."""
        by_agent = {name: columns[name].sum(axis=0) for name in _BY_AGENT}
        return cls(**{name: columns[name] for name in _BY_DEAL}, **by_agent)

    def share_by_deal(self, agent: int) -> npt.NDArray[np.float64]:
        """An agent's share of wins in each deal, over its rotations: float64 (D,)."""
        return self.shares[:, :, agent].mean(axis=1)

    def payoff_by_deal(self, agent: int) -> npt.NDArray[np.float64]:
        """An agent's mean payoff in each deal, over its rotations: float64 (D,)."""
        return self.payoffs[:, :, agent].mean(axis=1)


@dataclass(frozen=True)
class PlayedTable:
    """One game at a table, as it was played; all by seat.

    Attributes:
        number: of the game, from 0: that of the deal times n, plus the rotation.
        actions: of all seats in each step, by name.
        payoffs: S12.
        totals: points held, 0 for those eliminated.
        rounds: how many were played.
        truncated: whether the round limit cut the game off.
    """

    number: int
    actions: tuple[tuple[str, ...], ...]
    payoffs: tuple[float, ...]
    totals: tuple[int, ...]
    rounds: int
    truncated: bool


def play_tables(
    agents: Sequence[Agent],
    seeds: Sequence[int],
    *,
    rules: Rules | None = None,
    batch_size: int = 1024,
    progress: Callable[[int], None] | None = None,
    on_game: Callable[[PlayedTable], None] | None = None,
    start: Mapping[str, Any] | None = None,
) -> TableResult:
    """Play each deal once for each rotation: in rotation r, agent k sits at (k + r) mod n.

    An agent object may sit in several seats; it decides for all of its seats at once then.

    Args:
        agents: n of them, 2-4. They are shown copies of observations and masks, of those seats
            only that have a decision.
        seeds: D of them, at least one: episode 0 of each.
        rules: the rule set, None for the default.
        batch_size: games side by side, at least 1.
        progress: called with the number of games that ended since the last call.
        on_game: called with each game when it has ended, in the order in which they end.
        start: where all games begin, as ``options["table"]`` of the environment; None to deal.

    Raises:
        ValueError: no seeds, a negative one, a bad number of agents, a batch size below 1, or a bad
            start.
        IllegalActionError: an agent did not return one legal action for each seat.
    """
    if not len(seeds):
        raise ValueError("there must be at least one deal to play")
    for agent in agents:
        check_agent(agent, Rules.of(rules))
    if batch_size < 1:
        raise ValueError(f"the batch size must be at least 1, got {batch_size}")
    n, num_deals = len(agents), len(seeds)
    compile_engine(n)
    position = start_from_options({"table": start}, n, Rules.of(rules))
    result = _empty(num_deals, n)
    matches = [(deal, rotation) for deal in range(num_deals) for rotation in range(n)]
    for first in range(0, len(matches), batch_size):
        some = np.array(matches[first : first + batch_size])
        games = Games(len(some), n, rules=rules)
        games.seed(range(len(some)), [seeds[deal] for deal in some[:, 0]])
        deal_or_start(games, None, position)
        _play_out(games, agents, some, [seeds[deal] for deal in some[:, 0]], result, on_game)
        if progress is not None:
            progress(len(some))
    return result


def _empty(num_deals: int, n: int) -> TableResult:
    shape = num_deals, n, n
    return TableResult(
        payoffs=np.zeros(shape),
        shares=np.zeros(shape),
        margins=np.zeros(shape, dtype=np.int64),
        rounds=np.zeros(shape[:2], dtype=np.int64),
        truncated=np.zeros(shape[:2], dtype=np.bool_),
        decisions=np.zeros(n, dtype=np.int64),
        seconds=np.zeros(n),
    )


def _play_out(
    games: Games,
    agents: Sequence[Agent],
    matches: npt.NDArray[np.int64],
    seeds: Sequence[int],
    result: TableResult,
    on_game: Callable[[PlayedTable], None] | None,
) -> None:
    """Play games to their ends, and write how they ended."""
    n = len(agents)
    agent_at = (np.arange(n)[None, :] - matches[:, 1:]) % n  # (games, seats)
    in_play = np.ones(len(games), dtype=np.bool_)
    moves: list[list[tuple[str, ...]]] = [[] for _ in range(len(games))]
    while in_play.any():
        actions = np.full((len(games), n), WAIT, dtype=np.int64)
        deciding = in_play[:, None] & (games.masks[:, :, WAIT] == 0)
        for number, agent in enumerate(agents):
            _decide(games, agent, deciding & (agent_at == number), seeds, actions, result, number)
        if on_game is not None:
            for table in np.flatnonzero(in_play).tolist():
                moves[table].append(tuple(map(decode, actions[table].tolist())))
        games.step(actions, in_play)
        ended = in_play & games.over
        if ended.any():
            endings = games.endings()
            _write_endings(games, ended, endings, agent_at, matches, result)
            if on_game is not None:
                for table in np.flatnonzero(ended).tolist():
                    number = int(matches[table, 0]) * n + int(matches[table, 1])
                    on_game(_played(games, table, number, moves[table], endings))
            in_play &= ~ended


def _played(
    games: Games,
    table: int,
    number: int,
    moves: Sequence[tuple[str, ...]],
    endings: Mapping[str, npt.NDArray[Any]],
) -> PlayedTable:
    """A game that the last step has ended."""
    return PlayedTable(
        number,
        tuple(moves),
        payoffs=tuple(games.rewards[table].tolist()),
        totals=tuple(endings["total"][table].tolist()),
        rounds=int(endings["rounds"][table, 0]),
        truncated=bool(endings["truncated"][table]),
    )


def _decide(
    games: Games,
    agent: Agent,
    chosen: npt.NDArray[np.bool_],
    seeds: Sequence[int],
    actions: npt.NDArray[np.int64],
    result: TableResult,
    number: int,
) -> None:
    """Ask one agent for the actions of its seats."""
    if not chosen.any():
        return
    masks = games.masks[chosen]
    started = perf_counter()
    returned = np.asarray(agent.act(games.observations[chosen], masks.copy()))
    result.seconds[number] += perf_counter() - started
    result.decisions[number] += len(masks)
    if returned.shape != (len(masks),) or returned.dtype.kind not in "iu":
        raise IllegalActionError(
            f"the agent must return whole numbers of shape ({len(masks)},), "
            f"got {returned.dtype} of shape {returned.shape}"
        )
    fits = (returned >= 0) & (returned < NUM_ACTIONS)
    legal = fits & (masks[np.arange(len(masks)), np.where(fits, returned, 0)] != 0)
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        table, seat = (int(place[row]) for place in np.nonzero(chosen))
        why = why_illegal(games.states[table], seat, int(returned[row]))
        raise IllegalActionError(f"in the deal of seed {seeds[table]}, seat {seat}: {why}")
    actions[chosen] = returned


def _write_endings(
    games: Games,
    ended: npt.NDArray[np.bool_],
    endings: Mapping[str, npt.NDArray[Any]],
    agent_at: npt.NDArray[np.int64],
    matches: npt.NDArray[np.int64],
    result: TableResult,
) -> None:
    rewards = games.rewards
    won = endings["is_success"] | ((endings["outcome"] == "shared") & ended[:, None])
    shares = won / np.maximum(won.sum(axis=1, keepdims=True), 1)
    for table in np.flatnonzero(ended):
        deal, rotation = matches[table]
        who = agent_at[table]
        result.payoffs[deal, rotation, who] = rewards[table]
        result.shares[deal, rotation, who] = shares[table]
        result.margins[deal, rotation, who] = endings["margin"][table]
        result.rounds[deal, rotation] = endings["rounds"][table, 0]
        result.truncated[deal, rotation] = endings["truncated"][table]
