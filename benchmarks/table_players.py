"""Tables of Skirmish, and simultaneous games of other libraries, played at random.

As in ``players``: every function makes a player in the process that will be timed. A step is a
joint decision: all seats have their observations and legal actions, and act at once.
"""

from __future__ import annotations

import random
from itertools import cycle, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.choosing import choose_each, choose_one, new_stream
from benchmarks.players import (
    BYTES_OF_MASKS_KEPT,
    CALLS_TO_FALL_OUT_OF_STEP,
    MOST_MASKS_KEPT,
    SEED,
    Player,
)


def tables(num_envs: int, num_players: int) -> Player:
    """Our native vector environment: all seats of N tables. A step is one table in one call."""
    from deck_of_spies_env.skirmish.vector_env import SkirmishVectorEnv  # noqa: PLC0415

    envs = SkirmishVectorEnv(num_envs=num_envs, num_players=num_players)
    _, info = envs.reset(seed=SEED)
    masks: npt.NDArray[np.int8] = info["action_mask"]
    stream = new_stream(SEED)
    actions = np.zeros((num_envs, num_players), dtype=np.int64)

    def play(calls: int) -> float:
        nonlocal masks
        for _ in range(calls):
            choose_each(masks.reshape(-1, masks.shape[2]), stream, actions.reshape(-1))
            _, _, _, _, info = envs.step(actions)
            masks = info["action_mask"]
        return calls * num_envs

    play(CALLS_TO_FALL_OUT_OF_STEP)
    kept: list[npt.NDArray[np.int8]] = []
    resets = calls = 0
    for _ in range(min(MOST_MASKS_KEPT, max(1, BYTES_OF_MASKS_KEPT // masks.nbytes))):
        choose_each(masks.reshape(-1, masks.shape[2]), stream, actions.reshape(-1))
        _, _, terminated, truncated, info = envs.step(actions)
        resets += int(np.count_nonzero(terminated | truncated))
        calls += 1
        masks = info["action_mask"]
        kept.append(masks.reshape(-1, masks.shape[2]).copy())
    masks_met = cycle(kept)

    def choose(calls: int) -> float:
        for one in islice(masks_met, calls):
            choose_each(one, stream, actions.reshape(-1))
        return calls * num_envs

    return Player(play, choose, resets / (calls * num_envs))


def parallel(num_players: int) -> Player:
    """Our PettingZoo environment, a single table."""
    from deck_of_spies_env.skirmish import parallel_env  # noqa: PLC0415

    return _parallel(parallel_env(num_players=num_players), masked=True)


def pettingzoo_parallel(game: str) -> Player:
    """A simultaneous game of PettingZoo's classic ones, made by its ``parallel_env``."""
    import importlib  # noqa: PLC0415

    made: Any = importlib.import_module(f"pettingzoo.classic.{game}").parallel_env()
    return _parallel(made, masked=False)


def _parallel(env: Any, *, masked: bool) -> Player:
    """Random play in a ParallelEnv; legal actions are all where there are no masks."""
    stream = new_stream(SEED)
    everything = {
        agent: np.ones(int(env.action_space(agent).n), dtype=np.int8)
        for agent in env.possible_agents
    }
    observations, _ = env.reset(seed=SEED)

    def play(calls: int) -> float:
        nonlocal observations
        for _ in range(calls):
            actions = {
                agent: choose_one(
                    observations[agent]["action_mask"] if masked else everything[agent], stream
                )
                for agent in env.agents
            }
            observations, _, _, _, _ = env.step(actions)
            if not env.agents:
                observations, _ = env.reset()
        return calls

    play(CALLS_TO_FALL_OUT_OF_STEP)
    return Player(play)


def open_spiel_joint(game: str, num_players: int) -> Player:
    """A simultaneous-move game of OpenSpiel in a Python loop, with what each player sees."""
    import pyspiel  # noqa: PLC0415 - an optional peer
    from open_spiel.python.observation import make_observation  # noqa: PLC0415

    loaded = pyspiel.load_game(game, {"imp_info": True, "players": num_players})
    observation = make_observation(loaded)
    uniform = random.Random(SEED).random
    players = range(num_players)

    def play(calls: int) -> float:
        steps = 0
        while steps < calls:
            state = loaded.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes = state.chance_outcomes()
                    state.apply_action(outcomes[int(uniform() * len(outcomes))][0])
                    continue
                actions = []
                for player in players:
                    observation.set_from(state, player)
                    mask = state.legal_actions_mask(player)
                    legal = [action for action, allowed in enumerate(mask) if allowed]
                    actions.append(legal[int(uniform() * len(legal))])
                state.apply_actions(actions)
                steps += 1
        return steps

    return Player(play)
