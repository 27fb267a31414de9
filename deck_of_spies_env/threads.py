"""Work over many games shared among threads: kernels release the GIL, so they run at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import TypeVar

Result = TypeVar("Result")

Part = tuple[int, int]
"""First of a run of games, and the one after its last."""


def parts_of(count: int, num_parts: int) -> list[Part]:
    """Consecutive parts that share ``count`` things out as evenly as can be, none of them empty.

    Args:
        count: at least 1.
        num_parts: at least 1.
    """
    parts = min(num_parts, count)
    bounds = [count * part // parts for part in range(parts + 1)]
    return list(pairwise(bounds))


def share_out(work: Callable[[int, int], Result], parts: list[Part]) -> list[Result]:
    """Do the work for each part, one thread each; returns when all of it is done.

    Raises:
        Exception: whatever the work raises.
    """
    if len(parts) == 1:
        return [work(*parts[0])]
    futures = [_pool(len(parts) - 1).submit(work, *part) for part in parts[1:]]
    try:
        first = work(*parts[0])
    finally:
        wait(futures)
    return [first, *(future.result() for future in futures)]


@cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="deck_of_spies")


# A forked child inherits the pool but not its threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
