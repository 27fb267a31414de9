"""Pictures and windows of both games, and tables in colour at a terminal."""

from __future__ import annotations

import copy
import io
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from conftest import SHORT, completed, native, new_env, position
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordVideo
from pettingzoo.utils.conversions import aec_to_parallel

from deck_of_spies_env import drawing
from deck_of_spies_env.adapters import RenderModeError
from deck_of_spies_env.drawing import Canvas, Screen, load_pygame
from deck_of_spies_env.skirmish import parallel_env
from deck_of_spies_env.skirmish import rendering as skirmish_rendering
from deck_of_spies_env.skirmish.env import SkirmishEnv
from deck_of_spies_env.skirmish.parallel import env as aec_env
from deck_of_spies_env.skirmish.vector_env import SkirmishVectorEnv
from deck_of_spies_env.solitaire import rendering as solitaire_rendering
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.terminal import coloured, print_table

IDS = ["DeckOfSpies-v0", "DeckOfSpiesKeys-v0", "DeckOfSpiesPerfect-v0", "Skirmish-v0"]
SHAPES = {
    "DeckOfSpies": (solitaire_rendering.HEIGHT, solitaire_rendering.WIDTH, 3),
    "Skirmish": (skirmish_rendering.HEIGHT, skirmish_rendering.WIDTH, 3),
}

Box = tuple[float, float, float, float]


def named(make: Any) -> str:
    """Of a case: its representation holds an address, and differs from process to process."""
    return make.__name__


def shape_of(env_id: str) -> tuple[int, int, int]:
    return next(shape for name, shape in SHAPES.items() if env_id.startswith(name))


def picture_of(env: Any) -> Any:
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    return picture


def same(one: Any, other: Any) -> bool:
    return np.array_equal(picture_of(one), picture_of(other))


def played(env: Any, seed: int, max_steps: int = 10_000) -> Iterator[Any]:
    """Play at random, and stop after the reset and every step with the info there."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    yield info
    for _ in range(max_steps):
        legal = np.flatnonzero(info["action_mask"])
        _, _, terminated, truncated, info = env.step(int(rng.choice(legal)))
        yield info
        if terminated or truncated:
            return


def in_a_fresh_interpreter(code: str, **environment: str) -> str:
    """Run code where no display is to be had, and return what it prints."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=variables | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- What a picture is ----------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", IDS)
def test_pictures_have_one_shape_at_every_step(env_id: str) -> None:
    env = gym.make(env_id, render_mode="rgb_array")
    for step, _ in enumerate(played(env, 0)):
        if step % 8 == 0 or env.unwrapped.phase == "over":  # type: ignore[attr-defined]
            picture = picture_of(env)
            assert (picture.shape, picture.dtype) == (shape_of(env_id), np.uint8)
            assert picture.flags.c_contiguous
            assert picture.flags.writeable
            assert picture.std() > 20
    assert env.unwrapped.phase == "over"  # type: ignore[attr-defined]


@pytest.mark.parametrize("env_id", IDS)
def test_the_same_position_has_the_same_pixels(env_id: str) -> None:
    env, other = (gym.make(env_id, render_mode="rgb_array") for _ in range(2))
    for _ in zip(played(env, 3, 8), played(other, 3, 8), strict=True):
        first = picture_of(env)
        assert np.array_equal(first, picture_of(env))
        assert np.array_equal(first, picture_of(other))


def test_every_position_of_a_game_looks_different() -> None:
    for env_id in ("DeckOfSpies-v0", "Skirmish-v0"):
        env = gym.make(env_id, render_mode="rgb_array")
        pictures = [picture_of(env).tobytes() for _ in played(env, 0, 12)]
        assert len(set(pictures)) == len(pictures)


def test_a_picture_is_the_callers_own() -> None:
    env = new_env(render_mode="rgb_array")
    env.reset(seed=0)
    first = picture_of(env)
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(picture_of(env), kept)


@pytest.mark.parametrize("hand_size", range(3, 9))
def test_all_hand_sizes_and_phases_are_drawn(hand_size: int) -> None:
    env = new_env({"hand_size": hand_size}, render_mode="rgb_array")
    pictures: dict[str, Any] = {}
    for seed in range(40):
        for _ in played(env, seed):
            if env.phase not in pictures:
                pictures[env.phase] = picture_of(env)
        if len(pictures) == 3:
            break
    assert set(pictures) == {"act", "retire", "over"}
    assert all(picture.shape == SHAPES["DeckOfSpies"] for picture in pictures.values())


@pytest.mark.parametrize("make", [new_env, SkirmishEnv, parallel_env], ids=named)
def test_before_the_first_reset_there_is_an_empty_table(make: Callable[..., Any]) -> None:
    assert picture_of(make(render_mode="rgb_array")).dtype == np.uint8


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_all_tables_and_phases_of_skirmish_are_drawn(num_players: int) -> None:
    env = SkirmishEnv(num_players, render_mode="rgb_array")
    pictures: dict[str, Any] = {}
    for seed in range(20):
        for _ in played(env, seed):
            if env.phase not in pictures:
                pictures[env.phase] = picture_of(env)
        if len(pictures) == 3:
            break
    assert set(pictures) == {"skirmish", "war", "over"}
    assert all(picture.shape == SHAPES["Skirmish"] for picture in pictures.values())


# --- What a picture shows -------------------------------------------------------------------------


class Recorded:
    """All that was drawn: texts and small cards with their boxes, and cards."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[tuple[str, Box]] = []
        self.chips: list[tuple[str, Box]] = []
        self.marked: list[str] = []
        self.cards: list[str] = []
        self.boxes: list[Box] = []
        text, chip, card, box = Canvas.text, Canvas.chip, Canvas.card, Canvas.box

        def record_text(canvas: Canvas, x: float, y: float, words: str, *args: Any, **kw: Any):  # type: ignore[no-untyped-def]
            end = text(canvas, x, y, words, *args, **kw)
            self.texts.append((words, (x, y + 1, end - x, 0.55 * args[0])))
            return end

        def record_chip(  # type: ignore[no-untyped-def]
            canvas: Canvas, x: float, y: float, name: str, scale: float = 1, **kw: Any
        ):
            width, height = drawing.CHIP_WIDTH * scale, drawing.CHIP_HEIGHT * scale
            self.chips.append((name, (x, y, width, height)))
            if kw["marked"]:
                self.marked.append(name)
            chip(canvas, x, y, name, scale, **kw)

        def record_card(canvas: Canvas, x: float, y: float, height: float, name: str) -> None:
            self.cards.append(name)
            card(canvas, x, y, height, name)

        def record_box(canvas: Canvas, place: Box, *args: Any, **kw: Any) -> None:
            self.boxes.append(place)
            box(canvas, place, *args, **kw)

        monkeypatch.setattr(Canvas, "text", record_text)
        monkeypatch.setattr(Canvas, "chip", record_chip)
        monkeypatch.setattr(Canvas, "card", record_card)
        monkeypatch.setattr(Canvas, "box", record_box)

    def of(self, env: Any) -> Recorded:
        """Draw an environment's picture and record it alone."""
        for kept in (self.texts, self.chips, self.marked, self.cards, self.boxes):
            kept.clear()
        picture_of(env)
        return self

    @property
    def words(self) -> str:
        return "|".join(text for text, _ in self.texts)

    def check_layout(self, shape: tuple[int, ...]) -> None:
        """Nothing lies outside, no text or small card covers another."""
        height, width, _ = shape
        texts = [box for text, box in self.texts if text]
        chips = [box for _, box in self.chips]
        for x, y, across, down in [*texts, *chips, *self.boxes]:
            assert min(x, y) >= 0
            assert x + across <= width
            assert y + down <= height
        for boxes in (texts, chips):
            for one, other in combinations(boxes, 2):
                assert not _overlap(one, other), (one, other)


def _overlap(one: Box, other: Box) -> bool:
    return all(
        one[axis] < other[axis] + other[axis + 2] and other[axis] < one[axis] + one[axis + 2]
        for axis in (0, 1)
    )


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(monkeypatch)


@pytest.mark.parametrize("hand_size", [3, 5, 8])
def test_nothing_overlaps_or_is_cut_off(recorded: Recorded, hand_size: int) -> None:
    env = new_env({"hand_size": hand_size}, render_mode="rgb_array", illegal_action="lose")
    for _ in played(env, 0):
        recorded.of(env).check_layout(SHAPES["DeckOfSpies"])
    env.reset(seed=0)
    env.step(12345678)
    recorded.of(env).check_layout(SHAPES["DeckOfSpies"])
    assert "illegal action 12345678" in recorded.words


def test_long_lists_fit(recorded: Recorded) -> None:
    """Nearly all cards in one pile, and more legal plays than there is room for."""
    hand = "Ac 2c 2d 3c 3d 4c 4d 5c"
    others = [card for card in completed({})["spy_discard"] if card not in f"{hand} Kc"]
    crowded = position(hand, "Kc", draw_discard=" ".join(others), hand_size=8)
    env = new_env({"hand_size": 8}, render_mode="rgb_array")
    env.reset(options={"zones": crowded.zones()})
    recorded.of(env).check_layout(SHAPES["DeckOfSpies"])
    assert len(re.findall(r"and \d+ more", recorded.words)) == 2
    assert len(recorded.chips) > len(others) + 40


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_nothing_overlaps_or_is_cut_off_in_skirmish(recorded: Recorded, num_players: int) -> None:
    env = SkirmishEnv(num_players, "random", render_mode="rgb_array")
    for step, _ in enumerate(played(env, num_players)):
        if step % 3 == 0 or env.phase != "skirmish":
            recorded.of(env).check_layout(SHAPES["Skirmish"])


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_largest_piles_of_skirmish_fit(recorded: Recorded, num_players: int) -> None:
    deck = [*(card for zone in completed({}).values() for card in zone), "*", "*"]
    hands = [[deck[seat]] for seat in range(num_players)]
    rest = deck[num_players:]
    for zone in ("capture", "graveyard"):
        env = SkirmishEnv(num_players, seat=0, render_mode="rgb_array")
        piles = [rest, *([[]] * (num_players - 1))] if zone == "capture" else rest
        env.reset(seed=0, options={"table": {"hand": hands, zone: piles}})
        recorded.of(env).check_layout(SHAPES["Skirmish"])
        assert len(recorded.chips) == len(rest)


def test_the_last_play_is_told_and_marked(recorded: Recorded) -> None:
    env = new_env(render_mode="rgb_array")
    env.reset(seed=7)
    assert "Last play" not in recorded.of(env).words
    env.step(env.encode("recruit", ["Ah", "4d", "4h"]))
    words = recorded.of(env).words
    assert "Last play|recruit|" in words
    assert sorted(recorded.marked) == ["4d", "4h", "6h", "Ah"]
    state = env.get_state()
    env.set_state(state)
    assert "Last play" not in recorded.of(env).words
    assert not recorded.marked


def test_a_position_shows_its_piles_and_plays(recorded: Recorded) -> None:
    env = new_env(render_mode="rgb_array")
    zones = position(
        "7c Td", "6h", spy_deck="Kc Kd", draw_deck="2c Jc As", draw_discard="9s"
    ).zones()
    env.reset(options={"zones": zones})
    words = recorded.of(env).words
    assert recorded.cards == ["6h", "7c", "Td"]
    for shown in ("+ 2 unseen", "3 cards", "40 cards", "1 held, 9 lost, 7 needed", "Act"):
        assert shown in words, shown
    chips = [name for name, _ in recorded.chips]
    assert chips[:4] == ["Ac", "Ad", "Ah", "9s"]  # removed, then the Draw Discard
    assert chips[4:] == ["7c", "Td"]  # each of the two is a counter
    assert not {"Kc", "Kd", "2c", "Jc", "As"} & {*chips, *recorded.cards}


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [("win", "Win"), ("loss", "Loss"), ("illegal_action", "Loss: illegal action")],
)
def test_the_outcome_is_told(recorded: Recorded, outcome: str, shown: str) -> None:
    need = 12 if outcome == "loss" else 1
    env = new_env(
        {"key_spies_to_win": need}, start=SHORT, illegal_action="lose", render_mode="rgb_array"
    )
    env.reset(seed=0)
    if outcome == "illegal_action":
        env.step(-1)
    while env.phase != "over":
        env.step(int(np.flatnonzero(env.action_masks())[0]))
    assert shown in recorded.of(env).words.split("|")


def test_skirmish_tells_the_last_step(recorded: Recorded) -> None:
    table = {"hand": [["Kc"], ["Ad"]], "supply": [["2c", "3c"], ["2d", "3d"]]}
    env = parallel_env(render_mode="rgb_array", illegal_action="lose")
    env.reset(seed=0, options={"table": table})
    assert "Last step" not in recorded.of(env).words
    assert "may play K" in recorded.words
    env.step({"player_0": 12, "player_1": 0})
    words = recorded.of(env).words
    assert "seat 0: K|seat 1: A|seat 1 takes the pot" in words
    env.step({"player_0": 99, "player_1": int(env.observe("player_1")["action_mask"].argmax())})
    assert "seat 0: illegal action 99" in recorded.of(env).words
    assert "illegal action, " in recorded.words  # the outcome of seat 0
    assert "win, " in recorded.words


def test_long_illegal_actions_fit(recorded: Recorded) -> None:
    env = parallel_env(4, render_mode="rgb_array", illegal_action="lose")
    env.reset(seed=0)
    env.step(dict.fromkeys(env.agents, 2**62))
    recorded.of(env).check_layout(SHAPES["Skirmish"])
    assert recorded.words.count(f"illegal action {2**62}") == 4
    alone = new_env(render_mode="rgb_array", illegal_action="lose")
    alone.reset(seed=0)
    alone.step(-(2**62))
    recorded.of(alone).check_layout(SHAPES["DeckOfSpies"])


def test_skirmish_tells_of_a_war(recorded: Recorded) -> None:
    table = {
        "hand": [["7c", "2h"], ["7d", "9d"]],
        "supply": [["2c", "3c", "4c"], ["2d", "3d", "4d"]],
    }
    env = parallel_env(render_mode="rgb_array")
    env.reset(seed=0, options={"table": table})
    env.step({"player_0": 6, "player_1": 6})
    assert env.phase == "war"
    assert "seat 0: 7|seat 1: 7|War" in recorded.of(env).words
    env.step({"player_0": 1, "player_1": 8})
    assert "seat 0: 2|seat 1: 9|seat 1 takes the pot" in recorded.of(env).words


# --- What a picture does not show -----------------------------------------------------------------


def test_random_streams_do_not_show() -> None:
    env, other = (new_env(render_mode="rgb_array") for _ in range(2))
    for step, _ in enumerate(played(env, 1)):
        if step % 5 == 0:
            state = env.get_state()
            env_streams = state.copy()
            for field in ("key", "gamma", "spies", "draws"):
                env_streams["streams"][field] = np.uint64(2 * step + 1)
            other.set_state(env_streams)
            assert same(other, env.fork(0))


def test_what_a_player_may_know_shows() -> None:
    """Piles known by content alone show their sizes, the face-up ones their cards."""
    at = position("7c Td", "6h", spy_deck="Kc Kd", draw_deck="2c Jc", draw_discard="9s")
    zones = at.zones()

    def drawn(**changed: tuple[str, ...]) -> Any:
        env = new_env(render_mode="rgb_array")
        env.reset(options={"zones": zones | changed})
        return picture_of(env)

    plain = drawn()
    discard, lost = zones["draw_discard"], zones["spy_discard"]
    swapped = drawn(draw_discard=("9c",), spy_discard=tuple(c for c in lost if c != "9c") + discard)
    assert not np.array_equal(plain, swapped)
    moved = drawn(draw_deck=("2c",), hand=("7c", "Td", "Jc"))
    assert not np.array_equal(plain, moved)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_a_seats_view_hides_what_the_seat_cannot_know(num_players: int) -> None:
    env = SkirmishEnv(num_players, "random", render_mode="rgb_array")
    table = parallel_env(num_players, render_mode="rgb_array")
    compared = differing = 0
    for step, _ in enumerate(played(env, 2)):
        if step % 7 == 0:
            fork, redeal = env.fork(step), env.redeal(step)
            assert same(fork, redeal)
            compared += 1
            pictures = []
            for twin in (fork, redeal):
                table.set_state(twin.get_state())
                pictures.append(picture_of(table))
            differing += not np.array_equal(*pictures)
    assert compared > 2
    assert differing > compared / 2  # the hidden cards did differ


def test_the_last_step_tells_nothing_hidden() -> None:
    env = SkirmishEnv(3, "random", seat=0, render_mode="rgb_array")
    table = env._table
    for step, _ in enumerate(played(env, 5, 30)):
        if table.last_step is None:
            continue
        before, actions = table.last_step
        endings, _ = table.endings()
        before_redealt = env.redeal(step).get_state()["state"].copy()
        for zone in ("hand", "supply", "stakes", "capture"):
            for seat in range(3):
                count = int(before[zone][seat]).bit_count()
                before_redealt[zone][seat] = (1 << count) - 1  # any cards, as many
        after = env.redeal(step).get_state()["state"]
        drawn = skirmish_rendering.render_picture(after, endings, 0, (before_redealt, actions))
        assert np.array_equal(drawn, picture_of(env))


def test_a_seats_view_differs_from_that_of_another() -> None:
    pictures = []
    for seat in range(2):
        env = SkirmishEnv(seat=seat, render_mode="rgb_array")
        env.reset(seed=0)
        pictures.append(picture_of(env))
    table = parallel_env(render_mode="rgb_array")
    table.reset(seed=0)
    pictures.append(picture_of(table))
    assert len({picture.tobytes() for picture in pictures}) == 3


# --- Vector environments --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("render_mode", ["ansi", "rgb_array"])
def test_a_batch_renders_as_its_single_environments_do(
    mode: AutoresetMode, render_mode: str
) -> None:
    arguments: dict[str, Any] = {"start": SHORT, "render_mode": render_mode}
    envs = native(2, mode, **arguments)
    single = [lambda: gym.make("DeckOfSpies-v0", **arguments)] * 2
    reference = SyncVectorEnv(single, autoreset_mode=mode)
    envs.reset(seed=3)
    reference.reset(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(12):
        ours, theirs = envs.render(), reference.render()
        assert isinstance(ours, tuple)
        assert theirs is not None
        assert all(np.array_equal(*pair) for pair in zip(ours, theirs, strict=True))
        masks = envs.action_masks()
        over = ~masks.any(axis=1)
        if mode is AutoresetMode.DISABLED and over.any():
            options = {"reset_mask": over}
            envs.reset(options=dict(options))
            reference.reset(options=dict(options))
            continue
        actions = np.array([rng.choice(np.flatnonzero(m)) if m.any() else 0 for m in masks])
        envs.step(actions)
        reference.step(actions)


def test_packed_games_are_drawn_alike() -> None:
    packed, plain = (native(2, packed=p, render_mode="rgb_array") for p in (True, False))
    for envs in (packed, plain):
        envs.reset(seed=0)
        envs.step(envs.action_masks().argmax(axis=1))
    one, other = packed.render(), plain.render()
    assert one is not None
    assert other is not None
    assert all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


def test_a_batch_forgets_the_last_steps_of_games_that_were_set() -> None:
    envs = native(2, render_mode="ansi")
    envs.reset(seed=0)
    envs.step(envs.action_masks().argmax(axis=1))
    assert all("Last play" in text for text in envs.render() or ())
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert ["Last play" in text for text in envs.render() or ()] == [False, True]
    envs.set_state(envs.get_state())
    assert not any("Last play" in text for text in envs.render() or ())


def test_tables_of_skirmish_are_drawn_as_the_parallel_environment_does() -> None:
    envs = SkirmishVectorEnv(2, 3, render_mode="rgb_array")
    single = parallel_env(3, render_mode="rgb_array")
    envs.reset(seed=4)
    single.reset(seed=5)
    rng = np.random.default_rng(0)
    for _ in range(40):
        pictures = envs.render()
        assert pictures is not None
        assert len(pictures) == 2
        assert np.array_equal(pictures[1], picture_of(single))
        if not single.agents:
            break
        masks = envs.action_masks()
        actions = np.array(
            [[rng.choice(np.flatnonzero(m)) if m.any() else 0 for m in of] for of in masks]
        )
        envs.step(actions)
        single.step(dict(zip(single.agents, actions[1].tolist(), strict=True)))


@pytest.mark.parametrize("env_id", IDS[:3])
def test_make_vec_makes_pictures(env_id: str) -> None:
    envs = gym.make_vec(env_id, num_envs=2, render_mode="rgb_array")
    envs.reset(seed=0)
    pictures = envs.render()
    assert isinstance(pictures, tuple)
    assert [picture.shape for picture in pictures] == [SHAPES["DeckOfSpies"]] * 2
    envs.close()


# --- Windows --------------------------------------------------------------------------------------


@pytest.fixture
def flips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count what comes into the window, and don't wait."""
    pygame = load_pygame()
    counted: list[int] = []

    class Clock:
        def tick(self, fps: float) -> None:
            counted.append(int(fps))

    monkeypatch.setattr(pygame.time, "Clock", Clock)
    return counted


@pytest.mark.parametrize("env_id", IDS)
def test_a_window_follows_the_game(env_id: str, flips: list[int]) -> None:
    pygame = load_pygame()
    env, drawn = gym.make(env_id, render_mode="human"), gym.make(env_id, render_mode="rgb_array")
    for number, _ in enumerate(zip(played(env, 0, 4), played(drawn, 0, 4), strict=True)):
        assert flips == [env.metadata["render_fps"]] * (number + 1)
        window = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        assert np.array_equal(window, picture_of(drawn))
    assert env.render() is None
    env.close()
    assert not pygame.display.get_init()
    env.close()
    for _ in played(env, 1, 1):  # a closed one may go on
        pass
    assert pygame.display.get_init()
    env.close()


def test_a_window_for_pettingzoo(flips: list[int]) -> None:
    env = parallel_env(render_mode="human")
    env.reset(seed=0)
    assert env.render() is None
    env.close()
    env.close()
    turns = aec_env(render_mode="human")
    aec_to_parallel(turns).reset(seed=0)
    turns.close()
    assert len(flips) == 3


def test_windows_of_two_environments_share_one(flips: list[int]) -> None:
    one, other = DeckOfSpiesEnv(render_mode="human"), SkirmishEnv(render_mode="human")
    one.reset(seed=0)
    other.reset(seed=0)
    one.close()
    other.step(int(np.flatnonzero(other.action_masks())[0]))
    assert load_pygame().display.get_init()
    other.close()
    assert len(flips) == 3


def test_closing_what_has_no_window_leaves_others_alone(flips: list[int]) -> None:
    one, other = DeckOfSpiesEnv(render_mode="human"), DeckOfSpiesEnv(render_mode="rgb_array")
    one.reset(seed=0)
    other.reset(seed=0)
    other.render()
    other.close()
    assert load_pygame().display.get_init()
    one.close()
    assert flips


def test_pictures_survive_others_that_quit_pygame() -> None:
    env = new_env(render_mode="rgb_array")
    env.reset(seed=0)
    first = picture_of(env)
    load_pygame().quit()
    assert np.array_equal(first, picture_of(env))


@pytest.mark.parametrize("make", [new_env, SkirmishEnv, parallel_env], ids=named)
def test_forks_and_copies_have_no_window(make: Callable[..., Any], flips: list[int]) -> None:
    env = make(render_mode="human")
    env.reset(seed=0)
    drawn = len(flips)
    fork = env.fork(1)
    fork.reset(seed=0)
    assert fork.render_mode == "rgb_array"
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert twin.render_mode == "human"
        twin.close()
    assert len(flips) == drawn
    assert load_pygame().display.get_init()
    env.close()


def test_the_frame_rate_is_kept() -> None:
    screen, ticks = Screen("test"), []
    picture = np.zeros((4, 6, 3), np.uint8)
    screen.show("human", lambda: picture)
    screen._clock = type("Clock", (), {"tick": lambda _, fps: ticks.append(fps)})()
    screen.show("human", lambda: picture)
    screen.close()
    assert ticks == [2]


# --- Modes, checkers, dependencies ----------------------------------------------------------------


@pytest.mark.parametrize("make", [new_env, SkirmishEnv, parallel_env], ids=named)
def test_an_unknown_mode_is_named(make: Callable[..., Any]) -> None:
    with pytest.raises(RenderModeError, match="one of ansi, rgb_array, human, got 'pixels'"):
        make(render_mode="pixels")


@pytest.mark.parametrize("make", [native, SkirmishVectorEnv], ids=named)
def test_a_batch_has_no_window(make: Callable[..., Any]) -> None:
    with pytest.raises(RenderModeError, match="one of ansi, rgb_array, got 'human'"):
        make(render_mode="human")


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("render_mode", ["ansi", "rgb_array", "human"])
@pytest.mark.filterwarnings("error")
def test_gymnasium_checks_every_mode(env_id: str, render_mode: str, flips: list[int]) -> None:
    check_env(gym.make(env_id, illegal_action="lose", render_mode=render_mode).unwrapped)
    assert flips


def test_episodes_can_be_recorded_as_lists() -> None:
    env = gym.make("DeckOfSpies-v0", render_mode="rgb_array_list")
    for _ in played(env, 0, 3):
        pass
    assert len(cast(Any, env.render())) == 4


@pytest.mark.skipif(find_spec("moviepy") is None, reason="moviepy, which makes videos, is missing")
def test_episodes_can_be_recorded_as_videos(tmp_path: Path) -> None:
    env = RecordVideo(gym.make("DeckOfSpies-v0", render_mode="rgb_array"), str(tmp_path))
    for _ in played(env, 0, 5):
        pass
    env.close()
    assert [path.suffix for path in tmp_path.iterdir()] == [".mp4"]


BLOCKED = "import sys; sys.modules['pygame'] = None\n"
PLAY = """
import gymnasium as gym, deck_of_spies_env
from deck_of_spies_env.skirmish.env import SkirmishEnv
for env in (gym.make("DeckOfSpies-v0", render_mode=mode), SkirmishEnv(render_mode=mode)):
    _, info = env.reset(seed=0)
    env.step(int(info["action_mask"].argmax()))
    shown = env.render()
    env.close()
"""


def test_text_needs_no_pygame() -> None:
    code = f"import sys\nmode = 'ansi'\n{PLAY}\nprint('pygame' in sys.modules)"
    assert in_a_fresh_interpreter(code) == "False"
    in_a_fresh_interpreter(BLOCKED + "mode = 'ansi'\n" + PLAY)


def test_pictures_need_no_display_and_print_nothing() -> None:
    code = f"mode = 'rgb_array'\n{PLAY}\nprint(shown.shape)"
    assert in_a_fresh_interpreter(code) == str(SHAPES["Skirmish"])


@pytest.mark.parametrize("render_mode", ["rgb_array", "human"])
def test_without_pygame_the_extra_is_named(
    render_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = new_env(render_mode=render_mode)
    call = env.reset if render_mode == "human" else env.render
    with pytest.raises(DependencyNotInstalled, match=r"deck_of_spies_env\[render\]"):
        call()
    env.close()


def test_the_greeting_of_pygame_is_held_back() -> None:
    assert in_a_fresh_interpreter("import deck_of_spies_env.drawing as d; d.load_pygame()") == ""


# --- Colour at a terminal -------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    env = new_env(render_mode="ansi")
    env.reset(seed=7)
    text = str(env.render())
    plain, terminal = io.StringIO(), Terminal()
    print_table(text, plain)
    print_table(text, terminal)
    assert plain.getvalue() == text
    assert terminal.getvalue() == coloured(text) != text
    for variable, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv(variable, value)
        asked_not_to = Terminal()
        print_table(text, asked_not_to)
        assert asked_not_to.getvalue() == text, variable


def test_colour_changes_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    env = SkirmishEnv(3, render_mode="ansi")
    env.reset(seed=0)
    text = str(env.render())
    shown = coloured(text)
    assert re.sub(r"\x1b\[\d*m", "", shown) == text
    assert shown.count("\x1b[31m") == text.count("♥")
    assert "\x1b[2mGraveyard\x1b[0m" in shown
    print_table(text)
    assert capsys.readouterr().out == text
