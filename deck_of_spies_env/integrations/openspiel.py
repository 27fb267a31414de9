"""OpenSpiel: small decks of Skirmish for two as a Python game, to be solved.

``load_small_skirmish()`` is a simultaneous-move game with explicit chance, over the kernels of
play. ``pyspiel.convert_to_turn_based`` makes of it what CFR+ and NashConv take. Positions are told
apart up to suits, so a chance outcome stands for all that differ in suits alone.
"""

# pyright: reportUntypedBaseClass=false
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyspiel as _pyspiel

from deck_of_spies_env.skirmish import rules as rules_module
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS, decode, encode
from deck_of_spies_env.skirmish.chance import deals_of, outcomes_of
from deck_of_spies_env.skirmish.games import show_states, write_payoffs_of
from deck_of_spies_env.skirmish.observations import observation_high, observation_layout
from deck_of_spies_env.skirmish.rules import Rules

pyspiel: Any = _pyspiel  # it comes without types
NUM_PLAYERS = 2
SHORT_NAME = "python_small_skirmish"
DEFAULTS: dict[str, Any] = {
    "ranks": "AJK",
    "num_suits": 2,
    "num_jokers": 1,
    "recycle_captures": True,
    "max_rounds": 2,
}
"""A deck of seven cards: three each, of which the hands are made, and one burned."""

_MOST_OUTCOMES = 4096
_ENTRIES = [
    f"{name}.{entry}"
    for name, place in observation_layout(NUM_PLAYERS).items()
    for entry in range(place.stop - place.start)
]
"""A name for each entry of an observation."""

GAME_TYPE = pyspiel.GameType(
    short_name=SHORT_NAME,
    long_name="Skirmish with a small deck",
    dynamics=pyspiel.GameType.Dynamics.SIMULTANEOUS,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=NUM_PLAYERS,
    min_num_players=NUM_PLAYERS,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification=DEFAULTS,
)


class SmallSkirmish(pyspiel.Game):
    """The game.

    Args:
        params: fields of ``deck_of_spies_env.skirmish.rules.Rules``.

    Raises:
        ValueError: not a rule set.
    """

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        self.rules = Rules.of({**DEFAULTS, **(params or {})})
        info = pyspiel.GameInfo(
            num_distinct_actions=NUM_ACTIONS,
            max_chance_outcomes=_MOST_OUTCOMES,
            num_players=NUM_PLAYERS,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=2 * self.rules.max_rounds,
        )
        super().__init__(GAME_TYPE, info, params or {})
        self.record = self.rules.record(NUM_PLAYERS)

    def new_initial_state(self) -> SmallSkirmishState:
        """The start: chance deals."""
        return SmallSkirmishState(self)

    def make_py_observer(
        self, iig_obs_type: Any = None, params: Mapping[str, Any] | None = None
    ) -> SkirmishObserver:
        """What a player sees; with perfect recall, all that it has seen and done."""
        kind = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        return SkirmishObserver(kind, params)


@cache
def _deals(rules: Rules) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    return deals_of(rules, NUM_PLAYERS)


class SmallSkirmishState(pyspiel.State):
    """A position with the history that led to it."""

    def __init__(self, game: SmallSkirmish) -> None:
        super().__init__(game)
        self._rules, self._record = game.rules, game.record
        self.position: npt.NDArray[Any] | None = None
        self._chance: tuple[npt.NDArray[Any], npt.NDArray[np.float64]] | None = _deals(game.rules)
        self.recalled: tuple[str, ...] = ("", "")

    def current_player(self) -> int:
        """Everyone at once, chance, or nobody any more."""
        if self._chance is not None:
            return pyspiel.PlayerId.CHANCE
        if self.is_terminal():
            return pyspiel.PlayerId.TERMINAL
        return pyspiel.PlayerId.SIMULTANEOUS

    def _legal_actions(self, player: int) -> list[int]:
        return np.flatnonzero(self.observation(player)[1]).tolist()

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Numbers of the outcomes with their probabilities."""
        if self._chance is None:
            raise ValueError("not a chance node")
        return list(enumerate(self._chance[1].tolist()))

    def _apply_action(self, action: int) -> None:
        if self._chance is None:
            raise ValueError("not a chance node")
        self.position = self._chance[0][action : action + 1].copy()
        self._chance = None
        self._remember("/" + self.seen(player) for player in range(NUM_PLAYERS))

    def _apply_actions(self, actions: list[int]) -> None:
        self._remember(f"+{decode(action)}" for action in actions)
        ranks = np.array(actions, dtype=np.int64)
        outcomes, chances = outcomes_of(self.position, self._record, ranks)  # type: ignore[arg-type]
        self._chance = _merged(outcomes, chances)

    def _remember(self, new: Any) -> None:
        self.recalled = tuple(old + more for old, more in zip(self.recalled, new, strict=True))

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return f"chance {action}"
        return f"player {player}: {decode(action)}"

    def is_terminal(self) -> bool:
        """Whether the game is over."""
        over = self.position is not None and self.position["phase"][0] == rules_module.OVER
        return self._chance is None and bool(over)

    def returns(self) -> list[float]:
        """The payoffs (S12)."""
        payoffs = np.zeros((1, NUM_PLAYERS))
        if self.is_terminal():
            write_payoffs_of(self.position, self._record, payoffs)
        return payoffs[0].tolist()

    def observation(self, player: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
        """Observation int8 (d,) and action mask int8 (15,) of a player, as the environments'."""
        rows = np.zeros((1, len(observation_high(NUM_PLAYERS))), dtype=np.int8)
        masks = np.zeros((1, NUM_ACTIONS), dtype=np.int8)
        if self.position is not None:
            show_states(self.position, self._record, np.array([player]), rows, masks)
        return rows[0], masks[0]

    def seen(self, player: int) -> str:
        """What a player sees, as text: the entries that are not 0."""
        row = self.observation(player)[0]
        return " ".join(f"{_ENTRIES[entry]}={row[entry]}" for entry in np.flatnonzero(row))

    def __str__(self) -> str:
        """What both have seen and done."""
        return " | ".join(self.recalled)


def _merged(
    outcomes: npt.NDArray[Any], chances: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Outcomes that are the same position, put together."""
    _, first, which = np.unique(
        outcomes.view(np.uint8).reshape(len(outcomes), -1),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    return outcomes[first], np.bincount(which.ravel(), weights=chances).astype(np.float64)


class SkirmishObserver:
    """OpenSpiel's observer: a tensor of the environments' observation, and a text."""

    def __init__(self, iig_obs_type: Any, params: Mapping[str, Any] | None) -> None:
        if params:
            raise ValueError(f"the observer takes no parameters, got {params}")
        self._recalls = bool(iig_obs_type.perfect_recall)
        self.tensor = np.zeros(len(observation_high(NUM_PLAYERS)), np.float32)
        self.dict = {"observation": self.tensor}

    def set_from(self, state: SmallSkirmishState, player: int) -> None:
        """Write the tensor."""
        self.tensor[:] = state.observation(player)[0]

    def string_from(self, state: SmallSkirmishState, player: int) -> str:
        """The text."""
        return state.recalled[player] if self._recalls else state.seen(player)


def load_small_skirmish(**rules: Any) -> Any:
    """The game, with the given fields of the rule set.

    Raises:
        ValueError: not a rule set.
    """
    Rules.of({**DEFAULTS, **rules})
    return pyspiel.load_game(SHORT_NAME, rules)


Probabilities = Callable[
    [npt.NDArray[np.int8], npt.NDArray[np.bool_]], npt.NDArray[np.floating[Any]]
]


class InformationSet(NamedTuple):
    """What a player knows at some decision.

    Attributes:
        player: who decides.
        observation: int8 (d,), as the environments show it.
        mask: bool (15,), the legal actions, two or more.
        actions: legal action -> OpenSpiel's number of it in the extensive form.
    """

    player: int
    observation: npt.NDArray[np.int8]
    mask: npt.NDArray[np.bool_]
    actions: dict[int, int]


class ExtensiveForm(NamedTuple):
    """The same game as a tree that OpenSpiel holds itself, so that it is solved fast.

    Attributes:
        game: of OpenSpiel's ``efg_game``.
        information_sets: by OpenSpiel's information state string.
    """

    game: Any
    information_sets: dict[str, InformationSet]

    def nash_conv(self, probabilities: Probabilities) -> float:
        """NashConv of an agent that plays both sides: what best answers would gain on it.

        Args:
            probabilities: observations int8 (N, d) and masks bool (N, 15) to (N, 15).
        """
        return pyspiel.nash_conv(self.game, self.table(probabilities))

    def table(self, probabilities: Probabilities) -> dict[str, list[tuple[int, float]]]:
        """An agent as OpenSpiel's table of a policy."""
        sets = list(self.information_sets.values())
        observations = np.array([one.observation for one in sets])
        chances = probabilities(observations, np.array([one.mask for one in sets]))
        return {
            name: [(number, float(row[action])) for action, number in one.actions.items()]
            for (name, one), row in zip(self.information_sets.items(), chances, strict=True)
        }


def extensive_form(game: Any) -> ExtensiveForm:
    """Write a game of load_small_skirmish out as a tree, and read it into OpenSpiel.

    Who has one legal action only makes no decision in it.
    """
    writer = _TreeWriter()
    writer.write(game.new_initial_state())
    tree = pyspiel.load_efg_game("\n".join(writer.lines) + "\n")
    found: dict[str, InformationSet] = {}
    waiting = [tree.new_initial_state()]
    while waiting:
        state = waiting.pop()
        waiting += [state.child(action) for action in state.legal_actions()]
        if state.is_terminal() or state.is_chance_node():
            continue
        name = state.information_state_string()
        if name not in found:
            number = int(name.rpartition("-")[2])
            player, observation, mask = writer.told[number]
            numbers = {encode(state.action_to_string(a)): a for a in state.legal_actions()}
            found[name] = InformationSet(player, observation, mask, numbers)
    return ExtensiveForm(tree, found)


class _TreeWriter:
    """Writes a tree in Gambit's format, node by node, children after their parents."""

    def __init__(self) -> None:
        players = " ".join(f'"player {player}"' for player in range(NUM_PLAYERS))
        self.lines = [f'EFG 2 R "small Skirmish" {{ {players} }}']
        self.told: list[tuple[int, npt.NDArray[np.int8], npt.NDArray[np.bool_]]] = []
        self._sets: dict[tuple[int, str], tuple[int, int]] = {}
        self._counts = [0] * NUM_PLAYERS
        self._num_ends = self._num_chances = 0

    def write(self, state: SmallSkirmishState) -> None:
        """A node and all that follows."""
        if state.is_terminal():
            self._num_ends += 1
            paid = " ".join(map(repr, state.returns()))
            self.lines.append(f't "" {self._num_ends} "" {{ {paid} }}')
        elif state.is_chance_node():
            self._write_chance(state)
        else:
            self._write_decision(state, [])

    def _write_chance(self, state: SmallSkirmishState) -> None:
        outcomes = state.chance_outcomes()
        if len(outcomes) > 1:
            self._num_chances += 1
            shown = " ".join(f'"{action}" {chance!r}' for action, chance in outcomes)
            self.lines.append(f'c "" {self._num_chances} "" {{ {shown} }} 0')
        for action, _ in outcomes:
            self.write(state.child(action))

    def _write_decision(self, state: SmallSkirmishState, chosen: list[int]) -> None:
        player = len(chosen)
        if player == NUM_PLAYERS:
            after = state.clone()
            after.apply_actions(chosen)
            self.write(after)
            return
        observation, mask = state.observation(player)
        legal = np.flatnonzero(mask).tolist()
        if len(legal) > 1:
            key = player, state.recalled[player]
            if key not in self._sets:
                self._counts[player] += 1  # Gambit numbers the sets of each player from 1
                self._sets[key] = self._counts[player], len(self.told)
                self.told.append((player, observation, mask.astype(np.bool_)))
            number, name = self._sets[key]
            shown = " ".join(f'"{decode(action)}"' for action in legal)
            self.lines.append(f'p "" {player + 1} {number} "{name}" {{ {shown} }} 0')
        for action in legal:
            self._write_decision(state, [*chosen, action])


if SHORT_NAME not in pyspiel.registered_names():
    pyspiel.register_game(GAME_TYPE, SmallSkirmish)
