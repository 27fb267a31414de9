"""The 52 cards: index, rank, suit, text, and sets of cards as 64-bit masks.

A card is its index ``4 * (value - 1) + suit``: ordered by rank first and suit second, the order in
which a hand is sorted into slots. A set of cards is an integer with bit *i* set for card *i*.
"""

from __future__ import annotations

from collections.abc import Iterable

NUM_CARDS = 52
NUM_RANKS = 13
NUM_SUITS = 4
RANKS = "A23456789TJQK"
SUITS = "cdhs"
SUIT_SYMBOLS = "♣♦♥♠"

FIRST_SPY = 16
"""Index of the lowest card of the Spy Deck, the 5 of clubs: below it are the Aces to 4s."""
NUM_SPIES = NUM_CARDS - FIRST_SPY

ALL_CARDS = (1 << NUM_CARDS) - 1
ACES = 0b1111
SPIES = ALL_CARDS & ~((1 << FIRST_SPY) - 1)
SPY_TIERS = (0xFFF << 16, 0xFFF << 28, 0xFFF << 40)
"""The three tiers of the Spy Deck from its top: 5-7, 8-10, Jack-King."""
KEY_SPIES = SPY_TIERS[2]
NUM_KEY_SPIES = 12

_SUIT_OF = {symbol: suit for suit, symbol in enumerate(SUITS)} | {
    symbol: suit for symbols in ("♣♦♥♠", "♧♢♡♤") for suit, symbol in enumerate(symbols)
}
_RANK_OF = {symbol: rank for rank, symbol in enumerate(RANKS)} | {"10": RANKS.index("T")}


def card_index(text: str) -> int:
    """Index 0-51 of a card written as rank and suit: ``7h``, ``Tc``, ``10c``, ``t♣``, ``AS``.

    Raises:
        ValueError: the text is no card; the message names it.
    """
    # Input from users may be anything at all; what is no text is no card either.
    written = text.strip() if isinstance(text, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
    rank = _RANK_OF.get(written[:-1].upper())
    suit = _SUIT_OF.get(written[-1:].lower())
    if rank is None or suit is None:
        raise ValueError(
            f"bad card {text!r}: write a rank (A 2-9 T or 10, J Q K) and a suit (c d h s), as in 7h"
        )
    return rank * NUM_SUITS + suit


def card_text(index: int) -> str:
    """The card's text, rank and suit: ``7h``, ``Tc``, ``As``.

    Raises:
        ValueError: the index is not in 0-51.
    """
    if not 0 <= index < NUM_CARDS:
        raise ValueError(f"card index must be in 0-{NUM_CARDS - 1}, got {index}")
    return RANKS[index // NUM_SUITS] + SUITS[index % NUM_SUITS]


def card_value(index: int) -> int:
    """Value 1-13 of a card: Ace 1, Jack 11, Queen 12, King 13."""
    return index // NUM_SUITS + 1


def mask_of(cards: Iterable[str]) -> int:
    """The set of the given cards as a mask.

    Raises:
        ValueError: a bad card, or one named twice.
    """
    mask = 0
    for text in cards:
        bit = 1 << card_index(text)
        if mask & bit:
            raise ValueError(f"card {text} is named twice")
        mask |= bit
    return mask


def indices_in(mask: int) -> list[int]:
    """Indices of the cards of a set, ascending: by rank, then suit."""
    return [index for index in range(NUM_CARDS) if mask >> index & 1]


def cards_in(mask: int) -> tuple[str, ...]:
    """Texts of the cards of a set, sorted by rank, then suit."""
    return tuple(card_text(index) for index in indices_in(mask))
