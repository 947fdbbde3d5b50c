"""Sealed files by their paths, as tests find them in checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xmlstream.operators.storage import store


def unseal(path: Path) -> dict[str, Any]:
    """The value of a sealed file."""
    return store.unseal(store.Folder(path.parent), path.name)


def seal(path: Path, value: dict[str, Any]) -> None:
    """Writes it."""
    store.Folder(path.parent).replace(path.name, store.sealed(value))
