"""Speed beside other libraries: ``python -m benchmarks [--only GROUP ...]``.

Prints a report and leaves it in ``benchmarks/results`` as ``bench.md``, with all rounds in
``bench.json`` and bars in ``bench.png``. Groups that are not run keep what an earlier run found, so
that libraries which can't share an environment may be measured in several.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.machine import circumstances
from benchmarks.measuring import Record, measure
from benchmarks.plot import draw
from benchmarks.report import render
from benchmarks.workers import Worker
from benchmarks.workloads import GROUPS
from deck_of_spies_env.commands import (
    INTERRUPTED,
    USER_ERROR,
    OneLineParser,
    at_least_one,
    positive_number,
)
from deck_of_spies_env.files import write_bytes_atomically, write_text_atomically

RESULTS = Path(__file__).parent / "results"


def _arguments(command_line: list[str]) -> argparse.Namespace:
    parser = OneLineParser(prog="python -m benchmarks", description="Speed beside other libraries.")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(GROUPS),
        metavar="GROUP",
        default=list(GROUPS),
        help=f"groups to run: {', '.join(GROUPS)}",
    )
    parser.add_argument(
        "--rounds", type=at_least_one, default=7, help="at least 5 for figures to quote"
    )
    parser.add_argument(
        "--seconds",
        type=positive_number,
        default=0.5,
        help="time of each contender in each round; learners take longer",
    )
    parser.add_argument(
        "--core",
        type=int,
        default=_last_core(),
        help="the core that one-thread contenders keep to (default: the last)",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")
    args = parser.parse_args(command_line)
    if args.core is not None and args.core not in _cores():
        parser.error(f"argument --core: must be one of {_cores()}, got {args.core}")
    return args


def _cores() -> list[int]:
    """The cores that this process may use, none where the system can't pin it to some."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _last_core() -> int | None:
    return _cores()[-1] if _cores() else None


def _earlier(path: Path) -> Record:
    """What earlier runs have found, by group."""
    return json.loads(path.read_text())["groups"] if path.is_file() else {}


def _write(results: Record, folder: Path) -> str:
    """Write the three files, and give the report."""
    report = render(results)
    write_text_atomically(folder / "bench.json", json.dumps(results, indent=1) + "\n")
    write_text_atomically(folder / "bench.md", report)
    try:
        png = draw(results)
    except ImportError as error:
        sys.stderr.write(f"bench.png is left out: {error}\n")
    else:
        if png is not None:
            write_bytes_atomically(folder / "bench.png", png)
    return report


def main(command_line: list[str]) -> None:
    """Measure group by group, write after each, and print the report."""
    args = _arguments(command_line)
    try:
        args.results.mkdir(parents=True, exist_ok=True)
        found = _earlier(args.results / "bench.json")
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        sys.stderr.write(f"error: --results {args.results}: {reason}\n")
        raise SystemExit(USER_ERROR) from None
    report = ""
    for name in args.only:
        started = time.perf_counter()
        group = measure(
            GROUPS[name], args.rounds, partial(Worker, core=args.core, seconds=args.seconds)
        )
        sys.stderr.write(f"{GROUPS[name].title}: {time.perf_counter() - started:.0f} s\n")
        if not group["contenders"] and name in found:
            sys.stderr.write(
                f"{GROUPS[name].title}: nothing could be run, the earlier figures stay\n"
            )
            continue
        group["settings"] = {
            "rounds": args.rounds,
            "seconds": args.seconds,
            "core": args.core,
        }
        group["circumstances"] = {
            **circumstances(),
            "command": " ".join(("python -m benchmarks", *command_line)),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        found[name] = group
        ordered = {name: found[name] for name in GROUPS if name in found}
        report = _write({"groups": ordered}, args.results)
    sys.stdout.write(report)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; groups that were done are kept\n")
        raise SystemExit(INTERRUPTED) from None
