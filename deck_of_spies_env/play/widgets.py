"""Cards and lists of plays on the screen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from deck_of_spies_env.play.words import face

SUIT_STYLES = {"c": "$club", "d": "$diamond", "h": "$heart", "s": "$spade", "*": "$joker"}
"""Suit, or Joker -> style on a dark ground."""


def coloured(cards: Iterable[str], otherwise: str = "empty") -> Content:
    """Cards apart by spaces, each in the colour of its suit."""
    shown = [Content.styled(face(card), SUIT_STYLES[card[-1]]) for card in cards]
    return Content(" ").join(shown) if shown else Content.styled(otherwise, "$text-muted")


class CardBox(Static):
    """A card or the back of one, to be picked with the mouse.

    Args:
        id: of the widget.

    Attributes:
        card: shown face up; empty if there is none.
    """

    class Picked(Message):
        """A card was clicked.

        Attributes:
            card: which.
        """

        def __init__(self, card: str) -> None:
            super().__init__()
            self.card = card

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- as all widgets have it
        super().__init__(id=id, classes="card")
        self.card = ""

    def show(
        self, card: str | None, *, able: bool = False, picked: bool = False, faint: bool = False
    ) -> None:
        """Show a card.

        Args:
            card: its text; empty for an empty place, None for the back of a card.
            able: it can take part in a legal play.
            picked: it has been picked.
            faint: it is out of reach.
        """
        self.card = card or ""
        suit = card[-1] if card else ""
        self.update(Content("░░░" if card is None else face(card) if card else ""))
        for name, suits in (("clubs", "c"), ("diamonds", "d"), ("hearts", "h"), ("joker", "*")):
            self.set_class(suit == suits, name)
        self.set_class(card is None, "back")
        self.set_class(card == "", "empty")
        self.set_class(able, "able")
        self.set_class(picked, "picked")
        self.set_class(faint, "faint")

    def on_click(self) -> None:
        """Tell whoever holds the card."""
        if self.card:
            self.post_message(self.Picked(self.card))


def keys_below(boxes: Sequence[CardBox], pickable: Collection[str]) -> str:
    """The keys of cards in a row, each in the middle below its card if that can be picked."""
    return "".join(
        f"{number if box.card in pickable else '':^5} " for number, box in enumerate(boxes, 1)
    )
