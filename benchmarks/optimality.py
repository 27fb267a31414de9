"""How far agents are from the best play, exactly, on small decks.

``python -m benchmarks.optimality [--agents greedy ppo] [--scenarios 1000] [--json FILE]``

Each deck of ``benchmarks/small_decks.json`` is solved by backward induction, and each agent's play
is evaluated over all that can happen: nothing is sampled. Then the optimum of some decks is bounded
from above by information relaxation, which is sampled, to see how tight such bounds are.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents import AgentError, make_agent
from agents.exact import Solution, evaluate_policy, solve
from agents.relaxation import scenarios, upper_bound
from benchmarks.machine import circumstances
from benchmarks.small_decks import KINDS, SmallDeck, load_family, state_of
from deck_of_spies_env.commands import OneLineParser, at_least_one, whole_number, writable_file
from deck_of_spies_env.files import write_text_atomically
from deck_of_spies_env.solitaire.games import OBJECTIVES

RESULTS = Path(__file__).parent / "results" / "optimality.json"
AGENTS = ("greedy", "linear", "ppo", "afterstate", "search")
SEED = 0  # of agents that play by chance
BOUNDED_EACH = 1
"""Decks of each kind and number of spies left whose optimum is bounded too."""
MEASURES: dict[str, str | dict[str, float]] = {
    **{name: name for name in OBJECTIVES},
    "win and keys": {"win": 1.0, "keys": 1.0},
}
"""Objectives by name; the last one is that of the training of ``ppo`` and ``afterstate``."""
_SAME = 1e-9
_NOISE = 0.02
_SEED = 0

Values = npt.NDArray[np.float64]


def by_objective(values: Values) -> dict[str, float]:
    """A row of values by name."""
    return {name: float(value) for name, value in zip(MEASURES, values, strict=True)}


def solve_family(decks: list[SmallDeck], num_scenarios: int) -> list[dict[str, Any]]:
    """Optimum, draw states and seconds of each deck, and bounds of some of them."""
    entries: list[dict[str, Any]] = []
    seen: dict[tuple[str, int], int] = {}
    for deck in decks:
        state, started = state_of(deck), time.perf_counter()
        solution = solve(state, objectives=list(MEASURES.values()))
        entry = {
            "name": deck.name,
            "kind": deck.kind,
            "spies_left": deck.spies_left,
            "draw_states": solution.num_states,
            "optimum": by_objective(solution.values(state)[0]),
            "seconds": time.perf_counter() - started,
        }
        group = (deck.kind, deck.spies_left)
        seen[group] = seen.get(group, 0) + 1
        if num_scenarios and seen[group] <= BOUNDED_EACH:
            entry["bounds"] = bounds_of(solution, state, deck, num_scenarios)
        entries.append(entry)
        sys.stderr.write(f"{deck.name}: {solution.num_states:,} draw states\n")
    return entries


def bounds_of(
    solution: Solution, state: npt.NDArray[Any], deck: SmallDeck, num_scenarios: int
) -> dict[str, dict[str, float]]:
    """Upper bounds for the objective that the deck was chosen by, with several guesses."""
    objective = list(MEASURES).index(KINDS[deck.kind].objective)
    optimum = solution.draw_values[:, objective]
    noise = np.random.default_rng(_SEED).normal(0.0, _NOISE, len(optimum))
    guesses: dict[str, Values | None] = {
        "no penalty": None,
        "value of greedy play": solution.greedy_draw_values()[:, objective],
        "optimum and noise": optimum + noise,
        "optimum": optimum,
    }
    ranks = scenarios(num_scenarios, _SEED)
    found: dict[str, dict[str, float]] = {}
    for name, guess in guesses.items():
        bound = upper_bound(solution, state, objective, guess, ranks)
        found[name] = {"mean": bound.mean, "standard_error": bound.standard_error}
    return found


def judge(spec: str, decks: list[SmallDeck]) -> dict[str, Any]:
    """An agent's exact value of each deck."""
    starts, started = np.concatenate([state_of(deck) for deck in decks]), time.perf_counter()
    result = evaluate_policy(
        make_agent(spec), starts, objectives=list(MEASURES.values()), seed=SEED
    )
    return {
        "name": spec,
        "decisions": result.num_decisions,
        "seconds": time.perf_counter() - started,
        "values": [by_objective(values) for values in result.values],
    }


def groups_of(decks: list[SmallDeck]) -> dict[str, list[int]]:
    """Name of a kind -> the places of its decks."""
    return {
        kind: [place for place, deck in enumerate(decks) if deck.kind == kind] for kind in KINDS
    }


def summary(
    solved: list[dict[str, Any]], judged: list[dict[str, Any]], places: list[int]
) -> dict[str, Any]:
    """Objective -> mean optimum, and of each agent mean value, losses, and decks without loss."""
    means: dict[str, Any] = {}
    for objective in MEASURES:
        optimum = np.array([solved[place]["optimum"][objective] for place in places])
        means[objective] = {"optimum": float(optimum.mean()), "agents": {}}
        for agent in judged:
            value = np.array([agent["values"][place][objective] for place in places])
            loss = float((optimum - value).mean())
            means[objective]["agents"][agent["name"]] = {
                "value": float(value.mean()),
                "loss": loss,
                "relative_loss": loss / float(optimum.mean()) if optimum.any() else None,
                "largest_loss": float((optimum - value).max()),
                "decks_without_loss": int((optimum - value < _SAME).sum()),
            }
    return means


def table(means: dict[str, dict[str, Any]], counts: dict[str, int]) -> str:
    """The summary as a markdown table."""
    lines = [
        "| decks | objective | optimum | agent | value | loss | relative | largest | no loss |",
        "|---|---|---:|---|---:|---:|---:|---:|---:|",
    ]
    for kind, by_name in means.items():
        for objective, entry in by_name.items():
            for name, agent in entry["agents"].items():
                relative = agent["relative_loss"]
                shown = "" if relative is None else f"{100 * relative:.2f} %"
                lines.append(
                    f"| {kind} ({counts[kind]}) | `{objective}` | {entry['optimum']:.4f} "
                    f"| `{name}` | {agent['value']:.4f} | {_shown(agent['loss'])} | {shown} "
                    f"| {_shown(agent['largest_loss'])} | {agent['decks_without_loss']} |"
                )
    return "\n".join(lines) + "\n"


def bounds_table(solved: list[dict[str, Any]]) -> str:
    """Upper bounds less the optimum, deck by deck, as a markdown table."""
    bounded = [entry for entry in solved if "bounds" in entry]
    if not bounded:
        return ""
    names = list(bounded[0]["bounds"])
    lines = [f"| deck | optimum | {' | '.join(names)} |", "|---|---:|" + "---:|" * len(names)]
    for entry in bounded:
        optimum = entry["optimum"][KINDS[entry["kind"]].objective]
        cells = [
            f"{bound['mean'] - optimum:+.4f} ± {1.96 * bound['standard_error']:.4f}"
            for bound in entry["bounds"].values()
        ]
        lines.append(f"| {entry['name']} | {optimum:.4f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def measure(specs: list[str], num_scenarios: int, most: int | None) -> dict[str, Any]:
    """Everything that the report holds."""
    decks = load_family()[:most]
    judged = [judge(spec, decks) for spec in specs]
    solved = solve_family(decks, num_scenarios)
    groups = {kind: places for kind, places in groups_of(decks).items() if places}
    return {
        "circumstances": circumstances(),
        "scenarios": num_scenarios,
        "decks": solved,
        "agents": judged,
        "summary": {kind: summary(solved, judged, places) for kind, places in groups.items()},
        "counts": {kind: len(places) for kind, places in groups.items()},
    }


def _shown(loss: float) -> str:
    """To four places, without the sign of what rounding leaves of no loss."""
    return f"{round(loss, 4) + 0.0:.4f}"


def main() -> None:
    """Measure, print two tables, and write the figures."""
    parser = OneLineParser(description="Exact losses of agents on small decks.")
    parser.add_argument(
        "--agents",
        nargs="+",
        default=["greedy", "linear", "ppo", "afterstate", "search"],
        metavar="NAME[=PATH]",
    )
    parser.add_argument(
        "--scenarios", type=whole_number(0), default=1000, help="for the bounds; 0 for none"
    )
    parser.add_argument("--most", type=at_least_one, help="only the first decks of the family")
    parser.add_argument("--json", type=writable_file, default=RESULTS, metavar="FILE")
    args = parser.parse_args()
    if args.scenarios == 1:
        parser.error(f"--scenarios must be 0 or at least 2, got {args.scenarios}")
    if "random" in args.agents:
        parser.error("random plays by chance, which can't be evaluated exactly")
    try:
        report = measure(args.agents, args.scenarios, args.most)
    except AgentError as error:
        parser.error(str(error))
    sys.stdout.write(table(report["summary"], report["counts"]) + "\n")
    sys.stdout.write(bounds_table(report["decks"]))
    write_text_atomically(args.json, json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
