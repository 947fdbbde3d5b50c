"""Readers of the texts of options: sizes, counts, flags, lists, choices. UsageError, naming the option, if they fail.

>>> size("maxBytesPerSlice", "64m"), count("maxFilesPerSlice", "3"), flag("follow", "TRUE")
(67108864, 3, True)
>>> name_list("columns", "a, b"), choice("fail", "drop")("ungrammatical", "Drop")
(('a', 'b'), 'drop')
"""

from __future__ import annotations

import re
from collections.abc import Callable

from punct_ns.errors import UsageError
from sources.xml.options.formats import IsoRewriting


def text(name: str, given: str) -> str:
    """Any text, as it is."""
    return given


def choice(*choices: str) -> Callable[[str, str], str]:
    """The reader of one of these, written in any case."""

    def read(name: str, given: str) -> str:
        for known in choices:
            if known.lower() == given.strip().lower():
                return known
        raise UsageError(f"{name} '{given}'", hint=f"one of {', '.join(choices)}")

    return read


def flag(name: str, given: str) -> bool:
    """True or false."""
    return choice("true", "false")(name, given) == "true"


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(name: str, given: str) -> int:
    """A number of bytes."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmg]?)b?\s*", given, re.IGNORECASE | re.ASCII)
    if not match or int(match[1]) == 0:
        raise UsageError(f"{name} '{given}' is no size", hint="a number of bytes such as 100000, 512k or 64m")
    return int(match[1]) * _UNITS[match[2].lower()]


_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(name: str, given: str) -> float:
    """A span of time.

    >>> seconds("unfinishedAge", "10m"), seconds("unfinishedAge", "0s")
    (600.0, 0.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|[smhd])\s*", given, re.IGNORECASE | re.ASCII)
    if not match:
        raise UsageError(f"{name} '{given}' is no span of time", hint="a number with its unit such as 30s, 10m, 2h")
    return float(match[1]) * _SECONDS[match[2].lower()]


def rate(name: str, given: str) -> float:
    """How much comes in a time.

    >>> rate("rate", "0.5"), rate("rate", "2000")
    (0.5, 2000.0)
    """
    if not re.fullmatch(r"\s*\d+(\.\d+)?\s*", given, re.ASCII) or float(given) == 0:
        raise UsageError(f"{name} '{given}' is no number above 0", hint="tuples a second, or any other unit of all")
    return float(given)


def count(name: str, given: str) -> int:
    """A number above 0."""
    if not re.fullmatch(r"\s*0*[1-9]\d*\s*", given, re.ASCII):
        raise UsageError(f"{name} '{given}' is no number above 0")
    return int(given)


def date_pattern(name: str, given: str) -> str:
    """A pattern of dates or timestamps."""
    IsoRewriting.of(given)
    return given


def name_list(name: str, given: str) -> tuple[str, ...]:
    """Names with commas between."""
    return tuple(part.strip() for part in given.split(",") if part.strip())
