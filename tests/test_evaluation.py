"""Banks of deals, matches and reports: nothing but the deals and the agent decides a result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import new_env

from agents import make_agent
from deck_of_spies_env import IllegalActionError, Rules, __version__
from deck_of_spies_env.agent import Actions, Agent, BatchAgent
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.reports import Report, make_report, print_report, to_json
from deck_of_spies_env.evaluation.seeds import (
    BANKS,
    MAX_DEALS,
    SEED_LIMIT,
    agent_seed,
    bank_of,
    deal_seeds,
)
from deck_of_spies_env.files import check_writable, write_text_atomically
from deck_of_spies_env.solitaire.actions import action_table

NUM_SPIES = 36


class ScriptedAgent(BatchAgent):
    """Plays whatever a function makes of the masks."""

    def __init__(self, script: Callable[[npt.NDArray[np.bool_]], Any]) -> None:
        self.script = script

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        return self.script(action_masks)


def first_legal(masks: npt.NDArray[np.bool_]) -> Actions:
    return masks.argmax(axis=1)


def last_legal(masks: npt.NDArray[np.bool_]) -> Actions:
    return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)


def thin_out(masks: npt.NDArray[np.bool_]) -> Actions:
    """Retire what can be retired, and never recruit: a deck that ends too weak for the spies."""
    table = action_table(5)
    order = np.zeros(table.num_actions)
    for kind, worth in (("retire", 4), ("counter", 3), ("assassinate", 2), ("pass", 1)):
        indices = table.actions_of(kind)
        order[indices.start : indices.stop] = worth
    return np.where(masks, order, -1.0).argmax(axis=1)


def by_single_env(agent: Agent, seed: int, **arguments: Any) -> tuple[Any, ...]:
    """Outcome, success, Key Spies, turns and decisions of one deal through the environment."""
    env = new_env(**arguments)
    observation, info = env.reset(seed=seed)
    decisions, over = 0, False
    while not over:
        action = int(agent.act(observation, info["action_mask"]))
        observation, _, over, _, info = env.step(action)
        decisions += 1
    return info["outcome"], info["is_success"], info["key_spies"], info["turns"], decisions


def rows(result: MatchResult) -> list[tuple[Any, ...]]:
    columns = (result.outcomes, result.wins, result.key_spies, result.turns, result.decisions)
    return list(zip(*(column.tolist() for column in columns), strict=True))


# --- Banks of deals -------------------------------------------------------------------------------


def test_banks_are_disjoint_up_to_their_ends() -> None:
    def ends(bank: str, seed: int) -> tuple[int, int]:
        first = deal_seeds(bank, seed, 1)[0]
        return first, first + MAX_DEALS - 1

    blocks = [ends(bank, seed) for bank in BANKS for seed in (0, 1, SEED_LIMIT - 1)]
    assert blocks == sorted(blocks)
    for (_, last), (first, _) in pairwise(blocks):
        assert last < first


@pytest.mark.parametrize("seed", [0, 7, SEED_LIMIT - 1])
def test_a_seed_tells_its_bank(seed: int) -> None:
    for bank in BANKS:
        for count in (1, 1000):
            assert bank_of(deal_seeds(bank, seed, count)[-1]) == bank
    assert bank_of(len(BANKS) << 56) is None
    assert bank_of(1 << 80) is None


def test_seeds_of_a_bank_run_on() -> None:
    assert deal_seeds("train", 0, 3) == [0, 1, 2]
    assert deal_seeds("test", 5, 0) == []
    assert deal_seeds("test", 5, 4)[:2] == deal_seeds("test", 5, 2)
    assert deal_seeds("select", 1, 1) == [(1 << 56) + (1 << 32)]


@pytest.mark.parametrize(
    ("bank", "seed", "count", "named"),
    [
        ("exam", 0, 1, "unknown bank 'exam'; there are train, select, test"),
        ("test", -1, 1, "the seed must be"),
        ("test", SEED_LIMIT, 1, str(SEED_LIMIT)),
        ("test", 0, -1, "the number of deals"),
        ("test", 0, MAX_DEALS + 1, "the number of deals"),
    ],
)
def test_bad_banks(bank: str, seed: int, count: int, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        deal_seeds(bank, seed, count)


def test_agent_seeds_fit_every_library() -> None:
    seeds = [agent_seed(seed) for seed in range(100)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)
    with pytest.raises(ValueError, match="seed"):
        agent_seed(-1)


# --- Matches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 7, 16])
def test_results_do_not_depend_on_the_batch_size(batch_size: int) -> None:
    agent, seeds = make_agent("greedy"), deal_seeds("select", 3, 40)
    together = play_deals(agent, seeds)
    assert len(together.wins) == len(seeds)
    assert rows(play_deals(agent, seeds, batch_size=batch_size)) == rows(together)


def test_results_do_not_depend_on_the_other_deals() -> None:
    agent, seeds = make_agent("greedy"), deal_seeds("select", 3, 60)
    backwards = play_deals(agent, seeds[::-1], batch_size=8)
    assert rows(backwards)[::-1] == rows(play_deals(agent, seeds, batch_size=8))


@pytest.mark.parametrize("script", [first_legal, last_legal, thin_out])
def test_a_match_is_what_the_environment_plays(
    script: Callable[[npt.NDArray[np.bool_]], Actions],
) -> None:
    agent, seeds = ScriptedAgent(script), deal_seeds("select", 1, 12)
    result = play_deals(agent, seeds, batch_size=5)
    assert rows(result) == [by_single_env(agent, seed) for seed in seeds]


def test_a_match_under_other_rules_and_observation() -> None:
    rules, seeds = Rules(hand_size=6, key_spies_to_win=1), deal_seeds("select", 1, 12)
    agent = ScriptedAgent(last_legal)
    result = play_deals(agent, seeds, rules=rules, observation="table", batch_size=5)
    assert rows(result) == [
        by_single_env(agent, seed, rules=rules, observation="table") for seed in seeds
    ]


def test_without_recruits_games_are_lost_early_or_late() -> None:
    result = play_deals(ScriptedAgent(thin_out), deal_seeds("select", 2, 200))
    assert set(result.outcomes) == {"loss", "no_double_agent"}
    assert not result.wins.any()
    assert not result.key_spies.any()
    assert np.array_equal(result.turns == NUM_SPIES, result.outcomes == "loss")
    assert (result.turns <= NUM_SPIES).all()
    assert (result.decisions >= result.turns).all()


def test_random_play_is_repeatable_after_a_reset() -> None:
    agent, seeds = make_agent("random"), deal_seeds("select", 0, 40)

    def play(seed: int) -> list[tuple[Any, ...]]:
        agent.reset(seed)
        return rows(play_deals(agent, seeds))

    assert play(1) == play(1) != play(2)


def test_progress_counts_every_deal_once() -> None:
    calls: list[int] = []
    play_deals(
        make_agent("greedy"), deal_seeds("select", 0, 50), batch_size=8, progress=calls.append
    )
    assert sum(calls) == 50
    assert min(calls) >= 1


def test_agents_see_only_games_in_play_and_only_copies() -> None:
    sizes: list[int] = []

    class Vandal(BatchAgent):
        def choose(
            self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
        ) -> Actions:
            raise NotImplementedError

        def act(self, observation: npt.NDArray[Any], action_mask: npt.NDArray[Any]) -> Actions:
            sizes.append(len(observation))
            assert action_mask.any(axis=1).all()
            actions = first_legal(action_mask)
            observation[:] = 0
            action_mask[:] = 1
            return actions

    seeds = deal_seeds("select", 1, 10)
    result = play_deals(Vandal(), seeds, batch_size=4)
    assert rows(result) == rows(play_deals(ScriptedAgent(first_legal), seeds))
    assert max(sizes) == 4
    assert sum(sizes) == result.decisions.sum()


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (np.full(3, 77), r"seed \d+: action 77 \(pass\) is illegal"),
        (np.full(3, 78), r"seed \d+: action 78 does not exist"),
        (np.full(3, -1), r"seed \d+: action -1 does not exist"),
        (np.full(1, 0), r"must return whole numbers of shape \(3,\), got int64 of shape \(1,\)"),
        (np.full(3, 0.0), "must return whole numbers .* got float64"),
        (None, "must return whole numbers"),
    ],
)
def test_illegal_actions_are_named(returned: Any, complaint: str) -> None:
    agent = ScriptedAgent(lambda _: returned)
    with pytest.raises(IllegalActionError, match=complaint):
        play_deals(agent, deal_seeds("select", 0, 3))


def test_failures_of_agents_come_through() -> None:
    def fail(_: npt.NDArray[np.bool_]) -> Actions:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        play_deals(ScriptedAgent(fail), deal_seeds("select", 0, 3))


def test_bad_matches() -> None:
    agent = make_agent("greedy")
    with pytest.raises(ValueError, match="at least one deal"):
        play_deals(agent, [])
    with pytest.raises(ValueError, match="batch size"):
        play_deals(agent, [0], batch_size=0)
    with pytest.raises(ValueError, match="observation"):
        play_deals(agent, [0], observation="x-ray")


# --- Reports --------------------------------------------------------------------------------------


def match_of(wins: list[int], key_spies: list[int], seconds: float = 2.0) -> MatchResult:
    num_deals = len(wins)
    return MatchResult(
        wins=np.array(wins, dtype=np.bool_),
        key_spies=np.array(key_spies, dtype=np.int64),
        turns=np.full(num_deals, NUM_SPIES, dtype=np.int64),
        decisions=np.full(num_deals, 40, dtype=np.int64),
        outcomes=np.array(["win" if win else "loss" for win in wins], dtype=np.object_),
        seconds=seconds,
    )


@pytest.fixture
def small_report() -> Report:
    matches = [
        ("first", match_of([1, 1, 0, 0], [7, 8, 3, 0])),
        ("second", match_of([1, 0, 0, 0], [7, 2, 3, 0], seconds=0.5)),
    ]
    return make_report(matches, seed=9, rules=Rules())


def test_report_has_exactly_the_promised_fields(small_report: Report) -> None:
    assert set(small_report) == {
        "version", "bank", "deals", "seed", "rules", "stopping", "agents", "comparisons"
    }  # fmt: skip
    assert small_report["version"] == __version__
    assert (small_report["bank"], small_report["deals"], small_report["seed"]) == ("test", 4, 9)
    assert small_report["rules"] == {
        "idle_ace": True, "eager_reshuffle": False, "hand_size": 5, "key_spies_to_win": 7
    }  # fmt: skip
    for agent in small_report["agents"]:
        assert set(agent) == {
            "name", "wins", "win_rate", "win_rate_ci", "mean_key_spies", "mean_key_spies_ci",
            "key_spies_at_least", "key_spies_at_least_band", "all_key_spies_ci", "decisions",
            "seconds", "behaviour", "without_luck",
        }  # fmt: skip
        assert list(agent["key_spies_at_least"]) == [str(number) for number in range(1, 13)]
    for pair in small_report["comparisons"]:
        assert set(pair) == {
            "agents", "win_rate_difference", "win_rate_difference_ci", "wins_only_first",
            "wins_only_second", "mcnemar_p", "mcnemar_p_holm", "mean_key_spies_difference",
            "mean_key_spies_difference_ci", "behaviour", "without_luck",
        }  # fmt: skip


def test_report_equals_what_is_computed_by_hand(small_report: Report) -> None:
    first, second = small_report["agents"]
    assert (first["name"], first["wins"], first["win_rate"]) == ("first", 2, 0.5)
    assert (second["name"], second["wins"], second["win_rate"]) == ("second", 1, 0.25)
    # Wilson at 2 of 4: 1/2 -+ z sqrt(1/16 + z^2/64) / (1 + z^2/4), z = 1.959964.
    assert first["win_rate_ci"] == pytest.approx([0.150040, 0.849960], abs=1e-5)
    # With 1.920729 each of 0 and 12: mean 5.234836, squares 183.7015, t(6.841459) = 2.375778.
    assert first["mean_key_spies"] == 4.5
    assert first["mean_key_spies_ci"] == pytest.approx([1.12840, 9.34128], abs=1e-4)
    shares = [0.75] * 3 + [0.5] * 4 + [0.25] + [0.0] * 4
    assert list(first["key_spies_at_least"].values()) == shares
    assert (first["decisions"], first["seconds"]) == (160, 2.0)

    (pair,) = small_report["comparisons"]
    assert pair["agents"] == ["first", "second"]
    assert pair["win_rate_difference"] == 0.25
    low, high = pair["win_rate_difference_ci"]
    assert -1 <= low < 0.25 < high <= 1
    assert (pair["wins_only_first"], pair["wins_only_second"]) == (1, 0)
    assert (pair["mcnemar_p"], pair["mcnemar_p_holm"]) == (1.0, 1.0)
    # Differences 0, 6, 0, 0: mean 1.5, standard error 1.5.
    assert pair["mean_key_spies_difference"] == 1.5
    assert pair["mean_key_spies_difference_ci"] == pytest.approx([-3.27367, 6.27367], abs=1e-4)


def test_all_pairs_are_compared_in_order_and_adjusted_together() -> None:
    matches = [
        ("all", match_of([1] * 10, [7] * 10)),
        ("none", match_of([0] * 10, [0] * 10)),
        ("half", match_of([1, 0] * 5, [7, 0] * 5)),
    ]
    pairs = make_report(matches, seed=0, rules=Rules())["comparisons"]
    assert [pair["agents"] for pair in pairs] == [
        ["all", "none"], ["all", "half"], ["none", "half"]
    ]  # fmt: skip
    assert [pair["mcnemar_p"] for pair in pairs] == [2 / 2**10, 2 / 2**5, 2 / 2**5]
    assert [pair["mcnemar_p_holm"] for pair in pairs] == [3 * 2 / 2**10, 0.125, 0.125]
    assert [pair["wins_only_second"] for pair in pairs] == [0, 0, 5]


def loads_strictly(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_is_the_report(small_report: Report) -> None:
    assert loads_strictly(to_json(small_report)) == small_report


def test_one_deal_has_no_paired_interval(capsys: pytest.CaptureFixture[str]) -> None:
    matches = [("one", match_of([1], [7])), ("other", match_of([0], [0], seconds=0.0))]
    report = loads_strictly(to_json(make_report(matches, seed=0, rules=Rules())))
    assert [agent["mean_key_spies_ci"] for agent in report["agents"]] == [[0, 12], [0, 12]]
    assert report["comparisons"][0]["mean_key_spies_difference"] == 7
    assert report["comparisons"][0]["mean_key_spies_difference_ci"] is None
    print_report(report)
    assert "none" in capsys.readouterr().out


def test_one_agent_has_nothing_to_compare() -> None:
    assert make_report([("one", match_of([1], [7]))], seed=0, rules=Rules())["comparisons"] == []


def test_reports_need_common_deals() -> None:
    with pytest.raises(ValueError, match="same deals"):
        make_report([], seed=0, rules=Rules())
    with pytest.raises(ValueError, match="same deals"):
        make_report(
            [("a", match_of([1], [7])), ("b", match_of([1, 0], [7, 0]))], seed=0, rules=Rules()
        )


def test_table_shows_deals_rates_and_intervals(
    small_report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    small_report["agents"][0]["name"] = "[red]first"  # no markup
    small_report["rules"] = {**small_report["rules"], "hand_size": 6}
    print_report(small_report)
    lines = capsys.readouterr().out.splitlines()
    assert "4 deals" in lines[0]
    assert "test bank, seed 9" in lines[0]
    assert "hand_size=6" in lines[1]
    (row,) = [line for line in lines if line.startswith("[red]first")]
    assert row.split() == [
        "[red]first", "50.00", "[15.00,", "85.00]", "4.50", "[1.13,", "9.34]",
        "0.00", "[0.00,", "48.99]", "80",
    ]  # fmt: skip
    (pair,) = [line for line in lines if line.startswith("first - second  ") and ":" in line]
    assert "+25.00" in pair
    assert "1 : 0" in pair
    assert "+1.50 [-3.27, +6.27]" in pair


def test_a_real_match_makes_a_report() -> None:
    seeds, rules = deal_seeds("select", 0, 30), Rules(key_spies_to_win=4)
    result = play_deals(make_agent("greedy", rules), seeds, rules=rules)
    report = make_report([("greedy", result)], seed=0, rules=rules, bank="select")
    (agent,) = report["agents"]
    assert agent["wins"] == round(agent["key_spies_at_least"]["4"] * 30) > 0
    assert agent["decisions"] > 30 * NUM_SPIES / 2
    assert agent["seconds"] > 0
    slow = replace(result, seconds=1.5)
    assert make_report([("a", slow)], seed=0, rules=rules)["agents"][0]["seconds"] == 1.5


# --- Files ----------------------------------------------------------------------------------------


def test_files_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    check_writable(path)
    assert list(tmp_path.iterdir()) == []
    write_text_atomically(path, "old ♠\n")
    path.chmod(0o640)

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        with pytest.raises(OSError, match="No space"):
            write_text_atomically(path, "new")
    assert path.read_bytes() == "old ♠\n".encode()
    assert list(tmp_path.iterdir()) == [path]

    link = tmp_path / "link.json"
    link.symlink_to(path)
    write_text_atomically(link, "new\n")
    assert link.is_symlink()
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_unwritable_paths_are_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere" / "report.json"):
        with pytest.raises(OSError, match=str(path)):
            check_writable(path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_written_to_as_it_is() -> None:
    check_writable("/dev/null")
    write_text_atomically("/dev/null", "text")
    assert Path("/dev/null").is_char_device()
