"""Depth: a query may be nested far deeper than Python's recursion reaches in a thread of the usual size.

The reader of SQL, its printer and this package walk trees by recursion: a bracket takes some twenty calls. Python
allows 1,000 calls within each other, since a thread's stack is small. So what meets that limit is done once more, in a
thread with a large stack; the system gives it only the pages that it uses. What loops over slices has such a
thread from the start.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial, wraps
from itertools import accumulate
from typing import Any, ParamSpec, TypeVar

from xmlstream.punct_ns.errors import QueryError

P = ParamSpec("P")
R = TypeVar("R")

_STACK_BYTES = 512 << 20
"""The stack of a deep thread: 2.6 kB for each call, more than a call from Python over C to Python takes."""

_CALLS = 200_000
"""The calls within each other while a deep thread lives."""

MOST = 4_000
"""The brackets, or half as many CASE, that may stand within each other: DuckDB's reader takes some more."""

_NESTED = re.compile(r"[()]|\b(?:CASE|END)\b")
_STEPS = {"(": 1, ")": -1, "CASE": 2, "END": -2}

_lock = threading.Lock()
_deep: dict[int, int] = {}
"""The deep threads that live, each with the limit of calls that was before the first of them."""

_met = threading.Event()
"""Set once a query has met the limit of calls. Before, no deep thread changes it: it is one of all threads of the
process, and protects the small stacks of a program's own."""


def at_any_depth(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function that may be called twice: what meets the limit of recursion is done in a deep thread.

    Raises:
        QueryError: That is not deep enough.
    """

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except Exception as error:
            if threading.get_ident() in _deep or not is_of_depth(error):
                raise
        return deeply(partial(function, *args, **named))

    return called


def is_of_depth(error: BaseException | None) -> bool:
    """Whether an error comes of the limit of recursion, which sqlglot reports as one of a token."""
    while error is not None and not isinstance(error, RecursionError):
        error = error.__cause__ or error.__context__
    return error is not None


def deeply(function: Callable[[], R]) -> R:
    """What a function returns that is called in a deep thread.

    Raises:
        QueryError: That is not deep enough.
    """
    if threading.get_ident() in _deep:
        return function()
    _met.set()
    results: list[R] = []
    failures: list[BaseException] = []

    def compute() -> None:
        try:
            results.append(context.run(function))
        except BaseException as failure:  # noqa: BLE001 - raised again where the function was called
            failures.append(too_deep() if is_of_depth(failure) else failure)

    context = copy_context()
    thread = deep_thread(compute, "deep")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


_INSIDE = "compute what is inside in a view, or in a query in FROM, as a column that this one reads"


def too_deep() -> QueryError:
    """The error of a query that is nested deeper than a deep thread, or DuckDB, reaches."""
    what = f"the query is nested too deeply: more than {MOST:,} operations within each other"
    return QueryError(what, hint=_INSIDE)


def depth(sql: str) -> int:
    """How many brackets stand within each other in a SQL text, or half as many CASE.

    >>> depth("((1) + 2) * CASE WHEN (a) THEN 1 END")
    3
    """
    return max(accumulate(_STEPS[each] for each in _NESTED.findall(sql)), default=0)


def deep_thread(target: Callable[[], Any], name: str) -> threading.Thread:
    """A thread, to be started, with a large stack.

    If a query has met the limit of calls, all threads may have as many calls as it while it lives.
    """
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
        if not self._is_deep or not _met.is_set():
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
