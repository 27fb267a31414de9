"""Play the ladder anew: the results of all agents that ship with the package (an hour or more).

``python -m benchmarks.ladder`` writes ``deck_of_spies_env/evaluation/ladder.npz``. With ``--resume
FILE`` a run that was killed goes on where it was, and with ``--only NAME ...`` the others' results
stay as they are.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import deck_of_spies_env
from agents import make_agent
from deck_of_spies_env.commands import OneLineParser, at_least_one
from deck_of_spies_env.evaluation.ladder import BANK, SEED, Rung, shipped_ladder, write_ladder
from deck_of_spies_env.evaluation.matches import MatchResult
from deck_of_spies_env.evaluation.partial import partial_file
from deck_of_spies_env.evaluation.runs import Deals, Run, SolitaireMatch, play_run
from deck_of_spies_env.solitaire.rules import Rules

TARGET = Path(deck_of_spies_env.__file__).parent / "evaluation" / "ladder.npz"
AGENTS = {
    "random": 20_000,
    "greedy": 20_000,
    "linear": 20_000,
    "rollout": 2_000,
    "afterstate": 20_000,
    "ppo": 20_000,
    "ppo:objective=keys": 20_000,
    "ppo:objective=perfect": 20_000,
    "search": 2_000,
}
"""Who is on the ladder, and on how many deals."""


def play(name: str, deals: int, workers: int, resume: Path | None) -> MatchResult:
    """An agent's result on its deals.

    Args:
        name: of the agent.
        deals: how many.
        workers: processes.
        resume: where finished chunks are kept, a file for each agent beside one another.
    """
    rules = Rules()
    run = Run(
        [name], [partial(make_agent, name)], [SolitaireMatch(0, rules)], Deals(BANK, SEED, deals)
    )
    with ExitStack() as stack:
        kept = None
        if resume is not None:
            path = resume.with_name(f"{resume.name}.{list(AGENTS).index(name)}")
            settings = {"version": deck_of_spies_env.__version__, "agent": name}
            kept = stack.enter_context(partial_file(path, settings))
        [columns] = play_run(run, workers=workers, kept_in=kept)
    return MatchResult.of(columns)


def main() -> None:
    """Play all agents, and write the file."""
    parser = OneLineParser(description="Play the shipped ladder anew.", allow_abbrev=False)
    parser.add_argument("--workers", type=at_least_one, metavar="N", default=1)
    parser.add_argument("--resume", type=Path, metavar="FILE")
    parser.add_argument("--only", nargs="+", choices=AGENTS, metavar="NAME", default=list(AGENTS))
    parser.add_argument("--out", type=Path, metavar="FILE", default=TARGET)
    args = parser.parse_args()
    matches: list[tuple[str, MatchResult | Rung]] = []
    shipped = {rung.name: rung for rung in shipped_ladder().rungs}
    for name, deals in AGENTS.items():
        if name not in args.only:
            matches.append((name, shipped[name]))
            continue
        result = play(name, deals, args.workers, args.resume)
        matches.append((name, result))
        sys.stderr.write(f"{name}: {result.wins.mean():.4f} in {result.seconds:.0f} s\n")
    write_ladder(args.out, matches)


if __name__ == "__main__":
    main()
