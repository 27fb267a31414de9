"""The agent ``linear``: its features, its play, its weights file, and the search for weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Zones, new_env, position

from agents import AgentError, make_agent
from agents.linear import SHIPPED, LinearAgent
from agents.linear_features import FEATURES, features_of
from agents.training import fit_linear
from deck_of_spies_env import Rules, cards
from deck_of_spies_env.agent import BatchAgent
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.solitaire.rollouts import deal_snapshots, play_out
from deck_of_spies_env.solitaire.rules import NO_SPY, STATE

WIN_RATE = (0.81, 0.87)
"""It won 0.845 of 20,000 deals of the select bank; 4,000 have a standard error of 0.006."""

TINY = (
    *("--generations", "3", "--population", "4", "--first-deals", "10", "--last-deals", "20"),
    *("--check-every", "2", "--check-deals", "20"),
)


def state_of(zones: Zones) -> Any:
    """A position as an array of one record."""
    state = np.zeros(1, dtype=STATE)
    for zone in ("hand", "draw_deck", "draw_discard", "spy_deck", "spy_discard"):
        state[zone] = cards.mask_of(zones.get(zone, ()))
    spy = zones.get("spy", ())
    state["spy"] = cards.card_index(spy[0]) if spy else NO_SPY
    return state


def features(**zones: str) -> dict[str, float]:
    """The features by name of a position given by its zones."""
    state = state_of({zone: tuple(named.split()) for zone, named in zones.items()})
    return dict(zip(FEATURES, features_of(state, Rules())[0].tolist(), strict=True))


def weights_of(**named: float) -> tuple[float, ...]:
    """Weights in their order, 0 where none is named."""
    return tuple(named.get(name, 0.0) for name in FEATURES)


def written(tmp_path: Path, **changes: Any) -> Path:
    """The shipped weights file with other values for some of its keys."""
    path = tmp_path / "weights.json"
    path.write_text(json.dumps(json.loads(SHIPPED.read_text()) | changes))
    return path


# --- Features -------------------------------------------------------------------------------------


def test_features_before_the_next_spy_is_seen() -> None:
    found = features(
        hand="2c 2d 5h Jc",
        draw_deck="Ah 2h 9s Kd",
        draw_discard="3c Qs",
        spy_deck="Ts Jh Qc Kh",
    )
    expected = {
        "key_spies": 3,
        "high_cards": 1,
        "middle_cards": 1,
        "low_cards": 4,
        "aces": 1,
        "early_middle_cards": 1 * 4 / 36,
        "early_low_cards": 4 * 4 / 36,
        "mean_value": 60 / 10,
        "early_mean_value": 6 * 4 / 36,
        "ace_suits": 2 / 3,  # Jh, Kh
        "next_hand": (20 + 25 / 4) / 10,
        "low_pairs": 2,
        "higher_pairs": 0,
        "pair_hopes": 3 * 1 / 4,  # 2h
        "weak_hand": 0,  # a T is to come: 26.25 is more than twice 9
    }
    variance = 1 + np.var([1, 2, 9, 13])
    surplus = 26.25 - 9 + 0.5
    expected["danger"] = 0.5 - 0.5 * surplus / np.sqrt(surplus**2 + variance)
    assert found == pytest.approx(expected)


def test_features_where_the_draw_reaches_the_discard() -> None:
    found = features(hand="8c 8d 8h", draw_deck="Ac", draw_discard="2c 4c", spy="Kc", spy_deck="Qc")
    assert found["next_hand"] == pytest.approx((24 + 1 + 3) / 10)
    assert found["ace_suits"] == pytest.approx(2 / 3)  # the spy in view counts too
    assert found["higher_pairs"] == 3
    assert found["weak_hand"] == 0
    assert found["danger"] < 0.05  # 28 against 13
    weaker = features(hand="2c 3d", draw_deck="Ac", spy="Kc")
    assert weaker["next_hand"] == pytest.approx(0.6)  # no more cards to draw
    assert weaker["weak_hand"] == pytest.approx(1 - 6 / 26)
    assert weaker["danger"] > 0.9


def test_features_of_a_position_without_cards() -> None:
    found = features(spy="9c")
    assert all(np.isfinite(value) for value in found.values())
    assert found["weak_hand"] == 1
    assert found["mean_value"] == found["next_hand"] == found["pair_hopes"] == 0


# --- Play -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("weight", "kind"), [(1.0, "recruit"), (-1.0, "counter")])
def test_weights_decide(weight: float, kind: str) -> None:
    env = position("2c 3c 5d Jc Qd", "Tc")
    observation, info = env.reset(options={"zones": env.zones(), "phase": "act"})
    agent = LinearAgent(Rules(), weights_of(high_cards=weight))
    action = agent.act(observation, info["action_mask"])
    assert env.decode(int(action)).kind == kind


def test_it_takes_the_play_whose_position_after_it_scores_highest() -> None:
    env = new_env()
    agent: Any = make_agent("linear")
    document = json.loads(SHIPPED.read_text())
    weights = [document["weights"][name] for name in FEATURES]
    decisions = 0
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            scores = {}
            for action in np.flatnonzero(info["action_mask"]).tolist():
                row = features_of(state_of(env.afterstate(action)), Rules())[0]
                scores[action] = sum(w * f for w, f in zip(weights, row.tolist(), strict=True))
            chosen = int(agent.act(observation, info["action_mask"]))
            assert scores[chosen] == pytest.approx(max(scores.values()))
            observation, _, over, _, info = env.step(chosen)
            decisions += 1
    assert decisions > 100


def test_whole_games_in_a_kernel_are_the_games_of_the_batch_form() -> None:
    agent: Any = make_agent("linear")

    class Batchwise(BatchAgent):
        def choose(self, observations: Any, action_masks: Any) -> Any:
            return agent.choose(observations, action_masks)

    seeds = deal_seeds("select", 1, 300)
    fused, stepped = play_deals(agent, seeds), play_deals(Batchwise(), seeds)
    for field in ("wins", "key_spies", "turns", "decisions", "outcomes"):
        assert np.array_equal(getattr(fused, field), getattr(stepped, field))
    played = play_out(deal_snapshots(seeds), agent.compiled_policy, num_threads=2)
    assert np.array_equal(played.key_spies, fused.key_spies)


def test_linear_wins_what_it_won_when_measured() -> None:
    wins = play_deals(make_agent("linear"), deal_seeds("select", 1, 4000)).wins
    low, high = WIN_RATE
    assert low < wins.mean() < high


# --- Weights files --------------------------------------------------------------------------------


def test_another_weights_file_plays_otherwise(tmp_path: Path) -> None:
    timid = written(tmp_path, weights=dict.fromkeys(FEATURES, 0) | {"key_spies": -1})
    result = play_deals(make_agent(f"linear={timid}"), deal_seeds("select", 0, 50))
    assert result.key_spies.mean() < 2


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"format": 2}, "are for format 2, not 1"),
        ({"env": "DeckOfSpies-v1"}, "'DeckOfSpies-v1'"),
        ({"rules": {"hand_size": 6}}, "trained for rules"),
        ({"weights": None}, "one for each of the features"),
        ({"weights": {"key_spies": 1.0}}, "one for each of the features"),
        ({"weights": dict.fromkeys((*FEATURES, "luck"), 1.0)}, "one for each of the features"),
        ({"weights": dict.fromkeys(FEATURES, float("nan"))}, "not all finite"),
        ({"weights": dict.fromkeys(FEATURES, 10**400)}, "not all finite"),
        ({"weights": dict.fromkeys(FEATURES, "1")}, "not all finite"),
        ({"weights": dict.fromkeys(FEATURES, True)}, "not all finite"),
    ],
)
def test_bad_weights_are_refused_in_one_line(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(AgentError, match=complaint) as caught:
        make_agent(f"linear={path}")
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff\xfe", b"[" * 100_000])
def test_files_that_hold_no_weights_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.json"
    path.write_bytes(content)
    with pytest.raises(AgentError, match="are corrupt") as caught:
        make_agent(f"linear={path}")
    assert len(str(caught.value).splitlines()) == 1


def test_a_missing_file_and_other_rules_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"can't read weights .*No such file"):
        make_agent(f"linear={tmp_path / 'none.json'}")
    with pytest.raises(AgentError, match="can't read weights"):
        make_agent(f"linear={tmp_path}")
    with pytest.raises(AgentError, match="trained for rules"):
        make_agent("linear", Rules(idle_ace=False))


# --- The search -----------------------------------------------------------------------------------


def test_the_search_repeats_for_its_seed(tmp_path: Path, capsys: Any) -> None:
    found = {}
    for name, seed in (("first", "1"), ("again", "1"), ("other", "2")):
        path = tmp_path / f"{name}.json"
        assert fit_linear.main([*TINY, "--seed", seed, "--out", str(path)]) == 0
        found[name] = path.read_text()
    assert found["first"] == found["again"]
    assert json.loads(found["first"])["weights"] != json.loads(found["other"])["weights"]
    printed = capsys.readouterr().out
    assert "generation 3" in printed
    assert "won" in printed
    make_agent(f"linear={tmp_path / 'first.json'}")


def test_more_search_plays_better(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    arguments = ("--generations", "12", "--first-deals", "100", "--last-deals", "200")
    fit_linear.main([*arguments, "--check-deals", "200", "--out", str(path)])
    # Random play owns 0.85 Key Spies, and weights drawn at random hardly more.
    assert (
        play_deals(make_agent(f"linear={path}"), deal_seeds("select", 5, 500)).key_spies.mean() > 4
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--generations", "0"], "generations must be at least 1"),
        (["--population", "1"], "population must be at least 2"),
        (["--sigma", "0"], "sigma must be positive"),
        (["--sigma", "nan"], "sigma must be positive"),
        (["--keys-weight", "-1"], "keys_weight must not be negative"),
        (["--seed", "-1"], "seed must be 0 to"),
        (["--seed", "one"], "invalid int value"),
        (["--out", "missing/directory/weights.json"], "can't write"),
    ],
)
def test_bad_settings_are_refused_before_the_search(
    capsys: Any, arguments: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        fit_linear.main(arguments)
    assert caught.value.code == 2
    assert complaint in capsys.readouterr().err


def test_the_shipped_weights_say_how_they_were_found() -> None:
    found = json.loads(SHIPPED.read_text())["found"]
    assert found["settings"] == vars(fit_linear.Settings())
