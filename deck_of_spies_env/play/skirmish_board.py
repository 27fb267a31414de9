"""The table of Skirmish on the screen."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from deck_of_spies_env.drawing import counted
from deck_of_spies_env.play.skirmish_game import SkirmishView
from deck_of_spies_env.play.widgets import CardBox, coloured, keys_below
from deck_of_spies_env.play.words import JOKER_FACE, face, points_of
from deck_of_spies_env.skirmish.actions import WAIT, decode
from deck_of_spies_env.skirmish.cards import JOKER_TEXT
from deck_of_spies_env.skirmish.positions import table_of, zones_of
from deck_of_spies_env.skirmish.rendering import pot_winner, rank_in_words
from deck_of_spies_env.skirmish.rules import HAND_SIZE


class SkirmishBoard(Vertical):
    """The seats with their piles, what was committed last, the Graveyard, and a hand.

    Args:
        num_players: 2-4.
    """

    def __init__(self, num_players: int) -> None:
        super().__init__(classes="board")
        seats = range(num_players)
        self._seats = [Static(classes="seat") for _ in seats]
        self._field = [Static(classes="committed") for _ in seats]
        self._hand = [CardBox() for _ in range(HAND_SIZE)]

    def compose(self) -> ComposeResult:
        """The seats from the top, the field, the hand at the bottom."""
        yield from self._seats
        yield Static(id="field_label", classes="label")
        yield Horizontal(*self._field, classes="field")
        yield Static(id="graveyard")
        yield Static("Your hand", id="hand_label", classes="label")
        yield Horizontal(*self._hand, classes="cards", id="hand")
        yield Static(id="keys", classes="keys")

    def show(self, view: SkirmishView) -> None:
        """Show a position as a seat may see it, or all of it."""
        zones = _zones(view)
        for seat, shown in enumerate(self._seats):
            shown.update(_seat(view, zones, seat))
            shown.set_class(seat in zones["participants"], "deciding")
        self._show_field(view, zones)
        self.query_one("#graveyard", Static).update(
            Content.assemble(
                (f"Graveyard {len(zones['graveyard'])}: ", "$text-muted"),
                coloured(zones["graveyard"]),
            )
        )
        own = () if view.seat is None else zones["hand"][view.seat]
        self.query_one("#hand").display = self.query_one("#hand_label").display = bool(own)
        for box, card in zip(self._hand, (*own, *[""] * HAND_SIZE), strict=False):
            box.show(card)

    def mark(
        self, pickable: Collection[str], able: Collection[str], picked: Collection[str]
    ) -> None:
        """Show which cards take part in a legal play, and which has been picked."""
        to_show = set(picked)
        for box in self._hand:
            box.show(box.card, able=box.card in able, picked=box.card in to_show)
            to_show.discard(box.card)  # of two Jokers one is picked
        self.query_one("#keys", Static).update(keys_below(self._hand, pickable))

    def _show_field(self, view: SkirmishView, zones: dict[str, Any]) -> None:
        in_war = zones["phase"] == "war"
        label = "War: the pot, and stakes face down" if in_war else "Last round"
        self.query_one("#field_label", Static).update(label)
        winner = None if in_war or view.before is None else pot_winner(view.before, view.state)
        for seat, shown in enumerate(self._field):
            shown.border_title = _who(view, seat)
            shown.border_subtitle = "wins" if seat == winner else ""
            shown.set_class(seat == winner, "winner")
            shown.update(_war_text(zones, seat) if in_war else _rank_text(view, seat))


def _zones(view: SkirmishView) -> dict[str, Any]:
    """The zones in one form: hands are None where they may not be seen."""
    n = len(view.names)
    table = table_of(view.state, n)
    sizes = zones_of(view.state, n, view.seat or 0)["sizes"]
    hands = [table["hand"][seat] if view.seat in (None, seat) else None for seat in range(n)]
    shared = ("capture", "committed", "graveyard", "phase", "participants")
    return {"hand": hands, "sizes": sizes} | {name: table[name] for name in shared}


def _who(view: SkirmishView, seat: int) -> str:
    return "you" if seat == view.seat else f"seat {seat}"


def _seat(view: SkirmishView, zones: dict[str, Any], seat: int) -> Content:
    """Two lines on a seat: its piles, and what it has captured."""
    sizes, capture = zones["sizes"][seat], zones["capture"][seat]
    name = "" if seat == view.seat else f" {view.names[seat]}"
    hand, own = zones["hand"][seat], seat == view.seat
    held: str | Content = f"{sizes['hand']} in hand"
    if hand is not None and not own:
        held = coloured(hand, "no hand")
    return Content.assemble(
        (f"{_who(view, seat).capitalize()}{name}", "bold"),
        "  ",
        held,
        f", Supply {sizes['supply']}, {counted(points_of(capture), 'point')}\n",
        coloured(capture, "nothing captured"),
    )


def _war_text(zones: dict[str, Any], seat: int) -> str:
    stakes = zones["sizes"][seat]["stakes"]
    committed = zones["committed"][seat]
    return (face(committed) if committed else "") + (f" +{stakes}" if stakes else "")


def _rank_text(view: SkirmishView, seat: int) -> str:
    if view.before is None or view.joint[seat] == WAIT:
        return "-"
    rank = decode(view.joint[seat])
    return JOKER_FACE if rank == JOKER_TEXT else rank_in_words(rank)
