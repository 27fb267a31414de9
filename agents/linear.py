"""``linear``: the play after which a weighted sum of sixteen features is highest.

The features stand in ``agents/linear_features.py``, the weights in a JSON file: ``linear`` takes
the shipped one, ``linear=PATH`` another. ``python -m agents.training.fit_linear`` finds weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
import numpy.typing as npt

from agents import MODELS, AgentError
from agents.linear_features import FEATURES, best_action, choose_all, score_all
from agents.model_files import ENV_VERSION, mismatch
from agents.positions import PositionAgent
from deck_of_spies_env.agent import Actions
from deck_of_spies_env.files import write_text_atomically
from deck_of_spies_env.solitaire.games import compile_engine
from deck_of_spies_env.solitaire.policies import legal_words
from deck_of_spies_env.solitaire.rules import Rules

FORMAT = 1
SHIPPED = MODELS / "linear.json"


class LinearAgent(PositionAgent):
    """Play by a weighted sum of features, from ``recall`` observations.

    Args:
        rules: the rule set to be played.
        weights: one for each feature, in the order of FEATURES.
    """

    def __init__(self, rules: Rules, weights: tuple[float, ...]) -> None:
        super().__init__(rules)
        self._weights = np.array(weights)
        self.compiled_policy = _policy(weights)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The play of the highest score in each position."""
        states = self.positions(observations)
        actions = np.zeros(len(states), dtype=np.int64)
        choose_all(states, self.rules.record, legal_words(self.rules), self._weights, actions)
        return actions

    def values(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """The score of each play: float64 (N, n), NaN if illegal, see ValuingAgent."""
        scores = np.where(action_masks, 0.0, np.nan)
        score_all(self.positions(observations), self.rules.record, self._weights, scores)
        return scores


@cache
def _policy(weights: tuple[float, ...]) -> Callable[..., Any]:
    """The policy for ``play_out``; one for equal weights, as each takes seconds to compile."""
    compile_engine()
    frozen = np.array(weights)  # a constant to Numba, like any array from outside

    @numba.njit(error_model="numpy", nogil=True)
    def linear_action(state: Any, rules: Any, legal: Any, word: np.uint64) -> int:
        return best_action(state, rules, legal, frozen)

    return linear_action


def write_weights(
    path: Path, rules: Rules, weights: Mapping[str, float], found: Mapping[str, Any]
) -> None:
    """Write a weights file, whole or not at all.

    Args:
        path: of the file.
        rules: the rule set that they are for.
        weights: feature -> weight, all of them.
        found: how they were found, in words and numbers for the reader.

    Raises:
        OSError: the file can't be written.
    """
    document = {
        "format": FORMAT,
        "env": ENV_VERSION,
        "rules": asdict(rules),
        "weights": dict(weights),
        "found": dict(found),
    }
    write_text_atomically(path, json.dumps(document, indent=2) + "\n")


def load_weights(path: Path, rules: Rules) -> tuple[float, ...]:
    """The weights of a file, in the order of FEATURES.

    Raises:
        AgentError: no such file, no weights file, or one of another version or rule set.
    """
    document = _read(path)
    for name, expected in (("format", FORMAT), ("env", ENV_VERSION)):
        if document.get(name) != expected:
            raise AgentError(
                f"weights {path} are for {name} {document.get(name)!r}, not {expected!r}"
            )
    if document.get("rules") != asdict(rules):
        raise mismatch(path, "rules", document.get("rules"), asdict(rules))
    weights = document.get("weights")
    if not isinstance(weights, dict) or set(cast(dict[str, Any], weights)) != set(FEATURES):
        raise AgentError(f"weights {path} are corrupt: there must be one for each of the features")
    values = [cast(dict[str, Any], weights)[name] for name in FEATURES]
    if not all(_is_number(value) for value in values):
        raise AgentError(f"weights {path} are corrupt: they are not all finite numbers")
    return tuple(float(value) for value in values)


def _read(path: Path) -> dict[str, Any]:
    try:
        document: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise AgentError(f"can't read weights {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # no JSON, or not even UTF-8
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise AgentError(f"weights {path} are corrupt: {reason}") from None
    if not isinstance(document, dict):
        raise AgentError(f"weights {path} are corrupt: unexpected contents")
    return cast(dict[str, Any], document)


def _is_number(value: Any) -> bool:
    """Whether a value from JSON is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def make(rules: Rules, path: Path | None) -> LinearAgent:
    """The agent from a weights file, or from the shipped one.

    Raises:
        AgentError: no weights there, or those of another version or rule set.
    """
    return LinearAgent(rules, load_weights(path or SHIPPED, rules))
