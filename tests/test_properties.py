"""Properties of every position, found by Hypothesis: reachable or not, for all rule sets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pytest
from conftest import (
    ALL_CARDS,
    RANKS,
    SUITS,
    ZONES,
    TextAction,
    Zones,
    completed,
    in_order,
    legal_actions,
    new_env,
    total,
    value,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deck_of_spies_env import IllegalActionError, Rules
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.games import Games, states_from_recall
from deck_of_spies_env.solitaire.observations import observation_layout

STEADY = settings(
    deadline=None,
    derandomize=True,  # the same examples on every machine
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)

ACES = ALL_CARDS[:4]
SPIES = ALL_CARDS[16:]
RECOLOURINGS = [dict(zip(SUITS, suits, strict=True)) for suits in itertools.permutations(SUITS)]
"""All 24 ways to rename the suits."""


# --- Arbitrary positions --------------------------------------------------------------------------


@dataclass(frozen=True)
class Position:
    """A position to start from."""

    rules: Rules
    zones: Zones
    phase: str

    def env(self, seed: int = 0) -> DeckOfSpiesEnv:
        """An environment at this position."""
        env = new_env(asdict(self.rules))
        env.reset(seed=seed, options={"zones": self.zones, "phase": self.phase})
        return env


def rule_sets() -> st.SearchStrategy[Rules]:
    """All switches, hand sizes 3-8, and every number of Key Spies to win."""
    return st.builds(
        Rules,
        idle_ace=st.booleans(),
        eager_reshuffle=st.booleans(),
        hand_size=st.integers(3, 8),
        key_spies_to_win=st.integers(1, 12),
    )


@st.composite
def positions(draw: st.DrawFn) -> Position:
    """Any position at all: hands of every kind, piles full or empty, spies in any number."""
    rules = draw(rule_sets())
    phase = draw(st.sampled_from(("act", "act", "act", "retire")))
    last_spy_gone = phase == "retire" and draw(st.booleans())
    spy = None if last_spy_gone else draw(st.sampled_from(SPIES))
    hand = draw(_hands(rules, phase, spy))
    zones: dict[str, list[str]] = {"hand": hand, "spy": [spy] if spy else []}
    piles = ["draw_deck", "draw_discard", "spy_discard", "removed"]
    piles = draw(st.lists(st.sampled_from(piles), min_size=1, max_size=4, unique=True))
    if spy is not None and draw(st.booleans()):
        piles.append("spy_deck")
    where = draw(st.lists(st.integers(0, 11), min_size=52, max_size=52))
    for card, number in zip(ALL_CARDS, where, strict=True):
        if card not in hand and card != spy:
            zones.setdefault(_allowed(card, piles[number % len(piles)]), []).append(card)
    # Where only an assassination is left (D7), there has to be an Ace for it.
    own = (*hand, *zones.get("draw_deck", ()), *zones.get("draw_discard", ()))
    if phase == "act" and total(hand) < value(spy or "5c") and not set(own) & set(ACES):
        ace = draw(st.sampled_from(ACES))
        for cards in zones.values():
            if ace in cards:
                cards.remove(ace)
        zones.setdefault(draw(st.sampled_from(("draw_deck", "draw_discard"))), []).append(ace)
    return Position(rules, completed(zones), phase)


def _allowed(card: str, pile: str) -> str:
    """The pile, or the Spy Discard for a card that can't be there."""
    if (pile == "removed" and card not in ACES) or (pile == "spy_deck" and card not in SPIES):
        return "spy_discard"
    return pile


@st.composite
def _hands(draw: st.DrawFn, rules: Rules, phase: str, spy: str | None) -> list[str]:
    """A hand of all cards, of low ones, of few ranks, or of the spy's suit; a pair to retire."""
    suit = spy[1] if spy else "c"
    pool = draw(
        st.sampled_from(
            (
                ALL_CARDS,
                ALL_CARDS[:16],
                tuple(card for card in ALL_CARDS if card[0] in "A2357"),
                tuple(card for card in ALL_CARDS if card[1] == suit or card[0] == "A"),
            )
        )
    )
    pool = tuple(card for card in pool if card != spy)
    most = rules.hand_size if phase == "act" else rules.hand_size - 1
    hand = draw(st.lists(st.sampled_from(pool), max_size=most, unique=True))
    if phase == "retire":
        rank = draw(st.sampled_from(RANKS))
        pair = [card for card in ALL_CARDS if card[0] == rank and card != spy][:2]
        hand = pair + [card for card in hand if card not in pair][: most - 2]
    return hand


# --- What is legal, written down from D1-D9 -------------------------------------------------------


def counters(hand: tuple[str, ...], spy: str) -> set[tuple[str, ...]]:
    """D1: enough, and no card to spare; Aces are plain cards (D5)."""
    return {
        chosen
        for size in range(1, len(hand) + 1)
        for chosen in itertools.combinations(hand, size)
        if total(chosen) >= value(spy)
        and all(total(chosen) - value(card) < value(spy) for card in chosen)
    }


def recruits(hand: tuple[str, ...], spy: str, idle_ace: bool) -> set[tuple[str, ...]]:
    """D2-D5: in suit or with the Ace of the suit, which alone may be spare."""
    found = {chosen for chosen in counters(hand, spy) if all(card[1] == spy[1] for card in chosen)}
    # With its Ace among them these are sets that need its point, legal whatever the switch says.
    ace = "A" + spy[1]
    if ace not in hand:
        return found
    rest = [card for card in hand if card != ace]
    for size in range(1, len(rest) + 1):
        for others in itertools.combinations(rest, size):
            points = total(others) + 1
            if points < value(spy) or any(points - value(card) >= value(spy) for card in others):
                continue
            converts = any(card[1] != spy[1] for card in others)
            if idle_ace or converts or total(others) < value(spy):
                found.add(in_order((ace, *others)))
    return found


def legal_by_the_rulings(position: Position) -> set[TextAction]:
    """D1-D9 by brute force over the hand's subsets."""
    zones, hand = position.zones, position.zones["hand"]
    if position.phase == "retire":
        same_rank = (
            ("retire", chosen)
            for size in (2, 3, 4)
            for chosen in itertools.combinations(hand, size)
            if len({card[0] for card in chosen}) == 1
        )
        return {("pass", ()), *same_rank}
    (spy,) = zones["spy"]
    if total(hand) < value(spy):
        own = (*hand, *zones["draw_deck"], *zones["draw_discard"])
        return {("assassinate", (card,)) for card in own if card in ACES}
    return {("counter", chosen) for chosen in counters(hand, spy)} | {
        ("recruit", chosen) for chosen in recruits(hand, spy, position.rules.idle_ace)
    }


@STEADY
@given(positions())
def test_the_mask_is_the_rulings(position: Position) -> None:
    """D1-D5, D7, D9: the mask equals brute force over all subsets, and D7 leaves an action."""
    env = position.env()
    assert env.zones() == position.zones
    legal = set(legal_actions(env))
    assert legal == legal_by_the_rulings(position)
    assert legal


@settings(STEADY, max_examples=60)
@given(positions())
def test_illegal_actions_raise_and_change_nothing(position: Position) -> None:
    """Every index that the mask forbids, and those outside the table."""
    env = position.env()
    before = env.get_state()
    masks = env.action_masks()
    num_actions = len(masks)
    for index in (*np.flatnonzero(~masks).tolist(), -1, num_actions, num_actions + 7):
        with pytest.raises(IllegalActionError, match=str(index)):
            env.step(index)
        with pytest.raises(IllegalActionError, match=str(index)):
            env.afterstate(index)
    assert env.get_state() == before
    assert np.array_equal(env.action_masks(), masks)
    assert env.zones() == position.zones


# --- Play -----------------------------------------------------------------------------------------


def is_partition(zones: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether each of the 52 cards lies in exactly one of the seven zones, sorted."""
    cards = [card for zone in ZONES for card in zones[zone]]
    ordered = all(zones[zone] == in_order(zones[zone]) for zone in ZONES)
    return list(zones) == list(ZONES) and sorted(cards) == sorted(ALL_CARDS) and ordered


@STEADY
@given(positions(), st.lists(st.integers(0, 10**6), min_size=1, max_size=25), st.integers(0, 99))
def test_zones_partition_the_cards_throughout(
    position: Position, choices: list[int], seed: int
) -> None:
    """No card is lost, doubled or out of place, and there is an action until the game is over."""
    env = position.env(seed)
    assert is_partition(env.zones())
    for choice in choices:
        legal = sorted(legal_actions(env).items())
        assert bool(legal) == (env.phase != "over")
        if not legal:
            break
        (kind, cards), index = legal[choice % len(legal)]
        before = env.zones()
        certain = env.afterstate(index)
        env.step(index)
        after = env.zones()
        assert is_partition(certain)
        assert is_partition(after)
        # A card that vanished would show as removed: only the Ace given up may go there (D7).
        given_up = set(cards) if kind == "assassinate" else set()
        assert set(after["removed"]) == set(before["removed"]) | given_up
        assert after["removed"] == certain["removed"]
        assert after["spy_discard"] == certain["spy_discard"]
        assert set(before["spy_discard"]) <= set(after["spy_discard"])
        assert set(certain["hand"]) <= set(after["hand"])
        assert len(after["hand"]) <= position.rules.hand_size


@STEADY
@given(positions(), st.lists(st.integers(0, 10**6), min_size=1, max_size=12), st.integers(0, 99))
def test_a_saved_state_comes_back(position: Position, choices: list[int], seed: int) -> None:
    """get_state and set_state: the same position, and from there the same chance."""

    def play() -> list[tuple[Zones, str, bytes, bytes]]:
        seen = []
        for choice in choices:
            legal = sorted(legal_actions(env).values())
            if not legal:
                break
            observation, _, _, _, info = env.step(legal[choice % len(legal)])
            mask = info["action_mask"]
            seen.append((env.zones(), env.phase, observation.tobytes(), mask.tobytes()))
        return seen

    env = position.env(seed)
    saved = env.get_state()
    first = play()
    env.set_state(saved)
    assert env.zones() == position.zones
    assert env.phase == position.phase
    assert env.get_state() == saved
    assert set(legal_actions(env)) == legal_by_the_rulings(position)
    assert play() == first
    # Another environment takes it, too.
    env = new_env(asdict(position.rules))
    env.set_state(saved)
    assert play() == first


# --- Names ----------------------------------------------------------------------------------------


@STEADY
@given(positions())
def test_encode_and_decode_are_inverse(position: Position) -> None:
    """For every legal action and for all that the table can name with this hand."""
    env = position.env()
    hand = position.zones["hand"]
    table = action_table(position.rules.hand_size)
    named = 0
    for index in range(table.num_actions):
        slots = [slot for slot in range(8) if table.slots_of(index) >> slot & 1]
        if slots and slots[-1] >= len(hand):
            with pytest.raises(IllegalActionError, match=str(index)):
                env.decode(index)
            assert not env.action_masks()[index]
            continue
        named += 1
        action = env.decode(index)
        assert env.encode(*action) == index
        assert env.encode(action.kind, reversed(action.cards)) == index
        if action.kind != "assassinate":
            assert action.cards == tuple(hand[slot] for slot in slots)
    held = min(len(hand), position.rules.hand_size - 1)
    retires = sum(len(list(itertools.combinations(range(held), size))) for size in (2, 3, 4))
    assert named == 2 * (2 ** len(hand) - 1) + 4 + retires + 1


@pytest.mark.parametrize("hand_size", range(3, 9))
def test_the_whole_table(hand_size: int) -> None:
    """n = 2(2^h - 1) + 4 + C(h-1,2) + C(h-1,3) + C(h-1,4) + 1 actions, no two of them alike."""
    subsets = range(hand_size - 1)
    retires = [len(list(itertools.combinations(subsets, size))) for size in (2, 3, 4)]
    size = 2 * (2**hand_size - 1) + 4 + sum(retires) + 1
    env = new_env({"hand_size": hand_size})
    env.reset(seed=3)
    assert (
        len(env.action_masks()) == size == {3: 20, 4: 39, 5: 78, 6: 156, 7: 309, 8: 606}[hand_size]
    )
    actions = [env.decode(index) for index in range(size)]
    assert len(set(actions)) == size
    assert [env.encode(*action) for action in actions] == list(range(size))
    kinds = [kind for kind, _ in itertools.groupby(action.kind for action in actions)]
    assert kinds == ["counter", "recruit", "assassinate", "retire", "pass"]
    assert [env.decode(index).cards for index in _indices_of(env, "assassinate")] == [
        (ace,) for ace in ACES
    ]


def _indices_of(env: DeckOfSpiesEnv, kind: str) -> range:
    """The indices of a kind of action."""
    return action_table(env.rules.hand_size).actions_of(kind)


# --- Observations ---------------------------------------------------------------------------------


@STEADY
@given(positions(), st.lists(st.integers(0, 10**6), max_size=6), st.integers(0, 99))
def test_recall_holds_the_whole_position(position: Position, choices: list[int], seed: int) -> None:
    """D14: observation to state to observation, at the start and after some actions."""
    env = position.env(seed)
    layout = observation_layout("recall", position.rules.hand_size)
    games = Games(1, rules=position.rules)
    observation, _ = env.reset(
        seed=seed, options={"zones": position.zones, "phase": position.phase}
    )
    for choice in (*choices, None):
        (state,) = states_from_recall(observation[np.newaxis])
        actual = env.get_state()["state"]
        for name in state.dtype.names or ():
            if name != "outcome":  # not to be seen on the table
                assert state[name] == actual[name], name
        games.states[0] = state
        games.show()
        assert np.array_equal(games.observations[0], observation)
        assert np.array_equal(games.masks[0], env.action_masks())
        _check_fields(env, observation, layout)
        legal = sorted(legal_actions(env).values())
        if choice is None or not legal:
            break
        observation, *_ = env.step(legal[choice % len(legal)])


def _check_fields(env: DeckOfSpiesEnv, observation: Any, layout: dict[str, slice]) -> None:
    """Each field against the zones by name; the slots show the hand in the order of actions."""
    zones = env.zones()
    assert env.observation_space.contains(observation)
    for zone in ("hand", "draw_deck", "draw_discard", "spy", "spy_deck", "spy_discard"):
        field = observation[layout[zone]]
        cards = ALL_CARDS if len(field) == 52 else SPIES
        assert tuple(np.array(cards)[field == 1].tolist()) == zones[zone], zone
    assert observation[layout["phase"]].tolist() == [env.phase == "act", env.phase == "retire"]
    slots = observation[layout["slots"]].reshape(-1, 17)
    assert slots[len(zones["hand"]) :].sum() == 0
    shown = [
        RANKS[int(slot[:13].argmax())] + SUITS[int(slot[13:].argmax())]
        for slot in slots[: len(zones["hand"])]
    ]
    assert tuple(shown) == zones["hand"]


# --- The symmetry of the suits --------------------------------------------------------------------


def recoloured(zones: Mapping[str, tuple[str, ...]], suits: Mapping[str, str]) -> Zones:
    """The zones with all suits renamed."""
    return {
        zone: in_order(card[0] + suits[card[1]] for card in cards) for zone, cards in zones.items()
    }


@settings(STEADY, max_examples=40)
@given(positions(), st.integers(0, 10**6))
def test_recolouring_commutes_with_play(position: Position, choice: int) -> None:
    """All 24 renamings: legal actions and afterstates map, and so do the sizes after the draw."""
    env = position.env()
    legal = legal_actions(env)
    certain = {action: env.afterstate(index) for action, index in legal.items()}
    chosen = sorted(legal)[choice % len(legal)]
    env.step(legal[chosen])
    sizes = {zone: len(cards) for zone, cards in env.zones().items()}
    for suits in RECOLOURINGS:
        renamed = Position(position.rules, recoloured(position.zones, suits), position.phase)
        twin = renamed.env()
        mapped = {
            action: (action[0], in_order(card[0] + suits[card[1]] for card in action[1]))
            for action in legal
        }
        twin_legal = legal_actions(twin)
        assert set(mapped.values()) == set(twin_legal)
        for action, image in mapped.items():
            assert twin.afterstate(twin_legal[image]) == recoloured(certain[action], suits)
        twin.step(twin_legal[mapped[chosen]])
        assert {zone: len(cards) for zone, cards in twin.zones().items()} == sizes
        # Whether D8 strikes depends on the draw; all else is settled by the afterstate.
        if "over" not in (env.phase, twin.phase) or not twin.zones()["spy"]:
            assert twin.phase == env.phase


@settings(STEADY, max_examples=25)
@given(positions(), st.integers(0, 10**6))
def test_recolouring_maps_the_possible_outcomes(position: Position, choice: int) -> None:
    """With few cards to draw and few spies to come, the sets of possible outcomes map, too."""
    zones = {zone: list(cards) for zone, cards in position.zones.items()}
    # Leave three cards on the piles at most, and two unseen spies, so that all outcomes are met.
    for zone, most in (("draw_deck", 2), ("draw_discard", 1), ("spy_deck", 2)):
        aces = [card for card in zones[zone] if card in ACES]
        keep = (aces + [card for card in zones[zone] if card not in aces])[:most]
        zones["spy_discard"] += [card for card in zones[zone] if card not in keep]
        zones[zone] = keep
    small = Position(position.rules, completed(zones), position.phase)
    outcomes = _outcomes(small, choice)
    if len(outcomes[1]) > 24:  # too many to be sure that each is met
        return
    for suits in RECOLOURINGS[1::5]:
        twin = Position(small.rules, recoloured(small.zones, suits), small.phase)
        (kind, cards), expected = outcomes
        image = (kind, in_order(card[0] + suits[card[1]] for card in cards))
        found = _outcomes(twin, image)[1]
        assert found == {
            (phase, tuple(recoloured(dict(after), suits).items())) for phase, after in expected
        }


Outcome = tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]


def _outcomes(position: Position, action: int | TextAction) -> tuple[TextAction, set[Outcome]]:
    """An action, given by itself or by number, and what follows it in 400 continuations."""
    env = position.env()
    legal = legal_actions(env)
    if isinstance(action, int):
        action = sorted(legal)[action % len(legal)]
    games = Games(400, rules=position.rules)
    games.seed(range(400), range(400))
    games.deal()
    games.states[:] = env.get_state()["state"]
    games.show()
    games.step(np.full(400, legal[action]))
    found: set[Outcome] = set()
    for state in np.unique(games.states):
        snapshot = env.get_state()
        snapshot["state"] = state
        env.set_state(snapshot)
        found.add((env.phase, tuple(env.zones().items())))
    return action, found
