"""The typed configuration of a training run: every field of ``configs/*.yaml``.

jsonargparse reads the YAML file and the command line against these dataclasses, so that an unknown
or ill-typed field is an error that names it; ranges are checked here.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from jsonargparse import ActionConfigFile, ArgumentParser  # pyright: ignore[reportPrivateImportUsage]

from agents.model_files import AFTERSTATE_SUFFIX, PPO_SUFFIX
from deck_of_spies_env import ENV_IDS
from deck_of_spies_env.integrations.sb3_skirmish import SHAPINGS
from deck_of_spies_env.skirmish.bots import BOTS
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.games import scoring_of
from deck_of_spies_env.solitaire.rules import Rules
from deck_of_spies_env.vectors import LANES

SKIRMISH_ID = "Skirmish-v0"
_MOST_DEALS = 10_000_000
_MOST_THREADS = 256


@dataclass(frozen=True)
class EnvConfig:
    """The environment.

    Args:
        id: registered id.
        num_envs: games played at a time.
        num_players: at a table of Skirmish.
        objective: ``win``, ``keys``, ``perfect`` or weights over these; None for the id's own. Of
            Deck of Spies only.
        shaping: potential-based shaping, ``key_spies`` in Deck of Spies and ``points`` in Skirmish,
            or None.
        rules: fields of the rule set that differ from the default.
    """

    id: str = "DeckOfSpies-v0"
    num_envs: int = 256
    num_players: int = 2
    objective: str | dict[str, float] | None = None
    shaping: str | None = None
    rules: dict[str, bool | int | str] = field(default_factory=dict[str, bool | int | str])

    def __post_init__(self) -> None:
        known = (*ENV_IDS, SKIRMISH_ID)
        if self.id not in known:
            raise ValueError(f"env.id: unknown {self.id!r}; there are {', '.join(known)}")
        _positive("env.num_envs", self.num_envs)
        try:
            if self.is_skirmish:
                self._check_skirmish()
                return
            Rules.of(self.rules)
            scoring_of("win" if self.objective is None else self.objective, self.shaping)
        except ValueError as error:
            raise ValueError(f"env: {error}") from None

    def _check_skirmish(self) -> None:
        SkirmishRules.of(self.rules).record(self.num_players)
        if self.objective is not None:
            raise ValueError("objective: Skirmish has one, to win (S12)")
        if self.shaping not in (None, *SHAPINGS):
            raise ValueError(f"shaping must be one of {', '.join(SHAPINGS)}, got {self.shaping!r}")

    @property
    def is_skirmish(self) -> bool:
        """Whether the game is Skirmish, else it is Deck of Spies."""
        return self.id == SKIRMISH_ID

    @property
    def resolved_objective(self) -> str | dict[str, float]:
        """The objective, which is that of the id where none is given."""
        if self.objective is None:
            return ENV_IDS[self.id].get("objective", "win")
        return self.objective

    def arguments(self) -> dict[str, Any]:
        """Arguments for the environment's constructor."""
        arguments: dict[str, Any] = {"rules": self.rules, "shaping": self.shaping}
        if self.objective is not None:
            arguments["objective"] = self.objective
        return arguments


@dataclass(frozen=True)
class PolicyConfig:
    """The network.

    Args:
        kind: ``candidate`` scores each legal play by what it uses and leaves; ``flat`` is an MLP.
        hidden: width of the first layer.
        head: width of the second layer.
        critic: ``mean`` predicts the mean of what will be paid, ``distribution`` how likely each
            payment is; of ``candidate`` only.
        critic_hidden: width of a first layer that the critic has to itself, or None if it shares
            that of the scorer; of ``candidate`` only.
    """

    kind: Literal["candidate", "flat"] = "candidate"
    hidden: int = 128
    head: int = 64
    critic: Literal["mean", "distribution"] = "mean"
    critic_hidden: int | None = None

    def __post_init__(self) -> None:
        _positive("policy.hidden", self.hidden)
        _positive("policy.head", self.head)
        if self.critic_hidden is not None:
            _positive("policy.critic_hidden", self.critic_hidden)


@dataclass(frozen=True)
class PPOConfig:
    """MaskablePPO's hyperparameters, under SB3's names.

    Args:
        total_timesteps: decisions to train for, over all games.
        learning_rate: at the start.
        final_learning_rate: at the end; linear in between.
        n_steps: decisions per game between two updates.
        batch_size: minibatch.
        n_epochs: passes over the rollout per update.
        gamma: discount; 1, since an episode has at most 72 decisions and pays at its end.
        gae_lambda: of the advantage estimator.
        clip_range: of the policy ratio.
        ent_coef: entropy bonus at the start.
        final_ent_coef: at the end; linear in between. None: as at the start.
        vf_coef: weight of the value loss.
        max_grad_norm: gradient clipping.
        normalize_advantage: per minibatch.
        target_kl: stop an update early beyond this divergence, or None.
    """

    total_timesteps: int = 1_000_000
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.0
    n_steps: int = 128
    batch_size: int = 4096
    n_epochs: int = 4
    gamma: float = 1.0
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.005
    final_ent_coef: float | None = None
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    normalize_advantage: bool = True
    target_kl: float | None = None

    def __post_init__(self) -> None:
        for name in ("total_timesteps", "n_steps", "n_epochs", "learning_rate", "max_grad_norm"):
            _positive(f"ppo.{name}", getattr(self, name))
        _positive("ppo.clip_range", self.clip_range)
        if self.batch_size < 2:
            raise ValueError(f"ppo.batch_size must be at least 2, got {self.batch_size}")
        for name in ("final_learning_rate", "ent_coef", "final_ent_coef", "vf_coef"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"ppo.{name} must not be negative, got {value}")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"ppo.{name} must be in 0-1, got {getattr(self, name)}")
        if self.target_kl is not None:
            _positive("ppo.target_kl", self.target_kl)


@dataclass(frozen=True)
class TDConfig:
    """TD(lambda) on afterstates, see ``agents/training/td.py``.

    Args:
        total_timesteps: decisions to train for, over all games.
        learning_rate: of Adam, at the start.
        final_learning_rate: at the end; linear in between.
        n_steps: decisions per game between two passes of learning.
        batch_size: minibatch.
        trace_decay: lambda, how far a target looks beyond the next decision.
        exploration: probability of a random action at the start; falls to 0 linearly.
    """

    total_timesteps: int = 1_000_000
    learning_rate: float = 2e-3
    final_learning_rate: float = 0.0
    n_steps: int = 64
    batch_size: int = 2048
    trace_decay: float = 0.95
    exploration: float = 0.0

    def __post_init__(self) -> None:
        for name in ("total_timesteps", "learning_rate", "batch_size"):
            _positive(f"td.{name}", getattr(self, name))
        if self.n_steps < 2:
            raise ValueError(f"td.n_steps must be at least 2, got {self.n_steps}")
        if self.final_learning_rate < 0:
            raise ValueError(
                f"td.final_learning_rate must not be negative, got {self.final_learning_rate}"
            )
        for name in ("trace_decay", "exploration"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"td.{name} must be in 0-1, got {getattr(self, name)}")


@dataclass(frozen=True)
class SelfPlayConfig:
    """Whom an agent of Skirmish trains with, beside itself.

    Args:
        pool_tables: share of the tables where it sits in one seat and the pool in the others; at
            the rest of them it plays all seats.
        past_selves: how often a past self is drawn from the pool, beside the bots.
        bots: name -> how often it is drawn.
        size: past selves kept, the latest ones.
        every: decisions between two of them.
        average: what is judged and kept is not the last policy but the average of all, learnt by a
            network of its own.
        memory: decisions that it learns from, at most.
    """

    pool_tables: float = 0.25
    past_selves: float = 1.0
    bots: dict[str, float] = field(default_factory=dict[str, float])
    size: int = 8
    every: int = 500_000
    average: bool = False
    memory: int = 200_000

    def __post_init__(self) -> None:
        if not 0 <= self.pool_tables <= 1:
            raise ValueError(f"self_play.pool_tables must be in 0-1, got {self.pool_tables}")
        for name in ("size", "every", "memory"):
            _positive(f"self_play.{name}", getattr(self, name))
        if self.past_selves < 0:
            raise ValueError(f"self_play.past_selves must not be negative, got {self.past_selves}")
        for name, weight in self.bots.items():
            if name not in BOTS:
                raise ValueError(f"self_play.bots: unknown {name!r}; there are {', '.join(BOTS)}")
            if weight < 0:
                raise ValueError(f"self_play.bots: {name} must not be negative, got {weight}")
        if self.past_selves + sum(self.bots.values()) <= 0:
            raise ValueError("self_play: past_selves and bots must not all be 0")


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation during training, on held-out deals: masked play, deterministic in Deck of Spies.

    Args:
        every: decisions between evaluations; there is one at the end in any case.
        deals: deals of the ``select`` bank per evaluation, 2 to 10 million.
        measure: what the best model is best at: ``win_rate``, ``key_spies`` or ``perfect``; of
            Skirmish always ``win_rate``, the share of wins.
        opponent: of Skirmish: the bot that sits in all other seats.
        samples: deals of each evaluation whose games are recorded, 0 for none.
    """

    every: int = 500_000
    deals: int = 2_000
    measure: Literal["win_rate", "key_spies", "perfect"] = "win_rate"
    opponent: str = "intrigue"
    samples: int = 3

    def __post_init__(self) -> None:
        if self.opponent not in BOTS:
            raise ValueError(
                f"evaluation.opponent: unknown {self.opponent!r}; there are {', '.join(BOTS)}"
            )
        _positive("evaluation.every", self.every)
        if not 2 <= self.deals <= _MOST_DEALS:
            raise ValueError(f"evaluation.deals must be in 2-{_MOST_DEALS}, got {self.deals}")
        if not 0 <= self.samples <= self.deals:
            raise ValueError(f"evaluation.samples must be in 0-{self.deals}, got {self.samples}")


@dataclass(frozen=True)
class TrainConfig:
    """A training run.

    Args:
        algorithm: ``ppo`` for MaskablePPO, ``afterstate`` for a value network by TD(lambda).
        name: of the run; the run directory is ``runs/NAME-seedSEED`` unless run_dir is given.
        seed: seed of everything, 0 to 2^24 - 1.
        threads: how many share an update.
        device: torch device, ``auto`` takes a GPU if there is one.
        checkpoint_every: decisions between checkpoints.
        run_dir: where to write, or None for the default.
    """

    algorithm: Literal["ppo", "afterstate"] = "ppo"
    name: str = "deck_of_spies"
    seed: int = 0
    threads: int = 1
    device: str = "auto"
    checkpoint_every: int = 500_000
    run_dir: str | None = None
    env: EnvConfig = field(default_factory=EnvConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    td: TDConfig = field(default_factory=TDConfig)
    self_play: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 24:
            raise ValueError(f"seed must be in 0-{(1 << 24) - 1}, got {self.seed}")
        if not 1 <= self.threads <= _MOST_THREADS:
            raise ValueError(f"threads must be in 1-{_MOST_THREADS}, got {self.threads}")
        # Advantages are normalised within a minibatch, which one decision alone would make NaN.
        rollout = self.ppo.n_steps * self.num_rows
        if rollout % self.ppo.batch_size == 1 or rollout == 1:
            raise ValueError(
                f"ppo.n_steps x {self.num_rows} games is {rollout}: with ppo.batch_size "
                f"{self.ppo.batch_size} a minibatch of one decision is left over"
            )
        if self.env.is_skirmish:
            self._check_skirmish()
        if self.algorithm == "afterstate":
            self._check_afterstate()
        elif self.policy.critic == "distribution" and self.env.shaping is not None:
            raise ValueError("env.shaping: policy.critic distribution knows final payments only")
        _positive("checkpoint_every", self.checkpoint_every)
        if not self.name or "/" in self.name:
            raise ValueError(f"name must be a plain file name, got {self.name!r}")

    def _check_skirmish(self) -> None:
        if self.algorithm != "ppo" or self.policy.kind != "flat":
            raise ValueError("Skirmish is learnt by algorithm ppo with policy.kind flat")
        if self.evaluation.measure != "win_rate":
            raise ValueError("evaluation.measure must be win_rate for Skirmish")

    @property
    def pool_tables(self) -> int:
        """At how many tables of Skirmish the pool plays."""
        return round(self.env.num_envs * self.self_play.pool_tables)

    @property
    def num_rows(self) -> int:
        """How many seats learn at a time; games in Deck of Spies."""
        if not self.env.is_skirmish:
            return self.env.num_envs
        return (self.env.num_envs - self.pool_tables) * self.env.num_players + self.pool_tables

    def _check_afterstate(self) -> None:
        for name in ("hidden", "head"):
            if getattr(self.policy, name) % LANES:
                raise ValueError(
                    f"policy.{name} must be a multiple of {LANES} for algorithm afterstate, "
                    f"got {getattr(self.policy, name)}"
                )
        if self.env.shaping is not None:
            raise ValueError("env.shaping: algorithm afterstate learns final counts, not rewards")

    @property
    def section(self) -> str:
        """The section with the algorithm's hyperparameters."""
        return "ppo" if self.algorithm == "ppo" else "td"

    @property
    def total_timesteps(self) -> int:
        """Decisions to train for."""
        return getattr(self, self.section).total_timesteps

    @property
    def model_suffix(self) -> str:
        """Of the run's model files."""
        return PPO_SUFFIX if self.algorithm == "ppo" else AFTERSTATE_SUFFIX

    @property
    def directory(self) -> Path:
        """The run directory."""
        return Path(self.run_dir or f"runs/{self.name}-seed{self.seed}")


class ConfigError(ValueError):
    """A bad configuration or command line; the message is one line for the user."""


def read_command_line(arguments: Sequence[str]) -> tuple[TrainConfig, Path | None, str]:
    """The configuration that a command line asks for.

    Args:
        arguments: without the program's name. ``--resume RUN_DIR`` reads the run's own
            configuration; other options override it, but for what the run consists of.

    Returns:
        The configuration, the run directory to resume or None, and the configuration as YAML.

    Raises:
        ConfigError: what is wrong, in one line.
    """
    resume, rest = _take_resume(list(arguments))
    if resume is None:
        config, text = _parse(rest)
        return config, None, text
    saved = resume / "config.yaml"
    if not saved.is_file():
        raise ConfigError(f"can't resume {resume}: there is no {saved}")
    original = ["--config", str(saved), "--run_dir", str(resume)]
    config, text = _parse([*original, *rest, "--run_dir", str(resume)])
    _check_same_run(_parse(original)[0], config)
    return config, resume, text


def _check_same_run(original: TrainConfig, changed: TrainConfig) -> None:
    """Raise ConfigError if games, network or seed of a run differ from what they were."""
    for name, before, after in (
        ("algorithm", original.algorithm, changed.algorithm),
        ("env", original.env, changed.env),
        ("policy", original.policy, changed.policy),
        ("self_play", original.self_play, changed.self_play),
        ("seed", original.seed, changed.seed),
        ("ppo.n_steps", original.ppo.n_steps, changed.ppo.n_steps),
        ("td.n_steps", original.td.n_steps, changed.td.n_steps),
    ):
        if before != after:
            raise ConfigError(f"{_first_change(name, before, after)}; a run goes on as it began")


def _first_change(name: str, before: Any, after: Any) -> str:
    """In words; of a section its first field that differs."""
    if is_dataclass(before):
        for field in fields(before):
            old, new = getattr(before, field.name), getattr(after, field.name)
            if old != new:
                return _first_change(f"{name}.{field.name}", old, new)
    return f"{name} can't change from {before!r} to {after!r}"


def _parse(arguments: Sequence[str]) -> tuple[TrainConfig, str]:
    parser = ArgumentParser(
        exit_on_error=False, allow_abbrev=False, description="Train an agent from a config."
    )
    parser.add_argument("--config", action=ActionConfigFile, help="a file of configs/")
    parser.add_argument("--resume", metavar="RUN_DIR", help="go on from the last checkpoint")
    parser.add_class_arguments(TrainConfig, None)
    try:
        with redirect_stderr(io.StringIO()):
            namespace = parser.parse_args(list(arguments))
            made = parser.instantiate(namespace).as_dict()
        for name in ("config", "resume"):
            made.pop(name)
            namespace.pop(name)
        config = TrainConfig(**made)
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code in (0, None):
            raise  # --help
        raise ConfigError(_one_line(error, arguments)) from None
    return config, parser.dump(namespace, skip_validation=True)


def _one_line(error: BaseException, arguments: Sequence[str]) -> str:
    """What is wrong, in one line; the YAML parser does not say which file it read."""
    message = " ".join(str(error).split())
    if "parsing config" in message and "--config" in arguments:
        message = f"{arguments[arguments.index('--config') + 1]}: {message}"
    return message


def _take_resume(arguments: list[str]) -> tuple[Path | None, list[str]]:
    """``--resume RUN_DIR`` out of the arguments: it names the configuration to read first."""
    for i, argument in enumerate(arguments):
        if argument.startswith("--resume="):
            return Path(argument.partition("=")[2]), arguments[:i] + arguments[i + 1 :]
        if argument == "--resume":
            if i + 1 == len(arguments):
                raise ConfigError("--resume needs a run directory")
            return Path(arguments[i + 1]), arguments[:i] + arguments[i + 2 :]
    return None, arguments


def _positive(name: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{name} must be positive, got {value}")


def fail(message: object) -> NoReturn:
    """End the program for a user's mistake: one line on stderr, exit status 2."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(2)
