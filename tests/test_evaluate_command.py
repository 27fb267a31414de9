"""The command ``evaluate.py``: what it prints and writes, and one line for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evaluate
from deck_of_spies_env import Rules
from deck_of_spies_env.evaluation import runs
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules

ROOT = Path(__file__).parent.parent


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "evaluate.py"), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr that a mistake gets, before anything is played."""
    with pytest.raises(SystemExit) as caught:
        evaluate.main(arguments)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1
    return err


@pytest.fixture
def no_play(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(*arguments: Any, **options: Any) -> None:
        raise AssertionError("played before the arguments were checked")

    monkeypatch.setattr(runs, "play_deals", play)


def test_runs_from_another_directory(tmp_path: Path) -> None:
    done = run(
        *("--agents", "greedy", "random", "--deals", "60", "--seed", "4"),
        *("--json", "report.json", "--rules", "key_spies_to_win=4", "idle_ace=false"),
        *("--batch-size", "16"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert (report["deals"], report["seed"], report["bank"]) == (60, 4, "test")
    assert report["rules"] == {
        "idle_ace": False, "eager_reshuffle": False, "hand_size": 5, "key_spies_to_win": 4
    }  # fmt: skip
    assert [agent["name"] for agent in report["agents"]] == ["greedy", "random"]
    greedy = report["agents"][0]
    assert greedy["wins"] == round(60 * greedy["win_rate"]) > 30
    assert [pair["agents"] for pair in report["comparisons"]] == [["greedy", "random"]]
    assert "60 deals" in done.stdout
    assert f"{100 * greedy['win_rate']:.2f} [" in done.stdout


def test_a_mistake_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    done = run("--agents", "greedy", "nobody", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    expected = "evaluate.py: error: unknown agent 'nobody'; there are random, greedy"
    assert done.stderr.startswith(expected)
    assert len(done.stderr.splitlines()) == 1


def test_the_same_command_gives_the_same_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = []
    for _ in range(2):
        path = tmp_path / "report.json"
        arguments = ["--agents", "random", "greedy", "greedy", "--deals", "40", "--json", str(path)]
        assert evaluate.main(arguments) == 0
        report = json.loads(path.read_text())
        for agent in report["agents"]:
            agent.pop("seconds")
        reports.append(report)
    assert reports[0] == reports[1]
    out, err = capsys.readouterr()
    assert err == ""  # no progress bar where there is no terminal
    assert out.count("40 deals") == 2


def test_agents_are_listed_as_they_were_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["--agents", "rollout:budget=2", "rollout:budget=1", "--deals", "9"]) == 0
    out, _ = capsys.readouterr()
    assert "rollout:budget=2" in out
    assert "rollout:budget=1" in out


def test_seeds_are_other_deals(tmp_path: Path) -> None:
    def decisions(seed: str) -> int:
        path = tmp_path / "report.json"
        arguments = ["--agents", "greedy", "--deals", "40", "--seed", seed, "--json", str(path)]
        evaluate.main(arguments)
        return json.loads(path.read_text())["agents"][0]["decisions"]

    assert decisions("0") == decisions("0") != decisions("1")


@pytest.mark.usefixtures("no_play")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--agents", "random=model.zip"], "random takes no path"),
        (["--agents", "rollout:budget=none"], "budget must be a whole number"),
        (["--agents", "search:plays=2,depth=3"], "depth must be 1 or 2"),
        (["--agents"], "--agents"),
        (["--deals", "0"], "--deals: '0'"),
        (["--deals", "-5"], "--deals: '-5'"),
        (["--deals", "1.5"], "--deals: '1.5'"),
        (["--deals", "many"], "--deals: 'many'"),
        (["--deals", "99999999999"], "the number of deals"),
        (["--seed", "-1"], "the seed must be"),
        (["--seed", "16777216"], "the seed must be"),
        (["--seed", "x"], "--seed"),
        (["--batch-size", "0"], "--batch-size: '0'"),
        (["--chunk-size", "0"], "--chunk-size: '0'"),
        (["--workers", "0"], "--workers: '0'"),
        (["--resume", "/nowhere/partial.jsonl"], "/nowhere/partial.jsonl"),
        (["--until-width", "0"], "between 0 and 100 points, got 0"),
        (["--until-width", "2", "--sequential"], "not both"),
        (["--sequential"], "a sequential test is of two agents, got 1"),
        (["--sequential", "--agents", "greedy", "random", "--margin", "0"], "margin must"),
        (["--sequential", "--agents", "greedy", "random", "--margin", "-1"], "points, got -1"),
        (["--margin", "2"], "--margin goes with --sequential"),
        (["--alpha", "0.1"], "--alpha goes with --sequential"),
        (["--json", "x", "--html", "./x"], "must name different files"),
        (["--records", "x", "--resume", "x"], "must name different files"),
        (["--resume", "/dev/full"], "no plain file"),
        (["--rules", "hand_size=6", "--rules", "hand_size=7"], "hand_size is given twice"),
        (["--sequential", "--agents", "greedy", "random", "--alpha", "1"], "alpha must"),
        (["--game", "skirmish", "--behaviour"], "of Deck of Spies only"),
        (["--json", "/nowhere/report.json"], "/nowhere/report.json"),
        (["--json", "/"], "'/'"),
        (["--rules", "hand_size=9"], "hand_size must be a whole number 3-8, got 9"),
        (["--rules", "hand=5"], "unknown field 'hand'"),
        (["--rules", "idle_ace=maybe"], "idle_ace must be true or false, got 'maybe'"),
        (["--rules", "hand_size=6", "idle_ace"], "can't read 'idle_ace'"),
        (["--game", "skirmish", "--agents", "rank", "high", "--rules", "ranks=AX"], "got 'AX'"),
        (["--rules", "idle_ace"], "can't read 'idle_ace'"),
        (["--rules", "[5]"], "mapping"),
        (["--rules", '{"key_spies_to_win": 13}'], "key_spies_to_win"),
        (["--frobnicate"], "--frobnicate"),
    ],
)
def test_mistakes_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    line = mistake(capsys, "--agents", "greedy", *arguments)
    assert "error: " in line
    assert named in line


@pytest.mark.usefixtures("no_play")
def test_missing_and_corrupt_models_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corrupt = tmp_path / "model.zip"
    corrupt.write_bytes(b"PK\x03\x04 no more than that")
    for path in (corrupt, tmp_path / "missing.zip", tmp_path):
        for spec in ("ppo", "afterstate", "search:value=ppo", "search:value=afterstate"):
            assert str(path) in mistake(capsys, "--agents", "greedy", f"{spec}={path}")


def test_rules_can_be_written_in_two_ways() -> None:
    rules = Rules(idle_ace=False, hand_size=6)
    for written in (["idle_ace=false", "hand_size=6"], ['{"idle_ace": false, "hand_size": 6}']):
        assert Rules.of(evaluate.rules_from(written)) == rules
    assert Rules.of(evaluate.rules_from(["{}"])) == Rules()
    small = SkirmishRules(ranks="AJQK", num_suits=2)
    for written in (["ranks=AJQK", "num_suits=2"], ['ranks="AJQK"', "num_suits=2"]):
        assert SkirmishRules.of(evaluate.rules_from(written)) == small
    assert SkirmishRules.of(evaluate.rules_from(['ranks="234"'])) == SkirmishRules(ranks="234")


def test_agents_without_their_libraries_are_named() -> None:
    def no_torch(spec: str) -> Any:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    with pytest.raises(evaluate.AgentError, match="'ppo' needs torch"):
        evaluate.agent_for("ppo", no_torch)
