"""The 54 cards of Skirmish: the 52 of ``cards.py`` and two Jokers, the highest indices.

Both Jokers are written ``*``. A rank is its place in :data:`RANKS`, 0 for the Ace to 13 for the
Joker, and the index of a card divided by four, as it is for the 52.
"""

from __future__ import annotations

from collections.abc import Iterable

from deck_of_spies_env import cards

NUM_SUITED = cards.NUM_CARDS
NUM_CARDS = NUM_SUITED + 2
NUM_RANKS = cards.NUM_RANKS + 1
SUITED_RANKS = cards.RANKS
RANKS = SUITED_RANKS + "*"
JOKER_TEXT = "*"
ALL_CARDS = (1 << NUM_CARDS) - 1
JOKERS = ALL_CARDS & ~cards.ALL_CARDS

ACE, JACK, QUEEN, KING, JOKER = (RANKS.index(rank) for rank in "AJQK*")


def card_text(index: int) -> str:
    """The card's text: ``7h``, ``Tc``, ``*`` for a Joker.

    Raises:
        ValueError: the index is not in 0-53.
    """
    if not 0 <= index < NUM_CARDS:
        raise ValueError(f"card index must be in 0-{NUM_CARDS - 1}, got {index}")
    return JOKER_TEXT if index >= cards.NUM_CARDS else cards.card_text(index)


def cards_in(mask: int) -> tuple[str, ...]:
    """Texts of the cards of a set, sorted by rank, then suit; Jokers come last."""
    return tuple(card_text(index) for index in range(NUM_CARDS) if mask >> index & 1)


def rank_of(text: str) -> int:
    """The rank named by a letter of :data:`RANKS`, 0-13; also ``10`` and any case.

    Raises:
        ValueError: no such rank; the message names it.
    """
    written = text.strip().upper() if isinstance(text, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
    written = "T" if written == "10" else written
    if len(written) != 1 or written not in RANKS:
        raise ValueError(f"bad rank {text!r}: write one of A 2-9 T or 10, J Q K, or * for a Joker")
    return RANKS.index(written)


def masks_of(piles: Iterable[Iterable[str]]) -> list[int]:
    """Sets of cards as masks; the first ``*`` met is the one Joker, the next the other.

    Raises:
        ValueError: a bad card, one named twice, or a third Joker.
    """
    taken, masks = 0, []
    for pile in piles:
        mask = 0
        for text in pile:
            index = _index_of(text, taken)
            if taken >> index & 1:
                raise ValueError(f"card {text} is named twice")
            taken |= 1 << index
            mask |= 1 << index
        masks.append(mask)
    return masks


def _index_of(text: str, taken: int) -> int:
    if text != JOKER_TEXT:
        return cards.card_index(text)
    free = [index for index in (NUM_CARDS - 2, NUM_CARDS - 1) if not taken >> index & 1]
    if not free:
        raise ValueError("there are two Jokers (*), not more")
    return free[0]
