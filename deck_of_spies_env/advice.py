"""Advice on the plays of a position: what each is worth, and what an agent thinks of it.

In Deck of Spies there are two judges of plays. By ``"values"`` a play is worth what the positions
that can follow it are worth to the frozen value network (``evaluation/values.py``): all of them
where they are few, else a sample under fresh chance that is common to all plays of a position. That
is what *strong* play would come to on the average after the play, as far as the network can tell:
it has learnt from strong play under the default rules, and knows little of positions that this
avoids. By ``"playouts"`` a play is worth what the bot ``greedy`` comes to after it, in games played
out to the end: plain play, but true of any position and any rules.

In Skirmish a play is worth its mean payoff when the hidden cards are dealt anew and all seats play
on as the bot ``rank`` does. That is no equilibrium: it tells how a rank fares against plain play.

Both look at what the player can know and no further: positions that it can't tell apart get the
same advice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Agent, ProbabilisticAgent, ValuingAgent
from deck_of_spies_env.checks import check_count, check_seed
from deck_of_spies_env.compiled import compiling
from deck_of_spies_env.evaluation.values import position_values
from deck_of_spies_env.random_streams import fork_streams, seed_streams
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS
from deck_of_spies_env.skirmish.bots import make_bot
from deck_of_spies_env.skirmish.games import Games as Tables
from deck_of_spies_env.skirmish.games import compile_engine as compile_tables
from deck_of_spies_env.skirmish.games import read_observations, show_states
from deck_of_spies_env.skirmish.observations import observation_high as seat_observation_high
from deck_of_spies_env.skirmish.rules import MAX_PLAYERS, MIN_PLAYERS
from deck_of_spies_env.skirmish.rules import STATE as TABLE_STATE
from deck_of_spies_env.skirmish.rules import STREAMS as TABLE_STREAMS
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.skirmish.tables import compile_redeals
from deck_of_spies_env.skirmish.views import redeal_views
from deck_of_spies_env.solitaire.futures import look_ahead
from deck_of_spies_env.solitaire.games import SNAPSHOT, Games, compile_engine, recall_of_states
from deck_of_spies_env.solitaire.positions import check_states
from deck_of_spies_env.solitaire.rollouts import play_out
from deck_of_spies_env.solitaire.rules import OVER, STATE, Rules

DEFAULT_SAMPLES = 64
JUDGES = ("values", "playouts")

_POSITIONS_AT_ONCE = 32
_BOT = "rank"


@dataclass(frozen=True, eq=False)
class Advice:
    """What there is to say on the k legal actions of a position of Deck of Spies.

    Attributes:
        actions: int64 (k,), ascending.
        wins: float64 (k,), probability of a win after each.
        wins_errors: float64 (k,), standard errors of the differences to the action of most
            ``wins``, by the drawing of futures; 0 where they were all listed.
        key_spies: float64 (k,), expected Key Spies that count, 0-12.
        key_spies_errors: float64 (k,), likewise of ``key_spies``.
        chosen: the action that the agent takes, None without an agent.
        probabilities: float64 (k,), how likely the agent finds each, adding up to 1; None if it
            does not tell (``agent.ProbabilisticAgent``).
        own_values: float64 (k,), the agent's own values in a unit of its own; None if it has none
            (``agent.ValuingAgent``).
    """

    actions: npt.NDArray[np.int64]
    wins: npt.NDArray[np.float64]
    wins_errors: npt.NDArray[np.float64]
    key_spies: npt.NDArray[np.float64]
    key_spies_errors: npt.NDArray[np.float64]
    chosen: int | None
    probabilities: npt.NDArray[np.float64] | None
    own_values: npt.NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class SeatAdvice:
    """What there is to say on the k legal actions of a seat of Skirmish.

    Attributes:
        actions: int64 (k,), ascending ranks, or *wait* alone.
        payoffs: float64 (k,), mean payoff after each (S12).
        errors: float64 (k,), standard errors of the differences to the best.
        chosen, probabilities, own_values: as in :class:`Advice`.
    """

    actions: npt.NDArray[np.int64]
    payoffs: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]
    chosen: int | None
    probabilities: npt.NDArray[np.float64] | None
    own_values: npt.NDArray[np.float64] | None


def advise(
    agent: Agent | None,
    snapshot: npt.NDArray[Any],
    rules: Rules | Mapping[str, Any] | None = None,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
    judge: str | None = None,
) -> Advice:
    """Advice on one position, see :func:`advise_all`.

    Args:
        agent: whose opinion is asked too, from ``recall`` observations; None for nobody's.
        snapshot: shape () or (1,), dtype SNAPSHOT (``get_state()``) or STATE.
        rules: the rule set that is played.
        samples: futures drawn of each play, at least 2.
        seed: of the chance that the futures meet.
        judge: one of JUDGES; None for values under the default rules, and play-outs under others.

    Raises:
        ValueError: no position, one that is over, or a bad argument.
    """
    snapshots = np.reshape(snapshot, 1)
    return advise_all(agent, snapshots, rules, samples=samples, seed=seed, judge=judge)[0]


def advise_all(
    agent: Agent | None,
    snapshots: npt.NDArray[Any],
    rules: Rules | Mapping[str, Any] | None = None,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
    judge: str | None = None,
) -> list[Advice]:
    """Advice on many positions; none depends on what is beside it.

    An agent that plays by chance is asked for one choice, with its random numbers moving on.

    Args:
        agent: whose opinion is asked too, from ``recall`` observations; None for nobody's.
        snapshots: shape (N,), dtype SNAPSHOT or STATE, none over.
        rules: the rule set that is played.
        samples: futures drawn of each play, at least 2.
        seed: of the chance that the futures meet.
        judge: one of JUDGES; None for values under the default rules, and play-outs under others.

    Returns:
        N of them.

    Raises:
        ValueError: no positions, one that is over or impossible, or a bad argument.
    """
    rules, samples = Rules.of(rules), _check_samples(samples)
    compile_engine()
    states = _states_of(snapshots, rules)
    worths_of = _judge(judge, rules, samples, check_seed(seed))
    advice: list[Advice] = []
    for start in range(0, len(states), _POSITIONS_AT_ONCE):
        advice += _advise_some(agent, states[start : start + _POSITIONS_AT_ONCE], rules, worths_of)
    return advice


def _check_samples(samples: int) -> int:
    if check_count("samples", samples) < 2:
        raise ValueError(f"samples must be at least 2, got {samples}")
    return samples


def _states_of(snapshots: npt.NDArray[Any], rules: Rules) -> npt.NDArray[Any]:
    """The positions, shape (N,) and dtype STATE."""
    dtype = getattr(snapshots, "dtype", None)
    if dtype not in (SNAPSHOT, STATE) or snapshots.ndim != 1:
        raise ValueError(
            "positions must come from get_state() of an environment: dtype SNAPSHOT, shape (N,)"
        )
    states = np.ascontiguousarray(snapshots["state"] if dtype == SNAPSHOT else snapshots)
    check_states(states, rules)
    over = np.flatnonzero(states["phase"] == OVER)
    if over.size:
        raise ValueError(f"position {over[0]} is over: there is no play to advise on")
    return states


def _advise_some(
    agent: Agent | None,
    states: npt.NDArray[Any],
    rules: Rules,
    worths_of: Worths,
) -> list[Advice]:
    observations, masks = recall_of_states(states, rules)
    opinions = opinions_of(agent, observations, masks.astype(np.bool_))
    rows, actions = np.nonzero(masks)
    worths = worths_of(states, rows, actions)
    advice: list[Advice] = []
    for row, opinion in enumerate(opinions):
        of_row = rows == row
        means, errors = _compared(worths[of_row])
        columns = means[:, 0], errors[:, 0], means[:, 1], errors[:, 1]
        advice.append(Advice(actions[of_row], *columns, *opinion))
    return advice


Worths = Callable[
    [npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.int64]], npt.NDArray[np.float64]
]
"""Wins and Key Spies of futures of P plays, float64 (P, samples, 2), where samples of a number have
met the same chance; of states (N,), the numbers of the plays' positions (P,), and actions (P,)."""


def _judge(name: str | None, rules: Rules, samples: int, seed: int) -> Worths:
    if name is None:
        name = JUDGES[0] if rules == Rules() else JUDGES[1]
    if name not in JUDGES:
        raise ValueError(f"unknown judge {name!r}; there are {', '.join(JUDGES)}")
    worths_of = _by_values if name == JUDGES[0] else _by_playouts
    return partial(worths_of, rules, samples, seed)


def _by_values(
    rules: Rules,
    samples: int,
    seed: int,
    states: npt.NDArray[Any],
    rows: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """By the value network; where all futures are known, their mean as each sample."""
    streams = fork_streams(seed, 1)
    keys = np.full(len(states), streams["key"][0])
    futures = look_ahead(states, rows, actions, keys, streams, samples, rules)
    values = position_values(futures.states, rules)
    worths = np.repeat(futures.means(values)[:, None], samples, axis=1)
    drawn = np.repeat(~futures.listed, futures.counts)
    worths[~futures.listed] = values[drawn].reshape(-1, *worths.shape[1:])
    return worths


def _by_playouts(
    rules: Rules,
    samples: int,
    seed: int,
    states: npt.NDArray[Any],
    rows: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """By what ``greedy`` comes to."""
    starts = np.zeros(len(rows) * samples, dtype=SNAPSHOT)
    starts["state"] = np.repeat(states[rows], samples)
    starts["streams"] = np.tile(fork_streams(seed, samples), len(rows))
    games = Games(len(starts), rules=rules)
    games.restore(starts)
    games.step(np.repeat(actions, samples))
    ended = play_out(games.snapshots(), "greedy", rules)
    worths = np.stack([ended.wins, ended.key_spies], axis=1).astype(np.float64)
    return worths.reshape(len(rows), samples, 2)


def _compared(
    worths: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Means of samples, and standard errors of their differences to the best.

    Args:
        worths: float64 (k, samples, q), where the samples of a number have met the same chance.

    Returns:
        Two of float64 (k, q).
    """
    means = worths.mean(axis=1)
    best = np.take_along_axis(worths, means.argmax(axis=0)[None, None], axis=0)
    spread = (worths - best).std(axis=1, ddof=1)
    return means, spread / np.sqrt(worths.shape[1])


class Opinion(NamedTuple):
    """The last three attributes of :class:`Advice`."""

    chosen: int | None = None
    probabilities: npt.NDArray[np.float64] | None = None
    own_values: npt.NDArray[np.float64] | None = None


def opinions_of(
    agent: Agent | None, observations: npt.NDArray[np.int8], masks: npt.NDArray[np.bool_]
) -> list[Opinion]:
    """What an agent thinks of the legal actions of each of N positions."""
    if agent is None:
        return [Opinion()] * len(masks)
    chosen = np.asarray(agent.act(observations, masks.copy())).tolist()
    probabilities = [None] * len(masks)
    own_values = [None] * len(masks)
    if isinstance(agent, ProbabilisticAgent):
        given = np.where(masks, agent.probabilities(observations, masks), 0.0)
        probabilities = _legal_ones(given / given.sum(axis=1, keepdims=True), masks)
    if isinstance(agent, ValuingAgent):
        own_values = _legal_ones(agent.values(observations, masks), masks)
    return list(map(Opinion, chosen, probabilities, own_values))


def _legal_ones(numbers: npt.NDArray[Any], masks: npt.NDArray[np.bool_]) -> list[Any]:
    """The numbers of the legal actions of each position, float64 (k,) each."""
    return [row[legal].astype(np.float64) for row, legal in zip(numbers, masks, strict=True)]


# --- Skirmish ---


def advise_seat(
    agent: Agent | None,
    observation: npt.NDArray[np.int8],
    rules: SkirmishRules | Mapping[str, Any] | None = None,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
) -> SeatAdvice:
    """Advice on one seat's decision, see :func:`advise_seats`; ``observation`` is int8 (d,)."""
    return advise_seats(agent, np.atleast_2d(observation), rules, samples=samples, seed=seed)[0]


def advise_seats(
    agent: Agent | None,
    observations: npt.NDArray[np.int8],
    rules: SkirmishRules | Mapping[str, Any] | None = None,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
) -> list[SeatAdvice]:
    """Advice on decisions of seats of Skirmish, from what these seats observe.

    Args:
        agent: whose opinion is asked too; None for nobody's.
        observations: int8 (N, d), all of as many players, none of a game that is over.
        rules: the rule set that is played.
        samples: play-outs of each action, at least 2.
        seed: of the deals and of the chance that the play-outs meet.

    Returns:
        N of them.

    Raises:
        ValueError: observations of another shape or of a game that is over, or a bad argument.
    """
    rules, samples = SkirmishRules.of(rules), _check_samples(samples)
    rows = np.ascontiguousarray(observations, dtype=np.int8)
    num_players = _num_players_of(rows)
    views, masks = _views_of(rows, num_players, rules)
    over = np.flatnonzero(~masks.any(axis=1))
    if over.size:
        raise ValueError(f"position {over[0]} is over: there is no play to advise on")
    advice: list[SeatAdvice] = []
    for view, mask, opinion in zip(views, masks, opinions_of(agent, rows, masks), strict=True):
        actions = np.flatnonzero(mask)
        payoffs = _played_out(view, actions, num_players, rules, samples, seed)
        means, errors = _compared(payoffs[:, :, None])
        advice.append(SeatAdvice(actions, means[:, 0], errors[:, 0], *opinion))
    return advice


def _num_players_of(rows: npt.NDArray[np.int8]) -> int:
    widths = {len(seat_observation_high(n)): n for n in range(MIN_PLAYERS, MAX_PLAYERS + 1)}
    if rows.ndim != 2 or rows.shape[1] not in widths:
        expected = ", ".join(map(str, widths))
        raise ValueError(f"observations must have {expected} entries, got shape {rows.shape}")
    return widths[rows.shape[1]]


@cache
def _compile_views(num_players: int) -> None:
    rules, seats = SkirmishRules().record(num_players), np.zeros(0, np.int64)
    rows = np.zeros((0, len(seat_observation_high(num_players))), np.int8)
    states, masks = np.zeros(0, TABLE_STATE), np.zeros((0, NUM_ACTIONS), np.int8)
    compile_tables(num_players)
    compile_redeals()
    with compiling():
        read_observations(rows, rules, states)
        show_states(states, rules, seats, rows, masks)


def _views_of(
    rows: npt.NDArray[np.int8], num_players: int, rules: SkirmishRules
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The views that observations hold, the observer in seat 0, and its masks, bool (N, 15)."""
    _compile_views(num_players)
    record = rules.record(num_players)
    views = np.zeros(len(rows), TABLE_STATE)
    masks = np.zeros((len(rows), NUM_ACTIONS), np.int8)
    read_observations(rows, record, views)
    show_states(views, record, np.zeros(len(rows), np.int64), np.empty_like(rows), masks)
    return views, masks.astype(np.bool_)


def _played_out(
    view: Any,
    actions: npt.NDArray[np.int64],
    num_players: int,
    rules: SkirmishRules,
    samples: int,
    seed: int,
) -> npt.NDArray[np.float64]:
    """Payoffs of seat 0 after each action, float64 (k, samples); samples share deal and chance."""
    of_deals, *of_games = np.random.SeedSequence(seed).generate_state(samples + 1, np.uint64)
    deals = np.repeat(view, samples)
    streams = seed_streams([int(of_deals)], forks=True, dtype=TABLE_STREAMS)
    seats = np.zeros(samples, np.int64)
    redeal_views(deals, rules.record(num_players), seats, streams)
    tables = Tables(len(actions) * samples, num_players, rules=rules)
    streams = seed_streams([int(one) for one in of_games], forks=True, dtype=TABLE_STREAMS)
    tables.streams[:] = np.tile(streams, len(actions))
    tables.deal()  # begins their streams
    tables.states[:] = np.tile(deals, len(actions))
    tables.show()
    return _payoffs(tables, np.repeat(actions, samples)).reshape(len(actions), samples)


def _payoffs(tables: Tables, first: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Payoffs of seat 0, float64 (M,), after its first actions, int64 (M,); bots play on."""
    bot = make_bot(_BOT, tables.num_players)
    payoffs = np.zeros(len(tables))
    going_on = np.ones(len(tables), np.bool_)
    forced: npt.NDArray[np.int64] | None = first
    while going_on.any():
        actions = np.zeros(tables.masks.shape[:2], np.int64)
        rows, masks = tables.observations[going_on], tables.masks[going_on].astype(np.bool_)
        flat = rows.reshape(-1, rows.shape[2]), masks.reshape(-1, masks.shape[2])
        actions[going_on] = np.asarray(bot.act(*flat)).reshape(masks.shape[:2])
        if forced is not None:
            actions[:, 0], forced = forced, None
        tables.step(actions, going_on)
        ended = going_on & tables.over
        payoffs[ended] = tables.rewards[ended, 0]
        going_on &= ~ended
    return payoffs
