"""Variants of the recipe under one small budget of processor time, a few seeds each.

``python -m benchmarks.ablation [--arms NAME ...] [--seeds 0 1 2] [--seconds 240]``

An arm is the main recipe with some fields changed, see ``configs/ablation.yaml``; its key
``recolouring`` is no such field but says how the suits are relabelled for the network. Every run
learns for the same processor time on one thread, with its schedules running over that time, and is
then judged by greedy play on 20,000 deals that it has not met. Each run leaves one JSON file, and
runs that have left theirs are not repeated, so a long study can be made in parts. With ``--table``
the runs that there are become the table of ``docs/RESULTS_LOG.md``.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
import yaml
from stable_baselines3.common.callbacks import BaseCallback

from agents.masked_ppo import MaskedPPO
from agents.ppo import PPOAgent
from agents.training.config import TrainConfig, read_command_line
from agents.training.judging import Score
from agents.training.ppo import make_envs, make_model
from benchmarks.keeping import keep, kept
from benchmarks.machine import circumstances
from benchmarks.recolouring import RecolouredAgent, RecolouredEnvs, Recolouring
from deck_of_spies_env.commands import OneLineParser, positive_number, whole_number
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds

RESULTS = Path(__file__).parent / "results" / "ablation"
CONFIGS = Path(__file__).parents[1] / "configs"
DEALS = 20_000
SECONDS = 240.0
EARLIER = {"ppo.batch_size": 4096, "ppo.normalize_advantage": True}
"""What the recipe was before two of the arms, run to the end, became part of it."""
MORE_STEPS_THAN_ANY_RUN = 1_000_000_000


def arms() -> dict[str, dict[str, Any]]:
    """What each arm changes: fields of the recipe, and ``recolouring``."""
    return yaml.safe_load((CONFIGS / "ablation.yaml").read_text())


def config_of(arm: str, seed: int) -> TrainConfig:
    """The recipe that the arms were measured on, with the fields of an arm."""
    fields = [
        f"--{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in {**EARLIER, **arms()[arm]}.items()
        if name != "recolouring"
    ]
    recipe = ["--config", str(CONFIGS / "deck_of_spies.yaml"), "--seed", str(seed)]
    return read_command_line([*recipe, *fields])[0]


def recolouring_of(arm: str) -> Recolouring | None:
    """How an arm relabels the suits, or None."""
    return arms()[arm].get("recolouring")


class _Budget(BaseCallback):
    """Ends training, and the model's schedules, when the processor time is used up."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self._started = 0.0

    @property
    def used(self) -> float:
        """Processor seconds since the start of training."""
        return time.process_time() - self._started

    def _on_training_start(self) -> None:
        self._started = time.process_time()

    def _on_step(self) -> bool:
        return self.used < self.seconds

    def remaining(self, *_: Any) -> None:
        """Stands in for the model's own progress, which counts decisions."""
        self.model._current_progress_remaining = max(1 - self.used / self.seconds, 0.0)


def run(arm: str, seed: int, seconds: float) -> dict[str, Any]:
    """Train one arm with one seed for its budget, and judge it."""
    torch.set_num_threads(1)
    _learn(_new_model(arm, seed), 5.0)  # compiles
    model = _new_model(arm, seed)
    started = time.perf_counter()
    used = _learn(model, seconds)
    wall = time.perf_counter() - started
    agent = PPOAgent(model.policy)  # type: ignore[arg-type]
    # A network that has met all labellings at random plays positions as they are.
    judged = RecolouredAgent(agent) if recolouring_of(arm) == "sorted" else agent
    result = play_deals(judged, deal_seeds("select", 1_000 + seed, DEALS))
    return {
        "arm": arm,
        "seed": seed,
        "changes": arms()[arm],
        "cpu_seconds": used,
        "wall_seconds": wall,
        "decisions": model.num_timesteps,
        "deals": DEALS,
        "score": Score.of(result)._asdict(),
        "circumstances": circumstances(),
    }


def _new_model(arm: str, seed: int) -> MaskedPPO:
    config, recolouring = config_of(arm, seed), recolouring_of(arm)
    envs: Any = make_envs(config)
    if recolouring is not None:
        envs = RecolouredEnvs(envs, recolouring, seed)
    return make_model(config, envs, torch.device("cpu"))


def _learn(model: MaskedPPO, seconds: float) -> float:
    budget = _Budget(seconds)
    model._update_current_progress_remaining = budget.remaining
    model.learn(MORE_STEPS_THAN_ANY_RUN, callback=budget)
    return budget.used


def table(runs: list[dict[str, Any]]) -> str:
    """Mean and spread over the seeds of each arm, as markdown."""
    lines = [
        "| arm | changes | seeds | million decisions | win rate | Key Spies | 12 of 12 |",
        "|---|---|---:|---:|---|---|---|",
    ]
    for arm in sorted({run["arm"] for run in runs}, key=list(arms()).index):
        of_arm = [run for run in runs if run["arm"] == arm]
        decisions = statistics.mean(run["decisions"] for run in of_arm) / 1e6
        changes = ", ".join(f"`{k}: {v}`" for k, v in of_arm[0]["changes"].items()) or "none"
        cells = [f"{arm} | {changes} | {len(of_arm)} | {decisions:.1f}"]
        for name, scale, form in (
            ("win_rate", 100, ".2f"),
            ("key_spies", 1, ".3f"),
            ("perfect", 100, ".2f"),
        ):
            values = [scale * run["score"][name] for run in of_arm]
            spread = f" ({min(values):{form}}-{max(values):{form}})" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):{form}}{spread}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def check_budget(path: Path, seconds: float, parser: OneLineParser) -> None:
    """Refuse to add runs of one budget to those of another."""
    used = json.loads(path.read_text())["cpu_seconds"]
    if not seconds <= used <= 1.1 * seconds:
        parser.error(
            f"--seconds {seconds:g}: {path} was trained for {used:.0f}; choose other --results"
        )


def main() -> None:
    """Make those runs that are missing, seed by seed, all arms in turn."""
    known = arms()
    parser = OneLineParser(description="Variants of the recipe, equal processor time.")
    parser.add_argument(
        "--arms", nargs="+", choices=list(known), default=list(known), metavar="ARM"
    )
    parser.add_argument("--seeds", nargs="+", type=whole_number(0), default=[0, 1, 2])
    parser.add_argument(
        "--seconds", type=positive_number, default=SECONDS, help="processor time of each run"
    )
    parser.add_argument("--table", action="store_true", help="print the table of what there is")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the JSON files are")
    args = parser.parse_args()
    if args.table:
        try:
            sys.stdout.write(table(kept(args.results)))
        except (ValueError, KeyError) as error:
            parser.error(f"--table: {error}")
        return
    for seed in args.seeds:
        for arm in args.arms:
            path = args.results / f"{arm}-seed{seed}.json"
            if path.exists():
                check_budget(path, args.seconds, parser)
            else:
                result = run(arm, seed, args.seconds)
                keep(path, result)
                sys.stderr.write(f"{arm} {seed}: {result['score']}\n")


if __name__ == "__main__":
    main()
