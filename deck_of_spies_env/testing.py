"""A conformance check for environments with action masks, this package's own or anyone's.

The promises checked are those that masked agents rely on: ``info["action_mask"]`` after a reset and
after every step, the same mask as ``action_masks()``, and actions that are accepted exactly where
the mask says so.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.utils.env_checker import data_equivalence

MAX_EPISODE_STEPS = 10_000
"""Steps after which an episode counts as endless."""

_STEP_RESULTS = 5  # observation, reward, terminated, truncated, info


class MaskedEnvError(AssertionError):
    """A broken promise of an environment with action masks; the message names which."""


def check_masked_env(env: gym.Env[Any, Any], *, episodes: int = 20, seed: int = 0) -> None:
    """Check that an environment with a discrete action space keeps its promises about masks.

    Random legal play is recorded, replayed, and replayed once more with illegal actions strewn in.
    Checked are:

    - ``info["action_mask"]`` (``int8`` of zeros and ones, shape ``(n,)``) after reset and after
      every step, equal to ``env.unwrapped.action_masks()`` (``bool``, shape ``(n,)``), with a legal
      action until the end and none at the end; after a truncation either will do, since a time
      limit cuts short what could go on;
    - observations that lie in the observation space, rewards that are finite numbers, flags that
      are booleans, and episodes that end;
    - legal actions that are accepted, and ``env.action_space.sample(mask)`` that gives such ones;
    - illegal actions that raise ``ValueError`` and change nothing: not the mask, not the
      observation handed out, and nothing that comes after. Where the first one tried ends the
      episode instead, that is taken for the environment's convention, and then every one must;
    - the same play for the same seed and actions, episodes after unseeded resets included.

    Parameters
    ----------
    env : gymnasium.Env
        The environment, wrapped or not. It is reset and stepped, and left wherever the check ends;
        it is not closed.
    episodes : int, default 20
        Number of episodes to record; the first is reset with the seed, the others without one.
    seed : int, default 0
        Seed of the environment and of the random play.

    Raises
    ------
    MaskedEnvError
        The first broken promise found. The message tells the episode, the step and what failed.
    ValueError
        `episodes` is less than 1.

    Examples
    --------
    >>> import gymnasium as gym
    >>> import deck_of_spies_env
    >>> from deck_of_spies_env.testing import check_masked_env
    >>> check_masked_env(gym.make("DeckOfSpies-v0"), episodes=2)
    """
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}")
    player = _Player(env, seed)
    recorded = player.play(episodes)
    player.replay(recorded, blame="the play is not determined by the seed and the actions")
    _check_illegal_actions(player, recorded)


@dataclass(frozen=True)
class _Moment:
    """What one reset or step gave, with everything copied.

    Attributes:
        where: episode and step, for messages.
        action: None after a reset.
        mask: int8, shape ``(n,)``.
    """

    where: str
    action: int | None
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    mask: npt.NDArray[np.int8]

    @property
    def ended(self) -> bool:
        return self.terminated or self.truncated

    def difference(self, other: _Moment) -> str | None:
        """The first part that another moment has different."""
        for name in ("observation", "reward", "terminated", "truncated", "mask"):
            if not data_equivalence(getattr(self, name), getattr(other, name), exact=True):
                return name
        return None


class _Probe(NamedTuple):
    """An illegal action that was tried, and what came of it."""

    action: int
    refused: bool
    result: Any


class _Player:
    """Plays an environment and checks everything that it hands out."""

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        space = getattr(env, "action_space", None)
        if not isinstance(space, gym.spaces.Discrete):
            raise MaskedEnvError(f"action_space must be Discrete, got {space!r}")
        if not callable(getattr(env.unwrapped, "action_masks", None)):
            raise MaskedEnvError("env.unwrapped has no method action_masks()")
        self.env = env
        self.first_action = int(space.start)
        self._num_actions = int(space.n)
        self._space = copy.deepcopy(space)  # sampling leaves the environment's own space alone
        self._space.seed(seed)
        self._seed = seed
        self._random = np.random.default_rng(seed)
        self._where = "before the first reset"
        self._handed_out: Any = None

    # --- Play -------------------------------------------------------------------------------------

    def play(self, episodes: int) -> list[_Moment]:
        """Random legal play from a seeded reset on."""
        moments: list[_Moment] = []
        for episode in range(episodes):
            moments.append(self.reset(f"episode {episode}, reset", seeded=episode == 0))
            for step in range(1, MAX_EPISODE_STEPS + 1):
                where = f"episode {episode}, step {step}"
                action = self._legal_action(moments[-1].mask)
                moments.append(self.step(where, action))
                if moments[-1].ended:
                    break
            else:
                self._fail(f"the episode has not ended after {MAX_EPISODE_STEPS} steps")
        return moments

    def replay(self, recorded: Sequence[_Moment], *, blame: str, probing: bool = False) -> None:
        """Repeat recorded play from its seeded reset on; it must come out the same.

        Args:
            recorded: moments, the first of them a reset.
            blame: what is to blame for a difference.
            probing: try an illegal action, which must raise, after every moment.
        """
        for number, moment in enumerate(recorded):
            if moment.action is None:
                repeated = self.reset(moment.where, seeded=number == 0)
            else:
                repeated = self.step(moment.where, moment.action)
            different = moment.difference(repeated)
            if different is not None:
                self._fail(f"{blame}: {different} differs from the first time")
            if probing and not moment.truncated:
                self._expect_refusal(repeated)

    def reset(self, where: str, *, seeded: bool) -> _Moment:
        """Reset, with the seed or without."""
        self._where = where
        try:
            result: Any = self.env.reset(seed=self._seed) if seeded else self.env.reset()
        except Exception as error:
            self._fail(f"reset raised {_named(error)}", error)
        if not isinstance(result, tuple) or len(result) != 2:
            self._fail(f"reset must return (observation, info), got {result!r}")
        observation, info = result
        return self._moment(None, observation, 0.0, False, False, info)

    def step(self, where: str, action: int) -> _Moment:
        """Take a legal action."""
        self._where = where
        try:
            result: Any = self.env.step(np.int64(action))
        except Exception as error:
            self._fail(f"the legal action {action} raised {_named(error)}", error)
        return self.moment_of(action, result)

    def moment_of(self, action: int, result: Any) -> _Moment:
        """The checked result of a step."""
        if not isinstance(result, tuple) or len(result) != _STEP_RESULTS:
            self._fail(
                "step must return (observation, reward, terminated, truncated, info), "
                f"got {result!r}"
            )
        observation, reward, terminated, truncated, info = result
        number = isinstance(reward, int | float | np.integer | np.floating)
        if not number or not np.isfinite(reward):
            self._fail(f"the reward must be a finite number, got {reward!r}")
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, bool | np.bool_):
                self._fail(f"{name} must be a bool, got {flag!r}")
        return self._moment(
            action, observation, float(reward), bool(terminated), bool(truncated), info
        )

    # --- Illegal actions --------------------------------------------------------------------------

    def try_illegal(self, moment: _Moment) -> _Probe:
        """Step with a random illegal action."""
        action = self.first_action + int(self._random.choice(np.flatnonzero(moment.mask == 0)))
        try:
            return _Probe(action, refused=False, result=self.env.step(np.int64(action)))
        except ValueError:
            return _Probe(action, refused=True, result=None)
        except Exception as error:
            self._fail(
                f"the illegal action {action} raised {_named(error)}, not a ValueError", error
            )

    def check_unchanged(self, action: int, moment: _Moment) -> None:
        """Check that a refused action left the mask and the observation as they were."""
        if not np.array_equal(self._masks_of_env(), moment.mask != 0):
            self._fail(f"the illegal action {action} raised, but changed action_masks()")
        if not data_equivalence(self._handed_out, moment.observation, exact=True):
            self._fail(
                f"the illegal action {action} raised, but changed the observation handed out"
            )

    def check_lost(self, probe: _Probe) -> None:
        """Check that an illegal action ended the episode."""
        if probe.refused:
            self._fail(
                f"the illegal action {probe.action} raised a ValueError, but one before it ended "
                "the episode"
            )
        if not self.moment_of(probe.action, probe.result).ended:
            self._fail(
                f"the illegal action {probe.action} was accepted: it must raise a ValueError (or "
                "end the episode, if that is the convention)"
            )

    def _expect_refusal(self, moment: _Moment) -> None:
        if np.all(moment.mask):
            return
        probe = self.try_illegal(moment)
        if not probe.refused:
            after = "after the end " if moment.terminated else ""
            self._fail(
                f"the illegal action {probe.action} was accepted {after}although one before it "
                "raised a ValueError"
            )
        self.check_unchanged(probe.action, moment)

    # --- Checks -----------------------------------------------------------------------------------

    def _moment(
        self,
        action: int | None,
        observation: Any,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Any,
    ) -> _Moment:
        mask = self._mask_of(info)
        if not np.array_equal(self._masks_of_env(), mask != 0):
            self._fail('info["action_mask"] differs from action_masks()')
        if terminated and mask.any():
            self._fail('info["action_mask"] must be all zero at the end')
        if not terminated and not truncated and not mask.any():
            self._fail('info["action_mask"] is all zero, but the episode goes on')
        if not self.env.observation_space.contains(observation):
            self._fail(f"the observation is not in observation_space: {observation!r}")
        self._handed_out = observation
        return _Moment(
            self._where,
            action,
            copy.deepcopy(observation),
            reward,
            terminated,
            truncated,
            mask.copy(),
        )

    def _mask_of(self, info: Any) -> npt.NDArray[np.int8]:
        if not isinstance(info, dict):
            self._fail(f"info must be a dict, got {info!r}")
        if "action_mask" not in info:
            self._fail('info has no "action_mask"')
        mask = info["action_mask"]
        self._check_array('info["action_mask"]', mask, np.int8)
        if not np.isin(mask, (0, 1)).all():
            self._fail(f'info["action_mask"] must hold zeros and ones only, got {mask}')
        return mask

    def _masks_of_env(self) -> npt.NDArray[np.bool_]:
        unwrapped: Any = self.env.unwrapped
        mask = unwrapped.action_masks()
        self._check_array("action_masks()", mask, np.bool_)
        return mask

    def _check_array(self, name: str, array: Any, dtype: type[np.generic]) -> None:
        if not isinstance(array, np.ndarray):
            self._fail(f"{name} must be a NumPy array, got {type(array).__name__}")
        if array.dtype != dtype:
            self._fail(f"{name} must have dtype {np.dtype(dtype)}, got {array.dtype}")
        if array.shape != (self._num_actions,):
            self._fail(f"{name} must have shape ({self._num_actions},), got {array.shape}")

    def _legal_action(self, mask: npt.NDArray[np.int8]) -> int:
        """A random legal action; what the action space samples is looked at as well."""
        try:
            sampled = int(self._space.sample(mask.copy()))
        except Exception as error:
            self._fail(f"action_space.sample(mask) raised {_named(error)}", error)
        if not self._space.contains(sampled) or not mask[sampled - self.first_action]:
            self._fail(f"action_space.sample(mask) gave the illegal action {sampled}")
        return self.first_action + int(self._random.choice(np.flatnonzero(mask)))

    def _fail(self, what: str, cause: BaseException | None = None) -> NoReturn:
        raise MaskedEnvError(f"{self._where}: {what}") from cause


def _check_illegal_actions(player: _Player, recorded: Sequence[_Moment]) -> None:
    """Check illegal actions by the convention that the first one shows."""
    points = [
        number
        for number, moment in enumerate(recorded)
        if not moment.ended and not np.all(moment.mask)
    ]
    if not points:
        return
    blame = "the play is not determined by the seed and the actions"
    player.replay(recorded[: points[0] + 1], blame=blame)
    probe = player.try_illegal(recorded[points[0]])
    if probe.refused:
        player.check_unchanged(probe.action, recorded[points[0]])
        blame = "an illegal action raised, but changed what came after"
        player.replay(recorded, blame=blame, probing=True)
        return
    player.check_lost(probe)
    episodes = sum(moment.action is None for moment in recorded)
    for point in points[1:episodes]:  # each is reached from the start, so these are early ones
        blame = "the play is not determined by the seed and the actions once an episode was lost"
        player.replay(recorded[: point + 1], blame=blame)
        player.check_lost(player.try_illegal(recorded[point]))


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
