"""Records of games that agents play: made while matches are played, by the loops that play them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.evaluation.matches import PlayedDeal, play_deals
from deck_of_spies_env.evaluation.tables import PlayedTable, play_tables
from deck_of_spies_env.records.format import (
    GameRecord,
    SkirmishRecord,
    SkirmishResult,
    SolitaireRecord,
    SolitaireResult,
    plain,
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
