"""Numba behind one typed wrapper: how kernels are compiled, cached and announced.

Two decorators and three instructions are all that the rest of the package sees of Numba:

* :func:`kernel` for scalar functions that other kernels call (inlined by LLVM, never cached);
* :func:`entry_point` for the few functions that Python calls, compiled once per machine and cached;
* :func:`popcount`, :func:`lowest_bit_index` and :func:`store_word`, usable inside kernels only.

The cache of an entry point is stamped with the contents of *every* source file of the package, not
of its own file alone as Numba does it: a kernel inlines functions of other files, and a stale copy
of their rules would be wrong without a sign.
"""

from __future__ import annotations

import getpass
import hashlib
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from filelock import FileLock
from llvmlite import ir
from numba.core import caching, types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

SECONDS_BEFORE_NOTICE = 2.5
_COMPILE_NOTICE = (
    "deck_of_spies_env: compiling the engine for this machine (once, some ten seconds) ..."
)


@cache
def source_digest() -> str:
    """Hex digest of all Python sources of this package: the version of the compiled code."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _PackageStamp:
    def get_source_stamp(self) -> bytes:
        return source_digest().encode()


class _UserProvided(_PackageStamp, caching.UserProvidedCacheLocator): ...


class _InTree(_PackageStamp, caching.InTreeCacheLocator): ...


class _UserWide(_PackageStamp, caching.UserWideCacheLocator): ...


class _PackageCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [_UserProvided, _InTree, _UserWide]  # noqa: RUF012 -- Numba's own spelling


class _PackageCache(caching.FunctionCache):
    _impl_class = _PackageCacheImpl


def kernel(function: Function) -> Function:
    """Compile a scalar function for use inside other kernels.

    ``error_model="numpy"`` drops Python's zero-division checks, which would cost a branch each.
    """
    compiled = numba.njit(error_model="numpy", nogil=True, forceinline=True)(function)
    return cast(Function, compiled)


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls, with the package-wide on-disk cache.

    Where no directory can be written (a read-only installation without a home), the function is
    compiled anew in each process.
    """
    compiled: Any = numba.njit(error_model="numpy", nogil=True)(function)
    # No writable place at all: Numba's locator search ends in a RuntimeError.
    with suppress(RuntimeError):
        compiled._cache = _PackageCache(function)
    return cast(Function, compiled)


if TYPE_CHECKING:

    def popcount(bits: np.uint64) -> np.uint64:
        """Number of set bits (kernels only)."""
        ...

    def lowest_bit_index(bits: np.uint64) -> np.uint64:
        """Index of the lowest set bit, 64 for zero (kernels only)."""
        ...

    def store_word(array: Any, offset: int, word: np.uint64) -> None:
        """Store eight bytes, lowest first, into a contiguous int8 array (kernels only).

        Nothing is checked: ``offset`` to ``offset + 7`` must lie in the array.
        """
        ...

else:

    @intrinsic
    def store_word(typing_context, array, offset, word):
        """Store eight bytes, lowest first, into a contiguous int8 array (kernels only)."""

        def generate(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            target = builder.gep(data, [arguments[1]])
            word_pointer = ir.IntType(64).as_pointer()
            builder.store(arguments[2], builder.bitcast(target, word_pointer), align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.uint64), generate

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


@contextmanager
def compiling() -> Generator[None]:
    """Hold while entry points are called for the first time in a process.

    A lock file keeps processes that start together (``AsyncVectorEnv``, ``SubprocVecEnv``) from
    writing Numba's cache index over one another: the first compiles, the others load. If it takes
    more than a moment, one line on stderr says why.
    """
    notice = threading.Timer(SECONDS_BEFORE_NOTICE, _announce)
    notice.daemon = True
    notice.start()
    try:
        with FileLock(_lock_path()):
            yield
    finally:
        notice.cancel()


def _announce() -> None:
    print(_COMPILE_NOTICE, file=sys.stderr, flush=True)


def _lock_path() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in a bare container
        user = "anyone"
    name = f"deck_of_spies_env-{user}-{source_digest()[:16]}.lock"
    return str(Path(tempfile.gettempdir()) / name)
