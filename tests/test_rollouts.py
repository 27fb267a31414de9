"""Whole games inside one kernel, and the legal actions as bits that compiled policies are shown.

The reference for a rollout is the same play step by step, over the arrays that the environments
adapt; the referee follows some of it. Statistical tests have fixed seeds and a stated error rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from conftest import ALL_CARDS, completed, in_order
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray
from oracle import OracleGame, OracleRules
from scipy import stats

from agents import make_agent
from deck_of_spies_env import IllegalActionError, Rules
from deck_of_spies_env.agent import Actions, Agent, BatchAgent, CompiledAgent
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.solitaire.actions import (
    allows,
    nth_legal,
    num_legal,
    write_action_mask,
    write_legal_bits,
)
from deck_of_spies_env.solitaire.games import SNAPSHOT, Games
from deck_of_spies_env.solitaire.policies import random_action
from deck_of_spies_env.solitaire.positions import fixed_start, undealt_states, zones_of
from deck_of_spies_env.solitaire.rollouts import PlayOuts, deal_snapshots, fork_snapshots, play_out
from deck_of_spies_env.solitaire.rules import OUTCOMES, PHASES, STATE
from deck_of_spies_env.solitaire.vector_env import DeckOfSpiesVectorEnv

ALPHA = 1e-4
"""Probability with which each statistical test of this file would reject perfect chance."""

RULE_SETS: list[dict[str, Any]] = [
    {},
    {"hand_size": 3},
    {"hand_size": 4, "eager_reshuffle": True},
    {"hand_size": 5, "idle_ace": False, "key_spies_to_win": 3},
    {"hand_size": 6, "eager_reshuffle": True, "key_spies_to_win": 5},
    {"hand_size": 7, "idle_ace": False},
    {"hand_size": 8, "key_spies_to_win": 12},
]

Snapshots = NDArray[Any]
Chooser = Callable[[Games, NDArray[np.int64]], NDArray[np.int64]]
"""The actions of those games that are in play."""


# --- Policies compiled by a user ------------------------------------------------------------------


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """Address of an array that a compiled policy writes to: its globals are constants."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


LOG_SHAPE = (200_000, 6)
LOG: NDArray[np.uint64] = np.zeros(LOG_SHAPE, dtype=np.uint64)
LOG_COLUMNS = ("action", "word", "rank", "num_legal", "hand", "spy")
LENGTH: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
LOG_ADDRESS, LENGTH_ADDRESS = LOG.ctypes.data, LENGTH.ctypes.data

ORDER: NDArray[np.int64] = np.zeros(3, dtype=np.int64)
"""What ``obedient`` plays with one hand, that hand, and how often at most; else the first legal."""
ORDER_ADDRESS = ORDER.ctypes.data
GIVES_UP = -1000


@numba.njit
def first_legal(state: Any, rules: Any, legal: Any, word: Any) -> Any:
    return nth_legal(legal, np.uint64(0))


@numba.njit
def last_legal(state: Any, rules: Any, legal: Any, word: Any) -> Any:
    return nth_legal(legal, num_legal(legal) - np.uint64(1))


@numba.njit
def recorded(state: Any, rules: Any, legal: Any, word: Any) -> Any:
    """Play at random and write down what was seen and done."""
    log = numba.carray(pointer(LOG_ADDRESS), LOG_SHAPE, np.uint64)
    length = numba.carray(pointer(LENGTH_ADDRESS), 1, np.int64)
    action = random_action(state, rules, legal, word)
    row = log[length[0]]
    row[0], row[1], row[3], row[4] = action, word, num_legal(legal), state.hand
    while nth_legal(legal, row[2]) != action:
        row[2] += np.uint64(1)
    row[5] = max(state.spy, 0)
    length[0] += 1
    return action


@numba.njit
def obedient(state: Any, rules: Any, legal: Any, word: Any) -> Any:
    """Play as told in ORDER."""
    order = numba.carray(pointer(ORDER_ADDRESS), 3, np.int64)
    if order[1] == np.int64(state.hand) and order[2] > 0:
        order[2] -= 1
        if order[0] == GIVES_UP:
            raise ZeroDivisionError("gives up")
        return order[0]
    return np.int64(nth_legal(legal, np.uint64(0)))


def not_compiled(state: Any, rules: Any, legal: Any, word: Any) -> int:
    return 0


# --- Tools ----------------------------------------------------------------------------------------


class Ending(NamedTuple):
    """How one game ended."""

    outcome: str
    key_spies: int
    turns: int
    decisions: int


def endings(played: PlayOuts | MatchResult) -> list[Ending]:
    """How the games of a result ended."""
    if isinstance(played, PlayOuts):
        outcomes = [OUTCOMES[code] for code in played.outcomes]
    else:
        outcomes = played.outcomes.tolist()
    columns = (played.key_spies, played.turns, played.decisions)
    rows = zip(outcomes, *(column.tolist() for column in columns), strict=True)
    return [Ending(*row) for row in rows]


def play_by_steps(snapshots: Snapshots, rules: Mapping[str, Any], choose: Chooser) -> list[Ending]:
    """Play games to the end with a step for each decision."""
    games = Games(len(snapshots), rules=rules)
    games.restore(snapshots)
    decisions = np.zeros(len(games), dtype=np.int64)
    actions = np.zeros(len(games), dtype=np.int64)
    while not games.over.all():
        in_play = ~games.over
        actions[in_play] = choose(games, np.flatnonzero(in_play))
        games.step(actions, in_play)
        decisions += in_play
    ends = games.endings()
    columns = (ends["key_spies"], ends["turns"], decisions)
    rows = zip(ends["outcome"], *(column.tolist() for column in columns), strict=True)
    return [Ending(outcome or "", *numbers) for outcome, *numbers in rows]


def first_of(games: Games, acting: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first legal action of the mask."""
    return games.masks[acting].argmax(axis=1)


def last_of(games: Games, acting: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last legal action of the mask."""
    return games.masks.shape[1] - 1 - games.masks[acting, ::-1].argmax(axis=1)


def agents_choice(agent: Agent) -> Chooser:
    """What an agent chooses by observation and mask."""

    def choose(games: Games, acting: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(agent.act(games.observations[acting], games.masks[acting]))

    return choose


def random_choice(seed: int) -> Chooser:
    """Uniform over the mask, by NumPy's dice."""
    rng = np.random.default_rng(seed)

    def choose(games: Games, acting: NDArray[np.int64]) -> NDArray[np.int64]:
        masks = games.masks[acting]
        return (rng.random(masks.shape) * masks).argmax(axis=1)

    return choose


SCRIPTS: dict[str, tuple[Any, Chooser]] = {
    "first": (first_legal, first_of),
    "last": (last_legal, last_of),
}
"""A compiled policy, and the same choice by the mask."""


def midgame(num_games: int, rules: Mapping[str, Any], seed: int = 0) -> Snapshots:
    """Games after 0 to 11 random decisions, some in phase retire, none of them over."""
    games = Games(num_games, rules=rules)
    games.restore(deal_snapshots(range(seed, seed + num_games), rules))
    choose, everyone = random_choice(seed), np.arange(num_games)
    for step in range(11):
        games.step(choose(games, everyone), (everyone % 12 > step) & ~games.over)
    return games.snapshots()[~games.over]


def at(zones: Mapping[str, str], phase: str = "act", num_games: int = 1, **rules: Any) -> Snapshots:
    """So many games at a position, each with streams of its own."""
    games = Games(num_games, rules=rules)
    games.seed(range(num_games), range(num_games))
    named = completed({zone: cards.split() for zone, cards in zones.items()})
    games.deal(start=fixed_start(named, phase, games.rules))
    return games.snapshots()


def recording(snapshots: Snapshots, rules: Mapping[str, Any]) -> tuple[dict[str, Any], PlayOuts]:
    """Random play with all that it saw and did, game after game."""
    LOG[:], LENGTH[:] = 0, 0
    played = play_out(snapshots, recorded, rules)
    assert LENGTH[0] == played.decisions.sum()
    columns = LOG[: LENGTH[0]].copy().T
    return dict(zip(LOG_COLUMNS, columns, strict=True)), played


def assert_uniform(counts: Any) -> None:
    """Chi-square test that independent observations fall into all cells alike."""
    counts = np.asarray(counts)
    assert counts.sum() >= 5 * counts.size, "too few observations for the chi-square law"
    p_value = float(stats.chisquare(counts.ravel()).pvalue)
    assert p_value > ALPHA, f"p = {p_value:.2g}, counts {counts}"


def assert_independent(rows: Any, columns: Any) -> None:
    """Chi-square test of two columns of labels; also that two samples (rows) have one law."""
    _, row = np.unique(rows, return_inverse=True)
    _, column = np.unique(columns, return_inverse=True)
    counts = np.zeros((row.max() + 1, column.max() + 1), dtype=np.int64)
    np.add.at(counts, (row, column), 1)
    result: Any = stats.chi2_contingency(counts, correction=False)
    assert min(counts.shape) > 1
    assert result.expected_freq.min() >= 5, "too few observations for the chi-square law"
    assert result.pvalue > ALPHA, f"p = {result.pvalue:.2g}, table {counts}"


# --- The same games as step by step ---------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_SETS, ids=str)
def test_greedy_rollouts_are_the_games_of_the_greedy_agent(rules: dict[str, Any]) -> None:
    snapshots = deal_snapshots(range(300), rules)
    expected = play_by_steps(snapshots, rules, agents_choice(make_agent("greedy", Rules.of(rules))))
    assert endings(play_out(snapshots, "greedy", rules)) == expected
    assert len(set(expected)) > 10


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("rules", RULE_SETS, ids=str)
def test_rollouts_of_a_users_policy_are_its_games_step_by_step(
    rules: dict[str, Any], script: str
) -> None:
    policy, choose = SCRIPTS[script]
    snapshots = deal_snapshots(range(200), rules)
    expected = play_by_steps(snapshots, rules, choose)
    assert endings(play_out(snapshots, policy, rules)) == expected
    assert len(set(expected)) > 5


@pytest.mark.parametrize("rules", RULE_SETS, ids=str)
def test_rollouts_go_on_from_the_middle_of_games(rules: dict[str, Any]) -> None:
    """From both phases; decisions are counted from there, turns from the start of the game."""
    snapshots = midgame(360, rules)
    phases = snapshots["state"]["phase"]
    assert (phases == 0).sum() > 100
    assert (phases == 1).sum() >= (0 if rules.get("hand_size") == 3 else 10)
    for policy, choose in (
        *SCRIPTS.values(),
        ("greedy", agents_choice(make_agent("greedy", Rules.of(rules)))),
    ):
        expected = play_by_steps(snapshots, rules, choose)
        assert endings(play_out(snapshots, policy, rules)) == expected
        assert min(ending.decisions for ending in expected) > 0


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("rules", RULE_SETS, ids=str)
def test_rollouts_end_as_the_referee_says(rules: dict[str, Any], script: str) -> None:
    """The same deals driven step by step, with the referee beside, end as the rollout did."""
    policy, choose = SCRIPTS[script]
    for seed in range(6):
        snapshots = deal_snapshots([seed], rules)
        (ending,) = endings(play_out(snapshots, policy, rules))
        games = Games(1, rules=rules)
        games.restore(snapshots)
        zones = zones_of(games.states[0])
        referee = OracleGame.deal(OracleRules(**rules), zones["hand"], zones["spy"][0])
        decisions = 0
        while referee.phase != "over":
            actions = choose(games, np.arange(1))
            kind, cards = games.table.decode(int(actions[0]), int(games.states["hand"][0]))
            games.step(actions)
            decisions += 1
            kept = set() if kind == "assassinate" else set(zones["hand"]) - set(cards)
            zones = zones_of(games.states[0])
            turned_up = kind in ("counter", "recruit", "assassinate") and zones["spy"]
            referee.step(
                kind,
                cards,
                next_spy=zones["spy"][0] if turned_up else None,
                drawn=in_order(set(zones["hand"]) - kept),
            )
            assert zones == referee.zones()
        expected = (referee.outcome, referee.key_spies, referee.turns, decisions)
        assert ending == expected


def test_a_rollout_from_the_last_retire_decision_is_one_decision() -> None:
    """D9, D12: to pass keeps the Key Spies, and the first retirement costs two."""
    zones = {"hand": "Jc Jd", "draw_deck": "Jh Js Qc Qd Qh", "draw_discard": "2c"}
    snapshots = at(zones, "retire")
    assert endings(play_out(snapshots, last_legal)) == [Ending("win", 7, 36, 1)]
    assert endings(play_out(snapshots, first_legal)) == [Ending("loss", 5, 36, 1)]
    fewer = {"key_spies_to_win": 5}
    assert endings(play_out(snapshots, first_legal, fewer)) == [Ending("win", 5, 36, 1)]
    assert play_out(snapshots, first_legal, fewer).wins.tolist() == [True]
    assert play_out(snapshots, first_legal).wins.tolist() == [False]


@pytest.mark.parametrize("policy", ["random", "greedy", first_legal])
def test_games_that_are_over_take_no_decisions(policy: Any) -> None:
    games = Games(200, illegal_action="lose")
    games.seed(range(200), range(200))
    games.deal()
    choose, everyone = random_choice(1), np.arange(200)
    games.step(np.where(everyone < 5, -1, choose(games, everyone)))
    for _ in range(30):
        games.step(choose(games, everyone), ~games.over)
    over, ends = games.over.copy(), games.endings()
    played = play_out(games.snapshots(), policy)
    assert not played.decisions[over].any()
    assert (played.decisions[~over] > 0).all()
    outcomes = np.array(OUTCOMES, dtype=object)[played.outcomes]
    assert np.array_equal(outcomes[over], ends["outcome"][over])
    assert np.array_equal(played.key_spies[over], ends["key_spies"][over])
    assert np.array_equal(played.turns[over], ends["turns"][over])
    assert outcomes[:5].tolist() == ["illegal_action"] * 5
    assert {"illegal_action", "no_double_agent"} <= set(outcomes[over])
    assert over.any()
    assert not over.all()


def test_games_not_yet_dealt_take_no_decisions() -> None:
    snapshots = np.zeros(3, dtype=SNAPSHOT)
    snapshots["state"] = undealt_states(3)
    played = play_out(snapshots)
    assert played.decisions.tolist() == [0, 0, 0]
    assert not played.wins.any()


# --- Equal snapshots end equally ------------------------------------------------------------------

POLICIES = ["random", "greedy", first_legal]


@pytest.mark.parametrize("policy", POLICIES)
def test_equal_snapshots_end_equally(policy: Any) -> None:
    """Whatever the number of threads and the other games, and however often."""
    snapshots = midgame(240, {})
    expected = endings(play_out(snapshots, policy))
    assert endings(play_out(snapshots, policy)) == expected
    for num_threads in (2, 3, 7, len(snapshots), 1000):
        assert endings(play_out(snapshots, policy, num_threads=num_threads)) == expected
    order = np.random.default_rng(0).permutation(len(snapshots))
    shuffled = endings(play_out(snapshots[order], policy))
    assert shuffled == [expected[index] for index in order]
    assert endings(play_out(snapshots[5:6], policy)) == expected[5:6]
    assert endings(play_out(snapshots[::3], policy, num_threads=2)) == expected[::3]
    many = endings(play_out(np.repeat(snapshots[:1], 50), policy))
    assert many == expected[:1] * 50


@pytest.mark.parametrize("policy", POLICIES)
def test_rollouts_leave_the_snapshots_as_they_are(policy: Any) -> None:
    snapshots = midgame(240, {})
    before = snapshots.tobytes()
    for num_threads in (1, 3):
        play_out(snapshots, policy, num_threads=num_threads)
        play_out(snapshots[::2], policy, num_threads=num_threads)
        assert snapshots.tobytes() == before
    snapshots.setflags(write=False)
    assert endings(play_out(snapshots, policy)) == endings(play_out(snapshots.copy(), policy))


def test_rollouts_differ_by_their_streams_alone() -> None:
    """Of one position: another seed, another game; so it is with random play, too."""
    zones = {"hand": "2c 3d 4h 4s 5c", "spy": "5d", "spy_deck": "6c 7d 8h 9s Tc Jd Qh Ks"}
    snapshots = at(zones | {"draw_deck": "Ac Ad Ah 2d 2h 3c"}, num_games=300)
    for policy in ("random", "greedy"):
        assert len(set(endings(play_out(snapshots, policy)))) > 5


def test_snapshots_are_those_of_environments() -> None:
    rules = {"hand_size": 6}
    envs = DeckOfSpiesVectorEnv(20, rules=rules)
    envs.reset(seed=list(range(30, 50)))
    snapshots = deal_snapshots(range(30, 50), rules)
    assert snapshots.dtype == SNAPSHOT
    assert np.array_equal(envs.get_state(), snapshots)
    for _ in range(7):
        envs.step(envs.action_masks().argmax(axis=1))
    saved = envs.get_state()
    expected = play_by_steps(saved, rules, first_of)
    assert endings(play_out(saved, first_legal, rules)) == expected
    assert np.array_equal(deal_snapshots(range(3), Rules()), deal_snapshots(range(3)))
    assert not np.array_equal(deal_snapshots(range(3)), deal_snapshots(range(1, 4)))


def test_results_have_the_types_that_are_promised() -> None:
    played = play_out(deal_snapshots(range(5)), "greedy")
    assert played.outcomes.dtype == np.int8
    assert {column.dtype for column in (played.key_spies, played.turns, played.decisions)} == {
        np.dtype(np.int64)
    }
    assert played.wins.dtype == np.bool_
    assert played.wins.shape == played.outcomes.shape == played.turns.shape == (5,)


def test_random_is_the_default() -> None:
    snapshots = deal_snapshots(range(100))
    assert endings(play_out(snapshots)) == endings(play_out(snapshots, "random"))
    assert endings(play_out(snapshots)) != endings(play_out(snapshots, "greedy"))


# --- Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [not_compiled, lambda *_: 0, "clever", "", None, 3, ["greedy"]])
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    with pytest.raises(ValueError, match=r"policy.*random, greedy"):
        play_out(deal_snapshots([0]), policy)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda snapshots: snapshots[:0],
        lambda snapshots: snapshots[0],
        lambda snapshots: snapshots.reshape(2, 2),
        lambda snapshots: snapshots["state"],
        lambda snapshots: snapshots["streams"],
        lambda snapshots: snapshots.view(np.uint64),
        list,
        lambda snapshots: None,
    ],
)
def test_what_are_no_snapshots_is_refused(spoil: Callable[[Snapshots], Any]) -> None:
    with pytest.raises(ValueError, match="one-dimensional array of dtype SNAPSHOT, not empty"):
        play_out(spoil(deal_snapshots(range(4))))


def test_positions_of_other_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="state 0: too many cards in hand"):
        play_out(deal_snapshots(range(4), {"hand_size": 6}))
    spoilt = deal_snapshots(range(4))
    spoilt["state"]["hand"][2] |= spoilt["state"]["draw_deck"][2]
    with pytest.raises(ValueError, match="state 2: a card is in two zones"):
        play_out(spoilt)


@pytest.mark.parametrize("num_threads", [0, -1, 1.5, True, None], ids=repr)
def test_bad_numbers_of_threads_are_named(num_threads: Any) -> None:
    with pytest.raises(ValueError, match="num_threads must be a whole number of at least 1"):
        play_out(deal_snapshots([0]), num_threads=num_threads)


def test_bad_rules_are_named() -> None:
    with pytest.raises(ValueError, match="hand_size"):
        play_out(deal_snapshots([0]), rules={"hand_size": 9})
    with pytest.raises(ValueError, match="unknown field"):
        deal_snapshots([0], {"jokers": True})


@pytest.mark.parametrize(
    ("seeds", "complaint"), [([], "at least one seed"), ([3, -1], "non-negative")]
)
def test_bad_deals_are_named(seeds: list[int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        deal_snapshots(seeds)


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        (77, r"action 77 \(pass\) is illegal: the phase is act"),
        (62, r"action 62 \(assassinate Ac\) is illegal: the hand totals"),
        (0, r"action 0 \(counter A.\) is illegal: the cards total 1"),
        (-1, "action that does not exist"),
        (78, "action that does not exist"),
        (2**40, "action that does not exist"),
        (-(2**62), "action that does not exist"),
    ],
)
@pytest.mark.parametrize("num_threads", [1, 3])
def test_a_policy_that_plays_illegally_is_named(
    action: int, complaint: str, num_threads: int
) -> None:
    """With the first of the games in which it does; the snapshots stay as they are."""
    snapshots = deal_snapshots(range(40))
    hands = snapshots["state"]["hand"]
    with_aces = [index for index in range(40) if int(hands[index]) & 0b1111]
    wrong = next(index for index in with_aces if index > 14)
    later = [wrong + 1, 38]  # in the same part as the first and in another one
    snapshots["state"][later] = snapshots["state"][wrong]
    before = snapshots.tobytes()
    ORDER[:] = action, hands[wrong], 100
    with pytest.raises(IllegalActionError, match=f"game {wrong}: .*{complaint}"):
        play_out(snapshots, obedient, num_threads=num_threads)
    assert snapshots.tobytes() == before


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("index", [0, 20, 39])
def test_failures_of_a_policy_come_out(index: int, num_threads: int) -> None:
    snapshots = deal_snapshots(range(40))
    ORDER[:] = GIVES_UP, snapshots["state"]["hand"][index], 100
    with pytest.raises(ZeroDivisionError, match="gives up"):
        play_out(snapshots, obedient, num_threads=num_threads)


def test_an_illegal_action_in_the_middle_of_a_game_is_explained_there() -> None:
    """The hand of the message is that of the position in which the action was chosen."""
    zones = {
        "hand": "2c 2d 9c Kd",
        "spy": "9h",
        "spy_deck": "Kh",
        "draw_deck": "3c 3d",
        "draw_discard": "Ac",
    }
    snapshots = at(zones)
    games = Games(1)
    games.restore(snapshots)
    games.step(first_of(games, np.arange(1)))
    assert PHASES[games.states["phase"][0]] == "retire"
    # In phase retire the pair is 2c 2d, slots 0 and 1; 2d and the King are slots 1 and 2.
    wrong = games.table.encode("retire", ["2d", "Kd"], int(games.states["hand"][0]))
    ORDER[:] = wrong, games.states["hand"][0], 100
    with pytest.raises(IllegalActionError, match=r"game 0: .*retire 2d Kd.*different ranks"):
        play_out(snapshots, obedient)


# --- Chance ---------------------------------------------------------------------------------------

OPEN = {
    "hand": "8s 9c Ts Jd Qh",
    "spy": "6s",
    "spy_deck": "5c 5d 5h 6c",
    "draw_deck": "Ac Ad 2c 2d 3h 3s 4c 8d Qd",
}
"""Every card counters alone, the spades recruit alone: seven actions that play one card each."""

POSITIONS: dict[str, tuple[dict[str, str], str, dict[str, Any]]] = {
    "plays": (OPEN, "act", {}),
    "many plays": (
        {"hand": "Ah 2h 2s 3h 3c 4d 4h 5h", "spy": "Kh", "spy_deck": "Qs"},
        "act",
        {"hand_size": 8},
    ),
    "assassinations": (
        {"hand": "2c 3d", "spy": "Kh", "draw_deck": "Ac Ad Ah 2h", "draw_discard": "As"},
        "act",
        {},
    ),
    "retirements": ({"hand": "Jc Jd Jh Js", "draw_deck": "2c"}, "retire", {}),
    "two pairs": ({"hand": "4c 4d 9h 9s", "spy": "5h"}, "retire", {"hand_size": 6}),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_random_rollouts_choose_uniformly(name: str) -> None:
    """At a fixed position; what is legal there is the referee's word."""
    zones, phase, rules = POSITIONS[name]
    number = 6_000
    snapshots = at(zones, phase, number, **rules)
    log, played = recording(snapshots, rules)
    assert endings(played) == endings(play_out(snapshots, "random", rules))
    first = np.cumsum(played.decisions) - played.decisions
    actions, counts = np.unique(log["action"][first], return_counts=True)
    named = completed({zone: cards.split() for zone, cards in zones.items()})
    referee = OracleGame(OracleRules(**rules), named, phase)
    table = Games(1, rules=rules).table
    hand = int(snapshots["state"]["hand"][0])
    assert {tuple(table.decode(int(action), hand)) for action in actions} == (
        referee.legal_actions()
    )
    assert len(actions) >= 3
    assert_uniform(counts)


def test_random_rollouts_choose_uniformly_all_along() -> None:
    """The place of the choice among the legal actions, for each number of them that is met often.

    Of each the first thousand decisions count, so that play has no say in how many there are.
    """
    log, _ = recording(deal_snapshots(range(4_000)), {})
    numbers, counts = np.unique(log["num_legal"], return_counts=True)
    often = numbers[(counts >= 1000) & (numbers > 1)]
    assert len(often) > 8
    for number in often.tolist():
        ranks = log["rank"][log["num_legal"] == number][:1000].astype(np.int64)
        assert_uniform(np.bincount(ranks, minlength=number))
    # Nothing to choose between neighbours either: the next choice tells nothing of this one.
    twos = log["num_legal"] == 2
    both = twos[:-1] & twos[1:]
    assert_independent(log["rank"][:-1][both], log["rank"][1:][both])


def test_words_for_policies_are_fresh_and_even() -> None:
    """All are different, and each of the 64 bits is set in half of them."""
    log, played = recording(deal_snapshots(range(2_000)), {})
    words = log["word"]
    assert len(np.unique(words)) == len(words) == played.decisions.sum()
    set_bits = (words[:, np.newaxis] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).sum(axis=0)
    scores = (set_bits - len(words) / 2) / np.sqrt(len(words) / 4)
    p_value = stats.chi2.sf((scores**2).sum(), 64)
    assert p_value > ALPHA, f"p = {p_value:.2g}"
    eighths = (words >> np.uint64(61)).astype(np.int64)
    assert_independent(eighths[:-1], eighths[1:])


def test_choices_and_cards_are_independent() -> None:
    """What is chosen tells nothing of the card drawn next, nor of the spy, nor of later choices."""
    snapshots = at(OPEN, num_games=24_000)
    log, played = recording(snapshots, {})
    first = np.cumsum(played.decisions) - played.decisions
    assert played.decisions.min() >= 2
    choices, second = log["action"][first], first + 1
    drawn = log["hand"][second] & ~log["hand"][first]
    spies = log["spy"][second]
    assert len(np.unique(drawn)) == 9
    assert len(np.unique(spies)) == 4
    assert_independent(choices, drawn)
    assert_independent(choices, spies)
    for word in (log["word"][first], log["word"][second]):
        top, low = word >> np.uint64(61), word & np.uint64(7)
        for bits in (top, low):
            assert_independent(bits, drawn)
            assert_independent(bits, spies)
    one, other = (log["word"][index] >> np.uint64(61) for index in (first, second))
    assert_independent(one, other)
    # With equal choices the draws are those of play step by step: the streams are not touched.
    games = Games(len(snapshots))
    games.restore(snapshots)
    games.step(choices.astype(np.int64))
    assert np.array_equal(games.states["hand"], log["hand"][second])


def test_random_rollouts_have_the_law_of_random_play() -> None:
    """Key Spies, decisions, turns and outcomes, against other deals played by NumPy's dice."""
    number = 8_000
    one = endings(play_out(deal_snapshots(range(number))))
    two = play_by_steps(deal_snapshots(range(number, 2 * number)), {}, random_choice(3))
    sample = np.repeat([0, 1], number)
    both = one + two
    assert_independent(sample, np.minimum([ending.key_spies for ending in both], 4))
    assert_independent(sample, np.clip([ending.decisions for ending in both], 24, 60) // 4)
    assert_independent(sample, np.clip([ending.turns for ending in both], 20, 36))
    assert_independent(sample, [ending.outcome == "no_double_agent" for ending in both])
    # On one deal the choices of one and the other have nothing to do with each other.
    again = play_by_steps(deal_snapshots(range(number)), {}, random_choice(4))
    assert np.mean([first == second for first, second in zip(one, again, strict=True)]) < 0.2


# --- Matches --------------------------------------------------------------------------------------


class StepByStep(BatchAgent):
    """An agent's choices without its compiled policy."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    def choose(self, observations: NDArray[np.int8], action_masks: NDArray[np.bool_]) -> Actions:
        return self._agent.choose(observations, action_masks)


class Compiled(BatchAgent):
    """An agent that should be played by its policy."""

    def __init__(self, policy: Any) -> None:
        self.compiled_policy = policy

    def choose(self, observations: NDArray[np.int8], action_masks: NDArray[np.bool_]) -> Actions:
        raise ZeroDivisionError("the agent itself was asked")


def assert_same_match(first: MatchResult, second: MatchResult) -> None:
    """Check that two matches are the same in all but their time."""
    for name in ("wins", "key_spies", "turns", "decisions", "outcomes"):
        one, other = getattr(first, name), getattr(second, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other), name
    assert {type(outcome) for outcome in first.outcomes} == {str}


@pytest.mark.parametrize("rules", RULE_SETS, ids=str)
def test_a_match_of_a_compiled_agent_is_that_of_the_agent(rules: dict[str, Any]) -> None:
    rule_set = Rules.of(rules)
    agent, seeds = make_agent("greedy", rule_set), [5, 3, 5, 2**70, *range(200)]
    assert isinstance(agent, CompiledAgent)
    plain = StepByStep(agent)
    assert not isinstance(plain, CompiledAgent)
    fused = play_deals(agent, seeds, rules=rule_set)
    assert_same_match(fused, play_deals(plain, seeds, rules=rule_set, batch_size=64))
    assert_same_match(fused, play_deals(agent, seeds, rules=rule_set, batch_size=1))
    assert fused.seconds > 0


def test_a_long_match_is_the_same_and_its_progress_adds_up() -> None:
    agent, seeds = make_agent("greedy"), range(10_000, 18_500)
    calls: list[int] = []
    fused = play_deals(agent, seeds, progress=calls.append)
    assert sum(calls) == len(seeds)
    assert min(calls) >= 1
    assert len(calls) > 1
    some = slice(4000, 4200)
    expected = play_deals(StepByStep(agent), seeds[some])
    assert endings(expected) == endings(fused)[some]
    assert endings(play_deals(StepByStep(agent), seeds[-50:])) == endings(fused)[-50:]


def test_a_match_is_played_by_the_compiled_policy_alone() -> None:
    agent = Compiled(first_legal)
    played = play_deals(agent, range(30))
    assert endings(played) == play_by_steps(deal_snapshots(range(30)), {}, first_of)
    with pytest.raises(ZeroDivisionError):  # a policy sees no table observation
        play_deals(agent, range(3), observation="table")
    assert not isinstance(make_agent("random"), CompiledAgent)


@pytest.mark.parametrize("policy", ["clever", not_compiled, None])
def test_a_match_refuses_what_is_no_policy(policy: Any) -> None:
    with pytest.raises(ValueError, match=r"policy.*random, greedy"):
        play_deals(Compiled(policy), [0])


def test_a_match_names_the_game_of_an_illegal_action() -> None:
    ORDER[:] = 78, deal_snapshots([33])["state"]["hand"][0], 100
    with pytest.raises(IllegalActionError, match=r"deal of seed 33: .*does not exist"):
        play_deals(Compiled(obedient), range(30, 40))


def test_bad_matches_of_compiled_agents() -> None:
    agent = make_agent("greedy")
    with pytest.raises(ValueError, match="at least one deal"):
        play_deals(agent, [])
    with pytest.raises(ValueError, match="batch size"):
        play_deals(agent, [0], batch_size=0)
    with pytest.raises(ValueError, match="non-negative"):
        play_deals(agent, [0, -1])


# --- Legal actions as bits ------------------------------------------------------------------------

NUM_ACTIONS = {3: 20, 4: 39, 5: 78, 6: 156, 7: 309, 8: 606}
"""The number of actions by hand size, as documented."""


@numba.njit
def _look_at(
    states: Any, rules: Any, legal: Any, counts: Any, ranked: Any, allowed: Any, masks: Any
) -> None:
    for i in range(len(states)):
        # Written twice over what was there: first the bytes, which need room for the bits.
        write_legal_bits(states[i], rules[0], legal[i])
        write_action_mask(legal[i], masks[i])
        legal[i, :] = ~legal[i]
        write_legal_bits(states[i], rules[0], legal[i])
        counts[i] = num_legal(legal[i])
        for number in range(counts[i]):
            ranked[i, number] = nth_legal(legal[i], np.uint64(number))
        for action in range(allowed.shape[1]):
            allowed[i, action] = allows(legal[i], action)


class Legal(NamedTuple):
    """All that the kernels say about legal actions."""

    bits: list[int]  # one integer for each position, bit a for action a
    counts: NDArray[np.int64]
    ranked: NDArray[np.int64]  # the legal actions in their order, then -1
    allowed: NDArray[np.bool_]
    masks: NDArray[np.int8]


def look_at(states: NDArray[Any], rules: Rules) -> Legal:
    """Ask all kernels about some positions."""
    number, num_actions = len(states), NUM_ACTIONS[rules.hand_size]
    legal = np.full((number, -(-num_actions // 64)), 2**64 - 1, dtype=np.uint64)
    counts = np.zeros(number, dtype=np.int64)
    ranked = np.full((number, num_actions), -1, dtype=np.int64)
    allowed = np.zeros((number, num_actions), dtype=np.bool_)
    masks = np.full((number, num_actions), 7, dtype=np.int8)
    _look_at(states, rules.record, legal, counts, ranked, allowed, masks)
    bits = [sum(int(word) << 64 * place for place, word in enumerate(row)) for row in legal]
    return Legal(bits, counts, ranked, allowed, masks)


def check_agreement(found: Legal, expected: list[int]) -> None:
    """Check that all kernels say what is expected, one integer for each position."""
    assert found.bits == expected
    for index, bits in enumerate(expected):
        legal = [action for action in range(found.masks.shape[1]) if bits >> action & 1]
        assert bits >> found.masks.shape[1] == 0
        assert np.flatnonzero(found.masks[index]).tolist() == legal
        assert np.flatnonzero(found.allowed[index]).tolist() == legal
        assert found.counts[index] == len(legal)
        assert found.ranked[index, : len(legal)].tolist() == legal
    assert set(np.unique(found.masks)) <= {0, 1}


def legal_by_hand(
    hand: Sequence[int], spy: int | None, aces: Sequence[int], rules: Rules, phase: str
) -> int:
    """D1 to D5, D7 and D9 on card indices, over all subsets: a bit for each action of the table.

    The table is that of the documentation: counters and recruits by subset, the Aces, retirements
    of two to four of the first cards, the pass.
    """
    value = [card // 4 + 1 for card in range(52)]
    num_subsets = (1 << rules.hand_size) - 1
    few = [n for n in range(1 << rules.hand_size - 1) if 2 <= n.bit_count() <= 4]
    subsets = {
        number: [card for slot, card in enumerate(hand) if number >> slot & 1]
        for number in range(1, 1 << len(hand))
    }
    if phase == "retire":
        bits = 1 << 2 * num_subsets + 4 + len(few)
        for place, number in enumerate(few):
            chosen = subsets.get(number, [])
            if chosen and len({card // 4 for card in chosen}) == 1:
                bits |= 1 << 2 * num_subsets + 4 + place
        return bits
    assert spy is not None
    target, suit = value[spy], spy % 4
    if sum(value[card] for card in hand) < target:
        return sum(1 << 2 * num_subsets + ace for ace in aces)
    bits = 0
    for number, chosen in subsets.items():
        points = sum(value[card] for card in chosen)
        spare = [card for card in chosen if points - value[card] >= target]
        if points < target:
            continue
        if not spare:
            bits |= 1 << number - 1
        off_suit = any(card % 4 != suit for card in chosen)
        if suit in chosen:  # the Ace with the index of its suit
            idle = not off_suit and points - 1 >= target
            recruits = spare in ([], [suit]) and (rules.idle_ace or not idle)
        else:
            recruits = not spare and not off_suit
        if recruits:
            bits |= 1 << num_subsets + number - 1
    return bits


def any_hand(rng: np.random.Generator, most: int, spy: int | None) -> list[int]:
    """A hand of 0 to so many cards: of all cards, low ones, few ranks, or the spy's suit."""
    suit = 0 if spy is None else spy % 4
    pools = (
        range(52),
        range(16),
        range(4, 40),
        [card for card in range(52) if card // 4 in {0, 1, 2, 4}],
        [card for card in range(36) if card % 4 == suit or card < 4],
    )
    pool = [card for card in pools[rng.integers(len(pools))] if card != spy]
    hand = rng.choice(pool, min(int(rng.integers(most + 1)), len(pool)), replace=False).tolist()
    if rng.random() < 0.25:  # all four Aces, or as many as there is room for
        others = [card for card in hand if card >= 4]
        hand = [*range(min(4, most)), *others[: max(most - 4, 0)]]
    return sorted(hand)


def hand_with_a_pair(rng: np.random.Generator, most: int, spy: int | None) -> list[int]:
    """Such a hand in which two cards share a rank."""
    hand = any_hand(rng, most, spy)
    while len({card // 4 for card in hand}) == len(hand):
        hand = any_hand(rng, most, spy)
    return hand


def any_positions(rules: Rules, number: int, seed: int) -> tuple[NDArray[Any], list[int]]:
    """Positions of all kinds, reachable or not, and their legal actions by brute force."""
    rng = np.random.default_rng(seed)
    states = np.zeros(number, dtype=STATE)
    expected: list[int] = []
    for state in states:
        phase = "retire" if rng.random() < 0.25 else "act"
        spy = None if phase == "retire" and rng.random() < 0.3 else int(rng.integers(16, 52))
        if phase == "act":
            hand = any_hand(rng, rules.hand_size, spy)
        else:
            hand = hand_with_a_pair(rng, rules.hand_size - 1, spy)
        piles: dict[str, int] = dict.fromkeys(("draw_deck", "draw_discard", "spy_discard"), 0)
        names = [*piles, "removed"] if rng.random() < 0.8 else ["removed"]
        aces = [card for card in hand if card < 4]
        for card in range(52):
            if card in hand or card == spy:
                continue
            pile = names[rng.integers(len(names))]
            if pile == "removed" and card >= 4:
                pile = "spy_discard"
            if pile != "removed":
                piles[pile] |= 1 << card
            if card < 4 and pile in ("draw_deck", "draw_discard"):
                aces.append(card)
        for pile, cards in piles.items():
            state[pile] = cards
        state["hand"] = sum(1 << card for card in hand)
        state["spy"] = -1 if spy is None else spy
        state["phase"] = PHASES.index(phase)
        expected.append(legal_by_hand(hand, spy, aces, rules, phase))
    return states, expected


@pytest.mark.parametrize("idle_ace", [True, False])
@pytest.mark.parametrize("hand_size", range(3, 9))
def test_legal_bits_are_the_rulings(hand_size: int, idle_ace: bool) -> None:
    """Positions of all kinds: D1 to D5, D7 and D9 by brute force over all subsets of the hand."""
    rules = Rules(hand_size=hand_size, idle_ace=idle_ace)
    number = {7: 500, 8: 300}.get(hand_size, 700)
    states, expected = any_positions(rules, number, seed=hand_size)
    check_agreement(look_at(states, rules), expected)
    sizes = {int(hand).bit_count() for hand in states["hand"]}
    assert sizes == set(range(hand_size + 1))
    assert len(set(expected)) > 25


def test_brute_force_knows_the_idle_ace() -> None:
    """The switch matters among the positions, in both directions of the comparison."""
    differ = 0
    for hand_size in range(3, 9):
        with_idle, without = (
            any_positions(Rules(hand_size=hand_size, idle_ace=idle), 100, seed=1)[1]
            for idle in (True, False)
        )
        differ += sum(one != other for one, other in zip(with_idle, without, strict=True))
    assert differ > 20


@pytest.mark.parametrize("hand_size", range(3, 9))
def test_legal_bits_are_the_masks_of_play(hand_size: int) -> None:
    """Thousands of positions met in random play, those of games that are over among them."""
    rules = Rules(hand_size=hand_size)
    games = Games(150, rules=rules)
    games.restore(deal_snapshots(range(150), rules))
    choose, everyone = random_choice(hand_size), np.arange(150)
    overs = 0
    for _ in range(16):
        overs += int(games.over.sum())
        masks = games.current_masks()
        expected = [sum(1 << action for action in np.flatnonzero(row).tolist()) for row in masks]
        check_agreement(look_at(games.states.copy(), rules), expected)
        assert (masks.any(axis=1) == ~games.over).all()
        for _ in range(3):
            games.step(choose(games, everyone), ~games.over)
    assert overs > 20


def test_the_table_of_the_tests_is_as_long_as_the_documented_one() -> None:
    """A pass is the last action."""
    for hand_size, number in NUM_ACTIONS.items():
        pair = [ALL_CARDS.index("4c"), ALL_CARDS.index("4d")]
        bits = legal_by_hand(pair, None, [], Rules(hand_size=hand_size), "retire")
        assert bits.bit_length() == number
        assert bits.bit_count() == 2


# --- What users get wrong -------------------------------------------------------------------------


@numba.njit
def _not_a_number(state: Any, rules: Any, legal: Any, word: Any) -> float:
    return np.nan


@numba.njit
def _of_three(state: Any, rules: Any, legal: Any) -> int:
    return 0


@numba.njit
def _of_no_such_field(state: Any, rules: Any, legal: Any, word: Any) -> int:
    return state.nothing


@numba.njit
def _nothing(state: Any, rules: Any, legal: Any, word: Any) -> None:
    pass


@numba.njit
def _yes(state: Any, rules: Any, legal: Any, word: Any) -> bool:
    return True


@pytest.mark.parametrize("policy", [_not_a_number, _of_three, _of_no_such_field, _nothing, _yes])
def test_a_policy_of_another_signature_is_refused(policy: Any) -> None:
    with pytest.raises(ValueError, match=r"policy must take .* and return an integer") as raised:
        play_out(deal_snapshots(range(3)), policy)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("seeds", [5, "abc", ["1"], [None], [1.5], np.zeros((2, 2), int)])
def test_seeds_that_are_none_are_refused(seeds: Any) -> None:
    with pytest.raises(ValueError, match="seeds must be"):
        deal_snapshots(seeds)


def test_no_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        deal_snapshots([])


@pytest.mark.parametrize("seed", [None, "1", 1.5])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be"):
        fork_snapshots(deal_snapshots([0])["state"], seed)


@pytest.mark.parametrize("states", [None, [1, 2], np.arange(3), "snapshots", "table"])
def test_only_states_are_forked(states: Any) -> None:
    if isinstance(states, str):
        dealt = deal_snapshots(range(4))
        states = dealt if states == "snapshots" else dealt["state"].reshape(2, 2)
    with pytest.raises(ValueError, match="states must have dtype STATE"):
        fork_snapshots(states, 1)


def test_one_position_is_forked_as_often_as_asked() -> None:
    """A record is one position, not as many as it has fields."""
    position = deal_snapshots([3])["state"][0]
    assert len(fork_snapshots(position, 1)) == 1
    forks = fork_snapshots(position, 1, copies=50)
    assert (forks["state"] == position).all()
    assert len(np.unique(forks["streams"]["draws"])) == 50
    two = fork_snapshots(deal_snapshots([3, 4])["state"], 1, copies=25)
    assert np.array_equal(two["streams"], forks["streams"])  # common random numbers
    assert (two["state"][:25] == position).all()
    assert (two["state"][25:] != position).all()
    with pytest.raises(ValueError, match="copies"):
        fork_snapshots(position, 1, copies=0)
