"""Train a MaskablePPO agent from a configuration.

python train.py --config configs/deck_of_spies.yaml [--seed 1] [--ppo.learning_rate 3e-4 ...]
python train.py --resume runs/deck_of_spies-seed0
"""

from __future__ import annotations

import sys

import torch
from stable_baselines3.common.utils import LinearSchedule, get_device

from agents.masked_ppo import MaskedPPO
from agents.training.callbacks import TrainingCallback
from agents.training.config import ConfigError, TrainConfig, fail, read_command_line
from agents.training.models import policy_arguments
from agents.training.runs import RunDirectory
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.integrations.sb3 import DeckOfSpiesVecEnv, make_vec_env

INTERRUPTED = 130


def device_of(config: TrainConfig) -> torch.device:
    """The torch device that the configuration names.

    Raises:
        ConfigError: there is no such device.
    """
    try:
        device = get_device(config.device)
        torch.zeros(1, device=device).item()
        if config.device.startswith("cuda") and device.type != "cuda":
            raise RuntimeError("there is none")  # SB3 would take the processor instead
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        raise ConfigError(f"device {config.device}: {str(error).splitlines()[0]}") from None
    return device


def make_envs(config: TrainConfig) -> DeckOfSpiesVecEnv:
    """The training games."""
    return make_vec_env(config.env.id, config.env.num_envs, **config.env.arguments())


def make_model(config: TrainConfig, envs: DeckOfSpiesVecEnv, device: torch.device) -> MaskedPPO:
    """A fresh agent, with the training deals of its seed."""
    ppo = config.ppo
    policy, policy_kwargs = policy_arguments(config.policy)
    model = MaskedPPO(
        policy,
        envs,
        learning_rate=LinearSchedule(ppo.learning_rate, ppo.final_learning_rate, 1.0),
        n_steps=ppo.n_steps,
        batch_size=ppo.batch_size,
        n_epochs=ppo.n_epochs,
        gamma=ppo.gamma,
        gae_lambda=ppo.gae_lambda,
        clip_range=ppo.clip_range,
        ent_coef=ppo.ent_coef,
        final_ent_coef=ppo.final_ent_coef,
        vf_coef=ppo.vf_coef,
        max_grad_norm=ppo.max_grad_norm,
        normalize_advantage=ppo.normalize_advantage,
        target_kl=ppo.target_kl,
        policy_kwargs=policy_kwargs,
        seed=config.seed,
        device=device,
        threads=config.threads,
    )
    envs.seed(deal_seeds("train", config.seed, 1)[0])
    return model


def main(arguments: list[str]) -> None:
    """config -> envs -> agent -> learn -> save."""
    try:
        config, resume, config_yaml = read_command_line(arguments)
        device = device_of(config)
        torch.set_num_threads(1)  # the agent's own threads share its updates
        envs = make_envs(config)
        model = make_model(config, envs, device)
        run = RunDirectory(config.directory, config)
        run.open(config_yaml, resume=resume is not None)
        goes_on = resume is not None and run.has_checkpoint
        notes = run.load_checkpoint(model, envs) if goes_on else {}
    except ConfigError as error:
        fail(error)
    run.drop_evaluations_after(model.num_timesteps)
    remaining = config.ppo.total_timesteps - model.num_timesteps
    print(f"run directory: {run.path}, from decision {model.num_timesteps:,} on", flush=True)
    if remaining <= 0:
        print("the run has ended; to go on, resume it with a larger --ppo.total_timesteps")
        return
    model.set_logger(run.logger())
    callback = TrainingCallback(config, run, envs, notes)
    try:
        model.learn(remaining, callback=callback, reset_num_timesteps=not goes_on)
    except KeyboardInterrupt:
        print(f"\ninterrupted; go on with: python train.py --resume {run.path}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    score = callback.score
    if score is not None:
        print(
            f"{config.evaluation.deals} held-out deals: win rate {score.win_rate:.2%} "
            f"[{score.win_rate_low:.2%}, {score.win_rate_high:.2%}], "
            f"Key Spies {score.key_spies:.2f}, 12 of 12 {score.perfect:.2%}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
