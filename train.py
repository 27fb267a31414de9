"""Train a MaskablePPO agent from a configuration.

python train.py --config configs/deck_of_spies.yaml [--seed 1] [--ppo.learning_rate 3e-4 ...]
python train.py --resume runs/deck_of_spies-seed0
"""

from __future__ import annotations

import sys

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.utils import LinearSchedule, get_device

from agents.training.callbacks import TrainingCallback
from agents.training.config import ConfigError, TrainConfig, fail, read_command_line
from agents.training.models import policy_arguments
from agents.training.runs import RunDirectory
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.integrations.sb3 import DeckOfSpiesVecEnv, make_vec_env


def device_of(config: TrainConfig) -> torch.device:
    """The torch device that the configuration names.

    Raises:
        ConfigError: there is no such device.
    """
    try:
        return get_device(config.device)
    except RuntimeError as error:
        raise ConfigError(f"device: {str(error).splitlines()[0]}") from None


def make_envs(config: TrainConfig) -> DeckOfSpiesVecEnv:
    """The training games."""
    return make_vec_env(config.env.id, config.env.num_envs, **config.env.arguments())


def make_model(config: TrainConfig, envs: DeckOfSpiesVecEnv, device: torch.device) -> MaskablePPO:
    """A fresh agent, with the training deals of its seed."""
    ppo = config.ppo
    policy, policy_kwargs = policy_arguments(config.policy)
    model = MaskablePPO(
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
        vf_coef=ppo.vf_coef,
        max_grad_norm=ppo.max_grad_norm,
        normalize_advantage=ppo.normalize_advantage,
        target_kl=ppo.target_kl,
        policy_kwargs=policy_kwargs,
        seed=config.seed,
        device=device,
    )
    envs.seed(deal_seeds("train", config.seed, 1)[0])
    return model


def main(arguments: list[str]) -> None:
    """config -> envs -> agent -> learn -> save."""
    try:
        config, resume, config_yaml = read_command_line(arguments)
        device = device_of(config)
        run = RunDirectory(config.directory, config)
        torch.set_num_threads(config.threads)
        if resume is None:
            run.create(config_yaml)
            envs = make_envs(config)
            model, notes = make_model(config, envs, device), {}
        else:
            envs = make_envs(config)
            model, notes = run.load_checkpoint(envs, device)
    except ConfigError as error:
        fail(error)
        return
    model.set_logger(run.logger())
    callback = TrainingCallback(config, run, envs, notes)
    remaining = config.ppo.total_timesteps - model.num_timesteps
    print(f"run directory: {run.path}", flush=True)
    model.learn(max(remaining, 0), callback=callback, reset_num_timesteps=resume is None)
    score = callback.score
    if score is not None:
        print(
            f"{config.evaluation.deals} held-out deals: win rate {score.win_rate:.2%} "
            f"[{score.win_rate_low:.2%}, {score.win_rate_high:.2%}], "
            f"Key Spies {score.key_spies:.2f}, 12 of 12 {score.perfect:.2%}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
