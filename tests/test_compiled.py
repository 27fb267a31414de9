"""The compile cache of kernels outside the package: nothing stale, and nothing compiled twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import deck_of_spies_env
from deck_of_spies_env.compiled import compiling

KERNELS = """
import numpy as np
from deck_of_spies_env.compiled import entry_point
from deck_of_spies_env.random_streams import mix
from helper import doubled


@entry_point
def value(word):
    return doubled(mix(word))


result = value(np.uint64(1))
print(result, sum(value.stats.cache_misses.values()))
"""

HELPER = """
import numpy as np
from deck_of_spies_env.compiled import kernel


@kernel
def doubled(word):
    return word * np.uint64(2)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of the package's sources, and beside it a directory with an entry point."""
    package = Path(deck_of_spies_env.__file__).parent
    without_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, tmp_path / package.name, ignore=without_caches)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "kernels.py").write_text(KERNELS)
    (tmp_path / "kernels" / "helper.py").write_text(HELPER)
    return tmp_path


def run(root: Path) -> tuple[int, bool]:
    """Run the entry point in a fresh process: what it returns, and whether it was compiled."""
    done = subprocess.run(
        [sys.executable, "-B", str(root / "kernels" / "kernels.py")],
        env={**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(root / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result, misses = done.stdout.split()
    return int(result), misses != "0"


def edit(path: Path, old: str, new: str) -> None:
    """Replace some text, which must be there."""
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_entry_points_elsewhere_are_compiled_anew_after_an_edit(elsewhere: Path) -> None:
    """Of the package or of their own directory, in whatever file of these."""
    first, compiled = run(elsewhere)
    assert compiled
    assert run(elsewhere) == (first, False)
    edit(elsewhere / "kernels" / "helper.py", "np.uint64(2)", "np.uint64(3)")
    second, compiled = run(elsewhere)
    assert compiled
    assert second * 2 % 2**64 == first * 3 % 2**64
    edit(elsewhere / "deck_of_spies_env" / "random_streams.py", "0xBF58476D", "0xBF58476F")
    third, compiled = run(elsewhere)
    assert compiled
    assert third != second
    assert run(elsewhere) == (third, False)


def test_entry_points_elsewhere_do_not_depend_on_other_directories(elsewhere: Path) -> None:
    first, _ = run(elsewhere)
    (elsewhere / "kernels" / "other").mkdir()
    (elsewhere / "kernels" / "other" / "more.py").write_text("more = 1\n")
    (elsewhere / "elsewhere.py").write_text("more = 1\n")
    assert run(elsewhere) == (first, False)


def test_an_interrupt_while_compiling_is_raised_when_all_is_compiled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = signal.getsignal(signal.SIGINT)
    finished: list[bool] = []

    def compile_under_interrupt() -> None:
        with compiling():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            finished.append(True)

    with pytest.raises(KeyboardInterrupt):
        compile_under_interrupt()
    assert finished
    assert capsys.readouterr().err.count("interrupted, to stop as soon as") == 1
    assert signal.getsignal(signal.SIGINT) is handler
    with compiling():
        pass  # and none is left for later


def test_compiling_in_another_thread_leaves_signals_alone() -> None:
    finished: list[bool] = []

    def work() -> None:
        with compiling():
            finished.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert finished
