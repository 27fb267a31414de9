"""Tests of the native vector environment of Skirmish: it replays N parallel ones.

The reference follows Gymnasium's ``SyncVectorEnv``, with a parallel environment for each table.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from deck_of_spies_env import IllegalActionError
from deck_of_spies_env.skirmish.actions import WAIT
from deck_of_spies_env.skirmish.parallel import parallel_env
from deck_of_spies_env.skirmish.vector_env import SkirmishVectorEnv

MODES = list(AutoresetMode)
NUM_ENVS = 4
SMALL: dict[str, Any] = {"ranks": "A2JQK", "num_suits": 2, "max_rounds": 30}
ENDING_KEYS = ("outcome", "is_success", "total", "margin", "rounds")

ARGUMENTS: list[dict[str, Any]] = [
    {"rules": {"max_rounds": 7}},
    {"rules": SMALL},
    {"rules": {**SMALL, "recycle_captures": False}, "num_players": 3},
    {"rules": {"max_rounds": 4}, "num_players": 4, "illegal_action": "lose"},
]


class Reference:
    """N parallel environments, stepped and reset as ``SyncVectorEnv`` does."""

    def __init__(self, num_envs: int, mode: AutoresetMode, **arguments: Any) -> None:
        self.mode = mode
        self.envs = [parallel_env(**arguments) for _ in range(num_envs)]
        self.over = np.zeros(num_envs, dtype=np.bool_)
        self.observations: list[Any] = [None] * num_envs

    def reset(self, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Reset all, or those of the mask."""
        options = options or {}
        size = len(self.envs)
        chosen = options.get("reset_mask", np.ones(size, dtype=np.bool_))
        seeds = [seed + i for i in range(size)] if isinstance(seed, int) else seed or [None] * size
        infos: list[Any] = [None] * size
        for i in np.flatnonzero(chosen).tolist():
            self.observations[i], infos[i] = self.envs[i].reset(seed=seeds[i], options=options)
        self.over &= ~chosen
        return self._stacked(), self._layout(infos)

    def step(self, actions: NDArray[np.int64]) -> Any:
        """One step of all, or the reset of those that wait for it."""
        size, num_players = actions.shape
        rewards = np.zeros((size, num_players))
        terminated, truncated = np.zeros((2, size), dtype=np.bool_)
        infos: list[Any] = [None] * size
        final_obs: Any = np.full(size, None, dtype=object)
        final_infos: list[Any] = [None] * size
        for i, env in enumerate(self.envs):
            if self.over[i] and self.mode is AutoresetMode.NEXT_STEP:
                self.observations[i], infos[i] = env.reset()
                continue
            joint = dict(zip(env.possible_agents, actions[i].tolist(), strict=True))
            self.observations[i], paid, ends, cuts, infos[i] = env.step(joint)
            rewards[i] = list(paid.values())
            terminated[i], truncated[i] = ends["player_0"], cuts["player_0"]
            if not env.agents and self.mode is AutoresetMode.SAME_STEP:
                final_obs[i], final_infos[i] = self._rows(i), infos[i]
                self.observations[i], infos[i] = env.reset()
        self.over = terminated | truncated
        layout = self._layout(infos)
        if any(info is not None for info in final_infos):
            layout |= {
                "final_obs": final_obs,
                "_final_obs": self.over,
                "final_info": self._layout(final_infos),
                "_final_info": self.over,
            }
        return self._stacked(), rewards, terminated, truncated, layout

    def _rows(self, i: int) -> NDArray[np.int8]:
        return np.array([seen["observation"] for seen in self.observations[i].values()])

    def _stacked(self) -> NDArray[np.int8]:
        return np.array([self._rows(i) for i in range(len(self.envs))])

    def _layout(self, infos: list[Any]) -> dict[str, Any]:
        """An array for each key, and one that tells where it holds something."""
        layout: dict[str, Any] = {}
        num_players = len(self.envs[0].possible_agents)
        kinds = {"action_mask": np.int8, "outcome": object, "is_success": np.bool_}
        for key in ("action_mask", *ENDING_KEYS):
            has = np.array([info is not None and key in info["player_0"] for info in infos])
            if has.any():
                kind: Any = kinds.get(key, np.int64)
                shape = (len(infos), num_players) + ((15,) if key == "action_mask" else ())
                column = np.full(shape, None if kind is object else 0, dtype=kind)
                for i in np.flatnonzero(has):
                    for seat, info in enumerate(infos[i].values()):
                        column[i, seat] = info[key]
                layout[key], layout[f"_{key}"] = column, has
        return layout


def assert_equal(first: Any, second: Any, where: str = "") -> None:
    """Check that two values are the same through and through, types and dtypes included."""
    assert type(first) is type(second), where
    if isinstance(first, dict):
        assert set(first) == set(second), where
        for key in first:
            assert_equal(first[key], second[key], f"{where}[{key!r}]")
    elif isinstance(first, tuple | list) or getattr(first, "dtype", np.dtype(int)).hasobject:
        assert len(first) == len(second), where
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            assert_equal(one, other, f"{where}[{index}]")
    elif isinstance(first, np.ndarray):
        assert (first.dtype, first.shape) == (second.dtype, second.shape), where
        assert np.array_equal(first, second), where
    else:
        assert first == second, where


def choose(
    rng: np.random.Generator, masks: NDArray[np.bool_], blindly: float = 0.0
) -> NDArray[np.int64]:
    """A random legal action for each seat, 0 where none is; sometimes any action at all."""
    keys = np.where(masks, rng.random(masks.shape), -1.0)
    actions = keys.argmax(axis=2) * masks.any(axis=2)
    return np.where(rng.random(actions.shape) < blindly, rng.integers(0, 16), actions)


def native(
    num_envs: int = NUM_ENVS, mode: AutoresetMode = AutoresetMode.NEXT_STEP, **arguments: Any
) -> SkirmishVectorEnv:
    """The environment under test."""
    return SkirmishVectorEnv(num_envs, autoreset_mode=mode, **arguments)


def play_both(
    envs: SkirmishVectorEnv, reference: Any, steps: int, seed: Any, blindly: float = 0.0
) -> list[Any]:
    """Play both alike, resetting as the mode wants it, and check each result."""
    rng = np.random.default_rng(0)
    assert_equal(envs.reset(seed=seed), reference.reset(seed=seed), "reset")
    results: list[Any] = []
    for step in range(steps):
        actions = choose(rng, envs.action_masks(), blindly)
        results.append(envs.step(actions))
        assert_equal(results[-1], reference.step(actions), f"step {step}")
        ended = results[-1][2] | results[-1][3]
        if envs.autoreset_mode is AutoresetMode.DISABLED and ended.any():
            options = {"reset_mask": ended}
            assert_equal(
                envs.reset(options=options), reference.reset(options=options), f"reset {step}"
            )
    return results


# --- Replaying parallel environments --------------------------------------------------------------


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_it_replays_parallel_envs(mode: AutoresetMode, arguments: dict[str, Any]) -> None:
    blindly = 0.02 if "illegal_action" in arguments else 0.0
    reference = Reference(NUM_ENVS, mode, **arguments)
    results = play_both(native(mode=mode, **arguments), reference, 80, seed=7, blindly=blindly)
    terminated = sum(result[2].sum() for result in results)
    truncated = sum(result[3].sum() for result in results)
    assert terminated + truncated > 10
    if arguments["rules"]["max_rounds"] < 10:
        assert truncated > 0
    else:
        assert terminated > 0
    keys = set().union(*(result[4] for result in results))
    if mode is AutoresetMode.SAME_STEP:
        assert keys == {f"{_}{key}" for _ in ("", "_") for key in ("action_mask", *FINAL)}
    else:
        assert keys == {f"{_}{key}" for _ in ("", "_") for key in ("action_mask", *ENDING_KEYS)}


FINAL = ("final_obs", "final_info")


@pytest.mark.parametrize("mode", MODES)
def test_seeds_may_be_a_list_with_none(mode: AutoresetMode) -> None:
    envs, reference = native(mode=mode, rules=SMALL), Reference(NUM_ENVS, mode, rules=SMALL)
    play_both(envs, reference, 10, seed=[5, 5, 2**40, 0])
    play_both(envs, reference, 30, seed=[None, 9, None, 4])
    play_both(envs, reference, 10, seed=None)


@pytest.mark.parametrize("mode", MODES)
def test_partial_resets(mode: AutoresetMode) -> None:
    envs, reference = native(mode=mode, rules=SMALL), Reference(NUM_ENVS, mode, rules=SMALL)
    play_both(envs, reference, 3, seed=6)
    rng = np.random.default_rng(1)
    start = {"hand": [["Kc", "2c"], ["Qc"]], "supply": [["Ac"], ["Jc", "Jd"]]}
    for mask, seed, more in [
        ([True, False, False, True], None, {}),
        ([False, True, False, False], 20, {}),
        ([True, True, True, False], [None, 7, 8, 9], {}),
        ([False, False, True, True], None, {"table": start}),
        ([True, True, True, True], 3, {"table": start, "unknown": 1}),
    ]:
        options = {"reset_mask": np.array(mask), **more}
        assert_equal(
            envs.reset(seed=seed, options=options), reference.reset(seed=seed, options=options)
        )
        if mode is not AutoresetMode.DISABLED:
            actions = choose(rng, envs.action_masks())
            assert_equal(envs.step(actions), reference.step(actions))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_threads_and_shared_arrays_change_nothing(mode: AutoresetMode) -> None:
    arguments: dict[str, Any] = {"rules": SMALL, "num_players": 3, "mode": mode}
    envs = native(7, **arguments)
    others = [native(7, num_threads=3, **arguments), native(7, copy=False, **arguments)]
    first = envs.reset(seed=1)
    for other in others:
        assert_equal(first, other.reset(seed=1))
    rng = np.random.default_rng(0)
    shared: list[Any] = []
    for _ in range(40):
        actions = choose(rng, envs.action_masks())
        result = envs.step(actions)
        for other in others:
            assert_equal(result, other.step(actions))
        shared.append(others[1].games.observations)
    assert all(array is shared[0] for array in shared)


def test_arrays_handed_out_are_fresh() -> None:
    for mode in MODES[:2]:
        envs = native(mode=mode, rules=SMALL)
        rng = np.random.default_rng(0)
        handed_out: list[Any] = [envs.reset(seed=0)]
        kept = pickle.loads(pickle.dumps(handed_out))
        for _ in range(20):
            result = envs.step(choose(rng, envs.action_masks()))
            handed_out.append(result)
            kept.append(pickle.loads(pickle.dumps(result)))
        for one, other in zip(handed_out, kept, strict=True):
            assert_equal(one, other)


# --- Illegal actions and arguments ----------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_an_illegal_action_raises_before_any_table_moves(mode: AutoresetMode) -> None:
    envs, other = native(mode=mode, num_players=3), native(mode=mode, num_players=3)
    envs.reset(seed=1)
    other.reset(seed=1)
    actions = choose(np.random.default_rng(3), envs.action_masks())
    state, wrong = envs.get_state(), actions.copy()
    wrong[1, 2], wrong[3, 0] = 15, WAIT
    with pytest.raises(IllegalActionError, match=r"envs 1, 3; env 1, seat 2: action 15 is not in"):
        envs.step(wrong)
    assert np.array_equal(envs.get_state(), state)
    assert_equal(envs.step(actions), other.step(actions))


@pytest.mark.parametrize(
    "actions", [[0] * 8, [[0, 0]], [[0.0] * 2] * 4, 0, [["a"] * 2] * 4, [[0] * 4] * 2], ids=str
)
def test_what_is_no_action_for_each_seat_is_refused(actions: Any) -> None:
    envs = native()
    envs.reset(seed=0)
    with pytest.raises(IllegalActionError, match=r"expected 8 whole numbers of shape \(4, 2\)"):
        envs.step(actions)


def test_stepping_ended_tables_raises_when_autoreset_is_disabled() -> None:
    envs = native(2, AutoresetMode.DISABLED, illegal_action="lose")
    with pytest.raises(IllegalActionError, match="reset first"):
        envs.step(np.zeros((2, 2), dtype=np.int64))
    envs.reset(seed=0)
    actions = envs.action_masks().argmax(axis=2)
    actions[0, 1] = -1
    _, rewards, terminated, truncated, _ = envs.step(actions)
    assert rewards.tolist() == [[1.0, -1.0], [0.0, 0.0]]
    assert (terminated.tolist(), truncated.tolist()) == ([True, False], [False, False])
    with pytest.raises(IllegalActionError, match=r"envs 0; env 0, seat 0: .*reset first"):
        envs.step(envs.action_masks().argmax(axis=2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs must be a whole number of at least 1, got 0"),
        ({"num_players": 5}, "num_players must be 2, 3 or 4, got 5"),
        ({"num_threads": 0}, "num_threads must be a whole number"),
        ({"autoreset_mode": "sometimes"}, "autoreset_mode must be one of .*'sometimes'"),
        ({"copy": 1}, "copy must be True or False, got 1"),
        ({"rules": {"suits": 4}}, "unknown field 'suits'"),
        ({"render_mode": "human"}, "one of ansi, rgb_array, got 'human'"),
        ({"illegal_action": "skip"}, "illegal_action must be one of"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SkirmishVectorEnv(**arguments)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"reset_mask": [True] * 4}, TypeError),
        ({"reset_mask": np.zeros(4, dtype=np.bool_)}, ValueError),
        ({"reset_mask": np.ones(3, dtype=np.bool_)}, ValueError),
        ({"table": {"hand": [["7c"], []]}}, ValueError),
        ({"table": 7}, ValueError),
    ],
    ids=str,
)
def test_bad_options_change_nothing(options: dict[str, Any], error: type[Exception]) -> None:
    envs = native()
    envs.reset(seed=0)
    state = envs.get_state()
    with pytest.raises(error):
        envs.reset(seed=1, options=options)
    assert np.array_equal(envs.get_state(), state)


# --- Spaces, states, rendering --------------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_spaces(num_players: int) -> None:
    envs = native(3, num_players=num_players)
    row = parallel_env(num_players).observation_space("player_0")["observation"]
    assert isinstance(row, gym.spaces.Box)
    assert envs.single_observation_space.shape == (num_players, *row.shape)
    assert envs.single_action_space == gym.spaces.MultiDiscrete([15] * num_players)
    observations, infos = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert observations.dtype == infos["action_mask"].dtype == np.int8
    assert infos["action_mask"].shape == (3, num_players, 15)
    assert np.array_equal(envs.action_masks(), infos["action_mask"] == 1)
    assert envs.action_masks().argmax(axis=2) in envs.action_space
    infos["action_mask"][:] = 0
    assert envs.action_masks().any(axis=2).all()
    assert (envs.num_players, envs.rules.max_rounds) == (num_players, 500)


@pytest.mark.parametrize("mode", MODES[:2])
def test_set_state_goes_back(mode: AutoresetMode) -> None:
    def go_on(envs: SkirmishVectorEnv) -> Sequence[Any]:
        rng = np.random.default_rng(4)
        return [envs.step(choose(rng, envs.action_masks())) for _ in range(20)]

    envs = native(mode=mode, rules=SMALL)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    while not envs.step(choose(rng, envs.action_masks()))[2].any():
        pass
    state, twin = envs.get_state(), pickle.loads(pickle.dumps(envs))
    first = go_on(envs)
    envs.set_state(state)
    fresh = native(mode=mode, rules=SMALL)
    fresh.set_state(state)
    for other in (envs, twin, fresh):
        assert_equal(first, go_on(other))
    for bad in (np.zeros(3), None, state[:2]):
        with pytest.raises(ValueError, match="get_state"):
            envs.set_state(bad)  # type: ignore[arg-type]


def test_render_gives_one_text_per_table() -> None:
    envs = native(2, render_mode="ansi")
    envs.reset(seed=0)
    single = parallel_env(render_mode="ansi")
    single.reset(seed=1)
    texts = envs.render()
    assert texts is not None
    assert texts[1] == single.render()
    with pytest.warns(UserWarning, match="render"):
        assert native().render() is None
