"""Sort keys of sort and top_n: an attribute, a direction, and on which side null stands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from punct_ns.prefix import Direction
from punct_ns.schema import Schema
from punct_ns.slices import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True, slots=True)
class SortKey:
    """An attribute to sort by; without `nulls_first`, null comes first when ascending and last when descending."""

    attribute: str
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def direction(self) -> Direction:
        """The order of its values."""
        return Direction(self.descending, not self.descending if self.nulls_first is None else self.nulls_first)

    @property
    def column(self) -> Column:
        """The key as Spark's."""
        from pyspark.sql import functions as F

        column, direction = F.col(quoted(self.attribute)), self.direction
        if direction.descending:
            return column.desc_nulls_first() if direction.nulls_first else column.desc_nulls_last()
        return column.asc_nulls_first() if direction.nulls_first else column.asc_nulls_last()


def keys_line(keys: Sequence[SortKey]) -> str:
    """The keys in a line.

    >>> keys_line([SortKey("hour"), SortKey("min", descending=True)])
    'hour, min DESC'
    """
    return ", ".join(f"{key.attribute}{' DESC' if key.descending else ''}" for key in keys)


def once(keys: Sequence[SortKey]) -> tuple[SortKey, ...]:
    """The keys without those of an attribute that is a key already: they decide nothing.

    >>> [key.descending for key in once([SortKey("hour"), SortKey("Hour", descending=True)])]
    [False]
    """
    each: dict[str, SortKey] = {}
    for key in keys:
        each.setdefault(key.attribute.lower(), key)
    return tuple(each.values())


def total(keys: Sequence[SortKey], schema: Schema, decided: Collection[str] = ()) -> list[Column]:
    """The keys, and after them, for ties, the remaining attributes, ascending and null first, as Spark's columns.

    Attributes without an order cannot decide, nor need those that are `decided`, being the same in all tuples compared.
    """
    named = {key.attribute.lower() for key in keys} | {name.lower() for name in decided}
    others = [SortKey(a.name) for a in schema if a.name.lower() not in named and not a.domain.opaque]
    return [key.column for key in (*keys, *others)]
