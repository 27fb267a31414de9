"""Judging a policy of one's own in a few lines, with nothing but this package.

See :func:`evaluate`, which is imported as ``from deck_of_spies_env.evaluation import evaluate``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deck_of_spies_env.agent import Actions, Agent
from deck_of_spies_env.errors import IllegalActionError
from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.evaluation.judging import SolitaireJudgement, TableJudgement
from deck_of_spies_env.evaluation.ladder import LadderError, Standing, shipped_ladder, stand
from deck_of_spies_env.evaluation.matches import MatchResult
from deck_of_spies_env.evaluation.partial import partial_file
from deck_of_spies_env.evaluation.printing import as_text
from deck_of_spies_env.evaluation.reports import Report, report_tables, to_json
from deck_of_spies_env.evaluation.runs import CHUNK_SIZE, Deals, numbered, play_run
from deck_of_spies_env.evaluation.statistics import Interval
from deck_of_spies_env.evaluation.stopping import (
    FixedDeals,
    SequentialTest,
    StoppingRule,
    UntilWidth,
)
from deck_of_spies_env.evaluation.table_reports import TableReport, table_report_tables
from deck_of_spies_env.evaluation.tables import TableResult
from deck_of_spies_env.skirmish.bots import BOTS, make_bot
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules

GAMES = ("deck_of_spies", "skirmish")
DEFAULT_OPPONENT = "intrigue"
"""The bot in all other seats of Skirmish."""

_MOST = 1 << 31
Policy = Agent | Callable[[Any, Any], Any] | str
"""An agent, a function ``(observation, action_mask) -> action``, or ``"module:name"`` of one that
makes either; in Skirmish also a bot's name."""


@dataclass(frozen=True)
class Evaluation:
    """How a policy fared; printed, it is a table.

    Attributes:
        game: one of GAMES.
        report: all figures, as ``evaluate.py --json`` writes them; the policy comes first.
        result: the policy's, deal by deal: MatchResult, or in Skirmish TableResult.
    """

    game: str
    report: Report | TableReport
    result: MatchResult | TableResult

    @property
    def win_rate(self) -> float:
        """The policy's, a fraction; in Skirmish its share of wins."""
        return self.report["agents"][0]["win_rate"]

    @property
    def win_rate_ci(self) -> Interval:
        """Its 95% interval."""
        return Interval(*self.report["agents"][0]["win_rate_ci"])

    def ladder(self) -> Standing:
        """Where the policy stands among the shipped results, compared on the same deals.

        Raises:
            LadderError: other deals or rules than the ladder's, or Skirmish.
        """
        if isinstance(self.result, TableResult) or "num_players" in self.report:
            raise LadderError("there is a ladder of Deck of Spies only")
        if self.report["stopping"]["mode"] != "fixed":
            raise LadderError("the tests of the ladder are for a fixed number of deals")
        return stand(
            self.report["agents"][0]["name"],
            self.result,
            bank=self.report["bank"],
            seed=self.report["seed"],
            rules=Rules.of(self.report["rules"]),
            ladder=shipped_ladder(),
        )

    def to_json(self) -> str:
        """The report as JSON."""
        return to_json(self.report)

    def __str__(self) -> str:
        """The report as tables."""
        if "num_players" in self.report:
            return as_text(table_report_tables(self.report))
        return as_text(report_tables(self.report))


def evaluate(
    policy: Policy,
    *,
    deals: int = 10_000,
    seed: int = 0,
    bank: str = "test",
    rules: Any = None,
    game: str = "deck_of_spies",
    against: Policy | None = None,
    num_players: int = 2,
    batched: bool = False,
    name: str | None = None,
    behaviour: bool = False,
    luck: bool = False,
    until_width: float | None = None,
    margin: float | None = None,
    alpha: float = 0.05,
    workers: int = 1,
    batch_size: int = CHUNK_SIZE,
    chunk_size: int = CHUNK_SIZE,
    resume: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Judge a policy on deals that are the same for everybody.

    Args:
        policy: an agent (``deck_of_spies_env.agent``), a function ``(observation, action_mask) ->
            action``, or ``"module:name"``, which is called without arguments and gives either.
        deals: how many; at most, with ``until_width`` or ``margin``.
        seed, bank: which deals, see ``evaluation.seeds``; the seed is also for what agents leave to
            chance.
        rules: the rule set of the game or a mapping of its fields, None for the default.
        game: ``"deck_of_spies"`` or ``"skirmish"``.
        against: in Deck of Spies another policy to judge on the same deals, None for none; in
            Skirmish who sits in all other seats, None for the bot ``intrigue``.
        num_players: at a table of Skirmish, 2-4.
        batched: functions take N games at once: int8 (N, d) and (N, n) in, N actions out. Else
            they are called game by game, with arrays of shape (d,) and (n,).
        name: of the policy in the report, None for its own.
        behaviour: report what agents recruit, counter and retire, too (Deck of Spies).
        luck: report results with luck taken out, too (Deck of Spies).
        until_width: stop when the intervals of all win rates are narrower than this fraction.
        margin: with ``against``: stop when a sequential test has named the better of both, or has
            found that the win rates differ by no more than this fraction.
        alpha: the probability of either error of that test, at most.
        workers: processes. More than one need a policy that can be pickled, and a script that
            starts below ``if __name__ == "__main__":``. The results are the same for any number.
        batch_size, chunk_size: games side by side, and deals that a worker plays at a time.
        resume: a file that keeps what is played; the same call goes on from it. It can't tell
            whether a policy of the same name has changed.
        progress: called with the number of games that ended since the last call.

    Raises:
        ValueError: a bad argument; the message names it.
        IllegalActionError: the policy returned what is no legal action.
        WorkerError: a worker process has died.
    """
    if game not in GAMES:
        raise ValueError(f"unknown game {game!r}; there are {', '.join(GAMES)}")
    policies = [policy, *_others(against, game)]
    names = numbered([name or _name_of(policy), *map(_name_of, policies[1:])])
    makers = [partial(_make_agent, each, batched, num_players) for each in policies]
    which = Deals(bank, seed, deals, chunk_size)
    rule = _rule(len(names), until_width, margin, alpha, shares=game == "skirmish")
    if game == "skirmish":
        _refuse_if(behaviour or luck, "behaviour and luck are of Deck of Spies only")
        table_rules = SkirmishRules.of(rules)
        tables = TableJudgement(names, makers, num_players, table_rules, which, rule, batch_size)
        played = _play(tables, workers, resume, progress)
        return Evaluation(game, tables.report(played), tables.results(played)[0][-1])
    own_rules = Rules.of(rules)
    alone = SolitaireJudgement(names, makers, own_rules, which, rule, batch_size, behaviour, luck)
    played = _play(alone, workers, resume, progress)
    return Evaluation(game, alone.report(played), alone.results(played)[0])


def _others(against: Policy | None, game: str) -> list[Policy]:
    if against is None:
        return [DEFAULT_OPPONENT] if game == "skirmish" else []
    return [against]


def _rule(
    num_agents: int, until_width: float | None, margin: float | None, alpha: float, *, shares: bool
) -> StoppingRule:
    _refuse_if(until_width is not None and margin is not None, "give until_width or margin")
    if margin is not None:
        return SequentialTest(margin, alpha, num_agents, shares=shares)
    if until_width is not None:
        return UntilWidth(until_width, num_agents, shares=shares)
    return FixedDeals()


def _refuse_if(wrong: bool, why: str) -> None:
    if wrong:
        raise ValueError(why)


def _play(
    judgement: SolitaireJudgement | TableJudgement,
    workers: int,
    resume: str | Path | None,
    progress: Callable[[int], None] | None,
) -> list[Columns]:
    kept = nullcontext() if resume is None else partial_file(resume, judgement.settings)
    with kept as kept_in:
        return play_run(
            judgement.run,
            workers=workers,
            kept_in=kept_in,
            progress=progress and (lambda _, ended: progress(ended)),
            look=judgement.look,
        )


# --- Policies of any form ---


def _name_of(policy: Policy) -> str:
    if isinstance(policy, str):
        return policy
    return getattr(policy, "__name__", None) or type(policy).__name__


def _make_agent(policy: Policy, batched: bool, num_players: int) -> Agent:
    """An agent from a policy of any form.

    Raises:
        ValueError: it's none of them.
    """
    if isinstance(policy, str):
        if policy in BOTS:
            return make_bot(policy, num_players)
        return _make_agent(_imported(policy)(), batched, num_players)
    if isinstance(policy, Agent):
        return policy
    if not callable(policy):
        raise ValueError(
            "a policy must be an agent with reset and act, a function (observation, action_mask) "
            f"-> action, or 'module:name', got {policy!r}"
        )
    return FunctionAgent(policy, batched=batched)


def _imported(written: str) -> Callable[[], Any]:
    """What ``module:name`` names.

    Raises:
        ValueError: nothing that can be called.
    """
    module, colon, name = written.partition(":")
    if not colon:
        raise ValueError(
            f"unknown policy {written!r}: write 'module:name', or in Skirmish a bot's name "
            f"({', '.join(BOTS)}); agents of the repository are judged by evaluate.py"
        )
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"can't import policy {written!r}, written as module:name: {error}"
        ) from error
    if not callable(found):
        raise ValueError(f"policy {written!r} is nothing that can be called")
    return found


class FunctionAgent:
    """A function as an agent.

    Args:
        function: ``(observation, action_mask) -> action``.
        batched: whether it takes N games at once.
    """

    def __init__(self, function: Callable[[Any, Any], Any], *, batched: bool) -> None:
        self._function, self._batched = function, batched

    def reset(self, seed: int) -> None:
        """Nothing to do: a function has no chance of its own to seed."""

    def act(self, observation: npt.NDArray[Any], action_mask: npt.NDArray[Any]) -> Actions:
        """The function's actions in N games, int64 (N,).

        Raises:
            IllegalActionError: it gave something else than a whole number for each game.
        """
        if self._batched:
            return self._function(observation, action_mask)
        pairs = zip(observation, action_mask, strict=True)
        return np.array([_whole_number(self._call(*pair)) for pair in pairs], np.int64)

    def _call(self, observation: npt.NDArray[Any], action_mask: npt.NDArray[Any]) -> Any:
        try:
            return self._function(observation, action_mask)
        except (IndexError, ValueError, TypeError) as error:
            raise ValueError(
                f"the policy failed at one game ({error}): it is given an observation of shape "
                f"{observation.shape} and a mask of shape {action_mask.shape}; a function that "
                "takes many games at once needs batched=True"
            ) from error


def _whole_number(action: Any) -> int:
    try:
        number = operator.index(action)
        if abs(number) > _MOST:
            raise IllegalActionError(f"there is no action {number}")
        return number
    except TypeError:
        raise IllegalActionError(
            f"the policy must return the index of an action, got {action!r}"
        ) from None
