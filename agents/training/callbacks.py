"""What happens while MaskablePPO learns: progress, evaluation, checkpoints."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from stable_baselines3.common.callbacks import BaseCallback

from agents.ppo import PPOAgent
from agents.training.config import TrainConfig
from agents.training.models import save_model
from agents.training.runs import RunDirectory
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.evaluation.statistics import (
    MAX_KEY_SPIES,
    mean_interval,
    wilson_interval,
)
from deck_of_spies_env.integrations.sb3 import DeckOfSpiesVecEnv
from deck_of_spies_env.solitaire.rules import Rules

_RECENT_EPISODES = 2000
_PLAIN_LINE_EVERY = 30.0  # seconds, where there is no terminal for a bar


class Score(NamedTuple):
    """An evaluation's figures.

    Attributes:
        win_rate, win_rate_low, win_rate_high: with the 95 % Wilson interval.
        key_spies, key_spies_low, key_spies_high: mean, with the 95 % t interval.
        perfect: share of games with 12 of 12.
    """

    win_rate: float
    win_rate_low: float
    win_rate_high: float
    key_spies: float
    key_spies_low: float
    key_spies_high: float
    perfect: float

    @classmethod
    def of(cls, result: MatchResult) -> Score:
        """The figures of a match."""
        wins = wilson_interval(int(result.wins.sum()), len(result.wins))
        key_spies = mean_interval(result.key_spies)
        return cls(
            float(result.wins.mean()),
            *wins,
            float(result.key_spies.mean()),
            *key_spies,
            float((result.key_spies == MAX_KEY_SPIES).mean()),
        )


class TrainingCallback(BaseCallback):
    """Progress bar, evaluation on held-out deals, best model and checkpoints.

    Evaluations and checkpoints happen between an update and the next rollout, when the model, the
    games and the random states are all that a run consists of.

    Args:
        config: of the run.
        run: its directory.
        envs: the training games.
        notes: of the checkpoint that the run goes on from, empty for a new run.
    """

    def __init__(
        self,
        config: TrainConfig,
        run: RunDirectory,
        envs: DeckOfSpiesVecEnv,
        notes: dict[str, Any],
    ) -> None:
        super().__init__()
        self._config = config
        self._run = run
        self._envs = envs
        self._rules = Rules.of(config.env.rules)
        self._seeds = deal_seeds("select", config.seed, config.evaluation.deals)
        self._wins: deque[bool] = deque(maxlen=_RECENT_EPISODES)
        self._key_spies: deque[int] = deque(maxlen=_RECENT_EPISODES)
        self._best: float = notes.get("best", float("-inf"))
        self._seconds_before: float = notes.get("seconds", 0.0)
        self._next_evaluation: int = notes.get("next_evaluation", config.evaluation.every)
        self._next_checkpoint: int = notes.get("next_checkpoint", config.checkpoint_every)
        self._started = 0.0
        self._bar = _ProgressBar(config.ppo.total_timesteps)
        self.score: Score | None = None

    def _on_training_start(self) -> None:
        self._started = time.monotonic()
        self._bar.start(self.num_timesteps)

    def _on_rollout_start(self) -> None:
        """The model has just been updated: judge and keep it when that is due."""
        if self.num_timesteps >= self._next_evaluation:
            self._next_evaluation = self.num_timesteps + self._config.evaluation.every
            self.evaluate()
        if self.num_timesteps >= self._next_checkpoint:
            self._next_checkpoint = self.num_timesteps + self._config.checkpoint_every
            self._run.save_checkpoint(self._model(), self._envs, self._notes())

    def _on_step(self) -> bool:
        infos: list[dict[str, Any]] = self.locals["infos"]
        for i in np.flatnonzero(self.locals["dones"]):
            self._wins.append(infos[i]["is_success"])
            self._key_spies.append(infos[i]["key_spies"])
        return True

    def _on_rollout_end(self) -> None:
        if self._wins:
            self.logger.record("rollout/win_rate", float(np.mean(self._wins)))
            self.logger.record("rollout/key_spies", float(np.mean(self._key_spies)))
            self._bar.update(self.num_timesteps, self._wins, self._key_spies)
        self.logger.record("time/seconds", self._seconds())

    def _on_training_end(self) -> None:
        self._bar.update(self.num_timesteps, self._wins, self._key_spies)
        self._bar.stop()
        self.evaluate()
        save_model(self._model(), self._config, self._run.last_model)
        self._run.save_checkpoint(self._model(), self._envs, self._notes())

    def evaluate(self) -> None:
        """Judge the model on the held-out deals, log it, and keep it if it is the best so far."""
        agent = PPOAgent(self._model().policy)
        score = Score.of(play_deals(agent, self._seeds, rules=self._rules))
        self.score = score
        for name, value in score._asdict().items():
            self.logger.record(f"eval/{name}", value)
        self.logger.dump(self.num_timesteps)
        self._append_row(score)
        measured: float = getattr(score, self._config.evaluation.measure)
        if measured > self._best:
            self._best = measured
            save_model(self._model(), self._config, self._run.best_model)

    def _append_row(self, score: Score) -> None:
        row = {"timesteps": self.num_timesteps, "seconds": round(self._seconds(), 1)}
        row |= {"deals": len(self._seeds)} | score._asdict()
        self._run.add_evaluation(row)

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def _notes(self) -> dict[str, Any]:
        return {
            "best": self._best,
            "seconds": self._seconds(),
            "next_evaluation": self._next_evaluation,
            "next_checkpoint": self._next_checkpoint,
        }

    def _model(self) -> Any:
        return self.model


class _ProgressBar:
    """A rich bar on a terminal, a plain line now and then elsewhere."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._progress = Progress(
            TextColumn("training"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._task = self._progress.add_task("training", total=total, figures="")
        self._started = self._last_line = time.monotonic()
        self._first_step = 0

    def start(self, step: int) -> None:
        self._first_step = step
        self._started = self._last_line = time.monotonic()
        if self._progress.console.is_terminal:
            self._progress.start()

    def update(self, step: int, wins: deque[bool], key_spies: deque[int]) -> None:
        speed = (step - self._first_step) / max(time.monotonic() - self._started, 1e-9)
        figures = f"{speed:,.0f} steps/s"
        if wins:
            figures += f"  wins {np.mean(wins):.1%}  Key Spies {np.mean(key_spies):.2f}"
        self._progress.update(self._task, completed=min(step, self._total), figures=figures)
        now = time.monotonic()
        if not self._progress.console.is_terminal and now - self._last_line > _PLAIN_LINE_EVERY:
            self._last_line = now
            print(f"{step:,} of {self._total:,} steps  {figures}", flush=True)

    def stop(self) -> None:
        self._progress.stop()
