"""Banks of deal seeds that can't overlap, so that no agent is judged on deals it was chosen by.

A deal seed is 64 bits: the bank in the top byte, 24 bits of the user's seed, and 32 bits for the
number of the deal. Small seeds, as in ``env.reset(seed=7)``, lie in the train bank. The engine
hashes every seed, so neighbouring ones have nothing in common.
"""

from __future__ import annotations

import numpy as np

BANKS = ("train", "select", "test")
"""For learning, for choosing among checkpoints and settings, and for the final judgement."""

SEED_LIMIT = 1 << 24
"""Seeds are below this."""

MAX_DEALS = 1 << 32
"""The number of deals in each bank under one seed."""

_BANK_SHIFT = 56
_SEED_SHIFT = 32


def deal_seeds(bank: str, seed: int, count: int, first: int = 0) -> list[int]:
    """``count`` deals of a bank under a seed, the first ones unless another start is given.

    Args:
        bank: one of BANKS.
        seed: 0 to SEED_LIMIT - 1.
        count: 0 to MAX_DEALS.
        first: number of the first of them, from 0.

    Returns:
        Seeds for ``env.reset`` or ``play_deals``, all different, and different from those of any
        other bank or seed.

    Raises:
        ValueError: an argument out of range; the message names it.
    """
    if bank not in BANKS:
        raise ValueError(f"unknown bank {bank!r}; there are {', '.join(BANKS)}")
    _check_seed(seed)
    if not 0 <= first <= first + count <= MAX_DEALS:
        last = f" after deal {first}" if first else ""
        raise ValueError(f"the number of deals must be 0 to {MAX_DEALS}, got {count}{last}")
    start = ((BANKS.index(bank) << _BANK_SHIFT) | (seed << _SEED_SHIFT)) + first
    return list(range(start, start + count))


def bank_of(seed: int) -> str | None:
    """The bank that a deal seed lies in, None for one that lies in none.

    Args:
        seed: of a deal, 0 or more.
    """
    number = seed >> _BANK_SHIFT
    return BANKS[number] if 0 <= number < len(BANKS) else None


def agent_seed(seed: int, chunk: int = 0, stream: int = 0) -> int:
    """A seed for what an agent leaves to chance, unrelated to the deals of any bank.

    Args:
        seed: as in :func:`deal_seeds`.
        chunk: number of a chunk of deals, from 0: each has its own seed.
        stream: to tell apart what must not share its chance, from 0.

    Returns:
        A number below 2**32, as much as every library takes.

    Raises:
        ValueError: the seed is out of range.
    """
    _check_seed(seed)
    return int(np.random.SeedSequence((seed, len(BANKS), chunk, stream)).generate_state(1)[0])


def _check_seed(seed: int) -> None:
    if not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"the seed must be 0 to {SEED_LIMIT - 1}, got {seed}")
