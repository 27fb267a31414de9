"""Train an agent from a configuration.

python train.py --config configs/deck_of_spies.yaml [--seed 1] [--ppo.learning_rate 3e-4 ...]
python train.py --resume runs/deck_of_spies-seed0
"""

from __future__ import annotations

import sys

import torch

from agents.training.config import ConfigError, fail, read_command_line
from agents.training.ppo import PPOLearner
from agents.training.runs import RunDirectory
from agents.training.td import AfterstateLearner

LEARNERS = {"ppo": PPOLearner, "afterstate": AfterstateLearner}
INTERRUPTED = 130


def main(arguments: list[str]) -> None:
    """config -> learner -> run directory -> learn -> save."""
    torch.set_num_threads(1)  # PPO's own threads share its updates
    try:
        config, resume, config_yaml = read_command_line(arguments)
        learner = LEARNERS[config.algorithm](config)
        run = RunDirectory(config.directory, config)
        run.open(config_yaml, resume=resume is not None)
        if resume is not None and run.has_checkpoint:
            run.load_checkpoint(learner.read_checkpoint)
    except ConfigError as error:
        fail(error)
    except KeyboardInterrupt:
        print("\ninterrupted before the first decision", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    run.drop_evaluations_after(learner.num_timesteps)
    print(f"run directory: {run.path}, from decision {learner.num_timesteps:,} on", flush=True)
    if learner.num_timesteps >= config.total_timesteps:
        print(
            "the run has ended; to go on, resume it with a larger "
            f"--{config.section}.total_timesteps"
        )
        return
    try:
        score = learner.learn(run)
    except KeyboardInterrupt:
        print(f"\ninterrupted; go on with: python train.py --resume {run.path}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    print(f"{config.evaluation.deals} held-out deals: {score.text()}")


if __name__ == "__main__":
    main(sys.argv[1:])
