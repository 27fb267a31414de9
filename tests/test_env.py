"""Tests of the single environment: one section per promise of its interface.

The rules themselves are tested elsewhere; here a position is set up, or random legal play is made,
and what the environment says of it is compared to the cards that ``zones()`` shows.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from conftest import ALL_CARDS, ZONES, completed, in_order, new_env, position, total, value
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from deck_of_spies_env import ENV_IDS, Action, IllegalActionError, Rules
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.observations import (
    LAYOUT,
    TABLE_LAYOUT,
    observation_fields,
    observation_layout,
)

NUM_ACTIONS = {3: 20, 4: 39, 5: 78, 6: 156, 7: 309, 8: 606}
"""2(2^h - 1) + 4 + C(h-1,2) + C(h-1,3) + C(h-1,4) + 1, worked out by hand."""

KINDS = ("counter", "recruit", "assassinate", "retire", "pass")
ENDING_KEYS = {"action_mask", "outcome", "is_success", "key_spies", "turns"}
KEY_SPIES = tuple(card for card in ALL_CARDS if card[0] in "JQK")
SPIES = ALL_CARDS[16:]

Step = tuple[Any, float, bool, bool, dict[str, Any]]
Policy = Callable[[DeckOfSpiesEnv, np.random.Generator], int]

OTHER_RULES: list[dict[str, Any]] = [
    {},
    {"hand_size": 4, "eager_reshuffle": True},
    {"hand_size": 8, "idle_ace": False, "key_spies_to_win": 1},
]


def random_legal(env: DeckOfSpiesEnv, rng: np.random.Generator) -> int:
    """Return a random legal action."""
    return int(rng.choice(np.flatnonzero(env.action_masks())))


def last_legal(env: DeckOfSpiesEnv, rng: np.random.Generator) -> int:
    """Return the legal action with the highest index: recruits rather than counters, and passes."""
    return int(np.flatnonzero(env.action_masks())[-1])


def finish(env: DeckOfSpiesEnv, seed: int = 0, policy: Policy = random_legal) -> list[Step]:
    """Play on to the end and return the steps."""
    rng = np.random.default_rng(seed)
    steps: list[Step] = []
    while env.phase != "over":
        steps.append(env.step(policy(env, rng)))
    return steps


def assert_same_steps(first: Sequence[Step], second: Sequence[Step]) -> None:
    """Check that two plays came out the same."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one[0], other[0])
        assert one[1:4] == other[1:4]
        assert np.array_equal(one[4]["action_mask"], other[4]["action_mask"])
        assert {k: v for k, v in one[4].items() if k != "action_mask"} == {
            k: v for k, v in other[4].items() if k != "action_mask"
        }


def held_key_spies(zones: Mapping[str, Iterable[str]]) -> int:
    """Count the Key Spies in hand, Draw Deck and Draw Discard."""
    own = [*zones["hand"], *zones["draw_deck"], *zones["draw_discard"]]
    return sum(card in KEY_SPIES for card in own)


def last_spy(num_key_spies: int, **arguments: Any) -> DeckOfSpiesEnv:
    """Return an environment where countering the last spy, 5c, ends with so many Key Spies held."""
    env = new_env(**arguments)
    zones = completed({"hand": ["5d"], "spy": ["5c"], "draw_discard": KEY_SPIES[:num_key_spies]})
    env.reset(seed=0, options={"zones": zones})
    return env


def lost_by_d8(**arguments: Any) -> tuple[DeckOfSpiesEnv, int]:
    """Return an environment one action before D8, with a Jack in hand against a coming King."""
    env = new_env(**arguments)
    zones = completed({"hand": ["Jc"], "spy": ["5d"], "spy_deck": ["Kh", "Ks"]})
    env.reset(seed=0, options={"zones": zones})
    return env, env.encode("counter", ["Jc"])


# --- Ids, spaces and the first example ------------------------------------------------------------


def test_the_documented_example_runs() -> None:
    env = gym.make(
        "DeckOfSpies-v0", objective="win", observation="recall", rules=None, render_mode=None
    )
    obs, info = env.reset(seed=7)
    terminated = truncated = False
    steps = 0
    while not (terminated or truncated):
        obs, reward, terminated, truncated, info = env.step(
            env.action_space.sample(info["action_mask"])
        )
        steps += 1
    assert 1 <= steps <= 72
    assert obs in env.observation_space
    assert not truncated
    assert reward in (0.0, 1.0)


@pytest.mark.parametrize(
    ("env_id", "objective"),
    [
        ("DeckOfSpies-v0", "win"),
        ("DeckOfSpiesKeys-v0", "keys"),
        ("DeckOfSpiesPerfect-v0", "perfect"),
    ],
)
def test_ids_are_one_env_with_different_objectives(env_id: str, objective: str) -> None:
    assert set(ENV_IDS) == {"DeckOfSpies-v0", "DeckOfSpiesKeys-v0", "DeckOfSpiesPerfect-v0"}
    zones = completed({"hand": ["5d"], "spy": ["5c"], "draw_discard": KEY_SPIES[:9]})
    env = gym.make(env_id)
    assert type(env.unwrapped) is DeckOfSpiesEnv
    env.reset(options={"zones": zones})
    paid = env.step(DeckOfSpiesEnv.encode(env.unwrapped, "counter", ["5d"]))[1]  # type: ignore[arg-type]
    assert paid == {"win": 1.0, "keys": 0.75, "perfect": 0.0}[objective]
    standard = new_env(objective=objective)
    assert env.observation_space == standard.observation_space
    assert env.action_space == standard.action_space
    env.reset(seed=4)
    standard.reset(seed=4)
    assert_same_steps(finish(env.unwrapped), finish(standard))  # type: ignore[arg-type]


def test_the_objective_of_an_id_can_be_overridden() -> None:
    env = gym.make("DeckOfSpiesKeys-v0", objective="perfect").unwrapped
    zones = completed({"hand": ["5d"], "spy": ["5c"], "draw_discard": KEY_SPIES})
    env.reset(options={"zones": zones})
    assert env.step(env.encode("counter", ["5d"]))[1] == 1.0  # type: ignore[attr-defined]


@pytest.mark.parametrize("hand_size", range(3, 9))
def test_spaces_follow_from_the_hand_size(hand_size: int) -> None:
    for observation in ("recall", "table"):
        env = new_env({"hand_size": hand_size}, observation=observation)
        assert env.action_space == gym.spaces.Discrete(NUM_ACTIONS[hand_size])
        obs, info = env.reset(seed=0)
        assert info["action_mask"].shape == (NUM_ACTIONS[hand_size],)
        fields = observation_fields(observation, hand_size)
        space = env.observation_space
        assert isinstance(space, gym.spaces.Box)
        assert space.dtype == np.int8
        assert space.shape == obs.shape == (sum(field.width for field in fields),)
        assert (space.low == 0).all()
        layout = observation_layout(observation, hand_size)
        for field in fields:
            assert (space.high[layout[field.name]] == field.high).all()


def test_default_sizes() -> None:
    env = new_env()
    assert env.action_space == gym.spaces.Discrete(78)
    assert env.observation_space.shape == (367,)
    assert env.rules == Rules() == Rules(True, False, 5, 7)


@pytest.mark.parametrize("observation", ["recall", "table"])
@pytest.mark.parametrize("hand_size", [3, 5, 8])
def test_the_layout_covers_the_vector_once(observation: str, hand_size: int) -> None:
    covered: list[int] = []
    layout = observation_layout(observation, hand_size)
    for field in observation_fields(observation, hand_size):
        covered.extend(range(layout[field.name].start, layout[field.name].stop))
    env = new_env({"hand_size": hand_size}, observation=observation)
    assert env.observation_space.shape is not None
    assert covered == list(range(env.observation_space.shape[0]))


def test_the_named_layouts() -> None:
    assert observation_layout("recall", 5) == LAYOUT
    assert observation_layout("table", 5) == TABLE_LAYOUT
    # The table tells sizes of the face-down piles where recall tells their cards.
    assert set(LAYOUT) - set(TABLE_LAYOUT) == {"draw_deck", "spy_deck", "spy_discard"}
    assert set(TABLE_LAYOUT) - set(LAYOUT) == {
        "draw_deck_size",
        "spy_deck_size",
        "spy_discard_size",
    }


def expected_observation(env: DeckOfSpiesEnv, observation: str) -> dict[str, list[int]]:
    """Work out the fields of an observation from the zones."""
    zones = env.zones()

    def shown(zone: str, cards: Sequence[str]) -> list[int]:
        return [int(card in zones[zone]) for card in cards]

    slots: list[int] = []
    for slot in range(env.rules.hand_size):
        card = zones["hand"][slot] if slot < len(zones["hand"]) else "--"
        slots += [int(card[0] == rank) for rank in "A23456789TJQK"]
        slots += [int(card[1] == suit) for suit in "cdhs"]
    expected = {
        "hand": shown("hand", ALL_CARDS),
        "spy": shown("spy", SPIES),
        "phase": [int(env.phase == "act"), int(env.phase == "retire")],
        "draw_discard": shown("draw_discard", ALL_CARDS),
        "slots": slots,
    }
    if observation == "recall":
        expected["draw_deck"] = shown("draw_deck", ALL_CARDS)
        expected["spy_deck"] = shown("spy_deck", SPIES)
        expected["spy_discard"] = shown("spy_discard", ALL_CARDS)
    else:
        for zone in ("draw_deck", "spy_deck", "spy_discard"):
            expected[f"{zone}_size"] = [len(zones[zone])]
    return expected


@pytest.mark.parametrize("rules", OTHER_RULES, ids=str)
@pytest.mark.parametrize("observation", ["recall", "table"])
def test_observations_show_the_zones(observation: str, rules: dict[str, Any]) -> None:
    env = new_env(rules, observation=observation)
    layout = observation_layout(observation, env.rules.hand_size)
    rng = np.random.default_rng(0)
    for seed in range(4):
        obs, _ = env.reset(seed=seed)
        while True:
            assert obs in env.observation_space
            expected = expected_observation(env, observation)
            assert {name: obs[part].tolist() for name, part in layout.items()} == expected
            if env.phase == "over":
                break
            obs = env.step(random_legal(env, rng))[0]


def test_arrays_handed_out_are_fresh() -> None:
    env = new_env()
    obs, info = env.reset(seed=0)
    state, masks = env.get_state(), env.action_masks()
    kept = [obs.copy(), info["action_mask"].copy(), state.copy(), masks.copy()]
    finish(env)
    for array, before in zip([obs, info["action_mask"], state, masks], kept, strict=True):
        assert np.array_equal(array, before)
    mask = env.reset(seed=0)[1]["action_mask"]
    mask[:] = 1  # what a caller writes into its mask does not make an action legal
    with pytest.raises(IllegalActionError):
        env.step(77)


# --- Info and the end -----------------------------------------------------------------------------


@pytest.mark.parametrize("rules", OTHER_RULES, ids=str)
def test_info_holds_the_mask_and_at_the_end_how_it_ended(rules: dict[str, Any]) -> None:
    env = new_env(rules)
    rng = np.random.default_rng(1)
    outcomes = set()
    for seed in range(60):
        info = env.reset(seed=seed)[1]
        steps, terminated, reward = 0, False, 0.0
        while not terminated:
            assert set(info) == {"action_mask"}
            assert info["action_mask"].dtype == np.int8
            assert set(info["action_mask"].tolist()) == {0, 1}
            assert env.action_masks().dtype == np.bool_
            assert np.array_equal(env.action_masks(), info["action_mask"] == 1)
            assert reward == 0.0
            _, reward, terminated, truncated, info = env.step(random_legal(env, rng))
            steps += 1
            assert type(reward) is float
            assert type(terminated) is bool
            assert truncated is False
        assert steps <= 72
        assert set(info) == ENDING_KEYS
        assert info["action_mask"].dtype == np.int8
        assert not info["action_mask"].any()
        assert not env.action_masks().any()
        assert [type(info[key]) for key in ("outcome", "is_success", "key_spies", "turns")] == [
            str,
            bool,
            int,
            int,
        ]
        zones = env.zones()
        held = held_key_spies(zones)
        assert info["is_success"] is (info["outcome"] == "win")
        if info["outcome"] == "no_double_agent":
            assert info["key_spies"] == 0
            assert info["turns"] == 36 - len(zones["spy"]) - len(zones["spy_deck"]) < 36
            assert total(zones["hand"]) < value(zones["spy"][0])
        else:
            assert info["outcome"] == ("win" if held >= env.rules.key_spies_to_win else "loss")
            assert info["key_spies"] == held
            assert info["turns"] == 36
            assert not zones["spy"]
        outcomes.add(info["outcome"])
    assert "loss" in outcomes or "win" in outcomes


def test_outcomes_of_all_kinds_are_met() -> None:
    env = last_spy(7)
    assert finish(env)[-1][4]["outcome"] == "win"
    env = last_spy(6)
    assert finish(env)[-1][4]["outcome"] == "loss"
    env, action = lost_by_d8()
    _, _, terminated, _, info = env.step(action)
    assert terminated
    assert info["outcome"] == "no_double_agent"
    assert info["key_spies"] == 0
    assert info["turns"] == 34  # two spies of 36 are left: Kh and Ks, one of them on top
    assert held_key_spies(env.zones()) == 1


def test_turns_count_the_spies_dealt_with() -> None:
    env = new_env(illegal_action="lose")
    env.reset(seed=3)
    for _ in range(5):
        env.step(env.encode(*next(legal(env, "counter", "assassinate"))))
        if env.phase == "retire":
            env.step(env.encode("pass"))
    assert env.step(-1)[4]["turns"] == 5


def legal(env: DeckOfSpiesEnv, *kinds: str) -> Iterable[Action]:
    """Iterate over the legal actions of some kinds."""
    decoded = (env.decode(index) for index in np.flatnonzero(env.action_masks()).tolist())
    return (action for action in decoded if action.kind in kinds)


# --- Objectives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("held", [0, 6, 7, 11, 12])
@pytest.mark.parametrize(
    ("objective", "weights"),
    [
        ("win", (1.0, 0.0, 0.0)),
        ("keys", (0.0, 1.0, 0.0)),
        ("perfect", (0.0, 0.0, 1.0)),
        ({"win": 1.0, "keys": 1.0}, (1.0, 1.0, 0.0)),
        ({"win": 2, "keys": 1.5, "perfect": -3.0}, (2.0, 1.5, -3.0)),
        ({"perfect": 0.0}, (0.0, 0.0, 0.0)),
    ],
    ids=str,
)
def test_objectives_are_paid_at_the_end(
    objective: Any, weights: tuple[float, float, float], held: int
) -> None:
    env = last_spy(held, objective=objective)
    _, reward, terminated, _, info = env.step(env.encode("counter", ["5d"]))
    assert terminated
    assert info["key_spies"] == held
    expected = np.dot(weights, (held >= 7, held / 12, held == 12))
    assert reward == pytest.approx(expected, abs=1e-12)


def test_the_win_follows_key_spies_to_win() -> None:
    for needed in (1, 4, 7, 12):
        for held in (needed - 1, needed):
            env = last_spy(held, rules={"key_spies_to_win": needed})
            _, reward, _, _, info = env.step(env.encode("counter", ["5d"]))
            assert reward == float(held == needed)
            assert info["outcome"] == ("win" if held == needed else "loss")
            assert info["is_success"] is (held == needed)


EVERYTHING = {"win": 1.0, "keys": 1.0, "perfect": 1.0}


@pytest.mark.parametrize("objective", ["win", "keys", "perfect", EVERYTHING], ids=str)
def test_d8_pays_nothing(objective: Any) -> None:
    env, action = lost_by_d8(objective=objective)
    _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["key_spies"]) == (0.0, True, 0)
    assert held_key_spies(env.zones()) == 1


@pytest.mark.parametrize("objective", ["win", "keys", "perfect", EVERYTHING], ids=str)
def test_an_illegal_action_pays_nothing(objective: Any) -> None:
    env = last_spy(12, objective=objective, illegal_action="lose")
    _, reward, terminated, _, info = env.step(env.encode("pass"))
    assert (reward, terminated, info["key_spies"]) == (0.0, True, 0)
    assert info["outcome"] == "illegal_action"
    assert info["is_success"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "points"}, "unknown objective 'points'; there are win, keys, perfect"),
        ({"objective": {"wins": 1.0}}, "unknown objective 'wins'"),
        ({"objective": {}}, "objective must be one of"),
        ({"objective": None}, "objective must be one of"),
        ({"objective": {"win": "1"}}, "the weight of win must be a number, got '1'"),
        ({"objective": {"win": True}}, "the weight of win must be a number"),
        ({"objective": {"keys": float("nan")}}, "the weight of keys must be a number, got nan"),
        ({"observation": "all"}, "observation must be one of recall, table, got 'all'"),
        ({"render_mode": "pixels"}, "one of ansi, rgb_array, human, got 'pixels'"),
        ({"illegal_action": "skip"}, "illegal_action must be one of raise, lose, got 'skip'"),
        ({"shaping": "keys"}, "unknown shaping 'keys'; there are key_spies"),
        ({"rules": {"hand_size": 2}}, "hand_size must be a whole number 3-8, got 2"),
        ({"rules": {"hand_size": 9}}, "hand_size must be a whole number 3-8, got 9"),
        ({"rules": {"hand_size": 5.0}}, "hand_size must be a whole number 3-8, got 5.0"),
        ({"rules": {"key_spies_to_win": 0}}, "key_spies_to_win must be a whole number 1-12"),
        ({"rules": {"key_spies_to_win": 13}}, "key_spies_to_win must be a whole number 1-12"),
        ({"rules": {"idle_ace": 1}}, "idle_ace must be true or false, got 1"),
        ({"rules": {"eager_reshuffle": None}}, "eager_reshuffle must be true or false"),
        ({"rules": {"jokers": 2}}, "unknown field 'jokers'; there are idle_ace"),
        ({"rules": "default"}, "rules must be a Rules or a mapping"),
        ({"start": ["5c"]}, "start must be a mapping of zones"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DeckOfSpiesEnv(**arguments)


# --- Rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [{}, {"hand_size": 4}, {"idle_ace": False, "eager_reshuffle": True, "key_spies_to_win": 3}],
    ids=str,
)
def test_rules_may_be_a_mapping_of_fields(fields: dict[str, Any]) -> None:
    from_mapping, from_rules = new_env(fields), new_env(Rules(**fields))  # type: ignore[arg-type]
    assert from_mapping.rules == from_rules.rules == Rules(**fields)
    from_mapping.reset(seed=9)
    from_rules.reset(seed=9)
    assert_same_steps(finish(from_mapping), finish(from_rules))


def test_rules_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Rules().hand_size = 4  # type: ignore[misc]


@pytest.mark.parametrize("idle_ace", [True, False])
def test_idle_ace_reaches_the_mask(idle_ace: bool) -> None:
    env = position("Ac 6c", "5c", idle_ace=idle_ace)
    assert env.action_masks()[env.encode("recruit", ["Ac", "6c"])] == idle_ace


@pytest.mark.parametrize("eager", [True, False])
def test_eager_reshuffle_reaches_the_draw(eager: bool) -> None:
    env = position(
        "5d", "5c", spy_deck="6c", draw_deck="9d 9h 9s Td Th", eager_reshuffle=eager, hand_size=5
    )
    env.step(env.encode("counter", ["5d"]))
    zones = env.zones()
    assert len(zones["hand"]) == 5
    assert zones["draw_deck"] == (("5d",) if eager else ())
    assert zones["draw_discard"] == (() if eager else ("5d",))


# --- When phases come and games end ---------------------------------------------------------------


def test_the_retire_phase_comes_exactly_with_a_pair() -> None:
    env = position("5d 7c 7h", "5c", spy_deck="6c 6d", draw_deck="2c 2d")
    info = env.step(env.encode("counter", ["5d"]))[4]
    assert env.phase == "retire"
    assert {action.kind for action in legal(env, *KINDS)} == {"retire", "pass"}
    assert env.zones()["spy"] in (("6c",), ("6d",))  # the next spy shows already
    assert env.zones()["hand"] == ("7c", "7h")  # and nothing is drawn yet
    assert info["action_mask"][env.encode("retire", ["7h", "7c"])] == 1
    env = position("5d 7c 8h", "5c", spy_deck="6c 6d", draw_deck="2c 2d")
    env.step(env.encode("counter", ["5d"]))
    assert env.phase == "act"
    assert env.zones()["hand"] == ("2c", "2d", "5d", "7c", "8h")


def test_the_retire_phase_comes_after_the_last_spy_too() -> None:
    env = position("5d 7c 7h", "5c", draw_deck="2c 2d")
    _, _, terminated, _, _ = env.step(env.encode("counter", ["5d"]))
    assert not terminated
    assert env.phase == "retire"
    assert env.zones()["spy"] == ()
    _, _, terminated, _, _ = env.step(env.encode("retire", ["7c", "7h"]))
    assert terminated
    assert env.zones()["spy_discard"][-1:] == ("Ks",)
    assert {"7c", "7h"} <= set(env.zones()["spy_discard"])
    assert env.zones()["draw_deck"] == ("2c", "2d")  # nothing is drawn after the last spy


def test_no_retiring_and_no_drawing_where_the_last_spy_leaves_no_pair() -> None:
    env = position("5d 7c 8h", "5c", draw_deck="2c 2d")
    assert env.step(env.encode("counter", ["5d"]))[2]
    assert env.zones()["hand"] == ("7c", "8h")
    assert env.zones()["draw_deck"] == ("2c", "2d")


def test_d8_ends_the_episode_in_the_step_that_creates_it() -> None:
    env, action = lost_by_d8()
    assert env.phase == "act"
    assert env.step(action)[2]
    assert env.phase == "over"


# --- Illegal actions ------------------------------------------------------------------------------

ILLEGAL: list[tuple[str, dict[str, Any], tuple[str, Sequence[str]], str]] = [
    (
        "total too low",
        {"hand": "2c 5d", "spy": "5c"},
        ("counter", ["2c"]),
        r"total 2 and the 5c.*D1",
    ),
    ("spare card", {"hand": "2c 5d", "spy": "5c"}, ("counter", ["2c", "5d"]), r"2c is spare.*D1"),
    (
        "wrong suit",
        {"hand": "5d", "spy": "5c"},
        ("recruit", ["5d"]),
        r"not every card.*suit, c.*D2",
    ),
    ("can be countered", {"hand": "5d Ac", "spy": "6h"}, ("assassinate", ["Ac"]), r"countered.*D7"),
    (
        "must assassinate",
        {"hand": "2d Ac", "spy": "6h"},
        ("counter", ["2d"]),
        r"only assassinate.*D7",
    ),
    ("ace is gone", {"hand": "2d Ac", "spy": "6h"}, ("assassinate", ["Ad"]), r"left the game.*D7"),
    ("pass too early", {"hand": "7d", "spy": "6h"}, ("pass", []), r"the phase is act"),
    ("retire too early", {"hand": "7d 7c", "spy": "6h"}, ("retire", ["7d", "7c"]), r"phase is act"),
    (
        "unequal ranks",
        {"hand": "7d 7c 8c", "spy": "6h", "phase": "retire"},
        ("retire", ["7d", "8c"]),
        r"different ranks.*D9",
    ),
    (
        "counter too late",
        {"hand": "7d 7c", "spy": "6h", "phase": "retire"},
        ("counter", ["7d"]),
        r"the phase is retire",
    ),
]


@pytest.mark.parametrize(
    ("setup", "named", "why"), [case[1:] for case in ILLEGAL], ids=[case[0] for case in ILLEGAL]
)
def test_an_illegal_action_is_named_with_the_reason(
    setup: dict[str, Any], named: tuple[str, Sequence[str]], why: str
) -> None:
    env = position(**setup)
    action = env.encode(*named)
    assert not env.action_masks()[action]
    words = " ".join((named[0], *in_order(named[1])))
    with pytest.raises(
        IllegalActionError, match=rf"action {action} \({words}\) is illegal: .*{why}"
    ):
        env.step(action)


def test_idle_ace_is_named_as_the_reason() -> None:
    env = position("Ac 6c", "5c", idle_ace=False)
    with pytest.raises(IllegalActionError, match=r"recruit Ac 6c.*idle_ace.*D4"):
        env.step(env.encode("recruit", ["Ac", "6c"]))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (-1, "action -1 does not exist: there are 0 to 77"),
        (78, "action 78 does not exist"),
        (10**30, "expected 1 whole number"),
        (1.0, "expected 1 whole number"),
        ([0, 1], "expected 1 whole number"),
        (30, r"action 30 \(counter\).*slot 4.*2 cards"),
    ],
    ids=str,
)
def test_an_action_that_is_none_is_illegal(action: Any, message: str) -> None:
    env = position("5d 6d", "5c")
    with pytest.raises(IllegalActionError, match=message):
        env.step(action)


def test_illegal_action_error_is_a_value_error() -> None:
    assert issubclass(IllegalActionError, ValueError)


@pytest.mark.parametrize("wrapped", [True, False])
def test_an_illegal_action_changes_nothing(wrapped: bool) -> None:
    made = gym.make("DeckOfSpies-v0", render_mode="ansi")
    twin = new_env()
    env = made.unwrapped
    assert isinstance(env, DeckOfSpiesEnv)
    rng = np.random.default_rng(2)
    for seed in range(3):
        made.reset(seed=seed)
        twin.reset(seed=seed)
        while env.phase != "over":
            before = (env.get_state(), env.action_masks(), env.render(), env.zones())
            for illegal in rng.choice(np.flatnonzero(~env.action_masks()), size=3):
                with pytest.raises(IllegalActionError):
                    (made if wrapped else env).step(illegal)
            assert env.get_state() == before[0]
            assert np.array_equal(env.action_masks(), before[1])
            assert (env.render(), env.zones()) == before[2:]
            action = random_legal(env, rng)
            assert_same_steps([env.step(action)], [twin.step(action)])


@pytest.mark.parametrize("illegal_action", ["raise", "lose"])
def test_any_action_after_the_end_raises(illegal_action: str) -> None:
    env = new_env(illegal_action=illegal_action)
    env.reset(seed=0)
    finish(env)
    state = env.get_state()
    for action in (0, 40, 77, -1, 78):
        with pytest.raises(IllegalActionError, match=rf"action {action}\b.*over, reset first"):
            env.step(action)
    assert env.get_state() == state
    env.reset()
    assert env.phase == "act"


def test_stepping_before_the_first_reset_raises() -> None:
    with pytest.raises(IllegalActionError, match="reset first"):
        new_env().step(0)
    with pytest.raises(gym.error.ResetNeeded):
        gym.make("DeckOfSpies-v0").step(0)


@pytest.mark.parametrize("action", [77, -1, 78, -(2**62)])
def test_lose_ends_the_episode_as_a_loss(action: int) -> None:
    env = new_env(illegal_action="lose")
    env.reset(seed=5)
    zones = env.zones()
    obs, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert set(info) == ENDING_KEYS
    assert not info["action_mask"].any()
    assert info["outcome"] == "illegal_action"
    assert (info["is_success"], info["key_spies"], info["turns"]) == (False, 0, 0)
    assert env.zones() == zones  # no card has moved
    assert env.phase == "over"
    assert obs in env.observation_space
    assert not obs[LAYOUT["phase"]].any()
    with pytest.raises(IllegalActionError, match="reset first"):
        env.step(action)


def test_lose_does_not_touch_legal_play_nor_the_next_deal() -> None:
    losing, raising = new_env(illegal_action="lose"), new_env()
    losing.reset(seed=6)
    raising.reset(seed=6)
    assert_same_steps(finish(losing), finish(raising))
    losing.reset()
    raising.reset()
    losing.step(77)
    assert np.array_equal(losing.reset()[0], raising.reset()[0])


# --- Positions: reset(options=...) ----------------------------------------------------------------


@pytest.mark.parametrize("rules", OTHER_RULES, ids=str)
def test_every_position_met_can_be_set_up(rules: dict[str, Any]) -> None:
    env, other = new_env(rules), new_env(rules)
    rng = np.random.default_rng(4)
    phases = set()
    for seed in range(5):
        obs, info = env.reset(seed=seed)
        while env.phase != "over":
            phases.add(env.phase)
            options = {"zones": env.zones(), "phase": env.phase}
            again, info_again = other.reset(options=options)
            assert other.zones() == env.zones()
            assert other.phase == env.phase
            assert np.array_equal(obs, again)
            assert np.array_equal(info["action_mask"], info_again["action_mask"])
            obs, _, _, _, info = env.step(random_legal(env, rng))
    assert phases == {"act", "retire"}


@pytest.mark.parametrize("size", range(6))
def test_a_hand_of_any_size_is_taken_as_it_is(size: int) -> None:
    hand = ["2c", "3c", "4c", "5c", "6c"][:size]
    zones = completed({"hand": hand, "spy": ["Kc"], "draw_deck": ["Ac", "7c", "8c", "9c"]})
    env = new_env()
    _, info = env.reset(options={"zones": zones})
    assert env.zones() == zones  # nothing was drawn
    kinds = {action.kind for action in legal(env, *KINDS)}
    assert ("assassinate" in kinds) == (total(hand) < 13)
    assert info["action_mask"].any()


def test_zones_left_out_are_empty_and_aces_not_named_removed() -> None:
    rest = [card for card in ALL_CARDS if card[0] != "A" and card not in ("7c", "Kc")]
    env = new_env()
    env.reset(options={"zones": {"hand": ["7c"], "spy": ["Kc"], "draw_deck": [*rest, "Ad"]}})
    assert env.zones()["removed"] == ("Ac", "Ah", "As")
    assert env.zones()["spy_deck"] == env.zones()["draw_discard"] == ()


def test_a_position_need_not_be_reachable() -> None:
    # A King on top with 5s to come, and all sorts of cards on the wrong piles.
    zones = completed(
        {"hand": ["Kd"], "spy": ["Kc"], "spy_deck": ["5c", "5d"], "draw_deck": ["9c", "As"]}
    )
    env = new_env()
    env.reset(options={"zones": zones})
    assert env.zones() == zones


def test_cards_may_be_written_in_any_way_and_order() -> None:
    zones = completed({"hand": ["Tc", "7h"], "spy": ["Kc"], "draw_deck": ["2c"]})
    env = new_env()
    written = {**zones, "hand": ["7♥", "10C"], "spy": "kc"}
    env.reset(
        options={
            "zones": {
                zone: list(cards)[::-1] if zone != "spy" else cards
                for zone, cards in written.items()
            }
        }
    )
    assert env.zones() == zones


def test_the_last_retire_decision_can_be_set_up() -> None:
    zones = completed({"hand": ["7c", "7d"]})
    env = new_env()
    env.reset(options={"zones": zones, "phase": "retire"})
    assert env.zones() == zones
    assert {tuple(action) for action in legal(env, *KINDS)} == {
        ("retire", ("7c", "7d")),
        ("pass", ()),
    }
    assert env.step(env.encode("pass"))[2]


def bad(phase: str = "act", drop: str = "", **zones: Sequence[str] | str) -> dict[str, Any]:
    """Return options: a good position, changed by some zones, without the cards of ``drop``."""
    good: dict[str, Any] = completed({"hand": ["7c", "9d"], "spy": ["6h"], "spy_deck": ["Kc"]})
    good = {zone: [card for card in cards if card not in drop] for zone, cards in good.items()}
    for zone, cards in zones.items():
        named = [cards] if isinstance(cards, str) else list(cards)
        good = {
            other: [card for card in cards if card not in named] for other, cards in good.items()
        }
        good[zone] = named
    return {"zones": good, "phase": phase}


def with_extra(zone: str, *cards: str) -> dict[str, Any]:
    """Return options whose position holds extra cards in a zone, already present elsewhere."""
    options = bad()
    options["zones"][zone] = [*options["zones"][zone], *cards]
    return options


BAD_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a low card missing": (bad(drop="2c"), "missing 2c"),
    "a spy missing": (bad(drop="Kc"), "missing Kc"),
    "a 2 removed": (bad(removed=["2c"]), "2c in removed"),
    "several missing": (bad(drop="2c Kc"), "missing 2c, Kc"),
    "doubled in a zone": (with_extra("hand", "7c"), "hand: card 7c is named twice"),
    "doubled in two zones": (with_extra("draw_deck", "7c"), "7c is in two zones"),
    "an ace doubled": (with_extra("draw_deck", "Ac"), "Ac is in two zones"),
    "a 4 as spy": (bad(spy=["4c"], drop="6h", draw_deck=["6h"]), "4c in spy: spies are 5 to King"),
    "an ace as spy": (bad(spy=["Ac"], draw_deck=["6h"]), "Ac in spy: spies are 5 to King"),
    "a 2 in the spy deck": (bad(spy_deck=["Kc", "2c"]), "2c in spy_deck: spies are 5 to King"),
    "no spy": (bad(spy=[], draw_deck=["6h"]), "no card in spy, so there is no legal action"),
    "no spies at all": (
        bad(spy=[], spy_deck=[], draw_deck=["6h", "Kc"]),
        "no card in spy, so there is no legal action",
    ),
    "weak hand and no ace": (
        bad(hand=["2c", "3c"], draw_deck=["7c", "9d"]),
        "no legal action: the hand totals 5, the spy's value is 6, and no Ace is left",
    ),
    "empty hand and no ace": (bad(hand=[], draw_deck=["7c", "9d"]), "the hand totals 0"),
    "two spies on top": (bad(spy=["6h", "6d"]), "spy holds one card, got 6d, 6h"),
    "too large a hand": (bad(hand=["7c", "9d", "2c", "3c", "4c", "5c"]), "6 cards in hand"),
    "retire without a pair": (bad("retire"), "phase retire needs a pair"),
    "retire without cards": (bad("retire", hand=[], draw_deck=["7c", "9d"]), "needs a pair"),
    "unknown phase": (bad("over"), "phase must be one of act, retire, got 'over'"),
    "retire without zones": ({"phase": "retire"}, "'retire' needs zones"),
    "unknown zone": (bad(table=["7c"]), "unknown zone 'table'; there are hand, draw_deck"),
    "bad card": (with_extra("hand", "1c"), "hand: bad card '1c'"),
    "no sequence": ({"zones": {"hand": 7}}, "hand must be a sequence of cards, got 7"),
    "no mapping": ({"zones": ["7c"]}, "zones must be a mapping"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_position_is_a_value_error_that_says_which(name: str) -> None:
    options, message = BAD_OPTIONS[name]
    env, twin = new_env(), new_env()
    env.reset(seed=8)
    twin.reset(seed=8)
    for _ in range(3):
        action = random_legal(env, np.random.default_rng(0))
        env.step(action)
        twin.step(action)
    for seed in (None, 1):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=seed, options=options)
    assert env.get_state() == twin.get_state()  # the game in play goes on
    assert_same_steps(finish(env), finish(twin))
    assert np.array_equal(env.reset()[0], twin.reset()[0])


def test_the_good_position_behind_the_bad_ones_is_good() -> None:
    new_env().reset(options=bad())
    new_env().reset(options=bad("retire", hand=["7c", "7d"], draw_deck=["9d"]))


@pytest.mark.parametrize("options", [None, {}, {"difficulty": 3}, {"reset_mask": "?", "Zones": 1}])
def test_unknown_option_keys_are_ignored(options: dict[str, Any] | None) -> None:
    env, twin = new_env(), new_env()
    assert np.array_equal(env.reset(seed=2, options=options)[0], twin.reset(seed=2)[0])
    assert_same_steps(finish(env), finish(twin))


def test_unknown_option_keys_are_ignored_beside_zones() -> None:
    zones = completed({"hand": ["7c"], "spy": ["6h"]})
    env = new_env()
    env.reset(options={"zones": zones, "mode": "hard", "phase": "act"})
    assert env.zones() == zones


def test_zones_are_for_one_reset_only() -> None:
    env, twin = new_env(), new_env()
    env.reset(seed=1, options={"zones": completed({"hand": ["7c"], "spy": ["6h"]})})
    twin.reset(seed=1)
    assert np.array_equal(env.reset()[0], twin.reset()[0])  # episode 1 of the seed


def test_play_from_a_position_is_determined_by_the_seed() -> None:
    zones = completed(
        {"hand": ["7c"], "spy": ["6h"], "spy_deck": SPIES[12:], "draw_deck": ALL_CARDS[:16]}
    )
    env, twin = new_env(), new_env()
    env.reset(seed=1, options={"zones": zones})
    twin.reset(seed=1, options={"zones": zones})
    first = finish(env)
    assert_same_steps(first, finish(twin))
    twin.reset(seed=2, options={"zones": zones})
    assert not np.array_equal(first[-1][0], finish(twin)[-1][0])


# --- Positions: start= ----------------------------------------------------------------------------

SMALL = completed(
    {
        "draw_deck": ["Ac", "Ad", "2c", "2d", "3h", "4s", "6c"],
        "spy": ["5c"],
        "spy_deck": ["Jd", "Qs"],
    }
)
"""A small deck for study: three spies, seven cards to draw from, the hand to be dealt."""


def without(zones: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the zones but for some."""
    return {zone: cards for zone, cards in zones.items() if zone not in names}


def test_start_with_a_hand_applies_at_every_reset() -> None:
    zones = completed(
        {"hand": ["7c", "8d"], "spy": ["6h"], "spy_deck": ["Kc"], "draw_deck": ["2c"]}
    )
    env = new_env(start=zones)
    for seed in (0, None, None, 5):
        env.reset(seed=seed)
        assert env.zones() == zones
        finish(env)


def test_start_without_a_hand_deals_it_from_the_draw_deck() -> None:
    start = without(SMALL, "hand")
    env = new_env(start=start)
    hands = []
    for episode in range(30):
        env.reset(seed=0 if episode == 0 else None)
        zones = env.zones()
        assert len(zones["hand"]) == 5
        assert in_order([*zones["hand"], *zones["draw_deck"]]) == SMALL["draw_deck"]
        assert without(zones, "hand", "draw_deck") == without(SMALL, "hand", "draw_deck")
        hands.append(zones["hand"])
        finish(env)
    assert len(set(hands)) > 5
    env.reset(seed=0)
    assert env.zones()["hand"] == hands[0]
    env.reset()
    assert env.zones()["hand"] == hands[1]  # a deal is (seed, episode)


def test_start_without_a_hand_takes_the_reshuffled_discard_too() -> None:
    start = without(
        completed(
            {
                "draw_deck": ["Ac", "2c"],
                "draw_discard": ["7c", "8c", "9c", "Tc"],
                "spy": ["5d"],
                "spy_deck": ["Kc"],
            }
        ),
        "hand",
    )
    env = new_env(start=start)
    env.reset(seed=0)
    zones = env.zones()
    assert len(zones["hand"]) == 5
    assert {"Ac", "2c"} <= set(zones["hand"])
    assert len(zones["draw_deck"]) == 1
    assert zones["draw_discard"] == ()


def test_start_without_a_spy_turns_one_up() -> None:
    start = without({**SMALL, "spy_deck": ("8c", "8d", "Jd", "Qs"), "spy": ()}, "hand", "spy")
    start["spy_discard"] = [card for card in SMALL["spy_discard"] if card not in ("8c", "8d")]
    start["draw_discard"] = ["5c"]
    env = new_env(start=start)
    seen = set()
    for _ in range(20):
        env.reset()
        zones = env.zones()
        seen |= set(zones["spy"])
        assert in_order([*zones["spy"], *zones["spy_deck"]]) == ("8c", "8d", "Jd", "Qs")
    assert seen == {"8c", "8d"}  # the first tier that is left


def test_start_takes_a_phase_beside_zones() -> None:
    zones = completed({"hand": ["7c", "7d"], "spy": ["6h"], "spy_deck": ["Kc"]})
    env = new_env(start={"zones": zones, "phase": "retire"})
    for _ in range(2):
        env.reset()
        assert env.phase == "retire"
        assert env.zones() == zones


def test_options_override_start_for_one_reset() -> None:
    start = completed({"hand": ["7c", "8d"], "spy": ["6h"]})
    other = completed({"hand": ["9c"], "spy": ["8h"]})
    env = new_env(start=start)
    env.reset(options={"zones": other})
    assert env.zones() == other
    env.reset()
    assert env.zones() == start


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_start_applies_at_autoresets(mode: gym.vector.AutoresetMode) -> None:
    zones = completed({"hand": ["7c"], "spy": ["6h"]})
    envs = gym.make_vec("DeckOfSpies-v0", num_envs=2, start=zones, autoreset_mode=mode)
    first, infos = envs.reset(seed=0)
    for _ in range(4):
        actions = infos["action_mask"].argmax(axis=1)
        observations, _, terminated, _, infos = envs.step(actions)
        if mode == gym.vector.AutoresetMode.NEXT_STEP:
            observations, _, _, _, infos = envs.step(actions)
        elif mode == gym.vector.AutoresetMode.DISABLED:
            observations, infos = envs.reset(options={"reset_mask": terminated})
        assert terminated.all()
        assert np.array_equal(observations, first)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (without(SMALL, "hand", "draw_deck"), "missing 2c, 2d, 3h, 4s, 6c"),
        ({**without(SMALL, "hand"), "draw_discard": ["6c"]}, "6c is in two zones"),
        ({**without(SMALL, "hand"), "spy_deck": ["Jd", "Qs", "4s"]}, "4s is in two zones"),
        (without(SMALL, "hand", "spy", "spy_deck"), "missing 5c, Jd, Qs"),
        (completed({"hand": ["7c"], "draw_deck": ["2c"]}), "no card in spy"),
        (without(completed({"draw_deck": ["7c"]}), "hand"), "no card in spy or spy_deck"),
        (without(completed({"spy": ["Kc"], "draw_deck": ["2c", "3c"]}), "hand"), "no legal action"),
        (without(completed({"spy_deck": ["Kc"], "draw_deck": ["2c"]}), "hand"), "no legal action"),
        ({"zones": completed({"hand": ["7c"], "spy": ["6h"]}), "phase": "retire"}, "needs a pair"),
    ],
)
def test_a_bad_start_is_a_value_error_at_construction(start: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DeckOfSpiesEnv(start=start)


# --- Deals ----------------------------------------------------------------------------------------


def spies_met(env: DeckOfSpiesEnv, seed: int, policy: Policy) -> tuple[list[str], tuple[str, ...]]:
    """Play on to the end; return the spies as they were turned up, and the opening hand."""
    hand = env.zones()["hand"]
    met = list(env.zones()["spy"])
    rng = np.random.default_rng(seed)
    while env.phase != "over":
        env.step(policy(env, rng))
        if env.zones()["spy"] and env.zones()["spy"][0] != met[-1]:
            met.append(env.zones()["spy"][0])
    return met, hand


@pytest.mark.parametrize("rules", [{}, {"eager_reshuffle": True, "idle_ace": False}], ids=str)
def test_a_deal_is_seed_and_episode_whatever_is_played(rules: dict[str, Any]) -> None:
    env, other = new_env(rules), new_env(rules, observation="table", objective="keys")
    deals = set()
    for seed in (0, 1, 2**70):
        for episode in range(4):
            env.reset(seed=seed if episode == 0 else None)
            other.reset(seed=seed if episode == 0 else None)
            spies, hand = spies_met(env, 1, last_legal)
            other_spies, other_hand = spies_met(other, 2, random_legal)
            length = min(len(spies), len(other_spies))
            assert length > 5
            assert spies[:length] == other_spies[:length]
            assert hand == other_hand
            deals.add((tuple(spies), hand))
    assert len(deals) == 12


def test_an_unfinished_episode_counts_as_one() -> None:
    env, other = new_env(), new_env()
    env.reset(seed=3)
    finish(env)
    other.reset(seed=3)
    assert np.array_equal(env.reset()[0], other.reset()[0])


def test_a_seed_begins_its_episodes_anew() -> None:
    env = new_env()
    first = [env.reset(seed=3)[0], env.reset()[0], env.reset()[0]]
    finish(env)
    again = [env.reset(seed=3)[0], env.reset()[0], env.reset()[0]]
    assert np.array_equal(first, again)
    assert not np.array_equal(first[0], first[1])


def test_a_deal_follows_the_setup() -> None:
    env = new_env()
    hands, tops = set(), set()
    for seed in range(100):
        env.reset(seed=seed)
        zones = env.zones()
        assert len(zones["hand"]) == 5
        assert in_order([*zones["hand"], *zones["draw_deck"]]) == ALL_CARDS[:16]
        assert in_order([*zones["spy"], *zones["spy_deck"]]) == SPIES
        assert zones["draw_discard"] == zones["spy_discard"] == zones["removed"] == ()
        hands |= set(zones["hand"])
        tops |= set(zones["spy"])
    assert hands == set(ALL_CARDS[:16])
    assert tops == set(SPIES[:12])
    met, _ = spies_met(env, 0, last_legal)
    ranks = [value(card) for card in met]
    assert all(rank <= 7 for rank in ranks[:12])
    assert all(8 <= rank <= 10 for rank in ranks[12:24])


def test_without_a_seed_deals_differ() -> None:
    envs = [new_env() for _ in range(5)]
    assert len({env.reset()[0].tobytes() for env in envs}) > 1


def test_global_random_state_is_neither_used_nor_changed() -> None:
    def play() -> list[Step]:
        env = new_env()
        env.reset(seed=11)
        steps = finish(env)
        env.reset()
        return steps + finish(env)

    def global_states() -> tuple[bytes, Any]:
        return pickle.dumps(np.random.get_state()), random.getstate()  # noqa: NPY002

    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    before = global_states()
    first = play()
    new_env().reset()
    env = new_env()
    env.reset(seed=1)
    env.fork(2)
    assert global_states() == before
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    assert_same_steps(first, play())


# --- Actions in words -----------------------------------------------------------------------------


@pytest.mark.parametrize("rules", OTHER_RULES, ids=str)
def test_decode_and_encode_are_inverse(rules: dict[str, Any]) -> None:
    env = new_env(rules)
    rng = np.random.default_rng(5)
    kinds = set()
    for seed in range(15):
        env.reset(seed=seed)
        while env.phase != "over":
            zones = env.zones()
            for index in np.flatnonzero(env.action_masks()).tolist():
                action = env.decode(index)
                assert isinstance(action, Action)
                kind, cards = action
                kinds.add(kind)
                assert kind == action.kind
                assert cards == action.cards == in_order(cards)
                assert env.encode(kind, rng.permutation(cards).tolist()) == index
                if kind == "assassinate":
                    assert cards[0] in zones["hand"] + zones["draw_deck"] + zones["draw_discard"]
                    assert len(cards) == 1
                    assert cards[0][0] == "A"
                else:
                    assert set(cards) <= set(zones["hand"])
                    assert bool(cards) == (kind != "pass")
            env.step(random_legal(env, rng))
    assert kinds <= set(KINDS)
    assert {"counter", "recruit", "retire", "pass"} <= kinds


def test_the_whole_table_for_a_hand_of_five() -> None:
    env = position("2c 3d 5h 8s Tc", "Kc")
    actions = [env.decode(index) for index in range(78)]
    assert len(set(actions)) == 78
    assert [env.encode(*action) for action in actions] == list(range(78))
    kinds = [action.kind for action in actions]
    assert [kinds.count(kind) for kind in KINDS] == [31, 31, 4, 11, 1]
    assert env.decode(0) == ("counter", ("2c",))
    assert env.decode(2) == ("counter", ("2c", "3d"))  # subset 3: slots 0 and 1
    assert env.decode(61) == ("recruit", ("2c", "3d", "5h", "8s", "Tc"))
    assert [env.decode(62 + suit).cards for suit in range(4)] == [
        ("Ac",),
        ("Ad",),
        ("Ah",),
        ("As",),
    ]
    assert env.decode(66) == ("retire", ("2c", "3d"))
    assert env.decode(76) == ("retire", ("2c", "3d", "5h", "8s"))
    assert env.decode(77) == ("pass", ())


def test_slots_are_sorted_anew_in_the_retire_phase() -> None:
    env = position("2c 7c 7h 8d", "5c", spy_deck="Kc", draw_deck="3c")
    env.step(env.encode("counter", ["8d"]))
    assert env.phase == "retire"
    assert (
        env.encode("retire", ["7h", "7c"]) == 66 + 2
    )  # slots 1 and 2 of 2c 7c 7h, after 0 1 and 0 2
    env = position("2c 7c 7h 8d", "5c", spy_deck="Kc", draw_deck="3c")
    env.step(env.encode("counter", ["7c"]))
    assert env.phase == "act"  # no pair is left


@pytest.mark.parametrize(
    ("kind", "cards", "message"),
    [
        ("attack", ["7c"], "unknown kind of action 'attack'; there are counter, recruit"),
        ("counter", ["9c"], "9c is not in hand"),
        ("counter", ["9x"], "bad card '9x'"),
        ("counter", ["7c", "7c"], "7c is named twice"),
        ("counter", [], "a counter names at least one card"),
        ("recruit", [], "a recruit names at least one card"),
        ("retire", ["7c"], "retiring takes 2 to 4"),
        ("retire", [], "retiring takes 2 to 4"),
        ("retire", ["7c", "7d", "7h", "7s", "8c"], "retiring takes 2 to 4"),
        ("pass", ["7c"], "a pass names no cards"),
        ("assassinate", [], "an assassination names one Ace"),
        ("assassinate", ["7c"], "an assassination names one Ace"),
        ("assassinate", ["Ac", "Ad"], "an assassination names one Ace"),
    ],
)
def test_encode_names_what_is_wrong(kind: str, cards: list[str], message: str) -> None:
    env = position("7c 7d 7h 7s 8c", "6h")
    with pytest.raises(ValueError, match=message):
        env.encode(kind, cards)


@pytest.mark.parametrize(("action", "message"), [(-1, "-1"), (78, "78"), (3, "slot 2")])
def test_decode_refuses_what_the_table_or_hand_lacks(action: int, message: str) -> None:
    with pytest.raises(IllegalActionError, match=message):
        position("7c 7d", "6h").decode(action)


# --- Zones and phase ------------------------------------------------------------------------------


def test_zones_split_the_cards_and_are_sorted() -> None:
    env = new_env()
    rng = np.random.default_rng(6)
    for seed in range(10):
        env.reset(seed=seed)
        while True:
            zones = env.zones()
            assert tuple(zones) == ZONES
            assert sorted(card for cards in zones.values() for card in cards) == sorted(ALL_CARDS)
            for cards in zones.values():
                assert isinstance(cards, tuple)
                assert cards == in_order(cards)
            assert len(zones["spy"]) <= 1
            assert all(card[0] == "A" for card in zones["removed"])
            if env.phase == "over":
                break
            env.step(random_legal(env, rng))


def test_phase_tells_what_is_to_be_decided() -> None:
    env = new_env()
    assert env.phase == "over"
    rng = np.random.default_rng(7)
    for seed in range(5):
        env.reset(seed=seed)
        while env.phase != "over":
            kinds = {action.kind for action in legal(env, *KINDS)}
            if env.phase == "retire":
                ranks = [card[0] for card in env.zones()["hand"]]
                assert len(set(ranks)) < len(ranks)
                assert kinds == {"retire", "pass"}
            else:
                assert env.phase == "act"
                assert kinds in ({"counter"}, {"counter", "recruit"}, {"assassinate"})
            terminated = env.step(random_legal(env, rng))[2]
            assert terminated == (env.phase == "over")


# --- Saving, forking, looking ahead ---------------------------------------------------------------


def midgame(seed: int = 12, steps: int = 12, **arguments: Any) -> DeckOfSpiesEnv:
    """Return an environment after some random play in the second episode of a seed."""
    env = new_env(**arguments)
    env.reset(seed=seed)
    env.reset()
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        env.step(random_legal(env, rng))
    assert env.phase != "over"
    return env


def test_set_state_goes_back_with_the_streams() -> None:
    env = midgame()
    state = env.get_state()
    first = finish(env, 1)
    after = env.reset()[0]
    env.set_state(state)
    assert env.get_state() == state
    assert_same_steps(first, finish(env, 1))
    assert np.array_equal(env.reset()[0], after)  # the next episode is part of it


def test_a_state_moves_between_envs_and_through_pickle() -> None:
    env, other = midgame(), new_env(observation="table", objective="keys")
    state = pickle.loads(pickle.dumps(env.get_state()))
    other.set_state(state)  # without any reset
    assert other.zones() == env.zones()
    assert other.phase == env.phase
    assert np.array_equal(other.action_masks(), env.action_masks())
    rng = np.random.default_rng(0)
    while env.phase != "over":
        action = random_legal(env, rng)
        env.step(action)
        other.step(action)
        assert other.zones() == env.zones()
    assert np.array_equal(env.reset()[0][:142], other.reset()[0][:142])


def test_a_state_is_a_copy() -> None:
    env = midgame()
    state = env.get_state()
    kept = state.copy()
    env.step(random_legal(env, np.random.default_rng(0)))
    assert state == kept
    now = env.get_state()
    now["state"]["hand"] = 0
    assert env.zones()["hand"] != ()


def spoiled(field: str, value: int) -> Callable[[Any], Any]:
    """Return a function that spoils one field of a state."""

    def spoil(state: Any) -> Any:
        state["state"][field] = value
        return state

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda state: np.zeros(3), r"must come from get_state\(\)|cannot reshape"),
        (lambda state: None, r"must come from get_state\(\)"),
        (lambda state: state["state"], r"must come from get_state\(\)"),
        (spoiled("hand", (1 << 52) - 1), "a card is in two zones"),
        (spoiled("spy", 52), "spy must be 5 to King"),
        (spoiled("phase", 3), "unknown phase code"),
        (spoiled("outcome", 9), "unknown outcome code"),
    ],
)
def test_a_bad_state_is_a_value_error_and_changes_nothing(
    spoil: Callable[[Any], Any], message: str
) -> None:
    env = midgame()
    before = env.get_state()
    with pytest.raises(ValueError, match=message):
        env.set_state(spoil(env.get_state()))
    assert env.get_state() == before


def test_a_state_of_larger_hands_is_a_value_error() -> None:
    env = new_env({"hand_size": 8})
    env.reset(seed=0)
    with pytest.raises(ValueError, match="too many cards in hand"):
        new_env().set_state(env.get_state())


@pytest.mark.parametrize("arguments", [{}, {"observation": "table", "rules": {"hand_size": 6}}])
def test_fork_is_the_same_position(arguments: dict[str, Any]) -> None:
    env = midgame(**arguments)
    twin = env.fork(1)
    assert isinstance(twin, DeckOfSpiesEnv)
    assert twin.zones() == env.zones()
    assert twin.phase == env.phase
    assert twin.rules == env.rules
    assert np.array_equal(twin.action_masks(), env.action_masks())
    assert twin.observation_space == env.observation_space
    assert twin.action_space == env.action_space


def test_fork_keeps_the_arguments() -> None:
    env = last_spy(9, objective="keys", illegal_action="lose", render_mode="ansi")
    twin = env.fork(1)
    assert isinstance(twin.render(), str)
    assert env.fork(2).step(-1)[4]["outcome"] == "illegal_action"
    assert twin.step(twin.encode("counter", ["5d"]))[1] == 0.75


def test_fork_is_independent_and_has_a_stream_of_its_own() -> None:
    env, untouched = midgame(), midgame()
    state = env.get_state()
    first, again, other = (finish(env.fork(seed), 3) for seed in (1, 1, 2))
    assert env.get_state() == state  # forking and playing forks leaves it alone
    assert_same_steps(first, again)
    original = finish(env, 3)
    assert_same_steps(original, finish(untouched, 3))
    assert not np.array_equal(first[-1][0], other[-1][0])
    assert not np.array_equal(first[-1][0], original[-1][0])


def expected_afterstate(env: DeckOfSpiesEnv, action: Action) -> dict[str, tuple[str, ...]]:
    """Work out what is certain after an action, card by card."""
    zones = {zone: list(cards) for zone, cards in env.zones().items()}

    def move(cards: Iterable[str], target: str) -> None:
        for card in cards:
            for pile in zones.values():
                if card in pile:
                    pile.remove(card)
            zones[target].append(card)

    spy = list(zones["spy"])
    if action.kind in ("counter", "recruit"):
        move(action.cards, "draw_discard")
        move(spy, "draw_discard" if action.kind == "recruit" else "spy_discard")
    elif action.kind == "assassinate":
        move(list(zones["hand"]), "draw_discard")
        move(action.cards, "removed")
        move(spy, "spy_discard")
    elif action.kind == "retire":
        move(action.cards, "spy_discard")
    return {zone: in_order(cards) for zone, cards in zones.items()}


def test_afterstate_is_what_is_certain() -> None:
    env = new_env()
    rng = np.random.default_rng(8)
    kinds = set()
    for seed in range(40):
        env.reset(seed=seed)
        while env.phase != "over":
            state = env.get_state()
            for index in np.flatnonzero(env.action_masks()).tolist():
                action = env.decode(index)
                kinds.add(action.kind)
                assert env.afterstate(index) == expected_afterstate(env, action)
            assert env.get_state() == state
            # What was certain has come true: no card left the piles that only chance moves on.
            index = random_legal(env, rng)
            certain = env.afterstate(index)
            env.step(index)
            assert set(certain["spy_discard"]) == set(env.zones()["spy_discard"])
            assert certain["removed"] == env.zones()["removed"]
            assert set(certain["hand"]) <= set(env.zones()["hand"])
    assert kinds == set(KINDS)


def test_afterstate_of_an_illegal_action_raises() -> None:
    env = midgame()
    for action in (int(np.flatnonzero(~env.action_masks())[0]), -1, 78):
        with pytest.raises(IllegalActionError, match=str(action)):
            env.afterstate(action)


# --- Rendering ------------------------------------------------------------------------------------


def test_ansi_shows_the_table() -> None:
    made = gym.make("DeckOfSpies-v0", render_mode="ansi")
    zones = completed(
        {
            "hand": ["7c", "Td"],
            "spy": ["6h"],
            "spy_deck": ["Kc", "Kd"],
            "draw_deck": ["2c", "Jc", "As"],
            "draw_discard": ["9s"],
        }
    )
    made.reset(options={"zones": zones})
    text = made.render()
    assert isinstance(text, str)
    for shown in ("7♣ T♦", "[6♥]", "2 unseen", "Draw Deck    3 cards", "9♠", "40 cards", "act"):
        assert shown in text, shown
    assert "1 held, 9 lost, 7 to win" in text
    assert "Aces removed: 3" in text
    assert all(char.isprintable() or char == "\n" for char in text)
    for hidden in ("K♣", "2♣", "J♣"):
        assert hidden not in text


def test_ansi_shows_the_last_play_and_the_outcome() -> None:
    env = last_spy(7, render_mode="ansi")
    assert "Last play" not in str(env.render())
    env.step(env.encode("counter", ["5d"]))
    text = str(env.render())
    assert "counter 5d" in text
    assert "over: win" in text
    env.reset()
    assert "Last play" not in str(env.render())


def test_render_without_a_mode_warns() -> None:
    env = gym.make("DeckOfSpies-v0")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render"):
        assert env.render() is None


def test_metadata() -> None:
    assert new_env().metadata["render_modes"] == ["ansi", "rgb_array", "human"]
    assert new_env(render_mode="ansi").render_mode == "ansi"


# --- Shaping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["win", "keys", EVERYTHING], ids=str)
@pytest.mark.parametrize("policy", [random_legal, last_legal])
def test_shaping_sums_to_the_objective(objective: Any, policy: Policy) -> None:
    rules = {"key_spies_to_win": 3}
    shaped = new_env(rules, objective=objective, shaping="key_spies")
    plain = new_env(rules, objective=objective)
    moved = outcomes = 0
    for seed in range(40):
        shaped.reset(seed=seed)
        plain.reset(seed=seed)
        rewards = [step[1] for step in finish(shaped, seed, policy)]
        expected = [step[1] for step in finish(plain, seed, policy)]
        assert sum(rewards) == pytest.approx(sum(expected), abs=1e-12)
        moved += any(rewards[:-1])
        outcomes += sum(expected) > 0
    assert moved > 10  # some Key Spies came and went on the way
    assert outcomes > 0


def test_each_shaped_reward_is_the_change_of_key_spies_held() -> None:
    env = new_env(shaping="key_spies")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    before = 0
    while True:
        _, reward, terminated, _, info = env.step(random_legal(env, rng))
        now = 0 if terminated else held_key_spies(env.zones())
        assert reward == pytest.approx((now - before) / 12 + bool(info.get("is_success")))
        before = now
        if terminated:
            break


def test_shaping_takes_everything_back_at_a_loss() -> None:
    env = last_spy(12, shaping="key_spies", illegal_action="lose")
    assert env.step(-1)[1] == -1.0
    env, action = lost_by_d8(shaping="key_spies")
    assert env.step(action)[1] == pytest.approx(-1 / 12)


# --- Conformance to Gymnasium and SB3 -------------------------------------------------------------


class AnyActionGoes(gym.ActionWrapper[Any, Any, Any]):
    """Turns whatever a checker samples blindly into a legal action."""

    def action(self, action: Any) -> Any:
        legal = np.flatnonzero(self.env.unwrapped.action_masks())  # type: ignore[attr-defined]
        return legal[int(action) % len(legal)]


@pytest.mark.parametrize("observation", ["recall", "table"])
def test_gymnasium_check_env(observation: str) -> None:
    env = gym.make("DeckOfSpies-v0", illegal_action="lose", observation=observation).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@pytest.mark.parametrize("arguments", [{}, {"rules": {"hand_size": 3}}, {"observation": "table"}])
def test_gymnasium_check_env_with_legal_actions(arguments: dict[str, Any]) -> None:
    # Rendering and closing make the environment anew from its spec; they are checked above.
    env = AnyActionGoes(gym.make("DeckOfSpies-v0", **arguments).unwrapped)
    check_env(env, skip_render_check=True, skip_close_check=True)


def test_gymnasium_check_env_samples_blindly() -> None:
    with pytest.raises(IllegalActionError):
        check_env(new_env())


@pytest.mark.parametrize("observation", ["recall", "table"])
def test_sb3_check_env(observation: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3_check_env(new_env(illegal_action="lose", observation=observation))
        sb3_check_env(AnyActionGoes(new_env(observation=observation)))


# --- Copies and specs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"objective": {"win": 1.0, "keys": 0.5}, "observation": "table"},
        {"rules": {"hand_size": 4, "idle_ace": False}},
        {"rules": Rules(eager_reshuffle=True, key_spies_to_win=2), "illegal_action": "lose"},
        {"start": without(SMALL, "hand"), "shaping": "key_spies"},
        {
            "start": {
                "zones": SMALL
                | {
                    "hand": ["9c"],
                    "spy_discard": [card for card in SMALL["spy_discard"] if card != "9c"],
                },
                "phase": "act",
            }
        },
        {"render_mode": "ansi"},
    ],
    ids=str,
)
@pytest.mark.parametrize("env_id", ["DeckOfSpies-v0", "DeckOfSpiesKeys-v0"])
def test_a_spec_through_json_makes_the_same_env(env_id: str, arguments: dict[str, Any]) -> None:
    env = gym.make(env_id, **arguments)
    assert env.spec is not None
    text = env.spec.to_json()
    json.loads(text)
    again = gym.make(EnvSpec.from_json(text))
    assert again.spec is not None
    assert again.spec.to_json() == text
    assert again.unwrapped.rules == env.unwrapped.rules  # type: ignore[attr-defined]
    assert again.observation_space == env.observation_space
    assert again.action_space == env.action_space
    assert again.render_mode == env.render_mode
    for seed in range(3):
        one, other = env.reset(seed=seed), again.reset(seed=seed)
        assert np.array_equal(one[0], other[0])
        assert_same_steps(
            finish(env.unwrapped, 0, last_legal),  # type: ignore[arg-type]
            finish(again.unwrapped, 0, last_legal),  # type: ignore[arg-type]
        )


COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("wrapped", [True, False])
def test_copies_replay_identically_and_independently(how: str, wrapped: bool) -> None:
    made = gym.make("DeckOfSpies-v0", rules={"hand_size": 6}, objective="keys", shaping="key_spies")
    made.reset(seed=0)
    made.reset()
    rng = np.random.default_rng(0)
    for _ in range(9):
        made.step(random_legal(made.unwrapped, rng))  # type: ignore[arg-type]
    env: Any = made if wrapped else made.unwrapped
    twin = COPIES[how](env)
    state = env.unwrapped.get_state()
    first = finish(twin.unwrapped, 1)
    assert env.unwrapped.get_state() == state
    assert_same_steps(first, finish(env.unwrapped, 1))
    for _ in range(2):
        assert np.array_equal(twin.reset()[0], env.reset()[0])
    assert_same_steps(finish(twin.unwrapped, 2), finish(env.unwrapped, 2))


@pytest.mark.parametrize("how", COPIES)
def test_copies_before_the_first_reset_work(how: str) -> None:
    env = new_env()
    twin = COPIES[how](env)
    assert np.array_equal(twin.reset(seed=1)[0], env.reset(seed=1)[0])


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_an_unseeded_env_goes_on_alike(how: str) -> None:
    env = new_env()
    env.reset()
    twin = COPIES[how](env)
    assert_same_steps(finish(twin, 1), finish(env, 1))
    assert np.array_equal(twin.reset()[0], env.reset()[0])
