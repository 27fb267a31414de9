"""All that chance can bring, up to suits, with probabilities: for small decks that can be solved.

A listing plays the same kernels as a game, with a script in place of random streams: each draw
takes the next choice of the script, and an odometer runs through all scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.compiled import entry_point, kernel
from deck_of_spies_env.skirmish import cards
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.rules import SCRIPT, STATE, Rules

FEW_OUTCOMES = 64


@kernel
def _next_script(script: Any) -> bool:
    """Turn the odometer on; False after the last script."""
    while script.length > 0:
        last = script.length - 1
        if script.choices[last] + 1 < script.options[last]:
            script.choices[last] += 1
            return True
        script.length = last
    return False


@entry_point
def list_plays(
    states: Any, rules: Any, ranks: Any, scripts: Any, outcomes: Any, probabilities: Any
) -> int:
    """List what can follow when all seats that decide commit ranks.

    Args:
        states: shape (1,), dtype STATE.
        rules: shape (1,), dtype RULES.
        ranks: int64 (n,), as in rules.play.
        scripts: shape (1,), dtype SCRIPT, overwritten.
        outcomes: shape (K,), dtype STATE, overwritten.
        probabilities: float64 (K,), overwritten.

    Returns:
        How many outcomes there are; those beyond K are counted only.
    """
    script = scripts[0]
    script.length = 0
    count = 0
    work = states.copy()
    while True:
        work[0] = states[0]
        script.cursor, script.probability = 0, 1.0
        game.play(work[0], script, rules[0], ranks)
        if count < len(outcomes):
            outcomes[count] = work[0]
            probabilities[count] = script.probability
        count += 1
        if not _next_script(script):
            return count


def outcomes_of(
    state: npt.NDArray[Any], rules: npt.NDArray[Any], ranks: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """What can follow a joint action, and how likely each of it is.

    Positions that differ in suits only may be listed more than once.

    Args:
        state: shape (1,), dtype STATE, not over.
        rules: shape (1,), dtype RULES.
        ranks: int64 (n,), as in rules.play.

    Returns:
        Shape (K,), dtype STATE, and float64 (K,) with sum 1.
    """
    size, script = FEW_OUTCOMES, np.zeros(1, SCRIPT)
    while True:
        outcomes, probabilities = np.zeros(size, STATE), np.zeros(size)
        count = list_plays(state, rules, ranks, script, outcomes, probabilities)
        if count <= size:
            return outcomes[:count], probabilities[:count]
        size = count


def deals_of(rules: Rules, num_players: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """All deals of a small deck, up to suits: who holds which ranks in hand and Supply.

    Args:
        rules: the rule set.
        num_players: 2-4.

    Returns:
        Shape (K,), dtype STATE, and float64 (K,) with sum 1.
    """
    deck = [rules.deck >> (4 * rank) & 0b1111 for rank in range(cards.NUM_RANKS)]
    share = rules.deck.bit_count() // num_players
    hand = min(share, game.HAND_SIZE)
    sizes = [hand] * num_players + [share - hand] * num_players
    states: list[npt.NDArray[Any]] = []
    weights: list[int] = []
    for piles, left, weight in _partitions([cards_of.bit_count() for cards_of in deck], sizes):
        states.append(_dealt(deck, [*piles, left], num_players))
        weights.append(weight)
    probabilities = np.array(weights, dtype=np.float64)
    return np.concatenate(states), probabilities / probabilities.sum()


Counts = tuple[int, ...]


def _partitions(counts: list[int], sizes: list[int]) -> Iterator[tuple[list[Counts], Counts, int]]:
    """Piles of given sizes out of so many cards of each rank: piles, what is left, and the weight.

    The weight is the number of ways with cards that can be told apart.
    """
    if not sizes:
        yield [], tuple(counts), 1
        return
    for pile in product(*(range(count + 1) for count in counts)):
        if sum(pile) == sizes[0]:
            ways = prod(comb(count, taken) for count, taken in zip(counts, pile, strict=True))
            left = [count - taken for count, taken in zip(counts, pile, strict=True)]
            for piles, rest, weight in _partitions(left, sizes[1:]):
                yield [pile, *piles], rest, ways * weight


def _dealt(deck: list[int], piles: list[Counts], num_players: int) -> npt.NDArray[Any]:
    """The position with piles of these ranks: hands, Supplies, and the burned cards last."""
    free = list(deck)
    masks: list[int] = []
    for pile in piles:
        mask = 0
        for rank, count in enumerate(pile):
            for _ in range(count):
                lowest = free[rank] & -free[rank]
                free[rank] ^= lowest
                mask |= lowest << (4 * rank)
        masks.append(mask)
    state = np.zeros(1, STATE)
    state["hand"][0, :num_players] = masks[:num_players]
    state["supply"][0, :num_players] = masks[num_players : 2 * num_players]
    state["burned"] = masks[-1]
    state["dealt"] = sum(masks)  # a position tells by it what is hidden still
    state["committed"] = game.NO_CARD
    return state
