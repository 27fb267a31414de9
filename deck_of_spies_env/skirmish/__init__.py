"""Skirmish: 54 cards, two to four players who commit cards at the same time.

``parallel_env`` is to be had from here, and needs PettingZoo, which is imported only then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deck_of_spies_env.skirmish.parallel import parallel_env

__all__ = ["parallel_env"]


def __getattr__(name: str) -> Any:
    if name == "parallel_env":
        from deck_of_spies_env.skirmish.parallel import parallel_env  # noqa: PLC0415 -- optional

        return parallel_env
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
