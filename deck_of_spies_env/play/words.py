"""Cards and plays in words, for people."""

from __future__ import annotations

import re
from collections.abc import Iterable

from deck_of_spies_env.cards import SUIT_SYMBOLS, SUITS, card_index, card_value
from deck_of_spies_env.drawing import rank_text
from deck_of_spies_env.skirmish.cards import JOKER_TEXT

JOKER_FACE = "★"


def face(card: str) -> str:
    """What stands on a card: ``Th`` -> ``10♥``; a star on a Joker."""
    if card == JOKER_TEXT:
        return JOKER_FACE
    return rank_text(card) + SUIT_SYMBOLS[SUITS.index(card[1])]


def faces(cards: Iterable[str]) -> str:
    """What stands on some cards, apart by spaces."""
    return " ".join(map(face, cards))


def with_faces(text: str) -> str:
    """A sentence in which cards are shown as on their faces: ``the Ah`` -> ``the A♥``."""
    return re.sub(r"\b[A2-9TJQK][cdhs]\b", lambda found: face(found[0]), text)


def value_of(card: str) -> int:
    """Value 1-13 of a card of Deck of Spies."""
    return card_value(card_index(card))


def total_of(cards: Iterable[str]) -> int:
    """The values of cards of Deck of Spies, added up."""
    return sum(map(value_of, cards))


def points_of(cards: Iterable[str]) -> int:
    """What cards count at the end of Skirmish: their values, 0 for a Joker."""
    return total_of(card for card in cards if card != JOKER_TEXT)
