"""Small screens above the table: the rules, and the question before quitting."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from deck_of_spies_env.play.rules_text import RULES


class RulesScreen(ModalScreen[None]):
    """The rules of a game in short.

    Args:
        title: of the game.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter,q", "dismiss", "Back")
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        """The text, which scrolls where there is no room, and the way back."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = f"Rules of {self._title}"
            with VerticalScroll(id="rules_text"):
                yield Static(RULES[self._title])
            yield Button("Esc Back to the game (↑↓ scroll)", action="screen.dismiss", compact=True)


class QuitScreen(ModalScreen[bool]):
    """Asks whether to leave a game in hand; dismissed with the answer."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Quit"),
        Binding("n,escape", "dismiss(False)", "Play on"),
    ]

    def compose(self) -> ComposeResult:
        """The question and its two answers."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Quit?"
            yield Static("The game in hand is not finished, and will not be saved.")
            with Horizontal(classes="answers"):
                yield Button("y Quit", action="screen.dismiss(True)", compact=True)
                yield Button("n Play on", action="screen.dismiss(False)", compact=True)
