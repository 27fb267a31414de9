"""The legal plays as a list, by kind, with an agent's advice beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from deck_of_spies_env.play.game import Play
from deck_of_spies_env.play.widgets import coloured

_ADVICE_AT = 16
"""The column where advice stands, if the cards leave room before it."""


class PlaysList(OptionList, can_focus=False):
    """Legal plays; clicking one takes it up."""

    def show(
        self,
        plays: Sequence[Play],
        chosen: Sequence[Play] = (),
        advice: Mapping[int, str] | None = None,
    ) -> None:
        """Show plays under the names of their kinds.

        Args:
            plays: sorted by kind.
            chosen: those that stand out; the first is scrolled to.
            advice: action -> what an agent says of it.
        """
        options: list[Option] = []
        kind = ""
        for number, play in enumerate(plays):
            if play.kind != kind:
                kind = play.kind
                options.append(Option(Content.styled(kind.capitalize(), "bold"), disabled=True))
            options.append(Option(_line(play, play in chosen, advice or {}), id=str(number)))
        self.set_options(options)
        at = plays.index(chosen[0]) if chosen and chosen[0] in plays else None
        self.highlighted = None if at is None else self.get_option_index(str(at))


def _line(play: Play, is_chosen: bool, advice: Mapping[int, str]) -> Content:
    mark = "▶" if is_chosen else " "
    cards = coloured(play.cards, "keep all" if play.kind == "pass" else "see what happens")
    said = advice.get(play.action, "")
    told = Content.assemble(mark, cards, (f" {play.note}", "$text-muted"))
    gap = max(1, _ADVICE_AT - told.cell_length) if said else 0
    return Content.assemble(told, " " * gap, (said, "$accent"))
