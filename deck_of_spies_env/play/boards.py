"""The board of each game."""

from __future__ import annotations

from deck_of_spies_env.play.skirmish_board import SkirmishBoard
from deck_of_spies_env.play.solitaire_board import SolitaireBoard
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules as SolitaireRules


def board_of(
    rules: SolitaireRules | SkirmishRules, num_players: int
) -> SolitaireBoard | SkirmishBoard:
    """The board that shows a game of these rules, at a table of so many."""
    if isinstance(rules, SolitaireRules):
        return SolitaireBoard(rules)
    return SkirmishBoard(num_players)
