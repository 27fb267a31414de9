"""Tests of relabelled suits: the environment itself, at the relabelled position, is the judge."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from conftest import SUITS, Zones, in_order, new_env
from sb3_contrib.common.maskable.utils import get_action_masks

from benchmarks.recolouring import (
    RecolouredAgent,
    RecolouredEnvs,
    Recolouring,
    recolour,
    sorted_orders,
)
from deck_of_spies_env.agent import BatchAgent
from deck_of_spies_env.integrations.sb3 import make_vec_env
from deck_of_spies_env.solitaire.actions import Action, IllegalActionError
from deck_of_spies_env.solitaire.observations import LAYOUT

HAND_SIZES = (3, 4, 5, 6, 8)
ORDERS = np.array(list(itertools.permutations(range(4))))
NUM_ENVS = 6


class Positions(NamedTuple):
    """Positions of random games, in their order."""

    observations: npt.NDArray[np.int8]
    masks: npt.NDArray[np.bool_]
    zones: list[Zones]
    phases: list[str]
    actions: list[dict[int, Action]]
    """Those whose slots there are, legal or not."""


@cache
def positions(hand_size: int) -> Positions:
    """Whole games of random play; the arrays are read-only."""
    rng = np.random.default_rng(hand_size)
    env = new_env({"hand_size": hand_size})
    rows: list[tuple[Any, ...]] = []
    while len(rows) < 200:
        observation, _ = env.reset(seed=len(rows))
        while env.phase != "over":
            mask = env.action_masks().astype(np.bool_)
            rows.append((observation.copy(), mask, env.zones(), env.phase, named_actions(env)))
            observation, *_ = env.step(int(rng.choice(np.flatnonzero(mask))))
    observations, masks, *others = zip(*rows, strict=True)
    arrays = np.stack(observations), np.stack(masks)
    for array in arrays:
        array.flags.writeable = False
    return Positions(*arrays, *map(list, others))


def named_actions(env: Any) -> dict[int, Action]:
    """The actions that the hand has the slots for."""
    named = {}
    for index in range(len(env.action_masks())):
        try:
            named[index] = env.decode(index)
        except IllegalActionError:
            continue
    return named


def some_orders(count: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """Random orders of the suits."""
    return ORDERS[np.random.default_rng(seed).integers(len(ORDERS), size=count)]


def renamed(names: tuple[str, ...], order: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """Cards with relabelled suits, in order: order[0] becomes clubs, and so on."""
    suits = {SUITS[old]: SUITS[new] for new, old in enumerate(order)}
    return in_order(name[0] + suits[name[1]] for name in names)


def known(observations: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Observations without the Aces of the Spy Discard, which are out of play like removed ones.

    The order of the suits does not tell these from one another.
    """
    blanked = observations.copy()
    first = LAYOUT["spy_discard"].start
    blanked[:, first : first + 4] = 0
    return blanked


def have_no_suits_alike(found: Positions) -> npt.NDArray[np.bool_]:
    """Whether all 24 relabellings of a position can be told apart, bool (N,)."""
    count = len(found.observations)
    all_shown = [
        known(recolour(found.observations, found.masks, np.tile(order, (count, 1)))[0])
        for order in ORDERS
    ]
    return np.array(
        [len({row.tobytes() for row in rows}) == 24 for rows in zip(*all_shown, strict=True)]
    )


# --- Positions and actions ---


@pytest.mark.parametrize("hand_size", HAND_SIZES)
def test_positions_are_what_the_environment_shows(hand_size: int) -> None:
    found = positions(hand_size)
    assert set(found.phases) == {"act", "retire"}
    twin = new_env({"hand_size": hand_size})
    orders = some_orders(len(found.zones))
    shown, masks, back = recolour(found.observations, found.masks, orders)
    assert (shown.dtype, masks.dtype, back.dtype) == (np.int8, np.bool_, np.int64)
    for i, order in enumerate(orders):
        zones = {zone: renamed(names, order) for zone, names in found.zones[i].items()}
        options = {"zones": zones, "phase": found.phases[i]}
        expected, _ = twin.reset(seed=0, options=options)
        assert np.array_equal(shown[i], expected)
        assert np.array_equal(masks[i], twin.action_masks())
        check_actions(found, i, order, back[i], named_actions(twin))


def check_actions(
    found: Positions,
    i: int,
    order: npt.NDArray[np.int64],
    back: npt.NDArray[np.int64],
    named: dict[int, Action],
) -> None:
    """The originals of a position's actions: legal ones for legal ones, with the same cards."""
    for new, action in named.items():
        # With a full hand, before a play, there are retire actions whose originals there are not.
        if action.kind != "retire" or found.phases[i] == "retire":
            original = found.actions[i][back[new]]
            assert action == (original.kind, renamed(original.cards, order))
    legal = np.flatnonzero(found.masks[i][back])
    assert sorted(back[legal]) == np.flatnonzero(found.masks[i]).tolist()
    assert not found.masks[i][np.delete(back, legal)].any()


@pytest.mark.parametrize("hand_size", HAND_SIZES)
def test_relabelling_back_gives_the_position(hand_size: int) -> None:
    found = positions(hand_size)
    orders = some_orders(len(found.zones))
    shown, masks, back = recolour(found.observations, found.masks, orders)
    again = recolour(shown, masks, orders.argsort(axis=1))
    assert np.array_equal(again[0], found.observations)
    assert np.array_equal(again[1], found.masks)
    rows, actions = np.nonzero(found.masks)
    assert np.array_equal(back[rows, again[2][rows, actions]], actions)


def test_the_suits_as_they_are_change_nothing() -> None:
    found = positions(5)
    orders = np.tile(np.arange(4), (len(found.zones), 1))
    shown, masks, back = recolour(found.observations, found.masks, orders)
    assert np.array_equal(shown, found.observations)
    assert np.array_equal(masks, found.masks)
    assert (back == np.arange(78)).all()


@pytest.mark.parametrize("hand_size", HAND_SIZES)
def test_the_canonical_order_does_not_depend_on_the_labels(hand_size: int) -> None:
    found = positions(hand_size)
    unlike = have_no_suits_alike(found)
    assert unlike.mean() > 0.5
    expected = canonical(found.observations, found.masks)
    for seed in range(3):
        orders = some_orders(len(found.zones), seed)
        shown, masks, _ = canonical(*recolour(found.observations, found.masks, orders)[:2])
        assert np.array_equal(known(shown), known(expected[0]))
        assert np.array_equal(shown[unlike], expected[0][unlike])
        assert np.array_equal(masks, expected[1])
    spies = expected[0][:, LAYOUT["spy"]].nonzero()[1]
    assert len(spies) > 0
    assert (spies % 4 == 0).all()  # the spy's suit is the first


def canonical(observations: npt.NDArray[np.int8], masks: npt.NDArray[np.bool_]) -> Any:
    """Positions with sorted suits."""
    orders = sorted_orders(observations)
    assert (np.sort(orders, axis=1) == np.arange(4)).all()
    return recolour(observations, masks, orders)


# --- Games ---


@pytest.mark.parametrize("hand_size", [3, 5, 8])
@pytest.mark.parametrize("recolouring", ["sorted", "random"])
def test_games_are_those_of_the_environment(
    recolouring: Recolouring, hand_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the wrapped games are told is what was chosen, and a plain twin of them plays alike."""
    inner, plain = (
        make_vec_env("DeckOfSpies-v0", NUM_ENVS, seed=3, rules={"hand_size": hand_size})
        for _ in range(2)
    )
    envs = RecolouredEnvs(inner, recolouring, seed=1)
    told: list[npt.NDArray[np.int64]] = []
    step_async = inner.step_async
    monkeypatch.setattr(inner, "step_async", lambda a: (told.append(a), step_async(a)))
    rng = np.random.default_rng(0)
    shown, seen = envs.reset(), plain.reset()
    ended = 0
    for _ in range(100):
        masks = envs.action_masks()
        assert np.array_equal(np.stack(get_action_masks(envs)), masks)
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        originals = possible_originals(recolouring, seen, plain.action_masks(), shown, masks)
        shown, rewards, dones, infos = envs.step(actions)
        for i, backs in enumerate(originals):
            assert told[-1][i] in {back[actions[i]] for back in backs}
        seen, *expected = plain.step(told[-1])
        assert np.array_equal(rewards, expected[0])
        assert np.array_equal(dones, expected[1])
        for i in np.flatnonzero(dones):
            ended += 1
            check_last_observations(recolouring, infos[i], expected[2][i])
        # The games' own arrays are not written to.
        assert np.array_equal(inner.games.observations, seen)
        assert np.array_equal(inner.games.masks, plain.games.masks)
    assert ended


def possible_originals(
    recolouring: Recolouring, seen: Any, seen_masks: Any, shown: Any, masks: Any
) -> list[list[npt.NDArray[np.int64]]]:
    """For each game the original actions, under each order that gives what is shown."""
    possible = np.tile(ORDERS[:, None], (1, NUM_ENVS, 1))
    if recolouring == "sorted":
        possible = sorted_orders(seen)[None]
    originals: list[list[npt.NDArray[np.int64]]] = [[] for _ in range(NUM_ENVS)]
    for orders in possible:
        would_show, would_mask, back = recolour(seen, seen_masks, orders)
        for i in range(NUM_ENVS):
            if np.array_equal(would_show[i], shown[i]):
                assert np.array_equal(would_mask[i], masks[i])
                originals[i].append(back[i])
    assert all(originals)
    return originals


def check_last_observations(
    recolouring: Recolouring, info: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The last observation of an ended game is relabelled, too."""
    (last, seen) = (each["terminal_observation"][None] for each in (info, expected))
    masks = np.zeros((1, len(expected["action_mask"])), dtype=np.bool_)
    orders = sorted_orders(seen) if recolouring == "sorted" else ORDERS
    assert any(np.array_equal(recolour(seen, masks, order[None])[0], last) for order in orders)
    assert info["is_success"] == expected["is_success"]


def test_random_orders_are_fresh_and_repeatable() -> None:
    def play(seed: int) -> list[bytes]:
        envs = RecolouredEnvs(make_vec_env("DeckOfSpies-v0", 8, seed=0), "random", seed)
        return [envs.reset().tobytes(), envs.action_masks().tobytes()]

    assert play(1) == play(1)
    assert play(1) != play(2)
    envs = RecolouredEnvs(make_vec_env("DeckOfSpies-v0", 500, seed=0), "random")
    places = envs.reset()[:, LAYOUT["spy"]].nonzero()[1] % 4
    assert np.bincount(places).min() > 80  # the spy's suit is any of the four


def test_an_unknown_recolouring_is_named() -> None:
    with pytest.raises(ValueError, match="shuffled"):
        RecolouredEnvs(make_vec_env("DeckOfSpies-v0"), "shuffled")  # type: ignore[arg-type]


# --- Agents ---


class First(BatchAgent):
    """The first legal action: one that depends on how suits are labelled."""

    def choose(self, observations: Any, action_masks: Any) -> Any:
        return action_masks.argmax(axis=1)


def test_an_agent_plays_the_same_cards_whatever_the_labels() -> None:
    found = positions(5)
    agent = RecolouredAgent(First())
    chosen = agent.act(found.observations, found.masks)
    assert found.masks[np.arange(len(found.masks)), chosen].all()
    unlike = have_no_suits_alike(found)
    for seed in range(3):
        orders = some_orders(len(found.zones), seed)
        shown, masks, back = recolour(found.observations, found.masks, orders)
        again = back[np.arange(len(back)), agent.act(shown, masks)]
        assert np.array_equal(again[unlike], chosen[unlike])
    assert agent.act(found.observations[7], found.masks[7]) == chosen[7]
