"""When a run has seen enough: after all its deals, at a width, or when a test has decided.

Runs are looked at after each chunk, in the order of the chunks. What stops early gives intervals
that are valid at every stop, see ``sequential``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypedDict

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.evaluation.intervals import AnytimeIntervals, FixedIntervals, Intervals
from deck_of_spies_env.evaluation.sequential import (
    Decision,
    MeanSequence,
    PairedWinTest,
    WinRateSequence,
)


class Stopping(TypedDict):
    """How the number of deals came about; what does not apply is None.

    ``mode`` is ``fixed``, ``until_width`` or ``sequential``. Widths and margins are fractions.
    ``decision`` is ``first``, ``second``, ``equivalent`` or ``undecided``; ``alpha`` bounds the
    probability of naming an agent that is not better, and that of a wrong ``equivalent``.
    """

    mode: str
    deals_at_most: int
    width: float | None
    margin: float | None
    alpha: float | None
    decision: Decision | None


class StoppingRule(Protocol):
    """Looks at the wins of all agents, chunk by chunk."""

    @property
    def intervals(self) -> Intervals:
        """Which are valid for the number of deals that comes of it."""
        ...

    @property
    def p_values_hold(self) -> bool:
        """Whether tests for a fixed number of deals are valid."""
        ...

    def look(self, wins: Sequence[npt.NDArray[Any]]) -> bool:
        """Whether the chunks seen are enough.

        Args:
            wins: one array (n,) for each agent, of the next n deals: bool, or shares of wins.
        """
        ...

    def stopping(self, deals_at_most: int) -> Stopping:
        """For the report."""
        ...


class FixedDeals:
    """All deals are played."""

    intervals: Intervals = FixedIntervals()
    p_values_hold = True

    def look(self, wins: Sequence[npt.NDArray[Any]]) -> bool:
        """Never enough."""
        return False

    def stopping(self, deals_at_most: int) -> Stopping:
        """For the report."""
        return _stopping("fixed", deals_at_most)


class UntilWidth:
    """Enough when the interval of every agent's win rate is narrower than a width.

    Args:
        width: a fraction.
        num_agents: of the run.
        shares: whether wins are shares in [0, 1], and not bool.

    Raises:
        ValueError: the width is not in (0, 1).
    """

    intervals: Intervals = AnytimeIntervals()
    p_values_hold = False

    def __init__(self, width: float, num_agents: int, *, shares: bool = False) -> None:
        if not 0 < width < 1:
            raise ValueError(f"the width must lie between 0 and 100 points, got {100 * width:g}")
        self._width = width
        self._sequences = [
            MeanSequence(0, 1) if shares else WinRateSequence() for _ in range(num_agents)
        ]

    def look(self, wins: Sequence[npt.NDArray[Any]]) -> bool:
        """See :class:`StoppingRule`."""
        for sequence, of_agent in zip(self._sequences, wins, strict=True):
            sequence.update(of_agent)
        return all(sequence.width < self._width for sequence in self._sequences)

    def stopping(self, deals_at_most: int) -> Stopping:
        """For the report."""
        return _stopping("until_width", deals_at_most, width=self._width)


class SequentialTest:
    """Enough when one of two agents is better, or none by more than a margin.

    Args:
        margin: a fraction.
        alpha: the error rate of either decision.
        num_agents: of the run, which must be two.
        shares: as of :class:`UntilWidth`.

    Raises:
        ValueError: another number of agents, or a margin or an error rate not in (0, 1).
    """

    intervals: Intervals = AnytimeIntervals()
    p_values_hold = False

    def __init__(
        self, margin: float, alpha: float, num_agents: int, *, shares: bool = False
    ) -> None:
        if num_agents != 2:
            raise ValueError(f"a sequential test is of two agents, got {num_agents}")
        if not 0 < margin < 1:
            raise ValueError(f"the margin must lie between 0 and 100 points, got {100 * margin:g}")
        self._margin, self._alpha = margin, alpha
        self._test = ShareTest(alpha, margin) if shares else PairedWinTest(alpha, margin)

    def look(self, wins: Sequence[npt.NDArray[Any]]) -> bool:
        """See :class:`StoppingRule`."""
        self._test.update(*wins)
        return self._test.decision != "undecided"

    def stopping(self, deals_at_most: int) -> Stopping:
        """For the report."""
        return _stopping(
            "sequential",
            deals_at_most,
            margin=self._margin,
            alpha=self._alpha,
            decision=self._test.decision,
        )


class ShareTest:
    """The counterpart of ``PairedWinTest`` for shares of wins, at tables of Skirmish.

    An agent is better when the confidence sequence of the mean difference of shares lies on its
    side of 0, and both are equivalent when it lies within the margin; each is wrong with a
    probability of at most alpha.

    Args:
        alpha, margin: fractions in (0, 1).

    Raises:
        ValueError: one of them is not.
    """

    def __init__(self, alpha: float, margin: float) -> None:
        PairedWinTest(alpha, margin)  # the same conditions
        self.decision: Decision = "undecided"
        self._margin = margin
        self._difference = MeanSequence(-1, 1, 1 - alpha)

    def update(self, first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> None:
        """Add deals, and look whether they decide."""
        self._difference.update(first - second)
        low, high = self._difference.interval
        if low > 0:
            self.decision = "first"
        elif high < 0:
            self.decision = "second"
        elif -self._margin <= low and high <= self._margin:
            self.decision = "equivalent"


def _stopping(
    mode: str,
    deals_at_most: int,
    *,
    width: float | None = None,
    margin: float | None = None,
    alpha: float | None = None,
    decision: Decision | None = None,
) -> Stopping:
    return {
        "mode": mode,
        "deals_at_most": deals_at_most,
        "width": width,
        "margin": margin,
        "alpha": alpha,
        "decision": decision,
    }


def in_words(stopping: Stopping, deals: int, agents: Sequence[str]) -> str:
    """One line on how a run came to its number of deals, empty if that was fixed.

    Args:
        stopping: of the report.
        deals: that were played.
        agents: their names.
    """
    played = f"after {deals:,} of at most {stopping['deals_at_most']:,} deals"
    if stopping["width"] is not None:
        reached = "stopped" if deals < stopping["deals_at_most"] else "ended"
        return f"{reached} {played}, the win rates wanted to within {_points(stopping['width'])}"
    if stopping["margin"] is None or stopping["alpha"] is None:
        return ""
    found = {
        "first": f"{agents[0]} is better",
        "second": f"{agents[-1]} is better",
        "equivalent": f"equivalent, no difference of more than {_points(stopping['margin'])}",
        "undecided": "undecided",
    }[stopping["decision"] or "undecided"]
    rate = f"{100 * stopping['alpha']:g}%"
    return f"sequential test: {found}, {played}; either error has a probability of at most {rate}"


def interval_note(stopping: Stopping) -> str:
    """What the intervals of a report are, in a few words."""
    fixed = stopping["mode"] == "fixed"
    return "95% intervals" if fixed else "95% intervals, valid at every stop"


def _points(fraction: float) -> str:
    return f"{100 * fraction:g} points"
