"""Agents named on the command line: bots, those of a clone's ``agents``, and one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.skirmish.bots import BOTS, make_bot
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules as SolitaireRules


def solitaire_agent(spec: str, rules: SolitaireRules) -> Agent:
    """An agent for Deck of Spies.

    Args:
        spec: what ``agents.make_agent`` takes, where there is that package, or ``module:factory``,
            which is called with ``rules=``.
        rules: to be played.

    Raises:
        ValueError: no such agent, or one that can't be made; the message is for the user.
    """
    listed = _package("agents")
    if listed is not None and _name_in(spec) in listed.REGISTRY:
        return _made(spec, partial(listed.make_agent, spec, rules))
    return _own_agent(spec, listed.REGISTRY if listed else {}, rules=rules)


def skirmish_agent(spec: str, rules: SkirmishRules, num_players: int) -> str | Agent:
    """An agent for a seat of Skirmish; the name itself for a bot of the package.

    Args:
        spec: one of ``skirmish.bots.BOTS``, what ``agents.skirmish.make_skirmish_agent`` takes,
            where there is that package, or ``module:factory``, which is called with ``rules=`` and
            ``num_players=``.
        rules: to be played.
        num_players: 2-4.

    Raises:
        ValueError: no such agent, or one that can't be made; the message is for the user.
    """
    if spec in BOTS:
        return spec
    listed = _package("agents.skirmish")
    if listed is not None and _name_in(spec) in listed.REGISTRY:
        make = partial(listed.make_skirmish_agent, spec, num_players, rules)
        return _made(spec, make)
    known = dict.fromkeys((*BOTS, *(listed.REGISTRY if listed else ())))
    return _own_agent(spec, known, rules=rules, num_players=num_players)


def skirmish_adviser(spec: str, rules: SkirmishRules, num_players: int) -> Agent:
    """As skirmish_agent, and a bot as an agent too."""
    agent = skirmish_agent(spec, rules, num_players)
    return make_bot(agent, num_players) if isinstance(agent, str) else agent


def _name_in(spec: str) -> str:
    """The name before an option or a path."""
    return spec.replace("=", ":").partition(":")[0]


def _package(name: str) -> Any:
    """A package of a clone of the project, no part of the wheel; None where there is none."""
    try:
        module = import_module(name)
    except ModuleNotFoundError:
        return None
    return module if hasattr(module, "REGISTRY") else None  # others have packages of that name


def _made(spec: str, make: Callable[[], Agent]) -> Agent:
    try:
        return make()
    except ModuleNotFoundError as error:
        raise ValueError(
            f"agent {spec!r} needs {error.name}, which is not installed: "
            f"pip install 'deck_of_spies_env[train]'"
        ) from error


def _own_agent(spec: str, known: Iterable[str], **arguments: Any) -> Agent:
    """An agent from ``module:factory``."""
    module, _, factory = spec.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), factory)):
        listed = "".join(f"{name}, " for name in known)
        raise ValueError(f"unknown agent {spec!r}; there are {listed}and module:factory")
    try:
        agent = getattr(import_module(module), factory)(**arguments)
    except Exception as error:  # whatever a user's own code may raise
        raise ValueError(f"agent {spec!r} can't be made: {error}") from error
    if not isinstance(agent, Agent):
        raise ValueError(f"agent {spec!r} is none: it needs the methods act and reset")
    return agent
