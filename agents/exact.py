"""Exact values of small decks: the optimum, and any agent that leaves nothing to chance.

With perfect recall the game is a fully observed Markov decision process (D14). From a position with
few cards in play all positions that can follow can be listed, and backward induction gives the best
expected payment, with every action's value (Puterman, "Markov Decision Processes", 1994, section
4.5). Nothing is sampled: values are exact up to the rounding of float64 sums.

>>> solution = solve(states, rules)          # positions, dtype STATE
>>> solution.values(states)                  # under win, keys and perfect
>>> evaluate_policy(agent, states, rules).values
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents import exact_kernels as kernels
from agents.exact_kernels import DRAW, words_of
from agents.objectives import GOES_ON, payments_of, write_counts
from agents.positions import PositionAgent
from deck_of_spies_env.agent import Actions, Agent
from deck_of_spies_env.checks import check_count, check_seed
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.games import (
    OBJECTIVES,
    recall_of_states,
)
from deck_of_spies_env.solitaire.positions import check_states
from deck_of_spies_env.solitaire.rules import STATE, Rules

Objective = Mapping[str, float] | str
States = npt.NDArray[Any]
Values = npt.NDArray[np.float64]

MAX_STATES = 4_000_000
"""Draw states that a solution may hold by default: some 300 MB."""
_FIRST_CAPACITY = 1 << 12
_STATES_AT_ONCE = 1 << 14
_ASKED_TWICE = 64


class TooManyStatesError(ValueError):
    """A deck too large to be solved within the number of states allowed."""


# --- What is asked ---


def _payments(objectives: Sequence[Objective], rules: Rules) -> Values:
    """What each way to end pays: float64 (NUM_COUNTS, m), by the Key Spies that count.

    Raises:
        ValueError: no objectives, or an unknown one.
    """
    if isinstance(objectives, str | Mapping) or not objectives:
        raise ValueError(f"objectives must be a list of at least one of them, got {objectives!r}")
    return np.stack([payments_of(objective, rules) for objective in objectives], axis=1)


def clean_decisions(states: States, rules: Rules) -> States:
    """Decision states as a copy without an outcome.

    Raises:
        ValueError: other states, or one that is no decision of these rules.
    """
    if getattr(states, "dtype", None) != STATE or np.ndim(states) != 1 or not len(states):
        raise ValueError("states must be a one-dimensional array of dtype STATE, not empty")
    if (states["phase"] == game.OVER).any():
        raise ValueError("states must be decisions, in the phase act or retire")
    check_states(states, rules)
    clean = np.zeros(len(states), dtype=STATE)
    for name in STATE.names or ():
        if name != "outcome":
            clean[name] = states[name]
    return clean


def spies_left(states: States) -> npt.NDArray[np.int64]:
    """Spies to be dealt with, the one on top included, int64 (N,)."""
    return np.bitwise_count(states["spy_deck"]).astype(np.int64) + (states["spy"] != game.NO_SPY)


# --- The optimum ---


class Graph:
    """Draw states in levels of falling numbers of spies left, stored level by level.

    Attributes:
        store: of all draw states.
        count: how many there are.
        levels: (first, stop) of each level, in the order of play.
    """

    def __init__(self, starts: States, rules: Rules, max_states: int) -> None:
        self.rules = rules
        self.listing = kernels.new_listing(rules)
        self.store = kernels.new_store(_FIRST_CAPACITY)
        self.count = 0
        self.levels: list[tuple[int, int]] = []
        self._max_states = max_states
        left = spies_left(starts)
        # A retire decision after the turn's spy leads to a draw with as many spies left.
        ahead = left - (starts["phase"] == game.ACT)
        for level in range(int(ahead.max()), 0, -1):
            first = self.levels[-1][1] if self.levels else 0
            before = self.levels[-1] if self.levels else (0, 0)
            self._expand_draws(*before)
            self._expand_decisions(starts[ahead == level])
            self.levels.append((first, self.count))
            self._check_size()

    def _expand_decisions(self, starts: States) -> None:
        done, words = 0, words_of(starts)
        while done < len(starts):
            done, self.count = kernels.expand_decisions(
                words, done, self.store, self.count, self.rules.record, self.listing
            )
            if done < len(starts):
                self._grow()

    def _expand_draws(self, first: int, stop: int) -> None:
        while first < stop:
            first, self.count = kernels.expand_draws(
                first, stop, self.store, self.count, self.rules.record, self.listing
            )
            if first < stop:
                self._grow()

    def _grow(self) -> None:
        if len(self.store.states) >= self._max_states:
            raise self._too_many()
        # What a draw state had stored before room ran out lies beyond self.count; it is found anew.
        larger = kernels.new_store(2 * len(self.store.states))
        larger.words[: self.count] = self.store.words[: self.count]
        kernels.hang_up(larger, self.count)
        self.store = larger

    def _check_size(self) -> None:
        if self.count > self._max_states:
            raise self._too_many()

    def _too_many(self) -> TooManyStatesError:
        return TooManyStatesError(f"more than {self._max_states:,} draw states")

    def backed_up(self, values: Values, payments: Values, narrowing: int) -> Values:
        """One step of induction everywhere: the value of each draw state if those after it have
        ``values``.
        """
        result = np.empty_like(values)
        self._back_up(0, self.count, values, payments, narrowing, result)
        return result

    def induced(self, payments: Values, narrowing: int) -> Values:
        """Backward induction: float64 (count, m), from the last level to the first."""
        values = np.zeros((self.count, payments.shape[1]))
        for first, stop in reversed(self.levels):
            self._back_up(first, stop, values, payments, narrowing, values)
        return values

    def _back_up(
        self,
        first: int,
        stop: int,
        values: Values,
        payments: Values,
        narrowing: int,
        result: Values,
    ) -> None:
        rules, listing = self.rules.record, self.listing
        kernels.back_up(
            first, stop, self.store, values, payments, rules, listing, result, narrowing
        )


class Solution:
    """The best play from given positions, and from all that can follow them.

    Args:
        starts: shape (N,), dtype STATE, decisions.
        rules: the rule set.
        objectives: names or weights.
        max_states: draw states allowed.

    Attributes:
        rules, objectives: as given.
        payments: float64 (NUM_COUNTS, m).
        graph: all draw states.
        draw_values: float64 (count, m), the optimal value of each draw state.

    Raises:
        ValueError: see solve.
    """

    def __init__(
        self, starts: States, rules: Rules, objectives: Sequence[Objective], max_states: int
    ) -> None:
        self.rules, self.objectives = rules, tuple(objectives)
        self.payments = _payments(objectives, rules)
        self.graph = Graph(clean_decisions(starts, rules), rules, max_states)
        # A Key Spy more never pays less, unless a weight is negative.
        ascending = bool((np.diff(self.payments, axis=0) >= 0).all())
        self.draw_values = self.graph.induced(
            self.payments, kernels.MOST if ascending else kernels.BEST
        )

    @property
    def num_states(self) -> int:
        """Draw states that were valued."""
        return self.graph.count

    def action_values(self, states: States, draw_values: Values | None = None) -> Values:
        """The expected payment of each action if all play after it is the best.

        Args:
            states: shape (N,), dtype STATE, decisions that can follow the starts.
            draw_values: other values of the draw states than the optimal ones.

        Returns:
            float64 (N, n, m), NaN for illegal actions.

        Raises:
            ValueError: no decisions, or one that can't follow the starts.
        """
        states = clean_decisions(states, self.rules)
        values = self.draw_values if draw_values is None else draw_values
        num_actions = action_table(self.rules.hand_size).num_actions
        found = np.full((len(states), num_actions, values.shape[1]), np.nan)
        graph = self.graph
        kernels.write_action_values(
            words_of(states),
            *(graph.store, values, self.payments),
            *(self.rules.record, graph.listing, found),
        )
        legal = recall_of_states(states, self.rules)[1].astype(np.bool_)
        if np.isnan(found[legal]).any():
            raise ValueError("a position can't follow those that were solved")
        return found

    def values(self, states: States) -> Values:
        """The optimal expected payment of decisions, float64 (N, m); as action_values."""
        return np.nanmax(self.action_values(states), axis=1)

    def greedy_draw_values(self) -> Values:
        """The value of greedy play in each draw state, float64 (count, m)."""
        return self.graph.induced(self.payments, kernels.GREEDY)


def solve(
    starts: States,
    rules: Rules | Mapping[str, Any] | None = None,
    objectives: Sequence[Objective] = OBJECTIVES,
    *,
    max_states: int = MAX_STATES,
) -> Solution:
    """Solve positions by backward induction over all that can follow them.

    Args:
        starts: shape (N,), dtype STATE, decisions.
        rules: the rule set, a mapping of its fields, or None for the default.
        objectives: names or weights, each solved for by itself.
        max_states: draw states allowed, at least 1.

    Raises:
        ValueError: other states, bad rules, no objectives or an unknown one, or a bad limit.
        TooManyStatesError: more draw states than allowed.
    """
    return Solution(starts, Rules.of(rules), objectives, check_count("max_states", max_states))


class ExactAgent(PositionAgent):
    """The best play of a solution, for one of its objectives; of equal actions the first.

    Args:
        solution: of the positions to be played from.
        objective: index into its objectives.

    Raises:
        ValueError: no such objective.
    """

    def __init__(self, solution: Solution, objective: int = 0) -> None:
        if objective not in range(len(solution.objectives)):
            raise ValueError(
                f"objective must be an index into {solution.objectives}, got {objective!r}"
            )
        super().__init__(solution.rules)
        self._solution, self._objective = solution, objective

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The best action of each position.

        Raises:
            ValueError: a position that can't follow those that were solved.
        """
        values = self._solution.action_values(self.positions(observations))
        return np.nanargmax(values[:, :, self._objective], axis=1)


# --- An agent ---


class PolicyValues(NamedTuple):
    """What an agent's play is worth.

    Attributes:
        values: float64 (N, m), its expected payment from each start.
        num_decisions: how many positions it was asked about.
    """

    values: Values
    num_decisions: int


def _distinct(states: States) -> tuple[States, npt.NDArray[np.int64]]:
    """The different ones among clean states, and where each of all states is among them."""
    capacity = 1 << max(len(states) - 1, 1).bit_length()
    store = kernels.new_store(capacity)
    inverse = np.empty(len(states), dtype=np.int64)
    count = kernels.intern_all(store, words_of(states), inverse)
    return store.states[:count].copy(), inverse


def _choices(agent: Agent, states: States, rules: Rules) -> npt.NDArray[np.int64]:
    """What an agent does in each state, int64 (N,).

    Raises:
        ValueError: an action that is not legal.
    """
    chosen = np.zeros(len(states), dtype=np.int64)
    for first in range(0, len(states), _STATES_AT_ONCE):
        part = slice(first, first + _STATES_AT_ONCE)
        observations, masks = recall_of_states(states[part], rules)
        chosen[part] = agent.act(observations, masks.copy())
        if not masks[np.arange(len(masks)), chosen[part]].all():
            raise ValueError("the agent chose an action that is not legal")
    return chosen


class _Evaluation:
    """One agent's play from some starts, evaluated turn by turn."""

    def __init__(
        self, agent: Agent, rules: Rules, payments: Values, max_states: int, seed: int | None
    ) -> None:
        self.num_decisions = self._asked = 0
        self._agent, self._rules, self._payments = agent, rules, payments
        self._seed = seed
        agent.reset(0 if seed is None else seed)
        self._max_states = max_states
        self._listing = kernels.new_listing(rules)

    def value(self, states: States) -> Values:
        """The value of states in any phase but OVER, float64 (N, m)."""
        if not len(states):
            return np.empty((0, self._payments.shape[1]))
        distinct, where = _distinct(states)
        values = np.empty((len(distinct), self._payments.shape[1]))
        drawing = distinct["phase"] == DRAW
        for chosen, follow in ((~drawing, self._decided), (drawing, self._drawn)):
            if chosen.any():
                values[chosen] = self._mean(*follow(distinct[chosen]))
        return values[where]

    def _mean(self, children: States, offsets: npt.NDArray[np.int64]) -> Values:
        """The mean over the children of each state; each has at least one."""
        leaves = np.empty(len(children), dtype=np.int64)
        write_counts(children, leaves)
        going_on = leaves == GOES_ON
        values = self._payments[np.where(going_on, 0, leaves)]
        values[going_on] = self.value(children[going_on])
        return np.add.reduceat(values, offsets[:-1]) / np.diff(offsets)[:, None]

    def _decided(self, states: States) -> tuple[States, npt.NDArray[np.int64]]:
        self.num_decisions += len(states)
        actions = _choices(self._agent, states, self._rules)
        self._check_for_chance(states[:_ASKED_TWICE], actions[:_ASKED_TWICE])
        offsets = np.empty(len(states) + 1, dtype=np.int64)
        outcomes = np.zeros(kernels.MOST_OUTCOMES * len(states), dtype=STATE)
        kernels.write_outcomes(
            words_of(states),
            actions,
            self._rules.record,
            self._listing,
            offsets,
            words_of(outcomes),
        )
        return outcomes[: offsets[-1]], offsets

    def _check_for_chance(self, states: States, actions: npt.NDArray[np.int64]) -> None:
        """Raise ValueError if the agent does something else when it is asked once more.

        It is asked in another order, and by another seed unless one is given.
        """
        self._asked += 1
        self._agent.reset(self._asked if self._seed is None else self._seed)
        if (_choices(self._agent, states[::-1], self._rules)[::-1] != actions).any():
            raise ValueError("the agent plays by chance, which can't be evaluated exactly")

    def _drawn(self, states: States) -> tuple[States, npt.NDArray[np.int64]]:
        counts = np.empty(len(states), dtype=np.int64)
        rules, listing, words = self._rules.record, self._listing, words_of(states)
        kernels.count_draws(words, rules, listing, counts)
        offsets = np.concatenate([[0], counts.cumsum()])
        if offsets[-1] > self._max_states:
            raise TooManyStatesError(f"more than {self._max_states:,} draws in one turn")
        drawn = np.zeros(offsets[-1], dtype=STATE)
        kernels.draw_all(words, rules, listing, drawn)
        return drawn, offsets


def evaluate_policy(
    agent: Agent,
    starts: States,
    rules: Rules | Mapping[str, Any] | None = None,
    objectives: Sequence[Objective] = OBJECTIVES,
    *,
    max_states: int = MAX_STATES,
    seed: int | None = None,
) -> PolicyValues:
    """The exact expected payments of an agent that leaves nothing to chance.

    It is asked once about each position that its play can lead to, in batches: all positions of a
    turn at a time. What it does must depend on the position alone, or with ``seed`` on that and the
    seed; about some positions it is asked once more to see whether it does.

    Args:
        agent: any agent that reads ``recall`` observations.
        starts: shape (N,), dtype STATE, decisions. Those with equally many spies left share
            batches.
        rules, objectives: as in solve.
        max_states: positions allowed in one turn, at least 1.
        seed: that the agent is reset to, for one whose chance follows from its seed and the
            position (``search``, ``rollout``): what it is worth by this seed is evaluated. None for
            agents without chance.

    Raises:
        ValueError: other states, bad rules, no objectives or an unknown one, a bad limit or seed,
            an action that is not legal, or an agent that plays by chance.
        TooManyStatesError: more positions than allowed.
    """
    rules = Rules.of(rules)
    max_states = check_count("max_states", max_states)
    seed = None if seed is None else check_seed(seed)
    evaluation = _Evaluation(agent, rules, _payments(objectives, rules), max_states, seed)
    values = evaluation.value(clean_decisions(starts, rules))
    return PolicyValues(values, evaluation.num_decisions)
