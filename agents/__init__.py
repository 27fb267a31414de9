"""Agents by name, weakest to strongest, each in a file of its own.

>>> agent = make_agent("greedy")
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.solitaire.rules import Rules


class Entry(NamedTuple):
    """A registered agent.

    Attributes:
        factory: ``module:function``, called with (rules, path or None).
        summary: one line for listings.
        takes_path: whether ``name=path`` makes sense.
    """

    factory: str
    summary: str
    takes_path: bool = False


REGISTRY: dict[str, Entry] = {
    "random": Entry("agents.random:make", "uniform over the legal actions"),
    "greedy": Entry("agents.greedy:make", "recruits when it can, as cheaply as it can"),
    "ppo": Entry(
        "agents.ppo:make", "MaskablePPO; ppo=PATH takes a run directory or a model file", True
    ),
}

MODELS = Path(__file__).parent / "models"
"""Where the shipped models lie, with their cards."""


class AgentError(ValueError):
    """An agent that can't be made; the message is one line for the user."""


def make_agent(spec: str, rules: Rules | None = None) -> Agent:
    """An agent from ``name`` or ``name=path``.

    Args:
        spec: a name in REGISTRY, with the path of a model where the agent takes one.
        rules: the rule set to be played; None for the default.

    Raises:
        AgentError: an unknown name (the message lists the known ones), a path where there is none
            to give, or a model that can't be used.
    """
    name, separator, path = spec.partition("=")
    if name not in REGISTRY:
        raise AgentError(f"unknown agent {name!r}; there are {', '.join(REGISTRY)}")
    entry = REGISTRY[name]
    if separator and not (entry.takes_path and path):
        takes = "a path" if entry.takes_path else "no path"
        raise AgentError(f"bad agent {spec!r}: {name} takes {takes}")
    module, function = entry.factory.split(":")
    factory = cast(Callable[[Rules, Path | None], Agent], getattr(import_module(module), function))
    return factory(rules or Rules(), Path(path) if path else None)
