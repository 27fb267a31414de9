"""The afterstate network as an object: its weights, what it thinks of positions, and its file.

A file is in the safetensors format, which can't run code; its metadata names the format, the
environment's version, the rule set, and how the network was trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from agents import AgentError
from agents import afterstate_kernels as kernels
from agents.afterstate_kernels import MOST_ENTRIES, NUM_ENTRIES, Network, Scratch
from agents.model_files import ENV_VERSION
from agents.objectives import NUM_COUNTS
from agents.vectors import LANES
from deck_of_spies_env import cards
from deck_of_spies_env.compiled import compiling
from deck_of_spies_env.files import write_bytes_atomically
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.games import scoring_of
from deck_of_spies_env.solitaire.rules import STATE, Rules

FORMAT = "afterstate-1"


def random_weights(hidden: int, head: int, rng: np.random.Generator) -> Network:
    """Fresh weights for a network of two hidden layers, whose widths are multiples of 16."""
    scale_of_first = np.sqrt(2 / cards.NUM_CARDS)  # so many entries are 1, or a few less
    return Network(
        first=rng.normal(0, scale_of_first, (NUM_ENTRIES, hidden)).astype(np.float32),
        first_bias=np.zeros(hidden, np.float32),
        second=rng.normal(0, np.sqrt(2 / hidden), (hidden, head)).astype(np.float32),
        second_bias=np.zeros(head, np.float32),
        last=rng.normal(0, 0.05, (head, LANES)).astype(np.float32),
        last_bias=np.zeros(LANES, np.float32),
    )


def scratch_for(network: Network, rules: Rules) -> Scratch:
    """Room for the evaluations of one thread."""
    hidden, head = network.second.shape
    return Scratch(
        entries=np.zeros(MOST_ENTRIES, np.int64),
        ones=np.ones(MOST_ENTRIES, np.float32),
        active=np.zeros(max(hidden, head), np.int64),
        hidden=np.zeros(hidden, np.float32),
        head=np.zeros(head, np.float32),
        counts=np.zeros(LANES, np.float32),
        best_counts=np.zeros(LANES, np.float32),
        legal=np.zeros(action_table(rules.hand_size).num_words, np.uint64),
        states=np.zeros(2, STATE),
    )


class AfterstateValue:
    """A network's opinion of positions under a rule set and an objective.

    Args:
        network: the weights.
        rules: the rule set.
        utility: float32 (13,), what each final count is worth.
    """

    def __init__(self, network: Network, rules: Rules, utility: npt.NDArray[np.float32]) -> None:
        self.network, self.rules, self.utility = network, rules, utility
        self._scratch = scratch_for(network, rules)
        _compile()

    def play_values(
        self, states: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Expected utility of each legal action, and the best action.

        Args:
            states: shape (N,), dtype STATE, none over.

        Returns:
            float32 (N, n) with -inf where an action is illegal, and int64 (N,).
        """
        num_actions = action_table(self.rules.hand_size).num_actions
        values = np.full((len(states), num_actions), -np.inf, np.float32)
        best = np.zeros(len(states), np.int64)
        kernels.value_plays(
            states, self.rules.record, self.network, self.utility, self._scratch, values, best
        )
        return values, best

    def position_values(self, states: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Expected utility under best play, float32 (N,), of positions that may be over."""
        values = np.zeros(len(states), np.float32)
        kernels.value_positions(
            states, self.rules.record, self.network, self.utility, self._scratch, values
        )
        return values


@cache
def _compile() -> None:
    """Compile or load the kernels once, safe among processes."""
    rules = Rules().record
    network = random_weights(LANES, LANES, np.random.default_rng(0))
    scratch, utility = scratch_for(network, Rules()), np.zeros(NUM_COUNTS, np.float32)
    states, values, best = np.zeros(0, STATE), np.zeros((0, 1), np.float32), np.zeros(0, np.int64)
    with compiling():
        kernels.value_plays(states, rules, network, utility, scratch, values, best)
        kernels.value_positions(states, rules, network, utility, scratch, values[:, 0].copy())


def save_network(network: Network, rules: Rules, made: Mapping[str, Any], path: Path) -> None:
    """Write a network file, whole or not at all.

    Args:
        network, rules: what it holds.
        made: how it was trained, the ``objective`` at least: values that JSON can hold.
        path: of the file.
    """
    metadata = {
        "format": FORMAT,
        "env": ENV_VERSION,
        "rules": json.dumps(asdict(rules)),
        "made": json.dumps(dict(made)),
    }
    write_bytes_atomically(path, save(network._asdict(), metadata=metadata))


def load_network(path: Path, rules: Rules) -> tuple[Network, dict[str, Any]]:
    """The weights of a network file, and how it was made.

    Raises:
        AgentError: no such file, no network file, or one of another version or rule set.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check(path, metadata, rules)
            network = Network(**{name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
            made = json.loads(metadata["made"])
            scoring_of(made["objective"], None)
    except AgentError:
        raise
    except FileNotFoundError:
        raise AgentError(f"no model at {path}") from None
    except (SafetensorError, OSError, TypeError, KeyError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise AgentError(f"model {path} is corrupt: {reason}") from None
    _check_weights(path, network)
    return network, made


def _check(path: Path, metadata: Mapping[str, str], rules: Rules) -> None:
    for name, expected in (("format", FORMAT), ("env", ENV_VERSION)):
        if metadata.get(name) != expected:
            raise AgentError(
                f"model {path} has {name} {metadata.get(name)}, this version reads {expected}"
            )
    if metadata.get("rules") != json.dumps(asdict(rules)):
        raise AgentError(
            f"model {path} was trained for rules {metadata.get('rules')}, "
            f"not {json.dumps(asdict(rules))}"
        )


def _check_weights(path: Path, network: Network) -> None:
    """Raise AgentError unless shapes fit together: the kernels check nothing."""
    hidden, head = network.first_bias.size, network.second_bias.size
    shapes = ((NUM_ENTRIES, hidden), (hidden,), (hidden, head), (head,), (head, LANES), (LANES,))
    widths_fit = hidden > 0 and head > 0 and hidden % LANES == 0 and head % LANES == 0
    found = tuple(weights.shape for weights in network)
    if found != shapes or not widths_fit:
        raise AgentError(f"model {path} is corrupt: weights of shapes {found}")
    if any(weights.dtype != np.float32 or not np.isfinite(weights).all() for weights in network):
        raise AgentError(f"model {path} is corrupt: its weights are not all finite float32 numbers")
