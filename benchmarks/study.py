"""The training study: independent seeds of a recipe, their curves, and how strong they end.

``python -m benchmarks.study add RUN_DIR ...`` judges the last model of each finished run on 20,000
deals of the ``test`` bank and keeps what it was: config, versions, curve, figures.
``python -m benchmarks.study table`` prints the final figures as markdown, and
``python -m benchmarks.study plot`` draws the curves (it needs the ``bench`` extra).
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from agents import AgentError, make_agent
from agents.training.judging import Score
from benchmarks.keeping import keep
from benchmarks.machine import cpu_model
from deck_of_spies_env.commands import OneLineParser
from deck_of_spies_env.evaluation.matches import play_deals
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.files import write_bytes_atomically

RESULTS = Path(__file__).parent / "results" / "study"
DEALS = 20_000
MEASURES = (("win_rate", "win rate"), ("key_spies", "mean Key Spies"), ("perfect", "12 of 12"))
COLOURS = ("#1f6f8b", "#c8553d", "#6a994e", "#7b5ea7", "#b08968")
POINTS = 100
"""Where bands are drawn, curves in between taken as straight."""

Record = dict[str, Any]


def record_of(run: Path) -> Record:
    """What a finished run was and how strong it is.

    Raises:
        OSError, ValueError: no such run, or one that has not ended.
    """
    config: Any = yaml.safe_load((run / "config.yaml").read_text())
    config.pop("run_dir")  # where it was kept says nothing of the run
    curve = [
        {name: float(value) for name, value in row.items()}
        for row in csv.DictReader(io.StringIO((run / "evaluations.csv").read_text()))
    ]
    if not list(run.glob("last_model.*")):
        raise ValueError(f"{run} has not ended: go on with train.py --resume {run}")
    agent = make_agent(f"{config['algorithm']}={run}")
    result = play_deals(agent, deal_seeds("test", 0, DEALS))
    return {
        "name": config["name"],
        "seed": config["seed"],
        "config": config,
        "versions": json.loads((run / "versions.json").read_text()),
        "cpu": cpu_model(),
        "deals": DEALS,
        "score": Score.of(result)._asdict(),
        "curve": curve,
    }


def load() -> dict[str, list[Record]]:
    """The records by name of the recipe, in the order of their seeds."""
    recipes: dict[str, list[Record]] = defaultdict(list)
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text())
        recipes[record["name"]].append(record)
    return dict(recipes)


def table(recipes: dict[str, list[Record]]) -> str:
    """Final figures of each run, as markdown."""
    lines = [
        "| recipe | seed | million decisions | minutes | win rate | mean Key Spies | 12 of 12 |",
        "|---|---:|---:|---:|---|---|---:|",
    ]
    for name, records in recipes.items():
        for record in records:
            score, last = record["score"], record["curve"][-1]
            wins = [100 * score[key] for key in ("win_rate", "win_rate_low", "win_rate_high")]
            spies = [score[key] for key in ("key_spies", "key_spies_low", "key_spies_high")]
            lines.append(
                f"| `{name}` | {record['seed']} | {last['timesteps'] / 1e6:.0f} "
                f"| {last['seconds'] / 60:.1f} "
                f"| {wins[0]:.2f} % [{wins[1]:.2f}, {wins[2]:.2f}] "
                f"| {spies[0]:.2f} [{spies[1]:.2f}, {spies[2]:.2f}] "
                f"| {100 * score['perfect']:.2f} % |"
            )
    return "\n".join(lines) + "\n"


def draw(recipes: dict[str, list[Record]]) -> bytes:
    """A PNG: each measure against decisions and against wall time, mean and range of the seeds.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(11, 9), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(MEASURES), 2, squeeze=False, sharey="row")
    for row, (measure, title) in enumerate(MEASURES):
        for column, (across, unit, label) in enumerate(
            (("timesteps", 1e6, "million decisions"), ("seconds", 60.0, "minutes"))
        ):
            axis = axes[row, column]
            for colour, (name, records) in zip(COLOURS, recipes.items(), strict=False):
                _band(axis, records, across, unit, measure, colour, name)
            axis.set_xlabel(label)
            axis.grid(alpha=0.3)
        axes[row, 0].set_ylabel(title)
    axes[0, 0].legend(loc="lower right", fontsize=8)
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=110)
    return png.getvalue()


def _band(
    axis: Any,
    records: list[Record],
    across: str,
    unit: float,
    measure: str,
    colour: str,
    name: str,
) -> None:
    """The mean of the seeds as a line, their range as a band."""
    curves = [
        [np.array([point[key] for point in record["curve"]]) for key in (across, measure)]
        for record in records
    ]
    first = max(x[0] for x, _ in curves)
    last = min(x[-1] for x, _ in curves)
    grid = np.linspace(first, last, POINTS)
    values = np.array([np.interp(grid, x, y) for x, y in curves])
    axis.plot(grid / unit, values.mean(axis=0), color=colour, label=f"{name} ({len(curves)})")
    axis.fill_between(
        grid / unit, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )


def main() -> None:
    """Add runs, print the table, or draw."""
    parser = OneLineParser(description="Seeds of a recipe, their curves and strength.")
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help="judge finished runs and keep what they were")
    adding.add_argument("runs", nargs="+", type=Path, metavar="RUN_DIR")
    commands.add_parser("table", help="print the final figures")
    commands.add_parser("plot", help="draw the curves into the results")
    args = parser.parse_args()
    if args.command == "add":
        for run in args.runs:
            try:
                record = record_of(run)
            except (OSError, AgentError, ValueError) as error:
                parser.error(str(error))
            path = RESULTS / f"{record['name']}-seed{record['seed']}.json"
            keep(path, record)
        return
    recipes = load()
    if not recipes:
        parser.error(f"no runs in {RESULTS}: add some first")
    if args.command == "table":
        sys.stdout.write(table(recipes))
    else:
        write_bytes_atomically(RESULTS / "curves.png", draw(recipes))


if __name__ == "__main__":
    main()
