"""The table as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from deck_of_spies_env import cards, drawing
from deck_of_spies_env.drawing import Canvas, Picture, counted
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import Action, action_table
from deck_of_spies_env.solitaire.positions import zones_of
from deck_of_spies_env.solitaire.rules import Rules

_COLUMN = 34
_OWN_ZONES = ("hand", "draw_deck", "draw_discard")

Zones = dict[str, tuple[str, ...]]


LastStep = tuple[Any, int]
"""The position before the last action, a record of dtype STATE, and the action."""


class _LastPlay(NamedTuple):
    """What was done last.

    Attributes:
        text: in words, with card names.
        kind: of the action; empty for an illegal one.
        cards: those of the action.
        spy: the one that was dealt with; empty for a retire, a pass and an illegal action.
    """

    text: str
    kind: str = ""
    cards: tuple[str, ...] = ()
    spy: str = ""


def _last_play(last_step: LastStep | None, state: Any, rules: Rules) -> _LastPlay | None:
    """The play that led to a position."""
    if last_step is None:
        return None
    before, action = last_step
    if state["outcome"] == game.ILLEGAL_ACTION:
        return _LastPlay(f"illegal action {action}")
    kind, named = action_table(rules.hand_size).decode(int(action), int(before["hand"]))
    faced = cards.card_text(int(before["spy"])) if before["phase"] == game.ACT else ""
    return _LastPlay(" ".join((kind, *named)), kind, named, faced)


# --- Text ---


def pretty(card: str) -> str:
    """A card with its suit's symbol: ``7h`` -> ``7♥``."""
    return card[0] + cards.SUIT_SYMBOLS[cards.SUITS.index(card[1])]


def render_ansi(state: Any, rules: Rules, last_step: LastStep | None = None) -> str:
    """The five areas of the table, plain text without control codes.

    Args:
        state: record of dtype STATE.
        rules: the rule set.
        last_step: shown on the last line.
    """
    zones, last_play = zones_of(state), _last_play(last_step, state, rules)
    spy = pretty(zones["spy"][0]) if zones["spy"] else "--"
    held, lost = _key_spies_held_and_lost(zones)
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
        lines.append(f"Last play    {last_play.text}")
    return "\n".join(lines) + "\n"


def _key_spies_held_and_lost(zones: Zones) -> tuple[int, int]:
    return _key_spies(zones, *_OWN_ZONES), _key_spies(zones, "spy_discard")


def _key_spies(zones: Zones, *names: str) -> int:
    return sum(card[0] in "JQK" for name in names for card in zones[name])


def _phase_line(state: Any) -> str:
    phase, outcome = _phase_and_outcome(state)
    return f"{phase}: {outcome}" if outcome else phase


def _phase_and_outcome(state: Any) -> tuple[str, str]:
    return game.PHASES[int(state["phase"])], game.OUTCOMES[int(state["outcome"])]


def _pretty_all(named: tuple[str, ...]) -> str:
    return " ".join(pretty(card) for card in named)


def _row(left: str, right: str) -> str:
    return f"{left:<{_COLUMN}}{right}".rstrip()


# --- Pictures ---

WIDTH, HEIGHT = 960, 540
_CARD = 100
_LEFT, _RIGHT_OF_DECKS, _GAUGE = 24, 150, 276
_TABLE_EDGE = 684
_SPIES_Y, _DRAWS_Y, _HAND_Y, _CAPTION_Y = 18, 180, 342, 500
_CARDS_BELOW, _COUNT_BELOW = 22, 128
_HAND_STEP = 83
_LABEL, _TEXT, _TITLE = 20, 22, 38
_PANEL = (696, 16, 248, 508)
_PANEL_LEFT, _PANEL_WIDTH = 709, 224
_COLUMN_GAP = 10
_PIP, _PIP_STEP, _PIPS_BELOW, _ACES_BELOW = (24, 28), 33, 30, 80
_HELD, _LOST = (110, 214, 130), (214, 88, 84)

_TASKS = {
    "act": "Counter, recruit or assassinate",
    "retire": "Retire equal cards, or pass",
    "over": "Not dealt yet",
}
_ENDINGS = {
    "win": ("Win", drawing.GREEN),
    "loss": ("Loss", drawing.RED),
    "no_double_agent": ("Loss: no Ace is left", drawing.RED),
    "illegal_action": ("Loss: illegal action", drawing.RED),
}
_GIVING_UP = "giving up"


def render_picture(
    state: Any, rules: Rules, mask: Any, last_step: LastStep | None = None
) -> Picture:
    """The five areas of the table as pixels, with the last play and the legal ones.

    Args:
        state: record of dtype STATE.
        rules: the rule set.
        mask: the legal actions, int8 or bool (n,).
        last_step: its cards are marked, and it is told in words.

    Returns:
        uint8 (HEIGHT, WIDTH, 3).

    Raises:
        DependencyNotInstalled: pygame is missing.
    """
    canvas, zones = Canvas(WIDTH, HEIGHT), zones_of(state)
    table, last_play = action_table(rules.hand_size), _last_play(last_step, state, rules)
    _draw_spies(canvas, zones)
    _draw_key_spies(canvas, zones, rules)
    _draw_removed(canvas, zones["removed"])
    _draw_draws(canvas, zones, last_play)
    _draw_hand(canvas, zones["hand"])
    if last_play:
        _draw_last_play(canvas, last_play)
    canvas.box(_PANEL, drawing.PANEL, radius=8)
    top = _draw_phase(canvas, state)
    legal = [table.decode(action, int(state["hand"])) for action in np.flatnonzero(mask).tolist()]
    _draw_legal_plays(canvas, legal, top)
    return canvas.picture()


def _label(canvas: Canvas, x: float, y: float, name: str, note: str = "") -> None:
    end = canvas.text(x, y, name, _LABEL, drawing.LIGHT)
    if note:
        canvas.text(end + 8, y, note, _LABEL, drawing.FAINT)


def _count(canvas: Canvas, x: float, y: float, words: str) -> None:
    canvas.text(x, y + _COUNT_BELOW, words, _LABEL, drawing.FAINT)


def _draw_spies(canvas: Canvas, zones: Zones) -> None:
    y = _SPIES_Y + _CARDS_BELOW
    _label(canvas, _LEFT, _SPIES_Y, "Spy Deck")
    if zones["spy"]:
        canvas.card(_LEFT, y, _CARD, zones["spy"][0])
    else:
        canvas.place(_LEFT, y, _CARD)
    _count(canvas, _LEFT, _SPIES_Y, f"+ {len(zones['spy_deck'])} unseen")
    lost = len(zones["spy_discard"])
    _label(canvas, _RIGHT_OF_DECKS, _SPIES_Y, "Spy Discard")
    canvas.pile(_RIGHT_OF_DECKS, y, _CARD, lost)
    _count(canvas, _RIGHT_OF_DECKS, _SPIES_Y, counted(lost))


def _draw_key_spies(canvas: Canvas, zones: Zones, rules: Rules) -> None:
    """Held ones from the left, lost ones from the right, and a bar at what a win takes."""
    held, lost = _key_spies_held_and_lost(zones)
    needed, y = rules.key_spies_to_win, _SPIES_Y + _PIPS_BELOW
    _label(canvas, _GAUGE, _SPIES_Y, "Key Spies", f"{held} held, {lost} lost, {needed} needed")
    for place in range(cards.NUM_KEY_SPIES):
        x = _GAUGE + place * _PIP_STEP
        is_held, is_lost = place < held, place >= cards.NUM_KEY_SPIES - lost
        fill = _HELD if is_held else _LOST if is_lost else None
        canvas.box((x, y, *_PIP), fill, edge=drawing.FAINT, radius=4)
        if is_lost:  # not by colour alone
            canvas.text(x + 7, y + 5, "x", 28, drawing.FACE)
    canvas.box((_GAUGE + needed * _PIP_STEP - 6, y - 6, 3, 40), drawing.GOLD, radius=1)


def _draw_removed(canvas: Canvas, removed: Sequence[str]) -> None:
    aces = [card for card in removed if card[0] == "A"]  # before the first deal it is all cards
    if aces:
        _label(canvas, _GAUGE, _SPIES_Y + _ACES_BELOW, "Aces removed")
    canvas.chips(_GAUGE, _SPIES_Y + _ACES_BELOW + _CARDS_BELOW, aces, width=_TABLE_EDGE - _GAUGE)


def _draw_draws(canvas: Canvas, zones: Zones, last_play: _LastPlay | None) -> None:
    y = _DRAWS_Y + _CARDS_BELOW
    draws, discard = len(zones["draw_deck"]), zones["draw_discard"]
    _label(canvas, _LEFT, _DRAWS_Y, "Draw Deck")
    canvas.pile(_LEFT, y, _CARD, draws)
    _count(canvas, _LEFT, _DRAWS_Y, counted(draws))
    _label(canvas, _RIGHT_OF_DECKS, _DRAWS_Y, "Draw Discard", counted(len(discard)))
    if not discard:
        canvas.place(_RIGHT_OF_DECKS, y, _CARD)
    marked = (*last_play.cards, last_play.spy) if last_play else ()
    width = _TABLE_EDGE - _RIGHT_OF_DECKS
    canvas.chips(_RIGHT_OF_DECKS, y + 2, discard, width=width, marked=marked)


def _draw_hand(canvas: Canvas, hand: Sequence[str]) -> None:
    _label(canvas, _LEFT, _HAND_Y, "Hand", "" if hand else "empty")
    for slot, card in enumerate(hand):
        canvas.card(_LEFT + slot * _HAND_STEP, _HAND_Y + _CARDS_BELOW, _CARD, card)


def _draw_last_play(canvas: Canvas, last_play: _LastPlay) -> None:
    y = _CAPTION_Y
    x = canvas.text(_LEFT, y, "Last play", _TEXT, drawing.FAINT) + 10
    if not last_play.kind:
        canvas.text(x, y, last_play.text, _TEXT, drawing.LIGHT, width=_TABLE_EDGE - x)
        return
    x = canvas.text(x, y, last_play.kind, _TEXT, drawing.LIGHT) + 8
    if last_play.spy:
        x = canvas.chips(x, y - 2, (last_play.spy,), width=WIDTH) + 8
        word = _GIVING_UP if last_play.kind == "assassinate" else "with"
        x = canvas.text(x, y, word, _TEXT, drawing.LIGHT) + 8
    canvas.chips(x, y - 2, last_play.cards, width=WIDTH)


def _draw_phase(canvas: Canvas, state: Any) -> float:
    """Heads the panel; returns the height at which it goes on."""
    phase, outcome = _phase_and_outcome(state)
    top = _PANEL[1] + 14
    task, colour = _ENDINGS[outcome] if outcome else (_TASKS[phase], drawing.INK)
    size = _TITLE if outcome else _LABEL
    canvas.text(_PANEL_LEFT, top, phase.capitalize(), _TITLE, drawing.INK)
    canvas.text(_PANEL_LEFT, top + 32, task, size, colour, width=_PANEL_WIDTH)
    return top + 64


# --- The list of legal plays ---

_HEADING_HEIGHT = 22
_MORE_HEIGHT = 20
_GROUP_GAP = 8


def _draw_legal_plays(canvas: Canvas, legal: Iterable[Action], top: float) -> None:
    """By kind, the first ones only where there are too many."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for kind, named in legal:
        groups.setdefault(kind, []).append(named)
    room = _PANEL[1] + _PANEL[3] - 8 - top
    for number, (kind, plays) in enumerate(groups.items()):
        share = _share(groups, number, room)
        used = _draw_plays(canvas, kind, plays, top, share)
        top, room = top + used, room - used


def _share(groups: dict[str, list[tuple[str, ...]]], number: int, room: float) -> float:
    """The height that a group may take: all that those after it leave, and its part at least."""
    after = list(groups.values())[number + 1 :]
    return max(room - sum(map(_height_of, after)), room / (1 + len(after)))


def _columns_of(plays: Sequence[tuple[str, ...]]) -> int:
    longest = max(1, *map(len, plays))
    width = longest * drawing.CHIP_STEP + _COLUMN_GAP
    return max(1, int((_PANEL_WIDTH + _COLUMN_GAP) // width))


def _height_of(plays: Sequence[tuple[str, ...]]) -> float:
    lines = -(-len(plays) // _columns_of(plays)) if any(plays) else 0
    return _HEADING_HEIGHT + lines * drawing.CHIP_LINE + _GROUP_GAP


def _draw_plays(
    canvas: Canvas, kind: str, plays: Sequence[tuple[str, ...]], top: float, share: float
) -> float:
    """One kind of plays within a share of the height; returns the height used."""
    name = kind.capitalize() + (f", {_GIVING_UP}" if kind == "assassinate" else "")
    end = canvas.text(_PANEL_LEFT, top, name, _TEXT, drawing.INK)
    columns, shown = _columns_of(plays), list(plays)
    if _height_of(plays) > share:
        lines = int((share - _HEADING_HEIGHT - _MORE_HEIGHT - _GROUP_GAP) // drawing.CHIP_LINE)
        shown = shown[: lines * columns]
    if kind != "pass":
        canvas.text(end + 8, top, str(len(plays)), _TEXT, drawing.MUTED)
    column_width = _PANEL_WIDTH / columns
    for number, named in enumerate(shown):
        line, column = divmod(number, columns)
        x, y = _PANEL_LEFT + column * column_width, top + _HEADING_HEIGHT + line * drawing.CHIP_LINE
        canvas.chips(x, y, named, width=WIDTH)
    used = _height_of(shown) if shown else _HEADING_HEIGHT + _GROUP_GAP
    if len(shown) < len(plays):
        more = f"and {len(plays) - len(shown)} more"
        canvas.text(_PANEL_LEFT, top + used - _GROUP_GAP + 2, more, _LABEL, drawing.MUTED)
        used += _MORE_HEIGHT
    return used
