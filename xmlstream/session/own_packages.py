"""Finds the packages `operators`, `punct_ns` and `sources` beside this one, even if others have the same names.

Other programs may have modules called `operators` or `sources`, and Python searches the directory of the user's script,
or the current directory, before the directories of installed packages.
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
"""The directory that contains the packages."""


class _Package(ModuleType):
    """A package of this project; a missing attribute raises an error that names another package of that name."""

    def __getattr__(self, name: str) -> Any:
        _require_ours(self.__name__, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class _Loader(SourceFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Package(spec.name)


class _Beside:
    """A finder for these names only, placed before the finders that search `sys.path`."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of one of the packages; None for other names, or if the packages are in an archive.

        Raises:
            ImportError: The package has no such module, and there is another package of the same name.
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
    """Raises ImportError if a package of this project has no such module, and another package has the same name."""
    if name.startswith("__") or (HOME / package / name).is_dir() or (HOME / package / f"{name}.py").is_file():
        return
    others = [entry for entry in sys.path if Path(entry).resolve() != HOME]
    if (theirs := _found(others, [package])) is not None:
        raise ImportError(
            f"{package} is xmlstream's package in {HOME / package}, which has no {name}; "
            f"{theirs} has the same name and cannot be imported, too: rename it",
            name=package,
            path=str(theirs),
        )


def find_beside() -> None:
    """Makes imports of the names find the packages beside this one.

    Raises:
        ImportError: Another module was already imported under one of the names.
    """
    for name in NAMES:
        other = sys.modules.get(name)
        if other is not None and not _is_ours(name, other):
            place = str(getattr(other, "__file__", None) or next(iter(getattr(other, "__path__", [])), "something"))
            raise ImportError(
                f"{place} was imported as {name}, but xmlstream has a package of that name: "
                "import xmlstream first, or rename the other one",
                name=name,
                path=place,
            )
    if not any(type(finder).__name__ == _Beside.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Beside())


def hidden_by(search: str) -> Path | None:
    """The module that a search path such as PYTHONPATH finds under one of the names before this project's package."""
    entries = [entry for entry in search.split(os.pathsep) if entry]
    return _found(takewhile(lambda entry: Path(entry).resolve() != HOME, entries), NAMES)


def _found(entries: Iterable[str], names: Sequence[str]) -> Path | None:
    """The first module with one of these names in these directories."""
    places = (Path(entry, name) for entry in entries for at in names for name in (f"{at}/__init__.py", f"{at}.py"))
    return next(filter(Path.is_file, places), None)


def _is_ours(name: str, module: ModuleType) -> bool:
    return any(Path(place).resolve() == HOME / name for place in getattr(module, "__path__", []))
