"""The step accepts exactly what the mask allows: both are asked about every action there is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from deck_of_spies_env import IllegalActionError
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.games import Games

RANKS = "A23456789TJQK"
ACES = ("Ac", "Ad", "Ah", "As")
ALL = [rank + suit for rank in RANKS[1:] for suit in "cdhs"]

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


def least_set(cards_used: tuple[str, ...], target: int) -> bool:
    """D1, on values alone."""
    values = [RANKS.index(card[0]) + 1 for card in cards_used]
    return sum(values) >= target and all(sum(values) - value < target for value in values)


@pytest.mark.parametrize("hand_size", range(3, 9))
@pytest.mark.parametrize("suit", "cdhs")
def test_every_place_of_the_mask_is_its_own(hand_size: int, suit: str) -> None:
    """Hands of all sizes without Aces, against spies low and high: no play's bit covers another's.

    The masks of counters and recruits are written in overlapping words, so that the places at their
    edges deserve a look: single cards, whole hands, short hands.
    """
    env = DeckOfSpiesEnv(rules={"hand_size": hand_size})
    for rank in "59K":
        spy = rank + suit
        for held in range(1, hand_size + 1):
            for first in (4, 20, 52 - held):
                pool = [card for card in ALL if card != spy][first - 4 :]
                hand = tuple(pool[:held])
                rest = [card for card in ALL if card not in (*hand, spy)]
                zones = {"hand": hand, "spy": spy, "spy_discard": rest, "draw_deck": ACES}
                env.reset(options={"zones": zones})
                target = RANKS.index(rank) + 1
                expected = set()
                for size in range(1, held + 1):
                    for chosen in combinations(hand, size):
                        if least_set(chosen, target):
                            expected.add(("counter", chosen))
                            if all(card[1] == suit for card in chosen):
                                expected.add(("recruit", chosen))
                if not expected:
                    expected = {("assassinate", (ace,)) for ace in ACES}
                legal = {tuple(env.decode(int(a))) for a in np.flatnonzero(env.action_masks())}
                assert legal == expected, (hand, spy)
