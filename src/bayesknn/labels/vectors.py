"""Explicit vectors for kernels: a value that holds one integer for each of many lanes.

numba hands loops to LLVM and hopes for vector instructions; a kernel that keeps its vectors in
registers over a loop of unknown length has to say so. A :class:`Vector` lives inside compiled
code only. Operators work lane by lane, an integer beside a vector stands for all its lanes, and
arithmetic is unsigned modulo ``2**bits``. LLVM splits a vector to what the processor has, so
nothing here depends on the machine.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic as numba_intrinsic
from numba.extending import models, overload, register_model


class Vector(types.Type):
    """The numba type of ``count`` unsigned integers of ``bits`` bits each."""

    def __init__(self, bits, count):
        self.bits = bits
        self.count = count
        super().__init__(name=f"Vector({bits}, {count})")

    @property
    def key(self):
        """What tells two vector types apart."""
        return self.bits, self.count


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _ir_type(fe_type.bits, fe_type.count))


def aligned_zeros(shape: tuple[int, ...], dtype) -> np.ndarray:
    """Zeros that start on a cache line, so that no 64-byte vector straddles two.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.labels.vectors import aligned_zeros
    >>> aligned_zeros((3, 64), np.uint8).ctypes.data % 64
    0
    """
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.zeros(n_bytes + 64, np.uint8)
    first = -buffer.ctypes.data % 64
    return buffer[first : first + n_bytes].view(dtype).reshape(shape)


def _intrinsic(function: Callable) -> Any:
    """Make an intrinsic that sees the values of literal arguments."""
    return numba_intrinsic(prefer_literal=True)(function)


def _ir_type(bits, count):
    return ir.VectorType(ir.IntType(bits), count)


def _fill(builder, scalar, bits, count):
    """Broadcast an integer value to every lane, keeping its low bits."""
    element = ir.IntType(bits)
    if scalar.type.width > bits:
        scalar = builder.trunc(scalar, element)
    elif scalar.type.width < bits:
        scalar = builder.zext(scalar, element)
    undefined = ir.Constant(_ir_type(bits, count), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
    return builder.shuffle_vector(first, undefined, lanes)


def _lane_by_lane(name, build):
    """Make an intrinsic of two vectors, or of a vector and an integer, from an IR builder."""

    def typed(typingctx, a, b):
        vector = a if isinstance(a, Vector) else b
        if not isinstance(vector, Vector):
            return None
        if not all(side == vector or isinstance(side, types.Integer) for side in (a, b)):
            return None

        def codegen(context, builder, signature, args):
            sides = [
                value if side == vector else _fill(builder, value, vector.bits, vector.count)
                for side, value in zip(signature.args, args, strict=True)
            ]
            return build(builder, *sides)

        return vector(a, b), codegen

    typed.__name__ = name
    return _intrinsic(typed)


def _overload_operator(operation, build):
    apply = _lane_by_lane(operation.__name__, build)

    @overload(operation)
    def _(a, b):
        if isinstance(a, Vector) or isinstance(b, Vector):
            return lambda a, b: apply(a, b)
        return None


_overload_operator(operator.add, lambda builder, a, b: builder.add(a, b))
_overload_operator(operator.sub, lambda builder, a, b: builder.sub(a, b))
_overload_operator(operator.mul, lambda builder, a, b: builder.mul(a, b))
_overload_operator(operator.xor, lambda builder, a, b: builder.xor(a, b))
_overload_operator(operator.and_, lambda builder, a, b: builder.and_(a, b))
_overload_operator(operator.lshift, lambda builder, a, b: builder.shl(a, b))
_overload_operator(operator.rshift, lambda builder, a, b: builder.lshr(a, b))


def _build_high_product(builder, a, b):
    bits, count = a.type.element.width, a.type.count
    wide = _ir_type(2 * bits, count)
    product = builder.mul(builder.zext(a, wide), builder.zext(b, wide))
    return builder.trunc(builder.lshr(product, ir.Constant(wide, [bits] * count)), a.type)


def _build_smaller(builder, a, b):
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


_high_product = _lane_by_lane("_high_product", _build_high_product)
_smaller = _lane_by_lane("_smaller", _build_smaller)
# Masks: every bit of a lane is set where the relation holds; _where_below compares as signed.
_where_less = _lane_by_lane(
    "_where_less", lambda builder, a, b: builder.sext(builder.icmp_unsigned("<", a, b), a.type)
)
_where_equal = _lane_by_lane(
    "_where_equal", lambda builder, a, b: builder.sext(builder.icmp_unsigned("==", a, b), a.type)
)
_where_below = _lane_by_lane(
    "_where_below", lambda builder, a, b: builder.sext(builder.icmp_signed("<", a, b), a.type)
)


@_intrinsic
def _filled(typingctx, value, bits, count):
    """Vector with the same integer in every lane."""
    vector = Vector(bits.literal_value, count.literal_value)

    def codegen(context, builder, signature, args):
        return _fill(builder, args[0], vector.bits, vector.count)

    return vector(types.unliteral(value), bits, count), codegen


@_intrinsic
def _counting(typingctx, bits, count):
    """Vector 0, 1, 2, ..."""
    vector = Vector(bits.literal_value, count.literal_value)

    def codegen(context, builder, signature, args):
        return ir.Constant(_ir_type(vector.bits, vector.count), list(range(vector.count)))

    return vector(bits, count), codegen


def _address(context, builder, array_type, array, index_type, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [context.cast(builder, index, index_type, types.uintp)])


@_intrinsic
def _loaded(typingctx, array, index, count):
    """Read ``count`` consecutive entries of a flat array."""
    vector = Vector(array.dtype.bitwidth, count.literal_value)

    def codegen(context, builder, signature, args):
        array_type, index_type, _ = signature.args
        address = _address(context, builder, array_type, args[0], index_type, args[1])
        value_type = _ir_type(vector.bits, vector.count)
        address = builder.bitcast(address, value_type.as_pointer())
        return builder.load(address, align=vector.bits // 8)

    return vector(array, types.unliteral(index), count), codegen


@_intrinsic
def _store(typingctx, array, index, value):
    """Write a vector to consecutive entries of a flat array of the same width."""
    if array.dtype.bitwidth != value.bits:
        return None

    def codegen(context, builder, signature, args):
        array_type, index_type, _ = signature.args
        address = _address(context, builder, array_type, args[0], index_type, args[1])
        address = builder.bitcast(address, args[2].type.as_pointer())
        builder.store(args[2], address, align=value.bits // 8)
        return context.get_dummy_value()

    return types.void(array, index, value), codegen


def _converter(name, build):
    def typed(typingctx, value, bits):
        vector = Vector(bits.literal_value, value.count)

        def codegen(context, builder, signature, args):
            if vector == value:
                return args[0]
            return build(builder, args[0], _ir_type(vector.bits, vector.count))

        return vector(value, bits), codegen

    typed.__name__ = name
    return _intrinsic(typed)


# Change the width of each lane: fill with zeros, fill with the sign, drop the high bits.
_widened = _converter("_widened", lambda builder, value, to: builder.zext(value, to))
_widened_signed = _converter("_widened_signed", lambda builder, value, to: builder.sext(value, to))
_narrowed = _converter("_narrowed", lambda builder, value, to: builder.trunc(value, to))


@_intrinsic
def _split(typingctx, value, bits):
    """Read the same bits as more and narrower lanes, low bits first (little-endian order)."""
    vector = Vector(bits.literal_value, value.bits * value.count // bits.literal_value)

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], _ir_type(vector.bits, vector.count))

    return vector(value, bits), codegen


@_intrinsic
def _flags(typingctx, mask):
    """One bit for each of 64 lanes: set where the mask is not zero."""

    def codegen(context, builder, signature, args):
        zero = ir.Constant(args[0].type, [0] * mask.count)
        lanes = builder.icmp_unsigned("!=", args[0], zero)
        return builder.bitcast(lanes, ir.IntType(64))

    return types.uint64(mask), codegen
