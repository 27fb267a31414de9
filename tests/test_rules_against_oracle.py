"""The engine against the referee of ``oracle.py``: whole games in lockstep.

Both play the same game. The engine decides what chance brings; what it drew is read off its zones
and dictated to the referee, which checks that it can be. After every action the legal actions, the
zones, the phase, the end and its outcome must agree.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import pytest
from conftest import (
    ALL_CARDS,
    TextAction,
    Zones,
    completed,
    in_order,
    legal_actions,
    new_env,
    total,
    value,
)
from oracle import ImpossibleChance, OracleGame, OracleRules

from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv

Chooser = Callable[[Sequence[TextAction], Zones, random.Random], TextAction]

SWITCHES = list(itertools.product((3, 4, 5, 6, 7, 8), (True, False), (False, True)))
"""Hand size, idle_ace (D4), eager_reshuffle (D10)."""

KEY_SPIES_TO_WIN = (7, 1, 4, 6, 9, 12)

GAMES_BY_HAND_SIZE = {3: 24, 4: 20, 5: 20, 6: 14, 7: 10, 8: 10}
"""Random games for each pair of switches and each way to play: 98 x 4 x 6 = 2352 in all."""

ADVERSARIAL_GAMES = 3
"""Games for each kind of adversarial start and each rule set: 3 x 24 x 12 = 864 in all."""


# --- Ways to play ---------------------------------------------------------------------------------


def _any(actions: Sequence[TextAction], zones: Zones, rng: random.Random) -> TextAction:
    return rng.choice(actions)


def _best(
    actions: Sequence[TextAction], rng: random.Random, worth: Callable[[TextAction], float]
) -> TextAction:
    """An action of the highest worth, and now and then any action at all."""
    if rng.random() < 0.05:
        return rng.choice(actions)
    best = max(worth(action) for action in actions)
    return rng.choice([action for action in actions if worth(action) == best])


def _recruiter(actions: Sequence[TextAction], zones: Zones, rng: random.Random) -> TextAction:
    """Recruit whenever possible; retire or not by the toss of a coin."""
    retires = rng.random() < 0.5
    return _best(
        actions, rng, lambda action: action[0] == "recruit" or (action[0] == "retire") == retires
    )


def _careful(actions: Sequence[TextAction], zones: Zones, rng: random.Random) -> TextAction:
    """Stay strong: spend as little value as possible, never retire, recruit what is strong."""

    def worth(action: TextAction) -> float:
        kind, cards = action
        gain = total(zones["spy"]) if kind == "recruit" else 0
        return gain - total(cards)

    return _best(actions, rng, worth)


def _retirer(actions: Sequence[TextAction], zones: Zones, rng: random.Random) -> TextAction:
    """Thin out the deck: counter with few cards, retire as many as possible."""

    def worth(action: TextAction) -> float:
        kind, cards = action
        return len(cards) if kind == "retire" else (kind == "counter") - len(cards)

    return _best(actions, rng, worth)


def _spender(actions: Sequence[TextAction], zones: Zones, rng: random.Random) -> TextAction:
    """Play as many cards as possible, idle Aces and all, and give up Aces of the Draw Deck."""

    def worth(action: TextAction) -> float:
        kind, cards = action
        if kind == "assassinate":
            return cards[0] in zones["draw_deck"]
        return len(cards) + (kind == "recruit") * 0.5 - 10 * (kind == "retire")

    return _best(actions, rng, worth)


def _hoarder(actions: Sequence[TextAction], zones: Zones, rng: random.Random) -> TextAction:
    """Recruit with the lowest cards, retire the lowest only, give up Aces in hand."""

    def worth(action: TextAction) -> float:
        kind, cards = action
        if kind == "assassinate":
            return cards[0] in zones["hand"]
        if kind == "retire":
            return 5.5 - value(cards[0])
        return (kind == "recruit") * 20 - max(map(value, cards), default=0)

    return _best(actions, rng, worth)


CHOOSERS: dict[str, Chooser] = {
    "any": _any,
    "recruiter": _recruiter,
    "careful": _careful,
    "retirer": _retirer,
    "spender": _spender,
    "hoarder": _hoarder,
}


# --- Lockstep -------------------------------------------------------------------------------------


class Lockstep:
    """One game that the engine and the referee play together."""

    def __init__(
        self, env: DeckOfSpiesEnv, oracle: OracleGame, info: dict[str, Any], label: str
    ) -> None:
        self.env = env
        self.oracle = oracle
        self.label = label
        self.zones = env.zones()
        self.last_action = "the start"
        self.before = self.zones
        self.events: Counter[str] = Counter()
        self.actions: dict[TextAction, int] = {}
        self._compare(info, terminated=False, reward=0.0)

    @property
    def over(self) -> bool:
        return self.oracle.phase == "over"

    def play(self, action: TextAction) -> None:
        """Take a legal action on both sides and compare everything that can be seen."""
        kind, cards = action
        self.before = before = self.zones
        self.last_action = f"{kind} {' '.join(cards)}"
        _, reward, terminated, truncated, info = self.env.step(self.actions[action])
        self.zones = after = self.env.zones()
        kept = set() if kind == "assassinate" else set(before["hand"]) - set(cards)
        drawn = set(after["hand"]) - kept
        deals_with_spy = kind in ("counter", "recruit", "assassinate")
        next_spy = after["spy"][0] if deals_with_spy and after["spy"] else None
        phase = self.oracle.phase
        try:
            self.oracle.step(kind, cards, next_spy=next_spy, drawn=in_order(drawn))
        except ImpossibleChance as error:
            self._fail(f"chance: {error}")
        if truncated:
            self._fail("the engine truncated the game")
        self._compare(info, terminated, float(reward))
        self._note(kind, cards, phase, drawn)

    def _compare(self, info: dict[str, Any], terminated: bool, reward: float) -> None:
        oracle = self.oracle
        if self.zones != oracle.zones():
            self._fail(f"zones: the referee has {oracle.zones()}")
        if self.env.phase != oracle.phase or terminated != self.over:
            self._fail(
                f"phase {self.env.phase}, terminated {terminated}; the referee: {oracle.phase}"
            )
        if not np.array_equal(info["action_mask"], self.env.action_masks()):
            self._fail("the mask in info is not that of action_masks()")
        self.actions = legal_actions(self.env)
        expected = oracle.legal_actions()
        if set(self.actions) != expected:
            self._fail(
                f"legal in the engine alone: {sorted(set(self.actions) - expected)}, for the "
                f"referee alone: {sorted(expected - set(self.actions))}"
            )
        if not self.over and not expected:
            self._fail("no legal action, and the game is not over")
        ending = {key: info[key] for key in info if key != "action_mask"}
        if self.over:
            won = oracle.outcome == "win"
            wanted = {
                "outcome": oracle.outcome,
                "is_success": won,
                "key_spies": oracle.key_spies,
                "turns": oracle.turns,
            }
            if ending != wanted or reward != float(won):
                self._fail(f"end {ending}, reward {reward}; the referee: {wanted}")
        elif ending or reward:
            self._fail(f"the game goes on, with {ending} and reward {reward}")

    def _note(self, kind: str, cards: Sequence[str], phase: str, drawn: set[str]) -> None:
        """Count what happened, to know that the games meet all the rules."""
        before, after = self.before, self.zones
        self.events[kind] += 1
        self.events[f"{kind} after the last spy"] += phase == "retire" and not before["spy"]
        self.events["steps"] += 1
        if kind == "assassinate":
            for zone in ("hand", "draw_deck", "draw_discard"):
                self.events[f"Ace given up from {zone}"] += cards[0] in before[zone]
        if kind == "retire":
            self.events[f"{len(cards)} retired"] += 1
            self.events["Aces retired"] += cards[0][0] == "A"
            self.events["Key Spies retired"] += cards[0][0] in "JQK"
        if kind == "recruit" and "A" + before["spy"][0][1] in cards:
            self.events["recruit with the Ace of the suit"] += 1
        if drawn - set(before["draw_deck"]):
            self.events["reshuffle"] += 1
        if drawn and not after["draw_deck"]:
            self.events["Draw Deck left empty"] += 1
        if self.env.phase == "act" and len(after["hand"]) < self.env.rules.hand_size:
            self.events["short hand"] += 1
        if self.over:
            self.events[f"outcome {self.oracle.outcome}"] += 1

    def _fail(self, what: str) -> NoReturn:
        pytest.fail(
            f"{self.label}: {what}\nafter {self.last_action}\nfrom {self.before}\n"
            f"engine: {self.env.phase} {self.zones}\nrules: {self.env.rules}",
            pytrace=False,
        )


def _rules(switches: tuple[int, bool, bool], key_spies_to_win: int) -> dict[str, Any]:
    hand_size, idle_ace, eager_reshuffle = switches
    return {
        "hand_size": hand_size,
        "idle_ace": idle_ace,
        "eager_reshuffle": eager_reshuffle,
        "key_spies_to_win": key_spies_to_win,
    }


def _named(switches: tuple[int, bool, bool]) -> str:
    hand_size, idle_ace, eager_reshuffle = switches
    return f"hand{hand_size}-idle{idle_ace:d}-eager{eager_reshuffle:d}"


def play_from_deal(switches: tuple[int, bool, bool], chooser: str, seed: int) -> Counter[str]:
    """A whole game from the deal of a seed; what happened in it."""
    rules = _rules(switches, KEY_SPIES_TO_WIN[seed % len(KEY_SPIES_TO_WIN)])
    env = new_env(rules)
    _, info = env.reset(seed=seed)
    zones = env.zones()
    oracle = OracleGame.deal(OracleRules(**rules), zones["hand"], zones["spy"][0])
    game = Lockstep(env, oracle, info, f"{_named(switches)} {chooser} seed {seed}")
    return _play_out(game, chooser, random.Random(f"{switches} {chooser} {seed}"))


def _play_out(game: Lockstep, chooser: str, rng: random.Random) -> Counter[str]:
    choose = CHOOSERS[chooser]
    while not game.over:
        game.play(choose(sorted(game.actions), game.zones, rng))
    if game.oracle.turns > 36 or game.events["steps"] > 72:
        pytest.fail(f"{game.label}: {game.events['steps']} decisions in {game.oracle.turns} turns")
    return game.events


@pytest.mark.parametrize("chooser", CHOOSERS)
@pytest.mark.parametrize("switches", SWITCHES, ids=_named)
def test_random_games(switches: tuple[int, bool, bool], chooser: str) -> None:
    """D1 to D13 from the deal to the end, for all hand sizes and switches."""
    for seed in range(GAMES_BY_HAND_SIZE[switches[0]]):
        play_from_deal(switches, chooser, seed)


def test_the_games_meet_every_rule() -> None:
    """What is compared must happen: each ending, each pile an Ace can come from, and so on."""
    events: Counter[str] = Counter()
    for chooser in CHOOSERS:
        for seed in range(12):
            events += play_from_deal((5, True, False), chooser, seed)
            events += play_from_deal((6, True, True), chooser, seed)
    for event in (
        "counter",
        "recruit",
        "recruit with the Ace of the suit",
        "assassinate",
        "Ace given up from hand",
        "Ace given up from draw_deck",
        "Ace given up from draw_discard",
        "pass",
        "retire",
        "2 retired",
        "3 retired",
        "Aces retired",
        "Key Spies retired",
        "pass after the last spy",
        "retire after the last spy",
        "reshuffle",
        "Draw Deck left empty",
        "short hand",
        "outcome win",
        "outcome loss",
        "outcome no_double_agent",
    ):
        assert events[event] > 0, f"no {event} in {events['steps']} steps"


# --- Adversarial starts ---------------------------------------------------------------------------

Start = tuple[Zones, str]
"""Zones and phase."""

LOW_CARDS = tuple(card for card in ALL_CARDS if value(card) < 5)
SPIES = tuple(card for card in ALL_CARDS if value(card) >= 5)
ACES = ALL_CARDS[:4]


def _scattered(
    rng: random.Random, hand: Sequence[str], spy: str | None, piles: Sequence[str], spies_left: int
) -> Zones:
    """Zones with this hand and spy, so many unseen spies, and the other cards on the piles."""
    zones: dict[str, list[str]] = {"hand": list(hand), "spy": [spy] if spy else []}
    unused = [card for card in ALL_CARDS if card not in hand and card != spy]
    unseen = [card for card in unused if card in SPIES]
    zones["spy_deck"] = rng.sample(unseen, min(spies_left, len(unseen))) if spy else []
    for card in unused:
        if card not in zones["spy_deck"]:
            pile = rng.choice(piles)
            if pile == "removed" and card not in ACES:
                pile = "spy_discard"
            zones.setdefault(pile, []).append(card)
    return completed(zones)


EVERYWHERE = ("draw_deck", "draw_discard", "spy_discard", "removed")


def _many_aces(rng: random.Random, hand_size: int) -> Start:
    """All four Aces in hand, or as many as fit."""
    aces = rng.sample(ACES, min(4, hand_size))
    others = rng.sample([card for card in ALL_CARDS if card not in ACES], hand_size)
    spy = others.pop() if value(others[-1]) >= 5 else rng.choice(SPIES)
    hand = (aces + [card for card in others if card != spy])[:hand_size]
    return _scattered(rng, hand, spy, EVERYWHERE, rng.randrange(12)), "act"


def _no_aces(rng: random.Random, hand_size: int) -> Start:
    """No Ace in the own cards: each is gone or retired; D8 is near."""
    spy = rng.choice(SPIES)
    hand = rng.sample([card for card in ALL_CARDS[4:] if card != spy], hand_size)
    piles = ("draw_deck", "draw_discard", "spy_discard")
    zones = _scattered(rng, hand, spy, piles, rng.randrange(12))
    for zone in ("draw_deck", "draw_discard"):
        zones[zone] = tuple(card for card in zones[zone] if card not in ACES)
    return completed(zones), "act"


def _short_deck(rng: random.Random, hand_size: int) -> Start:
    """Hardly more own cards than fit a hand, in a few piles."""
    spy = rng.choice(SPIES)
    others = [card for card in ALL_CARDS if card != spy]
    own = rng.sample(others, rng.randint(1, hand_size + 2))
    held = rng.randint(0, min(hand_size, len(own)))
    cut = rng.randint(held, len(own))
    zones = {
        "hand": own[:held],
        "draw_deck": own[held:cut],
        "draw_discard": own[cut:],
        "spy": [spy],
        "spy_deck": rng.sample([card for card in SPIES if card not in [*own, spy]], 10),
    }
    return completed(zones), "act"


def _empty_piles(rng: random.Random, hand_size: int) -> Start:
    """Draw Deck or Draw Discard or both empty (D10, D11)."""
    spy = rng.choice(SPIES)
    hand = rng.sample([card for card in ALL_CARDS if card != spy], rng.randint(1, hand_size))
    piles = rng.choice(
        (("spy_discard",), ("draw_deck", "spy_discard"), ("draw_discard", "spy_discard"))
    )
    return _scattered(rng, hand, spy, piles, rng.randrange(15)), "act"


def _four_of_a_rank(rng: random.Random, hand_size: int) -> Start:
    """Four of a rank in hand, so that up to four can be retired (D9)."""
    rank = rng.choice("A23456789TJQK")
    quartet = [card for card in ALL_CARDS if card[0] == rank][: min(4, hand_size)]
    spy = rng.choice([card for card in SPIES if card not in quartet])
    others = [card for card in ALL_CARDS if card not in (*quartet, spy)]
    hand = quartet + rng.sample(others, hand_size - len(quartet))
    return _scattered(rng, hand, spy, EVERYWHERE, rng.randrange(10)), "act"


def _two_ranks(rng: random.Random, hand_size: int) -> Start:
    """A hand of two ranks only, against a spy of one of them or near them."""
    ranks = rng.sample("A23456789TJQK", 2)
    pool = [card for card in ALL_CARDS if card[0] in ranks]
    hand = rng.sample(pool, min(hand_size, 7))
    spy = rng.choice([card for card in SPIES if card not in hand])
    return _scattered(rng, hand, spy, EVERYWHERE, rng.randrange(10)), "act"


def _one_suit(rng: random.Random, hand_size: int) -> Start:
    """A hand mostly of the spy's suit, with its Ace: many recruits, idle Aces among them (D4)."""
    suit = rng.choice("cdhs")
    in_suit = [card for card in ALL_CARDS if card[1] == suit]
    spy = rng.choice(in_suit[4:])
    low = [card for card in in_suit[1:8] if card != spy]
    hand = [in_suit[0], *rng.sample(low, min(hand_size - 1, len(low)))]
    if rng.random() < 0.5:
        hand[-1] = rng.choice([card for card in ALL_CARDS if card[1] != suit])
    return _scattered(rng, hand, spy, EVERYWHERE, rng.randrange(10)), "act"


def _retire_start(rng: random.Random, hand_size: int) -> Start:
    """Begin with the decision to retire (D9)."""
    rank = rng.choice("A23456789TJQK")
    same = rng.sample([card for card in ALL_CARDS if card[0] == rank], 4)
    count = rng.randint(2, min(4, hand_size - 1))
    spy = rng.choice([card for card in SPIES if card not in same])
    others = [card for card in ALL_CARDS if card not in (*same[:count], spy)]
    hand = same[:count] + rng.sample(others, rng.randint(0, hand_size - 1 - count))
    return _scattered(rng, hand, spy, EVERYWHERE, rng.randrange(10)), "retire"


def _last_retire(rng: random.Random, hand_size: int) -> Start:
    """The retire decision after the last spy, with Key Spies to lose (D9, D12)."""
    rank = rng.choice("JQK")
    count = min(rng.choice((2, 3, 4)), hand_size - 1)
    hand = [card for card in ALL_CARDS if card[0] == rank][:count]
    return _scattered(rng, hand, None, EVERYWHERE, 0), "retire"


def _last_spies(rng: random.Random, hand_size: int) -> Start:
    """One or two spies left and 6, 7 or 8 Key Spies owned: the border between win and loss."""
    key_spies = rng.sample(ALL_CARDS[40:], 12)
    owned, spies = key_spies[:6], key_spies[6:8]
    hand = owned[: min(hand_size, rng.randint(1, 6))]
    zones = {
        "hand": hand,
        "draw_deck": owned[len(hand) :],
        "draw_discard": rng.sample(ALL_CARDS[:40], rng.randrange(8)),
        "spy": spies[:1],
        "spy_deck": spies[1 : rng.randint(1, 2)],
    }
    return completed(zones), "act"


def _unreachable(rng: random.Random, hand_size: int) -> Start:
    """Kings before 5s, low cards in the Spy Discard, a hand of any size: what no game leads to."""
    spy = rng.choice(SPIES[-8:])
    hand = rng.sample([card for card in ALL_CARDS if card != spy], rng.randint(0, hand_size))
    piles = rng.sample(EVERYWHERE, rng.randint(1, 4))
    return _scattered(rng, hand, spy, piles, rng.choice((0, 1, 5, 20, 35))), "act"


def _weak_hand(rng: random.Random, hand_size: int) -> Start:
    """Assassinate again and again, at last without an Ace (D7, D8)."""
    spy = rng.choice(SPIES[-12:])
    hand = rng.sample(LOW_CARDS[:8], rng.randint(0, min(3, hand_size)))
    piles = rng.choice((("draw_deck",), ("draw_discard",), ("draw_deck", "draw_discard")))
    zones: dict[str, list[str]] = {"hand": hand, "spy": [spy]}
    zones["spy_deck"] = [card for card in SPIES[-24:] if card != spy]
    for card in LOW_CARDS[:12]:
        if card not in hand:
            zones.setdefault(rng.choice(piles), []).append(card)
    return completed(zones), "act"


STARTS: dict[str, Callable[[random.Random, int], Start]] = {
    "many_aces": _many_aces,
    "no_aces": _no_aces,
    "short_deck": _short_deck,
    "empty_piles": _empty_piles,
    "four_of_a_rank": _four_of_a_rank,
    "two_ranks": _two_ranks,
    "one_suit": _one_suit,
    "retire_start": _retire_start,
    "last_retire": _last_retire,
    "last_spies": _last_spies,
    "unreachable": _unreachable,
    "weak_hand": _weak_hand,
}


def has_legal_action(zones: Zones, phase: str) -> bool:
    """D7, D8: the hand reaches the spy, or an Ace is left; a retire decision can always pass."""
    own = (*zones["hand"], *zones["draw_deck"], *zones["draw_discard"])
    strong = total(zones["hand"]) >= total(zones["spy"])
    return phase == "retire" or strong or any(card in ACES for card in own)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("switches", SWITCHES, ids=_named)
def test_games_from_adversarial_starts(switches: tuple[int, bool, bool], start: str) -> None:
    """D1 to D13 from positions that are rare or that no game leads to."""
    choosers = list(CHOOSERS)
    for seed in range(ADVERSARIAL_GAMES):
        rng = random.Random(f"{switches} {start} {seed}")
        zones, phase = STARTS[start](rng, switches[0])
        while not has_legal_action(zones, phase):
            zones, phase = STARTS[start](rng, switches[0])
        rules = _rules(switches, rng.choice(KEY_SPIES_TO_WIN))
        env = new_env(rules)
        _, info = env.reset(seed=seed, options={"zones": zones, "phase": phase})
        assert env.zones() == zones, "the position is taken exactly as given"
        oracle = OracleGame(OracleRules(**rules), zones, phase)
        chooser = rng.choice(choosers)
        label = f"{_named(switches)} {start} {chooser} seed {seed}"
        _play_out(Lockstep(env, oracle, info, label), chooser, rng)


def _spoilt(rng: random.Random, zones: Zones) -> Zones:
    """The zones with one random change, which may or may not leave a position."""
    spoilt = {zone: list(cards) for zone, cards in zones.items()}
    change = rng.choice(("none", "move", "drop", "double", "weaken"))
    full = [zone for zone, cards in spoilt.items() if cards]
    if change == "move":
        source = rng.choice(full)
        card = spoilt[source].pop(rng.randrange(len(spoilt[source])))
        spoilt[rng.choice(list(spoilt))].append(card)
    elif change == "drop":
        source = rng.choice(full)
        spoilt[source].pop(rng.randrange(len(spoilt[source])))
    elif change == "double":
        spoilt[rng.choice(list(spoilt))].append(rng.choice(ALL_CARDS))
    elif change == "weaken":
        for zone in ("hand", "draw_deck", "draw_discard"):
            low = [card for card in spoilt[zone] if card in ACES]
            spoilt["removed"] += low
            spoilt[zone] = [card for card in spoilt[zone] if card not in low]
        spoilt["draw_discard"] += spoilt["hand"][1:]
        spoilt["hand"] = spoilt["hand"][:1]
    return {zone: tuple(cards) for zone, cards in spoilt.items()}


def test_both_refuse_the_same_starts() -> None:
    """A position is refused for the same reasons: cards missing or doubled, no legal action."""
    refused = Counter[bool]()
    for seed in range(1500):
        rng = random.Random(seed)
        switches = rng.choice(SWITCHES)
        zones, phase = rng.choice(list(STARTS.values()))(rng, switches[0])
        zones = _spoilt(rng, zones)
        rules = _rules(switches, 7)
        env = new_env(rules)
        # In the retire phase a card at least has been played, so the hand is not full.
        too_many = phase == "retire" and len(zones["hand"]) >= switches[0]
        try:
            OracleGame(OracleRules(**rules), zones, phase)
            expected = too_many
        except ValueError:
            expected = True
        try:
            env.reset(seed=0, options={"zones": zones, "phase": phase})
            found = False
        except ValueError:
            found = True
        assert found == expected, f"seed {seed}: {phase} {zones} {rules}"
        refused[found] += 1
    assert min(refused[True], refused[False]) > 200
