"""A process that dies at one of its calls, without the cost of a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from xmlstream.operators.storage import locks


class Died(BaseException):
    """Stands for the end of a process: nothing is written afterwards."""


@contextmanager
def dying(at: int, *calls: tuple[Any, str], behind: bool = False) -> Iterator[list[str]]:
    """The process dies before the call of this number, or behind it; yields the names of the calls up to then.

    `calls` are those that count: the classes or modules, and the names of their functions.
    """
    done: list[str] = []

    def counted(owner: Any, name: str) -> Any:
        original = getattr(owner, name)

        def dies(*args: Any, **options: Any) -> Any:
            done.append(name)
            found = original(*args, **options) if behind or len(done) <= at else None
            if len(done) > at:
                raise Died
            return found

        return mock.patch.object(owner, name, dies)

    with ExitStack() as stack:
        for owner, name in calls:
            stack.enter_context(counted(owner, name))
        yield done
    for held in {*locks._held.values()}:
        held.release()  # as the end of a process does
