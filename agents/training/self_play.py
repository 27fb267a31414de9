"""Self-play: the pool that an agent of Skirmish trains with, beside itself."""

from __future__ import annotations

import copy
from typing import Any

from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents.skirmish.ppo import SkirmishPPOAgent
from agents.training.config import TrainConfig
from deck_of_spies_env.integrations.sb3_skirmish import Member
from deck_of_spies_env.skirmish.bots import make_bot


class Pool:
    """Bots and past selves.

    Places of past selves are filled one after the other, and then again from the first: whoever
    plays in a place at a table that goes on is followed by a later self.

    Args:
        config: of the run.
    """

    def __init__(self, config: TrainConfig) -> None:
        self._settings, self._seed = config.self_play, config.seed
        self._bots = [
            Member(name, make_bot(name, config.env.num_players), weight)
            for name, weight in self._settings.bots.items()
            if weight > 0
        ]
        for member in self._bots:
            member.agent.reset(config.seed)
        self._past: list[MaskableActorCriticPolicy] = []
        self._num_added = 0

    def add(self, policy: MaskableActorCriticPolicy) -> None:
        """Keep a copy of the policy as it is now."""
        copied = copy.deepcopy(policy)
        copied.set_training_mode(False)
        place = self._num_added % self._settings.size
        if place == len(self._past):
            self._past.append(copied)
        else:
            self._past[place] = copied
        self._num_added += 1

    def members(self) -> list[Member]:
        """Who can be drawn: bots first, so that places stay when past selves are added."""
        weight = self._settings.past_selves / max(len(self._past), 1)
        past = [Member("past", self._agent(policy), weight) for policy in self._past]
        return self._bots + (past if weight > 0 else [])

    def _agent(self, policy: MaskableActorCriticPolicy) -> SkirmishPPOAgent:
        agent = SkirmishPPOAgent(policy)
        agent.reset(self._seed)
        return agent

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        weights = [policy.state_dict() for policy in self._past]
        return {"past": weights, "num_added": self._num_added}

    def restore(self, state: dict[str, Any], policy: MaskableActorCriticPolicy) -> None:
        """Go back to what a checkpoint kept.

        Args:
            state: of state().
            policy: of the same network; it is copied.
        """
        self._past = []
        for weights in state["past"]:
            copied = copy.deepcopy(policy)
            copied.load_state_dict(weights)
            copied.set_training_mode(False)
            self._past.append(copied)
        self._num_added = state["num_added"]
