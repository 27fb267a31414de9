"""Golden games of Skirmish: seeds and simple ways to play, with all that came of them.

The numbers were written down when engine and referee agreed on every step. They change when the
rules, the random streams or the layout of a deal change, and for nothing else: whoever replays a
seed of an older version relies on them. ``print_them`` writes them anew.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from skirmish_tools import dealt, ended

ZONES = ("hand", "supply", "capture", "stakes", "graveyard", "burned", "recycles", "batch")
NUMBERS = ("rounds", "committed", "participants", "phase")

WAYS = ("first", "last", "by turns")
"""Which of its legal actions everyone takes: the first, the last, or each in its turn."""

Key = tuple[int, bool, str, int]
Result = tuple[int, list[int], str]
"""Rounds, totals (0 for those eliminated), and a digest of all states along the way."""


def all_games() -> list[Key]:
    """Number of players, recycle_captures, way to play, seed."""
    seeds = (0, 1, 1_000_000_007)
    return [
        (num_players, recycles, way, seed)
        for num_players, recycles in itertools.product((2, 3, 4), (True, False))
        for way, seed in zip(WAYS, seeds, strict=True)
    ]


def played(num_players: int, recycle_captures: bool, way: str, seed: int) -> Result:
    """What comes of a game, the second episode of its seed."""
    games = dealt([seed], num_players, rules={"recycle_captures": recycle_captures})
    games.deal()
    digest = hashlib.sha256()
    for number in itertools.count():
        state = games.states[0]
        for name in (*ZONES, *NUMBERS):
            digest.update(state[name].astype("<i8" if name in NUMBERS else "<u8").tobytes())
        digest.update(games.masks.tobytes())
        if ended(games)[0]:
            break
        actions = []
        for seat, mask in enumerate(games.masks[0]):
            legal = np.flatnonzero(mask)
            place = {"first": 0, "last": -1, "by turns": (number + seat) % len(legal)}[way]
            actions.append(int(legal[place]))
        games.step(np.array([actions]))
    endings = games.endings()
    rounds, totals = int(games.states["rounds"][0]), endings["total"][0].tolist()
    return rounds, totals, digest.hexdigest()[:24]


def print_them() -> str:
    """The literal of GOLDEN."""
    return "\n".join(f"    {key!r}: {played(*key)!r}," for key in all_games())


GOLDEN: dict[Key, Result] = {
    (2, True, "first", 0): (142, [0, 234], "1980a50c5d97952a2417bb50"),
    (2, True, "last", 1): (54, [123, 0], "366bcf9179901357d6ddb0c1"),
    (2, True, "by turns", 1000000007): (90, [106, 0], "e95d77a8d65e6e05991fc223"),
    (2, False, "first", 0): (26, [192, 172], "7d848373a1deb72add366e09"),
    (2, False, "last", 1): (16, [115, 208], "c17061f912ed4f98f1beab52"),
    (2, False, "by turns", 1000000007): (21, [246, 91], "1cd452f33de30ca0ee1482fc"),
    (3, True, "first", 0): (49, [109, 0, 119], "f9a0aea6cf5aa65fdcdb86dc"),
    (3, True, "last", 1): (11, [0, 1, 229], "7dab711e99484c0a01a78dc3"),
    (3, True, "by turns", 1000000007): (31, [147, 0, 107], "8d452e39afe5a7ffe0fcd182"),
    (3, False, "first", 0): (9, [0, 108, 0], "0239ce13b1ca9672b943a3c5"),
    (3, False, "last", 1): (9, [52, 0, 0], "07ccd827942e30608486dc75"),
    (3, False, "by turns", 1000000007): (16, [130, 85, 114], "9f15577ac6c7bd11da05dc81"),
    (4, True, "first", 0): (82, [46, 95, 81, 0], "f69b1aa0248e3b03f5436ed6"),
    (4, True, "last", 1): (7, [5, 93, 0, 145], "aa4124c355b05ae0825795c1"),
    (4, True, "by turns", 1000000007): (9, [98, 130, 0, 45], "d9117336be9aff92b4aea0ee"),
    (4, False, "first", 0): (11, [0, 168, 0, 39], "4a9b5cadb99dec505c13f54a"),
    (4, False, "last", 1): (6, [26, 0, 0, 0], "2f6d65dbcb7aaecc3eb7630e"),
    (4, False, "by turns", 1000000007): (9, [98, 126, 0, 49], "769d5ca35c42e4a1b4048b9a"),
}


def test_no_golden_game_is_missing() -> None:
    assert list(GOLDEN) == all_games()
    assert len(GOLDEN) == 18


@pytest.mark.parametrize("key", all_games(), ids=str)
def test_golden_games(key: Key) -> None:
    assert played(*key) == GOLDEN[key]
