"""Python's byte code of this product and of all that it depends on: where it is missing, each start compiles anew.

pip compiles what it installs; other installers do not, and some environments forbid Python to keep what it compiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from compileall import compile_dir, compile_file
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from xmlstream.session.own_packages import HOME, NAMES

PRODUCT = "xmlstream"

_OPTIONAL = re.compile(r";.*\bextra\b")


def compile_byte_code() -> None:
    """Compiles what has no byte code, or that of another version; what cannot be written stays as it is."""
    for place in places():
        if place.is_dir():
            compile_dir(place, quiet=2, workers=0)
        else:
            compile_file(place, quiet=2)


def places() -> list[Path]:
    """The packages and modules of this product and of what it depends on, without its extras."""
    found = [HOME / name for name in (PRODUCT, *NAMES)]
    for each in _dependencies(PRODUCT, set()):
        tops = {file.parts[0] for file in each.files or () if file.suffix == ".py"}
        found += [Path(str(each.locate_file(top))) for top in sorted(tops) if top != ".."]
    return [place for place in found if place.exists()]


def _dependencies(name: str, seen: set[str]) -> Iterator[Distribution]:
    """What a distribution requires, and what that requires; one that is not installed is needed elsewhere only."""
    seen.add(name)
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    if name != PRODUCT:
        yield found
    for required in found.requires or ():
        (needed,) = re.findall(r"^[\w.-]+", required)
        if not _OPTIONAL.search(required) and needed not in seen:
            yield from _dependencies(needed, seen)
