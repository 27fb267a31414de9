"""Games for the replay viewer: positions of a record, and what agents think of each choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.advice import (
    DEFAULT_SAMPLES,
    Opinion,
    advise_all,
    advise_seats,
    opinions_of,
)
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.drawing import counted
from deck_of_spies_env.page.choosing import key_spies_in_words
from deck_of_spies_env.records import (
    GameRecord,
    SkirmishPosition,
    SkirmishRecord,
    SkirmishResult,
    SolitairePosition,
    SolitaireRecord,
    SolitaireResult,
    replay,
)
from deck_of_spies_env.records.replays import Position
from deck_of_spies_env.skirmish.actions import encode

_DIGITS = 4


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the k legal plays of a decision are worth, as far as it can be told.

    Attributes:
        values: float64 (k,).
        errors: float64 (k,), standard errors of the differences to the best, by sampling alone.
    """

    values: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decision:
    """A choice of one seat.

    Attributes:
        seat: who decides; 0 in Deck of Spies.
        plays: the k legal plays by name.
        actions: int64 (k,), their indices, ascending.
        made: the index of the one made.
        estimates: ``wins`` (probabilities) and ``key_spies`` in Deck of Spies, ``payoffs`` in
            Skirmish.
        opinions: one of each adviser of the game.
    """

    seat: int
    plays: tuple[str, ...]
    actions: npt.NDArray[np.int64]
    made: int
    estimates: Mapping[str, Estimate]
    opinions: tuple[Opinion, ...]


@dataclass(frozen=True, eq=False)
class ViewedGame:
    """A game as the viewer shows it.

    Attributes:
        title: one line.
        reason: why it is shown.
        record: of the game.
        advisers: names of the agents whose opinions are shown.
        positions: all of them, the end being the last.
        decisions: those made in each position; none at the end.
    """

    title: str
    reason: str
    record: GameRecord
    advisers: tuple[str, ...]
    positions: Sequence[Position] = field(repr=False)
    decisions: Sequence[Sequence[Decision]] = field(repr=False)


def view_game(
    record: GameRecord,
    advisers: Mapping[str, Agent],
    *,
    title: str,
    reason: str = "",
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
) -> ViewedGame:
    """Replay a game, estimate what its plays are worth, and ask agents what they think of them.

    Args:
        record: of the game.
        advisers: agents by name, for the record's rules and, in Skirmish, number of players.
        title, reason: as of :class:`ViewedGame`.
        samples: futures drawn of each play, at least 2, see ``advice``.
        seed: of these futures.

    Raises:
        RecordError: the record does not replay.
        ValueError: too few samples, or a bad seed.
    """
    if isinstance(record, SolitaireRecord):
        positions = list(replay(record))
        decisions = _of_solitaire(record, positions[:-1], advisers.values(), samples, seed)
    else:
        positions = list(replay(record))
        decisions = _of_skirmish(record, positions[:-1], advisers.values(), samples, seed)
    return ViewedGame(title, reason, record, tuple(advisers), positions, [*decisions, ()])


def _of_solitaire(
    record: SolitaireRecord,
    positions: Sequence[SolitairePosition],
    advisers: Iterable[Agent],
    samples: int,
    seed: int,
) -> list[list[Decision]]:
    """The decision of each position."""
    states = np.array([position.state for position in positions])
    observations = np.array([position.observation for position in positions])
    masks = np.array([position.action_mask for position in positions], np.bool_)
    advice = advise_all(None, states, record.rules, samples=samples, seed=seed)
    opinions = _opinions_of_all(advisers, observations, masks)
    decisions: list[list[Decision]] = []
    for position, one, said in zip(positions, advice, opinions, strict=True):
        estimates = {
            "wins": Estimate(one.wins, one.wins_errors),
            "key_spies": Estimate(one.key_spies, one.key_spies_errors),
        }
        made = cast(int, position.index)
        decisions.append([Decision(0, position.legal, one.actions, made, estimates, said)])
    return decisions


def _of_skirmish(
    record: SkirmishRecord,
    positions: Sequence[SkirmishPosition],
    advisers: Iterable[Agent],
    samples: int,
    seed: int,
) -> list[list[Decision]]:
    """The decisions of all seats in each position."""
    deciding = [
        (step, seat)
        for step, position in enumerate(positions)
        for seat in position.zones["participants"]
    ]
    observations = np.array([positions[step].observations[seat] for step, seat in deciding])
    masks = np.array([positions[step].action_masks[seat] for step, seat in deciding], np.bool_)
    advice = advise_seats(None, observations, record.rules, samples=samples, seed=seed)
    opinions = _opinions_of_all(advisers, observations, masks)
    decisions: list[list[Decision]] = [[] for _ in positions]
    for (step, seat), one, said in zip(deciding, advice, opinions, strict=True):
        position = positions[step]
        made = encode(cast(str, position.action).split()[seat])
        estimates = {"payoffs": Estimate(one.payoffs, one.errors)}
        legal = position.legal[seat]
        decisions[step].append(Decision(seat, legal, one.actions, made, estimates, said))
    return decisions


def _opinions_of_all(
    advisers: Iterable[Agent],
    observations: npt.NDArray[np.int8],
    masks: npt.NDArray[np.bool_],
) -> list[tuple[Opinion, ...]]:
    """What all advisers think of each of N decisions."""
    of_each = [opinions_of(agent, observations, masks) for agent in advisers]
    return list(zip(*of_each, strict=True)) if of_each else [()] * len(masks)


# --- In the page ---


def to_data(game: ViewedGame) -> dict[str, Any]:
    """A game in JSON's terms, as the viewer reads it: cards are texts with blanks between them."""
    record = game.record
    number = f"Deal of seed {record.seed}, episode {record.episode}"
    data: dict[str, Any] = {
        "game": record.game,
        "title": game.title,
        "reason": game.reason,
        "deal": number if record.start is None else f"{number}, from a given start",
        "players": list(record.players),
        "advisers": list(game.advisers),
        "positions": [
            {"turn": turn, **_position_data(position, decisions)}
            for turn, position, decisions in zip(
                _turns(game.positions), game.positions, game.decisions, strict=True
            )
        ],
    }
    if isinstance(record, SolitaireRecord):
        data["key_spies_to_win"] = record.rules.key_spies_to_win
        return data | {"ending": _solitaire_ending(record.result)}
    endings = list(map(_seat_ending, record.result.payoffs, record.result.totals))
    return data | {"ending": _skirmish_ending(record.result), "endings": endings}


_OUTCOMES = {"win": "a win", "loss": "a loss", "no_double_agent": "a loss, no Ace was left"}


def _solitaire_ending(result: SolitaireResult) -> str:
    return f"{_OUTCOMES[result.outcome]}, with {key_spies_in_words(result.key_spies)}"


def _skirmish_ending(result: SkirmishResult) -> str:
    cut = ", cut off by the round limit" if result.truncated else ""
    return f"{counted(result.rounds, 'round')}{cut}"


def _seat_ending(payoff: float, total: int) -> str:
    return f"payoff {payoff:+.2f}, {counted(total, 'point')}"


def _turns(positions: Sequence[Position]) -> list[int]:
    """The turn, in Skirmish the round, that each position belongs to; the first is 1."""
    turn, turns = 0, []
    for position in positions:
        if isinstance(position, SkirmishPosition):
            turn = int(position.state["rounds"]) + 1
        elif position.phase == "act":
            turn += 1
        turns.append(turn)
    return turns


def _position_data(position: Position, decisions: Sequence[Decision]) -> dict[str, Any]:
    return {
        "phase": position.phase,
        "zones": {
            name: _joined(value)
            for name, value in position.zones.items()
            if name not in {"phase", "participants"}
        },
        "decisions": [_decision_data(decision) for decision in decisions],
    }


def _joined(value: Any) -> Any:
    """Cards of a pile as one text, and those of several seats as a list of texts."""
    if value is None or isinstance(value, str):
        return value or ""
    if all(isinstance(card, str) for card in value):
        return " ".join(value)
    return [_joined(of_seat) for of_seat in value]


def _decision_data(decision: Decision) -> dict[str, Any]:
    return {
        "seat": decision.seat,
        "plays": list(decision.plays),
        "made": _place(decision, decision.made),
        "estimates": {
            name: {"values": _rounded(estimate.values), "errors": _rounded(estimate.errors)}
            for name, estimate in decision.estimates.items()
        },
        "opinions": [
            {
                "chosen": _place(decision, cast(int, opinion.chosen)),
                "probabilities": _rounded(opinion.probabilities),
                "values": _rounded(opinion.own_values),
            }
            for opinion in decision.opinions
        ],
    }


def _place(decision: Decision, action: int) -> int:
    """The place of a legal action among them."""
    return int(np.searchsorted(decision.actions, action))


def _rounded(values: npt.NDArray[np.float64] | None) -> list[float | None] | None:
    """With a digit more than is shown; what is no number becomes None."""
    if values is None:
        return None
    return [round(value, _DIGITS) if isfinite(value) else None for value in values.tolist()]
