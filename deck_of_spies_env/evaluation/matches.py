"""Agents on given deals: a match is one agent, a list of deal seeds, and how each deal ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Agent, CompiledAgent
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


def play_deals(
    agent: Agent,
    seeds: Sequence[int],
    *,
    rules: Rules | None = None,
    observation: str = "recall",
    batch_size: int = 1024,
    progress: Callable[[int], None] | None = None,
    on_game: Callable[[PlayedDeal], None] | None = None,
    start: Mapping[str, Any] | None = None,
) -> MatchResult:
    """Play each deal once, episode 0 of its seed, many side by side.

    A deal's spies and draws belong to its seed, so its result depends neither on the batch size nor
    on the other deals as long as the agent's choices do not. Reset an agent that plays by chance
    before, to make the match repeatable. An agent with a compiled policy (``agent.CompiledAgent``)
    plays in a kernel, with the same results, unless there is ``on_game`` or a start.

    Args:
        agent: is shown copies of observation and mask, of those games only that are in play.
        seeds: D of them, at least one.
        rules: the rule set, None for the default.
        observation: ``"recall"`` or ``"table"``, what the agent reads.
        batch_size: games side by side, at least 1.
        progress: called with the number of deals that ended since the last call.
        on_game: called with each game when it has ended, in the order in which they end.
        start: where all games begin, as the environment's ``start``; None for the usual start.

    Raises:
        ValueError: no seeds, a negative one, a batch size below 1, an unknown observation, or a bad
            start.
        IllegalActionError: the agent did not return one legal action for each game.
    """
    if not seeds:
        raise ValueError("there must be at least one deal to play")
    if batch_size < 1:
        raise ValueError(f"the batch size must be at least 1, got {batch_size}")
    step_by_step = observation != "recall" or on_game is not None or start is not None
    if isinstance(agent, CompiledAgent) and not step_by_step:
        return _play_out_deals(agent, seeds, Rules.of(rules), progress)
    num_deals = len(seeds)
    compile_engine()
    num_slots = min(batch_size, num_deals)
    games = Games(num_slots, rules=rules, observation=observation, start=start)
    moves = _Moves(games)
    result = _empty(num_deals)

    started = perf_counter()
    deals = np.arange(num_slots)  # the deal that each slot plays
    num_dealt = num_slots
    games.seed(range(num_slots), seeds[:num_slots])
    games.deal()
    in_play = np.ones(num_slots, dtype=np.bool_)
    actions = np.zeros(num_slots, dtype=np.int64)
    while in_play.any():
        acting = np.flatnonzero(in_play)
        masks = games.masks[acting]
        chosen = _one_each(agent.act(games.observations[acting], masks.copy()), len(acting))
        illegal = np.flatnonzero(~_are_legal(chosen, masks))
        if illegal.size:
            slot, action = int(acting[illegal[0]]), int(chosen[illegal[0]])
            raise IllegalActionError(
                f"in the deal of seed {seeds[int(deals[slot])]}: "
                f"{why_illegal(games.states[slot], games.rules, action)}"
            )
        actions[acting] = chosen
        if on_game is not None:
            moves.note(acting, chosen)
        games.step(actions, in_play)
        result.decisions[deals[acting]] += 1

        ended = acting[games.over[acting]]
        if not ended.size:
            continue
        endings = games.endings()
        _write_endings(result, deals[ended], endings, ended)
        if on_game is not None:
            for slot in ended.tolist():
                on_game(moves.take(slot, int(deals[slot]), endings))
        again = ended[: num_deals - num_dealt]
        in_play[ended[len(again) :]] = False
        if again.size:
            deals[again] = np.arange(num_dealt, num_dealt + len(again))
            games.seed(again.tolist(), seeds[num_dealt : num_dealt + len(again)])
            games.deal(np.isin(np.arange(num_slots), again))
            num_dealt += len(again)
        if progress is not None:
            progress(len(ended))
    return replace(result, seconds=perf_counter() - started)


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


class _Moves:
    """What has been played in each slot of N games, by name."""

    def __init__(self, games: Games) -> None:
        self._games = games
        self._actions: list[list[Action]] = [[] for _ in range(len(games))]

    def note(self, slots: npt.NDArray[np.int64], actions: npt.NDArray[np.int64]) -> None:
        """Keep legal actions before they are taken, while the hands that they name are there."""
        hands = self._games.states["hand"][slots]
        for slot, action, hand in zip(
            slots.tolist(), actions.tolist(), hands.tolist(), strict=True
        ):
            self._actions[slot].append(self._games.table.decode(action, hand))

    def take(self, slot: int, number: int, endings: Mapping[str, npt.NDArray[Any]]) -> PlayedDeal:
        """The game of a deal that has ended in a slot, which is then free for the next one."""
        actions, self._actions[slot] = tuple(self._actions[slot]), []
        keys = "outcome", "key_spies", "turns"
        ending = {key: endings[key][slot : slot + 1].tolist()[0] for key in keys}
        return PlayedDeal(number, actions, **ending)


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
