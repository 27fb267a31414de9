"""Tests of the referee: examples worked out by hand from the rulings D1 to D14 (docs/rules.md).

Each test is named after its ruling and pairs what is allowed with the near miss that is not.
"""

from __future__ import annotations

import itertools
import random

import pytest
from oracle import (
    ALL_CARDS,
    Card,
    IllegalMove,
    ImpossibleChance,
    OracleGame,
    OracleRules,
    parse,
)

DEFAULT = OracleRules()
STRICT_ACE = OracleRules(idle_ace=False)
EAGER = OracleRules(eager_reshuffle=True)

ZONE_NAMES = {"hand", "draw_deck", "draw_discard", "spy", "spy_deck", "spy_discard", "removed"}

Cards = tuple[str, ...]


def position(
    hand: str,
    spy: str = "",
    *,
    spy_deck: str = "",
    draw_deck: str = "",
    draw_discard: str = "",
    spy_discard: str = "",
    rules: OracleRules = DEFAULT,
    phase: str = "act",
) -> OracleGame:
    """Build a position; other cards not named lie in the Spy Discard, Aces are removed."""
    zones = {
        "hand": tuple(hand.split()),
        "spy": tuple(spy.split()),
        "spy_deck": tuple(spy_deck.split()),
        "draw_deck": tuple(draw_deck.split()),
        "draw_discard": tuple(draw_discard.split()),
        "spy_discard": tuple(spy_discard.split()),
    }
    named = set(itertools.chain.from_iterable(zones.values()))
    rest = [str(card) for card in ALL_CARDS if card.rank != "A" and str(card) not in named]
    zones["spy_discard"] += tuple(rest)
    return OracleGame(rules, zones, phase)


def sets(game: OracleGame, kind: str) -> set[Cards]:
    """Return the card sets of the legal actions of one kind."""
    return {cards for other, cards in game.legal_actions() if other == kind}


def kinds(game: OracleGame) -> set[str]:
    """Return the kinds of the legal actions."""
    return {kind for kind, _ in game.legal_actions()}


def card_sets(*written: str) -> set[Cards]:
    """Read sets of cards, each written as one text."""
    return {tuple(text.split()) for text in written}


def gained(before: OracleGame, after: OracleGame, zone: str) -> set[str]:
    """Return the cards that a zone has more than before, and check that it has lost none."""
    old, new = set(before.zones()[zone]), set(after.zones()[zone])
    assert old <= new
    return new - old


def refuses(game: OracleGame, kind: str, cards: str, next_spy: str | None, drawn: str) -> None:
    """Check that a chance outcome is impossible and leaves the game as it was."""
    zones, phase = game.zones(), game.phase
    with pytest.raises(ImpossibleChance):
        game.step(kind, cards.split(), next_spy=next_spy, drawn=drawn.split())
    assert game.zones() == zones
    assert game.phase == phase


# Cards


def test_cards_are_the_52_with_their_values() -> None:
    assert len(set(ALL_CARDS)) == 52
    assert sum(card.value for card in ALL_CARDS) == 4 * 91
    assert [parse(text).value for text in ("Ac", "2d", "9h", "Ts", "Jc", "Qd", "Kh")] == [
        1,
        2,
        9,
        10,
        11,
        12,
        13,
    ]
    assert parse("7h") == Card("7", "h")
    assert all(parse(str(card)) == card for card in ALL_CARDS)


@pytest.mark.parametrize("text", ["", "7", "h7", "1h", "7x", "*", "7hh"])
def test_a_bad_card_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="not a card") as caught:
        parse(text)
    assert repr(text) in str(caught.value)


# D1 Counter


def test_d1_two_and_five_against_a_five_has_a_card_to_spare() -> None:
    game = position("2c 5d", "5h")
    assert game.legal_actions() == {("counter", ("5d",))}


def test_d1_three_and_four_is_legal_where_three_and_two_was_possible() -> None:
    game = position("2h 3c 4d", "5s")
    assert sets(game, "counter") == card_sets("2h 3c", "2h 4d", "3c 4d")


def test_d1_rulebook_ways_to_counter_a_five() -> None:
    game = position("As 2c 3d 4h 7c", "5d")
    # The totals are 5, 5, 6, 7 and 7; A+2+3 = 6 has the Ace to spare.
    assert sets(game, "counter") == card_sets("2c 3d", "As 4h", "2c 4h", "3d 4h", "7c")


def test_d1_exact_total_suffices_and_one_less_does_not() -> None:
    assert sets(position("4c 5d", "9h"), "counter") == card_sets("4c 5d")
    assert sets(position("4c 5d", "Th", draw_deck="Ac"), "counter") == set()


def test_d1_looks_at_every_card_and_not_only_at_the_largest() -> None:
    # 9+3+2 = 14 against a King: without the 2 it is 12, without the 3 it is 11.
    assert sets(position("2c 3c 9d", "Kh"), "counter") == card_sets("2c 3c 9d")
    # 9+4+2 = 15: without the 2 it is still 13.
    assert sets(position("2c 4c 9d", "Kh"), "counter") == card_sets("4c 9d")


def test_d1_uses_the_whole_hand_when_needed() -> None:
    game = position("2c 2d 2h 3c 4d", "Ks")
    assert sets(game, "counter") == card_sets("2c 2d 2h 3c 4d")


# D2 Recruit


def test_d2_rulebook_three_and_five_of_hearts_recruit_the_seven_of_hearts() -> None:
    game = position("3h 4c 5h", "7h")
    assert sets(game, "recruit") == card_sets("3h 5h")
    assert sets(game, "counter") == card_sets("3h 4c", "3h 5h", "4c 5h")


def test_d2_in_suit_recruit_has_no_card_to_spare_either() -> None:
    game = position("2h 3h 8h", "7h")
    assert sets(game, "recruit") == card_sets("8h")


def test_d2_rulebook_ace_of_clubs_for_the_nine_of_clubs() -> None:
    game = position("Ac 2s 3h 4c 4d", "9c")
    assert sets(game, "recruit") == card_sets("Ac 4c 4d", "Ac 2s 3h 4c", "Ac 2s 3h 4d")


def test_d2_all_in_another_suit_is_no_recruit() -> None:
    assert sets(position("4d 5d", "9c"), "recruit") == set()
    assert sets(position("4d 5d", "9d"), "recruit") == card_sets("4d 5d")


def test_d2_the_ace_must_be_played_to_convert() -> None:
    game = position("Ac 9d", "9c")
    assert ("9d",) not in sets(game, "recruit")


def test_d2_the_converted_total_must_still_suffice() -> None:
    assert sets(position("Ac 8d", "9c"), "recruit") == card_sets("Ac 8d")
    assert sets(position("Ac 7d 9h", "9c"), "recruit") == card_sets("Ac 9h")


# D3 The Ace of the spy's suit may be to spare


def test_d3_ace_and_eight_against_the_nine_but_no_two_on_top() -> None:
    game = position("Ac 2h 8d", "9c")
    assert sets(game, "recruit") == card_sets("Ac 8d")


def test_d3_the_ace_alone_is_spare_and_may_be() -> None:
    game = position("Ac 9d", "9c")
    assert sets(game, "recruit") == card_sets("Ac 9d")
    assert sets(game, "counter") == card_sets("9d")


def test_d3_the_point_of_the_ace_counts_while_others_are_tested() -> None:
    # 2+8 is 10, and 8 without the 2; with the Ace the rest is 9, which makes the 2 spare.
    assert sets(position("Ac 2c 8c", "9c"), "recruit") == card_sets("2c 8c", "Ac 8c")
    # 2+7 is 9; with the Ace it is 10, 8 without the 2 and 3 without the 7.
    assert sets(position("Ac 2c 7c", "9c"), "recruit") == card_sets("2c 7c", "Ac 2c 7c")


def test_d3_only_the_ace_of_the_suit_is_exempt() -> None:
    assert sets(position("Ac Ad 8h", "9c"), "recruit") == card_sets("Ac 8h")
    assert sets(position("Ad 9c", "8c"), "recruit") == card_sets("9c")


def test_d3_the_ace_is_not_exempt_in_a_counter() -> None:
    assert sets(position("Ac 2d 7h", "9c"), "counter") == card_sets("2d 7h")


# D4 The idle Ace, and its switch


def test_d4_an_idle_ace_may_be_added() -> None:
    assert sets(position("Ac 9c", "8c"), "recruit") == card_sets("9c", "Ac 9c")
    assert sets(position("Ac 9c", "8c", rules=STRICT_ACE), "recruit") == card_sets("9c")


def test_d4_switch_off_still_allows_an_ace_needed_for_its_value() -> None:
    for rules in (DEFAULT, STRICT_ACE):
        assert sets(position("Ac 8c", "9c", rules=rules), "recruit") == card_sets("Ac 8c")


def test_d4_switch_off_still_allows_an_ace_that_converts() -> None:
    for rules in (DEFAULT, STRICT_ACE):
        assert sets(position("Ac 9d", "9c", rules=rules), "recruit") == card_sets("Ac 9d")
        # 5+4 is enough without the Ace, but the 4 is of another suit.
        assert sets(position("Ac 4d 5c", "9c", rules=rules), "recruit") == card_sets("Ac 4d 5c")


def test_d4_switch_off_refuses_an_idle_ace_with_several_cards() -> None:
    game = position("Ac 2c 7c", "9c", rules=STRICT_ACE)
    assert sets(game, "recruit") == card_sets("2c 7c")


def test_d4_switch_does_not_touch_counters() -> None:
    for rules in (DEFAULT, STRICT_ACE):
        game = position("Ac 2c 7c", "9d", rules=rules)
        assert sets(game, "counter") == card_sets("2c 7c")


# D5 Aces of other suits


def test_d5_an_ace_of_another_suit_converts_nothing() -> None:
    game = position("Ad 3d 8h", "9c")
    assert sets(game, "recruit") == set()
    assert sets(game, "counter") == card_sets("Ad 8h", "3d 8h")


def test_d5_an_ace_of_another_suit_is_converted_for_its_point() -> None:
    game = position("Ac Ad 7h", "9c")
    assert sets(game, "recruit") == card_sets("Ac Ad 7h")


def test_d5_aces_are_plain_cards_in_a_counter() -> None:
    game = position("Ac Ad 4h", "6c")
    assert sets(game, "counter") == card_sets("Ac Ad 4h")
    assert sets(position("Ac Ad 5h", "6c"), "counter") == card_sets("Ac 5h", "Ad 5h")


# D6 Where cards go


def test_d6_counter_sends_the_spy_to_the_spy_discard() -> None:
    game = position("2h 3c 4d", "5s", spy_deck="6c 7c", draw_deck="2c 3d 4c 4h")
    before = game.copy()
    game.step("counter", ("4d", "3c"), next_spy="6c", drawn=("4h", "2c", "4c", "3d"))
    after = game.zones()
    assert gained(before, game, "spy_discard") == {"5s"}
    assert after["draw_discard"] == ("3c", "4d")
    assert after["hand"] == ("2c", "2h", "3d", "4c", "4h")
    assert after["draw_deck"] == ()
    assert after["spy"] == ("6c",)
    assert after["spy_deck"] == ("7c",)
    assert after["removed"] == before.zones()["removed"]
    assert (game.phase, game.outcome) == ("act", None)


def test_d6_recruit_sends_the_spy_to_the_draw_discard() -> None:
    game = position("2c 3h 5h", "7h", spy_deck="7c", draw_deck="2d 3d 4c 4h", draw_discard="9s")
    before = game.copy()
    game.step("recruit", ("3h", "5h"), next_spy="7c", drawn=("2d", "3d", "4c", "4h"))
    assert game.zones()["draw_discard"] == ("3h", "5h", "7h", "9s")
    assert gained(before, game, "spy_discard") == set()
    assert game.zones()["hand"] == ("2c", "2d", "3d", "4c", "4h")


# D7 Assassinate


def test_d7_only_when_the_whole_hand_falls_short() -> None:
    enough = position("As 2c 3d", "6h", draw_deck="Ac", draw_discard="Ad")
    assert enough.legal_actions() == {("counter", ("As", "2c", "3d"))}
    short = position("As 2c 3d", "7h", draw_deck="Ac", draw_discard="Ad")
    assert short.legal_actions() == {("assassinate", (ace,)) for ace in ("Ac", "Ad", "As")}


def test_d7_retired_and_removed_aces_are_not_left() -> None:
    game = position("2c 3d", "7h", draw_deck="Ac", spy_discard="Ah")
    assert game.zones()["removed"] == ("Ad", "As")
    assert game.legal_actions() == {("assassinate", ("Ac",))}


def assassination() -> OracleGame:
    return position(
        "As 2c 3d",
        "7h",
        spy_deck="7c Kd",
        draw_deck="Ac 2d 2h 2s 3c 3h",
        draw_discard="Ad 4c",
    )


def test_d7_ace_from_the_hand() -> None:
    game = assassination()
    before = game.copy()
    game.step("assassinate", ("As",), next_spy="7c", drawn=("Ac", "2d", "2h", "2s", "3c"))
    assert gained(before, game, "removed") == {"As"}
    assert gained(before, game, "spy_discard") == {"7h"}
    assert game.zones()["draw_discard"] == ("Ad", "2c", "3d", "4c")
    assert game.zones()["draw_deck"] == ("3h",)
    assert game.zones()["hand"] == ("Ac", "2d", "2h", "2s", "3c")
    assert game.phase == "act"


def test_d7_ace_from_the_draw_deck_can_no_longer_be_drawn() -> None:
    game = assassination()
    refuses(game, "assassinate", "Ac", "7c", "Ac 2d 2h 2s 3c")
    before = game.copy()
    game.step("assassinate", ("Ac",), next_spy="7c", drawn=("2d", "2h", "2s", "3c", "3h"))
    assert gained(before, game, "removed") == {"Ac"}
    assert game.zones()["draw_discard"] == ("Ad", "As", "2c", "3d", "4c")


def test_d7_ace_from_the_draw_discard() -> None:
    game = assassination()
    before = game.copy()
    game.step("assassinate", ("Ad",), next_spy="7c", drawn=("Ac", "2d", "2h", "2s", "3c"))
    assert gained(before, game, "removed") == {"Ad"}
    assert game.zones()["draw_discard"] == ("As", "2c", "3d", "4c")


def test_d7_no_retiring_and_the_kept_hand_is_gone() -> None:
    game = position("2c 2d", "7h", spy_deck="7c", draw_deck="Ac 2h 3c 3d 4c 4d")
    refuses(game, "assassinate", "Ac", "7c", "")
    game.step("assassinate", ("Ac",), next_spy="7c", drawn=("2h", "3c", "3d", "4c", "4d"))
    assert game.phase == "act"
    assert game.zones()["draw_discard"] == ("2c", "2d")


def test_d7_the_rest_of_the_hand_takes_part_in_the_reshuffle() -> None:
    game = position("2c 3d", "7h", spy_deck="7c", draw_deck="Ac", draw_discard="4c 4d")
    game.step("assassinate", ("Ac",), next_spy="7c", drawn=("2c", "3d", "4c", "4d"))
    assert game.zones()["hand"] == ("2c", "3d", "4c", "4d")
    assert game.zones()["draw_discard"] == ()


def test_d7_is_possible_with_an_empty_hand() -> None:
    game = position("", "5c", draw_discard="Ah")
    assert game.legal_actions() == {("assassinate", ("Ah",))}


# D8 No Double Agent left

ELEVEN_KEY_SPIES = "Jc Jd Jh Js Qc Qd Qh Qs Kd Kh Ks"


def before_the_king(last_drawn: str, *, aces: str = "", retired: str = "") -> OracleGame:
    """Hand 5c 2d against a 5, then the last King; all other Key Spies are in the deck."""
    return position(
        "2d 5c",
        "5h",
        spy_deck="Kc",
        draw_deck=f"2c 2h 3c {last_drawn}",
        draw_discard=f"{ELEVEN_KEY_SPIES} {aces}",
        spy_discard=retired,
    )


def test_d8_is_an_immediate_loss_whatever_has_been_collected() -> None:
    game = before_the_king("3d")
    game.step("counter", ("5c",), next_spy="Kc", drawn=("2c", "2h", "3c", "3d"))
    assert game.zones()["hand"] == ("2c", "2d", "2h", "3c", "3d")  # 12 against 13
    assert (game.phase, game.outcome, game.key_spies) == ("over", "no_double_agent", 0)
    assert game.turns == 35
    assert game.legal_actions() == set()


def test_d8_a_hand_that_suffices_goes_on() -> None:
    game = before_the_king("4d")
    game.step("counter", ("5c",), next_spy="Kc", drawn=("2c", "2h", "3c", "4d"))
    assert (game.phase, game.outcome) == ("act", None)
    assert sets(game, "counter") == card_sets("2c 2d 2h 3c 4d")


def test_d8_an_ace_in_the_draw_discard_saves_the_game() -> None:
    game = before_the_king("3d", aces="Ah")
    game.step("counter", ("5c",), next_spy="Kc", drawn=("2c", "2h", "3c", "3d"))
    assert (game.phase, game.outcome) == ("act", None)
    assert game.legal_actions() == {("assassinate", ("Ah",))}


def test_d8_a_retired_ace_does_not() -> None:
    game = before_the_king("3d", retired="Ah")
    game.step("counter", ("5c",), next_spy="Kc", drawn=("2c", "2h", "3c", "3d"))
    assert game.outcome == "no_double_agent"


def test_d8_waits_for_the_draw_after_the_retire_phase() -> None:
    game = position("2d 2h 5c", "5h", spy_deck="Kc", draw_deck="2c 3c 3d 4c", draw_discard="Qd Qh")
    game.step("counter", ("5c",), next_spy="Kc", drawn=())
    assert (game.phase, game.outcome) == ("retire", None)
    doomed = game.copy()
    doomed.step("pass", (), next_spy=None, drawn=("2c", "3c", "3d"))  # 2+2+2+3+3 = 12
    assert (doomed.phase, doomed.outcome, doomed.key_spies) == ("over", "no_double_agent", 0)
    game.step("pass", (), next_spy=None, drawn=("3c", "3d", "4c"))  # 2+2+3+3+4 = 14
    assert (game.phase, game.outcome) == ("act", None)


def test_d8_after_the_last_ace_was_spent() -> None:
    game = position("2c 2d", "7h", spy_deck="Kc", draw_deck="Ac 2h 2s 3c 3d 3h")
    enough = game.copy()
    enough.step("assassinate", ("Ac",), next_spy="Kc", drawn=("2h", "2s", "3c", "3d", "3h"))
    assert enough.outcome is None  # 2+2+3+3+3 = 13
    game = position("2c 2d", "7h", spy_deck="Kc", draw_deck="Ac 2h 2s 3c 3d", draw_discard="Kd")
    game.step("assassinate", ("Ac",), next_spy="Kc", drawn=("2h", "2s", "3c", "3d", "2c"))
    assert game.zones()["draw_deck"] == ("2d", "Kd")  # 2+2+3+3+2 = 12
    assert (game.phase, game.outcome, game.key_spies) == ("over", "no_double_agent", 0)


# D9 Retire


def after_rulebook_counter() -> OracleGame:
    """Play the example of the rulebook: 2c 2h 2s 3s 9d, the 9d was used for a counter."""
    game = position("2c 2h 2s 3s 9d", "9c", spy_deck="Tc Jd", draw_deck="3c 4c 4d 4h 4s")
    game.step("counter", ("9d",), next_spy="Tc", drawn=())
    return game


def test_d9_rulebook_two_or_three_of_the_twos() -> None:
    game = after_rulebook_counter()
    assert game.phase == "retire"
    assert sets(game, "retire") == card_sets("2c 2h", "2c 2s", "2h 2s", "2c 2h 2s")
    assert sets(game, "pass") == {()}
    assert kinds(game) == {"retire", "pass"}


def test_d9_the_next_spy_shows_before_retiring_and_no_card_is_drawn_yet() -> None:
    game = after_rulebook_counter()
    assert game.zones()["spy"] == ("Tc",)
    assert game.zones()["spy_deck"] == ("Jd",)
    assert game.zones()["hand"] == ("2c", "2h", "2s", "3s")
    assert game.zones()["draw_discard"] == ("9d",)
    fresh = position("2c 2h 2s 3s 9d", "9c", spy_deck="Tc Jd", draw_deck="3c 4c 4d 4h 4s")
    refuses(fresh, "counter", "9d", "Tc", "3c")
    refuses(fresh, "counter", "9d", None, "")


def test_d9_retired_cards_go_to_the_spy_discard_and_are_replaced() -> None:
    game = after_rulebook_counter()
    before = game.copy()
    game.step("retire", ("2s", "2c"), next_spy=None, drawn=("3c", "4c", "4d"))
    assert gained(before, game, "spy_discard") == {"2c", "2s"}
    assert game.zones()["hand"] == ("2h", "3c", "3s", "4c", "4d")
    assert game.zones()["draw_discard"] == ("9d",)
    assert game.phase == "act"


def test_d9_passing_draws_only_for_the_played_card() -> None:
    game = after_rulebook_counter()
    refuses(game, "pass", "", None, "3c 4c")
    refuses(game, "pass", "", "Jd", "3c")
    game.step("pass", (), next_spy=None, drawn=("4s",))
    assert game.zones()["hand"] == ("2c", "2h", "2s", "3s", "4s")
    assert (game.phase, game.turns) == ("act", 34)


@pytest.mark.parametrize("cards", ["2c", "3s", "2c 3s", "2c 2h 3s", "2c 2c", "2c 2d", ""])
def test_d9_other_sets_are_refused(cards: str) -> None:
    with pytest.raises(IllegalMove):
        after_rulebook_counter().step("retire", cards.split(), next_spy=None, drawn=())


def test_d9_only_once_a_turn() -> None:
    game = position("2c 2d 3c 3d 9d", "9c", spy_deck="Tc", draw_deck="4c 4d 4h 4s")
    game.step("counter", ("9d",), next_spy="Tc", drawn=())
    assert sets(game, "retire") == card_sets("2c 2d", "3c 3d")
    game.step("retire", ("2c", "2d"), next_spy=None, drawn=("4c", "4d", "4h"))
    assert game.phase == "act"
    assert "retire" not in kinds(game)


def test_d9_aces_and_key_spies_may_be_retired() -> None:
    game = position("Ac Ad 9s Kc Kd", "9h", spy_deck="Jc", draw_deck="2c 2d 2h 2s")
    game.step("counter", ("9s",), next_spy="Jc", drawn=())
    assert sets(game, "retire") == card_sets("Ac Ad", "Kc Kd")
    before = game.copy()
    game.step("retire", ("Ac", "Ad"), next_spy=None, drawn=("2c", "2d", "2h"))
    assert gained(before, game, "spy_discard") == {"Ac", "Ad"}
    assert gained(before, game, "removed") == set()


def test_d9_four_of_a_rank() -> None:
    game = position("2c 2d 2h 2s 9d", "9c", spy_deck="Tc", draw_deck="4c 4d 4h 4s")
    game.step("counter", ("9d",), next_spy="Tc", drawn=())
    assert sets(game, "retire") == card_sets(
        "2c 2d",
        "2c 2h",
        "2c 2s",
        "2d 2h",
        "2d 2s",
        "2h 2s",
        "2c 2d 2h",
        "2c 2d 2s",
        "2c 2h 2s",
        "2d 2h 2s",
        "2c 2d 2h 2s",
    )


def test_d9_same_value_means_same_rank() -> None:
    game = position("9d Tc Jd Qh Ks", "9c", spy_deck="Th", draw_deck="4c")
    game.step("counter", ("9d",), next_spy="Th", drawn=("4c",))
    assert game.phase == "act"


def test_d9_the_recruited_spy_cannot_be_retired() -> None:
    game = position("Ac 8c 9d", "9c", spy_deck="Tc", draw_deck="2c 3c 4c 4d 4h")
    game.step("recruit", ("Ac", "8c"), next_spy="Tc", drawn=("2c", "3c", "4c", "4d"))
    assert game.phase == "act"
    assert game.zones()["draw_discard"] == ("Ac", "8c", "9c")


def test_d9_a_pair_broken_by_the_action_does_not_count() -> None:
    game = position("2c 2d 3h", "5s", spy_deck="6c", draw_deck="3c 3d 4c 4d")
    game.step("counter", ("2c", "3h"), next_spy="6c", drawn=("3c", "3d", "4c", "4d"))
    assert game.phase == "act"
    game = position("2c 2d 3h 4s", "5s", spy_deck="6c", draw_deck="3c 3d 4c 4d")
    game.step("counter", ("3h", "4s"), next_spy="6c", drawn=())
    assert game.phase == "retire"


def test_d9_a_recruit_leads_to_the_retire_phase_too() -> None:
    game = position("2c 2d 9h", "7h", spy_deck="8c", draw_deck="3c 3d 4c 4d")
    game.step("recruit", ("9h",), next_spy="8c", drawn=())
    assert game.phase == "retire"


def test_d9_is_not_offered_before_the_action() -> None:
    assert kinds(position("2c 2d 9h", "7h")) == {"counter", "recruit"}


# D10 Draw and reshuffle


def drawing(draw_deck: str, rules: OracleRules = DEFAULT) -> OracleGame:
    """Counter with 9d keeps 2c 3d 4h, so that two cards are needed."""
    return position(
        "2c 3d 4h 9d", "8c", spy_deck="Tc", draw_deck=draw_deck, draw_discard="5c 6c", rules=rules
    )


def test_d10_kept_cards_stay_and_the_draw_deck_serves_first() -> None:
    game = drawing("2d 3h 4s")
    refuses(game, "counter", "9d", "Tc", "2d 5c")
    refuses(game, "counter", "9d", "Tc", "2d 9d")
    refuses(game, "counter", "9d", "Tc", "2d")
    refuses(game, "counter", "9d", "Tc", "")
    refuses(game, "counter", "9d", "Tc", "2d 3h 4s")
    refuses(game, "counter", "9d", "Tc", "2d 2d")
    refuses(game, "counter", "9d", "Tc", "2d 2h")
    refuses(game, "counter", "9d", "Tc", "2d zz")
    game.step("counter", ("9d",), next_spy="Tc", drawn=("4s", "2d"))
    assert game.zones()["hand"] == ("2c", "2d", "3d", "4h", "4s")
    assert game.zones()["draw_deck"] == ("3h",)
    assert game.zones()["draw_discard"] == ("5c", "6c", "9d")


def test_d10_an_emptied_draw_deck_stays_empty_until_a_card_is_needed() -> None:
    game = drawing("2d 3h")
    game.step("counter", ("9d",), next_spy="Tc", drawn=("2d", "3h"))
    assert game.zones()["draw_deck"] == ()
    assert game.zones()["draw_discard"] == ("5c", "6c", "9d")


def test_d10_reshuffle_in_the_middle_of_a_draw() -> None:
    game = drawing("2d")
    refuses(game, "counter", "9d", "Tc", "5c 6c")  # the last card of the deck comes first
    refuses(game, "counter", "9d", "Tc", "2d")
    refuses(game, "counter", "9d", "Tc", "2d 5c 6c")
    for card in ("5c", "6c", "9d"):  # what was played this turn takes part
        twin = game.copy()
        twin.step("counter", ("9d",), next_spy="Tc", drawn=(card, "2d"))
        assert card in twin.zones()["hand"]
        assert set(twin.zones()["draw_deck"]) == {"5c", "6c", "9d"} - {card}
        assert twin.zones()["draw_discard"] == ()


def test_d10_the_recruited_spy_takes_part_in_the_reshuffle() -> None:
    game = position("2c 3d 4h 9c", "8c", spy_deck="Tc", draw_discard="5c")
    countered = game.copy()
    refuses(countered, "counter", "9c", "Tc", "8c 9c")
    game.step("recruit", ("9c",), next_spy="Tc", drawn=("8c", "9c"))
    assert game.zones()["hand"] == ("2c", "3d", "4h", "8c", "9c")
    assert game.zones()["draw_deck"] == ("5c",)


def test_d10_retired_cards_do_not_come_back() -> None:
    game = position("2c 2d 4h 9d", "8c", spy_deck="Tc", draw_deck="3c", draw_discard="5c")
    game.step("counter", ("9d",), next_spy="Tc", drawn=())
    refuses(game, "retire", "2c 2d", None, "2c 3c 5c 9d")
    game.step("retire", ("2c", "2d"), next_spy=None, drawn=("3c", "5c", "9d"))
    assert game.zones()["hand"] == ("3c", "4h", "5c", "9d")  # short: nothing else is left


def test_d10_eager_switch_reshuffles_right_after_the_draw() -> None:
    game = drawing("2d 3h", EAGER)
    game.step("counter", ("9d",), next_spy="Tc", drawn=("2d", "3h"))
    assert game.zones()["draw_deck"] == ("5c", "6c", "9d")
    assert game.zones()["draw_discard"] == ()


def test_d10_eager_switch_leaves_a_draw_deck_that_has_cards() -> None:
    game = drawing("2d 3h 4s", EAGER)
    game.step("counter", ("9d",), next_spy="Tc", drawn=("2d", "3h"))
    assert game.zones()["draw_deck"] == ("4s",)
    assert game.zones()["draw_discard"] == ("5c", "6c", "9d")


def test_d10_eager_switch_waits_for_the_draw_after_the_retire_phase() -> None:
    game = position("2c 2d 9d", "8c", spy_deck="Tc", draw_discard="5c 6c 7c 7d 7h", rules=EAGER)
    game.step("counter", ("9d",), next_spy="Tc", drawn=())
    assert game.zones()["draw_deck"] == ()
    game.step("pass", (), next_spy=None, drawn=("5c", "6c", "9d"))
    assert game.zones()["draw_deck"] == ("7c", "7d", "7h")


def test_d10_eager_switch_is_not_triggered_by_taking_the_last_ace() -> None:
    game = position(
        "2c 3d",
        "7h",
        spy_deck="Tc",
        draw_deck="Ac",
        draw_discard="4c 4d 4h 4s 5c 6c",
        rules=EAGER,
    )
    # Had the discard been reshuffled when the Ace left, 2c and 3d could not be drawn.
    game.step("assassinate", ("Ac",), next_spy="Tc", drawn=("2c", "3d", "4c", "4d", "4h"))
    assert game.zones()["draw_deck"] == ("4s", "5c", "6c")
    assert game.zones()["draw_discard"] == ()


def test_d10_hand_size_is_the_one_of_the_rules() -> None:
    game = position(
        "4h 9d", "8c", spy_deck="9c", draw_deck="2d 3h 4s 4d", rules=OracleRules(hand_size=3)
    )
    refuses(game, "counter", "9d", "9c", "2d 3h 4s 4d")
    refuses(game, "counter", "9d", "9c", "2d")
    game.step("counter", ("9d",), next_spy="9c", drawn=("3h", "4s"))
    assert game.zones()["hand"] == ("3h", "4h", "4s")


# D11 Both piles empty


def test_d11_play_on_with_a_short_hand() -> None:
    game = position("2d 5c", "5h", spy_deck="6c")
    refuses(game, "counter", "5c", "6c", "")
    game.step("counter", ("5c",), next_spy="6c", drawn=("5c",))
    assert game.zones()["hand"] == ("2d", "5c")
    assert game.zones()["draw_deck"] == ()
    assert game.zones()["draw_discard"] == ()
    assert game.phase == "act"
    assert sets(game, "counter") == card_sets("2d 5c")


def test_d11_nothing_left_at_all_with_no_ace_is_d8() -> None:
    game = position("", "5h", spy_deck="6c", draw_deck="Ah")
    game.step("assassinate", ("Ah",), next_spy="6c", drawn=())
    assert game.outcome == "no_double_agent"


# D12 The end


def last_spy(draw_discard: str, rules: OracleRules = DEFAULT) -> OracleGame:
    """Face the 36th spy, the King of hearts; Kc, Qd, Jc and Jd are held, and what is named."""
    return position("Qd Kc", "Kh", draw_deck="2c Jc Jd", draw_discard=draw_discard, rules=rules)


def test_d12_seven_to_five_is_a_win_and_nothing_is_drawn() -> None:
    game = last_spy("Jh Js Qc")
    refuses(game, "counter", "Kc", None, "2c Jc Jd Kc")
    game.step("counter", ("Kc",), next_spy=None, drawn=())
    assert (game.phase, game.outcome, game.key_spies, game.turns) == ("over", "win", 7, 36)
    assert game.zones()["hand"] == ("Qd",)
    assert game.zones()["spy"] == ()
    assert game.legal_actions() == set()


def test_d12_six_to_six_is_a_loss() -> None:
    game = last_spy("Jh Js")
    game.step("counter", ("Kc",), next_spy=None, drawn=())
    assert (game.outcome, game.key_spies) == ("loss", 6)


def test_d12_key_spies_to_win_of_the_rules() -> None:
    game = last_spy("Jh Js", OracleRules(key_spies_to_win=6))
    game.step("counter", ("Kc",), next_spy=None, drawn=())
    assert (game.outcome, game.key_spies) == ("win", 6)


def test_d12_the_last_spy_recruited_counts() -> None:
    game = position("2h Qh", "Kh", draw_deck="Jc Jd", draw_discard="Jh Js Qc")
    countered = game.copy()
    countered.step("counter", ("2h", "Qh"), next_spy=None, drawn=())
    assert (countered.outcome, countered.key_spies) == ("loss", 6)
    game.step("recruit", ("2h", "Qh"), next_spy=None, drawn=())
    assert (game.outcome, game.key_spies) == ("win", 7)


def test_d12_retiring_after_the_last_spy_and_its_price() -> None:
    game = position("Kc Kd Ks", "Kh", draw_deck="Jc Jd", draw_discard="Jh Js")
    game.step("counter", ("Kc",), next_spy=None, drawn=())
    assert (game.phase, game.outcome, game.key_spies) == ("retire", None, None)
    assert game.zones()["spy"] == ()
    assert game.turns == 36
    retired = game.copy()
    retired.step("retire", ("Kd", "Ks"), next_spy=None, drawn=())
    assert (retired.outcome, retired.key_spies) == ("loss", 5)
    refuses(game, "pass", "", None, "Jc")
    game.step("pass", (), next_spy=None, drawn=())
    assert (game.outcome, game.key_spies) == ("win", 7)


def test_d12_an_assassination_of_the_last_spy() -> None:
    game = position("2c Jc", "Kh", draw_deck="Ac Jd Jh Js", draw_discard="Qc Qd Qh")
    # 2+11 = 13 suffices; with the 2 elsewhere it does not.
    assert kinds(game) == {"counter"}
    game = position("Jc", "Kh", draw_deck="Ac Jd Jh Js", draw_discard="Qc Qd Qh")
    game.step("assassinate", ("Ac",), next_spy=None, drawn=())
    assert (game.outcome, game.key_spies) == ("win", 7)
    assert game.zones()["hand"] == ()
    assert game.zones()["draw_discard"] == ("Jc", "Qc", "Qd", "Qh")


def test_d12_no_reshuffle_after_the_last_spy() -> None:
    game = position("Kc", "Kh", draw_discard="Jc", rules=EAGER)
    game.step("counter", ("Kc",), next_spy=None, drawn=())
    assert game.zones()["draw_deck"] == ()
    assert game.zones()["draw_discard"] == ("Jc", "Kc")


def test_d12_after_the_end_every_action_is_refused() -> None:
    game = last_spy("Jh Js Qc")
    game.step("counter", ("Kc",), next_spy=None, drawn=())
    for kind, cards in (("pass", ()), ("counter", ("Qd",)), ("assassinate", ("Ac",))):
        with pytest.raises(IllegalMove):
            game.step(kind, cards, next_spy=None, drawn=())


# D13 No early end


def test_d13_no_early_win() -> None:
    game = position(
        "Kc 2c", "9h", spy_deck="Kh", draw_deck="2d 2h 3c 3d", draw_discard=ELEVEN_KEY_SPIES[:-9]
    )
    # Held: Kc and Jc Jd Jh Js Qc Qd Qh Qs, nine of twelve.
    assert len(game.zones()["draw_discard"]) == 8
    game.step("counter", ("Kc",), next_spy="Kh", drawn=("2d", "2h", "3c", "3d"))
    # 2+2+2+3+3 = 12 against 13 without an Ace: D8 even so.
    assert game.outcome == "no_double_agent"
    game = position(
        "Kc 2c", "9h", spy_deck="Kh", draw_deck="2d 2h 3c 4d", draw_discard=ELEVEN_KEY_SPIES[:-9]
    )
    game.step("counter", ("Kc",), next_spy="Kh", drawn=("2d", "2h", "3c", "4d"))
    assert (game.phase, game.outcome, game.key_spies) == ("act", None, None)


def test_d13_no_early_loss() -> None:
    # Eleven Key Spies are in the Spy Discard: the win is out of reach, the game goes on.
    game = position("2c 9c", "9h", spy_deck="Kh", draw_deck="2d 4h 4c 4d")
    game.step("counter", ("9c",), next_spy="Kh", drawn=("2d", "4h", "4c", "4d"))
    assert (game.phase, game.outcome) == ("act", None)
    game.step("counter", ("2c", "4c", "4d", "4h"), next_spy=None, drawn=())
    assert (game.outcome, game.key_spies) == ("loss", 0)


# D14 What is known


def test_d14_zones_show_content_and_no_order() -> None:
    first = position("2c 9c", "9h", spy_deck="Kh Tc", draw_deck="4d 2d 4c 4h")
    second = position("9c 2c", "9h", spy_deck="Tc Kh", draw_deck="4h 4c 4d 2d")
    assert first.zones() == second.zones()
    assert first.zones()["draw_deck"] == ("2d", "4c", "4d", "4h")
    assert set(first.zones()) == ZONE_NAMES


def test_d14_any_unseen_spy_of_the_lowest_tier_may_come_next() -> None:
    drawn = ("2d", "4c", "4d", "4h")
    game = position("2c 9c", "5h", spy_deck="Kh 5c 7d 8d Tc", draw_deck="2d 4c 4d 4h")
    for spy in ("5c", "7d"):
        twin = game.copy()
        twin.step("counter", ("9c",), next_spy=spy, drawn=drawn)
        assert twin.zones()["spy"] == (spy,)
    for spy in ("8d", "Tc", "Kh", "5h", "6c", "2d", "nonsense"):
        refuses(game, "counter", "9c", spy, " ".join(drawn))
    refuses(game, "counter", "9c", None, " ".join(drawn))


def test_d14_the_tiers_follow_one_another() -> None:
    drawn = "2d 4c 4d 4h"
    game = position("2c 9c", "7h", spy_deck="Kh Jc 8d Tc", draw_deck=drawn)
    refuses(game, "counter", "9c", "Jc", drawn)
    game.copy().step("counter", ("9c",), next_spy="Tc", drawn=drawn.split())
    game.copy().step("counter", ("9c",), next_spy="8d", drawn=drawn.split())
    game = position("2c 9c", "8h", spy_deck="Kh Jc", draw_deck=drawn)
    game.copy().step("counter", ("9c",), next_spy="Jc", drawn=drawn.split())
    game.copy().step("counter", ("9c",), next_spy="Kh", drawn=drawn.split())


def test_d14_random_chance_reaches_every_outcome() -> None:
    game = position("2c 3d 4c 9c", "5h", spy_deck="Kh 5c 7d", draw_deck="2d 4d 4h")
    seen: set[tuple[str | None, Cards]] = set()
    rng = random.Random(1)
    for _ in range(200):
        seen.add(game.copy().step_random("counter", ("9c",), rng))
    pairs = [("2d", "4d"), ("2d", "4h"), ("4d", "4h")]
    assert seen == set(itertools.product(("5c", "7d"), pairs))


# Positions and refusals


def test_deal_is_the_standard_start() -> None:
    game = OracleGame.deal(DEFAULT, ("2c", "As", "4d", "3h", "3s"), "7h")
    zones = game.zones()
    assert zones["hand"] == ("As", "2c", "3h", "3s", "4d")
    assert zones["spy"] == ("7h",)
    assert zones["draw_deck"] == (
        *("Ac", "Ad", "Ah"),
        *("2d", "2h", "2s", "3c", "3d"),
        *("4c", "4h", "4s"),
    )
    assert len(zones["spy_deck"]) == 35
    assert zones["draw_discard"] == zones["spy_discard"] == zones["removed"] == ()
    assert (game.phase, game.outcome, game.turns) == ("act", None, 0)
    # Against 7: 3+4 twice, else without a 3+4 in the set: 2+3+3 = 8, A+3+3 = 7, A+2+4 = 7.
    assert sets(game, "counter") == card_sets("3h 4d", "3s 4d", "2c 3h 3s", "As 3h 3s", "As 2c 4d")
    assert sets(game, "recruit") == set()


@pytest.mark.parametrize(
    ("hand", "spy"),
    [
        ("2c As 4d 3h", "7h"),
        ("2c As 4d 3h 3s 2d", "7h"),
        ("2c As 4d 3h 5s", "7h"),
        ("2c As 4d 3h 3h", "7h"),
        ("2c As 4d 3h 3s", "8h"),
        ("2c As 4d 3h 3s", "4h"),
    ],
)
def test_deal_refuses_what_is_no_start(hand: str, spy: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        OracleGame.deal(DEFAULT, hand.split(), spy)


def test_zones_aces_named_nowhere_are_removed() -> None:
    game = position("Ac 9c", "9h", spy_discard="Ad")
    assert game.zones()["removed"] == ("Ah", "As")
    assert game.zones()["draw_deck"] == ()


def full_zones() -> dict[str, Cards]:
    return position("2c 9c", "9h", spy_deck="Kh", draw_deck="2d 4h 4c 4d").zones()


def test_zones_round_trip() -> None:
    assert OracleGame(DEFAULT, full_zones()).zones() == full_zones()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hand": "9c"}, "2c is missing"),
        ({"hand": "2c 9c 9c"}, "9c is named more than once"),
        ({"draw_discard": "9h"}, "9h is named more than once"),
        ({"hand": "9c", "removed": "2c"}, "2c cannot be removed"),
        ({"hand": "9c", "spy_deck": "Kh 2c"}, "2c is no spy"),
        ({"hand": "9c", "spy": "2c", "draw_discard": "9h"}, "2c is no spy"),
        ({"spy": "9h Kh", "spy_deck": ""}, "more than one spy"),
        ({"spy": "", "spy_deck": "Kh 9h"}, "no top card"),
        ({"hand": "2c 2d 4c 4d 4h 9c", "draw_deck": ""}, "more than 5 cards"),
        ({"hand": "9x"}, "not a card: '9x'"),
        ({"deck": ""}, "unknown zone: 'deck'"),
        ({"hand": "2c", "draw_discard": "9c"}, "no legal action"),
        ({"spy": "", "spy_deck": "", "draw_discard": "9h Kh"}, "no legal action"),
    ],
)
def test_zones_that_are_no_position_are_refused(changes: dict[str, str], message: str) -> None:
    zones = full_zones() | {name: tuple(cards.split()) for name, cards in changes.items()}
    if "removed" not in changes:
        del zones["removed"]
    with pytest.raises(ValueError, match=message):
        OracleGame(DEFAULT, zones)


def test_zones_in_the_retire_phase_need_a_pair() -> None:
    game = position("2c 2d", "9h", phase="retire")
    assert game.legal_actions() == {("retire", ("2c", "2d")), ("pass", ())}
    after_the_last = position("2c 2d", phase="retire")
    after_the_last.step("pass", (), next_spy=None, drawn=())
    assert after_the_last.outcome == "loss"
    with pytest.raises(ValueError, match="pair"):
        position("2c 3d", "9h", phase="retire")
    with pytest.raises(ValueError, match="phase"):
        position("2c 2d", "9h", phase="over")


@pytest.mark.parametrize(
    ("kind", "cards"),
    [
        ("counter", "2c"),
        ("counter", "2c 9c"),
        ("counter", ""),
        ("counter", "9d"),
        ("counter", "9z"),
        ("counter", "9c 9c"),
        ("recruit", "9c"),
        ("assassinate", "Ac"),
        ("assassinate", ""),
        ("retire", "2c 9c"),
        ("pass", ""),
        ("dance", "9c"),
    ],
)
def test_an_illegal_move_changes_nothing(kind: str, cards: str) -> None:
    game = position("2c 9c", "9h", spy_deck="Kh", draw_deck="Ac 2d 4c 4d 4h")
    before = game.zones()
    with pytest.raises(IllegalMove):
        game.step(kind, cards.split(), next_spy="Kh", drawn=("2d", "4c", "4d", "4h"))
    with pytest.raises(IllegalMove):
        game.step_random(kind, cards.split(), random.Random(0))
    assert game.zones() == before
    assert game.legal_actions() == {("counter", ("9c",))}


def test_copies_are_independent() -> None:
    game = position("2c 9c", "9h", spy_deck="Kh", draw_deck="2d 4c 4d 4h")
    before = game.zones()
    twin = game.copy()
    twin.step("counter", ("9c",), next_spy="Kh", drawn=("2d", "4c", "4d", "4h"))
    assert game.zones() == before
    assert twin.zones() != before


# Random games


def random_start(rules: OracleRules, rng: random.Random) -> OracleGame:
    """Deal a standard start at random."""
    low_cards = [str(card) for card in ALL_CARDS if card.rank in "A234"]
    first_spies = [str(card) for card in ALL_CARDS if card.rank in "567"]
    return OracleGame.deal(rules, rng.sample(low_cards, rules.hand_size), rng.choice(first_spies))


def check_position(game: OracleGame) -> None:
    """Check what holds in every position that play can reach."""
    zones = game.zones()
    assert set(zones) == ZONE_NAMES
    everything = list(itertools.chain.from_iterable(zones.values()))
    assert len(everything) == 52
    assert set(everything) == {str(card) for card in ALL_CARDS}
    assert all(card[0] == "A" for card in zones["removed"])
    assert len(zones["spy"]) <= 1
    assert zones["spy"] or not zones["spy_deck"]
    assert game.turns == 36 - len(zones["spy"]) - len(zones["spy_deck"])

    legal = game.legal_actions()
    legal_kinds = {kind for kind, _ in legal}
    spy_value = sum(parse(text).value for text in zones["spy"])
    assert (game.phase == "over") == (game.outcome is not None) == (not legal)
    hand_total = sum(parse(text).value for text in zones["hand"])
    if game.phase == "act":
        short = len(zones["hand"]) < game.rules.hand_size
        assert not short or not zones["draw_deck"] + zones["draw_discard"]
        if hand_total >= spy_value:
            assert legal_kinds in ({"counter"}, {"counter", "recruit"})
        else:
            assert legal_kinds == {"assassinate"}
        if game.rules.eager_reshuffle:
            assert zones["draw_deck"] or not zones["draw_discard"]
    elif game.phase == "retire":
        assert legal_kinds == {"retire", "pass"}
    elif game.outcome == "no_double_agent":
        own = zones["hand"] + zones["draw_deck"] + zones["draw_discard"]
        assert not any(card[0] == "A" for card in own)
        assert hand_total < spy_value
        assert game.key_spies == 0
    else:
        assert game.turns == 36
        lost = [card for card in zones["spy_discard"] if card[0] in "JQK"]
        assert game.key_spies == 12 - len(lost)
        assert game.outcome == ("win" if 12 - len(lost) > len(lost) else "loss")


@pytest.mark.parametrize(
    "rules",
    [
        DEFAULT,
        STRICT_ACE,
        EAGER,
        OracleRules(idle_ace=False, eager_reshuffle=True),
        OracleRules(hand_size=3),
        OracleRules(hand_size=6),
    ],
    ids=["default", "strict_ace", "eager", "both", "three", "six"],
)
def test_random_games_keep_all_52_cards_and_always_go_on(rules: OracleRules) -> None:
    rng = random.Random(20)
    outcomes: set[str | None] = set()
    for _ in range(34):
        game = random_start(rules, rng)
        follower = game.copy()
        check_position(game)
        decisions = 0
        while game.phase != "over":
            kind, cards = rng.choice(sorted(game.legal_actions()))
            turns = game.turns
            next_spy, drawn = game.step_random(kind, cards, rng)
            decisions += 1
            check_position(game)
            assert game.turns == turns + (kind not in ("retire", "pass"))
            assert (next_spy is not None) == (
                kind not in ("retire", "pass") and bool(game.zones()["spy"])
            )
            # The same step dictated, in another order, leads to the same position.
            follower.step(kind, cards[::-1], next_spy=next_spy, drawn=drawn[::-1])
            assert follower.zones() == game.zones()
            assert (follower.phase, follower.outcome) == (game.phase, game.outcome)
        assert decisions <= 72
        outcomes.add(game.outcome)
    assert "no_double_agent" in outcomes


def test_suits_are_symmetric() -> None:
    rng = random.Random(4)

    def relabel(text: str, suits: dict[str, str]) -> str:
        return text[0] + suits[text[1]]

    for permuted in itertools.permutations("cdhs"):
        suits = dict(zip("cdhs", permuted, strict=True))
        game = random_start(DEFAULT, rng)
        for _ in range(8):
            if game.phase == "over":
                break
            zones = {
                name: [relabel(card, suits) for card in cards]
                for name, cards in game.zones().items()
            }
            twin = OracleGame(DEFAULT, zones, game.phase)
            expected = {
                (kind, frozenset(relabel(card, suits) for card in cards))
                for kind, cards in game.legal_actions()
            }
            assert {(kind, frozenset(cards)) for kind, cards in twin.legal_actions()} == expected
            game.step_random(*rng.choice(sorted(game.legal_actions())), rng)
