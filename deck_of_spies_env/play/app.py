"""The Textual application: its colours, and leaving it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.theme import Theme

from deck_of_spies_env.play.dialogs import QuitScreen, RulesScreen
from deck_of_spies_env.play.play_screen import PlayScreen

_THEME = Theme(
    name="table",
    primary="#1b5442",
    secondary="#2f7d62",
    accent="#ffc828",
    success="#6ed682",
    error="#e0706c",
    warning="#ffc828",
    foreground="#f2f6f0",
    background="#10241d",
    surface="#17352a",
    panel="#35604f",
    variables={
        "club": "#74d68e",
        "diamond": "#7fb4ff",
        "heart": "#ff8a84",
        "spade": "#f2f6f0",
        "joker": "#d79be6",
        "face": "#f6f3ea",
        "face-edge": "#96968f",
        "face-faint": "#7d8f86",
        "ink": "#1c1c20",
        "ink-club": "#086e34",
        "ink-diamond": "#1058ba",
        "ink-heart": "#b81c24",
        "ink-joker": "#802c90",
        "back": "#2e4276",
        "back-pattern": "#6e82b4",
    },
)
"""Cards as in pictures of the table (``drawing.py``), light; names of cards on the dark ground."""


SMALLEST = 80, 24
"""Columns and lines that the screens need."""


class PlayApp(App[str]):
    """Shows one screen to begin with: a game to play, or one to look at.

    It returns what went wrong, None if nothing did.

    Args:
        title: of the game, for its rules.
        first: the screen.
    """

    CSS_PATH = "play.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q,ctrl+c", "leave", show=False, priority=True)
    ]

    def __init__(self, title: str, first: Screen[None]) -> None:
        super().__init__()
        self.title = title
        self._first = first
        self.register_theme(_THEME)
        self.theme = _THEME.name

    def on_mount(self) -> None:
        """Show the first screen."""
        self.push_screen(self._first)

    def on_resize(self, event: Resize) -> None:
        """Say so if the terminal is too small for all to be seen."""
        columns, lines = SMALLEST
        if event.size.width < columns or event.size.height < lines:
            self.notify(f"The game needs a terminal of {columns} by {lines}.", severity="warning")

    def action_rules(self) -> None:
        """Show the rules."""
        self.push_screen(RulesScreen(self.title))

    def action_leave(self) -> None:
        """Quit, after a question if a game is in hand."""
        if isinstance(self.screen, QuitScreen):
            return
        if isinstance(self._first, PlayScreen) and self._first.is_in_hand:
            self.push_screen(QuitScreen(), self._leave_if)
        else:
            self.exit()

    def _leave_if(self, leaves: bool | None) -> None:
        if leaves:
            self.exit()
