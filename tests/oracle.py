"""A slow, literal referee for the solitaire game "Deck of Spies".

This module transcribes the rulebook as settled in docs/rules.md (rulings D1 to D14) and shares
no code with the package under test. Speed does not matter here: every rule is written the way
the rulebook words it, on plain lists of cards, so that it can be checked by reading.

Chance is dictated from outside (`OracleGame.step`), because the referee follows another
implementation; whatever is dictated is checked to be possible and complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import random

RANKS = "A23456789TJQK"
SUITS = "cdhs"
VALUES = {
    "A": 1,
    "2": 2,
    "3": 3,
    "4": 4,
    "5": 5,
    "6": 6,
    "7": 7,
    "8": 8,
    "9": 9,
    "T": 10,
    "J": 11,
    "Q": 12,
    "K": 13,
}

DRAW_DECK_RANKS = "A234"
"""The ranks that make up the Draw Deck at the start."""

TIERS = ("567", "89T", "JQK")
"""The tiers of the Spy Deck, from the top down."""

KEY_SPY_RANKS = "JQK"

ZONES = ("hand", "draw_deck", "draw_discard", "spy", "spy_deck", "spy_discard", "removed")

TextAction = tuple[str, tuple[str, ...]]
"""A kind (counter, recruit, assassinate, retire, pass) and its cards in sorted order."""


@dataclass(frozen=True)
class Card:
    """One card: a rank of `A23456789TJQK` and a suit of `cdhs`; its text is for example 7h."""

    rank: str
    suit: str

    @property
    def value(self) -> int:
        """Ace 1, 2-10 their number, Jack 11, Queen 12, King 13."""
        return VALUES[self.rank]

    def __str__(self) -> str:
        return self.rank + self.suit


ALL_CARDS = tuple(Card(rank, suit) for rank in RANKS for suit in SUITS)


def parse(text: str) -> Card:
    """Read a card such as "7h", "Tc" or "As"; anything else is a ValueError that names it."""
    for card in ALL_CARDS:
        if str(card) == text:
            return card
    raise ValueError(f"not a card: {text!r}")


def in_order(cards: Iterable[Card]) -> list[Card]:
    """Sort cards by rank (Ace lowest), then by suit in the order c d h s."""
    return sorted(cards, key=lambda card: (RANKS.index(card.rank), SUITS.index(card.suit)))


def texts(cards: Iterable[Card]) -> tuple[str, ...]:
    """Write the cards as text, sorted by rank and suit."""
    return tuple(str(card) for card in in_order(cards))


def total(cards: Iterable[Card]) -> int:
    """Add up the values of the cards."""
    return sum(card.value for card in cards)


def without(cards: Sequence[Card], card: Card) -> list[Card]:
    """Return the cards that are left when one of them is taken away."""
    return [other for other in cards if other != card]


def subsets(cards: Sequence[Card]) -> list[tuple[Card, ...]]:
    """Return every set of at least one of the cards."""
    return [chosen for size in range(1, len(cards) + 1) for chosen in combinations(cards, size)]


@dataclass(frozen=True)
class OracleRules:
    """The switches of the rule set; the defaults are the rulings of docs/rules.md."""

    idle_ace: bool = True
    eager_reshuffle: bool = False
    hand_size: int = 5
    key_spies_to_win: int = 7


class IllegalMove(ValueError):
    """The action is not legal in this position; nothing has changed."""


class ImpossibleChance(AssertionError):
    """The dictated chance outcome cannot happen after this action; nothing has changed."""


def may_counter(cards: Sequence[Card], spy: Card) -> bool:
    """D1: the total is at least the spy's value, and falls short without any one card.

    Every card is a plain card here, Aces too (D5).
    """
    if total(cards) < spy.value:
        return False
    return all(total(without(cards, card)) < spy.value for card in cards)


def may_recruit(cards: Sequence[Card], spy: Card, rules: OracleRules) -> bool:
    """D2 to D5: a counter in the spy's suit, with the Ace of that suit as the exception."""
    if total(cards) < spy.value:
        return False
    suit_ace = Card("A", spy.suit)

    # D2: every card is of the spy's suit, or the Ace of that suit makes the others count as it.
    # D5: no other Ace converts anything.
    all_in_suit = all(card.suit == spy.suit for card in cards)
    if not all_in_suit and suit_ace not in cards:
        return False

    # D3: no card to spare, but the Ace of the spy's suit is exempt. Its point stays in the total
    # while the other cards are tested.
    for card in cards:
        if card == suit_ace:
            continue
        if total(without(cards, card)) >= spy.value:
            return False

    # D4: with the switch off, that Ace must convert a card or be needed for its value.
    if suit_ace in cards and not rules.idle_ace:
        converts = not all_in_suit
        needed = total(without(cards, suit_ace)) < spy.value
        return converts or needed
    return True


def may_retire(cards: Sequence[Card]) -> bool:
    """D9: two, three or four cards of the same rank."""
    if len(cards) not in (2, 3, 4):
        return False
    return all(card.rank == cards[0].rank for card in cards)


def holds_pair(hand: Sequence[Card]) -> bool:
    """Tell whether two cards of the hand share their rank, so that something can be retired."""
    return any(may_retire(two) for two in combinations(hand, 2))


def uppermost_tier(spy_deck: Sequence[Card]) -> list[Card]:
    """Return the unseen spies that may lie on top: those of the lowest tier that is left."""
    for ranks in TIERS:
        tier = [card for card in spy_deck if card.rank in ranks]
        if tier:
            return tier
    return []


class Chance(Protocol):
    """Who decides which face-down card comes up."""

    def turn_up_spy(self, tier: Sequence[Card]) -> Card:
        """Name the spy that is turned up, one of the given ones."""
        ...

    def draw_card(self, pile: Sequence[Card]) -> Card:
        """Name the card that is drawn from the pile."""
        ...


class DictatedChance:
    """Chance as another implementation reports it; raises ImpossibleChance where it cannot be."""

    def __init__(self, next_spy: str | None, drawn: Sequence[str]) -> None:
        try:
            self.next_spy = None if next_spy is None else parse(next_spy)
            self.drawn = [parse(text) for text in drawn]
        except ValueError as error:
            raise ImpossibleChance(str(error)) from error

    def turn_up_spy(self, tier: Sequence[Card]) -> Card:
        """Take the dictated spy, which must be one of the given ones."""
        spy = self.next_spy
        if spy is None:
            raise ImpossibleChance(f"a spy had to be turned up, one of {texts(tier)}")
        if spy not in tier:
            raise ImpossibleChance(f"{spy} was turned up, but it had to be one of {texts(tier)}")
        self.next_spy = None
        return spy

    def draw_card(self, pile: Sequence[Card]) -> Card:
        """Take one of the dictated cards, in whatever order fits: they are given as a set."""
        for card in self.drawn:
            if card in pile:
                self.drawn.remove(card)
                return card
        if not self.drawn:
            raise ImpossibleChance(f"too few cards drawn: one more was due from {texts(pile)}")
        raise ImpossibleChance(
            f"drew {texts(self.drawn)}, but the next card had to come from {texts(pile)}"
        )

    def check_all_used(self) -> None:
        """Refuse what was dictated beyond what the rules asked for."""
        if self.next_spy is not None:
            raise ImpossibleChance(f"{self.next_spy} was turned up, but no spy was due")
        if self.drawn:
            raise ImpossibleChance(f"drew {texts(self.drawn)} although no further card was due")


class RandomChance:
    """Chance that picks uniformly, and remembers what it picked."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.next_spy: Card | None = None
        self.drawn: list[Card] = []

    def turn_up_spy(self, tier: Sequence[Card]) -> Card:
        """Pick any of the given spies."""
        self.next_spy = self.rng.choice(in_order(tier))
        return self.next_spy

    def draw_card(self, pile: Sequence[Card]) -> Card:
        """Pick any card of the pile."""
        card = self.rng.choice(in_order(pile))
        self.drawn.append(card)
        return card


class OracleGame:
    """One game of Deck of Spies, from any position.

    The piles are lists of cards without meaning in their order: the order of a face-down pile is
    decided when a card comes off it (D14). `spy` holds the top of the Spy Deck (one card, none
    after the last), `spy_deck` the spies below it. `phase` is "act", "retire" or "over";
    `outcome` is None until the end, then "win", "loss" or "no_double_agent"; `key_spies` is None
    until the end.
    """

    def __init__(
        self, rules: OracleRules, zones: Mapping[str, Sequence[str]], phase: str = "act"
    ) -> None:
        """Take the position as given; Aces that are named nowhere are removed.

        A ValueError says what is wrong with a position: an unknown zone, a card doubled or
        missing, a card other than an Ace in `removed` (D7 removes nothing else), a card under 5
        among the spies, a Spy Deck without a top card, a hand over the hand size, or no legal
        action.
        """
        for name in zones:
            if name not in ZONES:
                raise ValueError(f"unknown zone: {name!r}")
        self.rules = rules
        self.hand = [parse(text) for text in zones.get("hand", ())]
        self.draw_deck = [parse(text) for text in zones.get("draw_deck", ())]
        self.draw_discard = [parse(text) for text in zones.get("draw_discard", ())]
        self.spy = [parse(text) for text in zones.get("spy", ())]
        self.spy_deck = [parse(text) for text in zones.get("spy_deck", ())]
        self.spy_discard = [parse(text) for text in zones.get("spy_discard", ())]
        self.removed = [parse(text) for text in zones.get("removed", ())]
        self.phase = phase
        self.outcome: str | None = None
        self.key_spies: int | None = None

        self._account_for_every_card()
        self._check_position()

    @classmethod
    def deal(cls, rules: OracleRules, hand: Sequence[str], spy: str) -> OracleGame:
        """Set up the standard start with this hand dealt and this spy on top."""
        low_cards = [str(card) for card in ALL_CARDS if card.rank in DRAW_DECK_RANKS]
        spies = [str(card) for card in ALL_CARDS if card.rank not in DRAW_DECK_RANKS]
        if len(hand) != rules.hand_size:
            raise ValueError(f"a deal has {rules.hand_size} cards in hand, not {len(hand)}")
        for text in hand:
            if text not in low_cards:
                raise ValueError(f"{text} is not in the Draw Deck at the start")
        if parse(spy).rank not in TIERS[0]:
            raise ValueError(f"{spy} cannot be the first spy")
        zones = {
            "hand": tuple(hand),
            "draw_deck": tuple(text for text in low_cards if text not in hand),
            "spy": (spy,),
            "spy_deck": tuple(text for text in spies if text != spy),
        }
        return cls(rules, zones)

    def copy(self) -> OracleGame:
        """Return the same position as a game of its own."""
        twin = object.__new__(OracleGame)
        twin.rules = self.rules
        twin.hand = list(self.hand)
        twin.draw_deck = list(self.draw_deck)
        twin.draw_discard = list(self.draw_discard)
        twin.spy = list(self.spy)
        twin.spy_deck = list(self.spy_deck)
        twin.spy_discard = list(self.spy_discard)
        twin.removed = list(self.removed)
        twin.phase = self.phase
        twin.outcome = self.outcome
        twin.key_spies = self.key_spies
        return twin

    def zones(self) -> dict[str, tuple[str, ...]]:
        """Return the content of every zone, sorted, so that no order shows (D14)."""
        return {
            "hand": texts(self.hand),
            "draw_deck": texts(self.draw_deck),
            "draw_discard": texts(self.draw_discard),
            "spy": texts(self.spy),
            "spy_deck": texts(self.spy_deck),
            "spy_discard": texts(self.spy_discard),
            "removed": texts(self.removed),
        }

    @property
    def turns(self) -> int:
        """Count the spies dealt with: the 36 less those still in the Spy Deck."""
        return 36 - len(self.spy) - len(self.spy_deck)

    def legal_actions(self) -> set[TextAction]:
        """Return every action the player may take now; none when the game is over."""
        actions: set[TextAction] = set()
        if self.phase == "act" and self.spy:
            spy = self.spy[0]
            for cards in subsets(self.hand):
                if may_counter(cards, spy):
                    actions.add(("counter", texts(cards)))
                if may_recruit(cards, spy, self.rules):
                    actions.add(("recruit", texts(cards)))
            # D7: only when the whole hand totals less than the spy; any Ace that is left.
            if total(self.hand) < spy.value:
                for ace in self._aces_left():
                    actions.add(("assassinate", (str(ace),)))
        elif self.phase == "retire":
            # D9: optional, and not necessarily all that match.
            for cards in subsets(self.hand):
                if may_retire(cards):
                    actions.add(("retire", texts(cards)))
            actions.add(("pass", ()))
        return actions

    def step(
        self, kind: str, cards: Sequence[str], *, next_spy: str | None, drawn: Sequence[str]
    ) -> None:
        """Take an action, with the chance outcome dictated.

        `next_spy` is the spy that was turned up during this step, None if none was due; `drawn`
        is the set of cards drawn in this step, in any order. Raises IllegalMove for an action
        that is not legal and ImpossibleChance for an outcome that cannot be; either way nothing
        changes.
        """
        chosen = self._legal_cards(kind, cards)
        chance = DictatedChance(next_spy, drawn)
        trial = self.copy()
        trial._play(kind, chosen, chance)
        chance.check_all_used()
        vars(self).update(vars(trial))

    def step_random(
        self, kind: str, cards: Sequence[str], rng: random.Random
    ) -> tuple[str | None, tuple[str, ...]]:
        """Take an action, choose chance uniformly, and return it as (next_spy, drawn)."""
        chosen = self._legal_cards(kind, cards)
        chance = RandomChance(rng)
        self._play(kind, chosen, chance)
        next_spy = None if chance.next_spy is None else str(chance.next_spy)
        return next_spy, texts(chance.drawn)

    def _account_for_every_card(self) -> None:
        """Put the Aces that are named nowhere with the removed; every other card is somewhere."""
        named = self._all_piles()
        for card in ALL_CARDS:
            if named.count(card) > 1:
                raise ValueError(f"{card} is named more than once")
            if named.count(card) == 0:
                if card.rank != "A":
                    raise ValueError(f"{card} is missing")
                self.removed.append(card)
        for card in self.removed:
            if card.rank != "A":
                raise ValueError(f"{card} cannot be removed: only Aces leave the game")

    def _check_position(self) -> None:
        """Refuse a position that no game can go on from."""
        for card in self.spy + self.spy_deck:
            if card.rank in DRAW_DECK_RANKS:
                raise ValueError(f"{card} is no spy")
        if len(self.spy) > 1:
            raise ValueError(f"more than one spy on top: {texts(self.spy)}")
        if self.spy_deck and not self.spy:
            raise ValueError("the Spy Deck has no top card")
        if len(self.hand) > self.rules.hand_size:
            raise ValueError(f"the hand holds more than {self.rules.hand_size} cards")
        if self.phase not in ("act", "retire"):
            raise ValueError(f"a game cannot start in the phase {self.phase!r}")
        if self.phase == "retire" and not holds_pair(self.hand):
            raise ValueError("the phase retire needs a pair in hand")
        if not self.legal_actions():
            raise ValueError("the position has no legal action")

    def _all_piles(self) -> list[Card]:
        """Return the cards of all zones."""
        return (
            self.hand
            + self.draw_deck
            + self.draw_discard
            + self.spy
            + self.spy_deck
            + self.spy_discard
            + self.removed
        )

    def _aces_left(self) -> list[Card]:
        """Return the Aces in hand, Draw Deck or Draw Discard; a retired one is gone (D7, D9)."""
        own = self.hand + self.draw_deck + self.draw_discard
        return [card for card in own if card.rank == "A"]

    def _legal_cards(self, kind: str, cards: Sequence[str]) -> list[Card]:
        """Return the cards of a legal action, given in any order; raise IllegalMove otherwise."""
        try:
            chosen = [parse(text) for text in cards]
        except ValueError as error:
            raise IllegalMove(str(error)) from error
        if (kind, texts(chosen)) not in self.legal_actions():
            raise IllegalMove(f"{kind} {texts(chosen)} is not legal in the phase {self.phase}")
        return chosen

    def _play(self, kind: str, cards: Sequence[Card], chance: Chance) -> None:
        """Carry out a legal action to the end of the step."""
        if kind == "counter":
            # D6: played cards to the Draw Discard, the countered spy to the Spy Discard.
            for card in cards:
                self.hand.remove(card)
                self.draw_discard.append(card)
            self.spy_discard.append(self.spy.pop())
            self._turn_up_next_spy(chance)
            self._retire_or_end_turn(chance)
        elif kind == "recruit":
            # D6: played cards and the recruited spy to the Draw Discard.
            for card in cards:
                self.hand.remove(card)
                self.draw_discard.append(card)
            self.draw_discard.append(self.spy.pop())
            self._turn_up_next_spy(chance)
            self._retire_or_end_turn(chance)
        elif kind == "assassinate":
            # D7: the Ace leaves the game from wherever it is, the spy goes to the Spy Discard,
            # the rest of the hand to the Draw Discard. No retiring on this turn.
            ace = cards[0]
            for pile in (self.hand, self.draw_deck, self.draw_discard):
                if ace in pile:
                    pile.remove(ace)
            self.removed.append(ace)
            self.spy_discard.append(self.spy.pop())
            self.draw_discard.extend(self.hand)
            self.hand.clear()
            self._turn_up_next_spy(chance)
            self._end_turn(chance)
        elif kind == "retire":
            # D9: out of the deck for good.
            for card in cards:
                self.hand.remove(card)
                self.spy_discard.append(card)
            self._end_turn(chance)
        else:
            self._end_turn(chance)

    def _turn_up_next_spy(self, chance: Chance) -> None:
        """D9: the next spy shows as soon as the last one has been moved."""
        if self.spy_deck:
            spy = chance.turn_up_spy(uppermost_tier(self.spy_deck))
            self.spy_deck.remove(spy)
            self.spy.append(spy)

    def _retire_or_end_turn(self, chance: Chance) -> None:
        """Let the player retire if the hand still holds a pair, else end the turn (D9)."""
        if holds_pair(self.hand):
            self.phase = "retire"
        else:
            self._end_turn(chance)

    def _end_turn(self, chance: Chance) -> None:
        """End the game after the last spy (D12); else draw, and look for D8."""
        if not self.spy:
            self._end_game()
            return
        self._draw(chance)
        self.phase = "act"
        # D8: needing to assassinate with no Ace left is an immediate loss.
        if total(self.hand) < self.spy[0].value and not self._aces_left():
            self.phase = "over"
            self.outcome = "no_double_agent"
            self.key_spies = 0

    def _draw(self, chance: Chance) -> None:
        """D10, D11: draw up to the hand size, reshuffling when a card is needed and none is left.

        With `eager_reshuffle`, also reshuffle right after the draw if the Draw Deck is then empty.
        """
        while len(self.hand) < self.rules.hand_size:
            if not self.draw_deck:
                self._reshuffle()
            if not self.draw_deck:
                break  # D11: both piles are empty, play on with a short hand.
            card = chance.draw_card(self.draw_deck)
            self.draw_deck.remove(card)
            self.hand.append(card)
        if self.rules.eager_reshuffle and not self.draw_deck:
            self._reshuffle()

    def _reshuffle(self) -> None:
        """Make the whole Draw Discard the new Draw Deck."""
        self.draw_deck.extend(self.draw_discard)
        self.draw_discard.clear()

    def _end_game(self) -> None:
        """D12: count the Key Spies in hand, Draw Deck and Draw Discard."""
        own = self.hand + self.draw_deck + self.draw_discard
        self.key_spies = len([card for card in own if card.rank in KEY_SPY_RANKS])
        self.phase = "over"
        self.outcome = "win" if self.key_spies >= self.rules.key_spies_to_win else "loss"
