"""Agents by name, weakest to strongest, each in a file of its own.

>>> agent = make_agent("greedy")

An agent is named by ``NAME``, ``NAME=PATH`` where it plays from a model file, and
``NAME:OPTION=VALUE,...`` where it has options; ``path`` is one of them where a path makes sense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any, cast

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.solitaire.games import OBJECTIVES
from deck_of_spies_env.solitaire.rules import Rules


class AgentError(ValueError):
    """An agent that can't be made; the message is one line for the user."""


MOST = 100_000
"""Playouts or samples that an agent takes for a play: more would fill the memory."""


def whole_number(text: str) -> int:
    """An option's value that counts something, at least 1.

    Raises:
        ValueError: what it must be.
    """
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
        raise ValueError(f"must be a whole number of 1 to {MOST:,}")
    return int(text)


def depth(text: str) -> int:
    """An option's value that says how far to look.

    Raises:
        ValueError: what it must be.
    """
    if text not in ("1", "2"):
        raise ValueError("must be 1 or 2")
    return int(text)


def weight(text: str) -> float:
    """An option's value that weighs something, 0 or more.

    Raises:
        ValueError: what it must be.
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < inf:
        raise ValueError("must be a number from 0 up")
    return number


def objective_name(text: str) -> str:
    """An option's value that names an objective.

    Raises:
        ValueError: what it must be.
    """
    if text not in OBJECTIVES:
        raise ValueError(f"must be one of {', '.join(OBJECTIVES)}")
    return text


@dataclass(frozen=True)
class Entry:
    """A registered agent.

    Attributes:
        factory: ``module:function``, called with the rules, the path or None, and the options
            given, by name; in Skirmish with the number of players before these.
        summary: one line for listings.
        takes_path: whether ``name=path`` makes sense.
        options: option name -> what reads its value, raising ValueError for a bad one.
    """

    factory: str
    summary: str
    takes_path: bool = False
    options: Mapping[str, Callable[[str], Any]] = field(default_factory=dict[str, Any])


REGISTRY: dict[str, Entry] = {
    "random": Entry("agents.random:make", "uniform over the legal actions"),
    "greedy": Entry(
        "agents.greedy:make", "recruits 9s and better, counters the rest, retires pairs"
    ),
    "linear": Entry(
        "agents.linear:make",
        "a weighted sum of features of the position; linear=PATH takes a weights file",
        True,
    ),
    "rollout": Entry(
        "agents.rollout:make",
        "tries each action by playouts of greedy; rollout:budget=N takes N for each (64)",
        options={"budget": whole_number},
    ),
    "afterstate": Entry(
        "agents.afterstate:make",
        "the play that promises most by a value network; afterstate=PATH takes a run directory or "
        "a model file",
        True,
        {"objective": objective_name},
    ),
    "ppo": Entry(
        "agents.ppo:make",
        "MaskablePPO; ppo=PATH takes a run directory or a model file",
        True,
        {"objective": objective_name},
    ),
    "search": Entry(
        "agents.search:make",
        "looks one chance ahead over a value function; search:value=ppo takes that of ppo",
        options={
            "value": str,
            "objective": objective_name,
            "plays": whole_number,
            "samples": whole_number,
            "depth": depth,
            "prior": weight,
        },
    ),
}

MODELS = Path(__file__).parent / "models"
"""Where the shipped models lie, with their cards."""


def make_agent(spec: str, rules: Rules | None = None) -> Agent:
    """An agent from ``name``, ``name=path`` or ``name:option=value,...``.

    Args:
        spec: a name in REGISTRY, with the path of a model or with options where it takes them.
        rules: the rule set to be played; None for the default.

    Raises:
        AgentError: an unknown name (the message lists the known ones), a path or an option where
            there is none to give, a bad value, or a model that can't be used.
    """
    factory, path, options = look_up(spec, REGISTRY)
    return factory(rules or Rules(), path, **options)


def look_up(
    spec: str, registry: Mapping[str, Entry]
) -> tuple[Callable[..., Agent], Path | None, dict[str, Any]]:
    """What a spec names in a registry: the factory, the path or None, and the options given.

    Raises:
        AgentError: as of make_agent.
    """
    if not isinstance(spec, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise AgentError(f"an agent is named by a text, got {spec!r}")
    name, separator, rest = _split(spec)
    if name not in registry:
        raise AgentError(f"unknown agent {name!r}; there are {', '.join(registry)}")
    entry = registry[name]
    if separator == "=" and not (entry.takes_path and rest):
        takes = "a path" if entry.takes_path else "no path"
        raise AgentError(f"bad agent {spec!r}: {name} takes {takes}")
    options = _read_options(spec, name, entry, rest) if separator == ":" else {}
    path = Path(rest) if separator == "=" else options.pop("path", None)
    module, function = entry.factory.split(":")
    return cast(Callable[..., Agent], getattr(import_module(module), function)), path, options


def _split(spec: str) -> tuple[str, str, str]:
    """Name, ``=`` or ``:`` or nothing, and what follows: the first of the two decides."""
    separators = [character for character in spec if character in "=:"]
    return spec.partition(separators[0] if separators else "=")


def _read_options(spec: str, name: str, entry: Entry, written: str) -> dict[str, Any]:
    known = dict(entry.options)
    if entry.takes_path:
        known["path"] = Path
    if not known:
        raise AgentError(f"bad agent {spec!r}: {name} takes no options")
    options: dict[str, Any] = {}
    for part in written.split(","):
        option, _, value = part.partition("=")
        if option not in known or option in options:
            raise AgentError(
                f"bad agent {spec!r}: write {name}:OPTION=VALUE,... with the options "
                f"{', '.join(known)}, each at most once"
            )
        try:
            options[option] = known[option](value)
        except ValueError as error:
            raise AgentError(f"bad agent {spec!r}: {option} {error}, got {value!r}") from None
    return options
