"""`dataclass` as in the standard library, for what starts often: no method is compiled with its module.

The standard library compiles up to six methods of every class as its module is imported: a third of the time in which
`xmlstream` starts, while a run makes few of its classes. Here it makes the class, its fields and its slots, `__init__`
is compiled when it is first called, and the other methods are closures over the fields.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, field, fields, is_dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "fields", "is_dataclass", "replace"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass  # for checkers both are one
else:

    def dataclass(*, frozen=False, slots=False, eq=True, repr=True, kw_only=False, weakref_slot=False):
        """Decorate a class as `dataclasses.dataclass` does, with the options that are used here."""

        def decorate(cls):
            made = dataclasses.dataclass(
                cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only, weakref_slot=weakref_slot
            )
            methods = {"__init__": _compiled_on_call(made)}
            if repr:
                methods["__repr__"] = _repr
            if eq:
                methods["__eq__"], hash_of = _comparison(made)
                if vars(made).get("__hash__") is None:
                    made.__hash__ = hash_of if frozen else None
            if frozen:
                methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
                methods |= {"__getstate__": _state, "__setstate__": _take_state} if slots else {}
            for name in methods.keys() - vars(made).keys():
                setattr(made, name, methods[name])
            return made

        return decorate


def _compiled_on_call(cls: type[Any]) -> Callable[..., None]:
    """Return the `__init__` that compiles the one of the fields of `cls`, and leaves it in its place."""

    def __init__(self: object, *args: object, **named: object) -> None:  # noqa: N807
        names: dict[str, object] = {"MISSING": MISSING, "assign": object.__setattr__}
        positional, by_name, body = ["self"], ["*"], []
        for each in fields(cls):
            name, default, value = each.name, "", each.name
            if each.default_factory is not MISSING:
                names[f"make_{name}"], default = each.default_factory, "=MISSING"
                value = f"make_{name}() if {name} is MISSING else {name}" if each.init else f"make_{name}()"
            elif each.default is not MISSING:
                names[f"default_{name}"], default = each.default, f"=default_{name}"
                value = name if each.init else f"default_{name}"
            elif not each.init:
                continue
            if each.init:
                (by_name if each.kw_only else positional).append(name + default)
            body.append(f"assign(self, {name!r}, {value})")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        head = ", ".join(positional + by_name * (len(by_name) > 1))
        exec(f"def __init__({head}):\n " + "\n ".join(body or ["pass"]), names)  # noqa: S102 - as the standard library does
        cls.__init__ = names.pop("__init__")
        cls.__init__(self, *args, **named)

    return __init__


def _comparison(cls: type[Any]) -> tuple[Callable[[Any, object], bool], Callable[[Any], int]]:
    """Return what tells whether two values of `cls` have equal fields, and their hash."""
    names = [each.name for each in fields(cls) if (each.compare if each.hash is None else each.hash)]
    getter = attrgetter(*names) if names else lambda value: ()
    of_fields = (lambda value: (getter(value),)) if len(names) == 1 else getter

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        return of_fields(self) == of_fields(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(of_fields(self))

    return __eq__, __hash__


def _repr(self: Any) -> str:
    """Return the text of the call that makes an equal value."""
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _take_state(self: Any, state: list[object]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
