"""The rules of Skirmish by example, S1 to S12 of ``docs/rules.md``, each with the near miss.

Every position is played with several streams: what a test says holds whatever chance brings, so the
cards that come off a Supply are all of those that are left in it, or of one rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from skirmish_tools import RANKS, WAIT, at_table, dealt, ended, random_actions

from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.skirmish.cards import ALL_CARDS
from deck_of_spies_env.skirmish.games import Games
from deck_of_spies_env.skirmish.positions import table_of
from deck_of_spies_env.skirmish.rules import Rules

SEEDS = range(12)
NO_RECYCLING = Rules(recycle_captures=False)
PLENTY = ("2c 3d 4h", "3c 4d 2h", "4c 2d 3h", "2s 3s 4s")
"""Supplies that are not in the way."""


def position(
    hands: Sequence[str],
    supplies: Sequence[str] = (),
    captures: Sequence[str] = (),
    rules: Rules | None = None,
) -> Games:
    """Games at the start of a round; cards not named are burned."""
    empty = [""] * len(hands)
    table = {"hand": hands, "supply": supplies or empty, "capture": captures or empty}
    return at_table(table, len(hands), rules, SEEDS)


def play(games: Games, choices: str) -> Games:
    """One decision, the same in all games: a rank for each seat, ``-`` to wait."""
    actions = [WAIT if rank == "-" else RANKS.index(rank) for rank in choices.split()]
    games.step(np.tile(actions, (len(games), 1)))
    return games


def told(games: Games, zone: str, seat: int | None = None) -> Any:
    """What lies in a zone, or in that of one seat; it must be the same in all games."""
    tables = [table_of(state, games.num_players)[zone] for state in games.states]
    found = tables if seat is None else [table[seat] for table in tables]
    assert all(one == found[0] for one in found)
    return found[0]


def piles(games: Games, zone: str) -> list[str]:
    """What lies in a zone of all seats, as text."""
    return [" ".join(cards) for cards in told(games, zone)]


def pile(games: Games, zone: str, seat: int) -> str:
    """What lies in a zone of one seat, as text."""
    return " ".join(told(games, zone, seat))


def burned_now(games: Games) -> str:
    return " ".join(told(games, "graveyard"))


def cards(text: str) -> set[str]:
    """A set of cards written as one text."""
    return set(text.split())


def who(games: Games) -> str:
    """Who took the pot of the first round, or who is in the War for it; in all games alike."""
    found = set()
    for state in games.states:
        table = table_of(state, games.num_players)
        fights = [
            seat for seat in range(games.num_players) if int(state["participants"]) >> seat & 1
        ]
        takers = [seat for seat, cards in enumerate(table["capture"]) if cards]
        assert (table["phase"] == "war") == bool(fights)
        kind, seats = ("war", fights) if fights else ("pot", takers)
        found.add(" ".join([kind, *map(str, seats)]))
    assert len(found) == 1
    return found.pop()


def ending(games: Games, name: str) -> list[Any]:
    """One thing that is told of the end, the same in all games."""
    values = games.endings()[name].tolist()
    assert all(value == values[0] for value in values)
    return values[0]


def payoffs(games: Games) -> list[Fraction]:
    rewards = games.rewards.tolist()
    assert all(row == rewards[0] for row in rewards)
    return [Fraction(reward).limit_denominator(100) for reward in rewards[0]]


def is_over(games: Games) -> bool:
    over = ended(games)
    assert over.all() or not over.any()
    return bool(over[0])


# --- S1: setup ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("num_players", "share", "left_over"), [(2, 27, 0), (3, 18, 0), (4, 13, 2)]
)
def test_s1_everyone_is_dealt_alike_and_draws_three(
    num_players: int, share: int, left_over: int
) -> None:
    games = dealt(range(50), num_players)
    for state in games.states:
        table = table_of(state, num_players)
        assert [len(cards) for cards in table["hand"]] == [3] * num_players
        assert [len(cards) for cards in table["supply"]] == [share - 3] * num_players
        assert len(table["burned"]) == left_over
        assert not any(table["capture"])
        assert not any(table["stakes"])
        assert not table["graveyard"]
        assert table["committed"] == (None,) * num_players
        assert table["participants"] == tuple(range(num_players))


def test_s1_the_cards_burned_among_four_never_come_back() -> None:
    games = dealt(range(200), 4)
    burned = games.states["burned"].copy()
    rng = np.random.default_rng(0)
    while not ended(games).all():
        games.step(random_actions(games, rng), ~ended(games))
        assert (games.states["burned"] == burned).all()
    assert (np.bitwise_count(burned) == 2).all()
    assert len(np.unique(burned)) > 150


# --- S2, S3: the skirmish -------------------------------------------------------------------------

FIELDS = {
    # The highest takes the pot, whoever has it.
    "K Q": "pot 0",
    "Q K": "pot 1",
    "2 A": "pot 0",
    "T 9": "pot 0",
    "J T": "pot 0",
    "Q J": "pot 0",
    "9 T J": "pot 2",
    "5 5 9": "pot 2",
    "2 9 3 9": "war 1 3",
    # A tie for the highest is War among the tied.
    "K K": "war 0 1",
    "A A": "war 0 1",
    "7 7 6": "war 0 1",
    "7 7 7": "war 0 1 2",
    "Q K K": "war 1 2",
    "A A A A": "war 0 1 2 3",
    "9 9 2 9": "war 0 1 3",
    # The Assassin takes a King or a Queen, and nothing else.
    "A K": "pot 0",
    "Q A": "pot 1",
    "A J": "pot 1",
    "A T": "pot 1",
    "A K Q": "pot 0",
    "K K A": "pot 2",
    "9 A Q": "pot 1",
    "A 2 2": "war 1 2",
    "Q Q Q A": "pot 3",
    # The Knight protects Royalty from the Assassin, and takes the pot; without Assassin he doesn't.
    "A K J": "pot 2",
    "J Q A": "pot 0",
    "J K Q": "pot 1",
    "J Q Q": "war 1 2",
    "A J T": "pot 1",
    "A A K J": "pot 3",
    "A K Q J": "pot 3",
    "K K A J": "pot 3",
    # Several Knights go to War.
    "A K J J": "war 2 3",
    "J A Q J": "war 0 3",
    "J J K 2": "pot 2",
    "A A J J": "war 2 3",
    "A J J": "war 1 2",
    # So do several Assassins that no Knight opposes.
    "A A K": "war 0 1",
    "A K A": "war 0 2",
    "A A Q K": "war 0 1",
    "A A A K": "war 0 1 2",
    "A A 2": "pot 2",
    "A A T J": "pot 3",
    # A Joker is War of all, whatever else lies there.
    "* K": "war 0 1",
    "2 *": "war 0 1",
    "* *": "war 0 1",
    "* A K": "war 0 1 2",
    "K K *": "war 0 1 2",
    "* A K J": "war 0 1 2 3",
    "* 2 * 3": "war 0 1 2 3",
    "A K J *": "war 0 1 2 3",
}


@pytest.mark.parametrize("field", FIELDS)
def test_s3_who_takes_the_pot(field: str) -> None:
    ranks = field.split()
    left = {rank: list("cdhs") for rank in "23456789TJQKA"}
    named = [rank if rank == "*" else rank + left[rank].pop() for rank in ranks]
    spare = [rank + suit for rank in "3456789" if rank not in ranks for suit in left[rank]]
    hands = [f"{card} {spare.pop()} {spare.pop()}" for card in named]
    supplies = [" ".join(spare.pop(0) for _ in range(3)) for _ in named]
    games = play(position(hands, supplies), field)
    assert who(games) == FIELDS[field]
    kind, *seats = FIELDS[field].split()
    for state in games.states:
        table = table_of(state, len(ranks))
        if kind == "pot":  # S4: all of the pot
            assert sorted(table["capture"][int(seats[0])]) == sorted(named)
            assert [len(cards) for cards in table["hand"]] == [3] * len(ranks)
        else:  # the pot waits on the table
            assert list(table["committed"]) == named
            assert not any(table["capture"])
        assert not table["graveyard"]


def test_s2_every_seat_commits_one_of_its_ranks() -> None:
    games = position(["Kc Kd 5c", "* * Ac"], PLENTY[:2])
    legal = games.masks[0]
    assert [RANKS[action] for action in np.flatnonzero(legal[0])] == ["5", "K"]
    assert [RANKS[action] for action in np.flatnonzero(legal[1])] == ["A", "*"]
    for wrong in ("4 A", "5 K", "- A", "5 -"):
        with pytest.raises(IllegalActionError):
            play(games, wrong)


def test_s2_everyone_refills_to_three_as_far_as_there_are_cards() -> None:
    games = play(position(["Kc 5c 6c", "9c 5d", "8c 5h 7h"], ["Tc", "Td Th", ""]), "K 9 8")
    assert piles(games, "hand") == ["5c 6c Tc", "5d Td Th", "5h 7h"]
    assert piles(games, "supply") == ["", "", ""]


# --- S5, S6: War ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "num_stakes"), [("K K", [2, 2]), ("K K 5", [2, 2, 0]), ("* 8 5", [2, 2, 2])]
)
def test_s5_two_cards_are_staked_at_a_table_of_two_or_three(
    field: str, num_stakes: list[int]
) -> None:
    check_stakes(field, num_stakes)


@pytest.mark.parametrize(
    ("field", "num_stakes"),
    [("K 5 K 6", [1, 0, 1, 0]), ("* 8 5 6", [1, 1, 1, 1]), ("9 9 9 5", [1, 1, 1, 0])],
)
def test_s5_one_card_is_staked_at_a_table_of_four(field: str, num_stakes: list[int]) -> None:
    check_stakes(field, num_stakes)


def check_stakes(field: str, num_stakes: list[int]) -> None:
    ranks = field.split()
    hands = [
        f"{rank if rank == '*' else rank + suit} 7{suit}"
        for rank, suit in zip(ranks, "cdhs", strict=False)
    ]
    games = play(position(hands, PLENTY[: len(ranks)]), field)
    for state in games.states:
        table = table_of(state, len(ranks))
        assert [len(cards) for cards in table["stakes"]] == num_stakes
        assert [len(cards) for cards in table["supply"]] == [3 - staked for staked in num_stakes]
        # Only who fights decides, the others wait.
        assert table["participants"] == tuple(np.flatnonzero(num_stakes).tolist())
    waits = [bool(mask[WAIT]) for mask in games.masks[0]]
    assert waits == [staked == 0 for staked in num_stakes]


WARS = {
    # Stakes and hand card of both: who leads. (S5)
    ("Kc Qc", "2c", "Jd Td", "5d"): 0,
    ("Kc Qc", "2c", "Jd Td", "7d"): 1,
    ("Kc Qc", "2c", "Qd Td", "5d"): None,
    ("Ac Kc", "2c", "Qd 2d", "3d"): 1,  # the Ace is 1: 16 against 17
    ("Ac Kc", "4c", "Qd 2d", "3d"): 0,  # 18
    ("Jc 2c", "3c", "Td 2d", "3d"): 0,  # the Jack is 11
    ("Ac 2c", "3c", "Kd Qd", "Jd"): 1,  # no intrigue in a War
    # A Joker is as good as the highest of its own pile. (S6)
    ("* 9c", "2c", "Td 8d", "3d"): 1,  # 20 against 21
    ("* 9c", "2c", "Td 7d", "2d"): 0,  # 20 against 19
    ("* 9c", "2c", "Td 8d", "2d"): None,
    ("9c 2c", "*", "Td 7d", "2d"): 0,  # also if it is the hand card
    ("9c 2c", "*", "Td 8d", "3d"): 1,
    ("* 2c", "9c", "Td 7d", "2d"): 0,  # and if the highest is the hand card
    ("* 5c", "5h", "Kd Ad", "2d"): 1,  # 15 against 16: not the highest of the other pile
    # Two Jokers both copy it.
    ("* *", "9c", "Kd Jd", "2d"): 0,  # 27 against 26
    ("* 9c", "*", "Kd Jd", "2d"): 0,
    ("* *", "9c", "Kd Jd", "4d"): 1,
    ("* *", "9c", "Kd Jd", "3d"): None,
    ("* Kc", "2c", "* Qd", "4d"): None,  # 28 each
    ("* Kc", "2c", "* Qd", "3d"): 0,
}


@pytest.mark.parametrize("war", WARS)
def test_s5_s6_the_highest_sum_takes_pot_and_own_war_cards(war: tuple[str, str, str, str]) -> None:
    """The losers' cards burn; with nothing to break a tie everything does (S7)."""
    stakes, hand, other_stakes, other_hand = war
    hands = [f"6c {hand} Ah", f"6s {other_hand} As"]
    games = play(position(hands, [stakes, other_stakes], rules=NO_RECYCLING), "6 6")
    assert who(games) == "war 0 1"
    play(games, f"{hand[0]} {other_hand[0]}")
    captures = ["", ""]
    burned = "6c 6s" if WARS[war] is None else ""
    for seat, cards in enumerate((f"{stakes} {hand}", f"{other_stakes} {other_hand}")):
        if seat == WARS[war]:
            captures[seat] = f"6c 6s {cards}"
        else:
            burned += f" {cards}"
    assert [sorted(cards) for cards in told(games, "capture")] == [
        sorted(cards.split()) for cards in captures
    ]
    assert sorted(told(games, "graveyard")) == sorted(burned.split())
    assert not is_over(games)


def test_s5_the_card_committed_to_the_skirmish_does_not_count() -> None:
    games = play(position(["* 2c", "Kd 2d"], ["9c 8c", "9d 7d"], rules=NO_RECYCLING), "* K")
    assert piles(play(games, "2 2"), "capture") == ["2c 8c 9c Kd *", ""]
    games = play(position(["* 2c", "Kd 2d"], ["9c 7c", "9d 8d"], rules=NO_RECYCLING), "* K")
    assert piles(play(games, "2 2"), "capture") == ["", "2d 8d 9d Kd *"]


def test_s6_a_joker_in_a_war_starts_no_second_war() -> None:
    games = play(position(["5c *", "5d *"], ["2c 3c", "2d 4d"], rules=NO_RECYCLING), "5 5")
    play(games, "* *")  # 8 against 10
    assert piles(games, "capture") == ["", "2d 4d 5c 5d *"]
    assert burned_now(games) == "2c 3c *"


def test_s6_a_pile_of_jokers_only_is_worth_nothing() -> None:
    games = play(position(["5c * 8c", "5d"], rules=NO_RECYCLING), "5 5")
    play(games, "* -")  # 0 against no cards at all: tied, and nobody has anything to add
    assert burned_now(games) == "5c 5d *"
    games = play(position(["5c Ac 8c", "5d"], rules=NO_RECYCLING), "5 5")
    assert piles(play(games, "A -"), "capture") == ["Ac 5c 5d", ""]


def test_s5_who_does_not_fight_keeps_what_he_has() -> None:
    games = position(["9c 2c", "5d 6d", "9h 3h"], ["4c 4d", "8c 8d", "4h 4s"], rules=NO_RECYCLING)
    play(play(games, "9 5 9"), "2 - 3")
    assert piles(games, "capture") == ["", "", "3h 4h 4s 5d 9c 9h"]  # S4: his card is in the pot
    assert burned_now(games) == "2c 4c 4d"
    assert pile(games, "hand", 1) == "6d 8c 8d"


# --- S7: short piles and ties ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("supply", "winner"),
    [("Kc Qc", 0), ("Kc", 0), ("9c", 1), ("", 1)],
    ids=["in full", "short by one", "short by one, too little", "short by all"],
)
def test_s7_who_has_too_few_stakes_what_there_is(supply: str, winner: int) -> None:
    games = play(position(["5c 2c", "5d 2d"], [supply, "6d 4d"], rules=NO_RECYCLING), "5 5")
    assert piles(games, "stakes") == [" ".join(reversed(supply.split())), "4d 6d"]
    play(games, "2 2")
    assert [bool(cards) for cards in piles(games, "capture")] == [winner == 0, winner == 1]


def test_s5_who_has_no_hand_card_commits_none() -> None:
    games = play(position(["5c", "5d 2d"], ["Kc Qc", "6d 4d"], rules=NO_RECYCLING), "5 5")
    assert told(games, "participants") == (1,)
    assert np.flatnonzero(games.masks[0, 0]).tolist() == [WAIT]
    with pytest.raises(IllegalActionError):
        play(games, "K 2")
    play(games, "- 2")  # 25 against 12
    assert piles(games, "capture") == ["5c 5d Qc Kc", ""]


def test_s5_without_any_hand_card_a_war_is_decided_at_once() -> None:
    rules = Rules(recycle_captures=False)
    games = play(position(["5c", "5d"], ["Kc Qc", "6d 4d"], rules=rules), "5 5")
    assert is_over(games)  # nobody has a card left
    assert piles(games, "capture") == ["5c 5d Qc Kc", ""]
    assert burned_now(games) == "4d 6d"
    games = play(position(["5c", "5d", "2h 3h"], ["Kc Qc", "6d 4d", ""]), "5 5 2")
    assert burned_now(games) == "4d 6d"  # also if one who does not fight has cards


def test_s7_a_tie_is_broken_by_one_card_of_each() -> None:
    """The tie-breaking cards come back from the captures, so that they are known."""
    games = position(["5c 2c 8c", "5d 2d 8d"], ["7c 7d", "7h 7s"], ["Kc", "Qd"])
    play(play(games, "5 5"), "2 2")
    for state in games.states:
        table = table_of(state, 2)
        assert table["graveyard"] == ("2d", "7h", "7s", "Qd")
        assert set(table["hand"][0] + table["supply"][0]) == cards("2c 5c 5d 7c 7d 8c Kc")
        assert table["hand"][1] == ("8d",)


def test_s7_a_tie_may_follow_a_tie() -> None:
    """At a table of four: 7 and 2 each, then 6 each, then 6 against nothing."""
    games = position(
        ["5c 2c 8c", "5d 2d 8d", "3h 4h", "3s 4s"],
        ["7c", "7d", "9h Th", "9s Ts"],
        ["6c 6d", "6h", "", ""],
    )
    play(play(games, "5 5 3 3"), "2 2 - -")
    for state in games.states:
        table = table_of(state, 4)
        assert table["graveyard"] == ("2d", "6h", "7d")
        own = table["hand"][0] + table["supply"][0]
        assert set(own) == cards("2c 3h 3s 5c 5d 6c 6d 7c 8c")


def test_s7_a_tie_that_nobody_can_break_burns_all() -> None:
    games = position(["5c 2c 8c", "5d 2d 8d"], ["7c 7d", "7h 7s"], ["6c", "6d"])
    play(play(games, "5 5"), "2 2")
    assert burned_now(games) == "2c 2d 5c 5d 6c 6d 7c 7d 7h 7s"
    assert piles(games, "hand") == ["8c", "8d"]
    assert piles(games, "capture") == piles(games, "supply") == ["", ""]
    assert not is_over(games)


def test_s7_who_has_nothing_to_add_stands_on_the_sum() -> None:
    games = position(["5c 2c 8c", "5d 2d 8d"], ["7c 7d", "7h 7s"], ["Ac", ""])
    play(play(games, "5 5"), "2 2")
    assert burned_now(games) == "2d 7h 7s"  # any card leads, be it an Ace


def test_s7_only_the_tied_at_the_top_add_cards() -> None:
    games = position(
        ["5c 2c 8c", "5d 2d 8d", "5h 2h 8h"], ["7c 7d", "7h 7s", "6c 6d"], ["Tc", "9d", "Kh"]
    )
    play(play(games, "5 5 5"), "2 2 2")
    for state in games.states:
        table = table_of(state, 3)
        assert table["graveyard"] == ("2d", "2h", "6c", "6d", "7h", "7s", "9d")
        assert table["hand"][2] == ("8h", "Kh")  # it came up in the refill, not in the War
        assert "Tc" in table["hand"][0] + table["supply"][0]


# --- S8: recycling --------------------------------------------------------------------------------


def test_s8_an_empty_supply_is_made_from_the_captures() -> None:
    games = play(position(["Kc 2c 3c", "Qd 2d 3d"], ["", "Td"], ["4c", "4d"]), "K Q")
    table = [table_of(state, 2) for state in games.states]
    assert all(set(one["hand"][0] + one["supply"][0]) == cards("2c 3c 4c Kc Qd") for one in table)
    assert all(len(one["hand"][0]) == 3 for one in table)
    assert len({one["hand"][0] for one in table}) > 1  # it was shuffled, with what was just taken
    assert all(one["capture"] == ((), ("4d",)) for one in table)  # not before a card is needed
    assert (games.states["latest"][:, :2] != 0).tolist() == [[True, False]] * len(games)


def test_s8_without_recycling_captures_stay_where_they_are() -> None:
    games = position(["Kc 2c 3c", "Qd 2d 3d"], ["", "Td"], ["4c", "4d"], NO_RECYCLING)
    play(games, "K Q")
    assert piles(games, "hand") == ["2c 3c", "2d 3d Td"]
    assert piles(games, "capture") == ["4c Qd Kc", "4d"]


def test_s8_a_war_may_recycle_for_its_stakes() -> None:
    """What lies on the table, the pot included, is in no Capture pile yet."""
    games = play(position(["5c 2c", "5d 2d"], ["Kc", "9d 9h"], ["4c", "4d"]), "5 5")
    assert piles(games, "stakes") == ["4c Kc", "9d 9h"]
    assert piles(games, "capture") == ["", "4d"]
    assert piles(games, "supply") == ["", ""]


# --- S9: the end ----------------------------------------------------------------------------------


def test_s9_the_game_ends_the_instant_one_is_eliminated() -> None:
    games = play(position(["5c", "6d 2d", "Kh 2h"], ["", "3d", "3h"]), "5 6 K")
    assert is_over(games)
    assert ending(games, "outcome") == ["loss", "loss", "win"]
    assert ending(games, "total") == [0, 5, 29]
    assert ending(games, "margin") == [-29, -24, 24]
    assert payoffs(games) == [Fraction(-1, 2), Fraction(-1, 2), 1]


@pytest.mark.parametrize(
    ("hand", "supply", "capture"), [("4c", "", ""), ("", "4c", ""), ("", "", "4c")]
)
def test_s9_who_has_a_card_anywhere_is_not_eliminated(hand: str, supply: str, capture: str) -> None:
    games = position([f"5c {hand}", "6d 2d"], [supply, "3d"], [capture, ""])
    play(games, "5 6")
    assert not is_over(games)  # the refill comes first
    assert pile(games, "hand", 0) == "4c"


def test_s9_the_pot_saves_who_takes_it() -> None:
    games = play(position(["6c", "5d 2d"], ["", "3d"]), "6 5")
    assert not is_over(games)
    assert pile(games, "hand", 0) == "5d 6c"


@pytest.mark.parametrize("supply", ["", "4c"])
def test_s9_without_recycling_captures_do_not_save(supply: str) -> None:
    """Nor do they count for who is eliminated, be they ever so many."""
    games = position(["5c", "6d 2d"], [supply, "3d"], ["Kc Kd Kh Ks", ""], NO_RECYCLING)
    play(games, "5 6")
    assert is_over(games) == (not supply)
    if not supply:
        assert ending(games, "total") == [0, 2 + 3 + 5 + 6]
        assert ending(games, "outcome") == ["loss", "win"]
        assert payoffs(games) == [-1, 1]


def test_s9_if_all_are_eliminated_at_once_all_are_scored() -> None:
    games = position(["5c", "6d"], captures=["Kc Ac *", "2d"], rules=NO_RECYCLING)
    play(games, "5 6")
    assert ending(games, "total") == [14, 13]
    assert ending(games, "outcome") == ["win", "loss"]
    games = position(["5c", "6d"], captures=["Kc", "2d"], rules=NO_RECYCLING)
    play(games, "5 6")
    assert ending(games, "total") == [13, 13]
    assert ending(games, "outcome") == ["shared", "shared"]
    assert ending(games, "is_success") == [False, False]
    assert payoffs(games) == [0, 0]


def test_s9_all_may_burn_away() -> None:
    games = play(position(["5c", "5d"]), "5 5")
    assert burned_now(games) == "5c 5d"
    assert is_over(games)
    assert ending(games, "total") == [0, 0]
    assert payoffs(games) == [0, 0]


def test_s9_two_of_three_may_go_at_once() -> None:
    games = play(position(["5c", "4d", "Kh"]), "5 4 K")
    assert ending(games, "outcome") == ["loss", "loss", "win"]
    assert payoffs(games) == [Fraction(-1, 2), Fraction(-1, 2), 1]


def test_s9_values_of_the_cards() -> None:
    hands = ["2c Jc Qc", "3d Kd Ad"]
    games = position(hands, ["Tc *", "9d *"], ["8c", "7d"], Rules(max_rounds=1))
    play(games, "2 3")
    assert ending(games, "total") == [11 + 12 + 10 + 8, 2 + 3 + 13 + 1 + 9 + 7]


# --- S10: the round limit -------------------------------------------------------------------------


def test_s10_the_round_limit_truncates_and_all_are_scored() -> None:
    for limit in (1, 2):
        games = position(["2c 3c", "Kd Qd"], ["4c", "4d"], rules=Rules(max_rounds=limit))
        play(games, "2 K")
        assert is_over(games) == (limit == 1)
        assert games.states["rounds"].tolist() == [1] * len(games)
        if limit == 1:
            assert ending(games, "truncated") is True
            assert ending(games, "total") == [7, 12 + 4 + 2 + 13]
            assert ending(games, "rounds") == [1, 1]


def test_s10_an_elimination_in_the_last_round_is_no_truncation() -> None:
    games = play(position(["2c", "Kd Qd"], rules=Rules(max_rounds=1)), "2 K")
    assert ending(games, "truncated") is False
    assert ending(games, "total") == [0, 27]


def test_s10_a_war_is_a_part_of_its_round() -> None:
    games = position(["5c 2c", "5d 3d"], PLENTY[2:], rules=Rules(max_rounds=1))
    play(games, "5 5")
    assert games.states["rounds"].tolist() == [0] * len(games)
    play(games, "2 3")
    assert games.states["rounds"].tolist() == [1] * len(games)
    assert is_over(games)


# --- S12: payoffs ---------------------------------------------------------------------------------

SHARES = {
    # 26 points for each that shares, after seat 3 (or the last) has taken the pot.
    ("2c Kc Kd", "3c Kh Ks", "4c 6c 7c", "5c 8c"): ["1/3", "1/3", "-1/3", "-1/3"],
    ("2c Kc Kd", "3c Kh Ks", "4c Qc Jc 3d", "5c 8c"): ["1/9", "1/9", "1/9", "-1/3"],
    ("2c Kc Kd", "3c Kh Ks", "4c Qc Jc 3d", "5c Qd"): ["0", "0", "0", "0"],
    ("2c Kc Kd", "3c Kh Qs", "4c 6c 7c", "5c 8c"): ["1", "-1/3", "-1/3", "-1/3"],
    ("2c Kc Kd", "3c Kh Ks", "5c 8c"): ["1/4", "1/4", "-1/2"],
    ("2c Kc Kd", "3c 8c", "5c Qd 4d"): ["1/4", "-1/2", "1/4"],
    ("2c Kc Kd", "3c Kh Ks", "5c Qd 4d"): ["0", "0", "0"],
    ("2c Kc Kd", "5c Jd 8c"): ["0", "0"],
    ("2c Kc Kd", "5c Jd 9c"): ["-1", "1"],
}


@pytest.mark.parametrize("held", SHARES)
def test_s12_shared_wins_share_the_payoffs_of_single_ones(held: tuple[str, ...]) -> None:
    hands = [" ".join(of_seat.split()[:3]) for of_seat in held]
    supplies = [" ".join(of_seat.split()[3:]) for of_seat in held]
    games = position(hands, supplies, rules=Rules(max_rounds=1))
    play(games, " ".join(of_seat[0] for of_seat in held))
    expected = [Fraction(share) for share in SHARES[held]]
    assert payoffs(games) == expected
    assert sum(expected) == 0
    best = max(ending(games, "total"))
    winners = [total == best for total in ending(games, "total")]
    assert [share == max(expected) for share in expected] == winners


def test_s12_no_payoff_before_the_end() -> None:
    games = play(position(["Kc 2c 3c", "Qd 2d 3d"], ["4c", "Td"]), "K Q")
    assert not games.rewards.any()


# --- What always holds ----------------------------------------------------------------------------


@pytest.mark.parametrize("recycle_captures", [True, False])
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_cards_are_conserved_and_payoffs_sum_to_zero(
    num_players: int, recycle_captures: bool
) -> None:
    games = dealt(range(300), num_players, rules={"recycle_captures": recycle_captures})
    rng = np.random.default_rng(0)
    states = games.states
    paid = np.zeros(300)
    while True:
        lone = np.where(states["committed"] >= 0, 1 << states["committed"].astype(np.int64), 0)
        shared = np.stack([states["graveyard"], states["burned"]], axis=1)
        zones = [states[name] for name in ("hand", "supply", "capture", "stakes")]
        everything = np.concatenate([*zones, shared, lone.astype(np.uint64)], axis=1)
        assert (np.bitwise_or.reduce(everything, axis=1) == ALL_CARDS).all()
        assert (np.bitwise_count(everything).sum(axis=1) == 54).all()
        face_down = np.bitwise_or.reduce(
            np.concatenate([zones[0], zones[1], zones[3], shared[:, 1:]], axis=1), axis=1
        )
        recycled = np.bitwise_or.reduce(states["latest"] | states["previous"], axis=1)
        assert (((states["dealt"] | recycled) & ~face_down) == 0).all()
        assert ((states["dealt"] & recycled) == 0).all()
        assert (np.bitwise_count(states["hand"]) <= 3).all()
        if ended(games).all():
            break
        games.step(random_actions(games, rng), ~ended(games))
        assert np.allclose(games.rewards.sum(axis=1), 0.0, atol=1e-15)
        paid += np.abs(games.rewards).max(axis=1)
    assert (paid <= 1.0).all()
    assert (paid > 0).mean() > 0.9
