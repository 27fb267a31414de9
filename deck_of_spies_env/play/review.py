"""Looking back at a game: what each decision cost, and which were the costliest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deck_of_spies_env.play.game import Decision, Game

SAMPLES = 256
"""Of chance, for each action of a decision."""
NUM_NAMED = 5
"""How many decisions are named at most."""
_NUM_ERRORS = 2.0
"""Standard errors that a cost must exceed to be called a mistake."""
_LEAST_COST = 0.05
"""What it must come to at least: smaller costs depend on how the game is played on."""


@dataclass(frozen=True)
class Judgement:
    """What a decision cost.

    Attributes:
        decision: which.
        best: the action of the highest value.
        cost: its value less that of the action chosen, in the game's unit, 0 or more.
        error: the standard error of the cost.
    """

    decision: Decision
    best: int
    cost: float
    error: float

    @property
    def is_mistake(self) -> bool:
        """Whether the cost is beyond what sampling, and the values' own errors, can explain."""
        return self.cost > max(_LEAST_COST, _NUM_ERRORS * self.error)


def judge(game: Game, decision: Decision, seed: int) -> Judgement:
    """Compare what was chosen with the best there was.

    Args:
        game: in which it was decided.
        decision: to judge.
        seed: of the samples.
    """
    worths = game.worths(None, decision.snapshot, SAMPLES, seed)
    best = int(worths.values.argmax())
    chosen = worths.actions.tolist().index(decision.action)
    cost = float(worths.values[best] - worths.values[chosen])
    return Judgement(decision, int(worths.actions[best]), cost, float(worths.errors[chosen]))


def judge_all(game: Game, progress: Callable[[int, int], bool]) -> list[Judgement]:
    """Judge the decisions of a game in which there was a choice.

    Args:
        game: whose decisions are judged.
        progress: is told how many are done and how many there are, and says whether to go on.

    Returns:
        In the order of play; those judged so far if it was stopped.
    """
    choices = [decision for decision in game.decisions if decision.num_legal > 1]
    judged: list[Judgement] = []
    for number, decision in enumerate(choices):
        if not progress(number, len(choices)):
            break
        judged.append(judge(game, decision, seed=number))
    return judged


def in_words(game: Game, judged: Sequence[Judgement]) -> list[str]:
    """The review as paragraphs: how many mistakes, their cost, and the costliest decisions.

    Args:
        game: in which the decisions were taken.
        judged: all of its decisions in which there was a choice.
    """
    if not judged:
        return ["There was no decision in which you had a choice."]
    mistakes = [one for one in judged if one.is_mistake]
    named = sorted(mistakes or judged, key=lambda one: -one.cost)
    named = named[: NUM_NAMED if mistakes else 1]
    sentences = [_sentence(game, one) for one in named]
    return [_summary(game, judged, mistakes), *sentences, game.judged_by]


def _summary(game: Game, judged: Sequence[Judgement], mistakes: Sequence[Judgement]) -> str:
    if not mistakes:
        return f"None of your {len(judged)} decisions was clearly a mistake. The costliest:"
    total = sum(one.cost for one in mistakes)
    return (
        f"{len(mistakes)} of your {len(judged)} decisions cost something, {total:.2f} {game.unit} "
        f"in all. The costliest:"
    )


def _sentence(game: Game, one: Judgement) -> str:
    played = game.named(one.decision, one.decision.action)
    better = game.named(one.decision, one.best)
    faced = f"{game.faced(one.decision)}: you chose to {played}"
    if one.decision.action == one.best:
        return f"{faced}, and nothing was better (cost 0.00 {game.unit})."
    cost = f"{one.cost:.2f} ± {_NUM_ERRORS * one.error:.2f} {game.unit}"
    return f"{faced}; to {better} was better by {cost}."
