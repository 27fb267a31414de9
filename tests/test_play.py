"""Playing in the terminal: both games by keyboard and by mouse, saving, replays, and the review."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import position
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Button, Static

from deck_of_spies_env.advice import advise
from deck_of_spies_env.agent import BatchAgent
from deck_of_spies_env.play.app import PlayApp
from deck_of_spies_env.play.command import main
from deck_of_spies_env.play.dialogs import QuitScreen, RulesScreen
from deck_of_spies_env.play.game import Decision, Game, Play
from deck_of_spies_env.play.play_screen import PlayScreen
from deck_of_spies_env.play.players import skirmish_agent, solitaire_agent
from deck_of_spies_env.play.plays_list import PlaysList
from deck_of_spies_env.play.replay_screen import ReplayScreen
from deck_of_spies_env.play.result_screen import ResultScreen
from deck_of_spies_env.play.review import Judgement, in_words, judge
from deck_of_spies_env.play.rules_text import RULES
from deck_of_spies_env.play.saved_games import saved_game
from deck_of_spies_env.play.selection import Selection
from deck_of_spies_env.play.setup import Setup
from deck_of_spies_env.play.skirmish_game import SkirmishGame
from deck_of_spies_env.play.solitaire_game import SolitaireGame, plays_in
from deck_of_spies_env.play.widgets import CardBox
from deck_of_spies_env.play.words import face, faces
from deck_of_spies_env.records import GameRecord, read_records, replay, write_records
from deck_of_spies_env.skirmish.actions import WAIT, encode
from deck_of_spies_env.skirmish.cards import cards_in
from deck_of_spies_env.skirmish.rules import WAR
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.policies import greedy_actions
from deck_of_spies_env.solitaire.rules import Rules

SMALL, LARGE = (80, 24), (120, 40)
SHORT = SkirmishRules(max_rounds=6)

AnyPilot = Pilot[str]
Script = Callable[[PlayApp, AnyPilot], Awaitable[None]]


def solitaire(seed: int = 7, rules: Rules | None = None) -> SolitaireGame:
    return SolitaireGame(seed, rules or Rules())


def skirmish(seed: int = 7, num_players: int = 2, rules: SkirmishRules = SHORT) -> SkirmishGame:
    bots = ["rank", "intrigue", "random"][: num_players - 1]
    return SkirmishGame(seed, rules, bots, bots)


def run(script: Script, game: Game, size: tuple[int, int] = SMALL, **setup: Any) -> None:
    """Run a script in the application, on a screen of so many columns and lines."""
    run_app(PlayApp(game.title, PlayScreen(Setup(game, **setup))), script, size)


def run_app(app: PlayApp, script: Script, size: tuple[int, int]) -> None:
    async def session() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(app, pilot)

    asyncio.run(session())


def text_of(app: PlayApp, selector: str) -> str:
    """What a line of text shows."""
    return str(app.screen.query_one(selector, Static).visual)


def text_on(app: PlayApp) -> str:
    """All that is written on the screen."""
    lines = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in lines)


def check_nothing_is_cut(app: PlayApp) -> None:
    """All widgets lie on the screen, and texts that wrap have room for all their lines."""
    screen = app.screen.region
    for widget in app.screen.walk_children(Widget):
        if not widget.display or any(isinstance(one, VerticalScroll) for one in widget.ancestors):
            continue
        assert widget.region in screen, (widget, widget.region)
        if isinstance(widget, Static) and widget.size.width and "seat" not in widget.classes:
            lines = widget.visual.get_height(widget.styles, widget.content_size.width)
            if widget.id not in {"last", "graveyard"}:
                assert lines <= widget.content_size.height, (widget, str(widget.visual))


def a_play(game: Game) -> Play:
    """A play that uses cards as a rule: the last but one of the list."""
    plays = game.plays()
    return plays[max(0, len(plays) - 2)]


def greedy_play(game: SolitaireGame) -> Play:
    """What ``greedy`` plays, which gets to the last spy more often."""
    (action,) = greedy_actions(np.atleast_1d(game.state), game.rules).tolist()
    (play,) = [play for play in game.plays() if play.action == action]
    return play


async def by_keyboard(app: PlayApp, pilot: AnyPilot, game: Game, play: Play) -> None:
    keys = [str(game.pickable().index(card) + 1) for card in play.cards]
    await pilot.press(*keys, game.kinds[play.kind])


async def by_mouse(app: PlayApp, pilot: AnyPilot, game: Game, play: Play) -> None:
    for card in play.cards:
        boxes = [box for box in app.screen.query(CardBox) if box.card == card]
        assert await pilot.click([box for box in boxes if box.has_class("able")][-1])
    assert await pilot.click(app.screen.query_one(f"#{play.kind}", Button))


async def review_of(app: PlayApp, pilot: AnyPilot) -> str:
    """The result screen's text once the review is done."""
    await pilot.pause()
    assert isinstance(app.screen, ResultScreen)
    await app.workers.wait_for_complete()
    await pilot.pause()
    return text_of(app, "#review_text")


# --- Whole games ----------------------------------------------------------------------------------


def played(
    game: Game, way: Callable[..., Awaitable[None]], chooses: Callable[[Any], Play]
) -> tuple[GameRecord, str]:
    """Play a whole game; nothing may be cut meanwhile. Gives its record and its review."""
    records: list[GameRecord] = []
    shown: list[str] = []

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        num_decisions = 0
        while not game.is_over:
            if num_decisions % 4 == 0:
                check_nothing_is_cut(app)
            await way(app, pilot, game, chooses(game))
            num_decisions += 1
            assert len(game.decisions) == num_decisions
        shown.append(await review_of(app, pilot))
        check_nothing_is_cut(app)
        assert game.result() in text_on(app)
        await pilot.press("n")
        await pilot.pause()
        assert isinstance(app.screen, PlayScreen)
        assert game.episode == 1
        assert not game.decisions

    run(script, game, write=records.append, path="games.jsonl")
    return records[0], shown[0]


def test_a_whole_game_by_keyboard() -> None:
    record, review = played(solitaire(), by_keyboard, greedy_play)
    positions = list(replay(record))
    assert len(positions) == len(record.actions) + 1
    assert positions[-1].phase == "over"
    assert re.search(r"better by \d\.\d\d ± \d\.\d\d Key Spies", review)


def test_a_whole_game_by_mouse() -> None:
    record, review = played(solitaire(3), by_mouse, a_play)
    assert list(replay(record))[-1].phase == "over"
    assert re.search(r"better by \d\.\d\d ± \d\.\d\d Key Spies", review)


@pytest.mark.parametrize("num_players", [2, 4])
def test_skirmish_by_keyboard(num_players: int) -> None:
    record, review = played(skirmish(5, num_players), by_keyboard, a_play)
    assert record.players[0] == "human"
    assert list(replay(record))[-1].phase == "over"
    assert "payoff" in review


def test_skirmish_by_mouse() -> None:
    record, review = played(skirmish(9, 3), by_mouse, a_play)
    assert list(replay(record))[-1].phase == "over"
    assert "payoff" in review


def test_the_seat_moves_on_from_game_to_game_and_records_say_who_sat_where() -> None:
    game = skirmish(2, 3)
    for episode in range(2):
        while not game.is_over:
            game.play(game.plays()[0].action)
        record = game.record()
        assert record.players.index("human") == episode == record.episode
        assert len(list(replay(record))) == len(game.decisions) + 1
        game.deal()


# --- What is legal --------------------------------------------------------------------------------


def subsets(cards: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(cards, size) for size in range(len(cards) + 1))


@pytest.mark.parametrize(
    "where",
    [
        lambda: position("2c 3d 4s 4h 9c", "7h"),
        lambda: position("Ah 2h 3h 4h 5c", "7h"),
        lambda: position("As 2c 5h 6d Tc", "Js"),
        lambda: position("3c 3d 3s", "9h", phase="retire"),
    ],
)
def test_a_selection_is_ready_exactly_where_the_rules_allow_it(
    where: Callable[[], DeckOfSpiesEnv],
) -> None:
    env = where()
    state, mask = env.get_state()["state"], env.action_masks()
    hand = env.zones()["hand"]
    kinds = ("retire", "pass") if env.phase == "retire" else ("counter", "recruit")
    legal = {tuple(env.decode(action)) for action in np.flatnonzero(mask)}
    for cards in subsets(hand):
        selection = Selection(plays_in(state, mask, 5))
        for card in cards:
            selection.toggle(card)
        for kind in kinds:
            assert bool(selection.ready(kind)) == ((kind, cards) in legal)
        named = {play.kind for play in selection.ready()}
        by_enter = {kind for kind, of_legal in legal if of_legal == cards}
        assert named == (by_enter if cards or len(legal) == 1 else set())  # to pass takes a p


def test_cards_that_can_still_take_part_light_up() -> None:
    env = position("2c 3d 4s 4h 9c", "7h")
    selection = Selection(plays_in(env.get_state()["state"], env.action_masks(), 5))
    assert selection.able == {"3d", "4s", "4h", "9c"}  # 2c would always be to spare (D1)
    selection.toggle("3d")
    assert selection.able == {"3d", "4s", "4h"}
    selection.toggle("3d")
    selection.step(-1)
    assert selection.cards == set(selection.fitting[-1].cards)
    selection.step(1)
    assert selection.chosen == selection.fitting[0]


def test_illegal_selections_can_not_be_played() -> None:
    game = solitaire()  # 6h against Ah 3c 3d 4d 4h

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        before = game.snapshot()
        await pilot.press("1", "2", "3", "4")
        assert "spare" in text_of(app, "#message")
        assert all(app.screen.query_one(f"#{kind}", Button).disabled for kind in game.kinds)
        await pilot.press("enter", *game.kinds.values())
        await pilot.click(app.screen.query_one("#counter", Button))
        assert not game.decisions
        assert game.snapshot() == before
        await pilot.press("escape", "2")
        assert "total 3" in text_of(app, "#message")
        await pilot.press("enter", "c")
        assert not game.decisions

    run(script, game)


def test_enter_plays_only_what_leaves_no_doubt() -> None:
    game, cards = next(
        (game, cards)
        for game in map(solitaire, range(200))
        for cards in subsets(game.pickable())
        if {play.kind for play in game.plays() if play.cards == cards} == {"counter", "recruit"}
    )

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        await pilot.press(*(str(game.pickable().index(card) + 1) for card in cards), "enter")
        assert not game.decisions
        assert "counter (c) or recruit (r)" in text_of(app, "#message")
        await pilot.press("r")
        assert game.last_play().startswith("You recruited")

    run(script, game)


def test_of_two_jokers_one_is_picked_and_committed() -> None:
    game = next(game for game in map(skirmish, range(400)) if game.pickable().count("*") == 2)
    hand = game.pickable()

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        listed = app.screen.query_one(PlaysList).options
        assert sum(not option.disabled for option in listed) == len(set(hand))
        await pilot.press(str(hand.index("*") + 1))
        assert sum(box.has_class("picked") for box in app.screen.query(CardBox)) == 1
        await pilot.press("enter")
        assert game.decisions[0].action == encode("*")

    run(script, game)


def test_a_play_of_the_list_can_be_clicked() -> None:
    game = solitaire()

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        await pilot.click(PlaysList, offset=(4, 9))  # two headings among the lines above
        picked = {box.card for box in app.screen.query(CardBox) if box.has_class("picked")}
        assert picked == set(game.plays()[7].cards)
        await pilot.press("enter")
        assert len(game.decisions) == 1

    run(script, game)


def test_an_assassination_takes_one_of_the_aces() -> None:
    game = solitaire()
    while not game.picks_one:
        game.play(game.plays()[0].action)
    spy = game.state["spy"]

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        check_nothing_is_cut(app)
        legal = [play.cards[0] for play in game.plays()]
        await pilot.press(str(game.pickable().index(legal[-1]) + 1), "a")
        assert game.state["spy"] != spy
        assert face(legal[-1]) in text_of(app, "#last")

    run(script, game)


# --- Undo, help, quitting -------------------------------------------------------------------------


def test_undo_is_off_unless_asked_for() -> None:
    game = solitaire()

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        await pilot.press("down", "enter", "u")
        assert len(game.decisions) == 1
        assert "Undo" not in text_on(app)

    run(script, game)


@pytest.mark.parametrize("deal", [solitaire, skirmish])
def test_undo_gives_no_new_luck(deal: Callable[[], Game]) -> None:
    game = deal()

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        await pilot.press("u")  # nothing to undo yet
        begin = game.snapshot()
        await pilot.press("down", "enter", "down", "enter")
        after = game.snapshot()
        await pilot.press("u", "u")
        assert game.snapshot() == begin
        await pilot.press("down", "enter", "down", "enter")
        assert game.snapshot() == after

    run(script, game, undo=True)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("deal", [solitaire, skirmish])
def test_rules_are_a_key_away(deal: Callable[[], Game], size: tuple[int, int]) -> None:
    game = deal()

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        await pilot.press("1", "question_mark")
        assert isinstance(app.screen, RulesScreen)
        check_nothing_is_cut(app)
        assert "Aim." in text_on(app)
        await pilot.press("end")
        await pilot.pause(0.5)  # it scrolls
        last_word = RULES[game.title].split()[-1]
        assert last_word in text_on(app)
        await pilot.press("escape")
        assert isinstance(app.screen, PlayScreen)

    run(script, game, size)


def test_quitting_asks_if_a_game_is_in_hand() -> None:
    game = solitaire()

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        await pilot.press("down", "enter", "q")
        assert isinstance(app.screen, QuitScreen)
        check_nothing_is_cut(app)
        await pilot.press("n")
        assert isinstance(app.screen, PlayScreen)
        await pilot.press("ctrl+c", "y")
        assert not app.is_running or app._exit

    run(script, game)


def test_a_terminal_that_is_too_small_is_told() -> None:
    def told(app: PlayApp) -> bool:
        return any("80 by 24" in notice.message for notice in app._notifications)

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        assert told(app) == (app.size.width < 80 or app.size.height < 24)
        await pilot.resize_terminal(79, 24)
        await pilot.pause()
        assert told(app)

    for size in ((60, 20), (80, 20), SMALL):
        run(script, solitaire(), size)


SUM = re.compile(r"(\d+) in all")


def war_sums_of(game: SkirmishGame, before: Any) -> set[int]:
    """What those in the War have put together before any tie, by S6."""
    sums: set[int] = set()
    joint = game.decisions[-1].joint
    for seat in range(game.num_players):
        if before["participants"] >> seat & 1:
            ranks = [card[0] for card in cards_in(int(before["stakes"][seat]))]
            ranks += [] if joint[seat] == WAIT else ["A23456789TJQK*"[joint[seat]]]
            plain = ["A23456789TJQK".index(rank) + 1 for rank in ranks if rank != "*"]
            sums.add(sum(plain) + max([0, *plain]) * ranks.count("*"))
    return sums


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_stakes_of_a_war_are_told_when_it_is_over(num_players: int) -> None:
    seen = 0
    for seed in range(12):
        game = skirmish(seed, num_players)
        while not game.is_over:
            before = game.state.copy()
            game.play(a_play(game).action)
            told = game.last_play()
            staked = [cards_in(int(pile)) for pile in before["stakes"] if pile]
            if before["phase"] == WAR:
                seen += len(staked)
                assert all(faces(cards) in told for cards in staked)
                assert war_sums_of(game, before) == {int(sum_) for sum_ in SUM.findall(told)}
            else:
                assert " with " not in told  # those of a War that has begun lie face down
    assert seen > 10


def test_a_hand_of_eight_fits_on_the_screen() -> None:
    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        check_nothing_is_cut(app)
        await pilot.press("8", "7", "6", "5", "4")
        check_nothing_is_cut(app)

    run(script, solitaire(1, Rules(hand_size=8)))


def test_seats_show_nothing_that_the_person_may_not_know() -> None:
    game = skirmish(11, 3, SkirmishRules(max_rounds=4))

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        while not game.is_over:
            table = game._table.all_zones()
            hidden = {
                face(card)
                for zone in ("hand", "supply", "stakes")
                for seat, cards in enumerate(table[zone])
                for card in cards
                if (zone != "hand" or seat != game.seat) and card != "*"
            }
            shown = set(re.findall(r"(?:10|[A2-9JQK])[♣♦♥♠]", text_on(app)))
            assert not shown & hidden
            await pilot.press("down", "enter")
            await pilot.pause()

    run(script, game)


class Cheat(BatchAgent):
    """Commits what it has not."""

    def choose(self, observations: Any, action_masks: Any) -> Any:
        return action_masks.argmin(axis=1)


class Failing(BatchAgent):
    """Has no advice to give."""

    def choose(self, observations: Any, action_masks: Any) -> Any:
        raise ValueError("not today")


@pytest.mark.parametrize(
    ("opponent", "adviser", "told"),
    [
        (Cheat(), None, "an agent broke the rules: "),
        (Failing(), None, "an opponent failed: ValueError: not today"),
        ("rank", Failing(), "no advice from the agent: not today"),
    ],
)
def test_an_agent_that_fails_ends_play_with_one_line(
    opponent: Any, adviser: BatchAgent | None, told: str
) -> None:
    game = SkirmishGame(7, SHORT, [opponent], ["other"])
    app = PlayApp(game.title, PlayScreen(Setup(game, adviser)))

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        if adviser is None:
            await pilot.press("1", "enter")
        while app.return_value is None:
            await pilot.pause(0.05)

    run_app(app, script, SMALL)
    assert (app.return_value or "").startswith(told)


def test_the_review_can_be_left_at_any_time() -> None:
    game = skirmish(3)
    while len(game.decisions) < 5:
        game.play(game.plays()[0].action)

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        while not game.is_over:
            await pilot.press("down", "enter")
        await pilot.press("n")
        assert isinstance(app.screen, PlayScreen)
        assert not game.decisions

    run(script, game)


# --- Advice and review ----------------------------------------------------------------------------


class EvenAgent(BatchAgent):
    """Finds all plays equally likely and takes the first."""

    def choose(self, observations: Any, action_masks: Any) -> Any:
        return action_masks.argmax(axis=1)

    def probabilities(self, observations: Any, action_masks: Any) -> Any:
        return action_masks / action_masks.sum(axis=1, keepdims=True)


def even_agent(**_given: Any) -> EvenAgent:
    """A factory for the command line."""
    return EvenAgent()


def test_advice_shows_probabilities_and_values_and_can_be_hidden() -> None:
    game = solitaire()
    plays = game.plays()

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        await app.workers.wait_for_complete()
        await pilot.pause()
        worths = advise(None, game.snapshot(), Rules(), samples=256, seed=0, judge="playouts")
        text = text_on(app)
        assert text.count(f"{1 / len(plays):.0%}") == len(plays)
        assert text.count("*") == 1
        for key_spies in worths.key_spies:
            assert f"{key_spies:.2f}" in text
        assert "agent Key Spies" in text
        await pilot.press("h")
        assert "%" not in text_on(app)
        await pilot.press("h")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert text_on(app) == text

    run(script, game, agent=EvenAgent())


def at_the_last_spy() -> tuple[SolitaireGame, Decision]:
    """A decision that is worth one Key Spy: K♥ could be recruited and is countered."""
    env = position("3h Jh Qh", "Kh", draw_deck="Jc Js Jd Qc Qd", spy_discard="Kc Kd Ks Qs")
    game = solitaire()
    action = env.encode("counter", ["3h", "Jh"])
    mask = env.action_masks()
    assert mask[action]
    assert mask[env.encode("recruit", ["3h", "Jh"])]
    return game, Decision(env.get_state(), action, (action,), int(mask.sum()))


def test_the_review_knows_what_the_last_decision_cost() -> None:
    game, decision = at_the_last_spy()
    judgement = judge(game, decision, seed=0)
    assert judgement.cost == pytest.approx(1.0)
    assert judgement.error == 0
    assert judgement.is_mistake
    (summary, sentence, _) = in_words(game, [judgement])
    assert summary.startswith("1 of your 1 decisions cost something, 1.00 Key Spies")
    assert "facing K♥ with 3♥ J♥ Q♥" in sentence
    assert "chose to counter K♥ with 3♥ J♥; to recruit K♥ with" in sentence
    assert sentence.endswith("was better by 1.00 ± 0.00 Key Spies.")


def test_the_review_names_the_costliest_and_at_least_one() -> None:
    game, decision = at_the_last_spy()
    best = decision.action + 1
    costs = [0.5, 2.0, 0.3, 0.2, 1.0, 0.4, 0.1]
    judged = [Judgement(decision, best, cost, error=0.01) for cost in costs]
    paragraphs = in_words(game, judged)
    named = [re.search(r"better by (\d\.\d\d)", text) for text in paragraphs[1:-1]]
    assert [found and found[1] for found in named] == ["2.00", "1.00", "0.50", "0.40", "0.30"]
    within_errors = [Judgement(decision, best, cost, error=1.5) for cost in costs]
    paragraphs = in_words(game, within_errors)
    assert paragraphs[0].startswith("None of your 7 decisions was clearly a mistake")
    assert len(paragraphs) == 3
    assert "2.00 ± 3.00" in paragraphs[1]
    perfect = in_words(game, [Judgement(decision, decision.action, 0.0, 0.0)])
    assert "cost 0.00 Key Spies" in perfect[1]


# --- Saving, replays and the command line ---------------------------------------------------------


def finished(game: Game) -> GameRecord:
    while not game.is_over:
        game.play(a_play(game).action)
    return game.record()


@pytest.mark.parametrize("deal", [solitaire, skirmish])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_replays_show_every_position(deal: Callable[[], Game], size: tuple[int, int]) -> None:
    record = finished(deal())
    positions = list(replay(record))
    saved = saved_game(record, 1)

    async def script(app: PlayApp, pilot: AnyPilot) -> None:
        for at in range(min(8, len(positions))):
            check_nothing_is_cut(app)
            hand = positions[at].zones["hand"]
            cards = hand if isinstance(hand[0], str) else chain.from_iterable(hand)
            text = text_on(app)
            assert f"step {at + 1} of {len(positions)}" in text
            assert all(face(card) in text for card in cards)
            assert text.count("▶") - 1 == len(saved.chosen(at))
            await pilot.press("right")
        await pilot.press("left", "end")
        assert f"step {len(positions)} of" in text_on(app)
        await pilot.press("right", "home", "left")
        assert "step 1 of" in text_on(app)
        check_nothing_is_cut(app)

    run_app(PlayApp(saved.title, ReplayScreen(saved)), script, size)


def test_finished_games_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records = [finished(solitaire()), finished(skirmish())]
    write_records(path, records[:1])
    write_records(path, records[1:], append=True)
    assert list(read_records(path)) == records


def test_a_full_disk_is_told_and_the_game_goes_on() -> None:
    def write(_record: GameRecord) -> None:
        raise OSError(28, "No space left on device")

    game = solitaire()
    finished(game)
    told = Setup(game, write=write, path="games.jsonl").save()
    assert told == "Not saved: can't write 'games.jsonl': No space left on device."


def test_killed_in_play_it_loses_the_game_in_hand_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    record = finished(solitaire())
    write_records(path, [record])
    with Terminal("--seed", "7", "--save", str(path)) as terminal:
        terminal.wait_for("turn 1 of 36")
        terminal.type("45\r")
        terminal.wait_for("You countered")
        terminal.process.send_signal(signal.SIGKILL)
    assert list(read_records(path)) == [record]


class Terminal:
    """The command in a terminal of its own, 80 by 24."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "deck_of_spies_env.play", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        )
        os.close(theirs)
        self._seen = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + 120
        while text not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._seen):
            assert time.monotonic() < until, self._seen[-2000:]
            if select.select([self._ours], [], [], 1.0)[0]:
                self._seen += os.read(self._ours, 1 << 16).decode(errors="replace")

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a bad command line ends with."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line.removeprefix("python -m deck_of_spies_env.play: error: ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "not a terminal"),
        (["--seed", "-1"], "--seed must be 0 or more, got -1"),
        (["--seed", "x"], "invalid int value: 'x'"),
        (["--game", "chess"], "invalid choice: 'chess'"),
        (["--num-players", "3"], "--num-players goes with --game skirmish"),
        (["--opponents", "rank"], "--opponents goes with --game skirmish"),
        (["--rules", "hand_size=9"], "hand_size"),
        (["--rules", "hand_size"], "can't read 'hand_size'"),
        (["--game-number", "2"], "--game-number goes with --replay"),
        (["--advice", "nobody"], "unknown agent 'nobody'; there are random, greedy"),
        (["--advice", "no_such_module:make"], "can't be made: No module named 'no_such_module'"),
        (["--advice", "os:getcwd"], "agent 'os:getcwd' can't be made"),
        (["--advice", "test_play:Terminal"], "can't be made"),
        (
            ["--game", "skirmish", "--opponents", "nobody"],
            "unknown agent 'nobody'; there are random",
        ),
        (["--game", "skirmish", "--opponents", "high", "rank"], "must name 1 or 1, got 2"),
        (["--game", "skirmish", "--seat", "2"], "seat must be a whole number 0-1, got 2"),
        (
            ["--game", "skirmish", "--rules", 'ranks="A"', "num_suits=1", "--num-players", "4"],
            "cards",
        ),
        (["--replay", "missing.jsonl"], "can't open 'missing.jsonl': No such file"),
        (["--replay", "missing.jsonl", "--undo"], "--undo does not go with --replay"),
    ],
)
def test_bad_command_lines_get_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refused(capsys, *arguments)


def test_without_textual_the_extra_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "deck_of_spies_env.play.play_screen")
    monkeypatch.setitem(sys.modules, "textual", None)
    assert refused(capsys) == "needs textual: pip install 'deck_of_spies_env[play]'"


def test_files_that_are_no_records_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign, corrupt = tmp_path / "notes.txt", tmp_path / "games.jsonl"
    foreign.write_text("to do: play more\n")
    write_records(corrupt, [finished(solitaire())])
    corrupt.write_text(corrupt.read_text().replace("counter", "recruit", 1))
    assert "not JSON" in refused(capsys, "--replay", str(foreign))
    assert "line 1: action" in refused(capsys, "--replay", str(corrupt))
    assert "no game 2, the file holds 1" in refused(
        capsys, "--replay", str(corrupt), "--game-number", "2"
    )
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert "not JSON" in refused(capsys, "--save", str(foreign))
    assert foreign.read_text() == "to do: play more\n"
    assert "can't open" in refused(capsys, "--save", str(tmp_path / "no" / "games.jsonl"))


def test_agents_of_the_users_own_are_made_by_their_factory() -> None:
    assert isinstance(solitaire_agent("test_play:even_agent", Rules()), EvenAgent)
    assert isinstance(skirmish_agent("test_play:even_agent", SHORT, 2), EvenAgent)
    assert skirmish_agent("intrigue", SHORT, 2) == "intrigue"
    assert type(solitaire_agent("greedy", Rules())).__name__ == "GreedyAgent"
    with pytest.raises(ValueError, match="is none: it needs the methods act and reset"):
        solitaire_agent("builtins:dict", Rules())
