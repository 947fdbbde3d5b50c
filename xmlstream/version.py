"""Which xmlstream this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from xmlstream.punct_ns.errors import DISTRIBUTION


def version() -> str:
    """The version that is installed; `0+unknown` of a tree that is not."""
    try:
        return installed(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+unknown"
