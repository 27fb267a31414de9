"""The table as text and as a picture, for spectators or as one seat may see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deck_of_spies_env import cards, drawing
from deck_of_spies_env.drawing import Canvas, Picture, counted, listed
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.actions import WAIT, decode
from deck_of_spies_env.skirmish.cards import JOKER_TEXT
from deck_of_spies_env.skirmish.positions import table_of, zones_of

_COLUMN = 13


# --- Text ---


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


# --- Pictures ---

WIDTH, HEIGHT = 960, 640
_LEFT, _EDGE = 24, 936
_HEAD_Y, _CAPTION_Y, _ROWS_Y, _ROWS_HEIGHT, _GRAVEYARD_Y = 14, 46, 76, 468, 552
_TITLE, _TEXT, _LABEL = 34, 22, 20
_GAP, _OVERLAP = 18, 16
_CARDS_BELOW = 28
_TALLEST = {2: 120, 3: 104, 4: 74}
"""Card heights by number of players."""


def render_picture(
    state: Any,
    endings: Sequence[Mapping[str, Any]],
    seat: int | None = None,
    last_step: tuple[Any, Any] | None = None,
) -> Picture:
    """The piles of each seat and the Graveyard as pixels, with the last step and who decides.

    Args:
        state: record of dtype STATE.
        endings: for each seat ``outcome`` and ``total``; looked at only if the game is over.
        seat: show what this seat may know, other hands face down; None shows everything.
        last_step: the position before the last actions, and these, whole numbers (n,).

    Returns:
        uint8 (HEIGHT, WIDTH, 3).

    Raises:
        DependencyNotInstalled: pygame is missing.
    """
    num_players = len(endings)
    canvas, zones = Canvas(WIDTH, HEIGHT), _zones_shown(state, num_players, seat)
    _draw_head(canvas, state, zones)
    if last_step:
        _draw_last_step(canvas, *_last_step_in_words(*last_step, state, num_players))
    height = _ROWS_HEIGHT / num_players
    for player in range(num_players):
        _draw_seat(canvas, zones, player, (_ROWS_Y + player * height, height))
        note = _note(zones, player, endings)
        _draw_note(canvas, zones, player, note, _ROWS_Y + player * height)
    _draw_graveyard(canvas, zones["graveyard"], int(state["burned"]).bit_count())
    return canvas.picture()


def _zones_shown(state: Any, num_players: int, seat: int | None) -> dict[str, Any]:
    """The zones in one form for both kinds of viewers; cards that are not shown are None."""
    seats = range(num_players)
    known = zones_of(state, num_players, 0 if seat is None else seat)
    table = table_of(state, num_players) if seat is None else None
    shown = {key: known[key] for key in ("capture", "committed", "graveyard", "phase")}
    shown["participants"], shown["seat"] = known["participants"], seat
    shown["supply"] = [known["sizes"][player]["supply"] for player in seats]
    shown["recycled"] = known["recycled"] if table is None else [()] * num_players
    for zone in ("hand", "stakes"):
        shown[zone] = [
            table[zone][player] if table else (None,) * known["sizes"][player][zone]
            for player in seats
        ]
    if seat is not None:
        shown["hand"][seat] = known["hand"]
    return shown


def _draw_head(canvas: Canvas, state: Any, zones: dict[str, Any]) -> None:
    rounds, phase = int(state["rounds"]), zones["phase"]
    if phase == "over":
        title = f"Over after {counted(rounds, 'round')}" if _dealt(zones) else "Not dealt yet"
        canvas.text(_LEFT, _HEAD_Y, title, _TITLE, drawing.LIGHT)
        return
    x = canvas.text(_LEFT, _HEAD_Y, f"Round {rounds + 1}", _TITLE, drawing.FAINT) + 14
    colour = drawing.GOLD if phase == "war" else drawing.LIGHT
    x = canvas.text(x, _HEAD_Y, phase.capitalize(), _TITLE, colour) + 18
    deciding = zones["participants"]
    who = f"{'seats' if len(deciding) > 1 else 'seat'} {listed(deciding)} to commit"
    canvas.text(x, _HEAD_Y + 6, who, _TEXT, drawing.FAINT)


def _last_step_in_words(
    before: Any, actions: Any, after: Any, num_players: int
) -> tuple[list[str], str]:
    """What each seat did, and what came of it; nothing that somebody at the table can't know."""
    seats, offenders = range(num_players), int(after["offenders"])
    if offenders:
        guilty = [seat for seat in seats if offenders >> seat & 1]
        return [f"seat {seat}: illegal action {actions[seat]}" for seat in guilty], ""
    acted = [seat for seat in seats if actions[seat] != WAIT]
    texts = [f"seat {seat}: {rank_in_words(decode(int(actions[seat])))}" for seat in acted]
    if after["phase"] == game.WAR:
        return texts, "War"
    winner = pot_winner(before, after)
    return texts, "all burns" if winner is None else f"seat {winner} takes the pot"


def pot_winner(before: Any, after: Any) -> int | None:
    """The seat that took the pot in a step, None if all burned or a War began.

    Args:
        before, after: the positions, records of dtype STATE.
    """
    # Cards leave a seat in a step, or burn; only whoever takes the pot has more than before.
    seats = range(game.MAX_PLAYERS)
    return next((s for s in seats if _num_held(after, s) > _num_held(before, s)), None)


def rank_in_words(rank: str) -> str:
    """A rank for people: ``T`` -> ``10``, ``*`` -> ``Joker``."""
    return {"T": "10", JOKER_TEXT: "Joker"}.get(rank, rank)


def _num_held(state: Any, seat: int) -> int:
    zones = ("hand", "supply", "capture", "stakes")
    return sum(int(state[zone][seat]).bit_count() for zone in zones)


def _draw_last_step(canvas: Canvas, texts: Sequence[str], consequence: str) -> None:
    x = canvas.text(_LEFT, _CAPTION_Y, "Last step", _TEXT, drawing.FAINT) + 12
    for number, text in enumerate(texts):
        room = (_EDGE - x) / (len(texts) - number) - _GAP  # illegal actions can be long
        x = canvas.text(x, _CAPTION_Y, text, _TEXT, drawing.LIGHT, width=room) + _GAP
    if consequence:
        canvas.text(x, _CAPTION_Y, consequence, _TEXT, drawing.GOLD, width=_EDGE - x)


def _dealt(zones: dict[str, Any]) -> bool:
    """Whether anybody holds cards, as somebody does at the end too."""
    return any(zones["supply"]) or any(zones["hand"]) or any(zones["capture"])


def _draw_seat(
    canvas: Canvas, zones: dict[str, Any], player: int, place: tuple[float, float]
) -> None:
    """All piles of a seat in a row, at a place from the top and so high."""
    top, row_height = place
    deciding = player in zones["participants"]
    box = (_LEFT - 12, top, _EDGE - _LEFT + 24, row_height - 6)
    canvas.box(box, (22, 70, 55), edge=drawing.GOLD if deciding else None, radius=8)
    height = _TALLEST[len(zones["hand"])]
    width, y = drawing.card_width(height), top + _CARDS_BELOW
    x = float(_LEFT)
    _draw_cards(canvas, x, y, height, zones["hand"][player], step=width + 5)
    x += _hand_width(zones) + _GAP
    _name(canvas, x, top, "Committed")
    committed = zones["committed"][player]
    _draw_cards(canvas, x, y, height, () if committed is None else (committed,), step=0)
    x += max(width, 76) + _GAP
    stakes = zones["stakes"][player]
    _name(canvas, x, top, "Stakes", len(stakes) or None)
    _draw_cards(canvas, x, y, height, stakes, step=_OVERLAP if None in stakes else 2 * _OVERLAP)
    x += width + 2 * _OVERLAP + _GAP
    supply = zones["supply"][player]
    _name(canvas, x, top, "Supply", supply)
    canvas.pile(x, y, height, supply)
    x += max(width, 70) + _GAP
    capture, recycled = zones["capture"][player], zones["recycled"][player]
    _name(canvas, x, top, "Capture", len(capture), "grey: recycled" if recycled else "")
    room, width = row_height - 6 - _CARDS_BELOW, _EDGE - x
    canvas.chips(x, y, (*capture, *recycled), width=width, height=room, dim=recycled)


def _hand_width(zones: dict[str, Any]) -> float:
    return game.HAND_SIZE * (drawing.card_width(_TALLEST[len(zones["hand"])]) + 5)


def _draw_cards(
    canvas: Canvas, x: float, y: float, height: float, shown: Sequence[str | None], step: float
) -> None:
    """Cards in a row, face down where they are None; a place for them if there are none."""
    if not shown:
        canvas.place(x, y, height)
    for number, card in enumerate(shown):
        if card is None:
            canvas.back(x + number * step, y, height)
        else:
            canvas.card(x + number * step, y, height, card)


def _name(
    canvas: Canvas, x: float, top: float, name: str, count: int | None = None, note: str = ""
) -> None:
    x = canvas.text(x, top + 8, name, _LABEL, drawing.FAINT) + 6
    if count is not None:
        x = canvas.text(x, top + 8, str(count), _LABEL, drawing.LIGHT) + 10
    canvas.text(x, top + 8, note, _LABEL, drawing.FAINT)


def _note(zones: dict[str, Any], player: int, endings: Sequence[Mapping[str, Any]]) -> str:
    """What a seat may play, or how it ended, as far as the viewer may know it."""
    visible = zones["seat"] in (None, player)
    if zones["phase"] == "over":
        if not visible or not _dealt(zones):
            return ""
        ending = endings[player]
        return f"{ending['outcome'].replace('_', ' ')}, {counted(ending['total'], 'point')}"
    if player not in zones["participants"]:
        return "waits"
    if not visible:
        return "commits"
    ranks = dict.fromkeys(rank_in_words(card[0]) for card in zones["hand"][player])
    return "may play " + ", ".join(ranks)


def _draw_note(canvas: Canvas, zones: dict[str, Any], player: int, note: str, top: float) -> None:
    name = f"Seat {player}" + (" (own)" if player == zones["seat"] else "")
    x = canvas.text(_LEFT, top + 8, name, _LABEL, drawing.LIGHT) + 8
    room = _LEFT + _hand_width(zones) + _GAP - 6 - x
    canvas.text(x, top + 8, note, _LABEL, drawing.GOLD, width=room)


def _draw_graveyard(canvas: Canvas, graveyard: Sequence[str], num_burned: int) -> None:
    x = canvas.text(_LEFT, _GRAVEYARD_Y, "Graveyard", _LABEL, drawing.LIGHT) + 8
    x = canvas.text(x, _GRAVEYARD_Y, counted(len(graveyard)), _LABEL, drawing.FAINT) + 24
    if num_burned:
        canvas.text(x, _GRAVEYARD_Y, f"{counted(num_burned)} burned", _LABEL, drawing.FAINT)
    canvas.chips(_LEFT, _GRAVEYARD_Y + 18, graveyard, width=_EDGE - _LEFT)
