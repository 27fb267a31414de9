"""Afterstates and the network over them written a second time: by zones' names, dense, in NumPy.

An afterstate is a dict: zone -> cards as text, ``spy`` -> the one that is known or "", ``phase``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from conftest import ALL_CARDS, RANKS, SUITS, position

from deck_of_spies_env import cards
from deck_of_spies_env.solitaire.afterstates import Network
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.solitaire.rules import NO_SPY, PHASES

FloatArray = npt.NDArray[np.float64]
NDArrayOfStates = npt.NDArray[Any]
Zones = dict[str, Any]

PILES = ("hand", "draw_deck", "draw_discard", "spy_deck")
WIDTHS = (52, 52, 52, 36, 36, 2)
NUM_SPIES = 36


def zones_of(state: Any) -> Zones:
    """The zones of a state record that a network may read."""
    zones: Zones = {pile: set(cards.cards_in(int(state[pile]))) for pile in PILES}
    spy = int(state["spy"])
    zones["spy"] = "" if spy == NO_SPY else ALL_CARDS[spy]
    zones["phase"] = PHASES[int(state["phase"])]
    return zones


def after(zones: Zones, kind: str, played: Iterable[str]) -> Zones:
    """What is certain of a play: the cards it moves, as the rules of the game tell it."""
    result = {name: set(value) if name in PILES else value for name, value in zones.items()}
    chosen = set(played)
    if kind in ("counter", "recruit"):
        result["hand"] -= chosen
        result["draw_discard"] |= chosen
        if kind == "recruit":
            result["draw_discard"].add(zones["spy"])
        result["spy"] = ""
    elif kind == "assassinate":
        result["draw_discard"] |= zones["hand"]
        result["hand"] = set()
        for pile in ("draw_deck", "draw_discard"):
            result[pile] -= chosen
        result["spy"] = ""
    elif kind == "retire":
        result["hand"] -= chosen
    return result


def key_spies(zones: Zones) -> int:
    """Key Spies held."""
    held = zones["hand"] | zones["draw_deck"] | zones["draw_discard"]
    return sum(card[0] in "JQK" for card in held)


def sorted_suits(zones: Zones) -> str:
    """The suits: the spy's first, then those whose cards lie where the most weight is.

    Compared are the hands, then the Draw Decks and so on; of two sets of ranks the one that has the
    highest rank which the other lacks comes first.
    """

    def key(suit: str) -> tuple[Any, ...]:
        ranks = [
            sorted((RANKS.index(card[0]) for card in zones[pile] if card[1] == suit), reverse=True)
            for pile in PILES
        ]
        return (zones["spy"][-1:] == suit, *ranks)

    return "".join(sorted(SUITS, key=key, reverse=True))


def dense(zones: Zones) -> FloatArray:
    """The 230 entries: hand, Draw Deck, Draw Discard, unseen spies, top spy, phase."""
    suits = sorted_suits(zones)

    def place(card: str, first_rank: int) -> int:
        return 4 * (RANKS.index(card[0]) - first_rank) + suits.index(card[1])

    vector = np.zeros(sum(WIDTHS))
    starts = np.cumsum((0, *WIDTHS))
    for start, pile in zip(starts, PILES, strict=False):
        for card in zones[pile]:
            vector[start + place(card, RANKS.index("5") if pile == "spy_deck" else 0)] = 1
    if zones["spy"]:
        vector[starts[4] + place(zones["spy"], RANKS.index("5"))] = 1
    vector[starts[5] + (zones["phase"] == "retire")] = 1
    return vector


def distribution(zones: Zones, network: Network) -> FloatArray:
    """Probabilities of the final counts, in double precision."""
    if not zones["spy"] and not zones["spy_deck"]:
        return np.eye(13)[key_spies(zones)]
    first, first_bias, second, second_bias, last, last_bias = (
        array.astype(np.float64) for array in network
    )
    hidden = np.maximum(dense(zones) @ first + first_bias, 0)
    head = np.maximum(hidden @ second + second_bias, 0)
    logits = (head @ last + last_bias)[:13]
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def met_in_play(count: int, decisions: int = 60, **rules: Any) -> Games:
    """Games that have gone on for different numbers of random decisions; none is over."""
    games = Games(count, rules=rules)
    games.seed(range(count), range(count))
    games.deal()
    rng, everyone = np.random.default_rng(0), np.arange(count)
    for step in range(decisions):
        before = games.snapshots()
        actions = (rng.random(games.masks.shape) * games.masks).argmax(axis=1)
        games.step(actions, everyone % (decisions + 1) > step)
        ended = games.over
        records = games.snapshots()
        records[ended] = before[ended]  # stays at its last decision
        games.restore(records)
    return games


def lost_with_key_spies() -> NDArrayOfStates:
    """A game lost by D8 with two Key Spies in the discard, shape (1,): they count for nothing."""
    env = position("5h 2c 2d 2h 3d", "5s", spy_deck="Ks", draw_deck="3h", draw_discard="Jc Qc")
    env.step(env.encode("counter", ["5h"]))
    *_, info = env.step(env.encode("pass", []))
    assert info["outcome"] == "no_double_agent"
    return env.get_state()["state"].reshape(1)
