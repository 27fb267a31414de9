"""What is played to judge agents, and what comes of it: from names and makers to a report.

A judgement has the ``run`` to play, a ``look`` at each chunk for its stopping rule, and makes the
``report`` of what was played: ``judgement.report(play_run(judgement.run, look=judgement.look))``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import deck_of_spies_env
from deck_of_spies_env.agent import Agent
from deck_of_spies_env.evaluation.behaviour import BehaviourCollector
from deck_of_spies_env.evaluation.columns import Columns
from deck_of_spies_env.evaluation.luck_reports import LuckCollector
from deck_of_spies_env.evaluation.matches import MatchResult
from deck_of_spies_env.evaluation.reports import Report, make_report
from deck_of_spies_env.evaluation.runs import (
    CHUNK_SIZE,
    CollectorMaker,
    Deals,
    Recorder,
    Run,
    SolitaireMatch,
    TableMatch,
)
from deck_of_spies_env.evaluation.stopping import StoppingRule
from deck_of_spies_env.evaluation.table_reports import (
    Match,
    TableReport,
    make_table_report,
    pairs_of,
    share_of,
)
from deck_of_spies_env.evaluation.tables import TableResult
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules

Settings = dict[str, Any]
"""All that decides what a chunk comes to, but for the agents themselves: plain data."""

AgentMaker = Callable[[], Agent]


@dataclass(frozen=True)
class SolitaireJudgement:
    """Deck of Spies: each agent alone on all deals.

    Attributes:
        names: of the agents, all different.
        makers: make them.
        rules: the rule set.
        deals: which deals.
        rule: when enough of them are played.
        batch_size: games side by side.
        behaviour: whether to report how the agents play.
        luck: whether to report results with luck taken out.
        collectors: make what else looks on.
        recorder_of: given an agent's number, what records its games.

    Raises:
        ValueError: luck is to be taken out of fewer than two deals, or of a number that is not
            fixed.
    """

    names: Sequence[str]
    makers: Sequence[AgentMaker]
    rules: Rules
    deals: Deals
    rule: StoppingRule
    batch_size: int = CHUNK_SIZE
    behaviour: bool = False
    luck: bool = False
    collectors: Sequence[CollectorMaker] = ()
    recorder_of: Callable[[int], Recorder] | None = None

    def __post_init__(self) -> None:
        if self.luck and not self.rule.p_values_hold:
            raise ValueError("luck is taken out of a fixed number of deals only")
        if self.luck and self.deals.count < 2:
            raise ValueError("luck is taken out of two deals at least")

    @property
    def _collectors(self) -> list[CollectorMaker]:
        wanted = ((self.behaviour, BehaviourCollector), (self.luck, LuckCollector))
        return [*(collector for asked, collector in wanted if asked), *self.collectors]

    @cached_property
    def run(self) -> Run:
        """What to play."""
        matches = [
            SolitaireMatch(
                agent,
                self.rules,
                self.batch_size,
                self._collectors,
                self.recorder_of and self.recorder_of(agent),
            )
            for agent in range(len(self.names))
        ]
        return Run(self.names, self.makers, matches, self.deals)

    @property
    def settings(self) -> Settings:
        """For a partial file."""
        collected = [collector.__name__ for collector in self._collectors]
        common = _settings("deck_of_spies", self.names, self.rules, self.deals, self.batch_size)
        return {**common, "collected": collected, "recorded": self.recorder_of is not None}

    def look(self, chunk: Sequence[Columns]) -> bool:
        """Whether the chunks shown are enough."""
        return self.rule.look([columns["wins"] for columns in chunk])

    def results(self, played: Sequence[Columns]) -> list[MatchResult]:
        """The result of each agent."""
        return [MatchResult.of(columns) for columns in played]

    def report(self, played: Sequence[Columns]) -> Report:
        """The report on what was played."""
        return make_report(
            list(zip(self.names, self.results(played), strict=True)),
            seed=self.deals.seed,
            rules=self.rules,
            bank=self.deals.bank,
            rule=self.rule,
            deals_at_most=self.deals.count,
            columns=played,
        )


@dataclass(frozen=True)
class TableJudgement:
    """Skirmish: every agent against every other one, each deal from every seat.

    Attributes:
        num_players: 2-4.
        recorder_of: given the numbers of an agent and of the other, what records their games.
        names, makers, rules, deals, rule, batch_size: as of :class:`SolitaireJudgement`.

    Raises:
        ValueError: fewer than two agents.
    """

    names: Sequence[str]
    makers: Sequence[AgentMaker]
    num_players: int
    rules: SkirmishRules
    deals: Deals
    rule: StoppingRule
    batch_size: int = CHUNK_SIZE
    recorder_of: Callable[[int, int], Recorder] | None = None

    def __post_init__(self) -> None:
        if len(self.names) < 2:
            raise ValueError("Skirmish needs at least two agents")
        self.rules.record(self.num_players)  # are there cards for all?

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Who meets whom, in the order of the matches."""
        return pairs_of(len(self.names), self.num_players)

    @cached_property
    def run(self) -> Run:
        """What to play."""
        matches = [
            TableMatch(
                *pair,
                self.num_players,
                self.rules,
                self.batch_size,
                self.recorder_of and self.recorder_of(*pair),
            )
            for pair in self.pairs
        ]
        return Run(self.names, self.makers, matches, self.deals)

    @property
    def settings(self) -> Settings:
        """For a partial file."""
        common = _settings("skirmish", self.names, self.rules, self.deals, self.batch_size)
        recorded = self.recorder_of is not None
        return {**common, "num_players": self.num_players, "recorded": recorded}

    def look(self, chunk: Sequence[Columns]) -> bool:
        """Whether the chunks shown are enough."""
        results = self.results(chunk)
        agents = range(len(self.names))
        return self.rule.look([share_of(agent, results, self.num_players) for agent in agents])

    def results(self, played: Sequence[Columns]) -> list[Match]:
        """The result of each match."""
        pairs = zip(self.pairs, played, strict=True)
        return [(*pair, TableResult.of(columns)) for pair, columns in pairs]

    def report(self, played: Sequence[Columns]) -> TableReport:
        """The report on what was played."""
        return make_table_report(
            self.names,
            self.results(played),
            seed=self.deals.seed,
            num_players=self.num_players,
            rules=self.rules,
            bank=self.deals.bank,
            rule=self.rule,
            deals_at_most=self.deals.count,
        )


def _settings(
    game: str, names: Sequence[str], rules: Any, deals: Deals, batch_size: int
) -> Settings:
    return {
        "version": deck_of_spies_env.__version__,
        "game": game,
        "agents": list(names),
        "rules": asdict(rules),
        "bank": deals.bank,
        "seed": deals.seed,
        "chunk_size": deals.chunk_size,
        "batch_size": batch_size,
    }
