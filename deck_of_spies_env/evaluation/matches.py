"""Agents on given deals: a match is one agent, a list of deal seeds, and how each deal ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Agent, CompiledAgent, check_agent
from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.solitaire.actions import Action, IllegalActionError
from deck_of_spies_env.solitaire.explanations import why_illegal
from deck_of_spies_env.solitaire.games import Games, compile_engine
from deck_of_spies_env.solitaire.rollouts import (
    IllegalPolicyError,
    PlayOuts,
    compile_policy,
    deal_snapshots,
    play_out,
)
from deck_of_spies_env.solitaire.rules import OUTCOMES, WIN, Rules

_DEALS_AT_ONCE = 4096
_SORTED_OUTCOMES: npt.NDArray[Any] = np.array(sorted(OUTCOMES))


@dataclass(frozen=True, eq=False)
class MatchResult:
    """How one agent fared, deal by deal; all arrays have shape (D,) in the order of the seeds.

    Attributes:
        wins: bool.
        key_spies: int64, the Key Spies that count: 0 where the game ended before its time (D8).
        turns: int64, spies dealt with.
        decisions: int64, actions taken.
        outcomes: object (str), ``"win"``, ``"loss"`` or ``"no_double_agent"``.
        seconds: wall time of play, compilation of the engine left out.
    """

    wins: npt.NDArray[np.bool_]
    key_spies: npt.NDArray[np.int64]
    turns: npt.NDArray[np.int64]
    decisions: npt.NDArray[np.int64]
    outcomes: npt.NDArray[np.object_]
    seconds: float

    @property
    def columns(self) -> Columns:
        """The result as columns, outcomes by their codes."""
        return {
            "wins": self.wins,
            "key_spies": self.key_spies.astype(np.int8),
            "turns": self.turns.astype(np.int8),
            "decisions": self.decisions.astype(np.int16),
            "outcomes": np.searchsorted(_SORTED_OUTCOMES, self.outcomes.astype(str)).astype(
                np.int8
            ),
            "seconds": np.array([self.seconds]),
        }

    @classmethod
    def of(cls, columns: Columns) -> MatchResult:
        """The result that columns hold, among others."""
        return cls(
            columns["wins"],
            columns["key_spies"].astype(np.int64),
            columns["turns"].astype(np.int64),
            columns["decisions"].astype(np.int64),
            _SORTED_OUTCOMES[columns["outcomes"]].astype(object),
            float(columns["seconds"].sum()),
        )


@dataclass(frozen=True)
class PlayedDeal:
    """One game of a match, as it was played.

    Attributes:
        number: of the deal among the seeds, from 0.
        actions: in the order played.
        outcome, key_spies, turns: how it ended, as in :class:`MatchResult`.
    """

    number: int
    actions: tuple[Action, ...]
    outcome: str
    key_spies: int
    turns: int


class Watcher:
    """Looks on at a match, step by step; what it doesn't care for it leaves as here.

    All methods get the games, and which of them are meant: the slots that they occupy, int64 (k,),
    and the numbers of their deals among the seeds, int64 (k,). What the games hold is to be read
    only, and before the method returns.
    """

    def dealt(
        self, games: Games, slots: npt.NDArray[np.int64], deals: npt.NDArray[np.int64]
    ) -> None:
        """These games have been dealt."""

    def chosen(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> None:
        """In these games legal actions, int64 (k,), are about to be taken."""

    def stepped(
        self, games: Games, slots: npt.NDArray[np.int64], deals: npt.NDArray[np.int64]
    ) -> None:
        """They have been taken."""

    def ended(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        endings: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        """These games are over; ``endings`` is ``games.endings()``, of all slots."""


class Collector(Watcher):
    """A watcher that sums up what it has seen in columns."""

    @property
    def columns(self) -> Columns:
        """What was seen in the deals, in their order; to be read when all of them are over."""
        raise NotImplementedError


def play_deals(
    agent: Agent,
    seeds: Sequence[int],
    *,
    rules: Rules | None = None,
    observation: str = "recall",
    batch_size: int = 1024,
    progress: Callable[[int], None] | None = None,
    on_game: Callable[[PlayedDeal], None] | None = None,
    watchers: Sequence[Watcher] = (),
    start: Mapping[str, Any] | None = None,
) -> MatchResult:
    """Play each deal once, episode 0 of its seed, many side by side.

    A deal's spies and draws belong to its seed, so its result depends neither on the batch size nor
    on the other deals as long as the agent's choices do not. Reset an agent that plays by chance
    before, to make the match repeatable. An agent with a compiled policy (``agent.CompiledAgent``)
    plays in a kernel, with the same results, unless somebody looks on or there is a start.

    Args:
        agent: is shown copies of observation and mask, of those games only that are in play.
        seeds: D of them, at least one.
        rules: the rule set, None for the default.
        observation: ``"recall"`` or ``"table"``, what the agent reads.
        batch_size: games side by side, at least 1.
        progress: called with the number of deals that ended since the last call.
        on_game: called with each game when it has ended, in the order in which they end.
        watchers: look on at every step, see :class:`Watcher`.
        start: where all games begin, as the environment's ``start``; None for the usual start.

    Raises:
        ValueError: no seeds, a negative one, a batch size below 1, an unknown observation, or a bad
            start.
        IllegalActionError: the agent did not return one legal action for each game.
    """
    if not len(seeds):
        raise ValueError("there must be at least one deal to play")
    check_agent(agent, Rules.of(rules))
    if batch_size < 1:
        raise ValueError(f"the batch size must be at least 1, got {batch_size}")
    if on_game is not None:
        watchers = [*watchers, _GameLog(on_game)]
    step_by_step = observation != "recall" or bool(watchers) or start is not None
    if isinstance(agent, CompiledAgent) and not step_by_step:
        return _play_out_deals(agent, seeds, Rules.of(rules), progress)
    if progress is not None:
        watchers = [*watchers, _Progress(progress)]
    watching = _AllOf(watchers)
    num_deals = len(seeds)
    compile_engine()
    num_slots = min(batch_size, num_deals)
    games = Games(num_slots, rules=rules, observation=observation, start=start)
    result = _empty(num_deals)

    started = perf_counter()
    deals = np.arange(num_slots)  # the deal that each slot plays
    num_dealt = num_slots
    games.seed(range(num_slots), seeds[:num_slots])
    games.deal()
    watching.dealt(games, deals, deals)
    in_play = np.ones(num_slots, dtype=np.bool_)
    actions = np.zeros(num_slots, dtype=np.int64)
    while in_play.any():
        acting = np.flatnonzero(in_play)
        chosen = _choose(agent, games, acting, [seeds[deal] for deal in deals[acting]])
        actions[acting] = chosen
        watching.chosen(games, acting, deals[acting], chosen)
        games.step(actions, in_play)
        watching.stepped(games, acting, deals[acting])
        result.decisions[deals[acting]] += 1

        ended = acting[games.over[acting]]
        if not ended.size:
            continue
        endings = games.endings()
        _write_endings(result, deals[ended], endings, ended)
        watching.ended(games, ended, deals[ended], endings)
        again = ended[: num_deals - num_dealt]
        in_play[ended[len(again) :]] = False
        if again.size:
            deals[again] = np.arange(num_dealt, num_dealt + len(again))
            games.seed(again.tolist(), seeds[num_dealt : num_dealt + len(again)])
            games.deal(np.isin(np.arange(num_slots), again))
            watching.dealt(games, again, deals[again])
            num_dealt += len(again)
    return replace(result, seconds=perf_counter() - started)


def _choose(
    agent: Agent, games: Games, acting: npt.NDArray[np.int64], seeds: Sequence[int]
) -> npt.NDArray[np.int64]:
    """The agent's legal actions in the games that are in play, whose seeds are given.

    Raises:
        IllegalActionError: it did not return one for each.
    """
    masks = games.masks[acting]
    chosen = _one_each(agent.act(games.observations[acting], masks.copy()), len(acting))
    illegal = np.flatnonzero(~_are_legal(chosen, masks))
    if illegal.size:
        first = int(illegal[0])
        why = why_illegal(games.states[acting[first]], games.rules, int(chosen[first]))
        raise IllegalActionError(f"in the deal of seed {seeds[first]}: {why}")
    return chosen


def _empty(num_deals: int) -> MatchResult:
    return MatchResult(
        wins=np.zeros(num_deals, dtype=np.bool_),
        key_spies=np.zeros(num_deals, dtype=np.int64),
        turns=np.zeros(num_deals, dtype=np.int64),
        decisions=np.zeros(num_deals, dtype=np.int64),
        outcomes=np.empty(num_deals, dtype=np.object_),
        seconds=0.0,
    )


def _write_endings(
    result: MatchResult,
    deals: npt.NDArray[np.int64],
    endings: Mapping[str, npt.NDArray[Any]],
    slots: npt.NDArray[np.int64],
) -> None:
    """Write how the deals that were played in some slots ended."""
    result.wins[deals] = endings["is_success"][slots]
    result.key_spies[deals] = endings["key_spies"][slots]
    result.turns[deals] = endings["turns"][slots]
    result.outcomes[deals] = endings["outcome"][slots]


class _AllOf(Watcher):
    """Several that look on, as one."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = watchers

    def dealt(
        self, games: Games, slots: npt.NDArray[np.int64], deals: npt.NDArray[np.int64]
    ) -> None:
        for watcher in self._watchers:
            watcher.dealt(games, slots, deals)

    def chosen(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> None:
        for watcher in self._watchers:
            watcher.chosen(games, slots, deals, actions)

    def stepped(
        self, games: Games, slots: npt.NDArray[np.int64], deals: npt.NDArray[np.int64]
    ) -> None:
        for watcher in self._watchers:
            watcher.stepped(games, slots, deals)

    def ended(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        endings: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        for watcher in self._watchers:
            watcher.ended(games, slots, deals, endings)


class _Progress(Watcher):
    """Counts the deals that have ended."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress = progress

    def ended(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        endings: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        self._progress(len(slots))


class _GameLog(Watcher):
    """Tells of each game when it has ended, with its actions by name."""

    def __init__(self, on_game: Callable[[PlayedDeal], None]) -> None:
        self._on_game = on_game
        self._actions: dict[int, list[Action]] = {}

    def chosen(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> None:
        hands = games.states["hand"][slots]
        for deal, action, hand in zip(
            deals.tolist(), actions.tolist(), hands.tolist(), strict=True
        ):
            self._actions.setdefault(deal, []).append(games.table.decode(action, hand))

    def ended(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        endings: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        keys = "outcome", "key_spies", "turns"
        for slot, deal in zip(slots.tolist(), deals.tolist(), strict=True):
            ending = {key: endings[key][slot : slot + 1].tolist()[0] for key in keys}
            self._on_game(PlayedDeal(deal, tuple(self._actions.pop(deal, ())), **ending))


def _play_out_deals(
    agent: CompiledAgent,
    seeds: Sequence[int],
    rules: Rules,
    progress: Callable[[int], None] | None,
) -> MatchResult:
    """The same match with all of its decisions made inside one kernel."""
    compile_engine()
    compile_policy(agent.compiled_policy)
    started = perf_counter()
    played: list[PlayOuts] = []
    for first in range(0, len(seeds), _DEALS_AT_ONCE):
        some = seeds[first : first + _DEALS_AT_ONCE]
        try:
            played.append(play_out(deal_snapshots(some, rules), agent.compiled_policy, rules))
        except IllegalPolicyError as error:
            raise IllegalActionError(
                f"in the deal of seed {some[error.index]}: {error.why}"
            ) from None
        if progress is not None:
            progress(len(some))
    outcomes = np.concatenate([part.outcomes for part in played])
    return MatchResult(
        outcomes == WIN,
        np.concatenate([part.key_spies for part in played]),
        np.concatenate([part.turns for part in played]),
        np.concatenate([part.decisions for part in played]),
        np.array(OUTCOMES, dtype=object)[outcomes],
        seconds=perf_counter() - started,
    )


def _one_each(returned: Any, num_games: int) -> npt.NDArray[np.int64]:
    """What an agent returned, as int64 of shape (num_games,).

    Raises:
        IllegalActionError: it is anything but one whole number for each game.
    """
    actions = np.asarray(returned)
    if actions.shape != (num_games,) or actions.dtype.kind not in "iu":
        raise IllegalActionError(
            f"the agent must return whole numbers of shape ({num_games},), "
            f"got {actions.dtype} of shape {actions.shape}"
        )
    return actions.astype(np.int64)


def _are_legal(
    actions: npt.NDArray[np.int64], masks: npt.NDArray[np.int8]
) -> npt.NDArray[np.bool_]:
    """bool (N,): which of N actions the masks of shape (N, n) allow."""
    exist = (actions >= 0) & (actions < masks.shape[1])
    return exist & (masks[np.arange(len(actions)), np.where(exist, actions, 0)] != 0)
