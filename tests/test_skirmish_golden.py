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

ZONES = (
    "hand",
    "supply",
    "capture",
    "stakes",
    "graveyard",
    "burned",
    "dealt",
    "latest",
    "previous",
)
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
    (2, True, "first", 0): (142, [0, 234], "8f32ccf09d2b294b51f729b1"),
    (2, True, "last", 1): (54, [123, 0], "987a3243c30edc2e242c5920"),
    (2, True, "by turns", 1000000007): (90, [106, 0], "6c9b9814f569cb098f293142"),
    (2, False, "first", 0): (26, [192, 172], "86a556866aab813668ac10f6"),
    (2, False, "last", 1): (16, [115, 208], "5c9b429ab9235b64f078bb74"),
    (2, False, "by turns", 1000000007): (21, [246, 91], "29d739603f7a2e23f4a39dab"),
    (3, True, "first", 0): (49, [109, 0, 119], "4ecc8bb391a7d01a3651aaf5"),
    (3, True, "last", 1): (11, [0, 1, 229], "d138583e4dc43ed16902c84d"),
    (3, True, "by turns", 1000000007): (31, [147, 0, 107], "1bb27c3e27acb021dce503d4"),
    (3, False, "first", 0): (9, [0, 108, 0], "d04d37fecd01a3e30a3a8e27"),
    (3, False, "last", 1): (9, [52, 0, 0], "058c23300efca7ba799ec334"),
    (3, False, "by turns", 1000000007): (16, [130, 85, 114], "97fb49e2cd68f279dec8feb3"),
    (4, True, "first", 0): (82, [46, 95, 81, 0], "df2168e6eaff1e6b7fac34ab"),
    (4, True, "last", 1): (7, [5, 93, 0, 145], "2df5666cb00f093c08161977"),
    (4, True, "by turns", 1000000007): (9, [98, 130, 0, 45], "c7ae7efa88b69b29a8a9c3c8"),
    (4, False, "first", 0): (11, [0, 168, 0, 39], "e68c7a0810629296fe410fc1"),
    (4, False, "last", 1): (6, [26, 0, 0, 0], "2e474958f9f0bb7cb98e1fe9"),
    (4, False, "by turns", 1000000007): (9, [98, 126, 0, 49], "c8368e47d2f0381a85e0d6e8"),
}


def test_no_golden_game_is_missing() -> None:
    assert list(GOLDEN) == all_games()
    assert len(GOLDEN) == 18


@pytest.mark.parametrize("key", all_games(), ids=str)
def test_golden_games(key: Key) -> None:
    assert played(*key) == GOLDEN[key]
