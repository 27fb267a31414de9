"""What each final number of Key Spies is worth under an objective."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.solitaire.games import scoring_of
from deck_of_spies_env.solitaire.rules import Rules

NUM_COUNTS = cards.NUM_KEY_SPIES + 1
"""Final numbers of Key Spies, 0-12; a loss by D8 counts as 0."""


def utility_of(objective: str | Mapping[str, float], rules: Rules) -> npt.NDArray[np.float32]:
    """What each final count of Key Spies is worth: float32 (13,).

    Args:
        objective: ``win``, ``keys``, ``perfect``, or weights by these names.
        rules: the rule set, for the count that wins.

    Raises:
        ValueError: another objective.
    """
    weights = scoring_of(objective, None)[0]
    count = np.arange(NUM_COUNTS)
    worth = weights["keys"] * count / cards.NUM_KEY_SPIES
    worth = worth + weights["win"] * (count >= rules.key_spies_to_win)
    return np.asarray(worth + weights["perfect"] * (count == cards.NUM_KEY_SPIES), np.float32)
