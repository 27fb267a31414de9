"""What the candidate policy computes beside matrix products, compiled for the processor.

Of a position's 282 zone entries some 53 are 1, of its 78 actions some 5 are legal, and each of
these moves two or three cards. The kernels visit those alone, where PyTorch's operators would
multiply by the zeros, pad every play to the longest, and write each step between out to memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

Function = TypeVar("Function", bound=Callable[..., Any])


def _compiled(function: Function) -> Function:
    """Compile once per machine where a cache can be written, else once per process."""
    return _with_cache(numba.njit(error_model="numpy", nogil=True)(function))


def _compiled_dot_product(function: Function) -> Function:
    """The same, where sums may be reordered so as to use vector instructions.

    Not for loops that write to arrays too: which order they take depends on how the arrays lie in
    memory, and a run could not be repeated to the bit.
    """
    return _with_cache(numba.njit(error_model="numpy", nogil=True, fastmath={"reassoc"})(function))


def _with_cache(compiled: Any) -> Any:
    with suppress(RuntimeError):  # no writable place at all
        compiled.enable_caching()
    return compiled


class Tables(NamedTuple):
    """Constants of the action table and the observation.

    Attributes:
        targets: int64 (24, entries), where each zone entry goes, for each order of the suits.
        orders: int64 (24, 4), the suits in each order.
        order_numbers: int64 (256,), the number of an order from its suits, two bits each.
        suit_keys: float64 (entries, 4), what each entry adds to the key by which suits are sorted.
        spy: where the spy's entries begin.
        num_spies: how many there are.
        slot_width: observation entries of a hand slot: ranks, then suits.
        slots: bool (n, h), the hand slots that an action uses.
        card_token, spy_token, last_token: int64 (n,), added to a used card's index, to the spy's
            rank, and to the relabelled suit of the Ace given up (0 for a pass); -1 for none.
        ace: int64 (n,), suit of the Ace given up; -1 for none.
    """

    targets: npt.NDArray[np.int64]
    orders: npt.NDArray[np.int64]
    order_numbers: npt.NDArray[np.int64]
    suit_keys: npt.NDArray[np.float64]
    spy: int
    num_spies: int
    slot_width: int
    slots: npt.NDArray[np.bool_]
    card_token: npt.NDArray[np.int64]
    spy_token: npt.NDArray[np.int64]
    last_token: npt.NDArray[np.int64]
    ace: npt.NDArray[np.int64]


class Positions(NamedTuple):
    """N positions and their M legal plays as lists of indices, one list after the other.

    Attributes:
        entry_starts: int32 (N + 1,), where the entries of each position start.
        entries: int32, its zone entries that are 1, with relabelled suits.
        play_starts: int64 (N + 1,), where the plays of each position start.
        plays: int64 (M,), the action of each play.
        token_starts: int64 (M + 1,), where the tokens of each play start.
        tokens: uint16, the embeddings that it adds.
    """

    entry_starts: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int32]
    play_starts: npt.NDArray[np.int64]
    plays: npt.NDArray[np.int64]
    token_starts: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.uint16]


@_compiled
def _first(observation: Any, start: int, count: int) -> int:
    """Which of ``count`` entries is the first that is not 0; 0 if none is."""
    for i in range(count):
        if observation[start + i]:
            return i
    return 0


@_compiled
def _order_of_suits(sources: Any, tables: Tables) -> int:
    """The number of the order in which the keys of the suits descend; equal ones stay in place."""
    num_suits = tables.orders.shape[1]
    keys = np.zeros(num_suits)
    for source in sources:
        for suit in range(num_suits):
            keys[suit] += tables.suit_keys[source, suit]
    digits = 0
    for suit in range(num_suits):
        place = 0
        for other in range(num_suits):
            place += keys[other] > keys[suit] or (keys[other] == keys[suit] and other < suit)
        digits |= suit << (2 * place)
    return tables.order_numbers[digits]


@_compiled
def read_positions(observations: Any, masks: Any, tables: Tables) -> Positions:
    """Positions of observations int8 (N, d) with masks bool (N, n)."""
    num_positions, num_actions = masks.shape
    num_entries = tables.targets.shape[1]
    num_suits = tables.orders.shape[1]
    hand_size = tables.slots.shape[1]
    num_ranks = tables.slot_width - num_suits
    num_plays = np.count_nonzero(masks)
    entry_starts = np.empty(num_positions + 1, np.int32)
    entries = np.empty(num_positions * num_entries, np.int32)  # untouched memory is free
    play_starts = np.empty(num_positions + 1, np.int64)
    plays = np.empty(num_plays, np.int64)
    token_starts = np.empty(num_plays + 1, np.int64)
    tokens = np.empty(num_plays * (hand_size + 2), np.uint16)
    slot_cards = np.empty(hand_size, np.int64)
    places = np.empty(num_suits, np.int64)
    entry = play = token = 0
    for position in range(num_positions):
        observation = observations[position]
        spy = _first(observation, tables.spy, tables.num_spies)
        spy_rank = spy // num_suits
        entry_starts[position] = first = entry
        for source in range(num_entries):
            entries[entry] = source
            entry += observation[source] != 0
        order = _order_of_suits(entries[first:entry], tables)
        targets = tables.targets[order]
        for k in range(first, entry):
            entries[k] = targets[entries[k]]
        for place in range(num_suits):
            places[tables.orders[order, place]] = place
        for slot in range(hand_size):
            start = num_entries + slot * tables.slot_width
            rank = _first(observation, start, num_ranks)
            suit = _first(observation, start + num_ranks, num_suits)
            slot_cards[slot] = rank * num_suits + places[suit]
        play_starts[position] = play
        for action in range(num_actions):
            if not masks[position, action]:
                continue
            plays[play] = action
            token_starts[play] = token
            play += 1
            for slot in range(hand_size):
                if tables.slots[action, slot]:
                    tokens[token] = tables.card_token[action] + slot_cards[slot]
                    token += 1
            if tables.spy_token[action] >= 0:
                tokens[token] = tables.spy_token[action] + spy_rank
                token += 1
            if tables.last_token[action] >= 0:
                ace = tables.ace[action]
                relabelled = places[ace] if ace >= 0 else 0
                tokens[token] = tables.last_token[action] + relabelled
                token += 1
    entry_starts[num_positions] = entry
    play_starts[num_positions] = play
    token_starts[num_plays] = token
    return Positions(entry_starts, entries[:entry], play_starts, plays, token_starts, tokens)


@_compiled
def encode_backward(gradient: Any, positions: Positions, weight: Any) -> None:
    """Add to the gradient of ``weight``, given that of ``encoded``."""
    hidden = weight.shape[1]
    for position in range(len(gradient)):
        row = gradient[position]
        start, stop = positions.entry_starts[position], positions.entry_starts[position + 1]
        for k in range(start, stop):
            target = weight[positions.entries[k]]
            for j in range(hidden):
                target[j] += row[j]


@_compiled
def move(encoded: Any, moves: Any, positions: Positions, afterstates: Any) -> None:
    """afterstates (M, hidden) := relu(the position's encoding + the embeddings of the tokens)."""
    hidden = moves.shape[1]
    for position in range(len(encoded)):
        for play in range(positions.play_starts[position], positions.play_starts[position + 1]):
            row = afterstates[play]
            row[:] = encoded[position]
            for k in range(positions.token_starts[play], positions.token_starts[play + 1]):
                added = moves[positions.tokens[k]]
                for j in range(hidden):
                    row[j] += added[j]
            for j in range(hidden):
                row[j] = max(row[j], np.float32(0))


@_compiled
def move_backward(
    gradient: Any, afterstates: Any, positions: Positions, encoded: Any, moves: Any
) -> None:
    """Add to the gradients of ``encoded`` and ``moves``, given that of ``afterstates``."""
    hidden = moves.shape[1]
    passed = np.empty(hidden, np.float32)
    for position in range(len(encoded)):
        row = encoded[position]
        for play in range(positions.play_starts[position], positions.play_starts[position + 1]):
            for j in range(hidden):
                active = afterstates[play, j] > 0
                passed[j] = gradient[play, j] if active else np.float32(0)
                row[j] += passed[j]
            for k in range(positions.token_starts[play], positions.token_starts[play + 1]):
                target = moves[positions.tokens[k]]
                for j in range(hidden):
                    target[j] += passed[j]


@_compiled_dot_product
def project(layer: Any, weight: Any, bias: Any, scores: Any) -> None:
    """scores (M,) := bias + relu(layer (M, head)) @ weight (head,)."""
    for play in range(len(scores)):
        total = bias[0]
        for j in range(len(weight)):
            total += max(layer[play, j], np.float32(0)) * weight[j]
        scores[play] = total


@_compiled
def project_backward(
    gradient: Any, layer: Any, weight_value: Any, layer_gradient: Any, weight: Any
) -> None:
    """Write the gradient of ``layer`` and add to that of ``weight``, given that of ``scores``."""
    for play in range(len(gradient)):
        for j in range(len(weight)):
            active = layer[play, j] > 0
            layer_gradient[play, j] = gradient[play] * weight_value[j] if active else np.float32(0)
            weight[j] += gradient[play] * max(layer[play, j], np.float32(0))


@_compiled
def softmax(scores: Any, positions: Positions, log_probs: Any, probabilities: Any) -> None:
    """The softmax over the plays of each position, (M,), and its logarithm."""
    for position in range(len(positions.play_starts) - 1):
        start, stop = positions.play_starts[position], positions.play_starts[position + 1]
        top = scores[start]
        for play in range(start + 1, stop):
            top = max(top, scores[play])
        total = np.float32(0)
        for play in range(start, stop):
            total += np.exp(scores[play] - top)
        for play in range(start, stop):
            log_probs[play] = scores[play] - top - np.log(total)
            probabilities[play] = np.exp(log_probs[play])


@_compiled
def judge(
    log_probs: Any, probabilities: Any, positions: Positions, actions: Any, entropies: Any
) -> npt.NDArray[np.int64]:
    """The entropy of each position's plays, (N,).

    Returns:
        The play of each of the actions (N,), int64, or -1 where that is not legal.
    """
    chosen = np.full(len(actions), -1, np.int64)
    for position in range(len(actions)):
        entropy = np.float32(0)
        for play in range(positions.play_starts[position], positions.play_starts[position + 1]):
            entropy -= probabilities[play] * log_probs[play]
            if positions.plays[play] == actions[position]:
                chosen[position] = play
        entropies[position] = entropy
    return chosen


@_compiled
def judge_backward(
    of_chosen: Any,
    of_entropies: Any,
    log_probs: Any,
    probabilities: Any,
    entropies: Any,
    positions: Positions,
    chosen: Any,
    scores: Any,
) -> None:
    """Write the gradient of ``scores``, given those of the chosen log-probs and the entropies."""
    for position in range(len(chosen)):
        for play in range(positions.play_starts[position], positions.play_starts[position + 1]):
            surprise = of_entropies[position] * (log_probs[play] + entropies[position])
            scores[play] = -probabilities[play] * (of_chosen[position] + surprise)
        scores[chosen[position]] += of_chosen[position]


@_compiled
def sample(probabilities: Any, positions: Positions, uniforms: Any) -> npt.NDArray[np.int64]:
    """One action for each position, int64 (N,): the inverse of the distribution function."""
    chosen = np.empty(len(uniforms), np.int64)
    for position in range(len(uniforms)):
        play, stop = positions.play_starts[position], positions.play_starts[position + 1]
        left = uniforms[position] - probabilities[play]
        while left >= 0 and play + 1 < stop:  # probabilities may add up to a little less than 1
            play += 1
            left -= probabilities[play]
        chosen[position] = positions.plays[play]
    return chosen
