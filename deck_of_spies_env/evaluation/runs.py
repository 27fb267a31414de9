"""Runs: matches of agents on many deals, chunk by chunk, by one process or several.

The deals are cut into chunks of a fixed size. Each chunk is a match of its own, before which the
agents are reset with a seed that belongs to the chunk. So what a run comes to depends on its
settings, and neither on the number of processes nor on whether it was ever interrupted.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from gzip import compress
from itertools import islice
from typing import Any, Protocol

import numpy as np

from deck_of_spies_env.agent import Agent
from deck_of_spies_env.checks import check_count
from deck_of_spies_env.evaluation.columns import Columns, joined
from deck_of_spies_env.evaluation.matches import Collector, play_deals
from deck_of_spies_env.evaluation.partial import PartialFile, Unit
from deck_of_spies_env.evaluation.seeds import agent_seed, deal_seeds
from deck_of_spies_env.evaluation.tables import play_tables
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.rules import Rules as SolitaireRules

CHUNK_SIZE = 1024
"""Deals in a chunk: enough to play many games side by side."""

RECORDS = "records"
"""The column of recorded games: compressed lines, whole ``gzip`` members one after the other."""

_COLLECTING_STREAM = 1 << 16  # apart from those of agents of the same name
_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Progress = Callable[[int, int], None]
"""Is told the number of a match, and how many of its games have ended since the last call."""

Recorder = Callable[[Callable[[bytes], None], Sequence[int]], Callable[[Any], None]]
"""Given what takes lines and the seeds of a chunk: an ``on_game`` that writes a line a game."""

CollectorMaker = Callable[[int, SolitaireRules, int], Collector]
"""Makes a collector of a number of deals under a rule set, with a seed for its own chance."""


class WorkerError(RuntimeError):
    """A worker process has come to an end that it gives no reason for."""


class Match(Protocol):
    """Agents that play every deal of a run.

    Attributes:
        seats: numbers of the agents among those of the run.
        games_per_deal: how often each deal is played.
    """

    @property
    def seats(self) -> Sequence[int]:
        """See above."""
        ...

    @property
    def games_per_deal(self) -> int:
        """See above."""
        ...

    def play(
        self,
        agents: Sequence[Agent],
        seeds: Sequence[int],
        seed: int,
        progress: Callable[[int], None] | None = None,
    ) -> Columns:
        """Play a chunk.

        Args:
            agents: one for each seat, just reset.
            seeds: of the chunk's deals.
            seed: for what is left to chance beside the deals and the agents.
            progress: called with the number of games that ended since the last call.
        """
        ...


@dataclass(frozen=True)
class SolitaireMatch:
    """An agent alone at Deck of Spies; the columns are those of ``MatchResult``, and more.

    Attributes:
        agent: its number.
        rules: the rule set.
        batch_size: games side by side.
        collectors: make what looks on; their columns are added.
        recorder: if games are to be recorded, in the column RECORDS.
    """

    agent: int
    rules: SolitaireRules
    batch_size: int = CHUNK_SIZE
    collectors: Sequence[CollectorMaker] = ()
    recorder: Recorder | None = None

    @property
    def seats(self) -> Sequence[int]:
        """The agent's number."""
        return (self.agent,)

    @property
    def games_per_deal(self) -> int:
        """One."""
        return 1

    def play(
        self,
        agents: Sequence[Agent],
        seeds: Sequence[int],
        seed: int,
        progress: Callable[[int], None] | None = None,
    ) -> Columns:
        """Play a chunk, see :class:`Match`."""
        collectors = [make(len(seeds), self.rules, seed) for make in self.collectors]
        lines: list[bytes] = []
        result = play_deals(
            agents[0],
            seeds,
            rules=self.rules,
            batch_size=self.batch_size,
            progress=progress,
            on_game=self.recorder and self.recorder(lines.append, seeds),
            watchers=collectors,
        )
        columns = result.columns
        for collector in collectors:
            columns |= collector.columns
        return columns | _recorded(self.recorder, lines)


@dataclass(frozen=True)
class TableMatch:
    """An agent of Skirmish with another in all other seats; the columns are of ``TableResult``.

    Attributes:
        first: number of the agent.
        others: number of the other.
        num_players: 2-4.
        rules, batch_size, recorder: as of :class:`SolitaireMatch`.
    """

    first: int
    others: int
    num_players: int
    rules: SkirmishRules
    batch_size: int = CHUNK_SIZE
    recorder: Recorder | None = None

    @property
    def seats(self) -> Sequence[int]:
        """Both numbers, the second as often as it sits at the table."""
        return (self.first, *[self.others] * (self.num_players - 1))

    @property
    def games_per_deal(self) -> int:
        """One for each rotation."""
        return self.num_players

    def play(
        self,
        agents: Sequence[Agent],
        seeds: Sequence[int],
        seed: int,
        progress: Callable[[int], None] | None = None,
    ) -> Columns:
        """Play a chunk, see :class:`Match`; nothing is left to chance here."""
        lines: list[bytes] = []
        result = play_tables(
            agents,
            seeds,
            rules=self.rules,
            batch_size=self.batch_size,
            progress=progress,
            on_game=self.recorder and self.recorder(lines.append, seeds),
        )
        return result.columns | _recorded(self.recorder, lines)


def _recorded(recorder: Recorder | None, lines: Sequence[bytes]) -> Columns:
    if recorder is None:
        return {}
    return {RECORDS: np.frombuffer(compress(b"".join(lines), mtime=0), np.uint8)}


@dataclass(frozen=True)
class Deals:
    """The deals of a run.

    Attributes:
        bank, seed, count: as ``deal_seeds`` takes them; at least one deal.
        chunk_size: deals in a chunk, the last one may have fewer.

    Raises:
        ValueError: no such deals, none at all, or a chunk size below 1.
    """

    bank: str
    seed: int
    count: int
    chunk_size: int = CHUNK_SIZE

    def __post_init__(self) -> None:
        check_count("deals", self.count)
        check_count("chunk_size", self.chunk_size)
        deal_seeds(self.bank, self.seed, 1, first=self.count - 1)

    @property
    def num_chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.count // self.chunk_size)

    def size_of(self, chunk: int) -> int:
        """The number of deals in a chunk."""
        return min(self.chunk_size, self.count - chunk * self.chunk_size)

    def seeds_of(self, chunk: int) -> list[int]:
        """The seeds of a chunk's deals."""
        first = chunk * self.chunk_size
        return deal_seeds(self.bank, self.seed, self.size_of(chunk), first=first)


@dataclass(frozen=True)
class Run:
    """What is to be played.

    Attributes:
        names: of the agents, all different.
        makers: make the agents, once in each process; to be pickled for several processes.
        matches: all played on the same deals.
        deals: these.
    """

    names: Sequence[str]
    makers: Sequence[Callable[[], Agent]]
    matches: Sequence[Match]
    deals: Deals


def numbered(names: Sequence[str]) -> list[str]:
    """The names with all but the first of the same name numbered: ``rank``, ``rank#2``."""
    seen: Counter[str] = Counter()
    distinct: list[str] = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return distinct


def _stream_of(name: str) -> int:
    """0, or for the further agents of the same name 1, 2, ...: what keeps their chance apart."""
    number = name.rpartition("#")[2]
    return max(int(number), 1) - 1 if number != name and number.isdecimal() else 0


class _Player:
    """Plays chunks of a run in one process."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._agents: dict[int, Agent] = {}

    def _agent(self, number: int) -> Agent:
        if number not in self._agents:
            self._agents[number] = self._run.makers[number]()
        return self._agents[number]

    def try_out(self) -> None:
        """Make all agents and play one deal: mistakes show, and kernels are compiled, in time."""
        for number in range(len(self._run.makers)):
            self._agent(number)
        for match in range(len(self._run.matches)):
            self.play(Unit(match, 0, 1))

    def play(self, unit: Unit, progress: Callable[[int], None] | None = None) -> Columns:
        """Play the first deals of a chunk, as many as the unit says."""
        deals, match = self._run.deals, self._run.matches[unit.match]
        for number in set(match.seats):
            stream = _stream_of(self._run.names[number])
            self._agent(number).reset(agent_seed(deals.seed, unit.chunk, stream))
        agents = [self._agent(number) for number in match.seats]
        own_seed = agent_seed(deals.seed, unit.chunk, _COLLECTING_STREAM)
        return match.play(agents, deals.seeds_of(unit.chunk)[: unit.deals], own_seed, progress)


_Played = Generator[tuple[Unit, Columns], None, None]


def play_run(
    run: Run,
    *,
    workers: int = 1,
    kept_in: PartialFile | None = None,
    progress: Progress | None = None,
    look: Callable[[Sequence[Columns]], bool] | None = None,
) -> list[Columns]:
    """Play all matches on all deals, or until a look at the results says that it's enough.

    One deal of each match is played here first, so that bad agents are found out soon, and workers
    find the kernels compiled.

    Args:
        run: what to play.
        workers: processes; one is this process.
        kept_in: keeps what is played, and has what was played before.
        progress: see :data:`Progress`.
        look: is shown each chunk's columns, one for each match, in the order of the chunks; the run
            ends when it returns True. What was played beyond that is left out.

    Returns:
        The columns of each match, of the same deals for all.

    Raises:
        ValueError: agents that can't be sent to workers, or fewer than one of these.
        WorkerError: a worker has died.
        Exception: whatever the makers and the matches raise.
    """
    if workers < 1:
        raise ValueError(f"there must be at least one worker, got {workers}")
    units = [
        Unit(match, chunk, run.deals.size_of(chunk))
        for chunk in range(run.deals.num_chunks)
        for match in range(len(run.matches))
    ]
    player = _Player(run)
    player.try_out()
    rows = _Rows(run, look)
    kept = {} if kept_in is None else kept_in.kept
    for unit in filter(kept.__contains__, units):
        rows.add(unit, kept[unit])
        _report(progress, run, unit)
    missing = [unit for unit in units if unit not in kept]
    if missing and not rows.finished:
        play = _play_here(player, missing, progress)
        if workers > 1:
            play = _play_in_workers(run, missing, workers, progress)
        with closing(play):
            for unit, columns in play:
                if kept_in is not None:
                    kept_in.keep(unit, columns)
                rows.add(unit, columns)
                if rows.finished:
                    break
    return rows.joined()


class _Rows:
    """Chunks as they come in; each is looked at when all matches have played it, in order."""

    def __init__(self, run: Run, look: Callable[[Sequence[Columns]], bool] | None) -> None:
        self._num_matches, self._num_chunks = len(run.matches), run.deals.num_chunks
        self._look = look
        self._columns: dict[tuple[int, int], Columns] = {}
        self._num_looked_at = 0
        self._enough = False

    def add(self, unit: Unit, columns: Columns) -> None:
        self._columns[unit.match, unit.chunk] = columns
        while not self.finished and (row := self._next_row()) is not None:
            self._num_looked_at += 1
            self._enough = self._look is not None and self._look(row)

    @property
    def finished(self) -> bool:
        return self._enough or self._num_looked_at == self._num_chunks

    def _next_row(self) -> list[Columns] | None:
        places = [(match, self._num_looked_at) for match in range(self._num_matches)]
        if all(place in self._columns for place in places):
            return [self._columns[place] for place in places]
        return None

    def joined(self) -> list[Columns]:
        return [
            joined([self._columns[match, chunk] for chunk in range(self._num_looked_at)])
            for match in range(self._num_matches)
        ]


def _report(progress: Progress | None, run: Run, unit: Unit) -> None:
    if progress is not None:
        progress(unit.match, unit.deals * run.matches[unit.match].games_per_deal)


def _play_here(player: _Player, units: Sequence[Unit], progress: Progress | None) -> _Played:
    for unit in units:
        yield unit, player.play(unit, progress and partial(progress, unit.match))


def _play_in_workers(
    run: Run, units: Sequence[Unit], workers: int, progress: Progress | None
) -> _Played:
    """Units as they are finished, in any order."""
    waiting: Iterator[Unit] = iter(units)
    with _worker_pool(_pickled(run), min(workers, len(units))) as pool:
        running: dict[Future[Columns], Unit] = {}

        def submit(count: int) -> None:
            for unit in islice(waiting, count):
                with _for_children():
                    running[pool.submit(_play_unit, unit)] = unit

        submit(2 * workers)  # so that each has its next one at hand
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                unit = running.pop(future)
                columns = _result_of(future)
                _report(progress, run, unit)
                submit(1)
                yield unit, columns


def _result_of(future: Future[Columns]) -> Columns:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise WorkerError("a worker process has died; was there too little memory?") from error


def _pickled(run: Run) -> bytes:
    try:
        return pickle.dumps(run)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise _cannot_be_sent(error) from error


def _cannot_be_sent(error: Exception) -> ValueError:
    return ValueError(
        "workers need agents that can be pickled, made of what stands in a module: "
        f"{error}; or take one worker"
    )


@contextmanager
def _worker_pool(pickled_run: bytes, workers: int) -> Generator[ProcessPoolExecutor]:
    """Workers that end when the block does, at once if it's left before all is played."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context(
        "spawn"
    )  # threads of Torch and Numba don't survive a fork
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(pickled_run,))
    try:
        yield pool
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _for_children() -> Generator[None]:
    """What children inherit: one thread each, and that interrupts are for their parent alone."""
    before = {name: os.environ.get(name) for name in _THREAD_SETTINGS}
    os.environ.update(dict.fromkeys(_THREAD_SETTINGS, "1"))
    blocked = _block_interrupts()
    try:
        yield
    finally:
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _block_interrupts() -> set[int] | None:
    """Keep SIGINT waiting, and return what was kept waiting before; None where that can't be."""
    if not hasattr(signal, "pthread_sigmask"):
        return None
    return signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


# --- In a worker ---

_worker_run: bytes = b""
_worker_player: _Player | None = None


def _begin(pickled_run: bytes) -> None:
    """Begin a worker's life; the run is read with the first unit, as errors come through then."""
    global _worker_run  # noqa: PLW0603 -- the one thing that a worker knows
    _worker_run = pickled_run
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play_unit(unit: Unit) -> Columns:
    global _worker_player  # noqa: PLW0603
    if _worker_player is None:
        _worker_player = _Player(_unpickled(_worker_run))
    return _worker_player.play(unit)


def _unpickled(content: bytes) -> Run:
    try:
        return pickle.loads(content)
    except (AttributeError, ImportError) as error:
        raise _cannot_be_sent(error) from error
