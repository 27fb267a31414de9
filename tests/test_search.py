"""Chance look-ahead: the futures it judges, what it chooses of them, and the values it asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from afterstates import lost_with_key_spies, met_in_play
from conftest import position
from numpy.typing import NDArray
from scipy import stats

from agents import AgentError, make_agent
from agents.afterstate_network import random_weights, save_network
from agents.ppo import PPOValue, value_function
from agents.search import SearchAgent
from deck_of_spies_env import Rules, cards
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.random_streams import fork_streams
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.futures import sample_futures, write_keys
from deck_of_spies_env.solitaire.games import (
    SNAPSHOT,
    recall_of_states,
    states_from_recall,
)
from deck_of_spies_env.solitaire.rules import ACT, STATE

CHANCE_OF_A_FALSE_ALARM = 1e-6
KEY_SPIES = np.uint64(cards.KEY_SPIES)


def state_of(env: DeckOfSpiesEnv) -> NDArray[Any]:
    """The position of an environment, shape (1,)."""
    return env.get_state()["state"].reshape(1)


def futures_of(
    states: NDArray[Any],
    rows: list[int],
    actions: list[int],
    count: int,
    *,
    seed: int = 0,
    first: int = 0,
) -> NDArray[Any]:
    """What follows some plays of some positions, shape (plays, count)."""
    records = np.zeros(1, SNAPSHOT)
    records["streams"] = fork_streams(seed, 1)
    keys = np.full(len(states), records["streams"]["key"][0])
    write_keys(states, keys)
    futures = np.zeros((len(rows), count), STATE)
    sample_futures(
        *(states, keys, np.array(rows), np.array(actions), Rules().record),
        *(first, records, futures),
    )
    return futures


def all_plays(count: int = 40) -> tuple[NDArray[Any], list[int], list[int]]:
    """Positions met in play, and every legal action of each."""
    games = met_in_play(count)
    rows, actions = np.nonzero(games.masks)
    return games.states.copy(), rows.tolist(), actions.tolist()


# --- Futures --------------------------------------------------------------------------------------


def test_all_plays_of_a_position_meet_the_same_spies() -> None:
    states, rows, actions = all_plays()
    futures = futures_of(states, rows, actions, 30)
    met = 0
    for row in np.flatnonzero(states["phase"] == ACT):
        spies = futures["spy"][np.array(rows) == row]
        assert (spies == spies[0]).all()
        met += len(set(spies[0].tolist())) > 1
    assert met > 10


def test_futures_do_not_depend_on_what_else_is_asked() -> None:
    states, rows, actions = all_plays()
    together = futures_of(states, rows, actions, 8)
    order = np.random.default_rng(0).permutation(len(rows))[:60]
    some = futures_of(states, [rows[i] for i in order], [actions[i] for i in order], 8)
    np.testing.assert_array_equal(some, together[order])
    later = futures_of(states, rows, actions, 3, first=5)
    np.testing.assert_array_equal(later, together[:, 5:])
    backwards = futures_of(states[::-1].copy(), [len(states) - 1 - row for row in rows], actions, 8)
    np.testing.assert_array_equal(backwards, together)
    for i in order[:5]:
        alone = futures_of(states[rows[i] : rows[i] + 1].copy(), [0], [actions[i]], 8)
        np.testing.assert_array_equal(alone[0], together[i])
    assert (futures_of(states, rows, actions, 8, seed=1) != together).any()


def test_positions_are_left_as_they_are() -> None:
    states, rows, actions = all_plays(10)
    before = states.copy()
    futures_of(states, rows, actions, 4)
    np.testing.assert_array_equal(states, before)


def assert_uniform(outcomes: list[Any], possible: list[Any]) -> None:
    """Chi-square against the uniform law over the possible outcomes; no other ones occur."""
    counts = Counter(outcomes)
    assert set(counts) <= set(possible)
    p_value = stats.chisquare([counts[outcome] for outcome in possible]).pvalue
    assert p_value > CHANCE_OF_A_FALSE_ALARM


def text(mask: Any) -> tuple[str, ...]:
    return cards.cards_in(int(mask))


def test_spies_and_drawn_cards_are_uniform_and_independent() -> None:
    """Three spies of the lowest tier left, two cards to draw of six: 45 equal chances."""
    env = position(
        "2h 3d 8h 9s Ks",
        "5s",
        spy_deck="6c 7d 7h 8c Jc",
        draw_deck="2c 3c 4c 5c 6d 7c",
    )
    action = env.encode("counter", ["2h", "3d"])
    (futures,) = futures_of(state_of(env), [0], [action], 9000)
    kept = cards.mask_of(["8h", "9s", "Ks"])
    drawn = [(int(spy), text(int(hand) & ~kept)) for spy, hand in futures[["spy", "hand"]]]
    spies = [cards.card_index(card) for card in ("6c", "7d", "7h")]
    hands = list(combinations(("2c", "3c", "4c", "5c", "6d", "7c"), 2))
    assert_uniform(drawn, list(product(spies, hands)))


def test_a_reshuffle_is_uniform_too() -> None:
    """One card left to draw, then one of the discard with the cards just played."""
    env = position(
        "2h 3d 8h 9s Ks", "5s", spy_deck="6c", draw_deck="2c", draw_discard="4c 6d Td", seed=1
    )
    action = env.encode("counter", ["2h", "3d"])
    (futures,) = futures_of(state_of(env), [0], [action], 4000)
    kept = cards.mask_of(["8h", "9s", "Ks", "2c"])
    assert all(int(hand) & kept == kept for hand in futures["hand"])
    drawn = [text(int(hand) & ~kept) for hand in futures["hand"]]
    assert_uniform(drawn, [("4c",), ("6d",), ("Td",), ("2h",), ("3d",)])


# --- Choices --------------------------------------------------------------------------------------


class Opinion:
    """A value function that finds plays as good as told, and knows what positions are worth.

    Args:
        worth: of positions: states of shape (N,) to float (N,).
        prior: index of an action to how good it seems; all alike by default.
    """

    def __init__(
        self,
        worth: Callable[[NDArray[Any]], Any],
        prior: Callable[[NDArray[Any]], Any] = np.zeros_like,
    ) -> None:
        self.worth, self.prior = worth, prior
        self.judged: list[NDArray[Any]] = []

    def play_values(self, states: NDArray[Any]) -> Any:
        masks = recall_of_states(states, Rules())[1]
        seeming = self.prior(np.arange(masks.shape[1], dtype=np.float32))
        values = np.where(masks == 1, seeming, -np.inf).astype(np.float32)
        return values, values.argmax(axis=1)

    def position_values(self, states: NDArray[Any]) -> Any:
        self.judged.append(states.copy())
        return np.asarray(self.worth(states), np.float32)

    @property
    def all_judged(self) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, STATE), *self.judged])


def choice(env: DeckOfSpiesEnv, opinion: Opinion, plays: int = 8, samples: int = 32) -> str:
    """What the search plays: kind and cards."""
    observation, info = env.reset(options={"zones": env.zones(), "phase": env.phase})
    agent = SearchAgent(opinion, Rules(), plays, samples)
    kind, played = env.decode(int(agent.act(observation, info["action_mask"])))
    return " ".join((kind, *played))


def seven_held(states: NDArray[Any]) -> Any:
    held = states["hand"] | states["draw_deck"] | states["draw_discard"]
    return np.bitwise_count(held & KEY_SPIES) >= 7


def may_recruit(states: NDArray[Any]) -> Any:
    masks = recall_of_states(states, Rules())[1]
    return masks[:, 31:62].any(axis=1)


def ace_in_hand(states: NDArray[Any]) -> Any:
    return states["hand"] & np.uint64(cards.ACES) != 0


def against(value: NDArray[Any]) -> Any:
    """A prior that likes the actions of low index."""
    return -value


@pytest.mark.parametrize("prior", [np.zeros_like, against, np.positive], ids=lambda f: f.__name__)
class TestTheBestPlayIsFound:
    """Whatever the plays seem to be worth before."""

    def test_the_recruit_that_wins(self, prior: Any) -> None:
        env = position("Ah 2c 3h 9h Kd", "Qh", draw_deck="Jc Jd Jh Js Qc")
        assert choice(env, Opinion(seven_held, prior), plays=40).startswith("recruit")

    def test_keeping_the_cards_that_recruit_the_next_spy(self, prior: Any) -> None:
        env = position("4h 9c 9h", "Kh", phase="retire", draw_deck="2c 2d 3c 3d")
        assert choice(env, Opinion(may_recruit, prior)) == "pass"

    def test_the_play_that_draws_most(self, prior: Any) -> None:
        """One Ace among the four cards to draw: two are drawn after two cards were played."""
        env = position(
            "2d 3c 5h 9s Ts", "5s", spy_deck="6c 7d 8c", draw_deck="Ac 4d 6h 7c", draw_discard="8d"
        )
        assert choice(env, Opinion(ace_in_hand, prior), samples=256) == "counter 2d 3c"


def seven_plays() -> DeckOfSpiesEnv:
    """Each card of the hand counters, and two recruit; there is much to turn up and to draw."""
    env = position(
        "5h 6d 8c 9s Ks",
        "5s",
        spy_deck="5c 5d 6c 6h 6s 7c 7d 7h 7s 8d Jc",
        draw_deck="2c 2d 2h 2s 3c 3d 3h 3s 4c 4d 4h 4s 8h 8s 9c 9d 9h Tc Td Th",
    )
    assert env.action_masks().sum() == 7
    return env


def play_of(states: NDArray[Any]) -> Any:
    """Which of the seven was played: the card, and half a step more for a recruit."""
    spy = np.uint64(1 << cards.card_index("5s"))
    played, recruited = states["draw_discard"] & ~spy, states["draw_discard"] & spy != 0
    return np.log2(played.astype(float)) + recruited / 2


def test_only_so_many_plays_are_tried_as_are_wanted() -> None:
    """Those that seem best; a single one needs no look at what follows."""
    for plays, played in ((1, "counter 5h"), (2, "counter 6d"), (3, "counter 8c")):
        opinion = Opinion(play_of, against)
        assert choice(seven_plays(), opinion, plays) == played
        assert len(set(play_of(opinion.all_judged).tolist())) == (plays if plays > 1 else 0)


def test_a_prior_holds_against_small_differences_only() -> None:
    """A little of it changes nothing where the futures differ much; a lot of it decides alone."""

    def choice_with(prior: float) -> str:
        env = seven_plays()
        agent = SearchAgent(Opinion(play_of, against), Rules(), 7, 8, prior=prior)
        observation, info = env.reset(options={"zones": env.zones(), "phase": env.phase})
        kind, played = env.decode(int(agent.act(observation, info["action_mask"])))
        return " ".join((kind, *played))

    assert choice_with(0.0) == choice_with(0.01) == "recruit Ks"
    assert choice_with(1e6) == "counter 5h"


def test_opinions_of_ppo_are_logarithms_of_probabilities(critic: PPOValue) -> None:
    logarithms, _ = critic.play_values(met_in_play(200).states.copy())
    np.testing.assert_allclose(np.exp(logarithms).sum(axis=1), 1, rtol=1e-5)


def test_the_worse_half_is_dropped_and_the_rest_looked_at_longer() -> None:
    """Seven plays, then four, then two: half is rounded up."""
    opinion = Opinion(play_of)
    assert choice(seven_plays(), opinion, plays=7, samples=8) == "recruit Ks"
    counts = Counter(play_of(opinion.all_judged).tolist())
    assert [counts[play] for play in sorted(counts)] == [8, 8, 8, 16, 16, 32, 32]
    opinion = Opinion(play_of)
    choice(seven_plays(), opinion, plays=5, samples=8)
    assert sorted(Counter(play_of(opinion.all_judged).tolist()).values()) == [8, 8, 16, 32, 32]


def test_forced_decisions_cost_nothing() -> None:
    env = position("2c 3d", "Ks", draw_deck="Ad 4h")
    opinion = Opinion(seven_held)
    assert choice(env, opinion, samples=10**9) == "assassinate Ad"
    assert not len(opinion.all_judged)


def test_among_others_forced_decisions_cost_nothing_either() -> None:
    games = met_in_play(200)
    forced = games.masks.sum(axis=1) == 1
    assert forced.sum() > 3
    opinion = Opinion(seven_held)
    agent = SearchAgent(opinion, Rules(), plays=4, samples=2)
    agent.act(games.observations, games.masks)
    with_them = len(opinion.all_judged)
    opinion.judged.clear()
    agent.act(games.observations[~forced], games.masks[~forced])
    assert len(opinion.all_judged) == with_them


# --- Values ---------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    network = random_weights(32, 16, np.random.default_rng(0))
    network = network._replace(last=network.last * np.float32(10))
    save_network(network, Rules(), {"objective": "keys"}, path)
    return path


def test_choices_do_not_depend_on_the_batch(model: Path) -> None:
    games = met_in_play(90)
    observations, masks = games.observations, games.masks
    agent = make_agent(f"search:value=afterstate={model},plays=4,samples=3")
    together = np.asarray(agent.act(observations, masks))
    assert masks[np.arange(90), together].all()
    np.testing.assert_array_equal(agent.act(observations[::-1], masks[::-1]), together[::-1])
    np.testing.assert_array_equal(agent.act(observations[3:70:7], masks[3:70:7]), together[3:70:7])
    alone = [agent.act(*pair) for pair in zip(observations, masks, strict=True)]
    np.testing.assert_array_equal(alone, together)


def test_choices_depend_on_the_seed_alone(model: Path) -> None:
    games = met_in_play(90)
    agent = make_agent(f"search:value=afterstate={model},plays=8,samples=1")
    first = np.asarray(agent.act(games.observations, games.masks))
    np.testing.assert_array_equal(agent.act(games.observations, games.masks), first)
    agent.reset(3)
    assert (np.asarray(agent.act(games.observations, games.masks)) != first).any()
    agent.reset(0)
    np.testing.assert_array_equal(agent.act(games.observations, games.masks), first)
    with pytest.raises(ValueError, match="negative"):
        agent.reset(-1)


def test_deals_are_played_equally_whatever_is_played_beside_them(model: Path) -> None:
    agent = make_agent(f"search:value=afterstate={model},plays=2,samples=1")
    seeds = deal_seeds("select", 0, 6)
    together = play_deals(agent, seeds)
    np.testing.assert_array_equal(
        play_deals(agent, seeds[2:5], batch_size=1).key_spies, together.key_spies[2:5]
    )


def test_it_plays_other_rules(tmp_path: Path) -> None:
    for rules in (Rules(hand_size=3), Rules(hand_size=8, idle_ace=False)):
        path = tmp_path / "model.safetensors"
        network = random_weights(16, 16, np.random.default_rng(0))
        save_network(network, rules, {"objective": "keys"}, path)
        agent = make_agent(f"search:value=afterstate={path},plays=3,samples=1", rules)
        result = play_deals(agent, deal_seeds("select", 0, 3), rules=rules)
        assert set(result.outcomes) <= {"win", "loss", "no_double_agent"}


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (":plays=0", "plays must be a whole number"),
        (":samples=many", "samples must be a whole number"),
        (":samples=-1", "samples"),
        (":value=fame", "unknown value function 'fame'; there are afterstate, ppo"),
        (":value=", "unknown value function"),
        (":value=ppo=model.zip,objective=win", "give path or objective"),
        (":value=ppo=nowhere.zip", "nowhere.zip"),
        (":value=afterstate=nowhere.safetensors", "nowhere.safetensors"),
        (":objective=fame", "objective must be one of"),
        (":depth=3", "depth must be 1 or 2"),
        (":prior=-1", "prior must be a number from 0 up"),
        (":prior=nan", "prior must be a number from 0 up"),
        (":prior=much", "prior must be a number from 0 up"),
        (":plays=2,plays=3", "at most once"),
        ("=model.zip", "takes no path"),
    ],
)
def test_bad_options_are_named(written: str, named: str) -> None:
    with pytest.raises(AgentError, match=r"^[^\n]*$") as caught:
        make_agent(f"search{written}")
    assert named in str(caught.value)


@pytest.fixture(scope="module")
def critic() -> PPOValue:
    th.set_num_threads(1)
    return value_function(Rules(), None)


def test_the_critic_is_that_of_the_policy(critic: PPOValue) -> None:
    """Asked through SB3 with the environment's own observations."""
    games = met_in_play(200)
    with th.inference_mode():
        expected = critic._policy.predict_values(th.as_tensor(games.observations))[:, 0].numpy()
    values = critic.position_values(games.states.copy())
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    assert np.ptp(values) > 0.1


def test_its_opinions_of_plays_are_those_of_the_agent(critic: PPOValue) -> None:
    games = met_in_play(200)
    logits, best = critic.play_values(games.states.copy())
    np.testing.assert_array_equal(np.isfinite(logits), games.masks == 1)
    assert (logits[games.masks == 0] == -np.inf).all()
    np.testing.assert_array_equal(best, make_agent("ppo").act(games.observations, games.masks))


def test_games_that_are_over_are_worth_what_they_came_to(critic: PPOValue) -> None:
    """The shipped policy was trained for a win and the share of the Key Spies."""
    games = met_in_play(400)
    rng = np.random.default_rng(2)
    for _ in range(25):
        actions = (rng.random(games.masks.shape) * games.masks).argmax(axis=1)
        games.step(actions, ~games.over)
    over = games.over
    assert 20 < over.sum() < 400
    endings = games.endings()
    assert {"loss", "no_double_agent"} <= set(endings["outcome"][over])
    values = critic.position_values(games.states.copy())
    worth = endings["is_success"] + endings["key_spies"] / 12
    np.testing.assert_allclose(values[over], worth[over], rtol=1e-6)
    assert critic.position_values(lost_with_key_spies()).tolist() == [0]
    others = critic.position_values(games.states[~over])
    np.testing.assert_allclose(values[~over], others, rtol=1e-5, atol=1e-6)


def test_a_won_game_is_worth_its_win(critic: PPOValue) -> None:
    env = position("Kd 2c 3h 9h Td", "Qh", draw_deck="Jc Jd Jh Js Qc Qd")
    env.step(env.encode("counter", ["Kd"]))
    assert env.phase == "over"
    assert critic.position_values(state_of(env)).tolist() == pytest.approx([1 + 7 / 12])


# --- Observations of positions --------------------------------------------------------------------


@pytest.mark.parametrize("hand_size", [3, 5, 8])
def test_positions_and_observations_are_the_same_thing(hand_size: int) -> None:
    rules = Rules(hand_size=hand_size)
    games = met_in_play(150, hand_size=hand_size)
    rows, masks = recall_of_states(games.states.copy(), rules)
    np.testing.assert_array_equal(rows, games.observations)
    np.testing.assert_array_equal(masks, games.masks)
    assert (rows.dtype, masks.dtype) == (np.int8, np.int8)
    np.testing.assert_array_equal(states_from_recall(rows), games.states)


def test_games_that_are_over_allow_nothing() -> None:
    games = met_in_play(60)
    while not games.over.all():
        games.step(games.masks.argmax(axis=1), ~games.over)
    rows, masks = recall_of_states(games.states.copy(), Rules())
    np.testing.assert_array_equal(rows, games.observations)
    assert not masks.any()
