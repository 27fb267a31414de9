"""Games for the viewer out of what was judged: chosen by the results, found again in the logs."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from io import BytesIO
from itertools import islice

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.evaluation.behaviour import actions_of_deal
from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.evaluation.judging import SolitaireJudgement, TableJudgement
from deck_of_spies_env.evaluation.runs import RECORDS
from deck_of_spies_env.evaluation.seeds import agent_seed, deal_seeds
from deck_of_spies_env.page.choosing import choose_deals, choose_tables
from deck_of_spies_env.page.viewing import ViewedGame, view_game
from deck_of_spies_env.records import GameRecord, record_of_actions
from deck_of_spies_env.records.format import from_line

_SAMPLES_OF_TABLES = 32
"""Playouts of each play: a game of Skirmish has hundreds of decisions, and each takes long."""


def view_deals(judgement: SolitaireJudgement, played: Sequence[Columns]) -> list[ViewedGame]:
    """Games of Deck of Spies, with the opinions of all agents.

    Args:
        judgement: with an ``ActionLog`` among its collectors.
        played: what it came to, one for each agent.
    """
    agents, deals = _agents_of(judgement), judgement.deals
    matches = list(zip(judgement.names, judgement.results(played), strict=True))
    games: list[ViewedGame] = []
    for chosen in choose_deals(matches, judgement.rules):
        [seed] = deal_seeds(deals.bank, deals.seed, 1, first=chosen.number)
        record = record_of_actions(
            actions_of_deal(played[chosen.match], chosen.number),
            seed,
            name=judgement.names[chosen.match],
            rules=judgement.rules,
        )
        games.append(view_game(record, agents, title=chosen.title, reason=chosen.reason))
    return games


def view_tables(judgement: TableJudgement, played: Sequence[Columns]) -> list[ViewedGame]:
    """Games of Skirmish, with the opinions of the agents at the table; this can take minutes.

    Args:
        judgement: with a recorder.
        played: what it came to, one for each match.
    """
    agents = _agents_of(judgement)
    games: list[ViewedGame] = []
    for chosen in choose_tables(judgement.names, judgement.results(played)):
        record = _nth_record(played[chosen.match], chosen.number)
        games.append(
            view_game(
                record,
                {name: agents[name] for name in sorted(set(record.players))},
                title=chosen.title,
                reason=chosen.reason,
                samples=_SAMPLES_OF_TABLES,
            )
        )
    return games


def _agents_of(judgement: SolitaireJudgement | TableJudgement) -> dict[str, Agent]:
    agents = {name: make() for name, make in zip(judgement.names, judgement.makers, strict=True)}
    for agent in agents.values():
        agent.reset(agent_seed(judgement.deals.seed))
    return agents


def _nth_record(columns: Columns, number: int) -> GameRecord:
    with gzip.open(BytesIO(columns[RECORDS].tobytes())) as lines:
        return from_line(next(islice(lines, number, None)))
