"""What a seat may know in Skirmish (S11): views, redeals, and positions read from observations.

Statistical tests have fixed seeds and reject a perfect engine with a probability of ``ALPHA`` each;
they make fewer than a thousand, so that one in a million of such files would fail by chance.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from math import factorial, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from skirmish_tools import (
    batches_of,
    dealt,
    ended,
    ids_in,
    observations_of,
    random_actions,
    redeals_of,
    views_of,
)

from deck_of_spies_env.skirmish.games import Games, read_observations
from deck_of_spies_env.skirmish.observations import HIDDEN, observation_layout
from deck_of_spies_env.skirmish.rules import SKIRMISH, STATE, STREAMS, WAR

ALPHA = 1e-9

States = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

TINY: dict[int, dict[str, Any]] = {
    2: {"ranks": "A28QK", "num_suits": 2, "num_jokers": 1, "max_rounds": 60},
    3: {"ranks": "A2JQK", "num_suits": 3, "num_jokers": 0, "max_rounds": 60},
    4: {"ranks": "A29JK", "num_suits": 3, "num_jokers": 2, "max_rounds": 60},
}
"""Decks of 11, 15 and 17 cards, of which 1, 0 and 1 are burned."""

TINIEST: dict[int, dict[str, Any]] = {
    2: TINY[2],
    3: {"ranks": "A2K", "num_suits": 3, "num_jokers": 1},
    4: {"ranks": "AJQK", "num_suits": 3, "num_jokers": 1},
}
"""Decks of so few cards that all deals can be told at the start."""


# --- Tools ----------------------------------------------------------------------------------------


def bits(masks: Any) -> npt.NDArray[np.bool_]:
    """Card sets as bool, with an axis of 54 cards more."""
    masks = np.asarray(masks, dtype=np.uint64)
    return masks[..., None] >> np.arange(54, dtype=np.uint64) & np.uint64(1) != 0


BURNED = 100


def places_and_pools(states: States, seat: int) -> tuple[Ints, Ints]:
    """Where each card is hidden from a seat, and which pool it belongs to (N, 54); else -1.

    A place is 10 x owner + 0, 1 or 2 for hand, Supply and stakes; a pool is 0 for the deal, and
    1000 x (owner + 1) + 1, 2 or 3 for what was recycled before, last but one and last.
    """
    places = np.full((len(states), 54), -1)
    pools = places.copy()
    batch = batches_of(states)
    for owner in range(4):
        for kind, zone in enumerate(("hand", "supply", "stakes")):
            if zone == "hand" and owner == seat:
                continue
            held = bits(states[zone][:, owner])
            places[held] = 10 * owner + kind
            pools[held] = np.where(batch > 0, 1000 * (owner + 1) + batch, 0)[held]
    burned = bits(states["burned"])
    places[burned], pools[burned] = BURNED, 0
    return places, pools


def patterns(states: States, seat: int) -> tuple[Ints, Ints]:
    """The places of the hidden cards, pool by pool: by card, and sorted (N, 54).

    States with the same second row have hidden cards in the same numbers of the same pools; each
    order of the places within the pools is one deal that agrees with what the seat knows.
    """
    places, pools = places_and_pools(states, seat)
    last = np.where(pools < 0, 10**6, pools)
    by_card = np.argsort(last * 100 + np.arange(54), axis=1)
    by_place = np.argsort(last * 1000 + places, axis=1)
    codes = np.where(pools < 0, -1, pools * 1000 + places)
    return np.take_along_axis(codes, by_card, 1), np.take_along_axis(codes, by_place, 1)


def number_of_deals(structure: Ints) -> int:
    """How many deals agree with what a seat knows: the orders of the places in each pool."""
    codes = Counter(structure[structure >= 0].tolist())
    sizes: Counter[int] = Counter()
    for code, count in codes.items():
        sizes[code // 1000] += count
    ways = prod(factorial(size) for size in sizes.values())
    return ways // prod(factorial(count) for count in codes.values())


def fingerprints(rows: Ints) -> Ints:
    """A word for each row, which is another one for another row (NumPy sorts rows slowly)."""
    factors = np.random.default_rng(0).integers(1 << 62, size=rows.shape[1])
    return (rows.astype(np.int64) * factors).sum(axis=1)  # modulo 2**64


def assert_uniform(drawn: Ints, number: int) -> None:
    """Chi-square: the rows are uniform over so many possible ones."""
    found, counts = np.unique(fingerprints(drawn), return_counts=True)
    expected = len(drawn) / number
    assert expected >= 10, "too few observations for the chi-square law"
    assert len(found) <= number
    statistic = ((counts - expected) ** 2).sum() / expected + (number - len(found)) * expected
    p_value = float(stats.chi2.sf(statistic, number - 1))
    assert p_value > ALPHA, f"p = {p_value:.2g} for {len(drawn)} of {number}, {counts}"


def any_card(games: Games, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Every card in hand alike, so that a choice says nothing of what is held back."""
    held = games.observations[:, :, observation_layout(games.num_players)["hand"]]
    weights = np.concatenate([held, held[:, :, :1] * 0], axis=2) + 1e-9
    noise = rng.exponential(size=weights.shape) / weights
    return np.where(games.masks != 0, noise, np.inf).argmin(axis=2)


def positions(
    num_games: int, num_players: int, every: int = 1, **rules: Any
) -> Iterator[tuple[Games, States]]:
    """Random games: at every so many steps, the states that go on."""
    games = dealt(range(num_games), num_players, rules=rules)
    rng = np.random.default_rng(num_players)
    for step in itertools.count():
        going_on = ~ended(games)
        if not going_on.any():
            return
        if step % every == 0:
            yield games, games.states[going_on].copy()
        games.step(any_card(games, rng), going_on)


def sampled(num_players: int, number: int, seed: int = 0, **rules: Any) -> tuple[Games, States]:
    """States of random games, among them many of Wars and after recycles."""
    found = list(positions(40, num_players, **rules))
    states = np.concatenate([one for _, one in found])
    rng = np.random.default_rng(seed)
    rare = (states["phase"] == WAR) | (states["previous"] != 0).any(axis=1)
    weights = np.where(rare, 4.0, 1.0)
    chosen = rng.choice(
        len(states), min(number, len(states)), replace=False, p=weights / weights.sum()
    )
    return found[0][0], states[chosen]


def swapped(state: Any, first: int, second: int) -> Any:
    """The state with two cards in each other's place, as if it had always been so."""
    other = state.copy()
    change = {first: second, second: first}
    for zone in ("hand", "supply", "capture", "stakes"):
        for seat in range(4):
            cards = ids_in(int(state[zone][seat]))
            other[zone][seat] = sum(1 << change.get(card, card) for card in cards)
    for zone in ("graveyard", "burned", "dealt"):
        other[zone] = sum(1 << change.get(card, card) for card in ids_in(int(state[zone])))
    for seat in range(4):
        committed = int(state["committed"][seat])
        other["committed"][seat] = change.get(committed, committed)
    for name in ("latest", "previous"):
        for seat in range(4):
            cards = ids_in(int(state[name][seat]))
            other[name][seat] = sum(1 << change.get(card, card) for card in cards)
    return other


def same_view(games: Games, state: Any, other: Any, seat: int) -> bool:
    return bool(views_of(games, state, seat)[0] == views_of(games, other, seat)[0])


# --- Views ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("recycle_captures", [True, False])
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_hidden_cards_of_a_pool_make_no_difference(
    num_players: int, recycle_captures: bool
) -> None:
    """Neither to views nor to observations, nor to what the seat may do."""
    games, states = sampled(num_players, 150, recycle_captures=recycle_captures)
    rng = np.random.default_rng(1)
    moved = recycled = 0
    for state, seat in itertools.product(states, range(num_players)):
        places, pools = (one[0] for one in places_and_pools(state.reshape(1), seat))
        hidden = np.flatnonzero(pools >= 0)
        first = rng.choice(hidden)
        mates = np.flatnonzero((pools == pools[first]) & (places != places[first]))
        if not mates.size:
            continue
        other = swapped(state, int(first), int(rng.choice(mates)))
        assert other != state
        assert same_view(games, state, other, seat)
        seen, masks = observations_of(games, np.stack([state, other]))
        assert (seen[0, seat] == seen[1, seat]).all()
        assert (masks[0, seat] == masks[1, seat]).all()
        moved += 1
        recycled += pools[first] > 0
    assert moved > 150
    assert (recycled > 20) == recycle_captures


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_known_cards_make_a_difference(num_players: int) -> None:
    """Two cards that the seat can tell apart change the view, wherever they lie."""
    games, states = sampled(num_players, 150)
    rng = np.random.default_rng(2)
    kinds: Counter[str] = Counter()
    for state, seat in itertools.product(states, range(num_players)):
        (places,), (pools,) = places_and_pools(state.reshape(1), seat)
        zone = np.full(54, -1)  # of the cards in sight
        for owner in range(num_players):
            zone[bits(state["capture"][owner])] = owner
            if state["committed"][owner] >= 0:
                zone[int(state["committed"][owner])] = 10 + owner
        zone[bits(state["graveyard"])] = 20
        zone[bits(state["hand"][seat])] = 30
        first, second = rng.choice(54, 2, replace=False)
        both_hidden = pools[first] >= 0 and pools[second] >= 0
        if both_hidden and pools[first] == pools[second]:
            continue
        if pools[first] < 0 and pools[second] < 0 and zone[first] == zone[second]:
            continue
        other = swapped(state, int(first), int(second))
        assert not same_view(games, state, other, seat), (state, seat, first, second)
        kinds["two pools" if both_hidden else "a card in sight"] += 1
        in_one_place = both_hidden and places[first] == places[second]
        if first // 4 != second // 4 and not in_one_place:
            seen, _ = observations_of(games, np.stack([state, other]))
            assert (seen[0, seat] != seen[1, seat]).any()
            kinds["two ranks"] += 1
    assert kinds["two pools"] > 5
    assert kinds["a card in sight"] > 150
    assert kinds["two ranks"] > 150


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_a_view_of_a_view_is_the_same(num_players: int) -> None:
    games, states = sampled(num_players, 200)
    for seat in range(num_players):
        views = views_of(games, states, seat)
        assert (views_of(games, views, seat) == views).all()
        seen, _ = observations_of(games, states)
        of_views, _ = observations_of(games, views)
        assert (seen[:, seat] == of_views[:, seat]).all()


def test_nothing_of_the_streams_is_in_a_view() -> None:
    """A state holds sets and numbers of what has happened; what comes next is elsewhere."""
    assert not set(STATE.names or ()) & set(STREAMS.names or ())
    assert set(STATE.names or ()) == {
        *("hand", "supply", "capture", "stakes", "graveyard", "burned"),
        *("dealt", "latest", "previous"),
        *("rounds", "committed", "participants", "offenders", "phase"),
    }
    games, others = dealt(range(50), 3), dealt(range(50, 100), 3)
    rng = np.random.default_rng(0)
    futures = 0
    for _ in range(8):
        others.states[:] = games.states
        others.show()
        assert (others.observations == games.observations).all()
        assert (others.masks == games.masks).all()
        for seat in range(3):
            views = views_of(games, games.states, seat), views_of(others, others.states, seat)
            assert (views[0] == views[1]).all()
        actions, going_on = random_actions(games, rng), ~ended(games)
        games.step(actions, going_on)
        others.step(actions, going_on)
        futures += (games.states != others.states).sum()
    assert futures > 200  # the streams did differ


# --- Redeals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("recycle_captures", [True, False])
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_redeals_keep_all_that_is_known(num_players: int, recycle_captures: bool) -> None:
    """Views and observations, and the batches of every pile."""
    games, states = sampled(num_players, 60, seed=3, recycle_captures=recycle_captures)
    different = 0
    for state, seat in itertools.product(states, range(num_players)):
        redeals = redeals_of(games, state, seat, 10)
        view = views_of(games, state, seat)[0]
        assert (views_of(games, redeals, seat) == view).all()
        assert (views_of(games, redeals_of(games, view, seat, 10), seat) == view).all()
        seen, masks = observations_of(games, np.concatenate([state.reshape(1), redeals]))
        assert (seen[:, seat] == seen[0, seat]).all()
        assert (masks[:, seat] == masks[0, seat]).all()
        _, structures = patterns(np.concatenate([state.reshape(1), redeals]), seat)
        assert (structures == structures[0]).all()
        different += int((redeals != state).sum())
    assert different > 8 * 60 * num_players


def recycles_seen(states: States) -> Ints:
    """Of how many recycles something is still hidden: 0, 1, or 2 and more."""
    latest, previous = (states[name] != 0 for name in ("latest", "previous"))
    return latest.any(axis=1) + previous.any(axis=1).astype(np.int64)


KINDS = {
    "at the start": lambda states: states["rounds"] == 0,
    "in a War": lambda states: states["phase"] == WAR,
    "after a recycle": lambda states: recycles_seen(states) == 1,
    "after several": lambda states: recycles_seen(states) > 1,
    "in a War after a recycle": lambda states: (
        (states["phase"] == WAR) & (recycles_seen(states) > 0)
    ),
}


def mixed_stakes(states: States) -> npt.NDArray[np.bool_]:
    """Whether somebody staked cards from before and after a recycle."""
    staked = bits(states["stakes"])
    batch = batches_of(states)[:, None, :]
    least = np.where(staked, batch, 10**4).min(axis=2)
    most = np.where(staked, batch, -1).max(axis=2)
    return (least < most).any(axis=1)


KINDS["with stakes of two batches"] = mixed_stakes


def chosen_position(num_players: int, kind: str, least: int, most: int) -> tuple[Games, Any, int]:
    """A state of a kind, of a tiny deck, with so many deals that a seat can't tell apart."""
    rules = (TINIEST if kind == "at the start" else TINY)[num_players]
    for games, states in positions(300, num_players, **rules):
        for state in states[KINDS[kind](states)][:50]:
            for seat in range(num_players):
                _, structures = patterns(state.reshape(1), seat)
                if least <= number_of_deals(structures[0]) <= most:
                    return games, state, seat
    raise AssertionError(f"no such position {kind}")


@pytest.mark.parametrize(
    ("num_players", "kind"),
    [pair for pair in itertools.product((2, 3, 4), KINDS) if pair != (4, list(KINDS)[-1])],
)
def test_redeals_are_uniform_over_all_that_agrees(num_players: int, kind: str) -> None:
    """All deals that agree with what the seat knows are met, and equally often.

    With four players one card is staked, which is of one batch.
    """
    most = 20_000 if kind == "at the start" else 1000
    games, state, seat = chosen_position(num_players, kind, 6, most)
    _, structures = patterns(state.reshape(1), seat)
    number = number_of_deals(structures[0])
    redeals = redeals_of(games, state, seat, max(20_000, 10 * number))
    drawn, _ = patterns(redeals, seat)
    assert_uniform(drawn, number)
    _, (pools,) = places_and_pools(state.reshape(1), seat)
    if "recycle" in kind or "batches" in kind:
        assert pools.max() > 0  # something recycled is hidden


def test_redeals_are_counted_right() -> None:
    """Two players, eleven cards: 8 are hidden, in a hand of 3, Supplies of 2 and one burned."""
    games = dealt([0], 2, rules=TINY[2])
    _, structures = patterns(games.states, 0)
    assert number_of_deals(structures[0]) == factorial(8) // (factorial(3) * 2 * 2)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_game_itself_follows_the_law_of_redeals(num_players: int) -> None:
    """Whoever plays any card alike gives nothing away: then what is hidden is uniform indeed.

    This holds the pools to what happened, not to what they are said to be: many games are played,
    and among those in which a seat knows the same, all it can't tell apart is equally frequent.
    """
    kinds: Counter[Any] = Counter()
    num_games = {2: 30_000, 3: 15_000, 4: 25_000}[num_players]
    for _, states in positions(num_games, num_players, **TINY[num_players] | {"max_rounds": 12}):
        by_card, by_place = patterns(states, 0)
        width = int((by_place >= 0).sum(axis=1).max())
        extra = np.stack([recycles_seen(states), states["phase"], mixed_stakes(states)], 1)
        keys = np.concatenate([by_place[:, :width], extra], axis=1)
        _, first, which, counts = np.unique(fingerprints(keys), True, True, True)
        for index in np.argsort(-counts)[:40]:
            key = keys[first[index]]
            structure = np.append(key[:-3], -1)
            drawn = by_card[which.ravel() == index, :width]
            number = number_of_deals(structure)
            if number < 2 or len(drawn) < 10 * number:
                continue
            recycles, phase, mixed = key[-3:].tolist()
            kinds["tests"] += 1
            kinds["in a War"] += phase == WAR
            kinds["after a recycle"] += recycles == 1
            kinds["after several"] += recycles > 1
            kinds["stakes of two batches"] += mixed
            assert_uniform(drawn, number)
    assert 10 < kinds["tests"] < 300
    assert kinds["after a recycle"] > 5
    if num_players == 2:
        assert kinds["in a War"] > 5
        assert kinds["after several"] > 5
        assert kinds["stakes of two batches"] > 1


# --- Observations ---------------------------------------------------------------------------------


def rebuilt(games: Games, rows: npt.NDArray[np.int8]) -> States:
    """The views that can be read from observations."""
    states = np.zeros(len(rows), dtype=STATE)
    read_observations(rows, games.rules_record, states)
    return states


def without_lost(rows: npt.NDArray[np.int8], num_players: int) -> npt.NDArray[np.int8]:
    """Observations without what read_observation is said to lose.

    That is where the observer's own cards came from.
    """
    layout, rows = observation_layout(num_players), rows.copy()
    rows[:, layout["known_0"]] = 0
    first = layout["hidden_0"].start
    rows[:, first + HIDDEN.index("hand_dealt")] = 0
    rows[:, first + HIDDEN.index("hand_recycled")] = 0
    return rows


def ranks_known(state: Any, seat: int, num_players: int) -> Any:
    """All that a seat knows by rank; pools that lie in one place are told apart by nothing."""
    places, pools = (one[0] for one in places_and_pools(state.reshape(1), seat))

    def relative(place: int) -> int:
        return place if place == BURNED else (place // 10 - seat) % num_players * 10 + place % 10

    surely: Counter[tuple[int, int]] = Counter()
    perhaps = []
    for pool in np.unique(pools[pools >= 0]).tolist():
        cards = np.flatnonzero(pools == pool)
        where = Counter(relative(place) for place in places[cards].tolist())
        ranks = Counter((cards // 4).tolist())
        if len(where) == 1:
            surely.update({(*where, rank): count for rank, count in ranks.items()})
        else:
            perhaps.append((sorted(where.items()), sorted(ranks.items())))
    seats = [(seat + place) % num_players for place in range(num_players)]
    by_rank = [Counter(card // 4 for card in ids_in(int(state["capture"][one]))) for one in seats]
    return (
        sorted(surely.items()),
        sorted(perhaps),
        by_rank,
        [int(state["committed"][one]) >> 2 for one in seats],
        Counter(card // 4 for card in ids_in(int(state["graveyard"]))),
        Counter(card // 4 for card in ids_in(int(state["hand"][seat]))),
        [int(state["participants"]) >> one & 1 for one in seats],
        int(state["phase"]),
        [int(state["hand"][one]).bit_count() for one in seats],
    )


@pytest.mark.parametrize("recycle_captures", [True, False])
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_a_view_can_be_read_from_an_observation(num_players: int, recycle_captures: bool) -> None:
    """Its observation is the same but for what is lost, and so are its pools by rank."""
    rules = {"recycle_captures": recycle_captures}
    games, states = sampled(num_players, 400, seed=4, **rules)
    rows, masks = observations_of(games, states)
    for seat in range(num_players):
        views = rebuilt(games, rows[:, seat])
        again, masks_again = observations_of(games, views)
        assert (
            without_lost(again[:, 0], num_players) == without_lost(rows[:, seat], num_players)
        ).all()
        assert (masks_again[:, 0] == masks[:, seat]).all()
        for state, view in zip(states, views, strict=True):
            assert ranks_known(view, 0, num_players) == ranks_known(state, seat, num_players)
            everything = [view["graveyard"], view["burned"]]
            for zone in ("hand", "supply", "capture", "stakes"):
                everything += view[zone].tolist()
            everything += [1 << int(card) for card in view["committed"] if card >= 0]
            assert sum(int(pile).bit_count() for pile in everything) == 54
            assert np.bitwise_or.reduce(np.array(everything, dtype=np.uint64)) == (1 << 54) - 1


def by_rank(states: States, seat: int, num_players: int) -> Ints:
    """Where the hidden cards of each rank lie, relative to a seat: rows (N, places x 14)."""
    columns = []
    for place in range(num_players):
        owner = (seat + place) % num_players
        for zone in ("supply", "stakes", *(("hand",) if place else ())):
            columns.append(bits(states[zone][:, owner]))
    columns.append(bits(states["burned"]))
    held = np.stack(columns, axis=1)
    held = np.concatenate([held, np.zeros((*held.shape[:2], 2), bool)], axis=2)
    return held.reshape(len(states), len(columns), 14, 4).sum(axis=3).reshape(len(states), -1)


@pytest.mark.parametrize(
    ("num_players", "kind"), list(itertools.product((2, 3, 4), list(KINDS)[1:-1]))
)
def test_redeals_of_what_was_read_follow_the_same_law_by_rank(num_players: int, kind: str) -> None:
    """Against the exact law: of all deals that agree with the original, each is as likely."""
    games, state, seat = chosen_position(num_players, kind, 6, 1000)
    _, structures = patterns(state.reshape(1), seat)
    number = number_of_deals(structures[0])
    redeals = redeals_of(games, state, seat, 60 * number)
    drawn, _ = patterns(redeals, seat)
    _, first = np.unique(fingerprints(drawn), return_index=True)
    assert len(first) == number  # every deal that agrees
    outcomes, ways = np.unique(
        by_rank(redeals[first], seat, num_players), axis=0, return_counts=True
    )
    rows, _ = observations_of(games, state.reshape(1))
    read = redeals_of(games, rebuilt(games, rows[:, seat]), 0, 60 * number, seed=1)
    met, counts = np.unique(by_rank(read, 0, num_players), axis=0, return_counts=True)
    assert np.array_equal(met, outcomes)
    if len(outcomes) > 1:
        p_value = float(stats.chisquare(counts, ways / number * len(read)).pvalue)
        assert p_value > ALPHA, f"p = {p_value:.2g}"


def test_an_observation_shows_the_phase() -> None:
    for games, states in positions(20, 2):
        rows, _ = observations_of(games, states)
        phase = rows[:, 0, observation_layout(2)["phase"]]
        assert (phase[:, 0] == (states["phase"] == SKIRMISH)).all()
        assert (phase[:, 1] == (states["phase"] == WAR)).all()
