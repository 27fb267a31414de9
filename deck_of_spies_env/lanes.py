"""Four words side by side, one for each seat of a table (kernels only).

A step looks at the same piles of every seat in the same way. Numba does not turn that into vector
instructions by itself, so these few operations say it: ``&``, ``|``, ``~``, and ``<<`` and ``>>``
by a number below 64, on all four words at once, and those below. LLVM maps them to whatever the
processor has.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model

from deck_of_spies_env.compiled import kernel

NUM_LANES = 4
_LOW_HALF = np.uint64(0x000000000000FFFF)
_HIGH_HALF = np.uint64(0x00000000FFFF0000)
_OTHER_BYTES = np.uint64(0x00FF00FF00FF00FF)
_LOW_GROUPS = np.uint64(0x0F0F0F0F0F0F0F0F)

if TYPE_CHECKING:

    class Lanes:
        """Four uint64."""

        def __and__(self, other: Lanes) -> Lanes: ...
        def __or__(self, other: Lanes) -> Lanes: ...
        def __invert__(self) -> Lanes: ...
        def __lshift__(self, number: int) -> Lanes: ...
        def __rshift__(self, number: int) -> Lanes: ...

    def lanes(array: Any) -> Lanes:
        """The words of a contiguous uint64 array (4,); of arrays nothing is checked here."""
        ...

    def lanes_of_bits(array: Any) -> Lanes:
        """Words with one bit set, by its index in an int8 array (4,); 0 where that is negative."""
        ...

    def lanes_of_flags(bits: np.uint8) -> Lanes:
        """The lowest four bits, 0 or 1 each."""
        ...

    def in_all_lanes(word: np.uint64) -> Lanes:
        """A word four times."""
        ...

    def where_any(tested: Lanes, words: Lanes) -> Lanes:
        """The words where the tested ones have a bit set, and 0 elsewhere."""
        ...

    def count_lanes(words: Lanes) -> Lanes:
        """The number of set bits of each word."""
        ...

    def count_bytes(words: Lanes) -> Lanes:
        """The number of set bits of each byte, in its place."""
        ...

    def store_counts(array: Any, offset: int, words: tuple[Lanes, ...], place: int) -> None:
        """Store the number of set bits of each group of four, a byte each, of the words at a place.

        Args:
            array: contiguous int8, in which 16 bytes a word must lie.
            offset: of the first of them.
            words: one to four; the lowest group of the first is stored first.
            place: in all of the words, 0-3.
        """
        ...

    def store_words(array: Any, offset: int, words: tuple[Lanes, ...], place: int) -> None:
        """Store the words at a place as they are, eight bytes each; as store_counts."""
        ...

else:
    _BYTE, _INDEX, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
    _WORDS = ir.VectorType(_WORD, NUM_LANES)
    _BYTES = ir.VectorType(_BYTE, 8 * NUM_LANES)

    class _LanesType(types.Type):
        def __init__(self):
            super().__init__(name="Lanes")

    Lanes = _LanesType()

    @register_model(_LanesType)
    class _LanesModel(models.PrimitiveModel):
        def __init__(self, manager, lanes_type):
            super().__init__(manager, lanes_type, _WORDS)

    _ZEROS = ir.Constant(_WORDS, [0] * NUM_LANES)

    def _of_one(build):
        """An intrinsic from Lanes to Lanes."""

        def operation(typing_context, words):
            def generate(context, builder, signature, arguments):
                return build(builder, *arguments)

            return Lanes(Lanes), generate

        return intrinsic(operation)

    def _of_two(build):
        """An intrinsic from two Lanes to Lanes."""

        def operation(typing_context, words, others):
            def generate(context, builder, signature, arguments):
                return build(builder, *arguments)

            return Lanes(Lanes, Lanes), generate

        return intrinsic(operation)

    def _splat(builder, word):
        nothing = ir.Constant(_WORDS, ir.Undefined)
        first = builder.insert_element(nothing, word, _INDEX(0))
        places = ir.Constant(ir.VectorType(_INDEX, NUM_LANES), [0] * NUM_LANES)
        return builder.shuffle_vector(first, nothing, places)

    def _population(builder, vector, name):
        signature = ir.FunctionType(vector.type, [vector.type])
        count = builder.module.declare_intrinsic(f"llvm.ctpop.{name}", (), signature)
        return builder.call(count, [vector])

    def _chosen(builder, tested, words):
        return builder.select(builder.icmp_unsigned("!=", tested, _ZEROS), words, _ZEROS)

    def _counted(builder, words):
        return _population(builder, words, f"v{NUM_LANES}i64")

    def _counted_by_bytes(builder, words):
        counts = _population(builder, builder.bitcast(words, _BYTES), f"v{8 * NUM_LANES}i8")
        return builder.bitcast(counts, _WORDS)

    _and, _or = _of_two(ir.IRBuilder.and_), _of_two(ir.IRBuilder.or_)
    _not = _of_one(ir.IRBuilder.not_)
    where_any = _of_two(_chosen)
    count_lanes, count_bytes = _of_one(_counted), _of_one(_counted_by_bytes)

    def _by_number(build):
        """An intrinsic from Lanes and a number to Lanes."""

        def operation(typing_context, words, number):
            def generate(context, builder, signature, arguments):
                words, number = arguments
                return build(builder, words, _splat(builder, number))

            return Lanes(Lanes, types.int64), generate

        return intrinsic(operation)

    _shift_left, _shift_right = _by_number(ir.IRBuilder.shl), _by_number(ir.IRBuilder.lshr)

    def _overload(operation, function):
        """Let an operator of Python stand for a function of Lanes and something else."""

        def chosen(words, other):
            def call(words, other):
                return function(words, other)

            return call if words is Lanes else None

        overload(operation)(chosen)

    _overload(operator.and_, _and)
    _overload(operator.or_, _or)
    _overload(operator.lshift, _shift_left)
    _overload(operator.rshift, _shift_right)

    @overload(operator.invert)
    def _(words):
        def call(words):
            return _not(words)

        return call if words is Lanes else None

    @intrinsic
    def lanes(typing_context, array):
        """The words of a contiguous uint64 array (4,)."""

        def generate(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            source = builder.bitcast(data, _WORDS.as_pointer())
            return builder.load(source, align=8)

        return Lanes(array), generate

    @intrinsic
    def lanes_of_bits(typing_context, array):
        """Words with one bit set, by its index; 0 where that is negative."""

        def generate(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            narrow = ir.VectorType(_BYTE, NUM_LANES)
            source = builder.bitcast(data, narrow.as_pointer())
            indices = builder.sext(builder.load(source, align=1), _WORDS)
            low = builder.and_(indices, ir.Constant(_WORDS, [63] * NUM_LANES))
            bits = builder.shl(ir.Constant(_WORDS, [1] * NUM_LANES), low)
            return builder.select(builder.icmp_signed("<", indices, _ZEROS), _ZEROS, bits)

        return Lanes(array), generate

    @intrinsic
    def lanes_of_flags(typing_context, bits):
        """The lowest four bits, 0 or 1 each."""

        def generate(context, builder, signature, arguments):
            word = _splat(builder, builder.zext(arguments[0], _WORD))
            each = builder.lshr(word, ir.Constant(_WORDS, list(range(NUM_LANES))))
            return builder.and_(each, ir.Constant(_WORDS, [1] * NUM_LANES))

        return Lanes(types.uint8), generate

    @intrinsic
    def in_all_lanes(typing_context, word):
        """A word four times."""

        def generate(context, builder, signature, arguments):
            return _splat(builder, arguments[0])

        return Lanes(types.uint64), generate

    def _at_place(builder, words, place):
        """A vector of the words at a place."""
        vector = ir.Constant(ir.VectorType(_WORD, len(words)), ir.Undefined)
        for number, one in enumerate(words):
            word = builder.extract_element(one, place)
            vector = builder.insert_element(vector, word, _INDEX(number))
        return vector

    def _store(context, builder, array_type, array, offset, vector):
        data = context.make_array(array_type)(context, builder, array).data
        target = builder.bitcast(builder.gep(data, [offset]), vector.type.as_pointer())
        builder.store(vector, target, align=1)
        return context.get_dummy_value()

    @intrinsic
    def store_counts(typing_context, array, offset, words, place):
        """Store the number of set bits of each group of four, a byte each."""
        num_bytes = 8 * len(words)
        packed = ir.VectorType(_BYTE, num_bytes)

        def generate(context, builder, signature, arguments):
            array, offset, words, place = arguments
            vector = _at_place(builder, cgutils.unpack_tuple(builder, words), place)
            pairs = builder.bitcast(vector, packed)
            low = builder.and_(pairs, ir.Constant(packed, [15] * num_bytes))
            high = builder.lshr(pairs, ir.Constant(packed, [4] * num_bytes))
            order = [at // 2 + num_bytes * (at % 2) for at in range(2 * num_bytes)]
            places = ir.Constant(ir.VectorType(_INDEX, 2 * num_bytes), order)
            groups = builder.shuffle_vector(low, high, places)
            counts = _population(builder, groups, f"v{2 * num_bytes}i8")
            return _store(context, builder, signature.args[0], array, offset, counts)

        return types.void(array, types.int64, words, types.int64), generate

    @intrinsic
    def store_words(typing_context, array, offset, words, place):
        """Store the words at a place as they are."""

        def generate(context, builder, signature, arguments):
            array, offset, words, place = arguments
            vector = _at_place(builder, cgutils.unpack_tuple(builder, words), place)
            return _store(context, builder, signature.args[0], array, offset, vector)

        return types.void(array, types.int64, words, types.int64), generate


@kernel
def bytes_of_groups(words: Lanes) -> Lanes:
    """How many bits are set in each of the lowest eight groups of four, a byte each."""
    words = (words & in_all_lanes(_LOW_HALF)) | (words & in_all_lanes(_HIGH_HALF)) << 16
    words = (words | words << 8) & in_all_lanes(_OTHER_BYTES)
    return count_bytes((words | words << 4) & in_all_lanes(_LOW_GROUPS))
