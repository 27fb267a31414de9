"""Find the weights of ``linear`` by CMA-ES: ``python -m agents.training.fit_linear``.

Each generation draws candidates around the search's mean and plays them all on the same deals, new
ones each time and more and more of them. From time to time the mean plays deals of the ``select``
bank; the one that does best there is written in the end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from cmaes import CMA

from agents.linear import write_weights
from agents.linear_features import FEATURES, NUM_FEATURES, play_all_out
from agents.training.versions import versions_of
from deck_of_spies_env.cards import NUM_KEY_SPIES
from deck_of_spies_env.evaluation.seeds import MAX_DEALS, SEED_LIMIT, deal_seeds
from deck_of_spies_env.files import check_writable
from deck_of_spies_env.solitaire.games import judge_games
from deck_of_spies_env.solitaire.policies import legal_words
from deck_of_spies_env.solitaire.rollouts import deal_snapshots
from deck_of_spies_env.solitaire.rules import WIN, Rules


@dataclass(frozen=True)
class Settings:
    """Settings of a search; the command line has one option for each.

    Attributes:
        seed: of the search and of its deals.
        generations: how many.
        population: candidates in each.
        first_deals, last_deals: deals that each candidate plays in the first and the last
            generation; linear in between.
        sigma: standard deviation of the weights in the first generation, around 0.
        keys_weight: what all twelve Key Spies are worth, where a win is worth 1.
        check_every: generations between two checks of the mean.
        check_deals: deals of the select bank in each check.
    """

    seed: int = 0
    generations: int = 150
    population: int = 20
    first_deals: int = 800
    last_deals: int = 3200
    sigma: float = 1.0
    keys_weight: float = 1.0
    check_every: int = 10
    check_deals: int = 20_000


@dataclass(frozen=True)
class Score:
    """How weights fared: share of wins, mean Key Spies, and the two put together."""

    win_rate: float
    key_spies: float
    fitness: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = command_line()
    options = vars(parser.parse_args(arguments))
    out: Path = options.pop("out")
    settings = Settings(**options)
    try:
        check(settings)
        check_writable(out)
    except OSError as error:
        parser.error(f"can't write {out}: {error.strerror}")
    except ValueError as error:
        parser.error(str(error))
    weights, score = search(settings)
    found = {
        "command": "python -m agents.training.fit_linear",
        "settings": asdict(settings),
        "select": asdict(score),
        "versions": versions_of(("cmaes", "numba", "numpy")),
    }
    named = dict(zip(FEATURES, weights.tolist(), strict=True))
    write_weights(out, Rules(), named, found)
    print(f"written to {out}: {told(score)} on {settings.check_deals:,} deals of the select bank")
    return 0


def search(settings: Settings) -> tuple[npt.NDArray[np.float64], Score]:
    """The weights that did best in a check, float64 (NUM_FEATURES,), and their score there."""
    started = perf_counter()
    start = np.zeros(NUM_FEATURES)
    optimizer = CMA(start, settings.sigma, seed=settings.seed, population_size=settings.population)
    check_games = deal_snapshots(deal_seeds("select", settings.seed, settings.check_deals))
    num_deals = schedule(settings)
    seeds = deal_seeds("train", settings.seed, sum(num_deals))
    best = start, Score(0.0, 0.0, fitness=-np.inf)
    used = 0
    for generation, count in enumerate(num_deals, start=1):
        games = deal_snapshots(seeds[used : used + count])
        used += count
        candidates = [optimizer.ask() for _ in range(settings.population)]
        optimizer.tell([(x, -judge(x, games, settings).fitness) for x in candidates])
        if generation % settings.check_every == 0 or generation == settings.generations:
            mean = scaled(optimizer.mean)
            score = judge(mean, check_games, settings)
            if score.fitness > best[1].fitness:
                best = mean, score
            print(
                f"generation {generation}, {used * settings.population:,} games, "
                f"{perf_counter() - started:.0f} s: {told(score)}",
                flush=True,
            )
    return best


def schedule(settings: Settings) -> list[int]:
    """Deals of each generation."""
    counts = np.linspace(settings.first_deals, settings.last_deals, settings.generations)
    return [round(count) for count in counts.tolist()]


def judge(weights: npt.NDArray[np.float64], games: npt.NDArray[Any], settings: Settings) -> Score:
    """Play games of shape (N,), dtype SNAPSHOT, to the end; they are left as they are."""
    rules, records = Rules(), games.copy()
    play_all_out(records, rules.record, legal_words(rules), weights)
    outcomes = np.empty(len(records), dtype=np.int8)
    key_spies, turns = (np.empty(len(records), dtype=np.int64) for _ in range(2))
    judge_games(records, outcomes, key_spies, turns)
    wins, keys = float((outcomes == WIN).mean()), float(key_spies.mean())
    return Score(wins, keys, wins + settings.keys_weight * keys / NUM_KEY_SPIES)


def scaled(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The weights with 1 as the largest in size, to four digits; their scale decides nothing."""
    return np.round(weights / np.abs(weights).max(), 4)


def told(score: Score) -> str:
    """A score in words."""
    return f"{score.win_rate:.2%} won, {score.key_spies:.2f} Key Spies"


def check(settings: Settings) -> None:
    """Refuse settings that can't be searched with.

    Raises:
        ValueError: names the setting.
    """
    if not 0 <= settings.seed < SEED_LIMIT:
        raise ValueError(f"seed must be 0 to {SEED_LIMIT - 1}, got {settings.seed}")
    if settings.population < 2:
        raise ValueError(f"population must be at least 2, got {settings.population}")
    for name in ("generations", "first_deals", "last_deals", "check_every", "check_deals"):
        if not 1 <= getattr(settings, name) <= MAX_DEALS:
            raise ValueError(f"{name} must be at least 1, got {getattr(settings, name)}")
    if not (np.isfinite(settings.sigma) and settings.sigma > 0):
        raise ValueError(f"sigma must be positive, got {settings.sigma}")
    if not (np.isfinite(settings.keys_weight) and settings.keys_weight >= 0):
        raise ValueError(f"keys_weight must not be negative, got {settings.keys_weight}")


def command_line() -> argparse.ArgumentParser:
    """The options and their defaults: one for each setting, and where to write."""
    parser = argparse.ArgumentParser(
        prog="python -m agents.training.fit_linear",
        description="Find the weights of the agent linear by CMA-ES.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, default=Path("linear.json"), help="weights file")
    for name, default in asdict(Settings()).items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(default), default=default, help=" ")
    return parser


if __name__ == "__main__":
    sys.exit(main())
