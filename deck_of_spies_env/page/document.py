"""The page: one file of HTML that needs no network, with its style, its script and all its data."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, cast
from xml.etree.ElementTree import Element

from deck_of_spies_env.evaluation.reports import Report
from deck_of_spies_env.evaluation.stopping import in_words, interval_note
from deck_of_spies_env.evaluation.table_reports import TableReport
from deck_of_spies_env.page import figures, tables
from deck_of_spies_env.page.figures import Curve
from deck_of_spies_env.page.markup import Child, data_island, tag, to_html
from deck_of_spies_env.page.viewing import ViewedGame, to_data

_KEYS = (
    "In the viewer the arrow keys step back and forth, Home and End go to the ends, and the space "
    "bar plays and pauses."
)
_TOLD_APART = (
    "▲ better, ▼ worse: Holm's p-value is below 0.05, or, where there is none, the interval lies "
    "on one side of 0; ≈ not told apart."
)
_ESTIMATES = {
    "deck_of_spies": "The chance to win and the Key Spies of a play are means over futures that "
    "begin with it: as the package's value function judges them, or under other rules than the "
    "default as the bot greedy ends them. Beside them stands what each agent thinks: its "
    "probability of the play, and a tick at its choice.",
    "skirmish": "The payoff of a play is the mean over playouts that begin with it, from deals "
    "that agree with what its seat knows. Beside it stands what each agent thinks: its probability "
    "of the play, and a tick at its choice. The table shows all hands; the agents do not see them.",
}
"""What the columns of the viewer's tables mean; ± is a standard error, see ``advice``."""


def make_page(
    report: Report | TableReport,
    games: Sequence[ViewedGame] = (),
    curves: Sequence[Curve] = (),
    *,
    command: str = "",
    versions: Mapping[str, str] | None = None,
) -> str:
    """A report as a page of HTML that opens from disk and asks for nothing else.

    It holds the tables and plots of the report, the learning curves, a viewer of games, the
    settings, and the report itself as JSON in the element ``report``.

    Args:
        report: of either game, of ``make_report`` or ``make_table_report``.
        games: for the viewer, in its order.
        curves: of those of the report's agents that were trained.
        command: that made the report.
        versions: of the libraries that made it, by name.

    Returns:
        The text of the page.
    """
    style, script = _source("page.css"), _source("page.js")
    title = _title(report)
    sections = [
        *_results(report),
        *_learning(report, curves),
        *_viewer(games),
        _settings(report, command, versions or {}),
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("title", title),
        tag("style", style),
    )
    body = tag(
        "body",
        tag("a", "To the results", class_="skip", href="#results"),
        tag("header", tag("h1", title), *_summary(report)),
        tag("main", *sections),
        data_island("report", report),
        data_island("games", [to_data(game) for game in games]),
        tag("script", script) if games else None,
    )
    return "<!DOCTYPE html>\n" + to_html(tag("html", head, body, lang="en")) + "\n"


@cache
def _source(name: str) -> str:
    return files("deck_of_spies_env.page").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing but this style and this script; nothing at all from elsewhere."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _is_skirmish(report: Report | TableReport) -> bool:
    return report.get("game") == "skirmish"


def _title(report: Report | TableReport) -> str:
    game = "Skirmish" if _is_skirmish(report) else "Deck of Spies"
    return f"{game}: {', '.join(agent['name'] for agent in report['agents'])}"


def _summary(report: Report | TableReport) -> list[Element]:
    deals = tables.deals_in_words(report["deals"])
    names = [agent["name"] for agent in report["agents"]]
    lines = [
        f"{deals} of the {report['bank']} bank, seed {report['seed']}, the same for all.",
        in_words(report["stopping"], report["deals"], names),
        f"In brackets: {interval_note(report['stopping'])}.",
    ]
    return [tag("p", line, class_="note") for line in lines if line]


def _section(name: str, heading: str, *children: Child) -> Element:
    title = tag("h2", heading, id=f"{name}-heading")
    return tag("section", title, *children, id=name, aria_labelledby=f"{name}-heading")


def _results(report: Report | TableReport) -> list[Element]:
    if _is_skirmish(report):
        return _skirmish_results(cast(TableReport, report))
    return _solitaire_results(cast(Report, report))


def _solitaire_results(report: Report) -> list[Element]:
    results = _section(
        "results",
        "Results",
        tables.solitaire_table(report),
        figures.forest(report, "Win rate, %"),
        figures.profile(report),
    )
    compared = _section(
        "comparisons",
        "Comparisons",
        tables.solitaire_matrix(report),
        tag("p", _TOLD_APART, class_="note"),
        tables.solitaire_pairs(report),
    )
    behaviour, luck = tables.behaviour_tables(report), tables.luck_tables(report)
    return [
        results,
        *([compared] if report["comparisons"] else []),
        *([_section("behaviour", "Behaviour", *behaviour)] if behaviour else []),
        *([_section("luck", "Luck", *luck)] if luck else []),
    ]


def _skirmish_results(report: TableReport) -> list[Element]:
    results = _section(
        "results",
        "Results",
        tables.skirmish_table(report),
        figures.forest(report, "Share of wins, %"),
    )
    compared = _section(
        "comparisons",
        "Matches",
        tables.skirmish_matrix(report),
        tag("p", "▲ better, ▼ worse: the interval lies on one side of 0; ≈ not told apart.",
            class_="note"),
        tables.skirmish_pairs(report),
    )  # fmt: skip
    return [results, compared]


def _learning(report: Report | TableReport, curves: Sequence[Curve]) -> list[Element]:
    if not curves:
        return []
    what = "share of wins, %" if _is_skirmish(report) else "win rate, %"
    drawn = figures.learning_curves(report, curves, what)
    return [_section("learning", "Learning curves", drawn)]


def _viewer(games: Sequence[ViewedGame]) -> list[Element]:
    """The viewer's elements, which the script fills."""
    if not games:
        return []
    options = [tag("option", game.title) for game in games]
    stage = tag(
        "div",
        tag(
            "div",
            _button("first", "First step", "|◀"),
            _button("back", "Step back", "◀"),
            _button("auto", None, "Play"),
            _button("next", "Step forward", "▶"),
            _button("last", "Last step", "▶|"),
            tag("input", type="range", id="step", min=0, value=0, aria_label="Step"),
            tag("span", id="where"),
            class_="controls",
            role="group",
            aria_label="Steps",
        ),
        tag("p", id="caption", aria_live="polite"),
        tag("div", id="table", role="group", aria_label="The table"),
        tag("div", id="choices"),
        id="stage",
        tabindex=0,
        role="group",
        aria_label="Replay",
    )
    remembered = tag(
        "details",
        tag("summary", "What a player with a perfect memory knows"),
        tag("div", id="hidden-cards"),
        id="hidden",
    )
    return [
        _section(
            "viewer",
            "Games",
            tag("p", _KEYS, " ", _ESTIMATES[games[0].record.game], class_="note", id="games-hint"),
            tag("noscript", tag("p", "The viewer needs JavaScript.")),
            tag(
                "div",
                tag("label", "Game", for_="game"),
                tag("select", *options, id="game", autocomplete="off"),
                class_="chooser",
            ),
            tag("p", id="reason", class_="note"),
            stage,
            remembered,
        )
    ]


def _button(name: str, label: str | None, text: str) -> Element:
    return tag("button", text, type="button", id=name, aria_label=label, title=label)


def _settings(report: Report | TableReport, command: str, versions: Mapping[str, str]) -> Element:
    rows: dict[str, Any] = {
        "deals": f"{report['deals']:,}",
        "bank": report["bank"],
        "seed": report["seed"],
        "rules": ", ".join(f"{name}={value}" for name, value in report["rules"].items()),
        "versions": ", ".join(
            f"{name} {version}"
            for name, version in {"deck_of_spies_env": report["version"], **versions}.items()
        ),
    }
    if _is_skirmish(report):
        rows = {"players": cast(TableReport, report)["num_players"], **rows}
    terms = [
        element
        for name, value in rows.items()
        for element in (tag("dt", name), tag("dd", str(value)))
    ]
    shown = [tag("p", "Command:"), tag("pre", tag("code", command))] if command else []
    return _section("settings", "Settings", tag("dl", *terms, class_="settings"), *shown)
