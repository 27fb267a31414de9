"""Steps per second of Deck of Spies beside Gymnasium's own environments.

``python benchmarks/timings.py [--rounds 7] [--seconds 0.5]`` prints a markdown table.

Every environment is made as a user makes it: by ``gym.make``, or by ``gym.make_vec`` with its own
vector entry point, and no other arguments. Random play chooses among the legal actions by one and
the same function. The cost of choosing is part of every figure; it is also measured alone and shown
beside them. Environments without masks are given one that allows everything. Resets take time but
count as no step, except in the vector environments, all of them in NEXT_STEP mode, where they are
steps.

The clock is the CPU time of this process, over all its threads, so that other programs on the
machine matter little. All contenders take their turn in every round: what the machine does to one
round it does to all of them. The figures are medians over the rounds, with the lowest and highest.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import deck_of_spies_env  # noqa: F401 - registers the ids

TAXI = max(env_id for env_id in gym.registry if env_id.startswith("Taxi-"))
"""Taxi-v3 or later: the version that this Gymnasium still makes."""
SINGLE = ("DeckOfSpies-v0", TAXI, "CartPole-v1")
VECTOR = ("DeckOfSpies-v0", "CartPole-v1")
SIZES = (64, 1024)
SEED = 0
WARM_UP_CALLS = 200
MASKS_KEPT = 200
MICROSECONDS = 1e6
LIBRARIES = ("deck_of_spies_env", "gymnasium", "numpy", "numba")

Masks = npt.NDArray[Any]


def choose_one(mask: Masks, rng: np.random.Generator) -> int:
    """A random legal action of one game; mask of shape (n,)."""
    legal = mask.nonzero()[0]
    return int(legal[int(rng.random() * len(legal))])


def choose_each(masks: Masks, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """A random legal action of each game, masks of shape (N, n); anything where none is legal."""
    legal = masks.reshape(-1).view(np.bool_).nonzero()[0]
    counts = np.count_nonzero(masks, axis=1)
    picked = counts.cumsum() - counts + (rng.random(len(masks)) * counts).astype(np.int64)
    return legal[np.minimum(picked, len(legal) - 1)] % masks.shape[1]


class Contender(NamedTuple):
    """What is timed.

    Attributes:
        name: id of the environment.
        num_envs: games at a time.
        interface: how it is made, for the table.
        play: makes that many calls of ``step`` with random play.
        choose: makes that many random choices, on masks met before, and nothing else.
    """

    name: str
    num_envs: int
    interface: str
    play: Callable[[int], None]
    choose: Callable[[int], None]


def single(env_id: str) -> Contender:
    """One game from ``gym.make``."""
    env = gym.make(env_id)
    rng = np.random.default_rng(SEED)
    everything = np.ones(int(env.action_space.n), dtype=np.int8)  # type: ignore[attr-defined]

    def masks_in_play() -> Iterator[Masks]:
        _, info = env.reset(seed=SEED)
        while True:
            mask = info.get("action_mask", everything)
            yield mask
            _, _, terminated, truncated, info = env.step(choose_one(mask, rng))
            if terminated or truncated:
                _, info = env.reset()

    return _contender(env_id, 1, "gym.make", masks_in_play(), lambda mask: choose_one(mask, rng))


def vector(env_id: str, num_envs: int) -> Contender:
    """Games side by side in the native vector environment."""
    envs = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point")
    rng = np.random.default_rng(SEED)
    num_actions = int(envs.single_action_space.n)  # type: ignore[attr-defined]
    everything = np.ones((num_envs, num_actions), dtype=np.int8)

    def masks_in_play() -> Iterator[Masks]:
        _, info = envs.reset(seed=SEED)
        while True:
            masks = info.get("action_mask", everything)
            yield masks
            _, _, _, _, info = envs.step(choose_each(masks, rng))

    return _contender(
        env_id, num_envs, "gym.make_vec", masks_in_play(), lambda masks: choose_each(masks, rng)
    )


def _contender(
    env_id: str,
    num_envs: int,
    interface: str,
    masks: Iterator[Masks],
    choose: Callable[[Masks], object],
) -> Contender:
    kept = cycle([np.array(mask) for mask in islice(masks, MASKS_KEPT)])

    def play(calls: int) -> None:
        for _ in islice(masks, calls):
            pass

    def choose_only(calls: int) -> None:
        for mask in islice(kept, calls):
            choose(mask)

    return Contender(env_id, num_envs, interface, play, choose_only)


def cpu_seconds(work: Callable[[int], None], calls: int) -> float:
    """CPU time that the calls take."""
    started = time.process_time()
    work(calls)
    return time.process_time() - started


class Figures(NamedTuple):
    """Of one contender, one entry per round.

    Attributes:
        speeds: steps per CPU second.
        choosing: CPU seconds per step that go into the random choice.
    """

    speeds: list[float]
    choosing: list[float]


def measure(contenders: list[Contender], rounds: int, seconds: float) -> list[Figures]:
    """Time all contenders in turn, round by round, after a warm-up of each."""
    calls: list[int] = []
    for contender in contenders:
        contender.play(WARM_UP_CALLS)
        contender.choose(WARM_UP_CALLS)
        per_call = cpu_seconds(contender.play, WARM_UP_CALLS) / WARM_UP_CALLS
        calls.append(max(WARM_UP_CALLS, int(seconds / per_call)))
    figures = [Figures([], []) for _ in contenders]
    for number in range(rounds):
        sys.stderr.write(f"round {number + 1} of {rounds}\n")
        for contender, count, found in zip(contenders, calls, figures, strict=True):
            steps = count * contender.num_envs
            found.speeds.append(steps / cpu_seconds(contender.play, count))
            found.choosing.append(cpu_seconds(contender.choose, count) / steps)
    return figures


def table(contenders: list[Contender], figures: list[Figures]) -> str:
    """The figures as a markdown table."""
    lines = [
        "| environment | made by | games | steps per CPU second | lowest-highest "
        "| CPU time per step | of it the random choice |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for contender, (speeds, choosing) in zip(contenders, figures, strict=True):
        lines.append(
            f"| {contender.name} | `{contender.interface}` | {contender.num_envs:,} "
            f"| {median(speeds):,.0f} | {min(speeds):,.0f}-{max(speeds):,.0f} "
            f"| {MICROSECONDS / median(speeds):.3g} µs "
            f"| {MICROSECONDS * median(choosing):.2g} µs |"
        )
    return "\n".join(lines)


def cpu_model() -> str:
    """The processor's name, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Steps per second beside Gymnasium's own.")
    parser.add_argument("--rounds", type=int, default=7, help="at least 5 for a figure to quote")
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="CPU time of each contender in each round"
    )
    args = parser.parse_args()
    contenders: list[Contender] = []
    for make, arguments in (
        *((single, (env_id,)) for env_id in SINGLE),
        *((vector, (env_id, num_envs)) for num_envs in SIZES for env_id in VECTOR),
    ):
        try:
            contenders.append(make(*arguments))
        except gym.error.DependencyNotInstalled as error:
            sys.stderr.write(f"{arguments[0]} is left out: {error}\n")
    figures = measure(contenders, args.rounds, args.seconds)
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    sys.stdout.write(
        f"{table(contenders, figures)}\n\n"
        f"Medians of {args.rounds} interleaved rounds, one thread, random legal play. "
        f"{cpu_model()}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}.\n"
    )


if __name__ == "__main__":
    main()
