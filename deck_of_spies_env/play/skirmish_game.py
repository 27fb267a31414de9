"""Skirmish in hand, against agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.advice import advise_seat
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.drawing import counted
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.play.game import PLAYER_NAME, Decision, Game, OpponentError, Play, Worths
from deck_of_spies_env.play.words import face, faces, points_of
from deck_of_spies_env.records import SkirmishRecord, SkirmishResult
from deck_of_spies_env.skirmish import rules as game
from deck_of_spies_env.skirmish.actions import WAIT, WAIT_TEXT, decode
from deck_of_spies_env.skirmish.cards import JOKER_TEXT, RANKS, cards_in
from deck_of_spies_env.skirmish.games import write_war_sums
from deck_of_spies_env.skirmish.opponents import Opponents
from deck_of_spies_env.skirmish.positions import zones_of
from deck_of_spies_env.skirmish.rendering import pot_winner, rank_in_words
from deck_of_spies_env.skirmish.rules import Rules
from deck_of_spies_env.skirmish.tables import Table

COMMIT = "commit"


class SkirmishView(NamedTuple):
    """What is to be shown.

    Attributes:
        state: the position, a record of dtype STATE.
        names: of the players, by seat.
        seat: whose view it is; None shows all hands.
        before: the position before the last step, None at the beginning.
        joint: the actions of all seats in that step.
    """

    state: Any
    names: Sequence[str]
    seat: int | None
    before: Any = None
    joint: Sequence[int] = ()


class SkirmishGame(Game):
    """Skirmish, one deal after the other.

    Args:
        seed: of the deals.
        rules: the rule set.
        opponents: n - 1 names of bots or agents, the first of them in the seat after the person's.
        names: theirs, for people and records.
        seat: the person's, 0 to n - 1; None for seat e % n in episode e.
    """

    name: ClassVar[str] = SkirmishRecord.game
    title: ClassVar[str] = "Skirmish"
    unit: ClassVar[str] = "payoff"
    judged_by: ClassVar[str] = (
        "Payoffs are means of play-outs by the bot rank, over deals that your seat could not tell "
        "apart: how a card fares against plain play."
    )
    kinds: ClassVar[dict[str, str]] = {COMMIT: "c", WAIT_TEXT: "w"}

    def __init__(
        self,
        seed: int,
        rules: Rules,
        opponents: Sequence[str | Agent],
        names: Sequence[str],
        seat: int | None = None,
    ) -> None:
        super().__init__(seed)
        self.rules = rules
        self.num_players = len(opponents) + 1
        self._names = tuple(names)
        self._fixed_seat = seat
        self._table = Table(self.num_players, rules=rules)
        self._opponents = Opponents(list(opponents), self.num_players)
        self._begin(seed)

    @property
    def seat(self) -> int:
        """The person's seat in this episode."""
        return self.episode % self.num_players if self._fixed_seat is None else self._fixed_seat

    @property
    def names(self) -> tuple[str, ...]:
        """Who plays, by seat."""
        after = [(seat - self.seat - 1) % self.num_players for seat in range(self.num_players)]
        return tuple((*self._names, PLAYER_NAME)[place] for place in after)

    def snapshot(self) -> Any:
        """The position with its random streams; it holds all cards."""
        return self._table.snapshot()

    def mask(self) -> npt.NDArray[np.int8]:
        """The legal actions of the person's seat, int8 (15,)."""
        return self._table.mask(self.seat)

    def plays(self) -> list[Play]:
        """To commit any card of the hand, or to wait."""
        mask = self.mask()
        if mask[WAIT]:
            return [Play(WAIT_TEXT, (), WAIT)]
        if not mask.any():
            return []
        different = dict.fromkeys(self.pickable())  # the Jokers are alike
        return [Play(COMMIT, (card,), RANKS.index(card[0])) for card in different]

    def pickable(self) -> tuple[str, ...]:
        """The hand."""
        return self._table.zones(self.seat)["hand"]

    @property
    def picks_one(self) -> bool:
        """One card is committed."""
        return True

    def record(self) -> SkirmishRecord:
        """The record of the finished game."""
        endings, truncated = self._table.endings()
        joint_actions = [decision.joint for decision in self.decisions]
        return SkirmishRecord(
            rules=self.rules,
            seed=self.seed,
            episode=self.episode,
            players=self.names,
            actions=tuple(" ".join(map(decode, joint)) for joint in joint_actions),
            result=SkirmishResult(
                payoffs=tuple(self._table.games.rewards[0].tolist()),
                totals=tuple(ending["total"] for ending in endings),
                rounds=endings[0]["rounds"],
                truncated=truncated,
            ),
        )

    def view(self) -> SkirmishView:
        """What the person's seat may see, and the last step."""
        if not self.decisions:
            return SkirmishView(self.state, self.names, self.seat)
        last = self.decisions[-1]
        return SkirmishView(self.state, self.names, self.seat, last.snapshot["state"], last.joint)

    def worths(self, agent: Agent | None, snapshot: Any, samples: int, seed: int) -> Worths:
        """Mean payoff after each action, over deals that the person's seat can't tell apart."""
        then = Table(self.num_players, rules=self.rules)
        then.restore(snapshot)
        observation = then.observation(self.seat)
        advice = advise_seat(agent, observation, self.rules, samples=samples, seed=seed)
        return Worths(
            advice.actions, advice.payoffs, advice.errors, advice.chosen, advice.probabilities
        )

    def _begin(self, seed: int | None) -> None:
        self._table.deal(seed, None)
        self._opponents.begin(self._table)

    def _deal(self) -> None:
        self._begin(None)

    def _step(self, action: int) -> tuple[int, ...]:
        joint = self._table.games.masks[0].argmax(axis=1)  # right for those that wait
        joint[self.seat] = action
        try:
            self._opponents.choose(self._table, self.seat, joint)
        except IllegalActionError:
            raise
        except Exception as error:  # whatever a user's own agent may raise
            raise OpponentError(f"an opponent failed: {type(error).__name__}: {error}") from error
        self._table.step(joint)
        return tuple(joint.tolist())

    def _restore(self, snapshot: Any) -> None:
        self._table.restore(snapshot)

    # --- Words ---

    def heading(self) -> str:
        """The deal and the round."""
        number, phase = int(self.state["rounds"]) + (not self.is_over), self._table.phase
        where = f"round {number}" + (", War" if phase == "war" else "")
        return f"seed {self.seed}, game {self.episode + 1} · {where} · you are seat {self.seat}"

    def task(self) -> str:
        """What to do now."""
        in_war = self._table.phase == "war"
        if self.mask()[WAIT]:
            return "A War without you: wait and see (w)."
        if in_war:
            return "War: commit a card; the highest sum with the hidden stakes takes all."
        return "Commit a card: the highest takes the pot, but mind Aces, Jacks and Jokers (?)."

    def effect(self, play: Play) -> str:
        """What a legal play does."""
        if play.kind == WAIT_TEXT:
            return "Wait: the others fight it out."
        (card,) = play.cards
        if self._table.phase == "war":
            worth = (
                "as much as the best card of its pile" if card == JOKER_TEXT else points_of((card,))
            )
            return f"Commit {face(card)} to the War: it adds {worth} to your stakes."
        return f"Commit {face(card)}: {_power(card[0])}."

    def why_not(self, cards: Sequence[str]) -> str:
        """One card is to be picked."""
        return "Pick the one card that you want to commit."

    def faced(self, decision: Decision) -> str:
        """The round and the hand."""
        state = decision.snapshot["state"]
        war = " (War)" if state["phase"] == game.WAR else ""
        hand = faces(zones_of(state, self.num_players, self.seat)["hand"])
        return f"Round {int(state['rounds']) + 1}{war}, with {hand} in hand"

    def named(self, decision: Decision, action: int) -> str:
        """To commit a rank."""
        return f"commit {rank_in_words(decode(action))}"

    def last_play(self) -> str:
        """What all seats did last, and what came of it."""
        if not self.decisions:
            return ""
        decision = self.decisions[-1]
        return step_in_words(decision.snapshot["state"], decision.joint, self.state, self.seat)

    def result(self) -> str:
        """Won, shared or lost, and with how many points."""
        endings, truncated = self._table.endings()
        ending = endings[self.seat]
        told = {"win": "You win", "shared": "You share the win", "loss": "You lose"}
        points = f"{counted(ending['total'], 'point')}, margin {ending['margin']:+d}"
        cut = " (round limit)" if truncated else ""
        return f"{told[ending['outcome']]} with {points}, after {ending['rounds']} rounds{cut}."


def step_in_words(before: Any, joint: Sequence[int], after: Any, own: int | None) -> str:
    """What all seats did in a step, and what came of it.

    Args:
        before, after: the positions, records of dtype STATE.
        joint: the actions of all seats.
        own: the seat to be called you, if there is one.
    """
    in_war = before["phase"] == game.WAR
    acted = [
        f"{'you' if seat == own else f'seat {seat}'} {_committed(before, seat, action)}"
        for seat, action in enumerate(joint)
        if action != WAIT or (in_war and int(before["participants"]) >> seat & 1)
    ]
    winner = pot_winner(before, after)
    if after["phase"] == game.WAR:
        told = "There is War"
    elif winner is None:
        told = "All burns"
    else:
        told = "You take the pot" if winner == own else f"Seat {winner} takes the pot"
    return f"{'War' if in_war else 'Committed'}: {', '.join(acted)}. {told}."


def _committed(before: Any, seat: int, action: int) -> str:
    """What a seat has committed, and in a War the stakes turned up with it, and their sum (S5)."""
    rank = "no card" if action == WAIT else rank_in_words(decode(action))
    if before["phase"] != game.WAR:
        return rank
    staked = int(before["stakes"][seat])
    own = 0 if action == WAIT else int(before["hand"][seat]) & 0b1111 << 4 * action
    piles, sums = np.array([staked | own & -own], np.uint64), np.zeros(1, np.int64)
    write_war_sums(piles, sums)
    stakes = f" with {faces(cards_in(staked))}" if staked else ""
    return f"{rank}{stakes}, {sums[0]} in all"


def _power(rank: str) -> str:
    """What a rank does in a skirmish (S3)."""
    if rank == JOKER_TEXT:
        return "War among all"
    special = {
        "A": "takes the pot from a King or Queen, unless there is a Jack",
        "J": "11, and takes the pot if an Ace meets a King or Queen",
        "Q": "12, but loses to an Ace",
        "K": "13, but loses to an Ace",
    }
    return special.get(rank, f"{points_of((rank + 'c',))}, the highest card takes the pot")
