"""Tests of the native ``VecEnv``: what Stable-Baselines3 and sb3-contrib rely on.

The reference is ``DummyVecEnv`` of monitored single environments for the same seeds and actions.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from conftest import SHORT, new_env
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from deck_of_spies_env import ENV_IDS, IllegalActionError, Rules
from deck_of_spies_env.integrations.sb3 import DeckOfSpiesVecEnv, make_vec_env
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv

NUM_ENVS = 4

ARGUMENTS: list[dict[str, Any]] = [
    {"objective": {"win": 1.0, "keys": 0.5}},
    {"observation": "table", "shaping": "key_spies"},
    {"rules": {"hand_size": 4, "eager_reshuffle": True}, "objective": "keys"},
    {"rules": Rules(hand_size=7, idle_ace=False), "illegal_action": "lose"},
]


def dummy(
    num_envs: int = NUM_ENVS, seed: int | None = 0, env_id: str = "DeckOfSpies-v0", **arguments: Any
) -> DummyVecEnv:
    """Make the reference."""
    envs = DummyVecEnv([lambda: Monitor(gym.make(env_id, **arguments))] * num_envs)
    if seed is not None:
        envs.seed(seed)
    return envs


def choose(rng: np.random.Generator, masks: Any) -> NDArray[np.int64]:
    """Return a random legal action for each row."""
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


def assert_same_final_info(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Check that two infos of ended games are the same, but for the time of day."""
    assert set(first) == set(second)
    for key, value in first.items():
        if isinstance(value, np.ndarray):
            assert value.dtype == second[key].dtype, key
            assert np.array_equal(value, second[key]), key
        elif key == "episode":
            assert set(value) == set(second[key]) == {"r", "l", "t"}
            assert value["r"] == second[key]["r"]
            assert value["l"] == second[key]["l"]
            assert isinstance(value["t"], float)
        else:
            assert type(value) is type(second[key]), key
            assert value == second[key], key


def play_both(
    envs: DeckOfSpiesVecEnv | VecMonitor, reference: DummyVecEnv, steps: int, seed: int = 0
) -> list[dict[str, Any]]:
    """Play both alike, check everything, and return the infos of ended games."""
    rng = np.random.default_rng(seed)
    observations, expected = envs.reset(), reference.reset()
    assert np.array_equal(observations, expected)
    endings: list[dict[str, Any]] = []
    for _ in range(steps):
        masks, expected_masks = get_action_masks(envs), get_action_masks(reference)
        assert masks.dtype == expected_masks.dtype
        assert np.array_equal(masks, expected_masks)
        actions = choose(rng, masks)
        observations, rewards, dones, infos = envs.step(actions)
        expected, expected_rewards, expected_dones, expected_infos = reference.step(actions)
        for one, other in (
            (observations, expected),
            (rewards, expected_rewards),
            (dones, expected_dones),
        ):
            assert isinstance(one, np.ndarray)
            assert isinstance(other, np.ndarray)
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)
        assert isinstance(infos, list)
        assert len(infos) == envs.num_envs
        for info, expected_info, done in zip(infos, expected_infos, dones, strict=True):
            if done:
                assert_same_final_info(info, expected_info)
                endings.append(info)
            else:
                assert "episode" not in info
                assert "terminal_observation" not in info
                assert not info.get("TimeLimit.truncated", False)
    return endings


# --- The same as DummyVecEnv ---------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_it_equals_dummy_vec_env(arguments: dict[str, Any]) -> None:
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS, 5, **arguments)
    reference = dummy(seed=5, **arguments)
    assert envs.observation_space == reference.observation_space
    assert envs.action_space == reference.action_space
    assert envs.num_envs == reference.num_envs
    assert len(play_both(envs, reference, 150)) >= 6


def test_it_equals_dummy_vec_env_through_many_episodes() -> None:
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS, 1, start=SHORT, objective="keys")
    endings = play_both(envs, dummy(seed=1, start=SHORT, objective="keys"), 200)
    assert len(endings) > 60
    assert len({info["episode"]["r"] for info in endings}) > 3
    assert len({info["episode"]["l"] for info in endings}) > 2
    assert {info["is_success"] for info in endings} == {True, False}


def test_resets_go_on_with_the_streams_until_seeded_anew() -> None:
    envs, reference = make_vec_env("DeckOfSpies-v0", NUM_ENVS, 1), dummy(seed=1)
    for seed in (None, None, 9, None):
        if seed is not None:
            assert envs.seed(seed) == reference.seed(seed)
        play_both(envs, reference, 20)


def test_options_are_for_the_next_reset() -> None:
    envs, reference = make_vec_env("DeckOfSpies-v0", NUM_ENVS, 1), dummy(seed=1)
    for _ in range(2):
        options = {"zones": SHORT, "unknown": 1}
        envs.set_options(options)
        reference.set_options(options)
        play_both(envs, reference, 3)
        play_both(envs, reference, 3)


def test_options_that_differ_are_refused() -> None:
    envs = make_vec_env("DeckOfSpies-v0", 2, 1)
    envs.set_options([{"zones": SHORT}, {}])
    with pytest.raises(ValueError, match="must be the same"):
        envs.reset()


def test_illegal_actions_that_lose() -> None:
    arguments = {"illegal_action": "lose", "shaping": "key_spies"}
    envs = make_vec_env("DeckOfSpies-v0", 2, 3, **arguments)
    reference = dummy(2, seed=3, **arguments)
    envs.reset()
    reference.reset()
    actions = np.array([77, np.flatnonzero(get_action_masks(envs)[1])[0]])
    observations, rewards, dones, infos = envs.step(actions)
    expected, expected_rewards, expected_dones, expected_infos = reference.step(actions)
    assert dones.tolist() == expected_dones.tolist() == [True, False]
    assert np.array_equal(observations, expected)
    assert np.array_equal(rewards, expected_rewards)
    assert_same_final_info(infos[0], expected_infos[0])
    assert infos[0]["outcome"] == "illegal_action"


def test_an_illegal_action_raises_and_no_game_moves() -> None:
    envs = make_vec_env("DeckOfSpies-v0", 3, 3)
    envs.reset()
    state = envs.get_state()
    with pytest.raises(IllegalActionError, match=r"envs 1, 2; env 1: action 77"):
        envs.step(np.array([np.flatnonzero(envs.action_masks()[0])[0], 77, -1]))
    assert np.array_equal(envs.get_state(), state)


def test_arrays_and_infos_handed_out_stay_as_they_are() -> None:
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS, 1, start=SHORT)
    handed_out = [envs.reset()]
    kept = [handed_out[0].copy()]
    rng = np.random.default_rng(0)
    infos_seen: list[tuple[Any, Any]] = []
    for _ in range(30):
        observations, rewards, dones, infos = envs.step(choose(rng, envs.action_masks()))
        for array in (observations, rewards, dones):
            handed_out.append(array)  # type: ignore[arg-type]
            kept.append(array.copy())  # type: ignore[union-attr]
        for info, done in zip(infos, dones, strict=True):
            if done:
                infos_seen.append((info, {**info}))
            else:
                assert "outcome" not in info  # nothing is left over from an earlier game
    for array, before in zip(handed_out, kept, strict=True):
        assert np.array_equal(array, before)
    for info, before in infos_seen:
        assert set(info) == set(before)
        assert all(info[key] is before[key] for key in info)


def test_what_is_written_into_an_info_is_gone_at_the_next_step() -> None:
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS, 1)
    envs.reset()
    rng = np.random.default_rng(0)
    for _ in range(5):
        infos = envs.step(choose(rng, envs.action_masks()))[3]
        for info in infos:
            assert "note" not in info
            info["note"] = "written by a wrapper"


@pytest.mark.parametrize("num_envs", [1, 7])
def test_any_number_of_games(num_envs: int) -> None:
    play_both(make_vec_env("DeckOfSpies-v0", num_envs, 2), dummy(num_envs, seed=2), 30)


# --- Making --------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_every_id_has_its_objective(env_id: str) -> None:
    envs = make_vec_env(env_id, 2, 0, start=SHORT)
    play_both(envs, dummy(2, env_id=env_id, start=SHORT), 40)


def test_arguments_override_those_of_the_id() -> None:
    envs = make_vec_env("DeckOfSpiesKeys-v0", 2, 0, start=SHORT, objective="win")
    rewards = {info["episode"]["r"] for info in play_both(envs, dummy(2, start=SHORT), 60)}
    assert rewards == {0.0, 1.0}


def test_one_unseeded_game_by_default() -> None:
    envs = make_vec_env("DeckOfSpies-v0")
    assert envs.num_envs == 1
    observations = [make_vec_env("DeckOfSpies-v0", 1).reset() for _ in range(6)]
    assert len(np.unique(observations, axis=0)) > 1


def test_seeds_count_up() -> None:
    observations = make_vec_env("DeckOfSpies-v0", 3, 20).reset()
    for index in range(3):
        assert np.array_equal(observations[index], new_env().reset(seed=20 + index)[0])


@pytest.mark.parametrize(
    ("env_id", "error", "message"),
    [
        ("CartPole-v1", ValueError, "CartPole-v1 is not an environment of deck_of_spies_env"),
        ("DeckOfSpies-v9", gym.error.Error, "DeckOfSpies"),
        ("NoSuchGame-v0", gym.error.Error, "NoSuchGame"),
    ],
)
def test_bad_ids(env_id: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_vec_env(env_id, 2, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "at least 1, got 0"),
        ({"objective": "points"}, "unknown objective 'points'"),
        ({"rules": {"hand_size": 9}}, "hand_size"),
        ({"start": {"spy": ["5c"]}}, "missing"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_vec_env("DeckOfSpies-v0", **arguments)


# --- Attributes and methods ----------------------------------------------------------------------


def advanced(seed: int = 4, **arguments: Any) -> tuple[DeckOfSpiesVecEnv, DummyVecEnv]:
    """Return both environments a few steps into their games, which differ from each other."""
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS, seed, **arguments)
    reference = dummy(seed=seed, **arguments)
    play_both(envs, reference, 6)
    return envs, reference


def test_masks_by_every_way() -> None:
    envs, reference = advanced()
    assert envs.has_attr("action_masks")
    assert is_masking_supported(envs)
    assert not envs.has_attr("no_such_thing")
    expected = np.stack(reference.env_method("action_masks"))
    assert np.array_equal(envs.action_masks(), expected)
    assert envs.action_masks().dtype == np.bool_
    assert np.array_equal(get_action_masks(envs), expected)
    for indices in (None, 2, [1, 3], [0]):
        masks = envs.env_method("action_masks", indices=indices)
        other = reference.env_method("action_masks", indices=indices)
        assert isinstance(masks, list)
        assert len(masks) == len(other)
        assert all(np.array_equal(one, two) for one, two in zip(masks, other, strict=True))


def test_methods_got_as_attributes_belong_to_their_games() -> None:
    envs, reference = advanced()
    for name in ("action_masks", "zones"):
        got = [method() for method in envs.get_attr(name)]
        expected = [method() for method in reference.get_attr(name)]
        for one, other in zip(got, expected, strict=True):
            assert np.array_equal(one, other) if name == "action_masks" else one == other


def test_masks_by_env_method_stay_as_they_are() -> None:
    envs, _ = advanced()
    masks = envs.env_method("action_masks")
    kept = [mask.copy() for mask in masks]
    envs.step(choose(np.random.default_rng(0), masks))
    assert all(np.array_equal(one, two) for one, two in zip(masks, kept, strict=True))


def test_attributes_are_those_of_each_game() -> None:
    envs, reference = advanced(rules={"hand_size": 6})
    assert envs.get_attr("phase") == reference.get_attr("phase")
    assert envs.get_attr("phase", [1]) == reference.get_attr("phase", [1])
    assert envs.get_attr("rules") == [Rules(hand_size=6)] * NUM_ENVS
    assert envs.get_attr("render_mode") == [None] * NUM_ENVS
    with pytest.raises(AttributeError):
        envs.get_attr("no_such_thing")


def test_methods_are_called_on_each_game() -> None:
    envs, reference = advanced()
    for indices in (None, 1, [3, 0]):
        zones = envs.env_method("zones", indices=indices)
        assert zones == reference.env_method("zones", indices=indices)
    action = int(np.flatnonzero(envs.action_masks()[2])[0])
    assert envs.env_method("decode", action, indices=2) == reference.env_method(
        "decode", action, indices=2
    )
    with pytest.raises(AttributeError):
        envs.env_method("no_such_thing")


def test_questions_leave_the_games_alone() -> None:
    envs, reference = advanced()
    state = envs.get_state()
    envs.env_method("fork", 3)
    envs.get_attr("phase")
    envs.env_method("zones")
    envs.env_method("afterstate", int(np.flatnonzero(envs.action_masks()[0])[0]), indices=0)
    assert np.array_equal(envs.get_state(), state)
    actions = choose(np.random.default_rng(0), envs.action_masks())
    assert np.array_equal(envs.step(actions)[0], reference.step(actions)[0])


def test_forks_are_independent() -> None:
    envs, _ = advanced()
    forks = envs.env_method("fork", 3)
    assert all(isinstance(fork, DeckOfSpiesEnv) for fork in forks)
    assert [fork.zones() for fork in forks] == envs.env_method("zones")
    for fork in forks:
        fork.step(int(np.flatnonzero(fork.action_masks())[0]))
    assert len({id(fork) for fork in forks}) == NUM_ENVS


def test_attributes_cannot_be_set() -> None:
    with pytest.raises(AttributeError, match="can't set 'rules'"):
        make_vec_env("DeckOfSpies-v0", 2, 0).set_attr("rules", None)


def test_no_game_is_wrapped() -> None:
    envs = make_vec_env("DeckOfSpies-v0", 3, 0)
    assert envs.env_is_wrapped(Monitor) == [False] * 3
    assert envs.env_is_wrapped(Monitor, indices=[1]) == [False]


# --- States --------------------------------------------------------------------------------------


def test_set_state_goes_back() -> None:
    envs, _ = advanced(start=SHORT)
    state = envs.get_state()
    before = envs.games.observations.copy()

    def go_on(vec_env: DeckOfSpiesVecEnv) -> list[Any]:
        rng = np.random.default_rng(7)
        return [vec_env.step(choose(rng, vec_env.action_masks()))[:3] for _ in range(20)] + [
            vec_env.reset()
        ]

    first = go_on(envs)
    assert np.array_equal(envs.set_state(state), before)
    assert np.array_equal(envs.get_state(), state)
    other = make_vec_env("DeckOfSpies-v0", NUM_ENVS, start=SHORT)
    other.set_state(state)  # without any reset
    for again in (go_on(envs), go_on(other)):
        assert len(first) == len(again)
        for one, two in zip(first, again, strict=True):
            assert all(np.array_equal(x, y) for x, y in zip(one, two, strict=True))


def test_one_game_can_be_put_back_by_env_method() -> None:
    envs, _ = advanced()
    states = envs.env_method("get_state")
    assert np.array_equal(np.stack(states), envs.get_state())
    envs.step(choose(np.random.default_rng(0), envs.action_masks()))
    later = envs.get_state()
    envs.env_method("set_state", states[2], indices=2)
    assert envs.get_state()[2] == states[2]
    assert np.array_equal(envs.get_state()[[0, 1, 3]], later[[0, 1, 3]])
    assert np.array_equal(envs.action_masks(), np.stack(envs.env_method("action_masks")))


@pytest.mark.parametrize("state", [None, np.zeros(NUM_ENVS)], ids=str)
def test_a_bad_state_is_a_value_error(state: Any) -> None:
    envs, _ = advanced()
    before = envs.get_state()
    with pytest.raises(ValueError, match="get_state"):
        envs.set_state(state)
    with pytest.raises(ValueError, match="get_state"):
        envs.set_state(before[:2])
    assert np.array_equal(envs.get_state(), before)


# --- Wrappers, evaluation, training --------------------------------------------------------------


def test_vec_monitor_writes_the_same_episodes(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"start": SHORT, "objective": "keys"}
    native = make_vec_env("DeckOfSpies-v0", NUM_ENVS, 1, **arguments)
    log = tmp_path / "native.monitor.csv"
    envs = VecMonitor(native, str(log), info_keywords=("outcome", "key_spies", "turns"))
    singles = DummyVecEnv([lambda: gym.make("DeckOfSpies-v0", **arguments)] * NUM_ENVS)
    singles.seed(1)
    reference = VecMonitor(singles, info_keywords=("outcome", "key_spies", "turns"))
    rng = np.random.default_rng(0)
    observations, expected = envs.reset(), reference.reset()
    episodes = 0
    for _ in range(40):
        assert np.array_equal(observations, expected)
        actions = choose(rng, get_action_masks(envs))
        observations, _, dones, infos = envs.step(actions)
        expected, _, _, expected_infos = reference.step(actions)
        for index in np.flatnonzero(dones):
            episodes += 1
            one, two = infos[index]["episode"], expected_infos[index]["episode"]
            assert {k: v for k, v in one.items() if k != "t"} == {
                k: v for k, v in two.items() if k != "t"
            }
            assert one["outcome"] in ("win", "loss", "no_double_agent")
    envs.close()
    assert episodes > 10
    assert len(log.read_text().splitlines()) == episodes + 2


@pytest.fixture(scope="module")
def model() -> MaskablePPO:
    """Train a tiny agent for a few hundred steps."""
    envs = VecMonitor(make_vec_env("DeckOfSpies-v0", NUM_ENVS, 1, objective="keys"))
    agent = MaskablePPO(
        "MlpPolicy",
        envs,
        n_steps=64,
        batch_size=64,
        n_epochs=1,
        seed=0,
        device="cpu",
        policy_kwargs={"net_arch": [16]},
    )
    agent.learn(512)
    return agent


def test_maskable_ppo_learns(model: MaskablePPO) -> None:
    assert model.num_timesteps == 512
    assert model.ep_info_buffer is not None
    assert len(model.ep_info_buffer) > 0
    assert all(0.0 <= episode["r"] <= 1.0 for episode in model.ep_info_buffer)
    assert all(1 <= episode["l"] <= 72 for episode in model.ep_info_buffer)
    assert model.ep_success_buffer is not None
    assert len(model.ep_success_buffer) == len(model.ep_info_buffer)


def test_evaluate_policy_gives_the_same_as_on_dummy_vec_env(model: MaskablePPO) -> None:
    arguments: dict[str, Any] = {"objective": "keys"}
    native = VecMonitor(make_vec_env("DeckOfSpies-v0", NUM_ENVS, 50, **arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rewards = evaluate_policy(model, native, n_eval_episodes=10, return_episode_rewards=True)
    expected = evaluate_policy(
        model, dummy(seed=50, **arguments), n_eval_episodes=10, return_episode_rewards=True
    )
    assert rewards[0] == pytest.approx(expected[0], abs=1e-6)  # Monitor rounds
    assert rewards[1] == expected[1]
    plain = evaluate_policy(
        model,
        make_vec_env("DeckOfSpies-v0", NUM_ENVS, 50, **arguments),
        n_eval_episodes=10,
        return_episode_rewards=True,
        warn=False,
    )
    assert plain[0] == pytest.approx(rewards[0])
    assert plain[1] == rewards[1]


def test_maskable_eval_callback(model: MaskablePPO, tmp_path: Path) -> None:
    evaluation = VecMonitor(make_vec_env("DeckOfSpies-v0", 2, 100, objective="keys"))
    callback = MaskableEvalCallback(
        evaluation,
        n_eval_episodes=4,
        eval_freq=64,
        log_path=str(tmp_path),
        best_model_save_path=str(tmp_path),
        verbose=0,
        warn=False,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Training and eval env")
        model.learn(256, callback=callback)
    results = np.load(tmp_path / "evaluations.npz")
    assert results["results"].shape[1] == 4
    assert results["successes"].shape == results["results"].shape  # from info["is_success"]
    assert (tmp_path / "best_model.zip").exists()
    loaded = MaskablePPO.load(tmp_path / "best_model.zip", device="cpu")
    assert loaded.action_space == evaluation.action_space


def test_predictions_are_legal(model: MaskablePPO) -> None:
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS, 3)
    observations = envs.reset()
    for _ in range(50):
        masks = get_action_masks(envs)
        actions, _ = model.predict(observations, action_masks=masks)
        assert masks[np.arange(NUM_ENVS), actions].all()
        observations = envs.step(actions)[0]  # type: ignore[assignment]


def test_images_and_close() -> None:
    envs = make_vec_env("DeckOfSpies-v0", 3, 0)
    assert list(envs.get_images()) == [None] * 3
    envs.close()
    envs.close()
