"""Tests of Skirmish under PettingZoo's interfaces: all seats at once, and in turn."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from deck_of_spies_env import IllegalActionError
from deck_of_spies_env.skirmish import parallel_env
from deck_of_spies_env.skirmish.actions import WAIT
from deck_of_spies_env.skirmish.parallel import SkirmishParallelEnv
from deck_of_spies_env.skirmish.parallel import env as aec_env

SMALL: dict[str, Any] = {"ranks": "A2JQK", "num_suits": 2, "max_rounds": 30}
ENDING_KEYS = {"action_mask", "outcome", "is_success", "total", "margin", "rounds"}


def random_actions(env: SkirmishParallelEnv, rng: np.random.Generator) -> dict[str, int]:
    """A random legal action of every agent."""
    return {
        agent: int(rng.choice(np.flatnonzero(env.observe(agent)["action_mask"])))
        for agent in env.agents
    }


def finish(env: SkirmishParallelEnv, seed: int = 0) -> list[Any]:
    """Play on to the end at random and return the steps."""
    rng = np.random.default_rng(seed)
    steps: list[Any] = []
    while env.agents:
        steps.append(env.step(random_actions(env, rng)))
    return steps


def midgame(num_players: int = 3, steps: int = 8) -> SkirmishParallelEnv:
    """A game after some play, with captures recycled."""
    env = parallel_env(num_players)
    env.reset(seed=3)
    rng = np.random.default_rng(3)
    for _ in range(steps):
        env.step(random_actions(env, rng))
    assert env.agents
    return env


# --- PettingZoo's own tests -----------------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_parallel_api(num_players: int) -> None:
    parallel_api_test(parallel_env(num_players, rules=SMALL), num_cycles=200)
    parallel_api_test(parallel_env(num_players, rules={"max_rounds": 3}), num_cycles=200)


def test_the_parallel_api_finds_equal_play_for_equal_seeds() -> None:
    # It samples without masks.
    parallel_seed_test(lambda: parallel_env(illegal_action="lose", rules=SMALL), num_cycles=100)


@pytest.mark.filterwarnings("ignore:Observation")  # a dict, as masked observations are
@pytest.mark.filterwarnings("ignore:Action mask numpy array is all zeros")  # at the end
@pytest.mark.parametrize("num_players", [2, 4])
def test_the_api_of_taking_turns(num_players: int) -> None:
    api_test(aec_env(num_players, rules=SMALL), num_cycles=200)
    seed_test(lambda: aec_env(num_players, rules=SMALL), num_cycles=50)


# --- Imports --------------------------------------------------------------------------------------


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


def test_pettingzoo_is_imported_only_when_asked_for() -> None:
    done = run(
        "import sys, deck_of_spies_env, deck_of_spies_env.skirmish.env as env\n"
        "import deck_of_spies_env.skirmish.vector_env\n"
        "assert 'pettingzoo' not in sys.modules\n"
        "from deck_of_spies_env.skirmish import parallel_env\n"
        "assert 'pettingzoo' in sys.modules and callable(parallel_env)\n"
    )
    assert done.returncode == 0, done.stderr


def test_without_pettingzoo_the_error_says_what_to_install() -> None:
    done = run(
        "import sys; sys.modules['pettingzoo'] = None\n"
        "import gymnasium as gym, deck_of_spies_env, deck_of_spies_env.skirmish as skirmish\n"
        "gym.make('Skirmish-v0').reset(seed=0)\n"
        "try:\n"
        "    skirmish.parallel_env\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "needs PettingZoo: pip install 'deck_of_spies_env[pettingzoo]'" in done.stdout


def test_the_package_has_no_other_lazy_names() -> None:
    from deck_of_spies_env import skirmish

    with pytest.raises(AttributeError, match="no attribute 'parallel_envs'"):
        _ = skirmish.parallel_envs
    assert skirmish.parallel_env is parallel_env


# --- Observations, infos, the end -----------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_what_agents_are_given(num_players: int) -> None:
    env = parallel_env(num_players, rules=SMALL)
    assert isinstance(env, ParallelEnv)
    agents = [f"player_{seat}" for seat in range(num_players)]
    assert (env.possible_agents, env.agents) == (agents, [])
    rng = np.random.default_rng(0)
    waits = 0
    for seed in range(8):
        observations, infos = env.reset(seed=seed)
        rewards: dict[str, float] = dict.fromkeys(agents, 0.0)
        while True:
            for agent in agents:
                space = env.observation_space(agent)
                assert isinstance(space, spaces.Dict)
                assert observations[agent] in space
                assert np.array_equal(
                    observations[agent]["action_mask"], infos[agent]["action_mask"]
                )
                observed = env.observe(agent)["observation"]
                assert np.array_equal(observed, observations[agent]["observation"])
            rows = [observations[agent]["observation"] for agent in agents]
            assert np.array_equal(env.state(), np.concatenate(rows))
            assert env.state() in env.state_space
            if not env.agents:
                break
            assert not any(rewards.values())
            masks = np.array([observations[agent]["action_mask"] for agent in agents])
            assert not masks[:, WAIT].all()  # no step has all seats waiting
            waits += masks[:, WAIT].sum()
            observations, rewards, terminations, truncations, infos = env.step(
                random_actions(env, rng)
            )
        assert sum(rewards.values()) == pytest.approx(0.0)
        assert len(set(terminations.values())) == len(set(truncations.values())) == 1
        assert terminations["player_0"] != truncations["player_0"]
        for agent in agents:
            assert set(infos[agent]) == ENDING_KEYS
            assert infos[agent]["is_success"] is (rewards[agent] == 1.0)
            assert not infos[agent]["action_mask"].any()
    assert waits > 0  # out of a War, or without a card for it


def test_agents_have_spaces_of_their_own() -> None:
    env = parallel_env()
    env.action_space("player_0").seed(1)
    env.action_space("player_1").seed(1)
    assert env.action_space("player_0") is env.action_space("player_0")
    assert env.action_space("player_0") is not env.action_space("player_1")
    assert env.action_space("player_0").sample() == env.action_space("player_1").sample()


def test_taking_turns_gives_the_same_play() -> None:
    turns, table = aec_env(3, rules=SMALL), parallel_env(3, rules=SMALL)
    turns.reset(seed=6)
    observations, _ = table.reset(seed=6)
    rng = np.random.default_rng(0)
    while table.agents:
        actions = random_actions(table, rng)
        for agent in table.possible_agents:
            assert turns.agent_selection == agent
            seen = turns.last()[0]
            assert np.array_equal(seen["observation"], observations[agent]["observation"])
            turns.step(actions[agent])
        observations, rewards, *_ = table.step(actions)
        assert turns.rewards == rewards


# --- Illegal actions ------------------------------------------------------------------------------


def test_an_illegal_action_changes_nothing_and_is_named() -> None:
    env = midgame()
    state = env.get_state()
    good = random_actions(env, np.random.default_rng(0))
    for wrong, message in [
        ({**good, "player_1": 15}, "player_1: action 15"),
        ({**good, "player_2": 0.5}, "player_2: expected 1 whole number"),
        ({**good, "player_3": 0}, "no agent 'player_3'; there are player_0"),
        ({"player_1": good["player_1"]}, "no action for player_0, player_2: agents without"),
        ({}, "no action for player_0"),
    ]:
        with pytest.raises(IllegalActionError, match=message):
            env.step(wrong)
        assert env.get_state() == state
        assert env.agents == env.possible_agents
    env.step(good)


@pytest.mark.parametrize("wrong", [15, -1, WAIT, None, 0.5, "K"], ids=repr)
def test_a_seat_that_acts_illegally_in_its_turn_may_act_again(wrong: Any) -> None:
    turns, twin = aec_env(3, rules=SMALL), aec_env(3, rules=SMALL)
    for env in (turns, twin):
        env.reset(seed=6)
    for agent in turns.agent_iter(max_iter=60):
        observation, _, terminated, truncated, _ = turns.last()
        action = None
        if not (terminated or truncated):
            mask = observation["action_mask"]
            if wrong != WAIT or not mask[WAIT]:
                with pytest.raises(IllegalActionError, match=f"^{agent}: "):
                    turns.step(wrong)
            assert turns.agent_selection == agent
            action = int(mask.argmax())
        turns.step(action)
        twin.step(action)
        assert turns.rewards == twin.rewards
        assert np.array_equal(turns.unwrapped.state(), twin.unwrapped.state())


def test_lose_counts_in_turn_too_when_all_have_answered() -> None:
    turns = aec_env(2, illegal_action="lose")
    turns.reset(seed=0)
    turns.step(15)
    turns.step(int(turns.last()[0]["action_mask"].argmax()))
    assert turns.rewards == {"player_0": -1.0, "player_1": 1.0}


def test_all_that_offend_at_once_are_paid_nothing() -> None:
    env = parallel_env(3, illegal_action="lose")
    env.reset(seed=0)
    _, rewards, *_, infos = env.step(dict.fromkeys(env.agents, -1))
    assert set(rewards.values()) == {0.0}
    assert {info["outcome"] for info in infos.values()} == {"illegal_action"}


@pytest.mark.parametrize("actions", [None, 3, [1, 2], "AA"], ids=repr)
def test_actions_are_a_mapping(actions: Any) -> None:
    env = parallel_env()
    env.reset(seed=0)
    with pytest.raises(IllegalActionError, match="mapping"):
        env.step(actions)


def test_lose_makes_the_offender_lose() -> None:
    env = parallel_env(4, illegal_action="lose")
    env.reset(seed=0)
    actions = random_actions(env, np.random.default_rng(0))
    _, rewards, terminations, truncations, infos = env.step({**actions, "player_2": -1})
    assert rewards["player_2"] == -1 / 3
    assert sum(rewards.values()) == pytest.approx(0.0)
    assert infos["player_2"]["outcome"] == "illegal_action"
    assert infos["player_0"]["outcome"] == "shared"
    assert all(terminations.values())
    assert not any(truncations.values())


@pytest.mark.parametrize("illegal_action", ["raise", "lose"])
def test_after_the_end_and_before_the_start_a_step_raises(illegal_action: str) -> None:
    env = parallel_env(rules=SMALL, illegal_action=illegal_action)
    for _ in range(2):
        with pytest.raises(IllegalActionError, match="reset first"):
            env.step({"player_0": 0, "player_1": 0})
        env.reset(seed=0)
        finish(env)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_players": 1}, "num_players must be 2, 3 or 4, got 1"),
        ({"rules": 3}, "rules must be a Rules or a mapping"),
        ({"render_mode": "pixels"}, "one of ansi, rgb_array, human, got 'pixels'"),
        ({"illegal_action": "win"}, "illegal_action must be one of raise, lose"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parallel_env(**arguments)


def test_bad_seats_and_seeds_are_named() -> None:
    env = midgame()
    state = env.get_state()
    for call in (lambda: env.zones(3), lambda: env.redeal(-1, 0), lambda: env.redeal(3, 0)):
        with pytest.raises(ValueError, match="seat must be a whole number 0-2"):
            call()
    for call in (lambda: env.reset(seed=-1), lambda: env.fork(-1), lambda: env.redeal(0, -1)):
        with pytest.raises(ValueError, match="seed must be a non-negative integer, got -1"):
            call()
    with pytest.raises(ValueError, match="no agent 'player_3'"):
        env.observe("player_3")
    assert env.get_state() == state


# --- States, forks and redeals --------------------------------------------------------------------


def same(first: list[Any], second: list[Any]) -> bool:
    """Whether two plays came out the same."""
    return pickle.dumps(first) == pickle.dumps(second)


def test_set_state_goes_back() -> None:
    env = midgame()
    state = env.get_state()
    first = finish(env)
    ended = env.get_state()
    env.set_state(state)
    assert env.agents == env.possible_agents
    assert same(first, finish(env))
    other = parallel_env(3)
    other.set_state(state)
    assert same(first, finish(other))
    other.set_state(ended)
    assert other.agents == []
    with pytest.raises(ValueError, match="get_state"):
        env.set_state(None)  # type: ignore[arg-type]


def test_forks_leave_the_game_alone() -> None:
    env, twin = midgame(), midgame()
    state = env.get_state()
    plays = set()
    for seed in range(5):
        fork = env.fork(seed)
        assert fork.table() == env.table()
        assert fork.agents == env.agents
        plays.add(pickle.dumps(finish(fork)[-1]))
        assert same(finish(env.fork(seed)), finish(env.fork(seed)))
    assert len(plays) > 2
    assert env.get_state() == state
    assert same(finish(env), finish(twin))


def test_a_forks_seed_is_never_the_games_own() -> None:
    env = parallel_env()
    env.reset(seed=12)
    fork, redealt = env.fork(12), env.redeal(0, 12)
    own = env.get_state()
    for twin in (fork, redealt):
        assert twin.get_state()["streams"]["key"] != own["streams"]["key"]
    assert not same(finish(fork), finish(env))


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("steps", [0, 5, 7, 8])
def test_redeals_agree_with_what_the_seat_may_know(num_players: int, steps: int) -> None:
    env, twin = midgame(num_players, steps), midgame(num_players, steps)
    state = env.get_state()
    for seat in range(num_players):
        agent = f"player_{seat}"
        tables = set()
        for seed in range(6):
            redealt = env.redeal(seat, seed)
            assert redealt.zones(seat) == env.zones(seat)
            for key, array in redealt.observe(agent).items():
                assert np.array_equal(array, env.observe(agent)[key])
            assert redealt.table() == env.redeal(seat, seed).table()
            tables.add(str(redealt.table()))
        assert len(tables) == 6
        finish(redealt)
    assert env.get_state() == state
    assert same(finish(env), finish(twin))


def test_a_fork_keeps_its_rules_and_what_illegal_actions_do() -> None:
    env = parallel_env(2, rules=SMALL, illegal_action="lose", render_mode="ansi")
    env.reset(seed=0)
    for twin in (env.fork(1), env.redeal(0, 1)):
        assert twin.rules == env.rules
        assert twin.render_mode == "ansi"
        twin.step({"player_0": WAIT, "player_1": WAIT})
        assert twin.phase == "over"
    assert env.phase == "skirmish"


# --- Rendering ------------------------------------------------------------------------------------


def test_ansi_shows_everything() -> None:
    env = parallel_env(render_mode="ansi")
    env.reset(seed=0)
    text = str(env.render())
    hands = env.table()["hand"]
    for card in (*hands[0], *hands[1]):
        assert (card if card == "*" else card[0]) in text
    assert sum(text.count(suit) for suit in "♣♦♥♠") == 52
    assert text.count("*") == 2
    assert "Burned" not in text


def test_render_without_a_mode_warns() -> None:
    with pytest.warns(UserWarning, match="render"):
        assert parallel_env().render() is None
