"""The file of an afterstate network, see ``deck_of_spies_env.solitaire.afterstates``.

A file is in the safetensors format, which can't run code; its metadata names the format, the
environment's version, the rule set, and how the network was trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from agents import AgentError
from agents.model_files import ENV_VERSION, mismatch
from deck_of_spies_env import cards
from deck_of_spies_env.files import write_bytes_atomically
from deck_of_spies_env.solitaire.afterstates import NUM_ENTRIES, Network, check_network
from deck_of_spies_env.solitaire.games import scoring_of
from deck_of_spies_env.solitaire.rules import Rules
from deck_of_spies_env.vectors import LANES

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
    try:
        check_network(network)
    except ValueError as error:
        raise AgentError(f"model {path} is corrupt: {error}") from None
    return network, made


def _check(path: Path, metadata: Mapping[str, str], rules: Rules) -> None:
    for name, expected in (("format", FORMAT), ("env", ENV_VERSION)):
        if metadata.get(name) != expected:
            raise AgentError(
                f"model {path} has {name} {metadata.get(name)}, this version reads {expected}"
            )
    if metadata.get("rules") != json.dumps(asdict(rules)):
        raise mismatch(path, "rules", json.loads(metadata.get("rules", "null")), asdict(rules))
