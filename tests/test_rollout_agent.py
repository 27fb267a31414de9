"""The rollout agent: its estimates, its streams, and how well it plays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import position
from numpy.typing import NDArray

from agents import AgentError, make_agent
from agents.rollout import RolloutAgent
from agents.rollout_kernels import WIN_BONUS
from deck_of_spies_env import Rules
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.seeds import agent_seed, deal_seeds
from deck_of_spies_env.random_streams import fork_streams
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.games import SNAPSHOT, Games, states_from_recall
from deck_of_spies_env.solitaire.observations import PACKED_WORDS
from deck_of_spies_env.solitaire.rollouts import PlayOuts, fork_snapshots, play_out

WIN_RATE_OF_16 = (0.58, 0.82)
"""With 16 playouts it won 0.699 of 2,000 deals; 200 have a standard error of 0.032."""

Snapshots = NDArray[Any]


def rollout(seed: int = 0, budget: int = 8, **rules: Any) -> Agent:
    """A rollout agent that has been reset."""
    agent = RolloutAgent(Rules(**rules), budget)
    agent.reset(seed)
    return agent


def seen(env: DeckOfSpiesEnv) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Observation and mask of an environment's position."""
    observation, info = env.reset(options={"zones": env.zones(), "phase": env.phase})
    return observation, info["action_mask"]


def choice(env: DeckOfSpiesEnv, agent: Agent) -> str:
    """What an agent plays in the position of an environment: kind and cards."""
    action = env.decode(int(agent.act(*seen(env))))
    return " ".join((action.kind, *action.cards))


def midgame(count: int, **rules: Any) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Observations and masks of games after 0 to 39 random decisions, some in phase retire."""
    games = Games(count, rules=rules)
    games.seed(range(count), range(count))
    games.deal()
    rng, everyone = np.random.default_rng(0), np.arange(count)
    for step in range(39):
        actions = (rng.random(games.masks.shape) * games.masks).argmax(axis=1)
        games.step(actions, (everyone % 40 > step) & ~games.over)
    return games.observations[~games.over], games.masks[~games.over]


def after(snapshots: Snapshots, action: int, rules: Rules) -> PlayOuts:
    """How games end that go on greedily after an action."""
    games = Games(len(snapshots), rules=rules)
    games.restore(snapshots)
    games.step(np.full(len(snapshots), action))
    return play_out(games.snapshots(), "greedy", rules)


def same(first: MatchResult, second: MatchResult) -> bool:
    """Whether two matches went alike, deal by deal."""
    columns = ("wins", "key_spies", "turns", "decisions", "outcomes")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in columns)


# --- The same as the public functions say ---------------------------------------------------------

_MASK = (1 << 64) - 1


def mixed(word: int) -> int:
    """SplitMix64's finaliser once more, in Python."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)


def streams_of(observation: NDArray[np.int8], seed: int, budget: int) -> Snapshots:
    """The streams that the agent's docstring promises, derived in Python."""
    streams = np.repeat(fork_streams(seed, 1), budget)
    key = int(streams["key"][0])
    (state,) = states_from_recall(observation[np.newaxis])
    spy = (1 << int(state["spy"]) if state["spy"] >= 0 else 0) | (1 << (52 + int(state["phase"])))
    for word in (*(int(state[name]) for name in PACKED_WORDS[:-1]), spy):
        key = mixed(key ^ word)
    streams["key"] = key
    for k in range(budget):
        for name, place in (("spies", 2 * k + 1), ("draws", 2 * k + 2)):
            streams[name][k] = mixed(key ^ mixed(place * 0x9E3779B97F4A7C15 & _MASK))
    return streams


@pytest.mark.parametrize(
    "rules", [{}, {"hand_size": 3}, {"hand_size": 8, "key_spies_to_win": 5}], ids=str
)
@pytest.mark.parametrize("budget", [1, 5, 150])
def test_choices_are_those_of_a_loop_over_the_public_functions(
    rules: dict[str, Any], budget: int
) -> None:
    observations, masks = midgame(60, **rules)
    actions = np.atleast_1d(rollout(11, budget, **rules).act(observations, masks))
    assert len(set(actions.tolist())) > 5
    for observation, mask, chosen in zip(observations, masks, actions, strict=True):
        playouts = np.zeros(budget, dtype=SNAPSHOT)
        playouts["state"] = states_from_recall(observation[np.newaxis])[0]
        playouts["streams"] = streams_of(observation, 11, budget)
        scores: list[tuple[int, int, int]] = []
        for action in np.flatnonzero(mask).tolist():
            ends = after(playouts, action, Rules(**rules))
            key_spies = int(ends.key_spies.sum())
            scores.append((WIN_BONUS * int(ends.wins.sum()) + key_spies, key_spies, -action))
        assert -max(scores)[2] == chosen


def test_estimates_agree_with_independent_playouts() -> None:
    """By streams of another kind: what is chosen is never far worse than the best action."""
    observations, masks = midgame(40)
    actions = np.atleast_1d(rollout(3, 256).act(observations, masks))
    number, worse = 4000, []
    for state, mask, chosen in zip(states_from_recall(observations), masks, actions, strict=True):
        snapshots = fork_snapshots(state, seed=5, copies=number)
        means = {}
        for action in np.flatnonzero(mask).tolist():
            ends = after(snapshots, action, Rules())
            means[action] = WIN_BONUS * ends.wins.mean() + ends.key_spies.mean()
        worse.append(max(means.values()) - means[int(chosen)])
    assert max(worse) < 0.5
    assert np.mean(worse) < 0.05


# --- Chance ---------------------------------------------------------------------------------------


def test_choices_depend_on_the_seed_alone() -> None:
    observations, masks = midgame(200)
    agent = rollout(seed=1, budget=2)
    first = agent.act(observations, masks)
    assert np.array_equal(agent.act(observations, masks), first)
    agent.reset(2)
    assert (np.asarray(agent.act(observations, masks)) != first).sum() > 10
    agent.reset(1)
    assert np.array_equal(agent.act(observations, masks), first)
    with pytest.raises(ValueError, match="negative"):
        agent.reset(-1)


def test_choices_do_not_depend_on_the_batch() -> None:
    observations, masks = midgame(200)
    agent = rollout()
    together = np.asarray(agent.act(observations, masks))
    assert np.array_equal(agent.act(observations[::-1], masks[::-1]), together[::-1])
    assert np.array_equal(agent.act(observations[3:50:7], masks[3:50:7]), together[3:50:7])
    alone = [agent.act(*pair) for pair in zip(observations, masks, strict=True)]
    assert np.array_equal(alone, together)


def test_deals_are_played_equally_whatever_is_played_beside_them() -> None:
    deals = deal_seeds("select", 0, 12)
    agent = rollout(budget=4)
    together = play_deals(agent, deals)
    assert same(play_deals(agent, deals, batch_size=5), together)
    assert same(play_deals(agent, deals, batch_size=1), together)
    assert play_deals(agent, deals[7:8]).key_spies[0] == together.key_spies[7]


# --- What it plays --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_it_takes_the_only_play_that_wins(seed: int) -> None:
    """Six Key Spies are held when the last spy, a Queen, falls: to recruit it wins the game."""
    agent = rollout(seed, budget=1)
    env = position("Ah 2c 3h 9h Kd", "Qh", draw_deck="Jc Jd Jh Js Qc")
    assert choice(env, agent).startswith("recruit")
    env = position("Jc Jd 5h", phase="retire", draw_deck="Jh Js Qc Qd Qs")
    assert choice(env, agent) == "pass"


def test_it_keeps_the_pair_that_greedy_play_would_retire() -> None:
    """Six Key Spies are held, and the last King is recruited by the 9 and the 4 of its suit."""
    env = position(
        "4h 9c 9h",
        "Kh",
        phase="retire",
        draw_deck="2c 2d 3c 3d",
        draw_discard="Jc Jd Jh Js Qc Qd",
    )
    assert choice(env, make_agent("greedy")) == "retire 9c 9h"
    assert choice(env, rollout(budget=1)) == "pass"


def test_forced_decisions_take_no_playouts() -> None:
    """An enormous budget costs nothing where there is nothing to choose."""
    env = position("2c 3d", "Ks", draw_deck="Ad 4h")
    assert choice(env, rollout(budget=10**9)) == "assassinate Ad"


def test_equal_scores_go_to_the_lowest_action() -> None:
    """Two Aces to give up with the last spy, and nothing more to win by either."""
    env = position("2c 3d", "Ks", draw_deck="Ad As 4h")
    assert choice(env, rollout()) == "assassinate Ad"


@pytest.mark.parametrize("rules", [{"hand_size": 3}, {"hand_size": 8, "idle_ace": False}], ids=str)
def test_it_plays_other_rules(rules: dict[str, Any]) -> None:
    result = play_deals(
        rollout(budget=2, **rules), deal_seeds("select", 0, 5), rules=Rules(**rules)
    )
    assert set(result.outcomes) <= {"win", "loss", "no_double_agent"}


# --- Its name -------------------------------------------------------------------------------------


def test_the_budget_is_an_option() -> None:
    observations, masks = midgame(100)
    expected = rollout(budget=3).act(observations, masks)
    assert np.array_equal(make_agent("rollout:budget=3").act(observations, masks), expected)
    default = make_agent("rollout").act(observations, masks)
    assert np.array_equal(make_agent("rollout:budget=64").act(observations, masks), default)
    assert not np.array_equal(default, expected)
    for wrong in ("rollout:budget=0", "rollout:budget=x", "rollout:playouts=3", "rollout=3"):
        with pytest.raises(AgentError, match="rollout"):
            make_agent(wrong)


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, None], ids=repr)
def test_bad_budgets_are_named(budget: Any) -> None:
    with pytest.raises(ValueError, match="budget must be a whole number of at least 1"):
        RolloutAgent(Rules(), budget)


# --- How well it plays ----------------------------------------------------------------------------


def test_it_wins_what_it_won_when_measured() -> None:
    agent = rollout(agent_seed(0), budget=16)
    wins = play_deals(agent, deal_seeds("select", 0, 200)).wins
    low, high = WIN_RATE_OF_16
    assert low < wins.mean() < high
