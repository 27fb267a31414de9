"""Where an agent's model lies: a file, or the last or best model of a run directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agents import AgentError

BEST_MODEL, LAST_MODEL = "best_model", "last_model"
EVALUATIONS = "evaluations.csv"
"""The table in a run directory of what its agent came to on held-out deals during training."""
PPO_SUFFIX, AFTERSTATE_SUFFIX = ".zip", ".safetensors"

ENV_VERSION = "DeckOfSpies-v0"
"""What models are for: observation layout and action table are fixed within a version."""


def model_file(path: Path, suffix: str, shipped: Iterable[Path]) -> Path:
    """The model file that a path means: itself, or a run directory's last or best model.

    Of a run the last model is taken once there is one: the learning rate has come down to its end
    by then, while the best of many evaluations is in part the luckiest.

    Args:
        path: of a file or a run directory.
        suffix: of the agent's kind of model.
        shipped: the agent's models that come with the project, for the message.

    Raises:
        AgentError: nothing there.
    """
    if path.is_file():
        return path
    known = ", ".join(file.stem for file in shipped)
    if not path.exists():
        raise AgentError(f"no model at {path}; shipped models: {known}")
    names = [f"{name}{suffix}" for name in (LAST_MODEL, BEST_MODEL)]
    for name in names:
        if (path / name).is_file():
            return path / name
    raise AgentError(f"no model in {path}: expected {' or '.join(names)}; shipped models: {known}")


def mismatch(path: Path, name: str, found: Any, wanted: Any) -> AgentError:
    """What to raise for a model that was made for something else than is wanted.

    Args:
        path: of the model.
        name: of what differs.
        found, wanted: of rule sets, as mappings, only the fields that differ are told.
    """
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        fields = [field for field in {**wanted, **found} if found.get(field) != wanted.get(field)]
        found, wanted = (
            ", ".join(f"{field}={of[field]}" for field in fields if field in of) or "{}"
            for of in (found, wanted)
        )
    what = "" if name == "env" else name.replace("num_", "number of ") + " "
    return AgentError(f"model {path} was trained for {what}{found}, not {wanted}")


def widths_of(policy: Any) -> tuple[int, int]:
    """How many entries of observations and how many actions an SB3 policy was made for."""
    return policy.observation_space.shape[0], int(policy.action_space.n)
