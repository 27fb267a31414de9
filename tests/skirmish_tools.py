"""Helpers of the tests of Skirmish: random streams in plain Python, ways to play, positions.

The streams are written anew here, in Python integers, so that the referee of ``skirmish_oracle.py``
can be given the very chance that the engine meets, without reading it off the engine's piles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from skirmish_oracle import ALL_CARDS, Card

from deck_of_spies_env.skirmish.games import Games
from deck_of_spies_env.skirmish.positions import state_from_table
from deck_of_spies_env.skirmish.rules import OVER, Rules
from deck_of_spies_env.skirmish.views import redeal_views, write_views

RANKS = "A23456789TJQK*"
WAIT = 14

Mask = int
"""A set of cards: bit i is card i."""


def mask_of(cards: Iterable[Card]) -> Mask:
    """A set of the referee's cards as a mask."""
    mask = 0
    for card in cards:
        mask |= 1 << card.id
    return mask


def ids_in(mask: Mask) -> tuple[int, ...]:
    """The cards of a mask, ascending."""
    found = []
    while mask:
        found.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return tuple(found)


OPEN, DEALT, OLDER, PREVIOUS, LATEST = -1, 0, 1, 2, 3
"""Where a card came from; numbers of ``batches_of``."""


def batches_of(states: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """For each card how it came to lie hidden, int64 (N, 54): OPEN if it does not."""
    bit = np.arange(54, dtype=np.uint64)

    def holds(masks: Any) -> npt.NDArray[np.bool_]:
        return masks[..., None] >> bit & np.uint64(1) != 0

    hidden = holds(states["hand"] | states["supply"] | states["stakes"]).any(axis=-2)
    batches = np.where(hidden, OLDER, OPEN)
    batches[holds(states["previous"]).any(axis=-2)] = PREVIOUS
    batches[holds(states["latest"]).any(axis=-2)] = LATEST
    batches[holds(states["dealt"])] = DEALT
    return batches


def cards_in(mask: Mask) -> list[Card]:
    """A mask as the referee's cards, ascending."""
    return [ALL_CARDS[index] for index in ids_in(mask)]


# --- Random streams -------------------------------------------------------------------------------

_WORD = (1 << 64) - 1
_EPISODE_STRIDE = 0x9E3779B97F4A7C15
STREAMS_OF_AN_EPISODE = 9
"""The deal, then for each of four seats its draws and its picks among equal ranks."""


def mixed(word: int) -> int:
    """SplitMix64's finaliser."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
    return word ^ word >> 31


class Stream:
    """One random stream: where it stands, and its stride."""

    def __init__(self, position: int, gamma: int) -> None:
        self.position = position
        self.gamma = gamma

    @classmethod
    def numbered(cls, key: int, gamma: int, number: int) -> Stream:
        """The beginning of a stream of a seed."""
        return cls(mixed(key ^ mixed((number + 1) * _EPISODE_STRIDE & _WORD)), gamma)

    def below(self, bound: int) -> int:
        """A uniform integer under the bound: multiply and shift, reject the uneven rest."""
        uneven = (1 << 32) % bound
        while True:
            self.position = self.position + self.gamma & _WORD
            product = (mixed(self.position) >> 32) * bound
            if product & 0xFFFFFFFF >= uneven:
                return product >> 32


class ReplayedChance:
    """The chance of one episode as the engine's streams bring it, for the referee.

    Attributes:
        drawn: (seat, the Supply was recycled for it) of each draw since it was last cleared.
        picked: the cards committed since it was last cleared, seat by seat.
    """

    def __init__(self, streams: Any, episode: int) -> None:
        key, gamma = int(streams["key"]), int(streams["gamma"])
        first = episode * STREAMS_OF_AN_EPISODE
        self.deck = Stream.numbered(key, gamma, first)
        self.draws = [Stream.numbered(key, gamma, first + 1 + 2 * seat) for seat in range(4)]
        self.picks = [Stream.numbered(key, gamma, first + 2 + 2 * seat) for seat in range(4)]
        self.drawn: list[tuple[int, bool]] = []
        self.picked: list[Card] = []
        self._left = [0] * 4

    def deal(self, num_players: int, share: int) -> tuple[list[list[Card]], list[Card]]:
        """The Supplies as dealt, and what is left over."""
        deck = list(ALL_CARDS)
        supplies = [
            [deck.pop(self.deck.below(len(deck))) for _ in range(share)] for _ in range(num_players)
        ]
        self._left = [share] * 4
        return supplies, deck

    def draw(self, seat: int, pile: list[Card]) -> int:
        """The place in the sorted Supply of the next card that comes off."""
        self.drawn.append((seat, len(pile) != self._left[seat]))
        self._left[seat] = len(pile) - 1
        return self.draws[seat].below(len(pile))

    def pick(self, seat: int, cards: list[Card]) -> int:
        """The place of the card committed among those of its rank."""
        place = self.picks[seat].below(len(cards))
        self.picked.append(cards[place])
        return place

    def clear(self) -> None:
        """Forget what was drawn and picked."""
        self.drawn.clear()
        self.picked.clear()


# --- Games ----------------------------------------------------------------------------------------


def dealt(seeds: Sequence[int], num_players: int, **arguments: Any) -> Games:
    """One game per seed, dealt."""
    games = Games(len(seeds), num_players, **arguments)
    games.seed(range(len(seeds)), seeds)
    games.deal()
    return games


def ended(games: Games) -> npt.NDArray[np.bool_]:
    """Which games are over."""
    return games.states["phase"] == OVER


def random_actions(games: Games, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """A random legal action of every seat in each game, 0 where it is over."""
    return (rng.random(games.masks.shape) * games.masks).argmax(axis=2)


def at_table(
    table: dict[str, Any], num_players: int, rules: Rules | None = None, seeds: Sequence[int] = (0,)
) -> Games:
    """One game per seed, all at one position, which is given by text: ``"Kc 2d"``."""
    rules = rules or Rules()
    games = Games(len(seeds), num_players, rules=rules)
    games.seed(range(len(seeds)), seeds)
    games.deal()
    written = {
        zone: cards.split() if isinstance(cards, str) else [pile.split() for pile in cards]
        for zone, cards in table.items()
    }
    games.states[:] = state_from_table(written, num_players, rules)
    games.show()
    return games


def views_of(games: Games, states: npt.NDArray[Any], seat: int) -> npt.NDArray[Any]:
    """The views that a seat has of states."""
    views = np.array(states).reshape(-1)
    write_views(views, games.rules_record, np.full(len(views), seat))
    return views


def redeals_of(
    games: Games, state: npt.NDArray[Any], seat: int, number: int, seed: int = 0
) -> npt.NDArray[Any]:
    """Many redeals of one state for a seat."""
    states = np.repeat(np.array(state).reshape(1), number)
    streams = Games(1, games.num_players, rules=games.rules)
    streams.seed([0], [seed], forks=True)
    redeal_views(states, games.rules_record, np.full(number, seat), streams.streams.copy())
    return states


def observations_of(
    games: Games, states: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Observations, int8 (N, n, d), and masks of any states under the rules of some games."""
    twin = Games(len(states), games.num_players, rules=games.rules)
    twin.states[:] = states
    twin.show()
    return twin.observations, twin.masks
