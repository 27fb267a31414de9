"""Which games of a match are worth looking at: typical ones, close ones and those that divide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.drawing import counted
from deck_of_spies_env.evaluation.matches import MatchResult
from deck_of_spies_env.evaluation.table_reports import Match
from deck_of_spies_env.solitaire.rules import Rules

MOST_DEALS, MOST_TABLES = 10, 5
"""Games of Deck of Spies and of Skirmish that are chosen at most; the latter are much longer."""


@dataclass(frozen=True)
class ChosenGame:
    """A game to be shown.

    Attributes:
        match: its number among the matches.
        number: of the game within the match: that of the deal, or in Skirmish that of the deal
            times n plus the rotation, as ``PlayedTable.number``.
        title: one line.
        reason: why it was chosen, one sentence.
    """

    match: int
    number: int
    title: str
    reason: str


def choose_deals(
    matches: Sequence[tuple[str, MatchResult]], rules: Rules | None = None
) -> list[ChosenGame]:
    """Games of Deck of Spies: the closest, the largest disagreement, wins and losses.

    Of each agent there is the win and the loss that are median in Key Spies. The closest game of
    all is that whose Key Spies lie nearest to the threshold between a loss and a win. The largest
    disagreement is the deal in which the Key Spies of two agents differ most; both games are
    chosen. Of equals the first deal is taken, and each game once. Of many agents the last ones may
    be left out.

    Args:
        matches: name and result of each agent, all on the same deals.
        rules: that were played; None for the default.

    Returns:
        At most MOST_DEALS, wins and losses first.
    """
    threshold = Rules.of(rules).key_spies_to_win
    key_spies = np.array([result.key_spies for _, result in matches])
    special = [
        *_closest_deal(matches, key_spies, threshold),
        *_largest_disagreement(matches, key_spies),
    ]
    ordinary = [
        game
        for number, (name, result) in enumerate(matches)
        for game in _typical_deals(number, name, result)
    ]
    return _limited(ordinary, special, MOST_DEALS)


def choose_tables(names: Sequence[str], matches: Sequence[Match]) -> list[ChosenGame]:
    """Games of Skirmish: the closest, the most one-sided deal, wins and losses.

    Of each match there is the game that its first agent won, and the one that it lost, by the
    median margin of points. The closest game has the smallest margin. The most one-sided deal is
    that in which one agent's margins from the first two seats add up to most: there play decided,
    not the cards; both games are chosen.

    Args:
        names: of the agents.
        matches: of play_all_tables, all on the same deals.

    Returns:
        At most MOST_TABLES, wins and losses first.
    """
    special = [*_closest_table(names, matches), *_most_one_sided(names, matches)]
    ordinary = [
        game for number in range(len(matches)) for game in _typical_tables(number, names, matches)
    ]
    return _limited(ordinary, special, MOST_TABLES)


def _limited(
    ordinary: Sequence[ChosenGame], special: Sequence[ChosenGame], most: int
) -> list[ChosenGame]:
    """Special games, and as many ordinary ones before them as there is room for."""
    kept = _each_once(special)
    taken = {(game.match, game.number) for game in kept}
    others = [game for game in ordinary if (game.match, game.number) not in taken]
    return [*_each_once(others)[: most - len(kept)], *kept]


def _each_once(games: Iterable[ChosenGame]) -> list[ChosenGame]:
    first = {(game.match, game.number): game for game in reversed(list(games))}
    return list(reversed(first.values()))


def _median(of: npt.NDArray[np.bool_], by: npt.NDArray[np.int64]) -> int | None:
    """The first of those games that are median by a number; None if there are none."""
    numbers = np.flatnonzero(of)
    if not numbers.size:
        return None
    ordered = np.sort(by[numbers])
    median = ordered[(len(ordered) - 1) // 2]
    return int(numbers[np.argmax(by[numbers] == median)])


# --- Deck of Spies ---


def _typical_deals(match: int, name: str, result: MatchResult) -> Iterable[ChosenGame]:
    kinds = (("A typical win", "wins", result.wins), ("A loss", "losses", ~result.wins))
    for title, plural, of in kinds:
        deal = _median(of, result.key_spies)
        if deal is not None:
            reason = f"Of the {plural} of {name} the first with their median number of Key Spies."
            yield ChosenGame(match, deal, f"{title} of {name}: {_ended(result, deal)}", reason)


def _ended(result: MatchResult, deal: int) -> str:
    if result.outcomes[deal] == "no_double_agent":
        return "no Ace was left"
    return key_spies_in_words(int(result.key_spies[deal]))


def key_spies_in_words(number: int) -> str:
    """So many Key Spies."""
    return "1 Key Spy" if number == 1 else f"{number} Key Spies"


def _closest_deal(
    matches: Sequence[tuple[str, MatchResult]], key_spies: npt.NDArray[np.int64], threshold: int
) -> Iterable[ChosenGame]:
    over = np.array([result.outcomes != "no_double_agent" for _, result in matches])
    distances = np.where(over, np.abs(key_spies - threshold + 0.5), np.inf)
    match, deal = np.unravel_index(np.argmin(distances), distances.shape)
    name, result = matches[int(match)]
    if np.isfinite(distances[match, deal]):
        title = f"The closest: {name}, {_ended(result, int(deal))}"
        reason = f"Its Key Spies lie nearest to the {threshold} that a win takes."
        yield ChosenGame(int(match), int(deal), title, reason)


def _largest_disagreement(
    matches: Sequence[tuple[str, MatchResult]], key_spies: npt.NDArray[np.int64]
) -> Iterable[ChosenGame]:
    pairs = list(combinations(range(len(matches)), 2))
    if not pairs:
        return
    apart = np.array([np.abs(key_spies[first] - key_spies[second]) for first, second in pairs])
    pair, deal = np.unravel_index(np.argmax(apart), apart.shape)
    largest = int(apart[pair, deal])
    if not largest:
        return
    first, second = pairs[int(pair)]
    for match, other in ((first, second), (second, first)):
        name, result = matches[match]
        title = f"The largest disagreement, as {name} played it: {_ended(result, int(deal))}"
        reason = f"On this deal {name} and {matches[other][0]} end {largest} Key Spies apart."
        yield ChosenGame(match, int(deal), title, reason)


# --- Skirmish ---


def _typical_tables(
    number: int, names: Sequence[str], matches: Sequence[Match]
) -> Iterable[ChosenGame]:
    first, second, result = matches[number]
    margins = result.margins[:, :, 0].ravel()
    won = result.shares[:, :, 0].ravel()
    kinds = (("A typical win", "wins", won == 1), ("A loss", "losses", won == 0))
    for title, plural, of in kinds:
        game = _median(of, margins)
        if game is not None:
            whole = f"{title} of {names[first]} against {names[second]}: {_ahead(margins[game])}"
            reason = f"Of the {plural} of {names[first]} there the first with their median margin."
            yield ChosenGame(number, game, whole, reason)


def _ahead(margin: int) -> str:
    side = "ahead" if margin >= 0 else "behind"
    return f"{counted(abs(int(margin)), 'point')} {side}"


def _closest_table(names: Sequence[str], matches: Sequence[Match]) -> Iterable[ChosenGame]:
    margins = np.array([np.abs(result.margins[:, :, 0]).ravel() for *_, result in matches])
    number, game = np.unravel_index(np.argmin(margins), margins.shape)
    first, second, result = matches[int(number)]
    margin = result.margins[:, :, 0].ravel()[game]
    title = f"The closest: {names[first]} against {names[second]}, {_ahead(margin)}"
    yield ChosenGame(int(number), int(game), title, "No other game has a smaller margin.")


def _most_one_sided(names: Sequence[str], matches: Sequence[Match]) -> Iterable[ChosenGame]:
    """Deals that go the same way, whoever holds which cards."""
    both = np.array([np.abs(result.margins[:, :2, 0].sum(axis=1)) for *_, result in matches])
    number, deal = np.unravel_index(np.argmax(both), both.shape)
    first, second, result = matches[int(number)]
    for rotation in range(2):
        margin = result.margins[deal, rotation, 0]
        title = (
            f"The most one-sided deal, {names[first]} in seat {rotation} "
            f"against {names[second]}: {_ahead(margin)}"
        )
        reason = "From these two seats together, no deal goes further in favour of one agent."
        yield ChosenGame(int(number), int(deal) * result.margins.shape[1] + rotation, title, reason)
