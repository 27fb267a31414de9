"""Agents for Skirmish by name, each in a file of its own.

>>> agent = make_skirmish_agent("intrigue", num_players=3)
"""

from __future__ import annotations

from agents import Entry, look_up, whole_number
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.skirmish.rules import Rules


def mode(text: str) -> bool:
    """An option's value that says how to act: whether greedily.

    Raises:
        ValueError: what it must be.
    """
    if text not in ("draw", "greedy"):
        raise ValueError("must be draw or greedy")
    return text == "greedy"


REGISTRY: dict[str, Entry] = {
    "random": Entry("agents.skirmish.simple:random", "any legal action"),
    "high": Entry("agents.skirmish.simple:high", "the card of the highest value"),
    "rank": Entry(
        "agents.skirmish.simple:rank", "the lowest card expected to win by value, else the lowest"
    ),
    "intrigue": Entry(
        "agents.skirmish.simple:intrigue", "the card expected to gain most points by all the rules"
    ),
    "matrix": Entry(
        "agents.skirmish.matrix:make",
        "samples hidden hands and solves the round as a matrix game; matrix:samples=N takes N (16)",
        options={"samples": whole_number},
    ),
    "smmcts": Entry(
        "agents.skirmish.smmcts:make",
        "simultaneous-move tree search with regret matching; smmcts:budget=N takes N iterations "
        "(2048)",
        options={"budget": whole_number},
    ),
    "ppo": Entry(
        "agents.skirmish.ppo:make",
        "MaskablePPO by self-play; ppo=PATH takes a run directory or a model file",
        True,
        {"mode": mode},
    ),
}


def make_skirmish_agent(spec: str, num_players: int = 2, rules: Rules | None = None) -> Agent:
    """An agent from ``name``, ``name=path`` or ``name:option=value,...``.

    Args:
        spec: a name in REGISTRY, with the path of a model or with options where it takes them.
        num_players: at the table, 2-4.
        rules: the rule set to be played; None for the default.

    Raises:
        AgentError: an unknown name (the message lists the known ones), a path or an option where
            there is none to give, a bad value, or a model that can't be used.
    """
    factory, path, options = look_up(spec, REGISTRY)
    return factory(rules or Rules(), path, num_players, **options)
