"""Counting whole game trees ("perft"), with every outcome of chance, against pinned numbers.

Three numbers tell a tree apart from its neighbours:

* ``histories``: ways to play from the position to the end, outcomes of chance included;
* ``plans``: distinct sequences of actions, whatever chance brought;
* ``endings``: distinct final positions (zones and outcome).

The engine draws from random streams, so its outcomes are met by continuing a position with very
many streams; the referee's are found by dictating every outcome there is and keeping those that it
accepts. The trees must be equal node by node. The smallest ones are derived by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from conftest import TextAction, Zones, completed, in_order, legal_actions, new_env
from oracle import ImpossibleChance, OracleGame, OracleRules

from deck_of_spies_env.solitaire.games import Games

NUM_STREAMS = 500
"""With 24 equally likely outcomes one in a million of such batches would miss any of them."""


class Node(NamedTuple):
    """A position: phase, outcome at the end, and zones."""

    phase: str
    outcome: str
    zones: tuple[tuple[str, ...], ...]


class Tree(NamedTuple):
    """What hangs below a node."""

    histories: int
    plans: frozenset[tuple[TextAction, ...]]
    endings: frozenset[Node]


class Counts(NamedTuple):
    """The numbers that are pinned."""

    histories: int
    plans: int
    endings: int


class EngineTree:
    """Successors as the engine gives them."""

    def __init__(self, rules: dict[str, Any]) -> None:
        self.env = new_env(rules)
        self.env.reset(seed=0)
        self.games = Games(NUM_STREAMS, rules=rules)
        self.games.seed(range(NUM_STREAMS), range(NUM_STREAMS))
        self.games.deal()
        self.states: dict[Node, Any] = {}

    def root(self, zones: Zones, phase: str) -> Node:
        self.env.reset(options={"zones": zones, "phase": phase})
        return self._node(self.env.get_state()["state"])

    def successors(self, node: Node) -> dict[TextAction, frozenset[Node]]:
        self._show(self.states[node])
        legal = legal_actions(self.env)
        found: dict[TextAction, frozenset[Node]] = {}
        for action, index in legal.items():
            self.games.states[:] = self.states[node]
            self.games.show()
            self.games.step(np.full(NUM_STREAMS, index))
            found[action] = frozenset(map(self._node, np.unique(self.games.states)))
        return found

    def _node(self, state: Any) -> Node:
        self._show(state)
        outcome = ("", "win", "loss", "no_double_agent")[int(state["outcome"])]
        node = Node(self.env.phase, outcome, tuple(self.env.zones().values()))
        self.states[node] = state.copy()
        return node

    def _show(self, state: Any) -> None:
        snapshot = self.env.get_state()
        snapshot["state"] = state
        self.env.set_state(snapshot)


class OracleTree:
    """Successors as the referee accepts them."""

    def __init__(self, rules: dict[str, Any]) -> None:
        self.rules = OracleRules(**rules)
        self.games: dict[Node, OracleGame] = {}

    def root(self, zones: Zones, phase: str) -> Node:
        return self._node(OracleGame(self.rules, zones, phase))

    def successors(self, node: Node) -> dict[TextAction, frozenset[Node]]:
        game = self.games[node]
        return {action: frozenset(self._outcomes(game, action)) for action in game.legal_actions()}

    def _outcomes(self, game: OracleGame, action: TextAction) -> Iterable[Node]:
        """Every next spy and every set of drawn cards that the referee takes."""
        zones = game.zones()
        own = (*zones["hand"], *zones["draw_deck"], *zones["draw_discard"], *zones["spy"])
        sizes = range(self.rules.hand_size + 1)
        draws = [drawn for size in sizes for drawn in itertools.combinations(own, size)]
        for next_spy, drawn in itertools.product((None, *zones["spy_deck"]), draws):
            after = game.copy()
            try:
                after.step(*action, next_spy=next_spy, drawn=drawn)
            except ImpossibleChance:
                continue
            yield self._node(after)

    def _node(self, game: OracleGame) -> Node:
        node = Node(game.phase, game.outcome or "", tuple(game.zones().values()))
        self.games[node] = game
        return node


Successors = Callable[[Node], dict[TextAction, frozenset[Node]]]


def grow(node: Node, successors: Successors, grown: dict[Node, Tree]) -> Tree:
    """The tree below a node; equal positions have equal trees, grown once."""
    if node in grown:
        return grown[node]
    if node.phase == "over":
        tree = Tree(1, frozenset({()}), frozenset({node}))
    else:
        histories = 0
        plans: set[tuple[TextAction, ...]] = set()
        endings: set[Node] = set()
        for action, outcomes in successors(node).items():
            for outcome in outcomes:
                below = grow(outcome, successors, grown)
                histories += below.histories
                plans |= {(action, *plan) for plan in below.plans}
                endings |= below.endings
        tree = Tree(histories, frozenset(plans), frozenset(endings))
    grown[node] = tree
    return tree


@dataclass(frozen=True)
class Case:
    """A tiny deck, and what its tree counts; cards named nowhere are out of play."""

    name: str
    hand: str
    spy: str
    counts: Counts
    spy_deck: str = ""
    draw_deck: str = ""
    draw_discard: str = ""
    phase: str = "act"
    rules: dict[str, Any] = field(default_factory=dict)

    def zones(self) -> Zones:
        """All seven zones."""
        named = {
            "hand": self.hand.split(),
            "spy": self.spy.split(),
            "spy_deck": self.spy_deck.split(),
            "draw_deck": self.draw_deck.split(),
            "draw_discard": self.draw_discard.split(),
        }
        return completed(named)


BY_HAND = [
    # The last spy: 2c 3c counter it or recruit it, and that is the end. No pair, no chance.
    Case("last spy, two ways", "2c 3c", "5c", Counts(2, 2, 2)),
    # 5s counters and leaves 2c 2d 2h: three pairs, all three, or pass. The three 2s counter as
    # well (6, and 4 without any) and leave 5s. Nothing is a club but 2c, which is too weak.
    # 5 + 1 ways, each with an ending of its own.
    Case("retire after the last spy", "2c 2d 2h 5s", "5c", Counts(6, 6, 6)),
    # Only an Ace helps: one in hand, one in the Draw Deck, one in the Draw Discard.
    Case(
        "assassinate the last spy",
        "Ac 2d",
        "Kc",
        Counts(3, 3, 3),
        draw_deck="Ad",
        draw_discard="Ah 3c",
    ),
    # With both piles empty the card played is shuffled and comes straight back. Against the 5
    # either card does, against the 6 only the 6d. The last card played stays in the Draw Discard,
    # so both ways lead to one ending: 5d in hand, 6d in the Draw Discard.
    Case("the card comes back", "5d 6d", "5c", Counts(2, 2, 1), spy_deck="6c"),
    # As above with three strong cards. Each of the three does every time: 3 plays x 2 next spies,
    # 3 plays x 1 next spy, 3 plays: 54 histories, 27 plans; the ending is which card lies in the
    # Draw Discard last.
    Case(
        "two spies in either order",
        "Jd Qd Kd",
        "7c",
        Counts(54, 27, 3),
        spy_deck="8c 9c",
        rules={"hand_size": 3},
    ),
    # Turn 1: J, Q or K, then 4c or 5d is drawn. Turn 2: one of the other two strong cards, as 4c
    # and 5d are too weak and spare beside them. 3 x 2 x 2 histories; plans do not see the draw:
    # 3 x 2. In the end one strong card of three and one of the two drawn are in hand: 6 endings.
    Case(
        "one of two drawn",
        "Jd Qd Kd",
        "7c",
        Counts(12, 6, 6),
        spy_deck="8c",
        draw_deck="4c 5d",
        rules={"hand_size": 3},
    ),
    # Kd must be played, and the Draw Deck has just the three cards due: 6 points against the 7,
    # and no Ace. The one history ends there (D8).
    Case(
        "no double agent",
        "Kd",
        "6c",
        Counts(1, 1, 1),
        spy_deck="7c",
        draw_deck="2c 2d 2h",
        rules={"hand_size": 3},
    ),
    # The same with 4s in the Draw Deck: three of four are drawn. The 2s alone lose; 4s and two
    # of them, 8 points, counter the 7 with all three cards. One loss and three games to the end;
    # plans: Kd alone, or Kd and one of three sets.
    Case(
        "no double agent or three cards",
        "Kd",
        "6c",
        Counts(4, 4, 4),
        spy_deck="7c",
        draw_deck="2c 2d 2h 4s",
        rules={"hand_size": 3},
    ),
    # Three cards are due after Kd: 3c, and after the shuffle 3d and Kd. Then Kd counters the 7
    # (3 + 3 = 6 is too little, and with Kd the 3s are spare), and 3c 3d are retired or not.
    Case(
        "retire what came back",
        "Kd",
        "6c",
        Counts(2, 2, 2),
        spy_deck="7c",
        draw_deck="3c",
        draw_discard="3d",
        rules={"hand_size": 3},
    ),
    # 9c counters the 6, 4c 4d are drawn, the Draw Deck is empty. The 7 comes before the 8, and
    # only 4c 4d counter it. Two of 3d 4c 4d 9c are then drawn to 2s, against the 8: 3d 9c, 4c 9c
    # and 4d 9c (9c counters or recruits), 3d 4c and 3d 4d (all three cards), 4c 4d (those two):
    # 6 + 2 + 1 histories. The last play is one of five.
    Case(
        "reshuffle when needed",
        "2s 9c",
        "6s",
        Counts(9, 5, 9),
        spy_deck="7c 8c",
        draw_deck="4c 4d",
        draw_discard="3d",
        rules={"hand_size": 3},
    ),
    # The switch: 3d 9c are shuffled at once, so they are what is drawn after 4c 4d were played.
    Case(
        "reshuffle at once",
        "2s 9c",
        "6s",
        Counts(2, 2, 2),
        spy_deck="7c 8c",
        draw_deck="4c 4d",
        draw_discard="3d",
        rules={"hand_size": 3, "eager_reshuffle": True},
    ),
    # 3c 4c counter and recruit; Ac may come along in the recruit, idle (D4), but not in the
    # counter. Ac 3c and Ac 4c are too little. 3 ways ...
    Case("idle Ace", "Ac 3c 4c", "7c", Counts(3, 3, 3)),
    # ... and 2 without the switch.
    Case("no idle Ace", "Ac 3c 4c", "7c", Counts(2, 2, 2), rules={"idle_ace": False}),
]

BY_MACHINE = [
    Case(
        "retire, draw, reshuffle",
        "4c 4d 6c",
        "5c",
        Counts(124, 97, 72),
        spy_deck="6d 8h",
        draw_deck="3c 3d",
        rules={"hand_size": 3},
    ),
    Case(
        "Aces in three places",
        "Ac 2d",
        "9c",
        Counts(131, 59, 48),
        spy_deck="Jd Kc",
        draw_deck="Ad 9d",
        draw_discard="Ah",
        rules={"hand_size": 3},
    ),
    Case(
        "convert, idle Ace",
        "Ac 4c 5c",
        "9c",
        Counts(67, 46, 49),
        spy_deck="Tc",
        draw_deck="5d 6h",
        rules={"hand_size": 4},
    ),
    Case(
        "convert, no idle Ace",
        "Ac 4c 5c",
        "9c",
        Counts(30, 24, 30),
        spy_deck="Tc",
        draw_deck="5d 6h",
        rules={"hand_size": 4, "idle_ace": False},
    ),
    Case(
        "retire first",
        "4c 4d 4h",
        "6c",
        Counts(95, 80, 39),
        spy_deck="8c",
        draw_deck="7s",
        draw_discard="8d",
        phase="retire",
        rules={"hand_size": 4},
    ),
    Case(
        "wins and losses",
        "Kh Th",
        "7c",
        Counts(130, 78, 36),
        spy_deck="Jh Qh",
        draw_discard="Ah",
        rules={"hand_size": 3, "key_spies_to_win": 3},
    ),
]


@pytest.mark.parametrize("case", BY_HAND + BY_MACHINE, ids=lambda case: case.name)
def test_whole_trees(case: Case) -> None:
    """All actions and all outcomes of chance: engine and referee agree, and so do the numbers."""
    engine, oracle = EngineTree(case.rules), OracleTree(case.rules)
    root = engine.root(case.zones(), case.phase)
    assert root == oracle.root(case.zones(), case.phase)

    def both(node: Node) -> dict[TextAction, frozenset[Node]]:
        found, expected = engine.successors(node), oracle.successors(node)
        assert found == expected, node
        return found

    tree = grow(root, both, {})
    counts = Counts(tree.histories, len(tree.plans), len(tree.endings))
    assert counts == case.counts


# --- Deeper, along fixed random streams -----------------------------------------------------------


def plans_by_depth(seed: int, rules: dict[str, Any], depth: int) -> list[int]:
    """Number of action sequences of each length from the deal of a seed, its chance being fixed."""
    games = Games(1, rules=rules)
    games.seed([0], [seed])
    games.deal()
    level = games.snapshots()
    numbers: list[int] = []
    for _ in range(depth):
        level, count = _next_level(level, rules)
        numbers.append(count)
    return numbers


def _next_level(level: npt.NDArray[Any], rules: dict[str, Any]) -> tuple[npt.NDArray[Any], int]:
    """All positions one action further, and their number."""
    games = Games(len(level), rules=rules)
    games.restore(level)
    parents, actions = np.nonzero(games.masks)
    if not len(parents):
        return level[:0], 0
    games = Games(len(parents), rules=rules)
    games.restore(level[parents])
    games.step(actions)
    return games.snapshots(), len(parents)


# Engine and chance of today: another random stream would change these, and so would any rule.
DEEP = [
    (0, {}, [7, 18, 115, 807, 4186, 19050, 80226]),
    (1, {}, [6, 40, 252, 1125, 4923, 20770, 111617]),
    (2, {"hand_size": 3}, [1, 4, 6, 8, 21, 32, 62, 135, 324, 1035, 2989, 7736, 10260, 10715]),
    (3, {"hand_size": 8}, [38, 125, 4421, 18980]),
    (4, {"idle_ace": False, "eager_reshuffle": True}, [7, 59, 380, 2288, 9554, 49817]),
]


@pytest.mark.parametrize(("seed", "rules", "numbers"), DEEP)
def test_action_sequences_from_fixed_seeds(
    seed: int, rules: dict[str, Any], numbers: list[int]
) -> None:
    """The number of action sequences of length 1, 2, 3, ... from a deal."""
    assert plans_by_depth(seed, rules, len(numbers)) == numbers


@pytest.mark.parametrize(("seed", "rules", "numbers"), DEEP)
def test_the_referee_counts_the_same_sequences(
    seed: int, rules: dict[str, Any], numbers: list[int]
) -> None:
    """The first levels of the same trees, each position judged by the referee."""
    env = new_env(rules)
    env.reset(seed=seed)
    zones = env.zones()
    level = [
        (env.get_state(), OracleGame.deal(OracleRules(**rules), zones["hand"], zones["spy"][0]))
    ]
    for number in [number for number in numbers if number < 3000]:
        below: list[tuple[Any, OracleGame]] = []
        for state, game in level:
            for action in sorted(game.legal_actions()):
                env.set_state(state)
                before = env.zones()
                env.step(env.encode(*action))
                below.append((env.get_state(), _followed(game, action, before, env.zones())))
        assert len(below) == number
        level = below


def _followed(game: OracleGame, action: TextAction, before: Zones, after: Zones) -> OracleGame:
    """The referee's game after an action, with the chance that the engine's zones show."""
    kind, cards = action
    kept = set() if kind == "assassinate" else set(before["hand"]) - set(cards)
    turned_up = kind in ("counter", "recruit", "assassinate") and after["spy"]
    twin = game.copy()
    twin.step(
        kind,
        cards,
        next_spy=after["spy"][0] if turned_up else None,
        drawn=in_order(set(after["hand"]) - kept),
    )
    assert twin.zones() == after
    return twin
