"""Run directories: what a training run writes, and how a killed one goes on.

config.yaml         the resolved configuration
versions.json       versions of the libraries, and the git commit
progress.csv        training log, beside TensorBoard's event files
evaluations.csv     one row per evaluation on held-out deals
samples/            records of a few games of each, by the number of decisions
checkpoint/         the last checkpoint: model, games, random states
best_model.*        best by the configured measure: .zip of PPO, .safetensors of a value network
last_model.*        the end of training
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock, Timeout
from stable_baselines3.common.logger import (
    CSVOutputFormat,
    KVWriter,
    Logger,
    TensorBoardOutputFormat,
)

from agents.model_files import BEST_MODEL, EVALUATIONS, LAST_MODEL
from agents.training.config import ConfigError, TrainConfig
from agents.training.versions import git_commit, versions_of
from deck_of_spies_env.files import write_text_atomically
from deck_of_spies_env.records import GameRecord, write_records

_LIBRARIES = (
    "deck_of_spies_env",
    "gymnasium",
    "numpy",
    "numba",
    "torch",
    "stable-baselines3",
    "sb3-contrib",
)


class RunDirectory:
    """Paths and files of one run.

    Args:
        path: the directory.
        config: of the run.
    """

    def __init__(self, path: Path, config: TrainConfig) -> None:
        self.path = path
        self.config = config
        self.best_model = path / f"{BEST_MODEL}{config.model_suffix}"
        self.last_model = path / f"{LAST_MODEL}{config.model_suffix}"
        self._evaluations = path / EVALUATIONS
        self._samples = path / "samples"
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

    def save_checkpoint(self, write: Callable[[Path], None]) -> None:
        """Keep a checkpoint, whole or not at all.

        Args:
            write: writes its files into the folder that it is given.
        """
        beside = self.path / ".checkpoint.new"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        write(beside)
        old = self._checkpoint_before
        if self._checkpoint.exists():  # else the old one is all there is
            shutil.rmtree(old, ignore_errors=True)
            self._checkpoint.replace(old)
        beside.replace(self._checkpoint)
        shutil.rmtree(old, ignore_errors=True)

    def load_checkpoint(self, read: Callable[[Path], None]) -> None:
        """Go on from the last checkpoint.

        Args:
            read: reads the files of the folder that it is given.

        Raises:
            ConfigError: it is corrupt.
        """
        # A kill between the two renames of save_checkpoint leaves the last one under its old name.
        folder = self._checkpoint if self._checkpoint.exists() else self._checkpoint_before
        try:
            read(folder)
        except Exception as error:  # whatever broken bytes make torch, zipfile or pickle raise
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ConfigError(f"the checkpoint {folder} is corrupt: {reason}") from None

    def add_evaluation(self, row: dict[str, float]) -> None:
        """Append an evaluation to the table, whose columns are the keys of the row."""
        new = not self._evaluations.exists()
        with open(self._evaluations, "a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)

    def add_samples(self, timesteps: int, games: Sequence[GameRecord]) -> None:
        """Keep the records of a few games of an evaluation, if there are any."""
        if games:
            self._samples.mkdir(exist_ok=True)
            write_records(self._samples / f"{timesteps}.jsonl", games)

    def drop_evaluations_after(self, timesteps: int) -> None:
        """Forget what a killed run measured after the checkpoint: it will be measured again."""
        if not self._evaluations.exists():
            return
        header, *rows = self._evaluations.read_text().splitlines()
        kept = [row for row in rows if int(row.partition(",")[0] or 0) <= timesteps]
        write_text_atomically(self._evaluations, "\n".join((header, *kept, "")))
        for path in self._samples.glob("*.jsonl"):
            if int(path.stem) > timesteps:
                path.unlink()


def _versions() -> dict[str, str]:
    return {**versions_of(_LIBRARIES), "git_commit": git_commit()}


def _next_name(folder: Path, stem: str, suffix: str) -> str:
    """``progress.csv``, then ``progress.1.csv`` and so on: a resumed run overwrites no log."""
    taken = len(list(folder.glob(f"{stem}*.{suffix}")))
    return f"{stem}.{taken}.{suffix}" if taken else f"{stem}.{suffix}"
