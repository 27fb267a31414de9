"""Deck of Spies as a reinforcement-learning environment.

Importing this package registers ``DeckOfSpies-v0`` and its variants with Gymnasium, and
``Skirmish-v0``.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from deck_of_spies_env.solitaire.actions import Action, IllegalActionError
from deck_of_spies_env.solitaire.rules import Rules

__version__ = "0.1.0"

__all__ = ["ENV_IDS", "Action", "IllegalActionError", "Rules", "__version__"]

ENV_IDS: dict[str, dict[str, Any]] = {
    "DeckOfSpies-v0": {},
    "DeckOfSpiesKeys-v0": {"objective": "keys"},
    "DeckOfSpiesPerfect-v0": {"objective": "perfect"},
}
"""Registered ids and their fixed arguments, all of them the same environment."""

for _env_id, _arguments in ENV_IDS.items():
    gym.register(
        id=_env_id,
        entry_point="deck_of_spies_env.solitaire.env:DeckOfSpiesEnv",
        vector_entry_point="deck_of_spies_env.solitaire.vector_env:DeckOfSpiesVectorEnv",
        kwargs=_arguments,
    )

gym.register(id="Skirmish-v0", entry_point="deck_of_spies_env.skirmish.env:SkirmishEnv")
