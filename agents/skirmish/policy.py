"""The network of PPO in Skirmish: SB3's multi-layer policy on scaled observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor


class ScaledObservations(BaseFeaturesExtractor):
    """Observations as float32 (N, d) in 0-1: counts are divided by their largest values."""

    scale: th.Tensor

    def __init__(self, observation_space: spaces.Box) -> None:
        super().__init__(observation_space, spaces.flatdim(observation_space))
        high = np.maximum(observation_space.high, 1).astype(np.float32)
        self.register_buffer("scale", th.from_numpy(1 / high), persistent=False)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """(N, d), as float already, to (N, d)."""
        return observations * self.scale


def skirmish_policy(
    hidden: int, head: int
) -> tuple[type[MaskableActorCriticPolicy], dict[str, Any]]:
    """Policy class and keyword arguments for MaskablePPO: two layers each for actor and critic."""
    return MaskableActorCriticPolicy, {
        "net_arch": {"pi": [hidden, head], "vf": [hidden, head]},
        "activation_fn": th.nn.ReLU,
        "features_extractor_class": ScaledObservations,
    }
