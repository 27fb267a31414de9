"""Totals of all subsets of five small numbers at once, by vector instructions (kernels only).

The numbers are bytes of a word, the first in the lowest; a subset of them is a mask of five bits,
and an answer for all 32 subsets is a word with bit k for subset k. Each subset has its own byte in
a vector of 32: a number is added in those bytes whose subset holds it, and one comparison judges
all of them. LLVM maps the vectors to whatever the processor has.

Numbers beyond the five take part as a constant: ``base``, the total of those that are in all the
subsets in question. Totals must stay below 256.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    import numpy as np

NUM_SLOTS = 5
NUM_SUBSETS = 1 << NUM_SLOTS

if TYPE_CHECKING:

    def totals_reach(values: np.uint64, base: np.uint64, target: np.uint64) -> np.uint64:
        """Which subsets total at least the target."""
        ...

    def rests_reach(
        values: np.uint64, base: np.uint64, lowest: np.uint64, exempt: np.uint64, target: np.uint64
    ) -> np.uint64:
        """Which subsets total at least the target even without one of their numbers.

        That is the first of the five that they hold, or the one of value ``lowest`` from among the
        numbers beyond if they hold none of the five. Numbers that have a full byte in ``exempt``
        are never the one left out. With numbers in ascending order, the cheapest is left out.
        """
        ...

else:
    _BYTE, _WORD, _BITS = ir.IntType(8), ir.IntType(64), ir.IntType(NUM_SUBSETS)
    _BYTES = ir.VectorType(_BYTE, NUM_SUBSETS)
    _INDICES = ir.VectorType(ir.IntType(32), NUM_SUBSETS)

    def _in_all_bytes(builder, word, slot=0):
        """A vector with one byte of a word in all of its bytes."""
        byte = builder.trunc(builder.lshr(word, _WORD(8 * slot)), _BYTE)
        nothing = ir.Constant(_BYTES, ir.Undefined)
        first = builder.insert_element(nothing, byte, ir.IntType(32)(0))
        return builder.shuffle_vector(first, nothing, ir.Constant(_INDICES, [0] * NUM_SUBSETS))

    def _where_held(slot):
        held = [0xFF if subset >> slot & 1 else 0 for subset in range(NUM_SUBSETS)]
        return ir.Constant(_BYTES, held)

    def _totals(builder, values, base):
        totals = _in_all_bytes(builder, base)
        for slot in range(NUM_SLOTS):
            part = builder.and_(_in_all_bytes(builder, values, slot), _where_held(slot))
            totals = builder.add(totals, part)
        return totals

    def _first_held(builder, values, lowest, exempt):
        first = _in_all_bytes(builder, lowest)
        for slot in reversed(range(NUM_SLOTS)):  # lower slots overrule higher ones
            liable = builder.not_(_in_all_bytes(builder, exempt, slot))
            held = builder.and_(_where_held(slot), liable)
            value = builder.and_(_in_all_bytes(builder, values, slot), held)
            first = builder.or_(value, builder.and_(first, builder.not_(held)))
        return first

    def _reach(builder, totals, target):
        reached = builder.icmp_unsigned(">=", totals, _in_all_bytes(builder, target))
        return builder.zext(builder.bitcast(reached, _BITS), _WORD)

    @intrinsic
    def totals_reach(typing_context, values, base, target):
        """Which subsets total at least the target."""

        def generate(context, builder, signature, arguments):
            values, base, target = arguments
            return _reach(builder, _totals(builder, values, base), target)

        return types.uint64(types.uint64, types.uint64, types.uint64), generate

    @intrinsic
    def rests_reach(typing_context, values, base, lowest, exempt, target):
        """Which subsets total at least the target even without one of their numbers."""

        def generate(context, builder, signature, arguments):
            values, base, lowest, exempt, target = arguments
            left_out = _first_held(builder, values, lowest, exempt)
            rests = builder.sub(_totals(builder, values, base), left_out)
            return _reach(builder, rests, target)

        words = [types.uint64] * 5
        return types.uint64(*words), generate
