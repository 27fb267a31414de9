"""What a person asked for, ready to play."""

from __future__ import annotations

from dataclasses import dataclass

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.play.skirmish_game import SkirmishGame
from deck_of_spies_env.play.solitaire_game import SolitaireGame
from deck_of_spies_env.records.format import Write


@dataclass(frozen=True)
class Setup:
    """A game to play.

    Attributes:
        game: dealt.
        agent: whose advice is wanted, None for none.
        undo: whether decisions can be taken back.
        write: takes the record of each finished game, None if they are not saved.
        path: of the file that it writes, for people.
    """

    game: SolitaireGame | SkirmishGame
    agent: Agent | None = None
    undo: bool = False
    write: Write | None = None
    path: str = ""

    def save(self) -> str:
        """Save the finished game if that is wanted; returns what became of it, for people."""
        if self.write is None:
            return ""
        try:
            self.write(self.game.record())
        except OSError as error:
            return f"Not saved: can't write {self.path!r}: {error.strerror}."
        return f"Saved to {self.path}."
