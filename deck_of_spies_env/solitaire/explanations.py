"""Why an action is illegal, in words."""

from __future__ import annotations

from typing import Any

from deck_of_spies_env import cards
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import Action, IllegalActionError, action_table
from deck_of_spies_env.solitaire.rules import Rules


def why_illegal(state: Any, rules: Rules, action: int) -> str:
    """One line that names an illegal action and the rule that forbids it.

    Args:
        state: record of dtype STATE.
        rules: the rule set.
        action: an index that is not legal in this state.
    """
    hand = int(state["hand"])
    try:
        named = action_table(rules.hand_size).decode(action, hand)
    except IllegalActionError as error:
        if state["phase"] == game.OVER:
            return f"action {action} is illegal: the game is over, reset first"
        return str(error)
    text = " ".join((named.kind, *named.cards))
    return f"action {action} ({text}) is illegal: {reason_against(state, named)}"


def reason_against(state: Any, action: Action) -> str:
    """The rule that forbids an action, without a full stop.

    Args:
        state: record of dtype STATE.
        action: one that is not legal in this state.
    """
    if state["phase"] == game.OVER:
        return "the game is over, reset first"
    in_retire_phase = state["phase"] == game.RETIRE
    if in_retire_phase != (action.kind in ("retire", "pass")):
        return f"the phase is {game.PHASES[state['phase']]}"
    if action.kind == "retire":
        return "cards of different ranks can't be retired together (D9)"
    return _reason_in_act_phase(state, action)


def _reason_in_act_phase(state: Any, action: Action) -> str:  # noqa: PLR0911 -- one per rule
    spy = int(state["spy"])
    target = cards.card_value(spy)
    in_hand = _total(cards.cards_in(int(state["hand"])))
    facing = f"the {cards.card_text(spy)} has value {target}"
    if action.kind == "assassinate":
        if in_hand >= target:
            return f"the hand totals {in_hand} and {facing}, so it can be countered (D7)"
        return "that Ace has left the game or is in the Spy Discard (D7)"
    if in_hand < target:
        return f"the whole hand totals {in_hand} and {facing}: only assassinate is left (D7)"
    total = _total(action.cards)
    if total < target:
        return f"the cards total {total} and {facing} (D1)"
    double_agent = "A" + cards.SUITS[spy % cards.NUM_SUITS]
    recruits_with_ace = action.kind == "recruit" and double_agent in action.cards
    for card in action.cards:
        exempt = recruits_with_ace and card == double_agent
        if not exempt and total - _total((card,)) >= target:
            return f"the {card} is spare: the others total {total - _total((card,))} (D1, D3)"
    if not recruits_with_ace:
        return f"not every card is of the spy's suit, {double_agent[1]} (D2)"
    return f"the {double_agent} converts no card and is not needed, idle_ace is false (D4)"


def _total(named: tuple[str, ...]) -> int:
    return sum(cards.card_value(cards.card_index(card)) for card in named)
