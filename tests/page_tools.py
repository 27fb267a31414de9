"""Pages for the tests of the report: matches of a few deals, with games to step through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from agents import make_agent
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.reports import make_report
from deck_of_spies_env.evaluation.table_reports import Match, make_table_report, pairs_of
from deck_of_spies_env.evaluation.tables import play_tables
from deck_of_spies_env.page import (
    Curve,
    CurvePoint,
    ViewedGame,
    choose_deals,
    choose_tables,
    make_page,
    view_game,
)
from deck_of_spies_env.records import GameRecord, deal_recorder, record_tables, table_recorder
from deck_of_spies_env.skirmish.bots import make_bot
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules

NASTY = "<b>bold</b> & \"</script>\" 'x'"
"""A name that would break a page if it went in as it is."""

NUM_DEALS = 60


@dataclass(frozen=True)
class Made:
    """A page, and what it was made of."""

    html: str
    report: Any
    games: list[ViewedGame]


def curve(name: str) -> Curve:
    """An agent that gets better."""
    points = ((1, 0.2), (2, 0.5), (3, 0.55))
    return Curve(name, tuple(CurvePoint(10**6 * n, p, p - 0.1, p + 0.1) for n, p in points))


@cache
def solitaire_page() -> Made:
    """A page of Deck of Spies: three agents, one with a nasty name, one with probabilities."""
    agents = {name: make_agent(name) for name in ("greedy", "random", "linear")}
    agents[NASTY] = agents.pop("linear")
    matches: list[tuple[str, MatchResult]] = []
    records: list[list[GameRecord]] = []
    seeds = range(NUM_DEALS)
    for name, agent in agents.items():
        agent.reset(1)
        records.append([])
        recorder = deal_recorder(records[-1].append, name=name, seeds=seeds)
        matches.append((name, play_deals(agent, seeds, on_game=recorder)))
    report = make_report(matches, seed=0, rules=Rules())
    games = [
        view_game(records[it.match][it.number], agents, title=it.title, reason=it.reason, samples=8)
        for it in choose_deals(matches)
    ]
    html = make_page(report, games, [curve(NASTY)], command="evaluate <all>", versions={"x": "1"})
    return Made(html, report, games)


@cache
def skirmish_page() -> Made:
    """A page of Skirmish for three players: a bot and a nasty one."""
    names = ["rank", NASTY]
    agents = [make_bot(name, num_players=3) for name in ("rank", "random")]
    matches: list[Match] = []
    records: list[list[GameRecord]] = []
    seeds = range(10)
    for first, others in pairs_of(2, 3):
        records.append([])
        at_table = [names[first], *[names[others]] * 2]
        recorder = table_recorder(records[-1].append, names=at_table, seeds=seeds)
        table = [agents[first], *[agents[others]] * 2]
        matches.append((first, others, play_tables(table, seeds, on_game=recorder)))
    report = make_table_report(names, matches, seed=0, num_players=3, rules=SkirmishRules())
    advisers = dict(zip(names, agents, strict=True))
    games = [
        view_game(
            records[it.match][it.number], advisers, title=it.title, reason=it.reason, samples=2
        )
        for it in choose_tables(names, matches)[-3:]
    ]
    jokers = {"hand": [["*", "*"], ["4c", "5c", "6c"], ["7c", "8c", "9c"]]}
    high = make_bot("high", num_players=3)
    [record, *_] = record_tables([high] * 3, [1], names=[NASTY] * 3, start=jokers)
    games.append(view_game(record, {NASTY: high}, title="Jokers", samples=2))
    return Made(make_page(report, games), report, games)
