"""What a measurement was made on and with."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

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


def commit() -> str:
    """The git commit of the project, with ``-dirty`` if files differ from it."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return described.stdout.strip()


def versions() -> dict[str, str]:
    """Versions of the libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def circumstances() -> dict[str, Any]:
    """Processor, cores, versions and commit."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "versions": versions(),
        "commit": commit(),
    }
