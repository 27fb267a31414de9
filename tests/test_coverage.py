"""How often every interval and test that the evaluation prints is wrong.

What depends on counts alone is computed exactly, without chance. The rest is simulated with fixed
seeds: in N simulations a method that is wrong with the stated probability is found wrong more often
than allowed here for less than one seed in 10,000 (a binomial bound). As intervals for a fixed
number of deals are approximate, each is held to its own floor, stated where it is used.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from deck_of_spies_env.evaluation.ratings import ELO, rate
from deck_of_spies_env.evaluation.sequential import MeanSequence, PairedWinTest, WinRateSequence
from deck_of_spies_env.evaluation.statistics import (
    Interval,
    bounded_mean_interval,
    holm,
    mcnemar_exact,
    mean_interval,
    paired_mean_difference,
    paired_win_rate_difference,
    wilson_interval,
)

CHANCE_OF_A_FALSE_ALARM = 1e-4
RATES = np.linspace(0.001, 0.999, 999)

Floats = NDArray[np.float64]

KEY_SPIES = np.arange(13) / 12
DISTRIBUTIONS: dict[str, tuple[Floats, list[float]]] = {
    # As shares of the range: what agents get, from nearly always 10 to 12 Key Spies down.
    "strong": (KEY_SPIES, [0.01, 0, 0, *[0.003] * 4, 0.01, 0.02, 0.03, 0.15, 0.25, 0.518]),
    "all or nothing": (KEY_SPIES, [0.02, *[0.0] * 11, 0.98]),
    "medium": (KEY_SPIES, [0.12, *[0.03] * 6, 0.12, 0.14, 0.14, 0.13, 0.11, 0.06]),
    "weak": (KEY_SPIES, [0.5, *[0.07] * 7, 0.01, 0, 0, 0, 0]),
    # Shares of wins of a deal of Skirmish: two rotations, four of a strong agent, hardly a winner.
    "pairs": (np.array([0, 0.25, 0.5, 0.75, 1]), [0.25, 0.02, 0.46, 0.02, 0.25]),
    "four": (np.arange(5) / 4, [0.02, 0.08, 0.2, 0.3, 0.4]),
    "level": (np.array([0, 0.5, 1]), [0.02, 0.96, 0.02]),
}  # fmt: skip


def wins_of(won: int, lost: int) -> NDArray[np.bool_]:
    return np.arange(won + lost) < won


def fewest(probability: float, experiments: int) -> int:
    """Successes that as many experiments miss only by a false alarm."""
    return int(stats.binom.ppf(CHANCE_OF_A_FALSE_ALARM, experiments, probability))


def most(probability: float, experiments: int) -> int:
    """Successes that as many experiments exceed only by a false alarm."""
    return int(stats.binom.isf(CHANCE_OF_A_FALSE_ALARM, experiments, probability))


def mean_of(name: str) -> float:
    values, weights = DISTRIBUTIONS[name]
    return float(values @ weights / np.sum(weights))


def drawn(name: str, shape: tuple[int, ...], seed: int) -> Floats:
    values, weights = DISTRIBUTIONS[name]
    random = np.random.default_rng(seed)
    return random.choice(values, shape, p=np.array(weights) / np.sum(weights))


def times_covered(interval: Callable[[Floats], Interval], samples: Floats, true_mean: float) -> int:
    """In how many samples, a row each, the interval holds the true mean but for rounding."""
    limits = np.array([interval(sample) for sample in samples])
    return int(np.sum((limits[:, 0] <= true_mean + 1e-12) & (limits[:, 1] >= true_mean - 1e-12)))


# --- A fixed number of deals ----------------------------------------------------------------


def coverage_by_rate(interval: Callable[[int, int], Interval], num_deals: int) -> Floats:
    """Exact: the binomial probability of the numbers of wins whose interval holds each rate."""
    wins = np.arange(num_deals + 1)
    limits = np.array([interval(int(won), num_deals) for won in wins])
    holds = (limits[:, :1] <= RATES) & (limits[:, 1:] >= RATES)
    return (stats.binom.pmf(wins[:, None], num_deals, RATES) * holds).sum(axis=0)


@pytest.mark.parametrize("num_deals", [5, 20, 100, 1_000])
def test_wilson_covers_95_percent_on_average_and_83_percent_at_worst(num_deals: int) -> None:
    """Its coverage swings with the rate; 0.838 is its lowest limit, where about one deal in n is
    won or lost (Agresti and Coull, 1998, give 0.838 in The American Statistician 52, 119-126)."""
    coverage = coverage_by_rate(wilson_interval, num_deals)
    assert coverage.min() > 0.83
    assert 0.949 < coverage.mean() < 0.956


@pytest.mark.parametrize("num_deals", [1, 2, 5, 20, 42, 100, 1_000])
def test_bounded_mean_of_wins_covers_93_9_percent_at_worst(num_deals: int) -> None:
    def interval(won: int, trials: int) -> Interval:
        return bounded_mean_interval(wins_of(won, trials - won).astype(float), 0, 1)

    coverage = coverage_by_rate(interval, num_deals)
    assert coverage.min() >= 0.939
    if num_deals >= 100:
        assert coverage.mean() < 0.96


@pytest.mark.parametrize("num_deals", [1, 3, 20, 200])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bounded_mean_covers(name: str, num_deals: int) -> None:
    samples = drawn(name, (1_000, num_deals), num_deals)
    covered = times_covered(lambda x: bounded_mean_interval(x, 0, 1), samples, mean_of(name))
    assert covered >= fewest(0.939, len(samples))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bounded_mean_is_hardly_wider_than_students_for_many_deals(name: str) -> None:
    for num_deals, factor in ((1_000, 1.15), (20_000, 1.01)):
        sample = drawn(name, (num_deals,), 1)
        low, high = bounded_mean_interval(sample, 0, 1)
        student = mean_interval(sample)
        assert 0.97 < (high - low) / (student.high - student.low) < factor


def test_students_interval_covers_many_deals_but_not_few_with_rare_losses() -> None:
    """Skewed values are what it is known to fail on: nearly all samples of 20 deals with 2 % losses
    see none. With 1,000 deals it may fall short of 95 % by one percentage point."""
    for name in DISTRIBUTIONS:
        samples = drawn(name, (500, 1_000), 2)
        covered = times_covered(mean_interval, samples, mean_of(name))
        assert covered >= fewest(0.94, len(samples))
    samples = drawn("all or nothing", (1_000, 20), 3)
    assert times_covered(mean_interval, samples, mean_of("all or nothing")) < 0.5 * len(samples)


def test_paired_mean_difference_covers() -> None:
    """Two strong agents, a fifth of whose deals go alike; 300 deals, floor as above."""
    first, second = drawn("strong", (1_000, 300), 4), drawn("medium", (1_000, 300), 5)
    alike = np.random.default_rng(6).random(first.shape) < 0.2
    second = np.where(alike, first, second)
    difference = 0.8 * (mean_of("strong") - mean_of("medium"))
    limits = np.array(
        [paired_mean_difference(a, b).interval for a, b in zip(first, second, strict=True)]
    )
    covered = np.sum((limits[:, 0] <= difference) & (limits[:, 1] >= difference))
    assert covered >= fewest(0.94, len(first))


@pytest.mark.parametrize("num_deals", [20, 200])
@pytest.mark.parametrize(
    "shares", [(0.97, 0.02, 0.005, 0.005), (0.6, 0.1, 0.1, 0.2), (0.02, 0.5, 0.02, 0.46)]
)
def test_paired_win_rate_difference_covers(
    shares: tuple[float, float, float, float], num_deals: int
) -> None:
    """Shares of deals won by both, only the first, only the second, neither. Newcombe (1998) found
    a mean coverage above 95 % and single values down to 0.93 or so, the floor here."""
    tables = np.random.default_rng(num_deals).multinomial(num_deals, shares, 1_000)
    distinct, repeats = np.unique(tables, axis=0, return_counts=True)
    wins = np.array([[True, True], [True, False], [False, True], [False, False]])
    limits = np.array(
        [paired_win_rate_difference(*np.repeat(wins, t, axis=0).T).interval for t in distinct]
    )
    difference = shares[1] - shares[2]
    holds = (limits[:, 0] <= difference) & (limits[:, 1] >= difference)
    assert repeats @ holds >= fewest(0.93, len(tables))


def test_mcnemar_is_wrong_5_percent_of_the_time_at_most() -> None:
    """Exact, for each number of deals that one of two equal agents won alone."""
    for num_alone in (1, 5, 6, 17, 50, 101):
        won = np.arange(num_alone + 1)
        p_values = np.array(
            [mcnemar_exact(w := wins_of(k, num_alone - k), ~w).p_value for k in won.tolist()]
        )
        probabilities = stats.binom.pmf(won, num_alone, 0.5)
        for level in (0.01, 0.05, 0.2):
            assert probabilities[p_values <= level].sum() <= level + 1e-12
    assert probabilities[p_values <= 0.05].sum() > 0.02


def test_holm_is_wrong_about_any_true_hypothesis_5_percent_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three true hypotheses among six: one or more rejected with probability 1 - (1 - 0.05/3)^3."""
    monkeypatch.setattr("gc.collect", lambda: 0)  # which statsmodels does in every call
    true = np.random.default_rng(7).random((1_000, 3))
    wrong = sum(holm([*p_values, 1e-9, 1e-8, 1e-7])[:3].min() <= 0.05 for p_values in true)
    assert fewest(0.0491, len(true)) <= wrong <= most(0.05, len(true))


# --- Looks at all times ---------------------------------------------------------------------


@cache
def counts_inside(rate: float, num_deals: int) -> tuple[tuple[int, int], ...]:
    """For 1 to n deals the least and the most wins after which the interval holds a rate."""

    def interval(won: int, deals: int) -> Interval:
        sequence = WinRateSequence()
        sequence.update(wins_of(won, deals - won))
        return sequence.interval

    bounds: list[tuple[int, int]] = []
    least = most_wins = 0
    for deals in range(1, num_deals + 1):
        while interval(least, deals).high < rate:
            least += 1
        while most_wins < deals and interval(most_wins + 1, deals).low <= rate:
            most_wins += 1
        bounds.append((least, most_wins))
    return tuple(bounds)


def ever_outside(
    bounds: tuple[tuple[int, int], ...], true_rate: float
) -> tuple[float, float, Floats]:
    """Exact probabilities that wins ever leave the bounds, below and above, with looks after each
    deal, stopping there; and that they have not, by the number of deals."""
    inside = np.zeros(len(bounds) + 2)
    inside[0] = 1.0
    below = above = 0.0
    still_inside: list[float] = []
    for least, most_wins in bounds:
        inside[1:] = inside[1:] * (1 - true_rate) + inside[:-1] * true_rate
        inside[0] *= 1 - true_rate
        below += inside[:least].sum()
        above += inside[most_wins + 1 :].sum()
        inside[:least] = inside[most_wins + 1 :] = 0.0
        still_inside.append(float(inside.sum()))
    return below, above, np.array(still_inside)


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.98])
def test_win_rate_sequence_covers_at_all_of_600_deals_jointly(rate: float) -> None:
    below, above, _ = ever_outside(counts_inside(rate, 600), rate)
    assert 0.01 < below + above <= 0.05


def looks(num_deals: int) -> list[int]:
    """Numbers of deals, each about half as many again as the one before."""
    return [round(1.5**k) for k in range(2, 40) if 1.5**k <= num_deals]


def times_always_covered(
    interval: Callable[[Floats], Interval], samples: Floats, true_mean: float
) -> int:
    covered = np.ones(len(samples), dtype=bool)
    for num_deals in looks(samples.shape[1]):
        for row in np.flatnonzero(covered):
            low, high = interval(samples[row, :num_deals])
            covered[row] = low <= true_mean <= high
    return int(covered.sum())


def mean_sequence(values: Floats) -> Interval:
    sequence = MeanSequence(0.0, 1.0)
    sequence.update(values)
    return sequence.interval


@pytest.mark.parametrize("name", ["strong", "all or nothing", "weak", "pairs"])
def test_mean_sequence_covers_at_all_looks_jointly(name: str) -> None:
    samples = drawn(name, (200, 2_000), 8)
    covered = times_always_covered(mean_sequence, samples, mean_of(name))
    assert covered >= fewest(0.95, len(samples))


def test_an_interval_for_one_look_does_not_cover_at_all_looks() -> None:
    """So that the check before this one can fail."""
    samples = drawn("medium", (200, 2_000), 8)
    covered = times_always_covered(
        lambda x: bounded_mean_interval(x, 0, 1), samples, mean_of("medium")
    )
    assert covered < fewest(0.95, len(samples))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_mean_sequence_narrows_as_it_says(name: str) -> None:
    for num_deals in (300, 10_000, 1_000_000):
        sample = drawn(name, (num_deals,), 9)
        low, high = mean_sequence(sample)
        normal = 2 * 1.96 * sample.std() / np.sqrt(num_deals)
        assert 1.5 < (high - low) / normal < 2.3
        if num_deals > 300:
            assert 1.7 < (high - low) / normal < 1.9


def test_sequential_test_names_a_better_agent_wrongly_5_percent_of_the_time_at_most() -> None:
    """Exact, over 1,000 deals won by one alone and a look after each; its decision is whether the
    interval of the share that the first won leaves out 1/2, see test_sequential.py."""
    bounds = counts_inside(0.5, 1_000)
    below, above, _ = ever_outside(bounds, 0.5)
    assert below == pytest.approx(above)
    assert 0.02 < below + above <= 0.05
    for share in (0.51, 0.55, 0.7):
        wrong, right, undecided = ever_outside(bounds, share)
        assert wrong <= 0.025
        assert right + wrong + undecided[-1] == pytest.approx(1.0)


def test_sequential_test_stops_early_on_real_differences() -> None:
    """Exact: at 60 to 40 half of all tests have ended after 300 deals won by one alone, and nearly
    all after 800; at 75 to 25 nearly all after 120. The exact test for a fixed number needs 191 and
    25 for a power of 80 %."""
    bounds = counts_inside(0.5, 1_000)
    _, _, undecided = ever_outside(bounds, 0.6)
    assert undecided[300] < 0.5
    assert undecided[800] < 0.02
    _, _, undecided = ever_outside(bounds, 0.75)
    assert undecided[120] < 0.02


def decisions(
    shares: tuple[float, float, float, float], margin: float | None, times: int, seed: int
) -> tuple[list[str], list[int]]:
    """Of tests with a look after every 100 of up to 3,000 deals, and when they stopped."""
    random = np.random.default_rng(seed)
    made, stops = [], []
    for _ in range(times):
        test = PairedWinTest(margin=margin)
        while test.decision == "undecided" and test.num_deals < 3_000:
            kinds = random.choice(4, 100, p=shares)
            test.update(kinds < 2, kinds % 2 == 0)
        made.append(test.decision)
        stops.append(test.num_deals)
    return made, stops


def test_equal_agents_are_rarely_told_apart_and_found_equivalent() -> None:
    made, stops = decisions((0.7, 0.05, 0.05, 0.2), 0.04, 100, 10)
    assert made.count("first") + made.count("second") <= most(0.05, len(made))
    assert made.count("equivalent") >= 0.9 * len(made)
    assert np.median(stops) < 2_000


def test_agents_that_differ_by_more_than_the_margin_are_rarely_found_equivalent() -> None:
    """By a little more, where it is hardest, and so rarely deals won alone that the other stop
    comes late."""
    made, _ = decisions((0.7, 0.051, 0.03, 0.219), 0.02, 100, 11)
    assert made.count("equivalent") <= most(0.05, len(made))
    assert made.count("second") <= most(0.025, len(made))


def test_a_better_agent_is_found_long_before_the_deals_are_used_up() -> None:
    made, stops = decisions((0.6, 0.15, 0.05, 0.2), 0.02, 100, 12)
    assert made.count("first") == len(made)
    assert np.mean(stops) < 400


# --- Ratings --------------------------------------------------------------------------------


def test_ratings_cover() -> None:
    """Of two agents the rating is a rising function of the share of wins, and so the percentile
    interval of the one that of the other. It is a little short of 95 %, as it ignores that the
    deviation is estimated and that the resamples are only 400; the floor is 93 %."""
    samples = drawn("four", (1_000, 300), 13)
    resamples = np.random.default_rng(14).multinomial(300, np.full(300, 1 / 300), 400) / 300
    low, high = np.quantile(samples @ resamples.T, [0.025, 0.975], axis=1)
    covered = np.sum((low <= mean_of("four")) & (high >= mean_of("four")))
    assert covered >= fewest(0.93, len(samples))
    first, second = rate({(0, 1): samples[0]}, 2)
    ends = [ELO * np.log(share / (1 - share)) / 2 for share in (low[0], high[0])]
    assert [first.low, first.high] == pytest.approx(ends, abs=(ends[1] - ends[0]) / 8)
    assert [second.low, second.high] == pytest.approx([-first.high, -first.low])
