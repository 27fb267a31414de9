"""The rules by example, through the public environment, each with the near miss that is refused.

First the worked examples that the published rules give, then the rulings D1 to D14 of
``docs/rules.md`` in their order. Cards that a position does not name lie in the Spy Discard; Aces
that it does not name have left the game.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import SUITS, completed, legal_actions, new_env, position, sets_of, total

from deck_of_spies_env import IllegalActionError
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv


def play(env: DeckOfSpiesEnv, kind: str, cards: str = "") -> dict[str, Any]:
    """Take an action that must be legal; the info after it."""
    index = env.encode(kind, cards.split())
    assert env.action_masks()[index], f"{kind} {cards} should be legal"
    _, _, terminated, truncated, info = env.step(index)
    assert not truncated
    assert terminated == (env.phase == "over")
    return info


def is_legal(env: DeckOfSpiesEnv, kind: str, cards: str = "") -> bool:
    """Whether the mask allows an action."""
    return bool(env.action_masks()[env.encode(kind, cards.split())])


def refuses(env: DeckOfSpiesEnv, kind: str, cards: str = "", because: str = "") -> None:
    """The action is masked, raises for the stated ruling, and changes nothing."""
    index = env.encode(kind, cards.split())
    assert not env.action_masks()[index], f"{kind} {cards} should be illegal"
    zones, phase, masks, state = env.zones(), env.phase, env.action_masks(), env.get_state()
    with pytest.raises(IllegalActionError, match=because) as caught:
        env.step(index)
    assert str(index) in str(caught.value)
    for card in cards.split():
        assert card in str(caught.value)
    assert env.zones() == zones
    assert env.phase == phase
    assert np.array_equal(env.action_masks(), masks)
    assert env.get_state() == state


def has_no_such_action(env: DeckOfSpiesEnv, kind: str, cards: str) -> None:
    """Not even the table has the action: it can't be named with the present hand."""
    zones = env.zones()
    with pytest.raises(ValueError, match=r"hand|retiring|Ace"):
        env.encode(kind, cards.split())
    assert env.zones() == zones


def zone(env: DeckOfSpiesEnv, name: str) -> set[str]:
    """The cards of a zone."""
    return set(env.zones()[name])


def cards(text: str) -> set[str]:
    """A set of cards written as one text."""
    return set(text.split())


# --- Setup ----------------------------------------------------------------------------------------


def test_setup_splits_the_pack_into_two_decks() -> None:
    """Sixteen Aces to 4s are the player's, the 36 from 5 up are spies, a 5, 6 or 7 first."""
    env = new_env()
    for seed in range(20):
        env.reset(seed=seed)
        zones = env.zones()
        assert {name: len(held) for name, held in zones.items()} == {
            "hand": 5,
            "draw_deck": 11,
            "draw_discard": 0,
            "spy": 1,
            "spy_deck": 35,
            "spy_discard": 0,
            "removed": 0,
        }
        assert {card[0] for card in zones["hand"] + zones["draw_deck"]} == set("A234")
        assert zones["spy"][0][0] in "567"
        assert env.phase == "act"


def test_spies_come_in_rising_tiers() -> None:
    """The 5-7s are faced first, then the 8-10s, then the Jacks to Kings."""
    env = position("Tc Th Kd Ks Qc", "5c", spy_deck="6c 7c 8c 9c Jc Qd Kc", draw_deck="Ac Ad Ah As")
    faced = [env.zones()["spy"][0]]
    while env.phase != "over":
        _, action = min(legal_actions(env).items())
        turns_left = len(env.zones()["spy_deck"])
        env.step(action)
        if len(env.zones()["spy_deck"]) < turns_left:
            faced += env.zones()["spy"]
    tiers = ["567" if card[0] in "567" else "89T" if card[0] in "89T" else "JQK" for card in faced]
    assert tiers == ["567"] * 3 + ["89T"] * 2 + ["JQK"] * 3


# --- Examples of the published rules --------------------------------------------------------------


def test_example_ways_to_counter_a_5() -> None:
    """A 2 and a 3, an Ace and a 4, or a 7 counter a 5."""
    env = position("Ac 2d 3h 4s 7c", "5d", spy_deck="6c")
    assert sets_of(env, "counter") == {"2d 3h", "Ac 4s", "2d 4s", "3h 4s", "7c"}
    refuses(env, "counter", "Ac 3h", because="D1")
    refuses(env, "counter", "Ac 2d", because="D1")


def test_example_no_extra_2_with_a_3_and_a_4_against_a_5() -> None:
    """A 3 and a 4 may be used where a 3 and a 2 would do, but the 2 can't be thrown in."""
    env = position("2c 3d 4h", "5s", spy_deck="6c")
    refuses(env, "counter", "2c 3d 4h", because="2c is spare")
    assert is_legal(env, "counter", "2c 3d")
    play(env, "counter", "3d 4h")
    assert zone(env, "spy") == {"6c"}


def test_example_countered_spy_and_cards_used() -> None:
    """The spy goes to the Spy Discard, the cards used to the Draw Discard."""
    env = position("2c 3d 9h", "5s", spy_deck="6c", draw_deck="Ac Ad Ah 4c")
    before = zone(env, "spy_discard")
    play(env, "counter", "2c 3d")
    assert zone(env, "spy_discard") - before == {"5s"}
    assert zone(env, "draw_discard") == {"2c", "3d"}


def test_example_recruit_7h_with_3h_and_5h() -> None:
    """Two hearts recruit the 7 of hearts; all three cards are then in the Draw Discard."""
    env = position("3h 5h 5c Kd", "7h", spy_deck="8c", draw_deck="Ac Ad Ah As")
    refuses(env, "recruit", "3h 5c", because="D2")
    refuses(env, "recruit", "Kd", because="D2")
    play(env, "recruit", "5h 3h")
    assert zone(env, "draw_discard") == cards("3h 5h 7h")
    assert "7h" not in zone(env, "spy_discard")


def test_example_recruit_9c_with_the_ace_of_clubs() -> None:
    """With the Ace of clubs any cards that make up 9 with it recruit the 9 of clubs."""
    env = position("Ac 3d 4c 5h 8s", "9c", spy_deck="Tc", draw_deck="2c 2d 2h 2s")
    assert sets_of(env, "recruit") == {"Ac 8s", "Ac 3d 5h", "Ac 4c 5h", "Ac 3d 8s", "Ac 4c 8s"} - {
        "Ac 3d 8s",  # 12 in all, and 9 without the 3
        "Ac 4c 8s",  # 13 in all, and 9 without the 4
    }
    refuses(env, "recruit", "Ac 3d 8s", because="3d is spare")
    refuses(env, "recruit", "Ac 4c", because="D1")
    refuses(env, "recruit", "4c 5h", because="D2")
    play(env, "recruit", "5h 4c Ac")
    assert zone(env, "draw_discard") == cards("Ac 4c 5h 9c")


def test_example_the_ace_of_another_suit_changes_nothing() -> None:
    """Only an Ace of the spy's own suit makes other cards count as that suit."""
    env = position("Ad 3d 4c 5h 8s", "9c", spy_deck="Tc")
    assert sets_of(env, "recruit") == set()
    refuses(env, "recruit", "Ad 8s", because="D2")
    assert is_legal(env, "counter", "Ad 8s")


def test_example_the_ace_may_come_along_without_need_for_its_value() -> None:
    """The Ace may be added for its suit though the others make up the value."""
    env = position("Ac 4d 5h 6s 7s", "9c", spy_deck="Tc", draw_deck="2c 2d 2h 2s")
    refuses(env, "counter", "Ac 4d 5h", because="Ac is spare")
    assert is_legal(env, "counter", "4d 5h")
    play(env, "recruit", "Ac 4d 5h")
    assert zone(env, "draw_discard") == cards("Ac 4d 5h 9c")


@pytest.mark.parametrize("retired", ["2c 2h", "2c 2s", "2h 2s", "2c 2h 2s"])
def test_example_retire_two_or_three_2s(retired: str) -> None:
    """After countering with the 9, two of the 2s or all three may be retired."""
    env = position("2c 2h 2s 3s 9d", "8c", spy_deck="9c", draw_deck="Ac Ad Ah As 4c 4d")
    refuses(env, "retire", "2c 2h", because="act")
    before = zone(env, "spy_discard")
    play(env, "counter", "9d")
    assert env.phase == "retire"
    assert sets_of(env, "retire") == {"2c 2h", "2c 2s", "2h 2s", "2c 2h 2s"}
    refuses(env, "retire", "2c 3s", because="D9")
    refuses(env, "retire", "2c 2h 2s 3s", because="D9")
    has_no_such_action(env, "retire", "2c")
    play(env, "retire", retired)
    assert zone(env, "spy_discard") - before == cards(retired) | {"8c"}
    assert len(zone(env, "hand")) == 5


def test_example_retire_only_once_a_turn() -> None:
    """One set may be retired on a turn, and only with a counter or a recruit."""
    env = position("2c 2h 3c 3h 9d", "8c", spy_deck="9c Tc", draw_deck="Kc Kd Kh Ks Qc Qd")
    refuses(env, "retire", "2c 2h", because="act")
    play(env, "counter", "9d")
    play(env, "retire", "2c 2h")
    assert env.phase == "act"
    refuses(env, "retire", "3c 3h", because="act")


def test_example_kept_cards_stay_and_the_hand_is_refilled() -> None:
    """What was not played stays in hand, and cards are drawn until there are five."""
    env = position("2c 3d 9h Ks", "5s", spy_deck="6c", draw_deck="4c 4d 4h 4s")
    play(env, "counter", "2c 3d")
    assert cards("9h Ks") < zone(env, "hand")
    assert len(zone(env, "hand")) == 5
    assert len(zone(env, "draw_deck")) == 1


def test_example_assassinate_when_the_hand_falls_short() -> None:
    """An Ace leaves the game, the spy goes to the Spy Discard, the hand to the Draw Discard."""
    env = position(
        "2c 2d 3c 3d", "Kh", spy_deck="Kd", draw_deck="4c 4d 4h 4s 5c As", draw_discard="6c"
    )
    refuses(env, "counter", "2c 2d 3c 3d", because="D7")
    refuses(env, "assassinate", "Ah", because="D7")
    before = zone(env, "spy_discard")
    play(env, "assassinate", "As")
    assert "As" in zone(env, "removed")
    assert zone(env, "spy_discard") - before == {"Kh"}
    assert zone(env, "draw_discard") == cards("2c 2d 3c 3d 6c")
    assert zone(env, "hand") == cards("4c 4d 4h 4s 5c")
    assert env.phase == "act"


def test_example_no_ace_left_to_assassinate_with_loses() -> None:
    """Without an Ace a hand that falls short loses at once."""
    env = position("9d 2c", "8c", spy_deck="Kc", draw_deck="2d 2h 3c 3d")
    info = play(env, "counter", "9d")
    assert total(env.zones()["hand"]) == 12
    assert env.phase == "over"
    assert info["outcome"] == "no_double_agent"


def test_example_more_than_half_of_the_key_spies_win() -> None:
    """Hand, Draw Deck and Draw Discard are counted against the Spy Discard; 7 to 5 wins."""
    env = position(
        "Jc Kc", "Kd", draw_deck="Jd Jh Qc", draw_discard="Qd Qh Ac", spy_discard="Js Qs Kh Ks"
    )
    info = play(env, "counter", "Kc")
    # Owned: Jc and Kc, Jd Jh Qc, Qd Qh, seven of twelve; Kd has gone to the others.
    assert (info["outcome"], info["key_spies"], info["turns"]) == ("win", 7, 36)


def test_example_half_of_the_key_spies_is_a_loss() -> None:
    """As before, but the Queen of hearts lies in the Spy Discard: 6 to 6."""
    env = position("Jc Kc", "Kd", draw_deck="Jd Jh Qc", draw_discard="Qd Ac")
    info = play(env, "counter", "Kc")
    assert (info["outcome"], info["key_spies"], info["turns"]) == ("loss", 6, 36)


def test_example_a_retired_key_spy_counts_against_you() -> None:
    """Seven Key Spies owned, two of them retired at the very end."""
    env = position("Jc Jd Kc", "Kd", draw_deck="Jh Qc Qd Qh")
    play(env, "counter", "Kc")
    assert env.phase == "retire"
    assert env.zones()["spy"] == ()
    info = play(env, "retire", "Jc Jd")
    assert (info["outcome"], info["key_spies"]) == ("loss", 5)


# --- D1 to D5: what may be played -----------------------------------------------------------------

PLAYS = [
    # ruling, hand, spy, kind, cards, why it is illegal (None: legal), rules
    ("D1 exact", "2c 3d 4s 4h 9c", "7h", "counter", "3d 4s", None, {}),
    ("D1 wasteful", "2c 3d 4s 4h 9c", "7h", "counter", "4s 4h", None, {}),
    ("D1 one card", "2c 3d 4s 4h 9c", "7h", "counter", "9c", None, {}),
    ("D1 short", "2c 3d 4s 4h 9c", "7h", "counter", "2c 3d", "D1", {}),
    ("D1 spare", "2c 3d 4s 4h 9c", "7h", "counter", "2c 3d 4s", "2c is spare", {}),
    ("D1 spare of equals", "2c 3d 4s 4h 9c", "7h", "counter", "2c 4s 4h", "2c is spare", {}),
    ("D1 spare and high", "2c 3d 4s 4h 9c", "7h", "counter", "2c 9c", "2c is spare", {}),
    ("D1 2+5 on a 5", "2c 5d", "5h", "counter", "2c 5d", "2c is spare", {}),
    ("D1 5 on a 5", "2c 5d", "5h", "counter", "5d", None, {}),
    ("D1 two alike", "5c 5d", "5h", "counter", "5c 5d", "is spare", {}),
    ("D1 all five", "2c 2d 2h 3c 4d", "Ks", "counter", "2c 2d 2h 3c 4d", None, {}),
    ("D1 four of five", "2c 2d 2h 3c 4d", "Ks", "counter", "2d 2h 3c 4d", "D1", {}),
    ("D1 king on a king", "Ac Kc", "Kd", "counter", "Kc", None, {}),
    ("D1 queen on a king", "Ac Qc", "Kd", "counter", "Qc", "D1", {}),
    ("D1 queen and ace", "Ac Qc", "Kd", "counter", "Ac Qc", None, {}),
    ("D2 in suit", "2d 6d 3s 5h Kc", "8d", "recruit", "2d 6d", None, {}),
    ("D2 off suit", "2d 6d 3s 5h Kc", "8d", "recruit", "6d 3s", "D2", {}),
    ("D2 off suit counters", "2d 6d 3s 5h Kc", "8d", "counter", "6d 3s", None, {}),
    ("D2 high off suit", "2d 6d 3s 5h Kc", "8d", "recruit", "Kc", "D2", {}),
    ("D2 short in suit", "2d 6d 3s 5h Kc", "8d", "recruit", "6d", "D1", {}),
    ("D2 spare in suit", "2d 3d 8d", "9d", "recruit", "2d 3d 8d", "spare", {}),
    ("D2 converted", "Ad 2c 5h As Tc", "8d", "recruit", "Ad 2c 5h", None, {}),
    ("D2 wrong Ace", "Ad 2c 5h As Tc", "8d", "recruit", "As 2c 5h", "D2", {}),
    ("D2 wrong Ace counters", "Ad 2c 5h As Tc", "8d", "counter", "As 2c 5h", None, {}),
    ("D3 point needed", "As 2c 5h 6d Tc", "Js", "recruit", "As Tc", None, {}),
    ("D3 Ace alone spare", "As 2c 5h 6d Tc", "Js", "recruit", "As 5h 6d", None, {}),
    ("D3 not in a counter", "As 2c 5h 6d Tc", "Js", "counter", "As 5h 6d", "As is spare", {}),
    ("D3 its point counts", "As 2c 5h 6d Tc", "Js", "recruit", "As 2c Tc", "2c is spare", {}),
    ("D3 without it good", "As 2c 5h 6d Tc", "Js", "counter", "2c Tc", None, {}),
    ("D3 high spare", "As 2c 5h 6d Tc", "Js", "recruit", "As 5h Tc", "5h is spare", {}),
    ("D3 short", "As 2c 5h 6d Tc", "Js", "recruit", "As 2c 6d", "D1", {}),
    ("D3 8 and Ace", "Ac 2h 8d 9d", "9c", "recruit", "Ac 8d", None, {}),
    ("D3 8, Ace and 2", "Ac 2h 8d 9d", "9c", "recruit", "Ac 2h 8d", "2h is spare", {}),
    ("D3 9 and Ace", "Ac 2h 8d 9d", "9c", "recruit", "Ac 9d", None, {}),
    ("D3 9 without Ace", "Ac 2h 8d 9d", "9c", "recruit", "9d", "D2", {}),
    ("D3 the Ace alone", "Ac 2h 8d 9d", "9c", "recruit", "Ac", "D1", {}),
    ("D4 idle", "Ah 2h 3h 4h 5c", "7h", "recruit", "Ah 3h 4h", None, {}),
    ("D4 idle, off", "Ah 2h 3h 4h 5c", "7h", "recruit", "Ah 3h 4h", "D4", {"idle_ace": False}),
    ("D4 no Ace, off", "Ah 2h 3h 4h 5c", "7h", "recruit", "3h 4h", None, {"idle_ace": False}),
    ("D4 needed, off", "Ah 2h 3h 4h 5c", "7h", "recruit", "Ah 2h 4h", None, {"idle_ace": False}),
    ("D4 converts, off", "Ah 2h 3h 4h 5c", "7h", "recruit", "Ah 2h 5c", None, {"idle_ace": False}),
    ("D4 converts one, off", "Ah 3h 7c", "7h", "recruit", "Ah 7c", None, {"idle_ace": False}),
    ("D4 one card, off", "Ah 8h", "7h", "recruit", "Ah 8h", "D4", {"idle_ace": False}),
    ("D4 one card", "Ah 8h", "7h", "recruit", "Ah 8h", None, {}),
    ("D4 spare", "Ah 2h 3h 4h 5c", "7h", "recruit", "Ah 2h 3h 4h", "2h is spare", {}),
    (
        "D4 spare, off",
        "Ah 2h 3h 4h 5c",
        "7h",
        "recruit",
        "Ah 2h 3h 4h",
        "spare",
        {"idle_ace": False},
    ),
    ("D5 plain in a counter", "Ac As 2d 7h 8s", "9s", "counter", "Ac 8s", None, {}),
    ("D5 converts nothing", "Ac As 2d 7h 8s", "9s", "recruit", "Ac 8s", "D2", {}),
    ("D5 is converted", "Ac As 2d 7h 8s", "9s", "recruit", "Ac As 7h", None, {}),
    ("D5 is not exempt", "Ac As 2d 7h 8s", "9s", "recruit", "Ac As 8s", "Ac is spare", {}),
    ("D5 beside the right one", "Ac As 2d 7h 8s", "9s", "recruit", "As 2d 7h", None, {}),
    ("D5 the right one is plain", "Ac As 2d 7h 8s", "9s", "counter", "As 2d 7h", "As is spare", {}),
    ("D5 the right one counters", "Ac As 2d 7h 8s", "9s", "counter", "As 8s", None, {}),
]


@pytest.mark.parametrize(
    ("hand", "spy", "kind", "chosen", "because", "rules"),
    [play[1:] for play in PLAYS],
    ids=[play[0].replace(" ", "-") for play in PLAYS],
)
def test_plays(
    hand: str, spy: str, kind: str, chosen: str, because: str | None, rules: dict[str, Any]
) -> None:
    """D1 to D5: one set of cards against one spy, legal or refused for the stated reason."""
    env = position(hand, spy, spy_deck="Kh", draw_deck="Jc Jd Jh Qh Qs", **rules)
    if because is not None:
        refuses(env, kind, chosen, because)
        return
    play(env, kind, chosen)
    assert cards(chosen) <= zone(env, "draw_discard")
    assert (spy in zone(env, "draw_discard")) == (kind == "recruit")
    assert (spy in zone(env, "spy_discard")) == (kind == "counter")


def test_d2_an_ace_of_the_suit_alone_is_no_recruit_of_the_rest() -> None:
    """The Ace converts what is played with it, not what another play uses."""
    env = position("Ad 3c 5h", "8d", spy_deck="9c")
    refuses(env, "recruit", "3c 5h", because="D2")
    play(env, "recruit", "Ad 3c 5h")


# --- D6: where the cards go -----------------------------------------------------------------------


def test_d6_one_set_as_counter_and_as_recruit() -> None:
    """The same cards, the spy to the Spy Discard or to the Draw Discard."""
    for kind, spy_discard, draw_discard in (
        ("counter", {"6c"}, cards("2c 4c")),
        ("recruit", set(), cards("2c 4c 6c")),
    ):
        env = position("2c 3d 3h 4c Ks", "6c", spy_deck="7c", draw_deck="Ac Ad Ah")
        before = zone(env, "spy_discard")
        play(env, kind, "4c 2c")
        assert env.phase == "retire"
        assert zone(env, "spy_discard") - before == spy_discard
        assert zone(env, "draw_discard") == draw_discard
        # The spy just recruited is not in hand, so it can't be played or kept there.
        assert zone(env, "hand") == cards("3d 3h Ks")
        has_no_such_action(env, "counter", "6c")


def test_d6_afterstate_is_what_is_certain() -> None:
    """Before chance: the spy is dealt with, the next one not yet turned up, nothing drawn."""
    env = position("2c 3d 4c", "6c", spy_deck="7c 8c", draw_deck="Ac Ad Ah")
    zones = env.afterstate(env.encode("recruit", ["2c", "4c"]))
    assert zones["hand"] == ("3d",)
    assert zones["draw_discard"] == ("2c", "4c", "6c")
    assert zones["spy"] == ()
    assert zones["spy_deck"] == ("7c", "8c")
    assert zones["draw_deck"] == ("Ac", "Ad", "Ah")
    assert env.zones()["hand"] == ("2c", "3d", "4c")
    with pytest.raises(IllegalActionError, match="D2"):
        env.afterstate(env.encode("recruit", ["3d", "4c"]))


# --- D7, D8: assassinate --------------------------------------------------------------------------


def _eleven_against_a_queen() -> DeckOfSpiesEnv:
    return position(
        "Ac 2h 2s 3c 3d", "Qd", spy_deck="Kd Kh", draw_deck="Ah 4c", draw_discard="Ad 4d 4h 4s"
    )


@pytest.mark.parametrize("ace", ["Ac", "Ah", "Ad"])
def test_d7_any_ace_that_is_left(ace: str) -> None:
    """From the hand, the Draw Deck or the Draw Discard; then a fresh hand of five."""
    env = _eleven_against_a_queen()
    assert set(legal_actions(env)) == {("assassinate", (own,)) for own in ("Ac", "Ah", "Ad")}
    certain = env.afterstate(env.encode("assassinate", [ace]))
    discarded = cards("Ac 2h 2s 3c 3d Ad 4d 4h 4s") - {ace}
    assert set(certain["draw_discard"]) == discarded
    assert set(certain["draw_deck"]) == cards("Ah 4c") - {ace}
    assert certain["hand"] == ()
    before = zone(env, "spy_discard")
    play(env, "assassinate", ace)
    assert ace in zone(env, "removed")
    assert zone(env, "spy_discard") - before == {"Qd"}
    assert len(zone(env, "hand")) == 5
    # What was in the Draw Deck is drawn first, then the Draw Discard is shuffled (D10).
    assert cards("Ah 4c") - {ace} <= zone(env, "hand")
    assert zone(env, "draw_discard") == set()


def test_d7_an_ace_that_is_gone_can_not_be_given_up() -> None:
    """Removed from the game or retired to the Spy Discard, an Ace is out of reach."""
    env = _eleven_against_a_queen()
    refuses(env, "assassinate", "As", because="D7")
    env = position("Ac 2h", "Qd", spy_deck="Kd", draw_deck="3c", spy_discard="As")
    assert "As" in zone(env, "spy_discard")
    refuses(env, "assassinate", "As", because="D7")
    has_no_such_action(env, "assassinate", "2h")


def test_d7_no_retiring_on_the_turn_of_an_assassination() -> None:
    """The pairs in hand go to the Draw Discard, and the next turn begins at once."""
    env = position(
        "Ac 2h 2s 3c 3d", "Qd", spy_deck="Kd Kh", draw_deck="9c 9d 9h 9s Tc", draw_discard="Ad"
    )
    before = zone(env, "spy_discard")
    refuses(env, "retire", "2h 2s", because="act")
    play(env, "assassinate", "Ad")
    assert env.phase == "act"
    assert zone(env, "spy_discard") - before == {"Qd"}
    assert zone(env, "draw_discard") == cards("Ac 2h 2s 3c 3d")
    assert zone(env, "hand") == cards("9c 9d 9h 9s Tc")


def test_d7_closed_when_the_hand_suffices() -> None:
    """A total of exactly the spy's value must be played; one point less must not."""
    env = position("Ac 2h 3s 3c 3d", "Qd", spy_deck="Kd", draw_deck="Ah", draw_discard="Ad")
    for ace in ("Ac", "Ah", "Ad"):
        refuses(env, "assassinate", ace, because="D7")
    assert set(legal_actions(env)) == {("counter", ("Ac", "2h", "3c", "3d", "3s"))}
    short = _eleven_against_a_queen()
    refuses(short, "counter", "Ac 2h 2s 3c 3d", because="D7")


def test_d7_an_empty_hand_must_assassinate() -> None:
    """Nothing in hand totals 0."""
    env = position("", "5c", spy_deck="6c", draw_deck="Ac", draw_discard="2c")
    assert set(legal_actions(env)) == {("assassinate", ("Ac",))}
    play(env, "assassinate", "Ac")
    assert zone(env, "hand") == {"2c"}
    assert env.phase == "over"  # no Ace is left against the 6 (D8)


def test_d8_no_ace_left_loses_at_once() -> None:
    """Twelve points against a King: eight Key Spies in the Draw Discard do not help."""
    env = position(
        "Ts",
        "9c",
        spy_deck="Kc Ks",
        draw_deck="2c 2d 2s 3d 3h",
        draw_discard="Jc Jd Jh Js Qd Qh Qs Kd",
        spy_discard="Ah As",
    )
    info = play(env, "counter", "Ts")
    assert env.phase == "over"
    assert zone(env, "hand") == cards("2c 2d 2s 3d 3h")
    assert not env.action_masks().any()
    assert (info["outcome"], info["is_success"], info["key_spies"]) == ("no_double_agent", False, 0)
    assert info["turns"] == 34
    with pytest.raises(IllegalActionError, match="over"):
        env.step(env.encode("counter", ["2c"]))


def test_d8_with_an_ace_in_the_draw_discard_play_goes_on() -> None:
    """The near miss: one Ace is left, so there is an assassination."""
    env = position("Ts", "9c", spy_deck="Kc", draw_deck="2c 2d 2s 3d 3h", draw_discard="Ad Jc")
    play(env, "counter", "Ts")
    assert env.phase == "act"
    assert set(legal_actions(env)) == {("assassinate", ("Ad",))}


def test_d8_without_an_ace_but_with_enough_in_hand_play_goes_on() -> None:
    """The other near miss: thirteen points counter the King with all five cards."""
    env = position("Ts", "9c", spy_deck="Kc", draw_deck="2c 2d 2s 3h 4d", draw_discard="Jc")
    play(env, "counter", "Ts")
    assert env.phase == "act"
    assert set(legal_actions(env)) == {("counter", ("2c", "2d", "2s", "3h", "4d"))}


@pytest.mark.parametrize(
    "objective", ["win", "keys", "perfect", {"win": 1.0, "keys": 1.0, "perfect": 1.0}], ids=str
)
def test_d8_pays_nothing_under_any_objective(objective: Any) -> None:
    """All twelve Key Spies owned, one of them needed to win, and yet no reward."""
    env = new_env({"hand_size": 3, "key_spies_to_win": 1}, objective=objective)
    owned = [rank + suit for rank in "JQK" for suit in SUITS]
    zones = {"hand": ["Ts"], "spy": ["9c"], "spy_deck": ["Td"], "draw_deck": ["2c", "3c", "4c"]}
    zones = completed(zones | {"draw_discard": owned})
    env.reset(seed=0, options={"zones": zones})
    _, reward, terminated, _, info = env.step(env.encode("counter", ["Ts"]))
    assert terminated
    assert (info["outcome"], info["key_spies"], reward) == ("no_double_agent", 0, 0.0)


# --- D9: retire -----------------------------------------------------------------------------------


def test_d9_two_or_three_of_three() -> None:
    """Not necessarily all that match; the cards never come back."""
    env = position("3c 3d 3s 4h 5h", "9h", spy_deck="Tc", draw_deck="Kc Kd Kh Ks Qc Qd")
    play(env, "counter", "4h 5h")
    assert sets_of(env, "retire") == {"3c 3d", "3c 3s", "3d 3s", "3c 3d 3s"}
    assert is_legal(env, "pass")
    has_no_such_action(env, "retire", "3c")
    has_no_such_action(env, "retire", "3c 4h")  # the 4 has been played
    play(env, "retire", "3s 3c")
    assert cards("3c 3s") <= zone(env, "spy_discard")
    assert "3d" in zone(env, "hand")


def test_d9_not_the_spy_just_recruited() -> None:
    """The 9 of hearts lies in the Draw Discard, so it makes no pair with the 9 in hand."""
    env = position("3c 3d 4h 5h 9c", "9h", spy_deck="Tc", draw_deck="Kc Kd Kh Ks Qc Qd")
    play(env, "recruit", "4h 5h")
    assert sets_of(env, "retire") == {"3c 3d"}
    has_no_such_action(env, "retire", "9c 9h")
    refuses(env, "retire", "3d 9c", because="D9")


def test_d9_one_pair_of_two_and_no_mixture() -> None:
    """Of two pairs one may go; a mixed set may not."""
    env = position("2c 2d 7h 8d 8s", "6s", spy_deck="7c", draw_deck="Kc Kd Kh Ks Qc Qd")
    play(env, "counter", "7h")
    assert sets_of(env, "retire") == {"2c 2d", "8d 8s"}
    refuses(env, "retire", "2c 8d", because="D9")
    refuses(env, "retire", "2c 2d 8d 8s", because="D9")
    play(env, "retire", "8d 8s")
    assert cards("2c 2d") <= zone(env, "hand")


def test_d9_four_of_a_rank() -> None:
    """Any two, any three, or all four."""
    env = position("2c 2d 2h 2s 7h", "6s", spy_deck="7c", draw_deck="Kc Kd Kh Ks Qc Qd")
    play(env, "counter", "7h")
    assert len(sets_of(env, "retire")) == 6 + 4 + 1
    play(env, "retire", "2c 2d 2h 2s")
    assert cards("2c 2d 2h 2s") <= zone(env, "spy_discard")
    assert zone(env, "hand") == cards("Kc Kd Kh Ks Qc Qd") - zone(env, "draw_deck")


def test_d9_the_next_spy_is_known_when_retiring() -> None:
    """The next spy shows as soon as the last one has been moved; it can't be played on yet."""
    env = position("2c 2d 7h 9d", "6s", spy_deck="7c", draw_deck="Kc Kd Kh Ks Qc")
    play(env, "counter", "7h")
    assert env.phase == "retire"
    assert zone(env, "spy") == {"7c"}
    assert zone(env, "spy_deck") == set()
    assert zone(env, "hand") == cards("2c 2d 9d")  # not drawn yet
    refuses(env, "counter", "9d", because="retire")
    refuses(env, "assassinate", "Ac", because="retire")
    play(env, "pass")
    assert env.phase == "act"
    assert len(zone(env, "hand")) == 5


def test_d9_aces_and_key_spies_may_be_retired() -> None:
    """A retired Ace is no longer there to be given up (D7)."""
    env = position("Ac Ad Kc Kd 9h", "8s", spy_deck="Ks", draw_deck="2c 2d 2h 2s Ah")
    play(env, "counter", "9h")
    assert sets_of(env, "retire") == {"Ac Ad", "Kc Kd"}
    play(env, "retire", "Ac Ad")
    assert cards("Ac Ad") <= zone(env, "spy_discard")
    assert zone(env, "removed") == {"As"}


def test_d9_no_pair_no_phase() -> None:
    """Without two of a rank left in hand the turn ends in the same step; with them it does not."""
    env = position("2c 3d 7h", "6s", spy_deck="7c", draw_deck="Kc Kd Kh Ks")
    refuses(env, "pass", because="act")
    play(env, "counter", "7h")
    assert env.phase == "act"
    env = position("2c 2d 7h", "6s", spy_deck="7c", draw_deck="Kc Kd Kh Ks")
    play(env, "counter", "7h")
    assert env.phase == "retire"
    # A pair of which one card has been played is none.
    env = position("3c 3d 4h", "7s", spy_deck="8c", draw_deck="Kc Kd Kh Ks")
    play(env, "counter", "3c 4h")
    assert env.phase == "act"


# --- D10, D11: draw -------------------------------------------------------------------------------


def _one_card_in_the_draw_deck(seed: int, **rules: Any) -> DeckOfSpiesEnv:
    return position(
        "Ah 2s 3c 4d 9c",
        "6s",
        spy_deck="7c 8c",
        draw_deck="4c",
        draw_discard="2h 3d",
        seed=seed,
        **rules,
    )


@pytest.mark.parametrize("eager_reshuffle", [False, True])
def test_d10_reshuffle_with_all_of_this_turn(eager_reshuffle: bool) -> None:
    """Two cards due: the last one of the Draw Deck, then one of 2h 2s 3d 4d after a shuffle."""
    drawn: set[str] = set()
    for seed in range(60):
        env = _one_card_in_the_draw_deck(seed, eager_reshuffle=eager_reshuffle)
        play(env, "counter", "2s 4d")
        hand = zone(env, "hand")
        assert cards("Ah 3c 9c 4c") < hand
        assert len(hand) == 5
        (last,) = hand - cards("Ah 3c 9c 4c")
        drawn.add(last)
        assert zone(env, "draw_deck") == cards("2h 2s 3d 4d") - {last}
        assert zone(env, "draw_discard") == set()
    assert drawn == cards("2h 2s 3d 4d")


def test_d10_an_empty_draw_deck_alone_is_not_reshuffled() -> None:
    """One card due: it is there, and the Draw Deck stays empty until a card is needed."""
    env = _one_card_in_the_draw_deck(0)
    play(env, "counter", "9c")
    assert zone(env, "hand") == cards("Ah 2s 3c 4d 4c")
    assert zone(env, "draw_deck") == set()
    assert zone(env, "draw_discard") == cards("2h 3d 9c")
    # What is played next is shuffled in with them: two of 2h 3c 3d 4c 4d 9c come to hand.
    play(env, "counter", "4c 4d")
    assert cards("Ah 2s 3c") < zone(env, "hand")
    assert zone(env, "draw_discard") == set()
    assert zone(env, "hand") | zone(env, "draw_deck") == cards("Ah 2s 3c 2h 3d 4c 4d 9c")


def test_d10_eager_reshuffle_shuffles_at_once() -> None:
    """The switch: the emptied Draw Deck is renewed right after the draw."""
    env = _one_card_in_the_draw_deck(0, eager_reshuffle=True)
    play(env, "counter", "9c")
    assert zone(env, "hand") == cards("Ah 2s 3c 4d 4c")
    assert zone(env, "draw_deck") == cards("2h 3d 9c")
    assert zone(env, "draw_discard") == set()
    # What is played next has to wait: two of 2h 3d 9c come to hand.
    play(env, "counter", "4c 4d")
    assert cards("Ah 2s 3c") < zone(env, "hand")
    assert zone(env, "draw_discard") == cards("4c 4d")
    assert zone(env, "hand") | zone(env, "draw_deck") == cards("Ah 2s 3c 2h 3d 9c")


@pytest.mark.parametrize("eager_reshuffle", [False, True])
def test_d10_the_last_card_taken_as_an_ace_shuffles_nothing(eager_reshuffle: bool) -> None:
    """The Ace was the Draw Deck; the draw that follows shuffles the hand just put down, too."""
    env = position(
        "2c 2d",
        "Kc",
        spy_deck="Kd",
        draw_deck="Ac",
        draw_discard="3c Ad",
        hand_size=3,
        eager_reshuffle=eager_reshuffle,
    )
    certain = env.afterstate(env.encode("assassinate", ["Ac"]))
    assert certain["draw_deck"] == ()
    assert certain["draw_discard"] == ("Ad", "2c", "2d", "3c")
    play(env, "assassinate", "Ac")
    assert len(zone(env, "hand")) == 3
    assert zone(env, "hand") | zone(env, "draw_deck") == cards("Ad 2c 2d 3c")


def test_d10_with_a_full_pile_no_reshuffle() -> None:
    """As long as the Draw Deck has what is due, the Draw Discard stays where it is."""
    for eager_reshuffle in (False, True):
        env = position(
            "9c",
            "6s",
            spy_deck="7c",
            draw_deck="Ac 2c 3c 4c 5c 5d",
            draw_discard="Kc",
            eager_reshuffle=eager_reshuffle,
        )
        play(env, "counter", "9c")
        assert zone(env, "draw_discard") == cards("9c Kc")
        assert len(zone(env, "draw_deck")) == 1


@pytest.mark.parametrize("hand_size", range(3, 9))
def test_d10_draws_to_the_hand_size(hand_size: int) -> None:
    """The opening hand and every later one."""
    env = new_env({"hand_size": hand_size})
    env.reset(seed=1)
    assert len(zone(env, "hand")) == hand_size
    env = position(
        "9c", "6s", spy_deck="7c", draw_deck="Ac 2c 3c 4c 5c 5d 5h 5s 6c", hand_size=hand_size
    )
    play(env, "counter", "9c")
    assert len(zone(env, "hand")) == hand_size


def test_d11_short_hand_when_both_piles_are_empty() -> None:
    """Four cards owned: the Ten comes back, and play goes on with four; drawing is no choice."""
    env = position("8d Td Kc Qh", "9s", spy_deck="Tc Jc")
    play(env, "counter", "Td")
    assert zone(env, "hand") == cards("8d Td Kc Qh")
    assert zone(env, "draw_deck") == zone(env, "draw_discard") == set()
    assert env.phase == "act"
    play(env, "counter", "Kc")
    assert zone(env, "hand") == cards("8d Td Kc Qh")


def test_d11_nothing_at_all_to_draw() -> None:
    """Not a card is left to be drawn: play goes on without any, and D8 follows."""
    env = position("3c 3d", "6c", spy_deck="7c", phase="retire", draw_deck="Ac", hand_size=3)
    play(env, "retire", "3c 3d")
    assert zone(env, "hand") == {"Ac"}
    assert set(legal_actions(env)) == {("assassinate", ("Ac",))}
    info = play(env, "assassinate", "Ac")
    assert zone(env, "hand") == set()
    assert info["outcome"] == "no_double_agent"


# --- D12, D13: the end ----------------------------------------------------------------------------


def _after_the_last_spy(draw_discard: str = "Jd Qh 2c", **rules: Any) -> DeckOfSpiesEnv:
    return position(
        "Js Jh", draw_deck="Kc Kd Qs", draw_discard=draw_discard, phase="retire", **rules
    )


def test_d12_seven_of_twelve_win() -> None:
    """Two in hand, three in the Draw Deck, two in the Draw Discard."""
    info = play(_after_the_last_spy(), "pass")
    assert info["outcome"] == "win"
    assert info["is_success"] is True
    assert (info["key_spies"], info["turns"]) == (7, 36)


def test_d12_retiring_key_spies_at_the_end_loses_them() -> None:
    """The same position, with the two Jacks retired: 5 to 7."""
    info = play(_after_the_last_spy(), "retire", "Js Jh")
    assert (info["outcome"], info["is_success"], info["key_spies"]) == ("loss", False, 5)


def test_d12_six_to_six_is_a_loss() -> None:
    """The same position, with the Jack of diamonds countered earlier."""
    info = play(_after_the_last_spy(draw_discard="Qh 2c"), "pass")
    assert (info["outcome"], info["key_spies"]) == ("loss", 6)


@pytest.mark.parametrize(("needed", "outcome"), [(6, "win"), (7, "win"), (8, "loss")])
def test_d12_key_spies_to_win(needed: int, outcome: str) -> None:
    """The number needed is a field of the rules."""
    info = play(_after_the_last_spy(key_spies_to_win=needed), "pass")
    assert (info["outcome"], info["key_spies"]) == (outcome, 7)


def test_d12_nothing_is_drawn_after_the_last_spy() -> None:
    """The game stops after the retire decision; with no pair it stops with the play."""
    for eager_reshuffle in (False, True):
        env = position(
            "Kc 2d", "Qc", draw_deck="3c 3d", draw_discard="4c", eager_reshuffle=eager_reshuffle
        )
        info = play(env, "recruit", "Kc")
        assert env.phase == "over"
        assert zone(env, "hand") == {"2d"}
        assert zone(env, "draw_deck") == cards("3c 3d")
        assert zone(env, "draw_discard") == cards("4c Kc Qc")
        assert info["key_spies"] == 2
        with pytest.raises(IllegalActionError, match="over"):
            env.step(env.encode("counter", ["2d"]))


def test_d12_the_last_spy_may_be_assassinated() -> None:
    """No Ace and no hand is needed afterwards: there is no next spy to fall short of (D8)."""
    env = position("Ac", "Qc", draw_deck="Jc Jd Jh Js Kc Kd Kh")
    info = play(env, "assassinate", "Ac")
    assert (info["outcome"], info["key_spies"], info["turns"]) == ("win", 7, 36)
    assert zone(env, "hand") == set()


def test_d13_seven_key_spies_do_not_end_the_game() -> None:
    """With seven owned and a spy to come the game goes on, and can still be lost (D8)."""
    zones: dict[str, Any] = {
        "spy_deck": "Qc",
        "draw_deck": "2c 2d 2h 2s 3c",
        "draw_discard": "Jc Jd Jh Js Kc Kd Kh",
    }
    env = position("Ks", "Qd", **zones)
    info = play(env, "counter", "Ks")
    # 2+2+2+2+3 = 11 is below the Queen, and no Ace is left.
    assert (info["outcome"], info["key_spies"]) == ("no_double_agent", 0)
    zones["draw_deck"] += " Ac"
    for seed in range(5):
        env = position("Ks", "Qd", **zones, seed=seed)
        play(env, "counter", "Ks")
        assert env.phase == "act"
        assert env.action_masks().any()


def test_d13_seven_out_of_reach_do_not_end_the_game() -> None:
    """Six Key Spies and more in the Spy Discard: the rest is played all the same."""
    env = position("Kc Ks", "Qd", spy_deck="Qc", draw_deck="2c 2d 2h 2s 3c")
    play(env, "counter", "Ks")
    assert env.phase == "act"
    play(env, "counter", "Kc")
    info = play(env, "pass")
    assert (info["outcome"], info["key_spies"], info["turns"]) == ("loss", 2, 36)


# --- D14: what may be known -----------------------------------------------------------------------


def test_d14_zones_and_observation_show_no_order() -> None:
    """With other streams, hence another order to come, the position looks exactly the same."""
    looks: set[tuple[str, bytes, bytes]] = set()
    for seed in range(10):
        env = position("Ac 2c 3d 4h 4s", "6d", spy_deck="5c 7s 8h", draw_deck="2d 3c 4c", seed=seed)
        observation, info = env.reset(options={"zones": env.zones()})
        mask = info["action_mask"]
        looks.add((str(env.zones()), observation.tobytes(), mask.tobytes()))
    assert len(looks) == 1
    env = position("Ac 2c 3d 4h 4s", "6d", spy_deck="5c 7s 8h", draw_deck="4c 2d 3c")
    assert env.zones()["draw_deck"] == ("2d", "3c", "4c")
    assert env.zones()["spy_deck"] == ("5c", "7s", "8h")


def test_d14_the_observation_follows_from_the_zones() -> None:
    """Two ways to the same zones, two streams, one observation."""
    env, other = new_env(), new_env()
    first, _ = env.reset(seed=5)
    again, _ = other.reset(seed=77, options={"zones": env.zones()})
    assert np.array_equal(first, again)


def test_d14_what_is_drawn_next_is_open_unless_only_one_card_is_left() -> None:
    """Which of three cards comes is open; what a pile of one card holds is known."""
    drawn, certain = set(), set()
    for seed in range(40):
        env = position("9c 8c 7c 5c", "6s", spy_deck="7s", draw_deck="2d 3c 4c", seed=seed)
        play(env, "counter", "9c")
        drawn |= zone(env, "hand") - cards("8c 7c 5c")
        env = position("9c 8c 7c 5c 5d", "6s", spy_deck="7s", draw_deck="2d", seed=seed)
        play(env, "counter", "9c")
        if env.phase == "retire":
            play(env, "pass")
        certain |= zone(env, "hand") - cards("8c 7c 5c 5d")
    assert drawn == cards("2d 3c 4c")
    assert certain == {"2d"}


def test_d14_the_next_spy_is_any_of_the_tier() -> None:
    """Each of the tier's cards may be next, and none of a later tier."""
    seen = set()
    for seed in range(60):
        env = position("9c", "6s", spy_deck="5c 6d 7h 8s Kc", draw_deck="Kd", seed=seed)
        play(env, "counter", "9c")
        seen |= zone(env, "spy")
    assert seen == cards("5c 6d 7h")


def test_four_suits_times_one_rule() -> None:
    """The suits are alike: the same recruit in each of the four."""
    for suit in SUITS:
        others = [other for other in SUITS if other != suit]
        hand = f"A{suit} 4{suit} 5{others[0]}"
        env = position(hand, f"9{suit}", spy_deck=f"T{suit}", draw_deck="2c 2d 2h 2s")
        assert total(hand.split()) == 10
        assert is_legal(env, "recruit", hand)
        env = position(hand, f"9{others[0]}", spy_deck=f"T{suit}", draw_deck="2c 2d 2h 2s")
        refuses(env, "recruit", f"4{suit} 5{others[0]}", because="D2")
