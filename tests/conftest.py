"""Helpers that several test files share: environments at a position, and what is legal there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

import deck_of_spies_env  # noqa: F401  (registers the ids)
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.vector_env import DeckOfSpiesVectorEnv

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # windows, if any, stay unseen

RANKS = "A23456789TJQK"
SUITS = "cdhs"
ALL_CARDS = tuple(rank + suit for rank in RANKS for suit in SUITS)
"""The 52 cards by rank, then suit: the order of every zone."""

ZONES = ("hand", "draw_deck", "draw_discard", "spy", "spy_deck", "spy_discard", "removed")

TextAction = tuple[str, tuple[str, ...]]
"""Kind of an action and its cards in their order."""

Zones = dict[str, tuple[str, ...]]


def value(card: str) -> int:
    """Ace 1, 2-10 their number, Jack 11, Queen 12, King 13."""
    return RANKS.index(card[0]) + 1


def total(cards: Iterable[str]) -> int:
    """Values of the cards added up."""
    return sum(value(card) for card in cards)


def in_order(cards: Iterable[str]) -> tuple[str, ...]:
    """The cards by rank, then suit."""
    return tuple(sorted(cards, key=ALL_CARDS.index))


def completed(zones: Mapping[str, Iterable[str]]) -> Zones:
    """All seven zones: cards named nowhere go to the Spy Discard, Aces leave the game."""
    filled = {zone: tuple(zones.get(zone, ())) for zone in ZONES}
    named = {card for cards in filled.values() for card in cards}
    rest = [card for card in ALL_CARDS if card not in named]
    filled["spy_discard"] += tuple(card for card in rest if card[0] != "A")
    filled["removed"] += tuple(card for card in rest if card[0] == "A")
    return {zone: in_order(cards) for zone, cards in filled.items()}


def new_env(rules: Mapping[str, Any] | None = None, **arguments: Any) -> DeckOfSpiesEnv:
    """The environment behind ``gym.make``, without its wrappers."""
    return cast(DeckOfSpiesEnv, gym.make("DeckOfSpies-v0", rules=rules, **arguments).unwrapped)


def position(
    hand: str,
    spy: str = "",
    *,
    spy_deck: str = "",
    draw_deck: str = "",
    draw_discard: str = "",
    spy_discard: str = "",
    phase: str = "act",
    seed: int = 0,
    **rules: Any,
) -> DeckOfSpiesEnv:
    """An environment at a position; cards named nowhere are completed as :func:`completed` does."""
    zones = completed(
        {
            "hand": hand.split(),
            "spy": spy.split(),
            "spy_deck": spy_deck.split(),
            "draw_deck": draw_deck.split(),
            "draw_discard": draw_discard.split(),
            "spy_discard": spy_discard.split(),
        }
    )
    env = new_env(rules)
    env.reset(seed=seed, options={"zones": zones, "phase": phase})
    return env


def legal_actions(env: DeckOfSpiesEnv) -> dict[TextAction, int]:
    """Every legal action by kind and cards, with its index."""
    indices = np.flatnonzero(env.action_masks()).tolist()
    actions = {tuple(env.decode(index)): index for index in indices}
    assert len(actions) == len(indices), "two indices name one action"
    return cast(dict[TextAction, int], actions)


def sets_of(env: DeckOfSpiesEnv, kind: str) -> set[str]:
    """The legal card sets of one kind, each written as one text."""
    return {" ".join(cards) for other, cards in legal_actions(env) if other == kind}


SHORT = completed(
    {
        "hand": ["5d", "6d", "9c", "9d", "2c"],
        "spy": ["5c"],
        "spy_deck": ["7c", "Js", "Qs"],
        "draw_deck": ["2d", "3c", "4c", "4d", "As", "Kh", "Kd"],
        "draw_discard": ["Jh", "Jd", "Jc", "Qd", "Qh", "Ah"],
    }
)
"""Four spies only: episodes of 4 to 8 steps, so that many resets happen."""


def native(
    num_envs: int = 4, mode: AutoresetMode = AutoresetMode.NEXT_STEP, **arguments: Any
) -> DeckOfSpiesVectorEnv:
    """Make the native vector environment."""
    envs = gym.make_vec(
        "DeckOfSpies-v0",
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=mode,
        **arguments,
    )
    assert isinstance(envs, DeckOfSpiesVectorEnv)
    return envs
