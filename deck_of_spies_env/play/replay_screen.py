"""Looking at a saved game."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Static

from deck_of_spies_env.play.boards import board_of
from deck_of_spies_env.play.plays_list import PlaysList
from deck_of_spies_env.play.saved_games import SavedGame


class ReplayScreen(Screen[None]):
    """The table at any moment of a saved game, and what was played.

    Args:
        saved: the game.
    """

    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,enter,space", "step(1)", "On", key_display="→"),
        Binding("left", "step(-1)", "Back", key_display="←"),
        Binding("home", "go(0)", "Begin"),
        Binding("end", "go(-1)", "End"),
        Binding("question_mark", "app.rules", "Rules", key_display="?"),
        Binding("q", "app.leave", "Quit"),
    ]

    def __init__(self, saved: SavedGame) -> None:
        super().__init__()
        self._saved = saved
        self._board = board_of(saved.record.rules, saved.record.num_players)
        self._at = 0

    def compose(self) -> ComposeResult:
        """Title, table and list of plays, what was played, and the keys."""
        yield Static(id="title", markup=False)
        with Horizontal(id="table"):
            yield self._board
            with Vertical(id="side"):
                yield Static("Legal plays, ▶ made", id="side_label")
                yield PlaysList(id="plays")
        yield Static(id="message", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show the beginning."""
        self.action_go(0)

    def action_step(self, by: int) -> None:
        """Go to the next position, or with -1 to the one before."""
        self.action_go(max(0, min(self._at + by, self._saved.num_positions - 1)))

    def action_go(self, at: int) -> None:
        """Go to a position; -1 is the end."""
        saved = self._saved
        self._at = at % saved.num_positions
        plays, chosen = saved.plays(self._at), saved.chosen(self._at)
        self._board.show(saved.view(self._at))
        picked = {card for play in chosen for card in play.cards}
        self._board.mark((), (), picked)
        self.query_one(PlaysList).show(plays, chosen)
        where = f"game {saved.number} · {saved.heading(self._at)}"
        step = f"step {self._at + 1} of {saved.num_positions}"
        self.query_one("#title", Static).update(f"{saved.title} · {where} · {step}")
        self.query_one("#message", Static).update(saved.told(self._at))
