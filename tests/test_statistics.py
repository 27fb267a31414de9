"""Tests of the intervals and tests for evaluated games.

Three kinds: values published or worked by hand, properties, and simulations of the error rate.

A simulation of N experiments estimates a rate r with a binomial standard error of
sqrt(r (1 - r) / N), and is compared to the rate expected within five of them: for a rate of 5 % or
95 %, 0.0077 at the usual N = 20,000 and 0.0154 at the N = 5,000 of the t intervals. A correct
method would fail such a two-sided check for about one seed in 1.7 million; the seeds are fixed, so
that no run fails by chance.
"""

import json
import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from deck_of_spies_env.evaluation.statistics import (
    Difference,
    Interval,
    PairedTest,
    bounded_mean_interval,
    holm,
    mcnemar_exact,
    mean_interval,
    paired_mean_difference,
    paired_win_rate_difference,
    survival_counts,
    wilson_interval,
)

EXPERIMENTS = 20_000
SIGMAS = 5.0

Cells = tuple[int, int, int, int]
"""Numbers of pairs won by both, only the first, only the second, and neither."""

# Derandomised examples: the same ones in every run, and no example database on disk.
examples = settings(max_examples=100, deadline=None, derandomize=True)
confidences = st.floats(min_value=0.5, max_value=0.999)
cells = st.tuples(*[st.integers(0, 30)] * 4).filter(lambda table: sum(table) > 0)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    """Draw a number of successes and of trials."""
    trials = draw(st.integers(1, 5_000))
    return draw(st.integers(0, trials)), trials


def tolerance(rate: float, experiments: int = EXPERIMENTS) -> float:
    """Return five binomial standard errors of a simulated rate."""
    return SIGMAS * math.sqrt(rate * (1.0 - rate) / experiments)


def paired_wins(table: Cells) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two agents' wins with the given cell counts."""
    return (
        np.repeat(np.array([True, True, False, False]), table),
        np.repeat(np.array([True, False, True, False]), table),
    )


# --- Wilson ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_matches_published_limits(
    successes: int, trials: int, low: float, high: float
) -> None:
    """Newcombe (1998), Statistics in Medicine 17, 857-872, Table I, method 3."""
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_solves_the_score_equation() -> None:
    """The limits are the rates p whose z score |k/n - p| / sqrt(p(1-p)/n) is the 95 % quantile."""
    for limit in wilson_interval(1_940, 2_000):
        assert abs(0.97 - limit) / math.sqrt(limit * (1 - limit) / 2_000) == pytest.approx(
            1.959964, abs=1e-6
        )


@examples
@given(counts(), confidences)
def test_wilson_contains_the_estimate_within_the_unit_range(
    count: tuple[int, int], confidence: float
) -> None:
    low, high = wilson_interval(*count, confidence)
    assert 0.0 <= low <= count[0] / count[1] <= high <= 1.0
    assert low < high


@examples
@given(counts(), confidences)
def test_wilson_is_symmetric_in_successes_and_failures(
    count: tuple[int, int], confidence: float
) -> None:
    successes, trials = count
    low, high = wilson_interval(successes, trials, confidence)
    mirrored = wilson_interval(trials - successes, trials, confidence)
    assert mirrored == pytest.approx((1.0 - high, 1.0 - low), abs=1e-12)


@examples
@given(counts(), st.integers(2, 20), confidences)
def test_wilson_narrows_with_more_trials_at_the_same_rate(
    count: tuple[int, int], factor: int, confidence: float
) -> None:
    low, high = wilson_interval(*count, confidence)
    more_low, more_high = wilson_interval(count[0] * factor, count[1] * factor, confidence)
    assert more_high - more_low < high - low


@examples
@given(counts(), confidences, confidences)
def test_wilson_widens_with_confidence(count: tuple[int, int], one: float, two: float) -> None:
    inner, outer = (wilson_interval(*count, level) for level in sorted((one, two)))
    assert outer.low <= inner.low
    assert inner.high <= outer.high


@pytest.mark.parametrize("trials", [1, 3, 20, 10_000])
def test_wilson_is_exact_at_the_ends(trials: int) -> None:
    assert wilson_interval(0, trials).low == 0.0
    assert wilson_interval(trials, trials).high == 1.0


def test_wilson_average_coverage() -> None:
    """Average coverage at n = 2,000 for rates drawn uniformly around 0.97."""
    rng = np.random.default_rng(1)
    rates = rng.uniform(0.96, 0.98, EXPERIMENTS)
    won, index = np.unique(rng.binomial(2_000, rates), return_inverse=True)
    limits = np.array([wilson_interval(int(k), 2_000) for k in won])[index]
    covered = np.mean((limits[:, 0] <= rates) & (rates <= limits[:, 1]))
    assert covered == pytest.approx(0.95, abs=tolerance(0.95))


def test_wilson_coverage_at_one_rate() -> None:
    """Coverage at n = 2,000 and rate 0.97, whose exact value is 0.9432 as counts are discrete.

    That value sums the binomial probabilities of the counts whose interval holds the rate.
    """
    rng = np.random.default_rng(2)
    won, repeats = np.unique(rng.binomial(2_000, 0.97, EXPERIMENTS), return_counts=True)
    limits = np.array([wilson_interval(int(k), 2_000) for k in won])
    covered = np.average((limits[:, 0] <= 0.97) & (limits[:, 1] >= 0.97), weights=repeats)
    assert covered == pytest.approx(0.9432, abs=tolerance(0.9432))


# --- Means ----------------------------------------------------------------------------------


def test_mean_interval_by_hand() -> None:
    """1..5: mean 3, standard error sqrt(2.5 / 5), and the 97.5 % quantile of t(4), 2.776445."""
    margin = 2.776445 * math.sqrt(0.5)
    values = np.array([1, 2, 3, 4, 5])
    assert mean_interval(values) == pytest.approx((3 - margin, 3 + margin), abs=1e-6)


def test_mean_interval_with_two_values_by_hand() -> None:
    """t(1) is the Cauchy distribution, whose 75 % quantile is 1."""
    assert mean_interval(np.array([0.0, 2.0]), 0.5) == pytest.approx((0.0, 2.0))


def test_mean_interval_of_equal_values_is_degenerate() -> None:
    # 0.1 + 0.1 + 0.1 rounds up: the interval must still be the value, and nothing may warn.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mean_interval(np.full(3, 0.1)) == Interval(0.1, 0.1)
        assert mean_interval(np.full(500, 12)) == Interval(12.0, 12.0)


@examples
@given(
    st.lists(st.integers(0, 12), min_size=2, max_size=50),
    st.integers(-20, 20),
    confidences,
)
def test_mean_interval_follows_shifts_and_sign(
    values: list[int], shift: int, confidence: float
) -> None:
    sample = np.array(values)
    low, high = mean_interval(sample, confidence)
    assert low <= sample.mean() <= high
    assert low + high == pytest.approx(2 * sample.mean())
    assert mean_interval(shift - sample, confidence) == pytest.approx((shift - high, shift - low))


def test_mean_interval_coverage() -> None:
    """Coverage for key-spy counts: discrete on 0..12, skewed, with a peak at 12, n = 500."""
    rng = np.random.default_rng(2)
    experiments, games = 5_000, 500
    weights = np.array([1, 1, 1, 1, 2, 2, 3, 4, 6, 9, 14, 22, 60], dtype=np.float64)
    weights /= weights.sum()
    values = rng.choice(13, size=(experiments, games), p=weights)
    limits = np.array([mean_interval(row) for row in values])
    mean = float(weights @ np.arange(13))
    covered = np.mean((limits[:, 0] <= mean) & (mean <= limits[:, 1]))
    assert covered == pytest.approx(0.95, abs=tolerance(0.95, experiments))


# --- Pairs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first_only", "second_only", "p_value"),
    [
        (0, 1, 1.0),
        (3, 3, 1.0),
        (5, 0, 2 / 2**5),
        # Bentur et al. (2009), in Fagerland, Lydersen & Laake (2013), BMC Medical Research
        # Methodology 13:91: 2 P(X <= 1) = 2 (1 + 8) / 2^8.
        (1, 7, 18 / 256),
        # 2 P(X <= 2) = 2 (1 + 12 + 66) / 2^12.
        (10, 2, 158 / 4_096),
    ],
)
@pytest.mark.parametrize("agreeing", [0, 9])
def test_mcnemar_by_hand(first_only: int, second_only: int, p_value: float, agreeing: int) -> None:
    result = mcnemar_exact(*paired_wins((agreeing, first_only, second_only, 2 * agreeing)))
    assert (result.first_only, result.second_only) == (first_only, second_only)
    assert result.p_value == pytest.approx(p_value, rel=1e-12)


@pytest.mark.parametrize("table", [(1, 0, 0, 0), (0, 0, 0, 4), (7, 0, 0, 5)])
def test_mcnemar_without_a_discordant_pair(table: Cells) -> None:
    assert mcnemar_exact(*paired_wins(table)) == PairedTest(0, 0, 1.0)


@examples
@given(cells, st.integers(0, 2**32))
def test_mcnemar_ignores_the_order_of_agents_and_deals(table: Cells, seed: int) -> None:
    first, second = paired_wins(table)
    result = mcnemar_exact(first, second)
    order = np.random.default_rng(seed).permutation(first.size)
    assert mcnemar_exact(first[order], second[order]) == result
    swapped = mcnemar_exact(second, first)
    assert (swapped.second_only, swapped.first_only) == (result.first_only, result.second_only)
    assert swapped.p_value == pytest.approx(result.p_value)
    assert 0.0 < result.p_value <= 1.0


def test_mcnemar_size_and_power() -> None:
    """The 5 % test rejects at most 5 % of equal agents, and most of unequal ones.

    With 300 pairs, 20 % of them discordant, an exact test is conservative (about 4 %) but must
    not be useless: a bound from below on its size, and its power where the discordant pairs split
    three to one, hold it to that.
    """
    rng = np.random.default_rng(3)
    size = rejection_rate(rng.multinomial(300, (0.7, 0.1, 0.1, 0.1), EXPERIMENTS))
    assert 0.02 < size <= 0.05 + tolerance(0.05)
    power = rejection_rate(rng.multinomial(300, (0.7, 0.15, 0.05, 0.1), EXPERIMENTS))
    assert power > 0.9


def rejection_rate(tables: NDArray[np.int64]) -> float:
    """Return the share of tables, shape (experiments, 4), with a p-value of at most 5 %."""
    distinct, repeats = np.unique(tables[:, 1:3], axis=0, return_counts=True)
    p_values = np.array(
        [mcnemar_exact(*paired_wins((0, int(b), int(c), 1))).p_value for b, c in distinct]
    )
    return float(np.average(p_values <= 0.05, weights=repeats))


def test_paired_mean_difference_of_students_sleep_data() -> None:
    """Student (1908): extra sleep under two drugs; limits as printed by R's paired t.test."""
    first = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
    second = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    difference = paired_mean_difference(first, second)
    assert difference.mean == pytest.approx(-1.58)
    assert difference.interval == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)


def test_paired_mean_difference_of_equal_differences_is_degenerate() -> None:
    first = np.array([5, 9, 12])
    assert paired_mean_difference(first, first - 2) == Difference(2.0, Interval(2.0, 2.0))


def test_paired_mean_difference_of_unsigned_values_can_be_negative() -> None:
    first = np.array([0, 1], dtype=np.uint8)
    second = np.array([2, 1], dtype=np.uint8)
    assert paired_mean_difference(first, second).mean == -1.0


def test_paired_mean_difference_coverage() -> None:
    """Coverage for two agents' counts of 0..12 that share the luck of the deal, 200 deals."""
    rng = np.random.default_rng(4)
    experiments, deals = 5_000, 200
    shape = (experiments, deals)
    luck = rng.integers(0, 9, shape)
    own = np.arange(5)
    first_weights, second_weights = [0.1, 0.1, 0.1, 0.2, 0.5], [0.4, 0.2, 0.2, 0.1, 0.1]
    first = luck + rng.choice(own, shape, p=first_weights)
    second = luck + rng.choice(own, shape, p=second_weights)
    difference = float(own @ first_weights - own @ second_weights)
    limits = np.array(
        [paired_mean_difference(a, b).interval for a, b in zip(first, second, strict=True)]
    )
    covered = np.mean((limits[:, 0] <= difference) & (difference <= limits[:, 1]))
    assert covered == pytest.approx(0.95, abs=tolerance(0.95, experiments))


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((20, 12, 2, 16), 0.0562, 0.3292),
        ((18, 12, 2, 18), 0.0562, 0.3290),
        ((36, 14, 0, 0), 0.1528, 0.4167),
        ((35, 14, 0, 1), 0.1461, 0.4175),
        ((18, 14, 0, 18), 0.1441, 0.3963),
        ((2, 97, 1, 0), 0.8721, 0.9854),
        ((0, 29, 1, 0), 0.6666, 0.9882),
        ((2, 98, 0, 0), 0.9178, 0.9945),
        ((1, 98, 0, 1), 0.9171, 0.9916),
        ((0, 30, 0, 0), 0.8395, 1.0000),
        ((54, 0, 0, 0), -0.0664, 0.0664),
        ((53, 0, 0, 1), -0.0729, 0.0729),
        ((30, 0, 0, 24), -0.0358, 0.0358),
        ((27, 0, 0, 27), -0.0351, 0.0351),
    ],
)
def test_win_rate_difference_matches_published_limits(
    table: Cells, low: float, high: float
) -> None:
    """Newcombe (1998), Statistics in Medicine 17, 2635-2650, Table III, method 10."""
    difference = paired_win_rate_difference(*paired_wins(table))
    assert difference.mean == pytest.approx((table[1] - table[2]) / sum(table))
    assert difference.interval == pytest.approx((low, high), abs=5.1e-5)


def test_win_rate_difference_with_negative_association() -> None:
    """Worked by hand: one pair each way, so p = 1/2 twice, phi = -1, and the errors add up.

    The Wilson limits of 1/2 are 1/2 -+ z / (2 sqrt(2 + z^2)); with phi = -1 the limits of the
    difference are -+ twice that distance.
    """
    z = 1.959964
    distance = z / math.sqrt(2 + z**2)
    difference = paired_win_rate_difference(*paired_wins((0, 1, 1, 0)))
    assert difference.mean == 0.0
    assert difference.interval == pytest.approx((-distance, distance), abs=1e-6)


@examples
@given(cells, confidences)
def test_win_rate_difference_properties(table: Cells, confidence: float) -> None:
    first, second = paired_wins(table)
    mean, (low, high) = paired_win_rate_difference(first, second, confidence)
    assert mean == pytest.approx(float(np.mean(first)) - float(np.mean(second)), abs=1e-12)
    assert -1.0 <= low <= mean <= high <= 1.0
    assert low < high
    # Swapping the agents, or counting losses in place of wins, mirrors the interval.
    for mirrored in (
        paired_win_rate_difference(second, first, confidence),
        paired_win_rate_difference(~first, ~second, confidence),
    ):
        assert mirrored.mean == pytest.approx(-mean, abs=1e-12)
        assert mirrored.interval == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.parametrize(
    "shares",
    [(0.5, 0.2, 0.1, 0.2), (0.93, 0.03, 0.03, 0.01), (0.85, 0.1, 0.02, 0.03)],
    ids=["moderate", "equal and near 1", "one near 1"],
)
def test_win_rate_difference_coverage(shares: tuple[float, float, float, float]) -> None:
    """Coverage over 200 pairs: not short of 95 %, and not far above it either.

    The continuity correction makes method 10 err on the safe side, here by about one percentage
    point, so that the upper bound is looser than five standard errors.
    """
    rng = np.random.default_rng(5)
    tables = rng.multinomial(200, shares, EXPERIMENTS)
    distinct, repeats = np.unique(tables, axis=0, return_counts=True)
    limits = np.array(
        [
            paired_win_rate_difference(*paired_wins((int(a), int(b), int(c), int(d)))).interval
            for a, b, c, d in distinct
        ]
    )
    difference = shares[1] - shares[2]
    covered = np.average(
        (limits[:, 0] <= difference) & (difference <= limits[:, 1]), weights=repeats
    )
    assert 0.95 - tolerance(0.95) <= covered < 0.97


# --- Means of values in a range ---------------------------------------------------------------


@pytest.mark.parametrize("wins", [0, 30, 2_500, 4_900])
def test_bounded_mean_of_many_wins_is_agresti_and_coulls_interval(wins: int) -> None:
    """Student's quantile of 5,000 degrees of freedom is 0.02 % more than the normal one."""
    interval = bounded_mean_interval(np.arange(5_000) < wins, 0, 1)
    published = proportion_confint(wins, 5_000, method="agresti_coull")
    assert interval == pytest.approx(np.clip(published, 0, 1), abs=1e-5)


@examples
@given(st.lists(st.integers(0, 12), min_size=1, max_size=60).map(np.array), confidences)
def test_bounded_mean_properties(values: NDArray[np.int64], confidence: float) -> None:
    low, high = bounded_mean_interval(values, 0, 12, confidence)
    assert 0.0 <= low <= values.mean() <= high <= 12.0
    assert low < high
    mirrored = bounded_mean_interval(12 - values, 0, 12, confidence)
    assert mirrored == pytest.approx((12 - high, 12 - low), abs=1e-9)
    scaled = bounded_mean_interval(values / 6 - 1, -1, 1, confidence)
    assert scaled == pytest.approx((low / 6 - 1, high / 6 - 1), abs=1e-9)


def test_bounded_mean_of_one_value_is_the_whole_range() -> None:
    assert bounded_mean_interval(np.array([12]), 0, 12) == (0.0, 12.0)


# --- Survival and adjustment ----------------------------------------------------------------


def test_survival_counts_by_hand() -> None:
    survival = survival_counts(np.array([0, 1, 12, 3]))
    assert survival == {1: 0.75, 2: 0.5, 3: 0.5, **dict.fromkeys(range(4, 13), 0.25)}
    assert list(survival) == list(range(1, 13))


@examples
@given(st.lists(st.integers(0, 12), min_size=1, max_size=50))
def test_survival_falls_and_sums_to_the_mean(key_spies: list[int]) -> None:
    shares = list(survival_counts(np.array(key_spies)).values())
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(np.mean(key_spies))


def test_holm_by_hand() -> None:
    """Sorted: 4 x 0.005, 3 x 0.01, 2 x 0.03, then 1 x 0.04, raised to the 0.06 before it."""
    adjusted = holm([0.01, 0.04, 0.03, 0.005])
    assert adjusted.dtype == np.float64
    assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.04]) == pytest.approx([0.04])
    assert holm(np.array([0.5, 0.9])) == pytest.approx([1.0, 1.0])


# Few examples: statsmodels runs a full garbage collection in every call.
@settings(examples, max_examples=20)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_holm_lies_between_the_raw_and_the_bonferroni_values(p_values: list[float]) -> None:
    raw = np.array(p_values)
    adjusted = holm(p_values)
    assert np.all(adjusted >= raw - 1e-15)
    assert np.all(adjusted <= np.minimum(1.0, raw * raw.size) + 1e-15)
    assert np.all(np.diff(adjusted[np.argsort(raw)]) >= 0.0)


# --- Bad input and reports ------------------------------------------------------------------

WINS = np.array([True, False, True])
VALUES = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson_interval(0, 0), "trials must be positive, got 0"),
        (lambda: wilson_interval(1, -4), "trials must be positive, got -4"),
        (lambda: wilson_interval(-1, 5), r"successes must lie in \[0, 5\], got -1"),
        (lambda: wilson_interval(6, 5), r"successes must lie in \[0, 5\], got 6"),
        (lambda: mean_interval(np.array([])), "values must have at least 2 entries, got 0"),
        (lambda: mean_interval(np.array([7.0])), "values must have at least 2 entries, got 1"),
        (lambda: mean_interval(np.ones((2, 3))), r"values must be one-dimensional.*\(2, 3\)"),
        (lambda: mean_interval(np.array([1.0, np.nan])), "values must be finite, got nan"),
        (lambda: mean_interval(np.array([1.0, np.inf])), "values must be finite, got inf"),
        (lambda: bounded_mean_interval(VALUES, 0, 3), r"values must lie in \[0, 3\], got 4.0"),
        (lambda: bounded_mean_interval(VALUES, 5, 5), "low must be below high, both finite, got 5"),
        (lambda: bounded_mean_interval(VALUES[:0], 0, 1), "values must have at least 1 entries"),
        (lambda: mcnemar_exact(WINS, WINS[:2]), r"same shape, got \(3,\) and \(2,\)"),
        (lambda: mcnemar_exact(WINS[:0], WINS[:0]), "first must have at least 1 entries, got 0"),
        (lambda: mcnemar_exact(WINS, WINS[None]), r"second must be one-dimensional.*\(1, 3\)"),
        (lambda: paired_mean_difference(VALUES, VALUES[:2]), r"same shape, got \(3,\) and \(2,\)"),
        (lambda: paired_mean_difference(VALUES[:1], VALUES[:1]), "first must have .* got 1"),
        (lambda: paired_mean_difference(VALUES, VALUES * np.nan), "second must be finite, got nan"),
        (lambda: paired_win_rate_difference(WINS, WINS[:2]), "same shape"),
        (lambda: paired_win_rate_difference(WINS[:0], WINS[:0]), "at least 1 entries, got 0"),
        (lambda: survival_counts(np.array([], dtype=int)), "at least 1 entries, got 0"),
        (lambda: survival_counts(np.array([3, 13])), r"key_spies must lie in \[0, 12\], got 13"),
        (lambda: survival_counts(np.array([-1, 3])), r"key_spies must lie in \[0, 12\], got -1"),
        (lambda: survival_counts(np.ones((2, 2), dtype=int)), "one-dimensional"),
        (lambda: holm([]), "p_values must have at least 1 entries, got 0"),
        (lambda: holm([0.1, 1.5]), r"p_values must lie in \[0, 1\], got 1.5"),
        (lambda: holm([0.1, math.nan]), r"p_values must lie in \[0, 1\], got nan"),
        (lambda: holm(np.ones((2, 2))), "p_values must be one-dimensional"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_wrong_types_are_named() -> None:
    with pytest.raises(ValueError, match="second must be boolean, got dtype int64"):
        mcnemar_exact(WINS, WINS.astype(np.int64))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="first must be boolean, got dtype float64"):
        paired_win_rate_difference(VALUES, WINS)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="key_spies must be integers, got dtype float64"):
        survival_counts(VALUES)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95.0, math.nan])
def test_bad_confidence_is_named(confidence: float) -> None:
    message = f"confidence must lie strictly between 0 and 1, got {confidence}"
    with pytest.raises(ValueError, match=message):
        wilson_interval(1, 2, confidence)
    with pytest.raises(ValueError, match=message):
        mean_interval(VALUES, confidence)
    with pytest.raises(ValueError, match=message):
        bounded_mean_interval(VALUES, 0, 12, confidence)
    with pytest.raises(ValueError, match=message):
        paired_mean_difference(VALUES, VALUES, confidence)
    with pytest.raises(ValueError, match=message):
        paired_win_rate_difference(WINS, WINS, confidence)


def test_results_are_valid_json() -> None:
    results = [
        wilson_interval(3, 3),
        mean_interval(np.array([12, 12])),
        bounded_mean_interval(np.array([12, 12]), 0, 12),
        mcnemar_exact(WINS, WINS),
        paired_mean_difference(VALUES, VALUES),
        paired_win_rate_difference(WINS, ~WINS),
        survival_counts(np.array([12])),
    ]
    assert json.loads(json.dumps(results, allow_nan=False))
