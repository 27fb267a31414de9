"""The bots that come with the environment, as agents; see ``deck_of_spies_env.skirmish.bots``."""

from __future__ import annotations

from pathlib import Path

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.skirmish.bots import make_bot
from deck_of_spies_env.skirmish.rules import Rules


def random(rules: Rules, path: Path | None, num_players: int) -> Agent:
    """Any legal action."""
    return make_bot("random", num_players)


def high(rules: Rules, path: Path | None, num_players: int) -> Agent:
    """The card of the highest value."""
    return make_bot("high", num_players)


def rank(rules: Rules, path: Path | None, num_players: int) -> Agent:
    """The lowest card that is expected to win by its value."""
    return make_bot("rank", num_players)


def intrigue(rules: Rules, path: Path | None, num_players: int) -> Agent:
    """The card that is expected to gain most points."""
    return make_bot("intrigue", num_players)
