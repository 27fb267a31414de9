"""TD(lambda) on afterstates: the learner behind ``algorithm: afterstate``.

The network plays many games side by side by its own best plays and learns, for the afterstate of
each decision, the distribution of the final number of Key Spies: the lambda-mixture of its own
distributions at the decisions that follow (Sutton, 1988; for distributions Bellemare, Dabney and
Munos, 2017). Playing and targets are kernels; the gradient is PyTorch's.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from stable_baselines3.common.logger import Logger
from torch.nn.functional import embedding_bag

from agents import afterstate_kernels as kernels
from agents.afterstate import AfterstateAgent
from agents.afterstate_network import (
    load_network,
    random_weights,
    save_network,
)
from agents.objectives import utility_of
from agents.training.config import TrainConfig
from agents.training.judging import AnyScore, Judge, ProgressBar
from agents.training.runs import RunDirectory
from deck_of_spies_env.compiled import compiling
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.solitaire.afterstates import (
    MOST_ENTRIES,
    NUM_COUNTS,
    AfterstateValue,
    Network,
    scratch_for,
)
from deck_of_spies_env.solitaire.games import SNAPSHOT
from deck_of_spies_env.solitaire.rollouts import deal_snapshots
from deck_of_spies_env.solitaire.rules import STATE, Rules, standard_start

_NETWORK, _STATE = "network.safetensors", "state.pt"


class _Encode(th.autograd.Function):
    """The first layer: sums of the rows of those entries that are 1."""

    @staticmethod
    def forward(
        ctx: Any,
        first: th.Tensor,
        entries: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
    ) -> th.Tensor:
        ctx.entries, ctx.starts, ctx.shape = entries, starts, first.shape
        return embedding_bag(th.from_numpy(entries), first, th.from_numpy(starts[:-1]), mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: th.Tensor) -> tuple[th.Tensor | None, ...]:
        gradient = gradients[0].contiguous()
        of_first = gradient.new_zeros(ctx.shape)
        kernels.add_entry_gradients(gradient.numpy(), ctx.entries, ctx.starts, of_first.numpy())
        return of_first, None, None


class AfterstateLearner:
    """A training run: self-play and learning by turns, with evaluations and checkpoints.

    Args:
        config: of the run, with ``algorithm: afterstate``.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.num_timesteps = 0
        self._notes: dict[str, Any] = {}
        self._rules = Rules.of(config.env.rules)
        self._utility = utility_of(config.env.resolved_objective, self._rules)
        self._rng = np.random.default_rng(config.seed)
        weights = random_weights(config.policy.hidden, config.policy.head, self._rng)
        self._parameters = [th.nn.Parameter(th.from_numpy(array)) for array in weights]
        # The kernels play with the very memory that the optimiser writes to.
        self.network = Network(*(parameter.detach().numpy() for parameter in self._parameters))
        self._optimizer = th.optim.Adam(self._parameters, lr=config.td.learning_rate)
        self._records = deal_snapshots(
            deal_seeds("train", config.seed, config.env.num_envs), self._rules
        )
        num_steps, num_games = config.td.n_steps, config.env.num_envs
        self._afterstates = np.zeros((num_steps, num_games), STATE)
        self._counts = np.zeros((num_steps, num_games, NUM_COUNTS), np.float32)
        self._explored = np.zeros((num_steps, num_games), np.bool_)
        self._finals = np.zeros((num_steps, num_games), np.int8)
        self._targets = np.zeros((num_steps - 1, num_games, NUM_COUNTS), np.float32)
        self._scratch = scratch_for(self.network, self._rules)

    def learn(self, run: RunDirectory) -> AnyScore:
        """Train to the end of the run, and return the last evaluation's figures."""
        self._compile()
        judge = Judge(self.config, run, self._notes)
        logger = run.logger()
        bar = ProgressBar(self.config.td.total_timesteps)
        bar.start(self.num_timesteps)
        while self._progress_remaining() > 0:
            self._play()
            loss = self._update()
            bar.update(self.num_timesteps, f"Key Spies {self._recent_key_spies():.2f}")
            logger.record("train/loss", loss)
            logger.record("rollout/key_spies", self._recent_key_spies())
            logger.record("time/seconds", judge.seconds())
            if self._progress_remaining() > 0:  # the end is judged and kept in any case
                if judge.is_due(self.num_timesteps):
                    self._evaluate(judge, run, logger)
                if judge.checkpoint_is_due(self.num_timesteps):
                    run.save_checkpoint(partial(self._write_checkpoint, judge))
                logger.dump(self.num_timesteps)
        bar.stop()
        score = self._evaluate(judge, run, logger)
        logger.dump(self.num_timesteps)
        self._save(run.last_model)
        run.save_checkpoint(partial(self._write_checkpoint, judge))
        return score

    def _compile(self) -> None:
        """Compile or load the kernels, safe among processes: play no game and learn nothing."""
        states, counts = np.zeros((1, 0), STATE), np.zeros((1, 0, NUM_COUNTS), np.float32)
        explored, finals = np.zeros((1, 0), np.bool_), np.zeros((1, 0), np.int8)
        rules, start, none = self._rules.record, standard_start(), np.zeros(0, SNAPSHOT)
        common = (self.network, self._utility, self._scratch, 0.0)
        with compiling():
            kernels.self_play(none, rules, start, *common, states, counts, explored, finals)
            kernels.write_targets(counts, explored, finals, 0.0, counts)
            self._log_probs(states[0])

    def _progress_remaining(self) -> float:
        return max(1 - self.num_timesteps / self.config.td.total_timesteps, 0.0)

    def _play(self) -> None:
        td = self.config.td
        kernels.self_play(
            self._records,
            self._rules.record,
            standard_start(),
            self.network,
            self._utility,
            self._scratch,
            td.exploration * self._progress_remaining(),
            self._afterstates,
            self._counts,
            self._explored,
            self._finals,
        )
        kernels.write_targets(
            self._counts, self._explored, self._finals, td.trace_decay, self._targets
        )
        self.num_timesteps += self._finals.size

    def _update(self) -> float:
        """One pass over what was played; the mean loss."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._learning_rate()
        afterstates = self._afterstates[:-1].reshape(-1)
        targets = th.from_numpy(self._targets.reshape(-1, NUM_COUNTS))
        order = self._rng.permutation(len(afterstates))
        size = self.config.td.batch_size
        losses = [
            self._learn_batch(afterstates[rows], targets[rows])
            for rows in np.split(order, range(size, len(order), size))
        ]
        return float(np.mean(losses))

    def _learning_rate(self) -> float:
        td = self.config.td
        return td.final_learning_rate + self._progress_remaining() * (
            td.learning_rate - td.final_learning_rate
        )

    def _learn_batch(self, afterstates: npt.NDArray[Any], targets: th.Tensor) -> float:
        log_probs = self._log_probs(afterstates)
        loss = -(targets * log_probs).sum(dim=1).mean()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())

    def _log_probs(self, afterstates: npt.NDArray[Any]) -> th.Tensor:
        """The network with gradients: log-probabilities (M, NUM_COUNTS)."""
        entries = np.empty(len(afterstates) * MOST_ENTRIES, np.int64)
        starts = np.empty(len(afterstates) + 1, np.int64)
        count = kernels.list_entries(afterstates, entries, starts)
        first, first_bias, second, second_bias, last, last_bias = self._parameters
        encoded: Any = _Encode.apply(first, entries[:count], starts)
        hidden = (encoded + first_bias).relu()
        head = (hidden @ second + second_bias).relu()
        return (head @ last + last_bias)[:, :NUM_COUNTS].log_softmax(dim=1)

    def _recent_key_spies(self) -> float:
        ended = self._finals[self._finals >= 0]
        return float(ended.mean()) if ended.size else float("nan")

    # --- Evaluation and files ---

    def _evaluate(self, judge: Judge, run: RunDirectory, logger: Logger) -> AnyScore:
        value = AfterstateValue(self.network, self._rules, self._utility)
        score, is_best = judge.judge(AfterstateAgent(value), self.num_timesteps)
        for name, figure in score._asdict().items():
            logger.record(f"eval/{name}", figure)
        if is_best:
            self._save(run.best_model)
        return score

    def _save(self, path: Path) -> None:
        made = {
            "objective": self.config.env.resolved_objective,
            "seed": self.config.seed,
            "timesteps": self.num_timesteps,
        }
        save_network(self.network, self._rules, made, path)

    def _write_checkpoint(self, judge: Judge, folder: Path) -> None:
        self._save(folder / _NETWORK)
        state = {
            "timesteps": self.num_timesteps,
            "optimizer": self._optimizer.state_dict(),
            "records": self._records.tobytes(),
            "random": self._rng.bit_generator.state,
            "notes": judge.notes(),
        }
        th.save(state, folder / _STATE)

    def read_checkpoint(self, folder: Path) -> None:
        """Go on from a checkpoint; raises whatever broken files make of it."""
        network, _ = load_network(folder / _NETWORK, self._rules)
        for parameter, array in zip(self._parameters, network, strict=True):
            parameter.data.copy_(th.from_numpy(array))
        state = th.load(folder / _STATE, weights_only=False)
        self.num_timesteps = state["timesteps"]
        self._optimizer.load_state_dict(state["optimizer"])
        self._records = np.frombuffer(state["records"], SNAPSHOT).copy()
        self._rng.bit_generator.state = state["random"]
        self._notes = state["notes"]
