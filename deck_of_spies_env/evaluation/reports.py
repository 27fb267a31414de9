"""What matches on common deals amount to: one JSON document, and the tables that show it.

The intervals are those of ``intervals``, of 95% one by one; only the band of a profile covers all
of its points at once. The p-values of all pairs are adjusted together by Holm's procedure; there
are none where the number of deals depends on what was seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any, TypedDict

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

import deck_of_spies_env
from deck_of_spies_env.evaluation import statistics
from deck_of_spies_env.evaluation.behaviour import (
    RECRUITED,
    Mean,
    behaviour_differences,
    behaviour_means,
    behaviour_tables,
)
from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.evaluation.intervals import Intervals
from deck_of_spies_env.evaluation.luck_reports import (
    LUCK,
    WithoutLuck,
    luck_differences,
    luck_means,
    luck_table,
)
from deck_of_spies_env.evaluation.matches import MatchResult
from deck_of_spies_env.evaluation.printing import (
    new_table,
    p_value_text,
    print_parts,
    with_interval,
)
from deck_of_spies_env.evaluation.statistics import MAX_KEY_SPIES
from deck_of_spies_env.evaluation.stopping import (
    FixedDeals,
    Stopping,
    StoppingRule,
    in_words,
    interval_note,
)
from deck_of_spies_env.solitaire.rules import Rules


class AgentReport(TypedDict):
    """One agent: rates are fractions of the deals, intervals [low, high].

    ``behaviour`` and ``without_luck`` are None unless they were asked for.
    """

    name: str
    wins: int
    win_rate: float
    win_rate_ci: list[float]
    mean_key_spies: float
    mean_key_spies_ci: list[float]
    key_spies_at_least: dict[str, float]
    key_spies_at_least_band: dict[str, list[float]]
    all_key_spies_ci: list[float]
    decisions: int
    seconds: float
    behaviour: dict[str, Mean] | None
    without_luck: dict[str, WithoutLuck] | None


class Comparison(TypedDict):
    """Two agents on the same deals; differences are the first less the second.

    After a single deal the interval of Key Spies is None. So are p-values where they do not hold,
    and ``behaviour`` and ``without_luck`` unless they were asked for.
    """

    agents: list[str]
    win_rate_difference: float
    win_rate_difference_ci: list[float]
    wins_only_first: int
    wins_only_second: int
    mcnemar_p: float | None
    mcnemar_p_holm: float | None
    mean_key_spies_difference: float
    mean_key_spies_difference_ci: list[float] | None
    behaviour: dict[str, Mean] | None
    without_luck: dict[str, WithoutLuck] | None


class Report(TypedDict):
    """The whole document."""

    version: str
    bank: str
    deals: int
    seed: int
    rules: dict[str, Any]
    stopping: Stopping
    agents: list[AgentReport]
    comparisons: list[Comparison]


def make_report(
    matches: Sequence[tuple[str, MatchResult]],
    *,
    seed: int,
    rules: Rules,
    bank: str = "test",
    rule: StoppingRule | None = None,
    deals_at_most: int | None = None,
    columns: Sequence[Columns] | None = None,
) -> Report:
    """The report on matches that were all played on the same deals.

    Args:
        matches: name and result of each agent, at least one.
        seed: of the deals.
        rules: that were played.
        bank: of the deals.
        rule: that has looked at the matches, None for a fixed number of deals.
        deals_at_most: that there would have been, None for as many as there are.
        columns: of the matches; what a BehaviourCollector or a LuckCollector has seen is reported.

    Raises:
        ValueError: no matches, or matches of different numbers of deals.
    """
    sizes = {len(result.wins) for _, result in matches}
    if len(sizes) != 1:
        raise ValueError(f"a report needs matches on the same deals, got {sorted(sizes)} deals")
    deals, rule = sizes.pop(), rule or FixedDeals()
    seen = columns or [{}] * len(matches)
    return {
        "version": deck_of_spies_env.__version__,
        "bank": bank,
        "deals": deals,
        "seed": seed,
        "rules": asdict(rules),
        "stopping": rule.stopping(deals_at_most or deals),
        "agents": [
            _agent_report(name, result, rule.intervals, its)
            for (name, result), its in zip(matches, seen, strict=True)
        ],
        "comparisons": _comparisons(matches, rule, seen),
    }


def to_json(report: Mapping[str, Any]) -> str:
    """The report as JSON text, without NaN or infinities."""
    return json.dumps(report, indent=2, allow_nan=False) + "\n"


def print_report(report: Report) -> None:
    """Print the report's tables on stdout, as wide as they need unless a terminal sets a limit."""
    print_parts(report_tables(report))


def report_tables(report: Report) -> list[RenderableType]:
    """The report as a headline and tables."""
    parts: list[RenderableType] = [Text(_headline(report)), _agent_table(report)]
    if report["comparisons"]:
        parts += ["", _comparison_table(report["comparisons"])]
    lucky = [(it["name"], it["without_luck"]) for it in report["agents"] if it["without_luck"]]
    if lucky:
        parts += ["", luck_table("agent", lucky)]
    lucky = [
        (" - ".join(it["agents"]), it["without_luck"])
        for it in report["comparisons"]
        if it["without_luck"]
    ]
    if lucky:
        parts += ["", luck_table("first - second", lucky, "+")]
    agents = [(it["name"], it["behaviour"]) for it in report["agents"] if it["behaviour"]]
    pairs = [
        (" - ".join(it["agents"]), it["behaviour"])
        for it in report["comparisons"]
        if it["behaviour"]
    ]
    if agents:
        for table in (*behaviour_tables(agents, pairs), _profile_table(report)):
            parts += ["", table]
    return parts


def _agent_report(
    name: str, result: MatchResult, intervals: Intervals, columns: Columns
) -> AgentReport:
    num_deals, wins = len(result.wins), int(np.count_nonzero(result.wins))
    at_least = statistics.survival_counts(result.key_spies)
    band = intervals.band(result.key_spies)
    return {
        "name": name,
        "wins": wins,
        "win_rate": wins / num_deals,
        "win_rate_ci": list(intervals.rate(result.wins)),
        "mean_key_spies": float(np.mean(result.key_spies)),
        "mean_key_spies_ci": list(intervals.mean(result.key_spies, 0, MAX_KEY_SPIES)),
        "key_spies_at_least": {str(number): share for number, share in at_least.items()},
        "key_spies_at_least_band": {str(number): list(ends) for number, ends in band.items()},
        "all_key_spies_ci": list(intervals.rate(result.key_spies == MAX_KEY_SPIES)),
        "decisions": int(np.sum(result.decisions)),
        "seconds": result.seconds,
        "behaviour": behaviour_means(columns) if RECRUITED in columns else None,
        "without_luck": luck_means(columns) if LUCK in columns else None,
    }


def _comparisons(
    matches: Sequence[tuple[str, MatchResult]],
    rule: StoppingRule,
    columns: Sequence[Columns],
) -> list[Comparison]:
    pairs = list(combinations(zip(matches, columns, strict=True), 2))
    tests = [statistics.mcnemar_exact(a.wins, b.wins) for ((_, a), _), ((_, b), _) in pairs]
    adjusted = statistics.holm([test.p_value for test in tests]).tolist() if tests else []
    tested = rule.p_values_hold
    comparisons: list[Comparison] = []
    for (first, second), test, p_holm in zip(pairs, tests, adjusted, strict=True):
        ((name, a), seen), ((other_name, b), other) = first, second
        difference = a.key_spies - b.key_spies
        key_spies = rule.intervals.mean_difference(difference, MAX_KEY_SPIES)
        comparisons.append(
            {
                "agents": [name, other_name],
                "win_rate_difference": (test.first_only - test.second_only) / len(a.wins),
                "win_rate_difference_ci": list(rule.intervals.win_difference(a.wins, b.wins)),
                "wins_only_first": test.first_only,
                "wins_only_second": test.second_only,
                "mcnemar_p": test.p_value if tested else None,
                "mcnemar_p_holm": p_holm if tested else None,
                "mean_key_spies_difference": float(np.mean(difference)),
                "mean_key_spies_difference_ci": list(key_spies) if key_spies else None,
                "behaviour": behaviour_differences(seen, other) if RECRUITED in seen else None,
                "without_luck": luck_differences(seen, other) if LUCK in seen else None,
            }
        )
    return comparisons


# --- Tables ---------------------------------------------------------------------------------------


def _headline(report: Report) -> str:
    changed = _changed_rules(report["rules"])
    deals = "1 deal" if report["deals"] == 1 else f"{report['deals']:,} deals, the same for all"
    rules = ", ".join(f"{name}={value}" for name, value in changed.items()) or "default"
    lines = [
        f"{deals} ({report['bank']} bank, seed {report['seed']})",
        in_words(report["stopping"], report["deals"], [it["name"] for it in report["agents"]]),
        f"rules: {rules}; in brackets: {interval_note(report['stopping'])}",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _changed_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    default = asdict(Rules())
    return {name: value for name, value in rules.items() if value != default[name]}


def _agent_table(report: Report) -> Table:
    table = new_table("agent", "wins, %", "Key Spies", "all 12, %", "decisions\nper second")
    for agent in report["agents"]:
        all_12 = agent["key_spies_at_least"][str(MAX_KEY_SPIES)]
        all_12_interval = agent["all_key_spies_ci"]
        table.add_row(
            Text(agent["name"]),
            with_interval(agent["win_rate"], agent["win_rate_ci"], 100),
            with_interval(agent["mean_key_spies"], agent["mean_key_spies_ci"]),
            with_interval(all_12, all_12_interval, 100),
            f"{agent['decisions'] / agent['seconds']:,.0f}" if agent["seconds"] else "-",
        )
    return table


def _comparison_table(comparisons: Sequence[Comparison]) -> Table:
    table = new_table("first - second", "wins, % points", "wins alone", "p (Holm)", "Key Spies")
    for pair in comparisons:
        table.add_row(
            Text(" - ".join(pair["agents"])),
            with_interval(pair["win_rate_difference"], pair["win_rate_difference_ci"], 100, "+"),
            f"{pair['wins_only_first']:,} : {pair['wins_only_second']:,}",
            p_value_text(pair["mcnemar_p_holm"]),
            with_interval(
                pair["mean_key_spies_difference"], pair["mean_key_spies_difference_ci"], 1, "+"
            ),
        )
    return table


def _profile_table(report: Report) -> Table:
    """P(at least k Key Spies), each agent's band covering its whole column at once."""
    table = new_table("Key Spies", *(f"{agent['name']}, %" for agent in report["agents"]))
    for number in report["agents"][0]["key_spies_at_least"]:
        cells = [
            with_interval(
                agent["key_spies_at_least"][number], agent["key_spies_at_least_band"][number], 100
            )
            for agent in report["agents"]
        ]
        table.add_row(Text(f"{number} or more"), *cells)
    return table
