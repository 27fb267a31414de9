"""Minari: recorded games of Deck of Spies as a dataset for offline reinforcement learning.

Needs Minari: ``pip install 'deck_of_spies_env[minari]'``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np

import deck_of_spies_env
from deck_of_spies_env.records.format import GameRecord, SolitaireRecord
from deck_of_spies_env.records.replays import replay_solitaire

try:
    minari: Any = import_module("minari")
    _episode_buffer: Any = import_module("minari.data_collector").EpisodeBuffer
except ImportError as error:
    raise ImportError(
        "datasets for Minari need it: pip install 'deck_of_spies_env[minari]'"
    ) from error

ENV_ID = "DeckOfSpies-v0"
_SEED_LIMIT = 1 << 63  # the files hold 64 bits


def make_dataset(
    dataset_id: str,
    records: Iterable[GameRecord],
    *,
    objective: str | Mapping[str, float] = "win",
    observation: str = "recall",
    **metadata: Any,
) -> Any:
    """Make a local Minari dataset of records, each of which is replayed and checked.

    An episode holds T + 1 observations, T actions, rewards, terminations and truncations, and in
    its infos ``action_mask``, int8 (T + 1, n), the last row of which is 0. Its seed is that of the
    deal where ``env.reset(seed=...)`` begins that game, else it has none. All episodes are held in
    memory before the first is written, some 30 KB a game.

    Args:
        dataset_id: as Minari has it, such as ``deck_of_spies/greedy-v0``; none that exists.
        records: of Deck of Spies, all of the same rules, at least one.
        objective, observation: as the environment takes them.
        metadata: what else ``minari.create_dataset_from_buffers`` takes, such as ``author``,
            ``algorithm_name`` and ``description``.

    Returns:
        The ``minari.MinariDataset``; its ``recover_environment()`` gives the environment.

    Raises:
        RecordError: a record of the other game or of other rules, or one that does not replay.
            Nothing is written then.
        ValueError: no records, an unknown objective or observation, or a dataset of this name.
    """
    deals = [_solitaire(record) for record in records]
    if not deals:
        raise ValueError("there must be at least one record to make a dataset of")
    rules = deals[0].rules
    for record in deals:
        if record.rules != rules:
            raise record.error(f"a dataset has one rule set, and this one has not {rules}")
    env = gym.make(ENV_ID, objective=objective, observation=observation, rules=asdict(rules))
    requirements = [f"deck_of_spies_env=={deck_of_spies_env.__version__}"]
    return minari.create_dataset_from_buffers(
        dataset_id,
        buffer=[_episode(record, objective, observation) for record in deals],
        env=env,
        **{"eval_env": env, "requirements": requirements, **metadata},
    )


def _episode(
    record: SolitaireRecord, objective: str | Mapping[str, float], observation: str
) -> Any:
    """A record as an episode of Minari."""
    positions = list(replay_solitaire(record, objective, observation))
    num_steps = len(positions) - 1
    terminations = np.arange(num_steps) == num_steps - 1
    from_reset = record.episode == 0 and record.start is None and record.seed < _SEED_LIMIT
    return _episode_buffer(
        seed=record.seed if from_reset else None,
        observations=np.stack([position.observation for position in positions]),
        actions=np.array([position.index for position in positions[:-1]], dtype=np.int64),
        rewards=np.array([position.reward for position in positions[1:]], dtype=np.float64),
        terminations=terminations,
        truncations=np.zeros_like(terminations),
        infos={"action_mask": np.stack([position.action_mask for position in positions])},
    )


def _solitaire(record: GameRecord) -> SolitaireRecord:
    if not isinstance(record, SolitaireRecord):
        raise record.error("a dataset can be made of games of Deck of Spies only")
    return record
