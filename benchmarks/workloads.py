"""What is compared with what: groups of contenders, and the ratios that are asked of them.

Nothing is made here. Contenders are names and arguments, so that a process that imports this module
has not yet imported the libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

OURS = "DeckOfSpies-v0"
SIZES = (1, 16, 64, 1024, 16384)
SCALING_SIZES = tuple(4**power for power in range(9))
HAND_SIZES = tuple(range(3, 9))
DEFAULT_HAND_SIZE = 5
THREADED_SIZES = (16384, 65536)
PGX_SIZES = (64, 512, 4096, 32768)
PGX_STEPS_OF_A_CALL = 1 << 18
PGX_GAMES = {"kuhn_poker": 3, "leduc_holdem": 8}
"""Longest game, in decisions."""
ROLLOUT_GAMES = 4096
PPO_STEPS = 4.0
"""Slices of learners are so much longer than others, as their iterations are."""


@dataclass(frozen=True)
class Contender:
    """What is timed, in a process of its own.

    Attributes:
        name: unique in its group.
        make: ``module:function`` of this package that makes the player.
        arguments: for the function.
        made_by: how a user makes it, for the report.
        games: at a time.
        one_core: keep the process to one core, whatever threads the library starts.
        slice_factor: its slices last so many times as long as asked for.
        plotted: whether the plot shows it.
        ours: whether it is the fast way of this project, which the plot sets off.
    """

    name: str
    make: str
    arguments: Mapping[str, Any]
    made_by: str
    games: int = 1
    one_core: bool = True
    slice_factor: float = 1.0
    plotted: bool = True
    ours: bool = False


@dataclass(frozen=True)
class Comparison:
    """A ratio of speeds: one of ours over the fastest of some peers.

    Attributes:
        workload: what is compared, for the report.
        ours: name of a contender.
        peer: what the others are, for the report.
        beside: names of contenders; the one of the highest median counts, for each clock.
        least, aim: what the ratio is asked to be, None where nothing is asked.
        per: ``"steps"``, or ``"decisions"`` for steps less those that deal a game anew.
    """

    workload: str
    ours: str
    peer: str
    beside: tuple[str, ...]
    least: float | None = None
    aim: float | None = None
    per: str = "steps"


@dataclass(frozen=True)
class Share:
    """A share of CPU time that is asked to be small: that of the environment in learning."""

    workload: str
    contender: str
    at_most: float | None = None
    aim: float | None = None


@dataclass(frozen=True)
class Group:
    """Contenders that take turns.

    Attributes:
        title: for the report.
        counted: what is counted as a step, for the report.
    """

    title: str
    counted: str
    contenders: tuple[Contender, ...]
    comparisons: tuple[Comparison, ...] = ()
    shares: tuple[Share, ...] = field(default=())


# --- single ---


def _single() -> Group:
    env_ids = (OURS, "Taxi", "Blackjack-v1", "CartPole-v1")
    return Group(
        title="One environment",
        counted=(
            "A step is a call of `step`. Resets take time and are no steps. All environments have "
            "the default wrappers of `gym.make`. Actions come from one compiled function, which "
            "reads the mask of `info`, or one that allows everything where there is none."
        ),
        contenders=tuple(
            Contender(
                env_id, "players:single", {"env_id": env_id}, "`gym.make`", ours=env_id == OURS
            )
            for env_id in env_ids
        ),
        comparisons=(
            Comparison("one environment", OURS, "Gymnasium Taxi", ("Taxi",), 1.0, 1.5),
            Comparison("one environment", OURS, "Gymnasium Blackjack", ("Blackjack-v1",), 2.0, 3.0),
            Comparison("one environment", OURS, "Gymnasium CartPole", ("CartPole-v1",)),
        ),
    )


# --- vector ---

VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "packed": {"packed": True},
    "copy=False": {"copy": False},
    "packed, copy=False": {"packed": True, "copy": False},
}
"""Of our vector environment: the default, and its options."""
PYTHON_LOOPS = {
    "OpenSpiel": ("open_spiel", ("kuhn_poker", "leduc_poker", "gin_rummy", "solitaire")),
    "RLCard": ("rlcard", ("leduc-holdem", "limit-holdem", "gin-rummy")),
    "PettingZoo": ("pettingzoo", ("leduc_holdem_v4", "texas_holdem_v4")),
}
"""Library: its maker and the card games tried."""
FULL_DECK = ("gin_rummy", "solitaire", "limit-holdem", "gin-rummy", "texas_holdem_v4")
"""Those of them with 52 cards, as ours has; the others make do with three or six."""


def ours(variant: str, num_envs: int) -> str:
    """Name of our vector environment."""
    return f"{OURS} {variant}, N = {num_envs:,}"


def _vector_contenders(num_envs: int) -> list[Contender]:
    made_by = '`gym.make_vec(..., vectorization_mode="vector_entry_point")`'
    plotted = num_envs in (64, 1024)
    found = [
        Contender(
            ours(variant, num_envs),
            "players:vector",
            {"env_id": OURS, "num_envs": num_envs, **options},
            made_by,
            num_envs,
            plotted=plotted,
            ours=True,
        )
        for variant, options in VARIANTS.items()
    ]
    found.append(
        Contender(
            f"CartPole-v1, N = {num_envs:,}",
            "players:vector",
            {"env_id": "CartPole-v1", "num_envs": num_envs},
            made_by,
            num_envs,
            plotted=plotted,
        )
    )
    for one_core, where in ((True, "one core"), (False, "all cores")):
        found.append(
            Contender(
                f"EnvPool Blackjack-v1, {where}, N = {num_envs:,}",
                "peers:envpool",
                {"env_id": "Blackjack-v1", "num_envs": num_envs},
                "`envpool.make(..., num_threads=1)`",
                num_envs,
                one_core=one_core,
                plotted=plotted,
            )
        )
    return found


def _python_loops() -> list[Contender]:
    return [
        Contender(f"{library} {game}", f"peers:{make}", {"game": game}, "Python loop")
        for library, (make, games) in PYTHON_LOOPS.items()
        for game in games
    ]


def _vector_comparisons() -> list[Comparison]:
    asked = {
        ("full", 1024, "EnvPool"): (4.0, 8.0),
        ("packed", 1024, "EnvPool"): (8.0, 12.0),
        ("full", 64, "CartPole"): (1.0, 2.0),
    }
    found = []
    for num_envs, variant in product(SIZES, VARIANTS):
        name = ours(variant, num_envs)
        workload = f"vector, {variant}, N = {num_envs:,}"
        envpool = tuple(
            f"EnvPool Blackjack-v1, {where}, N = {num_envs:,}"
            for where in ("one core", "all cores")
        )
        cart_pole = (f"CartPole-v1, N = {num_envs:,}",)
        for peer, title, names in (
            ("EnvPool", "EnvPool Blackjack", envpool),
            ("CartPole", "Gymnasium CartPole", cart_pole),
        ):
            least, aim = asked.get((variant, num_envs, peer), (None, None))
            found.append(Comparison(workload, name, title, names, least, aim))
    for library, (_, games) in PYTHON_LOOPS.items():
        for kind, full_deck in (("52 cards", True), ("3 or 6 cards", False)):
            names = tuple(f"{library} {g}" for g in games if (g in FULL_DECK) == full_deck)
            found.append(
                Comparison(
                    "vector, full, N = 1,024",
                    ours("full", 1024),
                    f"{library}, {kind}",
                    names,
                    50.0,
                    150.0,
                    per="decisions",
                )
            )
    return found


def _vector() -> Group:
    return Group(
        title="Many environments at a time",
        counted=(
            "A step is one game in one call of `step`. All vector environments deal an ended game "
            "anew in the next call (NEXT_STEP), and that is counted as a step too: the last column "
            "says how often it happens. The random action is chosen by one compiled function for "
            "all batches; its time, measured alone, is part of the whole loop and taken off in the "
            "columns *env only*. OpenSpiel, RLCard and PettingZoo have no batches. Theirs is a "
            "Python loop that reads observation and legal actions at every decision; steps are "
            "decisions, and beside them ours are decisions too. Several of their games are tried, "
            "and the fastest of those with a full deck counts, and of the smaller ones."
        ),
        contenders=(*(c for n in SIZES for c in _vector_contenders(n)), *_python_loops()),
        comparisons=tuple(_vector_comparisons()),
    )


# --- clone ---


def _clone() -> Group:
    games = PYTHON_LOOPS["OpenSpiel"][1]
    clones = tuple(f"OpenSpiel {game} clone" for game in games)
    name = f"{OURS} get_state and set_state, N = 1,024"
    with_masks = f"{name}, then action_masks"
    made_by = "`envs.set_state(envs.get_state())`"
    return Group(
        title="Saving and restoring",
        counted=(
            "A step is one game in mid-play, saved and restored, with ours its random streams too. "
            "With OpenSpiel it is one call of `State.clone`, though keeping the saved state as "
            "well would take a second one; it has no random streams to save, and the fastest of "
            "several games counts."
        ),
        contenders=(
            Contender(name, "players:clone", {"num_envs": 1024}, made_by, 1024, ours=True),
            Contender(
                with_masks,
                "players:clone",
                {"num_envs": 1024, "masks": True},
                f"{made_by}, `envs.action_masks()`",
                1024,
                ours=True,
            ),
            *(
                Contender(clone, "peers:open_spiel_clones", {"game": game}, "`state.clone()`")
                for clone, game in zip(clones, games, strict=True)
            ),
        ),
        comparisons=(
            Comparison("clone and restore", name, "OpenSpiel", clones, 5.0, 20.0),
            Comparison("clone, restore, masks", with_masks, "OpenSpiel", clones),
        ),
    )


# --- rollout ---


def _rollout() -> Group:
    contenders = [
        Contender(
            f"{OURS} play_out, {policy}",
            "players:rollouts",
            {"policy": policy, "num_games": ROLLOUT_GAMES},
            "`envs.reset()`, `play_out(envs.get_state())`",
            ROLLOUT_GAMES,
            ours=True,
        )
        for policy in ("random", "greedy")
    ]
    contenders.append(
        Contender(
            f"{OURS} play_out, random, fresh seeds",
            "players:rollouts",
            {"policy": "random", "num_games": ROLLOUT_GAMES, "dealing": "deal_snapshots"},
            "`play_out(deal_snapshots(seeds))`",
            ROLLOUT_GAMES,
            ours=True,
        )
    )
    comparisons = []
    asked = {"kuhn_poker": (2.0, 4.0), "leduc_holdem": (5.0, 10.0)}
    for game, longest in PGX_GAMES.items():
        auto, whole = _pgx(game, longest)
        contenders += [*auto, *whole]
        for peer, names, (least, aim) in (
            (f"Pgx {game}, auto-reset", auto, asked[game]),
            (f"Pgx {game}, whole games", whole, (None, None)),
        ):
            comparisons += [
                Comparison(
                    f"rollouts, {policy}",
                    f"{OURS} play_out, {policy}",
                    peer,
                    tuple(contender.name for contender in names),
                    least if policy == "random" else None,
                    aim if policy == "random" else None,
                )
                for policy in ("random", "greedy")
            ]
    return Group(
        title="Rollouts in compiled code",
        counted=(
            "A step is a decision; dealing the games takes time. Ours: whole games from the deal "
            "to the end. Pgx: one jitted `lax.scan` with random legal actions, the fastest of "
            f"{', '.join(f'{size:,}' for size in PGX_SIZES)} games at a time; *auto-reset* is "
            "Pgx's own, *whole games* deals and plays games of a fixed number of turns without it "
            "and counts the decisions before the end."
        ),
        contenders=tuple(contenders),
        comparisons=tuple(comparisons),
    )


def _pgx(game: str, longest: int) -> tuple[list[Contender], list[Contender]]:
    """Contenders with auto-reset, and those that play whole games."""
    auto, whole = [], []
    for size in PGX_SIZES:
        num_steps = max(16, PGX_STEPS_OF_A_CALL // size)
        auto.append(
            Contender(
                f"Pgx {game}, auto-reset, N = {size:,}",
                "peers:pgx_auto_reset",
                {"game": game, "num_envs": size, "num_steps": num_steps},
                "`lax.scan`, `auto_reset`",
                size,
                plotted=size == 4096,
            )
        )
        whole.append(
            Contender(
                f"Pgx {game}, whole games, N = {size:,}",
                "peers:pgx_whole_games",
                {
                    "game": game,
                    "num_envs": size,
                    "num_games": num_steps // longest,
                    "longest": longest,
                },
                "`lax.scan`, unrolled",
                size,
                plotted=size == 4096,
            )
        )
    return auto, whole


# --- scaling ---


def _scaling() -> Group:
    made_by = '`gym.make_vec(..., vectorization_mode="vector_entry_point")`'
    contenders = [
        Contender(
            f"N = {num_envs:,}",
            "players:vector",
            {"env_id": OURS, "num_envs": num_envs},
            made_by,
            num_envs,
            plotted=False,
        )
        for num_envs in SCALING_SIZES
    ]
    contenders += [
        Contender(
            f"hand of {hand_size}, N = 1,024",
            "players:vector",
            {"env_id": OURS, "num_envs": 1024, "rules": {"hand_size": hand_size}},
            made_by,
            1024,
            plotted=False,
        )
        for hand_size in HAND_SIZES
        if hand_size != DEFAULT_HAND_SIZE
    ]
    contenders += [
        Contender(
            f"{threads} thread{'s' if threads > 1 else ''}, N = {num_envs:,}",
            "players:vector",
            {"env_id": OURS, "num_envs": num_envs, "num_threads": threads},
            made_by,
            num_envs,
            one_core=threads == 1,
            plotted=False,
        )
        for threads, num_envs in product((1, 2), THREADED_SIZES)
    ]
    return Group(
        title="Scaling",
        counted=(
            "Ours only, full observation and mask. A step is one game in one call of `step`. The "
            "default hand of 5 is the row N = 1,024. The random choice is part of the loop and "
            "made by one thread."
        ),
        contenders=tuple(contenders),
        comparisons=tuple(
            Comparison(
                f"2 threads, N = {num_envs:,}",
                f"2 threads, N = {num_envs:,}",
                "1 thread",
                (f"1 thread, N = {num_envs:,}",),
            )
            for num_envs in THREADED_SIZES
        ),
    )


# --- ppo ---


def _learner(title: str, vec_env: str, num_envs: int, policy: str = "candidate") -> Contender:
    return Contender(
        _learner_name(title, num_envs, policy),
        "learners:ppo",
        {"vec_env": vec_env, "num_envs": num_envs, "policy": policy},
        "`MaskablePPO.learn`",
        num_envs,
        one_core=vec_env != "subproc",
        slice_factor=PPO_STEPS,
        ours=vec_env == "native",
    )


def _learner_name(title: str, num_envs: int, policy: str = "candidate") -> str:
    return f"MaskablePPO {policy}, {title}, {num_envs:,} games"


def _ppo() -> Group:
    native, dummy, subproc = "native VecEnv", "DummyVecEnv", "SubprocVecEnv"
    monitored, plain = "DummyVecEnv with Monitor", "a plain loop of the same mathematics"
    comparisons = [
        Comparison(
            f"MaskablePPO, {num_envs:,} games",
            _learner_name(native, num_envs),
            peer,
            (_learner_name(peer, num_envs),),
            least,
            aim,
        )
        for num_envs, peer, least, aim in (
            (16, dummy, 1.3, 2.0),
            (16, subproc, 1.3, 2.0),
            (256, dummy, 1.3, 2.0),
            (256, monitored, None, None),
        )
    ]
    comparisons.append(
        Comparison("MaskablePPO, 256 games", _learner_name(native, 256), plain, (plain,))
    )
    return Group(
        title="MaskablePPO, end to end",
        counted=(
            "A step is a decision played and learnt from, in whole iterations of rollout and "
            "update with `configs/deck_of_spies.yaml` on one torch thread; the number of games is "
            "the only setting changed. SB3's own VecEnvs hold our single environment without "
            "wrappers; *with Monitor* is what SB3's `make_vec_env` gives, which records episodes "
            "as the native VecEnv does. SubprocVecEnv has one process for each game, all cores of "
            "the machine, and the CPU time of all its processes counted."
        ),
        contenders=(
            _learner(native, "native", 16),
            _learner(dummy, "dummy", 16),
            _learner(subproc, "subproc", 16),
            _learner(native, "native", 256),
            _learner(dummy, "dummy", 256),
            _learner(monitored, "monitored", 256),
            Contender(
                plain,
                "learners:plain",
                {"num_envs": 256},
                "`benchmarks/plain_loop.py`",
                256,
                slice_factor=PPO_STEPS,
                plotted=False,
            ),
            _learner(native, "native", 1024),
            _learner(native, "native", 1024, "MlpPolicy"),
        ),
        comparisons=tuple(comparisons),
        shares=(
            Share(
                "env's share of MaskablePPO, 1,024 games, default network",
                _learner_name(native, 1024),
                0.05,
                0.02,
            ),
            Share(
                "env's share of MaskablePPO, 1,024 games, sb3-contrib's MlpPolicy",
                _learner_name(native, 1024, "MlpPolicy"),
                0.05,
                0.02,
            ),
        ),
    )


# --- skirmish ---


def _skirmish() -> Group:
    sizes = {2: (20.0, 50.0), 3: (None, None), 4: (40.0, 100.0)}
    contenders, comparisons = [], []
    for num_players, (least, aim) in sizes.items():
        name = f"Skirmish for {num_players}, N = 1,024"
        peer = f"OpenSpiel goofspiel(imp_info=True) for {num_players}"
        contenders += [
            Contender(
                name,
                "table_players:tables",
                {"num_envs": 1024, "num_players": num_players},
                "`SkirmishVectorEnv`",
                1024,
                ours=True,
            ),
            Contender(
                peer,
                "table_players:open_spiel_joint",
                {"game": "goofspiel", "num_players": num_players},
                "Python loop",
            ),
        ]
        comparisons.append(
            Comparison(f"all seats of Skirmish for {num_players}", name, peer, (peer,), least, aim)
        )
    contenders += [
        Contender(
            "Skirmish for 2, ParallelEnv",
            "table_players:parallel",
            {"num_players": 2},
            "`parallel_env`",
            ours=True,
        ),
        Contender(
            "PettingZoo rps_v2, ParallelEnv",
            "table_players:pettingzoo_parallel",
            {"game": "rps_v2"},
            "`rps_v2.parallel_env`",
        ),
    ]
    comparisons.append(
        Comparison(
            "one table of Skirmish, ParallelEnv",
            "Skirmish for 2, ParallelEnv",
            "PettingZoo rps_v2",
            ("PettingZoo rps_v2, ParallelEnv",),
            0.7,
            1.5,
        )
    )
    return Group(
        title="Skirmish",
        counted=(
            "A step is a joint decision of all seats at one table, with the observations and legal "
            "actions of all of them. Ours deals an ended game anew in the next call (NEXT_STEP), "
            "and that is counted as a step too. OpenSpiel's goofspiel is played in a Python loop "
            "that reads what each player sees and may do; PettingZoo's rock-paper-scissors has no "
            "masks."
        ),
        contenders=tuple(contenders),
        comparisons=tuple(comparisons),
    )


GROUPS: dict[str, Group] = {
    "single": _single(),
    "vector": _vector(),
    "clone": _clone(),
    "rollout": _rollout(),
    "scaling": _scaling(),
    "ppo": _ppo(),
    "skirmish": _skirmish(),
}
