"""Accumulators: objects whose state is kept for an open group in place of its rows.

    class Slope:
        state = "n BIGINT, sx DOUBLE, sy DOUBLE, sxx DOUBLE, sxy DOUBLE"

        def zero(self): ...              # the state of no rows
        def add(self, state, rows): ...  # the state with further rows of the group
        def merge(self, one, other): ... # the state of the rows of two states
        def finish(self, key, state): ...# the rows that go out, once the group is complete

A state is a dictionary or a tuple of the columns that `state` declares in SQL, so what is kept is typed and readable,
and not tied to a class of Python. How a stream is cut into slices decides which rows are added and which states are
merged, so `merge` must be associative and commutative, and `add(state, rows)` the same as `merge(state, add(zero(),
rows))`, whatever the order of the rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from xmlstream.punct_ns.errors import QueryError


class Accumulator(Protocol):
    """What an object has that is given as an accumulator."""

    @property
    def state(self) -> str: ...
    @property
    def zero(self) -> Callable[[], Any]: ...
    @property
    def add(self) -> Callable[[Any, Any], Any]: ...
    @property
    def merge(self) -> Callable[[Any, Any], Any]: ...
    @property
    def finish(self) -> Callable[..., Any]: ...


_NUMBERS = {"zero": (0,), "add": (2,), "merge": (2,), "finish": (2, 1)}
"""The numbers of arguments that each method may take."""

_FORM = "it has a text `state`, its columns, and zero(), add(state, rows), merge(one, other) and finish(key, state)"


def is_accumulator(call: Any) -> bool:
    """Whether something is meant as an accumulator, or its class: it is no function, and has one of the methods."""
    return (inspect.isclass(call) or not callable(call)) and any(hasattr(call, method) for method in _NUMBERS)


def wrong_number(call: Any, given: int) -> str | None:
    """What is wrong with a call of something with so many arguments; None if it takes them."""
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # some functions that are written in C have none
        return None
    with suppress(TypeError):
        signature.bind(*(None,) * given)
        return None
    plain = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return f"takes {len(plain)} argument{'' if len(plain) == 1 else 's'}, not {given}"


def require_accumulator(call: Any, name: str) -> Any:
    """Returns an accumulator that is given as such, or by its class.

    Raises:
        QueryError: It lacks a method or the columns of its state, or a method takes other arguments.
    """
    lacking = [method for method in _NUMBERS if not callable(getattr(call, method, None))]
    if not isinstance(getattr(call, "state", None), str):
        lacking.append("state")
    if lacking:
        raise QueryError(f"the accumulator {name} lacks {' and '.join(lacking)}", hint=_FORM)
    try:
        made = call() if inspect.isclass(call) else call
    except Exception as raised:  # noqa: BLE001 - whatever a user's class raises
        what = f"the class of the accumulator {name} cannot be called: {type(raised).__name__}: {raised}"
        raise QueryError(what, hint="it is called without arguments; in Python, give an object in its place") from None
    for method, numbers in _NUMBERS.items():
        wrong = [wrong_number(getattr(made, method), number) for number in numbers]
        if None not in wrong:
            raise QueryError(f"{method} of the accumulator {name} {wrong[0]}", hint=_FORM)
    return made
