"""Wall time to a strength: the default recipe beside MaskablePPO's own defaults with 8 games.

``python -m benchmarks.strength [--arms recipe defaults] [--seeds 0 1 2] [--limit 1800]``

Both arms learn from the objective ``{win: 1, keys: 1}`` on one torch thread. Every 15 seconds of
training the policy is judged by greedy play on 4,000 deals that it has met neither in training nor
in an earlier judgement, while the clocks stand still; a run ends when the lower end of the 95 %
interval of its win rate passes 90 %, or at the time limit. Each run leaves one JSON file, and runs
that have left theirs are not repeated, so a long measurement can be made in parts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from agents.ppo import PPOAgent
from agents.training.config import read_command_line
from agents.training.ppo import make_envs, make_model
from benchmarks.keeping import keep
from benchmarks.machine import circumstances
from deck_of_spies_env.commands import OneLineParser, positive_number, whole_number
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.evaluation.statistics import wilson_interval
from deck_of_spies_env.integrations.sb3 import make_vec_env

RESULTS = Path(__file__).parent / "results" / "strength"
RECIPE = str(Path(__file__).parents[1] / "configs" / "deck_of_spies.yaml")
OBJECTIVE = {"win": 1.0, "keys": 1.0}
NUM_ENVS_OF_DEFAULTS = 8
TARGET = 0.9
SECONDS_BETWEEN = 15.0
DEALS = 4_000
MORE_STEPS_THAN_ANY_RUN = 1_000_000_000


def recipe(seed: int) -> tuple[MaskablePPO, int]:
    """The default recipe's agent, and the number of decisions that its schedules run over."""
    config, _, _ = read_command_line(["--config", RECIPE, "--seed", str(seed)])
    if config.env.objective != OBJECTIVE:
        raise ValueError(f"{RECIPE} has another objective than {OBJECTIVE}")
    torch.set_num_threads(1)
    return make_model(config, make_envs(config), torch.device("cpu")), config.ppo.total_timesteps


def defaults(seed: int) -> tuple[MaskablePPO, int]:
    """MaskablePPO as it comes, with 8 games; nothing in it is scheduled."""
    torch.set_num_threads(1)
    envs = make_vec_env("DeckOfSpies-v0", NUM_ENVS_OF_DEFAULTS, objective=OBJECTIVE)
    model = MaskablePPO("MlpPolicy", envs, seed=seed, device="cpu")
    envs.seed(deal_seeds("train", seed, 1)[0])
    return model, MORE_STEPS_THAN_ANY_RUN


ARMS = {"recipe": recipe, "defaults": defaults}


class Judgement(NamedTuple):
    """One evaluation: decisions so far, seconds of training, and the win rate with its interval."""

    timesteps: int
    wall_seconds: float
    cpu_seconds: float
    win_rate: float
    low: float
    high: float


class _Judge(BaseCallback):
    """Stops the clocks, plays greedily, and ends training at the target or the limit."""

    def __init__(self, seed: int, limit: float) -> None:
        super().__init__()
        self.judgements: list[Judgement] = []
        self._seed = seed
        self._limit = limit
        self._wall = self._cpu = 0.0  # seconds of training, evaluations left out
        self._since = (0.0, 0.0)
        self._reached = False

    def _on_training_start(self) -> None:
        self._since = (time.perf_counter(), time.process_time())

    def _on_rollout_start(self) -> None:
        self._stop_clocks()
        last = self.judgements[-1].wall_seconds if self.judgements else 0.0
        if self._wall - last >= SECONDS_BETWEEN:
            self._judge()
        self._since = (time.perf_counter(), time.process_time())

    def _on_step(self) -> bool:
        return not self._reached and self._wall < self._limit

    def _stop_clocks(self) -> None:
        self._wall += time.perf_counter() - self._since[0]
        self._cpu += time.process_time() - self._since[1]

    def _judge(self) -> None:
        done = len(self.judgements) * DEALS
        deals = deal_seeds("select", self._seed, done + DEALS)[done:]
        wins = play_deals(PPOAgent(self.model.policy), deals).wins  # type: ignore[arg-type]
        interval = wilson_interval(int(wins.sum()), DEALS)
        self.judgements.append(
            Judgement(self.num_timesteps, self._wall, self._cpu, float(wins.mean()), *interval)
        )
        self._reached = interval[0] > TARGET
        sys.stderr.write(f"{self.judgements[-1]}\n")


def run(arm: str, seed: int, limit: float) -> dict[str, Any]:
    """Train one arm with one seed until it is strong enough, or until the limit."""
    model, total_timesteps = ARMS[arm](seed)
    judge = _Judge(seed, limit)
    model.learn(total_timesteps, callback=judge)
    last = judge.judgements[-1]
    return {
        "arm": arm,
        "seed": seed,
        "reached": last.low > TARGET,
        "limit_seconds": limit,
        "wall_seconds": last.wall_seconds,
        "cpu_seconds": last.cpu_seconds,
        "judgements": [judgement._asdict() for judgement in judge.judgements],
        "circumstances": circumstances(),
    }


def main() -> None:
    """Make those runs that are missing, seed by seed, both arms in turn."""
    parser = OneLineParser(description="Wall time until 90 % of the games are won.")
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    parser.add_argument("--seeds", nargs="+", type=whole_number(0), default=[0, 1, 2])
    parser.add_argument("--limit", type=positive_number, default=1800.0, help="seconds of training")
    args = parser.parse_args()
    if args.limit < SECONDS_BETWEEN:
        parser.error(f"--limit must be at least {SECONDS_BETWEEN:g}, got {args.limit:g}")
    for seed in args.seeds:
        for arm in args.arms:
            path = RESULTS / f"{arm}-seed{seed}.json"
            if not path.exists():
                keep(path, run(arm, seed, args.limit))


if __name__ == "__main__":
    main()
