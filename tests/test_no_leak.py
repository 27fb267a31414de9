"""Tests that an agent learns nothing that a player at the table could not know (D14).

Pairs of games are made to differ only in what is hidden, and everything that an agent gets to see
must be the same: what is out of sight for ``table``, and the order of face-down piles for both.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from conftest import in_order, new_env

from deck_of_spies_env.integrations.sb3 import make_vec_env
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv

OBSERVATIONS = ("recall", "table")
HIDDEN_FROM_THE_TABLE = ("draw_deck", "spy_deck", "spy_discard", "removed")
LOWEST_SPY = "5c"

Zones = dict[str, tuple[str, ...]]


def random_positions(count: int, seed: int = 0, **arguments: Any) -> Iterable[DeckOfSpiesEnv]:
    """Iterate over one environment in random play, at every decision."""
    env = new_env(**arguments)
    rng = np.random.default_rng(seed)
    for episode in range(count):
        env.reset(seed=seed if episode == 0 else None)
        while env.phase != "over":
            yield env
            env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))


def is_spy(card: str) -> bool:
    """Return whether a card can be in the Spy Deck."""
    return card[0] not in "A234"


def shuffled_out_of_sight(zones: Zones, rng: np.random.Generator) -> Zones:
    """Deal the hidden cards anew to the hidden piles, each keeping its size."""
    changed = dict(zones)
    removed = list(zones["removed"])
    hidden = [card for zone in HIDDEN_FROM_THE_TABLE for card in zones[zone]]
    order = rng.permutation(hidden).tolist()
    # The Spy Deck takes spies only, and only Aces leave the game.
    spy_deck = [card for card in order if is_spy(card)][: len(zones["spy_deck"])]
    aces = [card for card in order if card[0] == "A"][: len(removed)]
    rest = [card for card in order if card not in spy_deck and card not in aces]
    size = len(zones["draw_deck"])
    changed["spy_deck"] = in_order(spy_deck)
    changed["removed"] = in_order(aces)
    changed["draw_deck"] = in_order(rest[:size])
    changed["spy_discard"] = in_order(rest[size:])
    return changed


@pytest.mark.parametrize("hand_size", [4, 5, 8])
def test_table_shows_nothing_that_is_out_of_sight(hand_size: int) -> None:
    rules = {"hand_size": hand_size}
    table = new_env(rules, observation="table")
    other = new_env(rules, observation="table")
    recall, other_recall = new_env(rules), new_env(rules)
    rng = np.random.default_rng(1)
    compared = 0
    for env in random_positions(15, rules=rules):
        zones = env.zones()
        changed = shuffled_out_of_sight(zones, rng)
        if changed == zones:
            continue
        options = {"zones": zones, "phase": env.phase}
        try:
            seen, _ = other.reset(options={"zones": changed, "phase": env.phase})
        except ValueError:  # the last Aces went out of reach
            continue
        assert np.array_equal(table.reset(options=options)[0], seen)
        # The check can fail: perfect recall tells the two apart.
        assert not np.array_equal(
            recall.reset(options=options)[0],
            other_recall.reset(options={"zones": changed, "phase": env.phase})[0],
        )
        compared += 1
    assert compared > 200


def test_table_and_recall_show_what_is_in_sight() -> None:
    """The other way round: a difference in plain sight is seen."""
    envs = {observation: new_env(observation=observation) for observation in OBSERVATIONS}
    rng = np.random.default_rng(2)
    compared = 0
    for env in random_positions(5):
        zones = env.zones()
        for zone in ("hand", "draw_discard"):
            swappable = [card for card in zones["draw_deck"] if card[0] != "A"]
            mine = [card for card in zones[zone] if card[0] != "A"]
            if not swappable or not mine or env.phase != "act":
                continue
            leave, come = str(rng.choice(mine)), str(rng.choice(swappable))
            swap = {leave: come, come: leave}
            changed = {
                name: in_order(swap.get(card, card) for card in cards)
                for name, cards in zones.items()
            }
            for single in envs.values():
                try:
                    seen = single.reset(options={"zones": zones})[0]
                    assert not np.array_equal(seen, single.reset(options={"zones": changed})[0])
                except ValueError:  # no Ace left for the weaker hand
                    continue
                compared += 1
    assert compared > 100


def with_other_streams(state: Any, seed: int) -> Any:
    """Return a copy of a state that differs in its streams alone: in what comes next."""
    changed = state.copy()
    words = np.random.default_rng(seed).integers(1 << 63, size=4, dtype=np.uint64)
    for field, word in zip(("key", "gamma", "spies", "draws"), words, strict=True):
        changed["streams"][field] = word | np.uint64(1)
    return changed


def everything_told(env: DeckOfSpiesEnv) -> list[Any]:
    """Return all that an environment tells without playing on."""
    legal = np.flatnonzero(env.action_masks()).tolist()
    return [
        env.zones(),
        env.phase,
        env.render(),
        [(action, env.decode(action), env.afterstate(action)) for action in legal],
    ]


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_streams_do_not_show(observation: str) -> None:
    pair = make_vec_env("DeckOfSpies-v0", 2, observation=observation)
    single = new_env(observation=observation, render_mode="ansi")
    decisions = diverged = 0
    for env in random_positions(6):
        states = np.stack([env.get_state(), with_other_streams(env.get_state(), decisions)])
        observations = pair.set_state(states)
        masks = pair.action_masks().copy()
        assert np.array_equal(observations[0], observations[1])
        assert np.array_equal(masks[0], masks[1])
        told = []
        for state in states:
            single.set_state(state)
            told.append(everything_told(single))
        assert told[0] == told[1]
        pair.step(np.full(2, masks[0].argmax()))
        zones = pair.env_method("zones")
        diverged += zones[0] != zones[1]
        decisions += 1
    assert decisions > 150
    assert diverged > decisions / 2  # the streams did differ


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_seeds_do_not_show(observation: str) -> None:
    """The same position under two seeds, reached by options, is shown alike."""
    env, other = (new_env(observation=observation) for _ in range(2))
    for number, source in enumerate(random_positions(4)):
        options = {"zones": source.zones(), "phase": source.phase}
        obs, info = env.reset(seed=number, options=options)
        other_obs, other_info = other.reset(seed=number + 1000, options=options)
        assert np.array_equal(obs, other_obs)
        assert set(info) == set(other_info) == {"action_mask"}
        assert np.array_equal(info["action_mask"], other_info["action_mask"])


def test_zones_are_sorted() -> None:
    for env in random_positions(10):
        for cards in env.zones().values():
            assert cards == in_order(cards)
        for action in np.flatnonzero(env.action_masks()).tolist():
            for cards in env.afterstate(action).values():
                assert cards == in_order(cards)


def test_a_state_holds_no_order_of_piles() -> None:
    """A saved state names its cards as sets: whoever reads it knows no more than ``zones()``."""
    for env in random_positions(3):
        state = env.get_state()["state"]
        for zone in ("hand", "draw_deck", "draw_discard", "spy_deck", "spy_discard"):
            assert int(state[zone]).bit_count() == len(env.zones()[zone])
        sets = {"hand", "draw_deck", "draw_discard", "spy_deck", "spy_discard"}
        assert set(state.dtype.names) == sets | {"spy", "phase", "outcome"}


# --- Forks ---------------------------------------------------------------------------------------


def future(env: DeckOfSpiesEnv) -> tuple[tuple[str, ...], ...]:
    """Play the lowest legal action on to the end; return hands and spies met."""
    met: list[tuple[str, ...]] = []
    while env.phase != "over":
        env.step(int(np.flatnonzero(env.action_masks())[0]))
        zones = env.zones()
        met.append((*zones["hand"], *zones["spy"]))
    return tuple(met)


@pytest.mark.parametrize("steps", [0, 1, 8])
def test_forks_with_different_seeds_diverge(steps: int) -> None:
    env = new_env()
    env.reset(seed=3)
    for _ in range(steps):
        env.step(int(np.flatnonzero(env.action_masks())[0]))
    futures = [future(env.fork(seed)) for seed in range(30)]
    assert len(set(futures)) == 30
    assert future(env.fork(0)) == futures[0]
    assert future(copy.deepcopy(env)) == future(env)


@pytest.mark.parametrize("episode", [0, 1])
@pytest.mark.parametrize("seed", [0, 3])
def test_no_fork_replays_the_future_of_its_game(seed: int, episode: int) -> None:
    """A planner that happens to fork with the seed of the deal must not see what comes next."""
    env = new_env()
    env.reset(seed=seed)
    for _ in range(episode):
        env.reset()
    forks = [future(env.fork(number)) for number in range(10)]
    real = future(env)
    assert [number for number, fork in enumerate(forks) if fork == real] == []


def test_the_first_draw_of_a_fork_is_uniform() -> None:
    """The next spy of a fork does not lean towards the one that comes."""
    env = new_env()
    env.reset(seed=5)
    action = int(np.flatnonzero(env.action_masks())[0])
    unseen = [card for card in env.zones()["spy_deck"] if card[0] in "567"]
    met = []
    for seed in range(1000, 1550):
        twin = env.fork(seed)
        twin.step(action)
        met.append(twin.zones()["spy"][0])
    counts = np.array([met.count(card) for card in unseen])
    assert counts.sum() == 550
    # Expected 50 each; chi-square with 10 degrees of freedom, beyond 44.2 once in 300,000.
    assert ((counts - 50) ** 2 / 50).sum() < 44.2


def test_the_vector_env_hides_the_streams_too() -> None:
    zones = next(iter(random_positions(1))).zones()
    envs = gym.make_vec("DeckOfSpies-v0", num_envs=50)
    observations, infos = envs.reset(seed=0, options={"zones": zones})
    assert len(np.unique(observations, axis=0)) == 1
    assert len(np.unique(infos["action_mask"], axis=0)) == 1
    actions = np.full(50, int(infos["action_mask"][0].argmax()))
    assert len(np.unique(envs.step(actions)[0], axis=0)) > 10  # what is drawn then differs
