"""The afterstate network: kernels against a dense second writing, its symmetry, files, agent."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from afterstates import (
    after,
    dense,
    distribution,
    key_spies,
    lost_with_key_spies,
    met_in_play,
    zones_of,
)
from conftest import SUITS, position
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from agents import AgentError, make_agent
from agents.afterstate import AfterstateAgent
from agents.afterstate_network import (
    load_network,
    random_weights,
    save_network,
)
from agents.objectives import utility_of
from deck_of_spies_env import Rules, cards
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.afterstates import AfterstateValue, Network
from deck_of_spies_env.solitaire.games import states_from_recall

MADE: dict[str, Any] = {"objective": "win", "seed": 3, "timesteps": 12}


def some_network(hidden: int = 48, head: int = 32, seed: int = 0) -> Network:
    """Random weights, biases too, whose distributions are far from uniform."""
    rng = np.random.default_rng(seed)
    network = random_weights(hidden, head, rng)
    biases = {
        name: rng.normal(0, 0.5, getattr(network, name).shape).astype(np.float32)
        for name in ("first_bias", "second_bias", "last_bias")
    }
    return network._replace(last=network.last * np.float32(10), **biases)


def value_of(objective: Any = "keys", network: Network | None = None, **rules: Any) -> Any:
    network = some_network() if network is None else network
    rule_set = Rules(**rules)
    return AfterstateValue(network, rule_set, utility_of(objective, rule_set))


def plays_of(state: Any, mask: NDArray[Any], hand_size: int) -> dict[int, tuple[str, Any]]:
    """Index -> kind and cards of each legal action."""
    table = action_table(hand_size)
    return {
        action: tuple(table.decode(action, int(state["hand"])))
        for action in np.flatnonzero(mask).tolist()
    }


# --- The kernels are the network ------------------------------------------------------------------


@pytest.mark.parametrize(("hand_size", "decisions"), [(3, 4), (5, 40), (8, 60)])
@pytest.mark.parametrize("widths", [(48, 32), (144, 64)])
def test_values_are_those_of_a_dense_network(
    hand_size: int, decisions: int, widths: tuple[int, int]
) -> None:
    network = some_network(*widths)
    games = met_in_play(200, decisions, hand_size=hand_size)
    states = games.states.copy()
    value = value_of("keys", network, hand_size=hand_size)
    values, best = value.play_values(states)
    np.testing.assert_array_equal(np.isfinite(values), games.masks == 1)
    assert (values[games.masks == 0] == -np.inf).all()
    utility = np.arange(13) / 12
    phases: set[str] = set()
    for state, row, chosen, mask in zip(states, values, best, games.masks, strict=True):
        zones = zones_of(state)
        phases.add(zones["phase"])
        for action, play in plays_of(state, mask, hand_size).items():
            expected = distribution(after(zones, *play), network) @ utility
            assert row[action] == pytest.approx(expected, abs=1e-5)
        assert row[chosen] == row.max()
    assert "retire" in phases or hand_size == 3  # two cards kept are hardly ever a pair
    np.testing.assert_allclose(value.position_values(states), values.max(axis=1), rtol=1e-6)


def test_the_weights_differ_enough_to_tell_entries_apart() -> None:
    """The test above would pass with wrong entries, were the values nearly all the same."""
    values, _ = value_of().play_values(met_in_play(80).states.copy())
    assert np.ptp(values[np.isfinite(values)]) > 0.3


def test_every_entry_is_met() -> None:
    """Of the 230 all but the suits of a known spy other than the first, which is its own."""
    seen = np.zeros(230)
    for state in met_in_play(600).states:
        seen += dense(zones_of(state))
    spies = np.arange(192, 228)
    # Ranks from 5 on, each suit sorted first; a Jack or higher is seldom met by random play.
    assert seen[np.setdiff1d(np.arange(192, 216), spies[::4])].sum() == 0
    assert (seen[spies[:24:4]] > 0).all()
    assert (seen[:192] > 0).mean() > 0.9
    assert (seen[228:] > 0).all()


def test_positions_without_a_spy_left_are_counted_exactly() -> None:
    """The last spy dealt with, what is held counts, whatever the weights say."""
    env = position("Jc Qc 2h 9h Kd", "Th", draw_deck="Kc Ks 5d", draw_discard="Qd Jd 6s")
    states = env.get_state()["state"].reshape(1)
    for objective, utility in (("keys", np.arange(13) / 12), ("win", np.arange(13) >= 7)):
        values = value_of(objective).play_values(states)[0][0]
        zones = zones_of(states[0])
        assert np.isfinite(values).sum() > 3
        for action, play in plays_of(states[0], env.action_masks(), 5).items():
            assert values[action] == np.float32(utility[key_spies(after(zones, *play))])


def test_retiring_a_key_spy_at_the_end_costs_it() -> None:
    env = position("Jc Jd 5h 5s", phase="retire", draw_deck="Jh Js Qc Qd Qs")
    states = env.get_state()["state"].reshape(1)
    values = value_of("win").play_values(states)[0][0]
    assert values[env.encode("pass", [])] == 1
    assert values[env.encode("retire", ["5h", "5s"])] == 1
    assert values[env.encode("retire", ["Jc", "Jd"])] == 0


def test_games_that_are_over_are_worth_what_they_came_to() -> None:
    games = met_in_play(300)
    finals: dict[bool, set[float]] = {True: set(), False: set()}
    value = value_of("keys")
    rng = np.random.default_rng(1)
    for _ in range(80):
        actions = (rng.random(games.masks.shape) * games.masks).argmax(axis=1)
        games.step(actions, ~games.over)
    assert games.over.all()
    endings = games.endings()
    values = value.position_values(games.states.copy())
    np.testing.assert_allclose(values, endings["key_spies"] / 12, rtol=1e-6)
    for outcome, worth in zip(endings["outcome"], values.tolist(), strict=True):
        finals[outcome == "no_double_agent"].add(worth)
    assert finals[True] == {0.0}
    assert value.position_values(lost_with_key_spies()).tolist() == [0]
    assert len(finals[False]) > 2


def test_ties_go_to_the_lower_action() -> None:
    """A network whose last layer is nothing finds all plays alike."""
    network = some_network()
    network = network._replace(last=np.zeros_like(network.last))
    games = met_in_play(100)
    games_left = games.states["spy_deck"] != 0
    values, best = value_of("keys", network).play_values(games.states.copy())
    np.testing.assert_array_equal(best[games_left], games.masks.argmax(axis=1)[games_left])
    values, best = value_of().play_values(games.states.copy())
    np.testing.assert_array_equal(best, values.argmax(axis=1))


# --- Suits ----------------------------------------------------------------------------------------


def relabelled(mask: int, suits: Mapping[str, str]) -> int:
    return cards.mask_of(card[0] + suits[card[1]] for card in cards.cards_in(mask))


def relabelled_states(states: NDArray[Any], suits: Mapping[str, str]) -> NDArray[Any]:
    moved = states.copy()
    for state in moved:
        for pile in ("hand", "draw_deck", "draw_discard", "spy_deck", "spy_discard"):
            state[pile] = relabelled(int(state[pile]), suits)
        if state["spy"] >= 0:
            state["spy"] = relabelled(1 << int(state["spy"]), suits).bit_length() - 1
    return moved


@pytest.mark.parametrize("hand_size", [3, 5, 8])
def test_the_24_relabellings_of_suits_change_no_value(hand_size: int) -> None:
    games = met_in_play(24, hand_size=hand_size)
    states = games.states.copy()
    value = value_of(hand_size=hand_size)
    values = value.play_values(states)[0]
    table = action_table(hand_size)
    for order in permutations(SUITS):
        suits = dict(zip(SUITS, order, strict=True))
        moved = relabelled_states(states, suits)
        twins = value.play_values(moved)[0]
        for i, state in enumerate(states):
            for action, (kind, played) in plays_of(state, games.masks[i], hand_size).items():
                cards_of_twin = [card[0] + suits[card[1]] for card in played]
                twin = table.encode(kind, cards_of_twin, int(moved[i]["hand"]))
                assert twins[i, twin] == pytest.approx(values[i, action], abs=2e-6)


def test_what_the_suits_are_worth_to_a_play_is_not_lost() -> None:
    """Two plays that only differ in the suit they use can have different values."""
    env = position("Ac 5c 5d 9h Kd", "5s", spy_deck="7c 8c Jc", draw_deck="2c 3c 4c Kc")
    states = env.get_state()["state"].reshape(1)
    values = value_of().play_values(states)[0][0]
    of_club, of_diamond = (env.encode("counter", [card]) for card in ("5c", "5d"))
    assert abs(values[of_club] - values[of_diamond]) > 1e-4


# --- Objectives -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "utility"),
    [
        ("win", [0.0] * 7 + [1.0] * 6),
        ("keys", [count / 12 for count in range(13)]),
        ("perfect", [0.0] * 12 + [1.0]),
        (
            {"win": 1.0, "keys": 0.5, "perfect": 2.0},
            [count / 24 + (count > 6) + 2 * (count == 12) for count in range(13)],
        ),
    ],
    ids=str,
)
def test_what_counts_are_worth(objective: Any, utility: list[float]) -> None:
    np.testing.assert_allclose(utility_of(objective, Rules()), utility, rtol=1e-6)
    network = some_network()
    games = met_in_play(12)
    states = games.states.copy()
    values = value_of(objective, network).play_values(states)[0]
    for state, row, mask in zip(states, values, games.masks, strict=True):
        for action, play in plays_of(state, mask, 5).items():
            expected = distribution(after(zones_of(state), *play), network) @ utility
            assert row[action] == pytest.approx(expected, abs=1e-5)


def test_a_win_takes_what_the_rules_say() -> None:
    assert utility_of("win", Rules(key_spies_to_win=3)).tolist() == [0.0] * 3 + [1.0] * 10


@pytest.mark.parametrize("objective", ["fame", {}, {"fame": 1.0}, {"win": "much"}], ids=str)
def test_other_objectives_are_refused(objective: Any) -> None:
    with pytest.raises(ValueError, match="objective"):
        utility_of(objective, Rules())


# --- Files ----------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_network(some_network(), Rules(), MADE, path)
    return path


def test_files_bring_back_what_was_saved(model: Path) -> None:
    network, made = load_network(model, Rules())
    assert made == MADE
    for loaded, saved in zip(network, some_network(), strict=True):
        np.testing.assert_array_equal(loaded, saved)
    assert [path.name for path in model.parent.iterdir()] == [model.name]
    rules = Rules(hand_size=4, key_spies_to_win=2, idle_ace=False)
    made = {"objective": {"win": 1.0, "keys": 0.25}}
    save_network(some_network(16, 16), rules, made, model)
    assert load_network(model, rules)[1] == made


def refusal(spec: str, rules: Rules | None = None) -> str:
    """The one line with which an agent is refused."""
    with pytest.raises(AgentError) as caught:
        make_agent(spec, rules)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.safetensors", tmp_path):
        assert str(path) in refusal(f"afterstate={path}")
    with pytest.raises(AgentError, match="no model at"):
        load_network(tmp_path / "nothing.safetensors", Rules())


def test_broken_files_are_named(model: Path, tmp_path: Path) -> None:
    whole = model.read_bytes()
    broken = tmp_path / "broken.safetensors"
    for data in (b"", b"no model", whole[:7], whole[:200], whole[: len(whole) // 2], whole[:-1]):
        broken.write_bytes(data)
        message = refusal(f"afterstate={broken}")
        assert str(broken) in message
        assert "corrupt" in message


def rewritten(model: Path, weights: Mapping[str, Any] | None = None, **metadata: Any) -> Path:
    """The file with some weights or metadata changed; None leaves a key out."""
    path = model.with_name("changed.safetensors")
    tensors: dict[str, Any] = {**load_file(model), **(weights or {})}
    made = {"format": "afterstate-1", "env": "DeckOfSpies-v0", "made": json.dumps(MADE)}
    made["rules"] = json.dumps(
        {"idle_ace": True, "eager_reshuffle": False, "hand_size": 5, "key_spies_to_win": 7}
    )
    save_file(
        {name: tensor for name, tensor in tensors.items() if tensor is not None},
        path,
        {name: text for name, text in (made | metadata).items() if text is not None},
    )
    return path


def test_a_file_written_by_hand_is_a_model(model: Path) -> None:
    """The changed files below are refused for what was changed alone."""
    make_agent(f"afterstate={rewritten(model)}")


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"format": "afterstate-9"}, "format afterstate-9"),
        ({"format": None}, "format None"),
        ({"env": "DeckOfSpies-v9"}, "env DeckOfSpies-v9"),
        ({"env": None}, "env None"),
        ({"rules": None}, "rules None"),
        ({"rules": "{}"}, "rules {}"),
        ({"made": None}, "made"),
        ({"made": "{"}, "corrupt"),
        ({"made": "[]"}, "corrupt"),
        ({"made": "{}"}, "objective"),
        ({"made": '{"objective": "fame"}'}, "fame"),
        ({"made": '{"objective": {"fame": 1}}'}, "fame"),
        ({"made": '{"objective": null}'}, "objective"),
    ],
    ids=str,
)
def test_metadata_of_something_else_is_refused(
    model: Path, metadata: dict[str, Any], named: str
) -> None:
    path = rewritten(model, **metadata)
    message = refusal(f"afterstate={path}")
    assert str(path) in message
    assert named in message


@pytest.mark.parametrize(
    "weights",
    [
        {"first": None},
        {"third": np.zeros(3, np.float32)},
        {"first": np.zeros((229, 48), np.float32)},
        {"first": np.zeros((230, 32), np.float32)},
        {"first_bias": np.zeros((48, 1), np.float32)},
        {"first_bias": np.zeros((), np.float32)},
        {"second": np.zeros((32, 48), np.float32)},
        {"last": np.zeros((32, 13), np.float32)},
        {"last_bias": np.zeros(16, np.float64)},
        {"last_bias": np.full(16, np.nan, np.float32)},
        {"second": np.full((48, 32), np.inf, np.float32)},
        {
            "first": np.zeros((230, 20), np.float32),
            "first_bias": np.zeros(20, np.float32),
            "second": np.zeros((20, 32), np.float32),
        },
    ],
    ids="-".join,
)
def test_weights_that_do_not_fit_are_refused(model: Path, weights: dict[str, Any]) -> None:
    path = rewritten(model, weights)
    message = refusal(f"afterstate={path}")
    assert str(path) in message
    assert "corrupt" in message


def test_a_model_of_another_kind_is_refused(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"weight": np.zeros(3, np.float32)}, path)
    assert str(path) in refusal(f"afterstate={path}")
    zipped = Path(__file__).parents[1] / "agents" / "models" / "ppo.zip"
    assert "corrupt" in refusal(f"afterstate={zipped}")
    assert "corrupt" in refusal(f"ppo={model}")


def test_other_rules_are_refused(model: Path) -> None:
    message = refusal(f"afterstate={model}", Rules(eager_reshuffle=True))
    assert "rules" in message
    assert str(model) in message


def test_playing_needs_no_torch() -> None:
    """Nor SB3: the extra ``evaluate`` is enough."""
    code = "import agents.afterstate, agents.search, sys; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = ast.literal_eval(done.stdout)
    assert "agents.search" in modules
    assert not {"torch", "stable_baselines3", "sb3_contrib"} & set(modules)


# --- The agent ------------------------------------------------------------------------------------


def observed(count: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    games = met_in_play(count)
    return games.observations.copy(), games.masks.copy()


def test_it_plays_the_play_of_largest_value(model: Path) -> None:
    observations, masks = observed(200)
    actions = make_agent(f"afterstate={model}").act(observations, masks)
    expected = value_of("win").play_values(states_from_recall(observations))[1]
    np.testing.assert_array_equal(actions, expected)


def test_the_objective_is_an_option(model: Path) -> None:
    """That of the training by default: here a win."""
    observations, masks = observed(300)
    chosen = {
        objective: make_agent(f"afterstate:path={model},objective={objective}").act(
            observations, masks
        )
        for objective in ("win", "keys", "perfect")
    }
    default = make_agent(f"afterstate:path={model}").act(observations, masks)
    np.testing.assert_array_equal(default, chosen["win"])
    for objective, actions in chosen.items():
        expected = value_of(objective).play_values(states_from_recall(observations))[1]
        np.testing.assert_array_equal(actions, expected)
    assert (chosen["keys"] != chosen["win"]).any()
    assert (chosen["keys"] != chosen["perfect"]).any()


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("objective=fame", "objective must be one of win, keys, perfect, got 'fame'"),
        ("objective=", "objective"),
        ("objective", "objective"),
        ("budget=3", "options objective, path"),
        ("objective=win,objective=keys", "at most once"),
        ("", "objective, path"),
    ],
)
def test_bad_options_are_named(model: Path, written: str, named: str) -> None:
    assert named in refusal(f"afterstate:{written}")


def test_a_run_directory_is_its_last_model_or_else_its_best(model: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    observations, masks = observed(100)

    def actions() -> Any:
        return make_agent(f"afterstate={run}").act(observations, masks)

    assert "last_model.safetensors" in refusal(f"afterstate={run}")
    (run / "best_model.safetensors").write_bytes(model.read_bytes())
    best = actions()
    np.testing.assert_array_equal(best, make_agent(f"afterstate={model}").act(observations, masks))
    save_network(some_network(seed=5), Rules(), MADE, run / "last_model.safetensors")
    assert (actions() != best).any()


def test_deals_are_played_equally_whatever_is_played_beside_them(model: Path) -> None:
    agent = make_agent(f"afterstate={model}")
    assert isinstance(agent, AfterstateAgent)
    seeds = deal_seeds("select", 0, 40)
    together = play_deals(agent, seeds)
    some = play_deals(agent, seeds[5:25], batch_size=7)
    np.testing.assert_array_equal(some.key_spies, together.key_spies[5:25])
    np.testing.assert_array_equal(some.decisions, together.decisions[5:25])


def test_it_plays_other_rules(tmp_path: Path) -> None:
    for rules in (Rules(hand_size=3), Rules(hand_size=8, idle_ace=False)):
        path = tmp_path / "model.safetensors"
        save_network(some_network(), rules, MADE, path)
        result = play_deals(
            make_agent(f"afterstate={path}", rules), deal_seeds("select", 0, 20), rules=rules
        )
        assert set(result.outcomes) <= {"win", "loss", "no_double_agent"}
