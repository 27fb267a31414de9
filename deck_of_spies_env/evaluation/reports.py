"""What matches on common deals amount to: one JSON document, and the tables that show it.

Win rates have Wilson intervals, mean Key Spies those of ``statistics.bounded_mean_interval``, and
pairs of agents the paired methods of ``statistics``; all intervals are of 95%, one by one, and the
p-values of all pairs are adjusted together by Holm's procedure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from rich.text import Text

import deck_of_spies_env
from deck_of_spies_env.evaluation import statistics
from deck_of_spies_env.evaluation.matches import MatchResult
from deck_of_spies_env.evaluation.statistics import MAX_KEY_SPIES
from deck_of_spies_env.solitaire.rules import Rules

_WIDTH_OF_FILES = 200
_NARROWEST_NAMES = 8
_SMALLEST_P_SHOWN = 1e-4
_MIN_FOR_T_INTERVAL = 2


class AgentReport(TypedDict):
    """One agent: rates are fractions of the deals, intervals [low, high]."""

    name: str
    wins: int
    win_rate: float
    win_rate_ci: list[float]
    mean_key_spies: float
    mean_key_spies_ci: list[float]
    key_spies_at_least: dict[str, float]
    decisions: int
    seconds: float


class Comparison(TypedDict):
    """Two agents on the same deals; differences are the first less the second.

    After a single deal the interval of Key Spies is None.
    """

    agents: list[str]
    win_rate_difference: float
    win_rate_difference_ci: list[float]
    wins_only_first: int
    wins_only_second: int
    mcnemar_p: float
    mcnemar_p_holm: float
    mean_key_spies_difference: float
    mean_key_spies_difference_ci: list[float] | None


class Report(TypedDict):
    """The whole document."""

    version: str
    bank: str
    deals: int
    seed: int
    rules: dict[str, Any]
    agents: list[AgentReport]
    comparisons: list[Comparison]


def make_report(
    matches: Sequence[tuple[str, MatchResult]], *, seed: int, rules: Rules, bank: str = "test"
) -> Report:
    """The report on matches that were all played on the same deals.

    Args:
        matches: name and result of each agent, at least one.
        seed: of the deals.
        rules: that were played.
        bank: of the deals.

    Raises:
        ValueError: no matches, or matches of different numbers of deals.
    """
    sizes = {len(result.wins) for _, result in matches}
    if len(sizes) != 1:
        raise ValueError(f"a report needs matches on the same deals, got {sorted(sizes)} deals")
    return {
        "version": deck_of_spies_env.__version__,
        "bank": bank,
        "deals": sizes.pop(),
        "seed": seed,
        "rules": asdict(rules),
        "agents": [_agent_report(name, result) for name, result in matches],
        "comparisons": _comparisons(matches),
    }


def to_json(report: Mapping[str, Any]) -> str:
    """The report as JSON text, without NaN or infinities."""
    return json.dumps(report, indent=2, allow_nan=False) + "\n"


def print_report(report: Report) -> None:
    """Print the report's tables on stdout, as wide as they need unless a terminal sets a limit."""
    console = wide_console()
    console.print(Text(_headline(report)))
    console.print(_agent_table(report))
    if report["comparisons"]:
        console.print()
        console.print(_comparison_table(report["comparisons"]))


def wide_console() -> Console:
    """For stdout: the terminal, or a file as wide as tables need."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_OF_FILES)


def _agent_report(name: str, result: MatchResult) -> AgentReport:
    num_deals, wins = len(result.wins), int(np.count_nonzero(result.wins))
    at_least = statistics.survival_counts(result.key_spies)
    return {
        "name": name,
        "wins": wins,
        "win_rate": wins / num_deals,
        "win_rate_ci": list(statistics.wilson_interval(wins, num_deals)),
        "mean_key_spies": float(np.mean(result.key_spies)),
        "mean_key_spies_ci": list(
            statistics.bounded_mean_interval(result.key_spies, 0, MAX_KEY_SPIES)
        ),
        "key_spies_at_least": {str(number): share for number, share in at_least.items()},
        "decisions": int(np.sum(result.decisions)),
        "seconds": result.seconds,
    }


def _comparisons(matches: Sequence[tuple[str, MatchResult]]) -> list[Comparison]:
    pairs = list(combinations(matches, 2))
    if not pairs:
        return []
    tests = [statistics.mcnemar_exact(a.wins, b.wins) for (_, a), (_, b) in pairs]
    adjusted = statistics.holm([test.p_value for test in tests]).tolist()
    comparisons: list[Comparison] = []
    for ((first, a), (second, b)), test, p_holm in zip(pairs, tests, adjusted, strict=True):
        win_rates = statistics.paired_win_rate_difference(a.wins, b.wins)
        mean, interval = _key_spies_difference(a.key_spies, b.key_spies)
        comparisons.append(
            {
                "agents": [first, second],
                "win_rate_difference": win_rates.mean,
                "win_rate_difference_ci": list(win_rates.interval),
                "wins_only_first": test.first_only,
                "wins_only_second": test.second_only,
                "mcnemar_p": test.p_value,
                "mcnemar_p_holm": p_holm,
                "mean_key_spies_difference": mean,
                "mean_key_spies_difference_ci": interval,
            }
        )
    return comparisons


def _key_spies_difference(
    first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> tuple[float, list[float] | None]:
    if len(first) < _MIN_FOR_T_INTERVAL:
        return float(np.mean(first - second)), None
    difference = statistics.paired_mean_difference(first, second)
    return difference.mean, list(difference.interval)


# --- Tables ---------------------------------------------------------------------------------------


def _headline(report: Report) -> str:
    changed = _changed_rules(report["rules"])
    deals = "1 deal" if report["deals"] == 1 else f"{report['deals']:,} deals, the same for all"
    rules = ", ".join(f"{name}={value}" for name, value in changed.items()) or "default"
    return (
        f"{deals} ({report['bank']} bank, seed {report['seed']})\n"
        f"rules: {rules}; in brackets: 95% intervals\n"
    )


def _changed_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    default = asdict(Rules())
    return {name: value for name, value in rules.items() if value != default[name]}


def _agent_table(report: Report) -> Table:
    table = new_table("agent", "wins, %", "Key Spies", "all 12, %", "decisions\nper second")
    deals = report["deals"]
    for agent in report["agents"]:
        all_12 = agent["key_spies_at_least"][str(MAX_KEY_SPIES)]
        all_12_interval = list(statistics.wilson_interval(round(all_12 * deals), deals))
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
            _p_value(pair["mcnemar_p_holm"]),
            with_interval(
                pair["mean_key_spies_difference"], pair["mean_key_spies_difference_ci"], 1, "+"
            ),
        )
    return table


def new_table(first: str, *others: str) -> Table:
    """A table without lines, whose first column is for names."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold", min_width=_NARROWEST_NAMES)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _p_value(p: float) -> str:
    return f"{p:.4f}" if p >= _SMALLEST_P_SHOWN else f"< {_SMALLEST_P_SHOWN:.4f}"


def with_interval(
    value: float, interval: Sequence[float] | None, scale: float = 1, sign: str = ""
) -> Text:
    """A figure with its interval, None for none, all times a scale."""
    form = f"{sign}.2f"
    ends = [f"{end * scale:{form}}" for end in interval or ()]
    return Text(f"{value * scale:{form}} [{', '.join(ends) or 'none'}]")
