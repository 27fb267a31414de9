"""Tests of the native vector environment: it replays single ones, number for number.

The reference is ``SyncVectorEnv`` of single environments for the same seeds and actions, compared
in everything that a step gives: arrays, dtypes and the complete infos.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from conftest import SHORT, completed, native, new_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from deck_of_spies_env import ENV_IDS, IllegalActionError
from deck_of_spies_env.solitaire.vector_env import DeckOfSpiesVectorEnv

MODES = list(AutoresetMode)
NUM_ENVS = 4

ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"observation": "table", "objective": {"win": 1.0, "keys": 0.5}},
    {"rules": {"hand_size": 3, "eager_reshuffle": True}, "objective": "keys"},
    {"rules": {"hand_size": 7, "idle_ace": False, "key_spies_to_win": 3}, "shaping": "key_spies"},
    {"rules": {"hand_size": 4}, "observation": "table", "illegal_action": "lose"},
]

Result = tuple[Any, Any, Any, Any, dict[str, Any]]


def sync(
    num_envs: int = NUM_ENVS, mode: AutoresetMode = AutoresetMode.NEXT_STEP, **arguments: Any
) -> SyncVectorEnv:
    """Make the reference."""
    return SyncVectorEnv(
        [lambda: gym.make("DeckOfSpies-v0", **arguments)] * num_envs, autoreset_mode=mode
    )


def assert_equal(first: Any, second: Any, where: str = "") -> None:
    """Check that two values are the same through and through, types and dtypes included."""
    assert type(first) is type(second), where
    if isinstance(first, dict):
        assert set(first) == set(second), where
        for key in first:
            assert_equal(first[key], second[key], f"{where}[{key!r}]")
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, where
        assert first.shape == second.shape, where
        if first.dtype == object:
            for index, (one, other) in enumerate(zip(first, second, strict=True)):
                assert_equal(one, other, f"{where}[{index}]")
        else:
            assert np.array_equal(first, second), where
    else:
        assert first == second, where


def assert_same(first: Sequence[Any], second: Sequence[Any], where: str = "") -> None:
    """Check that two results of reset or step are the same."""
    names = ("observations", "infos")
    if len(first) == 5:
        names = ("observations", "rewards", "terminations", "truncations", "infos")
    assert len(first) == len(second) == len(names)
    for name, one, other in zip(names, first, second, strict=True):
        assert_equal(one, other, f"{where}: {name}")


def choose(
    rng: np.random.Generator, masks: NDArray[np.bool_], blindly: float = 0.0
) -> NDArray[np.int64]:
    """Return a random legal action for each row, 0 where none is; sometimes any action at all."""
    actions = np.zeros(len(masks), dtype=np.int64)
    for i, mask in enumerate(masks):
        if rng.random() < blindly:
            actions[i] = rng.integers(len(mask))
        elif mask.any():
            actions[i] = rng.choice(np.flatnonzero(mask))
    return actions


def play_both(
    envs: DeckOfSpiesVectorEnv,
    reference: Any,
    steps: int,
    seed: Any,
    options: dict[str, Any] | None = None,
    blindly: float = 0.0,
) -> list[Result]:
    """Play both alike, resetting as the mode wants it, and check each result."""
    rng = np.random.default_rng(0)
    mode = envs.metadata["autoreset_mode"]
    results: list[Result] = []
    assert_same(
        envs.reset(seed=seed, options=options),
        reference.reset(seed=seed, options=None if options is None else dict(options)),
        "reset",
    )
    for step in range(steps):
        actions = choose(rng, envs.action_masks(), blindly)
        result = envs.step(actions)
        assert_same(result, reference.step(actions), f"step {step}")
        results.append(result)
        ended = result[2] | result[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            assert_same(
                envs.reset(options={"reset_mask": ended}),
                reference.reset(options={"reset_mask": ended.copy()}),
                f"reset after step {step}",
            )
    return results


# --- Replaying SyncVectorEnv ----------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_it_replays_sync_vector_env(mode: AutoresetMode, arguments: dict[str, Any]) -> None:
    results = play_both(native(mode=mode, **arguments), sync(mode=mode, **arguments), 150, seed=7)
    assert sum(result[2].sum() for result in results) >= 5


@pytest.mark.parametrize("mode", MODES)
def test_it_replays_sync_vector_env_through_many_resets(mode: AutoresetMode) -> None:
    arguments: dict[str, Any] = {"start": SHORT, "objective": "keys", "observation": "table"}
    results = play_both(native(mode=mode, **arguments), sync(mode=mode, **arguments), 200, seed=3)
    assert sum(result[2].sum() for result in results) > 60
    together = [result[2].sum() for result in results]
    assert max(together) > 1  # several at once, and one alone
    assert 1 in together
    assert len({result[1].max() for result in results}) > 2
    keys = set().union(*(result[4] for result in results))
    ending = {"outcome", "is_success", "key_spies", "turns"}
    if mode == AutoresetMode.SAME_STEP:
        assert keys == {
            f"{_}{key}" for _ in ("", "_") for key in ("action_mask", "final_obs", "final_info")
        }
        final = next(result[4]["final_info"] for result in results if "final_info" in result[4])
        assert ending < set(final)
    else:
        assert keys == {f"{_}{key}" for _ in ("", "_") for key in ("action_mask", *ending)}


@pytest.mark.parametrize("mode", MODES)
def test_it_replays_illegal_actions_that_lose(mode: AutoresetMode) -> None:
    arguments: dict[str, Any] = {"illegal_action": "lose", "shaping": "key_spies"}
    results = play_both(
        native(mode=mode, **arguments),
        sync(mode=mode, **arguments),
        100,
        seed=5,
        blindly=0.1,
    )
    outcomes = [
        outcome
        for result in results
        for info in [result[4].get("final_info", result[4])]
        for outcome in info.get("outcome", ())
        if outcome is not None
    ]
    assert outcomes.count("illegal_action") > 10


@pytest.mark.parametrize("mode", MODES)
def test_seeds_may_be_a_list_with_none(mode: AutoresetMode) -> None:
    envs, reference = native(mode=mode), sync(mode=mode)
    play_both(envs, reference, 20, seed=[5, 5, 2**40, 0])
    # None goes on with the streams there are, also in the middle of an episode.
    play_both(envs, reference, 100, seed=[None, 9, None, 4])
    play_both(envs, reference, 20, seed=None)
    play_both(envs, reference, 20, seed=1)


def test_an_int_seed_counts_up() -> None:
    envs, others = native(), native()
    assert_same(envs.reset(seed=10), others.reset(seed=[10, 11, 12, 13]))
    single = new_env()
    for index in range(NUM_ENVS):
        assert np.array_equal(envs.reset(seed=10)[0][index], single.reset(seed=10 + index)[0])


def test_equal_seeds_give_equal_games() -> None:
    observations, _ = native().reset(seed=[3, 3, 4, 3])
    assert np.array_equal(observations[0], observations[1])
    assert np.array_equal(observations[0], observations[3])
    assert not np.array_equal(observations[0], observations[2])


def test_without_a_seed_games_differ() -> None:
    observations, _ = native(8).reset()
    assert len(np.unique(observations, axis=0)) > 1
    again, _ = native(8).reset()
    assert not np.array_equal(observations, again)


@pytest.mark.parametrize("seed", [[1, 2, 3], [], [1, 2, 3, 4, 5]])
def test_a_list_of_seeds_must_fit(seed: list[int | None]) -> None:
    envs = native()
    envs.reset(seed=0)
    state = envs.get_state()
    with pytest.raises(ValueError, match=f"4.*{len(seed)}"):
        envs.reset(seed=seed)
    assert np.array_equal(envs.get_state(), state)


def test_a_negative_seed_is_refused() -> None:
    envs = native()
    with pytest.raises(ValueError, match="non-negative"):
        envs.reset(seed=[0, 1, -2, 3])


@pytest.mark.parametrize("num_envs", [1, 2, 9])
def test_any_number_of_envs(num_envs: int) -> None:
    play_both(native(num_envs), sync(num_envs), 40, seed=1)


def test_reset_with_zones_goes_to_all_games() -> None:
    options = {"zones": SHORT, "phase": "act", "unknown": 1}
    for mode in MODES:
        play_both(native(mode=mode), sync(mode=mode), 30, seed=2, options=options)


@pytest.mark.parametrize("mode", MODES)
def test_partial_resets(mode: AutoresetMode) -> None:
    envs, reference = native(mode=mode), sync(mode=mode)
    play_both(envs, reference, 9, seed=6)
    for mask, seed, options in [
        ([True, False, False, True], None, {}),
        ([False, True, False, False], 20, {}),
        ([True, True, True, False], [None, 7, 8, 9], {}),
        ([False, False, True, True], None, {"zones": SHORT}),
        ([True, True, True, True], 3, {"zones": SHORT}),
    ]:
        chosen = np.array(mask)
        assert_same(
            envs.reset(seed=seed, options={"reset_mask": chosen, **options}),  # type: ignore[arg-type]
            reference.reset(seed=seed, options={"reset_mask": chosen.copy(), **options}),  # type: ignore[arg-type]
        )
        rng = np.random.default_rng(1)
        for _ in range(3):
            actions = choose(rng, envs.action_masks())
            assert_same(envs.step(actions), reference.step(actions))


def test_a_partial_reset_leaves_other_games_waiting_for_theirs() -> None:
    envs, reference = native(start=SHORT), sync(start=SHORT)
    rng = np.random.default_rng(0)
    assert_same(envs.reset(seed=0), reference.reset(seed=0))
    left_waiting = reset_early = 0
    for _ in range(150):
        actions = choose(rng, envs.action_masks())
        result = envs.step(actions)
        assert_same(result, reference.step(actions))
        chosen = rng.random(NUM_ENVS) < 0.3
        if chosen.any():
            left_waiting += (result[2] & ~chosen).any()
            reset_early += (result[2] & chosen).any()
            assert_same(
                envs.reset(options={"reset_mask": chosen}),
                reference.reset(options={"reset_mask": chosen.copy()}),
            )
    assert left_waiting > 5
    assert reset_early > 5


def test_a_seed_for_a_game_that_is_not_reset_is_not_used() -> None:
    envs = native(2)
    envs.reset(seed=0)
    untouched = envs.get_state()[1]
    envs.reset(seed=[5, 6], options={"reset_mask": np.array([True, False])})
    assert envs.get_state()[1] == untouched


def test_options_are_not_changed() -> None:
    envs = native(2)
    envs.reset(seed=0)
    options = {"reset_mask": np.array([True, False])}
    envs.reset(options=options)
    assert list(options) == ["reset_mask"]


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True] * 4, TypeError),
        (np.ones(4, dtype=np.int8), TypeError),
        (np.ones(3, dtype=np.bool_), ValueError),
        (np.zeros(4, dtype=np.bool_), ValueError),
    ],
    ids=repr,
)
def test_a_bad_reset_mask_is_refused_as_sync_does(mask: Any, error: type[Exception]) -> None:
    envs, reference = native(), sync()
    envs.reset(seed=0)
    reference.reset(seed=0)
    state = envs.get_state()
    with pytest.raises(error):
        reference.reset(options={"reset_mask": mask})
    with pytest.raises(error, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})
    assert np.array_equal(envs.get_state(), state)


def test_a_bad_position_changes_nothing() -> None:
    envs = native()
    envs.reset(seed=0)
    state = envs.get_state()
    with pytest.raises(ValueError, match="missing"):
        envs.reset(seed=1, options={"zones": {"spy": ["5c"]}})
    assert np.array_equal(envs.get_state(), state)


# --- Episodes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_episode_k_after_autoresets_is_the_single_envs_episode_k(mode: AutoresetMode) -> None:
    envs = native(mode=mode)
    observations, _ = envs.reset(seed=30)
    openings: list[list[Any]] = [[row] for row in observations]
    rng = np.random.default_rng(2)
    waiting = np.zeros(NUM_ENVS, dtype=np.bool_)
    while min(len(rows) for rows in openings) < 4:
        observations, _, terminated, _, _ = envs.step(choose(rng, envs.action_masks()))
        fresh = terminated if mode == AutoresetMode.SAME_STEP else waiting
        for index in np.flatnonzero(fresh):
            openings[index].append(observations[index])
        waiting = terminated
    single = new_env()
    for index, rows in enumerate(openings):
        for episode, row in enumerate(rows):
            expected, _ = single.reset(seed=30 + index if episode == 0 else None)
            assert np.array_equal(row, expected)


def ended_game(mode: AutoresetMode) -> tuple[DeckOfSpiesVectorEnv, NDArray[np.bool_]]:
    """Return environments of which some have just ended, and which."""
    envs = native(mode=mode, start=SHORT)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    while True:
        ended = envs.step(choose(rng, envs.action_masks()))[2]
        if ended.any() and not ended.all():
            return envs, ended


@pytest.mark.parametrize("ignored", [0, -1, 10**6])
def test_the_action_at_a_next_step_reset_is_ignored(ignored: int) -> None:
    envs, ended = ended_game(AutoresetMode.NEXT_STEP)
    other, _ = ended_game(AutoresetMode.NEXT_STEP)
    actions = choose(np.random.default_rng(1), envs.action_masks())
    actions[ended] = ignored
    result = envs.step(actions)
    assert not result[2][ended].any()
    assert not result[1][ended].any()
    assert result[4]["action_mask"][ended].any(axis=1).all()
    actions[ended] = 5
    assert_same(result, other.step(actions))


def test_stepping_an_ended_game_raises_when_autoreset_is_disabled() -> None:
    envs, ended = ended_game(AutoresetMode.DISABLED)
    actions = choose(np.random.default_rng(1), envs.action_masks())
    state = envs.get_state()
    listed = ", ".join(map(str, np.flatnonzero(ended)))
    with pytest.raises(IllegalActionError, match=rf"envs {listed};.*over, reset first"):
        envs.step(actions)
    assert np.array_equal(envs.get_state(), state)
    envs.reset(options={"reset_mask": ended})
    envs.step(choose(np.random.default_rng(1), envs.action_masks()))


def test_after_the_end_an_action_raises_even_if_illegal_ones_lose() -> None:
    envs = native(2, AutoresetMode.DISABLED, illegal_action="lose")
    envs.reset(seed=0)
    assert envs.step(np.array([-1, envs.action_masks()[1].argmax()]))[2].tolist() == [True, False]
    state = envs.get_state()
    with pytest.raises(IllegalActionError, match=r"envs 0;.*reset first"):
        envs.step(np.array([0, envs.action_masks()[1].argmax()]))
    assert np.array_equal(envs.get_state(), state)


# --- Illegal actions ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_an_illegal_action_raises_before_any_game_moves(mode: AutoresetMode) -> None:
    envs, other = native(mode=mode), native(mode=mode)
    rng = np.random.default_rng(3)
    envs.reset(seed=1)
    other.reset(seed=1)
    for _ in range(20):
        actions = choose(rng, envs.action_masks())
        masks, state = envs.action_masks(), envs.get_state()
        wrong = actions.copy()
        wrong[[1, 3]] = [78, 77 if not masks[3, 77] else 0]
        why = r"envs 1, 3; env 1: action 78 does not exist"
        with pytest.raises(IllegalActionError, match=why):
            envs.step(wrong)
        assert np.array_equal(envs.get_state(), state)
        assert np.array_equal(envs.action_masks(), masks)
        assert_same(envs.step(actions), other.step(actions))


def test_the_reason_is_that_of_the_first_game() -> None:
    envs = native(3, start=SHORT)
    envs.reset(seed=0)
    with pytest.raises(
        IllegalActionError, match=r"envs 2; env 2: action 0 \(counter 2c\) is illegal"
    ):
        envs.step(np.array([1 << 1, 1 << 1, 0]) + np.array([1, 1, 0]))


def test_an_illegal_action_leaves_games_that_wait_for_their_reset() -> None:
    envs, ended = ended_game(AutoresetMode.NEXT_STEP)
    other, _ = ended_game(AutoresetMode.NEXT_STEP)
    actions = choose(np.random.default_rng(1), envs.action_masks())
    wrong = actions.copy()
    wrong[~ended] = -1
    listed = ", ".join(map(str, np.flatnonzero(~ended)))
    with pytest.raises(IllegalActionError, match=rf"envs {listed};"):
        envs.step(wrong)
    assert_same(envs.step(actions), other.step(actions))


@pytest.mark.parametrize("num_envs", [20, 21, 50])
def test_long_lists_of_games_are_cut(num_envs: int) -> None:
    envs = native(num_envs)
    envs.reset(seed=0)
    more = f" and {num_envs - 20} more" if num_envs > 20 else ""
    with pytest.raises(IllegalActionError, match=rf"18, 19{more}; env 0:"):
        envs.step(np.full(num_envs, -1))


@pytest.mark.parametrize(
    "actions", [[0, 0], [0] * 5, [0.0] * 4, 0, [[0, 0, 0, 0, 0]], ["a"] * 4], ids=str
)
def test_what_is_no_action_for_each_game_is_refused(actions: Any) -> None:
    envs = native()
    envs.reset(seed=0)
    state = envs.get_state()
    with pytest.raises(IllegalActionError, match="expected 4 whole number"):
        envs.step(np.asarray(actions))
    assert np.array_equal(envs.get_state(), state)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint64])
def test_actions_of_any_integer_type(dtype: type[np.generic]) -> None:
    envs, other = native(), native()
    envs.reset(seed=0)
    other.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        actions = choose(rng, envs.action_masks())
        strided = np.repeat(actions.astype(dtype), 2)[::2]
        assert_same(envs.step(strided), other.step(actions))


def test_a_list_of_actions_will_do() -> None:
    envs, other = native(), native()
    envs.reset(seed=0)
    other.reset(seed=0)
    actions = choose(np.random.default_rng(0), envs.action_masks())
    assert_same(envs.step(actions.tolist()), other.step(actions))  # type: ignore[arg-type]


def test_stepping_before_the_first_reset_raises() -> None:
    with pytest.raises(IllegalActionError, match="reset first"):
        native().step(np.zeros(NUM_ENVS, dtype=np.int64))


# --- Spaces, masks, making ------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_spaces_are_those_of_sync_vector_env(arguments: dict[str, Any]) -> None:
    envs, reference = native(3, **arguments), sync(3, **arguments)
    assert envs.num_envs == reference.num_envs == 3
    assert envs.single_observation_space == reference.single_observation_space
    assert envs.single_action_space == reference.single_action_space
    assert envs.observation_space == reference.observation_space
    assert envs.action_space == reference.action_space
    observations, infos = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert infos["action_mask"].shape == (3, envs.single_action_space.n)  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", MODES)
def test_action_masks_are_those_of_the_infos(mode: AutoresetMode) -> None:
    envs = native(mode=mode, start=SHORT)
    _, infos = envs.reset(seed=0)
    rng = np.random.default_rng(0)
    empty = 0
    for _ in range(40):
        masks = envs.unwrapped.action_masks()  # type: ignore[attr-defined]
        assert masks.dtype == np.bool_
        assert masks.shape == (NUM_ENVS, 78)
        assert np.array_equal(masks, infos["action_mask"] == 1)
        empty += (~masks.any(axis=1)).sum()
        _, _, terminated, _, infos = envs.step(choose(rng, masks))
        if mode == AutoresetMode.DISABLED and terminated.any():
            assert np.array_equal(~envs.action_masks().any(axis=1), terminated)
            envs.reset(options={"reset_mask": terminated})
            infos["action_mask"] = envs.action_masks().astype(np.int8)
    assert (empty > 0) == (mode == AutoresetMode.NEXT_STEP)


def test_the_batched_action_space_samples_by_masks() -> None:
    envs = native()
    _, infos = envs.reset(seed=0)
    for _ in range(50):
        actions = envs.action_space.sample(tuple(infos["action_mask"]))
        _, _, _, _, infos = envs.step(np.asarray(actions))
        for index in np.flatnonzero(~infos["action_mask"].any(axis=1)):
            infos["action_mask"][index, 0] = 1  # ignored at the reset


def test_arrays_handed_out_are_fresh() -> None:
    for mode in MODES:
        envs = native(mode=mode, start=SHORT)
        rng = np.random.default_rng(0)
        handed_out: list[Any] = [envs.reset(seed=0)]
        kept = pickle.loads(pickle.dumps(handed_out))
        for _ in range(20):
            result = envs.step(choose(rng, envs.action_masks()))
            handed_out.append(result)
            kept.append(pickle.loads(pickle.dumps(result)))
            if mode == AutoresetMode.DISABLED and result[2].any():
                envs.reset(options={"reset_mask": result[2]})
        for one, other in zip(handed_out, kept, strict=True):
            assert_same(one, other)


@pytest.mark.parametrize("mode", [*MODES, *(mode.value for mode in MODES)])
def test_the_autoreset_mode_is_an_enum_or_its_value(mode: AutoresetMode | str) -> None:
    envs = gym.make_vec(
        "DeckOfSpies-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        autoreset_mode=mode,
    )
    assert envs.metadata["autoreset_mode"] is AutoresetMode(mode)


def test_next_step_is_the_default_and_the_class_is_not_changed() -> None:
    native(mode=AutoresetMode.SAME_STEP)
    assert "autoreset_mode" not in DeckOfSpiesVectorEnv.metadata
    envs = gym.make_vec("DeckOfSpies-v0", num_envs=2)
    assert isinstance(envs, DeckOfSpiesVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


@pytest.mark.parametrize("env_id", ENV_IDS)
@pytest.mark.parametrize("vectorization_mode", ["vector_entry_point", "sync"])
def test_make_vec_makes_every_id(env_id: str, vectorization_mode: str) -> None:
    envs: VectorEnv[Any, Any, Any] = gym.make_vec(
        env_id, num_envs=2, vectorization_mode=vectorization_mode
    )
    zones = completed(
        {"hand": ["5d"], "spy": ["5c"], "draw_discard": ("Jh", "Jd", "Jc", "Qd", "Qh", "Qs")}
    )
    _, infos = envs.reset(options={"zones": zones})
    rewards = envs.step(infos["action_mask"].argmax(axis=1))[1]
    held = sum(card[0] in "JQK" for card in zones["draw_discard"])
    expected = {
        "DeckOfSpies-v0": 0.0,
        "DeckOfSpiesKeys-v0": held / 12,
        "DeckOfSpiesPerfect-v0": 0.0,
    }
    assert held == 6
    assert rewards.tolist() == [expected[env_id]] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "at least 1, got 0"),
        ({"observation": "all"}, "observation must be one of"),
        ({"autoreset_mode": "sometimes"}, "sometimes"),
        ({"render_mode": "human"}, "one of ansi, rgb_array, got 'human'"),
        ({"illegal_action": "skip"}, "illegal_action must be one of"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DeckOfSpiesVectorEnv(**arguments)


def test_render_gives_one_text_per_game() -> None:
    envs, reference = native(2, render_mode="ansi"), sync(2, render_mode="ansi")
    envs.reset(seed=0)
    reference.reset(seed=0)
    assert envs.render() == reference.render()
    with pytest.warns(UserWarning, match="render"):
        assert native().render() is None


def test_vector_wrappers_work() -> None:
    envs = gym.wrappers.vector.RecordEpisodeStatistics(native(start=SHORT, objective="keys"))
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    episodes = 0
    for _ in range(30):
        masks = envs.unwrapped.action_masks()  # type: ignore[attr-defined]
        _, rewards, terminated, _, infos = envs.step(choose(rng, masks))
        if terminated.any():
            episodes += terminated.sum()
            assert np.allclose(infos["episode"]["r"][terminated], rewards[terminated])
    assert episodes > 5


# --- States ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_set_state_goes_back(mode: AutoresetMode) -> None:
    envs, ended = ended_game(mode)
    state = envs.get_state()
    assert state.shape == (NUM_ENVS,)

    def go_on() -> list[Any]:
        rng = np.random.default_rng(4)
        results: list[Any] = []
        over = ended
        for _ in range(12):
            if mode == AutoresetMode.DISABLED and over.any():
                results.append(envs.reset(options={"reset_mask": over}))
            results.append(envs.step(choose(rng, envs.action_masks())))
            over = results[-1][2]
        return results

    first = go_on()
    envs.set_state(state)
    assert np.array_equal(envs.get_state(), state)
    for one, other in zip(first, go_on(), strict=True):
        assert_same(one, other)


def test_a_state_tells_which_games_wait_for_their_reset() -> None:
    waiting, ended = ended_game(AutoresetMode.NEXT_STEP)
    running = native(start=SHORT)
    running.reset(seed=9)
    states = waiting.get_state(), running.get_state()
    rng = np.random.default_rng(0)
    actions = [choose(rng, envs.action_masks()) for envs in (waiting, running)]
    assert ended.any()
    for envs in (native(start=SHORT), waiting):
        envs.set_state(states[1])
        assert_same(envs.step(actions[1]), running.step(actions[1]))
        running.set_state(states[0])
        envs.set_state(states[0])
        assert_same(envs.step(actions[0]), running.step(actions[0]))
        assert not envs.get_state()["state"]["phase"][ended].any()  # dealt anew, to act
        running.set_state(states[1])
        envs.set_state(states[0])


def test_states_are_those_of_the_single_env() -> None:
    envs, single = native(), new_env()
    envs.reset(seed=3)
    envs.step(choose(np.random.default_rng(0), envs.action_masks()))
    for index, state in enumerate(envs.get_state()):
        single.set_state(state)
        assert np.array_equal(single.action_masks(), envs.action_masks()[index])


@pytest.mark.parametrize("state", [np.zeros(3), None, []], ids=repr)
def test_a_bad_state_is_a_value_error(state: Any) -> None:
    envs = native()
    envs.reset(seed=0)
    before = envs.get_state()
    with pytest.raises(ValueError, match="get_state"):
        envs.set_state(state)
    with pytest.raises(ValueError, match="get_state"):
        envs.set_state(before[:2])
    assert np.array_equal(envs.get_state(), before)


def test_pickle_keeps_the_games() -> None:
    envs, _ = ended_game(AutoresetMode.NEXT_STEP)
    twin = pickle.loads(pickle.dumps(envs))
    rng = np.random.default_rng(5)
    for _ in range(20):
        actions = choose(rng, envs.action_masks())
        assert_same(twin.step(actions), envs.step(actions))


# --- Other processes ------------------------------------------------------------------------------


def make_single() -> gym.Env[Any, Any]:
    """Make a single environment in a worker of its own."""
    return gym.make("DeckOfSpies-v0", start=SHORT, objective="keys")


@pytest.mark.parametrize("mode", MODES)
def test_async_vector_env_gives_the_same(mode: AutoresetMode) -> None:
    reference = AsyncVectorEnv([make_single] * 2, autoreset_mode=mode)
    try:
        envs = native(2, mode, start=SHORT, objective="keys")
        results = play_both(envs, reference, 30, seed=8)
    finally:
        reference.close()
    assert sum(result[2].sum() for result in results) > 5


COLD_START = '''
"""Workers that all start with an empty compile cache."""

import numpy as np
import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import deck_of_spies_env

compilations = []


class Counted(gym.Wrapper):
    """Tells how often this process had to compile the step, finding it in no cache."""

    def compilations(self):
        from deck_of_spies_env.solitaire.games import step_games

        return sum(step_games.stats.cache_misses.values())


def make():
    return Counted(gym.make("DeckOfSpies-v0"))


def play_gymnasium(envs):
    rng = np.random.default_rng(0)
    observations, infos = envs.reset(seed=3)
    played = [observations]
    for _ in range(90):
        masks = infos["action_mask"].astype(np.float64)
        masks[:, 0] += 1e-9  # for games that are being reset
        actions = np.array([rng.choice(len(row), p=row / row.sum()) for row in masks])
        observations, _, _, _, infos = envs.step(actions)
        played.append(observations)
    envs.close()
    return np.array(played)


def play_sb3(envs):
    rng = np.random.default_rng(0)
    envs.seed(3)
    compilations.append(sorted(envs.env_method("compilations")))
    played = [envs.reset()]
    for _ in range(90):
        masks = envs.env_method("action_masks")
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        played.append(envs.step(actions)[0])
    envs.close()
    return np.array(played)


if __name__ == "__main__":
    # The workers of SubprocVecEnv first: none has compiled anything, and they start together.
    parallel = play_sb3(SubprocVecEnv([make] * 3, start_method="spawn"))
    assert compilations == [[0, 0, 1]], compilations  # the others waited for the first
    assert (parallel == play_sb3(DummyVecEnv([make] * 3))).all(), "SubprocVecEnv differs"
    parallel = play_gymnasium(AsyncVectorEnv([make] * 2, context="spawn"))
    assert (parallel == play_gymnasium(SyncVectorEnv([make] * 2))).all(), "AsyncVectorEnv differs"
    print("all the same")
'''


def test_workers_start_from_a_cold_compile_cache(tmp_path: Path) -> None:
    script = tmp_path / "cold_start.py"
    script.write_text(COLD_START)
    cache = tmp_path / "cache"
    cache.mkdir()
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "all the same"
    assert "Traceback" not in done.stderr, done.stderr
    assert any(cache.rglob("*.nbi")), "the workers did not use the cache directory"
