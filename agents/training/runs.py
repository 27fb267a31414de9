"""Run directories: what a training run writes, and how a killed one goes on.

config.yaml         the resolved configuration
versions.json       versions of the libraries, and the git commit
progress.csv        training log, beside TensorBoard's event files
evaluations.csv     one row per evaluation on held-out deals
checkpoint/         the last checkpoint: model, games, random states
best_model.zip      best by the configured measure
last_model.zip      the end of training
"""

from __future__ import annotations

import csv
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from filelock import FileLock, Timeout
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import (
    CSVOutputFormat,
    KVWriter,
    Logger,
    TensorBoardOutputFormat,
)

from agents.ppo import BEST_MODEL, LAST_MODEL
from agents.training.config import ConfigError, TrainConfig
from agents.training.models import save_model
from agents.training.versions import git_commit, versions_of
from deck_of_spies_env.files import write_text_atomically
from deck_of_spies_env.integrations.sb3 import DeckOfSpiesVecEnv

_LIBRARIES = (
    "deck_of_spies_env",
    "gymnasium",
    "numpy",
    "numba",
    "torch",
    "stable-baselines3",
    "sb3-contrib",
)
_MODEL, _STATE = "model.zip", "state.pt"


class RunDirectory:
    """Paths and files of one run.

    Args:
        path: the directory.
        config: of the run.
    """

    def __init__(self, path: Path, config: TrainConfig) -> None:
        self.path = path
        self.config = config
        self.best_model = path / BEST_MODEL
        self.last_model = path / LAST_MODEL
        self._evaluations = path / "evaluations.csv"
        self._checkpoint = path / "checkpoint"
        self._checkpoint_before = path / ".checkpoint.old"
        self._lock = FileLock(path / ".lock")  # released with the process, however it ends

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is something to go on from."""
        return self._checkpoint.exists() or self._checkpoint_before.exists()

    def open(self, config_yaml: str, *, resume: bool) -> None:
        """Take the directory for this process, and write down what is going to be done.

        Raises:
            ConfigError: there is a run already that is not to be resumed, another process has the
                directory, or it can't be written.
        """
        if not resume and (self.path / "config.yaml").exists():
            raise ConfigError(
                f"{self.path} holds a run already: use --resume {self.path}, or another --run_dir"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            write_text_atomically(self.path / "config.yaml", config_yaml)
            write_text_atomically(self.path / "versions.json", json.dumps(_versions(), indent=2))
        except Timeout:
            raise ConfigError(f"another process is training in {self.path}") from None
        except OSError as error:
            raise ConfigError(f"can't write to {self.path}: {error.strerror}") from None

    def logger(self) -> Logger:
        """SB3's logger into the directory; a resumed run adds to what is there."""
        table = CSVOutputFormat(str(self.path / _next_name(self.path, "progress", "csv")))
        formats: list[KVWriter] = [table, TensorBoardOutputFormat(str(self.path))]
        return Logger(str(self.path), formats)

    def save_checkpoint(
        self, model: MaskablePPO, envs: DeckOfSpiesVecEnv, notes: dict[str, Any]
    ) -> None:
        """Keep all that the run needs to go on as if nothing had happened."""
        beside = self.path / ".checkpoint.new"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        save_model(model, self.config, beside / _MODEL)
        state = {
            "timesteps": model.num_timesteps,
            "updates": model._n_updates,
            "games": envs.get_state().tobytes(),
            "episode_starts": np.asarray(model._last_episode_starts).tolist(),
            "torch_random": th.get_rng_state(),
            "numpy_random": np.random.get_state(),  # noqa: NPY002 - SB3 draws minibatches from it
            "python_random": random.getstate(),
            "notes": notes,
        }
        th.save(state, beside / _STATE)
        old = self._checkpoint_before
        if self._checkpoint.exists():  # else the old one is all there is
            shutil.rmtree(old, ignore_errors=True)
            self._checkpoint.replace(old)
        beside.replace(self._checkpoint)
        shutil.rmtree(old, ignore_errors=True)

    def load_checkpoint(self, model: MaskablePPO, envs: DeckOfSpiesVecEnv) -> dict[str, Any]:
        """Bring a fresh model, its games and the random states to where the run was.

        Hyperparameters stay those of the fresh model, so that a resumed run can change them.

        Returns:
            The notes kept with the checkpoint.

        Raises:
            ConfigError: it is corrupt.
        """
        # A kill between the two renames of save_checkpoint leaves the last one under its old name.
        folder = self._checkpoint
        if not folder.exists():
            folder = self._checkpoint_before
        try:
            model.set_parameters(str(folder / _MODEL), device=model.device)
            state = th.load(folder / _STATE, weights_only=False)
            games = np.frombuffer(state["games"], dtype=envs.get_state().dtype)
            model._last_obs = envs.set_state(games)
        except Exception as error:  # whatever broken bytes make torch, zipfile or pickle raise
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ConfigError(f"the checkpoint {folder} is corrupt: {reason}") from None
        model.num_timesteps, model._n_updates = state["timesteps"], state["updates"]
        model._last_episode_starts = np.array(state["episode_starts"], dtype=np.bool_)
        th.set_rng_state(state["torch_random"])
        np.random.set_state(state["numpy_random"])  # noqa: NPY002
        random.setstate(state["python_random"])
        return state["notes"]

    def add_evaluation(self, row: dict[str, float]) -> None:
        """Append an evaluation to the table, whose columns are the keys of the row."""
        new = not self._evaluations.exists()
        with open(self._evaluations, "a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)

    def drop_evaluations_after(self, timesteps: int) -> None:
        """Forget what a killed run measured after the checkpoint: it will be measured again."""
        if not self._evaluations.exists():
            return
        header, *rows = self._evaluations.read_text().splitlines()
        kept = [row for row in rows if int(row.partition(",")[0] or 0) <= timesteps]
        write_text_atomically(self._evaluations, "\n".join((header, *kept, "")))


def _versions() -> dict[str, str]:
    return {**versions_of(_LIBRARIES), "git_commit": git_commit()}


def _next_name(folder: Path, stem: str, suffix: str) -> str:
    """``progress.csv``, then ``progress.1.csv`` and so on: a resumed run overwrites no log."""
    taken = len(list(folder.glob(f"{stem}*.{suffix}")))
    return f"{stem}.{taken}.{suffix}" if taken else f"{stem}.{suffix}"
