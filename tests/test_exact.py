"""Exact values of small decks: against the referee, by hand, and against played games."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pytest
from conftest import SHORT, TextAction, Zones, completed, position
from oracle import Card, OracleGame, OracleRules
from scipy.stats import chi2
from test_perft import BY_HAND, BY_MACHINE, Case

from agents import exact_kernels as kernels
from agents import make_agent
from agents.exact import (
    ExactAgent,
    Solution,
    TooManyStatesError,
    clean_decisions,
    evaluate_policy,
    payments_of,
    solve,
    spies_left,
)
from agents.exact_kernels import words_of
from agents.greedy import GreedyAgent
from agents.relaxation import draw_in_scenario, scenarios, upper_bound
from benchmarks import optimality
from benchmarks.small_decks import KINDS, MAX_STATES, is_fit, load_family, state_of
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.games import OBJECTIVES, SNAPSHOT, Games
from deck_of_spies_env.solitaire.positions import start_from_argument
from deck_of_spies_env.solitaire.rollouts import fork_snapshots, play_out
from deck_of_spies_env.solitaire.rules import STATE, Rules

States = npt.NDArray[Any]
STANDARD_ERRORS = 5.0
ERROR_RATE = 1e-6
DECK = {
    "hand": ["As", "3c", "5d", "Jc", "Qd"],
    "spy": ["9s"],
    "spy_deck": ["Js", "Qs"],
    "draw_deck": ["4h", "Kc"],
    "draw_discard": ["Jd", "Jh", "2s"],
}
"""Three spies left, and seven Key Spies needed of five held and two to come."""


def start(zones: Any, rules: Rules | None = None, phase: str = "act") -> States:
    """A position as a state; cards named nowhere are completed as ``completed`` does."""
    argument = {"zones": completed(zones), "phase": phase}
    return start_from_argument(argument, rules or Rules()).record


@pytest.fixture(scope="module")
def solved() -> tuple[Solution, States]:
    """DECK's solution, and the position."""
    state = start(DECK)
    return solve(state), state


# --- Against the referee ---


class NeedsChoice(Exception):
    """Chance has to choose among so many cards."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ScriptedChance:
    """Chance as a list of places in the piles; every card by itself, one after the other."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self._left = list(script)

    def _take(self, pile: Any) -> Card:
        if not self._left:
            raise NeedsChoice(len(pile))
        return pile[self._left.pop(0)]

    turn_up_spy = draw_card = _take


def histories(
    oracle: OracleGame, action: TextAction, script: tuple[int, ...] = ()
) -> Iterator[tuple[Fraction, OracleGame]]:
    """Every sequence of chance that can follow an action, with its probability."""
    after = oracle.copy()
    chosen = after._legal_cards(*action)
    try:
        after._play(action[0], chosen, ScriptedChance(script))
    except NeedsChoice as need:
        for place in range(need.number):
            for probability, game_after in histories(oracle, action, (*script, place)):
                yield probability / need.number, game_after
    else:
        yield Fraction(1), after


class Known(NamedTuple):
    """What is known by now, and what an end pays."""

    payment: Callable[[OracleGame], Fraction]
    values: dict[Any, Fraction]


def best_value(oracle: OracleGame, known: Known) -> Fraction:
    """The best expected payment: plain recursion over the referee's games."""
    if oracle.phase == "over":
        return known.payment(oracle)
    key = (oracle.phase, tuple(oracle.zones().values()))
    if key not in known.values:
        known.values[key] = max(
            sum(
                (p * best_value(after, known) for p, after in histories(oracle, action)), Fraction()
            )
            for action in oracle.legal_actions()
        )
    return known.values[key]


PAYMENTS: dict[str, Callable[[OracleGame], Fraction]] = {
    "win": lambda over: Fraction(over.outcome == "win"),
    "keys": lambda over: Fraction(over.key_spies or 0, 12),
    "perfect": lambda over: Fraction(over.key_spies == 12),
}


@pytest.mark.parametrize("case", BY_HAND + BY_MACHINE, ids=lambda case: case.name)
def test_the_optimum_is_that_of_plain_recursion_over_the_referee(case: Case) -> None:
    rules = Rules(**case.rules)
    state = start(case.zones(), rules, case.phase)
    found = solve(state, rules).values(state)[0]
    for objective, value in zip(OBJECTIVES, found, strict=True):
        oracle = OracleGame(OracleRules(**case.rules), case.zones(), case.phase)
        assert value == pytest.approx(
            float(best_value(oracle, Known(PAYMENTS[objective], {}))), abs=1e-12
        )


def test_with_few_key_spies_to_win_the_optimum_is_no_trivial_one() -> None:
    """Two of four Key Spies win: what is drawn and how it is spent decides."""
    zones = completed(
        {
            "hand": ["Jc", "4c", "Ad"],
            "spy": ["Tc"],
            "spy_deck": ["Jd", "Kd"],
            "draw_deck": ["5d", "6h"],
            "draw_discard": ["2c"],
        }
    )
    settings = {"hand_size": 3, "key_spies_to_win": 2}
    rules = Rules(**settings)
    state = start(zones, rules)
    expected = best_value(
        OracleGame(OracleRules(**settings), cast(Zones, zones)), Known(PAYMENTS["win"], {})
    )
    assert 0 < expected < 1
    found = solve(state, rules, ["win"]).values(state)[0, 0]
    assert found == pytest.approx(float(expected), abs=1e-12)


# --- By hand ---


@pytest.mark.parametrize(
    ("hand", "spy", "win", "keys"),
    [
        # The Ace leads Jc against the Queen of its suit: seven held.
        ("Ah Jc", "Qh", 1.0, 7 / 12),
        # No heart and no Ace of hearts: the Queen can only be countered.
        ("Ac Qc", "Qh", 0.0, 6 / 12),
        # Three points against eleven: an Ace is given up and all six stay.
        ("Ah 2c", "Jh", 0.0, 6 / 12),
        # The 5 is no Key Spy; the pair of Jacks must not be retired after it.
        ("2c 3c Jc Jd", "5h", 0.0, 6 / 12),
    ],
)
def test_the_last_spy_by_hand(hand: str, spy: str, win: float, keys: float) -> None:
    held = [card for card in hand.split() if card[0] in "JQK"]
    others = [card for card in ("Js", "Qs", "Ks", "Kc", "Kd", "Kh") if card not in held]
    zones = {"hand": hand.split(), "spy": [spy], "draw_discard": others[: 6 - len(held)]}
    state = start(zones)
    assert solve(state).values(state)[0] == pytest.approx([win, keys, 0.0])


def test_one_draw_by_hand() -> None:
    """Kc deals with the 5c, alone in hand. Two of Ah, Kd, Qs are drawn up to a hand of three, Tc
    being kept: only with Ah is the Jack of hearts recruited, by Tc or either Key Spy."""
    zones = {
        "hand": ["Kc", "Tc"],
        "spy": ["5c"],
        "spy_deck": ["Jh"],
        "draw_deck": ["Ah", "Kd", "Qs"],
    }
    rules = Rules(hand_size=3, key_spies_to_win=4)
    state = start(zones, rules)
    # Playing Tc and keeping Kc comes to the same; recruiting the 5c, which is a club, does too.
    assert solve(state, rules).values(state)[0] == pytest.approx([2 / 3, (3 + 2 / 3) / 12, 0.0])


def test_payments_are_those_of_the_environment() -> None:
    objectives = ("win", "keys", "perfect", {"win": 2.0, "perfect": 1.0})
    payments = np.stack([payments_of(objective, Rules()) for objective in objectives], axis=1)
    assert payments[6].tolist() == [0.0, 0.5, 0.0, 0.0]
    assert payments[7].tolist() == [1.0, 7 / 12, 0.0, 2.0]
    assert payments[12].tolist() == [1.0, 1.0, 1.0, 3.0]
    assert not payments[0].any()


# --- Chance ---


def assert_uniform(counts: npt.NDArray[np.int64]) -> None:
    expected = counts.sum() / len(counts)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1.0 - ERROR_RATE, len(counts) - 1), counts


def test_the_engine_draws_as_is_listed() -> None:
    """Every spy and set of cards, and all equally likely: a reshuffle lies in between."""
    state, rules = start(DECK), Rules()
    env = position(
        " ".join(DECK["hand"]),
        "9s",
        **{name: " ".join(DECK[name]) for name in ("spy_deck", "draw_deck", "draw_discard")},
    )
    action = env.encode("counter", ["Jc"])
    games = Games(6000)
    games.restore(fork_snapshots(state, 3, 6000))
    games.step(np.full(6000, action))
    seen, counts = np.unique(words_of(games.states.copy())[:, :5], axis=0, return_counts=True)
    listing = kernels.new_listing(rules)
    offsets, outcomes = np.zeros(2, dtype=np.int64), np.zeros(12, dtype=STATE)
    kernels.write_outcomes(
        words_of(state), np.array([action]), rules.record, listing, offsets, words_of(outcomes)
    )
    outcomes = outcomes[: offsets[1]]
    assert (outcomes["phase"] == kernels.DRAW).all()
    draws = np.zeros(len(outcomes), dtype=np.int64)
    kernels.count_draws(words_of(outcomes), rules.record, listing, draws)
    listed = np.zeros(draws.sum(), dtype=STATE)
    kernels.draw_all(words_of(outcomes), rules.record, listing, listed)
    assert draws.tolist() == [2, 2]
    assert np.array_equal(seen, np.unique(words_of(listed)[:, :5], axis=0))
    assert_uniform(counts)


def test_a_scenario_draws_uniformly() -> None:
    """Three of six cards by rank: each of the 20 sets is as likely."""
    rules, listing = Rules(hand_size=3), kernels.new_listing(Rules(hand_size=3))
    state = start(
        {"spy": ["5c"], "hand": [], "draw_deck": ["Ac", "6c", "7c", "8c", "9c", "Tc"]}, rules
    )
    found: list[int] = []
    for ranks in scenarios(4000, seed=1):
        draw_in_scenario(listing, words_of(state), 0, rules.record[0], ranks)
        found.append(int(listing.work["hand"][0]))
    hands, counts = np.unique(found, return_counts=True)
    assert len(hands) == 20
    assert_uniform(counts)


# --- Agents ---


class LastAgent(BatchAgent):
    """Takes the legal action with the highest index."""

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        num_actions = action_masks.shape[1]
        return num_actions - 1 - action_masks[:, ::-1].argmax(axis=1)


def mean_payments(snapshots: States, agent: BatchAgent) -> tuple[Any, Any]:
    """Mean payments under the three objectives and their standard errors, of played games."""
    games = Games(len(snapshots))
    games.restore(snapshots)
    actions = np.zeros(len(games), dtype=np.int64)
    while not games.over.all():
        acting = np.flatnonzero(~games.over)
        actions[acting] = agent.act(games.observations[acting], games.masks[acting].copy())
        games.step(actions, ~games.over)
    endings = games.endings()
    held = endings["key_spies"]
    paid = np.stack([endings["is_success"], held / 12, held == 12], axis=1).astype(float)
    return paid.mean(axis=0), paid.std(axis=0) / np.sqrt(len(paid))


@pytest.mark.parametrize("objective", range(3))
def test_the_best_play_reaches_the_optimum(solved: tuple[Solution, States], objective: int) -> None:
    solution, state = solved
    agent = ExactAgent(solution, objective)
    optimum = solution.values(state)[0]
    exact = evaluate_policy(agent, state).values[0]
    assert exact[objective] == pytest.approx(optimum[objective], abs=1e-12)
    assert (exact <= optimum + 1e-12).all()
    mean, error = mean_payments(fork_snapshots(state, 5, 2000), agent)
    assert (abs(mean - exact) <= STANDARD_ERRORS * error + 1e-9).all()


@pytest.mark.parametrize("agent", [GreedyAgent(Rules()), LastAgent()])
def test_no_agent_is_worth_more_than_the_optimum_and_games_agree(
    solved: tuple[Solution, States], agent: BatchAgent
) -> None:
    solution, state = solved
    optimum = solution.values(state)[0]
    values = evaluate_policy(agent, state).values[0]
    assert (values <= optimum + 1e-12).all()
    assert (values[:2] < optimum[:2]).any()
    mean, error = mean_payments(fork_snapshots(state, 9, 3000), agent)
    assert (abs(mean - values) <= STANDARD_ERRORS * error + 1e-9).all()


def test_greedy_play_has_one_value_both_ways(solved: tuple[Solution, States]) -> None:
    """Backward over all draw states, and forward from some: the same; and so do whole games."""
    solution, state = solved
    draws = solution.graph.store.states[: solution.num_states]
    listing, rules = solution.graph.listing, solution.rules
    counts = np.zeros(len(draws), dtype=np.int64)
    kernels.count_draws(words_of(draws), rules.record, listing, counts)
    drawn = np.zeros(counts.sum(), dtype=STATE)
    kernels.draw_all(words_of(draws), rules.record, listing, drawn)
    going_on = drawn["phase"] != game.OVER
    values = np.zeros((len(drawn), 3))
    values[going_on] = evaluate_policy(GreedyAgent(rules), drawn[going_on]).values
    ends = np.concatenate([[0], counts.cumsum()])
    means = np.add.reduceat(values, ends[:-1]) / counts[:, None]
    assert np.allclose(means, solution.greedy_draw_values(), atol=1e-12)
    played = play_out(fork_snapshots(state, 2, 20_000), "greedy")
    exact = evaluate_policy(GreedyAgent(rules), state).values[0]
    assert abs(played.wins.mean() - exact[0]) <= STANDARD_ERRORS * 0.5 / np.sqrt(20_000)


def test_several_starts_are_as_each_by_itself(solved: tuple[Solution, States]) -> None:
    """Positions with other numbers of spies left, and in the phase retire."""
    rules = Rules()
    retire = start(DECK | {"hand": ["4h", "4c", "Qd"], "draw_deck": ["Kc"]}, rules, "retire")
    last = start({"hand": ["Ah", "Jc"], "spy": ["Qh"]})
    starts = np.concatenate([solved[1], last, retire])
    together = solve(starts)
    assert spies_left(starts).tolist() == [3, 1, 3]
    for place in range(3):
        single = starts[place : place + 1]
        assert np.allclose(together.values(single), solve(single).values(single), atol=1e-12)
    agent = GreedyAgent(rules)
    alone = [evaluate_policy(agent, starts[place : place + 1]).values[0] for place in range(3)]
    assert np.allclose(evaluate_policy(agent, starts).values, alone, atol=1e-12)


def test_the_last_turn_in_one_step_is_the_last_turn(solved: tuple[Solution, States]) -> None:
    solution, _ = solved
    assert np.array_equal(solution.draw_values, solution.graph.induced(solution.payments, "best"))


def test_a_weighted_objective_lies_between_its_parts(solved: tuple[Solution, States]) -> None:
    solution, state = solved
    win, keys, _ = solution.values(state)[0]
    both = solve(state, objectives=[{"win": 1.0, "keys": 1.0}]).values(state)[0, 0]
    assert max(win, keys) < both <= win + keys + 1e-12
    spoilt = solve(state, objectives=[{"win": -1.0}]).values(state)[0, 0]
    assert -1.0 <= spoilt <= 0.0


# --- Upper bounds ---


@pytest.mark.parametrize("objective", [0, 1])
def test_bounds_hold_and_are_tight_for_the_true_values(
    solved: tuple[Solution, States], objective: int
) -> None:
    solution, state = solved
    optimum = float(solution.values(state)[0, objective])
    ranks = scenarios(60, seed=4)
    true = solution.draw_values[:, objective]
    tight = upper_bound(solution, state, objective, true, ranks)
    assert np.allclose(tight.by_scenario, optimum, atol=1e-12)
    guesses = (None, solution.greedy_draw_values()[:, objective], np.zeros_like(true))
    for guess in guesses:
        bound = upper_bound(solution, state, objective, guess, ranks)
        assert bound.mean >= optimum - STANDARD_ERRORS * bound.standard_error - 1e-12
        assert bound.by_scenario.std() > 0.0


# --- What is refused ---


def test_what_cannot_be_solved_is_refused(solved: tuple[Solution, States]) -> None:
    solution, state = solved
    over = state.copy()
    over["phase"] = game.OVER
    for wrong in (over, np.zeros(1, dtype=SNAPSHOT), state[:0], state[0]):
        with pytest.raises(ValueError, match="states must be"):
            clean_decisions(wrong, Rules())
    for limit in (1, 10, 4096, 5000):
        with pytest.raises(TooManyStatesError, match=f"more than {limit:,} draw states"):
            solve(start(SHORT), max_states=limit)
    for limit in (0, -1, 2.5):
        with pytest.raises(ValueError, match="max_states must be"):
            solve(state, max_states=limit)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="max_states must be"):
            evaluate_policy(GreedyAgent(Rules()), state, max_states=limit)  # type: ignore[arg-type]
    elsewhere = start(DECK | {"draw_deck": ["4s", "Kc"]})
    with pytest.raises(ValueError, match="can't follow"):
        solution.values(elsewhere)
    with pytest.raises(ValueError, match="unknown objective"):
        solve(state, objectives=["points"])
    for objectives in ("win", [], {"win": 1.0}):
        with pytest.raises(ValueError, match="list of at least one"):
            solve(state, objectives=objectives)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="list of at least one"):
            evaluate_policy(GreedyAgent(Rules()), state, objectives=objectives)  # type: ignore[arg-type]
    for objective in (3, -1, "win"):
        with pytest.raises(ValueError, match="objective must be an index into"):
            ExactAgent(solution, objective)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown field 'size'"):
        solve(state, {"size": 5})
    with pytest.raises(ValueError, match="guess must be of shape"):
        upper_bound(solution, state, 0, np.zeros(3), scenarios(2, 0))

    class Illegal(LastAgent):
        def choose(self, observations: Any, action_masks: Any) -> Actions:
            return np.flatnonzero(~action_masks[0])[:1]

    with pytest.raises(ValueError, match="not legal"):
        evaluate_policy(Illegal(), state)


def test_rules_may_be_a_mapping_and_exactly_enough_states_suffice() -> None:
    state = start(DECK)
    wanted = solve(state, Rules(idle_ace=False))
    found = solve(state, {"idle_ace": False}, max_states=wanted.num_states)
    assert np.array_equal(found.values(state), wanted.values(state))
    with pytest.raises(TooManyStatesError):
        solve(state, {"idle_ace": False}, max_states=wanted.num_states - 1)
    of_agent = evaluate_policy(GreedyAgent(Rules(idle_ace=False)), state, {"idle_ace": False})
    assert (of_agent.values <= wanted.values(state) + 1e-12).all()


def test_an_agent_that_plays_by_chance_is_refused() -> None:
    for spec in ("random", "rollout:budget=1"):
        with pytest.raises(ValueError, match="plays by chance"):
            evaluate_policy(make_agent(spec), start(SHORT))
    with pytest.raises(ValueError, match="plays by chance"):  # by the order it is asked in
        evaluate_policy(make_agent("random"), start(SHORT), seed=0)
    with pytest.raises(ValueError, match="seed must be"):
        evaluate_policy(make_agent("random"), start(SHORT), seed=-1)


def test_chance_that_follows_from_the_seed_is_evaluated_by_that_seed() -> None:
    best = solve(start(SHORT)).values(start(SHORT))[0]
    seen: set[tuple[float, ...]] = set()
    for seed in range(8):
        values = evaluate_policy(make_agent("rollout:budget=1"), start(SHORT), seed=seed).values[0]
        again = evaluate_policy(make_agent("rollout:budget=1"), start(SHORT), seed=seed).values[0]
        assert (values == again).all()
        assert (values <= best + 1e-9).all()
        seen.add(tuple(values))
    assert len(seen) > 1


# --- The family ---


def test_the_family_is_made_of_small_open_positions() -> None:
    family = load_family()
    assert len(family) >= 30
    assert len({deck.name for deck in family}) == len(family)
    for deck in family:
        state = state_of(deck)
        assert spies_left(state).tolist() == [deck.spies_left]
    smallest = sorted(family, key=lambda deck: deck.spies_left)[:3]
    assert MAX_STATES == 1 << 16
    assert all(is_fit(state_of(deck), KINDS[deck.kind]) for deck in smallest)


def test_the_command_writes_its_figures(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    arguments = ["--most", "2", "--scenarios", "5", "--json", str(report)]  # all agents
    monkeypatch.setattr(sys, "argv", ["optimality", *arguments])
    optimality.main()
    printed = capsys.readouterr().out
    assert "| `win` |" in printed
    assert "no penalty" in printed
    found = json.loads(report.read_text())
    assert found["counts"] == {"typical": 2}
    agent = found["summary"]["typical"]["win"]["agents"]["greedy"]
    optimum = found["summary"]["typical"]["win"]["optimum"]
    assert agent["value"] + agent["loss"] == pytest.approx(optimum)
    for argument in (["--agents", "random"], ["--agents", "nobody"], ["--scenarios", "1"]):
        monkeypatch.setattr(sys, "argv", ["optimality", *argument])
        with pytest.raises(SystemExit):
            optimality.main()
