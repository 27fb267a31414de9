"""What a measurement was made on and with."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from agents.training.versions import git_commit, versions_of

LIBRARIES = (
    "deck_of_spies_env",
    "gymnasium",
    "numpy",
    "numba",
    "torch",
    "stable-baselines3",
    "sb3-contrib",
    "envpool",
    "open_spiel",
    "rlcard",
    "pettingzoo",
    "jax",
    "pgx",
)


def cpu_model() -> str:
    """The processor's name, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def circumstances() -> dict[str, Any]:
    """Processor, cores, versions and commit."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "versions": versions_of(LIBRARIES),
        "commit": git_commit(),
    }
