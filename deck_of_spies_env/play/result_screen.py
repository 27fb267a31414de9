"""How a game ended, and the review of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, ProgressBar, Static
from textual.worker import get_current_worker

from deck_of_spies_env.play.game import Game
from deck_of_spies_env.play.review import Judgement, in_words, judge_all


class ResultScreen(Screen[None]):
    """The result at once, the review as soon as it is done; dismissed for a new game.

    Args:
        game: that is over.
        saved: what became of its record, for people.
    """

    class Progress(Message):
        """Some decisions have been judged.

        Attributes:
            done: how many.
            total: of how many.
        """

        def __init__(self, done: int, total: int) -> None:
            super().__init__()
            self.done, self.total = done, total

    class Reviewed(Message):
        """All decisions have been judged.

        Attributes:
            judged: what they cost.
        """

        def __init__(self, judged: Sequence[Judgement]) -> None:
            super().__init__()
            self.judged = judged

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "dismiss", "New game"),
        Binding("question_mark", "app.rules", "Rules", key_display="?"),
        Binding("q", "app.leave", "Quit"),
    ]

    def __init__(self, game: Game, saved: str) -> None:
        super().__init__()
        self._game = game
        self._saved = saved

    def compose(self) -> ComposeResult:
        """Title, result, progress or review, and the keys."""
        yield Static(f"{self._game.title} · {self._game.heading()}", id="title", markup=False)
        yield Static(self._game.result(), id="result", markup=False)
        yield Static(self._saved, id="saved", markup=False)
        yield ProgressBar(show_eta=False)
        with VerticalScroll(id="review"):
            yield Static("Looking at your decisions ...", id="review_text", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin the review."""
        self._review()

    @work(thread=True)
    def _review(self) -> None:
        worker = get_current_worker()

        def progress(done: int, total: int) -> bool:
            self.post_message(self.Progress(done, total))
            return not worker.is_cancelled

        judged = judge_all(self._game, progress)
        if not worker.is_cancelled:
            self.post_message(self.Reviewed(judged))

    def on_result_screen_progress(self, event: Progress) -> None:
        """Show how far the review is."""
        self.query_one(ProgressBar).update(total=event.total, progress=event.done)

    def on_result_screen_reviewed(self, event: Reviewed) -> None:
        """Show the review."""
        self.query_one(ProgressBar).display = False
        text = "\n\n".join(in_words(self._game, event.judged))
        self.query_one("#review_text", Static).update(text)
