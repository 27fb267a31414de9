"""The measured figures as markdown, from the contents of the JSON file alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from benchmarks.measuring import Record, Spread, seconds_per_step, speeds, spread

NANOSECONDS = 1e9
LEAST_GAMES_FOR_MEMORY = 1024
"""With fewer, what a process needs anyway hides what the games need."""
INTRODUCTION = """\
# Benchmarks

Made by `{command}`. All contenders of a group take turns in {rounds} rounds, each in a process of
its own and one at a time, after a warm-up. Figures are medians over the rounds with the lowest and
the highest; a ratio is the median of the ratios of single rounds, and above 1 where ours is faster.
*CPU second* counts all threads and processes of a contender, *wall second* the time that passes. A
contender of one thread is kept to one core. Nothing is tuned for ours alone: peers have the best
settings found for them, and where several are tried the fastest counts. *Asked* and *aim* are what
the project set itself before it measured.
"""
WITHOUT_ROUNDS = "several"


def render(results: Record) -> str:
    """The whole report."""
    groups: dict[str, Record] = results["groups"]
    rounds = {str(group["settings"]["rounds"]) for group in groups.values()}
    parts = [
        INTRODUCTION.format(
            command="python -m benchmarks",
            rounds=rounds.pop() if len(rounds) == 1 else WITHOUT_ROUNDS,
        ),
        "## Asked for and measured\n",
        requirements_table(results),
    ]
    for group in groups.values():
        parts += _group(group)
    parts += ["## Left out\n", _left_out(groups), "## Circumstances\n", _circumstances(groups)]
    return "\n".join(parts)


def requirements_table(results: Record) -> str:
    """What is asked for beside what was measured."""
    rows = []
    for group in results["groups"].values():
        rows += [_requirement(record) for record in group["comparisons"] if record["least"]]
        rows += [_share_requirement(record) for record in group["shares"] if record["at_most"]]
    head = ("workload", "beside", "asked", "aim", "per CPU second", "per wall second", "verdict")
    return _table(head, "llrrrrl", rows)


def verdict(measured: Sequence[float], asked: float, aim: float, *, at_most: bool = False) -> str:
    """How the worst of the figures stands to what is asked."""
    sign = -1.0 if at_most else 1.0
    worst = min(sign * value for value in measured)
    if worst >= sign * aim:
        return "aim reached"
    return "met" if worst >= sign * asked else "missed"


def _requirement(record: Record) -> list[str]:
    row = [
        record["workload"],
        record["peer"],
        f"at least {record['least']:g}x",
        f"{record['aim']:g}x",
    ]
    if "missing" in record:
        return [*row, "", "", f"not measured: no {record['missing']}"]
    cpu, wall = (Spread(**record[clock]["whole"]) for clock in ("cpu", "wall"))
    judged = verdict((cpu.median, wall.median), record["least"], record["aim"])
    return [*row, _times(cpu.median), _times(wall.median), judged]


def _share_requirement(record: Record) -> list[str]:
    row = [record["workload"], "", f"at most {record['at_most']:.0%}", f"{record['aim']:.0%}"]
    if "missing" in record:
        return [*row, "", "", f"not measured: no {record['missing']}"]
    share = record["share"]["median"]
    judged = verdict((share,), record["at_most"], record["aim"], at_most=True)
    return [*row, f"{share:.1%}", "", judged]


def _group(group: Record) -> list[str]:
    parts = [f"## {group['title']}\n", f"{group['counted']}\n"]
    if group["contenders"]:
        parts.append(_speed_table(group["contenders"]))
    compared = [record for record in group["comparisons"] if "missing" not in record]
    if compared:
        parts.append(_ratio_table(compared))
    shares = [record for record in group["shares"] if "missing" not in record]
    if shares:
        parts.append(_share_table(shares))
    memory = [one for one in group["contenders"] if _tells_memory(one)]
    if memory and group["title"] == "Scaling":
        parts.append(_memory_table(memory))
    return parts


def _speed_table(contenders: Iterable[Record]) -> str:
    head = (
        "contender",
        "made by",
        "steps per CPU second",
        "lowest-highest",
        "steps per wall second",
        "CPU ns per step",
        "choice, ns",
        "resets",
    )
    return _table(head, "llrrrrrr", [_speed_row(contender) for contender in contenders])


def _speed_row(contender: Record) -> list[str]:
    cpu = spread(speeds(contender, "cpu"))
    wall = spread(speeds(contender, "wall"))
    choices = [
        NANOSECONDS * one["choice_cpu"] / one["choice_steps"]
        for one in contender["rounds"]
        if "choice_steps" in one
    ]
    per_step = [NANOSECONDS * (seconds_per_step(one, "cpu") or 0.0) for one in contender["rounds"]]
    return [
        contender["name"],
        contender["made_by"],
        f"{cpu.median:,.0f}",
        f"{cpu.low:,.0f}-{cpu.high:,.0f}",
        f"{wall.median:,.0f}",
        _figure(median(per_step)),
        _figure(median(choices)) if choices else "",
        f"{contender['share_of_resets']:.1%}" if contender["share_of_resets"] else "",
    ]


def _ratio_table(comparisons: Iterable[Record]) -> str:
    head = (
        "ours",
        "beside",
        "per CPU second",
        "lowest-highest",
        "per wall second",
        "env only, CPU",
        "env only, wall",
    )
    return _table(head, "llrrrrr", [_ratio_row(record) for record in comparisons])


def _ratio_row(record: Record) -> list[str]:
    cpu, wall = (Spread(**record[clock]["whole"]) for clock in ("cpu", "wall"))
    env_only = [record[clock]["env_only"] for clock in ("cpu", "wall")]
    decisions = ", per decision" if record["per"] == "decisions" else ""
    return [
        f"{record['ours']}{decisions}",
        record["cpu"]["beside"],
        f"**{_times(cpu.median)}**",
        f"{_times(cpu.low)}-{_times(cpu.high)}",
        _times(wall.median),
        *(_times(found["median"]) if found else "" for found in env_only),
    ]


def _share_table(shares: Iterable[Record]) -> str:
    rows = [
        [
            record["ours"],
            f"{record['share']['median']:.1%}",
            f"{record['share']['low']:.1%}-{record['share']['high']:.1%}",
        ]
        for record in shares
    ]
    head = ("learner", "CPU time in the environment", "lowest-highest")
    return _table(head, "lrr", rows)


def _tells_memory(contender: Record) -> bool:
    enough = contender["games"] >= LEAST_GAMES_FOR_MEMORY
    return enough and "array_bytes_per_game" in contender["facts"]


def _memory_table(contenders: Iterable[Record]) -> str:
    rows = [
        [
            contender["name"],
            f"{contender['facts']['array_bytes_per_game']:,.0f}",
            f"{contender['facts']['resident_bytes_per_game']:,.0f}",
        ]
        for contender in contenders
    ]
    head = ("memory", "bytes of arrays per game", "growth of the process, bytes per game")
    return _table(head, "lrr", rows)


def _left_out(groups: Record) -> str:
    lines = [
        f"- {name}: {why}" for group in groups.values() for name, why in group["left_out"].items()
    ]
    return "\n".join(lines or ["Nothing."]) + "\n"


def _circumstances(groups: Record) -> str:
    rows = []
    for name, group in groups.items():
        found = group["circumstances"]
        settings = group["settings"]
        versions = ", ".join(
            f"{library} {version}" for library, version in found["versions"].items()
        )
        rows.append(
            [
                name,
                found["date"],
                found["commit"],
                f"{found['cpu']}, {found['cores']} cores",
                f"{settings['rounds']} x {settings['seconds']:g} s",
                f"`{found['command']}`",
                versions,
            ]
        )
    head = ("group", "date", "commit", "processor", "rounds", "command", "versions")
    return _table(head, "lllllll", rows)


def _times(ratio: float) -> str:
    return f"{_figure(ratio)}x"


def _figure(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(head: Sequence[str], alignment: str, rows: Sequence[Sequence[Any]]) -> str:
    ruler = "|".join("---:" if side == "r" else "---" for side in alignment)
    lines = [f"| {' | '.join(head)} |", f"|{ruler}|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"
