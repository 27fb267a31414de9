"""Luck in matches: its mean, what it leaves of an outcome, and intervals made with it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from conftest import SHORT
from numpy.typing import NDArray
from scipy import stats

from agents import make_agent
from agents.exact import ExactAgent, solve
from deck_of_spies_env import Rules
from deck_of_spies_env.evaluation.luck import (
    LuckWatcher,
    ValueFunction,
    adjusted_difference,
    adjusted_mean,
    adjusted_outcomes,
)
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.evaluation.statistics import Interval
from deck_of_spies_env.evaluation.values import (
    QUANTITIES,
    position_values,
    read_values,
    write_values,
)
from deck_of_spies_env.solitaire.afterstates import Network
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.solitaire.policies import greedy_actions
from deck_of_spies_env.solitaire.rollouts import deal_snapshots
from deck_of_spies_env.solitaire.rules import OVER

WINS, KEY_SPIES = (QUANTITIES.index(name) for name in ("wins", "key_spies"))
STANDARD_ERRORS = 5.0  # missed by chance once in 1.7 million


def match(
    name: str,
    num_deals: int,
    *,
    batch_size: int = 1024,
    samples: int = 2,
    value_function: ValueFunction = position_values,
    **arguments: Any,
) -> tuple[MatchResult, NDArray[np.float64]]:
    """A match of an agent, and its luck."""
    agent = make_agent(name)
    agent.reset(0)
    watcher = LuckWatcher(num_deals, samples=samples, value_function=value_function)
    seeds = deal_seeds("select", 1, num_deals)
    result = play_deals(agent, seeds, batch_size=batch_size, watchers=[watcher], **arguments)
    return result, watcher.luck


def silly_values(states: NDArray[Any], rules: Rules) -> NDArray[np.float64]:
    """Values with little sense: something of the hand, and something of everything."""
    of_hand = np.bitwise_count(states["hand"] & np.uint64(0x3333333333333))
    mixed = states["hand"] * np.uint64(0x9E3779B97F4A7C15) ^ states["draw_deck"]
    return np.stack([of_hand, mixed >> np.uint64(40)], axis=1).astype(np.float64)


def sensible_and_silly(states: NDArray[Any], rules: Rules) -> NDArray[np.float64]:
    return np.hstack([position_values(states, rules), silly_values(states, rules)])


def standardised(luck: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean luck in standard errors."""
    return luck.mean(axis=0) / (luck.std(axis=0, ddof=1) / np.sqrt(len(luck)))


# --- Luck -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["greedy", "random"])
def test_luck_is_zero_in_the_mean_whatever_the_values_and_the_agent(name: str) -> None:
    _, luck = match(name, 1000, value_function=sensible_and_silly)
    assert luck.shape == (1000, 4)
    assert (np.abs(standardised(luck)) < STANDARD_ERRORS).all(), standardised(luck)
    assert (luck.std(axis=0) > 0).all()


def test_values_that_are_always_the_same_see_no_luck() -> None:
    _, luck = match("greedy", 50, value_function=lambda states, rules: np.ones((len(states), 1)))
    assert (luck == 0).all()


def test_luck_does_not_depend_on_what_is_played_beside() -> None:
    _, many = match("greedy", 40)
    _, few = match("greedy", 40, batch_size=3)
    _, first = match("greedy", 15)
    assert few == pytest.approx(many, abs=1e-9)
    assert first == pytest.approx(many[:15], abs=1e-9)


def test_watching_changes_nothing() -> None:
    watched, _ = match("greedy", 60)
    plain = play_deals(make_agent("greedy"), deal_seeds("select", 1, 60))
    assert (watched.key_spies == plain.key_spies).all()
    assert (watched.decisions == plain.decisions).all()


def test_other_seeds_meet_other_chance() -> None:
    lucks: list[NDArray[np.float64]] = []
    for seed in (0, 1):
        watcher = LuckWatcher(20, seed=seed)
        play_deals(make_agent("greedy"), deal_seeds("select", 1, 20), watchers=[watcher])
        lucks.append(watcher.luck)
    assert (lucks[0] != lucks[1]).any(axis=1).all()


def test_exact_values_take_all_luck_out() -> None:
    """The optimum of a small deck is left of every single game of an agent that plays it."""
    games = Games(1, start=SHORT)
    games.seed([0], [0])
    games.deal()
    solution = solve(games.states.copy(), objectives=["keys"])

    def exact(states: NDArray[Any], rules: Rules) -> NDArray[np.float64]:
        values = position_values(states, rules)[:, [KEY_SPIES]] / 12
        going_on = states["phase"] != OVER
        if going_on.any():
            values[going_on] = solution.values(states[going_on])
        return values

    watcher = LuckWatcher(60, samples=1000, value_function=exact)
    seeds = deal_seeds("select", 1, 60)
    result = play_deals(ExactAgent(solution), seeds, watchers=[watcher], start=SHORT)
    assert len(set(result.key_spies.tolist())) > 1
    left = result.key_spies / 12 - watcher.luck[:, 0]
    assert left == pytest.approx(np.full(60, solution.values(games.states)[0, 0]), abs=1e-9)


@pytest.mark.parametrize(("num_deals", "seed", "samples"), [(0, 0, 1), (1, -1, 1), (1, 0, 0)])
def test_a_bad_watcher_is_refused(num_deals: int, seed: int, samples: int) -> None:
    with pytest.raises(ValueError, match=r"num_deals|seed|samples"):
        LuckWatcher(num_deals, seed=seed, samples=samples)


# --- What is left ---------------------------------------------------------------------------------


def test_key_spies_of_a_strong_agent_are_told_from_fewer_deals() -> None:
    result, luck = match("afterstate", 800, samples=8)
    found = adjusted_mean(result.key_spies, luck, KEY_SPIES)
    assert found.factor > 3.0
    plain_error = result.key_spies.std() / np.sqrt(800)
    assert abs(found.mean - result.key_spies.mean()) < STANDARD_ERRORS * plain_error
    assert found.interval.low < found.mean < found.interval.high


def test_intervals_cover_and_deals_are_saved() -> None:
    """Simulated: luck explains four fifths of the variance; 95 % intervals in 600 repetitions."""
    rng, num_deals, repetitions = np.random.default_rng(3), 150, 600
    covered, factors = 0, []
    for _ in range(repetitions):
        luck = rng.normal(size=(num_deals, 2))
        outcomes = 1.0 + 2.0 * luck[:, 0] + rng.normal(size=num_deals)
        found = adjusted_mean(outcomes, luck, 0)
        covered += found.interval.low <= 1.0 <= found.interval.high
        factors.append(found.factor)
    assert stats.binomtest(covered, repetitions, 0.95).pvalue > 1e-6
    assert 2.5 < np.median(factors) < 5.0  # 5 with the best coefficients


def test_the_adjusted_mean_is_unbiased() -> None:
    rng = np.random.default_rng(4)
    means: list[float] = []
    for _ in range(2000):
        luck = rng.exponential(size=(12, 1)) - 1.0
        means.append(float(adjusted_outcomes(3.0 * luck[:, 0] ** 2 + 0.5, luck, 0).mean()))
    error = np.std(means) / np.sqrt(len(means))
    assert abs(np.mean(means) - 3.5) < STANDARD_ERRORS * error


def test_luck_that_explains_nothing_does_little_harm() -> None:
    rng = np.random.default_rng(5)
    outcomes, luck = rng.normal(size=4000), rng.normal(size=(4000, 2))
    assert adjusted_mean(outcomes, luck, 1).factor > 0.97


def test_few_deals_trust_the_values() -> None:
    luck = np.array([[-0.5], [0.25]])
    assert adjusted_outcomes(np.array([0, 1]), luck, 0) == pytest.approx([0.5, 0.75], abs=1e-12)


def test_bounds_cut_off() -> None:
    luck = np.array([[-0.5], [0.5], [-0.4], [0.3]])
    found = adjusted_mean(np.ones(4), luck, 0, bounds=Interval(0.0, 1.0))
    assert found.interval.high == 1.0
    assert found.interval.low <= found.mean <= 1.0


def test_differences_are_paired() -> None:
    rng = np.random.default_rng(6)
    lucks = rng.normal(size=(2, 3000, 1))
    deal = rng.normal(size=3000)
    first, second = deal + lucks[0, :, 0] + 0.1, deal + lucks[1, :, 0]
    found = adjusted_difference(first, lucks[0], second, lucks[1], 0)
    assert found.mean == pytest.approx(0.1, abs=0.02)
    assert found.interval.low < found.mean < found.interval.high
    assert found.factor > 20
    same = adjusted_difference(first, lucks[0], first, lucks[0], 0)
    assert same == (0.0, Interval(0.0, 0.0), 1.0)


@pytest.mark.parametrize(
    ("outcomes", "luck", "column", "why"),
    [
        (np.ones(3), np.ones((4, 1)), 0, "same deals"),
        (np.ones(1), np.ones((1, 1)), 0, "two at least"),
        (np.ones(3), np.ones(3), 0, "same deals"),
        (np.ones(3), np.ones((3, 2)), 2, "column must be 0 to 1"),
        (np.ones(3), np.full((3, 2), np.nan), 0, "finite"),
    ],
)
def test_bad_samples_are_refused(
    outcomes: NDArray[np.float64], luck: NDArray[np.float64], column: int, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        adjusted_outcomes(outcomes, luck, column)


# --- Values ---------------------------------------------------------------------------------------


def played_on(snapshots: NDArray[Any], rules: Rules, steps: int) -> Games:
    """Games after some greedy plays; those that end rest."""
    games = Games(len(snapshots), rules=rules)
    games.restore(snapshots)
    for _ in range(steps):
        going_on = ~games.over
        if not going_on.any():
            break
        actions = np.zeros(len(games), np.int64)
        actions[going_on] = greedy_actions(games.states[going_on].copy(), rules)
        games.step(actions, going_on)
    return games


@pytest.mark.parametrize("rules", [Rules(), Rules(hand_size=7), Rules(key_spies_to_win=3)])
def test_a_game_that_is_over_is_worth_what_it_came_to(rules: Rules) -> None:
    games = played_on(deal_snapshots(range(60), rules), rules, 10_000)
    assert games.over.all()
    values, endings = position_values(games.states, rules), games.endings()
    assert (values[:, WINS] == endings["is_success"]).all()
    assert (values[:, KEY_SPIES] == endings["key_spies"]).all()
    assert len(set(endings["outcome"])) > 1


@pytest.mark.parametrize("rules", [Rules(), Rules(hand_size=7), Rules(key_spies_to_win=3)])
def test_values_are_probabilities_and_counts(rules: Rules) -> None:
    values = position_values(played_on(deal_snapshots(range(60), rules), rules, 15).states, rules)
    assert values.shape == (60, 2)
    assert ((values >= 0) & (values <= (1.0 + 1e-6, 12.0 + 1e-5))).all()


def test_openings_are_worth_what_strong_play_wins() -> None:
    """The agent's card has 98.8 % and 9.66 Key Spies; the network is about right on the average."""
    wins, key_spies = position_values(deal_snapshots(range(2000))["state"]).mean(axis=0)
    assert wins == pytest.approx(0.988, abs=0.01)
    assert key_spies == pytest.approx(9.66, abs=0.2)


def small_network() -> Network:
    shapes = (230, 16), (16,), (16, 16), (16,), (16, 16), (16,)
    return Network(*(np.zeros(shape, np.float32) for shape in shapes))


def test_a_file_of_values_holds_the_weights(tmp_path: Any) -> None:
    network = small_network()._replace(last_bias=np.arange(16, dtype=np.float32))
    write_values(network, {"seed": 1}, tmp_path / "values.npz")
    read = read_values((tmp_path / "values.npz").read_bytes())
    assert all((ours == theirs).all() for ours, theirs in zip(network, read, strict=True))


def test_other_files_are_refused(tmp_path: Any) -> None:
    other = io.BytesIO()
    np.savez(
        other,
        description=np.array('{"format": "values-0", "env": "DeckOfSpies-v0"}'),
        **small_network()._asdict(),
    )
    broken = small_network()._replace(second=np.zeros((16, 15), np.float32))
    write_values(broken, {}, tmp_path / "broken.npz")
    for content, why in (
        (b"nothing", "no file of position values"),
        (other.getvalue(), "this version reads"),
        ((tmp_path / "broken.npz").read_bytes(), "corrupt"),
    ):
        with pytest.raises(ValueError, match=why):
            read_values(content)
