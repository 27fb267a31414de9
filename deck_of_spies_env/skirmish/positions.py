"""Positions from and to text: the table by card names, what a seat sees of it, and checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.cards import card_text, cards_in, masks_of
from deck_of_spies_env.skirmish.rules import STATE, Rules

_OF_SEATS = ("hand", "supply", "capture")
_SEAT_ZONES = (*_OF_SEATS, "stakes")
_SHARED = ("graveyard", "burned")
_AT_STAKE = ("stakes", "committed")


def table_of(state: npt.NDArray[Any], num_players: int) -> dict[str, Any]:
    """The whole table by card names, for checks and spectators, never for agents.

    Returns:
        ``hand``, ``supply``, ``capture``, ``stakes``: one sorted tuple of cards for each seat;
        ``committed``: a card or None for each; ``graveyard``, ``burned``: sorted tuples;
        ``phase``; ``participants``: the seats that decide now.
    """
    seats = range(num_players)
    table: dict[str, Any] = {
        zone: tuple(cards_in(int(state[zone][seat])) for seat in seats) for zone in _SEAT_ZONES
    }
    table["committed"] = tuple(_card_or_none(int(state["committed"][seat])) for seat in seats)
    table |= {zone: cards_in(int(state[zone])) for zone in _SHARED}
    table["phase"] = game.PHASES[int(state["phase"])]
    table["participants"] = tuple(seat for seat in seats if _decides(state, seat))
    return table


def zones_of(state: npt.NDArray[Any], num_players: int, seat: int) -> dict[str, Any]:
    """What a seat may know, by card names.

    Returns:
        ``hand``: its own cards; ``sizes``: for each seat the numbers of cards in ``hand``,
        ``supply`` and ``stakes``; ``capture``, ``committed``, ``graveyard``, ``phase`` and
        ``participants`` as in :func:`table_of`; ``recycled``: for each seat the cards known to lie
        in its hand, Supply or stakes since they came back from its Capture pile, but for those in
        the observer's own hand; ``unseen``: the cards dealt at the start and not seen yet.
    """
    table = table_of(state, num_players)
    seats = range(num_players)
    hidden = [_hidden_of(state, seat, owner) for owner in seats]
    dealt = int(state["dealt"])
    return {
        "hand": table["hand"][seat],
        "sizes": tuple(
            {zone: len(table[zone][owner]) for zone in ("hand", "supply", "stakes")}
            for owner in seats
        ),
        "capture": table["capture"],
        "committed": table["committed"],
        "graveyard": table["graveyard"],
        "recycled": tuple(cards_in(mask & ~dealt) for mask in hidden),
        "unseen": cards_in(dealt & ~int(state["hand"][seat])),
        "phase": table["phase"],
        "participants": table["participants"],
    }


def _hidden_of(state: npt.NDArray[Any], seat: int, owner: int) -> int:
    hand = 0 if owner == seat else int(state["hand"][owner])
    return hand | int(state["supply"][owner]) | int(state["stakes"][owner])


def _card_or_none(index: int) -> str | None:
    return None if index == game.NO_CARD else card_text(index)


def _decides(state: npt.NDArray[Any], seat: int) -> bool:
    if state["phase"] == game.OVER or not int(state["hand"][seat]):
        return False
    return state["phase"] == game.SKIRMISH or bool(int(state["participants"]) >> seat & 1)


def state_from_table(table: Mapping[str, Any], num_players: int, rules: Rules) -> npt.NDArray[Any]:
    """A position at the start of a round, taken exactly as given: shape (1,), dtype STATE.

    Args:
        table: ``hand``, ``supply`` and ``capture`` (a collection of cards for each seat; left out,
            they are empty), ``graveyard`` and ``burned``. Cards that are named nowhere are burned.
            What :func:`table_of` gives is taken too, if it is the start of a round. Nobody
            remembers anything of hands and Supplies.
        num_players: 2-4.
        rules: the rule set.

    Raises:
        ValueError: an unknown zone, a bad card, one named twice or not in the deck, a hand of more
            than three cards, a seat without a hand, or the middle of a War; the message says which.
    """
    _check_start_of_round(table)
    masks = _masks_of_piles(_piles_of(table, num_players))
    state = np.zeros(1, dtype=STATE)
    state["committed"] = game.NO_CARD
    for place, name in enumerate(_OF_SEATS):
        state[name][0, :num_players] = masks[place * num_players : (place + 1) * num_players]
    state["graveyard"], state["burned"] = masks[-2:]
    named = int(np.bitwise_or.reduce(np.array(masks, dtype=np.uint64)))
    if named & ~rules.deck:
        raise ValueError(f"table: {', '.join(cards_in(named & ~rules.deck))} not in the deck")
    state["burned"] |= np.uint64(rules.deck & ~named)
    state["dealt"] = np.bitwise_or.reduce((state["hand"] | state["supply"])[0]) | state["burned"]
    check_states(state, num_players, rules)
    return state


def _check_start_of_round(table: Mapping[str, Any]) -> None:
    """Refuse unknown zones, and what :func:`table_of` gives of a War or of a game that is over."""
    known = (*_OF_SEATS, *_SHARED)
    for name in table:
        if name not in (*known, *_AT_STAKE, "phase", "participants"):
            raise ValueError(f"table: unknown zone {name!r}; there are {', '.join(known)}")
    phase = table.get("phase", game.PHASES[game.SKIRMISH])
    if phase != game.PHASES[game.SKIRMISH]:
        raise ValueError(f"table: must be the start of a round, not a game in phase {phase!r}")
    for name in _AT_STAKE:
        piles = table.get(name, ())
        if not _is_collection(piles) or any(piles):
            raise ValueError(f"table: at the start of a round nothing is {name}, got {piles!r}")


def _piles_of(table: Mapping[str, Any], num_players: int) -> dict[str, Any]:
    """Where each pile is, in words, and what was given for it; in the order of the zones."""
    piles: dict[str, Any] = {}
    for name in _OF_SEATS:
        of_seats = table.get(name, [()] * num_players)
        if not _is_collection(of_seats) or len(of_seats) != num_players:
            raise ValueError(
                f"table: {name} must hold one collection of cards for each of {num_players} seats, "
                f"got {of_seats!r}"
            )
        piles |= {f"{name} of seat {seat}": pile for seat, pile in enumerate(of_seats)}
    return piles | {name: table.get(name, ()) for name in _SHARED}


def _masks_of_piles(piles: Mapping[str, Any]) -> list[int]:
    """Piles as card masks; the message on a bad one says where it lies."""
    for where, pile in piles.items():
        if not _is_collection(pile) or not all(isinstance(card, str) for card in pile):
            raise ValueError(f"table: {where} must be a collection of cards' names, got {pile!r}")
    masks: list[int] = []
    for number, where in enumerate(piles, 1):
        try:
            masks = masks_of(list(piles.values())[:number])
        except ValueError as error:
            raise ValueError(f"table: {where}: {error}") from None
    return masks


def _is_collection(value: Any) -> bool:
    """Whether a value holds others; a text holds none, though Python can go through its letters."""
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def check_states(states: npt.NDArray[Any], num_players: int, rules: Rules) -> None:
    """Check that positions can be played.

    Args:
        states: shape (N,), dtype STATE.
        num_players: 2-4.
        rules: the rule set.

    Raises:
        ValueError: the first of them that is no position of this game; the message says why.
    """
    for index in np.flatnonzero(~_dealt(states)):
        if states[index] != undealt_states(1)[0]:
            _refuse(states, int(index), "a game without cards must be over and empty")
    playing = _dealt(states)
    for why, wrong in _faults(states, num_players, rules):
        bad = np.flatnonzero(wrong & playing)
        if bad.size:
            _refuse(states, int(bad[0]), why)


def _dealt(states: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """bool (N,): which games have been dealt at all."""
    everything = states["graveyard"] | states["burned"]
    for zone in _SEAT_ZONES:
        everything = everything | np.bitwise_or.reduce(states[zone], axis=1)
    return everything != 0


def _faults(states: npt.NDArray[Any], num_players: int, rules: Rules) -> Iterable[tuple[str, Any]]:
    """What can be wrong, and in which states it is."""
    size = len(states)
    phase, hand = states["phase"], states["hand"]
    seats = np.arange(game.MAX_PLAYERS)
    absent = seats >= num_players
    total, union = np.zeros(size, np.int64), np.zeros(size, np.uint64)
    lone = np.where(
        states["committed"] >= 0,
        np.uint64(1) << states["committed"].astype(np.uint64),
        np.uint64(0),
    )
    piles = [*(states[zone][:, seat] for zone in _SEAT_ZONES for seat in seats)]
    piles += [*(lone[:, seat] for seat in seats), states["graveyard"], states["burned"]]
    for pile in piles:
        total += np.bitwise_count(pile)
        union |= pile
    yield "phase is none of the game's", (phase < game.SKIRMISH) | (phase > game.OVER)
    yield "its cards are not those of the deck", union != np.uint64(rules.deck)
    yield "a card is in two places", total != np.bitwise_count(union)
    yield "a hand has more than three cards", (np.bitwise_count(hand) > game.HAND_SIZE).any(axis=1)
    others = sum((states[zone] != 0)[:, absent].any(axis=1) for zone in _SEAT_ZONES)
    yield f"a seat beyond {num_players} holds cards", np.asarray(others) != 0
    in_war = phase == game.WAR
    at_table = ~absent
    committed = states["committed"] != game.NO_CARD
    yield (
        "cards are committed outside of a War, or missing in one",
        (committed != (in_war[:, None] & at_table)).any(axis=1),
    )
    yield "cards are staked outside of a War", (states["stakes"] != 0).any(axis=1) & ~in_war
    participates = states["participants"][:, None] >> seats & 1 != 0
    yield "there are participants outside of a War", participates.any(axis=1) & ~in_war
    yield "a seat that is not there fights", participates[:, absent].any(axis=1)
    yield (
        "nobody in the War has a card to commit",
        in_war & ~(participates & (hand != 0)).any(axis=1),
    )
    yield (
        "a seat has no hand to play with",
        (phase == game.SKIRMISH) & (hand[:, at_table] == 0).any(axis=1),
    )
    yield "rounds are negative", states["rounds"] < 0
    last = rules.max_rounds - (phase != game.OVER)
    yield f"more rounds than the limit of {rules.max_rounds} allows", states["rounds"] > last
    yield (
        "there are offenders in a game that goes on",
        (states["offenders"] != 0) & (phase != game.OVER),
    )
    hidden = states["hand"] | states["supply"] | states["stakes"]
    everywhere = np.bitwise_or.reduce(hidden, axis=1) | states["burned"]
    recycled = states["latest"] | states["previous"]
    yield (
        "the game is over though nobody is out of cards, has offended or has met the round limit",
        (phase == game.OVER)
        & (hand[:, at_table] != 0).all(axis=1)
        & (states["rounds"] < rules.max_rounds)
        & (states["offenders"] == 0),
    )
    draws = states["supply"] | states["capture"] if rules.recycle_captures else states["supply"]
    yield (
        "a seat is out of cards though it has some to draw",
        ((hand == 0) & (draws != 0) & at_table).any(axis=1)
        & (phase == game.OVER)
        & (states["offenders"] == 0),
    )
    yield (
        "a captured card has come back, which these rules rule out",
        (hidden & ~states["dealt"][:, None] != 0).any(axis=1) & (not rules.recycle_captures),
    )
    yield "a dealt card does not lie hidden", (states["dealt"] & ~everywhere) != 0
    yield "a recycled card does not lie hidden", (recycled & ~hidden != 0).any(axis=1)
    yield (
        "a card is dealt and recycled, or recycled twice",
        (np.bitwise_or.reduce(recycled, axis=1) & states["dealt"] != 0)
        | (states["latest"] & states["previous"] != 0).any(axis=1),
    )
    loose = states["supply"] & ~states["latest"] & ~states["dealt"][:, None]
    yield "a Supply is of no batch", (loose != 0).any(axis=1)


def _refuse(states: npt.NDArray[Any], index: int, why: str) -> None:
    where = f"state {index}" if len(states) > 1 else "state"
    raise ValueError(f"{where}: {why}")


def undealt_states(num_games: int) -> npt.NDArray[Any]:
    """Games before their first deal: shape (N,), dtype STATE, over and empty."""
    states = np.zeros(num_games, dtype=STATE)
    states["phase"] = game.OVER
    states["committed"] = game.NO_CARD
    return states
