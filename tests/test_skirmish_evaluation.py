"""Tables of agents, ratings, and the command that judges them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import evaluate
from agents import AgentError
from agents.skirmish import REGISTRY, make_skirmish_agent
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.commands import USER_ERROR
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.evaluation.ratings import ELO, bradley_terry, rate
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.evaluation.tables import play_tables
from deck_of_spies_env.skirmish.actions import WAIT
from deck_of_spies_env.skirmish.bots import BOTS, make_bot
from deck_of_spies_env.skirmish.parallel import parallel_env
from deck_of_spies_env.skirmish.rules import Rules

SEEDS = deal_seeds("test", 0, 40)


class Lowest(BatchAgent):
    """The first legal action, without any chance; keeps what it was shown."""

    def __init__(self) -> None:
        self.masks: list[npt.NDArray[np.bool_]] = []

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        self.masks.append(action_masks.copy())
        return action_masks.argmax(axis=1)


def high() -> BatchAgent:
    return make_bot("high", 2)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_a_match_is_the_game_of_the_environment(num_players: int) -> None:
    """Each deal and rotation replayed one by one through the PettingZoo environment."""
    agents = [Lowest(), *(high() for _ in range(num_players - 1))]
    seeds = SEEDS[:6]
    result = play_tables(agents, seeds)
    for deal, seed in enumerate(seeds):
        for rotation in range(num_players):
            env: Any = parallel_env(num_players=num_players)
            observations, _ = env.reset(seed=seed)
            rewards: dict[str, float] = {}
            while env.agents:
                actions = {}
                for seat, name in enumerate(env.possible_agents):
                    agent = agents[(seat - rotation) % num_players]
                    shown = observations[name]
                    actions[name] = agent.act(shown["observation"], shown["action_mask"])
                observations, rewards, _, _, _ = env.step(actions)
            for agent in range(num_players):
                seat = (agent + rotation) % num_players
                paid = rewards[env.possible_agents[seat]]
                assert result.payoffs[deal, rotation, agent] == pytest.approx(paid)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_figures_of_a_match_agree(num_players: int) -> None:
    agents = [make_bot("intrigue", num_players), Lowest()]
    agents += [make_bot("rank", num_players) for _ in range(num_players - 2)]
    result = play_tables(agents, SEEDS)
    np.testing.assert_allclose(result.payoffs.sum(axis=2), 0, atol=1e-12)
    np.testing.assert_allclose(result.shares.sum(axis=2), 1)
    alone = result.shares == 1
    assert (result.payoffs[alone] == 1).all()
    np.testing.assert_allclose(result.payoffs[result.shares == 0], -1 / (num_players - 1))
    assert (result.margins[alone] > 0).all()
    assert (result.rounds > 0).all()
    assert not result.truncated.any()


def test_the_batch_does_not_matter() -> None:
    first = play_tables([make_bot("intrigue", 2), high()], SEEDS, batch_size=7)
    second = play_tables([make_bot("intrigue", 2), high()], SEEDS, batch_size=1000)
    np.testing.assert_array_equal(first.payoffs, second.payoffs)
    np.testing.assert_array_equal(first.rounds, second.rounds)
    np.testing.assert_array_equal(first.decisions, second.decisions)


def test_a_table_of_one_agent_is_even() -> None:
    """Each deal is played from both seats: a bot without chance gains nothing against itself."""
    result = play_tables([high(), high()], SEEDS)
    np.testing.assert_array_equal(result.share_by_deal(0), 0.5)
    np.testing.assert_array_equal(result.payoff_by_deal(0), 0)


def test_agents_are_not_asked_to_wait() -> None:
    agent = Lowest()
    play_tables([agent, high(), high()], SEEDS[:5])
    assert not any(masks[:, WAIT].any() for masks in agent.masks)


class Wrong(BatchAgent):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, observation: Any, action_mask: Any) -> Any:
        return self.answer

    def choose(self, observations: Any, action_masks: Any) -> Actions:
        raise AssertionError


@pytest.mark.parametrize("answer", [np.array([WAIT]), np.array([99]), np.array([0.5]), [], None])
def test_an_agent_that_breaks_the_rules_is_named(answer: Any) -> None:
    with pytest.raises(IllegalActionError):
        play_tables([Wrong(answer), high()], SEEDS[:1])


def test_round_limit_and_rules_are_passed_on() -> None:
    result = play_tables([high(), Lowest()], SEEDS[:5], rules=Rules(max_rounds=3))
    assert (result.rounds == 3).all()
    assert result.truncated.all()


# --- Ratings --------------------------------------------------------------------------------------


def test_ratings_recover_strengths() -> None:
    """Shares of wins as the model has them: the ratings differ as the strengths do."""
    strengths = np.array([0.0, 120.0, -80.0, 300.0])
    chances = 1 / (1 + 10 ** ((strengths[None, :] - strengths[:, None]) / 400))
    found = bradley_terry(1e6 * chances * (1 - np.eye(4)))
    np.testing.assert_allclose(found, strengths - strengths.mean(), atol=0.5)


def test_two_agents_have_the_ratings_of_their_odds() -> None:
    wins = np.array([[0.0, 75.0], [25.0, 0.0]]) * 1e5
    first, second = bradley_terry(wins)
    assert first - second == pytest.approx(ELO * np.log(3), abs=0.01)


def test_an_agent_that_never_wins_gets_a_finite_rating() -> None:
    ratings = bradley_terry(np.array([[0.0, 50.0], [0.0, 0.0]]))
    assert np.isfinite(ratings).all()
    assert ratings[0] > ratings[1]


def test_intervals_of_ratings_cover() -> None:
    """Over simulated matches a 95 % interval misses about one time in twenty.

    Of 200 matches each, with the true difference known, at most 24 misses in 200 are let pass: more
    have a probability below 1e-4 at the nominal level.
    """
    random = np.random.default_rng(1)
    truth = np.array([60.0, 0.0, -60.0])
    chances = 1 / (1 + 10 ** ((truth[None, :] - truth[:, None]) / 400))
    misses = 0
    for number in range(100):
        shares = {
            (i, j): (random.random(300) < chances[i, j]).astype(float)
            for i in range(3)
            for j in range(i + 1, 3)
        }
        for rating, true in zip(rate(shares, 3, seed=number), truth, strict=True):
            misses += not rating.low <= true <= rating.high
    assert 2 <= misses <= 34  # of 300, fifteen expected


def test_bad_tables_of_wins_are_refused() -> None:
    with pytest.raises(ValueError, match="square"):
        bradley_terry(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="same deals"):
        rate({}, 2)


# --- Agents and the command -----------------------------------------------------------------------


def test_the_bots_are_registered() -> None:
    assert set(BOTS) <= set(REGISTRY)
    for name in BOTS:
        assert make_skirmish_agent(name, 3)


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("nobody", "intrigue"),
        ("rank=here", "no path"),
        ("ppo:mode=loud", "draw or greedy"),
        ("ppo=/nowhere", "/nowhere"),
    ],
)
def test_bad_agents_are_named(spec: str, named: str) -> None:
    with pytest.raises(AgentError, match=named):
        make_skirmish_agent(spec, 2)


@pytest.mark.parametrize("num_players", [2, 3])
def test_the_command_writes_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], num_players: int
) -> None:
    file = tmp_path / "report.json"
    arguments = ["--game", "skirmish", "--num-players", str(num_players), "--deals", "20"]
    arguments += ["--agents", "intrigue", "rank", "high", "--json", str(file)]
    assert evaluate.main([*arguments, "--rules", "max_rounds=50"]) == 0
    printed = capsys.readouterr().out
    report = json.loads(file.read_text())
    assert (report["game"], report["num_players"], report["deals"]) == ("skirmish", num_players, 20)
    assert report["rules"]["max_rounds"] == 50
    assert [agent["name"] for agent in report["agents"]] == ["intrigue", "rank", "high"]
    assert len(report["comparisons"]) == (3 if num_players == 2 else 6)
    for agent in report["agents"]:
        low, high_end = agent["win_rate_ci"]
        assert low <= agent["win_rate"] <= high_end
        assert (agent["rating"] is None) == (num_players > 2)
    assert "intrigue - rank" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["--game", "skirmish", "--agents", "rank"],
        ["--game", "skirmish", "--agents", "rank", "nobody"],
        ["--game", "skirmish", "--agents", "rank", "high", "--rules", "hand_size=5"],
        ["--game", "skirmish", "--num-players", "5"],
        [
            "--game",
            "skirmish",
            "--agents",
            "rank",
            "high",
            "--rules",
            '{"ranks": "A", "num_suits": 1, "num_jokers": 0}',
        ],
        ["--game", "skirmish", "--agents", "rank", "high", "--rules", "ranks=AXK"],
        ["--num-players", "3"],
        ["--game", "chess"],
    ],
)
def test_mistakes_end_with_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        evaluate.main(arguments)
    assert ended.value.code == USER_ERROR
    assert capsys.readouterr().err.strip().count("\n") <= 1 + ("chess" in arguments) * 10
