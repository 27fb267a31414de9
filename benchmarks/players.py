"""What is timed: this project's environments and Gymnasium's own, played at random.

A *player* holds games that stay in play between the timed slices. Each function here makes one in
the process that will be timed; ``workloads`` names them.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import deck_of_spies_env  # noqa: F401 - registers the ids
from benchmarks.choosing import choose_one, chooser_for, new_stream

SEED = 0
STEPS_LOOKED_AT = 20_000
"""Steps played before the clock runs, to count the resets among them and to meet masks."""
LEAST_CALLS_LOOKED_AT = 200
FEW_STEPS = 10
CALLS_TO_FALL_OUT_OF_STEP = 100
"""The games of a batch begin together; after several of them each is at a point of its own."""
BYTES_OF_MASKS_KEPT = 1 << 20
"""As much as stays in a core's cache, where masks lie when they have just been written."""
MOST_MASKS_KEPT = 200
TAXI = max(env_id for env_id in gym.registry if env_id.startswith("Taxi-"))
"""Taxi-v3 or later: the version that this Gymnasium makes."""

Masks = npt.NDArray[Any]


@dataclass
class Player:
    """Games in play.

    Attributes:
        play: makes that many calls of what is timed, and returns the steps in them.
        choose: makes that many calls of the random choice alone, on masks met before, and returns
            the steps that they would have served; None if the choice is not timed apart.
        share_of_resets: how many of the steps deal a game anew instead of playing an action.
        facts: figures that need no clock, for the report.
        of_last_slice: what the last slice left besides steps and time.
    """

    play: Callable[[int], float]
    choose: Callable[[int], float] | None = None
    share_of_resets: float = 0.0
    facts: dict[str, float] = field(default_factory=dict)
    of_last_slice: Callable[[], dict[str, float]] = dict


def single(env_id: str) -> Player:
    """One game from ``gym.make`` with its default wrappers. A step is a call of ``step``."""
    if env_id == "Taxi":
        env_id = TAXI
    env = gym.make(env_id)
    stream = new_stream(SEED)
    everything = np.ones(int(env.action_space.n), dtype=np.int8)  # type: ignore[attr-defined]
    _, info = env.reset(seed=SEED)
    masked = "action_mask" in info
    mask = info["action_mask"] if masked else everything
    kept: list[Masks] = []

    def play(calls: int) -> float:
        nonlocal mask
        for _ in range(calls):
            _, _, terminated, truncated, info = env.step(choose_one(mask, stream))
            if terminated or truncated:
                _, info = env.reset()
            if masked:
                mask = info["action_mask"]
        return calls

    for _ in range(MOST_MASKS_KEPT):
        play(1)
        kept.append(mask.copy())
    masks_met = cycle(kept)

    def choose(calls: int) -> float:
        for mask in islice(masks_met, calls):
            choose_one(mask, stream)
        return calls

    return Player(play, choose)


def batch(
    envs: Any,
    num_actions: int,
    *,
    action_type: type[np.integer[Any]] = np.int64,
    seed: int | None = SEED,
) -> Player:
    """Random play in a vector environment that has been made. A step is one game of one call.

    Args:
        envs: with Gymnasium's ``reset`` and ``step``; without masks in its infos, all is legal.
        num_actions: of a game.
        action_type: as the environment wants its actions.
        seed: for the first reset, None for environments that are seeded when made.
    """
    _, info = envs.reset(seed=seed)
    num_envs = int(envs.num_envs)
    masked = "action_mask" in info
    masks = info["action_mask"] if masked else np.ones((num_envs, num_actions), dtype=np.int8)
    choose_each = chooser_for(masks)
    stream = new_stream(SEED)
    actions = np.zeros(num_envs, dtype=action_type)

    def play(calls: int) -> float:
        nonlocal masks
        for _ in range(calls):
            choose_each(masks, stream, actions)
            _, _, _, _, info = envs.step(actions)
            if masked:
                masks = info["action_mask"]
        return calls * num_envs

    def look(calls: int) -> tuple[float, list[Masks]]:
        """The share of resets in so many calls, and masks met in the last of them."""
        nonlocal masks
        resets = 0
        kept: list[Masks] = []
        wanted = min(MOST_MASKS_KEPT, max(1, BYTES_OF_MASKS_KEPT // masks.nbytes))
        for call in range(calls):
            choose_each(masks, stream, actions)
            _, _, terminated, truncated, info = envs.step(actions)
            resets += np.count_nonzero(terminated | truncated)  # the next step deals these anew
            if masked:
                masks = info["action_mask"]
            if calls - call <= wanted:
                kept.append(masks.copy())
        return resets / (calls * num_envs), kept

    play(CALLS_TO_FALL_OUT_OF_STEP)
    share, kept = look(max(LEAST_CALLS_LOOKED_AT, STEPS_LOOKED_AT // num_envs))
    masks_met = cycle(kept)

    def choose(calls: int) -> float:
        for masks in islice(masks_met, calls):
            choose_each(masks, stream, actions)
        return calls * num_envs

    return Player(play, choose, share)


def make_envs(env_id: str, num_envs: int, options: Mapping[str, Any]) -> Any:
    """The native vector environment of an id."""
    return gym.make_vec(
        env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **options
    )


def vector(env_id: str, num_envs: int, **options: Any) -> Player:
    """The native vector environment of an id, in its default autoreset mode NEXT_STEP."""
    _play_a_little(make_envs(env_id, 1, options))  # compiled code is no memory of the games
    gc.collect()
    before = resident_bytes()
    envs = make_envs(env_id, num_envs, options)
    _play_a_little(envs)
    gc.collect()
    facts = {
        "array_bytes_per_game": array_bytes(envs) / num_envs,
        "resident_bytes_per_game": (resident_bytes() - before) / num_envs,
    }
    player = batch(envs, int(envs.single_action_space.n))
    player.facts = facts
    return player


def _play_a_little(envs: Any) -> None:
    """A few steps at which nothing is kept."""
    _, info = envs.reset(seed=SEED)
    masks = info.get("action_mask", np.ones((envs.num_envs, 1), dtype=np.int8))
    stream = new_stream(SEED)
    actions = np.zeros(envs.num_envs, dtype=np.int64)
    for _ in range(FEW_STEPS):
        chooser_for(masks)(masks, stream, actions)
        _, _, _, _, info = envs.step(actions)
        masks = info.get("action_mask", masks)


def array_bytes(envs: Any) -> int:
    """Bytes of all arrays that an environment and its ``games`` hold, each counted once."""
    holders = [vars(holder) for holder in (envs, getattr(envs, "games", None)) if holder]
    arrays = {
        id(owner): owner.nbytes
        for held in holders
        for value in held.values()
        if isinstance(value, np.ndarray)
        for owner in [value if value.base is None else value.base]
        if isinstance(owner, np.ndarray)
    }
    return sum(arrays.values())


def resident_bytes() -> int:
    """Memory of this process that is in RAM; 0 where the system doesn't tell."""
    statm = Path("/proc/self/statm")
    if not statm.is_file():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def clone(num_envs: int, *, masks: bool = False) -> Player:
    """Save all games of a batch with their random streams and restore them. A step is a game.

    Args:
        num_envs: games of the batch, each somewhere in its course.
        masks: ask for the legal actions after each restoring, so that play could go on.
    """
    envs = make_envs("DeckOfSpies-v0", num_envs, {})
    batch(envs, int(envs.single_action_space.n))

    def play(calls: int) -> float:
        for _ in range(calls):
            envs.set_state(envs.get_state())
            if masks:
                envs.action_masks()
        return calls * num_envs

    return Player(play)


def rollouts(policy: str, num_games: int, dealing: str = "envs") -> Player:
    """Whole games in compiled code, dealing included. A step is a decision.

    Args:
        policy: ``"random"`` or ``"greedy"``.
        num_games: dealt and played out by one call.
        dealing: ``"envs"``, by the reset of a vector environment, which goes on to the next episode
            of seeds that it has; or ``"deal_snapshots"``, with new seeds at each call.
    """
    from deck_of_spies_env.solitaire.rollouts import (  # noqa: PLC0415 - absent from old versions
        deal_snapshots,
        play_out,
    )

    envs = make_envs("DeckOfSpies-v0", num_games, {})
    envs.reset(seed=SEED)
    next_seed = SEED

    def dealt() -> npt.NDArray[Any]:
        nonlocal next_seed
        if dealing == "envs":
            envs.reset()
            return envs.get_state()
        next_seed += num_games
        return deal_snapshots(range(next_seed, next_seed + num_games))

    def play(calls: int) -> float:
        decisions = 0
        for _ in range(calls):
            decisions += int(play_out(dealt(), policy=policy).decisions.sum())
        return decisions

    return Player(play)
