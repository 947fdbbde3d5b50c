"""The version of a Python function: a hash of all that decides its results, the same in every process.

That is its source, or its code where there is no source, and what it closes over: cells, defaults, the arguments of a
`partial`, the state of an object, the methods of its class, and the constants and the functions of its own module that
it names. Other modules are known by name. Nothing in the hash depends on addresses, or on the order of a set.
"""

from __future__ import annotations

import copyreg
import hashlib
import inspect
import textwrap
from collections.abc import Iterator
from functools import partial
from itertools import chain
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


def function_version(call: Any) -> str:
    """Returns the hash of a function.

    >>> squared = function_version(partial(pow, 2))
    >>> squared == function_version(partial(pow, 2)), squared == function_version(pow)
    (True, False)
    """
    digest, inner = hashlib.sha256(), call
    while isinstance(inner, partial):
        inner = inner.func
    for part in _Parts(getattr(inner, "__module__", None)).of(call):
        digest.update(part)
    return digest.hexdigest()[:12]


class _Parts:
    """What a function of a module consists of, each object once."""

    def __init__(self, module: str | None) -> None:
        self._module, self._seen = module, dict[int, tuple[int, Any]]()

    def of(self, value: Any) -> Iterator[bytes]:
        """Yields the parts of a value."""
        if isinstance(value, _CONSTANTS):
            yield repr(value).encode()
            return
        if id(value) in self._seen:
            yield b"again %d" % self._seen[id(value)][0]
            return
        # Kept, so that no other object gets the same address meanwhile.
        self._seen[id(value)] = len(self._seen), value
        match value:
            case tuple() | list() | dict() | set() | frozenset():
                yield from self._container(value)
            case partial():
                yield b"partial"
                yield from self.of((value.func, value.args, value.keywords))
            case MethodType():
                yield from self.of((value.__func__, value.__self__))
            case FunctionType():
                yield from self._function(value)
            case CodeType():
                yield value.co_code
                yield from self.of((value.co_consts, value.co_names, value.co_freevars))
            case ModuleType():
                yield value.__name__.encode()
            case type():
                yield from self._class(value)
            case BuiltinFunctionType():
                yield _named(value)
                yield from self.of(value.__self__)
            case _:
                yield from self._object(value)

    def _container(self, value: Any) -> Iterator[bytes]:
        yield b"%s %d" % (type(value).__name__.encode(), len(value))
        if isinstance(value, set | frozenset):
            yield from sorted(hashlib.sha256(b"".join(_Parts(self._module).of(each))).digest() for each in value)
            return
        for each in chain.from_iterable(value.items()) if isinstance(value, dict) else value:
            yield from self.of(each)

    def _function(self, function: FunctionType) -> Iterator[bytes]:
        if not self._is_own(function):
            yield _named(function)
            return
        source = _source(function)
        yield from self.of(function.__code__) if source is None else [source]
        if source is not None and function.__name__ == "<lambda>":
            # The source is that of the whole statement, which may have several.
            places = ((line, column) for line, _, column, _ in function.__code__.co_positions() if line and column)
            line, column = min(places, default=(0, 0))
            yield from self.of((line - inspect.getsourcelines(function)[1], column))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # it is not filled yet
                continue
            yield name.encode()
            yield from self.of(value)
        if function.__defaults__ or function.__kwdefaults__:
            yield from self.of((function.__defaults__, function.__kwdefaults__))
        for name in sorted(set(_names(function.__code__)) & function.__globals__.keys()):
            value = function.__globals__[name]
            if isinstance(value, (*_CONSTANTS, tuple, frozenset)) or self._is_own(value):
                yield name.encode()
                yield from self.of(value)

    def _class(self, class_: type) -> Iterator[bytes]:
        yield _named(class_)
        if not self._is_own(class_):
            return
        if (source := _source(class_)) is not None:
            yield source
        for name, value in sorted(vars(class_).items()):
            is_constant = isinstance(value, (*_CONSTANTS, tuple, frozenset)) and not name.startswith("__")
            if is_constant or isinstance(value, FunctionType | staticmethod | classmethod):
                yield name.encode()
                yield from self.of(getattr(value, "__func__", value))
        for base in class_.__bases__:
            yield from self.of(base)

    def _object(self, value: Any) -> Iterator[bytes]:
        """What a copy of an object would be made of; of one that cannot be copied, its class."""
        reduce = copyreg.dispatch_table.get(type(value))
        try:
            made: Any = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001 - whatever the object raises
            made = ()
        yield from self.of(type(value))
        yield from self.of(made[1:3] if isinstance(made, tuple) else made)

    def _is_own(self, value: Any) -> bool:
        """Whether it is a function or a class of the function's own module or package."""
        if not isinstance(value, FunctionType | type):
            return False
        return str(value.__module__).partition(".")[0] == str(self._module).partition(".")[0]


def _named(value: Any) -> bytes:
    return f"{getattr(value, '__module__', None)}:{getattr(value, '__qualname__', type(value).__qualname__)}".encode()


def _names(code: CodeType) -> Iterator[str]:
    """The names in a code, and in the code of functions within it."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _source(value: Any) -> bytes | None:
    try:
        return textwrap.dedent(inspect.getsource(value)).encode()
    except (OSError, TypeError, IndexError):
        return None
