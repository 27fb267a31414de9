"""Intervals and tests for evaluated games.

Two shapes of question are answered here: how well one agent does (a win rate, a mean number of
key spies, the share of games that reach each number) and how two agents compare when both play
the *same* deals, where only the paired methods use what the deals have in common.

Every number returned is finite (short of overflow), so that a report holding them is valid JSON;
where no finite answer exists a ``ValueError`` is raised instead.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats  # pyright: ignore[reportMissingTypeStubs]
from statsmodels.stats.multitest import (  # pyright: ignore[reportMissingTypeStubs]
    multipletests,  # pyright: ignore[reportUnknownVariableType]
)
from statsmodels.stats.proportion import (  # pyright: ignore[reportMissingTypeStubs]
    proportion_confint,  # pyright: ignore[reportUnknownVariableType]
)

__all__ = [
    "MAX_KEY_SPIES",
    "Difference",
    "Interval",
    "PairedTest",
    "bounded_mean_interval",
    "holm",
    "mcnemar_exact",
    "mean_interval",
    "paired_mean_difference",
    "paired_win_rate_difference",
    "survival_band",
    "survival_counts",
    "wilson_interval",
]

MAX_KEY_SPIES: Final = 12
"""Largest number of key spies one game can count."""

Numbers: TypeAlias = NDArray[np.floating | np.integer]


class Interval(NamedTuple):
    """Two-sided confidence interval, both ends finite and ``low <= high``."""

    low: float
    high: float


class PairedTest(NamedTuple):
    """Outcome of a test on paired wins.

    Attributes
    ----------
    first_only, second_only
        Numbers of deals that only the first, or only the second, agent won.
    p_value
        Two-sided p-value, in [0, 1].
    """

    first_only: int
    second_only: int
    p_value: float


class Difference(NamedTuple):
    """Mean of ``first - second`` over the pairs, with its confidence interval."""

    mean: float
    interval: Interval


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return the Wilson score interval for a proportion.

    Wilson's method [1]_, without continuity correction, by
    :func:`statsmodels.stats.proportion.proportion_confint`. The ends lie in [0, 1] and are
    exactly 0 and 1 where no trial, or every trial, succeeded.

    Parameters
    ----------
    successes
        Number of successes, in [0, `trials`].
    trials
        Number of independent trials, at least 1.
    confidence
        Coverage aimed at, in (0, 1).

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    .. [1] E. B. Wilson (1927), "Probable inference, the law of succession, and statistical
       inference", Journal of the American Statistical Association 22(158), 209-212.
    """
    check_confidence(confidence)
    if trials <= 0:
        raise ValueError(f"trials must be positive, got {trials}")
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must lie in [0, {trials}], got {successes}")
    low, high = _proportion_confint(int(successes), int(trials), confidence)
    # Rounding can leave the ends a few 1e-17 inside the exact 0 and 1.
    return Interval(
        low=0.0 if successes == 0 else low,
        high=1.0 if successes == trials else high,
    )


def mean_interval(values: Numbers, confidence: float = 0.95) -> Interval:
    """Return Student's t interval for a mean.

    Student's method [1]_, by :func:`scipy.stats.sem` and :func:`scipy.special.stdtrit` with n - 1
    degrees of freedom.

    Parameters
    ----------
    values
        Shape (n,), n >= 2, finite numbers drawn independently from one distribution.
    confidence
        Coverage aimed at, in (0, 1).

    Returns
    -------
    Interval
        If all values are equal, the degenerate interval from that value to itself: the sample
        shows no spread, which is no proof that the distribution has none.

    Raises
    ------
    ValueError
        If `values` is not one-dimensional, has fewer than two entries or a non-finite one, or
        if `confidence` is out of range. A single value says nothing about the spread: its only
        valid interval is the whole real line, which JSON cannot express.

    References
    ----------
    .. [1] Student (1908), "The probable error of a mean", Biometrika 6(1), 1-25.
    """
    check_confidence(confidence)
    return _mean_with_interval(_as_sample(values, "values"), confidence).interval


def bounded_mean_interval(
    values: Numbers, low: float, high: float, confidence: float = 0.95
) -> Interval:
    """Return an interval for the mean of values that keep a range.

    The interval of Agresti and Coull [1]_ carried over from 0 and 1 to any values in a range:
    z^2 / 2 observations of `low` and as many of `high` are added, z being the normal quantile (1.96
    for 95 %), and Student's t interval of all is cut to the range. The added ones stand for what a
    small sample may have missed, such as a rare loss, so that equal values do not make a point and
    a single value makes an interval. With many deals it is Student's interval.

    The coverage of 95 % intervals for a win rate is at least 93.9 %, whatever the rate and the
    number of deals, computed exactly; for Key Spies and shares of wins it is simulated, and no
    lower, while Student's interval covers far less often where losses are rare or deals few.

    Parameters
    ----------
    values
        Shape (n,), n >= 1, numbers in [low, high] drawn independently from one distribution.
    low, high
        The range, finite, ``low < high``: 0 and 12 for Key Spies, 0 and 1 for shares of wins.
    confidence
        Coverage aimed at, in (0, 1).

    Returns
    -------
    Interval
        Within [low, high], of positive width, with the mean of `values` inside; for a single value
        at 95 % the whole range.

    Raises
    ------
    ValueError
        If `values` is not one-dimensional or is empty, if one is out of the range or not finite, or
        if another parameter is out of its range.

    References
    ----------
    .. [1] A. Agresti, B. A. Coull (1998), "Approximate is better than 'exact' for interval
       estimation of binomial proportions", The American Statistician 52(2), 119-126.
    """
    check_confidence(confidence)
    sample = as_values_in_range(values, low, high)
    _check_one_dimensional(sample.shape, "values", minimum=1)
    probability = (1.0 + confidence) / 2.0
    added = _normal_quantile(probability) ** 2 / 2.0
    total = sample.size + 2.0 * added
    mean = (float(sample.sum()) + added * (low + high)) / total
    squares = float(np.sum((sample - mean) ** 2)) + added * ((low - mean) ** 2 + (high - mean) ** 2)
    margin = _t_quantile(probability, total - 1.0) * math.sqrt(squares) / total
    return Interval(max(mean - margin, float(low)), min(mean + margin, float(high)))


def mcnemar_exact(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> PairedTest:
    """Test whether two agents win equally often on the same deals.

    The exact conditional form of McNemar's test [1]_: under the null hypothesis each deal
    won by one agent alone is as likely to be won by either, so that the two-sided binomial test
    with probability 1/2 applies to those deals (:func:`scipy.stats.binomtest`). Its size never
    exceeds the level chosen.

    Parameters
    ----------
    first, second
        Shape (n,), n >= 1, boolean: whether the agent won deal i.

    Returns
    -------
    PairedTest
        With a p-value of 1 if no deal was won by one agent alone.

    Raises
    ------
    ValueError
        If an array is not boolean, not one-dimensional or empty, or the shapes differ.

    References
    ----------
    .. [1] Q. McNemar (1947), "Note on the sampling error of the difference between correlated
       proportions or percentages", Psychometrika 12(2), 153-157.
    """
    _, first_only, second_only, _ = _paired_counts(first, second)
    return PairedTest(first_only, second_only, _binomial_p_value(first_only, second_only))


def paired_mean_difference(first: Numbers, second: Numbers, confidence: float = 0.95) -> Difference:
    """Return the mean of ``first - second`` over pairs, with its t interval.

    Student's paired t interval [1]_: :func:`mean_interval` on the differences, with the same
    treatment of differences that are all equal.

    Parameters
    ----------
    first, second
        Shape (n,), n >= 2, finite numbers: the two agents' results on deal i.
    confidence
        Coverage aimed at, in (0, 1).

    Raises
    ------
    ValueError
        If an array is not one-dimensional, has fewer than two entries or a non-finite one, if
        the shapes differ, or if `confidence` is out of range.

    References
    ----------
    .. [1] Student (1908), "The probable error of a mean", Biometrika 6(1), 1-25.
    """
    check_confidence(confidence)
    first_sample, second_sample = _as_sample(first, "first"), _as_sample(second, "second")
    _check_same_shape(first_sample.shape, second_sample.shape)
    return _mean_with_interval(first_sample - second_sample, confidence)


def paired_win_rate_difference(
    first: NDArray[np.bool_], second: NDArray[np.bool_], confidence: float = 0.95
) -> Difference:
    """Return the first win rate less the second on the same deals, with an interval.

    Newcombe's method 10 [1]_: the Wilson intervals of the two win rates, combined with the
    continuity-corrected correlation of the wins. Unlike the t and Wald intervals it keeps its
    coverage at win rates near 0 or 1 and a positive width when every pair agrees. (SciPy 1.17
    and statsmodels 0.15 offer no interval for paired proportions.)

    Parameters
    ----------
    first, second
        Shape (n,), n >= 1, boolean: whether the agent won deal i.
    confidence
        Coverage aimed at, in (0, 1).

    Returns
    -------
    Difference
        All three numbers lie in [-1, 1].

    Raises
    ------
    ValueError
        If an array is not boolean, not one-dimensional or empty, if the shapes differ, or if
        `confidence` is out of range.

    References
    ----------
    .. [1] R. G. Newcombe (1998), "Improved confidence intervals for the difference between
       binomial proportions based on paired data", Statistics in Medicine 17(22), 2635-2650.
    """
    check_confidence(confidence)
    both, first_only, second_only, neither = _paired_counts(first, second)
    trials = both + first_only + second_only + neither
    first_wins, second_wins = both + first_only, both + second_only
    first_rate, second_rate = first_wins / trials, second_wins / trials
    first_interval = wilson_interval(first_wins, trials, confidence)
    second_interval = wilson_interval(second_wins, trials, confidence)

    # The paper's phi: only a positive association is corrected, and never below zero.
    marginals = first_wins * (trials - first_wins) * second_wins * (trials - second_wins)
    association = float(both * neither - first_only * second_only)
    if association > 0:
        association = max(association - trials / 2, 0.0)
    phi = association / math.sqrt(marginals) if marginals else 0.0

    mean = (first_only - second_only) / trials
    below = _joint_distance(
        first_rate - first_interval.low, second_interval.high - second_rate, phi
    )
    above = _joint_distance(
        first_interval.high - first_rate, second_rate - second_interval.low, phi
    )
    return Difference(mean, Interval(max(mean - below, -1.0), min(mean + above, 1.0)))


def survival_counts(key_spies: NDArray[np.integer]) -> dict[int, float]:
    """Return the fraction of games that reached each number of key spies.

    The empirical estimate of P(X >= k), a plain share of the games.

    Parameters
    ----------
    key_spies
        Shape (n,), n >= 1, integers in [0, 12]: key spies of game i.

    Returns
    -------
    dict[int, float]
        For k = 1, ..., 12 in this order the fraction, in [0, 1], of games with at least k.

    Raises
    ------
    ValueError
        If the array is not of an integer type, not one-dimensional or empty, or holds a number
        outside [0, 12].
    """
    counts = np.asarray(key_spies)
    _check_one_dimensional(counts.shape, "key_spies", minimum=1)
    if not np.issubdtype(counts.dtype, np.integer):
        raise ValueError(f"key_spies must be integers, got dtype {counts.dtype}")
    outside = counts[(counts < 0) | (counts > MAX_KEY_SPIES)]
    if outside.size:
        raise ValueError(f"key_spies must lie in [0, {MAX_KEY_SPIES}], got {outside[0]}")
    return {k: float(np.mean(counts >= k)) for k in range(1, MAX_KEY_SPIES + 1)}


def survival_band(key_spies: NDArray[np.integer], confidence: float = 0.95) -> dict[int, Interval]:
    """Return a band that covers the probabilities of all numbers of key spies at once.

    The inequality of Dvoretzky, Kiefer and Wolfowitz with the constant of Massart [1]_: with the
    confidence stated no probability is off by more than sqrt(log(2 / (1 - confidence)) / (2 n)).

    Parameters
    ----------
    key_spies
        As :func:`survival_counts` takes them.
    confidence
        Joint coverage of all of them, in (0, 1).

    Returns
    -------
    dict[int, Interval]
        For k = 1, ..., 12 in this order an interval within [0, 1] for P(X >= k).

    Raises
    ------
    ValueError
        As of :func:`survival_counts`, or if `confidence` is out of its range.

    References
    ----------
    .. [1] P. Massart (1990), "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality",
       Annals of Probability 18(3), 1269-1283.
    """
    check_confidence(confidence)
    shares = survival_counts(key_spies)
    margin = math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * len(key_spies)))
    return {
        k: Interval(max(share - margin, 0.0), min(share + margin, 1.0))
        for k, share in shares.items()
    }


def holm(p_values: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float64]:
    """Adjust p-values for multiple comparisons.

    Holm's step-down procedure [1]_, by :func:`statsmodels.stats.multitest.multipletests`:
    rejecting where the adjusted p-value is at most alpha keeps the family-wise error rate at
    alpha or below, whatever the dependence of the tests.

    Parameters
    ----------
    p_values
        Shape (m,), m >= 1, in [0, 1].

    Returns
    -------
    NDArray[np.float64]
        Shape (m,), in [0, 1], in the order given, each at least the p-value it adjusts.

    Raises
    ------
    ValueError
        If `p_values` is not one-dimensional or is empty, or one is outside [0, 1] or NaN.

    References
    ----------
    .. [1] S. Holm (1979), "A simple sequentially rejective multiple test procedure",
       Scandinavian Journal of Statistics 6(2), 65-70.
    """
    array = np.asarray(p_values, dtype=np.float64)
    _check_one_dimensional(array.shape, "p_values", minimum=1)
    outside = array[~((array >= 0.0) & (array <= 1.0))]
    if outside.size:
        raise ValueError(f"p_values must lie in [0, 1], got {outside[0]}")
    return _holm_adjusted(array)


def check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")


def as_wins(wins: NDArray[np.bool_], name: str, minimum: int) -> NDArray[np.bool_]:
    """Return `wins`, checked to be boolean (n,) with n >= `minimum`."""
    array = np.asarray(wins)
    _check_one_dimensional(array.shape, name, minimum)
    if array.dtype != np.bool_:
        raise ValueError(f"{name} must be boolean, got dtype {array.dtype}")
    return array


def as_paired_wins(
    first: NDArray[np.bool_], second: NDArray[np.bool_], minimum: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return `first` and `second`, checked to be wins on the same `minimum` or more deals."""
    arrays = as_wins(first, "first", minimum), as_wins(second, "second", minimum)
    _check_same_shape(arrays[0].shape, arrays[1].shape)
    return arrays


def as_values_in_range(values: Numbers, low: float, high: float) -> NDArray[np.float64]:
    """Return `values` as floats, checked to be one-dimensional and in a proper range."""
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"low must be below high, both finite, got {low} and {high}")
    array = np.asarray(values, dtype=np.float64)
    _check_one_dimensional(array.shape, "values", minimum=0)
    outside = array[~((array >= low) & (array <= high))]
    if outside.size:
        raise ValueError(f"values must lie in [{low}, {high}], got {outside[0]}")
    return array


def _check_one_dimensional(shape: tuple[int, ...], name: str, minimum: int) -> None:
    if len(shape) != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {shape}")
    if shape[0] < minimum:
        raise ValueError(f"{name} must have at least {minimum} entries, got {shape[0]}")


def _check_same_shape(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    if first != second:
        raise ValueError(f"first and second must have the same shape, got {first} and {second}")


def _as_sample(values: Numbers, name: str) -> NDArray[np.float64]:
    """Return `values` as floats, checked to be a finite sample of at least two."""
    array = np.asarray(values, dtype=np.float64)
    _check_one_dimensional(array.shape, name, minimum=2)
    bad = array[~np.isfinite(array)]
    if bad.size:
        raise ValueError(f"{name} must be finite, got {bad[0]}")
    return array


def _paired_counts(
    first: NDArray[np.bool_], second: NDArray[np.bool_]
) -> tuple[int, int, int, int]:
    """Return the numbers of deals won by both, only the first, only the second, and neither."""
    arrays = as_paired_wins(first, second, minimum=1)
    both = int(np.count_nonzero(arrays[0] & arrays[1]))
    first_only = int(np.count_nonzero(arrays[0])) - both
    second_only = int(np.count_nonzero(arrays[1])) - both
    return both, first_only, second_only, arrays[0].size - both - first_only - second_only


def _joint_distance(first: float, second: float, phi: float) -> float:
    """Return the length of the sum of two errors at right angles but for a correlation."""
    return math.sqrt(max(first**2 - 2 * phi * first * second + second**2, 0.0))


def _mean_with_interval(sample: NDArray[np.float64], confidence: float) -> Difference:
    # Compare the values, not their standard error: rounding in the mean of equal values can
    # make it positive.
    if np.all(sample == sample[0]):
        value = float(sample[0])
        return Difference(value, Interval(value, value))
    mean = float(np.mean(sample))
    margin = _t_quantile((1.0 + confidence) / 2.0, sample.size - 1) * _standard_error(sample)
    return Difference(mean, Interval(mean - margin, mean + margin))


# SciPy and statsmodels ship no types: each function of theirs is called in one place below.


def _proportion_confint(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    return cast(
        "tuple[float, float]",
        proportion_confint(successes, trials, alpha=1.0 - confidence, method="wilson"),
    )


def _binomial_p_value(successes: int, failures: int) -> float:
    trials = successes + failures
    if trials == 0:
        return 1.0
    result = stats.binomtest(successes, trials, p=0.5)  # pyright: ignore[reportUnknownMemberType]
    return float(cast("float", result.pvalue))


def _standard_error(sample: NDArray[np.float64]) -> float:
    error = stats.sem(sample)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return float(cast("float", error))


def _normal_quantile(probability: float) -> float:
    return float(cast("float", special.ndtri(probability)))


def _t_quantile(probability: float, degrees: float) -> float:
    return float(cast("float", special.stdtrit(degrees, probability)))


def _holm_adjusted(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    adjusted = cast("NDArray[np.float64]", multipletests(p_values, method="holm")[1])
    return np.asarray(adjusted, dtype=np.float64)
