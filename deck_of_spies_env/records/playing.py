"""Records of games that agents play: made while matches are played, by the loops that play them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Actions, Agent
from deck_of_spies_env.evaluation.matches import PlayedDeal, play_deals
from deck_of_spies_env.evaluation.runs import Recorder
from deck_of_spies_env.evaluation.tables import PlayedTable, play_tables
from deck_of_spies_env.records.format import (
    GameRecord,
    SkirmishRecord,
    SkirmishResult,
    SolitaireRecord,
    SolitaireResult,
    plain,
    to_line,
)
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules as SolitaireRules

_RecordT = TypeVar("_RecordT", bound=GameRecord)


def record_deals(
    agent: Agent,
    seeds: Sequence[int],
    *,
    name: str,
    rules: SolitaireRules | None = None,
    start: Mapping[str, Any] | None = None,
    observation: str = "recall",
    batch_size: int = 1024,
) -> list[SolitaireRecord]:
    """Play each deal of Deck of Spies once, see ``play_deals``.

    Args:
        agent: who plays.
        seeds: of the deals.
        name: of the agent.
        rules: the rule set, None for the default.
        start: where all games begin, as the environment's ``start``; None for the usual start.
        observation: ``"recall"`` or ``"table"``, what the agent reads.
        batch_size: games side by side.

    Returns:
        One record for each deal, in their order.

    Raises:
        ValueError, IllegalActionError: as play_deals.
    """
    records: list[SolitaireRecord] = []
    start = plain(start)  # before it is read, as an iterator can be read only once
    play_deals(
        agent,
        seeds,
        rules=rules,
        observation=observation,
        batch_size=batch_size,
        on_game=deal_recorder(records.append, name=name, seeds=seeds, rules=rules, start=start),
        start=start,
    )
    return records


def record_tables(
    agents: Sequence[Agent],
    seeds: Sequence[int],
    *,
    names: Sequence[str],
    rules: SkirmishRules | None = None,
    start: Mapping[str, Any] | None = None,
    batch_size: int = 1024,
) -> list[SkirmishRecord]:
    """Play each deal of Skirmish once for each rotation of the seats, see ``play_tables``.

    Args:
        agents: n of them, 2-4.
        seeds: D of them, of the deals.
        names: of the agents.
        rules: the rule set, None for the default.
        start: where all games begin, as ``options["table"]`` of the environment; None to deal.
        batch_size: games side by side.

    Returns:
        D times n records, by deal and then by rotation.

    Raises:
        ValueError, IllegalActionError: as play_tables.
    """
    records: list[SkirmishRecord] = []
    start = plain(start)
    play_tables(
        agents,
        seeds,
        rules=rules,
        batch_size=batch_size,
        on_game=table_recorder(records.append, names=names, seeds=seeds, rules=rules, start=start),
        start=start,
    )
    return records


def deal_recorder(
    write: Callable[[SolitaireRecord], None],
    *,
    name: str,
    seeds: Sequence[int],
    rules: SolitaireRules | None = None,
    start: Mapping[str, Any] | None = None,
) -> Callable[[PlayedDeal], None]:
    """An ``on_game`` for ``play_deals`` that writes a record of each game, by deal.

    Args:
        write: takes the records.
        name: of the agent.
        seeds, rules, start: as play_deals is given them.
    """
    rule_set, begun = SolitaireRules.of(rules), plain(start)
    write_next = _in_order(write)

    def record(game: PlayedDeal) -> None:
        made = SolitaireRecord(
            rules=rule_set,
            seed=int(seeds[game.number]),
            players=(name,),
            actions=tuple(" ".join((kind, *cards)) for kind, cards in game.actions),
            result=SolitaireResult(game.outcome, game.key_spies, game.turns),
            start=begun,
        )
        write_next(game.number, made)

    return record


def table_recorder(
    write: Callable[[SkirmishRecord], None],
    *,
    names: Sequence[str],
    seeds: Sequence[int],
    rules: SkirmishRules | None = None,
    start: Mapping[str, Any] | None = None,
) -> Callable[[PlayedTable], None]:
    """An ``on_game`` for ``play_tables`` that writes a record of each game, by deal and rotation.

    Args:
        write: takes the records.
        names: of the agents, in the order in which play_tables is given them.
        seeds, rules, start: as play_tables is given them.
    """
    rule_set, begun, n = SkirmishRules.of(rules), plain(start), len(names)
    write_next = _in_order(write)

    def record(game: PlayedTable) -> None:
        deal, rotation = divmod(game.number, n)
        made = SkirmishRecord(
            rules=rule_set,
            seed=int(seeds[deal]),
            players=tuple(names[(seat - rotation) % n] for seat in range(n)),
            actions=tuple(" ".join(step) for step in game.actions),
            result=SkirmishResult(game.payoffs, game.totals, game.rounds, game.truncated),
            start=begun,
        )
        write_next(game.number, made)

    return record


def deal_lines(name: str, rules: SolitaireRules | None = None) -> Recorder:
    """What records the deals of a run as lines, see ``evaluation.runs``; it can be pickled.

    Args:
        name: of the agent.
        rules: the rule set, None for the default.
    """
    return partial(_lines, deal_recorder, name=name, rules=rules)


def table_lines(names: Sequence[str], rules: SkirmishRules | None = None) -> Recorder:
    """Likewise for the tables of a run.

    Args:
        names: of the agents, in the order in which play_tables is given them.
        rules: the rule set, None for the default.
    """
    return partial(_lines, table_recorder, names=names, rules=rules)


def _lines(
    make_recorder: Callable[..., Callable[[Any], None]],
    take: Callable[[bytes], None],
    seeds: Sequence[int],
    **options: Any,
) -> Callable[[Any], None]:
    def write(record: GameRecord) -> None:
        take(to_line(record))

    return make_recorder(write, seeds=seeds, **options)


def record_of_actions(
    actions: Sequence[int] | npt.NDArray[Any],
    seed: int,
    *,
    name: str,
    rules: SolitaireRules | None = None,
) -> SolitaireRecord:
    """The record of a deal from the indices of its actions, as an ``ActionLog`` keeps them.

    Args:
        actions: in the order played, to the end of the game.
        seed: of the deal.
        name: of the agent.
        rules: the rule set, None for the default.

    Raises:
        IllegalActionError: an action that is not legal.
        ValueError: actions that end before the game does, or go on after it.
    """
    left = iter(actions)
    [record] = record_deals(_Script(left), [seed], name=name, rules=rules, batch_size=1)
    if next(left, None) is not None:
        raise ValueError(f"the game of seed {seed} ends before its actions do")
    return record


class _Script:
    """Plays what it was told."""

    def __init__(self, actions: Iterator[Any]) -> None:
        self._actions = actions

    def reset(self, seed: int) -> None:
        """Nothing is left to chance."""

    def act(self, observation: npt.NDArray[Any], action_mask: npt.NDArray[Any]) -> Actions:
        """The next action.

        Raises:
            ValueError: there is none.
        """
        action = next(self._actions, None)
        if action is None:
            raise ValueError("the actions end before the game does")
        return np.array([action], np.int64)


def _in_order(write: Callable[[_RecordT], None]) -> Callable[[int, _RecordT], None]:
    """Takes numbered records in any order, and writes each as soon as all before it are written.

    Few wait at a time, as games that are played side by side end at about the same time. So a file
    does not depend on the batch size.
    """
    waiting: dict[int, _RecordT] = {}
    num_written = 0

    def take(number: int, record: _RecordT) -> None:
        nonlocal num_written
        waiting[number] = record
        while num_written in waiting:
            write(waiting.pop(num_written))
            num_written += 1

    return take
