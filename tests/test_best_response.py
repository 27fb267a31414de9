"""The learner against a frozen agent: what it sees, whom it meets, and how it is judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch as th
from scipy import stats

from agents.skirmish import make_skirmish_agent
from agents.training.ppo import make_model
from benchmarks import best_response
from benchmarks.best_response import Frozen, config_of, judge, make_tables, run, table
from deck_of_spies_env.skirmish import cards

CHANCE_OF_A_FALSE_ALARM = 1e-6


@pytest.mark.parametrize("num_players", [2, 4])
def test_a_learner_that_sees_hands_sees_them_in_turn(num_players: int) -> None:
    """Card by card, at tables of random play, whichever seat the learner has."""
    agent = make_skirmish_agent("random", num_players)
    envs = make_tables(agent, 20, num_players, sees_hands=True)
    envs.seed(3)
    observations = envs.reset()
    random = np.random.default_rng(0)
    for _ in range(60):
        assert envs.observation_space.contains(observations[0])
        for row, seen in enumerate(observations):
            hands = envs.games.states["hand"][row]
            seat = int(envs._seats[row])
            expected = [
                sum(
                    1
                    for index in range(54)
                    if int(hands[other]) >> index & 1 and index >> 2 == rank
                )
                for other in [(seat + turn) % num_players for turn in range(1, num_players)]
                for rank in range(cards.NUM_RANKS)
            ]
            assert seen[-len(expected) :].tolist() == expected
        masks = envs.action_masks()
        observations, *_ = envs.step((random.random(masks.shape) * masks).argmax(axis=1))


def test_a_frozen_agent_draws_anew_each_time() -> None:
    """Asked twice for the same seats it does not do the same, unlike the agent itself."""
    envs = make_tables(make_skirmish_agent("random", 2), 200, 2, sees_hands=False)
    envs.seed(0)
    observations, masks = envs.reset(), envs.action_masks()
    frozen = Frozen(make_skirmish_agent("random", 2), seed=5)
    first, second = (frozen.act(observations, masks) for _ in range(2))
    assert (first != second).any()
    frozen.reset(5)
    np.testing.assert_array_equal(first, frozen.act(observations, masks))


def test_an_untrained_learner_is_judged_as_what_it_is() -> None:
    """Its likeliest actions know nothing, and random play gains nothing on them either way by much;
    every deal has one game a seat, and shares and payoffs fit each other (S12)."""
    th.set_num_threads(1)
    agent = Frozen(make_skirmish_agent("random", 3), seed=0)
    config = config_of(3, 1000, 0)
    model = make_model(config, make_tables(agent, 4, 3, sees_hands=True), th.device("cpu"))
    shares, payoffs = judge(model, agent, 3, 100, sees_hands=True)
    np.testing.assert_allclose(payoffs, (3 * shares - 1) / 2)
    assert (shares >= 0).all()
    assert (shares <= 1).all()
    games = shares * 3 * 6  # shares of a win are halves and thirds
    np.testing.assert_allclose(games, games.round(), atol=1e-9)
    assert 0.1 < shares.mean() < 0.9


def test_against_a_policy_the_learner_begins_as_that_policy() -> None:
    """After a single rollout its likeliest actions gain on the policy that draws, as those of the
    policy itself do."""
    th.set_num_threads(1)
    made = run("ppo", 2, steps=100, deals=600, sees_hands=False)
    half = (made["win_rate_ci"][1] - made["win_rate_ci"][0]) / 2 / stats.norm.ppf(0.975)
    assert made["win_rate"] - stats.norm.isf(CHANCE_OF_A_FALSE_ALARM) * half > 0.5


def test_a_learner_finds_out_a_bad_player(tmp_path: Path) -> None:
    """Sixty thousand decisions against the player of high cards gain far more than chance."""
    arguments = ["--agent", "high", "--steps", "60000", "--deals", "300"]
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr("sys.argv", ["x", *arguments, "--results", str(tmp_path)])
        best_response.main()
    made = json.loads((tmp_path / "2p-high.json").read_text())
    assert made["decisions"] >= 60_000
    assert made["win_rate"] == pytest.approx((made["payoff"] + 1) / 2)
    # The lower end of an interval with one false alarm in a million.
    half = (made["win_rate_ci"][1] - made["win_rate_ci"][0]) / 2 / stats.norm.ppf(0.975)
    assert made["win_rate"] - stats.norm.isf(CHANCE_OF_A_FALSE_ALARM) * half > 0.5
    line = table([made]).splitlines()[-1]
    assert line.startswith("| 2 | `high` | no | ")
    assert " | 0.1 | 300 | " in line
    low, high = made["untrained_payoff_ci"]
    assert low < made["untrained_payoff"] < high
