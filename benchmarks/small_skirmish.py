"""How far agents are from an equilibrium of Skirmish with a small deck.

``python -m benchmarks.small_skirmish [--ppo RUN_OR_MODEL] [--json FILE]``

The game of ``configs/skirmish_small.yaml`` is written out as a tree for OpenSpiel (it needs the
``openspiel`` extra), and CFR+ (Tammelin, "Solving large imperfect information games using CFR+",
2014) solves it. NashConv of a policy is what best answers of both sides would gain on it together:
0 in an equilibrium, exact for every agent. Agents without chance are taken as they play, others by
their probabilities.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from agents import AgentError
from agents.skirmish import make_skirmish_agent
from agents.skirmish.matrix import MatrixAgent
from agents.skirmish.ppo import make as ppo_agent
from agents.skirmish.smmcts import SMMCTSAgent
from benchmarks.machine import circumstances
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.commands import OneLineParser, at_least_one, writable_file
from deck_of_spies_env.files import write_text_atomically
from deck_of_spies_env.integrations.openspiel import (
    ExtensiveForm,
    extensive_form,
    load_small_skirmish,
    pyspiel,
)
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS
from deck_of_spies_env.skirmish.rules import Rules

RESULTS = Path(__file__).parent / "results" / "small_skirmish.json"
CONFIG = Path(__file__).parents[1] / "configs" / "skirmish_small.yaml"
ITERATIONS = 1000

Probabilities = Callable[[Any, Any], npt.NDArray[Any]]


def small_rules() -> Rules:
    """The rule set of the configuration."""
    return Rules.of(yaml.safe_load(CONFIG.read_text())["env"]["rules"])


def uniform(observations: Any, masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Any legal action alike."""
    return masks / masks.sum(axis=1, keepdims=True)


def as_it_plays(agent: Agent) -> Probabilities:
    """An agent without chance: its action has probability 1."""
    return lambda observations, masks: np.eye(NUM_ACTIONS)[agent.act(observations, masks)]


def agents_of(rules: Rules, ppo: Path | None) -> dict[str, Probabilities]:
    """The agents by name, as probabilities."""
    found: dict[str, Probabilities] = {"random": uniform}
    for name in ("high", "rank", "intrigue"):
        found[name] = as_it_plays(make_skirmish_agent(name, 2, rules))
    found["matrix"] = MatrixAgent(2, rules).strategies
    found["smmcts"] = SMMCTSAgent(2, rules).strategies
    if ppo is not None:
        found["ppo"] = ppo_agent(rules, ppo, 2).probabilities
    return found


def solve(form: ExtensiveForm, iterations: int) -> tuple[float, float]:
    """NashConv of CFR+'s average policy, and what the first player gets by it."""
    solver = pyspiel.CFRPlusSolver(form.game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    policy = solver.average_policy()
    values = pyspiel.expected_returns(form.game.new_initial_state(), policy, -1, True)
    return pyspiel.nash_conv(form.game, policy, True), values[0]


def table(result: dict[str, Any]) -> str:
    """The figures as markdown."""
    random = result["nash_conv"]["random"]
    lines = ["| policy | NashConv | of random's |", "|---|---:|---:|"]
    lines += [
        f"| `{name}` | {value:.4f} | {100 * value / random:.1f} % |"
        for name, value in result["nash_conv"].items()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Solve, judge, print and keep."""
    parser = OneLineParser(description="Exact distances from an equilibrium.")
    parser.add_argument("--ppo", type=Path, help="a run directory or model of skirmish_small.yaml")
    parser.add_argument("--iterations", type=at_least_one, default=ITERATIONS, help="of CFR+")
    parser.add_argument("--json", type=writable_file, default=RESULTS, metavar="FILE")
    args = parser.parse_args()
    rules = small_rules()
    try:
        agents = agents_of(rules, args.ppo)
    except AgentError as error:
        parser.error(str(error))
    form = extensive_form(load_small_skirmish(**asdict(rules)))
    sys.stderr.write(f"{len(form.information_sets):,} information sets\n")
    solved, value = solve(form, args.iterations)
    result = {
        "rules": asdict(rules),
        "information_sets": len(form.information_sets),
        "iterations": args.iterations,
        "value_of_first_player": value,
        "nash_conv": {
            **{name: form.nash_conv(probabilities) for name, probabilities in agents.items()},
            "CFR+": solved,
        },
        "circumstances": circumstances(),
    }
    write_text_atomically(args.json, json.dumps(result, indent=1) + "\n")
    sys.stdout.write(table(result))


if __name__ == "__main__":
    main()
