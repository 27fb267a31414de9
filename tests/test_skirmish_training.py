"""Self-play of Skirmish: the vector environment with a pool, and training runs."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch as th
from sb3_contrib.common.maskable.utils import is_masking_supported
from scipy import stats
from stable_baselines3.common.vec_env import VecMonitor

import train
from agents import AgentError, make_agent
from agents.skirmish import make_skirmish_agent
from agents.skirmish.ppo import SkirmishPPOAgent
from agents.skirmish.uniforms import uniforms_of
from agents.training.averaging import AveragePolicy, Memory
from agents.training.config import ConfigError, read_command_line
from agents.training.models import load_skirmish_policy
from agents.training.ppo import TrainingCallback, make_model
from agents.training.tasks import task_of
from deck_of_spies_env.agent import Actions, BatchAgent
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.evaluation.tables import play_tables
from deck_of_spies_env.integrations.sb3_skirmish import POINTS_IN_THE_DECK, Member, SkirmishVecEnv
from deck_of_spies_env.skirmish import cards
from deck_of_spies_env.skirmish.actions import WAIT, encode
from deck_of_spies_env.skirmish.bots import make_bot
from deck_of_spies_env.skirmish.games import Games
from deck_of_spies_env.skirmish.rules import Rules

CHANCE_OF_A_FALSE_ALARM = 1e-6
TINY = [
    "--env.id=Skirmish-v0",
    "--env.num_envs=8",
    "--policy.kind=flat",
    "--policy.hidden=16",
    "--policy.head=8",
    "--ppo.n_steps=32",
    "--ppo.batch_size=128",
    "--ppo.n_epochs=1",
    "--ppo.total_timesteps=1800",
    "--evaluation.every=600",
    "--evaluation.deals=4",
    "--self_play.every=500",
    "--self_play.bots={intrigue: 1.0}",
    "--self_play.average=true",
    "--self_play.memory=300",
    "--device=cpu",
]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    th.set_num_threads(1)


def random_actions(masks: npt.NDArray[np.bool_], random: np.random.Generator) -> Any:
    return (random.random(masks.shape) * masks).argmax(axis=1)


def envs_with_pool(num_players: int = 3, **arguments: Any) -> SkirmishVecEnv:
    pool = [Member("high", make_bot("high", num_players), 1.0)]
    pool.append(Member("rank", make_bot("rank", num_players), 3.0))
    envs = SkirmishVecEnv(4, 6, num_players, pool=pool, **arguments)
    envs.seed(5)
    return envs


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_rows_are_the_seats_that_learn(num_players: int) -> None:
    envs = envs_with_pool(num_players)
    observations = envs.reset()
    assert envs.num_envs == 4 * num_players + 6
    assert observations.shape == (envs.num_envs, *envs.observation_space.shape)  # type: ignore[misc]
    assert all(envs.observation_space.contains(row) for row in observations)
    assert is_masking_supported(envs)
    assert envs.action_masks().shape == (envs.num_envs, 15)


def test_open_tables_are_the_games_of_the_engine() -> None:
    """All seats act: the same rewards, observations and deals as Games with the same seeds."""
    envs = SkirmishVecEnv(5, 0, 3)
    envs.seed(11)
    games = Games(5, 3)
    games.seed(range(5), range(11, 16))
    games.deal()
    observations, random = envs.reset(), np.random.default_rng(0)
    for _ in range(200):
        np.testing.assert_array_equal(observations, games.observations.reshape(15, -1))
        masks = envs.action_masks()
        np.testing.assert_array_equal(masks, games.masks.reshape(15, -1))
        actions = random_actions(masks, random)
        observations, rewards, dones, _ = envs.step(actions)
        games.step(actions.reshape(5, 3))
        np.testing.assert_allclose(rewards, games.rewards.ravel(), rtol=1e-6)
        np.testing.assert_array_equal(dones, np.repeat(games.over, 3))
        games.deal(games.over.copy())


def test_seats_at_pool_tables_rotate_and_opponents_are_drawn_by_weight() -> None:
    envs = envs_with_pool(2)
    envs.reset()
    random = np.random.default_rng(1)
    seats: Counter[int] = Counter()
    opponents: Counter[str] = Counter()
    row = 8  # the first of the pool tables
    for _ in range(4000):
        seat = int(envs._seats[row])
        _, _, dones, infos = envs.step(random_actions(envs.action_masks(), random))
        if dones[row]:
            seats[seat] += 1
        for ended in np.flatnonzero(dones[8:]) + 8:
            opponents.update(infos[ended]["opponents"])
    assert abs(seats[0] - seats[1]) <= 1
    total = sum(opponents.values())
    assert set(opponents) == {"high", "rank"}
    assert stats.binomtest(opponents["rank"], total, 0.75).pvalue > CHANCE_OF_A_FALSE_ALARM
    shares = envs.shares_of_the_pool()
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["rank"] == pytest.approx(3 * shares["high"])


class Spy(BatchAgent):
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[npt.NDArray[np.bool_]] = []

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        self.shown.append(action_masks.copy())
        return action_masks.argmax(axis=1)


def test_the_pool_decides_for_its_own_seats_only() -> None:
    spy = Spy()
    envs = SkirmishVecEnv(0, 3, 4, pool=[Member("spy", spy, 1.0)])
    envs.seed(0)
    envs.reset()
    assert len(envs.step(random_actions(envs.action_masks(), np.random.default_rng(0)))[0]) == 3
    (masks,) = spy.shown
    assert len(masks) == 9  # three others at each of three tables
    assert not masks[:, WAIT].any()


@pytest.mark.parametrize("given", [3.7, "K", None, [0, 0]], ids=repr)
def test_what_a_member_gives_that_is_no_action_is_named(given: Any) -> None:
    class Odd(BatchAgent):
        def choose(self, observations: Any, action_masks: Any) -> Any:
            return given if isinstance(given, list) else [given] * len(observations)

    envs = SkirmishVecEnv(0, 3, 2, pool=[Member("odd", Odd(), 1.0)])
    envs.seed(0)
    envs.reset()
    before = envs.get_state()
    with pytest.raises(IllegalActionError, match="member odd of the pool: expected 3 whole"):
        envs.step(envs.action_masks().argmax(axis=1))
    np.testing.assert_array_equal(envs.get_state()["games"], before["games"])


@pytest.mark.parametrize(
    ("weight", "agent", "message"),
    [
        (-1.0, make_bot("rank", 2), "weight must be a number of at least 0, got -1.0"),
        (math.nan, make_bot("rank", 2), "weight must"),
        (math.inf, make_bot("rank", 2), "weight must"),
        ("1", make_bot("rank", 2), "weight must"),
        (None, make_bot("rank", 2), "weight must"),
        (True, make_bot("rank", 2), "weight must"),
        (1.0, "rank", "an agent needs the methods reset and act"),
        (1.0, type(make_bot("rank", 2)), "an agent needs the methods reset and act"),
    ],
)
def test_a_bad_member_is_named(weight: Any, agent: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"member mine: .*{message}"):
        Member("mine", agent, weight)


@pytest.mark.parametrize("tables", ["2", True, 1.0, -1, None], ids=repr)
def test_a_bad_number_of_tables_is_named(tables: Any) -> None:
    with pytest.raises(ValueError, match="open_tables must be a whole number"):
        SkirmishVecEnv(tables, 1)
    with pytest.raises(ValueError, match="pool_tables must be a whole number"):
        SkirmishVecEnv(1, tables)


def test_a_pool_without_those_at_the_tables_is_refused() -> None:
    envs = envs_with_pool(2)
    envs.reset()
    before = envs.pool
    with pytest.raises(ValueError, match="member 1 of the pool sits at a table"):
        envs.set_pool(before[:1])
    with pytest.raises(ValueError, match="a weight above 0"):
        envs.set_pool([Member("rank", make_bot("rank", 2), 0.0)])
    assert envs.pool is before


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    envs = envs_with_pool(3)
    envs.reset()
    envs.step(envs.action_masks().argmax(axis=1))
    state = envs.get_state()
    others = [
        SkirmishVecEnv(3, 7, 3, pool=envs.pool),  # as many tables
        SkirmishVecEnv(5, 6, 3, pool=envs.pool),
        SkirmishVecEnv(4, 6, 2, pool=envs.pool),
        SkirmishVecEnv(4, 6, 3, pool=envs.pool * 40),
    ]
    bad: list[Any] = [None, {}, 5, {**state, "more": 1}, {**state, "random": {}}]
    for other in others:
        other.seed(3)
        other.reset()
        bad.append(other.get_state())
    wrong = {**state, "games": state["games"].copy()}
    wrong["games"]["state"]["hand"][2] = 0
    for given in [*bad, wrong]:
        with pytest.raises(ValueError, match=r"state|sits at a table"):
            envs.set_state(given)
        now = envs.get_state()
        for name, value in state.items():
            np.testing.assert_equal(now[name], value)
    envs.set_state(state)
    envs.step(envs.action_masks().argmax(axis=1))


def test_reset_options_put_all_tables_at_a_position() -> None:
    envs = envs_with_pool(2)
    table = {"hand": [["Kc", "Ah"], ["Qd"]], "capture": [["2c"], []]}
    envs.set_options({"table": table})
    envs.reset()
    for row in range(envs.num_envs):
        hand = [["Ah", "Kc"], ["Qd"]][int(envs._seats[row])]
        assert list(envs.zones_of_row(row)["hand"]) == hand
    envs.reset()  # only once
    assert len(envs.zones_of_row(0)["hand"]) == 3
    before = envs.get_state()
    for options in ({"table": {"hand": [["Kc"]]}}, [{"table": table}, *[{}] * 13]):
        envs.set_options(options)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"hand must hold|the same for all rows"):
            envs.reset()
        np.testing.assert_array_equal(envs.get_state()["games"], before["games"])


def test_shaping_adds_up_to_nothing() -> None:
    """Potential-based: the sum over an episode is the payoff less the potential of its start."""
    plain, shaped = envs_with_pool(3), envs_with_pool(3, shaping="points")
    plain.reset(), shaped.reset()
    start = shaped._potentials_now()[shaped._tables, shaped._seats]
    assert np.abs(start).max() < 1
    sums, random = np.zeros(plain.num_envs), np.random.default_rng(3)
    first = np.ones(plain.num_envs, dtype=np.bool_)
    paid = np.zeros(plain.num_envs)
    for _ in range(300):
        actions = random_actions(plain.action_masks(), random)
        _, rewards, dones, _ = plain.step(actions)
        _, with_shaping, _, _ = shaped.step(actions)
        sums[first] += with_shaping[first]
        paid[first] += rewards[first]
        first &= ~dones
    assert not first.any()
    np.testing.assert_allclose(sums, paid - start, atol=1e-5)
    assert sum(4 * (rank + 1) for rank in range(len(cards.SUITED_RANKS))) == POINTS_IN_THE_DECK


def test_a_saved_state_is_played_on_as_before() -> None:
    first, second = envs_with_pool(3, shaping="points"), envs_with_pool(3, shaping="points")
    first.reset()
    random = np.random.default_rng(0)
    for _ in range(50):
        first.step(random_actions(first.action_masks(), random))
    np.testing.assert_array_equal(second.set_state(first.get_state()), first._observations())
    for _ in range(100):
        actions = random_actions(first.action_masks(), random)
        for ours, theirs in zip(first.step(actions)[:3], second.step(actions)[:3], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_rows_know_what_their_seats_know() -> None:
    envs = envs_with_pool(2)
    envs.seed(3)
    envs.reset()
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(40):
        zones, masks = envs.env_method("zones"), envs.env_method("action_masks")
        seats, phases = envs.get_attr("seat"), envs.get_attr("phase")
        for row, (known, mask, seat, phase) in enumerate(
            zip(zones, masks, seats, phases, strict=True)
        ):
            deciding = not mask[WAIT]
            assert (seat in known["participants"]) == deciding
            assert known["phase"] == phase
            if deciding:
                held = {encode(card[:-1] or card) for card in known["hand"]}
                assert set(np.flatnonzero(mask).tolist()) == held
            assert envs.env_method("zones", indices=row) == [known]
            seen.add((seat, phase))
        envs.step(random_actions(np.stack(masks), random))
    assert {(0, "skirmish"), (1, "skirmish"), (0, "war"), (1, "war")} <= seen
    assert envs.get_attr("rules", [0]) == [envs.games.rules]
    assert envs.has_attr("zones")
    assert not envs.has_attr("table")
    with pytest.raises(AttributeError, match="there are rules, num_players, seat"):
        envs.env_method("table")


def test_the_monitor_wraps_it() -> None:
    envs = VecMonitor(envs_with_pool(2))
    envs.reset()
    random = np.random.default_rng(0)
    for _ in range(300):
        masks = np.stack(envs.env_method("action_masks"))
        _, _, dones, infos = envs.step(random_actions(masks, random))
        for row in np.flatnonzero(dones):
            assert infos[row]["episode"]["l"] > 0
            assert infos[row]["terminal_observation"].shape == envs.observation_space.shape


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, 0), "number of tables"),
        ((-1, 2), "open_tables must"),
        ((1, 0, 5), "num_players"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[int, ...], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        SkirmishVecEnv(*arguments)
    with pytest.raises(ValueError, match="shaping"):
        SkirmishVecEnv(1, shaping="luck")


# --- Training -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["rank", ["rank"], [None], 5], ids=repr)
def test_a_pool_of_anything_but_members_is_refused(pool: Any) -> None:
    with pytest.raises(ValueError, match="must hold Member objects"):
        SkirmishVecEnv(1, 1, pool=pool)


@pytest.mark.parametrize("actions", [np.zeros(2) + 0.5, np.zeros(3, int), None, "AA"], ids=repr)
def test_actions_that_are_none_are_refused(actions: Any) -> None:
    envs = SkirmishVecEnv(1)
    envs.seed(0)
    before = envs.reset()
    with pytest.raises(ValueError, match="action"):
        envs.step(actions)
    np.testing.assert_array_equal(envs._observations(), before)


def test_uniforms_depend_on_seed_and_row_alone() -> None:
    rows = np.random.default_rng(0).integers(0, 50, (4000, 30)).astype(np.int8)
    uniforms = uniforms_of(rows, 3)
    np.testing.assert_array_equal(uniforms[::-1], uniforms_of(rows[::-1], 3))
    assert not np.isclose(uniforms, uniforms_of(rows, 4)).any()
    assert stats.kstest(uniforms, "uniform").pvalue > CHANCE_OF_A_FALSE_ALARM


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    th.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs") / "skirmish"
    train.main([*TINY, "--run_dir", str(folder)])
    return folder


def test_a_run_leaves_its_files(run: Path) -> None:
    rows = (run / "evaluations.csv").read_text().splitlines()
    assert rows[0].startswith("timesteps,seconds,deals,win_rate")
    assert len(rows) >= 4
    log = (run / "progress.csv").read_text()
    for name in ("rollout/payoff", "opponents/self", "opponents/past", "opponents/intrigue"):
        assert name in log
    agent = make_skirmish_agent(f"ppo={run}", 2)
    assert play_tables([agent, make_bot("rank", 2)], deal_seeds("test", 0, 3)).rounds.all()


def test_a_model_for_another_table_is_refused(run: Path) -> None:
    with pytest.raises(AgentError, match="number of players 2, not 3"):
        make_skirmish_agent(f"ppo={run}", 3)
    with pytest.raises(AgentError, match="rules"):
        make_skirmish_agent(f"ppo={run}", 2, Rules(max_rounds=7))
    with pytest.raises(AgentError, match="trained for Skirmish-v0"):
        make_agent(f"ppo={run}")


def test_the_agent_draws_from_its_policy(run: Path) -> None:
    """Over many seeds the actions at one position have the policy's probabilities."""
    policy, _ = load_skirmish_policy(run / "last_model.zip", 2, Rules())
    agent, games = SkirmishPPOAgent(policy), Games(30, 2)
    games.seed(range(30), range(30))
    games.deal()
    observations, masks = games.observations[:, 0], games.masks[:, 0].astype(np.bool_)
    expected = agent.probabilities(observations, masks)
    counts, draws = np.zeros_like(expected), 1000
    for seed in range(draws):
        agent.reset(seed)
        counts[np.arange(30), agent.act(observations, masks)] += 1
    assert not counts[~masks].any()
    p_values = [
        stats.chisquare(count[mask], probability[mask] / probability[mask].sum() * draws).pvalue
        for count, probability, mask in zip(counts, expected, masks, strict=True)
        if mask.sum() > 1
    ]
    assert min(p_values) > CHANCE_OF_A_FALSE_ALARM / len(p_values)
    greedy = make_skirmish_agent(f"ppo:path={run},mode=greedy", 2)
    np.testing.assert_array_equal(greedy.act(observations, masks), expected.argmax(axis=1))


def test_a_killed_run_goes_on_as_if_nothing_had_happened(run: Path, tmp_path: Path) -> None:
    """Stopped at a checkpoint and resumed, it ends in the very same weights."""
    arguments = [*TINY, "--checkpoint_every=700", "--run_dir", str(tmp_path / "broken")]

    class Killed(Exception):
        pass

    def kill(callback: Any) -> None:
        original(callback)
        if callback.num_timesteps > 1000:
            raise Killed

    original = TrainingCallback._on_rollout_start
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(TrainingCallback, "_on_rollout_start", kill)
        with pytest.raises(Killed):
            train.main(arguments)
    shutil.copytree(tmp_path / "broken", tmp_path / "copy")  # the killed one keeps its lock
    train.main(["--resume", str(tmp_path / "copy")])
    ours, _ = load_skirmish_policy(tmp_path / "copy" / "last_model.zip", 2, Rules())
    whole, _ = load_skirmish_policy(run / "last_model.zip", 2, Rules())
    for name, value in whole.state_dict().items():
        assert th.equal(value, ours.state_dict()[name]), name


def test_the_memory_holds_each_update_by_its_number() -> None:
    """Quarters of the updates have shares of 1, 3, 5 and 7 in 16."""
    updates, rows, counts = 400, 20, np.zeros(4)
    for seed in range(40):
        memory, random = Memory(500, 1, 1), np.random.default_rng(seed)
        held = np.zeros(500, np.int64)
        for update in range(updates):
            places = memory.places(rows, random)
            held[places[places >= 0]] = update
        counts += np.bincount(4 * held // updates, minlength=4)
    expected = counts.sum() * np.array([1, 3, 5, 7]) / 16
    assert stats.chisquare(counts, expected).pvalue > CHANCE_OF_A_FALSE_ALARM


def test_the_average_is_that_of_what_was_played() -> None:
    """Two policies in turn: between them, by the numbers of their updates."""
    config, _, _ = read_command_line([*TINY, "--policy.hidden=64", "--policy.head=64"])
    envs = task_of(config).make_envs()
    policies = []
    for seed in range(2):
        policy = make_model(replace(config, seed=seed), envs, th.device("cpu")).policy
        with th.no_grad():
            policy.action_net.weight *= 300  # or all would be uniform
        policies.append(policy)
    games = Games(200, 2)
    games.seed(range(200), range(200))
    games.deal()
    observations, masks = games.observations[:, 0], games.masks[:, 0].astype(np.bool_)
    masks &= np.arange(masks.shape[1]) != WAIT
    average, chosen = AveragePolicy(policies[0], 5_000, 0), [policies[0], policies[1], policies[1]]
    for update in range(150):
        average.add(chosen[update % 3], observations, masks)
    first, second, learnt = (
        SkirmishPPOAgent(policy).probabilities(observations, masks)
        for policy in (*policies, average.policy)
    )
    choices = masks.sum(axis=1) > 1

    def distance(one: Any, other: Any) -> float:
        return float(np.abs(one - other)[choices].sum(axis=1).mean() / 2)

    assert distance(first, second) > 0.3
    assert distance(learnt, first / 3 + 2 * second / 3) < 0.05


def test_what_is_kept_is_the_average(run: Path) -> None:
    kept, _ = load_skirmish_policy(run / "last_model.zip", 2, Rules())
    last, _ = load_skirmish_policy(run / "checkpoint" / "model.zip", 2, Rules())
    assert not th.equal(kept.action_net.weight, last.action_net.weight)


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("--self_play.memory=0", "memory"),
        ("--env.num_players=5", "num_players"),
        ("--env.objective=win", "objective"),
        ("--env.shaping=key_spies", "shaping"),
        ("--env.rules={hand_size: 5}", "hand_size"),
        ("--self_play.bots={nobody: 1.0}", "nobody"),
        ("--self_play.pool_tables=1.5", "pool_tables"),
        ("--self_play.past_selves=-1", "past_selves"),
        ("--evaluation.opponent=nobody", "opponent"),
        ("--evaluation.measure=perfect", "win_rate"),
        ("--policy.kind=candidate", "flat"),
        ("--algorithm=afterstate", "ppo"),
    ],
)
def test_bad_configurations_are_named(argument: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        read_command_line([*TINY, argument])


def test_shipped_configurations_are_sound() -> None:
    for path in (Path(__file__).parents[1] / "configs").glob("skirmish_*.yaml"):
        config, _, _ = read_command_line(["--config", str(path)])
        assert config.env.is_skirmish
        assert config.num_rows * config.ppo.n_steps % config.ppo.batch_size == 0
