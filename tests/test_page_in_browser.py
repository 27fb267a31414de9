"""The report as a page in a real browser: nothing but the file is asked for, and all of it works.

Skipped where there is no Chromium, unless REQUIRE_BROWSER is set, as it is in `.ci/run`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_tools import NASTY, Made, skirmish_page, solitaire_page

from deck_of_spies_env.records import replay

REQUIRED = bool(os.environ.get("REQUIRE_BROWSER"))
if not REQUIRED:
    pytest.importorskip("playwright", reason="needs Playwright (pip install playwright)")

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402

WIDTHS = (360, 768, 1280)
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
MAKERS = {"solitaire": solitaire_page, "skirmish": skirmish_page}
SPOKEN = {"c": "clubs", "d": "diamonds", "h": "hearts", "s": "spades"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None and not REQUIRED:
        pytest.skip("needs Chromium (apt-get install chromium)")
    assert found is not None, "REQUIRE_BROWSER is set, and there is no Chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=MAKERS)
def made(request: pytest.FixtureRequest) -> Made:
    return MAKERS[request.param]()


@pytest.fixture
def page(browser: Browser, made: Made, tmp_path: Path) -> Iterator[Page]:
    """The page, opened from disk; at the end there was no message and no request but for it."""
    path = tmp_path / "report.html"
    path.write_text(made.html, encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    messages: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.set_default_timeout(5000)
    tab.goto(path.as_uri())
    yield tab
    tab.close()
    assert messages == []
    assert requests == [path.as_uri()]


def cards_in(page: Page, zone: str) -> list[str]:
    """The cards that lie face up in a zone."""
    return page.locator(f'#table [data-zone="{zone}"] .card[data-card]').evaluate_all(
        "cards => cards.map(card => card.dataset.card)"
    )


def step_of(page: Page) -> int:
    """The step that is shown, from 1."""
    return int(page.locator("#where").inner_text().split(" of ")[0])


def check_solitaire(page: Page, position: Any) -> None:
    zones = position.zones
    for zone in ("hand", "spy", "draw_discard", "removed"):
        assert sorted(cards_in(page, zone)) == sorted(zones[zone])
    for zone in ("draw_deck", "spy_discard"):
        number = len(zones[zone])
        expected = f"{number} card{'' if number == 1 else 's'}"
        assert expected in page.locator(f'#table [data-zone="{zone}"]').inner_text()
    unseen = f"+ {len(zones['spy_deck'])} unseen"
    assert unseen in page.locator('#table [data-zone="spy"]').inner_text()
    held = [card for zone in ("hand", "draw_deck", "draw_discard") for card in zones[zone]]
    of_value = sum(card[0] in "JQK" for card in held)
    assert f"{of_value} held" in page.locator('[data-zone="key_spies"]').inner_text()
    assert page.locator("#choices tbody tr").count() == len(position.legal)


def check_skirmish(page: Page, position: Any) -> None:
    zones = position.zones
    for seat, hand in enumerate(zones["hand"]):
        shown = page.locator(f'[data-seat="{seat}"]')
        for zone, cards in (("hand", hand), ("capture", zones["capture"][seat])):
            found = shown.locator(f'[data-zone="{zone}"] .card[data-card]').evaluate_all(
                "cards => cards.map(card => card.dataset.card)"
            )
            assert found == list(cards)
        assert (
            f"{len(zones['supply'][seat])} card"
            in shown.locator('[data-zone="supply"]').inner_text()
        )
    assert cards_in(page, "graveyard") == list(zones["graveyard"])
    assert page.locator("#choices table").count() == len(zones["participants"])


def test_every_game_is_shown_as_it_was_played(page: Page, made: Made) -> None:
    for number, game in enumerate(made.games):
        page.select_option("#game", index=number)
        expect(page.locator("#reason")).to_contain_text(game.reason)
        positions = list(replay(game.record))
        check = check_solitaire if game.record.game == "deck_of_spies" else check_skirmish
        end = len(positions) - 1
        for step in (0, 1, 2, end // 2, end):
            page.locator("#step").fill(str(step))
            assert page.locator("#where").inner_text() == f"{step + 1} of {end + 1}"
            check(page, positions[step])
    expect(page.locator("#caption")).to_contain_text("The end")


@pytest.mark.parametrize("number", [0, -1])
def test_the_play_made_is_marked(page: Page, made: Made, number: int) -> None:
    """Also where a hand holds both Jokers, as in the last game of Skirmish."""
    game = made.games[number]
    page.select_option("#game", index=number % len(made.games))
    for step, position in enumerate(replay(game.record)):
        if position.action is None or step > 6:
            break
        rows = page.locator("#choices tr.made")
        plays = rows.evaluate_all("rows => rows.map(row => row.dataset.play)")
        used = page.locator('[data-zone="hand"] .used').evaluate_all(
            "cards => cards.map(card => card.dataset.card)"
        )
        if game.record.game == "deck_of_spies":
            assert plays == [position.action]
            assert used == position.action.split()[1:]
        else:
            taken = position.action.split()
            assert plays == [taken[seat] for seat in position.zones["participants"]]
            assert [card[0] for card in used] == plays
        assert rows.filter(has_text="played").count() == len(plays)
        page.locator("#next").click()


def test_the_mouse_moves_all_controls(page: Page, made: Made) -> None:
    end = len(made.games[0].positions)
    for button, expected in (
        *(("next", 2), ("next", 3), ("back", 2), ("last", end), ("next", end)),
        *(("first", 1), ("back", 1)),
    ):
        page.locator(f"#{button}").click(force=True)  # at the ends they do nothing
        assert step_of(page) == expected
    page.locator("#auto").click()
    expect(page.locator("#auto")).to_have_text("Pause")
    expect(page.locator("#where")).to_have_text(f"2 of {end}")
    page.locator("#auto").click()
    expect(page.locator("#auto")).to_have_text("Play")
    for summary in page.locator("summary:visible").all():
        summary.click()
    assert page.locator("details:visible:not([open])").count() == 0


def test_the_keyboard_moves_all_controls(page: Page, made: Made) -> None:
    """With Tab, Enter, the space bar and the arrow keys, and nothing else."""
    end = len(made.games[0].positions)
    press = page.keyboard.press

    def tab_to(name: str) -> None:
        for _ in range(60):
            press("Tab")
            if page.evaluate("document.activeElement.id") == name:
                return
        raise AssertionError(f"Tab does not reach {name}")

    press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    press("Enter")
    tab_to("game")
    press("ArrowDown")
    expect(page.locator("#reason")).to_contain_text(made.games[1].reason)
    press("ArrowUp")
    expect(page.locator("#reason")).to_contain_text(made.games[0].reason)
    tab_to("stage")
    for key, expected in (
        *(("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("End", end)),
        *(("ArrowRight", end), ("Home", 1), ("ArrowLeft", 1)),
    ):
        press(key)
        assert step_of(page) == expected, key
    press("Space")
    expect(page.locator("#auto")).to_have_text("Pause")
    press("Space")
    expect(page.locator("#auto")).to_have_text("Play")
    press("Home")
    for name, expected in (("first", 1), ("back", 1)):
        tab_to(name)
        press("Enter")
        assert step_of(page) == expected
    tab_to("auto")
    press("Enter")
    press("Space")
    expect(page.locator("#auto")).to_have_text("Play")
    tab_to("next")
    press("Enter")
    press("Space")
    assert step_of(page) == 3
    tab_to("last")
    press("Enter")
    assert step_of(page) == end
    tab_to("step")
    press("Home")
    press("ArrowRight")
    assert step_of(page) == 2
    press("Tab")  # the region of a table, which the arrow keys may scroll
    press("Tab")  # its first heading sorts
    press("Enter")
    assert page.evaluate("document.activeElement.closest('th').ariaSort") == "descending"
    press("Tab")
    before = page.evaluate("document.activeElement.dataset.focus")
    press("Enter")
    assert page.evaluate("document.activeElement.dataset.focus") == before
    press("ArrowRight")
    assert step_of(page) == 3
    assert page.evaluate("document.activeElement.dataset.focus") == before


def test_the_focus_is_seen(page: Page) -> None:
    for name in ("game", "stage", "first", "next"):
        page.locator(f"#{name}").focus()
        page.keyboard.press("Shift")  # the keyboard is in use
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style != "none", name


def test_plays_are_sorted_and_probabilities_add_up(page: Page, made: Made) -> None:
    page.locator("#step").fill("2")
    for table in page.locator("#choices table").all():
        names = table.locator("thead button").all_inner_texts()
        texts = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
        columns = list(zip(*texts, strict=True))
        first = [number(text) for text in columns[0]]
        assert first == sorted(first, reverse=True)
        given = [name for name in names[1:] if name.endswith(", %")]
        for name in given:
            total = sum(number(text) for text in columns[names.index(name)])
            assert total == pytest.approx(100, abs=0.06 * len(texts))
        assert given or made.games[0].record.game == "skirmish"


def number(text: str) -> float:
    return float(text.replace("✓", "").replace("−", "-").split("±")[0])


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_every_width(page: Page, made: Made, width: int) -> None:
    tens = (
        step
        for step, decisions in enumerate(made.games[0].decisions)
        if any("T" in play for decision in decisions for play in decision.plays)
    )
    page.set_viewport_size({"width": width, "height": 740})
    page.locator("details").evaluate_all("all => all.forEach(it => { it.open = true; })")
    for step in (0, 7, next(tens)):
        page.locator("#step").fill(str(step))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        tallest = page.locator(".small").evaluate_all(
            "cards => Math.max(...cards.map(card => card.scrollHeight - card.clientHeight))"
        )
        assert tallest <= 0  # no card is too narrow for its text


def test_names_are_texts(page: Page) -> None:
    assert page.title().endswith(NASTY)
    assert page.locator("b:text('bold')").count() == 0
    page.locator("#step").fill("1")
    expect(page.locator("#choices thead").first).to_contain_text(NASTY)


def test_cards_and_steps_are_told_to_those_who_can_not_see(page: Page, made: Made) -> None:
    first = made.games[0].positions[0]
    hand = first.zones["hand"]
    card = (hand if made.games[0].record.game == "deck_of_spies" else hand[0])[0]
    rank = {"A": "Ace", "T": "10", "J": "Jack", "Q": "Queen", "K": "King"}.get(card[0], card[0])
    name = "Joker" if card == "*" else f"{rank} of {SPOKEN[card[1]]}"
    assert page.get_by_role("img", name=name).count() >= 1
    for role, label in (
        *(("combobox", "Game"), ("slider", "Step"), ("button", "First step")),
        *(("button", "Step back"), ("button", "Play"), ("button", "Step forward")),
        *(("button", "Last step"), ("group", "Replay"), ("region", "Results")),
    ):
        expect(page.get_by_role(role, name=label, exact=True)).to_have_count(1)
    assert page.locator("#caption").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page: Page, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.locator("details").evaluate_all("all => all.forEach(it => { it.open = true; })")
    page.locator("#step").fill("5")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
