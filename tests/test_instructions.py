"""The instructions under the kernels: bits moved, flags stored, several words or sums at once.

Each is held to a few lines of Python on whole numbers. Processors without fast instructions for
moving bits get them from loops, so the whole engine is played with these, too.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite import binding
from numba.core import config
from numpy.typing import NDArray

import deck_of_spies_env
from deck_of_spies_env.compiled import (
    deposit_bits,
    deposit_bits_portably,
    extract_bits,
    extract_bits_portably,
    has_fast_bit_deposit,
    highest_bit_index,
    lowest_bit_index,
    popcount,
    store_16_flags,
    store_64_flags,
)
from deck_of_spies_env.lanes import (
    bytes_of_groups,
    count_bytes,
    count_lanes,
    in_all_lanes,
    lanes,
    lanes_of_bits,
    lanes_of_flags,
    store_counts,
    store_words,
    where_any,
)
from deck_of_spies_env.skirmish.games import Games as Tables
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.subset_totals import rests_reach, totals_reach

Words = NDArray[np.uint64]

ALL_ONES = 2**64 - 1


# --- Moving bits ----------------------------------------------------------------------------------


@numba.njit
def _move(bits: Any, masks: Any, moved: Any) -> None:
    for i in range(len(bits)):
        moved[0, i] = deposit_bits(bits[i], masks[i])
        moved[1, i] = deposit_bits_portably(bits[i], masks[i])
        moved[2, i] = extract_bits(bits[i], masks[i])
        moved[3, i] = extract_bits_portably(bits[i], masks[i])
        moved[4, i] = popcount(bits[i])
        moved[5, i] = lowest_bit_index(bits[i])
        moved[6, i] = highest_bit_index(bits[i]) + 1


def places(mask: int) -> list[int]:
    """Where a mask has its set bits, from the lowest."""
    return [place for place in range(64) if mask >> place & 1]


def deposited(bits: int, mask: int) -> int:
    """Bit k goes to the k-th set bit of the mask."""
    return sum((bits >> k & 1) << place for k, place in enumerate(places(mask)))


def extracted(word: int, mask: int) -> int:
    """Bit k is the bit of the word at the k-th set bit of the mask."""
    return sum((word >> place & 1) << k for k, place in enumerate(places(mask)))


def words_of_all_kinds() -> list[int]:
    """Edges, single bits, all but a single bit, runs, and random words thin and dense."""
    rng = random.Random(0)
    words = [0, 1, ALL_ONES, ALL_ONES - 1, 1 << 63, (1 << 52) - 1, 0x5555555555555555]
    words += [1 << place for place in range(64)]
    words += [ALL_ONES ^ 1 << place for place in range(0, 64, 7)]
    words += [(1 << stop) - (1 << start) for start, stop in ((0, 32), (32, 64), (31, 33), (5, 60))]
    words += [rng.getrandbits(64) for _ in range(60)]
    words += [rng.getrandbits(64) & rng.getrandbits(64) & rng.getrandbits(64) for _ in range(60)]
    words += [rng.getrandbits(64) | rng.getrandbits(64) | rng.getrandbits(64) for _ in range(30)]
    return words


def test_bits_are_moved_as_python_moves_them() -> None:
    words = words_of_all_kinds()
    rng = random.Random(1)
    pairs = [(bits, mask) for bits in words[:7] for mask in words]
    pairs += [(bits, mask) for bits in words for mask in words[:7]]
    pairs += [(rng.choice(words), rng.choice(words)) for _ in range(4000)]
    bits, masks = (np.array(column, dtype=np.uint64) for column in zip(*pairs, strict=True))
    moved = np.zeros((7, len(pairs)), dtype=np.uint64)
    _move(bits, masks, moved)
    for i, (word, mask) in enumerate(pairs):
        found = moved[:, i].tolist()
        assert found[0] == found[1] == deposited(word, mask), (word, mask)
        assert found[2] == found[3] == extracted(word, mask), (word, mask)
        assert found[4] == word.bit_count()
        assert found[5] == (places(word) or [64])[0]
        assert found[6] == word.bit_length()


def test_fast_instructions_are_used_where_the_processor_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "CPU_NAME", None)
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    for features, name, fast in (
        ({"bmi2": True}, "skylake", True),
        ({"bmi2": True}, "znver3", True),
        ({"bmi2": True}, "znver1", False),  # slow microcode
        ({"bmi2": True}, "znver2", False),
        ({"bmi2": False, "avx2": True}, "ivybridge", False),
        ({}, "apple-m1", False),
    ):
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda features=features: features)
        monkeypatch.setattr(binding, "get_host_cpu_name", lambda name=name: name)
        assert has_fast_bit_deposit() == fast, name


@pytest.mark.parametrize(
    ("setting", "value"),
    [("CPU_NAME", "generic"), ("CPU_NAME", "skylake"), ("CPU_FEATURES", "+sse2,-bmi2")],
)
def test_code_for_another_processor_uses_no_instruction_of_this_one(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: str
) -> None:
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: {"bmi2": True})
    monkeypatch.setattr(binding, "get_host_cpu_name", lambda: "skylake")
    monkeypatch.setattr(config, "CPU_NAME", None)
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    assert has_fast_bit_deposit()
    monkeypatch.setattr(config, setting, value)
    assert not has_fast_bit_deposit()


DIGEST = '''
"""What some hundred random games of each kind look like from beginning to end."""

import hashlib
import itertools

import numpy as np

from deck_of_spies_env import compiled
from deck_of_spies_env.skirmish import games as skirmish
from deck_of_spies_env.solitaire.games import Games
from deck_of_spies_env.solitaire.rollouts import deal_snapshots, play_out


def digest_of_games():
    digest = hashlib.sha256()
    num_decisions = 0
    for hand_size, idle_ace in itertools.product(range(3, 9), (True, False)):
        rules = {"hand_size": hand_size, "idle_ace": idle_ace}
        games = Games(25, rules=rules, shaping="key_spies")
        games.seed(range(25), range(25))
        games.deal()
        rng = np.random.default_rng(hand_size)
        while not games.over.all():
            for array in (games.records, games.observations, games.masks):
                digest.update(array.tobytes())
            num_decisions += int((~games.over).sum())
            games.step((rng.random(games.masks.shape) * games.masks).argmax(axis=1), ~games.over)
            digest.update(games.rewards.tobytes())
        digest.update(games.records.tobytes())
    played = play_out(deal_snapshots(range(300)), "random")
    for array in (played.outcomes, played.key_spies, played.turns, played.decisions):
        digest.update(array.tobytes())
    return digest.hexdigest(), num_decisions


def digest_of_tables():
    digest = hashlib.sha256()
    num_rounds = 0
    for num_players in (2, 3, 4):
        games = skirmish.Games(25, num_players)
        games.seed(range(25), range(25))
        games.deal()
        rng = np.random.default_rng(num_players)
        games.over[:] = False
        while not games.over.all():
            for array in (games.records, games.observations, games.masks):
                digest.update(array.tobytes())
            num_rounds += int((~games.over).sum())
            games.step((rng.random(games.masks.shape) * games.masks).argmax(axis=2), ~games.over)
            digest.update(games.rewards.tobytes())
        digest.update(games.records.tobytes())
        for name, column in games.endings().items():
            digest.update(str(column.tolist()).encode())
    return digest.hexdigest(), num_rounds


if __name__ == "__main__":
    portable = compiled.deposit_bits is compiled.deposit_bits_portably
    print(portable, compiled.extract_bits is compiled.extract_bits_portably)
    print(*digest_of_games())
    print(*digest_of_tables())
'''


def test_games_are_the_same_without_the_fast_instructions(tmp_path: Path) -> None:
    """Compiled for a processor without extensions, with a cache of its own, in another process."""
    script = tmp_path / "digest.py"
    script.write_text(DIGEST)
    root = Path(deck_of_spies_env.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, str(script)],
        env={
            **os.environ,
            "NUMBA_CPU_NAME": "generic",
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(root),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    here: dict[str, Any] = {"__name__": "digest"}
    exec(DIGEST, here)
    digest, num_decisions = here["digest_of_games"]()
    assert done.stdout.split("\n")[0] == "True True", "the process used the fast instructions"
    assert done.stdout.split("\n")[1] == f"{digest} {num_decisions}"
    assert num_decisions > 5000
    digest, num_rounds = here["digest_of_tables"]()
    assert done.stdout.split("\n")[2] == f"{digest} {num_rounds}"
    assert num_rounds > 1000


# --- Storing flags --------------------------------------------------------------------------------


@numba.njit
def _store(words: Any, offsets: Any, rows: Any, wide: Any) -> None:
    for i in range(len(words)):
        if wide:
            store_64_flags(rows[i], offsets[i], words[i])
        else:
            store_16_flags(rows[i], offsets[i], words[i])


@pytest.mark.parametrize("width", [16, 64])
def test_flags_are_stored_in_their_places_alone(width: int) -> None:
    """At any offset, aligned or not; of 16 flags the higher bits of the word are no concern."""
    words = words_of_all_kinds()
    offsets = np.array([index % 41 for index in range(len(words))])
    rows = np.full((len(words), 41 + width), 7, dtype=np.int8)
    _store(np.array(words, dtype=np.uint64), offsets, rows, width == 64)
    for word, offset, row in zip(words, offsets.tolist(), rows.tolist(), strict=True):
        expected = [7] * (41 + width)
        expected[offset : offset + width] = [word >> place & 1 for place in range(width)]
        assert row == expected


def check_rows_of_others(games: Games | Tables) -> None:
    """Observations and masks are stored in overlapping windows, which must end with their row."""
    games.seed(range(5), range(5))
    games.deal()
    expected = games.observations.copy(), games.masks.copy()
    for chosen in range(5):
        games.observations[:], games.masks[:] = 7, 7
        only = np.arange(5) == chosen
        games.show(only)
        for array, shown in zip((games.observations, games.masks), expected, strict=True):
            assert np.array_equal(array[chosen], shown[chosen])
            assert (array[~only] == 7).all()


@pytest.mark.parametrize("observation", ["recall", "table"])
@pytest.mark.parametrize("hand_size", range(3, 9))
def test_rows_of_other_games_are_not_written_to(hand_size: int, observation: str) -> None:
    check_rows_of_others(Games(5, rules={"hand_size": hand_size}, observation=observation))


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_rows_of_other_tables_are_not_written_to(num_players: int) -> None:
    check_rows_of_others(Tables(5, num_players))


# --- Four words at once ---------------------------------------------------------------------------


@numba.njit
def _combine(words: Any, others: Any, indices: Any, results: Any) -> None:
    for i in range(len(words)):
        a, b = lanes(words[i]), lanes(others[i])
        made = (
            a & b,
            a | b,
            ~a,
            a << 56,
            a >> 28,
            where_any(a, b),
            count_lanes(a),
            count_bytes(a),
            lanes_of_bits(indices[i]),
            lanes_of_flags(np.uint8(words[i, 0])),
            in_all_lanes(words[i, 1]),
            bytes_of_groups(a),
        )
        for place in range(4):
            store_words(results[i], 32 * len(made) * place, made[:4], place)
            store_words(results[i], 32 * len(made) * place + 32, made[4:8], place)
            store_words(results[i], 32 * len(made) * place + 64, made[8:], place)


def _counts(word: int, size: int) -> int:
    """How many bits are set in each group of so many, in its place."""
    groups = range(0, 64, size)
    ones = (1 << size) - 1
    return sum((word >> place & ones).bit_count() << place for place in groups)


def _spread(word: int) -> int:
    """The lowest eight groups of four, a byte each."""
    return sum((word >> 4 * place & 15) << 8 * place for place in range(8))


def _expected(a: list[int], b: list[int], indices: list[int], place: int) -> list[int]:
    word, other = a[place], b[place]
    return [
        word & other,
        word | other,
        word ^ ALL_ONES,
        word << 56 & ALL_ONES,
        word >> 28,
        other if word else 0,
        word.bit_count(),
        _counts(word, 8),
        1 << indices[place] if indices[place] >= 0 else 0,
        a[0] >> place & 1,
        a[1],
        _counts(_spread(word), 8),
    ]


def test_four_words_at_once_are_four_times_one() -> None:
    rng = random.Random(3)
    words = words_of_all_kinds()
    number = len(words)
    rows = [[words[i], *(rng.choice(words) for _ in range(3))] for i in range(number)]
    others = [[rng.choice(words) for _ in range(4)] for _ in range(number)]
    indices = [[rng.randint(-1, 63) for _ in range(4)] for _ in range(number)]
    results = np.zeros((number, 4 * 12 * 8 * 4), np.int8)
    given = np.array(rows, np.uint64), np.array(others, np.uint64)
    _combine(*given, np.array(indices, np.int8), results)
    stored = results.view(np.uint64).reshape(number, 4, 48)[:, :, :12].tolist()
    for i in range(number):
        for place in range(4):
            expected = _expected(rows[i], others[i], indices[i], place)
            assert stored[i][place] == expected, (i, place)


@numba.njit
def _store_lanes(words: Any, offsets: Any, counts: Any, raw: Any) -> None:
    for i in range(len(words)):
        a = lanes(words[i])
        for place in range(4):
            store_counts(counts[i, place], offsets[i], (a, ~a), place)
            store_words(raw[i, place], offsets[i], (a, ~a), place)


def test_words_and_counts_are_stored_in_their_places_alone() -> None:
    rng = random.Random(4)
    words = words_of_all_kinds()
    rows = [[words[i], *(rng.choice(words) for _ in range(3))] for i in range(len(words))]
    offsets = [index % 41 for index in range(len(words))]
    counts, raw = (np.full((len(words), 4, 41 + width), 7, np.int8) for width in (32, 16))
    _store_lanes(np.array(rows, np.uint64), np.array(offsets), counts, raw)
    for i, offset in enumerate(offsets):
        for place in range(4):
            both = rows[i][place] | (rows[i][place] ^ ALL_ONES) << 64
            groups = [(both >> 4 * group & 15).bit_count() for group in range(32)]
            expected = [7] * offset + groups + [7] * (41 - offset)
            assert counts[i, place].tolist() == expected
            stored = list(both.to_bytes(16, "little"))
            expected = [7] * offset + stored + [7] * (41 - offset)
            assert raw[i, place].view(np.uint8).tolist() == expected


# --- Totals of all subsets ------------------------------------------------------------------------


@numba.njit
def _total(values: Any, bases: Any, lowests: Any, exempts: Any, targets: Any, found: Any) -> None:
    for i in range(len(values)):
        found[0, i] = totals_reach(values[i], bases[i], targets[i])
        found[1, i] = rests_reach(values[i], bases[i], lowests[i], exempts[i], targets[i])


class Case:
    """Five numbers and what is asked of their subsets.

    Args:
        numbers: the five, the first in the lowest byte.
        base: what all subsets hold besides.
        lowest: what is left out of a subset that holds none of the five that may be left out.
        exempt: those of the five that may not.
        target: what is to be reached.
    """

    def __init__(
        self, numbers: list[int], base: int, lowest: int, exempt: set[int], target: int
    ) -> None:
        self.numbers, self.base, self.lowest = numbers, base, lowest
        self.exempt, self.target = exempt, target

    def words(self) -> tuple[int, ...]:
        """The arguments of rests_reach."""
        values = sum(number << 8 * slot for slot, number in enumerate(self.numbers))
        exempt = sum(0xFF << 8 * slot for slot in self.exempt)
        return values, self.base, self.lowest, exempt, self.target

    def totals(self) -> int:
        """Which subsets total at least the target."""
        return sum(1 << subset for subset in range(32) if self._total(subset) >= self.target)

    def rests(self) -> int:
        """Which do without the first of their numbers that is not exempt."""
        return sum(
            1 << subset
            for subset in range(32)
            if self._total(subset) - self._left_out(subset) >= self.target
        )

    def _held(self, subset: int) -> list[int]:
        return [slot for slot in range(5) if subset >> slot & 1]

    def _total(self, subset: int) -> int:
        return self.base + sum(self.numbers[slot] for slot in self._held(subset))

    def _left_out(self, subset: int) -> int:
        liable = [slot for slot in self._held(subset) if slot not in self.exempt]
        return self.numbers[liable[0]] if liable else self.lowest


def cases() -> list[Case]:
    """Hands with cards beyond the five or none, sorted or not, targets low and high."""
    rng = random.Random(2)
    found: list[Case] = []
    for number in range(3000):
        numbers = [rng.randint(0 if number % 5 == 0 else 1, 13) for _ in range(5)]
        if number % 2:
            numbers.sort()
        beyond = [rng.randint(1, 13) for _ in range(rng.randint(0, 3))]
        exempt = set(rng.sample(range(5), rng.choice((0, 0, 1, 1, 2, 5))))
        lowest = min(beyond, default=0)
        found.append(Case(numbers, sum(beyond), lowest, exempt, rng.randint(0, 45)))
    found += [
        Case([0] * 5, 0, 0, set(), 0),
        Case([0] * 5, 0, 0, set(), 1),
        Case([13] * 5, 39, 13, set(), 104),
        Case([13] * 5, 39, 13, set(), 105),
        Case([51] * 5, 0, 0, set(), 255),  # as much as a byte holds
        Case([51, 51, 51, 51, 50], 1, 1, {0, 1, 2, 3, 4}, 254),
        Case([200, 10, 20, 20, 5], 0, 0, set(), 55),
    ]
    return found


def test_totals_of_all_subsets_are_those_of_python() -> None:
    tried = cases()
    columns = zip(*(case.words() for case in tried), strict=True)
    arguments = [np.array(column, dtype=np.uint64) for column in columns]
    found = np.zeros((2, len(tried)), dtype=np.uint64)
    _total(*arguments, found)
    for case, totals, rests in zip(tried, *found.tolist(), strict=True):
        assert totals == case.totals(), vars(case)
        assert rests == case.rests(), vars(case)
    assert len(np.unique(found[0])) > 200
    assert len(np.unique(found[1])) > 200
