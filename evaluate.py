"""Judge agents on the same deals: a table on stdout and, if wanted, a JSON file and the games.

For example ``python evaluate.py --agents greedy random --deals 10000 --seed 0 --json report.json``,
and for the game of two to four ``python evaluate.py --game skirmish --num-players 3 --agents ppo
intrigue --deals 1000``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agents import REGISTRY, AgentError, make_agent
from agents.skirmish import REGISTRY as SKIRMISH_REGISTRY
from agents.skirmish import make_skirmish_agent
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.commands import INTERRUPTED, OneLineParser, at_least_one, rules_from
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.reports import Report, make_report, print_report, to_json
from deck_of_spies_env.evaluation.seeds import agent_seed, deal_seeds
from deck_of_spies_env.evaluation.table_reports import (
    TableReport,
    make_table_report,
    play_all_tables,
    print_table_report,
)
from deck_of_spies_env.evaluation.tables import TableResult, play_tables
from deck_of_spies_env.files import check_writable, write_text_atomically
from deck_of_spies_env.records import deal_recorder, record_writer, table_recorder
from deck_of_spies_env.records.format import Write
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.actions import IllegalActionError
from deck_of_spies_env.solitaire.rules import Rules

BANK = "test"
SOLITAIRE_AGENTS = ["ppo", "greedy", "random"]
SKIRMISH_AGENTS = ["ppo", "intrigue", "rank", "random"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = command_line()
    args = parser.parse_args(arguments)
    if args.num_players is not None and args.game != "skirmish":
        parser.error("--num-players goes with --game skirmish")
    judge = judge_tables if args.game == "skirmish" else judge_solitaire
    try:
        judge(parser, args)
        sys.stdout.flush()
    except IllegalActionError as error:
        parser.error(f"an agent broke the rules: {error}")
    except OSError as error:
        sys.stdout = None  # pyright: ignore[reportAttributeAccessIssue]  # nothing more to flush
        parser.error(f"can't write the report: {error.strerror}")
    except KeyboardInterrupt:
        print("\ninterrupted, nothing written", file=sys.stderr)
        return INTERRUPTED
    return 0


def judge_solitaire(parser: OneLineParser, args: argparse.Namespace) -> None:
    """Deck of Spies: each agent alone on all deals."""
    try:
        rules = Rules.of(rules_from(args.rules))
        seeds = deal_seeds(BANK, args.seed, args.deals)
        specs: list[str] = args.agents or SOLITAIRE_AGENTS
        agents = [(spec, agent_for(spec, partial(make_agent, rules=rules))) for spec in specs]
    except ValueError as error:
        parser.error(str(error))
    for _, agent in agents:
        play_deals(agent, seeds[:1], rules=rules)  # fail, load and compile before long work
    with records_to(args.records) as write:
        matches = play_all(agents, seeds, rules, args.seed, args.batch_size, write)
    report = make_report(matches, seed=args.seed, rules=rules, bank=BANK)
    write_json(args.json, report)
    print_report(report)


def judge_tables(parser: OneLineParser, args: argparse.Namespace) -> None:
    """Skirmish: every agent against every other one, each deal from every seat."""
    num_players: int = args.num_players or 2
    try:
        rules = SkirmishRules.of(rules_from(args.rules))
        rules.record(num_players)  # are there cards for all?
        seeds = deal_seeds(BANK, args.seed, args.deals)
        specs: list[str] = args.agents or SKIRMISH_AGENTS
        if len(specs) < 2:
            raise ValueError("Skirmish needs at least two agents")
        make = partial(make_skirmish_agent, num_players=num_players, rules=rules)
        agents = [agent_for(spec, make) for spec in specs]
    except ValueError as error:
        parser.error(str(error))
    for agent in agents:
        play_tables([agent] * num_players, seeds[:1], rules=rules)
    with records_to(args.records) as write, progress_bar() as progress:

        def play(table: Sequence[Agent], first: int, second: int) -> TableResult:
            total = args.deals * num_players
            task = progress.add_task(f"{specs[first]} - {specs[second]}", total=total)
            for agent in table:
                agent.reset(agent_seed(args.seed))
            names = [specs[first], *[specs[second]] * (num_players - 1)]
            return play_tables(
                table,
                seeds,
                rules=rules,
                batch_size=args.batch_size,
                progress=lambda ended: progress.advance(task, ended),
                on_game=write and table_recorder(write, names=names, seeds=seeds, rules=rules),
            )

        matches = play_all_tables(agents, seeds, num_players, rules, play)
    report = make_table_report(
        specs, matches, seed=args.seed, num_players=num_players, rules=rules, bank=BANK
    )
    write_json(args.json, report)
    print_table_report(report)


def records_to(path: Path | None) -> AbstractContextManager[Write | None]:
    """What writes the records of the games, None if no file is wanted."""
    return nullcontext() if path is None else record_writer(path)


def write_json(path: Path | None, report: Report | TableReport) -> None:
    """Write the report if a file is wanted."""
    if path is not None:
        write_text_atomically(path, to_json(report))


def progress_bar() -> Progress:
    """A bar for each match, on a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def play_all(
    agents: Sequence[tuple[str, Agent]],
    seeds: Sequence[int],
    rules: Rules,
    seed: int,
    batch_size: int,
    write: Write | None = None,
) -> list[tuple[str, MatchResult]]:
    """Each agent on all deals, one agent after the other, with a progress bar on a terminal."""
    matches: list[tuple[str, MatchResult]] = []
    with progress_bar() as progress:
        for name, agent in agents:
            task = progress.add_task(name, total=len(seeds))
            agent.reset(agent_seed(seed))
            result = play_deals(
                agent,
                seeds,
                rules=rules,
                batch_size=batch_size,
                progress=lambda ended, task=task: progress.advance(task, ended),
                on_game=write and deal_recorder(write, name=name, seeds=seeds, rules=rules),
            )
            matches.append((name, result))
    return matches


def agent_for(spec: str, make: Callable[[str], Agent]) -> Agent:
    """An agent from ``NAME``, ``NAME=PATH`` or ``NAME:OPTION=VALUE,...``.

    Args:
        spec: as written.
        make: makes it for the game.

    Raises:
        AgentError: it can't be made; the message is for the user.
    """
    try:
        return make(spec)
    except ModuleNotFoundError as error:
        raise AgentError(f"agent {spec!r} needs {error.name}, which is not installed") from error


def command_line() -> OneLineParser:
    """The options and their defaults."""
    listed, at_tables = (
        "; ".join(f"{name}: {entry.summary}" for name, entry in registry.items())
        for registry in (REGISTRY, SKIRMISH_REGISTRY)
    )
    parser = OneLineParser(
        description="Judge agents on the same deals.",
        epilog=f"Agents: {listed}. Of Skirmish: {at_tables}.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--agents",
        nargs="+",
        metavar="NAME[:OPTION=VALUE,...]",
        help=f"who plays, in the order of the table ({' '.join(SOLITAIRE_AGENTS)}; in Skirmish "
        f"{' '.join(SKIRMISH_AGENTS)}); NAME=PATH is short for NAME:path=PATH",
    )
    parser.add_argument(
        "--game",
        choices=("deck_of_spies", "skirmish"),
        default="deck_of_spies",
        help="which game (%(default)s)",
    )
    parser.add_argument(
        "--num-players",
        type=int,
        choices=(2, 3, 4),
        help="at a table of Skirmish (2)",
    )
    parser.add_argument(
        "--deals",
        type=at_least_one,
        metavar="N",
        default=10_000,
        help="how many deals (%(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", default=0, help="which deals (%(default)s)"
    )
    parser.add_argument("--json", type=_writable_path, metavar="FILE", help="write the report here")
    parser.add_argument(
        "--records",
        type=_writable_path,
        metavar="FILE",
        help="write all games here, see docs/records.md",
    )
    parser.add_argument(
        "--rules",
        nargs="+",
        metavar="KEY=VALUE",
        default=["{}"],
        help="fields of the rule set that differ from the default, or one JSON object of them",
    )
    parser.add_argument(
        "--batch-size",
        type=at_least_one,
        metavar="N",
        default=1024,
        help="games side by side (%(default)s)",
    )
    return parser


def _writable_path(text: str) -> Path:
    try:
        check_writable(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"can't write {text!r}: {error.strerror}") from error
    return Path(text)


if __name__ == "__main__":
    sys.exit(main())
