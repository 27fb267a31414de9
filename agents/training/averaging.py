"""The average of all policies of a run of self-play, learnt by a network of its own.

What self-play comes to is an answer to what was played lately, and can be answered in turn; what
comes near an equilibrium is the average over the run (Heinrich and Silver, "Deep reinforcement
learning from self-play in imperfect-information games", 2016). The policy of update k counts k
times, as in CFR+, so that early play is forgotten.
"""

from __future__ import annotations

import copy
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

_LEARNING_RATE = 1e-3
_BATCH_SIZE = 2048
_BATCHES = 8


class Memory:
    """Decisions kept so that each of update k is as likely to be there as k is large.

    A decision of a full memory's update k displaces any one with the probability that is due to its
    weight among all weights so far (Chao, "A general purpose unequal probability sampling plan",
    1982).

    Args:
        size: decisions kept at most.
        width: entries of an observation.
        num_actions: entries of a mask.
    """

    def __init__(self, size: int, width: int, num_actions: int) -> None:
        self.observations = np.zeros((size, width), np.int8)
        self.masks = np.zeros((size, num_actions), np.bool_)
        self.probabilities = np.zeros((size, num_actions), np.float32)
        self.count = 0
        self.total_weight = 0.0
        self.updates = 0

    def places(self, number: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
        """Where the decisions of the next update go, int64 (number,); -1 for those not kept."""
        self.updates += 1
        self.total_weight += self.updates * number
        size = len(self.observations)
        free = min(size - self.count, number)
        places = np.full(number, -1)
        places[:free] = np.arange(self.count, self.count + free)
        self.count += free
        chance = min(size * self.updates / self.total_weight, 1.0)
        late = np.arange(number) >= free
        kept = late & (random.random(number) < chance)
        places[kept] = random.integers(size, size=int(kept.sum()))
        return places

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        rows = {name: getattr(self, name)[: self.count].copy() for name in _ARRAYS}
        return rows | {"total_weight": self.total_weight, "updates": self.updates}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what a checkpoint kept."""
        self.count = len(state["observations"])
        for name in _ARRAYS:
            getattr(self, name)[: self.count] = state[name]
        self.total_weight, self.updates = state["total_weight"], state["updates"]


_ARRAYS = ("observations", "masks", "probabilities")


class AveragePolicy:
    """A network that learns what the policies of a run did.

    Args:
        policy: the first of them; its weights are where the network starts.
        memory: how many decisions are kept.
        seed: of what is kept and learnt from.

    Attributes:
        policy: the network. Its critic is not trained.
    """

    def __init__(self, policy: MaskableActorCriticPolicy, memory: int, seed: int) -> None:
        self.policy = copy.deepcopy(policy)
        self.policy.set_training_mode(False)
        self._optimizer = th.optim.Adam(self.policy.parameters(), lr=_LEARNING_RATE)
        num_actions = int(cast(Any, policy.action_space).n)
        width = int(np.prod(cast(Any, policy.observation_space).shape))
        self._memory = Memory(memory, width, num_actions)
        self._random = np.random.default_rng((seed, memory))

    def add(
        self,
        policy: MaskableActorCriticPolicy,
        observations: npt.NDArray[np.int8],
        masks: npt.NDArray[np.bool_],
    ) -> None:
        """Keep a share of the decisions that a policy has just made, and learn from what is kept.

        Args:
            policy: as it was when it made them.
            observations: int8 (N, d).
            masks: bool (N, actions); rows with a single legal action are no decisions.
        """
        rows = np.flatnonzero(masks.sum(axis=1) > 1)
        places = self._memory.places(len(rows), self._random)
        rows, places = rows[places >= 0], places[places >= 0]
        if len(rows):
            memory = self._memory
            memory.observations[places] = observations[rows]
            memory.masks[places] = masks[rows]
            with th.inference_mode():
                seen = th.as_tensor(observations[rows], device=policy.device)
                chosen: Any = policy.get_distribution(seen, masks[rows])
            memory.probabilities[places] = chosen.distribution.probs.cpu().numpy()
        self._learn()

    def _learn(self) -> None:
        memory = self._memory
        if not memory.count:
            return
        for _ in range(_BATCHES):
            drawn = self._random.integers(memory.count, size=_BATCH_SIZE)
            seen, wanted = (
                th.as_tensor(array[drawn], device=self.policy.device)
                for array in (memory.observations, memory.probabilities)
            )
            chosen: Any = self.policy.get_distribution(seen, memory.masks[drawn])
            logits = chosen.distribution.logits  # of illegal actions very small, but finite
            loss = -(wanted * logits).sum(dim=1).mean()
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "memory": self._memory.state(),
            "random": self._random.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what a checkpoint kept."""
        self.policy.load_state_dict(state["policy"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._memory.restore(state["memory"])
        self._random.bit_generator.state = state["random"]
