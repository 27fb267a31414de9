"""Positions by zone and card name, to and from state records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.compiled import entry_point, kernel, popcount
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.rules import STATE, Rules

ZONES = ("hand", "draw_deck", "draw_discard", "spy", "spy_deck", "spy_discard", "removed")
_PILES = ("hand", "draw_deck", "draw_discard", "spy_deck", "spy_discard")
_START_PHASES = ("act", "retire")
_START_KEYS = ("zones", "phase")
_NUM_PHASES, _NUM_OUTCOMES = len(game.PHASES), len(game.OUTCOMES)


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
    masks = _parse_zones(zones)
    if "hand" in zones or phase != "act":
        return fixed_start(zones, phase, rules)
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
        unknown = [key for key in start if key not in _START_KEYS]
        if unknown:
            raise ValueError(f"start: unknown key {unknown[0]!r} beside zones; there is phase")
        return repeated_start(start["zones"], _phase_option(start), rules)
    return repeated_start(start, "act", rules)


def check_states(states: npt.NDArray[Any], rules: Rules) -> None:
    """Check that state records are positions of this rule set, or games not yet dealt.

    Args:
        states: shape (N,), dtype STATE.
        rules: the rule set to be played.

    Raises:
        ValueError: what is wrong with the first one that is none.
    """
    index, fault = _first_fault(states, rules.record)
    if fault != _SOUND:
        where = f"state {index}" if len(states) > 1 else "state"
        raise ValueError(f"{where}: {_FAULTS[fault]}")


def undealt_states(num_games: int) -> npt.NDArray[Any]:
    """Games before their first deal: over, without an outcome, and without cards."""
    states = np.zeros(num_games, dtype=STATE)
    states["phase"] = game.OVER
    states["spy"] = game.NO_SPY
    return states


_FAULTS = (
    "",
    "unknown phase code",
    "unknown outcome code",
    "spy must be 5 to King",
    "there are 52 cards",
    "a card is in two zones",
    "a card is missing that is no Ace",
    "spies are 5 to King",
    "only a game that is over has an outcome",
    "won or lost with spies left",
    "the outcome is not that of the position",
    "too many cards in hand",
    "no spy on top",
    "phase retire needs a pair in hand",
    "no legal action",
)
"""What can be wrong with a state record."""
(
    _SOUND,
    _BAD_PHASE,
    _BAD_OUTCOME,
    _BAD_SPY,
    _ALIEN_CARD,
    _TWICE,
    _MISSING,
    _LOW_SPY,
    _OUTCOME_TOO_SOON,
    _JUDGED_TOO_SOON,
    _MISJUDGED,
    _LARGE_HAND,
    _NO_SPY_ON_TOP,
    _NO_PAIR,
    _STUCK,
) = range(len(_FAULTS))

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_ALL_CARDS, _SPIES = np.uint64(cards.ALL_CARDS), np.uint64(cards.SPIES)
_NO_ACES = np.uint64(cards.ALL_CARDS & ~cards.ACES)


@kernel
def _fault_of_cards(state: Any) -> int:
    """What is wrong with where the cards are."""
    spy = _ZERO
    if state.spy != game.NO_SPY:
        if state.spy < cards.FIRST_SPY or state.spy >= cards.NUM_CARDS:
            return _BAD_SPY
        spy = _ONE << np.uint64(state.spy)
    union = state.hand | state.draw_deck | state.draw_discard | state.spy_deck | state.spy_discard
    num_cards = popcount(state.hand) + popcount(state.draw_deck) + popcount(state.draw_discard)
    num_cards += popcount(state.spy_deck) + popcount(state.spy_discard) + popcount(spy)
    union |= spy
    if union & ~_ALL_CARDS:
        return _ALIEN_CARD
    if num_cards != popcount(union):
        return _TWICE
    if _NO_ACES & ~union:
        return _MISSING
    return _LOW_SPY if state.spy_deck & ~_SPIES else _SOUND


@kernel
def _is_misjudged(state: Any, rules: Any) -> bool:
    """Whether a game ended otherwise than D8 and D12 say."""
    if state.outcome == game.WIN:
        return game.key_spies_held(state) < rules.key_spies_to_win
    if state.outcome == game.LOSS:
        return game.key_spies_held(state) >= rules.key_spies_to_win
    if state.outcome == game.NO_DOUBLE_AGENT:
        if state.spy == game.NO_SPY or game.double_agents_left(state) != _ZERO:
            return True
        return not game.must_assassinate(state)
    return False


@kernel
def _fault_of_phase(state: Any, rules: Any) -> int:  # noqa: PLR0911 -- one per fault
    """What is wrong with the phase and outcome, the cards being in order."""
    faced = state.spy != game.NO_SPY
    left = faced or state.spy_deck != _ZERO
    over, retire = state.phase == game.OVER, state.phase == game.RETIRE
    if over != (state.outcome != game.NO_OUTCOME):
        return _OUTCOME_TOO_SOON
    if left and (state.outcome == game.WIN or state.outcome == game.LOSS):
        return _JUDGED_TOO_SOON
    if _is_misjudged(state, rules):
        return _MISJUDGED
    if np.int64(popcount(state.hand)) > rules.hand_size - retire:
        return _LARGE_HAND
    if not faced and (state.phase == game.ACT or (retire and left)):
        return _NO_SPY_ON_TOP
    if retire and not game.has_pair(state.hand):
        return _NO_PAIR
    if state.phase == game.ACT and game.must_assassinate(state):
        return _STUCK if game.double_agents_left(state) == _ZERO else _SOUND
    return _SOUND


@kernel
def _is_undealt(state: Any) -> bool:
    """Whether a record is that of undealt_states."""
    union = state.hand | state.draw_deck | state.draw_discard | state.spy_deck | state.spy_discard
    over = state.phase == game.OVER and state.outcome == game.NO_OUTCOME
    return union == _ZERO and state.spy == game.NO_SPY and over


@entry_point
def _first_fault(states: Any, rules: Any) -> tuple[int, int]:
    """The first state that is no position, and what is wrong with it; _SOUND if all are."""
    for i in range(states.shape[0]):
        state = states[i]
        if state.phase < 0 or state.phase >= _NUM_PHASES:
            return i, _BAD_PHASE
        if state.outcome < 0 or state.outcome >= _NUM_OUTCOMES:
            return i, _BAD_OUTCOME
        if not _is_undealt(state):
            fault = _fault_of_cards(state)
            if fault == _SOUND:
                fault = _fault_of_phase(state, rules[0])
            if fault != _SOUND:
                return i, fault
    return 0, _SOUND


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
