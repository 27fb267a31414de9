"""The table as text, for spectators or as one seat may see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deck_of_spies_env import cards
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.cards import JOKER_TEXT
from deck_of_spies_env.skirmish.positions import table_of, zones_of

_COLUMN = 13


def pretty(card: str) -> str:
    """A card with its suit's symbol: ``7h`` -> ``7♥``; a Joker stays ``*``."""
    return card if card == JOKER_TEXT else card[0] + cards.SUIT_SYMBOLS[cards.SUITS.index(card[1])]


def render_ansi(state: Any, num_players: int, seat: int | None = None) -> str:
    """The piles of each seat and the Graveyard, plain text without control codes.

    Args:
        state: record of dtype STATE.
        num_players: 2-4.
        seat: show what this seat may know; None shows everything.
    """
    lines = [_heading(state, num_players)]
    zones = table_of(state, num_players) if seat is None else zones_of(state, num_players, seat)
    for player in range(num_players):
        lines.append(f"Seat {player}" + (" (own)" if player == seat else ""))
        of_player = (
            _open_piles(zones, player) if seat is None else _known_piles(zones, seat, player)
        )
        if zones["committed"][player] is not None:
            of_player.append(("committed", pretty(zones["committed"][player])))
        of_player.append(("capture", _cards(zones["capture"][player])))
        lines += [_row(f"  {name}", text) for name, text in of_player]
    lines.append(_row("Graveyard", _cards(zones["graveyard"])))
    burned = int(state["burned"]).bit_count()
    if burned:
        lines.append(_row("Burned", _cards(zones["burned"]) if seat is None else _count(burned)))
    return "\n".join(lines) + "\n"


def _heading(state: Any, num_players: int) -> str:
    phase, rounds = game.PHASES[int(state["phase"])], int(state["rounds"])
    if int(state["phase"]) == game.OVER:
        return f"Over after {rounds} rounds"
    deciding = table_of(state, num_players)["participants"]
    return f"Round {rounds + 1}, {phase}: seats {', '.join(map(str, deciding))} to commit"


def _open_piles(zones: dict[str, Any], player: int) -> list[tuple[str, str]]:
    """The face-down piles of a seat, for those who may see everything."""
    piles = [(name, zones[name][player]) for name in ("hand", "supply", "stakes")]
    return [(name, _cards(pile)) for name, pile in piles if pile or name != "stakes"]


def _known_piles(zones: dict[str, Any], seat: int, player: int) -> list[tuple[str, str]]:
    """The face-down piles of a seat, as another seat or the same may know them."""
    sizes = zones["sizes"][player]
    piles = [(name, _count(sizes[name])) for name in sizes if sizes[name] or name != "stakes"]
    if player == seat:
        piles[0] = ("hand", _cards(zones["hand"]))
    if zones["recycled"][player]:  # known to lie somewhere in the piles above
        piles.append(("recycled", _cards(zones["recycled"][player])))
    return piles


def _cards(named: Iterable[str]) -> str:
    return " ".join(pretty(card) for card in named) or "empty"


def _count(number: int) -> str:
    return f"{number} card" + ("" if number == 1 else "s")


def _row(name: str, text: str) -> str:
    return f"{name:<{_COLUMN}}{text}"
