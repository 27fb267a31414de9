"""A game in hand: what may be played, what has been decided, undo, and the record of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.records import GameRecord

PLAYER_NAME = "human"
"""Who played, in records."""


class OpponentError(RuntimeError):
    """An opponent's own code has failed; the message is one line for the user."""


class Play(NamedTuple):
    """A legal play, by the cards that a person picks for it.

    Attributes:
        kind: ``counter``, ``recruit``, ``assassinate``, ``retire`` or ``pass``; in Skirmish
            ``commit`` or ``wait``.
        cards: to be picked, sorted; none for a pass or a wait.
        action: its index; in Skirmish that of all cards of the rank.
        note: what is to be said of it in a list.
    """

    kind: str
    cards: tuple[str, ...]
    action: int
    note: str = ""


class Worths(NamedTuple):
    """What the k legal actions of a position are worth, and what an agent thinks of them.

    Attributes:
        actions: int64 (k,).
        values: float64 (k,), what each is expected to come to, in the game's unit.
        errors: float64 (k,), standard errors of the differences to the best of them.
        chosen: the action that the agent takes, None without an agent.
        probabilities: float64 (k,), how likely the agent finds each; None if it does not tell.
    """

    actions: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]
    chosen: int | None
    probabilities: npt.NDArray[np.float64] | None


class Decision(NamedTuple):
    """One decision of the person.

    Attributes:
        snapshot: the position before it, shape () and dtype SNAPSHOT.
        action: what was chosen.
        joint: the actions of all seats, by seat.
        num_legal: how many different actions there were.
    """

    snapshot: Any
    action: int
    joint: tuple[int, ...]
    num_legal: int


class Game(ABC):
    """A game that a person plays, one deal of a seed after the other.

    Args:
        seed: of the deals; the first is episode 0.

    Attributes:
        seed, episode: the deal.
        decisions: of the person in this deal, in the order of play.
    """

    name: ClassVar[str]
    """As in records and on the command line."""
    title: ClassVar[str]
    kinds: ClassVar[dict[str, str]]
    """Kind of play -> its key."""
    unit: ClassVar[str]
    """What plays are valued in."""
    judged_by: ClassVar[str]
    """Where the values come from, for people."""

    def __init__(self, seed: int) -> None:
        self.seed, self.episode = seed, 0
        self.decisions: list[Decision] = []

    # --- Play ---

    def play(self, action: int) -> None:
        """Take an action.

        Raises:
            IllegalActionError: it is not legal; nothing changes.
        """
        before, num_legal = self.snapshot(), int(self.mask().sum())
        joint = self._step(action)
        self.decisions.append(Decision(before, action, joint, num_legal))

    def undo(self) -> None:
        """Take the last decision back; chance would go the same way again."""
        if self.decisions:
            self._restore(self.decisions.pop().snapshot)

    def deal(self) -> None:
        """Begin the next deal."""
        self.episode += 1
        self.decisions = []
        self._deal()

    @property
    def state(self) -> Any:
        """The position, a record of dtype STATE."""
        return self.snapshot()["state"]

    @property
    def is_over(self) -> bool:
        """Whether the deal has been played to its end."""
        return not self.mask().any()

    @abstractmethod
    def snapshot(self) -> Any:
        """The position with its random streams: a copy, shape () and dtype SNAPSHOT."""

    @abstractmethod
    def mask(self) -> npt.NDArray[Any]:
        """The legal actions of the person, (n,); none at the end."""

    @abstractmethod
    def plays(self) -> list[Play]:
        """The legal plays, none at the end."""

    @abstractmethod
    def pickable(self) -> tuple[str, ...]:
        """The cards that can be picked, in the order of their keys."""

    @property
    @abstractmethod
    def picks_one(self) -> bool:
        """Whether a play now takes one card, so that picking another one puts the first back."""

    @abstractmethod
    def record(self) -> GameRecord:
        """The record of the game, which must be over."""

    @abstractmethod
    def view(self) -> Any:
        """What the board of the game shows."""

    @abstractmethod
    def worths(self, agent: Agent | None, snapshot: Any, samples: int, seed: int) -> Worths:
        """What the legal actions of a position are worth, as far as the person can know it.

        Args:
            agent: whose opinion is wanted too; it sees the person's observation only.
            snapshot: the position, of this deal.
            samples: of chance, for each action.
            seed: of these.
        """

    @abstractmethod
    def _deal(self) -> None:
        """Begin the next episode of the seed."""

    @abstractmethod
    def _step(self, action: int) -> tuple[int, ...]:
        """Take an action; returns those of all seats."""

    @abstractmethod
    def _restore(self, snapshot: Any) -> None:
        """Go back to a snapshot."""

    # --- Words ---

    @abstractmethod
    def heading(self) -> str:
        """One line: the deal and how far the game has come."""

    @abstractmethod
    def task(self) -> str:
        """What to do now."""

    @abstractmethod
    def effect(self, play: Play) -> str:
        """What a legal play does."""

    @abstractmethod
    def why_not(self, cards: Sequence[str]) -> str:
        """Why no play takes exactly these cards."""

    @abstractmethod
    def faced(self, decision: Decision) -> str:
        """When a decision was taken, and what with."""

    @abstractmethod
    def named(self, decision: Decision, action: int) -> str:
        """An action in the position of a decision, as what one decides to do."""

    @abstractmethod
    def last_play(self) -> str:
        """What happened last, empty at the beginning."""

    @abstractmethod
    def result(self) -> str:
        """How the game ended."""
