"""The law of chance: every test has fixed seeds and a stated error rate.

``ALPHA`` is the probability with which a single test would reject a perfect engine; as the seeds
are fixed, a test that passes once passes always, until the engine or its random streams change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import ALL_CARDS, SUITS, completed, in_order, legal_actions, new_env, position
from scipy import stats

from deck_of_spies_env.cards import cards_in, mask_of
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.solitaire.positions import fixed_start

ALPHA = 1e-4
"""Error rate of each statistical test in this file."""

LOW_CARDS = ALL_CARDS[:16]
SPIES = ALL_CARDS[16:]

Ints = npt.NDArray[np.int64]


# --- Tools ----------------------------------------------------------------------------------------


def assert_uniform(counts: Any) -> None:
    """Chi-square test that independent observations fall into all cells alike."""
    counts = np.asarray(counts)
    assert counts.sum() >= 5 * counts.size, "too few observations for the chi-square law"
    p_value = float(stats.chisquare(counts.ravel()).pvalue)
    assert p_value > ALPHA, f"p = {p_value:.2g}, counts {counts}"


def assert_independent(table: Any) -> None:
    """Chi-square test of a contingency table; also that two samples (rows) have one law."""
    table = np.asarray(table)
    table = table[:, table.sum(axis=0) > 0]
    table = table[table.sum(axis=1) > 0]
    result: Any = stats.chi2_contingency(table, correction=False)
    assert result.expected_freq.min() >= 5, "too few observations for the chi-square law"
    assert result.pvalue > ALPHA, f"p = {result.pvalue:.2g}, table {table}"


def assert_tail(statistic: float, freedom: int) -> None:
    """A statistic that should follow the chi-square law with so many degrees of freedom."""
    p_value = stats.chi2.sf(statistic, freedom)
    assert p_value > ALPHA, f"p = {p_value:.2g}, statistic {statistic:.1f}, {freedom} degrees"


def cross(rows: Ints, columns: Ints) -> Ints:
    """Contingency table of two columns of labels."""
    _, row = np.unique(rows, return_inverse=True)
    _, column = np.unique(columns, return_inverse=True)
    table = np.zeros((row.max() + 1, column.max() + 1), dtype=np.int64)
    np.add.at(table, (row, column), 1)
    return table


def bits(masks: Any) -> npt.NDArray[np.bool_]:
    """Card sets as bool of shape (N, 52)."""
    masks = np.asarray(masks, dtype=np.uint64)
    return (masks[:, np.newaxis] >> np.arange(52, dtype=np.uint64) & np.uint64(1)).astype(bool)


def one_of(masks: Any, rng: np.random.Generator) -> Ints:
    """For each card set one of its cards, picked by the test's own dice."""
    held = bits(masks)
    return (rng.random(held.shape) * held).argmax(axis=1)


def dealt(seeds: range, **arguments: Any) -> Games:
    """One game per seed, dealt."""
    games = Games(len(seeds), **arguments)
    games.seed(range(len(seeds)), seeds)
    games.deal()
    return games


def at_position(seeds: range, zones: dict[str, str], **rules: Any) -> Games:
    """One game per seed, all at one position."""
    games = Games(len(seeds), rules=rules)
    games.seed(range(len(seeds)), seeds)
    named = completed({zone: cards.split() for zone, cards in zones.items()})
    games.deal(start=fixed_start(named, "act", games.rules))
    return games


def play_all(games: Games, kind: str, cards: str) -> None:
    """The same action in all games, which must have the same hand."""
    index = games.table.encode(kind, cards.split(), int(games.states["hand"][0]))
    games.step(np.full(len(games), index))


def random_actions(games: Games, rng: np.random.Generator) -> Ints:
    """A random legal action in each game, 0 where it is over."""
    return (rng.random(games.masks.shape) * games.masks).argmax(axis=1)


def first_actions(games: Games) -> Ints:
    """The first legal action of the table in each game."""
    return games.masks.argmax(axis=1).astype(np.int64)


def last_actions(games: Games) -> Ints:
    """The last legal action of the table in each game."""
    return (games.masks.shape[1] - 1 - games.masks[:, ::-1].argmax(axis=1)).astype(np.int64)


def play_out(games: Games, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    """Random play to the end of all games, and how they ended."""
    while not games.over.all():
        games.step(random_actions(games, rng), ~games.over)
    return games.endings()


# --- The first hand -------------------------------------------------------------------------------


@pytest.mark.parametrize("hand_size", [3, 5, 8])
def test_first_hand_holds_each_card_alike(hand_size: int) -> None:
    """Each of the 16 low cards is dealt with frequency hand_size / 16."""
    number = 20_000
    games = dealt(range(number), rules={"hand_size": hand_size})
    held = bits(games.states["hand"])
    assert (held.sum(axis=1) == hand_size).all()
    assert not held[:, 16:].any()
    counts = held[:, :16].sum(axis=0)
    # Cards of one hand exclude each other: covariance p (1 - p) 16/15 (I - J/16) for each deal.
    share = hand_size / 16
    deviation = ((counts - number * share) ** 2).sum() / (number * share * (1 - share))
    assert_tail(deviation * 15 / 16, 15)


def test_first_hand_holds_each_pair_alike() -> None:
    """A pair picked from the hand is any of the 120 pairs with the same probability."""
    rng = np.random.default_rng(1)
    games = dealt(range(20_000, 40_000))
    held = bits(games.states["hand"])[:, :16]
    two = np.sort(np.argsort(-(rng.random(held.shape) * held), axis=1)[:, :2], axis=1)
    _, counts = np.unique(two[:, 0] * 16 + two[:, 1], return_counts=True)
    assert len(counts) == 120
    assert_uniform(counts)


def test_first_hand_is_any_of_the_4368_alike() -> None:
    """The joint law of all five cards, over many seeds and several episodes of each."""
    games = dealt(range(8_000))
    hands = [games.states["hand"].copy()]
    for _ in range(9):
        games.deal()
        hands.append(games.states["hand"].copy())
    _, counts = np.unique(np.concatenate(hands), return_counts=True)
    assert len(counts) == 4368
    assert_uniform(counts)


def test_first_spy_and_first_hand_are_independent() -> None:
    """Spies and draws come from streams of their own."""
    rng = np.random.default_rng(2)
    games = dealt(range(40_000))
    spies = games.states["spy"].astype(np.int64)
    _, counts = np.unique(spies, return_counts=True)
    assert len(counts) == 12
    assert_uniform(counts)
    assert_independent(cross(spies, one_of(games.states["hand"], rng)))
    # The position within the tier against the position within the deck.
    lowest = bits(games.states["hand"]).argmax(axis=1)
    assert_independent(cross(spies, np.minimum(lowest, 5)))


def test_episodes_and_neighbouring_seeds_are_independent() -> None:
    """The next episode, and the next seed, tell nothing of this one."""
    rng = np.random.default_rng(3)
    games = dealt(range(30_000))
    spies = games.states["spy"].astype(np.int64)
    cards = one_of(games.states["hand"], rng)
    assert_independent(cross(spies[:-1], spies[1:]))
    assert_independent(cross(cards[:-1], cards[1:]))
    games.deal()
    assert_independent(cross(spies, games.states["spy"].astype(np.int64)))
    assert_independent(cross(cards, one_of(games.states["hand"], rng)))
    assert_independent(cross(spies, one_of(games.states["hand"], rng)))


# --- The order of the spies -----------------------------------------------------------------------


def spy_orders(seeds: range) -> Ints:
    """All 36 spies in the order met, shape (N, 36), by hands that can always counter."""
    games = dealt(seeds)
    strong = np.uint64(mask_of(["4c", "4d", "4h", "4s", "3c"]))
    rest = np.uint64(mask_of(LOW_CARDS) & ~int(strong))
    orders = np.zeros((len(seeds), 36), dtype=np.int64)
    for turn in range(36):
        orders[:, turn] = games.states["spy"]
        games.states["hand"] = strong
        games.states["draw_deck"] = rest
        games.states["draw_discard"] = 0
        games.show()
        games.step(first_actions(games))
        retiring = games.states["phase"] == 1
        games.step(last_actions(games), retiring)
    assert games.over.all()
    return orders


def test_spy_order() -> None:
    """Tiers in order; within a tier every spy is equally likely in every place, and in pairs."""
    number = 12_000
    orders = spy_orders(range(number))
    assert (np.sort(orders, axis=1) == np.arange(16, 52)).all()
    for tier in range(3):
        inside = orders[:, 12 * tier : 12 * tier + 12] - 16 - 12 * tier
        assert inside.min() == 0
        assert inside.max() == 11
        counts = np.array([np.bincount(inside[:, place], minlength=12) for place in range(12)])
        # Rows and columns of a permutation matrix are fixed: (12 - 1)^2 degrees of freedom.
        deviation = ((counts - number / 12) ** 2).sum() / (number / 12)
        assert_tail(deviation * 11 / 12, 121)
        for first, second in ((0, 1), (5, 6), (10, 11), (0, 11)):
            pairs = inside[:, first] * 12 + inside[:, second]
            _, counts = np.unique(pairs, return_counts=True)
            assert len(counts) == 132
            assert_uniform(counts)
    # From one tier to the next nothing carries over.
    assert_independent(cross(orders[:, 11], orders[:, 12]))
    assert_independent(cross(orders[:, 0], orders[:, 12]))
    assert_independent(cross(orders[:, 23], orders[:, 24]))


# --- Draws in play --------------------------------------------------------------------------------

RESHUFFLING = {
    "hand": "Ah 2s 3c 4d 9c",
    "spy": "6s",
    "spy_deck": "5c 5d 5h 6c 7d 8c Kc",
    "draw_deck": "4c",
    "draw_discard": "2h 3d",
}


@pytest.mark.parametrize("eager_reshuffle", [False, True])
def test_a_draw_after_a_reshuffle_is_uniform(eager_reshuffle: bool) -> None:
    """D10: the last card of the Draw Deck for certain, then any of the four shuffled ones."""
    games = at_position(range(8_000), RESHUFFLING, eager_reshuffle=eager_reshuffle)
    play_all(games, "counter", "2s 4d")
    hands, counts = np.unique(games.states["hand"], return_counts=True)
    kept = {"Ah", "3c", "9c", "4c"}
    last = [set(cards_in(int(hand))) - kept for hand in hands]
    assert sorted(map(tuple, last)) == [("2h",), ("2s",), ("3d",), ("4d",)]
    assert_uniform(counts)


def test_a_hand_after_an_assassination_is_uniform() -> None:
    """D7, D10: the deck without the Ace first, then any three of the eight cards shuffled."""
    zones = {
        "hand": "Ac 2h 2s 3c 3d",
        "spy": "Qd",
        "spy_deck": "Kd Kh",
        "draw_deck": "Ah 4c 4d",
        "draw_discard": "Ad 4h 4s",
    }
    games = at_position(range(12_000), zones)
    play_all(games, "assassinate", "Ah")
    hands, counts = np.unique(games.states["hand"], return_counts=True)
    shuffled = in_order(["Ac", "2h", "2s", "3c", "3d", "Ad", "4h", "4s"])
    expected = {in_order(("4c", "4d", *three)) for three in itertools.combinations(shuffled, 3)}
    assert {cards_in(int(hand)) for hand in hands} == expected
    assert_uniform(counts)


def test_a_later_draw_is_uniform_after_an_earlier_one() -> None:
    """The order of a pile is open to the last: the second draw is uniform given the first."""
    zones = {
        "hand": "Kc Kd Kh Qs",
        "spy": "6s",
        "spy_deck": "7c 7d",
        "draw_deck": "Ac 2d 3c 4h 5h 8c",
    }
    games = at_position(range(18_000), zones, hand_size=4)
    play_all(games, "counter", "Qs")
    passing = games.table.encode("pass", [], 0)
    games.step(np.full(len(games), passing))
    before = games.states["hand"].copy()
    # One of the three Kings, in the last of four slots, counters the 7; five cards are left.
    games.step(np.full(len(games), 0b1000 - 1))
    games.step(np.full(len(games), passing), games.states["phase"] == 1)
    drawn_first = bits(before)[:, : ALL_CARDS.index("8c") + 1].argmax(axis=1)
    drawn_second = bits(games.states["hand"] & ~before).argmax(axis=1)
    _, counts = np.unique(drawn_first * 52 + drawn_second, return_counts=True)
    assert len(counts) == 30
    assert_uniform(counts)


def test_next_draw_and_next_spy_are_independent() -> None:
    """Both are uniform, and one tells nothing about the other."""
    zones = {
        "hand": "8s 9c Ts",
        "spy": "6s",
        "spy_deck": "5c 5d 5h 6c 6d 7c 7d 7h 8c Kc",
        "draw_deck": "Ac Ad 2c 2d 3h 3s 4c 8d Qd",
    }
    games = at_position(range(30_000), zones, hand_size=3)
    play_all(games, "counter", "9c")
    kept = np.uint64(mask_of(["8s", "Ts"]))
    drawn = bits(games.states["hand"] & ~kept).argmax(axis=1)
    spies = games.states["spy"].astype(np.int64)
    table = cross(spies, drawn)
    assert table.shape == (8, 9), "the eight spies of the first tier, the nine cards of the deck"
    assert_uniform(table)
    assert_independent(table)


# --- Continuing a copy ----------------------------------------------------------------------------


def midgame(number: int, steps: int, first_seed: int = 0) -> Games:
    """Games after some random actions, those that are over left out."""
    rng = np.random.default_rng(first_seed + 5)
    games = dealt(range(first_seed, first_seed + number))
    for _ in range(steps):
        games.step(random_actions(games, rng), ~games.over)
    going_on = np.flatnonzero(~games.over & (games.states["phase"] == 0))
    rest = Games(len(going_on))
    rest.restore(games.snapshots()[going_on])
    return rest


def copied(games: Games, seeds: range | None = None) -> Games:
    """The same positions: with the same streams, or with fresh ones."""
    twin = Games(len(games))
    snapshots = games.snapshots()
    if seeds is not None:
        streams = dealt(seeds).streams
        snapshots["streams"] = streams
    twin.restore(snapshots)
    return twin


def test_the_end_has_the_same_law_with_fresh_streams() -> None:
    """Key Spies and outcome under random play: originals against copies with other streams."""
    original = midgame(9_000, 10)
    fresh = copied(original, range(10**6, 10**6 + len(original)))
    one = play_out(original, np.random.default_rng(11))
    two = play_out(fresh, np.random.default_rng(12))
    both = {key: np.concatenate([one[key], two[key]]) for key in one}
    sample = np.repeat([0, 1], len(original))
    assert_independent(cross(sample, np.minimum(both["key_spies"], 5)))
    assert_independent(cross(sample, both["outcome"] == "no_double_agent"))
    assert_independent(cross(sample, np.clip(both["turns"], 18, 36) // 3))
    # They are not the same games.
    assert (one["key_spies"] != two["key_spies"]).mean() > 0.4


def test_the_next_spy_and_draw_have_the_same_law_with_fresh_streams() -> None:
    """One action further: the same law for spy and draw, and they agree as often as by chance."""
    original = midgame(20_000, 8)
    fresh = copied(original, range(2 * 10**6, 2 * 10**6 + len(original)))
    actions = first_actions(original)
    unseen = bits(original.states["spy_deck"])
    tiers = [unseen[:, low : low + 12].sum(axis=1) for low in (16, 28, 40)]
    candidates = np.select([tier > 0 for tier in tiers], tiers)
    original.step(actions)
    fresh.step(actions)
    spies = original.states["spy"].astype(np.int64), fresh.states["spy"].astype(np.int64)
    sample = np.repeat([0, 1], len(original))
    assert_independent(cross(sample, np.concatenate(spies)))
    hands = original.states["hand"], fresh.states["hand"]
    rng = np.random.default_rng(13)
    cards = np.concatenate([one_of(hand, rng) for hand in hands])
    assert_independent(cross(sample, np.minimum(cards, 24)))
    # Independent uniform picks of n agree with probability 1/n.
    chance = 1 / candidates
    agreed = (spies[0] == spies[1]).sum()
    score = (agreed - chance.sum()) / np.sqrt((chance * (1 - chance)).sum())
    assert abs(score) < stats.norm.isf(ALPHA / 2), f"z = {score:.2f}"


def test_a_saved_state_goes_on_with_its_own_chance() -> None:
    """The streams belong to the state: restored, the game repeats itself to the end."""
    games = midgame(200, 12)
    saved = games.snapshots()
    one = play_out(games, np.random.default_rng(14))
    games.restore(saved)
    two = play_out(games, np.random.default_rng(14))
    for key in one:
        assert (one[key] == two[key]).all()


def test_forks_of_one_position_are_uniform() -> None:
    """The public fork: next spy and next card are uniform over what is left, and independent."""
    env = position(
        "8s 9c Ts Kc",
        "6s",
        spy_deck="5c 6c 7c 8c Kd",
        draw_deck="Ac 2c 3h 4d",
        seed=3,
        hand_size=4,
    )
    action = env.encode("counter", ["Kc"])
    seen: list[tuple[str, str]] = []
    for seed in range(1_500):
        twin = env.fork(seed)
        twin.step(action)
        (card,) = set(twin.zones()["hand"]) - {"8s", "9c", "Ts"}
        seen.append((twin.zones()["spy"][0], card))
    labels = np.array([[SPIES.index(spy), LOW_CARDS.index(card)] for spy, card in seen])
    table = cross(labels[:, 0], labels[:, 1])
    assert table.shape == (3, 4)
    assert_uniform(table)
    assert_independent(table)


def test_forks_differ_only_by_chance() -> None:
    """The same position and the same certain consequences; spy and draw may differ."""
    env = new_env()
    env.reset(seed=9)
    for _ in range(6):
        env.step(sorted(legal_actions(env).values())[0])
    while env.phase != "act":
        env.step(sorted(legal_actions(env).values())[0])
    zones, saved = env.zones(), env.get_state()
    action = sorted(legal_actions(env).values())[0]
    certain = env.afterstate(action)
    results = set()
    for seed in range(30):
        twin = env.fork(seed)
        assert twin.zones() == zones
        assert twin.phase == env.phase
        assert twin.rules == env.rules
        assert np.array_equal(twin.action_masks(), env.action_masks())
        assert twin.afterstate(action) == certain
        twin.step(action)
        after = twin.zones()
        assert after["spy_discard"] == certain["spy_discard"]
        assert after["removed"] == certain["removed"]
        assert set(after["spy"] + after["spy_deck"]) == set(certain["spy_deck"])
        own = set(after["hand"] + after["draw_deck"] + after["draw_discard"])
        assert own == set(certain["hand"] + certain["draw_deck"] + certain["draw_discard"])
        again = env.fork(seed)
        again.step(action)
        assert again.zones() == after, "one seed, one fork"
        results.add((after["spy"], after["hand"]))
    assert len(results) > 5
    # The original has seen nothing of all that.
    assert env.zones() == zones
    assert env.get_state() == saved


def test_forks_leave_the_original_to_its_own_chance() -> None:
    """Forking and playing the forks changes nothing in what the original meets."""
    endings = []
    for forking in (False, True):
        env = new_env()
        env.reset(seed=21)
        rng = np.random.default_rng(21)
        while env.phase != "over":
            if forking:
                twin = env.fork(5)
                twin.step(first_action(twin))
            actions = sorted(legal_actions(env).values())
            env.step(actions[int(rng.integers(len(actions)))])
        endings.append(env.zones())
    assert endings[0] == endings[1]


def first_action(env: Any) -> int:
    """The first legal action."""
    return int(np.flatnonzero(env.action_masks())[0])


# --- Deals ----------------------------------------------------------------------------------------

Policy = Callable[[Games], Ints]


def spies_met(seeds: range, episodes: int, policy: Policy, **rules: Any) -> list[Ints]:
    """For each episode the spies met and -1 beyond the end, (N, 36), after the opening hands."""
    games = Games(len(seeds), rules=rules)
    games.seed(range(len(seeds)), seeds)
    met: list[Ints] = []
    for _ in range(episodes):
        games.deal()
        table = np.full((len(seeds), 37), -1, dtype=np.int64)
        table[:, 36] = games.states["hand"].astype(np.int64)
        turn = np.zeros(len(seeds), dtype=np.int64)
        table[:, 0] = games.states["spy"]
        while not games.over.all():
            before = bits(games.states["spy_deck"]).sum(axis=1)
            games.step(policy(games), ~games.over)
            after = bits(games.states["spy_deck"]).sum(axis=1)
            turn += before - after
            moved = np.flatnonzero(after < before)
            table[moved, turn[moved]] = games.states["spy"][moved]
        met.append(table)
    return met


def _random_policy(seed: int) -> Policy:
    rng = np.random.default_rng(seed)
    return lambda games: random_actions(games, rng)


def test_deals_do_not_depend_on_play() -> None:
    """Four ways to play, one seed: the same opening hand and the same spies in every episode."""
    seeds = range(60)
    runs = [
        spies_met(seeds, 8, policy)
        for policy in (first_actions, last_actions, _random_policy(1), _random_policy(2))
    ]
    lengths = set()
    for episode in range(8):
        tables = [run[episode] for run in runs]
        for table in tables[1:]:
            assert (table[:, 36] == tables[0][:, 36]).all(), "opening hands"
            both = (table[:, :36] >= 0) & (tables[0][:, :36] >= 0)
            assert both[:, :2].all()
            assert (table[:, :36][both] == tables[0][:, :36][both]).all(), "spies"
        lengths |= {tuple((table[:, :36] >= 0).sum(axis=1)) for table in tables}
    assert len(lengths) > 8 * 3, "the policies are too much alike to show anything"


def test_deals_differ_from_episode_to_episode_and_seed_to_seed() -> None:
    """Among 60 x 8 deals there are hardly two with the same hand and the same first spies."""
    episodes = spies_met(range(60), 8, first_actions)
    deals = {(int(row[36]), *row[:6].tolist()) for table in episodes for row in table}
    assert len(deals) > 60 * 8 - 3


@pytest.mark.parametrize("hand_size", [3, 8])
def test_spies_do_not_depend_on_the_hand_size(hand_size: int) -> None:
    """However many cards are drawn, a seed has its spies (streams of their own)."""
    usual = spies_met(range(50), 3, first_actions)
    other = spies_met(range(50), 3, first_actions, hand_size=hand_size)
    for one, two in zip(usual, other, strict=True):
        both = (one[:, :36] >= 0) & (two[:, :36] >= 0)
        assert (one[:, :36][both] == two[:, :36][both]).all()


def test_deals_through_the_environment() -> None:
    """reset(seed) and then reset(): deals by episode, whether or not an episode was finished."""

    def deals(steps: int) -> list[tuple[tuple[str, ...], ...]]:
        found = []
        env.reset(seed=33)
        for episode in range(6):
            if episode:
                env.reset()
            found.append((env.zones()["hand"], env.zones()["spy"]))
            for _ in range(steps):
                if env.phase != "over":
                    env.step(first_action(env))
        return found

    env = new_env()
    idle = deals(0)
    assert len(set(idle)) == 6
    assert deals(3) == idle
    assert deals(100) == idle
    env = new_env()
    assert deals(7) == idle
    env.reset(seed=34)
    assert (env.zones()["hand"], env.zones()["spy"]) != idle[0]
    vector = Games(3)
    vector.seed(range(3), [32, 33, 34])
    for episode in range(6):
        vector.deal()
        assert cards_in(int(vector.states["hand"][1])) == idle[episode][0]


def test_suits_are_dealt_alike() -> None:
    """The symmetry of the suits in the deal: suit of the first spy and of a card in hand."""
    rng = np.random.default_rng(6)
    games = dealt(range(50_000, 70_000))
    suits = one_of(games.states["hand"], rng) % len(SUITS)
    assert_uniform(np.bincount(suits, minlength=4))
    assert_uniform(np.bincount(games.states["spy"] % len(SUITS), minlength=4))
    assert_independent(cross(suits, games.states["spy"].astype(np.int64) % len(SUITS)))
