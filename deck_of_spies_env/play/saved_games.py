"""Saved games to look at, position by position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from deck_of_spies_env.play.game import Play
from deck_of_spies_env.play.skirmish_game import SkirmishView, step_in_words
from deck_of_spies_env.play.solitaire_game import play_in_words, plays_in, turn_of
from deck_of_spies_env.records import GameRecord, SkirmishRecord, SolitaireRecord, replay
from deck_of_spies_env.replay import heading
from deck_of_spies_env.skirmish.actions import encode
from deck_of_spies_env.skirmish.cards import RANKS


class SavedGame(ABC):
    """The positions of a record.

    Attributes:
        number: of the game in its file, from 1.
        num_positions: the last of them is the end.
    """

    title: ClassVar[str]
    number: int
    num_positions: int

    @property
    @abstractmethod
    def record(self) -> GameRecord:
        """What is looked at."""

    @abstractmethod
    def view(self, at: int) -> Any:
        """What the board shows."""

    @abstractmethod
    def plays(self, at: int) -> list[Play]:
        """What was legal, nothing at the end."""

    @abstractmethod
    def chosen(self, at: int) -> list[Play]:
        """What was chosen of it."""

    @abstractmethod
    def heading(self, at: int) -> str:
        """When that was."""

    @abstractmethod
    def told(self, at: int) -> str:
        """What was done, or how the game ended."""


class SavedSolitaire(SavedGame):
    """A game of Deck of Spies.

    Args:
        record: of the game.
        number: in its file.

    Raises:
        RecordError: the record does not replay.
    """

    title: ClassVar[str] = "Deck of Spies"

    def __init__(self, record: SolitaireRecord, number: int) -> None:
        self._record, self.number = record, number
        self._positions = list(replay(record))
        self.num_positions = len(self._positions)

    @property
    def record(self) -> SolitaireRecord:
        """The record."""
        return self._record

    def view(self, at: int) -> Any:
        """The position."""
        return self._positions[at].state

    def plays(self, at: int) -> list[Play]:
        """The legal plays."""
        position = self._positions[at]
        return plays_in(position.state, position.action_mask, self._record.rules.hand_size)

    def chosen(self, at: int) -> list[Play]:
        """The one that was played."""
        return [play for play in self.plays(at) if play.action == self._positions[at].index]

    def heading(self, at: int) -> str:
        """The turn."""
        return f"turn {min(36, turn_of(self.view(at)))} of 36"

    def told(self, at: int) -> str:
        """The play in words."""
        for play in self.chosen(at):
            name = self._record.players[0]
            return f"{name}: {play_in_words(self.view(at), play.kind, play.cards)}"
        return heading(self.number, self._record)


class SavedSkirmish(SavedGame):
    """A game of Skirmish, shown with all hands.

    Args:
        record: of the game.
        number: in its file.

    Raises:
        RecordError: the record does not replay.
    """

    title: ClassVar[str] = "Skirmish"

    def __init__(self, record: SkirmishRecord, number: int) -> None:
        self._record, self.number = record, number
        self._positions = list(replay(record))
        self.num_positions = len(self._positions)

    @property
    def record(self) -> SkirmishRecord:
        """The record."""
        return self._record

    def view(self, at: int) -> SkirmishView:
        """The position with all cards, and the step that led to it."""
        state, names = self._positions[at].state, self._record.players
        if at == 0:
            return SkirmishView(state, names, None)
        return SkirmishView(state, names, None, self._positions[at - 1].state, self._joint(at - 1))

    def plays(self, at: int) -> list[Play]:
        """The cards that each seat could commit; kinds are the seats."""
        position, names = self._positions[at], self._record.players
        hands = position.zones["hand"]
        return [
            Play(f"seat {seat} {names[seat]}", (card,), RANKS.index(card[0]))
            for seat in position.zones["participants"]
            for card in hands[seat]
        ]

    def chosen(self, at: int) -> list[Play]:
        """A card of the rank that each seat committed."""
        if self._positions[at].action is None:
            return []
        joint, chosen = self._joint(at), {}
        for play in self.plays(at):
            if play.action == joint[int(play.kind.split()[1])]:
                chosen.setdefault(play.kind, play)
        return list(chosen.values())

    def heading(self, at: int) -> str:
        """The round."""
        war = ", War" if self._positions[at].phase == "war" else ""
        return f"round {int(self._positions[at].state['rounds']) + 1}{war}"

    def told(self, at: int) -> str:
        """What all seats did, and what came of it."""
        if self._positions[at].action is None:
            return heading(self.number, self._record)
        after = self._positions[at + 1].state
        return step_in_words(self._positions[at].state, self._joint(at), after, None)

    def _joint(self, at: int) -> list[int]:
        return [encode(choice) for choice in (self._positions[at].action or "").split()]


def saved_game(record: GameRecord, number: int) -> SavedSolitaire | SavedSkirmish:
    """A record to look at.

    Args:
        record: of the game.
        number: in its file, from 1.

    Raises:
        RecordError: the record does not replay.
    """
    if isinstance(record, SolitaireRecord):
        return SavedSolitaire(record, number)
    return SavedSkirmish(record, number)
