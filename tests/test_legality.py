"""The step accepts exactly what the mask allows: both are asked about every action there is."""

from __future__ import annotations

import numpy as np
import pytest

from deck_of_spies_env import IllegalActionError
from deck_of_spies_env.solitaire.games import Games

ALIEN_ACTIONS = (-(2**40), -1, 10_000, 2**40)


@pytest.mark.parametrize("hand_size", range(3, 9))
@pytest.mark.parametrize("idle_ace", [True, False])
def test_the_step_accepts_exactly_what_the_mask_allows(hand_size: int, idle_ace: bool) -> None:
    rules = {"hand_size": hand_size, "idle_ace": idle_ace}
    games, trial = Games(40, rules=rules), Games(1, rules=rules)
    games.seed(range(40), range(40))
    games.deal()
    rng = np.random.default_rng(hand_size)
    num_legal = 0
    for _ in range(30):
        snapshots = games.snapshots()
        chosen = int(rng.integers(40))
        for action in (*range(games.table.num_actions), *ALIEN_ACTIONS):
            trial.restore(snapshots[chosen : chosen + 1])
            try:
                trial.step(np.array([action]))
            except IllegalActionError:
                accepted = False
            else:
                accepted = True
            allowed = action in np.flatnonzero(games.masks[chosen])
            assert accepted == allowed, (games.states[chosen], action)
            num_legal += allowed
        games.step((rng.random(games.masks.shape) * games.masks).argmax(axis=1))
        games.deal(games.over)
    assert num_legal > 50
