"""The learner behind ``algorithm: ppo``: MaskablePPO with evaluations and checkpoints."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import LinearSchedule, get_device
from stable_baselines3.common.vec_env import VecEnv

from agents.masked_ppo import MaskedPPO
from agents.training.checkpoints import read_checkpoint, write_checkpoint
from agents.training.config import ConfigError, TrainConfig
from agents.training.judging import AnyScore, Judge, ProgressBar
from agents.training.models import policy_for, save_model
from agents.training.runs import RunDirectory
from agents.training.tasks import Task, task_of
from deck_of_spies_env.evaluation.seeds import deal_seeds

_RECENT_EPISODES = 2000


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


def make_envs(config: TrainConfig) -> VecEnv:
    """The training games."""
    return task_of(config).make_envs()


def make_model(config: TrainConfig, envs: VecEnv, device: torch.device) -> MaskedPPO:
    """A fresh agent, with the training deals of its seed."""
    ppo = config.ppo
    policy, policy_kwargs = policy_for(config)
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


class PPOLearner:
    """A training run of MaskablePPO.

    Args:
        config: of the run, with ``algorithm: ppo``.

    Raises:
        ConfigError: there is no such device.
    """

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._task = task_of(config)
        self._envs = self._task.make_envs()
        self._model = make_model(config, self._envs, device_of(config))
        self._task.begin(self._model)
        self._notes: dict[str, Any] = {}

    @property
    def num_timesteps(self) -> int:
        """Decisions so far."""
        return self._model.num_timesteps

    def read_checkpoint(self, folder: Path) -> None:
        """Go on from a checkpoint; raises whatever broken files make of it."""
        self._notes = read_checkpoint(folder, self._model, self._envs, self._task)

    def learn(self, run: RunDirectory) -> AnyScore:
        """Train to the end of the run, and return the last evaluation's figures."""
        judge = Judge(self._config, run, self._notes)
        self._model.set_logger(run.logger())
        callback = TrainingCallback(self._config, run, self._task, self._envs, judge)
        remaining = self._config.ppo.total_timesteps - self.num_timesteps
        self._model.learn(remaining, callback=callback, reset_num_timesteps=not self._notes)
        return cast(AnyScore, callback.score)  # set when training ended


class TrainingCallback(BaseCallback):
    """Progress bar, evaluation on held-out deals, best model and checkpoints.

    Evaluations and checkpoints happen between an update and the next rollout, when the model, the
    games and the random states are all that a run consists of.

    Args:
        config: of the run.
        run: its directory.
        task: the game.
        envs: the training games.
        judge: knows what of the run has been evaluated and what is due.
    """

    def __init__(
        self, config: TrainConfig, run: RunDirectory, task: Task, envs: VecEnv, judge: Judge
    ) -> None:
        super().__init__()
        self._config, self._run, self._judge = config, run, judge
        self._task, self._envs = task, envs
        self._recent = {name: deque[float](maxlen=_RECENT_EPISODES) for name in task.figures}
        self._bar = ProgressBar(config.ppo.total_timesteps)
        self.score: AnyScore | None = None

    def _on_training_start(self) -> None:
        self._bar.start(self.num_timesteps)

    def _on_rollout_start(self) -> None:
        """The model has just been updated: judge and keep it when that is due."""
        if self._judge.is_due(self.num_timesteps):
            self.evaluate()
        if self._judge.checkpoint_is_due(self.num_timesteps):
            self._run.save_checkpoint(self._write_checkpoint)

    def _on_step(self) -> bool:
        infos: list[dict[str, Any]] = self.locals["infos"]
        for i in np.flatnonzero(self.locals["dones"]):
            for name, values in self._recent.items():
                values.append(float(infos[i][name]))
        return True

    def _on_rollout_end(self) -> None:
        for name, mean in self._means().items():
            self.logger.record(f"rollout/{name}", mean)
        self._bar.update(self.num_timesteps, self._figures())
        for name, value in self._task.on_rollout(cast(MaskedPPO, self.model)).items():
            self.logger.record(name, value)
        self.logger.record("time/seconds", self._judge.seconds())

    def _on_training_end(self) -> None:
        self._bar.update(self.num_timesteps, self._figures())
        self._bar.stop()
        self.evaluate()
        self._save(self._run.last_model)
        self._run.save_checkpoint(self._write_checkpoint)

    def evaluate(self) -> None:
        """Judge the model on the held-out deals, log it, and keep it if it is the best so far."""
        agent = self._task.agent(self._task.policy(self._model()))
        self.score, is_best = self._judge.judge(agent, self.num_timesteps)
        for name, value in self.score._asdict().items():
            self.logger.record(f"eval/{name}", value)
        self.logger.dump(self.num_timesteps)
        if is_best:
            self._save(self._run.best_model)

    def _save(self, path: Path) -> None:
        save_model(self._model(), self._config, path, self._task.policy(self._model()))

    def _means(self) -> dict[str, float]:
        """Of the games that ended lately, by the names under which they are logged."""
        names = self._task.figures
        return {
            names[key]: float(np.mean(values)) for key, values in self._recent.items() if values
        }

    def _figures(self) -> str:
        return "  ".join(f"{name} {mean:.3f}" for name, mean in self._means().items())

    def _write_checkpoint(self, folder: Path) -> None:
        notes = self._judge.notes()
        write_checkpoint(folder, self._model(), self._envs, self._task, self._config, notes)

    def _model(self) -> Any:
        return self.model
