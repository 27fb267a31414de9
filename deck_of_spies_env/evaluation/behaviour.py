"""How agents play Deck of Spies, beyond whether they win: what they recruit, counter and retire.

Collectors that look on at a match: :class:`BehaviourCollector` counts by deal, :class:`ActionLog`
keeps every action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
from rich.table import Table
from rich.text import Text

from deck_of_spies_env import cards
from deck_of_spies_env.evaluation import statistics
from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.evaluation.matches import Collector
from deck_of_spies_env.evaluation.printing import new_table, with_interval
from deck_of_spies_env.solitaire.actions import RETIRE_SUBSETS
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.solitaire.rules import Rules

ACTIONS = "actions"
"""The column of an action log: the actions of all deals, one deal after the other."""

RECRUITED = "recruited"
"""The column of the spies recruited, by which a match with a BehaviourCollector is known."""

_COUNTED = ("counter", "assassinate", "retire")
_SPY_RANKS = cards.RANKS[cards.FIRST_SPY // cards.NUM_SUITS :]
_PAIRS_IN_A_TABLE = 3


class BehaviourCollector(Collector):
    """Counts what an agent does in each deal.

    The columns have shape (D,): ``counter``, ``assassinate`` and ``retire``, int8, how often the
    agent did so; ``cards_retired``, int8; ``aces_left``, int8, Aces among the player's cards at the
    end; and ``recruited``, uint64, the spies recruited as a card mask.

    Args:
        num_deals: D.
        rules: the rule set.
        seed: not needed, as nothing here is left to chance.
    """

    def __init__(self, num_deals: int, rules: Rules, seed: int = 0) -> None:
        self._counts: Columns = {
            name: np.zeros(num_deals, np.int8) for name in (*_COUNTED, "cards_retired", "aces_left")
        }
        self._recruited = np.zeros(num_deals, np.uint64)

    def chosen(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> None:
        """Count the actions."""

        def which(kind: str) -> npt.NDArray[np.bool_]:
            indices = games.table.actions_of(kind)
            return (actions >= indices.start) & (actions < indices.stop)

        for kind in _COUNTED:
            self._counts[kind][deals] += which(kind)
        retires = which("retire")
        subsets = RETIRE_SUBSETS[actions[retires] - games.table.actions_of("retire").start]
        self._counts["cards_retired"][deals[retires]] += np.bitwise_count(subsets).astype(np.int8)
        recruits = which("recruit")
        spies = games.states["spy"][slots[recruits]].astype(np.uint64)
        self._recruited[deals[recruits]] |= np.uint64(1) << spies

    def ended(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        endings: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        """Count the Aces that are left."""
        states = games.states[slots]
        held = states["hand"] | states["draw_deck"] | states["draw_discard"]
        self._counts["aces_left"][deals] = np.bitwise_count(held & np.uint64(cards.ACES))

    @property
    def columns(self) -> Columns:
        """Columns by deal, see above."""
        return self._counts | {RECRUITED: self._recruited}


class ActionLog(Collector):
    """Keeps all actions by their indices, in the column ACTIONS.

    It's int16 of as many actions as all deals have together. Which of them are of a deal follows
    from the numbers of decisions, see :func:`actions_of_deal`.

    Args:
        num_deals: D.
        rules, seed: not needed.
    """

    def __init__(self, num_deals: int, rules: Rules, seed: int = 0) -> None:
        self._actions: list[list[int]] = [[] for _ in range(num_deals)]

    def chosen(
        self,
        games: Games,
        slots: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> None:
        """Note the actions."""
        for deal, action in zip(deals.tolist(), actions.tolist(), strict=True):
            self._actions[deal].append(action)

    @property
    def columns(self) -> Columns:
        """The actions, see above."""
        return {ACTIONS: np.array([a for deal in self._actions for a in deal], np.int16)}


def actions_of_deal(columns: Columns, deal: int) -> npt.NDArray[np.int16]:
    """The actions of one deal of a match with an action log, in the order played.

    Args:
        columns: of the match.
        deal: its number, from 0.
    """
    ends = np.cumsum(columns["decisions"], dtype=np.int64)
    return columns[ACTIONS][ends[deal] - columns["decisions"][deal] : ends[deal]]


class Mean(TypedDict):
    """A mean over the deals, and its 95% interval by Student's t, None after one deal."""

    mean: float
    ci: list[float] | None


def measures(columns: Columns) -> dict[str, npt.NDArray[np.int64]]:
    """What is measured of a match with a BehaviourCollector: name -> int64 (D,), by deal.

    ``turns``, ``counters``, ``recruits``, ``assassinations``, ``retirements``, ``cards_retired``,
    ``aces_left``, ``recruits_5`` to ``recruits_K`` by rank, and ``recruits_c`` to ``recruits_s`` by
    suit.
    """
    recruited = columns[RECRUITED]

    def recruits(chosen: int) -> npt.NDArray[Any]:
        return np.bitwise_count(recruited & np.uint64(chosen))

    found = {
        "turns": columns["turns"],
        "counters": columns["counter"],
        "recruits": recruits(cards.SPIES),
        "assassinations": columns["assassinate"],
        "retirements": columns["retire"],
        "cards_retired": columns["cards_retired"],
        "aces_left": columns["aces_left"],
        **{
            f"recruits_{rank}": recruits(cards.mask_of(rank + suit for suit in cards.SUITS))
            for rank in _SPY_RANKS
        },
        **{
            f"recruits_{suit}": recruits(cards.mask_of(rank + suit for rank in _SPY_RANKS))
            for suit in cards.SUITS
        },
    }
    return {name: values.astype(np.int64) for name, values in found.items()}


def behaviour_means(columns: Columns) -> dict[str, Mean]:
    """The mean of each measure over the deals of a match."""
    return {name: _mean(values) for name, values in measures(columns).items()}


def behaviour_differences(first: Columns, second: Columns) -> dict[str, Mean]:
    """The mean difference of each measure, of two matches on the same deals, paired by deal."""
    pairs = zip(measures(first).items(), measures(second).values(), strict=True)
    return {name: _mean(ours - theirs) for (name, ours), theirs in pairs}


def _mean(values: npt.NDArray[np.int64]) -> Mean:
    interval = list(statistics.mean_interval(values)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "ci": interval}


def behaviour_tables(
    agents: Sequence[tuple[str, Mapping[str, Mean]]],
    differences: Sequence[tuple[str, Mapping[str, Mean]]],
) -> list[Table]:
    """Tables of the means of agents, and of the differences of pairs, one column each.

    Args:
        agents: name and means of each.
        differences: name and differences of each pair.
    """
    groups = [
        differences[first : first + _PAIRS_IN_A_TABLE]
        for first in range(0, len(differences), _PAIRS_IN_A_TABLE)
    ]
    return [_table(agents, ""), *(_table(group, "+") for group in groups)]


def _table(columns: Sequence[tuple[str, Mapping[str, Mean]]], sign: str) -> Table:
    table = new_table("a deal", *(name for name, _ in columns))
    for measure in columns[0][1]:
        figures = [means[measure] for _, means in columns]
        cells = [with_interval(it["mean"], it["ci"], 1, sign) for it in figures]
        table.add_row(Text(measure.replace("_", " ")), *cells)
    return table
