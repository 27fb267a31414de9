"""Records of games: what is written is read and replayed, what does not replay is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHORT, completed, new_env
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evaluate
from agents import make_agent
from agents.random import RandomAgent
from deck_of_spies_env import records
from deck_of_spies_env import replay as command
from deck_of_spies_env.evaluation.matches import MatchResult, play_deals
from deck_of_spies_env.evaluation.tables import play_tables
from deck_of_spies_env.records import (
    GameRecord,
    RecordError,
    RecordWarning,
    SkirmishRecord,
    SkirmishResult,
    SolitaireRecord,
    SolitaireResult,
    read_records,
    record_deals,
    record_tables,
    record_writer,
    replay,
    write_records,
)
from deck_of_spies_env.records.format import from_line, to_line
from deck_of_spies_env.skirmish.actions import decode
from deck_of_spies_env.skirmish.bots import make_bot
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.skirmish.tables import Table
from deck_of_spies_env.solitaire.rules import Rules

ROOT = Path(__file__).parents[1]

SWITCHES = (
    {},
    {"idle_ace": False},
    {"eager_reshuffle": True},
    {"hand_size": 3},
    {"hand_size": 8},
    {"key_spies_to_win": 2},
)
TABLES: tuple[tuple[int, dict[str, Any]], ...] = (
    (2, {}),
    (3, {}),
    (4, {}),
    (2, {"recycle_captures": False}),
    (2, {"max_rounds": 4}),
    (3, {"ranks": "A5JK", "num_suits": 3, "num_jokers": 1}),
)
TABLE = {"hand": [["Ac", "Kd"], ["7h", "*"]], "supply": [["3c", "4c"], ["5c"]]}
LAST_RETIRE = {
    "zones": completed({"hand": ["2c", "2d"], "draw_deck": ["Ah"]}),
    "phase": "retire",
}


def deals(count: int = 3, rules: Rules | None = None, **options: Any) -> list[SolitaireRecord]:
    agent = RandomAgent()
    agent.reset(1)
    return record_deals(agent, range(5, 5 + count), name="random", rules=rules, **options)


def tables(num_players: int = 2, count: int = 2, **options: Any) -> list[SkirmishRecord]:
    names = ["rank", "high", "intrigue", "rank"][:num_players]
    bots = [make_bot(name, num_players) for name in names]
    return record_tables(bots, range(5, 5 + count), names=names, **options)


def both() -> list[GameRecord]:
    return [*deals(2), *tables(count=1, rules=SkirmishRules(max_rounds=9))]


def same(first: Sequence[GameRecord], second: Sequence[GameRecord]) -> bool:
    """Whether records agree, in types too."""
    return list(first) == list(second) and repr(first) == repr(second)


def file_of(path: Path, games: Sequence[GameRecord]) -> Path:
    write_records(path, games)
    return path


def document_of(record: GameRecord) -> dict[str, Any]:
    return json.loads(to_line(record))


def line_of(document: Any) -> bytes:
    return json.dumps(document).encode() + b"\n"


def play_through(games: Sequence[GameRecord]) -> None:
    for record in games:
        for _ in replay(record):
            pass


# --- Round trips ---


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_deals_come_back_and_replay(switches: dict[str, Any], tmp_path: Path) -> None:
    rules = Rules(**switches)
    games = deals(rules=rules)
    assert [(game.seed, game.episode, game.players) for game in games] == [
        (seed, 0, ("random",)) for seed in (5, 6, 7)
    ]
    read = list(read_records(file_of(tmp_path / "games.jsonl", games)))
    assert same(read, games)
    assert all(game.rules == rules for game in read)
    for game in read:
        env = new_env(switches)
        _, info = env.reset(seed=game.seed)
        for position in replay(game):
            assert position.zones == env.zones()
            assert position.phase == env.phase
            assert (position.action_mask == info["action_mask"]).all()
            if position.action is None:
                break
            kind, *cards = position.action.split()
            assert position.index == env.encode(kind, cards)
            assert position.action in position.legal
            *_, info = env.step(position.index)
        assert position.phase == "over"
        assert position.legal == ()
        assert position.state == env.get_state()["state"]
        ending = game.result.outcome, game.result.key_spies, game.result.turns
        assert ending == (info["outcome"], info["key_spies"], info["turns"])


@pytest.mark.parametrize(("num_players", "switches"), TABLES, ids=str)
def test_tables_come_back_and_replay(
    num_players: int, switches: dict[str, Any], tmp_path: Path
) -> None:
    rules = SkirmishRules(**switches)
    games = tables(num_players, rules=rules)
    assert len(games) == 2 * num_players
    read = list(read_records(file_of(tmp_path / "games.jsonl", games)))
    assert same(read, games)
    for game in read:
        table = Table(num_players, rules=rules)
        table.deal(game.seed, None)
        for position in replay(game):
            assert position.zones == table.all_zones()
            assert position.phase == table.phase
            assert (position.action_masks == table.games.masks[0]).all()
            if position.action is None:
                break
            choices = position.action.split()
            assert all(map(tuple.__contains__, position.legal, choices))
            table.games.step(np.array([[("A23456789TJQK*".find(c)) % 15 for c in choices]]))
        assert table.is_over
        assert position.state == table.state
        endings, truncated = table.endings()
        assert game.result.totals == tuple(ending["total"] for ending in endings)
        assert game.result.rounds == endings[0]["rounds"]
        assert game.result.truncated == truncated
        assert game.result.payoffs == tuple(table.games.rewards[0].tolist())
    cut = [game.result.truncated for game in games]
    assert all(cut) if switches.get("max_rounds") else not all(cut)


def test_names_go_with_the_seats() -> None:
    names = [game.players for game in tables(3, count=1)]
    assert names == [
        ("rank", "high", "intrigue"),
        ("intrigue", "rank", "high"),
        ("high", "intrigue", "rank"),
    ]
    # ``high`` commits its highest card.
    for game in tables(3, count=1):
        seat = game.players.index("high")
        for position in replay(game):
            if position.action is not None and position.legal[seat] != ("wait",):
                suited = [rank for rank in position.legal[seat] if rank != "*"] or ["*"]
                assert position.action.split()[seat] == suited[-1]


@pytest.mark.parametrize(
    "start",
    [SHORT, {zone: cards for zone, cards in SHORT.items() if zone != "hand"}, LAST_RETIRE],
    ids=["exact", "dealt", "retire"],
)
def test_deals_that_began_elsewhere(start: dict[str, Any], tmp_path: Path) -> None:
    if "hand" not in start and "zones" not in start:
        start = {**start, "draw_deck": (*start["draw_deck"], *SHORT["hand"])}
    games = deals(start=start)
    read = list(read_records(file_of(tmp_path / "games.jsonl", games)))
    assert same(read, games)
    for game in read:
        env = new_env(start=start)
        env.reset(seed=game.seed)
        assert next(replay(game)).zones == env.zones()
    play_through(read)


def test_tables_that_began_elsewhere(tmp_path: Path) -> None:
    piles = {name: [set(pile) for pile in of_seats] for name, of_seats in TABLE.items()}
    games = tables(start=piles)
    read = list(read_records(file_of(tmp_path / "games.jsonl", games)))
    assert same(read, games)
    assert next(replay(read[0])).zones["hand"] == (("Ac", "Kd"), ("7h", "*"))
    play_through(read)


def test_later_episodes() -> None:
    env = new_env()
    env.reset(seed=3)
    for _ in range(4):
        env.reset()
    opening, actions, info = env.zones(), [], {}
    while env.phase != "over":
        action = int(np.flatnonzero(env.action_masks())[-1])
        actions.append(" ".join((env.decode(action).kind, *env.decode(action).cards)))
        *_, info = env.step(action)
    result = SolitaireResult(info["outcome"], info["key_spies"], info["turns"])
    game = SolitaireRecord(
        rules=Rules(), seed=3, episode=4, players=("last",), actions=tuple(actions), result=result
    )
    positions = list(replay(game))
    assert positions[0].zones == opening
    assert positions[-1].state == env.get_state()["state"]


def test_later_episodes_of_skirmish() -> None:
    table = Table(2)
    table.deal(3, None)
    table.deal(None, None)
    opening, actions = table.all_zones(), []
    while not table.is_over:
        joint = table.games.masks.argmax(axis=2)
        actions.append(" ".join(map(decode, joint[0].tolist())))
        table.games.step(joint)
    (first, second), _ = table.endings()
    result = SkirmishResult(
        payoffs=tuple(table.games.rewards[0].tolist()),
        totals=(first["total"], second["total"]),
        rounds=first["rounds"],
        truncated=table.endings()[1],
    )
    positions = list(
        replay(
            SkirmishRecord(
                rules=SkirmishRules(),
                seed=3,
                episode=1,
                players=("first", "first"),
                actions=tuple(actions),
                result=result,
            )
        )
    )
    assert positions[0].zones == opening
    assert positions[-1].state == table.state


def test_what_a_kernel_plays_is_recorded_step_by_step() -> None:
    agent = make_agent("greedy", rules=Rules())
    assert hasattr(agent, "compiled_policy")
    seeds = range(40)
    played = play_deals(agent, seeds)
    games = record_deals(agent, seeds, name="greedy")
    seen: list[int] = []
    watched = play_deals(agent, seeds, on_game=lambda game: seen.append(game.number))
    assert sorted(seen) == list(seeds)
    for field in fields(MatchResult):
        if field.name != "seconds":
            assert (getattr(played, field.name) == getattr(watched, field.name)).all(), field.name
    assert [len(game.actions) for game in games] == played.decisions.tolist()
    assert [game.result.outcome for game in games] == played.outcomes.tolist()
    assert [game.result.key_spies for game in games] == played.key_spies.tolist()
    assert [game.result.turns for game in games] == played.turns.tolist()


def test_results_of_tables_are_those_of_the_match() -> None:
    bots = [make_bot(name, 2) for name in ("rank", "high")]
    played = play_tables(bots, range(5, 9))
    for number, game in enumerate(tables(count=4)):
        deal, rotation = divmod(number, 2)
        assert game.result.rounds == played.rounds[deal, rotation]
        by_agent = [game.result.payoffs[(agent + rotation) % 2] for agent in range(2)]
        assert by_agent == played.payoffs[deal, rotation].tolist()


def test_records_do_not_depend_on_the_batch_size() -> None:
    agent = make_agent("greedy", rules=Rules())
    expected = record_deals(agent, range(30), name="greedy")
    assert record_deals(agent, range(30), name="greedy", batch_size=7) == expected
    assert tables(count=4, batch_size=3) == tables(count=4)


def test_records_written_once_still_replay() -> None:
    """A file that was written when format 1 was new: to refuse it breaks what users keep."""
    path = Path(__file__).with_name("records_format1.jsonl")
    games = list(read_records(path))
    assert [game.game for game in games] == ["deck_of_spies"] * 2 + ["skirmish"] * 2
    play_through(games)
    assert b"".join(map(to_line, games)) == path.read_bytes()


# --- What is refused ---


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda found: found.pop(name) and None


def put(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda found: found.update({name: value})


def into(name: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda found: found[name].update(values)


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "other format": (put("format", 2), "format 2 is not known, only format 1"),
    "format of another type": (put("format", True), "format True is not known"),
    "no format": (without("format"), "no record of a game: it has no format number"),
    "other game": (put("game", "chess"), "unknown game 'chess'; there are deck_of_spies, skirm"),
    "no field": (without("episode"), "episode is missing"),
    "unknown field": (put("comment", "mine"), "unknown field 'comment'; there are format, vers"),
    "no rule": (lambda found: found["rules"].pop("idle_ace"), "rules: idle_ace is missing"),
    "unknown rule": (into("rules", house=True), "rules: unknown field 'house'; there are idle_ace"),
    "bad rule": (into("rules", hand_size=9), "rules: hand_size must be a whole number 3-8, got 9"),
    "rules of no kind": (put("rules", [1]), "rules must be an object, got [1]"),
    "negative seed": (put("seed", -1), "seed must be at least 0, got -1"),
    "bad seed": (put("seed", 1.0), "seed must be a whole number, got 1.0"),
    "huge episode": (put("episode", 1 << 63), "episode must be at least 0 below 92233720"),
    "bad start": (put("start", 5), "start must be an object or null, got 5"),
    "no players": (put("players", []), "players must list one name, got 0"),
    "bad player": (put("players", [7]), "players must hold a text each, got 7"),
    "bad actions": (put("actions", "pass"), "actions must be a list, got 'pass'"),
    "bad action": (put("actions", [None]), "actions must hold a text each, got None"),
    "no result": (lambda found: found["result"].pop("turns"), "result: turns is missing"),
    "bad result": (into("result", turns="9"), "turns must be a whole number, got '9'"),
    "bad version": (put("version", None), "version must be a text, got None"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_record_is_refused(name: str, tmp_path: Path) -> None:
    change, message = BROKEN[name]
    first, second = deals(2)
    document = document_of(second)
    change(document)
    path = tmp_path / "games.jsonl"
    path.write_bytes(to_line(first) + line_of(document) + to_line(first))
    reading = read_records(path)
    assert next(reading) == first
    with pytest.raises(RecordError) as caught:
        next(reading)
    assert str(caught.value).startswith(f"{path}, line 2: {message}")
    assert "\n" not in str(caught.value)


def test_results_of_skirmish_are_checked() -> None:
    document = document_of(tables(count=1)[0])
    for change, message in (
        (into("result", payoffs=[1]), "payoffs is (-1.0, 1.0), not (1.0,)"),
        (into("result", truncated=0), "truncated must be true or false, got 0"),
        (into("result", totals=[True, 5]), "totals must hold a whole number each, got True"),
        (put("players", ["one"]), "players must list 2 to 4 names, got 1"),
    ):
        changed = json.loads(json.dumps(document))
        change(changed)
        with pytest.raises(RecordError, match=re.escape(message)):
            play_through([from_line(line_of(changed))])


FOREIGN = {
    "list": b"[1, 2]\n",
    "number": b"7\n",
    "other JSON": b'{"name": "a config", "seed": 1}\n',
    "text": b"Deck of Spies\n",
    "blank": b"\n",
    "binary": bytes(range(256)) * 8,
    "compressed": b"\x1f\x8b\x08\x00" + b"\n" * 3,
    "deep": b"[" * 100_000 + b"\n",
    "not a number": b'{"format": NaN}\n',
    "long number": b'{"format": ' + b"1" * 10_000 + b"}\n",
    "without an end": b"\x00" * 100,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_file_of_records_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(RecordError) as caught:
        list(read_records(path))
    assert str(caught.value).startswith(f"{path}, line 1: ")
    assert len(str(caught.value)) < len(str(path)) + 150
    assert "\n" not in str(caught.value)
    with pytest.raises(RecordError):
        write_records(path, deals(1), append=True)
    assert path.read_bytes() == FOREIGN[name]


def test_an_empty_file_holds_no_records(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.touch()
    assert list(read_records(path)) == []
    write_records(path, [])
    assert list(read_records(path)) == []


def refusal(record: GameRecord) -> str:
    """The message of a record that does not replay, after it has been through a file's line."""
    with pytest.raises(RecordError) as caught:
        play_through([from_line(to_line(record), "games.jsonl, line 4")])
    assert "\n" not in str(caught.value)
    start = "games.jsonl, line 4: "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start)


def test_deals_that_do_not_replay_are_refused() -> None:
    (game,) = deals(1)
    num, result = len(game.actions), game.result

    def edited(number: int, action: str) -> str:
        actions = list(game.actions)
        actions[number] = action
        return refusal(replace(game, actions=tuple(actions)))

    assert edited(0, "counter Ks") == f"action 1 of {num}, 'counter Ks': " + (
        f"Ks is not in hand ({', '.join(next(replay(game)).zones['hand'])})"
    )
    assert "unknown kind of action 'fold'; there are counter" in edited(2, "fold 2c")
    assert "bad card '1c'" in edited(2, "counter 1c")
    assert "unknown kind of action ''" in edited(2, " ")
    assert re.search(r"action 1 of \d+, 'pass': action 77 \(pass\) is illegal: ", edited(0, "pass"))
    assert refusal(replace(game, actions=game.actions[:-1])) == (
        f"the game is not over after its {num - 1} actions"
    )
    assert refusal(replace(game, actions=(*game.actions, "pass"))) == (
        f"the game is over after {num} of its {num + 1} actions"
    )
    assert refusal(replace(game, actions=())) == "the game is not over after its 0 actions"
    assert refusal(replace(game, result=replace(result, key_spies=12))) == (
        f"the game does not end as written: key_spies is {result.key_spies}, not 12"
    )
    assert "outcome is '" in refusal(replace(game, result=replace(result, outcome="perfect")))
    assert "action 1 of" in refusal(replace(game, seed=game.seed + 1))
    assert "action 2 of" in refusal(replace(game, episode=1))
    assert refusal(replace(game, rules=Rules(hand_size=6)))
    assert "missing" in refusal(replace(game, start={"hand": []}))
    assert "unknown zone 'deck'" in refusal(replace(game, start={"deck": []}))


def test_tables_that_do_not_replay_are_refused() -> None:
    game = tables(count=1)[0]
    num = len(game.actions)

    def edited(action: str) -> str:
        return refusal(replace(game, actions=(action, *game.actions[1:])))

    assert edited("A") == f"action 1 of {num}, 'A': 1 choices for 2 seats"
    assert "bad rank '1'" in edited("1 A")
    assert "seat 1: action 14 (wait) is illegal" in edited(f"{game.actions[0][0]} wait")
    assert refusal(replace(game, actions=game.actions[:-1])).startswith("the game is not over")
    result = replace(game.result, totals=(1, 2))
    assert "the game does not end as written: totals is (" in refusal(replace(game, result=result))
    assert "a seat has no hand" in refusal(replace(game, start={"hand": [["Ac"], []]}))
    assert refusal(replace(game, rules=SkirmishRules(ranks="K", num_suits=1, num_jokers=0)))
    many = replace(game, players=("rank", "rank", "rank"))
    assert "2 choices for 3 seats" in refusal(many)


def test_records_of_another_engine_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that judges otherwise, as a changed rule would make it."""
    (game,) = deals(1)
    before = type(game.rules).record

    class Other:
        def __get__(self, rules: Any, kind: Any = None) -> Any:
            record = before.func(rules)
            record["eager_reshuffle"] = ~record["eager_reshuffle"]
            record["key_spies_to_win"] = 1
            return record

    monkeypatch.setattr(Rules, "record", Other())
    assert refusal(game)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_edited_bytes_never_end_in_another_error(data: st.DataObject) -> None:
    line = bytearray(data.draw(st.sampled_from(LINES)))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(line) - 1))
        line[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=3))
    why = ""
    try:
        play_through([from_line(bytes(line))])
    except RecordError as error:
        why = str(error)
    assert len(why.splitlines()) <= 1


def _lines() -> list[bytes]:
    return [to_line(record) for record in both()]


LINES = _lines()


# --- Files ---


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_file_cut_anywhere_keeps_its_whole_lines(data: st.DataObject, tmp_path: Path) -> None:
    whole = b"".join(LINES)
    size = data.draw(st.integers(0, len(whole)))
    path = tmp_path / "cut.jsonl"
    path.write_bytes(whole[:size])
    ends = np.cumsum([len(line) for line in LINES]).tolist()
    kept = sum(end - 1 <= size for end in ends)  # a line is whole without its end
    at_an_end = size == 0 or any(size in {end - 1, end} for end in ends)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read = list(read_records(path))
    assert [to_line(record) for record in read] == LINES[:kept]
    assert [warning.category for warning in caught] == [] if at_an_end else [RecordWarning]
    for warning in caught:
        assert str(warning.message) == f"{path}, line {kept + 1}: cut off, dropped"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write_records(path, [from_line(LINES[-1])], append=True)
    assert len(caught) == (not at_an_end)
    assert path.read_bytes() == b"".join([*LINES[:kept], LINES[-1]])


def test_only_the_last_line_may_be_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.write_bytes(LINES[0] + LINES[1][:50] + b"\n" + LINES[1])
    reading = read_records(path)
    next(reading)
    with pytest.raises(RecordError, match="line 2: no record of a game: not JSON"):
        next(reading)


def test_appending_adds_to_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    games = both()
    for record in games:
        write_records(path, [record], append=True)
    assert same(list(read_records(path)), games)
    with record_writer(path, append=True) as write:
        write(games[0])
        assert len(list(read_records(path))) == len(games) + 1, "written at once"


def test_other_formats_are_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.write_bytes(line_of({**document_of(deals(1)[0]), "format": 2}))
    before = path.read_bytes()
    with pytest.raises(RecordError, match="line 1: format 2 is not known"):
        write_records(path, deals(1), append=True)
    assert path.read_bytes() == before


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = file_of(tmp_path / "games.jsonl", both())
    before = path.read_bytes()

    def interrupted() -> Any:
        yield deals(1)[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_records(path, interrupted())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        write_records(tmp_path / "nowhere" / "games.jsonl", [])


APPENDING = """
import sys
from deck_of_spies_env.records import read_records, record_writer
(record,) = read_records(sys.argv[1])
with record_writer(sys.argv[2], append=True) as write:
    while True:
        write(record)
        print("written", flush=True)
"""


def test_killed_while_appending(tmp_path: Path) -> None:
    """What was written is there after a kill, and the next run goes on."""
    (game,) = deals(1)
    source, path = file_of(tmp_path / "one.jsonl", [game]), tmp_path / "games.jsonl"
    least = 0
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", APPENDING, source, path], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert process.stdout is not None
        for _ in range(25):
            assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        least += 25 + rest.count(b"written\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecordWarning)
            read = list(read_records(path))
        assert least <= len(read) <= least + 1
        assert all(record == game for record in read)
        least = len(read)
        with path.open("ab") as file:  # as if it had been killed within a line
            file.write(to_line(game)[:300])


# --- The command ---


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert command.main([str(argument) for argument in arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def mistake(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as caught:
        command.main([str(argument) for argument in arguments])
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    start = "python -m deck_of_spies_env.replay: error: "
    assert err.startswith(start)
    return err.removeprefix(start).rstrip("\n")


def test_games_are_printed_step_by_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    games = both()
    path = file_of(tmp_path / "games.jsonl", games)
    out = printed(capsys, path)
    places = 0
    for number, game in enumerate(games, 1):
        places = out.index(f"Game {number}: {game.game}, seed {game.seed}, episode 0, ", places)
        for step, position in enumerate(replay(game), 1):
            text = position.render()
            if position.action is not None:
                text = f"Step {step}\n{text}Action       {position.action}\n"
            places = out.index(text, places) + len(text)
    assert out.count("\nAction ") == sum(len(game.actions) for game in games)
    second = printed(capsys, path, "--game", 2)
    assert second.startswith("Game 2: ")
    assert second in out
    listed = printed(capsys, path, "--list").splitlines()
    assert listed == [line for line in out.splitlines() if line.startswith("Game ")]
    assert re.fullmatch(
        r"Game 1: deck_of_spies, seed 5, episode 0, random: \w+, \d+ Key Spies, \d+ turns",
        listed[0],
    )
    assert re.fullmatch(
        r"Game 3: skirmish, seed 5, episode 0, rank - high: payoffs \S+, \S+, 9 rounds, cut off",
        listed[2],
    )


def test_stepping_waits_for_lines(tmp_path: Path) -> None:
    path = file_of(tmp_path / "games.jsonl", deals(1))
    done = subprocess.run(
        [sys.executable, "-m", "deck_of_spies_env.replay", path, "--step"],
        input="\n\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "compiling" not in line] == []
    assert "Step 2\n" in done.stdout
    assert "Step 3\n" not in done.stdout


def test_the_end_of_a_pipe_is_no_mistake(tmp_path: Path) -> None:
    path = file_of(tmp_path / "games.jsonl", both())
    with subprocess.Popen(
        [sys.executable, "-m", "deck_of_spies_env.replay", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUNBUFFERED": "1"},
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"Game 1")
        process.stdout.close()
        said = process.stderr.read().splitlines()
        assert [line for line in said if b"compiling" not in line] == []
        assert process.wait() == 0


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path / "games.jsonl", both())
    empty, broken, edited = (tmp_path / name for name in ("empty", "broken", "edited"))
    empty.touch()
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    game = deals(1)[0]
    write_records(edited, [replace(game, actions=game.actions[1:])])
    assert mistake(capsys, path, "--game", 9) == f"{path}: there is no game 9, there are 1 to 4"
    assert mistake(capsys, path, "--game", 0).endswith("'0' is not a whole number of at least 1")
    assert mistake(capsys, empty) == f"{empty}: there are no games in it"
    assert mistake(capsys, broken).startswith(f"{broken}, line 1: no record of a game: not JSON: ")
    assert mistake(capsys, edited).startswith(f"{edited}, line 1: action 1 of ")
    missing = tmp_path / "missing"
    assert mistake(capsys, missing) == f"can't read '{missing}': No such file or directory"
    assert mistake(capsys, tmp_path) == f"can't read '{tmp_path}': Is a directory"
    assert "required: FILE" in mistake(capsys)
    assert "--games" in mistake(capsys, path, "--games", 1)


def test_a_line_that_was_cut_off_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "games.jsonl"
    path.write_bytes(LINES[0] + LINES[1][:200])
    assert command.main([str(path), "--list"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err == f"{path}, line 2: cut off, dropped\n"


def test_names_can_not_control_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = replace(deals(1)[0], players=("\x1b[2Jme\n",))
    out = printed(capsys, file_of(tmp_path / "games.jsonl", [game]), "--list")
    assert len(out.splitlines()) == 1
    assert "\x1b" not in out


def test_help_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("FILE", "--game N", "--step", "--list"))


# --- evaluate.py --records ---


def judged(tmp_path: Path, *arguments: str) -> tuple[dict[str, Any], list[GameRecord]]:
    """The report with records, found to be that without, and the records."""
    report, path = tmp_path / "report.json", tmp_path / "games.jsonl"
    reports: list[Any] = []
    for options in (("--records", str(path)), ()):
        assert evaluate.main([*arguments, "--json", str(report), *options]) == 0
        reports.append(json.loads(report.read_text()))
        for agent in reports[-1]["agents"]:
            del agent["seconds"]
    assert reports[0] == reports[1]
    games = list(read_records(path))
    play_through(games)
    return reports[0], games


def test_evaluate_writes_the_deals_it_judged(tmp_path: Path) -> None:
    report, games = judged(
        tmp_path,
        *("--agents", "greedy", "random", "--deals", "30", "--seed", "3", "--batch-size", "8"),
        *("--rules", "key_spies_to_win=5"),
    )
    assert [game.players for game in games] == [("greedy",)] * 30 + [("random",)] * 30
    assert [game.seed for game in games[:30]] == [game.seed for game in games[30:]]
    for agent, its in zip(report["agents"], (games[:30], games[30:]), strict=True):
        results = [game.result for game in its if isinstance(game, SolitaireRecord)]
        assert sum(result.outcome == "win" for result in results) == agent["wins"]
        assert sum(result.key_spies for result in results) == pytest.approx(
            30 * agent["mean_key_spies"]
        )
        assert sum(len(game.actions) for game in its) == agent["decisions"]


def test_evaluate_writes_every_match(tmp_path: Path) -> None:
    report, games = judged(
        tmp_path,
        *("--game", "skirmish", "--num-players", "3", "--agents", "rank", "high", "--deals", "4"),
        *("--rules", "max_rounds=30"),
    )
    assert len(games) == 2 * 4 * 3
    assert [game.players for game in games[:3]] == [
        ("rank", "high", "high"),
        ("high", "rank", "high"),
        ("high", "high", "rank"),
    ]
    first = [game for game in games[:12] if isinstance(game, SkirmishRecord)]
    payoffs = [game.result.payoffs[game.players.index("rank")] for game in first]
    assert np.mean(payoffs) == pytest.approx(report["comparisons"][0]["mean_payoff"])


def test_evaluate_refuses_a_file_that_can_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        evaluate.main(["--records", str(tmp_path / "no" / "games.jsonl")])
    assert caught.value.code == 2
    assert "argument --records: can't write" in capsys.readouterr().err


# --- Minari ---


@pytest.fixture
def make_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("minari", reason="Minari is not installed")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    from deck_of_spies_env.integrations.minari import make_dataset

    return make_dataset


@pytest.mark.filterwarnings("ignore:`:UserWarning")  # on metadata that are not given
def test_datasets_hold_what_the_environment_gives(make_dataset: Any, tmp_path: Path) -> None:
    import minari

    games = deals(3, rules=Rules(hand_size=4))
    games.append(replace(games[0], seed=1 << 70))
    with pytest.raises(RecordError):
        make_dataset("spies/random-v0", games)
    assert not list(tmp_path.glob("datasets/spies"))
    games.pop()
    path = file_of(tmp_path / "games.jsonl", games)
    make_dataset(
        "spies/random-v0", read_records(path), objective="keys", observation="table", author="me"
    )
    dataset = minari.load_dataset("spies/random-v0")
    assert dataset.total_episodes == 3
    env = dataset.recover_environment()
    assert env.unwrapped.rules == Rules(hand_size=4)
    seeds = [one["seed"] for one in dataset.storage.get_episode_metadata(range(3))]
    assert seeds == [game.seed for game in games]
    for episode, seed in zip(dataset.iterate_episodes(), seeds, strict=True):
        observation, info = env.reset(seed=seed)
        assert episode.observations.dtype == np.int8
        for step in range(len(episode.actions) + 1):
            assert (episode.observations[step] == observation).all()
            assert (episode.infos["action_mask"][step] == info["action_mask"]).all()
            if step == len(episode.actions):
                break
            observation, *rest, info = env.step(episode.actions[step])
            columns = episode.rewards, episode.terminations, episode.truncations
            assert [column[step] for column in columns] == rest
        assert info["key_spies"] / 12 == episode.rewards.sum()


@pytest.mark.filterwarnings("ignore:`:UserWarning")
def test_datasets_are_of_one_game_and_rule_set(make_dataset: Any) -> None:
    games = deals(1)
    for others, message in (
        ([], "at least one record"),
        ([*games, *deals(1, rules=Rules(hand_size=4))], "a dataset has one rule set"),
        ([*games, *tables(count=1)], "of Deck of Spies only"),
    ):
        with pytest.raises(ValueError, match=message):
            make_dataset("spies/random-v0", others)
    with pytest.raises(ValueError, match="unknown objective 'gold'"):
        make_dataset("spies/random-v0", games, objective="gold")


def test_records_need_the_engine_only() -> None:
    blocked = dict.fromkeys(("rich", "scipy", "torch", "pettingzoo", "minari", "safetensors"))
    code = f"import sys; sys.modules.update({blocked}); import deck_of_spies_env.replay"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_public_names() -> None:
    assert all(hasattr(records, name) for name in records.__all__)
