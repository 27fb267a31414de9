"""Tests of the examples: they run as their texts say, and the learner learns."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RANDOM_KEY_SPIES = 0.9
"""What uniformly random play reaches on average."""
LEARNED_KEY_SPIES = 2.5
"""Far above random play, far below what the example reaches (about 3.8)."""


def run_example(name: str, folder: Path, *arguments: str) -> str:
    """The stdout of an example, run from another folder."""
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_masked_loop_prints_a_line_for_each_game(tmp_path: Path) -> None:
    printed = run_example("masked_loop.py", tmp_path, "--episodes", "4", "--seed", "11")
    lines = printed.splitlines()
    assert len(lines) == 4
    pattern = r"game \d: (win|loss|no_double_agent) after \d+ spies and (\d+) decisions, .*"
    for number, line in enumerate(lines):
        match = re.fullmatch(pattern, line)
        assert match is not None, line
        assert line.startswith(f"game {number}:")
        assert 1 <= int(match[2]) <= 72
        assert line.endswith("return 1" if match[1] == "win" else "return 0")
    assert printed == run_example("masked_loop.py", tmp_path, "--episodes", "4", "--seed", "11")
    assert printed != run_example("masked_loop.py", tmp_path, "--episodes", "4", "--seed", "12")


def test_training_without_sb3_learns(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    printed = run_example("train_without_sb3.py", tmp_path, "--steps", "200000", "--seed", "0")
    reported = [float(number) for number in re.findall(r"Key Spies (\d+\.\d+)", printed)]
    assert len(reported) > 2
    assert reported[0] < RANDOM_KEY_SPIES + 0.5, "it should begin near random play"
    assert reported[-1] > LEARNED_KEY_SPIES, printed
    assert not list(tmp_path.iterdir())
