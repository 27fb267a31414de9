"""The rules of Skirmish: switches, game state, and the kernels that deal, judge and move.

This is the only authority on the rules; every environment, bot and search calls these kernels.
Numbers such as S3 refer to the rulings in ``docs/skirmish.md``.

A game is one record of dtype :data:`STATE`, N games are an array of N records. Face-down piles are
*sets*: which card comes off a Supply is decided when it comes off, from random streams that are not
part of the state. For all anyone at the table can tell that is a shuffled pile.

Who may know what (S11) follows from where a hidden card came from. So a game keeps which hidden
cards were dealt at the start, whose owner nobody knows, and which came back from each seat's
Capture pile, that everybody saw: in the *batch* recycled last (S8), in the one before, or in an
older one. Cards of older batches are in hand for certain: a Supply is of the latest batch, as it is
made anew only when it is empty, and stakes are of the last two at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.checks import as_rule_set
from deck_of_spies_env.compiled import (
    by_field,
    extract_bits,
    highest_bit_index,
    kernel,
    lowest_bit_index,
    popcount,
)
from deck_of_spies_env.random_streams import pick_bit, pick_uniform, stream_start
from deck_of_spies_env.skirmish import cards

MIN_PLAYERS, MAX_PLAYERS = 2, 4
HAND_SIZE = 3
MOST_ROUNDS = 10_000

RULES = np.dtype(
    [
        ("num_players", np.int64),
        ("max_rounds", np.int64),
        ("recycle_captures", np.bool_),
        ("deck", np.uint64),  # the cards in play
    ]
)
"""The compiled form of a number of players and :class:`Rules`."""


class RuleValues(NamedTuple):
    """The fields of a record of dtype RULES as values: kernels take either."""

    num_players: np.int64
    max_rounds: np.int64
    recycle_captures: np.bool_
    deck: np.uint64


@kernel
def values_of(rules: Any, num_players: Any) -> RuleValues:
    """Rules for a kernel in haste: no write to memory can change them, so that they stay at hand.

    Args:
        rules: record of dtype RULES.
        num_players: of the same; a literal makes the compiler unroll what goes over the seats.
    """
    return RuleValues(np.int64(num_players), rules.max_rounds, rules.recycle_captures, rules.deck)


@dataclass(frozen=True)
class Rules:
    """A rule set: the default is the game as written, each field one other reading of it.

    Args:
        recycle_captures: an empty Supply is made anew from the Capture pile (S8); else captures
            are never played again.
        max_rounds: rounds after which a game is cut off and scored (S10), 1-10,000.
        ranks: those of the deck, for small decks that can be solved; letters of ``A23456789TJQK``.
        num_suits: likewise, 1-4.
        num_jokers: likewise, 0-2.

    Raises:
        ValueError: a field is of the wrong type or out of range; the message names it.
    """

    recycle_captures: bool = True
    max_rounds: int = 500
    ranks: str = cards.SUITED_RANKS
    num_suits: int = 4
    num_jokers: int = 2

    def __post_init__(self) -> None:
        flag: Any = self.recycle_captures  # callers hand over what a user wrote
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"rules: recycle_captures must be true or false, got {flag!r}")
        object.__setattr__(self, "recycle_captures", bool(flag))
        for name, low, high in (
            ("max_rounds", 1, MOST_ROUNDS),
            ("num_suits", 1, 4),
            ("num_jokers", 0, 2),
        ):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or not low <= value <= high:
                raise ValueError(
                    f"rules: {name} must be a whole number {low}-{high}, got {value!r}"
                )
            object.__setattr__(self, name, int(value))
        self._check_ranks()

    def _check_ranks(self) -> None:
        ranks = self.ranks
        letters = set(ranks) if isinstance(ranks, str) else set()  # pyright: ignore[reportUnnecessaryIsInstance]
        if not letters or not letters <= set(cards.SUITED_RANKS) or len(letters) != len(ranks):
            raise ValueError(
                f"rules: ranks must be different letters of {cards.SUITED_RANKS}, got {ranks!r}"
            )
        in_order = "".join(sorted(letters, key=cards.SUITED_RANKS.index))
        object.__setattr__(self, "ranks", in_order)

    @property
    def deck(self) -> int:
        """The cards in play as a mask."""
        suits = (1 << self.num_suits) - 1
        suited = sum(suits << (4 * cards.RANKS.index(rank)) for rank in self.ranks)
        return suited | ((1 << self.num_jokers) - 1) << cards.NUM_SUITED

    @classmethod
    def of(cls, rules: Rules | Mapping[str, Any] | None) -> Rules:
        """A rule set from itself, from a mapping of its fields, or the default for None.

        Raises:
            ValueError: an unknown or ill-typed field, or no mapping at all.
        """
        return as_rule_set(cls, rules)

    def record(self, num_players: int) -> npt.NDArray[Any]:
        """For kernels: an array of shape ``(1,)`` and dtype :data:`RULES`.

        Raises:
            ValueError: a number of players other than 2, 3 or 4, or fewer cards than players.
        """
        record = np.zeros(1, dtype=RULES)
        record["num_players"] = check_num_players(num_players)
        record["max_rounds"] = self.max_rounds
        record["recycle_captures"] = self.recycle_captures
        record["deck"] = self.deck
        if self.deck.bit_count() < num_players:
            raise ValueError(f"rules: {self.deck.bit_count()} cards for {num_players} players")
        return record


def check_num_players(num_players: Any) -> int:
    """A number of players as an int.

    Raises:
        ValueError: other than 2, 3 or 4.
    """
    whole = isinstance(num_players, int | np.integer) and not isinstance(num_players, bool)
    if not whole or not MIN_PLAYERS <= num_players <= MAX_PLAYERS:
        raise ValueError(
            f"num_players must be {MIN_PLAYERS}, 3 or {MAX_PLAYERS}, got {num_players!r}"
        )
    return int(num_players)


SKIRMISH, WAR, OVER = 0, 1, 2
"""Phases of :data:`STATE`: commit a card to the skirmish, one to the War, and the end."""
PHASES = ("skirmish", "war", "over")

NO_CARD = -1

STATE = np.dtype(
    [
        ("hand", np.uint64, (MAX_PLAYERS,)),  # card masks by seat, see cards.py
        ("supply", np.uint64, (MAX_PLAYERS,)),  # face down: a set, no order
        ("capture", np.uint64, (MAX_PLAYERS,)),
        ("stakes", np.uint64, (MAX_PLAYERS,)),  # War piles; face down while there is a decision
        ("graveyard", np.uint64),
        ("burned", np.uint64),  # left over by the deal among four, never seen
        ("dealt", np.uint64),  # the hidden cards that were dealt at the start, wherever they are
        ("latest", np.uint64, (MAX_PLAYERS,)),  # a seat's hidden cards of the batch recycled last
        ("previous", np.uint64, (MAX_PLAYERS,)),  # and of the one before it
        ("rounds", np.int16),  # finished
        ("committed", np.int8, (MAX_PLAYERS,)),  # to the skirmish, during a War; else NO_CARD
        ("participants", np.uint8),  # bit mask of the seats in the War; 0 outside of it
        ("offenders", np.uint8),  # bit mask of the seats that ended the game by an illegal action
        ("phase", np.int8),  # SKIRMISH, WAR or OVER
    ],
    align=True,
)
"""A game. Seats beyond the number of players hold nothing."""

STREAMS = np.dtype(
    [
        ("key", np.uint64),
        ("gamma", np.uint64),
        ("episode", np.int64),
        ("deal", np.uint64),  # position of the stream that deals
        ("draws", np.uint64, (MAX_PLAYERS,)),  # of those that draw from each seat's Supply
        ("picks", np.uint64, (MAX_PLAYERS,)),  # of those that pick among equal ranks in hand
    ]
)
"""The random streams of a game, see ``random_streams.py``.

The k-th card off a seat's Supply depends on the seat's own stream and on what is left there, not on
how the others play: two matches of one deal are as alike as they can be.
"""

MOST_DRAWS = 64
"""Cards drawn between two decisions, at most: more than there are."""

SCRIPT = np.dtype(
    [
        # Each choice is among the ranks of a pile, or the batches that cards of a rank came with.
        ("choices", np.uint8, (MOST_DRAWS,)),  # which of its options each choice takes
        ("options", np.uint8, (MOST_DRAWS,)),  # how many there were
        ("length", np.int64),  # choices written so far
        ("cursor", np.int64),  # choices taken so far
        ("probability", np.float64),  # of what has been drawn
    ]
)
"""Takes the place of STREAMS where all that chance can bring is listed, see ``chance.py``."""

_STREAMS_OF_A_GAME = np.uint64(1 + 2 * MAX_PLAYERS)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_RANK_SHIFT = np.uint64(2)
_RANK = np.uint64(0b1111)
_LOWEST_SUIT = np.uint64(0x11111111111111)
_CARDS = np.uint64(cards.ALL_CARDS)
_JOKERS = np.uint64(cards.JOKERS)
_ACE, _JACK = cards.ACE, cards.JACK
_ROYAL_RANKS = np.uint64(1 << cards.QUEEN | 1 << cards.KING)
_JOKER_RANK = np.uint64(1 << cards.JOKER)
_STAKES_OF_FOUR, _STAKES = 1, 2
_NUM_BATCHES = 4


_VALUE_BIT_0, _VALUE_BIT_1, _VALUE_BIT_2, _VALUE_BIT_3 = (
    np.uint64(
        sum(
            0b1111 << (4 * cards.RANKS.index(rank))
            for value, rank in enumerate(cards.SUITED_RANKS, start=1)
            if value >> bit & 1
        )
    )
    for bit in range(4)
)
"""The cards whose value has a bit set: a sum of values is a few counts of bits."""


# --- Cards ---


@kernel
def of_rank(cards_held: np.uint64, rank: np.int64) -> np.uint64:
    """The cards of a set that have a rank, 0-13."""
    return cards_held & (_RANK << (np.uint64(rank) << _RANK_SHIFT)) & _CARDS


@kernel
def ranks_of(pile: np.uint64) -> np.uint64:
    """Bit r: a card of the set has rank r."""
    pairs = pile | (pile >> _ONE)
    return extract_bits(pairs | (pairs >> _TWO), _LOWEST_SUIT)


@kernel
def total_value(held: np.uint64) -> np.int64:
    """Sum of the values of cards: Ace 1 to King 13, Jokers 0 (S9)."""
    total = np.int64(popcount(held & _VALUE_BIT_0)) + 2 * np.int64(popcount(held & _VALUE_BIT_1))
    total += 4 * np.int64(popcount(held & _VALUE_BIT_2))
    return total + 8 * np.int64(popcount(held & _VALUE_BIT_3))


@kernel
def war_sum(pile: np.uint64) -> np.int64:
    """Sum of a War pile: a Joker counts as the highest other card of the same pile (S6)."""
    jokers = np.int64(popcount(pile & _JOKERS))
    highest = (highest_bit_index(pile & ~_JOKERS) >> 2) + 1
    return total_value(pile) + jokers * highest


# --- What is legal ---


@kernel
def decides(state: Any, seat: int) -> bool:
    """Whether a seat has a decision now: to commit a card to the skirmish, or to its War (S5)."""
    in_war = (state.participants >> np.uint8(seat)) & np.uint8(1) != 0
    fights = (state.phase == SKIRMISH) | ((state.phase == WAR) & in_war)
    return fights & (state.hand[seat] != _ZERO)


# --- What happens ---


@kernel
def recycle(state: Any, seat: int) -> None:
    """The seat's Capture pile becomes its Supply (S8); as sets, no shuffle is needed."""
    state.previous[seat] = state.latest[seat]
    state.latest[seat] = state.supply[seat] = state.capture[seat]
    state.capture[seat] = _ZERO


@kernel
def _drawn(streams: Any, seat: int, pile: np.uint64) -> np.uint64:
    card, position = pick_uniform(pile, streams.draws[seat], streams.gamma)
    streams.draws[seat] = position
    return card


@kernel
def _next_choice(script: Any, num_options: np.int64) -> np.uint64:
    """The next of a script's choices; past its end the first, which the script notes down."""
    place = script.cursor
    if place == script.length:
        script.choices[place] = 0
        script.length += 1
    script.options[place] = num_options
    script.cursor += 1
    return np.uint64(script.choices[place])


@kernel
def _scripted_draw(script: Any, seat: int, pile: np.uint64) -> np.uint64:
    """By rank: a Supply is of one batch, so that suits make no difference."""
    ranks = ranks_of(pile)
    rank = lowest_bit_index(pick_bit(ranks, _next_choice(script, np.int64(popcount(ranks)))))
    equals = of_rank(pile, np.int64(rank))
    script.probability *= popcount(equals) / popcount(pile)
    return equals & (~equals + _ONE)


@kernel
def _picked(streams: Any, state: Any, seat: int, equals: np.uint64) -> np.uint64:
    card, position = pick_uniform(equals, streams.picks[seat], streams.gamma)
    streams.picks[seat] = position
    return card


@kernel
def _of_batch(state: Any, seat: int, held: np.uint64, batch: int) -> np.uint64:
    """The cards of a seat's hand that came with a batch: dealt, latest, previous, older (S11)."""
    if batch == 0:
        return held & state.dealt
    held &= ~state.dealt
    if batch == 1:
        return held & state.latest[seat]
    held &= ~state.latest[seat]
    return held & state.previous[seat] if batch == 2 else held & ~state.previous[seat]


@kernel
def _scripted_pick(script: Any, state: Any, seat: int, equals: np.uint64) -> np.uint64:
    """By batch: suits make no difference, but others may know which batch a card came with."""
    num_options = np.int64(0)
    for batch in range(_NUM_BATCHES):
        num_options += _of_batch(state, seat, equals, batch) != _ZERO
    skipped = np.int64(_next_choice(script, num_options))
    chosen = _ZERO
    for batch in range(_NUM_BATCHES):
        cards_of = _of_batch(state, seat, equals, batch)
        if cards_of != _ZERO and chosen == _ZERO:
            if skipped == 0:
                chosen = cards_of
            skipped -= 1
    script.probability *= popcount(chosen) / popcount(equals)
    return chosen & (~chosen + _ONE)


choose_draw = by_field("choices", _scripted_draw, _drawn)
"""The card that comes off a seat's pile: (streams or script, seat, pile) -> mask."""

choose_equal = by_field("choices", _scripted_pick, _picked)
"""The one of a seat's cards of equal rank that is committed: (..., state, seat, cards) -> mask."""


@kernel
def draw(state: Any, streams: Any, rules: Any, seat: int) -> np.uint64:
    """Take a card off a seat's Supply, as a mask; 0 if there is none to be had (S8)."""
    if state.supply[seat] == _ZERO:
        if not rules.recycle_captures or state.capture[seat] == _ZERO:
            return _ZERO
        recycle(state, seat)
    card = choose_draw(streams, seat, state.supply[seat])
    state.supply[seat] ^= card
    return card


@kernel
def refill(state: Any, streams: Any, rules: Any) -> None:
    """Everyone draws up to three cards (S2)."""
    for seat in range(rules.num_players):
        for _ in range(HAND_SIZE - np.int64(popcount(state.hand[seat]))):
            state.hand[seat] |= draw(state, streams, rules, seat)


@kernel
def commit(state: Any, streams: Any, seat: int, rank: np.int64) -> np.uint64:
    """Take a card of a rank out of a hand, any one of those that have it; as a mask."""
    card = choose_equal(streams, state, seat, of_rank(state.hand[seat], rank))
    state.hand[seat] ^= card
    return card


@kernel
def contenders(committed: Any, num_players: int) -> np.uint8:
    """S3: bit mask of the seat that takes the pot, or of those that go to War for it.

    Args:
        committed: integers (n,) or more, the card of each seat; suits make no difference.
        num_players: n.
    """
    present = _ZERO
    aces = jacks = highest = np.uint8(0)
    best = np.int64(-1)
    for seat in range(num_players):
        # Without branches: which way they go would be anyone's guess.
        rank, bit = np.int64(committed[seat]) >> 2, np.uint8(1 << seat)
        present |= _ONE << np.uint64(rank)
        aces |= bit if rank == _ACE else np.uint8(0)
        jacks |= bit if rank == _JACK else np.uint8(0)
        highest = bit if rank > best else highest | (bit if rank == best else np.uint8(0))
        best = max(best, rank)
    if present & _JOKER_RANK != _ZERO:
        return np.uint8((1 << num_players) - 1)
    if aces != 0 and present & _ROYAL_RANKS != _ZERO:
        return jacks if jacks != 0 else aces
    return highest


@kernel
def is_single(seats: np.uint8) -> bool:
    """Whether a bit mask of seats holds just one."""
    return seats & (seats - np.uint8(1)) == 0


@kernel
def lay_open(state: Any, seat: int, pile: np.uint64) -> None:
    """Cards of a seat that are seen by all from now on."""
    state.dealt &= ~pile
    state.latest[seat] &= ~pile
    state.previous[seat] &= ~pile


@kernel
def take_pot(state: Any, rules: Any) -> np.uint64:
    """The cards committed to the skirmish, which leave the table."""
    pot = _ZERO
    for seat in range(rules.num_players):
        pot |= _ONE << np.uint64(state.committed[seat])
        state.committed[seat] = NO_CARD
    return pot


@kernel
def leaders(state: Any, rules: Any, among: np.uint8) -> np.uint8:
    """Bit mask of those seats whose War piles have the highest sum."""
    best, leading = np.int64(-1), np.uint8(0)
    for seat in range(rules.num_players):
        bit = np.uint8(1 << seat)
        if among & bit:
            total = war_sum(state.stakes[seat])
            if total > best:
                best, leading = total, bit
            elif total == best:
                leading |= bit
    return leading


@kernel
def add_cards(state: Any, streams: Any, rules: Any, tied: np.uint8) -> bool:
    """S7: the tied add a card each, those that have one; False if nobody has."""
    added = False
    for seat in range(rules.num_players):
        if tied & np.uint8(1 << seat):
            card = draw(state, streams, rules, seat)
            state.stakes[seat] |= card
            added = added or card != _ZERO
    return added


@kernel
def resolve_war(state: Any, streams: Any, rules: Any) -> None:
    """S5 and S7: find who leads, and settle; with nobody to break a tie all of it burns."""
    leading = leaders(state, rules, state.participants)
    while not is_single(leading):
        if not add_cards(state, streams, rules, leading):
            leading = np.uint8(0)
            break
        leading = leaders(state, rules, leading)
    settle_stakes(state, rules, leading)
    settle_pot(state, rules, leading)


@kernel
def settle_pot(state: Any, rules: Any, winner: np.uint8) -> None:
    """S4 and S7: the winner captures the cards committed to the skirmish, or they burn.

    Args:
        state: with or without a War just fought.
        rules: record of dtype RULES.
        winner: bit mask of one seat, or of none.
    """
    pot = take_pot(state, rules)
    state.graveyard |= pot if winner == 0 else _ZERO
    for seat in range(rules.num_players):
        state.capture[seat] |= pot & _all_if_in(winner, seat)


@kernel
def settle_stakes(state: Any, rules: Any, winner: np.uint8) -> None:
    """S4 and S7: the winner of a War captures its own War pile, the others' burn.

    Args:
        state, rules, winner: as in settle_pot.
    """
    for seat in range(rules.num_players):
        pile, taken = state.stakes[seat], _all_if_in(winner, seat)
        lay_open(state, seat, pile)
        state.stakes[seat] = _ZERO
        state.capture[seat] |= pile & taken
        state.graveyard |= pile & ~taken
    state.participants = 0


@kernel
def _all_if_in(seats: np.uint8, seat: int) -> np.uint64:
    """All cards if a seat is in a bit mask, else none."""
    return _ZERO - np.uint64((seats >> np.uint8(seat)) & np.uint8(1))


@kernel
def begin_war(state: Any, streams: Any, rules: Any, participants: np.uint8) -> bool:
    """S5: stake blind; True if there is a card to commit, so a decision to wait for."""
    state.participants = participants
    num_stakes = _STAKES_OF_FOUR if rules.num_players == MAX_PLAYERS else _STAKES
    waits = False
    for seat in range(rules.num_players):
        if participants & np.uint8(1 << seat):
            for _ in range(num_stakes):
                state.stakes[seat] |= draw(state, streams, rules, seat)
            waits = waits or state.hand[seat] != _ZERO
    return waits


@kernel
def end_round(state: Any, streams: Any, rules: Any) -> None:
    """Refill, and end the game if someone is eliminated (S9) or the rounds are up (S10)."""
    refill(state, streams, rules)
    state.rounds += 1
    state.phase = SKIRMISH
    if state.rounds >= rules.max_rounds or eliminated(state, rules) != 0:
        state.phase = OVER


@kernel
def play(state: Any, streams: Any, rules: Any, ranks: Any) -> None:
    """One decision of every seat that has one, with all that follows, up to the next or the end.

    Args:
        state: record of dtype STATE, not over; changed in place.
        streams: record of dtype STREAMS, whose positions move on, or SCRIPT.
        rules: record of dtype RULES.
        ranks: integers (n,), the rank that each seat commits, legal where it decides; not looked
            at elsewhere.
    """
    if state.phase == WAR:
        for seat in range(rules.num_players):
            if decides(state, seat):
                state.stakes[seat] |= commit(state, streams, seat, np.int64(ranks[seat]))
        resolve_war(state, streams, rules)
        end_round(state, streams, rules)
        return
    for seat in range(rules.num_players):
        card = commit(state, streams, seat, np.int64(ranks[seat]))
        lay_open(state, seat, card)
        state.committed[seat] = np.int8(lowest_bit_index(card))
    fighting = contenders(state.committed, rules.num_players)
    if is_single(fighting):
        settle_pot(state, rules, fighting)
    elif begin_war(state, streams, rules, fighting):
        state.phase = WAR
        return
    else:
        resolve_war(state, streams, rules)
    end_round(state, streams, rules)


@kernel
def deal(state: Any, streams: Any, rules: Any) -> None:
    """Begin the next episode (S1).

    Args:
        state: record to overwrite.
        streams, rules: as in play, and no script.
    """
    streams.episode += 1
    number = np.uint64(streams.episode) * _STREAMS_OF_A_GAME
    streams.deal = stream_start(streams, number)
    deck, position = rules.deck, streams.deal
    share = np.int64(popcount(deck)) // rules.num_players
    for seat in range(MAX_PLAYERS):
        place = number + np.uint64(1 + 2 * seat)
        streams.draws[seat] = stream_start(streams, place)
        streams.picks[seat] = stream_start(streams, place + _ONE)
        state.hand[seat] = state.supply[seat] = state.capture[seat] = state.stakes[seat] = _ZERO
        state.latest[seat] = state.previous[seat] = _ZERO
        state.committed[seat] = NO_CARD
    for seat in range(rules.num_players):
        for _ in range(share):
            card, position = pick_uniform(deck, position, streams.gamma)
            deck ^= card
            state.supply[seat] |= card
    streams.deal = position
    state.burned = deck
    state.graveyard = _ZERO
    state.dealt = rules.deck
    state.rounds = 0
    state.participants = state.offenders = 0
    state.phase = SKIRMISH
    refill(state, streams, rules)


# --- The end ---


@kernel
def eliminated(state: Any, rules: Any) -> np.uint8:
    """S9: bit mask of the seats that have nothing left to play with, after a refill."""
    seats = np.uint8(0)
    for seat in range(rules.num_players):
        if state.hand[seat] == _ZERO:
            seats |= np.uint8(1 << seat)
    return seats


@kernel
def holdings(state: Any, seat: int) -> np.int64:
    """S9: the total value of all that a seat holds."""
    return total_value(state.hand[seat] | state.supply[seat] | state.capture[seat])


@kernel
def scored(state: Any, rules: Any) -> np.uint8:
    """S9: bit mask of the seats whose holdings count: the survivors, or all if there are none."""
    everyone = np.uint8((1 << rules.num_players) - 1)
    surviving = everyone & ~eliminated(state, rules)
    return surviving if surviving != 0 else everyone


@kernel
def forfeit(state: Any, offenders: np.uint8) -> None:
    """End the game because of illegal actions: the others share the win."""
    state.offenders = offenders
    state.phase = OVER


@kernel
def winners(state: Any, rules: Any) -> np.uint8:
    """S9: bit mask of the seats with the highest total, of a game that is over."""
    counting = scored(state, rules)
    if state.offenders != 0:
        others = np.uint8((1 << rules.num_players) - 1) & ~state.offenders
        return others if others != 0 else counting
    best, leading = np.int64(-1), np.uint8(0)
    for seat in range(rules.num_players):
        bit = np.uint8(1 << seat)
        if counting & bit:
            total = holdings(state, seat)
            if total > best:
                best, leading = total, bit
            elif total == best:
                leading |= bit
    return leading


@kernel
def write_payoffs(state: Any, rules: Any, payoffs: Any) -> None:
    """S12: write the payoffs, float64 (n,), of a game that is over."""
    winning = winners(state, rules)
    num_winners = 0
    for seat in range(rules.num_players):
        num_winners += (winning >> np.uint8(seat)) & np.uint8(1)
    loss = -1.0 / (rules.num_players - 1)
    share = (1.0 + (num_winners - 1) * loss) / num_winners
    for seat in range(rules.num_players):
        payoffs[seat] = share if winning & np.uint8(1 << seat) else loss
