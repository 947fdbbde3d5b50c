"""Purge strategy: in which slices a join of many inputs looks for what can be purged.

An eager purge looks in each slice in which anything is new; a lazy one in every n-th alone, in those in which no
tuple came, and when all inputs have ended. Both put out the same tuples. What a lazy purge has not purged yet holds
back the result's punctuations, for no more slices than lie between two looks; so a query may go on under another
strategy than it began with.

Source: Li et al. 2006, §5.2 (Plan Parameter II); Ding et al., Joining Punctuated Streams, EDBT 2004.
"""

from __future__ import annotations

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import QueryError


@dataclass(frozen=True, slots=True)
class PurgeStrategy:
    """A purge in every `every`-th slice; `chosen` states that the query chose it.

    >>> str(PurgeStrategy()), str(PurgeStrategy(4, chosen=True))
    ('eager', 'lazy, in every 4th slice, as set by the query')

    Raises:
        QueryError: `every` is less than 1.
    """

    every: int = 1
    chosen: bool = False

    def __post_init__(self) -> None:
        if self.every < 1:
            raise QueryError(
                f"a lazy purge needs an interval of 1 slice or more, not {self.every}", hint="for example 10"
            )

    @property
    def is_eager(self) -> bool:
        """Whether the join purges in each slice."""
        return self.every == 1

    def __str__(self) -> str:
        known = "eager" if self.is_eager else f"lazy, in every {ordinal(self.every)} slice"
        return f"{known}, as set by the query" if self.chosen else known


EAGER = PurgeStrategy()
"""The default strategy of a join."""

EVERY = 10
"""The default interval of a lazy purge, in slices."""


def ordinal(number: int) -> str:
    """The number as an ordinal.

    >>> [ordinal(number) for number in (2, 3, 4, 11, 12, 21)]
    ['2nd', '3rd', '4th', '11th', '12th', '21st']
    """
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else endings.get(number % 10, 'th')}"


def strategy_named(strategy: str, every: int | None = None) -> PurgeStrategy:
    """The strategy of a name, chosen by the query.

    >>> str(strategy_named("lazy")), str(strategy_named("eager"))
    ('lazy, in every 10th slice, as set by the query', 'eager, as set by the query')

    Raises:
        QueryError: No strategy has this name.
    """
    match strategy:
        case "eager":
            return PurgeStrategy(chosen=True)
        case "lazy":
            return PurgeStrategy(EVERY if every is None else every, chosen=True)
    raise QueryError(f"unknown purge strategy '{strategy}'", hint="it is eager or lazy")
