"""What a learner gains on a frozen agent of Skirmish, and what one gains that sees all hands.

``python -m benchmarks.best_response [--agent ppo] [--num-players 2] [--sees-hands]``

A learner that sits down with n - 1 copies of an agent, and is trained by PPO against nobody else,
comes near a best response. Against a policy of ours it begins as that policy. By the symmetry of
the seats good play is worth 0, so what the learner is paid is a lower bound on how far the agent
can be exploited. With ``--sees-hands`` its observation also has the others' hands: no play of the
game as it is can be expected to gain more on this agent than a perfect such learner, so that it
shows how much there is to win beside luck. What is measured is a lower bound on that again, as no
learner is perfect.

Each run leaves a JSON file; ``--table`` prints what there is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import AgentError
from agents.masked_ppo import MaskedPPO
from agents.skirmish import make_skirmish_agent
from agents.skirmish.ppo import SkirmishPPOAgent
from agents.training.config import TrainConfig, read_command_line
from agents.training.ppo import make_model
from benchmarks.keeping import keep, kept
from benchmarks.machine import circumstances
from deck_of_spies_env.agent import Actions, Agent, BatchAgent
from deck_of_spies_env.commands import OneLineParser, at_least_one, whole_number
from deck_of_spies_env.evaluation.seeds import deal_seeds
from deck_of_spies_env.evaluation.statistics import mean_interval
from deck_of_spies_env.integrations.sb3_skirmish import Member, SkirmishVecEnv
from deck_of_spies_env.skirmish import cards

RESULTS = Path(__file__).parent / "results" / "best_response"
CONFIGS = Path(__file__).parents[1] / "configs"
TABLES = 256
_SUITS = 4


class Frozen(BatchAgent):
    """An agent that draws anew each time, so that its draws can't be learnt.

    Args:
        agent: that plays.
        seed: of its draws.
    """

    def __init__(self, agent: Agent, seed: int) -> None:
        self._agent = agent
        self._random = np.random.default_rng(seed)

    def reset(self, seed: int) -> None:
        """Draw by another seed from now on."""
        self._random = np.random.default_rng(seed)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """What the agent does with a seed that nobody has seen."""
        self._agent.reset(int(self._random.integers(1 << 32)))
        return cast(Actions, self._agent.act(observations, action_masks))


class SeeingEnvs(SkirmishVecEnv):
    """Tables of a learner that sees all hands: 14 counts by rank of each of the others, in turn."""

    def __init__(self, tables: int, num_players: int, **arguments: Any) -> None:
        super().__init__(0, tables, num_players, **arguments)
        own = cast(Any, self.observation_space).high
        counts = np.full((num_players - 1) * cards.NUM_RANKS, _SUITS, np.int8)
        high = np.concatenate((own, counts))
        self.observation_space = gym.spaces.Box(np.zeros_like(high), high, dtype=np.int8)

    def _observations(self) -> npt.NDArray[np.int8]:
        own = super()._observations()
        turns = np.arange(1, self.num_players)
        seats = (self._seats[:, None] + turns) % self.num_players
        hands = self.games.states["hand"][self._tables[:, None], seats]
        return np.concatenate((own, _counts_by_rank(hands).reshape(len(own), -1)), axis=1)


def _counts_by_rank(hands: npt.NDArray[np.uint64]) -> npt.NDArray[np.int8]:
    """(...,) sets of cards to int8 (..., 14)."""
    bits = np.unpackbits(
        np.ascontiguousarray(hands)[..., None].view(np.uint8), axis=-1, bitorder="little"
    )
    by_rank = bits[..., : cards.NUM_RANKS * _SUITS].reshape(*hands.shape, cards.NUM_RANKS, _SUITS)
    return by_rank.sum(axis=-1).astype(np.int8)


def make_tables(
    agent: Agent, tables: int, num_players: int, *, sees_hands: bool, shaping: str | None = None
) -> SkirmishVecEnv:
    """Tables with a learner in one seat, which rotates, and the agent in all others."""
    pool = [Member("frozen", agent, 1.0)]
    if sees_hands:
        return SeeingEnvs(tables, num_players, pool=pool, shaping=shaping)
    return SkirmishVecEnv(0, tables, num_players, pool=pool, shaping=shaping)


def make_learner(
    agent: Agent,
    config: TrainConfig,
    *,
    sees_hands: bool,
    begin_as: MaskableActorCriticPolicy | None = None,
) -> MaskedPPO:
    """A learner that is to play against an agent and nobody else.

    Args:
        agent: in all other seats.
        config: of the learner.
        sees_hands: whether the learner sees all hands.
        begin_as: whose choices the learner makes at first; its critic begins anew.
    """
    envs = make_tables(
        agent, TABLES, config.env.num_players, sees_hands=sees_hands, shaping=config.env.shaping
    )
    model = make_model(config, envs, th.device("cpu"))
    if begin_as is not None:
        model.policy.mlp_extractor.policy_net.load_state_dict(
            begin_as.mlp_extractor.policy_net.state_dict()
        )
        model.policy.action_net.load_state_dict(begin_as.action_net.state_dict())
    return model


def judge(
    model: MaskedPPO, agent: Agent, num_players: int, deals: int, *, sees_hands: bool
) -> npt.NDArray[np.float64]:
    """Play one game in each seat at every table, the likeliest action always.

    Two calls meet the same deals, and an agent that is reset to the same seed.

    Returns:
        Share of wins and payoff: float64 (2, deals), means over the seats.
    """
    agent.reset(1)
    envs = make_tables(agent, deals, num_players, sees_hands=sees_hands)
    envs.seed(deal_seeds("test", 0, deals)[0])
    observations = envs.reset()
    ended = np.zeros(deals, np.int64)
    sums = np.zeros((2, deals))
    while (ended < num_players).any():
        actions, _ = model.predict(
            observations, action_masks=envs.action_masks(), deterministic=True
        )
        observations, _, dones, infos = envs.step(actions)
        for table in np.flatnonzero(dones & (ended < num_players)):
            sums[:, table] += _share(infos[table]), infos[table]["payoff"]
            ended[table] += 1
    return sums / num_players


def _share(info: dict[str, Any]) -> float:
    """Of the win, out of the payoff (S12), which is (n share - 1) / (n - 1)."""
    n = len(info["opponents"]) + 1
    return (info["payoff"] * (n - 1) + 1) / n


def config_of(num_players: int, steps: int, seed: int) -> TrainConfig:
    """The recipe of self-play with less bonus for mixing, as an answer needs no mixing."""
    return read_command_line(
        [
            *("--config", str(CONFIGS / f"skirmish_{num_players}p.yaml"), "--seed", str(seed)),
            *("--ppo.ent_coef", "0.02", "--ppo.final_ent_coef", "0.0"),
            *("--ppo.total_timesteps", str(steps), "--env.num_envs", str(TABLES)),
            *("--self_play.pool_tables", "1.0"),
        ]
    )[0]


def run(spec: str, num_players: int, steps: int, deals: int, *, sees_hands: bool) -> dict[str, Any]:
    """Train and judge one learner."""
    judged = make_skirmish_agent(spec, num_players)
    agent = Frozen(judged, seed=0)
    own = isinstance(judged, SkirmishPPOAgent) and not sees_hands
    begin_as = cast(SkirmishPPOAgent, judged).policy if own else None
    config = config_of(num_players, steps, 0)
    model = make_learner(agent, config, sees_hands=sees_hands, begin_as=begin_as)
    _, untrained = judge(model, agent, num_players, deals, sees_hands=sees_hands)
    model.learn(config.ppo.total_timesteps)
    shares, payoffs = judge(model, agent, num_players, deals, sees_hands=sees_hands)
    return {
        "agent": spec,
        "num_players": num_players,
        "sees_hands": sees_hands,
        "decisions": model.num_timesteps,
        "deals": deals,
        "untrained_payoff": float(untrained.mean()),
        "untrained_payoff_ci": list(mean_interval(untrained)),
        "win_rate": float(shares.mean()),
        "win_rate_ci": list(mean_interval(shares)),
        "payoff": float(payoffs.mean()),
        "payoff_ci": list(mean_interval(payoffs)),
        "circumstances": circumstances(),
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    """The runs as markdown."""
    lines = [
        "| players | against | sees hands | untrained payoff | million decisions | deals "
        "| share of wins | payoff |",
        "|---:|---|---|---|---:|---:|---|---|",
    ]
    for one in results:
        low, high = (100 * end for end in one["win_rate_ci"])
        paid, before = (
            " to ".join(f"{end:+.3f}" for end in one[ends])
            for ends in ("payoff_ci", "untrained_payoff_ci")
        )
        lines.append(
            f"| {one['num_players']} | `{one['agent']}` | {'yes' if one['sees_hands'] else 'no'} "
            f"| {one['untrained_payoff']:+.3f} [{before}] "
            f"| {one['decisions'] / 1e6:.1f} | {one['deals']:,} "
            f"| {100 * one['win_rate']:.2f} % [{low:.2f}, {high:.2f}] "
            f"| {one['payoff']:+.3f} [{paid}] |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Make a run, or print those there are."""
    parser = OneLineParser(description="What a learner gains on a frozen agent.")
    parser.add_argument("--agent", default="ppo", help="as evaluate.py takes it (%(default)s)")
    parser.add_argument("--num-players", type=int, choices=(2, 3, 4), default=2)
    parser.add_argument("--sees-hands", action="store_true", help="the learner sees all hands")
    parser.add_argument(
        "--steps", type=at_least_one, default=5_000_000, help="decisions (%(default)s)"
    )
    parser.add_argument(
        "--deals", type=whole_number(2), default=10_000, help="for judging (%(default)s)"
    )
    parser.add_argument("--table", action="store_true", help="print the runs that there are")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the JSON files are")
    args = parser.parse_args()
    if args.table:
        try:
            sys.stdout.write(table(kept(args.results)))
        except (ValueError, KeyError) as error:
            parser.error(f"--table: {error}")
        return
    try:
        make_skirmish_agent(args.agent, args.num_players)
    except AgentError as error:
        parser.error(str(error))
    th.set_num_threads(1)
    made = run(args.agent, args.num_players, args.steps, args.deals, sees_hands=args.sees_hands)
    name = re.sub(r"\W+", "-", f"{args.num_players}p-{args.agent}").strip("-")
    path = args.results / f"{name}{'-sees-hands' if args.sees_hands else ''}.json"
    keep(path, made)
    sys.stdout.write(table([made]))


if __name__ == "__main__":
    main()
