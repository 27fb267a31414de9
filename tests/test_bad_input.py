"""What users get wrong ends in a ValueError that names it, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env

from deck_of_spies_env import IllegalActionError
from deck_of_spies_env.integrations.sb3 import make_vec_env
from deck_of_spies_env.skirmish.parallel import env as aec_env
from deck_of_spies_env.skirmish.parallel import parallel_env
from deck_of_spies_env.skirmish.vector_env import SkirmishVectorEnv
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.positions import ZONES
from deck_of_spies_env.solitaire.vector_env import DeckOfSpiesVectorEnv

ACES = 0b1111


def fresh() -> DeckOfSpiesEnv:
    env = DeckOfSpiesEnv()
    env.reset(seed=5)
    return env


def retiring() -> DeckOfSpiesEnv:
    """An environment in phase retire."""
    env = fresh()
    while env.phase != "retire":
        if env.phase == "over":
            env.reset()
        env.step(np.flatnonzero(env.action_masks())[0])
    return env


def remove_everything(state: Any) -> None:
    for pile in ("hand", "draw_deck", "draw_discard", "spy_deck", "spy_discard"):
        state[pile] = 0


def leave_no_way_out(state: Any) -> None:
    """A hand without a legal action: a 2 against the spy, and all Aces gone."""
    owned = int(state["hand"] | state["draw_deck"] | state["draw_discard"])
    state["hand"], state["draw_discard"] = 1 << 4, 0
    state["draw_deck"] = owned & ~ACES & ~(1 << 4)
    state["spy_discard"] = int(state["spy_discard"]) | (owned & ACES)


def set_field(name: str, value: int) -> Callable[[Any], None]:
    def change(state: Any) -> None:
        state[name] = value

    return change


def add_bit(pile: str, bit: int) -> Callable[[Any], None]:
    def change(state: Any) -> None:
        state[pile] = int(state[pile]) | 1 << bit

    return change


def move_hand(state: Any) -> None:
    """Two more cards in hand than there may be."""
    deck = int(state["draw_deck"])
    lowest = deck & -deck
    second = (deck ^ lowest) & -(deck ^ lowest)
    state["draw_deck"] = deck & ~(lowest | second)
    state["hand"] = int(state["hand"]) | lowest | second


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (set_field("spy", game.NO_SPY), "missing"),
        (set_field("spy", 0), "5 to King"),
        (set_field("spy", 77), "5 to King"),
        (set_field("phase", 9), "phase"),
        (set_field("phase", -1), "phase"),
        (set_field("outcome", 9), "outcome"),
        (set_field("outcome", game.WIN), "outcome"),
        (set_field("phase", game.OVER), "outcome"),
        (remove_everything, "missing"),
        (add_bit("hand", 60), "52 cards"),
        (add_bit("spy_discard", 63), "52 cards"),
        (add_bit("spy_discard", 5), "two zones"),
        (move_hand, "too many cards"),
        (leave_no_way_out, "no legal action"),
    ],
)
def test_a_state_that_is_no_position_is_refused(change: Callable[[Any], None], named: str) -> None:
    env = fresh()
    before = env.get_state()
    junk = before.copy()
    change(junk["state"])
    with pytest.raises(ValueError, match=named):
        env.set_state(junk)
    assert env.get_state() == before
    vector = DeckOfSpiesVectorEnv(3)
    vector.reset(seed=5)
    states = vector.get_state()
    states[1] = junk
    with pytest.raises(ValueError, match="state 1: "):
        vector.set_state(states)


def test_retire_states_need_a_pair_and_room_in_the_hand() -> None:
    env = fresh()
    state = env.get_state()
    state["state"]["phase"] = game.RETIRE
    with pytest.raises(ValueError, match="too many cards"):
        env.set_state(state)
    env = retiring()
    state = env.get_state()
    hand, lowest = int(state["state"]["hand"]), 1 << 4
    state["state"]["hand"] = 0
    state["state"]["spy_discard"] = int(state["state"]["spy_discard"]) | hand & ~lowest
    state["state"]["draw_discard"] = int(state["state"]["draw_discard"]) | hand & lowest
    with pytest.raises(ValueError, match="needs a pair"):
        env.set_state(state)


def test_a_won_game_with_spies_left_is_refused() -> None:
    env = fresh()
    state = env.get_state()
    state["state"]["phase"], state["state"]["outcome"] = game.OVER, game.WIN
    with pytest.raises(ValueError, match="spies left"):
        env.set_state(state)


def test_every_state_of_a_game_can_be_gone_back_to() -> None:
    env, other = DeckOfSpiesEnv(), DeckOfSpiesEnv()
    other.set_state(env.get_state())  # not yet dealt
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(300):
        other.set_state(env.get_state())
        assert other.zones() == env.zones()
        if env.phase == "over":
            env.reset()
        else:
            env.step(rng.choice(np.flatnonzero(env.action_masks())))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"objective": {"win": float("nan")}}, "win"),
        ({"objective": {"win": "much"}}, "win"),
        ({"objective": {}}, "objective"),
        ({"objective": 3}, "objective"),
        ({"start": {"zones": None}}, "zones"),
        ({"start": {"zones": {}, "fase": "act"}}, "fase"),
        ({"start": 7}, "start"),
        ({"start": {"hand": 5}}, "hand"),
        ({"rules": 7}, "rules"),
        ({"observation": "all"}, "observation"),
        ({"illegal_action": "ignore"}, "illegal_action"),
        ({"shaping": "gold"}, "gold"),
        ({"render_mode": "pixels"}, "render_mode"),
    ],
)
def test_a_bad_argument_is_a_value_error(arguments: dict[str, Any], named: str) -> None:
    for make in (DeckOfSpiesEnv, DeckOfSpiesVectorEnv):
        with pytest.raises(ValueError, match=named):
            make(**arguments)


def test_large_weights_are_numbers() -> None:
    assert DeckOfSpiesEnv(objective={"win": 10**20}) is not None


@pytest.mark.parametrize("num_envs", [0, -1, 2.5, "3", True, None])
def test_the_number_of_games_is_a_whole_number(num_envs: Any) -> None:
    with pytest.raises(ValueError, match="num_envs"):
        DeckOfSpiesVectorEnv(num_envs)
    with pytest.raises(ValueError, match="num_envs"):
        make_vec_env("DeckOfSpies-v0", num_envs)


def test_a_bad_autoreset_mode_lists_the_good_ones() -> None:
    with pytest.raises(ValueError, match=r"autoreset_mode.*NextStep"):
        DeckOfSpiesVectorEnv(2, autoreset_mode="never")


@pytest.mark.parametrize("action", ["0", 0.5, None, [1, 2], np.float32(1)])
def test_what_is_no_whole_number_is_no_action(action: Any) -> None:
    env = fresh()
    with pytest.raises(IllegalActionError):
        env.step(action)
    with pytest.raises(IllegalActionError):
        env.afterstate(action)
    sb3 = make_vec_env("DeckOfSpies-v0", 1, seed=0)
    sb3.reset()
    with pytest.raises(IllegalActionError):
        sb3.step(np.array([action]) if np.ndim(action) == 0 else action)


def test_numpy_seeds_are_seeds() -> None:
    env, other = DeckOfSpiesEnv(), DeckOfSpiesEnv()
    assert (env.reset(seed=np.int64(3))[0] == other.reset(seed=3)[0]).all()
    assert env.fork(np.int64(1)).get_state() == other.fork(1).get_state()


def all_forms() -> list[Any]:
    """Every form of both games that takes a seed and options, dealt."""
    forms: list[Any] = [
        DeckOfSpiesEnv(),
        DeckOfSpiesVectorEnv(2),
        gym.make("Skirmish-v0").unwrapped,
        SkirmishVectorEnv(2),
        parallel_env(),
        aec_env(),
    ]
    for form in forms:
        form.reset(seed=5)
    return forms


@pytest.mark.parametrize(
    "seed", ["1", 1.5, -1, True, ["1", "2"], [1.5, 2.0], [1, -2], {}], ids=repr
)
def test_what_is_no_seed_is_refused_before_anything_changes(seed: Any) -> None:
    for form in all_forms():
        before = form.unwrapped.get_state()
        with pytest.raises(ValueError, match="seed"):
            form.reset(seed=seed)
        assert np.array_equal(form.unwrapped.get_state(), before), form


@pytest.mark.parametrize("seed", ["1", 1.5, -1, True, None], ids=repr)
def test_what_is_no_seed_of_a_copy_is_refused(seed: Any) -> None:
    table, one_seat = parallel_env(), gym.make("Skirmish-v0").unwrapped
    for env in (table, one_seat):
        env.reset(seed=5)
    for copy in (
        fresh().fork,
        table.fork,
        partial(table.redeal, 0),
        one_seat.fork,
        one_seat.redeal,
    ):
        with pytest.raises(ValueError, match="seed must be a non-negative integer"):
            copy(seed)


@pytest.mark.parametrize("options", ["table", 5, ["table"]], ids=repr)
def test_what_are_no_options_is_refused_before_anything_changes(options: Any) -> None:
    for form in all_forms():
        before = form.unwrapped.get_state()
        with pytest.raises(ValueError, match="options must be a mapping"):
            form.reset(seed=1, options=options)
        assert np.array_equal(form.unwrapped.get_state(), before), form


@pytest.mark.parametrize("action", ["K", 0.5, True, None], ids=repr)
def test_what_is_no_whole_number_is_not_decoded(action: Any) -> None:
    for env in (fresh(), gym.make("Skirmish-v0").unwrapped):
        with pytest.raises(ValueError, match="whole number"):
            env.decode(action)


@pytest.mark.parametrize(("field", "value"), [("episode", -2), ("gamma", 0), ("gamma", 2)])
def test_streams_that_are_none_are_refused(field: str, value: int) -> None:
    for form in all_forms():
        env = form.unwrapped
        before = env.get_state()
        wrong = before.copy()
        wrong["streams"][field] = value
        with pytest.raises(ValueError, match="no random streams"):
            env.set_state(wrong)
        assert np.array_equal(env.get_state(), before)


def test_a_start_changed_later_changes_nothing() -> None:
    zones: dict[str, Any] = dict.fromkeys(ZONES, ())
    zones |= {"hand": ("Kc",), "spy": ("5c",)}
    used = {"Kc", "5c"}
    zones["spy_discard"] = tuple(
        rank + suit for rank in "23456789TJQK" for suit in "cdhs" if rank + suit not in used
    )
    env = DeckOfSpiesEnv(start=zones)
    env.reset(seed=0)
    zones["hand"] = ()
    assert env.fork(1).zones()["hand"] == ("Kc",)


def test_sb3s_own_helpers_make_the_environment() -> None:
    """They ask for pictures, whether they draw any or not."""
    envs = sb3_make_vec_env("DeckOfSpies-v0", n_envs=2)
    assert envs.reset().shape == (2, 367)
    assert envs.get_attr("render_mode") == ["rgb_array"] * 2
    assert gym.make("DeckOfSpies-v0").unwrapped.render_mode is None
