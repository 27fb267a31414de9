"""Tests of the conformance check: what conforms passes, and every broken variant is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

import deck_of_spies_env  # noqa: F401 - registers the ids
from deck_of_spies_env.testing import MaskedEnvError, check_masked_env

Result = tuple[Any, float, bool, bool, dict[str, Any]]


class TakeAway(gym.Env[NDArray[np.int8], np.int64]):
    """A toy that conforms: take 1 to 3 from a pile, no more than there are; chance takes some."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 12, (1,), np.int8)
        self.action_space = gym.spaces.Discrete(3, start=1)
        self.pile = 0

    def mask(self) -> Any:
        return np.array([count <= self.pile for count in (1, 2, 3)], dtype=np.int8)

    def action_masks(self) -> Any:
        return np.array([count <= self.pile for count in (1, 2, 3)])

    def observation(self) -> Any:
        return np.array([self.pile], dtype=np.int8)

    def info(self) -> dict[str, Any]:
        return {"action_mask": self.mask()}

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.pile = 6 + int(self.np_random.integers(7))
        return self.observation(), self.info()

    def step(self, action: np.int64) -> Result:
        if not 1 <= action <= min(3, self.pile):
            return self.refuse(action)
        self.pile -= int(action)
        self.pile -= min(self.pile, int(self.np_random.integers(2)))
        return self.result(float(self.pile == 0))

    def refuse(self, action: np.int64) -> Result:
        raise ValueError(f"{action} of {self.pile}")

    def result(self, reward: Any) -> Result:
        return self.observation(), reward, self.pile == 0, False, self.info()


class LosesIfIllegal(TakeAway):
    """The other convention: an illegal action ends the episode, and raises only after the end."""

    def refuse(self, action: np.int64) -> Result:
        if self.pile == 0:
            raise ValueError("over")
        self.pile = 0
        return self.result(0.0)


class AlwaysLegal(TakeAway):
    """No action is ever illegal before the end."""

    def mask(self) -> Any:
        return np.full(3, self.pile > 0, dtype=np.int8)

    def action_masks(self) -> Any:
        return self.mask() == 1

    def step(self, action: np.int64) -> Result:
        if self.pile == 0:
            return self.refuse(action)
        self.pile = max(self.pile - int(action), 0)
        return self.result(float(self.pile == 0))


# --- Broken variants ------------------------------------------------------------------------------


class ContinuousActions(TakeAway):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = gym.spaces.Box(0, 1, (3,))


class NoMethod(TakeAway):
    action_masks = None


class NoMask(TakeAway):
    def info(self) -> dict[str, Any]:
        return {}


class NoInfo(TakeAway):
    def info(self) -> Any:
        return None


class NoMaskAfterSteps(TakeAway):
    def result(self, reward: Any) -> Result:
        return self.observation(), reward, self.pile == 0, False, {}


class ListMask(TakeAway):
    def mask(self) -> Any:
        return super().mask().tolist()


class FloatMask(TakeAway):
    def mask(self) -> Any:
        return super().mask().astype(np.float32)


class LongMask(TakeAway):
    def mask(self) -> Any:
        return np.append(super().mask(), np.int8(0))


class CountingMask(TakeAway):
    def mask(self) -> Any:
        return super().mask() * np.int8(2)


class IntegerMasks(TakeAway):
    def action_masks(self) -> Any:
        return super().action_masks().astype(np.int8)


class ShortMasks(TakeAway):
    def action_masks(self) -> Any:
        return super().action_masks()[:2]


class OtherMasks(TakeAway):
    def action_masks(self) -> Any:
        return np.array([self.pile > 0, self.pile > 2, self.pile > 2])


class NothingLegalAtTwo(TakeAway):
    def mask(self) -> Any:
        return super().mask() * np.int8(self.pile != 2)

    def action_masks(self) -> Any:
        return self.mask() == 1


class LegalAtTheEnd(TakeAway):
    def mask(self) -> Any:
        return np.array([1, *super().mask()[1:]], dtype=np.int8)

    def action_masks(self) -> Any:
        return self.mask() == 1


class StrayObservation(TakeAway):
    def observation(self) -> Any:
        return np.array([-1 if self.pile == 1 else self.pile], dtype=np.int8)


class WrongObservationType(TakeAway):
    def observation(self) -> Any:
        return np.array([self.pile], dtype=np.float64)


class InfiniteReward(TakeAway):
    def result(self, reward: Any) -> Result:
        return super().result(np.inf if reward else 0.0)


class TextFlag(TakeAway):
    def result(self, reward: Any) -> Result:
        observation, reward, _, truncated, info = super().result(reward)
        return observation, reward, "no", truncated, info  # type: ignore[return-value]


class OldApi(TakeAway):
    def result(self, reward: Any) -> Any:
        return self.observation(), reward, self.pile == 0, self.info()


class OldReset(TakeAway):
    def reset(self, **arguments: Any) -> Any:
        return super().reset(**arguments)[0]


class RefusesLegal(TakeAway):
    def step(self, action: np.int64) -> Result:
        return self.refuse(action) if self.pile == 3 == action else super().step(action)


class AcceptsIllegal(TakeAway):
    def refuse(self, action: np.int64) -> Result:
        return self.result(0.0)


class AcceptsAfterTheEnd(TakeAway):
    def refuse(self, action: np.int64) -> Result:
        return super().refuse(action) if self.pile else self.result(0.0)


class AcceptsSomeIllegal(TakeAway):
    def refuse(self, action: np.int64) -> Result:
        return super().refuse(action) if action == 3 else self.result(0.0)


class LosesOrRaises(LosesIfIllegal):
    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0

    def refuse(self, action: np.int64) -> Result:
        self.refusals += 1
        if self.refusals > 1:
            raise ValueError("now I raise")
        return super().refuse(action)


class LosesWithAMask(LosesIfIllegal):
    def refuse(self, action: np.int64) -> Result:
        observation, reward, terminated, truncated, _ = super().refuse(action)
        self.pile = 1
        return observation, reward, terminated, truncated, self.info()


class LosesForGood(LosesIfIllegal):
    """A lost episode leaves something behind."""

    lost = 0

    def refuse(self, action: np.int64) -> Result:
        self.lost = 1
        return super().refuse(action)

    def reset(self, **arguments: Any) -> Any:
        super().reset(**arguments)
        self.pile -= self.lost
        return self.observation(), self.info()


class RaisesAnother(TakeAway):
    def refuse(self, action: np.int64) -> Result:
        raise IndexError("no such action")


class MovesBeforeItRaises(TakeAway):
    def refuse(self, action: np.int64) -> Result:
        self.pile = max(self.pile - 1, 0)
        raise ValueError("too late")


class MovesLater(TakeAway):
    refusals = 0

    def refuse(self, action: np.int64) -> Result:
        self.refusals += 1
        self.pile = max(self.pile - (self.refusals > 3), 0)
        raise ValueError("too late")


class OverwritesObservation(TakeAway):
    def observation(self) -> Any:
        self.handed_out = super().observation()
        return self.handed_out

    def refuse(self, action: np.int64) -> Result:
        self.handed_out[:] = 12
        raise ValueError("sorry")


class DrawsBeforeItRaises(TakeAway):
    def refuse(self, action: np.int64) -> Result:
        self.np_random.random()
        raise ValueError("too late")


class IgnoresSeed(TakeAway):
    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return super().reset(options=options)


class ForgetsSeed(TakeAway):
    """Seeded resets are right; what an unseeded one deals is not determined by the seed."""

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        seed = int(np.random.default_rng().integers(1 << 30)) if seed is None else seed
        return super().reset(seed=seed, options=options)


class RandomRewards(TakeAway):
    def result(self, reward: Any) -> Result:
        return super().result(float(np.random.default_rng().random()))


class Endless(TakeAway):
    def step(self, action: np.int64) -> Result:
        if not 1 <= action <= min(3, self.pile):
            return self.refuse(action)
        return self.result(0.0)


class BadSample(TakeAway):
    class Space(gym.spaces.Discrete):
        def sample(self, mask: Any = None, probability: Any = None) -> Any:
            return np.int64(3)

    def __init__(self) -> None:
        super().__init__()
        self.action_space = self.Space(3, start=1)


class NoSample(TakeAway):
    class Space(gym.spaces.Discrete):
        def sample(self) -> Any:
            return super().sample()

    def __init__(self) -> None:
        super().__init__()
        self.action_space = self.Space(3, start=1)


class CrashesAtReset(TakeAway):
    def reset(self, **arguments: Any) -> Any:
        raise RuntimeError("no cards")


BROKEN: dict[type[TakeAway], str] = {
    ContinuousActions: r"action_space must be Discrete, got Box",
    NoMethod: r"no method action_masks\(\)",
    NoMask: r'episode 0, reset: info has no "action_mask"',
    NoInfo: r"episode 0, reset: info must be a dict, got None",
    NoMaskAfterSteps: r'episode 0, step 1: info has no "action_mask"',
    ListMask: r'info\["action_mask"\] must be a NumPy array, got list',
    FloatMask: r'info\["action_mask"\] must have dtype int8, got float32',
    LongMask: r'info\["action_mask"\] must have shape \(3,\), got \(4,\)',
    CountingMask: r"must hold zeros and ones only, got \[2 2 2\]",
    IntegerMasks: r"action_masks\(\) must have dtype bool, got int8",
    ShortMasks: r"action_masks\(\) must have shape \(3,\), got \(2,\)",
    OtherMasks: r'info\["action_mask"\] differs from action_masks\(\)',
    NothingLegalAtTwo: r"all zero, but the episode goes on",
    LegalAtTheEnd: r"must be all zero at the end",
    StrayObservation: r"not in observation_space: array\(\[-1\]",
    WrongObservationType: r"not in observation_space",
    InfiniteReward: r"reward must be a finite number, got inf",
    TextFlag: r"terminated must be a bool, got 'no'",
    OldApi: r"step must return \(observation, reward, terminated, truncated, info\)",
    OldReset: r"reset must return \(observation, info\)",
    RefusesLegal: r"the legal action 3 raised ValueError: 3 of 3",
    AcceptsIllegal: r"the illegal action \d was accepted: it must raise a ValueError",
    AcceptsAfterTheEnd: r"was accepted after the end although one before it raised",
    AcceptsSomeIllegal: r"the illegal action 2 was accepted",
    LosesOrRaises: r"raised a ValueError, but one before it ended the episode",
    LosesWithAMask: r"must be all zero at the end",
    LosesForGood: r"not determined by the seed and the actions once an episode was lost",
    RaisesAnother: r"the illegal action \d raised IndexError: no such action, not a ValueError",
    MovesBeforeItRaises: r"the illegal action \d raised, but changed action_masks\(\)",
    MovesLater: r"the illegal action \d raised, but changed action_masks\(\)",
    OverwritesObservation: r"raised, but changed the observation handed out",
    DrawsBeforeItRaises: r"an illegal action raised, but changed what came after: \w+ differs",
    IgnoresSeed: r"the play is not determined by the seed and the actions: \w+ differs",
    ForgetsSeed: r"episode [1-9]\d*, (reset|step \d+): the play is not determined",
    RandomRewards: r"episode 0, step 1: the play is not determined .* reward differs",
    Endless: r"the episode has not ended after 10000 steps",
    BadSample: r"action_space.sample\(mask\) gave the illegal action 3",
    NoSample: r"action_space.sample\(mask\) raised TypeError",
    CrashesAtReset: r"reset raised RuntimeError: no cards",
}


@pytest.mark.parametrize("env_class", [TakeAway, LosesIfIllegal, AlwaysLegal])
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_a_conforming_third_party_env_passes(env_class: type[TakeAway], seed: int) -> None:
    check_masked_env(env_class(), seed=seed)


@pytest.mark.parametrize("env_class", BROKEN, ids=lambda env_class: env_class.__name__)
def test_a_broken_env_is_named(env_class: type[TakeAway]) -> None:
    with pytest.raises(MaskedEnvError, match=BROKEN[env_class]):
        check_masked_env(env_class())


def test_the_error_is_an_assertion_error() -> None:
    assert issubclass(MaskedEnvError, AssertionError)


def test_the_cause_of_a_failed_step_is_kept() -> None:
    with pytest.raises(MaskedEnvError) as caught:
        check_masked_env(RefusesLegal())
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_truncation_may_leave_actions_legal() -> None:
    check_masked_env(TimeLimit(TakeAway(), max_episode_steps=2))


def test_numpy_scalars_are_fine_as_reward_and_flags() -> None:
    class NumpyResults(TakeAway):
        def result(self, reward: Any) -> Result:
            observation, reward, terminated, truncated, info = super().result(reward)
            return observation, np.float32(reward), np.bool_(terminated), np.bool_(truncated), info  # type: ignore[return-value]

    check_masked_env(NumpyResults())


def test_observations_may_be_nested() -> None:
    class Nested(TakeAway):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = gym.spaces.Dict({"pile": gym.spaces.Discrete(13)})

        def observation(self) -> Any:
            return {"pile": np.int64(self.pile)}

    check_masked_env(Nested())


def test_the_action_space_of_the_env_is_left_alone() -> None:
    env, other = TakeAway(), TakeAway()
    env.action_space.seed(5)
    other.action_space.seed(5)
    check_masked_env(env)
    assert [env.action_space.sample() for _ in range(20)] == [
        other.action_space.sample() for _ in range(20)
    ]


def test_the_env_is_left_open() -> None:
    class Closing(TakeAway):
        def close(self) -> None:
            raise AssertionError("closed")

    check_masked_env(Closing())


@pytest.mark.parametrize("episodes", [0, -1])
def test_episodes_must_be_positive(episodes: int) -> None:
    with pytest.raises(ValueError, match=f"episodes must be at least 1, got {episodes}"):
        check_masked_env(TakeAway(), episodes=episodes)


def test_the_number_of_episodes_is_that_of_each_pass() -> None:
    class Counting(AlwaysLegal):
        resets = 0

        def reset(self, **arguments: Any) -> Any:
            Counting.resets += 1
            return super().reset(**arguments)

    check_masked_env(Counting(), episodes=7)
    assert Counting.resets == 2 * 7  # recorded and replayed; nothing illegal to try


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"illegal_action": "lose"},
        {"observation": "table", "rules": {"hand_size": 3, "eager_reshuffle": True}},
        {"objective": {"win": 1.0, "keys": 1.0}, "shaping": "key_spies"},
        {"rules": {"hand_size": 8, "idle_ace": False}},
        {"max_episode_steps": 15},
    ],
    ids=str,
)
@pytest.mark.parametrize("wrapped", [True, False])
def test_deck_of_spies_conforms(arguments: dict[str, Any], wrapped: bool) -> None:
    env = gym.make("DeckOfSpies-v0", **arguments)
    check_masked_env(env if wrapped else env.unwrapped, episodes=10, seed=3)
