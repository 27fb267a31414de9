"""The engine of Skirmish against the referee of ``skirmish_oracle.py``: whole games in lockstep.

Both play the same deal with the same chance: the random streams of the engine, replayed in plain
Python, tell the referee which card comes off a Supply and which of several equal ranks is taken.
After every step everything must be equal: piles, what is legal, who fights, and how it ended. What
each seat may know (S11) is compared at a sample of the steps, as views and as observations.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from skirmish_oracle import ALL_CARDS, DEAL_SIZES, Card, Knowledge, SkirmishOracle, SkirmishRules
from skirmish_tools import (
    DEALT,
    LATEST,
    PREVIOUS,
    RANKS,
    WAIT,
    ReplayedChance,
    batches_of,
    dealt,
    ended,
    ids_in,
    mask_of,
    random_actions,
    views_of,
)

from deck_of_spies_env.skirmish.games import Games
from deck_of_spies_env.skirmish.observations import observation_layout

GAMES = {500: 1500, 10: 500}
"""Games by round limit, for each number of players and each setting of the switch."""

EVERY = 60
"""What the seats may know is compared at one step in so many."""

PHASES = ("skirmish", "war", "over")
ACTION_OF = {rank: action for action, rank in enumerate(RANKS)} | {"wait": WAIT}
BIT_OF = {text: 1 << action for text, action in ACTION_OF.items()}

# --- Ways to play ---------------------------------------------------------------------------------

# How much a seat likes each action: Ace to King, Joker, wait. Ties are broken at random.
STYLES = {
    "any": np.zeros(15),
    "highest": np.arange(15) * 1.0 * (np.arange(15) != 13),
    "lowest": -np.arange(15) * 1.0 * (np.arange(15) != 13),
    "schemer": np.array([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0.0]),  # Joker, Ace, Jack
    "courtier": np.array([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 0, 0.0]),  # for intrigues
    "miser": np.array([-2, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, -3, 0.0]),  # keeps them
}
MISTAKES = 0.05


def likings(num_games: int, num_players: int) -> npt.NDArray[np.float64]:
    """How each seat of each game plays: all seats alike in most games, each its own way in some."""
    table = np.stack(list(STYLES.values()))
    number = np.arange(num_games)
    styles = np.repeat((number % 7)[:, None], num_players, axis=1)
    own_ways = np.random.default_rng(num_players).integers(6, size=styles.shape)
    return table[np.where(styles == 6, own_ways, styles)]


def chosen_actions(
    games: Games, liked: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """The action that each seat likes best, and now and then any."""
    best = np.where(games.masks != 0, liked + 0.5 * rng.random(liked.shape), -np.inf)
    mistaken = rng.random(liked.shape[:2]) < MISTAKES
    return np.where(mistaken, random_actions(games, rng), best.argmax(axis=2))


# --- Lockstep -------------------------------------------------------------------------------------


def rows_of(games: Games) -> list[tuple[Any, ...]]:
    """What is compared of each game of the engine."""
    states, seats = games.states, slice(0, games.num_players)
    per_seat = ("hand", "supply", "capture", "stakes", "committed")
    columns = [states[name][:, seats].tolist() for name in per_seat]
    columns += [states[name].tolist() for name in ("graveyard", "burned", "participants", "rounds")]
    columns.append([PHASES[phase] for phase in states["phase"].tolist()])
    columns.append((games.masks.astype(np.int64) << np.arange(15)).sum(axis=2).tolist())
    return list(zip(*columns, strict=True))


def row_of(oracle: SkirmishOracle) -> tuple[Any, ...]:
    """The same of the referee's game."""
    return (
        *([mask_of(pile) for pile in piles] for piles in all_piles(oracle)),
        [cards[0].id if cards else -1 for cards in oracle.committed],
        mask_of(oracle.graveyard),
        mask_of(oracle.burned),
        sum(1 << seat for seat in oracle.participants),
        oracle.rounds,
        oracle.phase,
        [sum(map(BIT_OF.__getitem__, oracle.legal(seat))) for seat in oracle.seats],
    )


def all_piles(oracle: SkirmishOracle) -> tuple[list[list[Card]], ...]:
    return oracle.hand, oracle.supply, oracle.capture, oracle.stakes


def expected_ending(oracle: SkirmishOracle) -> dict[str, Any]:
    """What the engine should tell of a game that is over (S9, S10, S12)."""
    winners, totals = oracle.winners, oracle.totals()
    survivors = [seat for seat in oracle.seats if seat not in oracle.eliminated]
    scored = survivors or list(oracle.seats)
    totals = [totals[seat] if seat in scored else 0 for seat in oracle.seats]
    of_winners = "win" if len(winners) == 1 else "shared"
    return {
        "outcome": [of_winners if seat in winners else "loss" for seat in oracle.seats],
        "is_success": [winners == [seat] for seat in oracle.seats],
        "total": totals,
        "margin": [
            totals[seat] - max(totals[other] for other in oracle.seats if other != seat)
            for seat in oracle.seats
        ],
        "rounds": [oracle.rounds] * oracle.num_players,
        "truncated": oracle.truncated,
        "eliminated": oracle.eliminated,
        "payoffs": oracle.payoffs(),
    }


def ending_of(games: Games, index: int, endings: dict[str, Any]) -> dict[str, Any]:
    """The same as the engine tells it."""
    told = {name: values[index].tolist() for name, values in endings.items()}
    hands = games.states["hand"][index, : games.num_players].tolist()
    told["eliminated"] = [seat for seat, hand in enumerate(hands) if not hand]
    # The payoffs are the exact ones, rounded to the nearest number that there is, or its neighbour.
    told["payoffs"] = [
        Fraction(reward).limit_denominator(12) for reward in games.rewards[index].tolist()
    ]
    assert np.allclose(games.rewards[index], [float(x) for x in told["payoffs"]], 0, 2**-53)
    return told


def play_in_lockstep(
    num_players: int, recycle_captures: bool, max_rounds: int, num_games: int
) -> Counter[str]:
    """Whole games from the deal to the end, compared step by step; what happened in them."""
    rules = {"recycle_captures": recycle_captures, "max_rounds": max_rounds}
    first = 10_000 * max_rounds
    games = dealt(range(first, first + num_games), num_players, rules=rules)
    chances = [ReplayedChance(streams, 0) for streams in games.streams]
    oracles = [
        SkirmishOracle(
            num_players,
            *chance.deal(num_players, DEAL_SIZES[num_players]),
            SkirmishRules(**rules),
            chance,
        )
        for chance in chances
    ]
    rng = np.random.default_rng(num_players)
    liked = likings(num_games, num_players)
    events: Counter[str] = Counter()
    playing = np.arange(num_games)
    rows = rows_of(games)
    for index in playing:
        same(rows[index], row_of(oracles[index]), f"deal of seed {first + index}")
    compare_knowledge(games, oracles, playing[::EVERY], events)
    num_steps = 0
    while playing.size:
        actions = chosen_actions(games, liked, rng)
        games.step(actions, ~ended(games))
        num_steps += 1
        rows, listed = rows_of(games), actions.tolist()
        endings = games.endings() if (ended(games)[playing]).any() else {}
        for index in playing.tolist():
            oracle, chance = oracles[index], chances[index]
            before = oracle.phase, sum(map(len, oracle.hand))
            chance.clear()
            oracle.step({seat: (*RANKS, "wait")[listed[index][seat]] for seat in oracle.seats})
            label = f"seed {first + index}, step {num_steps}, actions {listed[index]}"
            same(rows[index], row_of(oracle), label)
            note(oracle, chance, *before, events)
            if oracle.phase == "over":
                same(ending_of(games, index, endings), expected_ending(oracle), label)
            elif games.rewards[index].any():
                pytest.fail(f"{label}: payoffs {games.rewards[index]} before the end")
        telling = (playing + num_steps) % EVERY == 0
        telling |= old_stakes(games.states)[playing] & (playing % 8 == 0)
        compare_knowledge(games, oracles, playing[telling], events)
        playing = np.flatnonzero(~ended(games))
    return events


def same(engine: Any, referee: Any, label: str) -> None:
    if engine != referee:
        pytest.fail(f"{label}:\nengine  {engine}\nreferee {referee}", pytrace=False)


def note(
    oracle: SkirmishOracle,
    chance: ReplayedChance,
    phase: str,
    held: int,
    events: Counter[str],
) -> None:
    """Count what happened in a step, to know that the games meet all the rules."""
    events["steps"] += 1
    if phase == "skirmish":
        field = "".join(card.rank for card in chance.picked)
        events[_judged(field, oracle.phase == "war")] += 1
    if oracle.phase == "war":
        fighting = len(oracle.participants)
        everyone = fighting == oracle.num_players
        events["War of all" if everyone else f"War of {fighting}, not of all"] += 1
        stakes = [len(oracle.stakes[seat]) for seat in oracle.participants]
        events["short stakes"] += min(stakes) < max(stakes) or min(stakes) == 0
        events["no hand card in a War"] += not all(
            oracle.hand[seat] for seat in oracle.participants
        )
        events["recycle while staking"] += any(recycled for _, recycled in chance.drawn)
        return
    refilled = sum(map(len, oracle.hand)) - (held - len(chance.picked))
    in_war, in_refill = chance.drawn[: -refilled or None], chance.drawn[-refilled or 99 :]
    events["recycle in the refill"] += any(recycled for _, recycled in in_refill)
    if phase == "war":
        # Who adds for the second time ties for the second time.
        adding = Counter(seat for seat, _ in in_war)
        ties = max(adding.values(), default=0)
        events["ties broken at once"] += ties == 1
        events["tied twice or more"] += ties > 1
        events["recycle to break a tie"] += any(recycled for _, recycled in in_war)
    if oracle.phase == "over":
        events[f"{len(oracle.eliminated)} eliminated"] += 1
        events["round limit"] += oracle.truncated
        events["shared win"] += len(oracle.winners) > 1
    # A winner's War cards are captured, at least the one committed last.
    events["all burns"] += bool(chance.picked) and set(chance.picked) <= set(oracle.graveyard)


def _judged(field: str, war: bool) -> str:
    """What S3 says on the ranks that lie on the field."""
    if "*" in field:
        return "Joker"
    if "A" in field and set(field) & set("QK"):
        return f"intrigue: {min(field.count('J'), 2)} Jacks, {min(field.count('A'), 2)} Aces"
    return "tie for the highest" if war else "highest"


# --- Knowledge ------------------------------------------------------------------------------------


def pool_name(oracle: SkirmishOracle, batch: int, owner: int, card: int) -> str:
    """The referee's name for the pool of a hidden card; those of older batches are known anyway."""
    if batch in (LATEST, PREVIOUS):
        return f"{owner}.{oracle.recycles[owner] - (batch == PREVIOUS)}"
    return "deal" if batch == DEALT else oracle.pool_of[ALL_CARDS[card]]


def knowledge_in(view: Any, oracle: SkirmishOracle, seat: int) -> Knowledge:
    """What a view tells, in the referee's words."""
    seats = range(oracle.num_players)
    hand, supply, capture, stakes = (
        [ids_in(int(view[name][owner])) for owner in seats]
        for name in ("hand", "supply", "capture", "stakes")
    )
    committed = [
        (card,) if card >= 0 else () for card in view["committed"].tolist()[: oracle.num_players]
    ]
    graveyard, burned = ids_in(int(view["graveyard"])), ids_in(int(view["burned"]))
    batch = batches_of(view).tolist()
    zones: dict[str, tuple[tuple[int, ...], int]] = {}
    for owner in seats:
        if owner != seat:
            zones[f"hand {owner}"] = hand[owner], owner
        zones[f"supply {owner}"] = supply[owner], owner
        zones[f"stakes {owner}"] = stakes[owner], owner
    zones["burned"] = burned, -1
    hidden: dict[str, dict[str, int]] = {}
    pools: dict[str, list[int]] = {}
    for zone, (pile, owner) in zones.items():
        hidden[zone] = {}
        for card in pile:
            pool = pool_name(oracle, batch[card], owner, card)
            hidden[zone][pool] = hidden[zone].get(pool, 0) + 1
            pools.setdefault(pool, []).append(card)
    return {
        "seat": seat,
        "phase": PHASES[view["phase"]],
        "rounds": int(view["rounds"]),
        "participants": [owner for owner in seats if int(view["participants"]) >> owner & 1],
        "hand": hand[seat],
        "sizes": {
            "hand": [len(pile) for pile in hand],
            "supply": [len(pile) for pile in supply],
            "capture": [len(pile) for pile in capture],
            "stakes": [len(pile) for pile in stakes],
            "committed": [len(pile) for pile in committed],
            "graveyard": len(graveyard),
            "burned": len(burned),
        },
        "capture": capture,
        "committed": committed,
        "graveyard": graveyard,
        "hidden": hidden,
        "pools": {name: tuple(sorted(pools[name])) for name in sorted(pools)},
    }


def counted(cards: Any) -> list[int]:
    """How many cards of each rank there are, Ace to Joker."""
    counts = [0] * 14
    for card in cards:
        counts[card // 4] += 1
    return counts


def expected_fields(oracle: SkirmishOracle, seat: int, known: Knowledge) -> dict[str, list[int]]:
    """Every field of an observation from what the seat may know, and where its hand came from."""
    fields = {
        "hand": counted(known["hand"]),
        "unseen": counted(known["pools"].get("deal", ())),
        "graveyard": counted(known["graveyard"]),
        "phase": [int(known["phase"] == name) for name in ("skirmish", "war")],
        "rounds_left": [min(127, oracle.rules.max_rounds - known["rounds"])],
    }
    own: Counter[str] = Counter(oracle.pool_of[card] for card in oracle.hand[seat])
    for place in range(oracle.num_players):
        player = (seat + place) % oracle.num_players
        latest = oracle.recycles[player]
        in_hand = own if not place else Counter(known["hidden"][f"hand {player}"])
        in_stakes = Counter(known["hidden"][f"stakes {player}"])
        of_pools: dict[str, list[int]] = {"known": [], "previous": [], "recycled": []}
        for number in range(1, latest + 1):
            pool = f"{player}.{number}"
            cards = list(known["pools"].get(pool, ()))
            if number == latest:
                of_pools["recycled"] += cards
            elif pool in in_stakes:  # a card of it may be in hand or among the stakes
                of_pools["previous"] += cards
            else:
                of_pools["known"] += cards
                if not place:
                    held = [card.id for card in oracle.hand[seat] if oracle.pool_of[card] == pool]
                    of_pools["known"] += held
        fields |= {f"{name}_{place}": counted(cards) for name, cards in of_pools.items()}
        fields[f"committed_{place}"] = counted(known["committed"][player])
        fields[f"capture_{place}"] = counted(known["capture"][player])
        newest = f"{player}.{latest}"
        fields[f"hidden_{place}"] = [
            known["sizes"]["hand"][player],
            in_hand["deal"],
            in_hand[newest],
            known["sizes"]["supply"][player],
            Counter(known["hidden"][f"supply {player}"])["deal"],
            known["sizes"]["stakes"][player],
            in_stakes["deal"],
            in_stakes[newest],
        ]
        fields[f"participant_{place}"] = [int(player in known["participants"])]
    return fields


def old_stakes(states: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """In which games a Supply was recycled while a War was staked."""
    recycled = states["latest"] != 0
    return (recycled & (states["stakes"] & ~states["latest"] != 0)).any(axis=1)


def compare_knowledge(
    games: Games, oracles: list[SkirmishOracle], chosen: Any, events: Counter[str]
) -> None:
    """S11: views and observations of all seats tell what the referee says they may know."""
    layout = observation_layout(games.num_players)
    chosen = np.asarray(chosen)
    for seat in range(games.num_players if chosen.size else 0):
        views = views_of(games, games.states[chosen], seat)
        observations = games.observations[chosen, seat].tolist()
        for index, view, row in zip(chosen.tolist(), views, observations, strict=True):
            oracle = oracles[index]
            known = oracle.may_know(seat)
            label = f"game {index}, round {known['rounds']}, {known['phase']}, seat {seat}"
            same(knowledge_in(view, oracle, seat), known, label)
            batch = batches_of(view)
            own = {
                card: pool_name(oracle, int(batch[card.id]), seat, card.id)
                for card in oracle.hand[seat]
            }
            same(own, {card: oracle.pool_of[card] for card in own}, label)
            told = {name: row[place] for name, place in layout.items()}
            same(told, dict.fromkeys(layout) | expected_fields(oracle, seat, known), label)
            events["knowledge compared"] += 1
            pools = known["hidden"][f"stakes {seat}"]
            events["knowledge of stakes from two pools"] += len(pools) > 1
            events["knowledge of a batch before the last"] += any(
                any(row[layout[f"{name}_{place}"]])
                for name in ("known", "previous")
                for place in range(games.num_players)
            )
            events["knowledge of stakes of an older batch"] += any(
                any(row[layout[f"previous_{place}"]]) for place in range(games.num_players)
            )


# --- The tests ------------------------------------------------------------------------------------

SETTINGS = [(num_players, recycles) for num_players in (2, 3, 4) for recycles in (True, False)]


@cache
def events_of(num_players: int, recycle_captures: bool) -> Counter[str]:
    """All games of a setting, in lockstep; what happened in them."""
    events: Counter[str] = Counter()
    for max_rounds, num_games in GAMES.items():
        events += play_in_lockstep(num_players, recycle_captures, max_rounds, num_games)
    return events


@pytest.mark.parametrize(("num_players", "recycle_captures"), SETTINGS)
def test_whole_games(num_players: int, recycle_captures: bool) -> None:
    """S1 to S12 from the deal to the end."""
    assert sum(GAMES.values()) >= 2000
    events = events_of(num_players, recycle_captures)
    assert events["knowledge compared"] > 1000
    assert events["War of all"] > 300
    assert events["short stakes"] > 50
    assert events["round limit"] > 100
    assert (events["recycle in the refill"] > 1000) == recycle_captures
    assert (events["recycle while staking"] > 200) == recycle_captures
    if not recycle_captures:
        assert events["all burns"] > 100


def test_the_games_meet_every_rule() -> None:
    """What is compared must happen, and not just once."""
    events: Counter[str] = Counter()
    for setting in SETTINGS:
        events += events_of(*setting)
    for event, wanted in {
        "Joker": 1000,
        "intrigue: 0 Jacks, 1 Aces": 1000,
        "intrigue: 0 Jacks, 2 Aces": 100,
        "intrigue: 1 Jacks, 1 Aces": 100,
        "intrigue: 1 Jacks, 2 Aces": 10,
        "intrigue: 2 Jacks, 1 Aces": 20,
        "highest": 10_000,
        "tie for the highest": 1000,
        "War of 2, not of all": 1000,
        "War of 3, not of all": 30,
        "no hand card in a War": 300,
        "ties broken at once": 500,
        "tied twice or more": 50,
        "recycle to break a tie": 50,
        "1 eliminated": 1000,
        "2 eliminated": 500,
        "3 eliminated": 100,
        "4 eliminated": 100,
        "shared win": 10,
        "knowledge of stakes from two pools": 100,
        "knowledge of a batch before the last": 1000,
        "knowledge of stakes of an older batch": 100,
    }.items():
        assert events[event] >= wanted, f"{event}: {events[event]} times in {events['steps']} steps"
