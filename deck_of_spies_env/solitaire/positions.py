"""Positions by zone and card name, to and from state records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.rules import STATE, Rules

ZONES = ("hand", "draw_deck", "draw_discard", "spy", "spy_deck", "spy_discard", "removed")
_PILES = ("hand", "draw_deck", "draw_discard", "spy_deck", "spy_discard")
_START_PHASES = ("act", "retire")


class Start(NamedTuple):
    """Where episodes begin.

    Attributes:
        record: shape ``(1,)``, dtype STATE.
        deal_hand: whether the opening hand is drawn at each reset.
    """

    record: npt.NDArray[Any]
    deal_hand: bool


def standard_start() -> Start:
    """The start of a game: Aces to 4s in the Draw Deck, 36 spies, the hand still to be dealt."""
    return Start(game.standard_start(), deal_hand=True)


def zones_of(state: Any) -> dict[str, tuple[str, ...]]:
    """The cards of each zone, sorted by (rank, suit), so that no order leaks.

    Args:
        state: record of dtype STATE.

    Returns:
        Exactly the keys of ZONES. ``spy`` holds the top of the Spy Deck, none after the last;
        ``spy_deck`` the spies not yet seen; ``removed`` the cards that have left the game.
    """
    masks = {name: int(state[name]) for name in _PILES}
    masks["spy"] = 0 if state["spy"] == game.NO_SPY else 1 << int(state["spy"])
    masks["removed"] = cards.ALL_CARDS & ~_union(masks.values())
    return {name: cards.cards_in(masks[name]) for name in ZONES}


def fixed_start(zones: Mapping[str, Any], phase: str, rules: Rules) -> Start:
    """A start exactly as given, reachable or not; nothing is drawn.

    Args:
        zones: zone name -> cards; a zone left out is empty. Aces not named are removed.
        phase: ``"act"`` or ``"retire"``.
        rules: the rule set to be played.

    Raises:
        ValueError: what is wrong with the position, see the checks below.
    """
    masks = _parse_zones(zones)
    start = Start(_record(masks, phase), deal_hand=False)
    _check_hand(masks["hand"], phase, rules)
    if masks["spy"]:
        value = cards.card_value(masks["spy"].bit_length() - 1)
    elif masks["spy_deck"] or phase == "act":
        raise ValueError("zones: no card in spy, so there is no legal action: name the top spy")
    else:
        value = 0  # the last spy has been dealt with, a retire decision remains
    if phase == "act" and _total(masks["hand"]) < value and not _aces_left(masks):
        raise ValueError(
            f"zones: no legal action: the hand totals {_total(masks['hand'])}, the spy's value is "
            f"{value}, and no Ace is left to assassinate with"
        )
    return start


def repeated_start(zones: Mapping[str, Any], phase: str, rules: Rules) -> Start:
    """A start for every episode: as :func:`fixed_start`, but ``hand`` may be left out to deal it.

    ``spy`` may then be left out too, to turn up the first one of ``spy_deck``.

    Raises:
        ValueError: as fixed_start; also where some deal would leave no legal action.
    """
    if "hand" in zones or phase != "act":
        return fixed_start(zones, phase, rules)
    masks = _parse_zones(zones)
    if masks["spy"]:
        candidates = masks["spy"]
    else:
        tiers = [masks["spy_deck"] & tier for tier in cards.SPY_TIERS]
        candidates = next((tier for tier in tiers if tier), 0)
    if not candidates:
        raise ValueError("start: no card in spy or spy_deck, so there is no legal action")
    value = cards.card_value(candidates.bit_length() - 1)
    if _weakest_deal(masks, rules.hand_size) < value and not _aces_left(masks):
        raise ValueError(
            f"start: no legal action after some deals: a hand can fall short of a spy of value "
            f"{value}, and no Ace is left to assassinate with"
        )
    return Start(_record(masks, phase), deal_hand=True)


def start_from_options(options: Mapping[str, Any], rules: Rules) -> Start | None:
    """The start asked for by ``reset(options=...)``, or None if it asks for none.

    Raises:
        ValueError: a bad position, or a phase without zones.
    """
    phase = _phase_option(options)
    if "zones" in options:
        return fixed_start(options["zones"], phase, rules)
    if phase != "act":
        raise ValueError(f"options: phase {phase!r} needs zones")
    return None


def start_from_argument(start: Mapping[str, Any] | None, rules: Rules) -> Start:
    """The start that the constructor's ``start=`` asks for; None is the standard one.

    Args:
        start: a mapping of zones, or one with the keys ``zones`` and ``phase``.
        rules: the rule set to be played.

    Raises:
        ValueError: a bad position.
    """
    if start is None:
        return standard_start()
    # A config file can hold anything here.
    if not isinstance(start, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"start must be a mapping of zones, got {start!r}")
    if "zones" in start:
        return repeated_start(start["zones"], _phase_option(start), rules)
    return repeated_start(start, "act", rules)


def check_state(state: Any, rules: Rules) -> None:
    """Check that a state record is a position of this rule set.

    Raises:
        ValueError: a card in two zones, too many cards in hand, or codes out of range.
    """
    masks = [int(state[name]) for name in _PILES]
    spy = int(state["spy"])
    if not -1 <= spy < cards.NUM_CARDS:
        raise ValueError(f"state: spy must be a card index or {game.NO_SPY}, got {spy}")
    if spy != game.NO_SPY:
        masks.append(1 << spy)
    if sum(mask.bit_count() for mask in masks) != _union(masks).bit_count():
        raise ValueError("state: a card is in two zones")
    held = int(state["hand"]).bit_count()
    if held > rules.hand_size:
        raise ValueError(f"state: {held} cards in hand, the rules allow {rules.hand_size}")
    if not 0 <= int(state["phase"]) < len(game.PHASES):
        raise ValueError(f"state: unknown phase code {int(state['phase'])}")
    if not 0 <= int(state["outcome"]) < len(game.OUTCOMES):
        raise ValueError(f"state: unknown outcome code {int(state['outcome'])}")


def _phase_option(options: Mapping[str, Any]) -> str:
    phase = options.get("phase", "act")
    if phase not in _START_PHASES:
        raise ValueError(f"phase must be one of {', '.join(_START_PHASES)}, got {phase!r}")
    return phase


def _parse_zones(zones: Mapping[str, Any]) -> dict[str, int]:
    """Zone name -> card mask, for all zones, each card in one of them."""
    if not isinstance(zones, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"zones must be a mapping of zone names to cards, got {zones!r}")
    for name in zones:
        if name not in ZONES:
            raise ValueError(f"zones: unknown zone {name!r}; there are {', '.join(ZONES)}")
    masks: dict[str, int] = dict.fromkeys(ZONES, 0)
    seen = 0
    for name, named in zones.items():
        masks[name] = _zone_mask(name, named)
        doubled = masks[name] & seen
        if doubled:
            raise ValueError(f"zones: {_names(doubled)} is in two zones, {name} among them")
        seen |= masks[name]
    missing = cards.ALL_CARDS & ~cards.ACES & ~seen
    if missing:
        raise ValueError(f"zones: missing {_names(missing)}: only Aces may be left out")
    if masks["spy"].bit_count() > 1:
        raise ValueError(f"zones: spy holds one card, got {_names(masks['spy'])}")
    if masks["removed"] & ~cards.ACES:
        raise ValueError(
            f"zones: {_names(masks['removed'] & ~cards.ACES)} in removed: only Aces leave the game"
        )
    for name in ("spy", "spy_deck"):
        low = masks[name] & ~cards.SPIES
        if low:
            raise ValueError(f"zones: {_names(low)} in {name}: spies are 5 to King")
    return masks


def _zone_mask(name: str, named: Any) -> int:
    if isinstance(named, str):
        named = (named,)
    if not isinstance(named, Iterable):
        raise ValueError(f"zones: {name} must be a sequence of cards, got {named!r}")
    try:
        return cards.mask_of(named)
    except ValueError as error:
        raise ValueError(f"zones: {name}: {error}") from None


def _check_hand(hand: int, phase: str, rules: Rules) -> None:
    most = rules.hand_size if phase == "act" else rules.hand_size - 1
    if hand.bit_count() > most:
        raise ValueError(
            f"zones: {hand.bit_count()} cards in hand: at most {most} in phase {phase} with a hand "
            f"size of {rules.hand_size}"
        )
    ranks = [index // cards.NUM_SUITS for index in cards.indices_in(hand)]
    if phase == "retire" and len(set(ranks)) == len(ranks):
        raise ValueError(
            f"zones: phase retire needs a pair in hand, so there is no legal action with "
            f"{_names(hand) or 'no cards'}"
        )


def _weakest_deal(masks: Mapping[str, int], hand_size: int) -> int:
    """Lowest total that a dealt hand can have: the Draw Deck first, then the reshuffled discard."""
    first = cards.indices_in(masks["draw_deck"])[:hand_size]
    second = cards.indices_in(masks["draw_discard"])[: hand_size - len(first)]
    return sum(cards.card_value(index) for index in (*first, *second))


def _record(masks: Mapping[str, int], phase: str) -> npt.NDArray[Any]:
    record = np.zeros(1, dtype=STATE)
    for name in _PILES:
        record[name] = masks[name]
    record["spy"] = masks["spy"].bit_length() - 1 if masks["spy"] else game.NO_SPY
    record["phase"] = game.PHASES.index(phase)
    return record


def _total(mask: int) -> int:
    return sum(cards.card_value(index) for index in cards.indices_in(mask))


def _aces_left(masks: Mapping[str, int]) -> int:
    return (masks["hand"] | masks["draw_deck"] | masks["draw_discard"]) & cards.ACES


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _names(mask: int) -> str:
    return ", ".join(cards.cards_in(mask))
