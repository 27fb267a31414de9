"""All that chance can bring, against what it brings: small decks of Skirmish, and OpenSpiel."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from deck_of_spies_env.random_streams import seed_streams
from deck_of_spies_env.skirmish.chance import deals_of, outcomes_of
from deck_of_spies_env.skirmish.games import MOVE, SNAPSHOT, Games, step_games
from deck_of_spies_env.skirmish.rules import OVER, STREAMS, Rules

SMALL = Rules(ranks="A7JK", num_suits=2, num_jokers=1, max_rounds=6)
CHANCE_OF_A_FALSE_ALARM = 1e-6
ZONES = ("hand", "supply", "capture", "stakes")

Key = tuple[Any, ...]


def ranks_in(mask: int) -> tuple[int, ...]:
    return tuple(sorted(index >> 2 for index in range(54) if mask >> index & 1))


def key_of(state: Any) -> Key:
    """A position up to suits, with all that tells which hidden card may be known to whom."""
    piles = tuple(ranks_in(int(state[zone][seat])) for zone in ZONES for seat in range(2))
    committed = tuple(int(card) >> 2 for card in state["committed"][:2])
    shared = ranks_in(int(state["graveyard"])), ranks_in(int(state["burned"]))
    origins = (
        ranks_in(int(state["dealt"])),
        *(
            ranks_in(int(state[batch][seat]))
            for batch in ("latest", "previous")
            for seat in range(2)
        ),
    )
    return piles, committed, shared, origins, int(state["phase"]), int(state["rounds"])


def probabilities_by_key(states: npt.NDArray[Any], chances: npt.NDArray[Any]) -> dict[Key, float]:
    found: dict[Key, float] = {}
    for state, chance in zip(states, chances, strict=True):
        found[key_of(state)] = found.get(key_of(state), 0.0) + float(chance)
    return found


def p_value(expected: dict[Key, float], seen: Counter[Key]) -> float:
    """Chi-square with rare outcomes put together; impossible ones have none."""
    assert set(seen) <= set(expected)
    total = sum(seen.values())
    often = [key for key, chance in expected.items() if chance * total >= 5]
    means = [expected[key] * total for key in often]
    counts = [seen[key] for key in often]
    rest = total - sum(means)
    if rest > 1e-6 * total:
        means.append(rest)
        counts.append(total - sum(counts))
    if len(means) == 1:
        return 1.0
    return float(stats.chisquare(counts, np.array(means) * sum(counts) / sum(means)).pvalue)


def positions(rules: Rules, count: int, seed: int) -> list[tuple[Any, npt.NDArray[np.int64]]]:
    """Positions of random play that go on, with a random joint action each."""
    games = Games(count, 2, rules=rules)
    games.seed(range(count), range(seed, seed + count))
    games.deal()
    random = np.random.default_rng(seed)
    found = []
    for step in range(count):
        actions = (random.random(games.masks.shape) * games.masks).argmax(axis=2)
        over = games.states["phase"] == OVER
        if not over[step]:
            found.append((games.states[step : step + 1].copy(), actions[step].copy()))
        games.step(actions, dealing=over)
    return found


def test_listed_outcomes_are_those_of_play() -> None:
    """Positions and joint actions of small decks, 2,000 plays each, chi-square with Bonferroni."""
    p_values = []
    for rules in (SMALL, Rules(ranks="AJQK", num_suits=1, num_jokers=2, recycle_captures=False)):
        for state, actions in positions(rules, 16, seed=7):
            states, chances = outcomes_of(state, rules.record(2), actions)
            assert chances.sum() == pytest.approx(1)
            records = np.zeros(2_000, SNAPSHOT)
            records["state"] = state
            records["streams"] = seed_streams(range(2_000), dtype=STREAMS)
            for place, name in enumerate(("draws", "picks")):  # each its own, as when dealt
                numbers = np.arange(4 * place, 4 * place + 4, dtype=np.uint64)
                records["streams"][name] = records["streams"]["key"][:, None] + numbers
            setup = Games(1, 2, rules=rules)._setup
            orders = np.full(2_000, MOVE, np.int8)
            joint = np.tile(actions, (2_000, 1))
            over = np.zeros(2_000, np.bool_)
            step_games(records, setup, (0, 1), orders, joint, np.zeros((2_000, 2)), over, 0, 2_000)
            seen = Counter(key_of(one) for one in records["state"])
            p_values.append(p_value(probabilities_by_key(states, chances), seen))
    assert len(p_values) > 12
    assert min(p_values) > CHANCE_OF_A_FALSE_ALARM / len(p_values)


def test_listed_deals_are_those_of_play() -> None:
    states, chances = deals_of(SMALL, 2)
    games = Games(20_000, 2, rules=SMALL)
    games.seed(range(20_000), range(20_000))
    games.deal()
    seen = Counter(key_of(state) for state in games.states)
    assert p_value(probabilities_by_key(states, chances), seen) > CHANCE_OF_A_FALSE_ALARM


def test_deals_of_three_ranks_counted_by_hand() -> None:
    """One Ace, one Jack, one King and a Joker for two: 4! / (2! 2!) = 6 deals, all alike."""
    rules = Rules(ranks="AJK", num_suits=1, num_jokers=1)
    states, chances = deals_of(rules, 2)
    assert [Fraction(chance).limit_denominator(100) for chance in chances] == [Fraction(1, 6)] * 6
    assert all(int(hand[0]).bit_count() == 2 for hand in states["hand"])


@pytest.fixture(scope="module")
def pyspiel() -> Any:
    return pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")


class TestOpenSpiel:
    """The export, by OpenSpiel's own means."""

    def small(self, **rules: Any) -> Any:
        from deck_of_spies_env.integrations.openspiel import load_small_skirmish

        return load_small_skirmish(**rules)

    def test_random_simulations(self, pyspiel: Any) -> None:
        game = self.small()
        pyspiel.random_sim_test(game, num_sims=5, serialize=False, verbose=False)
        turns = pyspiel.convert_to_turn_based(game)
        pyspiel.random_sim_test(turns, num_sims=5, serialize=False, verbose=False)

    def test_a_tiny_game_is_solved(self, pyspiel: Any) -> None:
        """A deck of A, J, K and a Joker, one round: CFR+ comes near an equilibrium."""
        from open_spiel.python.algorithms import cfr, exploitability

        game = self.small(ranks="AJK", num_suits=1, num_jokers=1, max_rounds=1)
        turns = pyspiel.convert_to_turn_based(game)
        solver = cfr.CFRPlusSolver(turns)
        for _ in range(60):
            solver.evaluate_and_update_policy()
        solved = exploitability.nash_conv(turns, solver.average_policy())
        from open_spiel.python.policy import UniformRandomPolicy

        random = exploitability.nash_conv(turns, UniformRandomPolicy(turns))
        assert solved < 0.05 * random

    def test_the_tree_is_the_game(self, pyspiel: Any) -> None:
        """NashConv in OpenSpiel's own tree is that of the game by OpenSpiel's Python code."""
        from open_spiel.python.algorithms import exploitability
        from open_spiel.python.policy import UniformRandomPolicy

        from deck_of_spies_env.integrations.openspiel import extensive_form

        game = self.small(ranks="AQ", num_suits=2, num_jokers=1, max_rounds=2)
        form = extensive_form(game)
        turns = pyspiel.convert_to_turn_based(game)
        expected = exploitability.nash_conv(turns, UniformRandomPolicy(turns))
        uniform = form.nash_conv(lambda _, masks: masks / masks.sum(axis=1, keepdims=True))
        assert uniform == pytest.approx(expected)
        assert uniform > 0.1
        for one in form.information_sets.values():
            assert set(one.actions) == set(np.flatnonzero(one.mask).tolist())
            assert len(one.actions) > 1

    def test_the_tree_is_solved(self, pyspiel: Any) -> None:
        """CFR+ comes within a hundredth of what random play leaves."""
        from benchmarks.small_skirmish import solve, uniform
        from deck_of_spies_env.integrations.openspiel import extensive_form

        form = extensive_form(self.small(max_rounds=1))
        solved, value = solve(form, 300)
        assert 0 <= solved < 0.01 * form.nash_conv(uniform)
        assert abs(value) < 0.01  # both sides are alike

    def test_information_sets_are_those_of_the_tables(self, pyspiel: Any) -> None:
        """Whatever a seat with a choice sees at tables of random play is an information set."""
        from deck_of_spies_env.integrations.openspiel import extensive_form

        rules = Rules(ranks="AJK", num_suits=2, num_jokers=1, max_rounds=3)
        form = extensive_form(self.small(**asdict(rules)))
        known = {
            (one.observation.tobytes(), one.mask.tobytes())
            for one in form.information_sets.values()
        }
        games = Games(10_000, 2, rules=rules)
        games.seed(range(10_000), range(10_000))
        games.deal()
        random = np.random.default_rng(0)
        met = set[tuple[bytes, bytes]]()
        for _ in range(12):
            choosing = games.masks.sum(axis=2) > 1
            rows = games.observations[choosing], games.masks[choosing].astype(np.bool_)
            met |= {(row.tobytes(), mask.tobytes()) for row, mask in zip(*rows, strict=True)}
            actions = (random.random(games.masks.shape) * games.masks).argmax(axis=2)
            games.step(actions, dealing=games.states["phase"] == OVER)
        assert met <= known
        assert len(met) > 0.9 * len(known)

    def test_a_bad_rule_set_is_refused(self, pyspiel: Any) -> None:
        with pytest.raises(ValueError, match="max_rounds"):
            self.small(max_rounds=0)
