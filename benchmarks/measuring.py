"""Interleaved rounds, and the arithmetic of what they give: medians, ratios, shares."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks.workers import LeftOutError, Slice, Worker
from benchmarks.workloads import Comparison, Contender, Group, Share

CLOCKS = ("cpu", "wall")

Record = dict[str, Any]
"""Plain data, as it goes into the JSON file."""


class Spread(NamedTuple):
    """Median of the rounds, with the lowest and the highest."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Median, lowest and highest of one or more values."""
    return Spread(median(values), min(values), max(values))


def seconds_per_step(one: Slice, clock: str, *, env_only: bool = False) -> float | None:
    """Seconds of a slice for each step; without those of the choice if it is timed apart.

    Args:
        one: slice.
        clock: ``"cpu"`` or ``"wall"``.
        env_only: take the choice off. None if it was not timed, or if nothing is left.
    """
    whole = one[clock] / one["steps"]
    if not env_only:
        return whole
    if "choice_steps" not in one:
        return None
    rest = whole - one[f"choice_{clock}"] / one["choice_steps"]
    return rest if rest > 0 else None


def speeds(contender: Record, clock: str) -> list[float]:
    """Steps per second in each round."""
    return [one["steps"] / one[clock] for one in contender["rounds"]]


def ratios(
    ours: Record, peer: Record, clock: str, *, per: str = "steps", env_only: bool = False
) -> list[float] | None:
    """How many times as fast ours is, round by round; None where it can't be told."""
    factor = 1.0
    if per == "decisions":
        factor = _decisions(ours) / _decisions(peer)
    found = []
    for one, other in zip(ours["rounds"], peer["rounds"], strict=True):
        fast = seconds_per_step(one, clock, env_only=env_only)
        slow = seconds_per_step(other, clock, env_only=env_only)
        if fast is None or slow is None:
            return None
        found.append(factor * slow / fast)
    return found


def _decisions(contender: Record) -> float:
    """Of the steps, those that play an action."""
    return 1.0 - contender["share_of_resets"]


def fastest(contenders: Sequence[Record], clock: str) -> Record:
    """The contender with the highest median speed."""
    return max(contenders, key=lambda contender: median(speeds(contender, clock)))


def compare(comparison: Comparison, contenders: Sequence[Record]) -> Record:
    """The ratios of a comparison by clock, or why there are none (``missing``)."""
    found = {contender["name"]: contender for contender in contenders}
    record: Record = {
        "workload": comparison.workload,
        "ours": comparison.ours,
        "peer": comparison.peer,
        "per": comparison.per,
        "least": comparison.least,
        "aim": comparison.aim,
    }
    peers = [found[name] for name in comparison.beside if name in found]
    if comparison.ours not in found or not peers:
        record["missing"] = comparison.peer if comparison.ours in found else comparison.ours
        return record
    ours = found[comparison.ours]
    for clock in CLOCKS:
        peer = fastest(peers, clock)
        whole = ratios(ours, peer, clock, per=comparison.per)
        env_only = ratios(ours, peer, clock, per=comparison.per, env_only=True)
        record[clock] = {
            "beside": peer["name"],
            "whole": spread(whole)._asdict() if whole else None,
            "env_only": spread(env_only)._asdict() if env_only else None,
        }
    return record


def take_share(share: Share, contenders: Sequence[Record]) -> Record:
    """The environment's part of a contender's CPU time, or that it is missing."""
    record: Record = {
        "workload": share.workload,
        "ours": share.contender,
        "at_most": share.at_most,
        "aim": share.aim,
    }
    for contender in contenders:
        if contender["name"] == share.contender:
            parts = [one["env_cpu"] / one["cpu"] for one in contender["rounds"]]
            return {**record, "share": spread(parts)._asdict()}
    return {**record, "missing": share.contender}


Start = Callable[[Contender], Any]
"""Makes a worker, or raises LeftOutError."""


def measure(group: Group, rounds: int, start: Start) -> Record:
    """Time all contenders of a group in turn, round by round.

    Every round begins with another contender, so that none always follows the same one.

    Returns:
        ``contenders`` with their rounds, ``left_out`` with the reasons, ``comparisons`` and
        ``shares``.
    """
    workers: dict[str, Worker] = {}
    left_out: dict[str, str] = {}
    slices: dict[str, list[Slice]] = {}
    try:
        for contender in group.contenders:
            try:
                workers[contender.name] = start(contender)
                slices[contender.name] = []
            except LeftOutError as error:
                left_out[contender.name] = str(error)
                _say(f"{contender.name} is left out: {error}")
        for number in range(rounds):
            _say(f"{group.title}: round {number + 1} of {rounds}")
            for name in _turned(list(workers), number):
                try:
                    slices[name].append(workers[name].run())
                except LeftOutError as error:
                    left_out[name] = f"{error} (in round {number + 1})"
                    _say(f"{name} is left out: {left_out[name]}")
                    workers.pop(name).close()
        contenders = [
            _record(contender, workers[contender.name].facts, slices[contender.name])
            for contender in group.contenders
            if contender.name in workers
        ]
    finally:
        for worker in workers.values():
            worker.close()
    return {
        "title": group.title,
        "counted": group.counted,
        "contenders": contenders,
        "left_out": left_out,
        "comparisons": [compare(comparison, contenders) for comparison in group.comparisons],
        "shares": [take_share(share, contenders) for share in group.shares],
    }


def _turned(names: list[str], number: int) -> list[str]:
    """The names, beginning with another one in each round."""
    first = number % len(names) if names else 0
    return names[first:] + names[:first]


def _record(contender: Contender, facts: dict[str, float], rounds: list[Slice]) -> Record:
    share_of_resets = facts["share_of_resets"]
    return {
        "name": contender.name,
        "made_by": contender.made_by,
        "games": contender.games,
        "one_core": contender.one_core,
        "plotted": contender.plotted,
        "ours": contender.ours,
        "share_of_resets": share_of_resets,
        "facts": {name: value for name, value in facts.items() if name != "share_of_resets"},
        "rounds": rounds,
    }


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
