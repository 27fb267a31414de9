"""Environments of other libraries, each played in the way that is fastest for it.

As in ``players``: every function makes a player in the process that will be timed.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from benchmarks.players import SEED, Player, batch

OPEN_SPIEL_STATES = 1024


def envpool(env_id: str, num_envs: int) -> Player:
    """EnvPool with one worker thread, in its synchronous mode."""
    import envpool as library  # noqa: PLC0415 - an optional peer

    envs = library.make(env_id, env_type="gymnasium", num_envs=num_envs, num_threads=1, seed=SEED)
    return batch(envs, int(envs.action_space.n), action_type=np.int32, seed=None)


def open_spiel(game: str) -> Player:
    """A C++ game of OpenSpiel in a Python loop. A step is a decision; chance is sampled as time.

    The observation is read through OpenSpiel's own ``make_observation``, which writes to one array
    and is never slower than ``State.observation_tensor``.
    """
    import pyspiel  # noqa: PLC0415 - an optional peer
    from open_spiel.python.observation import make_observation  # noqa: PLC0415

    loaded = pyspiel.load_game(game)
    observation = make_observation(loaded)
    uniform = random.Random(SEED).random

    def play(calls: int) -> float:
        decisions = 0
        while decisions < calls:
            state = loaded.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    state.apply_action(_chance(state, uniform()))
                    continue
                observation.set_from(state, state.current_player())
                mask = state.legal_actions_mask()
                legal = [action for action, allowed in enumerate(mask) if allowed]
                state.apply_action(legal[int(uniform() * len(legal))])
                decisions += 1
        return decisions

    return Player(play)


def _chance(state: Any, uniform: float) -> int:
    """An outcome of a chance node, drawn by a number from [0, 1)."""
    outcomes = state.chance_outcomes()
    for action, probability in outcomes:
        uniform -= probability
        if uniform < 0:
            return action
    return outcomes[-1][0]  # the probabilities add up to a little less than 1


def open_spiel_clones(game: str) -> Player:
    """``State.clone`` of states in mid-game, one call for each state. A step is a clone.

    Going back to a saved state would take a second clone to keep the saved one; it is not counted.
    """
    import pyspiel  # noqa: PLC0415 - an optional peer

    loaded = pyspiel.load_game(game)
    generator = random.Random(SEED)
    states = [_mid_game(loaded, generator) for _ in range(OPEN_SPIEL_STATES)]

    def play(calls: int) -> float:
        for _ in range(calls):
            _ = [state.clone() for state in states]
        return calls * len(states)

    return Player(play)


def _mid_game(game: Any, generator: random.Random) -> Any:
    """A decision of one random game, each as likely as the others."""
    state = game.new_initial_state()
    decisions = []
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(_chance(state, generator.random()))
        else:
            decisions.append(state.clone())
            state.apply_action(generator.choice(state.legal_actions()))
    return generator.choice(decisions)


def rlcard(game: str) -> Player:
    """A game of RLCard in a Python loop, with its state and legal actions. A step is a decision."""
    import rlcard as library  # noqa: PLC0415 - an optional peer

    env = library.make(game, config={"seed": SEED})
    uniform = random.Random(SEED).random

    def play(calls: int) -> float:
        decisions = 0
        while decisions < calls:
            state, _ = env.reset()
            while not env.is_over():
                legal = list(state["legal_actions"])
                state, _ = env.step(legal[int(uniform() * len(legal))])
                decisions += 1
        return decisions

    return Player(play)


def pettingzoo(game: str) -> Player:
    """A classic game of PettingZoo in its agent loop. A step is a decision.

    The game without its wrappers (``raw_env``), which is faster, and dealt anew as soon as it is
    over, without the empty steps that the loop over agents makes for players who are out.
    """
    import importlib  # noqa: PLC0415

    env: Any = importlib.import_module(f"pettingzoo.classic.{game}").raw_env()
    uniform = random.Random(SEED).random
    env.reset(seed=SEED)

    def play(calls: int) -> float:
        decisions = 0
        while decisions < calls:
            env.reset()
            while True:
                observation, _, terminated, truncated, _ = env.last()
                if terminated or truncated:
                    break
                legal = observation["action_mask"].nonzero()[0]
                env.step(int(legal[int(uniform() * len(legal))]))
                decisions += 1
        return decisions

    return Player(play)


def pgx_auto_reset(game: str, num_envs: int, num_steps: int) -> Player:
    """Random play in Pgx inside one jitted ``lax.scan`` with Pgx's auto-reset.

    A step is a decision; games dealt anew in the same step count as time. Rewards and ended games
    are summed up and nothing else is handed out, so that XLA may drop what nobody reads,
    observations among it.
    """
    import jax  # noqa: PLC0415 - an optional peer
    import jax.numpy as jnp  # noqa: PLC0415
    import pgx  # noqa: PLC0415
    from pgx.experimental import auto_reset  # noqa: PLC0415

    env = pgx.make(game)
    step = jax.vmap(auto_reset(env.step, env.init))

    def turn(carry: Any, _: None) -> tuple[Any, None]:
        states, key, ended, paid = carry
        key, for_actions, for_deals = jax.random.split(key, 3)
        actions = _pgx_choice(
            states.legal_action_mask, jax.random.uniform(for_actions, (num_envs,))
        )
        states = step(states, actions, jax.random.split(for_deals, num_envs))
        ended += states.terminated.sum()
        paid += states.rewards[:, 0].sum()
        return (states, key, ended, paid), None

    @jax.jit
    def scan(key: Any) -> Any:
        key, for_deals = jax.random.split(key)
        states = jax.vmap(env.init)(jax.random.split(for_deals, num_envs))
        start = (states, key, jnp.int32(0), jnp.float32(0.0))
        (_, key, ended, paid), _ = jax.lax.scan(turn, start, None, length=num_steps)
        return key, ended, paid

    key = jax.random.key(SEED)

    def play(calls: int) -> float:
        nonlocal key
        for _ in range(calls):
            key, _, _ = scan(key)
        jax.block_until_ready(key)
        return calls * num_envs * num_steps

    return Player(play)


def pgx_whole_games(game: str, num_envs: int, num_games: int, longest: int) -> Player:
    """Random games of Pgx from deal to end, without auto-reset, the turns of a game unrolled.

    For games that are all about equally short this is faster than auto-reset, which deals at every
    step what it needs at the last one only. Steps of games that have ended count as time alone.

    Args:
        game: id.
        num_envs: games at a time.
        num_games: one after the other in a call, each of them num_envs wide.
        longest: no game has more decisions.
    """
    import jax  # noqa: PLC0415 - an optional peer
    import jax.numpy as jnp  # noqa: PLC0415
    import pgx  # noqa: PLC0415

    env = pgx.make(game)
    step = jax.vmap(env.step)

    def turn(carry: Any, uniforms: Any) -> tuple[Any, None]:
        states, decisions = carry
        decisions += (~states.terminated).sum()
        return (step(states, _pgx_choice(states.legal_action_mask, uniforms)), decisions), None

    def whole_game(carry: Any, _: None) -> tuple[Any, None]:
        key, decisions, paid = carry
        key, for_deals, for_actions = jax.random.split(key, 3)
        states = jax.vmap(env.init)(jax.random.split(for_deals, num_envs))
        uniforms = jax.random.uniform(for_actions, (longest, num_envs))
        (states, decisions), _ = jax.lax.scan(turn, (states, decisions), uniforms, unroll=longest)
        return (key, decisions, paid + states.rewards[:, 0].sum()), None

    @jax.jit
    def scan(key: Any) -> Any:
        start = (key, jnp.int32(0), jnp.float32(0.0))
        return jax.lax.scan(whole_game, start, None, length=num_games)[0]

    key = jax.random.key(SEED)

    def play(calls: int) -> float:
        nonlocal key
        made = 0
        for _ in range(calls):
            key, decisions, _ = scan(key)
            made += int(decisions)
        return made

    return Player(play)


def _pgx_choice(masks: Any, uniforms: Any) -> Any:
    """A random legal action of each game, by one number from [0, 1) for each."""
    import jax.numpy as jnp  # noqa: PLC0415 - an optional peer

    up_to = jnp.cumsum(masks.astype(jnp.int32), axis=-1)
    num_legal = up_to[..., -1]
    chosen = jnp.minimum((uniforms * num_legal).astype(jnp.int32), num_legal - 1)
    return jnp.argmax(up_to > chosen[..., None], axis=-1).astype(jnp.int32)
