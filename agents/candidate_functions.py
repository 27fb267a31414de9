"""The candidate policy's steps as differentiable functions of index lists, on the processor.

Each is what PyTorch's operators make of the same positions, to rounding; the tests compare them.
N is the number of positions, M that of their legal plays; all floats are float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch as th
from torch import nn
from torch.nn.functional import embedding_bag

from agents import candidate_kernels as kernels
from agents.candidate_kernels import Positions


def encode(layer: nn.Linear, positions: Positions) -> th.Tensor:
    """The first layer of positions, (N, hidden)."""
    return cast(th.Tensor, _Encode.apply(layer.weight, layer.bias, positions))


def score(
    encoded: th.Tensor,
    moves: nn.EmbeddingBag,
    first: nn.Linear,
    last: nn.Linear,
    positions: Positions,
) -> th.Tensor:
    """The score of each play, (M,): the afterstate through two layers with a ReLU before each."""
    parameters = (moves.weight, first.weight, first.bias, last.weight, last.bias)
    return cast(th.Tensor, _Score.apply(encoded, *parameters, positions))


def judge(
    scores: th.Tensor, actions: th.Tensor, positions: Positions
) -> tuple[th.Tensor, th.Tensor]:
    """Log-probabilities of actions (N,), and entropies (N,), of the softmax of scores (M,).

    Raises:
        ValueError: an action that is not among the legal plays.
    """
    return cast(tuple[th.Tensor, th.Tensor], _Judge.apply(scores, actions, positions))


def sample(scores: th.Tensor, positions: Positions) -> th.Tensor:
    """Actions (N,) drawn from the softmax of scores (M,), int64."""
    _, probabilities = _softmax(scores.detach(), positions)
    uniforms = th.rand(len(positions.play_starts) - 1)
    return th.from_numpy(_run(kernels.sample, probabilities, positions, uniforms))


def _run(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call a kernel on tensors: it works in their memory."""
    return kernel(*(a.numpy() if isinstance(a, th.Tensor) else a for a in arguments))


def _softmax(scores: th.Tensor, positions: Positions) -> tuple[th.Tensor, th.Tensor]:
    """Log-probabilities and probabilities of the plays, (M,)."""
    log_probs, probabilities = th.empty_like(scores), th.empty_like(scores)
    _run(kernels.softmax, scores, positions, log_probs, probabilities)
    return log_probs, probabilities


class _Encode(th.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: th.Tensor, bias: th.Tensor, positions: Positions) -> th.Tensor:
        ctx.positions, ctx.num_entries = positions, weight.shape[1]
        entries, starts = th.from_numpy(positions.entries), th.from_numpy(positions.entry_starts)
        by_entry = weight.t().contiguous()
        return embedding_bag(entries, by_entry, starts[:-1], mode="sum").add_(bias)

    @staticmethod
    def backward(ctx: Any, *gradients: th.Tensor) -> tuple[th.Tensor | None, ...]:
        encoded = gradients[0].contiguous()
        by_entry = encoded.new_zeros(ctx.num_entries, encoded.shape[1])
        _run(kernels.encode_backward, encoded, ctx.positions, by_entry)
        return by_entry.t(), encoded.sum(dim=0), None


class _Score(th.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        encoded: th.Tensor,
        moves: th.Tensor,
        weight: th.Tensor,
        bias: th.Tensor,
        last_weight: th.Tensor,
        last_bias: th.Tensor,
        positions: Positions,
    ) -> th.Tensor:
        afterstates = encoded.new_empty(len(positions.plays), encoded.shape[1])
        _run(kernels.move, encoded, moves, positions, afterstates)
        layer = th.addmm(bias, afterstates, weight.t())
        scores = encoded.new_empty(len(positions.plays))
        _run(kernels.project, layer, last_weight[0], last_bias, scores)
        ctx.positions = positions
        ctx.save_for_backward(encoded, moves, weight, last_weight, afterstates, layer)
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: th.Tensor) -> tuple[th.Tensor | None, ...]:
        scores = gradients[0].contiguous()
        encoded, moves, weight, last_weight, afterstates, layer = ctx.saved_tensors
        of_layer, of_last = th.empty_like(layer), th.zeros_like(last_weight)
        _run(kernels.project_backward, scores, layer, last_weight[0], of_layer, of_last[0])
        of_encoded, of_moves = th.zeros_like(encoded), th.zeros_like(moves)
        of_afterstates = of_layer @ weight
        _run(
            kernels.move_backward, of_afterstates, afterstates, ctx.positions, of_encoded, of_moves
        )
        of_weight, of_bias = of_layer.t() @ afterstates, of_layer.sum(dim=0)
        return of_encoded, of_moves, of_weight, of_bias, of_last, scores.sum().reshape(1), None


class _Judge(th.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: th.Tensor, actions: th.Tensor, positions: Positions
    ) -> tuple[th.Tensor, th.Tensor]:
        log_probs, probabilities = _softmax(scores, positions)
        entropies = scores.new_empty(len(actions))
        chosen = th.from_numpy(
            _run(kernels.judge, log_probs, probabilities, positions, actions, entropies)
        )
        if bool((chosen < 0).any()):
            raise ValueError("an action is not among the legal plays")
        ctx.positions = positions
        ctx.save_for_backward(log_probs, probabilities, entropies, chosen)
        return log_probs[chosen], entropies

    @staticmethod
    def backward(ctx: Any, *gradients: th.Tensor) -> tuple[th.Tensor | None, ...]:
        of_chosen, of_entropies = (gradient.contiguous() for gradient in gradients)
        log_probs, probabilities, entropies, chosen = ctx.saved_tensors
        of_scores = th.empty_like(log_probs)
        _run(
            kernels.judge_backward,
            of_chosen,
            of_entropies,
            log_probs,
            probabilities,
            entropies,
            ctx.positions,
            chosen,
            of_scores,
        )
        return of_scores, None, None
