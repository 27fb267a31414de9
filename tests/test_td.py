"""TD(lambda) on afterstates: targets, self-play, gradients, and whole runs."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from afterstates import after, dense, distribution, met_in_play, zones_of
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy import stats

import train
from agents import AgentError, make_agent
from agents.afterstate_kernels import self_play, write_targets
from agents.afterstate_network import random_weights
from agents.objectives import utility_of
from agents.training.config import ConfigError, TrainConfig, read_command_line
from agents.training.judging import Judge
from agents.training.runs import RunDirectory
from agents.training.td import AfterstateLearner
from deck_of_spies_env import Rules
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.solitaire.afterstates import AfterstateValue, Network, scratch_for
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.solitaire.rollouts import deal_snapshots, fork_snapshots
from deck_of_spies_env.solitaire.rules import STATE, standard_start

ROOT = Path(__file__).parent.parent
CHANCE_OF_A_FALSE_ALARM = 1e-6
SHORT_RUN = 491_520
KEY_SPIES_LEARNED = 4.0
"""Mean Key Spies that a short run must reach on 1,000 deals. Random play holds 0.85 (standard error
0.03), and runs of three seeds held 5.7 to 6.4 when this was measured."""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    th.set_num_threads(1)


# --- Targets --------------------------------------------------------------------------------------


def forward_view(
    counts: NDArray[Any], explored: NDArray[Any], finals: NDArray[Any], decay: float, t: int
) -> NDArray[np.float64]:
    """The target of one decision of one game: the mixture of n-step ones, n = 1, 2, ...

    The weight of the n-step one is ``(1 - decay) decay^(n - 1)``; all that is left goes to the one
    at which the game or the record ends, or before a decision that was explored.
    """
    weight, target = 1.0, np.zeros(13)
    for step in range(t, len(counts)):
        if finals[step] >= 0:
            return target + weight * np.eye(13)[finals[step]]
        following = counts[step + 1].astype(np.float64)
        if step + 2 == len(counts) or explored[step + 1]:
            return target + weight * following
        target += weight * (1 - decay) * following
        weight *= decay
    raise AssertionError("a record ends with its last decision")


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.95, 1.0])
def test_targets_are_mixtures_of_what_follows(decay: float) -> None:
    rng = np.random.default_rng(int(100 * decay))
    num_steps, num_games = 30, 40
    counts = rng.dirichlet(np.ones(13), (num_steps, num_games)).astype(np.float32)
    explored = rng.random((num_steps, num_games)) < np.linspace(0, 0.6, num_games)
    ends = rng.random((num_steps, num_games)) < 0.1
    finals = np.where(ends, rng.integers(13, size=ends.shape), -1).astype(np.int8)
    targets = np.full((num_steps - 1, num_games, 13), np.nan, np.float32)
    write_targets(counts, explored, finals, decay, targets)
    for t, game in np.ndindex(*targets.shape[:2]):
        expected = forward_view(counts[:, game], explored[:, game], finals[:, game], decay, t)
        np.testing.assert_allclose(targets[t, game], expected, atol=2e-6)


# --- Self-play ------------------------------------------------------------------------------------


def small_network(seed: int = 0) -> Network:
    """Random weights that find plays different."""
    network = random_weights(32, 16, np.random.default_rng(seed))
    return network._replace(last=network.last * np.float32(10))


class Played:
    """A record of self-play with the network above, under the objective ``keys``."""

    def __init__(
        self,
        records: NDArray[Any],
        num_steps: int,
        exploration: float = 0.0,
        rules: Rules | None = None,
    ) -> None:
        self.rules = rules or Rules()
        self.network, self.utility = small_network(), utility_of("keys", self.rules)
        shape = num_steps, len(records)
        self.afterstates = np.zeros(shape, STATE)
        self.counts = np.full((*shape, 13), np.nan, np.float32)
        self.explored = np.zeros(shape, np.bool_)
        self.finals = np.zeros(shape, np.int8)
        self.records = records.copy()
        self_play(
            *(self.records, self.rules.record, standard_start(), self.network, self.utility),
            *(scratch_for(self.network, self.rules), exploration),
            *(self.afterstates, self.counts, self.explored, self.finals),
        )


def legal_afterstates(state: Any, mask: NDArray[Any], games: Games) -> dict[int, dict[str, Any]]:
    """Action -> its afterstate by zones."""
    zones, hand = zones_of(state), int(state["hand"])
    return {
        action: after(zones, *games.table.decode(action, hand))
        for action in np.flatnonzero(mask).tolist()
    }


@pytest.mark.parametrize("exploration", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("hand_size", [4, 5])
def test_what_is_recorded_is_what_was_played(exploration: float, hand_size: int) -> None:
    """The same deals, with the actions that lead to the afterstates, come to the same ends."""
    num_games, num_steps, rules = 12, 70, Rules(hand_size=hand_size)
    seeds = deal_seeds("train", 5, num_games)
    played = Played(deal_snapshots(seeds, rules), num_steps, exploration, rules)
    value = AfterstateValue(played.network, rules, played.utility)
    games = Games(num_games, rules=rules)
    games.seed(range(num_games), seeds)
    games.deal()
    for t in range(num_steps):
        states = games.states.copy()
        best = value.play_values(states)[1]
        actions = np.zeros(num_games, np.int64)
        for i, state in enumerate(states):
            choices = legal_afterstates(state, games.masks[i], games)
            (actions[i],) = [
                action
                for action, zones in choices.items()
                if zones == zones_of(played.afterstates[t, i])
            ]
            assert played.explored[t, i] or actions[i] == best[i]
            expected = distribution(choices[int(best[i])], played.network)
            np.testing.assert_allclose(played.counts[t, i], expected, atol=1e-5)
        games.step(actions)
        key_spies = np.where(games.over, games.endings()["key_spies"], -1)
        np.testing.assert_array_equal(played.finals[t], key_spies)
        games.deal(games.over.copy())
    assert (played.finals >= 0).any()
    np.testing.assert_array_equal(games.states, played.records["state"])
    np.testing.assert_array_equal(games.streams, played.records["streams"])


def test_exploration_is_as_frequent_as_asked() -> None:
    """Binomial: within 5.5 standard errors, a false alarm once in 25 million."""
    for probability in (0.0, 0.1, 0.5, 1.0):
        explored = Played(deal_snapshots(range(50)), 40, probability).explored
        spread = np.sqrt(probability * (1 - probability) / explored.size)
        assert abs(explored.mean() - probability) <= 5.5 * spread


def test_explored_actions_are_uniform_over_the_legal_ones() -> None:
    """Chi-square in each of some positions, the smallest p-value against Bonferroni's bound."""
    games, copies = met_in_play(24), 3000
    p_values = []
    for i, state in enumerate(games.states):
        choices = legal_afterstates(state, games.masks[i], games)
        if len(choices) == 1:
            continue
        played = Played(fork_snapshots(state, i, copies), 1, 1.0)
        assert played.explored.all()
        reached, counts = np.unique(played.afterstates, return_counts=True)
        observed = dict.fromkeys(choices, 0)
        for afterstate, count in zip(reached, counts, strict=True):
            zones = zones_of(afterstate)
            (action,) = [action for action, other in choices.items() if other == zones]
            observed[action] = int(count)
        p_values.append(stats.chisquare(list(observed.values())).pvalue)
    assert len(p_values) > 12
    assert min(p_values) > CHANCE_OF_A_FALSE_ALARM / len(p_values)


# --- The gradient ---------------------------------------------------------------------------------


def small_config(*arguments: str) -> TrainConfig:
    return read_command_line([*SMALL_RUN, *arguments])[0]


SMALL_RUN = (
    *("--algorithm", "afterstate", "--env.num_envs", "32", "--env.objective", "keys"),
    *("--policy.hidden", "32", "--policy.head", "16"),
    *("--td.n_steps", "16", "--td.batch_size", "100", "--td.total_timesteps", "4096"),
    *("--evaluation.deals", "20", "--evaluation.every", "1024", "--checkpoint_every", "512"),
)


def test_the_gradient_is_that_of_the_dense_network() -> None:
    learner = AfterstateLearner(small_config())
    afterstates = Played(deal_snapshots(range(30)), 40, 0.5).afterstates[::5].reshape(-1)
    zones = [zones_of(state) for state in afterstates]
    targets = np.random.default_rng(0).dirichlet(np.ones(13), len(zones)).astype(np.float32)
    parameters = [
        th.tensor(array, dtype=th.float64, requires_grad=True) for array in learner.network
    ]
    first, first_bias, second, second_bias, last, last_bias = parameters
    inputs = th.tensor(np.array([dense(each) for each in zones]))
    head = ((inputs @ first + first_bias).relu() @ second + second_bias).relu()
    expected = (head @ last + last_bias)[:, :13].log_softmax(dim=1)
    log_probs = learner._log_probs(afterstates)
    th.testing.assert_close(log_probs.double(), expected, atol=1e-5, rtol=1e-5)
    loss = -(th.tensor(targets) * log_probs).sum(dim=1).mean()
    loss.backward()
    expected_loss = -(th.tensor(targets).double() * expected).sum(dim=1).mean()
    expected_loss.backward()
    for parameter, reference in zip(learner._parameters, parameters, strict=True):
        assert parameter.grad is not None
        assert reference.grad is not None
        assert reference.grad.abs().max() > 1e-4
        th.testing.assert_close(parameter.grad.double(), reference.grad, atol=1e-6, rtol=1e-4)


# --- Runs -----------------------------------------------------------------------------------------


def evaluations(run: Path) -> list[int]:
    with open(run / "evaluations.csv") as file:
        return [int(row["timesteps"]) for row in csv.DictReader(file)]


def same_weights(run: Path, other: Path) -> bool:
    first, second = (load_file(path / "last_model.safetensors") for path in (run, other))
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name]) for name in first
    )


def test_a_run_leaves_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    train.main([*SMALL_RUN, "--run_dir", str(run)])
    assert "20 held-out deals: win rate" in capsys.readouterr().out
    names = {path.name for path in run.iterdir() if not path.name.startswith(("events", "."))}
    assert names == {
        *("config.yaml", "versions.json", "progress.csv", "evaluations.csv", "samples"),
        "checkpoint",
        *("best_model.safetensors", "last_model.safetensors"),
    }
    assert list(run.glob("events.out.tfevents.*"))
    assert evaluations(run) == [1024, 2048, 3072, 4096]
    train.main(["--resume", str(run)])
    assert "--td.total_timesteps" in capsys.readouterr().out
    assert evaluations(run) == [1024, 2048, 3072, 4096]
    with pytest.raises(SystemExit, match="2"):
        train.main([*SMALL_RUN, "--run_dir", str(run)])
    assert "--resume" in capsys.readouterr().err
    by_run, by_file = (
        play_deals(make_agent(f"afterstate={path}"), deal_seeds("select", 2, 50)).key_spies
        for path in (run, run / "last_model.safetensors")
    )
    np.testing.assert_array_equal(by_run, by_file)
    with pytest.raises(AgentError, match=r"last_model\.zip"):
        make_agent(f"ppo={run}")


def test_runs_repeat_to_the_bit_and_seeds_differ(tmp_path: Path) -> None:
    short = (*SMALL_RUN, "--td.total_timesteps", "1024", "--td.exploration", "0.2")
    for name, seed in (("first", "0"), ("again", "0"), ("other", "1")):
        train.main([*short, "--seed", seed, "--run_dir", str(tmp_path / name)])
    assert same_weights(tmp_path / "first", tmp_path / "again")
    assert not same_weights(tmp_path / "first", tmp_path / "other")


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Killed at some moment after its first checkpoint; its schedule is flat, so that the length
    of the whole can be chosen afterwards."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    flat = (*SMALL_RUN, "--td.learning_rate", "3e-3", "--td.final_learning_rate", "3e-3")
    process = subprocess.Popen(
        [
            *(sys.executable, str(ROOT / "train.py"), *flat),
            *("--td.total_timesteps", "1000000000", "--run_dir", str(killed)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 300
    while not (killed / "checkpoint" / "state.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    learner = AfterstateLearner(small_config())
    folder = killed / "checkpoint"
    learner.read_checkpoint(folder if folder.exists() else killed / ".checkpoint.old")
    total = learner.num_timesteps + 2048
    rest = ("--td.total_timesteps", str(total))
    train.main(["--resume", str(killed), *rest])
    train.main([*flat, *rest, "--run_dir", str(whole)])
    assert same_weights(killed, whole)
    assert evaluations(killed) == evaluations(whole)
    assert evaluations(killed)[-1] == total


def test_a_run_in_two_parts_is_the_run_in_one(tmp_path: Path) -> None:
    """The schedules of learning rate and exploration included."""
    config = small_config("--td.exploration", "0.3", "--run_dir", str(tmp_path / "whole"))
    whole, first, second = (AfterstateLearner(config) for _ in range(3))
    run = RunDirectory(config.directory, config)
    run.open("", resume=False)
    whole.learn(run)
    for _ in range(3):
        first._play()
        first._update()
    first._write_checkpoint(Judge(config, run, {}), tmp_path)
    second.read_checkpoint(tmp_path)
    assert second.num_timesteps == 3 * 512
    while second._progress_remaining() > 0:
        second._play()
        second._update()
    for array, expected in zip(second.network, whole.network, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_a_broken_checkpoint_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    train.main([*SMALL_RUN, "--td.total_timesteps", "512", "--run_dir", str(run)])
    more = ["--resume", str(run), "--td.total_timesteps", "1024"]
    for name in ("network.safetensors", "state.pt"):
        path = run / "checkpoint" / name
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        capsys.readouterr()
        with pytest.raises(SystemExit, match="2"):
            train.main(more)
        errors = capsys.readouterr().err
        assert "checkpoint" in errors
        assert len(errors.strip().splitlines()) == 1
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--policy.hidden", "100"], "policy.hidden must be a multiple of 16"),
        (["--policy.head", "8"], "policy.head must be a multiple of 16"),
        (["--env.shaping", "key_spies"], "env.shaping"),
        (["--td.n_steps", "1"], "td.n_steps"),
        (["--td.batch_size", "0"], "td.batch_size"),
        (["--td.total_timesteps", "0"], "td.total_timesteps"),
        (["--td.learning_rate", "0"], "td.learning_rate"),
        (["--td.final_learning_rate", "-1"], "td.final_learning_rate"),
        (["--td.trace_decay", "1.1"], "td.trace_decay"),
        (["--td.trace_decay", "-0.1"], "td.trace_decay"),
        (["--td.exploration", "2"], "td.exploration"),
        (["--td.n_steps", "many"], "td.n_steps"),
        (["--td.lambda", "0.5"], "lambda"),
        (["--algorithm", "dqn"], "algorithm"),
    ],
)
def test_mistakes_end_with_status_2_and_one_line(
    arguments: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with pytest.raises(SystemExit, match="2"):
        train.main([*SMALL_RUN, "--run_dir", str(run), *arguments])
    errors = capsys.readouterr().err
    assert named in errors
    assert len(errors.strip().splitlines()) == 1
    assert not run.exists()


def test_widths_of_ppo_need_not_be_multiples() -> None:
    config, _, _ = read_command_line(["--policy.hidden", "100", "--env.shaping", "key_spies"])
    assert config.policy.hidden == 100


@pytest.mark.parametrize(
    ("override", "named"),
    [
        (["--algorithm", "ppo"], "algorithm"),
        (["--td.n_steps", "32"], "td.n_steps"),
        (["--policy.hidden", "48"], "policy"),
        (["--env.objective", "win"], "env"),
        (["--seed", "4"], "seed"),
    ],
)
def test_what_a_run_consists_of_can_not_change(
    tmp_path: Path, override: list[str], named: str
) -> None:
    (tmp_path / "config.yaml").write_text(read_command_line(list(SMALL_RUN))[2])
    with pytest.raises(ConfigError, match=f"^{named}.* can't change from"):
        read_command_line(["--resume", str(tmp_path), *override])
    again, _, _ = read_command_line(["--resume", str(tmp_path), "--td.trace_decay", "0.5"])
    assert again.td.trace_decay == 0.5


def test_the_shipped_configuration_is_one_of_afterstates() -> None:
    config, _, _ = read_command_line(["--config", str(ROOT / "configs" / "afterstate.yaml")])
    assert config.algorithm == "afterstate"
    assert config.total_timesteps == config.td.total_timesteps


def test_a_short_run_learns(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train.main(
        [
            *("--config", str(ROOT / "configs" / "afterstate.yaml"), "--run_dir", str(run)),
            *("--env.num_envs", "128", "--td.n_steps", "32", "--td.batch_size", "1024"),
            *("--policy.hidden", "64", "--policy.head", "32"),
            *("--td.total_timesteps", str(SHORT_RUN), "--evaluation.deals", "1000"),
        ]
    )
    with open(run / "evaluations.csv") as file:
        (row,) = csv.DictReader(file)
    assert float(row["key_spies"]) > KEY_SPIES_LEARNED
