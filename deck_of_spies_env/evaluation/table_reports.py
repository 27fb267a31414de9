"""What matches at tables of Skirmish amount to: one JSON document, and the tables that show it.

Every agent meets every other one: at a table of two in pairs, at larger ones alone against a table
full of the other. Each deal is played from every seat, and is one observation; intervals are those
of ``statistics.bounded_mean_interval`` over deals, of 95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import combinations, permutations
from typing import Any, TypedDict

import numpy as np
from rich.text import Text

import deck_of_spies_env
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.evaluation.ratings import rate
from deck_of_spies_env.evaluation.reports import new_table, wide_console, with_interval
from deck_of_spies_env.evaluation.statistics import bounded_mean_interval
from deck_of_spies_env.evaluation.tables import TableResult, play_tables
from deck_of_spies_env.skirmish.rules import Rules


class TableAgentReport(TypedDict):
    """One agent over all its matches; the rating is for tables of two only."""

    name: str
    win_rate: float
    win_rate_ci: list[float]
    mean_payoff: float
    mean_payoff_ci: list[float]
    rating: float | None
    rating_ci: list[float] | None
    decisions: int
    seconds: float


class TableComparison(TypedDict):
    """The first agent against the second in all other seats."""

    agents: list[str]
    win_rate: float
    win_rate_ci: list[float]
    mean_payoff: float
    mean_payoff_ci: list[float]
    mean_margin: float
    mean_rounds: float
    truncated: int


class TableReport(TypedDict):
    """The whole document."""

    version: str
    game: str
    num_players: int
    bank: str
    deals: int
    seed: int
    rules: dict[str, Any]
    agents: list[TableAgentReport]
    comparisons: list[TableComparison]


Match = tuple[int, int, TableResult]
"""Numbers of the first agent and of the one in all other seats, and how it went."""


def play_all_tables(
    agents: Sequence[Agent],
    seeds: Sequence[int],
    num_players: int,
    rules: Rules,
    play: Callable[[Sequence[Agent], int, int], TableResult] | None = None,
) -> list[Match]:
    """Every agent against every other: pairs at a table of two, else each against tables of each.

    Args:
        agents: k of them, at least two.
        seeds: of the deals.
        num_players: 2-4.
        rules: the rule set.
        play: how to play a match, given the agents at the table and the numbers of both; None for
            play_tables.
    """
    pairs = combinations(range(len(agents)), 2)
    if num_players > 2:
        pairs = permutations(range(len(agents)), 2)
    matches: list[Match] = []
    for first, second in pairs:
        table = [agents[first], *[agents[second]] * (num_players - 1)]
        result = play(table, first, second) if play else play_tables(table, seeds, rules=rules)
        matches.append((first, second, result))
    return matches


def make_table_report(
    names: Sequence[str],
    matches: Sequence[Match],
    *,
    seed: int,
    num_players: int,
    rules: Rules,
    bank: str = "test",
) -> TableReport:
    """The report on matches that were all played on the same deals.

    Args:
        names: of the agents.
        matches: of play_all_tables.
        seed: of the deals.
        num_players: 2-4.
        rules: that were played.
        bank: of the deals.

    Raises:
        ValueError: no matches.
    """
    if not matches:
        raise ValueError("a report needs at least two agents")
    return {
        "version": deck_of_spies_env.__version__,
        "game": "skirmish",
        "num_players": num_players,
        "bank": bank,
        "deals": len(matches[0][2].rounds),
        "seed": seed,
        "rules": asdict(rules),
        "agents": _agent_reports(names, matches, num_players),
        "comparisons": [_comparison(names, match) for match in matches],
    }


def _agent_reports(
    names: Sequence[str], matches: Sequence[Match], num_players: int
) -> list[TableAgentReport]:
    ratings = None
    if num_players == 2:
        shares = {(i, j): result.share_by_deal(0) for i, j, result in matches}
        ratings = rate(shares, len(names))
    reports: list[TableAgentReport] = []
    for number, name in enumerate(names):
        shares, payoffs, decisions, seconds = [], [], 0, 0.0
        for first, second, result in matches:
            if number not in (first, second) or (num_players > 2 and number != first):
                continue
            place = 0 if number == first else 1
            shares.append(result.share_by_deal(place))
            payoffs.append(result.payoff_by_deal(place))
            decisions += int(result.decisions[place])
            seconds += float(result.seconds[place])
        share, payoff = np.mean(shares, axis=0), np.mean(payoffs, axis=0)
        rating = ratings[number] if ratings else None
        reports.append(
            {
                "name": name,
                "win_rate": float(share.mean()),
                "win_rate_ci": list(bounded_mean_interval(share, 0, 1)),
                "mean_payoff": float(payoff.mean()),
                "mean_payoff_ci": list(bounded_mean_interval(payoff, -1, 1)),
                "rating": rating.rating if rating else None,
                "rating_ci": [rating.low, rating.high] if rating else None,
                "decisions": decisions,
                "seconds": seconds,
            }
        )
    return reports


def _comparison(names: Sequence[str], match: Match) -> TableComparison:
    first, second, result = match
    share, payoff = result.share_by_deal(0), result.payoff_by_deal(0)
    return {
        "agents": [names[first], names[second]],
        "win_rate": float(share.mean()),
        "win_rate_ci": list(bounded_mean_interval(share, 0, 1)),
        "mean_payoff": float(payoff.mean()),
        "mean_payoff_ci": list(bounded_mean_interval(payoff, -1, 1)),
        "mean_margin": float(result.margins[:, :, 0].mean()),
        "mean_rounds": float(result.rounds.mean()),
        "truncated": int(result.truncated.sum()),
    }


def print_table_report(report: TableReport) -> None:
    """Print the report's tables on stdout, as wide as they need unless a terminal sets a limit."""
    console = wide_console()
    console.print(Text(_headline(report)))
    console.print(_agent_table(report))
    console.print()
    console.print(_matrix(report))


def _headline(report: TableReport) -> str:
    n, default = report["num_players"], asdict(Rules())
    changed = {k: v for k, v in report["rules"].items() if v != default[k]}
    rules = ", ".join(f"{name}={value}" for name, value in changed.items()) or "default"
    against = "pairs" if n == 2 else f"each against {n - 1} of each"
    return (
        f"Skirmish for {n}: {report['deals']:,} deals from every seat, {against} "
        f"({report['bank']} bank, seed {report['seed']})\n"
        f"rules: {rules}; in brackets: 95% intervals\n"
    )


def _agent_table(report: TableReport) -> Any:
    rated = report["num_players"] == 2
    headings = [
        "share of wins, %",
        "payoff",
        *(["rating"] if rated else []),
        "decisions\nper second",
    ]
    table = new_table("agent", *headings)
    for agent in report["agents"]:
        cells = [
            with_interval(agent["win_rate"], agent["win_rate_ci"], 100),
            with_interval(agent["mean_payoff"], agent["mean_payoff_ci"], 1, "+"),
        ]
        if rated:
            cells.append(_rating(agent))
        speed = f"{agent['decisions'] / agent['seconds']:,.0f}" if agent["seconds"] else "-"
        table.add_row(Text(agent["name"]), *cells, speed)
    return table


def _rating(agent: TableAgentReport) -> Text:
    if agent["rating"] is None or agent["rating_ci"] is None:
        return Text("-")
    low, high = agent["rating_ci"]
    return Text(f"{agent['rating']:+.0f} [{low:+.0f}, {high:+.0f}]")


def _matrix(report: TableReport) -> Any:
    table = new_table("first - others", "share of wins, %", "payoff", "points ahead", "rounds")
    for pair in report["comparisons"]:
        table.add_row(
            Text(" - ".join(pair["agents"])),
            with_interval(pair["win_rate"], pair["win_rate_ci"], 100),
            with_interval(pair["mean_payoff"], pair["mean_payoff_ci"], 1, "+"),
            f"{pair['mean_margin']:+.1f}",
            f"{pair['mean_rounds']:.1f}",
        )
    return table
