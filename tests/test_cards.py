"""Cards as text: reading, writing, order, sets, and bad cards that are named."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import ALL_CARDS, completed, new_env, position, value

from deck_of_spies_env import cards


def test_all_52_cards_in_order() -> None:
    """The index goes by rank first, Ace lowest, then by suit c d h s."""
    assert tuple(cards.card_text(index) for index in range(52)) == ALL_CARDS
    assert [cards.card_index(text) for text in ALL_CARDS] == list(range(52))
    assert [cards.card_value(index) for index in range(52)] == [value(card) for card in ALL_CARDS]
    assert sum(cards.card_value(index) for index in range(52)) == 4 * 91


def test_named_groups() -> None:
    """Aces, spies, the three tiers and the Key Spies."""
    assert cards.cards_in(cards.ACES) == ("Ac", "Ad", "Ah", "As")
    assert cards.cards_in(cards.ALL_CARDS) == ALL_CARDS
    assert cards.cards_in(cards.SPIES) == ALL_CARDS[16:]
    tiers = [cards.cards_in(tier) for tier in cards.SPY_TIERS]
    assert [{card[0] for card in tier} for tier in tiers] == [set("567"), set("89T"), set("JQK")]
    assert [len(tier) for tier in tiers] == [12, 12, 12]
    assert cards.cards_in(cards.KEY_SPIES) == tiers[2]
    assert (cards.NUM_CARDS, cards.NUM_SPIES, cards.NUM_KEY_SPIES) == (52, 36, 12)


@pytest.mark.parametrize("text", ALL_CARDS)
def test_every_way_to_write_a_card(text: str) -> None:
    """Any case, the suit as letter or symbol, the Ten as T or 10, blanks around it."""
    rank, suit = text
    index = ALL_CARDS.index(text)
    filled = "♣♦♥♠"["cdhs".index(suit)]
    hollow = "♧♢♡♤"["cdhs".index(suit)]
    ranks = [rank, rank.lower()] + ["10"] * (rank == "T")
    for written_rank in ranks:
        for written_suit in (suit, suit.upper(), filled, hollow):
            written = written_rank + written_suit
            assert cards.card_index(written) == index, written
            assert cards.card_index(f" {written}\n") == index


def test_ten_written_three_ways() -> None:
    """The examples of the contract: 10c, T♣ and tC are the ten of clubs."""
    assert {cards.card_text(cards.card_index(text)) for text in ("10c", "T♣", "tC", "10♣")} == {
        "Tc"
    }


BAD_CARDS: list[Any] = [
    "",
    " ",
    "c",
    "7",
    "10",
    "h7",
    "1h",
    "0h",
    "11h",
    "7x",
    "7hh",
    "77h",
    "7 h",
    "*",
    "Joker",
    "♣",
    "A-s",
    "1oc",
    None,
    7,
    0,
    ("7", "h"),
    b"7h",
]


@pytest.mark.parametrize("bad", BAD_CARDS, ids=repr)
def test_a_bad_card_is_named(bad: Any) -> None:
    """A ValueError whose message shows what was written."""
    with pytest.raises(ValueError, match="bad card") as caught:
        cards.card_index(bad)
    assert repr(bad) in str(caught.value)


@pytest.mark.parametrize("index", [-1, 52, 1000])
def test_a_bad_index_is_named(index: int) -> None:
    """Only 0 to 51 are cards."""
    with pytest.raises(ValueError, match=str(index)):
        cards.card_text(index)


def test_sets_of_cards() -> None:
    """A set is the same however its cards are written and ordered; it comes back sorted."""
    mask = cards.mask_of(["Ks", "10c", "a♥"])
    assert mask == cards.mask_of(["Ah", "tc", "K♠"])
    assert cards.cards_in(mask) == ("Ah", "Tc", "Ks")
    assert cards.indices_in(mask) == [2, 36, 51]
    assert cards.mask_of([]) == 0
    assert cards.cards_in(0) == ()


def test_a_card_named_twice() -> None:
    """Also if it is written in two ways."""
    with pytest.raises(ValueError, match="10c"):
        cards.mask_of(["Tc", "10c"])


def test_the_environment_reads_cards_the_same_way() -> None:
    """Actions and positions take every way of writing; what they give out is of one form."""
    env = position("2c 3d Tc", "5s", spy_deck="6c")
    assert env.encode("counter", ["10♣"]) == env.encode("counter", ["Tc"])
    assert env.encode("counter", ["3D", "2♧"]) == env.encode("counter", ["2c", "3d"])
    assert env.decode(env.encode("counter", ["10C"])).cards == ("Tc",)
    zones = completed({"hand": ["Tc", "2c"], "spy": ["5s"], "spy_deck": ["6c"]})
    written = zones | {"hand": ("2♣", "10c"), "spy": "5S"}
    env = new_env()
    env.reset(options={"zones": written})
    assert env.zones() == zones


@pytest.mark.parametrize("bad", ["1h", "7x", "", "*"])
def test_the_environment_names_a_bad_card(bad: str) -> None:
    """In an action and in a position; the position stays as it was."""
    env = position("2c 3d Tc", "5s", spy_deck="6c")
    before = env.zones()
    with pytest.raises(ValueError, match="bad card") as caught:
        env.encode("counter", ["2c", bad])
    assert repr(bad) in str(caught.value)
    with pytest.raises(ValueError, match="bad card") as caught:
        env.reset(options={"zones": before | {"draw_deck": (bad,)}})
    assert repr(bad) in str(caught.value)
    assert "draw_deck" in str(caught.value)
    assert env.zones() == before
