"""Tests of the sequential intervals and test: values by hand, an oracle, properties.

How often they are wrong is in ``test_coverage.py``.
"""

import json
import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate

from deck_of_spies_env.evaluation.sequential import MeanSequence, PairedWinTest, WinRateSequence
from deck_of_spies_env.evaluation.statistics import Interval

examples = settings(max_examples=60, deadline=None, derandomize=True)
confidences = st.floats(0.5, 0.999)
key_spies = st.lists(st.integers(0, 12), max_size=60).map(np.array)
shares = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60).map(np.array)


def wins_of(won: int, lost: int) -> NDArray[np.bool_]:
    return np.arange(won + lost) < won


def after(sequence: MeanSequence, values: NDArray[np.generic]) -> Interval:
    sequence.update(values)
    return sequence.interval


# --- Win rates ------------------------------------------------------------------------------


def test_one_win_by_hand() -> None:
    """The mean of Beta(1/2, 1/2) is 1/2, and 1/2 is twenty times the rate of 0.025."""
    sequence = WinRateSequence()
    assert sequence.interval == (0.0, 1.0)
    sequence.update(np.array([True]))
    assert (sequence.num_wins, sequence.num_deals) == (1, 1)
    assert sequence.interval == pytest.approx((0.025, 1.0))
    assert sequence.width == pytest.approx(0.975)


@pytest.mark.parametrize(("won", "lost"), [(1, 4), (3, 3), (40, 2)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_at_the_ends_the_mixture_is_as_likely_as_the_confidence_says(
    won: int, lost: int, confidence: float
) -> None:
    sequence = WinRateSequence(confidence)
    sequence.update(wins_of(won, lost))

    def likelihood(angle: float) -> float:  # at the rate sin^2(angle), uniform for Beta(1/2, 1/2)
        return math.sin(angle) ** (2 * won) * math.cos(angle) ** (2 * lost)

    mixture = integrate.quad(likelihood, 0.0, math.pi / 2)[0] / (math.pi / 2)
    for rate in sequence.interval:
        assert mixture / (rate**won * (1 - rate) ** lost) == pytest.approx(1 / (1 - confidence))


@examples
@given(st.integers(0, 5_000), st.integers(0, 5_000), confidences)
def test_win_rate_properties(won: int, lost: int, confidence: float) -> None:
    sequence, mirrored = WinRateSequence(confidence), WinRateSequence(confidence)
    sequence.update(wins_of(won, lost))
    mirrored.update(~wins_of(won, lost))
    low, high = sequence.interval
    assert 0.0 <= low < high <= 1.0
    assert mirrored.interval == pytest.approx((1 - high, 1 - low), abs=1e-9)
    if won + lost:
        assert low <= won / (won + lost) <= high


@pytest.mark.parametrize("lost", [0, 1])
def test_rates_near_the_ends_of_the_range_after_many_deals(lost: int) -> None:
    sequence = WinRateSequence()
    sequence.update(wins_of(3_000_000, lost))
    assert 1 - 1e-5 < sequence.interval.low < 1.0 - lost / 3_000_000
    assert sequence.interval.high >= 1.0 - lost / 3_000_000


# --- Means ----------------------------------------------------------------------------------

STAKES = 1 / (1 + 2.0 ** np.arange(-4, 14))


def mean_capital(values: NDArray[np.float64], mean: float) -> float:
    """Of those who bet on values above the mean, on a range of [0, 1], one value after another."""
    capitals = np.ones(STAKES.size)
    for value in values:
        capitals *= 1 - STAKES + STAKES * value / mean
    return float(capitals.mean())


def test_one_value_by_hand() -> None:
    """At the top of the range a capital becomes 1 + stake (1/m - 1), on average 40 at the end."""
    stake = STAKES.mean()
    interval = after(MeanSequence(0.0, 12.0), np.array([12]))
    assert interval == pytest.approx((12 * stake / (39 + stake), 12.0))
    assert MeanSequence(0.0, 12.0).interval == (0.0, 12.0)


@examples
@given(key_spies, confidences)
def test_at_the_ends_the_capital_is_what_the_confidence_says(
    values: NDArray[np.int64], confidence: float
) -> None:
    low, high = after(MeanSequence(0, 12, confidence), values)
    wanted = pytest.approx(2 / (1 - confidence), rel=1e-6)
    if low > 1e-9:
        assert mean_capital(values / 12, low / 12) == wanted
    if high < 12 - 1e-9:
        assert mean_capital(1 - values / 12, 1 - high / 12) == wanted


def test_the_interval_of_losses_only_starts_at_the_bottom() -> None:
    low, high = after(MeanSequence(0, 12), np.zeros(50))
    assert low == 0.0
    assert 0.0 < high < 3.0


@examples
@given(shares)
def test_values_between_points_of_the_grid_widen_the_interval_hardly(
    values: NDArray[np.float64],
) -> None:
    low, high = after(MeanSequence(0.0, 1.0), values)
    assert 0.0 <= low <= values.mean() <= high <= 1.0
    # By the exact capital the ends are outside, and means a little further in are not.
    for sample, end in ((values, low), (1 - values, 1 - high)):
        if end > 1e-9:
            assert mean_capital(sample, end) >= 40 * (1 - 1e-6)
            assert mean_capital(sample, end + 0.01) < 40


@examples
@given(key_spies, st.lists(st.integers(0, 60), max_size=5), st.randoms(use_true_random=False))
def test_neither_order_nor_batches_matter(
    values: NDArray[np.int64], splits: list[int], random: object
) -> None:
    shuffled = values.tolist()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    whole, parts = MeanSequence(0, 12), MeanSequence(0, 12)
    whole.update(values)
    for batch in np.split(np.array(shuffled), sorted(splits)):
        parts.update(batch)
        assert parts.interval.low < parts.interval.high  # a look changes nothing
    assert parts.num_deals == whole.num_deals == len(values)
    assert parts.interval == whole.interval


@examples
@given(key_spies, confidences)
def test_mean_does_not_depend_on_the_unit(values: NDArray[np.int64], confidence: float) -> None:
    low, high = after(MeanSequence(0, 12, confidence), values)
    scaled = after(MeanSequence(-1.0, 1.0, confidence), values / 6 - 1)
    assert scaled == pytest.approx((low / 6 - 1, high / 6 - 1), abs=1e-6)
    mirrored = after(MeanSequence(0, 12, confidence), 12 - values)
    assert mirrored == pytest.approx((12 - high, 12 - low), abs=1e-6)


def test_a_million_deals_are_cheap() -> None:
    """In 100 batches with a look after each: well under a second of processor time here."""
    values = np.random.default_rng(1).binomial(12, 0.9, 1_000_000)
    sequence = MeanSequence(0, 12)
    started = time.process_time()
    for batch in np.split(values, 100):
        sequence.update(batch)
        assert sequence.interval.low < sequence.interval.high
    assert time.process_time() - started < 5.0
    assert sequence.width < 4.5 * 2 * values.std() / math.sqrt(values.size)


# --- Two agents -----------------------------------------------------------------------------

BOTH, FIRST_ONLY, SECOND_ONLY, NEITHER = (1, 1), (1, 0), (0, 1), (0, 0)


def add(test: PairedWinTest, *deals: tuple[int, int], times: int = 1) -> None:
    first, second = np.array(deals * times, dtype=bool).reshape(-1, 2).T
    test.update(first, second)


def test_seven_deals_won_alone_decide() -> None:
    """The mean of p^k under Beta(1/2, 1/2) times 2^k is 14.4 for k = 6 and 26.8 for k = 7."""
    for only, decision in ((FIRST_ONLY, "first"), (SECOND_ONLY, "second")):
        test = PairedWinTest()
        add(test, BOTH, only, NEITHER, times=6)
        assert test.decision == "undecided"
        add(test, only)
        assert test.decision == decision
        assert test.num_deals == 19


def test_a_decision_stays_while_deals_go_on() -> None:
    test = PairedWinTest()
    add(test, FIRST_ONLY, times=7)
    add(test, SECOND_ONLY, times=500)
    assert test.decision == "first"
    assert test.num_deals == 507
    assert test.interval.high < 0.0


def test_looks_are_made_at_the_ends_of_batches_only() -> None:
    test = PairedWinTest()
    add(test, *[FIRST_ONLY] * 7, *[SECOND_ONLY] * 5)
    assert test.decision == "undecided"


def test_equivalence_is_said_when_the_interval_lies_within_the_margin() -> None:
    test, without = PairedWinTest(margin=0.05), PairedWinTest()
    decisions = []
    for _ in range(40):
        add(test, BOTH, NEITHER, FIRST_ONLY, BOTH, SECOND_ONLY, *[BOTH] * 15)
        add(without, BOTH, NEITHER, FIRST_ONLY, BOTH, SECOND_ONLY, *[BOTH] * 15)
        low, high = test.interval
        decisions.append((test.decision == "equivalent", low >= -0.05 and high <= 0.05))
        assert test.width == pytest.approx(high - low)
    assert all(said == within for said, within in decisions)
    assert decisions[0] == (False, False)
    assert decisions[-1] == (True, True)
    assert without.decision == "undecided"


def test_no_deals_say_nothing() -> None:
    test = PairedWinTest(margin=0.5)
    add(test)
    assert (test.decision, test.num_deals, test.interval) == ("undecided", 0, (-1.0, 1.0))


# --- Bad input and reports ------------------------------------------------------------------

WINS = np.array([True, False])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WinRateSequence(1.0), "confidence must lie strictly between 0 and 1, got 1.0"),
        (lambda: MeanSequence(0, 1, 95), "confidence must lie strictly between 0 and 1, got 95"),
        (lambda: MeanSequence(1.0, 1.0), "low must be below high, both finite, got 1.0 and 1.0"),
        (lambda: MeanSequence(0.0, math.inf), "low must be below high, both finite"),
        (lambda: MeanSequence(math.nan, 1.0), "low must be below high, both finite"),
        (lambda: PairedWinTest(0.0), "alpha must lie strictly between 0 and 1, got 0.0"),
        (lambda: PairedWinTest(margin=0.0), "margin must be None or lie strictly .* got 0.0"),
        (lambda: PairedWinTest(margin=1.0), "margin must be None or lie strictly .* got 1.0"),
        (lambda: WinRateSequence().update(np.array([1, 0])), "wins must be boolean, got .*int64"),
        (lambda: WinRateSequence().update(WINS[None]), r"wins must be one-dimensional.*\(1, 2\)"),
        (lambda: MeanSequence(0, 12).update(np.array([3, 13])), r"lie in \[0, 12\], got 13"),
        (lambda: MeanSequence(0, 1).update(np.array([math.nan])), r"lie in \[0, 1\], got nan"),
        (lambda: MeanSequence(0, 1).update(np.ones((2, 2))), "values must be one-dimensional"),
        (lambda: PairedWinTest().update(WINS, WINS[:1]), r"same shape, got \(2,\) and \(1,\)"),
        (lambda: PairedWinTest().update(WINS, WINS * 1), "second must be boolean, got dtype int64"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_bad_values_change_nothing() -> None:
    sequence, test = MeanSequence(0, 12), PairedWinTest()
    with pytest.raises(ValueError, match="lie in"):
        sequence.update(np.array([3, 13]))
    with pytest.raises(ValueError, match="same shape"):
        test.update(WINS, WINS[:1])
    assert (sequence.num_deals, sequence.interval) == (0, (0.0, 12.0))
    assert test.num_deals == 0


def test_intervals_are_valid_json() -> None:
    rates, means = WinRateSequence(), MeanSequence(0, 12)
    rates.update(WINS)
    means.update(np.array([12, 12]))
    assert json.loads(json.dumps([rates.interval, means.interval], allow_nan=False))
