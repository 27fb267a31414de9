"""One process for each contender, told by the parent when to run: one at a time, in turn.

A process of its own keeps one library's threads and memory from disturbing another's figures, and
gives each the CPU time of all its threads.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from benchmarks.workloads import Contender

if TYPE_CHECKING:
    from benchmarks.players import Player

WARM_UP_SECONDS = 0.2
CHOICE_SHARE = 0.25
"""Of a slice, for the choice measured alone."""
UNTIMED_SHARE = 0.05
"""Of a slice, played before the clocks start: the caches are filled with another's data."""
LONGEST_SILENCE = 900.0
"""Seconds without an answer after which a contender is given up."""
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}
"""Set before any library is imported, which is when they are read."""

Slice = dict[str, float]
"""Steps, ``wall`` and ``cpu`` seconds of one slice, the same of the choice (``choice_...``), and
what else the player has to say of it."""


class LeftOutError(Exception):
    """A contender that can't be timed; the message says why, in one line."""


class Worker:
    """A contender in a process of its own, made and warmed up.

    Args:
        contender: what to make.
        core: the core to keep to, unless the contender uses them all; None for any.
        seconds: how long a slice lasts.

    Attributes:
        facts: what the player knows of itself, and its share of resets.

    Raises:
        LeftOutError: it can't be made.
    """

    def __init__(self, contender: Contender, core: int | None, seconds: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, others_end = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(others_end, contender, core, seconds * contender.slice_factor)
        )
        with _environment(ONE_THREAD):
            self._process.start()
        others_end.close()
        try:
            self.facts: dict[str, float] = self._answer()
        except BaseException:
            self.close()
            raise

    def run(self) -> Slice:
        """Time one slice.

        Raises:
            LeftOutError: it failed.
        """
        self._connection.send("run")
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _answer(self) -> Any:
        try:
            if not self._connection.poll(LONGEST_SILENCE):
                self._process.kill()
                raise LeftOutError(f"no answer within {LONGEST_SILENCE:.0f} s")
            kind, content = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join(timeout=10)
            status = self._process.exitcode
            raise LeftOutError(f"its process ended with status {status}") from None
        if kind == "error":
            raise LeftOutError(content)
        return content


@contextmanager
def _environment(variables: Mapping[str, str]) -> Generator[None]:
    """Environment variables for processes that are started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(connection: Connection, contender: Contender, core: int | None, seconds: float) -> None:
    """Make the player, then time slices until the other end of the connection is closed."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no result
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt ends
    try:
        if contender.one_core and core is not None:
            os.sched_setaffinity(0, {core})
        module, _, function = contender.make.partition(":")
        make = getattr(importlib.import_module(f"benchmarks.{module}"), function)
        player: Player = make(**contender.arguments)
        timer = _Timer(player, seconds)
        connection.send(("ready", {**player.facts, "share_of_resets": player.share_of_resets}))
        while True:
            try:
                connection.recv()
            except (EOFError, ConnectionError):
                return
            connection.send(("slice", timer.slice()))
    except Exception as error:  # whatever a library may raise is a reason to leave it out
        with suppress(OSError):
            connection.send(("error", _one_line(error)))


def _one_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class _Timer:
    """Times slices of a fixed number of calls, found while warming up."""

    def __init__(self, player: Player, seconds: float) -> None:
        self._player = player
        self._calls = calls_lasting(player.play, seconds)
        self._choices = 0
        if player.choose is not None:
            self._choices = calls_lasting(player.choose, seconds * CHOICE_SHARE)

    def slice(self) -> Slice:
        player = self._player
        untimed = int(self._calls * UNTIMED_SHARE)
        if untimed:
            player.play(untimed)
        result = timed(player.play, self._calls)
        result |= player.of_last_slice()
        if player.choose is not None:
            player.choose(math.ceil(self._choices * UNTIMED_SHARE))
            choice = timed(player.choose, self._choices)
            result |= {f"choice_{name}": value for name, value in choice.items()}
        return result


def calls_lasting(play: Any, seconds: float) -> int:
    """How many calls take about so long, at least 1; found by making ever more of them."""
    play(1)  # may compile
    calls = 1
    while True:
        started = time.perf_counter()
        play(calls)
        lasted = time.perf_counter() - started
        if lasted >= min(seconds, WARM_UP_SECONDS):
            return max(1, round(calls * seconds / lasted))
        calls *= 2


def timed(play: Any, calls: int) -> Slice:
    """Steps of so many calls, with the wall and the CPU seconds that they take."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    steps = play(calls)
    cpu_after, wall_after = cpu_seconds(), time.perf_counter()
    return {"steps": steps, "wall": wall_after - wall, "cpu": cpu_after - cpu}


def cpu_seconds() -> float:
    """CPU time so far of all threads of this process and of the processes that it has started.

    Raises:
        LeftOutError: there are such processes, and this system doesn't tell their time.
    """
    children = multiprocessing.active_children()
    if children and sys.platform != "linux":
        raise LeftOutError("CPU time of several processes is known on Linux only")
    # clock_getcpuclockid(3) by hand: Python has it for threads alone.
    clocks = [(~child.pid << 3) | 2 for child in children if child.pid is not None]
    return time.process_time() + sum(time.clock_gettime(clock) for clock in clocks)
