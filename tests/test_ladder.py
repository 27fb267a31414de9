"""Judging policies of one's own, and their place among the shipped results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from agents import make_agent
from benchmarks import ladder as making
from deck_of_spies_env import IllegalActionError, Rules
from deck_of_spies_env.agent import Actions
from deck_of_spies_env.evaluation import Evaluation, evaluate
from deck_of_spies_env.evaluation import ladder as shipped
from deck_of_spies_env.evaluation.ladder import (
    LadderError,
    Rung,
    read_ladder,
    shipped_ladder,
    stand,
    write_ladder,
)
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.policies import Policy
from deck_of_spies_env.evaluation.runs import CHUNK_SIZE, Deals, Run, SolitaireMatch, play_run
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.evaluation.statistics import holm, mcnemar_exact

FILE = Path(shipped.__file__).parent / "ladder.npz"
RUNGS = {rung.name: rung for rung in shipped_ladder().rungs}


def last(observation: npt.NDArray[np.int8], action_mask: npt.NDArray[np.int8]) -> Any:
    """The legal action with the highest index, for one game."""
    assert observation.shape == (367,)
    return np.flatnonzero(action_mask)[-1]


def last_of_many(observations: npt.NDArray[Any], action_masks: npt.NDArray[Any]) -> Actions:
    """Likewise, for a batch."""
    return action_masks.shape[1] - 1 - action_masks[:, ::-1].argmax(axis=1)


def make_greedy() -> Any:
    return make_agent("greedy")


# --- The data ---


@pytest.mark.parametrize(
    "name",
    [
        *("greedy", "linear", "afterstate", "ppo"),
        *("ppo:objective=keys", "ppo:objective=perfect"),
    ],
)
def test_the_shipped_results_are_what_the_agents_play(name: str) -> None:
    """A sample of deals played anew; these agents leave nothing to chance."""
    rung = RUNGS[name]
    chosen = np.sort(np.random.default_rng(1).choice(len(rung.wins), 96, replace=False))
    seeds = deal_seeds("test", 0, len(rung.wins))
    result = play_deals(make_agent(name), [seeds[deal] for deal in chosen])
    assert result.key_spies.tolist() == rung.key_spies[chosen].tolist()
    assert result.wins.tolist() == rung.wins[chosen].tolist()


def test_the_shipped_results_of_chance_are_what_is_played_too() -> None:
    """An agent that plays by chance repeats a whole chunk."""
    run = Run(
        ["random"],
        [lambda: make_agent("random")],
        [SolitaireMatch(0, Rules())],
        Deals("test", 0, CHUNK_SIZE),
    )
    [columns] = play_run(run)
    assert columns["key_spies"].tolist() == RUNGS["random"].key_spies[:CHUNK_SIZE].tolist()


def test_all_shipped_agents_are_on_the_ladder() -> None:
    assert {name: len(rung.wins) for name, rung in RUNGS.items()} == making.AGENTS
    for rung in RUNGS.values():
        assert np.array_equal(rung.wins, rung.key_spies >= Rules().key_spies_to_win)
    assert FILE.stat().st_size < 500_000


def changed(**about: Any) -> bytes:
    """The shipped file with other words about it."""
    with np.load(FILE) as archive:
        columns = dict(archive)
    words = {**json.loads(columns["about"].tobytes()), **about}
    columns["about"] = np.frombuffer(json.dumps(words).encode(), np.uint8)
    content = BytesIO()
    np.savez(content, allow_pickle=False, **columns)
    return content.getvalue()


@pytest.mark.parametrize(
    ("about", "named"),
    [
        ({"env": "DeckOfSpies-v1"}, "of env DeckOfSpies-v1, not DeckOfSpies-v0"),
        ({"format": 2}, "of format 2, not 1"),
        ({"bank": "train"}, "of bank train, not test"),
        ({"agents": {"random": 5}}, "damaged"),
    ],
)
def test_results_of_other_deals_and_engines_are_refused(about: dict[str, Any], named: str) -> None:
    assert read_ladder(changed()).version == shipped_ladder().version
    with pytest.raises(LadderError, match=named):
        read_ladder(changed(**about))


def test_a_ladder_is_written_and_read(tmp_path: Path) -> None:
    result = play_deals(make_greedy(), deal_seeds("test", 0, 40))
    path = tmp_path / "ladder.npz"
    write_ladder(path, [("one", result)])
    [rung] = read_ladder(path.read_bytes()).rungs
    assert rung.name == "one"
    assert np.array_equal(rung.wins, result.wins)
    assert np.array_equal(rung.key_spies, result.key_spies)


# --- The place ---


def match_of(wins: list[int]) -> MatchResult:
    won = np.array(wins, dtype=np.bool_)
    counts = np.full(len(wins), 36)
    return MatchResult(won, 7 * won, counts, counts, np.where(won, "win", "loss").astype(object), 1)


def test_a_place_is_that_of_the_common_deals() -> None:
    ours = [1, 1, 1, 0, 1, 1]
    wins = {"better": [1, 1, 1, 1], "worse": [0, 0, 1, 0, 1, 0, 1, 1]}
    rungs = [Rung(name, match_of(won).wins, match_of(won).key_spies) for name, won in wins.items()]
    ladder = shipped.Ladder("0", tuple(rungs))
    standing = stand("ours", match_of(ours), bank="test", seed=0, rules=Rules(), ladder=ladder)
    better, worse = standing.places
    assert (better["name"], better["deals"], better["win_rate"]) == ("better", 4, 1.0)
    assert (worse["name"], worse["deals"], worse["win_rate"]) == ("worse", 6, 0.5)
    assert better["win_rate_difference"] == pytest.approx(-0.25)
    assert worse["win_rate_difference"] == pytest.approx(5 / 6 - 2 / 6)
    assert worse["mean_key_spies_difference"] == pytest.approx(3.5)
    tests = [
        mcnemar_exact(match_of(ours[:4]).wins, rungs[0].wins[:4]).p_value,
        mcnemar_exact(match_of(ours).wins, rungs[1].wins[:6]).p_value,
    ]
    assert [place["mcnemar_p"] for place in standing.places] == tests
    assert [place["mcnemar_p_holm"] for place in standing.places] == holm(tests).tolist()
    assert standing.rank == 2
    assert "place 2 of 3" in str(standing)


def test_our_own_agent_is_found_equal_to_itself() -> None:
    standing = evaluate("test_ladder:make_greedy", deals=2000).ladder()
    places = {place["name"]: place for place in standing.places}
    assert places["greedy"]["win_rate_difference"] == 0
    assert places["greedy"]["mean_key_spies_difference"] == 0
    assert places["greedy"]["mcnemar_p_holm"] == 1
    assert places["ppo"]["win_rate_difference"] < -0.2
    assert places["ppo"]["mcnemar_p_holm"] < 1e-9
    assert places["random"]["win_rate_difference"] > 0.6
    assert standing.rank == 1 + [place["name"] for place in standing.places].index("greedy")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"seed": 1}, "not of seed 1"),
        ({"bank": "select"}, "not of bank select"),
        ({"rules": {"hand_size": 6}}, "not of hand_size 6"),
        ({"until_width": 0.9}, "fixed number of deals"),
        ({"game": "skirmish", "policy": "rank"}, "Deck of Spies only"),
    ],
)
def test_other_deals_have_no_place(arguments: dict[str, Any], named: str) -> None:
    policy = arguments.get("policy", last_of_many)
    options = {name: value for name, value in arguments.items() if name != "policy"}
    evaluation = evaluate(policy, deals=20, batched=True, **options)
    with pytest.raises(LadderError, match=named):
        evaluation.ladder()


# --- evaluate ---


def test_functions_agents_and_names_are_judged_alike() -> None:
    one_by_one = evaluate(last, deals=30)
    assert (one_by_one.report["agents"][0]["name"], one_by_one.report["bank"]) == ("last", "test")
    for policy, batched in ((last_of_many, True), ("test_ladder:Last", False)):
        other = evaluate(policy, deals=30, batched=batched, name="last")
        assert np.array_equal(other.result.decisions, one_by_one.result.decisions)
        assert other.win_rate_ci == one_by_one.win_rate_ci
    assert json.loads(one_by_one.to_json()) == one_by_one.report
    assert "30 deals" in str(one_by_one)


class Last:
    """An agent."""

    def reset(self, seed: int) -> None:
        """No chance here."""

    def act(self, observation: npt.NDArray[Any], action_mask: npt.NDArray[Any]) -> Actions:
        return last_of_many(observation, action_mask)


def test_two_policies_are_compared() -> None:
    evaluation = evaluate(last, against=Last(), deals=20, behaviour=True, name="same")
    assert [agent["name"] for agent in evaluation.report["agents"]] == ["same", "Last"]
    assert evaluation.report["comparisons"][0]["win_rate_difference"] == 0
    tested = evaluate(
        make_greedy(), against=last_of_many, batched=True, margin=0.05, deals=5000, chunk_size=50
    )
    assert tested.report["stopping"]["decision"] == "first"
    assert tested.report["deals"] == 50


def test_luck_is_taken_out() -> None:
    """The adjusted figures agree with the plain ones, and are more precise."""
    evaluation = evaluate(make_greedy(), against=last_of_many, batched=True, deals=600, luck=True)
    agent, pair = evaluation.report["agents"][0], evaluation.report["comparisons"][0]
    for quantity, plain, figures in (
        ("wins", agent["win_rate"], agent["without_luck"]),
        ("key_spies", agent["mean_key_spies"], agent["without_luck"]),
        ("wins", pair["win_rate_difference"], pair["without_luck"]),
        ("key_spies", pair["mean_key_spies_difference"], pair["without_luck"]),
    ):
        figure = figures[quantity]
        low, high = figure["ci"]
        assert low < figure["mean"] < high
        error = (high - low) / 4 * figure["factor"] ** 0.5  # of the plain figure
        assert abs(figure["mean"] - plain) < 5 * error
        assert figure["factor"] > 1.1
    assert "luck taken out" in str(evaluation)


def test_policies_play_skirmish(tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    evaluation = evaluate(
        last_of_many, game="skirmish", against="high", batched=True, deals=12, num_players=3,
        resume=kept,
    )  # fmt: skip
    assert [agent["name"] for agent in evaluation.report["agents"]] == ["last_of_many", "high"]
    low, high = evaluation.win_rate_ci
    assert low < evaluation.win_rate < high
    assert kept.read_bytes().count(b"\n") == 3
    assert "Skirmish for 3" in str(evaluation)


def test_rare_wins_have_no_interval_without_luck() -> None:
    """Of 12 deals ``greedy`` loses a handful, too few to say how few."""
    for deals, told in ((12, False), (200, True)):
        report = evaluate(make_greedy(), deals=deals, luck=True).report
        wins = report["agents"][0]["without_luck"]["wins"]
        assert (wins["ci"] is not None) == (wins["factor"] is not None) == told
        assert report["agents"][0]["without_luck"]["key_spies"]["ci"] is not None


@pytest.mark.parametrize("answer", [None, "7", 1.5, [3], 78, -1, 10**30])
def test_nonsense_is_told_in_a_sentence(answer: Any) -> None:
    for game in ("deck_of_spies", "skirmish"):
        with pytest.raises(IllegalActionError) as caught:
            evaluate(lambda observation, mask: answer, deals=3, game=game)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "options", "named"),
    [
        (5, {}, "a policy must be an agent .* got 5"),
        ("nowhere:make", {}, "can't import policy 'nowhere:make'"),
        ("greedy", {}, "unknown policy 'greedy': write 'module:name'"),
        ("nobot", {"game": "skirmish"}, "a bot's name .*intrigue"),
        (last_of_many, {}, "needs batched=True"),
        ("test_ladder:FILE", {}, "nothing that can be called"),
        (last, {"deals": 0}, "deals must be a whole number of at least 1, got 0"),
        (last, {"deals": 2.5}, "deals must be a whole number of at least 1, got 2.5"),
        (last, {"game": "chess"}, "unknown game 'chess'; there are deck_of_spies, skirmish"),
        (last, {"bank": "exam"}, "unknown bank"),
        (last, {"rules": {"hand": 5}}, "unknown field 'hand'"),
        (last, {"margin": 0.1}, "of two agents, got 1"),
        (last, {"margin": 0.1, "until_width": 0.1}, "until_width or margin"),
        (last, {"until_width": 1.5}, "width"),
        (last, {"game": "skirmish", "behaviour": True}, "Deck of Spies only"),
        (last, {"luck": True, "until_width": 0.1}, "fixed number of deals"),
        (last, {"luck": True, "deals": 1}, "two deals at least"),
        (last, {"workers": 0}, "at least one worker"),
    ],
)
def test_bad_arguments_are_named(policy: Policy, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        evaluate(policy, **{"deals": 3, **options})


def test_progress_is_told() -> None:
    told: list[int] = []
    evaluate(last_of_many, deals=40, batched=True, chunk_size=16, progress=told.append)
    assert sum(told) == 40


def test_the_package_of_evaluation_is_light() -> None:
    """It's imported by those who only want banks of deals."""
    code = (
        "import sys, deck_of_spies_env.evaluation, deck_of_spies_env.evaluation.runs;"
        "print([name for name in ('rich', 'statsmodels') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert Evaluation.__module__ == "deck_of_spies_env.evaluation.policies"


def test_bad_names_of_the_package_are_refused() -> None:
    import deck_of_spies_env.evaluation as package

    unknown: Callable[[], Any] = lambda: package.judge  # noqa: E731
    with pytest.raises(AttributeError, match="has no attribute 'judge'"):
        unknown()
