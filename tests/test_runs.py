"""Runs: nothing but the settings decides what they come to, and they survive their own death."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import new_env

import evaluate
from agents import make_agent
from deck_of_spies_env import IllegalActionError, Rules
from deck_of_spies_env.agent import Actions, Agent, BatchAgent
from deck_of_spies_env.evaluation.behaviour import (
    ActionLog,
    BehaviourCollector,
    actions_of_deal,
    behaviour_differences,
    measures,
)
from deck_of_spies_env.evaluation.columns import Columns, joined
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.partial import PartialFileError, partial_file
from deck_of_spies_env.evaluation.reports import make_report
from deck_of_spies_env.evaluation.runs import (
    Deals,
    Run,
    SolitaireMatch,
    TableMatch,
    WorkerError,
    numbered,
    play_run,
)
from deck_of_spies_env.evaluation.seeds import agent_seed, deal_seeds
from deck_of_spies_env.evaluation.stopping import SequentialTest, UntilWidth
from deck_of_spies_env.evaluation.tables import TableResult
from deck_of_spies_env.records import deal_recorder, record_of_actions
from deck_of_spies_env.skirmish.bots import make_bot
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules

ROOT = Path(__file__).parents[1]
DEALS = Deals("select", 3, 70, chunk_size=16)


class ByChance(BatchAgent):
    """Any legal action, from numbers drawn in a row: the order of the games shows."""

    def reset(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        keys = self.random.random(action_masks.shape)
        return np.where(action_masks, keys, -1.0).argmax(axis=1)


class Breaking(ByChance):
    """Breaks the rules, or its process, in its third chunk."""

    def __init__(self, breaking: Callable[[], Any]) -> None:
        self.breaking, self.num_resets = breaking, 0

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self.num_resets += 1

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        return (
            self.breaking() if self.num_resets > 2 else super().choose(observations, action_masks)
        )


def no_actions() -> None:
    return None


def die() -> None:
    os._exit(1)


def run_of(*makers: Callable[[], Agent], deals: Deals = DEALS, **options: Any) -> Run:
    matches = [SolitaireMatch(number, Rules(), **options) for number in range(len(makers))]
    return Run(numbered(["agent"] * len(makers)), makers, matches, deals)


def without_times(columns: Columns) -> dict[str, list[Any]]:
    return {name: values.tolist() for name, values in columns.items() if name != "seconds"}


def same(first: Sequence[Columns], second: Sequence[Columns]) -> bool:
    return list(map(without_times, first)) == list(map(without_times, second))


# --- What a run comes to ---


def test_a_run_is_its_chunks_each_played_alone() -> None:
    [columns] = play_run(run_of(ByChance))
    agent = ByChance()
    parts: list[Columns] = []
    for chunk in range(5):
        agent.reset(agent_seed(3, chunk))
        seeds = deal_seeds("select", 3, 70)[16 * chunk : 16 * chunk + 16]
        parts.append(play_deals(agent, seeds).columns)
    assert [len(part["wins"]) for part in parts] == [16, 16, 16, 16, 6]
    assert same([columns], [joined(parts)])


def test_more_deals_begin_with_the_same_results() -> None:
    [few] = play_run(run_of(ByChance, deals=replace(DEALS, count=32)))
    [many] = play_run(run_of(ByChance))
    assert few["key_spies"].tolist() == many["key_spies"][:32].tolist()


def test_agents_of_one_name_have_chances_of_their_own() -> None:
    first, second = play_run(run_of(ByChance, ByChance))
    [alone] = play_run(run_of(ByChance))
    assert same([first], [alone])
    assert not same([first], [second])


def test_the_number_of_workers_does_not_matter() -> None:
    """Both games, with all that can be collected; the agents play by chance."""
    collectors = [BehaviourCollector, ActionLog]
    run = run_of(ByChance, partial(make_agent, "greedy"), collectors=collectors)
    tables = TableMatch(0, 2, 2, SkirmishRules())
    run = replace(
        run,
        names=[*run.names, "high"],
        makers=[*run.makers, partial(make_bot, "high", 2)],
        matches=[*run.matches, tables],
    )
    told: dict[int, list[int]] = {1: [0] * 3, 2: [0] * 3}

    def play(workers: int) -> list[Columns]:
        def progress(match: int, ended: int) -> None:
            told[workers][match] += ended

        return play_run(run, workers=workers, progress=progress)

    alone = play(1)
    assert same(play(2), alone)
    assert told == {1: [70, 70, 140], 2: [70, 70, 140]}
    assert len(alone[2]["payoffs"]) == 70


def test_runs_are_looked_at_chunk_by_chunk() -> None:
    seen: list[int] = []

    def look(chunk: Sequence[Columns]) -> bool:
        assert len(chunk) == 2
        seen.append(len(chunk[0]["wins"]))
        return len(seen) == 3

    all_of_it = play_run(run_of(ByChance, ByChance))
    some = play_run(run_of(ByChance, ByChance), look=look)
    assert seen == [16, 16, 16]
    for whole, part in zip(all_of_it, some, strict=True):
        assert part["turns"].tolist() == whole["turns"][:48].tolist()


def test_names_are_numbered() -> None:
    assert numbered(["a", "b", "a", "a"]) == ["a", "b", "a#2", "a#3"]
    odd = replace(run_of(ByChance), names=["model#0"])  # part of a path
    assert same(play_run(odd), play_run(run_of(ByChance)))


@pytest.mark.parametrize(
    ("deals", "named"),
    [
        (partial(Deals, "exam", 0, 1), "unknown bank"),
        (partial(Deals, "test", -1, 1), "seed"),
        (partial(Deals, "test", 0, 0), "deals must be .* at least 1, got 0"),
        (partial(Deals, "test", 0, 1, 0), "chunk_size must be"),
        (partial(Deals, "test", 0, (1 << 32) + 1), "number of deals"),
    ],
)
def test_bad_deals_are_named(deals: Callable[[], Deals], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        deals()


# --- Agents that fail ---


@pytest.mark.parametrize("workers", [1, 2])
def test_agents_that_break_the_rules_are_named(workers: int) -> None:
    with pytest.raises(IllegalActionError, match="must return whole numbers"):
        play_run(run_of(partial(Breaking, no_actions)), workers=workers)


def test_the_death_of_a_worker_is_told() -> None:
    run = run_of(partial(Breaking, die))
    with pytest.raises(WorkerError, match="worker process has died"):
        play_run(run, workers=2)


def test_agents_that_can_not_be_sent_are_refused() -> None:
    with pytest.raises(ValueError, match="can be pickled"):
        play_run(run_of(lambda: make_agent("greedy")), workers=2)
    with pytest.raises(ValueError, match="at least one worker"):
        play_run(run_of(ByChance), workers=0)


# --- Files to resume from ---


def play_with(path: Path, run: Run, settings: dict[str, Any] | None = None) -> list[Columns]:
    with partial_file(path, settings or {"seed": 3}) as kept_in:
        return play_run(run, kept_in=kept_in)


class Forbidden(ByChance):
    """May play the one deal that every run begins with, and no more."""

    def __init__(self) -> None:
        self.num_resets = 0

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self.num_resets += 1
        assert self.num_resets == 1, "a chunk that was kept is played again"


def test_what_was_kept_is_not_played_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    played = play_with(path, run_of(ByChance))
    content = path.read_bytes()
    assert same(play_with(path, run_of(Forbidden)), played)
    fewer = run_of(Forbidden, deals=replace(DEALS, count=48))
    assert play_with(path, fewer)[0]["turns"].tolist() == played[0]["turns"][:48].tolist()
    assert path.read_bytes() == content


def test_a_file_cut_off_anywhere_is_gone_on_with(tmp_path: Path) -> None:
    """What a sudden end leaves is any beginning of the file."""
    path = tmp_path / "run.jsonl"
    played = play_with(path, run_of(ByChance))
    content = path.read_bytes()
    ends = [0, 1, len(content) - 1, content.index(b"\n"), content.index(b"\n") + 1]
    ends += random.Random(1).sample(range(len(content)), 8)
    for end in ends:
        path.write_bytes(content[:end])
        assert same(play_with(path, run_of(ByChance)), played)
        with partial_file(path, {"seed": 3}) as kept_in:
            assert len(kept_in.kept) == 5


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    play_with(path, run_of(ByChance), {"seed": 3, "agents": ["a"], "rules": {"hand_size": 5}})
    kept = path.read_bytes()
    lines = kept.splitlines(keepends=True)
    damaged = lines[2].replace(b'"npz": "', b'"npz": "AAAA')

    def refused(content: bytes, settings: dict[str, Any]) -> str:
        path.write_bytes(content)
        with pytest.raises(PartialFileError) as caught, partial_file(path, settings):
            pass
        assert path.read_bytes() == content
        return str(caught.value)

    same_settings = {"seed": 3, "agents": ["a"], "rules": {"hand_size": 5}}
    for settings, named in (
        ({**same_settings, "seed": 4}, "it has seed 3, this one 4"),
        ({**same_settings, "agents": ["b"]}, 'it has agents ["a"], this one ["b"]'),
        ({**same_settings, "rules": {"hand_size": 6}}, "it has hand_size 5, this one 6"),
        ({**same_settings, "more": 1}, "it has more nothing, this one 1"),
    ):
        assert refused(kept, settings).endswith(f"is of another run: {named}")
    for foreign in (b"a diary\n", b"a diary", b'{"a": 1}\n', b"[1]\n"):
        assert "not the file of a run" in refused(foreign, same_settings)
    assert "line 3: damaged" in refused(b"".join([*lines[:2], damaged, *lines[3:]]), same_settings)


# --- The command, killed ---

COMMAND = ["--agents", "random", "greedy", "--deals", "4000", "--chunk-size", "25", "--behaviour"]


def started(folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, ROOT / "evaluate.py", *COMMAND, "--resume", "run.jsonl", *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 -- no threads here
    )


def heed_interrupts() -> None:
    """Processes that share out the tests ignore interrupts, and their children would inherit it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_lines(path: Path, number: int) -> None:
    for _ in range(3000):
        if path.is_file() and path.read_bytes().count(b"\n") >= number:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {number} lines in time")


def members_of(group: int) -> list[int]:
    """The processes of a session that are alive."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, process_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(process_group) == group and state != "Z":
            found.append(int(entry.name))
    return found


def assert_all_gone(group: int) -> None:
    """No process of a session outlives its first by more than the moment it takes to notice."""
    for _ in range(1000):
        if not members_of(group):
            return
        time.sleep(0.02)
    raise AssertionError(f"processes {members_of(group)} outlive their parent")


def report_of(folder: Path, *more: str) -> dict[str, Any]:
    path = folder / "report.json"
    assert evaluate.main([*COMMAND, *more, "--json", str(path)]) == 0
    report = json.loads(path.read_text())
    for agent in report["agents"]:
        del agent["seconds"]
    return report


def test_two_runs_do_not_share_a_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path, settings = tmp_path / "run.jsonl", {"seed": 0}
    wanted = pytest.raises(PartialFileError, match="being written by another run")
    with partial_file(path, settings), wanted, partial_file(path, settings):
        pass
    with partial_file(path, settings):
        pass  # it is free again


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks up processes in /proc")
def test_a_killed_command_goes_on_where_it_was(tmp_path: Path) -> None:
    """With SIGKILL, then interrupted, then to its end: no process is left, and no deal differs."""
    path = tmp_path / "run.jsonl"
    command = started(tmp_path, "--workers", "2")
    wait_for_lines(path, 6)
    command.kill()
    command.wait(60)
    assert_all_gone(command.pid)

    kept = path.read_bytes().count(b"\n")
    command = started(tmp_path, "--workers", "2")
    wait_for_lines(path, kept + 4)
    os.killpg(command.pid, signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert command.returncode == 130
    assert out == ""
    told = [line for line in err.splitlines() if line and "compiling" not in line]
    assert told == ["interrupted, the same command goes on from run.jsonl"]
    assert_all_gone(command.pid)

    assert path.read_bytes().count(b"\n") < 321
    assert report_of(tmp_path, "--resume", str(path)) == report_of(tmp_path)
    assert path.read_bytes().count(b"\n") == 321


def test_the_command_refuses_the_file_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "run.jsonl")
    assert evaluate.main(["--agents", "greedy", "--deals", "9", "--resume", path]) == 0
    with pytest.raises(SystemExit) as caught:
        evaluate.main(["--agents", "greedy", "--deals", "9", "--seed", "1", "--resume", path])
    assert caught.value.code == 2
    assert "it has seed 0, this one 1" in capsys.readouterr().err


def test_another_model_is_another_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = tmp_path / "linear.json"
    written = json.loads((ROOT / "agents/models/linear.json").read_text())
    weights.write_text(json.dumps(written))
    command = ["--agents", f"linear={weights}", "--deals", "9", "--resume", str(tmp_path / "run")]
    assert evaluate.main(command) == 0
    weights.write_text(json.dumps(written, indent=1))
    with pytest.raises(SystemExit):
        evaluate.main(command)
    assert f"it has {weights}" in capsys.readouterr().err


# --- Behaviour ---


def counted(agent: Agent, seed: int) -> dict[str, int]:
    """What an agent does in one deal, counted in the environment by the names of cards."""
    env = new_env()
    observation, info = env.reset(seed=seed)
    found = {"cards_retired": 0, "recruits_c": 0, "recruits_9": 0}
    found |= dict.fromkeys(("counters", "recruits", "assassinations", "retirements"), 0)
    names = {"counter": "counters", "recruit": "recruits"}
    names |= {"assassinate": "assassinations", "retire": "retirements"}
    over = False
    while not over:
        action = int(agent.act(observation, info["action_mask"]))
        kind, cards = env.decode(action)
        if kind in names:
            found[names[kind]] += 1
        if kind == "retire":
            found["cards_retired"] += len(cards)
        if kind == "recruit":
            [spy] = env.zones()["spy"]
            found["recruits_c"] += spy[1] == "c"
            found["recruits_9"] += spy[0] == "9"
        observation, _, over, _, info = env.step(action)
    zones = env.zones()
    held = [card for zone in ("hand", "draw_deck", "draw_discard") for card in zones[zone]]
    found["aces_left"] = sum(card[0] == "A" for card in held)
    found["turns"] = info["turns"]
    return found


class Lively(BatchAgent):
    """Does everything: an action that depends on what it sees alone."""

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        places = observations.astype(np.int64) @ (np.arange(observations.shape[1]) ** 2 % 97)
        ranks = np.cumsum(action_masks, axis=1)
        wanted = 1 + places % ranks[:, -1]
        return (ranks == wanted[:, None]).argmax(axis=1)


def test_behaviour_is_what_the_environment_shows() -> None:
    deals = replace(DEALS, count=24)
    [columns] = play_run(run_of(Lively, deals=deals, collectors=[BehaviourCollector]))
    found = measures(columns)
    for deal, seed in enumerate(deal_seeds("select", 3, 24)):
        expected = counted(Lively(), seed)
        assert {name: int(found[name][deal]) for name in expected} == expected
    assert all(found[name].any() for name in ("counters", "recruits", "assassinations"))
    assert found["cards_retired"].any()
    dealt_with = found["counters"] + found["recruits"] + found["assassinations"]
    won_or_lost = columns["wins"] | (found["turns"] == 36)
    assert np.array_equal(dealt_with[won_or_lost], found["turns"][won_or_lost])
    for by in ("56789TJQK", "cdhs"):
        parts = [found[f"recruits_{one}"] for one in by]
        assert np.array_equal(np.sum(parts, axis=0), found["recruits"])


def test_behaviour_is_compared_deal_by_deal() -> None:
    first, second = play_run(
        run_of(ByChance, partial(make_agent, "greedy"), collectors=[BehaviourCollector])
    )
    difference = behaviour_differences(first, second)["recruits"]
    by_deal = measures(first)["recruits"] - measures(second)["recruits"]
    assert difference["mean"] == pytest.approx(by_deal.mean())
    low, high = difference["ci"] or (0, 0)
    error = by_deal.std(ddof=1) / np.sqrt(70)
    assert (high - low) / 2 == pytest.approx(1.995 * error, rel=1e-3)  # t of 69 degrees


def test_an_action_log_makes_the_records() -> None:
    seeds = deal_seeds("select", 3, 20)
    [columns] = play_run(
        run_of(
            partial(make_agent, "greedy"), deals=replace(DEALS, count=20), collectors=[ActionLog]
        )
    )
    expected: list[Any] = []
    write = deal_recorder(expected.append, name="greedy", seeds=seeds)
    play_deals(make_agent("greedy"), seeds, on_game=write)
    for deal, seed in enumerate(seeds):
        actions = actions_of_deal(columns, deal)
        assert record_of_actions(actions, seed, name="greedy") == expected[deal]
    with pytest.raises(ValueError, match="actions end before the game"):
        record_of_actions(actions[:-1], seeds[-1], name="greedy")
    with pytest.raises(ValueError, match="ends before its actions"):
        record_of_actions([*actions, 0], seeds[-1], name="greedy")


# --- Stopping ---


def test_results_and_columns_are_the_same() -> None:
    [columns] = play_run(run_of(partial(make_agent, "greedy")))
    result = play_deals(make_agent("greedy"), deal_seeds("select", 3, 70))
    again = MatchResult.of(columns)
    for name in ("wins", "key_spies", "turns", "decisions", "outcomes"):
        assert np.array_equal(getattr(again, name), getattr(result, name))
        assert getattr(again, name).dtype == getattr(result, name).dtype
    assert again.seconds == pytest.approx(columns["seconds"].sum())


def test_decisions_of_tables_are_summed_up() -> None:
    run = Run(
        ["high", "rank"],
        [partial(make_bot, "high", 2), partial(make_bot, "rank", 2)],
        [TableMatch(0, 1, 2, SkirmishRules())],
        replace(DEALS, count=40),
    )
    [columns] = play_run(run)
    whole = TableResult.of(columns)
    alone = run.matches[0].play([make() for make in run.makers], deal_seeds("select", 3, 40), 0)
    assert np.array_equal(whole.decisions, TableResult.of(alone).decisions)
    assert np.array_equal(whole.payoffs, alone["payoffs"])


def test_a_width_stops_a_run_and_is_kept() -> None:
    rule = UntilWidth(0.2, 1)
    draws = np.random.default_rng(0).random(2000) < 0.7
    seen = 0
    while not rule.look([draws[seen : seen + 50]]):
        seen += 50
    seen += 50
    low, high = rule.intervals.rate(draws[:seen])
    assert high - low < 0.2
    earlier = rule.intervals.rate(draws[: seen - 50])
    assert earlier.high - earlier.low >= 0.2
    assert low < 0.7 < high
    assert rule.stopping(2000)["mode"] == "until_width"


def test_a_sequential_test_decides_and_tells_its_error_rates() -> None:
    draws = np.random.default_rng(0).random((4, 4000))
    better, worse = draws[0] < 0.8, draws[1] < 0.7
    for first, second, decision in (
        (better, worse, "first"),
        (worse, better, "second"),
        (better, better, "equivalent"),
    ):
        rule = SequentialTest(0.05, 0.01, 2)
        looks = [
            rule.look([first[start : start + 100], second[start : start + 100]])
            for start in range(0, 4000, 100)
        ]
        assert looks[-1]
        assert not looks[0]
        stopping = rule.stopping(4000)
        assert (stopping["decision"], stopping["alpha"], stopping["margin"]) == (
            decision,
            0.01,
            0.05,
        )


def test_shares_of_wins_are_tested_too() -> None:
    draws = np.random.default_rng(0).integers(0, 3, 6000) / 2
    for shift, decision in ((0.2, "first"), (-0.2, "second"), (0.0, "equivalent")):
        rule = SequentialTest(0.05, 0.05, 2, shares=True)
        first = np.clip(draws + shift, 0, 1)
        while not rule.look([first[:200], 1 - first[:200]]):
            first = np.roll(first, -200)
        assert rule.stopping(6000)["decision"] == decision


def test_reports_of_runs_that_stop_have_intervals_for_every_stop() -> None:
    played = play_run(run_of(ByChance, partial(make_agent, "greedy")))
    matches = [(name, MatchResult.of(it)) for name, it in zip("ab", played, strict=True)]
    rule = SequentialTest(0.05, 0.05, 2)
    rule.look([result.wins for _, result in matches])
    fixed = make_report(matches, seed=3, rules=Rules(), bank="select")
    anytime = make_report(
        matches, seed=3, rules=Rules(), bank="select", rule=rule, deals_at_most=1000
    )
    assert fixed["stopping"]["mode"] == "fixed"
    assert anytime["stopping"]["decision"] == "second"
    assert anytime["comparisons"][0]["mcnemar_p"] is None
    assert fixed["comparisons"][0]["mcnemar_p"] is not None
    for ours, theirs in zip(anytime["agents"], fixed["agents"], strict=True):
        for field in ("win_rate_ci", "mean_key_spies_ci", "all_key_spies_ci"):
            (low, high), (other_low, other_high) = ours[field], theirs[field]
            assert low <= other_low <= other_high <= high


def test_the_command_stops_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.json"
    command = ["--deals", "9000", "--chunk-size", "100", "--json", str(path)]
    assert evaluate.main(["--agents", "greedy", "random", "--sequential", *command]) == 0
    report = json.loads(path.read_text())
    assert (report["stopping"]["decision"], report["deals"]) == ("first", 100)
    assert "greedy is better, after 100 of at most 9,000 deals" in capsys.readouterr().out
    assert evaluate.main(["--agents", "greedy", "--until-width", "10", *command]) == 0
    report = json.loads(path.read_text())
    low, high = report["agents"][0]["win_rate_ci"]
    assert 0.08 < high - low < 0.1
    assert report["deals"] % 100 == 0
    game = ["--game", "skirmish", "--agents", "rank", "rank", "--sequential", *command]
    assert evaluate.main(game) == 0
    report = json.loads(path.read_text())
    assert [agent["name"] for agent in report["agents"]] == ["rank", "rank#2"]
    assert report["stopping"]["decision"] == "equivalent"
