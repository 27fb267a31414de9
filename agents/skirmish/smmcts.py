"""``smmcts``: Monte Carlo tree search for simultaneous moves and hidden cards.

Hidden cards are dealt anew from what the seat may know, and each iteration takes one of these deals
and walks down one tree per seat at once. The nodes of a tree are what its seat may know there, as
in multiple-observer information set MCTS (Cowling, Powley and Whitehouse, "Information set Monte
Carlo tree search", 2012), so no seat's choices depend on what it can't see. In its node each seat
chooses by regret matching with exploration (Lisý, Kovařík, Lanctot and Bošanský, "Convergence of
Monte Carlo tree search in simultaneous move games", 2013). Once a node is new, the round is played
to its end, and ``cut`` more with random cards; then ``judgement.py`` judges, and all seats on the
way update their regrets by importance-weighted payoffs, of which only the difference to the mean so
far is weighted (the baseline of Schmid et al., "Variance reduction in Monte Carlo counterfactual
regret minimization", 2019).

All deals agree with the seat's own hand, so opponents in the trees come to answer it as though they
had seen it: the search is too careful rather than too bold.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agents.skirmish.judgement import WORTHS, Floats, planning_streams, worths_of
from agents.skirmish.planning import Planner
from agents.skirmish.smmcts_kernels import NODE, SEARCH, search_trees
from deck_of_spies_env.checks import check_count
from deck_of_spies_env.compiled import compiling
from deck_of_spies_env.skirmish.actions import NUM_ACTIONS
from deck_of_spies_env.skirmish.observations import observation_high
from deck_of_spies_env.skirmish.rules import MIN_PLAYERS, STATE, Rules

DEFAULT_BUDGET, DEFAULT_DEALS, DEFAULT_EXPLORE, DEFAULT_CUT = 2048, 32, 0.2, 0


class SMMCTSAgent(Planner):
    """Tree search with regret matching over sampled deals.

    Args:
        num_players: 2-4.
        rules: the rule set to be played, None for the default.
        budget: iterations of a decision, at least 1.
        deals: that the iterations take in turn, at least 1. Few deals let each hand of an opponent
            be met often enough to learn how it answers.
        explore: share of uniform choice in each node, above 0 and up to 1.
        cut: rounds of random play before a position is judged, at least 0; a number beyond the
            round limit plays out.
        plus: regrets do not fall below 0 (regret matching+).
        greedy: play the most likely action instead of drawing one.
        worth: ``fitted`` or ``points``, see ``judgement.py``.

    Raises:
        ValueError: an argument out of its range; the message names it.
    """

    def __init__(
        self,
        num_players: int,
        rules: Rules | None = None,
        budget: int = DEFAULT_BUDGET,
        *,
        deals: int = DEFAULT_DEALS,
        explore: float = DEFAULT_EXPLORE,
        cut: int = DEFAULT_CUT,
        plus: bool = False,
        greedy: bool = False,
        worth: str = WORTHS[0],
    ) -> None:
        budget = check_count("budget", budget)
        self._num_deals = min(check_count("deals", deals), budget)
        if not 0.0 < explore <= 1.0:
            raise ValueError(f"explore must be above 0 and at most 1, got {explore!r}")
        cut = check_count("cut", cut) if cut else 0
        self._search = np.zeros(1, SEARCH)
        self._search[0] = budget, explore, cut, plus
        _compile()
        super().__init__(num_players, rules, worth, greedy)
        # An iteration makes a node for each seat at most; half of the table stays free.
        self._num_nodes = 1 << (2 * num_players * budget).bit_length()

    def _plan(
        self,
        rows: npt.NDArray[np.int8],
        masks: npt.NDArray[np.bool_],
        strategies: Floats,
        numbers: Floats,
    ) -> None:
        search_trees(
            rows,
            self._rules,
            self._worths,
            self._streams,
            self._search,
            np.empty(self._num_deals, STATE),
            np.zeros(self._num_nodes, NODE),
            strategies,
            numbers,
        )


def make(
    rules: Rules, path: Path | None, num_players: int, budget: int = DEFAULT_BUDGET
) -> SMMCTSAgent:
    """The agent for a table."""
    return SMMCTSAgent(num_players, rules, budget)


@cache
def _compile() -> None:
    """Compile or load the kernel once, safe among processes."""
    n, rules = MIN_PLAYERS, Rules()
    rows = np.zeros((0, len(observation_high(n))), np.int8)
    deals, nodes, search = np.zeros(1, STATE), np.zeros(2, NODE), np.zeros(1, SEARCH)
    worths, strategies = worths_of("points", n, rules), np.zeros((0, NUM_ACTIONS))
    with compiling():
        search_trees(
            rows,
            rules.record(n),
            worths,
            planning_streams(0),
            search,
            deals,
            nodes,
            strategies,
            np.zeros(0),
        )
