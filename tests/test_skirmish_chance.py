"""The law of chance in Skirmish: deals, draws and picks.

Statistical tests have fixed seeds and reject a perfect engine with a probability of ``ALPHA`` each;
they make fewer than a hundred, so that one in a million of such files would fail by chance.
"""

from __future__ import annotations

import itertools
from math import comb, factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from skirmish_tools import (
    RANKS,
    WAIT,
    ReplayedChance,
    at_table,
    cards_in,
    dealt,
    ended,
    mask_of,
    random_actions,
)

from deck_of_spies_env.skirmish.cards import masks_of
from deck_of_spies_env.skirmish.games import Games
from deck_of_spies_env.skirmish.rules import Rules

ALPHA = 1e-8

Ints = npt.NDArray[np.int64]
SHARES = {2: 27, 3: 18, 4: 13}


# --- Tools ----------------------------------------------------------------------------------------


def bits(masks: Any) -> npt.NDArray[np.bool_]:
    """Card sets as bool, with an axis of 54 cards more."""
    masks = np.asarray(masks, dtype=np.uint64)
    return masks[..., None] >> np.arange(54, dtype=np.uint64) & np.uint64(1) != 0


def assert_uniform(outcomes: Any, number: int) -> None:
    """Chi-square: outcomes, told apart by a number each, are uniform over so many."""
    found, counts = np.unique(np.asarray(outcomes), return_counts=True)
    assert len(found) == number
    assert counts.sum() >= 10 * number, "too few observations for the chi-square law"
    p_value = float(stats.chisquare(counts).pvalue)
    assert p_value > ALPHA, f"p = {p_value:.2g}, counts {counts}"


def assert_independent(rows: Any, columns: Any) -> None:
    """Chi-square test that two columns of labels have nothing to do with each other."""
    _, row = np.unique(rows, return_inverse=True)
    _, column = np.unique(columns, return_inverse=True)
    table = np.zeros((row.max() + 1, column.max() + 1), dtype=np.int64)
    np.add.at(table, (row, column), 1)
    result: Any = stats.chi2_contingency(table, correction=False)
    assert result.expected_freq.min() >= 5, "too few observations for the chi-square law"
    assert result.pvalue > ALPHA, f"p = {result.pvalue:.2g}, table {table}"


def play(games: Games, choices: str) -> Games:
    """One decision, the same in all games: a rank for each seat, ``-`` to wait."""
    actions = [WAIT if rank == "-" else RANKS.index(rank) for rank in choices.split()]
    games.step(np.tile(actions, (len(games), 1)))
    return games


def mask(text: str) -> int:
    return masks_of([text.split()])[0]


def words(*columns: Any) -> npt.NDArray[np.int64]:
    """One word for each row of several sets of cards, another one for another row."""
    factors = np.random.default_rng(0).integers(1 << 62, size=len(columns))
    return sum(
        np.asarray(column).astype(np.int64) * factor
        for column, factor in zip(columns, factors, strict=True)
    )


# --- The deal -------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_every_card_lies_in_every_pile_alike(num_players: int) -> None:
    number = 12_000
    states = dealt(range(number), num_players).states
    zones = [(states["hand"][:, seat], 3) for seat in range(num_players)]
    zones += [(states["supply"][:, seat], SHARES[num_players] - 3) for seat in range(num_players)]
    if num_players == 4:
        zones.append((states["burned"], 2))
    for zone, size in zones:
        held = bits(zone)
        assert (held.sum(axis=1) == size).all()
        share = size / 54
        deviation = ((held.sum(axis=0) - number * share) ** 2).sum()
        # Cards of a pile exclude each other: covariance p (1 - p) 54/53 (I - J/54) for each deal.
        statistic = deviation / (number * share * (1 - share)) * 53 / 54
        assert stats.chi2.sf(statistic, 53) > ALPHA


@pytest.mark.parametrize(
    ("num_players", "rules", "sizes"),
    [
        (2, {"ranks": "A28K", "num_suits": 2, "num_jokers": 1}, (3, 3, 1, 1, 1)),
        (3, {"ranks": "AQK", "num_suits": 3, "num_jokers": 1}, (3, 3, 3, 1)),
        (4, {"ranks": "AQK", "num_suits": 3, "num_jokers": 0}, (2, 2, 2, 2, 1)),
    ],
)
def test_all_deals_of_a_tiny_deck_are_alike(
    num_players: int, rules: dict[str, Any], sizes: tuple[int, ...]
) -> None:
    """The joint law of hands, Supplies and what is burned, against all that can be."""
    number = factorial(sum(sizes))
    for size in sizes:
        number //= factorial(size)
    games, found = dealt(range(number), num_players, rules=rules), []
    for _ in range(12):
        states = games.states
        zones = [
            states[zone][:, seat] for zone in ("hand", "supply") for seat in range(num_players)
        ]
        found.append(words(*zones, states["burned"]))
        games.deal()
    assert_uniform(np.concatenate(found), number)


def test_neighbouring_seeds_episodes_and_seats_are_independent() -> None:
    games = dealt(range(30_000), 2)
    rng = np.random.default_rng(3)

    def one_rank(seat: int) -> Ints:
        held = bits(games.states["hand"][:, seat])
        return (rng.random(held.shape) * held).argmax(axis=1) // 4

    mine, other = one_rank(0), one_rank(1)
    assert_independent(mine[:-1], mine[1:])
    # Hands of one deal exclude each other a little; those of neighbours do not.
    assert_independent(mine[:-1], other[1:])
    games.deal()
    assert_independent(mine, one_rank(0))
    assert_independent(other, one_rank(0))


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_a_deal_depends_on_seed_and_episode_alone(num_players: int) -> None:
    """Not on what was played before, how far, among how many games, or by how many threads."""
    seeds = range(60)
    games, rng = dealt(seeds, num_players), np.random.default_rng(1)
    dice = np.random.default_rng(2)
    in_threads = dealt(seeds, num_players, num_threads=7)
    idle = dealt(seeds, num_players)
    for episode in range(4):
        assert (games.states == idle.states).all()
        assert (games.states == in_threads.states).all()
        alone = dealt([17], num_players)
        for _ in range(episode):
            alone.deal()
        assert alone.states[0] == games.states[17]
        first = games.states.copy()
        for _ in range(episode * 3):
            games.step(random_actions(games, rng), ~ended(games))
        while dice.random() < 0.8:
            in_threads.step(random_actions(in_threads, dice), ~ended(in_threads))
        games.deal()
        in_threads.deal()
        idle.deal()
        assert (games.states != first).all()


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_threads_make_no_difference(num_players: int) -> None:
    runs = [dealt(range(50), num_players, num_threads=threads) for threads in (1, 2, 5)]
    rng = np.random.default_rng(0)
    for _ in range(40):
        over = ended(runs[0])
        actions = random_actions(runs[0], rng)
        for games in runs:
            games.step(actions, dealing=over)
        for games in runs[1:]:
            assert (games.records == runs[0].records).all()
            assert (games.observations == runs[0].observations).all()
            assert (games.rewards == runs[0].rewards).all()


# --- Draws ----------------------------------------------------------------------------------------


def test_a_draw_is_uniform_over_the_supply_and_so_is_the_next() -> None:
    table = {"hand": ["Kc Kd 5c", "Qc Qd 5d"], "supply": ["2c 3c 4c 6c 7c", "8d 9d Td Jd"]}
    games = play(at_table(table, 2, seeds=range(6000)), "K Q")
    first = games.states["hand"][:, 0] & np.uint64(mask(table["supply"][0]))
    others = games.states["hand"][:, 1] & np.uint64(mask(table["supply"][1]))
    assert_uniform(first, 5)
    assert_uniform(others, 4)
    assert_independent(first, others)
    play(games, "K Q")
    both = games.states["hand"][:, 0] & np.uint64(mask(table["supply"][0]))
    assert_uniform(words(first, both), 5 * 4)


def test_a_draw_after_a_recycle_is_uniform_over_the_captures() -> None:
    """The last card of the Supply for certain, then any of those just shuffled, the pot too."""
    table = {"hand": ["Kc", "Qc 8d 5d"], "supply": ["2c", "9d Td"], "capture": ["6c 7c", ""]}
    games = play(at_table(table, 2, seeds=range(4000)), "K Q")
    hands = games.states["hand"][:, 0]
    assert (hands & np.uint64(mask("2c")) != 0).all()
    assert_uniform(hands, comb(4, 2))


def test_stakes_are_any_cards_of_the_supply() -> None:
    table = {"hand": ["Kc 2c", "Kd 2d"], "supply": ["3c 4c 5c 6c 7c", "3d 4d 5d 6d"]}
    games = play(at_table(table, 2, seeds=range(8000)), "K K")
    stakes = games.states["stakes"]
    assert_uniform(stakes[:, 0], comb(5, 2))
    assert_uniform(stakes[:, 1], comb(4, 2))
    assert_independent(stakes[:, 0], stakes[:, 1])


def test_cards_added_to_a_tie_are_any_of_the_supply() -> None:
    """Four players, one stake each: a 9 against a 9, then another card each."""
    table = {
        "hand": ["Kc 2c", "Kd 2d", "3h 4h", "3s 4s"],
        "supply": ["9c 9d", "9h 9s", "5h", "5s"],
        "capture": ["5c 6c 7c 8c", "*", "", ""],
    }
    games = play(at_table(table, 4, seeds=range(4000)), "K K 3 3")
    play(games, "2 2 - -")
    # 9 9 2 each, then a card of the captures against a Joker, which is a 9.
    added = games.states["graveyard"] & np.uint64(mask(table["capture"][0]))
    assert_uniform(added, 4)


# --- Picks ----------------------------------------------------------------------------------------


def test_among_equal_ranks_any_card_is_committed() -> None:
    table = {"hand": ["7c 7d 7s", "* * 3d"], "supply": ["2c 3c 4c 5c 6c", "8d 9d Td"]}
    games = play(at_table(table, 2, seeds=range(4000)), "7 *")
    own, other = games.states["committed"][:, :2].copy().T
    assert set(own.tolist()) == {24, 25, 27}
    assert_uniform(own, 3)
    assert_uniform(other, 2)
    assert_independent(own, other)
    # In the War the next one is picked anew.
    before = games.states["hand"][:, 0].copy()
    games = play(games, "7 3")
    gone = before & ~games.states["hand"][:, 0]
    assert_uniform(words(own, gone), 3 * 2)


def test_picks_and_draws_are_independent() -> None:
    table = {"hand": ["7c 7d 7s", "2d 2h 2s"], "supply": ["3c 4c 5c 6c", "8d 9d Td"]}
    games = play(at_table(table, 2, seeds=range(6000)), "7 2")
    committed = games.states["capture"][:, 0] & np.uint64(mask("7c 7d 7s"))
    drawn = games.states["hand"][:, 0] & np.uint64(mask("3c 4c 5c 6c"))
    assert_uniform(words(committed, drawn), 3 * 4)
    assert_independent(committed, games.states["hand"][:, 1] & np.uint64(mask("8d 9d Td")))


# --- Streams of one's own -------------------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_draws_of_a_seat_depend_on_its_own_stream_only(num_players: int) -> None:
    """However the others play: the k-th card off a Supply is the one its own stream says."""
    rules = Rules(recycle_captures=False)
    seeds = range(25)
    compared = 0
    for way in range(4):
        games, rng = dealt(seeds, num_players, rules=rules), np.random.default_rng(way)
        start = games.states["supply"] | games.states["hand"]
        orders = []
        for index, seat in itertools.product(seeds, range(num_players)):
            chance = ReplayedChance(games.streams[index], 0)
            left, order = cards_in(int(start[index, seat])), []
            while left:
                order.append(left.pop(chance.draw(seat, left)))
            orders.append(order)
        while not ended(games).all():
            games.step(random_actions(games, rng), ~ended(games))
            gone = start & ~games.states["supply"]
            for order, (index, seat) in zip(
                orders, itertools.product(seeds, range(num_players)), strict=True
            ):
                left_it = int(gone[index, seat])
                assert left_it == mask_of(order[: left_it.bit_count()])
                compared += 1
    assert compared > 4000


def test_the_picks_of_a_seat_depend_on_its_own_stream_only() -> None:
    """Other streams than its own may be what they like."""
    table = {"hand": ["7c 7d 7s", "6d 6h 6s", "5d 5h 5s"], "supply": ["2c", "2d", "2h"]}
    games = at_table(table, 3, seeds=range(300))
    once = play(games, "7 6 5").states.copy()
    committed = once["capture"][:, 0] & np.uint64(mask("7c 7d 7s"))
    others = once["capture"][:, 0] & np.uint64(mask("6d 6h 6s"))
    again = at_table(table, 3, seeds=range(300))
    again.streams["picks"][:, 1:] += np.uint64(12_345)
    again.streams["draws"] += np.uint64(12_345)
    twice = play(again, "7 6 5").states
    assert (twice["capture"][:, 0] & np.uint64(mask("7c 7d 7s")) == committed).all()
    assert (twice["capture"][:, 0] & np.uint64(mask("6d 6h 6s")) != others).any()
    own = at_table(table, 3, seeds=range(300))
    own.streams["picks"][:, 0] += np.uint64(12_345)
    thrice = play(own, "7 6 5").states
    assert (thrice["capture"][:, 0] & np.uint64(mask("7c 7d 7s")) != committed).any()
    assert (thrice["capture"][:, 0] & np.uint64(mask("6d 6h 6s")) == others).all()


def test_forks_share_nothing_with_the_games_of_their_seed() -> None:
    games, forks = Games(200, 2), Games(200, 2)
    games.seed(range(200), range(200))
    forks.seed(range(200), range(200), forks=True)
    games.deal()
    forks.deal()
    assert (games.states != forks.states).all()
