"""Tests of the referee of Skirmish: examples worked out by hand from the rulings S1 to S12.

Each test is named after its ruling and pairs what the rule says with the near miss. The random
games at the end check what must hold in every position.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest
from skirmish_oracle import (
    ALL_CARDS,
    DEAL_SIZES,
    Card,
    DictatedChance,
    IllegalMove,
    ImpossibleChance,
    Knowledge,
    RandomChance,
    SkirmishOracle,
    SkirmishRules,
    cards_of,
    ids,
    war_sum,
)

DEFAULT = SkirmishRules()
NO_RECYCLING = SkirmishRules(recycle_captures=False)

ASIDE = "2c 2d"
"""The burned cards of the positions with four players."""

Call = tuple[str, int, str]
"""One question to chance: draw or pick, the seat, and the cards to choose from."""


class Stacked:
    """Chance by one list of all cards: of those possible, the one that is listed first comes."""

    def __init__(self, order: Sequence[Card]) -> None:
        self.order = list(order)
        self.calls: list[Call] = []

    def draw(self, seat: int, pile: list[Card]) -> int:
        return self._first("draw", seat, pile)

    def pick(self, seat: int, cards: list[Card]) -> int:
        return self._first("pick", seat, cards)

    def _first(self, kind: str, seat: int, cards: list[Card]) -> int:
        self.calls.append((kind, seat, text(cards)))
        return cards.index(min(cards, key=self.order.index))


def text(cards: Sequence[Card]) -> str:
    """Write cards in the order given."""
    return " ".join(str(card) for card in cards)


def pile(cards: Sequence[Card]) -> str:
    """Write a pile in the order of the ids."""
    return text([ALL_CARDS[number] for number in ids(cards)])


def position(
    hands: Sequence[str],
    supplies: Sequence[str] = (),
    captures: Sequence[str] = (),
    *,
    rules: SkirmishRules = DEFAULT,
    rounds: int = 0,
) -> SkirmishOracle:
    """Build a position; cards come up in the order written, those not named are in the Graveyard.

    The first `*` written is Joker 52, the second 53. With four players `ASIDE` is burned.
    """
    num_players = len(hands)
    zones = [*hands, *(supplies or [""] * num_players), *(captures or [""] * num_players)]
    zones.append(ASIDE if num_players == 4 else "")
    named = cards_of(" ".join(zones))
    rest = [card for card in ALL_CARDS if card not in named]
    piles: list[list[Card]] = []
    left = list(named)
    for zone in zones:
        size = len(zone.split())
        piles.append(left[:size])
        left = left[size:]
    return SkirmishOracle.at(
        rules,
        Stacked(named + rest),
        hands=piles[:num_players],
        supplies=piles[num_players : 2 * num_players],
        captures=piles[2 * num_players : 3 * num_players],
        graveyard=rest,
        burned=piles[-1],
        rounds=rounds,
    )


def play(game: SkirmishOracle, choices: str) -> SkirmishOracle:
    """Take one decision: a rank for each seat, `-` to wait."""
    ranks = ["wait" if rank == "-" else rank for rank in choices.split()]
    game.step(dict(enumerate(ranks)))
    return game


def field(cards: str, rules: SkirmishRules = DEFAULT) -> SkirmishOracle:
    """Play a skirmish with these cards, from full hands and with enough in every Supply."""
    named = [*cards.split(), *ASIDE.split()]
    fillers = [str(card) for card in ALL_CARDS if 2 <= card.value <= 9 and str(card) not in named]
    seats = cards.split()
    hands = [f"{card} {fillers.pop()} {fillers.pop()}" for card in seats]
    supplies = [" ".join(fillers.pop() for _ in range(4)) for _ in seats]
    game = position(hands, supplies, rules=rules)
    return play(game, " ".join(card[0] for card in seats))


def outcome(game: SkirmishOracle) -> str:
    """Tell who took the pot of a first skirmish, or who is in the War for it."""
    if game.phase == "war":
        return "war " + " ".join(str(seat) for seat in game.participants)
    takers = [seat for seat in game.seats if game.capture[seat]]
    assert len(takers) == 1
    assert not game.participants
    return f"pot {takers[0]}"


def deal(
    num_players: int, rules: SkirmishRules = DEFAULT, seed: int = 0
) -> tuple[SkirmishOracle, random.Random]:
    """Deal a random game, and hand over the generator that its chance uses."""
    rng = random.Random(seed)
    deck = list(ALL_CARDS)
    rng.shuffle(deck)
    size = DEAL_SIZES[num_players]
    supplies = [deck[seat * size : (seat + 1) * size] for seat in range(num_players)]
    burned = deck[num_players * size :]
    return SkirmishOracle(num_players, supplies, burned, rules, RandomChance(rng)), rng


def take_random_step(game: SkirmishOracle, rng: random.Random) -> None:
    """Take a legal choice for each seat at random."""
    game.step({seat: rng.choice(sorted(game.legal(seat))) for seat in game.seats})


def random_game(
    num_players: int, rules: SkirmishRules = DEFAULT, seed: int = 0
) -> Iterator[SkirmishOracle]:
    """Play a random game, and give it at every decision and at the end."""
    game, rng = deal(num_players, rules, seed)
    yield game
    while game.phase != "over":
        take_random_step(game, rng)
        yield game


def all_knowledge(game: SkirmishOracle) -> list[Knowledge]:
    """What each seat may know."""
    return [game.may_know(seat) for seat in game.seats]


def swap(game: SkirmishOracle, one: Card, other: Card) -> SkirmishOracle:
    """Return a copy in which two hidden cards have changed places, pools and all."""
    twin = game.copy()
    exchange = {one: other, other: one}
    for cards in [*twin.hand, *twin.supply, *twin.stakes, twin.burned]:
        cards[:] = [exchange.get(card, card) for card in cards]
    pools = {card: game.pool_of[exchange.get(card, card)] for card in game.pool_of}
    twin.pool_of = pools
    return twin


# Cards


def test_the_54_cards_have_their_ids_and_values() -> None:
    assert [card.id for card in ALL_CARDS] == list(range(54))
    assert [card.value for card in cards_of("Ac 2d 9h Ts Jc Qd Kh * *")] == [
        *(1, 2, 9, 10, 11, 12, 13, 0, 0)
    ]
    assert all(card.id // 4 == card.value - 1 for card in ALL_CARDS[:52])
    assert text(ALL_CARDS[:5]) == "Ac Ad Ah As 2c"
    assert text(ALL_CARDS[51:]) == "Ks * *"


def test_the_two_jokers_are_distinct() -> None:
    first, second = cards_of("* *")
    assert (first.id, second.id) == (52, 53)
    assert first != second
    assert first.rank == second.rank == "*"


@pytest.mark.parametrize("bad", ["1h", "h7", "7", "*c", "10h", "7c 7c", "* * *"])
def test_a_bad_card_is_named(bad: str) -> None:
    with pytest.raises(ValueError, match=r"not a card|more than once"):
        cards_of(bad)


# S1 Setup


@pytest.mark.parametrize(("num_players", "dealt", "burned"), [(2, 27, 0), (3, 18, 0), (4, 13, 2)])
def test_s1_deals_the_54_and_draws_three_each(num_players: int, dealt: int, burned: int) -> None:
    game, _ = deal(num_players)
    assert [len(cards) for cards in game.hand] == [3] * num_players
    assert [len(cards) for cards in game.supply] == [dealt - 3] * num_players
    assert len(game.burned) == burned
    assert not any(game.capture)
    assert not game.graveyard
    assert (game.phase, game.rounds, game.participants) == ("skirmish", 0, [])


@pytest.mark.parametrize("sizes", [(27, 26, 1), (26, 26, 2), (18, 18, 18), (27, 27, 0, 0)])
def test_s1_refuses_another_deal(sizes: tuple[int, ...]) -> None:
    cuts = [sum(sizes[:place]) for place in range(len(sizes) + 1)]
    parts = [ALL_CARDS[start:end] for start, end in itertools.pairwise(cuts)]
    with pytest.raises(ValueError, match=r"dealt|burned|supplies"):
        SkirmishOracle(2, parts[:-1], parts[-1], DEFAULT, Stacked(ALL_CARDS))


@pytest.mark.parametrize("burned", ["", "5d", "5d 5h 5s"])
def test_s1_exactly_the_two_left_over_of_four_players_are_burned(burned: str) -> None:
    aside, played = cards_of(burned), [cards_of(text) for text in ("Ac", "2c", "3c", "4c")]
    named = [*aside, *(card for hand in played for card in hand)]
    with pytest.raises(ValueError, match="burned at setup, not 2"):
        SkirmishOracle.at(
            DEFAULT,
            Stacked(ALL_CARDS),
            hands=played,
            supplies=[[], [], [], []],
            captures=[[], [], [], []],
            graveyard=[card for card in ALL_CARDS if card not in named],
            burned=aside,
        )


@pytest.mark.parametrize("num_players", [1, 5])
def test_s1_is_for_two_to_four(num_players: int) -> None:
    with pytest.raises(ValueError, match="2 to 4 players"):
        SkirmishOracle(num_players, [], [], DEFAULT, Stacked(ALL_CARDS))


def test_s1_the_burned_cards_of_four_players_never_come_back() -> None:
    for seed in range(20):
        games = random_game(4, seed=seed)
        burned = next(games).zones()["burned"]
        for game in games:
            assert game.zones()["burned"] == burned
            assert all(game.pool_of[card] == "deal" for card in game.burned)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hands": ["Ac", "2c 3c 4c 5c"]}, "more than 3"),
        ({"hands": ["Ac", ""]}, "eliminated"),
        ({"hands": ["", ""], "supplies": ["Ac", "2c"]}, "nobody"),
        ({"hands": ["Ac", "2c"], "rounds": 500}, "rounds"),
        ({"hands": ["Ac"]}, "2 to 4 players"),
        ({"hands": ["Ac", "2c"], "rules": SkirmishRules(max_rounds=0)}, "max_rounds"),
        ({"hands": ["Ac", ""], "captures": ["", "3c"], "rules": NO_RECYCLING}, "eliminated"),
    ],
)
def test_an_impossible_position_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        position(**change)  # pyright: ignore[reportArgumentType]


def test_a_position_with_a_doubled_or_missing_card_is_refused() -> None:
    for graveyard in (ALL_CARDS[1:], ALL_CARDS[3:]):
        with pytest.raises(ValueError, match="is there"):
            SkirmishOracle.at(
                DEFAULT,
                Stacked(ALL_CARDS),
                hands=[[ALL_CARDS[0]], [ALL_CARDS[1]]],
                supplies=[[], []],
                captures=[[], []],
                graveyard=graveyard,
            )


# S2 Round and choices


def test_s2_every_rank_in_hand_is_legal_and_named_once() -> None:
    game = position(["Tc Td *", "* Ah 2h"])
    assert game.legal(0) == {"T", "*"}
    assert game.legal(1) == {"*", "A", "2"}


def test_s2_among_equal_ranks_chance_picks_the_card() -> None:
    for last, kept in (("9d 9c 2c", "9c 2c"), ("9c 9d 2c", "9d 2c")):
        game = position([last, "3c 3d 3h"], ["4c 4d", "5c 5d"])
        play(game, "9 3")
        assert pile(game.hand[0]) == pile(cards_of(kept + " 4c"))


def test_s2_the_jokers_are_told_apart_when_one_is_picked() -> None:
    game = position(["* * 2c", "3c 3d 3h"], ["4c 4d", "5c 5d"])
    play(game, "* 3")
    assert ids(game.committed[0]) == (52,)
    assert ids(game.hand[0]) == (4, 53)


@pytest.mark.parametrize(
    "choices",
    [
        {0: "K", 1: "3"},
        {0: "wait", 1: "3"},
        {0: "9", 1: "9"},
        {0: "9"},
        {0: "9", 1: "3", 2: "3"},
        {0: "9", 1: ""},
    ],
)
def test_s2_illegal_choices_change_nothing(choices: dict[int, str]) -> None:
    game = position(["9c 9d 2c", "3c 3d 3h"], ["4c 4d", "5c 5d"])
    before = (game.zones(), all_knowledge(game))
    with pytest.raises(IllegalMove):
        game.step(choices)
    assert (game.zones(), all_knowledge(game)) == before


def test_s2_the_round_ends_with_everyone_refilled_to_three() -> None:
    game = play(position(["9c 9d 2c", "3c 3d 3h"], ["4c 4d", "5c 5d"]), "9 3")
    assert [pile(cards) for cards in game.hand] == ["2c 4c 9d", "3d 3h 5c"]
    assert [pile(cards) for cards in game.supply] == ["4d", "5d"]
    assert (game.phase, game.rounds) == ("skirmish", 1)


def test_s2_a_player_without_a_hand_waits_and_is_refilled() -> None:
    game = position(["9c 2c", ""], ["4c 4d", "5c 5d"])
    assert game.legal(1) == {"wait"}
    play(game, "9 -")
    assert outcome(game) == "pot 0"
    assert pile(game.hand[1]) == "5c 5d"


def test_the_end_leaves_no_choice() -> None:
    game = play(position(["9c", "3c"]), "9 3")
    assert game.phase == "over"
    assert [game.legal(seat) for seat in game.seats] == [set(), set()]
    with pytest.raises(IllegalMove, match="over"):
        play(game, "- -")


# S3 Who takes the pot


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        # (a) A Joker: War among all, whatever else is there ...
        ("* 2h", "war 0 1"),
        ("* *", "war 0 1"),
        ("* * 5c", "war 0 1 2"),
        ("Kc Qc * Tc", "war 0 1 2 3"),
        ("* Ac Kc", "war 0 1 2"),
        ("* Ac Kc Jc", "war 0 1 2 3"),
        ("* Ac Kc *", "war 0 1 2 3"),
        ("* Jc Jd 3c", "war 0 1 2 3"),
        # ... and without it.
        ("5h Ac Kc Jc", "pot 3"),
        # (b) An Ace and Royalty, no Jack: the Ace, or War among the Aces.
        ("Ac Kc", "pot 0"),
        ("Qc Ac", "pot 1"),
        ("Kc Kd Ac", "pot 2"),
        ("Kc Qd Tc Ac", "pot 3"),
        ("Ac Ad Kc", "war 0 1"),
        ("Ac Qc Ad Kc", "war 0 2"),
        ("Ac Ad Qc Ah", "war 0 1 3"),
        # (b) With one Jack, the Jack, however many Aces; with several, War among the Jacks.
        ("Ac Kc Jc", "pot 2"),
        ("Jc Ac Qc", "pot 0"),
        ("Jc Ac Ad Kc", "pot 0"),
        ("Jc Ac Kc Kd", "pot 0"),
        ("Ac Jc Kc Jd", "war 1 3"),
        # (c) An Ace without Royalty is a 1.
        ("Ac Jc", "pot 1"),
        ("Ac Jc Tc", "pot 1"),
        ("Ac Jc Jd", "war 1 2"),
        ("Ac Ad Jc", "pot 2"),
        ("Ac Tc", "pot 1"),
        ("2h Ac", "pot 0"),
        ("Ac Ad 2h", "pot 2"),
        ("Ac Ad", "war 0 1"),
        ("Ac Ad Ah As", "war 0 1 2 3"),
        # (c) Royalty without an Ace is a 12 or a 13, and beats the Jack.
        ("Jc Kc", "pot 1"),
        ("Jc Qc", "pot 1"),
        ("Jc Jd Qc", "pot 2"),
        ("Kc Kd Jc Jd", "war 0 1"),
        ("Kc Qc", "pot 0"),
        ("Kc Qc Kd Qd", "war 0 2"),
        ("Kc Qc Qd Jc", "pot 0"),
        # (c) The highest value; a tie below it does not matter.
        ("Jc Tc", "pot 0"),
        ("5c 4h 6h", "pot 2"),
        ("5c 5d 6h", "pot 2"),
        ("Tc Td 9c 9d", "war 0 1"),
        ("9c Td 9d Tc", "war 1 3"),
        ("5c 5d 5h 5s", "war 0 1 2 3"),
        ("5c 5d", "war 0 1"),
    ],
)
def test_s3_the_field_decides(cards: str, expected: str) -> None:
    assert outcome(field(cards)) == expected


@pytest.mark.parametrize("suits", ["cd", "dc", "hs", "sh"])
def test_s3_suits_never_matter(suits: str) -> None:
    assert outcome(field(f"K{suits[0]} K{suits[1]}")) == "war 0 1"


def test_s3_a_joker_brings_in_all_at_the_table_even_without_a_hand() -> None:
    game = play(position(["* 3c", "", "5c 6c"], ["7c", "7d", "7h"]), "* - 5")
    assert game.participants == [0, 1, 2]


# S4 The pot


def test_s4_the_winner_captures_all_committed_cards() -> None:
    game = field("5c 6c 4h Tc")
    assert pile(game.capture[3]) == "4h 5c 6c Tc"
    assert game.capture[:3] == [[], [], []]


def test_s4_the_pot_of_a_war_holds_the_cards_of_those_outside_it() -> None:
    game = position(
        ["Tc 9c 2c", "Td 3d 2d", "8h 4h 2h"],
        ["5c 6c Kc Qc", "5d 6d Kd Kh", "5h 6h Ks Qs"],
    )
    play(game, "T T 8")
    assert outcome(game) == "war 0 1"
    play(game, "9 3 -")
    assert pile(game.capture[0]) == "5c 6c 8h 9c Tc Td"
    assert set(cards_of("5d 6d 3d")) <= set(game.graveyard)
    assert len(game.hand[2]) == 3


# S5 War


@pytest.mark.parametrize(("cards", "stakes"), [("5c 5d", 2), ("5c 5d 5h", 2), ("5c 5d 5h 5s", 1)])
def test_s5_two_are_staked_at_a_table_of_two_or_three_and_one_at_four(
    cards: str, stakes: int
) -> None:
    game = field(cards)
    assert [len(cards) for cards in game.stakes] == [stakes] * game.num_players


def test_s5_the_table_counts_and_not_the_participants() -> None:
    assert [len(cards) for cards in field("5c 5d 3h 3s").stakes] == [1, 1, 0, 0]
    assert [len(cards) for cards in field("5c 5d 3h").stakes] == [2, 2, 0]


def test_s5_the_skirmish_cards_stay_on_the_table_and_nothing_is_refilled() -> None:
    game = field("5c 5d 3h")
    assert [text(cards) for cards in game.committed] == ["5c", "5d", "3h"]
    assert [len(cards) for cards in game.hand] == [2, 2, 2]
    assert game.rounds == 0


def test_s5_participants_commit_a_hand_card_and_the_others_wait() -> None:
    game = position(["Tc 9c 2c", "8h 4h 2h", "Td 3d *"], ["5c 6c", "5h 6h", "5d 6d"])
    play(game, "T 8 T")
    assert [game.legal(seat) for seat in game.seats] == [{"9", "2"}, {"wait"}, {"3", "*"}]
    for choices in ("9 4 3", "- - 3", "T - 3"):
        with pytest.raises(IllegalMove):
            play(game, choices)
    play(game, "9 - 3")
    assert game.rounds == 1


def test_s5_the_highest_sum_wins_and_the_skirmish_card_is_not_in_it() -> None:
    # 3 + 3 + 5 against 3 + 3 + 4: the King of the pot does not help.
    game = position(["* 5c 2c", "Kd 4d 2d"], ["3c 3d 6c Qc", "3h 3s 6d Qd"])
    play(game, "* K")
    play(game, "5 4")
    assert pile(game.capture[0]) == "3c 3d 5c Kd *"
    assert game.capture[1] == []
    assert set(cards_of("3h 3s 4d")) <= set(game.graveyard)


def test_s5_an_ace_is_worth_one_and_royalty_its_value_in_a_war() -> None:
    # 1 + 13 + 2 = 16 against 11 + 3 + 3 = 17: no assassin, no knight.
    game = position(["5c Ac 9c", "5d Jd 9d"], ["Kc 2c 6c 7c", "3h 3s 6d 7d"])
    play(game, "5 5")
    play(game, "A J")
    assert pile(game.capture[1]) == "3h 3s 5c 5d Jd"


def test_s5_a_participant_without_a_hand_card_commits_none() -> None:
    game = position(["5c", "5d 4d"], ["Kc Kd Qc Qh Qs", "2c 3c Qd"])
    play(game, "5 5")
    assert game.phase == "war"
    assert [game.legal(seat) for seat in game.seats] == [{"wait"}, {"4"}]
    play(game, "- 4")
    assert pile(game.capture[0]) == "5c 5d Kc Kd"


def test_s5_with_no_hand_card_at_all_the_war_resolves_at_once() -> None:
    game = play(position(["5c", "5d"], ["Kc Kd Qc", "2c 3c Qd"]), "5 5")
    assert (game.phase, game.rounds) == ("skirmish", 1)
    assert set(cards_of("2c 3c")) <= set(game.graveyard)


def test_s5_only_the_hands_of_participants_call_for_a_decision() -> None:
    game = play(position(["5c", "5d", "4h 3h"], ["Kc Kd Qc", "2c 3c Qd", "Qh"]), "5 5 4")
    assert (game.phase, game.rounds) == ("skirmish", 1)


# S6 Jokers in a War


@pytest.mark.parametrize(
    ("cards", "worth"),
    [
        ("", 0),
        ("*", 0),
        ("* *", 0),
        ("7c", 7),
        ("7c *", 14),
        ("7c * *", 21),
        ("Kc 2d *", 28),
        ("2d * 3d *", 11),
        ("Ac *", 2),
        ("Kc Qd Jh", 36),
        ("Tc 9d Ah", 20),
    ],
)
def test_s6_a_joker_counts_as_the_highest_other_card_of_its_pile(cards: str, worth: int) -> None:
    assert war_sum(cards_of(cards)) == worth


def test_s6_a_joker_copies_its_own_pile_only_and_starts_no_second_war() -> None:
    # 6 + 4 + 6 = 16 against 9 + 2 + 4 = 15.
    game = position(["5c * 3c", "5d 4d 3d"], ["6c 4c 8c 8d", "9d 2d 8h 8s"])
    play(game, "5 5")
    play(game, "* 4")
    assert pile(game.capture[0]) == "4c 5c 5d 6c *"
    assert (game.phase, game.rounds) == ("skirmish", 1)


def test_s6_the_joker_of_the_skirmish_is_not_in_the_pile() -> None:
    # 6 + 5 + 2 = 13 against 14; the Joker of the pot would have made 19.
    game = position(["* 2c 3c", "5d 4d 3d"], ["6c 5c 8c 8d", "9d Ad 8h 8s"])
    play(game, "* 5")
    play(game, "2 4")
    assert pile(game.capture[1]) == "Ad 4d 5d 9d *"


def test_s6_a_staked_joker_copies_the_hand_card() -> None:
    # 9 + 9 + 9 against 26.
    game = position(["5c 9c 3c", "5d 8d 3d"], ["* * 8c 8h", "9d 9h 7h 7s"])
    play(game, "5 5")
    play(game, "9 8")
    assert pile(game.capture[0]) == "5c 5d 9c * *"


def test_s6_two_jokers_and_nothing_else_are_worth_nothing() -> None:
    game = play(position(["5c", "5d"], ["* * 8c 8h 8s", "Ad 2d 7h 7s 7c"]), "5 5")
    assert pile(game.capture[1]) == "Ad 2d 5c 5d"
    assert set(cards_of("* *")) <= set(game.graveyard)


# S7 Short stakes and ties


@pytest.mark.parametrize(("supply", "staked"), [("8d 7d 6d", 2), ("8d 7d", 2), ("8d", 1), ("", 0)])
def test_s7_a_short_supply_stakes_what_there_is(supply: str, staked: int) -> None:
    game = play(position(["5c 9c 2c", "5d 3d 2d"], ["Kc Kd Kh", supply]), "5 5")
    assert [len(cards) for cards in game.stakes] == [2, staked]
    assert game.phase == "war"


@pytest.mark.parametrize(("supply", "captures"), [("", [5, 0]), ("2h", [0, 4])])
def test_s7_missing_cards_count_nothing(supply: str, captures: list[int]) -> None:
    # 2 + 2 + 9 = 13 against 12 alone, then against 12 + 2.
    hands, supplies = ["5c 9c 3c", "5d Qd 3d"], ["2c 2d 6c 7c", supply]
    game = position(hands, supplies, rules=NO_RECYCLING)
    play(game, "5 5")
    play(game, "9 Q")
    assert [len(cards) for cards in game.capture] == captures


def tied_war(first: str, second: str, captures: Sequence[str] = ()) -> SkirmishOracle:
    """Play a War of two that stands at 12 each (4, 3 and 5), with these cards left in Supply."""
    game = position(["6c 5c Tc", "6d 5d Td"], [f"4c 3c {first}", f"4d 3d {second}"], captures)
    play(game, "6 6")
    return play(game, "5 5")


def test_s7_the_tied_add_a_card_each() -> None:
    game = tied_war("7c 8c 8d", "9c 8h 8s")
    assert pile(game.capture[1]) == "3d 4d 5d 6c 6d 9c"
    assert set(cards_of("3c 4c 5c 7c")) <= set(game.graveyard)
    assert pile(game.hand[0]) == "8c 8d Tc"


def test_s7_a_second_tie_goes_on() -> None:
    game = tied_war("7c 8c 9h 9d", "7d 2d 8h 8s")
    assert pile(game.capture[0]) == "3c 4c 5c 6c 6d 7c 8c"
    assert set(cards_of("3d 4d 5d 7d 2d")) <= set(game.graveyard)


def test_s7_an_added_joker_copies_the_highest_of_its_pile() -> None:
    game = tied_war("* 8c 9h", "4h 2d 8h 8s")
    assert pile(game.capture[0]) == "3c 4c 5c 6c 6d *"


def test_s7_who_has_nothing_to_add_stands_on_the_sum() -> None:
    game = tied_war("", "Ah 8h 8s")
    assert pile(game.capture[1]) == "Ah 3d 4d 5d 6c 6d"
    assert pile(game.hand[0]) == "Tc"


def test_s7_if_none_of_the_tied_can_add_everything_burns() -> None:
    game = tied_war("", "")
    assert not any(game.capture)
    assert set(cards_of("3c 4c 5c 6c 3d 4d 5d 6d")) <= set(game.graveyard)
    assert [pile(cards) for cards in game.hand] == ["Tc", "Td"]
    assert (game.phase, game.rounds) == ("skirmish", 1)


def test_s7_a_tie_to_exhaustion_burns_the_added_cards_too() -> None:
    game = tied_war("7c 8c", "7d 8d")
    assert not any(game.capture)
    assert set(cards_of("3c 4c 5c 6c 7c 8c 3d 4d 5d 6d 7d 8d")) <= set(game.graveyard)
    assert [pile(cards) for cards in game.hand] == ["Tc", "Td"]


def test_s7_after_a_second_tie_one_may_have_nothing_left() -> None:
    game = tied_war("7c", "7d 2d 8h 8s")
    assert pile(game.capture[1]) == "2d 3d 4d 5d 6c 6d 7d"


def test_s7_only_the_tied_at_the_top_add() -> None:
    # 12, 12 and 10: the third adds nothing, and stays out whatever lies in its Supply.
    game = position(
        ["6c 5c Tc", "6d 5d Td", "6h 3h Th"],
        ["4c 3c 7c 8c", "4d 3d 9d 8d 9h", "5h 2h Kh Ks"],
    )
    play(game, "6 6 6")
    play(game, "5 5 3")
    assert pile(game.capture[1]) == "3d 4d 5d 6c 6d 6h 9d"
    assert set(cards_of("4c 3c 5c 7c 5h 2h 3h")) <= set(game.graveyard)
    assert pile(game.hand[2]) == "Th Kh Ks"


def test_s7_a_tie_of_three_may_leave_a_tie_of_two() -> None:
    game = position(
        ["6c 5c Tc", "6d 5d Td", "6h 5h Th"],
        ["4c 3c 7c 2c 8c", "4d 3d 2d 8d 9d", "4h 3h 7h 9h Kh Ks"],
    )
    play(game, "6 6 6")
    play(game, "5 5 5")
    assert pile(game.capture[2]) == "3h 4h 5h 6c 6d 6h 7h 9h"
    # The second seat added one card, and refills with the next two.
    assert pile(game.hand[1]) == "8d 9d Td"


def test_s7_a_tie_of_two_burns_with_the_cards_of_the_loser() -> None:
    game = position(
        ["6c 5c Tc", "6d 5d Td", "6h 3h Th"], ["4c 3c", "4d 3d", "5h 2h Kh Ks"], ["", "", "9c"]
    )
    play(game, "6 6 6")
    play(game, "5 5 3")
    assert pile(game.capture[2]) == "9c"
    assert not game.capture[0] + game.capture[1]
    burned = cards_of("6c 6d 6h 4c 3c 5c 4d 3d 5d 5h 2h 3h")
    assert set(burned) <= set(game.graveyard)


def test_s7_those_left_behind_with_cards_do_not_save_the_pot() -> None:
    # The third player could add, but is not among the tied.
    game = position(["6c 5c", "6d 5d", "6h 3h Th"], ["", "", "Ah Ac Kh Ks"])
    play(game, "6 6 6")
    play(game, "5 5 T")
    assert pile(game.capture[2]) == "Ac Ah 6c 6d 6h Th"
    game = position(["6c 5c", "6d 5d", "6h 2h Th"], ["", "", "Ah Ac Kh Ks"])
    play(game, "6 6 6")
    play(game, "5 5 2")
    assert not any(game.capture)


def test_s7_the_game_goes_on_with_those_who_can_add() -> None:
    # Tied at 0: the first has nothing at all, the second adds a Joker (still 0), then a 4.
    supplies = ["", "* * 4h 8c 8s 7c", "8d", "8h"]
    game = position(["5c", "5d", "3h", "3s"], supplies, ["", "", "9c", "9d"])
    play(game, "5 5 3 3")
    assert pile(game.capture[1]) == "3h 3s 4h 5c 5d * *"
    assert game.eliminated == [0]


def test_s7_nothing_but_jokers_burns() -> None:
    game = position(["5c", "5d", "3h", "3s"], ["", "* *", "8d", "8h"])
    play(game, "5 5 3 3")
    assert not any(game.capture)
    assert set(cards_of("5c 5d 3h 3s * *")) <= set(game.graveyard)
    assert game.eliminated == [0, 1]


# S8 Recycling


def test_s8_recycles_in_the_midst_of_the_stakes() -> None:
    game = position(["5c 9c 2c", "5d 3d 2d"], ["Kc", "8d 8h"], ["7c 7d 7h", "6c"])
    play(game, "5 5")
    assert text(game.stakes[0]) == "Kc 7c"
    assert pile(game.supply[0]) == "7d 7h"
    assert game.capture[0] == []
    # The other Supply is empty now, but no card was needed from it yet.
    assert text(game.stakes[1]) == "8d 8h"
    assert game.supply[1] == []
    assert pile(game.capture[1]) == "6c"


def test_s8_recycles_for_the_first_stake() -> None:
    game = play(position(["5c 9c", "5d 3d"], ["", "8d 8h"], ["7c 7d 7h", "6c"]), "5 5")
    assert text(game.stakes[0]) == "7c 7d"


def test_s8_the_pot_of_the_war_is_not_recycled_for_it() -> None:
    game = play(position(["5c 9c", "5d 3d"], ["", "8d 8h"], ["7c", ""]), "5 5")
    assert text(game.stakes[0]) == "7c"
    assert (game.supply[0], game.capture[0]) == ([], [])


def test_s8_recycles_during_a_tie() -> None:
    game = tied_war("", "2d 8h 8s", ["9c 9h 9d 9s", ""])
    assert pile(game.capture[0]) == "3c 4c 5c 6c 6d 9c"
    assert pile(game.hand[0]) == "9d 9h Tc"
    assert pile(game.supply[0]) == "9s"


def test_s8_a_tie_burns_only_when_the_captures_are_used_up() -> None:
    game = tied_war("", "2d", ["2h", ""])
    assert not any(game.capture)
    assert set(cards_of("2d 2h")) <= set(game.graveyard)


def test_s8_recycles_during_the_refill_with_the_pot_just_won() -> None:
    game = play(position(["9c", "3c 3d 3h"], ["4c", "5c"], ["8c", ""]), "9 3")
    # One card from the Supply, then two of 8c, 3c and 9c (the order written: hands, captures).
    assert pile(game.hand[0]) == "3c 4c 9c"
    assert pile(game.supply[0]) == "8c"
    assert game.capture[0] == []


def test_s8_an_empty_supply_is_recycled_only_when_a_card_is_needed() -> None:
    game = play(position(["9c 8c 7c", "3c 3d 3h"], ["4c", "5c"]), "9 3")
    assert pile(game.hand[0]) == "4c 7c 8c"
    assert game.supply[0] == []
    assert pile(game.capture[0]) == "3c 9c"
    play(game, "7 3")
    assert pile(game.capture[0]) == ""
    assert len(game.hand[0] + game.supply[0]) == 6


def test_s8_without_recycling_captures_are_never_played_again() -> None:
    game = position(
        ["5c 9c 2c", "5d 3d 2d"], ["Kc", "8d 8h"], ["7c 7d 7h", "6c"], rules=NO_RECYCLING
    )
    play(game, "5 5")
    assert text(game.stakes[0]) == "Kc"
    assert pile(game.capture[0]) == "7c 7d 7h"
    play(game, "9 3")
    assert pile(game.hand[0]) == "2c"
    assert pile(game.capture[0]) == "5c 5d 7c 7d 7h 9c Kc"


def test_s8_without_recycling_a_tie_burns_beside_full_captures() -> None:
    game = position(
        ["6c 5c Tc", "6d 5d Td"], ["4c 3c", "4d 3d"], ["9c 9h", "Kc"], rules=NO_RECYCLING
    )
    play(game, "6 6")
    play(game, "5 5")
    assert [pile(cards) for cards in game.capture] == ["9c 9h", "Kc"]
    assert set(cards_of("6c 6d")) <= set(game.graveyard)


# S9 End


def test_s9_one_eliminated_ends_the_game_and_the_survivors_are_scored() -> None:
    game = play(position(["5c", "3d 2d 2h", "6h 3h 2s"], ["", "Ad", "* Kc"]), "5 3 6")
    assert game.phase == "over"
    assert (game.eliminated, game.winners, game.truncated) == ([0], [2], False)
    # Hand, Supply and Capture: 3 + 2 + 0, 13, 5 + 3 + 6.
    assert game.totals() == [0, 2 + 2 + 1, 32]
    assert game.payoffs() == [Fraction(-1, 2), Fraction(-1, 2), 1]


def test_s9_the_last_card_that_wins_saves_its_player() -> None:
    game = play(position(["5c", "3d 2d 2h"], ["", "Ad"]), "5 3")
    assert game.eliminated == []
    assert (pile(game.hand[0]), game.phase) == ("3d 5c", "skirmish")


def test_s9_a_player_who_lives_on_captures_is_not_eliminated() -> None:
    game = play(position(["3c", "5d 2d 2h"], ["", "Ad"], ["9c", ""]), "3 5")
    assert (game.eliminated, pile(game.hand[0])) == ([], "9c")


def test_s9_a_position_of_a_player_with_captures_alone_is_not_the_end() -> None:
    game = play(position(["5c", ""], ["", ""], ["", "3c"]), "5 -")
    assert (game.eliminated, pile(game.hand[1])) == ([], "3c")


def test_s9_a_player_without_supply_but_with_a_hand_is_not_eliminated() -> None:
    game = play(position(["3c 4c", "5d 2d 2h"], ["", "Ad"]), "3 5")
    assert (game.eliminated, pile(game.hand[0])) == ([], "4c")


def test_s9_equal_totals_share() -> None:
    # 5 + 3 + 4 + 10 against 9 + 13.
    game = play(position(["3c", "5d Tc", "4h Kc 9h"]), "3 5 4")
    assert game.totals() == [0, 22, 22]
    assert game.winners == [1, 2]
    assert game.payoffs() == [Fraction(-1, 2), Fraction(1, 4), Fraction(1, 4)]


def test_s9_several_eliminated_at_once() -> None:
    game = play(position(["3c", "5d 2d", "4h"]), "3 5 4")
    assert (game.eliminated, game.winners) == ([0, 2], [1])


def test_s9_all_eliminated_at_once_share_with_nothing() -> None:
    game = play(position(["5c", "5d"]), "5 5")
    assert game.eliminated == [0, 1]
    assert game.totals() == [0, 0]
    assert game.winners == [0, 1]
    assert game.payoffs() == [0, 0]


def test_s9_without_recycling_the_last_card_is_the_end_whatever_it_captures() -> None:
    game = play(position(["5c", "3d 2d"], ["", ""], ["Kc Kd", ""], rules=NO_RECYCLING), "5 3")
    assert game.eliminated == [0]
    assert game.totals() == [13 + 13 + 5 + 3, 2]
    # The eliminated player is not scored.
    assert game.winners == [1]
    assert game.payoffs() == [-1, 1]


def test_s9_without_recycling_captures_count_in_the_totals() -> None:
    game = play(
        position(["3c", "5d 2d", "4h Kh"], ["", "", ""], ["", "Kc Kd", "9c"], rules=NO_RECYCLING),
        "3 5 4",
    )
    assert game.totals() == [0, 26 + 12 + 2, 9 + 13]
    assert game.winners == [1]


def test_s9_without_recycling_all_eliminated_at_once_are_all_scored() -> None:
    game = play(position(["5c", "3d"], ["", ""], ["2c", "Kd"], rules=NO_RECYCLING), "5 3")
    assert game.eliminated == [0, 1]
    assert game.totals() == [10, 13]
    assert game.winners == [1]
    assert game.payoffs() == [-1, 1]


def test_s9_jokers_and_aces_in_the_totals() -> None:
    game = play(position(["3c", "5d * Ad", "4h Jh Qh"]), "3 5 4")
    assert game.totals() == [0, 3 + 5 + 4 + 0 + 1, 11 + 12]


# S10 Truncation


def test_s10_the_round_limit_truncates_and_everyone_is_scored() -> None:
    limit = SkirmishRules(max_rounds=7)
    hands, supplies = ["9c 2c", "3d 2d", "5h 4h"], ["3c", "Kd", "Td"]
    game = play(position(hands, supplies, rules=limit, rounds=6), "9 3 5")
    assert (game.phase, game.truncated, game.rounds) == ("over", True, 7)
    assert game.eliminated == []
    assert game.totals() == [17 + 2 + 3, 2 + 13, 4 + 10]
    assert game.winners == [0]
    game = play(position(hands, supplies, rules=limit, rounds=5), "9 3 5")
    assert (game.phase, game.truncated, game.winners) == ("skirmish", False, [])


def test_s10_an_elimination_in_the_last_round_is_no_truncation() -> None:
    game = play(position(["9c 2c", "3d"], rules=SkirmishRules(max_rounds=1)), "9 3")
    assert (game.eliminated, game.truncated) == ([1], False)


def test_s10_a_war_is_part_of_its_round() -> None:
    game = field("5c 5d", SkirmishRules(max_rounds=1))
    assert (game.phase, game.truncated) == ("war", False)


# S11 Knowledge


def test_s11_at_the_start_all_but_the_own_hand_is_one_pool() -> None:
    game, _ = deal(4)
    for seat in game.seats:
        known = game.may_know(seat)
        assert known["hand"] == ids(game.hand[seat])
        unseen = [card for card in ALL_CARDS if card not in game.hand[seat]]
        assert known["pools"] == {"deal": ids(unseen)}
        assert known["hidden"]["burned"] == {"deal": 2}
        for other in game.seats:
            assert known["hidden"][f"supply {other}"] == {"deal": 10}
            assert known["hidden"][f"stakes {other}"] == {}
            assert known["hidden"].get(f"hand {other}") == (None if other == seat else {"deal": 3})


def test_s11_captures_and_graveyard_are_public_by_content() -> None:
    game = tied_war("7c 8c 8d", "9c 8h 8s")
    for seat in game.seats:
        known = game.may_know(seat)
        assert known["capture"] == [(), ids(cards_of("3d 4d 5d 6c 6d 9c"))]
        assert known["graveyard"] == ids(game.graveyard)
        assert known["sizes"]["capture"] == [0, 6]


def test_s11_all_war_cards_are_revealed_with_the_war_the_added_ones_too() -> None:
    game = tied_war("7c 8c 8d", "9c 8h 8s")
    for seat in game.seats:
        unseen = [card for card in cards_of("8c 8d Tc 8h 8s Td") if card not in game.hand[seat]]
        assert game.may_know(seat)["pools"] == {"deal": ids(unseen)}


def test_s11_in_a_war_the_skirmish_cards_are_public_and_the_stakes_face_down() -> None:
    game = play(position(["5c 9c 2c", "5d 3d 2d"], ["Kc Kd Kh", "8d 7d 6d"]), "5 5")
    known = game.may_know(0)
    assert known["committed"] == [ids(cards_of("5c")), ids(cards_of("5d"))]
    assert known["hidden"] == {
        "hand 1": {"deal": 2},
        "supply 0": {"deal": 1},
        "supply 1": {"deal": 1},
        "stakes 0": {"deal": 2},
        "stakes 1": {"deal": 2},
        "burned": {},
    }
    assert known["pools"] == {"deal": ids(cards_of("3d 2d Kc Kd Kh 8d 7d 6d"))}


def recycled() -> SkirmishOracle:
    """Return a game in which seat 0 has just recycled 3c, 8c and 9c, and drawn two of them."""
    return play(position(["9c", "3c 3d 3h"], ["4c", "5c 5d"], ["8c", ""]), "9 3")


def test_s11_a_recycle_makes_a_pool_of_known_content() -> None:
    known = recycled().may_know(1)
    assert known["hidden"]["hand 0"] == {"deal": 1, "0.1": 2}
    assert known["hidden"]["supply 0"] == {"0.1": 1}
    assert known["hidden"]["supply 1"] == {"deal": 1}
    assert known["pools"] == {
        "deal": ids(cards_of("4c 5d")),
        "0.1": ids(cards_of("3c 8c 9c")),
    }


def test_s11_the_owner_sees_what_it_drew_of_its_recycled_pool() -> None:
    known = recycled().may_know(0)
    assert known["hand"] == ids(cards_of("3c 4c 9c"))
    assert known["hidden"]["supply 0"] == {"0.1": 1}
    assert known["pools"] == {"deal": ids(cards_of("3d 3h 5c 5d")), "0.1": ids(cards_of("8c"))}


def test_s11_a_recycled_card_leaves_its_pool_when_it_is_revealed() -> None:
    game = play(recycled(), "9 5")
    known = game.may_know(1)
    assert known["pools"]["0.1"] == ids(cards_of("3c 8c"))
    assert known["hidden"]["hand 0"] == {"deal": 1, "0.1": 2}
    assert known["hidden"]["supply 0"] == {}
    assert known["capture"][0] == ids(cards_of("9c 5c"))


def test_s11_two_recycles_of_a_seat_are_two_pools() -> None:
    # In hand 3c of the first recycle; then 9c and 5c are recycled for the refill.
    game = play(play(recycled(), "9 5"), "8 3")
    known = game.may_know(1)
    assert known["hidden"]["hand 0"] == {"deal": 1, "0.1": 1, "0.2": 1}
    assert known["hidden"]["supply 0"] == {"0.2": 3}
    assert known["pools"]["0.1"] == ids(cards_of("3c"))
    assert known["pools"]["0.2"] == ids(cards_of("8c 9c 5c 3d"))


def test_s11_stakes_may_be_of_several_pools() -> None:
    game = position(["5c 9c 2c", "5d 3d 2d"], ["Kc", "8d 8h"], ["7c 7d 7h", "6c"])
    play(game, "5 5")
    for seat in game.seats:
        known = game.may_know(seat)
        assert known["hidden"]["stakes 0"] == {"deal": 1, "0.1": 1}
        assert known["hidden"]["supply 0"] == {"0.1": 2}
        assert known["pools"]["0.1"] == ids(cards_of("7c 7d 7h"))


def test_s11_a_position_may_name_its_pools() -> None:
    hand, other, supply = cards_of("5c 6c"), cards_of("5d"), cards_of("7c 8c")
    named = [*hand, *other, *supply]
    game = SkirmishOracle.at(
        DEFAULT,
        Stacked(ALL_CARDS),
        hands=[hand, other],
        supplies=[supply, []],
        captures=[[], []],
        graveyard=[card for card in ALL_CARDS if card not in named],
        pools={"0.3": [hand[0], *supply]},
    )
    known = game.may_know(1)
    assert known["hidden"]["hand 0"] == {"deal": 1, "0.3": 1}
    assert known["pools"] == {"deal": ids(cards_of("6c")), "0.3": ids(cards_of("5c 7c 8c"))}
    assert game.recycles == [3, 0]


def test_s11_a_swap_within_a_pool_cannot_be_seen_and_across_pools_can() -> None:
    game = recycled()
    before = game.may_know(1)
    (drawn, left), (dealt,) = cards_of("3c 8c"), cards_of("4c")
    assert swap(game, drawn, left).may_know(1) == before
    assert swap(game, drawn, left).may_know(0) != game.may_know(0)
    assert swap(game, left, dealt).may_know(1) != before


# S12 Payoffs


@pytest.mark.parametrize(
    ("num_players", "winners", "expected"),
    [
        (2, [0], ["1", "-1"]),
        (2, [0, 1], ["0", "0"]),
        (3, [1], ["-1/2", "1", "-1/2"]),
        (3, [0, 2], ["1/4", "-1/2", "1/4"]),
        (3, [0, 1, 2], ["0", "0", "0"]),
        (4, [3], ["-1/3", "-1/3", "-1/3", "1"]),
        (4, [0, 1], ["1/3", "1/3", "-1/3", "-1/3"]),
        (4, [0, 1, 3], ["1/9", "1/9", "-1/3", "1/9"]),
        (4, [0, 1, 2, 3], ["0", "0", "0", "0"]),
    ],
)
def test_s12_the_payoffs_of_sharing_winners_are_averaged(
    num_players: int, winners: list[int], expected: list[str]
) -> None:
    game, _ = deal(num_players)
    game.phase, game.winners = "over", winners
    assert game.payoffs() == [Fraction(share) for share in expected]


def test_s12_there_are_no_payoffs_before_the_end() -> None:
    with pytest.raises(ValueError, match="not over"):
        deal(2)[0].payoffs()


# Chance


def test_chance_is_asked_seat_by_seat_and_sees_piles_sorted() -> None:
    game = position(["6c 5c Tc", "6d 5d Td"], ["4c 3c 8c 7c Kc Ks", "4d 3d 2d 7d Kd Kh"])
    chance = game.chance
    assert isinstance(chance, Stacked)
    play(game, "6 6")
    assert chance.calls == [
        ("pick", 0, "6c"),
        ("pick", 1, "6d"),
        ("draw", 0, "3c 4c 7c 8c Kc Ks"),
        ("draw", 0, "3c 7c 8c Kc Ks"),
        ("draw", 1, "2d 3d 4d 7d Kd Kh"),
        ("draw", 1, "2d 3d 7d Kd Kh"),
    ]
    chance.calls.clear()
    play(game, "5 5")
    assert chance.calls == [
        ("pick", 0, "5c"),
        ("pick", 1, "5d"),
        ("draw", 0, "7c 8c Kc Ks"),
        ("draw", 1, "2d 7d Kd Kh"),
        ("draw", 0, "7c Kc Ks"),
        ("draw", 0, "Kc Ks"),
        ("draw", 1, "7d Kd Kh"),
        ("draw", 1, "Kd Kh"),
    ]


class Fixed:
    """Chance that names the same places whatever is there."""

    def __init__(self, draw: int, pick: int) -> None:
        self.places = (draw, pick)

    def draw(self, seat: int, pile: list[Card]) -> int:
        return self.places[0]

    def pick(self, seat: int, cards: list[Card]) -> int:
        return self.places[1]


@pytest.mark.parametrize("chance", [Fixed(0, 1), Fixed(0, -1), Fixed(2, 0), Fixed(-1, 0)])
def test_an_impossible_place_changes_nothing(chance: Fixed) -> None:
    game = position(["9c 9d 2c", "3c 3d 2h"], ["4c 4d", "5c 5d"])
    game.chance = chance
    before = (game.zones(), all_knowledge(game))
    with pytest.raises(ImpossibleChance):
        play(game, "2 2" if chance.places[0] == 0 else "9 3")
    assert (game.zones(), all_knowledge(game)) == before
    game.chance = Fixed(0, 0)
    play(game, "9 3")


def test_dictated_chance_follows_and_refuses() -> None:
    def dictated(drawn: str, picked: str) -> SkirmishOracle:
        game = position(["9c 9d 2c", "3c 3d 2h"], ["4c 4d", "5c 5d"])
        game.chance = DictatedChance(
            {0: cards_of(drawn), 1: cards_of("5d")}, {0: cards_of(picked), 1: cards_of("3d")}
        )
        return play(game, "9 3")

    game = dictated("4d", "9d")
    assert pile(game.hand[0]) == "2c 4d 9c"
    assert isinstance(game.chance, DictatedChance)
    game.chance.check_all_used()
    for drawn, picked in (("", "9d"), ("5c", "9d"), ("4d", ""), ("4d", "2c")):
        with pytest.raises(ImpossibleChance):
            dictated(drawn, picked)
    game = dictated("4d 4c", "9d")
    assert isinstance(game.chance, DictatedChance)
    with pytest.raises(ImpossibleChance, match="no cause"):
        game.chance.check_all_used()


# Random games

TABLES = [(num_players, rules) for num_players in (2, 3, 4) for rules in (DEFAULT, NO_RECYCLING)]
GAMES = 100

tables = pytest.mark.parametrize(
    ("num_players", "rules"), TABLES, ids=lambda part: str(getattr(part, "recycle_captures", part))
)


def check_position(game: SkirmishOracle) -> None:
    """Check what holds at every decision and at the end."""
    hidden = [card for cards in [*game.hand, *game.supply, *game.stakes] for card in cards]
    hidden += game.burned
    shown = [card for cards in [*game.capture, *game.committed] for card in cards]
    shown += game.graveyard
    assert ids(hidden + shown) == tuple(range(54))
    assert ids(list(game.pool_of)) == ids(hidden)

    on_table = [seat for seat in game.seats if game.stakes[seat] or game.committed[seat]]
    if game.phase == "war":
        assert len(game.participants) >= 2
        assert all(len(cards) == 1 for cards in game.committed)
        assert any(game.hand[seat] for seat in game.participants)
        assert all(not game.stakes[s] for s in game.seats if s not in game.participants)
        return
    assert not on_table
    assert not game.participants
    for seat in game.seats:
        usable = game.supply[seat] + (game.capture[seat] if game.rules.recycle_captures else [])
        assert len(game.hand[seat]) == 3 or (len(game.hand[seat]) < 3 and not usable)
    if game.phase == "skirmish":
        assert all(game.hand)
        assert not game.eliminated
        assert "wait" not in set().union(*(game.legal(seat) for seat in game.seats))


@tables
def test_random_games_keep_the_54_cards_and_sum_to_zero(
    num_players: int, rules: SkirmishRules
) -> None:
    for seed in range(GAMES):
        game, rng = deal(num_players, rules, seed)
        while game.phase != "over":
            check_position(game)
            rounds = game.rounds
            take_random_step(game, rng)
            assert game.rounds - rounds in (0, 1)
        check_position(game)
        assert game.eliminated
        assert not game.truncated
        assert all(not game.hand[seat] and not game.supply[seat] for seat in game.eliminated)
        scored = [seat for seat in game.seats if seat not in game.eliminated] or game.seats
        totals = game.totals()
        assert game.winners == [
            seat for seat in scored if totals[seat] == max(totals[other] for other in scored)
        ]
        payoffs = game.payoffs()
        assert sum(payoffs) == 0
        assert all(Fraction(-1) <= share <= 1 for share in payoffs)


@tables
def test_random_games_under_a_short_limit_are_truncated(
    num_players: int, rules: SkirmishRules
) -> None:
    short = SkirmishRules(rules.recycle_captures, max_rounds=4)
    for seed in range(GAMES):
        *_, game = random_game(num_players, short, seed)
        assert game.truncated == (not game.eliminated)
        assert game.rounds <= 4
        assert game.winners
        assert sum(game.payoffs()) == 0


@tables
def test_s11_the_numbers_of_a_pool_add_up_to_its_content(
    num_players: int, rules: SkirmishRules
) -> None:
    for seed in range(GAMES // 5):
        for game in random_game(num_players, rules, seed):
            for known in all_knowledge(game):
                found: dict[str, int] = {}
                for zone, counts in known["hidden"].items():
                    kind, _, seat = zone.partition(" ")
                    size = game.burned if kind == "burned" else getattr(game, kind)[int(seat)]
                    assert sum(counts.values()) == len(size)
                    for name, count in counts.items():
                        found[name] = found.get(name, 0) + count
                assert found == {name: len(cards) for name, cards in known["pools"].items()}


def holder(game: SkirmishOracle, card: Card) -> int | None:
    """Tell in whose hand a card is."""
    return next((seat for seat in game.seats if card in game.hand[seat]), None)


@tables
def test_s11_hidden_cards_of_one_pool_may_be_swapped_unseen(
    num_players: int, rules: SkirmishRules
) -> None:
    rng = random.Random(num_players)
    for seed in range(GAMES // 4):
        for game in random_game(num_players, rules, seed):
            if not game.pool_of:
                continue
            one, other = (rng.choice(sorted(game.pool_of, key=lambda c: c.id)) for _ in range(2))
            twin = swap(game, one, other)
            changed = twin.zones() != game.zones()
            for seat in game.seats:
                same_pool = game.pool_of[one] == game.pool_of[other]
                sees = seat in (holder(game, one), holder(game, other))
                if same_pool and not sees:
                    assert twin.may_know(seat) == game.may_know(seat)
                elif changed and not (sees and holder(game, one) == holder(game, other)):
                    assert twin.may_know(seat) != game.may_know(seat)


class Mirrored:
    """Chance of a game in which two cards have changed places: it mirrors what was recorded."""

    def __init__(self, exchange: dict[Card, Card]) -> None:
        self.exchange = exchange
        self.taken: list[Card] = []

    def draw(self, seat: int, pile: list[Card]) -> int:
        return self._next(pile)

    def pick(self, seat: int, cards: list[Card]) -> int:
        return self._next(cards)

    def _next(self, cards: list[Card]) -> int:
        card = self.taken.pop(0)
        return cards.index(self.exchange.get(card, card))


class Recorded(RandomChance):
    """Random chance that remembers the cards it took."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.taken: list[Card] = []

    def draw(self, seat: int, pile: list[Card]) -> int:
        place = super().draw(seat, pile)
        self.taken.append(pile[place])
        return place

    def pick(self, seat: int, cards: list[Card]) -> int:
        return self.draw(seat, cards)


@tables
def test_s11_games_that_differ_in_two_cards_look_alike_until_one_is_revealed(
    num_players: int, rules: SkirmishRules
) -> None:
    compared = 0
    for seed in range(GAMES // 2):
        game, rng = deal(num_players, rules, seed)
        game.chance = chance = Recorded(rng)
        one, other = rng.sample(ALL_CARDS, 2)
        exchange = {one: other, other: one}
        twin = swap(game, one, other)
        twin.chance = mirror = Mirrored(exchange)
        while game.phase != "over":
            chance.taken.clear()
            before = game.copy()
            take_random_step(game, rng)
            # One of the two was revealed, and perhaps recycled since.
            if any(game.pool_of.get(card) != "deal" for card in (one, other)):
                break
            mirror.taken = list(chance.taken)
            picks = dict.fromkeys(game.seats, "wait")
            taken = iter(chance.taken)
            for seat in game.seats:
                if before.legal(seat) != {"wait"}:
                    picks[seat] = next(taken).rank
            twin.step(picks)
            for seat in game.seats:
                if seat not in (holder(game, one), holder(game, other)):
                    assert twin.may_know(seat) == game.may_know(seat)
                    compared += 1
    assert compared > GAMES
