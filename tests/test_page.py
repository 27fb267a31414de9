"""The report as a page: what it holds, that nothing breaks out of it, and which games it shows."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_tools import NASTY, NUM_DEALS, Made, skirmish_page, solitaire_page

import evaluate
from agents import AgentError
from agents.curves import curves_of
from deck_of_spies_env.evaluation.matches import MatchResult
from deck_of_spies_env.evaluation.reports import to_json
from deck_of_spies_env.evaluation.tables import TableResult
from deck_of_spies_env.page import choose_deals, choose_tables
from deck_of_spies_env.page.plots import Axis
from deck_of_spies_env.records import replay

MOST_BYTES = 3_000_000


class Page(HTMLParser):
    """Elements with their attributes, and the texts of scripts, styles and table cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def said(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]

    def island(self, name: str) -> Any:
        scripts = self.of("script")
        texts = self.said("script")
        assert len(scripts) == len(texts)
        [text] = [text for it, text in zip(scripts, texts, strict=True) if it.get("id") == name]
        return json.loads(text)


@pytest.fixture(scope="module", params=[solitaire_page, skirmish_page])
def made(request: pytest.FixtureRequest) -> Made:
    return request.param()


def test_nothing_is_asked_of_anybody_else(made: Made) -> None:
    page = Page(made.html)
    for name, attributes in page.elements:
        assert not any(key.startswith("on") or key == "style" for key in attributes), name
        for key in ("src", "srcset", "data", "action", "poster", "xlink:href", "href"):
            assert (attributes.get(key) or "#").startswith("#")
    assert page.of("link") == []
    assert "@import" not in made.html
    assert "url(" not in made.html


def test_the_policy_allows_its_own_style_and_script_alone(made: Made) -> None:
    page = Page(made.html)
    [policy] = [
        it["content"] for it in page.of("meta") if it.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    [style], script = page.said("style"), page.said("script")[-1]

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert allowed == {
        "default-src": "'none'",
        "style-src": digest(style),
        "script-src": digest(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_it_holds_the_report_and_the_games(made: Made) -> None:
    page = Page(made.html)
    assert page.island("report") == json.loads(to_json(made.report))
    games = page.island("games")
    assert [game["title"] for game in games] == [game.title for game in made.games]
    assert len(made.html.encode()) < MOST_BYTES / 10 * len(made.games)


def test_names_are_texts_and_not_elements(made: Made) -> None:
    page = Page(made.html)
    assert page.of("b") == []
    assert NASTY in page.said("th")
    assert NASTY in page.said("title")[0]
    scripts = page.of("script")
    assert len(scripts) == 3  # the name did not end the data's element
    assert NASTY in page.island("games")[0]["advisers"]


def test_the_tables_show_the_numbers_of_the_report(made: Made) -> None:
    cells = Page(made.html).said("td")
    for agent in made.report["agents"]:
        low, high = agent["win_rate_ci"]
        shown = f"{100 * agent['win_rate']:.2f} [{100 * low:.2f}, {100 * high:.2f}]"
        assert shown in cells
        assert f"{agent['decisions']:,}" in cells


def test_ids_are_unique_and_headings_in_order(made: Made) -> None:
    page = Page(made.html)
    ids = [it["id"] for _, it in page.elements if "id" in it]
    assert len(ids) == len(set(ids))
    levels = [name for name, _ in page.elements if re.fullmatch(r"h\d", name)]
    assert levels[0] == "h1"
    assert set(levels[1:]) == {"h2"}
    for _, attributes in page.elements:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids


# --- Games ---


def test_the_viewer_has_the_positions_of_the_replay(made: Made) -> None:
    for game, shown in zip(made.games, Page(made.html).island("games"), strict=True):
        positions = list(replay(game.record))
        assert len(positions) == len(shown["positions"])
        for position, at in zip(positions, shown["positions"], strict=True):
            assert at["phase"] == position.phase
            for zone, cards in at["zones"].items():
                assert split(cards) == listed(position.zones[zone])


def split(text: str | list[str]) -> list[Any]:
    return [split(one) for one in text] if isinstance(text, list) else text.split()


def listed(cards: Any) -> list[Any]:
    """Cards as the viewer has them: a seat's one card, or none, as a list too."""
    if all(isinstance(card, str) and len(card) <= 2 for card in cards) and "" not in cards:
        return list(cards)
    return [[pile] if isinstance(pile, str) else list(pile or ()) for pile in cards]


def test_each_decision_is_the_one_taken(made: Made) -> None:
    for game, shown in zip(made.games, Page(made.html).island("games"), strict=True):
        for position, at in zip(replay(game.record), shown["positions"], strict=True):
            if position.action is None:
                assert at["decisions"] == []
                continue
            skirmish = game.record.game == "skirmish"
            taken = position.action.split() if skirmish else [position.action]
            acting = [seat for seat, action in enumerate(taken) if action != "wait"]
            assert [decision["seat"] for decision in at["decisions"]] == acting
            for decision in at["decisions"]:
                legal = position.legal[decision["seat"]] if skirmish else position.legal
                assert decision["plays"] == list(legal)
                assert legal[decision["made"]] == taken[decision["seat"]]


def test_opinions_are_those_of_the_agents(made: Made) -> None:
    """Probabilities add up, and an agent that leaves nothing to chance chose what it played."""
    num_probabilities = num_own = 0
    for shown in Page(made.html).island("games"):
        for position in shown["positions"]:
            for decision in position["decisions"]:
                k = len(decision["plays"])
                for estimate in decision["estimates"].values():
                    assert len(estimate["values"]) == len(estimate["errors"]) == k
                for name, opinion in zip(shown["advisers"], decision["opinions"], strict=True):
                    if opinion["probabilities"] is not None:
                        assert sum(opinion["probabilities"]) == pytest.approx(1, abs=1e-3)
                        num_probabilities += 1
                    player = shown["players"][decision["seat"]]
                    if name == player and name in {"greedy", "rank"}:
                        assert opinion["chosen"] == decision["made"]
                        num_own += 1
    assert num_own > 30
    assert num_probabilities > 30 or "payoffs" in json.dumps(shown)


# --- Which games ---


def match(seed: int, num_deals: int, chance: float) -> MatchResult:
    rng = np.random.default_rng(seed)
    key_spies = rng.binomial(12, chance, num_deals)
    early = rng.random(num_deals) < 0.1
    key_spies[early] = 0
    wins = key_spies >= 7
    outcomes = np.where(early, "no_double_agent", np.where(wins, "win", "loss")).astype(object)
    turns = np.full(num_deals, 36)
    return MatchResult(wins, key_spies, turns, 2 * turns, outcomes, 1.0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("num_agents", [1, 2, 3, 6])
def test_the_chosen_deals_are_what_they_are_said_to_be(seed: int, num_agents: int) -> None:
    matches = [(f"a{i}", match(10 * seed + i, 30, 0.3 + 0.1 * i)) for i in range(num_agents)]
    chosen = choose_deals(matches)
    assert 1 <= len(chosen) <= 10
    assert len({(it.match, it.number) for it in chosen}) == len(chosen)
    every = [(result.key_spies, result) for _, result in matches]
    for it in chosen:
        result = matches[it.match][1]
        found = result.key_spies[it.number]
        if it.title.startswith("A typical win"):
            assert result.wins[it.number]
            assert half_on_both_sides(result.key_spies[result.wins], found)
        elif it.title.startswith("A loss"):
            assert not result.wins[it.number]
            assert half_on_both_sides(result.key_spies[~result.wins], found)
        elif it.title.startswith("The closest"):
            assert found in {6, 7} or not any(np.isin(keys, (6, 7)).any() for keys, _ in every)
        else:
            assert it.title.startswith("The largest disagreement")
            spread = np.ptp([keys for keys, _ in every], axis=0)
            others = [keys[it.number] for keys, _ in every]
            assert spread[it.number] == spread.max()
            assert found in {min(others), max(others)}
            assert f"{spread.max()} Key Spies apart" in it.reason


def half_on_both_sides(sample: Any, found: int) -> bool:
    """Whether a number is a median of a sample."""
    return 2 * (sample <= found).sum() >= len(sample) <= 2 * (sample >= found).sum()


def test_what_there_is_none_of_is_not_chosen() -> None:
    lost = match(0, 5, 0.0)
    titles = [it.title for it in choose_deals([("a", lost), ("b", lost)])]
    assert not any("win" in title or "disagreement" in title for title in titles)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_chosen_tables_are_what_they_are_said_to_be(n: int) -> None:
    rng = np.random.default_rng(n)
    margins = rng.integers(-200, 200, (12, n, n))
    shares = (margins > 0).astype(float)
    zeros = np.zeros((12, n))
    result = TableResult(
        shares, shares, margins, zeros.astype(int), zeros > 0, np.ones(n, int), np.ones(n)
    )
    chosen = choose_tables(["a", "b"], [(0, 1, result)])
    assert [it.title.split(" ")[1] for it in chosen][:2] == ["typical", "loss"]
    assert len(chosen) <= 5
    ours = margins[:, :, 0].ravel()
    for it in chosen:
        margin = ours[it.number]
        if "typical win" in it.title:
            assert half_on_both_sides(ours[ours > 0], margin)
        elif "loss" in it.title:
            assert half_on_both_sides(ours[ours <= 0], margin)
        elif "closest" in it.title:
            assert abs(margin) == np.abs(ours).min()
        else:
            both = np.abs(margins[:, :2, 0].sum(axis=1))
            assert both[it.number // n] == both.max()


# --- Plots and curves ---


@given(
    st.lists(st.floats(0, 100, allow_subnormal=False), min_size=1),
    st.sampled_from([(0.0, 100.0), (0.0, float("inf"))]),
)
def test_an_axis_covers_its_values(values: list[float], within: tuple[float, float]) -> None:
    axis = Axis.around(values, within=within)
    assert within[0] <= axis.low <= min(values) + 1e-9
    assert max(values) - 1e-9 <= axis.high <= within[1]
    assert 2 <= len(axis.ticks) <= 13
    assert all(a < b for a, b in zip(axis.ticks, axis.ticks[1:], strict=False))
    assert (axis.percent(axis.low), axis.percent_down(axis.low)) == ("0.000%", "100.000%")


def test_curves_of_shipped_models_are_those_of_their_cards() -> None:
    specs = {name: name for name in ("ppo", "greedy", "ppo:objective=keys", "afterstate")}
    ppo, keys, afterstate = curves_of(specs)
    assert (ppo.name, len(ppo.points), len(afterstate.points)) == ("ppo", 15, 10)
    first = ppo.points[0]
    assert (first.timesteps, first.rate, first.low, first.high) == (
        4_000_000,
        pytest.approx(0.9508),
        pytest.approx(0.9436),
        pytest.approx(0.9570),
    )
    assert keys.points != ppo.points
    [of_three] = curves_of({"ppo": "ppo", "rank": "rank"}, num_players=3)
    assert of_three.points[0].rate == pytest.approx(0.3574)


def test_curves_of_runs_are_their_evaluations(tmp_path: Path) -> None:
    table = tmp_path / "evaluations.csv"
    table.write_text("timesteps,win_rate,win_rate_low,win_rate_high\n500,0.5,0.4,0.6\n")
    for spec in (f"ppo={tmp_path}", f"ppo={tmp_path / 'last_model.zip'}"):
        [curve] = curves_of({"mine": spec})
        assert [(it.timesteps, it.rate, it.low, it.high) for it in curve.points] == [
            (500, 0.5, 0.4, 0.6)
        ]
    table.write_text("something,else\n1,2\n")
    with pytest.raises(AgentError, match=r"evaluations\.csv is no table of evaluations"):
        curves_of({"mine": f"ppo={tmp_path}"})
    table.unlink()
    assert curves_of({"mine": f"ppo={tmp_path}"}) == []


# --- The command ---


@pytest.mark.parametrize(
    "arguments",
    [
        ["--agents", "greedy", "random", "--deals", str(NUM_DEALS), "--behaviour"],
        ["--game", "skirmish", "--agents", "rank", "high", "--deals", "2", "--num-players", "4"],
        ["--agents", "greedy", "--deals", "1"],
    ],
)
def test_the_command_writes_a_page(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html, report = tmp_path / "page.html", tmp_path / "report.json"
    options = ["--html", str(html), "--json", str(report)]
    assert evaluate.main([*arguments, *options]) == 0
    page = Page(html.read_text(encoding="utf-8"))
    assert page.island("report") == json.loads(report.read_text())
    assert page.island("games")
    assert " ".join(["python evaluate.py", *arguments, *options]) in page.said("code")
    assert capsys.readouterr().err == ""
