"""What matches at tables of Skirmish amount to: one JSON document, and the tables that show it.

Every agent meets every other one: at a table of two in pairs, at larger ones alone against a table
full of the other. Each deal is played from every seat, and is one observation; the intervals are
those of ``intervals``, of 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations, permutations
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
from rich.console import RenderableType
from rich.text import Text

import deck_of_spies_env
from deck_of_spies_env.evaluation.intervals import Intervals
from deck_of_spies_env.evaluation.printing import new_table, print_parts, with_interval
from deck_of_spies_env.evaluation.ratings import rate
from deck_of_spies_env.evaluation.stopping import (
    FixedDeals,
    Stopping,
    StoppingRule,
    in_words,
    interval_note,
)
from deck_of_spies_env.evaluation.tables import TableResult
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
    stopping: Stopping
    agents: list[TableAgentReport]
    comparisons: list[TableComparison]


Match = tuple[int, int, TableResult]
"""Numbers of the first agent and of the one in all other seats, and how it went."""


def pairs_of(num_agents: int, num_players: int) -> list[tuple[int, int]]:
    """Who meets whom, first agent and others: all pairs at a table of two, else in both orders.

    Args:
        num_agents: at least two.
        num_players: 2-4.
    """
    choose = combinations if num_players == 2 else permutations
    return list(choose(range(num_agents), 2))


def make_table_report(
    names: Sequence[str],
    matches: Sequence[Match],
    *,
    seed: int,
    num_players: int,
    rules: Rules,
    bank: str = "test",
    rule: StoppingRule | None = None,
    deals_at_most: int | None = None,
) -> TableReport:
    """The report on matches that were all played on the same deals.

    Args:
        names: of the agents.
        matches: of all pairs_of the agents.
        seed: of the deals.
        num_players: 2-4.
        rules: that were played.
        bank: of the deals.
        rule, deals_at_most: as of make_report.

    Raises:
        ValueError: no matches.
    """
    if not matches:
        raise ValueError("a report needs at least two agents")
    deals, rule = len(matches[0][2].rounds), rule or FixedDeals()
    return {
        "version": deck_of_spies_env.__version__,
        "game": "skirmish",
        "num_players": num_players,
        "bank": bank,
        "deals": deals,
        "seed": seed,
        "rules": asdict(rules),
        "stopping": rule.stopping(deals_at_most or deals),
        "agents": _agent_reports(names, matches, num_players, rule.intervals),
        "comparisons": [_comparison(names, match, rule.intervals) for match in matches],
    }


def _agent_reports(
    names: Sequence[str], matches: Sequence[Match], num_players: int, intervals: Intervals
) -> list[TableAgentReport]:
    ratings = None
    if num_players == 2:
        shares = {(i, j): result.share_by_deal(0) for i, j, result in matches}
        ratings = rate(shares, len(names))
    reports: list[TableAgentReport] = []
    for number, name in enumerate(names):
        played = _matches_of(number, matches, num_players)
        share = share_of(number, matches, num_players)
        payoff = np.mean([result.payoff_by_deal(place) for place, result in played], axis=0)
        decisions = sum(int(result.decisions[place]) for place, result in played)
        seconds = sum(float(result.seconds[place]) for place, result in played)
        rating = ratings[number] if ratings else None
        reports.append(
            {
                "name": name,
                "win_rate": float(share.mean()),
                "win_rate_ci": list(intervals.mean(share, 0, 1)),
                "mean_payoff": float(payoff.mean()),
                "mean_payoff_ci": list(intervals.mean(payoff, -1, 1)),
                "rating": rating.rating if rating else None,
                "rating_ci": [rating.low, rating.high] if rating else None,
                "decisions": decisions,
                "seconds": seconds,
            }
        )
    return reports


def _matches_of(
    number: int, matches: Sequence[Match], num_players: int
) -> list[tuple[int, TableResult]]:
    """The matches that count for an agent, and its place in each: at larger tables the first."""
    return [
        ((first, second).index(number), result)
        for first, second, result in matches
        if number == first or (num_players == 2 and number == second)
    ]


def share_of(number: int, matches: Sequence[Match], num_players: int) -> npt.NDArray[np.float64]:
    """An agent's share of wins in each deal, over its matches: float64 (D,)."""
    played = _matches_of(number, matches, num_players)
    return np.mean([result.share_by_deal(place) for place, result in played], axis=0)


def _comparison(names: Sequence[str], match: Match, intervals: Intervals) -> TableComparison:
    first, second, result = match
    share, payoff = result.share_by_deal(0), result.payoff_by_deal(0)
    return {
        "agents": [names[first], names[second]],
        "win_rate": float(share.mean()),
        "win_rate_ci": list(intervals.mean(share, 0, 1)),
        "mean_payoff": float(payoff.mean()),
        "mean_payoff_ci": list(intervals.mean(payoff, -1, 1)),
        "mean_margin": float(result.margins[:, :, 0].mean()),
        "mean_rounds": float(result.rounds.mean()),
        "truncated": int(result.truncated.sum()),
    }


def print_table_report(report: TableReport) -> None:
    """Print the report's tables on stdout, as wide as they need unless a terminal sets a limit."""
    print_parts(table_report_tables(report))


def table_report_tables(report: TableReport) -> list[RenderableType]:
    """The report as a headline and tables."""
    return [Text(_headline(report)), _agent_table(report), "", _matrix(report)]


def _headline(report: TableReport) -> str:
    n, default = report["num_players"], asdict(Rules())
    changed = {k: v for k, v in report["rules"].items() if v != default[k]}
    rules = ", ".join(f"{name}={value}" for name, value in changed.items()) or "default"
    against = "pairs" if n == 2 else f"each against {n - 1} of each"
    lines = [
        f"Skirmish for {n}: {report['deals']:,} deals from every seat, {against} "
        f"({report['bank']} bank, seed {report['seed']})",
        in_words(report["stopping"], report["deals"], [it["name"] for it in report["agents"]]),
        f"rules: {rules}; in brackets: {interval_note(report['stopping'])}",
    ]
    return "\n".join(filter(None, lines)) + "\n"


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
