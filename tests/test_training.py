"""Training: it learns, masks matter, a killed run goes on, and mistakes end in one line."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch as th
from filelock import FileLock
from sb3_contrib import MaskablePPO

from agents import AgentError, make_agent
from agents.ppo import PPOAgent
from agents.skirmish import make_skirmish_agent
from agents.training.config import ConfigError, PolicyConfig, TrainConfig, read_command_line
from agents.training.models import load_policy, policy_arguments
from agents.training.ppo import device_of
from deck_of_spies_env import Rules
from deck_of_spies_env.agent import BatchAgent
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.integrations.sb3 import DeckOfSpiesVecEnv, make_vec_env
from deck_of_spies_env.records import read_records, replay

ROOT = Path(__file__).parent.parent
NUM_ENVS = 64
SHORT_RUN = 49_152
KEY_SPIES_LEARNED = 2.3
"""Mean Key Spies that a short run must reach on 500 deals. Random play holds 0.9 (standard error
0.04), and short runs of other seeds held 3.0 to 3.7 when this was measured."""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    th.set_num_threads(1)


def learner(envs: DeckOfSpiesVecEnv, kind: Any = "candidate", seed: int = 0) -> MaskablePPO:
    policy, policy_kwargs = policy_arguments(PolicyConfig(kind=kind, hidden=64, head=32))
    return MaskablePPO(
        policy,
        envs,
        n_steps=64,
        batch_size=1024,
        learning_rate=2e-3,
        gamma=1.0,
        ent_coef=0.005,
        policy_kwargs=policy_kwargs,
        seed=seed,
        device="cpu",
    )


def key_spies_per_deal(agent: BatchAgent) -> float:
    return float(play_deals(agent, deal_seeds("select", 1, 500)).key_spies.mean())


def test_a_short_run_beats_random_by_a_wide_margin() -> None:
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS, objective={"win": 1.0, "keys": 1.0})
    model = learner(envs).learn(SHORT_RUN)
    assert key_spies_per_deal(PPOAgent(model.policy)) > KEY_SPIES_LEARNED
    random = make_agent("random")
    random.reset(0)
    held = play_deals(random, deal_seeds("select", 1, 500)).key_spies.mean()
    assert held < KEY_SPIES_LEARNED / 2


def key_spies_without_help(model: MaskablePPO, envs: DeckOfSpiesVecEnv) -> float:
    """Mean Key Spies of 500 games that an illegal action ends, the policy choosing freely."""
    held: list[int] = []
    observations = envs.reset()
    while len(held) < 500:
        actions, _ = model.predict(observations, deterministic=True)
        observations, _, dones, infos = envs.step(actions)
        held += [infos[i]["key_spies"] for i in np.flatnonzero(dones)]
    return float(np.mean(held))


def test_an_unmasked_learner_fails_the_same_threshold() -> None:
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS, objective="keys", illegal_action="lose")
    model = learner(envs, kind="flat").learn(SHORT_RUN, use_masking=False)
    assert key_spies_without_help(model, envs) < KEY_SPIES_LEARNED


class ShuffledMasks(DeckOfSpiesVecEnv):
    """Gives every game the mask of its neighbour."""

    def action_masks(self) -> npt.NDArray[np.bool_]:
        return np.roll(super().action_masks(), 1, axis=0)


def test_a_learner_with_masks_of_other_games_fails_the_same_threshold() -> None:
    envs = ShuffledMasks(NUM_ENVS, objective="keys", illegal_action="lose")
    model = learner(envs).learn(SHORT_RUN)
    held: list[int] = []
    observations = envs.reset()
    while len(held) < 500:
        actions, _ = model.predict(
            observations, deterministic=True, action_masks=envs.action_masks()
        )
        observations, _, dones, infos = envs.step(actions)
        held += [infos[i]["key_spies"] for i in np.flatnonzero(dones)]
    assert np.mean(held) < KEY_SPIES_LEARNED


@pytest.mark.parametrize("kind", ["candidate", "flat"])
def test_no_illegal_action_in_a_million_sampled(kind: str) -> None:
    """The environment refuses illegal actions, so that a single one would raise."""
    num_envs = 5_000
    envs = make_vec_env("DeckOfSpies-v0", num_envs, seed=3)
    policy, policy_kwargs = policy_arguments(PolicyConfig(kind=kind, hidden=16, head=8))  # type: ignore[arg-type]
    model = MaskablePPO(policy, envs, n_steps=2, policy_kwargs=policy_kwargs, device="cpu")
    observations = envs.reset()
    for _ in range(500_000 // num_envs):
        masks = np.stack(envs.env_method("action_masks"))
        actions, _ = model.predict(observations, action_masks=masks)
        observations = envs.step(actions)[0]


class TestCandidatePolicy:
    def policy(self, hand_size: int = 5) -> Any:
        policy_class, arguments = policy_arguments(PolicyConfig(hidden=16, head=8))
        envs = make_vec_env("DeckOfSpies-v0", 1, rules={"hand_size": hand_size})
        th.manual_seed(0)
        return policy_class(envs.observation_space, envs.action_space, lambda _: 1e-3, **arguments)

    def positions(self, num_envs: int = 300, hand_size: int = 5) -> tuple[th.Tensor, Any]:
        """Positions some random steps into games, with their masks."""
        envs = make_vec_env("DeckOfSpies-v0", num_envs, 5, rules={"hand_size": hand_size})
        rng = np.random.default_rng(0)
        observations = envs.reset()
        for _ in range(25):
            keys = rng.random(envs.action_masks().shape) * envs.action_masks()
            observations, *_ = envs.step(keys.argmax(axis=1))
        return th.as_tensor(observations), envs.action_masks().copy()

    @pytest.mark.parametrize("hand_size", [3, 5, 8])
    def test_both_forms_of_the_distribution_agree(self, hand_size: int) -> None:
        policy = self.policy(hand_size)
        obs, masks = self.positions(hand_size=hand_size)
        distribution = policy.get_distribution(obs, masks)
        actions = distribution.get_actions()
        values, log_probs, entropies = policy.evaluate_actions(obs, actions, masks)
        assert masks[np.arange(len(masks)), actions.numpy()].all()
        th.testing.assert_close(log_probs, distribution.log_prob(actions))
        th.testing.assert_close(entropies, distribution.entropy())
        th.testing.assert_close(values, policy.predict_values(obs))

    def test_suits_do_not_matter_beyond_their_relation_to_the_spys(self) -> None:
        """Shifting all suits leaves the value, and the chances of the plays by their cards."""
        policy = self.policy()
        shifted = {"c": "d", "d": "h", "h": "s", "s": "c"}
        env = make_env()
        observation, _ = env.reset(seed=11)
        rng = np.random.default_rng(1)
        for _ in range(12):
            legal = np.flatnonzero(env.action_masks())
            zones = {
                name: tuple(card[0] + shifted[card[1]] for card in cards)
                for name, cards in env.zones().items()
            }
            other = make_env()
            seen, _ = other.reset(options={"zones": zones, "phase": env.phase})
            chances, value = self.chances(policy, observation, env.action_masks())
            other_chances, other_value = self.chances(policy, seen, other.action_masks())
            assert other_value == pytest.approx(value, abs=1e-5)
            for action in legal:
                kind, cards = env.decode(int(action))
                moved = [card[0] + shifted[card[1]] for card in cards]
                twin = other.encode(kind, moved)
                assert other_chances[twin] == pytest.approx(chances[action], abs=1e-5)
            observation, *_ = env.step(rng.choice(legal))

    def chances(
        self, policy: Any, observation: npt.NDArray[np.int8], mask: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.float32], float]:
        batch = th.as_tensor(observation[None])
        distribution = policy.get_distribution(batch, mask)
        probabilities = distribution.distribution.probs.detach().numpy()[0]
        return probabilities, float(policy.predict_values(batch).detach())

    def test_refuses_no_mask_and_all_false_masks(self) -> None:
        policy = self.policy()
        obs, masks = self.positions(4)
        with pytest.raises(ValueError, match="needs action_masks"):
            policy(obs)
        masks[2] = False
        with pytest.raises(ValueError, match="allows no action"):
            policy(obs, action_masks=masks)


def make_env() -> Any:
    import gymnasium as gym

    return gym.make("DeckOfSpies-v0").unwrapped


SMALL_RUN = [
    *("--config", str(ROOT / "configs" / "demo.yaml")),
    *("--env.num_envs", "16", "--ppo.n_steps", "32", "--ppo.batch_size", "128"),
    *("--policy.hidden", "8", "--policy.head", "8"),
    *("--evaluation.deals", "20", "--evaluation.every", "2048"),
    *("--checkpoint_every", "1024"),
]


def train(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def weights(model: Path) -> dict[str, th.Tensor]:
    return dict(load_policy(model, Rules())[0].state_dict())


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    small = (*SMALL_RUN, "--ppo.total_timesteps", "8192")
    assert train(*small, "--run_dir", str(whole)).wait(timeout=600) == 0

    process = train(*small, "--run_dir", str(killed))
    deadline = time.monotonic() + 300
    while not (killed / "checkpoint" / "state.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "last_model.zip").exists(), "the run ended before it could be killed"

    locked = FileLock(killed / ".lock")
    with locked:
        _, errors = train("--resume", str(killed)).communicate(timeout=600)
        assert "another process" in errors

    resumed = train("--resume", str(killed))
    output, errors = resumed.communicate(timeout=600)
    assert resumed.returncode == 0, errors
    assert "20 held-out deals" in output
    expected = weights(whole / "last_model.zip")
    for name, tensor in weights(killed / "last_model.zip").items():
        assert th.equal(tensor, expected[name]), name
    with open(killed / "evaluations.csv") as file:
        steps = [int(row["timesteps"]) for row in csv.DictReader(file)]
    assert steps == sorted(set(steps)), "each evaluation stands there once"
    assert steps[-1] == 8192
    again, _ = train("--resume", str(killed)).communicate(timeout=600)
    assert "has ended" in again
    with open(killed / "evaluations.csv") as file:
        assert [int(row["timesteps"]) for row in csv.DictReader(file)] == steps
    for name in ("config.yaml", "versions.json", "progress.csv", "best_model.zip"):
        assert (killed / name).exists()
    assert list(killed.glob("events.out.tfevents.*"))


def resumable(run: Path) -> Path:
    """A run directory that holds a configuration and nothing else yet."""
    run.mkdir()
    (run / "config.yaml").write_text(
        "{env: {num_envs: 16}, policy: {hidden: 8, head: 8}, ppo: {n_steps: 32, batch_size: 128, "
        "total_timesteps: 512}, evaluation: {deals: 20}}"
    )
    return run


def test_a_run_killed_before_its_first_checkpoint_begins_anew(tmp_path: Path) -> None:
    run = resumable(tmp_path / "run")
    (run / "evaluations.csv").write_text("timesteps,win_rate\n99,0.5\n")
    later = run / "samples" / "99.jsonl"
    later.parent.mkdir()
    later.write_text("")
    process = train("--resume", str(run))
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert (run / "last_model.zip").exists()
    assert "99,0.5" not in (run / "evaluations.csv").read_text()
    assert not later.exists()


@pytest.mark.parametrize(
    ("override", "named"),
    [
        (["--env.num_envs", "8"], "env"),
        (["--policy.kind", "flat"], "policy"),
        (["--seed", "4"], "seed"),
        (["--ppo.n_steps", "64"], "ppo.n_steps"),
    ],
)
def test_what_a_run_consists_of_can_not_change(
    tmp_path: Path, override: list[str], named: str
) -> None:
    run = resumable(tmp_path / "run")
    with pytest.raises(ConfigError, match=f"^{named}.* can't change from"):
        read_command_line(["--resume", str(run), *override])


def test_other_fields_change_and_are_written_down(tmp_path: Path) -> None:
    run = resumable(tmp_path / "run")
    config, resume, text = read_command_line(
        ["--resume", str(run), "--ppo.learning_rate", "0.5", "--ppo.total_timesteps", "1024"]
    )
    assert resume == run
    assert config.directory == run
    assert (config.ppo.learning_rate, config.ppo.total_timesteps) == (0.5, 1024)
    (run / "config.yaml").write_text(text)
    assert read_command_line(["--resume", str(run)])[0] == config


def test_a_resumed_run_uses_the_hyperparameters_it_is_given(tmp_path: Path) -> None:
    """With a learning rate of almost nothing the second half leaves the weights as they were."""
    run = resumable(tmp_path / "run")
    assert train("--resume", str(run)).wait(timeout=600) == 0
    before = weights(run / "last_model.zip")
    small = ("--ppo.total_timesteps", "1024", "--ppo.learning_rate", "1e-20")
    assert train("--resume", str(run), *small).wait(timeout=600) == 0
    for name, tensor in weights(run / "last_model.zip").items():
        assert th.equal(tensor, before[name]), name
    large = ("--ppo.total_timesteps", "2048", "--ppo.learning_rate", "1e-2")
    assert train("--resume", str(run), *large).wait(timeout=600) == 0
    moved = weights(run / "last_model.zip")
    assert not th.equal(moved["encoder.weight"], before["encoder.weight"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--evaluation.deals", "5000000000"], "evaluation.deals"),
        (["--threads", "100000"], "threads"),
        (["--ppo.n_steps", "1", "--env.num_envs", "1"], "ppo.n_steps"),
        (["--ppo.learning_rat", "1"], "learning_rat"),
        (["--ppo.n_steps", "many"], "ppo.n_steps"),
        (["--ppo.n_steps", "1.5"], "ppo.n_steps"),
        (["--ppo.n_steps", "0"], "ppo.n_steps"),
        (["--ppo.gamma", "2"], "ppo.gamma"),
        (["--seed", "-1"], "seed"),
        (["--env.id", "Chess-v0"], "Chess-v0"),
        (["--env.rules", "{hand_size: 9}"], "hand_size"),
        (["--env.rules", "{hand: 5}"], "hand"),
        (["--env.objective", "{fame: 1}"], "fame"),
        (["--env.objective", "fame"], "fame"),
        (["--env.shaping", "fame"], "fame"),
        (["--policy.kind", "deep"], "policy.kind"),
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
        (["--resume", "nowhere"], "nowhere"),
        (["--resume"], "--resume"),
        (["extra"], "extra"),
    ],
)
def test_a_bad_command_line_is_one_line_that_names_it(arguments: list[str], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_command_line(arguments)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_keys_and_ill_typed_values_of_a_config_file(tmp_path: Path) -> None:
    config = tmp_path / "bad.yaml"
    for text, named in (("ppo: {lr: 1}", "lr"), ("seed: x", "seed"), (": :", "bad.yaml")):
        config.write_text(text)
        with pytest.raises(ConfigError, match=named):
            read_command_line(["--config", str(config)])


def test_mistakes_end_with_status_2_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("seed: 0\n")
    for arguments in (
        ["--ppo.learning_rat", "1"],
        ["--run_dir", str(tmp_path)],  # a run already
        ["--device", "abacus", "--run_dir", str(tmp_path / "new")],
        ["--device", "meta", "--run_dir", str(tmp_path / "new")],
    ):
        process = train(*arguments)
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 2, (arguments, errors)
        assert len(errors.strip().splitlines()) == 1, errors
        assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a very short run."""
    run = tmp_path_factory.mktemp("runs") / "tiny"
    process = train(*SMALL_RUN, "--ppo.total_timesteps", "512", "--run_dir", str(run))
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return run / "last_model.zip"


def rewritten(source: Path, target: Path, old: bytes, new: bytes) -> Path:
    """A copy of a model file whose description has been changed."""
    with zipfile.ZipFile(source) as read, zipfile.ZipFile(target, "w") as write:
        for name in read.namelist():
            data = read.read(name)
            if name == "deck_of_spies.json":
                assert old in data
                data = data.replace(old, new)
            write.writestr(name, data)
    return target


def repacked(whole: bytes, member: str, content: bytes) -> bytes:
    """A zip file with another content of one member."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as read, zipfile.ZipFile(made, "w") as write:
        for name in read.namelist():
            write.writestr(name, content if name == member else read.read(name))
    return made.getvalue()


def test_a_run_leaves_records_of_games_that_replay(model_file: Path) -> None:
    samples = sorted((model_file.parent / "samples").iterdir())
    assert samples[-1].name == "512.jsonl"
    with open(model_file.parent / "evaluations.csv") as file:
        steps = [row["timesteps"] for row in csv.DictReader(file)]
    assert {path.stem for path in samples} == set(steps)
    config = read_command_line(["--config", str(model_file.parent / "config.yaml")])[0]
    records = list(read_records(samples[-1]))
    assert [record.seed for record in records] == deal_seeds("select", config.seed, 3)
    for record in records:
        assert record.players == (f"{config.name} at 512",)
        *_, last = replay(record)
        assert last.phase == "over"


class TestModelFiles:
    def test_a_run_directory_and_a_file_are_the_same_agent(self, model_file: Path) -> None:
        seeds = deal_seeds("select", 2, 50)
        by_file = play_deals(make_agent(f"ppo={model_file}"), seeds)
        by_run = play_deals(make_agent(f"ppo={model_file.parent}"), seeds)
        np.testing.assert_array_equal(by_file.key_spies, by_run.key_spies)

    def test_sb3_loads_it_too(self, model_file: Path) -> None:
        model = MaskablePPO.load(model_file, device="cpu")
        assert model.num_timesteps == 512

    @pytest.mark.parametrize(
        ("old", "new", "named"),
        [
            (b"DeckOfSpies-v0", b"DeckOfSpies-v9", "DeckOfSpies-v9"),
            (b'"hand_size": 5', b'"hand_size": 6', "rules"),
            (b'"idle_ace": true', b'"idle_ace": false', "rules"),
            (b'"format": 3', b'"format": 7', "format 7"),
            (b'"hidden": 8', b'"hidden": 9', "corrupt"),
            (b'"policy"', b'"police"', "corrupt"),
            (b"{", b"[", "corrupt"),
        ],
    )
    def test_a_model_for_something_else_is_refused(
        self, model_file: Path, tmp_path: Path, old: bytes, new: bytes, named: str
    ) -> None:
        changed = rewritten(model_file, tmp_path / "changed.zip", old, new)
        with pytest.raises(AgentError, match=named):
            make_agent(f"ppo={changed}")

    @pytest.mark.parametrize(
        ("break_it", "why"),
        [
            (
                lambda whole: whole[: len(whole) // 2],
                "it is no whole zip file|it needs .*policy.pth",
            ),
            (lambda _: b"", "it is no whole zip file"),
            (lambda whole: whole.replace(b"policy.pth", b"police.pth"), "it needs .*policy.pth"),
            (lambda whole: repacked(whole, "policy.pth", b"nonsense"), "can't read its contents"),
            (lambda whole: repacked(whole, "deck_of_spies.json", b"{"), "can't read its contents"),
        ],
        ids=["half", "empty", "member", "weights", "json"],
    )
    def test_a_broken_file_is_refused_in_a_whole_sentence_of_our_own(
        self, model_file: Path, tmp_path: Path, break_it: Callable[[bytes], bytes], why: str
    ) -> None:
        broken = tmp_path / "broken.zip"
        broken.write_bytes(break_it(model_file.read_bytes()))
        with pytest.raises(AgentError, match=why) as refusal:
            make_agent(f"ppo={broken}")
        assert "\n" not in str(refusal.value)
        assert str(refusal.value)[-1] not in ":."

    def test_a_missing_model_lists_those_of_the_same_agent(self, tmp_path: Path) -> None:
        for make, own, other in (
            (make_agent, "ppo, ppo_keys, ppo_perfect", "skirmish"),
            (make_skirmish_agent, "skirmish_2p, skirmish_3p, skirmish_4p", "ppo_keys"),
        ):
            for path in (tmp_path / "nowhere", tmp_path):
                with pytest.raises(AgentError, match=f"shipped models: {own}$") as refusal:
                    make(f"ppo={path}")
                assert other not in str(refusal.value)

    def test_other_rules_are_refused(self, model_file: Path) -> None:
        with pytest.raises(AgentError, match="rules"):
            make_agent(f"ppo={model_file}", Rules(eager_reshuffle=True))

    def test_broken_and_missing_files(self, model_file: Path, tmp_path: Path) -> None:
        broken = tmp_path / "broken.zip"
        whole = model_file.read_bytes()
        for data in (b"", b"no zip", whole[: len(whole) // 2], whole[:-200]):
            broken.write_bytes(data)
            with pytest.raises(AgentError) as caught:
                make_agent(f"ppo={broken}")
            assert "\n" not in str(caught.value)
        with pytest.raises(AgentError, match="no model"):
            make_agent(f"ppo={tmp_path / 'nothing.zip'}")
        with pytest.raises(AgentError, match="no model"):
            make_agent(f"ppo={tmp_path}")

    def test_a_zip_of_another_project(self, tmp_path: Path) -> None:
        other = tmp_path / "other.zip"
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("data", "{}")
        with pytest.raises(AgentError, match="not a model of this project"):
            make_agent(f"ppo={other}")

    def test_weights_that_are_no_numbers(self, model_file: Path, tmp_path: Path) -> None:
        broken = tmp_path / "broken.zip"
        with zipfile.ZipFile(model_file) as read, zipfile.ZipFile(broken, "w") as write:
            for name in read.namelist():
                data = read.read(name)
                if name == "policy.pth":
                    state = th.load(io.BytesIO(data), weights_only=True)
                    state["encoder.bias"][0] = float("nan")
                    buffer = io.BytesIO()
                    th.save(state, buffer)
                    data = buffer.getvalue()
                write.writestr(name, data)
        with pytest.raises(AgentError, match="finite"):
            make_agent(f"ppo={broken}")


@pytest.mark.skipif(th.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3", "tpu"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    """SB3 would train on the processor without a word."""
    with pytest.raises(ConfigError, match=f"device {device}"):
        device_of(TrainConfig(device=device))
