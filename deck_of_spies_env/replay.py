"""Print recorded games as text: ``python -m deck_of_spies_env.replay FILE``."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence

from deck_of_spies_env.commands import INTERRUPTED, OneLineParser, at_least_one
from deck_of_spies_env.records import (
    GameRecord,
    RecordError,
    RecordWarning,
    SolitaireRecord,
    read_records,
    replay,
)
from deck_of_spies_env.terminal import print_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = command_line()
    args = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="replace"
        )  # suits, on a terminal that has no symbols for them
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", RecordWarning)
            warnings.showwarning = _say
            show_file(args.file, args.game, list_only=args.list, wait=args.step)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        parser.error(f"can't read {args.file!r}: {error.strerror}")
    except RecordError as error:
        sys.stdout.flush()
        parser.error(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _say(message: Warning | str, *_details: object, **_options: object) -> None:
    print(message, file=sys.stderr)


def show_file(path: str, number: int | None, *, list_only: bool, wait: bool) -> None:
    """Print the games of a file, or one of them.

    Args:
        path: of the file.
        number: of the game, from 1; None for all.
        list_only: print the heading of each only.
        wait: for a line of input after each step; the games end with the input.

    Raises:
        OSError: the file can't be read.
        RecordError: a record that is none or does not replay, or no such game.
    """
    num_games = 0
    for num_games, record in enumerate(read_records(path), 1):
        if number not in {None, num_games}:
            continue
        texts = [heading(num_games, record)] if list_only else list(texts_of(num_games, record))
        for text in texts:
            print_table(f"{text}\n")
            if wait and not sys.stdin.readline():
                return
        if number is not None:
            return
    if num_games == 0:
        raise RecordError(f"{path}: there are no games in it")
    if number is not None:
        raise RecordError(f"{path}: there is no game {number}, there are 1 to {num_games}")


def texts_of(number: int, record: GameRecord) -> Iterator[str]:
    """The heading of a game, and each position with the action taken in it.

    Raises:
        RecordError: the record does not replay.
    """
    yield heading(number, record) + "\n"
    for step, position in enumerate(replay(record), 1):
        if position.action is None:
            yield position.render()
        else:
            yield f"Step {step}\n{position.render()}{_ACTION}{position.action}\n"


_ACTION = f"{'Action':<13}"


def heading(number: int, record: GameRecord) -> str:
    """One line on a game: which deal, who played, and how it ended."""
    if isinstance(record, SolitaireRecord):
        result = record.result
        ended = f"{result.outcome}, {result.key_spies} Key Spies, {result.turns} turns"
    else:
        payoffs = ", ".join(f"{payoff:+.2f}" for payoff in record.result.payoffs)
        cut = ", cut off" if record.result.truncated else ""
        ended = f"payoffs {payoffs}, {record.result.rounds} rounds{cut}"
    deal = f"seed {record.seed}, episode {record.episode}"
    names = " - ".join(record.players)
    line = f"Game {number}: {record.game}, {deal}, {names}: {ended}"
    return line if line.isprintable() else line.encode("unicode_escape").decode()


def command_line() -> OneLineParser:
    """The options and their defaults."""
    parser = OneLineParser(
        prog="python -m deck_of_spies_env.replay",
        description="Print recorded games as text: each position and the action taken in it. Every "
        "game is replayed to its end and checked before it is shown.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file", metavar="FILE", help="records, as evaluate.py --records writes them"
    )
    parser.add_argument(
        "--game", type=at_least_one, metavar="N", help="only the game in line N of the file"
    )
    parser.add_argument("--step", action="store_true", help="wait for Enter after each position")
    parser.add_argument(
        "--list", action="store_true", help="one line a game, which is not replayed"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
