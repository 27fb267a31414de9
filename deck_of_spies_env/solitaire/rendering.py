"""The table as text."""

from __future__ import annotations

from typing import Any

from deck_of_spies_env import cards
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.positions import zones_of
from deck_of_spies_env.solitaire.rules import Rules

_COLUMN = 34


def pretty(card: str) -> str:
    """A card with its suit's symbol: ``7h`` -> ``7♥``."""
    return card[0] + cards.SUIT_SYMBOLS[cards.SUITS.index(card[1])]


def render_ansi(state: Any, rules: Rules, last_play: str = "") -> str:
    """The five areas of the table, plain text without control codes.

    Args:
        state: record of dtype STATE.
        rules: the rule set.
        last_play: words for the last action, shown on the last line.
    """
    zones = zones_of(state)
    spy = pretty(zones["spy"][0]) if zones["spy"] else "--"
    held = _key_spies(zones, *_OWN_ZONES)
    lost = _key_spies(zones, "spy_discard")
    lines = [
        _row(
            f"Spy Deck     [{spy}] + {len(zones['spy_deck'])} unseen",
            f"Spy Discard  {len(zones['spy_discard'])} cards",
        ),
        _row(
            f"Draw Deck    {len(zones['draw_deck'])} cards",
            "Draw Discard " + (_pretty_all(zones["draw_discard"]) or "empty"),
        ),
        "Hand         " + (_pretty_all(zones["hand"]) or "empty"),
        f"Key Spies    {held} held, {lost} lost, {rules.key_spies_to_win} to win"
        f"    Aces removed: {len(zones['removed'])}",
        f"Phase        {_phase_line(state)}",
    ]
    if last_play:
        lines.append(f"Last play    {last_play}")
    return "\n".join(lines) + "\n"


_OWN_ZONES = ("hand", "draw_deck", "draw_discard")


def _key_spies(zones: dict[str, tuple[str, ...]], *names: str) -> int:
    return sum(card[0] in "JQK" for name in names for card in zones[name])


def _phase_line(state: Any) -> str:
    phase = game.PHASES[int(state["phase"])]
    outcome = game.OUTCOMES[int(state["outcome"])]
    return f"{phase}: {outcome}" if outcome else phase


def _pretty_all(named: tuple[str, ...]) -> str:
    return " ".join(pretty(card) for card in named)


def _row(left: str, right: str) -> str:
    return f"{left:<{_COLUMN}}{right}".rstrip()
