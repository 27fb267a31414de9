"""Numba behind one typed wrapper: how kernels are compiled, cached and announced.

Two decorators and eight instructions are all that the rest of the package sees of Numba:

* :func:`kernel` for scalar functions that other kernels call (inlined by LLVM, never cached);
* :func:`entry_point` for the few functions that Python calls, compiled once per machine and cached;
* :func:`popcount`, :func:`lowest_bit_index`, :func:`highest_bit_index`,
  :func:`deposit_bits`, :func:`extract_bits`, :func:`store_8_flags`, :func:`store_16_flags` and
  :func:`store_64_flags`, usable inside kernels only (and those of ``subset_totals``, ``vectors``
  and ``lanes``).

The cache of an entry point is stamped with the contents of *every* source file of the package, not
of its own file alone as Numba does it: a kernel inlines functions of other files, and a stale copy
of their rules would be wrong without a sign. That of an entry point outside the package is stamped
with the files of its own directory as well.
"""

from __future__ import annotations

import getpass
import hashlib
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from filelock import FileLock
from llvmlite import binding, ir
from numba.core import caching, config, types
from numba.extending import intrinsic, overload

Function = TypeVar("Function", bound=Callable[..., Any])

SECONDS_BEFORE_NOTICE = 2.5
_COMPILE_NOTICE = (
    "deck_of_spies_env: compiling the engine for this machine (once, some ten seconds) ..."
)
_INTERRUPT_NOTICE = "deck_of_spies_env: interrupted, to stop as soon as the engine is compiled ..."

_PACKAGE = Path(__file__).resolve().parent


@cache
def source_digest() -> str:
    """Hex digest of all Python sources of this package: the version of the compiled code."""
    return _digest_of(_PACKAGE.rglob("*.py"), _PACKAGE)


@cache
def source_stamp(directory: Path) -> str:
    """The version of compiled code whose function stands in a directory.

    It is that of the package and, for a directory elsewhere, of all ``*.py`` in there too, but not
    in its subdirectories.
    """
    if directory.is_relative_to(_PACKAGE):
        return source_digest()
    return source_digest() + _digest_of(directory.glob("*.py"), directory)


def _digest_of(paths: Iterable[Path], root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _SourcesStamp:
    _py_file: str

    def get_source_stamp(self) -> bytes:
        return source_stamp(Path(self._py_file).resolve().parent).encode()


class _UserProvided(_SourcesStamp, caching.UserProvidedCacheLocator): ...


class _InTree(_SourcesStamp, caching.InTreeCacheLocator): ...


class _UserWide(_SourcesStamp, caching.UserWideCacheLocator): ...


class _SourcesCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [_UserProvided, _InTree, _UserWide]  # noqa: RUF012 -- Numba's own spelling


class _SourcesCache(caching.FunctionCache):
    _impl_class = _SourcesCacheImpl


def kernel(function: Function) -> Function:
    """Compile a scalar function for use inside other kernels.

    ``error_model="numpy"`` drops Python's zero-division checks, which would cost a branch each.
    """
    compiled = numba.njit(error_model="numpy", nogil=True, forceinline=True)(function)
    return cast(Function, compiled)


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls, with an on-disk cache stamped by :func:`source_stamp`.

    A function outside the package may use kernels of the package and of its own directory, no
    others. Where no directory can be written (a read-only installation without a home), the
    function is compiled anew in each process.
    """
    compiled: Any = numba.njit(error_model="numpy", nogil=True)(function)
    # No writable place at all: Numba's locator search ends in a RuntimeError.
    with suppress(RuntimeError):
        compiled._cache = _SourcesCache(function)
    return cast(Function, compiled)


def by_field(name: str, present: Function, absent: Function) -> Function:
    """A kernel that is one function for records with a field, and another for those without.

    The choice is made when the caller is compiled, by the type of the record.

    Args:
        name: of the field.
        present, absent: kernels of the same arguments, whose first is the record.
    """

    def chosen(record: Any, *others: Any) -> Any:
        raise NotImplementedError("for kernels only")

    @overload(chosen, jit_options={"error_model": "numpy", "nogil": True, "forceinline": True})
    def _(record: Any, *others: Any) -> Callable[..., Any]:  # pyright: ignore[reportUnusedFunction]
        function = present if name in record.fields else absent

        def call(record: Any, *others: Any) -> Callable[..., Any]:
            return function(record, *others)

        return call  # Numba wants the very same signature

    return cast(Function, chosen)


_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_SLOW_BIT_DEPOSIT = ("znver1", "znver2")  # they have the instruction, in slow microcode


def has_fast_bit_deposit() -> bool:
    """Whether kernels are compiled for a processor with the instructions of BMI2, and fast ones."""
    target: Any = config
    if target.CPU_NAME or target.CPU_FEATURES:  # compiling for some other processor
        return False
    has = bool(binding.get_host_cpu_features().get("bmi2"))
    return has and binding.get_host_cpu_name() not in _SLOW_BIT_DEPOSIT


@kernel
def deposit_bits_portably(bits: np.uint64, mask: np.uint64) -> np.uint64:
    """What deposit_bits does, on any processor."""
    deposited = _ZERO
    while mask != _ZERO and bits != _ZERO:
        lowest = mask & (~mask + _ONE)
        if bits & _ONE:
            deposited |= lowest
        bits >>= _ONE
        mask ^= lowest
    return deposited


@kernel
def extract_bits_portably(word: np.uint64, mask: np.uint64) -> np.uint64:
    """What extract_bits does, on any processor."""
    extracted = _ZERO
    place = _ONE
    while mask != _ZERO:
        lowest = mask & (~mask + _ONE)
        if word & lowest:
            extracted |= place
        place <<= _ONE
        mask ^= lowest
    return extracted


if TYPE_CHECKING:

    def popcount(bits: np.uint64) -> np.uint64:
        """Number of set bits (kernels only)."""
        ...

    def lowest_bit_index(bits: np.uint64) -> np.uint64:
        """Index of the lowest set bit, 64 for zero (kernels only)."""
        ...

    def highest_bit_index(bits: np.uint64) -> np.int64:
        """Index of the highest set bit, -1 for zero (kernels only)."""
        ...

    def deposit_bits(bits: np.uint64, mask: np.uint64) -> np.uint64:
        """Bit k of ``bits`` goes to where ``mask`` has its k-th set bit (kernels only).

        Bits beyond the number of set bits go nowhere.
        """
        ...

    def extract_bits(word: np.uint64, mask: np.uint64) -> np.uint64:
        """Bit k is the bit of ``word`` where ``mask`` has its k-th set bit (kernels only)."""
        ...

    def store_16_flags(array: Any, offset: int, bits: np.uint64) -> None:
        """Store the lowest 16 bits as 16 bytes of 0 or 1 into a contiguous int8 array.

        Nothing is checked: ``offset`` to ``offset + 15`` must lie in the array (kernels only).
        """
        ...

    def store_8_flags(array: Any, offset: int, bits: np.uint64) -> None:
        """Store the lowest 8 bits as 8 bytes; as store_16_flags."""
        ...

    def store_64_flags(array: Any, offset: int, bits: np.uint64) -> None:
        """Store 64 bits as 64 bytes; as store_16_flags."""
        ...

else:

    def _store_flags(number, array):
        flags = ir.VectorType(ir.IntType(1), number)
        in_bytes = ir.VectorType(ir.IntType(8), number)

        def generate(context, builder, signature, arguments):
            array, offset, bits = arguments
            data = context.make_array(signature.args[0])(context, builder, array).data
            target = builder.bitcast(builder.gep(data, [offset]), in_bytes.as_pointer())
            if number < bits.type.width:
                bits = builder.trunc(bits, ir.IntType(number))
            builder.store(builder.zext(builder.bitcast(bits, flags), in_bytes), target, align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.uint64), generate

    @intrinsic
    def store_16_flags(typing_context, array, offset, bits):
        """Store the lowest 16 bits as 16 bytes of 0 or 1 into a contiguous int8 array."""
        return _store_flags(16, array)

    @intrinsic
    def store_8_flags(typing_context, array, offset, bits):
        """Store the lowest 8 bits as 8 bytes of 0 or 1 into a contiguous int8 array."""
        return _store_flags(8, array)

    @intrinsic
    def store_64_flags(typing_context, array, offset, bits):
        """Store 64 bits as 64 bytes of 0 or 1 into a contiguous int8 array."""
        return _store_flags(64, array)

    @intrinsic
    def popcount(typing_context, bits):
        """Number of set bits (kernels only)."""

        def generate(context, builder, signature, arguments):
            return builder.ctpop(arguments[0])

        return types.uint64(types.uint64), generate

    @intrinsic
    def lowest_bit_index(typing_context, bits):
        """Index of the lowest set bit, 64 for zero (kernels only)."""

        def generate(context, builder, signature, arguments):
            return builder.cttz(arguments[0], context.get_constant(types.boolean, 0))

        return types.uint64(types.uint64), generate

    @intrinsic
    def highest_bit_index(typing_context, bits):
        """Index of the highest set bit, -1 for zero (kernels only)."""

        def generate(context, builder, signature, arguments):
            above = builder.ctlz(arguments[0], context.get_constant(types.boolean, 0))
            return builder.sub(context.get_constant(types.int64, 63), above)

        return types.int64(types.uint64), generate

    def _bmi2(instruction):
        word = ir.IntType(64)

        def generate(context, builder, signature, arguments):
            name = f"llvm.x86.bmi.{instruction}.64"
            signature = ir.FunctionType(word, [word, word])
            return builder.call(builder.module.declare_intrinsic(name, (), signature), arguments)

        return types.uint64(types.uint64, types.uint64), generate

    if has_fast_bit_deposit():

        @intrinsic
        def deposit_bits(typing_context, bits, mask):
            """Bit k of ``bits`` goes to where ``mask`` has its k-th set bit (kernels only)."""
            return _bmi2("pdep")

        @intrinsic
        def extract_bits(typing_context, word, mask):
            """Bit k is the bit of ``word`` where ``mask`` has its k-th set bit (kernels only)."""
            return _bmi2("pext")

    else:
        deposit_bits, extract_bits = deposit_bits_portably, extract_bits_portably


@contextmanager
def compiling() -> Generator[None]:
    """Hold while entry points are called for the first time in a process.

    A lock file keeps processes that start together (``AsyncVectorEnv``, ``SubprocVecEnv``) from
    writing Numba's cache index over one another: the first compiles, the others load. If it takes
    more than a moment, one line on stderr says why, once in a process. An interrupt is raised when
    all is compiled: the compiler would swallow it.
    """
    notice = threading.Timer(SECONDS_BEFORE_NOTICE, _announce)
    notice.daemon = True
    notice.start()
    try:
        with _interrupts_kept(), FileLock(_lock_path()):
            yield
    finally:
        notice.cancel()


@cache
def _announce() -> None:
    print(_COMPILE_NOTICE, file=sys.stderr, flush=True)


@contextmanager
def _interrupts_kept() -> Generator[None]:
    """Keep an interrupt (Ctrl-C) for the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread alone
        return
    came: list[int] = []

    def keep(number: int, _: object) -> None:
        if not came:
            print(_INTERRUPT_NOTICE, file=sys.stderr, flush=True)
        came.append(number)

    before = signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if came:
        raise KeyboardInterrupt


def _lock_path() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in a bare container
        user = "anyone"
    name = f"deck_of_spies_env-{user}-{source_digest()[:16]}.lock"
    return str(Path(tempfile.gettempdir()) / name)
