"""What training runs do beside learning: evaluation on held-out deals, and a progress bar."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from agents.training.config import TrainConfig
from agents.training.runs import RunDirectory
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.seeds import agent_seed, deal_seeds
from deck_of_spies_env.evaluation.statistics import (
    MAX_KEY_SPIES,
    bounded_mean_interval,
    wilson_interval,
)
from deck_of_spies_env.evaluation.tables import TableResult, play_tables
from deck_of_spies_env.records import GameRecord, record_deals, record_tables
from deck_of_spies_env.skirmish.bots import make_bot
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules

_PLAIN_LINE_EVERY = 30.0  # seconds, where there is no terminal for a bar


class Score(NamedTuple):
    """An evaluation's figures.

    Attributes:
        win_rate, win_rate_low, win_rate_high: with the 95 % Wilson interval.
        key_spies, key_spies_low, key_spies_high: mean, with its 95 % interval.
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
        key_spies = bounded_mean_interval(result.key_spies, 0, MAX_KEY_SPIES)
        return cls(
            float(result.wins.mean()),
            *wins,
            float(result.key_spies.mean()),
            *key_spies,
            float((result.key_spies == MAX_KEY_SPIES).mean()),
        )

    def text(self) -> str:
        """The figures in words."""
        return (
            f"win rate {self.win_rate:.2%} [{self.win_rate_low:.2%}, {self.win_rate_high:.2%}], "
            f"Key Spies {self.key_spies:.2f}, 12 of 12 {self.perfect:.2%}"
        )


class TableScore(NamedTuple):
    """An evaluation's figures in Skirmish, against one bot in all other seats.

    Attributes:
        win_rate, win_rate_low, win_rate_high: share of wins, with the 95 % interval over deals.
        payoff, payoff_low, payoff_high: mean payoff (S12), likewise.
        margin: mean points more than the best of the others.
    """

    win_rate: float
    win_rate_low: float
    win_rate_high: float
    payoff: float
    payoff_low: float
    payoff_high: float
    margin: float

    @classmethod
    def of(cls, result: TableResult) -> TableScore:
        """The figures of the agent that sits first."""
        shares, payoffs = result.share_by_deal(0), result.payoff_by_deal(0)
        return cls(
            float(shares.mean()),
            *bounded_mean_interval(shares, 0, 1),
            float(payoffs.mean()),
            *bounded_mean_interval(payoffs, -1, 1),
            float(result.margins[:, :, 0].mean()),
        )

    def text(self) -> str:
        """The figures in words."""
        return (
            f"share of wins {self.win_rate:.2%} [{self.win_rate_low:.2%}, "
            f"{self.win_rate_high:.2%}], payoff {self.payoff:+.3f}"
        )


AnyScore = Score | TableScore


def evaluate(agent: Agent, config: TrainConfig) -> AnyScore:
    """Play the held-out deals of a run: alone, or at tables with the bot of the configuration."""
    seeds, env = deal_seeds("select", config.seed, config.evaluation.deals), config.env
    if not env.is_skirmish:
        return Score.of(play_deals(agent, seeds, rules=Rules.of(env.rules)))
    table = _table(agent, config)
    return TableScore.of(play_tables(table, seeds, rules=SkirmishRules.of(env.rules)))


def sample_games(agent: Agent, config: TrainConfig, name: str) -> Sequence[GameRecord]:
    """Records of the first few of these deals, in Skirmish from every seat."""
    seeds, env = deal_seeds("select", config.seed, config.evaluation.samples), config.env
    if not seeds:
        return []
    if not env.is_skirmish:
        return record_deals(agent, seeds, name=name, rules=Rules.of(env.rules))
    names = [name, *[config.evaluation.opponent] * (env.num_players - 1)]
    rules = SkirmishRules.of(env.rules)
    return record_tables(_table(agent, config), seeds, names=names, rules=rules)


def _table(agent: Agent, config: TrainConfig) -> list[Agent]:
    """The agent and the bots that it is judged by, all reset."""
    bot = make_bot(config.evaluation.opponent, config.env.num_players)
    for player in (agent, bot):
        player.reset(agent_seed(config.seed))
    return [agent, *[bot] * (config.env.num_players - 1)]


class Judge:
    """Evaluates a run's agent on its held-out deals, and knows when that is due.

    Args:
        config: of the run.
        run: its directory, whose table of evaluations gets a row each time.
        notes: of the checkpoint that the run goes on from, empty for a new run.
    """

    def __init__(self, config: TrainConfig, run: RunDirectory, notes: dict[str, Any]) -> None:
        self._config, self._run = config, run
        self._best: float = notes.get("best", float("-inf"))
        self._seconds_before: float = notes.get("seconds", 0.0)
        self._next_evaluation: int = notes.get("next_evaluation", config.evaluation.every)
        self._next_checkpoint: int = notes.get("next_checkpoint", config.checkpoint_every)
        self._started = time.monotonic()

    def seconds(self) -> float:
        """Wall time of the run, evaluations included."""
        return self._seconds_before + time.monotonic() - self._started

    def is_due(self, timesteps: int) -> bool:
        """Whether an evaluation is due."""
        return timesteps >= self._next_evaluation

    def checkpoint_is_due(self, timesteps: int) -> bool:
        """Whether a checkpoint is due; says so once."""
        due = timesteps >= self._next_checkpoint
        if due:
            self._next_checkpoint = timesteps + self._config.checkpoint_every
        return due

    def judge(self, agent: Agent, timesteps: int) -> tuple[AnyScore, bool]:
        """Evaluate, and tell the figures and whether they are the best so far."""
        self._next_evaluation = timesteps + self._config.evaluation.every
        score = evaluate(agent, self._config)
        row = {
            "timesteps": timesteps,
            "seconds": round(self.seconds(), 1),
            "deals": self._config.evaluation.deals,
        }
        self._run.add_evaluation(row | score._asdict())
        name = f"{self._config.name} at {timesteps}"
        self._run.add_samples(timesteps, sample_games(agent, self._config, name))
        measured: float = getattr(score, self._config.evaluation.measure)
        is_best = measured > self._best
        self._best = max(measured, self._best)
        return score, is_best

    def notes(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "best": self._best,
            "seconds": self.seconds(),
            "next_evaluation": self._next_evaluation,
            "next_checkpoint": self._next_checkpoint,
        }


class ProgressBar:
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
        """Begin, or go on, at a step."""
        self._first_step = step
        self._started = self._last_line = time.monotonic()
        if self._progress.console.is_terminal:
            self._progress.start()

    def update(self, step: int, figures: str) -> None:
        """Show how far it is and how it goes."""
        speed = (step - self._first_step) / max(time.monotonic() - self._started, 1e-9)
        figures = f"{speed:,.0f} steps/s  {figures}"
        self._progress.update(self._task, completed=min(step, self._total), figures=figures)
        now = time.monotonic()
        if not self._progress.console.is_terminal and now - self._last_line > _PLAIN_LINE_EVERY:
            self._last_line = now
            print(f"{step:,} of {self._total:,} steps  {figures}", flush=True)

    def stop(self) -> None:
        """End."""
        self._progress.stop()
