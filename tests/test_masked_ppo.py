"""MaskedPPO is MaskablePPO: same minibatches, same update; and the kernels are the network."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch as th
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from scipy import stats
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from agents import candidate_functions as functions
from agents.candidate_kernels import Positions
from agents.masked_ppo import MaskedPPO
from agents.training.config import PolicyConfig
from agents.training.models import policy_arguments
from deck_of_spies_env.integrations.sb3 import make_vec_env
from deck_of_spies_env.solitaire.rules import Rules

NETWORKS = {
    "candidate": PolicyConfig(hidden=32, head=16),
    "flat": PolicyConfig(kind="flat", hidden=32, head=16),
    "own_critic": PolicyConfig(hidden=32, head=16, critic_hidden=24),
    "distribution": PolicyConfig(hidden=32, head=16, critic="distribution"),
    "own_distribution": PolicyConfig(hidden=32, head=16, critic="distribution", critic_hidden=24),
}
KINDS = tuple(NETWORKS)
LIKE_SB3 = ("candidate", "flat", "own_critic")
"""Those whose critic learns by squared errors, as SB3's does."""
CHANCE_OF_A_FALSE_ALARM = 1e-6


@pytest.fixture(autouse=True)
def one_thread() -> None:
    th.set_num_threads(1)


class Silent(BaseCallback):
    def _on_step(self) -> bool:
        return True


def learner(
    algorithm: Any, kind: Any, hand_size: int = 5, seed: int = 3, **arguments: Any
) -> MaskablePPO:
    rules = Rules(hand_size=hand_size)
    policy, policy_kwargs = policy_arguments(NETWORKS[kind], "keys", rules)
    envs = make_vec_env("DeckOfSpies-v0", 32, 1, objective="keys", rules={"hand_size": hand_size})
    settings: dict[str, Any] = {"n_steps": 48, "batch_size": 500, "n_epochs": 2, "ent_coef": 0.01}
    model = algorithm(
        policy, envs, policy_kwargs=policy_kwargs, seed=seed, device="cpu", **settings, **arguments
    )
    model.set_logger(Logger(None, []))
    return model


def with_rollout(model: MaskablePPO) -> MaskablePPO:
    """The model after the rollout of its first update, with all that train() needs."""
    _, callback = model._setup_learn(10_000, Silent(), True, "", False)
    callback.on_training_start({}, {})
    assert model.env is not None
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    return model


def adopt_rollout(model: MaskablePPO, other: MaskablePPO) -> None:
    """Give a model the rollout of another one."""
    model._setup_learn(10_000, Silent(), True, "", False)
    source, target = other.rollout_buffer, model.rollout_buffer
    for name in ("observations", "actions", "values", "log_probs", "advantages", "returns"):
        getattr(target, name)[:] = getattr(source, name)
    target.action_masks[:] = source.action_masks
    target.full = True


def trained(model: MaskablePPO, seed: int = 5) -> dict[str, th.Tensor]:
    np.random.seed(seed)  # noqa: NPY002 - SB3 draws minibatches from it
    model.train()
    return {name: value.clone() for name, value in model.policy.named_parameters()}


@pytest.mark.parametrize("kind", LIKE_SB3)
@pytest.mark.parametrize("arguments", [{}, {"threads": 3}, {"target_kl": 1e-4}])
def test_an_update_is_that_of_sb3_contrib(kind: str, arguments: dict[str, Any]) -> None:
    ours = with_rollout(learner(MaskedPPO, kind, **arguments))
    arguments = {key: value for key, value in arguments.items() if key != "threads"}
    theirs = learner(MaskablePPO, kind, **arguments)
    before = {name: value.clone() for name, value in theirs.policy.named_parameters()}
    for name, value in ours.policy.named_parameters():
        assert th.equal(value, before[name])
    adopt_rollout(theirs, ours)
    assert type(theirs.rollout_buffer) is MaskableRolloutBuffer
    ours_after, theirs_after = trained(ours), trained(theirs)
    for name, value in theirs_after.items():
        moved = float((value - before[name]).detach().abs().max())
        difference = float((ours_after[name] - value).detach().abs().max())
        # The scorer's last bias shifts all scores alike: its gradient is nothing but rounding.
        assert moved > 1e-4 or name == "scorer.3.bias"
        assert difference <= 2e-3 * moved + 2e-6, name
    logged, expected = ours.logger.name_to_value, theirs.logger.name_to_value
    assert logged.keys() == expected.keys()
    for name, value in expected.items():
        assert logged[name] == pytest.approx(value, rel=1e-3, abs=2e-5), name


@pytest.mark.parametrize("threads", [1, 2])
def test_an_update_can_be_repeated_to_the_bit(threads: int) -> None:
    first = with_rollout(learner(MaskedPPO, "candidate", threads=threads))
    second = with_rollout(learner(MaskedPPO, "candidate", threads=threads))
    again = trained(second)
    for name, value in trained(first).items():
        assert th.equal(value, again[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_can_be_repeated_to_the_bit(kind: str) -> None:
    """Wherever its arrays come to lie in memory, and whichever thread is first."""
    model: Any = with_rollout(learner(MaskedPPO, kind, threads=2))
    batch = next(model.rollout_buffer.get(500))
    first: list[th.Tensor] = []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(60):
            model._differentiate(batch, pool)
            gradients = [parameter.grad for parameter in model.policy.parameters()]
            first = first or gradients
            assert all(map(th.equal, gradients, first))


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollout_holds_what_the_policy_says_of_it(kind: str) -> None:
    model = with_rollout(learner(MaskedPPO, kind))
    (batch,) = model.rollout_buffer.get()
    with th.no_grad():
        values, log_probs, _ = model.policy.evaluate_actions(
            batch.observations, batch.actions, batch.action_masks
        )
    th.testing.assert_close(values.flatten(), batch.old_values)
    th.testing.assert_close(log_probs, batch.old_log_prob)
    assert batch.observations.dtype == th.int8
    assert batch.action_masks.dtype == th.bool
    assert batch.action_masks[th.arange(len(values)), batch.actions].all()


def test_a_critic_of_a_distribution_predicts_what_can_be_paid() -> None:
    """The 13 payments of ``keys``, and a value between the least and the most of them."""
    model: Any = learner(MaskedPPO, "distribution")
    assert model.policy.atoms == pytest.approx([held / 12 for held in range(13)])
    observations = model.env.reset()
    values = model.policy.predict_values(th.from_numpy(observations))
    assert values.shape == (32, 1)
    assert ((values > 0) & (values < 1)).all()


def test_a_return_between_two_payments_is_a_mixture_of_both() -> None:
    """The loss is the cross-entropy to the mixture with that mean, least where they agree."""
    policy: Any = learner(MaskedPPO, "distribution").policy
    returns = th.tensor([0.0, 0.3, 0.5, 1.0, 1.2])  # above all payments: the largest
    mixtures = th.zeros(5, 13)
    mixtures[0, 0] = mixtures[2, 6] = mixtures[3, 12] = mixtures[4, 12] = 1
    mixtures[1, 3], mixtures[1, 4] = 0.4, 0.6
    critic = th.randn(5, 13, requires_grad=True)
    losses = policy.value_losses(critic, returns)
    expected = -(mixtures * critic.log_softmax(dim=1)).sum(dim=1)
    th.testing.assert_close(losses, expected)
    (gradient,) = th.autograd.grad(losses.sum(), critic)
    th.testing.assert_close(gradient, critic.softmax(dim=1) - mixtures)
    th.testing.assert_close(
        policy.values_of(mixtures.clamp(min=1e-30).log())[:, 0], returns.clamp(max=1)
    )


@pytest.mark.parametrize("kind", ["own_critic", "own_distribution"])
def test_a_critic_with_layers_of_its_own_leaves_the_plays_alone(kind: str) -> None:
    """What the critic learns changes no weight that the scores depend on, and the other way."""
    model: Any = with_rollout(learner(MaskedPPO, kind))
    (batch,) = model.rollout_buffer.get()
    critic, log_probs, _ = model.policy.evaluate(
        batch.observations, batch.actions, batch.action_masks
    )
    losses = model.policy.value_losses(critic, batch.returns).mean(), log_probs.mean()
    named = dict(model.policy.named_parameters())
    for loss, belongs in zip(losses, (True, False), strict=True):
        gradients = th.autograd.grad(
            loss, list(named.values()), allow_unused=True, retain_graph=True
        )
        for name, gradient in zip(named, gradients, strict=True):
            assert (gradient is not None) == (name.startswith("critic") == belongs), name


def test_rollouts_without_masks_leave_all_actions_open() -> None:
    model = with_rollout(learner(MaskedPPO, "flat"))
    model.rollout_buffer.reset()
    assert model.rollout_buffer.action_masks.all()


def test_value_clipping_is_refused() -> None:
    with pytest.raises(ValueError, match="clip_range_vf"):
        learner(MaskedPPO, "flat", clip_range_vf=0.2)


def positions_of(model: MaskablePPO) -> tuple[Any, th.Tensor, th.Tensor, Positions]:
    """Policy with weights that matter, observations, masks and index lists of a rollout."""
    policy: Any = with_rollout(model).policy
    with th.no_grad():
        for parameter in policy.parameters():
            parameter.add_(th.randn_like(parameter), alpha=0.1)
    (batch,) = model.rollout_buffer.get()
    observations, masks = batch.observations, batch.action_masks
    return policy, observations, masks, policy._read(observations, masks)


@pytest.mark.parametrize(
    ("kind", "hand_size"),
    [("candidate", 3), ("candidate", 5), ("candidate", 8), ("own_critic", 5), ("distribution", 5)],
)
def test_the_kernels_are_the_network(kind: str, hand_size: int) -> None:
    """Scores, values, log-probabilities, entropies and all gradients, against PyTorch's own."""
    model = learner(MaskedPPO, kind, hand_size)
    policy, observations, masks, positions = positions_of(model)
    candidates = policy._candidates(observations, masks)
    _, plays = masks.nonzero(as_tuple=True)
    np.testing.assert_array_equal(positions.plays, plays)
    np.testing.assert_array_equal(np.diff(positions.play_starts), masks.sum(dim=1))
    actions = functions.sample(candidates.scores, positions)
    assert masks[th.arange(len(masks)), actions].all()

    def outcome(figures: Any) -> list[th.Tensor]:
        values, log_probs, entropies = figures
        weights = th.arange(len(values)) / len(values)
        total = (values.flatten() * weights + log_probs * (1 - weights) + entropies**2).mean()
        return [values, log_probs, entropies, *th.autograd.grad(total, list(policy.parameters()))]

    log_probs = candidates.log_probs()
    entropies = -candidates.sum_by_position(log_probs.exp() * log_probs)
    chosen = log_probs[candidates.index_of(actions)]
    expected = outcome((policy.values_of(candidates.critic), chosen, entropies))
    actual = outcome(policy.evaluate_actions(observations, actions, masks))
    for ours, torchs in zip(actual, expected, strict=True):
        th.testing.assert_close(ours, torchs, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="not among the legal plays"):
        policy.evaluate_actions(observations, masks.int().argmin(dim=1), masks)


def test_actions_are_drawn_from_the_policys_distribution() -> None:
    """Chi-square in each of the positions, the smallest p-value against Bonferroni's bound."""
    policy, observations, masks, _ = positions_of(learner(MaskedPPO, "candidate"))
    chosen = masks.sum(dim=1).argsort(descending=True)[:40]
    observations, masks, draws = observations[chosen], masks[chosen], 2000
    with th.inference_mode():
        expected = policy.get_distribution(observations, masks).distribution.probs * draws
        counts = th.zeros_like(expected)
        for _ in range(draws // 100):
            actions, _, log_probs = policy(
                observations.repeat(100, 1), action_masks=masks.repeat(100, 1)
            )
            rows = th.arange(len(chosen)).repeat(100)
            counts.index_put_((rows, actions), th.ones(len(rows)), accumulate=True)
            th.testing.assert_close(log_probs.exp(), expected[rows, actions] / draws)
    assert not counts[~masks].any()
    p_values = []
    for row, mask in enumerate(masks):
        likely = mask & (expected[row] >= 5)
        rest = mask & ~likely
        observed = [*counts[row, likely].tolist(), float(counts[row, rest].sum())]
        means = [*expected[row, likely].tolist(), float(expected[row, rest].sum())]
        if means[-1] == 0:
            observed, means = observed[:-1], means[:-1]
        scale = sum(observed) / sum(means)
        p_values.append(stats.chisquare(observed, np.array(means) * scale).pvalue)
    assert min(p_values) > CHANCE_OF_A_FALSE_ALARM / len(p_values)


def test_a_model_of_sb3_contrib_and_ours_load_each_others_files(tmp_path: Any) -> None:
    ours = learner(MaskedPPO, "candidate", threads=2)
    ours.save(tmp_path / "ours.zip", exclude=["rollout_buffer", "logger"])
    for algorithm in (MaskablePPO, MaskedPPO):
        loaded = algorithm.load(tmp_path / "ours.zip", device="cpu")
        for name, value in loaded.policy.named_parameters():
            assert th.equal(value, dict(ours.policy.named_parameters())[name])
