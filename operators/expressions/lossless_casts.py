"""Casts that lose nothing: what is known of an attribute is known of its wider copy."""

from __future__ import annotations

import re
from decimal import Decimal

from punct_ns.domain import Domain, Value

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_INTEGERS = list(_DIGITS)
_EXACT_IN = {"FLOAT": ("TINYINT", "SMALLINT"), "DOUBLE": ("TINYINT", "SMALLINT", "INT", "FLOAT")}


def lossless_cast(domain: Domain, wider: str) -> Domain | None:
    """The domain of the attribute once it is cast to the wider type; None where the cast may change a value.

    Numbers only: what a date is as a timestamp depends on the time zone, and texts compare otherwise than numbers.

    >>> lossless_cast(Domain("INT", low=0), "BIGINT")
    Domain(type='BIGINT', nullable=True, low=0, high=None)
    >>> lossless_cast(Domain("BIGINT"), "DOUBLE") is None
    True
    """
    target = Domain(wider, domain.nullable)
    if target.type == domain.type:
        return domain
    if not _loses_nothing(domain.type, target.type):
        return None
    low, high = (_converted(end, target) for end in (domain.low, domain.high))
    return Domain(target.type, domain.nullable, low, high)


def _loses_nothing(type_: str, wider: str) -> bool:
    if wider in _EXACT_IN:
        return type_ in _EXACT_IN[wider]
    if wider in _INTEGERS and type_ in _INTEGERS:
        return _INTEGERS.index(type_) < _INTEGERS.index(wider)
    target = _decimal(wider)
    if target is None:
        return False
    integral, scale = _decimal(type_) or (_DIGITS.get(type_, 99), 0)
    return integral <= target[0] and scale <= target[1]


def _decimal(type_: str) -> tuple[int, int] | None:
    """Digits before and after the point."""
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type_)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None


def _converted(end: Value | None, domain: Domain) -> Value | None:
    if end is None:
        return None
    if domain.type.startswith("DECIMAL") and isinstance(end, int):
        end = Decimal(end)
    if domain.type in _EXACT_IN and isinstance(end, int):
        end = float(end)
    return domain.normal(end)


def hull(domains: list[Domain]) -> Domain:
    """The smallest domain, of one and the same type, that holds all of these.

    >>> hull([Domain("INT", False, 0, 59), Domain("INT", True, 3)])
    Domain(type='INT', nullable=True, low=0, high=None)
    """
    first = domains[0]
    lows, highs = [d.low for d in domains], [d.high for d in domains]
    low = None if None in lows else min(lows, key=lambda end: first.cut(end, after=False))
    high = None if None in highs else max(highs, key=lambda end: first.cut(end, after=True))
    return Domain(first.type, any(d.nullable for d in domains), low, high)
