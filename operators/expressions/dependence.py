"""Dependence of an expression on one attribute: whether it rises or falls with it, and what is known of its values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

from operators.expressions.types import TypeKind
from punct_ns.domain import Domain


@dataclass(frozen=True, slots=True)
class Monotone:
    """How an expression depends on the attribute `of`: it never falls as that rises, or never rises if `falling`.

    `injective` says that different values give different ones, `narrow` that those which give the same one lie between
    two values, and `counted` what the attribute's type is (`Domain.counted`): constants close the values of what is
    injective, and, as far as they close stretches, of what is narrow. `local` says that it goes by the calendar of the
    session's time zone, and so is monotone only where that never goes back over midnight; `clock` that it goes by its
    clock, and so is monotone only where that never goes back; `digits` that it is so among texts that begin with one,
    since years from 10000 on, which may come, are written with a plus. NaN may give anything.
    """

    of: str
    falling: bool = False
    injective: bool = False
    local: bool = False
    clock: bool = False
    narrow: bool = field(default=False, compare=False, repr=False)
    counted: bool = field(default=False, compare=False, repr=False)
    digits: bool = field(default=False, compare=False, repr=False)


Strays = Literal["never", "barely", "far"]
"""How far moments, and days, may lie outside the years 1 to 9999 of those that they are computed from: a year, or more.

What a time zone does to the first and the last hours is not counted.
"""


@dataclass(frozen=True, slots=True)
class Rising:
    """What is known of a part of an expression: its dependence, and the kind of its values."""

    how: Monotone
    kind: TypeKind
    strays: Strays = "never"

    @property
    def coarser(self) -> Monotone:
        """What several values give that lie side by side."""
        return replace(self.how, injective=False)


def ends_before_10000(domain: Domain) -> bool:
    """Whether a declared domain keeps moments, or days, by a year from the year 10000.

    >>> ends_before_10000(Domain("DATE", high=date(2100, 1, 1))), ends_before_10000(Domain("DATE"))
    (True, False)
    """
    return isinstance(domain.high, date) and domain.high.year < 9999
