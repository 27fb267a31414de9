"""Vector instructions for small networks (kernels only): rows added up, and exponentials.

LLVM does not keep a row of sums in registers while it adds one row after the other, as it can't
know that they do not overlap; these two say so. Vectors of 16 floats are mapped to whatever the
processor has. Nothing is checked: indices must lie within the arrays, which must be contiguous.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from deck_of_spies_env.compiled import kernel

LANES = 16
"""Widths of rows must be multiples of this."""

_WIDE, _HALF = 8 * LANES, 4 * LANES

if TYPE_CHECKING:

    def _add_8(out: Any, matrix: Any, rows: Any, scales: Any, count: int, column: int) -> None: ...

    def _add_4(out: Any, matrix: Any, rows: Any, scales: Any, count: int, column: int) -> None: ...

    def _add_1(out: Any, matrix: Any, rows: Any, scales: Any, count: int, column: int) -> None: ...

    def exponentials(array: Any, shift: np.float32) -> None:
        """array[:16] := exp(array[:16] - shift), to six digits; results below 1e-37 become 0."""
        ...

else:
    _VECTOR = ir.VectorType(ir.FloatType(), LANES)
    _INTEGERS = ir.VectorType(ir.IntType(32), LANES)
    _WORD = ir.IntType(64)
    _CONTRACT = ("contract",)  # one fused instruction where there is one
    _TERMS = 7
    _LOG_2_COARSE = 0.693359375  # so few digits that its multiples by an exponent are exact

    def _splat(builder, value):
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, value, ir.IntType(32)(0))
        return builder.shuffle_vector(first, nothing, ir.Constant(_INTEGERS, [0] * LANES))

    def _all(value):
        return ir.Constant(_VECTOR, [np.float32(value).item()] * LANES)

    def _data(context, builder, signature, arguments, place):
        return context.make_array(signature.args[place])(context, builder, arguments[place])

    def _place(builder, vectors, number):
        return builder.gep(vectors, [_WORD(number)])

    def _add_rows(num_vectors):
        def generate(context, builder, signature, arguments):
            out, matrix, rows, scales = (
                _data(context, builder, signature, arguments, place) for place in range(4)
            )
            count, column = arguments[4:]
            width = cgutils.unpack_tuple(builder, matrix.shape, 2)[1]
            pointer = _VECTOR.as_pointer()
            target = builder.bitcast(builder.gep(out.data, [column]), pointer)
            sums = [cgutils.alloca_once(builder, _VECTOR) for _ in range(num_vectors)]
            for number, total in enumerate(sums):
                builder.store(builder.load(_place(builder, target, number), align=4), total)
            with cgutils.for_range(builder, count) as loop:
                row = builder.load(builder.gep(rows.data, [loop.index]))
                scale = _splat(builder, builder.load(builder.gep(scales.data, [loop.index])))
                offset = builder.add(builder.mul(row, width), column)
                source = builder.bitcast(builder.gep(matrix.data, [offset]), pointer)
                for number, total in enumerate(sums):
                    values = builder.load(_place(builder, source, number), align=4)
                    product = builder.fmul(scale, values, flags=_CONTRACT)
                    builder.store(
                        builder.fadd(builder.load(total), product, flags=_CONTRACT), total
                    )
            for number, total in enumerate(sums):
                builder.store(builder.load(total), _place(builder, target, number), align=4)
            return context.get_dummy_value()

        return generate

    def _adder(num_vectors):
        @intrinsic
        def add(typing_context, out, matrix, rows, scales, count, column):
            """Add scaled rows of a block of columns."""
            signature = types.void(out, matrix, rows, scales, types.int64, types.int64)
            return signature, _add_rows(num_vectors)

        return add

    _add_8, _add_4, _add_1 = _adder(8), _adder(4), _adder(1)

    @intrinsic
    def exponentials(typing_context, array, shift):
        """array[:16] := exp(array[:16] - shift)."""

        def generate(context, builder, signature, arguments):
            # exp(x) = 2^n exp(r) with n = round(x / log 2), |r| <= log(2) / 2, by Taylor's series.
            data = _data(context, builder, signature, arguments, 0).data
            pointer = builder.bitcast(data, _VECTOR.as_pointer())
            x = builder.fsub(builder.load(pointer, align=4), _splat(builder, arguments[1]))
            least = builder.fcmp_ordered(">", x, _all(-85.0))
            x = builder.select(least, x, _all(-85.0))
            halved = builder.fadd(builder.fmul(x, _all(1 / math.log(2))), _all(0.5))
            signature_of_floor = ir.FunctionType(_VECTOR, [_VECTOR])
            floor = builder.module.declare_intrinsic("llvm.floor.v16f32", (), signature_of_floor)
            number = builder.call(floor, [halved])
            rest = builder.fsub(x, builder.fmul(number, _all(_LOG_2_COARSE)))
            rest = builder.fsub(rest, builder.fmul(number, _all(math.log(2) - _LOG_2_COARSE)))
            series = _all(1 / math.factorial(_TERMS))
            for term in reversed(range(_TERMS)):
                series = builder.fadd(
                    builder.fmul(series, rest, flags=_CONTRACT),
                    _all(1 / math.factorial(term)),
                    flags=_CONTRACT,
                )
            exponent = builder.add(
                builder.fptosi(number, _INTEGERS), ir.Constant(_INTEGERS, [127] * LANES)
            )
            exponent = builder.shl(exponent, ir.Constant(_INTEGERS, [23] * LANES))
            power = builder.bitcast(exponent, _VECTOR)
            result = builder.select(least, builder.fmul(series, power), _all(0.0))
            builder.store(result, pointer, align=4)
            return context.get_dummy_value()

        return types.void(array, types.float32), generate


@kernel
def add_rows(out: Any, matrix: Any, rows: Any, scales: Any, count: int) -> None:
    """out (W,) += the sum of ``count`` rows of matrix (R, W), each times its scale.

    Args:
        out: float32 (W,), W a multiple of 16.
        matrix: float32 (R, W).
        rows, scales: int64 and float32, of at least ``count`` entries.
        count: of rows.
    """
    width, column = out.shape[0], 0
    while column + _WIDE <= width:
        _add_8(out, matrix, rows, scales, count, column)
        column += _WIDE
    if column + _HALF <= width:
        _add_4(out, matrix, rows, scales, count, column)
        column += _HALF
    while column < width:
        _add_1(out, matrix, rows, scales, count, column)
        column += LANES
