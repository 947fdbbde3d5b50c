"""The packages that belong to this one, found beside it wherever else their names are found first.

`operators` and `sources` are names that others give their modules, too. Python looks beside the user's script, or in
the current directory, before it looks where packages are installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any

NAMES = ("operators", "punct_ns", "sources")

HOME = Path(__file__).resolve().parents[2]
"""The directory that all of them are in."""


class _Package(ModuleType):
    """A package of ours; what only a module of that name elsewhere may have is not missing without a word."""

    def __getattr__(self, name: str) -> Any:
        _require_ours(self.__name__, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class _Loader(SourceFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Package(spec.name)


class _Beside:
    """Answers for these names alone, before all that look along `sys.path`."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where the package is; None for any other, and where all of them are in an archive.

        Raises:
            ImportError: A module of such a package that we have not, where there is another package of its name.
        """
        package, _, module = name.partition(".")
        if module and package in NAMES:
            _require_ours(package, module.partition(".")[0])
        begin = HOME / name / "__init__.py"
        if name not in NAMES or not begin.is_file():
            return None
        loader = _Loader(name, str(begin))
        return spec_from_file_location(name, begin, loader=loader, submodule_search_locations=[str(begin.parent)])


def _require_ours(package: str, name: str) -> None:
    """ImportError, where a package of ours has no such module, and Python finds another one of its name, too."""
    if name.startswith("__") or (HOME / package / name).is_dir() or (HOME / package / f"{name}.py").is_file():
        return
    others = [entry for entry in sys.path if Path(entry).resolve() != HOME]
    if (theirs := _found(others, [package])) is not None:
        raise ImportError(
            f"{package} is xmlstream's package in {HOME / package}, which has no {name}; "
            f"{theirs} cannot be imported beside it: give it another name",
            name=package,
            path=str(theirs),
        )


def find_beside() -> None:
    """From here on the names lead to the packages beside this one.

    Raises:
        ImportError: Something else was imported under one of them.
    """
    for name in NAMES:
        other = sys.modules.get(name)
        if other is not None and not _is_ours(name, other):
            place = str(getattr(other, "__file__", None) or next(iter(getattr(other, "__path__", [])), "something"))
            raise ImportError(
                f"{place} was imported as {name}, and xmlstream has a package of that name: "
                "import xmlstream before it, or give it another name",
                name=name,
                path=place,
            )
    if not any(type(finder).__name__ == _Beside.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Beside())


def hidden_by(search: str) -> Path | None:
    """What a search path such as PYTHONPATH finds under one of the names before this package's own."""
    entries = [entry for entry in search.split(os.pathsep) if entry]
    return _found(takewhile(lambda entry: Path(entry).resolve() != HOME, entries), NAMES)


def _found(entries: Iterable[str], names: Sequence[str]) -> Path | None:
    """The first module of one of these names in these directories."""
    places = (Path(entry, name) for entry in entries for at in names for name in (f"{at}/__init__.py", f"{at}.py"))
    return next(filter(Path.is_file, places), None)


def _is_ours(name: str, module: ModuleType) -> bool:
    return any(Path(place).resolve() == HOME / name for place in getattr(module, "__path__", []))
