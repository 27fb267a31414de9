"""The table of Deck of Spies on the screen."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from deck_of_spies_env.cards import NUM_KEY_SPIES
from deck_of_spies_env.drawing import counted
from deck_of_spies_env.play.solitaire_game import ACES
from deck_of_spies_env.play.widgets import CardBox, coloured, keys_below
from deck_of_spies_env.play.words import total_of
from deck_of_spies_env.solitaire.positions import zones_of
from deck_of_spies_env.solitaire.rules import Rules

_PLACES = {"hand": "hand", "draw_deck": "deck", "draw_discard": "disc.", "spy_discard": "lost"}
_OWN = ("hand", "draw_deck", "draw_discard")


class SolitaireBoard(Vertical):
    """All piles, the four Double Agents and where they are, and the hand.

    Args:
        rules: the rule set being played.
    """

    def __init__(self, rules: Rules) -> None:
        super().__init__(classes="board")
        self._rules = rules
        self._hand = [CardBox() for _ in range(rules.hand_size)]
        self._aces = [CardBox() for _ in ACES]
        self._places = ""

    def compose(self) -> ComposeResult:
        """The Spy Deck above, the Draw Deck below it, the hand at the bottom."""
        with Horizontal(classes="piles"):
            yield from _pile("Spy Deck", "spy")
            yield from _pile("Spy Discard", "spy_discard")
            with Vertical(classes="aces"):
                yield Static("Double Agents", classes="label")
                yield Horizontal(*self._aces, classes="cards")
                yield Static(id="places", classes="label")
        yield Static(id="key_spies")
        with Horizontal(classes="piles"):
            yield from _pile("Draw Deck", "draw_deck")
            with Vertical():
                yield Static("Draw Discard", id="draw_discard_label", classes="label")
                yield Static(id="draw_discard")
        yield Static(id="hand_label", classes="label")
        yield Horizontal(*self._hand, classes="cards")
        yield Static(id="keys", classes="keys")

    def show(self, state: Any) -> None:
        """Show a position, a record of dtype STATE, with nothing picked."""
        zones = zones_of(state)
        spy, hand = zones["spy"], zones["hand"]
        self._card("spy").show(spy[0] if spy else "")
        self._note("spy", f"+ {len(zones['spy_deck'])} unseen")
        for pile in ("spy_discard", "draw_deck"):
            self._card(pile).show(None if zones[pile] else "")
            self._note(pile, counted(len(zones[pile])))
        places = {card: place for zone, place in _PLACES.items() for card in zones[zone]}
        self._places = "".join(f"{places.get(card, 'gone'):^5} " for card in ACES)
        for box, card in zip(self._aces, ACES, strict=True):
            box.show(card, faint=places.get(card, "lost") == "lost")
        self._say("#key_spies", _gauge(zones, self._rules.key_spies_to_win))
        discard = zones["draw_discard"]
        self._say("#draw_discard_label", f"Draw Discard  {counted(len(discard))}")
        self._say("#draw_discard", coloured(discard))
        self._say("#hand_label", f"Hand  total {total_of(hand)}" if hand else "Hand")
        for box, card in zip(self._hand, (*hand, *[""] * len(self._hand)), strict=False):
            box.show(card)

    def mark(
        self, pickable: Collection[str], able: Collection[str], picked: Collection[str]
    ) -> None:
        """Show which cards can be picked, take part in a legal play, and have been picked."""
        asked = self._aces if tuple(pickable) == ACES else self._hand
        for box in (*self._hand, *self._aces):
            is_able = box in asked and box.card in able
            is_picked = box.card in picked
            is_faint = box in asked and box.card in pickable and not is_able and not is_picked
            is_out = box in self._aces and box.has_class("faint")
            box.show(box.card, able=is_able, picked=is_picked, faint=is_faint or is_out)
        keys = keys_below(asked, pickable)
        self._say("#keys", keys if asked is self._hand else "")
        self._say(
            "#places", self._places if asked is self._hand else Content.styled(keys, "b $accent")
        )

    def _card(self, pile: str) -> CardBox:
        return self.query_one(f"#{pile}_card", CardBox)

    def _note(self, pile: str, text: str) -> None:
        self._say(f"#{pile}_note", text)

    def _say(self, selector: str, text: str | Content) -> None:
        self.query_one(selector, Static).update(text)


def _pile(name: str, pile: str) -> ComposeResult:
    with Vertical(classes="pile"):
        yield Static(name, classes="label")
        yield CardBox(id=f"{pile}_card")
        yield Static(id=f"{pile}_note", classes="label")


def _gauge(zones: dict[str, tuple[str, ...]], needed: int) -> Content:
    """Key Spies held and lost, each as a sign, and what a win takes."""
    held = sum(card[0] in "JQK" for zone in _OWN for card in zones[zone])
    lost = sum(card[0] in "JQK" for card in zones["spy_discard"])
    to_come = NUM_KEY_SPIES - held - lost
    return Content.assemble(
        ("Key Spies ", "$text-muted"),
        ("●" * held, "$success"),
        ("○" * to_come, "$text-muted"),
        ("×" * lost, "$error"),
        f" {held} held, {lost} lost, need {needed}",
    )
