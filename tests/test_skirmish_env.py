"""Tests of ``Skirmish-v0``: one section per promise of its interface.

The rules are tested elsewhere. What the environment hands out is compared to ``parallel_env``, the
same table without opponents, and to the cards that ``table()`` shows.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from deck_of_spies_env import IllegalActionError
from deck_of_spies_env.agent import BatchAgent
from deck_of_spies_env.skirmish.actions import WAIT
from deck_of_spies_env.skirmish.bots import BOTS
from deck_of_spies_env.skirmish.env import SkirmishEnv
from deck_of_spies_env.skirmish.observations import observation_fields, observation_layout
from deck_of_spies_env.skirmish.parallel import SkirmishParallelEnv, parallel_env
from deck_of_spies_env.skirmish.rules import Rules
from deck_of_spies_env.testing import check_masked_env

SMALL: dict[str, Any] = {"ranks": "A2JQK", "num_suits": 2, "max_rounds": 30}
"""Twelve cards: short games, with Wars, eliminations and all."""

ENDING_KEYS = {"action_mask", "outcome", "is_success", "total", "margin", "rounds"}

Step = tuple[Any, float, bool, bool, dict[str, Any]]


def new_env(**arguments: Any) -> SkirmishEnv:
    """The environment behind ``gym.make``, without its wrappers."""
    return cast(SkirmishEnv, gym.make("Skirmish-v0", **arguments).unwrapped)


def random_legal(env: SkirmishEnv, rng: np.random.Generator) -> int:
    """A random legal action."""
    return int(rng.choice(np.flatnonzero(env.action_masks())))


def finish(env: SkirmishEnv, seed: int = 0) -> list[Step]:
    """Play on to the end at random and return the steps."""
    rng = np.random.default_rng(seed)
    steps: list[Step] = []
    while env.phase != "over":
        steps.append(env.step(random_legal(env, rng)))
    return steps


def assert_same_steps(first: Sequence[Step], second: Sequence[Step]) -> None:
    """Check that two plays came out the same."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one[0], other[0])
        assert one[1:4] == other[1:4]
        assert {key: str(value) for key, value in one[4].items()} == {
            key: str(value) for key, value in other[4].items()
        }


class Recorder(BatchAgent):
    """Plays at random and keeps all that it is told."""

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.seen: list[tuple[NDArray[Any], NDArray[Any], int]] = []
        self._rng = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)
        self._rng = np.random.default_rng(seed)

    def choose(
        self, observations: NDArray[np.int8], action_masks: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        actions = np.array([self._rng.choice(np.flatnonzero(mask)) for mask in action_masks])
        self.seen.append((observations[0], action_masks[0], int(actions[0])))
        return actions


class Stubborn(BatchAgent):
    """Always takes the same action, legal or not."""

    def __init__(self, action: Any) -> None:
        self.action = action

    def choose(self, observations: Any, action_masks: Any) -> Any:
        return [self.action]

    def act(self, observation: Any, action_mask: Any) -> Any:
        return self.action


# --- Making, spaces, checks -----------------------------------------------------------------------


def test_the_documented_example_runs() -> None:
    env = gym.make("Skirmish-v0", num_players=2, opponents="rank")
    obs, info = env.reset(seed=7)
    terminated = truncated = False
    while not (terminated or truncated):
        obs, reward, terminated, truncated, info = env.step(
            env.action_space.sample(info["action_mask"])
        )
    assert obs in env.observation_space
    assert reward in (-1.0, 0.0, 1.0)
    assert set(info) == ENDING_KEYS


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_spaces(num_players: int) -> None:
    env = new_env(num_players=num_players)
    fields = observation_fields(num_players)
    space = env.observation_space
    assert isinstance(space, gym.spaces.Box)
    assert space.dtype == np.int8
    assert space.shape == (sum(field.width for field in fields),)
    layout = observation_layout(num_players)
    for field in fields:
        assert (space.high[layout[field.name]] == field.high).all()
    assert env.action_space == gym.spaces.Discrete(15)
    assert (env.num_players, env.rules) == (num_players, Rules())


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("num_players", [2, 4])
def test_gymnasiums_check(num_players: int) -> None:
    env = gym.make(
        "Skirmish-v0",
        num_players=num_players,
        opponents="random",
        illegal_action="lose",
        render_mode="ansi",
    )
    check_env(env.unwrapped)


@pytest.mark.parametrize("illegal_action", ["raise", "lose"])
@pytest.mark.parametrize("num_players", [2, 3])
def test_the_check_of_masks(num_players: int, illegal_action: str) -> None:
    env = gym.make(
        "Skirmish-v0",
        num_players=num_players,
        opponents="random",
        rules=SMALL,
        illegal_action=illegal_action,
    )
    check_masked_env(env, episodes=5)


@pytest.mark.parametrize("opponents", [*BOTS, ["random", "high"]], ids=str)
def test_a_spec_goes_through_json(opponents: Any) -> None:
    num_players = 3 if isinstance(opponents, list) else 2
    env = gym.make("Skirmish-v0", num_players=num_players, opponents=opponents, rules=SMALL, seat=1)
    assert env.spec is not None
    spec = EnvSpec.from_json(env.spec.to_json())
    json.loads(env.spec.to_json())
    twin = gym.make(spec).unwrapped
    assert isinstance(twin, SkirmishEnv)
    first, second = cast(SkirmishEnv, env.unwrapped), twin
    assert np.array_equal(first.reset(seed=3)[0], second.reset(seed=3)[0])
    assert_same_steps(finish(first), finish(second))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_players": 5}, "num_players must be 2, 3 or 4, got 5"),
        ({"num_players": True}, "num_players must be 2, 3 or 4"),
        ({"opponents": "best"}, "unknown bot 'best'; there are random, high, rank, intrigue"),
        ({"opponents": ["high", "high"]}, "opponents must list 1 for 2 players, got 2"),
        ({"opponents": []}, "opponents must list 1"),
        ({"opponents": None}, "opponents must be a bot's name .*got None"),
        ({"opponents": [7]}, "opponents must be a bot's name .*got 7"),
        ({"opponents": Recorder}, "opponents must be a bot's name"),
        ({"seat": 2}, "seat must be a whole number 0-1, got 2"),
        ({"seat": -1}, "seat must be a whole number 0-1, got -1"),
        ({"seat": True}, "seat must be a whole number"),
        ({"rules": {"jokers": 1}}, "unknown field 'jokers'"),
        ({"rules": {"max_rounds": 0}}, "max_rounds must be a whole number"),
        ({"render_mode": "pixels"}, "one of ansi, rgb_array, human, got 'pixels'"),
        ({"illegal_action": "skip"}, "illegal_action must be one of raise, lose, got 'skip'"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SkirmishEnv(**arguments)


# --- Steps and the end ----------------------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_steps_are_those_of_the_table(num_players: int) -> None:
    """The learner and the recorded opponents, put together, replay a parallel environment."""
    opponents = [Recorder() for _ in range(num_players - 1)]
    env = new_env(num_players=num_players, opponents=opponents, rules=SMALL)
    table = parallel_env(num_players, rules=SMALL)
    rng = np.random.default_rng(0)
    asked = waited = wars = 0
    for episode in range(12):
        seed = 5 if episode == 0 else None
        obs, info = env.reset(seed=seed)
        expected, infos = table.reset(seed=seed)
        learner = f"player_{env.seat}"
        for opponent in opponents:
            opponent.seen.clear()
        while True:
            assert np.array_equal(obs, expected[learner]["observation"])
            assert np.array_equal(info["action_mask"], infos[learner]["action_mask"])
            assert info["action_mask"].dtype == np.int8
            if env.phase == "over":
                break
            wars += env.phase == "war"
            waited += info["action_mask"][WAIT]
            action = random_legal(env, rng)
            obs, reward, terminated, truncated, info = env.step(action)
            actions = {learner: action}
            for place, opponent in enumerate(opponents, 1):
                other = f"player_{(env.seat + place) % num_players}"
                actions[other] = WAIT
                if not infos[other]["action_mask"][WAIT]:  # it was asked, on what is its own
                    row, mask, actions[other] = opponent.seen.pop()
                    assert np.array_equal(row, expected[other]["observation"])
                    assert np.array_equal(mask, infos[other]["action_mask"])
                    asked += 1
                assert not opponent.seen
            expected, rewards, terminations, truncations, infos = table.step(actions)
            assert reward == rewards[learner]
            assert (terminated, truncated) == (terminations[learner], truncations[learner])
            keys = ENDING_KEYS if terminated or truncated else {"action_mask"}
            assert set(info) == keys
            for key in keys - {"action_mask"}:
                assert info[key] == infos[learner][key]
    assert asked > 50
    assert wars > 3
    assert waited > 0  # out of a War, or without a card for it


def test_the_last_info_tells_how_it_ended() -> None:
    env = new_env(opponents="random", rules=SMALL)
    outcomes = set()
    for episode in range(60):
        env.reset(seed=None if episode else 0)
        _, reward, terminated, truncated, info = finish(env)[-1]
        assert terminated != truncated
        assert type(reward) is float
        assert [type(info[key]) for key in ("outcome", "is_success", "total", "margin")] == [
            str,
            bool,
            int,
            int,
        ]
        assert reward == {"win": 1.0, "shared": 0.0, "loss": -1.0}[info["outcome"]]
        assert info["is_success"] is (info["outcome"] == "win")
        assert info["rounds"] >= 1
        assert not info["action_mask"].any()
        assert not env.action_masks().any()
        outcomes.add(info["outcome"])
    assert {"win", "loss"} <= outcomes


def test_the_round_limit_truncates() -> None:
    env = new_env(opponents="high", rules={"max_rounds": 2})
    env.reset(seed=0)
    steps = finish(env)
    assert steps[-1][2:4] == (False, True)
    assert steps[-1][4]["rounds"] == 2
    hands = env.table()
    totals = [
        sum(
            "A23456789TJQK".index(card[0]) + 1
            for zone in ("hand", "supply", "capture")
            for card in hands[zone][seat]
            if card != "*"
        )
        for seat in range(2)
    ]
    assert steps[-1][4]["total"] == totals[env.seat]
    assert steps[-1][4]["margin"] == totals[env.seat] - totals[1 - env.seat]


def test_arrays_handed_out_are_fresh() -> None:
    env = new_env(opponents="random")
    obs, info = env.reset(seed=0)
    state, masks = env.get_state(), env.action_masks()
    arrays = [obs, info["action_mask"], state, masks]
    kept = copy.deepcopy(arrays)
    finish(env)
    for array, before in zip(arrays, kept, strict=True):
        assert np.array_equal(array, before)
    env.reset(seed=0)[1]["action_mask"][:] = 1  # does not make an action legal
    with pytest.raises(IllegalActionError):
        env.step(WAIT)
    assert not env.action_masks()[WAIT]


# --- Seats ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_seat_goes_round_with_the_episodes(num_players: int) -> None:
    env = new_env(num_players=num_players, opponents="random", rules=SMALL)
    seats = [env.seat for episode in range(9) if env.reset(seed=None if episode else 4)]
    assert seats == [episode % num_players for episode in range(9)]
    env.reset(seed=4)
    assert env.seat == 0
    fixed = new_env(num_players=num_players, opponents="random", rules=SMALL, seat=1)
    assert [fixed.seat for _ in range(4) if fixed.reset()] == [1] * 4


def test_the_first_opponent_sits_next_after_the_learner() -> None:
    opponents = [Recorder(), Recorder(), Recorder()]
    env = new_env(num_players=4, opponents=opponents)
    layout = observation_layout(4)
    for episode in range(4):
        env.reset(seed=None if episode else 2)
        hands = env.table()["hand"]
        env.step(random_legal(env, np.random.default_rng(0)))
        for place, opponent in enumerate(opponents, 1):
            hand = hands[(episode + place) % 4]
            shown = opponent.seen[-1][0][layout["hand"]]
            assert shown.tolist() == [sum(c[0] == rank for c in hand) for rank in "A23456789TJQK*"]


# --- Deals ----------------------------------------------------------------------------------------


def test_a_deal_is_seed_and_episode_whatever_is_played() -> None:
    envs = [
        new_env(opponents="random", rules=SMALL),
        new_env(opponents="high", rules=SMALL, seat=1),
    ]
    table = parallel_env(rules=SMALL)
    deals = set()
    for seed in (0, 1, 2**70):
        for episode in range(3):
            given = seed if episode == 0 else None
            table.reset(seed=given)
            for number, env in enumerate(envs):
                env.reset(seed=given)
                assert env.table() == table.table()
                if number:
                    finish(env, episode)
            deals.add(str(table.table()))
    assert len(deals) == 9


def test_without_a_seed_deals_differ() -> None:
    assert len({new_env().reset()[0].tobytes() for _ in range(5)}) > 1


def test_the_same_seed_gives_the_same_play() -> None:
    first, second = new_env(opponents="random"), new_env(opponents="random")
    for seed in (3, None):
        first.reset(seed=seed)
        second.reset(seed=seed)
        assert_same_steps(finish(first), finish(second))


# --- Opponents ------------------------------------------------------------------------------------


def test_an_agent_object_is_reset_once_an_episode() -> None:
    recorder = Recorder()
    env = new_env(num_players=3, opponents=recorder, rules=SMALL)
    for episode in range(4):
        env.reset(seed=None if episode else 1)
        finish(env)
        assert len(recorder.seeds) == episode + 1
    assert len(set(recorder.seeds)) == 4
    again = Recorder()
    new_env(num_players=3, opponents=again, rules=SMALL).reset(seed=1)
    assert again.seeds == recorder.seeds[:1]


def test_named_bots_play_differently_from_seat_to_seat_and_game_to_game() -> None:
    env = new_env(num_players=3, opponents="random")
    played = set()
    for seed in range(20):
        env.reset(seed=seed, options={"table": EVEN})
        env.step(env.encode("K"))
        played.add(str(env.table()["capture"]) + str(env.table()["committed"]))
    assert len(played) > 5


EVEN = {
    "hand": [["3c", "4c", "Kc"], ["2d", "7d", "Td"], ["2h", "7h", "Th"]],
    "supply": [["8c", "8d"], ["9c", "9d"], ["6c", "6d"]],
}


@pytest.mark.parametrize("action", [-1, 15, WAIT, 1.5, "A", None, [0, 1]], ids=str)
def test_an_opponents_illegal_action_names_its_seat(action: Any) -> None:
    env = new_env(num_players=3, opponents=["high", Stubborn(action)])
    env.reset(seed=0)
    state = env.get_state()
    with pytest.raises(IllegalActionError, match="seat 2: "):
        env.step(random_legal(env, np.random.default_rng(0)))
    assert env.get_state() == state


def test_an_opponents_illegal_action_may_lose() -> None:
    env = new_env(num_players=3, opponents=["high", Stubborn(WAIT)], illegal_action="lose")
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(random_legal(env, np.random.default_rng(0)))
    assert (terminated, truncated) == (True, False)
    assert info["outcome"] == "shared"
    assert reward == 0.25


# --- Illegal actions ------------------------------------------------------------------------------


def test_an_illegal_action_changes_nothing() -> None:
    env, twin = new_env(opponents="random", rules=SMALL), new_env(opponents="random", rules=SMALL)
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        twin.reset(seed=seed)
        while env.phase != "over":
            state, masks = env.get_state(), env.action_masks()
            for illegal in [*np.flatnonzero(~masks), -1, 15, 2**62]:
                with pytest.raises(IllegalActionError, match=rf"seat {env.seat}: action {illegal}"):
                    env.step(illegal)
            assert env.get_state() == state
            assert np.array_equal(env.action_masks(), masks)
            action = random_legal(env, rng)
            assert_same_steps([env.step(action)], [twin.step(action)])


@pytest.mark.parametrize("action", [1.0, "A", None, [0, 1], 10**30], ids=str)
def test_what_is_no_whole_number_is_refused(action: Any) -> None:
    env = new_env(illegal_action="lose")
    env.reset(seed=0)
    with pytest.raises(IllegalActionError, match="expected 1 whole number"):
        env.step(action)
    assert env.phase == "skirmish"


def test_illegal_actions_say_why() -> None:
    env = new_env(num_players=3, opponents="high", seat=0)
    env.reset(seed=0, options={"table": EVEN})
    with pytest.raises(IllegalActionError, match=r"seat 0: .*no A in hand, there are 3, 4, K"):
        env.step(env.encode("A"))
    with pytest.raises(IllegalActionError, match=r"\(wait\) is illegal: it must commit one of"):
        env.step(WAIT)
    # The opponents tie, and the learner waits for their War.
    env.step(env.encode("3"))
    assert env.phase == "war"
    assert env.action_masks().tolist() == [False] * WAIT + [True]
    with pytest.raises(IllegalActionError, match="takes no part in the War"):
        env.step(env.encode("4"))
    env.step(WAIT)
    assert env.phase == "skirmish"


@pytest.mark.parametrize("action", [WAIT, -1, 15, -(2**62)])
@pytest.mark.parametrize("num_players", [2, 4])
def test_lose_ends_the_game_as_a_loss(num_players: int, action: int) -> None:
    env = new_env(num_players=num_players, opponents="random", illegal_action="lose")
    env.reset(seed=5)
    table = env.table()
    obs, reward, terminated, truncated, info = env.step(action)
    assert reward == -1 / (num_players - 1)
    assert (terminated, truncated) == (True, False)
    assert set(info) == ENDING_KEYS
    assert (info["outcome"], info["is_success"]) == ("illegal_action", False)
    assert env.table()["hand"] == table["hand"]  # no card has moved
    assert obs in env.observation_space
    with pytest.raises(IllegalActionError, match="reset first"):
        env.step(action)


@pytest.mark.parametrize("illegal_action", ["raise", "lose"])
def test_any_action_after_the_end_raises(illegal_action: str) -> None:
    env = new_env(opponents="random", rules=SMALL, illegal_action=illegal_action)
    with pytest.raises(IllegalActionError, match="reset first"):
        env.step(0)
    env.reset(seed=0)
    finish(env)
    state = env.get_state()
    for action in (0, WAIT, -1, 15):
        with pytest.raises(IllegalActionError):
            env.step(action)
    assert env.get_state() == state


# --- Positions ------------------------------------------------------------------------------------


def test_a_table_is_taken_as_given_for_one_reset() -> None:
    env, twin = new_env(num_players=3), new_env(num_players=3)
    obs, _ = env.reset(seed=1, options={"table": EVEN, "unknown": 1})
    assert env.table()["hand"] == tuple(tuple(hand) for hand in EVEN["hand"])
    assert env.table()["supply"] == tuple(tuple(pile) for pile in EVEN["supply"])
    assert len(env.table()["burned"]) == 54 - 15
    assert obs in env.observation_space
    twin.reset(seed=1)
    assert np.array_equal(env.reset()[0], twin.reset()[0])


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_what_table_tells_of_the_start_of_a_round_is_a_start(num_players: int) -> None:
    env, other = new_env(num_players=num_players), new_env(num_players=num_players, seat=0)
    env.reset(seed=3)
    rng = np.random.default_rng(3)
    rounds = 0
    while env.phase != "over":
        told = env.table()
        if told["phase"] == "skirmish":
            rounds += 1
            for form in (told, json.loads(json.dumps(told))):
                other.reset(seed=1, options={"table": form})
                assert other.table() == told
        else:
            with pytest.raises(ValueError, match="start of a round"):
                other.reset(seed=1, options={"table": told})
        env.step(random_legal(env, rng))
    assert rounds > 3


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (["7c"], "must be a mapping of zones"),
        ({"spy": ["7c"]}, "unknown zone 'spy'"),
        ({"hand": [["7c"]]}, "one collection of cards for each of 2"),
        ({"hand": 5}, "one collection of cards for each of 2"),
        ({"hand": "7c"}, "one collection of cards for each of 2"),
        ({"hand": [5, 6]}, "hand of seat 0 must be a collection of cards"),
        ({"hand": ["7c", "8c"]}, "hand of seat 0 must be a collection of cards"),
        ({"hand": [["7c"], [8]]}, "hand of seat 1 must be a collection of cards"),
        ({"hand": [["7c"], ["8c"]], "graveyard": 3}, "graveyard must be a collection of cards"),
        ({"hand": [["7c"], []]}, "no hand to play with"),
        ({"hand": [["7c"], ["7c"]]}, "hand of seat 1: card 7c is named twice"),
        ({"hand": [["7c"], ["8c"]], "supply": [[], ["1c"]]}, "supply of seat 1: .*1c"),
        ({"hand": [["7c"], ["8c"]], "phase": "war"}, "start of a round.*'war'"),
        ({"hand": [["7c"], ["8c"]], "phase": "over"}, "start of a round.*'over'"),
        ({"hand": [["7c"], ["8c"]], "stakes": [["9c"], []]}, "nothing is stakes"),
        ({"hand": [["7c"], ["8c"]], "stakes": 5}, "nothing is stakes"),
        ({"hand": [["7c"], ["8c"]], "committed": ["9c", None]}, "nothing is committed"),
        ({"hand": [["7c", "8c", "9c", "Tc"], ["7d"]]}, "more than three cards"),
    ],
    ids=str,
)
def test_a_bad_table_changes_nothing(table: Any, message: str) -> None:
    env = new_env()
    env.reset(seed=0)
    state = env.get_state()
    for seed in (None, 1):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=seed, options={"table": table})
    assert env.get_state() == state


# --- Words ----------------------------------------------------------------------------------------


def test_decode_and_encode() -> None:
    env = new_env()
    texts = [env.decode(action) for action in range(15)]
    assert texts == [*"A23456789TJQK*", "wait"]
    assert [env.encode(text) for text in texts] == list(range(15))
    assert env.encode("10") == env.encode("t") == 9
    for bad in (-1, 15):
        with pytest.raises(ValueError, match=str(bad)):
            env.decode(bad)
    for text in ("", "1", "joker"):
        with pytest.raises(ValueError, match="bad rank"):
            env.encode(text)


def test_zones_are_the_seats_own() -> None:
    env = new_env(num_players=3, opponents="random")
    for _ in range(3):
        env.reset()
        assert env.zones() == env.zones(env.seat)
        for seat in range(3):
            assert env.zones(seat)["hand"] == env.table()["hand"][seat]
    for bad in (3, -1, "0"):
        with pytest.raises(ValueError, match="seat must be"):
            env.zones(bad)  # type: ignore[arg-type]


# --- Saving and forking ---------------------------------------------------------------------------


def midgame(**arguments: Any) -> SkirmishEnv:
    """An environment after some play in the second episode of a seed."""
    env = new_env(**{"num_players": 3, "opponents": "random", **arguments})
    env.reset(seed=12)
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(4):
        env.step(random_legal(env, rng))
    assert env.phase != "over"
    return env


def test_set_state_goes_back_with_the_bots_random_numbers() -> None:
    env = midgame()
    state = env.get_state()
    first = finish(env, 1)
    after = env.reset()[0]
    env.set_state(state)
    assert env.get_state() == state
    assert_same_steps(first, finish(env, 1))
    assert np.array_equal(env.reset()[0], after)
    other = new_env(num_players=3, opponents="random")
    other.set_state(pickle.loads(pickle.dumps(state)))  # without any reset
    assert other.seat == 1
    assert_same_steps(first, finish(other, 1))


@pytest.mark.parametrize("state", [np.zeros(3), None, [], 7], ids=repr)
def test_a_bad_state_is_a_value_error(state: Any) -> None:
    env = midgame()
    before = env.get_state()
    with pytest.raises(ValueError, match="get_state"):
        env.set_state(state)
    wrong = before.copy()
    wrong["state"]["hand"][0] = wrong["state"]["hand"][1]
    with pytest.raises(ValueError, match="state: "):
        env.set_state(wrong)
    assert env.get_state() == before


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rounds", 20, "more rounds than the limit of 20"),
        ("rounds", 32767, "more rounds than the limit of 20"),
        ("rounds", -1, "negative"),
        ("offenders", 1, "offenders"),
        ("phase", 2, "over though nobody is out"),
    ],
)
def test_a_state_that_play_does_not_come_to_is_refused(
    field: str, value: int, message: str
) -> None:
    env = new_env(rules={"max_rounds": 20})
    env.reset(seed=0)
    before = env.get_state()
    wrong = before.copy()
    wrong["state"][field] = value
    with pytest.raises(ValueError, match=message):
        env.set_state(wrong)
    assert env.get_state() == before


def test_states_of_other_rules_are_refused() -> None:
    """Where captures come back and where they don't, hidden cards and endings differ."""
    without = {"recycle_captures": False}
    seen: Counter[str] = Counter()
    for seed in range(10):
        for rules, others in ((None, without), (without, None)):
            env, other = new_env(rules=rules), new_env(rules=others)
            env.reset(seed=seed)
            other.reset(seed=seed)
            before, over = other.get_state(), False
            while not over:
                _, _, terminated, truncated, _ = env.step(int(env.action_masks().argmax()))
                over = terminated or truncated
                state = env.get_state()["state"]
                came_back = (state["hand"] | state["supply"] | state["stakes"]) & ~state["dealt"]
                if rules is None and came_back.any():
                    seen["back"] += 1
                    with pytest.raises(ValueError, match="a captured card has come back"):
                        other.set_state(env.get_state())
                    assert other.get_state() == before
            out = (state["hand"] == 0) & (state["capture"] != 0)
            if rules is not None and terminated and out.any():
                seen["out"] += 1
                with pytest.raises(ValueError, match="out of cards though it has some to draw"):
                    other.set_state(env.get_state())
    assert seen["back"] > 100
    assert seen["out"] > 3


def test_pickles_and_deep_copies_play_the_same() -> None:
    env = midgame()
    twins = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    first = finish(env)
    for twin in twins:
        assert_same_steps(first, finish(twin))


def test_a_fork_leaves_the_game_alone() -> None:
    recorder = Recorder()
    for opponents in ("random", [recorder, "high"]):
        env, twin = midgame(opponents=opponents), midgame(opponents=copy.deepcopy(opponents))
        state, told = env.get_state(), len(recorder.seen)
        plays = set()
        for seed in range(6):
            fork = env.fork(seed)
            assert (fork.table(), fork.seat, fork.phase) == (env.table(), env.seat, env.phase)
            assert np.array_equal(fork.action_masks(), env.action_masks())
            plays.add(finish(fork)[-1][0].tobytes())
        assert len(plays) > 3
        assert len(recorder.seen) == told
        assert env.get_state() == state
        assert_same_steps(finish(env), finish(twin))


def test_a_forks_seed_is_never_the_games_own() -> None:
    env = new_env(opponents="random")
    env.reset(seed=12)
    fork, again = env.fork(12), env.fork(12)
    first = finish(fork)
    assert_same_steps(first, finish(again))
    own = finish(env)
    assert len(first) != len(own) or not np.array_equal(first[-1][0], own[-1][0])


def test_a_redeal_keeps_what_the_learner_knows_and_nothing_else() -> None:
    env = midgame(opponents="random")
    state, hands, hidden = env.get_state(), set(), set()
    for seed in range(12):
        twin = env.redeal(seed)
        assert (twin.zones(), twin.seat, twin.phase) == (env.zones(), env.seat, env.phase)
        assert np.array_equal(twin.action_masks(), env.action_masks())
        hands.add(twin.table()["hand"][env.seat])
        hidden.add(str(twin.table()["hand"]))
        finish(twin)
    assert len(hands) == 1
    assert len(hidden) > 6
    assert env.get_state() == state


def test_a_fork_rotates_on() -> None:
    fork = midgame().fork(0)
    fork.reset()
    assert fork.seat == 2


# --- Rendering ------------------------------------------------------------------------------------


def test_ansi_shows_what_the_learner_may_know() -> None:
    made = gym.make("Skirmish-v0", num_players=3, opponents="high", seat=0, render_mode="ansi")
    made.reset(seed=0, options={"table": EVEN})
    text = str(made.render())
    for shown in ("Round 1, skirmish: seats 0, 1, 2", "Seat 0 (own)", "3♣ 4♣ K♣", "2 cards"):
        assert shown in text, shown
    for hidden in ("T♦", "T♥", "8♣", "9♣"):
        assert hidden not in text, hidden
    made.step(2)  # the 3 against two Tens
    text = str(made.render())
    for shown in ("Round 1, war: seats 1, 2", "T♦", "committed", "stakes"):
        assert shown in text, shown
    assert "7♦" not in text
    assert all(char.isprintable() or char == "\n" for char in text)


def test_render_without_a_mode_warns() -> None:
    env = gym.make("Skirmish-v0")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render"):
        assert env.render() is None


def test_rendered_games_reach_their_end() -> None:
    env = new_env(num_players=4, opponents="random", rules=SMALL, render_mode="ansi")
    env.reset(seed=0)
    finish(env)
    assert "Over after" in str(env.render())


def test_the_table_env_is_of_the_other_class() -> None:
    assert isinstance(parallel_env(), SkirmishParallelEnv)
