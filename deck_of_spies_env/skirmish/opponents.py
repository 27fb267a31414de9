"""The agents in the other seats of ``Skirmish-v0``, and where their random numbers come from."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.adapters import single_action
from deck_of_spies_env.agent import Agent, BatchAgent
from deck_of_spies_env.compiled import compiling, entry_point
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.random_streams import mix
from deck_of_spies_env.skirmish.actions import WAIT
from deck_of_spies_env.skirmish.bots import BOTS, make_bot
from deck_of_spies_env.skirmish.games import Games
from deck_of_spies_env.skirmish.tables import Table

_SEEDS = np.uint64(0xA24BAED4963EE407)  # any odd constant that is used for nothing else
_HALF = np.uint64(32)


@entry_point
def write_seeds(records: Any, seeds: Any) -> None:
    """Write seeds of 32 bits, uint64 (n,), for the agents in the seats of the first game.

    The stream that picks a seat's card among equals moves on with each of the seat's decisions, so
    its position gives another seed for each, and no card depends on that.
    """
    streams = records[0].streams
    for seat in range(seeds.shape[0]):
        seeds[seat] = mix(streams.key ^ mix(streams.picks[seat] + _SEEDS)) >> _HALF


@cache
def compile_seeds() -> None:
    """Compile or load write_seeds, once and safe among processes."""
    with compiling():
        write_seeds(Games(1).records, np.empty(2, np.uint64))


OpponentsArgument = str | Agent | Sequence[str | Agent]


class Opponents:
    """Agents for the seats after the learner's, in the order of play.

    A bot made from its name is reset before each of its decisions, with a seed that follows from
    the game's own streams and from how far the game has come: a saved game tells what it will do.
    An agent object may remember what it likes, so it is reset once, when an episode begins.

    Args:
        opponents: a bot's name or an agent for all the seats, or a list of n - 1 of these.
        num_players: n.

    Raises:
        ValueError: an unknown bot, no agent at all, or a list of another length.
    """

    def __init__(self, opponents: OpponentsArgument, num_players: int) -> None:
        others = num_players - 1
        if isinstance(opponents, list | tuple):
            if len(opponents) != others:
                raise ValueError(
                    f"opponents must list {others} for {num_players} players, got {len(opponents)}"
                )
            chosen: list[Any] = list(opponents)
        else:
            chosen = [opponents] * others
        self._named = [isinstance(opponent, str) for opponent in chosen]
        self._agents = [_agent_of(opponent, num_players) for opponent in chosen]
        # Bots that leave nothing to chance need no seeds.
        self._by_chance = [
            named and type(agent).reset is not BatchAgent.reset
            for named, agent in zip(self._named, self._agents, strict=True)
        ]
        compile_seeds()

    def begin(self, table: Table) -> None:
        """Reset the agent objects, at the beginning of an episode."""
        if all(self._named):
            return
        seen: set[int] = set()
        for agent, named, seed in zip(self._agents, self._named, _seeds(table), strict=False):
            if not named and id(agent) not in seen:
                seen.add(id(agent))
                agent.reset(seed)

    def choose(self, table: Table, seat: int, actions: npt.NDArray[np.int64]) -> None:
        """Write the actions of all that have a decision; each sees what its own seat may see.

        Args:
            table: the game.
            seat: the learner's.
            actions: int64 (n,), changed in place.

        Raises:
            IllegalActionError: what an agent gave is no action; nothing has happened in the game.
        """
        seeds = _seeds(table) if any(self._by_chance) else []
        for place, agent in enumerate(self._agents):
            player = (seat + 1 + place) % table.num_players
            mask = table.mask(player)
            if mask[WAIT]:
                continue
            if self._by_chance[place]:
                agent.reset(seeds[player])
            try:
                actions[player] = single_action(agent.act(table.observation(player), mask))
            except IllegalActionError as error:
                raise IllegalActionError(f"seat {player}: {error}") from None

    def copy(self) -> Opponents:
        """The same bots, and copies of the agent objects."""
        twin = copy.copy(self)
        twin._agents = copy.deepcopy(self._agents)
        return twin


def _agent_of(opponent: Any, num_players: int) -> Agent:
    if isinstance(opponent, str):
        if opponent not in BOTS:
            raise ValueError(f"opponents: unknown bot {opponent!r}; there are {', '.join(BOTS)}")
        return make_bot(opponent, num_players)
    if not isinstance(opponent, Agent) or isinstance(opponent, type):
        raise ValueError(
            f"opponents must be a bot's name ({', '.join(BOTS)}), an agent with act and reset, "
            f"or a list of these, got {opponent!r}"
        )
    return opponent


def _seeds(table: Table) -> list[int]:
    """Seeds for the agents of this moment in the game, one for each of n seats."""
    seeds = np.empty(table.num_players, dtype=np.uint64)
    write_seeds(table.games.records, seeds)
    return seeds.tolist()
