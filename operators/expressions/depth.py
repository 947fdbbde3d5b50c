"""Depth: a query may be nested far deeper than Python's recursion reaches in a thread of the usual size.

The reader of SQL, its printer and this package walk trees by recursion: a bracket takes some twenty calls. Python allows
1,000 calls within each other, since a thread's stack is small. So what meets that limit is done once more, in a thread
with a large stack, of which the system only gives the pages that are used. What loops over slices has such a thread
from the start.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from xmlstream.punct_ns.errors import QueryError

P = ParamSpec("P")
R = TypeVar("R")

_STACK_BYTES = 512 << 20
"""The stack of a deep thread: 2.6 kB for each call, more than a call from Python over C to Python takes."""

_CALLS = 200_000
"""The calls within each other while a deep thread lives."""

_lock = threading.Lock()
_deep: dict[int, int] = {}
"""The deep threads that live, each with the limit of calls that was before the first of them."""


def at_any_depth(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function that may be called twice: what meets the limit of recursion is done in a deep thread.

    Raises:
        QueryError: That is not deep enough.
    """

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except RecursionError:
            if threading.get_ident() in _deep:
                raise
        return _in_a_deep_thread(partial(function, *args, **named))

    return called


def _in_a_deep_thread(function: Callable[[], R]) -> R:
    results: list[R] = []
    failures: list[BaseException] = []

    def compute() -> None:
        try:
            results.append(context.run(function))
        except RecursionError:
            failures.append(too_deep())
        except BaseException as failure:  # noqa: BLE001 - raised again where the function was called
            failures.append(failure)

    context = copy_context()
    thread = deep_thread(compute, "deep")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def too_deep() -> QueryError:
    """The error of a query that is nested deeper than a deep thread reaches."""
    hint = "compute what is inside in a query of its own, whose result this one reads: another table, another run"
    return QueryError("the query is nested too deeply", hint=hint)


def deep_thread(target: Callable[[], Any], name: str) -> threading.Thread:
    """A thread, to be started, with a large stack; while it lives, all threads may have as many calls as it."""
    return _DeepThread(target=target, name=name, daemon=True)


class _DeepThread(threading.Thread):
    """A thread with a large stack; with the usual one, and the usual limit, where the system has no room for it."""

    def start(self) -> None:
        with _lock:
            usual = threading.stack_size(_STACK_BYTES)
            try:
                self._is_deep = True
                super().start()
            except RuntimeError:
                threading.stack_size(usual)
                self._is_deep = False
                super().start()
            finally:
                threading.stack_size(usual)

    def run(self) -> None:
        if not self._is_deep:
            return super().run()
        with _lock:
            _deep[threading.get_ident()] = next(iter(_deep.values()), sys.getrecursionlimit())
            sys.setrecursionlimit(max(_CALLS, sys.getrecursionlimit()))
        try:
            super().run()
        finally:
            with _lock:
                before = _deep.pop(threading.get_ident())
                if not _deep:
                    sys.setrecursionlimit(before)
