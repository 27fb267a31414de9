"""The same positions with other names for the suits, for networks that do not sort them.

The 24 relabellings of the suits are an exact symmetry of the game. The candidate policy sorts the
suits itself; a flat network has one output for each slot subset, so positions and actions are
relabelled before it sees them: in the same canonical order, or at random, anew for each decision.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvWrapper

from agents.candidate_policy import _ORDERS, _order_numbers, _plays, _relabelling, _suit_keys
from deck_of_spies_env import cards
from deck_of_spies_env.agent import Actions, Agent, BatchAgent
from deck_of_spies_env.integrations.sb3 import DeckOfSpiesVecEnv
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.observations import LAYOUT, SLOT_WIDTH
from deck_of_spies_env.solitaire.rules import KINDS

Recolouring = Literal["sorted", "random"]

_FIRST_SLOT = LAYOUT["slots"].start  # ``slots`` comes last, after all zones
_NO_CARD = cards.NUM_CARDS  # sorts empty slots behind the others


class _Moves(NamedTuple):
    """The action table, for looking up what an action becomes when slots are exchanged.

    Attributes:
        slots: float32 (h, n), 1 where an action uses a slot.
        first: int64 (n,), where in ``actions`` those of its kind begin.
        actions: int64 (kinds * 2^h,), by kind and subset of slots.
    """

    slots: npt.NDArray[np.float32]
    first: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]


@cache
def _moves(hand_size: int) -> _Moves:
    table = action_table(hand_size)
    slots = np.ascontiguousarray(_plays(hand_size).slots.T, dtype=np.float32)
    first = np.zeros(table.num_actions, dtype=np.int64)
    actions = np.zeros((len(KINDS), 1 << hand_size), dtype=np.int64)
    for number, kind in enumerate(KINDS):
        indices = table.actions_of(kind)
        first[indices] = number << hand_size
        # No retire action uses the last slot, which is filled in the act phase only. There all of
        # them are illegal, so any one stands for those that do not exist.
        actions[number] = indices.start
        for action in indices:
            actions[number, table.slots_of(action)] = action
    return _Moves(slots, first, actions.ravel())


@cache
def _slot_entries() -> npt.NDArray[np.int8]:
    """int8 (53, 17): the entries of a slot, by its card; the last row is an empty slot's."""
    entries = np.zeros((cards.NUM_CARDS + 1, SLOT_WIDTH), dtype=np.int8)
    card = np.arange(cards.NUM_CARDS)
    entries[card, card // cards.NUM_SUITS] = 1
    entries[card, cards.NUM_RANKS + card % cards.NUM_SUITS] = 1
    return entries


def recolour(
    observations: npt.NDArray[np.int8],
    masks: npt.NDArray[np.bool_],
    orders: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Positions with relabelled suits, as the environment itself would show them.

    Args:
        observations: ``recall`` observations, int8 (N, d) for any hand size.
        masks: legal actions, bool (N, n).
        orders: int (N, 4), the suit that becomes the first, second, third, last one.

    Returns:
        New observations and masks of the same shapes and dtypes, and int64 (N, n): for each new
        action the original one, of the same kind and with the same cards. An action that names
        slots which there are not, and so is illegal, has any illegal one of its kind.
    """
    hand_size = (observations.shape[1] - _FIRST_SLOT) // SLOT_WIDTH
    zones = _gathered(observations, _relabelling()[_numbers_of(orders)])
    hand = _relabelled_hand(observations[:, _FIRST_SLOT:], orders, hand_size)
    old_slots = hand.argsort(axis=1, kind="stable")
    slots = _slot_entries()[np.take_along_axis(hand, old_slots, axis=1)]
    back = _old_actions(old_slots, orders)
    shown = np.concatenate((zones, slots.reshape(len(zones), -1)), axis=1)
    return shown, _gathered(masks, back), back


def _gathered(rows: npt.NDArray[Any], columns: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Entries (N, k) of each row (N, m), at half the cost of ``take_along_axis``."""
    starts = np.arange(len(rows)) * rows.shape[1]
    return rows.ravel().take(columns + starts[:, np.newaxis])


def _numbers_of(orders: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """The number of each order, int64 (N,)."""
    return _order_numbers()[orders @ (1 << 2 * np.arange(cards.NUM_SUITS))]


def _relabelled_hand(
    slots: npt.NDArray[np.int8], orders: npt.NDArray[np.integer[Any]], hand_size: int
) -> npt.NDArray[np.int64]:
    """The new card index in each of the old slots, int64 (N, h)."""
    hand = np.full((len(slots), hand_size), _NO_CARD)
    places = orders.argsort(axis=1)
    # A filled slot has two entries, its rank and then its suit.
    entries = np.flatnonzero(slots != 0)
    filled, rank = np.divmod(entries[::2], SLOT_WIDTH)
    suit = entries[1::2] % SLOT_WIDTH - cards.NUM_RANKS
    hand.ravel()[filled] = rank * cards.NUM_SUITS + places[filled // hand_size, suit]
    return hand


def _old_actions(
    old_slots: npt.NDArray[np.int64], orders: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.int64]:
    """For each new action the original one, int64 (N, n)."""
    hand_size = old_slots.shape[1]
    moves = _moves(hand_size)
    subsets = (1 << old_slots).astype(np.float32) @ moves.slots
    back = moves.actions[subsets.astype(np.int64) + moves.first]
    aces = action_table(hand_size).actions_of("assassinate")
    back[:, aces.start : aces.stop] = aces.start + orders
    return back


def sorted_orders(observations: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """The candidate policy's order of the suits, int64 (N, 4), for int8 observations (N, d).

    The spy's suit comes first, the others by where their cards lie.
    """
    keys = observations[:, :_FIRST_SLOT].astype(np.float64) @ _suit_keys()
    return (-keys).argsort(axis=1, kind="stable")


class RecolouredEnvs(VecEnvWrapper):
    """Shows the games of a vector environment with relabelled suits.

    Spaces, shapes and dtypes are those of the environment. The games must be moved through this
    wrapper only.

    Args:
        venv: games with ``recall`` observations.
        recolouring: ``sorted`` for the canonical order, ``random`` for a fresh one per decision.
        seed: of the random orders.

    Raises:
        ValueError: unknown recolouring.
    """

    venv: DeckOfSpiesVecEnv

    def __init__(self, venv: DeckOfSpiesVecEnv, recolouring: Recolouring, seed: int = 0) -> None:
        if recolouring not in ("sorted", "random"):
            raise ValueError(f"recolouring must be sorted or random, got {recolouring!r}")
        super().__init__(venv)
        self._recolouring = recolouring
        self._rng = np.random.default_rng(seed)
        self._rows = np.arange(venv.num_envs)

    def reset(self) -> npt.NDArray[np.int8]:
        """Begin the next episode in all games; as of the environment."""
        return self._show(self.venv.reset())

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions, int (N,), as the relabelled positions name them."""
        self.venv.step_async(self._back[self._rows, actions])

    def step_wait(
        self,
    ) -> tuple[
        npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]
    ]:
        """One action in every game; as of the environment."""
        observations, rewards, dones, infos = self.venv.step_wait()
        for i in np.flatnonzero(dones):
            if "terminal_observation" in infos[i]:
                last = infos[i]["terminal_observation"][np.newaxis]
                infos[i]["terminal_observation"] = self._recolour(last, self._masks[:1])[0][0]
        return self._show(observations), rewards, dones, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Legal actions of the relabelled positions, bool (N, n)."""
        return self._masks

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """As of the environment; ``action_masks``, which sb3-contrib asks for so, relabelled."""
        if method_name == "action_masks":
            return list(self._masks[list(self._get_indices(indices))])
        return self.venv.env_method(method_name, *method_args, indices=indices, **method_kwargs)

    def _show(self, observations: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        shown, self._masks, self._back = self._recolour(observations, self.venv.action_masks())
        return shown

    def _recolour(self, observations: npt.NDArray[np.int8], masks: npt.NDArray[np.bool_]) -> Any:
        if self._recolouring == "sorted":
            return recolour(observations, masks, sorted_orders(observations))
        numbers = self._rng.integers(len(_ORDERS), size=len(observations))
        return recolour(observations, masks, np.array(_ORDERS)[numbers])


class RecolouredAgent(BatchAgent):
    """An agent that is shown positions with their suits in the canonical order.

    Args:
        agent: chooses from ``recall`` observations.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def reset(self, seed: int) -> None:
        """Start the agent anew."""
        self.agent.reset(seed)

    def choose(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> Actions:
        """The agent's choice among the relabelled actions, by its original index."""
        orders = sorted_orders(observations)
        shown, masks, back = recolour(observations, action_masks, orders)
        return back[np.arange(len(back)), self.agent.act(shown, masks)]
