"""Checkpoints of MaskablePPO: all that a run needs to go on as if nothing had happened."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch as th

from agents.masked_ppo import MaskedPPO
from agents.training.config import TrainConfig
from agents.training.models import save_model
from agents.training.tasks import Task

_MODEL, _STATE = "model.zip", "state.pt"


def write_checkpoint(
    folder: Path,
    model: MaskedPPO,
    envs: Any,
    task: Task,
    config: TrainConfig,
    notes: dict[str, Any],
) -> None:
    """Write model, games and random states into a folder, and notes with them."""
    save_model(model, config, folder / _MODEL)
    state = {
        "timesteps": model.num_timesteps,
        "updates": model._n_updates,
        "games": envs.get_state(),
        "task": task.state(),
        "episode_starts": np.asarray(model._last_episode_starts).tolist(),
        "torch_random": th.get_rng_state(),
        "numpy_random": np.random.get_state(),  # noqa: NPY002 - SB3 draws minibatches from it
        "python_random": random.getstate(),
        "notes": notes,
    }
    th.save(state, folder / _STATE)


def read_checkpoint(folder: Path, model: MaskedPPO, envs: Any, task: Task) -> dict[str, Any]:
    """Bring a fresh model, its games and the random states to where the run was.

    Hyperparameters stay those of the fresh model, so that a resumed run can change them. Broken
    files raise whatever torch, zipfile or pickle make of them.

    Returns:
        The notes kept with the checkpoint.
    """
    model.set_parameters(str(folder / _MODEL), device=model.device)
    state = th.load(folder / _STATE, weights_only=False)
    task.restore(state["task"], model)
    model._last_obs = envs.set_state(state["games"])
    model.num_timesteps, model._n_updates = state["timesteps"], state["updates"]
    model._last_episode_starts = np.array(state["episode_starts"], dtype=np.bool_)
    th.set_rng_state(state["torch_random"])
    np.random.set_state(state["numpy_random"])  # noqa: NPY002
    random.setstate(state["python_random"])
    return state["notes"]
