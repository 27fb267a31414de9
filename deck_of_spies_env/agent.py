"""The agent protocol: observation and mask in, action out, for one game or for a batch.

An agent never sees the game's state, only what its seat may know; a planner rebuilds the position
from a ``recall`` observation and plays futures with its own random stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Actions = npt.NDArray[np.int64]


@runtime_checkable
class Agent(Protocol):
    """Anything that chooses legal actions."""

    def reset(self, seed: int) -> None:
        """Start anew with a seed for whatever the agent leaves to chance."""
        ...

    def act(
        self, observation: npt.NDArray[Any], action_mask: npt.NDArray[Any]
    ) -> Actions | np.int64:
        """Choose an action.

        Args:
            observation: shape (d,) for one game or (N, d) for a batch.
            action_mask: shape (n,) or (N, n), bool or 0/1; True where the action is legal.

        Returns:
            One int64, or int64 of shape (N,).
        """
        ...


@runtime_checkable
class CompiledAgent(Agent, Protocol):
    """An agent whose choices are also to be had as a compiled policy, for whole games at once.

    Attributes:
        compiled_policy: the name of a policy or a function compiled by Numba, as ``play_out`` takes
            it (see ``solitaire.rollouts``). It must choose as ``act`` does.
    """

    compiled_policy: str | Callable[..., Any]


@runtime_checkable
class ProbabilisticAgent(Agent, Protocol):
    """An agent that can tell how likely it finds each action."""

    def probabilities(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.floating[Any]]:
        """Its policy, float (N, n): rows add up to 1, illegal actions have 0.

        ``act`` may still always take the likeliest.

        Args:
            observations: int8 (N, d).
            action_masks: bool (N, n), none without a legal action.
        """
        ...


@runtime_checkable
class ValuingAgent(Agent, Protocol):
    """An agent that puts a value of its own on each action, and chooses by it."""

    def values(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.floating[Any]]:
        """Its values, float (N, n), NaN for illegal actions; their unit is the agent's own.

        Args:
            observations: int8 (N, d).
            action_masks: bool (N, n), none without a legal action.
        """
        ...


class BatchAgent(ABC):
    """Base of agents that choose for a batch; one game is a batch of one.

    Subclasses implement :meth:`choose`. An agent refuses to act without a mask, or on a mask that
    allows nothing: sb3-contrib, for one, would pick uniformly among illegal actions.

    Attributes:
        rules: the rule set that the agent was made for, None for any; matches by another refuse it.
        widths: how many entries of observations and how many actions it was made for, None for any.
    """

    rules: Any = None
    widths: tuple[int, int] | None = None

    def reset(self, seed: int) -> None:  # noqa: B027 -- a default, not a duty
        """Start anew with a seed; agents that leave nothing to chance have nothing to do."""

    @abstractmethod
    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """Choose for a batch: int8 (N, d) and bool (N, n) in, int64 (N,) out."""

    def act(
        self, observation: npt.NDArray[Any], action_mask: npt.NDArray[Any]
    ) -> Actions | np.int64:
        """Choose an action, see :class:`Agent`.

        Raises:
            ValueError: no mask, a mask of another batch, one that allows no action, or widths that
                the agent was not made for.
        """
        observations, masks = checked_batch(observation, action_mask)
        found = observations.shape[1], masks.shape[1]
        if self.widths is not None and found != self.widths:
            raise ValueError(
                f"the agent was made for observations of {self.widths[0]} entries and masks of "
                f"{self.widths[1]} actions, got {found[0]} and {found[1]}"
            )
        actions = self.choose(observations, masks)
        return actions if np.ndim(observation) == 2 else np.int64(actions[0])


def checked_batch(
    observation: Any, action_mask: Any
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    """Observation and mask as a batch: int8 (N, d) and bool (N, n).

    Raises:
        ValueError: no mask, a mask of another batch, or one that allows no action.
    """
    if action_mask is None:
        raise ValueError('an agent needs the action mask: pass info["action_mask"]')
    observations = np.atleast_2d(np.asarray(observation, dtype=np.int8))
    masks = np.atleast_2d(np.asarray(action_mask)).astype(np.bool_)
    if np.ndim(observation) != np.ndim(action_mask) or len(observations) != len(masks):
        raise ValueError(
            f"observation and action mask must be of one batch, got shapes "
            f"{np.shape(observation)} and {np.shape(action_mask)}"
        )
    if masks.shape[1] == 0 or not masks.any(axis=1).all():
        raise ValueError("the action mask allows no action: is the episode over?")
    return observations, masks


def check_agent(agent: object, rules: object) -> None:
    """Refuse what is no agent, and an agent that was made for other rules than are played.

    Args:
        agent: anything; an agent without an attribute ``rules``, or with None, plays by all.
        rules: the rule set of the game.

    Raises:
        ValueError: see above; the message says what would be right.
    """
    if isinstance(agent, type) or not isinstance(agent, Agent):
        raise ValueError(f"an agent needs the methods reset and act, got {agent!r}")
    made_for = getattr(agent, "rules", None)
    if isinstance(made_for, type(rules)) and made_for != rules:
        raise ValueError(f"the agent was made for {made_for}, this game is played by {rules}")
