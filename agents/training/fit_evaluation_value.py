"""Freeze the network of ``afterstate`` as the position values of the evaluation.

usage: python -m agents.training.fit_evaluation_value [--model PATH] [--out FILE] [--deals N]

The network comes from a run of ``python train.py --config configs/afterstate.yaml`` or a model
file, by default the shipped one. How well it predicts is measured on deals of the ``select`` bank
that it plays itself: the losses are those of the mean over all positions of the games.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents import AgentError
from agents.afterstate import SHIPPED, make
from agents.afterstate_network import load_network
from agents.model_files import AFTERSTATE_SUFFIX, model_file
from agents.training.versions import versions_of
from deck_of_spies_env.evaluation.matches import Watcher, play_deals
from deck_of_spies_env.evaluation.seeds import MAX_DEALS, deal_seeds
from deck_of_spies_env.evaluation.values import write_values
from deck_of_spies_env.files import check_writable
from deck_of_spies_env.solitaire.afterstates import AfterstateValue
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.solitaire.rules import Rules

_SEED = 0


class Predictions(Watcher):
    """Judges all positions of a match by the final counts that a network expects.

    Args:
        value: the network.
        key_spies_to_win: of the rule set.

    Attributes:
        deals: arrays of the numbers of deals, int64 (k,), one for each step.
        win_chances: probabilities of a win, float64 (k,), likewise.
        key_spies: expected Key Spies, float64 (k,), likewise.
    """

    def __init__(self, value: AfterstateValue, key_spies_to_win: int) -> None:
        self._value, self._to_win = value, key_spies_to_win
        self.deals: list[npt.NDArray[np.int64]] = []
        self.win_chances: list[npt.NDArray[np.float64]] = []
        self.key_spies: list[npt.NDArray[np.float64]] = []

    def chosen(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> None:
        """Judge the positions that are about to be left."""
        chances = self._value.final_counts(games.states[slots]).astype(np.float64)
        self.deals.append(deals.copy())
        self.win_chances.append(chances[:, self._to_win :].sum(axis=1))
        self.key_spies.append(chances @ np.arange(chances.shape[1]))


def measure(path: Path, num_deals: int) -> dict[str, float]:
    """How well a network predicts the games that it plays.

    Args:
        path: of the model.
        num_deals: how many games.

    Returns:
        ``win_cross_entropy`` and ``key_spies_squared_error``, and the same of what a constant
        would lose, with ``of_constant`` added to their names.
    """
    rules = Rules()
    agent = make(rules, path)
    predictions = Predictions(agent.value, rules.key_spies_to_win)
    result = play_deals(
        agent, deal_seeds("select", _SEED, num_deals), rules=rules, watchers=[predictions]
    )
    deals = np.concatenate(predictions.deals)
    wins, key_spies = result.wins[deals], result.key_spies[deals]
    chances = np.concatenate(predictions.win_chances)
    errors = np.concatenate(predictions.key_spies) - key_spies
    return {
        "win_cross_entropy": _cross_entropy(chances, wins),
        "win_cross_entropy_of_constant": _cross_entropy(np.full(len(wins), wins.mean()), wins),
        "key_spies_squared_error": round(float((errors**2).mean()), 4),
        "key_spies_squared_error_of_constant": round(float(key_spies.var()), 4),
    }


def _cross_entropy(chances: npt.NDArray[np.float64], wins: npt.NDArray[np.bool_]) -> float:
    of_outcome = np.where(wins, chances, 1.0 - chances)
    return round(float(-np.log(np.maximum(of_outcome, 1e-6)).mean()), 5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = command_line()
    options = parser.parse_args(arguments)
    if not 1 <= options.deals <= MAX_DEALS:
        parser.error(f"deals must be at least 1, got {options.deals}")
    try:
        check_writable(options.out)
        path = model_file(options.model, AFTERSTATE_SUFFIX, [SHIPPED])
        network, made = load_network(path, Rules())
    except OSError as error:
        parser.error(f"can't write {options.out}: {error.strerror}")
    except AgentError as error:
        parser.error(str(error))
    losses = measure(path, options.deals)
    write_values(network, _about(made, losses, options.deals), options.out)
    print(f"written to {options.out}; on {options.deals:,} deals of the select bank: {losses}")
    return 0


def _about(made: Mapping[str, Any], losses: Mapping[str, float], num_deals: int) -> dict[str, Any]:
    return {
        "command": "python -m agents.training.fit_evaluation_value",
        "made": dict(made),
        "select_seed": _SEED,
        "select_deals": num_deals,
        "losses": dict(losses),
        "versions": versions_of(("numba", "numpy")),
    }


def command_line() -> argparse.ArgumentParser:
    """The options and their defaults."""
    parser = argparse.ArgumentParser(
        prog="python -m agents.training.fit_evaluation_value",
        description="Freeze the network of afterstate as the position values of the evaluation.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--model", type=Path, default=SHIPPED, help="run directory or model file")
    parser.add_argument("--out", type=Path, default=Path("values.npz"), help="file to write")
    parser.add_argument("--deals", type=int, default=20_000, help="games to measure the losses on")
    return parser


if __name__ == "__main__":
    sys.exit(main())
