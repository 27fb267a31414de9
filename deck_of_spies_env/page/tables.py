"""Tables of a report: the numbers are those of its JSON, as the command prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from xml.etree.ElementTree import Element

from deck_of_spies_env.evaluation.behaviour import Mean
from deck_of_spies_env.evaluation.luck_reports import WithoutLuck, factor_text
from deck_of_spies_env.evaluation.printing import p_value_text, with_interval
from deck_of_spies_env.evaluation.reports import AgentReport, Comparison, Report
from deck_of_spies_env.evaluation.statistics import MAX_KEY_SPIES
from deck_of_spies_env.evaluation.table_reports import (
    TableAgentReport,
    TableComparison,
    TableReport,
    pairs_of,
)
from deck_of_spies_env.page.markup import Child, tag

_SIGNIFICANT = 0.05


def data_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Child]]) -> Element:
    """A table whose first column names its rows, in a region that scrolls where it is too wide."""
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in cells))
        for first, *cells in rows
    ]
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
        tag("tbody", *body),
    )
    return tag(
        "div", table, class_="scroll", tabindex=0, role="region", aria_label=f"Table: {caption}"
    )


def _speed(agent: AgentReport | TableAgentReport) -> tuple[str, str]:
    decisions, seconds = agent["decisions"], agent["seconds"]
    return f"{decisions:,}", f"{decisions / seconds:,.0f}" if seconds else "-"


def solitaire_table(report: Report) -> Element:
    """The agents of Deck of Spies."""
    rows: list[list[Child]] = [
        [
            agent["name"],
            with_interval(agent["win_rate"], agent["win_rate_ci"], 100).plain,
            with_interval(agent["mean_key_spies"], agent["mean_key_spies_ci"]).plain,
            with_interval(
                agent["key_spies_at_least"][str(MAX_KEY_SPIES)], agent["all_key_spies_ci"], 100
            ).plain,
            *_speed(agent),
        ]
        for agent in report["agents"]
    ]
    head = ["agent", "wins, %", "Key Spies", "all 12, %", "decisions", "decisions per second"]
    return data_table(f"Agents on {deals_in_words(report['deals'])}", head, rows)


def skirmish_table(report: TableReport) -> Element:
    """The agents of Skirmish."""
    rated = report["num_players"] == 2
    head = ["agent", "share of wins, %", "payoff", *(["rating"] if rated else [])]
    rows: list[list[Child]] = []
    for agent in report["agents"]:
        cells: list[Child] = [
            agent["name"],
            with_interval(agent["win_rate"], agent["win_rate_ci"], 100).plain,
            with_interval(agent["mean_payoff"], agent["mean_payoff_ci"], 1, "+").plain,
        ]
        if rated:
            cells.append(_rating(agent["rating"], agent["rating_ci"]))
        rows.append([*cells, *_speed(agent)])
    caption = f"Agents on {deals_in_words(report['deals'])} from every seat"
    return data_table(caption, [*head, "decisions", "decisions per second"], rows)


def _rating(rating: float | None, interval: Sequence[float] | None) -> str:
    if rating is None or interval is None:
        return "-"
    return f"{rating:+.0f} [{interval[0]:+.0f}, {interval[1]:+.0f}]"


def deals_in_words(deals: int) -> str:
    """So many deals."""
    return "1 deal" if deals == 1 else f"{deals:,} deals"


# --- Comparisons ---


def solitaire_pairs(report: Report) -> Element:
    """All that was compared in Deck of Spies, pair by pair."""
    rows: list[list[Child]] = [
        [
            " - ".join(pair["agents"]),
            _percent_points(pair, 1),
            f"{pair['wins_only_first']:,} : {pair['wins_only_second']:,}",
            p_value_text(pair["mcnemar_p_holm"]),
            with_interval(
                pair["mean_key_spies_difference"], pair["mean_key_spies_difference_ci"], 1, "+"
            ).plain,
        ]
        for pair in report["comparisons"]
    ]
    head = ["first - second", "wins, % points", "won alone", "p (Holm)", "Key Spies"]
    return data_table("Differences on the same deals", head, rows)


def solitaire_matrix(report: Report) -> Element:
    """Differences of win rates, each agent in its row less each one in its column."""
    names = [agent["name"] for agent in report["agents"]]
    cells: dict[tuple[int, int], Element] = {}
    pairs = combinations(range(len(names)), 2)
    for pair, (i, j) in zip(report["comparisons"], pairs, strict=True):
        cells[i, j], cells[j, i] = _difference_cell(pair, 1), _difference_cell(pair, -1)
    return _matrix("Differences of win rates, in % points", "row less column", names, cells)


def _difference_cell(pair: Comparison, sign: int) -> Element:
    """Told apart by Holm's p-value, or by the interval where there is none."""
    p, (low, high) = pair["mcnemar_p_holm"], pair["win_rate_difference_ci"]
    told_apart = not low <= 0 <= high if p is None else p < _SIGNIFICANT
    note = "" if p is None else f"p {p_value_text(p)}"
    difference = sign * pair["win_rate_difference"]
    return _matrix_cell(_percent_points(pair, sign), note, difference, told_apart=told_apart)


def _percent_points(pair: Comparison, sign: int) -> str:
    ends = sorted(sign * end for end in pair["win_rate_difference_ci"])
    return with_interval(sign * pair["win_rate_difference"], ends, 100, "+").plain


def skirmish_pairs(report: TableReport) -> Element:
    """All that was measured in Skirmish, match by match."""
    rows: list[list[Child]] = [
        [
            " - ".join(pair["agents"]),
            with_interval(pair["win_rate"], pair["win_rate_ci"], 100).plain,
            with_interval(pair["mean_payoff"], pair["mean_payoff_ci"], 1, "+").plain,
            f"{pair['mean_margin']:+.1f}",
            f"{pair['mean_rounds']:.1f}",
            f"{pair['truncated']:,}",
        ]
        for pair in report["comparisons"]
    ]
    head = ["first - others", "share of wins, %", "payoff", "points ahead", "rounds", "cut off"]
    return data_table("Matches", head, rows)


def skirmish_matrix(report: TableReport) -> Element:
    """Mean payoffs, each agent in its row against each one in its column."""
    names = [agent["name"] for agent in report["agents"]]
    cells: dict[tuple[int, int], Element] = {}
    pairs = pairs_of(len(names), report["num_players"])
    for pair, (i, j) in zip(report["comparisons"], pairs, strict=True):
        cells[i, j] = _payoff_cell(pair, 1)
        if report["num_players"] == 2:  # what one wins the other loses
            cells[j, i] = _payoff_cell(pair, -1)
    return _matrix("Mean payoffs", "row against column", names, cells)


def _payoff_cell(pair: TableComparison, sign: int) -> Element:
    low, high = sorted(sign * end for end in pair["mean_payoff_ci"])
    payoff = sign * pair["mean_payoff"]
    text = with_interval(payoff, [low, high], 1, "+").plain
    return _matrix_cell(text, "", payoff, told_apart=not low <= 0 <= high)


def _matrix_cell(text: str, note: str, value: float, *, told_apart: bool) -> Element:
    side = ("more" if value > 0 else "less") if told_apart else "same"
    sign = {"more": "▲ ", "less": "▼ ", "same": "≈ "}[side]
    below = tag("span", note, class_="note") if note else None
    return tag("span", sign + text, below, class_=f"cell {side}")


def _matrix(
    caption: str, corner: str, names: Sequence[str], cells: Mapping[tuple[int, int], Element]
) -> Element:
    rows: list[list[Child]] = [
        [name, *(cells.get((i, j), "") for j in range(len(names)))] for i, name in enumerate(names)
    ]
    return data_table(caption, [corner, *names], rows)


# --- Behaviour ---


def behaviour_tables(report: Report) -> list[Element]:
    """What agents did in a deal on the average, and the differences; nothing if it wasn't asked."""
    agents = [(it["name"], it["behaviour"]) for it in report["agents"] if it["behaviour"]]
    pairs = [
        (" - ".join(it["agents"]), it["behaviour"])
        for it in report["comparisons"]
        if it["behaviour"]
    ]
    tables: list[Element] = []
    if agents:
        tables.append(_behaviour_table("What agents did, means", agents, ""))
    if pairs:
        differences = _behaviour_table("Differences, means", pairs, "+")
        tables.append(tag("details", tag("summary", "Differences"), differences))
    return tables


def _behaviour_table(
    caption: str, columns: Sequence[tuple[str, Mapping[str, Mean]]], sign: str
) -> Element:
    rows: list[list[Child]] = [
        [
            measure.replace("_", " "),
            *(
                with_interval(means[measure]["mean"], means[measure]["ci"], 1, sign).plain
                for _, means in columns
            ),
        ]
        for measure in columns[0][1]
    ]
    return data_table(caption, ["in a deal", *(name for name, _ in columns)], rows)


# --- Luck ---


def luck_tables(report: Report) -> list[Element]:
    """Results and differences with luck taken out; nothing if it wasn't asked."""
    agents = [(it["name"], it["without_luck"]) for it in report["agents"] if it["without_luck"]]
    pairs = [
        (" - ".join(it["agents"]), it["without_luck"])
        for it in report["comparisons"]
        if it["without_luck"]
    ]
    tables: list[Element] = []
    if agents:
        head = ["agent", "wins, %", "factor", "Key Spies", "factor"]
        tables.append(_luck_table("Luck taken out", head, agents, ""))
    if pairs:
        head = ["first - second", "wins, % points", "factor", "Key Spies", "factor"]
        tables.append(_luck_table("Differences, luck taken out", head, pairs, "+"))
    return tables


def _luck_table(
    caption: str,
    head: Sequence[str],
    figures: Sequence[tuple[str, Mapping[str, WithoutLuck]]],
    sign: str,
) -> Element:
    rows: list[list[Child]] = []
    for name, of_name in figures:
        row: list[Child] = [name]
        for quantity, scale in (("wins", 100), ("key_spies", 1)):
            it = of_name[quantity]
            row += [
                with_interval(it["mean"], it["ci"], scale, sign).plain,
                factor_text(it["factor"]),
            ]
        rows.append(row)
    return data_table(caption, head, rows)
