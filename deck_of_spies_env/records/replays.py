"""Playing records again: the positions of a game, each action and the result being checked."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from reprlib import repr as brief
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.records.format import (
    GameRecord,
    SkirmishRecord,
    SkirmishResult,
    SolitaireRecord,
    SolitaireResult,
)
from deck_of_spies_env.skirmish import actions as skirmish_actions
from deck_of_spies_env.skirmish.games import Games as SkirmishGames
from deck_of_spies_env.skirmish.games import compile_engine as compile_skirmish
from deck_of_spies_env.skirmish.positions import table_of
from deck_of_spies_env.skirmish.rendering import render_ansi as render_skirmish
from deck_of_spies_env.skirmish.rules import PHASES as SKIRMISH_PHASES
from deck_of_spies_env.skirmish.tables import deal_or_start, start_from_options
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.explanations import why_illegal
from deck_of_spies_env.solitaire.games import Games as SolitaireGames
from deck_of_spies_env.solitaire.games import compile_engine as compile_solitaire
from deck_of_spies_env.solitaire.positions import zones_of
from deck_of_spies_env.solitaire.rendering import render_ansi as render_solitaire
from deck_of_spies_env.solitaire.rules import PHASES as SOLITAIRE_PHASES
from deck_of_spies_env.solitaire.rules import Rules as SolitaireRules


@dataclass(frozen=True, eq=False)
class SolitairePosition:
    """A position of Deck of Spies, and the action taken in it.

    Attributes:
        state: record of dtype STATE.
        rules: the rule set.
        observation: int8 (d,).
        action_mask: int8 (n,); all 0 at the end.
        reward: of the step that led here, 0 at the beginning.
        action: what was done, by name; None at the end.
        index: of that action; None at the end.
    """

    state: Any
    rules: SolitaireRules
    observation: npt.NDArray[np.int8]
    action_mask: npt.NDArray[np.int8]
    reward: float
    action: str | None
    index: int | None

    @property
    def zones(self) -> dict[str, tuple[str, ...]]:
        """The cards of each zone, sorted; as ``zones()`` of the environment."""
        return zones_of(self.state)

    @property
    def phase(self) -> str:
        """``"act"``, ``"retire"`` or ``"over"``."""
        return SOLITAIRE_PHASES[int(self.state["phase"])]

    @property
    def legal(self) -> tuple[str, ...]:
        """The legal actions by name."""
        table, hand = action_table(self.rules.hand_size), int(self.state["hand"])
        legal = np.flatnonzero(self.action_mask).tolist()
        named = [table.decode(action, hand) for action in legal]
        return tuple(" ".join((kind, *cards)) for kind, cards in named)

    def render(self) -> str:
        """The table as text."""
        return render_solitaire(self.state, self.rules)


@dataclass(frozen=True, eq=False)
class SkirmishPosition:
    """A position of Skirmish, and the choices made in it; for spectators, as it shows all cards.

    Attributes:
        state: record of dtype STATE.
        num_players: n.
        observations: int8 (n, d).
        action_masks: int8 (n, 15); all 0 at the end.
        rewards: float64 (n,), of the step that led here.
        action: what all seats did, such as ``K 3 wait``; None at the end.
    """

    state: Any
    num_players: int
    observations: npt.NDArray[np.int8]
    action_masks: npt.NDArray[np.int8]
    rewards: npt.NDArray[np.float64]
    action: str | None

    @property
    def zones(self) -> dict[str, Any]:
        """All cards, as ``table()`` of the environment."""
        return table_of(self.state, self.num_players)

    @property
    def phase(self) -> str:
        """``"skirmish"``, ``"war"`` or ``"over"``."""
        return SKIRMISH_PHASES[int(self.state["phase"])]

    @property
    def legal(self) -> tuple[tuple[str, ...], ...]:
        """The legal actions of each seat by name."""
        return tuple(
            tuple(map(skirmish_actions.decode, np.flatnonzero(mask).tolist()))
            for mask in self.action_masks
        )

    def render(self) -> str:
        """The table as text."""
        return render_skirmish(self.state, self.num_players)


Position = SolitairePosition | SkirmishPosition


@overload
def replay(record: SolitaireRecord) -> Iterator[SolitairePosition]: ...
@overload
def replay(record: SkirmishRecord) -> Iterator[SkirmishPosition]: ...
def replay(record: GameRecord) -> Iterator[Position]:
    """The positions of a game from its beginning to its end, the last one being without an action.

    Whoever takes them all has the record checked: each action is legal where it was taken, the game
    is over after the last one, and the result is that of the record.

    Raises:
        RecordError: when the replay comes to what is wrong; the message names file and line.
    """
    if isinstance(record, SolitaireRecord):
        return replay_solitaire(record)
    return _replay_skirmish(record)


def replay_solitaire(
    record: SolitaireRecord,
    objective: str | Mapping[str, float] = "win",
    observation: str = "recall",
) -> Iterator[SolitairePosition]:
    """As :func:`replay`, with rewards and observations as the environment would give them.

    Raises:
        ValueError: an unknown objective or observation.
        RecordError: as replay.
    """
    compile_solitaire()
    with _blaming(record):
        games = SolitaireGames(
            1,
            objective=objective,
            observation=observation,
            rules=record.rules,
            start=record.start,
        )
        _seed(games, record)
    games.deal()
    reward = 0.0

    def position(action: str | None, index: int | None) -> SolitairePosition:
        shown = games.observations[0].copy(), games.masks[0].copy()
        return SolitairePosition(games.states[0].copy(), games.rules, *shown, reward, action, index)

    for number, action in enumerate(record.actions):
        with _blaming_action(record, number, games):
            index = _solitaire_index(games, action)
        yield position(action, index)
        games.step(np.array([index]))
        reward = float(games.rewards[0])
    _check_over(record, games)
    ending = {key: column.tolist()[0] for key, column in games.endings().items()}
    result = SolitaireResult(ending["outcome"], ending["key_spies"], ending["turns"])
    _check_result(record, result)
    yield position(None, None)


def _replay_skirmish(record: SkirmishRecord) -> Iterator[SkirmishPosition]:
    n = record.num_players
    compile_skirmish(n)
    with _blaming(record):
        games = SkirmishGames(1, n, rules=record.rules)
        start = start_from_options({"table": record.start}, n, record.rules)
        _seed(games, record)
    deal_or_start(games, None, start)
    rewards = np.zeros(n)

    def position(action: str | None) -> SkirmishPosition:
        shown = games.observations[0].copy(), games.masks[0].copy()
        return SkirmishPosition(games.states[0].copy(), n, *shown, rewards, action)

    for number, action in enumerate(record.actions):
        with _blaming_action(record, number, games):
            joint = _joint_action(games, action)
        yield position(action)
        games.step(joint)
        rewards = games.rewards[0].copy()
    _check_over(record, games)
    endings = games.endings()
    result = SkirmishResult(
        payoffs=tuple(rewards.tolist()),
        totals=tuple(endings["total"][0].tolist()),
        rounds=int(endings["rounds"][0, 0]),
        truncated=bool(endings["truncated"][0]),
    )
    _check_result(record, result)
    yield position(None)


_Games = SolitaireGames | SkirmishGames


def _seed(games: _Games, record: GameRecord) -> None:
    """Make the record's deal the next one; it does not depend on the episodes before."""
    games.seed([0], [record.seed])
    games.streams["episode"] = record.episode - 1


def _solitaire_index(games: SolitaireGames, action: str) -> int:
    """The index of a legal action given by name.

    Raises:
        ValueError: no action, or none that is legal now.
    """
    kind, *cards = action.split() or [""]
    index = games.table.encode(kind, cards, int(games.states["hand"][0]))
    if not games.masks[0, index]:
        raise ValueError(why_illegal(games.states[0], games.rules, index))
    return index


def _joint_action(games: SkirmishGames, action: str) -> npt.NDArray[np.int64]:
    """Legal actions of all seats, int64 (1, n), given by name.

    Raises:
        ValueError: not one for each seat, or one that is not legal now.
    """
    choices = action.split()
    if len(choices) != games.num_players:
        raise ValueError(f"{len(choices)} choices for {games.num_players} seats")
    joint = np.array([[skirmish_actions.encode(choice) for choice in choices]])
    for seat, choice in enumerate(joint[0].tolist()):
        if not games.masks[0, seat, choice]:
            why = skirmish_actions.why_illegal(games.states[0], seat, choice)
            raise ValueError(f"seat {seat}: {why}")
    return joint


@contextmanager
def _blaming(record: GameRecord, where: str = "") -> Generator[None]:
    """Make every complaint a RecordError of the record."""
    try:
        yield
    except ValueError as error:
        raise record.error(where + str(error)) from None


@contextmanager
def _blaming_action(record: GameRecord, number: int, games: _Games) -> Generator[None]:
    """Likewise for the action of a number, which comes too late once the game is over."""
    total = len(record.actions)
    if _is_over(games):
        raise record.error(f"the game is over after {number} of its {total} actions")
    with _blaming(record, f"action {number + 1} of {total}, {brief(record.actions[number])}: "):
        yield


def _is_over(games: _Games) -> bool:
    """Masks allow nothing at the end, and only there."""
    return not games.masks[0].any()


def _check_over(record: GameRecord, games: _Games) -> None:
    if not _is_over(games):
        raise record.error(f"the game is not over after its {len(record.actions)} actions")


def _check_result(record: GameRecord, replayed: SolitaireResult | SkirmishResult) -> None:
    """Compare how the game ended with what the record says."""
    written = asdict(record.result)
    for name, value in asdict(replayed).items():
        if written[name] != value:
            raise record.error(
                f"the game does not end as written: {name} is {brief(value)}, "
                f"not {brief(written[name])}"
            )
