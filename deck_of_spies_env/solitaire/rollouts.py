"""Whole games inside one kernel: play N games to the end under a compiled policy.

No observation is made and nothing returns to Python between two decisions, so a decision costs some
forty nanoseconds. ``play_out`` is for playouts in planning, for judging compiled policies, and for
whatever needs millions of games.

A policy is a function compiled by Numba, ``(state, rules, legal, word) -> action`` as described in
``solitaire.policies``; the bots there go by name. What a policy leaves to chance comes from a
stream of its own, which belongs to the game's record like the others: equal snapshots end equally,
whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.core.registry import CPUDispatcher

from deck_of_spies_env.checks import check_count, check_seed
from deck_of_spies_env.compiled import compiling, entry_point, kernel
from deck_of_spies_env.random_streams import choice_stream, fork_streams, mix
from deck_of_spies_env.solitaire import actions as table
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import IllegalActionError
from deck_of_spies_env.solitaire.explanations import why_illegal
from deck_of_spies_env.solitaire.games import (
    SNAPSHOT,
    Games,
    check_snapshots,
    judge_games,
    play_action,
)
from deck_of_spies_env.solitaire.policies import greedy_action, legal_words, random_action
from deck_of_spies_env.solitaire.rules import RULES, STATE, Rules
from deck_of_spies_env.threads import parts_of, share_out

POLICIES = ("random", "greedy")
"""Policies that go by name."""

Policy = str | Callable[..., Any]
PlayOutKernel = Callable[..., int]


@dataclass(frozen=True, eq=False)
class PlayOuts:
    """How N games ended, arrays of shape (N,) in the order of the snapshots.

    Attributes:
        outcomes: int8, indices into ``rules.OUTCOMES``.
        key_spies: int64, the Key Spies that count, 0 after a loss by D8.
        turns: int64, spies dealt with since the start of the game.
        decisions: int64, actions taken from the snapshot on.
    """

    outcomes: npt.NDArray[np.int8]
    key_spies: npt.NDArray[np.int64]
    turns: npt.NDArray[np.int64]
    decisions: npt.NDArray[np.int64]

    @property
    def wins(self) -> npt.NDArray[np.bool_]:
        """bool (N,): which games were won."""
        return self.outcomes == game.WIN


class IllegalPolicyError(IllegalActionError):
    """A policy chose an action that is not legal.

    Attributes:
        index: of the game.
        why: in words.
    """

    def __init__(self, index: int, why: str) -> None:
        super().__init__(f"game {index}: {why}")
        self.index, self.why = index, why


@kernel
def _play_out(record: Any, rules: Any, policy: Any, legal: Any) -> int:
    """Play a game to its end and return the number of decisions, negative if one was illegal.

    After an illegal action ``action`` the record stays as it was before it, and -1 - action is
    returned if the table has it, else the smallest number.
    """
    decisions = 0
    position = choice_stream(record.streams)
    while record.state.phase != game.OVER:
        table.write_legal_bits(record.state, rules, legal)
        position += record.streams.gamma
        action = int(policy(record.state, rules, legal, mix(position)))
        if not 0 <= action <= table.pass_action(rules):
            return _NO_ACTION
        if not table.allows(legal, action):
            return -1 - action
        play_action(record, rules, action)
        decisions += 1
    return decisions


_NO_ACTION = -(1 << 62)


@kernel
def _play_all_out(
    records: Any, rules: Any, policy: Any, legal: Any, decisions: Any, first: int, stop: int
) -> int:
    """Play games to the end under a policy, up to the first illegal action.

    Args:
        records: shape (N,), dtype SNAPSHOT; changed in place.
        rules: shape (1,), dtype RULES.
        policy: a compiled policy.
        legal: uint64 (num_words,), room for one mask of bits.
        decisions: int64 (N,), overwritten with the result of each game (see _play_out).
        first, stop: the games of this call.

    Returns:
        The game with the illegal action, or ``stop``.
    """
    for i in range(first, stop):
        decisions[i] = _play_out(records[i], rules[0], policy, legal)
        if decisions[i] < 0:
            return i
    return stop


@entry_point
def play_out_randomly(
    records: Any, rules: Any, legal: Any, decisions: Any, first: int, stop: int
) -> int:
    """Random play to the end; as _play_all_out."""
    return _play_all_out(records, rules, random_action, legal, decisions, first, stop)


@entry_point
def play_out_greedily(
    records: Any, rules: Any, legal: Any, decisions: Any, first: int, stop: int
) -> int:
    """Greedy play to the end; as _play_all_out."""
    return _play_all_out(records, rules, greedy_action, legal, decisions, first, stop)


@cache
def _compiled(policy: Policy) -> PlayOutKernel:
    """The kernel that plays games out under a policy, compiled for it."""
    rules = Rules()
    none = np.zeros(0, dtype=SNAPSHOT), rules.record, legal_words(rules)
    if isinstance(policy, str):
        chosen = {"random": play_out_randomly, "greedy": play_out_greedily}[policy]
        with compiling():
            chosen(*none, np.zeros(0, dtype=np.int64), 0, 0)
    else:
        _check_signature(policy)
        chosen = _with_policy(policy)
        chosen(*none, np.zeros(0, dtype=np.int64), 0, 0)
    return chosen


def _check_signature(policy: Any) -> None:
    """Raise ValueError unless a compiled function takes what a policy is given, for an integer."""
    snapshot: Any = numba.from_dtype(SNAPSHOT)
    arguments = (
        snapshot.typeof("state"),
        numba.from_dtype(RULES),
        types.Array(types.uint64, 1, "C"),
        types.uint64,
    )
    expected = "policy must take (state, rules, legal, word) and return an integer"
    try:
        policy.compile(arguments)
        returned = policy.overloads[arguments].signature.return_type
    except Exception as error:  # Numba raises many kinds for code that it can't compile
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{expected}; it can't be compiled for that: {reason}") from None
    if not isinstance(returned, types.Integer):
        raise ValueError(f"{expected}; it returns {returned}")


def _with_policy(policy: Callable[..., Any]) -> PlayOutKernel:
    # Not cached on disk: Numba can't tell whether the policy of another run is the same function.
    @numba.njit(error_model="numpy", nogil=True)
    def play_out_with_policy(
        records: Any, rules: Any, legal: Any, decisions: Any, first: int, stop: int
    ) -> int:
        return _play_all_out(records, rules, policy, legal, decisions, first, stop)

    return play_out_with_policy


def compile_policy(policy: Policy) -> None:
    """Compile or load what plays games out under a policy, if that has not been done.

    Raises:
        ValueError: neither a policy's name nor a function compiled by Numba.
    """
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise ValueError(f"unknown policy {policy!r}; there are {', '.join(POLICIES)}")
    elif not isinstance(policy, CPUDispatcher):
        raise ValueError(
            f"policy must be one of {', '.join(POLICIES)} or a function compiled by numba.njit, "
            f"got {policy!r}"
        )
    _compiled(policy)


def deal_snapshots(
    seeds: Sequence[int], rules: Rules | Mapping[str, Any] | None = None
) -> npt.NDArray[Any]:
    """Games just dealt, episode 0 of each seed: shape (N,), dtype SNAPSHOT.

    Args:
        seeds: non-negative integers, at least one.
        rules: a rule set, a mapping of its fields, or None for the default.

    Raises:
        ValueError: no seeds, a negative one, or bad rules.
    """
    try:
        seeds = [check_seed(seed) for seed in seeds]
    except TypeError:
        raise ValueError(f"seeds must be a sequence of whole numbers, got {seeds!r}") from None
    except ValueError as error:
        raise ValueError(f"seeds must be whole numbers: {error}") from None
    if not seeds:
        raise ValueError("there must be at least one seed")
    games = Games(len(seeds), rules=rules)
    games.seed(range(len(seeds)), seeds)
    games.deal()
    return games.snapshots()


def fork_snapshots(states: npt.NDArray[Any], seed: int, copies: int = 1) -> npt.NDArray[Any]:
    """Positions with fresh random streams, for planning: no game's own future is among them.

    Args:
        states: shape (N,) or (), dtype STATE: the field ``state`` of what get_state gives, or of
            ``states_from_recall``.
        seed: non-negative integer. The streams depend on it and on the place in the result alone,
            so that other positions can be made to meet the same chance (common random numbers).
        copies: how many of each position, one after the other.

    Returns:
        Shape (N * copies,), dtype SNAPSHOT.

    Raises:
        ValueError: other states, a seed that is no whole number or negative, or copies below 1.
    """
    if getattr(states, "dtype", None) != STATE or np.ndim(states) > 1:
        raise ValueError(
            "states must have dtype STATE and one dimension at most: pass snapshots['state']"
        )
    copies = check_count("copies", copies)
    repeated = np.repeat(np.asarray(states, dtype=STATE).reshape(-1), copies)
    streams = fork_streams(check_seed(seed), len(repeated))
    snapshots = np.zeros(len(repeated), dtype=SNAPSHOT)
    snapshots["state"], snapshots["streams"] = repeated, streams
    return snapshots


def play_out(
    snapshots: npt.NDArray[Any],
    policy: Policy = "random",
    rules: Rules | Mapping[str, Any] | None = None,
    num_threads: int = 1,
) -> PlayOuts:
    """Play games to the end under a policy.

    A policy of one's own is a function compiled by ``numba.njit``, ``(state, rules, legal, word) ->
    action``. ``state`` has the fields ``hand``, ``draw_deck``, ``draw_discard``, ``spy_deck``,
    ``spy_discard`` (card masks), ``spy`` (card index or -1) and ``phase`` (ACT or RETIRE of
    ``solitaire.rules``); ``rules`` those of :class:`Rules`; ``legal`` is the mask of legal actions
    as 64-bit words, to be read by ``num_legal``, ``nth_legal`` and ``allows`` of
    ``solitaire.actions``; ``word`` is 64 random bits, fresh for each decision. It must not write to
    any of them.

    Args:
        snapshots: shape (N,), dtype SNAPSHOT: from deal_snapshots or fork_snapshots, or get_state
            of a vector environment. Left as they are.
        policy: ``"random"``, ``"greedy"``, or a function as above; each new one takes a second or
            more to compile.
        rules: the rule set that the games are played by; snapshots do not hold it.
        num_threads: threads that share the games; the result is the same for any number.

    Raises:
        ValueError: a bad argument.
        IllegalPolicyError: the policy chose an action that is not legal; an IllegalActionError.
    """
    compile_policy(policy)
    num_threads = check_count("num_threads", num_threads)
    rules = Rules.of(rules)
    if getattr(snapshots, "dtype", None) != SNAPSHOT or snapshots.ndim != 1 or not len(snapshots):
        raise ValueError("snapshots must be a one-dimensional array of dtype SNAPSHOT, not empty")
    records = np.ascontiguousarray(snapshots).view(np.uint64).copy().view(SNAPSHOT)
    check_snapshots(records, rules)
    kernel = _compiled(policy)
    decisions = np.zeros(len(records), dtype=np.int64)
    parts = parts_of(len(records), num_threads)

    def play(first: int, stop: int) -> int:
        return kernel(records, rules.record, legal_words(rules), decisions, first, stop)

    for played, (_, stop) in zip(share_out(play, parts), parts, strict=True):
        if played < stop:
            _refuse(records["state"][played], rules, int(decisions[played]), played)
    outcomes = np.empty(len(records), dtype=np.int8)
    key_spies, turns = np.empty_like(decisions), np.empty_like(decisions)
    judge_games(records, outcomes, key_spies, turns)
    return PlayOuts(outcomes, key_spies, turns, decisions)


def _refuse(state: Any, rules: Rules, result: int, index: int) -> None:
    if result == _NO_ACTION:
        raise IllegalPolicyError(index, "the policy returned an action that does not exist")
    raise IllegalPolicyError(index, why_illegal(state, rules, -1 - result))
