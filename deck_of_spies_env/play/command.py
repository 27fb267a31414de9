"""The command line of ``python -m deck_of_spies_env.play``."""

from __future__ import annotations

import argparse
import secrets
import sys
import warnings
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.commands import INTERRUPTED, OneLineParser, at_least_one, rules_from
from deck_of_spies_env.play.players import skirmish_adviser, skirmish_agent, solitaire_agent
from deck_of_spies_env.play.saved_games import SavedGame, saved_game
from deck_of_spies_env.play.setup import Setup
from deck_of_spies_env.play.skirmish_game import SkirmishGame
from deck_of_spies_env.play.solitaire_game import SolitaireGame
from deck_of_spies_env.records import RecordError, RecordWarning, read_records, record_writer
from deck_of_spies_env.records.format import Write
from deck_of_spies_env.skirmish.bots import BOTS
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.skirmish.tables import check_seat
from deck_of_spies_env.solitaire.rules import Rules as SolitaireRules

if TYPE_CHECKING:
    from textual.screen import Screen

_NUM_SEEDS = 1 << 32
"""Fresh seeds are below this, so short enough to be written down."""
_NUM_PLAYERS = 2
_OPPONENTS = ("rank",)
_OF_SKIRMISH = ("num_players", "opponents", "seat")
_OF_PLAY = ("game", "seed", "rules", "advice", "undo", "save", *_OF_SKIRMISH)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = command_line()
    args = parser.parse_args(arguments)
    try:
        with _warnings_on_stderr():
            (play if args.replay is None else show_replay)(args)
    except ModuleNotFoundError as error:
        parser.error(f"needs {error.name}: pip install 'deck_of_spies_env[play]'")
    except OSError as error:
        parser.error(f"can't open {error.filename!r}: {error.strerror}")
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:  # while something is loaded or compiled
        return INTERRUPTED
    return 0


def play(args: argparse.Namespace) -> None:
    """Play games.

    Raises:
        ValueError: options that can't be, an unknown agent, or a file of something else to save to.
        OSError: the file to save to can't be written.
        ModuleNotFoundError: Textual is missing.
    """
    from deck_of_spies_env.play.play_screen import PlayScreen  # noqa: PLC0415 -- optional

    if args.game_number is not None:
        raise ValueError("--game-number goes with --replay")
    game, agent = (skirmish if args.game == SkirmishGame.name else solitaire)(args)
    if agent is not None:
        agent.reset(game.seed)
    _check_terminal()
    with saving_to(args.save) as write:
        setup = Setup(game, agent, bool(args.undo), write, args.save or "")
        _show(game.title, PlayScreen(setup))


def show_replay(args: argparse.Namespace) -> None:
    """Look at a saved game.

    Raises:
        RecordError: no record, one that does not replay, or no such game.
        OSError: the file can't be read.
        ModuleNotFoundError: Textual is missing.
    """
    from deck_of_spies_env.play.replay_screen import ReplayScreen  # noqa: PLC0415 -- optional

    given = [name for name in _OF_PLAY if getattr(args, name) is not None]
    if given:
        raise ValueError(f"--{given[0].replace('_', '-')} does not go with --replay")
    saved = find_game(args.replay, args.game_number or 1)
    _check_terminal()
    _show(saved.title, ReplayScreen(saved))


def _show(title: str, first: Screen[None]) -> None:
    from deck_of_spies_env.play.app import PlayApp  # noqa: PLC0415 -- optional

    failure = PlayApp(title, first).run()
    if failure is not None:
        raise ValueError(failure)


def solitaire(args: argparse.Namespace) -> tuple[SolitaireGame, Agent | None]:
    """Deck of Spies as asked for, and whose advice is wanted.

    Raises:
        ValueError: options that can't be, or an agent that can't be made.
    """
    for name in _OF_SKIRMISH:
        if getattr(args, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} goes with --game {SkirmishGame.name}")
    rules = SolitaireRules.of(rules_from(args.rules or ["{}"]))
    agent = None if args.advice is None else solitaire_agent(args.advice, rules)
    return SolitaireGame(seed_from(args.seed), rules), agent


def skirmish(args: argparse.Namespace) -> tuple[SkirmishGame, Agent | None]:
    """Skirmish as asked for, and whose advice is wanted.

    Raises:
        ValueError: options that can't be, or an agent that can't be made.
    """
    num_players: int = args.num_players or _NUM_PLAYERS
    rules = SkirmishRules.of(rules_from(args.rules or ["{}"]))
    rules.record(num_players)  # are there cards for all?
    seat = None if args.seat is None else check_seat(args.seat, num_players)
    names = list(args.opponents or _OPPONENTS)
    if len(names) == 1:
        names *= num_players - 1
    if len(names) != num_players - 1:
        raise ValueError(f"--opponents must name 1 or {num_players - 1}, got {len(names)}")
    opponents = [skirmish_agent(name, rules, num_players) for name in names]
    agent = None if args.advice is None else skirmish_adviser(args.advice, rules, num_players)
    return SkirmishGame(seed_from(args.seed), rules, opponents, names, seat), agent


def seed_from(seed: int | None) -> int:
    """The seed asked for, or a fresh one.

    Raises:
        ValueError: a negative seed.
    """
    if seed is None:
        return secrets.randbelow(_NUM_SEEDS)
    if seed < 0:
        raise ValueError(f"--seed must be 0 or more, got {seed}")
    return seed


def find_game(path: str, number: int) -> SavedGame:
    """A game of a file.

    Args:
        path: of the file.
        number: of the game, from 1.

    Raises:
        RecordError: no record, one that does not replay, or no such game.
        OSError: the file can't be read.
    """
    num_games = 0
    for num_games, record in enumerate(read_records(path), 1):
        if num_games == number:
            return saved_game(record, number)
    raise RecordError(f"{path}: there is no game {number}, the file holds {num_games}")


def saving_to(path: str | None) -> AbstractContextManager[Write | None]:
    """What appends records to a file; None if none is wanted."""
    return nullcontext() if path is None else record_writer(path, append=True)


@contextmanager
def _warnings_on_stderr() -> Generator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always", RecordWarning)
        warnings.showwarning = _say
        yield


def _say(message: Warning | str, *_details: object, **_options: object) -> None:
    print(message, file=sys.stderr)


def _check_terminal() -> None:
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise ValueError(
            "not a terminal: to print saved games use python -m deck_of_spies_env.replay"
        )


def command_line() -> OneLineParser:
    """The options and their defaults."""
    parser = OneLineParser(
        prog="python -m deck_of_spies_env.play",
        description="Play Deck of Spies, or Skirmish against bots, in the terminal. All keys are "
        "on the screen, the rules under ?; a review at the end names the costliest decisions.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--game",
        choices=(SolitaireGame.name, SkirmishGame.name),
        help=f"which game ({SolitaireGame.name})",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="which deals (a fresh seed, shown)")
    parser.add_argument(
        "--rules",
        nargs="+",
        metavar="KEY=VALUE",
        help="fields of the rule set that differ from the default, or one JSON object of them",
    )
    parser.add_argument(
        "--num-players", type=int, choices=(2, 3, 4), help=f"in Skirmish ({_NUM_PLAYERS})"
    )
    parser.add_argument(
        "--opponents",
        nargs="+",
        metavar="AGENT",
        help=f"in Skirmish, for the seats after yours: {', '.join(BOTS)}, MODULE:FACTORY, or in a "
        f"clone what evaluate.py takes; one for all or one each ({' '.join(_OPPONENTS)})",
    )
    parser.add_argument(
        "--seat", type=int, metavar="N", help="yours in Skirmish, from 0 (another in each game)"
    )
    parser.add_argument(
        "--advice",
        metavar="AGENT",
        help="show what an agent thinks of each play: MODULE:FACTORY, or in a clone what "
        "evaluate.py takes, such as ppo",
    )
    parser.add_argument(
        "--undo", action="store_const", const=True, help="let decisions be taken back"
    )
    parser.add_argument("--save", metavar="FILE", help="append each finished game to this file")
    parser.add_argument("--replay", metavar="FILE", help="look at a saved game instead of playing")
    parser.add_argument(
        "--game-number", type=at_least_one, metavar="N", help="which of the file (1)"
    )
    return parser
