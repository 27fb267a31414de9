"""Advice on plays: what is won by force, what an agent thinks, and what advice must not see."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import legal_actions, position
from numpy.typing import NDArray
from skirmish_tools import at_table

from agents import make_agent
from agents.skirmish import make_skirmish_agent
from deck_of_spies_env.advice import Advice, advise, advise_all, advise_seat, advise_seats
from deck_of_spies_env.skirmish.actions import encode
from deck_of_spies_env.skirmish.games import Games as Tables
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.games import Games, recall_of_states
from deck_of_spies_env.solitaire.rollouts import deal_snapshots, fork_snapshots, play_out
from deck_of_spies_env.solitaire.rules import Rules

STANDARD_ERRORS = 5.0


def same(first: Advice, second: Advice) -> bool:
    """Whether two pieces of advice are equal in every number."""
    names = ("actions", "wins", "wins_errors", "key_spies", "key_spies_errors")
    return all((getattr(first, name) == getattr(second, name)).all() for name in names)


# --- Deck of Spies --------------------------------------------------------------------------------


def test_a_play_that_wins_by_force_is_told_from_one_that_loses() -> None:
    env = position("2h Jh 5h 9c", "Kh", draw_deck="Jc Jd Qc Qd Kc", spy_deck="")
    plays = legal_actions(env)
    advice = advise(None, env.get_state())
    assert advice.actions.tolist() == sorted(plays.values())
    place = {int(action): i for i, action in enumerate(advice.actions)}
    recruit = place[plays["recruit", ("2h", "Jh")]]
    counter = place[plays["counter", ("5h", "9c")]]
    assert advice.wins[[recruit, counter]].tolist() == [1.0, 0.0]
    assert advice.key_spies[[recruit, counter]].tolist() == [7.0, 6.0]
    assert (advice.wins_errors == 0).all()


def test_other_rules_are_asked_about() -> None:
    env = position("2h Jh 5h 9c", "Kh", draw_deck="Jc Jd Qc Qd Kc", spy_deck="")
    assert (advise(None, env.get_state(), {"key_spies_to_win": 6}).wins == 1.0).all()
    assert (advise(None, env.get_state(), Rules(key_spies_to_win=8)).wins == 0.0).all()


@pytest.mark.parametrize("hand_size", [3, 5, 6])
def test_playouts_say_what_plain_play_comes_to(hand_size: int) -> None:
    """Against games of ``greedy`` after each play, one by one, with chance of their own."""
    rules = Rules(hand_size=hand_size)
    dealt = deal_snapshots([4], rules)
    advice = advise(None, dealt, rules, samples=400, seed=1, judge="playouts")
    for number, action in enumerate(advice.actions.tolist()):
        games = Games(400, rules=rules)
        games.restore(fork_snapshots(dealt["state"], seed=77, copies=400))
        games.step(np.full(400, action))
        ended = play_out(games.snapshots(), "greedy", rules)
        for told, found in ((advice.key_spies, ended.key_spies), (advice.wins, ended.wins)):
            error = np.sqrt(2 * max(float(found.var()), 1e-3) / 400)
            assert abs(told[number] - found.mean()) < STANDARD_ERRORS * error


def test_other_rules_are_judged_by_playouts_unless_asked_otherwise() -> None:
    rules = Rules(hand_size=3)
    dealt = deal_snapshots([4], rules)
    assert same(advise(None, dealt, rules), advise(None, dealt, rules, judge="playouts"))
    assert not same(advise(None, dealt, rules), advise(None, dealt, rules, judge="values"))
    usual = deal_snapshots([4])
    assert same(advise(None, usual), advise(None, usual, judge="values"))
    with pytest.raises(ValueError, match="unknown judge 'me'; there are values, playouts"):
        advise(None, usual, judge="me")


def test_playouts_of_several_positions_are_those_of_each() -> None:
    dealt = deal_snapshots(range(3))
    together = advise_all(None, dealt, samples=16, judge="playouts")
    for number, advice in enumerate(together):
        assert same(advice, advise(None, dealt[number], samples=16, judge="playouts"))


def test_advice_depends_on_the_position_alone() -> None:
    dealt = deal_snapshots(range(5))
    together = advise_all(None, dealt, samples=8)
    other_streams = fork_snapshots(dealt["state"], seed=9)
    for number, advice in enumerate(together):
        assert same(advice, advise(None, dealt[number], samples=8))
        assert same(advice, advise(None, other_streams[number], samples=8))
        assert same(advice, advise(None, dealt["state"][number], samples=8))


def test_many_positions_are_advised_on_in_order() -> None:
    dealt = deal_snapshots(range(70))  # more than are looked at together
    advised = advise_all(None, dealt, samples=2)
    masks = recall_of_states(dealt["state"], Rules())[1]
    assert [one.actions.tolist() for one in advised] == [
        np.flatnonzero(mask).tolist() for mask in masks
    ]
    assert same(advised[69], advise(None, dealt[69], samples=2))


def test_errors_are_those_of_the_samples() -> None:
    dealt = deal_snapshots([3])
    few = [advise(None, dealt, samples=8, seed=seed) for seed in range(40)]
    known = advise(None, dealt, samples=4000)
    drawn = few[0].key_spies_errors > 0
    assert drawn.any()
    assert (known.key_spies_errors[drawn] < few[0].key_spies_errors[drawn]).all()
    differences = np.array([one.key_spies - one.key_spies.max() for one in few])
    spread = differences.std(axis=0)[drawn]
    told = np.mean([one.key_spies_errors for one in few], axis=0)[drawn]
    assert ((spread > 0.4 * told) & (spread < 2.5 * told)).all()
    best = known.key_spies.max()
    mean_error = differences.std(axis=0) / np.sqrt(len(few)) + 1e-12
    wrong = np.abs(np.mean(differences, axis=0) - (known.key_spies - best))
    bias = known.key_spies_errors + 0.01  # of the highest of few noisy means
    assert (wrong < STANDARD_ERRORS * mean_error + STANDARD_ERRORS * bias).all()


@pytest.mark.parametrize("name", ["ppo", "random", "afterstate", "linear", "greedy"])
def test_an_agent_tells_what_it_thinks(name: str) -> None:
    dealt = deal_snapshots(range(12))
    observations, masks = recall_of_states(dealt["state"], Rules())
    agent = make_agent(name)
    agent.reset(5)
    advised = advise_all(agent, dealt, samples=2)
    agent.reset(5)
    assert [one.chosen for one in advised] == np.asarray(agent.act(observations, masks)).tolist()
    for one in advised:
        assert one.chosen in one.actions
        assert (one.probabilities is not None) == (name in ("ppo", "random"))
        assert (one.own_values is not None) == (name in ("afterstate", "linear"))
        if one.probabilities is not None:
            assert one.probabilities.shape == one.actions.shape
            assert one.probabilities.sum() == pytest.approx(1.0)
        if name == "ppo":
            assert one.chosen == one.actions[np.argmax(one.probabilities)]
        if one.own_values is not None:
            assert one.chosen == one.actions[one.own_values.argmax()]


def test_without_an_agent_there_is_no_opinion() -> None:
    advice = advise(None, deal_snapshots([0]))
    assert (advice.chosen, advice.probabilities, advice.own_values) == (None, None, None)


def test_what_cannot_be_advised_on_is_refused() -> None:
    games = Games(1)
    with pytest.raises(ValueError, match="position 0 is over"):
        advise(None, games.snapshots())
    with pytest.raises(ValueError, match="get_state"):
        advise(None, np.zeros(1))
    with pytest.raises(ValueError, match="samples must be at least 2"):
        advise(None, deal_snapshots([0]), samples=1)
    with pytest.raises(ValueError, match="seed"):
        advise(None, deal_snapshots([0]), seed=-1)


# --- Skirmish -------------------------------------------------------------------------------------


def observed(games: Tables, seat: int = 0) -> NDArray[np.int8]:
    """What a seat of the first table sees."""
    return games.observations[0, seat]


def test_the_card_that_wins_the_last_round_is_advised() -> None:
    """With the 6 all 13 points are held in the end; with the 2 but 6 of them."""
    rules = SkirmishRules(ranks="256", num_suits=1, num_jokers=0, max_rounds=1)
    games = at_table({"hand": ["6c 2c", "5c"]}, 2, rules)
    advice = advise_seat(None, observed(games), rules, samples=8)
    assert advice.actions.tolist() == [encode("2"), encode("6")]
    assert advice.payoffs.tolist() == [-1.0, 1.0]
    assert (advice.errors == 0).all()


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_seats_are_advised_by_what_they_see(num_players: int) -> None:
    games = Tables(2, num_players)
    games.seed([0, 1], [0, 1])
    games.deal()
    agent = make_skirmish_agent("ppo", num_players)
    rows = games.observations[:, num_players - 1]
    advised = advise_seats(agent, rows, samples=8)
    for row, mask, advice in zip(rows, games.masks[:, num_players - 1], advised, strict=True):
        assert advice.actions.tolist() == np.flatnonzero(mask).tolist()
        assert (np.abs(advice.payoffs) <= 1.0).all()
        assert (advice.errors >= 0).all()
        assert advice.errors[advice.payoffs.argmax()] == 0
        assert advice.probabilities is not None
        assert advice.probabilities.sum() == pytest.approx(1.0)
        assert advice.chosen in advice.actions
        alone = advise_seat(None, row, samples=8)
        assert (alone.payoffs == advice.payoffs).all()


def test_a_seat_that_waits_has_one_action() -> None:
    games = at_table({"hand": ["Kc 2c 3c", "Kd 4d 5d", "2d 6d 7d"]}, 3)
    games.step(np.array([[encode("K"), encode("K"), encode("2")]]))
    advice = advise_seat(None, observed(games, 2), samples=2)
    assert advice.actions.tolist() == [encode("wait")]


def test_seats_that_cannot_be_advised_are_refused() -> None:
    games = Tables(1, 2)
    with pytest.raises(ValueError, match="position 0 is over"):
        advise_seat(None, observed(games))
    with pytest.raises(ValueError, match="observations must have"):
        advise_seat(None, np.zeros(7, np.int8))
    with pytest.raises(ValueError, match="samples must be at least 2"):
        advise_seat(None, observed(games), samples=1)
