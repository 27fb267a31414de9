"""``search``: looks one chance ahead over any value function.

The plays that promise most by the value function itself are tried. Where chance has few outcomes,
as after a play that leaves a pair to retire and near the end of a game, all of them are judged and
their mean is exact. Else some are drawn, and half of the plays, those with the lower means, are
dropped after each round while the number of samples doubles (sequential halving: Karnin, Koren and
Somekh, "Almost optimal exploration in multi-armed bandits", 2013). All plays of a position meet the
same chance (common random numbers), from streams that depend on the agent's seed and on the
position alone, never on the game's own.

Where the value function is a policy with a critic, a play's mean is raised by a share of the
logarithm of its probability. So the critic, whose errors are large beside the differences of plays,
overrules the policy only where it gains much: the policy is improved under a penalty on divergence
from it (Grill et al., "Monte-Carlo tree search as regularized policy optimization", 2020).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from agents import AgentError
from agents.positions import PositionAgent
from deck_of_spies_env.agent import Actions
from deck_of_spies_env.random_streams import fork_streams
from deck_of_spies_env.solitaire.futures import (
    LISTED,
    compile_futures,
    count_futures,
    list_futures,
    sample_futures,
    write_keys,
)
from deck_of_spies_env.solitaire.games import SNAPSHOT
from deck_of_spies_env.solitaire.rules import OVER, STATE, Rules

DEFAULT_PLAYS, DEFAULT_SAMPLES, DEFAULT_DEPTH = 3, 16, 1
DEFAULT_PRIOR = {"afterstate": 0.0, "ppo": 0.01}
MOST_DEPTH = 2
_INNER_PLAYS, _INNER_SAMPLES = 2, 8
_POSITIONS_AT_ONCE = 32


class ValueFunction(Protocol):
    """What a search asks of a network: any agent with opinions of plays and of positions."""

    def play_values(
        self, states: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """How good each legal action seems, float32 (N, n), -inf if illegal; and the best ones.

        Only differences within a position matter, and their order alone if no prior is wanted.
        """
        ...

    def position_values(self, states: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """What positions are worth, float32 (N,); some may be over."""
        ...


class LookAhead:
    """One chance ahead of positions, by a value function.

    Args:
        value: the value function.
        rules: the rule set.
        plays: how many plays of a position are tried, the most promising ones.
        samples: futures of each of them in the first round; after it as many as so far.
        prior: share of how good a play seems that is added to the mean value of its futures.
        record: shape (1,), dtype SNAPSHOT, whose streams the futures come from.
    """

    def __init__(
        self,
        value: ValueFunction,
        rules: Rules,
        plays: int,
        samples: int,
        prior: float,
        record: npt.NDArray[Any],
    ) -> None:
        self._value, self._rules, self._record = value, rules, record
        self._plays, self._samples, self._prior = plays, samples, prior

    def best(
        self, states: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The best action of each position, and the mean value of its futures.

        Args:
            states: shape (N,), dtype STATE, none over.

        Returns:
            int64 (N,), and float64 (N,) with NaN where only one action is legal: forced actions
            are not looked at.
        """
        seeming, best = self._value.play_values(states)
        rows, actions = _most_promising(seeming, self._plays)
        head_start = self._prior * seeming[rows, actions].astype(np.float64)
        worth = np.full(len(states), np.nan)
        keys = np.full(len(states), self._record["streams"]["key"][0])
        write_keys(states, keys)
        means, exact = self._exact_means(states, rows, actions)
        left = np.arange(len(rows))  # the plays that are still in question
        num_taken, samples = 0, self._samples
        while left.size:
            drawn = left[~exact[left]]
            if drawn.size:
                more = self._sampled(states, keys, rows[drawn], actions[drawn], num_taken, samples)
                means[drawn] = (num_taken * means[drawn] + more) / (num_taken + samples)
            num_taken += samples
            samples = num_taken
            left = left[_better_half(rows[left], (means + head_start)[left])]
            alone = np.bincount(rows[left], minlength=len(states))[rows[left]] == 1
            best[rows[left[alone]]] = actions[left[alone]]
            worth[rows[left[alone]]] = means[left[alone]]
            left = left[~alone]
        return best, worth

    def _sampled(
        self,
        states: npt.NDArray[Any],
        keys: npt.NDArray[np.uint64],
        rows: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
        first: int,
        samples: int,
    ) -> npt.NDArray[np.float64]:
        """Sums over the values of some futures of each play."""
        futures = np.zeros((len(rows), samples), STATE)
        rules = self._rules.record
        sample_futures(states, keys, rows, actions, rules, first, self._record.copy(), futures)
        values = self._value.position_values(futures.reshape(-1))
        return values.reshape(futures.shape).sum(axis=1, dtype=np.float64)

    def _exact_means(
        self,
        states: npt.NDArray[Any],
        rows: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Mean value of the futures of each play that has few, and which ones these are."""
        work, counts = np.zeros(2, STATE), np.zeros(len(rows), np.int64)
        means, rules = np.zeros(len(rows)), self._rules.record
        count_futures(states, rows, actions, rules, work, counts)
        exact = counts <= LISTED * self._samples
        if exact.any():
            listed = rows[exact], actions[exact], rules, counts[exact]
            futures = np.zeros(counts[exact].sum(), STATE)
            list_futures(states, *listed, self._record, work, futures)
            starts = np.cumsum(counts[exact]) - counts[exact]
            values = self._value.position_values(futures).astype(np.float64)
            means[exact] = np.add.reduceat(values, starts) / counts[exact]
        return means, exact


class Deeper:
    """A value function that looks ahead before it judges a position.

    Args:
        value: the value function that it begins and ends with.
        look_ahead: over the same value function.
    """

    def __init__(self, value: ValueFunction, look_ahead: LookAhead) -> None:
        self._value, self._look_ahead = value, look_ahead

    def play_values(
        self, states: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """As of the value function itself."""
        return self._value.play_values(states)

    def position_values(self, states: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """What the best play's futures are worth in the mean, float32 (N,)."""
        values = np.full(len(states), np.nan)
        going_on = np.flatnonzero(states["phase"] != OVER)
        if going_on.size:
            values[going_on] = self._look_ahead.best(states[going_on])[1]
        plain = np.isnan(values)  # over, or forced
        if plain.any():
            values[plain] = self._value.position_values(states[plain])
        return values.astype(np.float32)


class SearchAgent(PositionAgent):
    """Chance look-ahead from ``recall`` observations.

    Args:
        value: the value function.
        rules: the rule set to be played.
        plays: how many plays of a position are tried, the most promising ones.
        samples: futures of each of them in the first round.
        depth: chances looked ahead: 1, or 2 to judge each future by a small search of its own.
        prior: share of how good a play seems to the value function that is added to the mean value
            of its futures. For a policy, whose opinions are logarithms of probabilities.
    """

    def __init__(
        self,
        value: ValueFunction,
        rules: Rules,
        plays: int = DEFAULT_PLAYS,
        samples: int = DEFAULT_SAMPLES,
        depth: int = DEFAULT_DEPTH,
        prior: float = 0.0,
    ) -> None:
        super().__init__(rules)
        compile_futures()
        self._record = np.zeros(1, dtype=SNAPSHOT)
        if depth == MOST_DEPTH:
            inner = LookAhead(value, rules, _INNER_PLAYS, _INNER_SAMPLES, prior, self._record)
            value = Deeper(value, inner)
        self._look_ahead = LookAhead(value, rules, plays, samples, prior, self._record)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start anew with a seed for the futures; it is 0 for an agent just made.

        Raises:
            ValueError: the seed is negative.
        """
        self._record["streams"] = fork_streams(seed, 1)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The action of each position with the best futures."""
        states = self.positions(observations)
        parts = np.split(states, range(_POSITIONS_AT_ONCE, len(states), _POSITIONS_AT_ONCE))
        return np.concatenate([self._look_ahead.best(part)[0] for part in parts])


def _most_promising(
    seeming: npt.NDArray[np.float32], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows and actions of the best ``count`` plays of each position that has a choice."""
    order = np.argsort(-seeming, axis=1, kind="stable")[:, :count]
    legal = np.isfinite(np.take_along_axis(seeming, order, axis=1))
    legal &= legal.sum(axis=1, keepdims=True) > 1
    rows, places = np.nonzero(legal)
    return rows, order[rows, places]


def _better_half(
    rows: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Places of the better half of the plays of each position, by position; half is rounded up."""
    order = np.lexsort((-scores, rows))
    sizes = np.bincount(rows)[rows[order]]
    starts = np.searchsorted(rows[order], rows[order])
    return order[np.arange(len(rows)) - starts < (sizes + 1) // 2]


def make(
    rules: Rules,
    path: Path | None,
    value: str = "afterstate",
    objective: str | None = None,
    plays: int = DEFAULT_PLAYS,
    samples: int = DEFAULT_SAMPLES,
    depth: int = DEFAULT_DEPTH,
    prior: float | None = None,
) -> SearchAgent:
    """The agent over a value function; ``prior`` is by default that of DEFAULT_PRIOR.

    Raises:
        AgentError: no such value function, or its model can't be used.
    """
    function = _value_function(value, rules, objective)
    if prior is None:
        prior = DEFAULT_PRIOR[value.partition("=")[0]]
    return SearchAgent(function, rules, plays, samples, depth, prior)


def _value_function(spec: str, rules: Rules, objective: str | None) -> ValueFunction:
    name, separator, written = spec.partition("=")
    if separator and not written:
        raise AgentError(f"search: the path of {name} is missing")
    path = Path(written) if written else None
    if name == "afterstate":
        return import_module("agents.afterstate").value_function(rules, path, objective)
    if name != "ppo":
        raise AgentError(f"search: unknown value function {name!r}; there are afterstate, ppo")
    return import_module("agents.ppo").value_function(rules, path, objective)
