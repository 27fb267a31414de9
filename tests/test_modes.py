"""Packed words, arrays used again and threads: other ways to hand out the very same games.

The reference is the vector environment with its default arguments, which other tests hold to single
environments and to the referee. Packed words are compared with the referee directly, too.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from conftest import ALL_CARDS, SHORT, TextAction, Zones, in_order
from conftest import native as native_envs
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracle import OracleGame, OracleRules

from deck_of_spies_env import IllegalActionError
from deck_of_spies_env.solitaire import games as games_module
from deck_of_spies_env.solitaire.games import (
    Games,
    step_games,
    unpack_masks,
    unpack_observations,
)
from deck_of_spies_env.solitaire.observations import PACKED_WORDS
from deck_of_spies_env.solitaire.vector_env import DeckOfSpiesVectorEnv
from deck_of_spies_env.threads import parts_of, share_out

MODES = list(AutoresetMode)
HAND_SIZES = range(3, 9)
NUM_THREADS = (1, 2, 3, 7, 50)

NUM_ACTIONS = {3: 20, 4: 39, 5: 78, 6: 156, 7: 309, 8: 606}
"""The number of actions by hand size, as documented."""

WAYS: list[dict[str, Any]] = [
    {},
    {"packed": True},
    {"copy": False},
    {"packed": True, "copy": False},
]
"""Ways to hand out what a step gives."""

# --- Tools ----------------------------------------------------------------------------------------


def native(num_envs: int = 5, *arguments: Any, **named: Any) -> DeckOfSpiesVectorEnv:
    """The native vector environment, of five games if nothing else is said."""
    return native_envs(num_envs, *arguments, **named)


def assert_equal(first: Any, second: Any, where: str) -> None:
    """Check that two results are the same through and through, types and dtypes included."""
    assert type(first) is type(second), where
    if isinstance(first, dict):
        assert set(first) == set(second), where
        for key in first:
            assert_equal(first[key], second[key], f"{where}[{key!r}]")
    elif isinstance(first, np.ndarray) and first.dtype != np.object_:
        assert first.dtype == second.dtype, where
        assert np.array_equal(first, second), where
    elif isinstance(first, tuple | np.ndarray):
        assert len(first) == len(second), where
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            assert_equal(one, other, f"{where}[{index}]")
    else:
        assert first == second, where


def in_bytes(result: tuple[Any, ...], hand_size: int) -> tuple[Any, ...]:
    """What reset or step gave, unpacked if it came packed."""
    observations, *rest, infos = result
    if observations.dtype != np.uint64:
        return result
    infos = {**infos, "action_mask": unpack_masks(infos["action_mask"], hand_size)}
    if "final_obs" in infos:
        final_obs = np.full(len(observations), None, dtype=object)
        for index in np.flatnonzero(infos["_final_obs"]):
            words = infos["final_obs"][index]
            final_obs[index] = unpack_observations(words[np.newaxis], hand_size)[0]
        final_masks = unpack_masks(infos["final_info"]["action_mask"], hand_size)
        infos["final_obs"] = final_obs
        infos["final_info"] = {**infos["final_info"], "action_mask": final_masks}
    return unpack_observations(observations, hand_size), *rest, infos


def choose(rng: np.random.Generator, masks: NDArray[Any]) -> NDArray[np.int64]:
    """A random legal action for each row, 0 where none is."""
    return (rng.random(masks.shape) * masks).argmax(axis=1)


class Alike:
    """Environments that are all told the same and must all give the same."""

    def __init__(
        self, reference: DeckOfSpiesVectorEnv, others: Sequence[DeckOfSpiesVectorEnv]
    ) -> None:
        self.reference = reference
        self.others = others
        self.num_episodes = 0
        self._rng = np.random.default_rng(0)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of all of them and compare the results with the first one's."""
        expected = getattr(self.reference, method)(*arguments, **options)
        for other in self.others:
            found = getattr(other, method)(*arguments, **options)
            if method in ("reset", "step"):
                found = in_bytes(found, self.reference.games.rules.hand_size)
            assert_equal(found, expected, method)
        return expected

    def step(self) -> Any:
        """A random legal step, and a reset of what has ended where the mode wants it."""
        result = self.call("step", choose(self._rng, self.call("action_masks")))
        ended = result[2]
        self.num_episodes += ended.sum()
        if self.reference.metadata["autoreset_mode"] == AutoresetMode.DISABLED and ended.any():
            self.call("reset", options={"reset_mask": ended.copy()})
        return result

    def play(self, steps: int, seed: int = 7) -> None:
        """Reset and play; now and then reset one of the games in the middle."""
        self.call("reset", seed=seed)
        numbers = np.arange(self.reference.num_envs)
        for step in range(1, steps + 1):
            self.step()
            if step % 40 == 0:
                one = numbers == step // 40 % len(numbers)
                self.call("reset", options={"reset_mask": one})
        assert np.array_equal(self.call("get_state"), self.reference.get_state())


def arrays_in(result: Any) -> list[NDArray[Any]]:
    """All arrays of a result, those inside of infos and of other arrays too."""
    if isinstance(result, np.ndarray):
        return [result, *(arrays_in(list(result)) if result.dtype == object else ())]
    if isinstance(result, dict):
        return arrays_in(list(result.values()))
    if isinstance(result, list | tuple):
        return [array for entry in result for array in arrays_in(entry)]
    return []


# --- Packed: the same games -----------------------------------------------------------------------


@pytest.mark.parametrize("idle_ace", [True, False])
@pytest.mark.parametrize("hand_size", HAND_SIZES)
@pytest.mark.parametrize("mode", MODES)
def test_packed_games_are_the_same_games(
    mode: AutoresetMode, hand_size: int, idle_ace: bool
) -> None:
    arguments = {"rules": {"hand_size": hand_size, "idle_ace": idle_ace}, "objective": "keys"}
    alike = Alike(native(mode=mode, **arguments), [native(mode=mode, packed=True, **arguments)])
    alike.play(120)
    assert alike.num_episodes >= 8


@pytest.mark.parametrize("mode", MODES)
def test_packed_games_are_the_same_through_many_resets(mode: AutoresetMode) -> None:
    arguments: dict[str, Any] = {
        "start": SHORT,
        "shaping": "key_spies",
        "rules": {"eager_reshuffle": True},
    }
    alike = Alike(native(mode=mode, **arguments), [native(mode=mode, packed=True, **arguments)])
    alike.play(120)
    assert alike.num_episodes > 60


@pytest.mark.parametrize("mode", MODES)
def test_packed_games_end_on_illegal_actions_alike(mode: AutoresetMode) -> None:
    arguments = {"illegal_action": "lose", "mode": mode}
    alike = Alike(native(**arguments), [native(packed=True, **arguments)])
    alike.call("reset", seed=3)
    # The pass is illegal in the first position of any game.
    alike.call("step", np.array([77, -1, 78, 77, 2**40]))
    if mode != AutoresetMode.DISABLED:
        for _ in range(10):
            alike.step()


@pytest.mark.parametrize("hand_size", HAND_SIZES)
def test_packed_arrays_have_their_spaces_types_and_shapes(hand_size: int) -> None:
    envs = native(start=None, rules={"hand_size": hand_size}, packed=True)
    num_words = -(-NUM_ACTIONS[hand_size] // 64)
    assert envs.single_observation_space.shape == (6,)
    assert envs.single_observation_space.dtype == np.uint64
    assert envs.single_action_space.n == NUM_ACTIONS[hand_size]  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    observations, infos = envs.reset(seed=0)
    for _ in range(60):
        masks = infos["action_mask"]
        assert observations in envs.observation_space
        assert all(row in envs.single_observation_space for row in observations)
        assert (observations.dtype, observations.shape) == (np.uint64, (5, 6))
        assert (masks.dtype, masks.shape) == (np.uint64, (5, num_words))
        observations, *_, infos = envs.step(choose(rng, envs.action_masks()))


def test_a_packed_observation_space_allows_no_more_than_the_words_may_hold() -> None:
    space = native(packed=True).single_observation_space
    for word in range(6):
        words = np.zeros(6, dtype=np.uint64)
        words[word] = 1 << (54 if word == 5 else 52)
        assert words not in space
        words[word] -= np.uint64(1)
        assert words in space


@pytest.mark.parametrize("hand_size", HAND_SIZES)
def test_packed_masks_have_no_bits_beyond_the_table(hand_size: int) -> None:
    envs = native(20, rules={"hand_size": hand_size}, packed=True)
    rng = np.random.default_rng(1)
    _, infos = envs.reset(seed=0)
    for _ in range(60):
        for words in infos["action_mask"]:
            assert as_one_number(words) >> NUM_ACTIONS[hand_size] == 0
        *_, infos = envs.step(choose(rng, envs.action_masks()))


def test_only_recall_comes_packed() -> None:
    with pytest.raises(ValueError, match="only recall observations come packed, not 'table'"):
        native(packed=True, observation="table")
    with pytest.raises(ValueError, match="observation must be one of"):
        native(packed=True, observation="all")


# --- Packed: what the words mean ------------------------------------------------------------------

WORDS = ("hand", "draw_discard", "draw_deck", "spy_deck", "spy_discard", "spy")

PHASES = {0b00: "over", 0b01: "act", 0b10: "retire"}
"""The bits above the card of the word ``spy``."""


def as_one_number(words: NDArray[Any]) -> int:
    """Words as one integer, the first lowest."""
    return sum(int(word) << 64 * index for index, word in enumerate(words))


def cards_of(word: int) -> tuple[str, ...]:
    """The cards of a word: bit i is the card with index i."""
    assert word >> 52 == 0
    return tuple(card for index, card in enumerate(ALL_CARDS) if word >> index & 1)


def read_words(words: NDArray[Any]) -> tuple[Zones, str]:
    """Zones and phase of a packed observation."""
    numbers = dict(zip(WORDS, map(int, words), strict=True))
    phase = PHASES[numbers["spy"] >> 52]
    numbers["spy"] &= (1 << 52) - 1
    zones = {zone: cards_of(word) for zone, word in numbers.items()}
    named = {card for cards in zones.values() for card in cards}
    zones["removed"] = tuple(card for card in ALL_CARDS if card not in named)
    return zones, phase


def documented_table(hand_size: int) -> list[tuple[str, int]]:
    """Kind and slot subset (the suit, for an assassination) of every action."""
    subsets = range(1, 1 << hand_size)
    retired = [few for few in range(1 << hand_size - 1) if 2 <= few.bit_count() <= 4]
    return [
        *(("counter", subset) for subset in subsets),
        *(("recruit", subset) for subset in subsets),
        *(("assassinate", suit) for suit in range(4)),
        *(("retire", subset) for subset in retired),
        ("pass", 0),
    ]


def actions_of(words: NDArray[Any], hand: Sequence[str], hand_size: int) -> dict[TextAction, int]:
    """The legal actions of a packed mask by kind and cards, with their index."""
    number = as_one_number(words)
    legal: dict[TextAction, int] = {}
    for index, (kind, subset) in enumerate(documented_table(hand_size)):
        if number >> index & 1:
            chosen = tuple(card for slot, card in enumerate(hand) if subset >> slot & 1)
            assert kind == "assassinate" or len(chosen) == subset.bit_count(), "an empty slot"
            legal[kind, (ALL_CARDS[subset],) if kind == "assassinate" else chosen] = index
    return legal


def followed(game: OracleGame, action: TextAction, before: Zones, after: Zones) -> OracleGame:
    """The referee's game after an action, with the chance that the engine's zones show."""
    kind, cards = action
    kept = set() if kind == "assassinate" else set(before["hand"]) - set(cards)
    turned_up = kind in ("counter", "recruit", "assassinate") and after["spy"]
    next_spy = after["spy"][0] if turned_up else None
    game.step(kind, cards, next_spy=next_spy, drawn=in_order(set(after["hand"]) - kept))
    return game


def test_the_words_are_named_in_their_order() -> None:
    assert PACKED_WORDS == WORDS


@pytest.mark.parametrize("idle_ace", [True, False])
@pytest.mark.parametrize("hand_size", HAND_SIZES)
def test_packed_words_are_the_positions_of_the_referee(hand_size: int, idle_ace: bool) -> None:
    """Zones, phase and legal actions of every position, read off the words alone."""
    rules = {"hand_size": hand_size, "idle_ace": idle_ace}
    num_envs = 4
    envs = native(num_envs, rules=rules, packed=True)
    rng = np.random.default_rng(hand_size)
    games: list[OracleGame | None] = [None] * num_envs
    positions: list[Zones] = [{}] * num_envs
    taken: list[TextAction] = [("", ())] * num_envs
    seen: Counter[str] = Counter()
    observations, infos = envs.reset(seed=hand_size)
    for _ in range(60 if hand_size < 7 else 40):
        actions = np.zeros(num_envs, dtype=np.int64)
        for index in range(num_envs):
            zones, phase = read_words(observations[index])
            before, game = positions[index], games[index]
            if game is None or game.phase == "over":  # has just been dealt
                game = OracleGame.deal(OracleRules(**rules), zones["hand"], zones["spy"][0])
            else:
                game = followed(game, taken[index], before, zones)
            assert (zones, phase) == (game.zones(), game.phase)
            legal = actions_of(infos["action_mask"][index], zones["hand"], hand_size)
            assert set(legal) == game.legal_actions()
            games[index], positions[index] = game, zones
            seen[phase] += 1
            if legal:
                taken[index] = sorted(legal)[rng.integers(len(legal))]
                actions[index] = legal[taken[index]]
                seen[taken[index][0]] += 1
        observations, _, _, _, infos = envs.step(actions)
    # Small hands seldom hold pairs, large ones are seldom too weak.
    wanted = ["act", "over", "counter", "recruit"]
    wanted += ["retire", "pass"] if hand_size > 3 else []
    wanted += ["assassinate"] if hand_size < 7 else []
    assert all(seen[what] for what in wanted), seen


# --- Unpacking ------------------------------------------------------------------------------------


@pytest.mark.parametrize("hand_size", HAND_SIZES)
def test_each_packed_bit_of_a_mask_is_its_own_action(hand_size: int) -> None:
    num_words = -(-NUM_ACTIONS[hand_size] // 64)
    words = np.zeros((NUM_ACTIONS[hand_size], num_words), dtype=np.uint64)
    for action, row in enumerate(words):
        row[action // 64] = 1 << action % 64
    masks = unpack_masks(words, hand_size)
    assert masks.dtype == np.int8
    assert np.array_equal(masks, np.eye(NUM_ACTIONS[hand_size], dtype=np.int8))


def test_unpacked_arrays_are_as_wide_as_the_hand_size_wants() -> None:
    observations = np.zeros((3, 6), dtype=np.uint64)
    for hand_size in HAND_SIZES:
        assert unpack_observations(observations, hand_size).shape == (3, 282 + 17 * hand_size)
    assert unpack_observations(observations).shape == (3, 367)
    assert unpack_masks(np.zeros((3, 2), dtype=np.uint64)).shape == (3, 78)
    assert unpack_observations(observations[:0]).shape == (0, 367)
    assert unpack_masks(np.zeros((0, 2), dtype=np.uint64)).shape == (0, 78)


def test_words_may_lie_anywhere_in_memory() -> None:
    observations, infos = native(6, packed=True).reset(seed=0)
    masks = infos["action_mask"]
    for some in (slice(None, None, 2), slice(None, None, -1), slice(1, 4)):
        expected = unpack_observations(observations)[some], unpack_masks(masks)[some]
        assert np.array_equal(unpack_observations(observations[some]), expected[0])
        assert np.array_equal(unpack_masks(masks[some]), expected[1])
    by_column = np.asfortranarray(observations), np.asfortranarray(masks)
    assert np.array_equal(unpack_observations(by_column[0]), unpack_observations(observations))
    assert np.array_equal(unpack_masks(by_column[1]), unpack_masks(masks))
    for words in by_column:
        words.setflags(write=False)
    assert np.array_equal(unpack_observations(by_column[0]), unpack_observations(observations))
    assert np.array_equal(unpack_masks(by_column[1]), unpack_masks(masks))


@pytest.mark.parametrize(
    ("unpack", "width"), [(unpack_observations, 6), (unpack_masks, 2)], ids=["words", "masks"]
)
def test_unpacking_refuses_other_shapes_and_types(
    unpack: Callable[[NDArray[Any]], Any], width: int
) -> None:
    wanted = rf"expected uint64 words of shape \(N, {width}\)"
    for shape in ((width,), (3, width + 1), (3, width - 1), (3, width, 1), (3, 0), ()):
        with pytest.raises(ValueError, match=wanted):
            unpack(np.zeros(shape, dtype=np.uint64))
    for dtype in (np.int8, np.int64, np.uint32, np.float64, np.bool_):
        with pytest.raises(ValueError, match=wanted):
            unpack(np.zeros((3, width), dtype=dtype))


def test_unpacking_refuses_masks_of_another_hand_size() -> None:
    words = native(rules={"hand_size": 6}, packed=True).reset(seed=0)[1]["action_mask"]
    for hand_size in (3, 4, 5, 7, 8):
        with pytest.raises(ValueError, match=r"got uint64 of \(5, 3\)"):
            unpack_masks(words, hand_size)


# --- The same arrays each time --------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{}, {"observation": "table", "rules": {"hand_size": 7}}])
@pytest.mark.parametrize("mode", MODES)
def test_games_are_the_same_in_arrays_used_again(
    mode: AutoresetMode, arguments: dict[str, Any]
) -> None:
    alike = Alike(native(mode=mode, **arguments), [native(mode=mode, copy=False, **arguments)])
    alike.play(120)
    assert alike.num_episodes >= 8


@pytest.mark.parametrize("mode", MODES)
def test_all_ways_to_hand_out_give_the_same(mode: AutoresetMode) -> None:
    arguments: dict[str, Any] = {"start": SHORT, "objective": "keys", "mode": mode}
    alike = Alike(native(**arguments), [native(**arguments, **way) for way in WAYS])
    alike.play(60)
    alike.call("reset", seed=[3, None, 5, None, 7])
    state = alike.call("get_state")
    for _ in range(9):
        alike.step()
    alike.call("set_state", state)
    for _ in range(9):
        alike.step()
    assert alike.num_episodes > 40


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_without_copies_the_arrays_are_the_same_each_time(
    mode: AutoresetMode, packed: bool
) -> None:
    envs = native(mode=mode, start=SHORT, copy=False, packed=packed)
    rng = np.random.default_rng(0)
    observations, infos = envs.reset(seed=0)
    masks = infos["action_mask"]
    first = envs.step(choose(rng, envs.action_masks()))
    assert first[0] is observations
    assert first[4]["action_mask"] is masks
    rewritten = 0
    for _ in range(30):
        if mode == AutoresetMode.DISABLED and first[2].any():
            assert envs.reset(options={"reset_mask": first[2].copy()})[0] is observations
        before = observations.copy()
        result = envs.step(choose(rng, envs.action_masks()))
        for place in range(3):
            assert result[place] is first[place]
        assert result[4]["action_mask"] is masks
        rewritten += not np.array_equal(before, observations)
    assert rewritten == 30
    assert envs.reset(seed=1)[0] is observations


def change_something(envs: DeckOfSpiesVectorEnv, rng: np.random.Generator) -> Any:
    """Do any of the things that a user can do with environments, and give what they give."""
    over = ~envs.action_masks().any(axis=1)
    mode = envs.metadata["autoreset_mode"]
    what = rng.integers(8)
    if what == 0:
        return envs.reset(seed=int(rng.integers(100)))
    if what == 1:
        return envs.reset(options={"zones": SHORT})
    if what == 2 or (mode == AutoresetMode.DISABLED and over.any()):
        chosen = over | (rng.random(envs.num_envs) < 0.5)
        chosen[rng.integers(envs.num_envs)] = True
        return envs.reset(options={"reset_mask": chosen})
    if what == 3:
        state = envs.get_state()
        envs.step(choose(rng, envs.action_masks()))
        envs.set_state(state)
        return ()
    if what == 4 and not over.all():
        with pytest.raises(IllegalActionError):
            envs.step(np.full(envs.num_envs, -1))
        return ()
    return envs.step(choose(rng, envs.action_masks()))


@pytest.mark.parametrize("way", [{}, {"packed": True}, {"num_threads": 2}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_arrays_handed_out_never_change(mode: AutoresetMode, way: dict[str, Any]) -> None:
    """With final observations and infos among them, whatever is done to the environment after."""
    envs = native(mode=mode, start=SHORT, **way)
    rng = np.random.default_rng(1)
    handed_out: list[Any] = [envs.reset(seed=0)]
    kept = [pickle.dumps(handed_out[0])]
    for _ in range(80):
        result = change_something(envs, rng)
        handed_out.append(result)
        kept.append(pickle.dumps(result))
    for result, bytes_then in zip(handed_out, kept, strict=True):
        assert_equal(result, pickle.loads(bytes_then), "handed out")
    final = [result for result in handed_out if len(result) == 5 and "final_obs" in result[4]]
    assert (len(final) > 5) == (mode == AutoresetMode.SAME_STEP)


def spoil(array: NDArray[Any]) -> None:
    """Overwrite an array with what was not there."""
    if array.dtype == np.object_:
        array[:] = "junk"
    elif array.dtype == np.bool_:
        array[:] = ~array
    else:
        array.view(np.uint8)[:] = 0xA5


@pytest.mark.parametrize("way", [*WAYS, {"num_threads": 2}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_what_is_written_into_arrays_changes_nothing(
    mode: AutoresetMode, way: dict[str, Any]
) -> None:
    """Arrays belong to the user: observations, masks, rewards, infos and all."""
    envs, twin = (native(mode=mode, start=SHORT, **way) for _ in range(2))
    rngs = [np.random.default_rng(2) for _ in range(2)]
    envs.reset(seed=0), twin.reset(seed=0)
    for _ in range(80):
        result = change_something(envs, rngs[0])
        assert_equal(result, change_something(twin, rngs[1]), "step")
        for array in arrays_in([result, envs.action_masks(), envs.get_state()]):
            spoil(array)


@pytest.mark.parametrize("packed", [False, True])
def test_a_final_observation_is_that_of_the_end(packed: bool) -> None:
    """The position that the last step led to, as a mode that does not deal anew shows it."""
    arguments: dict[str, Any] = {"start": SHORT, "packed": packed, "copy": False}
    envs = native(mode=AutoresetMode.SAME_STEP, **arguments)
    other = native(mode=AutoresetMode.DISABLED, **arguments)
    rng = np.random.default_rng(4)
    envs.reset(seed=5), other.reset(seed=5)
    num_ended = 0
    for _ in range(40):
        actions = choose(rng, envs.action_masks())
        _, _, ended, _, infos = envs.step(actions)
        finals = infos.get("final_obs", np.full(5, None))
        last = other.step(actions)[0]
        for index in range(5):
            if ended[index]:
                assert np.array_equal(finals[index], last[index])
                num_ended += 1
            else:
                assert finals[index] is None
        if ended.any():
            other.reset(options={"reset_mask": ended.copy()})
    assert num_ended > 15


# --- Threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_envs", [1, 2, 5, 23])
@pytest.mark.parametrize("mode", MODES)
def test_games_are_the_same_for_any_number_of_threads(mode: AutoresetMode, num_envs: int) -> None:
    arguments: dict[str, Any] = {"mode": mode, "rules": {"hand_size": 4}, "objective": "keys"}
    alike = Alike(
        native(num_envs, **arguments),
        [
            native(num_envs, num_threads=number, **arguments, **WAYS[index % len(WAYS)])
            for index, number in enumerate(NUM_THREADS)
        ],
    )
    alike.play(75)
    assert alike.num_episodes >= num_envs


@pytest.mark.parametrize("num_threads", NUM_THREADS)
def test_all_observations_are_the_same_for_any_number_of_threads(num_threads: int) -> None:
    for way in ({"observation": "table"}, *WAYS):
        arguments = {"start": SHORT, "shaping": "key_spies", **way}
        default = {key: arguments[key] for key in arguments if key not in ("packed", "copy")}
        alike = Alike(native(9, **default), [native(9, num_threads=num_threads, **arguments)])
        alike.play(40)


@pytest.mark.parametrize("num_threads", [2, 3, 7])
@pytest.mark.parametrize("wrong", [0, 4, 9, 10])
def test_an_illegal_action_in_any_thread_raises_before_any_game_moves(
    num_threads: int, wrong: int
) -> None:
    """The last of eleven games is in the last thread's part, the first in the first one's."""
    envs, other = native(11, num_threads=num_threads), native(11)
    for environments in (envs, other):
        environments.reset(seed=1)
    rng = np.random.default_rng(3)
    for _ in range(12):
        actions = choose(rng, envs.action_masks())
        state, spoilt = envs.get_state(), actions.copy()
        waiting = not envs.action_masks()[wrong].any()
        if not waiting:  # else its action is not looked at
            spoilt[wrong] = 78
            with pytest.raises(IllegalActionError, match=f"envs {wrong}; env {wrong}: action 78"):
                envs.step(spoilt)
            assert np.array_equal(envs.get_state(), state)
        assert_equal(envs.step(actions), other.step(actions), "step")


def test_illegal_actions_of_several_threads_are_all_named() -> None:
    envs = native(11, num_threads=3)
    envs.reset(seed=1)
    actions = envs.action_masks().argmax(axis=1)
    actions[[1, 5, 10]] = -1
    with pytest.raises(IllegalActionError, match="envs 1, 5, 10; env 1: action -1"):
        envs.step(actions)


def test_the_games_are_shared_among_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()
    barrier = threading.Barrier(3, timeout=20)

    def recorded(work: Callable[[int, int], Any], parts: Any) -> Any:
        def meet(first: int, stop: int) -> Any:
            barrier.wait()  # passes only when three threads are here at once
            names.add(threading.current_thread().name)
            return work(first, stop)

        return share_out(meet, parts)

    envs = native(7, num_threads=3)
    envs.reset(seed=0)
    monkeypatch.setattr(games_module, "share_out", recorded)
    envs.step(envs.action_masks().argmax(axis=1))
    assert len(names) == 3


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("copied", [deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
def test_copies_of_environments_go_on_alike_and_alone(
    copied: Callable[[Any], Any], way: dict[str, Any]
) -> None:
    envs = native(num_threads=2, start=SHORT, **way)
    envs.reset(seed=0)
    rng = np.random.default_rng(5)
    for _ in range(4):
        envs.step(choose(rng, envs.action_masks()))
    twin, idle = copied(envs), copied(envs)
    state = idle.get_state()
    for _ in range(20):
        actions = choose(rng, envs.action_masks())
        assert_equal(twin.step(actions), envs.step(actions), "step")
    assert np.array_equal(idle.get_state(), state)
    assert not np.array_equal(envs.get_state(), state)


def digest_of_play(envs: DeckOfSpiesVectorEnv, steps: int = 12) -> bytes:
    """What some steps of play lead to."""
    rng = np.random.default_rng(6)
    results = [envs.step(choose(rng, envs.action_masks()))[:2] for _ in range(steps)]
    return pickle.dumps((results[-1], envs.get_state()))


def send_play(envs: DeckOfSpiesVectorEnv, pipe: Any) -> None:
    """Play in another process."""
    pipe.send(digest_of_play(envs))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork in a process with threads
@pytest.mark.parametrize("used_before", [True, False])
def test_forked_children_have_threads_of_their_own(used_before: bool) -> None:
    """After use in the parent its threads exist, and in the child they do not."""
    envs = native(7, num_threads=3)
    envs.reset(seed=0)
    if used_before:
        envs.step(envs.action_masks().argmax(axis=1))
    context = multiprocessing.get_context("fork")
    children = []
    for _ in range(2):
        ours, theirs = context.Pipe()
        child = context.Process(target=send_play, args=(envs, theirs), daemon=True)
        child.start()
        children.append((child, ours))
    expected = digest_of_play(envs)
    try:
        for _, pipe in children:
            assert pipe.poll(30), "the child hangs"
            assert pipe.recv() == expected
        for child, _ in children:
            child.join(timeout=30)
            assert child.exitcode == 0
    finally:
        for child, _ in children:
            child.kill()
            child.join()


def test_environments_with_threads_may_be_used_in_threads() -> None:
    """More environments at once than there are threads for all of them: nobody waits forever."""
    digests: dict[int, bytes] = {}

    def play(seed: int, num_threads: int) -> None:
        envs = native(7, num_threads=num_threads)
        envs.reset(seed=seed)
        digests[seed] = digest_of_play(envs, 25)

    users = [threading.Thread(target=play, args=(seed, 2), daemon=True) for seed in range(6)]
    for user in users:
        user.start()
    for user in users:
        user.join(timeout=60)
    together = dict(digests)
    for seed in range(6):
        play(seed, 1)
    assert together == digests


@pytest.mark.parametrize("num_threads", [0, -1, 1.5, True, False, None, "2", 2.0], ids=repr)
def test_bad_numbers_of_threads_are_named(num_threads: Any) -> None:
    with pytest.raises(ValueError, match="num_threads must be a whole number of at least 1"):
        native(num_threads=num_threads)
    with pytest.raises(ValueError, match="num_threads must be a whole number of at least 1"):
        Games(2, num_threads=num_threads)


@pytest.mark.parametrize(
    ("num_envs", "num_threads"),
    [(np.int64(5), np.int64(2)), (300, np.uint8(3)), (np.uint8(200), 3), (5, np.int32(2))],
    ids=repr,
)
def test_numbers_of_games_and_threads_may_come_from_numpy(num_envs: Any, num_threads: Any) -> None:
    """Types that can't count all games among them."""
    reference = native(int(num_envs))
    versions = len(cast(Any, step_games).signatures)
    Alike(reference, [native(num_envs, num_threads=num_threads)]).play(2)
    assert len(cast(Any, step_games).signatures) == versions, "compiled anew for another integer"


@settings(deadline=None, derandomize=True, database=None, max_examples=300)
@given(count=st.integers(1, 10_000), num_parts=st.integers(1, 200))
def test_parts_cover_all_and_are_even(count: int, num_parts: int) -> None:
    parts = parts_of(count, num_parts)
    assert len(parts) == min(count, num_parts)
    assert parts[0][0] == 0
    assert parts[-1][1] == count
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    sizes = [stop - first for first, stop in parts]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("num_parts", [1, 2, 5])
def test_work_is_done_for_each_part_once_and_in_order(num_parts: int) -> None:
    parts = parts_of(17, num_parts)
    done: list[tuple[int, int]] = []

    def work(first: int, stop: int) -> int:
        done.append((first, stop))
        return stop - first

    assert share_out(work, parts) == [stop - first for first, stop in parts]
    assert sorted(done) == parts


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_failures_in_a_thread_come_out(failing: int) -> None:
    def work(first: int, stop: int) -> int:
        if first == failing:
            raise ZeroDivisionError(f"in part {first}")
        return stop

    with pytest.raises(ZeroDivisionError, match=f"in part {failing}"):
        share_out(work, parts_of(3, 3))
    # The threads are still there.
    assert share_out(lambda first, stop: stop, parts_of(3, 3)) == [1, 2, 3]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_comes_out_when_all_other_work_is_done(failing: int) -> None:
    """Nobody goes on to write into arrays behind the back of whoever handles the failure."""
    done: list[int] = []
    failed = threading.Event()

    def work(first: int, stop: int) -> None:
        if first == failing:
            failed.set()
            raise ZeroDivisionError
        failed.wait(timeout=20)
        threading.Event().wait(0.05 * (1 + first))
        done.append(first)

    with pytest.raises(ZeroDivisionError):
        share_out(work, parts_of(3, 3))
    assert sorted(done) == [part for part in range(3) if part != failing]


@pytest.mark.parametrize("flag", ["False", 0, 1, None, float("nan"), [1], np.array([1, 2])])
@pytest.mark.parametrize("name", ["packed", "copy"])
def test_flags_are_true_or_false(name: str, flag: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be True or False"):
        DeckOfSpiesVectorEnv(2, **{name: flag})


@pytest.mark.parametrize("unpack", [unpack_masks, unpack_observations])
def test_words_and_hand_sizes_that_are_none_are_refused(unpack: Any) -> None:
    words = np.zeros((1, 2), dtype=np.uint64)
    with pytest.raises(ValueError, match="uint64 words"):
        unpack([[0, 0]])
    for hand_size in ("5", 5.0, True, 2, 9):
        with pytest.raises(ValueError, match="hand_size"):
            unpack(words, hand_size)
