"""Judge agents on the same deals: a table on stdout and, if wanted, a JSON file and the games.

For example ``python evaluate.py --agents greedy random --deals 10000 --seed 0 --json report.json``,
and for the game of two to four ``python evaluate.py --game skirmish --num-players 3 --agents ppo
intrigue --deals 1000``.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agents import MODELS, REGISTRY, AgentError, make_agent
from agents.curves import curves_of
from agents.skirmish import REGISTRY as SKIRMISH_REGISTRY
from agents.skirmish import make_skirmish_agent
from agents.training.versions import git_commit, versions_of
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.commands import (
    INTERRUPTED,
    OneLineParser,
    at_least_one,
    rules_from,
    writable_file,
)
from deck_of_spies_env.evaluation.behaviour import ActionLog
from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.evaluation.judging import SolitaireJudgement, TableJudgement
from deck_of_spies_env.evaluation.partial import PartialFileError, partial_file
from deck_of_spies_env.evaluation.reports import Report, print_report, to_json
from deck_of_spies_env.evaluation.runs import (
    CHUNK_SIZE,
    RECORDS,
    Deals,
    Recorder,
    WorkerError,
    numbered,
    play_run,
)
from deck_of_spies_env.evaluation.stopping import (
    FixedDeals,
    SequentialTest,
    StoppingRule,
    UntilWidth,
)
from deck_of_spies_env.evaluation.table_reports import TableReport, print_table_report
from deck_of_spies_env.files import replacing, write_text_atomically
from deck_of_spies_env.page import Curve, ViewedGame, make_page, view_deals, view_tables
from deck_of_spies_env.records import deal_lines, table_lines
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.actions import IllegalActionError
from deck_of_spies_env.solitaire.rules import Rules

BANK = "test"
DEFAULT_MARGIN = 1.0
DEFAULT_ALPHA = 0.05
SOLITAIRE_AGENTS = ["ppo", "greedy", "random"]
SKIRMISH_AGENTS = ["ppo", "intrigue", "rank", "random"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # small networks are fastest on one thread
    parser = command_line()
    args = parser.parse_args(arguments)
    words = sys.argv[1:] if arguments is None else arguments
    args.command = shlex.join(["python", "evaluate.py", *words])
    check_combination(parser, args)
    try:
        (judge_tables if args.game == "skirmish" else judge_solitaire)(parser, args)
        sys.stdout.flush()
    except IllegalActionError as error:
        parser.error(f"an agent broke the rules: {error}")
    except (AgentError, PartialFileError, WorkerError) as error:
        parser.error(str(error))
    except OSError as error:
        sys.stdout = None  # pyright: ignore[reportAttributeAccessIssue]  # nothing more to flush
        parser.error(f"can't write the report: {error.strerror}")
    except KeyboardInterrupt:
        goes_on = f"the same command goes on from {args.resume}" if args.resume else ""
        print(f"\ninterrupted, {goes_on or 'nothing written'}", file=sys.stderr)
        return INTERRUPTED
    return 0


def check_combination(parser: OneLineParser, args: argparse.Namespace) -> None:
    """Refuse options that don't go together."""
    skirmish = args.game == "skirmish"
    if args.num_players is not None and not skirmish:
        parser.error("--num-players goes with --game skirmish")
    for option in ("behaviour", "luck"):
        if getattr(args, option) and skirmish:
            parser.error(f"--{option} is of Deck of Spies only")
    if args.until_width is not None and args.sequential:
        parser.error("take --until-width or --sequential, not both")
    for option in ("margin", "alpha"):
        if getattr(args, option) is not None and not args.sequential:
            parser.error(f"--{option} goes with --sequential")
    outputs = [path for path in (args.json, args.html, args.records, args.resume) if path]
    if len({path.resolve() for path in outputs}) < len(outputs):
        parser.error("--json, --html, --records and --resume must name different files")


def judge_solitaire(parser: OneLineParser, args: argparse.Namespace) -> None:
    """Deck of Spies: each agent alone on all deals."""
    specs: list[str] = args.agents or SOLITAIRE_AGENTS
    names = numbered(specs)

    def recorder_of(agent: int) -> Recorder:
        return deal_lines(names[agent], rules)

    try:
        rules = Rules.of(rules_from(args.rules or ["{}"]))
        judgement = SolitaireJudgement(
            names,
            [partial(agent_for, spec, partial(make_agent, rules=rules)) for spec in specs],
            rules,
            deals_of(args),
            stopping_rule(args, len(specs)),
            args.batch_size,
            args.behaviour,
            args.luck,
            [ActionLog] if args.html else [],
            recorder_of=recorder_of if args.records else None,
        )
        curves = curves_of(dict(zip(names, specs, strict=True))) if args.html else []
    except ValueError as error:
        parser.error(str(error))
    played = play(judgement, args, specs)
    report = judgement.report(played)
    write_files(args, report, played)
    if args.html is not None:
        write_page(args, report, view_deals(judgement, played), curves)
    print_report(report)


def judge_tables(parser: OneLineParser, args: argparse.Namespace) -> None:
    """Skirmish: every agent against every other one, each deal from every seat."""
    specs: list[str] = args.agents or SKIRMISH_AGENTS
    names = numbered(specs)
    num_players: int = args.num_players or 2

    def recorder_of(first: int, others: int) -> Recorder:
        return table_lines([names[first], *[names[others]] * (num_players - 1)], rules)

    try:
        rules = SkirmishRules.of(rules_from(args.rules or ["{}"]))
        make = partial(make_skirmish_agent, num_players=num_players, rules=rules)
        judgement = TableJudgement(
            names,
            [partial(agent_for, spec, make) for spec in specs],
            num_players,
            rules,
            deals_of(args),
            stopping_rule(args, len(specs), shares=True),
            args.batch_size,
            recorder_of if args.records or args.html else None,
        )
        curves = curves_of(dict(zip(names, specs, strict=True)), num_players) if args.html else []
    except ValueError as error:
        parser.error(str(error))
    played = play(judgement, args, specs)
    report = judgement.report(played)
    write_files(args, report, played)
    if args.html is not None:
        write_page(args, report, view_tables(judgement, played), curves)
    print_table_report(report)


def deals_of(args: argparse.Namespace) -> Deals:
    """Which deals are played.

    Raises:
        ValueError: there are none like that.
    """
    return Deals(BANK, args.seed, args.deals, args.chunk_size)


def stopping_rule(
    args: argparse.Namespace, num_agents: int, *, shares: bool = False
) -> StoppingRule:
    """When enough deals are played.

    Raises:
        ValueError: a width, margin or error rate out of range, or a test not of two agents.
    """
    if args.sequential:
        margin = DEFAULT_MARGIN if args.margin is None else args.margin
        alpha = DEFAULT_ALPHA if args.alpha is None else args.alpha
        return SequentialTest(margin / 100, alpha, num_agents, shares=shares)
    if args.until_width is not None:
        return UntilWidth(args.until_width / 100, num_agents, shares=shares)
    return FixedDeals()


def play(
    judgement: SolitaireJudgement | TableJudgement, args: argparse.Namespace, specs: Sequence[str]
) -> list[Columns]:
    """Play with a progress bar on a terminal, from and into the file to resume from."""
    run = judgement.run
    settings = {**judgement.settings, "models": model_digests(specs)}
    kept = partial_file(args.resume, settings) if args.resume else nullcontext()
    with kept as kept_in, progress_bar() as progress:
        tasks = [
            progress.add_task(
                " - ".join(run.names[agent] for agent in dict.fromkeys(match.seats)),
                total=run.deals.count * match.games_per_deal,
            )
            for match in run.matches
        ]
        return play_run(
            run,
            workers=args.workers,
            kept_in=kept_in,
            progress=lambda match, ended: progress.advance(tasks[match], ended),
            look=judgement.look,
        )


def model_digests(specs: Sequence[str]) -> dict[str, str]:
    """A digest of the shipped models, and of each model that a spec gives the path of."""
    named = [Path(part) for spec in specs for part in re.split("[=:,]", spec)[1:]]
    return {str(path): digest_of(path) for path in (MODELS, *named) if path.exists()}


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the files in a directory, in hex."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    digest = sha256()
    for file in filter(Path.is_file, files):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def write_files(
    args: argparse.Namespace, report: Report | TableReport, played: Sequence[Columns]
) -> None:
    """Write the report and the records if they are wanted."""
    if args.records is not None:
        with replacing(args.records) as file:
            for columns in played:
                with gzip.open(BytesIO(columns[RECORDS].tobytes())) as lines:
                    shutil.copyfileobj(lines, file)
    if args.json is not None:
        write_text_atomically(args.json, to_json(report))


def write_page(
    args: argparse.Namespace,
    report: Report | TableReport,
    games: Sequence[ViewedGame],
    curves: Sequence[Curve],
) -> None:
    """Write the report as a page, with games to step through and learning curves."""
    versions = versions_of(("gymnasium", "numpy", "numba", "torch")) | {"commit": git_commit()}
    page = make_page(report, games, curves, command=args.command, versions=versions)
    write_text_atomically(args.html, page)


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
        help="how many deals, or with the next two options how many at most (%(default)s)",
    )
    parser.add_argument(
        "--until-width",
        type=float,
        metavar="X",
        help="stop when the interval of every agent's win rate is narrower than X points",
    )
    parser.add_argument(
        "--sequential",
        action="store_true",
        help="two agents: stop when one is better, or both are equivalent",
    )
    parser.add_argument(
        "--margin",
        type=float,
        metavar="X",
        help=f"equivalent agents differ by no more than X points ({DEFAULT_MARGIN})",
    )
    parser.add_argument(
        "--alpha",
        type=float,
        metavar="P",
        help=f"error rate of either decision of the sequential test ({DEFAULT_ALPHA})",
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", default=0, help="which deals (%(default)s)"
    )
    parser.add_argument("--json", type=writable_file, metavar="FILE", help="write the report here")
    parser.add_argument(
        "--html",
        type=writable_file,
        metavar="FILE",
        help="write the report here as a page, with games to step through",
    )
    parser.add_argument(
        "--records",
        type=writable_file,
        metavar="FILE",
        help="write all games here, see docs/records.md",
    )
    parser.add_argument(
        "--behaviour",
        action="store_true",
        help="report what agents recruit, counter and retire, and profiles of Key Spies",
    )
    parser.add_argument(
        "--luck",
        action="store_true",
        help="report results with luck taken out, too: more precise, and slower",
    )
    parser.add_argument(
        "--rules",
        nargs="+",
        action="extend",
        metavar="KEY=VALUE",
        help="fields of the rule set that differ from the default, or one JSON object of them",
    )
    parser.add_argument(
        "--batch-size",
        type=at_least_one,
        metavar="N",
        default=1024,
        help="games side by side (%(default)s)",
    )
    parser.add_argument(
        "--chunk-size",
        type=at_least_one,
        metavar="N",
        default=CHUNK_SIZE,
        help="deals that a worker plays at a time (%(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=at_least_one,
        metavar="N",
        default=1,
        help="processes that share the chunks; the results are the same (%(default)s)",
    )
    parser.add_argument(
        "--resume",
        type=writable_file,
        metavar="FILE",
        help="keep finished chunks here, and go on from those that are here",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
