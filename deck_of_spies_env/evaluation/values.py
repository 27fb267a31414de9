"""What positions of Deck of Spies are worth: a small network with frozen weights.

It gives the probability of a win and the expected Key Spies if a strong player plays on. The
weights are those of the agent ``afterstate`` at the time they were frozen, and a position is worth
what its best play promises. They are part of the package and stay as they are when agents get
better, so that estimates made with them stay comparable; ``python -m
agents.training.fit_evaluation_value`` of the repository makes the file. The games that the network
learnt from were played under the default rules; under others it predicts less well.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env import cards
from deck_of_spies_env.files import replacing
from deck_of_spies_env.solitaire.afterstates import (
    NUM_COUNTS,
    AfterstateValue,
    Network,
    check_network,
)
from deck_of_spies_env.solitaire.rules import Rules

QUANTITIES = ("wins", "key_spies")
"""The columns of values: the probability of a win, and the expected Key Spies that count, 0-12."""

FORMAT = "values-1"
ENV_ID = "DeckOfSpies-v0"
"""What the weights are for: rules and the meaning of cards are fixed within a version."""

_FILE = "values.npz"


def position_values(
    states: npt.NDArray[Any], rules: Rules | Mapping[str, Any] | None = None
) -> npt.NDArray[np.float64]:
    """What positions are worth to a strong player: float64 (N, 2), columns as in QUANTITIES.

    Args:
        states: shape (N,), dtype STATE. A game that is over is worth what it came to.
        rules: the rule set that is played.

    Raises:
        ValueError: bad rules.
    """
    rules = Rules.of(rules)
    chances = _network_for(rules).final_counts(np.ascontiguousarray(states))
    return chances.astype(np.float64) @ _worth_of_counts(rules)


def _worth_of_counts(rules: Rules) -> npt.NDArray[np.float64]:
    """What each final count is worth, float64 (13, 2)."""
    counts = np.arange(NUM_COUNTS)
    return np.stack([counts >= rules.key_spies_to_win, counts], axis=1).astype(np.float64)


@cache
def _network_for(rules: Rules) -> AfterstateValue:
    """The shipped network, for a player to whom all twelve Key Spies are worth a win."""
    network = read_values((files("deck_of_spies_env.evaluation") / _FILE).read_bytes())
    utility = _worth_of_counts(rules) @ (1.0, 1.0 / cards.NUM_KEY_SPIES)
    return AfterstateValue(network, rules, utility.astype(np.float32))


def write_values(network: Network, about: Mapping[str, Any], path: str | Path) -> None:
    """Write the file of position values, whole or not at all.

    Args:
        network: the weights.
        about: where they come from: values that JSON can hold.
        path: of the file.

    Raises:
        OSError: it can't be written.
    """
    described = {"format": FORMAT, "env": ENV_ID, "about": dict(about)}
    with replacing(path) as file:
        np.savez(file, description=np.array(json.dumps(described)), **network._asdict())


def read_values(content: bytes) -> Network:
    """The weights in the content of a file of position values.

    Raises:
        ValueError: no such file, one of another version, or weights that do not fit together.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            described = json.loads(str(arrays["description"]))
            found = {name: described[name] for name in ("format", "env")}
            network = Network(*(arrays[name] for name in Network._fields))
    except Exception as error:  # NumPy and zipfile raise many kinds for broken bytes
        raise ValueError(f"this is no file of position values: {error!r}") from None
    wanted = {"format": FORMAT, "env": ENV_ID}
    if found != wanted:
        raise ValueError(f"the position values are for {found}, this version reads {wanted}")
    try:
        check_network(network)
    except ValueError as error:
        raise ValueError(f"the position values are corrupt: {error}") from None
    return network
