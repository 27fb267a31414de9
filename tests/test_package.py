"""Tests of the package as a whole: what importing it costs, and what it ships."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import deck_of_spies_env

# Numba loads parts of SciPy where it is installed, so imports are counted from a first use of it.
HEAVY = ("torch", "stable_baselines3", "sb3_contrib", "pettingzoo", "pygame", "matplotlib", "scipy")

USE = """
import gymnasium as gym
import deck_of_spies_env

env = gym.make("DeckOfSpies-v0", render_mode="ansi")
obs, info = env.reset(seed=0)
env.step(env.action_space.sample(info["action_mask"]))
env.render()
env.unwrapped.fork(1).zones()
envs = gym.make_vec("DeckOfSpies-v0", num_envs=2, vectorization_mode="vector_entry_point")
obs, info = envs.reset(seed=0)
envs.step(info["action_mask"].argmax(axis=1))
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


def heavy_imports_of(code: str) -> str:
    """Run code in a fresh interpreter and list the heavy modules that it, not Numba, imported."""
    report = f"print([m for m in set(sys.modules) - before if m.partition('.')[0] in {HEAVY}])"
    warm_up = "import sys, numba\nnumba.njit(lambda: 0)()"
    done = run(f"{warm_up}\nbefore = set(sys.modules)\n{code}\n{report}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    ["import deck_of_spies_env", USE, USE + "import deck_of_spies_env.testing"],
    ids=["import", "use", "use and testing"],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert heavy_imports_of(code) == "[]"


def test_the_check_for_heavy_imports_can_fail() -> None:
    assert "'scipy.stats'" in heavy_imports_of("import scipy.stats")


def test_importing_prints_nothing() -> None:
    done = run("import deck_of_spies_env")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_heavy_imports_are_blocked_without_harm() -> None:
    """The engine works where none of the heavy packages is installed."""
    blocked = f"import sys; sys.modules.update(dict.fromkeys({HEAVY}))\n"
    done = run(blocked + USE + "print('played')")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "played"


def test_ids_are_registered_by_the_import() -> None:
    done = run(
        "import gymnasium as gym, deck_of_spies_env\n"
        "print(sorted(name for name in gym.registry if name.startswith('DeckOfSpies')))"
    )
    assert done.stdout.strip() == str(sorted(deck_of_spies_env.ENV_IDS)), done.stderr


def test_gymnasium_can_import_the_package_by_itself() -> None:
    done = run(
        "import gymnasium as gym\n"
        "env = gym.make('deck_of_spies_env:DeckOfSpies-v0')\n"
        "print(env.spec.id)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("DeckOfSpies-v0")


def test_types_are_shipped() -> None:
    package = Path(deck_of_spies_env.__file__).parent
    assert (package / "py.typed").is_file()


def test_the_version_is_the_installed_one() -> None:
    version = deck_of_spies_env.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert importlib.metadata.version("deck_of_spies_env") == version


def test_the_public_names() -> None:
    for name in deck_of_spies_env.__all__:
        assert hasattr(deck_of_spies_env, name), name
    assert {"ENV_IDS", "Action", "IllegalActionError", "Rules", "__version__"} <= set(
        deck_of_spies_env.__all__
    )


def test_vector_entry_points_are_registered() -> None:
    for env_id in deck_of_spies_env.ENV_IDS:
        spec = gym.spec(env_id)
        assert spec.vector_entry_point
        assert not spec.nondeterministic
        assert spec.max_episode_steps is None
