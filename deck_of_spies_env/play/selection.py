"""The cards picked so far, and the plays that they can still become."""

from __future__ import annotations

from collections.abc import Sequence

from deck_of_spies_env.play.game import Play


class Selection:
    """Cards picked for a play.

    A play is chosen by its cards, where these leave no doubt, or as it stands in the list.

    Args:
        plays: the legal ones.
        picks_one: picking a card puts back the one before.

    Attributes:
        plays: as given.
        chosen: the play taken from the list, None if cards were picked since.
    """

    def __init__(self, plays: Sequence[Play], *, picks_one: bool = False) -> None:
        self.plays = list(plays)
        self.chosen: Play | None = None
        self._picked: frozenset[str] = frozenset()
        self._picks_one = picks_one

    @property
    def cards(self) -> frozenset[str]:
        """The cards of the chosen play, else those picked one by one."""
        return self._picked if self.chosen is None else frozenset(self.chosen.cards)

    @property
    def fitting(self) -> list[Play]:
        """The plays that have all the cards picked one by one, as listed."""
        return [play for play in self.plays if self._picked <= set(play.cards)]

    @property
    def able(self) -> frozenset[str]:
        """The cards that take part in a fitting play."""
        return frozenset(card for play in self.fitting for card in play.cards)

    def toggle(self, card: str) -> None:
        """Pick a card, or put it back."""
        others = frozenset() if self._picks_one else self.cards - {card}
        self._picked = others if card in self.cards else others | {card}
        self.chosen = None

    def choose(self, play: Play) -> None:
        """Take a play from the list."""
        self.chosen = play

    def step(self, by: int) -> None:
        """Take the next play of the list, or with -1 the one before."""
        fitting = self.fitting
        if not fitting:
            return
        if self.chosen is None:
            self.chosen = fitting[0 if by > 0 else -1]
        else:
            self.chosen = fitting[(fitting.index(self.chosen) + by) % len(fitting)]

    def clear(self) -> None:
        """Put all cards back."""
        self._picked, self.chosen = frozenset(), None

    def ready(self, kind: str | None = None) -> list[Play]:
        """The plays that the selection stands for: one if it can be played as it is.

        Args:
            kind: only plays of it.
        """
        if self.chosen is not None and kind in {None, self.chosen.kind}:
            return [self.chosen]
        if kind is None and not self.cards and len(self.plays) > 1:
            return []  # a second Enter must not pass by mistake
        exact = [play for play in self.plays if self.cards == frozenset(play.cards)]
        return [play for play in exact if kind in {None, play.kind}]
