"""The shipped results of our agents of Deck of Spies, deal by deal, to place others among them.

They are of the first deals of the test bank under seed 0 and of the default rules. As an agent's
result on a deal is the agent's alone, one that plays the same deals is compared with each of them
deal by deal, without playing theirs again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
from rich.text import Text

import deck_of_spies_env
from deck_of_spies_env.evaluation import statistics
from deck_of_spies_env.evaluation.intervals import FixedIntervals
from deck_of_spies_env.evaluation.matches import MatchResult
from deck_of_spies_env.evaluation.printing import (
    as_text,
    new_table,
    p_value_text,
    with_interval,
)
from deck_of_spies_env.evaluation.statistics import MAX_KEY_SPIES
from deck_of_spies_env.files import write_bytes_atomically
from deck_of_spies_env.solitaire.rules import Rules

FORMAT = 1
ENV_ID = next(iter(deck_of_spies_env.ENV_IDS))
"""Whose deals they are: another version of the environment deals and plays otherwise."""

BANK, SEED = "test", 0

_FILE = "ladder.npz"
_ABOUT = "about"


class LadderError(ValueError):
    """Results that are not to be compared; the message is one line for the user."""


@dataclass(frozen=True, eq=False)
class Rung:
    """An agent of the ladder, on the first D deals.

    Attributes:
        name: as it's written for ``evaluate.py``.
        wins: bool (D,).
        key_spies: int64 (D,).
    """

    name: str
    wins: npt.NDArray[np.bool_]
    key_spies: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ladder:
    """The agents, and by which version of the package they were played."""

    version: str
    rungs: tuple[Rung, ...]


class Place(TypedDict):
    """An agent of the ladder beside the one that is judged, on their common deals.

    Rates are fractions. Differences are the judged agent less the one of the ladder.
    """

    name: str
    deals: int
    win_rate: float
    win_rate_ci: list[float]
    mean_key_spies: float
    mean_key_spies_ci: list[float]
    win_rate_difference: float
    win_rate_difference_ci: list[float]
    mcnemar_p: float
    mcnemar_p_holm: float
    mean_key_spies_difference: float
    mean_key_spies_difference_ci: list[float] | None


@dataclass(frozen=True)
class Standing:
    """Where an agent stands.

    Attributes:
        name: of the agent.
        win_rate: of all its deals, a fraction.
        places: the agents of the ladder, from the highest win rate down; all their p-values are
            adjusted together.
        version: of the package that played the ladder.
    """

    name: str
    win_rate: float
    places: tuple[Place, ...]
    version: str

    @property
    def rank(self) -> int:
        """1 for a higher win rate than all of the ladder, on the deals common with each."""
        return 1 + sum(place["win_rate_difference"] < 0 for place in self.places)

    def __str__(self) -> str:
        """A table."""
        table = new_table("agent", "deals", "wins, %", "Key Spies", "wins, % points", "p (Holm)")
        for place in self.places:
            table.add_row(
                Text(place["name"]),
                f"{place['deals']:,}",
                with_interval(place["win_rate"], place["win_rate_ci"], 100),
                with_interval(place["mean_key_spies"], place["mean_key_spies_ci"]),
                with_interval(
                    place["win_rate_difference"], place["win_rate_difference_ci"], 100, "+"
                ),
                p_value_text(place["mcnemar_p_holm"]),
            )
        head = (
            f"{self.name}: {100 * self.win_rate:.2f}% wins, place {self.rank} of "
            f"{len(self.places) + 1}; points are its wins less those of the agent on the same deals"
        )
        return as_text([Text(f"{head}\n"), table])


def stand(
    name: str, result: MatchResult, *, bank: str, seed: int, rules: Rules, ladder: Ladder
) -> Standing:
    """Where a result stands on a ladder.

    Args:
        name: of the agent.
        result: on the first deals of the bank under the seed.
        bank, seed, rules: what was played.
        ladder: of shipped_ladder().

    Raises:
        LadderError: other deals or rules than the ladder's.
    """
    _check_same_deals(bank, seed, rules)
    ranked = sorted(ladder.rungs, key=lambda rung: -float(rung.wins.mean()))
    common = [min(len(rung.wins), len(result.wins)) for rung in ranked]
    tests = [
        statistics.mcnemar_exact(result.wins[:deals], rung.wins[:deals])
        for rung, deals in zip(ranked, common, strict=True)
    ]
    adjusted = statistics.holm([test.p_value for test in tests]).tolist()
    places = tuple(
        _place(rung, result, deals, test.p_value, p_holm)
        for rung, deals, test, p_holm in zip(ranked, common, tests, adjusted, strict=True)
    )
    return Standing(name, float(result.wins.mean()), places, ladder.version)


def _check_same_deals(bank: str, seed: int, rules: Rules) -> None:
    changed = [
        f"{name} {value}"
        for name, value, shipped in (
            ("bank", bank, BANK),
            ("seed", seed, SEED),
            *((field, value, asdict(Rules())[field]) for field, value in asdict(rules).items()),
        )
        if value != shipped
    ]
    if changed:
        raise LadderError(
            f"the ladder is of the {BANK} bank, seed {SEED} and the default rules, "
            f"not of {', '.join(changed)}"
        )


def _place(rung: Rung, result: MatchResult, deals: int, p: float, p_holm: float) -> Place:
    intervals = FixedIntervals()
    ours, theirs = result.wins[:deals], rung.wins[:deals]
    ahead = result.key_spies[:deals] - rung.key_spies[:deals]
    difference = intervals.mean_difference(ahead, MAX_KEY_SPIES)
    return {
        "name": rung.name,
        "deals": deals,
        "win_rate": float(rung.wins.mean()),
        "win_rate_ci": list(intervals.rate(rung.wins)),
        "mean_key_spies": float(rung.key_spies.mean()),
        "mean_key_spies_ci": list(intervals.mean(rung.key_spies, 0, MAX_KEY_SPIES)),
        "win_rate_difference": float(ours.mean() - theirs.mean()),
        "win_rate_difference_ci": list(intervals.win_difference(ours, theirs)),
        "mcnemar_p": p,
        "mcnemar_p_holm": p_holm,
        "mean_key_spies_difference": float(ahead.mean()),
        "mean_key_spies_difference_ci": None if difference is None else list(difference),
    }


@cache
def shipped_ladder() -> Ladder:
    """The ladder that comes with the package.

    Raises:
        LadderError: it's of another version of the environment.
    """
    return read_ladder(files("deck_of_spies_env.evaluation").joinpath(_FILE).read_bytes())


def read_ladder(content: bytes) -> Ladder:
    """A ladder from the content of its file.

    Raises:
        LadderError: it's of another format, version of the environment, bank, seed or rule set.
    """
    with np.load(BytesIO(content), allow_pickle=False) as archive:
        about = json.loads(archive[_ABOUT].tobytes())
        expected = _about()
        for name, value in expected.items():
            if about.get(name) != value:
                raise LadderError(
                    f"the results of the ladder are of {name} {about.get(name)}, not {value}"
                )
        rungs = tuple(
            Rung(name, *_unpacked(archive[str(number)], deals))
            for number, (name, deals) in enumerate(about["agents"].items())
        )
    return Ladder(about["version"], rungs)


def write_ladder(path: str | Path, matches: Sequence[tuple[str, MatchResult | Rung]]) -> None:
    """Write the file of a ladder.

    Args:
        path: of the file.
        matches: name and result of each agent, on the first deals of the bank and the seed.

    Raises:
        OSError: the file can't be written.
    """
    about = {
        **_about(),
        "version": deck_of_spies_env.__version__,
        "agents": {name: len(result.wins) for name, result in matches},
    }
    columns = {
        str(number): _packed(result.wins, result.key_spies)
        for number, (_, result) in enumerate(matches)
    }
    archive = BytesIO()
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez_compressed(archive, allow_pickle=False, **{_ABOUT: text}, **columns)
    write_bytes_atomically(path, archive.getvalue())


def _about() -> Mapping[str, Any]:
    """What must be the same for results to be compared."""
    return {
        "format": FORMAT,
        "env": ENV_ID,
        "bank": BANK,
        "seed": SEED,
        "rules": asdict(Rules()),
    }


def _packed(wins: npt.NDArray[np.bool_], key_spies: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Both in one byte a deal: twice the Key Spies, and one more for a win."""
    return (2 * key_spies + wins).astype(np.uint8)


def _unpacked(
    packed: npt.NDArray[np.uint8], deals: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    if packed.shape != (deals,):
        raise LadderError(f"the ladder is damaged: {packed.shape} results for {deals} deals")
    return packed % 2 == 1, (packed // 2).astype(np.int64)
