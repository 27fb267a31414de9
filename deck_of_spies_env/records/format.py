"""What a record of a game holds, and its one line of JSON.

A game is given by its deal, its rules and the actions taken, so no position is kept: replaying the
actions gives them all. How it ended is kept nevertheless, to check the replay by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from reprlib import Repr
from typing import Any, ClassVar, Generic, TypeVar, cast

from deck_of_spies_env import __version__
from deck_of_spies_env.skirmish.rules import MAX_PLAYERS, MIN_PLAYERS
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules as SolitaireRules

FORMAT = 1
"""The number of the format. It goes up with every change to what a line holds or means."""

OPENING = b'{"format"'
"""How the line of a record begins."""

_EPISODE_LIMIT = 1 << 63  # they are counted in 64 bits
_FIELDS = (
    *("format", "version", "game", "rules", "seed", "episode", "start"),
    *("players", "actions", "result"),
)

_RulesT = TypeVar("_RulesT", SolitaireRules, SkirmishRules)
_ResultT = TypeVar("_ResultT")

_brief = Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 60


class RecordError(ValueError):
    """What should be a record of a game is none, or does not replay."""


@dataclass(frozen=True)
class SolitaireResult:
    """How a game of Deck of Spies ended, as the environment's last info says it.

    Attributes:
        outcome: ``"win"``, ``"loss"`` or ``"no_double_agent"`` (D8).
        key_spies: those that count.
        turns: spies dealt with.
    """

    outcome: str
    key_spies: int
    turns: int


@dataclass(frozen=True)
class SkirmishResult:
    """How a game of Skirmish ended.

    Attributes:
        payoffs: of each seat (S12).
        totals: points that each seat holds, 0 for those eliminated.
        rounds: how many were played.
        truncated: whether the round limit (S10) cut the game off.
    """

    payoffs: tuple[float, ...]
    totals: tuple[int, ...]
    rounds: int
    truncated: bool


@dataclass(frozen=True, kw_only=True)
class _Record(Generic[_RulesT, _ResultT]):
    """What records of both games hold.

    Attributes:
        rules: that were played.
        seed, episode: the deal.
        players: the name of whoever played, by seat.
        actions: by name, in the order played; one text a step.
        result: how the game ended.
        start: where it began if it did not begin with a deal, in JSON's terms; else None.
        version: of the package that wrote the record.
        source: the file and line that it was read from, for messages.
    """

    rules: _RulesT
    seed: int
    players: tuple[str, ...]
    actions: tuple[str, ...]
    result: _ResultT
    episode: int = 0
    start: Mapping[str, Any] | None = None
    version: str = __version__
    source: str = field(default="", compare=False, repr=False)
    game: ClassVar[str]

    @property
    def num_players(self) -> int:
        """The number of seats."""
        return len(self.players)

    def error(self, why: str) -> RecordError:
        """What to raise where the record is at fault."""
        return RecordError(_at(self.source, why))


class SolitaireRecord(_Record[SolitaireRules, SolitaireResult]):
    """A game of Deck of Spies: one player, actions such as ``recruit Ah 4d 4h`` and ``pass``.

    ``start`` is what the environment's ``start=`` takes.
    """

    game: ClassVar[str] = "deck_of_spies"


class SkirmishRecord(_Record[SkirmishRules, SkirmishResult]):
    """A game of Skirmish: 2-4 players; in each step all seats choose, as in ``K 3 wait``.

    ``start`` is what the environment's ``options["table"]`` takes.
    """

    game: ClassVar[str] = "skirmish"


GameRecord = SolitaireRecord | SkirmishRecord

Write = Callable[[GameRecord], None]
"""Takes records one by one."""


def plain(value: Any) -> Any:
    """A start in JSON's terms: mappings as dicts, and all other collections as lists."""
    if isinstance(value, Mapping):
        named = cast(Mapping[str, Any], value)
        return {name: plain(inner) for name, inner in named.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(inner) for inner in cast(Iterable[Any], value)]
    return value


def to_line(record: GameRecord) -> bytes:
    """A record as one line of JSON, its end included."""
    document = {
        "format": FORMAT,
        "version": record.version,
        "game": record.game,
        "rules": asdict(record.rules),
        "seed": record.seed,
        "episode": record.episode,
        "start": plain(record.start),
        "players": record.players,
        "actions": record.actions,
        "result": asdict(record.result),
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def from_line(line: bytes, source: str = "") -> GameRecord:
    """The record that a line of JSON holds; whether it replays is not looked at.

    Args:
        line: with its end or without.
        source: the file and line for messages.

    Raises:
        RecordError: no record of this format; the message says where and why.
    """
    try:
        return _read(parsed(line), source)
    except RecordError as error:
        raise RecordError(_at(source, str(error))) from None


def parsed(line: bytes) -> Any:
    """What a line of JSON holds.

    Raises:
        RecordError: no JSON.
    """
    try:
        return json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError among them
        raise RecordError(f"no record of a game: not JSON: {_brief.repr(line)}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _at(source: str, why: str) -> str:
    return f"{source}: {why}" if source else why


# --- Reading, with checks of all that a hand may have changed ---


def _read(document: Any, source: str) -> GameRecord:
    if not isinstance(document, dict) or "format" not in document:
        raise RecordError("no record of a game: it has no format number")
    found: dict[str, Any] = document
    number = found["format"]
    if type(number) is not int or number != FORMAT:
        raise RecordError(f"format {_brief.repr(number)} is not known, only format {FORMAT}")
    _check_names(found, _FIELDS, "")
    if found["game"] == SolitaireRecord.game:
        return _read_solitaire(found, source)
    if found["game"] == SkirmishRecord.game:
        return _read_skirmish(found, source)
    known = f"{SolitaireRecord.game}, {SkirmishRecord.game}"
    raise RecordError(f"unknown game {_brief.repr(found['game'])}; there are {known}")


def _read_solitaire(found: dict[str, Any], source: str) -> SolitaireRecord:
    result = _result(found, SolitaireResult)
    return SolitaireRecord(
        rules=_rules(found, SolitaireRules),
        result=SolitaireResult(
            outcome=_take(result, "outcome", str),
            key_spies=_take(result, "key_spies", int),
            turns=_take(result, "turns", int),
        ),
        source=source,
        **_common(found, range(1, 2)),
    )


def _read_skirmish(found: dict[str, Any], source: str) -> SkirmishRecord:
    result = _result(found, SkirmishResult)
    return SkirmishRecord(
        rules=_rules(found, SkirmishRules),
        result=SkirmishResult(
            payoffs=tuple(map(float, _each(result, "payoffs", (int, float)))),
            totals=_each(result, "totals", int),
            rounds=_take(result, "rounds", int),
            truncated=_take(result, "truncated", bool),
        ),
        source=source,
        **_common(found, range(MIN_PLAYERS, MAX_PLAYERS + 1)),
    )


def _common(found: dict[str, Any], seats: range) -> dict[str, Any]:
    """The fields that both games share."""
    players = _each(found, "players", str)
    if len(players) not in seats:
        wanted = f"{seats[0]} to {seats[-1]} names" if len(seats) > 1 else "one name"
        raise RecordError(f"players must list {wanted}, got {len(players)}")
    start = found["start"]
    if start is not None and not isinstance(start, dict):
        raise RecordError(f"start must be an object or null, got {_brief.repr(start)}")
    return {
        "seed": _natural(found, "seed", None),
        "episode": _natural(found, "episode", _EPISODE_LIMIT),
        "start": cast(Mapping[str, Any] | None, start),
        "players": players,
        "actions": _each(found, "actions", str),
        "version": _take(found, "version", str),
    }


def _rules(found: dict[str, Any], kind: type[_RulesT]) -> _RulesT:
    written = _take(found, "rules", dict)
    _check_names(written, [one.name for one in fields(kind)], "rules: ")
    try:
        return kind.of(written)
    except ValueError as error:
        raise RecordError(str(error)) from None


def _result(found: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    written = _take(found, "result", dict)
    _check_names(written, [one.name for one in fields(kind)], "result: ")
    return written


def _check_names(found: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Raise RecordError unless exactly these fields are there."""
    known = list(names)
    for name in known:
        if name not in found:
            raise RecordError(f"{where}{name} is missing")
    for name in found:
        if name not in known:
            raise RecordError(
                f"{where}unknown field {_brief.repr(name)}; there are {', '.join(known)}"
            )


_KINDS: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    (int, float): "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; a truth value is no number."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _take(found: Mapping[str, Any], name: str, kind: Any) -> Any:
    if not _is(found[name], kind):
        raise RecordError(f"{name} must be {_KINDS[kind]}, got {_brief.repr(found[name])}")
    return found[name]


def _each(found: Mapping[str, Any], name: str, kind: Any) -> tuple[Any, ...]:
    for value in _take(found, name, list):
        if not _is(value, kind):
            raise RecordError(f"{name} must hold {_KINDS[kind]} each, got {_brief.repr(value)}")
    return tuple(found[name])


def _natural(found: Mapping[str, Any], name: str, limit: int | None) -> int:
    number = _take(found, name, int)
    if number < 0 or (limit is not None and number >= limit):
        below = "" if limit is None else f" below {limit}"
        raise RecordError(f"{name} must be at least 0{below}, got {_brief.repr(number)}")
    return number
