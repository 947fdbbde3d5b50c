"""The packages that belong to this one, found beside it wherever else their names are found first.

`operators` and `sources` are names that others give their modules, too. Python looks beside the user's script, or in
the current directory, before it looks where packages are installed.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

NAMES = ("operators", "punct_ns", "sources")

HOME = Path(__file__).resolve().parents[2]
"""The directory that all of them are in."""


class _Beside:
    """Answers for these names alone, before all that look along `sys.path`."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where the package is; None for any other, and where all of them are in an archive."""
        package = HOME / name
        if name not in NAMES or not (package / "__init__.py").is_file():
            return None
        return spec_from_file_location(name, package / "__init__.py", submodule_search_locations=[str(package)])


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
    for entry in filter(None, search.split(os.pathsep)):
        if Path(entry).resolve() == HOME:
            return None
        for name in NAMES:
            for found in (Path(entry) / name / "__init__.py", Path(entry) / f"{name}.py"):
                if found.is_file():
                    return found
    return None


def _is_ours(name: str, module: ModuleType) -> bool:
    return any(Path(place).resolve() == HOME / name for place in getattr(module, "__path__", []))
