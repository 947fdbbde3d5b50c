"""Our `dataclass` makes what the standard library's does: constructor, equality, hash, text, frozenness, pickles."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from xmlstream.dataclasses import dataclass, field, replace


def _plain() -> Any:
    class Plain:
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, compare=False, repr=False)

    return Plain


def _made_inside() -> Any:
    class MadeInside:
        a: int
        b: int = field(init=False, default=2)
        c: dict[str, int] = field(init=False, default_factory=dict)
        d: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "d", self.a + self.b)

    return MadeInside


def _of_one() -> Any:
    class OfOne:
        a: float

    return OfOne


def _of_none() -> Any:
    class OfNone: ...

    return OfNone


def _own_methods() -> Any:
    class OwnMethods:  # noqa: PLW1641 - that is the case
        a: int
        b: int = 3

        def __eq__(self, other: object) -> bool:
            return isinstance(other, OwnMethods) and self.a == other.a

        def __repr__(self) -> str:
            return f"own {self.a}"

    return OwnMethods


def _own_hash() -> Any:
    class OwnHash:
        a: int

        def __hash__(self) -> int:
            return 7

    return OwnHash


OPTIONS: list[dict[str, bool]] = [
    {"frozen": True, "slots": True},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "repr": False},
]
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((2,), {}),
    ((1, "x"), {}),
    ((1, "x", [3], 5), {}),
    ((float("nan"),), {}),
    ((), {"a": 1}),
    ((), {"a": 1, "d": 9}),
    ((1,), {"a": 1}),
    ((), {"z": 1}),
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("body", [_plain, _made_inside, _of_one, _of_none, _own_methods, _own_hash])
def test_a_class_behaves_as_the_standard_librarys(body: Any, options: dict[str, bool]) -> None:
    ours, theirs = dataclass(**options)(body()), dataclasses.dataclass(**options)(body())

    assert [_of(ours, call) for call in CALLS] == [_of(theirs, call) for call in CALLS]
    assert [_pair(ours, one, two) for one in CALLS for two in CALLS] == [
        _pair(theirs, one, two) for one in CALLS for two in CALLS
    ]
    assert ours.__match_args__ == theirs.__match_args__
    assert [each.name for each in dataclasses.fields(ours)] == [each.name for each in dataclasses.fields(theirs)]


def _of(cls: Any, call: Any) -> Any:
    """What a call makes, and what can be done with it."""
    try:
        made = cls(*call[0], **call[1])
    except TypeError:
        return "refused"
    return (_text(made), _hash(made), _set(made), hasattr(made, "__dict__"), _replaced(made))


def _text(made: Any) -> str:
    return repr(made).rpartition(".")[2].partition(" at 0x")[0]


def _pair(cls: Any, one: Any, two: Any) -> Any:
    try:
        first, second = cls(*one[0], **one[1]), cls(*two[0], **two[1])
    except TypeError:
        return "refused"
    return (first == second, first == copy.copy(first), first == 1, first != second)


def _hash(made: Any) -> Any:
    try:
        return hash(made) if "__eq__" in vars(type(made)) and made.__class__.__name__ != "OfOne" else "of one"
    except TypeError:
        return "not hashable"


def _set(made: Any) -> str:
    if not hasattr(made, "a"):
        return "no field"  # the standard library refuses it with slots by another error than without
    try:
        made.a = 3
    except AttributeError as error:
        return type(error).__name__
    return "set"


def _replaced(made: Any) -> Any:
    try:
        return _text(replace(made, a=12))
    except (TypeError, ValueError):
        return "not replaced"


@dataclass(frozen=True, slots=True)
class Base:
    """For pickles, which need a class of a module."""

    a: int


@dataclass(frozen=True, slots=True)
class Derived(Base):
    """Its fields follow those of its base."""

    b: str = "b"


def test_a_pickle_is_read_before_any_value_is_made() -> None:
    read = pickle.loads(pickle.dumps(Derived(1, "x")))

    assert read == Derived(1, "x")
    assert hash(read) == hash(Derived(1, "x"))
    assert read != Derived(2)
    assert repr(read) == "Derived(a=1, b='x')"
    assert Base(1) != Derived(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del read.b
