"""A plugin of pytest, `-p tests.harness.without_pyspark`: an environment in which PySpark is not installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent(MetaPathFinder):
    """Finds that there is no PySpark."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def pytest_load_initial_conftests() -> None:
    """Begins before the first module of the tests; a mere import of this module changes nothing."""
    sys.meta_path.insert(0, _Absent())
