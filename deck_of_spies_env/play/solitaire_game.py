"""Deck of Spies in hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.advice import advise
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.drawing import counted
from deck_of_spies_env.play.game import PLAYER_NAME, Decision, Game, Play, Worths
from deck_of_spies_env.play.words import face, faces, total_of, value_of, with_faces
from deck_of_spies_env.records import SolitaireRecord, SolitaireResult
from deck_of_spies_env.solitaire import rules as game
from deck_of_spies_env.solitaire.actions import Action, action_table
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.explanations import reason_against
from deck_of_spies_env.solitaire.positions import zones_of
from deck_of_spies_env.solitaire.rules import Rules

ACES = cards.cards_in(cards.ACES)

_PLACES = {"hand": "in hand", "draw_deck": "in the deck", "draw_discard": "in the discard"}
_PAST = {
    "counter": "countered",
    "recruit": "recruited",
    "assassinate": "assassinated",
    "retire": "retired",
    "pass": "passed",
}


def plays_in(state: Any, mask: Any, hand_size: int) -> list[Play]:
    """The legal plays of a position.

    Args:
        state: record of dtype STATE.
        mask: int8 or bool (n,).
        hand_size: of the rules.
    """
    table, hand = action_table(hand_size), int(state["hand"])
    zones = zones_of(state)
    named = [(action, table.decode(action, hand)) for action in np.flatnonzero(mask).tolist()]
    return [Play(*found, action, _note(zones, *found)) for action, found in named]


def _note(zones: dict[str, tuple[str, ...]], kind: str, named: Sequence[str]) -> str:
    """The total of cards that are played, or where the Ace lies that is given up."""
    if kind in ("counter", "recruit"):
        return f"= {total_of(named)}"
    if kind == "assassinate":
        (place,) = (place for zone, place in _PLACES.items() if named[0] in zones[zone])
        return place
    return ""


def turn_of(state: Any) -> int:
    """The number of the spy that is dealt with, 1-36."""
    waiting = int(state["spy_deck"]).bit_count() + (state["spy"] != game.NO_SPY)
    return cards.NUM_SPIES - waiting + (state["phase"] == game.ACT)


def play_in_words(state: Any, kind: str, named: Sequence[str], *, past: bool = False) -> str:
    """A play in words: ``counter 7♥ with 3♦ 4♠``.

    Args:
        state: where it is made, a record of dtype STATE.
        kind, named: of the play.
        past: ``countered`` and the like.
    """
    verb = _PAST[kind] if past else kind
    if kind == "pass":
        return verb
    if kind == "retire":
        return f"{verb} {faces(named)}"
    joined = "giving up" if kind == "assassinate" else "with"
    return f"{verb} {face(cards.card_text(int(state['spy'])))} {joined} {faces(named)}"


class SolitaireGame(Game):
    """Deck of Spies, one deal after the other.

    Args:
        seed: of the deals.
        rules: the rule set.
    """

    name: ClassVar[str] = SolitaireRecord.game
    title: ClassVar[str] = "Deck of Spies"
    unit: ClassVar[str] = "Key Spies"
    judged_by: ClassVar[str] = (
        "Key Spies are means over games that a plain bot plays on after each play; the ± is twice "
        "their standard error. Luck is not counted."
    )
    num_players: ClassVar[int] = 1
    kinds: ClassVar[dict[str, str]] = {
        "counter": "c",
        "recruit": "r",
        "assassinate": "a",
        "retire": "t",
        "pass": "p",
    }

    def __init__(self, seed: int, rules: Rules) -> None:
        super().__init__(seed)
        self.rules = rules
        self._env = DeckOfSpiesEnv(rules=rules)
        self._env.reset(seed=seed)
        self._ending: dict[str, Any] = {}

    def snapshot(self) -> Any:
        """The position with its random streams."""
        return self._env.get_state()

    def mask(self) -> npt.NDArray[np.bool_]:
        """The legal actions, bool (n,)."""
        return self._env.action_masks()

    def plays(self) -> list[Play]:
        """The legal plays by the cards that they take."""
        return plays_in(self.state, self.mask(), self.rules.hand_size)

    def pickable(self) -> tuple[str, ...]:
        """The hand, or where a spy must be assassinated the four Aces."""
        return ACES if self.picks_one else self._env.zones()["hand"]

    @property
    def picks_one(self) -> bool:
        """Whether a Double Agent is to be picked."""
        return any(play.kind == "assassinate" for play in self.plays())

    def record(self) -> SolitaireRecord:
        """The record of the finished game."""
        ending = self._ending
        named = [self._action(decision, decision.action) for decision in self.decisions]
        return SolitaireRecord(
            rules=self.rules,
            seed=self.seed,
            episode=self.episode,
            players=(PLAYER_NAME,),
            actions=tuple(" ".join((kind, *played)) for kind, played in named),
            result=SolitaireResult(ending["outcome"], ending["key_spies"], ending["turns"]),
        )

    def view(self) -> Any:
        """The position."""
        return self.state

    def worths(self, agent: Agent | None, snapshot: Any, samples: int, seed: int) -> Worths:
        """Mean Key Spies after each action, if a plain bot plays on."""
        advice = advise(agent, snapshot, self.rules, samples=samples, seed=seed, judge="playouts")
        return Worths(
            advice.actions,
            advice.key_spies,
            advice.key_spies_errors,
            advice.chosen,
            advice.probabilities,
        )

    def _deal(self) -> None:
        self._env.reset()

    def _step(self, action: int) -> tuple[int, ...]:
        *_, self._ending = self._env.step(action)
        return (action,)

    def _restore(self, snapshot: Any) -> None:
        self._env.set_state(snapshot)

    # --- Words ---

    def heading(self) -> str:
        """The deal and the turn."""
        turn = f"turn {turn_of(self.state)} of {cards.NUM_SPIES}"
        return f"seed {self.seed}, game {self.episode + 1} · {turn}"

    def task(self) -> str:
        """What to do now, and with which keys."""
        zones = self._env.zones()
        if self._env.phase == "retire":
            return "Retire two or more cards of one rank, or keep all (p)."
        spy = face(zones["spy"][0])
        if self.picks_one:
            return f"Your whole hand is below {spy}: pick an Ace to give up for its assassination."
        return (
            f"Beat {spy}: pick cards (1-{len(zones['hand'])}) that total "
            f"{value_of(zones['spy'][0])} or more, none to spare, and press Enter. In its suit, or "
            f"with its Ace, they can recruit it."
        )

    def effect(self, play: Play) -> str:
        """What a legal play does."""
        zones = self._env.zones()
        if play.kind == "pass":
            return "Pass: keep all your cards."
        if play.kind == "retire":
            return f"Retire {faces(play.cards)}: out of your deck for good."
        spy = face(zones["spy"][0])
        if play.kind == "assassinate":
            return (
                f"Assassinate {spy}: {face(play.cards[0])} leaves the game for good, "
                f"and your hand is replaced."
            )
        sums = f"{total_of(play.cards)} against {value_of(zones['spy'][0])}"
        if play.kind == "counter":
            return f"Counter {spy} with {faces(play.cards)}: {sums}. It goes to the Spy Discard."
        return f"Recruit {spy} with {faces(play.cards)}: {sums}. It joins your Draw Discard."

    def why_not(self, cards: Sequence[str]) -> str:
        """The rule that forbids these cards."""
        if self._env.phase == "retire":
            return "Only two to four cards of one rank can be retired together."
        kind = "assassinate" if self.picks_one else "counter"
        why = reason_against(self.state, Action(kind, tuple(cards)))
        return f"{faces(cards)}: {with_faces(why)}."

    def faced(self, decision: Decision) -> str:
        """The turn, the spy and the hand."""
        state = decision.snapshot["state"]
        zones = zones_of(state)
        hand = f"{faces(zones['hand'])} in hand"
        if state["phase"] == game.RETIRE:
            return f"Turn {turn_of(state)}, retiring, with {hand}"
        return f"Turn {turn_of(state)}, facing {faces(zones['spy'])} with {hand}"

    def named(self, decision: Decision, action: int) -> str:
        """An action in words."""
        return play_in_words(decision.snapshot["state"], *self._action(decision, action))

    def _action(self, decision: Decision, action: int) -> Action:
        hand = int(decision.snapshot["state"]["hand"])
        return action_table(self.rules.hand_size).decode(action, hand)

    def last_play(self) -> str:
        """The last play, and the cards drawn after it."""
        if not self.decisions:
            return ""
        decision = self.decisions[-1]
        before = decision.snapshot["state"]
        kind, named = self._action(decision, decision.action)
        told = f"You {play_in_words(before, kind, named, past=True)}"
        drawn = faces(_drawn(before, kind, named, self.state))
        return f"{told}, and drew {drawn}." if drawn else f"{told}."

    def result(self) -> str:
        """Won or lost, and by how many Key Spies."""
        ending, needed = self._ending, self.rules.key_spies_to_win
        if ending["outcome"] == "no_double_agent":
            return "You lose: the hand was too weak, and no Double Agent (Ace) was left."
        word = "win" if ending["is_success"] else "lose"
        held = counted(ending["key_spies"], "Key Spies").replace("1 Key Spies", "1 Key Spy")
        return f"You {word} with {held} of {cards.NUM_KEY_SPIES}; {needed} were needed."


def _drawn(before: Any, kind: str, named: Sequence[str], after: Any) -> tuple[str, ...]:
    kept = () if kind == "assassinate" else set(zones_of(before)["hand"]) - set(named)
    return tuple(card for card in zones_of(after)["hand"] if card not in kept)
