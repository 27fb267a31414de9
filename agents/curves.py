"""How agents learnt: evaluations during training, from run directories and from model cards."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from agents import MODELS, REGISTRY, AgentError, look_up
from agents.model_files import EVALUATIONS
from agents.skirmish import REGISTRY as SKIRMISH_REGISTRY
from deck_of_spies_env.page import Curve, CurvePoint

_TRAINED = ("ppo", "afterstate")
_ROW = re.compile(
    r"^\| (?P<millions>[\d.]+) \|(?: [\d.]+ \|)? (?P<rate>[\d.]+) % "
    r"\[(?P<low>[\d.]+), (?P<high>[\d.]+)\]"
)
"""A row of a card's table: million decisions, minutes if they are told, and the rate."""


def curves_of(specs: Mapping[str, str], num_players: int | None = None) -> list[Curve]:
    """The learning curves of those agents that have one.

    A model of a run directory has the run's evaluations. A shipped one has those of its card.

    Args:
        specs: of agents that can be made, by the names that the curves are to bear.
        num_players: at a table of Skirmish; None for Deck of Spies.

    Raises:
        AgentError: a run's table of evaluations can't be read.
    """
    found = {name: _points_of(spec, num_players) for name, spec in specs.items()}
    return [Curve(name, points) for name, points in found.items() if points]


def _points_of(spec: str, num_players: int | None) -> tuple[CurvePoint, ...]:
    _, path, options = look_up(spec, REGISTRY if num_players is None else SKIRMISH_REGISTRY)
    if path is not None:
        folder = path if path.is_dir() else path.parent
        return _from_run(folder / EVALUATIONS)
    kind = re.split("[=:]", spec)[0]
    if kind not in _TRAINED:
        return ()
    return _from_card(_shipped_card(kind, options.get("objective", "win"), num_players))


def _shipped_card(kind: str, objective: str, num_players: int | None) -> Path:
    if num_players is not None:
        return MODELS / f"skirmish_{num_players}p.md"
    if kind == "ppo" and objective != "win":
        return MODELS / f"ppo_{objective}.md"
    return MODELS / f"{kind}.md"  # one value network plays for all objectives


def _from_run(path: Path) -> tuple[CurvePoint, ...]:
    if not path.is_file():
        return ()
    try:
        with open(path, newline="") as file:
            return tuple(map(_from_row, csv.DictReader(file)))
    except (KeyError, TypeError, ValueError):
        raise AgentError(f"{path} is no table of evaluations, as train.py writes it") from None


def _from_row(row: dict[str, str]) -> CurvePoint:
    rate, low, high = (float(row[key]) for key in ("win_rate", "win_rate_low", "win_rate_high"))
    return CurvePoint(int(row["timesteps"]), rate, low, high)


def _from_card(path: Path) -> tuple[CurvePoint, ...]:
    rows = map(_ROW.match, path.read_text(encoding="utf-8").splitlines())
    return tuple(_from_match(row) for row in rows if row)


def _from_match(row: re.Match[str]) -> CurvePoint:
    rate, low, high = (float(row[key]) / 100 for key in ("rate", "low", "high"))
    return CurvePoint(round(1e6 * float(row["millions"])), rate, low, high)
