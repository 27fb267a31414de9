"""Tests of the benchmark suite: random choice, arithmetic, report, and what is left out. No time is
asserted, and no other library is needed."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2

from benchmarks import __main__ as command
from benchmarks import (
    ablation,
    best_response,
    measuring,
    optimality,
    report,
    small_skirmish,
    strength,
    study,
)
from benchmarks.choosing import choose_each, choose_each_packed, choose_one, new_stream
from benchmarks.measuring import compare, fastest, measure, ratios, seconds_per_step, spread
from benchmarks.report import render, requirements_table, verdict
from benchmarks.workers import LeftOutError, Worker
from benchmarks.workloads import GROUPS, Comparison, Contender, Group, Share

ROOT = Path(__file__).parents[1]
ERROR_RATE = 1e-6
"""How often a right chooser would fail its test of uniformity, were the seed not fixed."""
OURS = Contender("ours", "players:single", {"env_id": "DeckOfSpies-v0"}, "`gym.make`", ours=True)
ABSENT = Contender("absent peer", "no_such_library:make", {}, "nothing")


# --- Random choice ---


def packed(masks: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """Bit a % 64 of word a // 64 is action a."""
    num_games, num_actions = masks.shape
    words = np.zeros((num_games, -(-num_actions // 64)), dtype=np.uint64)
    for i, action in np.argwhere(masks):
        words[i, action // 64] |= np.uint64(1) << np.uint64(action % 64)
    return words


@pytest.mark.parametrize("num_actions", [1, 2, 7, 8, 9, 15, 63, 64, 65, 72, 78, 606])
@pytest.mark.parametrize("action_type", [np.int32, np.int64])
def test_every_choice_is_legal_and_every_legal_action_is_chosen(
    num_actions: int, action_type: type[np.integer[Any]]
) -> None:
    rng = np.random.default_rng(num_actions)
    masks = (rng.random((40, num_actions)) < min(1.0, 4 / num_actions)).astype(np.int8)
    masks[np.arange(40), rng.integers(num_actions, size=40)] = 1
    masks[:3] = 0
    masks[1, -1] = masks[2, 0] = 1
    masks[3] = 1
    words = packed(masks)
    for choose, given in ((choose_each, masks), (choose_each_packed, words)):
        stream, actions = new_stream(1), np.full(len(masks), -1, dtype=action_type)
        chosen = np.zeros_like(masks)
        for _ in range(500):
            choose(given, stream, actions)
            chosen[np.arange(len(masks)), actions] = 1
        assert chosen[0].nonzero()[0].tolist() == [0]  # nothing is legal there
        assert (chosen[1:] <= masks[1:]).all()
        few = masks.sum(axis=1) < 20
        few[0] = False
        assert (chosen[few] == masks[few]).all()
    one = [choose_one(masks[3], new_stream(seed)) for seed in range(100)]
    assert all(masks[3, action] for action in one)
    assert choose_one(masks[0], new_stream(0)) == 0


def assert_uniform(counts: npt.NDArray[np.int64]) -> None:
    expected = counts.sum() / len(counts)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1.0 - ERROR_RATE, len(counts) - 1), counts


def test_legal_actions_are_equally_likely() -> None:
    legal = [0, 1, 31, 32, 62, 63, 64, 65, 70, 77]
    mask = np.zeros((1, 78), dtype=np.int8)
    mask[0, legal] = 1
    masks = np.repeat(mask, 1000, axis=0)
    for choose, given in ((choose_each, masks), (choose_each_packed, packed(masks))):
        stream, actions = new_stream(5), np.zeros(len(masks), dtype=np.int64)
        counts = np.zeros(78, dtype=np.int64)
        for _ in range(100):
            choose(given, stream, actions)
            counts += np.bincount(actions, minlength=78)
        assert_uniform(counts[legal])
    stream = new_stream(6)
    chosen = [choose_one(mask[0], stream) for _ in range(20_000)]
    assert_uniform(np.bincount(chosen, minlength=78)[legal])


# --- Arithmetic ---


def contender(name: str, *rounds: tuple[float, float], **more: Any) -> dict[str, Any]:
    """A record: of each round steps and CPU seconds; the wall shows twice as many seconds."""
    return {
        "name": name,
        "made_by": "hand",
        "games": 1,
        "one_core": True,
        "plotted": True,
        "ours": name == "ours",
        "share_of_resets": 0.0,
        "facts": {},
        "rounds": [
            {"steps": steps, "cpu": seconds, "wall": 2.0 * seconds} for steps, seconds in rounds
        ],
        **more,
    }


def with_choice(record: dict[str, Any], seconds_of_a_step: float) -> dict[str, Any]:
    """The record, the choice having been timed apart."""
    for one in record["rounds"]:
        one |= {
            "choice_steps": 10.0,
            "choice_cpu": 10.0 * seconds_of_a_step,
            "choice_wall": 20.0 * seconds_of_a_step,
        }
    return record


def test_medians_and_spreads() -> None:
    assert spread([5.0, 1.0, 3.0]) == (3.0, 1.0, 5.0)
    assert spread([1.0, 2.0]) == (1.5, 1.0, 2.0)


def test_ratios_are_taken_round_by_round() -> None:
    ours = contender("ours", (100, 1.0), (100, 2.0), (100, 1.0))
    peer = contender("peer", (100, 3.0), (50, 2.0), (100, 4.0))
    assert ratios(ours, peer, "cpu") == [3.0, 2.0, 4.0]
    assert ratios(ours, peer, "wall") == [3.0, 2.0, 4.0]
    record = compare(Comparison("work", "ours", "a peer", ("peer",), 1.0, 2.0), [ours, peer])
    # The ratio of the medians would be another one: 3.0 seconds over 1.0.
    assert record["cpu"]["whole"] == {"median": 3.0, "low": 2.0, "high": 4.0}
    assert record["cpu"]["env_only"] is None


def test_the_choice_is_taken_off_both_sides() -> None:
    ours = with_choice(contender("ours", (10, 10.0)), 0.5)
    peer = with_choice(contender("peer", (10, 20.0)), 0.25)
    assert seconds_per_step(ours["rounds"][0], "cpu", env_only=True) == 0.5
    assert ratios(ours, peer, "cpu") == [2.0]
    assert ratios(ours, peer, "cpu", env_only=True) == [1.75 / 0.5]
    costly = with_choice(contender("ours", (10, 10.0)), 1.5)
    assert ratios(costly, peer, "cpu", env_only=True) is None


def test_decisions_leave_out_resets() -> None:
    ours = contender("ours", (100, 1.0), share_of_resets=0.2)
    peer = contender("peer", (100, 4.0))
    assert ratios(ours, peer, "cpu", per="decisions") == [pytest.approx(3.2)]
    assert ratios(ours, peer, "cpu") == [4.0]


def test_the_fastest_peer_counts() -> None:
    slow, fast = contender("slow", (100, 2.0)), contender("fast", (100, 1.0))
    ours = contender("ours", (100, 0.5))
    assert fastest([slow, fast], "cpu") is fast
    record = compare(Comparison("work", "ours", "peers", ("slow", "fast")), [ours, slow, fast])
    assert record["cpu"]["beside"] == "fast"
    assert record["cpu"]["whole"]["median"] == 2.0


def test_verdicts() -> None:
    assert verdict([2.0, 3.0], 1.0, 2.0) == "aim reached"
    assert verdict([2.0, 1.5], 1.0, 2.0) == "met"
    assert verdict([2.0, 0.9], 1.0, 2.0) == "missed"
    assert verdict([0.01], 0.05, 0.02, at_most=True) == "aim reached"
    assert verdict([0.03], 0.05, 0.02, at_most=True) == "met"
    assert verdict([0.06], 0.05, 0.02, at_most=True) == "missed"


# --- Report ---


def results(group: dict[str, Any]) -> dict[str, Any]:
    """The contents of a JSON file with one group."""
    return {
        "groups": {
            "single": {
                "title": "A group",
                "counted": "A step is a step.",
                "left_out": {},
                "comparisons": [],
                "shares": [],
                "settings": {"rounds": 2, "seconds": 0.5, "core": 0},
                "circumstances": {
                    "cpu": "a processor",
                    "cores": 2,
                    "versions": {"numpy": "2.0"},
                    "commit": "0123456789ab",
                    "command": "python -m benchmarks",
                    "date": "2026-01-01T00:00:00+00:00",
                },
                **group,
            }
        }
    }


def test_report_has_a_row_for_everything() -> None:
    ours = with_choice(contender("ours", (4_000_000, 2.0), (4_000_000, 1.0)), 1e-8)
    ours["rounds"][0]["env_cpu"] = ours["rounds"][1]["env_cpu"] = 0.03
    peer = with_choice(contender("a peer", (1_000_000, 1.0), (1_000_000, 1.0)), 1e-8)
    asked = Comparison("work", "ours", "the peer", ("a peer",), 2.0, 8.0)
    unmeasured = Comparison("more work", "ours", "another peer", ("nobody",), 5.0, 6.0)
    share = Share("learning", "ours", 0.05, 0.02)
    contents = results(
        {
            "contenders": [ours, peer],
            "left_out": {"nobody": "ModuleNotFoundError: No module named 'nobody'"},
            "comparisons": [
                compare(comparison, [ours, peer]) for comparison in (asked, unmeasured)
            ],
            "shares": [measuring.take_share(share, [ours, peer])],
        }
    )
    text = render(json.loads(json.dumps(contents)))
    for line in (
        "| work | the peer | at least 2x | 8x | 3x | 3x | met |",
        "| more work | another peer | at least 5x | 6x |  |  | not measured: no another peer |",
        "| learning |  | at most 5% | 2% | 2.2% |  | met |",
        "| a peer | hand | 1,000,000 | 1,000,000-1,000,000 | 500,000 | 1,000 | 10 |  |",
        "- nobody: ModuleNotFoundError: No module named 'nobody'",
    ):
        assert line in text.splitlines()
    assert "| ours | a peer | **3x** | 2x-4x | 3x |" in text
    assert "a processor, 2 cores" in text
    assert requirements_table(contents) in text


def test_plot_is_a_png() -> None:
    pytest.importorskip("matplotlib")
    from benchmarks.plot import draw

    contents = results({"contenders": [contender("ours", (100, 1.0), (100, 2.0))]})
    png = draw(contents)
    assert png is not None
    assert png.startswith(b"\x89PNG")
    assert draw(results({"contenders": []})) is None


def test_figures_have_three_digits_and_no_exponent() -> None:
    assert report._figure(1234.5) == "1,234"
    assert report._figure(99.96) == "100"
    assert report._figure(0.12345) == "0.123"


# --- What is measured, and what is left out ---


class StandIn:
    """A worker without a process."""

    facts = {"share_of_resets": 0.0}  # noqa: RUF012

    def __init__(self, contender: Contender) -> None:
        if contender is ABSENT:
            raise LeftOutError("ModuleNotFoundError: No module named 'absent'")
        self._name = contender.name
        self._slices = 0

    def run(self) -> dict[str, float]:
        self._slices += 1
        if self._name == "breaks" and self._slices > 1:
            raise LeftOutError("RuntimeError: broken")
        return {"steps": 10.0, "cpu": 1.0, "wall": 1.0}

    def close(self) -> None:
        pass


def test_a_missing_peer_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    breaks = Contender("breaks", "players:single", {}, "nothing")
    group = Group(
        "A group",
        "steps",
        (OURS, ABSENT, breaks),
        (
            Comparison("work", "ours", "the absent", ("absent peer",), 1.0, 2.0),
            Comparison("work", "ours", "the broken", ("breaks",)),
        ),
    )
    found = measure(group, 3, StandIn)
    assert [record["name"] for record in found["contenders"]] == ["ours"]
    assert len(found["contenders"][0]["rounds"]) == 3
    assert found["left_out"] == {
        "absent peer": "ModuleNotFoundError: No module named 'absent'",
        "breaks": "RuntimeError: broken (in round 2)",
    }
    assert [record["missing"] for record in found["comparisons"]] == ["the absent", "the broken"]
    said = capsys.readouterr().err
    assert "absent peer is left out: ModuleNotFoundError: No module named 'absent'" in said
    assert "breaks is left out: RuntimeError: broken (in round 2)" in said
    assert "not measured: no the absent" in render(results(found))


def test_every_round_begins_with_another_contender() -> None:
    names = ["a", "b", "c"]
    assert [measuring._turned(names, number)[0] for number in range(4)] == ["a", "b", "c", "a"]
    assert sorted(measuring._turned(names, 2)) == names
    assert measuring._turned([], 1) == []


def test_command_measures_and_keeps_other_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(GROUPS, "single", Group("First", "steps", (OURS, ABSENT)))
    monkeypatch.setitem(GROUPS, "ppo", Group("Second", "steps", (ABSENT,)))
    quick = ["--rounds", "1", "--seconds", "0.001", "--results", str(tmp_path)]
    command.main(["--only", "single", *quick])
    printed, said = capsys.readouterr()
    assert printed == (tmp_path / "bench.md").read_text()
    assert "absent peer is left out: ModuleNotFoundError: No module named" in said
    groups = json.loads((tmp_path / "bench.json").read_text())["groups"]
    (one,) = groups["single"]["contenders"][0]["rounds"]
    assert one["steps"] >= 1
    assert one["choice_steps"] >= 1
    assert groups["single"]["circumstances"]["versions"]["numpy"] == np.__version__
    command.main(["--only", "ppo", *quick])
    assert json.loads((tmp_path / "bench.json").read_text())["groups"].keys() == {"single", "ppo"}
    # A group of which nothing can be run does not wipe out what was found earlier.
    monkeypatch.setitem(GROUPS, "single", Group("First", "steps", (ABSENT,)))
    command.main(["--only", "single", *quick])
    assert json.loads((tmp_path / "bench.json").read_text())["groups"]["single"]["contenders"]


def test_a_process_that_dies_is_left_out() -> None:
    worker = Worker(OURS, core=None, seconds=0.001)
    worker._process.kill()
    with pytest.raises(LeftOutError, match="its process ended with status"):
        worker.run()
    worker.close()


@pytest.mark.parametrize("name", list(GROUPS))
def test_groups_name_what_there_is(name: str) -> None:
    group = GROUPS[name]
    names = [contender.name for contender in group.contenders]
    assert len(set(names)) == len(names)
    for comparison in group.comparisons:
        assert {comparison.ours, *comparison.beside} <= set(names)
        assert (comparison.least is None) == (comparison.aim is None)
    assert {share.contender for share in group.shares} <= set(names)
    for make in {contender.make for contender in group.contenders}:
        module, _, function = make.partition(":")
        assert callable(getattr(importlib.import_module(f"benchmarks.{module}"), function))


# --- Command line ---


def run_command(*arguments: str, module: str = "benchmarks") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_help_names_the_groups() -> None:
    shown = run_command("--help")
    assert shown.returncode == 0
    for name in GROUPS:
        assert name in shown.stdout


def test_an_unknown_group_ends_with_one_line() -> None:
    ended = run_command("--only", "single", "nonsense")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert "nonsense" in ended.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [("--rounds", "0"), ("--rounds", "1.5"), ("--seconds", "nan"), ("--core", "-1")],
)
def test_bad_options_end_with_one_line(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([f"{option}={value}"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert option in said


@pytest.mark.parametrize("content", ["", "{}", "[1]", "nonsense"])
def test_results_that_can_not_be_read_are_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text(content)
    for folder in (tmp_path, tmp_path / "bench.json"):
        result = run_command("--results", str(folder), "--only", "single")
        assert result.returncode == 2
        assert result.stderr.startswith("error: --results")
        assert result.stderr.count("\n") == 1
    assert (tmp_path / "bench.json").read_text() == content


@pytest.mark.parametrize("arguments", [("--limit", "10"), ("--limit", "-5"), ("--seeds", "-1")])
def test_bad_limits_and_seeds_of_the_strength_are_refused(arguments: tuple[str, str]) -> None:
    result = run_command(*arguments, module="benchmarks.strength")
    assert result.returncode == 2
    assert arguments[0] in result.stderr
    assert len(result.stderr.splitlines()) == 1


# --- Studies of training ---


def a_run(seed: int, win_rate: float) -> dict[str, Any]:
    """What is kept of a run, with a curve of three points."""
    score = {
        "win_rate": win_rate,
        "win_rate_low": win_rate - 0.01,
        "win_rate_high": win_rate + 0.01,
    }
    score |= {"key_spies": 9.0, "key_spies_low": 8.9, "key_spies_high": 9.1, "perfect": 0.03}
    curve = [
        {"timesteps": 1e6 * step, "seconds": 60.0 * (step + seed), **score} for step in (1, 2, 4)
    ]
    return {"name": "recipe", "seed": seed, "score": score, "curve": curve}


def test_the_study_lists_each_seed_with_its_interval() -> None:
    lines = study.table({"recipe": [a_run(0, 0.97), a_run(1, 0.98)]}).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith(
        "| `recipe` | 0 | 4 | 4.0 | 97.00 % [96.00, 98.00] | 9.00 [8.90, 9.10]"
    )
    assert "98.00 % [97.00, 99.00]" in lines[3]


def test_the_study_draws_seeds_of_different_lengths() -> None:
    pytest.importorskip("matplotlib")
    assert study.draw({"recipe": [a_run(0, 0.97), a_run(5, 0.98)]}).startswith(b"\x89PNG")


def test_a_run_that_is_none_can_not_be_added(tmp_path: Path) -> None:
    result = run_command("add", str(tmp_path), module="benchmarks.study")
    assert result.returncode == 2
    assert str(tmp_path) in result.stderr.splitlines()[-1]


def test_the_ablation_means_over_the_seeds() -> None:
    runs = [
        {"arm": "recipe", "changes": {}, "decisions": 8e6, "score": a_run(seed, rate)["score"]}
        for seed, rate in ((0, 0.94), (1, 0.96))
    ]
    runs.append({**runs[0], "arm": "wide", "changes": {"policy.hidden": 256}})
    lines = ablation.table(runs).splitlines()
    assert lines[2].startswith("| recipe | none | 2 | 8.0 | 95.00 (94.00-96.00) |")
    assert lines[3].startswith("| wide | `policy.hidden: 256` | 1 | 8.0 | 94.00 |")


def test_every_arm_of_the_ablation_is_a_configuration_of_its_own() -> None:
    configs = [
        (ablation.config_of(arm, seed=1), ablation.recolouring_of(arm)) for arm in ablation.arms()
    ]
    assert len(configs) > 5
    assert all(one not in configs[:place] for place, one in enumerate(configs))


def test_a_bad_arm_is_named() -> None:
    result = run_command("--arms", "nothing", module="benchmarks.ablation")
    assert result.returncode == 2
    assert "nothing" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("module", "arguments", "named"),
    [
        (ablation, ["--seconds", "0"], "--seconds: '0' is not a number above 0"),
        (ablation, ["--seconds", "nan"], "--seconds: 'nan'"),
        (ablation, ["--seeds", "-1"], "--seeds: '-1'"),
        (ablation, ["--arms", "none"], "--arms"),
        (ablation, ["--table", "--results", "NOWHERE"], "no results in"),
        (ablation, ["--table", "--results", "JUNK"], "--table: "),
        (best_response, ["--agent", "nobody"], "unknown agent 'nobody'"),
        (best_response, ["--agent", "ppo=NOWHERE"], "no model at"),
        (best_response, ["--steps", "0"], "--steps: '0'"),
        (best_response, ["--deals", "1"], "--deals: '1' is not a whole number of at least 2"),
        (best_response, ["--table", "--results", "NOWHERE"], "no results in"),
        (best_response, ["--table", "--results", "JUNK"], "--table: "),
        (small_skirmish, ["--ppo", "NOWHERE"], "no model at"),
        (small_skirmish, ["--iterations", "0"], "--iterations: '0'"),
        (small_skirmish, ["--json", "NOWHERE/deeper/report.json"], "can't write"),
        (optimality, ["--agents", "nobody"], "unknown agent 'nobody'"),
        (optimality, ["--scenarios", "-1"], "--scenarios: '-1'"),
        (optimality, ["--most", "0"], "--most: '0'"),
        (optimality, ["--json", "NOWHERE/deeper/report.json"], "can't write"),
        (strength, ["--limit", "0"], "--limit: '0'"),
        (strength, ["--seeds", "x"], "--seeds: 'x'"),
        (study, ["add", "NOWHERE"], "NOWHERE"),
        (study, ["draw"], "draw"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_on_a_command_line_is_one_line_before_any_work(
    module: Any,
    arguments: list[str],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    junk = tmp_path / "junk"
    junk.mkdir()
    (junk / "one.json").write_text('{"arm": 3}')
    places = {"NOWHERE": str(tmp_path / "NOWHERE"), "JUNK": str(junk)}
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    monkeypatch.setattr("sys.argv", ["benchmark", *arguments])
    with pytest.raises(SystemExit) as stop:
        module.main()
    assert stop.value.code == 2
    said = capsys.readouterr().err.splitlines()
    complaint = [line for line in said if not line.startswith("deck_of_spies_env: compiling")]
    assert len(complaint) == 1
    assert named in complaint[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["junk"]
