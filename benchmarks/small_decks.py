"""A family of small decks with known best play, chosen by a fixed rule.

``python -m benchmarks.small_decks`` writes ``benchmarks/small_decks.json`` anew. Four kinds:

* ``typical``: positions of real games. The shipped ``afterstate`` plays the first deals of the
  ``select`` bank; taken are its positions with 3 or 4 spies left, before the play against the one
  on top, as they come.
* ``open``: likewise, but such as are neither won nor lost: an optimal win rate of 5-95 %.
* ``all12``: likewise, by the chance of all twelve Key Spies instead of a win.
* ``short``: decks put together by a seeded draw: five Key Spies and three low cards with an Ace
  among them, against one spy of 8-10 and three of Jack-King; open for a win.

Of each kind and number of spies left the first ones are kept, in the order of deals or of draws,
that have no more than 65,536 draw states: at most twelve. Rules are the default ones, so seven Key
Spies win.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents import make_agent
from agents.exact import TooManyStatesError, solve, spies_left
from deck_of_spies_env import cards
from deck_of_spies_env.commands import OneLineParser
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.files import write_text_atomically
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.games import Games, compile_engine
from deck_of_spies_env.solitaire.positions import start_from_argument, zones_of
from deck_of_spies_env.solitaire.rules import STATE, Rules

PATH = Path(__file__).parent / "small_decks.json"
NUM_DEALS = 1_500
LEFT = (3, 4)
MAX_STATES = 1 << 16
LEAST_OPTIMUM, MOST_OPTIMUM = 0.05, 0.95
MOST_OF_A_KIND = 12
_SHORT_SEED = 0
_SHORT_TRIES = 400


class Kind(NamedTuple):
    """What positions of a kind are chosen by.

    Attributes:
        objective: that counts.
        key_spies: that it needs.
        must_be_open: whether it must be in doubt.
    """

    objective: str
    key_spies: int
    must_be_open: bool = True


KINDS = {
    "typical": Kind("win", 7, must_be_open=False),
    "open": Kind("win", 7),
    "all12": Kind("perfect", 12),
    "short": Kind("win", 7),
}


class SmallDeck(NamedTuple):
    """One position of the family.

    Attributes:
        kind: a key of KINDS.
        seed: of the deal, or the number of the draw.
        spies_left: the one on top included.
        zones: as ``start=`` takes them.
    """

    kind: str
    seed: int
    spies_left: int
    zones: dict[str, list[str]]

    @property
    def name(self) -> str:
        """Kind, number of spies left and seed."""
        return f"{self.kind}-{self.spies_left}-{self.seed}"


def load_family() -> list[SmallDeck]:
    """The family as stored."""
    return [SmallDeck(**entry) for entry in json.loads(PATH.read_text())]


def state_of(deck: SmallDeck) -> npt.NDArray[Any]:
    """The position: shape (1,), dtype STATE."""
    return start_from_argument(deck.zones, Rules()).record


def endings(num_deals: int) -> dict[int, npt.NDArray[Any]]:
    """Positions of ``afterstate`` with 3 and with 4 spies left, shape (num_deals,) each.

    Where the game ended before, the phase is OVER.
    """
    games = Games(num_deals)
    games.seed(range(num_deals), deal_seeds("select", 0, num_deals))
    games.deal()
    agent = make_agent("afterstate")
    found = {left: np.zeros(num_deals, dtype=STATE) for left in LEFT}
    for states in found.values():
        states["phase"] = game.OVER
    actions = np.zeros(num_deals, dtype=np.int64)
    while not games.over.all():
        acting = np.flatnonzero(~games.over)
        left = spies_left(games.states)
        for number, states in found.items():
            here = (left == number) & (games.states["phase"] == game.ACT)
            states[here] = games.states[here]
        actions[acting] = agent.act(games.observations[acting], games.masks[acting].copy())
        games.step(actions, ~games.over)
    return found


def short_decks(count: int) -> npt.NDArray[Any]:
    """Decks put together by chance, shape (count,), dtype STATE."""
    rng = np.random.default_rng(_SHORT_SEED)
    return np.concatenate([_short_deck(rng) for _ in range(count)])


def _short_deck(rng: np.random.Generator) -> npt.NDArray[Any]:
    key_spies = rng.permutation(cards.indices_in(cards.KEY_SPIES))
    low = rng.permutation(np.arange(4, cards.FIRST_SPY))[:2]
    deck = rng.permutation(np.concatenate([key_spies[:5], low, rng.integers(4, size=1)]))
    first = int(rng.choice(cards.indices_in(cards.SPY_TIERS[1])))
    zones = {
        "hand": deck[:5],
        "draw_deck": deck[5:],
        "spy": [first],
        "spy_deck": key_spies[5:8],
    }
    named = {name: [cards.card_text(int(card)) for card in zone] for name, zone in zones.items()}
    placed = {card for zone in named.values() for card in zone}
    rest = cards.cards_in(cards.ALL_CARDS & ~cards.ACES)
    named["spy_discard"] = [card for card in rest if card not in placed]
    return start_from_argument(named, Rules()).record


def is_open(states: npt.NDArray[Any], needed: int) -> npt.NDArray[np.bool_]:
    """Whether so many Key Spies can be had and are not held yet, bool (N,)."""
    key_spies = np.uint64(cards.KEY_SPIES)
    deck = states["hand"] | states["draw_deck"] | states["draw_discard"]
    held = np.bitwise_count(deck & key_spies).astype(np.int64)
    unseen = np.bitwise_count(states["spy_deck"] & key_spies).astype(np.int64)
    to_come = unseen + (states["spy"] >= cards.NUM_CARDS - cards.NUM_KEY_SPIES)
    going_on = states["phase"] != game.OVER
    return going_on & (held < needed) & (held + to_come >= needed)


def is_fit(state: npt.NDArray[Any], kind: Kind) -> bool:
    """Whether a position is small, and open if it must be."""
    try:
        solution = solve(state, objectives=[kind.objective], max_states=MAX_STATES)
    except TooManyStatesError:
        return False
    optimum = float(solution.values(state)[0, 0])
    return not kind.must_be_open or LEAST_OPTIMUM <= optimum <= MOST_OPTIMUM


def choose(name: str, seeds: list[int], states: npt.NDArray[Any]) -> Iterator[SmallDeck]:
    """The first positions that are fit, for a kind."""
    found, kind = 0, KINDS[name]
    possible = states["phase"] != game.OVER
    if kind.must_be_open:
        possible &= is_open(states, kind.key_spies)
    for index in np.flatnonzero(possible):
        if found == MOST_OF_A_KIND:
            return
        state = states[index : index + 1]
        if is_fit(state, kind):
            found += 1
            zones = {zone: list(held) for zone, held in zones_of(state[0]).items()}
            yield SmallDeck(name, seeds[int(index)], int(spies_left(state)[0]), zones)


def main() -> None:
    """Choose the family and write it."""
    OneLineParser(description="Choose the family of small decks, and write its file.").parse_args()
    compile_engine()
    family: list[SmallDeck] = []
    seeds = deal_seeds("select", 0, NUM_DEALS)
    for left, states in endings(NUM_DEALS).items():
        for kind in ("typical", "open", "all12"):
            family += choose(kind, seeds, states)
        sys.stderr.write(f"{len(family)} positions with {left} spies left and more\n")
    family += choose("short", list(range(_SHORT_TRIES)), short_decks(_SHORT_TRIES))
    lines = [json.dumps(deck._asdict()) for deck in family]
    write_text_atomically(PATH, "[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
