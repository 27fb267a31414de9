"""Model files: SB3's zip with a member that says what the model is for.

The member ``deck_of_spies.json`` names the format, environment, rule set, observation and policy.
To play, only that and the weights are read (``torch.load`` with ``weights_only``), so that a model
file from elsewhere can't run code. To go on training SB3 reads the rest, which it unpickles:
resume only run directories that you trust.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import AgentError
from agents.candidate_policy import CandidatePolicy
from agents.model_files import ENV_VERSION, mismatch
from agents.objectives import payments_of
from agents.skirmish.policy import skirmish_policy
from agents.training.config import SKIRMISH_ID, PolicyConfig, TrainConfig
from deck_of_spies_env.skirmish import observations as skirmish_observations
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.observations import observation_high
from deck_of_spies_env.solitaire.rules import Rules

FORMAT = 3
FORMATS = (2, FORMAT)
"""Those that can be read; before 3 the critic was always that of a mean, on shared layers."""
MEMBER = "deck_of_spies.json"
WEIGHTS = "policy.pth"


def policy_arguments(
    policy: PolicyConfig,
    objective: str | Mapping[str, float] = "win",
    rules: Rules | None = None,
) -> tuple[type[MaskableActorCriticPolicy], dict[str, Any]]:
    """Policy class and keyword arguments for MaskablePPO.

    Args:
        policy: the network.
        objective: that of the training, which says what a critic can have to predict.
        rules: the rule set, None for the default.
    """
    if policy.kind == "candidate":
        atoms = None
        if policy.critic == "distribution":
            atoms = sorted(set(payments_of(objective, rules or Rules()).tolist()))
        return CandidatePolicy, {
            "hidden": policy.hidden,
            "head": policy.head,
            "critic_hidden": policy.critic_hidden,
            "atoms": atoms,
        }
    layers = [policy.hidden, policy.head]
    return MaskableActorCriticPolicy, {
        "net_arch": {"pi": layers, "vf": layers},
        "activation_fn": th.nn.ReLU,
    }


def policy_for(config: TrainConfig) -> tuple[type[MaskableActorCriticPolicy], dict[str, Any]]:
    """Policy class and keyword arguments of a run."""
    if config.env.is_skirmish:
        return skirmish_policy(config.policy.hidden, config.policy.head)
    rules = Rules.of(config.env.rules)
    return policy_arguments(config.policy, config.env.resolved_objective, rules)


def save_model(
    model: MaskablePPO,
    config: TrainConfig,
    path: Path,
    policy: MaskableActorCriticPolicy | None = None,
) -> None:
    """Write a model file, whole or not at all.

    Args:
        model: to be written.
        config: of its run.
        path: of the file.
        policy: stands in for the model's own, of the same kind; None for its own.
    """
    if policy is not None:
        model = copy(model)
        model.policy = policy
    description = {
        "format": FORMAT,
        **_game_of(config),
        "policy": asdict(config.policy),
        "seed": config.seed,
        "timesteps": model.num_timesteps,
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(temporary, "w+b") as file:  # readable too: zipfile appends to what it finds
        # No environment, no buffer: they are made anew.
        model.save(file, exclude=["rollout_buffer", "logger"])
        file.flush()
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(MEMBER, json.dumps(description, indent=2))
        os.fsync(file.fileno())
    temporary.replace(path)


def _game_of(config: TrainConfig) -> dict[str, Any]:
    env = config.env
    if env.is_skirmish:
        rules = asdict(SkirmishRules.of(env.rules))
        return {"env": SKIRMISH_ID, "num_players": env.num_players, "rules": rules}
    return {
        "env": ENV_VERSION,
        "observation": "recall",
        "rules": asdict(Rules.of(env.rules)),
        "objective": env.resolved_objective,
    }


def load_skirmish_policy(
    path: Path, num_players: int, rules: SkirmishRules
) -> tuple[MaskableActorCriticPolicy, dict[str, Any]]:
    """The same for a model of Skirmish.

    Args:
        path: of the file.
        num_players: at the table.
        rules: the rule set to be played.

    Raises:
        AgentError: no such file, no model file, or one for another game, table or rule set.
    """
    description, weights = _read(path)
    _check(
        path, description, {"env": SKIRMISH_ID, "num_players": num_players, "rules": asdict(rules)}
    )
    high = skirmish_observations.observation_high(num_players)

    def build() -> MaskableActorCriticPolicy:
        policy = PolicyConfig(**description["policy"])
        return _make_policy(skirmish_policy(policy.hidden, policy.head), high, NUM_ACTIONS)

    return _filled(path, build, weights), description


def load_policy(path: Path, rules: Rules) -> tuple[MaskableActorCriticPolicy, dict[str, Any]]:
    """The policy of a model file, ready to play, and what the file says of it.

    Args:
        path: of the file.
        rules: the rule set to be played.

    Raises:
        AgentError: no such file, no model file, or one of another version or rule set.
    """
    description, weights = _read(path)
    _check(path, description, {"env": ENV_VERSION, "rules": asdict(rules)})
    high = observation_high("recall", rules.hand_size)

    def build() -> MaskableActorCriticPolicy:
        policy = PolicyConfig(**description["policy"])
        made = policy_arguments(policy, description["objective"], rules)
        return _make_policy(made, high, action_table(rules.hand_size).num_actions)

    return _filled(path, build, weights), description


def _filled(
    path: Path, build: Callable[[], MaskableActorCriticPolicy], weights: dict[str, th.Tensor]
) -> MaskableActorCriticPolicy:
    """A policy with the weights of a file, ready to play."""
    try:
        policy = build()
        policy.load_state_dict(weights)
    except (TypeError, ValueError, KeyError, RuntimeError):
        raise AgentError(
            f"model {path} is corrupt: its weights do not fit the network it describes"
        ) from None
    if not all(bool(th.isfinite(tensor).all()) for tensor in weights.values()):
        raise AgentError(f"model {path} is corrupt: its weights are not all finite numbers")
    policy.set_training_mode(False)
    return policy


def _read(path: Path) -> tuple[dict[str, Any], dict[str, th.Tensor]]:
    try:
        with zipfile.ZipFile(path) as archive:
            described, pickled = archive.read(MEMBER), archive.read(WEIGHTS)
    except OSError as error:
        raise AgentError(f"can't read model {path}: {error.strerror}") from None
    except KeyError:
        raise AgentError(
            f"{path} is not a model of this project: it needs {MEMBER} and {WEIGHTS}"
        ) from None
    except Exception:  # zipfile raises many kinds for broken bytes
        raise AgentError(f"model {path} is corrupt: it is no whole zip file") from None
    try:
        description: Any = json.loads(described)
        weights = th.load(io.BytesIO(pickled), map_location="cpu", weights_only=True)
    except Exception:  # and so does torch, with advice that does not fit
        raise AgentError(f"model {path} is corrupt: can't read its contents") from None
    if not isinstance(description, dict) or not isinstance(weights, dict):
        raise AgentError(f"model {path} is corrupt: unexpected contents")
    return cast(dict[str, Any], description), cast(dict[str, th.Tensor], weights)


def _check(path: Path, description: dict[str, Any], wanted: dict[str, Any]) -> None:
    if description.get("format") not in FORMATS:
        known = ", ".join(map(str, FORMATS))
        raise AgentError(
            f"model {path} has format {description.get('format')}, this version reads {known}"
        )
    for name, value in wanted.items():
        if description.get(name) != value:
            raise mismatch(path, name, description.get(name), value)


def _make_policy(
    made: tuple[type[MaskableActorCriticPolicy], dict[str, Any]],
    high: npt.NDArray[np.int8],
    num_actions: int,
) -> MaskableActorCriticPolicy:
    policy_class, arguments = made
    return policy_class(
        gym.spaces.Box(np.zeros_like(high), high, dtype=np.int8),
        gym.spaces.Discrete(num_actions),
        lambda _: 0.0,
        **arguments,
    )
