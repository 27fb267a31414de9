"""sb3-contrib's MaskablePPO with less work beside the learning, and with several threads.

Loss, minibatches, log and files are those of MaskablePPO. Rollouts look only through the infos of
games that have ended, masks come as one array and stay bool, and a rollout is turned into tensors
once, on the device, of which a minibatch is a selection. In an update each thread takes a share of
the minibatch, with its own forward and backward pass, and the shares' gradients are added up.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, NamedTuple, cast

import numpy as np
import torch as th
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer, MaskableRolloutBufferSamples
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch.nn.functional import mse_loss

from agents.candidate_policy import CandidatePolicy


class TensorRolloutBuffer(MaskableRolloutBuffer):
    """A rollout whose minibatches are cut from tensors; the next one uses its memory again.

    Observations, actions and masks keep their dtypes.
    """

    _tensors: MaskableRolloutBufferSamples | None = None

    def reset(self) -> None:
        """Forget the rollout."""
        if not hasattr(self, "action_masks"):
            super().reset()  # allocates
            self.action_masks = self.action_masks.astype(np.bool_)
        self.pos, self.full, self._tensors = 0, False, None
        self.action_masks.fill(True)  # a rollout without masks leaves them so

    def get(
        self, batch_size: int | None = None
    ) -> Generator[MaskableRolloutBufferSamples, None, None]:
        """Minibatches in random order: the same ones as from sb3-contrib's buffer."""
        size = self.buffer_size * self.n_envs
        order = th.from_numpy(np.random.permutation(size)).to(self.device)  # noqa: NPY002
        if self._tensors is None:
            self._tensors = MaskableRolloutBufferSamples(
                observations=self._by_game(self.observations),
                actions=self._by_game(self.actions).flatten(),
                old_values=self._by_game(self.values),
                old_log_prob=self._by_game(self.log_probs),
                advantages=self._by_game(self.advantages),
                returns=self._by_game(self.returns),
                action_masks=self._by_game(self.action_masks),
            )
        for rows in order.split(batch_size or size):
            # For rows of bytes index_select is many times faster than indexing.
            selected = [field.index_select(0, rows) for field in self._tensors]
            yield MaskableRolloutBufferSamples(*selected)

    def _by_game(self, field: Any) -> th.Tensor:
        """(steps, games, ...) -> (games * steps, ...), on the device."""
        return th.from_numpy(field).to(self.device).transpose(0, 1).flatten(0, 1)


def _action_masks(envs: Any) -> Any:
    """Masks as bool (N, n): all at once where the vector environment gives them so."""
    return envs.action_masks() if hasattr(envs, "action_masks") else get_action_masks(envs)


def _evaluate(
    policy: MaskableActorCriticPolicy, batch: MaskableRolloutBufferSamples
) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
    """Log-probabilities, entropies and errors of the critic, (N,) each.

    A policy whose critic predicts more than a mean judges its errors itself.
    """
    arguments = batch.observations, batch.actions.long(), cast(Any, batch.action_masks)
    if isinstance(policy, CandidatePolicy):
        critic, log_probs, entropies = policy.evaluate(*arguments)
        return log_probs, entropies, policy.value_losses(critic, batch.returns)
    values, log_probs, entropies = policy.evaluate_actions(*arguments)
    errors = mse_loss(values.flatten(), batch.returns, reduction="none")
    return log_probs, cast(th.Tensor, entropies), errors


class _Figures(NamedTuple):
    """What a minibatch, or a share of one, adds to the log; scalars."""

    loss: th.Tensor
    policy_gradient_loss: th.Tensor
    value_loss: th.Tensor
    entropy_loss: th.Tensor
    approx_kl: th.Tensor
    clip_fraction: th.Tensor


class MaskedPPO(MaskablePPO):
    """MaskablePPO for vector environments, best with an ``action_masks()`` of their own.

    Episodes must not be truncated, so that no value is owed where one ends.

    Args:
        args: as of MaskablePPO; ``clip_range_vf`` is not supported.
        threads: how many share an update. The same number gives the same result.
        final_ent_coef: entropy bonus at the end of training, linear in between; None for the same
            throughout.
        kwargs: as of MaskablePPO.
    """

    def __init__(
        self, *args: Any, threads: int = 1, final_ent_coef: float | None = None, **kwargs: Any
    ) -> None:
        self.threads = threads
        self.final_ent_coef = final_ent_coef
        super().__init__(*args, **{"rollout_buffer_class": TensorRolloutBuffer, **kwargs})
        if self.clip_range_vf is not None:
            raise ValueError("clip_range_vf is not supported")

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Play ``n_rollout_steps`` in every game and fill the buffer; False to end training."""
        games, buffer = cast(Any, env), cast(MaskableRolloutBuffer, rollout_buffer)
        observations, starts = cast(Any, self._last_obs), cast(Any, self._last_episode_starts)
        self.policy.set_training_mode(False)
        buffer.reset()
        callback.on_rollout_start()
        for _ in range(n_rollout_steps):
            action_masks = _action_masks(games) if use_masking else None
            with th.inference_mode():
                tensor = th.as_tensor(observations, device=self.device)
                chosen, values, log_probs = self.policy(tensor, action_masks=action_masks)
            actions = chosen.cpu().numpy()
            new_observations, rewards, dones, infos = env.step(actions)
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            ended = np.flatnonzero(dones)
            self._update_info_buffer([infos[i] for i in ended], dones[ended])
            buffer.add(
                observations, actions, rewards, starts, values, log_probs, action_masks=action_masks
            )
            self._last_obs = observations = cast(Any, new_observations)
            self._last_episode_starts = starts = dones
        with th.inference_mode():
            values = self.policy.predict_values(th.as_tensor(observations, device=self.device))
        buffer.compute_returns_and_advantage(last_values=values, dones=starts)
        callback.on_rollout_end()
        return True

    def train(self) -> None:
        """Learn from the rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        figures: list[_Figures] = []
        first_of_epoch = 0
        with ThreadPoolExecutor(self.threads) as pool:
            for _ in range(self.n_epochs):
                first_of_epoch = len(figures)
                goes_on = True
                for batch in self.rollout_buffer.get(self.batch_size):
                    figures.append(self._differentiate(batch, pool))
                    if self.target_kl is not None:
                        goes_on = float(figures[-1].approx_kl) <= 1.5 * self.target_kl
                        if not goes_on:
                            break
                    th.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                    self.policy.optimizer.step()
                self._n_updates += 1
                if not goes_on:
                    break
        self._log(figures, first_of_epoch)

    def _differentiate(
        self, batch: MaskableRolloutBufferSamples, pool: ThreadPoolExecutor
    ) -> _Figures:
        """Set the gradients to those of the loss of a minibatch."""
        size = len(batch.advantages)
        if self.normalize_advantage:
            centred = batch.advantages - batch.advantages.mean()
            batch = batch._replace(advantages=centred / (batch.advantages.std() + 1e-8))
        fields = zip(*(field.split(-(-size // self.threads)) for field in batch), strict=True)
        shares = [MaskableRolloutBufferSamples(*share) for share in fields]
        mapped = pool.map if len(shares) > 1 else map
        results = list(mapped(self._differentiate_share, shares, [size] * len(shares)))
        # Added in the order of the shares, whichever thread was first: sums stay the same.
        gradients = zip(*(gradients for gradients, _ in results), strict=True)
        for parameter, parts in zip(self.policy.parameters(), gradients, strict=True):
            parameter.grad = cast(th.Tensor, sum(parts[1:], start=parts[0]))
        return _Figures(*th.stack([th.stack(figures) for _, figures in results]).sum(dim=0))

    def _differentiate_share(
        self, share: MaskableRolloutBufferSamples, size: int
    ) -> tuple[tuple[th.Tensor, ...], _Figures]:
        """Gradients by parameter, of a share of a minibatch of ``size`` decisions."""
        policy = copy(self.policy)
        policy.action_dist = copy(policy.action_dist)  # SB3's policies work in it
        log_probs, entropies, value_losses = _evaluate(policy, share)
        clip_range = self._clip_range_now()
        log_ratio = log_probs - share.old_log_prob
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
        gain = th.min(share.advantages * ratio, share.advantages * clipped)
        policy_loss = -gain.sum() / size
        value_loss = value_losses.sum() / size
        entropy_loss = -entropies.sum() / size
        loss = policy_loss + self._ent_coef_now() * entropy_loss + self.vf_coef * value_loss
        parameters = list(self.policy.parameters())
        gradients = th.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
        with th.no_grad():
            divergence = (ratio - 1 - log_ratio).sum() / size
            outside = ((ratio - 1).abs() > clip_range).sum() / size
        losses = (loss, policy_loss, value_loss, entropy_loss, divergence, outside)
        return gradients, _Figures(*(figure.detach() for figure in losses))

    def _clip_range_now(self) -> float:
        return cast(Any, self.clip_range)(self._current_progress_remaining)

    def _ent_coef_now(self) -> float:
        if self.final_ent_coef is None:
            return self.ent_coef
        remaining = self._current_progress_remaining
        return self.final_ent_coef + remaining * (self.ent_coef - self.final_ent_coef)

    def _log(self, figures: list[_Figures], first_of_last_epoch: int) -> None:
        """What MaskablePPO logs: means over the update, the divergence over its last epoch."""
        table = th.stack([th.stack(row) for row in figures]).cpu().numpy()
        means = dict(zip(_Figures._fields, table.mean(axis=0).tolist(), strict=True))
        column = _Figures._fields.index("approx_kl")
        means["approx_kl"] = float(table[first_of_last_epoch:, column].mean())
        means["loss"] = float(table[-1, _Figures._fields.index("loss")])
        for name, value in means.items():
            self.logger.record(f"train/{name}", value)
        buffer = self.rollout_buffer
        explained = explained_variance(buffer.values.flatten(), buffer.returns.flatten())
        self.logger.record("train/explained_variance", explained)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/clip_range", self._clip_range_now())
