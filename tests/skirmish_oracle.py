"""A slow, literal referee for the card game "Skirmish", for two to four players.

This module transcribes the rulings S1 to S12 and shares no code with the package under test.
Speed does not matter here: every rule is written the way the rulings word it, on plain lists of
cards, so that it can be checked by reading. Where the wording leaves room, a comment that starts
with "Read as" says which reading is taken.

Chance is dictated from outside, through the protocol `Chance`. The referee asks it seat by seat
in rising order, and for each seat card by card: first who commits what (`pick`), then the stakes,
then the cards added to a tied War round by round, then the refill (all `draw`). Seats draw from
their own Supplies only, so that this order has no bearing on the game.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypedDict

if TYPE_CHECKING:
    import random

RANKS = "A23456789TJQK"
SUITS = "cdhs"
JOKER = "*"
"""The rank, and the text, of both Jokers."""

ASSASSIN = "A"
KNIGHT = "J"
ROYALTY = "QK"

HAND_SIZE = 3
DEAL_SIZES = {2: 27, 3: 18, 4: 13}
"""S1: the cards dealt to each, by number of players."""

STAKES = {2: 2, 3: 2, 4: 1}
"""S5: the cards staked in a War by each participant, by number of players at the table."""

WAIT = "wait"
"""The choice of a seat that has nothing to commit."""

DEAL = "deal"
"""The pool of the cards that were dealt (or burned) at the start and have never been revealed."""


@dataclass(frozen=True)
class Card:
    """One of the 54 cards, by its id: 4 * (value - 1) + suit; 52 and 53 are the two Jokers."""

    id: int

    @property
    def rank(self) -> str:
        """One of `A23456789TJQK`, or `*` for a Joker."""
        return JOKER if self.id >= 52 else RANKS[self.id // 4]

    @property
    def value(self) -> int:
        """King 13, Queen 12, Jack 11, 2-10 their number, Ace 1, Joker 0."""
        return 0 if self.rank == JOKER else RANKS.index(self.rank) + 1

    def __str__(self) -> str:
        return JOKER if self.rank == JOKER else self.rank + SUITS[self.id % 4]


ALL_CARDS = tuple(Card(number) for number in range(54))
"""Every card, at the place of its id."""


def cards_of(text: str) -> list[Card]:
    """Read cards such as "7h Tc * As"; the first `*` of the text is Joker 52, the second 53.

    Anything else, and a card named twice, is a ValueError that names it.
    """
    found: list[Card] = []
    for word in text.split():
        meant = [card for card in ALL_CARDS if str(card) == word]
        if not meant:
            raise ValueError(f"not a card: {word!r}")
        left = [card for card in meant if card not in found]
        if not left:
            raise ValueError(f"{word} is named more than once")
        found.append(left[0])
    return found


def in_order(cards: Iterable[Card]) -> list[Card]:
    """Sort cards by their ids."""
    return sorted(cards, key=lambda card: card.id)


def ids(cards: Iterable[Card]) -> tuple[int, ...]:
    """Return the ids of the cards, sorted."""
    return tuple(card.id for card in in_order(cards))


def total(cards: Iterable[Card]) -> int:
    """S9: add up the values of the cards, Jokers 0."""
    return sum(card.value for card in cards)


def war_sum(pile: Sequence[Card]) -> int:
    """S5, S6: what a War pile is worth; an empty pile, or one of Jokers only, is worth 0."""
    plain = [card for card in pile if card.rank != JOKER]
    jokers = [card for card in pile if card.rank == JOKER]
    if not plain:
        return 0
    # S6: every Joker copies the highest non-Joker of the same pile.
    highest = max(card.value for card in plain)
    return total(plain) + len(jokers) * highest


@dataclass(frozen=True)
class SkirmishRules:
    """The switches of the rule set: S8 and S10."""

    recycle_captures: bool = True
    max_rounds: int = 500


class IllegalMove(ValueError):
    """The choices are not legal in this position; nothing has changed."""


class ImpossibleChance(AssertionError):
    """The chance outcome cannot happen here; nothing has changed."""


class Chance(Protocol):
    """Who decides which face-down card comes up, and which of several equal ranks is committed."""

    def draw(self, seat: int, pile: list[Card]) -> int:
        """Name the place, in the seat's Supply sorted by id, of the card that comes off next."""
        ...

    def pick(self, seat: int, cards: list[Card]) -> int:
        """Name the place of the card that is committed, among those of the rank, sorted by id.

        Asked even when there is just one such card.
        """
        ...


class RandomChance:
    """Chance that picks uniformly."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def draw(self, seat: int, pile: list[Card]) -> int:
        """Pick any card of the Supply."""
        return self.rng.randrange(len(pile))

    def pick(self, seat: int, cards: list[Card]) -> int:
        """Pick any card of the rank."""
        return self.rng.randrange(len(cards))


class DictatedChance:
    """Chance as another implementation reports it; raises ImpossibleChance where it cannot be.

    `drawn` and `picked` hold for each seat the cards it draws and commits, in their order.
    """

    def __init__(
        self, drawn: Mapping[int, Sequence[Card]], picked: Mapping[int, Sequence[Card]]
    ) -> None:
        self.drawn = {seat: list(cards) for seat, cards in drawn.items()}
        self.picked = {seat: list(cards) for seat, cards in picked.items()}

    def draw(self, seat: int, pile: list[Card]) -> int:
        """Take the seat's next dictated draw, which must lie in its Supply."""
        return self._next(self.drawn.get(seat, []), pile, f"seat {seat} draws")

    def pick(self, seat: int, cards: list[Card]) -> int:
        """Take the seat's next dictated card, which must be one of the rank that was named."""
        return self._next(self.picked.get(seat, []), cards, f"seat {seat} commits")

    def check_all_used(self) -> None:
        """Refuse what was dictated beyond what the rules asked for."""
        for kind, rest in (("draw", self.drawn), ("commit", self.picked)):
            for seat, cards in rest.items():
                if cards:
                    raise ImpossibleChance(f"seat {seat} had no cause to {kind} {cards[0]}")

    @staticmethod
    def _next(dictated: list[Card], possible: list[Card], what: str) -> int:
        """Return the place of the first dictated card among the possible ones."""
        names = " ".join(str(card) for card in possible)
        if not dictated:
            raise ImpossibleChance(f"{what} a card that was not named, one of {names}")
        card = dictated.pop(0)
        if card not in possible:
            raise ImpossibleChance(f"{what} {card}, but it had to be one of {names}")
        return possible.index(card)


class Sizes(TypedDict):
    """How many cards every pile holds."""

    hand: list[int]
    supply: list[int]
    capture: list[int]
    stakes: list[int]
    committed: list[int]
    graveyard: int
    burned: int


class Knowledge(TypedDict):
    """What one seat may know (S11); cards are ids, sorted.

    `capture`, `committed` and `graveyard` are public by content. `hidden` names every zone whose
    cards the seat cannot see ("hand 1" of another, "supply 0", "stakes 2", "burned") and says how
    many of them are of which pool; `pools` says which cards these are, taken together, pool by
    pool. So the numbers given for a pool in `hidden` add up to the length of its entry in `pools`.
    A pool is "deal", or "2.1" for the first recycle of seat 2; pools without a card that is hidden
    from the seat are left out.
    """

    seat: int
    phase: str
    rounds: int
    participants: list[int]
    hand: tuple[int, ...]
    sizes: Sizes
    capture: list[tuple[int, ...]]
    committed: list[tuple[int, ...]]
    graveyard: tuple[int, ...]
    hidden: dict[str, dict[str, int]]
    pools: dict[str, tuple[int, ...]]


class SkirmishOracle:
    """One game of Skirmish.

    The piles are lists of cards without meaning in their order: the order of a face-down pile is
    decided when a card comes off it. `hand`, `supply`, `capture`, `stakes` and `committed` hold
    one list for each seat, `graveyard` and `burned` are common. `stakes` is the seat's War pile:
    the cards staked, the card committed to the War and the cards added in a tie. `committed` is
    the card committed to the skirmish, which stays on the table during a War.

    `phase` is "skirmish" or "war" when a decision is due, "over" after the end. `participants`
    lists the seats in the War, none outside of one. `rounds` counts the rounds that are complete.
    `eliminated` and `winners` list seats and are empty until the end; `truncated` tells that the
    round limit ended the game. `pool_of` says of every hidden card which pool it belongs to.

    `chance` may be replaced between two steps.
    """

    def __init__(
        self,
        num_players: int,
        supplies: Sequence[Sequence[Card]],
        burned: Sequence[Card],
        rules: SkirmishRules,
        chance: Chance,
    ) -> None:
        """S1: start from the cards as dealt; seat by seat, three are drawn as a hand."""
        if num_players not in DEAL_SIZES:
            raise ValueError(f"Skirmish is for 2 to 4 players, not {num_players}")
        if len(supplies) != num_players:
            raise ValueError(f"{num_players} players, but {len(supplies)} supplies")
        for supply in supplies:
            if len(supply) != DEAL_SIZES[num_players]:
                raise ValueError(f"dealt {len(supply)} cards, not {DEAL_SIZES[num_players]}")
        nothing: list[list[Card]] = [[] for _ in range(num_players)]
        self._set_up(rules, chance, nothing, supplies, nothing, (), burned)
        for seat in self.seats:
            self._refill(seat)

    @classmethod
    def at(
        cls,
        rules: SkirmishRules,
        chance: Chance,
        *,
        hands: Sequence[Sequence[Card]],
        supplies: Sequence[Sequence[Card]],
        captures: Sequence[Sequence[Card]],
        graveyard: Sequence[Card],
        burned: Sequence[Card] = (),
        rounds: int = 0,
        pools: Mapping[str, Sequence[Card]] | None = None,
    ) -> SkirmishOracle:
        """Start from the given position, before a skirmish; nothing is refilled first.

        Hidden cards belong to the pool "deal" unless `pools` puts them in another, named as in
        `Knowledge`. A ValueError says what is wrong with a position: a card doubled or missing,
        a hand over three, burned cards other than the two of S1, a player who is eliminated,
        a round limit that is reached, or nobody to commit a card.
        """
        game = object.__new__(cls)
        game._set_up(rules, chance, hands, supplies, captures, graveyard, burned)
        game.rounds = rounds
        for name, cards in (pools or {}).items():
            game._name_pool(name, cards)
        game._check_position()
        return game

    def copy(self) -> SkirmishOracle:
        """Return the same position as a game of its own; only `chance` is shared."""
        twin = object.__new__(SkirmishOracle)
        twin.rules = self.rules
        twin.chance = self.chance
        twin.num_players = self.num_players
        twin.hand = [list(cards) for cards in self.hand]
        twin.supply = [list(cards) for cards in self.supply]
        twin.capture = [list(cards) for cards in self.capture]
        twin.stakes = [list(cards) for cards in self.stakes]
        twin.committed = [list(cards) for cards in self.committed]
        twin.graveyard = list(self.graveyard)
        twin.burned = list(self.burned)
        twin.phase = self.phase
        twin.participants = list(self.participants)
        twin.rounds = self.rounds
        twin.eliminated = list(self.eliminated)
        twin.truncated = self.truncated
        twin.winners = list(self.winners)
        twin.pool_of = dict(self.pool_of)
        twin.recycles = list(self.recycles)
        return twin

    @property
    def seats(self) -> range:
        """All seats, also the eliminated ones."""
        return range(self.num_players)

    def zones(self) -> dict[str, list[tuple[int, ...]]]:
        """Return every zone as ids, sorted so that no order shows; common zones as one entry."""
        return {
            "hand": [ids(cards) for cards in self.hand],
            "supply": [ids(cards) for cards in self.supply],
            "capture": [ids(cards) for cards in self.capture],
            "stakes": [ids(cards) for cards in self.stakes],
            "committed": [ids(cards) for cards in self.committed],
            "graveyard": [ids(self.graveyard)],
            "burned": [ids(self.burned)],
        }

    def legal(self, seat: int) -> set[str]:
        """Return the ranks the seat may commit, or "wait" alone; nothing when the game is over."""
        if self.phase == "over":
            return set()
        # S2: every player with a hand commits a card. S5: every participant with a hand does.
        asked = self.phase == "skirmish" or seat in self.participants
        if asked and self.hand[seat]:
            return {card.rank for card in self.hand[seat]}
        return {WAIT}

    def step(self, choices: Mapping[int, str]) -> None:
        """Take the choices of all seats at once, and go on to the next decision or the end.

        Raises IllegalMove for choices that are not legal, or not of exactly all seats, and
        ImpossibleChance for a place that does not exist; either way nothing changes here.
        """
        if self.phase == "over":
            raise IllegalMove("the game is over")
        if set(choices) != set(self.seats):
            raise IllegalMove(f"choices of the seats {set(choices)}, not of {set(self.seats)}")
        for seat in self.seats:
            if choices[seat] not in self.legal(seat):
                raise IllegalMove(
                    f"seat {seat} may not choose {choices[seat]!r} in the phase {self.phase}"
                )
        trial = self.copy()
        trial._play(choices)
        vars(self).update(vars(trial))

    def totals(self) -> list[int]:
        """S9: what each seat holds in hand, Supply and Capture, whether it survives or not."""
        return [
            total(self.hand[seat] + self.supply[seat] + self.capture[seat]) for seat in self.seats
        ]

    def payoffs(self) -> list[Fraction]:
        """S12: the payoffs of all seats; a ValueError before the end."""
        if self.phase != "over":
            raise ValueError("the game is not over")
        sums = [Fraction(0) for _ in self.seats]
        for winner in self.winners:
            for seat in self.seats:
                # As if this winner were the only one. Read as: "each other player" means all at
                # the table, so the eliminated pay too.
                sums[seat] += 1 if seat == winner else -Fraction(1, self.num_players - 1)
        return [value / len(self.winners) for value in sums]

    def may_know(self, seat: int) -> Knowledge:
        """S11: all that the seat may know, see `Knowledge`."""
        hidden: dict[str, dict[str, int]] = {}
        for other in self.seats:
            if other != seat:
                hidden[f"hand {other}"] = self._count_pools(self.hand[other])
            # S11: Supplies are hidden from everyone, their owners too. So are the stakes: they are
            # staked blind, and face-down still at the only decision at which they are there.
            hidden[f"supply {other}"] = self._count_pools(self.supply[other])
            hidden[f"stakes {other}"] = self._count_pools(self.stakes[other])
        hidden["burned"] = self._count_pools(self.burned)

        pools: dict[str, tuple[int, ...]] = {}
        for name in sorted(set(self.pool_of.values())):
            cards = [card for card, pool in self.pool_of.items() if pool == name]
            unseen = [card for card in cards if card not in self.hand[seat]]
            if unseen:
                pools[name] = ids(unseen)

        return {
            "seat": seat,
            "phase": self.phase,
            "rounds": self.rounds,
            "participants": list(self.participants),
            "hand": ids(self.hand[seat]),
            "sizes": {
                "hand": [len(cards) for cards in self.hand],
                "supply": [len(cards) for cards in self.supply],
                "capture": [len(cards) for cards in self.capture],
                "stakes": [len(cards) for cards in self.stakes],
                "committed": [len(cards) for cards in self.committed],
                "graveyard": len(self.graveyard),
                "burned": len(self.burned),
            },
            "capture": [ids(cards) for cards in self.capture],
            "committed": [ids(cards) for cards in self.committed],
            "graveyard": ids(self.graveyard),
            "hidden": hidden,
            "pools": pools,
        }

    def _set_up(
        self,
        rules: SkirmishRules,
        chance: Chance,
        hands: Sequence[Sequence[Card]],
        supplies: Sequence[Sequence[Card]],
        captures: Sequence[Sequence[Card]],
        graveyard: Sequence[Card],
        burned: Sequence[Card],
    ) -> None:
        """Lay out the piles; every card that lies face-down is of the pool of the deal."""
        self.rules = rules
        self.chance = chance
        self.num_players = len(hands)
        if self.num_players not in DEAL_SIZES:
            raise ValueError(f"Skirmish is for 2 to 4 players, not {self.num_players}")
        if len(supplies) != self.num_players or len(captures) != self.num_players:
            raise ValueError("hands, supplies and captures are of different numbers of players")
        if rules.max_rounds < 1:
            raise ValueError(f"max_rounds must be at least 1, not {rules.max_rounds}")
        self.hand = [list(cards) for cards in hands]
        self.supply = [list(cards) for cards in supplies]
        self.capture = [list(cards) for cards in captures]
        self.stakes: list[list[Card]] = [[] for _ in self.seats]
        self.committed: list[list[Card]] = [[] for _ in self.seats]
        self.graveyard = list(graveyard)
        self.burned = list(burned)
        self.phase = "skirmish"
        self.participants: list[int] = []
        self.rounds = 0
        self.eliminated: list[int] = []
        self.truncated = False
        self.winners: list[int] = []
        self.recycles = [0 for _ in self.seats]
        self._account_for_every_card()
        self.pool_of: dict[Card, str] = {}
        for pile in [*self.hand, *self.supply, self.burned]:
            for card in pile:
                self.pool_of[card] = DEAL

    def _account_for_every_card(self) -> None:
        """Refuse a position in which a card is missing or doubled, or the wrong number burned."""
        piles = [*self.hand, *self.supply, *self.capture, self.graveyard, self.burned]
        named = [card.id for pile in piles for card in pile]
        for card in ALL_CARDS:
            if named.count(card.id) != 1:
                raise ValueError(f"card {card.id} ({card}) is there {named.count(card.id)} times")
        if len(named) != len(ALL_CARDS):
            raise ValueError("a card that does not exist is named")
        # S1: with 4, the 2 left over are burned unseen.
        left_over = len(ALL_CARDS) - self.num_players * DEAL_SIZES[self.num_players]
        if len(self.burned) != left_over:
            raise ValueError(f"{len(self.burned)} cards are burned at setup, not {left_over}")

    def _name_pool(self, name: str, cards: Sequence[Card]) -> None:
        """Put hidden cards of one seat into the pool of an earlier recycle of that seat."""
        seat, _, number = name.partition(".")
        if not (seat.isdigit() and int(seat) in self.seats and number.isdigit()):
            raise ValueError(f"not the name of a pool: {name!r}")
        for card in cards:
            if card not in self.hand[int(seat)] + self.supply[int(seat)]:
                raise ValueError(f"{card} is not hidden with seat {seat}")
            self.pool_of[card] = name
        self.recycles[int(seat)] = max(self.recycles[int(seat)], int(number))

    def _check_position(self) -> None:
        """Refuse a position that no game can go on from."""
        if any(len(cards) > HAND_SIZE for cards in self.hand):
            raise ValueError(f"a hand holds more than {HAND_SIZE} cards")
        if any(self._is_eliminated(seat) for seat in self.seats):
            raise ValueError("a player is eliminated")
        if not any(self.hand):
            raise ValueError("nobody has a card to commit")
        if not 0 <= self.rounds < self.rules.max_rounds:
            raise ValueError(f"{self.rounds} rounds are not under {self.rules.max_rounds}")

    def _count_pools(self, cards: Iterable[Card]) -> dict[str, int]:
        """Count the hidden cards of a zone by the pool they belong to."""
        counts: dict[str, int] = {}
        for card in cards:
            name = self.pool_of[card]
            counts[name] = counts.get(name, 0) + 1
        return counts

    def _play(self, choices: Mapping[int, str]) -> None:
        """Carry out legal choices, to the next decision or the end."""
        piles = self.committed if self.phase == "skirmish" else self.stakes
        for seat in self.seats:
            if choices[seat] != WAIT:
                card = self._card_of_rank(seat, choices[seat])
                self.hand[seat].remove(card)
                piles[seat].append(card)
        if self.phase == "skirmish":
            self._resolve_skirmish()
        else:
            self._resolve_war()

    def _card_of_rank(self, seat: int, rank: str) -> Card:
        """Among equal ranks in hand the card is drawn at random; a Joker's rank is `*`."""
        cards = in_order(card for card in self.hand[seat] if card.rank == rank)
        place = self.chance.pick(seat, list(cards))
        if place not in range(len(cards)):
            raise ImpossibleChance(f"seat {seat} picks place {place} of {len(cards)} cards")
        return cards[place]

    def _reveal(self, cards: Iterable[Card]) -> None:
        """Turn cards up for all to see: they are of no pool any more."""
        for card in cards:
            del self.pool_of[card]

    def _seats_with(self, ranks: str) -> list[int]:
        """Return the seats whose card on the field is of one of the ranks."""
        return [seat for seat in self.seats for card in self.committed[seat] if card.rank in ranks]

    def _resolve_skirmish(self) -> None:
        """S2, S3: reveal the field and find out who takes the pot, or who goes to War for it."""
        for seat in self.seats:
            self._reveal(self.committed[seat])
        jokers = self._seats_with(JOKER)
        assassins = self._seats_with(ASSASSIN)
        royalty = self._seats_with(ROYALTY)
        knights = self._seats_with(KNIGHT)

        if jokers:
            # (a) One Joker or two, whatever else lies there. Read as: "all players at the table"
            # are in, also one who had no card to commit (which no game from the deal meets).
            self._go_to_war(list(self.seats))
        elif assassins and royalty:
            # (b) The Jacks decide before the Aces do: one or several Jacks leave every Ace out,
            # whatever the numbers of Aces and of Royalty. The King and the Queen never win here.
            if len(knights) == 1:
                self._take_pot(knights[0])
            elif len(knights) > 1:
                self._go_to_war(knights)
            elif len(assassins) == 1:
                self._take_pot(assassins[0])
            else:
                self._go_to_war(assassins)
        else:
            # (c) Without an Ace, or without Royalty, values decide: an Ace is then a plain 1 and a
            # Jack a plain 11. No Joker is here. All Aces tie like any other highest value.
            values = [card.value for seat in self.seats for card in self.committed[seat]]
            highest = [
                seat
                for seat in self.seats
                for card in self.committed[seat]
                if card.value == max(values)
            ]
            if len(highest) == 1:
                self._take_pot(highest[0])
            else:
                self._go_to_war(highest)

    def _go_to_war(self, participants: list[int]) -> None:
        """S5: stake cards blind, then commit a hand card each, if anyone has one."""
        self.participants = participants
        for seat in participants:
            # Read as: the size of the table counts, not the number of participants.
            for _ in range(STAKES[self.num_players]):
                card = self._take_from_supply(seat)
                if card is None:
                    break  # S7: a player stakes what there is.
                self.stakes[seat].append(card)
        if any(self.hand[seat] for seat in participants):
            self.phase = "war"
        else:
            self._resolve_war()

    def _resolve_war(self) -> None:
        """S5 to S7: reveal the War piles; the highest sum wins, the tied add cards."""
        # S5 reveals hand cards before stakes, but nobody decides anything in between.
        for seat in self.participants:
            self._reveal(self.stakes[seat])
        while True:
            # S5: the card committed to the skirmish is not in the sum.
            sums = {seat: war_sum(self.stakes[seat]) for seat in self.participants}
            # S7: no sum ever falls when a card is added, so whoever was behind stays behind: to
            # count all participants again, or only the tied, is the same.
            tied = [seat for seat in self.participants if sums[seat] == max(sums.values())]
            if len(tied) == 1:
                self._take_pot(tied[0])
                return
            # S7: the tied at the top add, all of them, one card each. Who has nothing to add
            # stands on the sum, and is still among the tied if no other gets ahead (a Joker added
            # to Jokers only is worth nothing): the others then go on adding.
            anyone_added = False
            for seat in tied:
                card = self._take_from_supply(seat)
                if card is not None:
                    self._reveal([card])
                    self.stakes[seat].append(card)
                    anyone_added = True
            if not anyone_added:
                self._burn_all()
                return

    def _take_pot(self, winner: int) -> None:
        """S4, S7: pot and own War cards to the winner, the losers' War cards to the Graveyard."""
        for seat in self.seats:
            # S4: the pot is all committed cards, also of those outside the War.
            self.capture[winner].extend(self.committed[seat])
            self.committed[seat].clear()
            # Read as: War cards are the whole War pile: stakes, hand card and added cards.
            if seat == winner:
                self.capture[winner].extend(self.stakes[seat])
            else:
                self.graveyard.extend(self.stakes[seat])
            self.stakes[seat].clear()
        self._end_round()

    def _burn_all(self) -> None:
        """S7: the pot and all War cards burn."""
        for seat in self.seats:
            self.graveyard.extend(self.committed[seat])
            self.graveyard.extend(self.stakes[seat])
            self.committed[seat].clear()
            self.stakes[seat].clear()
        self._end_round()

    def _take_from_supply(self, seat: int) -> Card | None:
        """S8: take a card off the Supply, and recycle first if it is empty; None if there is none.

        Read as: nothing is recycled before a card is needed, so a Supply may stay empty between
        rounds. What lies on the table in a War, the pot included, is in no Capture pile yet.
        """
        if not self.supply[seat] and self.rules.recycle_captures:
            self._recycle(seat)
        if not self.supply[seat]:
            return None
        pile = in_order(self.supply[seat])
        place = self.chance.draw(seat, list(pile))
        if place not in range(len(pile)):
            raise ImpossibleChance(f"seat {seat} draws place {place} of {len(pile)} cards")
        self.supply[seat].remove(pile[place])
        return pile[place]

    def _recycle(self, seat: int) -> None:
        """S8, S11: the Capture pile becomes the Supply, known by content: a pool of its own."""
        if not self.capture[seat]:
            return
        self.recycles[seat] += 1
        for card in self.capture[seat]:
            self.pool_of[card] = f"{seat}.{self.recycles[seat]}"
        self.supply[seat].extend(self.capture[seat])
        self.capture[seat].clear()

    def _refill(self, seat: int) -> None:
        """S2: draw up to three cards, as far as there are any."""
        while len(self.hand[seat]) < HAND_SIZE:
            card = self._take_from_supply(seat)
            if card is None:
                return
            self.hand[seat].append(card)

    def _is_eliminated(self, seat: int) -> bool:
        """S9: nothing left to play; without recycling, the Captures do not count."""
        if self.rules.recycle_captures:
            return not (self.hand[seat] or self.supply[seat] or self.capture[seat])
        return not (self.hand[seat] or self.supply[seat])

    def _end_round(self) -> None:
        """S2: everyone refills; only then S9 and S10 may end the game."""
        self.phase = "skirmish"
        self.participants = []
        self.rounds += 1
        for seat in self.seats:
            self._refill(seat)
        self.eliminated = [seat for seat in self.seats if self._is_eliminated(seat)]
        if self.eliminated:
            # Read as: an elimination in the last round of the limit ends the game by S9.
            survivors = [seat for seat in self.seats if seat not in self.eliminated]
            # S9: if all are eliminated at once, all are scored (with what they captured).
            self._end_game(survivors or list(self.seats))
        elif self.rounds >= self.rules.max_rounds:
            self.truncated = True
            self._end_game(list(self.seats))

    def _end_game(self, scored: list[int]) -> None:
        """S9: the highest total among the scored wins, equal totals share."""
        self.phase = "over"
        totals = self.totals()
        highest = max(totals[seat] for seat in scored)
        self.winners = [seat for seat in scored if totals[seat] == highest]
