"""States that are set: every fault has its message, and no position of any game has a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import ALL_CARDS, Zones, completed
from numpy.typing import NDArray

from deck_of_spies_env import Rules
from deck_of_spies_env.random_streams import seed_streams
from deck_of_spies_env.solitaire.env import DeckOfSpiesEnv
from deck_of_spies_env.solitaire.games import SNAPSHOT, Games
from deck_of_spies_env.solitaire.positions import check_states, undealt_states
from deck_of_spies_env.solitaire.rules import OUTCOMES, PHASES, STATE
from deck_of_spies_env.solitaire.vector_env import DeckOfSpiesVectorEnv

PILES = ("hand", "draw_deck", "draw_discard", "spy_deck", "spy_discard")


def mask_of(cards: Any) -> int:
    """A set of cards as bits."""
    return sum(1 << ALL_CARDS.index(card) for card in cards)


def state_of(zones: Zones, phase: str = "act", outcome: str = "") -> NDArray[Any]:
    """A state record of shape (1,) with these cards."""
    state = np.zeros(1, dtype=STATE)
    for pile in PILES:
        state[pile] = mask_of(zones[pile])
    state["spy"] = ALL_CARDS.index(zones["spy"][0]) if zones["spy"] else -1
    state["phase"], state["outcome"] = PHASES.index(phase), OUTCOMES.index(outcome)
    return state


def zones(hand: str, spy: str = "", spy_deck: str = "", own: str = "") -> Zones:
    """All zones; the Draw Deck holds the own cards, and what is left is in the Spy Discard."""
    named = {"hand": hand, "spy": spy, "spy_deck": spy_deck, "draw_deck": own}
    return completed({zone: cards.split() for zone, cards in named.items()})


MIDDLE = zones("2c 2d 9h Tc", "Jd", spy_deck="Jh Kc", own="Ac 3c 4d")
LAST_RETIRE = zones("Jc Jd Qh", own="Ac 3c 4d")
SIX_KEY_SPIES = zones("Jc Jd Qh", own="Ac 3c 4d Kc Kd Kh")
SEVEN_KEY_SPIES = zones("Jc Jd Qh", own="Ac 3c 4d Kc Kd Kh Ks")

SOUND: dict[str, NDArray[Any]] = {
    "act": state_of(MIDDLE),
    "retire": state_of(MIDDLE, "retire"),
    "retire after the last spy": state_of(LAST_RETIRE, "retire"),
    "lost": state_of(SIX_KEY_SPIES, "over", "loss"),
    "won": state_of(SEVEN_KEY_SPIES, "over", "win"),
    "no Ace left": state_of(zones("2c 3d", "Kh", "Qs", own="4c"), "over", "no_double_agent"),
    "illegal action": state_of(MIDDLE, "over", "illegal_action"),
    "illegal action at the end": state_of(LAST_RETIRE, "over", "illegal_action"),
    "full hand": state_of(zones("2c 2d 9h Tc Ks", "Jd")),
    "full hand but for the play": state_of(zones("2c 2d 9h Tc", "Jd"), "retire"),
    "no cards but an Ace": state_of(zones("", "Jd", own="Ah")),
    "weak, with an Ace in the Draw Discard": state_of(
        completed({"hand": ("2c",), "spy": ("Jd",), "draw_discard": ("Ah",)})
    ),
    "no Ace, but strong": state_of(zones("9c Tc", "Jd")),
    "just enough without an Ace": state_of(zones("9c 2c", "Jd")),
    "not yet dealt": undealt_states(1),
}

Change = Callable[[Any], None]


def put(field: str, value: int) -> Change:
    """Overwrite a field."""

    def change(state: Any) -> None:
        state[field] = value

    return change


def add(pile: str, *cards: str) -> Change:
    """Put cards on a pile, wherever they are."""

    def change(state: Any) -> None:
        state[pile] = int(state[pile]) | mask_of(cards)

    return change


def remove(pile: str, *cards: str) -> Change:
    """Take cards off a pile."""

    def change(state: Any) -> None:
        state[pile] = int(state[pile]) & ~mask_of(cards)

    return change


def move(source: str, target: str, *cards: str) -> Change:
    """Move cards from a pile to another."""

    def change(state: Any) -> None:
        assert int(state[source]) & mask_of(cards) == mask_of(cards)
        remove(source, *cards)(state)
        add(target, *cards)(state)

    return change


def both(*changes: Change) -> Change:
    """One change after the other."""

    def change(state: Any) -> None:
        for one in changes:
            one(state)

    return change


WIN, NO_DOUBLE_AGENT = OUTCOMES.index("win"), OUTCOMES.index("no_double_agent")
OVER, RETIRE = PHASES.index("over"), PHASES.index("retire")

FAULTS: list[tuple[str, Change, str]] = [
    ("act", put("phase", 3), "unknown phase code"),
    ("act", put("phase", -1), "unknown phase code"),
    ("not yet dealt", put("phase", 3), "unknown phase code"),
    ("lost", put("outcome", 5), "unknown outcome code"),
    ("lost", put("outcome", -1), "unknown outcome code"),
    ("act", both(add("spy_discard", "Jd"), put("spy", 15)), "spy must be 5 to King"),
    ("act", both(add("spy_discard", "Jd"), put("spy", 52)), "spy must be 5 to King"),
    ("act", both(add("spy_discard", "Jd"), put("spy", -2)), "spy must be 5 to King"),
    ("act", put("spy", 127), "spy must be 5 to King"),
    *(("act", put(pile, 1 << 52), "there are 52 cards") for pile in PILES),
    ("act", put("draw_discard", 1 << 63), "there are 52 cards"),
    *(
        (name, add(pile, card), "a card is in two zones")
        for name in ("act", "retire")
        for pile, card in (
            ("hand", "3c"),
            ("draw_deck", "9h"),
            ("draw_discard", "Ac"),
            ("spy_deck", "9h"),
            ("spy_discard", "Jh"),
            ("draw_discard", "Jd"),  # the spy on top
        )
    ),
    ("act", remove("hand", "9h"), "a card is missing that is no Ace"),
    ("act", remove("spy_deck", "Kc"), "a card is missing that is no Ace"),
    ("lost", remove("spy_discard", "2c"), "a card is missing that is no Ace"),
    ("act", put("spy", -1), "a card is missing that is no Ace"),
    ("not yet dealt", put("outcome", WIN), "a card is missing that is no Ace"),
    ("not yet dealt", put("phase", 0), "a card is missing that is no Ace"),
    ("not yet dealt", put("spy", 20), "a card is missing that is no Ace"),
    ("not yet dealt", put("hand", 1), "a card is missing that is no Ace"),
    ("act", move("draw_deck", "spy_deck", "4d"), "spies are 5 to King"),
    ("act", move("draw_deck", "spy_deck", "Ac"), "spies are 5 to King"),
    *(
        (name, put("outcome", code), "only a game that is over has an outcome")
        for name in ("act", "retire", "retire after the last spy")
        for code in range(1, 5)
    ),
    ("act", put("phase", OVER), "only a game that is over has an outcome"),
    ("lost", put("outcome", 0), "only a game that is over has an outcome"),
    ("illegal action", put("outcome", WIN), "won or lost with spies left"),
    ("no Ace left", put("outcome", WIN + 1), "won or lost with spies left"),
    ("lost", move("spy_discard", "spy_deck", "Ks"), "won or lost with spies left"),
    ("full hand", move("spy_discard", "hand", "3c"), "too many cards in hand"),
    ("full hand", put("phase", RETIRE), "too many cards in hand"),
    ("full hand but for the play", move("spy_discard", "hand", "3c"), "too many cards in hand"),
    ("retire after the last spy", put("phase", 0), "no spy on top"),
    ("act", both(put("spy", -1), add("spy_discard", "Jd")), "no spy on top"),
    ("retire", both(put("spy", -1), add("spy_discard", "Jd")), "no spy on top"),
    ("retire", move("hand", "draw_discard", "2c"), "phase retire needs a pair in hand"),
    ("retire", move("hand", "draw_discard", "2c", "2d"), "phase retire needs a pair in hand"),
    ("no cards but an Ace", move("draw_deck", "spy_discard", "Ah"), "no legal action"),
    ("no cards but an Ace", remove("draw_deck", "Ah"), "no legal action"),
    ("just enough without an Ace", move("hand", "draw_deck", "2c"), "no legal action"),
    ("no Ace left", both(put("phase", 0), put("outcome", 0)), "no legal action"),
]


def with_streams(state: NDArray[Any]) -> NDArray[Any]:
    """A state with random streams to go on with, shape (1,)."""
    snapshot = np.zeros(1, dtype=SNAPSHOT)
    snapshot["state"] = state
    snapshot["streams"] = seed_streams([0])
    return snapshot


def test_a_state_without_random_streams_is_refused() -> None:
    """All its draws would be one and the same word."""
    snapshot = with_streams(state_of(MIDDLE))
    DeckOfSpiesEnv().set_state(snapshot[0])
    snapshot["streams"] = np.zeros(1, dtype=snapshot["streams"].dtype)
    with pytest.raises(ValueError, match=r"^state: it has no random streams$"):
        DeckOfSpiesEnv().set_state(snapshot[0])


@pytest.mark.parametrize("seed", range(4))
def test_an_outcome_other_than_the_positions_is_refused(seed: int) -> None:
    """Whoever holds fewer Key Spies than it takes has not won, and so on (D8, D12)."""
    env = DeckOfSpiesEnv(rules={"key_spies_to_win": 1 if seed < 2 else 7})
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    while env.phase != "over":
        env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
    ended = env.get_state()
    env.set_state(ended)
    for outcome in ("win", "loss", "no_double_agent"):
        if outcome != OUTCOMES[int(ended["state"]["outcome"])]:
            false = ended.copy()
            false["state"]["outcome"] = OUTCOMES.index(outcome)
            with pytest.raises(ValueError, match=r"^state: (the outcome|won or lost)"):
                env.set_state(false)


@pytest.mark.parametrize("name", SOUND)
def test_sound_states_are_taken(name: str) -> None:
    env = DeckOfSpiesEnv()
    env.set_state(with_streams(SOUND[name])[0])
    phase = env.phase
    assert phase == PHASES[int(SOUND[name]["phase"][0])]
    assert env.action_masks().any() == (phase != "over")


@pytest.mark.parametrize(
    ("name", "change", "message"), FAULTS, ids=[f"{n}-{m}" for n, _, m in FAULTS]
)
def test_a_state_made_wrong_in_one_way_is_refused_for_it(
    name: str, change: Change, message: str
) -> None:
    """One change to a sound state; the environment keeps the position that it has."""
    state = SOUND[name].copy()
    change(state[0])
    env = DeckOfSpiesEnv()
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ValueError, match=rf"^state: {message}$"):
        env.set_state(with_streams(state)[0])
    assert env.get_state() == before


def test_the_first_faulty_state_is_named() -> None:
    envs = DeckOfSpiesVectorEnv(6)
    envs.reset(seed=0)
    sound = envs.get_state()
    for faulty in ([0], [3], [5], [2, 4], [4, 5], [0, 1, 2, 3, 4, 5]):
        states = sound.copy()
        states["state"]["outcome"][faulty] = WIN
        states["state"]["phase"][faulty[1:]] = 9  # another fault in those that come later
        with pytest.raises(ValueError, match=rf"^state {faulty[0]}: only a game that is over"):
            envs.set_state(states)
        assert np.array_equal(envs.get_state(), sound)
    envs.set_state(sound)


@pytest.mark.parametrize("eager_reshuffle", [True, False])
@pytest.mark.parametrize("hand_size", range(3, 9))
def test_every_state_of_play_is_sound(hand_size: int, eager_reshuffle: bool) -> None:
    """Thousands of positions from the deal to the end, those of games that are over too."""
    rules = Rules(hand_size=hand_size, eager_reshuffle=eager_reshuffle)
    games = Games(120, rules=rules, illegal_action="lose")
    check_states(games.states, rules)  # not yet dealt
    games.seed(range(120), range(120))
    games.deal()
    rng = np.random.default_rng(hand_size)
    recruits = np.zeros(games.table.num_actions)
    recruits[games.table.actions_of("recruit")] = 1
    seen: set[tuple[str, str]] = set()
    for _ in range(72):
        check_states(games.states, rules)
        codes = zip(games.states["phase"].tolist(), games.states["outcome"].tolist(), strict=True)
        seen |= {(PHASES[phase], OUTCOMES[outcome]) for phase, outcome in codes}
        keys = rng.random(games.masks.shape) + recruits
        actions = (keys * games.masks).argmax(axis=1)
        actions[rng.random(120) < 0.002] = -1
        games.step(actions, ~games.over)
    assert games.over.all()
    assert {("act", ""), ("retire", ""), ("over", "illegal_action")} <= seen
    assert ("over", "no_double_agent" if hand_size < 5 else "win") in seen


@pytest.mark.parametrize("hand_size", range(4, 9))
def test_states_of_larger_hands_are_refused(hand_size: int) -> None:
    """A full hand of one rule set is too large for those of smaller hands, and sound in others."""
    larger = DeckOfSpiesVectorEnv(3, rules={"hand_size": hand_size})
    larger.reset(seed=0)
    for other in range(3, 9):
        envs = DeckOfSpiesVectorEnv(3, rules={"hand_size": other})
        if other >= hand_size:
            envs.set_state(larger.get_state())
            assert np.array_equal(envs.get_state(), larger.get_state())
        else:
            with pytest.raises(ValueError, match="state 0: too many cards in hand"):
                envs.set_state(larger.get_state())


@pytest.mark.parametrize("make", [DeckOfSpiesEnv, lambda: DeckOfSpiesVectorEnv(1)])
def test_a_state_from_before_the_first_reset_settles_no_deal(make: Callable[[], Any]) -> None:
    """Without a first seed one is drawn at random, after going back to such a state, too."""
    hands: set[bytes] = set()
    for _ in range(6):
        env = make()
        env.set_state(make().get_state())
        env.reset()
        hands.add(env.get_state()["state"]["hand"].tobytes())
    assert len(hands) > 1
