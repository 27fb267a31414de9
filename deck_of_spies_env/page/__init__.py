"""A report as one self-contained page of HTML, with a viewer of games.

>>> page = make_page(report, games)  # doctest: +SKIP
"""

from __future__ import annotations

from deck_of_spies_env.page.choosing import ChosenGame, choose_deals, choose_tables
from deck_of_spies_env.page.document import make_page
from deck_of_spies_env.page.figures import Curve, CurvePoint
from deck_of_spies_env.page.judged import view_deals, view_tables
from deck_of_spies_env.page.viewing import Decision, Opinion, ViewedGame, view_game

__all__ = [
    "ChosenGame",
    "Curve",
    "CurvePoint",
    "Decision",
    "Opinion",
    "ViewedGame",
    "choose_deals",
    "choose_tables",
    "make_page",
    "view_deals",
    "view_game",
    "view_tables",
]
