"""One table: what the environments with a single game share, copies to plan with among it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.checks import check_options, check_seed
from deck_of_spies_env.compiled import compiling
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.games import Games, compile_engine
from deck_of_spies_env.skirmish.positions import (
    state_from_table,
    table_of,
    undealt_states,
    zones_of,
)
from deck_of_spies_env.skirmish.rules import STREAMS, Rules
from deck_of_spies_env.skirmish.views import redeal_views


def check_seat(seat: Any, num_players: int) -> int:
    """A seat as an int.

    Raises:
        ValueError: not a whole number from 0 to n - 1.
    """
    whole = isinstance(seat, int | np.integer) and not isinstance(seat, bool)
    if not whole or not 0 <= seat < num_players:
        raise ValueError(f"seat must be a whole number 0-{num_players - 1}, got {seat!r}")
    return int(seat)


def start_from_options(
    options: Mapping[str, Any], num_players: int, rules: Rules
) -> npt.NDArray[Any] | None:
    """The position that reset options ask for, None if for none.

    Args:
        options: ``table``, a mapping as ``positions.state_from_table`` takes it, at the start of a
            round; other keys are ignored.
        num_players: 2-4.
        rules: the rule set.

    Returns:
        Shape (1,), dtype STATE.

    Raises:
        ValueError: a position that is no position; the message says why.
    """
    table = options.get("table")
    if table is None:
        return None
    if not isinstance(table, Mapping):
        raise ValueError(f"options['table'] must be a mapping of zones, got {table!r}")
    return state_from_table(table, num_players, rules)


def ending_rows(columns: Mapping[str, npt.NDArray[Any]], index: int) -> list[dict[str, Any]]:
    """How one of several games ended for each seat, from columns of shape (N, n)."""
    rows = {key: column[index].tolist() for key, column in columns.items()}
    return [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]


def deal_or_start(
    games: Games, chosen: npt.NDArray[np.bool_] | None, start: npt.NDArray[Any] | None
) -> None:
    """Begin the next episode of the chosen games (all by default), at a start if there is one."""
    games.deal(chosen)
    if start is not None:
        games.states[slice(None) if chosen is None else chosen] = start[0]
        games.show(chosen)


@cache
def compile_redeals() -> None:
    """Compile or load redeals, once and safe among processes."""
    with compiling():
        streams = np.zeros(1, dtype=STREAMS)
        redeal_views(undealt_states(1), Rules().record(2), np.zeros(1, np.int64), streams)


class Table:
    """A game, with its random streams.

    Args:
        num_players: n, 2-4.
        rules: a rule set, a mapping of its fields, or None.
        illegal_action: ``"raise"`` or ``"lose"``.

    Attributes:
        games: the same as a Games of one.
        last_step: the position before the last step, and its actions, if it was to be kept.

    Raises:
        ValueError: any argument out of what is allowed; the message names it.
    """

    def __init__(
        self,
        num_players: int = 2,
        *,
        rules: Rules | Mapping[str, Any] | None = None,
        illegal_action: str = "raise",
    ) -> None:
        self.games = Games(1, num_players, rules=rules, illegal_action=illegal_action)
        self.num_players = self.games.num_players
        self.rules = self.games.rules
        self.illegal_action = illegal_action
        self.last_step: tuple[Any, npt.NDArray[np.int64]] | None = None
        compile_engine(self.num_players)

    @property
    def state(self) -> Any:
        """The game: a record of dtype STATE."""
        return self.games.states[0]

    @property
    def streams(self) -> Any:
        """Its random streams: a record of dtype STREAMS."""
        return self.games.streams[0]

    @property
    def seeded(self) -> bool:
        """Whether there are random streams yet."""
        return bool(self.games.seeded[0])

    @property
    def phase(self) -> str:
        """``"skirmish"``, ``"war"`` or ``"over"`` (also before the first deal)."""
        return game.PHASES[int(self.state["phase"])]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, or was never dealt."""
        return int(self.state["phase"]) == game.OVER

    def deal(self, seed: int | None, start: npt.NDArray[Any] | None) -> None:
        """Begin the next episode, episode 0 if a seed is given; at a start if there is one.

        Raises:
            ValueError: a negative seed; nothing changes.
        """
        if seed is not None:
            self.games.seed([0], [seed])
        deal_or_start(self.games, None, start)
        self.last_step = None

    def step(self, actions: npt.NDArray[np.int64], *, keep: bool = False) -> None:
        """One action of every seat, int64 (n,); kept as ``last_step`` on demand.

        Raises:
            IllegalActionError: an action that is not legal; nothing changes.
        """
        before = self.state.copy() if keep else None
        self.games.step(actions[None])
        self.last_step = None if before is None else (before, actions)

    def start_of(self, options: Mapping[str, Any] | None) -> npt.NDArray[Any] | None:
        """The start that reset options ask for, see start_from_options."""
        return start_from_options(check_options(options), self.num_players, self.rules)

    def observation(self, seat: int) -> npt.NDArray[np.int8]:
        """What a seat observes: a copy, int8 (d,)."""
        return self.games.observations[0, seat].copy()

    def mask(self, seat: int) -> npt.NDArray[np.int8]:
        """What a seat may do: a copy, int8 (15,)."""
        return self.games.masks[0, seat].copy()

    def endings(self) -> tuple[list[dict[str, Any]], bool]:
        """How the game ended for each seat, and whether the round limit cut it off."""
        columns = self.games.endings()
        truncated = bool(columns.pop("truncated")[0])
        return ending_rows(columns, 0), truncated

    def zones(self, seat: int) -> dict[str, Any]:
        """What a seat may know, by card names; see ``positions.zones_of``.

        Raises:
            ValueError: no such seat.
        """
        return zones_of(self.state, self.num_players, check_seat(seat, self.num_players))

    def all_zones(self) -> dict[str, Any]:
        """Everything, by card names; see ``positions.table_of``."""
        return table_of(self.state, self.num_players)

    def snapshot(self) -> npt.NDArray[Any]:
        """The game with its streams: a copy, shape () and dtype SNAPSHOT."""
        return self.games.snapshots().reshape(())

    def restore(self, snapshot: Any) -> None:
        """Go back to a snapshot.

        Raises:
            ValueError: not a snapshot, or not one of these rules; nothing changes.
        """
        self.games.restore(np.atleast_1d(np.asarray(snapshot)))
        self.last_step = None

    def fork(self, seed: int) -> Table:
        """An independent copy of the game with fresh streams.

        No seed gives the streams of a game, not even the game's own. The number of the episode
        stays, so that a rotating seat does too.

        Raises:
            ValueError: a negative seed.
        """
        twin = Table(self.num_players, rules=self.rules, illegal_action=self.illegal_action)
        twin.games.seed([0], [check_seed(seed)], forks=True)
        twin.games.deal()
        twin.games.states[:] = self.games.states
        twin.games.streams["episode"] = self.games.streams["episode"]
        twin.games.show()
        return twin

    def redeal(self, seat: int, seed: int) -> Table:
        """A fork in which all that a seat can't know is dealt anew.

        The state is drawn uniformly from the deals that are consistent with the seat's view.

        Raises:
            ValueError: no such seat, or a negative seed.
        """
        seats = np.array([check_seat(seat, self.num_players)])
        compile_redeals()
        twin = self.fork(seed)
        states, streams = twin.games.states.copy(), twin.games.streams.copy()
        redeal_views(states, self.rules.record(self.num_players), seats, streams)
        twin.games.states[:], twin.games.streams[:] = states, streams
        twin.games.show()
        return twin
