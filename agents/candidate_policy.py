"""A policy for MaskablePPO that scores each legal play by what it uses and what it leaves.

A flat network has one output for each slot subset and must learn for every one of them alone what
two cards in these slots mean. Here one small network scores the position *after* each legal play,
as an afterstate value function does (Sutton and Barto, 2018, section 6.8), and the scores of the
legal plays are the logits. The first layer is linear in the zones, so that of an afterstate is that
of the position plus an embedding for each card that the play moves: the position is encoded once,
and each of its plays costs little more.

Suits are sorted first, the spy's before the others, these by where their cards lie: the 24
relabellings are an exact symmetry of the game, so which suit is which never matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import (
    MaskableCategorical,
    MaskableCategoricalDistribution,
)
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import nn
from torch.nn.functional import log_softmax

from agents.candidate_functions import encode, judge, sample, score
from agents.candidate_kernels import Positions, Tables, read_positions
from deck_of_spies_env import cards
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.observations import LAYOUT, SLOT_WIDTH
from deck_of_spies_env.solitaire.rules import KINDS

_NUM_ZONE_ENTRIES = LAYOUT["slots"].start  # ``slots`` comes last; it repeats ``hand``
_NUM_SPY_RANKS = cards.NUM_SPIES // cards.NUM_SUITS
_IMPOSSIBLE = -1e8  # sb3-contrib's own logit of a masked action
_EMBEDDING_SCALE = 0.1

# One embedding for each way in which a play can move a card: a hand card used up in one of three
# ways, the spy (of the first suit, by rank) dealt with in one of three ways, the Ace lost, a pass.
_CARD_KINDS = ("counter", "recruit", "retire")
_SPY_KINDS = ("counter", "recruit", "assassinate")
_FIRST_SPY_TOKEN = len(_CARD_KINDS) * cards.NUM_CARDS
_FIRST_ACE_TOKEN = _FIRST_SPY_TOKEN + len(_SPY_KINDS) * _NUM_SPY_RANKS
_PASS_TOKEN = _FIRST_ACE_TOKEN + cards.NUM_SUITS
_NO_TOKEN = _PASS_TOKEN + 1
_NUM_TOKENS = _NO_TOKEN + 1


class _Plays(NamedTuple):
    """What each action of the table moves, one row per action.

    Attributes:
        slots: bool (n, h), the hand slots used.
        card_token: int64 (n,), added to a used card's index.
        spy_token: int64 (n,), added to the spy's rank; -1 where the spy stays.
        ace: int64 (n,), suit of the Ace given up; -1 for none.
        passes: bool (n,).
    """

    slots: npt.NDArray[np.bool_]
    card_token: npt.NDArray[np.int64]
    spy_token: npt.NDArray[np.int64]
    ace: npt.NDArray[np.int64]
    passes: npt.NDArray[np.bool_]


@cache
def _plays(hand_size: int) -> _Plays:
    table = action_table(hand_size)
    n = table.num_actions
    plays = _Plays(
        slots=np.zeros((n, hand_size), dtype=np.bool_),
        card_token=np.zeros(n, dtype=np.int64),
        spy_token=np.full(n, -1, dtype=np.int64),
        ace=np.full(n, -1, dtype=np.int64),
        passes=np.zeros(n, dtype=np.bool_),
    )
    for action in range(n):
        for slot in range(hand_size):
            plays.slots[action, slot] = table.slots_of(action) >> slot & 1
    for kind in KINDS:
        actions = table.actions_of(kind)
        if kind in _CARD_KINDS:
            plays.card_token[actions] = _CARD_KINDS.index(kind) * cards.NUM_CARDS
        if kind in _SPY_KINDS:
            offset = _SPY_KINDS.index(kind) * _NUM_SPY_RANKS
            plays.spy_token[actions] = _FIRST_SPY_TOKEN + offset
    plays.ace[table.actions_of("assassinate")] = np.arange(cards.NUM_SUITS)
    plays.passes[table.actions_of("pass")] = True
    return plays


_ORDERS = list(permutations(range(cards.NUM_SUITS)))
"""All orders of the suits: the suit that comes first, second, third, last."""

_KEY_FIELDS = ("hand", "draw_deck", "draw_discard", "spy_deck")
_SPY_KEY = 2.0**52
"""Above any key, of 13 + 13 + 13 + 9 bits, and exact in a float64 as all of them are."""


def _suits_of(field: slice) -> npt.NDArray[np.int64]:
    return np.arange(field.stop - field.start) % cards.NUM_SUITS


@cache
def _relabelling() -> npt.NDArray[np.int64]:
    """int64 (24, entries): where to read each entry from, for each order of the suits."""
    sources = np.tile(np.arange(_NUM_ZONE_ENTRIES), (len(_ORDERS), 1))
    for name, field in LAYOUT.items():
        if name not in ("phase", "slots"):
            suit = _suits_of(field)
            for number, order in enumerate(_ORDERS):
                moved = np.array(order)[suit]
                sources[number, field] = np.arange(field.start, field.stop) - suit + moved
    return sources


@cache
def _order_numbers() -> npt.NDArray[np.int64]:
    """int64 (256,): the number of an order from its suits, two bits each, the first lowest."""
    numbers = np.zeros(1 << (2 * cards.NUM_SUITS), dtype=np.int64)
    for number, order in enumerate(_ORDERS):
        numbers[sum(suit << (2 * place) for place, suit in enumerate(order))] = number
    return numbers


@cache
def _suit_keys() -> npt.NDArray[np.float64]:
    """float64 (entries, 4): what each entry adds to the key of each suit.

    The key of a suit tells where its cards lie, so suits with equal keys are alike; the spy's suit
    has the largest one.
    """
    keys = np.zeros((_NUM_ZONE_ENTRIES, cards.NUM_SUITS))
    bit = 1.0
    for name in reversed(_KEY_FIELDS):
        field = LAYOUT[name]
        for entry in range(field.start, field.stop, cards.NUM_SUITS):
            keys[np.arange(entry, entry + cards.NUM_SUITS), np.arange(cards.NUM_SUITS)] = bit
            bit *= 2
    field = LAYOUT["spy"]
    keys[np.arange(field.start, field.stop), _suits_of(field)] = _SPY_KEY
    return keys


@cache
def _tables(hand_size: int) -> Tables:
    """What the kernels know of the action table and the observation."""
    plays = _plays(hand_size)
    sources = _relabelling()
    spy = LAYOUT["spy"]
    last_token = np.where(plays.ace >= 0, _FIRST_ACE_TOKEN, -1)
    last_token[plays.passes] = _PASS_TOKEN
    return Tables(
        targets=np.argsort(sources, axis=1),  # the inverse of a permutation
        orders=np.array(_ORDERS, dtype=np.int64),
        order_numbers=_order_numbers(),
        suit_keys=_suit_keys(),
        spy=spy.start,
        num_spies=spy.stop - spy.start,
        slot_width=SLOT_WIDTH,
        slots=plays.slots,
        card_token=plays.card_token,
        spy_token=plays.spy_token,
        last_token=last_token,
        ace=plays.ace,
    )


class _Position(NamedTuple):
    """A batch of positions with relabelled suits.

    Attributes:
        zones: float32 (N, entries).
        spy_rank: int64 (N,), 0 for the 5s; 0 too where there is no spy.
        places: int64 (N, 4), where each suit went.
        slot_cards: int64 (N, h), card index in each slot; any where the slot is empty.
    """

    zones: th.Tensor
    spy_rank: th.Tensor
    places: th.Tensor
    slot_cards: th.Tensor


def _distribution(
    scores: th.Tensor, places: tuple[th.Tensor, th.Tensor], shape: tuple[int, ...]
) -> MaskableCategoricalDistribution:
    """Scores (M,) at places (positions and actions, (M,) each) as a distribution of a shape."""
    logits = th.full(shape, _IMPOSSIBLE, device=scores.device).index_put(places, scores)
    distribution = MaskableCategoricalDistribution(shape[1])
    # The logits are masked already; validation would cost as much as the network.
    distribution.distribution = MaskableCategorical(logits=logits, validate_args=False)
    return distribution


class _Candidates(NamedTuple):
    """The M legal plays of N positions, position by position.

    Attributes:
        masks: bool (N, n).
        rows: int64 (M,), the position of each play.
        plays: int64 (M,), its action.
        scores: float32 (M,), its logit.
        critic: float32 (N, outputs), what the critic says.
    """

    masks: th.Tensor
    rows: th.Tensor
    plays: th.Tensor
    scores: th.Tensor
    critic: th.Tensor

    def distribution(self) -> MaskableCategoricalDistribution:
        """The action distribution in sb3-contrib's form, over all n actions."""
        return _distribution(self.scores, (self.rows, self.plays), tuple(self.masks.shape))

    def sum_by_position(self, values: th.Tensor) -> th.Tensor:
        """(M,) -> (N,)."""
        return values.new_zeros(len(self.masks)).index_add(0, self.rows, values)

    def log_probs(self) -> th.Tensor:
        """Log-probability of each play, float32 (M,): a softmax over few legal plays of many."""
        top = self.scores.new_full((len(self.masks),), -np.inf)
        top = top.scatter_reduce(0, self.rows, self.scores.detach(), "amax")
        shifted = self.scores - top[self.rows]
        return shifted - self.sum_by_position(shifted.exp()).log()[self.rows]

    def index_of(self, actions: th.Tensor) -> th.Tensor:
        """Where among the M plays the given legal actions (N,) stand, int64 (N,)."""
        count = self.masks.flatten().cumsum(0)
        start = th.arange(len(actions), device=actions.device) * self.masks.shape[1]
        return count[start + actions] - 1


def _as_masks(action_masks: Any, obs: th.Tensor) -> th.Tensor:
    """Masks as bool (N, n) on the device of the observations."""
    if action_masks is None:
        raise ValueError("this policy scores legal actions only: it needs action_masks")
    return th.as_tensor(action_masks, dtype=th.bool, device=obs.device).reshape(len(obs), -1)


def _check_each_has_a_play(has_a_play: bool) -> None:
    if not has_a_play:
        raise ValueError("an action mask allows no action: is the episode over?")


class CandidatePolicy(MaskableActorCriticPolicy):
    """Actor and critic for ``recall`` observations, see the module's text.

    Args:
        hidden: width of the first layer, shared by the position and its plays.
        head: width of the second layer, one each for the scorer and the critic.
        critic_hidden: width of a first layer that the critic has to itself; None if it shares that
            of the scorer.
        atoms: what the critic spreads its prediction over, ascending: it then predicts
            probabilities of these values, learnt by cross-entropy (Farebrother et al., "Stop
            regressing", 2024). None: it predicts their mean, learnt by squared errors.
        others: as in sb3-contrib's ``MaskableActorCriticPolicy``; its own architecture is not used.
    """

    play_slots: th.Tensor
    play_card_token: th.Tensor
    play_spy_token: th.Tensor
    play_ace: th.Tensor
    play_passes: th.Tensor
    relabelling: th.Tensor
    order_numbers: th.Tensor
    suit_keys: th.Tensor

    atom_values: th.Tensor

    def __init__(
        self,
        *args: Any,
        hidden: int = 128,
        head: int = 64,
        critic_hidden: int | None = None,
        atoms: Sequence[float] | None = None,
        **kwargs: Any,
    ) -> None:
        self.hidden = hidden
        self.head = head
        self.critic_hidden = critic_hidden
        self.atoms = None if atoms is None else tuple(atoms)
        super().__init__(*args, **kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "hidden": self.hidden,
            "head": self.head,
            "critic_hidden": self.critic_hidden,
            "atoms": self.atoms,
        }

    def _build(self, lr_schedule: Schedule) -> None:
        width = spaces.flatdim(self.observation_space) - _NUM_ZONE_ENTRIES
        self.hand_size = width // SLOT_WIDTH
        for name, table in _plays(self.hand_size)._asdict().items():
            self.register_buffer(f"play_{name}", th.as_tensor(table), persistent=False)
        for name, table in (
            ("relabelling", _relabelling()),
            ("order_numbers", _order_numbers()),
            ("suit_keys", _suit_keys()),
        ):
            self.register_buffer(name, th.as_tensor(table), persistent=False)
        self.encoder = nn.Linear(_NUM_ZONE_ENTRIES, self.hidden)
        self.moves = nn.EmbeddingBag(_NUM_TOKENS, self.hidden, mode="sum", padding_idx=_NO_TOKEN)
        self.scorer = self._head(self.hidden, 1, final_gain=0.01)
        width = self.critic_hidden or self.hidden
        if self.atoms is None:
            self.critic = self._head(width, 1, final_gain=1.0)
        else:
            self.critic = self._head(width, len(self.atoms), final_gain=0.01)
            values = th.tensor(self.atoms, dtype=th.float32)
            self.register_buffer("atom_values", values, persistent=False)
        if self.critic_hidden is not None:
            self.critic_encoder = nn.Linear(_NUM_ZONE_ENTRIES, self.critic_hidden)
            self.init_weights(self.critic_encoder, np.sqrt(2))
        self.init_weights(self.encoder, np.sqrt(2))
        nn.init.normal_(self.moves.weight, std=_EMBEDDING_SCALE)
        arguments: dict[str, Any] = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **arguments)

    def _head(self, width: int, outputs: int, final_gain: float) -> nn.Sequential:
        first, last = nn.Linear(width, self.head), nn.Linear(self.head, outputs)
        self.init_weights(first, np.sqrt(2))
        self.init_weights(last, final_gain)
        return nn.Sequential(nn.ReLU(), first, nn.ReLU(), last)

    def _position(self, obs: th.Tensor) -> _Position:
        spy = obs[:, LAYOUT["spy"]].to(th.float32).argmax(dim=1)
        zones = obs[:, :_NUM_ZONE_ENTRIES]
        keys = zones.to(th.float64) @ self.suit_keys
        order = keys.argsort(dim=1, descending=True, stable=True)
        digits = 1 << (2 * th.arange(cards.NUM_SUITS, device=obs.device))
        number = self.order_numbers[(order * digits).sum(dim=1)]
        places = order.argsort(dim=1)
        slots = obs[:, LAYOUT["slots"].start :].to(th.float32)
        slots = slots.reshape(len(obs), self.hand_size, SLOT_WIDTH)
        slot_rank = slots[:, :, : cards.NUM_RANKS].argmax(dim=2)
        slot_suit = places.gather(1, slots[:, :, cards.NUM_RANKS :].argmax(dim=2))
        return _Position(
            zones=zones.gather(1, self.relabelling[number]).to(th.float32),
            spy_rank=spy // cards.NUM_SUITS,
            places=places,
            slot_cards=slot_rank * cards.NUM_SUITS + slot_suit,
        )

    def _tokens(self, position: _Position, rows: th.Tensor, plays: th.Tensor) -> th.Tensor:
        """int64 (M, h + 2): the cards moved, the spy and the Ace or pass of each candidate."""
        hand = position.slot_cards[rows] + self.play_card_token[plays][:, None]
        hand = th.where(self.play_slots[plays], hand, _NO_TOKEN)
        spy = self.play_spy_token[plays]
        spy = th.where(spy >= 0, spy + position.spy_rank[rows], _NO_TOKEN)
        ace = self.play_ace[plays]
        ace_suit = position.places[rows, ace.clamp(min=0)]
        last = th.where(ace >= 0, _FIRST_ACE_TOKEN + ace_suit, _NO_TOKEN)
        last = th.where(self.play_passes[plays], _PASS_TOKEN, last)
        return th.cat((hand, spy[:, None], last[:, None]), dim=1)

    def _candidates(self, obs: th.Tensor, action_masks: Any) -> _Candidates:
        """Score every legal play of every position, with PyTorch's operators on any device."""
        masks = _as_masks(action_masks, obs)
        _check_each_has_a_play(bool(masks.any(dim=1).all()))
        position = self._position(obs)
        encoded = self.encoder(position.zones)
        rows, plays = masks.nonzero(as_tuple=True)
        afterstates = encoded[rows] + self.moves(self._tokens(position, rows, plays))
        scores = self.scorer(afterstates).squeeze(1)
        return _Candidates(masks, rows, plays, scores, self._criticise(position.zones))

    def _criticise(self, zones: th.Tensor) -> th.Tensor:
        """What the critic says of zones (N, entries): float32 (N, outputs)."""
        own = self.critic_hidden is not None
        return self.critic((self.critic_encoder if own else self.encoder)(zones))

    def _read(self, obs: th.Tensor, action_masks: Any) -> Positions:
        """Positions and their legal plays as index lists, for the processor."""
        masks = _as_masks(action_masks, obs).numpy()
        positions = read_positions(obs.numpy(), masks, _tables(self.hand_size))
        _check_each_has_a_play(bool(np.diff(positions.play_starts).all()))
        return positions

    def _judge(self, positions: Positions) -> tuple[th.Tensor, th.Tensor]:
        """Of index lists, scores (M,) and the critic (N, outputs): as ``_candidates``, cheaper."""
        encoded = encode(self.encoder, positions)
        first, last = cast(nn.Linear, self.scorer[1]), cast(nn.Linear, self.scorer[3])
        shared = self.critic_hidden is None
        criticised = encoded if shared else encode(self.critic_encoder, positions)
        return score(encoded, self.moves, first, last, positions), self.critic(criticised)

    def values_of(self, critic: th.Tensor) -> th.Tensor:
        """Values (N, 1) of what the critic says."""
        if self.atoms is None:
            return critic
        return (critic.softmax(dim=1) @ self.atom_values)[:, None]

    def value_losses(self, critic: th.Tensor, returns: th.Tensor) -> th.Tensor:
        """How wrong the critic is, (N,), given the returns (N,).

        A return between two atoms counts as a mixture of both with that mean (the projection of
        Bellemare, Dabney and Munos, "A distributional perspective on reinforcement learning",
        2017).
        """
        if self.atoms is None:
            return (critic[:, 0] - returns) ** 2
        atoms = self.atom_values
        returns = returns.clamp(self.atoms[0], self.atoms[-1])
        above = th.searchsorted(atoms, returns).clamp(min=1)
        low, high = atoms[above - 1], atoms[above]
        share = ((returns - low) / (high - low))[:, None]
        logs = log_softmax(critic, dim=1)
        of_low, of_high = logs.gather(1, above[:, None] - 1), logs.gather(1, above[:, None])
        return -((1 - share) * of_low + share * of_high)[:, 0]

    def forward(
        self, obs: th.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """Actions (N,), values (N, 1) and log-probabilities (N,)."""
        if deterministic or obs.device.type != "cpu":
            candidates = self._candidates(obs, action_masks)
            distribution = candidates.distribution()
            actions = distribution.get_actions(deterministic=deterministic)
            values = self.values_of(candidates.critic)
            return actions, values, distribution.log_prob(actions)
        positions = self._read(obs, action_masks)
        scores, critic = self._judge(positions)
        actions = sample(scores, positions)
        return actions, self.values_of(critic), judge(scores, actions, positions)[0]

    def evaluate_actions(
        self, obs: th.Tensor, actions: th.Tensor, action_masks: Any = None
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        """Values (N, 1), log-probabilities (N,) and entropies (N,) for given actions (N,)."""
        critic, log_probs, entropies = self.evaluate(obs, actions, action_masks)
        return self.values_of(critic), log_probs, entropies

    def evaluate(
        self, obs: th.Tensor, actions: th.Tensor, action_masks: Any = None
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """The same with what the critic says, (N, outputs), in place of the values."""
        if obs.device.type != "cpu":
            candidates = self._candidates(obs, action_masks)
            log_probs = candidates.log_probs()
            entropies = -candidates.sum_by_position(log_probs.exp() * log_probs)
            return candidates.critic, log_probs[candidates.index_of(actions)], entropies
        positions = self._read(obs, action_masks)
        scores, critic = self._judge(positions)
        return critic, *judge(scores, actions, positions)

    def get_distribution(
        self, obs: PyTorchObs, action_masks: Any = None
    ) -> MaskableCategoricalDistribution:
        """The action distribution."""
        observations = cast(th.Tensor, obs)
        if observations.device.type != "cpu":
            return self._candidates(observations, action_masks).distribution()
        positions = self._read(observations, action_masks)
        scores, _ = self._judge(positions)
        rows = np.repeat(np.arange(len(observations)), np.diff(positions.play_starts))
        places = (th.from_numpy(rows), th.from_numpy(positions.plays))
        return _distribution(scores, places, (len(observations), len(self.play_ace)))

    def predict_values(self, obs: PyTorchObs) -> th.Tensor:
        """Values (N, 1)."""
        return self.values_of(self._criticise(self._position(cast(th.Tensor, obs)).zones))
