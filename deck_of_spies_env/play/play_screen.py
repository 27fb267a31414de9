"""Playing a game: cards are picked, and played when the rules allow it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Button, Footer, OptionList, Static
from textual.worker import Worker, WorkerState

from deck_of_spies_env.drawing import counted
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.play.boards import board_of
from deck_of_spies_env.play.game import OpponentError, Play, Worths
from deck_of_spies_env.play.plays_list import PlaysList
from deck_of_spies_env.play.result_screen import ResultScreen
from deck_of_spies_env.play.selection import Selection
from deck_of_spies_env.play.setup import Setup
from deck_of_spies_env.play.widgets import CardBox
from deck_of_spies_env.solitaire.rules import MAX_HAND_SIZE

_ADVICE_SAMPLES = 256
"""Of chance, for each legal action."""


def _advice_lines(worths: Worths) -> dict[int, str]:
    """Action -> the agent's probability, or a star at its choice, and what it is worth."""
    chances = worths.probabilities
    lines: dict[int, str] = {}
    for place, action in enumerate(worths.actions.tolist()):
        star = "*" if action == worths.chosen else " "
        chance = f"{star:>5}" if chances is None else f"{star}{chances[place]:4.0%}"
        lines[action] = f"{chance} {worths.values[place]:5.2f}"
    return lines


class PlayScreen(Screen[None]):
    """The table, the legal plays, and what the cards picked would do.

    Args:
        setup: the game, and what the person asked for.
    """

    class Advised(Message):
        """An agent has thought about a decision.

        Attributes:
            decision: which, as the selection that was made for it.
            worths: what it came to.
        """

        def __init__(self, decision: Selection, worths: Worths) -> None:
            super().__init__()
            self.decision, self.worths = decision, worths

    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "pick(0)", "Pick", key_display="1…"),
        *(Binding(str(slot + 1), f"pick({slot})", show=False) for slot in range(1, MAX_HAND_SIZE)),
        Binding("enter", "play", "Play"),
        Binding("escape", "clear", "Put back"),
        Binding("down", "step(1)", "List", key_display="↑↓"),
        Binding("up", "step(-1)", show=False),
        Binding("question_mark", "app.rules", "Rules", key_display="?"),
        Binding("h", "advice", "Advice"),
        Binding("u", "undo", "Undo"),
        Binding("q", "app.leave", "Quit"),
    ]

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self._setup = setup
        self._game = setup.game
        self._board = board_of(self._game.rules, self._game.num_players)
        self._keys = {key: kind for kind, key in self._game.kinds.items()}
        self._selection = Selection([])
        self._advice: Mapping[int, str] | None = None
        self._advises = setup.agent is not None

    @property
    def is_in_hand(self) -> bool:
        """Whether a game has begun and not ended."""
        return bool(self._game.decisions) and not self._game.is_over

    def compose(self) -> ComposeResult:
        """Title, table and list of plays, the last play, the message, and the keys."""
        yield Static(id="title", markup=False)
        with Horizontal(id="table"):
            yield self._board
            with Vertical(id="side"):
                yield Static(id="side_label")
                yield PlaysList(id="plays")
        yield Static(id="last", markup=False)
        yield Static(id="message", markup=False)
        with Horizontal(id="kinds"):
            for kind, key in self._game.kinds.items():
                label = f"{key} {kind.capitalize()}"
                button = Button(label, id=kind, action=f"screen.kind('{kind}')", compact=True)
                button.can_focus = False
                yield button
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show the deal."""
        self._begin_decision()

    # --- What the person does ---

    def on_key(self, event: events.Key) -> None:
        """The letters of kinds play."""
        if event.key in self._keys:
            self.action_kind(self._keys[event.key])

    def action_pick(self, slot: int) -> None:
        """Pick a card by its place, or put it back."""
        pickable = self._game.pickable()
        if slot < len(pickable):
            self._pick(pickable[slot])

    def on_card_box_picked(self, event: CardBox.Picked) -> None:
        """A card was clicked."""
        if event.card in self._game.pickable():
            self._pick(event.card)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A play of the list was clicked."""
        if event.option.id is not None:
            self._selection.choose(self._selection.fitting[int(event.option.id)])
            self._show_selection()

    def action_step(self, by: int) -> None:
        """Take up the next play of the list."""
        self._selection.step(by)
        self._show_selection()

    def action_clear(self) -> None:
        """Put all cards back."""
        self._selection.clear()
        self._show_selection()

    def action_play(self) -> None:
        """Play what is picked, if that leaves no doubt."""
        self._play(self._selection.ready())

    def action_kind(self, kind: str) -> None:
        """Play what is picked as a play of a kind."""
        self._play(self._selection.ready(kind))

    def action_undo(self) -> None:
        """Take the last decision back."""
        self._game.undo()
        self._begin_decision()

    def action_advice(self) -> None:
        """Show the agent's advice, or hide it."""
        self._advises = not self._advises
        self._advice = None
        self._ask_for_advice()
        self._show_selection()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what was not asked for, and grey out what can't be done now."""
        if action == "advice":
            return self._setup.agent is not None
        if action == "undo":
            return self._setup.undo and (bool(self._game.decisions) or None)
        if action == "play":
            return len(self._selection.ready()) == 1 or None
        return True

    # --- What follows ---

    def _pick(self, card: str) -> None:
        self._selection.toggle(card)
        self._show_selection()

    def _play(self, ready: list[Play]) -> None:
        if len(ready) != 1:
            return
        try:
            self._game.play(ready[0].action)
        except IllegalActionError as error:
            self.app.exit(f"an agent broke the rules: {error}")
            return
        except OpponentError as error:
            self.app.exit(str(error))
            return
        if self._game.is_over:
            self._end()
        else:
            self._begin_decision()

    def _begin_decision(self) -> None:
        game = self._game
        self._selection = Selection(game.plays(), picks_one=game.picks_one)
        self._advice = None
        self._board.show(self._game.view())
        self.query_one("#title", Static).update(f"{game.title} · {game.heading()}")
        self.query_one("#last", Static).update(game.last_play())
        self._ask_for_advice()
        self._show_selection()

    def _show_selection(self) -> None:
        selection, game = self._selection, self._game
        self._board.mark(game.pickable(), selection.able, selection.cards)
        ready = selection.ready()
        self.query_one("#side_label", Static).update(self._side_label())
        self.query_one(PlaysList).show(selection.fitting, ready, self._advice)
        self.query_one("#message", Static).update(self._message(ready))
        for kind in game.kinds:
            self.query_one(f"#{kind}", Button).disabled = len(selection.ready(kind)) != 1
        self.refresh_bindings()

    def _side_label(self) -> str:
        fitting = len(self._selection.fitting)
        if self._advice:
            return f"{f'{fitting} legal':<14}{f'agent {self._game.unit}':>15}"
        return counted(fitting, "legal play")

    def _message(self, ready: list[Play]) -> str:
        game, cards = self._game, self._selection.cards
        if not cards:
            return game.task()
        if len(ready) == 1:
            return game.effect(ready[0])
        if ready:
            kinds = " or ".join(f"{play.kind} ({game.kinds[play.kind]})" for play in ready)
            return f"{game.effect(ready[0])} Choose: {kinds}."
        return game.why_not(sorted(cards, key=game.pickable().index))

    # --- Advice ---

    def _ask_for_advice(self) -> None:
        if self._advises and len({play.action for play in self._selection.plays}) > 1:
            self._think(self._selection, self._game.snapshot(), len(self._game.decisions))

    @work(thread=True, exclusive=True, group="advice", exit_on_error=False)
    def _think(self, decision: Selection, snapshot: Any, seed: int) -> None:
        worths = self._game.worths(self._setup.agent, snapshot, _ADVICE_SAMPLES, seed)
        self.post_message(self.Advised(decision, worths))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Quit where an agent fails at its advice."""
        if event.state == WorkerState.ERROR:
            self.app.exit(f"no advice from the agent: {event.worker.error}")

    def on_play_screen_advised(self, event: Advised) -> None:
        """Show advice, unless it comes too late."""
        if self._advises and event.decision is self._selection:
            self._advice = _advice_lines(event.worths)
            self._show_selection()

    # --- The end ---

    def _end(self) -> None:
        self._board.show(self._game.view())
        saved = self._setup.save()
        self.app.push_screen(ResultScreen(self._game, saved), self._next_game)

    def _next_game(self, _: None) -> None:
        self._game.deal()
        self._begin_decision()
